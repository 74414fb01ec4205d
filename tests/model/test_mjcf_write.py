"""MJCF that is written, against MuJoCo: inverse dynamics, mass matrix, passive forces, and what is read back."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pytest
from error_checks import refused

import linksweep as ls
from linksweep.errors import ArgumentError, ModelWarning
from linksweep.robot.robot import Robot

mujoco: Any = pytest.importorskip("mujoco")
IMPOSSIBLE = {  # inertias that violate the triangle inequality, which MuJoCo refuses
    "romeo_description/urdf/romeo_laas_small.urdf",
    "romeo_description/urdf/romeo_small.urdf",
}
REPRESENTATIVE = (
    "panda_description/urdf/panda.urdf", "ur_description/urdf/ur5_robot.urdf", "talos_data/robots/talos_reduced.urdf",
)  # fmt: skip


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")


def text_of(robot: Robot) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return robot.to_mjcf()


def difference(robot: Robot, model: Any, seed: int = 0) -> float:
    """Largest relative difference of inverse dynamics with MuJoCo, in one configuration."""
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    q, v, a = robot.normalize(robot.random(rng)), rng.standard_normal(robot.nv), rng.standard_normal(robot.nv)
    data.qpos[:], data.qvel[:], qacc = ls.conventions.to_mujoco(robot, model, q=q, v=v, a=a)
    model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    mujoco.mj_forward(model, data)
    data.qacc[:] = qacc
    mujoco.mj_inverse(model, data)
    tau = robot.inverse_dynamics(q, v, a)
    _, tau = ls.conventions.to_mujoco(robot, model, q=q, tau=tau)
    return float(np.abs(tau - data.qfrc_inverse).max() / np.abs(data.qfrc_inverse).max())


@pytest.mark.parametrize("name", REPRESENTATIVE)
@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.cases(3)
def test_dynamics_are_those_of_mujoco(name: str, base: str):
    robot = oracles.load_quietly(oracles.FILES[name]).with_base(base)
    assert difference(robot, mujoco.MjModel.from_xml_string(text_of(robot))) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_every_robot_of_example_robot_data(part: int):
    for name in oracles.LOADABLE[part::4]:
        robot = oracles.load_quietly(oracles.FILES[name])
        if name in IMPOSSIBLE:
            refused(ArgumentError, "principal moments", lambda robot=robot: text_of(robot))
            continue
        assert difference(robot, mujoco.MjModel.from_xml_string(text_of(robot))) < 1e-9, name


@pytest.mark.parametrize("name", ["puma560", "stanford", "panda", "ur5e"])
def test_bundled_robots(name: str):
    robot = ls.load(name)
    assert difference(robot, mujoco.MjModel.from_xml_string(text_of(robot))) < 1e-9


def test_mixed_joints():
    robot = ls.robots.chain(9, seed=3, joints="mixed")
    kinds = {link.joint.kind for link in robot.model.links}
    awkward = [link.joint.name for link in robot.model.links if link.joint.kind in ("helical", "universal", "planar")]
    if awkward:
        refused(ArgumentError, "which MuJoCo does not have", robot.to_mjcf)
        robot = robot.lock(awkward)
    assert "spherical" in kinds or "prismatic" in kinds
    assert difference(robot, mujoco.MjModel.from_xml_string(text_of(robot))) < 1e-9


def test_parameters_and_motors(tmp_path: Path):
    robot = ls.robots.planar(3).with_dissipation(damping=[0.1, 0.2, 0.3], friction=[0.4, 0.5, 0.6])
    robot = robot.with_armature([0.01, 0.02, 0.03]).with_limits(lower=-1.0, upper=[1.0, 2.0, 3.0], effort=[5, 6, 7])
    robot = robot.with_actuated(["joint1", "joint3"]).with_gravity((0, -9.81, 1))
    file = tmp_path / "robot.xml"
    assert robot.to_mjcf(file) == file.read_text()
    model = mujoco.MjModel.from_xml_path(str(file))
    assert model.nu == 2 and model.actuator_ctrlrange.tolist() == [[-5, 5], [-7, 7]]
    assert model.dof_damping.tolist() == [0.1, 0.2, 0.3] and model.dof_frictionloss.tolist() == [0.4, 0.5, 0.6]
    assert model.jnt_range[:, 1].tolist() == [1, 2, 3] and model.dof_armature.tolist() == [0.01, 0.02, 0.03]
    back = ls.load(file)
    assert np.allclose(back.limits.effort, [5, 6, 7]) and back.gravity == (0.0, -9.81, 1.0)
    assert set(robot.frame_names) <= {*back.frame_names}
    q = np.array([0.3, -0.5, 0.7])
    assert np.abs(back.pose(q, "tool") - robot.pose(q, "tool")).max() < 1e-12
    assert np.abs(back.mass_matrix(q) - robot.mass_matrix(q)).max() < 1e-12


def test_couplings_are_equalities():
    robot = ls.robots.planar(3).with_couplings(ls.Coupling("joint3", "joint1", -0.5, 0.2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        back = ls.load(robot.to_mjcf(), mimic="couple")
    assert back.couplings == robot.couplings
    q = np.array([0.3, 0.4])
    assert np.abs(back.mass_matrix(q) - robot.mass_matrix(q)).max() < 1e-12


@pytest.mark.parametrize("kind", ["point", "rigid", "hinge"])
def test_constraints_read_back(kind: str):
    """The directions in which the mechanism can move are the same."""
    robot = ls.robots.planar(4)
    pose = robot.pose(np.array([0.9, -0.8, -0.7, 0.3]), "tool")
    robot = robot.with_constraints(ls.Constraint(kind, "tool", at=pose, name="loop"))
    back = ls.load(text_of(robot))
    q = np.array([0.9, -0.8, -0.7, 0.3])
    assert np.abs(back.constraint_error(q)).max() < 1e-9
    ours, theirs = (one.constraint_jacobian(q) for one in (robot, back))
    projectors = [np.linalg.pinv(j, rcond=1e-9) @ j for j in (ours, theirs)]
    assert np.abs(projectors[0] - projectors[1]).max() < 1e-9


def test_distances_and_springs():
    robot = ls.robots.planar(3).with_constraints(ls.Constraint("distance", "tool", at=np.eye(4), length=1.7))
    model = mujoco.MjModel.from_xml_string(text_of(robot))
    data = mujoco.MjData(model)
    data.qpos[:] = [0.3, 0.8, -0.4]
    mujoco.mj_forward(model, data)
    assert data.efc_pos[0] == pytest.approx(np.linalg.norm(robot.pose(data.qpos, "tool")[:3, 3]) - 1.7, abs=1e-12)
    free = ls.robots.planar(3)
    sprung = free.with_springs(ls.Spring("tool", None, stiffness=30.0, length=0.4, damping=2.0))
    model = mujoco.MjModel.from_xml_string(text_of(sprung))
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    data.qpos[:], data.qvel[:] = rng.standard_normal((2, 3))
    mujoco.mj_forward(model, data)
    pull = free.bias_forces(data.qpos, data.qvel) - sprung.bias_forces(data.qpos, data.qvel)
    assert np.abs(pull - data.qfrc_passive).max() < 1e-9
