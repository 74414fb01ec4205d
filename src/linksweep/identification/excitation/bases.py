"""Motions that are linear in their coefficients: finite Fourier series and splines, at rest at both ends.

q(t) = Phi(t) C with C (basis, n). Fourier: a constant and `harmonics` multiples of the base frequency 1 / duration (J.
Swevers, C. Ganseman, D. B. Tuekel, J. de Schutter, H. Van Brussel, "Optimal robot excitation and identification",
1997), combined so that velocity and acceleration vanish at the start and, the series being periodic, at the end.
Splines: quintic B-splines on even knots whose first three and last three coefficients are equal, which is rest.
"""

from __future__ import annotations

import numpy as np

from linksweep.motion.base import FloatArray, JointMotion, Motion

KINDS = ("fourier", "spline")


class Basis:
    """Phi and its first two derivatives at times t (rows,): three arrays (rows, size)."""

    size: int
    duration: float

    def __call__(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        raise NotImplementedError

    @property
    def ripples(self) -> int:
        """How many times the quickest function goes up and down."""
        raise NotImplementedError


class FourierBasis(Basis):
    """1, and combinations of sin(l w t), cos(l w t) for l up to `harmonics` that are at rest at t = 0."""

    def __init__(self, harmonics: int, duration: float) -> None:
        self.harmonics, self.duration = harmonics, duration
        l = np.arange(1, harmonics + 1)  # noqa: E741  (Swevers's index)
        self.pace = 2.0 * np.pi / duration * l
        # columns of sines, then cosines, in units of velocity: sin(l w t) / (l w), cos(l w t) / (l w)
        moving = np.concatenate([np.ones(harmonics), np.zeros(harmonics)])  # velocity at 0
        bending = np.concatenate([np.zeros(harmonics), self.pace])  # acceleration at 0, with its sign turned
        self.still = _null_space(np.stack([moving, bending / np.linalg.norm(bending)]))
        self.size = 1 + self.still.shape[1]

    @property
    def ripples(self) -> int:
        return self.harmonics

    def __call__(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        angle = t[:, None] * self.pace
        s, c = np.sin(angle), np.cos(angle)
        zero = np.zeros((len(t), 1))
        parts = ((s / self.pace, c / self.pace), (c, -s), (-s * self.pace, -c * self.pace))
        q, qd, qdd = (
            np.concatenate([constant, np.concatenate(pair, axis=1) @ self.still], axis=1)
            for constant, pair in zip((zero + 1.0, zero, zero), parts, strict=True)
        )
        return q, qd, qdd


class SplineBasis(Basis):
    """Quintic B-splines on `pieces` even pieces, at rest at both ends."""

    DEGREE = 5

    def __init__(self, pieces: int, duration: float) -> None:
        from scipy.interpolate import BSpline

        self.pieces, self.duration = pieces, duration
        knots = np.concatenate([[0.0] * self.DEGREE, np.linspace(0.0, duration, pieces + 1), [duration] * self.DEGREE])
        count = pieces + self.DEGREE
        own = np.zeros((count, count - 4))  # the first three coefficients are one, the last three another
        own[range(count), np.clip(np.arange(count) - 2, 0, count - 5)] = 1.0
        self.size = own.shape[1]
        spline = BSpline(knots, own, self.DEGREE)
        self._pieces = spline, spline.derivative(1), spline.derivative(2)

    @property
    def ripples(self) -> int:
        return self.pieces

    def __call__(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        q, qd, qdd = (piece(t) for piece in self._pieces)
        return q, qd, qdd


def basis_of(kind: str, harmonics: int, duration: float) -> Basis:
    return FourierBasis(harmonics, duration) if kind == "fourier" else SplineBasis(4 * harmonics, duration)


class BasisMotion(Motion):
    """The motion Phi(t) C; before its start and after its end it stands."""

    def __init__(self, basis: Basis, coefficients: FloatArray) -> None:
        self.basis, self.coefficients = basis, coefficients
        self.start, self.end, self.width = 0.0, basis.duration, coefficients.shape[1]

    def _at(self, t: FloatArray) -> JointMotion:
        found = (phi @ self.coefficients for phi in self.basis(t.ravel()))
        return JointMotion(*(x.reshape(*t.shape, self.width) for x in found))


def _null_space(rows: FloatArray) -> FloatArray:
    """Orthonormal columns across the rows, the same on every machine but for rounding."""
    _, _, right = np.linalg.svd(rows)
    return right[len(rows) :].T
