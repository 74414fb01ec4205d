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
        """Return the matrix with entries (i, j), j <= i, on the tree of its factor; missing entries are 0."""
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
        """Return D."""
        return self.factors()[1]

    def factors(self) -> tuple[dict[tuple[int, int], Scalar], list[Scalar]]:
        """Return L and D, which are cached."""
        if self._factors is None:
            self._factors = self.factor()
        return self._factors

    def inward(self, b: Sequence[Scalar]) -> list[Scalar]:
        """Return L^-T b."""
        low, x = self.factors()[0], list(b)
        for i in reversed(range(len(x))):
            for j in self.ancestors(i):
                x[j] = x[j] - low[i, j] * x[i]
        return x

    def outward(self, x: Sequence[Scalar]) -> list[Scalar]:
        """Return L^T x."""
        low, b = self.factors()[0], list(x)
        for i in range(len(b)):
            for j in self.ancestors(i):
                b[j] = b[j] + low[i, j] * x[i]
        return b

    def solve(self, b: Sequence[Scalar]) -> list[Scalar]:
        """x with M x = b."""
        low, diagonal = self.factors()
        x = self.inward(b)
        for i in range(len(x)):
            x[i] = x[i] / diagonal[i]
            for j in self.ancestors(i):
                x[i] = x[i] - low[i, j] * x[j]
        return x

    def inverse_factor(self) -> InverseFactor:
        """L^-1, which has the zeros of L, and D^-1."""
        low, diagonal = self.factors()
        up: dict[tuple[int, int], Scalar] = {}
        for i in range(len(self.parents)):
            above = self.ancestors(i)
            for n, j in enumerate(above):
                total = low[i, j]
                for k in above[:n]:
                    total = total + low[i, k] * up[k, j]
                up[i, j] = -total
        return InverseFactor(up, [1.0 / d for d in diagonal])

    def filled(self, b: Sequence[Scalar]) -> frozenset[int]:
        """Return the indices where L^-T b is not 0."""
        there = [i for i, value in enumerate(b) if not is_zero(value)]
        return frozenset(there).union(*(self.ancestors(i) for i in there))

    def inverse_serves(self, columns: Sequence[Sequence[Scalar]], known: bool) -> bool:
        """Return whether L^-1 costs less, nothing if `known`, than what it saves where M x = b is solved for these b:
        x = L^-1 y passes over the zeros of y, where the solve with L has filled them by the values of x between."""
        above = [self.ancestors(i) for i in range(len(self.parents))]
        saved = 0
        for b in columns:
            filled = self.filled(b)
            saved += sum(j not in filled for own in above for j in own if filled)
        return saved > (0 if known else sum(len(own) * (len(own) - 1) // 2 for own in above))


class InverseFactor:
    """M^-1 = L^-1 D^-1 L^-T: entries[i, j] of L^-1 for every ancestor j of i, and D^-1."""

    def __init__(self, entries: dict[tuple[int, int], Scalar], diagonal: Sequence[Scalar]):
        self.entries = entries
        self.diagonal = diagonal
        self._paths = [[j for j in range(i) if (i, j) in entries] for i in range(len(diagonal))]

    def times(self, *columns: Sequence[Scalar]) -> list[list[Scalar]]:
        """M^-1 b for each of these b, entry by entry; what is 0 of b, and of what is made of it, is passed over."""
        made: list[list[Scalar]] = [[] for _ in columns]
        for j, d in enumerate(self.diagonal):
            below = [(i, self.entries[i, j]) for i in range(j + 1, len(self.diagonal)) if (i, j) in self.entries]
            for y, b in zip(made, columns, strict=True):
                total = b[j]
                for i, entry in below:
                    total = total if is_zero(b[i]) else total + entry * b[i]
                y.append(total * d)
        return self._outward(made, len(self.diagonal))

    def full(self) -> list[list[Scalar]]:
        """M^-1, of which one half is computed."""
        found: list[list[Scalar]] = []
        for c, path in enumerate(self._paths):
            y: list[Scalar] = [0.0] * len(self._paths)
            for j in path:
                y[j] = self.entries[c, j] * self.diagonal[j]
            y[c] = self.diagonal[c]
            found += self._outward([y], c + 1)
        return [[found[max(r, c)][min(r, c)] for c in range(len(found))] for r in range(len(found))]

    def _outward(self, columns: Sequence[Sequence[Scalar]], count: int) -> list[list[Scalar]]:
        """Return the first `count` entries of L^-1 y for each of these y."""
        found: list[list[Scalar]] = [[] for _ in columns]
        for i, path in enumerate(self._paths[:count]):
            for x, y in zip(found, columns, strict=True):
                total = y[i]
                for j in path:
                    total = total if is_zero(y[j]) else total + self.entries[i, j] * y[j]
                x.append(total)
        return found


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
