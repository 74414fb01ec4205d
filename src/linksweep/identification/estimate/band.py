"""The cut-off, where none is given: the one whose fit best predicts torques that it has not seen.

A low cut-off blurs the motion, a high one lets the positions' noise into the accelerations; both spoil the prediction.
Every second block of the log is fitted and the others are predicted, with the torques as they were measured. Cut-offs
between which the blocks do not decide (their errors differ by less than one standard error from those of the best) are
equally good, and the middle one of them, on a logarithmic scale, is as far from blur as from noise.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from linksweep.identification.estimate.prediction import predicted
from linksweep.identification.estimate.triangles import Triangles, triangles
from linksweep.identification.log.filters import low_passed
from linksweep.identification.log.reading import Log, Remarks
from linksweep.identification.log.signals import edge_rows, leave_out, samples_of
from linksweep.identification.model.grouping import Grouping

MOST = 16_000  # rows that are tried
LOWEST, PERIODS = 2.0, 5.0  # Hz, and cut-off periods in a stretch: none lower is tried
STEP = 2**0.5  # from one cut-off to the next
BLOCKS = 16
CLEAN = 1e-16  # misfit, in squares and parts of the torque, below which positions are without noise


def choose_cutoff(grouping: Grouping, log: Log, slow: float | None) -> float:
    """In Hz; infinite where positions are so clean that no filter is best."""
    part = _shortened(log)
    trials = [np.inf]
    cutoff = 0.4 / log.dt
    while cutoff > max(LOWEST, PERIODS / _usual_length(part)) and len(trials) < 24:
        trials.append(cutoff)
        cutoff /= STEP
    edge = edge_rows(log.dt, trials[-1])  # of the lowest: all are tried on the same rows
    each = np.array([_errors(grouping, part, cutoff, slow, edge) for cutoff in trials])
    if each[0].sum() < CLEAN:
        return trials[0]
    errors = (each / np.maximum(each.sum(axis=1).min(axis=0), CLEAN)).sum(axis=2)  # of joints in parts of their best
    total = errors.sum(axis=1)
    best = int(np.argmin(total))
    worse = errors - errors[best]
    blocks = errors.shape[1]
    margin = np.sqrt(blocks) * np.std(worse, axis=1, ddof=1) if blocks > 1 else np.zeros(len(trials))
    alike = worse.sum(axis=1) <= margin
    first = last = best  # the cut-offs next to each other that are as good
    while first > 0 and alike[first - 1]:
        first -= 1
    while last < len(trials) - 1 and alike[last + 1]:
        last += 1
    if first == 0 and best == 0:
        return trials[0]
    return float(np.sqrt(trials[max(first, 1)] * trials[last]))


def _usual_length(log: Log) -> float:
    """Seconds: half of all rows stand in stretches that are at least as long."""
    lengths = np.sort([len(stretch.t) for stretch in log.stretches])[::-1]
    return log.dt * float(lengths[np.searchsorted(np.cumsum(lengths), 0.5 * lengths.sum())])


def _errors(grouping: Grouping, log: Log, cutoff: float, slow: float | None, edge: int) -> np.ndarray:
    """(blocks, nv) the misfit of each block by a fit of other blocks, in parts of each joint's torque, in squares."""
    samples = samples_of(log, cutoff)
    pieces: list[list[tuple[int, int]]] = []
    for a, b in samples.bounds:
        samples.weight[a : a + edge] = samples.weight[max(a, b - edge) : b] = 0.0
    used = samples.weight > 0.0  # slow rows too: the blur of dry friction where it turns round counts
    leave_out(grouping.columns, samples, slow, Remarks(quiet=True))
    used &= samples.weight.any(axis=0)
    each = max(2, BLOCKS // len(samples.bounds))
    for a, b in samples.bounds:
        edges = np.linspace(a, b, each + 1).astype(int).tolist()
        pieces += [[(c, d)] for c, d in pairwise(edges)]
    halves = [[own for piece in pieces[k::2] for own in piece] for k in (0, 1)]
    both = triangles(grouping, samples, 1, halves)
    fits, sizes = zip(*(_fitted(grouping, both, k) for k in (0, 1)), strict=True)
    torques = predicted(grouping, samples, *fits)
    found = np.zeros((len(pieces), samples.tau.shape[1]))
    for a, b in samples.bounds:
        for own in torques:
            own[a:b] = low_passed(own[a:b], log.dt, cutoff)
    for k, ((a, b),) in enumerate(pieces):
        rest = np.square(samples.tau[a:b] - torques[1 - k % 2, a:b]) * used[a:b]
        found[k] = rest.sum(axis=0) / np.square(sizes[1 - k % 2])
    return found


def _fitted(grouping: Grouping, both: Triangles, part: int) -> tuple[np.ndarray, np.ndarray]:
    """Base parameters by one half of the blocks, with joints weighted by their torque, and (nv,) that torque."""
    rows, sizes = [], []
    for R, shown in zip(both.R[part], grouping.seen, strict=True):
        size = float(np.linalg.norm(R[:, -1])) or np.inf  # a joint without torques takes no part
        block = np.zeros((len(R), len(grouping) + 1))
        block[:, :-1] = R[:, :-1] @ grouping.from_base[shown]
        block[:, -1] = R[:, -1]
        rows.append(block / size)
        sizes.append(size)
    stacked = np.concatenate(rows)
    norms = np.linalg.norm(stacked[:, :-1], axis=0)
    scale = np.where(norms > 1e-12 * norms.max(initial=0.0), norms, np.inf)  # what no row shows stays 0
    values = np.linalg.lstsq(stacked[:, :-1] / scale, stacked[:, -1], rcond=1e-10)[0] / scale
    return values, np.array(sizes)


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
