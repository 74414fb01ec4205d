"""Every entry of KINDS: poses, mass matrix and dynamics of a chain with such a joint, against dense formulas.

The oracle multiplies homogeneous transforms in the frames of the robot model, with the motion of the joint type itself.
Jacobians come from complex steps. Their time derivatives come from central differences with an error of about 1e-9:
torques are compared to 1e-7.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from pin_models import random_inertial, random_placement

import linksweep as ls
from linksweep.joints import KINDS
from linksweep.mechanism.canonical import aligning_rotation
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Joint
from linksweep.spatial.algebra import Transform, Vec

AXIS: Any = tuple((np.array([1.0, -2.0, 0.5]) / np.sqrt(5.25)).tolist())
STEP, DIFFERENCE, ARMATURE, PITCH = 1e-30, 1e-5, 0.2, 0.35


def chain(kind: str) -> ls.Robot:
    """Such a joint between a revolute and a prismatic joint, with axes and placements in any direction."""
    rng = np.random.default_rng(3)
    parts, parent = [], "base"
    for k, type_name in enumerate(("revolute", kind, "prismatic")):
        axis = (0.0, 0.0, 1.0) if type_name == "prismatic" else AXIS
        joint = Joint(f"j{k}", type_name, axis, random_placement(rng), armature=ARMATURE, pitch=PITCH)
        parts.append(Part(f"link{k}", parent, joint, random_inertial(rng)))
        parent = f"link{k}"
    return ls.Robot(assemble(f"chain with a {kind} joint", parts, base="base"))


def joint_matrix(joint: Joint, q: Any) -> np.ndarray:
    """The pose of the link after the joint, in the frame of the joint."""
    kind: Any = joint.type
    moved = Transform(kind.motion(kind.kept(list(q), 0.0), 0, (1.0, 0.0), 0.0, joint.pitch))
    corners = [np.array([*moved.point(Vec(*point))]) for point in (*np.eye(3).tolist(), [0.0, 0.0, 0.0])]
    T = np.eye(4, dtype=complex)
    T[:3, 3], T[:3, :3] = corners[3], np.transpose([corner - corners[3] for corner in corners[:3]])
    A = np.eye(4)
    A[:3, :3] = aligning_rotation(joint.axis) if kind.has_axis else np.eye(3)
    return A @ T @ A.T


def poses(robot: ls.Robot, q: np.ndarray) -> np.ndarray[Any, np.dtype[np.complex128]]:
    """Poses (3, 4, 4) of the links, for real or complex coordinates."""
    T, start, found = np.eye(4, dtype=complex), 0, []
    for joint in robot.model.joints:
        at = np.eye(4)
        at[:3, :3], at[:3, 3] = joint.placement.rotation, joint.placement.position
        T = T @ at @ joint_matrix(joint, q[start : start + joint.type.nq])
        start += joint.type.nq
        found.append(T)
    return np.array(found)


def rates(robot: ls.Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """dq/dt, by the definition of the joint type."""
    found, at_q, at_v = [], 0, 0
    for joint in robot.model.joints:
        kind: Any = joint.type
        found += kind.derivative(q[at_q : at_q + kind.nq].tolist(), v[at_v : at_v + kind.nv].tolist())
        at_q, at_v = at_q + kind.nq, at_v + kind.nv
    return np.array(found)


def jacobians(robot: ls.Robot, q: np.ndarray) -> np.ndarray:
    """(3, 6, nv): [angular; linear] velocity of the centers of mass, in the base's directions."""
    T = poses(robot, q).real
    J = np.empty((3, 6, robot.nv))
    for k, v in enumerate(np.eye(robot.nv)):
        dT = poses(robot, q + 1j * STEP * rates(robot, q, v)).imag / STEP
        for i, link in enumerate(robot.model.links):
            spin = dT[i, :3, :3] @ T[i, :3, :3].T
            J[i, :3, k] = spin[2, 1], spin[0, 2], spin[1, 0]
            J[i, 3:, k] = dT[i, :3] @ [*link.inertial.com, 1.0]
    return J


def dense_dynamics(robot: ls.Robot, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mass matrix, and the torques by Kane's equations."""
    T, J = poses(robot, q).real, jacobians(robot, q)
    before, after = (jacobians(robot, robot.integrate(q, qd, dt)) for dt in (-DIFFERENCE, DIFFERENCE))
    acceleration = J @ qdd + (after - before) @ qd / (2 * DIFFERENCE)
    M, tau = ARMATURE * np.eye(robot.nv), ARMATURE * qdd
    for i, link in enumerate(robot.model.links):
        R, body = T[i, :3, :3], link.inertial
        tensor, w = R @ np.array(body.inertia) @ R.T, J[i, :3] @ qd
        M = M + J[i, :3].T @ tensor @ J[i, :3] + body.mass * J[i, 3:].T @ J[i, 3:]
        moment = tensor @ acceleration[i, :3] + np.cross(w, tensor @ w)
        tau = tau + J[i].T @ [*moment, *(body.mass * (acceleration[i, 3:] - np.array(robot.gravity)))]
    return M, tau


def close(a: Any, b: Any, tolerance: float) -> bool:
    return bool(np.abs(np.asarray(a) - b).max() <= tolerance * max(1.0, float(np.abs(b).max())))


@pytest.mark.cases(1000)
@pytest.mark.parametrize("kind", KINDS)
def test_dynamics_are_those_of_dense_formulas(kind: str):
    robot, rng = chain(kind), np.random.default_rng(5)
    q, (qd, qdd) = robot.random(rng), rng.uniform(-1, 1, (2, robot.nv))
    M, tau = dense_dynamics(robot, q, qd, qdd)
    names = ["inverse_dynamics", "mass_matrix", "jacobian", "pose"]
    items: Any = [*names[:2], *((name, "link2") for name in names[2:])]
    torques, mass_matrix, J, T = robot.compile(items, backend="interpreter")(q, qd, qdd)
    expected = poses(robot, q)[2].real
    assert close(T, expected, 1e-13)
    turn = jacobians(robot, q)[2]
    to_origin = expected[:3, 3] - expected[:3] @ [*robot.model.links[2].inertial.com, 1.0]
    turn[3:] += np.cross(turn[:3], to_origin, axis=0)
    assert close(J, turn, 1e-12) and close(mass_matrix, M, 1e-12) and close(torques, tau, 1e-7)
    for rolled in (False, True):
        forward = robot.compile("forward_dynamics", rolled=rolled, backend="interpreter")
        assert close(forward(q, qd, torques), qdd, 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_methods_agree(kind: str):
    robot, rng = chain(kind), np.random.default_rng(6)
    q, (qd, qdd) = robot.random(rng), rng.uniform(-1, 1, (2, robot.nv))
    tau = robot.compile("inverse_dynamics", backend="interpreter")(q, qd, qdd)
    for method in robot.methods("inverse_dynamics"):
        assert close(robot.compile("inverse_dynamics", method=method, backend="interpreter")(q, qd, qdd), tau, 1e-12)
    for method in robot.methods("forward_dynamics"):
        assert close(robot.compile("forward_dynamics", method=method, backend="interpreter")(q, qd, tau), qdd, 1e-10)


@pytest.mark.quick
def test_letters_and_names_are_those_of_one_type():
    assert len({kind.letter for kind in KINDS.values()}) == len(KINDS)  # strings such as "RRP" name structures
    assert all(kind.name == name for name, kind in KINDS.items())


@pytest.mark.quick
@pytest.mark.cases(1000)
@pytest.mark.parametrize("kind", KINDS)
def test_coordinates_are_consistent(kind: str):
    """`difference` inverts `integrate`, and `derivative` is its time derivative at 0."""
    robot, rng = chain(kind), np.random.default_rng(7)
    q, v = robot.random(rng), rng.uniform(-0.5, 0.5, robot.nv)
    assert close(robot.difference(q, robot.integrate(q, v, 1.0)), v, 1e-12)
    slope = (robot.integrate(q, v, DIFFERENCE) - robot.integrate(q, v, -DIFFERENCE)) / (2 * DIFFERENCE)
    assert close(slope, robot.coordinate_rates(q, v), 1e-9) and close(slope, rates(robot, q, v), 1e-9)
    assert close(robot.integrate(q, np.zeros(robot.nv), 1.0), q, 1e-15)
