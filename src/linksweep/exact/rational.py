"""A robot's numbers as fractions, before anything is computed with them.

A float becomes the decimal that it is written as: 0.0934 is 934/10000. Where all joints stand at right angles to each
other, canonical.py chooses the links' frames over these fractions as it does over floats, and no number is ever
rounded. Where they do not, frames have roots in them: there the canonical numbers become fractions, and angles points
of the unit circle with fractions for coordinates, so that the robot differs from the described one by rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from ..description.model import Frame, Inertial, Link, Matrix, Model, Placement, Vector
from ..mechanism.canonical import CanonicalModel, canonical
from .field import Exact

FINE = 2**52  # angles that are no right ones are moved by less than one part of this many


class Irrational(ArithmeticError):
    """A number that is no fraction."""


class Rational(Fraction):
    """A fraction that stays one beside floats, which are taken at their exact value."""

    def __neg__(self) -> Rational:
        return Rational(Fraction.__neg__(self))

    def __abs__(self) -> Rational:
        return Rational(Fraction.__abs__(self))

    def hypot(self, *others: Exact) -> Rational:
        """The root of the sum of squares."""
        total = Fraction(self * self + sum(x * x for x in others))
        root = Fraction(math.isqrt(total.numerator), math.isqrt(total.denominator))
        if root * root != total:
            raise Irrational
        return Rational(root)

    def on_circle(self, s: Exact) -> tuple[Rational, Rational]:
        """(self, s), a point of the unit circle."""
        if self * self + s * s != 1:
            raise Irrational
        return self, Rational(s)


def _exact(name: str) -> Callable[[Rational, Exact], Exact]:
    own = getattr(Fraction, name)

    def operation(self: Rational, b: Exact) -> Exact:
        if isinstance(b, (float, int, Fraction)):
            return Rational(own(self, Fraction(b)))
        return NotImplemented

    return operation


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv"):
    setattr(Rational, f"__{_name}__", _exact(f"__{_name}__"))


def exact_canonical(model: Model) -> CanonicalModel:
    """The canonical frames over fractions where they have no roots in them, else over floats."""
    try:
        return canonical(rational_model(model))
    except Irrational:
        return canonical(model)


def rational_model(model: Model) -> Model:
    """The description with fractions for its numbers; Irrational where joints stand at other than right angles."""
    frames = (
        Frame(
            frame.name,
            frame.link,
            Placement(rational_rotation(frame.placement.rotation), _vector(frame.placement.position)),
        )
        for frame in model.frames
    )
    return replace(
        model, links=tuple(_link(link) for link in model.links), frames=tuple(frames), gravity=_vector(model.gravity)
    )


def decimal(x: Exact) -> Exact:
    """The shortest decimal that is this float."""
    return Rational(repr(float(x)))


def _link(link: Link) -> Link:
    joint, body = link.joint, link.inertial
    if not right_angled(joint.placement.rotation) or not right_angled((joint.axis,)):
        raise Irrational
    at = Placement(_rows(joint.placement.rotation), _vector(joint.placement.position))
    exact = replace(
        joint, axis=_vector(joint.axis), placement=at, armature=decimal(joint.armature), damping=decimal(joint.damping),
        friction=decimal(joint.friction), pitch=decimal(joint.pitch),
    )  # fmt: skip
    return replace(link, joint=exact, inertial=Inertial(decimal(body.mass), _vector(body.com), _rows(body.inertia)))


def _vector(v: Vector) -> Vector:
    return decimal(v[0]), decimal(v[1]), decimal(v[2])


def _rows(matrix: Matrix) -> Matrix:
    return _vector(matrix[0]), _vector(matrix[1]), _vector(matrix[2])


def right_angled(rows: Exact) -> bool:
    return all(abs(x) in (0, 1) for row in rows for x in row)


def rational_point(c: float, s: float) -> tuple[Fraction, Fraction]:
    """A point of the unit circle near this one; the same one where it is at a right angle."""
    angle = math.atan2(s, c)
    quarters = round(angle / (math.pi / 2.0))
    t = Fraction(round(math.tan((angle - quarters * (math.pi / 2.0)) / 2.0) * FINE), FINE)
    x, y = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
    return ((x, y), (-y, x), (-x, -y), (y, -x))[quarters % 4]


def rational_rotation(rotation: Matrix) -> Matrix:
    """A rotation matrix of fractions near this one, through its quaternion; the same one where it is right-angled."""
    if right_angled(rotation):
        return _rows(rotation)
    parts: list[Exact] = [Rational(round(part * FINE), FINE) for part in _quaternion(rotation)]
    x, y, z, w = parts
    two = 2 / (x * x + y * y + z * z + w * w)
    return (
        (1 - two * (y * y + z * z), two * (x * y - w * z), two * (x * z + w * y)),
        (two * (x * y + w * z), 1 - two * (x * x + z * z), two * (y * z - w * x)),
        (two * (x * z - w * y), two * (y * z + w * x), 1 - two * (x * x + y * y)),
    )


def _quaternion(rotation: Matrix) -> list[float]:
    """xyzw: the longest column of 4 q q^T."""
    (a, b, c), (d, e, f), (g, h, i) = np.array(rotation, dtype=float).tolist()
    columns = (
        (1 + a - e - i, b + d, c + g, h - f),
        (b + d, 1 - a + e - i, f + h, c - g),
        (c + g, f + h, 1 - a - e + i, d - b),
        (h - f, c - g, d - b, 1 + a + e + i),
    )
    best = max(columns, key=lambda column: math.hypot(*column))
    return [x / math.hypot(*best) for x in best]
