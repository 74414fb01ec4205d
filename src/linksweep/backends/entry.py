"""A fast entry: a Python builtin made of machine code.

Called with plain arrays of the right type and shape, one sample or a batch (n, ...) of them, it allocates the result,
runs the kernel and returns, in a fraction of what it costs to prepare a call in Python. Whatever else it is given
(lists, broadcasting, other types, keywords) it hands on, unread, to the Python callable behind it, which checks,
converts or explains. It reads NumPy's array fields where they stand; `supported` verifies that they stand there, and
without that there is no fast entry. The GIL is released while a large batch runs.
"""

from __future__ import annotations

import ctypes
import functools
import math
import platform
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_DATA, _NDIM, _DIMS, _DESCR, _FLAGS = 16, 24, 32, 56, 64  # bytes into an ndarray object
_PLAIN = 0x101  # C-contiguous and aligned
_TYPE_NUMBERS = {"float64": 12, "float32": 11}
_METH_FASTCALL_KEYWORDS = 0x0080 | 0x0002
_RELEASE_ABOVE = 64  # samples; below, the kernel takes less than handing the GIL over
_KERNEL_ARGUMENTS = (
    "i64 %n, ptr %in, ptr %strides, ptr %out, ptr %out_stride, ptr %work, ptr %counter, i64 %n"  # alone: one block of n
)
_PYTHON_FUNCTIONS = (
    "PyObject_Vectorcall", "PyEval_SaveThread", "PyEval_RestoreThread", "PyMem_RawMalloc", "PyMem_RawFree",
    "PyTuple_New", "PyTuple_SetItem", "Py_DecRef",
)  # fmt: skip
_NEW_ARRAY, _ARRAY_TYPE = 93, 2  # in NumPy's table of C functions


def entry_ir(inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]], dtype: str, workspace: int) -> str:
    """IR of `entry`, for a kernel with these shapes of one sample and so many bytes of workspace.

    It returns an array, or a tuple of several, which owns them from the moment each is made.
    """
    lines = [
        "@ndarray = external global i8",
        "@descr = external global i8",
        "declare ptr @PyArray_New(ptr, i32, ptr, i32, ptr, ptr, i32, i32, ptr)",
        "declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)",
        "declare ptr @PyEval_SaveThread()",
        "declare void @PyEval_RestoreThread(ptr)",
        "declare ptr @PyMem_RawMalloc(i64)",
        "declare void @PyMem_RawFree(ptr)",
        "declare ptr @PyTuple_New(i64)",
        "declare i32 @PyTuple_SetItem(ptr, i64, ptr)",
        "declare void @Py_DecRef(ptr)",
        "define ptr @entry(ptr %self, ptr %args, i64 %nargs, ptr %names) {",
        "entry:",
        f"  %in = alloca [{len(inputs)} x ptr]",
        f"  %strides = alloca [{len(inputs)} x i64]",
        f"  %dims = alloca [{max(map(len, outputs)) + 1} x i64]",
        f"  %out = alloca [{len(outputs)} x ptr]",
        f"  %out_stride = alloca [{len(outputs)} x i64]",
        "  %answered = alloca ptr",
        "  store ptr null, ptr %answered",
        "  %counter = alloca i64",
        "  store i64 0, ptr %counter",
        f"  %count = icmp eq i64 %nargs, {len(inputs)}",
        "  %plain = icmp eq ptr %names, null",
        "  %start = and i1 %count, %plain",
        "  br i1 %start, label %arg0, label %other",
    ]
    for k, shape in enumerate(inputs):
        lines += _check_argument(k, shape, f"%arg{k + 1}" if k + 1 < len(inputs) else "%run")
    several = len(outputs) > 1
    lines += [
        "run:",
        *_workspace(workspace),
        "  %skip = select i1 %batched, i64 0, i64 1",
        "  %shape = getelementptr i64, ptr %dims, i64 %skip",
        "  store i64 %n, ptr %dims",
    ]
    if several:
        lines += [
            f"  %tuple = call ptr @PyTuple_New(i64 {len(outputs)})",
            "  %no_tuple = icmp eq ptr %tuple, null",
            "  br i1 %no_tuple, label %end, label %make0",
            "make0:",
        ]
    for k, output in enumerate(outputs):
        following = f"make{k + 1}" if k + 1 < len(outputs) else "go"
        lines += _make_result(k, output, dtype, several, following)
    lines += [
        "go:",
        f"  store ptr {'%tuple' if several else '%result0'}, ptr %answered",
        f"  %large = icmp sgt i64 %n, {_RELEASE_ABOVE}",
        "  br i1 %large, label %released, label %held",
        "held:",
        f"  call void @kernel({_KERNEL_ARGUMENTS})",
        "  br label %end",
        "released:",
        "  %thread = call ptr @PyEval_SaveThread()",
        f"  call void @kernel({_KERNEL_ARGUMENTS})",
        "  call void @PyEval_RestoreThread(ptr %thread)",
        "  br label %end",
        "failed:",
        *(["  call void @Py_DecRef(ptr %tuple)"] if several else []),
        "  br label %end",
        "end:",
        "  call void @PyMem_RawFree(ptr %memory)",
        "  %result = load ptr, ptr %answered",
        "  ret ptr %result",
        "other:",
        "  %answer = call ptr @PyObject_Vectorcall(ptr %self, ptr %args, i64 %nargs, ptr %names)",
        "  ret ptr %answer",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _make_result(k: int, shape: tuple[int, ...], dtype: str, several: bool, following: str) -> list[str]:
    """Allocate result k; the tuple takes it over where there are several."""
    lines = []
    for axis, length in enumerate(shape):
        lines += [
            f"  %o{k}_d{axis} = getelementptr i64, ptr %dims, i64 {axis + 1}",
            f"  store i64 {length}, ptr %o{k}_d{axis}",
        ]
    lines += [
        f"  %o{k}_axes = select i1 %batched, i32 {len(shape) + 1}, i32 {len(shape)}",
        f"  %result{k} = call ptr @PyArray_New(ptr @ndarray, i32 %o{k}_axes, ptr %shape, i32 {_TYPE_NUMBERS[dtype]}, "
        "ptr null, ptr null, i32 0, i32 0, ptr null)",
        f"  %o{k}_failed = icmp eq ptr %result{k}, null",
        f"  br i1 %o{k}_failed, label %failed, label %made{k}",
        f"made{k}:",
        f"  %o{k}_place = getelementptr i8, ptr %result{k}, i64 {_DATA}",
        f"  %o{k}_data = load ptr, ptr %o{k}_place",
        f"  %o{k}_out = getelementptr ptr, ptr %out, i64 {k}",
        f"  store ptr %o{k}_data, ptr %o{k}_out",
        f"  %o{k}_stride = getelementptr i64, ptr %out_stride, i64 {k}",
        f"  store i64 {math.prod(shape)}, ptr %o{k}_stride",
    ]
    if several:
        lines.append(f"  %o{k}_set = call i32 @PyTuple_SetItem(ptr %tuple, i64 {k}, ptr %result{k})")
    return [*lines, f"  br label %{following}", *([f"{following}:"] if following != "go" else [])]


def _workspace(size: int) -> list[str]:
    """%work, aligned to 64 bytes within %memory; without memory the call goes to Python, which says so."""
    if size == 0:
        return ["  %memory = getelementptr i8, ptr null, i64 0", "  %work = getelementptr i8, ptr null, i64 0"]
    return [
        f"  %memory = call ptr @PyMem_RawMalloc(i64 {size + 64})",
        "  %none = icmp eq ptr %memory, null",
        "  br i1 %none, label %other, label %worked",
        "worked:",
        "  %address = ptrtoint ptr %memory to i64",
        "  %below = sub i64 0, %address",
        "  %pad = and i64 %below, 63",
        "  %work = getelementptr i8, ptr %memory, i64 %pad",
    ]


def _check_argument(k: int, shape: tuple[int, ...], following: str) -> list[str]:
    """Is argument k an ndarray of this type and shape? Its fields are read only once it is known to be one.

    The first argument says whether this is a batch and of how many samples (%batched, %n); the others must agree.
    """
    a = f"a{k}"
    lines = [
        f"arg{k}:",
        f"  %{a}_at = getelementptr ptr, ptr %args, i64 {k}",
        f"  %{a} = load ptr, ptr %{a}_at",
        f"  %{a}_type_at = getelementptr i8, ptr %{a}, i64 8",
        f"  %{a}_type = load ptr, ptr %{a}_type_at",
        f"  %{a}_is = icmp eq ptr %{a}_type, @ndarray",
        f"  br i1 %{a}_is, label %{a}_form, label %other",
        f"{a}_form:",
        *_field(a, "ndim", "i32", _NDIM),
        *_field(a, "descr", "ptr", _DESCR),
        *_field(a, "flags", "i32", _FLAGS),
    ]
    if k == 0:
        lines += [
            f"  %batched = icmp eq i32 %{a}_ndim, {len(shape) + 1}",
            "  %first = select i1 %batched, i64 1, i64 0",
        ]
    lines += [
        f"  %{a}_axes = select i1 %batched, i32 {len(shape) + 1}, i32 {len(shape)}",
        f"  %{a}_ndim_ok = icmp eq i32 %{a}_ndim, %{a}_axes",
        f"  %{a}_descr_ok = icmp eq ptr %{a}_descr, @descr",
        f"  %{a}_bits = and i32 %{a}_flags, {_PLAIN}",
        f"  %{a}_plain = icmp eq i32 %{a}_bits, {_PLAIN}",
        f"  %{a}_1 = and i1 %{a}_ndim_ok, %{a}_descr_ok",
        f"  %{a}_2 = and i1 %{a}_1, %{a}_plain",
        f"  br i1 %{a}_2, label %{a}_shape, label %other",
        f"{a}_shape:",
        *_field(a, "dims", "ptr", _DIMS),
        f"  br i1 %batched, label %{a}_count, label %{a}_counted",
        f"{a}_count:",
        f"  %{a}_rows = load i64, ptr %{a}_dims",
        f"  br label %{a}_counted",
        f"{a}_counted:",
        f"  %{a}_n = phi i64 [ 1, %{a}_shape ], [ %{a}_rows, %{a}_count ]",
    ]
    if k == 0:
        lines += [f"  %n = add i64 %{a}_n, 0", f"  %{a}_some = icmp sgt i64 %n, 0"]
    else:
        lines += [f"  %{a}_some = icmp eq i64 %{a}_n, %n"]
    good = f"%{a}_some"
    for axis, size in enumerate(shape):
        lines += [
            f"  %{a}_i{axis} = add i64 %first, {axis}",
            f"  %{a}_n{axis}_at = getelementptr i64, ptr %{a}_dims, i64 %{a}_i{axis}",
            f"  %{a}_n{axis} = load i64, ptr %{a}_n{axis}_at",
            f"  %{a}_n{axis}_ok = icmp eq i64 %{a}_n{axis}, {size}",
            f"  %{a}_g{axis} = and i1 {good}, %{a}_n{axis}_ok",
        ]
        good = f"%{a}_g{axis}"
    return [
        *lines,
        *_field(a, "data", "ptr", _DATA),
        f"  %{a}_in = getelementptr ptr, ptr %in, i64 {k}",
        f"  store ptr %{a}_data, ptr %{a}_in",
        f"  %{a}_stride = getelementptr i64, ptr %strides, i64 {k}",
        f"  store i64 {math.prod(shape)}, ptr %{a}_stride",
        f"  br i1 {good}, label {following}, label %other",
    ]


def _field(a: str, name: str, kind: str, offset: int) -> list[str]:
    return [
        f"  %{a}_{name}_at = getelementptr i8, ptr %{a}, i64 {offset}",
        f"  %{a}_{name} = load {kind}, ptr %{a}_{name}_at",
    ]


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def entry_symbols(dtype: str) -> dict[str, int]:
    """Addresses that `entry` needs; they are those of this process, so they are given when code is loaded."""
    python = {
        name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _PYTHON_FUNCTIONS
    }
    numpy = {"ndarray": id(np.ndarray), "descr": id(np.dtype(dtype)), "PyArray_New": _numpy_functions()[_NEW_ARRAY]}
    return {**python, **numpy}


def data_address(array: np.ndarray) -> int:
    """Where an array's data is; read from the object, `array.ctypes` takes longer than a small kernel."""
    if supported():
        return ctypes.c_void_p.from_address(id(array) + _DATA).value or 0
    return array.ctypes.data


class Entry:
    """Owns what a builtin made of machine code needs: its code, its definition, and the callable behind it."""

    def __init__(self, name: str, address: int, code: Any, behind: Callable[..., Any]):
        self.code = code
        self.behind = behind
        self.definition = _MethodDef(name.encode(), address, _METH_FASTCALL_KEYWORDS, None)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self.behind(*args, **keywords)


def make_builtin(name: str, address: int, code: Any, behind: Callable[..., Any]) -> Callable[..., Any]:
    """A builtin function whose machine code is at `address`. It keeps `code` and `behind` alive."""
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    owner = Entry(name, address, code, behind)  # the builtin's self: it lives as long as the builtin
    return new(ctypes.addressof(owner.definition), owner, None)


@functools.cache
def supported() -> bool:
    """Whether arrays and builtins look here as this module believes they do."""
    if platform.python_implementation() != "CPython" or sys.maxsize < 2**40 or not _has_gil():
        return False
    try:
        if _numpy_functions()[_ARRAY_TYPE] != id(np.ndarray):
            return False
    except (AttributeError, TypeError, ValueError):
        return False
    probe = np.arange(6.0).reshape(2, 3)
    at = id(probe)
    dims = ctypes.c_void_p.from_address(at + _DIMS).value or 0
    return (
        ctypes.c_void_p.from_address(at + 8).value == id(np.ndarray)
        and ctypes.c_void_p.from_address(at + _DATA).value == probe.ctypes.data
        and ctypes.c_int.from_address(at + _NDIM).value == 2
        and tuple((ctypes.c_int64 * 2).from_address(dims)) == (2, 3)
        and ctypes.c_void_p.from_address(at + _DESCR).value == id(probe.dtype)
        and ctypes.c_int.from_address(at + _FLAGS).value & 0xFFF == probe.flags.num & 0xFFF
    )


def _has_gil() -> bool:
    return getattr(sys, "_is_gil_enabled", lambda: True)()


def _numpy_functions() -> Sequence[int]:
    capsule = np._core._multiarray_umath._ARRAY_API  # type: ignore[attr-defined]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    get.argtypes = (ctypes.py_object, ctypes.c_char_p)
    table = get(capsule, None)
    return tuple(entry or 0 for entry in (ctypes.c_void_p * (_NEW_ARRAY + 1)).from_address(table))
