"""A Program as LLVM IR text.

    void kernel(i64 n, ptr inputs, ptr input_strides, ptr outputs, ptr output_strides, ptr work, ptr counter, i64 block)

Arrays of the inputs' and results' addresses and of their row strides (in elements, 0 where all samples share one row).
Samples run in groups of W lanes. In the last group the lanes beyond n repeat the last sample and write to a spare row,
so that nothing is ever read or written outside the arrays, and every sample goes through the same instructions.

Samples are taken in blocks by adding to a shared counter, so that several threads can call the kernel on the same
arrays and whoever is free takes the next block; a call that is alone takes one block of n.
"""

from __future__ import annotations

from ..tracing.program import Program
from .emitter import Emitter
from .loops import LoopEmitter
from .parts import PartEmitter, is_long
from .target import Target
from .trig import sincos_declarations, sincos_ir

_SPARE_ON_STACK = 4096  # elements; a longer spare row stands at the end of the workspace


def kernel_ir(program: Program, dtype: str, target: Target) -> tuple[str, int]:
    """The IR of `kernel`, and how many bytes of workspace a call of it needs."""
    kind = LoopEmitter if program.rolled else PartEmitter if is_long(program) else Emitter
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
    parts = [*sorted(emitter.declarations), *emitter.globals(), *trig, *emitter.lines]
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
    e.run([e.rows(*base, None) for base in inputs], [e.rows(*base, "%spare") for base in outputs])
    e.do("br label %grouped")
    e.label("grouped")
    e.do(f"%next = add i64 %s, {e.lanes}")
    e.do("%more = icmp slt i64 %next, %end")
    e.do("br i1 %more, label %group, label %take")
    e.label("done")
    e.do("ret void")
    e.lines.append("}")
