"""A Program as LLVM IR text.

    void kernel(i64 n, ptr inputs, ptr input_strides, ptr outputs, ptr output_strides, ptr work, ptr counter, i64 block)

Arguments are arrays of the addresses of inputs and results and of their row strides, in elements, 0 if all samples
share one row. Samples run in groups of W lanes. In the last group the lanes beyond n repeat the last sample and write
to a spare row, so that nothing is read or written outside the arrays, and every sample runs the same instructions.

Samples are taken in blocks by adding to a shared counter. Several threads can call the kernel on the same arrays, and
each takes the next block when it is free. A single call takes one block of n.

Every result of a sample with an input that is not finite is NaN. `spoil` writes NaN over the results, once per group,
instead of an addition for every result.

`until_ir` is a loop in machine code around a step, which runs until each sample is done. A step is a kernel of inputs,
state -> state. The loop is a kernel of inputs, start -> result, report. A state consists of as many private elements as
`start` has, the result, the report and further private elements; it begins as `start` followed by fixed values. A
sample is done when the first element of its report is not 0. As many samples as there are lanes are active at a time.
One that is done is replaced by the next sample of the batch, so that lanes do not wait for one another.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from ..tracing.program import Program
from .emitter import Emitter
from .loops import LoopEmitter
from .parts import LongBlockEmitter, PartEmitter, has_long_block, is_long
from .target import Target
from .trig import sincos_declarations, sincos_ir

_SPARE_ON_STACK = 4096  # elements; a longer spare row is at the end of the workspace


def kernel_ir(program: Program, dtype: str, target: Target) -> tuple[str, int]:
    """Return the IR of `kernel`, and the bytes of workspace that a call needs."""
    kind = LoopEmitter if program.rolled else PartEmitter if is_long(program, target) else Emitter
    kind = LongBlockEmitter if has_long_block(program) else kind
    emitter = kind(program, dtype, target)
    spare = max((array.size for array in program.outputs), default=0)
    workspace = emitter.workspace * target.vector_bytes
    arguments = "ptr %in, ptr %in_strides, ptr %out, ptr %out_strides, ptr %work, ptr %counter, i64 %block"
    emitter.lines.append(f"define void @kernel(i64 %n, {arguments}) {{")
    emitter.label("entry")
    if spare > _SPARE_ON_STACK:
        emitter.do(f"%spare = getelementptr i8, ptr %work, i64 {workspace}")
        workspace += spare * emitter.bytes
    else:
        emitter.do(f"%spare = alloca [{max(spare, 1)} x {emitter.scalar}], align 64")
    _groups(emitter)
    trig: list[str] = []
    for name in sorted(emitter.trig):
        options = (emitter.lanes, dtype, target.fma)
        trig.append(sincos_ir(*options, name=name, declare=False, shifted=name == "sincos_shifted"))
        emitter.declarations.update(sincos_declarations(*options))
    spoil = _SPOIL.replace("SCALAR", emitter.scalar).replace("RESULTS", str(len(program.outputs)))
    sizes = ", ".join(f"i64 {array.size}" for array in program.outputs)
    spoil = spoil.replace("LANES", str(emitter.lanes)).replace("SIZES", sizes)
    parts = [*sorted(emitter.declarations), *emitter.globals(), *trig, spoil, *emitter.lines]
    return "\n".join(parts) + "\n", workspace


def _groups(e: Emitter) -> None:
    """Emit the loops over blocks and groups of lanes, around the program."""
    inputs = [(e.pointer("%in", k), e.integer("%in_strides", k)) for k in range(len(e.program.inputs))]
    outputs = [(e.pointer("%out", k), e.integer("%out_strides", k)) for k in range(len(e.program.outputs))]
    e.out_strides = [stride for _, stride in outputs]
    e.do("%last = sub i64 %n, 1")
    e.prologue(inputs)
    e.do("br label %take")
    e.label("take")
    e.do("%from = atomicrmw add ptr %counter, i64 %block monotonic")
    e.do("%left = icmp slt i64 %from, %n")
    e.do("br i1 %left, label %span, label %done")
    e.label("span")
    e.do("%to = add i64 %from, %block")
    e.do("%whole = icmp slt i64 %to, %n")
    e.do("%end = select i1 %whole, i64 %to, i64 %n")
    e.do("br label %group")
    e.label("group")
    e.do("%s = phi i64 [ %from, %span ], [ %next, %grouped ]")
    poison = e.run([e.rows(*base, None) for base in inputs], [e.rows(*base, "%spare") for base in outputs])
    bad = e.emit(f"fcmp uno {e.vector} {poison}, zeroinitializer")
    mask = e.emit(f"bitcast <{e.lanes} x i1> {bad} to i{e.lanes}")
    e.do(f"br i1 {e.emit(f'icmp eq i{e.lanes} {mask}, 0')}, label %grouped, label %spoiled")
    e.label("spoiled")
    lanes = e.emit(f"zext i{e.lanes} {mask} to i64")
    e.do(f"call void @spoil(i64 {lanes}, i64 %s, i64 %n, ptr %out, ptr %out_strides)")
    e.do("br label %grouped")
    e.label("grouped")
    e.do(f"%next = add i64 %s, {e.lanes}")
    e.do("%more = icmp slt i64 %next, %end")
    e.do("br i1 %more, label %group, label %take")
    e.label("done")
    e.do("ret void")
    e.lines.append("}")


_SPOIL = """
@sizes = internal constant [RESULTS x i64] [SIZES]
define internal void @spoil(i64 %lanes, i64 %s, i64 %n, ptr %out, ptr %out_strides) noinline cold {
entry:
  br label %lane
lane:
  %l = phi i64 [ 0, %entry ], [ %l.next, %lane.end ]
  %index = add i64 %s, %l
  %there = icmp slt i64 %index, %n
  %shifted = lshr i64 %lanes, %l
  %bad = trunc i64 %shifted to i1
  %wanted = and i1 %there, %bad
  br i1 %wanted, label %result, label %lane.end
result:
  %k = phi i64 [ 0, %lane ], [ %k.next, %result.end ]
  %base.at = getelementptr ptr, ptr %out, i64 %k
  %base = load ptr, ptr %base.at
  %stride.at = getelementptr i64, ptr %out_strides, i64 %k
  %stride = load i64, ptr %stride.at
  %size.at = getelementptr i64, ptr @sizes, i64 %k
  %size = load i64, ptr %size.at
  %offset = mul i64 %index, %stride
  %row = getelementptr SCALAR, ptr %base, i64 %offset
  br label %element
element:
  %i = phi i64 [ 0, %result ], [ %i.next, %write ]
  %inside = icmp slt i64 %i, %size
  br i1 %inside, label %write, label %result.end
write:
  %place = getelementptr SCALAR, ptr %row, i64 %i
  store SCALAR 0x7FF8000000000000, ptr %place
  %i.next = add i64 %i, 1
  br label %element
result.end:
  %k.next = add i64 %k, 1
  %k.more = icmp slt i64 %k.next, RESULTS
  br i1 %k.more, label %result, label %lane.end
lane.end:
  %l.next = add i64 %l, 1
  %l.more = icmp slt i64 %l.next, LANES
  br i1 %l.more, label %lane, label %end
end:
  ret void
}
"""


# ---- a loop around a step, until each sample is done ----


@dataclass(frozen=True)
class Until:
    """The sizes of a loop.

    inputs: sizes of the inputs, the start last. result, report: sizes of the results. initial: first values of the
    state after start and result.
    """

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
    """Return the IR of the loop as `kernel`, around the program as `step`, and the bytes of workspace of a call."""
    step, workspace = kernel_ir(program, "float64", target)
    step = step.replace("define void @kernel(", "define internal void @step(")
    lanes, state, given = target.lanes("float64"), loop.state, len(loop.inputs)
    rows = (*loop.inputs, state)  # of an active sample: its inputs, and its state
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
        "  %going = fcmp oeq double %status, 0.0",  # NaN, from inputs that are not finite, is done as well
        "  br i1 %going, label %look, label %finish",
        "finish:",
        f"  call void @end(i64 %s, ptr %out, ptr %out_strides, ptr %ids, ptr %place{given})",
        "  %next = atomicrmw add ptr %counter, i64 1 monotonic",
        "  %more = icmp slt i64 %next, %n",
        "  br i1 %more, label %again, label %close",
        "again:",
        f"  call void @begin(i64 %s, i64 %next, ptr %in, ptr %in_strides, ptr %ids, {held})",
        "  br label %look",
        "close:",  # the last active sample, which was checked before, moves into the gap
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
    """IR of `begin` (copy a sample into a slot), `end` (copy its results) and `move` (copy a slot to another)."""
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
    """Define %<side>.row<k>, the address of the sample in the array of the caller."""
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
