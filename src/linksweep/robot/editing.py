"""Modified copies of a Model: other gravity, base or motors, further frames, locked joints, subchains.

Every function takes a Model and returns a new one. A link that no longer moves is merged into its parent, with its
inertia and with its frames, which keep their names.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..mechanism.canonical import aligning_rotation
from ..model.assembly import check_body, find_frame
from ..model.constraints import Constraint, Spring, as_placement, without
from ..model.model import (
    BASE,
    Frame,
    Inertial,
    Joint,
    Link,
    Matrix,
    Model,
    Placement,
    Vector,
    apply,
    compose,
    inverse,
    merge,
    moved,
    multiply,
    snap,
    transpose,
)
from ..spatial.algebra import Transform
from ..spatial.transforms import WORLD as ORIGIN
from ..support.checks import Named, as_list, checked_flag, one_of, refuse_foreign
from ..support.messages import listing, nearest, shown

WORLD = "world"
ROOT_JOINT = "root_joint"
Tie = TypeVar("Tie", Constraint, Spring)


def with_gravity(model: Model, gravity: Sequence[float]) -> Model:
    """Return `model` with another gravity, an acceleration in the base frame."""
    refuse_foreign("gravity", gravity)
    try:
        numbers = np.asarray(gravity)
    except (TypeError, ValueError, OverflowError):
        numbers = np.array(None)
    vector = numbers.astype(float) if numbers.dtype.kind in "iuf" else np.array([])
    if vector.shape != (3,) or not np.isfinite(vector).all():
        raise ArgumentError(
            f"gravity is {shown(gravity)}, expected three finite numbers, an acceleration in the base frame such "
            f"as (0, 0, -9.81)."
        )
    return model.with_gravity(tuple(vector.tolist()))


def with_base(model: Model, base: str) -> Model:
    """Return `model` with a "floating" or a "fixed" base; unchanged if it has one.

    Floating: the former base becomes the first moving link, with its inertia and its frames, on a free joint
    "root_joint" whose coordinates come first. The new fixed base is "world", in which gravity keeps its direction.
    Fixed: the reverse, for a robot whose only link on the base has a free joint.
    """
    one_of("base", base, ("fixed", "floating"))
    on_base = [link for link in model.links if link.parent == BASE]
    floats = len(on_base) == 1 and on_base[0].joint.type.floats
    if floats == (base == "floating"):
        return model
    return _on_fixed_base(model) if floats else _on_floating_base(model)


def _on_floating_base(model: Model) -> Model:
    check_body(model.base, model.base_inertial, source=model.source or None)
    root = Joint(_unused(ROOT_JOINT, [link.joint.name for link in model.links]), "free")
    world = _unused(WORLD, [frame.name for frame in model.frames])
    first = Link(model.base, BASE, root, model.base_inertial)
    return replace(
        model,
        links=(first, *(replace(link, parent=link.parent + 1) for link in model.links)),
        document_order=(0, *(index + 1 for index in model.document_order)),
        frames=(Frame(world, BASE), *(replace(frame, link=frame.link + 1) for frame in model.frames)),
        base=world,
        base_inertial=Inertial(),
    )


def _on_fixed_base(model: Model) -> Model:
    """Make the link on the free joint the base; the world is at the neutral position of that joint."""
    first, *others = model.links
    if not others:
        raise ArgumentError(f"{model.name!r} is a single free body, expected further moving links for a fixed base.")
    at = first.joint.placement
    world = inverse(at)
    frames = [Frame(first.name, BASE, find_frame(model, first.name).placement)]
    for frame in model.frames:
        if frame.link == BASE and frame.name != model.base:
            frames.append(replace(frame, placement=compose(world, frame.placement)))
        elif frame.link != BASE and frame.name != first.name:
            frames.append(replace(frame, link=frame.link - 1))
    return replace(
        model,
        links=tuple(replace(link, parent=link.parent - 1) for link in others),
        document_order=tuple(index - 1 for index in model.document_order if index),
        frames=tuple(frames),
        gravity=apply(world.rotation, model.gravity),
        base=first.name,
        base_inertial=first.inertial,
    )


def placed(model: Model, pose: ArrayLike) -> Model:
    """Return `model` with its base at `pose` (4, 4) in the world, the new base frame in which gravity is given.

    The former base remains as a frame.
    """
    at = as_placement(pose, "the pose of the base")
    world = _unused(WORLD, [frame.name for frame in model.frames])
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
        base_inertial=moved(model.base_inertial, at), constraints=moved_ties(model.constraints, at, ""),
        springs=moved_ties(model.springs, at, ""),
    )  # fmt: skip


def with_actuated(model: Model, joints: str | Iterable[str]) -> Model:
    """Return `model` with motors at these joints only; of mimic joints and their leader any one may be named."""
    names = as_list(joints)
    kinds = {link.joint.name: link.joint.type for link in model.links}
    for name in names:
        if not isinstance(name, str) or name not in kinds:
            raise ArgumentError(
                f"actuated names {shown(name)}{nearest(name, kinds)}, expected joints of {model.name} "
                f"(robot.joint_names): {listing(kinds)}."
            )
        if kinds[name].floats:
            raise ArgumentError(
                f"actuated names {name!r}, which is a free joint of {model.name} and cannot have a motor."
            )
    links = (replace(link, joint=replace(link.joint, actuated=link.joint.name in names)) for link in model.links)
    return replace(model, links=tuple(links))


def with_frame(model: Model, name: str, on: str, pose: ArrayLike | None) -> Model:
    """Return `model` with one more frame, at `pose` (4, 4) relative to the frame `on`."""
    known = {frame.name: frame for frame in model.frames}
    if not isinstance(name, str) or not name:
        raise ArgumentError(f"the name of a frame is {shown(name)}, expected a non-empty text.")
    if name in known:
        raise ArgumentError(f"{model.name} has a frame {name!r} already, expected a new name.")
    if not isinstance(on, str) or on not in known:
        raise ArgumentError(
            f"{model.name} has no frame {shown(on)}{nearest(on, known)}, expected one of {listing(known)}."
        )
    host = known[on]
    placement = compose(host.placement, as_placement(pose, f"the pose of the frame {name!r}"))
    return replace(model, frames=(*model.frames, Frame(name, host.link, placement, on)))


def moved_ties(ties: Iterable[Tie], at: Placement, prefix: str) -> tuple[Tie, ...]:
    """Return constraints or springs with prefixed frame names; `at` is the placement of the former base."""
    return tuple(
        replace(tie, a=prefix + tie.a, b=prefix + tie.b if tie.b else "", at=tie.at if tie.b else compose(at, tie.at))
        for tie in ties
    )


def lock(
    model: Model, joints: str | Iterable[str] | Mapping[str, ArrayLike], at: Named | Sequence[ArrayLike] | None = None
) -> Model:
    """Return `model` with locked joints, their links merged into their parents.

    joints: a joint name, several, or {joint: coordinates}. at: positions, {joint: coordinates} or one entry for each of
    `joints`, with as many numbers as the joint has coordinates; neutral by default.
    """
    if isinstance(joints, Mapping):
        if at is not None:
            raise ArgumentError("lock got positions both in joints and in at=, expected one of them.")
        joints, at = list(joints), joints
    listed = as_list(joints)
    names = [name for name in listed if isinstance(name, str)]
    if len(names) < len(listed):
        raise ArgumentError(f"joints is {shown(joints)}, expected names of joints (robot.joint_names).")
    by_name = {link.joint.name: (index, link.joint) for index, link in enumerate(model.links)}
    for name in names:
        if name not in by_name:
            raise ArgumentError(
                f"the robot {model.name!r} has no joint {shown(name)}{nearest(name, by_name)}, expected some of "
                f"{listing(by_name)}."
            )
    followers = {coupling.joint: coupling for coupling in model.couplings}
    for name in names:
        if name in followers:
            raise ArgumentError(
                f"joint {name!r} of {model.name!r} is a mimic joint of {followers[name].leader!r}; lock the leader."
            )
    positions = _positions(names, at)
    for coupling in model.couplings:
        if coupling.leader in names:
            position = positions.get(coupling.leader)
            _placement_at(by_name[coupling.leader][1], position)  # raises errors about the leader first
            lead = 0.0 if position is None else float(np.ravel(np.asarray(position, dtype=float))[0])
            names, positions[coupling.joint] = [*names, coupling.joint], coupling.multiplier * lead + coupling.offset
    still = {by_name[name][0]: _placement_at(by_name[name][1], positions.get(name)) for name in names}
    if len(still) == len(model.links):
        raise ArgumentError(
            f"all {len(still)} joints of {model.name!r} would be locked, expected at least one moving joint."
        )
    return _rebuilt(model, range(len(model.links)), still, Frame(model.base, BASE), lambda frame: True)


def subchain(model: Model, base: str, tip: str, fold: bool = True) -> Model:
    """Return the serial chain from the link or frame `base`, which becomes the fixed base, to the link or frame `tip`.

    Branches, and links beyond the tip's link, are locked at neutral and merged with their inertia and frames; with
    `fold=False` they are dropped. Gravity has the direction that it has in the frame `base` at neutral coordinates.
    """
    first, last = find_frame(model, base), find_frame(model, tip)
    path = [last.link]
    while path[-1] not in (first.link, BASE):
        path.append(model.links[path[-1]].parent)
    if path[-1] != first.link or len(path) == 1:
        raise ArgumentError(
            f"there is no joint between {base!r} and {tip!r}, expected two frames of one branch, the one nearer to the "
            f"robot's base first."
        )
    moving = set(path[:-1])
    kept = [index for index, link in enumerate(model.links) if index in moving]
    inside_names = {model.links[index].joint.name for index in moving}
    for coupling in model.couplings:
        if coupling.joint in inside_names and coupling.leader not in inside_names:
            raise ArgumentError(
                f"joint {coupling.joint!r} of the chain mimics {coupling.leader!r}, which is not part of it; use "
                f"robot.uncoupled.subchain."
            )
    still: dict[int, Placement] = {}
    if checked_flag("subchain: fold", fold):
        below = {first.link}
        for index, link in enumerate(model.links):
            if link.parent in below:
                below.add(index)
                if index not in moving:
                    still[index] = _neutral_placement(model, link.joint)
                    kept.append(index)
        kept.sort()
    inside = {first.link, *kept}
    up = _neutral_rotation(model, first)
    model = replace(model, gravity=apply(transpose(up), model.gravity))
    return _rebuilt(model, kept, still, first, lambda frame: frame.link in inside)


def _rebuilt(
    model: Model, kept: Sequence[int], still: Mapping[int, Placement], base: Frame, keep: Callable[[Frame], bool]
) -> Model:
    """Return a model of the `kept` links (ascending) on the frame `base`; those in `still` are merged at placements."""
    root = inverse(base.placement)
    ground = moved(model.base_inertial if base.link == BASE else model.links[base.link].inertial, root)
    carried: dict[int, tuple[int, Placement]] = {base.link: (BASE, root)}
    links: list[Link] = []
    for index in kept:
        link = model.links[index]
        parent, at = carried[link.parent]
        if index not in still:
            carried[index] = (len(links), Placement())
            placement = compose(at, link.joint.placement)
            links.append(replace(link, parent=parent, joint=replace(link.joint, placement=placement)))
            continue
        placement = compose(at, still[index])
        carried[index] = (parent, placement)
        if parent == BASE:
            ground = merge(ground, link.inertial, placement)
        else:
            links[parent] = replace(links[parent], inertial=merge(links[parent].inertial, link.inertial, placement))
    frames = [Frame(base.name, BASE)]
    names = {BASE: base.name, **{index: link.name for index, link in enumerate(model.links)}}
    locked = {model.links[index].name: names[model.links[index].parent] for index in still}
    for frame in model.frames:
        if keep(frame) and frame.name != base.name:
            host, at = carried[frame.link]
            on = locked.get(frame.name, frame.on)
            frames.append(Frame(frame.name, host, compose(at, frame.placement), on))
    order = tuple(carried[index][0] for index in model.document_order if index in carried and index not in still)
    return replace(
        model,
        links=tuple(links),
        document_order=tuple(index for index in order if index != BASE),
        frames=tuple(frames),
        base=base.name,
        base_inertial=ground,
        couplings=without(model, {link.joint.name for link in model.links} - {link.joint.name for link in links}),
    )


def _neutral_placement(model: Model, joint: Joint) -> Placement:
    """Return the placement of the link in its parent at neutral coordinates of all leaders."""
    offset = next((coupling.offset for coupling in model.couplings if coupling.joint == joint.name), None)
    return _placement_at(joint, offset)


def _positions(names: Sequence[str], at: Named | Sequence[ArrayLike] | None) -> dict[str, ArrayLike]:
    if at is None:
        return {}
    if isinstance(at, Mapping):
        loose = [str(name) for name in at if name not in names]
        if loose:
            raise ArgumentError(f"at= names {listing(loose)}, expected only joints that are locked.")
        return dict(at)
    entries = list(at) if isinstance(at, (Sequence, np.ndarray)) and not isinstance(at, str) else [at]
    if len(entries) != len(names):
        raise ArgumentError(f"at= has {len(entries)} entries, expected one for each of the {len(names)} joints.")
    return dict(zip(names, entries, strict=True))


def _placement_at(joint: Joint, coordinates: ArrayLike | None) -> Placement:
    """Return the placement of the link in its parent at these coordinates of its joint (None: neutral)."""
    if coordinates is None:
        return joint.placement
    count = joint.type.nq
    refuse_foreign(f"at= of joint {joint.name!r}", coordinates)
    try:
        q = [float(x) for x in np.atleast_1d(np.asarray(coordinates, dtype=float))]
    except (TypeError, ValueError, OverflowError):
        q = []
    if len(q) != count or not all(math.isfinite(x) for x in q):
        raise ArgumentError(
            f"at= of joint {joint.name!r} is {shown(coordinates)}, expected {count} finite number"
            f"{'s' if count > 1 else ''} for a {joint.kind} joint."
        )
    return compose(joint.placement, _motion(joint, q))


def _motion(joint: Joint, q: list[float]) -> Placement:
    kind = joint.type
    if kind.has_quaternion and not math.hypot(*q[:4]) > 0:
        raise ArgumentError(
            f"at= of joint {joint.name!r} has a quaternion of length 0, expected xyzw such as (0, 0, 0, 1)."
        )
    own = ORIGIN.through(Transform(kind.motion(kind.kept(q, 0.0), 0, (1.0, 0.0), 0.0, joint.pitch)))
    aligned = aligning_rotation(joint.axis)
    turn = aligned @ np.array([[*own.x], [*own.y], [*own.z]]).T @ aligned.T
    x, y, z = (_vector(row) for row in turn)
    return Placement(snap((x, y, z)), _vector(aligned @ np.array([*own.p])))


def _neutral_rotation(model: Model, frame: Frame) -> Matrix:
    """Return the rotation of a frame in the base at neutral coordinates."""
    rotation, link = frame.placement.rotation, frame.link
    while link != BASE:
        rotation = multiply(_neutral_placement(model, model.links[link].joint).rotation, rotation)
        link = model.links[link].parent
    return snap(rotation)


def _unused(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _vector(v: Iterable[float]) -> Vector:
    x, y, z = (float(item) for item in v)
    return (x, y, z)
