"""Several robots and bodies as one Robot: a forest on the world, names with prefixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..description.assembly import check_body
from ..description.constraints import as_placement
from ..description.model import BASE, Frame, Inertial, Joint, Link, Model, Placement, compose, merge, moved, symmetric
from ..errors import ArgumentError
from ..support.messages import listing, nearest, shown
from .robot import Robot

WORLD = "world"
SEPARATOR = "/"


def placed(model: Model, pose: ArrayLike) -> Model:
    """`model` with its base at `pose` (4, 4) in the world, which is its new base; gravity is the world's.

    The former base stays as a frame.
    """
    at = as_placement(pose, "the pose of the base")
    world = WORLD
    while any(frame.name == world for frame in model.frames):
        world += "_"
    links = tuple(
        replace(link, joint=replace(link.joint, placement=compose(at, link.joint.placement)))
        if link.parent == BASE else link
        for link in model.links
    )  # fmt: skip
    on_base = {frame.name: world for frame in model.frames if frame.name == model.base}
    frames = tuple(
        replace(frame, placement=compose(at, frame.placement), on=on_base.get(frame.name, frame.on))
        if frame.link == BASE else frame
        for frame in model.frames
    )  # fmt: skip
    return replace(
        model, links=links, frames=(Frame(world, BASE), *frames), base=world,
        base_inertial=moved(model.base_inertial, at), constraints=_ties(model.constraints, at, ""),
        springs=_ties(model.springs, at, ""),
    )  # fmt: skip


def with_frame(model: Model, name: Any, on: Any, pose: ArrayLike | None) -> Model:
    """`model` with one named frame more, at `pose` (4, 4) in the frame `on`."""
    known = {frame.name: frame for frame in model.frames}
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"the name of a frame is {shown(name)}, expected a text: give it one.")
    if name in known:
        raise ArgumentError(f"{model.name} has a frame {name!r} already, expected a new name: choose another.")
    if not isinstance(on, str) or on not in known:
        raise ArgumentError(
            f"{model.name} has no frame {shown(on)}{nearest(on, known)}: expected one of {listing(known)} to stand on."
        )
    host = known[on]
    placement = compose(host.placement, as_placement(pose, f"the pose of the frame {name!r}"))
    return replace(model, frames=(*model.frames, Frame(name, host.link, placement, on)))


def scene(parts: Mapping[str, Any], *, gravity: Sequence[float] | None = None, name: str = "scene") -> Robot:
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
        ties += _ties(model.constraints, at, prefix)
        springs += _ties(model.springs, at, prefix)
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


def _part(key: str, given: Any) -> tuple[Any, Placement]:
    """A robot or an Inertial, and where its base or its free joint stands."""
    pose = None
    if isinstance(given, tuple) and len(given) == 2:
        given, pose = given
    at = as_placement(pose, f"the pose of {key!r}")
    if isinstance(given, Robot):
        return given, at
    return body_inertial(given, f"the part {key!r}"), at


def body_inertial(ten: Any, what: str) -> Inertial:
    """The mass, mass centre and inertia about it of a body of ten numbers."""
    try:
        numbers = np.asarray(ten, dtype=float)
    except (TypeError, ValueError):
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


def _ties(ties: Any, at: Placement, prefix: str) -> tuple[Any, ...]:
    """Constraints or springs, their frames with a prefix; what is tied to the base is tied to where it stands."""
    return tuple(
        replace(tie, a=prefix + tie.a, b=prefix + tie.b if tie.b else "", at=tie.at if tie.b else compose(at, tie.at))
        for tie in ties
    )
