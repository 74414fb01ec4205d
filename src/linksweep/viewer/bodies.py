"""Simple solid bodies for links without visual shapes: capsules between joints, and a solid for each joint.

From one joint to the next, a link runs along its own axis, along the common normal of both axes, and along the next
axis, as in the Denavit-Hartenberg convention. Bodies become slimmer from the base to the tips, as in most arms.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from linksweep.model.model import BASE, Link, Model

from .geometry import (
    Box,
    Capsule,
    Color,
    Cylinder,
    Sphere,
    Visual,
    link_frames,
    matrix,
    neutral_poses,
    rigid,
    rotation_along,
)

LINK: Color = (0.86, 0.87, 0.89, 1.0)
PEDESTAL: Color = (0.35, 0.37, 0.40, 1.0)
REVOLUTE: Color = (0.20, 0.47, 0.70, 1.0)
PRISMATIC: Color = (0.90, 0.60, 0.10, 1.0)
OTHER: Color = (0.50, 0.52, 0.55, 1.0)
SLIMMEST = 0.55  # thickness of the last link of a long chain, relative to the base
ARM_LINKS, ARM_BULK = 10, 1.3  # robots with so few links have thicker ones


def size_of(model: Model) -> tuple[float, float]:
    """Return the extent of a robot in its neutral configuration (m), and a unit of thickness that suits it (m)."""
    poses = neutral_poses(model)
    points = [pose[:3, 3] for pose in poses.values()]
    points += [(poses[frame.link] @ matrix(frame.placement))[:3, 3] for frame in model.frames]
    extent = float(np.linalg.norm(np.ptp(np.array(points), axis=0))) or 1.0
    return extent, extent * min(0.035, 0.09 / np.sqrt(len(model.links)))


def simple_bodies(model: Model, links: Iterable[int]) -> list[Visual]:
    """Return shapes for these links (BASE for the base), each fixed to the frame with the link's name."""
    extent, size = size_of(model)
    frames = link_frames(model)
    names = {BASE: model.base, **{index: link.name for index, link in enumerate(model.links)}}
    thickness = _thickness(model, size)
    visuals: list[Visual] = []
    for index in sorted(set(links)):
        to_frame = np.linalg.inv(frames[index])
        for visual in _body(model, index, extent, thickness):
            visuals.append(Visual(names[index], visual.shape, to_frame @ visual.at, visual.color))
    return visuals


def _thickness(model: Model, size: float) -> dict[int, float]:
    """Return the thickness of the base and of each link (m), which decreases along every branch."""
    depth = {BASE: 0}
    for index, link in enumerate(model.links):
        depth[index] = depth[link.parent] + 1
    deepest = max(depth.values())
    size *= ARM_BULK if len(model.links) <= ARM_LINKS else 1.0
    return {index: size * (1.0 - (1.0 - SLIMMEST) * depth[index] / max(deepest, 4)) for index in depth}


def _body(model: Model, index: int, extent: float, thickness: dict[int, float]) -> list[Visual]:
    """Return the shapes of one link in its body frame."""
    link = None if index == BASE else model.links[index]
    size = thickness[index]
    children = [k for k, each in enumerate(model.links) if each.parent == index]
    visuals: list[Visual] = []
    for k in children:
        joint = model.links[k].joint
        if not joint.type.attached:
            continue  # nothing connects a floating base with the ground
        at = matrix(joint.placement)
        axis = at[:3, :3] @ np.array(joint.axis, dtype=float)
        visuals += _capsules(_path(_axis(link), at[:3, 3], axis if joint.type.commutes else None), size)
        if joint.type.shape == "slider":
            guide = Box((2.6 * size, 2.6 * size, 4.0 * size))
            visuals.append(Visual("", guide, _along(at[:3, 3], axis), PRISMATIC))
        if index == BASE:
            visuals += _pedestal(at[:3, 3], axis, size)
    if link is not None:
        visuals += _joint(link, extent, size * _nesting(model, index, size))
        if not children:
            visuals += _tip(model, index, link, size)
    return visuals


def _pedestal(joint: np.ndarray, axis: np.ndarray, size: float) -> list[Visual]:
    """Return a flange and a column below the first joint, or at the base's origin if the joint is farther away."""
    near = np.linalg.norm(joint) < 2.0 * size
    direction = axis if near else joint / np.linalg.norm(joint)
    start = joint - direction * 2.9 * size if near else np.zeros(3)
    flange = Visual("", Cylinder(3.2 * size, 0.5 * size), _along(start + 0.25 * size * direction, direction), PEDESTAL)
    column = Visual("", Cylinder(1.9 * size, 1.4 * size), _along(start + 1.0 * size * direction, direction), PEDESTAL)
    return [flange, column]


def _nesting(model: Model, index: int, size: float) -> float:
    """Return how much slimmer a joint is than its link, because joints at one point, as in a wrist, intersect."""
    factor = 1.0
    while index != BASE and model.links[index].joint.type.shape == "drum":
        link = model.links[index]
        if link.parent == BASE or np.linalg.norm(np.array(link.joint.placement.position, dtype=float)) > 1.3 * size:
            break
        factor, index = 0.84 * factor, link.parent
    return max(factor, 0.4)


def _joint(link: Link, extent: float, size: float) -> list[Visual]:
    """Return the solid of the link's own joint, which moves with the link."""
    axis = np.array(link.joint.axis, dtype=float)
    shape = link.joint.type.shape
    if shape == "drum":
        return [Visual("", Cylinder(1.45 * size, 3.2 * size), _along(np.zeros(3), axis), REVOLUTE)]
    if shape == "slider":
        bounds = [abs(x) for x in (link.joint.limits.lower, link.joint.limits.upper) if np.isfinite(x)]
        length = (max(bounds) if bounds else 0.5 * extent) + 2.0 * size
        return [Visual("", Capsule(0.7 * size, length), _along(-0.5 * length * axis, axis), LINK)]
    if shape == "box":
        return [Visual("", Box((2.4 * size, 2.4 * size, 1.2 * size)), np.eye(4), OTHER)]
    return [Visual("", Sphere(1.5 * size), np.eye(4), OTHER)]


def _tip(model: Model, index: int, link: Link, size: float) -> list[Visual]:
    """Return capsules from a leaf link's joint to its frames, or else to its center of mass."""
    tips = [
        np.array(frame.placement.position, dtype=float)
        for frame in model.frames
        if frame.link == index and frame.name != link.name
    ]
    if not tips and float(link.inertial.mass) > 0.0:
        tips = [np.array(link.inertial.com, dtype=float)]
    return [capsule for tip in tips for capsule in _capsules(_path(_axis(link), tip, None), size)]


def _axis(link: Link | None) -> np.ndarray | None:
    return np.array(link.joint.axis, dtype=float) if link is not None and link.joint.type.commutes else None


def _path(axis: np.ndarray | None, end: np.ndarray, next_axis: np.ndarray | None) -> list[np.ndarray]:
    """Return points from the origin to `end`, along the link's axis, the common normal, and the next axis."""
    start, reach = np.zeros(3), float(np.linalg.norm(end))
    if axis is None:
        return [start, end]
    if next_axis is None:
        return [start, axis * (axis @ end), end]
    across = np.cross(axis, next_axis)
    if across @ across < 1e-6:
        return [start, axis * (axis @ end), end]
    normal = across / (across @ across)
    first, second = float(np.cross(end, next_axis) @ normal), float(np.cross(end, axis) @ normal)
    if max(abs(first), abs(second)) > 1.5 * reach:  # nearly parallel axes meet far away
        return [start, end]
    return [start, axis * first, end + next_axis * second, end]


def _capsules(points: list[np.ndarray], size: float) -> list[Visual]:
    """Return a capsule along each segment of a path; segments too short to be seen are joined to the next one."""
    visuals = []
    last = points[0]
    for k, point in enumerate(points[1:], start=1):
        step = point - last
        length = float(np.linalg.norm(step))
        if length < 0.2 * size and k < len(points) - 1:
            continue
        if length > 1e-9:
            visuals.append(Visual("", Capsule(1.15 * size, length), _along(last + 0.5 * step, step), LINK))
        last = point
    return visuals


def _along(position: np.ndarray, direction: np.ndarray) -> np.ndarray:
    return rigid(position, rotation_along(direction))
