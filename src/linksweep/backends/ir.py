"""A Program as LLVM IR text.

    void kernel(i64 n, ptr inputs, ptr input_strides, ptr outputs, ptr output_strides, ptr work, ptr counter, i64 block)

Arrays of the inputs' and results' addresses and of their row strides (in elements, 0 where all samples share one row).
Samples run in groups of W lanes. In the last group the lanes beyond n repeat the last sample and write to a spare row,
so that nothing is ever read or written outside the arrays, and every sample goes through the same instructions.

Samples are taken in blocks by adding to a shared counter, so that several threads can call the kernel on the same
arrays and whoever is free takes the next block; a call that is alone takes one block of n.

Every result of a sample with an input that is not finite is NaN: `spoil` writes it over what was computed, once for the
group, in the place of an addition for every result.
"""

from __future__ import annotations

from ..tracing.program import Program
from .emitter import Emitter
from .long_blocks import LongBlockEmitter, has_long_block
from .loops import LoopEmitter
from .parts import PartEmitter, is_long
from .target import Target
from .trig import sincos_declarations, sincos_ir

_SPARE_ON_STACK = 4096  # elements; a longer spare row stands at the end of the workspace


def kernel_ir(program: Program, dtype: str, target: Target) -> tuple[str, int]:
    """The IR of `kernel`, and how many bytes of workspace a call of it needs."""
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
    """The loops over blocks and groups of lanes, around the program."""
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
