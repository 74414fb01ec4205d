"""Chunks of a batch in several threads give what one thread gives, and nothing hangs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from abuse_helpers import PATIENCE
from hypothesis import given, settings
from hypothesis import strategies as st

from linksweep.backends import threads as module
from linksweep.backends.threads import checked_threads, run_chunks
from linksweep.errors import ArgumentError


class Recorder:
    """Adds its inputs; remembers where each chunk began, how long it was and which thread ran it."""

    def __init__(self, delay=0.0):
        self.chunks = []
        self.delay = delay

    def __call__(self, inputs, outputs):
        self.chunks.append((len(outputs[0]), threading.get_ident(), [len(a) for a in inputs]))
        time.sleep(self.delay)
        outputs[0][...] += inputs[0] + inputs[1]  # += : a chunk that runs twice is seen


def arrays(count):
    rng = np.random.default_rng(count)
    return [rng.normal(size=(count, 3)), rng.normal(size=(1, 3))], [np.zeros((count, 3))]


@pytest.mark.quick
@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5000), st.integers(1, 9))
def test_every_sample_once(count, threads):
    kernel = Recorder()
    inputs, outputs = arrays(count)
    run_chunks(kernel, inputs, outputs, threads)
    np.testing.assert_array_equal(outputs[0], inputs[0] + inputs[1])
    lengths = sorted(chunk[0] for chunk in kernel.chunks)
    assert len(lengths) <= threads and sum(lengths) == count
    assert all(length % 64 == 0 for length in lengths[1:])
    assert all(shapes == [length, 1] for length, _, shapes in kernel.chunks)


@pytest.mark.quick
def test_chunks_run_in_different_threads():
    both, idents = threading.Barrier(2, timeout=PATIENCE), set()  # nobody gets on before the other has come

    def kernel(inputs, outputs):
        idents.add(threading.get_ident())
        both.wait()

    run_chunks(kernel, *arrays(4096), 2)
    assert len(idents) == 2 and threading.get_ident() in idents


@pytest.mark.quick
def test_short_batches_stay_here():
    kernel = Recorder()
    run_chunks(kernel, *arrays(600), 8)
    assert [chunk[:2] for chunk in kernel.chunks] == [(600, threading.get_ident())]


@pytest.mark.parametrize("threads", [0, -1, 1.0, "all", None, True, np.bool_(True), [2], np.array([1, 2])])
def test_wrong_number_of_threads(threads):
    with pytest.raises(ArgumentError, match=r"threads is .*, expected an integer of at least 1, pass"):
        checked_threads(threads)
    with pytest.raises(ArgumentError):
        run_chunks(Recorder(), *arrays(10), threads)


@pytest.mark.quick
def test_number_of_threads():
    assert checked_threads(3) == 3 and checked_threads(np.int8(2)) == 2


@pytest.mark.parametrize("failing", [0, 1, 2])
def test_exceptions_arrive_when_all_is_quiet(failing):
    running = []

    def kernel(inputs, outputs):
        chunk = int(inputs[0][0, 0]) // 1024
        running.append(chunk)
        time.sleep(0.02 * chunk)
        running.remove(chunk)
        if chunk >= failing:
            raise KeyError(chunk)

    samples = np.arange(3072.0)[:, None]
    with pytest.raises(KeyError) as error:
        run_chunks(kernel, [samples], [np.zeros((3072, 1))], 3)
    assert error.value.args == (failing,) and not running


def test_many_callers_at_once():
    failures = []

    def caller():
        for _ in range(5):
            inputs, outputs = arrays(2048)
            run_chunks(Recorder(delay=0.001), inputs, outputs, 4)
            if not np.array_equal(outputs[0], inputs[0] + inputs[1]):
                failures.append(1)

    callers = [threading.Thread(target=caller) for _ in range(8)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert not failures


def refuse(*_):
    raise RuntimeError("can't start new thread")


def test_a_pool_that_takes_nothing(monkeypatch):
    """No thread can be started; or there is one, busy elsewhere, and it comes to the helpers much later."""
    pool = module._Pool()
    monkeypatch.setattr(module, "_pool", pool)
    monkeypatch.setattr(module._thread, "start_new_thread", refuse)
    inputs, outputs = arrays(4096)
    kernel = Recorder()
    run_chunks(kernel, inputs, outputs, 4)
    assert len(kernel.chunks) == 4 and pool._threads == 0 and pool._helpers.empty()
    pool._threads = 1
    kernel, outputs = Recorder(), [np.zeros((4096, 3))]
    run_chunks(kernel, inputs, outputs, 4)
    assert len(kernel.chunks) == 4 and not pool._helpers.empty()
    while not pool._helpers.empty():
        pool._helpers.get().help()
    assert len(kernel.chunks) == 4
    np.testing.assert_array_equal(outputs[0], inputs[0] + inputs[1])


def in_new_process(code):
    """Run code that has `work(count, threads, delay)`; a hang or a crash is a failed test."""
    prelude = """
    import os, sys, threading, time, warnings
    import numpy as np
    from linksweep.backends.threads import run_chunks
    warnings.filterwarnings("ignore", "This process .* is multi-threaded")  # Python 3.12 on, of os.fork
    def work(count=4096, threads=3, delay=0.0):
        def kernel(inputs, outputs):
            time.sleep(delay)
            outputs[0][...] += inputs[0]
        a, b = np.ones((count, 3)), np.zeros((count, 3))
        run_chunks(kernel, [a], [b], threads)
        assert (b == 1).all()
    """
    source = textwrap.dedent(prelude) + textwrap.dedent(code)
    command = [sys.executable, "-c", source]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_after_and_during_work():
    code = """
    work()
    busy = threading.Thread(target=work, kwargs={"delay": 0.3})
    busy.start()
    time.sleep(0.05)
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            idents = set()
            both = threading.Barrier(2, timeout=600)
            def kernel(inputs, outputs):
                idents.add(threading.get_ident())
                both.wait()
            run_chunks(kernel, [], [np.zeros((4096, 3))], 2)
            assert len(idents) == 2
            work()
            os.write(1, b"child\\n")
            os._exit(0)
        children.append(child)
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    busy.join()
    work()
    print("parent")
    """
    assert in_new_process(code).split() == ["child"] * 3 + ["parent"]


@pytest.mark.parametrize("daemon", [True, False])
def test_exit_while_a_thread_runs(daemon):
    code = f"""
    def forever():
        end = time.monotonic() + 0.6
        while {daemon} or time.monotonic() < end:
            work(delay=0.01)
    threading.Thread(target=forever, daemon={daemon}).start()
    time.sleep(0.2)
    print("bye")
    """
    assert in_new_process(code) == "bye\n"


def test_work_at_exit():
    code = """
    import atexit
    atexit.register(lambda: (work(), print("worked")))
    work()
    """
    assert in_new_process(code) == "worked\n"
