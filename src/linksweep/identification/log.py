"""Logs of positions and torques: checks, repeated rows, gaps, and resampling to even times.

A log that cannot be used raises `ArgumentError`. A doubtful one raises a `LogWarning` that begins with the name of a
remark; the remark is also part of the result (`fit.remarks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError, LogWarning, warn_user
from linksweep.files import JointLog
from linksweep.identification.filtering import derivative, low_pass
from linksweep.identification.regressor import Regressor
from linksweep.support.checks import as_array, refuse_foreign
from linksweep.support.messages import shown

GAP_ROWS, GAP_PERIODS = 5.0, 0.25  # sampling intervals, and periods of the cut-off: shorter gaps are interpolated
MISSING = 2.5  # sampling intervals: interpolated rows in longer gaps have weight 0
MISSING_TICK = 1.5  # sampling intervals: the same for retimed rows, whose positions are fitted in shorter gaps too
FIT_SECONDS = 0.02  # on either side of a gap: within twice this time a motion is close to a cubic
MIN_SPACING = 0.1  # of a sampling interval: a cubic spline through closer rows overshoots
UNEVEN = 0.01  # of a sampling interval: smaller deviations count as even times
MAX_INTERVAL = 0.5  # seconds: longer sampling intervals are probably in milliseconds
MIN_INTERVAL = 1e-6  # seconds
MIN_ROWS = 20  # of a segment
MAX_ANGLE = 4.0 * np.pi  # rad, of a joint without limits: larger angles are probably in degrees
IMPLAUSIBLE = {"q": 1e4, "qd": 1e6, "tau": 1e9}  # SI units

NEAR_ROWS, FAR_ROWS = 5, 50  # rows on either side over which motion is measured
QUANTA = 2.0  # a joint that moves this many encoder steps per row cannot repeat its position
SMOOTH_HZ, SMOOTH_SHARE = 10.0, 0.02  # cut-off of the smooth motion: Hz, and share of the sampling rate
WINDOW = 200  # rows over which the phase of the controller's clock is averaged
MIN_COHERENCE = 0.5  # mean resultant length of the phase, at which it is known to a fifth of a period
SIGNIFICANT = 4.0  # standard deviations
STEADY = 0.9  # net displacement over path length of a joint that moves steadily and does not tremble
MIN_SHARE = 0.01  # of the rows: a signal that repeats more often by itself is updated less often than rows are logged
MIN_REPEATS = 3  # repeated rows that are significant


Logged = ArrayLike | Sequence[ArrayLike]  # array of one trajectory, or a list of arrays of several


@dataclass
class Remarks:
    """Remarks on a log and its fit by name, in the order in which they were made. Each is also a `LogWarning`."""

    texts: dict[str, str] = field(default_factory=dict)
    quiet: bool = False

    def __call__(self, name: str, sentence: str) -> None:
        if name not in self.texts:
            self.texts[name] = sentence
            if not self.quiet:
                warn_user(f"{name}: {sentence}", LogWarning)


def listed(names: Sequence[str], limit: int = 4) -> str:
    """Return the first names as a list in words, with the number of further ones."""
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")


@dataclass(frozen=True)
class Trajectory:
    """Checked rows of one trajectory: t (n,), increasing; q, tau (n, nv), qd (n, nv) or None, weight (n, nv).

    times: (logged rows,) the time of every logged row on the clock of t; repeated rows have the time of the row that
    they repeat. retimed: whether t was estimated instead of logged.
    """

    t: np.ndarray
    q: np.ndarray
    tau: np.ndarray
    qd: np.ndarray | None
    weight: np.ndarray
    times: np.ndarray
    retimed: bool = False


@dataclass(frozen=True)
class Segment:
    """Rows at even times without a gap: t (n,), q, tau (n, nv), qd (n, nv) or None, weight (n, nv)."""

    t: np.ndarray
    q: np.ndarray
    tau: np.ndarray
    qd: np.ndarray | None
    weight: np.ndarray
    trajectory: int

    def rows(self, rows: slice) -> Segment:
        qd = None if self.qd is None else self.qd[rows]
        return Segment(self.t[rows], self.q[rows], self.tau[rows], qd, self.weight[rows], self.trajectory)


@dataclass(frozen=True)
class Log:
    """Segments of one or several trajectories with the sampling interval `dt` (s)."""

    segments: tuple[Segment, ...]
    dt: float

    @property
    def rows(self) -> int:
        return sum(len(segment.t) for segment in self.segments)


@dataclass(frozen=True)
class Recording:
    """Trajectories before they are cut at gaps, and their sampling interval `dt` (s)."""

    trajectories: tuple[Trajectory, ...]
    dt: float

    def log(self, cutoff: float | None, remarks: Remarks) -> Log:
        """Return the segments for a cut-off (Hz), which sets the length of gaps that are interpolated.

        If the cut-off is None, it is not known yet and only gaps of a few rows are interpolated.
        """
        gap = max(GAP_ROWS * self.dt, 0.0 if cutoff is None else GAP_PERIODS / cutoff)
        segments = [s for k, one in enumerate(self.trajectories) for s in _segments(one, self.dt, gap, k, remarks)]
        if not segments:
            raise ArgumentError(
                f"the log has fewer than {MIN_ROWS} rows without a gap, expected some seconds of motion."
            )
        return Log(tuple(segments), self.dt)


def log_arrays(t: object, q: object, tau: object, qd: object) -> tuple[Any, Any, Any, Any]:
    """Return t, q, tau and qd from arguments that may be a `JointLog`, or a list of them, in the place of t."""
    single = isinstance(t, JointLog)
    logs = [t] if single else t
    if not isinstance(logs, (list, tuple)) or not logs or not all(isinstance(log, JointLog) for log in logs):
        return t, q, tau, qd
    if any(value is not None for value in (q, tau, qd)):
        raise ArgumentError("q, tau or qd was passed beside a log, which contains them; leave them out.")
    if any(log.tau is None for log in logs):
        raise ArgumentError("the log has no torques (tau is None), expected efforts of all joints.")
    if single:
        return t.t, t.q, t.tau, t.qd  # type: ignore[attr-defined]
    velocities = None if any(log.qd is None for log in logs) else [log.qd for log in logs]  # used if all have them
    return [log.t for log in logs], [log.q for log in logs], [log.tau for log in logs], velocities


def check_log(
    regressor: Regressor, t: object, q: object, tau: object, qd: object, weights: object, remarks: Remarks,
    retime: bool | None = None,
) -> Recording:  # fmt: skip
    """Check a log given as arrays, or as lists of arrays with one for each trajectory.

    tau: None for predictions, which need positions alone. retime: whether to estimate the sampling times; None: if some
    rows repeat the row before.
    """
    count = len(t) if isinstance(t, (list, tuple)) and len(t) > 0 and np.ndim(t[0]) == 1 else 0
    signals = {"t": t, "q": q, "tau": tau, "qd": qd, "weights": weights}
    arrays = {name: _per_trajectory(name, value, count) for name, value in signals.items()}
    trajectories = [
        _checked_trajectory(regressor, {name: values[k] for name, values in arrays.items()}, k, remarks)
        for k in range(max(1, count))
    ]
    trajectories = _retimed(trajectories, retime, remarks)
    intervals = [float(np.median(np.diff(one.t))) for one in trajectories]
    dt = float(np.median(intervals))
    if max(intervals) > 1.05 * dt or min(intervals) < 0.95 * dt:
        raise ArgumentError(
            f"the sampling intervals of the trajectories are {min(intervals):.4g} to {max(intervals):.4g} s, expected "
            f"one rate: resample them."
        )
    if dt < MIN_INTERVAL:
        raise ArgumentError(f"the sampling interval of t is {dt:.4g} s, expected {MIN_INTERVAL:g} s or more.")
    if dt > MAX_INTERVAL:
        raise ArgumentError(
            f"the sampling interval of t is {dt:.4g} s, expected at most {MAX_INTERVAL} s: divide by 1000 if t is in "
            f"milliseconds."
        )
    _check_units(regressor, trajectories, remarks)
    return Recording(tuple(trajectories), dt)


def _per_trajectory(name: str, value: object, count: int) -> Sequence[object]:
    """Return one entry for each of `count` trajectories; a count of 0 means a single array."""
    if not count:
        return [value]
    if value is None:
        return [None] * count
    if not isinstance(value, (list, tuple)) or len(value) != count:
        got = len(value) if isinstance(value, (list, tuple)) else shown(value)
        raise ArgumentError(f"{name} has {got} for {count} trajectories in t, expected a list of {count} arrays.")
    return value


def _real_array(name: str, value: object) -> np.ndarray:
    refuse_foreign(name, value)
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "iuf":
        raise ArgumentError(f"{name} is {shown(value)}, expected an array of real numbers.")
    return np.asarray(array, dtype=np.float64)


def _checked_trajectory(regressor: Regressor, signals: dict[str, object], index: int, remarks: Remarks) -> Trajectory:
    """Check the arrays of one trajectory and drop rows that cannot be used."""
    nv, which = regressor.nv, f" of trajectory {index + 1}" if index else ""
    times, weights = _real_array("t", signals["t"]), signals["weights"]
    if times.ndim != 1 or len(times) < MIN_ROWS:
        raise ArgumentError(f"t{which} has shape {times.shape}, expected (rows,) with {MIN_ROWS} rows or more.")
    arrays: dict[str, np.ndarray] = {}
    for name in ("q", "tau", "qd"):
        if signals[name] is None and name != "q":
            continue
        arrays[name] = array = _real_array(name, signals[name])
        if array.shape != (len(times), nv):
            raise ArgumentError(
                f"{name}{which} has shape {array.shape}, expected ({len(times)}, {nv}): a row for each of t, a column "
                f"for each of {', '.join(regressor.robot.joint_names)}."
            )
    weight = np.ones((len(times), nv), np.float32) if weights is None else _checked_weights(weights, len(times), nv)
    _check_columns(regressor, arrays, which)
    keep = np.logical_and.reduce([np.isfinite(times), *(np.isfinite(a).all(axis=1) for a in arrays.values())])
    if not keep.all():
        remarks("missing", f"{int((~keep).sum())} of {len(keep)} rows contain NaN or infinity and were left out.")
    steps = np.diff(times[keep])
    if (steps < 0).any():
        row = int(np.flatnonzero(keep)[1:][np.argmax(steps < 0)])
        raise ArgumentError(
            f"t{which} decreases from {times[row - 1]:.6g} to {times[row]:.6g} in row {row}, expected increasing "
            f"times: sort the rows, or pass several trajectories as lists."
        )
    repeated = np.concatenate([[False], steps == 0])
    if repeated.any():
        remarks(
            "repeats",
            f"{int(repeated.sum())} rows repeat the time of the row before and were left out, the first at "
            f"t = {times[keep][repeated][0]:.6g} s.",
        )
        keep[np.flatnonzero(keep)[repeated]] = False
    if keep.sum() < MIN_ROWS:
        raise ArgumentError(f"{int(keep.sum())} rows{which} can be used, expected {MIN_ROWS} or more.")
    if not keep.all():
        arrays = {name: array[keep] for name, array in arrays.items()}
    q = _unwrapped(regressor, arrays["q"], remarks)
    if "qd" in arrays:
        _check_velocities(regressor, times[keep], q, arrays["qd"], remarks)
    tau = arrays["tau"] if "tau" in arrays else np.zeros_like(q)
    return Trajectory(times[keep], q, tau, arrays.get("qd"), weight[keep], times)


def _retimed(trajectories: list[Trajectory], retime: bool | None, remarks: Remarks) -> list[Trajectory]:
    """Return the trajectories without stale rows, the others at their estimated sampling times."""
    signals = [[x for x in (one.qd, one.tau) if x is not None and x.any()] for one in trajectories]
    stale = [stale_rows(one.q, *others) for one, others in zip(trajectories, signals, strict=True)]
    repeated, total = sum(int(flags.sum()) for flags in stale), sum(len(flags) for flags in stale)
    polled = repeated >= MIN_REPEATS
    if not polled and not retime:
        return trajectories
    result, periods, jitter = [], [], []
    for one, flags in zip(trajectories, stale, strict=True):
        one = _without_stale(one, flags) if polled else one
        if retime is not False and len(one.t) >= MIN_ROWS:
            sampled = sampling_times(one.t, one.q)
            periods.append(sampled.period)
            jitter.append(sampled.jitter)
            one = replace(one, t=sampled.t, times=np.interp(one.times, one.t, sampled.t), retimed=True)
        result.append(one)
    if polled:
        period = f" (period {1e3 * np.median(periods):.4g} ms)" if periods and np.isfinite(periods).all() else ""
        action = (
            f"The others were moved by {1e3 * max(jitter):.2g} ms (RMS) to their estimated sampling times{period}."
            if periods else "The logged times of the others were kept (retime=False)."
        )  # fmt: skip
        remarks(
            "stale",
            f"{repeated} rows ({100.0 * repeated / total:.2g} %) repeat the row before while the robot moves, as in "
            f"logs of a polled controller, and were left out. {action}",
        )
    return result


def _without_stale(one: Trajectory, stale: np.ndarray) -> Trajectory:
    """Return the trajectory without stale rows, whose times become those of the rows that they repeat."""
    fresh = np.maximum.accumulate(np.where(stale, 0, np.arange(len(stale))))
    at = np.searchsorted(one.t, one.times)
    used = (at < len(one.t)) & (one.t[np.minimum(at, len(one.t) - 1)] == one.times)
    times = np.where(used, one.t[fresh[np.minimum(at, len(fresh) - 1)]], one.times)
    keep = ~stale
    qd = None if one.qd is None else one.qd[keep]
    return Trajectory(one.t[keep], one.q[keep], one.tau[keep], qd, one.weight[keep], times)


def _check_columns(regressor: Regressor, arrays: dict[str, np.ndarray], which: str) -> None:
    """Check for columns without a finite number, and for implausible values."""
    for name, array in arrays.items():
        for joint, column in zip(regressor.robot.joint_names, array.T, strict=True):
            finite = np.isfinite(column)
            if not finite.any():
                hint = "; use zeros for torques that were not measured" if name == "tau" else ""
                raise ArgumentError(f"{name} of {joint}{which} has no finite number, expected some{hint}.")
            row = int(np.argmax(np.where(finite, np.abs(column), 0.0)))
            if abs(column[row]) > IMPLAUSIBLE[name]:
                raise ArgumentError(
                    f"{name} of {joint}{which} is {column[row]:.4g} in row {row}, expected SI units and at most "
                    f"{IMPLAUSIBLE[name]:g}: correct the unit, or leave the row out."
                )


def _unwrapped(regressor: Regressor, q: np.ndarray, remarks: Remarks) -> np.ndarray:
    """Return positions with jumps of a full turn removed."""
    joints = {link.joint.name: link.joint for link in regressor.full.model.links}
    wrapped = []
    for k, name in enumerate(regressor.robot.joint_names):
        if not joints[name].type.turns:
            continue
        steps = np.abs(np.diff(q[:, k]))
        if (np.abs(steps - 2.0 * np.pi) < 0.5).any() and np.median(steps) < 0.1:
            q = q if wrapped else q.copy()
            q[:, k] = np.unwrap(q[:, k])
            wrapped.append(name)
    if wrapped:
        remarks("folded", f"positions of {listed(wrapped)} jump by a full turn and were unwrapped.")
    return q


def _check_velocities(regressor: Regressor, t: np.ndarray, q: np.ndarray, qd: np.ndarray, remarks: Remarks) -> None:
    """Compare integrated velocities with displacements, in windows of many rows."""
    size = max(5, min(100, len(t) // 20))
    ends = np.arange(0, len(t), size)
    steps = 0.5 * (qd[1:] + qd[:-1]) * np.diff(t)[:, None]
    displacement = np.diff(q[ends], axis=0)
    integrated = np.diff(np.concatenate([np.zeros((1, q.shape[1])), np.cumsum(steps, axis=0)])[ends], axis=0)
    square = np.sum(np.square(displacement), axis=0)
    ratio = np.sum(displacement * integrated, axis=0) / np.maximum(square, 1e-300)
    wrong = [
        f"{name} ({ratio[k]:.3g} times)"
        for k, name in enumerate(regressor.robot.joint_names)
        if square[k] > 1e-6 and not 0.7 < ratio[k] < 1.4
    ]
    if wrong:
        remarks("rates", f"qd is not the derivative of q: {listed(wrong)}; check its unit and sign, or omit it.")


def _checked_weights(weights: object, rows: int, nv: int) -> np.ndarray:
    mask = as_array(weights)
    array = _real_array("weights", mask.astype(float) if mask.dtype.kind == "b" else weights)
    if not np.isfinite(array).all():
        raise ArgumentError("weights has NaN or infinity, expected finite numbers.")
    if array.shape not in ((rows,), (rows, nv)) or (array < 0).any():
        raise ArgumentError(
            f"weights has shape {array.shape}, expected ({rows},) or ({rows}, {nv}) numbers, zero or more."
        )
    return np.ascontiguousarray(np.broadcast_to(array[:, None] if array.ndim == 1 else array, (rows, nv)), np.float32)


def _segments(one: Trajectory, dt: float, gap: float, index: int, remarks: Remarks) -> list[Segment]:
    """Cut a trajectory at gaps longer than `gap` seconds and resample each piece to even times."""
    t = one.t
    steps = np.diff(t)
    cuts = np.flatnonzero(steps > gap) + 1
    if len(cuts):
        longest = int(np.argmax(steps))
        remarks(
            "gaps",
            f"the log has {len(cuts)} gap{'s' * (len(cuts) > 1)} longer than {gap:.3g} s, the longest "
            f"{steps[longest]:.4g} s at t = {t[longest]:.6g} s; it was split into {len(cuts) + 1} segments.",
        )
    segments, dropped = [], 0
    for a, b in zip([0, *cuts], [*cuts, len(t)], strict=True):
        if b - a < MIN_ROWS:
            dropped += b - a
            continue
        rows = Segment(t, one.q, one.tau, one.qd, one.weight, index).rows(slice(a, b))
        segments.append(_evened(rows, dt, one.retimed, remarks))
    if dropped:
        remarks("short", f"{dropped} rows in segments of fewer than {MIN_ROWS} rows between gaps were left out.")
    return segments


def _evened(one: Segment, dt: float, retimed: bool, remarks: Remarks) -> Segment:
    """Resample a segment to even times: positions by a cubic spline, torques linearly.

    retimed: rows are at ticks of the controller's clock; positions of single missing rows are fitted as in longer gaps.
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
            f"sampling intervals differ by up to {np.abs(steps - dt).max():.3g} s from {dt:.4g} s; the log was "
            f"resampled. If its rows were sampled evenly, pass even times.",
        )
    curve = CubicSpline if steps.min() > MIN_SPACING * dt else PchipInterpolator
    q = curve(one.t, one.q)(even)
    qd = None if one.qd is None else curve(one.t, one.qd)(even)
    tau = np.stack([np.interp(even, one.t, column) for column in one.tau.T], axis=1)
    weight = one.weight[np.clip(np.searchsorted(one.t, even - 0.5 * dt), 0, len(one.t) - 1)]
    for k in np.flatnonzero(steps > (MISSING_TICK if retimed else MISSING) * dt).tolist():
        inside = slice(*np.searchsorted(even, [one.t[k] + 0.5 * dt, one.t[k + 1] - 0.5 * dt]))
        if steps[k] > MISSING * dt:
            weight[inside] = 0.0
        for x, out in ((one.q, q), (one.qd, qd)):
            if x is not None and out is not None:
                out[inside] = _cubic_fit(one.t, x, k, even[inside], round(FIT_SECONDS / dt))
    return Segment(even, q, tau, qd, weight, one.trajectory)


def _cubic_fit(t: np.ndarray, x: np.ndarray, k: int, at: np.ndarray, max_rows: int) -> np.ndarray:
    """Return x between rows k and k + 1 along the cubic that fits as many rows on either side as are missing.

    An interpolating spline would carry the noise of the rows next to the gap into it. max_rows: rows on either side
    over which the motion is close to a cubic; up to twice as many as are missing are used, which lowers the noise
    further.
    """
    missing = max(4, len(at))
    reach = max(missing, min(2 * missing, max_rows))
    rows = slice(max(0, k + 1 - reach), k + 1 + reach)
    middle, unit = 0.5 * (t[k] + t[k + 1]), t[rows][-1] - t[rows][0]
    coefficients, *_ = np.linalg.lstsq(np.vander((t[rows] - middle) / unit, 4), x[rows], rcond=None)
    return np.vander((at - middle) / unit, 4) @ coefficients


def _check_units(regressor: Regressor, trajectories: list[Trajectory], remarks: Remarks) -> None:
    """Compare positions and torques with the limits of the robot model."""
    joints = {link.joint.name: link.joint for link in regressor.full.model.links}
    low = np.min([one.q.min(axis=0) for one in trajectories], axis=0)
    high = np.max([one.q.max(axis=0) for one in trajectories], axis=0)
    peak = np.max([np.abs(one.tau).max(axis=0) for one in trajectories], axis=0)
    beyond, strong, turning = [], [], []
    for k, joint in enumerate(joints[name] for name in regressor.robot.joint_names):
        limits, turns = joint.limits, joint.type.turns
        margin = 0.05 * (limits.upper - limits.lower) if np.isfinite(limits.upper - limits.lower) else 0.0
        outside = low[k] < limits.lower - margin or high[k] > limits.upper + margin
        fits_degrees = np.radians(low[k]) >= limits.lower - margin and np.radians(high[k]) <= limits.upper + margin
        largest = max(abs(low[k]), abs(high[k]))
        far = largest > (3.0 * max(abs(limits.lower), abs(limits.upper)) if outside else 60.0)
        if turns and fits_degrees and far:
            raise ArgumentError(
                f"q of {joint.name} ranges from {low[k]:.4g} to {high[k]:.4g}, expected radians"
                f"{f' from {limits.lower:.4g} to {limits.upper:.4g}' if outside else ''}: it seems to be in degrees, "
                f"convert it with np.radians."
            )
        if turns and not outside and largest > MAX_ANGLE:
            turning.append(f"{joint.name} ({low[k]:.4g} to {high[k]:.4g} rad)")
        if outside:
            beyond.append(f"{joint.name} ({low[k]:.4g} to {high[k]:.4g})")
        if peak[k] > 2.0 * limits.effort:
            strong.append(f"{joint.name} ({peak[k]:.4g}, limit {limits.effort:.4g})")
    if turning:
        remarks("turns", f"joints turn more than twice: {listed(turning)}; check that q is in radians.")
    if beyond:
        remarks("limits", f"positions exceed the model's limits: {listed(beyond)}; check zeros and signs.")
    if strong:
        remarks("efforts", f"torques exceed twice the model's limits: {listed(strong)}; check their unit.")


# ---- sampling times of a polled controller
#
# A program that polls a controller without access to its clock reads some samples twice and misses others, and stamps
# them with the time of the poll. All joints of a row are then early or late by the same time d, so positions differ
# from the smooth motion q(t) by qd(t) d. d is estimated row by row from all joints together. If the sampling times are
# multiples of a fixed period, the period and its phase are estimated too, and rows are moved to the exact multiples.


@dataclass(frozen=True)
class SamplingTimes:
    """Estimated sampling times t (rows,), and their period in seconds (NaN if they have no common period).

    jitter: standard deviation of the sampling times about the logged ones, in seconds.
    """

    t: np.ndarray
    period: float
    jitter: float


def stale_rows(q: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """Return (rows,) flags of rows that repeat the values of the row before although the robot moves.

    Either all signals repeat, or one of them (positions, velocities or torques) that is updated less often than rows
    are logged.
    """
    signals = (q, *others)
    fast = _moving(q, NEAR_ROWS, 2.0 * NEAR_ROWS * QUANTA)
    stale = np.logical_and.reduce([_repeats(signal) for signal in signals]) & fast
    if others:
        stale |= _held(np.concatenate(signals, axis=1), _moving(q, FAR_ROWS, QUANTA) & ~stale, 0.0)
        for signal in signals:
            stale |= _held(signal, fast & ~stale, MIN_SHARE)
    return stale


def _repeats(x: np.ndarray) -> np.ndarray:
    """Return (rows,) flags of rows equal to the row before."""
    return np.concatenate([[False], (x[1:] == x[:-1]).all(axis=1)])


def _moving(q: np.ndarray, rows: int, quanta: float) -> np.ndarray:
    """Return (rows,) flags: a joint moves steadily by `quanta` encoder steps between `rows` rows before and after."""
    steps = np.abs(np.diff(q, axis=0))
    distinct = max(0.01, 1.0 - float(np.mean(_repeats(q))))
    reach = min(int(np.ceil(rows / distinct)), (len(q) - 1) // 2)
    quantum = np.array([column[column > 0].min() if (column > 0).any() else np.inf for column in steps.T])
    displacement = np.abs(q[2 * reach :] - q[: len(q) - 2 * reach])
    path = np.cumsum(np.concatenate([np.zeros((1, q.shape[1])), steps]), axis=0)
    path = path[2 * reach :] - path[: len(q) - 2 * reach]
    moves = (displacement >= quanta * quantum) & (displacement >= STEADY * path)
    return np.pad(moves.any(axis=1), reach, mode="edge")


def _held(signal: np.ndarray, moving: np.ndarray, min_share: float) -> np.ndarray:
    """Return flags of moving rows in which all columns repeat.

    All flags are False unless such rows are more than `min_share` of the moving rows, and more than independent
    repetition of single columns explains.
    """
    repeats = np.concatenate([np.zeros((1, signal.shape[1]), bool), signal[1:] == signal[:-1]])
    varying = np.ptp(signal, axis=0) > 0.0  # constant columns were not measured
    if not varying.any():
        return np.zeros(len(signal), bool)
    held = repeats[:, varying].all(axis=1) & moving
    count, total = int(held.sum()), int(moving.sum())
    alone = (repeats[moving][:, varying].sum(axis=0) - count) / max(1, total - count)
    by_chance = total * float(np.prod(alone))
    return held if count > max(10.0 * by_chance, min_share * total) + MIN_REPEATS else np.zeros(len(signal), bool)


def sampling_times(t: np.ndarray, q: np.ndarray) -> SamplingTimes:
    """Estimate when rows with logged times t were sampled, from the positions of all joints together."""
    dt = float(np.median(np.diff(t)))
    smooth, velocity = _smooth_motion(t, q, dt)
    deviation = q - smooth
    speed = np.sum(np.square(velocity), axis=1)
    shift = np.sum(deviation * velocity, axis=1) / np.maximum(speed, 1e-300)
    residual = np.sum(np.square(deviation - shift[:, None] * velocity), axis=1) / max(1, q.shape[1] - 1)
    variance = np.median(residual) / np.maximum(speed, 1e-300)  # of `shift`, from noise of the positions
    shift = np.clip(shift, -50.0 * dt, 50.0 * dt)
    fast = speed >= np.median(speed)
    # 0.455: median of the chi-square distribution with one degree of freedom
    spread = max(0.0, float(np.median(np.square(shift[fast])) / 0.455 - np.median(variance[fast])))
    outlier = np.square(shift) > SIGNIFICANT**2 * variance  # single shifted rows in an otherwise even log
    share = np.where(outlier, 1.0, spread / np.maximum(spread + variance, 1e-300))
    times = t + share * shift
    ticks, period = _clock_ticks(times, share * variance)
    if ticks is not None:
        return SamplingTimes(ticks, period, float(np.std(ticks - t)))
    return SamplingTimes(_increasing(times, 0.05 * dt), np.nan, float(np.sqrt(spread)))


def _smooth_motion(t: np.ndarray, q: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Return low-pass filtered positions and their velocities at the times t; gaps are interpolated linearly."""
    cutoff = min(max(SMOOTH_HZ, SMOOTH_SHARE / dt), 0.2 / dt)
    even = t[0] + dt * np.arange(int((t[-1] - t[0]) / dt) + 1)
    smooth = low_pass(np.stack([np.interp(even, t, column) for column in q.T], axis=1), dt, cutoff)
    velocity = derivative(smooth, dt, 1)
    at_t = [np.stack([np.interp(t, even, column) for column in x.T], axis=1) for x in (smooth, velocity)]
    return at_t[0], at_t[1]


def _clock_ticks(times: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray | None, float]:
    """Return the times rounded to ticks of a clock and its period; None if they are not near multiples of a period."""
    steps = np.diff(times)
    period = float(np.median(steps))
    for _ in range(3):  # mean of the steps of one period
        period = float(np.mean(steps[np.abs(steps - period) < 0.3 * period]))
    weight = 1.0 / (variance + (0.05 * period) ** 2)
    starts = np.arange(0, len(times), WINDOW)
    total = np.add.reduceat(weight, starts)
    turns = (times - times[0]) / period
    phase = np.add.reduceat(weight * np.exp(2j * np.pi * turns), starts) / total
    coherent = np.abs(phase) > MIN_COHERENCE
    if coherent.sum() < 0.5 * len(coherent):
        return None, np.nan
    middle = np.add.reduceat(weight * turns, starts) / total
    phase_turns = np.unwrap(np.angle(phase[coherent])) / (2.0 * np.pi)
    line = np.polyfit(middle[coherent], phase_turns, min(1, int(coherent.sum()) - 1))
    linear = np.abs(np.polyval(line, middle[coherent]) - phase_turns).max() < 0.1  # two clocks of constant rates
    drift = np.polyval(line, turns) if linear else np.interp(turns, middle[coherent], phase_turns)
    count = np.round(turns - drift)
    order = np.arange(len(count))
    count = np.maximum.accumulate(count - order) + order  # at least one tick after the row before
    ticks = times[0] + period * (count + drift)
    return ticks, float((ticks[-1] - ticks[0]) / (count[-1] - count[0]))


def _increasing(times: np.ndarray, min_step: float) -> np.ndarray:
    """Return the times moved so that each is at least `min_step` after the one before."""
    steps = min_step * np.arange(len(times))
    return np.maximum.accumulate(times - steps) + steps
