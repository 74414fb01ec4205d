"""The bundled arms of today against independent models: URDF frames and parameters, read by Pinocchio."""

from __future__ import annotations

import importlib.metadata
import math
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import linksweep as ls
from linksweep.model.assembly import check_body
from linksweep.model.lint import lint

ARMS = ("panda", "ur5e", "ur10e", "iiwa14", "gen3")
H, P = math.pi / 2, math.pi

# For each joint: origin (xyz, rpy) of the URDF joint; mass, com, and ixx, iyy, izz, ixy, ixz, iyz in the axes that are
# turned by `roll` against the link frame. All axes are z. Last: the fixed joint to the flange.
UR5E = (
    ((0, 0, 0.1625), (0, 0, 0), 3.761, (0, -0.00193, -0.02561),
     (0.0070021, 0.00648091, 0.00657286, 7.3e-7, -1.053e-5, 4.9994e-4), H),
    ((0, 0, 0), (H, 0, 0), 8.058, (-0.2125, 0, 0.11336),
     (0.01505885, 0.33388086, 0.33247207, -5.4e-5, 5.63e-6, -1.81e-6), 0),
    ((-0.425, 0, 0), (0, 0, 0), 2.846, (-0.2422, 0, 0.0265),
     (0.00399632, 0.07879254, 0.0784851, -1.365e-5, 0.00137272, -6.6e-6), 0),
    ((-0.3922, 0, 0.1333), (0, 0, 0), 1.37, (0, -0.01634, -0.0018),
     (0.00165491, 0.00135962, 0.00126279, -2.82e-6, -4.38e-6, 1.0157e-4), H),
    ((0, -0.0997, 0), (H, 0, 0), 1.3, (0, 0.01634, -0.0018),
     (0.00135617, 0.00127827, 9.6614e-4, -2.74e-6, 4.44e-6, -5.048e-5), -H),
    ((0, 0.0996, 0), (H, P, P), 0.365, (0, 0, -0.001159),
     (1.8694e-4, 1.8908e-4, 2.5756e-4, 6e-8, -1.7e-7, -9.2e-7), 0),
    ((0, 0, 0), (0, 0, 0)),
)  # fmt: skip
UR10E = (
    ((0, 0, 0.1807), (0, 0, 0), 7.369, (0.021, -0.027, 0), (0.03408, 0.03529, 0.02156, 2e-5, -0.00425, 8e-5), H),
    ((0, 0, 0), (H, 0, 0), 13.051, (-0.2327, 0, 0.158), (0.02814, 0.77068, 0.76943, 5e-5, -0.01561, 2e-5), 0),
    ((-0.6127, 0, 0), (0, 0, 0), 3.989, (-0.33155, 0, 0.068), (0.01014, 0.30928, 0.30646, 8e-5, 0.00916, 0), 0),
    ((-0.57155, 0, 0.17415), (0, 0, 0), 2.1, (0, -0.018, 0.007), (0.00296, 0.00222, 0.00258, -1e-5, 0, -2.4e-4), H),
    ((0, -0.11985, 0), (H, 0, 0), 1.98, (0, 0.018, -0.007), (0.00296, 0.00222, 0.00258, -1e-5, 0, -2.4e-4), -H),
    ((0, 0.11655, 0), (H, P, P), 0.615, (0, 0, -0.026), (0.0004, 0.00041, 0.00034, 0, 0, 0), 0),
    ((0, 0, 0), (0, 0, 0)),
)  # fmt: skip
IIWA14 = (
    ((0, 0, 0.1575), (0, 0, 0), 5.76, (0, -0.03, 0.12), (0.033, 0.0333, 0.0123, 0, 0, 0), 0),
    ((0, 0, 0.2025), (H, 0, P), 6.35, (0.0003, 0.059, 0.042), (0.0305, 0.0304, 0.011, 0, 0, 0), 0),
    ((0, 0.2045, 0), (H, 0, P), 3.5, (0, 0.03, 0.13), (0.025, 0.0238, 0.0076, 0, 0, 0), 0),
    ((0, 0, 0.2155), (H, 0, 0), 3.5, (0, 0.067, 0.034), (0.017, 0.0164, 0.006, 0, 0, 0), 0),
    ((0, 0.1845, 0), (-H, P, 0), 3.5, (0.0001, 0.021, 0.076), (0.01, 0.0087, 0.00449, 0, 0, 0), 0),
    ((0, 0, 0.2155), (H, 0, 0), 1.8, (0, 0.0006, 0.0004), (0.0049, 0.0047, 0.0036, 0, 0, 0), 0),
    ((0, 0.081, 0), (-H, P, 0), 1.2, (0, 0, 0.02), (0.001, 0.001, 0.001, 0, 0, 0), 0),
    ((0, 0, 0.045), (0, 0, 0)),
)  # fmt: skip
GEN3 = (
    ((0, 0, 0.15643), (P, 0, 0), 1.3773, (-2.3e-5, -0.010364, -0.07336),
     (0.00457, 0.004831, 0.001409, 1e-6, 2e-6, 0.000448), 0),
    ((0, 0.005375, -0.12838), (H, 0, 0), 1.1636, (-4.4e-5, -0.09958, -0.013278),
     (0.011088, 0.001072, 0.011255, 5e-6, 0, -0.000691), 0),
    ((0, -0.21038, -0.006375), (-H, 0, 0), 1.1636, (-4.4e-5, -0.006641, -0.117892),
     (0.010932, 0.011127, 0.001043, 0, -7e-6, 0.000606), 0),
    ((0, 0.006375, -0.21038), (H, 0, 0), 0.9302, (-1.8e-5, -0.075478, -0.015006),
     (0.008147, 0.000631, 0.008316, -1e-6, 0, -0.0005), 0),
    ((0, -0.20843, -0.006375), (-H, 0, 0), 0.6781, (1e-6, -0.009432, -0.063883),
     (0.001596, 0.001607, 0.000399, 0, 0, 0.000256), 0),
    ((0, 0.00017505, -0.10593), (H, 0, 0), 0.6781, (1e-6, -0.045483, -0.00965),
     (0.001641, 0.00041, 0.001641, 0, 0, -0.000278), 0),
    ((0, -0.10593, -0.00017505), (-H, 0, 0), 0.5, (0.000281, 0.011402, -0.029798),
     (0.000587, 0.000369, 0.000609, 3e-6, 3e-6, -0.000118), 0),
    ((0, 0, -0.061525), (P, 0, 0)),
)  # fmt: skip
TABLES = {"ur5e": UR5E, "ur10e": UR10E, "iiwa14": IIWA14, "gen3": GEN3}
# kg, as sold; for the Gen3 1 kg: its rated 4 kg need 1.5 times the limit of joint 2 with the arm stretched
PAYLOAD = {"panda": 3.0, "ur5e": 5.0, "ur10e": 12.5, "iiwa14": 14.0, "gen3": 1.0}


def reference(name: str) -> tuple[pin.Model, int]:
    """The Pinocchio model of an arm and the index of its flange frame."""
    if name == "panda":
        files = importlib.metadata.files("example-robot-data") or []
        urdf = next(str(f.locate()) for f in files if f.name == "panda.urdf")
        full = pin.buildModelFromUrdf(urdf)
        flange = pin.SE3(full.frames[full.getFrameId("panda_link8")].placement)
        model = pin.buildReducedModel(full, [8, 9], pin.neutral(full))  # without fingers
        moments = (1.2516e-2, 1.0027e-2, 4.815e-3, -4.28e-4, -1.196e-3, -7.41e-4)
        model.inertias[7] = pin.Inertia(0.735522, np.array([1.0517e-2, -4.252e-3, 6.1597e-2]), symmetric(*moments))
        return model, model.addFrame(pin.Frame("flange", 7, flange, pin.FrameType.OP_FRAME))
    model = pin.Model()
    *joints, (xyz, rpy) = TABLES[name]
    for k, (at, turn, mass, com, moments, roll) in enumerate(joints):
        pose = pin.SE3(pin.rpy.rpyToMatrix(*map(float, turn)), np.array(at, dtype=float))
        index = model.addJoint(k, pin.JointModelRZ(), pose, f"joint{k}")
        axes = pin.rpy.rpyToMatrix(float(roll), 0.0, 0.0)
        inertia = pin.Inertia(mass, np.array(com, dtype=float), axes @ symmetric(*moments) @ axes.T)
        model.appendBodyToJoint(index, inertia, pin.SE3.Identity())
    flange = pin.SE3(pin.rpy.rpyToMatrix(*map(float, rpy)), np.array(xyz, dtype=float))
    return model, model.addFrame(pin.Frame("flange", len(joints), flange, pin.FrameType.OP_FRAME))


def symmetric(xx: float, yy: float, zz: float, xy: float, xz: float, yz: float) -> np.ndarray:
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


@pytest.mark.parametrize("name", ARMS)
def test_kinematics_and_dynamics_are_those_of_the_urdf(name: str):
    robot, (model, flange) = ls.load(name), reference(name)
    data = model.createData()
    q, qd, qdd = np.random.default_rng(1).uniform(-2, 2, (3, 20, robot.nv))
    poses = []
    for angles in q:
        pin.framesForwardKinematics(model, data, angles)
        poses.append(data.oMf[flange].homogeneous)
    np.testing.assert_allclose(robot.pose(q, "tool"), poses, atol=1e-12)
    tau = np.array([pin.rnea(model, data, *state) for state in zip(q, qd, qdd, strict=True)])
    np.testing.assert_allclose(robot.inverse_dynamics(q, qd, qdd), tau, atol=1e-12 * np.abs(tau).max())
    gravity = np.array([pin.computeGeneralizedGravity(model, data, angles) for angles in q])
    np.testing.assert_allclose(robot.gravity_forces(q), gravity, atol=1e-12 * np.abs(gravity).max())


@pytest.mark.parametrize("name", ARMS)
def test_every_link_is_a_possible_body(name: str):
    robot = ls.load(name)  # a warning would be an error here
    assert not lint(robot.model)
    for link in robot.model.links:
        check_body(link.name, link.inertial)
        moments = np.linalg.eigvalsh(np.array(link.inertial.inertia))
        assert moments[0] > 0 and moments[2] < moments[0] + moments[1]


@pytest.mark.parametrize("name", ARMS)
def test_motors_hold_the_arm_and_a_payload(name: str):
    robot = ls.load(name)
    limits = robot.limits
    assert np.isfinite(limits.velocity).all() and (limits.lower < limits.upper).all()
    low, high = np.maximum(limits.lower, -np.pi), np.minimum(limits.upper, np.pi)
    q = np.random.default_rng(2).uniform(low, high, (4000, robot.nv))
    assert (np.abs(robot.gravity_forces(q)) < 0.65 * limits.effort).all()
    held = robot.with_payload("tool", PAYLOAD[name]).gravity_forces(q)
    assert (np.abs(held) < limits.effort).all()
    assert (np.abs(held[:, 0]) < 1e-12).all()  # the first axis is vertical


def test_panda_is_where_its_controller_reports_it():
    """Ready configuration: the hand at x = 0.307 m and z = 0.487 m, 0.1034 m beyond the flange."""
    ready = [0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4]
    pose = ls.load("panda").pose(ready, "tool")
    np.testing.assert_allclose(pose[:3, 3], [0.307, 0, 0.487 + 0.1034], atol=5e-4)
    np.testing.assert_allclose(pose[:3, 2], [0, 0, -1], atol=1e-12)  # the hand points down


def test_stretched_arms_are_as_long_as_their_links():
    up = ls.load("iiwa14").pose(np.zeros(7), "tool")
    np.testing.assert_allclose(up[:3, 3], [0, 0, 0.36 + 0.42 + 0.4 + 0.126], atol=1e-12)
    np.testing.assert_allclose(up[:3, :3], np.eye(3), atol=1e-12)
    gen3 = ls.load("gen3").pose(np.zeros(7), "tool")[:3, 3]
    np.testing.assert_allclose(gen3[2], 1.1873, atol=1e-4)  # heights of the user guide added up
    flat = ls.load("ur5e").pose(np.zeros(6), "tool")[:3, 3]
    np.testing.assert_allclose(flat, [-0.425 - 0.3922, -0.1333 - 0.0996, 0.1625 - 0.0997], atol=1e-12)


@pytest.mark.parametrize("name", ARMS)
def test_round_trip_through_urdf(name: str, tmp_path: Path):
    robot = getattr(ls.robots, name)()
    (tmp_path / "arm.urdf").write_text(robot.to_urdf(), encoding="utf-8")
    back = ls.load(tmp_path / "arm.urdf")
    q, qd, qdd = np.random.default_rng(3).uniform(-1, 1, (3, 5, robot.nv))
    np.testing.assert_allclose(back.inverse_dynamics(q, qd, qdd), robot.inverse_dynamics(q, qd, qdd), atol=1e-11)
    np.testing.assert_allclose(back.limits.effort, robot.limits.effort)
