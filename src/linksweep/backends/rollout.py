"""Many steps in one call: a loop in machine code around a kernel whose first results are its next first inputs.

    void rollout(ptr kernel, i64 n, i64 records, i64 every, ptr bases, ptr rows, ptr advances, ptr scratch,
                 ptr in_strides, ptr out_strides, ptr work, ptr counter, i64 block)

A kernel of states, feeds -> states, results is called records * every times. States and results are recorded at every
`every`-th step: the state before the step, and the results of the step. In between they are in `scratch`. Feeds advance
at every step. `bases` (inputs, then outputs) are addresses of the first record; `rows` and `advances` are bytes per
sample and per record, or per step for feeds.

Threads that call it on the same arrays take blocks of samples by a shared counter, as those of a kernel do; each
computes all steps of its samples. The kernel must read all inputs of a sample before it writes a result, as unrolled
programs do, so that a state may overwrite itself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import BackendError
from ..support.lazy import Once
from .entry import data_address
from .llvm import Addresses, Integers, LoadedCode, MachineKernel, aligned, emit_object
from .target import host_target
from .threads import run_shared

STATES = 2
_BLOCK = 64  # samples: whole lanes, whose states stay in the first cache
_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 8, ctypes.c_int64)


@dataclass(frozen=True, slots=True)
class Feed:
    """An input that is known beforehand.

    values: (time steps, n or 1, size). first: index that the first step reads. advance: indices per step.
    """

    values: np.ndarray
    first: int = 0
    advance: int = 0

    def at(self, step: int) -> np.ndarray:
        return self.values[self.first + self.advance * step]


@dataclass(frozen=True, slots=True)
class Recording:
    """States (records + 1, n, size), whose first record is the initial state, and results of the same length.

    Each record is contiguous; records may have any stride, also a negative one.
    """

    states: Sequence[np.ndarray]
    results: Sequence[np.ndarray]
    every: int

    def __post_init__(self):
        arrays = (*self.states, *self.results)  # machine code does not check them
        alike = {(x.ndim, x.shape[:2], x.dtype) for x in arrays}
        if (
            len(self.states) != STATES or len(alike) != 1 or arrays[0].ndim != 3
            or not all(x[0].flags.c_contiguous for x in arrays)
        ):  # fmt: skip
            raise BackendError("the arrays of a rollout do not have the same shape and type: please report this.")

    @property
    def count(self) -> int:
        return self.states[0].shape[1]


def staying(x: np.ndarray, records: int) -> np.ndarray:
    """Return a view of a state (n, size) as `records` records in the same memory, if only the last is needed."""
    return np.lib.stride_tricks.as_strided(x, (records, *x.shape), (0, *x.strides))


def run(
    kernel: Callable[..., None], recording: Recording, feeds: Sequence[Feed], first: int, last: int, threads: int
) -> None:
    """Compute the records first + 1 ... last of the states, and first ... last - 1 of the results."""
    if not recording.count or first == last:
        return
    if isinstance(kernel, MachineKernel):
        _run_machine(kernel, recording, feeds, first, last, threads)
    else:
        _run_python(kernel, recording, feeds, first, last)


def _run_python(
    kernel: Callable[..., None], recording: Recording, feeds: Sequence[Feed], first: int, last: int
) -> None:
    """Run the loop in Python, around any kernel."""
    spare = [np.empty_like(x[0]) for x in recording.results]
    for record in range(first, last):
        states = [x[record].copy() for x in recording.states]  # the next record may overwrite it
        for j in range(recording.every):
            final = j + 1 == recording.every
            after = [x[record + 1] if final else np.empty_like(x[0]) for x in recording.states]
            results = [x[record] for x in recording.results] if j == 0 else spare
            step = record * recording.every + j
            kernel([*states, *(feed.at(step) for feed in feeds)], [*after, *results])
            states = after


def _run_machine(
    kernel: MachineKernel, recording: Recording, feeds: Sequence[Feed], first: int, last: int, threads: int
) -> None:
    every, block = recording.every, min(_BLOCK, -(-recording.count // (8 * threads)) * 8)
    start = [feed.values[feed.first + feed.advance * first * every :] for feed in feeds]
    inputs = [*(x[first:] for x in recording.states), *start]
    outputs = [*(x[first + 1 :] for x in recording.states), *(x[first:] for x in recording.results)]
    share = _SharedRollout(kernel, inputs, outputs, [feed.advance for feed in feeds], (last - first, every, block))
    run_shared(share, min(threads, -(-recording.count // block)))


class _SharedRollout:
    """A rollout in machine code over one batch, a `SharedWork` (threads.py).

    inputs, outputs: (records or time steps, samples, size), from the first record on. counts: records, steps per
    record, samples per block.
    """

    def __init__(
        self, kernel: MachineKernel, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray],
        feed_advances: Sequence[int], counts: tuple[int, int, int],
    ):  # fmt: skip
        arrays = [*inputs, *outputs]
        self._owned = kernel, arrays  # keeps alive the code and the arrays behind the addresses below
        self._kernel, self._outputs, self._feeds = kernel, outputs, len(feed_advances)
        self._count, self._counts = outputs[0].shape[1], counts
        self._driver = _driver(len(inputs), len(outputs))
        shared = [k for k, x in enumerate(inputs) if x.shape[1] == 1 and self._count != 1]
        moments = [1] * STATES + [*feed_advances] + [1] * len(outputs)
        self._places = (
            _pointers([data_address(x) for x in arrays]),
            _integers([0 if k in shared else x[0].nbytes // x.shape[1] for k, x in enumerate(arrays)]),
            _integers([m * x.strides[0] for m, x in zip(moments, arrays, strict=True)]),
        )
        self._strides = (
            _integers([0 if k in shared else x.shape[2] for k, x in enumerate(inputs)]),
            _integers([x.shape[2] for x in outputs]),
        )
        self._counter = ctypes.c_int64(0)

    def run(self) -> None:
        records, every, block = self._counts
        scratch = [np.empty((block, x.shape[2]), x.dtype) for x in self._outputs]
        held = [data_address(x) for x in scratch]
        places = _pointers([*held[:STATES], *[None] * self._feeds, *held])
        work, place = aligned(self._kernel.workspace)
        self._driver.function(
            self._kernel.address("kernel"), self._count, records, every, *self._places, places,
            *self._strides, place, ctypes.addressof(self._counter), block,
        )  # fmt: skip
        del work, scratch  # they had to live until here

    def stop(self) -> None:
        self._counter.value = self._count


def _pointers(addresses: Sequence[int | None]) -> Addresses:
    return (ctypes.c_void_p * len(addresses))(*addresses)


def _integers(values: Sequence[int]) -> Integers:
    return (ctypes.c_int64 * len(values))(*values)


class _Driver:
    """Loaded machine code of the loop, which does not depend on the robot."""

    def __init__(self, ir: str):
        self._code = LoadedCode(emit_object(ir, host_target()), ("rollout",))
        self.function = _FUNCTION(self._code["rollout"])


_drivers: Once[_Driver] = Once()


def _driver(inputs: int, outputs: int) -> _Driver:
    return _drivers.made((inputs, outputs), lambda: _Driver(rollout_ir(inputs, outputs)))


def rollout_ir(inputs: int, outputs: int) -> str:
    """Return the IR of the loop, for a kernel with these numbers of inputs and outputs."""
    arrays = range(inputs + outputs)
    lines = [
        "define void @rollout(ptr %kernel, i64 %n, i64 %records, i64 %every, ptr %bases, ptr %rows, ptr %advances, "
        "ptr %scratch, ptr %in_strides, ptr %out_strides, ptr %work, ptr %counter, i64 %block) {",
        "entry:",
        f"  %in = alloca [{inputs} x ptr]",
        f"  %out = alloca [{outputs} x ptr]",
        "  %own = alloca i64",
    ]
    for k in arrays:
        for name, kind in (("bases", "ptr"), ("rows", "i64"), ("advances", "i64"), ("scratch", "ptr")):
            lines += [
                f"  %{name}.at{k} = getelementptr {kind}, ptr %{name}, i64 {k}",
                f"  %{name}{k} = load {kind}, ptr %{name}.at{k}",
            ]
        side, place = ("in", k) if k < inputs else ("out", k - inputs)
        lines.append(f"  %slot{k} = getelementptr ptr, ptr %{side}, i64 {place}")
    lines += [
        "  br label %take",
        "take:",
        "  %from = atomicrmw add ptr %counter, i64 %block monotonic",
        "  %left = icmp slt i64 %from, %n",
        "  br i1 %left, label %span, label %done",
        "span:",
        "  %rest = sub i64 %n, %from",
        "  %whole = icmp slt i64 %block, %rest",
        "  %count = select i1 %whole, i64 %block, i64 %rest",
    ]
    for k in arrays:
        lines += [
            f"  %skipped{k} = mul i64 %from, %rows{k}",
            f"  %mine{k} = getelementptr i8, ptr %bases{k}, i64 %skipped{k}",
        ]
    lines += [
        "  br label %record",
        "record:",
        "  %r = phi i64 [ 0, %span ], [ %r.next, %recorded ]",
        "  br label %step",
        "step:",
        "  %j = phi i64 [ 0, %record ], [ %j.next, %step ]",
        "  %first = icmp eq i64 %j, 0",
        "  %j.next = add i64 %j, 1",
        "  %final = icmp eq i64 %j.next, %every",
        "  %begun = mul i64 %r, %every",
        "  %s = add i64 %begun, %j",
    ]
    for k in arrays:
        is_feed = STATES <= k < inputs
        kept = "%final" if inputs <= k < inputs + STATES else "%first"
        lines += [
            f"  %way{k} = mul i64 {'%s' if is_feed else '%r'}, %advances{k}",
            f"  %there{k} = getelementptr i8, ptr %mine{k}, i64 %way{k}",
        ]
        if not is_feed:
            lines.append(f"  %place{k} = select i1 {kept}, ptr %there{k}, ptr %scratch{k}")
        lines.append(f"  store ptr %{'there' if is_feed else 'place'}{k}, ptr %slot{k}")
    lines += [
        "  store i64 0, ptr %own",
        "  call void %kernel(i64 %count, ptr %in, ptr %in_strides, ptr %out, ptr %out_strides, ptr %work, ptr %own, "
        "i64 %count)",
        "  br i1 %final, label %recorded, label %step",
        "recorded:",
        "  %r.next = add i64 %r, 1",
        "  %more = icmp slt i64 %r.next, %records",
        "  br i1 %more, label %record, label %take",
        "done:",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)
