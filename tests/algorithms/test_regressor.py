"""The regressor as sweeps: every kind of joint, written out and as loops, dense and packed."""

# pyright: reportArgumentType=false
from __future__ import annotations

import numpy as np
import pin_models
import pytest

import linksweep as ls

MIXED = (*pin_models.ALL_KINDS, "revolute")


def states(robot: ls.Robot, count: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return np.stack([robot.random(rng) for _ in range(count)]), *rng.normal(size=(2, count, robot.nv))


@pytest.mark.quick
@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("tree", [False, True])
def test_torques_of_the_parameters(tree: bool, rolled: bool):
    robot = pin_models.random_robot(MIXED, tree=tree, seed=3, armature=0.1)
    x = states(robot, 5)
    tau = robot.inverse_dynamics(*x)
    Y = robot.compile("regressor", rolled=rolled)(*x)
    assert np.abs(Y @ robot.standard_parameters - tau).max() <= 1e-13 * np.abs(tau).max()
    packed = robot.compile("packed_regressor", rolled=rolled)(*x)
    rows, columns = robot.regressor_places
    dense = np.zeros_like(Y)
    dense[:, rows, columns] = packed
    assert np.allclose(dense, Y, rtol=0, atol=1e-13 * np.abs(Y).max())
    assert len(set(zip(rows, columns, strict=True))) == packed.shape[-1]


@pytest.mark.quick
def test_each_column_is_the_torque_of_one_parameter():
    """A parameter of 1 and the others 0, link by link, against inverse dynamics with inertias as arguments."""
    robot = pin_models.random_robot(("revolute", "prismatic", "revolute"), tree=True, seed=4)
    (q, qd, qdd) = (x[0] for x in states(robot, 1))
    Y = robot.regressor(q, qd, qdd)
    by_inertia = robot.compile("inverse_dynamics", backend="interpreter", parameters=["inertia"])
    zero = np.zeros((3, 10))
    for link in range(3):
        for k in range(10):
            given = zero.copy()
            given[link, k] = 1.0
            tau = by_inertia(q, qd, qdd, given)
            assert np.allclose(Y[:, 10 * link + k], tau, rtol=0, atol=1e-12), (link, k)


@pytest.mark.slow
def test_large_robots_run_as_machine_code():
    """28 links: 8,624 entries, written by pairs as they come, in every lane and beside memory that is not ours."""
    robot = ls.robots.chain(28, seed=2)
    x = states(robot, 11)
    Y = robot.regressor(*x)
    reference = robot.compile("regressor", backend="interpreter", rolled=False)(*x)
    assert robot.compile("regressor").backend == "llvm"
    assert np.abs(Y - reference).max() <= 1e-12 * np.abs(reference).max()
    assert np.array_equal(Y[:3], robot.regressor(*(v[:3] for v in x)))
    assert np.count_nonzero(reference[0]) < 0.6 * reference[0].size
    bad = x[0].copy()
    bad[4, 2] = np.nan
    broken = robot.regressor(bad, *x[1:])
    assert np.isnan(broken[4]).all() and np.array_equal(np.delete(broken, 4, axis=0), np.delete(Y, 4, axis=0))


def test_packed_by_keyword():
    robot = ls.robots.puma560()
    q, qd, qdd = states(robot, 3)
    values = robot.regressor(q, qd, qdd, packed=True)
    rows, columns = robot.regressor_places
    assert values.shape == (3, len(rows)) and len(rows) == 10 * 21 + 6
    assert np.array_equal(robot.regressor(q, qd, qdd)[:, rows, columns], values)
    out = np.empty_like(values)
    assert robot.regressor(q, qd, qdd, out=out, packed=True) is out
