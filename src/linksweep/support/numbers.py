"""The one way to look at numbers that somebody passed."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from .foreign import refuse_foreign

Named = ArrayLike | Mapping[str, ArrayLike]  # an array for all, or some by the names of joints, links or frames


def real_vectors(name: str, value: ArrayLike, size: int) -> np.ndarray:
    """Real numbers of shape (..., size), integers as float64; anything else is refused by name."""
    refuse_foreign(name, value)
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "iufb" or array.ndim == 0 or array.shape[-1] != size:
        raise ArgumentError(
            f"{name} has shape {array.shape} and type {array.dtype}, expected real numbers of shape (..., {size})."
        )
    return array if array.dtype.kind == "f" else array.astype(float)
