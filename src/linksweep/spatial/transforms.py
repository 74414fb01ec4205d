"""The factors a Transform is made of: a shift, a screw about a coordinate axis, and a general rotation.

A screw turns about and slides along one axis: a modified DH row is a screw about x (twist, length) and a screw about z
(angle, offset), the two planar rotations into which Angeles, Ma & Rojas split the direction cosines ((54)-(55)).
Constants that are exactly 0 or 1 fold away where the scalar allows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .algebra import ZERO_VEC, Inward, Mat, Outward, Sym, Transform, Vec
from .scalars import Scalar, is_zero


@dataclass(slots=True)
class Pose:
    """A frame in the base frame: its axes x, y, z and its origin p."""

    x: Vec
    y: Vec
    z: Vec
    p: Vec

    def turn(self, v: Vec) -> Vec:
        """A vector of the frame in the base's directions."""
        return self.x * v.x + self.y * v.y + self.z * v.z

    def turn_back(self, v: Vec) -> Vec:
        """A vector of the base in the frame's directions."""
        return Vec(self.x.dot(v), self.y.dot(v), self.z.dot(v))

    def point(self, v: Vec) -> Vec:
        return self.turn(v) + self.p

    def through(self, transform: Transform) -> Pose:
        """Return the pose of a frame whose transform to this one is `transform`."""
        pose = self
        for factor in transform.factors:
            pose = factor.carry(pose)
        return pose


WORLD = Pose(Vec(1.0, 0.0, 0.0), Vec(0.0, 1.0, 0.0), Vec(0.0, 0.0, 1.0), ZERO_VEC)


@dataclass(slots=True, unsafe_hash=True)
class Shift:
    """A translation by p, in the parent's directions."""

    p: Vec

    def slide(self) -> Vec:
        return self.p

    def without_slide(self) -> Shift:
        return Shift(ZERO_VEC)

    def to_link(self, v: Outward) -> Outward:
        return v.shifted(self.p)

    def to_parent(self, f: Inward) -> Inward:
        return f.shifted(self.p)

    def turn(self, v: Vec) -> Vec:
        return v

    def turn_back(self, v: Vec) -> Vec:
        return v

    def point(self, p: Vec) -> Vec:
        return p + self.p

    def carry(self, pose: Pose) -> Pose:
        return Pose(pose.x, pose.y, pose.z, pose.point(self.p))


@dataclass(slots=True, unsafe_hash=True)
class Screw:
    """A turn by the angle whose cosine and sine are c, s about `axis` (0, 1, 2), and a slide t along it."""

    axis: int
    c: Scalar
    s: Scalar
    t: Scalar

    def slide(self) -> Vec:
        return _along(self.axis, self.t)

    def without_slide(self) -> Screw:
        return Screw(self.axis, self.c, self.s, 0.0)

    def turn(self, v: Vec) -> Vec:
        return _turn(v, self.axis, self.c, self.s)

    def turn_back(self, v: Vec) -> Vec:
        return _turn(v, self.axis, self.c, -self.s)

    def point(self, p: Vec) -> Vec:
        return self.turn(p) + _along(self.axis, self.t)

    def carry(self, pose: Pose) -> Pose:
        axes = [pose.x, pose.y, pose.z]
        i, j, k = _plane(self.axis)
        axes[i], axes[j] = axes[i] * self.c + axes[j] * self.s, axes[j] * self.c - axes[i] * self.s
        x, y, z = axes
        return Pose(x, y, z, pose.p + axes[k] * self.t)

    def back(self) -> Screw:
        """The turn in the other direction."""
        return Screw(self.axis, self.c, -self.s, 0.0)

    def to_link(self, v: Outward) -> Outward:
        return v.shifted(self.slide()).turned_back(self)

    def to_parent(self, f: Inward) -> Inward:
        return f.turned(self).shifted(self.slide())

    def turn_sym(self, a: Sym) -> Sym:
        """R a R^T. The entry on the axis is invariant, the ones beside it turn like a vector, and of the plane's
        three numbers only two products with each of sin^2 and sin cos are needed."""
        rows = a.rows()
        i, j, k = _plane(self.axis)
        ii, jj, kk, ij = _at(rows[i], i), _at(rows[j], j), _at(rows[k], k), _at(rows[i], j)
        ik, jk = self._turn_pair(_at(rows[i], k), _at(rows[j], k))
        if is_zero(self.c):  # a quarter turn only exchanges
            ii, jj, ij = jj, ii, -ij
        else:
            cs, ss = self.c * self.s, self.s * self.s
            u = ii - jj
            d = ss * u + (cs + cs) * ij
            ii, jj, ij = ii - d, jj + d, cs * u + (1.0 - (ss + ss)) * ij
        return _sym(i, ii, jj, kk, ij, ik, jk)

    def turn_mat(self, a: Mat) -> Mat:
        """R a R^T of a general matrix: the plane's trace and skew part are invariant."""
        rows = (a.x, a.y, a.z)
        i, j, k = _plane(self.axis)
        ii, ij, ik = _at(rows[i], i), _at(rows[i], j), _at(rows[i], k)
        ji, jj, jk = _at(rows[j], i), _at(rows[j], j), _at(rows[j], k)
        ki, kj, kk = _at(rows[k], i), _at(rows[k], j), _at(rows[k], k)
        if is_zero(self.c):
            ii, jj, ij, ji = jj, ii, -ji, -ij
        else:
            cs, ss = self.c * self.s, self.s * self.s
            u, w = ii - jj, ij + ji
            d, e = ss * u + cs * w, cs * u - ss * w
            ii, jj, ij, ji = ii - d, jj + d, ij + e, ji + e
        ik, jk = self._turn_pair(ik, jk)
        ki, kj = self._turn_pair(ki, kj)
        entries = {i: (ii, ij, ik), j: (ji, jj, jk), k: (ki, kj, kk)}
        ordered = [_unpermute(i, entries[row]) for row in range(3)]
        return Mat(*(Vec(*row) for row in ordered))

    def _turn_pair(self, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
        return self.c * x - self.s * y, self.s * x + self.c * y


@dataclass(slots=True)
class Rotation:
    """A rotation by any rotation matrix, as of a spherical joint or a free base."""

    R: Mat

    def slide(self) -> Vec:
        return ZERO_VEC

    def without_slide(self) -> Rotation:
        return self

    def turn(self, v: Vec) -> Vec:
        return self.R @ v

    def turn_back(self, v: Vec) -> Vec:
        return self.R.transpose_times(v)

    def point(self, p: Vec) -> Vec:
        return self.R @ p

    def carry(self, pose: Pose) -> Pose:
        columns = self.R.T
        return Pose(pose.turn(columns.x), pose.turn(columns.y), pose.turn(columns.z), pose.p)

    def back(self) -> Rotation:
        return Rotation(self.R.T)

    def turn_sym(self, a: Sym) -> Sym:
        return _congruent_sym(self.R, a)

    def turn_mat(self, a: Mat) -> Mat:
        return _congruent(self.R, a)

    def to_link(self, v: Outward) -> Outward:
        return v.turned_back(self)

    def to_parent(self, f: Inward) -> Inward:
        return f.turned(self)


Factor = Shift | Screw | Rotation


def keeps_z(factor: Factor) -> bool:
    """Return whether z stays parallel, or turns round, on the way through this factor."""
    return isinstance(factor, Shift) or (isinstance(factor, Screw) and (factor.axis == 2 or is_zero(factor.s)))


def taken_through(turn: Screw, factors: Sequence[Factor]) -> tuple[Factor, ...]:
    """turn * factors, the turn about z taken outward through all that keep z, into the next screw about z."""
    taken: list[Factor] = []
    for place, factor in enumerate(factors):
        if isinstance(factor, Screw) and factor.axis == 2:
            c, s = turn.c * factor.c - turn.s * factor.s, turn.s * factor.c + turn.c * factor.s
            turn = Screw(2, c, s, factor.t)
            if place == len(factors) - 1:
                return (*taken, turn)
            taken.append(Shift(turn.slide()))
            turn = turn.without_slide()
        elif keeps_z(factor):
            taken.append(Shift(turn.turn(factor.slide())))
            if isinstance(factor, Screw):  # about x or y by no or half a turn: then z turns round
                taken.append(factor.without_slide())
                turn = Screw(2, turn.c, turn.s * factor.c, 0.0)
        else:
            return (*taken, turn, *factors[place:])
    return (*taken, turn)


def _congruent(R: Mat, a: Mat) -> Mat:
    """R a R^T."""
    x, y, z = (Vec(a.x.dot(row), a.y.dot(row), a.z.dot(row)) for row in (R.x, R.y, R.z))  # a R^T, by columns
    return Mat(Vec(R.x.dot(x), R.x.dot(y), R.x.dot(z)), Vec(R.y.dot(x), R.y.dot(y), R.y.dot(z)),
               Vec(R.z.dot(x), R.z.dot(y), R.z.dot(z)))  # fmt: skip


def _congruent_sym(R: Mat, a: Sym) -> Sym:
    """R a R^T, symmetric: six entries."""
    x, y, z = a @ R.x, a @ R.y, a @ R.z
    return Sym(R.x.dot(x), R.y.dot(y), R.z.dot(z), R.x.dot(y), R.x.dot(z), R.y.dot(z))


def _plane(axis: int) -> tuple[int, int, int]:
    """The two directions of the plane across `axis`, right-handed, then the axis itself."""
    return (axis + 1) % 3, (axis + 2) % 3, axis


def _at(v: Vec, index: int) -> Scalar:
    return v.x if index == 0 else v.y if index == 1 else v.z


def _unpermute(i: int, entries: tuple[Scalar, Scalar, Scalar]) -> list[Scalar]:
    """Entries given in the order (i, i+1, i+2), cyclic, back in the order x, y, z."""
    return [entries[(n - i) % 3] for n in range(3)]


def _sym(i: int, ii: Scalar, jj: Scalar, kk: Scalar, ij: Scalar, ik: Scalar, jk: Scalar) -> Sym:
    """A Sym from entries named in the cyclic order i, j, k that starts at i."""
    xx, yy, zz = _unpermute(i, (ii, jj, kk))
    yz, xz, xy = _unpermute(i, (jk, ik, ij))  # an off-diagonal entry is named by the index it lacks
    return Sym(xx, yy, zz, xy, xz, yz)


def _turn(v: Vec, axis: int, c: Scalar, s: Scalar) -> Vec:
    if axis == 0:
        return Vec(v.x, c * v.y - s * v.z, s * v.y + c * v.z)
    if axis == 1:
        return Vec(c * v.x + s * v.z, v.y, c * v.z - s * v.x)
    return Vec(c * v.x - s * v.y, s * v.x + c * v.y, v.z)


def _along(axis: int, t: Scalar) -> Vec:
    return Vec(t if axis == 0 else 0.0, t if axis == 1 else 0.0, t if axis == 2 else 0.0)
