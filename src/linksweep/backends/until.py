"""A loop in machine code around a step, until each sample says that it is done.

A step is a kernel of inputs, state -> state. The loop is a kernel too, of inputs, start -> result, report: a state
begins with `start` and goes on with fixed numbers; it ends as [start's size: own], result, report, own, and a sample is
done when the first number of its report is not 0. As many samples as there are lanes are under way at a time. Whichever
is done makes room for the next one of the batch, so that lanes do not wait for one another.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ..tracing.program import Program
from .ir import kernel_ir
from .target import Target


@dataclass(frozen=True)
class Until:
    """inputs: sizes of what each sample is given, the start last. result, report: sizes of what it ends with; the
    result stands in the state after as many numbers as the start has. initial: the state after these two."""

    inputs: tuple[int, ...]
    result: int
    initial: tuple[float, ...]
    report: int

    @property
    def start(self) -> int:
        return self.inputs[-1]

    @property
    def state(self) -> int:
        return self.start + self.result + len(self.initial)


def until_ir(program: Program, loop: Until, target: Target) -> tuple[str, int]:
    """The IR of the loop as `kernel`, around the program as `step`, and the bytes of workspace that a call needs."""
    step, workspace = kernel_ir(program, "float64", target)
    step = step.replace("define void @kernel(", "define internal void @step(")
    lanes, state, given = target.lanes("float64"), loop.state, len(loop.inputs)
    rows = (*loop.inputs, state)  # per sample under way: what it is given, and its state
    places, end = [], -(-workspace // 64) * 64
    for size in rows:
        places.append(end)
        end += -(-8 * lanes * size // 64) * 64
    lines = [
        f"@initial = internal constant [{state} x double] [{', '.join(f'double {_hex(x)}' for x in _start(loop))}]",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        *_copies(loop, rows),
        "define void @kernel(i64 %n, ptr %in, ptr %in_strides, ptr %out, ptr %out_strides, ptr %work, ptr %counter, "
        "i64 %block) {",
        "entry:",
        f"  %places = alloca [{given + 1} x ptr]",
        f"  %strides = alloca [{given + 1} x i64]",
        f"  %ids = alloca [{lanes} x i64]",
        "  %own = alloca i64",
        "  %active.at = alloca i64",
        "  %s.at = alloca i64",
    ]
    for k, (place, size) in enumerate(zip(places, rows, strict=True)):
        lines += [
            f"  %place{k} = getelementptr i8, ptr %work, i64 {place}",
            f"  %slot{k} = getelementptr ptr, ptr %places, i64 {k}",
            f"  store ptr %place{k}, ptr %slot{k}",
            f"  %stride{k} = getelementptr i64, ptr %strides, i64 {k}",
            f"  store i64 {size}, ptr %stride{k}",
        ]
    held = ", ".join(f"ptr %place{k}" for k in range(given + 1))
    lines += [
        f"  %states = getelementptr ptr, ptr %places, i64 {given}",
        f"  %states.stride = getelementptr i64, ptr %strides, i64 {given}",
        "  store i64 0, ptr %active.at",
        "  br label %fill",
        "fill:",
        "  %filled = load i64, ptr %active.at",
        f"  %room = icmp slt i64 %filled, {lanes}",
        "  br i1 %room, label %ask, label %run",
        "ask:",
        "  %first = atomicrmw add ptr %counter, i64 1 monotonic",
        "  %is.first = icmp slt i64 %first, %n",
        "  br i1 %is.first, label %put, label %run",
        "put:",
        f"  call void @begin(i64 %filled, i64 %first, ptr %in, ptr %in_strides, ptr %ids, {held})",
        "  %filled.next = add i64 %filled, 1",
        "  store i64 %filled.next, ptr %active.at",
        "  br label %fill",
        "run:",
        "  %active = load i64, ptr %active.at",
        "  %none = icmp eq i64 %active, 0",
        "  br i1 %none, label %done, label %iterate",
        "iterate:",
        "  store i64 0, ptr %own",
        "  call void @step(i64 %active, ptr %places, ptr %strides, ptr %states, ptr %states.stride, ptr %work, "
        "ptr %own, i64 %active)",
        "  store i64 %active, ptr %s.at",
        "  br label %look",
        "look:",
        "  %above = load i64, ptr %s.at",
        "  %looked = icmp eq i64 %above, 0",
        "  br i1 %looked, label %run, label %check",
        "check:",
        "  %s = sub i64 %above, 1",
        "  store i64 %s, ptr %s.at",
        f"  %row = mul i64 %s, {state}",
        f"  %at = add i64 %row, {loop.start + loop.result}",
        f"  %status.at = getelementptr double, ptr %place{given}, i64 %at",
        "  %status = load double, ptr %status.at",
        "  %going = fcmp oeq double %status, 0.0",  # NaN, of bad input, is done as well
        "  br i1 %going, label %look, label %finish",
        "finish:",
        f"  call void @end(i64 %s, ptr %out, ptr %out_strides, ptr %ids, ptr %place{given})",
        "  %next = atomicrmw add ptr %counter, i64 1 monotonic",
        "  %more = icmp slt i64 %next, %n",
        "  br i1 %more, label %again, label %close",
        "again:",
        f"  call void @begin(i64 %s, i64 %next, ptr %in, ptr %in_strides, ptr %ids, {held})",
        "  br label %look",
        "close:",  # the last one under way, which was looked at before, moves into the gap
        "  %count = load i64, ptr %active.at",
        "  %last = sub i64 %count, 1",
        "  store i64 %last, ptr %active.at",
        f"  call void @move(i64 %s, i64 %last, ptr %ids, {held})",
        "  br label %look",
        "done:",
        "  ret void",
        "}",
        "",
    ]
    return step + "\n".join(lines), end


def _copies(loop: Until, rows: tuple[int, ...]) -> list[str]:
    """`begin`: a sample of the arrays into a slot; `end`: what it came to; `move`: one slot into another."""
    given = len(loop.inputs)
    held = ", ".join(f"ptr %place{k}" for k in range(given + 1))
    begin = [f"define internal void @begin(i64 %s, i64 %i, ptr %in, ptr %in_strides, ptr %ids, {held}) {{"]
    begin += ["  %id = getelementptr i64, ptr %ids, i64 %s", "  store i64 %i, ptr %id"]
    for k, size in enumerate(loop.inputs):
        begin += _row("in", k, "%i") + _slot("to", k, size, "%s") + [_copy(f"%to{k}", f"%in.row{k}", size)]
    begin += _slot("to", given, loop.state, "%s")
    begin += [_copy(f"%to{given}", "@initial", loop.state), _copy(f"%to{given}", f"%in.row{given - 1}", loop.start)]
    end = [f"define internal void @end(i64 %s, ptr %out, ptr %out_strides, ptr %ids, ptr %place{given}) {{"]
    end += ["  %id = getelementptr i64, ptr %ids, i64 %s", "  %i = load i64, ptr %id"]
    end += _slot("from", given, loop.state, "%s")
    for k, (place, size) in enumerate(((loop.start, loop.result), (loop.start + loop.result, loop.report))):
        end += _row("out", k, "%i")
        end += [f"  %part{k} = getelementptr double, ptr %from{given}, i64 {place}"]
        end += [_copy(f"%out.row{k}", f"%part{k}", size)]
    move = [f"define internal void @move(i64 %s, i64 %last, ptr %ids, {held}) {{"]
    move += ["  %same = icmp eq i64 %s, %last", "  br i1 %same, label %done, label %copy", "copy:"]
    move += ["  %id.from = getelementptr i64, ptr %ids, i64 %last", "  %id = load i64, ptr %id.from"]
    move += ["  %id.to = getelementptr i64, ptr %ids, i64 %s", "  store i64 %id, ptr %id.to"]
    for k, size in enumerate(rows):
        move += _slot("from", k, size, "%last") + _slot("to", k, size, "%s") + [_copy(f"%to{k}", f"%from{k}", size)]
    move += ["  br label %done", "done:"]
    return [line for part in (begin, end, move) for line in (*part, "  ret void", "}")]


def _row(side: str, k: int, index: str) -> list[str]:
    """%<side>.row<k>: where the sample stands in the array of the caller."""
    return [
        f"  %{side}.at{k} = getelementptr ptr, ptr %{side}, i64 {k}",
        f"  %{side}.base{k} = load ptr, ptr %{side}.at{k}",
        f"  %{side}.stride.at{k} = getelementptr i64, ptr %{side}_strides, i64 {k}",
        f"  %{side}.stride{k} = load i64, ptr %{side}.stride.at{k}",
        f"  %{side}.offset{k} = mul i64 {index}, %{side}.stride{k}",
        f"  %{side}.row{k} = getelementptr double, ptr %{side}.base{k}, i64 %{side}.offset{k}",
    ]


def _slot(name: str, k: int, size: int, slot: str) -> list[str]:
    return [
        f"  %{name}.offset{k} = mul i64 {slot}, {size}",
        f"  %{name}{k} = getelementptr double, ptr %place{k}, i64 %{name}.offset{k}",
    ]


def _copy(to: str, source: str, size: int) -> str:
    return f"  call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {8 * size}, i1 false)"


def _start(loop: Until) -> tuple[float, ...]:
    return (*(0.0,) * (loop.start + loop.result), *loop.initial)


def _hex(value: float) -> str:
    return f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}"
