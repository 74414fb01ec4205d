"""How far an estimate may be off: standard deviations for noise of any colour, and what fits without a part predict.

What least squares leaves over is rarely white: friction, elasticity and ripple are no model's. The covariance counts
the residual's own autocovariance r: C = A^-1 (sum over joints of X^T T(r) X / noise^4) A^-1 with A = X^T X / noise^2
and T(r) the Toeplitz matrix of a stationary residual, independent from joint to joint. r is tapered by Politis's flat
top (D. N. Politis, "Adaptive bandwidth choice", 2003), so that for white noise it is the textbook's covariance.
"""

from __future__ import annotations

import numpy as np

from linksweep.identification.estimate.least_squares import Estimate
from linksweep.identification.estimate.triangles import Triangles, chunks
from linksweep.identification.log.signals import Samples

MOST = 24_000  # sums on which the colour is measured; longer logs are taken to go on like that
WINDOWS = 12


def coloured(triangles: Triangles, samples: Samples, found: Estimate, scale: np.ndarray | None = None) -> np.ndarray:
    """The covariance (base, base) of an estimate, with the residual's colour. scale: as of `chunks`."""
    grouping, every = triangles.grouping, triangles.every
    pieces = _windows(samples, every)
    pivots = grouping.from_base @ found.values
    X = [[] for _ in grouping.seen]
    e = [[] for _ in grouping.seen]
    for start, end in pieces:
        grids = [
            (np.zeros((-(-(end - start) // every), int(seen.sum()))), np.zeros(-(-(end - start) // every)))
            for seen in grouping.seen
        ]
        for rows in chunks(grouping, samples, every, [[(start, end)]], scale):
            for joint, (grid, rest) in enumerate(grids):
                at = (rows.first[joint] - start) // every
                grid[at] = rows.X[joint].T
                rest[at] = rows.tau[joint] - pivots[grouping.seen[joint]] @ rows.X[joint]
        for joint, (grid, rest) in enumerate(grids):
            X[joint].append(grid)
            e[joint].append(rest)
    count = triangles.count.sum(axis=0)
    meat = np.zeros_like(found.covariance)
    for joint, seen in enumerate(grouping.seen):
        here = sum(int((np.abs(grid).max(axis=1, initial=0.0) > 0).sum()) for grid in X[joint])
        if not here:
            continue
        r = _autocovariance(X[joint], e[joint])
        own = sum(grid.T @ _toeplitz_times(r, grid) for grid in X[joint]) * (count[joint] / here)
        within = grouping.from_base[seen]
        own = within.T @ own @ within / found.divided[joint] ** 2
        # freedoms that the fit took from this noise: tr(H T(r)) / r(0), more than their number where it is slow
        taken = min(0.5, float(np.sum(found.covariance * own)) / max(r[0], 1e-300) / count[joint])
        meat += own / found.divided[joint] ** 2 / (1.0 - taken)
    return found.covariance @ meat @ found.covariance


def _windows(samples: Samples, every: int) -> list[tuple[int, int]]:
    """The whole log, or windows of it at even distances."""
    total = sum(b - a for a, b in samples.bounds)
    if total <= MOST * every:
        return list(samples.bounds)
    length = MOST * every // WINDOWS
    starts = np.linspace(0, len(samples) - length, WINDOWS).astype(int)
    found = []
    for start in starts:
        a, b = max(samples.bounds, key=lambda bounds: min(bounds[1], start + length) - max(bounds[0], start))
        found.append((max(a, int(start)), min(b, int(start) + length)))
    return [(a, b) for a, b in found if b > a]


def _autocovariance(X: list[np.ndarray], e: list[np.ndarray]) -> np.ndarray:
    """r (lags,), tapered, with a spectrum that is nowhere negative."""
    sums = _lagged([rest for rest in e])
    there = _lagged([(np.abs(grid).max(axis=1, initial=0.0) > 0).astype(float) for grid in X])
    raw = sums / np.maximum(there, 1.0)
    count = there[0]
    if not raw[0] > 0.0:
        return raw[:1]
    rho = raw / raw[0]
    bar = 2.0 * np.sqrt(np.log10(max(count, 10.0)) / count)
    quiet = np.abs(rho[1:]) < bar
    run = 5
    lag = next((k for k in range(len(quiet) - run) if quiet[k : k + run].all()), len(quiet) // 2)
    if lag == 0:
        return raw[:1]
    lags = np.arange(min(2 * lag + 1, len(raw)))
    tapered = raw[: len(lags)] * np.clip(2.0 - lags / lag, 0.0, 1.0)
    ring = np.concatenate([tapered, np.zeros(len(tapered)), tapered[:0:-1]])
    spectrum = np.maximum(np.fft.rfft(ring).real, 0.0)
    return np.fft.irfft(spectrum, len(ring))[: len(tapered)]


def _lagged(pieces: list[np.ndarray]) -> np.ndarray:
    """Sums of products x[t] x[t + k] for lags up to a third of the longest piece, at most 400."""
    most = min(400, max(len(piece) for piece in pieces) // 3 + 1)
    total = np.zeros(most)
    for piece in pieces:
        size = 1 << (2 * len(piece) - 1).bit_length()
        power = np.abs(np.fft.rfft(piece, size)) ** 2
        found = np.fft.irfft(power, size)[: min(most, len(piece))]
        total[: len(found)] += found
    return total


def _toeplitz_times(r: np.ndarray, X: np.ndarray) -> np.ndarray:
    if len(r) == 1:
        return r[0] * X
    from scipy.signal import fftconvolve

    kernel = np.concatenate([r[:0:-1], r])
    return fftconvolve(X, kernel[:, None], mode="full", axes=0)[len(r) - 1 : len(r) - 1 + len(X)]
