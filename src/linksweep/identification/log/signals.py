"""Positions to velocities and accelerations within a band, and which rows a fit can use.

Positions (and measured velocities) are low-passed and differentiated (`filters.py`). Torques are not filtered: a fit
takes sums of rows on both sides of the equation alike (`triangles.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from linksweep.identification.log.filters import REACH, derivative, low_passed
from linksweep.identification.log.reading import Log, Remarks, Stretch
from linksweep.identification.model.columns import Columns

SLOW = 0.02  # of a drive's largest rate: below, the sign of a rate is a guess
RAMP = 0.5  # of that: in predictions, dry friction grows to its full size up to there
FAST = 2.0  # of the velocity limit
SATURATED = 0.99  # of the effort limit
NOTHING = 1e-15  # N m or N
STILL = 2e-3  # of the largest range among the joints


@dataclass(frozen=True)
class Samples:
    """Rows of a log with their derivatives, (rows, nv) each; `weight` 0 leaves a joint's row out.

    bounds: (first, last + 1) of each stretch, in which rows follow each other every `dt` seconds; trajectory: which
    each belongs to.
    """

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    weight: np.ndarray
    bounds: tuple[tuple[int, int], ...]
    trajectory: tuple[int, ...]
    dt: float
    cutoff: float  # Hz; infinite where nothing was filtered

    def __len__(self) -> int:
        return len(self.t)


def samples_of(log: Log, cutoff: float) -> Samples:
    """Every row of the log, with velocities and accelerations; the ends of stretches, where they are guesses, weigh
    0.
    """
    parts = [_with_rates(stretch, log.dt, cutoff) for stretch in log.stretches]
    ends = np.cumsum([0, *(len(stretch.t) for stretch in log.stretches)])
    edge = edge_rows(log.dt, cutoff)
    weight = np.concatenate([stretch.weight for stretch in log.stretches])
    for a, b in pairwise(ends):
        weight[a : a + edge] = weight[max(a, b - edge) : b] = 0.0
    q, qd, qdd = (np.concatenate([part[k] for part in parts]) if len(parts) > 1 else parts[0][k] for k in range(3))
    return Samples(
        np.concatenate([s.t for s in log.stretches]), q, qd, qdd, np.concatenate([s.tau for s in log.stretches]),
        weight, tuple(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True)),
        tuple(s.trajectory for s in log.stretches), log.dt, cutoff,
    )  # fmt: skip


def edge_rows(dt: float, cutoff: float) -> int:
    """Rows at an end of a stretch for which the filter has to guess what was before or comes after."""
    return REACH if not np.isfinite(cutoff) else max(REACH, round(1.5 / (dt * cutoff)))


def _with_rates(one: Stretch, dt: float, cutoff: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q = low_passed(one.q, dt, cutoff)
    if one.qd is None:
        return q, derivative(q, dt, 1), derivative(q, dt, 2)
    qd = low_passed(one.qd, dt, cutoff)
    return q, qd, derivative(qd, dt, 1)


def remark_speeds(columns: Columns, samples: Samples, remarks: Remarks) -> None:
    """Velocities that the drives cannot reach: by the limits of the model."""
    limits = {link.joint.name: link.joint.limits.velocity for link in columns.full.model.links}
    fast = []
    for k, name in enumerate(columns.robot.joint_names):
        peak = float(np.abs(samples.qd[:, k]).max())
        if peak > FAST * limits[name] > 0.0:
            fast.append(f"{name} ({peak:.4g} of {limits[name]:.4g})")
    if fast:
        shown = ", ".join(fast[:4]) + (f" and {len(fast) - 4} more" if len(fast) > 4 else "")
        remarks("speeds", f"velocities are more than twice the model's limit: {shown}; check the units of t and q.")


def leave_out(columns: Columns, samples: Samples, slow: float | None, remarks: Remarks) -> tuple[str, ...]:
    """Set weights to 0 where a row cannot be believed; the names of joints that never move.

    Slow: where a drive with dry friction barely turns, friction is anything between its two sides. Saturated: where
    the torque is at the effort limit, the drive did not do what was asked.
    """
    joints = columns.robot.joint_names
    ranges = np.ptp(samples.q, axis=0)
    still = [k for k in range(len(joints)) if ranges[k] < STILL * max(ranges.max(), 1e-3)]
    if still:
        names = ", ".join(joints[k] for k in still)
        remarks("still", f"{names} never move{'s' * (len(still) == 1)}: what only such a motion shows stays unknown.")
    if columns.has_dry_friction:
        _leave_out_slow(columns, samples, slow, still)
    _leave_out_saturated(columns, samples, remarks)
    idle = [joints[k] for k in range(len(joints)) if not samples.weight[:, k].any() and k not in still]
    if idle:
        remarks("unused", f"no row of {', '.join(idle)} can be used: what only its torque shows stays unknown.")
    return tuple(joints[k] for k in still)


def _leave_out_slow(columns: Columns, samples: Samples, slow: float | None, still: list[int]) -> None:
    acts = columns.acts
    for k in still:
        samples.weight[:, k] = 0.0
    largest = np.zeros(len(acts))
    step = 1 << 16
    for a in range(0, len(samples), step):
        largest = np.maximum(largest, np.abs(columns.drive_rates(samples.qd[a : a + step])).max(axis=0))
    least = np.minimum(SLOW * largest, columns.slowest) if slow is None else np.full(len(acts), float(slow))
    columns.slow = RAMP * least
    for a in range(0, len(samples), step):
        rates = np.abs(columns.drive_rates(samples.qd[a : a + step]))
        for drive, joints in enumerate(acts):
            samples.weight[a : a + step][np.ix_(rates[:, drive] < least[drive], joints)] = 0.0


def _leave_out_saturated(columns: Columns, samples: Samples, remarks: Remarks) -> None:
    described = {link.joint.name: link.joint.limits.effort for link in columns.full.model.links}
    shares, flat = {}, []
    for k, name in enumerate(columns.robot.joint_names):
        column = samples.tau[:, k]
        if np.ptp(column) < NOTHING:
            samples.weight[:, k] = 0.0
            flat.append(f"{name} ({column[0]:.4g})")
            continue
        at = np.zeros(len(column), bool)
        if np.abs(column).max() < 2.0 * described[name]:  # else the limit, or the unit, is not what it says
            at |= np.abs(column) >= SATURATED * described[name]
        for extreme in (column.max(), column.min()):  # clipped: the same extreme value for many rows on end
            level = column == extreme
            if extreme != 0.0 and _longest_run(level) >= max(8, 2e-3 * len(column)):
                at |= level
        if at.any():
            samples.weight[at, k] = 0.0
            shares[name] = at.mean()
    if flat:
        remarks("flat", f"torques never change and are left out, as if not measured: {', '.join(flat)}.")
    if shares:
        listed = ", ".join(f"{name} {100 * share:.2g} %" for name, share in shares.items())
        remarks("saturated", f"rows at the limit of torque were left out: {listed}.")


def _longest_run(flags: np.ndarray) -> int:
    if not flags.any():
        return 0
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return int((edges[1::2] - edges[::2]).max())
