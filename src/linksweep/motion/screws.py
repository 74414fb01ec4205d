"""Joints as screws in the base frame: their action on points, and the zeros of functions of one joint coordinate.

Components come first: vectors are (3, N, K) for K branches of N targets, or (3, 1, 1) for constants of the robot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .trajectories import FloatArray

Numbers = Any  # a float or an array, as NumPy takes either
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
    found = np.cross(flat, np.eye(3)[np.abs(flat).argmin()])
    return (found / np.linalg.norm(found)).reshape(3, 1, 1)


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
    found = np.full((len(terms), size), np.nan + 0j)
    if good.any():
        found[good] = np.linalg.eigvals(companion[good])
    return found
