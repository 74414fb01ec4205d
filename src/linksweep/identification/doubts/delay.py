"""Whether torques are logged at the times of the positions.

A shift by a few milliseconds, from another clock or a filter in the drive, looks like armature and friction. If torques
of joint j are late by d_j, then tau_j(t) = (Y x)_j(t - d_j), to first order Y x - d_j d/dt (Y x). The d_j are estimated
as further unknowns beside x, and their standard errors from blocks of the log (`blocks.py`). Larger shifts are found by
Gauss's and Newton's method: torques are shifted by the estimate, and what is left is estimated again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linksweep.identification.doubts.blocks import bar, error_of_sum
from linksweep.identification.doubts.evidence import Evidence, shifted
from linksweep.identification.estimate.prediction import predicted
from linksweep.identification.estimate.triangles import Triangles, triangles
from linksweep.identification.log.filters import derivative
from linksweep.identification.log.signals import Samples
from linksweep.identification.model.grouping import Grouping

LONGEST = 0.1  # seconds, either way
ROUNDS = 6
LEAST = 0.1  # of a row: clocks are not more exact
DRY = ("coulomb", "coulomb+", "coulomb-", "stribeck")


def delays_of(evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    """Seconds (nv,) by which the torques of each joint are late, positive, or early, and their standard errors.

    Both are 0 where no delay is significant.
    """
    grouping, samples, noise = evidence.grouping, evidence.samples, evidence.best.noise
    late, errors = np.zeros((2, grouping.columns.nv))
    slopes = _slopes(grouping, samples, evidence.best.values)
    here, groups = samples, None
    for _ in range(ROUNDS):
        found = triangles(grouping, here, evidence.every, evidence.blocks, extra=-slopes)
        groups = _groups(found, noise, LEAST * samples.dt) if groups is None else groups
        if groups is None:
            break
        step, errors = (np.where(groups >= 0, own[groups], 0.0) for own in _shifts(found, noise, groups))
        late = np.clip(late + step, -LONGEST, LONGEST)
        if np.abs(step).max() < 0.02 * samples.dt:
            break
        here = replace(samples, tau=shifted(samples, late))
    return late, errors


def _slopes(grouping: Grouping, samples: Samples, values: np.ndarray) -> np.ndarray:
    """Derivatives (rows, nv) of the predicted torques in time, without dry friction."""
    dry = np.array([column.what in DRY for column in grouping.columns.columns])
    torques = predicted(grouping, samples, values, without=dry)
    return np.concatenate([derivative(torques[a:b], samples.dt, 1) for a, b in samples.bounds])


def _groups(found: Triangles, noise: np.ndarray, least: float) -> np.ndarray | None:
    """(nv,) which joints are shifted alike, -1 for those that are not; None where no shift is significant.

    One shift of all is the simplest explanation; joints that contradict it have their own, and the others share one.
    """
    nv = len(noise)
    late, errors = _shifts(found, noise, np.arange(nv))
    joint_bar, one_bar = bar(found.parts, nv), bar(found.parts)
    common, its_error = (x[0] for x in _shifts(found, noise, np.zeros(nv, int)))
    alike = abs(common) > one_bar * its_error and abs(common) >= least
    own = np.abs(late - common) > joint_bar * errors
    if alike and not own.any():
        return np.zeros(nv, int)
    clear = (np.abs(late) > joint_bar * errors) & (np.abs(late) >= least)
    if not clear.any():
        return None
    groups = np.where(clear, np.cumsum(clear) - 1, clear.sum())
    if clear.all():
        return groups
    joined, its_errors = _shifts(found, noise, groups)
    rest = abs(joined[-1]) > one_bar * its_errors[-1] and abs(joined[-1]) >= least
    return groups if rest else np.where(clear, groups, -1)


def _shifts(found: Triangles, noise: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shifts of groups of joints and their standard errors, infinite where the log does not show them."""
    base, count = len(found.grouping), int(groups.max()) + 1
    size = base + count
    each = np.zeros((found.parts, size, size + 1))
    for part in range(found.parts):
        for joint, group in enumerate(groups):
            G = found.gram(part, joint) / noise[joint] ** 2
            at = [*range(base), base + group] if group >= 0 else list(range(base))
            kept = [*range(len(at)), -1]
            each[part][np.ix_(at, [*at, size])] += G[np.ix_(kept[:-1], kept)]
    total = each.sum(axis=0)
    normal, right = total[:, :-1], total[:, -1]
    unit = 1.0 / np.sqrt(np.maximum(np.diag(normal), 1e-300))
    sizes, vectors = np.linalg.eigh(normal * unit[:, None] * unit)
    inverse = np.where(sizes > 1e-11 * sizes[-1], 1.0 / np.maximum(sizes, 1e-300), 0.0)
    inverse = (vectors * inverse) @ vectors.T * unit[:, None] * unit
    x = inverse @ right
    scores = each[:, :, -1] - each[:, :, :-1] @ x  # (parts, size)
    moved = scores @ inverse[:, base:]
    errors = np.sqrt(np.diag(error_of_sum(moved)) * found.parts / max(1, found.parts - 1))
    # blocks that are few beside the unknowns understate errors, which are never less than those of white noise
    errors = np.maximum(errors, np.sqrt(np.maximum(np.diag(inverse)[base:], 0.0)))
    shown = np.diag(normal)[base:] > 0.0
    return x[base:], np.where(shown & (errors > 0.0), errors, np.inf)
