"""A kernel as a handler of XLA's foreign functions: what JAX calls, without a compiler and without Python.

    ptr handler(ptr frame)        null is success, else an error that XLA hands on

The frame's fields are read where XLA's C interface (version 0.1) has them. Buffers may have leading axes besides those
of one sample, each of full length or 1: with 1, all samples of that axis share the row (stride 0, nothing is copied).
All types and shapes are checked before anything is read or written. Large batches run in the threads of XLA's own pool.

Results of some megabytes are memory that nobody has touched: the kernel of Linux is asked for large pages there, as
NumPy asks for its arrays, because 4 KiB at a time it takes as long as the dynamics do.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Sequence

from .threads import block_size
from .xla_pool import HEAD, POOL_IR, POOLED, part_ir

TYPES = {"float32": 11, "float64": 12}
_EXECUTE = 3
_INVALID_ARGUMENT, _RESOURCE_EXHAUSTED = 3, 8

_LARGE = 1 << 22  # bytes of a result
_HUGE_PAGES = 14  # MADV_HUGEPAGE of Linux
COMMON = f"""
declare ptr @malloc(i64)
declare void @free(ptr)
declare ptr @memcpy(ptr, ptr, i64)
declare i32 @madvise(ptr, i64, i32)

define internal void @expect(ptr %data, i64 %bytes) {{
  %large = icmp sge i64 %bytes, {_LARGE if sys.platform == "linux" else 2**63 - 1}
  br i1 %large, label %ask, label %done
ask:
  %begin = ptrtoint ptr %data to i64
  %end = add i64 %begin, %bytes
  %after = add i64 %begin, 4095
  %first = and i64 %after, -4096
  %way = sub i64 %end, %first
  %length = and i64 %way, -4096
  %page = inttoptr i64 %first to ptr
  %told = call i32 @madvise(ptr %page, i64 %length, i32 {_HUGE_PAGES})
  br label %done
done:
  ret void
}}
"""
_HELPERS = """

define internal i64 @leading(ptr %dims, ptr %full, i64 %b) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %good ]
  %ones = phi i1 [ true, %entry ], [ %ones2, %good ]
  %whole = phi i1 [ true, %entry ], [ %whole2, %good ]
  %more = icmp slt i64 %i, %b
  br i1 %more, label %body, label %end
body:
  %p = getelementptr i64, ptr %dims, i64 %i
  %d = load i64, ptr %p
  %q = getelementptr i64, ptr %full, i64 %i
  %f = load i64, ptr %q
  %one = icmp eq i64 %d, 1
  %same = icmp eq i64 %d, %f
  %ok = or i1 %one, %same
  br i1 %ok, label %good, label %bad
good:
  %ones2 = and i1 %ones, %one
  %whole2 = and i1 %whole, %same
  %next = add i64 %i, 1
  br label %head
bad:
  ret i64 0
end:
  %kind = select i1 %ones, i64 1, i64 3
  %found = select i1 %whole, i64 2, i64 %kind
  ret i64 %found
}

define internal i64 @locate(ptr %dims, ptr %full, i64 %b, i64 %index, i64 %size) {
entry:
  %last = sub i64 %b, 1
  %lastp = getelementptr i64, ptr %dims, i64 %last
  %lastd = load i64, ptr %lastp
  %first = mul i64 %size, %lastd
  %start = sub i64 %b, 2
  br label %head
head:
  %i = phi i64 [ %start, %entry ], [ %next, %body ]
  %o = phi i64 [ %index, %entry ], [ %o2, %body ]
  %stride = phi i64 [ %first, %entry ], [ %stride2, %body ]
  %offset = phi i64 [ 0, %entry ], [ %offset2, %body ]
  %more = icmp sge i64 %i, 0
  br i1 %more, label %body, label %end
body:
  %p = getelementptr i64, ptr %dims, i64 %i
  %d = load i64, ptr %p
  %q = getelementptr i64, ptr %full, i64 %i
  %f = load i64, ptr %q
  %own = urem i64 %o, %f
  %o2 = udiv i64 %o, %f
  %way = mul i64 %own, %stride
  %one = icmp eq i64 %d, 1
  %moved = select i1 %one, i64 0, i64 %way
  %offset2 = add i64 %offset, %moved
  %stride2 = mul i64 %stride, %d
  %next = sub i64 %i, 1
  br label %head
end:
  ret i64 %offset
}

define internal i64 @product(ptr %dims, i64 %count) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %total = phi i64 [ 1, %entry ], [ %total2, %body ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %end
body:
  %p = getelementptr i64, ptr %dims, i64 %i
  %d = load i64, ptr %p
  %total2 = mul i64 %total, %d
  %next = add i64 %i, 1
  br label %head
end:
  ret i64 %total
}
"""


def handler_ir(
    name: str, inputs: Sequence[tuple[int, ...]], outputs: Sequence[tuple[int, ...]], dtype: str, cost: float,
    workspace: int,
) -> str:  # fmt: skip
    """IR of `handler`, for a kernel with these shapes of one sample, which takes so many nanoseconds, and so many bytes
    of workspace."""
    scalar = "float" if dtype == "float32" else "double"
    shapes = [*(("arg", k, s) for k, s in enumerate(inputs)), *(("ret", k, s) for k, s in enumerate(outputs))]
    tables = {"in": len(inputs), "in_strides": len(inputs), "out": len(outputs), "out_strides": len(outputs)}
    lines = [
        COMMON,
        _HELPERS,
        POOL_IR,
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
    """Where they stand in a job, one after the other."""
    lines, offset = [], HEAD
    for name, size in tables.items():
        lines.append(f"  %{job}_{name} = getelementptr i8, ptr %{job}, i64 {offset}")
        offset += 8 * size
    return lines


def _blocks(tables: dict[str, int], cost: float) -> list[str]:
    """What each thread does: blocks of samples."""
    return [
        *_load("n", "i64", "%job", 24),
        *_tables(tables, "job"),
        "  call void @kernel(i64 %n, ptr %job_in, ptr %job_in_strides, ptr %job_out, ptr %job_out_strides, ptr %work, "
        f"ptr %counter, i64 {block_size(cost)})",
    ]


def message_ir(message: str) -> str:
    """What a handler says when it refuses."""
    lines = []
    for symbol, words in (("message", message), ("shortage", "There is not enough memory for the call.")):
        text = words.encode("ascii", "replace") + b"\0"
        literal = "".join(chr(c) if 32 <= c < 127 and c not in (34, 92) else f"\\{c:02X}" for c in text)
        lines.append(f'@{symbol} = internal constant [{len(text)} x i8] c"{literal}"')
    return "\n".join(lines)


def opening(inputs: int, outputs: int) -> list[str]:
    """The begin of a handler: it describes itself to XLA, and where it is to run finds its buffers. Of each, arg0 ...
    and ret0 ..., the values %arg0_type, _data, _rank and _dims are known from here on."""
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


def handler_symbols() -> dict[str, int]:
    """Addresses that a handler needs, of this process."""
    libc = ctypes.CDLL(None)
    names = ("malloc", "free", "memcpy", "madvise")
    return {name: ctypes.cast(getattr(libc, name), ctypes.c_void_p).value or 0 for name in names}


def capsule(address: int) -> object:
    """A PyCapsule around a function's address, without a name."""
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
