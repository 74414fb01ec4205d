"""Joints with several degrees of freedom: universal, planar, spherical and free.

Rotations of spherical and free joints are quaternions xyzw of any length but 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..spatial.algebra import ZERO_MOTION, ZERO_VEC, Mat, Motion, Vec
from ..spatial.scalars import Scalar, atan2, cos, folded, sin, where
from ..spatial.transforms import Rotation, Screw, Shift
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
    turned_in_plane,
    unit,
    way,
)
from .kind import QUATERNION, SLIDE, AboutPoint, Entry, Factors, JointKind, unit_motion

if TYPE_CHECKING:
    import numpy as np

NAMES_VALUES = True  # of its steps: see tracing/labels.py
TURN = tuple(Entry(f"q{x}", f"quaternion {x}", QUATERNION) for x in "xyzw")


class Universal(AboutPoint, JointKind):
    """Rotates about z, fixed in the parent, then about x, fixed in the link: q = (first angle, second angle)."""

    name, letter = "universal", "U"
    coordinates = rates = (Entry("1", "1"), Entry("2", "2"))
    commutes = constant_columns = False

    @staticmethod
    def columns(kept: Values, pitch: Scalar) -> tuple[Motion, ...]:
        _, _, c, s = kept
        return Motion(Vec(0.0, s, c), ZERO_VEC), unit_motion(0)

    @classmethod
    def column_rates(cls, kept: Values, qd: Values) -> tuple[Motion, ...]:
        _, _, c, s = kept
        return Motion(Vec(0.0, c, -s) * qd[1], ZERO_VEC), ZERO_MOTION

    @staticmethod
    def kept(q: Values, angle: Scalar) -> tuple[Scalar, ...]:
        return cos(q[0]), sin(q[0]), cos(q[1]), sin(q[1])

    @staticmethod
    def motion(kept: Values, quarters: int, turn: Values, slide: Scalar, pitch: Scalar) -> Factors:
        return Screw(2, kept[0], kept[1], 0.0), Screw(0, kept[2], kept[3], 0.0)


class Planar(JointKind):
    """Moves in the plane across z: q = (angle, x, y), velocities [w_z, v_x, v_y] in the link's frame."""

    name, letter, urdf = "planar", "E", "planar"
    coordinates = (Entry("angle", "turn"), Entry("x", "x", SLIDE), Entry("y", "y", SLIDE))
    rates = (Entry("wz", "turn"), Entry("vx", "x", SLIDE), Entry("vy", "y", SLIDE))
    commutes = limited = euclidean = attached = False

    @staticmethod
    def columns(kept: Values, pitch: Scalar) -> tuple[Motion, ...]:
        return unit_motion(2), unit_motion(3), unit_motion(4)

    @staticmethod
    def kept(q: Values, angle: Scalar) -> tuple[Scalar, ...]:
        return cos(q[0]), sin(q[0]), q[1], q[2]

    @staticmethod
    def motion(kept: Values, quarters: int, turn: Values, slide: Scalar, pitch: Scalar) -> Factors:
        return Shift(Vec(kept[2], kept[3], 0.0)), Screw(2, kept[0], kept[1], 0.0)

    @staticmethod
    def derivative(q: Values, v: Values) -> Values:
        return [v[0], *turned_in_plane(q[0], v[1], v[2])]

    @staticmethod
    def integrate(q: Values, step: Values) -> Values:
        path = way(Vec(0.0, 0.0, step[0]), Vec(step[1], step[2], 0.0))
        x, y = turned_in_plane(q[0], path.x, path.y)
        return [q[0] + step[0], q[1] + x, q[2] + y]

    @classmethod
    def difference(cls, q0: Values, q1: Values) -> Values:
        turn, x, y = cls.error(q0, q1)
        turn = folded(turn)  # a whole turn leads nowhere else
        v = rate_along(Vec(0.0, 0.0, turn), Vec(x, y, 0.0))
        return [turn, v.x, v.y]

    @classmethod
    def error(cls, q: Values, wanted: Values) -> Values:
        turn, x, y = (b - a for a, b in zip(q, wanted, strict=True))
        return [turn, *turned_in_plane(-q[0], x, y)]

    @staticmethod
    def to_pinocchio(q: Values, width: int) -> Values:
        return [q[1], q[2], cos(q[0]), sin(q[0])]

    @staticmethod
    def from_pinocchio(q: Values) -> Values:
        return [atan2(q[3], q[2]), q[0], q[1]]

    @classmethod
    def pinocchio_rates(cls) -> tuple[int, ...]:
        return 2, 0, 1


class Spherical(AboutPoint, JointKind):
    """Rotates freely: q is a quaternion, qd the angular velocity in the link's frame."""

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
    """Moves freely: q = [quaternion, position], qd = [w; v] in the link's frame."""

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
