"""Several robots and bodies as one Robot: a forest on the world, names with prefixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ..description.assembly import check_body
from ..description.constraints import as_placement
from ..description.model import BASE, Frame, Inertial, Joint, Link, Model, Placement, compose, merge, symmetric
from ..errors import ArgumentError
from ..support.messages import shown
from .editing import WORLD, moved_ties
from .robot import Robot

SEPARATOR = "/"
Part = Robot | tuple[Robot, ArrayLike] | ArrayLike


def scene(parts: Mapping[str, Part], *, gravity: Sequence[float] | None = None, name: str = "scene") -> Robot:
    """Robots and bodies as one Robot whose base is the world.

    parts: {name: robot}, {name: (robot, pose)} with the pose (4, 4) of its base in the world, or {name: body}, the ten
    numbers of `linksweep.body`, for a body that moves freely. Joints, links and frames of a robot are called
    "name/joint1"; a body's link, frame and joint have its own name. Coordinates follow the order of the parts. gravity:
    in the world; None takes what the robots agree on.
    """
    if not isinstance(parts, Mapping) or not parts:
        raise ArgumentError(f"scene got {shown(parts)}, expected a dict of robots and bodies by name: name some.")
    links: list[Link] = []
    order: list[int] = []
    frames: list[Frame] = [Frame(WORLD, BASE)]
    ground, ties, springs, laws, pulls = Inertial(), [], [], [], {}
    for key, given in parts.items():
        if not isinstance(key, str) or not key or key == WORLD:
            raise ArgumentError(f"a part of the scene is called {shown(key)}, expected a name other than 'world'.")
        part, at = _part(key, given)
        first = len(links)
        if isinstance(part, Inertial):
            links.append(Link(key, BASE, Joint(key, "free", placement=at), part))
            frames.append(Frame(key, first))
            order.append(first)
            continue
        model, prefix = part.model, key + SEPARATOR
        pulls[key] = tuple(model.gravity)
        for link in model.links:
            placement = compose(at, link.joint.placement) if link.parent == BASE else link.joint.placement
            joint = replace(link.joint, name=prefix + link.joint.name, placement=placement)
            parent = BASE if link.parent == BASE else first + link.parent
            links.append(replace(link, name=prefix + link.name, parent=parent, joint=joint))
        for frame in model.frames:
            placement = compose(at, frame.placement) if frame.link == BASE else frame.placement
            host = BASE if frame.link == BASE else first + frame.link
            frames.append(Frame(prefix + frame.name, host, placement, prefix + frame.on if frame.on else ""))
        order += [first + index for index in model.document_order]
        ground = merge(ground, model.base_inertial, at)
        ties += moved_ties(model.constraints, at, prefix)
        springs += moved_ties(model.springs, at, prefix)
        laws += [replace(law, joint=prefix + law.joint, leader=prefix + law.leader) for law in model.couplings]
    if gravity is None and len(set(pulls.values())) > 1:
        raise ArgumentError(
            f"the robots of the scene have different gravities, {shown(pulls)}, expected one for all: give gravity=."
        )
    pull = next(iter(pulls.values()), (0.0, 0.0, -9.81))
    model = Model(
        name, tuple(links), tuple(order), tuple(frames), pull, WORLD, ground, tuple(ties), tuple(springs), tuple(laws)
    )  # fmt: skip
    robot = Robot(model)
    return robot if gravity is None else robot.with_gravity(gravity)


def _part(key: str, given: Part) -> tuple[Robot | Inertial, Placement]:
    """A robot or an Inertial, and where its base or its free joint stands."""
    pose = None
    if isinstance(given, tuple) and len(given) == 2:
        given, pose = given
    at = as_placement(pose, f"the pose of {key!r}")
    if isinstance(given, Robot):
        return given, at
    return body_inertial(given, f"the part {key!r}"), at


def body_inertial(ten: ArrayLike, what: str) -> Inertial:
    """The mass, mass centre and inertia about it of a body of ten numbers."""
    try:
        numbers = np.asarray(ten, dtype=float)
    except (TypeError, ValueError, OverflowError):
        numbers = np.zeros(0)
    if numbers.shape != (10,) or not np.isfinite(numbers).all():
        raise ArgumentError(
            f"{what} is {shown(ten)}, expected a Robot, (Robot, pose) or the ten numbers of linksweep.body."
        )
    m = float(numbers[0])
    if not m > 0:
        raise ArgumentError(f"{what} has mass {m}, expected a positive one: a body that moves freely needs it.")
    c = numbers[1:4] / m
    xx, yy, zz, xy, xz, yz = numbers[4:]
    about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - m * (c @ c * np.eye(3) - np.outer(c, c))
    x, y, z = c.tolist()
    found = Inertial(m, (x, y, z), symmetric(*about[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]].tolist()))
    check_body(what, found)
    return found
