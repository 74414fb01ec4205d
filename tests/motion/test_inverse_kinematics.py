"""Inverse kinematics: solutions by Pinocchio's forward kinematics, reasons for failures, paths by J and dJ."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import oracles
import pin_models
import pinocchio as pin
import pytest
import robots_for_tests
from scipy.spatial.transform import Rotation

import linksweep as ls
from linksweep import ArgumentError
from linksweep.model.model import Limits
from linksweep.motion import Arc, Line, NormalSpline, Path, Quintic

UR5, PANDA = "ur_description/urdf/ur5_robot.urdf", "panda_description/urdf/panda.urdf"
ARMS = {"ur5": "tool0", "panda": "panda_hand_tcp", "puma560": "tool"}
REASONS = {"converged", "out of reach", "orientation", "limits", "did not converge"}


@functools.cache
def arm(name: str) -> ls.Robot:
    files = {"ur5": UR5, "panda": PANDA}
    return oracles.twin(files[name]).robot if name in files else robots_for_tests.robot(name)


def limits_of(robot: ls.Robot) -> tuple[np.ndarray, np.ndarray]:
    joints = [robot.model.links[i].joint for i in robot.model.document_order]
    return np.array([joint.limits.lower for joint in joints]), np.array([joint.limits.upper for joint in joints])


def postures(robot: ls.Robot, count: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([robot.random(rng) for _ in range(count)])


def off(reached: np.ndarray, wanted: np.ndarray) -> tuple[float, float]:
    """The largest distance and angle between poses (N, 4, 4)."""
    turn = Rotation.from_matrix(wanted[:, :3, :3] @ np.swapaxes(reached[:, :3, :3], 1, 2)).magnitude()
    return float(np.linalg.norm(reached[:, :3, 3] - wanted[:, :3, 3], axis=1).max()), float(turn.max())


def pin_poses(name: str, q: np.ndarray) -> np.ndarray:
    """Pinocchio's forward kinematics of the arm's tool."""
    if name != "puma560":
        twin = oracles.twin({"ur5": UR5, "panda": PANDA}[name])
        return np.stack([twin.pose(sample, ARMS[name]) for sample in q])
    robot, model = arm(name), pin_models.pin_model(arm(name))
    data, flange = model.createData(), next(f for f in robot.frames if f.name == ARMS[name]).placement
    tool = pin.SE3(np.array(flange.rotation), np.array(flange.position))
    out = []
    for sample in q:
        pin.forwardKinematics(model, data, sample)
        out.append((data.oMi[robot.nv] * tool).homogeneous)
    return np.stack(out)


@pytest.mark.parametrize("name", ARMS)
def test_reachable_poses_are_reached(name: str):
    """The bar of issue 6 is 99.5 % of 1000 poses; every one of these is solved."""
    robot, frame = arm(name), ARMS[name]
    wanted = pin_poses(name, postures(robot, 300, seed=11))
    found = robot.inverse_kinematics(wanted, frame)
    assert found.solved.all() and set(found.reason) == {"converged"}
    assert found.iterations.min() > 1  # none of them was known before
    distance, angle = off(pin_poses(name, found.q), wanted)
    assert distance <= 1e-9 and angle <= 1e-9
    assert found.position_error.max() <= 1e-10 and found.rotation_error.max() <= 1e-10
    lower, upper = limits_of(robot)
    assert ((found.q >= lower) & (found.q <= upper)).all()


@pytest.mark.parametrize("name", ARMS)
def test_from_a_start_nearby_the_solution_is_the_one_nearby(name: str):
    robot, frame = arm(name), ARMS[name]
    q = postures(robot, 200, seed=3)
    wanted = robot.pose(q, frame)
    found = robot.inverse_kinematics(wanted, frame, q + 1e-4, restarts=0, limits=False)
    assert found.solved.all() and not found.restarts.any()
    # singular poses among them: there a small error of the pose is a larger one of the joints
    assert np.median(np.abs(found.q - q).max(axis=1)) < 3e-4
    if name != "panda":
        jacobians = robot.jacobian(q, frame)
        regular = np.linalg.svd(jacobians, compute_uv=False)[:, -1] > 0.05
        assert regular.sum() > 50
        np.testing.assert_allclose(found.q[regular], q[regular], atol=1e-8)


@pytest.mark.quick
def test_any_batch_shape_and_one_target():
    robot = arm("ur5")
    wanted = robot.pose(postures(robot, 6, seed=0), "tool0").reshape(2, 3, 4, 4)
    found = ls.inverse_kinematics(robot, wanted, "tool0")
    assert found.q.shape == (2, 3, 6) and found.solved.shape == found.reason.shape == (2, 3)
    one = ls.inverse_kinematics(robot, wanted[1, 2], "tool0")
    assert one.q.shape == (6,) and one.solved and one.reason == "converged" and one.iterations > 0
    np.testing.assert_array_equal(one.q, found.q[1, 2])  # what else is asked for makes no difference
    none = ls.inverse_kinematics(robot, np.empty((0, 4, 4)), "tool0")
    assert none.q.shape == (0, 6) and none.solved.shape == (0,)


def test_more_targets_than_one_block():
    robot = robots_for_tests.robot("planar3")
    frame = robot.frame_names[-1]
    wanted = robot.pose(postures(robot, 4100, seed=0), frame)
    found = robot.inverse_kinematics(wanted, frame)
    assert found.solved.all()
    np.testing.assert_allclose(robot.pose(found.q, frame), wanted, atol=1e-9)


def test_the_same_call_gives_the_same_answer_and_the_seed_decides():
    robot = arm("panda")
    wanted = robot.pose(postures(robot, 20, seed=8), "panda_hand_tcp")
    first, again, other = (robot.inverse_kinematics(wanted, "panda_hand_tcp", seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.q, again.q)
    assert other.solved.all() and not np.array_equal(first.q, other.q)


# ---- every kind of joint ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kinds",
    [
        ("revolute", "prismatic", "revolute", "prismatic", "revolute", "revolute", "revolute"),
        ("free",),
        ("spherical", "prismatic", "spherical"),
        ("planar", "revolute", "prismatic", "spherical"),
        ("helical", "revolute", "revolute", "revolute", "revolute", "revolute", "revolute", "revolute"),
    ],
    ids=lambda kinds: "-".join(kind[0] for kind in kinds),
)
def test_every_kind_of_joint(kinds: tuple[str, ...]):
    robot = pin_models.random_robot(kinds, seed=len(kinds))
    frame = f"flange{len(kinds) - 1}"
    wanted = robot.pose(postures(robot, 50, seed=1), frame)
    found = robot.inverse_kinematics(wanted, frame)
    assert found.solved.all(), set(found.reason)
    distance, angle = off(robot.pose(found.q, frame), wanted)
    assert distance <= 1e-9 and angle <= 1e-9
    np.testing.assert_allclose(robot.normalize(found.q), found.q, atol=1e-14)


def test_joints_elsewhere_stay_where_they_were_put():
    robot = arm("panda")
    q0 = robot.random(np.random.default_rng(0))
    q0[-2:] = 0.01, 0.03
    wanted = robot.pose(postures(robot, 10, seed=2), "panda_hand_tcp")
    np.testing.assert_array_equal(robot.inverse_kinematics(wanted, "panda_hand_tcp", q0).q[:, -2:], [[0.01, 0.03]] * 10)
    np.testing.assert_array_equal(robot.inverse_kinematics(wanted, "panda_hand_tcp").q[:, -2:], 0.0)


@pytest.mark.quick
def test_unlimited_joints_come_without_whole_turns():
    robot = arm("puma560").with_limits(-np.inf, np.inf)
    q = postures(robot, 50, seed=4)
    wanted = robot.pose(q, "tool")
    assert (np.abs(robot.inverse_kinematics(wanted, "tool").q) <= np.pi).all()
    wound = q + 2.0 * np.pi * np.array([1, -2, 0, 3, 0, 1])
    near = robot.inverse_kinematics(wanted, "tool", wound)
    np.testing.assert_allclose(near.q, wound, atol=1e-12)


@pytest.mark.parametrize("turns", [1e6, 1e300])
def test_a_start_too_many_turns_away_for_the_tolerance(turns: float):
    robot = arm("puma560")
    target = robot.pose(np.full(6, 0.3), "tool")
    found = robot.inverse_kinematics(target, "tool", np.full(6, turns))
    assert found.solved and found.reason == "converged"
    assert max(off(robot.pose(found.q, "tool")[None], target[None])) < 1e-9


def test_a_solution_on_the_limits_is_a_solution():
    """From the benchmark of random corners: the search within limits comes near and creeps, the free one arrives."""
    robot = oracles.twin("z1_description/urdf/z1.urdf").robot
    lower, upper = limits_of(robot)
    rng = np.random.default_rng(5)
    q = np.where(rng.random((200, robot.nq)) < 0.5, lower, upper)
    found = robot.inverse_kinematics(robot.pose(q, "gripperStator"), "gripperStator")
    assert found.solved.mean() > 0.9  # 0.88 without the free search
    assert ((lower <= found.q) & (found.q <= upper)).all()
    reached = robot.pose(found.q[found.solved], "gripperStator")
    assert max(off(reached, robot.pose(q[found.solved], "gripperStator"))) < 1e-9


def test_singular_poses():
    """A stretched arm and a wrist with two axes in line: the Jacobian has no inverse, the poses have solutions."""
    robot = arm("puma560").with_limits(-np.inf, np.inf)
    q = postures(robot, 40, seed=6)
    q[:, 4] = 0.0  # axes 4 and 6 in line
    q[20:, 2] = np.arctan2(-0.0203, 0.4318) - np.pi / 2  # and the elbow near its end
    wanted = robot.pose(q, "tool")
    found = robot.inverse_kinematics(wanted, "tool")
    assert found.solved.all()
    np.testing.assert_allclose(robot.pose(found.q, "tool"), wanted, atol=1e-9)
    start = robot.inverse_kinematics(wanted[:5], "tool", np.zeros(6))  # a singular start does no harm
    assert start.solved.all()
    nearly = robot.pose([1.04193979, 1.91542735, -1.52528528, -1.20807382, -0.18927645, 0.02573669], "tool")
    assert robot.inverse_kinematics(nearly, "tool").solved  # its smallest singular value is 1e-7 of the largest


def test_half_a_turn_away():
    """The target is the start, turned by pi about one of its own axes: no direction of turning is the shorter."""
    robot, q0 = arm("ur5"), np.array([0.3, -1.2, 1.4, -1.8, -1.5, 0.2])
    for axis in np.eye(3):
        wanted = robot.pose(q0, "tool0")
        wanted[:3, :3] = wanted[:3, :3] @ pin.exp3(np.pi * axis)
        found = robot.inverse_kinematics(wanted, "tool0", q0)
        assert found.solved
        np.testing.assert_allclose(robot.pose(found.q, "tool0"), wanted, atol=1e-9)


def test_position_only():
    robot = robots_for_tests.robot("stanford")
    frame = robot.frame_names[-1]
    points = robot.pose(postures(robot, 100, seed=5), frame)[:, :3, 3]
    found = robot.inverse_kinematics(points, frame, position_only=True)
    assert found.solved.all() and not found.rotation_error.any()
    np.testing.assert_allclose(robot.pose(found.q, frame)[:, :3, 3], points, atol=1e-10)
    poses = np.broadcast_to(np.eye(4), (100, 4, 4)).copy()
    poses[:, :3, 3] = points
    np.testing.assert_array_equal(robot.inverse_kinematics(poses, frame, position_only=True).q, found.q)


# ---- failure is a result ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ARMS)
def test_out_of_reach(name: str):
    robot, frame = arm(name), ARMS[name]
    wanted = robot.pose(postures(robot, 6, seed=1), frame)
    wanted[:3, :3, 3] *= 20.0  # farther than all links in a row
    wanted[3, :3, 3] = (0.0, 0.0, 1.45)
    found = robot.inverse_kinematics(wanted, frame)
    np.testing.assert_array_equal(found.solved, [False, False, False, False, True, True])
    assert list(found.reason) == ["out of reach"] * 4 + ["converged"] * 2
    reached = robot.pose(found.q, frame)
    distances = np.linalg.norm(reached[:, :3, 3] - wanted[:, :3, 3], axis=1)
    np.testing.assert_allclose(found.position_error, distances, rtol=1e-9, atol=1e-12)
    assert (found.position_error[:4] > 0.01).all() and np.isfinite(found.q).all()


def with_limits(robot: ls.Robot, lower: np.ndarray, upper: np.ndarray) -> ls.Robot:
    links = [
        replace(link, joint=replace(link.joint, limits=Limits(float(low), float(high))))
        for link, low, high in zip(robot.model.links, lower, upper, strict=True)
    ]
    return ls.Robot(replace(robot.model, links=tuple(links)))


def test_limits_are_the_reason():
    """Six joints leave no choice but another branch: with little room about one, the others are outside."""
    q = postures(arm("ur5"), 30, seed=9)
    narrow = with_limits(arm("ur5"), q[0] - 0.05, q[0] + 0.05)
    wanted = arm("ur5").pose(np.concatenate([q, q[:1] + 0.03]), "tool0")
    found = narrow.inverse_kinematics(wanted, "tool0")
    assert list(found.reason) == ["converged", *["limits"] * 29, "converged"]
    np.testing.assert_array_equal(found.solved, found.reason == "converged")
    assert (np.abs(found.q - q[0]) <= 0.05 + 1e-15).all()  # also where it failed
    free = narrow.inverse_kinematics(wanted, "tool0", limits=False)
    assert free.solved.all() and set(free.reason) == {"converged"}


def test_orientation_is_the_reason():
    robot = robots_for_tests.robot("planar3")
    frame = robot.frame_names[-1]
    wanted = robot.pose(postures(robot, 5, seed=0), frame)
    tilted = wanted.copy()
    tilted[:, :3, :3] = wanted[:, :3, :3] @ pin.exp3(np.array([0.4, 0.3, 0.0]))
    found = robot.inverse_kinematics(np.stack([wanted, tilted]), frame)
    assert set(found.reason[0]) == {"converged"} and set(found.reason[1]) == {"orientation"}
    assert not found.solved[1].any() and (found.rotation_error[1] > 0.1).all()


def test_too_few_iterations_are_the_reason():
    robot = arm("ur5")
    q = postures(robot, 20, seed=0)
    found = robot.inverse_kinematics(robot.pose(q, "tool0"), "tool0", q + 0.5, restarts=0, iterations=2)
    assert "did not converge" in found.reason and set(found.reason) <= REASONS
    assert not found.solved[found.reason != "converged"].any()


def test_a_frame_on_the_base_does_not_move():
    robot = arm("ur5")
    here = robot.pose(robot.neutral(), "base_link")
    there = here.copy()
    there[0, 3] += 1.0
    found = robot.inverse_kinematics(np.stack([here, there]), "base_link")
    assert list(found.solved) == [True, False] and list(found.reason) == ["converged", "out of reach"]


@pytest.mark.parametrize(
    ("target", "options", "says"),
    [
        (np.full((4, 4), np.nan), {}, "target with NaN or infinity"),
        (np.eye(3), {}, r"target of shape \(3, 3\), expected homogeneous matrices"),
        (np.zeros((4, 4)), {}, "last row is not 0 0 0 1"),
        (np.diag([1.0, 1.0, 2.0, 1.0]), {}, "not a rotation"),
        (np.diag([1.0, 1.0, -1.0, 1.0]), {}, "reflection"),
        (np.eye(4), {"q0": [0.0, 0.0]}, r"q0 of shape \(2,\), expected \(6,\) or one row per target"),
        (np.eye(4), {"q0": np.zeros((3, 6))}, r"q0 of shape \(3, 6\)"),
        (np.eye(4), {"q0": [np.nan] * 6}, "q0 with NaN"),
        (np.eye(4), {"tolerance": 0.0}, "tolerance is 0.0, expected a finite number above 0"),
        (np.eye(4), {"restarts": -1}, "restarts is -1, expected an integer from 0"),
        (np.eye(4), {"restarts": 10**6}, "restarts is 1000000, expected an integer from 0 to 511"),
        (np.eye(4), {"iterations": 0}, "iterations is 0, expected an integer from 1"),
        (np.eye(4), {"seed": 1.5}, "seed is 1.5, expected an integer"),
        (np.eye(4), {"frame": "tol0"}, "tool0"),
        (np.eye(4), {"position_only": "yes"}, "position_only is 'yes', expected True or False"),
        (np.eye(4), {"robot": "ur5"}, "got 'ur5', expected a Robot"),
        ([[0.0, 1.0]], {"position_only": True}, "expected homogeneous matrices"),
    ],
)
def test_bad_input(target: Any, options: dict[str, Any], says: str):
    with pytest.raises(ArgumentError, match=says) as caught:
        ls.inverse_kinematics(**{"robot": arm("ur5"), "target": target, "frame": "tool0", **options})
    assert "\n" not in str(caught.value)


# ---- along a path -------------------------------------------------------------------------------------------------


def line_from(robot: ls.Robot, q: np.ndarray, frame: str, way: Any, turn: Any = (0.0, 0.0, 0.0)) -> Line:
    start = robot.pose(q, frame)
    end = start.copy()
    end[:3, 3] += way
    end[:3, :3] = pin.exp3(np.array(turn)) @ start[:3, :3]
    return Line(start, end, Quintic([[0.0], [1.0]], [0.0, 1.0]))


def check_motion(robot: ls.Robot, frame: str, path: Path, times: np.ndarray, followed: Any, rows: Any = None) -> None:
    """On the path by the pose, its twist by J qd and its acceleration by J qdd + dJ qd; smooth in time."""
    rows = slice(0, 6) if rows is None else rows
    assert followed.reason == "converged" and followed.solved.all()
    wanted, q, qd, qdd = path(times), *followed.motion
    np.testing.assert_allclose(robot.pose(q, frame)[:, :3, 3], wanted.pose[:, :3, 3], atol=1e-10)
    if rows == slice(0, 6):
        np.testing.assert_allclose(robot.pose(q, frame), wanted.pose, atol=1e-10)
    twist = np.einsum("kij,kj->ki", robot.jacobian(q, frame), qd)
    drift = np.einsum("kij,kj->ki", robot.jacobian_derivative(q, qd, frame), qd)
    acceleration = np.einsum("kij,kj->ki", robot.jacobian(q, frame), qdd) + drift
    for ours, theirs in ((twist, wanted.twist), (acceleration, wanted.acceleration)):
        np.testing.assert_allclose(ours[:, rows], theirs[:, rows], atol=1e-10 * max(1.0, np.abs(theirs).max()))


def check_smooth(robot: ls.Robot, followed: Any, qd_error: float, qdd_error: float) -> None:
    """The velocities are the derivatives of the positions, the accelerations those of the velocities."""
    step = followed.t[1] - followed.t[0]
    rates = robot.difference(followed.q[:-2], followed.q[2:]) / (2.0 * step)
    assert np.abs(rates - followed.qd[1:-1]).max() <= qd_error * np.abs(followed.qd).max()
    change = (followed.qd[2:] - followed.qd[:-2]) / (2.0 * step)
    assert np.abs(change - followed.qdd[1:-1]).max() <= qdd_error * np.abs(followed.qdd).max()


@pytest.mark.parametrize(
    ("name", "q"),
    [
        ("ur5", [0.3, -1.2, 1.4, -1.8, -1.5, 0.2]),
        ("puma560", [0.2, -0.8, 0.4, 0.5, 0.9, -0.3]),
        ("panda", [0.1, -0.3, 0.2, -1.8, 0.1, 1.9, 0.3, 0.01, 0.02]),
    ],
)
def test_follow_a_line(name: str, q: list[float]):
    robot, frame, start = arm(name), ARMS[name], np.array(q)
    path = line_from(robot, start, frame, [0.1, -0.08, 0.05], [0.3, -0.2, 0.4])
    times = np.linspace(0.0, 1.0, 401)
    followed = ls.follow(robot, frame, path, times, start)
    np.testing.assert_allclose(followed.q[0], start, atol=1e-9)
    check_motion(robot, frame, path, times, followed)
    # central differences over 2.5 ms: an error of their step squared times the third derivative, tens of the velocity
    check_smooth(robot, followed, 2e-4, 2e-4)
    sparse = robot.follow(path, frame, times[::40], start)
    # a redundant arm integrates: the steps differ, the motion does not
    np.testing.assert_allclose(sparse.q, followed.q[::40], atol=2e-8)
    np.testing.assert_allclose(sparse.qdd, followed.qdd[::40], atol=1e-7)


def test_follow_takes_the_smallest_velocities_of_a_redundant_arm():
    robot, frame = arm("panda"), ARMS["panda"]
    start = np.array([0.1, -0.3, 0.2, -1.8, 0.1, 1.9, 0.3, 0.01, 0.02])
    path = line_from(robot, start, frame, [0.1, 0.1, 0.0])
    times = np.linspace(0.0, 1.0, 21)
    followed = ls.follow(robot, frame, path, times, start)
    smallest = np.einsum("kij,kj->ki", np.linalg.pinv(robot.jacobian(followed.q, frame)), path(times).twist)
    np.testing.assert_allclose(followed.qd, smallest, atol=1e-12)
    assert not followed.qd[:, -2:].any()


def test_follow_an_arc_with_the_position_only():
    robot, frame, start = arm("ur5"), "tool0", np.array([0.3, -1.2, 1.4, -1.8, -1.5, 0.2])
    here = robot.pose(start, frame)
    path = Arc.around(here, here[:3, 3] + [0.0, 0.0, 0.1], [1.0, 0.2, 0.0], 2.0 * np.pi, 2.0)
    times = np.linspace(0.0, 2.0, 801)
    followed = ls.follow(robot, frame, path, times, start, position_only=True)
    check_motion(robot, frame, path, times, followed, slice(3, 6))
    check_smooth(robot, followed, 5e-4, 5e-4)


def test_follow_with_fewer_joints_than_six():
    robot = robots_for_tests.robot("planar3")
    frame, start = robot.frame_names[-1], np.array([0.3, 0.8, -0.5])
    # within the plane and without turning, as three joints can
    moves = robot.jacobian(start, frame)[3:]
    plane = np.linalg.svd(moves)[0][:, :2]
    path = line_from(robot, start, frame, plane @ [-0.2, 0.1])
    times = np.linspace(0.0, 1.0, 101)
    check_motion(robot, frame, path, times, ls.follow(robot, frame, path, times, start))
    away = np.linalg.svd(moves)[0][:, 2]
    out_of_plane = ls.follow(robot, frame, line_from(robot, start, frame, 0.1 * away), times, start)
    assert not out_of_plane.solved.all() and out_of_plane.reason in ("out of reach", "singular")


@pytest.mark.cases(1)
@pytest.mark.parametrize("kinds", [("spherical", "prismatic", "spherical"), ("free",)])
def test_follow_with_joints_of_several_freedoms(kinds: tuple[str, ...]):
    robot = pin_models.random_robot(kinds, seed=3)
    frame, start = f"flange{len(kinds) - 1}", robot.random(np.random.default_rng(2))
    path = line_from(robot, start, frame, [0.1, 0.05, -0.1], [0.2, 0.1, 0.3])
    times = np.linspace(0.0, 1.0, 201)
    followed = ls.follow(robot, frame, path, times, start)
    check_motion(robot, frame, path, times, followed)
    check_smooth(robot, followed, 1e-3, 1e-3)


def test_the_six_axis_arm_follows_its_line():
    """Angeles, Ma & Rojas 7.2: not wrist-partitioned, along y by the normal spline, the orientation constant."""
    robot = robots_for_tests.robot("six_axis")
    frame = robot.frame_names[-1]
    start = np.radians([0.0, 68.5, -135.0, 93.6, 90.0, 90.0])
    here = robot.pose(start, frame)
    end = here.copy()
    end[1, 3] += 0.5
    path = Line(here, end, NormalSpline([[0.0], [1.0]], [0.0, 1.0]))
    times = np.linspace(0.0, 1.0, 101)
    check_motion(robot, frame, path, times, ls.follow(robot, frame, path, times, start))


def test_a_path_out_of_reach_ends_with_a_reason():
    robot, start = arm("ur5"), np.array([0.3, -1.2, 1.4, -1.8, -1.5, 0.2])
    path = line_from(robot, start, "tool0", [2.0, 0.0, 0.0])
    followed = ls.follow(robot, "tool0", path, np.linspace(0.0, 1.0, 101), start)
    count = int(followed.solved.sum())
    assert 10 < count < 101 and followed.reason == "orientation"  # without turning: a little farther it could else
    assert ls.follow(robot, "tool0", path, followed.t, start, position_only=True).reason == "out of reach"
    assert followed.solved[:count].all() and np.isfinite(followed.qdd[:count]).all()
    assert all(np.isnan(part[count:]).all() for part in followed.motion)


def test_a_singularity_on_the_way_ends_with_a_reason():
    """The PUMA's wrist must turn about an axis that it does not have where axes 4 and 6 are in line."""
    robot, start = arm("puma560"), np.array([0.2, -0.8, 0.4, 0.0, 0.0, 0.0])
    lost = np.linalg.svd(robot.jacobian(start, "tool")[:3, 3:])[0][:, 2]  # no joint of the wrist turns about this
    jacobian = robot.jacobian(start, "tool")
    assert np.linalg.svd(jacobian, compute_uv=False)[-1] < 1e-12
    path = line_from(robot, start, "tool", [0.0, 0.0, 0.0], 0.5 * lost)
    followed = ls.follow(robot, "tool", path, np.linspace(0.0, 1.0, 51), start)
    assert followed.reason == "singular" and not followed.solved.all()


def test_a_limit_on_the_way_ends_with_a_reason():
    start = np.array([0.3, -1.2, 1.4, -1.8, -1.5, 0.2])
    path, times = line_from(arm("ur5"), start, "tool0", [0.1, -0.08, 0.05]), np.linspace(0.0, 1.0, 51)
    free = ls.follow(arm("ur5"), "tool0", path, times, start)
    lower, upper = free.q.min(axis=0) - 0.1, free.q.max(axis=0) + 0.1
    upper[1] = 0.5 * (free.q[0, 1] + free.q[-1, 1])  # halfway on the way of the second joint
    assert free.q[0, 1] < upper[1] < free.q[-1, 1]
    followed = ls.follow(with_limits(arm("ur5"), lower, upper), "tool0", path, times, start)
    assert followed.reason == "limits"
    np.testing.assert_array_equal(followed.solved, free.q[:, 1] <= upper[1])
    np.testing.assert_allclose(followed.q[followed.solved], free.q[followed.solved], atol=1e-12)


def test_a_path_that_starts_out_of_reach():
    robot = arm("ur5")
    far = np.eye(4)
    far[0, 3] = 5.0
    followed = ls.follow(robot, "tool0", Line(far, np.eye(4), 1.0), [0.0, 0.5, 1.0], np.zeros(6))
    assert followed.reason == "out of reach" and not followed.solved.any() and np.isnan(followed.q).all()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"times": [0.0, 0.0]}, "strictly increasing"),
        ({"times": []}, r"times of shape \(0,\)"),
        ({"times": [np.nan]}, "times with NaN"),
        ({"path": np.eye(4)}, "a path of type ndarray"),
        ({"path": np.sin}, "a path of type ufunc, expected a Line"),
        ({"limits": None}, "limits is None, expected True or False"),
        ({"q0": [0.0]}, r"q0 of shape \(1,\)"),
        ({"frame": "nowhere"}, "nowhere"),
    ],
)
def test_bad_paths(change: dict[str, Any], says: str):
    robot = arm("ur5")
    start = robot.pose(robot.neutral() + 0.3, "tool0")
    call = {"frame": "tool0", "path": Line(start, start, 1.0), "times": [0.0, 1.0], **change}
    with pytest.raises(ArgumentError, match=says):
        ls.follow(robot, **call)
