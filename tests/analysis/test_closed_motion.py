"""Motions of closed mechanisms against published numbers: N four-bars and Andrews' mechanism."""

from __future__ import annotations

import numpy as np
import pytest

import linksweep as ls
from linksweep.errors import ArgumentError
from linksweep.robots.closed_chains import ANDREWS_MOTOR, ANDREWS_START, four_bars_upright


def test_two_four_bars_for_ten_seconds():
    """IFToMM A02, N = 2: through singular poses; B0 from its one freedom, integrated apart to 12 digits."""
    robot = ls.robots.four_bars(2)
    q0, qd0 = four_bars_upright(robot)
    run = ls.simulate(robot, q0, qd0, duration=10.0, dt=1e-3, every=100, progress=False)
    np.testing.assert_allclose(robot.pose(run.q[-1], "B0")[:2, 3], (0.328458111536, 0.944518538180), atol=1e-9)
    assert run.constraint_drift < 1e-12
    assert run.energy_drift < 1e-9


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
    with pytest.raises(ArgumentError, match="leaves a gap"):
        ls.simulate(robot, q0 + 0.1 * np.arange(3), qd0, duration=0.01, progress=False)
    with pytest.raises(ArgumentError, match="opens the constraints"):
        ls.simulate(robot, q0, np.ones(3), duration=0.01, progress=False)


def test_upright_is_regular_and_flat_is_singular():
    robot = ls.robots.four_bars(1)
    upright, _ = four_bars_upright(robot)
    assert robot.mobility(upright).freedoms == 1 and not robot.mobility(upright).singular
    flat = np.where([name.startswith("coupler") for name in robot.joint_names], 0.0, 0.0)
    assert robot.mobility(flat).freedoms == 2 and robot.mobility(flat).singular
