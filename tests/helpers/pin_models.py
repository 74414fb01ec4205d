"""Models of every kind of joint, and the same in Pinocchio, with the places of our coordinates in theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin

import linksweep as ls
from linksweep.joints import KINDS
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint, Placement

ALL_KINDS = ("free", "revolute", "spherical", "planar", "helical", "prismatic")


def random_placement(rng: np.random.Generator) -> Placement:
    rotation = pin.exp3(rng.normal(size=3))
    rows: Any = tuple(map(tuple, rotation.tolist()))
    position: Any = tuple(rng.normal(size=3).tolist())
    return Placement(rows, position)


def random_inertial(rng: np.random.Generator) -> Inertial:
    """Eight points with mass: an inertia that a body can have."""
    points, masses = 0.3 * rng.normal(size=(8, 3)), rng.uniform(0.2, 1.0, 8)
    com = masses @ points / masses.sum()
    away = points - com
    tensor = sum(m * (d @ d * np.eye(3) - np.outer(d, d)) for m, d in zip(masses, away, strict=True))
    rows: Any = tuple(map(tuple, ((tensor + np.transpose(tensor)) / 2).tolist()))
    centre: Any = tuple(com.tolist())
    return Inertial(float(masses.sum()), centre, rows)


def random_robot(kinds: tuple[str, ...], *, tree: bool = False, seed: int = 0, armature: float = 0.0) -> ls.Robot:
    rng = np.random.default_rng(seed)
    parts = []
    for i, kind in enumerate(kinds):
        axis: Any = (0.0, 0.0, 1.0) if kind == "planar" else tuple(rng.normal(size=3).tolist())
        parent = "base" if i == 0 else f"link{rng.integers(0, i) if tree else i - 1}"
        joint = Joint(f"joint{i}", kind, axis, random_placement(rng), armature=armature, pitch=0.3)
        parts.append(Part(f"link{i}", parent, joint, random_inertial(rng)))
        parts.append(Part(f"flange{i}", f"link{i}", Joint(f"mount{i}", "fixed", placement=random_placement(rng))))
    return ls.Robot(assemble("test", parts, base="base", base_inertial=random_inertial(rng)))


def pin_model(robot: ls.Robot) -> Any:
    """Pinocchio's model with the same joints, named alike; depth first, because its derivatives take the rows of a
    subtree to be neighbours."""
    model, ids = pin.Model(), {-1: 0}
    for index in depth_first(robot, -1):
        link = robot.model.links[index]
        joint, body = link.joint, link.inertial
        axis = np.array(joint.axis)
        theirs = {
            "revolute": lambda a=axis: pin.JointModelRevoluteUnaligned(a),
            "prismatic": lambda a=axis: pin.JointModelPrismaticUnaligned(a),
            "helical": lambda a=axis, h=joint.pitch: pin.JointModelHelicalUnaligned(a, h),
            "spherical": pin.JointModelSpherical,
            "planar": pin.JointModelPlanar,
            "free": pin.JointModelFreeFlyer,
        }[joint.kind]()
        at = pin.SE3(np.array(joint.placement.rotation), np.array(joint.placement.position))
        ids[index] = model.addJoint(ids[link.parent], theirs, at, joint.name)
        inertia = pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
        model.appendBodyToJoint(ids[index], inertia, pin.SE3.Identity())
    model.gravity.linear = np.array(robot.gravity)
    return model


def depth_first(robot: ls.Robot, parent: int) -> list[int]:
    children = [i for i, link in enumerate(robot.model.links) if link.parent == parent]
    return [index for child in children for index in (child, *depth_first(robot, child))]


def their_q(robot: ls.Robot, model: Any, q: np.ndarray) -> np.ndarray:
    """Our coordinates (nq,) as theirs; continuous joints of URDF hold (cos, sin) there."""
    theirs = np.empty(model.nq)
    for name, link in zip(robot.joint_names, by_row(robot), strict=True):
        joint = model.joints[model.getJointId(name)]
        own = q[link.q_start : link.q_start + KINDS[link.kind].nq]
        if link.kind == "free":
            own = np.r_[own[4:], own[:4]]
        elif link.kind == "planar":
            own = np.r_[own[1:], np.cos(own[0]), np.sin(own[0])]
        elif joint.nq == 2:
            own = np.r_[np.cos(own), np.sin(own)]
        theirs[joint.idx_q : joint.idx_q + joint.nq] = own
    return theirs


def places(robot: ls.Robot, model: Any) -> np.ndarray:
    """For each of our rates, its place among theirs."""
    order = {"free": [3, 4, 5, 0, 1, 2], "planar": [2, 0, 1]}
    found = []
    for name, link in zip(robot.joint_names, by_row(robot), strict=True):
        joint = model.joints[model.getJointId(name)]
        found += [joint.idx_v + k for k in order.get(link.kind, range(joint.nv))]
    return np.array(found)


def by_row(robot: ls.Robot) -> list[Any]:
    return sorted(robot.canonical.links, key=lambda link: link.row)


def their_v(where: np.ndarray, v: np.ndarray) -> np.ndarray:
    theirs = np.empty(len(where))
    theirs[where] = v
    return theirs
