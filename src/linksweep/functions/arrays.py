"""From whatever a user passes to checked two-dimensional arrays, and back.

Kernels are generated machine code and check nothing, so everything is checked here, before one runs.

A **kernel** is any callable `kernel(inputs, outputs) -> None` over lists of arrays that are all
- of one dtype, float64 or float32, in native byte order, aligned;
- two-dimensional: outputs (N, size) with N >= 1, inputs (N, size), or (1, size) when all samples share it;
- contiguous along the last axis (stride = itemsize), with a row stride that is a multiple of the itemsize and
  never negative (it may be 0 for inputs);
- such that no element of an output shares memory with anything else.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from linksweep.backends import result_memory
from linksweep.backends.threads import Kernel
from linksweep.errors import ArgumentError
from linksweep.support.checks import refuse_foreign

Out = np.ndarray | Sequence[np.ndarray]  # to write to: an array, or one for each of several results
Results = Any  # an array, a tuple of them, or what a signature makes of several: which, the caller knows
_FLOAT64 = np.dtype(np.float64)
_FLOAT32 = np.dtype(np.float32)
_PLAIN = 0x101  # ndarray.flags.num: C_CONTIGUOUS | ALIGNED, one look instead of two
_OVERLAP_WORK = 1000  # enough to tell interleaved columns of one array apart; beyond it, overlap is assumed
_KINDS = {
    "c": "complex numbers",
    "O": "Python objects",
    "S": "text",
    "U": "text",
    "T": "text",
    "M": "dates",
    "m": "time differences",
    "V": "records",
}


@dataclass(frozen=True)
class Argument:
    """One input or output: its name, its shape for one sample, what entries are ("one per coordinate")."""

    name: str
    shape: tuple[int, ...]
    meaning: str = ""

    @property
    def wanted(self) -> str:
        """The shape a user passes, with its batch axes: "(..., 6)"."""
        return "(" + ", ".join(["...", *map(str, self.shape)]) + ")"


@dataclass(frozen=True)
class Signature:
    """What a compiled function takes and gives; `result` makes the value returned for several outputs."""

    function: str
    inputs: tuple[Argument, ...]
    outputs: tuple[Argument, ...]
    result: Callable[[list[np.ndarray]], Results] = tuple
    # (shape, size) of each argument, ready for the short path of every call
    input_cores: tuple[tuple[tuple[int, ...], int], ...] = field(init=False, repr=False, compare=False)
    output_cores: tuple[tuple[tuple[int, ...], int], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self):
        if not self.outputs:
            raise ArgumentError(f"{self.function}: no output is named, expected at least one, name a result.")
        object.__setattr__(self, "input_cores", tuple((a.shape, math.prod(a.shape)) for a in self.inputs))
        object.__setattr__(self, "output_cores", tuple((a.shape, math.prod(a.shape)) for a in self.outputs))


def call(
    signature: Signature,
    kernel_for: Callable[[np.dtype], Kernel],
    args: Sequence[ArrayLike],
    *,
    out: Out | None = None,
    dtype: DTypeLike | None = None,
    run: Callable[[Kernel, list[np.ndarray], list[np.ndarray]], None] | None = None,
) -> Results:
    """Check `args`, run the kernel over their broadcast batch, return arrays of shape batch + core.

    Arguments are anything `np.asarray` makes real numbers of, with any leading batch shape, broadcast as
    NumPy does. They are never modified.

    The dtype is `dtype` (float32 or float64) if given, else it follows `np.result_type`: float32 (or float16)
    arrays give float32, everything else float64; lists and integer arrays count as what `np.asarray` makes of
    them (float64, int64), and bare Python numbers do not count beside arrays. Values that overflow in the
    conversion become infinite, as in NumPy, but without its warning.

    One output is returned as an array (0-d for one sample of a scalar), several as `signature.result` (a
    tuple). `out=` is an array, or a tuple of them for several outputs, of exactly the right shape and dtype;
    it is what is returned. It may overlap the arguments.

    `run(kernel, inputs, outputs)` runs the kernel: the place for threads.
    """
    forced = None if dtype is None else _checked_dtype(signature, dtype)
    inputs, batch, count, dtype = _plain_inputs(signature, args, forced) or _any_inputs(signature, args, forced)
    given = None if out is None else _checked_out(signature, out, batch, dtype)

    results: list[np.ndarray] = []
    outputs: list[np.ndarray] = []
    entries = 0
    for index, (core, size) in enumerate(signature.output_cores):
        target = None if given is None else _usable(given[index], inputs, count, size)
        if target is None:
            target = _empty(signature, batch, core, dtype)
        results.append(target)
        outputs.append(target.reshape(count, size))
        entries += count * size

    if entries:
        kernel = kernel_for(dtype)
        if run is None:
            kernel(inputs, outputs)
        else:
            run(kernel, inputs, outputs)
    if given is None:
        return results[0] if len(results) == 1 else signature.result(results)
    for array, result in zip(given, results, strict=True):
        if result.base is None:  # allocated here, because `out` itself could not be handed to the kernel
            array[...] = result
    return out


def in_order(signature: Signature, args: Sequence[ArrayLike], named: Mapping[str, ArrayLike]) -> tuple[ArrayLike, ...]:
    """Arguments by position and by name, all by position."""
    names = [argument.name for argument in signature.inputs]
    listed = ", ".join(names)
    for name in named:
        if name not in names:
            _refuse(signature, f"there is no argument {name!r}, expected {listed}, or out, use one of these names.")
        if name in names[: len(args)]:
            _refuse(signature, f"{name} is given by position and by name, expected it once, leave one out.")
    missing = [name for name in names[len(args) :] if name not in named]
    if missing:
        _refuse(signature, f"{', '.join(missing)} is missing, expected {listed}, pass an array for each.")
    return (*args, *(named[name] for name in names[len(args) :]))


def axes(signature: Signature, index: int, value: ArrayLike) -> int:
    """How many axes an argument will have."""
    if not isinstance(value, np.ndarray):
        refuse_foreign(f"{signature.function}: {signature.inputs[index].name}", value)
    return np.ndim(value)


Inputs = tuple[list[np.ndarray], tuple[int, ...], int, np.dtype]  # arrays, the batch shape, its size, the dtype


def _plain_inputs(signature: Signature, args: Sequence[object], dtype: np.dtype | None) -> Inputs | None:
    """The short path: contiguous arrays of one dtype, of the first one's batch shape or of none. Else None."""
    cores = signature.input_cores
    if not cores or len(args) != len(cores):
        return None
    first = args[0]
    if type(first) is not np.ndarray:
        return None
    if dtype is None:
        dtype = first.dtype
        if dtype is not _FLOAT64 and dtype is not _FLOAT32:
            return None
    shape = first.shape
    batch = shape[: len(shape) - len(cores[0][0])]
    count = math.prod(batch)
    inputs = []
    for array, (core, size) in zip(args, cores, strict=True):
        if type(array) is not np.ndarray or array.dtype is not dtype or array.flags.num & _PLAIN != _PLAIN:
            return None
        if array.shape != batch + core:
            if array.shape != core:
                return None
            inputs.append(array.reshape(-1).reshape(1, size))  # one for all samples
            continue
        # An axis of length one may have any stride, and keeps it until a change of shape: go through flat.
        if size > 1 and array.ndim == 1:
            array = array[None]
        elif size <= 1 or count == 1 or array.ndim != 2:
            array = array.reshape(-1).reshape(count, size)
        inputs.append(array)
    return inputs, batch, count, dtype


def _any_inputs(signature: Signature, args: Sequence[ArrayLike], dtype: np.dtype | None) -> Inputs:
    """The long path: convert, check, broadcast; raises an ArgumentError that says which argument is wrong."""
    if len(args) != len(signature.inputs):
        names = ", ".join(a.name for a in signature.inputs) or "none"
        missing = ", ".join(a.name for a in signature.inputs[len(args) :])
        advice = f"pass {missing} too" if missing else f"leave out the last {len(args) - len(signature.inputs)}"
        _refuse(signature, f"got {len(args)} arguments, expected {len(signature.inputs)} ({names}), {advice}.")
    arrays = [_real_array(signature, a, value) for a, value in zip(signature.inputs, args, strict=True)]
    batches = [array.shape[: array.ndim - len(a.shape)] for array, a in zip(arrays, signature.inputs, strict=True)]
    batch = _broadcast(signature, batches)
    count = math.prod(batch)
    if dtype is None:
        dtype = _common_dtype(args, arrays)
    for core, size in signature.output_cores:
        if count * size * dtype.itemsize > np.iinfo(np.intp).max:
            _too_large(signature, batch, core, dtype)
    inputs = []
    if count:  # an empty batch runs no kernel, and needs no inputs for it
        for array, own, argument in zip(arrays, batches, signature.inputs, strict=True):
            inputs.append(_rows(signature, array, own, batch, argument.shape, dtype))
    return inputs, batch, count, dtype


def _real_array(signature: Signature, argument: Argument, value: ArrayLike) -> np.ndarray:
    """`value` as an array of real numbers whose last axes are the argument's shape."""
    name, wanted = argument.name, argument.wanted
    if value is None:
        _refuse(signature, f"{name} is None, expected numbers of shape {wanted}, pass an array or a list.")
    refuse_foreign(f"{signature.function}: {name}", value)
    try:
        array = np.asarray(value)
    except Exception as error:  # also whatever an __array__ of somebody else raises
        raise ArgumentError(
            f"{signature.function}: {name} (a {type(value).__name__}) does not make an array of numbers, "
            f"expected shape {wanted}, give every row the same number of entries."
        ) from error
    if array.dtype.kind not in "fiub":
        kind = _KINDS.get(array.dtype.kind, "other values")
        _refuse(
            signature,
            f"{name} holds {kind} (dtype {array.dtype}), expected real numbers of shape {wanted}, convert it "
            "to float64 or float32.",
        )
    core = argument.shape
    if array.shape[max(array.ndim - len(core), 0) :] == core:
        return array
    meaning = f" ({argument.meaning})" if argument.meaning else ""
    if array.ndim >= 1 and len(core) == 1:
        got = f"{name} has {array.shape[-1]} entries in its last axis (shape {array.shape}), expected {core[0]}"
    else:
        got = f"{name} has shape {array.shape}, expected {wanted}"
    _refuse(signature, f"{got}{meaning}, pass an array of shape {wanted}.")


def _broadcast(signature: Signature, batches: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The common batch shape. Not np.broadcast_shapes, which refuses large shapes with the same error."""
    reversed_batch: list[int] = []
    for own in batches:
        for axis, length in enumerate(reversed(own)):
            if axis == len(reversed_batch):
                reversed_batch.append(length)
            elif reversed_batch[axis] == 1:
                reversed_batch[axis] = length
            elif length not in (1, reversed_batch[axis]):
                each = ", ".join(f"{a.name} {own}" for a, own in zip(signature.inputs, batches, strict=True))
                _refuse(
                    signature,
                    f"the batch shapes ({each}) do not broadcast together, expected lengths that are equal "
                    "or 1 along each axis, reshape or repeat one of them.",
                )
    return tuple(reversed(reversed_batch))


def _common_dtype(args: Sequence[ArrayLike], arrays: list[np.ndarray]) -> np.dtype:
    # Python's own numbers go to result_type as they are: it lets them follow the arrays.
    counted = [v if type(v) in (int, float, bool) else a.dtype for v, a in zip(args, arrays, strict=True)]
    try:
        common = np.result_type(*counted) if counted else _FLOAT64
    except OverflowError:  # an int that no integer type holds beside integer arrays
        return _FLOAT64
    return _FLOAT32 if common.kind == "f" and common.itemsize <= 4 else _FLOAT64


def _rows(signature, array: np.ndarray, own, batch, core, dtype: np.dtype) -> np.ndarray:
    """`array` as (N, size) or (1, size) that a kernel may read, copied only where it must be."""
    count, size = math.prod(batch), math.prod(core)
    try:
        if array.dtype != dtype:
            with np.errstate(all="ignore"):
                array = array.astype(dtype)
        if own != batch:
            if math.prod(own) == 1:
                count = 1
            else:
                array = np.broadcast_to(array, batch + core)
        rows = array.reshape(count, size)
        stride, step = rows.strides
        if not rows.flags.aligned or step != dtype.itemsize or stride < 0 or stride % dtype.itemsize:
            rows = np.array(rows, order="C")
    except (MemoryError, ValueError):
        _too_large(signature, batch, core, dtype)
    return rows


def _empty(signature: Signature, batch, core, dtype: np.dtype) -> np.ndarray:
    try:
        return result_memory.empty(batch + core, dtype)
    except (MemoryError, ValueError):  # ValueError: more axes than NumPy has
        _too_large(signature, batch, core, dtype)


def _checked_dtype(signature: Signature, dtype: DTypeLike) -> np.dtype:
    with contextlib.suppress(TypeError):
        found = np.dtype(dtype)
        if found in (_FLOAT64, _FLOAT32):
            return _FLOAT64 if found == _FLOAT64 else _FLOAT32  # the very objects that arrays refer to
    _refuse(signature, f'dtype is {dtype!r}, expected "float64" or "float32", pass one of these.')


def _checked_out(signature: Signature, out: Out, batch: tuple[int, ...], dtype: np.dtype) -> list[np.ndarray]:
    """The arrays of `out` as base-class views; refuses any that cannot hold its result exactly."""
    several = len(signature.outputs) > 1
    if several and (not isinstance(out, tuple | list) or len(out) != len(signature.outputs)):
        got = f"{len(out)} arrays" if isinstance(out, tuple | list) else f"a {type(out).__name__}"
        names = ", ".join(a.name for a in signature.outputs)
        _refuse(signature, f"out is {got}, expected a tuple of {len(signature.outputs)} arrays, pass ({names}).")
    arrays = []
    for argument, array in zip(signature.outputs, out if several else (out,), strict=True):
        name = f"out for {argument.name}" if several else "out"
        shape = batch + argument.shape
        refuse_foreign(f"{signature.function}: {name}", array)
        wrong = _wrong_out(array, shape, dtype, arrays)
        if wrong:
            advice = f"pass np.empty({shape}, {dtype.name!r})"
            _refuse(signature, f"{name} {wrong}, expected a {dtype.name} array of shape {shape}, {advice}.")
        arrays.append(np.asarray(array))
    return arrays


def _wrong_out(array: object, shape: tuple[int, ...], dtype: np.dtype, others: list[np.ndarray]) -> str:
    """What is wrong with one array of `out`, or nothing."""
    if not isinstance(array, np.ndarray):
        return f"is a {type(array).__name__}"
    if array.shape != shape or array.dtype != dtype:
        return f"is a {array.dtype} array of shape {array.shape}"
    if not array.flags.writeable:
        return "is read-only"
    if not array.flags.c_contiguous and _overlaps_itself(array):
        return "has elements that share memory with one another"
    if any(_may_overlap(array, other) for other in others):
        return "shares memory with another array of out"
    return ""


def _overlaps_itself(array: np.ndarray) -> bool:
    """Whether two elements may share memory: some axis steps by less than the extent of the finer axes."""
    extent = array.itemsize
    for stride, length in sorted((abs(s), n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1):
        if stride < extent:
            return array.size > 0
        extent += stride * (length - 1)
    return False


def _may_overlap(a: np.ndarray, b: np.ndarray) -> bool:
    # the bounds alone first: twice as fast, and enough for arrays that have nothing to do with one another
    return np.may_share_memory(a, b) and np.may_share_memory(a, b, max_work=_OVERLAP_WORK)  # type: ignore[arg-type]


def _usable(array: np.ndarray, inputs: list[np.ndarray], count: int, size: int) -> np.ndarray | None:
    """`array` as the (N, size) view that a kernel may write, or None where its result must be copied."""
    flags = array.flags
    if not flags.aligned:
        return None
    if flags.c_contiguous and count > 1 < size and array.ndim == 2:
        view = array[:]
    elif flags.c_contiguous:
        view = array.reshape(-1).reshape(count, size)
    elif array.ndim == 2 and array.shape == (count, size):
        view = array[:]
        stride, step = view.strides
        if step != view.itemsize or stride < size * step or stride % step:
            return None
    else:
        return None
    for other in inputs:
        if _may_overlap(view, other):
            return None
    return view


def _refuse(signature: Signature, message: str) -> NoReturn:
    raise ArgumentError(f"{signature.function}: {message}") from None


def _too_large(signature: Signature, batch, core, dtype: np.dtype) -> NoReturn:
    _refuse(
        signature,
        f"the batch shape {batch} needs a {dtype.name} array of shape {batch + core}, expected one that fits "
        "into memory and NumPy's number of axes, split the batch.",
    )
