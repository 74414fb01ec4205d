"""Many steps as one foreign function of XLA: a handler around the loop of rollout.py, on XLA's own buffers.

Buffers are (rollouts, size), or with a moment for each step first: (steps + more, rollouts, size). An argument may have
1 in the place of rollouts: then they share it. All types and shapes are checked before anything is read or written.

Steps are computed in float64. Buffers of float32 are copied to float64 first, and results back at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .rollout import _BLOCK, rollout_ir
from .threads import SHARE
from .xla import COMMON, ENDING, TYPES, message_ir, opening
from .xla_pool import HEAD, POOL_IR, part_ir

_LEAST = 16  # rollouts that a thread takes at a time: whole groups of lanes


@dataclass(frozen=True, slots=True)
class Buffer:
    """An argument or a result of the handler; `more`: moments besides those of the steps, None where it has one."""

    name: str  # arg0, arg1 ..., ret0 ...
    size: int
    more: int | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Which buffer holds an input or a result of the kernel: its moment at the first step (from the end if negative,
    as in Python), and how many moments each step goes on."""

    buffer: str
    first: int = 0
    advance: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """What is copied first, from one place to another, and where the kernel's inputs and results stand."""

    buffers: tuple[Buffer, ...]
    starts: tuple[tuple[Place, Place], ...]
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]


def rollout_handler_ir(name: str, plan: Plan, dtype: str, cost: float, workspace: int) -> str:
    """IR of `handler`, for buffers of this type around a kernel in float64 that takes so many nanoseconds for a sample
    and so many bytes of workspace."""
    width, single = 8, dtype == "float32"
    named = {buffer.name: buffer for buffer in plan.buffers}
    counts = [sum(buffer.name.startswith(side) for buffer in plan.buffers) for side in ("arg", "ret")]
    places, copied = (*plan.inputs, *plan.outputs), {source.buffer for _, source in plan.starts}
    tables = {"bases": "ptr", "rows": "i64", "advances": "i64", "in_strides": "i64", "out_strides": "i64"}
    job = _Job(len(plan.inputs), len(plan.outputs))
    lines = [
        rollout_ir(len(plan.inputs), len(plan.outputs)),
        COMMON,
        POOL_IR,
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
    """What threads share: the head of xla_pool.py, steps, samples of a block, and the tables that `rollout` takes."""

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
    """What each thread does: blocks of rollouts. The scratch rows are never used: every step is kept."""
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
    """Conditions that must all hold, one after the other."""

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
    """Memory for all buffers in float64, with the arguments in it."""
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
