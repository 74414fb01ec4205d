"""Closed mechanisms: motions against published numbers (N four-bars, Andrews), inverse dynamics as it is called."""

# pyright: reportArgumentType=false, reportCallIssue=false
from __future__ import annotations

import numpy as np
import pytest

import linksweep as ls
from linksweep.errors import ArgumentError
from linksweep.robots.mechanisms import ANDREWS_MOTOR, ANDREWS_START, four_bars_upright


@pytest.mark.quick
def test_two_four_bars_for_ten_seconds():
    """IFToMM A02, N = 2: through singular poses; B0 from its one freedom, integrated apart to 12 digits."""
    robot = ls.robots.four_bars(2)
    q0, qd0 = four_bars_upright(robot)
    run = ls.simulate(robot, q0, qd0, duration=10.0, dt=1e-3, every=100)
    np.testing.assert_allclose(robot.pose(run.q[-1], "B0")[:2, 3], (0.328458111536, 0.944518538180), atol=1e-9)
    assert run.constraint_drift < 1e-12
    assert run.energy_drift < 1e-9


@pytest.mark.quick
def test_andrews_first_accelerations_and_multipliers():
    robot = ls.robots.andrews()
    tau = np.r_[ANDREWS_MOTOR, np.zeros(6)]
    qdd, details = robot.forward_dynamics(ANDREWS_START, np.zeros(7), tau, details=True)
    np.testing.assert_allclose(qdd[:2], (14222.4439199541, -10666.8329399656), rtol=1e-12)
    assert np.abs(qdd[2:]).max() < 1e-12 * 14222
    published = -details.constraint_forces[:, 3:5]  # M q'' + G^T lambda = f: lambda along the world's x and y
    np.testing.assert_allclose(published[0], (98.5668703962411, -6.12268834425566), rtol=1e-12)
    assert np.abs(published[1:]).max() < 1e-10


def test_a_start_off_the_constraints_is_refused():
    robot = ls.robots.four_bars(1)
    q0, qd0 = four_bars_upright(robot)
    with pytest.raises(ArgumentError, match="violates the constraints"):
        ls.simulate(robot, q0 + 0.1 * np.arange(3), qd0, duration=0.01)
    with pytest.raises(ArgumentError, match="qd0 violates the constraints"):
        ls.simulate(robot, q0, np.ones(3), duration=0.01)


def test_upright_is_regular_and_flat_is_singular():
    robot = ls.robots.four_bars(1)
    upright, _ = four_bars_upright(robot)
    assert robot.mobility(upright).degrees_of_freedom == 1 and not robot.mobility(upright).singular
    flat = np.where([name.startswith("coupler") for name in robot.joint_names], 0.0, 0.0)
    assert robot.mobility(flat).degrees_of_freedom == 2 and robot.mobility(flat).singular


# ---- inverse dynamics -----------------------------------------------------------------------------------------


def held(count: int = 1) -> tuple[ls.Robot, np.ndarray, np.ndarray, np.ndarray]:
    """A planar arm whose tool keeps to a line, with poses, rates and accelerations that keep it there."""
    free, q = ls.robots.planar(3), np.array([0.4, 0.5, -0.3])
    robot = free.with_constraints([ls.Constraint("line", "tool", at=free.pose(q, "tool"))])
    rng = np.random.default_rng(0)
    qs = robot.project(q + 0.05 * rng.normal(size=(count, 3)))
    qd = robot.project_velocity(qs, rng.normal(size=(count, 3)))
    return robot, qs, qd, robot.forward_dynamics(qs, qd, rng.normal(size=(count, 3)))


def test_closed_inverse_dynamics_takes_out():
    robot, *state = held(2)
    tau = robot.inverse_dynamics(*state)
    out = np.full((2, 3), 7.0)
    assert robot.inverse_dynamics(*state, out=out) is out and np.array_equal(out, tau)
    same = state[0].copy()
    assert np.array_equal(robot.inverse_dynamics(same, *state[1:], out=same), tau)
    for bad, got in (
        ("nonsense", "is a str"), (np.zeros(3), r"of shape \(3,\)"), (np.zeros((2, 3), np.float32), "is a float32"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=rf"^inverse_dynamics: out .*{got}.*expected a float64 array of shape"):
            robot.inverse_dynamics(*state, out=bad)
    with pytest.raises(ArgumentError, match="out= and details=True"):
        robot.inverse_dynamics(*state, out=out, details=True)


def test_closed_inverse_dynamics_takes_the_methods_of_the_tree():
    robot, *state = held()
    tau = robot.inverse_dynamics(*state)
    for method in robot.methods("inverse_dynamics"):
        found = robot.inverse_dynamics(*state, method=method)
        np.testing.assert_allclose(found, tau, rtol=0, atol=1e-12 * np.abs(tau).max())
    with pytest.raises(ArgumentError, match="inverse_dynamics has no method 'no_such_method': expected one of"):
        robot.inverse_dynamics(*state, method="no_such_method")


def test_an_unknown_option_names_the_function_that_was_called():
    robot, *state = held()
    for one in (robot, robot.without_constraints()):
        with pytest.raises(TypeError, match=r"^Robot\.inverse_dynamics\(\) got an unexpected keyword argument 'foo'"):
            one.inverse_dynamics(*state, foo=1)


def test_closed_inverse_dynamics_in_float32():
    robot, *state = held(4)
    tau, details = robot.inverse_dynamics(*(x.astype(np.float32) for x in state), details=True)
    assert tau.dtype == np.float32 and details.multipliers.dtype == np.float32
    wanted = robot.inverse_dynamics(*state)
    # float32 has seven digits, of which the least-squares problem for the multipliers costs two
    np.testing.assert_allclose(tau, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
    assert robot.inverse_dynamics(state[0].astype(np.float32), *state[1:]).dtype == np.float64


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("which", [0, 1, 2])
def test_closed_inverse_dynamics_of_a_sample_that_is_not_finite(
    which: int, bad: float, capfd: pytest.CaptureFixture[str]
):
    robot, *state = held(3)
    wanted = robot.inverse_dynamics(*state)
    state[which][1, 2] = bad
    tau, details = robot.inverse_dynamics(*state, details=True)
    assert np.isnan(tau[1]).all() and np.isnan(details.multipliers[1]).all() and np.array_equal(tau[::2], wanted[::2])
    assert np.isnan(robot.inverse_dynamics(*(x[1] for x in state))).all()
    assert capfd.readouterr() == ("", "")  # LAPACK would print there
    state[2][0] += 1.0  # a sample that breaks the constraints is found all the same
    with pytest.raises(ArgumentError, match="qdd violates the constraints"):
        robot.inverse_dynamics(*state)


def test_one_pose_at_a_time():
    robot, q, *_ = held(2)
    calls = (robot.mobility, robot.tangent_basis, robot.tangent_mass_matrix)
    for call in calls:
        for poses in (q, q[:0]):
            with pytest.raises(ArgumentError, match=r"q has shape \(\d, 3\), expected one configuration \(3,\)"):
                call(poses)
        with pytest.raises(ArgumentError, match=r"q is .*nan.*, expected finite numbers"):
            call(q[0] * np.nan)
