"""Layouts of Pinocchio and MuJoCo, against both packages, with real models and with every kind of joint."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from oracles import FILES

import linksweep as ls
from linksweep.errors import ArgumentError, ModelWarning
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint, Placement, symmetric
from linksweep.robot import conventions

mujoco: Any = importlib.import_module("mujoco")  # it has no types that pyright could see
MJCF = Path(__file__).parent / "mjcf" / "many_joints.xml"
URDFS = ["tiago_description/robots/tiago_no_hand.urdf", "talos_data/robots/talos_reduced.urdf"]
SHIFTED = [3, 4, 5, 0, 1, 2]


def quietly(path: Any, base: str = "fixed") -> ls.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return ls.load(path, base=base)


def every_joint() -> tuple[ls.Robot, Any]:
    """The same tree of all kinds of joints here and in Pinocchio."""
    kinds = {
        "free": pin.JointModelFreeFlyer(), "spherical": pin.JointModelSpherical(), "planar": pin.JointModelPlanar(),
        "revolute": pin.JointModelRZ(), "prismatic": pin.JointModelPZ(),
    }  # fmt: skip
    model, parts, above = pin.Model(), [], 0
    for i, (kind, joint) in enumerate(kinds.items()):
        at = Placement(position=(0.1 * i, 0.2, -0.3))
        body = Inertial(1.0 + i, (0.1, 0.0, 0.05), symmetric(0.2, 0.3, 0.25))
        parts.append(Part(f"link{i}", f"link{i - 1}" if i else "base", Joint(f"joint{i}", kind, placement=at), body))
        above = model.addJoint(above, joint, pin.SE3(np.eye(3), np.array(at.position)), f"joint{i}")
        inertia = pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
        model.appendBodyToJoint(above, inertia, pin.SE3.Identity())
    return ls.Robot(assemble("every", parts, base="base")), model


def pinocchio_pairs() -> list[tuple[ls.Robot, Any]]:
    pairs = [every_joint()]
    for name in URDFS:
        pairs.append((quietly(FILES[name]), pin.buildModelFromUrdf(str(FILES[name]), mimic=False)))
        root = pin.JointModelFreeFlyer()
        pairs.append((quietly(FILES[name], "floating"), pin.buildModelFromUrdf(str(FILES[name]), root, mimic=False)))
    return pairs


@pytest.mark.parametrize(("robot", "model"), pinocchio_pairs(), ids=lambda value: getattr(value, "name", ""))
def test_pinocchio_gives_the_same_dynamics(robot: ls.Robot, model: Any):
    rng = np.random.default_rng(0)
    q = np.stack([robot.random(rng) for _ in range(3)])
    v, a = rng.uniform(-1, 1, (2, 3, robot.nv))
    f_ext = rng.uniform(-5, 5, (3, len(robot.link_names), 6))
    tau = robot.compile("inverse_dynamics", f_ext=True, backend="interpreter")(q, v, a, f_ext)
    theirs = conventions.to_pinocchio(robot, model, q=q, v=v, a=a, f_ext=f_ext)
    for k in range(3):
        forces = [pin.Force(row) for row in theirs[3][k]]
        expected = pin.rnea(model, model.createData(), theirs[0][k], theirs[1][k], theirs[2][k], forces)
        np.testing.assert_allclose(conventions.to_pinocchio(robot, model, tau=tau[k]), expected, atol=1e-9 * 1e3)
    back = conventions.from_pinocchio(
        robot, model, q=theirs[0], v=theirs[1], a=theirs[2], tau=conventions.to_pinocchio(robot, model, tau=tau),
        f_ext=theirs[3],
    )  # fmt: skip
    turns = np.abs(robot.difference(q, back[0])) % (2 * np.pi)  # continuous joints forget whole turns
    np.testing.assert_allclose(np.minimum(turns, 2 * np.pi - turns), 0.0, atol=1e-12)
    for ours, again in zip((v, a, tau, f_ext), back[1:], strict=True):
        np.testing.assert_allclose(again, ours, atol=1e-12)


def test_mujoco_gives_the_same_dynamics():
    robot, model = quietly(MJCF), mujoco.MjModel.from_xml_path(str(MJCF))
    data: Any = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    q, v, a = robot.random(rng), *rng.uniform(-1, 1, (2, robot.nv))
    f_ext = rng.uniform(-5, 5, (len(robot.link_names), 6))
    for row, name in enumerate(robot.link_names):
        if "_before_" in name:
            f_ext[row] = 0.0  # no body of MuJoCo's
    data.qpos, data.qvel, qacc, xfrc = conventions.to_mujoco(robot, model, q=q, v=v, a=a, f_ext=f_ext)
    mujoco.mj_forward(model, data)
    # qfrc_inverse holds springs and damping too: M a + bias - J^T f is all that is wanted
    applied = np.zeros(model.nv)
    for body in range(1, model.nbody):
        force, moment = xfrc[body, :3], xfrc[body, 3:]
        mujoco.mj_applyFT(model, data, force, moment, data.xipos[body], body, applied)
    M = np.empty(model.nv)
    mujoco.mj_mulM(model, data, M, qacc)
    expected = M + data.qfrc_bias - applied
    tau = robot.inverse_dynamics(q, v, a, f_ext=f_ext)
    np.testing.assert_allclose(conventions.to_mujoco(robot, model, q=q, tau=tau)[1], expected, atol=1e-9)
    back = conventions.from_mujoco(robot, model, q=data.qpos, v=data.qvel, a=qacc, tau=expected, f_ext=xfrc)
    for ours, again in zip((q, v, a, tau, f_ext), back, strict=True):
        np.testing.assert_allclose(again, ours, atol=1e-9)


def test_batches_and_broadcasting():
    robot, model = quietly(MJCF), mujoco.MjModel.from_xml_path(str(MJCF))
    rng = np.random.default_rng(0)
    q, v = np.stack([robot.random(rng) for _ in range(4)]), rng.uniform(-1, 1, robot.nv)
    both, rates = conventions.to_mujoco(robot, model, q=q, v=v)
    assert both.shape == (4, model.nq) and rates.shape == (4, model.nv)
    np.testing.assert_allclose(rates[2], conventions.to_mujoco(robot, model, q=q[2], v=v)[1])


def test_mistakes_are_named():
    robot, model = every_joint()
    with pytest.raises(ArgumentError, match="nothing was given"):
        conventions.to_pinocchio(robot, model)
    with pytest.raises(ArgumentError, match=r"v has shape \(3,\), expected \(..., 14\)"):
        conventions.to_pinocchio(robot, model, v=np.zeros(3))
    other = ls.robots.puma560()
    with pytest.raises(ArgumentError, match="expected the same joints in both"):
        conventions.to_pinocchio(other, model, v=np.zeros(6))
    mine, compiled = quietly(MJCF), mujoco.MjModel.from_xml_path(str(MJCF))
    with pytest.raises(ArgumentError, match="pass q= as well"):
        conventions.to_mujoco(mine, compiled, v=np.zeros(mine.nv))
    with pytest.raises(ArgumentError, match="give v beside it"):
        conventions.to_mujoco(mine, compiled, q=mine.neutral(), a=np.zeros(mine.nv))
    forces = np.ones((len(mine.link_names), 6))
    with pytest.raises(ArgumentError, match="has no body 'arm_before_lift'"):
        conventions.to_mujoco(mine, compiled, q=mine.neutral(), f_ext=forces)
