"""Properties of joints and links, read from a Model and changed into a new one; leaf links and end effectors.

Arrays follow `joint_names`: position limits have the shape of q (nq,), all others that of qd (nv,). A ball joint or a
floating base has one velocity limit, effort limit, damping, friction and armature, repeated for its components, and no
position limits. A joint with mimic joints has its own limits, and the total damping, friction, armature and torque
offset that act on its velocity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..functions.parameters import TEN, body
from ..mechanism.canonical import CanonicalModel
from ..model.assembly import LARGEST, check_body, find_frame
from ..model.model import BASE, Inertial, Joint, Limits, Model, inverse, moved, tips, tools
from ..model.quantities import from_ten
from ..support.checks import Named, names, one_of, real_array, refuse_foreign
from ..support.display import html_table
from ..support.messages import listing, nearest, shown
from ..tracing.tracer import parameter_places

_SIDES, _SIZES = ("lower", "upper"), ("velocity", "effort")
_SHARED = ("damping", "friction", "armature", "torque_offset")


class AmbiguousEnd(ArgumentError, AttributeError):
    """The robot has no unique tip frame or end effector."""


class JointLimits(NamedTuple):
    """Position limits lower and upper (nq,), velocity and effort limits (nv,). Infinite where there is no limit."""

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


def limits_of(model: Model) -> JointLimits:
    """Return the limits of all joints."""
    joints = model.joints
    bounds = [(joint.limits if joint.type.limited else Limits(), joint.type.nq) for joint in joints]
    positions = ([getattr(limits, side) for limits, count in bounds for _ in range(count)] for side in _SIDES)
    sizes = ([getattr(joint.limits, size) for joint in joints for _ in range(joint.type.nv)] for size in _SIZES)
    return JointLimits(*(np.array(values, dtype=float) for values in (*positions, *sizes)))


def per_velocity(model: Model, what: str) -> np.ndarray:
    """Return the "damping", "friction", "armature" or "torque_offset" (nv,) of joints with their mimic joints."""
    joints = model.joints
    values = np.array([getattr(joint, what) for joint in joints for _ in range(joint.type.nv)], dtype=float)
    by_name = {link.joint.name: link.joint for link in model.links}
    starts = np.cumsum([0, *(joint.type.nv for joint in joints)])
    index = {joint.name: start for joint, start in zip(joints, starts.tolist(), strict=False)}
    for coupling in model.couplings:
        ratio = coupling.multiplier
        factor = {"friction": abs(ratio), "torque_offset": ratio}.get(what, ratio**2)
        values[index[coupling.leader]] += factor * getattr(by_name[coupling.joint], what)
    return values


def with_limits(model: Model, limits: Mapping[str, Named | None]) -> Model:
    """Return `model` with those of the limits "lower", "upper", "velocity" and "effort" that are not None."""
    changes: dict[str, dict[str, float]] = {}
    for what, values in limits.items():
        for name, value in _by_joint(model, what, values, what in _SIDES).items():
            changes.setdefault(name, {})[what] = value
    joints = {link.joint.name: link.joint for link in model.links}
    changed = {name: replace(joints[name].limits, **new) for name, new in changes.items()}
    for name, bounds in changed.items():
        _check_limits(name, bounds)
    return _with_joints(model, lambda joint: replace(joint, limits=changed[joint.name]), changed)


def with_joint_parameters(model: Model, parameters: Mapping[str, Named | None]) -> Model:
    """Return `model` with those of "damping", "friction", "armature" and "torque_offset" that are not None."""
    changes: dict[str, dict[str, float]] = {}
    for what, values in parameters.items():
        for name, value in _by_joint(model, what, values).items():
            changes.setdefault(name, {})[what] = _checked_size(what, name, value)
    return _with_joints(model, lambda joint: replace(joint, **changes[joint.name]), changes)


def with_inertia(model: Model, inertia: Named) -> Model:
    """Return `model` with other inertial parameters, {link: (10,)} or (links, 10)."""
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
                f"inertia has shape {rows.shape}, expected ({len(names)}, 10), a row for each of "
                f"robot.link_names, or {{link: (10,)}}."
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
    """Return the joints and links as an HTML table for notebooks."""
    rows = []
    for index in model.document_order:
        link = model.links[index]
        limits = link.joint.limits
        sizes = (limits.lower, limits.upper, limits.velocity, limits.effort)
        rows.append((link.joint.name, link.joint.kind, *map(float, sizes), link.name, float(link.inertial.mass)))
    headings = ("joint", "kind", "lower", "upper", "velocity", "effort", "link", "mass")
    ends = f"tip frames: {listing(tips(model), 12, quoted=False)}"
    gravity = "gravity: " + " ".join(f"{x:g}" for x in model.gravity) + " m/s²"
    title = f"{model.name}: {len(rows)} joints, {model.nv} DOF"
    remarks = [ends, gravity]
    if model.constraints:
        title += f", {sum(tie.rows for tie in model.constraints)} rows of constraints"
        remarks.append(f"constraints: {listing((tie.label for tie in model.constraints), 12, quoted=False)}")
    passive = tuple(joint.name for joint in model.joints if not joint.actuated)
    if passive:
        remarks.append(f"passive joints: {listing(passive, 12, quoted=False)}")
    return html_table(title, headings, rows, remarks)


def only_tip(model: Model) -> str:
    """Return the only tip frame; raise AmbiguousEnd otherwise."""
    frames = tips(model)
    if len(frames) == 1:
        return frames[0]
    raise AmbiguousEnd(
        f"{model.name} has {len(frames)} tip frames, {listing(frames, 12, quoted=False)}; name one of them."
    )


def only_tool(model: Model) -> str:
    """Return the only frame that can be the end effector; raise AmbiguousEnd otherwise."""
    frames = tools(model)
    if len(frames) == 1:
        return frames[0]
    raise AmbiguousEnd(
        f"{model.name} has {len(frames)} frames that may be its end effector, {listing(frames, 12, quoted=False)}; "
        f"name one of them."
    )


def states_of(model: Model) -> dict[str, np.ndarray]:
    """Return the named configurations (nq,) of an SRDF file: see `Robot.states`."""
    stops = np.cumsum([0, *(joint.type.nq for joint in model.joints)]).tolist()
    slices = {joint.name: slice(a, b) for joint, a, b in zip(model.joints, stops, stops[1:], strict=False)}
    neutral = np.concatenate([joint.type.neutral() for joint in model.joints])
    named = [state.name for state in model.semantics.states]
    states: dict[str, np.ndarray] = {}
    for state in model.semantics.states:
        full_name = f"{state.group}/{state.name}"
        for key in (state.name, full_name) if named.count(state.name) > 1 else (state.name,):
            q = states.setdefault(key, neutral.copy())
            for joint, values in state.joints:
                if joint in slices and slices[joint].stop - slices[joint].start == len(values):
                    q[slices[joint]] = values
    return states


# ---- Values by joint name

_SIGNALS = {"q": "position", "qd": "velocity", "qdd": "acceleration", "tau": "effort"}


def packed(
    model: Model, joints: Mapping[str, object] | Sequence[str], values: ArrayLike | None, default: ArrayLike | None,
    quantity: str,
) -> np.ndarray:  # fmt: skip
    """Return the vector of `quantity` from values by joint name: see `Robot.pack`."""
    field = _SIGNALS[one_of("quantity", quantity, _SIGNALS)]
    columns = _columns(model, quantity)
    if not isinstance(joints, Mapping):
        entries = _by_column(names("names", joints), values, columns)
    elif values is not None:
        raise ArgumentError("values was passed beside a mapping, which contains its values; leave it out.")
    elif "name" in joints and "name" not in columns:  # a JointState message
        if field not in joints:
            raise ArgumentError(f"the message has no {field!r}, expected a list of numbers, one for each name.")
        entries = _by_column(names("name", joints["name"]), joints[field], columns)
    else:
        for name in joints:
            if name not in columns:
                raise ArgumentError(
                    f"{model.name} has no joint {shown(name)}{nearest(name, columns)}, expected some of "
                    f"{listing(columns)}."
                )
        entries = {name: _value(f"{quantity} of {name}", value, columns[name]) for name, value in joints.items()}
    width = max(span.stop for span in columns.values())
    filled = np.zeros(width, dtype=bool)
    for name in entries:
        filled[columns[name]] = True
    if default is None and not filled.all():
        missing = [name for name, span in columns.items() if "." not in name and not filled[span].all()]
        raise ArgumentError(
            f"{quantity} of {listing(missing)} is missing; pass it, or a default such as "
            f"{'robot.neutral()' if quantity == 'q' else '0.0'}."
        )
    base = np.zeros(width) if default is None else real_array("default", default)
    try:
        shape = np.broadcast_shapes((*base.shape[:-1], width), *((*v.shape[:-1], 1) for v in entries.values()))
        vector = np.broadcast_to(base, shape).astype(float)
    except ValueError:
        raise ArgumentError(
            f"default has shape {base.shape}, and the values have batch shapes "
            f"{listing({str(v.shape[:-1]) for v in entries.values()}, quoted=False)}; expected shapes that broadcast "
            f"to (..., {width})."
        ) from None
    for name, value in entries.items():
        vector[..., columns[name]] = value
    return vector


def unpacked(model: Model, vector: ArrayLike, quantity: str) -> dict[str, np.ndarray]:
    """Return the values of `quantity` by joint name: see `Robot.unpack`."""
    one_of("quantity", quantity, _SIGNALS)
    array = real_array(quantity, vector, (..., model.nq if quantity == "q" else model.nv))
    by_name, start = {}, 0
    for joint in model.joints:
        size = joint.type.nq if quantity == "q" else joint.type.nv
        by_name[joint.name] = array[..., start] if size == 1 else array[..., start : start + size]
        start += size
    return by_name


def _columns(model: Model, quantity: str) -> dict[str, slice]:
    """Return the indices of each joint, and of each component of a joint with several, such as `root_joint.qx`."""
    columns, start = {}, 0
    for joint in model.joints:
        entries = joint.type.coordinates if quantity == "q" else joint.type.rates
        columns[joint.name] = slice(start, start + len(entries))
        if len(entries) > 1:
            columns |= {
                f"{joint.name}.{entry.name}": slice(start + k, start + k + 1) for k, entry in enumerate(entries)
            }
        start += len(entries)
    return columns


def _by_column(labels: list[str], values: object, columns: Mapping[str, slice]) -> dict[str, np.ndarray]:
    """Return the values (..., 1) of the known names; the others, such as those of a gripper, are left out."""
    array = real_array("values", values, (..., len(labels)))
    for name in labels:
        if name in columns and (labels.count(name) > 1 or columns[name].stop - columns[name].start != 1):
            reason = "occurs twice" if labels.count(name) > 1 else "has several coordinates"
            raise ArgumentError(f"{shown(name)} {reason} in names, expected one name for each value.")
    return {name: array[..., k : k + 1] for k, name in enumerate(labels) if name in columns}


def _value(name: str, value: object, span: slice) -> np.ndarray:
    size = span.stop - span.start
    return real_array(name, value)[..., None] if size == 1 else real_array(name, value, (..., size))


# ---- From arguments to joints


def _with_joints(model: Model, changed: Callable[[Joint], Joint], names: Container[str]) -> Model:
    links = tuple(
        replace(link, joint=changed(link.joint)) if link.joint.name in names else link for link in model.links
    )
    return model if links == model.links else replace(model, links=links)


def _by_joint(model: Model, what: str, value: Named | None, positions: bool = False) -> dict[str, float]:
    """Return {joint: number} from an argument; positions: position limits, for 1-DOF joints only."""
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
        each = f" or {sum(sizes)}, one for each {'coordinate' if positions else 'velocity'}"
        raise ArgumentError(
            f"{what} has shape {numbers.shape}, expected {len(joints)} numbers, one for each of robot.joint_names"
            f"{each if sum(sizes) != len(joints) else ''}, or {{joint: number}}, or one number."
        )
    values = {joint.name: _one(what, joint, piece, positions) for joint, piece in zip(joints, pieces, strict=True)}
    by_name = {name: number for name, number in values.items() if number is not None}
    if what in _SHARED:  # the number is the total of a joint and its mimic joints
        by_name |= {coupling.joint: 0.0 for coupling in model.couplings}
    return by_name


def _by_name(model: Model, what: str, value: Mapping[str, ArrayLike], positions: bool) -> dict[str, float]:
    joints = {link.joint.name: link.joint for link in model.links}
    by_name = {}
    for name, entry in value.items():
        if name not in joints:
            raise ArgumentError(
                f"{what}: {model.name} has no joint {shown(name)}{nearest(name, joints)}, expected one of "
                f"robot.joint_names."
            )
        number = _one(what, joints[name], np.atleast_1d(_numbers(f"{what} of {name}", entry)), positions)
        if number is not None:
            by_name[str(name)] = number
    return by_name


def _one(what: str, joint: Joint, numbers: np.ndarray, positions: bool) -> float | None:
    """Return the common value of all components of a joint; None for a multi-DOF joint without limits."""
    if positions and not joint.type.limited:
        if np.isinf(numbers).all():
            return None
        raise ArgumentError(
            f"{what} limits joint {joint.name!r}, which is {joint.kind}, expected 1-DOF joints: leave it out "
            f"or infinite."
        )
    if numbers.size and (numbers == numbers.flat[0]).all() and numbers.shape in ((1,), (joint.type.nv,)):
        return float(numbers[0])
    raise ArgumentError(
        f"{what} of joint {joint.name!r} is {shown(numbers.tolist())}, expected one number for all of its components."
    )


def _numbers(what: str, value: ArrayLike) -> np.ndarray:
    """Return real numbers; infinity is allowed, NaN is not."""
    refuse_foreign(what, value)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError):
        array = np.array(None)
    if array.dtype.kind not in "iuf" or np.isnan(array.astype(float)).any():
        raise ArgumentError(f"{what} is {shown(value)}, expected real numbers.")
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
            f"the limits of joint {name!r} are {limits.lower:g} to {limits.upper:g}, expected lower <= upper."
        )
    for what in _SIZES:
        if getattr(limits, what) < 0.0:
            raise ArgumentError(
                f"the {what} limit of joint {name!r} is {getattr(limits, what):g}, expected zero or more."
            )
    if any(LARGEST < abs(getattr(limits, what)) < math.inf for what in (*_SIDES, *_SIZES)):
        raise ArgumentError(f"a limit of joint {name!r} is beyond {LARGEST:g}, expected less, or infinity.")


def _body(name: str, ten: np.ndarray) -> Inertial:
    """Return mass, center of mass and inertia about it, from the inertial parameters of a body."""
    if ten.shape != (len(TEN),) or not np.isfinite(ten).all():
        raise ArgumentError(
            f"inertia of {name!r} is {shown(ten.tolist())}, expected ten finite numbers, m, m c (3) and the inertia "
            f"about the origin (xx, yy, zz, xy, xz, yz): linksweep.body makes them."
        )
    m, h = float(ten[0]), ten[1:4]
    if m == 0.0 and h.any():
        raise ArgumentError(f"inertia of {name!r} has a first moment and no mass, expected both or neither.")
    return from_ten(ten)


# ---- Mimic joints: gears, belts and couplings q = G q_r + c with a constant G
#
# The robot has the coordinates q_r of the leaders. With velocities G v_r, virtual work gives tau_r = G^T tau and
# M_r = G^T M G. G is folded in when a program is traced (mechanism/sweeps.py), for every function of a Robot.


def expansion(model: CanonicalModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return G of coordinates, G of velocities, and c."""
    q_blocks, v_blocks, shifts = [], [], []
    for link in sorted(model.links, key=lambda link: link.row):
        for blocks, count, start, size in (
            (q_blocks, link.nq, link.q_start, model.nq), (v_blocks, link.nv, link.start, model.nv),
        ):  # fmt: skip
            block = np.zeros((count, size))
            block[:, start : start + count] = np.eye(count) * float(link.ratio)
            blocks.append(block)
        shifts += [float(link.shift)] * link.nq
    return np.concatenate(q_blocks), np.concatenate(v_blocks), np.array(shifts)


# ---- Standard inertial parameters, and where the packed regressor has them


def standard_parameters(model: Model) -> np.ndarray:
    """Return (11 links,): ten parameters of each link in its frame, in document order, then all armatures."""
    frames = {frame.name: inverse(frame.placement) for frame in model.frames}
    links = [model.links[i] for i in model.document_order]
    bodies = [moved(link.inertial, frames[link.name]) for link in links]
    tens = [body(part.mass, part.com, part.inertia) for part in bodies]
    return np.concatenate([*tens, np.array([link.joint.armature for link in links], dtype=float)])


def standard_parameter_names(model: Model) -> tuple[str, ...]:
    links = [model.links[i] for i in model.document_order]
    inertial = [f"{link.name}.{name}" for link in links for name in TEN]
    return (*inertial, *(f"{link.joint.name}.armature" for link in links))


def regressor_places(model: CanonicalModel) -> tuple[np.ndarray, np.ndarray]:
    """Return row and column in Y of each entry of the packed regressor."""
    dense, packed = (parameter_places(model, form) for form in (False, True))
    places = np.empty(packed.size, int)
    for i, link in enumerate(model.links):
        for f in range(link.nv):
            places[packed.motor[i] + f * packed.motor_row] = dense.motor[i] + f * dense.motor_row
        j = i
        while j != BASE:
            at, to = (table.of_link[i] + table.of_joint[j] for table in (packed, dense))
            for f in range(model.links[j].nv):
                ten = np.arange(10)
                places[at + f * packed.row + ten] = to + f * dense.row + ten
            j = model.links[j].parent
    rows, columns = np.divmod(places, dense.row)
    for indices in (rows, columns):
        indices.flags.writeable = False
    return rows, columns
