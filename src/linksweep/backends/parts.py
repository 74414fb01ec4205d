"""Long straight-line code in parts, each a function of its own: LLVM allocates the registers of a short function better
and in less time, which grows with the square of a function.

What one part computes and a later one needs goes through the workspace, whose places are used again once no later part
reads them. The kernel reads the inputs, takes their sines and cosines and calls the parts one after the other; each
writes the results that it completes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from ..tracing.expression import ONLINE, Node, Operand
from ..tracing.program import Program, needed
from .emitter import Chunk, Emitter, chunks_by_step, mostly_stored, straight_body
from .target import Target
from .transpose import load_columns

# With 16 registers (AVX2), batch 1024: two 7-joint arms that hold an object (5,024 operations) in one function 431 ns a
# sample, in parts of 1000, 400, 300, 200 and 100 operations 396, 366, 350, 356 and 379. Talos' inverse dynamics (2,242)
# 227 against 259; forward dynamics of 7 joints (1,334) 100 against 93. Where most of the time goes into stores, the
# order of memory is worth more: M of Talos on a free base, batch 4096, 731 ns in one function, 1185 in parts.
# With 32 (AVX-512): Panda's forward derivatives (6,952) 203 ns in one function, 265 in parts; products with those of
# Talos (24,101) 832 against 801, and LLVM takes 2.9 s against 2.2.
CUT = {16: 2000, 32: 20_000}  # operations, beyond which a program is cut, by the number of registers
LONGEST = 300  # operations of a part
COMPARISONS = ("lt",)  # are made again where they are needed: truth values have no place in the workspace


def is_long(program: Program, target: Target) -> bool:
    operations = sum(len(body.nodes) for body in program.bodies())
    if program.rolled or operations <= CUT[target.registers]:
        return False
    return operations > CUT[32] or not mostly_stored(program)


class PartEmitter(Emitter):
    """Writes a long program without loops."""

    def __init__(self, program: Program, dtype: str, target: Target):
        super().__init__(program, dtype, target)
        self.functions: list[str] = []
        body = straight_body(program)
        angles = set(needed(node for node in body.nodes if node.op in ("sin", "cos")))
        online = [node for node in body.nodes if node.level == ONLINE]
        self.inputs = [node for node in online if node.op == "input"]
        self.first = [node for node in online if node.op != "input" and node in angles]
        self.work = [node for node in online if node.op != "input" and node not in angles]
        count = -(-len(self.work) // LONGEST)
        bounds = [len(self.work) * k // count for k in range(count + 1)]
        self.parts = [range(*pair) for pair in pairwise(bounds)]
        self.ready = chunks_by_step(program, body, self.work, self.lanes)
        self.ready.setdefault(0, [])[:0] = self.ready.pop(-1)  # what needs no work
        self.row_places = -(-self.lanes * 8 // target.vector_bytes)  # of the rows of one result
        self.places, self.workspace = self._placed(len(program.outputs) * self.row_places)

    def globals(self) -> list[str]:
        return [*super().globals(), *self.functions]

    def _placed(self, start: int) -> tuple[dict[Node, int], int]:
        """Where values that go from one part to another are kept, from `start` on, and where that ends."""
        made: dict[Node, int] = {}  # by which part; those before the first are not there
        last: dict[Node, int] = {}  # the last part that reads it
        for k, steps in enumerate(self.parts):
            for step in steps:
                made[self.work[step]] = k
                read: list[Operand] = list(self.work[step].args)
                for _, _, values in self.ready.get(step, ()):
                    read += values
                read += [y for x in read if isinstance(x, Node) and x.op in COMPARISONS for y in x.args]
                last.update((x, k) for x in read if isinstance(x, Node))
        places: dict[Node, int] = {}
        free: list[int] = []
        ending: dict[int, list[int]] = {}
        kept = ((made.get(x, -1), x.order, k, x) for x, k in last.items() if x.op not in COMPARISONS)
        crossing = sorted(one for one in kept if one[2] > one[0])
        for begin, _, end, node in crossing:
            for past in [k for k in ending if k < begin]:
                free += ending.pop(past)
            if not free:
                free, start = [start], start + 1
            places[node] = free.pop()
            if node.level == ONLINE:  # parameters stay, for all groups
                ending.setdefault(end, []).append(places[node])
        return places, start

    def prologue(self, bases: Sequence[tuple[str, str]]) -> None:
        super().prologue(bases)
        self._keep(self.values)

    def run(self, rows: list[list[str]], out_rows: list[list[str]]) -> str:
        loaded = [load_columns(self, rows[k], array.size) for k, array in enumerate(self.program.inputs)]
        poison = self.poison([column for columns in loaded for column in columns])
        values = dict(self.values)
        values |= {node: loaded[node.data[0]][node.data[1]] for node in self.inputs}
        for node in self.first:
            self.operation(node, values)
        self._keep({node: values[node] for node in (*self.inputs, *self.first)})
        for k, pointers in enumerate(out_rows):
            for lane, row in enumerate(pointers):
                self.do(f"store ptr {row}, ptr {self._row(k, lane)}")
        for k in range(len(self.parts)):
            self.do(f"call void @part{k}(ptr %work)")
        outside, self.lines = self.lines, []
        for k, steps in enumerate(self.parts):
            self._write_part(k, steps)
        self.functions, self.lines = self.lines, outside
        return poison

    def _write_part(self, k: int, steps: range) -> None:
        self.lines.append(f"define internal void @part{k}(ptr %work) noinline {{")
        self.values = {}
        rows: dict[int, list[str]] = {}
        for step in steps:
            node = self.work[step]
            self.operation(node, self.values)
            self._keep({node: self.values[node]})
            for chunk in self.ready.get(step, ()):
                self._write_chunk(chunk, rows)
        self.do("ret void")
        self.lines.append("}")

    def _write_chunk(self, chunk: Chunk, rows: dict[int, list[str]]) -> None:
        output = chunk[0]
        if output not in rows:
            rows[output] = [self.emit(f"load ptr, ptr {self._row(output, lane)}") for lane in range(self.lanes)]
        self.store_ready([chunk], rows)

    def operand(self, x: Operand, values: dict[Node, str]) -> str:
        if isinstance(x, Node) and x not in values and x.op in COMPARISONS:
            self.operation(x, values)
        elif isinstance(x, Node) and x not in values:
            values[x] = self.emit(f"load {self.vector}, ptr {self._place(self.places[x])}")
        return super().operand(x, values)

    def _keep(self, values: dict[Node, str]) -> None:
        for node, value in values.items():
            if node in self.places:
                self.do(f"store {self.vector} {value}, ptr {self._place(self.places[node])}")

    def _place(self, number: int) -> str:
        return self.emit(f"getelementptr {self.vector}, ptr %work, i64 {number}")

    def _row(self, output: int, lane: int) -> str:
        place = self._place(output * self.row_places)
        return self.emit(f"getelementptr ptr, ptr {place}, i64 {lane}")
