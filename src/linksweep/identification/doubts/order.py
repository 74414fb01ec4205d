"""Whether joints are in the order of the model, and their positions of the right sign: fits of the same log otherwise.

If positions or torques of two joints are exchanged, the log fits better in the right order. Each exchange is tried on
some thousand rows. One is reported only if the log fits much better with it, in nearly every one of its blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.stats import binom

from linksweep.identification.doubts.described import rows_of
from linksweep.identification.doubts.evidence import Evidence, Pieces
from linksweep.identification.log.signals import Samples
from linksweep.identification.model.grouping import Grouping

MOST = 2_000  # rows
ROUNDS = 3  # of the weights of the joints
BETTER = 0.6  # of the squares of the residual, as a product over the joints
SIGN_TEST = 1e-3  # probability that as many blocks fit better by chance


@dataclass(frozen=True)
class Exchange:
    """A log that fits better: what of joints (a, b) is exchanged, or of joint (a,) turned round."""

    what: str
    joints: tuple[int, ...]


def better_order(evidence: Evidence, joints: list[int]) -> Exchange | None:
    """The exchange that makes the log fit best, if one makes it fit clearly better.

    joints: of an exchange, at least one of these, which do not fit well.
    """
    trial = _Trial(evidence.grouping, evidence.samples, evidence.blocks)
    nv, tau = evidence.grouping.columns.nv, trial.tau
    described = trial.regressors(np.arange(nv), np.ones(nv))
    before = trial.squares(described, tau)
    results: list[tuple[Exchange, np.ndarray]] = []
    for pair in combinations(range(nv), 2):
        if not set(pair) & set(joints):
            continue
        order = np.arange(nv)
        order[list(pair)] = pair[::-1]
        exchanged = trial.regressors(order, np.ones(nv))
        # squares of exchanged torques in the columns of the log, so that each is compared with itself
        both, torques = (trial.squares(own, tau[:, order])[:, order] for own in (exchanged, described))
        results.append((Exchange("positions and torques", pair), both))
        results.append((Exchange("positions", pair), trial.squares(exchanged, tau)))
        results.append((Exchange("torques", pair), torques))
    for joint in joints:
        turned = trial.regressors(np.arange(nv), np.where(np.arange(nv) == joint, -1.0, 1.0))
        results.append((Exchange("sign", (joint,)), trial.squares(turned, tau)))
    size = np.maximum(before.sum(axis=0), 1e-300)
    gains = [float(np.sum(np.log(np.maximum(after.sum(axis=0), 1e-300) / size))) for _, after in results]
    best = int(np.argmin(gains))
    exchange, after = results[best]
    if gains[best] > np.log(BETTER):
        return None
    better = int(np.count_nonzero((after / size).sum(axis=1) < (before / size).sum(axis=1)))
    return exchange if binom.sf(better - 1, len(before), 0.5) < SIGN_TEST else None


Regressors = tuple[list[np.ndarray], np.ndarray, np.ndarray]  # (unknowns seen, rows) of joints; known torques; weights


class _Trial:
    """Some rows of a log, and fits of them."""

    def __init__(self, grouping: Grouping, samples: Samples, blocks: Pieces) -> None:
        self.grouping = grouping
        self.rows, self.block = rows_of(blocks, MOST)
        self.motion = samples.q[self.rows], samples.qd[self.rows], samples.qdd[self.rows]
        self.tau = samples.tau[self.rows]
        self.weight = (samples.weight[self.rows] > 0.0).astype(float)

    def regressors(self, order: np.ndarray, sign: np.ndarray) -> Regressors:
        """Those of the motion in which joint k moves as the log says of joint order[k], times sign[k]."""
        columns = self.grouping.columns
        here = columns.at(*(x[:, order] * sign for x in self.motion))
        known = here.known() if columns.has_known else np.zeros_like(self.tau)
        weight = self.weight[:, order]  # rows are left out where a joint is slow
        return [here.of_joint(k, pivots) for k, pivots in enumerate(self.grouping.seen_pivots)], known, weight

    def squares(self, regressors: Regressors, tau: np.ndarray) -> np.ndarray:
        """(blocks, nv) squares that weighted least squares leaves."""
        X, known, weight = regressors
        rest = tau - known
        base, nv = len(self.grouping), rest.shape[1]
        normal = [(X[k] * weight[:, k]) @ X[k].T for k in range(nv)]
        right = [X[k] @ (weight[:, k] * rest[:, k]) for k in range(nv)]
        noise = np.sqrt(np.sum(weight * np.square(rest), axis=0))
        noise = np.where(noise > 0.0, noise, 1.0)  # a joint without rows
        for _ in range(ROUNDS):
            N, b = np.zeros((base, base)), np.zeros(base)
            for seen, own, its_right, size in zip(self.grouping.seen, normal, right, noise, strict=True):
                N[np.ix_(seen, seen)] += own / size**2
                b[seen] += its_right / size**2
            unit = np.diag(N)
            x = np.linalg.solve(N + np.diag(1e-10 * np.maximum(unit, 1e-12 * unit.max(initial=1e-300))), b)
            left = np.stack([rest[:, k] - x[seen] @ X[k] for k, seen in enumerate(self.grouping.seen)], axis=1)
            left = weight * np.square(left)
            noise = np.maximum(np.sqrt(left.sum(axis=0)), 1e-6 * noise)
        count = int(self.block.max()) + 1
        return np.stack([np.bincount(self.block, own, count) for own in left.T], axis=1)
