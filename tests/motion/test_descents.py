"""Descents of inverse kinematics: machine code and Python run the same lines, and lanes do not know one another."""

# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportArgumentType=false
from __future__ import annotations

import functools
from typing import Any

import numpy as np
import oracles
import pytest
import robots_for_tests
from abuse_helpers import Guarded, in_process

import linksweep as ls
from linksweep import ArgumentError
from linksweep.motion.descents import RAN_OUT, SOLVED, Problem, Report, descend_in_python
from linksweep.motion.inverse import chain_of
from linksweep.tracing.count import count

FILES = {"ur5": "ur_description/urdf/ur5_robot.urdf", "panda": "panda_description/urdf/panda.urdf"}
ARMS = {"ur5": "tool0", "panda": "panda_hand_tcp", "puma560": "tool", "stanford": None, "planar3": None}
OPTIONS = np.array([1e-10, 30.0])


@functools.cache
def arm(name: str) -> tuple[ls.Robot, str]:
    robot = oracles.twin(FILES[name]).robot if name in FILES else robots_for_tests.robot(name)
    return robot, ARMS[name] or robot.frame_names[-1]


def cases(name: str, count: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """A chain, targets that can be reached, and random starts."""
    robot, frame = arm(name)
    rng = np.random.default_rng(seed)
    q, starts = (np.stack([robot.random(rng) for _ in range(count)]) for _ in range(2))
    return chain_of(robot, frame), robot.pose(q, frame), starts


@pytest.mark.parametrize("position_only", [False, True])
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("name", ARMS)
def test_machine_code_does_what_python_does(name: str, limited: bool, position_only: bool):
    chain, targets, starts = cases(name, 60)
    problem = Problem(chain._bounds() if limited else (), chain.scale, position_only)
    q, report = chain.descent(position_only, limited)(targets, OPTIONS, starts)
    other, theirs = descend_in_python(chain, problem, targets, OPTIONS, starts)
    ours, theirs = Report(*report.T), Report(*theirs.T)
    # descents that wander may part by rounding: most do not, and what has arrived has arrived
    alike = (ours.status == theirs.status) & (ours.iterations == theirs.iterations)
    assert alike.mean() > 0.9
    arrived = alike & (ours.status == SOLVED)
    assert arrived.sum() > 20
    assert np.median(np.abs(q - other)[arrived].max(axis=1)) < 1e-8
    assert (ours.distance[arrived] <= 1e-10).all() and (ours.turn[arrived] <= 1e-10).all()


@pytest.mark.parametrize("name", ["ur5", "panda"])
def test_a_sample_does_not_depend_on_its_batch(name: str):
    """Lanes are refilled in an order that depends on who arrives first; results do not, to the bit."""
    chain, targets, starts = cases(name, 49)
    function = chain.descent(False, True)
    singles = [function(targets[k], OPTIONS, starts[k]) for k in range(49)]
    for length in range(1, 26):
        q, report = function(targets[:length], OPTIONS, starts[:length])
        for k in range(length):
            np.testing.assert_array_equal(q[k], singles[k][0])
            np.testing.assert_array_equal(report[k], singles[k][1])
    shuffled = np.random.default_rng(1).permutation(49)
    q, _ = function(targets[shuffled], OPTIONS, starts[shuffled])
    np.testing.assert_array_equal(q, np.stack([singles[k][0] for k in shuffled]))


@pytest.mark.quick
def test_bad_numbers_end_their_own_lane():
    chain, targets, starts = cases("ur5", 20)
    function = chain.descent(False, True)
    good, _ = function(targets, OPTIONS, starts)
    bad = starts.copy()
    bad[3, 2], bad[11, 0] = np.nan, np.inf
    q, report = function(targets, OPTIONS, bad)
    assert np.isnan(report[[3, 11], 0]).all()
    others = [k for k in range(20) if k not in (3, 11)]
    np.testing.assert_array_equal(q[others], good[others])


@pytest.mark.quick
def test_iterations_run_out():
    chain, targets, starts = cases("ur5", 20)
    for most in (0, 1, 3):
        report = Report(*chain.descent(False, True)(targets, np.array([1e-10, most]), starts)[1].T)
        assert (report.iterations <= most).all() and (report.status == RAN_OUT).any()


@pytest.mark.parametrize("name", ["ur5", "panda", "puma560"])
def test_one_target_at_once_is_what_the_long_way_finds(name: str):
    """A list takes the way with all the checks; an array near its start does not."""
    robot, frame = arm(name)
    chain, targets, _ = cases(name, 40, seed=5)
    rng = np.random.default_rng(5)
    q = np.stack([robot.random(rng) for _ in range(40)])
    starts = chain.within(q + rng.uniform(-0.1, 0.1, q.shape))
    robot.inverse_kinematics(targets[0], frame, starts[0])
    for target, start in zip(robot.pose(q, frame), starts, strict=True):
        short = robot.inverse_kinematics(target, frame, start)
        long = robot.inverse_kinematics(target.tolist(), frame, start)
        np.testing.assert_array_equal(short.q, long.q)
        assert short.solved and short.reason == long.reason == "converged" and short.restarts == long.restarts == 0
        assert short.iterations == long.iterations
        np.testing.assert_allclose(short.position_error, long.position_error, atol=1e-15)
        np.testing.assert_allclose(short.rotation_error, long.rotation_error, atol=1e-15)
        assert [type(x) for x in vars(short).values()] == [type(x) for x in vars(long).values()]


def test_what_is_not_plain_takes_the_long_way():
    robot, frame = arm("ur5")
    q = np.array([0.3, -1.2, 1.4, -1.8, -1.5, 0.2])
    target = robot.pose(q, frame)
    assert robot.inverse_kinematics(target, frame, q + 0.05).solved
    rounded = target.copy()
    rounded[:3, :3] = np.round(rounded[:3, :3], 8)  # becomes a rotation first
    found = robot.inverse_kinematics(rounded, frame, q + 0.05)
    assert found.solved and abs(robot.pose(found.q, frame) - rounded).max() < 1e-7
    for wrong, says in ((target * np.array([1, 1, 1, 2.0]), "last row"), (target * np.nan, "NaN")):
        with pytest.raises(ArgumentError, match=says):
            robot.inverse_kinematics(wrong, frame, q)
    bent = target.copy()
    bent[:3, 0] *= 1.1
    with pytest.raises(ArgumentError, match="not a rotation"):
        robot.inverse_kinematics(bent, frame, q)
    for name, value in (("tolerance", -1.0), ("iterations", 0), ("seed", 0.5), ("restarts", 999)):
        with pytest.raises(ArgumentError, match=f"{name} is"):
            robot.inverse_kinematics(target, frame, q, **{name: value})
    with pytest.raises(ArgumentError, match="limits is 1"):
        robot.inverse_kinematics(target, frame, q, limits=1)
    outside = robot.inverse_kinematics(target, frame, q + np.array([20.0, 0, 0, 0, 0, 0]))
    assert outside.solved and (np.abs(outside.q) <= 2 * np.pi + 1e-12).all()
    loose = robot.inverse_kinematics(target, frame, q + 0.3, tolerance=0.4)
    assert loose.solved and loose.rotation_error <= 0.4


def test_an_iteration_is_a_program_of_known_size():
    """One iteration of the UR5: pose, Jacobian, error, orthogonalisation, limits. Pinned, so that growth is seen."""
    robot, frame = arm("ur5")
    found = count(chain_of(robot, frame).descent(False, True).program)
    assert found.trig == 6 and found.total < 1000


def test_limits_on_a_free_base():
    """Coordinates and rates have different places behind a quaternion: the limits of a joint act on its own rate."""
    robot, frame = arm("ur5")
    floating = robot.with_base("floating")
    chain = chain_of(floating, frame)
    assert chain.compiled and all(bound.velocity == bound.index - 1 for bound in chain._bounds())
    rng = np.random.default_rng(2)
    q = np.stack([floating.random(rng) for _ in range(30)])
    q[:, 7:] = np.clip(q[:, 7:], -0.1, 0.1)
    narrow = floating.with_limits(lower={n: -0.1 for n in robot.joint_names}, upper={n: 0.1 for n in robot.joint_names})
    found = narrow.inverse_kinematics(floating.pose(q, frame), frame, narrow.normalize(q + 0.05))
    assert found.solved.all()
    assert (np.abs(found.q[:, 7:]) <= 0.1).all()
    np.testing.assert_allclose(np.linalg.norm(found.q[:, :4], axis=1), 1.0, atol=1e-14)
    np.testing.assert_allclose(floating.pose(found.q, frame), floating.pose(q, frame), atol=1e-9)


def between_guards() -> None:
    chain, targets, starts = cases("planar3", 20)
    function = chain.descent(False, True)
    wanted = function(targets, OPTIONS, starts)
    memory = [Guarded(2 * x.nbytes) for x in (targets, starts, *wanted)]
    for length in range(1, 20):
        for at_end in (True, False):
            placed = [
                place.place((length, *x.shape[1:]), float, x[0].size, at_end)
                for place, x in zip(memory, (targets, starts, *wanted), strict=True)
            ]
            placed[0][:], placed[1][:] = targets[:length], starts[:length]
            function(placed[0], OPTIONS, placed[1], out=(placed[2], placed[3]))
            for found, expected in zip(placed[2:], wanted, strict=True):
                np.testing.assert_array_equal(found, expected[:length])
            assert all(place.untouched() for place in memory)


def test_nothing_beside_the_arrays_is_touched():
    in_process(between_guards)
