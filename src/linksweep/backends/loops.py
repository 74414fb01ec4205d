"""LLVM IR of rolled programs: loops over the links inside the loop over groups of samples.

Inputs and results are transposed through the workspace, so that a link reads and writes whole vectors; the values that
links keep stand there too, one row of slots for each link. Results of pairs that are too large to stay in the cache
until the last pair is done are written as they come, neighbours of a row together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np

from ..tracing.expression import Node
from ..tracing.program import Add, Block, Body, Loop, Output, PairLoop, PairOutput, Program, Store
from .emitter import Emitter
from .result_elements import constant_zeros, neighbours, paired_outputs, unwritten
from .target import Target
from .transpose import load_columns, store_columns

Steps = tuple[Block | Loop | PairLoop, ...]
Loops = tuple[Loop | PairLoop, ...]

STAGED_PAIRS = 4096  # entries of a result of pairs: 256 KB for eight lanes, which stays in the second cache
SIDE_BY_SIDE = 4  # neighbours in a row that are worth a transposition


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
        paired = paired_outputs(program)
        self.blank: dict[int, np.ndarray] = {}  # elements of staged results that no pair writes
        self.scattered = [k for k in paired if program.outputs[k].size > STAGED_PAIRS]
        for k, array in enumerate(program.outputs):
            if k not in self.scattered:
                self.staged_outputs[k] = total
                total += array.size
            if k in self.staged_outputs and not program.rolled:
                self.blank[k] = np.array(constant_zeros(program, k), int)
            elif k in self.staged_outputs and k in paired:
                self.blank[k] = unwritten(program, k)
        self.workspace = total

    def prologue(self, bases: Sequence[tuple[str, str]]) -> None:
        super().prologue(bases)
        for k, elements in self.blank.items():
            if len(elements):
                self.each(f"@blank{k}", len(elements), lambda e, k=k: self._clear(k, e))

    def _clear(self, output: int, element: str) -> None:
        self.store_work(self.staged(self.staged_outputs[output], element), self.constant(0.0))

    def each(self, table: str, count: int, action: Callable[[str], None]) -> None:
        """A loop over the integers of a table."""
        name = self.fresh("each")
        self.do(f"br label %{name}_in")
        self.label(f"{name}_in")
        self.do(f"br label %{name}")
        self.label(name)
        self.do(f"%{name}_c = phi i64 [ 0, %{name}_in ], [ %{name}_next, %{name} ]")
        action(self.lookup(table, f"%{name}_c"))
        self.do(f"%{name}_next = add i64 %{name}_c, 1")
        self.do(f"%{name}_more = icmp slt i64 %{name}_next, {count}")
        self.do(f"br i1 %{name}_more, label %{name}, label %{name}_out")
        self.label(f"{name}_out")

    def run(self, rows: list[list[str]], out_rows: list[list[str]]) -> str:
        self.out_rows = out_rows
        poison = self.stage_inputs(rows)
        self.fill_pair_outputs()
        calls: dict[Loops, list[str]] = {}
        found = groupby(self.program.steps, lambda step: isinstance(step, Block))
        parts: list[tuple[bool, Steps]] = [(block, tuple(steps)) for block, steps in found]
        loops = [part for block, part in parts if not block]
        for block, part in parts:
            if block:
                for step in part:
                    assert isinstance(step, Block)
                    self.body(step.body, "", "")
                continue
            over_links = tuple(step for step in part if not isinstance(step, Block))
            if loops.count(part) == 1:
                self.loops(over_links)
            else:
                self.call(over_links, calls)
        self.stage_outputs()
        self.shared_loops(calls)
        return poison

    def loops(self, steps: Sequence[Loop | PairLoop]) -> None:
        for step in steps:
            if isinstance(step, Loop):
                self.loop(step)
            else:
                self.pair_loop(step)

    def call(self, steps: Loops, calls: dict[Loops, list[str]]) -> None:
        """Go to loops that stand once and run several times, and come back."""
        place = f"shared{list(calls).index(steps) if steps in calls else len(calls)}"
        name = self.fresh("call")
        calls.setdefault(steps, []).append(name)
        self.do(f"br label %{name}")
        self.label(name)
        self.do(f"br label %{place}")
        self.label(f"{name}_back")

    def shared_loops(self, calls: dict[Loops, list[str]]) -> None:
        """The loops of all calls, behind everything else."""
        if not calls:
            return
        self.do("br label %shared_end")
        for k, (steps, names) in enumerate(calls.items()):
            self.label(f"shared{k}")
            callers = ", ".join(f"[ {c}, %{name} ]" for c, name in enumerate(names))
            self.do(f"%shared{k}_caller = phi i64 {callers}")
            self.loops(steps)
            cases = " ".join(f"i64 {c}, label %{name}_back" for c, name in enumerate(names))
            self.do(f"switch i64 %shared{k}_caller, label %{names[0]}_back [ {cases} ]")
        self.label("shared_end")

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
                places = [f"getelementptr {self.scalar}, ptr {row}, i64 {start}" for row in self.out_rows[k]]
                store_columns(self, [self.emit(place) for place in places], columns)
                return sofar

            self.chunks(self.program.outputs[k].size, self.constant(0.0), chunk)

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
        """A pair of links on different branches has no body to write it: it is 0.

        What pairs will write is filled too: in order, memory is fetched ahead, and not line by line as pairs come to
        it. For Talos on a free base that makes a regressor in 8 us, not 53.
        """
        for k in self.scattered:
            last = self.program.outputs[k].size - self.lanes
            for row in self.out_rows[k]:
                self.do(f"call void @fill(ptr {row}, ptr %spare, i64 {last})")

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
        written: dict[Node, list[Output]] = {}
        for effect in body.effects:
            if isinstance(effect, Output) and isinstance(effect.value, Node):
                written.setdefault(effect.value, []).append(effect)
        for k, node in enumerate(body.nodes):
            if not link:
                self.cut(k, len(body.nodes))
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
            for effect in written.get(node, ()):  # at once: a value that waits takes a register
                self.output(effect, link, values[node])
        self.pair_outputs(body, first, link, values)
        for effect in body.effects:
            value = self.operand(effect.value, values)
            if isinstance(effect, Output):
                if not isinstance(effect.value, Node) and (self.program.rolled or effect.value != 0.0):
                    self.output(effect, link, value)
            elif isinstance(effect, PairOutput):
                continue
            elif isinstance(effect, Store):
                row = str(effect.row + 1) if isinstance(effect.row, int) else rows[effect.row]
                self.store_work(self.work(effect.array, row, effect.slot), value)
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

    def output(self, effect: Output, link: str, value: str) -> None:
        base = self.staged_outputs[effect.output]
        self.store_work(self.staged(base, self.element(effect.where, link)), value)

    def pair_outputs(self, body: Body, first: str, link: str, values: dict[Node, str]) -> None:
        """What a pair writes: into the workspace, or neighbours of a row together."""
        groups: dict[tuple[int, int, int], dict[int, str]] = {}
        for effect in body.effects:
            if isinstance(effect, PairOutput):
                of_i, of_j, component = effect.where
                groups.setdefault((effect.output, of_i, of_j), {})[component] = self.operand(effect.value, values)
        for (output, of_i, of_j), found in groups.items():
            of_first, of_link = self.lookup(f"@offsets{of_i}", first), self.lookup(f"@offsets{of_j}", link)
            begin = self.emit(f"add i64 {of_first}, {of_link}")
            if output in self.staged_outputs:
                for component, value in found.items():
                    self.store_work(self.staged(self.staged_outputs[output] + component, begin), value)
                continue
            for run in neighbours(list(found)):
                columns = [found[c] for c in run]
                element = self.emit(f"add i64 {begin}, {run[0]}")
                places = [f"getelementptr {self.scalar}, ptr {row}, i64 {element}" for row in self.out_rows[output]]
                rows = [self.emit(place) for place in places]
                if len(run) >= SIDE_BY_SIDE:
                    store_columns(self, rows, columns)
                else:
                    self.scatter(rows, columns)

    def scatter(self, rows: Sequence[str], columns: Sequence[str]) -> None:
        for k, value in enumerate(columns):
            for lane, row in enumerate(rows):
                place = self.emit(f"getelementptr {self.scalar}, ptr {row}, i64 {k}")
                entry = self.emit(f"extractelement {self.vector} {value}, i64 {lane}")
                self.do(f"store {self.scalar} {entry}, ptr {place}")

    def globals(self) -> list[str]:
        program = self.program
        lines = [self.integers("@parents", program.parents), self.integers("@kinds", program.kinds)]
        lines += [self.integers(f"@offsets{k}", offsets) for k, offsets in enumerate(program.offsets)]
        rows = [value for row in zip(*program.tables, strict=True) for value in row] or [0.0]
        numbers = ", ".join(f"{self.scalar} {self.literal(value)}" for value in rows)
        lines.append(f"@tables = internal constant [{len(rows)} x {self.scalar}] [{numbers}], align 64")
        lines += [self.integers(f"@blank{k}", [*map(int, found)]) for k, found in self.blank.items() if len(found)]
        names = {"SCALAR": self.scalar, "VECTOR": self.vector, "LANES": str(self.lanes), "BYTES": str(self.bytes)}
        helper = _FILL if self.scattered else ""
        for name, text in names.items():
            helper = helper.replace(name, text)
        return [*super().globals(), *lines, helper]

    @staticmethod
    def integers(name: str, values: Sequence[int]) -> str:
        return f"{name} = internal constant [{len(values)} x i32] [{', '.join(f'i32 {v}' for v in values)}], align 64"


_FILL = """
define internal void @fill(ptr %row, ptr %spare, i64 %last) noinline {
entry:
  %nobody = icmp eq ptr %row, %spare
  br i1 %nobody, label %end, label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %more ]
  %before = icmp slt i64 %i, %last
  br i1 %before, label %more, label %rest
more:
  %place = getelementptr SCALAR, ptr %row, i64 %i
  store VECTOR zeroinitializer, ptr %place, align BYTES
  %next = add i64 %i, LANES
  br label %loop
rest:
  %place_last = getelementptr SCALAR, ptr %row, i64 %last
  store VECTOR zeroinitializer, ptr %place_last, align BYTES
  br label %end
end:
  ret void
}
"""  # rows are longer than a vector; those of lanes without a sample are left alone
