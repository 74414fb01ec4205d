"""Elementary functions over any scalar: float, NumPy array, traced expression, mpmath number.

Algorithms call these and never ask what they compute with. A scalar that is not a number brings its own method
(`x.sin()`) or, as mpmath's do, its context; NumPy arrays and complex numbers fall through to NumPy.
"""

from __future__ import annotations

import math
from typing import Any

Scalar = Any
LARGE = 8.0  # radians: up to here the sum with an offset is off by 4e-16 at most


_PLAIN: set[type] = {float, int}


class Number:
    """The base of numbers that are not floats (exact/field.py): known while an algorithm is written out, they fold."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        _PLAIN.add(cls)

    def is_zero(self) -> bool:
        """Whether it is the constant 0."""
        raise NotImplementedError


def is_number(x: Any) -> bool:
    """Whether this is a plain number, and no array or traced expression."""
    return type(x) in _PLAIN


def sin(x: Scalar) -> Scalar:
    if isinstance(x, (float, int)):
        return math.sin(x)
    return x.sin() if hasattr(x, "sin") else _library(x).sin(x)


def cos(x: Scalar) -> Scalar:
    if isinstance(x, (float, int)):
        return math.cos(x)
    return x.cos() if hasattr(x, "cos") else _library(x).cos(x)


def shifted(angle: Scalar, offset: Scalar) -> Scalar:
    """angle + offset; a number beyond LARGE is reduced to a turn first, or its last place would round the offset away.

    Traced angles are reduced by the backends, to the same end.
    """
    if isinstance(angle, (float, int)) and abs(angle) > LARGE:
        angle = math.atan2(math.sin(angle), math.cos(angle)) if math.isfinite(angle) else angle
    return angle + offset


def sqrt(x: Scalar) -> Scalar:
    if isinstance(x, (float, int)):
        return math.sqrt(x)
    return x.sqrt() if hasattr(x, "sqrt") else _library(x).sqrt(x)


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """The angle of a point, of numbers and arrays."""
    return math.atan2(y, x) if isinstance(y, (float, int)) else _library(y).arctan2(y, x)


def folded(angle: Scalar) -> Scalar:
    """An angle less whole turns, in [-pi, pi]; of numbers and arrays."""
    turns = angle / (2.0 * math.pi)
    return angle - 2.0 * math.pi * (round(turns) if isinstance(turns, float) else turns.round())


def where(condition: Scalar, if_true: Scalar, if_false: Scalar) -> Scalar:
    """The value-level choice: an algorithm never branches on a number."""
    if isinstance(condition, bool):
        return if_true if condition else if_false
    if hasattr(condition, "where"):
        return condition.where(if_true, if_false)
    return _numpy().where(condition, if_true, if_false)


def sign(x: Scalar) -> Scalar:
    """-1, 0 or 1."""
    return where(x > 0.0, 1.0, where(x < 0.0, -1.0, 0.0))


def quarter_turns(angle: Scalar, count: int) -> Scalar:
    """The angle and so many right ones."""
    return angle.quarter_turns(count) if hasattr(angle, "quarter_turns") else angle + count * (math.pi / 2.0)


def is_zero(x: Scalar) -> bool:
    """Structurally zero: a plain number equal to 0, known while the algorithm is written out."""
    if isinstance(x, (float, int)):
        return x == 0.0
    return isinstance(x, Number) and x.is_zero()


def _library(x: Scalar) -> Any:
    context = getattr(x, "context", None)
    return _numpy() if context is None else context


def _numpy() -> Any:
    import numpy

    return numpy
