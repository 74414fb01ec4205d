"""Where a robot ends, and the numbers of its joints and links by name: read, changed, refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from error_checks import refused
from robots_for_tests import BODY, robot, whole

import linksweep as ls
from linksweep.errors import ArgumentError
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Joint, Placement
from linksweep.robot.properties import AmbiguousEnd
from linksweep.simulation import load


def fixed(name: str, parent: str, x: float = 0.1) -> Part:
    return Part(name, parent, Joint(f"{name} mount", "fixed", placement=Placement(position=(x, 0.0, 0.0))))


def moving(name: str, parent: str, **of_joint: Any) -> Part:
    place = Placement(position=(0.0, 0.0, 0.3))
    return Part(name, parent, Joint(f"{name} joint", placement=place, axis=(0.0, 1.0, 0.0), **of_joint), BODY)


def made(*parts: Part) -> ls.Robot:
    return ls.Robot(assemble("made", parts, base="base_link", base_inertial=BODY))


def arm(*more: Part) -> ls.Robot:
    """Two links, with more on them."""
    return made(moving("upper", "base_link"), moving("wrist_3_link", "upper"), *more)


# ---- ends


def test_the_tool_of_bundled_robots_is_their_tool():
    for one in (ls.robots.puma560(), ls.robots.planar(3), ls.robots.chain(5), robot("stanford")):
        assert one.tips == ("tool",) and one.tip == one.ee == "tool"


UR = (fixed("ee_link", "wrist_3_link"), fixed("tool0", "wrist_3_link"), fixed("base", "base_link"))


def test_the_tool_of_a_ur_arm_is_tool0():
    """As Universal Robots' own files: frame_names[-1] stands on the base, and its Jacobian is zero."""
    ur = arm(*UR)
    assert ur.frame_names[-1] == "base" and not ur.jacobian(np.ones(2), "base").any()
    assert ur.tips == ("ee_link", "tool0")
    assert all(ur.jacobian(np.ones(2), tip).any() for tip in ur.tips)
    refused(AmbiguousEnd, "2 tip frames, ee_link, tool0", lambda: ur.tip)
    assert ur.ee == "tool0"  # ROS-Industrial's name
    assert not hasattr(ur, "tip")  # so that what lists attributes does not stumble
    ur.compile("inverse_dynamics", parameters=("payload",), backend="interpreter")
    ur = arm(fixed("ee_link", "wrist_3_link"), fixed("tcp", "wrist_3_link"))
    refused(AmbiguousEnd, "2 frames that may be its end effector, ee_link, tcp", lambda: ur.ee)
    assert not hasattr(ur, "ee")
    # a payload has its mass centre in a frame: which one matters
    refused(
        ArgumentError,
        "2 frames that may be its (tool|end effector), ee_link, tcp.*say 'payload:' and its name",
        lambda: ur.compile("inverse_dynamics", parameters=("payload",)),
    )
    ur.compile("inverse_dynamics", parameters=("payload:tcp",), backend="interpreter")


@pytest.mark.parametrize(
    ("more", "tips", "ee"),
    [
        ([], ["wrist_3_link"], "wrist_3_link"),
        ([fixed("flange", "wrist_3_link"), fixed("tool0", "flange")], ["tool0"], "tool0"),
        ([fixed("tool0", "flange"), fixed("flange", "wrist_3_link")], ["tool0"], "tool0"),
        ([fixed("camera", "wrist_3_link"), fixed("tool0", "wrist_3_link")], ["camera", "tool0"], "tool0"),
        ([fixed("camera", "wrist_3_link"), fixed("flange", "wrist_3_link")], ["camera", "flange"], None),
        ([fixed("HandTCP", "wrist_3_link"), fixed("FTSensor", "wrist_3_link")], ["HandTCP", "FTSensor"], "HandTCP"),
        ([fixed("tool_camera_link", "wrist_3_link"), fixed("x", "wrist_3_link")], ["tool_camera_link", "x"], None),
        ([fixed("left_ee", "wrist_3_link"), fixed("right_ee", "upper")], ["left_ee"], None),
        # fingers: the ends are theirs, the tool stands before them
        (
            [fixed("hand", "wrist_3_link"), fixed("hand_tcp", "hand"), moving("f1", "hand"), moving("f2", "hand")],
            ["f1", "f2"],
            "hand_tcp",
        ),
        ([moving("f1", "wrist_3_link"), moving("f2", "wrist_3_link")], ["f1", "f2"], None),
        # a jaw that moves and a tool before it: both may be meant
        ([fixed("tcp", "wrist_3_link"), moving("jaw", "wrist_3_link")], ["jaw"], None),
        # our own name for it settles it, but not on the base
        ([fixed("tool", "upper"), fixed("ee", "wrist_3_link"), fixed("tcp", "upper")], ["ee"], "tool"),
        ([fixed("tool", "base_link"), fixed("flange", "wrist_3_link")], ["flange"], "flange"),
    ],
)
def test_ends(more: list[Part], tips: list[str], ee: str | None):
    one = arm(*more)
    assert list(one.tips) == tips
    assert (one.tip if len(tips) == 1 else None) == (tips[0] if len(tips) == 1 else None)
    if ee is None:
        with pytest.raises(ArgumentError, match="may be its end effector"):
            one.ee  # noqa: B018
    else:
        assert one.ee == ee


def test_ends_stay_through_edits(tmp_path: Path):
    one = arm(fixed("flange", "wrist_3_link"), fixed("tool0", "flange"), moving("f1", "flange"), moving("f2", "flange"))
    assert one.tips == ("f1", "f2") and one.ee == "tool0"
    floating = one.with_base("floating")
    assert floating.tips == one.tips and floating.ee == "tool0" and floating.with_base("fixed") == one
    still = one.lock(["f1 joint", "f2 joint"])  # the fingers are frames of the wrist now, fixed to it
    assert still.tips == ("tool0", "f1", "f2") and still.ee == "tool0"
    assert one.lock(["wrist_3_link joint", "f1 joint", "f2 joint"]).tips == ("tool0", "f1", "f2")
    assert one.subchain("upper", "tool0", fold=False).tip == "tool0"
    run = ls.simulate(one, np.zeros(one.nq), duration=0.01)
    run.to_npz(tmp_path / "run.npz")
    assert load(tmp_path / "run.npz").robot.tips == one.tips


def test_sites_of_mjcf_are_tools(tmp_path: Path):
    pytest.importorskip("mujoco")
    geom = '<geom type="capsule" size="0.02" fromto="0 0 0 0.3 0 0" contype="0" conaffinity="0"/>'
    joint = f'<joint type="hinge" axis="0 1 0"/>{geom}'
    inner = f'<body name="b" pos="0.3 0 0">{joint}<site name="attachment_site" pos="0.3 0 0"/></body>'
    text = f'<worldbody><site name="origin"/><body name="a">{joint}{inner}</body></worldbody>'
    (tmp_path / "arm.xml").write_text(f"<mujoco>{text}</mujoco>")
    one = ls.load(tmp_path / "arm.xml")
    assert one.frame_names[-2:] == ("origin", "attachment_site") and one.tip == one.ee == "attachment_site"


# ---- numbers of joints and links


def test_numbers_stand_in_the_order_of_the_joints():
    one = robot("urdf")  # its document puts the slide before the joint that carries it
    assert one.joint_names == ("slide", "turn", "branch") and one.model.document_order != (0, 1, 2)
    lower, upper, velocity, effort = one.limits
    assert lower.tolist() == [-1.0, -math.inf, -1.0] and upper.tolist() == [1.0, math.inf, 1.0]
    assert velocity.tolist() == [2.0, math.inf, 2.0] and effort.tolist() == [9.0, math.inf, 9.0]
    assert one.damping.tolist() == [0.4, 0.0, 2.5] and one.friction.tolist() == [0.2, 0.0, 0.7]
    assert one.armature.tolist() == [0.0, 0.0, 0.0]
    assert one.link_names == ("hand", "arm", "side")
    np.testing.assert_allclose(one.masses, [1.5, 3.0, 0.8])  # the camera is fixed to the hand


def test_numbers_of_joints_with_several_freedoms():
    """Positions like q, everything else like qd."""
    one = whole()
    assert one.joint_names == ("elbow", "root", "ball", "slide") and (one.nq, one.nv) == (13, 11)
    inf = math.inf
    assert one.limits.lower.tolist() == [-1.0, *[-inf] * 11, 0.0] and one.limits.upper.tolist() == [
        2.0,
        *[inf] * 11,
        0.5,
    ]
    assert one.limits.velocity.tolist() == [3.0, *[inf] * 10] and one.limits.effort.tolist() == [4.0, *[inf] * 10]
    assert one.damping.tolist() == [0.5, *[0.0] * 6, *[0.1] * 3, 0.0]
    assert one.friction.tolist() == [0.6, *[0.0] * 6, *[0.2] * 3, 0.0]
    assert one.armature.tolist() == [0.0, *[0.7] * 6, *[0.3] * 3, 0.9]
    q, qd, qdd = one.random(np.random.default_rng(0)), *np.random.default_rng(1).uniform(-1, 1, (2, 11))
    dissipated = one.inverse_dynamics(q, qd, qdd, dissipation=True) - one.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(dissipated, one.damping * qd + one.friction * np.sign(qd), rtol=1e-12, atol=1e-12)
    without = one.with_armature(0.0)
    np.testing.assert_allclose(one.mass_matrix(q) - without.mass_matrix(q), np.diag(one.armature), atol=1e-12)


@pytest.mark.parametrize("one", [robot("stanford"), robot("urdf"), robot("tree9"), whole()], ids=lambda one: one.name)
def test_numbers_go_in_as_they_come_out(one: ls.Robot):
    assert one.with_limits(*one.limits) is one
    assert one.with_dissipation(one.damping, one.friction) is one
    assert one.with_armature(one.armature) is one
    links = len(one.link_names)
    again = one.with_inertia(one.standard_parameters[: 10 * links].reshape(links, 10))
    np.testing.assert_allclose(again.standard_parameters, one.standard_parameters, rtol=1e-12, atol=1e-13)


def test_limits_by_name_by_number_and_by_array():
    one = robot("urdf")
    named = one.with_limits({"turn": -2.0}, {"turn": 3.0, "slide": 0.5}, effort={"branch": 7})
    assert named.limits.lower.tolist() == [-1.0, -2.0, -1.0] and named.limits.upper.tolist() == [0.5, 3.0, 1.0]
    assert named.limits.effort.tolist() == [9.0, math.inf, 7.0] and named.limits.velocity.tolist() == [
        2.0,
        math.inf,
        2.0,
    ]
    assert one.with_limits(velocity=1.5).limits.velocity.tolist() == [1.5] * 3
    assert one.with_limits(lower=[-0.1, -0.2, -0.3]).limits.lower.tolist() == [-0.1, -0.2, -0.3]
    assert one.with_limits() is one and one.limits.lower.tolist() == [-1.0, -math.inf, -1.0]
    # what reads limits sees them: random coordinates, and inverse kinematics
    tight = one.with_limits(-0.01, 0.01)
    assert np.abs(tight.random(np.random.default_rng(0))).max() <= 0.01


def test_limits_of_a_robot_with_a_free_base():
    one = whole()
    assert one.with_limits(-0.5, 0.25).limits.upper.tolist() == [0.25, *[math.inf] * 11, 0.25]
    by_joint = one.with_limits(upper=[1.0, math.inf, math.inf, 0.1], effort=[1.0, 2.0, 3.0, 4.0])
    assert by_joint.limits.upper[[0, -1]].tolist() == [1.0, 0.1]
    assert by_joint.limits.effort.tolist() == [1.0, *[2.0] * 6, *[3.0] * 3, 4.0]
    assert one.with_limits(effort={"ball": [3.0, 3.0, 3.0]}).limits.effort.tolist()[7:10] == [3.0] * 3
    refused(ArgumentError, "lower limits joint 'root', which is free", lambda: one.with_limits(lower=np.zeros(13)))
    refused(ArgumentError, "lower limits joint 'ball'", lambda: one.with_limits({"ball": -1.0}))
    refused(
        ArgumentError, "effort of joint 'ball' is .1.0, 2.0, 3.0., expected one number for all of its components",
        lambda: one.with_limits(effort={"ball": [1, 2, 3]}),
    )  # fmt: skip
    refused(
        ArgumentError,
        r"shape \(5,\), expected 4 numbers.*or 13, one for each coordinate",
        lambda: one.with_limits([0.0] * 5),
    )
    refused(ArgumentError, r"expected 4 numbers.*or 11, one for each velocity", lambda: one.with_armature([0.0] * 13))


def test_dissipation_and_armature():
    one = robot("tree4")
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 4))
    damped = one.with_dissipation({one.joint_names[2]: 5.0}, friction=0.25)
    assert damped.damping.tolist() == [*one.damping[:2], 5.0, one.damping[3]] and damped.friction.tolist() == [0.25] * 4
    added = damped.inverse_dynamics(q, qd, qdd, dissipation=True) - damped.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(added, damped.damping * qd + 0.25 * np.sign(qd), rtol=1e-12)
    heavy = one.with_armature([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_allclose(
        np.diag(heavy.mass_matrix(q) - one.mass_matrix(q)), heavy.armature - one.armature, rtol=1e-12
    )


def test_inertia():
    one = robot("tree9")
    names = one.link_names
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 9))
    body = ls.body(2.0, (0.1, -0.2, 0.05), (0.2, 0.25, 0.3, 0.01, 0.02, -0.03))
    changed = one.with_inertia({names[3]: body})
    assert changed.masses.tolist() == [*one.masses[:3], 2.0, *one.masses[4:]]
    f = one.compile("inverse_dynamics", parameters=(f"inertia:{names[3]}",), backend="interpreter")
    np.testing.assert_allclose(changed.inverse_dynamics(q, qd, qdd), f(q, qd, qdd, body), rtol=1e-11)
    empty = one.with_inertia({names[0]: np.zeros(10)})
    assert empty.masses[0] == 0.0 and empty.with_inertia({}) is empty


STANDARD = [
    {"alpha": 0.3, "a": 0.2, "d": 0.1, "mass": 2.0, "com": (0.25, 0.1, 0.0), "inertia": (0.1, 0.14, 0.14)},
    {"alpha": 0.7, "a": 0.5, "mass": 1.0, "com": (0.20, 0.0, 0.1), "inertia": (0.1, 0.12, 0.12)},
]


def test_inertias_are_in_the_frame_that_bears_the_links_name():
    """In a standard DH table it stands at the far end of the link: the regressor was there, its parameters were not."""
    one = ls.Robot.from_dh(STANDARD, convention="standard")
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 2))
    tau = one.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(one.regressor(q, qd, qdd) @ one.standard_parameters, tau, rtol=1e-12)
    np.testing.assert_allclose(one.base_parameters().inverse_dynamics(q, qd, qdd), tau, rtol=1e-11)
    bodies = {f"link{k + 1}": ls.body(row["mass"], row["com"], row["inertia"]) for k, row in enumerate(STANDARD)}
    np.testing.assert_allclose(
        one.standard_parameters[:20], np.concatenate(list(bodies.values())), rtol=1e-12, atol=1e-15
    )
    bare = ls.Robot.from_dh([{**row, "mass": 1.0, "com": (0, 0, 0)} for row in STANDARD], convention="standard")
    np.testing.assert_allclose(bare.with_inertia(bodies).inverse_dynamics(q, qd, qdd), tau, rtol=1e-12)


REFUSED = {
    "an unknown joint": (lambda r: r.with_limits({"sholder": 1.0}), "no joint 'sholder'.*robot.joint_names"),
    "a joint nearly right": (lambda r: r.with_armature({"trun": 1.0}), r"no joint 'trun' \(did you mean 'turn'\?\)"),
    "lower above upper": (lambda r: r.with_limits(lower={"slide": 2.0}), "joint 'slide' are 2 to 1, expected lower"),
    "no room": (lambda r: r.with_limits({"turn": math.inf}), "limits of joint 'turn' are inf to inf"),
    "negative speed": (lambda r: r.with_limits(velocity=-1.0), "velocity limit of joint 'slide' is -1, expected zero"),
    "NaN": (lambda r: r.with_limits(upper=[1.0, math.nan, 1.0]), "upper is .*nan.*expected real numbers"),
    "too few": (lambda r: r.with_limits(upper=[1.0, 2.0]), r"upper has shape \(2,\), expected 3 numbers, one for each"),
    "text": (lambda r: r.with_limits(effort="10"), "effort is '10', expected real numbers"),
    "True": (lambda r: r.with_armature(True), "armature is True, expected real numbers"),
    "negative damping": (lambda r: r.with_dissipation({"turn": -1}), "damping of joint 'turn' is -1, expected"),
    "endless friction": (lambda r: r.with_dissipation(friction=math.inf), "friction of joint 'slide' is inf"),
    "beyond all robots": (lambda r: r.with_limits(effort=1e31), "limit of joint 'slide' is beyond 1e.30"),
    "an unknown link": (lambda r: r.with_inertia({"turn": np.ones(10)}), "no link 'turn', .*robot.link_names"),
    "nine numbers": (lambda r: r.with_inertia({"arm": np.ones(9)}), "inertia of 'arm' is .*expected ten"),
    "a mass": (lambda r: r.with_inertia(2.0), r"inertia has shape \(\), expected \(3, 10\)"),
    "massless moment": (lambda r: r.with_inertia({"arm": [0.0, 1.0, *[0.0] * 8]}), "a first moment and no mass"),
    "masked": (lambda r: r.with_limits(np.ma.masked_less([-1.0, -2.0, -3.0], -1.5)), "lower is a masked array"),
    "a masked body": (lambda r: r.with_inertia({"arm": np.ma.ones(10)}), "inertia of arm is a masked array"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_one_sentence(case: str):
    call, says = REFUSED[case]
    refused(ArgumentError, says, lambda: call(robot("urdf")))


def test_a_negative_mass_is_refused():
    with pytest.raises(ls.DescriptionError, match="mass of link 'arm' is -1"):
        robot("urdf").with_inertia({"arm": [-1.0, *[0.0] * 9]})
