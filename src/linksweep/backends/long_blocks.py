"""LLVM IR of programs that are long blocks and loops: the blocks in parts, each a function of its own (see parts.py).

A part reads the staged inputs and what earlier parts left in the workspace, and writes into the workspace what later
parts, the loops and the results need. It never reads what it writes: so it takes the workspace twice, as memory that it
reads and memory that it writes, and LLVM need not ask of every two whether they meet (3.7 s in the place of 4.5 for the
64,000 operations that Talos' derivatives were).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TypeGuard

from ..tracing.expression import ONLINE, Node, Operand
from ..tracing.program import Block, Body, Loop, Output, PairLoop, Program, Store, needed
from .loops import LoopEmitter
from .parts import COMPARISONS, CUT, LONGEST
from .target import Target

PIECE = 160  # operations of a turn between two labels: what it reads is read again, and what it wrote is written by
# then. Talos' forward derivatives: 36.8 us for a group of 8 samples without, 31.9 with them (33.4 in pieces of 48)


def has_long_block(program: Program) -> bool:
    """Whether it has loops, and beside them more straight-line code than should be one function."""
    return program.rolled and any(is_long_block(step) for step in program.steps)


def is_long_block(step: Block | Loop | PairLoop) -> TypeGuard[Block]:
    if not isinstance(step, Block) or len(step.body.nodes) <= CUT[16]:
        return False
    return all(node.level == ONLINE and node.op != "load" for node in step.body.nodes)


def is_turn(body: Body) -> bool:
    """Whether a loop's body reads what is kept and writes results, and nothing else: so it may be a function."""
    if not all(isinstance(effect, Output) and len(effect.where) == 2 for effect in body.effects):
        return False
    leaves = [node for node in body.nodes if not node.args]
    return bool(leaves) and all(node.op == "load" and node.data[2] != "parent" for node in leaves)


class LongBlockEmitter(LoopEmitter):
    """Writes a program with loops, and its long blocks in parts."""

    def __init__(self, program: Program, dtype: str, target: Target):
        super().__init__(program, dtype, target)
        self.functions: list[str] = []
        self.places: dict[Node, int] = {}  # of what goes from one part to another
        self.rows_of: dict[int, str] = {}  # in a turn: of each array the row of its link
        self.parts = {id(step.body): _cut(step.body) for step in program.steps if is_long_block(step)}
        for parts in self.parts.values():
            self._place(parts)

    def globals(self) -> list[str]:
        return [*super().globals(), *self.functions]

    def body(self, body: Body, first: str, link: str) -> None:
        if link and is_turn(body):
            self._turn(body, link)
            return
        if id(body) not in self.parts:
            super().body(body, first, link)
            return
        written: dict[Node, list[Output | Store]] = {}
        for effect in body.effects:
            assert isinstance(effect, (Output, Store))
            if isinstance(effect.value, Node) and effect.value.op != "input":
                written.setdefault(effect.value, []).append(effect)
        kernel = self.lines
        for k, part in enumerate(self.parts[id(body)]):
            name, values = self.fresh("@part"), dict[Node, str]()
            self.lines = [f"define internal void {name}(ptr noalias readonly %work, ptr noalias %kept) noinline {{"]
            if k == 0:
                self._write_given(body, values)
            for node in part:
                self.operation(node, values)
                if node in self.places:
                    self._store(self.places[node], values[node])
                for effect in written.get(node, ()):
                    self._store(self._target(effect), values[node])
            self.functions += [*self.lines, "  ret void", "}"]
            kernel.append(f"  call void {name}(ptr %work, ptr %work)")
        self.lines = kernel

    def _turn(self, body: Body, link: str) -> None:
        """A body that only writes results as a function, in which a value is read where it is first needed."""
        name, values, kernel = self.fresh("@turn"), dict[Node, str](), self.lines
        kernel.append(f"  call void {name}(ptr %work, ptr %work, i64 {link})")
        arguments = "ptr noalias readonly %work, ptr noalias %kept, i64 %link"
        self.lines = [f"define internal void {name}({arguments}) noinline {{"]
        written: dict[Operand, list[Output]] = {}
        for effect in body.effects:
            assert isinstance(effect, Output)
            written.setdefault(effect.value, []).append(effect)
        targets: dict[int, str] = {}
        for table in sorted({effect.where[0] for found in written.values() for effect in found}):
            offset = self.lookup(f"@offsets{table}", "%link")
            targets[table] = self.emit(f"getelementptr {self.vector}, ptr %kept, i64 {offset}")
        row = self.emit("add i64 %link, 1")
        for array in sorted({node.data[0] for node in body.nodes if node.op == "load" and node.data[2] == "own"}):
            index = self.emit(f"mul i64 {row}, {self.program.arrays[array]}")
            self.rows_of[array] = self.emit(f"getelementptr {self.vector}, ptr %work, i64 {index}")
        work = [node for node in body.nodes if node.op != "load"]
        for k, node in enumerate((*(value for value in written if not isinstance(value, Node)), *work)):
            if k % PIECE == PIECE - 1:
                piece = self.fresh("piece")
                self.do(f"br i1 {self.emit('icmp sge i64 %link, 0')}, label %{piece}, label %done")
                self.label(piece)
                values = {x: text for x, text in values.items() if x.op != "load"}
            if isinstance(node, Node):
                self.operation(node, values)
            for effect in written.get(node, ()):
                place = self.staged_outputs[effect.output] + effect.where[1]
                at = self.emit(f"getelementptr {self.vector}, ptr {targets[effect.where[0]]}, i64 {place}")
                self.store_work(at, self.operand(node, values))
        self.functions += [*self.lines, "  br label %done", "done:", "  ret void", "}"]
        self.lines = kernel

    def _write_given(self, body: Body, values: dict[Node, str]) -> None:
        """Numbers and inputs that are results or kept."""
        for effect in body.effects:
            assert isinstance(effect, (Output, Store))
            if not isinstance(effect.value, Node) or effect.value.op == "input":
                self._store(self._target(effect), self.operand(effect.value, values))

    def _place(self, parts: Sequence[Sequence[Node]]) -> None:
        """Give what goes from one part to another a place, which is taken again once the last has read it."""
        made = {node: k for k, part in enumerate(parts) for node in part}
        last = {x: k for k, part in enumerate(parts) for node in part for x in _read(node)}
        crossing = [x for part in parts for x in part if last.get(x, -1) > made[x] and x.op not in COMPARISONS]
        ending: list[list[int]] = [[] for _ in parts]
        free: list[int] = []
        begun = 0
        for x in crossing:
            while begun < made[x]:  # places that part `begun` was the last to read
                free += ending[begun]
                begun += 1
            if not free:
                free.append(self.workspace)
                self.workspace += 1
            self.places[x] = free.pop()
            ending[last[x]].append(self.places[x])

    def operand(self, x: Operand, values: dict[Node, str]) -> str:
        if isinstance(x, Node) and x not in values:
            if x.op in COMPARISONS:
                self.operation(x, values)
            else:
                base, place = self._source(x)
                values[x] = self.load_work(self.emit(f"getelementptr {self.vector}, ptr {base}, i64 {place}"))
        return super().operand(x, values)

    def _source(self, x: Node) -> tuple[str, int]:
        """Where in the workspace a value stands that was not made here."""
        if x.op == "input":
            return "%work", self.staged_inputs[x.data[0]] + x.data[1]
        if x.op != "load":
            return "%work", self.places[x]
        array, slot, row = x.data[:3]
        if row == "own":
            return self.rows_of[array], self.row_offsets[array] + slot
        return "%work", self._slot(array, slot, row)

    def _slot(self, array: int, slot: int, row: str | int) -> int:
        """A slot of a row that is known by now."""
        number = 0 if row == "base" else int(row) + 1
        return self.row_offsets[array] + number * self.program.arrays[array] + slot

    def _store(self, place: int, value: str) -> None:
        self.store_work(self.emit(f"getelementptr {self.vector}, ptr %kept, i64 {place}"), value)

    def _target(self, effect: Output | Store) -> int:
        """Where in the workspace an effect of a block writes."""
        if isinstance(effect, Output):
            return self.staged_outputs[effect.output] + effect.where[0]
        return self._slot(effect.array, effect.slot, effect.row)


def _cut(body: Body) -> list[list[Node]]:
    """Its operations in parts of equal length. Calls leave no value in a register: they come first."""
    angles = set(needed(node for node in body.nodes if node.op in ("sin", "cos")))
    work = [node for node in body.nodes if node.op != "input"]
    work.sort(key=lambda node: node not in angles)
    count = -(-len(work) // LONGEST)
    return [work[a:b] for a, b in pairwise(len(work) * k // count for k in range(count + 1))]


def _read(node: Node) -> Iterator[Node]:
    """What its part must have: also what comparisons are made of again, and the angles that a sum is taken apart to."""
    for x in node.args:
        if isinstance(x, Node):
            yield x
            if x.op in COMPARISONS or node.op in ("sin", "cos"):
                yield from _read(x)
