"""Compiled code lives as long as anything can call it: collection, fork, pickle, threads, exit, signals."""

from __future__ import annotations

import copy
import faulthandler
import gc
import os
import pickle
import signal
import threading
import time
import weakref
from typing import Any

import numpy as np
import pytest
from abuse_helpers import PATIENCE, function, in_process, resident, results, robot, run_python, same_bits, samples

import linksweep as ls
from linksweep.backends.threads import run_chunks
from linksweep.robot.core import RECENT

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
KINDS = ("inverse_dynamics", "several", "inverse_dynamics_rolled", "d_inverse_dynamics")


def case(wanted: str = "inverse_dynamics", **options):
    compiled = function(robot("mixed3"), wanted, **options)
    args = samples(compiled, 9)
    return compiled, args, results(compiled(*args))


# ---- collection


def outlives_the_robot() -> None:
    for wanted in KINDS:
        arm = robot("mixed3")
        compiled = function(arm, wanted)
        args = samples(compiled, 9)
        expected = [y.copy() for y in results(compiled(*args))]
        del arm
        for _ in range(3):
            gc.collect()
        assert same_bits(results(compiled(*args)), expected)
        assert same_bits(results(compiled(*[a[4] for a in args])), [y[4] for y in expected])
        kernel = compiled.kernel("float64")
        entry = compiled.__call__ if len(expected) == 1 and "rolled" not in wanted else None
        if entry is not None:
            assert type(entry).__name__ == "builtin_function_or_method"
        method = compiled.__call__
        del compiled
        gc.collect()
        junk = [bytearray(1 << 16) for _ in range(100)]  # whatever was unmapped gets used again
        flat = [a.reshape(9, -1) for a in args]
        outputs = [np.empty((9, y[0].size)) for y in expected]
        kernel(flat, outputs)
        assert same_bits(outputs, [y.reshape(9, -1) for y in expected])
        assert same_bits(results(method(*args)), expected)
        if entry is not None:
            for _ in range(10):
                assert same_bits(entry(*[a[4] for a in args]), expected[0][4])
                assert same_bits(entry(*args), expected[0])
            try:
                entry(1, 2)
            except ls.ArgumentError as error:
                assert "expected 3" in str(error)
            else:
                raise AssertionError
        del junk


def test_code_outlives_the_robot_and_the_function():
    in_process(outlives_the_robot)


def results_outlive_all() -> None:
    result = case()[0](*case()[1])
    expected = result.copy()
    gc.collect()
    assert same_bits(result, expected)
    result[:] = 0  # its own memory, to be written


def test_results_outlive_the_function():
    in_process(results_outlive_all)


@pytest.mark.slow
def test_functions_are_collected():
    arm = ls.robots.planar(2)
    compiled = arm.compile("inverse_dynamics")
    assert arm.compile("inverse_dynamics") is compiled and arm.compile(["inverse_dynamics"]) is compiled
    gone = weakref.ref(compiled), weakref.ref(compiled.kernel("float64"))
    del compiled, arm  # a robot keeps what it was asked for last
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


@pytest.mark.slow
def test_a_robot_keeps_so_many_functions():
    arm = ls.robots.planar(1)
    first = weakref.ref(arm.compile("mass_matrix", backend="interpreter"))
    for frame in [*arm.frame_names] * 2:
        for reference in ("world", "local", "world_aligned"):
            arm.compile(("jacobian", frame, reference), backend="interpreter")
    assert first() is not None
    for threads in range(1, RECENT + 1):
        arm.compile("mass_matrix", backend="interpreter", threads=threads, dtype="float32")
    gc.collect()
    assert first() is None and len(arm._core.recent) == RECENT


def many_cycles(count: int) -> None:
    q = np.zeros(2)

    def cycle() -> None:
        compiled = ls.robots.planar(2).compile("inverse_dynamics")
        compiled(q, q, q)
        compiled([q, q, q], q, q)

    for _ in range(200):
        cycle()
    gc.collect()
    before, files = resident(), len(os.listdir("/proc/self/fd"))
    for _ in range(count):
        cycle()
    gc.collect()
    assert resident() - before < 15, (before, resident())
    assert len(os.listdir("/proc/self/fd")) == files


@pytest.mark.slow
def test_two_thousand_functions_leave_nothing_behind():
    in_process(many_cycles, 2000)


def many_compilations() -> None:
    """Without the cache: tracing and compiling leave nothing behind either."""
    test = [0.0, 0.0]

    def cycle(k: int) -> None:
        arm = ls.robots.planar(2).with_gravity((0, -1.0 - k, 0))
        found = arm.compile("gravity_forces")(test)
        np.testing.assert_allclose(found, [2 * (1 + k), 0.5 * (1 + k)], rtol=1e-13)

    for k in range(30):
        cycle(k)
    gc.collect()
    before = resident()
    for k in range(150):
        cycle(k)
    gc.collect()
    assert resident() - before < 15, (before, resident())


@pytest.mark.slow
def test_compiling_leaves_nothing_behind():
    in_process(many_compilations, LINKSWEEP_CACHE="off")


# ---- fork, pickle, spawn


def fork_and_call(threads: int) -> None:
    arm = robot("mixed3")
    compiled = arm.compile("inverse_dynamics", threads=threads)
    args = samples(compiled, 3000)
    expected = compiled(*args)
    children = []
    for k in range(4):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                if k % 2:  # compile in the child, something that the parent has not
                    other = arm.with_gravity((0, 0, k)).compile("inverse_dynamics", threads=threads)
                    assert not same_bits(other(*args), expected)
                assert same_bits(compiled(*args), expected)
                assert same_bits(compiled(*[a[7] for a in args]), expected[7])
                del compiled
                gc.collect()
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert same_bits(compiled(*args), expected)


@pytest.mark.cases(1)
@needs_fork
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("environment", [{}, {"LINKSWEEP_CACHE": "off"}], ids=["cache", "off"])
def test_fork(threads: int, environment: Any):
    in_process(fork_and_call, threads, **environment)


def fork_while_compiling() -> None:
    """A child must not inherit a lock of LLVM that another thread held."""
    busy = True
    ls.robots.chain(4).compile("forward_dynamics")  # imports are done: Python itself cannot fork in the midst of one

    def compiling() -> None:
        seed = 0
        while busy:
            seed += 1
            ls.robots.chain(4, seed).compile("forward_dynamics")

    worker = threading.Thread(target=compiling)
    worker.start()
    time.sleep(0.3)
    try:
        for k in range(10):
            child = os.fork()
            if child == 0:
                faulthandler.dump_traceback_later(PATIENCE, exit=True)  # a deadlock ends, and says where
                compiled = ls.robots.chain(3, 100 + k).compile("gravity_forces")
                os._exit(0 if np.isfinite(compiled(np.zeros(3))).all() else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        busy = False
        worker.join()


@pytest.mark.slow
@needs_fork
def test_fork_while_another_thread_compiles():
    in_process(fork_while_compiling, LINKSWEEP_CACHE="off")


@pytest.mark.parametrize("wanted", KINDS)
@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
def test_pickle_and_copy(wanted: str, backend: str):
    compiled, args, expected = case(wanted, backend=backend)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(compiled, protocol))
        assert (
            repr(again) == repr(compiled)
            and again.inputs == compiled.inputs
            and again.computation == compiled.computation
        )
        assert same_bits(results(again(*args)), expected)
    for again in (copy.copy(compiled), copy.deepcopy(compiled), copy.deepcopy([compiled])[0]):
        assert same_bits(results(again(*args)), expected)


def test_pickle_keeps_options():
    compiled = robot("planar2").compile("inverse_dynamics", dtype="float32", threads=2, rolled=True, f_ext=True)
    again = pickle.loads(pickle.dumps(compiled))
    assert (again.dtype, again.threads, again.backend, again.computation) == (
        "float32",
        2,
        "llvm",
        compiled.computation,
    )
    assert again(*samples(again, 2)).dtype == np.float32


def test_a_robot_pickles():
    arm = robot("tree5")
    arm.gravity_forces(np.zeros(5))
    again = pickle.loads(pickle.dumps(arm))
    assert again == arm and hash(again) == hash(arm)
    assert same_bits(copy.deepcopy(arm).gravity_forces(np.ones(5)), arm.gravity_forces(np.ones(5)))


def call_it(job) -> list[np.ndarray]:
    compiled, args = job
    return results(compiled(*args))


def spawn() -> None:
    import multiprocessing

    jobs = [case(wanted)[:2] for wanted in ("inverse_dynamics", "several")]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.map(call_it, jobs)
    assert all(same_bits(f, call_it(job)) for f, job in zip(found, jobs, strict=True))


@pytest.mark.slow
def test_spawned_processes_take_functions_as_arguments(tmp_path):
    script = tmp_path / "main.py"  # spawn imports the main module again
    script.write_text(
        "import test_lifetime\nif __name__ == '__main__':\n    test_lifetime.spawn()\n    print('done')\n"
    )
    code = f"import subprocess; subprocess.run([sys.executable, {str(script)!r}], check=True)"
    assert run_python(code) == "done\n"


# ---- threads, exit, signals


def eight_threads() -> None:
    compiled, args, expected = case()
    (expected,) = expected
    wrong = []

    def work(seed: int) -> None:
        for i in range(1000):
            k = (seed + i) % 9
            if i % 3:
                good = same_bits(compiled(*[a[k] for a in args]), expected[k])
            else:
                good = same_bits(compiled(*[a[: k + 1] for a in args]), expected[: k + 1])
            if not good:
                wrong.append((seed, i))

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_eight_threads_call_one_function():
    in_process(eight_threads)


def threads_compile() -> None:
    """First calls of one robot at once, and functions dropped while others run."""
    arm = robot("mixed3")
    q, qd, qdd = args = samples(arm.compile("inverse_dynamics"), 9)
    expected = arm.compile("inverse_dynamics")(*args)
    wrong = []

    def work() -> None:
        for _ in range(15):
            if not same_bits(robot("mixed3").inverse_dynamics(q, qd, qdd), expected):
                wrong.append(1)
            if not same_bits(arm.inverse_dynamics(q, qd, qdd), expected):
                wrong.append(2)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("environment", [{}, {"LINKSWEEP_CACHE": "off"}], ids=["cache", "off"])
def test_eight_threads_compile(environment: Any):
    in_process(threads_compile, **environment)


def others_run() -> None:
    compiled = robot("chain13").compile("forward_dynamics")
    args = samples(compiled, 200_000)
    compiled(*[a[:10] for a in args])
    ticks, ended = [0], threading.Event()

    def tick() -> None:
        while not ended.is_set():
            ticks[0] += 1
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    ticking.start()
    most = 0
    for _ in range(100):  # where other processes have the processors, it may not get one during a call
        before = ticks[0]
        compiled(*args)
        most = max(most, ticks[0] - before)
        if most >= 5:
            break
    ended.set()
    ticking.join()
    assert most >= 5, most


@pytest.mark.slow
def test_other_threads_run_during_a_long_batch():
    in_process(others_run)


@pytest.mark.cases(1)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("daemon", [True, False])
def test_exit_while_a_thread_runs(threads: int, daemon: bool):
    code = f"""
import threading, time
from abuse_helpers import robot, samples
compiled = robot("mixed7").compile("forward_dynamics", threads={threads})
args = samples(compiled, 20_000)
end = time.monotonic() + 0.8
def forever():
    while {daemon} or time.monotonic() < end:
        compiled(*args)
        compiled(*[a[0] for a in args])
for _ in range(2):
    threading.Thread(target=forever, daemon={daemon}).start()
time.sleep(0.3)
print("bye")
"""
    assert run_python(code) == "bye\n"


def test_functions_work_until_the_very_end():
    """At exit all works; when modules are torn down, whatever is left of NumPy answers, and nothing crashes."""
    code = """
import atexit
from abuse_helpers import robot, samples
compiled = robot("planar2").compile("inverse_dynamics")
args = samples(compiled, 5)
class Last:
    def __del__(self, compiled=compiled, args=args):
        for given in ([a[0] for a in args], args, [1]):
            try:
                compiled(*given)
            except Exception:
                pass
        print("last")
cycle = Last()
cycle.itself = cycle
atexit.register(lambda: print("exit", compiled(*args).shape))
"""
    assert run_python(code) == "exit (5, 2)\nlast\n"


def interrupted(threads: int) -> None:
    compiled = robot("chain13").compile("forward_dynamics", threads=threads)
    args = samples(compiled, 50_000)
    expected = compiled(*args)
    caught = 0
    for k in range(8):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.002 + 0.003 * k)
            compiled(*args)
            time.sleep(0.1)
        except KeyboardInterrupt:
            caught += 1
    assert caught == 8
    assert same_bits(compiled(*args), expected)


def interrupt(threads: int) -> None:
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    interrupted(threads)


@pytest.mark.cases(1)
@pytest.mark.parametrize("threads", [1, 2])
def test_interrupts_arrive_after_the_batch(threads: int):
    in_process(interrupt, threads)


def interrupted_wait() -> None:
    """The caller waits for a slower chunk when the interrupt comes: it is raised when nobody uses the arrays."""
    running = []

    for _ in range(3):
        other_began, own_ended = threading.Event(), threading.Event()

        def kernel(inputs, outputs, began=other_began, ended=own_ended) -> None:
            if threading.get_ident() == threading.main_thread().ident:
                assert began.wait(PATIENCE)
                ended.set()
                return
            running.append(1)
            began.set()
            assert ended.wait(PATIENCE)
            time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
            outputs[0][:] = 1
            running.pop()

        try:
            run_chunks(kernel, [], [np.zeros((1024, 3))], 2)
        except KeyboardInterrupt:
            assert not running
        else:
            raise AssertionError


def test_an_interrupt_while_waiting_leaves_nobody_at_work():
    in_process(interrupted_wait)


def signal_handlers_call() -> None:
    """A handler that calls the function in the middle of calls of the same function."""
    compiled, args, expected = case()
    (expected,) = expected
    calls = []
    signal.signal(signal.SIGALRM, lambda *_: calls.append(same_bits(compiled(*[a[3] for a in args]), expected[3])))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    end = time.monotonic() + PATIENCE
    while len(calls) <= 50 and time.monotonic() < end:
        assert same_bits(compiled(*args), expected)
        assert same_bits(compiled(*[a[5] for a in args]), expected[5])
    signal.setitimer(signal.ITIMER_REAL, 0)
    assert len(calls) > 50 and all(calls)


def test_signal_handlers_may_call():
    in_process(signal_handlers_call)


def recursion() -> None:
    """Arrays whose conversion calls the function again; and without end, which is an error, not a crash."""
    compiled, args, expected = case()
    (expected,) = expected

    class Nested:
        def __init__(self, depth: int):
            self.depth = depth

        def __array__(self, dtype=None, copy=None):
            if self.depth:
                assert same_bits(compiled(Nested(self.depth - 1), *args[1:]), expected)
            return args[0]

    assert same_bits(compiled(Nested(20), *args[1:]), expected)
    try:
        compiled(Nested(-1), *args[1:])
    except (ls.ArgumentError, RecursionError):
        pass
    else:
        raise AssertionError

    def deep(n: int):
        return compiled(*[a[0] for a in args]) if n == 0 else deep(n - 1)

    assert same_bits(deep(900), expected[0])


def test_recursion():
    in_process(recursion)


def call_in_a_small_stack() -> None:
    """Spare rows and alignment of the machine code fit a thread with little stack."""
    compiled, args, expected = case("several")
    found = []
    threading.stack_size(128 * 1024)
    worker = threading.Thread(target=lambda: found.append(results(compiled(*args))))
    worker.start()
    worker.join()
    assert same_bits(found[0], expected)


def test_small_stacks():
    in_process(call_in_a_small_stack)
