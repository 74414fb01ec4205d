"""M x + K^T lambda = force, K x + k = 0, for M with the zeros of a tree and a K with few entries in each row.

With M = L^T D L, Y = L^-T K^T and Omega = Y^T D^-1 Y = K M^-1 K^T, the operational space of the constraints:
Omega lambda = Y^T D^-1 L^-T force + k. L keeps the zeros of the tree; Omega's factor those of constraints that share no
link, in an order that fills few of them: those with the fewest neighbours first. Redundant rows are met by proximal
iterations (spatial/symmetric_solve.py).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...spatial.scalars import Scalar, is_zero
from ...spatial.symmetric_solve import SymmetricSolver
from ...spatial.tree_matrix import TreeMatrix

Entries = dict[int, Scalar]  # of a row, by rate
Part = tuple[float, Entries]  # 1 or -1 times entries, which several rows may share: one object, then


class Elimination:
    """blocks: for each constraint its rows, each a sum of parts.

    damping: a share of the trace of a constraint's block of Omega; then lambda is found only where Omega is larger.
    """

    def __init__(self, M: TreeMatrix, blocks: Sequence[Sequence[Sequence[Part]]], damping: float = 0.0):
        self.M, pivots = M, M.pivots()
        self.low = M.factor()[0]
        self.inverse = [1.0 / d for d in pivots]
        self.Y: dict[int, Entries] = {}                                                          # Y = L^-T K^T
        self.places: dict[int, int] = {}
        for block in blocks:
            for row in block:
                for _, entries in row:
                    if id(entries) not in self.Y:
                        self.places[id(entries)] = len(self.Y)
                        self.Y[id(entries)] = self._inward(entries)
        self.kept = blocks  # and so the identity of their entries
        touched = [{j for row in block for _, part in row for j in self.Y[id(part)]} for block in blocks]
        self.order, _ = elimination_order(touched)
        self.rows = [[(sign, id(entries)) for sign, entries in row] for i in self.order for row in blocks[i]]
        Omega = [[self._entry(y, z) for z in self.rows[: i + 1]] for i, y in enumerate(self.rows)]
        self.solver = SymmetricSolver(Omega, self._damping(Omega, damping) if damping else None)

    def _damping(self, Omega: Sequence[Sequence[Scalar]], share: float) -> list[Scalar]:
        found: list[Scalar] = []
        for i in self.order:
            trace: Scalar = 0.0
            for row in range(len(found), len(found) + len(self.kept[i])):
                trace = trace + Omega[row][row]
            found += [trace * share] * len(self.kept[i])
        return found

    def _inward(self, entries: Entries) -> Entries:
        x = {j: value for j, value in entries.items() if not is_zero(value)}
        for i in reversed(range(len(self.inverse))):
            for j in self.M.ancestors(i) if i in x else ():
                change = self.low[i, j] * x[i]
                x[j] = x[j] - change if j in x else -change
        return {j: x[j] for j in sorted(x) if not is_zero(x[j])}

    def _entry(self, row: Sequence[tuple[float, int]], other: Sequence[tuple[float, int]]) -> Scalar:
        total: Scalar = 0.0
        for sign, y in row:
            for factor, z in other:
                first, second = (self.Y[i] for i in sorted((y, z), key=self.places.__getitem__))
                product = self._product(first, second)
                if not is_zero(product):
                    total = total + product if sign == factor else total - product
        return total

    def _product(self, y: Entries, z: Entries) -> Scalar:
        """y^T D^-1 z."""
        total: Scalar = 0.0
        for j in y:
            if j in z and not is_zero(z[j]):
                total = total + y[j] * (z[j] * self.inverse[j])
        return total

    def solve(self, force: Sequence[Scalar], k: Sequence[Sequence[Scalar]]) -> tuple[list[Scalar], list[list[Scalar]]]:
        """x, and lambda of each constraint, from k of each."""
        y = self.M.inward(force)
        free = dict(enumerate(y))
        drifts = [drift for i in self.order for drift in k[i]]
        known: list[Scalar] = []
        for row, drift in zip(self.rows, drifts, strict=True):
            for sign, part in row:
                product = self._product(self.Y[part], free)
                drift = drift + product if sign > 0 else drift - product
            known.append(drift)
        multipliers = self.solver.solve(known)                                                   # Omega lambda
        weights: dict[int, Scalar] = {}
        for row, value in zip(self.rows, multipliers, strict=True):
            for sign, part in row:
                own = value if sign > 0 else -value
                weights[part] = weights[part] + own if part in weights else own
        for part, weight in weights.items():
            for j, entry in self.Y[part].items():
                y[j] = y[j] - entry * weight
        x: list[Scalar] = []
        for i, entry in enumerate(y):
            value = entry * self.inverse[i]
            for j in self.M.ancestors(i):
                value = value - self.low[i, j] * x[j]
            x.append(value)
        found, values = [list[Scalar]() for _ in k], iter(multipliers)
        for i in self.order:
            found[i] = [next(values) for _ in k[i]]
        return x, found


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
