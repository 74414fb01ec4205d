"""The one way to look at numbers that somebody passed."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError
from .foreign import refuse_foreign


def real_vectors(name: str, value: Any, size: int) -> np.ndarray:
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
