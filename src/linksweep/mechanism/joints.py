"""Quantities of a joint in recursions: its subspace H, and the articulated inertia D along it.

A multi-DOF joint makes H a block and D a small symmetric matrix, factored in `JointInertia`; everything
else is unchanged. The joint types are in joints/.
"""

# pyright: reportConstantRedefinition=false
# (capital letters are the papers' symbols, and no constants)

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from ..joints.kind import unit_motion
from ..spatial.algebra import ArticulatedInertia, Force, Inertia, Motion, leaves
from ..spatial.scalars import Rows, Scalar, Values, is_zero

NAMES_VALUES = True  # of its steps: see tracing/labels.py


Column = TypeVar("Column", Motion, Force)


class Coordinates(tuple[Scalar, ...]):
    """The velocities, accelerations or forces of one joint: nv scalars that add entry by entry."""

    def __add__(self, b: Values) -> Coordinates:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Coordinates(x + y for x, y in zip(self, b, strict=True))

    def __sub__(self, b: Values) -> Coordinates:
        return Coordinates(x - y for x, y in zip(self, b, strict=True))

    def __mul__(self, s: Scalar) -> Coordinates:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Coordinates(x * s for x in self)


class Span(Generic[Column]):
    """A row of Motions or Forces, one for each degree of freedom of a joint: H^T, P H^T, or the gain G."""

    __slots__ = ("columns",)

    def __init__(self, columns: Sequence[Column]):
        self.columns = tuple(columns)

    def __matmul__(self, rates: Values) -> Column:
        """The combination of the columns with these coefficients."""
        total = self.columns[0] * rates[0]
        for column, rate in zip(self.columns[1:], rates[1:], strict=True):
            total = total + column * rate
        return total

    def transpose_times(self, v: Motion | Force) -> Coordinates:
        """Each column's product with v: H f, or G^T lambda."""
        return Coordinates(_pair(column, v) for column in self.columns)

    def __rmatmul__(self: Span[Motion], inertia: Inertia | ArticulatedInertia) -> Span[Force]:
        return Span([inertia @ column for column in self.columns])

    def over(self: Span[Force], d: JointInertia) -> Span[Force]:
        """P H^T / D: the gain."""
        if len(self.columns) == 1:
            column, pivot = self.columns[0], d.rows[0][0]
            return Span([column * 0.0 if is_zero(pivot) else column / pivot])  # as `_over`
        unit = [[1.0 if i == j else 0.0 for j in range(len(self.columns))] for i in range(len(self.columns))]
        return Span([self @ d.solve(row) for row in unit])


def _pair(a: Motion | Force, b: Motion | Force) -> Scalar:
    """The product of a Motion and a Force, whichever comes first."""
    if isinstance(a, Motion) and isinstance(b, Force):
        return b.dot(a)
    if isinstance(a, Force) and isinstance(b, Motion):
        return a.dot(b)
    raise TypeError(f"{type(a).__name__} and {type(b).__name__} have no product: one is a Motion, the other a Force")


def _over(a: Scalar, d: Scalar) -> Scalar:
    """a / D, but 0 where D is the number 0 (a joint that moves no inertia in any pose): P H^T is 0 there too."""
    return a * 0.0 if is_zero(d) else a / d


class JointBlock(tuple[tuple[Scalar, ...], ...]):
    """The rows of D(k), as a sweep stores them."""


class JointInertia:
    """D(k) = H P H^T + R, the inertia that the joint sees: nv by nv, symmetric."""

    __slots__ = ("_factors", "rows")

    def __init__(self, h_t: Span[Motion], p_h_t: Span[Force], armature: Scalar):
        n = len(h_t.columns)
        self._factors: tuple[list[list[Scalar]], list[Scalar]] | None = None
        self.rows = [[_pair(h_t.columns[i], p_h_t.columns[j]) for j in range(n)] for i in range(n)]
        for i in range(n):
            self.rows[i][i] = self.rows[i][i] + armature

    @classmethod
    def of(cls, block: Rows) -> JointInertia:
        """Return D from its stored rows."""
        self = cls.__new__(cls)
        self._factors = None
        self.rows = [list(row) for row in block]
        return self

    @property
    def block(self) -> JointBlock:
        return JointBlock(tuple(row) for row in self.rows)

    def factor(self) -> tuple[list[list[Scalar]], list[Scalar]]:
        """U (unit upper triangular) and d with D = U diag(d) U^T; no pivoting: D is definite."""
        if self._factors is None:
            self._factors = self._factored()
        return self._factors

    def _factored(self) -> tuple[list[list[Scalar]], list[Scalar]]:
        n = len(self.rows)
        up: list[list[Scalar]] = [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]
        diagonal: list[Scalar] = [0.0] * n
        for j in reversed(range(n)):
            scaled = {k: up[j][k] * diagonal[k] for k in range(j + 1, n)}
            for i in range(j + 1):
                entry = self.rows[i][j]
                for k, weight in scaled.items():
                    entry = entry - up[i][k] * weight
                if i == j:
                    diagonal[j] = entry
                else:
                    up[i][j] = entry
            for i in range(j):
                up[i][j] = _over(up[i][j], diagonal[j])
        return up, diagonal

    def solve(self, b: Sequence[Scalar]) -> Coordinates:
        """D^-1 b."""
        n = len(self.rows)
        if n == 1:
            return Coordinates((b[0] / self.rows[0][0],))
        up, diagonal = self.factor()
        x = solve_upper(up, b)
        for i in range(n):
            x[i] = _over(x[i], diagonal[i])
            for k in range(i):
                x[i] = x[i] - up[k][i] * x[k]
        return Coordinates(x)


def solve_upper(up: Sequence[Sequence[Scalar]], b: Sequence[Scalar]) -> list[Scalar]:
    """U^-1 b for a unit upper triangular U."""
    x = list(b)
    for i in reversed(range(len(x))):
        for k in range(i + 1, len(x)):
            x[i] = x[i] - up[i][k] * x[k]
    return x


def updated_inertia(
    form: str, P: ArticulatedInertia, h_t: Span[Motion], p_h_t: Span[Force], gain: Span[Force], armature: Scalar
) -> ArticulatedInertia:
    """P^+ = P - P H^T D^-1 H P in one of the forms of Rodriguez 1987: "43", "50" or "51".

    (43) subtracts the gain times (P H^T)^T. (50) takes the mean of (I - G H) P and P (I - G H)^T, which differ by
    rounding. (51), Joseph's form, is the sum of two nonnegative matrices, see `joseph`.
    """
    if form == "51":
        return joseph(P, h_t, gain, armature)
    if form == "43" and len(gain.columns) == 1 and is_zero(armature):
        return P.minus_outer(gain.columns[0], p_h_t.columns[0]).without(h_t.columns[0])  # H P^+ = 0, to the last bit
    for g, ph in zip(gain.columns, p_h_t.columns, strict=True):
        P = P.minus_outer(g, ph)
        if form == "50":
            P = P.minus_outer(ph * 0.5, g).minus_outer(g * -0.5, ph)
    return P


def joseph(P: ArticulatedInertia, h_t: Span[Motion], gain: Span[Force], armature: Scalar) -> ArticulatedInertia:
    """(I - G H) P (I - G H)^T + G R G^T: Rodriguez 1987 (51), with the armature R; two products with the factor.

    Nonnegative for any gain, and least for Kalman's. Where R = 0 the factor has no row for the joint's own axis, and
    H P^+ = 0 to the last bit.
    """
    six = range(6)
    gains, axes = [leaves(g) for g in gain.columns], [leaves(h) for h in h_t.columns]
    factor = [
        [(1.0 if i == m else 0.0) - sum((g[i] * h[m] for g, h in zip(gains, axes, strict=True)), 0.0) for m in six]
        for i in six
    ]  # I - G H
    columns = [leaves(P @ unit_motion(n)) for n in six]
    once = [[sum((factor[i][m] * columns[n][m] for m in six), 0.0) for n in six] for i in six]
    order = sorted(six, key=lambda i: sum(map(is_zero, factor[i])))  # of two rows the one with more zeros comes last
    P_plus: list[list[Scalar]] = [[0.0] * 6 for _ in six]
    for place, i in enumerate(order):
        for k in order[place:]:
            noise = sum((g[i] * (g[k] * armature) for g in gains), 0.0)  # G R G^T
            P_plus[i][k] = P_plus[k][i] = sum((once[i][n] * factor[k][n] for n in six), 0.0) + noise
    return ArticulatedInertia.of_rows(P_plus)


__all__ = ["Coordinates", "JointBlock", "JointInertia", "Span", "solve_upper", "updated_inertia"]
