"""Checks of arguments, shared by all packages.

Each check returns the checked value, or raises `ArgumentError` with one sentence: the argument's name, what is wrong
with its value, and what is allowed, such as `q has shape (5,), expected (..., 6)`. Pass `error=DescriptionError` for
values of a robot model.
"""

from __future__ import annotations

import contextlib
import functools
import math
import operator
import os
from collections.abc import Collection, Iterable, Mapping
from types import EllipsisType
from typing import SupportsFloat, SupportsIndex, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..errors import ArgumentError, LinksweepError
from .messages import listing, nearest, shown

Named = ArrayLike | Mapping[str, ArrayLike]  # an array for all joints, links or frames, or some of them by name
Shape = tuple[int | str | EllipsisType, ...]  # (..., 6), (3,), ("n", 3): a text stands for any length
Error = type[LinksweepError]


def real_array(
    name: str,
    value: object,
    shape: Shape | None = None,
    *,
    finite: bool = False,
    dtype: DTypeLike | None = None,
    error: Error = ArgumentError,
) -> np.ndarray:
    """Return `value` as an array of real numbers of this shape.

    shape: `...` as its first entry stands for any batch axes, a text for an axis of any length; None allows any shape.
    dtype: None keeps floating-point types such as float32 and converts integers to float64.
    """
    refuse_foreign(name, value)
    array = as_array(value)
    if array.dtype.kind not in "iufb":
        kind = shown(value) if array.dtype == object else f"{array.dtype} of shape {array.shape}"
        raise error(
            f"{name} is {kind}, expected real numbers{'' if shape is None else f' of shape {_shape_text(shape)}'}."
        )
    if shape is not None and not _has_shape(array.shape, shape):
        raise error(f"{name} has shape {array.shape}, expected {_shape_text(shape)}.")
    if dtype is not None or array.dtype.kind != "f":
        array = array.astype(float if dtype is None else dtype, copy=False)
    if finite and not np.isfinite(array).all():
        raise error(f"{name} contains NaN or infinity, expected finite numbers.")
    return array


def real_number(
    name: str,
    value: object,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    finite: bool = True,
    error: Error = ArgumentError,
) -> float:
    """Return `value` as a float within the given bounds. Text, truth values and complex numbers raise."""
    refuse_foreign(name, value)
    number = math.nan
    if not isinstance(value, (bool, np.bool_, str, bytes)):
        with contextlib.suppress(TypeError, ValueError, OverflowError):
            number = float(cast(SupportsFloat, value))
    fine = (
        (math.isfinite(number) if finite else not math.isnan(number))
        and (above is None or number > above)
        and (at_least is None or number >= at_least)
        and (below is None or number < below)
        and (at_most is None or number <= at_most)
    )
    if not fine:
        kind = "a finite number" if finite else "a number"
        raise error(f"{name} is {shown(value)}, expected {kind}{_range_text(above, at_least, below, at_most)}.")
    return number


def whole_number(
    name: str, value: object, *, at_least: int | None = None, at_most: int | None = None, error: Error = ArgumentError
) -> int:
    """Return `value` as an int within the given bounds. Truth values and floats raise."""
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(cast(SupportsIndex, value))
    except TypeError:
        number = None
    if number is None or (at_least is not None and number < at_least) or (at_most is not None and number > at_most):
        raise error(f"{name} is {shown(value)}, expected an integer{_range_text(None, at_least, None, at_most)}.")
    return number


def one_of(name: str, value: object, allowed: Collection[str], *, error: Error = ArgumentError) -> str:
    """Return `value` if it is one of the allowed names; otherwise suggest the nearest one."""
    if isinstance(value, str) and value in allowed:
        return value
    words = list(allowed)
    choices = f"{words[0]!r} or {words[1]!r}" if len(words) == 2 else f"one of {listing(words, 30)}"
    raise error(f"{name} is {shown(value)}{nearest(value, words)}, expected {choices}.")


def names(name: str, value: object, *, error: Error = ArgumentError) -> list[str]:
    """Return the entries of `value`, a name or several of them, as a list."""
    entries = as_list(value)
    for entry in entries:
        if not isinstance(entry, str):
            raise error(f"{name} contains {shown(entry)}, expected names.")
    return cast("list[str]", entries)


def checked_flag(name: str, value: object) -> bool:
    """Return an option that is on or off as a bool."""
    if not isinstance(value, (bool, int, np.bool_)):
        raise ArgumentError(f"{name} is {shown(value)}, expected True or False.")
    return bool(value)


def checked_dtype(dtype: DTypeLike | None) -> str | None:
    """Return "float64" or "float32", or None, which follows the arguments."""
    if dtype is None:
        return None
    try:
        name = np.dtype(dtype).name
    except (TypeError, ValueError):
        name = shown(dtype)
    if name not in ("float64", "float32"):
        raise ArgumentError(f"dtype is {name}, expected 'float64', 'float32', or None to follow the arguments.")
    return name


def _has_shape(actual: tuple[int, ...], expected: Shape) -> bool:
    if expected and expected[0] is ...:
        expected = expected[1:]
        if len(actual) < len(expected):
            return False
        actual = actual[len(actual) - len(expected) :]
    pairs = zip(actual, expected, strict=False)
    return len(actual) == len(expected) and all(isinstance(b, str) or a == b for a, b in pairs)


def _shape_text(shape: Shape) -> str:
    entries = ["..." if entry is ... else str(entry) for entry in shape]
    return f"({entries[0]},)" if len(entries) == 1 else f"({', '.join(entries)})"


def _range_text(above: float | None, at_least: float | None, below: float | None, at_most: float | None) -> str:
    """The bounds as a message reports them: " above 0", " of at least 1", " from 0 to 1"."""
    if at_least is not None and at_most is not None:
        return f" from {at_least:g} to {at_most:g}"
    lower = f"above {above:g}" if above is not None else f"of at least {at_least:g}" if at_least is not None else ""
    upper = f"below {below:g}" if below is not None else f"of at most {at_most:g}" if at_most is not None else ""
    return "".join(f" {text}" for text in (" and ".join(filter(None, (lower, upper))),) if text)


# ---- conversions without a check ---------------------------------------------------------------------------


def as_array(value: object) -> np.ndarray:
    """Return `np.asarray(value)`, or an object array () for what has no shape, such as rows of different lengths."""
    try:
        return np.asarray(value)
    except Exception:  # also whatever the __array__ of another package raises
        return np.array(None)


def as_list(value: object) -> list[object]:
    """Return the entries of `value`; a string, or a value that cannot be iterated, is its only entry."""
    try:
        return [value] if isinstance(value, str) else list(cast("Iterable[object]", value))
    except TypeError:  # also arrays without an axis
        return [value]


def described(value: object, array: np.ndarray) -> str:
    """Describe `array`, made from `value` by `as_array`, for a message: its dtype and shape, or the value itself."""
    return f"{array.dtype} of shape {array.shape}" if array.dtype.kind in "iufbc" else shown(value)


# ---- memory ------------------------------------------------------------------------------------------------


def check_memory(
    name: str,
    shape: tuple[int, ...],
    itemsize: int = 8,
    advice: str = "simulate fewer rollouts at a time, or record less often (every=...)",
) -> None:
    """Raise if an array of this shape is larger than the machine's memory, before it is allocated."""
    required = math.prod(shape) * itemsize
    try:
        available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        available = 2**40
    if required > available:
        raise ArgumentError(
            f"{name} of shape {shape} needs {required / 2**30:.3g} GiB, but this machine has "
            f"{available / 2**30:.3g} GiB: {advice}."
        )


# ---- arrays of other packages ------------------------------------------------------------------------------
# NumPy would convert these to wrong numbers. They are recognised by class, so that no package is imported.

_MASKED = (
    "is a masked array, whose masked entries would count as numbers; expected a plain array: fill them with "
    "np.ma.filled, or select rows without any"
)
_TENSOR = (
    "is a PyTorch tensor, whose gradients and device would be lost; expected a NumPy array: pass "
    "x.detach().cpu().numpy(), or call linksweep.torch.wrap(robot.compile(...)) with tensors"
)
_TRACER = (
    "is a JAX tracer, which has no values yet; expected a NumPy array: call this outside jit, grad and vmap, with "
    "np.asarray(x), or call linksweep.jax.wrap(robot.compile(...)) inside them"
)
_REFUSED = {("numpy", "MaskedArray"): _MASKED, ("torch", "Tensor"): _TENSOR, ("jax", "Tracer"): _TRACER}
_MAX_DEPTH = 8  # of lists within lists


def refuse_foreign(name: str, value: object, tensors: bool = False) -> None:
    """Raise if `value`, or an entry of a list or tuple, is a masked array, a PyTorch tensor or a JAX tracer.

    tensors: PyTorch tensors are allowed.
    """
    reason = _foreign(value, _MAX_DEPTH)
    if reason and not (tensors and reason is _TENSOR):
        raise ArgumentError(f"{name} {reason}.") from None


def _foreign(value: object, depth: int) -> str:
    kind = type(value)
    if not isinstance(value, (list, tuple)) or kind not in (list, tuple):
        return _foreign_class(kind)
    kinds = set(map(type, value))  # a million numbers have one type
    reason = next(filter(None, map(_foreign_class, kinds)), "")
    if reason or not depth or not kinds & {list, tuple}:
        return reason
    return next(filter(None, (_foreign(entry, depth - 1) for entry in value)), "")


@functools.lru_cache(maxsize=256)
def _foreign_class(kind: type) -> str:
    for base in kind.__mro__:
        reason = _REFUSED.get((str(base.__module__).partition(".")[0], base.__name__))
        if reason:
            return reason
    return ""
