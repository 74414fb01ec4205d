"""What backends rely on in a Program, checked before one sees it: they write machine code and C that look at nothing.

Every element of an input, a result, a table or an array of kept values that a body touches is there, for every link
that runs the body; every value is computed before it is used; every element of a result is written.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from ..errors import BackendError
from .expression import BINARY, LEAVES, ONLINE, TERNARY, UNARY, Node, Operand
from .program import Add, Block, Body, Effect, Loop, Output, PairLoop, PairOutput, Program

_ARITY = {**dict.fromkeys(UNARY, 1), **dict.fromkeys(BINARY, 2), **dict.fromkeys(TERNARY, 3)}


def verify(program: Program) -> None:
    """Raise a BackendError where a backend would read or write what is not there."""
    _Verifier(program).run()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a body runs: the links that run it, and in a PairLoop with which links i."""

    links: Sequence[int] = ()
    pairs: Sequence[tuple[int, int]] = ()
    in_loop: bool = False


@dataclass(slots=True)
class _Verifier:
    program: Program
    written: list[list[int]] = field(default_factory=list[list[int]])  # elements of each result
    # of offsets, over some links
    spans: dict[tuple[int, ...], tuple[int, int]] = field(default_factory=dict[tuple[int, ...], tuple[int, int]])

    def run(self) -> None:
        program = self.program
        self.check_arrays()
        self.written = [[] for _ in program.outputs]
        for step in program.steps:
            if isinstance(step, Block):
                self.check_body(step.body, _Place())
            else:
                self.check_loop(step)
        paired = {e.output for body in program.bodies() for e in body.effects if isinstance(e, PairOutput)}
        for k, array in enumerate(program.outputs):
            if k not in paired:
                elements = sorted(set(self.written[k]) if program.rolled else self.written[k])
                self.require(elements == list(range(array.size)), f"not all of {array.name} is written exactly once")

    def require(self, condition: bool, what: str) -> None:
        if not condition:
            self.refuse(what)

    def refuse(self, what: str) -> NoReturn:
        raise BackendError(
            f"{self.program.name} cannot be compiled ({what}), expected a program that stays within its arrays and "
            f"finite numbers: check the robot's description for numbers beyond reason, or report this as a fault."
        )

    def check_arrays(self) -> None:
        program, links = self.program, len(self.program.parents)
        parents = program.parents
        ordered = all(_is_index(parent + 1, index + 1) for index, parent in enumerate(parents))
        self.require(ordered, "links out of order")
        self.require(len(program.kinds) == links, f"{len(program.kinds)} kinds of {links} links")
        self.require(links > 0 or not program.rolled, "loops over no links")
        for offsets in program.offsets:
            self.require(len(offsets) == links and all(type(x) is int for x in offsets), "offsets of other links")
        for table in program.tables:
            self.require(len(table) == links, "a table of other links")
        sizes = [size for array in (*program.inputs, *program.outputs) for size in array.shape]
        self.require(all(_is_index(size, 2**31) for size in (*sizes, *program.arrays)), "impossible sizes")

    def check_loop(self, step: Loop | PairLoop) -> None:
        """Every link's kind has a body, and each body fits the links of its kind."""
        kinds = self.program.kinds
        groups = [step.bodies] if isinstance(step, Loop) else [step.starts, step.steps]
        taking_part = set(range(len(groups[0]))) if isinstance(step, Loop) else set(step.kinds)
        above: list[list[tuple[int, int]]] = [[] for _ in groups[0]]  # pairs (i, j) by the kind of j
        for i, kind in enumerate(kinds) if isinstance(step, PairLoop) else ():
            j = self.program.parents[i]
            while kind in taking_part and j >= 0:
                above[kinds[j]].append((i, j))
                j = self.program.parents[j]
        for bodies in groups:
            self.require(all(_is_index(kind, len(bodies)) for kind in kinds), "a kind without a body")
            for kind, body in enumerate(bodies):
                links = [link for link, own in enumerate(kinds) if own == kind]
                if links:
                    pairs = [(i, i) for i in links] if bodies is groups[0] else above[kind]
                    self.check_body(body, _Place(links, pairs, True))

    def check_body(self, body: Body, place: _Place) -> None:
        self.spans.clear()
        seen: set[Node] = set()
        for node in body.nodes:
            if node.op in LEAVES:
                self.check_leaf(node, place)
            else:
                self.check_operation(node, seen)
            seen.add(node)
        for effect in body.effects:
            if not _known(effect.value, seen):
                self.refuse(f"{effect} uses a value that is not computed, or not finite")
            self.check_effect(effect, place)

    def check_operation(self, node: Node, seen: Collection[Node]) -> None:
        if _ARITY.get(node.op) != len(node.args):
            self.refuse(f"{node.op} with {len(node.args)} operands")
        for arg in node.args:
            if not _known(arg, seen):
                self.refuse(f"{node} runs before its operands, or they are not finite")

    def check_leaf(self, node: Node, place: _Place) -> None:
        self.require(not node.args, f"{node.op} with operands")
        early = node.level < ONLINE  # read before any sample, and outside every loop
        if node.op == "input":
            source, *where = node.data
            self.require(_is_index(source, len(self.program.inputs)), f"input {source}")
            self.require(not early or len(where) == 1, f"{node} is read early")
            place_of: int = source
            self.check_element(where, self.program.inputs[place_of].size, place)
        elif node.op == "table":
            known = _is_index(node.data[0], len(self.program.tables)) and place.in_loop and not early
            self.require(known, f"table {node.data[0]}")
        else:
            array, slot, row = node.data[:3]
            self.require(not early, f"{node} is read early")
            self.check_slot(array, slot)
            self.require(self.is_row(row, place), f"row {row!r}")

    def check_effect(self, effect: Effect, place: _Place) -> None:
        if isinstance(effect, Output):
            self.require(_is_index(effect.output, len(self.program.outputs)), f"result {effect.output}")
            self.written[effect.output] += self.check_element(
                effect.where, self.program.outputs[effect.output].size, place
            )
        elif isinstance(effect, PairOutput):
            self.require(_is_index(effect.output, len(self.program.outputs)), f"result {effect.output}")
            of_i, of_j, component = effect.where
            self.require(place.in_loop and type(component) is int, f"pairs at {effect.where}")
            low, high = self.pair_span(of_i, of_j, place.pairs)
            size = self.program.outputs[effect.output].size
            self.require(low + component >= 0 and high + component < size, f"{effect} out of range")
        else:
            self.check_slot(effect.array, effect.slot)
            row = "parent" if isinstance(effect, Add) else effect.row
            self.require(self.is_row(row, place), f"row {row!r}")

    def check_element(self, where: Sequence[int], size: int, place: _Place) -> list[int]:
        """The elements that (element,) or (offsets, component) stands for, all of which are there."""
        if len(where) == 1:
            if not _is_index(where[0], size):
                self.refuse(f"element {where[0]} of {size}")
            return [where[0]]
        self.require(len(where) == 2 and place.in_loop and type(where[1]) is int, f"element {tuple(where)}")
        low, high = self.span(where[0], place.links)
        self.require(low + where[1] >= 0 and high + where[1] < size, f"element {high + where[1]} of {size}")
        return [self.program.offsets[where[0]][link] + where[1] for link in place.links]

    def check_slot(self, array: int, slot: int) -> None:
        known = _is_index(array, len(self.program.arrays)) and _is_index(slot, self.program.arrays[array])
        self.require(known, f"slot {slot} of array {array}")

    def is_row(self, row: str | int, place: _Place) -> bool:
        if isinstance(row, str):
            return row == "base" or (place.in_loop and row in ("own", "parent"))
        return _is_index(row, len(self.program.parents))

    def span(self, offsets: int, links: Sequence[int]) -> tuple[int, int]:
        """The least and the largest offset of these links; the same few are asked for again and again."""
        self.require(_is_index(offsets, len(self.program.offsets)), f"offsets {offsets}")
        key = (offsets, id(links))
        if key not in self.spans:
            own = [self.program.offsets[offsets][link] for link in links]
            self.spans[key] = min(own), max(own)
        return self.spans[key]

    def pair_span(self, of_i: int, of_j: int, pairs: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """The least and the largest sum of two offsets, one of i and one of j, over these pairs."""
        for offsets in (of_i, of_j):
            self.require(_is_index(offsets, len(self.program.offsets)), f"offsets {offsets}")
        key = (of_i, of_j, id(pairs))
        if key not in self.spans:
            a, b = self.program.offsets[of_i], self.program.offsets[of_j]
            sums = [a[i] + b[j] for i, j in pairs] or [0]
            self.spans[key] = min(sums), max(sums)
        return self.spans[key]


def _is_index(value: object, length: int) -> bool:
    return type(value) is int and 0 <= value < length


def _known(value: Operand, seen: Collection[Node]) -> bool:
    return value in seen if isinstance(value, Node) else not isinstance(value, float) or math.isfinite(value)
