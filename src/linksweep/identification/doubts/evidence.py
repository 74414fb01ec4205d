"""The log as tests see it: in a narrower band than the fit, and in blocks.

Slow motion shows signs, units, order and shifts well. Noise of accelerations, which is largest at the end of the band,
biases what the tests compare, and differentiated once more it would drown a shift.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import minimum_filter1d

from linksweep.identification.estimate.band import every_of
from linksweep.identification.estimate.least_squares import Estimate, estimate
from linksweep.identification.estimate.triangles import Triangles, blocks_of, triangles
from linksweep.identification.log.filters import low_passed
from linksweep.identification.log.signals import Samples
from linksweep.identification.model.grouping import Grouping

Pieces = list[list[tuple[int, int]]]
MOST = 12_000  # sums of rows
PART, SLOWEST = 0.25, 2.0  # of the cut-off of the fit, and Hz: the band
NEAR = 0.03  # seconds from rows that were left out: where friction turns round, a narrow band blurs it
FEWEST = 5  # blocks that tests need


@dataclass(frozen=True)
class Evidence:
    """samples: in the narrow band. every: rows of a sum. blocks: pieces of the log. triangles: of the blocks. best: the
    estimate by them.
    """

    grouping: Grouping
    samples: Samples
    every: int
    blocks: Pieces
    triangles: Triangles
    best: Estimate


def evidence_of(grouping: Grouping, samples: Samples, best: Estimate, parts: Pieces) -> Evidence | None:
    """None where the log has too few blocks for tests. best: the estimate of the fit. parts: of the log."""
    band = min(samples.cutoff, max(PART * samples.cutoff, SLOWEST)) if np.isfinite(samples.cutoff) else np.inf
    every = every_of(samples.dt, band)
    blocks, _ = blocks_of(parts, every, samples.dt)
    if len(blocks) < FEWEST:
        return None
    most = max(16, MOST // len(blocks)) * every
    blocks = [[(a, min(b, a + most)) for a, b in pieces] for pieces in blocks]
    q, qd, qdd = (
        np.concatenate([low_passed(x[a:b], samples.dt, band) for a, b in samples.bounds])
        for x in (samples.q, samples.qd, samples.qdd)
    )
    narrow = replace(samples, q=q, qd=qd, qdd=qdd, weight=_away_from_others(samples), cutoff=band)
    found = triangles(grouping, narrow, every, blocks)
    torque = float(np.sqrt(np.mean(np.square(samples.tau), axis=0)).max())
    return Evidence(grouping, narrow, every, blocks, found, estimate(found, best.values, torque=torque))


def _away_from_others(samples: Samples) -> np.ndarray:
    """Weights of rows that have no row near them that was left out, nor the end of a stretch."""
    reach = max(5, round(NEAR / samples.dt))
    found = samples.weight.copy()
    for a, b in samples.bounds:
        near = minimum_filter1d((found[a:b] > 0.0).view(np.uint8), 2 * reach + 1, axis=0, mode="constant")
        found[a:b] *= near
    return found
