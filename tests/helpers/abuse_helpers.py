"""What the abuse tests share: code that runs in another process, memory between guard pages, robots of any size.

A crash of generated machine code ends the process it happens in, so whatever might crash is a module-level function
that `in_process` runs in a new one: a signal is then a failed test with a traceback.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import linksweep as ls
from linksweep.backends.interpreter import Interpreter
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint, Placement

SIMD = ("", "avx2", "sse2")  # settings of LINKSWEEP_SIMD that any x86-64 host can run; "" is the host's own
PAGE = mmap.PAGESIZE
PATIENCE = 900  # seconds: what takes longer hangs, also on a machine that has much else to do


@contextlib.contextmanager
def interrupted(seconds: float) -> Iterator[None]:
    """Ctrl-C after `seconds` of this process's processor time."""
    before = signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def in_process(function: Callable[..., None], *args: Any, timeout: float = PATIENCE, **environment: Any) -> str:
    """Run a module-level function of a test module in a new process; what it printed. A crash is a failed test."""
    call = f"import {function.__module__} as m; m.{function.__qualname__}(*{args!r})"
    return run_python(call, timeout=timeout, **environment)


def run_python(code: str, *, timeout: float = PATIENCE, **environment: Any) -> str:
    """Run code in a new process that can import the test modules; what it printed."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", f"import sys\n{code}"],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment},
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert not done.stderr, done.stderr
    return done.stdout


def resident() -> float:
    """Megabytes of memory that this process has resident."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 2**20


class Guarded:
    """Memory between two pages that nobody may touch, for an array at its very end or at its very beginning."""

    PATTERN = 0x5A

    def __init__(self, nbytes: int):
        inside = -(-nbytes // PAGE) * PAGE
        self.memory = mmap.mmap(-1, inside + 2 * PAGE)
        self.bytes = np.frombuffer(self.memory, np.uint8)[PAGE : PAGE + inside]
        address = self.bytes.__array_interface__["data"][0]
        mprotect = ctypes.CDLL(None, use_errno=True).mprotect
        mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        for guard in (address - PAGE, address + inside):
            assert mprotect(guard, PAGE, 0) == 0, os.strerror(ctypes.get_errno())

    def place(self, shape: tuple[int, ...], dtype: Any, stride: int, at_end: bool) -> np.ndarray:
        """An array whose rows (of the last axes) are `stride` elements apart, flush against a guard page.

        All around it, and between its rows, stands a pattern.
        """
        dtype = np.dtype(dtype)
        rows, size = shape[0], int(np.prod(shape[1:]))
        length = ((rows - 1) * stride + size) * dtype.itemsize
        self.bytes[:] = self.PATTERN
        start = len(self.bytes) - length if at_end else 0
        flat = self.bytes[start : start + length].view(dtype)
        inner = np.empty(shape[1:], dtype).strides
        strides = (stride * dtype.itemsize, *inner)
        array = np.lib.stride_tricks.as_strided(flat, shape, strides)
        self.used = np.zeros(len(self.bytes), bool)
        for row in range(rows):
            first = start + row * stride * dtype.itemsize
            self.used[first : first + size * dtype.itemsize] = True
        return array

    def untouched(self) -> bool:
        """Whether every byte outside the array's elements is as `place` left it."""
        return bool((self.bytes[~self.used] == self.PATTERN).all())


def robot(name: str) -> ls.Robot:
    """A robot by a short name: "puma560", "planar3", "chain7", "mixed5", "tree8"."""
    if name == "puma560":
        return ls.robots.puma560()
    kind, count = name.rstrip("0123456789"), int(name[len(name.rstrip("0123456789")) :])
    if kind == "planar":
        return ls.robots.planar(count)
    if kind == "tree":
        return tree(count)
    return ls.robots.chain(count, seed=count, joints="mixed" if kind == "mixed" else "R")


def tree(count: int, seed: int = 3) -> ls.Robot:
    """A branched robot: each link hangs on a random earlier one, every third joint slides."""
    rng = np.random.default_rng(seed)
    parts = []
    for i in range(count):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        turn *= np.linalg.det(turn)
        square = rng.normal(size=(3, 3))
        spread = square @ square.T + 0.3 * np.eye(3)  # second moments, so that the inertia is a body's
        body = Inertial(rng.uniform(1, 3), _tuple(rng.normal(size=3)), _rows(np.trace(spread) * np.eye(3) - spread))
        joint = Joint(
            f"joint{i}",
            "prismatic" if i % 3 == 2 else "revolute",
            _tuple(np.array([0.0, 0.6, 0.8])),
            Placement(_rows(turn), _tuple(rng.normal(size=3))),
            damping=0.3,
            friction=0.2,
        )
        parent = f"link{rng.integers(max(0, i - 3), i)}" if i else "base"
        parts.append(Part(f"link{i}", parent, joint, body))
    parts.append(
        Part("tool", f"link{count - 1}", Joint("mount", "fixed", placement=Placement(position=(0.1, 0.2, 0.3))))
    )
    return ls.Robot(assemble(f"tree{count}", parts, base="base", gravity=(0.1, -0.2, -9.81)))


def _tuple(vector: np.ndarray) -> tuple[float, float, float]:
    x, y, z = vector.tolist()
    return (x, y, z)


def _rows(matrix: np.ndarray) -> Any:
    return tuple(map(_tuple, matrix))


def function(arm: ls.Robot, wanted: str, **options: Any) -> Any:
    """A compiled function by a short name; "d_" asks for a derivative by q, "frames" and "several" for more."""
    if wanted.startswith("d_"):
        return function(arm, wanted[2:], **options).derivative("q")
    if wanted == "several":
        return arm.compile(["mass_matrix", "bias_forces", ("jacobian", "tool"), "gravity_forces"], **options)
    if wanted == "several_rolled":
        return arm.compile(["forward_dynamics", "mass_matrix", ("pose", "tool")], rolled=True, **options)
    if wanted == "inverse_with_forces":
        return arm.compile("inverse_dynamics", f_ext=True, dissipation=True, **options)
    if wanted.endswith("_rolled"):
        return function(arm, wanted[:-7], rolled=True, **options)
    return arm.compile((wanted, "tool") if wanted in ("jacobian", "pose") else wanted, **options)


def samples(compiled: Any, count: int, dtype: Any = "float64", seed: int = 0) -> list[np.ndarray]:
    """Random inputs of a compiled function, each (count, ...)."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(-2, 2, (count, *a.shape)).astype(dtype) for a in compiled.signature.inputs]


def interpreted(compiled: Any, args: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results in float64 of the interpreter, called directly: nothing of the call's preparation is shared."""
    count = len(args[0])
    inputs = [np.ascontiguousarray(a, "float64").reshape(count, -1) for a in args]
    outputs = [np.empty((count, int(np.prod(a.shape)))) for a in compiled.signature.outputs]
    Interpreter(compiled.program)(inputs, outputs)
    return [y.reshape(count, *a.shape) for y, a in zip(outputs, compiled.signature.outputs, strict=True)]


def results(value: Any) -> list[np.ndarray]:
    return list(value) if isinstance(value, tuple | list) else [value]


def same_bits(a: Any, b: Any) -> bool:
    """Whether arrays are equal to the bit; any NaN equals any other."""
    return all(
        x.dtype == y.dtype and x.shape == y.shape and np.array_equal(x, y, equal_nan=True)
        and np.array_equal(np.signbit(x[~np.isnan(x)]), np.signbit(y[~np.isnan(y)]))
        for x, y in zip(results(a), results(b), strict=True)
    )  # fmt: skip


def close(found: Any, expected: Any, tolerance: float) -> None:
    """Each sample within the tolerance of its largest entry."""
    for x, y in zip(results(found), results(expected), strict=True):
        assert x.shape == y.shape, (x.shape, y.shape)
        axes = tuple(range(1, y.ndim))
        scale = np.maximum(np.abs(y).max(axis=axes, keepdims=True), 1.0)
        error = np.abs(x.astype("float64") - y) / scale
        assert error.max() <= tolerance, error.max()
