"""LLVM IR of long programs: straight-line code in parts, each a function of its own.

LLVM allocates the registers of a short function better, and its time grows with the square of a function's length. A
value that a later part needs goes through the workspace. Its place is used again after the last part that reads it.

`PartEmitter` emits programs without loops: the kernel reads the inputs, takes their sines and cosines and calls the
parts; each part writes the results that it completes. `LongBlockEmitter` emits programs with loops, and their long
blocks in parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TypeGuard, TypeVar

from ..tracing.expression import ONLINE, Node, Operand
from ..tracing.program import Block, Body, Loop, Output, PairLoop, Program, Store, needed
from .emitter import COMPARISONS, Chunk, Emitter, chunks_by_step, mostly_stored, straight_body
from .loops import LoopEmitter
from .target import Target

T = TypeVar("T")

# With 16 registers (AVX2), batch 1024: two 7-joint arms that hold an object (5,024 operations) in one function 431 ns a
# sample, in parts of 1000, 400, 300, 200 and 100 operations 396, 366, 350, 356 and 379. Talos' inverse dynamics (2,242)
# 227 against 259; forward dynamics of 7 joints (1,334) 100 against 93. Where most of the time goes into stores, the
# order of memory is worth more: M of Talos on a free base, batch 4096, 731 ns in one function, 1185 in parts.
# With 32 (AVX-512): Panda's forward derivatives (6,952) 203 ns in one function, 265 in parts; products with those of
# Talos (24,101) 832 against 801, and LLVM takes 2.9 s against 2.2.
CUT = {16: 2000, 32: 20_000}  # operations, beyond which a program is cut, by the number of registers
LONGEST = 300  # operations of a part
PIECE = 160  # operations of a column between two labels: what it reads is read again, and what it wrote is written by
# then. Talos' forward derivatives: 36.8 us for a group of 8 samples without, 31.9 with them (33.4 in pieces of 48)


def is_long(program: Program, target: Target) -> bool:
    """Return whether a program without loops should be cut into parts."""
    operations = sum(len(body.nodes) for body in program.bodies())
    if program.rolled or operations <= CUT[target.registers]:
        return False
    return operations > CUT[32] or not mostly_stored(program)


def cut(work: Sequence[T]) -> list[Sequence[T]]:
    """Cut a sequence into parts of nearly equal length, none longer than LONGEST."""
    count = -(-len(work) // LONGEST)
    return [work[a:b] for a, b in pairwise(len(work) * k // count for k in range(count + 1))]


def assign_places(values: Iterable[tuple[Node, int, int]], start: int) -> tuple[dict[Node, int], int]:
    """Assign places of the workspace, from `start` on, to (value, part that computes it, last part that reads it).

    Values come in the order of the parts that compute them. A place is used again in the parts after the last one that
    reads it, except for a parameter, which all groups of samples read. Return the places and the end of the last one.
    """
    places: dict[Node, int] = {}
    free: list[int] = []
    ending: dict[int, list[int]] = {}
    for node, begin, end in values:
        for past in sorted(k for k in ending if k < begin):
            free += ending.pop(past)
        if not free:
            free, start = [start], start + 1
        places[node] = free.pop()
        if node.level == ONLINE:
            ending.setdefault(end, []).append(places[node])
    return places, start


class PartEmitter(Emitter):
    """Emits a long program without loops."""

    def __init__(self, program: Program, dtype: str, target: Target):
        super().__init__(program, dtype, target)
        body = straight_body(program)
        angles = set(needed(node for node in body.nodes if node.op in ("sin", "cos")))
        online = [node for node in body.nodes if node.level == ONLINE]
        self.inputs = [node for node in online if node.op == "input"]
        self.first = [node for node in online if node.op != "input" and node in angles]
        self.work = [node for node in online if node.op != "input" and node not in angles]
        self.parts = cut(range(len(self.work)))
        self.ready = chunks_by_step(program, body, self.work, self.lanes)
        self.ready.setdefault(0, [])[:0] = self.ready.pop(-1)  # results that need no work
        self.row_places = -(-self.lanes * 8 // target.vector_bytes)  # of the rows of one result
        first_place = len(program.outputs) * self.row_places
        self.places, self.workspace = assign_places(self._crossing(), first_place)

    def _crossing(self) -> list[tuple[Node, int, int]]:
        """Return values that a later part reads: (value, part that computes it or -1, last part that reads it)."""
        computed: dict[Node, int] = {}
        last: dict[Node, int] = {}
        for k, steps in enumerate(self.parts):
            for step in steps:
                computed[self.work[step]] = k
                read: list[Operand] = list(self.work[step].args)
                for _, _, values in self.ready.get(step, ()):
                    read += values
                read += [y for x in read if isinstance(x, Node) and x.op in COMPARISONS for y in x.args]
                last.update((x, k) for x in read if isinstance(x, Node))
        kept = ((computed.get(x, -1), x.order, k, x) for x, k in last.items() if x.op not in COMPARISONS)
        return [(x, begin, end) for begin, _, end, x in sorted(kept) if end > begin]

    def prologue(self, bases: Sequence[tuple[str, str]]) -> None:
        super().prologue(bases)
        self._keep(self.values)

    def run(self, rows: list[list[str]], out_rows: list[list[str]]) -> str:
        loaded = [self.load_columns(rows[k], array.size) for k, array in enumerate(self.program.inputs)]
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
        for k, steps in enumerate(self.parts):
            with self.function(f"@part{k}", "ptr %work"):
                self._part(steps)
        return poison

    def _part(self, steps: Sequence[int]) -> None:
        self.values = {}
        rows: dict[int, list[str]] = {}
        for step in steps:
            node = self.work[step]
            self.operation(node, self.values)
            self._keep({node: self.values[node]})
            for chunk in self.ready.get(step, ()):
                self._store_chunk(chunk, rows)

    def _store_chunk(self, chunk: Chunk, rows: dict[int, list[str]]) -> None:
        output = chunk[0]
        if output not in rows:
            rows[output] = [self.emit(f"load ptr, ptr {self._row(output, lane)}") for lane in range(self.lanes)]
        self.store_ready([chunk], rows)

    def reload(self, x: Node) -> str:
        return self.emit(f"load {self.vector}, ptr {self._place(self.places[x])}")

    def _keep(self, values: dict[Node, str]) -> None:
        for node, value in values.items():
            if node in self.places:
                self.do(f"store {self.vector} {value}, ptr {self._place(self.places[node])}")

    def _place(self, number: int) -> str:
        return self.emit(f"getelementptr {self.vector}, ptr %work, i64 {number}")

    def _row(self, output: int, lane: int) -> str:
        place = self._place(output * self.row_places)
        return self.emit(f"getelementptr ptr, ptr {place}, i64 {lane}")


def has_long_block(program: Program) -> bool:
    """Return whether a program has loops and a block that is too long for one function."""
    return program.rolled and any(is_long_block(step) for step in program.steps)


def is_long_block(step: Block | Loop | PairLoop) -> TypeGuard[Block]:
    if not isinstance(step, Block) or len(step.body.nodes) <= CUT[16]:
        return False
    return all(node.level == ONLINE and node.op != "load" for node in step.body.nodes)


def is_column(body: Body) -> bool:
    """Return whether a loop's body only reads what is kept and writes results, so that it can be a function."""
    if not all(isinstance(effect, Output) and len(effect.where) == 2 for effect in body.effects):
        return False
    leaves = [node for node in body.nodes if not node.args]
    return bool(leaves) and all(node.op == "load" and node.data[2] != "parent" for node in leaves)


class LongBlockEmitter(LoopEmitter):
    """Emits a program with loops, and its long blocks in parts.

    A part reads the staged inputs and what earlier parts left in the workspace, and writes into the workspace what
    later parts, the loops and the results need. It never reads what it writes. So it takes the workspace twice, as
    %work that it reads and %kept that it writes, and LLVM need not check whether the two overlap (3.7 s instead of 4.5
    for 64,000 operations of Talos' derivatives).
    """

    def __init__(self, program: Program, dtype: str, target: Target):
        super().__init__(program, dtype, target)
        self.places: dict[Node, int] = {}  # of values that cross from one part to another
        self.rows_of: dict[int, str] = {}  # in a column: the row of its link in each array
        self.parts = {id(step.body): _parts(step.body) for step in program.steps if is_long_block(step)}
        for parts in self.parts.values():
            places, self.workspace = assign_places(_crossing(parts), self.workspace)
            self.places |= places

    def body(self, body: Body, first: str, link: str) -> None:
        if link and is_column(body):
            self._column(body, link)
            return
        if id(body) not in self.parts:
            super().body(body, first, link)
            return
        written: dict[Node, list[Output | Store]] = {}
        known: list[Output | Store] = []  # results that are numbers or inputs
        for effect in body.effects:
            assert isinstance(effect, (Output, Store))
            if isinstance(effect.value, Node) and effect.value.op != "input":
                written.setdefault(effect.value, []).append(effect)
            else:
                known.append(effect)
        for part in self.parts[id(body)]:
            name, values = self.fresh("@part"), dict[Node, str]()
            with self.function(name, "ptr noalias readonly %work, ptr noalias %kept"):
                for effect in known:
                    self._store(self._target(effect), self.operand(effect.value, values))
                known = []
                for node in part:
                    self.operation(node, values)
                    if node in self.places:
                        self._store(self.places[node], values[node])
                    for effect in written.get(node, ()):
                        self._store(self._target(effect), values[node])
            self.do(f"call void {name}(ptr %work, ptr %work)")

    def _column(self, body: Body, link: str) -> None:
        """Emit a body that only writes results as a function, in which a value is read where it is first needed."""
        name, values = self.fresh("@turn"), dict[Node, str]()
        self.do(f"call void {name}(ptr %work, ptr %work, i64 {link})")
        written: dict[Operand, list[Output]] = {}
        for effect in body.effects:
            assert isinstance(effect, Output)
            written.setdefault(effect.value, []).append(effect)
        with self.function(name, "ptr noalias readonly %work, ptr noalias %kept, i64 %link"):
            targets: dict[int, str] = {}
            for table in sorted({effect.where[0] for effects in written.values() for effect in effects}):
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
                    index = self.staged_outputs[effect.output] + effect.where[1]
                    at = self.emit(f"getelementptr {self.vector}, ptr {targets[effect.where[0]]}, i64 {index}")
                    self.store_work(at, self.operand(node, values))
            self.do("br label %done")
            self.label("done")

    def reload(self, x: Node) -> str:
        base, place = self._source(x)
        return self.load_work(self.emit(f"getelementptr {self.vector}, ptr {base}, i64 {place}"))

    def _source(self, x: Node) -> tuple[str, int]:
        """Return the address of a value that this function did not compute: base pointer and index of a vector."""
        if x.op == "input":
            return "%work", self.staged_inputs[x.data[0]] + x.data[1]
        if x.op != "load":
            return "%work", self.places[x]
        array, slot, row = x.data[:3]
        if row == "own":
            return self.rows_of[array], self.row_offsets[array] + slot
        return "%work", self._slot(array, slot, row)

    def _slot(self, array: int, slot: int, row: str | int) -> int:
        """Return the index of a slot of the base's row, or of a link's row."""
        number = 0 if row == "base" else int(row) + 1
        return self.row_offsets[array] + number * self.program.arrays[array] + slot

    def _store(self, place: int, value: str) -> None:
        self.store_work(self.emit(f"getelementptr {self.vector}, ptr %kept, i64 {place}"), value)

    def _target(self, effect: Output | Store) -> int:
        """Return the index in the workspace that an effect of a block writes."""
        if isinstance(effect, Output):
            return self.staged_outputs[effect.output] + effect.where[0]
        return self._slot(effect.array, effect.slot, effect.row)


def _parts(body: Body) -> list[Sequence[Node]]:
    """Cut the operations of a block. Angles come first, because calls leave no value in a register."""
    angles = set(needed(node for node in body.nodes if node.op in ("sin", "cos")))
    return cut(sorted((node for node in body.nodes if node.op != "input"), key=lambda node: node not in angles))


def _crossing(parts: Sequence[Sequence[Node]]) -> list[tuple[Node, int, int]]:
    """Return values that a later part reads: (value, part that computes it, last part that reads it)."""
    last = {x: k for k, part in enumerate(parts) for node in part for x in _read(node)}
    return [
        (x, k, last[x]) for k, part in enumerate(parts) for x in part if last.get(x, -1) > k and x.op not in COMPARISONS
    ]


def _read(node: Node) -> Iterator[Node]:
    """Yield what a part needs for a node: also operands of comparisons, and the terms of an angle with an offset."""
    for x in node.args:
        if isinstance(x, Node):
            yield x
            if x.op in COMPARISONS or node.op in ("sin", "cos"):
                yield from _read(x)
