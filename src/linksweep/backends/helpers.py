"""Threads that share runs of machine code without Python: neither the GIL nor an interrupt reaches them.

    void share(ptr pool, i64 helpers, ptr kernel, i64 n, ptr inputs, ptr input_strides, ptr outputs,
               ptr output_strides, ptr work, i64 block, i64 workspace)

A helper is a thread that Python starts and that never comes back from machine code: it waits at its box for a job,
awake for a while, then asleep. `share` puts its job into boxes, wakes who sleeps, takes blocks of samples until none is
left, takes back what nobody has begun, and waits for those that have: a block at most, for nothing stops a helper.

To Python it is one call of C, so Ctrl-C comes before or after it and never halves it. The caller holds the arrays and
the code, and when `share` is over no helper has an address of them. A forked child has no helpers, and starts its own;
a job that the parent had under way is on a stack that nobody in the child uses. When the process ends, helpers are
asleep or about to be, in memory that is never given back.
"""

from __future__ import annotations

import _thread
import ctypes
import functools
import os
import sys
import time
from collections.abc import Callable
from importlib import resources
from string import Template

from ..support.lazy import Once
from .llvm import LoadedCode, emit_object
from .target import host_target
from .threads import MULTIPLE

_STAY = 100_000  # ns that a helper stays awake after a job: waking it takes 5 to 50 us, and next calls come at once
_PATIENCE = 50_000  # ns that a caller looks whether helpers have ended, before it sleeps
_NAP = 50  # us that it sleeps at a time: the processors have something else to do
_AWAKE, _ASLEEP, _BUSY = 0, 1, 2  # states of a box; any other is the address of a job
_LIMIT, _COUNT, _WANTED, _SHARE, _LOCK, _BOXES = range(6)  # what stands where in a pool
_LINE = 128  # bytes: a box has its cache lines for itself, and the next one that processors fetch with it
_PYTHON_FUNCTIONS = (
    "PyThread_acquire_lock", "PyThread_acquire_lock_timed", "PyThread_release_lock",
)  # fmt: skip
_SYSTEM_FUNCTIONS = (
    "sched_yield",
    "clock_gettime",
    "malloc",
    "free",
)  # Python's malloc may ask for the GIL (tracemalloc)
_CORE_FUNCTIONS = {  # of Linux; elsewhere helpers stay on the core that the system has chosen
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
    """IR of `serve` and `share`."""
    kind = "declare {}" if _can_choose_cores() else "define internal {} {{ ret i32 -1 }}"
    cores = "\n".join(kind.format(function) for function in _CORE_FUNCTIONS.values())
    text = (resources.files("linksweep.backends") / "helpers.ll").read_text(encoding="utf-8")
    return Template(text).substitute(
        AWAKE=_AWAKE, ASLEEP=_ASLEEP, BUSY=_BUSY, STAY=_STAY, PATIENCE=_PATIENCE, NAP=_NAP, MASK=_MASK,
        MULTIPLE=MULTIPLE, CLOCK=time.CLOCK_MONOTONIC, CORES=cores,
    )  # fmt: skip


class Helpers:
    """The helpers of this process: no more than there are processors. `pool` is where machine code finds them, the same
    address as long as the process lives; the code and the threads come with the first run."""

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
        """The kernel over so many samples, here and in at most so many helpers."""
        code, helpers = _code(), min(helpers, self._most)
        self._pool[_LOCK], self._pool[_SHARE] = code.lock, code.address
        self._ensure(max(helpers, self._pool[_WANTED]), code.serve)
        code.share(self.pool, helpers, kernel, count, *arrays, work, block, workspace)

    def _ensure(self, count: int, serve: Callable[[int], None]) -> None:
        """Have at least so many helpers, if they can be started.

        An interrupt in here may leave a helper whose box is in no pool: it sleeps. Two threads in here may take one
        place for two helpers, with the same end.
        """
        for place in range(_BOXES, _BOXES + min(count, self._most)):
            if self._pool[place] == 0:
                box = _new_box()
                try:
                    _thread.start_new_thread(serve, (box,))
                except RuntimeError:  # no thread can be started: those that there are will do, or the caller
                    break
                self._pool[place] = box
        self._pool[_COUNT] = sum(box != 0 for box in self._pool[_BOXES:])

    def forget(self) -> None:
        """In a forked child, where they are not."""
        ctypes.memset(self.pool + 8 * _BOXES, 0, 8 * self._most)
        self._pool[_COUNT] = self._pool[_WANTED] = 0


class _Code:
    """`serve` and `share`, and a lock that is never free."""

    def __init__(self) -> None:
        code = emit_object(helpers_ir(), host_target(), 0)  # 0: not in 25 ms but in 5, and no loop here is hot
        loaded = LoadedCode(code, ("serve", "share"), _symbols())
        _keep(loaded)
        self.serve, self.share, self.address = _SERVE(loaded["serve"]), _RUN(loaded["share"]), loaded["share"]
        self.lock = _held_lock()


def _new_box() -> int:
    """The address of a box whose helper is asleep, and can be given a job before it has begun to live."""
    memory = ctypes.create_string_buffer(2 * _LINE)
    _keep(memory)
    address = ctypes.addressof(memory)
    address += -address % _LINE
    (ctypes.c_int64 * 2).from_address(address)[:] = [_ASLEEP, _held_lock()]
    return address


def _held_lock() -> int:
    """A lock of Python's own, which needs no GIL: it lets machine code sleep, wherever Python runs."""
    new, acquire = ctypes.pythonapi.PyThread_allocate_lock, ctypes.pythonapi.PyThread_acquire_lock
    new.restype, acquire.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_int)
    lock = new()
    if not lock or acquire(lock, 0) != 1:
        raise MemoryError
    return lock


def _keep(value: object) -> None:
    """For ever: a helper looks at it until the process is gone, after Python has cleaned up."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(value))


def _symbols() -> dict[str, int]:
    found = {name: getattr(ctypes.pythonapi, name) for name in _PYTHON_FUNCTIONS}
    system = (*_SYSTEM_FUNCTIONS, *(_CORE_FUNCTIONS if _can_choose_cores() else ()))
    found |= {name: getattr(ctypes.CDLL(None), name) for name in system}
    return {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in found.items()}


def _can_choose_cores() -> bool:
    return all(hasattr(ctypes.CDLL(None), name) for name in _CORE_FUNCTIONS)


@functools.cache
def supported() -> bool:
    """Whether this Python has locks for machine code, and the system a clock and a way to let others go first."""
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
    """Those of this process."""
    return _helpers


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: process_helpers().forget())
