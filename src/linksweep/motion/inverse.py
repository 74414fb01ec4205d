"""Inverse kinematics: the joint coordinates that put a frame where it is wanted, for many poses at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.support.messages import shown

from ..robot.robot import Robot, checked_robot
from .base import FloatArray, finite
from .chains import STARTS, Chain
from .descent import SOLVED
from .poses import checked_poses
from .solver import Found, Task, solve

CONVERGED = "converged"
OUT_OF_REACH = "out of reach"
ORIENTATION = "orientation"
LIMITS = "limits"
NOT_CONVERGED = "did not converge"
CONSTRAINTS = "constraints"
_TRUE, _NONE, _CONVERGED = np.True_, np.int64(0), np.str_(CONVERGED)  # as arrays of no dimension give them
BLOCK = 2048  # targets at once: the arrays stay in the processor's caches


@dataclass(frozen=True)
class InverseKinematics:
    """What was found for targets of shape (...).

    q (..., nq): the solution, or the nearest pose that was found where `solved` (...) is False. position_error (m) and
    rotation_error (rad): how far the frame is off there. iterations, restarts: what it took. reason: "converged", or
    why not: "out of reach", the position alone cannot be reached either; "orientation", the position can, but not with
    this orientation; "limits", there is a solution, but outside the joint limits; "constraints", the constraints of the
    robot could not be met wherever the frame is; "did not converge", the search was still getting nearer when it ended.
    All but a target farther off than the arm is long are findings of the search, not proofs. constraint_error: the
    largest error of the robot's constraints (m or rad) at q, 0 for a robot without. Of one target all but q are NumPy's
    scalars.
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
    """Coordinates at which the frame stands at the targets (..., 4, 4), poses in the base frame.

    q0 (..., nq): where to start, which finds the solution near it and keeps joints that do not carry the frame; None:
    from the nearest of a number of random poses. position_only: any orientation will do; targets may then be points
    (..., 3). limits: stay within the joint limits. tolerance: in m and rad. restarts: how many further starts a target
    gets (0: q0 only). iterations: of each start. seed: of the random poses. A target that cannot be reached is no
    error: see `InverseKinematics`.

    The constraints of a robot are met to the same tolerance; joints that they move are moved with the frame.
    """
    if q0 is not None:
        found = _at_once(robot, target, frame, q0, (position_only, limits), (tolerance, restarts, iterations, seed))
        if found is not None:
            return found
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
    """The answer to one target near its start, or None where anything else is asked for or comes out.

    Machine code looks for all that the checks of the longer way would find: see `descent.Report`.
    """
    tolerance, restarts, iterations, seed = numbers
    if not (type(flags[0]) is type(flags[1]) is bool and type(restarts) is type(iterations) is type(seed) is int):
        return None  # True is 1 to a dictionary
    try:
        chain = robot.__dict__["_chains"][frame]
        descent, options = chain.at_once[flags], chain.options.get(numbers)
    except (KeyError, TypeError, AttributeError):  # the first call for this frame, or something to be explained
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
    found = object.__new__(InverseKinematics)  # frozen: its own constructor takes longer than the search
    found.__dict__.update(
        q=q, solved=_TRUE, position_error=np.float64(distance), rotation_error=np.float64(angle),
        iterations=np.int64(number), restarts=_NONE, reason=_CONVERGED, constraint_error=np.float64(gap),
    )  # fmt: skip
    return found


def chain_of(robot: Robot, frame: str) -> Chain:
    """The chain of a frame, made once per robot."""
    known = checked_robot(robot, "inverse kinematics").__dict__.setdefault("_chains", {})
    if not isinstance(frame, str) or frame not in known:
        robot.compile(("pose", frame))  # says which frames there are, should this be none
        known[frame] = Chain(robot, frame)
    return known[frame]


def _block(task: Task, q0: FloatArray | None, at: int, restarts: int, seed: int) -> tuple[np.ndarray, ...]:
    chain, count = task.chain, len(task.targets)
    starts = None if q0 is None else q0[at : at + count]
    found = solve(task, starts, restarts, seed)
    q = chain.unwound(found.q, np.zeros(1) if starts is None else starts, task.limited)
    misses = task.misses(q)
    # what counts is the pose of the coordinates that are returned, whatever the search believed
    solved = np.all(misses <= task.tolerance, axis=1)
    far = np.flatnonzero(found.solved & ~solved)  # so many turns away, near q0, that rounding moves the frame
    if len(far):
        _improve(task, far, chain.unwound(found.q[far], np.zeros(1), task.limited), q, misses, solved)
    reason = np.full(count, CONVERGED, dtype=f"<U{len(NOT_CONVERGED)}")
    if not solved.all():
        failed = np.flatnonzero(~solved)
        reason[failed], others = _reasons(task.take(failed), q[failed], found.moving[failed], restarts, seed)
        reason[_improve(task, failed, others, q, misses, solved)] = CONVERGED
        if chain.constrained:
            _close(task, np.flatnonzero(~solved), q, misses, reason)
    return q, solved, misses[:, 1], misses[:, 0], found.iterations, found.restarts, reason, misses[:, 2]


def _improve(
    task: Task, which: np.ndarray, others: FloatArray, q: FloatArray, misses: FloatArray, solved: np.ndarray
) -> np.ndarray:
    """Put other coordinates in the place of q[which] where they are solutions; says where they were."""
    there = task.take(which).misses(others)
    good = np.all(there <= task.tolerance, axis=1)
    which = which[good]
    q[which], misses[which], solved[which] = others[good], there[good], True
    return which


def _close(task: Task, failed: np.ndarray, q: FloatArray, misses: FloatArray, reason: np.ndarray) -> None:
    """Put coordinates near q[failed] in their place that meet the constraints; where there are none, that is why."""
    near, closes = task.chain.closed(q[failed], task.limited)
    which = failed[closes]
    q[which], misses[which] = near[closes], task.take(which).misses(near[closes])
    reason[failed[~closes]] = CONSTRAINTS


def _reasons(task: Task, q: FloatArray, moving: np.ndarray, restarts: int, seed: int) -> tuple[np.ndarray, FloatArray]:
    """Why these targets failed, found by asking for less: without limits, then for the position alone.

    And what was found without limits, moved into them: a solution after all where it lies on a limit.
    """
    chain, others = task.chain, q.copy()
    reason = np.where(moving, NOT_CONVERGED, OUT_OF_REACH)
    too_far = np.linalg.norm(task.targets[:, :3, 3] - chain.root, axis=1) > chain.reach + task.tolerance
    reason[too_far] = OUT_OF_REACH

    def can(which: np.ndarray, position_only: bool, limited: bool) -> tuple[np.ndarray, FloatArray]:
        easier = Task(chain, task.targets[which], position_only, limited, task.tolerance, task.iterations)
        result: Found = solve(easier, q[which], restarts, seed)
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
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            raise ArgumentError(f"{name} is {shown(value)}, expected True or False.")


def check_tolerance(tolerance: float, who: str = "inverse_kinematics") -> None:
    size = finite(who, "tolerance", tolerance)
    if size.shape != () or not size > 0.0:
        raise ArgumentError(f"{who} got tolerance {shown(tolerance)}, expected one number above 0.")


def _check_numbers(tolerance: float, restarts: int, iterations: int, seed: int) -> None:
    check_tolerance(tolerance)
    ranges = {"restarts": (restarts, 0, STARTS - 1), "iterations": (iterations, 1, 10**6), "seed": (seed, 0, 2**63)}
    for name, (value, least, most) in ranges.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
            raise ArgumentError(
                f"inverse_kinematics got {name} {shown(value)}, expected a whole number from {least} to {most}."
            )
