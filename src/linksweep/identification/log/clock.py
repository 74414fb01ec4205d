"""Rows of a polled controller: which of them repeat the row before, and when the others were taken.

A program that polls a controller without its clock gets some rows twice and misses others, and stamps them with the
time of the poll. All joints of a row are then measured early or late by the same time d, so positions differ from the
smooth motion q(t) by qd(t) d. This is estimated row by row from all joints together. If the sampling times are
multiples of a fixed period, the period and its phase follow from them, and rows are moved to the exact ticks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linksweep.identification.log.filters import derivative, low_passed

REACH, FAR = 5, 50  # rows on either side over which motion is measured
QUANTA = 2.0  # a joint that moves this many encoder steps per row cannot repeat its position
SMOOTH, PART = 10.0, 0.02  # Hz, and part of the rate of the rows: below is motion, the rest is noise and jitter
WINDOW = 200  # rows over which the phase of the controller's clock is averaged
COHERENT = 0.5  # mean resultant length of the phase: the ticks are known to a fifth of a period
CLEAR = 4.0  # standard deviations
ONWARD = 0.9  # of the path of a joint that moves on, and does not tremble
OFTEN = 0.01  # of the rows: a signal that repeats alone more often is updated less often than rows are logged
FEWEST = 3  # repeated rows that count as a finding


@dataclass(frozen=True)
class Clock:
    """t: (rows,) sampling times of the rows that are kept. period: of the controller, NaN if rows have no common one.

    jitter: standard deviation of the sampling times about the given ones.
    """

    t: np.ndarray
    period: float
    jitter: float


def stale_rows(q: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """(rows,) whether a row holds the values of the row before although the arm moves.

    That is all of them, or those of one signal (positions, velocities or torques) that is updated less often than rows
    are logged.
    """
    signals = (q, *others)
    fast = _moving(q, REACH, 2.0 * REACH * QUANTA)
    found = np.logical_and.reduce([_repeats(signal) for signal in signals]) & fast
    if others:
        found |= _held(np.concatenate(signals, axis=1), _moving(q, FAR, QUANTA) & ~found, 0.0)
        for signal in signals:
            found |= _held(signal, fast & ~found, OFTEN)
    return found


def _repeats(x: np.ndarray) -> np.ndarray:
    """(rows,) whether all columns are equal to those of the row before."""
    return np.concatenate([[False], (x[1:] == x[:-1]).all(axis=1)])


def _moving(q: np.ndarray, rows: int, quanta: float) -> np.ndarray:
    """(rows,) whether some joint moves on by so many encoder steps, from `rows` rows before to as many after."""
    steps = np.abs(np.diff(q, axis=0))
    distinct = max(0.01, 1.0 - float(np.mean(_repeats(q))))
    reach = min(int(np.ceil(rows / distinct)), (len(q) - 1) // 2)
    quantum = np.array([own[own > 0].min() if (own > 0).any() else np.inf for own in steps.T])
    far = np.abs(q[2 * reach :] - q[: len(q) - 2 * reach])
    path = np.cumsum(np.concatenate([np.zeros((1, q.shape[1])), steps]), axis=0)
    path = path[2 * reach :] - path[: len(q) - 2 * reach]
    return np.pad(((far >= quanta * quantum) & (far >= ONWARD * path)).any(axis=1), reach, mode="edge")


def _held(signal: np.ndarray, moving: np.ndarray, often: float) -> np.ndarray:
    """Rows in which all columns repeat, if these are more than a part `often` of those in which the arm moves, and no
    coincidence of columns that repeat one by one.
    """
    each = np.concatenate([np.zeros((1, signal.shape[1]), bool), signal[1:] == signal[:-1]])
    changes = np.ptp(signal, axis=0) > 0.0  # a column that was not measured does not count
    if not changes.any():
        return np.zeros(len(signal), bool)
    every = each[:, changes].all(axis=1) & moving
    count, total = int(every.sum()), int(moving.sum())
    alone = (each[moving][:, changes].sum(axis=0) - count) / max(1, total - count)
    by_chance = total * float(np.prod(alone))
    return every if count > max(10.0 * by_chance, often * total) + FEWEST else np.zeros(len(signal), bool)


def sampling_times(t: np.ndarray, q: np.ndarray) -> Clock:
    """When rows were taken that carry the times t, from the positions of all joints together."""
    dt = float(np.median(np.diff(t)))
    smooth, rates = _smooth(t, q, dt)
    away = q - smooth
    speed = np.sum(np.square(rates), axis=1)
    late = np.sum(away * rates, axis=1) / np.maximum(speed, 1e-300)
    rest = np.sum(np.square(away - late[:, None] * rates), axis=1) / max(1, q.shape[1] - 1)
    doubt = np.median(rest) / np.maximum(speed, 1e-300)  # the variance of `late` by noise of the positions
    late = np.clip(late, -50.0 * dt, 50.0 * dt)
    fast = speed >= np.median(speed)
    spread = max(0.0, float(np.median(np.square(late[fast])) / 0.455 - np.median(doubt[fast])))  # 0.455: of chi-square
    clear = np.square(late) > CLEAR**2 * doubt  # single rows that are off in a log that is even otherwise
    share = np.where(clear, 1.0, spread / np.maximum(spread + doubt, 1e-300))
    times = t + share * late
    ticks, period = _ticks(times, share * doubt)
    if ticks is not None:
        return Clock(ticks, period, float(np.std(ticks - t)))
    return Clock(_growing(times, 0.05 * dt), np.nan, float(np.sqrt(spread)))


def _smooth(t: np.ndarray, q: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Low-passed positions and their derivatives at the times t; gaps are bridged by straight lines."""
    band = min(max(SMOOTH, PART / dt), 0.2 / dt)
    even = t[0] + dt * np.arange(int((t[-1] - t[0]) / dt) + 1)
    smooth = low_passed(np.stack([np.interp(even, t, own) for own in q.T], axis=1), dt, band)
    rates = derivative(smooth, dt, 1)
    at = [np.stack([np.interp(t, even, own) for own in x.T], axis=1) for x in (smooth, rates)]
    return at[0], at[1]


def _ticks(times: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray | None, float]:
    """The times moved to multiples of one period, and the period; None if they are not near such multiples."""
    steps = np.diff(times)
    period = float(np.median(steps))
    for _ in range(3):  # the mean of the steps by one period
        period = float(np.mean(steps[np.abs(steps - period) < 0.3 * period]))
    weight = 1.0 / (variance + (0.05 * period) ** 2)
    starts = np.arange(0, len(times), WINDOW)
    total = np.add.reduceat(weight, starts)
    turns = (times - times[0]) / period
    phase = np.add.reduceat(weight * np.exp(2j * np.pi * turns), starts) / total
    known = np.abs(phase) > COHERENT
    if known.sum() < 0.5 * len(known):
        return None, np.nan
    middle = np.add.reduceat(weight * turns, starts) / total
    slow = np.unwrap(np.angle(phase[known])) / (2.0 * np.pi)
    line = np.polyfit(middle[known], slow, min(1, int(known.sum()) - 1))
    even = np.abs(np.polyval(line, middle[known]) - slow).max() < 0.1  # two clocks of constant rates
    drift = np.polyval(line, turns) if even else np.interp(turns, middle[known], slow)
    count = np.round(turns - drift)
    order = np.arange(len(count))
    count = np.maximum.accumulate(count - order) + order  # one tick later at least
    found = times[0] + period * (count + drift)
    return found, float((found[-1] - found[0]) / (count[-1] - count[0]))


def _growing(times: np.ndarray, least: float) -> np.ndarray:
    """Times that grow by `least` at least."""
    steps = least * np.arange(len(times))
    return np.maximum.accumulate(times - steps) + steps
