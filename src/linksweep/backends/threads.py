"""Split a batch over threads: kernels release the GIL, so parts of one batch run at the same time.

An interrupt (Ctrl-C) can come between any two instructions of the calling thread. So whoever works on arrays owns
them: a `SharedWork` keeps alive all that it has addresses of, and a thread keeps its SharedWork. And nobody waits for
what an interrupted thread might have left undone: only pool threads, which are never interrupted, are waited for, and
only for work that they have begun.
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

MULTIPLE = 64  # samples: whole SIMD lanes and whole cache lines, so that no two threads write to one line
_LEAST = 512  # samples per chunk of a kernel of which it is not known what they cost
SHARE = 100e3  # ns of work for each thread, at least: handing it over takes up to 50 us
HELPED = 50e3  # the same with helpers (helpers.py), which are woken in 5 to 50 us, and at work without the GIL
_BLOCK = 8e3  # ns of work that a thread takes at a time: short, so that threads end together

_LOOKS = 100  # at a thread that is about to finish, before sleeping: some tens of microseconds

Kernel = Callable[[list[np.ndarray], list[np.ndarray]], None]


class SharedWork(Protocol):
    """Work that several threads do together. It holds every array that it uses."""

    def run(self) -> None:
        """Take part after part until none is left. Any number of threads may call it at the same time."""
        ...

    def stop(self) -> None:
        """Leave nothing for those who ask for another part."""
        ...


def checked_threads(threads: object) -> int:
    """`threads` as an int of at least 1, else an ArgumentError."""
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
    """LINKSWEEP_THREADS: how many threads large batches are split over where nothing else is said, 1 if it is unset."""
    setting = os.environ.get("LINKSWEEP_THREADS")
    if not setting:
        return 1
    try:
        return checked_threads(int(setting))
    except (ValueError, ArgumentError):
        raise ArgumentError(f"LINKSWEEP_THREADS is {setting!r}, expected a whole number from 1 on.") from None


def longest_alone(cost: float | None) -> int:
    """The largest batch that one thread does as soon as two, of samples that take so many nanoseconds each."""
    return int(2.0 * (HELPED if _has_native_helpers() else SHARE) / max(cost or 0.0, 1e-3))


def least_share(cost: float | None) -> int:
    """How many such samples each thread gets, at least: half of what one does as soon as two."""
    return _LEAST if cost is None else max(longest_alone(cost) // 2, 1)


def block_size(cost: float | None) -> int:
    """How many such samples a thread of machine code takes at a time."""
    return _LEAST if cost is None else max(round(_BLOCK / max(cost, 1e-3) / MULTIPLE), 1) * MULTIPLE


def run_chunks(kernel: Kernel, inputs: list[np.ndarray], outputs: list[np.ndarray], threads: int = 1) -> None:
    """Run the kernel over the samples in at most `threads` threads, the calling one among them.

    Machine code shares its run: whoever is free takes the next block of samples, so that a thread that starts late, or
    whose processor is busy with something else, does less. Other kernels get one chunk for each thread.

    Arrays are as `linksweep.compiled.arrays` makes them. Batches of little work run in the calling thread alone.
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
    """Do the work in at most so many threads, the calling one among them.

    Returns, or raises what went wrong, when no thread is at it any more. Interrupted, it stops the others after the
    part at hand and waits for them too; only a second interrupt, during that wait, leaves them to end by themselves.

    A run of machine code needs no Python to be shared, and is one call of it: see helpers.py.
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
        for helper in helpers:  # who has not begun by now will not: a busy pool cannot block a call
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
    """The wish that another thread may join in. It does so once, or the caller is quicker and it never does."""

    def __init__(self, work: SharedWork):
        self._work: SharedWork | None = work
        self._claim: dict[str, str] = {}  # by whom; setdefault is one step, which no interrupt can halve
        self._process = os.getpid()
        self._ended = False
        self._running = threading.Lock()
        self._running.acquire()
        self.failure: BaseException | None = None

    def help(self) -> None:
        """In a thread of the pool."""
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
        """Until it does not run, and never will. Can be interrupted, and called again."""
        if self._claim.setdefault("by", "caller") == "caller":
            self._work = None  # the pool may come to it much later
            return
        for _ in range(_LOOKS):  # threads end at nearly the same time, and looking again is quicker than being woken
            if self._ended:
                return
            time.sleep(0)
        while not self._ended:
            self._running.acquire(timeout=1.0)  # until it is released, or to look around
            if os.getpid() != self._process:
                raise BackendError(
                    "the process was forked in the midst of a call, whose other threads are not in the child, expected "
                    "a fork outside: leave the child by os._exit, or call again."
                )


class _Chunks:
    """A kernel over one chunk of the samples for each thread. A failure leaves the other chunks alone."""

    def __init__(self, kernel: Kernel, inputs: list[np.ndarray], outputs: list[np.ndarray], pieces: int):
        self.kernel = kernel
        self.arrays = inputs, outputs
        count = outputs[0].shape[0]
        self.length = -(-count // (pieces * MULTIPLE)) * MULTIPLE
        self.starts = deque(range(0, count, self.length))
        self.failures: dict[int, Exception] = {}  # by where their chunks begin

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
    """Threads that wait for helpers to run, started when there is none to spare, as many as there are processors.

    Not concurrent.futures: its locks are taken in Python, where an interrupt can leave one held. Here every step is a
    single call of C. The threads end with the process.
    """

    def __init__(self) -> None:
        self._helpers: queue.SimpleQueue[_Helper] = queue.SimpleQueue()
        self._idle: deque[None] = deque()  # one entry for each thread that waits
        self._threads = 0

    def ask(self, helper: _Helper) -> None:
        if sys.is_finalizing():  # the other threads stand still for ever
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
        except RuntimeError:  # no thread can be started: those that there are will do, or the caller
            pass

    def _serve(self) -> None:
        while True:
            helper = self._helpers.get()
            helper.help()
            del helper  # while waiting, nothing is kept
            self._idle.append(None)


def _processors() -> int:
    return os.cpu_count() or 1


_pool = _Pool()


def _forget_pool() -> None:
    """A forked child has the parent's pool without its threads: start afresh."""
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
