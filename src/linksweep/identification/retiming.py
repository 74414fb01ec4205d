"""Repeated rows and sampling times of logs from a polled controller.

A program that polls a controller without access to its clock reads some samples twice and misses others, and stamps
them with the time of the poll. All joints of a row are then early or late by the same time d, so positions differ from
the smooth motion q(t) by qd(t) d. d is estimated row by row from all joints together. If the sampling times are
multiples of a fixed period, the period and its phase are estimated too, and rows are moved to the exact multiples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linksweep.identification.filtering import derivative, low_pass

NEAR_ROWS, FAR_ROWS = 5, 50  # rows on either side over which motion is measured
QUANTA = 2.0  # a joint that moves this many encoder steps per row cannot repeat its position
SMOOTH_HZ, SMOOTH_SHARE = 10.0, 0.02  # cut-off of the smooth motion: Hz, and share of the sampling rate
WINDOW = 200  # rows over which the phase of the controller's clock is averaged
MIN_COHERENCE = 0.5  # mean resultant length of the phase, at which it is known to a fifth of a period
SIGNIFICANT = 4.0  # standard deviations
STEADY = 0.9  # net displacement over path length of a joint that moves steadily and does not tremble
MIN_SHARE = 0.01  # of the rows: a signal that repeats more often by itself is updated less often than rows are logged
MIN_REPEATS = 3  # repeated rows that are significant


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
