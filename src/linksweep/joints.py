"""The joints: how each kind moves its link, and the subspace H in which it moves.

A joint stands in its link's canonical frame (see canonical.py): its axis is z. It has `nq` coordinates and `nv`
rates, gives the motion of its link as a Transform factor, and spans the columns of H^T. A joint with several
freedoms makes H a block and D a small symmetric matrix, factored in `JointInertia`; everything else is unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from .scalars import Scalar, cos, sin
from .spatial import ArticulatedInertia, Force, Inertia, Motion, Vec
from .transforms import Screw


class Coordinates(tuple[Scalar, ...]):
    """The rates, accelerations or forces of one joint: nv scalars that add entry by entry."""

    def __add__(self, b: Any) -> Coordinates:
        return Coordinates(x + y for x, y in zip(self, b, strict=True))

    def __sub__(self, b: Any) -> Coordinates:
        return Coordinates(x - y for x, y in zip(self, b, strict=True))

    def __mul__(self, s: Any) -> Coordinates:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Coordinates(x * s for x in self)


class Revolute:
    """Turns about z."""

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    columns: ClassVar[tuple[Motion, ...]] = (Motion(Vec(0.0, 0.0, 1.0), Vec(0.0, 0.0, 0.0)),)

    @staticmethod
    def trigonometry(q: Sequence[Scalar], angle: Scalar) -> tuple[Scalar, ...]:
        """What of q costs more than arithmetic, and is worth keeping between sweeps."""
        theta = q[0] + angle
        return cos(theta), sin(theta)

    @staticmethod
    def motion(kept: Sequence[Scalar], quarters: int, turn: Sequence[Scalar], slide: Scalar) -> Screw:
        c, s = kept
        c, s = ((c, s), (-s, c), (-c, -s), (s, -c))[quarters]
        return Screw(2, c, s, slide)

    @staticmethod
    def bias(outer: Motion, qd: Coordinates) -> Motion:
        """n(k) of Rodriguez 1987 (15), Kozlowski 1990 (3.7): [w x h qd; v x h qd], in the link's frame."""
        return Motion(_cross_z(outer.angular, qd[0]), _cross_z(outer.linear, qd[0]))

    @staticmethod
    def classical_bias(outer: Motion, qd: Coordinates) -> Motion:
        """Rodriguez & Kreutz 1988 (2.19), the part of a(k) that the joint makes: [w x h qd; 0]."""
        return Motion(_cross_z(outer.angular, qd[0]), Vec(0.0, 0.0, 0.0))


class Prismatic:
    """Slides along z."""

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    columns: ClassVar[tuple[Motion, ...]] = (Motion(Vec(0.0, 0.0, 0.0), Vec(0.0, 0.0, 1.0)),)

    @staticmethod
    def trigonometry(q: Sequence[Scalar], angle: Scalar) -> tuple[Scalar, ...]:
        return (q[0],)

    @staticmethod
    def motion(kept: Sequence[Scalar], quarters: int, turn: Sequence[Scalar], slide: Scalar) -> Screw:
        return Screw(2, turn[0], turn[1], kept[0] + slide)

    @staticmethod
    def bias(outer: Motion, qd: Coordinates) -> Motion:
        """n(k) of Kozlowski 1990 (3.7'): [0; w x h qd], in the link's frame."""
        return Motion(Vec(0.0, 0.0, 0.0), _cross_z(outer.angular, qd[0]))

    @staticmethod
    def classical_bias(outer: Motion, qd: Coordinates) -> Motion:
        """Rodriguez & Kreutz 1988 (2.32) corrected, the joint's part: [0; 2 w x h qd]."""
        return Motion(Vec(0.0, 0.0, 0.0), _cross_z(outer.angular, qd[0] + qd[0]))


KINDS: dict[str, Any] = {"revolute": Revolute, "prismatic": Prismatic}


def _cross_z(v: Vec, rate: Scalar) -> Vec:
    """v x (0, 0, rate)."""
    return Vec(v.y * rate, -(v.x * rate), 0.0)


class Span:
    """A row of Motions or Forces, one for each freedom of a joint: H^T, P H^T, or the gain G."""

    __slots__ = ("columns",)

    def __init__(self, columns: Sequence[Any]):
        self.columns = tuple(columns)

    def __matmul__(self, rates: Sequence[Scalar]) -> Any:
        """The combination of the columns with these coefficients."""
        total = self.columns[0] * rates[0]
        for column, rate in zip(self.columns[1:], rates[1:], strict=True):
            total = total + column * rate
        return total

    def transpose_times(self, v: Any) -> Coordinates:
        """Each column's product with v: H f, or G^T lambda."""
        return Coordinates(_pair(column, v) for column in self.columns)

    def __rmatmul__(self, inertia: Inertia | ArticulatedInertia) -> Span:
        return Span([inertia @ column for column in self.columns])

    def over(self, d: JointInertia) -> Span:
        """P H^T / D: the gain."""
        if len(self.columns) == 1:
            return Span([_over(self.columns[0], d.rows[0][0])])
        unit = [[1.0 if i == j else 0.0 for j in range(len(self.columns))] for i in range(len(self.columns))]
        inverse = [d.solve(row) for row in unit]
        return Span([self @ column for column in inverse])


def _pair(a: Any, b: Any) -> Scalar:
    """The product of a Motion and a Force, whichever comes first."""
    return b.dot(a) if isinstance(a, Motion) else a.dot(b)


def _over(a: Any, d: Scalar) -> Any:
    """a / D, but 0 where D is the number 0 (a joint that moves no inertia in any pose): P H^T is 0 there too."""
    return a * 0.0 if isinstance(d, float) and d == 0.0 else a / d


class JointInertia:
    """D(k) = H P H^T + R, the inertia that the joint sees: nv by nv, symmetric."""

    __slots__ = ("rows",)

    def __init__(self, h_t: Span, p_h_t: Span, armature: Scalar):
        n = len(h_t.columns)
        self.rows = [[_pair(h_t.columns[i], p_h_t.columns[j]) for j in range(n)] for i in range(n)]
        for i in range(n):
            self.rows[i][i] = self.rows[i][i] + armature

    @classmethod
    def of(cls, block: Sequence[Sequence[Scalar]]) -> JointInertia:
        """D again, from what a sweep kept of it."""
        self = cls.__new__(cls)
        self.rows = [list(row) for row in block]
        return self

    @property
    def block(self) -> tuple[tuple[Scalar, ...], ...]:
        return tuple(tuple(row) for row in self.rows)

    @property
    def diagonal(self) -> Coordinates:
        return Coordinates(row[i] for i, row in enumerate(self.rows))

    def solve(self, b: Sequence[Scalar]) -> Coordinates:
        """D^-1 b, by L D L^T without pivoting (D is positive definite)."""
        n = len(self.rows)
        if n == 1:
            return Coordinates((_over(b[0], self.rows[0][0]),))
        low: list[list[Scalar]] = [[0.0] * n for _ in range(n)]
        diagonal: list[Scalar] = []
        for j in range(n):
            pivot = self.rows[j][j]
            for k in range(j):
                pivot = pivot - low[j][k] * low[j][k] * diagonal[k]
            diagonal.append(pivot)
            for i in range(j + 1, n):
                entry = self.rows[i][j]
                for k in range(j):
                    entry = entry - low[i][k] * low[j][k] * diagonal[k]
                low[i][j] = entry / pivot
        x = list(b)
        for i in range(n):
            for k in range(i):
                x[i] = x[i] - low[i][k] * x[k]
        for i in reversed(range(n)):
            x[i] = x[i] / diagonal[i]
            for k in range(i + 1, n):
                x[i] = x[i] - low[k][i] * x[k]
        return Coordinates(x)


def updated_inertia(
    form: str, P: ArticulatedInertia, h_t: Span, p_h_t: Span, gain: Span, armature: Scalar
) -> ArticulatedInertia:
    """P^+ = P - P H^T D^-1 H P in one of the forms of Rodriguez 1987: "43", "50" or "51".

    (43) subtracts the gain times (P H^T)^T. (50) takes the mean of (I - G H) P and P (I - G H)^T, which differ by
    rounding. (51), Joseph's form, is a sum of squares: (I - G H) P (I - G H)^T + G R G^T with the armature R.
    """
    for g, ph in zip(gain.columns, p_h_t.columns, strict=True):
        P = P.minus_outer(g, ph)
        if form == "50":
            P = P.minus_outer(ph * 0.5, g).minus_outer(g * -0.5, ph)
    if form == "51":
        inner = [h_t.transpose_times(ph) for ph in p_h_t.columns]
        for g, ph, d in zip(gain.columns, p_h_t.columns, inner, strict=True):
            P = P.minus_outer(ph - gain @ d, g)  # (I - G H) P H^T G^T
            P = P.minus_outer(g * -armature, g)
    return P


__all__ = ["KINDS", "Coordinates", "Force", "JointInertia", "Prismatic", "Revolute", "Span", "updated_inertia"]
