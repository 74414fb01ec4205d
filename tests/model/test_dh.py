"""DH tables against the product of elementary matrices, written here a second time."""

# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportArgumentType=false
from __future__ import annotations

import math

import numpy as np
import pytest

from linksweep.errors import DescriptionError
from linksweep.model.assembly import find_frame
from linksweep.model.formats.dh import from_dh
from linksweep.model.model import BASE, Model, Placement

pytestmark = pytest.mark.quick

RANDOM = np.random.default_rng(7)
ROWS = [
    {
        "alpha": 0.3,
        "a": 0.1,
        "d": 0.2,
        "theta": -0.4,
        "mass": 1.0,
        "com": (0.1, 0.2, 0.3),
        "inertia": (1, 1.1, 1.2),
    },
    {"alpha": -1.2, "a": 0.4, "d": -0.1, "theta": 0.9, "joint": "prismatic", "mass": 2.0, "com": (0, 0.1, 0)},
    {"alpha": 2.0, "a": -0.2, "d": 0.3, "theta": 0.1, "mass": 0.5, "inertia": (1, 2, 2.5, 0.1, 0.2, 0.3)},
    {"alpha": 0.7, "a": 0.3, "d": 0.5, "theta": -2.0, "joint": "P", "mass": 0.7, "com": (0.2, 0, 0)},
]


def turn(axis: str, angle: float) -> np.ndarray:
    c, s = math.cos(angle), math.sin(angle)
    block = {"x": [[1, 0, 0], [0, c, -s], [0, s, c]], "z": [[c, -s, 0], [s, c, 0], [0, 0, 1]]}[axis]
    out = np.eye(4)
    out[:3, :3] = block
    return out


def shift(axis: str, by: float) -> np.ndarray:
    out = np.eye(4)
    out[{"x": 0, "z": 2}[axis], 3] = by
    return out


def textbook(rows: list[dict], convention: str, q: np.ndarray) -> list[np.ndarray]:
    """World poses of the DH frames."""
    pose, poses = np.eye(4), []
    for row, value in zip(rows, q, strict=True):
        slides = row.get("joint", "R")[0].upper() == "P"
        theta, d = row["theta"] + (0 if slides else value), row["d"] + (value if slides else 0)
        x = turn("x", row["alpha"]) @ shift("x", row["a"])
        z = turn("z", theta) @ shift("z", d)
        pose = pose @ (x @ z if convention == "modified" else z @ x)
        poses.append(pose)
    return poses


def matrix(at: Placement) -> np.ndarray:
    out = np.eye(4)
    out[:3, :3], out[:3, 3] = at.rotation, at.position
    return out


def link_poses(model: Model, q: np.ndarray) -> list[np.ndarray]:
    """World poses of the Model's link frames; all axes are z here."""
    poses: list[np.ndarray] = []
    for link, value in zip(model.links, q, strict=True):
        assert link.joint.axis == (0.0, 0.0, 1.0)
        motion = turn("z", value) if link.joint.kind == "revolute" else shift("z", value)
        parent = np.eye(4) if link.parent == BASE else poses[link.parent]
        poses.append(parent @ matrix(link.joint.placement) @ motion)
    return poses


@pytest.mark.parametrize("convention", ["modified", "standard"])
def test_named_frames_are_the_dh_frames_at_any_configuration(convention: str):
    model = from_dh(ROWS, convention)
    for q in (np.zeros(4), RANDOM.normal(size=4)):
        poses, expected = link_poses(model, q), textbook(ROWS, convention, q)
        for i, want in enumerate(expected):
            frame = find_frame(model, f"link{i + 1}")
            assert np.allclose(poses[frame.link] @ matrix(frame.placement), want, rtol=0, atol=1e-14)
        tool = find_frame(model, "tool")
        assert np.allclose(poses[tool.link] @ matrix(tool.placement), expected[-1], rtol=0, atol=1e-14)


@pytest.mark.cases(2)
@pytest.mark.parametrize("convention", ["modified", "standard"])
def test_mass_centres_and_inertias_are_given_in_the_dh_frames(convention: str):
    model = from_dh(ROWS, convention)
    q = RANDOM.normal(size=4)
    moments = [
        np.diag([1, 1.1, 1.2]),
        np.zeros((3, 3)),
        np.array([[1, 0.1, 0.2], [0.1, 2, 0.3], [0.2, 0.3, 2.5]]),
    ]
    moments.append(np.zeros((3, 3)))
    steps = zip(model.links, link_poses(model, q), textbook(ROWS, convention, q), ROWS, moments, strict=True)
    for link, pose, dh_pose, row, moment in steps:
        com = np.array([*row.get("com", (0, 0, 0)), 1.0])
        assert np.allclose(pose @ [*link.inertial.com, 1.0], dh_pose @ com, rtol=0, atol=1e-14)
        ours, theirs = pose[:3, :3], dh_pose[:3, :3]
        assert np.allclose(
            ours @ np.array(link.inertial.inertia) @ ours.T, theirs @ moment @ theirs.T, rtol=0, atol=1e-14
        )


def test_modified_names_stand_at_the_joint_and_standard_ones_at_the_far_end():
    assert find_frame(from_dh(ROWS, "modified"), "link1").placement == Placement()
    far = find_frame(from_dh(ROWS, "standard"), "link1").placement
    assert far.position == (0.1, 0.0, 0.0)


def test_rows_of_four_numbers_and_arrays():
    table = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8]])
    keyed = [dict(zip(("alpha", "a", "d", "theta"), row, strict=True)) for row in table.tolist()]
    assert from_dh(table, "modified") == from_dh(keyed, "modified") == from_dh(table.tolist(), "modified")


def test_every_key_arrives():
    row = {
        "joint": "R", "name": "shoulder", "link": "upper_arm", "mass": 2, "armature": 0.1, "damping": 0.2,
        "friction": 0.3, "lower": -1, "upper": 2, "velocity": 3, "effort": 4,
    }  # fmt: skip
    model = from_dh([row], "modified", name="arm", base="pedestal", gravity=(0, 0, -1.62))
    joint = model.links[0].joint
    assert (model.name, model.base, model.gravity) == ("arm", "pedestal", (0.0, 0.0, -1.62))
    assert (model.links[0].name, joint.name, model.links[0].inertial.mass) == ("upper_arm", "shoulder", 2.0)
    assert (joint.armature, joint.damping, joint.friction) == (0.1, 0.2, 0.3)
    limits = joint.limits
    assert (limits.lower, limits.upper, limits.velocity, limits.effort) == (-1, 2, 3, 4)
    assert [frame.name for frame in model.frames] == ["pedestal", "upper_arm", "tool"]


def test_the_tool_can_be_placed_and_a_last_link_may_be_called_tool():
    at = Placement(position=(0.0, 0.0, 0.2))
    for convention in ("modified", "standard"):
        placed = find_frame(from_dh([(0.5, 0.3, 0, 0)], convention, tool=at), "tool").placement
        own = find_frame(from_dh([(0.5, 0.3, 0, 0)], convention), "link1").placement
        assert np.allclose(matrix(placed), matrix(own) @ matrix(at), atol=1e-16)
    assert [f.name for f in from_dh([{"link": "tool"}], "modified").frames] == ["base", "tool"]


def test_right_angles_are_exact():
    rotation = from_dh([(math.pi / 2, 0, 0, -math.pi / 2)], "modified").links[0].joint.placement.rotation
    assert {abs(x) for row in rotation for x in row} == {0.0, 1.0}


@pytest.mark.parametrize("convention", [None, "craig", "Modified", 3])
def test_the_convention_must_be_said(convention: object):
    with pytest.raises(DescriptionError, match=r"convention is .*expected 'modified' \(Craig\) or 'standard'"):
        from_dh([(0, 0, 0, 0)], convention)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], r"the DH table has no rows"),
        ("abc", r"the DH table is a str, expected one row per joint"),
        ({"alpha": 1}, r"the DH table is a dict"),
        (5, r"the DH table is a int"),
        ([(0, 0, 0)], r"DH row 1: the row is \(0, 0, 0\), expected a mapping or the four numbers"),
        ([(0, 0, 0, 0), 7], r"DH row 2: the row is 7"),
        ([(0, 0, 0, "x")], r"DH row 1: 'theta' is 'x', expected a real number"),
        ([(0, math.nan, 0, 0)], r"DH row 1: 'a' is nan, expected a finite number"),
        ([(0, 0, 1j, 0)], r"DH row 1: 'd' is 1j, expected a real number"),
        ([{"alhpa": 1}], r"DH row 1: the key 'alhpa' is not known .did you mean 'alpha'"),
        ([{3: 1}], r"the key 3 is not known"),
        ([{"joint": "helical"}], r"'joint' is 'helical', expected 'revolute', 'R', 'prismatic', 'P'"),
        ([{"joint": ["R"]}], r"'joint' is \['R'\]"),
        ([{"mass": "2"}], r"'mass' is '2', expected a real number"),
        ([{"mass": True}], r"'mass' is True, expected a real number"),
        ([{"mass": -2}], r"mass of link 'link1' is -2.0, expected zero or more"),
        ([{"com": 3}], r"'com' is 3, expected three numbers"),
        ([{"inertia": (1, 2, 3, 4)}], r"'inertia' is \(1, 2, 3, 4\), expected 3 "),
        ([{"measured": "yes"}], r"'measured' is 'yes', expected true or false"),
        ([{"friction": -1}], r"friction of joint 'joint1'"),
        ([{"lower": math.nan}], r"limits of joint 'joint1'"),
        ([{"name": 5}], r"a joint is called 5, expected a name"),
        ([{"link": "a"}, {"link": "a"}], r"link name 'a' is used twice"),
        ([{"link": "tool"}, {}], r"link name 'tool' is used twice"),
    ],
)
def test_bad_tables_are_refused(rows: object, message: str):
    with pytest.raises(DescriptionError, match=message):
        from_dh(rows, "modified")  # type: ignore[arg-type]
