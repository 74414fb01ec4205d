"""Constraints and springs between frames, as part of a description.

A constraint ties frame `a` to frame `b`, or to the world where b is "". What it leaves free is told in the axes of b,
which stand at `at` on frame b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linksweep.description.model import Placement, snap
from linksweep.description.quantities import as_number, as_vector
from linksweep.errors import ArgumentError
from linksweep.support.messages import nearest, shown

Given = Any  # what somebody gave; after __post_init__ what it stands for: a name, a Placement, a number
ROWS = {
    "rigid": 6, "point": 3, "hinge": 5, "slider": 5, "plane": 1, "line": 2, "distance": 1, "soft_finger": 4,
}  # fmt: skip
"""Every kind of constraint, and how many freedoms it takes."""

MEANING = {
    "rigid": "a stands where b stands",
    "point": "the origins coincide",
    "hinge": "the origins and the z axes coincide: a turns about z of b",
    "slider": "a keeps the axes of b and slides along its z",
    "plane": "the origin of a stays in the x-y plane of b",
    "line": "the origin of a stays on the z axis of b",
    "distance": "the origins keep their distance",
    "soft_finger": "the origins coincide, and a does not turn about z of b",
}


@dataclass(frozen=True, slots=True)
class Constraint:
    """A tie between the frames a and b of a robot, or with b=None to the world.

    kind: "rigid", "point", "hinge", "slider", "plane", "line", "distance", "soft_finger". at: (4, 4), where the
    constraint's own axes stand on frame b (in the world without b); None is b itself. length: of a distance.
    """

    kind: str
    a: str
    b: Given = None
    at: Given = field(default=None, kw_only=True)
    length: Given = field(default=None, kw_only=True)
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in ROWS:
            raise ArgumentError(
                f"there is no constraint {shown(self.kind)}{nearest(self.kind, ROWS)}: expected {', '.join(ROWS)}."
            )
        first, second = _frame_name(self.a, "a"), "" if _is_base(self.b) else _frame_name(self.b, "b")
        if first == second:
            raise ArgumentError(f"the frame {shown(first)} is constrained to itself, expected two: name another.")
        length = 0.0 if self.length is None else as_number(self.length, f"length of the constraint of {first!r}")
        if self.kind == "distance" and not 0.0 < length < math.inf:
            raise ArgumentError(
                f"the distance of {first!r} to {second or 'the world'!r} has length {shown(self.length)}, expected a "
                f"positive number: give length=, or use a point."
            )
        if self.kind != "distance" and length:
            raise ArgumentError(f"a {self.kind} constraint takes no length, got {length}: leave it out.")
        object.__setattr__(self, "b", second)
        object.__setattr__(self, "at", as_placement(self.at, "at"))
        object.__setattr__(self, "length", length)

    @property
    def rows(self) -> int:
        return ROWS[self.kind]

    @property
    def label(self) -> str:
        return self.name or f"{self.kind} {self.a} - {self.b or 'world'}"


@dataclass(frozen=True, slots=True)
class Spring:
    """A spring and damper along the line between the origins of two frames, or with b=None to the world's point `at`.

    It pulls with stiffness (|d| - length) + damping d|d|/dt; of length 0, with stiffness d + damping dd/dt.
    """

    a: str
    b: Given = None
    stiffness: float = 0.0
    length: float = 0.0
    damping: float = 0.0
    at: Given = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        first, second = _frame_name(self.a, "a"), "" if _is_base(self.b) else _frame_name(self.b, "b")
        if first == second:
            raise ArgumentError(f"a spring ties {shown(first)} to itself, expected two frames: name another.")
        for key in ("stiffness", "length", "damping"):
            value = as_number(getattr(self, key), f"{key} of the spring at {first!r}")
            if not 0.0 <= value < math.inf:
                raise ArgumentError(f"{key} of the spring at {first!r} is {value}, expected a finite number from 0 on.")
            object.__setattr__(self, key, value)
        object.__setattr__(self, "b", second)
        object.__setattr__(self, "at", as_placement(self.at, "at"))


def _is_base(frame: object) -> bool:
    return frame is None or (isinstance(frame, str) and not frame)


def as_placement(matrix: Given, what: str) -> Placement:
    """A Placement from a homogeneous matrix (4, 4); None is the identity."""
    if matrix is None:
        return Placement()
    if isinstance(matrix, Placement):
        return matrix
    try:
        t = np.asarray(matrix, dtype=float)
    except (TypeError, ValueError, OverflowError):
        t = np.zeros(0)
    if t.shape != (4, 4) or not np.isfinite(t).all():
        raise ArgumentError(f"{what} is {shown(matrix)}, expected a homogeneous matrix (4, 4) of finite numbers.")
    r = t[:3, :3]
    if not np.allclose(r @ r.T, np.eye(3), atol=1e-6) or np.linalg.det(r) < 0 or not np.allclose(t[3], (0, 0, 0, 1)):
        raise ArgumentError(f"{what} turns by no rotation, or its last row is not 0 0 0 1: correct the matrix.")
    u, _, v = np.linalg.svd(r)
    x, y, z = (as_vector(row, what) for row in (r if np.allclose(r @ r.T, np.eye(3), atol=1e-14) else u @ v))
    return Placement(snap((x, y, z)), as_vector(t[:3, 3], what))


def _frame_name(value: object, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise ArgumentError(f"{what} of a constraint or spring is {shown(value)}, expected the name of a frame.")
    return value
