"""Elementary functions over any scalar: float, NumPy array, traced expression, mpmath number.

Algorithms call these and never ask what they compute with. A scalar that is not a number brings its own method
(`x.sin()`) or, as mpmath's do, its context; NumPy arrays and complex numbers fall through to NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, Protocol


class Scalar(Protocol):
    """A scalar of an algorithm: float, NumPy array, traced expression, element of a finite field, or mpmath number.

    These are the operators that an algorithm may use; elementary functions are below. Results are typed as Any,
    because type checkers cannot resolve NumPy's overloads otherwise.
    """

    def __add__(self, other: Any, /) -> Any: ...
    def __radd__(self, other: Any, /) -> Any: ...
    def __sub__(self, other: Any, /) -> Any: ...
    def __rsub__(self, other: Any, /) -> Any: ...
    def __mul__(self, other: Any, /) -> Any: ...
    def __rmul__(self, other: Any, /) -> Any: ...
    def __truediv__(self, other: Any, /) -> Any: ...
    def __rtruediv__(self, other: Any, /) -> Any: ...
    def __neg__(self) -> Any: ...
    def __lt__(self, other: Any, /) -> Any: ...
    def __gt__(self, other: Any, /) -> Any: ...


Values = Sequence[Scalar]
Rows = Sequence[Values]
LARGE = 8.0  # radians: up to here the sum with an offset is off by 4e-16 at most


_PLAIN: set[type] = {float, int}


class Number:
    """Base class of scalars that are not floats (papers/exact/field.py): constants while tracing, so they fold."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        _PLAIN.add(cls)

    def is_zero(self) -> bool:
        """Return whether it is the constant 0."""
        raise NotImplementedError


def is_number(x: object) -> bool:
    """Return whether this is a plain number, not an array or a traced expression."""
    return type(x) in _PLAIN


def sin(x: Scalar) -> Scalar:
    if isinstance(x, (float, int)):
        return math.sin(x)
    return _called("sin", x)


def cos(x: Scalar) -> Scalar:
    if isinstance(x, (float, int)):
        return math.cos(x)
    return _called("cos", x)


def shifted(angle: Scalar, offset: Scalar) -> Scalar:
    """Return angle + offset. A number above LARGE is reduced to one turn first, to keep the precision of the offset.

    Backends reduce traced angles in the same way.
    """
    if isinstance(angle, (float, int)) and abs(angle) > LARGE:
        angle = math.atan2(math.sin(angle), math.cos(angle)) if math.isfinite(angle) else angle
    return angle + offset


def sqrt(x: Scalar) -> Scalar:
    if isinstance(x, (float, int)):
        return math.sqrt(x)
    return _called("sqrt", x)


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """Return the angle of the point (x, y), for numbers and arrays."""
    if isinstance(y, (float, int)) and isinstance(x, (float, int)):
        return math.atan2(y, x)
    return _library(y).arctan2(y, x)


def folded(angle: Scalar) -> Scalar:
    """Return an angle without full turns, in [-pi, pi], for numbers and arrays."""
    turns = angle / (2.0 * math.pi)
    return angle - 2.0 * math.pi * (round(turns) if isinstance(turns, float) else _library(turns).round(turns))


def where(condition: object, if_true: Scalar, if_false: Scalar) -> Scalar:
    """Return `if_true` or `if_false` by a condition on values; algorithms never branch on a value."""
    if isinstance(condition, bool):
        return if_true if condition else if_false
    own = getattr(condition, "where", None)
    return _numpy().where(condition, if_true, if_false) if own is None else own(if_true, if_false)


def sign(x: Scalar) -> Scalar:
    """Return the sign: -1, 0 or 1."""
    return where(x > 0.0, 1.0, where(x < 0.0, -1.0, 0.0))


def quarter_turns(angle: Scalar, count: int) -> Scalar:
    """Return the angle plus `count` quarter turns."""
    own = getattr(angle, "quarter_turns", None)
    return angle + count * (math.pi / 2.0) if own is None else own(count)


class Solution(Protocol):
    """Outputs that solve equations whose coefficients are the inputs; their derivatives solve the same equations.

    Differentiating the elimination instead would divide by the residuals of redundant rows once more.
    """

    @property
    def inputs(self) -> Values: ...

    @property
    def outputs(self) -> Values: ...

    def tangent(self, of: Callable[[Scalar], Scalar]) -> list[Scalar]:
        """Return the tangents of the outputs; `of` returns the tangent of an input."""
        ...

    def adjoint(self, weights: Values) -> list[tuple[Scalar, Scalar]]:
        """Return pairs of an input and the derivative of the weighted sum of outputs; terms of one input add up."""
        ...


def trace_of(values: Iterable[Scalar]) -> Any:
    """Return the graph that values belong to; None if they are not traced expressions."""
    return next((value.graph for value in values if hasattr(value, "graph")), None)  # pyright: ignore


def is_zero(x: Scalar) -> bool:
    """Return whether x is structurally zero: a plain number equal to 0, known while tracing."""
    if isinstance(x, (float, int)):
        return x == 0.0
    return isinstance(x, Number) and x.is_zero()


def _called(name: str, x: Scalar) -> Scalar:
    """Return an elementary function of a scalar that is not a number, by its method or its library."""
    own = getattr(x, name, None)
    return getattr(_library(x), name)(x) if own is None else own()


def _library(x: Scalar) -> Any:  # a module, or a context of mpmath
    context = getattr(x, "context", None)
    return _numpy() if context is None else context


def _numpy() -> ModuleType:
    import numpy

    return numpy
