"""Ctrl-C at any moment: no thread keeps an address of what is gone, nothing hangs, nothing is left half done."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import random
import signal
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

import linksweep as ls
from linksweep.backends import llvm, rollout
from linksweep.backends.target import host_target
from linksweep.backends.threads import run_chunks
from linksweep.functions.compiled import CompiledFunction
from linksweep.functions.computation import RobotFunction
from linksweep.simulation.fixed_step import TimeStep
from linksweep.support.interrupts import Uninterrupted


def strike() -> None:
    """A signal, here and now: the handler that stands there runs."""
    signal.raise_signal(signal.SIGINT)


# ---- signals at random moments, from another process


def calls(threads: int) -> Callable[[], Any]:
    compiled = robot("chain13").compile("forward_dynamics", threads=threads)
    args = samples(compiled, 3000)
    expected = compiled(*args)

    def work() -> None:
        # copies: what is dropped with the interrupted call is unmapped at once
        assert same_bits(compiled(*[a.copy() for a in args]), expected)

    return work


def several_results(threads: int) -> Callable[[], Any]:
    compiled = robot("mixed7").compile(["mass_matrix", "bias_forces"], threads=threads)
    args = samples(compiled, 3000)
    expected = compiled(*args)

    def work() -> None:
        assert same_bits(compiled(*[a.copy() for a in args]), expected)

    return work


def back_to_back(threads: int) -> Callable[[], Any]:
    """Short batches, one after the other: helpers are awake, and look for the next one."""
    compiled = robot("planar2").compile("inverse_dynamics", threads=threads)
    args = samples(compiled, 100_000)
    expected, out = compiled(*args), np.empty((100_000, 2))

    def work() -> None:
        out[:] = 0.0
        for _ in range(20):
            compiled(*args, out=out)
        assert same_bits(out, expected)

    return work


def rollouts(threads: int) -> Callable[[], Any]:
    arm = robot("mixed5")
    q0 = np.random.default_rng(0).uniform(-1, 1, (300, 5))
    expected = ls.simulate(arm, q0, duration=0.02, integrator=ls.simulation.RK4(threads=threads)).q

    def work() -> None:
        assert same_bits(ls.simulate(arm, q0, duration=0.02, integrator=ls.simulation.RK4(threads=threads)).q, expected)

    return work


def inverse_kinematics(threads: int) -> Callable[[], Any]:
    """The solver runs in one thread; a call with threads comes before, so that some are there."""
    arm = ls.robots.puma560()
    targets = arm.pose(np.random.default_rng(0).uniform(-1, 1, (40, 6)), arm.frame_names[-1])
    expected = arm.inverse_kinematics(targets, arm.frame_names[-1]).q
    warm = calls(threads)

    def work() -> None:
        assert same_bits(arm.inverse_kinematics(targets, arm.frame_names[-1]).q, expected)

    warm()
    return work


def first_calls(threads: int) -> Callable[[], Any]:
    """Traced, compiled and loaded again each time."""

    def work() -> None:
        compiled = ls.robots.planar(2).compile("forward_dynamics", threads=threads)
        compiled(*samples(compiled, 3000))

    return work


WORK: tuple[Callable[[int], Callable[[], Any]], ...] = (
    calls, several_results, rollouts, inverse_kinematics, back_to_back,
)  # fmt: skip


def interrupted(name: str, threads: int, signals: int) -> None:
    """Ask for so many signals, one after the other, each of which must end a call in KeyboardInterrupt."""
    work = globals()[name](threads)
    began = time.perf_counter()
    work()
    print(time.perf_counter() - began, flush=True)
    for _ in range(signals):
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        try:
            print("now", flush=True)
            while True:
                work()
        except KeyboardInterrupt:
            pass
    faulthandler.cancel_dump_traceback_later()
    work()
    print("done", flush=True)


def send_signals(name: str, threads: int, signals: int, seed: int = 0) -> None:
    """Run `interrupted` in a process and interrupt it at random moments within about two calls."""
    rng = random.Random(seed)
    code = f"import test_interrupts as m; m.interrupted({name!r}, {threads}, {signals})"
    command = [sys.executable, "-X", "faulthandler", "-c", code]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        once, sent, last = float(process.stdout.readline() or "nan"), 0, ""
        for line in process.stdout:
            last = line.strip()
            if last == "now":
                time.sleep(rng.uniform(0, rng.choice([0.003, 2 * once])))
                process.send_signal(signal.SIGINT)
                sent += 1
        complaints = process.stderr.read()
    assert (process.returncode, last, sent, complaints) == (0, "done", signals, ""), complaints


@pytest.mark.cases(1)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("work", WORK, ids=lambda work: work.__name__)
@pytest.mark.slow
def test_interrupts_at_random(work: Callable[..., Any], threads: int):
    send_signals(work.__name__, threads, 40)


@pytest.mark.slow
def test_hundreds_of_interrupts_while_helpers_are_awake():
    send_signals("back_to_back", 2, 300, seed=2)


@pytest.mark.slow
def test_interrupted_first_calls():
    send_signals("first_calls", 2, 15)


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("work", [*WORK, first_calls], ids=lambda work: work.__name__)
def test_three_hundred_interrupts(work: Callable[..., Any], threads: int):
    send_signals(work.__name__, threads, 300, seed=1)


# ---- who owns what


@pytest.mark.slow
def test_shared_work_holds_its_arrays():
    """Whoever runs it later, as an interrupted call's helpers do, finds the arrays alive, and the code."""
    compiled = robot("planar2").compile("inverse_dynamics")
    kernel = compiled.kernel("float64")
    inputs, outputs = [a + 0.0 for a in samples(compiled, 2000)], [np.empty((2000, 2))]
    expected = compiled(*inputs)
    everything = [weakref.ref(x) for x in (*inputs, *outputs, kernel)]
    work, result = kernel.shared(inputs, outputs, 512), outputs[0].view()
    del inputs, outputs, kernel, compiled
    gc.collect()
    assert all(ref() is not None for ref in everything)
    work.run()
    assert same_bits(result, expected)
    del work, result
    gc.collect()
    assert all(ref() is None for ref in everything)


@pytest.mark.slow
def test_a_shared_rollout_holds_its_arrays(monkeypatch: pytest.MonkeyPatch):
    shared = []
    monkeypatch.setattr(rollout, "run_shared", lambda work, threads: shared.append(work))
    step = TimeStep(RobotFunction(robot("planar2").canonical, "forward_dynamics", "filter_smoother"))
    kernel = CompiledFunction(step, "float64", 1, "llvm").kernel("float64")
    states = [np.zeros((11, 9, 2)), np.zeros((11, 9, 2))]
    states[0][0] = np.random.default_rng(0).uniform(-1, 1, (9, 2))
    results = [np.zeros((11, 9, 2)), np.zeros((11, 9, 2))]
    feeds = [rollout.Feed(np.full((1, 1, 1), 0.001))]
    everything = [weakref.ref(x) for x in (*states, *results, feeds[0].values, kernel)]
    end = states[0][-1]
    rollout.run(kernel, rollout.Recording(states, results, 1), feeds, 0, 10, 2)
    del states, results, feeds, kernel
    gc.collect()
    assert all(ref() is not None for ref in everything)
    shared.pop().run()
    assert end.any()
    del end
    gc.collect()
    assert all(ref() is None for ref in everything)


# ---- signals that wait


def test_signals_wait_and_arrive():
    done = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Uninterrupted():
        strike()
        strike()
        done.append(1)
    assert done == [1] and signal.getsignal(signal.SIGINT) == before


def test_signals_arrive_where_they_may():
    done = []
    with pytest.raises(KeyboardInterrupt), Uninterrupted() as signals:
        try:
            signals.interruptible(strike)
        finally:
            strike()
            done.append(1)
    assert done == [1]
    with pytest.raises(KeyboardInterrupt), Uninterrupted() as signals:
        strike()
        signals.interruptible(done.append, 2)  # what waits comes first
    assert done == [1]
    with pytest.raises(KeyboardInterrupt), Uninterrupted() as outer, Uninterrupted() as inner:
        inner.interruptible(strike)  # within the outer one it waits
        done.append(3)
        outer.interruptible(done.append, 4)
    assert done == [1, 3]


def test_other_handlers_wait_too():
    heard: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _: heard.append(number))
    try:
        with Uninterrupted() as signals:
            signal.raise_signal(signal.SIGUSR1)
            assert not heard
            signals.interruptible(lambda: None)
            assert heard == [signal.SIGUSR1]
            signal.raise_signal(signal.SIGUSR1)
        assert heard == [signal.SIGUSR1] * 2
        with Uninterrupted():  # a handler set meanwhile stays
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_interrupted_ones_do_not_pile_up():
    """One that was interrupted on its way out may be left in its place: it goes with the next signal."""
    before = signal.getsignal(signal.SIGINT)

    def hold() -> None:
        with Uninterrupted():
            pass

    with Interrupting(set(), strike) as whole:
        hold()
    for k in range(0, whole.count, 7):
        with contextlib.suppress(KeyboardInterrupt), Interrupting({k}, strike):
            hold()
        sys.settrace(None)
        with pytest.raises(KeyboardInterrupt):
            strike()
        assert signal.getsignal(signal.SIGINT) == before, k


def test_in_other_threads_nothing_is_touched():
    found = []

    def work() -> None:
        with Uninterrupted() as signals:
            found.append((signal.getsignal(signal.SIGINT), signals.interruptible(lambda: 7)))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(signal.getsignal(signal.SIGINT), 7)]


def test_dropped_code_is_unmapped_when_the_next_is_loaded():
    """Not by a destructor: what a signal raises in one is lost."""
    assert not hasattr(llvm.LoadedCode, "__del__")
    ir = "define double @half(double %x) { %y = fmul double %x, 0.5\n ret double %y }"
    code = llvm.emit_object(ir, host_target())
    kept = llvm.LoadedCode(code, ("half",))
    before = len(llvm._mapped)
    for _ in range(5):
        llvm.LoadedCode(code, ("half",))
    assert len(llvm._mapped) <= before + 1 and any(owner() is kept for owner in llvm._mapped)


# ---- at every instruction


class Interrupting:
    """Calls `strike` at some instructions of this thread, counted from 0: where a signal's handler may run."""

    def __init__(self, at: set[int], strike: Callable[[], None]):
        self.at, self.strike, self.count = at, strike, 0

    def __enter__(self) -> Interrupting:
        sys.settrace(self._trace)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def _trace(self, frame: Any, event: str, arg: Any) -> Any:
        frame.f_trace = self._trace  # first: from Python 3.13 on the next line does nothing without
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self.count += 1
            if self.count - 1 in self.at:
                self.strike()
        return self._trace


def test_instructions_are_counted():
    def some_work() -> int:
        return sum([1, 2]) + 3

    with Interrupting(set(), strike) as none:
        some_work()
    with pytest.raises(KeyboardInterrupt), Interrupting({4}, strike) as some:
        some_work()
    assert 10 < none.count < 100 and some.count == 5


def sharing_at_every_instruction() -> None:
    """An interrupt at any instruction of handing over and waiting: it arrives, and nobody works on."""
    main, at_work = threading.get_ident(), []

    def kernel(inputs: Any, outputs: Any) -> None:
        if threading.get_ident() != main:
            at_work.append(1)
            time.sleep(0.0005)
            at_work.pop()

    def share() -> None:
        run_chunks(kernel, [], [np.zeros((2048, 1))], 2)

    share()
    with Interrupting(set(), strike) as whole:
        share()
    for k in range(whole.count + 20):
        faulthandler.dump_traceback_later(PATIENCE, exit=True)
        raised = False
        try:
            with Interrupting({k}, strike):
                share()
        except KeyboardInterrupt:
            raised = True
        sys.settrace(None)
        assert raised or k > 0.8 * whole.count, (k, whole.count)  # waiting takes more or fewer instructions
        assert not at_work, k
    faulthandler.dump_traceback_later(PATIENCE, exit=True)
    both, seen = threading.Barrier(2, timeout=PATIENCE), set()

    def together(inputs: Any, outputs: Any) -> None:
        both.wait()
        seen.add(threading.get_ident())

    run_chunks(together, [], [np.zeros((4096, 1))], 2)  # the pool still takes part
    assert len(seen) == 2


def test_an_interrupt_at_every_instruction_of_sharing():
    in_process(sharing_at_every_instruction, timeout=2 * PATIENCE)


def write_slowly(to: Path) -> None:
    with to.open("w") as file:
        for _ in range(3):
            file.write("half\n")
            file.flush()
    to.write_text("whole")


def files_at_many_instructions(folder: str, seed: int, signals: int, count: int) -> None:
    """Signals at random instructions of writing a file: there is the whole file, or there is nothing."""
    from linksweep.support.files import write_atomically

    top = Path(folder)
    target = top / "new" / "out.csv"
    with Interrupting(set(), strike) as whole:
        write_atomically(target, write_slowly)
    rng = random.Random(seed)
    written = stopped = 0
    for _ in range(count):
        target.unlink(missing_ok=True)
        if target.parent.exists():
            target.parent.rmdir()
        first = rng.randrange(whole.count)
        at = {first, *(first + rng.randrange(2000) for _ in range(signals - 1))}
        handler = signal.getsignal(signal.SIGINT)
        try:
            with Interrupting(at, strike):
                write_atomically(target, write_slowly)
        except KeyboardInterrupt:
            pass
        sys.settrace(None)
        try:
            strike()
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, handler)  # ours may be left in its place, and does no harm
        else:
            raise AssertionError("signals do not arrive any more")
        found = [path for path in top.rglob("*") if path.is_file()]
        if found:
            written += 1
            assert found == [target] and target.read_text() == "whole", (found, at)
        else:
            stopped += 1
            assert not target.parent.exists(), at
    assert written > count // 50 and stopped > count // 50, (written, stopped)


@pytest.mark.cases(1)
@pytest.mark.parametrize("signals", [1, 2, 3])
def test_signals_leave_no_half_file(signals: int, tmp_path: Path):
    in_process(files_at_many_instructions, str(tmp_path), signals, signals, 60, timeout=PATIENCE)


def forked_by_another_thread() -> None:
    """The main thread holds signals back while another one forks: in the child, where it is the main one, they come."""
    held, forked = threading.Event(), threading.Event()

    def fork() -> None:
        held.wait()
        child = os.fork()
        if child == 0:
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            try:
                strike()
            except KeyboardInterrupt:
                os._exit(0)
            os._exit(1)
        statuses.append(os.waitpid(child, 0)[1])
        forked.set()

    statuses: list[int] = []
    other = threading.Thread(target=fork)
    other.start()
    with Uninterrupted():
        held.set()
        forked.wait()
    other.join()
    assert statuses == [0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_child_of_another_thread_gets_its_signals():
    in_process(forked_by_another_thread, timeout=2 * PATIENCE)


def test_more_threads_than_anybody_has():
    compiled = robot("planar2").compile("inverse_dynamics", threads=10**9)
    args = samples(compiled, 100_000)
    assert same_bits(compiled(*args), robot("planar2").compile("inverse_dynamics")(*args))


def forked_by_a_handler() -> None:
    """The caller waits for another thread when a handler forks: the child does not wait for what it has not."""
    other_began, own_ended = threading.Event(), threading.Event()

    def kernel(inputs: Any, outputs: Any) -> None:
        if threading.get_ident() == threading.main_thread().ident:
            assert other_began.wait(PATIENCE)
            own_ended.set()
            return
        other_began.set()
        assert own_ended.wait(PATIENCE)
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGUSR1)
        while not children:
            time.sleep(0.01)

    children: list[int] = []
    signal.signal(signal.SIGUSR1, lambda *_: children.append(os.fork()))
    try:
        run_chunks(kernel, [], [np.zeros((1024, 1))], 2)
    except ls.BackendError as error:
        os._exit(0 if children == [0] and "forked during a call" in str(error) else 1)
    if children == [0]:
        os._exit(2)
    assert os.waitpid(children[0], 0)[1] == 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_in_the_midst_of_a_call():
    in_process(forked_by_a_handler)
