"""Torques over time and laws of feedback; friction; adaptive runs, their events and limits: against closed forms."""

# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportArgumentType=false
from __future__ import annotations

import numpy as np
import pytest
from pin_models import ALL_KINDS, random_robot
from scipy.special import ellipk

import linksweep as ls
from linksweep.errors import ArgumentError
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint, Limits
from linksweep.motion import Quintic
from linksweep.simulation import (
    PD,
    ComputedTorque,
    Constant,
    FeedForward,
    LimitCrossing,
    Sampled,
    SimulationWarning,
    fixed_step,
)

MASS, ARM = 2.0, 0.5
INERTIA = MASS * ARM**2  # of a point mass, about the axis


def pendulum(gravity: float = 9.81, **joint: object) -> ls.Robot:
    """A point mass, ARM below an axis along y."""
    body = Inertial(MASS, (0.0, 0.0, -ARM))
    own = Joint("swing", "revolute", (0.0, 1.0, 0.0), **joint)  # type: ignore[arg-type]
    return ls.Robot(assemble("pendulum", [Part("bob", "base", own, body)], base="base", gravity=(0, 0, -gravity)))


@pytest.fixture(scope="module")
def puma() -> ls.Robot:
    return ls.robots.puma560()


@pytest.mark.quick
def test_damping_takes_speed_exponentially():
    robot = pendulum(0.0, damping=0.4)
    found = ls.simulate(robot, [0.0], [2.0], None, 1.0, dissipation=True)
    assert np.allclose(found.qd[:, 0], 2.0 * np.exp(-0.4 / INERTIA * found.t), rtol=1e-12)
    assert np.array_equal(ls.simulate(robot, [0.0], [2.0], None, 0.1).qd, np.full((101, 1), 2.0))


@pytest.mark.quick
def test_coulomb_friction_takes_speed_evenly():
    found = ls.simulate(pendulum(0.0, friction=0.2), [0.0], [-2.0], None, 1.0, dissipation=True)
    assert np.allclose(found.qd[:, 0], -2.0 + 0.2 / INERTIA * found.t, rtol=1e-12)


def test_samples_are_held_as_said(puma: ls.Robot):
    rng = np.random.default_rng(0)
    tau, q0 = rng.normal(size=(21, 6)), rng.normal(size=6)
    held = ls.simulate(puma, q0, None, Sampled(tau[:20], hold="zero"), 0.02)
    q, qd = q0, np.zeros(6)
    for k in range(20):
        one = ls.simulate(puma, q, qd, Constant(tau[k]), 1e-3)
        q, qd = one.q[-1], one.qd[-1]
        assert np.allclose(held.q[k + 1], q, rtol=1e-13, atol=1e-14)
    by_time = ls.simulate(puma, q0, None, Sampled(tau, np.arange(21) * 1e-3, hold="zero"), 0.02)
    assert np.array_equal(by_time.q, held.q)
    middles = np.empty((41, 6))
    middles[::2], middles[1::2] = tau, (tau[1:] + tau[:-1]) / 2
    linear = ls.simulate(puma, q0, None, Sampled(tau, hold="linear"), 0.02)
    assert np.allclose(linear.q, ls.simulate(puma, q0, None, middles, 0.02).q, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("law", [Sampled(np.ones((4, 6)), hold="zero"), Sampled(np.ones((4, 6)), np.arange(4) - 5.0)])
def test_samples_that_do_not_fit_the_time_are_refused(puma: ls.Robot, law: Sampled):
    with pytest.raises(ArgumentError, match=r"samples, expected 11|0 to 0\.01"):
        ls.simulate(puma, np.zeros(6), None, law, 0.01)


@pytest.mark.quick
def test_computed_torque_errors_decay_as_springs(puma: ls.Robot):
    """Decoupled and critically damped: e = e0 (1 + w t) exp(-w t)."""
    path = Quintic([np.zeros(6), np.linspace(-1.0, 1.0, 6)], [0.0, 0.5])
    offset = np.array([0.1, -0.2, 0.3, -0.1, 0.2, 0.05])
    found = ls.simulate(puma, path(0.0).q - offset, None, ComputedTorque(path, 100.0, 20.0), 0.6)
    wanted = offset * ((1.0 + 10.0 * found.t) * np.exp(-10.0 * found.t))[:, None]
    error = path(found.t).q - found.q
    assert np.abs(error - wanted).max() < 1e-8  # the fourth order of steps of 1 ms


@pytest.mark.slow
@pytest.mark.quick
def test_laws_say_what_their_formulas_say():
    """Every kind of joint but the free one, which no law drives."""
    robot = random_robot(ALL_KINDS[1:], seed=4)
    rng = np.random.default_rng(1)
    kp, kd = rng.uniform(1, 9, robot.nv), rng.uniform(1, 9, robot.nv)
    q = np.array([robot.random(rng) for _ in range(3)])
    near = robot.integrate(q, 1e-6 * rng.normal(size=(3, robot.nv)))  # so near that products of errors round away
    qd = rng.normal(size=(3, robot.nv))
    error = robot.difference(q, near)
    spring = kp * error - kd * qd
    cases = {
        "PD": (PD(near, kp, kd, gravity=False), spring),
        "gravity": (PD(near, kp, kd), spring + robot.gravity_forces(q)),
        "computed": (ComputedTorque(near, kp, kd), robot.inverse_dynamics(q, qd, spring)),
    }
    for law, wanted in cases.values():
        found = ls.simulate(robot, q, qd, law, 1e-3).tau[0]
        assert np.allclose(found, wanted, rtol=1e-11, atol=1e-11)


def test_no_law_drives_a_free_joint():
    robot = random_robot(("free", "revolute"), seed=4)
    tau = ls.simulate(robot, robot.neutral(), None, PD(robot.neutral(), 5.0, 1.0), 1e-3).tau[0]
    assert (tau[:6] == 0.0).all() and tau[6] == pytest.approx(robot.gravity_forces(robot.neutral())[6], rel=1e-12)
    with pytest.raises(ArgumentError, match="joint0"):
        ls.simulate(robot, robot.neutral(), None, ComputedTorque(robot.neutral(), 5.0, 1.0), 1e-3)


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", [PD, ComputedTorque])
def test_columns_and_adaptive_steps_obey_the_same_law(puma: ls.Robot, kind: type, monkeypatch: pytest.MonkeyPatch):
    path = Quintic([np.zeros(6), np.ones(6)], [0.0, 0.5])
    law = kind(path, 30.0, 5.0)
    machine = ls.simulate(puma, np.full(6, 0.1), None, law, 0.05)
    monkeypatch.setattr(fixed_step, "ROLL_ABOVE", 1)
    fixed_step._unrolled_or_looped.cache_clear()
    columns = ls.simulate(puma, np.full(6, 0.1), None, law, 0.05)
    fixed_step._unrolled_or_looped.cache_clear()
    adaptive = ls.simulate(
        puma,
        np.full(6, 0.1),
        None,
        law,
        0.05,
        integrator=ls.simulation.Adaptive(rtol=1e-12, atol=1e-12),
    )
    assert np.allclose(columns.q, machine.q, rtol=1e-12, atol=1e-12)
    assert np.allclose(adaptive.q, machine.q, rtol=1e-9, atol=1e-9)  # fourth order of steps of 1 ms
    assert np.allclose(adaptive.tau, machine.tau, rtol=1e-6, atol=1e-6)


def test_python_functions_drive_fixed_and_adaptive_steps():
    """A spring along a free axis: the harmonic oscillator."""
    robot = pendulum(0.0)
    rate = 5.0

    def spring(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return -INERTIA * rate**2 * q

    for integrator, within in (("rk4", 1e-9), ("adaptive", 1e-8)):
        found = ls.simulate(robot, [0.3], [0.0], spring, 1.0, integrator=integrator)
        assert np.abs(found.q[:, 0] - 0.3 * np.cos(rate * found.t)).max() < within
    batch = ls.simulate(robot, [[0.3], [0.1]], None, spring, 0.01)
    assert np.allclose(batch.q[:, 1], batch.q[:, 0] / 3.0, rtol=1e-12)


def test_sampled_torques_in_adaptive_steps(puma: ls.Robot):
    path = Quintic([np.zeros(6), np.ones(6)], [0.0, 0.4])
    t = np.linspace(0.0, 0.4, 200)
    for law in (FeedForward(path), Sampled(puma.inverse_dynamics(*path(t)), t)):
        found = ls.simulate(puma, np.zeros(6), None, law, 0.4, integrator="adaptive", dt=0.1)
        assert np.abs(found.q[-1] - 1.0).max() < 1e-6


# ---- events and limits -----------------------------------------------------------------------------------------


def test_events_and_dense_output_of_a_pendulum():
    """It passes the lowest point after a quarter of its period, K(sin(start / 2)) / sqrt(m g a / I)."""
    start = 2.0
    quarter = float(ellipk(np.sin(start / 2) ** 2) / np.sqrt(MASS * 9.81 * ARM / INERTIA))

    def lowest(t: float, q: np.ndarray, qd: np.ndarray) -> float:
        return q[0]

    exact = ls.simulation.Adaptive(rtol=1e-12, atol=1e-12, events=[lowest])
    found = ls.simulate(pendulum(), [start], None, None, 2.0, dt=0.05, integrator=exact)
    assert len(found.t) == 41 and np.allclose(found.events[0].t[:2], [quarter, 3 * quarter], rtol=1e-9)
    assert np.abs(found.events[0].q).max() < 1e-12
    assert found.dense is not None
    q, qd = found.dense([quarter, 2 * quarter])
    assert np.allclose(q[:, 0], [0.0, -start], atol=1e-8) and abs(qd[1, 0]) < 1e-7  # the interpolant is of order 7
    lowest.terminal = True  # type: ignore[attr-defined]
    stopped = ls.simulate(pendulum(), [start], None, None, 2.0, dt=0.05, integrator=exact)
    assert stopped.t[-1] == pytest.approx(quarter, rel=1e-9) and abs(stopped.q[-1, 0]) < 1e-12
    assert len(stopped.t) == len(stopped.q) == len(stopped.tau) == int(quarter / 0.05) + 2
    with pytest.raises(ArgumentError, match="expected 0 to"):
        stopped.dense(1.9)  # type: ignore[misc]


def test_limits_are_reported_or_stop():
    start = 2.0
    limited = pendulum(limits=Limits(lower=0.0, upper=3.0))
    quarter = float(ellipk(np.sin(start / 2) ** 2) / np.sqrt(MASS * 9.81 * ARM / INERTIA))
    adaptive = ls.simulate(limited, [start], None, None, 1.0, integrator="adaptive", dt=0.1)
    (crossing,) = adaptive.limit_crossings
    assert crossing == LimitCrossing("swing", "lower", crossing.time)
    assert crossing.time == pytest.approx(quarter, rel=1e-7)
    stopped = ls.simulate(
        limited,
        [start],
        None,
        None,
        1.0,
        integrator=ls.simulation.Adaptive(limits="stop"),
        dt=0.1,
    )
    assert stopped.t[-1] == pytest.approx(quarter, rel=1e-7) and abs(stopped.q[-1, 0]) < 1e-9
    batch = ls.simulate(limited, [[0.1], [start], [3.1]], None, None, 1.0)
    by_rollout = {(c.rollout, c.bound): c.time for c in batch.limit_crossings}
    assert by_rollout[(1,), "lower"] == pytest.approx(quarter, abs=1e-6)  # a straight line between steps of 1 ms
    assert by_rollout[(2,), "upper"] == 0.0
    assert (
        ls.simulate(limited, [3.1], None, None, 0.01, integrator=ls.simulation.RK4(limits="ignore")).limit_crossings
        == ()
    )
    assert [c.time for c in batch.limit_crossings] == sorted(c.time for c in batch.limit_crossings)
    with pytest.raises(ArgumentError, match="outside the upper limit of joint swing"):
        ls.simulate(limited, [3.1], None, None, 1.0, integrator=ls.simulation.Adaptive(limits="stop"))


def test_adaptive_steps_that_cannot_go_on_are_nan_from_there():
    """q'' = q^2 grows beyond all bounds before 3 s."""
    robot = pendulum(0.0)
    with pytest.warns(SimulationWarning, match="of pendulum ended early: the step size became too small"):
        found = ls.simulate(
            robot, [1.0], [2.0], lambda t, q, qd: INERTIA * q**2 * 6.0, 4.0, integrator="adaptive", dt=0.1
        )
    assert not found.finite and np.isfinite(found.q[3]).all() and np.isnan(found.q[-1]).all() and len(found.t) == 41
    assert "failure" in found.settings


@pytest.mark.parametrize("begins", [0.0, 1e-300])
def test_adaptive_steps_end_where_the_torque_is_not_a_number(puma: ls.Robot, begins: float):
    """SciPy never ends if the first rate is NaN, and has an IndexError if only the first step is."""

    def torque(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return np.full(6, np.nan if t >= begins else 0.0)

    def never(t: float, q: np.ndarray, qd: np.ndarray) -> float:
        return 1.0

    with pytest.warns(SimulationWarning, match="ended early: the step size became too small"):
        run = ls.simulate(
            puma,
            np.zeros(6),
            None,
            torque,
            0.1,
            integrator=ls.simulation.Adaptive(events=[never]),
            dt=0.05,
        )
    assert not run.finite and run.q.shape == (3, 6) and np.isnan(run.q[1:]).all() and (run.q[0] == 0.0).all()
    assert len(run.events) == 1 and not len(run.events[0].t) and "failure" in run.settings


@pytest.mark.parametrize("value", [None, np.zeros(2), np.zeros(1), "0"])
def test_an_event_is_one_number(puma: ls.Robot, value: object):
    with pytest.raises(ls.ArgumentError, match="expected one real number that crosses 0"):
        ls.simulate(
            puma,
            np.zeros(6),
            None,
            None,
            0.1,
            integrator=ls.simulation.Adaptive(events=[lambda t, q, qd: value]),
        )
