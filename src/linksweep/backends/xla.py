"""Kernels as handlers of XLA's foreign functions, which JAX calls without a compiler and without Python.

    ptr handler(ptr frame)        returns null on success, else an error for XLA

The fields of the frame are read at the offsets of XLA's C interface, version 0.1. All types and shapes are checked
before anything is read or written.

`handler_ir` is the handler of a kernel. Buffers may have leading axes besides those of one sample, each of full
length or 1; with length 1 all samples of that axis share the row (stride 0, nothing is copied). `rollout_handler_ir`
is the handler of many steps, around the loop of rollout.py.

Large batches run in the threads of XLA's own pool, so that JAX's settings determine their number. A job is memory
from malloc that begins with four integers: its owners (1), the counter that blocks are taken from, the pool threads
that work on it (0), and the number of samples. The rest is for `i1 part(ptr job)`, which each handler defines by
`part_ir`: it takes blocks until none is left, and returns false if it has no memory to begin. The calling thread
works too, and waits only for threads that have begun. A task that the pool begins later finds no block left and looks
at nothing but the job. Whoever leaves the job last frees it. xla.ll has the functions that do not depend on the
kernel.

Pages of large results are new: Linux is asked for large pages there, as NumPy asks for its arrays, because page
faults of 4 KiB take as long as the dynamics do.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from .rollout import _BLOCK, rollout_ir
from .target import ll_text, symbol_addresses
from .threads import SHARE, block_size

TYPES = {"float32": 11, "float64": 12}
_EXECUTE = 3  # the stage in which a handler runs
_INVALID_ARGUMENT, _RESOURCE_EXHAUSTED = 3, 8
POOLED = 20e3  # ns of work for each thread, at least. They look for work a while before they sleep: 2,048 samples
# of UR5's forward dynamics take 47 us in one thread and 29 us in two; after a pause both take 140
HEAD = 32  # bytes of a job before the data of `part`
_WHOLE_API = 152  # bytes of XLA's table of functions if it has the two of the pool
_LOOKS = 200  # checks of whether threads have ended, before sleeping
_LARGE = 1 << 22  # bytes of a result for which large pages are asked
_HUGE_PAGES = 14  # MADV_HUGEPAGE of Linux
_LIBC = ("malloc", "free", "memcpy", "madvise", "sched_yield", "usleep")


def common_ir() -> str:
    """Return the IR of the functions that all handlers share."""
    large = _LARGE if sys.platform == "linux" else 2**63 - 1
    return ll_text("xla.ll", LARGE=large, HUGE_PAGES=_HUGE_PAGES, WHOLE_API=_WHOLE_API, LOOKS=_LOOKS)


def handler_symbols() -> dict[str, int]:
    """Return the addresses that handlers need, in this process."""
    return symbol_addresses(ctypes.CDLL(None), _LIBC)


def part_ir(workspace: int, work: Sequence[str]) -> list[str]:
    """Return the IR of `part` around the lines `work`, which use %job, %counter, and %work, the thread's workspace."""
    return [
        "define internal i1 @part(ptr %job) {",
        f"  %memory = call ptr @malloc(i64 {workspace + 64})",
        "  %none = icmp eq ptr %memory, null",
        "  br i1 %none, label %poor, label %go",
        "poor:",
        "  ret i1 false",
        "go:",
        "  %address = ptrtoint ptr %memory to i64",
        "  %below = sub i64 0, %address",
        "  %pad = and i64 %below, 63",
        "  %work = getelementptr i8, ptr %memory, i64 %pad",
        "  %counter = getelementptr i64, ptr %job, i64 1",
        *work,
        "  call void @free(ptr %memory)",
        "  ret i1 true",
        "}",
    ]


def handler_ir(
    name: str, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]], dtype: str, cost: float,
    workspace: int,
) -> str:  # fmt: skip
    """Return the IR of `handler` for a kernel.

    inputs, outputs: shapes of one sample. cost: nanoseconds per sample. workspace: bytes.
    """
    scalar = "float" if dtype == "float32" else "double"
    shapes = [*(("arg", k, s) for k, s in enumerate(inputs)), *(("ret", k, s) for k, s in enumerate(outputs))]
    tables = {"in": len(inputs), "in_strides": len(inputs), "out": len(outputs), "out_strides": len(outputs)}
    lines = [
        common_ir(),
        *part_ir(workspace, _blocks(tables, cost)),
        message_ir(f"{name}: a buffer has another type or shape than {dtype} of the sizes that it was compiled for."),
        "define ptr @handler(ptr %frame) {",
        "entry:",
        *(f"  %{side} = alloca [{max(len(s), 1)} x ptr]" for side, s in (("in", inputs), ("out", outputs))),
        *(f"  %{side}_strides = alloca [{max(len(s), 1)} x i64]" for side, s in (("in", inputs), ("out", outputs))),
        "  %counter = alloca i64",
        *opening(len(inputs), len(outputs)),
    ]
    lines += [
        f"  %b = sub i64 %ret0_rank, {len(outputs[0])}",
        "  %b_ok = icmp sge i64 %b, 0",
        "  br i1 %b_ok, label %check0, label %refuse",
    ]
    for number, (side, k, shape) in enumerate(shapes):
        a = f"{side}{k}"
        lines += [
            f"check{number}:",
            f"  %{a}_type_ok = icmp eq i32 %{a}_type, {TYPES[dtype]}",
            f"  %{a}_core = add i64 %b, {len(shape)}",
            f"  %{a}_rank_ok = icmp eq i64 %{a}_rank, %{a}_core",
            f"  %{a}_ok = and i1 %{a}_type_ok, %{a}_rank_ok",
            f"  br i1 %{a}_ok, label %{a}_shape, label %refuse",
            f"{a}_shape:",
            f"  %{a}_kind = call i64 @leading(ptr %{a}_dims, ptr %ret0_dims, i64 %b)",
            f"  %{a}_good = icmp {'eq' if side == 'ret' else 'ne'} i64 %{a}_kind, {2 if side == 'ret' else 0}",
        ]
        good = f"%{a}_good"
        for axis, length in enumerate(shape):
            lines += [
                f"  %{a}_i{axis} = add i64 %b, {axis}",
                f"  %{a}_p{axis} = getelementptr i64, ptr %{a}_dims, i64 %{a}_i{axis}",
                f"  %{a}_d{axis} = load i64, ptr %{a}_p{axis}",
                f"  %{a}_e{axis} = icmp eq i64 %{a}_d{axis}, {length}",
                f"  %{a}_g{axis} = and i1 {good}, %{a}_e{axis}",
            ]
            good = f"%{a}_g{axis}"
        following = f"check{number + 1}" if number + 1 < len(shapes) else "sizes"
        lines.append(f"  br i1 {good}, label %{following}, label %refuse")
    lines += ["sizes:", "  %total = call i64 @product(ptr %ret0_dims, i64 %b)"]
    flat = "true"
    for k in range(len(inputs)):  # one call for all samples, unless some axis of an argument is shared and another not
        lines += [f"  %flat{k}_mixed = icmp ne i64 %arg{k}_kind, 3", f"  %flat{k} = and i1 {flat}, %flat{k}_mixed"]
        flat = f"%flat{k}"
    lines += [
        "  %single = icmp slt i64 %b, 2",
        f"  %simple = or i1 %single, {flat}",
        "  %before = sub i64 %b, 1",
        "  %lastp = getelementptr i64, ptr %ret0_dims, i64 %before",
        "  br i1 %simple, label %chosen, label %nested",
        "nested:",
        "  %inner = load i64, ptr %lastp",
        "  br label %chosen",
        "chosen:",
        "  %n = phi i64 [ %total, %sizes ], [ %inner, %nested ]",
        "  %some = icmp sgt i64 %total, 0",
        "  br i1 %some, label %prepare, label %success",
        "prepare:",
        "  %outer = sdiv i64 %total, %n",
    ]
    for k, shape in enumerate(inputs):
        a, size = f"arg{k}", math.prod(shape)
        lines += [
            f"  %{a}_shared = icmp eq i64 %{a}_kind, 1",
            f"  br i1 %simple, label %{a}_easy, label %{a}_hard",
            f"{a}_hard:",
            f"  %{a}_lastp = getelementptr i64, ptr %{a}_dims, i64 %before",
            f"  %{a}_last = load i64, ptr %{a}_lastp",
            f"  %{a}_one = icmp eq i64 %{a}_last, 1",
            f"  br label %{a}_easy",
            f"{a}_easy:",
            f"  %{a}_zero = phi i1 [ %{a}_shared, %{'prepare' if k == 0 else f'arg{k - 1}_easy'} ], "
            f"[ %{a}_one, %{a}_hard ]",
            f"  %{a}_stride = select i1 %{a}_zero, i64 0, i64 {size}",
            f"  %{a}_sp = getelementptr i64, ptr %in_strides, i64 {k}",
            f"  store i64 %{a}_stride, ptr %{a}_sp",
        ]
    for k, shape in enumerate(outputs):
        lines += [
            f"  %ret{k}_bytes = mul i64 %total, {math.prod(shape) * (4 if dtype == 'float32' else 8)}",
            f"  call void @expect(ptr %ret{k}_data, i64 %ret{k}_bytes)",
            f"  %ret{k}_sp = getelementptr i64, ptr %out_strides, i64 {k}",
            f"  store i64 {math.prod(shape)}, ptr %ret{k}_sp",
        ]
    before = f"arg{len(inputs) - 1}_easy" if inputs else "prepare"
    lines += [
        f"  %memory = call ptr @malloc(i64 {workspace + 64})"
        if workspace
        else "  %memory = getelementptr i8, ptr null, i64 0",
        "  %address = ptrtoint ptr %memory to i64",
        "  %below = sub i64 0, %address",
        "  %pad = and i64 %below, 63",
        "  %work = getelementptr i8, ptr %memory, i64 %pad",
        "  %none = icmp eq ptr %memory, null",
        f"  %short = and i1 %none, {'true' if workspace else 'false'}",
        "  br i1 %short, label %starve, label %loop",
        "loop:",
        f"  %o = phi i64 [ 0, %{before} ], [ %o_next, %called ]",
    ]
    for k, shape in enumerate(inputs):
        a = f"arg{k}"
        lines += [
            f"  br i1 %simple, label %{a}_there, label %{a}_find",
            f"{a}_find:",
            f"  %{a}_far = call i64 @locate(ptr %{a}_dims, ptr %ret0_dims, i64 %b, i64 %o, i64 {math.prod(shape)})",
            f"  br label %{a}_there",
            f"{a}_there:",
            f"  %{a}_offset = phi i64 [ 0, %{'loop' if k == 0 else f'arg{k - 1}_there'} ], [ %{a}_far, %{a}_find ]",
            f"  %{a}_row = getelementptr {scalar}, ptr %{a}_data, i64 %{a}_offset",
            f"  %{a}_ip = getelementptr ptr, ptr %in, i64 {k}",
            f"  store ptr %{a}_row, ptr %{a}_ip",
        ]
    lines += ["  %done = mul i64 %o, %n"]
    for k, shape in enumerate(outputs):
        lines += [
            f"  %ret{k}_far = mul i64 %done, {math.prod(shape)}",
            f"  %ret{k}_row = getelementptr {scalar}, ptr %ret{k}_data, i64 %ret{k}_far",
            f"  %ret{k}_op = getelementptr ptr, ptr %out, i64 {k}",
            f"  store ptr %ret{k}_row, ptr %ret{k}_op",
        ]
    lines += [
        f"  %shares = sdiv i64 %n, {max(round(POOLED / cost), 1)}",
        "  %pieces = call i64 @threads(ptr %frame, i64 %shares)",
        "  %several = icmp sgt i64 %pieces, 1",
        "  br i1 %several, label %ask_job, label %alone",
        "alone:",
        "  store i64 0, ptr %counter",
        "  call void @kernel(i64 %n, ptr %in, ptr %in_strides, ptr %out, ptr %out_strides, ptr %work, ptr %counter, "
        "i64 %n)",
        "  br label %called",
        "ask_job:",
        f"  %job = call ptr @malloc(i64 {HEAD + 8 * sum(tables.values())})",
        "  %no_job = icmp eq ptr %job, null",
        "  br i1 %no_job, label %alone, label %together",
        "together:",
        *(
            line
            for k, value in enumerate(("1", "0", "0", "%n"))
            for line in _store(f"j{k}", "i64", value, "%job", 8 * k)
        ),
        *_tables(tables, "job"),
        *(f"  call ptr @memcpy(ptr %job_{table}, ptr %{table}, i64 {8 * size})" for table, size in tables.items()),
        "  %all = call i1 @share(ptr %frame, ptr %job, i64 %pieces)",
        "  br i1 %all, label %called, label %starved",
        "starved:",
        *(["  call void @free(ptr %memory)"] if workspace else []),
        "  br label %starve",
        "called:",
        "  %o_next = add i64 %o, 1",
        "  %o_more = icmp slt i64 %o_next, %outer",
        "  br i1 %o_more, label %loop, label %finished",
        "finished:",
        *(["  call void @free(ptr %memory)"] if workspace else []),
        "  br label %success",
        *ENDING,
    ]
    return "\n".join(lines) + "\n"


def _tables(tables: dict[str, int], job: str) -> list[str]:
    """Define the addresses of the tables in a job, one after the other."""
    lines, offset = [], HEAD
    for name, size in tables.items():
        lines.append(f"  %{job}_{name} = getelementptr i8, ptr %{job}, i64 {offset}")
        offset += 8 * size
    return lines


def _blocks(tables: dict[str, int], cost: float) -> list[str]:
    """Lines of `part`: run the kernel over blocks of samples."""
    return [
        *_load("n", "i64", "%job", 24),
        *_tables(tables, "job"),
        "  call void @kernel(i64 %n, ptr %job_in, ptr %job_in_strides, ptr %job_out, ptr %job_out_strides, ptr %work, "
        f"ptr %counter, i64 {block_size(cost)})",
    ]


def message_ir(message: str) -> str:
    """Return the IR of the error messages of a handler."""
    lines = []
    for symbol, words in (("message", message), ("shortage", "There is not enough memory for the call.")):
        text = words.encode("ascii", "replace") + b"\0"
        literal = "".join(chr(c) if 32 <= c < 127 and c not in (34, 92) else f"\\{c:02X}" for c in text)
        lines.append(f'@{symbol} = internal constant [{len(text)} x i8] c"{literal}"')
    return "\n".join(lines)


def opening(inputs: int, outputs: int) -> list[str]:
    """Return the first lines of a handler: it describes itself to XLA, or reads its buffers.

    They define %arg0_type, %arg0_data, %arg0_rank, %arg0_dims and so on, for each argN and retN.
    """
    lines = [
        "  %error = alloca [4 x i64]",
        *_load("extension", "ptr", "%frame", 8),
        "  %plain = icmp eq ptr %extension, null",
        "  br i1 %plain, label %stage_check, label %extended",
        "extended:",
        *_load("kind", "i32", "%extension", 8),
        "  %metadata = icmp eq i32 %kind, 1",
        "  br i1 %metadata, label %describe, label %stage_check",
        "describe:",
        *_load("m", "ptr", "%extension", 24),
        *(line for k, value in ((24, 0), (28, 1), (32, 0)) for line in _store(f"m{k}", "i32", value, "%m", k)),
        "  ret ptr null",
        "stage_check:",
        *_load("stage", "i32", "%frame", 32),
        f"  %execute = icmp eq i32 %stage, {_EXECUTE}",
        "  br i1 %execute, label %count_check, label %success",
        "count_check:",
        *_load("argc", "i64", "%frame", 56),
        *_load("retc", "i64", "%frame", 96),
        f"  %argc_ok = icmp eq i64 %argc, {inputs}",
        f"  %retc_ok = icmp eq i64 %retc, {outputs}",
        "  %counts_ok = and i1 %argc_ok, %retc_ok",
        "  br i1 %counts_ok, label %buffers, label %refuse",
        "buffers:",
        *_load("args", "ptr", "%frame", 72),
        *_load("rets", "ptr", "%frame", 112),
    ]
    for side, k in (*(("arg", k) for k in range(inputs)), *(("ret", k) for k in range(outputs))):
        lines += [
            f"  %{side}{k}_at = getelementptr ptr, ptr %{side}s, i64 {k}",
            f"  %{side}{k} = load ptr, ptr %{side}{k}_at",
            *_load(f"{side}{k}_type", "i32", f"%{side}{k}", 16),
            *_load(f"{side}{k}_data", "ptr", f"%{side}{k}", 24),
            *_load(f"{side}{k}_rank", "i64", f"%{side}{k}", 32),
            *_load(f"{side}{k}_dims", "ptr", f"%{side}{k}", 40),
        ]
    return lines


def capsule(address: int) -> object:
    """Return a PyCapsule of a function's address, without a name."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(address, None, None)


def _load(name: str, kind: str, base: str, offset: int) -> list[str]:
    where = f"%{name}_where"
    return [f"  {where} = getelementptr i8, ptr {base}, i64 {offset}", f"  %{name} = load {kind}, ptr {where}"]


def _store(name: str, kind: str, value: object, base: str, offset: int) -> list[str]:
    where = f"%{name}_where"
    return [f"  {where} = getelementptr i8, ptr {base}, i64 {offset}", f"  store {kind} {value}, ptr {where}"]


ENDING = (
    "success:",
    "  ret ptr null",
    "refuse:",
    "  br label %fail",
    "starve:",
    "  br label %fail",
    "fail:",
    "  %text = phi ptr [ @message, %refuse ], [ @shortage, %starve ]",
    f"  %code = phi i32 [ {_INVALID_ARGUMENT}, %refuse ], [ {_RESOURCE_EXHAUSTED}, %starve ]",
    *_load("api", "ptr", "%frame", 16),
    *_load("create", "ptr", "%api", 48),
    *_store("e0", "i64", 28, "%error", 0),
    *_store("e1", "ptr", "null", "%error", 8),
    *_store("e2", "ptr", "%text", "%error", 16),
    *_store("e3", "i32", "%code", "%error", 24),
    "  %made = call ptr %create(ptr %error)",
    "  ret ptr %made",
    "}",
)


# ---- the handler of a rollout ----
#
# Buffers are (rollouts, size), or with a sample for each step first: (steps + more, rollouts, size). An argument may
# have 1 in the place of rollouts: then they share it. Steps are computed in float64. Buffers of float32 are copied to
# float64 first, and results back at the end.


_LEAST = 16  # rollouts that a thread takes at a time: whole groups of lanes


@dataclass(frozen=True, slots=True)
class Buffer:
    """An argument or a result. more: time steps besides those of the rollout, None without an axis of time."""

    name: str  # arg0, arg1 ..., ret0 ...
    size: int
    more: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """The buffer of an input or a result of the kernel.

    first: index in time at the first step, from the end if negative. advance: indices per step.
    """

    buffer: str
    first: int = 0
    advance: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """Buffers of a rollout. starts: copies (to, from) before the first step. inputs, outputs: of the kernel."""

    buffers: tuple[Buffer, ...]
    starts: tuple[tuple[Place, Place], ...]
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]


def rollout_handler_ir(name: str, plan: Plan, dtype: str, cost: float, workspace: int) -> str:
    """Return the IR of `handler` for a rollout, with buffers of this type around a kernel in float64.

    cost: nanoseconds per sample and step. workspace: bytes of the kernel.
    """
    width, single = 8, dtype == "float32"
    named = {buffer.name: buffer for buffer in plan.buffers}
    counts = [sum(buffer.name.startswith(side) for buffer in plan.buffers) for side in ("arg", "ret")]
    places, copied = (*plan.inputs, *plan.outputs), {source.buffer for _, source in plan.starts}
    tables = {"bases": "ptr", "rows": "i64", "advances": "i64", "in_strides": "i64", "out_strides": "i64"}
    job = _Job(len(plan.inputs), len(plan.outputs))
    lines = [
        rollout_ir(len(plan.inputs), len(plan.outputs)),
        common_ir(),
        "declare i64 @llvm.smin.i64(i64, i64)",
        "declare i64 @llvm.smax.i64(i64, i64)",
        *part_ir(workspace, _rollouts(job)),
        *((_CONVERT.format(**to) for to in (_WIDER, _NARROWER)) if single else ()),
        message_ir(f"{name}: a buffer has another type or shape than {dtype} of the sizes that it was compiled for."),
        "define ptr @handler(ptr %frame) {",
        "entry:",
        *opening(*counts),
        "  %fine0 = icmp eq i32 0, 0",
    ]
    fine = _Conditions(lines)
    for buffer in plan.buffers:
        a = buffer.name
        fine.add(f"icmp eq i32 %{a}_type, {TYPES[dtype]}")
        fine.add(f"icmp eq i64 %{a}_rank, {2 if buffer.more is None else 3}")
    lines += [f"  br i1 {fine.all}, label %shapes, label %refuse", "shapes:"]
    for buffer in plan.buffers:
        lines += _dimensions(buffer)
    whole = next(buffer.name for buffer in plan.buffers if buffer.name == "ret0")
    timed = next(buffer for buffer in plan.buffers if buffer.more == 0)
    lines += [f"  %n = add i64 %{whole}_n, 0", f"  %steps = add i64 %{timed.name}_moments, 0"]
    fine.add("icmp sge i64 %steps, 1")
    for buffer in plan.buffers:
        a = buffer.name
        fine.add(f"icmp eq i64 %{a}_size, {buffer.size}")
        if a.startswith("ret") or a in copied:
            fine.add(f"icmp eq i64 %{a}_n, %n")
        else:
            lines += [f"  %{a}_all = icmp eq i64 %{a}_n, %n", f"  %{a}_one = icmp eq i64 %{a}_n, 1"]
            fine.add(f"or i1 %{a}_all, %{a}_one")
        if buffer.more is not None:
            lines.append(f"  %{a}_steps = sub i64 %{a}_moments, {buffer.more}")
            fine.add(f"icmp eq i64 %{a}_steps, %steps")
    lines += [
        f"  br i1 {fine.all}, label %some_check, label %refuse",
        "some_check:",
        "  %some = icmp sgt i64 %n, 0",
        "  br i1 %some, label %prepare, label %success",
        "prepare:",
    ]
    for buffer in plan.buffers:
        a = buffer.name
        lines += [
            f"  %{a}_moment = mul i64 %{a}_n, {buffer.size * width}",
            f"  %{a}_own = icmp eq i64 %{a}_n, %n",
            f"  %{a}_stride = select i1 %{a}_own, i64 {buffer.size}, i64 0",
            f"  %{a}_row = mul i64 %{a}_stride, {width}",
        ]
        moments = "1" if buffer.more is None else f"%{a}_moments"
        lines.append(f"  %{a}_bytes = mul i64 %{a}_moment, {moments}")
    if single:
        lines += _copies(plan)
    else:
        lines += [f"  %{b.name}_memory = getelementptr i8, ptr %{b.name}_data, i64 0" for b in plan.buffers]
    for buffer in plan.buffers:
        if buffer.name.startswith("ret"):
            lines.append(f"  call void @expect(ptr %{buffer.name}_memory, i64 %{buffer.name}_bytes)")
    for k, (to, source) in enumerate(plan.starts):
        lines += [
            *_address(f"to{k}", to),
            *_address(f"source{k}", source),
            f"  call ptr @memcpy(ptr %to{k}, ptr %source{k}, i64 %{named[to.buffer].name}_moment)",
        ]
    lines += [
        f"  %job = call ptr @malloc(i64 {job.bytes})",
        "  %none = icmp eq ptr %job, null",
        f"  br i1 %none, label %{'drop' if single else 'starve'}, label %write",
        "write:",
        *job.addresses(),
        "  %work = mul i64 %n, %steps",
        f"  %shares = sdiv i64 %work, {max(round(SHARE / cost), 1)}",
        "  %pieces = call i64 @threads(ptr %frame, i64 %shares)",
        "  %twice = mul i64 %pieces, 2",
        "  %each = sdiv i64 %n, %twice",
        f"  %more = add i64 %each, {_LEAST - 1}",
        f"  %even = and i64 %more, {-_LEAST}",
        f"  %block = call i64 @llvm.smin.i64(i64 %even, i64 {_BLOCK})",
        f"  %block_or_least = call i64 @llvm.smax.i64(i64 %block, i64 {_LEAST})",
        *(
            line
            for k, value in enumerate(("1", "0", "0", "%n", "%steps", "%block_or_least"))
            for line in (f"  %head{k} = getelementptr i64, ptr %job, i64 {k}", f"  store i64 {value}, ptr %head{k}")
        ),
    ]
    for k, place in enumerate(places):
        a = place.buffer
        side, own = ("in_strides", k) if k < len(plan.inputs) else ("out_strides", k - len(plan.inputs))
        lines += [*_address(f"base{k}", place), f"  %advance{k} = mul i64 %{a}_moment, {place.advance}"]
        for table, slot, value in (
            ("bases", k, f"%base{k}"), ("rows", k, f"%{a}_row"), ("advances", k, f"%advance{k}"),
            (side, own, f"%{a}_stride"),
        ):  # fmt: skip
            lines += [
                f"  %{table}_at{k} = getelementptr {tables[table]}, ptr %{table}, i64 {slot}",
                f"  store {tables[table]} {value}, ptr %{table}_at{k}",
            ]
    lines += [
        "  %done = call i1 @share(ptr %frame, ptr %job, i64 %pieces)",
        *(_copies_back(plan) if single else ["  br i1 %done, label %success, label %starve"]),
        *ENDING,
    ]
    return "\n".join(lines) + "\n"


class _Job:
    """Layout of the memory that threads share: the head, steps, samples per block, and the tables of `rollout`."""

    def __init__(self, inputs: int, outputs: int):
        both = inputs + outputs
        lengths = {
            "bases": both, "rows": both, "advances": both, "scratch": both, "in_strides": inputs, "out_strides": outputs
        }  # fmt: skip
        self.offsets, self.bytes = {}, HEAD + 16
        for name, length in lengths.items():
            self.offsets[name] = self.bytes
            self.bytes += 8 * length

    def addresses(self) -> list[str]:
        return [f"  %{name} = getelementptr i8, ptr %job, i64 {offset}" for name, offset in self.offsets.items()]


def _rollouts(job: _Job) -> list[str]:
    """Lines of `part`: run blocks of rollouts. Scratch rows are not used, because every step is recorded."""
    return [
        *(
            line
            for name, k in (("n", 3), ("steps", 4), ("block", 5))
            for line in (
                f"  %{name}_at = getelementptr i64, ptr %job, i64 {k}",
                f"  %{name} = load i64, ptr %{name}_at",
            )
        ),
        *job.addresses(),
        "  call void @rollout(ptr @kernel, i64 %n, i64 %steps, i64 1, ptr %bases, ptr %rows, ptr %advances, "
        "ptr %scratch, ptr %in_strides, ptr %out_strides, ptr %work, ptr %counter, i64 %block)",
    ]


class _Conditions:
    """Conjunction of conditions."""

    def __init__(self, lines: list[str]):
        self._lines, self._count = lines, 0

    @property
    def all(self) -> str:
        return f"%fine{self._count}"

    def add(self, condition: str) -> None:
        before, k = self.all, self._count + 1
        self._lines += [f"  %holds{k} = {condition}", f"  %fine{k} = and i1 {before}, %holds{k}"]
        self._count = k


def _copies(plan: Plan) -> list[str]:
    """Lines that allocate all buffers in float64 and copy the arguments."""
    lines, total = [], "0"
    for buffer in plan.buffers:
        lines += [
            f"  %{buffer.name}_offset = add i64 {total}, 0",
            f"  %{buffer.name}_end = add i64 {total}, %{buffer.name}_bytes",
        ]
        total = f"%{buffer.name}_end"
    lines += [
        f"  %copies = call ptr @malloc(i64 {total})",
        "  %no_copies = icmp eq ptr %copies, null",
        "  br i1 %no_copies, label %starve, label %copy",
        "copy:",
    ]
    for buffer in plan.buffers:
        a = buffer.name
        lines += [
            f"  %{a}_memory = getelementptr i8, ptr %copies, i64 %{a}_offset",
            f"  %{a}_count = lshr i64 %{a}_bytes, 3",
        ]
        if a.startswith("arg"):
            lines.append(f"  call void @widen(ptr %{a}_memory, ptr %{a}_data, i64 %{a}_count)")
    return lines


def _copies_back(plan: Plan) -> list[str]:
    results = [buffer.name for buffer in plan.buffers if buffer.name.startswith("ret")]
    return [
        *(f"  call void @narrow(ptr %{a}_data, ptr %{a}_memory, i64 %{a}_count)" for a in results),
        "  call void @free(ptr %copies)",
        "  br i1 %done, label %success, label %starve",
        "drop:",
        "  call void @free(ptr %copies)",
        "  br label %starve",
    ]


_WIDER = {"name": "widen", "a": "float", "b": "double", "cast": "fpext"}
_NARROWER = {"name": "narrow", "a": "double", "b": "float", "cast": "fptrunc"}
_CONVERT = """
define internal void @{name}(ptr %to, ptr %from, i64 %count) {{
entry:
  %whole = and i64 %count, -8
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i.next, %eight ]
  %more = icmp slt i64 %i, %whole
  br i1 %more, label %eight, label %rest
eight:
  %from.i = getelementptr {a}, ptr %from, i64 %i
  %to.i = getelementptr {b}, ptr %to, i64 %i
  %x = load <8 x {a}>, ptr %from.i, align 4
  %y = {cast} <8 x {a}> %x to <8 x {b}>
  store <8 x {b}> %y, ptr %to.i, align 4
  %i.next = add i64 %i, 8
  br label %head
rest:
  %j = phi i64 [ %whole, %head ], [ %j.next, %one ]
  %left = icmp slt i64 %j, %count
  br i1 %left, label %one, label %done
one:
  %from.j = getelementptr {a}, ptr %from, i64 %j
  %to.j = getelementptr {b}, ptr %to, i64 %j
  %u = load {a}, ptr %from.j
  %v = {cast} {a} %u to {b}
  store {b} %v, ptr %to.j
  %j.next = add i64 %j, 1
  br label %rest
done:
  ret void
}}
"""


def _dimensions(buffer: Buffer) -> list[str]:
    names: Sequence[str] = ("n", "size") if buffer.more is None else ("moments", "n", "size")
    a = buffer.name
    return [
        line
        for axis, name in enumerate(names)
        for line in (
            f"  %{a}_{name}_at = getelementptr i64, ptr %{a}_dims, i64 {axis}",
            f"  %{a}_{name} = load i64, ptr %{a}_{name}_at",
        )
    ]


def _address(name: str, place: Place) -> list[str]:
    a = place.buffer
    moment = f"%{a}_moments" if place.first < 0 else "0"
    return [
        f"  %{name}_moment = add i64 {moment}, {place.first}",
        f"  %{name}_way = mul i64 %{name}_moment, %{a}_moment",
        f"  %{name} = getelementptr i8, ptr %{a}_memory, i64 %{name}_way",
    ]
