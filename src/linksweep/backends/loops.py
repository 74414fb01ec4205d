"""LLVM IR of rolled programs: loops over the links inside the loop over groups of samples.

Inputs and results are transposed through the workspace, so that a link reads and writes whole vectors; the values that
links keep stand there too, one row of slots for each link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..tracing.expression import Node
from ..tracing.program import Add, Block, Body, Loop, Output, PairLoop, PairOutput, Program, Store
from .emitter import Emitter
from .target import Target
from .transpose import load_columns, store_columns


def staged_outputs(program: Program) -> list[int]:
    """Results that are transposed through the workspace: all but the matrices of pairs, which can be huge."""
    paired = {e.output for b in program.bodies() for e in b.effects if isinstance(e, PairOutput)}
    return [k for k in range(len(program.outputs)) if k not in paired]


class LoopEmitter(Emitter):
    def __init__(self, program: Program, dtype: str, target: Target):
        super().__init__(program, dtype, target)
        self.row_offsets = []  # of each workspace array, in vectors
        total = 0
        for slots in program.arrays:
            self.row_offsets.append(total)
            total += slots * (len(program.parents) + 1)
        self.staged_inputs, self.staged_outputs = {}, {}
        for k, array in enumerate(program.inputs):
            self.staged_inputs[k] = total
            total += array.size
        for k in staged_outputs(program):
            self.staged_outputs[k] = total
            total += program.outputs[k].size
        self.workspace = total

    def run(self, rows: list[list[str]], out_rows: list[list[str]]) -> None:
        self.out_rows = out_rows
        self.finite = self.stage_inputs(rows)
        self.fill_pair_outputs()
        for step in self.program.steps:
            if isinstance(step, Block):
                self.body(step.body, "", "")
            elif isinstance(step, Loop):
                self.loop(step)
            else:
                self.pair_loop(step)
        self.stage_outputs()

    def stage_inputs(self, rows: list[list[str]]) -> str:
        """Transpose the inputs into the workspace; answers with their poison."""
        total = self.constant(0.0)
        for k, array in enumerate(self.program.inputs):

            def chunk(start: str, size: int, sofar: str, k: int = k) -> str:
                places = [self.emit(f"getelementptr {self.scalar}, ptr {row}, i64 {start}") for row in rows[k]]
                columns = load_columns(self, places, size)
                for i, column in enumerate(columns):
                    self.store_work(self.staged(self.staged_inputs[k] + i, start), column)
                return self.emit(f"fadd {self.vector} {sofar}, {self.poison(columns)}")

            total = self.chunks(array.size, total, chunk)
        return total

    def stage_outputs(self) -> None:
        for k, base in self.staged_outputs.items():

            def chunk(start: str, size: int, sofar: str, k: int = k, base: int = base) -> str:
                columns = [self.load_work(self.staged(base + i, start)) for i in range(size)]
                guarded = [self.emit(f"fadd {self.vector} {column}, {self.finite}") for column in columns]
                places = [f"getelementptr {self.scalar}, ptr {row}, i64 {start}" for row in self.out_rows[k]]
                store_columns(self, [self.emit(place) for place in places], guarded)
                return sofar

            self.chunks(self.program.outputs[k].size, self.finite, chunk)

    def chunks(self, size: int, value: str, chunk: Callable[[str, int, str], str]) -> str:
        """A loop over whole vectors of a row, then the rest; `value` goes through every chunk."""
        whole = size - size % self.lanes
        if whole:
            name = self.fresh("chunk")
            self.do(f"br label %{name}_in")
            self.label(f"{name}_in")
            self.do(f"br label %{name}")
            self.label(name)
            self.do(f"%{name}_c = phi i64 [ 0, %{name}_in ], [ %{name}_next, %{name} ]")
            self.do(f"%{name}_v = phi {self.vector} [ {value}, %{name}_in ], [ %{name}_w, %{name} ]")
            new = chunk(f"%{name}_c", self.lanes, f"%{name}_v")
            self.do(f"%{name}_w = fadd {self.vector} {new}, {self.constant(-0.0)}")  # a copy
            self.do(f"%{name}_next = add i64 %{name}_c, {self.lanes}")
            self.do(f"%{name}_more = icmp slt i64 %{name}_next, {whole}")
            self.do(f"br i1 %{name}_more, label %{name}, label %{name}_out")
            self.label(f"{name}_out")
            value = f"%{name}_w"
        return chunk(str(whole), size - whole, value) if size > whole else value

    def staged(self, base: int, index: str) -> str:
        place = self.emit(f"getelementptr {self.vector}, ptr %work, i64 {index}")
        return self.emit(f"getelementptr {self.vector}, ptr {place}, i64 {base}")

    def load_work(self, place: str) -> str:
        return self.emit(f"load {self.vector}, ptr {place}, align {self.target.vector_bytes}")

    def store_work(self, place: str, value: str) -> None:
        self.do(f"store {self.vector} {value}, ptr {place}, align {self.target.vector_bytes}")

    def fill_pair_outputs(self) -> None:
        """A pair of links on different branches has no body to write it: it is 0, or NaN for a bad sample."""
        for k in set(range(len(self.program.outputs))) - set(self.staged_outputs):
            for lane, row in enumerate(self.out_rows[k]):
                value = self.emit(f"extractelement {self.vector} {self.finite}, i64 {lane}")
                self.do(f"call void @fill(ptr {row}, i64 {self.program.outputs[k].size}, {self.scalar} {value})")

    def loop(self, step: Loop) -> None:
        links = len(self.program.parents)
        name = self.fresh("loop")
        first, stop, by = ("0", str(links), 1) if step.outward else (str(links - 1), "-1", -1)
        self.do(f"br label %{name}_in")
        self.label(f"{name}_in")
        self.do(f"br label %{name}")
        self.label(name)
        self.do(f"%{name}_i = phi i64 [ {first}, %{name}_in ], [ %{name}_next, %{name}_end ]")
        self.switch(step.bodies, f"%{name}_i", f"%{name}_i", f"{name}_end")
        self.label(f"{name}_end")
        self.do(f"%{name}_next = add i64 %{name}_i, {by}")
        self.do(f"%{name}_more = icmp ne i64 %{name}_next, {stop}")
        self.do(f"br i1 %{name}_more, label %{name}, label %{name}_out")
        self.label(f"{name}_out")

    def pair_loop(self, step: PairLoop) -> None:
        name = self.fresh("pair")
        links = len(self.program.parents)
        self.do(f"br label %{name}_in")
        self.label(f"{name}_in")
        self.do(f"br label %{name}")
        self.label(name)
        self.do(f"%{name}_i = phi i64 [ 0, %{name}_in ], [ %{name}_next, %{name}_end ]")
        if len(step.kinds) < len(step.starts):  # links of other kinds take no part
            cases = " ".join(f"i64 {kind}, label %{name}_start" for kind in step.kinds)
            self.do(f"switch i64 {self.lookup('@kinds', f'%{name}_i')}, label %{name}_end [ {cases} ]")
            self.label(f"{name}_start")
        self.switch(step.starts, f"%{name}_i", f"%{name}_i", f"{name}_started")
        self.label(f"{name}_started")
        above = self.lookup("@parents", f"%{name}_i")
        self.do(f"br label %{name}_up")
        self.label(f"{name}_up")
        self.do(f"%{name}_j = phi i64 [ {above}, %{name}_started ], [ %{name}_above, %{name}_stepped ]")
        self.do(f"%{name}_base = icmp slt i64 %{name}_j, 0")
        self.do(f"br i1 %{name}_base, label %{name}_end, label %{name}_step")
        self.label(f"{name}_step")
        self.switch(step.steps, f"%{name}_i", f"%{name}_j", f"{name}_stepped")
        self.label(f"{name}_stepped")
        found = self.lookup("@parents", f"%{name}_j")
        self.do(f"%{name}_above = add i64 {found}, 0")
        self.do(f"br label %{name}_up")
        self.label(f"{name}_end")
        self.do(f"%{name}_next = add i64 %{name}_i, 1")
        self.do(f"%{name}_more = icmp ne i64 %{name}_next, {links}")
        self.do(f"br i1 %{name}_more, label %{name}, label %{name}_out")
        self.label(f"{name}_out")

    def switch(self, bodies: Sequence[Body], first: str, link: str, end: str) -> None:
        """Run the body of this link's kind, then go to `end`."""
        if len(bodies) == 1:
            self.body(bodies[0], first, link)
            self.do(f"br label %{end}")
            return
        name = self.fresh("kind")
        kind = self.lookup("@kinds", link)
        cases = " ".join(f"i64 {k}, label %{name}_{k}" for k in range(1, len(bodies)))
        self.do(f"switch i64 {kind}, label %{name}_0 [ {cases} ]")
        for k, body in enumerate(bodies):
            self.label(f"{name}_{k}")
            self.body(body, first, link)
            self.do(f"br label %{end}")

    def lookup(self, table: str, link: str) -> str:
        place = self.emit(f"getelementptr i32, ptr {table}, i64 {link}")
        return self.emit(f"sext i32 {self.emit(f'load i32, ptr {place}')} to i64")

    def body(self, body: Body, first: str, link: str) -> None:
        values: dict[Node, str] = {}
        rows = {"base": "0"}
        if link:
            rows["own"] = self.emit(f"add i64 {link}, 1")
            rows["parent"] = self.emit(f"add i64 {self.lookup('@parents', link)}, 1")
        for node in body.nodes:
            if node.op == "input":
                base = self.staged_inputs[node.data[0]]
                values[node] = self.load_work(self.staged(base, self.element(node.data[1:], link)))
            elif node.op == "table":
                width = len(self.program.tables)
                index = self.emit(f"mul i64 {link}, {width}")
                place = self.emit(f"getelementptr {self.scalar}, ptr @tables, i64 {index}")
                place = self.emit(f"getelementptr {self.scalar}, ptr {place}, i64 {node.data[0]}")
                values[node] = self.splat(self.emit(f"load {self.scalar}, ptr {place}"))
            elif node.op == "load":
                array, slot, row = node.data[:3]
                place = self.work(array, str(row + 1) if isinstance(row, int) else rows[row], slot)
                values[node] = self.load_work(place)
            else:
                self.operation(node, values)
        for effect in body.effects:
            value = self.operand(effect.value, values)
            if isinstance(effect, Output):
                base = self.staged_outputs[effect.output]
                self.store_work(self.staged(base, self.element(effect.where, link)), value)
            elif isinstance(effect, PairOutput):
                side = self.program.outputs[effect.output].shape[1]
                a = self.emit(f"add i64 {self.lookup(f'@offsets{effect.offsets}', first)}, {effect.component[0]}")
                b = self.emit(f"add i64 {self.lookup(f'@offsets{effect.offsets}', link)}, {effect.component[1]}")
                for i, j in effect.places(a, b):
                    element = self.emit(f"add i64 {self.emit(f'mul i64 {i}, {side}')}, {j}")
                    self.scatter(effect.output, element, value)
            elif isinstance(effect, Store):
                self.store_work(self.work(effect.array, rows[effect.row], effect.slot), value)
            else:
                assert isinstance(effect, Add)
                place = self.work(effect.array, rows["parent"], effect.slot)
                self.store_work(place, self.emit(f"fadd {self.vector} {self.load_work(place)}, {value}"))

    def work(self, array: int, row: str, slot: int) -> str:
        """The address of a slot of one row of a workspace array."""
        index = self.emit(f"mul i64 {row}, {self.program.arrays[array]}")
        place = self.emit(f"getelementptr {self.vector}, ptr %work, i64 {index}")
        return self.emit(f"getelementptr {self.vector}, ptr {place}, i64 {self.row_offsets[array] + slot}")

    def element(self, where: Sequence[int], link: str) -> str:
        if len(where) == 1:
            return str(where[0])
        return self.emit(f"add i64 {self.lookup(f'@offsets{where[0]}', link)}, {where[1]}")

    def scatter(self, output: int, element: str, value: str) -> None:
        value = self.emit(f"fadd {self.vector} {value}, {self.finite}")
        for lane, row in enumerate(self.out_rows[output]):
            place = self.emit(f"getelementptr {self.scalar}, ptr {row}, i64 {element}")
            entry = self.emit(f"extractelement {self.vector} {value}, i64 {lane}")
            self.do(f"store {self.scalar} {entry}, ptr {place}")

    def globals(self) -> list[str]:
        program = self.program
        lines = [self.integers("@parents", program.parents), self.integers("@kinds", program.kinds)]
        lines += [self.integers(f"@offsets{k}", offsets) for k, offsets in enumerate(program.offsets)]
        rows = [value for row in zip(*program.tables, strict=True) for value in row] or [0.0]
        numbers = ", ".join(f"{self.scalar} {self.literal(value)}" for value in rows)
        lines.append(f"@tables = internal constant [{len(rows)} x {self.scalar}] [{numbers}], align 64")
        return [*lines, _HELPERS.replace("SCALAR", self.scalar)]

    @staticmethod
    def integers(name: str, values: Sequence[int]) -> str:
        return f"{name} = internal constant [{len(values)} x i32] [{', '.join(f'i32 {v}' for v in values)}], align 64"


_HELPERS = """
define internal void @fill(ptr %row, i64 %size, SCALAR %value) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %place = getelementptr SCALAR, ptr %row, i64 %i
  store SCALAR %value, ptr %place
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %size
  br i1 %more, label %loop, label %end
end:
  ret void
}
"""
