"""MJCF against MuJoCo itself: every model of gymnasium and brax that MuJoCo compiles, and small ones of our own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mjcf_files import COMPILED, OWN, compiled, mujoco, quietly

import linksweep as ls
from linksweep.errors import DescriptionError, ModelWarning
from linksweep.model.formats.mjcf import read_mjcf
from linksweep.robot import conventions


def rates_matrix(robot: ls.Robot, model: Any, q: np.ndarray) -> np.ndarray:
    """T with qvel = T v: theirs for each of our rates."""
    return np.stack([conventions.to_mujoco(robot, model, q=q, v=unit)[1] for unit in np.eye(robot.nv)], axis=1)


def mass_matrix(model: Any, data: Any) -> np.ndarray:
    """Column by column: M times unit vectors."""
    M = np.empty((model.nv, model.nv))
    for k, unit in enumerate(np.eye(model.nv)):
        column = np.empty(model.nv)
        mujoco.mj_mulM(model, data, column, unit)
        M[:, k] = column
    return M


@pytest.mark.slow
def test_at_least_95_percent_load():
    failed = []
    for name in COMPILED:
        try:
            quietly(name)
        except ls.LinksweepError as error:
            failed.append((name, str(error)))
    assert len(failed) <= 0.05 * len(COMPILED), failed
    assert not failed, "the issue allows 5 %, but all of them load"


@pytest.mark.quick
@pytest.mark.parametrize("name", COMPILED)
def test_mass_matrix_and_bias(name: str):
    robot, model = quietly(name), compiled(name)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    functions = robot.compile(["mass_matrix", "bias_forces", "poses"], backend="interpreter")
    for _ in range(3):
        q, v = robot.random(rng), rng.uniform(-1, 1, robot.nv)
        ours, bias, poses = functions(q, v)
        data.qpos, data.qvel, qacc = conventions.to_mujoco(robot, model, q=q, v=v, a=np.zeros(robot.nv))
        mujoco.mj_forward(model, data)
        T, M = rates_matrix(robot, model, q), mass_matrix(model, data)
        theirs = T.T @ M @ T
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-8 * np.abs(theirs).max())
        # at rest in our rates MuJoCo's free joints accelerate, because they are seen along the world's axes; armature
        # resists the rates of each, so that of a free joint (some files have it) is no part of the comparison
        theirs = data.qfrc_bias + (M - np.diag(model.dof_armature)) @ qacc
        expected = T.T @ theirs
        np.testing.assert_allclose(bias, expected, rtol=0, atol=1e-8 * max(np.abs(expected).max(), 1e-3))
        by_converter = conventions.from_mujoco(robot, model, q=data.qpos, tau=theirs)[1]
        np.testing.assert_allclose(by_converter, expected, rtol=0, atol=1e-12 * max(np.abs(expected).max(), 1.0))
        for body in range(model.nbody):
            place = robot.frame_names.index(model.body(body).name) if model.body(body).name else None
            if place is not None:
                np.testing.assert_allclose(poses[place][:3, 3], data.xpos[body], atol=1e-10)
                np.testing.assert_allclose(poses[place][:3, :3], data.xmat[body].reshape(3, 3), atol=1e-10)


@pytest.mark.quick
def test_names_coordinates_and_numbers_are_mujocos():
    with pytest.warns(ModelWarning, match=r"left out are the springs of joints 'turn'; the equality constr"):
        robot = ls.load(OWN / "many_joints.xml")
    assert robot.joint_names == ("root", "ball", "lift", "swing", "turn", "hand_joint", "hand_joint2")
    assert robot.link_names[-2:] == ("hand_before_hand_joint", "hand")
    assert robot.gravity == (0.0, 1.0, -9.0)
    swing = robot.model.links[robot.joint_names.index("swing")].joint
    assert (swing.armature, swing.damping, swing.friction) == (0.02, 0.3, 0.1)
    assert (swing.limits.lower, swing.limits.upper) == pytest.approx((-1.0, 2.0))
    assert "grip" in robot.frame_names  # a site
    assert robot.name == "many"


def test_a_suffix_of_xml_may_be_either(tmp_path: Path):
    urdf = tmp_path / "arm.xml"
    urdf.write_text(
        '<robot name="a"><link name="l0"/><link name="l1"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/>'
        '</inertial></link><joint name="j" type="continuous"><parent link="l0"/><child link="l1"/></joint></robot>'
    )
    assert ls.load(urdf).nv == 1


def test_without_mujoco_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(DescriptionError, match=r"pip install 'linksweep\[mjcf\]'"):
        read_mjcf(OWN / "many_joints.xml")


BODY = '<body name="b"><joint name="j" type="hinge"/><geom size="1"/></body>'
HOSTILE = {
    "entities": '<!DOCTYPE m [<!ENTITY a "b">]><mujoco><worldbody/></mujoco>',
    "cut off": "<mujoco><worldbody>",
    "not MJCF": "<mujoco><worldbody><body><joint/><geom size='abc'/></body></worldbody></mujoco>",
    "no mass": '<mujoco><worldbody><body><joint type="hinge"/></body></worldbody></mujoco>',
    "nothing moves": '<mujoco><worldbody><geom size="1"/></worldbody></mujoco>',
    "copies": f'<mujoco><worldbody><replicate count="1000000000">{BODY}</replicate></worldbody></mujoco>',
    "copies of copies": f'<mujoco><worldbody><replicate count="9000"><replicate count="9000">{BODY}</replicate>'
    "</replicate></worldbody></mujoco>",
    "composite": '<mujoco><worldbody><composite type="particle" count="10000 10000 10000"/></worldbody></mujoco>',
    "picture": '<mujoco><asset><texture name="t" type="2d" builtin="flat" width="1000000" height="1000000"/></asset>'
    "</mujoco>",
    "height field": '<mujoco><asset><hfield name="h" nrow="100000" ncol="100000" size="1 1 1 1"/></asset></mujoco>',
    "outside": '<mujoco><include file="../../../../etc/passwd"/></mujoco>',
    "itself": '<mujoco><include file="hostile.xml"/></mujoco>',
    "missing": '<mujoco><include file="nowhere.xml"/></mujoco>',
    "huge": '<mujoco><worldbody><body><joint type="hinge"/><geom size="1e200"/></body></worldbody></mujoco>',
    "twice": f"<mujoco><worldbody>{BODY}{BODY}</worldbody></mujoco>",
}


@pytest.mark.quick
@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_files_are_refused(what: str, tmp_path: Path):
    file = tmp_path / "hostile.xml"
    file.write_text(HOSTILE[what])
    with pytest.raises(DescriptionError) as caught:
        ls.load(file)
    assert "hostile.xml" in str(caught.value) or "nowhere.xml" in str(caught.value)


def test_included_files_are_read(tmp_path: Path):
    (tmp_path / "body.xml").write_text(f"<mujocoinclude>{BODY}</mujocoinclude>")
    (tmp_path / "robot.xml").write_text('<mujoco><worldbody><include file="body.xml"/></worldbody></mujoco>')
    assert ls.load(tmp_path / "robot.xml").joint_names == ("j",)


def test_negative_damping_is_a_warning(tmp_path: Path):
    """MuJoCo compiles it, with a warning of its own."""
    file = tmp_path / "robot.xml"
    body = BODY.replace("<joint", '<joint damping="-0.1"', 1)
    assert body != BODY
    file.write_text(f"<mujoco><worldbody>{body}</worldbody></mujoco>")
    with pytest.warns(ls.ModelWarning) as caught:
        robot = ls.load(file)
    assert any("damping" in str(warning.message) and "negative" in str(warning.message) for warning in caught)
    assert robot.damping.min() == -0.1
