"""URDF: against Pinocchio on real robots, and against files that are broken or hostile."""

from __future__ import annotations

import importlib.metadata
import math
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import linksweep as ls
from linksweep.errors import DescriptionError, ModelWarning
from linksweep.model.assembly import find_frame
from linksweep.model.formats import load_model
from linksweep.model.formats.files import parse
from linksweep.model.formats.urdf import read_urdf, rotation_from_rpy
from linksweep.model.lint import lint
from linksweep.model.model import BASE, Inertial, Model

FILES = {
    str(file).split("robots/", 1)[1]: Path(str(file.locate()))
    for file in importlib.metadata.files("example-robot-data") or []
    if str(file).endswith(".urdf")
}
NOT_ROBOTS = {  # nothing to move on a fixed base; ur3.urdf holds no link
    "hector_description/robots/quadrotor_base.urdf": "none of them moves",
    "iris_description/robots/iris_simple.urdf": "none of them moves",
    "ur_description/urdf/ur3.urdf": "has no links",
}
LOADABLE = sorted(FILES.keys() - NOT_ROBOTS.keys())


TURNED = """<robot name="x" version="{}"><link name="w"/><link name="l"><inertial><origin xyz="0.1 0.2 0.3"
quat_xyzw="{}"/><mass value="2"/><inertia ixx="1" iyy="2" izz="2.5" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><origin xyz="0 0 0" quat_xyzw="{}" {}/><parent link="w"/><child link="l"/>
<axis xyz="0 1 0"/></joint></robot>"""


@pytest.mark.quick
@pytest.mark.parametrize("version", ["1.1", "1.2"])
def test_quaternions_are_those_of_pinocchio(version: str):
    text = TURNED.format(version, "0.3 -0.1 0.2 0.9", "1 2 -3 4", "")
    robot, model = ls.Robot(read_urdf(text)), pin.buildModelFromXML(text)
    data, at = model.createData(), pin.neutral(model)  # cos and sin of the angle
    torques = pin.rnea(model, data, at, np.ones(1), np.ones(1))
    assert np.allclose(robot.inverse_dynamics([0.0], [1.0], [1.0]), torques, rtol=0, atol=1e-12)
    assert abs(torques[0]) > 1


@pytest.mark.quick
@pytest.mark.parametrize(
    ("version", "quaternion", "more", "message"),
    [
        ("1.0", "0 0 0 1", "", "of version 1.0, where other programs leave it out"),
        ("1.1", "0 0 0 1", 'rpy="0 0 0"', "both 'rpy' and 'quat_xyzw'"),
        ("1.1", "0 0 0 0", "", "is zero, expected a quaternion"),
        ("1.1", "0 0 1", "", "holds 3 numbers, expected four"),
        ("1.1", "0 0 1 nan", "", "'nan', expected a finite number"),
        ("2.0", "0 0 0 1", "", "version of the URDF is '2.0', expected 1.0, 1.1 or 1.2"),
    ],
)
def test_quaternions_that_are_refused(version: str, quaternion: str, more: str, message: str):
    with pytest.raises(DescriptionError, match=message):
        read_urdf(TURNED.format(version, "0 0 0 1" if version != "1.0" else quaternion, quaternion, more))


def load_quietly(file: Path) -> Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load_model(file)


def spatial_matrix(body: Inertial) -> np.ndarray:
    """(6, 6), linear part first as Pinocchio has it (whose own Inertia refuses iCub's -5e-20)."""
    cross = pin.skew(np.array(body.com))
    moment = np.array(body.inertia) - body.mass * cross @ cross
    return np.block([[body.mass * np.eye(3), -body.mass * cross], [body.mass * cross, moment]])


def joint_motion(kind: str, axis: tuple, value: float) -> pin.SE3:
    if kind == "prismatic":
        return pin.SE3(np.eye(3), value * np.array(axis))
    return pin.SE3(pin.exp3(value * np.array(axis)), np.zeros(3))


def frame_poses(model: Model, q: dict[str, float]) -> dict[str, np.ndarray]:
    """World pose of every frame at the joint values q (by joint name)."""
    poses: list[pin.SE3] = []
    for link in model.links:
        at = link.joint.placement
        step = pin.SE3(np.array(at.rotation), np.array(at.position))
        step = step * joint_motion(link.joint.kind, link.joint.axis, q[link.joint.name])
        poses.append(step if link.parent == BASE else poses[link.parent] * step)
    out = {}
    for frame in model.frames:
        at = pin.SE3(np.array(frame.placement.rotation), np.array(frame.placement.position))
        out[frame.name] = (at if frame.link == BASE else poses[frame.link] * at).homogeneous
    return out


# ---- real robots -----------------------------------------------------------------------------------------


@pytest.mark.quick
def test_all_69_files_are_here():
    assert len(FILES) == 69


@pytest.mark.quick
@pytest.mark.parametrize("name", LOADABLE)
def test_real_robots_are_those_of_pinocchio(name: str):
    """Names, folded inertias and the pose of every link at a random configuration."""
    model = load_quietly(FILES[name])
    theirs = pin.buildModelFromUrdf(str(FILES[name]))
    assert {link.joint.name for link in model.links} == set(theirs.names) - {"universe"}

    largest = max(1e-3, max(abs(x) for i in theirs.inertias for x in i.matrix().flat))
    for link in model.links:
        expected = theirs.inertias[theirs.getJointId(link.joint.name)].matrix()
        assert np.allclose(spatial_matrix(link.inertial), expected, rtol=0, atol=1e-11 * largest), link.name

    random = np.random.default_rng(len(name))
    q = {link.joint.name: random.uniform(-1, 1) for link in model.links}
    their_q = pin.neutral(theirs)
    for joint, index in zip(theirs.joints, range(theirs.njoints), strict=True):
        if index and joint.nq == 2:
            their_q[joint.idx_q : joint.idx_q + 2] = (
                math.cos(q[theirs.names[index]]),
                math.sin(q[theirs.names[index]]),
            )
        elif index:
            their_q[joint.idx_q] = q[theirs.names[index]]
    data = theirs.createData()
    pin.framesForwardKinematics(theirs, data, their_q)
    poses = frame_poses(model, q)
    bodies = [f for f in theirs.frames if f.type == pin.FrameType.BODY and f.name != "universe"]
    assert {f.name for f in bodies} == set(poses)
    for frame in bodies:
        expected = data.oMf[theirs.getFrameId(frame.name, pin.FrameType.BODY)].homogeneous
        assert np.allclose(poses[frame.name], expected, rtol=0, atol=1e-9), frame.name


@pytest.mark.quick
@pytest.mark.parametrize("name", ["ur_description/urdf/ur5_robot.urdf", "talos_data/robots/talos_reduced.urdf"])
def test_total_mass_and_mass_centre_are_those_of_pinocchio(name: str):
    model, theirs = load_quietly(FILES[name]), pin.buildModelFromUrdf(str(FILES[name]))
    poses = frame_poses(model, {link.joint.name: 0.0 for link in model.links})
    masses = np.array([link.inertial.mass for link in model.links])
    centres = np.array([(poses[link.name] @ [*link.inertial.com, 1.0])[:3] for link in model.links])
    data = theirs.createData()
    expected = pin.centerOfMass(theirs, data, pin.neutral(theirs))
    assert masses.sum() == pytest.approx(pin.computeTotalMass(theirs), rel=1e-13)
    assert masses @ centres / masses.sum() == pytest.approx(expected, abs=1e-11)


@pytest.mark.quick
@pytest.mark.parametrize("name", sorted(NOT_ROBOTS))
def test_files_that_are_no_robot_on_a_fixed_base(name: str):
    with pytest.raises(DescriptionError, match=NOT_ROBOTS[name]):
        load_model(FILES[name])


@pytest.mark.quick
def test_coordinates_follow_the_file_and_limits_arrive():
    model = load_model(FILES["ur_description/urdf/ur5_robot.urdf"])
    names = [model.links[i].joint.name for i in model.document_order]
    text = FILES["ur_description/urdf/ur5_robot.urdf"].read_text()
    assert sorted(names, key=lambda n: text.index(f'<joint name="{n}"')) == names
    first = model.links[0].joint.limits
    assert (first.effort, first.velocity) == (150.0, 3.15)
    assert first.upper == pytest.approx(2 * math.pi, abs=1e-6)


@pytest.mark.quick
def test_mimic_joints_are_free_with_one_warning():
    with pytest.warns(ModelWarning, match="'panda_finger_joint2' mimic others") as caught:
        model = load_model(FILES["panda_description/urdf/panda.urdf"])
    assert len(caught) == 1 and len(model.links) == 9


def test_five_hundred_links_load_fast(tmp_path: Path):
    body = '<inertial><origin xyz="0 0 .1" rpy=".1 0 0"/><mass value="1"/>'
    body += '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    lines = ["<robot name='r'>", "<link name='l0'/>"]
    for i in range(1, 501):
        lines.append(f"<link name='l{i}'>{body}</link>")
        lines.append(f"<joint name='j{i}' type='revolute'><parent link='l{i - 1}'/><child link='l{i}'/>")
        lines.append("<origin xyz='0 0 .1' rpy='1.5707963 0 0'/><axis xyz='0 0 1'/></joint>")
    file = tmp_path / "long.urdf"
    file.write_text("\n".join([*lines, "</robot>"]))
    load_model(file)
    assert len(load_model(file).links) == 500


# ---- meaning ---------------------------------------------------------------------------------------------

INERTIAL = (
    '<inertial><origin xyz="0.1 0 0" rpy="0 0 1.57079632679"/><mass value="2"/>'
    '<inertia ixx="1" iyy="2" izz="2.5" ixy="0.1" ixz="0" iyz="0"/></inertial>'
)
ARM = f"""<?xml version="1.0"?>
<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <link name="world"/>
  <link name="upper">{INERTIAL}</link>
  <link name="lower"/>
  <joint name="shoulder" type="revolute">
    <origin xyz="0 0 1" rpy="0 1.57079632679 0"/>
    <parent link="world"/><child link="upper"/>
    <axis xyz="0 0 2"/>
    <limit lower="-1" upper="2" velocity="3" effort="4"/>
    <dynamics damping="0.5" friction="0.25"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/><child link="lower"/>
  </joint>
</robot>
"""


@pytest.mark.quick
def test_every_value_arrives_and_defaults_are_the_specification_s():
    model = read_urdf(ARM, gravity=(0, 0, -1.62))
    upper, lower = model.links
    assert (model.name, model.base, model.gravity) == ("arm", "world", (0.0, 0.0, -1.62))
    assert upper.joint.placement.rotation == ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0))
    assert upper.joint.placement.position == (0.0, 0.0, 1.0)
    assert upper.joint.axis == (0.0, 0.0, 1.0)
    limits = upper.joint.limits
    assert (limits.lower, limits.upper, limits.velocity, limits.effort) == (-1, 2, 3, 4)
    assert (upper.joint.damping, upper.joint.friction, upper.joint.armature) == (0.5, 0.25, 0.0)
    assert (upper.inertial.mass, upper.inertial.com) == (2.0, (0.1, 0.0, 0.0))
    assert upper.inertial.inertia == ((2.0, -0.1, 0.0), (-0.1, 1.0, 0.0), (0.0, 0.0, 2.5))
    assert (lower.joint.kind, lower.joint.axis) == ("revolute", (1.0, 0.0, 0.0))
    assert (lower.joint.limits.lower, lower.joint.limits.upper) == (-math.inf, math.inf)
    assert lower.inertial.mass == 0.0
    assert find_frame(model, "world").link == BASE


@pytest.mark.quick
def test_rpy_turns_about_fixed_axes():
    expected = pin.rpy.rpyToMatrix(0.3, -0.7, 1.9)
    assert np.allclose(rotation_from_rpy(0.3, -0.7, 1.9), expected, rtol=0, atol=1e-15)
    assert rotation_from_rpy(1.57079632679, 0, 0)[1][1] == 0.0
    assert rotation_from_rpy(1.5707963, 0, 0)[1][1] == math.cos(1.5707963)  # too coarse to be called a right angle


@pytest.mark.quick
def test_bytes_text_and_other_encodings():
    model = read_urdf(ARM)
    assert read_urdf(ARM.encode()) == model
    assert read_urdf("\ufeff" + ARM) == model
    assert read_urdf(ARM.replace('"1.0"', '"1.0" encoding="utf-16"', 1)) == model
    assert read_urdf(ARM.replace('"1.0"', '"1.0" encoding="utf-16"', 1).encode("utf-16")) == model
    latin = ARM.replace('"1.0"', '"1.0" encoding="iso-8859-1"', 1).replace("elbow", "codo_ñ")
    assert read_urdf(latin.encode("latin-1")).links[1].joint.name == "codo_ñ"


@pytest.mark.quick
def test_an_xml_suffix_is_read_by_its_root(tmp_path: Path):
    file = tmp_path / "arm.xml"
    file.write_text(ARM)
    assert load_model(file) == read_urdf(ARM)
    file.write_text("<mujoco/>")
    with pytest.raises(DescriptionError, match="no joint"):
        load_model(file)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("robot", "gltf", 2, r"the root element is <gltf>, expected <robot>"),
        ('type="revolute"', 'type="hinge"', 6, r"type 'hinge', expected"),
        (' type="revolute"', "", 6, r"<joint> has no attribute 'type'"),
        ('<link name="world"/>', "<link/>", 3, r"<link> has no attribute 'name'"),
        ('<link name="world"/>', '<link name="upper"/>', 4, r"link name 'upper' is used twice"),
        ('<parent link="world"/>', "", 6, r"joint 'shoulder' has no <parent>"),
        ('<parent link="world"/>', "<parent/>", 8, r"<parent> has no attribute 'link'"),
        ('parent link="world"', 'parent link="wrold"', 8, r"parent link 'wrold', .*did you mean 'world'"),
        ('child link="lower"', 'child link="upper"', 5, r"'world', 'lower' have no parent joint"),
        ('parent link="world"', 'parent link="lower"', 6, r"'upper', 'lower' form a loop"),
        ('"shoulder"', '"elbow"', 13, r"joint name 'elbow' is used twice"),
        ('<axis xyz="0 0 2"/>', '<axis xyz="0 0 0"/>', 6, r"axis of joint 'shoulder' .* not zero"),
        ('<axis xyz="0 0 2"/>', '<axis xyz="0 2"/>', 9, r"'xyz' of <axis> holds 2 numbers, expected three"),
        (
            '<axis xyz="0 0 2"/>',
            '<axis xyz="0 0 z"/>',
            9,
            r"'xyz' of <axis> is 'z', expected a finite number",
        ),
        ('<axis xyz="0 0 2"/>', '<axis xyz="0 0 1"/><axis/>', 9, r"<axis> is in one <joint> twice"),
        ('mass value="2"', 'mass value="-2"', 6, r"mass of link 'upper' is -2.0, expected zero or more"),
        ('mass value="2"', 'mass value="nan"', 4, r"'value' of <mass> is 'nan', expected a finite number"),
        ('mass value="2"', 'mass value="inf"', 4, r"'value' of <mass> is 'inf'"),
        ('mass value="2"', 'mass value="1e999"', 4, r"'value' of <mass> is '1e999'"),
        ('mass value="2"', 'mass value="1e99"', 4, r"'value' of <mass> is '1e99', expected .* below 1e\+30"),
        ('mass value="2"', 'mass value="1_0"', 4, r"'value' of <mass> is '1_0'"),
        ('mass value="2"', 'mass value="٢"', 4, r"'value' of <mass> is '٢'"),
        ('mass value="2"', 'mass value=""', 4, r"<mass> has no attribute 'value'"),
        ('<mass value="2"/>', "", 4, r"inertial of link 'upper' has no <mass>"),
        ('ixx="1"', "", 4, r"<inertia> has no attribute 'ixx'"),
        ('ixx="1"', 'ixx="-1"', 6, r"inertia of link 'upper' .* no negative moment"),
        ('friction="0.25"', 'friction="-0.5"', 6, r"friction of joint 'shoulder' .* zero or more"),
        ('lower="-1"', 'lower="nan"', 6, r"limits of joint 'shoulder'"),
        ('effort="4"', 'effort="strong"', 10, r"'effort' of <limit> is 'strong'"),
    ],
)
def test_mistakes_are_refused_with_file_and_line(tmp_path: Path, old: str, new: str, line: int, message: str):
    assert old in ARM
    text = ARM.replace(old, new)
    file = tmp_path / "arm.urdf"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(DescriptionError, match=message) as caught:
        load_model(file)
    assert str(caught.value).startswith(f"{file}, line {line}: ")


@pytest.mark.parametrize(
    ("old", "new"), [('mass value="2"', 'mass value="${m}"'), ('<link name="lower"/>', "<xacro:arm/>")]
)
def test_xacro_that_cannot_be_expanded_is_refused(tmp_path: Path, old: str, new: str):
    file = tmp_path / "arm.urdf"
    file.write_text(ARM.replace(old, new), encoding="utf-8")
    with pytest.raises(DescriptionError, match="xacro") as caught:
        load_model(file)
    assert str(caught.value).startswith(str(file))


@pytest.mark.quick
def test_a_loop_without_base_is_refused():
    looped = ARM.replace('<link name="world"/>', "").replace('parent link="world"', 'parent link="lower"')
    with pytest.raises(DescriptionError, match="every link has a parent"):
        read_urdf(looped)


@pytest.mark.quick
def test_a_link_on_two_joints_is_refused():
    extra = '<joint name="third" type="fixed"><parent link="world"/><child link="lower"/></joint></robot>'
    with pytest.raises(DescriptionError, match=r"link name 'lower' is used twice.*one parent joint"):
        read_urdf(ARM.replace("</robot>", extra))


# ---- broken and hostile files ------------------------------------------------------------------------------

LAUGHS = "\n".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 30))


@pytest.mark.quick
@pytest.mark.parametrize(
    "head",
    [
        f'<!DOCTYPE r [<!ENTITY l0 "ha">{LAUGHS}]>',
        '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE r SYSTEM "http://localhost:1/evil.dtd">',
        '<!DOCTYPE r [<!ENTITY % p SYSTEM "file:///dev/random"> %p;]>',
        "<!DOCTYPE robot>",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_any_document_type_is_refused_at_once(head: str, encoding: str):
    with pytest.raises(DescriptionError, match=r"line 1: a document type or entity is declared.*for safety"):
        read_urdf(f"{head}<robot name='&l29;'/>".encode(encoding))


@pytest.mark.quick
def test_undeclared_entities_are_refused():
    with pytest.raises(DescriptionError, match=r"not valid XML .*undefined entity"):
        read_urdf("<robot name='&x;'/>")


@pytest.mark.quick
def test_deep_nesting_is_refused():
    with pytest.raises(DescriptionError, match="line 1: elements are nested deeper than 200"):
        read_urdf(b"<a>" * 6_000_000)  # 18 MB, below the limit of size


@pytest.mark.quick
def test_a_hundred_megabytes_are_refused(tmp_path: Path):
    file = tmp_path / "deep.urdf"
    block = b"<a>" * 1_000_000
    with open(file, "wb") as stream:
        for _ in range(34):
            stream.write(block)
    with pytest.raises(DescriptionError, match="has 102 MB, expected at most 20 MB"):
        load_model(file)


@pytest.mark.slow
def test_too_many_elements_are_refused():
    with pytest.raises(DescriptionError, match="more than 500000 elements"):
        read_urdf(b"<robot>" + b"<a/>" * 500_001)


@pytest.mark.quick
def test_every_truncation_is_an_error(tmp_path: Path):
    data = ARM.rstrip().encode()
    for length in range(1, len(data), 7):
        with pytest.raises(DescriptionError, match=r"not valid XML|no URDF|empty"):
            read_urdf(data[:length])


@pytest.mark.quick
def test_random_damage_never_escapes_as_another_error():
    random = np.random.default_rng(0)
    clean = np.frombuffer(ARM.encode(), dtype=np.uint8)
    for _ in range(500):
        data = clean.copy()
        data[random.integers(0, len(data), 3)] = random.integers(0, 256, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            try:
                assert isinstance(read_urdf(data.tobytes()), Model)
            except DescriptionError as error:
                assert str(error)


@pytest.mark.quick
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file or text is empty"),
        (b"   \n ", "not valid XML .*no element found"),
        (b"\x7fELF\x00\x00\x01", "this is a binary file, expected XML text"),
        (b"\x89PNG\r\n\x1a\n", "not valid XML"),
        (b"just words", "not valid XML .*syntax error"),
        (b"<robot name='\xff'/>", "not valid XML .*invalid token"),
        (b"<?xml version='1.0' encoding='klingon'?><robot/>", "unknown encoding|encoding cannot be read"),
        (b"<?xml version='1.0' encoding='shift_jis'?><robot/>", "encoding"),
        (b"<robot/><robot/>", "not valid XML .*junk after document element"),
        (b"<robot/>", "the robot has no links"),
        (b"<robot><link name='a'/></robot>", "none of them moves"),
    ],
)
def test_files_that_are_something_else(tmp_path: Path, content: bytes, message: str):
    file = tmp_path / "x.urdf"
    file.write_bytes(content)
    with pytest.raises(DescriptionError, match=message) as caught:
        load_model(file)
    assert str(caught.value).startswith(str(file))


@pytest.mark.quick
def test_paths_that_are_no_description(tmp_path: Path):
    folder = tmp_path / "robot.urdf"
    folder.mkdir()
    with pytest.raises(DescriptionError, match="this is a directory"):
        load_model(folder)
    for missing in ("none.urdf", "none.toml", "none.stl"):
        with pytest.raises(DescriptionError, match="there is no such file"):
            load_model(tmp_path / missing)
    (tmp_path / "arm.stl").write_text("solid")
    with pytest.raises(DescriptionError, match=r"suffix '.stl' is not known, expected .urdf, .xml, .mjcf"):
        load_model(tmp_path / "arm.stl")
    (tmp_path / "arm.urdf.xacro").write_text(ARM)
    with pytest.raises(DescriptionError, match="this is xacro"):
        read_urdf(tmp_path / "arm.urdf.xacro")
    with pytest.raises(DescriptionError, match="cannot be read"):
        load_model("bad\0name.urdf")
    with pytest.raises(DescriptionError, match="expected a path, an open file"):
        load_model(3)  # type: ignore[arg-type]
    with pytest.raises(DescriptionError, match="expected a path or text"):
        read_urdf(None)  # type: ignore[arg-type]


@pytest.mark.quick
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX")
def test_a_pipe_does_not_hang(tmp_path: Path):
    pipe = tmp_path / "pipe.urdf"
    os.mkfifo(pipe)
    with pytest.raises(DescriptionError, match="this is a device or pipe"):
        load_model(pipe)


@pytest.mark.quick
def test_elements_know_their_lines():
    root = parse(b"<a>\n<b/>\n\n<c x='1'>\n<d/></c></a>", "t")
    assert [(e.tag, e.line) for e in (root, *root.children, *root.children[1].children)] == [
        ("a", 1), ("b", 2), ("c", 4), ("d", 5),
    ]  # fmt: skip


@pytest.mark.quick
def test_an_empty_file_and_a_folder_get_one_sentence(tmp_path: Path):
    (tmp_path / "empty.urdf").write_text("")
    (tmp_path / "folder.urdf").mkdir()
    for name, reason in (("empty.urdf", "the file or text is empty"), ("folder.urdf", "this is a directory")):
        with pytest.raises(DescriptionError) as refusal:
            load_model(tmp_path / name)
        assert str(refusal.value).startswith(f"{tmp_path / name}: {reason}, expected")


def test_harmless_files_are_read():
    """Declarations that expanding left behind, and elements that say the same twice."""
    plain = read_urdf(ARM)
    declared = ARM.replace('<link name="world"/>', '<xacro:arg name="m" default="${2 * m}"/><link name="world"/>')
    assert read_urdf(declared) == plain
    axis = ARM.replace('<axis xyz="0 0 2"/>', '<axis xyz="0 0 2"/><axis xyz="0 0 2.0"/>')
    assert read_urdf(axis) == plain
    inertia = re.sub(r"(<inertia [^>]*/>)", r"\1\1", ARM)
    assert inertia != ARM and read_urdf(inertia) == plain
    with pytest.raises(DescriptionError, match="twice"):
        read_urdf(ARM.replace('<axis xyz="0 0 2"/>', '<axis xyz="0 0 2"/><axis xyz="0 1 2"/>'))


def test_negative_damping_is_a_warning():
    with pytest.warns(ModelWarning, match="damping of joint 'shoulder' is negative"):
        model = read_urdf(ARM.replace('damping="0.5"', 'damping="-0.5"'))
    assert next(link for link in model.links if link.joint.name == "shoulder").joint.damping == -0.5
    assert any("damping is negative" in finding.what for finding in lint(model))


def test_what_a_robot_without_mass_can_do_is_said_truly():
    massless = re.sub(r"<inertial>.*?</inertial>", "", ARM, flags=re.DOTALL)
    with pytest.warns(ModelWarning) as caught:
        robot = ls.Robot(read_urdf(massless))
    assert not any("inverse dynamics works" in str(warning.message) for warning in caught)
    assert any("no mass or inertia at all" in str(warning.message) for warning in caught)
    with pytest.raises(DescriptionError):
        robot.inverse_dynamics(robot.neutral(), np.zeros(robot.nv), np.zeros(robot.nv))
    assert robot.pose(robot.neutral(), robot.frame_names[-1]).shape == (4, 4)


def test_a_warning_of_the_base_names_the_file(tmp_path: Path):
    heavy = '<link name="world"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="9"/></inertial></link>'
    file = tmp_path / "arm_on_a_cart.urdf"
    file.write_text(ARM.replace('<link name="world"/>', heavy))
    with pytest.warns(ModelWarning) as caught:
        ls.load(file, base="floating")
    own = [str(warning.message) for warning in caught if "'world' violates" in str(warning.message)]
    assert own and "arm_on_a_cart.urdf" in own[0]
