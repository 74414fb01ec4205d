"""Splines through points, without stopping there: SciPy's interpolators with the ends that a robot needs."""

from __future__ import annotations

from typing import Protocol, TypeVar

from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError

from .base import FloatArray, JointMotion, PointMotion

T = TypeVar("T")


class Spline(Protocol):
    """What SciPy interpolates with."""

    def __call__(self, x: FloatArray, /) -> FloatArray: ...
    def derivative(self, nu: int, /) -> Spline: ...


class CubicSpline(PointMotion):
    """The cubic spline through k points (k, n) at k increasing times (k,): continuous q, qd and qdd.

    ends: "rest", zero velocity at both ends (the acceleration jumps there); "natural", zero acceleration; or
    "not-a-knot", for samples of a smooth motion, which takes no condition but the points. Only a motion with ends at
    rest can be held outside its times.
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
    """The quintic spline through k points (k, n) at k increasing times (k,): continuous up to the fourth derivative.

    ends: "rest", zero velocity and acceleration at both ends; or "not-a-knot", for six or more samples of a smooth
    motion, which takes no condition but the points.
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
