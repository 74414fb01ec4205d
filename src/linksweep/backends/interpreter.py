"""Run a Program in NumPy, operation by operation over the whole batch.

The interpreter is the reference for machine code, and the backend for systems that forbid executable memory
(LINKSWEEP_BACKEND=interpreter). Fused operations round twice here: results agree with LLVM's to rounding, not to the
bit. Over arrays of exact numbers it is the reference for the passes that made the Program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..tracing.expression import LARGE, Node, Operand, measured_angle
from ..tracing.program import Body, Output, PairOutput, Program, Store
from .registry import Backend, KernelRequest

Column = Any  # one value per sample: an array, or a number for all samples; of the outputs' type
OPERATIONS: dict[str, Callable[..., Column]] = {
    "neg": np.negative, "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "lt": np.less,
    "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "where": np.where,
    "fma": lambda a, b, c: a * b + c, "fms": lambda a, b, c: a * b - c, "fnma": lambda a, b, c: c - a * b,
}  # fmt: skip
CHUNK = 8192  # samples at once: bounds the memory of a run


class Interpreter:
    """A kernel over 2-D arrays: inputs (N or 1, size), outputs (N, size), of one floating type."""

    def __init__(self, program: Program):
        self.program = program

    def __call__(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        count = outputs[0].shape[0]
        for first in range(0, count, CHUNK):
            part = slice(first, min(first + CHUNK, count))
            chunk = [x if x.shape[0] == 1 and count != 1 else x[part] for x in inputs]
            with np.errstate(all="ignore"):
                _Run(self.program, chunk, [y[part] for y in outputs]).run()


class _Run:
    """One pass over one chunk of samples."""

    def __init__(self, program: Program, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]):
        self.program = program
        self.inputs = inputs
        self.outputs = outputs
        dtype = outputs[0].dtype
        self.scalar = dtype.type
        count = outputs[0].shape[0]
        rows = len(program.parents) + 1
        self.memory = [np.zeros((rows, slots, count), dtype) for slots in program.arrays]

    def run(self) -> None:
        for output in self.outputs:
            output[:] = 0.0
        for body, i, j in self.program.executions():
            self.body(body, i, j)
        self.poison()

    def poison(self) -> None:
        """Set every result of a sample with a non-finite input to NaN."""
        if self.outputs[0].dtype == object:
            return
        bad = np.zeros(self.outputs[0].shape[0], bool)
        for x in self.inputs:
            bad |= ~np.isfinite(x).all(axis=1)
        for output in self.outputs:
            output[bad] = np.nan

    def body(self, body: Body, i: int, j: int) -> None:
        """Run a body for link j, in pairs that begin with link i."""
        values: dict[Node, Column] = {}

        def value(x: Operand) -> Column:
            return values[x] if isinstance(x, Node) else self.scalar(x)

        scalar = self.scalar
        for node in body.nodes:
            op = node.op
            if op == "sin" or op == "cos":
                measured, offset = measured_angle(node.args[0])
                values[node] = OPERATIONS[op](_shifted(value(measured), value(offset)))
            elif node.args:
                values[node] = OPERATIONS[op](*[values[x] if type(x) is Node else scalar(x) for x in node.args])
            else:
                values[node] = self.leaf(node, j)
        for effect in body.effects:
            result = value(effect.value)
            if isinstance(effect, (Output, PairOutput)):
                self.outputs[effect.output][:, self.program.element(effect.where, i, j)] = result
            elif isinstance(effect, Store):
                self.memory[effect.array][self.row(effect.row, j), effect.slot] = result
            else:
                self.memory[effect.array][self.row("parent", j), effect.slot] += result

    def leaf(self, node: Node, link: int) -> Column:
        if node.op == "input":
            return self.inputs[node.data[0]][:, self.program.element(node.data[1:], link, link)]
        if node.op == "table":
            return self.scalar(self.program.tables[node.data[0]][link])
        array, slot, row = node.data[:3]
        return self.memory[array][self.row(row, link), slot].copy()

    def row(self, row: str | int, link: int) -> int:
        """Return the row of a workspace array. Row 0 belongs to the base, row 1 + k to link k."""
        if isinstance(row, int):
            return row + 1
        return 0 if row == "base" else 1 + (link if row == "own" else self.program.parents[link])


def _shifted(angle: Column, offset: Column) -> Column:
    """Return angle + offset, after a large angle is reduced to one turn."""
    if isinstance(offset, float) and offset == 0.0:
        return angle
    if np.asarray(angle).dtype == object:  # exact angles have no size
        return angle + offset
    large = np.abs(angle) > LARGE
    if np.any(large):
        angle = np.where(large, np.arctan2(np.sin(angle), np.cos(angle)), angle)
    return angle + offset


class _InterpreterBackend(Backend):
    name = "interpreter"

    def kernel(self, request: KernelRequest, dtype: str) -> Interpreter:
        return Interpreter(request.trace())


BACKEND = _InterpreterBackend()
