"""What every joint motion shares: its result, its times, and the checks of what users pass."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linksweep.errors import ArgumentError
from linksweep.support.foreign import refuse_foreign

FloatArray = NDArray[np.float64]
SHORTEST = 1e-12  # seconds between two points


class JointMotion(NamedTuple):
    """Joint positions, velocities and accelerations, each of shape (..., n)."""

    q: FloatArray
    qd: FloatArray
    qdd: FloatArray


class Motion:
    """A motion of n coordinates from `start` to `end`: motion(t) gives q, qd and qdd at times t of any shape.

    Before `start` and after `end` a motion that is at rest there holds its end points; one that is not refuses such
    times (`holds` is False).
    """

    start: float
    end: float
    width: int
    holds: bool = True

    @property
    def duration(self) -> float:
        """Time from the start to the end."""
        return self.end - self.start

    def __call__(self, t: ArrayLike) -> JointMotion:
        """The motion at times t of any shape (...); results have shape (..., n)."""
        t = finite(self, "t", t)
        inside = np.clip(t, self.start, self.end)
        outside = inside != t
        motion = self._at(inside)
        if not outside.any():
            return motion
        if not self.holds:
            raise ArgumentError(
                f"{type(self).__name__} got t from {t.min():g} to {t.max():g}, expected times from {self.start:g} to "
                f"{self.end:g}: it is not at rest at its ends, so it cannot be held outside."
            )
        still = ~outside[..., None]
        return JointMotion(motion.q, motion.qd * still, motion.qdd * still)

    def _at(self, t: FloatArray) -> JointMotion:
        """The motion at times within the start and the end."""
        raise NotImplementedError


class PointMotion(Motion):
    """A motion through k points (k, n) at k increasing times (k,)."""

    fewest = 2

    def __init__(self, points: ArrayLike, times: ArrayLike) -> None:
        self.points = points_of(self, points, self.fewest)
        self.times = finite(self, "times", times)
        name = type(self).__name__
        if self.times.shape != (len(self.points),):
            raise ArgumentError(
                f"{name} got times of shape {self.times.shape} for {len(self.points)} points, expected "
                f"({len(self.points)},): give one time per point."
            )
        if not np.all(np.diff(self.times) > 0.0):
            raise ArgumentError(
                f"{name} got times {_short(self.times)}, expected each to be later than the one before: "
                "sort them and remove repeats."
            )
        if np.diff(self.times).min() < SHORTEST:
            raise ArgumentError(
                f"{name} got times that are {np.diff(self.times).min():g} s apart, expected at least {SHORTEST:g}: "
                "velocities and accelerations would overflow."
            )
        self.times.flags.writeable = False
        self.start, self.end = float(self.times[0]), float(self.times[-1])
        self.width = self.points.shape[1]


class RestToRest(PointMotion):
    """Straight pieces between the points, each with the same law of time, at rest at every point."""

    def _at(self, t: FloatArray) -> JointMotion:
        piece = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.times) - 2)
        span = (self.times[piece + 1] - self.times[piece])[..., None]
        start, end = self.points[piece], self.points[piece + 1]
        # u runs from 0 to 1 over the piece; w = 1 - u is taken from the far end, so that both ends are exact.
        u = np.clip((t - self.times[piece])[..., None] / span, 0.0, 1.0)
        w = np.clip((self.times[piece + 1] - t)[..., None] / span, 0.0, 1.0)
        travel = end - start
        q = np.where(u <= w, start + travel * self._way(u), end - travel * self._way(w))
        return JointMotion(q, travel / span * self._rate(u, w), travel / span**2 * self._bend(u, w))

    def _way(self, u: FloatArray) -> FloatArray:
        """The fraction of the way, wanted for u up to 1/2 only: the law is symmetric."""
        raise NotImplementedError

    def _rate(self, u: FloatArray, w: FloatArray) -> FloatArray:
        """Its first derivative by u, where w = 1 - u."""
        raise NotImplementedError

    def _bend(self, u: FloatArray, w: FloatArray) -> FloatArray:
        """Its second derivative by u."""
        raise NotImplementedError


def points_of(owner: object, points: ArrayLike, fewest: int) -> FloatArray:
    """Points (k, n) with k >= fewest, copied and frozen."""
    array = finite(owner, "points", points)
    if array.ndim != 2 or len(array) < fewest or array.shape[1] == 0:
        raise ArgumentError(
            f"{type(owner).__name__} got points of shape {array.shape}, expected (k, n) with k >= {fewest}: "
            "give one row of n joint positions per point."
        )
    array.flags.writeable = False
    return array


def finite(owner: object, name: str, value: ArrayLike) -> FloatArray:
    """A float64 copy of `value`; refuses what is not real numbers or not finite."""
    who = owner if isinstance(owner, str) else type(owner).__name__
    refuse_foreign(f"{who}: {name}", value)
    try:
        array = np.asarray(value)
    except ValueError as ragged:
        raise ArgumentError(
            f"{who} got {name} whose rows differ in length, expected a rectangular array of real numbers: "
            "give every row the same length."
        ) from ragged
    if array.dtype.kind not in "iuf":
        raise ArgumentError(
            f"{who} got {name} of type {array.dtype}, expected real numbers: convert them to float first."
        )
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ArgumentError(f"{who} got {name} with NaN or infinity, expected finite numbers: remove them.")
    return array


def positive(owner: object, name: str, value: ArrayLike, width: int | None = None) -> FloatArray:
    """Positive finite numbers: one, or `width` of them, one per joint."""
    array = finite(owner, name, value)
    shapes = ((),) if width is None else ((), (width,))
    if array.shape not in shapes:
        wanted = "one number" if width is None else f"one number or {width}, one per joint"
        raise ArgumentError(f"{type(owner).__name__} got {name} of shape {array.shape}, expected {wanted}.")
    if not (array > 0.0).all():
        raise ArgumentError(
            f"{type(owner).__name__} got {name} {_short(array)}, expected it to be above 0: give a positive limit."
            if width is not None
            else f"{type(owner).__name__} got {name} {float(array):g}, expected it to be above 0."
        )
    return array


def _short(array: FloatArray) -> str:
    text = str(array.tolist())
    return text if len(text) <= 80 else text[:77] + "..."
