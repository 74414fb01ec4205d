"""The normal spline: a cubic spline from 0 to 1 with zero velocity and acceleration at both ends."""

from __future__ import annotations

import numpy as np

from .base import FloatArray, RestToRest


class NormalSpline(RestToRest):
    """A motion through k points (k, n) at k increasing times (k,), each piece a normal spline, at rest at every point.

    Angeles, Ma & Rojas (1988, section 7.2) say of their "normal spline" that its velocities and accelerations are
    zero at both ends. A cubic spline from 0 to 1 with these six conditions has at least three pieces; with three
    equal ones it is unique: its acceleration is piecewise linear, 0, 9, -9, 0 at 0, 1/3, 2/3, 1.
    """

    KNOTS = (1.0 / 3.0, 2.0 / 3.0)  # of a piece's time: where its acceleration has its peaks, and a corner

    def _way(self, u: FloatArray) -> FloatArray:
        first = 4.5 * u**3
        middle = 0.5 + (u - 0.5) * (2.25 - 9.0 * (u - 0.5) ** 2)
        return np.where(u <= 1.0 / 3.0, first, middle)

    def _rate(self, u: FloatArray, w: FloatArray) -> FloatArray:
        near = np.minimum(u, w)
        return np.where(near <= 1.0 / 3.0, 13.5 * near**2, 2.25 - 27.0 * (0.5 - near) ** 2)

    def _bend(self, u: FloatArray, w: FloatArray) -> FloatArray:
        near = np.minimum(u, w)
        return np.sign(w - u) * np.where(near <= 1.0 / 3.0, 27.0 * near, 27.0 * (1.0 - 2.0 * near))
