"""Inverse kinematics and paths of robots with constraints; paths across singular configurations."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import linkages
import numpy as np
import pytest

import linksweep as ls
from linksweep import ArgumentError
from linksweep.motion import Arc, Line, Path

CLOSED = 1e-9  # m and rad


@functools.cache
def four_bar() -> tuple[ls.Robot, np.ndarray]:
    robot = ls.robots.four_bars(1)
    return robot, robot.project(np.array([1.2, 1.2, -1.2]))


def hinged(robot: ls.Robot) -> ls.Robot:
    """The same loops by hinges, whose rows across the plane are redundant."""
    ties = [ls.Constraint("hinge", tie.a, tie.b) for tie in robot.constraints]
    return robot.without_constraints().with_constraints(ties)


@functools.cache
def two_arms() -> tuple[ls.Robot, np.ndarray]:
    """Two PUMAs that hold one box rigidly: a free joint, 18 rates, 12 rows."""
    left, right = np.eye(4), np.eye(4)
    left[1, 3], right[1, 3] = 0.3, -0.3
    puma = ls.robots.puma560()
    both = ls.scene({"left": (puma, left), "right": (puma, right), "box": ls.body(2.0, inertia=(0.1, 0.1, 0.1))})
    q = both.neutral()
    q[:12] = [0.3, -0.7, 0.4, 0.2, 0.5, 0.1, -0.3, -0.7, 0.4, -0.2, 0.5, -0.1]
    box = 0.5 * (both.pose(q, "left/tool")[:3, 3] + both.pose(q, "right/tool")[:3, 3])
    q[-3:] = box
    on = np.linalg.inv(both.pose(q, "box"))
    tools = ("left/tool", "right/tool")
    ties = [ls.Constraint("rigid", tool, "box", at=on @ both.pose(q, tool)) for tool in tools]
    return both.with_constraints(ties), q


@functools.cache
def five_bar(hinges: bool = False) -> tuple[ls.Robot, np.ndarray]:
    robot = linkages.five_bar()
    return hinged(robot) if hinges else robot, robot.project(linkages.FIVE_BAR)


# robot and pose, frame, position only
CASES: dict[str, tuple[Callable[[], tuple[ls.Robot, np.ndarray]], str, bool]] = {
    "five-bar": (five_bar, "left_tip", True),
    "five-bar, hinged": (lambda: five_bar(True), "left_tip", True),
    "delta": (lambda: (linkages.delta(), linkages.delta_pose()), "platform", False),
    "delta with rods": (lambda: (linkages.delta(True), linkages.delta_pose(True)), "platform", True),
    "four-bar": (four_bar, "end1", True),
    "four-bar, hinged": (lambda: (hinged(four_bar()[0]), four_bar()[1]), "end1", False),
    "gripper": (lambda: (linkages.gripper(), linkages.gripper_pose()), "left_tip", False),
    "two arms": (two_arms, "box", False),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[ls.Robot, np.ndarray, str, bool]:
    make, frame, position_only = CASES[request.param]
    return *make(), frame, position_only


def nearby(robot: ls.Robot, q: np.ndarray, count: int, size: float) -> np.ndarray:
    """Poses that meet the constraints, near q."""
    rng = np.random.default_rng(3)
    return np.stack([robot.project(robot.integrate(q, size * rng.normal(size=robot.nv))) for _ in range(count)])


def gap(robot: ls.Robot, q: np.ndarray) -> float:
    return float(np.abs(robot.constraint_error(q)).max())


def test_solutions_close_the_loops(case: tuple[ls.Robot, np.ndarray, str, bool]):
    robot, q, frame, position_only = case
    targets = robot.pose(nearby(robot, q, 20, 0.1), frame)
    found = robot.inverse_kinematics(targets, frame, q, position_only=position_only)
    assert found.solved.all()
    assert gap(robot, found.q) <= CLOSED and found.constraint_error.max() <= CLOSED
    reached = robot.pose(found.q, frame)
    assert np.abs(reached[:, :3, 3] - targets[:, :3, 3]).max() <= 1e-9
    if not position_only:
        assert np.abs(reached - targets).max() <= 1e-9
    one = robot.inverse_kinematics(targets[0], frame, q, position_only=position_only)
    assert one.solved and gap(robot, one.q) <= CLOSED
    assert abs(one.constraint_error - gap(robot, one.q)) <= 1e-14


def test_without_a_start_too(case: tuple[ls.Robot, np.ndarray, str, bool]):
    robot, q, frame, position_only = case
    targets = robot.pose(nearby(robot, q, 10, 0.3), frame)
    found = robot.inverse_kinematics(targets, frame, position_only=position_only)
    assert found.solved.mean() >= 0.9 and gap(robot, found.q) <= CLOSED


def test_what_is_not_reached_closes_its_loops_all_the_same(case: tuple[ls.Robot, np.ndarray, str, bool]):
    robot, q, frame, position_only = case
    far = robot.pose(q, frame)
    far[:3, 3] += 10.0
    found = robot.inverse_kinematics(far, frame, q, position_only=position_only, restarts=6)
    assert not found.solved and found.reason == "out of reach"
    assert gap(robot, found.q) <= CLOSED and found.position_error > 1.0


def test_loops_that_cannot_be_closed_are_the_reason():
    robot = ls.robots.planar(2)
    apart = robot.with_constraints([ls.Constraint("distance", "tool", length=5.0)])  # it reaches 2 m
    found = apart.inverse_kinematics(robot.pose(np.array([0.3, 0.8]), "tool"), "tool", np.array([0.2, 0.7]))
    assert not found.solved and found.reason == "constraints" and found.constraint_error > 1.0


def test_joints_of_no_loop_stay_where_they_were_put():
    """The right pad of the gripper has a loop, and closes it; the box that lies about has none."""
    robot = ls.scene({"gripper": linkages.gripper(), "box": ls.body(1.0, inertia=(0.1, 0.1, 0.1))})
    q = robot.neutral()
    q[: linkages.gripper().nq] = linkages.gripper_pose()
    q[-3:] = 0.7, 0.8, 0.9
    found = robot.inverse_kinematics(robot.pose(q, "gripper/left_tip"), "gripper/left_tip", q)
    assert found.solved and gap(robot, found.q) <= CLOSED
    np.testing.assert_array_equal(found.q[-7:], q[-7:])


def test_limits_of_passive_joints_count():
    free, q = linkages.five_bar(), linkages.five_bar().project(linkages.FIVE_BAR)
    target = free.pose(q, "left_tip")[:3, 3]
    bound = free.with_limits(upper={"right2": q[3] - 0.3})
    found = bound.inverse_kinematics(target, "left_tip", q, position_only=True)
    assert found.q[3] <= q[3] - 0.3 + 1e-12 and gap(bound, found.q) <= CLOSED
    assert not found.solved or np.abs(bound.pose(found.q, "left_tip")[:3, 3] - target).max() <= 1e-9


def test_branches_in_closed_form_are_refused():
    arm = ls.robots.puma560()
    tied = arm.with_constraints([ls.Constraint("plane", "tool")])
    with pytest.raises(ArgumentError, match="constraints"):
        tied.inverse_kinematics_branches(np.eye(4), "tool")


def path_of(robot: ls.Robot, q: np.ndarray, frame: str) -> Path:
    start = robot.pose(q, frame)
    if robot.name == "1-four-bar":
        return Arc.around(start, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], -0.5, 1.0)
    end = start.copy()
    end[:3, 3] += [0.03, 0.02, -0.01 if robot.name.startswith("delta") or robot.nv == 18 else 0.0]
    return Line(start, end, 1.0)


def test_a_path_keeps_the_loops_closed(case: tuple[ls.Robot, np.ndarray, str, bool]):
    robot, q, frame, position_only = case
    position_only = position_only or robot.name == "1-four-bar"
    path, t = path_of(robot, q, frame), np.linspace(0.0, 1.0, 101)
    followed = robot.follow(path, frame, t, q, position_only=position_only)
    assert followed.reason == "converged" and followed.solved.all()
    assert gap(robot, followed.q) <= CLOSED
    K, k = robot.constraint_jacobian(followed.q), robot.constraint_bias(followed.q, followed.qd)
    assert np.abs(np.einsum("tij,tj->ti", K, followed.qd)).max() <= 1e-12
    assert np.abs(np.einsum("tij,tj->ti", K, followed.qdd) + k).max() <= 1e-10
    wanted, rows = path(t), slice(3 if position_only else 0, 6)
    twist = robot.frame_velocity(followed.q, followed.qd, frame)
    acceleration = robot.frame_acceleration(followed.q, followed.qd, followed.qdd, frame)
    np.testing.assert_allclose(twist[:, rows], wanted.twist[:, rows], atol=1e-9)
    np.testing.assert_allclose(acceleration[:, rows], wanted.acceleration[:, rows], atol=1e-8)
    rates = robot.difference(followed.q[:-2], followed.q[2:]) / (t[2] - t[0])
    assert np.abs(rates - followed.qd[1:-1]).max() <= 2e-3 * np.abs(followed.qd).max()
    change = (followed.qd[2:] - followed.qd[:-2]) / (t[2] - t[0])
    assert np.abs(change - followed.qdd[1:-1]).max() <= 5e-3 * np.abs(followed.qdd).max()


def test_a_path_that_the_loops_do_not_allow():
    robot, q = four_bar()
    start = robot.pose(q, "end1")
    end = start.copy()
    end[:3, 3] += [0.0, 0.3, 0.0]  # off its circle
    followed = robot.follow(Line(start, end, 1.0), "end1", np.linspace(0.0, 1.0, 21), q, position_only=True)
    assert followed.reason in ("out of reach", "singular") and not followed.solved[1:].any()


# ---- singular configurations on a path


STRAIGHT = np.array([0.2, -0.8, 0.4, 0.7, 0.0, 0.3])  # a PUMA whose wrist is straight


def through_a_straight_wrist(beside: float = 0.0) -> tuple[ls.Robot, Path, np.ndarray]:
    """A line through a pose at which the wrist is straight, or beside it (m), in 1.5 s."""
    robot = ls.robots.puma560().with_limits(velocity=np.inf)
    middle, way = robot.pose(STRAIGHT, "tool"), np.array([0.1, -0.15, 0.08])
    start, end = middle.copy(), middle.copy()
    across = np.cross(way, [0.0, 0.0, 1.0])
    start[:3, 3] += beside * across / np.linalg.norm(across) - way
    end[:3, 3] += beside * across / np.linalg.norm(across) + way
    q0 = robot.inverse_kinematics(start, "tool", STRAIGHT + 0.1 * np.eye(6)[4]).q
    return robot, Line(start, end, 1.5), q0


@pytest.mark.parametrize("samples", [50, 51])
def test_a_straight_wrist_is_crossed(samples: int):
    """The verdict does not depend on whether a sample is at the singular pose, and the motion is smooth there."""
    robot, path, q0 = through_a_straight_wrist()
    t = np.linspace(0.0, 1.5, samples)
    followed = robot.follow(path, "tool", t, q0)
    assert followed.reason == "converged" and followed.solved.all()
    assert followed.q[0, 4] > 0.1 and followed.q[-1, 4] < -0.1
    assert followed.peak.max() < 4.0 and np.abs(followed.qdd).max() < 20.0
    assert np.abs(robot.pose(followed.q, "tool") - path(t).pose).max() <= 1e-9
    # At the singular configuration a position to 1e-9 fixes the wrist to its root, and each derivative costs digits.
    np.testing.assert_allclose(robot.frame_velocity(followed.q, followed.qd, "tool"), path(t).twist, atol=1e-7)
    acceleration = robot.frame_acceleration(followed.q, followed.qd, followed.qdd, "tool")
    np.testing.assert_allclose(acceleration, path(t).acceleration, atol=1e-5)
    dense = robot.follow(path, "tool", np.linspace(0.0, 1.5, 4 * (samples - 1) + 1), q0)
    np.testing.assert_allclose(followed.q, dense.q[::4], atol=1e-6)
    np.testing.assert_allclose(followed.qd, dense.qd[::4], atol=1e-5)


@pytest.mark.parametrize("samples", [20, 21])
@pytest.mark.parametrize("backwards", [False, True])
def test_paths_that_begin_or_end_at_a_straight_wrist(backwards: bool, samples: int):
    robot, q = ls.robots.puma560(), STRAIGHT + 0.3 * np.eye(6)[4]
    start, end = robot.pose(q, "tool"), robot.pose(STRAIGHT, "tool")
    if backwards:
        start, end, q = end, start, STRAIGHT
    t = np.linspace(0.0, 1.0, samples)
    path = Line(start, end, 1.0)
    followed = robot.follow(path, "tool", t, q)
    assert followed.reason == "converged"
    assert np.abs(robot.pose(followed.q, "tool") - path(t).pose).max() <= 1e-9
    assert np.abs(np.diff(followed.q, axis=0)).max() < 0.2 and followed.peak.max() < 3.0


@pytest.mark.slow
@pytest.mark.parametrize("beside", [0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2])
def test_verdicts_do_not_depend_on_the_samples(beside: float):
    robot, path, q0 = through_a_straight_wrist(beside)
    found = [robot.follow(path, "tool", np.linspace(0.0, 1.5, n), q0) for n in (50, 51, 300, 301, 1500, 1501)]
    assert len({followed.reason for followed in found}) == 1
    if found[0].reason == "converged":
        peaks = np.array([followed.peak.max() for followed in found])
        # A peak is the largest velocity at the points that `follow` visits: other samples visit other points.
        np.testing.assert_allclose(peaks, peaks[0], rtol=0.05)
        assert all(np.abs(followed.q[-1] - found[0].q[-1]).max() < 1e-6 for followed in found)


def test_velocities_beside_a_singular_configuration_are_seen():
    """A millimetre beside it the wrist turns with some 690 rad/s, which 50 samples do not show."""
    robot, path, q0 = through_a_straight_wrist(1e-3)
    t = np.linspace(0.0, 1.5, 50)
    free = robot.follow(path, "tool", t, q0)
    assert free.reason == "converged" and np.abs(free.qd).max() < 20.0 and 600.0 < free.peak.max() < 800.0
    bound = robot.with_limits(velocity=10.0)
    followed = bound.follow(path, "tool", t, q0)
    assert followed.reason == "velocity limits" and 10 < followed.solved.sum() < 40
    assert all(np.isnan(part[~followed.solved]).all() for part in followed.motion)
    np.testing.assert_allclose(followed.peak, free.peak, rtol=1e-6)
    assert bound.follow(path, "tool", t, q0, limits=False).reason == "converged"


def test_velocity_limits_end_a_path_that_is_too_fast():
    robot = ls.robots.puma560().with_limits(velocity=1.0)
    q0 = np.array([0.2, -0.8, 0.4, 0.5, 0.9, -0.3])
    start = robot.pose(q0, "tool")
    end = start.copy()
    end[:3, 3] += [0.1, -0.1, 0.05]
    slow, fast = (robot.follow(Line(start, end, T), "tool", np.linspace(0.0, T, 51), q0) for T in (2.0, 0.2))
    assert slow.reason == "converged" and (np.abs(slow.qd) <= 1.0).all()
    assert fast.reason == "velocity limits" and not fast.solved.all() and (np.abs(fast.qd[fast.solved]) <= 1.0).all()
    # Ten times as fast, but `follow` visits other points between the samples, where the largest velocity is taken.
    np.testing.assert_allclose(fast.peak, 10.0 * slow.peak, rtol=1e-3)


@pytest.mark.parametrize("samples", [40, 41])
def test_a_parallelogram_goes_through_its_flat_pose(samples: int):
    """Two branches meet there, and the motion goes on along its own without a corner."""
    robot, q = four_bar()
    path = Arc.around(robot.pose(q, "end1"), [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], -2.4, 1.0)
    followed = robot.follow(path, "end1", np.linspace(0.0, 1.0, samples), q, position_only=True)
    assert followed.reason == "converged" and gap(robot, followed.q) <= CLOSED
    np.testing.assert_allclose(followed.q[-1], [-1.2, -1.2, 1.2], atol=1e-8)
    np.testing.assert_allclose(followed.qd[:, [0, 0]] * [1.0, -1.0], followed.qd[:, [1, 2]], atol=1e-7)


def test_accelerations_of_a_redundant_arm_in_a_plane():
    """Three of the six rows are 0 there: the joints have a freedom more than the path needs, not fewer rows."""
    robot: Any = ls.robots.planar(4)
    q0 = np.array([0.3, 0.5, -0.9, 0.6])
    start = robot.pose(q0, "tool")
    end = start.copy()
    end[:3, 3] -= [0.4, 0.3, 0.0]
    t = np.linspace(0.0, 1.0, 101)
    followed = robot.follow(Line(start, end, 1.0), "tool", t, q0)
    assert followed.reason == "converged"
    change = (followed.qd[2:] - followed.qd[:-2]) / (t[2] - t[0])
    assert np.abs(change - followed.qdd[1:-1]).max() <= 5e-3 * np.abs(followed.qdd).max()
