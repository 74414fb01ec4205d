"""Torques that numbers predict: along the whole log, and in each part by a fit that has not seen it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linksweep.identification.estimate.least_squares import Estimate, estimate
from linksweep.identification.estimate.triangles import CHUNK, Triangles
from linksweep.identification.log.signals import Samples
from linksweep.identification.model.grouping import Grouping


def predicted(group: Grouping, samples: Samples, *values: np.ndarray, without: np.ndarray | None = None) -> np.ndarray:
    """Torques (rows, nv) of base parameters along samples; several sets of them give (sets, rows, nv).

    without: (columns,) unknowns that are taken as 0.
    """
    found = np.empty((len(values), *samples.tau.shape))
    x = np.array([group.standard(own) for own in values])
    if without is not None:
        x[:, without] = 0.0
    for a in range(0, len(samples), CHUNK):
        rows = slice(a, a + CHUNK)
        here = group.columns.at(samples.q[rows], samples.qd[rows], samples.qdd[rows])
        found[:, rows] = here.torques(x)
        if group.columns.has_known:
            found[:, rows] += here.known()
    return found if len(values) > 1 else found[0]


def checked_against(
    found: Triangles,
    samples: Samples,
    prior: np.ndarray,
    torque: float,
    parts: list[list[tuple[int, int]]],
    owner: list[int],
    best: Estimate,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predicted torques, their rms error (nv,), and (parts, nv) that of each part by a weighted fit of all others.

    owner: the part to which each block of the triangles belongs.
    """
    group = found.grouping
    torques = np.empty_like(samples.tau)
    square, count = np.zeros((2, len(parts), len(best.noise)))
    apart = np.full((len(parts), len(best.noise)), np.nan)
    for part, pieces in enumerate(parts):
        others = [k for k, own in enumerate(owner) if own != part]
        enough = bool(others) and found.count[others].sum() > len(group)
        without = estimate(found.joined(others), prior, noise=best.noise, torque=torque) if enough else best
        left = np.zeros(len(best.noise))
        for a, b in pieces:
            own = _cut(samples, a, b)
            torques[a:b], unseen = predicted(group, own, best.values, without.values)
            used = own.weight > 0
            square[part] += np.sum(np.square(own.tau - torques[a:b]), axis=0, where=used)
            left += np.sum(np.square(own.tau - unseen), axis=0, where=used)
            count[part] += used.sum(axis=0)
        if enough:
            apart[part] = np.sqrt(left / np.where(count[part], count[part], np.nan))
    total = count.sum(axis=0)
    return torques, np.sqrt(square.sum(axis=0) / np.where(total, total, np.nan)), apart


def _cut(samples: Samples, a: int, b: int) -> Samples:
    rows = slice(a, b)
    return replace(
        samples, t=samples.t[rows], q=samples.q[rows], qd=samples.qd[rows], qdd=samples.qdd[rows],
        tau=samples.tau[rows], weight=samples.weight[rows], bounds=((0, b - a),), trajectory=(0,),
    )  # fmt: skip
