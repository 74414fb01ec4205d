"""The joint motion that leads a frame along a path: by J and dJ/dt, on one branch, without differencing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError

from .base import FloatArray, JointMotion, finite
from .cartesian import FrameMotion, Path
from .chains import Chain, error_of
from .inverse import LIMITS, chain_of, check_flags, inverse_kinematics

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot

SINGULAR = "singular"
FEWEST = 1e-10  # singular values below this part of the largest are zero: directions that the arm does not have
HALVINGS = 14
FREE_DRIFT = 1e-9  # rad or m in one step: where the path leaves joints free, nothing else keeps the integral exact


@dataclass(frozen=True)
class Followed:
    """The joint motion along a path, at times t (k,): q (k, nq), qd and qdd (k, nv); NaN from the first failure on.

    solved (k,): up to where the path could be followed. reason: "converged", or why it ends: "singular", the solution
    ends where the arm cannot move on along the path; "limits"; "out of reach", "orientation", "did not converge" as of
    `inverse_kinematics`.
    """

    t: FloatArray
    q: FloatArray
    qd: FloatArray
    qdd: FloatArray
    solved: np.ndarray
    reason: str

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
    position_only: the frame's directions are left free. tolerance: of the pose, in m and rad.

    Velocities
    and accelerations are exact: J qd is the path's twist and J qdd + dJ/dt qd its acceleration. An arm with more
    freedoms than the path needs takes the smallest velocities that do it.
    limits: end where a joint limit is passed. A path that cannot be followed to its end is no error: see `Followed`.
    """
    t = finite("follow", "times", times)
    if t.ndim != 1 or not t.size or not (np.diff(t) > 0.0).all():
        raise ArgumentError(
            f"follow got times of shape {t.shape}, expected (k,), each later than the one before: sort them and "
            "remove repeats."
        )
    check_flags(position_only=position_only, limits=limits)
    if not callable(path) or not isinstance(path(t[:1]), FrameMotion):
        raise ArgumentError(
            f"follow got a path of type {type(path).__name__}, expected a Line, an Arc, or what gives a FrameMotion "
            "when called with times."
        )
    walk = _Walk(robot, chain_of(robot, frame), path, position_only, limits, tolerance)
    q, qd, qdd = (np.full((len(t), n), np.nan) for n in (robot.nq, robot.nv, robot.nv))
    first = inverse_kinematics(
        robot, path(t[0]).pose, frame, q0, position_only=position_only, limits=limits, tolerance=tolerance,
        restarts=62 if q0 is None else 0,
    )  # fmt: skip
    reason, reached = str(first.reason), 0
    if first.solved:
        at: FloatArray | None = first.q
        for k, time in enumerate(t):
            if k and at is not None:
                at = walk.step(at, t[k - 1], time)
            if at is None:
                reason = walk.why(q[k - 1], time)
                break
            if limits and ((at > walk.chain.upper) | (at < walk.chain.lower))[walk.chain.moves].any():
                reason = LIMITS
                break
            q[k], reached = at, k + 1
        qd[:reached], qdd[:reached], exact = walk.rates(q[:reached], path(t[:reached]))
        if not exact.all():
            reached, reason = int(np.argmin(exact)), SINGULAR
            for part in (q, qd, qdd):
                part[reached:] = np.nan
    return Followed(t, q, qd, qdd, np.arange(len(t)) < reached, reason)


class _Walk:
    """One step after the other along a path: predict by the velocities, correct by the pose."""

    def __init__(
        self, robot: Robot, chain: Chain, path: Path, position_only: bool, limits: bool, tolerance: float
    ) -> None:
        self.robot, self.chain, self.path = robot, chain, path
        self.position_only, self.limits, self.tolerance = position_only, limits, tolerance
        self.rows = slice(3, 6) if position_only else slice(0, 6)
        self.weights = np.array([1.0, 1.0, 1.0, *[1.0 / chain.scale] * 3])[self.rows]
        redundant = np.linalg.matrix_rank(chain.function(chain.starts(0)[0][0])[1][self.rows]) < chain.moves.sum()
        self.allowed = FREE_DRIFT if redundant else 0.05
        self.length = np.inf

    def step(self, q: FloatArray, start: float, end: float) -> FloatArray | None:
        """The coordinates at `end` on the branch of q at `start`, in as many steps as it takes; None: it ends."""
        time = start
        self.length = min(2.0 * self.length, end - start)
        while time < end:
            until = end if time + 1.001 * self.length >= end else time + self.length
            there = self._advance(q, time, until)
            if there is not None:
                q, time = there, until
                continue
            self.length = 0.5 * (until - time)
            if self.length < (end - start) * 0.5**HALVINGS:
                return None
        return q

    def _advance(self, q: FloatArray, start: float, end: float) -> FloatArray | None:
        """Runge and Kutta's step of order 4, then Newton's method; None if the two do not agree."""
        h = end - start
        moving = self.path(np.array([start, 0.5 * (start + end), end]))
        a = self._velocity(q, moving.twist[0])
        b = self._velocity(self.chain.moved(q, 0.5 * h * a), moving.twist[1])
        c = self._velocity(self.chain.moved(q, 0.5 * h * b), moving.twist[1])
        d = self._velocity(self.chain.moved(q, h * c), moving.twist[2])
        q = self.chain.moved(q, h / 6.0 * (a + 2.0 * (b + c) + d))
        way, size = 0.0, np.inf
        for _ in range(8):
            pose, jacobian = self.chain.function(q)
            error = error_of(pose, moving.pose[2])[self.rows]
            before, size = size, float(np.abs(error).max())
            if size > 0.5 * before or not np.isfinite(size):
                return None
            correction = self._least(jacobian, error)
            way += float(np.abs(correction).max())
            q = self.chain.moved(q, correction)
            if size <= self.tolerance:  # and one step better
                return q if way <= self.allowed else None
        return None

    def _velocity(self, q: FloatArray, twist: FloatArray) -> FloatArray:
        return self._least(self.chain.function(q)[1], twist[self.rows])

    def _least(self, jacobian: FloatArray, wanted: FloatArray) -> FloatArray:
        """The smallest rates that J takes to what is wanted."""
        weighed = jacobian[self.rows] * self.weights[:, None]
        return np.linalg.lstsq(weighed, wanted * self.weights, rcond=FEWEST)[0].astype(float, copy=False)

    def rates(self, q: FloatArray, moving: FrameMotion) -> tuple[FloatArray, FloatArray, np.ndarray]:
        """qd and qdd (k, nv), and whether (k,) they give the path's twist and acceleration.

        The smallest velocities are qd = J^T y with J J^T y = v. Their derivative has the part J^+ (a - dJ qd), which
        the path needs, and of dJ^T y the part that it does not notice.
        """
        weight = self.weights[:, None]
        jacobian = self.robot.jacobian(q, self.chain.frame)[:, self.rows] * weight
        left, sizes, right = np.linalg.svd(jacobian, full_matrices=False)
        kept = sizes > FEWEST * sizes.max(axis=1, keepdims=True, initial=0.0)
        inverse = np.where(kept, 1.0 / np.where(kept, sizes, 1.0), 0.0)[..., None]
        across, back = np.swapaxes(left, 1, 2), np.swapaxes(right, 1, 2)
        twist, acceleration = (x[:, self.rows, None] * weight for x in (moving.twist, moving.acceleration))
        qd = back @ (inverse * (across @ twist))
        change = self.robot.jacobian_derivative(q, qd[..., 0], self.chain.frame)[:, self.rows] * weight
        needed = acceleration - change @ qd
        unnoticed = np.swapaxes(change, 1, 2) @ (left @ (inverse**2 * (across @ twist)))
        # where kept is False the path notices, but the arm cannot: nothing is added there either
        unnoticed -= back @ (right @ unnoticed)
        qdd = back @ (inverse * (across @ needed)) + unnoticed
        off = np.abs(jacobian @ qd - twist).max(axis=(1, 2)) > 1e-8 * np.abs(twist).max(axis=(1, 2))
        size = np.abs(acceleration).max(axis=(1, 2)) + np.abs(change @ qd).max(axis=(1, 2))
        off |= np.abs(jacobian @ qdd - needed).max(axis=(1, 2)) > 1e-8 * size
        return qd[..., 0], qdd[..., 0], ~off

    def why(self, q: FloatArray, time: float) -> str:
        """Why the branch of q ends before `time`: no solution there at all, or none that hangs together with q."""
        found = inverse_kinematics(
            self.robot, self.path(time).pose, self.chain.frame, q, position_only=self.position_only,
            limits=self.limits, tolerance=self.tolerance,
        )  # fmt: skip
        return SINGULAR if found.solved else str(found.reason)
