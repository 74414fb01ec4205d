"""Small dense symmetric positive matrices over any scalar: A = L diag(d) L^T, L unit lower triangular."""

from __future__ import annotations

from .scalars import Rows, Scalar, Values


def ldl(A: Rows) -> tuple[list[list[Scalar]], list[Scalar]]:
    """L (rows below the diagonal, its ones left out) and d; only the lower half of A is read."""
    L: list[list[Scalar]] = []
    d: list[Scalar] = []
    for i, row in enumerate(A):
        own: list[Scalar] = []
        scaled: list[Scalar] = []  # L_ij d_j
        for j in range(i):
            value = row[j]
            for k in range(j):
                value = value - scaled[k] * L[j][k]
            scaled.append(value)
            own.append(value / d[j])
        pivot = row[i]
        for a, b in zip(own, scaled, strict=True):
            pivot = pivot - a * b
        L.append(own)
        d.append(pivot)
    return L, d


def inward(L: Rows, b: Values) -> list[Scalar]:
    """L^-1 b."""
    x: list[Scalar] = []
    for i, value in enumerate(b):
        for j in range(i):
            value = value - L[i][j] * x[j]
        x.append(value)
    return x


def solved(A: Rows, b: Values) -> list[Scalar]:
    """A^-1 b."""
    L, d = ldl(A)
    x = [value / pivot for value, pivot in zip(inward(L, b), d, strict=True)]
    for i in reversed(range(len(x))):
        for j in range(i):
            x[j] = x[j] - L[i][j] * x[i]
    return x


def dot(a: Values, b: Values) -> Scalar:
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total


def transpose_times(A: Rows, x: Values) -> list[Scalar]:
    """A^T x."""
    return [dot([row[j] for row in A], x) for j in range(len(A[0]))]
