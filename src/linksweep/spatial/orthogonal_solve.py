"""The point nearest to a given one that meets linear constraints, over any scalar, by orthogonal elimination.

    y = free - Y lambda,    Y^T W y + k = 0,    W diagonal and positive

The columns of Y may be dependent, or nearly so. Y^T W Y would square their singular values sigma, so Y itself is made
orthogonal, column after column (modified Gram-Schmidt), and y is found by the same projections, in their order and
back: rounding then acts like a change of Y by some eps (A. Bjorck, "Numerics of Gram-Schmidt orthogonalization", 1994).
Weak directions are found to eps / sigma, and dependent columns are not taken for constraints.

So that nothing is divided by zero, each column has one more row of its own with the weight mu: a column that depends on
others keeps this rest. That is Y^T W Y + mu. With nu = mu / (sigma^2 + mu) of each direction, lambda is then corrected
by 1 + nu - 2 nu^2. A direction with sigma^2 >> mu is constrained but for 3 nu^2 of it, one with sigma^2 << mu is left
free but for 3 (1 - nu)^2, without a branch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from .scalars import Scalar, is_zero

Entries = dict[int, Scalar]  # of a column, by row
EXACT = 24  # columns; of more, doubts are bounded from above, where columns share a direction
TINY = 1e-12  # of mu: so much is added to what may be 0, where rows are collected


@dataclass(slots=True)
class Step:
    """One orthogonal direction: entries, these times W, and 1 over its square; `row`: that stands for it afterwards,
    of rows that were collected; `column`: the one that was eliminated, of the others."""

    entries: Entries
    weighted: Entries
    inverse: Scalar
    row: int = -1
    column: int = -1

    def shares(self, *vectors: Entries) -> list[Scalar]:
        """How much of this direction there is in each vector; row by row, so that an entry is read once for all."""
        totals: list[Scalar] = [0.0] * len(vectors)
        for r, value in self.weighted.items():
            for n, z in enumerate(vectors):
                if r in z:
                    totals[n] = totals[n] + value * z[r]
        return [total if is_zero(total) else total * self.inverse for total in totals]

    def take(self, shares: Sequence[Scalar], *vectors: Entries) -> None:
        """Subtract these shares of the direction."""
        for r, value in self.entries.items():
            for z, share in zip(vectors, shares, strict=True):
                if not is_zero(share):
                    z[r] = z[r] - share * value if r in z else -(share * value)


class Triangle:
    """R with a diagonal of 1, row by row without it, over the squares of the orthogonal columns; and mu of each column.

    active: the columns that are not empty.
    """

    def __init__(self, mu: Sequence[Scalar], active: Sequence[int]):
        self.mu, self.active = mu, active
        self.upper: dict[int, Entries] = {}
        self.inverse: dict[int, Scalar] = {}  # 1 over the square of each orthogonal column

    def sought(self, c: Entries, k: Sequence[Scalar], damped: bool) -> tuple[Entries, Entries]:
        """Shares of the orthogonal columns in y that meet the constraints, and what they are beside those in free, c.

        damped: with mu left where it is, so that weak directions take part in their share.
        """
        u = self.lower({i: -k[i] for i in self.active if not is_zero(k[i])})
        g = _difference(c, u)
        if not damped:
            excess = self._excess(g)
            more = self._excess({i: value - 2.0 * excess[i] if i in excess else value for i, value in g.items()})
            g, u = _difference(g, more, -1.0), _difference(u, more)
        return u, g

    def redundancies(self, count: int) -> tuple[list[Scalar], list[Scalar]]:
        """Of each column its share in the directions that are not constrained, and its share in doubt.

        With nu from 0 to 1 of each direction, its shares are weighted by nu and by nu (1 - nu). The sum of the former
        counts the columns that depend on others; the latter are 0 where every direction is either constrained or not.
        """
        shares: list[Scalar] = [1.0] * count
        doubts: list[Scalar] = [0.0] * count
        back = {i: self.multipliers({i: 1.0}) for i in self.active}  # R^-1, by columns
        for i in self.active:
            shares[i] = self._overlap(back[i], back[i]) * self.inverse[i]
            doubts[i] = shares[i] - shares[i] * shares[i]
        for i in self.active if len(self.active) <= EXACT else ():
            for j in self.active:
                if j < i and not is_zero(overlap := self._overlap(back[i], back[j])):
                    both = overlap * overlap * (self.inverse[i] * self.inverse[j])
                    doubts[i], doubts[j] = doubts[i] - both, doubts[j] - both
        return shares, doubts

    def _overlap(self, a: Entries, b: Entries) -> Scalar:
        total: Scalar = 0.0
        for i, value in a.items():
            if i in b:
                total = total + value * b[i] * self.mu[i]
        return total

    def _excess(self, g: Entries) -> Entries:
        """nu g, direction by direction."""
        return self.lower({i: value * self.mu[i] for i, value in self.multipliers(g).items()})

    def lower(self, b: Entries) -> Entries:
        """R^-T b, over the squares of the orthogonal columns."""
        left: Entries = dict(b)
        for i in self.active:
            if i in left:
                for j, value in self.upper[i].items():
                    left[j] = left[j] - value * left[i] if j in left else -(value * left[i])
        return {i: left[i] * self.inverse[i] for i in self.active if i in left}

    def multipliers(self, g: Entries) -> Entries:
        """R^-1 g."""
        x: Entries = {}
        for i in reversed(self.active):
            total: Scalar = g.get(i, 0.0)
            for j, value in self.upper[i].items():
                if j in x:
                    total = total - value * x[j]
            if not is_zero(total):
                x[i] = total
        return x


class OrthogonalSolver:
    """Solves for one Y, given by columns in the order of elimination, in groups; W is `weights`, by row.

    mu: see above; of each column, positive. Columns may be empty: their multipliers are 0.
    """

    def __init__(self, groups: Sequence[Sequence[Entries]], weights: Sequence[Scalar], mu: Sequence[Scalar]):
        columns = [column for group in groups for column in group]
        self.mu, self.count = mu, len(columns)
        self.active = [i for i, column in enumerate(columns) if column]
        self.R = Triangle(mu, self.active)
        self.weights = dict(enumerate([*weights, *mu]))
        self.left = [{**column, len(weights) + i: 1.0} for i, column in enumerate(columns)]
        ends, first = list[int](), 0
        for group in groups:
            ends.append(first := first + len(group))
        self.ends = ends
        self.steps: list[Step] = []

    def _eliminate(self, z: Entries) -> Entries:
        """Make the steps, and take z through them: its shares of the columns."""
        c: Entries = {}
        for n, i in enumerate(self.active):
            step = self._step(self.left[i], 0.0, column=i)
            self.R.inverse[i] = step.inverse
            later = self.active[n + 1 :]
            columns = [z, *(self.left[j] for j in later)]
            shares = step.shares(*columns)
            step.take(shares, *columns)
            self.R.upper[i] = {j: share for j, share in zip(later, shares[1:], strict=True) if not is_zero(share)}
            c[i] = shares[0]
            self.left[i] = {}
            if i + 1 in self.ends and later:
                self._collect([end for end in self.ends if end > i + 1], z)
        return {i: share for i, share in c.items() if not is_zero(share)}

    def _project(self, z: Entries) -> Entries:
        """Take z through all steps: its shares of the columns."""
        c: Entries = {}
        for step in self.steps:
            share = step.shares(z)[0]
            if not is_zero(share):
                step.take([share], z)
                if step.row >= 0:
                    z[step.row] = share
                else:
                    c[step.column] = share
        return c

    def _step(self, entries: Entries, least: Scalar, row: int = -1, column: int = -1) -> Step:
        weighted = {r: value * self.weights[r] for r, value in entries.items()}
        square: Scalar = 0.0
        for r, value in entries.items():
            square = square + weighted[r] * value
        if row >= 0:
            self.weights[row] = square
        self.steps.append(Step(entries, weighted, 1.0 / (square + least), row, column))
        return self.steps[-1]

    def _collect(self, ends: Sequence[int], z: Entries) -> None:
        """Make as many rows as columns of the rows that only the same few columns have, where this saves work."""
        patterns: dict[int, list[int]] = {}
        for j in self.active:
            for r in self.left[j]:
                patterns.setdefault(r, []).append(j)
        alike: dict[tuple[int, ...], list[int]] = {}
        for r, pattern in patterns.items():
            alike.setdefault(tuple(pattern), []).append(r)
        for pattern, rows in alike.items():
            if len(rows) > len(pattern) and self._saves(pattern, len(rows), ends, patterns.values()):
                self._collected(pattern, rows, z)

    def _saves(
        self, pattern: Sequence[int], rows: int, ends: Sequence[int], patterns: Collection[Sequence[int]]
    ) -> bool:
        end = next(end for end in ends if pattern[0] < end)
        own = [j for j in pattern if j < end]  # of the group that is next among them
        touched = set[int]().union(*(columns for columns in patterns if set(columns) & set(own)))
        saved = sum(1 + 2 * sum(j > i for j in touched) for i in own)
        cost = sum(1 + 2 * k for k in range(len(pattern)))
        return (rows - len(pattern)) * saved > cost * rows

    def _collected(self, pattern: Sequence[int], rows: Collection[int], z: Entries) -> None:
        parts = [{r: self.left[j].pop(r) for r in rows} for j in pattern]
        for k, j in enumerate(pattern):
            row = len(self.weights)
            step = self._step(parts[k], self.mu[j] * TINY, row=row)
            later = [z, *parts[k + 1 :]]
            shares = step.shares(*later)
            step.take(shares, *later)
            self.left[j][row], z[row] = 1.0, shares[0]
            for n, share in zip(pattern[k + 1 :], shares[1:], strict=True):
                self.left[n][row] = share

    def solve(
        self, free: Sequence[Scalar], k: Sequence[Scalar], damped: bool = False
    ) -> tuple[list[Scalar], list[Scalar]]:
        """y and lambda. damped: with mu left where it is, so that weak directions take part in their share."""
        z = {r: value for r, value in enumerate(free) if not is_zero(value)}
        c = self._project(z) if self.steps else self._eliminate(z)
        u, g = self.R.sought(c, k, damped)
        for step in reversed(self.steps):
            if step.row >= 0:
                step.take([-z.pop(step.row, 0.0)], z)
            else:
                share = step.shares(z)[0]
                step.take([share - u.get(step.column, 0.0)], z)
        multipliers = self.R.multipliers(g)
        return [z.get(r, 0.0) for r in range(len(free))], [multipliers.get(i, 0.0) for i in range(self.count)]

    def redundancies(self) -> tuple[list[Scalar], list[Scalar]]:
        """See `Triangle`."""
        if not self.steps:
            self._eliminate({})
        return self.R.redundancies(self.count)


def _difference(a: Entries, b: Entries, sign: float = 1.0) -> Entries:
    """a - b, or with a sign of -1 their sum."""
    found = dict(a)
    for i, value in b.items():
        own = value if sign > 0 else -value
        found[i] = found[i] - own if i in found else -own
    return found
