"""What of a fit is doubtful: units and signs of torques, their times, numbers that the log does not show."""

from __future__ import annotations

import numpy as np

from linksweep.identification.estimate.delay import delays_of
from linksweep.identification.estimate.least_squares import Estimate
from linksweep.identification.estimate.triangles import Triangles
from linksweep.identification.log.reading import Remarks
from linksweep.identification.log.signals import Samples
from linksweep.identification.model.columns import Columns
from linksweep.identification.model.grouping import Grouping

POOR = 0.5  # of a torque's own spread, left over
ROUNDING = 1e-6  # of a torque's size: what is left over below that does not tell one shift from another
SLOWLY = 0.4  # correlation of what is left over from row to later row


def remark_units(found: Triangles, prior: np.ndarray, columns: Columns, remarks: Remarks) -> None:
    """Torques against those of the description: their size, and their sign."""
    if not any(column.is_body for column in columns.columns) or not columns.full.has_inertia:
        return
    whole = found.joined(list(range(found.parts)))
    pivots = found.grouping.from_base @ prior
    measured, described, product = np.zeros((3, columns.nv))
    for joint, (R, seen) in enumerate(zip(whole.R[0], found.grouping.seen, strict=True)):
        own = R[:, :-1] @ pivots[seen]
        measured[joint], described[joint], product[joint] = R[:, -1] @ R[:, -1], own @ own, own @ R[:, -1]
    if not described.sum() > 0.0 or not measured.sum() > 0.0:
        return
    ratio = float(np.sqrt(measured.sum() / described.sum()))
    if not 1.0 / 30.0 < ratio < 30.0:
        remarks(
            "scale",
            f"torques are {ratio:.3g} times those of the description; they should be in N m at the joint (not in N mm, "
            f"of the motor before its gear, or in A).",
        )
    against = product / np.sqrt(np.maximum(measured * described, 1e-300))
    names = [
        name
        for name, c, size in zip(columns.robot.joint_names, against, described, strict=True)
        if c < -0.7 and size > 0.01 * described.sum()
    ]
    if names:
        remarks("signs", f"torques of {', '.join(names)} go against those of the description; check their sign.")


def remark_delay(
    group: Grouping, samples: Samples, best: Estimate, parts: list[list[tuple[int, int]]], remarks: Remarks
) -> None:
    """Torques that are late or early against positions."""
    rms = np.sqrt(np.mean(np.square(samples.tau), axis=0))
    if (best.noise <= ROUNDING * rms).all():
        return
    late = delays_of(group, samples, best, parts)
    moved = late != 0.0
    if not moved.any():
        return
    if moved.all() and np.ptp(late) <= max(2.0 * samples.dt, 0.2 * np.abs(late).max()):
        where, give = _milliseconds(late.mean()), f"delay={late.mean():.4g}"
    else:
        names = np.array(group.columns.robot.joint_names)[moved]
        each = ", ".join(f"{name} {_milliseconds(x)}" for name, x in zip(names, late[moved], strict=True))
        where = f"at other times ({each})"
        give = f"delay={np.round(late * moved, 5).tolist()}"
    remarks("delay", f"torques fit better when they are taken {where}: give {give} if they are late or early.")


def _milliseconds(late: float) -> str:
    return f"{abs(1e3 * late):.3g} ms {'later' if late > 0 else 'earlier'}"


def remark_misfit(columns: Columns, samples: Samples, torques: np.ndarray, remarks: Remarks) -> None:
    """Torques of which much is left over, and slowly, as noise is not: other zeros, another order, another robot."""
    lag = max(5, round(1.0 / (samples.dt * samples.cutoff)))  # what passed the filter as noise is forgotten by then
    poor = []
    for k, name in enumerate(columns.robot.joint_names):
        used = samples.weight[:, k] > 0
        rest = np.where(used, samples.tau[:, k] - torques[:, k], 0.0)
        spread = float(np.std(samples.tau[used, k])) if used.any() else 0.0
        square = float(rest @ rest)
        both = int(np.count_nonzero(used[lag:] & used[:-lag]))
        if not both or square <= (POOR * spread) ** 2 * used.sum():
            continue
        if rest[lag:] @ rest[:-lag] / both > SLOWLY * square / used.sum():
            poor.append(f"{name} ({100.0 * np.sqrt(square / used.sum()) / spread:.0f} %)")
    if poor:
        remarks(
            "misfit",
            f"much of the torque's variation is left over: {', '.join(poor)}; check the order, zeros and units of the "
            f"joints, the noise of positions (a lower cutoff), and what is taken for known.",
        )


def remark_unknown(group: Grouping, best: Estimate, remarks: Remarks) -> None:
    names = [name for name, known in zip(group.names, best.known, strict=True) if not known]
    if names:
        shown_ = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        remarks("unknown", f"the log does not determine {shown_}; there the description's values stand.")
