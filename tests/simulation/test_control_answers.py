"""Answers from runs: tables, limits, settling, tracking, comparisons, pictures; pushes of the world."""

# pyright: reportArgumentType=false, reportCallIssue=false
# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportOperatorIssue=false
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import linksweep as ls
from linksweep.errors import ArgumentError
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint, Limits
from linksweep.motion import Quintic
from linksweep.simulation import PD, ComputedTorque, Constant, Push, compare

pytestmark = pytest.mark.filterwarnings("ignore:simulate. .* is deprecated:DeprecationWarning")  # options by name


@pytest.fixture(scope="module")
def puma() -> ls.Robot:
    return ls.robots.puma560()


def wheel(**limits: float) -> ls.Robot:
    """An inertia of 1 kg m^2 about z."""
    body = Inertial(1.0, (0.0, 0.0, 0.0), ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))
    joint = Joint("axle", "revolute", (0.0, 0.0, 1.0), limits=Limits(**limits))
    return ls.Robot(assemble("wheel", [Part("disc", "base", joint, body)], base="base"))


def test_settling_is_that_of_a_critically_damped_spring():
    """e = e0 (1 + w t) exp(-w t) with w = 10: within 2 % of 1 rad from the root on."""
    from scipy.optimize import brentq

    run = ls.simulate(wheel(), [0.0], None, PD([1.0], 100.0, 20.0, gravity=False), 2.0)
    root = brentq(lambda t: (1 + 10 * t) * np.exp(-10 * t) - 0.02, 0.1, 1.0)
    assert run.settling_time([1.0], within=0.02) == pytest.approx([root], abs=1e-3)
    assert run.settling_time(within=1e-6)[0] < 2.0 and np.isinf(run.settling_time([3.0])[0])
    assert (run.settling_time([1.0], within=5.0) == 0.0).all()
    error = run.tracking_error([1.0])
    assert error.error.shape == (2001, 1) and error.largest[0] == 1.0
    assert error.rms[0] == pytest.approx(np.sqrt(np.mean(((1 + 10 * run.t) * np.exp(-10 * run.t)) ** 2)), rel=1e-6)


def test_tracking_a_path_in_a_batch(puma: ls.Robot):
    path = Quintic([np.zeros(6), np.ones(6)], [0.0, 0.5])
    q0 = np.array([np.zeros(6), np.full(6, 0.1)])
    run = ls.simulate(puma, q0, None, ComputedTorque(path, 100.0, 20.0), 0.5, every=5)
    error = run.tracking_error(path)
    assert error.error.shape == (101, 2, 6) and error.largest[0].max() < 1e-8 and np.allclose(error.largest[1], 0.1)
    assert run.settling_time(path, 0.05).shape == (2, 6)


def test_work_is_the_energy_that_torques_gave():
    run = ls.simulate(wheel(), [0.0], None, Constant([2.0]), 1.0)
    assert run.work == pytest.approx(run.kinetic_energy[-1], rel=1e-9)


def test_limits_say_who_when_and_by_how_much():
    robot = wheel(lower=-1.0, upper=0.5, velocity=1.0, effort=1.5)
    run = ls.simulate(robot, [[0.0], [-0.9]], None, Constant([[2.0], [0.1]]), 1.0)
    found = {(x.rollout, x.quantity): x for x in run.limits()}
    assert set(found) == {((0,), "position"), ((0,), "velocity"), ((0,), "effort")}
    speed = found[(0,), "velocity"]
    assert speed.value == pytest.approx(2.0) and speed.by == pytest.approx(1.0) and speed.first == pytest.approx(0.501)
    assert ls.simulate(wheel(), [0.0], None, None, 0.1).limits() == ()


def test_tables_print_and_compare(puma: ls.Robot):
    path = Quintic([np.zeros(6), np.ones(6)], [0.0, 0.5])
    runs = {
        "computed": ls.simulate(puma, np.zeros(6), None, ComputedTorque(path, 100.0, 20.0), 0.5),
        "pd": ls.simulate(puma, np.zeros(6), None, PD(path, 100.0, 20.0), 0.5),
    }
    text = str(runs["pd"].table())
    assert "tau.joint1" in text or "tau." in text
    assert "<table>" in runs["pd"].table()._repr_html_()
    found = compare(runs, path)
    rows = {row[0]: dict(zip(found.headings, row, strict=True)) for row in found.rows}
    assert rows["computed"]["largest error"] < 1e-8 < rows["pd"]["largest error"]
    assert rows["pd"]["beyond limits"] == len(runs["pd"].limits()) or rows["pd"]["beyond limits"] == "none"
    assert "computed" in str(found) and "<table>" in found._repr_html_()
    assert compare([runs["pd"]]).rows[0][2] == ""
    for wrong in ([], [3], {"a": 3}):
        with pytest.raises(ArgumentError, match="compare got"):
            compare(wrong)


def test_pictures(puma: ls.Robot):
    pytest.importorskip("matplotlib")
    path = Quintic([np.zeros(6), np.ones(6)], [0.0, 0.5])
    run = ls.simulate(puma, np.zeros((3, 6)), None, PD(path, 100.0, 20.0), 0.1)
    assert len(run.plot().axes) >= 6 and len(run.plot("q", path).axes) >= 6 and len(run.plot("tau").axes) >= 6
    with pytest.raises(ArgumentError, match="show is 'power'"):
        run.plot("power")
    with pytest.raises(ArgumentError, match="show is 'tau'"):
        run.plot("tau", path)


# ---- pushes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"integrator": "adaptive", "dt": 0.01}, {"control_period": 1e-3}])
def test_a_push_is_felt_and_is_no_torque(options: dict):
    """1 N m about z from 0.2 to 0.5 s: the wheel turns at 0.3 rad/s from then on."""
    push = Push("disc", [0, 0, 1.0, 0, 0, 0], 0.2, 0.5)
    run = ls.simulate(wheel(), [0.0], None, Constant([0.0]), 1.0, disturbance=push, **options)
    assert run.qd[-1, 0] == pytest.approx(0.3, abs=2e-3) and (run.tau == 0.0).all()
    early = 1e-6 if "integrator" in options else 0.0  # what is read between two adaptive steps, about the jump
    assert (np.abs(run.qd[run.t <= 0.2]) <= early).all() and np.ptp(run.qd[run.t > 0.51]) < 1e-9
    assert "Push" in run.settings.get("disturbance", "")


def test_a_push_at_a_frame_is_f_ext_there(puma: ls.Robot):
    rng = np.random.default_rng(0)
    q, qd, w = rng.normal(size=(3, 6)), rng.normal(size=(3, 6)), rng.normal(size=(3, 6))
    frame = puma.link_names[-1]
    R = puma.pose(q, frame)[:, :3, :3]
    local = np.concatenate([np.einsum("nji,nj->ni", R, w[:, :3]), np.einsum("nji,nj->ni", R, w[:, 3:])], axis=-1)
    wanted = puma.forward_dynamics(q, qd, np.zeros(6), f_ext={frame: local})
    push = Push(frame, w / 2) + Push(frame, w / 2)
    for options in ({}, {"control_period": 2e-3}, {"control_period": 1e-3, "every": 2}):
        run = ls.simulate(puma, q, qd, None, 0.01, disturbance=push, **options)
        assert np.allclose(run.qdd[0], wanted, rtol=1e-10) and (run.tau == 0.0).all()
    whole = ls.simulate(puma, q, qd, ls.simulation.SampledController(None, 1e-3), 0.01, disturbance=push)
    assert np.array_equal(run.q, whole.q[::2])


def test_a_push_breaks_a_held_joint_loose():
    robot = wheel()
    links = [replace(x, joint=replace(x.joint, friction=0.8)) for x in robot.model.links]
    robot = ls.Robot(replace(robot.model, links=tuple(links)))
    for wrench, moves in ((0.7, False), (1.0, True)):
        push = Push("disc", [0, 0, wrench, 0, 0, 0])
        for integrator in ("rk4", "adaptive"):
            run = ls.simulate(
                robot, [0.0], None, None, 0.5, dt=0.01, dissipation=True, disturbance=push, integrator=integrator
            )
            assert run.q[-1, 0] == (pytest.approx(0.5 * 0.2 * 0.25, rel=1e-6) if moves else 0.0)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Push("rim", np.zeros(6)), "Push: wheel has no frame 'rim'"),
        (lambda: Push("disc", np.zeros(5)), r"wrench has shape \(5,\)"),
        (lambda: Push("disc", np.zeros(6), 1.0, 0.5), "expected start before end"),
        (lambda: 3.0, "disturbance is 3.0, expected a Push"),
    ],
)
def test_what_is_no_push(make: object, sentence: str):
    with pytest.raises(ArgumentError, match=sentence):
        ls.simulate(wheel(), [0.0], None, None, 0.1, disturbance=make())  # type: ignore[operator]
