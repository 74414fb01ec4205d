"""The numbers of joints and links, and where a robot ends: read from a Model, and changed into another one.

Arrays are in the order of `joint_names`, with an entry for each coordinate or rate: positions like q, (nq,), everything
else like qd, (nv,). For 1-DOF joints that is one number each. A ball joint or a free base has one velocity
limit, effort limit, damping, friction and armature for all of its rates, which is repeated, and no position limits. A
joint that others follow has its own limits, and the damping, friction, armature and torque offset that its rate meets
in all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..catalogue.parameters import TEN
from ..description.assembly import LARGEST, check_body, find_frame
from ..description.model import Inertial, Joint, Limits, Model, moved
from ..description.quantities import from_ten
from ..description.tips import tips, tools
from ..errors import ArgumentError
from ..support.foreign import refuse_foreign
from ..support.messages import nearest, shown
from ..support.notebook import html_table
from ..support.numbers import Named

_SIDES, _SIZES = ("lower", "upper"), ("velocity", "effort")
_SHARED = ("damping", "friction", "armature", "torque_offset")


class AmbiguousEnd(ArgumentError, AttributeError):
    """The robot has no end, or tool, that is the only one."""


class JointLimits(NamedTuple):
    """lower, upper (nq,): positions. velocity, effort (nv,): sizes. Infinite where there is no limit."""

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


def limits_of(model: Model) -> JointLimits:
    joints = model.joints
    bounds = [(joint.limits if joint.type.limited else Limits(), joint.type.nq) for joint in joints]
    positions = ([getattr(limits, side) for limits, count in bounds for _ in range(count)] for side in _SIDES)
    sizes = ([getattr(joint.limits, size) for joint in joints for _ in range(joint.type.nv)] for size in _SIZES)
    return JointLimits(*(np.array(values, dtype=float) for values in (*positions, *sizes)))


def of_rates(model: Model, what: str) -> np.ndarray:
    """The "damping", "friction", "armature" or "torque_offset" at each rate (nv,): of a joint and its followers."""
    joints = model.joints
    found = np.array([getattr(joint, what) for joint in joints for _ in range(joint.type.nv)], dtype=float)
    own = {link.joint.name: link.joint for link in model.links}
    starts = np.cumsum([0, *(joint.type.nv for joint in joints)])
    place = {joint.name: start for joint, start in zip(joints, starts.tolist(), strict=False)}
    for law in model.couplings:
        ratio = {"friction": abs(law.multiplier), "torque_offset": law.multiplier}.get(what, law.multiplier**2)
        found[place[law.leader]] += ratio * getattr(own[law.joint], what)
    return found


def with_limits(model: Model, given: Mapping[str, Named | None]) -> Model:
    """`model` with other limits: of "lower", "upper", "velocity" and "effort" those that are not None."""
    changes: dict[str, dict[str, float]] = {}
    for what, values in given.items():
        for name, value in _by_joint(model, what, values, what in _SIDES).items():
            changes.setdefault(name, {})[what] = value
    joints = {link.joint.name: link.joint for link in model.links}
    limits = {name: replace(joints[name].limits, **new) for name, new in changes.items()}
    for name, bounds in limits.items():
        _check_limits(name, bounds)
    return _with_joints(model, lambda joint: replace(joint, limits=limits[joint.name]), limits)


def with_sizes(model: Model, given: Mapping[str, Named | None]) -> Model:
    """`model` with other "damping", "friction", "armature" or "torque_offset", where they are not None."""
    changes: dict[str, dict[str, float]] = {}
    for what, values in given.items():
        for name, value in _by_joint(model, what, values).items():
            changes.setdefault(name, {})[what] = _checked_size(what, name, value)
    return _with_joints(model, lambda joint: replace(joint, **changes[joint.name]), changes)


def with_inertia(model: Model, inertia: Named) -> Model:
    """`model` with other bodies, {link: ten numbers} or (links, 10)."""
    names = [model.links[i].name for i in model.document_order]
    if isinstance(inertia, Mapping):
        unknown = [name for name in inertia if name not in names]
        if unknown:
            raise ArgumentError(
                f"inertia: {model.name} has no link {shown(unknown[0])}{nearest(unknown[0], names)}, "
                f"expected one of robot.link_names."
            )
        bodies = {str(name): _body(str(name), _numbers(f"inertia of {name}", ten)) for name, ten in inertia.items()}
    else:
        rows = _numbers("inertia", inertia)
        if rows.shape != (len(names), 10):
            raise ArgumentError(
                f"inertia has shape {rows.shape}, expected ({len(names)}, 10), a body for each of "
                f"robot.link_names, or {{link: body}}."
            )
        bodies = {name: _body(name, ten) for name, ten in zip(names, rows, strict=True)}
    links = list(model.links)
    for index, link in enumerate(links):
        if link.name in bodies:
            inertial = moved(bodies[link.name], find_frame(model, link.name).placement)
            check_body(link.name, inertial)
            links[index] = replace(link, inertial=inertial)
    return replace(model, links=tuple(links)) if bodies else model


def html_of(model: Model) -> str:
    """The joints and links as a table for notebooks."""
    rows = []
    for index in model.document_order:
        link = model.links[index]
        limits = link.joint.limits
        sizes = (limits.lower, limits.upper, limits.velocity, limits.effort)
        rows.append((link.joint.name, link.joint.kind, *map(float, sizes), link.name, float(link.inertial.mass)))
    headings = ("joint", "kind", "lower", "upper", "velocity", "effort", "link", "mass")
    ends = f"ends: {_listed(tips(model))}"
    gravity = "gravity: " + " ".join(f"{x:g}" for x in model.gravity) + " m/s²"
    title = f"{model.name}: {len(rows)} joints, {model.nv} DOF"
    remarks = [ends, gravity]
    if model.constraints:
        title += f", {sum(tie.rows for tie in model.constraints)} rows of constraints"
        remarks.append(f"constraints: {_listed(tuple(tie.label for tie in model.constraints))}")
    passive = tuple(joint.name for joint in model.joints if not joint.actuated)
    if passive:
        remarks.append(f"passive joints: {_listed(passive)}")
    return html_table(title, headings, rows, remarks)


def only_tip(model: Model) -> str:
    found = tips(model)
    if len(found) == 1:
        return found[0]
    raise AmbiguousEnd(f"{model.name} ends in {len(found)} frames, {_listed(found)}, expected one: choose one of them.")


def only_tool(model: Model) -> str:
    found = tools(model)
    if len(found) == 1:
        return found[0]
    raise AmbiguousEnd(
        f"{model.name} has {len(found)} frames that may be its tool, {_listed(found)}, expected one: name the one "
        f"you mean."
    )


# how numbers find their joints


def _with_joints(model: Model, changed: Callable[[Joint], Joint], names: Container[str]) -> Model:
    links = tuple(
        replace(link, joint=changed(link.joint)) if link.joint.name in names else link for link in model.links
    )
    return model if links == model.links else replace(model, links=links)


def _by_joint(model: Model, what: str, value: Named | None, positions: bool = False) -> dict[str, float]:
    """{joint: number} from what a user passes; `positions`: of coordinates, for 1-DOF joints only."""
    if value is None:
        return {}
    joints = model.joints
    if isinstance(value, Mapping):
        return _by_name(model, what, value, positions)
    numbers = _numbers(what, value)
    if numbers.ndim == 0:
        every = [model.links[i].joint for i in model.document_order]
        return {joint.name: float(numbers) for joint in every if joint.type.limited or not positions}
    sizes = [joint.type.nq if positions else joint.type.nv for joint in joints]
    if numbers.shape == (len(joints),):
        pieces = [numbers[k : k + 1] for k in range(len(joints))]
    elif numbers.shape == (sum(sizes),):
        pieces = np.split(numbers, np.cumsum(sizes)[:-1])
    else:
        each = f" or {sum(sizes)}, one for each {'coordinate' if positions else 'rate'}"
        raise ArgumentError(
            f"{what} has shape {numbers.shape}, expected {len(joints)} numbers, one for each of robot.joint_names"
            f"{each if sum(sizes) != len(joints) else ''}, or {{joint: number}}, or one number."
        )
    found = {joint.name: _one(what, joint, piece, positions) for joint, piece in zip(joints, pieces, strict=True)}
    found = {name: number for name, number in found.items() if number is not None}
    if what in _SHARED:  # a number is what a rate meets in all
        found |= {law.joint: 0.0 for law in model.couplings}
    return found


def _by_name(model: Model, what: str, value: Mapping[str, ArrayLike], positions: bool) -> dict[str, float]:
    joints = {link.joint.name: link.joint for link in model.links}
    found = {}
    for name, given in value.items():
        if name not in joints:
            raise ArgumentError(
                f"{what}: {model.name} has no joint {shown(name)}{nearest(name, joints)}, expected one of "
                f"robot.joint_names."
            )
        number = _one(what, joints[name], np.atleast_1d(_numbers(f"{what} of {name}", given)), positions)
        if number is not None:
            found[str(name)] = number
    return found


def _one(what: str, joint: Joint, numbers: np.ndarray, positions: bool) -> float | None:
    """The number that all entries of a joint have; None for a multi-DOF joint that is not limited."""
    if positions and not joint.type.limited:
        if np.isinf(numbers).all():
            return None
        raise ArgumentError(
            f"{what} limits joint {joint.name!r}, which is {joint.kind}, expected 1-DOF joints: leave it out, "
            f"or infinite."
        )
    if numbers.size and (numbers == numbers.flat[0]).all() and numbers.shape in ((1,), (joint.type.nv,)):
        return float(numbers[0])
    raise ArgumentError(
        f"{what} of joint {joint.name!r} is {shown(numbers.tolist())}, expected one number for all of its rates."
    )


def _numbers(what: str, value: ArrayLike) -> np.ndarray:
    """Real numbers, infinite ones too, but no NaN."""
    refuse_foreign(what, value)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.array(None)
    if array.dtype.kind not in "iuf" or np.isnan(array.astype(float)).any():
        raise ArgumentError(f"{what} is {shown(value)}, expected real numbers: correct it.")
    return array.astype(float)


def _checked_size(what: str, name: str, value: float) -> float:
    least = -LARGEST if what == "torque_offset" else 0.0
    if not least <= value <= LARGEST:
        more = "" if least else ", zero or more"
        raise ArgumentError(f"{what} of joint {name!r} is {value:g}, expected a finite number{more}.")
    return value + 0.0


def _check_limits(name: str, limits: Limits) -> None:
    if not limits.lower <= limits.upper or limits.lower == math.inf or limits.upper == -math.inf:
        raise ArgumentError(
            f"the limits of joint {name!r} are {limits.lower:g} to {limits.upper:g}, expected a lower one that is not "
            f"above the upper one."
        )
    for what in _SIZES:
        if getattr(limits, what) < 0.0:
            raise ArgumentError(
                f"the {what} limit of joint {name!r} is {getattr(limits, what):g}, expected zero or more: it is the "
                f"largest size."
            )
    if any(LARGEST < abs(getattr(limits, what)) < math.inf for what in (*_SIDES, *_SIZES)):
        raise ArgumentError(f"a limit of joint {name!r} is beyond {LARGEST:g}, expected less, or infinity.")


def _body(name: str, ten: np.ndarray) -> Inertial:
    """Mass, mass centre and the inertia about it, from the ten numbers of a body."""
    if ten.shape != (len(TEN),) or not np.isfinite(ten).all():
        raise ArgumentError(
            f"inertia of {name!r} is {shown(ten.tolist())}, expected ten finite numbers, m, m c (3) and the inertia "
            f"about the origin (xx, yy, zz, xy, xz, yz): linksweep.body makes them."
        )
    m, h = float(ten[0]), ten[1:4]
    if m == 0.0 and h.any():
        raise ArgumentError(
            f"inertia of {name!r} has a first moment and no mass, expected both or neither: correct it."
        )
    return from_ten(ten)


def _listed(names: tuple[str, ...], most: int = 12) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
