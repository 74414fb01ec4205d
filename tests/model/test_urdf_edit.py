"""A URDF file with other inertias and losses: all else in it stays, and other programs read the same dynamics."""

from __future__ import annotations

import importlib
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pinocchio as pin
import pytest

import linksweep as ls
from linksweep.model.formats.urdf import to_srdf
from linksweep.model.formats.urdf_edit import edited_urdf
from linksweep.model.quantities import ten_of

mujoco: Any = importlib.import_module("mujoco")  # it has no types that pyright could see

FINGERS = ("panda_finger_joint1", "panda_finger_joint2")
FILES = {
    "ur_description/urdf/ur5_robot.urdf": (),
    "panda_description/urdf/panda.urdf": FINGERS,
    "xarm_description/urdf/xarm7.urdf": (),
    "tiago_description/robots/tiago_no_hand.urdf": (),
    "talos_data/robots/talos_reduced.urdf": (),
    "pr2_description/urdf/pr2.urdf": (),
}

SMALL = """<?xml version='1.0' encoding="utf-8"?>
<!-- a comment with <link name="not one"/> -->
<robot name="small"  version='1.0'>
  <material name="blue"><color rgba="0 0 1 1"/></material>
  <link name="base"/>
  <link name='arm'>
    <!-- measured by hand, ± 1 % -->
    <inertial><!-- by a balance --><mass value="2"/><origin xyz="0.1 0 0"/><inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>
    <visual><geometry><mesh filename="meshes/arm &gt; 1.stl"/></geometry></visual>
  </link>
  <joint name="turn" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="5" velocity="2"/><dynamics damping="0.1" stiffness="7"/></joint>
  <link name="tool"><inertial><mass value="1"/><inertia ixx=".01" iyy=".01" izz=".01" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="mount" type="fixed"><parent link="arm"/><child link="tool"/><origin xyz="0.5 0 0"/></joint>
  <link name="light" />
  <joint name="slide" type="prismatic"><parent link="tool"/><child link="light"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="5" velocity="2"/>
  </joint>
  <transmission name="t"><joint name="turn"/><actuator name="motor"/></transmission>
  <transmission name="u">
    <joint name="slide"/>
    <actuator name="geared">
      <drake:gear_ratio value="10"/>
    </actuator>
  </transmission>
</robot>
"""  # noqa: E501


def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.urdf"
    path.write_text(SMALL, encoding="utf-8")
    return path


def changed(robot: ls.Robot, seed: int = 0) -> ls.Robot:
    rng = np.random.default_rng(seed)
    tens = robot.standard_parameters[: 10 * len(robot.link_names)].reshape(-1, 10)
    bodies = {name: ten * rng.uniform(0.9, 1.2) for name, ten in zip(robot.link_names, tens, strict=True) if ten[0] > 0}
    robot = robot.with_armature(rng.uniform(0.1, 1.0, robot.nv)).with_inertia(bodies)
    damping, friction = rng.uniform(0.1, 1.0, (2, robot.nv))
    return robot.with_dissipation(damping, friction, torque_offset=rng.normal(size=robot.nv))


def without_numbers(text: str) -> str:
    """The text without inertials, dynamics, and what was added for Drake."""
    text = re.sub(r"<inertial>.*?</inertial>|<dynamics[^>]*/>|<drake:rotor_inertia[^>]*/>", "", text, flags=re.DOTALL)
    text = text.replace(' xmlns:drake="http://drake.mit.edu"', "").replace("</actuator>", "")
    return re.sub(r"(<actuator[^>]*?)\s*/?>", r"\1>", re.sub(r"\s+", " ", text)).replace("> <", "><")


@pytest.mark.parametrize(
    "name", [pytest.param(k, marks=pytest.mark.slow if i > 1 else ()) for i, k in enumerate(FILES)]
)
def test_real_files_keep_everything_else(name: str, tmp_path: Path):
    path = oracles.FILES[name]
    locked = [joint for joint in FILES[name]]
    robot = oracles.load_quietly(path).lock(locked) if locked else oracles.load_quietly(path)
    original = path.read_text(encoding="utf-8")
    assert robot.to_urdf(path) == original  # nothing changed: nothing is written otherwise
    new = changed(robot)
    text = new.to_urdf(path)
    assert without_numbers(text) == without_numbers(original)
    assert text.count("<visual") == original.count("<visual")
    (tmp_path / "new.urdf").write_text(text, encoding="utf-8")
    again = oracles.load_quietly(tmp_path / "new.urdf")
    assert not locked or set(locked) <= set(again.joint_names)  # they are joints still
    again = again.lock(locked) if locked else again
    rng = np.random.default_rng(1)
    q = np.array([new.random(rng) for _ in range(4)])
    qd, qdd = rng.normal(size=(2, 4, new.nv))
    expected = new.inverse_dynamics(q, qd, qdd, dissipation=True)
    assert np.abs(expected - robot.inverse_dynamics(q, qd, qdd, dissipation=True)).max() > 0.1
    assert np.allclose(again.inverse_dynamics(q, qd, qdd, dissipation=True), expected, rtol=1e-10, atol=1e-9)


def test_what_hangs_on_fixed_joints_is_merged(tmp_path: Path):
    path = small(tmp_path)
    robot = oracles.load_quietly(path)
    text = changed(robot).to_urdf(path)
    assert text.count("<inertial>") == 1 and 'stiffness="7"' in text and "± 1 %" in text
    assert "by a balance" in text
    assert "<drake:rotor_inertia" in text and text.count("xmlns:drake") == 1
    (tmp_path / "b.urdf").write_text(text, encoding="utf-8")
    again = oracles.load_quietly(tmp_path / "b.urdf")
    assert np.allclose(again.standard_parameters, changed(robot).standard_parameters, rtol=1e-14)
    assert np.array_equal(again.torque_offset, changed(robot).torque_offset)
    # before its gear the rotor of the slide is 100 times lighter
    ratio = float(re.findall(r'rotor_inertia value="([^"]*)"', text)[1]) / again.armature[1]
    assert np.isclose(ratio, 0.01)
    # once more, from the edited file: nothing is added twice
    twice = again.with_armature(0.5).to_urdf(tmp_path / "b.urdf")
    assert twice.count("drake:rotor_inertia") == text.count("drake:rotor_inertia")
    assert twice.count("<dynamics") == text.count("<dynamics")


def test_other_programs_read_it(tmp_path: Path):
    path = small(tmp_path)
    new = changed(oracles.load_quietly(path)).with_inertia({"light": ls.body(0.5, (0, 0, 0.1), (1, 1, 1))})
    (tmp_path / "b.urdf").write_text(new.to_urdf(path), encoding="utf-8")
    (tmp_path / "b.srdf").write_text(to_srdf(new.model), encoding="utf-8")
    model = pin.buildModelFromUrdf(str(tmp_path / "b.urdf"))
    assert np.allclose(model.damping, new.damping) and np.allclose(model.armature, 0.0)
    pin.loadRotorParameters(model, str(tmp_path / "b.srdf"), False)
    assert np.allclose(model.armature, new.armature)
    rng = np.random.default_rng(2)
    q, qd, qdd = rng.normal(size=(3, 2))
    assert np.allclose(pin.rnea(model, model.createData(), q, qd, qdd), new.inverse_dynamics(q, qd, qdd), rtol=1e-12)
    bare = re.sub(r"<visual>.*?</visual>", "", new.to_urdf(path), flags=re.DOTALL)
    compiled = mujoco.MjModel.from_xml_string(bare)
    assert np.allclose(compiled.dof_damping, new.damping) and np.allclose(compiled.dof_frictionloss, new.friction)


def test_meshes_are_found_from_another_folder(tmp_path: Path):
    path = small(tmp_path)
    (tmp_path / "deep" / "out").mkdir(parents=True)
    text = edited_urdf(oracles.load_quietly(path).model, path, tmp_path / "deep" / "out")
    assert 'filename="../../meshes/arm &gt; 1.stl"' in text


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_other_encodings(encoding: str, tmp_path: Path):
    path = tmp_path / "a.urdf"
    path.write_bytes(SMALL.replace('encoding="utf-8"', f'encoding="{encoding}"').encode(encoding))
    text = changed(oracles.load_quietly(path)).to_urdf(path)
    assert "± 1 %" in text and 'encoding="utf-8"' in text
    (tmp_path / "b.urdf").write_text(text, encoding="utf-8")
    assert oracles.load_quietly(tmp_path / "b.urdf").nv == 2


def test_another_robot_is_refused(tmp_path: Path):
    path = small(tmp_path)
    with pytest.raises(ls.ArgumentError, match="expected the file from which"):
        ls.robots.planar(2).to_urdf(path)


def test_a_link_that_weighs_less_than_what_is_locked_to_it(tmp_path: Path):
    path = oracles.FILES["panda_description/urdf/panda.urdf"]
    robot = oracles.load_quietly(path).lock(FINGERS)
    last = robot.link_names[-1]
    with pytest.raises(ls.ArgumentError, match=r"finger alone weigh"):
        robot.with_inertia({last: 1e-3 * robot.standard_parameters[-17:-7]}).to_urdf(path)


def test_a_link_without_inertia_gets_one(tmp_path: Path):
    path = small(tmp_path)
    robot = oracles.load_quietly(path).with_armature(0.1).with_inertia({"light": ls.body(0.5, (0, 0, 0.1), (1, 1, 1))})
    text = robot.to_urdf(path)
    assert text.count("<inertial>") == 3  # the others stay as they are written
    (tmp_path / "b.urdf").write_text(text, encoding="utf-8")
    assert np.allclose(oracles.load_quietly(tmp_path / "b.urdf").standard_parameters, robot.standard_parameters)


def solid(*links: str) -> str:
    """The small robot with an inertia of these links."""
    text = SMALL
    for link in links:
        body = SMALL[SMALL.index('<link name="tool">') :].splitlines()[0].replace("tool", link)
        text = re.sub(f'<link name="{link}" ?/>', body, text)
    return text


def test_limits_origins_frames_and_mimic_joints(tmp_path: Path):
    text = solid("light")
    path = tmp_path / "small.urdf"
    path.write_text(text, encoding="utf-8")
    robot = ls.load(path)
    assert robot.to_urdf(original=True) == text
    pose = np.eye(4)
    pose[:3, 3] = 0.1, 0.2, 0.3
    new = robot.with_limits(lower={"turn": -2.0}, effort={"slide": 9.0}).with_frame("camera", "tool", pose)
    new = new.with_couplings(ls.Coupling("slide", "turn", 0.5, 0.1))
    edited = new.to_urdf(original=True)
    again = ls.load(edited, mimic="couple")
    assert again == new
    for words in ("<!-- measured by hand, ± 1 % -->", "meshes/arm &gt; 1.stl", '<color rgba="0 0 1 1"/>', 'upper="1"'):
        assert words in edited
    free = robot.with_limits(lower={"turn": -np.inf}, upper={"turn": np.inf})
    assert 'type="continuous"' in free.to_urdf(original=True) and ls.load(free.to_urdf(original=True)) == free
    moved = ls.load(text.replace('<origin xyz="0.5 0 0"/>', "").replace('<axis xyz="1 0 0"/>', '<axis xyz="0 1 0"/>'))
    same_tree = ls.load(edited_urdf(moved.model, path))
    q = np.array([0.3, 0.2])
    assert np.abs(same_tree.pose(q, "light") - moved.pose(q, "light")).max() < 1e-15


def test_floating_base_and_other_folder(tmp_path: Path):
    path, text = tmp_path / "small.urdf", solid("light", "base")
    path.write_text(text, encoding="utf-8")
    robot = ls.load(path, base="floating")
    assert robot.to_urdf(original=True) == text
    heavier = robot.with_payload("base", 3.0)
    (tmp_path / "other").mkdir()
    heavier.to_urdf(original=True, path=tmp_path / "other" / "heavy.urdf")
    assert "../meshes/arm" in (tmp_path / "other" / "heavy.urdf").read_text(encoding="utf-8")
    assert ls.load(tmp_path / "other" / "heavy.urdf", base="floating") == heavier
    with pytest.raises(ls.ArgumentError, match="not loaded from a file"):
        ls.robots.planar(2).to_urdf(original=True)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_round_trips_of_every_robot(part: int):
    """Both ways of writing URDF are read as the same robot; what is not changed is not touched."""
    for name in oracles.LOADABLE[part::4]:
        robot = oracles.load_quietly(oracles.FILES[name])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            same, plain = ls.load(robot.to_urdf(original=True)), ls.load(robot.to_urdf())
        assert same == robot, name
        assert plain.joint_names == robot.joint_names and set(plain.frame_names) == set(robot.frame_names)
        for ours, theirs in zip(robot.model.links, plain.model.links, strict=True):
            a, b = ten_of(ours.inertial), ten_of(theirs.inertial)
            assert np.abs(a - b).max() <= 1e-12 * np.abs(a).max(), name
            for key in ("rotation", "position"):
                a, b = (np.array(getattr(link.joint.placement, key)) for link in (ours, theirs))
                assert np.abs(a - b).max() <= 1e-12, name
            assert np.abs(np.subtract(ours.joint.axis, theirs.joint.axis)).max() <= 1e-12, name
            assert (ours.parent, ours.joint.limits) == (theirs.parent, theirs.joint.limits), name
