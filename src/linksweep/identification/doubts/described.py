"""Measured torques against those of the robot's model: their sign, their unit, and the unit of time.

Joint by joint, torques are explained by those of the model, gravity and inertia apart, beside what the joint's own
drive takes: tau = s_g g(q) + s_i (M qdd + c) + drive. A model that is roughly right has factors near 1. Torques in
another unit have other factors, the same ones in all joints. If t is k times too long, accelerations are k^2 times too
small and s_i is k^2 s_g. Standard errors come from blocks of the log (`blocks.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linksweep.identification.doubts.blocks import bar, error_of_sum
from linksweep.identification.doubts.evidence import Evidence, Pieces

MOST = 6_000  # rows
CLEAR = 4.0  # standard errors: a factor that is less certain does not count
MODEL = 0.25, 0.5  # spread of the logarithms of s_g and s_i from joint to joint that a good model has
UNIT, TIME = 1.6, 4.0  # factors of torques, and of inertia against gravity, that the model may be wrong by
MARGIN = 3.0  # standard errors


@dataclass(frozen=True)
class Factor:
    """A factor common to all joints: its logarithm and the standard error of that."""

    log: float
    error: float

    @property
    def value(self) -> float:
        return float(np.exp(self.log))

    def beyond(self, factor: float) -> bool:
        """Whether it is clearly more than `factor`, or less than its inverse."""
        return abs(self.log) > np.log(factor) + MARGIN * self.error


@dataclass(frozen=True)
class Described:
    """against: joints whose torques have the other sign. unit: the factor of all torques. inertia: that of s_i by s_g.
    None where they are not known. slight: whether inertia is clearly less than the model's, however small it is.
    """

    against: tuple[int, ...]
    unit: Factor | None
    inertia: Factor | None
    slight: bool


def compared(evidence: Evidence) -> Described | None:
    """None where the model has no inertia."""
    columns, samples, blocks = evidence.grouping.columns, evidence.samples, evidence.blocks
    if not columns.full.has_inertia:
        return None
    rows, block = rows_of(blocks, MOST)
    here = columns.at(samples.q[rows], samples.qd[rows], samples.qdd[rows])
    robot = columns.robot
    gravity = robot.gravity_forces(samples.q[rows])
    whole = robot.inverse_dynamics(samples.q[rows], samples.qd[rows], samples.qdd[rows])
    moving = whole - gravity - samples.qdd[rows] * robot.armature
    tau = samples.tau[rows] - here.known_losses() @ columns.into
    drives = np.array([k for k, column in enumerate(columns.columns) if not column.is_body], int)
    against, found, slight = [], {"g": [], "i": []}, []
    for joint in range(columns.nv):
        used = samples.weight[rows, joint] > 0.0
        if used.sum() < 50:
            continue
        own = here.of_joint(joint, drives)[:, used] if len(drives) else np.empty((0, int(used.sum())))
        own = own[np.abs(own).max(axis=1, initial=0.0) > 0.0]
        steady = np.ones((1, int(used.sum())))
        parts = (gravity[used, joint], moving[used, joint])
        both = np.array([parts[0] + parts[1]])
        factor, error = _factors(np.concatenate([both, own, steady]), tau[used, joint], block[used], 1)
        if factor[0] < -bar(len(blocks), columns.nv) * error[0]:
            against.append(joint)
        factors, errors = _factors(np.concatenate([parts, own, steady]), tau[used, joint], block[used], 2)
        for name, value, its_error in zip("gi", factors, errors, strict=True):
            if value > CLEAR * its_error:
                found[name].append((np.log(value), its_error / value))
        if factors[0] > CLEAR * errors[0] and errors[1] < 0.25 * factors[0] / TIME:
            slight.append(abs(factors[1]) + CLEAR * errors[1] < factors[0] / TIME)
    gravity_factor, inertia_factor = (_common(found[name], spread) for name, spread in zip("gi", MODEL, strict=True))
    unit = gravity_factor or inertia_factor
    inertia = None
    if gravity_factor is not None and inertia_factor is not None:
        inertia = Factor(
            inertia_factor.log - gravity_factor.log, float(np.hypot(inertia_factor.error, gravity_factor.error))
        )
    return Described(tuple(against), unit, inertia, len(slight) >= 2 and sum(slight) > 0.7 * len(slight))


def rows_of(blocks: Pieces, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows at even distances, `most` in all, and the block of each."""
    total = sum(b - a for pieces in blocks for a, b in pieces)
    step = max(1, -(-total // most))
    rows = [np.concatenate([np.arange(a, b, step) for a, b in pieces]) for pieces in blocks]
    return np.concatenate(rows), np.repeat(np.arange(len(blocks)), [len(own) for own in rows])


def _factors(X: np.ndarray, tau: np.ndarray, block: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The first `count` factors of the rows of X that explain tau, and their standard errors."""
    size = np.sqrt(np.sum(np.square(X), axis=1))
    shown = size > 1e-9 * np.sqrt(X.shape[1]) * max(1e-300, float(np.sqrt(np.mean(np.square(tau)))))
    unit = np.where(shown, 1.0 / np.maximum(size, 1e-300), 0.0)
    X = X * unit[:, None]
    sizes, vectors = np.linalg.eigh(X @ X.T)
    inverse = (vectors * np.where(sizes > 1e-9 * sizes[-1], 1.0 / np.maximum(sizes, 1e-300), 0.0)) @ vectors.T
    x = inverse @ (X @ tau)
    rest = tau - x @ X
    moved = (inverse[:count] @ X) * rest  # (count, rows)
    number = int(block.max()) + 1
    each = np.stack([np.bincount(block, own, number) for own in moved], axis=1)
    errors = np.sqrt(np.diag(error_of_sum(each)) * number / max(1, number - 1))
    fixed = np.sum(np.square(vectors[:count, sizes <= 1e-9 * sizes[-1]]), axis=1) < 1e-6
    return x[:count] * unit[:count], np.where(shown[:count] & fixed, errors * unit[:count], np.inf)


def _common(found: list[tuple[float, float]], spread: float) -> Factor | None:
    """The mean of logarithms that scatter by their own errors and those of the model.

    If they scatter by more, the model is not good enough, and the error of the mean grows (R. DerSimonian and N. Laird,
    "Meta-analysis in clinical trials", 1986).
    """
    if not found:
        return None
    logs, errors = np.array(found).T
    weight = 1.0 / (np.square(errors) + spread**2)
    mean = float(weight @ logs / weight.sum())
    excess = float(weight @ np.square(logs - mean)) / max(1, len(logs) - 1)
    return Factor(mean, float(np.sqrt(max(1.0, excess) / weight.sum())))
