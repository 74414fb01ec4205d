"""First calls that race: what several threads want at the same time is compiled once."""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from abuse_helpers import PATIENCE, in_process

import linksweep as ls
from linksweep.backends import llvm
from linksweep.functions import compiled
from linksweep.support.lazy import Making, Once


def race(work: Callable[[], Any], threads: int = 4) -> list[Any]:
    """What work() gave in each of several threads that begin together."""
    start = threading.Barrier(threads, timeout=PATIENCE)
    found: list[Any] = []

    def run() -> None:
        start.wait()
        found.append(work())

    workers = [threading.Thread(target=run) for _ in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == threads
    return found


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each object that LLVM emits; nothing comes from the cache."""
    monkeypatch.setenv("LINKSWEEP_CACHE", "off")
    entries: list[int] = []
    original = llvm.kernel_module

    def counted(*args: Any, **options: Any) -> Any:
        entries.append(1)
        time.sleep(0.05)  # so that whoever does not wait is seen
        return original(*args, **options)

    monkeypatch.setattr(llvm, "kernel_module", counted)
    return entries


ONES = np.ones((4, 3))
CALLS: dict[str, Callable[[ls.Robot], Any]] = {
    "inverse": lambda robot: robot.inverse_dynamics(ONES, ONES, ONES),
    "forward": lambda robot: robot.forward_dynamics(ONES, ONES, ONES),
    "options": lambda robot: robot.inverse_dynamics(ONES, ONES, ONES, dissipation=True),
    "details": lambda robot: robot.inverse_dynamics(ONES, ONES, ONES, details=True)[0],
    "several": lambda robot: robot.explicit_model(np.ones(3))[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_racing_first_calls_compile_once(name: str, emitted: list[int]):
    robot = ls.robots.chain(3, seed=list(CALLS).index(name))
    results = race(lambda: CALLS[name](robot))
    assert len(emitted) == 1
    assert all(np.array_equal(result, results[0]) for result in results)


def test_the_same_recipe_is_compiled_once(emitted: list[int]):
    robot = ls.robots.chain(3, seed=11)
    functions = race(lambda: robot.compile("gravity_forces"))
    assert len(emitted) == 1
    assert len({id(function) for function in functions}) == 1
    assert len({function(np.ones(3)).tobytes() for function in functions}) == 1


def test_one_function_in_two_types(emitted: list[int]):
    function = ls.robots.chain(3, seed=12).compile("gravity_forces")
    race(lambda: function(np.ones((2, 3), np.float32)))
    assert len(emitted) == 2  # float64 with the function, float32 at its first call


def test_racing_simulations_compile_one_step(emitted: list[int]):
    robot = ls.robots.chain(3, seed=13)
    race(lambda: ls.simulate(robot, np.zeros(3), duration=0.002).q)
    assert len(emitted) == 1


def test_a_failure_is_everybodys_own():
    making: Making[int] = Making()
    tries = []

    def make() -> int:
        tries.append(1)
        time.sleep(0.02)
        if len(tries) < 3:
            raise KeyError
        return 7

    def attempt() -> Any:
        try:
            return making.get("key", make)
        except KeyError:
            return None

    assert sorted(race(attempt), key=str) == [7, 7, None, None]
    assert len(tries) == 3


def test_values_are_kept():
    once: Once[list[int]] = Once()
    found = race(lambda: once.made("key", lambda: [1]), 8)
    assert all(each is found[0] for each in found) and once == {"key": [1]}


def interrupted_maker() -> None:
    """Those who wait for an interrupted thread go on themselves; a handler in the midst of making makes its own."""
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    making: Making[str] = Making()
    found = []

    def slow() -> str:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10 * PATIENCE)
        return "slow"

    waiting = threading.Thread(target=lambda: (time.sleep(0.1), found.append(making.get(1, lambda: "other"))))
    waiting.start()
    try:
        making.get(1, slow)
    except KeyboardInterrupt:
        found.append("interrupted")
    waiting.join()
    assert sorted(found) == ["interrupted", "other"]

    signal.signal(signal.SIGUSR1, lambda *_: found.append(making.get(2, lambda: "handler")))

    def signalled() -> str:
        signal.raise_signal(signal.SIGUSR1)
        return "main"

    assert making.get(2, signalled) == "main" and found[-1] == "handler"


def test_an_interrupted_maker_holds_nobody_up():
    in_process(interrupted_maker, timeout=2 * PATIENCE)


def forked_while_making() -> None:
    """A child does not wait for a thread of its parent."""
    making: Making[str] = Making()
    begun, go_on = threading.Event(), threading.Event()
    worker = threading.Thread(target=lambda: making.get(1, lambda: (begun.set(), go_on.wait(), "parent")[2]))
    worker.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        os._exit(0 if making.get(1, lambda: "child") == "child" else 1)
    assert os.waitpid(child, 0)[1] == 0
    go_on.set()
    worker.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_makes_its_own():
    in_process(forked_while_making, timeout=2 * PATIENCE)


def test_nothing_is_left_behind():
    assert not compiled._preparing._workers
