"""Triangular factors of small symmetric matrices, over any scalar: U diag(d) U^T of covariances, and L diag(d) L^T.

G. J. Bierman, "Factorization Methods for Discrete Sequential Estimation", Academic Press, 1977, gives the factors U, d
of a nonnegative matrix, of a sum of weighted squares, and after a scalar measurement.
"""

# pyright: reportConstantRedefinition=false
# (capital letters are the papers' symbols, and no constants)

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .scalars import Rows, Scalar, Values, is_zero, where


def factored(a: list[list[Scalar]]) -> tuple[list[list[Scalar]], list[Scalar]]:
    """U (unit upper triangular) and d with a = U diag(d) U^T; a column without pivot stays empty."""
    n = len(a)
    U: list[list[Scalar]] = [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]
    d: list[Scalar] = [0.0] * n
    for j in reversed(range(n)):
        d[j] = a[j][j]
        for i in range(j):
            U[i][j] = quotient(a[i][j], d[j])
        for i in range(j):
            for k in range(i, j):
                a[i][k] = a[k][i] = a[i][k] - U[i][j] * a[k][j]
    return U, d


def orthogonalised(
    columns: Sequence[Sequence[Scalar]], weights: Sequence[Scalar]
) -> tuple[list[list[Scalar]], list[Scalar]]:
    """U and d with U diag(d) U^T = the sum of weighted squares of the columns: modified weighted Gram-Schmidt."""
    W = [list(row) for row in zip(*columns, strict=True)]
    n = len(W)
    U: list[list[Scalar]] = [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]
    d: list[Scalar] = [0.0] * n
    for j in reversed(range(n)):
        scaled = [w * weight for w, weight in zip(W[j], weights, strict=True)]
        d[j] = total(a * b for a, b in zip(scaled, W[j], strict=True))
        for i in range(j):
            U[i][j] = quotient(total(a * b for a, b in zip(scaled, W[i], strict=True)), d[j])
            W[i] = [a - U[i][j] * b for a, b in zip(W[i], W[j], strict=True)]
    return U, d


def bierman_update(
    U: list[list[Scalar]], d: list[Scalar], f: Sequence[Scalar], noise: Scalar
) -> tuple[list[list[Scalar]], list[Scalar], Scalar, list[Scalar]]:
    """The factors after one measurement of noise R: updated U and d, D = f^T d f + R, and the gain."""
    n = len(d)
    U_plus = [list(row) for row in U]
    d_plus: list[Scalar] = list(d)
    gain: list[Scalar] = [0.0] * n
    D: Scalar = noise
    for j in range(n):
        v = d[j] * f[j]
        before, D = D, D + f[j] * v
        d_plus[j] = d[j] if is_zero(f[j]) else quotient(d[j] * before, D, d[j])
        ratio = quotient(f[j], before)
        for i in range(j):
            U_plus[i][j] = U[i][j] - ratio * gain[i]
            gain[i] = gain[i] + U[i][j] * v
        gain[j] = v
    return U_plus, d_plus, D, [quotient(entry, D) for entry in gain]


def quotient(a: Scalar, b: Scalar, otherwise: Scalar = 0.0) -> Scalar:
    """a / b, and `otherwise` where a direction has no weight at all."""
    if is_zero(b):
        return otherwise
    return where(b > 0.0, a / where(b > 0.0, b, 1.0), otherwise)


def total(terms: Iterable[Scalar]) -> Scalar:
    result: Scalar = 0.0
    for term in terms:
        result = result + term
    return result


# ---- L diag(d) L^T of positive definite matrices, L unit lower triangular ----------------------------------------


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
    """Return L^-1 b."""
    x: list[Scalar] = []
    for i, value in enumerate(b):
        for j in range(i):
            value = value - L[i][j] * x[j]
        x.append(value)
    return x


def solved(A: Rows, b: Values) -> list[Scalar]:
    """Return A^-1 b."""
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
    """Return A^T x."""
    return [dot([row[j] for row in A], x) for j in range(len(A[0]))]
