"""The factors of the mass matrix, to solve and to sample with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import ArgumentError
from .foreign import refuse_foreign


@dataclass(frozen=True)
class Factor:
    """M = L diag(D) L^T with L = I + H Phi L, and its inverse I - H Psi L (Rodriguez & Kreutz 1988, (4.11), (4.14)).

    L, L_inverse: (..., nv, nv), each row and column a joint; lower triangular when joints are taken from tip to base.
    D: (..., nv), the inertia that each joint sees with the outer joints free.
    """

    L: np.ndarray
    D: np.ndarray
    L_inverse: np.ndarray

    def solve(self, b: Any) -> np.ndarray:
        """M^-1 b, (..., nv)."""
        e = self._times(self.L_inverse, b) / self.D
        return self._times(np.swapaxes(self.L_inverse, -1, -2), e)

    def logdet(self) -> np.ndarray:
        """log det M."""
        return np.log(self.D).sum(axis=-1)

    def sqrt_apply(self, white: Any) -> np.ndarray:
        """L D^(1/2) w: vectors of covariance M from white ones, the innovations model (4.12)."""
        return self._times(self.L, np.sqrt(self.D) * self._checked(white))

    def whiten(self, y: Any) -> np.ndarray:
        """The reverse of `sqrt_apply`: D^(-1/2) (I - H Psi L) y, (4.15)."""
        return self._times(self.L_inverse, y) / np.sqrt(self.D)

    def _times(self, matrix: np.ndarray, vector: Any) -> np.ndarray:
        return (matrix @ self._checked(vector)[..., None])[..., 0]

    def _checked(self, vector: Any) -> np.ndarray:
        refuse_foreign("factor: the vector", vector)
        array = np.asarray(vector)
        size = self.D.shape[-1]
        if array.dtype.kind not in "iufb" or array.ndim == 0 or array.shape[-1] != size:
            raise ArgumentError(
                f"factor: got an array of shape {array.shape} and type {array.dtype}, expected (..., {size}) "
                f"real numbers."
            )
        return array
