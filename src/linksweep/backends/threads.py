"""Split a batch over threads: kernels release the GIL, so chunks of one batch run at the same time."""

from __future__ import annotations

import functools
import operator
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from linksweep.backends.arrays import Kernel
from linksweep.errors import ArgumentError

_MULTIPLE = 64  # samples: whole SIMD lanes and whole cache lines, so that no two threads write to one line
_LEAST = 512  # samples per chunk: below, handing work over costs more than doing it

_LOOKS = 100  # at a thread that is about to finish, before sleeping: some tens of microseconds

_pool: ThreadPoolExecutor | None = None
_pool_lock = threading.Lock()


def checked_threads(threads: Any) -> int:
    """`threads` as an int of at least 1, else an ArgumentError."""
    try:
        count = 0 if isinstance(threads, bool | np.bool_) else operator.index(threads)
    except TypeError:
        count = 0
    if count < 1:
        raise ArgumentError(
            f"threads is {threads!r}, expected an integer of at least 1, pass 1 to use no other thread."
        )
    return count


def run_chunks(kernel: Kernel, inputs: list[np.ndarray], outputs: list[np.ndarray], threads: int = 1) -> None:
    """Run the kernel over the samples in at most `threads` threads, the calling one among them.

    Machine code shares its run: whoever is free takes the next block of samples, so that a thread that starts late, or
    whose processor is busy with something else, does less. Other kernels get one chunk for each thread.

    Arrays are as `linksweep.backends.arrays` makes them. Short batches run in the calling thread alone.
    Returns, or raises the exception of the first chunk that failed, when no thread uses the arrays any more.
    """
    count = outputs[0].shape[0]
    pieces = min(checked_threads(threads), count // _LEAST)
    if pieces <= 1:
        kernel(inputs, outputs)
        return
    shared = getattr(kernel, "shared", None)
    if shared is not None:
        run = shared(inputs, outputs, _LEAST)
        chunks = [_Chunk(run) for _ in range(pieces)]
    else:
        length = -(-count // (pieces * _MULTIPLE)) * _MULTIPLE
        chunks = [_Chunk(_part(kernel, inputs, outputs, start, length)) for start in range(0, count, length)]
    _run_all(chunks)


def run_copies(run: Callable[[], None], count: int) -> None:
    """Call a function that shares its work with its other calls from `count` threads, the calling one among them."""
    if count <= 1:
        run()
    else:
        _run_all([_Chunk(run) for _ in range(count)])


def _run_all(chunks: list[_Chunk]) -> None:
    _hand_over(chunks[1:])
    try:
        for chunk in chunks:  # what no other thread has begun by now is done here: a busy pool cannot block a call
            chunk.run()
        for chunk in chunks:
            chunk.wait()
    except BaseException:  # an interrupt while waiting: others may still write
        for chunk in chunks:
            chunk.cancel()
            chunk.finished.wait()
        raise
    for chunk in chunks:
        if chunk.failure is not None:
            raise chunk.failure


class _Chunk:
    """A part of a batch that runs once, in whichever thread claims it first."""

    def __init__(self, work: Callable[[], None]):
        self.work = work
        self._claimed = threading.Lock()
        self.finished = threading.Event()
        self.failure: BaseException | None = None

    def wait(self) -> None:
        """Until it is finished. Threads end at nearly the same time, and looking again is quicker than being woken."""
        for _ in range(_LOOKS):
            if self.finished.is_set():
                return
            time.sleep(0)
        self.finished.wait()

    def cancel(self) -> None:
        """Leave undone what nobody has begun."""
        if self._claimed.acquire(blocking=False):
            self.finished.set()

    def run(self) -> None:
        if not self._claimed.acquire(blocking=False):
            return
        try:
            self.work()
        except BaseException as failure:
            self.failure = failure
        finally:
            self.finished.set()


def _part(
    kernel: Kernel, inputs: list[np.ndarray], outputs: list[np.ndarray], start: int, length: int
) -> Callable[[], None]:
    """The kernel over `length` samples from `start` on."""
    own = [array if array.shape[0] == 1 else array[start : start + length] for array in inputs]
    return functools.partial(kernel, own, [array[start : start + length] for array in outputs])


def _hand_over(chunks: list[_Chunk]) -> None:
    """Give chunks to the pool; those it does not take are left to the caller."""
    try:
        pool = _shared_pool()
        for chunk in chunks:
            pool.submit(chunk.run)
    except RuntimeError:
        # No thread can be started, or the interpreter is shutting down. The refused chunk may stand in the
        # pool's queue all the same, which is why chunks are claimed, and why nobody waits for the pool.
        pass


def _shared_pool() -> ThreadPoolExecutor:
    global _pool
    with _pool_lock:
        if _pool is None:
            _pool = ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="linksweep")
        return _pool


def _forget_pool() -> None:
    """A forked child has the parent's pool without its threads, and maybe its lock held: start afresh."""
    global _pool, _pool_lock
    _pool = None
    _pool_lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
