"""LLVM IR of rolled programs: loops over the links inside the loop over groups of samples.

Inputs and results are transposed through the workspace, so that a link reads and writes whole vectors. Values that
links keep are there too, one row of slots per link. Results of pairs that are too large to stay in the cache until the
last pair is done are written as they come, neighbours of a row together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np

from ..tracing.expression import Node
from ..tracing.program import Add, Block, Body, Loop, Output, PairLoop, PairOutput, Program, Store
from .emitter import Emitter
from .target import Target

Loops = tuple[Loop | PairLoop, ...]

STAGED_PAIRS = 4096  # elements of a result of pairs: 256 KB for eight lanes, which stays in the second cache
SIDE_BY_SIDE = 4  # neighbours in a row that are worth a transposition


class LoopEmitter(Emitter):
    """Emits a program with loops."""

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
                if k in paired:
                    self.blank[k] = unwritten(program, k)
        self.workspace = total

    def prologue(self, bases: Sequence[tuple[str, str]]) -> None:
        super().prologue(bases)
        for k, elements in self.blank.items():
            if len(elements):
                with self.loop("each", 0, 1, f"slt {len(elements)}") as name:
                    element = self.lookup(f"@blank{k}", f"%{name}_i")
                    self.store_work(self.staged(self.staged_outputs[k], element), self.constant(0.0))

    def run(self, rows: list[list[str]], out_rows: list[list[str]]) -> str:
        self.out_rows = out_rows
        poison = self.stage_inputs(rows)
        self.fill_pair_outputs()
        groups: list[tuple[bool, tuple[Block | Loop | PairLoop, ...]]] = [
            (is_block, tuple(steps))
            for is_block, steps in groupby(self.program.steps, lambda step: isinstance(step, Block))
        ]
        calls: dict[Loops, list[str]] = {}
        for is_block, steps in groups:
            loops = tuple(step for step in steps if not isinstance(step, Block))
            if is_block or groups.count((is_block, steps)) == 1:
                self.steps(steps)
            else:
                self.call(loops, calls)
        self.stage_outputs()
        self.shared_loops(calls)
        return poison

    def steps(self, steps: Sequence[Block | Loop | PairLoop]) -> None:
        for step in steps:
            if isinstance(step, Block):
                self.body(step.body, "", "")
            elif isinstance(step, Loop):
                self.link_loop(step)
            else:
                self.pair_loop(step)

    def call(self, loops: Loops, calls: dict[Loops, list[str]]) -> None:
        """Branch to loops that are emitted once and run several times, and continue where they return."""
        shared = f"shared{list(calls).index(loops) if loops in calls else len(calls)}"
        name = self.fresh("call")
        calls.setdefault(loops, []).append(name)
        self.do(f"br label %{name}")
        self.label(name)
        self.do(f"br label %{shared}")
        self.label(f"{name}_back")

    def shared_loops(self, calls: dict[Loops, list[str]]) -> None:
        """Emit the loops of all calls, behind everything else."""
        if not calls:
            return
        self.do("br label %shared_end")
        for k, (loops, names) in enumerate(calls.items()):
            self.label(f"shared{k}")
            callers = ", ".join(f"[ {c}, %{name} ]" for c, name in enumerate(names))
            self.do(f"%shared{k}_caller = phi i64 {callers}")
            self.steps(loops)
            cases = " ".join(f"i64 {c}, label %{name}_back" for c, name in enumerate(names))
            self.do(f"switch i64 %shared{k}_caller, label %{names[0]}_back [ {cases} ]")
        self.label("shared_end")

    def stage_inputs(self, rows: list[list[str]]) -> str:
        """Transpose the inputs into the workspace. Return their poison."""
        total = self.constant(0.0)
        for k, array in enumerate(self.program.inputs):

            def chunk(start: str, size: int, sofar: str, k: int = k) -> str:
                places = [self.emit(f"getelementptr {self.scalar}, ptr {row}, i64 {start}") for row in rows[k]]
                columns = self.load_columns(places, size)
                for i, column in enumerate(columns):
                    self.store_work(self.staged(self.staged_inputs[k] + i, start), column)
                return self.emit(f"fadd {self.vector} {sofar}, {self.poison(columns)}")

            total = self.each_chunk(array.size, total, chunk)
        return total

    def stage_outputs(self) -> None:
        for k, base in self.staged_outputs.items():

            def chunk(start: str, size: int, sofar: str, k: int = k, base: int = base) -> str:
                columns = [self.load_work(self.staged(base + i, start)) for i in range(size)]
                places = [f"getelementptr {self.scalar}, ptr {row}, i64 {start}" for row in self.out_rows[k]]
                self.store_columns([self.emit(place) for place in places], columns)
                return sofar

            self.each_chunk(self.program.outputs[k].size, self.constant(0.0), chunk)

    def each_chunk(self, size: int, value: str, chunk: Callable[[str, int, str], str]) -> str:
        """Emit a loop over whole vectors of a row, then the rest. `value` goes through every chunk."""
        whole = size - size % self.lanes
        if whole:
            with self.loop("chunk", 0, self.lanes, f"slt {whole}") as name:
                self.do(f"%{name}_v = phi {self.vector} [ {value}, %{name}_in ], [ %{name}_w, %{name} ]")
                new = chunk(f"%{name}_i", self.lanes, f"%{name}_v")
                self.do(f"%{name}_w = fadd {self.vector} {new}, {self.constant(-0.0)}")  # a copy
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
        """Fill results of pairs with zeros: no body writes the elements of links on different branches.

        Elements that pairs write later are filled too, because in order memory is prefetched. A regressor of
        floating-base Talos takes 8 us instead of 53.
        """
        for k in self.scattered:
            last = self.program.outputs[k].size - self.lanes
            for row in self.out_rows[k]:
                self.do(f"call void @fill(ptr {row}, ptr %spare, i64 {last})")

    def link_loop(self, step: Loop) -> None:
        links = len(self.program.parents)
        first, stop, by = (0, links, 1) if step.outward else (links - 1, -1, -1)
        with self.loop("loop", first, by, f"ne {stop}", blocks=True) as name:
            self.switch(step.bodies, f"%{name}_i", f"%{name}_i", f"{name}_end")

    def pair_loop(self, step: PairLoop) -> None:
        with self.loop("pair", 0, 1, f"ne {len(self.program.parents)}", blocks=True) as name:
            if len(step.kinds) < len(step.starts):  # links of other kinds have no pairs
                cases = " ".join(f"i64 {kind}, label %{name}_start" for kind in step.kinds)
                self.do(f"switch i64 {self.lookup('@kinds', f'%{name}_i')}, label %{name}_end [ {cases} ]")
                self.label(f"{name}_start")
            self.switch(step.starts, f"%{name}_i", f"%{name}_i", f"{name}_started")
            self.label(f"{name}_started")
            parent = self.lookup("@parents", f"%{name}_i")
            self.do(f"br label %{name}_up")
            self.label(f"{name}_up")
            self.do(f"%{name}_j = phi i64 [ {parent}, %{name}_started ], [ %{name}_above, %{name}_stepped ]")
            self.do(f"%{name}_base = icmp slt i64 %{name}_j, 0")
            self.do(f"br i1 %{name}_base, label %{name}_end, label %{name}_step")
            self.label(f"{name}_step")
            self.switch(step.steps, f"%{name}_i", f"%{name}_j", f"{name}_stepped")
            self.label(f"{name}_stepped")
            parent = self.lookup("@parents", f"%{name}_j")
            self.do(f"%{name}_above = add i64 {parent}, 0")
            self.do(f"br label %{name}_up")

    def switch(self, bodies: Sequence[Body], first: str, link: str, end: str) -> None:
        """Emit the bodies; that of the link's kind runs, then control goes to `end`."""
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
                if not isinstance(effect.value, Node):
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
        """Return the address of a slot of one row of a workspace array."""
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
        """Store the results of a pair: into the workspace, or neighbours of a row together."""
        groups: dict[tuple[int, int, int], dict[int, str]] = {}
        for effect in body.effects:
            if isinstance(effect, PairOutput):
                of_i, of_j, component = effect.where
                groups.setdefault((effect.output, of_i, of_j), {})[component] = self.operand(effect.value, values)
        for (output, of_i, of_j), elements in groups.items():
            of_first, of_link = self.lookup(f"@offsets{of_i}", first), self.lookup(f"@offsets{of_j}", link)
            begin = self.emit(f"add i64 {of_first}, {of_link}")
            if output in self.staged_outputs:
                for component, value in elements.items():
                    self.store_work(self.staged(self.staged_outputs[output] + component, begin), value)
                continue
            for run in neighbours(list(elements)):
                columns = [elements[c] for c in run]
                element = self.emit(f"add i64 {begin}, {run[0]}")
                places = [f"getelementptr {self.scalar}, ptr {row}, i64 {element}" for row in self.out_rows[output]]
                rows = [self.emit(place) for place in places]
                if len(run) >= SIDE_BY_SIDE:
                    self.store_columns(rows, columns)
                else:
                    self.scatter(rows, columns)

    def scatter(self, rows: Sequence[str], columns: Sequence[str]) -> None:
        for k, value in enumerate(columns):
            for lane, row in enumerate(rows):
                place = self.emit(f"getelementptr {self.scalar}, ptr {row}, i64 {k}")
                entry = self.emit(f"extractelement {self.vector} {value}, i64 {lane}")
                self.do(f"store {self.scalar} {entry}, ptr {place}")

    def constant_globals(self) -> list[str]:
        program = self.program
        lines = [self.integers("@parents", program.parents), self.integers("@kinds", program.kinds)]
        lines += [self.integers(f"@offsets{k}", offsets) for k, offsets in enumerate(program.offsets)]
        rows = [value for row in zip(*program.tables, strict=True) for value in row] or [0.0]
        numbers = ", ".join(f"{self.scalar} {self.literal(value)}" for value in rows)
        lines.append(f"@tables = internal constant [{len(rows)} x {self.scalar}] [{numbers}], align 64")
        lines += [
            self.integers(f"@blank{k}", [*map(int, elements)]) for k, elements in self.blank.items() if len(elements)
        ]
        names = {"SCALAR": self.scalar, "VECTOR": self.vector, "LANES": str(self.lanes), "BYTES": str(self.bytes)}
        helper = _FILL if self.scattered else ""
        for name, text in names.items():
            helper = helper.replace(name, text)
        return [*super().constant_globals(), *lines, helper]

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
"""  # rows are longer than a vector; lanes without a sample have the spare row, which is skipped


# ---- elements of results ----


def paired_outputs(program: Program) -> list[int]:
    """Return the results that pairs of links write. Elements of links on different branches, not a pair, are 0."""
    return sorted({e.output for b in program.bodies() for e in b.effects if isinstance(e, PairOutput)})


def unwritten(program: Program, output: int) -> np.ndarray:
    """Return the elements of a result that no pair writes."""
    written = np.zeros(program.outputs[output].size, bool)
    tables = [np.array(offsets) for offsets in program.offsets]
    for step in program.steps:
        if not isinstance(step, PairLoop):
            continue
        above: list[tuple[list[int], list[int]]] = [([], []) for _ in step.steps]
        own: list[list[int]] = [[] for _ in step.starts]
        for i, kind in enumerate(program.kinds):
            j = program.parents[i] if kind in step.kinds else -1
            if kind in step.kinds:
                own[kind].append(i)
            while j >= 0:
                above[program.kinds[j]][0].append(i)
                above[program.kinds[j]][1].append(j)
                j = program.parents[j]
        runs = [*zip(step.starts, ((links, links) for links in own), strict=True), *zip(step.steps, above, strict=True)]
        for body, (firsts, links) in runs:
            for effect in body.effects if links else ():
                if isinstance(effect, PairOutput) and effect.output == output:
                    of_i, of_j, component = effect.where
                    written[tables[of_i][firsts] + tables[of_j][links] + component] = True
    return np.flatnonzero(~written)


def neighbours(components: Sequence[int]) -> list[list[int]]:
    """Group consecutive integers."""
    runs: list[list[int]] = []
    for component in sorted(components):
        if runs and component == runs[-1][-1] + 1:
            runs[-1].append(component)
        else:
            runs.append([component])
    return runs
