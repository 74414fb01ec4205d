"""What is computed at first use, once: a property, and values by key that several threads may want at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar, overload

from .interrupts import Uninterrupted

T = TypeVar("T")


class lazy(Generic[T]):
    """functools.cached_property without the lock that Python 3.11 has in it, one for all instances.

    A process forked while another thread holds that lock would wait for it for ever. Without it, two threads may
    compute the same value at once; the last one stays. Arrays become read-only.
    """

    def __init__(self, compute: Callable[[Any], T]):
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> lazy[T] | T:
        if instance is None:
            return self
        value = self._compute(instance)
        if hasattr(value, "setflags"):  # an array: whoever changed it would change it for all
            value.setflags(write=False)  # pyright: ignore[reportAttributeAccessIssue]
        instance.__dict__[self._name] = value
        return value


class _Maker(Generic[T]):
    """A thread that makes a value, and the value once it is there."""

    def __init__(self) -> None:
        self.thread, self.process = threading.get_ident(), os.getpid()
        self.values: list[T] = []
        self.busy = threading.Lock()
        self.busy.acquire()


class Making(Generic[T]):
    """Of threads that want to make the same thing at the same time, one makes it and the others wait for it."""

    def __init__(self) -> None:
        self._makers: dict[Hashable, _Maker[T]] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """make(), or what another thread's make() gives that is under way for this key."""
        while True:
            own = _Maker[T]()
            with Uninterrupted() as signals:  # nobody waits for ever for a thread that was interrupted
                maker = self._makers.setdefault(key, own)
                if maker is own:
                    try:
                        own.values.append(signals.interruptible(make))
                    finally:
                        self._makers.pop(key, None)
                        own.busy.release()
            if maker.process != own.process:  # a fork left it behind, its thread is not here
                self._makers.pop(key, None)
            elif maker is not own and maker.thread == own.thread:  # a signal's handler, in the midst of making
                return make()
            else:
                with maker.busy:
                    if maker.values:  # else it failed, and this thread tries
                        return maker.values[0]


class Once(dict[Hashable, T]):
    """Values by key, each made at first use and by one thread only."""

    def __init__(self) -> None:
        super().__init__()
        self._making = Making[T]()

    def made(self, key: Hashable, make: Callable[[], T]) -> T:
        found = self.get(key)
        return self._making.get(key, lambda: self._make(key, make)) if found is None else found

    def _make(self, key: Hashable, make: Callable[[], T]) -> T:
        found = self.get(key)  # another thread may have been quicker than this one came here
        if found is None:
            found = self[key] = make()
        return found
