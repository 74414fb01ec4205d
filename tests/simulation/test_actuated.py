"""Motors at some joints only: controllers of closed chains, and constrained inverse dynamics as a compiled function."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import linkages
import numpy as np
import pytest

import linksweep as ls
from linksweep import ArgumentError
from linksweep.motion import Line
from linksweep.simulation import (
    PD,
    ComputedTorque,
    FeedForward,
    FrictionCompensation,
    GravityCompensation,
    OperationalSpace,
    saturated,
)
from linksweep.simulation.result import load

COMPILER = shutil.which("gcc") or shutil.which("cc")


def mechanism(name: str) -> tuple[ls.Robot, np.ndarray]:
    """A robot whose motors are named, and a pose."""
    if name == "four-bars":
        robot = ls.robots.four_bars(3)
        couplers = np.array([joint.startswith("coupler") for joint in robot.joint_names])
        return robot.with_actuated(["post0"]), np.where(couplers, -1.2, 1.2)
    robot, q = {
        "five-bar": lambda: (linkages.five_bar(), linkages.five_bar().project(linkages.FIVE_BAR)),
        "delta": lambda: (linkages.delta(), linkages.delta_pose()),
        "delta with rods": lambda: (linkages.delta(True), linkages.delta_pose(True)),
        "gripper": lambda: (linkages.gripper(), linkages.gripper_pose()),
    }[name]()
    return robot.with_actuated(linkages.MOTORS[robot.name]), q


SLOW = pytest.param("delta with rods", marks=pytest.mark.slow)
MECHANISMS = ("five-bar", "delta", SLOW, "four-bars", "gripper")


def states(robot: ls.Robot, q: np.ndarray, count: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Motions that meet the constraints."""
    rng = np.random.default_rng(2)
    Q = np.stack([robot.project(robot.integrate(q, 0.1 * rng.normal(size=robot.nv))) for _ in range(count)])
    V = robot.project_velocity(Q, rng.normal(size=(count, robot.nv)))
    return Q, V, robot.project_acceleration(Q, V, rng.normal(size=(count, robot.nv)))


def passive(robot: ls.Robot) -> np.ndarray:
    """Rates without motors."""
    found = np.ones(robot.nv, bool)
    for name, link in zip(robot.joint_names, robot.canonical.joints, strict=True):
        found[link.rates] = name not in robot.actuated
    return found


# ---- which joints have motors


def test_motors_are_part_of_the_robot(tmp_path: Path):
    robot = linkages.gripper()
    assert robot.actuated == robot.joint_names
    some = robot.with_actuated(["shoulder", "right_crank"])  # which follows left_crank: one motor drives both
    assert (
        some.actuated == ("shoulder", "left_crank")
        and some != robot
        and some.with_actuated("elbow").actuated == ("elbow",)
    )
    assert some.lock("shoulder").actuated == ("left_crank",)
    scene = ls.scene({"a": some, "box": ls.body(1.0, inertia=(0.1, 0.1, 0.1))})
    assert scene.actuated == ("a/shoulder", "a/left_crank")  # a free joint has none
    assert ls.load("puma560", actuated=["joint2"]).actuated == ("joint2",)
    with pytest.raises(ArgumentError, match="joint22"):
        ls.load("puma560", actuated=["joint22"])
    with pytest.raises(ArgumentError, match="free joint"):
        scene.with_actuated(["box"])
    run = ls.simulate(some.without_constraints(), linkages.gripper_pose(), duration=0.01, dt=1e-3)
    run.to_npz(tmp_path / "run.npz")
    assert load(tmp_path / "run.npz").robot.actuated == some.actuated


def test_writers_say_that_motors_are_left_out():
    arm = ls.robots.puma560().with_actuated(["joint1"])
    for write in (arm.to_urdf, lambda: arm.to_dh("modified")):
        with pytest.warns(ls.ModelWarning, match="joint2"):
            write()


# ---- inverse dynamics


@pytest.mark.parametrize("name", MECHANISMS)
def test_compiled_inverse_dynamics_drives_the_motors_only(name: str):
    robot, start = mechanism(name)
    q, qd, qdd = states(robot, start)
    tau = robot.compile("inverse_dynamics")(q, qd, qdd)
    assert (tau[:, passive(robot)] == 0.0).all()
    np.testing.assert_allclose(robot.forward_dynamics(q, qd, tau), qdd, atol=1e-9 * np.abs(qdd).max())
    np.testing.assert_allclose(tau, robot.inverse_dynamics(q, qd, qdd), atol=1e-11 * np.abs(tau).max())
    explicit = robot.with_actuated(robot.joint_names).inverse_dynamics(q, qd, qdd, actuated=robot.actuated)
    np.testing.assert_allclose(tau, explicit, atol=1e-11 * np.abs(tau).max())


@pytest.mark.slow
def test_an_independent_solution_of_the_delta():
    """B^T tau = B^T tree for the motions B that the constraints allow: three equations for three motors."""
    robot, start = mechanism("delta with rods")
    q, qd, qdd = states(robot, start, 1)
    tree = robot.without_constraints().inverse_dynamics(q[0], qd[0], qdd[0])
    K, motors = robot.constraint_jacobian(q[0]), ~passive(robot)
    B = np.linalg.svd(K)[2][np.linalg.matrix_rank(K) :].T
    expected = np.linalg.solve(B[motors].T, B.T @ tree)
    np.testing.assert_allclose(robot.compile("inverse_dynamics")(q[0], qd[0], qdd[0])[motors], expected, rtol=1e-11)


def test_where_motors_outnumber_the_freedoms_torques_are_the_least():
    """Both posts and a coupler of a four-bar have motors: the torques are the smallest that do it."""
    robot = ls.robots.four_bars(1)
    q, qd, qdd = states(robot, np.array([1.2, 1.2, -1.2]))
    tree, K = robot.without_constraints().inverse_dynamics(q, qd, qdd), robot.constraint_jacobian(q)
    for k, found in enumerate(robot.compile("inverse_dynamics")(q, qd, qdd)):
        multipliers = np.linalg.lstsq(K[k].T, -tree[k], rcond=None)[0]
        np.testing.assert_allclose(found, tree[k] + K[k].T @ multipliers, rtol=1e-11, atol=1e-12)


def test_a_motion_that_the_motors_cannot_give_is_nan():
    """A four-bar without motors falls, and can do nothing else."""
    robot = ls.robots.planar(3).with_constraints([ls.Constraint("line", "tool", at=np.eye(4))]).with_actuated([])
    q = robot.project(np.array([0.3, 2.0, 2.0]))
    f, none = robot.compile("inverse_dynamics"), np.zeros(3)
    assert np.isnan(f(q, none, none)).all()
    falling = robot.forward_dynamics(q, none, none)
    assert (robot.inverse_dynamics(q, none, falling) == 0.0).all()
    with pytest.raises(ArgumentError, match="passive joints would need"):
        robot.inverse_dynamics(q, none, none)


def test_derivatives_of_constrained_inverse_dynamics():
    robot, start = mechanism("delta")
    q, qd, qdd = (x[0] for x in states(robot, start, 1))
    f = robot.compile("inverse_dynamics")
    slope, h = robot.compile(("derivative", "inverse_dynamics", "q"))(q, qd, qdd), 1e-6
    for k in range(robot.nv):
        step = h * np.eye(robot.nv)[k]
        np.testing.assert_allclose(slope[:, k], (f(q + step, qd, qdd) - f(q - step, qd, qdd)) / (2 * h), atol=1e-7)


def test_there_is_no_formula_of_a_choice():
    robot, _ = mechanism("five-bar")
    with pytest.raises(ArgumentError, match="without_constraints"):
        robot.symbolic("inverse_dynamics")


def test_too_many_choices_are_refused():
    with pytest.raises(ArgumentError, match="with_actuated"):
        ls.robots.four_bars(40).compile("inverse_dynamics")(np.zeros(81), np.zeros(81), np.zeros(81))


# ---- controllers


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_controller_drives_passive_joints(name: str):
    robot, q = mechanism(name)
    robot = robot.with_dissipation(damping=0.1, friction=0.2).with_limits(effort=100.0)
    none, frame = np.zeros(robot.nv), robot.frame_names[-1]
    still = FeedForward(lambda t: [np.tile(x, (len(t), 1)) for x in (q, none, none)])
    laws = [
        PD(q + 0.1, 100.0, 10.0), PD(q + 0.1, 100.0, 10.0, gravity=False), GravityCompensation(), still,
        ComputedTorque(q + 0.1, 100.0, 20.0), FrictionCompensation(), saturated(PD(q + 0.1, 100.0, 10.0)),
        OperationalSpace(frame, robot.pose(q, frame), 100.0, 10.0),
    ]  # fmt: skip
    for law in (*laws, laws[0] + laws[2]):
        tau = law.torque(0.0, q, none + 0.1, robot)
        assert (tau[passive(robot)] == 0.0).all() and np.isfinite(tau).all(), law
    held = GravityCompensation().torque(0.0, q, none, robot)
    assert np.abs(robot.forward_dynamics(q, none, held)).max() < 1e-10  # nothing falls
    assert np.abs(held).max() > 1e-3


def test_a_controller_may_name_its_own_motors():
    arm = ls.robots.planar(3)
    tau = PD(np.zeros(3), 10.0, 1.0, actuated=["joint2"]).torque(0.0, np.full(3, 0.3), np.zeros(3), arm)
    assert tau[1] != 0.0 and tau[0] == tau[2] == 0.0
    lighter = arm.with_gravity((0.0, -9.0, 0.0))
    driven = arm.with_actuated(["joint1"])
    tau = PD(np.zeros(3), 10.0, 1.0, controller_robot=lighter).torque(0.0, np.full(3, 0.3), np.zeros(3), driven)
    assert tau[0] != 0.0 and tau[1] == tau[2] == 0.0


def test_motors_that_do_not_determine_all_joints_carry_what_is_theirs():
    """A five-bar with one motor cannot be held: the motor gets the torque of its own joint in the tree."""
    robot, q = mechanism("five-bar")
    loose = robot.with_actuated(["left1"])
    assert loose.undriven_joints == ("left2", "right1", "right2") and robot.undriven_joints == ()
    tau = GravityCompensation().torque(0.0, q, np.zeros(4), loose)
    np.testing.assert_allclose(tau, robot.gravity_forces(q) * [1.0, 0.0, 0.0, 0.0], rtol=1e-12)


def test_what_controllers_refuse():
    arm = ls.robots.planar(3).with_actuated(["joint1"])
    with pytest.raises(ArgumentError, match="joint2"):
        ComputedTorque(np.zeros(3), 1.0, 1.0).torque(0.0, np.zeros(3), np.zeros(3), arm)
    robot, q = mechanism("five-bar")
    loose = robot.with_actuated(["left1"])  # one motor for two freedoms
    with pytest.raises(ArgumentError, match="right1"):
        ComputedTorque(q, 1.0, 1.0).torque(0.0, q, np.zeros(4), loose)
    with pytest.raises(ArgumentError, match="constraints"):
        PD(q, 1.0, 1.0, controller_robot=robot.without_constraints()).torque(0.0, q, np.zeros(4), robot)
    with pytest.raises(ArgumentError, match="decoupled"):
        OperationalSpace("left_tip", np.eye(4), 1.0, 1.0, decoupled=True).torque(0.0, q, np.zeros(4), robot)


def platform_path(robot: ls.Robot, q: np.ndarray) -> Any:
    """A path of the delta's platform, followed by its joints at any times."""
    start = robot.pose(q, "platform")
    end = start.copy()
    end[:3, 3] += [0.05, -0.03, -0.04]
    t = np.linspace(0.0, 0.5, 201)
    followed = robot.follow(Line(start, end, 0.5), "platform", t, q, position_only=True)
    assert followed.reason == "converged"
    return ls.motion.QuinticSpline(followed.q, t)


@pytest.mark.parametrize("name", ["delta", SLOW])
def test_a_delta_robot_tracks_a_path_by_computed_torque(name: str):
    robot, q = mechanism(name)
    path = platform_path(robot, q)
    law = ComputedTorque(path, 400.0, 40.0)
    start = robot.project(robot.integrate(q, 0.01 * np.ones(robot.nv)))  # off the path by some centimetres
    run = ls.simulate(robot, start, duration=0.5, dt=5e-4, torque=law)
    assert (run.tau[:, passive(robot)] == 0.0).all() and np.abs(run.tau).max() > 0.1
    assert run.constraint_drift < 1e-9
    wanted = path(run.t).q
    off = np.abs(run.q - wanted).max(axis=1)
    assert off[0] > 5e-3 and off[-1] < 5e-4  # it decays as exp(-20 t) (1 + 20 t)
    exact = ls.simulate(robot, q, duration=0.5, dt=5e-4, torque=law)
    assert np.abs(exact.q - wanted).max() < 1e-5


@pytest.mark.parametrize("integrator", ["semi_implicit_euler", "adaptive"])
def test_other_integrators_and_sampled_control(integrator: str):
    robot, q = mechanism("delta")
    law = ComputedTorque(q + 0.0, 400.0, 40.0)
    start = robot.project(robot.integrate(q, 0.01 * np.ones(robot.nv)))
    run = ls.simulate(robot, start, duration=0.2, dt=1e-3, torque=law, integrator=integrator)
    assert (run.tau[:, passive(robot)] == 0.0).all() and np.abs(run.q[-1] - q).max() < 6e-3
    if integrator != "adaptive":
        sampled = ls.simulate(
            robot,
            start,
            torque=ls.simulation.SampledController(law, 2e-3),
            duration=0.2,
            dt=1e-3,
        )
        assert (sampled.tau[:, passive(robot)] == 0.0).all() and np.abs(sampled.q[-1] - q).max() < 6e-3


# ---- C


def compiled_c(folder: Path, source: Path) -> ctypes.CDLL:
    library = folder / f"lib{source.stem}.so"
    command = [
        str(COMPILER),
        "-std=c99",
        "-O1",
        "-shared",
        "-fPIC",
        "-ffp-contract=off",
        str(source),
        "-o",
        str(library),
        "-lm",
    ]
    subprocess.run(command, check=True, capture_output=True)
    return ctypes.CDLL(str(library))


def call(function: Any, arrays: list[np.ndarray], size: int) -> np.ndarray:
    out, pointer = np.zeros(size), ctypes.POINTER(ctypes.c_double)
    function(*(np.ascontiguousarray(x, float).ctypes.data_as(pointer) for x in arrays), out.ctypes.data_as(pointer))
    return out


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
@pytest.mark.parametrize("name", ["delta", SLOW])
def test_the_c_of_a_delta_robot_and_its_controller(name: str, tmp_path: Path):
    robot, start = mechanism(name)
    q, qd, qdd = states(robot, start, 4)
    f = robot.compile("inverse_dynamics")
    (tmp_path / "inverse.c").write_text(f.c_source(name="inverse"))
    (tmp_path / "inverse.h").write_text(f.c_header(name="inverse"))
    inverse = compiled_c(tmp_path, tmp_path / "inverse.c").inverse
    law = ComputedTorque(start, 400.0, 40.0)
    source, _ = law.to_c(tmp_path / "law.c", robot, name="law")
    torque = compiled_c(tmp_path, source).law
    for k in range(4):
        ours = call(inverse, [q[k], qd[k], qdd[k]], robot.nv)
        np.testing.assert_allclose(ours, f(q[k], qd[k], qdd[k]), rtol=1e-12, atol=1e-12)
        assert (ours[passive(robot)] == 0.0).all()
        given = {
            "q_ref": start,
            "qd_ref": np.zeros(robot.nv),
            "qdd_ref": np.zeros(robot.nv),
            "kp": np.full(robot.nv, 400.0),
            "kd": np.full(robot.nv, 40.0),
        }
        ours = call(torque, [q[k], qd[k], *given.values()], robot.nv)
        np.testing.assert_allclose(ours, law.torque(0.0, q[k], qd[k], robot), rtol=1e-12, atol=1e-12)
        assert (ours[passive(robot)] == 0.0).all()


# ---- torques that are not numbers


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_saturated_controller_is_finite(bad: float):
    robot = ls.robots.puma560()
    law = saturated(PD(np.zeros(6), 100.0, 10.0), limits=30.0)
    q = np.tile([0.1, -0.2, 0.3, 0.4, 0.5, 0.6], (3, 1))
    q[1, 2] = bad
    tau = law.torque(0.0, q, np.zeros((3, 6)), robot)
    assert (np.abs(tau) <= 30.0).all() and (tau[1] == 0.0).all() and (tau[[0, 2]] != 0.0).all()
    qd = np.zeros(6)
    qd[0] = bad
    for whole in (law, law + saturated(GravityCompensation(), limits=5.0), saturated(law)):
        assert np.isfinite(whole.torque(0.0, q[0], qd, robot)).all()
    assert np.isnan(PD(np.zeros(6), 100.0, 10.0).torque(0.0, q[1], np.zeros(6), robot)).all()


@pytest.mark.skipif(COMPILER is None, reason="no C compiler")
def test_a_saturated_controller_is_finite_in_c(tmp_path: Path):
    robot = ls.robots.puma560()
    law = saturated(PD(np.zeros(6), 100.0, 10.0), limits=30.0)
    source, _ = law.to_c(tmp_path / "law.c", robot, name="law")
    torque = compiled_c(tmp_path, source).law
    rest = [np.zeros(6), np.zeros(6), np.full(6, 100.0), np.full(6, 10.0), np.full(6, 30.0)]
    q = np.array([0.1, -0.2, 0.3, 0.4, 0.5, 0.6])
    good = call(torque, [q, np.zeros(6), *rest], 6)
    np.testing.assert_allclose(good, law.torque(0.0, q, np.zeros(6), robot), rtol=1e-12)
    for bad in (np.nan, np.inf, -np.inf):
        q[2] = bad
        tau = call(torque, [q, np.zeros(6), *rest], 6)
        assert np.isfinite(tau).all() and (np.abs(tau) <= 30.0).all()
