"""Helpers in machine code give what one thread gives, to the bit, and neither hang nor outlive what they work on."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from abuse_helpers import PATIENCE, in_process, robot, same_bits, samples

from linksweep.backends import helpers, llvm, threads
from linksweep.backends.target import Target, initialized_llvm

pytestmark = pytest.mark.skipif(not helpers.supported(), reason="no helpers here: see helpers.supported")
AARCH64 = Target("aarch64-unknown-linux-gnu", "generic", "+neon", 16, True)
SIZES = (2, 3, 7, 8, 63, 64, 65, 127, 128, 129, 191, 200, 1000, 4095, 4096, 4097)


def share_all(cores: int = 0) -> None:
    """From here on every batch of two samples is worth sharing; on a machine of so many cores, if it is said."""
    threads.HELPED, threads._BLOCK = 1e-9, 1e-9
    if cores:
        os.cpu_count = lambda: cores
        helpers._helpers = helpers.Helpers()


def helped(work: Callable[[], Any]) -> None:
    """Repeat the work until other threads than this one have had processor time: some took part, or tried to."""
    before, began = time.process_time() - time.thread_time(), time.monotonic()
    while time.process_time() - time.thread_time() < before + 0.003:
        assert time.monotonic() < began + PATIENCE
        work()


# ---- the same numbers


def every_size(cores: int, count: int) -> None:
    share_all(cores)
    for name, function, dtype in (
        ("puma560", "inverse_dynamics", "float64"),
        ("mixed5", "forward_dynamics", "float32"),
        ("chain13", ["mass_matrix", "bias_forces"], "float64"),
    ):
        one, several = (robot(name).compile(function, threads=k, dtype=dtype) for k in (1, count))
        args = samples(one, max(SIZES), dtype)
        for size in SIZES:
            given = [a[:size] for a in args]
            expected = one(*given)
            for _ in range(10):
                assert same_bits(several(*given), expected), (name, size)
            given[1] = given[1][0]  # one for all samples
            assert same_bits(several(*given), one(*given)), (name, size)
        wide = [np.repeat(a, 2, axis=0)[::2] for a in args]  # rows apart
        assert same_bits(several(*wide), one(*args))
        helped(lambda f=several, args=args: f(*args))


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize(("cores", "count"), [(0, 2), (4, 3), (4, 10**9), (1, 2)])
def test_every_size(cores: int, count: int):
    in_process(every_size, cores, count)


def one_sample_is_bad() -> None:
    share_all()
    one, two = (robot("puma560").compile("inverse_dynamics", threads=k) for k in (1, 2))
    args = samples(one, 3000)
    args[0][1234, 2] = np.nan
    for _ in range(50):
        assert same_bits(two(*args), one(*args))


def test_one_bad_sample():
    in_process(one_sample_is_bad)


def with_workspace_and_loops() -> None:
    """Long code has a workspace, which every thread has for itself; so have loops over links."""
    share_all()
    for rolled in (True, False):
        one, two = (robot("chain13").compile("forward_dynamics", threads=k, rolled=rolled) for k in (1, 2))
        assert one.kernel("float64").workspace or not rolled
        args = samples(one, 2000)
        expected = one(*args)
        for _ in range(100):
            assert same_bits(two(*args), expected)


@pytest.mark.slow
def test_workspaces_and_loops():
    in_process(with_workspace_and_loops)


def stepping() -> None:
    """The stepper shares the same run again and again."""
    import linksweep as ls

    q0 = np.random.default_rng(0).uniform(-1, 1, (2000, 6))
    states = []
    for count in (1, 3):
        step = ls.stepper(robot("puma560"), 0.001, threads=count)
        state = step.start(q0)
        for _ in range(30):
            step(state, np.zeros(6))
        states.append(state.q)
    assert same_bits(*states)


@pytest.mark.slow
def test_stepping():
    in_process(stepping)


def many_callers() -> None:
    share_all(3)
    one, several = (robot("puma560").compile("inverse_dynamics", threads=k) for k in (1, 3))
    failures: list[int] = []

    def caller(seed: int) -> None:
        args = samples(one, 500 + 100 * seed, seed=seed)
        expected = one(*args)
        for _ in range(300):
            if not same_bits(several(*args), expected):
                failures.append(seed)

    callers = [threading.Thread(target=caller, args=(seed,)) for seed in range(6)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert not failures
    # two help one caller; a third is started if all are busy when another one calls, which depends on the load
    assert 2 <= helpers._helpers._pool[helpers._COUNT] <= 3


def test_many_callers():
    in_process(many_callers)


# ---- who owns what, and for how long


@pytest.mark.slow
def test_nothing_is_kept():
    one, two = (robot("puma560").compile("inverse_dynamics", threads=k) for k in (1, 2))
    args = samples(one, 60_000)
    expected = one(*args)
    inputs, out = [a.copy() for a in args], np.empty((60_000, 6))
    everything = [weakref.ref(x) for x in (*inputs, out)]
    for _ in range(20):
        two(*inputs, out=out)
    assert same_bits(out, expected)
    del inputs, out
    gc.collect()
    assert all(ref() is None for ref in everything)


def no_thread_comes(kind: str) -> None:
    """No thread can be started; or it is, and never gets to its box: the caller takes everything back."""

    def start(function: Any, args: Any) -> int:
        if kind == "refused":
            raise RuntimeError("can't start new thread")
        return 1

    share_all()
    helpers._thread.start_new_thread = start  # type: ignore[assignment]
    one, two = (robot("puma560").compile("inverse_dynamics", threads=k) for k in (1, 2))
    args = samples(one, 3000)
    for _ in range(10):
        assert same_bits(two(*args), one(*args))
    boxes = helpers._helpers._pool[helpers._BOXES :]
    assert any(boxes) == (kind == "lost")


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", ["refused", "lost"])
def test_no_thread_comes(kind: str):
    in_process(no_thread_comes, kind)


def masks() -> dict[str, set[int]]:
    found = {}
    for task in os.listdir("/proc/self/task"):
        found[task] = os.sched_getaffinity(int(task))
    return found


def cores_stay() -> None:
    """A helper that leaves the caller's core may run on it as before."""
    share_all(3)
    own = os.sched_getaffinity(0)
    two = robot("puma560").compile("inverse_dynamics", threads=4)
    args = samples(two, 3000)
    stop = time.monotonic() + 0.5
    while time.monotonic() < stop:
        two(*args)
    time.sleep(0.1)
    assert len(masks()) >= 4 and all(mask == own for mask in masks().values())
    os.sched_setaffinity(0, {min(own)})  # and with the caller on one core only, all is as ever
    expected = two(*args)
    for _ in range(100):
        assert same_bits(two(*args), expected)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity") or not Path("/proc/self/task").exists(), reason="Linux only")
@pytest.mark.slow
def test_cores_stay():
    in_process(cores_stay)


def idle() -> None:
    two = robot("puma560").compile("inverse_dynamics", threads=2)
    args = samples(two, 60_000)
    for _ in range(20):
        two(*args)
    time.sleep(0.1)
    began = time.process_time()
    time.sleep(1.0)
    assert time.process_time() - began < 0.02


@pytest.mark.slow
def test_helpers_sleep():
    in_process(idle)


# ---- fork and exit


def forks() -> None:
    """Between runs and during those of another thread; children have helpers of their own, and children too."""
    share_all()
    one, two = (robot("puma560").compile("inverse_dynamics", threads=k) for k in (1, 2))
    args = samples(one, 5000)
    expected, over = one(*args), threading.Event()

    def work() -> None:
        assert same_bits(two(*args), expected)

    def forever() -> None:
        while not over.is_set():
            work()

    def child(depth: int) -> int:
        started = os.fork()
        if started == 0:
            try:
                assert not any(helpers._helpers._pool[helpers._BOXES :])
                for _ in range(20):
                    work()
                helped(work)
                if depth:
                    assert os.waitpid(child(depth - 1), 0)[1] == 0
            except BaseException:
                os._exit(1)
            os._exit(0)
        return started

    work()
    for _ in range(5):
        assert os.waitpid(child(1), 0)[1] == 0
        work()
    busy = threading.Thread(target=forever)
    busy.start()
    for _ in range(15):
        time.sleep(0.003)
        assert os.waitpid(child(0), 0)[1] == 0
    over.set()
    busy.join()
    helped(work)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forks():
    in_process(forks)


EXIT = """
import sys, threading, time
import test_helpers as m
m.share_all()
two = m.robot("puma560").compile("inverse_dynamics", threads=2)
args = m.samples(two, 20000)
def forever():
    while True:
        two(*args)
for _ in range(30):
    two(*args)
"""
ENDS = {
    "awake": "",  # helpers look for the next job while Python ends
    "by hand": "sys.exit(0)",
    "at exit": "import atexit; atexit.register(lambda: [two(*args) for _ in range(100)])",
    "after all": "class Late:\n  def __del__(self, two=two, args=args): [two(*args) for _ in range(9)]\nsys.x = Late()",
    "daemon": "threading.Thread(target=forever, daemon=True).start(); time.sleep(0.05)",
    "daemons": "[threading.Thread(target=forever, daemon=True).start() for _ in range(4)]; time.sleep(0.05)",
}


@pytest.mark.cases(1)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.slow
def test_exit(end: str):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for _ in range(2):
        command = [sys.executable, "-X", "faulthandler", "-c", EXIT + ENDS[end]]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment)
        assert (done.returncode, done.stderr) == (0, "")


# ---- other systems


def test_code_for_arm():
    llvm_binding = initialized_llvm()
    llvm_binding.initialize_all_targets()
    llvm_binding.initialize_all_asmprinters()
    assert llvm.emit_object(helpers.helpers_ir(), AARCH64, 0)


def without_choice_of_cores() -> None:
    helpers._can_choose_cores = lambda: False
    every_size(0, 2)


@pytest.mark.slow
def test_without_choice_of_cores():
    in_process(without_choice_of_cores)


def test_without_helpers(monkeypatch: pytest.MonkeyPatch):
    """Where there are none, Python's threads share machine code, as they share everything else."""
    monkeypatch.setattr(helpers, "supported", lambda: False)
    one, two = (robot("puma560").compile("inverse_dynamics", threads=k) for k in (1, 2))
    monkeypatch.setattr(helpers.Helpers, "run", None)
    args = samples(one, 60_000)
    for _ in range(20):
        assert same_bits(two(*args), one(*args))
