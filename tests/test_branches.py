"""Inverse kinematics in closed form: every branch reaches its target, the posture that made it is one of them, and a
search from many starts finds no other."""

from __future__ import annotations

import functools

import numpy as np
import oracles
import pytest
import robots_for_tests
from scipy.spatial.transform import Rotation

import linksweep as ls
from linksweep import ArgumentError
from linksweep.motion import Branches

TURN = 2.0 * np.pi
RIGHT = np.pi / 2.0
UR = {  # standard DH tables of the maker: d1, a2, a3, d4, d5, d6
    "ur3": (0.1519, -0.24365, -0.21325, 0.11235, 0.08535, 0.0819),
    "ur10": (0.1273, -0.612, -0.5723, 0.163941, 0.1157, 0.0922),
}


def placement(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = Rotation.random(rng=rng).as_matrix(), rng.normal(size=3)
    return pose


def from_rows(rows: list[tuple[float, ...]], joints: str = "RRRRRR") -> ls.Robot:
    """A chain from modified DH rows, on a base and with a tool that stand anyhow."""
    table = [
        dict(zip(("alpha", "a", "d", "theta"), row, strict=True), joint=kind, mass=1.0, inertia=(1.0, 1.0, 1.0))
        for row, kind in zip(rows, joints, strict=True)
    ]
    robot = ls.Robot.from_dh(table, "modified").placed(placement(1))
    return robot.with_frame("hand", robot.link_names[-1], placement(2))


def wristed(seed: int, joints: str = "RRR", turned: bool = False, **fixed: dict[int, float]) -> ls.Robot:
    """A random arm with a spherical wrist at its end (whose axes are not at right angles) or, turned, at its base.

    fixed: alpha, a, d of some rows, by number.
    """
    rng = np.random.default_rng(seed)
    rows = [list(row) for row in rng.uniform(-1.0, 1.0, (6, 4)) * (1.5, 0.5, 0.5, 3.0)]
    for i in range(6):
        rows[i][0] += 0.4 * np.sign(rows[i][0])
    for name, values in fixed.items():
        for i, value in values.items():
            rows[i][("alpha", "a", "d").index(name)] = value
    kinds = joints + "RRR"
    if turned:  # axes 1, 2, 3 meet
        rows[1][1:3] = 0.0, 0.0
        rows[2][1:3] = 0.0, rows[2][2]
        kinds = "RRR" + joints
    else:
        rows[4][1:3] = 0.0, 0.0
        rows[5][1] = 0.0
    return from_rows([tuple(row) for row in rows], kinds)


def parallel(seed: int, first: int, meeting: bool = False) -> ls.Robot:
    """A random 6R chain whose axes first, first + 1 and first + 2 (from 0) are parallel."""
    rng = np.random.default_rng(seed)
    rows = [list(row) for row in rng.uniform(-1.0, 1.0, (6, 4)) * (1.5, 0.5, 0.5, 3.0)]
    for i in range(6):
        rows[i][0] += 0.4 * np.sign(rows[i][0])
    rows[first + 1][0], rows[first + 2][0] = 0.0, np.pi  # one of them the other way round
    if meeting:
        rows[5][1] = 0.0
    return from_rows([tuple(row) for row in rows])


@functools.cache
def arm(name: str) -> tuple[ls.Robot, str]:
    """A robot and the frame that is asked for."""
    if name in UR:
        d1, a2, a3, d4, d5, d6 = UR[name]
        rows = [(RIGHT, 0, d1, 0), (0, a2, 0, 0), (0, a3, 0, 0), (RIGHT, 0, d4, 0), (-RIGHT, 0, d5, 0), (0, 0, d6, 0)]
        table = [dict(zip(("alpha", "a", "d", "theta"), row, strict=True), mass=1.0, inertia=(1, 1, 1)) for row in rows]
        return ls.Robot.from_dh(table, "standard"), "tool"
    if name == "ur5":
        return oracles.load_quietly(oracles.FILES["ur_description/urdf/ur5_robot.urdf"]), "tool0"
    if name in robots_for_tests.BUNDLED:
        return robots_for_tests.robot(name), "tool"
    return MADE[name](), "hand"


MADE = {
    "meeting axes 1, 2": lambda: wristed(1, a={1: 0.0}),
    "parallel axes 1, 2": lambda: wristed(2, alpha={1: 0.0}),
    "antiparallel axes 1, 2": lambda: wristed(2, alpha={1: np.pi}),
    "parallel axes 2, 3": lambda: wristed(3, alpha={2: 0.0}),
    "industrial": lambda: wristed(4, alpha={0: 0.0, 1: RIGHT, 2: 0.0, 3: RIGHT, 4: -RIGHT, 5: RIGHT}, d={1: 0.0}),
    "general wrist": lambda: wristed(5),
    "general wrist, other": lambda: wristed(6),
    "wrist at the base": lambda: wristed(7, turned=True),
    "RRP": lambda: wristed(8, "RRP"),
    "RRP, meeting": lambda: wristed(9, "RRP", a={1: 0.0}),
    "RRP, scara": lambda: wristed(10, "RRP", alpha={1: 0.0, 2: 0.0}),
    "RPR": lambda: wristed(11, "RPR"),
    "RPR, square": lambda: wristed(12, "RPR", alpha={1: RIGHT}),
    "PRR": lambda: wristed(13, "PRR"),
    "PRR, square": lambda: wristed(14, "PRR", alpha={1: RIGHT}),
    "RPP": lambda: wristed(15, "RPP"),
    "PRP": lambda: wristed(16, "PRP"),
    "PPR": lambda: wristed(17, "PPR"),
    "PPP": lambda: wristed(18, "PPP"),
    "PRR on a wrist": lambda: wristed(19, "PRR", turned=True),
    "parallel 1-3": lambda: parallel(20, 0),
    "parallel 2-4": lambda: parallel(21, 1),
    "parallel 2-4, meeting": lambda: parallel(22, 1, meeting=True),
    "parallel 3-5": lambda: parallel(23, 2),
    "parallel 4-6": lambda: parallel(24, 3),
}
NAMED = ("puma560", "stanford", "six_axis", "ur3", "ur5", "ur10")


def postures(robot: ls.Robot, count: int, seed: int) -> np.ndarray:
    """Joints anywhere, also those that have limits: slides within 1 m."""
    kinds = [robot.model.links[i].joint.kind for i in robot.model.document_order]
    reach = np.where([kind == "revolute" for kind in kinds], np.pi, 1.0)
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (count, robot.nq)) * reach


def apart(robot: ls.Robot, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The largest difference of a joint, whole turns aside; infinite where there is no solution."""
    kinds = [robot.model.links[i].joint.kind for i in robot.model.document_order]
    turns = np.array([kind == "revolute" for kind in kinds])
    way = np.abs(a - b)
    way = np.where(turns, np.abs(way - TURN * np.round(way / TURN)), way)
    return np.nan_to_num(way.max(axis=-1), nan=np.inf)


def off(reached: np.ndarray, wanted: np.ndarray) -> float:
    """The largest distance (m) or angle (rad) between poses."""
    turn = Rotation.from_matrix((reached[..., :3, :3].swapaxes(-1, -2) @ wanted[..., :3, :3]).reshape(-1, 3, 3))
    return max(float(turn.magnitude().max()), float(np.abs(reached[..., :3, 3] - wanted[..., :3, 3]).max()))


def conditioned(robot: ls.Robot, frame: str, q: np.ndarray) -> np.ndarray:
    """The smallest singular value of the Jacobian: what an error of the pose is divided by."""
    return np.linalg.svd(robot.jacobian(q, frame), compute_uv=False)[..., -1]


@pytest.mark.parametrize("name", [*NAMED, *MADE])
def test_the_posture_that_made_a_pose_is_among_its_branches(name: str):
    robot, frame = arm(name)
    q = postures(robot, 1000, seed=5)
    wanted = robot.pose(q, frame)
    found = robot.inverse_kinematics_branches(wanted, frame, limits=False)
    assert set(found.reason) == {"converged"} and found.count.min() > 0
    there = np.arange(found.q.shape[1]) < found.count[:, None]
    np.testing.assert_array_equal(np.isfinite(found.q).all(axis=-1), there)
    assert off(robot.pose(found.q[there], frame), np.broadcast_to(wanted[:, None], (*there.shape, 4, 4))[there]) <= 1e-10
    assert max(found.position_error.max(), found.rotation_error.max()) <= 1e-12
    nearest = apart(robot, found.q, q[:, None]).min(axis=1)
    # rounding of the pose, 1e-15, is divided by the Jacobian's smallest singular value: 1e-8 holds above 1e-6
    assert (nearest <= 1e-8 * np.maximum(1.0, 1e-6 / conditioned(robot, frame, q))).all()
    assert found.count.max() <= 8
    regular = ~found.singular.any(axis=1)
    assert regular.mean() > 0.99
    if name != "PPP" and "P" not in name:  # slides may have one solution only
        assert (found.count[regular] % 2 == 0).all()


@pytest.mark.parametrize("name", [*NAMED, *MADE])
def test_a_search_from_many_starts_finds_no_other_branch(name: str):
    robot, frame = arm(name)
    targets, starts = 4, 250
    wanted = robot.pose(postures(robot, targets, seed=8), frame)
    found = robot.inverse_kinematics_branches(wanted, frame, limits=False)
    searched = robot.inverse_kinematics(
        np.repeat(wanted, starts, axis=0), frame, postures(robot, targets * starts, seed=9), limits=False, restarts=0
    )
    assert searched.solved.mean() > 0.05
    known = np.repeat(found.q, starts, axis=0)[searched.solved]
    regular = conditioned(robot, frame, searched.q[searched.solved]) > 1e-4
    assert regular.sum() > 20
    assert (apart(robot, known, searched.q[searched.solved][:, None]).min(axis=1)[regular] < 1e-5).all()
    # and it found most of them: the bound would mean little otherwise
    seen = [
        apart(robot, found.q[i, :, None], searched.q.reshape(targets, starts, -1)[i]).min(axis=1)[: found.count[i]] < 1e-5
        for i in range(targets)
    ]
    assert np.concatenate(seen).mean() > 0.6
