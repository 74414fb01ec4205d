"""The joint motion that leads a frame along a path: by J and dJ/dt, on one branch, without differencing.

With constraints between frames, their rows stand below those of the frame: A = [J; K], A qd = [twist; 0].

A singular configuration on the path is leapt over where the branch of solutions goes on smoothly. Next to it A has
next to no inverse, so that steps cannot go through it; but velocities and accelerations before it lead to the
coordinates behind it, if the path goes through it. det(U^T A V), with the singular vectors U and V before it, then
changes its sign. In the course of the leap the motion is interpolated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.mechanism.coordinates import difference

from ..robot.robot import Robot
from .base import FloatArray, JointMotion, finite
from .cartesian import FrameMotion, Path
from .chains import Chain, error_of
from .inverse import CONVERGED, LIMITS, chain_of, check_flags, inverse_kinematics

SINGULAR = "singular"
VELOCITY = "velocity limits"
FEWEST = 1e-12  # singular values below this part of the largest are zero: directions that the arm does not have
FREE_DRIFT = 1e-9  # rad or m in one step: where the path leaves joints free, nothing else keeps the integral exact
LARGEST_STEP = 0.5  # rad or m of any joint: larger steps may pass two singular configurations at once
SHORTEST = 1e-13  # of the times' span: the shortest step
CORNER, TURNED = 0.02, 0.25  # of a step what Newton's method may correct, of velocities what they may change by in it
REGULAR = 1e-6  # least singular value, of the largest, of configurations that are regular
NEAR = 0.05  # the same, of those that are near singular ones: some 3e-4 is where leaps begin
EXACT, NEARLY = 1e-8, 1e-6  # of twists and accelerations: what velocities may miss, and in the course of a leap


@dataclass(frozen=True)
class Followed:
    """The joint motion along a path, at times t (k,): q (k, nq), qd and qdd (k, nv); NaN from the first failure on.

    solved (k,): up to where the path could be followed. reason: "converged", or why it ends: "singular", the solutions
    that hang together with the first one end here, at a singular configuration; "limits", a joint limit; "velocity
    limits", the path asks for more than the largest velocity of a joint, and could be followed slower; "out of reach",
    "orientation", "constraints", "did not converge" as of `inverse_kinematics`. peak (nv,): the largest velocities that
    the path asks for, between the times and beyond the velocity limits too.
    """

    t: FloatArray
    q: FloatArray
    qd: FloatArray
    qdd: FloatArray
    solved: np.ndarray
    reason: str
    peak: FloatArray

    @property
    def motion(self) -> JointMotion:
        return JointMotion(self.q, self.qd, self.qdd)


def follow(
    robot: Robot, frame: str, path: Path, times: ArrayLike, q0: ArrayLike | None = None, *, position_only: bool = False,
    limits: bool = True, tolerance: float = 1e-10,
) -> Followed:  # fmt: skip
    """The joint motion that leads the frame along the path, at increasing times (k,).

    frame: its name, one of `robot.frame_names`. path: a `Line`, an `Arc`, or what gives poses as they do. times: (k,)
    seconds. q0: (nq,), where to look for the solution at the first time, which decides the branch; None: anywhere.
    position_only: the frame's directions are left free. tolerance: of the pose and of the constraints, in m and rad.

    Velocities and accelerations are exact: J qd is the path's twist and J qdd + dJ/dt qd its acceleration, and they
    keep the constraints. An arm with more freedoms than the path needs takes the smallest velocities that do it.
    Singular configurations are crossed where the solutions go on smoothly.
    limits: end where a joint limit is passed, or a velocity limit. A path that cannot be followed to its end is no
    error: see `Followed`.
    """
    t = finite("follow", "times", times)
    if t.ndim != 1 or not t.size or not (np.diff(t) > 0.0).all():
        raise ArgumentError(
            f"follow got times of shape {t.shape}, expected (k,), each later than the one before: sort them and "
            "remove repeats."
        )
    check_flags(position_only=position_only, limits=limits)
    if not callable(path) or isinstance(path, type) or not isinstance(path(t[:1]), FrameMotion):
        raise ArgumentError(
            f"follow got a path of type {type(path).__name__}, expected a Line, an Arc, or what gives a FrameMotion "
            "when called with times."
        )
    first = inverse_kinematics(
        robot, path(t[0]).pose, frame, q0, position_only=position_only, limits=limits, tolerance=tolerance,
        restarts=62 if q0 is None else 0,
    )  # fmt: skip
    walk = _Walk(robot, chain_of(robot, frame), path, t, position_only, limits, tolerance)
    if first.solved:
        walk.go(first.q)
    else:
        walk.reason = str(first.reason)
    return walk.followed()


class _Rates(NamedTuple):
    """Velocities and accelerations (k, nv), and what (k,) they miss of the path's."""

    qd: FloatArray
    qdd: FloatArray
    missed: FloatArray


class _Leap(NamedTuple):
    """A motion over a singular configuration: when it starts and ends, coordinates and their rates at its start, and
    rates at its end, to which `moved` leads. least: singular value at both, as a part of the largest."""

    start: float
    end: float
    q: FloatArray
    first: _Rates
    moved: FloatArray
    last: _Rates
    least: float


class _Factors:
    """The singular values of A (rows, nv), and what they say. rank: that of regular configurations, so far."""

    def __init__(self, A: FloatArray, rank: int) -> None:
        self.A = A
        self.left, self.sizes, self.right = np.linalg.svd(A, full_matrices=False)
        sizes = self.sizes.tolist()
        self.rank = max(rank, sum(size > REGULAR * sizes[0] for size in sizes))
        self.least = sizes[self.rank - 1] / sizes[0] if self.rank and sizes[0] else 1.0

    @property
    def regular(self) -> bool:
        return self.least > REGULAR

    def solved(self, wanted: FloatArray, fewest: float = FEWEST) -> FloatArray:
        """The smallest rates that A takes to what is wanted."""
        if self.sizes[-1] > fewest * self.sizes[0]:
            return ((wanted @ self.left) / self.sizes) @ self.right
        kept = self.sizes > fewest * self.sizes[0]
        return ((wanted @ self.left[:, kept]) / self.sizes[kept]) @ self.right[kept]

    def beyond(self, other: _Factors) -> bool:
        """Whether a singular configuration is between this one and the other."""
        left, right = self.left[:, : self.rank], self.right[: self.rank].T
        return bool(np.linalg.det(left.T @ other.A @ right) < 0.0)


class _Walk:
    """One step after the other along a path: predict by the velocities, correct by the pose."""

    def __init__(
        self, robot: Robot, chain: Chain, path: Path, t: FloatArray, position_only: bool, limits: bool,
        tolerance: float,
    ) -> None:  # fmt: skip
        self.robot, self.chain, self.path, self.t = robot, chain, path, t
        self.position_only, self.limits, self.tolerance = position_only, limits, tolerance
        self.rows = slice(3, 6) if position_only else slice(0, 6)
        self.weights = np.array([*[1.0, 1.0, 1.0, *[1.0 / chain.scale] * 3][self.rows], *chain.row_weights])
        self.most = robot.limits.velocity if limits else np.full(robot.nv, np.inf)
        self.q, self.qd, self.qdd = (np.full((len(t), n), np.nan) for n in (robot.nq, robot.nv, robot.nv))
        self.reached, self.reason = 0, CONVERGED
        self.peak = np.zeros(robot.nv)
        self.leaps: list[_Leap] = []
        self.bridged: dict[int, bool] = {}  # which times are in the course of one, and whether it will do there
        self.speeds: list[tuple[float, FloatArray]] = []  # mean velocities of the other steps, and when
        A = self._matrix(chain.starts(0)[0][0])
        self.rank = int(np.linalg.matrix_rank(A, rtol=REGULAR))
        self.redundant = self.rank < np.any(A, axis=0).sum()
        self.allowed = FREE_DRIFT if self.redundant else 0.05
        self.last: tuple[FloatArray, _Factors] | None = None  # coordinates at the end of a step, and A there
        self.length = np.inf

    def go(self, q: FloatArray) -> None:
        """From the coordinates at the first time as far as it goes."""
        at = self.t[0]
        for k, time in enumerate(self.t):
            while at < time:
                there = self._step(q, at, time)
                if there is None:
                    break
                q, at = there
            if at < time:
                self.reason = self._why(q, time)
                break
            self.q[k], self.reached = q, k + 1
            if at > time:
                self.bridged[k] = self._bridged(self.leaps[-1], k)
            if self.limits and self._outside(self.q[k]):
                self.reason, self.reached = LIMITS, k
                break
        self._differentiate(self.reached)

    def _outside(self, q: FloatArray) -> bool:
        return bool(((q > self.chain.upper) | (q < self.chain.lower))[self.chain.moves].any())

    def followed(self) -> Followed:
        for part in (self.q, self.qd, self.qdd):
            part[self.reached :] = np.nan
        solved = np.arange(len(self.t)) < self.reached
        return Followed(self.t, self.q, self.qd, self.qdd, solved, self.reason, self.peak)

    def _why(self, q: FloatArray, time: float) -> str:
        """Why the branch of q ends before `time`: no solution there at all, or none that hangs together with q."""
        found = inverse_kinematics(
            self.robot, self.path(time).pose, self.chain.frame, q, position_only=self.position_only,
            limits=self.limits, tolerance=self.tolerance,
        )  # fmt: skip
        return SINGULAR if found.solved else str(found.reason)

    # steps

    def _step(self, q: FloatArray, start: float, end: float) -> tuple[FloatArray, float] | None:
        """The coordinates on the branch of q at `end`, in as many steps as it takes, or after a leap beyond it, and
        when; None: the branch ends."""
        time, shortest = start, SHORTEST * (self.t[-1] - self.t[0])
        self.length = min(2.0 * self.length, end - start)
        while time < end:
            until = end if time + 1.001 * self.length >= end else time + self.length
            own = self.last[1] if self.last is not None and self.last[0] is q else self._factors(q)
            leapt = self._leap(q, own, time, until)
            if leapt is not None:
                return leapt
            there = self._advance(q, own, time, until)
            if there is None:
                self.length = 0.5 * (until - time)
                if self.length <= shortest:
                    return None
                continue
            moved = np.abs(difference(self.chain.canonical, q, there))
            self.speeds.append((0.5 * (time + until), moved / (until - time)))
            q, time, self.length = there, until, 2.0 * self.length
        return q, end

    def _advance(self, q: FloatArray, own: _Factors, start: float, end: float) -> FloatArray | None:
        """Runge and Kutta's step of order 4, then Newton's method; None if they do not agree, or the step is no smooth
        motion along the branch. own: of A at q."""
        h = end - start
        moving = self.path(np.array([start, 0.5 * (start + end), end]))
        first, middle, last = self._padded(moving.twist) * self.weights
        a = own.solved(first)
        b = self._factors(self.chain.moved(q, 0.5 * h * a)).solved(middle)
        c = self._factors(self.chain.moved(q, 0.5 * h * b)).solved(middle)
        d = self._factors(self.chain.moved(q, h * c)).solved(last)
        step = h / 6.0 * (a + 2.0 * (b + c) + d)
        if not np.abs(step).max() <= LARGEST_STEP:
            return None
        found = self._corrected(self.chain.moved(q, step), moving.pose[2])
        if found is None:
            return None
        q, there, way = found
        if way > min(self.allowed, max(CORNER * np.abs(step).max(), self.tolerance / there.least)):
            return None
        if own.regular and not there.regular:  # into a singular configuration only where the path ends
            return q if end == self.t[-1] else None
        if own.regular and own.beyond(there):
            return None
        v, w = np.abs(first).max(), np.abs(last).max()
        if min(v, w) > 1e-3 * max(v, w) and own.regular:  # velocities for the same twist: if they jump, it is a corner
            before, after = a / v, there.solved(last) / w
            if np.abs(after - before).max() > TURNED * max(np.abs(before).max(), np.abs(after).max()):
                return None
        self.last = q, there
        return q

    def _corrected(self, q: FloatArray, pose: FloatArray) -> tuple[FloatArray, _Factors, float] | None:
        """The coordinates near q at which the frame has the pose, A there, and how far they are from q."""
        way, size = 0.0, np.inf
        for _ in range(8):
            error, A = self._at(q, pose)
            before, size = size, float(np.abs(error).max())
            if size > 0.5 * before or not np.isfinite(size):
                break
            there = self._factors(q, A)
            correction = there.solved(error * self.weights)
            way += float(np.abs(correction).max())
            q = self.chain.moved(q, correction)
            if size <= self.tolerance:  # and one step better
                return q, there, way
        return None

    def _leap(self, q: FloatArray, own: _Factors, start: float, end: float) -> tuple[FloatArray, float] | None:
        """Over the singular configuration that is on the path before or near `end`, if there is one, to as far behind.

        Velocities and accelerations say where. The path goes through it, to within the tolerance, if they also lead to
        its pose behind it.
        """
        if not REGULAR < own.least < NEAR:
            return None
        first, k = self._rates(q[None], self.path(np.array([start]))), self.rank - 1
        falls = -float(own.left[:, k] @ self._change(q[None], first.qd)[0] @ own.right[k])  # how fast it gets singular
        if own.sizes[k] > 1.5 * falls * (end - start):  # it is well behind the end of the step, or left behind
            return None
        land = start + 2.0 * own.sizes[k] / falls
        if land > max(self.t[-1], getattr(self.path, "end", -np.inf)):
            return None
        h = land - start
        step = h * first.qd[0] + 0.5 * h * h * first.qdd[0]
        moving = self.path(np.array([land]))
        found = self._corrected(self.chain.moved(q, step), moving.pose[0])
        if found is None:
            return None
        there, factors, way = found
        if way * factors.sizes[k] > self.tolerance or not own.beyond(factors):
            return None
        last = self._rates(there[None], moving)
        speed = np.abs(first.qd).max()
        if not np.abs(last.qd - first.qd - h * first.qdd).max() <= TURNED * speed:
            return None
        moved, least = difference(self.chain.canonical, q, there), max(own.least, factors.least)
        self.leaps.append(_Leap(start, land, q, first, moved, last, least))
        return there, land

    # kinematics

    def _matrix(self, q: FloatArray) -> FloatArray:
        """A (..., rows, nv), weighted."""
        _, jacobian, *constrained = self.chain.function(q)
        A = jacobian[..., self.rows, :]
        A = np.concatenate([A, constrained[1]], axis=-2) if constrained else A
        return A * self.weights[:, None]

    def _at(self, q: FloatArray, pose: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The way (rows,) to a pose and back onto the constraints, and A (rows, nv), weighted."""
        own, jacobian, *constrained = self.chain.function(q)
        error, A = error_of(own, pose)[self.rows], jacobian[self.rows]
        if constrained:
            error, A = np.concatenate([error, -constrained[0]]), np.concatenate([A, constrained[1]])
        return error, A * self.weights[:, None]

    def _factors(self, q: FloatArray, A: FloatArray | None = None) -> _Factors:
        found = _Factors(self._matrix(q) if A is None else A, self.rank)
        self.rank = found.rank
        return found

    def _padded(self, twist: FloatArray) -> FloatArray:
        """The rows of a twist (..., 6) that count, and nothing for the constraints."""
        rows = twist[..., self.rows]
        return np.concatenate([rows, np.zeros((*rows.shape[:-1], len(self.weights) - rows.shape[-1]))], axis=-1)

    def _change(self, q: FloatArray, qd: FloatArray) -> FloatArray:
        """dA/dt (k, rows, nv), weighted."""
        change = self.robot.jacobian_derivative(q, qd, self.chain.frame)[:, self.rows]
        if self.chain.constrained:
            derivative = self.robot.compile(("jvp", "constraint_jacobian", "q"), dtype="float64")
            change = np.concatenate([change, derivative(q, qd)], axis=1)
        return change * self.weights[:, None]

    # velocities and accelerations

    def _differentiate(self, n: int) -> None:
        """Velocities and accelerations at the first n times, and whether they will do."""
        direct, lost = np.array([k not in self.bridged for k in range(n)], bool), np.zeros(n, bool)
        for k, good in self.bridged.items():
            lost[k:] |= k < n and not good
        self.qd[:n][direct], self.qdd[:n][direct], missed = self._rates(
            self.q[:n][direct], self.path(self.t[:n][direct])
        )
        lost[direct] |= missed > EXACT
        when = np.array([time for time, _ in self.speeds])
        speeds = np.array([speed for _, speed in self.speeds]).reshape(-1, self.robot.nv)
        fast = (np.abs(self.qd[:n]) > self.most).any(axis=1)
        between = when[(speeds > self.most).any(axis=1)]
        slow = [int(np.argmax(fast)) if fast.any() else n, *np.searchsorted(self.t[:n], between[:1])]
        for reason, ends in ((SINGULAR, [int(np.argmax(lost)) if lost.any() else n]), (VELOCITY, slow)):
            if min(ends) < self.reached:
                self.reached = int(min(ends))
                self.reason = reason if self.reason == CONVERGED else self.reason
        self.peak = np.abs(np.concatenate([self.qd[:n][~lost], speeds])).max(axis=0, initial=0.0)

    def _rates(self, q: FloatArray, moving: FrameMotion) -> _Rates:
        """At q (k, nq).

        The smallest velocities are qd = A^T y with A A^T y = v. Their derivative has the part A^+ (a - dA qd), which
        the path needs, and of dA^T y the part that it does not notice.
        """
        A = self._matrix(q)
        left, sizes, right = np.linalg.svd(A, full_matrices=False)
        kept = sizes > FEWEST * sizes.max(axis=1, keepdims=True, initial=0.0)
        inverse = np.where(kept, 1.0 / np.where(kept, sizes, 1.0), 0.0)[..., None]
        across, back = np.swapaxes(left, 1, 2), np.swapaxes(right, 1, 2)
        twist, acceleration = self._columns(moving)
        qd = back @ (inverse * (across @ twist))
        change = self._change(q, qd[..., 0])
        qdd = np.zeros_like(qd)
        if self.redundant:
            unnoticed = np.swapaxes(change, 1, 2) @ (left @ (inverse**2 * (across @ twist)))
            # at a singular configuration the path notices some of what the arm cannot do: nothing is added there
            qdd = unnoticed - back[:, :, : self.rank] @ (right[:, : self.rank] @ unnoticed)
        qdd = qdd + back @ (inverse * (across @ (acceleration - change @ qd - A @ qdd)))
        return _Rates(qd[..., 0], qdd[..., 0], self._missed(A, change, qd, qdd, moving))

    def _columns(self, moving: FrameMotion) -> tuple[FloatArray, FloatArray]:
        """The weighted twists and accelerations (k, rows, 1)."""
        twist, acceleration = (self._padded(x) * self.weights for x in (moving.twist, moving.acceleration))
        return twist[..., None], acceleration[..., None]

    def _missed(
        self, A: FloatArray, change: FloatArray, qd: FloatArray, qdd: FloatArray, moving: FrameMotion
    ) -> FloatArray:
        """What (k,) velocities and accelerations (k, nv, 1) miss of the path's, as a part of these; less rounding."""
        twist, acceleration = self._columns(moving)

        def largest(x: FloatArray) -> FloatArray:
            return np.abs(x).max(axis=(1, 2))

        found = np.zeros(len(A))
        for rates, rest, wanted in ((qd, 0.0 * twist, twist), (qdd, change @ qd, acceleration)):
            off = largest(A @ rates + rest - wanted) - 1e-13 * largest(A) * largest(rates)
            found = np.maximum(found, off / np.maximum(largest(wanted) + largest(rest), 1e-300))
        return found

    def _bridged(self, leap: _Leap, k: int) -> bool:
        """Take the motion at the k-th time from the leap, and say whether it will do.

        Velocities are a polynomial of degree 3 between both ends. What the path determines is then corrected.
        """
        h, moving = leap.end - leap.start, self.path(self.t[k : k + 1])
        (v0,), (a0,), _ = leap.first
        (v1,), (a1,), _ = leap.last
        powers = np.stack([v0, h * a0, 3.0 * (v1 - v0) - h * (2.0 * a0 + a1), 2.0 * (v0 - v1) + h * (a0 + a1)])
        x, order = (self.t[k] - leap.start) / h, np.arange(4)
        qd, qdd = x**order @ powers, (order * x ** np.maximum(order - 1, 0)) @ powers / h
        whole = h * powers / (order[:, None] + 1)
        q = self.chain.moved(leap.q, x ** (order + 1) @ whole + x * (leap.moved - whole.sum(axis=0)))
        for _ in range(2):
            error, A = self._at(q, moving.pose[0])
            own = self._factors(q, A)
            q = self.chain.moved(q, own.solved(error * self.weights, 2.0 * leap.least))
        twist, acceleration = (x[0, :, 0] for x in self._columns(moving))
        qd = qd + own.solved(twist - A @ qd, 2.0 * leap.least)
        change = self._change(q[None], qd[None])
        qdd = qdd + own.solved(acceleration - change[0] @ qd - A @ qdd, 2.0 * leap.least)
        self.q[k], self.qd[k], self.qdd[k] = q, qd, qdd
        missed = self._missed(A[None], change, qd[None, :, None], qdd[None, :, None], moving)
        return bool(missed[0] <= NEARLY and np.abs(self._at(q, moving.pose[0])[0]).max() <= self.tolerance)
