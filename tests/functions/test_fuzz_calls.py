"""Random calls, most of them wrong: each gives a linksweep error or the right answer, and leaves nothing behind.

What is right is decided here by NumPy alone: `expectation` converts and broadcasts, the interpreter computes. To repeat
a failing call: `LINKSWEEP_FUZZ_SEED=<seed> pytest tests/functions/test_fuzz_calls.py`; the failure names call and seed.
"""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
import pytest
from abuse_helpers import PATIENCE, in_process, interpreted, resident, results
from scale import at_scale

import linksweep as ls

PROCESSES = 4
MAPS = 64  # of 64 kB
SEED = int(os.environ.get("LINKSWEEP_FUZZ_SEED", "0"))
DTYPES = ("f8", "f4", "f8", "f4", "f2", ">f8", ">f4", "i8", "i4", "i2", "i1", "u8", "u1", "?", "g")
WRONG_DTYPES = ("c16", "c8", "O", "U3", "S2", "M8[s]", "m8[s]", "V8")
BATCHES = ((), (1,), (2,), (3,), (5,), (9,), (17,), (40,), (0,), (1, 1), (2, 3), (4, 1), (1, 5), (2, 0), (2, 1, 3))


class Duck:
    """Not an array, but something that makes one."""

    def __init__(self, array: Any):
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array


class Hostile:
    """Raises when it is made an array, or does not answer with one."""

    def __init__(self, answer: Any):
        self.answer = answer

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if isinstance(self.answer, type):
            raise self.answer("no")
        return self.answer


class Fuzzer:
    def __init__(self, seed: int, memory: Any):
        self.memory = memory  # a file to map
        self.mapped = 0
        self.rng = np.random.default_rng(seed)
        arm, three = ls.robots.planar(2), ls.robots.chain(3, joints="mixed")
        self.functions = [
            arm.compile("inverse_dynamics"),
            arm.compile("inverse_dynamics", dtype="float32"),
            arm.compile("inverse_dynamics", dtype="float64", threads=2),
            arm.compile("mass_matrix"),
            arm.compile(["mass_matrix", "gravity_forces"]),
            arm.compile("gravity_forces", rolled=True),
            arm.compile("inverse_dynamics", f_ext=True),
            arm.compile(("jacobian", "tool")),
            three.compile("gravity_forces"),
            arm.compile("gravity_forces", backend="interpreter"),
        ]

    # values

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def numbers(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            values = self.rng.uniform(-2, 2, shape)
            if np.dtype(dtype).kind == "u":
                values = abs(values)
            values = values.astype(dtype)
        if values.dtype.kind == "f" and values.size and self.chance(0.05):
            values.flat[int(self.rng.integers(values.size))] = self.pick((np.nan, np.inf, -np.inf))
        return values

    def layout(self, a: np.ndarray) -> Any:
        """The same numbers, standing otherwise in memory or wrapped in something else."""
        kind = int(self.rng.integers(16))
        if kind == 0:
            return np.asfortranarray(a)
        if kind == 1 and a.ndim:
            return a[::-1].copy()[::-1]
        if kind == 2 and a.ndim:
            return a[..., ::-1].copy()[..., ::-1]
        if kind == 3 and a.ndim:
            return np.repeat(a, 2, axis=0)[::2]
        if kind == 4 and a.ndim:
            return np.repeat(a, 2, axis=-1)[..., ::2]
        if kind == 5:
            raw = np.zeros(a.nbytes + 1, np.uint8)[1:]
            view = np.ndarray(a.shape, a.dtype, raw.data)
            view[...] = a
            return view
        if kind == 6:
            a.flags.writeable = False
        if kind == 7:
            return a.tolist()
        if kind == 8 and a.ndim:
            return tuple(a)
        if kind == 10:
            return Duck(a)
        if kind == 11 and 0 < a.nbytes <= 1 << 16:
            self.mapped = (self.mapped + 1) % MAPS  # NumPy cannot see that two maps of one place overlap
            view = np.memmap(self.memory, a.dtype, "r+", self.mapped << 16, a.shape)
            view[...] = a
            return view
        return a

    def argument(self, core: tuple[int, ...], batch: tuple[int, ...]) -> Any:
        if self.chance(0.93):
            return self.layout(self.numbers(batch + core, self.pick(DTYPES) if self.chance(0.4) else "f8"))
        n = core[-1]
        kind = int(self.rng.integers(18))
        if kind == 0:
            return self.numbers((*batch, *core[:-1], n + int(self.pick((-1, 1, 2, 5)))), "f8")
        if kind == 1:
            dtype = self.pick(WRONG_DTYPES)
            return np.zeros(batch + core, dtype)
        if kind == 2:
            return self.pick((None, "", "abc", b"xy", 1.5, 3, True, object(), {}, {1: 2}, {1}, [], (), slice(3), ...))
        if kind == 3:
            return [[1.0] * n, [1.0] * (n + 1)]
        if kind == 4:
            return [[1.0, [2.0]], None]
        if kind == 5:
            return np.float64(1.0)
        if kind == 6:
            return np.zeros((1,) * 30 + core)
        if kind == 7:
            return np.broadcast_to(np.zeros(core), (2**40, *core))
        if kind == 8:
            return np.broadcast_to(np.zeros(core, "f4"), (2**30, 2**10, *core))
        if kind == 9:
            return np.broadcast_to(np.zeros((0, *core)), (2**40, 0, *core))
        if kind == 10:
            return Hostile(self.pick((ValueError, TypeError, OverflowError, KeyError, None, 3.0, "abc")))
        if kind == 11:
            return np.zeros(batch + core, [("a", "f8")])
        if kind == 12:
            return [10**400] * n
        if kind == 13:
            return [1 + 2j] * n
        if kind == 14:
            return ["1.0"] * n
        if kind == 15:
            return np.zeros((*core, *batch, 7))
        if kind == 16:
            return iter([1.0] * n)
        return np.zeros(())

    def call(self) -> tuple[Any, list[Any], dict[str, Any]]:
        compiled = self.pick(self.functions)
        batch = self.pick(BATCHES)
        args = []
        for a in compiled.signature.inputs:
            own = batch
            if self.chance(0.2):
                own = self.pick(((), (1,) * len(batch), batch[1:], self.pick(BATCHES)))
            args.append(self.argument(a.shape, own))
        if len(args) > 1 and self.chance(0.05):
            args[1] = args[0]  # one object twice
        if self.chance(0.02):
            args = self.pick((args[:-1], [*args, args[0]], [], args * 2))
        keywords = {}
        if self.chance(0.3):
            keywords["out"] = self.out(compiled, args, batch)
        if self.chance(0.01):
            keywords[self.pick(("ouT", "q", "dtype", "method", "out "))] = None
        return compiled, args, keywords

    def out(self, compiled: Any, args: list[Any], batch: tuple[int, ...]) -> Any:
        arrays = []
        wanted = expectation(compiled, args, None)
        dtype = self.pick(("f8", "f4")) if isinstance(wanted, str) or self.chance(0.1) else wanted[0].dtype
        for k, a in enumerate(compiled.signature.outputs):
            shape = batch + a.shape if isinstance(wanted, str) else wanted[k].shape
            kind = int(self.rng.integers(14))
            array: Any = np.full(shape, 7.0, dtype)
            if kind == 0:
                array = np.zeros((*shape, 1), dtype)
            elif kind == 1:
                array.flags.writeable = False
            elif kind == 2:
                array = np.zeros((*shape[:-1], 2 * shape[-1]), dtype)[..., ::2]
            elif kind == 3:
                array = np.asfortranarray(array)
            elif kind == 4 and isinstance(args[0] if args else None, np.ndarray):
                array = args[0]  # the input itself
            elif kind == 5 and args and isinstance(args[0], np.ndarray) and args[0].flags.writeable:
                array = args[0][..., ::-1] if args[0].ndim else args[0]
            elif kind == 6:
                array = array.astype(self.pick((">f8", "i8", "c16", "O", "f2")))
            elif kind == 7:
                array = self.pick(("out", 3, [1.0], [[1.0, 2.0]], object()))
            elif kind == 8:
                array = np.lib.stride_tricks.as_strided(array, shape, (0,) * len(shape))  # on top of one another
            elif kind == 9:
                array = np.zeros((*shape[:-1], shape[-1] + 3), dtype)[..., : shape[-1]]
            arrays.append(array)
        if len(arrays) == 1:
            return arrays[0]
        return self.pick((tuple(arrays), arrays, tuple(arrays), arrays[0], tuple(arrays[:1]), (arrays[0], arrays[0])))


def expectation(compiled: Any, args: list[Any], out: Any) -> list[np.ndarray] | str:
    """The right results, or why the call must be refused; slow, by NumPy's own rules."""
    signature = compiled.signature
    if len(args) != len(signature.inputs):
        return "number of arguments"
    arrays = []
    for a, value in zip(signature.inputs, args, strict=True):
        try:
            array = np.asarray(value)
        except Exception:
            return "no array"
        if array.dtype.kind not in "fiub":
            return f"type {array.dtype}"
        if array.ndim < len(a.shape) or array.shape[array.ndim - len(a.shape) :] != a.shape:
            return f"shape {array.shape}"
        arrays.append(array)
    cores = [a.shape for a in signature.inputs]
    batches = [array.shape[: array.ndim - len(core)] for array, core in zip(arrays, cores, strict=True)]
    if 0 not in (n for b in batches for n in b) and max(float(np.prod(b, dtype=float)) for b in batches) > 2**30:
        return "too large"
    try:
        batch = np.broadcast_shapes(*batches)
    except ValueError:
        return f"batches {batches}"
    dtype = np.dtype(compiled.dtype or np.result_type(*arrays))
    if not compiled.dtype:
        dtype = np.dtype("f4" if dtype.kind == "f" and dtype.itemsize <= 4 else "f8")
    count = int(np.prod(batch))
    if 0 in batch:
        found = [np.empty((0, *a.shape)) for a in signature.outputs]
    else:
        with np.errstate(all="ignore"):
            rounded = [np.asarray(a, dtype).astype("f8") for a in arrays]
        full = [np.broadcast_to(a, batch + core).reshape(count, *core) for a, core in zip(rounded, cores, strict=True)]
        found = interpreted(compiled, full)
    with np.errstate(all="ignore"):
        wanted = [y.astype(dtype).reshape(batch + a.shape) for y, a in zip(found, signature.outputs, strict=True)]
    return wanted if out is None else wanted_out(wanted, out)


def wanted_out(wanted: list[np.ndarray], out: Any) -> list[np.ndarray] | str:
    if len(wanted) > 1 and not (isinstance(out, tuple | list) and len(out) == len(wanted)):
        return "out is no tuple"
    given: list[Any] = list(out) if len(wanted) > 1 else [out]
    for array, y in zip(given, wanted, strict=True):
        if not isinstance(array, np.ndarray) or array.shape != y.shape or array.dtype != y.dtype:
            return "out's type or shape"
        if not array.flags.writeable:
            return "out is read-only"
        if array.size > 1 and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True)):
            return "out overlaps itself"
    if len(given) > 1 and given[0].size and np.shares_memory(given[0], given[1]):
        return "outs overlap"
    return wanted


def check(found: Any, wanted: list[np.ndarray]) -> None:
    for x, y in zip(results(found), wanted, strict=True):
        assert type(x) is np.ndarray or isinstance(x, np.ndarray), type(x)
        assert x.shape == y.shape and x.dtype == y.dtype, (x.shape, x.dtype, y.shape, y.dtype)
        if not y.size:
            continue
        assert np.array_equal(np.isnan(x), np.isnan(y)), (x, y)
        tolerance = 1e-10 if x.dtype == np.float64 else 1e-3
        difference = np.abs(np.nan_to_num(x).astype("f8") - np.nan_to_num(y))
        assert difference.max() <= tolerance * max(1.0, float(np.abs(np.nan_to_num(y)).max())), (x, y)


def attempt(compiled: Any, args: list[Any], keywords: dict[str, Any]) -> tuple[Any, str]:
    """What the call returned, and the message of its error."""
    try:
        return compiled(*args, **keywords), ""
    except ls.LinksweepError as error:
        text = str(error)
        assert text.strip() and "\n" not in text and len(text) < 2000, text
        return None, text
    except TypeError as error:
        assert any(name != "out" for name in keywords), error
        return None, str(error)


def verify(found: Any, message: str, wanted: Any, args: list[Any], kept: list[Any], keywords: dict[str, Any]) -> None:
    out = keywords.get("out")
    if isinstance(wanted, str) or any(name != "out" for name in keywords):
        assert message, ("not refused", wanted, args, keywords)
    else:
        assert not message, ("refused", message, args, keywords)
        check(found, wanted)
        assert out is None or found is out
        for result in results(found) if out is None else ():
            assert not any(
                np.may_share_memory(result, a) for a in args if isinstance(a, np.ndarray) and a.size < 10_000
            )
    overwritten = [array for array in results(out) if isinstance(array, np.ndarray)]
    for array, copy in zip(args, kept, strict=True):
        if copy is not None and not any(np.may_share_memory(array, o) for o in overwritten):
            assert array.tobytes() == copy.tobytes(), "an input was changed"


def one_call(fuzzer: Fuzzer) -> str:
    compiled, args, keywords = fuzzer.call()
    kept = [a.copy() if type(a) is np.ndarray and a.size < 10_000 else None for a in args]
    wanted = expectation(compiled, args, keywords.get("out"))
    held = [
        value for value in (*args, *keywords.values()) if isinstance(value, np.ndarray | list | tuple | Duck | Hostile)
    ]
    before = list(map(sys.getrefcount, held))
    found, message = attempt(compiled, args, keywords)
    verify(found, message, wanted, args, kept, keywords)
    del found
    assert list(map(sys.getrefcount, held)) == before, ("references", args, keywords)
    return "refused" if message else "answered"


def fuzz(seed: int, calls: int) -> None:
    np.seterr(all="ignore")
    with tempfile.TemporaryFile() as memory:
        memory.truncate(MAPS << 16)
        fuzzer = Fuzzer(seed, memory)
        for compiled in fuzzer.functions:
            compiled.kernel("float64")
            compiled.kernel("float32")
        limit = 8 << 30  # arrays that cannot be must fail, whatever the system would grant
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        tally = {"refused": 0, "answered": 0}
        start = 0.0
        for k in range(calls):
            if k == calls // 5:
                gc.collect()
                start = resident()
            try:
                tally[one_call(fuzzer)] += 1
            except BaseException:
                print(f"call {k} of seed {seed}")
                raise
    gc.collect()
    assert resident() - start < 8, (start, resident())
    assert tally["refused"] > calls // 20 and tally["answered"] > calls // 4, tally
    print("calls", calls, tally)


NAMES = (
    "newton_euler",
    "filter_smoother",
    "composite",
    "",
    "x" * 300,
    "newton euler",
    None,
    3,
    [],
    {},
    b"tool",
    "tool",
)
FRAMES = ("tool", "link1", "link2", "base", "Tool", "", None, 7, ["tool"], ("tool",), {"tool": 1}, np.zeros(2), "\n")


def method_call(fuzzer: Fuzzer, arm: ls.Robot) -> None:
    """A method of the robot with wild options: a linksweep error, or an array of the right shape."""
    batch = fuzzer.pick(BATCHES)
    q, qd, qdd = (fuzzer.argument((2,), batch) for _ in range(3))
    options: dict[str, Any] = {}
    if fuzzer.chance(0.5):
        options["method"] = fuzzer.pick(NAMES)
    if fuzzer.chance(0.3):
        options["f_ext"] = fuzzer.argument((2, 6), batch)
    elif fuzzer.chance(0.4):
        frames = [f for f in (fuzzer.pick(FRAMES) for _ in range(int(fuzzer.rng.integers(3)))) if f.__hash__]
        options["f_ext"] = {frame: fuzzer.argument((6,), fuzzer.pick((batch, ()))) for frame in frames}
    if fuzzer.chance(0.2):
        options["dissipation"] = fuzzer.pick((True, False, None, 1))
    frame = fuzzer.pick(FRAMES)
    calls = (
        (lambda: arm.inverse_dynamics(q, qd, qdd, **options), (2,)),
        (lambda: arm.forward_dynamics(q, qd, qdd, **options), (2,)),
        (lambda: arm.mass_matrix(q, method=options.get("method", "composite")), (2, 2)),
        (lambda: arm.pose(q, frame), (4, 4)),
        (lambda: arm.jacobian(q, frame), (6, 2)),
    )
    call, core = fuzzer.pick(calls)
    try:
        found = call()
    except ls.LinksweepError as error:
        assert "\n" not in str(error), str(error)
    else:
        assert type(found) is np.ndarray and found.shape[found.ndim - len(core) :] == core


def fuzz_methods(seed: int, calls: int) -> None:
    np.seterr(all="ignore")
    with tempfile.TemporaryFile() as memory:
        memory.truncate(MAPS << 16)
        fuzzer = Fuzzer(seed, memory)
        arm = ls.robots.planar(2)
        limit = 8 << 30
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for k in range(calls):
            try:
                method_call(fuzzer, arm)
            except BaseException:
                print(f"call {k} of seed {seed}")
                raise
            if k == calls // 5:
                start = resident()
    gc.collect()
    assert resident() - start < 8, (start, resident())


@pytest.mark.slow
def test_random_calls_of_methods():
    in_process(fuzz_methods, SEED, at_scale(3000, 8000))


@pytest.mark.slow
@pytest.mark.parametrize("calls", [at_scale(2_000, 5_000), at_scale(8_000, 25_000)])
def test_random_calls_in_four_processes(calls: int):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    running = []
    for k in range(PROCESSES):
        code = f"import test_fuzz_calls as t; t.fuzz({SEED + k}, {calls})"
        command = [sys.executable, "-X", "faulthandler", "-W", "error", "-c", code]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": environment}
        running.append(subprocess.Popen(command, **pipes))
    printed = [process.communicate(timeout=2 * PATIENCE)[0] for process in running]
    assert [process.returncode for process in running] == [0] * PROCESSES, "\n".join(printed)
