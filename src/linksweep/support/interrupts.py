"""Signals that wait until nothing is left half done.

Python runs the handler of a signal in the main thread, between any two instructions, and what it raises (Ctrl-C:
KeyboardInterrupt) comes out there: between making a file and remembering its name, or in the very lines that remove
it. Within `with Uninterrupted()` handlers wait, but for the part of the work that is meant to be interrupted:

    with Uninterrupted() as signals:
        file = make()
        try:
            signals.interruptible(fill, file)
        finally:
            remove(file)
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")
_NUMBERS = tuple(map(int, signal.valid_signals()))
_handler_of = getattr(sys.modules.get("_signal"), "getsignal", signal.getsignal)  # without its search for enums


class Uninterrupted:
    """Handlers of signals wait until the block ends. In other threads than the main one none ever runs."""

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[int, FrameType | None], object]] = {}
        self._waiting: list[int] = []
        self._thread = threading.get_ident()
        self._holds = False  # unless it holds, our handler only hands on, and does no harm where it is left
        self._over = False

    def __enter__(self) -> Uninterrupted:
        try:
            if self._thread == threading.main_thread().ident:
                # all are read before one is set: Python 3.14 leaves a loop's way back from an `if` out of its `try`
                self._handlers = {number: handler for number in _NUMBERS if callable(handler := _handler_of(number))}
                with contextlib.suppress(ValueError):  # a subinterpreter has no signals
                    for number in self._handlers:
                        signal.signal(number, self._handle)
            self._holds = True
        except BaseException:
            self._over = True
            raise
        return self

    def __exit__(self, *raised: object) -> None:
        self._over = True
        self._holds = False
        for number in self._handlers:
            self._restore(number)
        self._deliver()

    def interruptible(self, function: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """function(*args), in which signals arrive as ever, those that wait already first."""
        self._deliver()
        return function(*args, **named)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        here = threading.get_ident() == self._thread  # not where another thread forked, and is the child's main thread
        if self._holds and here and not self._is_inside(frame):
            self._waiting.append(number)
            return
        if self._over:  # an interrupt kept us from it: a second one would go through two of us, and so on
            self._restore(number)
        self._handlers[number](number, frame)

    def _restore(self, number: int) -> None:
        if _handler_of(number) == self._handle:  # else somebody has set another one meanwhile
            signal.signal(number, self._handlers[number])

    def _is_inside(self, frame: FrameType | None) -> bool:
        """Whether the interrupted frame runs within `interruptible`. A flag would be set an instruction too late."""
        while frame is not None:
            if frame.f_code is Uninterrupted.interruptible.__code__ and frame.f_locals.get("self") is self:
                return True
            frame = frame.f_back
        return False

    def _deliver(self) -> None:
        while self._waiting:
            number = self._waiting.pop(0)
            self._handlers[number](number, sys._getframe())
