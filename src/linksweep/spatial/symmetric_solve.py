"""Symmetric positive semidefinite systems over any scalar: L D L^T with its structural zeros, and redundant rows.

Proximal iterations solve A x = b where A is singular and b in its range, without a branch: with R = eps diag(A),
(A + R) x' = b + R x. What A determines is then found to rounding; of what it leaves open nothing is added.
"""

from __future__ import annotations

from collections.abc import Sequence

from .scalars import Scalar, is_zero

PROXIMAL = 1e-10  # of the diagonal: pivots of redundant rows keep six digits; what A has above it is found to rounding
REFINEMENTS = 2


class SymmetricSolver:
    """Solves A x = b for one A, given in full by rows, of which the lower triangle is read.

    damping: what stands on the diagonal besides, and stays there: (A + damping) x = b, once.
    """

    def __init__(self, a: Sequence[Sequence[Scalar]], damping: Sequence[Scalar] | None = None):
        self.refinements = REFINEMENTS if damping is None else 0
        n = len(a)
        floor: Scalar = 0.0
        for i in range(n):
            floor = floor + a[i][i]
        floor = floor * (1e-6 / n) if n else 0.0  # a row that nothing moves has a zero there
        self.low: list[dict[int, Scalar]] = [{} for _ in range(n)]
        self.inverse: list[Scalar] = []
        rest = [{j: a[i][j] for j in range(i) if not is_zero(a[i][j])} for i in range(n)]
        self.proximal = [(a[i][i] + floor) * PROXIMAL for i in range(n)]  # R
        if damping is not None:
            self.proximal = [own + more for own, more in zip(self.proximal, damping, strict=True)]
        pivots = [a[i][i] + self.proximal[i] for i in range(n)]
        for i in range(n):
            row, done = rest[i], self.low[i]
            pivot = pivots[i]
            for j in range(i):
                if j not in row:
                    continue
                scaled = row[j]  # L_ij d_j
                done[j] = scaled * self.inverse[j]
                pivot = pivot - scaled * done[j]
                for k in range(j + 1, i):  # what column j does to the row further right
                    if j in self.low[k]:
                        change = scaled * self.low[k][j]
                        row[k] = row[k] - change if k in row else -change
            self.inverse.append(1.0 / pivot)

    def _once(self, b: Sequence[Scalar]) -> list[Scalar]:
        x = list(b)
        for i, row in enumerate(self.low):
            for j, value in row.items():
                x[i] = x[i] - value * x[j]
        x = [value * inverse for value, inverse in zip(x, self.inverse, strict=True)]
        for i in reversed(range(len(x))):
            for j, value in self.low[i].items():
                x[j] = x[j] - value * x[i]
        return x

    def solve(self, b: Sequence[Scalar]) -> list[Scalar]:
        x = self._once(b)
        for _ in range(self.refinements):
            x = self._once([value + r * entry for value, r, entry in zip(b, self.proximal, x, strict=True)])
        return x
