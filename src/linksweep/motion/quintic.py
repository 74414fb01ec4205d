"""Quintic joint motions: fifth-order polynomials from rest to rest, as in Kozłowski 1990, section 5."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linksweep.errors import ArgumentError

FloatArray = NDArray[np.float64]


class JointMotion(NamedTuple):
    """Joint positions, velocities and accelerations, each of shape (..., n)."""

    q: FloatArray
    qd: FloatArray
    qdd: FloatArray


class Quintic:
    """A motion through k points (k, n) at k increasing times (k,), at rest at every point.

    Between two points every joint follows the one fifth-order polynomial whose velocity and acceleration are
    zero at both ends, so at a point in between the robot stops. Before the first time and after the last the
    motion holds its end points.

    >>> path = Quintic([[0.0, 0.0], [1.0, -2.0]], [0.0, 4.0])
    >>> path(2.0).q
    array([ 0.5, -1. ])
    """

    def __init__(self, points: ArrayLike, times: ArrayLike) -> None:
        self.points = _finite("points", points)
        self.times = _finite("times", times)
        if self.points.ndim != 2 or len(self.points) < 2:
            raise ArgumentError(
                f"Quintic got points of shape {self.points.shape}, expected (k, n) with k >= 2: "
                "give one row of n joint positions per point."
            )
        if self.times.shape != (len(self.points),):
            raise ArgumentError(
                f"Quintic got times of shape {self.times.shape} for {len(self.points)} points, expected "
                f"({len(self.points)},): give one time per point."
            )
        if not np.all(np.diff(self.times) > 0.0):
            raise ArgumentError(
                f"Quintic got times {self.times.tolist()}, expected each to be later than the one before: "
                "sort them and remove repeats."
            )
        self.points.flags.writeable = False
        self.times.flags.writeable = False

    @property
    def duration(self) -> float:
        """Time from the first point to the last."""
        return float(self.times[-1] - self.times[0])

    def __call__(self, t: ArrayLike) -> JointMotion:
        """The motion at times t of any shape (...); results have shape (..., n)."""
        t = _finite("t", t)
        piece = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.times) - 2)
        span = (self.times[piece + 1] - self.times[piece])[..., None]
        start, end = self.points[piece], self.points[piece + 1]
        # u runs from 0 to 1 over the piece; w = 1 - u is taken from the far end, so that both ends are exact.
        u = np.clip((t - self.times[piece])[..., None] / span, 0.0, 1.0)
        w = np.clip((self.times[piece + 1] - t)[..., None] / span, 0.0, 1.0)
        travel = end - start
        q = np.where(u <= w, start + travel * _blend(u), end - travel * _blend(w))
        qd = travel / span * (30.0 * (u * w) ** 2)
        qdd = travel / span**2 * (60.0 * u * w * (w - u))
        return JointMotion(q, qd, qdd)


def _blend(u: FloatArray) -> FloatArray:
    """10u³ − 15u⁴ + 6u⁵: the fraction of the way, with zero slope and curvature at 0 and 1."""
    return u**3 * (10.0 + u * (6.0 * u - 15.0))


def _finite(name: str, value: Any) -> FloatArray:
    """A float64 copy of `value`; refuses what is not real numbers or not finite."""
    try:
        array = np.asarray(value)
    except ValueError as ragged:
        raise ArgumentError(
            f"Quintic got {name} whose rows differ in length, expected a rectangular array of real numbers: "
            "give every row the same number of joints."
        ) from ragged
    if array.dtype.kind not in "iuf":
        raise ArgumentError(
            f"Quintic got {name} of type {array.dtype}, expected real numbers: convert them to float first."
        )
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ArgumentError(f"Quintic got {name} with NaN or infinity, expected finite numbers: remove them.")
    return array
