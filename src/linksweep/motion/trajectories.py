"""Joint trajectories q(t), qd(t), qdd(t): quintic, normal spline, cycloid, trapezoidal velocity and splines."""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linksweep.errors import ArgumentError
from linksweep.support.checks import refuse_foreign

FloatArray = NDArray[np.float64]
SHORTEST = 1e-12  # s between two points


class JointMotion(NamedTuple):
    """Joint positions, velocities and accelerations, each of shape (..., n)."""

    q: FloatArray
    qd: FloatArray
    qdd: FloatArray


class Motion:
    """A trajectory of n coordinates from time `start` to `end`: motion(t) returns q, qd and qdd at times t.

    A trajectory that is at rest at its ends holds its end points before `start` and after `end`. Otherwise `holds` is
    False and such times raise `ArgumentError`.
    """

    start: float
    end: float
    width: int
    holds: bool = True

    @property
    def duration(self) -> float:
        """Time from start to end (s)."""
        return self.end - self.start

    def __call__(self, t: ArrayLike) -> JointMotion:
        """Evaluate the trajectory at times t of any shape (...); results have shape (..., n)."""
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
        """Evaluate the trajectory at times between start and end."""
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
            raise ArgumentError(f"{name} got times {_short(self.times)}, expected strictly increasing times.")
        if np.diff(self.times).min() < SHORTEST:
            raise ArgumentError(
                f"{name} got times that are {np.diff(self.times).min():g} s apart, expected at least {SHORTEST:g}: "
                "velocities and accelerations would overflow."
            )
        self.times.flags.writeable = False
        self.start, self.end = float(self.times[0]), float(self.times[-1])
        self.width = self.points.shape[1]


class RestToRest(PointMotion):
    """Straight segments between the points with one time scaling for all, at rest at every point."""

    def _at(self, t: FloatArray) -> JointMotion:
        piece = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.times) - 2)
        span = (self.times[piece + 1] - self.times[piece])[..., None]
        start, end = self.points[piece], self.points[piece + 1]
        # u runs from 0 to 1 over the segment; w = 1 - u is computed from the far end, so that both ends are exact
        u = np.clip((t - self.times[piece])[..., None] / span, 0.0, 1.0)
        w = np.clip((self.times[piece + 1] - t)[..., None] / span, 0.0, 1.0)
        travel = end - start
        q = np.where(u <= w, start + travel * self._scaling(u), end - travel * self._scaling(w))
        return JointMotion(q, travel / span * self._first(u, w), travel / span**2 * self._second(u, w))

    def _scaling(self, u: FloatArray) -> FloatArray:
        """Fraction of the distance covered at u <= 1/2; the time scaling is symmetric."""
        raise NotImplementedError

    def _first(self, u: FloatArray, w: FloatArray) -> FloatArray:
        """First derivative of the time scaling with respect to u, where w = 1 - u."""
        raise NotImplementedError

    def _second(self, u: FloatArray, w: FloatArray) -> FloatArray:
        """Second derivative of the time scaling with respect to u."""
        raise NotImplementedError


def points_of(owner: object, points: ArrayLike, fewest: int) -> FloatArray:
    """Return points (k, n), k >= fewest, as a read-only copy."""
    array = finite(owner, "points", points)
    if array.ndim != 2 or len(array) < fewest or array.shape[1] == 0:
        raise ArgumentError(
            f"{type(owner).__name__} got points of shape {array.shape}, expected (k, n) with k >= {fewest}, "
            "one row of n joint positions per point."
        )
    array.flags.writeable = False
    return array


def finite(owner: object, name: str, value: ArrayLike) -> FloatArray:
    """Return a float64 copy of `value`; raise ArgumentError unless it holds finite real numbers."""
    who = owner if isinstance(owner, str) else type(owner).__name__
    refuse_foreign(f"{who}: {name}", value)
    try:
        array = np.asarray(value)
    except ValueError as ragged:
        raise ArgumentError(
            f"{who} got {name} whose rows differ in length, expected a rectangular array of real numbers."
        ) from ragged
    if array.dtype.kind not in "iuf":
        raise ArgumentError(f"{who} got {name} of type {array.dtype}, expected real numbers.")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise ArgumentError(f"{who} got {name} with NaN or infinity, expected finite numbers.")
    return array


def positive(owner: object, name: str, value: ArrayLike, width: int | None = None) -> FloatArray:
    """Return positive finite numbers: one, or `width` of them, one per joint."""
    array = finite(owner, name, value)
    shapes = ((),) if width is None else ((), (width,))
    if array.shape not in shapes:
        expected = "one number" if width is None else f"one number or {width}, one per joint"
        raise ArgumentError(f"{type(owner).__name__} got {name} of shape {array.shape}, expected {expected}.")
    if not (array > 0.0).all():
        values = _short(array) if array.ndim else f"{float(array):g}"
        raise ArgumentError(f"{type(owner).__name__} got {name} {values}, expected it to be above 0.")
    return array


def _short(array: FloatArray) -> str:
    text = str(array.tolist())
    return text if len(text) <= 80 else text[:77] + "..."


class Quintic(RestToRest):
    """Quintic polynomials through k points (k, n) at k increasing times (k,), at rest at every point.

    Between two points every joint follows the fifth-order polynomial with zero velocity and acceleration at both
    ends (Kozłowski 1990, section 5), so the robot stops at intermediate points. Before the first time and after the
    last, the trajectory holds its end points.

    >>> path = Quintic([[0.0, 0.0], [1.0, -2.0]], [0.0, 4.0])
    >>> path(2.0).q
    array([ 0.5, -1. ])
    """

    def _scaling(self, u: FloatArray) -> FloatArray:
        return u**3 * (10.0 + u * (6.0 * u - 15.0))

    def _first(self, u: FloatArray, w: FloatArray) -> FloatArray:
        return 30.0 * (u * w) ** 2

    def _second(self, u: FloatArray, w: FloatArray) -> FloatArray:
        return 60.0 * u * w * (w - u)


class NormalSpline(RestToRest):
    """A normal spline between each two of k points (k, n) at k increasing times (k,), at rest at every point.

    Velocities and accelerations of the "normal spline" of Angeles, Ma & Rojas (1988, section 7.2) are zero at both
    ends. A cubic spline from 0 to 1 with these six conditions has at least three pieces. With three equal ones it is
    unique: its acceleration is piecewise linear, 0, 9, -9, 0 at 0, 1/3, 2/3, 1.
    """

    KNOTS = (1.0 / 3.0, 2.0 / 3.0)  # fractions of a segment's time at which the acceleration peaks, with a corner

    def _scaling(self, u: FloatArray) -> FloatArray:
        first = 4.5 * u**3
        middle = 0.5 + (u - 0.5) * (2.25 - 9.0 * (u - 0.5) ** 2)
        return np.where(u <= 1.0 / 3.0, first, middle)

    def _first(self, u: FloatArray, w: FloatArray) -> FloatArray:
        near = np.minimum(u, w)
        return np.where(near <= 1.0 / 3.0, 13.5 * near**2, 2.25 - 27.0 * (0.5 - near) ** 2)

    def _second(self, u: FloatArray, w: FloatArray) -> FloatArray:
        near = np.minimum(u, w)
        return np.sign(w - u) * np.where(near <= 1.0 / 3.0, 27.0 * near, 27.0 * (1.0 - 2.0 * near))


class Cycloid(Motion):
    """Cycloidal trajectory q = q0 + A [t - sin(B t) / B] from t = 0 (Angeles, Ma & Rojas 1988, section 7.1).

    Parameters
    ----------
    q0, A : (n,)
        Initial coordinates, and mean velocities.
    B : float
        Angular frequency (rad/s), positive.
    duration : float
        In s. The default is one period, 2 pi / B, after which the trajectory is at rest again.

    Examples
    --------

    >>> Cycloid([0.0], [np.pi / 30], 2 * np.pi / 10)(5.0).q / np.pi
    array([0.16666667])
    """

    def __init__(self, q0: ArrayLike, A: ArrayLike, B: float, duration: float | None = None) -> None:
        self.q0, self.A = finite(self, "q0", q0), finite(self, "A", A)
        if self.q0.ndim != 1 or self.A.shape != self.q0.shape or not self.q0.size:
            raise ArgumentError(
                f"Cycloid got q0 of shape {self.q0.shape} and A of shape {self.A.shape}, expected (n,) for both."
            )
        self.q0.flags.writeable = self.A.flags.writeable = False
        self.B = float(positive(self, "B", B))
        period = 2.0 * np.pi / self.B
        self.start = 0.0
        self.end = period if duration is None else float(positive(self, "duration", duration))
        self.width = self.q0.size
        periods = self.end / period
        self.holds = abs(periods - round(periods)) <= 1e-12 * periods and round(periods) > 0

    @classmethod
    def between(cls, q0: ArrayLike, q1: ArrayLike, duration: float) -> Cycloid:
        """Return one period from rest at q0 (n,) to rest at q1 (n,), in `duration` seconds."""
        start, end = finite(cls.__name__, "q0", q0), finite(cls.__name__, "q1", q1)
        if start.shape != end.shape:
            raise ArgumentError(
                f"Cycloid got q0 of shape {start.shape} and q1 of shape {end.shape}, expected the same shape."
            )
        seconds = finite(cls.__name__, "duration", duration)
        if seconds.shape != () or not seconds > 0.0:
            raise ArgumentError(f"Cycloid got duration {duration}, expected one number above 0.")
        return cls(start, (end - start) / float(seconds), 2.0 * np.pi / float(seconds))

    def _at(self, t: FloatArray) -> JointMotion:
        angle = self.B * t[..., None]
        q = self.q0 + self.A * (t[..., None] - np.sin(angle) / self.B)
        # 1 - cos as a square, which loses no digits at the start and the end
        return JointMotion(q, self.A * 2.0 * np.sin(0.5 * angle) ** 2, self.A * self.B * np.sin(angle))


class Trapezoid(Motion):
    """Trapezoidal velocity profiles through k points (k, n), at rest at every point, as fast as the limits allow.

    The joints start and stop together. In each segment, the joint that needs longest runs at its limits and the others
    are scaled to it. A segment too short to reach full speed has a triangular profile. Where the acceleration jumps, it
    is the one after the jump; at the end it is the one before.

    Parameters
    ----------
    points : (k, n)
        No two consecutive points may be equal.
    velocity, acceleration : float or (n,)
        Positive limits, for all joints or for each.
    start : float
        Time at the first point (s). The attribute `times` (k,) has the times at all points.
    """

    def __init__(self, points: ArrayLike, velocity: ArrayLike, acceleration: ArrayLike, start: float = 0.0) -> None:
        self.points = points_of(self, points, 2)
        self.width = self.points.shape[1]
        speed = positive(self, "velocity", velocity, self.width)
        peak = positive(self, "acceleration", acceleration, self.width)
        travel = np.diff(self.points, axis=0)
        if not travel.any(axis=1).all():
            raise ArgumentError("Trapezoid got the same point twice in a row, expected consecutive points to differ.")
        with np.errstate(divide="ignore"):
            # of the fraction of the distance covered: the slowest joint decides
            self._acceleration = (peak / np.abs(travel)).min(axis=1)
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


T = TypeVar("T")


class Spline(Protocol):
    """Interface of SciPy's splines."""

    def __call__(self, x: FloatArray, /) -> FloatArray: ...
    def derivative(self, nu: int, /) -> Spline: ...


class CubicSpline(PointMotion):
    """Cubic spline through k points (k, n) at k increasing times (k,), without stops: continuous q, qd and qdd.

    Parameters
    ----------
    points, times : (k, n), (k,)
    ends : "rest", "natural" or "not-a-knot"
        Zero velocity at both ends (the acceleration jumps there), zero acceleration, or no condition besides the
        points, for samples of a smooth motion. Only a trajectory with ends at rest can be evaluated outside its times.
    """

    def __init__(self, points: ArrayLike, times: ArrayLike, ends: str = "rest") -> None:
        super().__init__(points, times)
        from scipy.interpolate import CubicSpline as Interpolator

        known = {"rest": "clamped", "natural": "natural", "not-a-knot": "not-a-knot"}
        self._pieces = _derivatives(Interpolator(self.times, self.points, bc_type=_chosen(self, known, ends)))
        self.holds = ends == "rest"

    def _at(self, t: FloatArray) -> JointMotion:
        return JointMotion(*(piece(t) for piece in self._pieces))


class QuinticSpline(PointMotion):
    """Quintic spline through k points (k, n) at k increasing times (k,): continuous up to the fourth derivative.

    Parameters
    ----------
    points, times : (k, n), (k,)
    ends : "rest" or "not-a-knot"
        Zero velocity and acceleration at both ends, or no condition besides the points, which needs six or more.
    """

    def __init__(self, points: ArrayLike, times: ArrayLike, ends: str = "rest") -> None:
        self.fewest = 6 if ends == "not-a-knot" else 2
        super().__init__(points, times)
        from scipy.interpolate import make_interp_spline

        still = [(1, [0.0] * self.width), (2, [0.0] * self.width)]
        conditions = _chosen(self, {"rest": (still, still), "not-a-knot": None}, ends)
        self._pieces = _derivatives(make_interp_spline(self.times, self.points, k=5, bc_type=conditions))
        self.holds = ends == "rest"

    def _at(self, t: FloatArray) -> JointMotion:
        return JointMotion(*(piece(t) for piece in self._pieces))


def _derivatives(spline: Spline) -> tuple[Spline, Spline, Spline]:
    return spline, spline.derivative(1), spline.derivative(2)


def _chosen(owner: PointMotion, known: dict[str, T], ends: str) -> T:
    if not isinstance(ends, str) or ends not in known:
        raise ArgumentError(f"{type(owner).__name__} got ends {ends!r}, expected one of {', '.join(known)}.")
    return known[ends]
