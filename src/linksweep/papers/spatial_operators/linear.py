"""LinearOperators that are closed under @, +, -, scalar multiples and .T, and can be converted to matrices."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from ...errors import ArgumentError
from ...support.checks import refuse_foreign

Operand = Any  # operands and results of scipy's LinearOperator: a number, an array, a matrix, another operator
Apply = Callable[[np.ndarray], np.ndarray]  # of (size,) or (size, columns)


class SpatialOperator(LinearOperator):
    """A real linear map, given by a function and its adjoint, of a vector or of several columns.

    Products and sums of SpatialOperators are SpatialOperators; with any other LinearOperator they are scipy's.
    """

    def __init__(self, name: str, shape: tuple[int, int], forward: Apply, adjoint: Apply):
        super().__init__(np.float64, shape)
        self.name = name
        self._forward = forward
        self._backward = adjoint

    def todense(self) -> np.ndarray:
        """The matrix, computed column by column."""
        return self.matmat(np.eye(self.shape[1]))

    def named(self, name: str) -> SpatialOperator:
        """The same operator under another name."""
        return SpatialOperator(name, self.shape, self._forward, self._backward)

    def matvec(self, x: Operand) -> Operand:
        return super().matvec(self._checked(x, self.shape[1], column=True))

    def rmatvec(self, x: Operand) -> Operand:
        return super().rmatvec(self._checked(x, self.shape[0], column=True))

    def matmat(self, X: Operand) -> Operand:
        return super().matmat(self._checked(X, self.shape[1]))

    def rmatmat(self, X: Operand) -> Operand:
        return super().rmatmat(self._checked(X, self.shape[0]))

    def dot(self, x: Operand) -> Operand:
        if isinstance(x, SpatialOperator):
            return self._times(x)
        refuse_foreign(f"{self.name}: the array", x)  # before scipy converts it
        return self._scaled(float(x)) if isinstance(x, numbers.Real) else super().dot(x)

    def __mul__(self, x: Operand) -> Operand:
        return self.dot(x)

    def __matmul__(self, x: Operand) -> Operand:
        return super().__matmul__(x)

    def __rmul__(self, x: Operand) -> Operand:
        return self._scaled(float(x)) if isinstance(x, numbers.Real) else super().__rmul__(x)

    def __truediv__(self, x: Operand) -> Operand:
        return self._scaled(1.0 / float(x)) if isinstance(x, numbers.Real) else super().__truediv__(x)

    def __neg__(self) -> SpatialOperator:
        return self._scaled(-1.0)

    def __add__(self, x: Operand) -> Operand:
        return self._plus(x) if isinstance(x, SpatialOperator) else super().__add__(x)

    def __sub__(self, x: Operand) -> Operand:
        return self + (-x)

    @property
    def T(self) -> SpatialOperator:
        return self._adjoint()

    @property
    def H(self) -> SpatialOperator:
        return self._adjoint()

    def __repr__(self) -> str:
        return f"<{self.shape[0]}x{self.shape[1]} spatial operator {self.name}>"

    def _matvec(self, x: np.ndarray) -> np.ndarray:
        return self._forward(x.reshape(-1))

    def _rmatvec(self, x: np.ndarray) -> np.ndarray:
        return self._backward(x.reshape(-1))

    def _matmat(self, X: np.ndarray) -> np.ndarray:
        return self._forward(X)

    def _rmatmat(self, X: np.ndarray) -> np.ndarray:
        return self._backward(X)

    def _adjoint(self) -> SpatialOperator:
        rows, columns = self.shape
        return SpatialOperator(_transposed(self.name), (columns, rows), self._backward, self._forward)

    def _transpose(self) -> SpatialOperator:
        return self._adjoint()  # the operators are real

    def _times(self, b: SpatialOperator) -> SpatialOperator:
        if self.shape[1] != b.shape[0]:
            raise ArgumentError(
                f"{self.name} {b.name}: {self.shape[0]}x{self.shape[1]} times {b.shape[0]}x{b.shape[1]}, expected as "
                f"many columns as rows."
            )
        a_forward, b_forward, a_adjoint, b_adjoint = self._forward, b._forward, self._backward, b._backward
        return SpatialOperator(
            f"{_grouped(self.name)} {_grouped(b.name)}",
            (self.shape[0], b.shape[1]),
            lambda x: a_forward(b_forward(x)),
            lambda y: b_adjoint(a_adjoint(y)),
        )

    def _plus(self, b: SpatialOperator) -> SpatialOperator:
        if self.shape != b.shape:
            raise ArgumentError(
                f"{self.name} + {b.name}: {self.shape[0]}x{self.shape[1]} plus {b.shape[0]}x{b.shape[1]}, expected the "
                f"same shape: I is the identity of spatial vectors, I_N that of joint vectors."
            )
        a_forward, b_forward, a_adjoint, b_adjoint = self._forward, b._forward, self._backward, b._backward
        name = f"{self.name} - {b.name[1:]}" if b.name.startswith("-") else f"{self.name} + {b.name}"
        return SpatialOperator(
            name, self.shape, lambda x: a_forward(x) + b_forward(x), lambda y: a_adjoint(y) + b_adjoint(y)
        )

    def _scaled(self, factor: float) -> SpatialOperator:
        forward, adjoint, factor = self._forward, self._backward, float(factor)
        name = f"-{_grouped(self.name)}" if factor == -1.0 else f"{factor:g} {_grouped(self.name)}"
        return SpatialOperator(name, self.shape, lambda x: forward(x) * factor, lambda y: adjoint(y) * factor)

    def _checked(self, x: Operand, size: int, column: bool = False) -> Operand:
        """x if it is (size,) or (size, 1), or (size, any) for several columns; a scipy matrix is left to scipy."""
        refuse_foreign(f"{self.name}: the array", x)
        if not hasattr(x, "shape"):
            x = np.asarray(x)
        fits = x.shape in ((size,), (size, 1)) if column else len(x.shape) == 2 and x.shape[0] == size
        if not fits:
            expected = f"({size},)" if column else f"({size}, columns)"
            raise ArgumentError(
                f"{self.name} got an array of shape {tuple(x.shape)}, expected {expected}: stack the links from tip to "
                f"base."
            )
        return x


def _grouped(name: str) -> str:
    return f"({name})" if " + " in name or " - " in name else name


def _transposed(name: str) -> str:
    simple = " " not in name
    return name.removesuffix("^T") if simple and name.endswith("^T") else f"{name if simple else f'({name})'}^T"
