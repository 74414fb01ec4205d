"""Quintic joint motions: fifth-order polynomials from rest to rest, as in Kozłowski 1990, section 5."""

from __future__ import annotations

from .base import FloatArray, JointMotion, RestToRest

__all__ = ["FloatArray", "JointMotion", "Quintic"]


class Quintic(RestToRest):
    """A motion through k points (k, n) at k increasing times (k,), at rest at every point.

    Between two points every joint follows the one fifth-order polynomial whose velocity and acceleration are
    zero at both ends, so at a point in between the robot stops. Before the first time and after the last the
    motion holds its end points.

    >>> path = Quintic([[0.0, 0.0], [1.0, -2.0]], [0.0, 4.0])
    >>> path(2.0).q
    array([ 0.5, -1. ])
    """

    def _way(self, u: FloatArray) -> FloatArray:
        return u**3 * (10.0 + u * (6.0 * u - 15.0))

    def _rate(self, u: FloatArray, w: FloatArray) -> FloatArray:
        return 30.0 * (u * w) ** 2

    def _bend(self, u: FloatArray, w: FloatArray) -> FloatArray:
        return 60.0 * u * w * (w - u)
