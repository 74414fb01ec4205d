"""Values computed once, at first use: a cached property, and values by key that several threads may request."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar, overload

from .interrupts import Uninterrupted

T = TypeVar("T")


class lazy(Generic[T]):
    """functools.cached_property without the lock of Python 3.11, which all instances share.

    A process forked while another thread holds that lock would wait forever. Without it, two threads may compute the
    same value at the same time; the last one is kept. Arrays become read-only.
    """

    def __init__(self, compute: Callable[..., T]):
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
        if hasattr(value, "setflags"):  # an array: a change would be seen by all users
            value.setflags(write=False)  # pyright: ignore[reportAttributeAccessIssue]
        instance.__dict__[self._name] = value
        return value


class _Worker(Generic[T]):
    """A thread that computes a value, and the value when it is done."""

    def __init__(self) -> None:
        self.thread, self.process = threading.get_ident(), os.getpid()
        self.values: list[T] = []
        self.busy = threading.Lock()
        self.busy.acquire()


class Making(Generic[T]):
    """Of threads that request the same value at the same time, one computes it and the others wait for it."""

    def __init__(self) -> None:
        self._workers: dict[Hashable, _Worker[T]] = {}

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return make(), or the result of another thread's make() that is running for this key."""
        while True:
            own = _Worker[T]()
            with Uninterrupted() as signals:  # no thread waits forever for one that was interrupted
                worker = self._workers.setdefault(key, own)
                if worker is own:
                    try:
                        own.values.append(signals.interruptible(make))
                    finally:
                        self._workers.pop(key, None)
                        own.busy.release()
            if worker.process != own.process:  # left by the parent of a fork: its thread does not exist here
                self._workers.pop(key, None)
            elif worker is not own and worker.thread == own.thread:  # a signal handler that interrupted make()
                return make()
            else:
                with worker.busy:
                    if worker.values:  # otherwise it failed, and this thread tries
                        return worker.values[0]


class Once(dict[Hashable, T]):
    """Values by key, each computed at first use and by one thread only."""

    def __init__(self) -> None:
        super().__init__()
        self._making = Making[T]()

    def made(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value for `key`; if there is none yet, store and return make()."""
        value = self.get(key)
        return self._making.get(key, lambda: self._make(key, make)) if value is None else value

    def _make(self, key: Hashable, make: Callable[[], T]) -> T:
        value = self.get(key)  # another thread may have stored it meanwhile
        if value is None:
            value = self[key] = make()
        return value
