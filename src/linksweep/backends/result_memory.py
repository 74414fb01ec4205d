"""Memory of large results: a small pool of blocks, so that `x = f(q, qd, qdd)` in a loop does not pay for new pages.

The system hands out fresh memory page by page, at 1-2 GB/s; a kernel writes memory that was used before at 40 GB/s.
glibc gives blocks above 32 MB back to the system at once, so every call of a humanoid's `jacobians` would start with
fresh pages. Results of at least `POOLED` bytes are therefore allocated by a handler of our own (NumPy's NEP 49): when
such an array dies, its block waits for the next result of the same size. An array owns its memory as ever, and a block
comes back only when no view of it is left. Blocks above 4 MB lie on huge pages where the system has them.

The pool holds at most `_limit()` bytes in `_SLOTS` blocks, and drops the oldest first. Other arrays of the process are
not touched: the handler is set only while a result is allocated.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable

import numpy as np

from .entry import HANDLER, POOLED, SET_HANDLER, numpy_function
from .llvm import LoadedCode, emit_object
from .target import host_target, ll_text, symbol_addresses

_SLOTS, _MOST = 16, 256 * 2**20  # blocks, and bytes of all of them
_PAGE, _HUGE, _HUGE_ABOVE = 64 * 2**10, 2 * 2**20, 4 * 2**20
_MADV_HUGEPAGE = 14  # Linux; elsewhere `madvise` refuses it, which does no harm
_FUNCTIONS = ("take", "take_zeros", "change", "give")
_LIBC = ("malloc", "calloc", "realloc", "free", "aligned_alloc", "madvise")


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in _FUNCTIONS),
    )


def result_memory_ir() -> str:
    return ll_text(
        "result_memory.ll", SLOTS=_SLOTS, POOLED=POOLED, PAGE_LESS=_PAGE - 1, HUGE=_HUGE, HUGE_LESS=_HUGE - 1,
        HUGE_ABOVE=_HUGE_ABOVE, MADV_HUGEPAGE=_MADV_HUGEPAGE,
    )  # fmt: skip


class _Pool:
    """The loaded code and the handler that NumPy takes, kept for ever: an array may outlive Python's own clean-up."""

    def __init__(self, symbols: dict[str, int]):
        self.code = LoadedCode(emit_object(result_memory_ir(), host_target()), (*_FUNCTIONS, "limit", "held"), symbols)
        ctypes.c_int64.from_address(self.code["limit"]).value = _limit()
        self.structure = _Handler(b"linksweep", 1, None, *(self.code[name] for name in _FUNCTIONS))
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p,) * 3
        self.name = ctypes.create_string_buffer(b"mem_handler")  # NumPy looks for this name; a capsule does not copy it
        self.handler: object = new(ctypes.addressof(self.structure), ctypes.addressof(self.name), None)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))


@functools.cache
def _pool() -> _Pool | None:
    if os.environ.get("LINKSWEEP_POOL", "").strip().lower() in ("off", "0"):
        return None
    libc = ctypes.CDLL(None)
    try:
        symbols = symbol_addresses(libc, _LIBC)
    except AttributeError:  # not a POSIX system
        return None
    return _Pool(symbols)


@functools.cache
def handler() -> object | None:
    """The handler as NumPy takes it, or None where memory is left to NumPy (LINKSWEEP_POOL=off, another system).

    Loading its code takes 3 ms, so it is made for the first large result, and from then on the fast entry uses it too.
    """
    pool = _pool()
    made = None if pool is None else pool.handler
    HANDLER.value = id(made)
    return made


def held_bytes() -> int:
    """Return the bytes of free blocks in the pool."""
    pool = _pool()
    return 0 if pool is None else ctypes.c_int64.from_address(pool.code["held"]).value


def _limit() -> int:
    """Return the largest number of bytes in the pool, at most 1/32 of the machine's memory."""
    try:
        return min(_MOST, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 32)
    except (AttributeError, ValueError, OSError):
        return _MOST // 4


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return np.empty(shape, dtype), from the pool if the array is large."""
    size = dtype.itemsize
    for length in shape:
        size *= length
    capsule = handler() if size >= POOLED else None
    if capsule is None:
        return np.empty(shape, dtype)
    use = _set_handler()
    before = use(capsule)
    try:
        return np.empty(shape, dtype)
    finally:
        use(before)


@functools.cache
def _set_handler() -> Callable[[object], object]:
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(numpy_function(SET_HANDLER))
