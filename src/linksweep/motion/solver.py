"""Levenberg-Marquardt on many poses at once: what has converged drops out, what has not starts again elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .base import FloatArray
from .chains import Chain, Known
from .descent import RAN_OUT, SOLVED, Report


@dataclass
class Task:
    """What is to be reached, and how exactly: targets (N, 4, 4) for a chain."""

    chain: Chain
    targets: FloatArray
    position_only: bool
    limited: bool
    tolerance: float
    iterations: int

    def take(self, which: np.ndarray) -> Task:
        return Task(self.chain, self.targets[which], self.position_only, self.limited, self.tolerance, self.iterations)

    def misses(self, q: FloatArray) -> FloatArray:
        """How far (N, 3) the poses at q are off: angle (rad; 0 if it does not matter), distance (m), and the largest
        error of the constraints (m or rad)."""
        report = self.descended(q, 0)[1]
        angle = 2.0 * np.arcsin(np.minimum(0.5 * report.turn, 1.0))
        return np.stack([angle, report.distance, report.gap], axis=1)

    def descend(self, q: FloatArray) -> Descent:
        """One descent from each start q (N, nq)."""
        start = self.chain.within(q) if self.limited else q
        best, report = self.descended(start, self.iterations)
        lost = np.isnan(report.status)  # numbers that overflow lead nowhere
        if lost.any():
            best[lost] = start[lost]
        return Descent(
            best, report.status == SOLVED, np.where(lost, np.inf, report.cost),
            np.where(lost, 0, report.iterations).astype(int), report.status == RAN_OUT,
        )  # fmt: skip

    def descended(self, q: FloatArray, iterations: int) -> tuple[FloatArray, Report]:
        """The best coordinates of one descent from each start, as they are, and its report."""
        function = self.chain.descent(self.position_only, self.limited)
        best, report = function(self.targets, np.array([self.tolerance, iterations], float), q)
        return best, Report(*report.T)


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
    known = task.chain.known(seed, task.limited, task.position_only)
    far, first = None, q0
    if first is None:
        far = _distances(task, known)
        first = known.q[_nearest(far, 1)[:, 0]]
    q, solved, cost, iterations, moving = task.descend(first)
    used = np.zeros(count, int)
    tried, width, left = 0, 2, np.flatnonzero(~solved)
    far = None if far is None else far[left]
    while tried < restarts and len(left):
        width = min(width, restarts - tried)
        part = task.take(left)
        far = _distances(part, known) if far is None else far
        starts = known.q[_nearest(far, width)]
        if q0 is not None:  # joints that do not carry the frame stay where they were put
            starts = np.where(task.chain.moves, starts, q0[left][:, None])
        again = part.take(np.repeat(np.arange(len(left)), width)).descend(starts.reshape(-1, starts.shape[-1]))
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
        open_still = ~solved[left]
        left, far = left[open_still], far[open_still]
    return Found(q, solved, iterations, used, moving)


def _distances(task: Task, known: Known) -> np.ndarray:
    """How far (N, poses) each known pose is from each target: half the square, up to a constant of the target."""
    wanted = task.chain.features(task.targets, task.position_only)
    far = np.empty((len(wanted), len(known.q)), np.float32)
    # products this small stay in one thread of the linear algebra library, whose others cost more than they save
    for i in range(0, len(wanted), 32):
        np.matmul(wanted[i : i + 32], known.features.T, out=far[i : i + 32])
    return np.subtract(known.half, far, out=far)


def _nearest(far: np.ndarray, count: int) -> np.ndarray:
    """The `count` nearest (N, count), nearest first. From then on they are far away."""
    found, every = np.empty((len(far), count), int), np.arange(len(far))
    for k in range(count):
        found[:, k] = far.argmin(axis=1)
        far[every, found[:, k]] = np.inf
    return found
