"""Garbage collection waits while a program is traced and compiled, and goes on afterwards as it was before."""

from __future__ import annotations

import gc
import threading

import pytest

from linksweep.support.interrupts import uncollected


def test_off_within_and_as_before_afterwards():
    assert gc.isenabled()
    assert uncollected(gc.isenabled) is False
    assert uncollected(uncollected, gc.isenabled) is False
    assert gc.isenabled()
    with pytest.raises(KeyError):
        uncollected({}.__getitem__, "a")
    assert gc.isenabled()
    gc.disable()
    try:
        uncollected(int)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_threads_end_in_any_order():
    inside, leave = threading.Event(), threading.Event()

    def wait() -> None:
        inside.set()
        leave.wait(60)

    thread = threading.Thread(target=uncollected, args=(wait,))
    thread.start()
    assert inside.wait(60)
    uncollected(int)
    assert not gc.isenabled()  # the other one goes on
    leave.set()
    thread.join()
    assert gc.isenabled()
