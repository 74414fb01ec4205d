"""Huber's estimator: residuals beyond 1.345 standard deviations count as if they stood there, so that outliers cannot
pull.

P. J. Huber, "Robust estimation of a location parameter", 1964; iterated reweighting, with the noise of each joint from
the median of its residuals.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linksweep.identification.estimate.least_squares import Estimate, estimate
from linksweep.identification.estimate.triangles import Triangles, chunks, triangles
from linksweep.identification.log.signals import Samples

BEND = 1.345  # 95 % of least squares' efficiency where there are no outliers
PASSES = 12


def huber(
    found: Triangles, samples: Samples, prior: np.ndarray, torque: float, parts: list[list[tuple[int, int]]]
) -> tuple[Estimate, np.ndarray, Triangles]:
    """The estimate, (rows, nv) the root of the weight of each sum at its first row, and the weighted triangles."""
    best = estimate(found, prior, torque=torque)
    scale = np.ones_like(samples.tau)
    for _ in range(PASSES):
        before = best.values
        noise, inside, weight = _reweighted(found, samples, best, parts, scale)
        weighted = triangles(found.grouping, samples, found.every, parts, scale)
        best = estimate(weighted, prior, noise=noise, torque=torque)
        change = np.abs(best.values - before) * found.grouping.sizes
        if change.max() <= 1e-4 * noise.min() / np.sqrt(found.count.sum()):
            break
    # Huber 1964: A is the sum of psi', not of the weights
    best = replace(best, covariance=best.covariance * weight / inside)
    return best, scale, weighted


def _reweighted(
    found: Triangles, samples: Samples, best: Estimate, parts: list[list[tuple[int, int]]], scale: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """Sets `scale`; the noise (nv,), the part of sums within the bend, and the mean weight."""
    group = found.grouping
    pivots = group.from_base @ best.values
    rests: list[list[np.ndarray]] = [[] for _ in group.seen]
    firsts: list[list[np.ndarray]] = [[] for _ in group.seen]
    for rows in chunks(group, samples, found.every, parts):
        for joint, seen in enumerate(group.seen):
            rests[joint].append(rows.tau[joint] - pivots[seen] @ rows.X[joint])
            firsts[joint].append(rows.first[joint])
    noise = best.noise.copy()
    counts = np.zeros(3)
    for joint, (pieces, places) in enumerate(zip(rests, firsts, strict=True)):
        rest, at = np.concatenate(pieces), np.concatenate(places)
        if not len(rest):
            continue
        freedom = max(0.1, 1.0 - best.freedoms[joint] / len(rest))
        noise[joint] = max(1.4826 * float(np.median(np.abs(rest))) / np.sqrt(freedom), 1e-300)
        size = np.abs(rest) / noise[joint]
        weight = np.minimum(1.0, BEND / np.maximum(size, 1e-300))
        scale[at, joint] = np.sqrt(weight)
        counts += [len(rest), float((size < BEND).sum()), float(weight.sum())]
    return noise, counts[1] / counts[0], counts[2] / counts[0]
