"""SRDF files of real robots, compared with Pinocchio, and made-up ones; drives of URDF files."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
from error_checks import refused

import linksweep as ls
from linksweep.errors import DescriptionError, ModelWarning

needs_pinocchio = pytest.mark.skipif(find_spec("pinocchio") is None, reason="Pinocchio is not installed")
FILES = {
    "panda_description/urdf/panda.urdf": "panda_description/srdf/panda.srdf",
    "anymal_b_simple_description/robots/anymal.urdf": "anymal_b_simple_description/srdf/anymal.srdf",
    "talos_data/robots/talos_reduced.urdf": "talos_data/srdf/talos.srdf",
    "go1_description/urdf/go1.urdf": "go1_description/srdf/go1.srdf",
    "ur_description/urdf/ur5_robot.urdf": "ur_description/srdf/ur5.srdf",
}
ARM = """<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <link name="lower"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <link name="hand"/><link name="camera"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="50" velocity="3"/>
    <safety_controller soft_lower_limit="-1.9" soft_upper_limit="1.8" k_position="20" k_velocity="5"/>
    <calibration rising="0.1"/>
  </joint>
  <joint name="elbow" type="continuous"><parent link="upper"/><child link="lower"/><axis xyz="0 1 0"/></joint>
  <joint name="mount" type="fixed"><parent link="lower"/><child link="hand"/></joint>
  <joint name="mount2" type="fixed"><parent link="lower"/><child link="camera"/></joint>
  <transmission name="t">
    <type>transmission_interface/SimpleTransmission</type>
    <joint name="shoulder"><hardwareInterface>EffortJointInterface</hardwareInterface></joint>
    <actuator name="m"><mechanicalReduction> 50 </mechanicalReduction></actuator>
  </transmission>
  <transmission name="u">
    <joint name="elbow"/>
    <actuator name="n"><drake:gear_ratio value="100"/><drake:rotor_inertia value="2e-5"/></actuator>
  </transmission>
</robot>"""
SRDF = """<robot name="arm">
  <group name="arm"><chain base_link="base" tip_link="hand"/></group>
  <group name="last"><link name="lower"/><joint name="mount"/></group>
  <group name="all"><group name="arm"/><group name="last"/></group>
  <group_state name="home" group="arm">
    <joint name="shoulder" value="0.5"/><joint name="elbow" value="0 1"/>
  </group_state>
  <group_state name="home" group="last"><joint name="elbow" value="-0.25"/></group_state>
  <end_effector name="gripper" parent_link="hand" group="last" parent_group="arm"/>
  <passive_joint name="elbow"/>
  {}
</robot>"""


def quiet(path: Path, srdf: Path, **options: Any) -> ls.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return ls.load(path, srdf=srdf, **options)


def files(name: str) -> tuple[Path, Path]:
    root = next(path for path in oracles.FILES[name].parents if path.name == "robots" and path.parent.name != name)
    while not (root / FILES[name]).exists():
        root = root.parent
    return oracles.FILES[name], root / FILES[name]


@needs_pinocchio
@pytest.mark.cases(5)
@pytest.mark.parametrize("name", FILES)
def test_states_and_rotors_are_those_of_pinocchio(name: str):
    import pinocchio as pin

    urdf, srdf = files(name)
    robot = quiet(urdf, srdf)
    free = robot.joint_names[0] == "root_joint"
    model = pin.buildModelFromUrdf(str(urdf), *([pin.JointModelFreeFlyer()] if free else []))
    pin.loadReferenceConfigurations(model, str(srdf), False)
    theirs = {entry.key(): entry.data() for entry in model.referenceConfigurations}
    assert set(robot.states) == set(theirs)
    for state, q in robot.states.items():
        for joint, value in robot.unpack(q).items():
            place = model.joints[model.getJointId(joint)]
            expected = theirs[state][place.idx_q : place.idx_q + place.nq]
            if place.nq == 7:
                expected = np.concatenate([expected[3:], expected[:3]])
            elif place.nq == 2:
                expected = np.arctan2(*expected[::-1])
            assert np.abs(value - expected).max() < 1e-12
    if "<rotor_params>" in srdf.read_text():
        pin.loadRotorParameters(model, str(srdf), False)
    else:
        model.rotorInertia = np.zeros(model.nv)
    rotors = model.rotorInertia * model.rotorGearRatio**2
    for joint, value in robot.unpack(robot.armature, "qd").items():
        place = model.joints[model.getJointId(joint)]
        assert np.abs(value - rotors[place.idx_v : place.idx_v + place.nv]).max() < 1e-15


def test_three_real_robots():
    panda = quiet(*files("panda_description/urdf/panda.urdf"))
    assert panda.ee == "panda_hand_tcp" and panda.end_effectors["end_effector"].group == "arm"
    assert panda.groups["arm"] == tuple(f"panda_joint{k}" for k in range(1, 8))
    assert panda.groups["arm_and_hand"] == (*panda.groups["arm"], "panda_finger_joint1")
    anymal = quiet(*files("anymal_b_simple_description/robots/anymal.urdf"))
    assert anymal.nv == 18 and anymal.joint_names[0] == "root_joint"
    assert sorted(end.link for end in anymal.end_effectors.values()) == ["LF_FOOT", "LH_FOOT", "RF_FOOT", "RH_FOOT"]
    assert anymal.states["standing"][:7].tolist() == [0, 0, 0, 1, 0, 0, 0.4792]
    assert quiet(*files("anymal_b_simple_description/robots/anymal.urdf"), base="fixed").nv == 12
    talos = quiet(*files("talos_data/robots/talos_reduced.urdf"))
    assert talos.groups["r_leg"] == tuple(f"leg_right_{k}_joint" for k in range(1, 7))
    passive = set(talos.joint_names) - set(talos.actuated)
    assert all("gripper" in joint for joint in passive)


@pytest.mark.quick
def test_everything_in_one_file():
    robot = ls.load(ARM, srdf=SRDF.format(""))
    assert robot.groups == {"arm": ("shoulder", "elbow"), "last": ("elbow",), "all": ("shoulder", "elbow")}
    assert robot.states["arm/home"].tolist() == [0.5, np.pi / 2] and robot.states["last/home"].tolist() == [0, -0.25]
    assert robot.states["home"].tolist() == [0.5, -0.25]
    assert robot.ee == "hand" and robot.actuated == ("shoulder",)
    assert ls.load(ARM, srdf=SRDF.format(""), actuated=["elbow"]).actuated == ("elbow",)
    assert robot.lock("shoulder").states["home"].tolist() == [-0.25]
    assert ls.load(ARM) == ls.load(ARM, srdf="<robot/>")  # semantics take no part in comparisons
    data = robot.joint_data
    assert data["shoulder"].gear_ratio == 50 and data["shoulder"].hardware_interfaces == ("EffortJointInterface",)
    assert (data["shoulder"].soft_lower, data["shoulder"].k_velocity, data["shoulder"].rising) == (-1.9, 5.0, 0.1)
    assert robot.armature.tolist() == [0.0, pytest.approx(0.2)]  # 2e-5 * 100²


@pytest.mark.parametrize(("kind", "nq"), [("fixed", 2), ("planar", 5), ("floating", 9)])
def test_virtual_joints(kind: str, nq: int):
    line = f'<virtual_joint name="rail" type="{kind}" parent_frame="odom" child_link="base"/>'
    state = '<group_state name="off" group="all"><joint name="rail" value="{}"/></group_state>'
    values = {"fixed": "1", "planar": "1 2 0.5", "floating": "1 2 3 0 0 0 1"}[kind]
    urdf = ARM.replace('<link name="base"/>', ARM.splitlines()[2].replace("upper", "base"))
    robot = ls.load(urdf, srdf=SRDF.format(line + state.format(values)))
    assert robot.nq == nq
    if kind != "fixed":
        assert robot.joint_names[0] == "rail"
        expected = {"planar": [0.5, 1, 2], "floating": [0, 0, 0, 1, 1, 2, 3]}[kind]
        assert robot.states["off"][: nq - 2].tolist() == expected
        assert np.allclose(robot.pose(robot.states["off"], "base")[:2, 3], [1, 2])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('<group name="a"><group name="a"/></group>', "contains itself"),
        ('<group name="a"><chain base_link="hand" tip_link="base"/></group>', "no chain from 'hand'"),
        ('<group_state name="x" group="all"><joint name="elbow" value="1 2 3"/></group_state>', "3 numbers"),
        ('<group_state name="x" group="all"><joint name="elbow" value="nan"/></group_state>', "expected numbers"),
        ('<virtual_joint name="r" type="rail" parent_frame="o" child_link="base"/>', "'rail'"),
        ('<virtual_joint name="r" type="fixed" parent_frame="o" child_link="hand"/>', "expected the base 'base'"),
        ("<group/>", "no attribute 'name'"),
    ],
)
def test_mistakes(line: str, message: str):
    refused(DescriptionError, message, lambda: ls.load(ARM, srdf=SRDF.format(line)))


def test_names_that_the_robot_does_not_have():
    with pytest.warns(ModelWarning, match="joint knee.*link foot"):
        line = '<passive_joint name="knee"/><end_effector name="x" parent_link="foot"/>'
        assert ls.load(ARM, srdf=SRDF.format(line)).ee == "hand"
    refused(DescriptionError, "expected an SRDF file", lambda: ls.load(ARM, srdf=ARM))
    refused(DescriptionError, "no such file", lambda: ls.load(ARM, srdf="nowhere.srdf"))


def test_tool0_is_the_end_effector():
    tools = '<link name="ee_link"/><link name="tool0"/>' + "".join(
        f'<joint name="j{name}" type="fixed"><parent link="lower"/><child link="{name}"/></joint>'
        for name in ("ee_link", "tool0")
    )
    assert ls.load(ARM.replace("</robot>", tools + "</robot>")).ee == "tool0"
