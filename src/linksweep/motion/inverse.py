"""Inverse kinematics: joint coordinates at which a frame has a target pose, for many targets at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.support.checks import real_number, whole_number
from linksweep.support.messages import shown

from ..robot.robot import Robot, checked_robot
from .cartesian import checked_poses
from .descents import RAN_OUT, SOLVED, STARTS, Chain, Report, Samples
from .trajectories import FloatArray, finite

CONVERGED = "converged"
OUT_OF_REACH = "out of reach"
ORIENTATION = "orientation"
LIMITS = "limits"
NOT_CONVERGED = "did not converge"
CONSTRAINTS = "constraints"
_TRUE, _NONE, _CONVERGED = np.True_, np.int64(0), np.str_(CONVERGED)  # as arrays of no dimension give them
BLOCK = 2048  # targets at once, whose arrays fit into the processor's caches


@dataclass(frozen=True)
class InverseKinematics:
    """Results of inverse kinematics for targets of shape (...). For one target, all fields but q are NumPy scalars.

    Attributes
    ----------
    q : (..., nq)
        The solution, or the nearest configuration that the search found where `solved` is False.
    solved : (...)
        Whether the pose and the constraints are met to the tolerance.
    position_error, rotation_error : (...)
        Distance (m) and angle (rad) between the frame and its target at q.
    iterations, restarts : (...)
        Iterations of all descents, and number of further starts.
    reason : (...)
        "converged", or why there is no solution. "out of reach": the position cannot be reached. "orientation": the
        position can be reached, but not with this orientation. "limits": there is a solution, but outside the joint
        limits. "constraints": the constraints of the robot cannot be satisfied. "did not converge": the error was
        still decreasing when the iterations ended. These are findings of a search, not proofs, except for a target
        farther away than the length of the arm.
    constraint_error : (...)
        Largest residual of the robot's constraints at q (m or rad), 0 without constraints.
    """

    q: FloatArray
    solved: np.ndarray
    position_error: FloatArray
    rotation_error: FloatArray
    iterations: np.ndarray
    restarts: np.ndarray
    reason: np.ndarray
    constraint_error: FloatArray


def inverse_kinematics(
    robot: Robot,
    target: ArrayLike,
    frame: str,
    q0: ArrayLike | None = None,
    *,
    position_only: bool = False,
    limits: bool = True,
    tolerance: float = 1e-10,
    restarts: int = 62,
    iterations: int = 30,
    seed: int = 0,
) -> InverseKinematics:
    """Return coordinates at which a frame has the target poses, by damped least squares with restarts.

    A target that cannot be reached is not an error: see `InverseKinematics`. Constraints of the robot are satisfied to
    the same tolerance, and the joints that they couple move with the frame.

    Parameters
    ----------
    robot : Robot
    target : (..., 4, 4)
        Poses in the base frame; with `position_only` also points (..., 3).
    frame : one of `robot.frame_names`
    q0 : (..., nq)
        Initial guess. The solution near it is returned, and joints that do not move the frame stay there. By default
        the search starts from the nearest of a number of random configurations.
    position_only : bool
        Ignore the orientation.
    limits : bool
        Stay within the joint limits.
    tolerance : float
        In m and rad.
    restarts : int
        Number of further starts for a target (0: q0 only).
    iterations : int
        Maximum number of iterations of each start.
    seed : int
        Seed of the random configurations.

    Returns
    -------
    InverseKinematics

    Examples
    --------
    >>> import linksweep as ls
    >>> robot = ls.robots.puma560()
    >>> q = [0.1, -0.5, 0.4, 0.2, 0.6, -0.3]
    >>> result = inverse_kinematics(robot, robot.pose(q, robot.ee), robot.ee, q0=robot.neutral())
    >>> bool(result.solved), str(result.reason)
    (True, 'converged')
    """
    if q0 is not None:
        result = _at_once(robot, target, frame, q0, (position_only, limits), (tolerance, restarts, iterations, seed))
        if result is not None:
            return result
    check_flags(position_only=position_only, limits=limits)
    _check_numbers(tolerance, restarts, iterations, seed)
    targets = _targets(target, position_only)
    chain = chain_of(robot, frame)
    starts = None if q0 is None else starts_of(robot, q0, targets.shape[:-2])
    shape = targets.shape[:-2]
    flat = Task(chain, targets.reshape(-1, 4, 4), position_only, limits, float(tolerance), iterations)
    parts = [
        _block(flat.take(np.arange(i, min(i + BLOCK, len(flat.targets)))), starts, i, restarts, seed)
        for i in range(0, max(len(flat.targets), 1), BLOCK)
    ]
    arrays = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    return InverseKinematics(arrays[0].reshape(*shape, robot.nq), *(array.reshape(shape)[()] for array in arrays[1:]))


def _at_once(
    robot: Robot,
    target: ArrayLike,
    frame: str,
    q0: ArrayLike,
    flags: tuple[bool, bool],
    numbers: tuple[float, int, int, int],
) -> InverseKinematics | None:
    """Return the result for one target near its start, or None if the general call path is needed.

    The compiled descent checks everything that the general path would: see `Report`.
    """
    tolerance, restarts, iterations, seed = numbers
    if not (type(flags[0]) is type(flags[1]) is bool and type(restarts) is type(iterations) is type(seed) is int):
        return None  # True is 1 to a dictionary
    try:
        chain = robot.__dict__["_chains"][frame]
        descent, options = chain.at_once[flags], chain.options.get(numbers)
    except (KeyError, TypeError, AttributeError):  # the first call for this frame, or an invalid argument
        return None
    if options is None:
        _check_numbers(*numbers)
        chain.options.clear()
        options = chain.options[numbers] = np.array([tolerance, iterations], float)
    if type(target) is not np.ndarray or type(q0) is not np.ndarray or target.shape != (4, 4) or q0.shape != chain.size:
        return None
    q, report = descent(target, options, q0)
    status, distance, turn, number, _, plain, gap = report.tolist()
    if status != SOLVED or plain != 1.0:
        return None
    angle = 2.0 * math.asin(0.5 * turn)
    if angle > tolerance:
        return None
    result = object.__new__(InverseKinematics)  # the constructor of a frozen dataclass takes longer than the search
    result.__dict__.update(
        q=q, solved=_TRUE, position_error=np.float64(distance), rotation_error=np.float64(angle),
        iterations=np.int64(number), restarts=_NONE, reason=_CONVERGED, constraint_error=np.float64(gap),
    )  # fmt: skip
    return result


def chain_of(robot: Robot, frame: str) -> Chain:
    """Return the chain of a frame, made once per robot."""
    chains = checked_robot(robot, "inverse kinematics").__dict__.setdefault("_chains", {})
    if not isinstance(frame, str) or frame not in chains:
        robot.compile(("pose", frame))  # raises ArgumentError for an unknown frame
        chains[frame] = Chain(robot, frame)
    return chains[frame]


def _block(task: Task, q0: FloatArray | None, at: int, restarts: int, seed: int) -> tuple[np.ndarray, ...]:
    chain, count = task.chain, len(task.targets)
    starts = None if q0 is None else q0[at : at + count]
    search = solve(task, starts, restarts, seed)
    q = chain.unwound(search.q, np.zeros(1) if starts is None else starts, task.limited)
    misses = task.misses(q)
    # the pose at the returned coordinates decides, not the status of the search
    solved = np.all(misses <= task.tolerance, axis=1)
    far = np.flatnonzero(search.solved & ~solved)  # q0 is so many turns away that rounding moves the frame
    if len(far):
        _improve(task, far, chain.unwound(search.q[far], np.zeros(1), task.limited), q, misses, solved)
    reason = np.full(count, CONVERGED, dtype=f"<U{len(NOT_CONVERGED)}")
    if not solved.all():
        failed = np.flatnonzero(~solved)
        reason[failed], others = _reasons(task.take(failed), q[failed], search.moving[failed], restarts, seed)
        reason[_improve(task, failed, others, q, misses, solved)] = CONVERGED
        if chain.constrained:
            _close(task, np.flatnonzero(~solved), q, misses, reason)
    return q, solved, misses[:, 1], misses[:, 0], search.iterations, search.restarts, reason, misses[:, 2]


def _improve(
    task: Task, which: np.ndarray, others: FloatArray, q: FloatArray, misses: FloatArray, solved: np.ndarray
) -> np.ndarray:
    """Replace q[which] by other coordinates where those are solutions; return the indices."""
    there = task.take(which).misses(others)
    good = np.all(there <= task.tolerance, axis=1)
    which = which[good]
    q[which], misses[which], solved[which] = others[good], there[good], True
    return which


def _close(task: Task, failed: np.ndarray, q: FloatArray, misses: FloatArray, reason: np.ndarray) -> None:
    """Replace q[failed] by nearby coordinates that satisfy the constraints; where there are none, set the reason."""
    near, closes = task.chain.closed(q[failed], task.limited)
    which = failed[closes]
    q[which], misses[which] = near[closes], task.take(which).misses(near[closes])
    reason[failed[~closes]] = CONSTRAINTS


def _reasons(task: Task, q: FloatArray, moving: np.ndarray, restarts: int, seed: int) -> tuple[np.ndarray, FloatArray]:
    """Return why these targets failed, by relaxed searches: without limits, then for the position alone.

    Also return the solutions without limits, moved into them: they are solutions after all where they lie on a limit.
    """
    chain, others = task.chain, q.copy()
    reason = np.where(moving, NOT_CONVERGED, OUT_OF_REACH)
    too_far = np.linalg.norm(task.targets[:, :3, 3] - chain.root, axis=1) > chain.reach + task.tolerance
    reason[too_far] = OUT_OF_REACH

    def can(which: np.ndarray, position_only: bool, limited: bool) -> tuple[np.ndarray, FloatArray]:
        easier = Task(chain, task.targets[which], position_only, limited, task.tolerance, task.iterations)
        result = solve(easier, q[which], restarts, seed)
        return which[result.solved], result.q[result.solved]

    open_cases = np.flatnonzero(~too_far)
    if task.limited and chain.bounded and len(open_cases):
        beyond, free = can(open_cases, task.position_only, False)
        reason[beyond], others[beyond] = LIMITS, chain.unwound(free, q[beyond], True)
    open_cases = open_cases[reason[open_cases] == OUT_OF_REACH]
    if not task.position_only and len(open_cases):
        reason[can(open_cases, True, task.limited)[0]] = ORIENTATION
    return reason, others


def _targets(target: ArrayLike, position_only: bool) -> FloatArray:
    if position_only:
        points = finite("inverse_kinematics", "target", target)
        if points.ndim and points.shape[-1] == 3:
            poses = np.broadcast_to(np.eye(4), (*points.shape[:-1], 4, 4)).copy()
            poses[..., :3, 3] = points
            return poses
    return checked_poses("inverse_kinematics", "target", target)


def starts_of(robot: Robot, q0: ArrayLike, shape: tuple[int, ...], who: str = "inverse_kinematics") -> FloatArray:
    q = finite(who, "q0", q0)
    try:
        if q.shape[-1:] != (robot.nq,):
            raise ValueError
        whole = np.broadcast_to(q, (*shape, robot.nq))
    except ValueError:
        raise ArgumentError(
            f"{who} got q0 of shape {q.shape}, expected ({robot.nq},) or one row per target, {(*shape, robot.nq)}."
        ) from None
    return robot.normalize(whole.reshape(-1, robot.nq))


def check_flags(**flags: object) -> None:
    """Raise ArgumentError unless all are True or False."""
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ArgumentError(f"{name} is {shown(value)}, expected True or False.")


def _check_numbers(tolerance: float, restarts: int, iterations: int, seed: int) -> None:
    real_number("inverse_kinematics: tolerance", tolerance, above=0.0)
    whole_number("inverse_kinematics: restarts", restarts, at_least=0, at_most=STARTS - 1)
    whole_number("inverse_kinematics: iterations", iterations, at_least=1, at_most=10**6)
    whole_number("inverse_kinematics: seed", seed, at_least=0, at_most=2**63)


# ---- Descents from many starts: solved targets drop out, the others start again elsewhere


@dataclass
class Task:
    """Targets (N, 4, 4) for a chain, and the options of the search."""

    chain: Chain
    targets: FloatArray
    position_only: bool
    limited: bool
    tolerance: float
    iterations: int

    def take(self, which: np.ndarray) -> Task:
        return Task(self.chain, self.targets[which], self.position_only, self.limited, self.tolerance, self.iterations)

    def misses(self, q: FloatArray) -> FloatArray:
        """Return the errors (N, 3) at q: angle (rad; 0 for positions only), distance (m), constraint residual."""
        report = self.descended(q, 0)[1]
        angle = 2.0 * np.arcsin(np.minimum(0.5 * report.turn, 1.0))
        return np.stack([angle, report.distance, report.gap], axis=1)

    def descend(self, q: FloatArray) -> Descent:
        """Run one descent from each start q (N, nq), clipped to the limits."""
        start = self.chain.within(q) if self.limited else q
        best, report = self.descended(start, self.iterations)
        lost = np.isnan(report.status)  # overflow
        if lost.any():
            best[lost] = start[lost]
        return Descent(
            best, report.status == SOLVED, np.where(lost, np.inf, report.cost),
            np.where(lost, 0, report.iterations).astype(int), report.status == RAN_OUT,
        )  # fmt: skip

    def descended(self, q: FloatArray, iterations: int) -> tuple[FloatArray, Report]:
        """Return the best coordinates of one descent from each start, and its report."""
        function = self.chain.descent(self.position_only, self.limited)
        best, report = function(self.targets, np.array([self.tolerance, iterations], float), q)
        return best, Report(*report.T)


@dataclass
class Search:
    """Result of descents from several starts: the best coordinates for each target, and whether they are solutions."""

    q: FloatArray
    solved: np.ndarray
    iterations: np.ndarray
    restarts: np.ndarray
    moving: np.ndarray  # the error of the best descent was still decreasing when it ran out of iterations


class Descent(NamedTuple):
    """End of the descent from each start: coordinates, whether they are solutions, squared error (0 where solved),
    iterations, and whether the error was still decreasing.
    """

    q: FloatArray
    solved: np.ndarray
    cost: FloatArray
    iterations: np.ndarray
    moving: np.ndarray


def solve(task: Task, q0: FloatArray | None, restarts: int, seed: int) -> Search:
    """Start from q0 (N, nq), or from the nearest sample, then from more and more samples at once."""
    count = len(task.targets)
    samples = task.chain.samples(seed, task.limited, task.position_only)
    far, first = None, q0
    if first is None:
        far = _distances(task, samples)
        first = samples.q[_nearest(far, 1)[:, 0]]
    q, solved, cost, iterations, moving = task.descend(first)
    used = np.zeros(count, int)
    tried, width, left = 0, 2, np.flatnonzero(~solved)
    far = None if far is None else far[left]
    while tried < restarts and len(left):
        width = min(width, restarts - tried)
        part = task.take(left)
        far = _distances(part, samples) if far is None else far
        starts = samples.q[_nearest(far, width)]
        if q0 is not None:  # joints that do not move the frame stay at q0
            starts = np.where(task.chain.moves, starts, q0[left][:, None])
        again = part.take(np.repeat(np.arange(len(left)), width)).descend(starts.reshape(-1, starts.shape[-1]))
        cost_again = again.cost.reshape(-1, width)
        best = cost_again.argmin(axis=1)
        rows = np.arange(len(left)) * width + best
        better = cost_again[np.arange(len(left)), best] < cost[left]
        index, source = left[better], rows[better]
        q[index], solved[index], cost[index] = again.q[source], again.solved[source], again.cost[source]
        moving[index] = again.moving[source]
        iterations[left] += again.iterations.reshape(-1, width).sum(axis=1)
        used[left] = tried + np.where(solved[left], best + 1, width)
        tried, width = tried + width, 2 * width
        open_still = ~solved[left]
        left, far = left[open_still], far[open_still]
    return Search(q, solved, iterations, used, moving)


def _distances(task: Task, samples: Samples) -> np.ndarray:
    """Return half the squared distance (N, samples) of targets and samples, up to a constant of the target."""
    features = task.chain.features(task.targets, task.position_only)
    far = np.empty((len(features), len(samples.q)), np.float32)
    # products this small run in one thread of BLAS, where more threads would cost more than they save
    for i in range(0, len(features), 32):
        np.matmul(features[i : i + 32], samples.features.T, out=far[i : i + 32])
    return np.subtract(samples.half, far, out=far)


def _nearest(far: np.ndarray, count: int) -> np.ndarray:
    """Return the `count` nearest samples (N, count), nearest first, and set their distances to infinity."""
    nearest, rows = np.empty((len(far), count), int), np.arange(len(far))
    for k in range(count):
        nearest[:, k] = far.argmin(axis=1)
        far[rows, nearest[:, k]] = np.inf
    return nearest
