"""Closed loops in URDF files: URDF+, Drake's and Isaac Sim's loop_joint, Gazebo; written and read again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from error_checks import refused

import linksweep as ls
from linksweep.errors import DescriptionError, ModelWarning

BODY = '<inertial><origin xyz="0 0.5 0"/><mass value="1"/><inertia ixx="0.1" iyy="0.01" izz="0.1"/></inertial>'
JOINT = """<joint name="{0}" type="revolute" {4}><origin xyz="{3}"/><parent link="{1}"/><child link="{2}"/>
  <axis xyz="0 0 1"/><limit lower="-10" upper="10" effort="30" velocity="1"/></joint>"""
TREE = (
    '<robot name="parallelogram"><link name="base"/>'
    + "".join(f'<link name="{name}">{BODY}</link>' for name in ("left", "right", "rod"))
    + JOINT.format("j1", "base", "left", "0 0 0", 'independent="true"')
    + JOINT.format("j2", "base", "right", "1 0 0", 'independent="false"')
    + JOINT.format("j3", "left", "rod", "0 1 0", 'independent="false"')
    + "{}</robot>"
)
LOOPS = {
    "URDF+": """<loop name="closure" type="{0}">
      <predecessor link="rod"><origin xyz="1 0 0"/></predecessor>
      <successor link="right"><origin xyz="0 1 0"/></successor><axis xyz="0 0 1"/></loop>""",
    "former URDF+": """<constraint name="closure" type="{0}">
      <predecessor link="rod"/><predecessor_origin xyz="1 0 0"/>
      <successor link="right"/><successor_origin xyz="0 1 0"/><axis xyz="0 0 1"/></constraint>""",
    "loop_joint": """<loop_joint name="closure" type="{0}">
      <link1 link="rod" xyz="1 0 0" rpy="0 0 0"/><link2 link="right" xyz="0 1 0"/><axis xyz="0 0 1"/></loop_joint>""",
    "Gazebo": """<gazebo><joint name="closure" type="{0}"><parent>rod</parent><child>right</child>
      <pose>0 1 0 0 0 0</pose><axis><xyz>0 0 1</xyz></axis></joint></gazebo>""",
}
Q = np.array([0.4, 0.4, -0.4])  # of a parallelogram: the rod keeps its direction


def tree(**options: Any) -> ls.Robot:
    return ls.load(TREE.format(""), **options)


@pytest.mark.parametrize("form", LOOPS)
@pytest.mark.parametrize(("type_", "kind"), [("revolute", "hinge"), ("spherical", "point")])
@pytest.mark.cases(8)
def test_forms_are_one_constraint(form: str, type_: str, kind: str):
    robot = ls.load(TREE.format(LOOPS[form].format("ball" if (form, kind) == ("Gazebo", "point") else type_)))
    (constraint,) = robot.constraints
    assert constraint.kind == kind and constraint.name == "closure"
    assert np.abs(robot.constraint_error(Q)).max() < 1e-12
    assert robot.mobility(Q).degrees_of_freedom == 1
    # the same as frames and a constraint made by hand
    a, b = np.eye(4), np.eye(4)
    a[:3, 3], b[:3, 3] = (0, 1, 0), (1, 0, 0)
    other = tree().with_frame("a", "right", a).with_constraints(ls.Constraint(kind, "a", "rod", at=b))
    rng = np.random.default_rng(0)
    qd = robot.project_velocity(Q, rng.standard_normal(3))
    tau = rng.standard_normal(3)
    ours, theirs = (one.forward_dynamics(Q, qd, tau) for one in (robot, other))
    assert np.abs(ours - theirs).max() < 1e-9 * np.abs(theirs).max()


@pytest.mark.parametrize(("type_", "kind"), [("fixed", "rigid"), ("prismatic", "slider")])
def test_other_types(type_: str, kind: str):
    robot = ls.load(TREE.format(LOOPS["URDF+"].format(type_).replace("0 0 1", "1 2 2")))
    assert robot.constraints[0].kind == kind
    axis = [row[2] for row in robot.constraints[0].at.rotation]
    assert np.abs(np.array(axis) - np.array([1, 2, 2]) / 3).max() < 1e-12


def test_written_and_read_again(tmp_path: Any):
    robot = ls.load(TREE.format(LOOPS["URDF+"].format("revolute")))
    again = ls.load(robot.to_urdf())
    assert len(again.constraints) == 1 and again.constraints[0].kind == "hinge"
    assert np.abs(again.constraint_jacobian(Q) - robot.constraint_jacobian(Q)).max() < 1e-12
    file = tmp_path / "open.urdf"
    file.write_text(TREE.format(""))
    pose = np.eye(4)
    pose[:3, 3] = 1, 0, 0
    closed = ls.load(file).with_constraints(ls.Constraint("point", "right", "rod", at=pose, name="pin"))
    text = closed.to_urdf(original=True)
    assert ls.load(text).constraints == closed.constraints and text.startswith(TREE.partition("{}")[0])


def test_couplings_of_urdf_plus():
    line = '<coupling name="belt"><predecessor link="left"/><successor link="right"/><ratio value="2"/></coupling>'
    robot = ls.load(TREE.format(line), mimic="couple")
    assert robot.couplings == (ls.Coupling("j2", "j1", 2.0),)
    with pytest.warns(ModelWarning, match="'j2' mimic others"):
        assert ls.load(TREE.format(line)).nv == 3
    with pytest.warns(ModelWarning, match="'belt' are left out"):
        ls.load(TREE.format(line.replace('"right"', '"rod"')), mimic="couple")
    swapped = line.replace('"left"', '"x"').replace('"right"', '"left"').replace('"x"', '"right"')
    assert ls.load(TREE.format(swapped), mimic="couple").couplings == (ls.Coupling("j2", "j1", 0.5),)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('link="rod"', 'link="rot"'), "'rot'; did you mean 'rod'|'rot'"),
        (('type="revolute"', 'type="gearbox"'), "'gearbox'"),
        (('axis xyz="0 0 1"', 'axis xyz="0 0 0"'), "not zero"),
        (("<successor", "<other"), "no <successor>"),
        (('name="closure"', ""), "no attribute 'name'"),
    ],
)
def test_mistakes(change: tuple[str, str], message: str):
    text = LOOPS["URDF+"].format("revolute").replace(*change)
    if change[0] == "<successor":
        text = text.replace("</successor>", "</other>")
    refused(DescriptionError, message, lambda: ls.load(TREE.format(text)))


def test_joints_of_gazebo_that_are_no_constraint():
    with pytest.warns(ModelWarning, match="'closure' of <gazebo> elements are left out"):
        assert not ls.load(TREE.format(LOOPS["Gazebo"].format("gearbox"))).constraints
