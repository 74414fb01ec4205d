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
PANDA = "panda_description/urdf/panda.urdf"
RIGHT = np.pi / 2.0
ANTHROPOMORPHIC = [  # its wrist can stand above its shoulder: no offset keeps it from there
    (0, 0, 0.4, 0), (RIGHT, 0, 0, 0), (0, 0.5, 0, 0), (RIGHT, 0.05, 0.4, 0), (-RIGHT, 0, 0, 0), (RIGHT, 0, 0.1, 0),
]  # fmt: skip
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
    "anthropomorphic": lambda: from_rows(ANTHROPOMORPHIC),
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
    assert (
        off(robot.pose(found.q[there], frame), np.broadcast_to(wanted[:, None], (*there.shape, 4, 4))[there]) <= 1e-10
    )
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
        apart(robot, found.q[i, :, None], searched.q.reshape(targets, starts, -1)[i]).min(axis=1)[: found.count[i]]
        < 1e-5
        for i in range(targets)
    ]
    assert np.concatenate(seen).mean() > 0.6


@pytest.mark.quick
def test_the_eight_branches_of_the_puma():
    """Shoulder left and right, elbow up and down, wrist turned over: q1 of two, q3 of two, q4 half a turn apart."""
    robot, frame = arm("puma560")
    q = np.array([0.3, -0.5, 0.2, 0.7, 0.9, 0.4])
    found = robot.inverse_kinematics_branches(robot.pose(q, frame), frame, q, limits=False)
    assert isinstance(found, Branches) and found.count == 8 and not found.singular.any()
    assert found.form == "spherical wrist: joints 4, 5 and 6" and found.reason == "converged"
    np.testing.assert_allclose(found.q[0], q, atol=1e-12)  # the nearest to q0 comes first
    far = np.linalg.norm(found.q - q, axis=1)
    assert (np.diff(far) >= 0.0).all()
    assert len(np.unique(found.q[:, 0].round(9))) == 2 == len(np.unique(found.q[:, 2].round(9)))
    for row in found.q:  # each with its wrist turned over
        turned = row + np.array([0.0, 0.0, 0.0, np.pi, -2.0 * row[4], np.pi])
        assert apart(robot, found.q, turned).min() < 1e-9


@pytest.mark.parametrize("bend", [0.0, 1e-13, 1e-10, 1e-8])
@pytest.mark.parametrize("name", ["puma560", "anthropomorphic", "stanford", "ur3"])
def test_a_wrist_that_is_straight(name: str, bend: float):
    """Axes that turn the same thing: one of the family, near q0, or exact if they do not quite."""
    robot, frame = arm(name)
    q = np.array([0.3, -0.5, 0.2, 0.7, bend, 0.4])
    wanted = robot.pose(q, frame)
    found = robot.inverse_kinematics_branches(wanted, frame, q, limits=False)
    assert found.count >= 5
    count = int(found.count)
    assert off(robot.pose(found.q[:count], frame), np.broadcast_to(wanted, (count, 4, 4))) <= 1e-10
    assert found.singular.any() == (bend < 1e-11)
    np.testing.assert_allclose(found.q[0], q, atol=1e-4 if bend == 1e-10 else 1e-6)  # 1e-15 of the pose over the bend


def test_a_family_of_the_wrist_is_represented_by_the_nearest():
    robot, frame = arm("puma560")
    wanted = robot.pose([0.3, -0.5, 0.2, 0.7, 0.0, 0.4], frame)
    found = robot.inverse_kinematics_branches(wanted, frame, [0.3, -0.5, 0.2, 1.0, 0.0, 1.0], limits=False)
    # q4 + q6 = 1.1 of all that reach it: as far from (1, 1) as can be less
    assert found.singular[0]
    np.testing.assert_allclose(found.q[0], [0.3, -0.5, 0.2, 0.55, 0.0, 0.55], atol=1e-9)


def test_a_wrist_above_the_shoulder():
    """The first joint may be anywhere: it is where q0 has it, and all else follows."""
    robot, _ = arm("anthropomorphic")
    at = np.zeros(6)
    wrist, base = robot.pose(at, robot.link_names[4])[:3, 3], placement(1)
    up = base[:3, 2]
    way = wrist - base[:3, 3]
    targets = np.stack([robot.pose(at, "hand")] * 3)  # moved until the centre of the wrist is on the first axis
    targets[:, :3, 3] += up * [[0.9], [1.0], [1.1]] - way
    q0 = np.array([0.77, 0.1, 0.2, 0.3, 0.4, 0.5])
    found = robot.inverse_kinematics_branches(targets, "hand", q0, limits=False)
    assert (found.count == 4).all() and found.singular[:, :4].all()  # two elbows, two wrists
    for rows, wanted in zip(found.q[:, :4], targets, strict=True):
        assert off(robot.pose(rows, "hand"), np.broadcast_to(wanted, (4, 4, 4))) <= 1e-10
        np.testing.assert_allclose(rows[:, 0], 0.77, atol=1e-6)


def test_a_stretched_elbow_is_one_branch_where_two_meet():
    robot, frame = arm("ur3")
    q = np.array([0.3, -0.5, 0.0, 0.7, 0.8, 0.4])
    found = robot.inverse_kinematics_branches(robot.pose(q, frame), frame, q, limits=False)
    assert found.singular[0] and found.count % 2 == 1
    np.testing.assert_allclose(found.q[0], q, atol=1e-6)


def test_limits_choose_turns_and_leave_out_what_is_outside():
    robot, frame = arm("ur5")  # every joint goes two turns
    lower, upper = (
        np.array([getattr(j.limits, end) for j in (robot.model.links[i].joint for i in robot.model.document_order)])
        for end in ("lower", "upper")
    )
    q = postures(robot, 300, seed=3) * 1.9
    wanted = robot.pose(q, frame)
    free = robot.inverse_kinematics_branches(wanted, frame, q, limits=False)
    found = robot.inverse_kinematics_branches(wanted, frame, q)
    there = np.isfinite(found.q).all(axis=-1)
    assert ((found.q[there] >= lower) & (found.q[there] <= upper)).all()
    inside = (np.abs(q) <= upper).all(axis=1)
    np.testing.assert_allclose(found.q[inside, 0], q[inside], atol=1e-6)  # two turns: the one that q0 is on
    narrow = (np.abs(upper) < 4.0).any()
    assert (found.count <= free.count).all() and (narrow or (found.count == free.count).all())

    puma, tool = arm("puma560")
    links = [puma.model.links[i].joint.limits for i in puma.model.document_order]
    low, high = np.array([x.lower for x in links]), np.array([x.upper for x in links])
    if np.isfinite(low).any():
        made = np.clip(postures(puma, 200, seed=4), low, high)  # many of them on a limit
        found = puma.inverse_kinematics_branches(puma.pose(made, tool), tool, made)
        assert (found.count > 0).all()
        rows = found.q[np.isfinite(found.q).all(axis=-1)]
        assert ((rows >= low) & (rows <= high)).all()


def test_limits_narrower_than_a_turn_and_beyond_pi():
    rows = [
        (0, 0, 0.4, 0),
        (RIGHT, 0, 0.1, 0),
        (0, 0.5, 0, 0),
        (RIGHT, 0.05, 0.4, 0),
        (-RIGHT, 0, 0, 0),
        (RIGHT, 0, 0.1, 0),
    ]
    table = [
        dict(zip(("alpha", "a", "d", "theta"), row, strict=True), mass=1.0, inertia=(1, 1, 1), lower=3.0, upper=6.0)
        for row in rows
    ]
    robot = ls.Robot.from_dh(table, "modified")
    q = np.random.default_rng(1).uniform(3.0, 6.0, (200, 6))
    found = robot.inverse_kinematics_branches(robot.pose(q, "tool"), "tool")
    assert (apart(robot, found.q, q[:, None]).min(axis=1) < 1e-8).all()
    kept = found.q[np.isfinite(found.q).all(axis=-1)]
    assert kept.min() >= 3.0 and kept.max() <= 6.0 and len(kept) < 8 * 200
    outside = robot.pose(q[:20] - 3.0, "tool")
    none = robot.inverse_kinematics_branches(outside, "tool")
    open_ = robot.inverse_kinematics_branches(outside, "tool", limits=False)
    refused = none.count == 0
    assert refused.any() and set(none.reason[refused]) <= {"limits", "orientation"} and (open_.count[refused] > 0).all()


def test_out_of_reach_is_an_empty_result_that_says_how_far():
    robot, frame = arm("puma560")
    pose = robot.pose(np.zeros(6), frame)
    far = pose.copy()
    far[:3, 3] = 5.0, 0.0, 0.0
    found = robot.inverse_kinematics_branches(np.stack([pose, far]), frame, limits=False)
    assert found.count[0] > 0 and found.count[1] == 0 and np.isnan(found.q[1]).all() and not found.singular[1].any()
    assert found.reason.tolist() == ["converged", "out of reach"]
    assert 3.5 < found.position_error[1] < 5.0 and found.position_error[0] <= 1e-10


def test_shapes_and_joints_beside_the_chain():
    robot, frame = arm("puma560")
    wanted = robot.pose(postures(robot, 6, seed=0), frame).reshape(2, 3, 4, 4)
    found = robot.inverse_kinematics_branches(wanted, frame)
    assert found.q.shape == (2, 3, 8, 6) and found.count.shape == found.reason.shape == (2, 3)
    assert found.singular.shape == (2, 3, 8)
    none = robot.inverse_kinematics_branches(np.empty((0, 4, 4)), frame)
    assert none.q.shape == (0, 8, 6) and none.count.shape == (0,)
    with pytest.warns(ls.ModelWarning):  # rows without masses
        longer = ls.Robot.from_dh([*ANTHROPOMORPHIC, (0.3, 0.2, 0.1, 0.0)], "modified")
    start = np.random.default_rng(3).uniform(-0.5, 0.5, 7)
    sixth = longer.link_names[5]
    found = longer.inverse_kinematics_branches(longer.pose(start, sixth), sixth, start, limits=False)
    assert found.count == 8 and (found.q[:, 6] == start[6]).all()
    np.testing.assert_allclose(found.q[0], start, atol=1e-9)


def test_more_targets_than_one_block_and_each_as_if_alone():
    robot, frame = arm("puma560")
    wanted = robot.pose(postures(robot, 4100, seed=0), frame)
    found = robot.inverse_kinematics_branches(wanted, frame, limits=False)
    for i in (0, 2047, 2048, 4099):
        one = robot.inverse_kinematics_branches(wanted[i], frame, limits=False)
        assert one.count == found.count[i]
        np.testing.assert_allclose(one.q, found.q[i], atol=1e-9)


@pytest.mark.parametrize(
    ("make", "frame", "words"),
    [
        (lambda: oracles.load_quietly(oracles.FILES[PANDA]), "panda_hand", "7 joints move it"),
        (lambda: ls.robots.planar(3), "tool", "3 joints move it, expected 6"),
        (lambda: ls.robots.chain(6, seed=0), "tool", "joints .* miss a common point by .* and .* not parallel, by"),
        (lambda: ls.robots.planar(6), "tool", "surface|qualify, but"),
        (lambda: robots_for_tests.robot("puma560").with_base("floating"), "tool", "7 joints move it"),
    ],
)  # fmt: skip
def test_arms_without_a_closed_form_are_told_why(make, frame: str, words: str):
    with pytest.raises(ArgumentError, match=words) as refusal:
        make().inverse_kinematics_branches(np.eye(4), frame)
    text = str(refusal.value)
    assert "Use inverse_kinematics instead" in text and "\n" not in text


def test_mistakes_are_explained():
    robot, frame = arm("puma560")
    pose = robot.pose(np.zeros(6), frame)
    for words, bad in {
        "target of shape": ([1.0, 2.0, 3.0], frame),
        "not a rotation": (pose * [[2.0], [2.0], [2.0], [1.0]], frame),
        "frame": (pose, "elsewhere"),
    }.items():
        with pytest.raises(ArgumentError, match=words):
            robot.inverse_kinematics_branches(*bad)
    for words, options in {
        "q0 of shape": {"q0": [0.0]},
        "tolerance": {"tolerance": -1.0},
        "limits is": {"limits": "yes"},
    }.items():
        with pytest.raises(ArgumentError, match=words):
            robot.inverse_kinematics_branches(pose, frame, **options)


def test_without_machine_code():
    robot, frame = arm("puma560")
    q = postures(robot, 3, seed=2)
    wanted = robot.pose(q, frame)
    expected = robot.inverse_kinematics_branches(wanted, frame, limits=False)
    ls.use_backend("interpreter")
    try:
        plain = ls.robots.puma560().inverse_kinematics_branches(wanted, frame, limits=False)
    finally:
        ls.use_backend("llvm")
    np.testing.assert_allclose(plain.q, expected.q, atol=1e-9)
