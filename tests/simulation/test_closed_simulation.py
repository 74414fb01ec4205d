"""Simulated constraints: Baumgarte's gains in the place of projection, adaptive steps, and what the result says."""

# pyright: reportOptionalCall=false
# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportArgumentType=false
from __future__ import annotations

import numpy as np
import pytest

import linksweep as ls
from linksweep.papers.studies.four_bar import single_dof_solution
from linksweep.robots.mechanisms import four_bars_upright


def test_baumgartes_gains_keep_the_loops():
    """N = 2, 10 s: published for these gains in another program, 6e-11 m off and open by 8e-13 m."""
    robot = ls.robots.four_bars(2)
    run = ls.simulate(
        robot,
        *four_bars_upright(robot),
        duration=10.0,
        every=100,
        integrator=ls.simulation.RK4(constraints=(100.0, 20.0)),
    )
    off = robot.pose(run.q[-1], "B0")[:2, 3] - (0.328458111536, 0.944518538180)
    assert np.abs(off).max() < 1e-9 and 1e-16 < run.constraint_drift < 1e-11
    assert run.settings.get("constraints") == [100.0, 20.0]


def test_errors_decay_as_the_gains_say():
    """A start open by 1e-7: e'' + kd e' + kp e = 0 with a double root at -10 leaves e^-10 (1 + 10) after 1 s."""
    robot = ls.robots.four_bars(1).with_gravity((0.0, 0.0, 0.0))
    q, _ = four_bars_upright(robot)
    q = q + np.array([1e-7, 0.0, 0.0])
    run = ls.simulate(robot, q, duration=1.0, integrator=ls.simulation.RK4(constraints=(100.0, 20.0)))
    first, last = (np.abs(robot.constraint_error(x)).max() for x in (run.q[0], run.q[-1]))
    assert last / first == pytest.approx(np.exp(-10.0) * 11.0, rel=1e-4)  # RK4 of 1 ms: 3.3e-5, and 2e-6 of 0.5 ms


@pytest.mark.parametrize("constraints", ["project", (100.0, 20.0)])
def test_adaptive_steps(constraints: object):
    """Projected through a singular pose, at 0.7 s; gains, which leave an error there, only up to it."""
    robot = ls.robots.four_bars(1)
    duration = 2.0 if constraints == "project" else 0.6
    run = ls.simulate(
        robot, *four_bars_upright(robot), duration=duration, dt=0.1,
        integrator=ls.simulation.Adaptive(rtol=1e-11, atol=1e-11, constraints=constraints),
    )  # fmt: skip
    off = np.abs(robot.pose(run.q, "B0")[:, :2, 3] - single_dof_solution(1, run.t)).max()
    assert off < 1e-8
    assert run.constraint_drift < (1e-13 if constraints == "project" else 1e-8)
    q, qd = run.dense(0.47)
    assert np.abs(robot.constraint_error(q)).max() < (1e-13 if constraints == "project" else 1e-8)
    if constraints == "project":
        assert np.abs(robot.constraint_jacobian(q) @ qd).max() < 1e-12


@pytest.mark.parametrize(
    ("constraints", "sentence"),
    [("hold", "expected 'project', or Baumgarte"), ((1.0,), "expected"), ((-1.0, 2.0), "expected"), (5.0, "expected")],
)
def test_gains_that_are_none(constraints: object, sentence: str):
    robot = ls.robots.four_bars(1)
    with pytest.raises(ls.ArgumentError, match=sentence):
        ls.simulate(
            robot,
            *four_bars_upright(robot),
            duration=0.01,
            integrator=ls.simulation.RK4(constraints=constraints),
        )
    with pytest.raises(ls.ArgumentError, match="has no constraints"):
        ls.simulate(ls.robots.planar(1), [0.0], duration=0.01, integrator=ls.simulation.RK4(constraints=(1.0, 1.0)))


def test_torques_of_a_constrained_robot_are_a_choice():
    """Compiled, it is the one that the method makes: the smallest torques. The tree's are others."""
    robot = ls.robots.four_bars(1)
    q, qd = four_bars_upright(robot)
    qdd = robot.project_acceleration(q, qd, 0 * qd)
    tau = robot.compile("inverse_dynamics")(q, qd, qdd)
    np.testing.assert_allclose(tau, robot.inverse_dynamics(q, qd, qdd), atol=1e-12)
    tree = robot.without_constraints()
    other = tree.compile("inverse_dynamics")(q, qd, qdd)
    assert np.linalg.norm(tau) < np.linalg.norm(other)
    np.testing.assert_allclose(robot.forward_dynamics(q, qd, other), robot.forward_dynamics(q, qd, tau), atol=1e-9)
    assert tree.constraints == () and tree.without_constraints() is tree


def test_writers_say_what_they_leave_out():
    robot = ls.robots.four_bars(1).with_springs([ls.Spring("B0", None, 10.0)]).with_gravity((0, 0, -9.81))
    with pytest.warns(ls.ModelWarning, match="to_urdf: URDF cannot store 'window 1', 'spring B0 - world'"):
        robot.to_urdf()
    chain = ls.robots.puma560().with_springs([ls.Spring("tool", None, 10.0)])
    with pytest.warns(ls.ModelWarning, match="to_dh: a DH table cannot store 'spring tool - world'"):
        chain.to_dh("modified")
