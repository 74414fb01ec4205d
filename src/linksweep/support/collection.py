"""Work that makes many objects and no cycles of dead ones: Python's search for such cycles waits until it is done."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from .interrupts import Uninterrupted

T = TypeVar("T")
P = ParamSpec("P")
_lock = threading.Lock()
_running = 0  # calls, of all threads
_searches = False  # whether it was on before the first of them


def uncollected(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """work(...) without garbage collection: each would walk over all nodes of a trace, two fifths of the time that
    tracing Talos' derivatives takes (7.2 s with, 4.3 s without)."""
    with Uninterrupted() as signals:
        _begin()
        try:
            return signals.interruptible(work, *args, **kwargs)
        finally:
            _end()


def _begin() -> None:
    global _running, _searches
    with _lock:
        if _running == 0:
            _searches = gc.isenabled()
            gc.disable()
        _running += 1


def _end() -> None:
    global _running
    with _lock:
        _running -= 1
        if _running == 0 and _searches:
            gc.enable()
