"""From a log to samples that a fit can use: checked, on even times, in stretches without gaps.

What cannot be used is an error of one sentence. What is doubtful is a `LogWarning` that begins with its name, and stays
with the result (`fit.remarks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError, LogWarning, warn_user
from linksweep.identification.model.columns import Columns
from linksweep.support.foreign import refuse_foreign
from linksweep.support.messages import shown

GAP = 5.0  # steps; shorter ones are bridged by a spline
UNEVEN = 0.01  # of a step; what differs by less is on even times
SLOWEST = 0.5  # seconds from row to row: nobody logs dynamics so slowly, but in milliseconds many do
FASTEST = 1e-6  # seconds from row to row
SHORTEST = 20  # rows of a stretch
TURNS = 4.0 * np.pi  # rad, of a joint without limits: more is likely to be in degrees
HUGE = {"q": 1e4, "qd": 1e6, "tau": 1e9}  # SI: no robot's


Logged = ArrayLike | Sequence[ArrayLike]  # of one trajectory, or a list of several
Given = object  # whatever it is: looked at below


@dataclass
class Remarks:
    """What was doubtful, by name, in the order in which it was found."""

    said: dict[str, str] = field(default_factory=dict)
    quiet: bool = False

    def __call__(self, name: str, sentence: str) -> None:
        if name not in self.said:
            self.said[name] = sentence
            if not self.quiet:
                warn_user(f"{name}: {sentence}", LogWarning)


@dataclass(frozen=True)
class Stretch:
    """Rows on even times without a gap: t (n,), q, tau (n, nv), qd (n, nv) or None, weight (n, nv)."""

    t: np.ndarray
    q: np.ndarray
    tau: np.ndarray
    qd: np.ndarray | None
    weight: np.ndarray
    trajectory: int


@dataclass(frozen=True)
class Log:
    """Stretches of one or several trajectories, all `dt` seconds from row to row."""

    stretches: tuple[Stretch, ...]
    dt: float
    trajectories: int

    @property
    def rows(self) -> int:
        return sum(len(stretch.t) for stretch in self.stretches)


def read_log(columns: Columns, t: Given, q: Given, tau: Given, qd: Given, weights: Given, remarks: Remarks) -> Log:
    """A Log from arrays, or from lists of arrays, one for each trajectory."""
    count = len(t) if isinstance(t, (list, tuple)) and len(t) > 0 and np.ndim(t[0]) == 1 else 0
    given = {"t": t, "q": q, "tau": tau, "qd": qd, "weights": weights}
    logs = {name: _listed(name, value, count) for name, value in given.items()}
    parts = [_checked(columns, {name: own[k] for name, own in logs.items()}, k, remarks) for k in range(max(1, count))]
    steps = [float(np.median(np.diff(part[0]))) for part in parts]
    dt = float(np.median(steps))
    if max(steps) > 1.05 * dt or min(steps) < 0.95 * dt:
        raise ArgumentError(
            f"the trajectories are logged every {min(steps):.4g} to {max(steps):.4g} s, expected one rate: resample "
            f"them."
        )
    if dt < FASTEST:
        raise ArgumentError(f"t grows by {dt:.4g} from row to row, expected seconds, {FASTEST:g} of them or more.")
    if dt > SLOWEST:
        raise ArgumentError(
            f"t grows by {dt:.4g} from row to row, expected seconds, and at most {SLOWEST} of them: divide by 1000 if "
            f"it is in milliseconds."
        )
    stretches = [s for k, part in enumerate(parts) for s in _stretches(part, dt, k, remarks)]
    if not stretches:
        raise ArgumentError(
            f"the log has no {SHORTEST} rows one after the other without a gap, expected some seconds of motion."
        )
    log = Log(tuple(stretches), dt, len(parts))
    _check_units(columns, log, remarks)
    return log


def _listed(name: str, value: Given, count: int) -> list[Given]:
    """One entry for each trajectory."""
    if not count:
        return [value]
    if value is None:
        return [None] * count
    if not isinstance(value, (list, tuple)) or len(value) != count:
        got = len(value) if isinstance(value, (list, tuple)) else shown(value)
        raise ArgumentError(f"{name} has {got} for {count} trajectories in t, expected a list of {count} arrays.")
    return list(value)


def _numbers(name: str, value: Given, finite: bool = False) -> np.ndarray:
    refuse_foreign(name, value)
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "iuf":
        raise ArgumentError(f"{name} is {shown(value)}, expected an array of real numbers: convert it.")
    array = np.asarray(array, dtype=np.float64)
    if finite and not np.isfinite(array).all():
        raise ArgumentError(f"{name} has NaN or infinity, expected finite numbers: correct it.")
    return array


Part = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None, np.ndarray]


def _checked(columns: Columns, given: dict[str, Given], index: int, remarks: Remarks) -> Part:
    """Arrays of one trajectory with growing times; rows that cannot be used are gone."""
    nv, which = columns.nv, f" of trajectory {index + 1}" if index else ""
    times, weights = _numbers("t", given["t"]), given["weights"]
    if times.ndim != 1 or len(times) < SHORTEST:
        raise ArgumentError(f"t{which} has shape {times.shape}, expected (rows,) with {SHORTEST} rows or more.")
    arrays: list[np.ndarray | None] = []
    for name in ("q", "tau", "qd"):
        array = None if given[name] is None and name == "qd" else _numbers(name, given[name])
        if array is not None and array.shape != (len(times), nv):
            raise ArgumentError(
                f"{name}{which} has shape {array.shape}, expected ({len(times)}, {nv}): a row for each of t, a column "
                f"for each of {', '.join(columns.robot.joint_names)}."
            )
        arrays.append(array)
    weight = np.ones((len(times), nv), np.float32) if weights is None else _weights(weights, len(times), nv)
    _check_columns(columns, dict(zip(("q", "tau", "qd"), arrays, strict=True)), which)
    used = [times[:, None], *(a for a in arrays if a is not None)]
    bad = ~np.logical_and.reduce([np.isfinite(a).all(axis=1) for a in used])
    if bad.any():
        remarks("missing", f"{int(bad.sum())} of {len(bad)} rows hold NaN or infinity and were left out.")
    keep = ~bad
    later = np.diff(times[keep])
    if (later < 0).any():
        row = int(np.flatnonzero(keep)[1:][np.argmax(later < 0)])
        raise ArgumentError(
            f"t{which} goes back from {times[row - 1]:.6g} to {times[row]:.6g} in row {row}, expected times that grow: "
            f"sort the rows, or give several trajectories as lists."
        )
    again = np.concatenate([[False], later == 0])
    if again.any():
        remarks(
            "repeats",
            f"{int(again.sum())} rows repeat the time of the row before and were left out, the first at "
            f"t = {times[keep][again][0]:.6g} s.",
        )
        keep[np.flatnonzero(keep)[again]] = False
    if keep.sum() < SHORTEST:
        raise ArgumentError(f"{int(keep.sum())} rows{which} can be used, expected {SHORTEST} or more: see the log.")
    q_, tau_, qd_ = (a if a is None or keep.all() else a[keep] for a in arrays)
    assert q_ is not None
    assert tau_ is not None
    q_ = _unwrapped(columns, q_, remarks)
    if qd_ is not None:
        _check_rates(columns, times[keep], q_, qd_, remarks)
    return times[keep], q_, tau_, qd_, weight[keep]


def _check_columns(columns: Columns, arrays: dict[str, np.ndarray | None], which: str) -> None:
    """A column without a number, or with one that no robot has."""
    for block, array in arrays.items():
        for k, joint in enumerate(columns.robot.joint_names if array is not None else ()):
            column = array[:, k]  # pyright: ignore[reportOptionalSubscript]
            there = np.isfinite(column)
            if not there.any():
                zeros = ", or zeros for torques that were not measured" if block == "tau" else ""
                raise ArgumentError(f"{block} of {joint}{which} has no finite number, expected some{zeros}.")
            row = int(np.argmax(np.where(there, np.abs(column), 0.0)))
            if abs(column[row]) > HUGE[block]:
                raise ArgumentError(
                    f"{block} of {joint}{which} is {column[row]:.4g} in row {row}, expected SI units, and no more than "
                    f"{HUGE[block]:g}: correct the unit, or leave the row out."
                )


def _unwrapped(columns: Columns, q: np.ndarray, remarks: Remarks) -> np.ndarray:
    """Angles without jumps of a whole turn, where an encoder or a program folded them into one."""
    joints = {link.joint.name: link.joint for link in columns.full.model.links}
    folded = []
    for k, name in enumerate(columns.robot.joint_names):
        if not joints[name].type.turns:
            continue
        steps = np.abs(np.diff(q[:, k]))
        if (np.abs(steps - 2.0 * np.pi) < 0.5).any() and np.median(steps) < 0.1:
            q = q if folded else q.copy()
            q[:, k] = np.unwrap(q[:, k])
            folded.append(name)
    if folded:
        remarks("folded", f"positions of {_some(folded)} jump by a whole turn and were unfolded.")
    return q


def _check_rates(columns: Columns, t: np.ndarray, q: np.ndarray, qd: np.ndarray, remarks: Remarks) -> None:
    """Measured velocities against the way that positions go, in windows of many rows."""
    size = max(5, min(100, len(t) // 20))
    ends = np.arange(0, len(t), size)
    ahead = 0.5 * (qd[1:] + qd[:-1]) * np.diff(t)[:, None]
    gone = np.diff(q[ends], axis=0)
    said = np.diff(np.concatenate([np.zeros((1, q.shape[1])), np.cumsum(ahead, axis=0)])[ends], axis=0)
    size_of = np.sum(np.square(gone), axis=0)
    ratio = np.sum(gone * said, axis=0) / np.maximum(size_of, 1e-300)
    wrong = [
        f"{name} ({ratio[k]:.3g} times)"
        for k, name in enumerate(columns.robot.joint_names)
        if size_of[k] > 1e-6 and not 0.7 < ratio[k] < 1.4
    ]
    if wrong:
        remarks("rates", f"qd is not the rate of q: {_some(wrong)}; check its unit and sign, or leave it out.")


def _weights(weights: Given, rows: int, nv: int) -> np.ndarray:
    array = _numbers("weights", np.asarray(weights, dtype=float), finite=True)
    if array.shape not in ((rows,), (rows, nv)) or (array < 0).any():
        raise ArgumentError(
            f"weights has shape {array.shape}, expected ({rows},) or ({rows}, {nv}) numbers, zero or more: how much "
            f"each row counts."
        )
    whole = array[:, None] if array.ndim == 1 else array
    return np.ascontiguousarray(np.broadcast_to(whole, (rows, nv)), np.float32)


def _stretches(part: Part, dt: float, trajectory: int, remarks: Remarks) -> list[Stretch]:
    """The trajectory cut at its gaps, each piece on even times."""
    t, q, tau, qd, weight = part
    steps = np.diff(t)
    cuts = np.flatnonzero(steps > GAP * dt) + 1
    if len(cuts):
        widest = int(np.argmax(steps))
        remarks(
            "gaps",
            f"the log has {len(cuts)} gap{'s' * (len(cuts) > 1)}, the longest {steps[widest]:.4g} s at "
            f"t = {t[widest]:.6g} s; it is taken as {len(cuts) + 1} stretches.",
        )
    found, lost = [], 0
    for a, b in zip([0, *cuts], [*cuts, len(t)], strict=True):
        if b - a < SHORTEST:
            lost += b - a
            continue
        one = Stretch(t[a:b], q[a:b], tau[a:b], None if qd is None else qd[a:b], weight[a:b], trajectory)
        found.append(_evened(one, dt, remarks))
    if lost:
        remarks("short", f"{lost} rows between gaps were left out: fewer than {SHORTEST} one after the other.")
    return found


def _evened(one: Stretch, dt: float, remarks: Remarks) -> Stretch:
    """The same stretch on even times; positions between rows by a cubic spline, torques by straight lines."""
    count = round((one.t[-1] - one.t[0]) / dt)
    even = one.t[0] + (one.t[-1] - one.t[0]) * np.arange(count + 1) / count
    if count + 1 == len(one.t) and np.abs(even - one.t).max() <= UNEVEN * dt:
        return one
    from scipy.interpolate import CubicSpline

    spread = np.abs(np.diff(one.t) - dt).max()
    remarks(
        "uneven",
        f"times are uneven by up to {spread:.3g} s around {dt:.4g} s; the log was resampled; if its rows "
        f"were taken evenly, give even times.",
    )
    qd = None if one.qd is None else CubicSpline(one.t, one.qd)(even)
    straight = [np.interp(even, one.t, column) for column in one.tau.T]
    nearest = np.clip(np.searchsorted(one.t, even - 0.5 * dt), 0, len(one.t) - 1)
    return Stretch(
        even, CubicSpline(one.t, one.q)(even), np.stack(straight, axis=1), qd, one.weight[nearest], one.trajectory
    )


def _check_units(columns: Columns, log: Log, remarks: Remarks) -> None:
    """Degrees, and torques that the drives cannot make: by the limits of the description."""
    joints = {link.joint.name: link.joint for link in columns.full.model.links}
    chosen = [joints[name] for name in columns.robot.joint_names]
    low = np.min([stretch.q.min(axis=0) for stretch in log.stretches], axis=0)
    high = np.max([stretch.q.max(axis=0) for stretch in log.stretches], axis=0)
    peak = np.max([np.abs(stretch.tau).max(axis=0) for stretch in log.stretches], axis=0)
    beyond, strong, round_ = [], [], []
    for k, joint in enumerate(chosen):
        limits, turns = joint.limits, joint.type.turns
        room = 0.05 * (limits.upper - limits.lower) if np.isfinite(limits.upper - limits.lower) else 0.0
        outside = low[k] < limits.lower - room or high[k] > limits.upper + room
        in_degrees = np.radians(low[k]) >= limits.lower - room and np.radians(high[k]) <= limits.upper + room
        largest = max(abs(low[k]), abs(high[k]))
        far = largest > (3.0 * max(abs(limits.lower), abs(limits.upper)) if outside else 60.0)
        if turns and in_degrees and far:
            raise ArgumentError(
                f"q of {joint.name} goes from {low[k]:.4g} to {high[k]:.4g}, expected radians"
                f"{f' from {limits.lower:.4g} to {limits.upper:.4g}' if outside else ''}: it seems to be in degrees, "
                f"convert it with np.radians."
            )
        if turns and not outside and largest > TURNS:
            round_.append(f"{joint.name} ({low[k]:.4g} to {high[k]:.4g} rad)")
        if outside:
            beyond.append(f"{joint.name} ({low[k]:.4g} to {high[k]:.4g})")
        if peak[k] > 2.0 * limits.effort:
            strong.append(f"{joint.name} ({peak[k]:.4g} of {limits.effort:.4g})")
    if round_:
        remarks("turns", f"joints go round more than twice: {_some(round_)}; check that q is in radians.")
    if beyond:
        remarks("limits", f"positions go beyond the description's limits: {_some(beyond)}; check zeros and signs.")
    if strong:
        remarks("efforts", f"torques are more than twice the description's limit: {_some(strong)}; check their unit.")


def _some(names: Sequence[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
