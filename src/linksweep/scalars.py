"""Elementary functions over any scalar: float, NumPy array, traced expression, mpmath number.

Algorithms call these and never ask what they compute with. A scalar that is not a number brings its own method
(`x.sin()`) or, as mpmath's do, its context; NumPy arrays and complex numbers fall through to NumPy.
"""

from __future__ import annotations

import math
from typing import Any

Scalar = Any
LARGE = 8.0  # radians: up to here the sum with an offset is off by 4e-16 at most


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


def is_zero(x: Scalar) -> bool:
    """Structurally zero: a plain number equal to 0, known while the algorithm is written out."""
    return isinstance(x, (float, int)) and x == 0.0


def _library(x: Scalar) -> Any:
    context = getattr(x, "context", None)
    return _numpy() if context is None else context


def _numpy() -> Any:
    import numpy

    return numpy
