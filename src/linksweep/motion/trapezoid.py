"""Trapezoidal velocity profiles: as fast as the limits allow, along straight lines between points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError

from .base import FloatArray, JointMotion, Motion, finite, points_of, positive


class Trapezoid(Motion):
    """A motion through k points (k, n), at rest at every point, with constant acceleration, speed and deceleration.

    velocity, acceleration: limits above 0, one number or one per joint (n,). The joints start and stop together: in
    each piece the one that needs longest runs at its limits and the others keep its pace. A piece too short to reach
    full speed is a triangle. start: the time at the first point; `times` (k,) are those at the points.
    At an instant where the acceleration jumps it is the one after it, at the end the one before.
    """

    def __init__(self, points: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike, start: float = 0.0) -> None:
        self.points = points_of(self, points, 2)
        self.width = self.points.shape[1]
        speed = positive(self, "velocity", velocity, self.width)
        push = positive(self, "acceleration", acceleration, self.width)
        travel = np.diff(self.points, axis=0)
        if not travel.any(axis=1).all():
            raise ArgumentError("Trapezoid got the same point twice in a row, expected a way to go: remove repeats.")
        with np.errstate(divide="ignore"):
            # of the fraction of the way: the joint with the least room decides
            self._acceleration = (push / np.abs(travel)).min(axis=1)
            self._speed = np.minimum((speed / np.abs(travel)).min(axis=1), np.sqrt(self._acceleration))
        self._ramp = self._speed / self._acceleration
        self._span = 1.0 / self._speed + self._ramp
        begin = finite(self, "start", start)
        if begin.shape != ():
            raise ArgumentError(f"Trapezoid got start of shape {begin.shape}, expected one number.")
        self.times = begin + np.concatenate([[0.0], np.cumsum(self._span)])
        self.times.flags.writeable = False
        self.start, self.end = float(self.times[0]), float(self.times[-1])

    def _at(self, t: FloatArray) -> JointMotion:
        piece = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self._span) - 1)
        acceleration, speed, ramp, span = (x[piece] for x in (self._acceleration, self._speed, self._ramp, self._span))
        since = np.clip(t - self.times[piece], 0.0, span)
        left = np.clip(self.times[piece + 1] - t, 0.0, span)
        near = np.minimum(since, left)  # the profile is symmetric
        ramping = near < ramp
        gone = np.where(ramping, 0.5 * acceleration * near**2, speed * (near - 0.5 * ramp))
        rate = np.where(ramping, acceleration * near, speed)
        bend = np.where(since < ramp, acceleration, np.where(left <= ramp, -acceleration, 0.0))
        start, end = self.points[piece], self.points[piece + 1]
        travel = end - start
        q = np.where((since <= left)[..., None], start + travel * gone[..., None], end - travel * gone[..., None])
        return JointMotion(q, travel * rate[..., None], travel * bend[..., None])
