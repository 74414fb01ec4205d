"""Native threads that share runs of machine code, without Python, the GIL or interrupts.

    void share(ptr pool, i64 helpers, ptr kernel, i64 n, ptr inputs, ptr input_strides, ptr outputs,
               ptr output_strides, ptr work, i64 block, i64 workspace)

A helper is a thread that Python starts and that never returns from machine code. It waits at its box for a job, first
awake, then asleep. `share` puts its job into boxes, wakes sleeping helpers, takes blocks of samples until none is left,
withdraws jobs that no helper has begun, and waits for the others, at most for the time of one block.

For Python it is one call of C, so Ctrl-C arrives before or after it. The caller keeps the arrays and the code alive,
and when `share` returns no helper has an address of them. A forked child has no helpers and starts its own; an
unfinished job of the parent is on a stack that the child does not use. When the process ends, helpers are asleep or
about to be, in memory that is never freed.
"""

from __future__ import annotations

import _thread
import ctypes
import functools
import os
import sys
import time
from collections.abc import Callable

from ..support.lazy import Once
from .llvm import LoadedCode, emit_object
from .target import host_target, ll_text, symbol_addresses
from .threads import MULTIPLE

_STAY = 100_000  # ns that a helper stays awake after a job: waking it takes 5 to 50 us, and calls often follow at once
_PATIENCE = 50_000  # ns that a caller polls for the end of helpers, before it sleeps
_NAP = 50  # us that it sleeps at a time: the processors are busy otherwise
_AWAKE, _ASLEEP, _BUSY = 0, 1, 2  # states of a box; any other is the address of a job
_LIMIT, _COUNT, _WANTED, _SHARE, _LOCK, _BOXES = range(6)  # indices in a pool
_LINE = 128  # bytes: a box has its own cache line, and the next one, which processors prefetch
_PYTHON_FUNCTIONS = (
    "PyThread_acquire_lock", "PyThread_acquire_lock_timed", "PyThread_release_lock",
)  # fmt: skip
_SYSTEM_FUNCTIONS = (
    "sched_yield",
    "clock_gettime",
    "malloc",
    "free",
)  # Python's malloc may ask for the GIL (tracemalloc)
_CORE_FUNCTIONS = {  # of Linux; elsewhere helpers stay on the core that the system chooses
    "sched_getcpu": "i32 @sched_getcpu()",
    "sched_getaffinity": "i32 @sched_getaffinity(i32, i64, ptr)",
    "sched_setaffinity": "i32 @sched_setaffinity(i32, i64, ptr)",
}
_MASK = 128  # bytes of a set of cores: 1024 of them, as in the C library
_SERVE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_RUN = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, *[ctypes.c_void_p] * 5,
    ctypes.c_int64, ctypes.c_int64,
)  # fmt: skip


def helpers_ir() -> str:
    """Return the IR of `serve` and `share`."""
    kind = "declare {}" if _can_choose_cores() else "define internal {} {{ ret i32 -1 }}"
    cores = "\n".join(kind.format(function) for function in _CORE_FUNCTIONS.values())
    return ll_text(
        "helpers.ll", AWAKE=_AWAKE, ASLEEP=_ASLEEP, BUSY=_BUSY, STAY=_STAY, PATIENCE=_PATIENCE, NAP=_NAP, MASK=_MASK,
        MULTIPLE=MULTIPLE, CLOCK=time.CLOCK_MONOTONIC, CORES=cores,
    )  # fmt: skip


class Helpers:
    """The helpers of this process, at most as many as there are processors.

    pool: the address of their table for machine code, constant until the process ends. Code and threads are created by
    the first run.
    """

    def __init__(self) -> None:
        self._most = os.cpu_count() or 1
        self._pool = (ctypes.c_int64 * (_BOXES + self._most))()
        self._pool[_LIMIT] = self._most
        self.pool = ctypes.addressof(self._pool)
        _keep(self._pool)

    def run(
        self, helpers: int, kernel: int, count: int, arrays: tuple[object, object, object, object],
        work: int | None, block: int, workspace: int,
    ) -> None:  # fmt: skip
        """Run the kernel over `count` samples, in this thread and in at most `helpers` helpers."""
        code, helpers = _code(), min(helpers, self._most)
        self._pool[_LOCK], self._pool[_SHARE] = code.lock, code.address
        self._ensure(max(helpers, self._pool[_WANTED]), code.serve)
        code.share(self.pool, helpers, kernel, count, *arrays, work, block, workspace)

    def _ensure(self, count: int, serve: Callable[[int], None]) -> None:
        """Start helpers until there are `count`, if possible.

        An interrupt may leave a helper whose box is not in the pool: it sleeps. Two threads may start a helper for the
        same entry, with the same consequence.
        """
        for place in range(_BOXES, _BOXES + min(count, self._most)):
            if self._pool[place] == 0:
                box = _new_box()
                try:
                    _thread.start_new_thread(serve, (box,))
                except RuntimeError:  # no thread can be started: existing ones or the caller do the work
                    break
                self._pool[place] = box
        self._pool[_COUNT] = sum(box != 0 for box in self._pool[_BOXES:])

    def forget(self) -> None:
        """Remove all helpers, in a forked child, where they do not exist."""
        ctypes.memset(self.pool + 8 * _BOXES, 0, 8 * self._most)
        self._pool[_COUNT] = self._pool[_WANTED] = 0


class _Code:
    """The loaded `serve` and `share`, and a lock that is always held."""

    def __init__(self) -> None:
        # level 0: compiled in 5 ms instead of 25, and no loop is hot
        loaded = LoadedCode(emit_object(helpers_ir(), host_target(), 0), ("serve", "share"), _symbols())
        _keep(loaded)
        self.serve, self.share, self.address = _SERVE(loaded["serve"]), _RUN(loaded["share"]), loaded["share"]
        self.lock = _held_lock()


def _new_box() -> int:
    """Return the address of a box whose helper is asleep; it can get a job before its thread has started."""
    memory = ctypes.create_string_buffer(2 * _LINE)
    _keep(memory)
    address = ctypes.addressof(memory)
    address += -address % _LINE
    (ctypes.c_int64 * 2).from_address(address)[:] = [_ASLEEP, _held_lock()]
    return address


def _held_lock() -> int:
    """Return a held lock of Python's C API, which needs no GIL and lets machine code sleep on every platform."""
    new, acquire = ctypes.pythonapi.PyThread_allocate_lock, ctypes.pythonapi.PyThread_acquire_lock
    new.restype, acquire.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int)
    lock = new()
    if not lock or acquire(lock, 0) != 1:
        raise MemoryError
    return lock


def _keep(value: object) -> None:
    """Keep a value until the process ends: helpers use it even after Python has cleaned up."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


def _symbols() -> dict[str, int]:
    system = (*_SYSTEM_FUNCTIONS, *(_CORE_FUNCTIONS if _can_choose_cores() else ()))
    return symbol_addresses(ctypes.pythonapi, _PYTHON_FUNCTIONS) | symbol_addresses(ctypes.CDLL(None), system)


def _can_choose_cores() -> bool:
    return all(hasattr(ctypes.CDLL(None), name) for name in _CORE_FUNCTIONS)


@functools.cache
def supported() -> bool:
    """Return whether Python has the locks, and the system the clock and the yield, that helpers need."""
    if os.name != "posix" or sys.maxsize < 2**40 or not hasattr(time, "CLOCK_MONOTONIC"):
        return False
    needed = (*_PYTHON_FUNCTIONS, "PyThread_allocate_lock")
    return all(hasattr(ctypes.pythonapi, name) for name in needed) and all(
        hasattr(ctypes.CDLL(None), name) for name in _SYSTEM_FUNCTIONS
    )


_codes: Once[_Code] = Once()
_helpers = Helpers()


def _code() -> _Code:
    return _codes.made("code", _Code)


def process_helpers() -> Helpers:
    """Return the helpers of this process."""
    return _helpers


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: process_helpers().forget())
