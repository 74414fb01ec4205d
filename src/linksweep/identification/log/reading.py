"""From a log to samples that a fit can use: checked, on even times, in stretches without gaps.

A log that cannot be used raises `ArgumentError`. A doubtful one raises a `LogWarning` that begins with the name of the
remark, and the remark stays with the result (`fit.remarks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError, LogWarning, warn_user
from linksweep.identification.log.clock import FEWEST, sampling_times, stale_rows
from linksweep.identification.model.columns import Columns
from linksweep.support.foreign import refuse_foreign
from linksweep.support.messages import shown
from linksweep.support.numbers import as_array

GAP_ROWS, GAP_PERIODS = 5.0, 0.25  # steps, and periods of the cut-off: shorter gaps are bridged by a spline
MISSING = 2.5  # steps: rows between two that are further apart were not measured, and weigh nothing
SKIPPED = 1.5  # the same for rows at ticks of a clock: positions are bridged
BESIDE = 0.02  # seconds: no motion differs from a cubic in twice as long
CLOSE = 0.1  # of a step: rows nearer to each other make a cubic spline swing
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
class Recording:
    """The checked rows of one trajectory: t (n,), growing; q, tau (n, nv), qd (n, nv) or None, weight (n, nv).

    times: (rows given,) the time of every given row on the clock of t; rows that repeat another have its time.
    retimed: whether t is not the given time.
    """

    t: np.ndarray
    q: np.ndarray
    tau: np.ndarray
    qd: np.ndarray | None
    weight: np.ndarray
    times: np.ndarray
    retimed: bool = False


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


@dataclass(frozen=True)
class Recordings:
    """Trajectories before they are cut at their gaps, and the usual time `dt` from row to row."""

    parts: tuple[Recording, ...]
    dt: float

    def log(self, cutoff: float | None, remarks: Remarks) -> Log:
        """The stretches for a cut-off (Hz): a gap that is short beside its period is bridged. None: not yet known."""
        periods = 0.0 if cutoff is None else GAP_PERIODS / cutoff
        gap = max(GAP_ROWS * self.dt, periods)
        stretches = [s for k, part in enumerate(self.parts) for s in _stretches(part, self.dt, gap, k, remarks)]
        if not stretches:
            raise ArgumentError(
                f"the log has no {SHORTEST} rows one after the other without a gap, expected some seconds of motion."
            )
        return Log(tuple(stretches), self.dt, len(self.parts))


def read_log(
    columns: Columns, t: Given, q: Given, tau: Given, qd: Given, weights: Given, remarks: Remarks,
    retime: bool | None = None,
) -> Recordings:  # fmt: skip
    """Recordings from arrays, or from lists of arrays, one for each trajectory.

    tau: None where only positions are given, for a prediction. retime: whether rows are moved to the clock of the
    controller that they came from; None: if some of them repeat the row before.
    """
    count = len(t) if isinstance(t, (list, tuple)) and len(t) > 0 and np.ndim(t[0]) == 1 else 0
    given = {"t": t, "q": q, "tau": tau, "qd": qd, "weights": weights}
    logs = {name: _listed(name, value, count) for name, value in given.items()}
    parts = [_checked(columns, {name: own[k] for name, own in logs.items()}, k, remarks) for k in range(max(1, count))]
    parts = _on_source_clock(parts, retime, remarks)
    steps = [float(np.median(np.diff(part.t))) for part in parts]
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
    _check_units(columns, parts, remarks)
    return Recordings(tuple(parts), dt)


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


def _checked(columns: Columns, given: dict[str, Given], index: int, remarks: Remarks) -> Recording:
    """Arrays of one trajectory with growing times; rows that cannot be used are gone."""
    nv, which = columns.nv, f" of trajectory {index + 1}" if index else ""
    times, weights = _numbers("t", given["t"]), given["weights"]
    if times.ndim != 1 or len(times) < SHORTEST:
        raise ArgumentError(f"t{which} has shape {times.shape}, expected (rows,) with {SHORTEST} rows or more.")
    arrays: list[np.ndarray | None] = []
    for name in ("q", "tau", "qd"):
        array = None if given[name] is None and name != "q" else _numbers(name, given[name])
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
    q_ = _unwrapped(columns, q_, remarks)
    if qd_ is not None:
        _check_rates(columns, times[keep], q_, qd_, remarks)
    tau_ = np.zeros_like(q_) if tau_ is None else tau_
    return Recording(times[keep], q_, tau_, qd_, weight[keep], times)


def _on_source_clock(parts: list[Recording], retime: bool | None, remarks: Remarks) -> list[Recording]:
    """Recordings without rows that repeat the row before, the others at the times at which they were taken."""
    signals = [[x for x in (part.qd, part.tau) if x is not None and x.any()] for part in parts]
    stale = [stale_rows(part.q, *own) for part, own in zip(parts, signals, strict=True)]
    repeated, total = sum(int(own.sum()) for own in stale), sum(len(own) for own in stale)
    found = repeated >= FEWEST
    if not found and not retime:
        return parts
    done, periods, jitter = [], [], []
    for part, own in zip(parts, stale, strict=True):
        part = _without(part, own) if found else part
        if retime is not False and len(part.t) >= SHORTEST:
            clock = sampling_times(part.t, part.q)
            periods.append(clock.period)
            jitter.append(clock.jitter)
            part = replace(part, t=clock.t, times=np.interp(part.times, part.t, clock.t), retimed=True)
        done.append(part)
    at = f", {1e3 * np.median(periods):.4g} ms apart" if periods and np.isfinite(periods).all() else ""
    moved = (
        "times were kept (retime=False)" if not periods else
        f"the others were moved by {1e3 * max(jitter):.2g} ms (rms) to the times at which they were sampled{at}"
    )  # fmt: skip
    if found:
        remarks(
            "stale",
            f"{repeated} rows ({100.0 * repeated / total:.2g} %) repeat the row before while the arm moves, as in logs "
            f"of a polled controller; they were left out, and {moved}.",
        )
    return done


def _without(part: Recording, stale: np.ndarray) -> Recording:
    """The recording without its stale rows, which have the time of the row that they repeat."""
    fresh = np.maximum.accumulate(np.where(stale, 0, np.arange(len(stale))))
    at = np.searchsorted(part.t, part.times)
    known = (at < len(part.t)) & (part.t[np.minimum(at, len(part.t) - 1)] == part.times)
    times = np.where(known, part.t[fresh[np.minimum(at, len(fresh) - 1)]], part.times)
    keep = ~stale
    qd = None if part.qd is None else part.qd[keep]
    return Recording(part.t[keep], part.q[keep], part.tau[keep], qd, part.weight[keep], times)


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
    mask = as_array(weights)
    array = _numbers("weights", mask.astype(float) if mask.dtype.kind == "b" else weights, finite=True)
    if array.shape not in ((rows,), (rows, nv)) or (array < 0).any():
        raise ArgumentError(
            f"weights has shape {array.shape}, expected ({rows},) or ({rows}, {nv}) numbers, zero or more: how much "
            f"each row counts."
        )
    whole = array[:, None] if array.ndim == 1 else array
    return np.ascontiguousarray(np.broadcast_to(whole, (rows, nv)), np.float32)


def _stretches(part: Recording, dt: float, gap: float, trajectory: int, remarks: Remarks) -> list[Stretch]:
    """The trajectory cut at gaps longer than `gap` seconds, each piece on even times."""
    t = part.t
    steps = np.diff(t)
    cuts = np.flatnonzero(steps > gap) + 1
    if len(cuts):
        widest = int(np.argmax(steps))
        remarks(
            "gaps",
            f"the log has {len(cuts)} gap{'s' * (len(cuts) > 1)} longer than {gap:.3g} s, the longest "
            f"{steps[widest]:.4g} s at t = {t[widest]:.6g} s; it is used as {len(cuts) + 1} stretches.",
        )
    found, lost = [], 0
    for a, b in zip([0, *cuts], [*cuts, len(t)], strict=True):
        if b - a < SHORTEST:
            lost += b - a
            continue
        qd = None if part.qd is None else part.qd[a:b]
        one = Stretch(t[a:b], part.q[a:b], part.tau[a:b], qd, part.weight[a:b], trajectory)
        found.append(_evened(one, dt, part.retimed, remarks))
    if lost:
        remarks("short", f"{lost} rows between gaps were left out: fewer than {SHORTEST} one after the other.")
    return found


def _evened(one: Stretch, dt: float, retimed: bool, remarks: Remarks) -> Stretch:
    """The same stretch on even times; positions between rows by a cubic spline, torques by straight lines.

    retimed: rows are at ticks of the controller's clock, and single ones that the log skips are bridged as gaps are.
    """
    count = round((one.t[-1] - one.t[0]) / dt)
    even = one.t[0] + (one.t[-1] - one.t[0]) * np.arange(count + 1) / count
    if count + 1 == len(one.t) and np.abs(even - one.t).max() <= UNEVEN * dt:
        return one
    from scipy.interpolate import CubicSpline, PchipInterpolator

    steps = np.diff(one.t)
    if not retimed:
        remarks(
            "uneven",
            f"times are uneven by up to {np.abs(steps - dt).max():.3g} s around {dt:.4g} s; the log was resampled; if "
            f"its rows were taken evenly, give even times.",
        )
    curve = CubicSpline if steps.min() > CLOSE * dt else PchipInterpolator
    q, qd = (None if x is None else curve(one.t, x)(even) for x in (one.q, one.qd))
    tau = np.stack([np.interp(even, one.t, column) for column in one.tau.T], axis=1)
    weight = one.weight[np.clip(np.searchsorted(one.t, even - 0.5 * dt), 0, len(one.t) - 1)]
    for k in np.flatnonzero(steps > (SKIPPED if retimed else MISSING) * dt).tolist():
        inside = slice(*np.searchsorted(even, [one.t[k] + 0.5 * dt, one.t[k + 1] - 0.5 * dt]))
        if steps[k] > MISSING * dt:
            weight[inside] = 0.0
        for x, into in ((one.q, q), (one.qd, qd)):
            if x is not None and into is not None:
                into[inside] = _bridged(one.t, x, k, even[inside], round(BESIDE / dt))
    assert q is not None
    return Stretch(even, q, tau, qd, weight, one.trajectory)


def _bridged(t: np.ndarray, x: np.ndarray, k: int, at: np.ndarray, beside: int) -> np.ndarray:
    """x between the rows k and k + 1, along the cubic that fits as many rows on either side as are missing.

    A spline, which goes through the rows next to the gap, carries their noise far into it. beside: rows on either side
    that are so near that up to twice as many can be used, which lowers the noise further.
    """
    few = max(4, len(at))
    reach = max(few, min(2 * few, beside))
    rows = slice(max(0, k + 1 - reach), k + 1 + reach)
    middle, unit = 0.5 * (t[k] + t[k + 1]), t[rows][-1] - t[rows][0]
    powers = np.vander((t[rows] - middle) / unit, 4)
    found, *_ = np.linalg.lstsq(powers, x[rows], rcond=None)
    return np.vander((at - middle) / unit, 4) @ found


def _check_units(columns: Columns, parts: list[Recording], remarks: Remarks) -> None:
    """Degrees, and torques that the drives cannot make: by the limits of the description."""
    joints = {link.joint.name: link.joint for link in columns.full.model.links}
    chosen = [joints[name] for name in columns.robot.joint_names]
    low = np.min([part.q.min(axis=0) for part in parts], axis=0)
    high = np.max([part.q.max(axis=0) for part in parts], axis=0)
    peak = np.max([np.abs(part.tau).max(axis=0) for part in parts], axis=0)
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
