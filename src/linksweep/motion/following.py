"""Joint trajectories that move a frame along a path, from J and dJ/dt, on one branch, without finite differences.

With constraints between frames, their Jacobian K is stacked below that of the frame: A = [J; K], A qd = [twist; 0].

A singular configuration on the path is crossed in one long step if the branch of solutions continues smoothly. Near
it A is ill-conditioned, and short steps cannot pass. Velocities and accelerations before it predict the coordinates
behind it if the path goes through it: det(U^T A V), with the singular vectors U and V before it, then changes sign.
The trajectory within the long step is interpolated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.mechanism.coordinates import difference

from ..robot.options import FramePath
from ..robot.robot import Robot
from .cartesian import FrameMotion, Path
from .descents import Chain, error_of
from .inverse import CONVERGED, LIMITS, chain_of, check_flags, inverse_kinematics
from .trajectories import FloatArray, JointMotion, finite

SINGULAR = "singular"
VELOCITY = "velocity limits"
RANK = 1e-12  # singular values below this fraction of the largest count as zero
REDUNDANT_DRIFT = 1e-9  # rad or m in one step: the path does not correct the motion of redundant joints
LARGEST_STEP = 0.5  # rad or m of any joint: a larger step may pass two singular configurations at once
SHORTEST = 1e-13  # shortest step, relative to the duration
CORNER, JUMP = 0.02, 0.25  # largest relative correction of a step, and relative change of velocities in it
REGULAR = 1e-6  # smallest singular value, relative to the largest, of a regular configuration
NEAR = 0.05  # the same, of configurations near a singular one; crossings begin at about 3e-4
EXACT, NEARLY = 1e-8, 1e-6  # relative residual of twists and accelerations, outside and within a crossing


@dataclass(frozen=True)
class Followed:
    """The joint trajectory along a path.

    Attributes
    ----------
    t : (k,)
        Times (s).
    q, qd, qdd : (k, nq), (k, nv), (k, nv)
        Coordinates, velocities and accelerations; NaN from the first failure on.
    solved : (k,)
        Up to where the path could be followed.
    reason : str
        "converged", or why it ends. "singular": the branch of solutions ends at a singular configuration. "limits": a
        joint limit is reached. "velocity limits": the path needs more than the velocity limit of a joint, and could be
        followed more slowly. "out of reach", "orientation", "constraints", "did not converge": as in
        `InverseKinematics`.
    peak : (nv,)
        Largest joint velocities that the path needs, also between the times and beyond the velocity limits.
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
        """q, qd and qdd as one tuple."""
        return JointMotion(self.q, self.qd, self.qdd)


def follow(
    robot: Robot, frame: str, path: FramePath, times: ArrayLike, q0: ArrayLike | None = None, *,
    position_only: bool = False, limits: bool = True, tolerance: float = 1e-10,
) -> Followed:  # fmt: skip
    """Return the joint trajectory that moves a frame along a path.

    Velocities and accelerations are exact: J qd is the twist of the path, J qdd + dJ/dt qd its acceleration, and both
    satisfy the constraints. A redundant arm takes the smallest velocities. Singular configurations are crossed where
    the branch of solutions continues smoothly. A path that cannot be followed to its end is not an error: see
    `Followed`.

    Parameters
    ----------
    robot : Robot
    frame : one of `robot.frame_names`
    path : Line, Arc, or a function of times that returns a FrameMotion
    times : (k,)
        Increasing times (s).
    q0 : (nq,)
        Initial guess for the solution at the first time, which selects the branch. By default the first one found.
    position_only : bool
        Ignore the orientation of the frame.
    limits : bool
        End where a position or velocity limit is passed.
    tolerance : float
        Of the pose and the constraint residuals, in m and rad.

    Returns
    -------
    Followed
    """
    t = finite("follow", "times", times)
    if t.ndim != 1 or not t.size or not (np.diff(t) > 0.0).all():
        raise ArgumentError(f"follow got times of shape {t.shape}, expected strictly increasing times (k,).")
    check_flags(position_only=position_only, limits=limits)
    if not callable(path) or isinstance(path, type) or not isinstance(path(t[:1]), FrameMotion):
        raise ArgumentError(
            f"follow got a path of type {type(path).__name__}, expected a Line, an Arc, or a function of times "
            "that returns a FrameMotion."
        )
    path = cast(Path, path)
    first = inverse_kinematics(
        robot, path(t[0]).pose, frame, q0, position_only=position_only, limits=limits, tolerance=tolerance,
        restarts=62 if q0 is None else 0,
    )  # fmt: skip
    follower = _Follower(robot, chain_of(robot, frame), path, t, position_only, limits, tolerance)
    if first.solved:
        follower.run(first.q)
    else:
        follower.reason = str(first.reason)
    return follower.followed()


class _Rates(NamedTuple):
    """Velocities and accelerations (k, nv), and their relative residual (k,) with respect to the path."""

    qd: FloatArray
    qdd: FloatArray
    residual: FloatArray


class _Crossing(NamedTuple):
    """A step over a singular configuration: times and rates at both ends, coordinates at its start.

    moved (nv,): displacement to its end. least: smallest singular value at both ends, relative to the largest.
    """

    start: float
    end: float
    q: FloatArray
    first: _Rates
    moved: FloatArray
    last: _Rates
    least: float


class _Factors:
    """The singular value decomposition of A (rows, nv). rank: the largest rank of A so far."""

    def __init__(self, A: FloatArray, rank: int) -> None:
        self.A = A
        self.left, self.sizes, self.right = np.linalg.svd(A, full_matrices=False)
        sizes = self.sizes.tolist()
        self.rank = max(rank, sum(size > REGULAR * sizes[0] for size in sizes))
        self.least = sizes[self.rank - 1] / sizes[0] if self.rank and sizes[0] else 1.0

    @property
    def regular(self) -> bool:
        return self.least > REGULAR

    def solved(self, right_side: FloatArray, rank: float = RANK) -> FloatArray:
        """Return the least-norm solution x of A x = right_side; rank: relative size of zero singular values."""
        if self.sizes[-1] > rank * self.sizes[0]:
            return ((right_side @ self.left) / self.sizes) @ self.right
        nonzero = self.sizes > rank * self.sizes[0]
        return ((right_side @ self.left[:, nonzero]) / self.sizes[nonzero]) @ self.right[nonzero]

    def beyond(self, other: _Factors) -> bool:
        """Whether a singular configuration is between this one and the other."""
        left, right = self.left[:, : self.rank], self.right[: self.rank].T
        return bool(np.linalg.det(left.T @ other.A @ right) < 0.0)


class _Follower:
    """Predictor-corrector steps along a path: Runge-Kutta for the velocities, then Newton for the pose."""

    def __init__(
        self, robot: Robot, chain: Chain, path: Path, t: FloatArray, position_only: bool, limits: bool,
        tolerance: float,
    ) -> None:  # fmt: skip
        self.robot, self.chain, self.path, self.t = robot, chain, path, t
        self.position_only, self.limits, self.tolerance = position_only, limits, tolerance
        self.rows = slice(3, 6) if position_only else slice(0, 6)
        self.weights = np.array([*[1.0, 1.0, 1.0, *[1.0 / chain.scale] * 3][self.rows], *chain.row_weights])
        self.velocity_limits = robot.limits.velocity if limits else np.full(robot.nv, np.inf)
        self.q, self.qd, self.qdd = (np.full((len(t), n), np.nan) for n in (robot.nq, robot.nv, robot.nv))
        self.reached, self.reason = 0, CONVERGED
        self.peak = np.zeros(robot.nv)
        self.crossings: list[_Crossing] = []
        self.interpolated: dict[int, bool] = {}  # indices of times within a crossing, and whether it is exact there
        self.speeds: list[tuple[float, FloatArray]] = []  # times and mean velocities of the other steps
        A = self._matrix(chain.starts(0)[0][0])
        self.rank = int(np.linalg.matrix_rank(A, rtol=REGULAR))
        self.redundant = self.rank < np.any(A, axis=0).sum()
        self.allowed = REDUNDANT_DRIFT if self.redundant else 0.05
        self.last: tuple[FloatArray, _Factors] | None = None  # coordinates at the end of a step, and A there
        self.length = np.inf

    def run(self, q: FloatArray) -> None:
        """Follow the path from the coordinates at the first time as far as possible."""
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
                self.interpolated[k] = self._interpolate(self.crossings[-1], k)
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
        """Return why the branch of q ends before `time`: no solution there, or none connected with q."""
        result = inverse_kinematics(
            self.robot, self.path(time).pose, self.chain.frame, q, position_only=self.position_only,
            limits=self.limits, tolerance=self.tolerance,
        )  # fmt: skip
        return SINGULAR if result.solved else str(result.reason)

    # steps

    def _step(self, q: FloatArray, start: float, end: float) -> tuple[FloatArray, float] | None:
        """Return coordinates on the branch of q and their time: `end`, or later after a crossing.

        Return None if the branch ends.
        """
        time, shortest = start, SHORTEST * (self.t[-1] - self.t[0])
        self.length = min(2.0 * self.length, end - start)
        while time < end:
            until = end if time + 1.001 * self.length >= end else time + self.length
            factors = self.last[1] if self.last is not None and self.last[0] is q else self._factors(q)
            crossed = self._cross(q, factors, time, until)
            if crossed is not None:
                return crossed
            there = self._advance(q, factors, time, until)
            if there is None:
                self.length = 0.5 * (until - time)
                if self.length <= shortest:
                    return None
                continue
            moved = np.abs(difference(self.chain.canonical, q, there))
            self.speeds.append((0.5 * (time + until), moved / (until - time)))
            q, time, self.length = there, until, 2.0 * self.length
        return q, end

    def _advance(self, q: FloatArray, here: _Factors, start: float, end: float) -> FloatArray | None:
        """Take a Runge-Kutta step of order 4, then Newton steps. here: factors of A at q.

        Return None if the two disagree, or if the step leaves the branch.
        """
        h = end - start
        moving = self.path(np.array([start, 0.5 * (start + end), end]))
        first, middle, last = self._padded(moving.twist) * self.weights
        a = here.solved(first)
        b = self._factors(self.chain.moved(q, 0.5 * h * a)).solved(middle)
        c = self._factors(self.chain.moved(q, 0.5 * h * b)).solved(middle)
        d = self._factors(self.chain.moved(q, h * c)).solved(last)
        step = h / 6.0 * (a + 2.0 * (b + c) + d)
        if not np.abs(step).max() <= LARGEST_STEP:
            return None
        corrected = self._corrected(self.chain.moved(q, step), moving.pose[2])
        if corrected is None:
            return None
        q, there, distance = corrected
        if distance > min(self.allowed, max(CORNER * np.abs(step).max(), self.tolerance / there.least)):
            return None
        if here.regular and not there.regular:  # enter a singular configuration only at the end of the path
            return q if end == self.t[-1] else None
        if here.regular and here.beyond(there):
            return None
        v, w = np.abs(first).max(), np.abs(last).max()
        if min(v, w) > 1e-3 * max(v, w) and here.regular:  # a jump of velocities per unit of twist is a corner
            before, after = a / v, there.solved(last) / w
            if np.abs(after - before).max() > JUMP * max(np.abs(before).max(), np.abs(after).max()):
                return None
        self.last = q, there
        return q

    def _corrected(self, q: FloatArray, pose: FloatArray) -> tuple[FloatArray, _Factors, float] | None:
        """Return the coordinates near q at which the frame has the pose, the factors there, and the distance from q."""
        distance, size = 0.0, np.inf
        for _ in range(8):
            error, A = self._at(q, pose)
            before, size = size, float(np.abs(error).max())
            if size > 0.5 * before or not np.isfinite(size):
                break
            there = self._factors(q, A)
            correction = there.solved(error * self.weights)
            distance += float(np.abs(correction).max())
            q = self.chain.moved(q, correction)
            if size <= self.tolerance:  # after one more step
                return q, there, distance
        return None

    def _cross(self, q: FloatArray, here: _Factors, start: float, end: float) -> tuple[FloatArray, float] | None:
        """Cross the singular configuration on the path before or near `end`, if there is one.

        Velocities and accelerations predict its time. The path goes through it, to within the tolerance, if they also
        lead to the pose behind it.
        """
        if not REGULAR < here.least < NEAR:
            return None
        first, k = self._rates(q[None], self.path(np.array([start]))), self.rank - 1
        # how fast the smallest singular value decreases
        decrease = -float(here.left[:, k] @ self._change(q[None], first.qd)[0] @ here.right[k])
        if here.sizes[k] > 1.5 * decrease * (end - start):  # it is well beyond the end of the step, or already passed
            return None
        land = start + 2.0 * here.sizes[k] / decrease
        if land > max(self.t[-1], getattr(self.path, "end", -np.inf)):
            return None
        h = land - start
        step = h * first.qd[0] + 0.5 * h * h * first.qdd[0]
        moving = self.path(np.array([land]))
        corrected = self._corrected(self.chain.moved(q, step), moving.pose[0])
        if corrected is None:
            return None
        there, factors, distance = corrected
        if distance * factors.sizes[k] > self.tolerance or not here.beyond(factors):
            return None
        last = self._rates(there[None], moving)
        speed = np.abs(first.qd).max()
        if not np.abs(last.qd - first.qd - h * first.qdd).max() <= JUMP * speed:
            return None
        moved, least = difference(self.chain.canonical, q, there), max(here.least, factors.least)
        self.crossings.append(_Crossing(start, land, q, first, moved, last, least))
        return there, land

    # kinematics

    def _matrix(self, q: FloatArray) -> FloatArray:
        """A (..., rows, nv), weighted."""
        _, jacobian, *constrained = self.chain.function(q)
        A = jacobian[..., self.rows, :]
        A = np.concatenate([A, constrained[1]], axis=-2) if constrained else A
        return A * self.weights[:, None]

    def _at(self, q: FloatArray, pose: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the error (rows,) of the pose and the constraints, and A (rows, nv), weighted."""
        current, jacobian, *constrained = self.chain.function(q)
        error, A = error_of(current, pose)[self.rows], jacobian[self.rows]
        if constrained:
            error, A = np.concatenate([error, -constrained[0]]), np.concatenate([A, constrained[1]])
        return error, A * self.weights[:, None]

    def _factors(self, q: FloatArray, A: FloatArray | None = None) -> _Factors:
        factors = _Factors(self._matrix(q) if A is None else A, self.rank)
        self.rank = factors.rank
        return factors

    def _padded(self, twist: FloatArray) -> FloatArray:
        """Return the rows of a twist (..., 6) that matter, and zeros for the constraints."""
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
        """Compute velocities and accelerations at the first n times, and check them."""
        direct, lost = np.array([k not in self.interpolated for k in range(n)], bool), np.zeros(n, bool)
        for k, good in self.interpolated.items():
            lost[k:] |= k < n and not good
        self.qd[:n][direct], self.qdd[:n][direct], residual = self._rates(
            self.q[:n][direct], self.path(self.t[:n][direct])
        )
        lost[direct] |= residual > EXACT
        when = np.array([time for time, _ in self.speeds])
        speeds = np.array([speed for _, speed in self.speeds]).reshape(-1, self.robot.nv)
        fast = (np.abs(self.qd[:n]) > self.velocity_limits).any(axis=1)
        between = when[(speeds > self.velocity_limits).any(axis=1)]
        slow = [int(np.argmax(fast)) if fast.any() else n, *np.searchsorted(self.t[:n], between[:1])]
        for reason, ends in ((SINGULAR, [int(np.argmax(lost)) if lost.any() else n]), (VELOCITY, slow)):
            if min(ends) < self.reached:
                self.reached = int(min(ends))
                self.reason = reason if self.reason == CONVERGED else self.reason
        self.peak = np.abs(np.concatenate([self.qd[:n][~lost], speeds])).max(axis=0, initial=0.0)

    def _rates(self, q: FloatArray, moving: FrameMotion) -> _Rates:
        """Return velocities and accelerations at q (k, nq).

        The least-norm velocities are qd = A^T y with A A^T y = v. Their derivative is A^+ (a - dA qd) plus the
        projection of dA^T y onto the null space of A.
        """
        A = self._matrix(q)
        left, sizes, right = np.linalg.svd(A, full_matrices=False)
        nonzero = sizes > RANK * sizes.max(axis=1, keepdims=True, initial=0.0)
        inverse = np.where(nonzero, 1.0 / np.where(nonzero, sizes, 1.0), 0.0)[..., None]
        across, back = np.swapaxes(left, 1, 2), np.swapaxes(right, 1, 2)
        twist, acceleration = self._columns(moving)
        qd = back @ (inverse * (across @ twist))
        change = self._change(q, qd[..., 0])
        qdd = np.zeros_like(qd)
        if self.redundant:
            free = np.swapaxes(change, 1, 2) @ (left @ (inverse**2 * (across @ twist)))
            # at a singular configuration, nothing is added along the lost directions
            qdd = free - back[:, :, : self.rank] @ (right[:, : self.rank] @ free)
        qdd = qdd + back @ (inverse * (across @ (acceleration - change @ qd - A @ qdd)))
        return _Rates(qd[..., 0], qdd[..., 0], self._residual(A, change, qd, qdd, moving))

    def _columns(self, moving: FrameMotion) -> tuple[FloatArray, FloatArray]:
        """Return the weighted twists and accelerations (k, rows, 1)."""
        twist, acceleration = (self._padded(x) * self.weights for x in (moving.twist, moving.acceleration))
        return twist[..., None], acceleration[..., None]

    def _residual(
        self, A: FloatArray, change: FloatArray, qd: FloatArray, qdd: FloatArray, moving: FrameMotion
    ) -> FloatArray:
        """Return the relative residual (k,) of velocities and accelerations (k, nv, 1), beyond rounding."""
        twist, acceleration = self._columns(moving)

        def largest(x: FloatArray) -> FloatArray:
            return np.abs(x).max(axis=(1, 2))

        residual = np.zeros(len(A))
        for rates, rest, target in ((qd, 0.0 * twist, twist), (qdd, change @ qd, acceleration)):
            off = largest(A @ rates + rest - target) - 1e-13 * largest(A) * largest(rates)
            residual = np.maximum(residual, off / np.maximum(largest(target) + largest(rest), 1e-300))
        return residual

    def _interpolate(self, crossing: _Crossing, k: int) -> bool:
        """Interpolate the trajectory at the k-th time within a crossing; return whether it is exact enough.

        Velocities are a cubic polynomial between both ends. The components that the path determines are then corrected.
        """
        h, moving = crossing.end - crossing.start, self.path(self.t[k : k + 1])
        (v0,), (a0,), _ = crossing.first
        (v1,), (a1,), _ = crossing.last
        powers = np.stack([v0, h * a0, 3.0 * (v1 - v0) - h * (2.0 * a0 + a1), 2.0 * (v0 - v1) + h * (a0 + a1)])
        x, order = (self.t[k] - crossing.start) / h, np.arange(4)
        qd, qdd = x**order @ powers, (order * x ** np.maximum(order - 1, 0)) @ powers / h
        whole = h * powers / (order[:, None] + 1)
        q = self.chain.moved(crossing.q, x ** (order + 1) @ whole + x * (crossing.moved - whole.sum(axis=0)))
        for _ in range(2):
            error, A = self._at(q, moving.pose[0])
            here = self._factors(q, A)
            q = self.chain.moved(q, here.solved(error * self.weights, 2.0 * crossing.least))
        twist, acceleration = (x[0, :, 0] for x in self._columns(moving))
        qd = qd + here.solved(twist - A @ qd, 2.0 * crossing.least)
        change = self._change(q[None], qd[None])
        qdd = qdd + here.solved(acceleration - change[0] @ qd - A @ qdd, 2.0 * crossing.least)
        self.q[k], self.qd[k], self.qdd[k] = q, qd, qdd
        residual = self._residual(A[None], change, qd[None, :, None], qdd[None, :, None], moving)
        return bool(residual[0] <= NEARLY and np.abs(self._at(q, moving.pose[0])[0]).max() <= self.tolerance)
