"""The log as tests see it: in a narrower band than the fit, and in blocks.

Slow motion shows signs, units, order and shifts well. Noise of accelerations, which is largest at the end of the band,
biases what the tests compare, and differentiated once more it would drown a shift.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.ndimage import maximum_filter1d

from linksweep.identification.estimate.band import every_of
from linksweep.identification.estimate.least_squares import Estimate, estimate
from linksweep.identification.estimate.triangles import Triangles, blocks_of, triangles
from linksweep.identification.log.filters import low_passed
from linksweep.identification.log.signals import RAMP, Samples, edge_rows
from linksweep.identification.model.columns import Columns
from linksweep.identification.model.grouping import Grouping

Pieces = list[list[tuple[int, int]]]
MOST = 12_000  # sums of rows
PARTS = (0.25, 0.35, 0.5, 0.7)  # of the cut-off of the fit: bands that are tried
BLUR = 0.01  # of the velocities, that a band may take away
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

    def at_times(self, late: np.ndarray) -> Evidence:
        """The same with torques (nv,) taken as many seconds later as they are late."""
        samples = replace(self.samples, tau=shifted(self.samples, late))
        found = triangles(self.grouping, samples, self.every, self.blocks)
        torque = float(np.sqrt(np.mean(np.square(samples.tau), axis=0)).max())
        return replace(self, samples=samples, triangles=found, best=estimate(found, self.best.values, torque=torque))


def shifted(samples: Samples, late: np.ndarray) -> np.ndarray:
    """Torques taken as many seconds later as they are late."""
    found = samples.tau.copy()
    for a, b in samples.bounds:
        t = samples.t[a:b]
        for joint in np.flatnonzero(late):
            found[a:b, joint] = np.interp(t + late[joint], t, samples.tau[a:b, joint])
    return found


def evidence_of(grouping: Grouping, samples: Samples, best: Estimate, parts: Pieces) -> Evidence | None:
    """None where the log has too few blocks for tests. best: the estimate of the fit. parts: of the log."""
    q, qd, qdd, band = _narrowed(samples)
    every = every_of(samples.dt, band)
    blocks, _ = blocks_of(parts, every, samples.dt)
    if len(blocks) < FEWEST:
        return None
    most = max(16, MOST // len(blocks)) * every
    blocks = [[(a, min(b, a + most)) for a, b in pieces] for pieces in blocks]
    weight = _away_from_reversals(grouping.columns, samples, band)
    narrow = replace(samples, q=q, qd=qd, qdd=qdd, weight=weight, cutoff=band)
    found = triangles(grouping, narrow, every, blocks)
    torque = float(np.sqrt(np.mean(np.square(samples.tau), axis=0)).max())
    return Evidence(grouping, narrow, every, blocks, found, estimate(found, best.values, torque=torque))


def _narrowed(samples: Samples) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Positions, velocities and accelerations in the narrowest band that holds the motion, and the band."""

    def low(x: np.ndarray, band: float) -> np.ndarray:
        return np.concatenate([low_passed(x[a:b], samples.dt, band) for a, b in samples.bounds])

    size = np.sqrt(np.mean(np.square(samples.qd), axis=0))
    for part in PARTS if np.isfinite(samples.cutoff) else ():
        band = part * samples.cutoff
        qd = low(samples.qd, band)
        if (np.sqrt(np.mean(np.square(qd - samples.qd), axis=0)) <= BLUR * size).all():
            return low(samples.q, band), qd, low(samples.qdd, band), band
    return samples.q, samples.qd, samples.qdd, samples.cutoff


def _away_from_reversals(columns: Columns, samples: Samples, band: float) -> np.ndarray:
    """Weights of rows that are not near those in which a drive with dry friction turns round, nor near an end."""
    reach, edge = max(5, round(NEAR / samples.dt)), edge_rows(samples.dt, band)
    found = samples.weight.copy()
    slow = np.abs(columns.drive_rates(samples.qd)) <= columns.slow / RAMP if columns.slow.any() else None
    for a, b in samples.bounds:
        found[a : a + edge] = found[max(a, b - edge) : b] = 0.0
        if slow is not None:
            near = maximum_filter1d(slow[a:b].view(np.uint8), 2 * reach + 1, axis=0) > 0
            found[a:b][near @ columns.acts > 0] = 0.0
    return found
