"""The cut-off, where none is given: of several the one whose fit best predicts torques that it has not seen.

A low cut-off blurs the motion, a high one lets the positions' noise into the accelerations; both spoil the prediction.
Half of the log's blocks are fitted and the other half predicted, with the torques as they were measured.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from linksweep.identification.estimate.triangles import triangles
from linksweep.identification.log.reading import Log, Remarks
from linksweep.identification.log.signals import edge_rows, leave_out, samples_of
from linksweep.identification.model.grouping import Grouping

MOST = 16_000  # rows that are tried
LOWEST, PERIODS = 2.0, 5.0  # Hz, and cut-off periods in a stretch: none lower is tried
STEP = 2**0.5  # from one cut-off to the next
BLOCKS = 16
CLEAN = 1e-16  # misfit, in squares and parts of the torque, below which positions are without noise
TIE = 1.02  # of the least misfit, in squares: of what is about as good, the lowest


def choose_cutoff(grouping: Grouping, log: Log, slow: float | None) -> float:
    """In Hz; infinite where positions are so clean that no filter is best."""
    part = _shortened(log)
    trials = [np.inf]
    cutoff = 0.4 / log.dt
    while cutoff > max(LOWEST, PERIODS / _usual_length(part)) and len(trials) < 24:
        trials.append(cutoff)
        cutoff /= STEP
    edge = edge_rows(log.dt, trials[-1])  # of the lowest: all are tried on the same rows
    errors = np.array([_error(grouping, part, cutoff, slow, edge) for cutoff in trials])
    if errors[0] < CLEAN:
        return trials[0]
    return float(min(np.array(trials)[errors <= TIE * errors.min()]))


def _usual_length(log: Log) -> float:
    """Seconds: half of all rows stand in stretches that are at least as long."""
    lengths = np.sort([len(stretch.t) for stretch in log.stretches])[::-1]
    return log.dt * float(lengths[np.searchsorted(np.cumsum(lengths), 0.5 * lengths.sum())])


def _error(grouping: Grouping, log: Log, cutoff: float, slow: float | None, edge: int) -> float:
    """The misfit of unseen blocks over all joints, each in parts of its own torque."""
    samples = samples_of(log, cutoff)
    leave_out(grouping.columns, samples, slow, Remarks(quiet=True))
    pieces: list[list[tuple[int, int]]] = [[], []]
    for a, b in samples.bounds:
        samples.weight[a : a + edge] = samples.weight[max(a, b - edge) : b] = 0.0
        edges = np.linspace(a, b, BLOCKS + 1).astype(int).tolist()
        for k, (c, d) in enumerate(pairwise(edges)):
            pieces[k % 2].append((c, d))
    both = triangles(grouping, samples, 1, pieces)
    total = 0.0
    for seen, unseen in ((0, 1), (1, 0)):
        blocks, sizes = [], []
        for R, shown in zip(both.R[seen], grouping.seen, strict=True):
            size = float(np.linalg.norm(R[:, -1])) or np.inf  # a joint that says nothing takes no part
            block = np.zeros((len(R), len(grouping) + 1))
            block[:, :-1][:, shown] = R[:, :-1]
            block[:, -1] = R[:, -1]
            blocks.append(block / size)
            sizes.append(size)
        stacked = np.concatenate(blocks)
        scale = np.maximum(np.linalg.norm(stacked[:, :-1], axis=0), 1e-300)
        x = np.linalg.lstsq(stacked[:, :-1] / scale, stacked[:, -1], rcond=1e-10)[0] / scale
        total += float(np.sum(both.squares(unseen, x) / np.square(sizes)))
    return total


def every_of(dt: float, cutoff: float) -> int:
    """Rows that are summed: a quarter of the cut-off's period, over which little within the band is lost."""
    return max(1, int(0.25 / (dt * cutoff))) if np.isfinite(cutoff) else 1


def _shortened(log: Log) -> Log:
    """The first rows of each stretch, MOST in all."""
    share = min(1.0, MOST / log.rows)
    kept = []
    for stretch in log.stretches:
        rows = max(64, int(share * len(stretch.t)))
        qd = None if stretch.qd is None else stretch.qd[:rows]
        kept.append(
            replace(stretch, t=stretch.t[:rows], q=stretch.q[:rows], tau=stretch.tau[:rows], qd=qd,
                    weight=stretch.weight[:rows])
        )  # fmt: skip
    return replace(log, stretches=tuple(kept))
