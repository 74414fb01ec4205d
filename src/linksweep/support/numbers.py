"""The one way to look at numbers that somebody passed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..errors import ArgumentError
from .foreign import refuse_foreign
from .messages import shown

Named = ArrayLike | Mapping[str, ArrayLike]  # an array for all, or some by the names of joints, links or frames


def as_array(value: object) -> np.ndarray:
    """`np.asarray`; an object array () for what has no shape, such as rows of different lengths."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError):
        return np.array(None)


def as_list(value: object) -> list[object]:
    """The entries of `value`; itself where it is a string, or cannot be iterated."""
    try:
        return [value] if isinstance(value, str) else list(cast("Iterable[object]", value))
    except TypeError:  # also arrays without an axis
        return [value]


def described(value: object, array: np.ndarray) -> str:
    """What a message says of `array`, made of `value` by `as_array`: its dtype and shape, or the value itself."""
    return f"{array.dtype} of shape {array.shape}" if array.dtype.kind in "iufbc" else shown(value)


def checked_flag(name: str, value: object) -> bool:
    """An option that is on or off."""
    if not isinstance(value, (bool, int, np.bool_)):
        raise ArgumentError(f"{name} is {shown(value)}, expected True or False.")
    return bool(value)


def checked_dtype(dtype: DTypeLike | None) -> str | None:
    """ "float64" or "float32"; None follows the arguments."""
    if dtype is None:
        return None
    try:
        name = np.dtype(dtype).name
    except (TypeError, ValueError):
        name = shown(dtype)
    if name not in ("float64", "float32"):
        raise ArgumentError(f"dtype is {name}, expected 'float64', 'float32', or None to follow the arguments.")
    return name


def real_vectors(name: str, value: ArrayLike, size: int) -> np.ndarray:
    """Real numbers of shape (..., size), integers as float64; anything else is refused by name."""
    refuse_foreign(name, value)
    array = as_array(value)
    if array.dtype.kind not in "iufb" or array.ndim == 0 or array.shape[-1] != size:
        raise ArgumentError(
            f"{name} has shape {array.shape} and type {array.dtype}, expected real numbers of shape (..., {size})."
        )
    return array if array.dtype.kind == "f" else array.astype(float)
