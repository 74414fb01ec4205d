"""A symmetric matrix with the zeros of a tree: entry (i, j) is there only where j is i or an ancestor of i.

The mass matrix is such a matrix. L^T D L, eliminating from the tips to the base, fills none of its zeros.
"""

from __future__ import annotations

from collections.abc import Sequence

from .scalars import Scalar, is_zero

NAMES_VALUES = True  # of its steps: see tracing/labels.py


class TreeMatrix:
    """entries[i, j] for j = i and every ancestor j of i; parents[i] < i, or -1."""

    def __init__(self, parents: Sequence[int], entries: dict[tuple[int, int], Scalar]):
        self.parents = parents
        self.entries = entries
        self._factors: tuple[dict[tuple[int, int], Scalar], list[Scalar]] | None = None

    @classmethod
    def of_entries(cls, count: int, entries: dict[tuple[int, int], Scalar]) -> TreeMatrix:
        """A symmetric matrix from entries (i, j), j <= i: its tree is that of its factor, what is not given there 0."""
        inner = [{j for i, j in entries if i == k and j < k} for k in range(count)]
        parents = [-1] * count
        for i in reversed(range(count)):  # eliminating i ties all that it is tied to, to the outermost of them
            if inner[i]:
                parents[i] = max(inner[i])
                inner[parents[i]] |= inner[i] - {parents[i]}
        found = cls(parents, dict(entries))
        for i in range(count):
            for j in found.ancestors(i):
                found.entries.setdefault((i, j), 0.0)
        return found

    def ancestors(self, i: int) -> list[int]:
        found: list[int] = []
        while (i := self.parents[i]) >= 0:
            found.append(i)
        return found

    def factor(self) -> tuple[dict[tuple[int, int], Scalar], list[Scalar]]:
        """L (unit diagonal, entries below it) and D with M = L^T D L."""
        entries = dict(self.entries)
        count = len(self.parents)
        low: dict[tuple[int, int], Scalar] = {}
        for i in reversed(range(count)):
            above = self.ancestors(i)
            inverse = 0.0 if is_zero(entries[i, i]) else 1.0 / entries[i, i]  # where nothing moves, in any pose
            for j in above:
                low[i, j] = entries[i, j] * inverse
            for n, j in enumerate(above):
                for k in above[n:]:
                    entries[j, k] = entries[j, k] - low[i, j] * entries[i, k]
        return low, [entries[i, i] for i in range(count)]

    def pivots(self) -> list[Scalar]:
        """D."""
        return self._kept_factors()[1]

    def _kept_factors(self) -> tuple[dict[tuple[int, int], Scalar], list[Scalar]]:
        if self._factors is None:
            self._factors = self.factor()
        return self._factors

    def inward(self, b: Sequence[Scalar]) -> list[Scalar]:
        """L^-T b."""
        low, x = self._kept_factors()[0], list(b)
        for i in reversed(range(len(x))):
            for j in self.ancestors(i):
                x[j] = x[j] - low[i, j] * x[i]
        return x

    def outward(self, x: Sequence[Scalar]) -> list[Scalar]:
        """L^T x."""
        low, b = self._kept_factors()[0], list(x)
        for i in range(len(b)):
            for j in self.ancestors(i):
                b[j] = b[j] + low[i, j] * x[i]
        return b

    def solve(self, b: Sequence[Scalar]) -> list[Scalar]:
        """x with M x = b."""
        low, diagonal = self._kept_factors()
        x = self.inward(b)
        for i in range(len(x)):
            x[i] = x[i] / diagonal[i]
            for j in self.ancestors(i):
                x[i] = x[i] - low[i, j] * x[j]
        return x


def congruence(factor: TreeMatrix, diagonal: Sequence[Scalar]) -> list[list[Scalar]]:
    """F^T D^-1 F for the lower triangular F with these entries (F[j, i] stored at (i, j)), as a full matrix."""
    count = len(factor.parents)
    paths = [[i, *factor.ancestors(i)] for i in range(count)]
    inverse = [1.0 / d for d in diagonal]
    full: list[list[Scalar]] = [[0.0] * count for _ in range(count)]
    for a in range(count):
        shared = set(paths[a])
        scaled = {c: factor.entries[a, c] * inverse[c] for c in paths[a]}
        for b in range(a + 1):
            total: Scalar = 0.0
            for c in paths[b]:
                if c in shared:
                    total = total + scaled[c] * factor.entries[b, c]
            full[a][b] = full[b][a] = total
    return full
