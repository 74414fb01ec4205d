"""The fast entry: a Python builtin of machine code, shared by all functions.

Called with plain arrays it reads their addresses, allocates the results (or takes `out=`), runs the kernel and returns,
in a fraction of the time that a call in Python takes to prepare. Plain arguments are float64 or float32 arrays, single
samples or batches (n, ...) in any mixture: a single sample broadcasts, and rows may have any stride. All other calls
(lists, other types, several batch axes, keywords) go unread to a fallback in Python, which checks and converts. The
entry reads the fields of NumPy arrays at fixed offsets; `supported` verifies the offsets, and without them there is no
fast entry. The GIL is released while a large batch runs.

The data of a function is a `Plan`: the builtin's `self`, a ctypes structure that machine code reads.
"""

from __future__ import annotations

import ctypes
import functools
import math
import platform
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .target import ll_text, symbol_addresses
from .threads import block_size, least_share

if TYPE_CHECKING:
    from .llvm import LoadedCode, MachineKernel

_DATA, _NDIM, _DIMS, _STRIDES, _DESCR, _FLAGS = 16, 24, 32, 40, 56, 64  # bytes into an ndarray object
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x1, 0x100, 0x400
_INSIDE = 16  # offset of the memory of a ctypes object
_ITEMS, _LENGTH = 24, 16  # offsets in a list or tuple: address of its items, length
_FIRST = tuple.__basicsize__  # offset of the first item of a tuple; from Python 3.14 on after its hash
_METH_FASTCALL_KEYWORDS = 0x0080 | 0x0002
_RELEASE_ABOVE = 64  # samples; fewer take less time than releasing the GIL
_MOST_AXES = 6
_NEW_ARRAY, _ARRAY_TYPE, SET_HANDLER = 93, 2, 304  # in NumPy's table of C functions
_PYTHON_FUNCTIONS = (
    "PyObject_Vectorcall", "PyEval_SaveThread", "PyEval_RestoreThread", "PyMem_RawMalloc", "PyMem_RawFree",
    "PyTuple_New", "PyTuple_SetItem", "Py_DecRef", "Py_IncRef", "PyErr_Clear",
)  # fmt: skip
POOLED = 256 * 2**10  # bytes of a result, from which on its memory comes from the pool (result_memory.py)
HANDLER = ctypes.c_void_p()  # the address of its handler; null until the first large result
TYPE_NUMBERS = {"float64": 12, "float32": 11}


@functools.cache
def entry_ir() -> str:
    """Return the IR of `entry`, which reads the data of a function from its plan."""
    return ll_text(
        "entry.ll", DATA=_DATA, NDIM=_NDIM, DIMS=_DIMS, STRIDES=_STRIDES, DESCR=_DESCR, FLAGS=_FLAGS,
        CONTIGUOUS=_CONTIGUOUS, ALIGNED=_ALIGNED, RESULT=_ALIGNED | _WRITEABLE | _CONTIGUOUS, INSIDE=_INSIDE,
        ITEMS=_ITEMS, LENGTH=_LENGTH,
        FIRST=_FIRST, RELEASE_ABOVE=_RELEASE_ABOVE, MOST_AXES=_MOST_AXES, ALL_AXES=_MOST_AXES + 1,
        FLOAT64=TYPE_NUMBERS["float64"], FLOAT32=TYPE_NUMBERS["float32"], POOLED=POOLED,
    )  # fmt: skip


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Shape(ctypes.Structure):
    _fields_ = (
        ("axes", ctypes.c_int64),
        ("size", ctypes.c_int64),
        ("shared", ctypes.c_int64),
        ("lengths", ctypes.c_int64 * _MOST_AXES),
    )

    @classmethod
    def of(cls, shape: tuple[int, ...], shared: bool = False) -> _Shape:
        return cls(len(shape), math.prod(shape), shared, (ctypes.c_int64 * _MOST_AXES)(*shape))


class Plan(ctypes.Structure):
    """The data of a function: the builtin's `self`, which keeps alive everything that machine code uses."""

    _fields_ = (
        ("kernels", ctypes.c_void_p * 2),
        ("workspaces", ctypes.c_int64 * 2),
        ("behind", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
        ("shapes", ctypes.c_void_p),
        ("inputs", ctypes.c_int64),
        ("outputs", ctypes.c_int64),
        ("shares", ctypes.c_int64 * 2),  # samples for each thread, at least
        ("blocks", ctypes.c_int64 * 2),  # samples that a thread takes at a time
        ("threads", ctypes.c_int64),
        ("pool", ctypes.c_void_p),  # of helpers; if null, the fallback runs large batches in threads
    )

    def add_kernel(self, dtype: str, kernel: MachineKernel) -> None:
        """Accept calls of this floating type, too."""
        place = ("float64", "float32").index(dtype)
        self.owned.append(kernel)
        self.workspaces[place] = kernel.workspace
        if self.threads > 1:
            self.shares[place], self.blocks[place] = least_share(kernel.cost), block_size(kernel.cost)
        self.kernels[place] = kernel.address("kernel")  # from here on it is used

    def use_threads(self, count: int) -> None:
        """Run large batches in `count` threads. Call it before `add_kernel`, which reads the cost of the kernel."""
        from . import helpers

        if helpers.supported():
            self.pool = helpers.process_helpers().pool
        self.threads = min(count, sys.maxsize)

    owned: list[object]


def fits(inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]]) -> bool:
    """Return whether the entry can take arrays of these shapes of one sample."""
    return bool(inputs) and all(len(shape) <= _MOST_AXES for shape in (*inputs, *outputs))


def make_builtin(
    name: str, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]], shared: int,
    behind: Callable[..., object], code: LoadedCode,
) -> tuple[Callable[..., object], Plan]:  # fmt: skip
    """Return a builtin over kernels with these shapes of one sample, and its plan, to which kernels are added.

    shared: number of last inputs that must be single samples. behind: the fallback for other calls. code: the loaded
    entry.
    """
    first = len(inputs) - shared
    shapes = [_Shape.of(shape, k >= first) for k, shape in enumerate(inputs)] + [_Shape.of(shape) for shape in outputs]
    plan, array = Plan(inputs=len(inputs), outputs=len(outputs), threads=1), (_Shape * len(shapes))(*shapes)
    plan.shares[:] = [sys.maxsize] * 2
    word = sys.intern("out")
    plan.behind, plan.out, plan.shapes = id(behind), id(word), ctypes.addressof(array)
    definition = _MethodDef(name.encode(), code["entry"], _METH_FASTCALL_KEYWORDS, None)
    plan.owned = [behind, word, array, definition, code]
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return new(ctypes.addressof(definition), plan, None), plan


def entry_symbols() -> dict[str, int]:
    """Return the addresses that `entry` needs. They are those of this process, so they are linked at load time."""
    python = symbol_addresses(ctypes.pythonapi, _PYTHON_FUNCTIONS)
    objects = {"tuple": tuple, "list": list, "none": None, "ndarray": np.ndarray}
    types = {name: np.dtype(name) for name in TYPE_NUMBERS}
    found = {name: id(value) for name, value in (objects | types).items()}
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(HANDLER))  # machine code reads it until the process ends
    numpy = {"PyArray_New": numpy_function(_NEW_ARRAY), "PyDataMem_SetHandler": numpy_function(SET_HANDLER)}
    return {**python, **found, **numpy, "handler": ctypes.addressof(HANDLER)}


def data_address(array: np.ndarray) -> int:
    """Return the address of an array's data, from the object: `array.ctypes` takes longer than a small kernel."""
    if supported():
        return ctypes.c_void_p.from_address(id(array) + _DATA).value or 0
    return array.ctypes.data


@functools.cache
def supported() -> bool:
    """Return whether arrays, collections and builtins have the memory layout that this module assumes."""
    if platform.python_implementation() != "CPython" or sys.maxsize < 2**40 or not _has_gil():
        return False
    try:
        if numpy_function(_ARRAY_TYPE) != id(np.ndarray):
            return False
    except (AttributeError, TypeError, ValueError):
        return False
    probe = np.arange(6.0).reshape(2, 3)
    at = id(probe)

    def pointer(address: int) -> int:
        return ctypes.c_void_p.from_address(address).value or 0

    def numbers(address: int) -> tuple[int, ...]:
        return tuple((ctypes.c_int64 * 2).from_address(address))

    plan, pair, both = Plan(), (probe, at), [probe, at]
    return (
        pointer(at + 8) == id(np.ndarray)
        and pointer(at + _DATA) == probe.ctypes.data
        and ctypes.c_int.from_address(at + _NDIM).value == 2
        and numbers(pointer(at + _DIMS)) == (2, 3)
        and numbers(pointer(at + _STRIDES)) == (24, 8)
        and pointer(at + _DESCR) == id(probe.dtype)
        and ctypes.c_int.from_address(at + _FLAGS).value & 0xFFF == probe.flags.num & 0xFFF
        and pointer(id(plan) + _INSIDE) == ctypes.addressof(plan)
        and ctypes.c_int64.from_address(id(pair) + _LENGTH).value == 2
        and ctypes.c_int64.from_address(id(both) + _LENGTH).value == 2
        and pointer(id(pair) + _FIRST) == at
        and pointer(pointer(id(both) + _ITEMS)) == at
    )


def _has_gil() -> bool:
    return getattr(sys, "_is_gil_enabled", lambda: True)()


def numpy_function(index: int) -> int:
    """Return the address of a function of NumPy's C API."""
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = (ctypes.py_object, ctypes.c_char_p)
    return (ctypes.c_void_p * (index + 1)).from_address(get(capsule, None))[index] or 0
