"""Spatial vectors, inertias and transforms over any scalar.

Rotation first, always: a `Motion` is [angular; linear], a `Force` is [moment; force]. They are unrelated types: only
an inertia turns a Motion into a Force, and only a joint's subspace pairs the two.

All quantities of link k are in the frame of link k, at its origin. A `Transform` says where the link frame stands in
its parent's; it keeps the factors it was made of, so that a vector is turned by planar rotations (4 multiplications
and 2 additions each: Angeles, Ma & Rojas 1988, (54)-(55)) instead of a dense matrix. In the papers' symbols
`to_link` is A^-1 phi^T and `to_parent` is phi A.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast, runtime_checkable

from .scalars import Scalar, is_zero

if TYPE_CHECKING:
    from .transforms import Factor


@dataclass(slots=True, unsafe_hash=True)
class Vec:
    """A 3-vector."""

    x: Scalar
    y: Scalar
    z: Scalar

    def __add__(self, b: Vec) -> Vec:
        return Vec(self.x + b.x, self.y + b.y, self.z + b.z)

    def __sub__(self, b: Vec) -> Vec:
        return Vec(self.x - b.x, self.y - b.y, self.z - b.z)

    def __neg__(self) -> Vec:
        return Vec(-self.x, -self.y, -self.z)

    def __mul__(self, s: Scalar) -> Vec:
        return Vec(self.x * s, self.y * s, self.z * s)

    def __truediv__(self, s: Scalar) -> Vec:
        return Vec(self.x / s, self.y / s, self.z / s)

    def cross(self, b: Vec) -> Vec:
        return Vec(
            self.y * b.z - self.z * b.y,
            self.z * b.x - self.x * b.z,
            self.x * b.y - self.y * b.x,
        )

    def dot(self, b: Vec) -> Scalar:
        return self.x * b.x + self.y * b.y + self.z * b.z

    def __iter__(self) -> Iterator[Scalar]:
        return iter((self.x, self.y, self.z))


ZERO_VEC = Vec(0.0, 0.0, 0.0)


@dataclass(slots=True)
class Sym:
    """A symmetric 3x3 matrix, stored once: six numbers."""

    xx: Scalar
    yy: Scalar
    zz: Scalar
    xy: Scalar
    xz: Scalar
    yz: Scalar

    def __add__(self, b: Sym) -> Sym:
        return Sym(self.xx + b.xx, self.yy + b.yy, self.zz + b.zz, self.xy + b.xy, self.xz + b.xz, self.yz + b.yz)

    def __matmul__(self, v: Vec) -> Vec:
        return Vec(
            self.xx * v.x + self.xy * v.y + self.xz * v.z,
            self.xy * v.x + self.yy * v.y + self.yz * v.z,
            self.xz * v.x + self.yz * v.y + self.zz * v.z,
        )

    def minus_outer(self, a: Vec, b: Vec) -> Sym:
        """self - a b^T, where a b^T is known to be symmetric."""
        return Sym(
            self.xx - a.x * b.x,
            self.yy - a.y * b.y,
            self.zz - a.z * b.z,
            self.xy - a.x * b.y,
            self.xz - a.x * b.z,
            self.yz - a.y * b.z,
        )

    def rows(self) -> tuple[Vec, Vec, Vec]:
        return (
            Vec(self.xx, self.xy, self.xz),
            Vec(self.xy, self.yy, self.yz),
            Vec(self.xz, self.yz, self.zz),
        )


@dataclass(slots=True)
class Mat:
    """A general 3x3 matrix, by rows."""

    x: Vec
    y: Vec
    z: Vec

    def __add__(self, b: Mat) -> Mat:
        return Mat(self.x + b.x, self.y + b.y, self.z + b.z)

    def __matmul__(self, v: Vec) -> Vec:
        return Vec(self.x.dot(v), self.y.dot(v), self.z.dot(v))

    def transpose_times(self, v: Vec) -> Vec:
        return self.x * v.x + self.y * v.y + self.z * v.z

    def minus_outer(self, a: Vec, b: Vec) -> Mat:
        return Mat(self.x - b * a.x, self.y - b * a.y, self.z - b * a.z)

    @property
    def T(self) -> Mat:
        x, y, z = self.x, self.y, self.z
        return Mat(Vec(x.x, y.x, z.x), Vec(x.y, y.y, z.y), Vec(x.z, y.z, z.z))


def skew(v: Vec) -> Mat:
    """The matrix of v x ( )."""
    return Mat(Vec(0.0, -v.z, v.y), Vec(v.z, 0.0, -v.x), Vec(-v.y, v.x, 0.0))


class Turn(Protocol):
    """A rotation from the axes of a link to those of its parent; Screw and Rotation of transforms.py."""

    def turn(self, v: Vec) -> Vec: ...
    def turn_back(self, v: Vec) -> Vec: ...
    def turn_sym(self, a: Sym) -> Sym: ...
    def turn_mat(self, a: Mat) -> Mat: ...
    def back(self) -> Turn: ...


class _Outward(Protocol):
    def shifted(self, p: Vec) -> Self: ...
    def turned_back(self, by: Turn) -> Self: ...


class _Inward(Protocol):
    def turned(self, by: Turn) -> Self: ...
    def shifted(self, p: Vec) -> Self: ...


Outward = TypeVar("Outward", bound=_Outward)  # what a parent hands to its links: Motion, Compliance
Inward = TypeVar("Inward", bound=_Inward)  # what a link hands to its parent: Force, inertias, Coriolis
Record = TypeVar("Record")  # a dataclass or tuple of scalars and records


@dataclass(slots=True)
class Motion:
    """Velocity or acceleration of a link at its origin: [angular; linear]."""

    angular: Vec
    linear: Vec

    def __add__(self, b: Motion) -> Motion:
        return Motion(self.angular + b.angular, self.linear + b.linear)

    def __sub__(self, b: Motion) -> Motion:
        return Motion(self.angular - b.angular, self.linear - b.linear)

    def __neg__(self) -> Motion:
        return Motion(-self.angular, -self.linear)

    def __mul__(self, s: Scalar) -> Motion:
        return Motion(self.angular * s, self.linear * s)

    def shifted(self, p: Vec) -> Motion:
        """Return the motion at a point p further out."""
        return Motion(self.angular, self.linear + self.angular.cross(p))

    def turned_back(self, by: Turn) -> Motion:
        return Motion(by.turn_back(self.angular), by.turn_back(self.linear))


@dataclass(slots=True)
class Force:
    """Moment and force on a link at its origin: [moment; force]."""

    moment: Vec
    force: Vec

    def __add__(self, b: Force) -> Force:
        return Force(self.moment + b.moment, self.force + b.force)

    def __sub__(self, b: Force) -> Force:
        return Force(self.moment - b.moment, self.force - b.force)

    def __neg__(self) -> Force:
        return Force(-self.moment, -self.force)

    def __mul__(self, s: Scalar) -> Force:
        return Force(self.moment * s, self.force * s)

    def __truediv__(self, s: Scalar) -> Force:
        return Force(self.moment / s, self.force / s)

    def turned(self, by: Turn) -> Force:
        force = by.turn(self.force)
        return Force(by.turn(self.moment), force)

    def shifted(self, p: Vec) -> Force:
        """Return the force at a point p further in."""
        return Force(self.moment + p.cross(self.force), self.force)

    def dot(self, v: Motion) -> Scalar:
        """Return the power of a motion and this force."""
        return self.moment.dot(v.angular) + self.force.dot(v.linear)


ZERO_MOTION = Motion(ZERO_VEC, ZERO_VEC)
ZERO_FORCE = Force(ZERO_VEC, ZERO_VEC)


@dataclass(slots=True)
class Inertia:
    """A rigid body in ten numbers: mass, first moment m p, and the inertia tensor about the frame's origin."""

    mass: Scalar
    mp: Vec
    I: Sym  # noqa: E741  (the papers' symbol)

    def __add__(self, b: Inertia) -> Inertia:
        return Inertia(self.mass + b.mass, self.mp + b.mp, self.I + b.I)

    def __matmul__(self, v: Motion) -> Force:
        """Return the Force of a Motion; a Span of Motions has its own operator."""
        if not isinstance(v, Motion):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        return Force(self.I @ v.angular + self.mp.cross(v.linear), v.linear * self.mass + v.angular.cross(self.mp))

    def turned(self, by: Turn) -> Inertia:
        return Inertia(self.mass, by.turn(self.mp), by.turn_sym(self.I))

    def shifted(self, p: Vec) -> Inertia:
        """Seen from a point p further in: Rodriguez 1987, the recursions after (33)."""
        mp = self.mp + p * self.mass
        q = self.mp + mp  # p.q and the products p_i q_j hold both p h^T + h p^T and m p p^T
        xx, yy, zz = p.x * q.x, p.y * q.y, p.z * q.z
        inertia = Sym(
            self.I.xx + (yy + zz),
            self.I.yy + (xx + zz),
            self.I.zz + (xx + yy),
            self.I.xy - (p.x * self.mp.y + mp.x * p.y),
            self.I.xz - (p.x * self.mp.z + mp.x * p.z),
            self.I.yz - (p.y * self.mp.z + mp.y * p.z),
        )
        return Inertia(self.mass, mp, inertia)

    def second_moments(self) -> Sym:
        """J, the integral of r r^T dm: I = trace(J) 1 - J."""
        a = self.I
        half = (a.xx + a.yy + a.zz) * 0.5
        return Sym(half - a.xx, half - a.yy, half - a.zz, -a.xy, -a.xz, -a.yz)

    def articulated(self) -> ArticulatedInertia:
        m = self.mass
        return ArticulatedInertia(self.I, skew(self.mp), Sym(m, m, m, 0.0, 0.0, 0.0))


def _masked(a: Sym, keep: Vec) -> Sym:
    """a with 0 in the rows and columns where `keep` is 0."""
    x, y, z = keep.x, keep.y, keep.z
    return Sym(a.xx * x, a.yy * y, a.zz * z, a.xy * (x * y), a.xz * (x * z), a.yz * (y * z))


@dataclass(slots=True)
class ArticulatedInertia:
    """A symmetric 6x6 matrix [[J, Y], [Y^T, rho]] from Motion to Force: 21 numbers."""

    J: Sym
    Y: Mat
    rho: Sym

    @classmethod
    def of_rows(cls, p: Sequence[Sequence[Scalar]]) -> ArticulatedInertia:
        """Return the matrix with these six rows; only the upper triangle is read."""
        J = Sym(p[0][0], p[1][1], p[2][2], p[0][1], p[0][2], p[1][2])
        rho = Sym(p[3][3], p[4][4], p[5][5], p[3][4], p[3][5], p[4][5])
        return cls(J, Mat(*(Vec(*row[3:]) for row in p[:3])), rho)

    def without(self, h: Motion) -> ArticulatedInertia:
        """Return the matrix with 0 in the row and column of h, a unit vector along an axis; unchanged for other h."""
        entries = [h.angular.x, h.angular.y, h.angular.z, h.linear.x, h.linear.y, h.linear.z]
        if sum(is_zero(x) for x in entries) < 5:
            return self
        keep = [1.0 if is_zero(x) else 0.0 for x in entries]
        turning, sliding = Vec(*keep[:3]), Vec(*keep[3:])
        rows = (
            Vec(row.x * (k * sliding.x), row.y * (k * sliding.y), row.z * (k * sliding.z))
            for row, k in zip((self.Y.x, self.Y.y, self.Y.z), keep[:3], strict=True)
        )
        return ArticulatedInertia(_masked(self.J, turning), Mat(*rows), _masked(self.rho, sliding))

    def __add__(self, b: ArticulatedInertia) -> ArticulatedInertia:
        return ArticulatedInertia(self.J + b.J, self.Y + b.Y, self.rho + b.rho)

    def __sub__(self, b: ArticulatedInertia) -> ArticulatedInertia:
        iterator = iter(leaves(b))
        return map_leaves(lambda x: x - next(iterator), self)

    def __matmul__(self, v: Motion) -> Force:
        """Return the Force of a Motion; a Span of Motions has its own operator."""
        if not isinstance(v, Motion):  # pyright: ignore[reportUnnecessaryIsInstance]
            return NotImplemented
        return Force(self.J @ v.angular + self.Y @ v.linear, self.Y.transpose_times(v.angular) + self.rho @ v.linear)

    def turned(self, by: Turn) -> ArticulatedInertia:
        return ArticulatedInertia(by.turn_sym(self.J), by.turn_mat(self.Y), by.turn_sym(self.rho))

    def shifted(self, p: Vec) -> ArticulatedInertia:
        """phi P phi^T with phi = [[1, p~], [0, 1]]: (37) of Rodriguez 1987 without M(k)."""
        rx, ry, rz = self.rho.rows()
        y = self.Y + Mat(rz * p.y - ry * p.z, rx * p.z - rz * p.x, ry * p.x - rx * p.y)  # Y + p~ rho
        # J + p~ Y^T + Y' p~^T, six entries; row i of p~ Y^T is p x (column of Y^T)
        ax, ay, az = self.Y.x, self.Y.y, self.Y.z
        j = self.J
        sym = Sym(
            j.xx + (p.y * (ax.z + y.x.z) - p.z * (ax.y + y.x.y)),
            j.yy + (p.z * (ay.x + y.y.x) - p.x * (ay.z + y.y.z)),
            j.zz + (p.x * (az.y + y.z.y) - p.y * (az.x + y.z.x)),
            j.xy + (p.y * ay.z - p.z * ay.y + p.z * y.x.x - p.x * y.x.z),
            j.xz + (p.y * az.z - p.z * az.y + p.x * y.x.y - p.y * y.x.x),
            j.yz + (p.z * az.x - p.x * az.z + p.x * y.y.y - p.y * y.y.x),
        )
        return ArticulatedInertia(sym, y, self.rho)

    def minus_outer(self, a: Force, b: Force) -> ArticulatedInertia:
        """self - a b^T, where a b^T is known to be symmetric."""
        return ArticulatedInertia(
            self.J.minus_outer(a.moment, b.moment),
            self.Y.minus_outer(a.moment, b.force),
            self.rho.minus_outer(a.force, b.force),
        )


@dataclass(slots=True)
class Compliance:
    """A symmetric 6x6 matrix from Force to Motion, 21 numbers: C linear by linear, Y linear by angular, A angular.

    Such are the covariances Delta of the costates (Rodriguez 1987, (66)).
    """

    C: Sym
    Y: Mat
    A: Sym

    def __matmul__(self, f: Force) -> Motion:
        return Motion(
            self.Y.transpose_times(f.force) + self.A @ f.moment,
            self.C @ f.force + self.Y @ f.moment,
        )

    def shifted(self, p: Vec) -> Compliance:
        """phi^T Delta phi: (67) of Rodriguez 1987. As of inertias with the halves exchanged and p reversed."""
        moved = ArticulatedInertia(self.C, self.Y, self.A).shifted(-p)
        return Compliance(moved.J, moved.Y, moved.rho)

    def turned_back(self, by: Turn) -> Compliance:
        back = by.back()
        return Compliance(back.turn_sym(self.C), back.turn_mat(self.Y), back.turn_sym(self.A))

    def minus_outer(self, a: Motion, b: Motion) -> Compliance:
        """self - a b^T, where the sum of what is subtracted is known to be symmetric."""
        return Compliance(
            self.C.minus_outer(a.linear, b.linear),
            self.Y.minus_outer(a.linear, b.angular),
            self.A.minus_outer(a.angular, b.angular),
        )


def sandwich(P: ArticulatedInertia, Delta: Compliance) -> ArticulatedInertia:
    """P Delta P, symmetric."""
    axes = (Vec(1.0, 0.0, 0.0), Vec(0.0, 1.0, 0.0), Vec(0.0, 0.0, 1.0))
    units = [*(Motion(axis, ZERO_VEC) for axis in axes), *(Motion(ZERO_VEC, axis) for axis in axes)]
    columns = [leaves(P @ (Delta @ (P @ unit))) for unit in units]
    return ArticulatedInertia.of_rows(list(zip(*columns, strict=True)))


ZERO_SYM = Sym(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
ZERO_INERTIA = Inertia(0.0, ZERO_VEC, ZERO_SYM)
ZERO_ARTICULATED = ArticulatedInertia(ZERO_SYM, Mat(ZERO_VEC, ZERO_VEC, ZERO_VEC), ZERO_SYM)
ZERO_COMPLIANCE = Compliance(ZERO_SYM, Mat(ZERO_VEC, ZERO_VEC, ZERO_VEC), ZERO_SYM)


def centripetal(w: Vec, p: Vec) -> Vec:
    """w x (w x p), through the six products of w that every use of the same w shares."""
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    return Vec(
        xy * p.y + xz * p.z - (yy + zz) * p.x,
        xy * p.x + yz * p.z - (xx + zz) * p.y,
        xz * p.x + yz * p.y - (xx + yy) * p.z,
    )


@dataclass(slots=True)
class Transform:
    """The transform from the frame of a link to that of its parent: a product of factors, the parent's side first."""

    factors: tuple[Factor, ...]

    def to_link(self, v: Outward) -> Outward:
        """A^-1 phi^T: a Motion (or Compliance) of the parent, at and in the frame of the link."""
        for factor in self.factors:
            v = factor.to_link(v)
        return v

    def to_parent(self, f: Inward) -> Inward:
        """phi A: a Force, Inertia or ArticulatedInertia of the link, at and in the frame of the parent."""
        for factor in reversed(self.factors):
            f = factor.to_parent(f)
        return f

    def turn(self, v: Vec) -> Vec:
        """The rotation part alone: a vector of the link in the parent's directions."""
        for factor in reversed(self.factors):
            v = factor.turn(v)
        return v

    def turn_back(self, v: Vec) -> Vec:
        for factor in self.factors:
            v = factor.turn_back(v)
        return v

    def point(self, p: Vec) -> Vec:
        """A point of the link in the parent's frame."""
        for factor in reversed(self.factors):
            p = factor.point(p)
        return p

    def origin(self) -> Vec:
        """The link's origin in the parent's frame: l(k+1, k)."""
        return self.point(ZERO_VEC)


def leaves(record: object) -> list[Scalar]:
    """The scalars of a (nested) record, in the order of its fields."""
    out: list[Scalar] = []
    _collect(record, out)
    return out


def _collect(record: Any, out: list[Scalar]) -> None:
    fields = getattr(record, "__dataclass_fields__", None)
    if fields is not None:
        for name in fields:
            _collect(getattr(record, name), out)
    elif isinstance(record, (tuple, list)):
        for item in record:  # pyright: ignore[reportUnknownVariableType]
            _collect(item, out)
    elif record is not None:
        out.append(record)


def rebuild(template: Record, values: Sequence[Scalar]) -> Record:
    """The inverse of `leaves`: a record shaped like `template` that holds `values`."""
    iterator = iter(values)
    return map_leaves(lambda _: next(iterator), template)


def map_leaves(function: Callable[[Scalar], Scalar], record: Record) -> Record:
    """The same record of function(x) for each of its scalars x."""
    return _mapped(function, record)


def _mapped(function: Callable[[Scalar], Scalar], record: Any) -> Any:
    fields = getattr(record, "__dataclass_fields__", None)
    if fields is not None:
        return type(record)(*(_mapped(function, getattr(record, name)) for name in fields))
    if isinstance(record, (tuple, list)):
        mapped = (_mapped(function, item) for item in record)  # pyright: ignore[reportUnknownVariableType]
        return type(record)(mapped)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return None if record is None else function(record)


@runtime_checkable
class Joining(Protocol):
    """A record that is not added leaf by leaf. Only unrolled sweeps support it: loops over links add numbers."""

    def joined(self, other: object) -> object: ...


def add_records(a: Record, b: Record) -> Record:
    """Return the sum of two records of the same shape: leaf by leaf, or as a `Joining` record defines it."""
    if isinstance(a, Joining):
        return cast("Record", a.joined(b))
    iterator = iter(leaves(b))
    return map_leaves(lambda x: x + next(iterator), a)


@dataclass(slots=True)
class Coriolis:
    """B in twelve numbers: of points with mass m, place p and velocity u, l = sum m u and K = sum m u p^T.

    Times a Motion [w; v] it is the force for the accelerations w x u of all points.
    """

    l: Vec  # noqa: E741  (the linear momentum)
    K: Mat

    def __add__(self, b: Coriolis) -> Coriolis:
        return Coriolis(self.l + b.l, self.K + b.K)

    def __matmul__(self, v: Motion) -> Force:
        w = v.angular
        return Force(w * _trace(self.K) - self.K @ w, w.cross(self.l))

    def transpose_times(self, v: Motion) -> Vec:
        """The moment of B^T v, which has no force."""
        w = v.angular
        return w * _trace(self.K) - self.K.transpose_times(w) + self.l.cross(v.linear)

    def turned(self, by: Turn) -> Coriolis:
        return Coriolis(by.turn(self.l), by.turn_mat(self.K))

    def shifted(self, p: Vec) -> Coriolis:
        """Return the matrix at a point p further in."""
        return Coriolis(self.l, _plus_outer(self.K, self.l, p))


ZERO_CORIOLIS = Coriolis(ZERO_VEC, Mat(ZERO_VEC, ZERO_VEC, ZERO_VEC))


def coriolis(M: Inertia, v: Motion) -> Coriolis:
    """B of a body that moves with v: its points have u = v + w x p. It is linear in v."""
    w, J = v.angular, M.second_moments().rows()
    turned = Mat(w.cross(J[0]), w.cross(J[1]), w.cross(J[2])).T
    return Coriolis(v.linear * M.mass + w.cross(M.mp), _plus_outer(turned, v.linear, M.mp))


def _plus_outer(K: Mat, a: Vec, b: Vec) -> Mat:
    """K + a b^T."""
    return Mat(K.x + b * a.x, K.y + b * a.y, K.z + b * a.z)


def _trace(K: Mat) -> Scalar:
    return K.x.x + K.y.y + K.z.z
