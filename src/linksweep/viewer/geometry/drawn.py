"""Bodies for links of which no shape is known: rods along joint axes and their common normals, joints as drums.

From one joint to the next a link runs along its own axis, along the common normal of both axes, and along the next
axis: as Denavit and Hartenberg describe it, and much as arms are built.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from linksweep.description.model import BASE, Link, Model

from .matrices import inverse, matrix, moved, named_frames, neutral_poses, turned_to
from .shapes import Box, Capsule, Color, Cylinder, Sphere, Visual

ROD: Color = (0.78, 0.80, 0.83, 1.0)
PLATE: Color = (0.35, 0.37, 0.40, 1.0)
TURNING: Color = (0.20, 0.47, 0.70, 1.0)
SLIDING: Color = (0.90, 0.60, 0.10, 1.0)
OTHER: Color = (0.50, 0.52, 0.55, 1.0)


def size_of(model: Model) -> tuple[float, float]:
    """The extent of a robot with neutral joints (m), and the radius of a joint's drum that goes with it."""
    points = [pose[:3, 3] for pose in neutral_poses(model).values()]
    poses = neutral_poses(model)
    points += [(poses[frame.link] @ matrix(frame.placement))[:3, 3] for frame in model.frames]
    spread = np.ptp(np.array(points), axis=0)
    extent = float(np.linalg.norm(spread)) or 1.0
    return extent, extent * min(0.035, 0.09 / np.sqrt(len(model.links)))


def drawn_bodies(model: Model, links: Iterable[int]) -> list[Visual]:
    """Shapes for these links (BASE for the base), each fixed to the frame that bears the link's name."""
    extent, size = size_of(model)
    named = named_frames(model)
    names = {BASE: model.base, **{index: link.name for index, link in enumerate(model.links)}}
    wanted = set(links)
    found: list[Visual] = []
    for index in sorted(wanted):
        to_named = inverse(named[index])
        for visual in _body(model, index, extent, size):
            found.append(Visual(names[index], visual.shape, to_named @ visual.at, visual.color))
    return found


def _body(model: Model, index: int, extent: float, size: float) -> list[Visual]:
    """The shapes of one link, in its body frame."""
    own = None if index == BASE else model.links[index]
    children = [link for link in model.links if link.parent == index]
    found: list[Visual] = []
    for child in children:
        if not child.joint.type.attached:
            continue  # nothing connects a floating base with the ground
        at = matrix(child.joint.placement)
        direction = at[:3, :3] @ np.array(child.joint.axis, dtype=float)
        found += _rods(_way(_axis(own), at[:3, 3], direction if child.joint.type.commutes else None), size)
        if child.joint.type.shape == "slider":
            found.append(Visual("", Box((1.7 * size, 1.7 * size, 4.0 * size)), _along(at[:3, 3], direction), SLIDING))
        if index == BASE:
            found.append(_plate(at[:3, 3], direction, size))
    if own is not None:
        found += _joint(own, extent, size * _slimmer(model, index, size))
    if own is not None and not children:
        found += _end(model, index, own, size)
    return found


def _plate(joint: np.ndarray, axis: np.ndarray, size: float) -> Visual:
    """What the base stands on: below the first joint, or at the base's origin where the joint is farther off."""
    near = np.linalg.norm(joint) < 2.0 * size
    way = axis if near else joint
    place = joint - axis * 1.55 * size if near else np.zeros(3)
    return Visual("", Cylinder(2.2 * size, 0.5 * size), _along(place, way), PLATE)


def _slimmer(model: Model, index: int, size: float) -> float:
    """Joints in one place, such as those of a wrist, fit into each other: each is slimmer than the one before."""
    factor = 1.0
    while index != BASE and model.links[index].joint.type.shape == "drum":
        link = model.links[index]
        if link.parent == BASE or np.linalg.norm(np.array(link.joint.placement.position, dtype=float)) > 1.3 * size:
            break
        factor, index = 0.84 * factor, link.parent
    return max(factor, 0.4)


def _joint(link: Link, extent: float, size: float) -> list[Visual]:
    """The link's own joint, which moves with it."""
    axis = np.array(link.joint.axis, dtype=float)
    shape = link.joint.type.shape
    if shape == "drum":
        return [Visual("", Cylinder(size, 2.6 * size), _along(np.zeros(3), axis), TURNING)]
    if shape == "slider":
        bounds = [abs(x) for x in (link.joint.limits.lower, link.joint.limits.upper) if np.isfinite(x)]
        length = (max(bounds) if bounds else 0.5 * extent) + 2.0 * size
        return [Visual("", Capsule(0.5 * size, length), _along(-0.5 * length * axis, axis), ROD)]
    if shape == "box":
        return [Visual("", Box((2.4 * size, 2.4 * size, 1.2 * size)), np.eye(4), OTHER)]
    return [Visual("", Sphere(1.15 * size), np.eye(4), OTHER)]


def _end(model: Model, index: int, link: Link, size: float) -> list[Visual]:
    """The last link of a branch reaches as far as its frames do, or else to its mass centre."""
    tips = [
        np.array(frame.placement.position, dtype=float)
        for frame in model.frames
        if frame.link == index and frame.name != link.name
    ]
    if not tips and float(link.inertial.mass) > 0.0:
        tips = [np.array(link.inertial.com, dtype=float)]
    return [rod for tip in tips for rod in _rods(_way(_axis(link), tip, None), size)]


def _axis(link: Link | None) -> np.ndarray | None:
    return np.array(link.joint.axis, dtype=float) if link is not None and link.joint.type.commutes else None


def _way(own: np.ndarray | None, to: np.ndarray, other: np.ndarray | None) -> list[np.ndarray]:
    """Points from the origin to `to`: along the own axis, the common normal, and the other axis, where there is one."""
    start, reach = np.zeros(3), float(np.linalg.norm(to))
    if own is None:
        return [start, to]
    if other is None:
        return [start, own * (own @ to), to]
    across = np.cross(own, other)
    if across @ across < 1e-6:
        return [start, own * (own @ to), to]
    normal = across / (across @ across)
    here, there = float(np.cross(to, other) @ normal), float(np.cross(to, own) @ normal)
    if max(abs(here), abs(there)) > 1.5 * reach:  # nearly parallel axes meet far outside
        return [start, to]
    return [start, own * here, to + other * there, to]


def _rods(points: list[np.ndarray], size: float) -> list[Visual]:
    found = []
    last = points[0]
    for k, point in enumerate(points[1:], start=1):
        step = point - last
        length = float(np.linalg.norm(step))
        if length < 0.2 * size and k < len(points) - 1:
            continue  # too short to be seen: the next piece begins where this one does
        if length > 1e-9:
            found.append(Visual("", Capsule(0.62 * size, length), moved(last + 0.5 * step, turned_to(step)), ROD))
        last = point
    return found


def _along(position: np.ndarray, direction: np.ndarray) -> np.ndarray:
    return moved(position, turned_to(direction))
