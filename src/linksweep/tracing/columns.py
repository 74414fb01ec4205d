"""Columns of results that are made alike, each from a column of values of its own: a loop with a turn for each.

Written out, the derivatives of Talos' accelerations are 62,000 operations of machine code for every group of samples,
most of them M^-1 times columns: more than the second cache holds. As a loop they are one body for each branch.
A turn is what programs call a link: its values stand in its row of an array, what all share in another array.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from ..spatial.scalars import is_zero
from .expression import Graph, Operand
from .program import Array, Block, Body, Effect, Loop, Output, Program, Store

OWN, SHARED = 0, 1  # arrays


@dataclass(frozen=True, slots=True)
class Column:
    """One column of several results: of each result the values it is made from. Columns that are alike share a body."""

    number: int
    made_from: Mapping[int, Sequence[Operand]]  # by output
    alike: Hashable


@dataclass(frozen=True, slots=True)
class ColumnLoop:
    """For every column: result[places[r], number] = made(values, shared)[r], results being square; made: of all
    results at a time, so that what they share is read once."""

    columns: Sequence[Column]
    shared: Sequence[Operand]
    made: Callable[[Sequence[Sequence[Operand]], Sequence[Operand]], Sequence[Sequence[Operand]]]
    places: Sequence[int]

    def written(self) -> set[tuple[int, int]]:
        """(output, element) of all that the loop writes."""
        side = len(self.places)
        return {(k, row * side + c.number) for c in self.columns for k in c.made_from for row in self.places}

    def program(self, graph: Graph, name: str, inputs: Sequence[Array], outputs: Sequence[Array],
                effects: Sequence[Effect]) -> Program:  # fmt: skip
        """`effects` as a block, then the loop."""
        kinds = {column.alike: k for k, column in enumerate({c.alike: c for c in self.columns}.values())}
        there = [self._filled(alike) for alike in kinds]  # of each kind
        kept = list(effects)
        for turn, column in enumerate(self.columns):
            wanted = there[kinds[column.alike]]
            values = [column.made_from[k][i] for k, filled in wanted.items() for i in filled]
            kept += [Store(OWN, slot, turn, value) for slot, value in enumerate(values)]
        turns, width = len(self.columns), -(-len(self.shared) // len(self.columns))
        kept += [Store(SHARED, k % width, k // width, value) for k, value in enumerate(self.shared)]
        known = [graph.leaf("load", (SHARED, k % width, k // width)) for k in range(len(self.shared))]
        bodies = tuple(self._body(graph, kind, known) for kind in there)
        slots = max(sum(map(len, kind.values())) for kind in there)
        offsets = tuple(column.number for column in self.columns)
        return Program(
            name, tuple(inputs), tuple(outputs), (Block(Body.of(kept)), Loop(True, bodies)), (-1,) * turns,
            tuple(kinds[column.alike] for column in self.columns), (slots, width), (), (offsets,), columns=True,
        )  # fmt: skip

    def _filled(self, alike: Hashable) -> dict[int, list[int]]:
        """Of each result, which of the values that these columns are made from are not 0 in all of them."""
        members = [column.made_from for column in self.columns if column.alike == alike]
        return {
            k: [i for i in range(len(self.places)) if not all(is_zero(made_from[k][i]) for made_from in members)]
            for k in members[0]
        }

    def _body(self, graph: Graph, kind: Mapping[int, Sequence[int]], shared: Sequence[Operand]) -> Body:
        side, slot = len(self.places), 0
        given: list[list[Operand]] = []
        for filled in kind.values():
            values: list[Operand] = [0.0] * side
            for i in filled:
                values[i] = graph.leaf("load", (OWN, slot, "own"))
                slot += 1
            given.append(values)
        made = self.made(given, shared)
        return Body.of([
            Output(output, (0, self.places[row] * side), 0.0 if is_zero(values[row]) else values[row])
            for row in range(side)
            for output, values in zip(kind, made, strict=True)
        ])  # fmt: skip
