"""Levenberg-Marquardt on many poses at once: what has converged drops out, what has not starts again elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .base import FloatArray
from .chains import Chain, error_of

DAMPING = 0.1  # of the squared error: T. Sugihara 2011, with which no step needs to be taken back
FLOOR = 1e-12  # of the mean squared Jacobian: keeps the matrix regular where the arm is singular
TINY = 1e-60  # and where there is no Jacobian at all
NEAR = 1e-6  # squared error: slower than this so near, it is the arm that is nearly singular
LARGEST_STEP = 1.0  # rad or m in one iteration
STALE = 6  # iterations without a tenth less error before a start is given up


@dataclass
class Task:
    """What is to be reached, and how exactly: targets (N, 4, 4) for a chain."""

    chain: Chain
    targets: FloatArray
    position_only: bool
    limited: bool
    tolerance: float
    iterations: int

    def rows(self) -> slice:
        return slice(3, 6) if self.position_only else slice(0, 6)

    def take(self, which: np.ndarray) -> Task:
        return Task(self.chain, self.targets[which], self.position_only, self.limited, self.tolerance, self.iterations)

    def misses(self, q: FloatArray) -> FloatArray:
        """How far (N, 2) the poses at q are off: angle (rad; 0 if it does not matter) and distance (m)."""
        return self.sizes(error_of(self.chain.function(q)[0], self.targets))

    def sizes(self, error: FloatArray) -> FloatArray:
        """Angle and distance (..., 2) of errors (..., 6)."""
        sizes = np.sqrt((error * error).reshape(*error.shape[:-1], 2, 3).sum(axis=-1))
        if self.position_only:
            sizes[..., 0] = 0.0
        return sizes


@dataclass
class Found:
    """The best that was found for each target: coordinates, whether they do, and what it took."""

    q: FloatArray
    solved: np.ndarray
    iterations: np.ndarray
    restarts: np.ndarray
    moving: np.ndarray  # the best start was still getting nearer when it ran out of iterations


class Descent(NamedTuple):
    """Where each start came to: coordinates, whether they do, squared error (0 where solved), iterations, and whether
    it was still getting nearer.
    """

    q: FloatArray
    solved: np.ndarray
    cost: FloatArray
    iterations: np.ndarray
    moving: np.ndarray


def solve(task: Task, q0: FloatArray | None, restarts: int, seed: int) -> Found:
    """Start from q0 (N, nq), or from the nearest known pose, then from more and more of the known poses at once."""
    count = len(task.targets)
    table, poses = task.chain.starts(seed, task.limited)
    first = q0 if q0 is not None else table[_nearest(task, poses, 1)[:, 0]]
    q, solved, cost, iterations, moving = descend(task, first)
    used = np.zeros(count, int)
    tried, width = 0, 2
    while tried < restarts and not solved.all():
        left = np.flatnonzero(~solved)
        width = min(width, restarts - tried)
        part = task.take(left)
        order = _nearest(part, poses, tried + width + 1)[:, tried + 1 - (q0 is not None) :][:, :width]
        starts = table[order]
        if q0 is not None:  # joints that do not carry the frame stay where they were put
            starts = np.where(task.chain.moves, starts, q0[left][:, None])
        again = descend(part.take(np.repeat(np.arange(len(left)), width)), starts.reshape(-1, starts.shape[-1]), width)
        cost_again = again.cost.reshape(-1, width)
        best = cost_again.argmin(axis=1)
        rows = np.arange(len(left)) * width + best
        better = cost_again[np.arange(len(left)), best] < cost[left]
        place, source = left[better], rows[better]
        q[place], solved[place], cost[place] = again.q[source], again.solved[source], again.cost[source]
        moving[place] = again.moving[source]
        iterations[left] += again.iterations.reshape(-1, width).sum(axis=1)
        used[left] = tried + np.where(solved[left], best + 1, width)
        tried, width = tried + width, 2 * width
    return Found(q, solved, iterations, used, moving)


def descend(task: Task, q: FloatArray, siblings: int = 1) -> Descent:
    """One descent from each start q (N, nq).

    siblings: so many starts in a row are for the same target, and all stop when one of them gets there.
    """
    chain, rows = task.chain, task.rows()
    weights = np.array([1.0, 1.0, 1.0, *[1.0 / chain.scale] * 3])[rows]
    count = len(q)
    if task.limited:
        q = chain.within(q)
    best, lowest = q.copy(), np.full(count, np.inf)
    solved, iterations, moving = np.zeros(count, bool), np.zeros(count, int), np.zeros(count, bool)
    active, targets = np.arange(count), task.targets
    mark, since = np.full(count, np.inf), np.zeros(count, int)
    served = np.zeros(count // siblings, bool)
    for number in range(task.iterations + 1):
        pose, jacobian = chain.function(q)
        error = error_of(pose, targets)
        there = (task.sizes(error) <= task.tolerance).all(axis=1)
        error = error[:, rows] * weights
        square = (error * error).sum(axis=1)
        iterations[active] = number
        closer = square < lowest[active]
        best[active[closer]], lowest[active[closer]] = q[closer], square[closer]
        since = np.where(square < 0.9 * mark, 0, since + 1)
        mark = np.minimum(mark, square)
        stop = there | (since >= STALE)
        if there.any():
            arrived = active[there]
            best[arrived], lowest[arrived], solved[arrived] = q[there], 0.0, True
            if siblings > 1:
                served[arrived // siblings] = True
                stop |= served[active // siblings]
        if number == task.iterations:
            moving[active[~stop]] = True
            break
        if stop.any():
            keep = ~stop
            active, q, targets, mark, since = active[keep], q[keep], targets[keep], mark[keep], since[keep]
            error, square, jacobian = error[keep], square[keep], jacobian[keep]
            if not len(active):
                break
        jacobian = jacobian[:, rows] * weights[:, None]
        if task.limited and len(chain.stops):
            jacobian[..., chain.stopped_rates] *= ~_blocked(chain, q, jacobian, error)[:, None]
        step = _step(jacobian, error, DAMPING * square)
        slow = (since > 1) & (square < NEAR)
        if slow.any():
            step[slow] = _careful_step(jacobian[slow], error[slow], DAMPING * square[slow])
        largest = np.abs(step).max(axis=1, keepdims=True)
        q = chain.moved(q, step * np.minimum(1.0, LARGEST_STEP / np.maximum(largest, LARGEST_STEP)))
        if task.limited:
            q = chain.within(q)
    return Descent(best, solved, lowest, iterations, moving)


def _step(jacobian: FloatArray, error: FloatArray, damping: FloatArray) -> FloatArray:
    """J^T (J J^T + damping)^-1 error (N, nv)."""
    across, diagonal = np.swapaxes(jacobian, 1, 2), np.arange(error.shape[1])
    matrix = jacobian @ across
    mean = matrix[:, diagonal, diagonal].sum(axis=1) / len(diagonal)
    matrix[:, diagonal, diagonal] += (damping + FLOOR * mean + TINY)[:, None]
    return (across @ np.linalg.solve(matrix, error[..., None]))[..., 0]


def _careful_step(jacobian: FloatArray, error: FloatArray, damping: FloatArray) -> FloatArray:
    """The same step by singular values: J J^T loses those that are below 1e-8 of the largest."""
    left, sizes, right = np.linalg.svd(jacobian, full_matrices=False)
    along = (error[:, None] @ left)[:, 0] * sizes / (sizes**2 + damping[:, None] + TINY)
    return (along[:, None] @ right)[:, 0]


def _blocked(chain: Chain, q: FloatArray, jacobian: FloatArray, error: FloatArray) -> np.ndarray:
    """Which of the rates with stops (N, stops) would lead out of a limit at which their joint already stands."""
    at, wish = q[:, chain.stops], (error[:, None] @ jacobian[..., chain.stopped_rates])[:, 0]
    upper, lower = chain.upper[chain.stops], chain.lower[chain.stops]
    return ((at >= upper) & (wish > 0.0)) | ((at <= lower) & (wish < 0.0))


def _nearest(task: Task, poses: FloatArray, count: int) -> np.ndarray:
    """For each target the `count` nearest of the poses, nearest first."""
    known, wanted = _features(task, poses), _features(task, task.targets)
    half = 0.5 * (known * known).sum(axis=1)
    found = np.empty((len(wanted), count), int)
    # products this small stay in one thread of the linear algebra library, whose others cost more than they save
    for i in range(0, len(wanted), 32):
        far = half - wanted[i : i + 32] @ known.T  # half the squared distance, up to a constant of the target
        if count == 1:
            found[i : i + 32, 0] = far.argmin(axis=1)
        else:
            near = np.argpartition(far, min(count, far.shape[1] - 1), axis=1)[:, :count]
            order = np.take_along_axis(far, near, axis=1).argsort(axis=1)
            found[i : i + 32] = np.take_along_axis(near, order, axis=1)
    return found


def _features(task: Task, poses: FloatArray) -> np.ndarray:
    """Poses as vectors whose distance is that of the poses, in single precision: only an order is wanted."""
    places = poses[:, :3, 3] / task.chain.scale
    if task.position_only:
        return places.astype(np.float32)
    turned = poses[:, :3, :3].reshape(-1, 9) * np.sqrt(0.5)
    return np.concatenate([places, turned], axis=1).astype(np.float32)
