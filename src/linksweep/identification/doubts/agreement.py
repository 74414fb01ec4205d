"""Whether the torques of the joints agree with each other: one joint's in another unit, or with another sign.

What the links beyond a joint weigh shows in its torque and in those of all joints before it. If the torque of joint j
is a times what it should be, then tau_j = a (Y x)_j with the x of all other joints, apart from the joint's own drive.
The squares left, as a function of a, come from the triangles of the fit. The a that leaves least has a standard
error by the blocks of the log, and disagrees if it is significantly beyond what torque constants are known to.

That error is the one at the minimum. If the other joints' torques determine the links beyond joint j badly, the squares
left have a narrow minimum near a = 0, where the joint's own rows do not count, and are hardly more at a = 1. So the log
must also fit significantly better with a than without it, block by block (Q. H. Vuong, "Likelihood ratio tests for
model selection and non-nested hypotheses", 1989).
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
    unit = np.diag(G.sum(axis=(0, 1)))[:base]
    prior = 1e-10 * np.maximum(unit, 1e-12 * unit.max(initial=1e-300))  # keeps what the log does not show finite
    clear, results = bar(found.parts, nv), []
    for joint in range(nv):
        if not (grouping.seen[joint] & body).any():
            continue
        own = _Profile(G, found.count, joint, body, prior)
        factor, error = own.minimum()
        near = min(max(factor, ALIKE[0]), ALIKE[1])
        if abs(factor - near) > clear * error and own.gain(factor, near) > clear:
            results.append((own.left(near) - own.left(factor), joint, factor))
    return [Disagreement(joint, factor) for _, joint, factor in sorted(results, reverse=True)]


class _Profile:
    """Squares that least squares leaves of all joints if torques of one are a factor times those of its links."""

    def __init__(self, G: np.ndarray, count: np.ndarray, joint: int, body: np.ndarray, prior: np.ndarray) -> None:
        self.G, self.count, self.joint = G, count, joint
        self.body, self.prior = body, np.diag(prior)
        self.total_own = G[:, joint].sum(axis=0)
        self.total_others = G.sum(axis=(0, 1)) - self.total_own

    def left(self, factor: float) -> float:
        total = self.total_others + self._scaled(self.total_own, factor)
        return float(total[-1, -1] - total[:-1, -1] @ self._solution(total))

    def squares(self, factor: float) -> np.ndarray:
        """(parts, nv) the same in each block and joint."""
        each = self.G.copy()
        each[:, self.joint] = self._scaled(each[:, self.joint], factor)
        full = np.append(-self._solution(each.sum(axis=(0, 1))), 1.0)
        return np.maximum(np.einsum("i,pkij,j->pk", full, each, full), 0.0)

    def variances(self, factor: float) -> np.ndarray:
        """(nv,) mean squares of the joints."""
        return self.squares(factor).sum(axis=0) / np.maximum(self.count.sum(axis=0), 1)

    def gain(self, factor: float, other: float) -> float:
        """Logarithm of the likelihood of `factor` against `other`, in standard errors of its sum over the blocks."""
        more = np.zeros(len(self.G))
        for sign, one in ((1.0, other), (-1.0, factor)):
            variance = np.maximum(self.variances(one), 1e-300)
            more += sign * (self.count * np.log(variance) + self.squares(one) / variance).sum(axis=1)
        error = np.sqrt(error_of_sum((more - more.mean())[:, None])[0, 0])
        return float(more.sum() / max(error, 1e-300))

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
        before, here, after = (self.squares(factor + k * step).sum(axis=1) for k in (-1, 0, 1))
        bend = float((before - 2.0 * here + after).sum()) / (2.0 * step**2)
        slopes = (after - before) / (4.0 * step)  # half the derivatives: their sum is 0 at the minimum
        error = np.sqrt(error_of_sum((slopes - slopes.mean())[:, None])[0, 0])
        return factor, float(error / bend) if bend > 0.0 else np.inf

    def _solution(self, total: np.ndarray) -> np.ndarray:
        return np.linalg.solve(total[:-1, :-1] + self.prior, total[:-1, -1])

    def _scaled(self, G: np.ndarray, factor: float) -> np.ndarray:
        own = np.append(np.where(self.body, factor, 1.0), 1.0)
        return G * own[:, None] * own
