"""The joints: how each kind moves its link, and the subspace H in which it moves.

A joint stands in its link's canonical frame (see canonical.py): the axis of a revolute, prismatic or helical joint, and
the normal of a planar one, is z. It has `nq` coordinates and `nv` rates; rates are those of the link in its own frame,
[angular; linear], so that the columns of H^T are constant. A joint with several freedoms makes H a block and D a small
symmetric matrix, factored in `JointInertia`; everything else is unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ..spatial.algebra import ArticulatedInertia, Inertia, Mat, Motion, Vec, leaves
from ..spatial.scalars import Scalar, cos, is_zero, shifted, sin
from ..spatial.transforms import Rotation, Screw, Shift

NAMES_VALUES = True  # of its steps: see tracing/labels.py


class Coordinates(tuple[Scalar, ...]):
    """The rates, accelerations or forces of one joint: nv scalars that add entry by entry."""

    def __add__(self, b: Any) -> Coordinates:
        return Coordinates(x + y for x, y in zip(self, b, strict=True))

    def __sub__(self, b: Any) -> Coordinates:
        return Coordinates(x - y for x, y in zip(self, b, strict=True))

    def __mul__(self, s: Any) -> Coordinates:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Coordinates(x * s for x in self)


def _unit(index: int) -> Motion:
    entries = [1.0 if i == index else 0.0 for i in range(6)]
    return Motion(Vec(*entries[:3]), Vec(*entries[3:]))


class Joint:
    """What every kind has: sizes, the columns of H^T, and its motion.

    commutes: a screw about z may be moved through the joint, so that its link's frame can be chosen.
    `kept` is what of q costs more than arithmetic and is worth keeping between sweeps; `motion` makes the factors of
    the link's transform from it.
    """

    nq: ClassVar[int] = 1
    nv: ClassVar[int] = 1
    commutes: ClassVar[bool] = True

    @staticmethod
    def columns(pitch: Scalar) -> tuple[Motion, ...]:
        raise NotImplementedError

    @staticmethod
    def kept(q: Sequence[Scalar], angle: Scalar) -> tuple[Scalar, ...]:
        raise NotImplementedError

    @staticmethod
    def motion(kept: Sequence[Scalar], quarters: int, turn: Sequence[Scalar], slide: Scalar, pitch: Scalar) -> Any:
        raise NotImplementedError

    @staticmethod
    def slopes(q: Sequence[Scalar]) -> list[tuple[Scalar, tuple[Scalar | None, ...]]]:
        """What moves with the rates, and its derivative by each of them (None for 0): q' = Omega(q) v.

        Entries of a rotation stand for the quaternion, because R' = R [w x] costs nothing.
        """
        return [(q[0], (1.0,))]


class Revolute(Joint):
    """Turns about z."""

    @staticmethod
    def columns(pitch: Scalar) -> tuple[Motion, ...]:
        return (_unit(2),)

    @staticmethod
    def kept(q: Sequence[Scalar], angle: Scalar) -> tuple[Scalar, ...]:
        theta = shifted(q[0], angle)
        return cos(theta), sin(theta)

    @staticmethod
    def motion(kept: Sequence[Scalar], quarters: int, turn: Sequence[Scalar], slide: Scalar, pitch: Scalar) -> Any:
        return (Screw(2, *_turned(kept, quarters), slide),)


class Prismatic(Joint):
    """Slides along z."""

    @staticmethod
    def columns(pitch: Scalar) -> tuple[Motion, ...]:
        return (_unit(5),)

    @staticmethod
    def kept(q: Sequence[Scalar], angle: Scalar) -> tuple[Scalar, ...]:
        return (q[0],)

    @staticmethod
    def motion(kept: Sequence[Scalar], quarters: int, turn: Sequence[Scalar], slide: Scalar, pitch: Scalar) -> Any:
        return (Screw(2, turn[0], turn[1], kept[0] + slide),)


class Helical(Joint):
    """Turns about z and slides along it by `pitch` for each radian."""

    @staticmethod
    def columns(pitch: Scalar) -> tuple[Motion, ...]:
        return (Motion(Vec(0.0, 0.0, 1.0), Vec(0.0, 0.0, pitch)),)

    @staticmethod
    def kept(q: Sequence[Scalar], angle: Scalar) -> tuple[Scalar, ...]:
        theta = shifted(q[0], angle)
        return cos(theta), sin(theta), q[0]

    @staticmethod
    def motion(kept: Sequence[Scalar], quarters: int, turn: Sequence[Scalar], slide: Scalar, pitch: Scalar) -> Any:
        return (Screw(2, *_turned(kept[:2], quarters), kept[2] * pitch + slide),)


class Planar(Joint):
    """Moves in the plane across z: q = (angle, x, y), rates [w_z, v_x, v_y] in the link's frame."""

    nq = 3
    nv = 3
    commutes = False

    @staticmethod
    def columns(pitch: Scalar) -> tuple[Motion, ...]:
        return _unit(2), _unit(3), _unit(4)

    @staticmethod
    def kept(q: Sequence[Scalar], angle: Scalar) -> tuple[Scalar, ...]:
        return cos(q[0]), sin(q[0]), q[1], q[2]

    @staticmethod
    def motion(kept: Sequence[Scalar], quarters: int, turn: Sequence[Scalar], slide: Scalar, pitch: Scalar) -> Any:
        return Shift(Vec(kept[2], kept[3], 0.0)), Screw(2, kept[0], kept[1], 0.0)

    @staticmethod
    def slopes(q: Sequence[Scalar]) -> list[tuple[Scalar, tuple[Scalar | None, ...]]]:
        c, s = cos(q[0]), sin(q[0])
        return [(q[0], (1.0, None, None)), (q[1], (None, c, -s)), (q[2], (None, s, c))]


class Spherical(Joint):
    """Turns freely: q is a quaternion xyzw of any length but 0, rates the angular velocity in the link's frame."""

    nq = 4
    nv = 3
    commutes = False

    @staticmethod
    def columns(pitch: Scalar) -> tuple[Motion, ...]:
        return _unit(0), _unit(1), _unit(2)

    @staticmethod
    def kept(q: Sequence[Scalar], angle: Scalar) -> tuple[Scalar, ...]:
        return _rotation(q)

    @staticmethod
    def motion(kept: Sequence[Scalar], quarters: int, turn: Sequence[Scalar], slide: Scalar, pitch: Scalar) -> Any:
        return (_rotation_factor(kept),)

    @staticmethod
    def slopes(q: Sequence[Scalar]) -> list[tuple[Scalar, tuple[Scalar | None, ...]]]:
        return _rotation_slopes(_rotation(q))


class Free(Joint):
    """Moves freely: q = [quaternion xyzw, position], rates [w; v] in the link's frame."""

    nq = 7
    nv = 6
    commutes = False

    @staticmethod
    def columns(pitch: Scalar) -> tuple[Motion, ...]:
        return tuple(_unit(i) for i in range(6))

    @staticmethod
    def kept(q: Sequence[Scalar], angle: Scalar) -> tuple[Scalar, ...]:
        return (*_rotation(q[:4]), *q[4:])

    @staticmethod
    def motion(kept: Sequence[Scalar], quarters: int, turn: Sequence[Scalar], slide: Scalar, pitch: Scalar) -> Any:
        return Shift(Vec(*kept[9:])), _rotation_factor(kept[:9])

    @staticmethod
    def slopes(q: Sequence[Scalar]) -> list[tuple[Scalar, tuple[Scalar | None, ...]]]:
        R = _rotation(q[:4])
        turned = _rotation_slopes(R)
        return [*turned, *((p, (None, None, None, *R[3 * i : 3 * i + 3])) for i, p in enumerate(q[4:]))]


KINDS: dict[str, type[Joint]] = {
    "revolute": Revolute, "prismatic": Prismatic, "helical": Helical, "planar": Planar, "spherical": Spherical,
    "free": Free,
}  # fmt: skip


def _turned(pair: Sequence[Scalar], quarters: int) -> tuple[Scalar, Scalar]:
    """Cosine and sine after so many quarter turns."""
    c, s = pair
    return ((c, s), (-s, c), (-c, -s), (s, -c))[quarters]


def _rotation(quaternion: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """The rotation matrix of a quaternion xyzw, by rows; its length cancels."""
    x, y, z, w = quaternion
    two = 2.0 / (x * x + y * y + z * z + w * w)
    xs, ys, zs = x * two, y * two, z * two
    xx, yy, zz, xy, xz, yz = x * xs, y * ys, z * zs, x * ys, x * zs, y * zs
    wx, wy, wz = w * xs, w * ys, w * zs
    return (
        1.0 - (yy + zz), xy - wz, xz + wy,
        xy + wz, 1.0 - (xx + zz), yz - wx,
        xz - wy, yz + wx, 1.0 - (xx + yy),
    )  # fmt: skip


def _rotation_slopes(R: Sequence[Scalar]) -> list[tuple[Scalar, tuple[Scalar | None, ...]]]:
    """R [w x], entry by entry: each column's derivative by w_x, w_y, w_z is another column, or 0."""
    found = []
    for row in range(3):
        x, y, z = R[3 * row : 3 * row + 3]
        found += [(x, (None, -z, y)), (y, (z, None, -x)), (z, (-y, x, None))]
    return found


def _rotation_factor(entries: Sequence[Scalar]) -> Rotation:
    return Rotation(Mat(Vec(*entries[:3]), Vec(*entries[3:6]), Vec(*entries[6:9])))


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
        return Span([self @ d.solve(row) for row in unit])


def _pair(a: Any, b: Any) -> Scalar:
    """The product of a Motion and a Force, whichever comes first."""
    return b.dot(a) if isinstance(a, Motion) else a.dot(b)


def _over(a: Any, d: Scalar) -> Any:
    """a / D, but 0 where D is the number 0 (a joint that moves no inertia in any pose): P H^T is 0 there too."""
    return a * 0.0 if is_zero(d) else a / d


class JointBlock(tuple[tuple[Scalar, ...], ...]):
    """What a sweep keeps of D(k): its rows."""


class JointInertia:
    """D(k) = H P H^T + R, the inertia that the joint sees: nv by nv, symmetric."""

    __slots__ = ("_factors", "rows")

    def __init__(self, h_t: Span, p_h_t: Span, armature: Scalar):
        n = len(h_t.columns)
        self._factors: tuple[list[list[Scalar]], list[Scalar]] | None = None
        self.rows = [[_pair(h_t.columns[i], p_h_t.columns[j]) for j in range(n)] for i in range(n)]
        for i in range(n):
            self.rows[i][i] = self.rows[i][i] + armature

    @classmethod
    def of(cls, block: Sequence[Sequence[Scalar]]) -> JointInertia:
        """D again, from what a sweep kept of it."""
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
    form: str, P: ArticulatedInertia, h_t: Span, p_h_t: Span, gain: Span, armature: Scalar
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


def joseph(P: ArticulatedInertia, h_t: Span, gain: Span, armature: Scalar) -> ArticulatedInertia:
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
    columns = [leaves(P @ _unit(n)) for n in six]
    once = [[sum((factor[i][m] * columns[n][m] for m in six), 0.0) for n in six] for i in six]
    order = sorted(six, key=lambda i: sum(map(is_zero, factor[i])))  # of two rows the one with more zeros comes last
    P_plus: list[list[Any]] = [[0.0] * 6 for _ in six]
    for place, i in enumerate(order):
        for k in order[place:]:
            noise = sum((g[i] * (g[k] * armature) for g in gains), 0.0)  # G R G^T
            P_plus[i][k] = P_plus[k][i] = sum((once[i][n] * factor[k][n] for n in six), 0.0) + noise
    return ArticulatedInertia.of_rows(P_plus)


__all__ = ["KINDS", "Coordinates", "Joint", "JointBlock", "JointInertia", "Span", "solve_upper", "updated_inertia"]
