"""Whether the torques of the joints agree with each other: one joint's in another unit, or with another sign.

What the links beyond a joint weigh shows in its torque and in those of all joints before it. If the torque of joint j
is a times what it should be, then tau_j = a (Y x)_j with the x of all other joints, apart from the joint's own drive.
The squares that are left, as a function of a, come from the triangles of the fit; whether another a than 1 is better is
decided by its blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linksweep.identification.doubts.blocks import bar, surplus
from linksweep.identification.doubts.evidence import Evidence

TRIED = (0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)  # and their inverses, with both signs
ALIKE = (0.8, 0.9, 1.0, 1.1, 1.25)  # torque constants are not known better


@dataclass(frozen=True)
class Disagreement:
    """A joint whose torques are `factor` times those that the other joints' torques say."""

    joint: int
    factor: float


def disagreements(evidence: Evidence) -> list[Disagreement]:
    """Joints whose torques do not agree with the others', the one that explains most first."""
    grouping, found = evidence.grouping, evidence.triangles
    nv, base = grouping.columns.nv, len(grouping)
    if nv < 2:
        return []
    G = np.array([[found.gram(part, joint) for joint in range(nv)] for part in range(found.parts)])
    G /= np.square(evidence.best.noise)[:, None, None]
    body = np.array([grouping.columns.columns[k].is_body for k in grouping.pivots])
    total = G.sum(axis=0)
    unit = np.diag(total.sum(axis=0))[:base]
    prior = 1e-10 * np.maximum(unit, 1e-12 * unit.max(initial=1e-300))  # keeps what the log does not show finite
    steps = np.array([*TRIED, *(1.0 / np.array(TRIED))])
    tried = np.concatenate([ALIKE, steps, -steps, [-1.0]])
    results = []
    for joint in range(nv):
        if not (grouping.seen[joint] & body).any():
            continue
        others = total.sum(axis=0) - total[joint]
        fits = [_fitted(others, total[joint], a, body, prior) for a in tried]
        left = np.array([one[1] for one in fits])
        alike, other = int(np.argmin(left[: len(ALIKE)])), int(np.argmin(left))
        if other < len(ALIKE):
            continue
        ends = [k for k, a in enumerate(tried) if abs(a) in (steps.min(), steps.max()) and a * tried[other] > 0.0]
        squares = [_squares(G, joint, tried[k], body, fits[k][0]) for k in (other, alike, *ends)]
        # half: of nested models, the score is twice that. At both ends the joint has links of its own: a factor that
        # is not better than that is none
        if all(surplus(worse, squares[0]) > 0.5 * bar(found.parts, nv) for worse in squares[1:]):
            results.append((left[alike] - left[other], joint, float(tried[other])))
    return [Disagreement(joint, factor) for _, joint, factor in sorted(results, reverse=True)]


def _scaled(G: np.ndarray, factor: float, body: np.ndarray) -> np.ndarray:
    own = np.concatenate([np.where(body, factor, 1.0), [1.0]])
    return G * own[:, None] * own


def _fitted(
    others: np.ndarray, own: np.ndarray, factor: float, body: np.ndarray, prior: np.ndarray
) -> tuple[np.ndarray, float]:
    """Values of the pivots if torques of a joint are `factor` times those of its links, and the squares left."""
    total = others + _scaled(own, factor, body)
    x = np.linalg.solve(total[:-1, :-1] + np.diag(prior), total[:-1, -1])
    return x, float(total[-1, -1] - total[:-1, -1] @ x)


def _squares(G: np.ndarray, joint: int, factor: float, body: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(parts,) squares that are left of all joints."""
    each = G.sum(axis=1) - G[:, joint] + _scaled(G[:, joint], factor, body)
    full = np.concatenate([-x, [1.0]])
    return np.einsum("i,pij,j->p", full, each, full)
