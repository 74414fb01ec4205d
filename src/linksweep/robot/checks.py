"""What Robot asks of arguments before it uses them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..support.messages import shown


def is_numbers(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind in "iuf"
    except (TypeError, ValueError):
        return False


def checked_dtype(dtype: Any) -> str | None:
    if dtype is None:
        return None
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = shown(dtype)
    if name not in ("float64", "float32"):
        raise ArgumentError(f"dtype is {name}, expected 'float64', 'float32', or None to follow the arguments.")
    return name
