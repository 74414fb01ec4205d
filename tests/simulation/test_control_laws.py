"""Laws that compose: their formulas by dense matrices, and the same torques in Python, in the rollout and in C."""

# pyright: reportArgumentType=false, reportCallIssue=false
# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportOperatorIssue=false
from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from oracles import FILES, load_quietly
from pin_models import random_robot

import linksweep as ls
from linksweep.errors import ArgumentError
from linksweep.motion import Quintic
from linksweep.simulation import (
    PD,
    ComputedTorque,
    Constant,
    Controller,
    FeedForward,
    FrictionCompensation,
    GravityCompensation,
    OperationalSpace,
    Sampled,
    fixed_step,
    saturated,
)

RNG = np.random.default_rng(5)
TOOL = "panda_hand"
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler here")


@pytest.fixture(scope="module")
def panda() -> ls.Robot:
    return load_quietly(FILES["panda_description/urdf/panda.urdf"]).lock(["panda_finger_joint1", "panda_finger_joint2"])


def laws(robot: ls.Robot) -> dict[str, Controller]:
    rng = np.random.default_rng(7)
    nv = robot.nv
    home, heavy = rng.uniform(-1, 1, nv) * 0.5, robot.with_payload(TOOL, 3.0, (0.0, 0.1, 0.1))
    path = Quintic([home, home + 0.3], [0.0, 1.0])
    impedance = OperationalSpace(
        TOOL, robot.pose(home, TOOL), [20.0, 30.0, 40.0, 300.0, 200.0, 400.0], [2.0, 3.0, 4.0, 30.0, 20.0, 40.0],
        posture=home, kp_posture=rng.uniform(5, 9, nv), kd_posture=1.0,
    )  # fmt: skip
    return {
        "pd": PD(path, rng.uniform(10, 90, nv), 5.0),
        "gravity": GravityCompensation(controller_robot=heavy),
        "computed": ComputedTorque(path, 100.0, rng.uniform(10, 20, nv), controller_robot=heavy),
        "impedance": impedance,
        "saturated": saturated(impedance, rng.uniform(0.5, 5.0, nv)),
        "sum": saturated(
            PD(home, 20.0, 2.0, gravity=False)
            + GravityCompensation(controller_robot=heavy)
            + FrictionCompensation(friction=rng.uniform(0, 2, nv), damping=0.3, width=1.0)
            + FeedForward(path)
            + Constant(rng.normal(size=nv)),
            60.0,
        ),
    }


def compiled_c(law: Controller, robot: ls.Robot, folder: Path, dtype: str, t: float, q: np.ndarray, qd: np.ndarray):
    from linksweep.simulation.controllers import Grid, controller_function

    source, header = law.to_c(folder / "law.c", robot, name="law", dtype=dtype)
    assert "law: torques of " in source.read_text() and header.exists()
    build = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-fPIC", "-shared"]
    subprocess.run([*build, "-o", str(folder / f"{dtype}.so"), str(source), "-lm"], check=True)
    given = {**law.at(robot, Grid(1, 1.0, 1, False))(t), **law.constants(robot)}
    names = controller_function(law, robot, False).inputs[2:]
    kind = np.float64 if dtype == "double" else np.float32
    arrays = [np.ascontiguousarray(x, kind) for x in (q, qd, *(given[name] for name in names))]
    tau = np.full(robot.nv, np.nan, kind)
    ctypes.CDLL(str(folder / f"{dtype}.so")).law(*(ctypes.c_void_p(x.ctypes.data) for x in (*arrays, tau)))
    return tau


@pytest.mark.cases(1)
@needs_gcc
@pytest.mark.parametrize("name", ["pd", "computed", "saturated", "sum"])
def test_one_law_in_python_in_the_rollout_and_in_c(panda: ls.Robot, name: str, tmp_path: Path):
    law, rng = laws(panda)[name], np.random.default_rng(3)
    q, qd = rng.uniform(-1, 1, (4, panda.nv)), rng.normal(size=(4, panda.nv))
    wanted = law.torque(0.0, q, qd, panda)
    scale = np.abs(wanted).max()
    within = ls.simulate(panda, q, qd, law, 1e-3)
    assert np.abs(within.tau[0] - wanted).max() <= 1e-12 * scale
    later = law.torque(1e-3, within.q[1], within.qd[1], panda)
    assert np.abs(within.tau[1] - later).max() <= 1e-12 * scale
    # the first torque does not depend on the integrator; a step of one stage compiles in a quarter of the time
    euler = ls.simulation.SemiImplicitEuler
    held = ls.simulate(panda, q, qd, ls.simulation.SampledController(law, 1e-3), 1e-3, integrator=euler())
    assert np.abs(held.tau[0] - wanted).max() <= 1e-12 * scale
    single = ls.simulate(panda, q, qd, law, 1e-3, integrator=euler(dtype="float32"))
    assert np.abs(single.tau[0] - wanted).max() <= 1e-5 * scale
    assert np.abs(compiled_c(law, panda, tmp_path, "double", 0.0, q[1], qd[1]) - wanted[1]).max() <= 1e-12 * scale
    assert np.abs(compiled_c(law, panda, tmp_path, "float", 0.0, q[1], qd[1]) - wanted[1]).max() <= 1e-5 * scale


def test_impedance_is_khatibs_formula_by_dense_matrices(panda: ls.Robot):
    rng = np.random.default_rng(11)
    home = rng.uniform(-1, 1, panda.nv) * 0.5
    K, D = rng.uniform(10, 90, 6), rng.uniform(1, 9, 6)
    kp, kd = rng.uniform(1, 9, panda.nv), rng.uniform(1, 9, panda.nv)
    target = panda.pose(home, TOOL)
    law = OperationalSpace(TOOL, target, K, D, posture=home, kp_posture=kp, kd_posture=kd)
    bare = OperationalSpace(TOOL, target, K, D, gravity=False)
    for _ in range(20):
        q, qd = rng.uniform(-1, 1, panda.nv), rng.normal(size=panda.nv)
        T, J, M = panda.pose(q, TOOL), panda.jacobian(q, TOOL), panda.mass_matrix(q)
        turn = 0.5 * sum(np.cross(T[:3, k], target[:3, k]) for k in range(3))
        spring = J.T @ (K * np.concatenate([turn, target[:3, 3] - T[:3, 3]]) - D * (J @ qd))
        assert np.allclose(bare.torque(0.0, q, qd, panda), spring, rtol=1e-11, atol=1e-11)
        own = law.torque(0.0, q, qd, panda) - spring - panda.gravity_forces(q)
        tau0 = kp * (home - q) - kd * qd
        Minv = np.linalg.inv(M)
        Lambda = np.linalg.inv(J @ Minv @ J.T)
        # REGULAR, 1e-10 of the mean of Lambda^-1, times its condition
        near = 1e-9 * np.linalg.cond(Lambda)
        assert np.allclose(own, tau0 - J.T @ Lambda @ J @ Minv @ tau0, rtol=near, atol=near)
        assert np.abs(J @ Minv @ own).max() <= near * np.abs(J @ Minv @ tau0).max() + near  # the frame is left alone


@pytest.mark.slow
def test_an_impedance_settles_where_it_should_in_a_singular_start(panda: ls.Robot):
    home = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    target = panda.pose(home, TOOL)
    law = saturated(OperationalSpace(TOOL, target, [80] * 3 + [900] * 3, [12] * 3 + [80] * 3, posture=home))
    run = ls.simulate(panda, home + 0.1, None, law, 4.0, every=100)
    assert np.abs(panda.pose(run.q[-1], TOOL) - target).max() < 1e-3
    stretched = ls.simulate(panda, np.zeros(7), None, law, 0.5)
    assert stretched.finite and (np.abs(stretched.tau) <= [87, 87, 87, 87, 12, 12, 12]).all()


@pytest.mark.slow
def test_a_path_of_poses_is_followed(panda: ls.Robot):
    home = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    T = panda.pose(home, TOOL)

    def circle(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        poses, twists = np.tile(T, (len(t), 1, 1)), np.zeros((len(t), 6))
        poses[:, 1, 3] += 0.1 * np.sin(t)
        twists[:, 4] = 0.1 * np.cos(t)
        return poses, twists

    law = OperationalSpace(TOOL, circle, [100] * 3 + [2000] * 3, [8] * 3 + [120] * 3, posture=home, kd_posture=1.0)
    run = ls.simulate(panda, home, None, law, 2.0, every=10)
    assert np.abs(panda.pose(run.q, TOOL)[:, :3, 3] - circle(run.t)[0][:, :3, 3]).max() < 0.01
    sampled = ls.simulate(panda, home, None, ls.simulation.SampledController(law, 1e-3), 2.0, every=10)
    assert np.abs(sampled.q - run.q).max() < 1e-3


@pytest.mark.slow
def test_a_controller_that_does_not_know_its_payload_sags(panda: ls.Robot):
    home = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    heavy = panda.with_payload(TOOL, 2.0, (0.0, 0.0, 0.1))
    kd = [40.0, 40.0, 20.0, 20.0, 2.0, 2.0, 1.0]
    knows = ls.simulate(heavy, home, None, PD(home, 400.0, kd), 2.0, every=100)
    sags = ls.simulate(heavy, home, None, PD(home, 400.0, kd, controller_robot=panda), 4.0, every=100)
    assert np.abs(knows.q[-1] - home).max() < 1e-9
    # it comes to rest where its springs carry what it does not know of
    still = (heavy.gravity_forces(sags.q[-1]) - panda.gravity_forces(sags.q[-1])) / 400.0
    assert np.allclose(home - sags.q[-1], still, atol=1e-4) and np.abs(still).max() > 0.02


def test_gains_of_each_rollout(panda: ls.Robot):
    q0, kp = RNG.uniform(-1, 1, (3, panda.nv)) * 0.3, RNG.uniform(5, 90, (3, panda.nv))
    together = ls.simulate(panda, q0, None, PD(np.zeros(7), kp, kp / 10.0), 0.05)
    sampled = ls.simulate(
        panda,
        q0,
        None,
        ls.simulation.SampledController(PD(np.zeros(7), kp, kp / 10.0), 1e-3),
        0.05,
    )
    for k in range(3):
        law = PD(np.zeros(7), kp[k], kp[k] / 10.0)
        assert np.array_equal(ls.simulate(panda, q0[k], None, law, 0.05).q, together.q[:, k])
        alone = ls.simulate(panda, q0[k], None, ls.simulation.SampledController(law, 1e-3), 0.05)
        assert np.allclose(alone.q, sampled.q[:, k], rtol=1e-14, atol=1e-14)


def test_friction_compensation_is_smooth_and_takes_the_description(panda: ls.Robot):
    rng, qd = np.random.default_rng(1), np.array([0.0, 1e-4, 0.02, -0.3, 2.0, -5.0, 0.0])
    friction, damping = rng.uniform(0, 3, 7), rng.uniform(0, 3, 7)
    law = FrictionCompensation(friction=friction, damping=damping, width=0.02)
    wanted = damping * qd + friction * qd / np.hypot(qd, 0.02)
    assert np.allclose(law.torque(0.0, np.zeros(7), qd, panda), wanted, rtol=1e-13)
    assert law.torque(0.0, np.zeros(7), qd, panda)[0] == 0.0
    described = random_robot(("revolute", "prismatic"), seed=2)
    links = {link.start: link for link in described.canonical.links}
    v = np.array([0.3, -0.4])
    tau = FrictionCompensation(width=1e-9).torque(0.0, described.neutral(), v, described)
    assert np.allclose(tau, [links[k].damping * v[k] + links[k].friction * np.sign(v[k]) for k in range(2)])


@pytest.mark.slow
def test_columns_and_adaptive_steps_run_the_same_composed_law(panda: ls.Robot, monkeypatch: pytest.MonkeyPatch):
    for name in ("impedance", "sum"):
        law = laws(panda)[name]
        machine = ls.simulate(panda, np.full(7, 0.1), None, law, 0.02, dt=2e-4, every=5)
        with monkeypatch.context() as patch:
            patch.setattr(fixed_step, "ROLL_ABOVE", 1)
            fixed_step._unrolled_or_looped.cache_clear()
            columns = ls.simulate(panda, np.full(7, 0.1), None, law, 0.02, dt=2e-4, every=5)
            fixed_step._unrolled_or_looped.cache_clear()
        assert np.allclose(columns.q, machine.q, rtol=1e-11, atol=1e-11)
        adaptive = ls.simulate(panda, np.full(7, 0.1), None, law, 0.02, integrator="adaptive")
        assert np.allclose(adaptive.q, machine.q, rtol=1e-7, atol=1e-7)  # the fourth order of steps


def test_no_composed_law_drives_a_free_joint():
    robot = random_robot(("free", "revolute"), seed=4)
    for law in (
        GravityCompensation(),
        FrictionCompensation(damping=1.0),
        PD(robot.neutral(), 3, 1) + Constant(np.zeros(7)),
    ):
        tau = law.torque(0.0, robot.neutral(), np.ones(7), robot)
        assert (tau[:6] == 0.0).all()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda r: PD(np.zeros(7), np.ones(6), 1.0), r"kp has shape \(6,\), expected one number or \(..., 7\)"),
        (lambda r: OperationalSpace("hand", np.eye(4), 1, 1), "has no frame 'hand'"),
        (lambda r: OperationalSpace(TOOL, np.eye(3), 1, 1), r"poses have shape \(3, 3\), expected \(..., 4, 4\)"),
        (lambda r: OperationalSpace(TOOL, 2 * np.eye(4), 1, 1), "is not a rotation"),
        (lambda r: OperationalSpace(TOOL, np.eye(4), [1, 2], 1), r"stiffness has shape \(2,\)"),
        (lambda r: PD(np.zeros(7), 1, 1, controller_robot=ls.robots.planar(3)), "expected joints of the same types"),
        (lambda r: PD(np.zeros(7), 1, 1, controller_robot="panda"), "controller_robot is 'panda', expected a Robot"),
        (lambda r: PD(np.zeros(7), 1, 1) + 3.0, "a sum of controllers got 3.0, expected a controller"),
        (lambda r: saturated(lambda t, q, qd: qd), "expected a controller: pass arrays as Constant"),
        (lambda r: saturated(PD(np.zeros(7), 1, 1), -1.0), "limits is -1"),
        (lambda r: FrictionCompensation(width=0.0), "width is 0.0, expected a finite number above 0"),
        (lambda r: FrictionCompensation(3.0), "reference is 3.0, expected a path"),
    ],
)
def test_what_cannot_be_a_law_is_said_in_one_sentence(panda: ls.Robot, make: object, sentence: str):
    with pytest.raises(ArgumentError, match=sentence):
        ls.simulate(panda, np.zeros(7), None, make(panda), 0.01)  # type: ignore[operator]


def test_saturation_needs_limits_and_a_torque_its_robot(panda: ls.Robot):
    with pytest.raises(ArgumentError, match="has no effort limits"):
        ls.simulate(ls.robots.planar(2), np.zeros(2), None, saturated(GravityCompensation()), 0.01)
    with pytest.raises(ArgumentError, match="expected the Robot that it drives: pass robot="):
        GravityCompensation().torque(0.0, np.zeros(7), np.zeros(7))
    assert GravityCompensation(controller_robot=panda).torque(0.0, np.zeros(7), np.zeros(7)).shape == (7,)
    with pytest.raises(ArgumentError, match="samples, expected"):
        Sampled(np.zeros((4, 7))).torque(0.0, np.zeros(7), np.zeros(7), panda)


def test_sums_within_sums_keep_their_numbers_apart():
    """Signals and constants of parts have names; the same name twice would be one number."""
    robot = ls.robots.planar(2)
    t, one = np.array([0.0, 1.0]), np.ones(2)
    inner = saturated(Constant(3 * one) + Constant(5 * one), 6.0)
    law = (
        inner
        + Sampled(np.array([one, one]) * 20.0, t, hold="linear")
        + saturated(saturated(Constant(9 * one), 4.0), 7.0)
    )
    assert np.array_equal(law.torque(0.0, np.zeros(2), np.zeros(2), robot), 30.0 * one)
    run = ls.simulate(robot, np.zeros(2), None, law, 1e-3)
    assert np.array_equal(run.tau, np.full((2, 2), 30.0))
    assert np.array_equal(ls.simulate(robot, np.zeros(2), None, sum([inner, inner]), 1e-3).tau[0], 12.0 * one)
