"""M x + K^T lambda = force, K x + k = 0, for M with the zeros of a tree and a K with few entries in each row.

With M = L^T D L, y = L^-T (force - K^T lambda) = D L x is the point nearest to L^-T force, in the metric D^-1, that
meets the constraints. spatial/orthogonal_solve.py finds it from Y = L^-T K^T. L keeps the zeros of the tree.
Constraints are eliminated in an order that fills few zeros: those with the fewest neighbours first.

A row cannot be resolved below its rounding errors. Its remainder does not measure them: a row that the joints satisfy
anyway consists of rounding errors only. They are relative to the terms of which its entries are sums: unit rotations
for rows of angles and lever arms for rows of lengths, over the inertias that they move (`Block.sizes`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from ...spatial.orthogonal_solve import Entries, OrthogonalSolver
from ...spatial.scalars import Scalar, is_zero, trace_of
from ...spatial.tree_matrix import TreeMatrix

Part = tuple[float, Entries]  # 1 or -1 times entries, which several rows may share: one object, then


@dataclass(frozen=True, slots=True)
class Block:
    """The rows of a constraint, each a sum of parts.

    sizes: for each row, the squared size of the terms of its entries, by velocity; shared by rows of the same kind.
    """

    rows: Sequence[Sequence[Part]]
    sizes: Sequence[Entries]


class Elimination:
    """M and K, factored.

    resolution: the square of the relative size below which a direction of the constraints counts as redundant.
    damped: it is a damping instead, and x satisfies constraints only as far as they are stronger.
    """

    def __init__(self, M: TreeMatrix, blocks: Sequence[Block], resolution: Scalar, damped: bool = False):
        self.M, self.blocks, self.damped = M, blocks, damped
        self.low, pivots = M.factors()
        self.inverse = [1.0 / d for d in pivots]
        factored: dict[int, Entries] = {}
        for block in blocks:
            for row in block.rows:
                for _, entries in row:
                    if id(entries) not in factored:
                        factored[id(entries)] = self._inward(entries)                            # L^-T K^T
        columns = [[_combined(row, factored) for row in block.rows] for block in blocks]
        self.order, _ = elimination_order([{j for column in group for j in column} for group in columns])
        squares: dict[int, Scalar] = {}
        for block in blocks:
            for size in block.sizes:
                if id(size) not in squares:
                    squares[id(size)] = self._square(size) * resolution
        mu = [squares[id(size)] for i in self.order for size in blocks[i].sizes]
        self.solver = OrthogonalSolver([columns[i] for i in self.order], self.inverse, mu)

    def _square(self, size: Entries) -> Scalar:
        total: Scalar = 0.0
        for j, value in size.items():
            total = total + self.inverse[j] * value
        return 1.0 if is_zero(total) else total  # of rows that no joint moves, which have no entries

    def _inward(self, entries: Entries) -> Entries:
        x = {j: value for j, value in entries.items() if not is_zero(value)}
        for i in reversed(range(len(self.inverse))):
            for j in self.M.ancestors(i) if i in x else ():
                change = self.low[i, j] * x[i]
                x[j] = x[j] - change if j in x else -change
        return {j: x[j] for j in sorted(x) if not is_zero(x[j])}

    def redundancies(self) -> list[tuple[list[Scalar], list[Scalar]]]:
        """Return for each constraint the redundancy of its rows, and its uncertainty.

        In the order of elimination: 1 for a row that depends on those before it, 0 for an independent one.
        """
        shares, doubts = (self._by_block(values) for values in self.solver.redundancies())
        return list(zip(shares, doubts, strict=True))

    def _by_block(self, values: Sequence[Scalar]) -> list[list[Scalar]]:
        found, left = [list[Scalar]() for _ in self.blocks], iter(values)
        for i in self.order:
            found[i] = [next(left) for _ in self.blocks[i].rows]
        return found

    def solve(self, force: Sequence[Scalar], k: Sequence[Sequence[Scalar]]) -> tuple[list[Scalar], list[list[Scalar]]]:
        """Return x, and lambda of each constraint, from k of each."""
        trace = trace_of([*self.M.entries.values(), *force, *(value for own in k for value in own)])
        first = len(trace.nodes) if trace is not None else 0
        drifts = [drift for i in self.order for drift in k[i]]
        y, multipliers = self.solver.solve(self.M.inward(force), drifts, self.damped)
        x: list[Scalar] = []
        for i, entry in enumerate(y):
            value = entry * self.inverse[i]
            for j in self.M.ancestors(i):
                value = value - self.low[i, j] * x[j]
            x.append(value)
        found = self._by_block(multipliers)
        if trace is not None:
            trace.add_solution(Solved(self, force, k, x, found), first)
        return x, found


@dataclass(frozen=True, slots=True)
class Solved:
    """x and lambda as a solution of M x + K^T lambda = force, K x + k = 0: see `scalars.Solution`."""

    elimination: Elimination
    force: Sequence[Scalar]
    k: Sequence[Sequence[Scalar]]
    x: Sequence[Scalar]
    multipliers: Sequence[Sequence[Scalar]]

    @property
    def inputs(self) -> list[Scalar]:
        parts = {id(part): part for row, *_ in self._rows() for _, part in row}
        found = [*self.elimination.M.entries.values(), *self.force]
        found += [value for part in parts.values() for value in part.values()]
        return [*found, *(value for own in self.k for value in own)]

    @property
    def outputs(self) -> list[Scalar]:
        return [*self.x, *(value for own in self.multipliers for value in own)]

    def _rows(self) -> Iterator[tuple[Sequence[Part], int, int]]:
        """Yield each row of K with its index: the constraint, and the row within it."""
        for b, block in enumerate(self.elimination.blocks):
            for r, row in enumerate(block.rows):
                yield row, b, r

    def tangent(self, of: Callable[[Scalar], Scalar]) -> list[Scalar]:
        """M x' + K^T lambda' = force' - M' x - K'^T lambda, K x' + k' + K' x = 0."""
        force = [of(value) for value in self.force]
        k = [[of(value) for value in own] for own in self.k]
        for (i, j), value in self.elimination.M.entries.items():
            change = of(value)
            if not is_zero(change):
                force[i] = force[i] - change * self.x[j]
                if i != j:
                    force[j] = force[j] - change * self.x[i]
        for row, b, r in self._rows():
            for sign, part in row:
                for j, value in part.items():
                    change = of(value)
                    if not is_zero(change):
                        change = change * sign
                        force[j] = force[j] - change * self.multipliers[b][r]
                        k[b][r] = k[b][r] + change * self.x[j]
        x, multipliers = self.elimination.solve(force, k)
        return [*x, *(value for own in multipliers for value in own)]

    def adjoint(self, weights: Sequence[Scalar]) -> list[tuple[Scalar, Scalar]]:
        """The equations are symmetric: M a + K^T b = weights of x, K a = weights of lambda."""
        rest = iter(weights[len(self.x) :])
        a, b = self.elimination.solve(weights[: len(self.x)], [[-next(rest) for _ in own] for own in self.k])
        found = list(zip(self.force, a, strict=True))
        found += [(value, -y) for own, ys in zip(self.k, b, strict=True) for value, y in zip(own, ys, strict=True)]
        for (i, j), value in self.elimination.M.entries.items():
            product = a[i] * self.x[j] if i == j else a[i] * self.x[j] + a[j] * self.x[i]
            found.append((value, -product))
        for row, n, r in self._rows():
            for sign, part in row:
                for j, value in part.items():
                    found.append((value, (b[n][r] * self.x[j] + a[j] * self.multipliers[n][r]) * -sign))
        return found


def _combined(row: Sequence[Part], factored: dict[int, Entries]) -> Entries:
    """Return the sum of the parts of a row."""
    total: Entries = {}
    for sign, entries in row:
        for j, value in factored[id(entries)].items():
            own = value if sign > 0 else -value
            total[j] = total[j] + own if j in total else own
    return {j: value for j, value in total.items() if not is_zero(value)}


def elimination_order(touched: Sequence[Collection[int]]) -> tuple[list[int], list[set[int]]]:
    """Each time the constraint with the fewest neighbours left, which its elimination makes neighbours of each other.

    touched: what each has entries of. And the neighbours that each has left at its turn.
    """
    own = [set(each) for each in touched]
    near = [{b for b, other in enumerate(own) if b != a and each & other} for a, each in enumerate(own)]
    left, order = set(range(len(own))), list[int]()
    while left:
        a = min(left, key=lambda i: (len(near[i]), i))
        left.remove(a)
        order.append(a)
        for b in near[a]:
            near[b] = (near[b] | near[a]) - {a, b}
    return order, near
