"""A Model as plain data (for JSON) and back, with all checks of a robot model.

No value of a file is trusted. A parent after its child, a repeated index or a value that is not a number would
otherwise reach machine code.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from linksweep.errors import DescriptionError
from linksweep.model.assembly import FREEDOMS, LARGEST, Part, check_body, check_name, check_parts
from linksweep.model.constraints import ROWS, Constraint, Spring
from linksweep.model.model import BASE, Coupling, Frame, Inertial, Joint, Limits, Link, Matrix, Model, Placement
from linksweep.model.quantities import as_number, as_vector
from linksweep.support.files import Table
from linksweep.support.messages import shown

Reader = Callable[[object, str], Any]  # (stored value, its name in messages) -> a field of the model


def model_data(model: Model) -> Table:
    """Return the model as dicts, lists, strings and numbers, without the path of its file."""
    data = dataclasses.asdict(model)
    del data["source"], data["semantics"]
    return data


def model_from_data(data: object, source: str) -> Model:
    """Return the checked model from the result of `model_data`; messages name `source`."""
    model: Model = _read(Model, data, source)
    _check(model, source)
    return model


def _check(model: Model, source: str) -> None:
    """Check as `assemble` does, without its warnings, which were issued when the robot was first loaded."""
    names = {BASE: model.base, **{index: link.name for index, link in enumerate(model.links)}}
    parts = [Part(link.name, names[link.parent], link.joint, link.inertial, measured=True) for link in model.links]
    for part, fine in zip(parts, check_parts(model.name, parts, model.base, source), strict=True):
        if not FREEDOMS[part.joint.kind]:
            raise DescriptionError(f"{source}: joint {part.joint.name!r} is fixed, expected one that moves.")
        if not np.allclose(part.joint.axis, fine.joint.axis, rtol=0, atol=1e-9):
            raise DescriptionError(
                f"{source}: the axis of joint {part.joint.name!r} is {part.joint.axis}, expected a unit vector."
            )
    frames = [
        Part(frame.name, model.base, Joint(frame.name, "fixed", placement=frame.placement)) for frame in model.frames
    ]
    check_parts(model.name, [part for part in frames if part.link != model.base], model.base, source)
    places = {frame.name: frame.link for frame in model.frames}
    for index, name in names.items():
        if places.get(name) != index:
            raise DescriptionError(f"{source}: link {name!r} has no frame of its own name, expected one on it.")
    for frame in model.frames:
        if frame.on and frame.on not in places:
            raise DescriptionError(f"{source}: frame {frame.name!r} is fixed to {frame.on!r}, expected a frame.")
    check_body(model.base, model.base_inertial, measured=True)
    if not all(abs(x) <= LARGEST for x in model.gravity):
        raise DescriptionError(f"{source}: gravity is {model.gravity}, expected numbers below {LARGEST:g}.")


def _read(kind: type, data: object, what: str) -> Any:
    """Return a dataclass of the model, read field by field."""
    readers = FIELDS[kind]
    if not isinstance(data, dict) or not data.keys() <= readers.keys():
        raise DescriptionError(f"{what} is {shown(data)}, expected {', '.join(readers)}.")
    missing = [f.name for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING and f.name not in data]
    if missing:
        raise DescriptionError(f"{what} has no {missing[0]}, expected {', '.join(readers)}.")
    return kind(**{name: readers[name](value, f"{what}: {name}") for name, value in data.items()})


def _text(value: object, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise DescriptionError(f"{what} is {shown(value)}, expected a name.")
    check_name(value, f"{what}: ")
    return value


def _optional(value: object, what: str) -> str:
    return value if value == "" and isinstance(value, str) else _text(value, what)


def _flag(value: object, what: str) -> bool:
    if not isinstance(value, bool):
        raise DescriptionError(f"{what} is {shown(value)}, expected true or false.")
    return value


def _kind(value: object, what: str) -> str:
    if not isinstance(value, str) or value not in ROWS:
        raise DescriptionError(f"{what} is {shown(value)}, expected one of {', '.join(ROWS)}.")
    return value


def _index(value: object, what: str) -> int:
    if type(value) is not int:
        raise DescriptionError(f"{what} is {shown(value)}, expected the number of a link.")
    return value


def _matrix(value: object, what: str) -> Matrix:
    rows = _list(as_vector)(value, what)
    if len(rows) != 3:
        raise DescriptionError(f"{what} is {shown(value)}, expected three rows of three numbers.")
    return (rows[0], rows[1], rows[2])


def _list(read: Reader) -> Reader:
    def entries(value: object, what: str) -> tuple[object, ...]:
        if not isinstance(value, (list, tuple)):
            raise DescriptionError(f"{what} is {shown(value)}, expected a list.")
        return tuple(read(entry, f"{what} {number}") for number, entry in enumerate(value))

    return entries


def _part(kind: type) -> Reader:
    return functools.partial(_read, kind)


FIELDS: dict[type, dict[str, Reader]] = {
    Placement: {"rotation": _matrix, "position": as_vector},
    Inertial: {"mass": as_number, "com": as_vector, "inertia": _matrix},
    Limits: {"lower": as_number, "upper": as_number, "velocity": as_number, "effort": as_number},
    Joint: {
        "name": _text, "kind": _text, "axis": as_vector, "placement": _part(Placement), "armature": as_number,
        "damping": as_number, "friction": as_number, "limits": _part(Limits), "pitch": as_number,
        "actuated": _flag, "torque_offset": as_number,
    },
    Link: {"name": _text, "parent": _index, "joint": _part(Joint), "inertial": _part(Inertial)},
    Frame: {"name": _text, "link": _index, "placement": _part(Placement), "on": _optional},
    Model: {
        "name": _text, "links": _list(_part(Link)), "document_order": _list(_index), "frames": _list(_part(Frame)),
        "gravity": as_vector, "base": _text, "base_inertial": _part(Inertial), "constraints": _list(_part(Constraint)),
        "springs": _list(_part(Spring)), "couplings": _list(_part(Coupling)),
    },
    Coupling: {"joint": _text, "leader": _text, "multiplier": as_number, "offset": as_number},
    Constraint: {
        "kind": _kind, "a": _text, "b": _optional, "at": _part(Placement), "length": as_number, "name": _optional,
    },
    Spring: {
        "a": _text, "b": _optional, "stiffness": as_number, "length": as_number, "damping": as_number,
        "at": _part(Placement),
    },
}  # fmt: skip
