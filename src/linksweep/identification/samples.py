"""Samples of a fit: filtered positions, velocities and accelerations, and the weights of the rows.

Positions (and measured velocities) are low-pass filtered and differentiated. Torques are not filtered: a fit sums rows
on both sides of the equation (`reduction.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from linksweep.identification.filtering import STENCIL, derivative, low_pass
from linksweep.identification.log import Log, Remarks, Segment, listed
from linksweep.identification.regressor import Regressor

SLOW = 0.02  # of a drive's largest velocity: below, the sign of the velocity is uncertain
RAMP = 0.5  # of that: width of the dead band in which predicted dry friction is proportional to velocity
FAST = 2.0  # times the velocity limit
SATURATED = 0.99  # of the effort limit
CONSTANT = 1e-15  # N m or N: range of a torque that never changes
STILL = 2e-3  # of the largest range of all joints: a joint that does not move
CHUNK = 1 << 16  # rows at a time, to save memory


@dataclass(frozen=True)
class Samples:
    """Filtered rows of a log, arrays (rows, nv).

    t: (rows,) seconds. weight: 0 excludes a row of a joint. bounds: (first, last + 1) rows of each segment, within
    which rows follow each other every `dt` seconds. trajectory: index of the trajectory of each segment. cutoff: Hz,
    infinite if nothing was filtered.
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
    cutoff: float

    def __len__(self) -> int:
        return len(self.t)

    def rows(self, a: int, b: int) -> Samples:
        """Return rows a to b as one segment."""
        rows = slice(a, b)
        return replace(
            self, t=self.t[rows], q=self.q[rows], qd=self.qd[rows], qdd=self.qdd[rows], tau=self.tau[rows],
            weight=self.weight[rows], bounds=((0, b - a),), trajectory=(0,),
        )  # fmt: skip


def rms_torque(samples: Samples) -> float:
    """Return the largest RMS torque of the joints."""
    return float(np.sqrt(np.mean(np.square(samples.tau), axis=0)).max())


def filtered_samples(log: Log, cutoff: float) -> Samples:
    """Return every row of the log with velocities and accelerations.

    Rows at the ends of segments, where the filter extrapolates, have weight 0.
    """
    motions = [_motion(segment, log.dt, cutoff) for segment in log.segments]
    ends = np.cumsum([0, *(len(segment.t) for segment in log.segments)])
    weight = np.concatenate([segment.weight for segment in log.segments])
    bounds = tuple((int(a), int(b)) for a, b in pairwise(ends))
    exclude_ends(weight, bounds, edge_rows(log.dt, cutoff))
    q, qd, qdd = (np.concatenate([m[k] for m in motions]) if len(motions) > 1 else motions[0][k] for k in range(3))
    return Samples(
        np.concatenate([s.t for s in log.segments]), q, qd, qdd, np.concatenate([s.tau for s in log.segments]),
        weight, bounds, tuple(s.trajectory for s in log.segments), log.dt, cutoff,
    )  # fmt: skip


def edge_rows(dt: float, cutoff: float) -> int:
    """Return the number of rows at an end of a segment that the extrapolation of the filter affects."""
    return STENCIL if not np.isfinite(cutoff) else max(STENCIL, round(1.5 / (dt * cutoff)))


def exclude_ends(weight: np.ndarray, bounds: tuple[tuple[int, int], ...], rows: int) -> None:
    """Set the weights of rows at both ends of each segment to 0."""
    for a, b in bounds:
        weight[a : a + rows] = weight[max(a, b - rows) : b] = 0.0


def _motion(one: Segment, dt: float, cutoff: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q = low_pass(one.q, dt, cutoff)
    if one.qd is None:
        return q, derivative(q, dt, 1), derivative(q, dt, 2)
    qd = low_pass(one.qd, dt, cutoff)
    return q, qd, derivative(qd, dt, 1)


def check_speeds(regressor: Regressor, samples: Samples, remarks: Remarks) -> None:
    """Compare velocities with the limits of the robot model."""
    limits = {link.joint.name: link.joint.limits.velocity for link in regressor.full.model.links}
    fast = []
    for k, name in enumerate(regressor.robot.joint_names):
        peak = float(np.abs(samples.qd[:, k]).max())
        if peak > FAST * limits[name] > 0.0:
            fast.append(f"{name} ({peak:.4g}, limit {limits[name]:.4g})")
    if fast:
        remarks("speeds", f"velocities exceed twice the model's limits: {listed(fast)}; check the units of t and q.")


def exclude_rows(regressor: Regressor, samples: Samples, slow: float | None, remarks: Remarks) -> None:
    """Set weights to 0 where torques do not follow the model, and set the dead band of dry friction.

    These are rows in which a drive with dry friction is slower than `slow` (the friction torque may then have any value
    between its two signs), rows with saturated torques, and torques that never change.
    """
    joints = regressor.robot.joint_names
    ranges = np.ptp(samples.q, axis=0)
    still = [k for k in range(len(joints)) if ranges[k] < STILL * max(ranges.max(), 1e-3)]
    if still:
        names = ", ".join(joints[k] for k in still)
        verb = "does" if len(still) == 1 else "do"
        remarks("still", f"{names} {verb} not move; parameters that need this motion are not determined.")
    if regressor.has_dry_friction:
        samples.weight[:, still] = 0.0
        _exclude_slow(regressor, samples, slow)
    _exclude_saturated(regressor, samples, remarks)
    unused = [joints[k] for k in range(len(joints)) if not samples.weight[:, k].any() and k not in still]
    if unused:
        remarks(
            "unused", f"no row of {', '.join(unused)} can be used; parameters that need its torque are not determined."
        )


def _exclude_slow(regressor: Regressor, samples: Samples, slow: float | None) -> None:
    acts = regressor.acts
    chunks = [slice(a, a + CHUNK) for a in range(0, len(samples), CHUNK)]
    largest = np.zeros(len(acts))
    for rows in chunks:
        largest = np.maximum(largest, np.abs(regressor.drive_velocities(samples.qd[rows])).max(axis=0))
    limit = np.minimum(SLOW * largest, regressor.max_dead_band) if slow is None else np.full(len(acts), float(slow))
    regressor.dead_band = RAMP * limit
    for rows in chunks:
        speed = np.abs(regressor.drive_velocities(samples.qd[rows]))
        for drive, joints in enumerate(acts):
            samples.weight[rows][np.ix_(speed[:, drive] < limit[drive], joints)] = 0.0


def _exclude_saturated(regressor: Regressor, samples: Samples, remarks: Remarks) -> None:
    limits = {link.joint.name: link.joint.limits.effort for link in regressor.full.model.links}
    shares, constant = [], []
    for k, name in enumerate(regressor.robot.joint_names):
        torque = samples.tau[:, k]
        if np.ptp(torque) < CONSTANT:
            samples.weight[:, k] = 0.0
            constant.append(f"{name} ({torque[0]:.4g})")
            continue
        saturated = np.zeros(len(torque), bool)
        if np.abs(torque).max() < 2.0 * limits[name]:  # otherwise the limit or the unit is wrong
            saturated |= np.abs(torque) >= SATURATED * limits[name]
        for extreme in (torque.max(), torque.min()):  # clipped torques stay at the same extreme for many rows
            level = torque == extreme
            if extreme != 0.0 and _longest_run(level) >= max(8, 2e-3 * len(torque)):
                saturated |= level
        if saturated.any():
            samples.weight[saturated, k] = 0.0
            shares.append(f"{name} {100 * saturated.mean():.2g} %")
    if constant:
        remarks("flat", f"constant torques were left out as not measured: {', '.join(constant)}.")
    if shares:
        remarks("saturated", f"rows with torques at their limit were left out: {', '.join(shares)}.")


def _longest_run(flags: np.ndarray) -> int:
    if not flags.any():
        return 0
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return int((edges[1::2] - edges[::2]).max())
