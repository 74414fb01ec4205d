"""Predicted torques, cross-validation, and the choice of the cut-off frequency."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from linksweep.identification.base_form import BaseForm
from linksweep.identification.estimate import Estimate, weighted_least_squares
from linksweep.identification.filtering import low_pass
from linksweep.identification.log import Log, Remarks
from linksweep.identification.reduction import CHUNK, Parts, RFactors, reduce_log
from linksweep.identification.samples import Samples, edge_rows, exclude_ends, exclude_rows, filtered_samples

MAX_ROWS = 16_000  # of the log on which cut-offs are tried
MIN_CUTOFF, MIN_PERIODS = 2.0, 5.0  # Hz, and periods of the cut-off in a segment: lower ones are not tried
CUTOFF_RATIO = 2**0.5  # from one cut-off to the next
MAX_CUTOFFS = 24
BLOCKS = 16
NOISE_FREE = 1e-16  # relative squared error below which positions are free of noise


def predict_torques(
    base: BaseForm, samples: Samples, *values: np.ndarray, without: np.ndarray | None = None
) -> np.ndarray:
    """Return the torques (rows, nv) of base parameters along samples; several sets of values give (sets, rows, nv).

    without: (parameters,) flags of unknowns that are set to 0.
    """
    torques = np.empty((len(values), *samples.tau.shape))
    x = np.array([base.standard(one) for one in values])
    if without is not None:
        x[:, without] = 0.0
    for a in range(0, len(samples), CHUNK):
        rows = slice(a, a + CHUNK)
        motion = base.regressor.at(samples.q[rows], samples.qd[rows], samples.qdd[rows])
        torques[:, rows] = motion.torques(x)
        if base.regressor.has_known:
            torques[:, rows] += motion.known()
    return torques if len(values) > 1 else torques[0]


def cross_validate(
    factors: RFactors,
    samples: Samples,
    prior: np.ndarray,
    torque: float,
    parts: Parts,
    owner: list[int],
    best: Estimate,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return predicted torques, RMS residuals (nv,), and RMS residuals (parts, nv) of each part by a fit of the others.

    owner: index of the part of each block of `factors`.
    """
    nv = len(best.noise)
    torques = np.empty_like(samples.tau)
    square, count = np.zeros((2, len(parts), nv))
    validation = np.full((len(parts), nv), np.nan)
    for part, pieces in enumerate(parts):
        others = [k for k, index in enumerate(owner) if index != part]
        enough = bool(others) and factors.count[others].sum() > len(factors.base)
        estimate = best
        if enough:
            estimate = weighted_least_squares(factors.joined(others), prior, noise=best.noise, torque=torque)
        unseen_square = np.zeros(nv)
        for a, b in pieces:
            rows = samples.rows(a, b)
            torques[a:b], unseen = predict_torques(factors.base, rows, best.values, estimate.values)
            used = rows.weight > 0
            square[part] += np.sum(np.square(rows.tau - torques[a:b]), axis=0, where=used)
            unseen_square += np.sum(np.square(rows.tau - unseen), axis=0, where=used)
            count[part] += used.sum(axis=0)
        if enough:
            validation[part] = np.sqrt(unseen_square / np.where(count[part], count[part], np.nan))
    total = count.sum(axis=0)
    return torques, np.sqrt(square.sum(axis=0) / np.where(total, total, np.nan)), validation


def choose_cutoff(base: BaseForm, log: Log, slow: float | None) -> float:
    """Return the cut-off (Hz) by cross-validation; infinite if positions are free of noise.

    A low cut-off blurs the motion, a high one lets noise of the positions into the accelerations; both increase the
    prediction error. For each cut-off, a fit of every second block of the log predicts the others. All cut-offs next to
    the best whose error is within one standard error of it are equally good; their middle on a logarithmic scale is
    returned.
    """
    log = _shortened(log)
    cutoffs, cutoff = [np.inf], 0.4 / log.dt
    while cutoff > max(MIN_CUTOFF, MIN_PERIODS / _median_length(log)) and len(cutoffs) < MAX_CUTOFFS:
        cutoffs.append(cutoff)
        cutoff /= CUTOFF_RATIO
    edge = edge_rows(log.dt, cutoffs[-1])  # of the lowest cut-off, so that all are compared on the same rows
    errors = np.array([_prediction_errors(base, log, cutoff, slow, edge) for cutoff in cutoffs])
    if errors[0].sum() < NOISE_FREE:
        return cutoffs[0]
    errors = (errors / np.maximum(errors.sum(axis=1).min(axis=0), NOISE_FREE)).sum(
        axis=2
    )  # relative to each joint's best
    best = int(np.argmin(errors.sum(axis=1)))
    excess = errors - errors[best]
    blocks = errors.shape[1]
    margin = np.sqrt(blocks) * np.std(excess, axis=1, ddof=1) if blocks > 1 else np.zeros(len(cutoffs))
    equal = excess.sum(axis=1) <= margin
    first = last = best
    while first > 0 and equal[first - 1]:
        first -= 1
    while last < len(cutoffs) - 1 and equal[last + 1]:
        last += 1
    if first == 0 and best == 0:
        return cutoffs[0]
    return float(np.sqrt(cutoffs[max(first, 1)] * cutoffs[last]))


def _median_length(log: Log) -> float:
    """Return the length in seconds such that half of all rows are in segments at least as long."""
    lengths = np.sort([len(segment.t) for segment in log.segments])[::-1]
    return log.dt * float(lengths[np.searchsorted(np.cumsum(lengths), 0.5 * lengths.sum())])


def _prediction_errors(base: BaseForm, log: Log, cutoff: float, slow: float | None, edge: int) -> np.ndarray:
    """Return squared prediction errors (blocks, nv), relative to the squared torque of each joint."""
    samples = filtered_samples(log, cutoff)
    exclude_ends(samples.weight, samples.bounds, edge)
    used = samples.weight > 0.0  # includes slow rows: blurred dry friction at reversals counts as an error
    exclude_rows(base.regressor, samples, slow, Remarks(quiet=True))
    used &= samples.weight.any(axis=0)
    count = max(2, BLOCKS // len(samples.bounds))
    blocks = [(c, d) for a, b in samples.bounds for c, d in pairwise(np.linspace(a, b, count + 1).astype(int).tolist())]
    halves = reduce_log(base, samples, 1, [blocks[0::2], blocks[1::2]])
    values, sizes = zip(*(_fit_half(halves, k) for k in (0, 1)), strict=True)
    torques = predict_torques(base, samples, *values)
    for a, b in samples.bounds:
        for predicted in torques:
            predicted[a:b] = low_pass(predicted[a:b], log.dt, cutoff)
    errors = np.zeros((len(blocks), samples.tau.shape[1]))
    for k, (a, b) in enumerate(blocks):
        other = 1 - k % 2
        residual = np.square(samples.tau[a:b] - torques[other, a:b]) * used[a:b]
        errors[k] = residual.sum(axis=0) / np.square(sizes[other])
    return errors


def _fit_half(halves: RFactors, part: int) -> tuple[np.ndarray, np.ndarray]:
    """Return base parameters fitted to one part, with joints scaled by their torques, and the norms of these (nv,)."""
    # a joint without torques is not fitted
    sizes = np.array([float(np.linalg.norm(R[:, -1])) or np.inf for R in halves.R[part]])
    stacked = np.concatenate([halves.base_rows(part, joint) / size for joint, size in enumerate(sizes)])
    norms = np.linalg.norm(stacked[:, :-1], axis=0)
    scale = np.where(norms > 1e-12 * norms.max(initial=0.0), norms, np.inf)  # parameters without effect stay 0
    values = np.linalg.lstsq(stacked[:, :-1] / scale, stacked[:, -1], rcond=1e-10)[0] / scale
    return values, sizes


def _shortened(log: Log) -> Log:
    """Return the first rows of each segment, about MAX_ROWS in all."""
    share = min(1.0, MAX_ROWS / log.rows)
    return replace(log, segments=tuple(s.rows(slice(max(64, int(share * len(s.t))))) for s in log.segments))
