"""Whether torques stand at the times of the positions: how well all of them fit when they are shifted.

A shift by a few milliseconds, from another clock or a filter in the drive, looks like armature and friction. The misfit
of least squares as a function of the shift, joint by joint, needs one decomposition of the joint's regressor and a
product for each shift.
"""

from __future__ import annotations

import numpy as np
from scipy.ndimage import minimum_filter1d

from linksweep.identification.log.signals import Samples
from linksweep.identification.model.grouping import Grouping

LONGEST = 0.1  # seconds, either way
MOST_SHIFTS = 50  # either way
MOST_ROWS = 12_000
GAIN_OF_ALL, GAIN_OF_ONE = 1.05, 1.2  # of the mean squared misfit; what no shift explains makes less


def delays_of(grouping: Grouping, samples: Samples, noise: np.ndarray) -> np.ndarray:
    """Seconds (nv,) by which the torques of each joint stand late, positive, or early; 0 where no shift fits clearly
    better: of all joints alike, in one fit, or of a joint that is fitted by itself.
    """
    columns = grouping.columns
    reach = max(2, int(LONGEST / samples.dt))
    stride = max(1, reach // MOST_SHIFTS)
    shifts = np.arange(-(reach // stride), reach // stride + 1) * stride
    step, late = stride * samples.dt, np.zeros(columns.nv)
    rows = _rows(samples, int(shifts[-1]))
    if len(rows) < 50:
        return late
    here = columns.at(samples.q[rows], samples.qd[rows], samples.qdd[rows])
    known = here.known() if columns.has_known else np.zeros((len(rows), columns.nv))
    whole = _Sums(len(grouping), len(shifts))
    count = 0
    for joint, (seen, pivots) in enumerate(zip(grouping.seen, grouping.seen_pivots, strict=True)):
        # no row left out within reach: where friction turns round, any shift helps or hurts
        near = minimum_filter1d((samples.weight[:, joint] > 0.0).view(np.uint8), 2 * int(shifts[-1]) + 1)
        used = near[rows] > 0
        X = here.of_joint(joint, pivots)[:, used] / noise[joint]
        tau = (samples.tau[rows[used][:, None] + shifts, joint] - known[used, joint][:, None]) / noise[joint]
        whole.add(seen, X, tau)
        count += len(tau)
        if len(tau) > 2 * len(pivots) + 50:
            alone = _Sums(len(pivots), len(shifts))
            alone.add(np.ones(len(pivots), bool), X, tau)
            late[joint] = step * _best_shift(alone.misfit(), GAIN_OF_ONE)
    together = step * _best_shift(whole.misfit(), GAIN_OF_ALL) if count > 2 * len(grouping) + 50 else 0.0
    return np.where(late == 0.0, together, late)


class _Sums:
    """Normal equations for several right sides, the shifted torques."""

    def __init__(self, unknowns: int, shifts: int) -> None:
        self.normal, self.right = np.zeros((unknowns, unknowns)), np.zeros((unknowns, shifts))
        self.square = np.zeros(shifts)

    def add(self, seen: np.ndarray, X: np.ndarray, tau: np.ndarray) -> None:
        """X: (unknowns seen, rows); tau: (rows, shifts)."""
        self.normal[np.ix_(seen, seen)] += X @ X.T
        self.right[seen] += X @ tau
        self.square += np.sum(np.square(tau), axis=0)

    def misfit(self) -> np.ndarray:
        """What least squares leaves of each right side, (shifts,)."""
        unit = 1.0 / np.sqrt(np.maximum(np.diag(self.normal), 1e-300))
        sizes, vectors = np.linalg.eigh(self.normal * unit[:, None] * unit)
        shown = sizes > 1e-10 * sizes[-1]
        inside = (vectors[:, shown] / np.sqrt(sizes[shown])).T @ (self.right * unit[:, None])
        return np.maximum(self.square - np.sum(np.square(inside), axis=0), 1e-12 * self.square + 1e-300)


def _best_shift(misfit: np.ndarray, gain: float) -> float:
    """In steps from the middle; 0 where none is clearly better than no shift."""
    best, middle = int(np.argmin(misfit)), len(misfit) // 2
    # a least misfit with worse ones on both sides: what only falls towards an end is no delay
    if min(misfit[0], misfit[middle], misfit[-1]) < gain * misfit[best]:
        return 0.0
    return best - middle + _vertex(misfit, best)


def _vertex(misfit: np.ndarray, best: int) -> float:
    """Where the parabola through the least misfit and its neighbours is lowest, in parts of a shift."""
    if not 0 < best < len(misfit) - 1:
        return 0.0
    before, at, after = misfit[best - 1 : best + 2]
    bend = before - 2.0 * at + after
    return float(0.5 * (before - after) / bend) if bend > 0.0 else 0.0


def _rows(samples: Samples, reach: int) -> np.ndarray:
    """Rows that may be shifted within their stretch, MOST_ROWS at most."""
    pieces = [np.arange(a + reach, b - reach) for a, b in samples.bounds if b - a > 2 * reach]
    rows = np.concatenate(pieces) if pieces else np.empty(0, int)
    return rows if len(rows) <= MOST_ROWS else rows[:: -(-len(rows) // MOST_ROWS)]
