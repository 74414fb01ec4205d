"""What a URDF may hold besides arms: planar, floating and mimic joints, a single body. All files: test_all_robots.py"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pin_models
import pinocchio as pin
import pytest

import linksweep as ls
from linksweep.errors import ModelWarning
from linksweep.model.formats.urdf import read_urdf
from linksweep.model.model import Coupling

EMPTY = "ur_description/urdf/ur3.urdf"  # it holds no link


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")


def test_a_file_without_links_is_refused_on_any_base():
    with pytest.raises(ls.DescriptionError, match="has no links"):
        ls.load(oracles.FILES[EMPTY], base="floating")


# ---- multi-DOF joints, and the base ----------------------------------------------------------------

BODY = (
    '<inertial><origin xyz=".1 0 .2"/><mass value="2"/>'
    '<inertia ixx=".3" iyy=".2" izz=".25" ixy="0" ixz="0" iyz="0"/></inertial>'
)
VEHICLE = f"""<robot name="vehicle">
  <link name="odom">{BODY}</link><link name="chassis">{BODY}</link><link name="arm">{BODY}</link>
  <joint name="turn" type="continuous"><parent link="chassis"/><child link="arm"/><axis xyz="0 1 0"/></joint>
  <joint name="drive" type="planar">
    <parent link="odom"/><child link="chassis"/><origin xyz="0 0 1" rpy="0.3 0 0"/><axis xyz="0 0 2"/>
    <limit effort="1" velocity="1"/>
  </joint>
</robot>"""


@pytest.mark.parametrize("kind", ["planar", "floating"])
def test_moving_bases_in_the_file(kind: str):
    text = VEHICLE.replace('type="planar"', f'type="{kind}"')
    robot = ls.Robot(read_urdf(text))
    assert robot.joint_names == ("turn", "drive")  # the order of the file
    assert robot.nq == 1 + (3 if kind == "planar" else 7)
    model: Any = pin.buildModelFromXML(text)
    data, where = model.createData(), pin_models.places(robot, model)
    rng = np.random.default_rng(0)
    q, (qd, qdd) = robot.random(rng), rng.uniform(-1, 1, (2, robot.nv))
    rates = [pin_models.their_v(where, v) for v in (qd, qdd)]
    tau = pin.rnea(model, data, pin_models.their_q(robot, model, q), *rates)[where]
    assert oracles.relative(robot.inverse_dynamics(q, qd, qdd), tau) <= 1e-13


def test_the_axis_of_a_planar_joint_is_its_normal():
    robot = ls.Robot(read_urdf(VEHICLE.replace("0 0 2", "1 1 0").replace("0.3 0 0", "0 0 0")))
    q = np.zeros(robot.nq)
    for k in (2, 3):
        q[:] = 0.0
        q[k] = 1.0
        way = robot.pose(q, "chassis")[:3, 3] - (0.0, 0.0, 1.0)
        assert np.linalg.norm(way) == pytest.approx(1.0) and way @ (1.0, 1.0, 0.0) == pytest.approx(0.0, abs=1e-15)
    q[:] = 0.0
    q[1] = 0.7
    expected = pin.exp3(0.7 * np.array([1.0, 1.0, 0.0]) / np.sqrt(2))
    assert np.allclose(robot.pose(q, "chassis")[:3, :3], expected, atol=1e-15)


def test_a_floating_joint_needs_no_axis():
    axis = VEHICLE.replace('type="planar"', 'type="floating"')
    assert read_urdf(axis) == read_urdf(axis.replace('<axis xyz="0 0 2"/>', '<axis xyz="0 0 0"/>'))


def test_load_with_a_floating_base(tmp_path: Path):
    file = tmp_path / "vehicle.urdf"
    file.write_text(VEHICLE)
    robot = ls.load(file, base="floating")
    assert robot.joint_names == ("root_joint", "turn", "drive") and robot == ls.load(file).with_base("floating")
    assert robot.mass_matrix(robot.neutral())[3, 3] == pytest.approx(6.0)  # the base weighs 2 kg
    with pytest.raises(ls.ArgumentError, match=r"base is 'flying'.*expected 'fixed' or 'floating'"):
        ls.load(file, base="flying")


def test_a_single_body_floats(tmp_path: Path):
    file = tmp_path / "brick.urdf"
    file.write_text(f'<robot name="brick"><link name="brick">{BODY}</link></robot>')
    robot = ls.load(file, base="floating")
    assert (robot.nv, robot.link_names) == (6, ("brick",))
    assert robot.gravity_forces(robot.neutral())[3:] == pytest.approx((0.0, 0.0, 2 * 9.81))
    with pytest.raises(ls.DescriptionError, match="none of them moves"):
        ls.load(file)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name="arm"', f'name="{"x" * 300}"', r"line 2: the name 'x+\.\.\. has 300 characters, expected at most 200"),
        ('name="vehicle"', f'name="{"x" * 300}"', r"has 300 characters, expected at most 200"),
        ('"revolute"', f'"{"x" * 300}"', r"line 3: the name 'x+\.\.\. has 300 characters"),
        (
            "<axis",
            '<limit lower="1e40" upper="1e41" effort="1" velocity="1"/><axis',
            r"limits of joint 'turn' is \[inf",
        ),
        ("<axis", '<limit lower="nan" upper="1"/><axis', r"limits of joint 'turn' is \[nan"),
    ],
)
def test_names_and_limits_beyond_reason(old: str, new: str, message: str):
    text = VEHICLE.replace("continuous", "revolute").replace(old, new, 1)
    with pytest.raises(ls.DescriptionError, match=message):
        read_urdf(text)


# ---- mimic ----------------------------------------------------------------------------------------------------


def test_mimic_laws_are_read():
    path = oracles.FILES["panda_description/urdf/panda.urdf"]
    model = read_urdf(path, couple=True)
    assert model.couplings == (Coupling("panda_finger_joint2", "panda_finger_joint1"),)
    with pytest.warns(ModelWarning, match=r"'panda_finger_joint2' mimic others.*mimic='couple'") as caught:
        assert read_urdf(path) == replace(model, couplings=())
    assert len(caught) == 1


@pytest.mark.parametrize(
    ("mimic", "message"),
    [
        ("<mimic/>", "<mimic> has no attribute 'joint'"),
        ('<mimic joint="turn"/>', "joint 'turn' mimics 'turn', expected both to be different"),
        ('<mimic joint="trun"/>', "joint 'turn' mimics 'trun'"),
        ('<mimic joint="drive"/>', "joint 'turn' mimics 'drive', expected both .* 1-DOF joints"),
        ('<mimic joint="drive" multiplier="x"/>', "mimics 'drive'"),
    ],
)
def test_laws_that_cannot_be_followed(mimic: str, message: str):
    with pytest.raises(ls.DescriptionError, match=message):
        read_urdf(VEHICLE.replace('<axis xyz="0 1 0"/>', mimic), couple=True)
