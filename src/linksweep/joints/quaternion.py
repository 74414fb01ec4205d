"""Joints whose turn is a quaternion xyzw of any length but 0: the ball joint and the free body."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..spatial.algebra import Mat, Motion, Vec
from ..spatial.scalars import Scalar, where
from ..spatial.transforms import Rotation, Shift
from .groups import (
    Values,
    conjugate,
    missing,
    rate_along,
    rotated,
    rotation_entries,
    rotation_vector,
    spun,
    turned,
    unit,
    way,
)
from .kind import QUATERNION, SLIDE, AboutPoint, Entry, Factors, JointKind, unit_motion

if TYPE_CHECKING:
    import numpy as np

NAMES_VALUES = True  # of its steps: see tracing/labels.py
TURN = tuple(Entry(f"q{x}", f"quaternion {x}", QUATERNION) for x in "xyzw")


class Spherical(AboutPoint, JointKind):
    """Turns freely: q is a quaternion, rates the angular velocity in the link's frame."""

    name, letter = "spherical", "S"
    coordinates = TURN
    rates = tuple(Entry(f"w{x}", x) for x in "xyz")
    commutes = has_axis = limited = euclidean = False

    @staticmethod
    def columns(kept: Values, pitch: Scalar) -> tuple[Motion, ...]:
        return unit_motion(0), unit_motion(1), unit_motion(2)

    @staticmethod
    def kept(q: Values, angle: Scalar) -> tuple[Scalar, ...]:
        return rotation_entries(q)

    @staticmethod
    def motion(kept: Values, quarters: int, turn: Values, slide: Scalar, pitch: Scalar) -> Factors:
        return (_rotation(kept),)

    @classmethod
    def random(cls, rng: np.random.Generator, lower: float, upper: float) -> Sequence[float]:
        """A uniform rotation."""
        quaternion = rng.normal(size=4)
        return (quaternion / math.sqrt(quaternion @ quaternion)).tolist()

    @staticmethod
    def normalized(q: Values) -> Values:
        return unit(q)

    @staticmethod
    def derivative(q: Values, v: Values) -> Values:
        return spun(q, Vec(*v))

    @staticmethod
    def integrate(q: Values, step: Values) -> Values:
        return turned(q, Vec(*step))

    @classmethod
    def difference(cls, q0: Values, q1: Values) -> Values:
        return [*rotation_vector(*missing(q0, q1))]

    @classmethod
    def error(cls, q: Values, wanted: Values) -> Values:
        """Twice the vector part of the quaternion that is missing: the rotation vector for small angles."""
        axis, scalar = missing(q, wanted)
        return [*(axis * where(scalar < 0.0, -2.0, 2.0))]

    @classmethod
    def slopes(cls, q: Values) -> list[tuple[Scalar, tuple[Scalar | None, ...]]]:
        return _rotation_slopes(rotation_entries(q))


class Free(JointKind):
    """Moves freely: q = [quaternion, position], rates [w; v] in the link's frame."""

    name, letter, urdf, shape = "free", "F", "floating", "box"
    coordinates = (*TURN, *(Entry(x, x, SLIDE) for x in "xyz"))
    rates = (*(Entry(f"w{x}", f"turn {x}") for x in "xyz"), *(Entry(f"v{x}", x, SLIDE) for x in "xyz"))
    commutes = has_axis = limited = euclidean = attached = False
    floats = True

    @staticmethod
    def columns(kept: Values, pitch: Scalar) -> tuple[Motion, ...]:
        return tuple(unit_motion(i) for i in range(6))

    @staticmethod
    def kept(q: Values, angle: Scalar) -> tuple[Scalar, ...]:
        return (*rotation_entries(q[:4]), *q[4:])

    @staticmethod
    def motion(kept: Values, quarters: int, turn: Values, slide: Scalar, pitch: Scalar) -> Factors:
        return Shift(Vec(*kept[9:])), _rotation(kept[:9])

    @classmethod
    def random(cls, rng: np.random.Generator, lower: float, upper: float) -> Sequence[float]:
        return [*Spherical.random(rng, lower, upper), *rng.uniform(-1.0, 1.0, 3)]

    @staticmethod
    def normalized(q: Values) -> Values:
        return [*unit(q[:4]), *q[4:]]

    @staticmethod
    def derivative(q: Values, v: Values) -> Values:
        return [*spun(q[:4], Vec(*v[:3])), *rotated(q[:4], Vec(*v[3:]))]

    @staticmethod
    def integrate(q: Values, step: Values) -> Values:
        turn = Vec(*step[:3])
        moved = Vec(*q[4:]) + rotated(q[:4], way(turn, Vec(*step[3:])))
        return [*turned(q[:4], turn), *moved]

    @classmethod
    def difference(cls, q0: Values, q1: Values) -> Values:
        turn = rotation_vector(*missing(q0[:4], q1[:4]))
        path = rotated(conjugate(q0[:4]), Vec(*q1[4:]) - Vec(*q0[4:]))
        return [*turn, *rate_along(turn, path)]

    @classmethod
    def slopes(cls, q: Values) -> list[tuple[Scalar, tuple[Scalar | None, ...]]]:
        R = rotation_entries(q[:4])
        along = ((p, (None, None, None, *R[3 * i : 3 * i + 3])) for i, p in enumerate(q[4:]))
        return [*_rotation_slopes(R), *along]

    @staticmethod
    def to_pinocchio(q: Values, width: int) -> Values:
        return [*q[4:], *q[:4]]

    @staticmethod
    def from_pinocchio(q: Values) -> Values:
        return [*q[3:], *q[:3]]

    @classmethod
    def pinocchio_rates(cls) -> tuple[int, ...]:
        return 3, 4, 5, 0, 1, 2


def _rotation(entries: Values) -> Rotation:
    return Rotation(Mat(Vec(*entries[:3]), Vec(*entries[3:6]), Vec(*entries[6:9])))


def _rotation_slopes(R: Values) -> list[tuple[Scalar, tuple[Scalar | None, ...]]]:
    """R [w x], entry by entry: each column's derivative by w_x, w_y, w_z is another column, or 0.

    Entries of a rotation stand for the quaternion, because this costs nothing.
    """
    found: list[tuple[Scalar, tuple[Scalar | None, ...]]] = []
    for row in range(3):
        x, y, z = R[3 * row : 3 * row + 3]
        found += [(x, (None, -z, y)), (y, (z, None, -x)), (z, (-y, x, None))]
    return found
