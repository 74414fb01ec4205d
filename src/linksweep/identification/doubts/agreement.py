"""Whether the torques of the joints agree with each other: one joint's in another unit, or with another sign.

What the links beyond a joint weigh shows in its torque and in those of all joints before it. If the torque of joint j
is a times what it should be, then tau_j = a (Y x)_j with the x of all other joints, apart from the joint's own drive.
The squares left, as a function of a, come from the triangles of the fit. The a that leaves least has a standard
error by the blocks of the log, and disagrees if it is significantly beyond what torque constants are known to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linksweep.identification.doubts.blocks import bar, error_of_sum
from linksweep.identification.doubts.evidence import Evidence

TRIED = (0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85)  # and their inverses, with both signs
ALIKE = 0.8, 1.25  # torque constants are not known better


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
    results = []
    for joint in range(nv):
        if not (grouping.seen[joint] & body).any():
            continue
        own = _Profile(G, joint, body, prior)
        factor, error = own.minimum()
        near = min(max(factor, ALIKE[0]), ALIKE[1])
        if abs(factor - near) > bar(found.parts, nv) * error:
            results.append((own.left(near) - own.left(factor), joint, factor))
    return [Disagreement(joint, factor) for _, joint, factor in sorted(results, reverse=True)]


class _Profile:
    """Squares that least squares leaves of all joints if torques of one are a factor times those of its links."""

    def __init__(self, G: np.ndarray, joint: int, body: np.ndarray, prior: np.ndarray) -> None:
        self.own, self.others = G[:, joint], G.sum(axis=1) - G[:, joint]
        self.body, self.prior = body, np.diag(prior)
        self.total_own, self.total_others = self.own.sum(axis=0), self.others.sum(axis=0)

    def left(self, factor: float) -> float:
        total = self.total_others + self._scaled(self.total_own, factor)
        return float(total[-1, -1] - total[:-1, -1] @ self._solution(total))

    def blocks(self, factor: float) -> np.ndarray:
        """The same in each block (parts,)."""
        each = self.others + self._scaled(self.own, factor)
        full = np.append(-self._solution(each.sum(axis=0)), 1.0)
        return np.einsum("i,pij,j->p", full, each, full)

    def minimum(self) -> tuple[float, float]:
        """The factor that leaves least, and its standard error."""
        from scipy.optimize import minimize_scalar

        tried = np.sort([s * a for a in (*TRIED, 1.0, *(1.0 / np.array(TRIED))) for s in (1.0, -1.0)])
        best = int(np.argmin([self.left(float(a)) for a in tried]))
        if best in (0, len(tried) - 1):
            return float(tried[best]), np.inf
        found = minimize_scalar(self.left, bounds=(tried[best - 1], tried[best + 1]), method="bounded")
        factor = float(found.x)  # pyright: ignore[reportAttributeAccessIssue]  (SciPy's stubs say object)
        step = 0.05 * abs(factor)
        before, here, after = (self.blocks(factor + k * step) for k in (-1, 0, 1))
        bend = float((before - 2.0 * here + after).sum()) / (2.0 * step**2)
        slopes = (after - before) / (4.0 * step)  # half the derivatives: their sum is 0 at the minimum
        error = np.sqrt(error_of_sum((slopes - slopes.mean())[:, None])[0, 0])
        return factor, float(error / bend) if bend > 0.0 else np.inf

    def _solution(self, total: np.ndarray) -> np.ndarray:
        return np.linalg.solve(total[:-1, :-1] + self.prior, total[:-1, -1])

    def _scaled(self, G: np.ndarray, factor: float) -> np.ndarray:
        own = np.append(np.where(self.body, factor, 1.0), 1.0)
        return G * own[:, None] * own
