"""Closed-form inverse kinematics, all branches, of 6-DOF chains with a spherical wrist or three parallel axes.

After D. Pieper, "The kinematics of manipulators under computer control", 1968. Joints are screws in the base frame
(product of exponentials), so the result does not depend on a convention for link frames. The chain is
e1 e2 ... e6 = G, where G moves the frame from its pose at q = 0 to its target.

Components come first: vectors are (3, N, K) for K branches of N targets, or (3, 1, 1) for constants of the robot.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from .trajectories import FloatArray

Numbers = Any  # a float or an array
TURN = 2.0 * np.pi
# ---- joints as screws
EXACT = 1e-8  # rad, or relative to the arm's size: axes closer than this intersect or are parallel; files are rounded
FREE = 3e-11  # relative: perpendicular component of a vector that counts as parallel to an axis


class Screw(NamedTuple):
    """A joint: its axis w, a point r on it, and whether it rotates about w or translates along w."""

    w: FloatArray
    r: FloatArray
    turns: bool

    def moved(self, q: Numbers, point: Numbers) -> FloatArray:
        """Points after the joint has moved by q."""
        return self.r + self.turned(q, point - self.r) if self.turns else point + q * self.w

    def turned(self, q: Numbers, vector: Numbers) -> FloatArray:
        """Directions after the joint has moved by q."""
        if not self.turns:
            return vector
        c, s = np.cos(q), np.sin(q)
        return c * vector + s * cross(self.w, vector) + ((1.0 - c) * dot(self.w, vector)) * self.w

    def angle(
        self, start: Numbers, end: Numbers, otherwise: Numbers, size: float = 1.0
    ) -> tuple[FloatArray, np.ndarray]:
        """Return the angle that rotates `start` to `end`, and where it is arbitrary because both are along the axis.

        There the angle is `otherwise`.
        """
        start, end = (
            cross(self.w, start),
            cross(self.w, end),
        )  # both, so that large components along the axis do not cancel digits
        sine, cosine = dot(self.w, cross(start, end)), dot(start, end)
        free = np.hypot(sine, cosine) <= (FREE * size) ** 2
        return np.where(free, otherwise, np.arctan2(sine, cosine)), free

    def reversed(self) -> Screw:
        return Screw(-self.w, self.r, self.turns)


class Normal(NamedTuple):
    """The common normal of two axes: its feet, direction n, length, and the cosine and sine between the axes."""

    first: FloatArray
    second: FloatArray
    n: FloatArray
    length: float
    cosine: float
    sine: float


def common_normal(a: Screw, b: Screw, size: float) -> Normal:
    """Return the common normal of two axes; if they are parallel, its foot on the first is the point r."""
    cosine = float(dot(a.w, b.w).item())
    across = cross(a.w, b.w)
    sine = float(np.sqrt(dot(across, across)).item())
    way = b.r - a.r
    if sine <= EXACT:
        flat = way - dot(way, a.w) * a.w
        length = float(np.sqrt(dot(flat, flat)).item())
        n = flat / length if length > EXACT * size else np.zeros_like(flat)
        return Normal(a.r, a.r + flat, n, length, float(np.sign(cosine)), 0.0)
    n = across / sine
    length = float(dot(way, n).item())
    first = a.r + a.w * ((dot(way, a.w) - cosine * dot(way, b.w)) / sine**2)
    if abs(length) <= EXACT * size:
        return Normal(first, first, n, 0.0, cosine, sine)
    return Normal(first, first + length * n, n, length, cosine, sine)


def dot(a: Numbers, b: Numbers) -> FloatArray:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Numbers, b: Numbers) -> FloatArray:
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def norm(a: Numbers) -> FloatArray:
    return np.sqrt(dot(a, a))


def across(w: Numbers) -> FloatArray:
    """Return a unit vector perpendicular to w."""
    flat = w.reshape(3)
    normal = np.cross(flat, np.eye(3)[np.abs(flat).argmin()])
    return (normal / np.linalg.norm(normal)).reshape(3, 1, 1)


def root(a: Numbers, slack: Numbers) -> FloatArray:
    """Return square roots: 0 for arguments that are negative by at most `slack`, NaN below that."""
    return np.sqrt(np.where((a < 0.0) & (a > -slack), 0.0, a))


class Motion(NamedTuple):
    """Rigid motions G of N targets: rotation (3, 3, N, 1) and translation (3, N, 1)."""

    rotation: FloatArray
    translation: FloatArray

    def turned(self, vector: Numbers) -> FloatArray:
        r = self.rotation
        return r[:, 0] * vector[0] + r[:, 1] * vector[1] + r[:, 2] * vector[2]

    def turned_back(self, vector: Numbers) -> FloatArray:
        r = self.rotation
        return r[0] * vector[0] + r[1] * vector[1] + r[2] * vector[2]

    def moved(self, point: Numbers) -> FloatArray:
        return self.translation + self.turned(point)

    def inverse(self) -> Motion:
        return Motion(np.swapaxes(self.rotation, 0, 1), -self.turned_back(self.translation))


def both(value: Numbers, sign: Numbers | None = None) -> FloatArray:
    """Double the branches: value + sign, then value - sign; without a sign, every branch twice."""
    if sign is None:
        return np.concatenate([value, value], axis=-1)
    value, sign = np.broadcast_arrays(value, sign)
    return np.concatenate([value + sign, value - sign], axis=-1)


# ---- Functions of one joint coordinate u
#
# A revolute joint moves a point on a circle. Its coordinates, and products of them, are sums of powers z^-d to z^d of
# z = exp(iu). For a prismatic joint they are polynomials in u. Both multiply by convolution.


SLACK = 1e-6  # relative: zeros this close to real are tried; the pose that they give decides


class Series:
    """Coefficients (terms, N, 1) of powers of z (turning) or of u."""

    def __init__(self, terms: Numbers, turning: bool) -> None:
        self.terms, self.turning = np.asarray(terms), turning

    @property
    def degree(self) -> int:
        return (len(self.terms) - 1) // (2 if self.turning else 1)

    def cut(self, degree: int) -> Series:
        """Drop the terms above a degree, which are known to vanish, or pad with zeros up to it."""
        more = degree - self.degree
        if more >= 0:
            widths = [(more if self.turning else 0, more)] + [(0, 0)] * (self.terms.ndim - 1)
            return Series(np.pad(self.terms, widths), self.turning)
        return Series(self.terms[-more:more] if self.turning else self.terms[:more], self.turning)

    def __add__(self, other: Series | Numbers) -> Series:
        other = other if isinstance(other, Series) else Series(np.atleast_2d(other)[None], self.turning)
        degree = max(self.degree, other.degree)
        return Series(self.cut(degree).terms + other.cut(degree).terms, self.turning)

    def __mul__(self, other: Series | Numbers) -> Series:
        if not isinstance(other, Series):
            return Series(self.terms * other, self.turning)
        count = len(self.terms) + len(other.terms) - 1
        product: list[Numbers] = [0.0] * count
        for i, a in enumerate(self.terms):
            for k, b in enumerate(other.terms):
                product[i + k] = product[i + k] + a * b
        return Series(np.stack(np.broadcast_arrays(*product)), self.turning)

    def __sub__(self, other: Series | Numbers) -> Series:
        return self + other * -1.0

    def is_constant(self, size: float) -> bool:
        """Whether all coefficients but the constant one are at most `size`."""
        middle = self.degree if self.turning else 0
        return bool((np.abs(np.delete(self.terms, middle, axis=0)) <= size).all())

    def at(self, u: Numbers) -> FloatArray:
        """Return the values at u (N, K)."""
        if not self.turning:
            total: Numbers = self.terms[-1]
            for term in self.terms[-2::-1]:
                total = total * u + term
            return total
        middle = self.degree
        total = self.terms[middle].real
        for k in range(1, middle + 1):
            term = 2.0 * self.terms[middle + k]
            total = total + term.real * np.cos(k * u) - term.imag * np.sin(k * u)
        return total

    def zeros(self) -> FloatArray:
        """Return the real zeros (N, K), NaN in place of complex ones."""
        if self.turning:
            return self._angles() if self.degree == 1 else self._unit_roots()
        if self.degree == 1:
            return -self.terms[0] / self.terms[1]
        if self.degree == 2:
            c, b, a = self.terms
            # the root of larger magnitude first, the other from the product of the roots: no cancellation
            large = -0.5 * (b + np.copysign(root(b * b - 4.0 * a * c, SLACK * b * b), b))
            return np.concatenate(np.broadcast_arrays(large / a, c / large), axis=-1)
        roots: Numbers = _eigenvalues(self.terms)
        return np.where(np.abs(roots.imag) <= SLACK * (1.0 + np.abs(roots)), roots.real, np.nan)

    def _angles(self) -> FloatArray:
        """Solve a cos u + b sin u + c = 0."""
        a, b, c = 2.0 * self.terms[2].real, -2.0 * self.terms[2].imag, self.terms[1].real
        size = np.hypot(a, b)
        half = np.arctan2(root((size - c) * (size + c), SLACK * size * size), -c)
        middle, half = np.broadcast_arrays(np.arctan2(b, a), half)
        return np.concatenate([middle + half, middle - half], axis=-1)

    def _unit_roots(self) -> FloatArray:
        z = _eigenvalues(self.terms)
        return np.where(np.abs(np.log(np.abs(z))) <= SLACK, np.angle(z), np.nan)


class Track:
    """The path of a point, or of a vector with `direction`, as its joint moves: three Series."""

    def __init__(self, screw: Screw, point: FloatArray, direction: bool = False, back: bool = False) -> None:
        """back: the joint moves by -u."""
        self.turning = screw.turns
        if not screw.turns:
            self.parts = [
                Series(np.stack(np.broadcast_arrays(p, w)), False) for p, w in zip(point, screw.w, strict=True)
            ]
            return
        r = 0.0 if direction else screw.r
        along = dot(screw.w, point - r) * screw.w
        middle, a = r + along, point - r - along
        b = cross(screw.w, a) * (-1j if not back else 1j)
        self.parts = [
            Series(np.stack(np.broadcast_arrays(0.5 * (x - y), k + 0j, 0.5 * (x + y))), True)
            for k, x, y in zip(middle, a, b, strict=True)
        ]

    def along(self, w: Numbers, origin: Numbers = None) -> Series:
        """Return the component along w, relative to the origin."""
        total = self.parts[0] * w[0] + self.parts[1] * w[1] + self.parts[2] * w[2]
        return total if origin is None else total - dot(w, origin)

    def squared(self, origin: Numbers) -> Series:
        """Return the squared distance from a point, which has no second harmonic on a circle."""
        ways = [part - o for part, o in zip(self.parts, origin, strict=True)]
        total = ways[0] * ways[0] + ways[1] * ways[1] + ways[2] * ways[2]
        return total.cut(1) if self.turning else total


def _eigenvalues(terms: Numbers) -> np.ndarray:
    """Return the roots (N, K) of polynomials with coefficients (K + 1, N, 1), lowest order first."""
    terms = np.moveaxis(terms[..., 0], 0, -1)
    size = len(terms[0]) - 1
    largest = np.abs(terms).max(axis=1)
    tiny = np.abs(terms[:, -1]) < 1e-14 * largest  # a root at infinity becomes a very large one
    lead = np.where(tiny, 1e-14 * largest, terms[:, -1])
    companion = np.zeros((len(terms), size, size), terms.dtype)
    companion[:, range(1, size), range(size - 1)] = 1.0
    companion[:, :, -1] = -terms[:, :-1] / lead[:, None]
    good = np.isfinite(companion).all(axis=(1, 2))
    roots = np.full((len(terms), size), np.nan + 0j)
    if good.any():
        roots[good] = np.linalg.eigvals(companion[good])
    return roots


# ---- solvers

FLAT = "meet in a point, but the other three joints cannot move it out of a surface"


class Unsolvable(Exception):
    """The reason why a chain has no closed form, as the predicate of a sentence about three of its axes.

    off: distance (m or rad) of the axes from the required geometry; 0 if another condition fails.
    """

    def __init__(self, reason: str, off: float = 0.0) -> None:
        super().__init__(reason)
        self.off = off


class Place(NamedTuple):
    """Solutions of K branches: joint coordinates (3 or 6, N, K), and where (N, K) a coordinate is arbitrary."""

    q: FloatArray
    free: np.ndarray


Arm = Callable[[FloatArray, FloatArray], Place]  # of positions c (3, N, 1) and preferred coordinates (3, N, 1)


# ---- Three joints that move a point p to a position c: e1 e2 e3 p = c
#
# The coordinate u of the third joint is computed first: joint 1 must be able to move x = e2 e3 p to c. Two revolute
# joints lead to Pieper's quartic. It factors if their axes intersect or are parallel, or if axes 2 and 3 are parallel.


def arm_of(screws: tuple[Screw, Screw, Screw], point: FloatArray, size: float) -> Arm:
    """Return a function that solves e1 e2 e3 p = c.

    Raise Unsolvable if the three joints can only move p on a surface or a curve.
    """
    kinds = "".join("R" if screw.turns else "P" for screw in screws[:2])
    track = Track(screws[2], point)
    return {"RR": _two_turns, "RP": _turn_and_slide, "PR": _slide_and_turn, "PP": _two_slides}[kinds](
        *screws, track, point, size
    )


def _two_turns(first: Screw, second: Screw, third: Screw, track: Track, point: FloatArray, size: float) -> Arm:
    """x lies on the circle of c about axis 1 and on that of e3 p about axis 2.

    Relative to the feet of the common normal a n of the axes: x w1 = h, x w2 = L(u), 2 a x n = N(u), |x|^2 = |c|^2.
    """
    r1, r2, n, a, cosine, sine = common_normal(first, second, size)
    L, square = track.along(second.w, r2), track.squared(r2)
    parallel, level, meet = sine == 0.0, L.is_constant(EXACT * size), abs(a) <= EXACT * size
    steady = square.is_constant(EXACT * size * size)  # the distance from axis 2 does not depend on joint 3
    if (parallel and (level or meet)) or (steady and (level or meet)):
        raise Unsolvable(FLAT)

    def solve(c: FloatArray, near: FloatArray) -> Place:
        way = c - r1
        h, rho = dot(way, first.w), norm(cross(first.w, way))
        N = (square * -1.0) + (h * h + rho * rho + a * a)
        if parallel:
            u = (L - cosine * h).zeros()
            forward = N.at(u) / (2.0 * a)
            u, sideways = both(u), root((rho - forward) * (rho + forward), SLACK * size * size)
            x = r1 + h * first.w + both(forward) * n + cross(first.w, n) * both(0.0, sideways)
        else:
            if meet:
                u = N.zeros()
                g = _height(sine * rho, L.at(u) - cosine * h, sine, size)
                u, g = both(u), both(0.0, g)
            elif level:
                g = _height(sine * rho, L.at(0.0) - cosine * h, sine, size)
                u = np.concatenate([(N - 2.0 * a * g).zeros(), (N + 2.0 * a * g).zeros()], axis=-1)
                g = N.at(u) / (2.0 * a)
            else:
                off = L - cosine * h
                u = (N * N * sine**2 + off * off * (4.0 * a * a) - 4.0 * a * a * sine**2 * rho * rho).zeros()
                g = N.at(u) / (2.0 * a)
            l = L.at(u)  # noqa: E741
            x = r1 + ((h - cosine * l) * first.w + (l - cosine * h) * second.w) / sine**2 + g * n
        inner = third.moved(u, point)
        q2, free2 = second.angle(inner - r2, x - r2, near[1], size)
        # joint 1 last, from the actual wrist position, so that rounding of the square root enters only once
        q1, free1 = first.angle(second.moved(q2, inner) - r1, way, near[0], size)
        return Place(np.stack(np.broadcast_arrays(q1, q2, u)), free1 | free2)

    return solve


def _height(radius: FloatArray, off: FloatArray, sine: float, size: float) -> FloatArray:
    """Distance of x from the plane of the two axes."""
    return root((radius - off) * (radius + off), SLACK * size * size) / sine


def _turn_and_slide(first: Screw, second: Screw, third: Screw, track: Track, point: FloatArray, size: float) -> Arm:
    """x = e3 p + q2 w2 has the height along axis 1 and the distance from its foot that c has."""
    r1, w2, k = first.r, second.w, float(dot(first.w, second.w).item())
    height, level = track.along(first.w, r1), abs(k) <= EXACT
    if level and height.is_constant(EXACT * size):
        raise Unsolvable(FLAT)

    def solve(c: FloatArray, near: FloatArray) -> Place:
        way = c - r1
        h, square = dot(way, first.w), dot(way, way)
        if level:
            u = (height - h).zeros()
            start = third.moved(u, point) - r1
            middle = dot(start, w2)
            u, q2 = both(u), both(-middle, root(middle**2 - dot(start, start) + square, SLACK * size * size))
        else:
            slide = (height - h) * (-1.0 / k)
            x = [part - o + slide * w for part, o, w in zip(track.parts, r1, w2, strict=True)]
            u = (x[0] * x[0] + x[1] * x[1] + x[2] * x[2] - square).zeros()
            q2 = slide.at(u)
        x = third.moved(u, point) + q2 * w2 - r1
        q1, free = first.angle(x, way, near[0], size)
        return Place(np.stack(np.broadcast_arrays(q1, q2, u)), free | np.zeros_like(u, bool))

    return solve


def _slide_and_turn(first: Screw, second: Screw, third: Screw, track: Track, point: FloatArray, size: float) -> Arm:
    """x = c - q1 w1 has the height along axis 2 and the distance from its foot that e3 p has."""
    r2, w1, k = second.r, first.w, float(dot(first.w, second.w).item())
    height, square, level = track.along(second.w, r2), track.squared(r2), abs(k) <= EXACT
    if level and height.is_constant(EXACT * size):
        raise Unsolvable(FLAT)

    def solve(c: FloatArray, near: FloatArray) -> Place:
        way = c - r2
        h = dot(way, second.w)
        if level:
            u = (height - h).zeros()
            middle = dot(way, w1)
            rest = middle**2 - dot(way, way) + square.at(u)
            u, q1 = both(u), both(np.broadcast_to(middle, rest.shape), root(rest, SLACK * size * size))
        else:
            slide = (height - h) * (-1.0 / k)
            x = [slide * -w + o for o, w in zip(way, w1, strict=True)]
            u = (x[0] * x[0] + x[1] * x[1] + x[2] * x[2] - square).zeros()
            q1 = slide.at(u)
        q2, free = second.angle(third.moved(u, point) - r2, way - q1 * w1, near[1], size)
        return Place(np.stack(np.broadcast_arrays(q1, q2, u)), free)

    return solve


def _two_slides(first: Screw, second: Screw, third: Screw, track: Track, point: FloatArray, size: float) -> Arm:
    """c - e3 p lies in the plane of the two prismatic axes."""
    n = cross(first.w, second.w)
    across = track.along(n)
    if across.is_constant(EXACT * size):
        raise Unsolvable(FLAT)
    by_first, by_second = cross(second.w, n), cross(n, first.w)

    def solve(c: FloatArray, near: FloatArray) -> Place:
        u = (across - dot(c, n)).zeros()
        rest = c - third.moved(u, point)
        q1 = dot(rest, by_first) / dot(first.w, by_first)
        q2 = dot(rest, by_second) / dot(second.w, by_second)
        q = np.stack(np.broadcast_arrays(q1, q2, u))
        return Place(q, np.zeros(q.shape[1:], bool))

    return solve


# ---- Six joints whose last three axes intersect: first the position of the wrist center, then the rotation


class SphericalWrist:
    """Solver for a spherical wrist: e1 e2 e3 moves the wrist center as G does, e4 e5 e6 is the remaining rotation."""

    def __init__(self, screws: tuple[Screw, ...], size: float) -> None:
        centre, miss = meeting_point(screws[3:])
        if miss > EXACT * size:
            how = f"miss a common point by {miss:.2g} m" if miss < np.inf else "do not all belong to revolute joints"
            raise Unsolvable(how, miss)
        self.screws, self.centre = screws, centre
        self.bend = Bend(*screws[3:])
        self.arm = arm_of((screws[0], screws[1], screws[2]), centre, size)
        self.side = across(screws[5].w)

    def __call__(self, motion: Motion, near: FloatArray) -> Place:
        arm = self.arm(motion.moved(self.centre), near[:3])
        axis, side = motion.turned(self.screws[5].w), motion.turned(self.side)
        for screw, q in zip(self.screws[:3], arm.q, strict=True):
            axis, side = screw.turned(-q, axis), screw.turned(-q, side)
        fourth, _, sixth = self.screws[3:]
        q5, bent = self.bend(axis)
        axis, side = both(axis), both(side)
        q4, free = fourth.angle(bent, axis, near[3])
        q6, _ = sixth.angle(self.side, self.bend.middle.turned(-q5, fourth.turned(-q4, side)), near[5])
        # axes 4 and 6 coincide: share the rotation between them, so that both stay near their preferred values
        half = np.where(free, 0.5 * (q6 - near[5] - TURN * np.round((q6 - near[5]) / TURN)), 0.0)
        q4, q6 = q4 + half * np.sign(dot(fourth.w, axis)), q6 - half
        q1, q2, q3 = both(arm.q)
        return Place(np.stack(np.broadcast_arrays(q1, q2, q3, q4, q5, q6)), free | both(arm.free))


class Bend:
    """Angles of the middle one of three joints that bring the last axis to a given angle from the first."""

    def __init__(self, first: Screw, middle: Screw, last: Screw) -> None:
        self.first, self.middle, self.last = first, middle, last
        cosines = [float(dot(a.w, b.w).item()) for a, b in ((first, middle), (middle, last))]
        sines = [float(norm(cross(a.w, b.w)).item()) for a, b in ((first, middle), (middle, last))]
        if min(sines) <= EXACT:
            raise Unsolvable("qualify, but two neighbouring axes are parallel or identical")
        self.alpha, self.beta = (math.atan2(s, c) for s, c in zip(sines, cosines, strict=True))
        self.cosines = cosines[0] * cosines[1]
        b = float(dot(first.w, cross(middle.w, last.w)).item())
        self.zero = math.atan2(b, float(dot(first.w, last.w).item()) - self.cosines)

    def __call__(self, axis: FloatArray, first: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return both angles (N, 2 K) for last axes (3, N, K), and the last axis rotated by them."""
        w = self.first.w if first is None else first
        cosine = dot(w, axis)
        gamma = np.arctan2(norm(cross(w, axis)), cosine)
        a, b = self.alpha, self.beta
        # by Heron's formula for the sides of a spherical triangle: exact where the triangle is flat
        product = (
            4.0 * np.sin(0.5 * (a + b + gamma)) * np.sin(0.5 * (a + b - gamma))
            * np.sin(0.5 * (gamma + a - b)) * np.sin(0.5 * (gamma - a + b))
        )  # fmt: skip
        angle = both(self.zero, np.arctan2(root(product, SLACK), cosine - self.cosines))
        return angle, self.middle.turned(angle, self.last.w)


def meeting_point(screws: tuple[Screw, ...]) -> tuple[FloatArray, float]:
    """Return the point nearest to the axes and their largest distance from it (infinite for prismatic joints)."""
    if not all(screw.turns for screw in screws):
        return np.zeros((3, 1, 1)), np.inf
    flats = [np.eye(3) - np.outer(s.w, s.w) for s in screws]
    points = [s.r.reshape(3) for s in screws]
    total = np.sum(flats, axis=0)
    right = np.sum([flat @ point for flat, point in zip(flats, points, strict=True)], axis=0)
    centre = np.linalg.lstsq(total, right, rcond=1e-9)[0]
    miss = max(float(np.linalg.norm(flat @ (centre - point))) for flat, point in zip(flats, points, strict=True))
    return centre.reshape(3, 1, 1), miss


# ---- Six revolute joints with parallel axes w of joints 2, 3 and 4
#
# H = e2 e3 e4 = e1^-1 G e6^-1 e5^-1 moves points perpendicular to w. It leaves w and heights along w unchanged.


class ParallelAxes:
    """Solver for parallel axes of joints 2, 3 and 4."""

    def __init__(self, screws: tuple[Screw, ...], size: float) -> None:
        """The axis of the first joint may depend on the target (3, N, 1): see `__call__`."""
        off = max(float(norm(cross(screws[1].w, screw.w)).item()) for screw in screws[2:4])
        if not all(screw.turns for screw in screws):
            raise Unsolvable("do not qualify, because not all joints are revolute", np.inf)
        if off > EXACT:
            raise Unsolvable(f"are not parallel, by {off:.2g} rad", off)
        self.screws, self.size, self.w = screws, size, screws[1].w
        self.bend = Bend(screws[1], *screws[4:])
        self.normal = common_normal(screws[4], screws[5], size)
        self.side = across(self.w)
        self.elbow = self._flat(Track(screws[2], screws[3].r), screws[1].r)
        if self.elbow.is_constant(EXACT * size * size):
            raise Unsolvable("are parallel, but two of them coincide")

    def __call__(self, motion: Motion, near: FloatArray, first: Screw | None = None) -> Place:
        first = self.screws[0] if first is None else first
        second, third, fourth, fifth, sixth = self.screws[1:]
        q1, q5 = self._outer(first, motion)
        y = first.turned(q1, self.w)
        inward = fifth.turned(-q5, self.w)
        q6, free = sixth.angle(motion.turned_back(y), inward, near[5])  # e6 R^T e1 w = e5^-1 w
        place = first.moved(-q1, motion.moved(sixth.moved(-q6, fifth.moved(-q5, fourth.r))))  # H r4
        turned = first.turned(-q1, motion.turned(sixth.turned(-q6, fifth.turned(-q5, self.side))))
        total, _ = second.angle(self.side, turned, 0.0)
        way = place - second.r
        flat = way - dot(way, self.w) * self.w
        q3 = (self.elbow - dot(flat, flat)).zeros()
        q1, q5, q6, total, free, flat = (both(x) for x in (q1, q5, q6, total, free, flat))
        q2, folded = second.angle(third.moved(q3, fourth.r) - second.r, flat, near[1], self.size)
        signs = [float(np.sign(dot(self.w, screw.w)).item()) for screw in (third, fourth)]
        q4 = signs[1] * (total - q2 - signs[0] * q3)
        return Place(np.stack([q1, q2, q3, q4, q5, q6]), free | folded)

    def _outer(self, first: Screw, motion: Motion) -> tuple[FloatArray, FloatArray]:
        """Solve for joints 1 and 5, from two equations that are linear in the cosine and sine of both.

        With y = e1 w, v = e5^-1 w and points r5, r6 of their axes:  y (G r6 - r1) + v (r5 - r6) = w (r5 - r1), since H
        preserves heights along w, and  y R w6 = v w6, since it preserves w.
        """
        fifth, sixth = self.screws[4:]
        r5, r6, n, a, _, _ = self.normal
        y = Track(first, self.w, direction=True)
        reach = y.along(motion.moved(r6) - first.r) - dot(self.w, r5 - first.r)
        if a == 0.0:
            q1 = reach.zeros()
            q5, _ = self.bend(motion.turned(sixth.w), first.turned(q1, self.w))
            return both(q1), q5
        aim = y.along(motion.turned(sixth.w))
        middle = dot(fifth.w, self.w) * fifth.w
        c = self.w - middle
        s = -cross(fifth.w, c)
        m = np.array([[dot(x, z).item() for x in (c, s)] for z in (-a * n, sixth.w)])
        right = reach * -1.0, aim - dot(middle, sixth.w)
        inverse = np.linalg.inv(m)
        cosine, sine = (right[0] * row[0] + right[1] * row[1] for row in inverse)
        q1 = (cosine * cosine + sine * sine - 1.0).zeros()
        return q1, np.arctan2(sine.at(q1), cosine.at(q1))

    def _flat(self, track: Track, origin: FloatArray) -> Series:
        """Squared distance from the axis along w."""
        height = track.along(self.w, origin)
        return (track.squared(origin) - height * height).cut(1)


class CyclicParallelAxes(ParallelAxes):
    """The first three axes are parallel. Joint 6 is moved to the front: (G e6 G^-1) e1 ... e5 = G."""

    def __init__(self, screws: tuple[Screw, ...], size: float) -> None:
        super().__init__((screws[5], *screws[:5]), size)

    def __call__(self, motion: Motion, near: FloatArray, first: Screw | None = None) -> Place:
        last = self.screws[0]
        moved = Screw(motion.turned(last.w), motion.moved(last.r), True)
        place = super().__call__(motion, np.roll(near, 1, axis=0), moved)
        return Place(np.roll(place.q, -1, axis=0), place.free)


# ---- Recognition

Solver = Callable[[Motion, FloatArray], Place]


class Backward:
    """Solver for the chain seen from its other end: e6^-1 ... e1^-1 = G^-1."""

    def __init__(self, solver: Callable[..., Solver], screws: tuple[Screw, ...], size: float) -> None:
        self.solver = solver(tuple(screw.reversed() for screw in screws[::-1]), size)

    def __call__(self, motion: Motion, near: FloatArray) -> Place:
        place = self.solver(motion.inverse(), near[::-1])
        return Place(place.q[::-1], place.free)


FORMS: tuple[tuple[str, str, Callable[..., Solver]], ...] = (
    ("spherical wrist", "4, 5 and 6", SphericalWrist),
    ("spherical wrist at the base", "1, 2 and 3", partial(Backward, SphericalWrist)),
    ("parallel axes", "2, 3 and 4", ParallelAxes),
    ("parallel axes", "3, 4 and 5", partial(Backward, ParallelAxes)),
    ("parallel axes", "1, 2 and 3", CyclicParallelAxes),
    ("parallel axes", "4, 5 and 6", partial(Backward, CyclicParallelAxes)),
)


def recognised(screws: tuple[Screw, ...]) -> tuple[str, Solver]:
    """Return the name of the closed form of a chain and its solver; raise Unsolvable with the reason otherwise."""
    points = np.stack([screw.r.reshape(3) for screw in screws])
    size = float(np.ptp(points, axis=0).max()) or 1.0
    nearest: dict[bool, tuple[float, str]] = {}  # by kind of closed form: the axes that nearly qualify
    for name, joints, form in FORMS:
        try:
            return f"{name}: joints {joints}", form(screws, size)
        except Unsolvable as reason:
            sort = name == "parallel axes"
            if sort not in nearest or reason.off < nearest[sort][0]:
                nearest[sort] = reason.off, f"the axes of joints {joints} {reason}"
    raise Unsolvable(", and ".join(text for _, text in nearest.values()))
