"""Functions of one joint's coordinate u, and their zeros.

A point that a revolute joint carries goes round a circle, so that what is asked of it is a sum of powers of
z = exp(iu), z^-d to z^d; of a prismatic joint it is a polynomial in u. Both multiply by convolution.
"""

from __future__ import annotations

import numpy as np

from ..base import FloatArray
from .screws import Numbers, Screw, cross, dot, root

SLACK = 1e-6  # relative: zeros that are this near to being real are looked at; the pose that they give decides


class Series:
    """Coefficients (terms, N, 1) of powers of z (turning) or of u."""

    def __init__(self, terms: Numbers, turning: bool) -> None:
        self.terms, self.turning = np.asarray(terms), turning

    @property
    def degree(self) -> int:
        return (len(self.terms) - 1) // (2 if self.turning else 1)

    def cut(self, degree: int) -> Series:
        """Without the terms above a degree, which are known to vanish; or with zeros for them."""
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
        """Whether nothing of it moves by more than `size`."""
        middle = self.degree if self.turning else 0
        return bool((np.abs(np.delete(self.terms, middle, axis=0)) <= size).all())

    def at(self, u: Numbers) -> FloatArray:
        """Its values at u (N, K)."""
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
        """Where it vanishes (N, K); NaN for the zeros that are not real."""
        if self.turning:
            return self._angles() if self.degree == 1 else self._unit_roots()
        if self.degree == 1:
            return -self.terms[0] / self.terms[1]
        if self.degree == 2:
            c, b, a = self.terms
            # the two with the larger sum first, the other from their product: nothing cancels
            large = -0.5 * (b + np.copysign(root(b * b - 4.0 * a * c, SLACK * b * b), b))
            return np.concatenate(np.broadcast_arrays(large / a, c / large), axis=-1)
        roots: Numbers = _eigenvalues(self.terms)
        return np.where(np.abs(roots.imag) <= SLACK * (1.0 + np.abs(roots)), roots.real, np.nan)

    def _angles(self) -> FloatArray:
        """a cos u + b sin u + c = 0."""
        a, b, c = 2.0 * self.terms[2].real, -2.0 * self.terms[2].imag, self.terms[1].real
        size = np.hypot(a, b)
        half = np.arctan2(root((size - c) * (size + c), SLACK * size * size), -c)
        middle, half = np.broadcast_arrays(np.arctan2(b, a), half)
        return np.concatenate([middle + half, middle - half], axis=-1)

    def _unit_roots(self) -> FloatArray:
        z = _eigenvalues(self.terms)
        return np.where(np.abs(np.log(np.abs(z))) <= SLACK, np.angle(z), np.nan)


class Track:
    """Where a joint takes a point or, with `direction`, a vector: three Series."""

    def __init__(self, screw: Screw, point: FloatArray, direction: bool = False, back: bool = False) -> None:
        """back: as the joint goes by -u."""
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
        """The component along w of the way from the origin."""
        total = self.parts[0] * w[0] + self.parts[1] * w[1] + self.parts[2] * w[2]
        return total if origin is None else total - dot(w, origin)

    def squared(self, origin: Numbers) -> Series:
        """The squared distance from a point: a circle's has no second harmonic."""
        ways = [part - o for part, o in zip(self.parts, origin, strict=True)]
        total = ways[0] * ways[0] + ways[1] * ways[1] + ways[2] * ways[2]
        return total.cut(1) if self.turning else total


def _eigenvalues(terms: Numbers) -> np.ndarray:
    """The roots (N, K) of polynomials with coefficients (K + 1, N, 1), lowest first."""
    terms = np.moveaxis(terms[..., 0], 0, -1)
    size = len(terms[0]) - 1
    largest = np.abs(terms).max(axis=1)
    tiny = np.abs(terms[:, -1]) < 1e-14 * largest  # a root at infinity: it may as well be far away
    lead = np.where(tiny, 1e-14 * largest, terms[:, -1])
    companion = np.zeros((len(terms), size, size), terms.dtype)
    companion[:, range(1, size), range(size - 1)] = 1.0
    companion[:, :, -1] = -terms[:, :-1] / lead[:, None]
    good = np.isfinite(companion).all(axis=(1, 2))
    found = np.full((len(terms), size), np.nan + 0j)
    if good.any():
        found[good] = np.linalg.eigvals(companion[good])
    return found
