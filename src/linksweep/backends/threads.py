"""Split a batch over threads. Kernels release the GIL, so that parts of one batch run at the same time.

An interrupt (Ctrl-C) can arrive between any two instructions of the calling thread. Therefore a `SharedWork` keeps
alive everything that it has addresses of, and a thread keeps its SharedWork. A call waits only for threads of the pool,
which are never interrupted, and only for work that they have begun.
"""

from __future__ import annotations

import _thread
import operator
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

import numpy as np

from linksweep.errors import ArgumentError, BackendError
from linksweep.support.messages import shown

MULTIPLE = 64  # samples: whole SIMD lanes and cache lines, so that no two threads write to the same line
_LEAST = 512  # samples per chunk of a kernel with unknown cost
SHARE = 100e3  # ns of work for each thread, at least: starting it takes up to 50 us
HELPED = 50e3  # the same with helpers (helpers.py), which wake up in 5 to 50 us and need no GIL
_BLOCK = 8e3  # ns of work that a thread takes at a time; short, so that threads end together

_LOOKS = 100  # checks of whether a thread has ended, before sleeping: some tens of microseconds

Kernel = Callable[[list[np.ndarray], list[np.ndarray]], None]


class SharedWork(Protocol):
    """Work that several threads share. It keeps alive every array that it uses."""

    def run(self) -> None:
        """Take parts until none is left. Several threads may call it at the same time."""
        ...

    def stop(self) -> None:
        """Leave no part to be taken."""
        ...


def checked_threads(threads: object) -> int:
    """Return `threads` as an int of at least 1, else raise an ArgumentError."""
    try:
        count = 0 if isinstance(threads, bool | np.bool_) else operator.index(threads)  # type: ignore[arg-type]
    except TypeError:
        count = 0
    if count < 1:
        raise ArgumentError(
            f"threads is {shown(threads)}, expected an integer of at least 1, pass 1 to use no other thread."
        )
    return count


def default_threads() -> int:
    """Return the default number of threads for large batches: LINKSWEEP_THREADS, or 1."""
    setting = os.environ.get("LINKSWEEP_THREADS")
    if not setting:
        return 1
    try:
        return checked_threads(int(setting))
    except (ValueError, ArgumentError):
        raise ArgumentError(f"LINKSWEEP_THREADS is {setting!r}, expected a whole number from 1 on.") from None


def longest_alone(cost: float | None) -> int:
    """Return the largest batch that one thread computes as fast as two. cost: nanoseconds per sample."""
    return int(2.0 * (HELPED if _has_native_helpers() else SHARE) / max(cost or 0.0, 1e-3))


def least_share(cost: float | None) -> int:
    """Return the smallest number of samples per thread: half of `longest_alone`."""
    return _LEAST if cost is None else max(longest_alone(cost) // 2, 1)


def block_size(cost: float | None) -> int:
    """Return the number of samples that a thread of machine code takes at a time."""
    return _LEAST if cost is None else max(round(_BLOCK / max(cost, 1e-3) / MULTIPLE), 1) * MULTIPLE


def run_chunks(kernel: Kernel, inputs: list[np.ndarray], outputs: list[np.ndarray], threads: int = 1) -> None:
    """Run the kernel over the samples in at most `threads` threads, the calling one among them.

    Threads of machine code take blocks of samples when they are free, so that a thread that starts late, or whose
    processor is busy, does less. Other kernels get one chunk per thread.

    Arrays are those of `linksweep.functions.arrays`. Small batches run in the calling thread.
    """
    count, cost = outputs[0].shape[0], getattr(kernel, "cost", None)
    pieces = min(checked_threads(threads), count // least_share(cost))
    if pieces <= 1:
        kernel(inputs, outputs)
        return
    shared = getattr(kernel, "shared", None)
    if shared is not None:
        block = min(block_size(cost), -(-count // (pieces * MULTIPLE)) * MULTIPLE)
        run_shared(shared(inputs, outputs, block), pieces)
        return
    chunks = _Chunks(kernel, inputs, outputs, pieces)
    run_shared(chunks, pieces)
    if chunks.failures:
        raise chunks.failures[min(chunks.failures)]


def run_shared(work: SharedWork, threads: int) -> None:
    """Do the work in at most `threads` threads, including the calling one.

    It returns, or raises the first failure, when no thread works on it any more. An interrupt stops the other threads
    after their current part, and the call waits for them. A second interrupt during that wait leaves them to end by
    themselves.

    A run of machine code is shared without Python, by one call of helpers.py.
    """
    together = getattr(work, "together", None)
    if together is not None and _has_native_helpers():
        together(min(threads - 1, _processors()))
        return
    helpers = [_Helper(work) for _ in range(min(threads - 1, _processors()))]
    try:
        for helper in helpers:
            _pool.ask(helper)
        work.run()
        for helper in helpers:  # a helper that has not begun by now will not: a busy pool cannot block a call
            helper.wait()
    except BaseException:
        work.stop()
        for helper in helpers:
            helper.wait()
        raise
    for helper in helpers:
        if helper.failure is not None:
            raise helper.failure


def _has_native_helpers() -> bool:
    from .helpers import supported

    return supported()


class _Helper:
    """A request for another thread to join. It joins once, or never if the caller is faster."""

    def __init__(self, work: SharedWork):
        self._work: SharedWork | None = work
        self._claim: dict[str, str] = {}  # claimed by; setdefault is atomic, also for interrupts
        self._process = os.getpid()
        self._ended = False
        self._running = threading.Lock()
        self._running.acquire()
        self.failure: BaseException | None = None

    def help(self) -> None:
        """Run the work in a thread of the pool."""
        if self._claim.setdefault("by", "pool") != "pool" or self._work is None:
            return
        try:
            self._work.run()
        except BaseException as failure:
            self.failure = failure
        finally:
            self._work = None
            self._ended = True
            self._running.release()

    def wait(self) -> None:
        """Wait until it does not run and never will. Can be interrupted and called again."""
        if self._claim.setdefault("by", "caller") == "caller":
            self._work = None  # the pool may reach it much later
            return
        for _ in range(_LOOKS):  # threads end at nearly the same time, and polling is faster than being woken
            if self._ended:
                return
            time.sleep(0)
        while not self._ended:
            self._running.acquire(timeout=1.0)  # until it is released, or to check for a fork
            if os.getpid() != self._process:
                raise BackendError(
                    "the process was forked during a call, and the other threads of the call do not exist in the "
                    "child: leave the child by os._exit, or call again."
                )


class _Chunks:
    """A kernel over one chunk of the samples per thread. A failure does not affect the other chunks."""

    def __init__(self, kernel: Kernel, inputs: list[np.ndarray], outputs: list[np.ndarray], pieces: int):
        self.kernel = kernel
        self.arrays = inputs, outputs
        count = outputs[0].shape[0]
        self.length = -(-count // (pieces * MULTIPLE)) * MULTIPLE
        self.starts = deque(range(0, count, self.length))
        self.failures: dict[int, Exception] = {}  # by the start of their chunks

    def run(self) -> None:
        while True:
            try:
                start = self.starts.popleft()
            except IndexError:
                return
            inputs, outputs = self.arrays
            part = slice(start, start + self.length)
            own = [array if array.shape[0] == 1 else array[part] for array in inputs]
            try:
                self.kernel(own, [array[part] for array in outputs])
            except Exception as failure:
                self.failures[start] = failure

    def stop(self) -> None:
        self.starts.clear()


class _Pool:
    """Threads that run helpers, started on demand, at most as many as there are processors.

    concurrent.futures takes locks in Python, where an interrupt can leave one held. Here every step is a single call
    of C. The threads end with the process.
    """

    def __init__(self) -> None:
        self._helpers: queue.SimpleQueue[_Helper] = queue.SimpleQueue()
        self._idle: deque[None] = deque()  # one entry for each thread that waits
        self._threads = 0

    def ask(self, helper: _Helper) -> None:
        if sys.is_finalizing():  # the other threads never run again
            return
        try:
            self._idle.pop()
        except IndexError:
            self._start()
        if self._threads:
            self._helpers.put(helper)

    def _start(self) -> None:
        if self._threads >= _processors():
            return
        try:
            _thread.start_new_thread(self._serve, ())
            self._threads += 1
        except RuntimeError:  # no thread can be started: existing ones or the caller do the work
            pass

    def _serve(self) -> None:
        while True:
            helper = self._helpers.get()
            helper.help()
            del helper  # keep nothing alive while waiting
            self._idle.append(None)


def _processors() -> int:
    return os.cpu_count() or 1


_pool = _Pool()


def _forget_pool() -> None:
    """Start a new pool: a forked child has the parent's pool without its threads."""
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
