"""Torques of the motors of a closed chain that do what forces at all its joints would do.

    tau = tree + K^T lambda,    tau = 0 at passive joints

Multipliers lambda change no motion that the constraints allow, so tau moves the robot as `tree` would. With lambda =
Q [y; z] and the columns of Q^T K at passive joints [R; 0] (Householder's reflections, which keep most zeros of K),
R^T y = -tree at passive joints. z is free where constraints outnumber them: it makes |sqrt(weights) (tau - goal)| the
least, by the rows of Q^T K that belong to it, made orthogonal (modified Gram-Schmidt, the largest row first). What
depends on others but for DEPENDENT says nothing new.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...spatial.scalars import Rows, Scalar, Values, is_zero, sqrt, where

DEPENDENT = 1e-12  # of a squared length: single precision leaves 1e-14 of what should be 0
ROUNDED = 1e-14  # of all of K, squared: the least column
Entries = dict[int, Scalar]  # of a row, by column, or the reverse


@dataclass(slots=True)
class Result:
    tau: list[Scalar]  # exactly 0 at passive joints
    multipliers: list[Scalar]
    left: Scalar  # squared: forces at passive joints that no multiplier gives


def motor_torques(
    tree: Values, K: Rows, driven: Sequence[bool], weights: Values | None = None, goal: Values | None = None,
    order: Sequence[int] | None = None,
) -> Result:  # fmt: skip
    """tree (nv), K (rows, nv), driven: which of the rates have motors. weights, goal (nv): 1 and 0 by default.

    order: of the passive rates, those first whose columns are independent; None keeps most zeros, and serves where all
    of them are.
    """
    motors = [j for j, motor in enumerate(driven) if motor]
    reflected = _Reflected(K, [j for j, motor in enumerate(driven) if not motor], order)
    y, left = reflected.solved(tree)
    tau: Entries = {j: tree[j] for j in motors}
    for i, value in y.items():
        for j, entry in reflected.rows[i].items():
            if driven[j]:
                tau[j] = tau[j] + entry * value
    roots = {j: sqrt(weights[j]) if weights is not None else 1.0 for j in motors}
    wanted = {j: goal[j] if goal is not None else 0.0 for j in motors}
    free = {i: {j: x * roots[j] for j, x in reflected.rows[i].items()} for i in reflected.open}
    off = {j: roots[j] * (tau[j] - wanted[j]) for j in motors}
    whole = _sum(row[j] * row[j] * roots[j] * roots[j] for row in K for j in motors if not is_zero(row[j]))
    z = _least(off, free, whole)
    if z:
        tau = {j: x / roots[j] + wanted[j] for j, x in off.items()}
    return Result([tau.get(j, 0.0) for j in range(len(tree))], reflected.back(y | z), left)


class _Reflected:
    """Q^T K, by rows; `open`: the rows in which passive joints have nothing left."""

    def __init__(self, K: Rows, passive: Sequence[int], order: Sequence[int] | None):
        self.rows: list[Entries] = [{j: x for j, x in enumerate(row) if not is_zero(x)} for row in K]
        self.open = list(range(len(K)))
        self.pivots: dict[int, int] = {}  # row by column, in the order of elimination
        self.counts: dict[int, object] = {}  # whether a column does not depend on those before it
        self.reflections: list[tuple[Entries, Scalar]] = []
        self.passive = passive
        sizes = {j: _sum(row[j] * row[j] for row in self.rows if j in row) for j in passive}
        noise = _sum(x * x for row in self.rows for x in row.values()) * ROUNDED
        left = list(passive if order is None else order)
        while left:
            fewest = min(left, key=lambda j: (sum(j in self.rows[i] for i in self.open), j))
            j = fewest if order is None else left[0]
            left.remove(j)
            touched = [i for i in self.open if j in self.rows[i]]
            if touched:
                self._eliminate(j, touched, sizes[j] * DEPENDENT + noise)

    def _eliminate(self, j: int, touched: Sequence[int], least: Scalar) -> None:
        """Reflect the rows `touched` so that only the first of them has an entry in column j, and close that one."""
        pivot, x = touched[0], {i: self.rows[i][j] for i in touched}
        square = _sum(value * value for value in x.values())
        counts = square > least
        self.pivots[j], self.counts[j] = pivot, counts
        self.open.remove(pivot)
        if len(touched) == 1:
            return
        norm = sqrt(where(counts, square, 1.0))
        longer = where(x[pivot] > 0.0, x[pivot] + norm, x[pivot] - norm)
        mirror: Entries = {**x, pivot: longer}
        factor = where(counts, 1.0 / (norm * where(longer > 0.0, longer, -longer)), 0.0)  # 2 / |mirror|^2
        self.reflections.append((mirror, factor))
        for column in sorted({column for i in touched for column in self.rows[i]}):
            entries = {i: self.rows[i][column] for i in touched if column in self.rows[i]}
            share = _sum(mirror[i] * value for i, value in entries.items()) * factor
            for i in touched:
                self.rows[i][column] = entries[i] - share * mirror[i] if i in entries else -(share * mirror[i])
        for i in touched[1:]:
            del self.rows[i][j]

    def solved(self, tree: Values) -> tuple[Entries, Scalar]:
        """y of the closed rows in R^T y = -tree at passive joints, and what is left of it, squared."""
        y: Entries = {}
        left: Scalar = 0.0
        for j in (*self.pivots, *(j for j in self.passive if j not in self.pivots)):
            needed = -tree[j]
            for i, value in y.items():
                if j in self.rows[i]:
                    needed = needed - self.rows[i][j] * value
            if j not in self.pivots:
                left = left + needed * needed
                continue
            pivot, counts = self.pivots[j], self.counts[j]
            y[pivot] = where(counts, needed / where(counts, self.rows[pivot][j], 1.0), 0.0)
            left = left + where(counts, 0.0, needed * needed)
        return y, left

    def back(self, values: Entries) -> list[Scalar]:
        """Return Q times these values."""
        found: list[Scalar] = [values.get(i, 0.0) for i in range(len(self.rows))]
        for mirror, factor in reversed(self.reflections):
            share = _sum(x * found[i] for i, x in mirror.items()) * factor
            for i, x in mirror.items():
                found[i] = found[i] - share * x
        return found


def _least(off: Entries, rows: dict[int, Entries], whole: Scalar) -> Entries:
    """Make `off` the least that is possible by adding rows, and say how often each; whole: of all rows, squared."""
    if not any(rows.values()):
        return {}
    names, order = list(rows), list(off)
    left = [[rows[i].get(j, 0.0) for j in order] for i in names]
    made_of: list[list[Scalar]] = [[1.0 if i == k else 0.0 for k in names] for i in names]
    z: list[Scalar] = [0.0] * len(names)
    for _ in range(min(len(names), len(order))):
        best, row, parts = _dot(left[0], left[0]), left[0], made_of[0]
        for other, its_parts in zip(left[1:], made_of[1:], strict=True):
            size = _dot(other, other)
            more = size > best
            best = where(more, size, best)
            row = [where(more, x, y) for x, y in zip(other, row, strict=True)]
            parts = [where(more, x, y) for x, y in zip(its_parts, parts, strict=True)]
        counts = best > whole * DEPENDENT
        inverse = where(counts, 1.0 / sqrt(where(counts, best, 1.0)), 0.0)
        row, parts = [x * inverse for x in row], [x * inverse for x in parts]
        along = _dot(row, list(off.values()))
        for j, x in zip(order, row, strict=True):
            off[j] = off[j] - along * x
        z = _less(z, along, parts)
        for i, other in enumerate(left):
            share = _dot(row, other)
            left[i], made_of[i] = _less(other, share, row), _less(made_of[i], share, parts)
    return dict(zip(names, z, strict=True))


def _sum(terms: Iterable[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for term in terms:
        total = total + term
    return total


def _dot(a: Values, b: Values) -> Scalar:
    return _sum(x * y for x, y in zip(a, b, strict=True) if not is_zero(x) and not is_zero(y))


def _less(a: Values, share: Scalar, b: Values) -> list[Scalar]:
    """Return a - share b."""
    return list(a) if is_zero(share) else [x if is_zero(y) else x - share * y for x, y in zip(a, b, strict=True)]
