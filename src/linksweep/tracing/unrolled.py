"""The sweeps written out into one block: every number of the robot is a constant and folds."""

from __future__ import annotations

from collections.abc import Sequence

from ..canonical import CanonicalModel
from ..spatial import leaves
from ..sweeps import PerLink, Unrolled
from .expression import Graph, Operand
from .program import Array, Program, block_program


class UnrolledTrace(Unrolled):
    """`Unrolled` over traced inputs. Inputs and outputs are named by their index; q is input 0."""

    def __init__(self, model: CanonicalModel, inputs: Sequence[Array]):
        self.inputs = tuple(inputs)
        self.graph = Graph()
        self.leaves = [
            [self.graph.leaf("input", (k, i), array.level) for i in range(array.size)] for k, array in enumerate(inputs)
        ]
        self.results: dict[int, Sequence[Operand]] = {}
        super().__init__(model, self.leaves[0])

    def split(self, source: int) -> PerLink:  # pyright: ignore[reportIncompatibleMethodOverride]
        return super().split(self.leaves[source])

    def split_rows(self, source: int, width: int) -> PerLink:  # pyright: ignore[reportIncompatibleMethodOverride]
        return super().split_rows(self.leaves[source], width)

    def join(self, output: int, per_link: PerLink) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.results[output] = super().join(per_link)

    def join_pairs(self, output: int, out: PerLink) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.results[output] = super().join_pairs(out)

    def join_columns(self, output: int, per_link: PerLink, height: int) -> None:
        columns = super().join(per_link)
        rows = zip(*(leaves(column) for column in columns), strict=True)
        self.results[output] = [value for row in rows for value in row]

    def write(self, output: int, values: Sequence[Operand]) -> None:
        self.results[output] = values

    def program(self, name: str, outputs: Sequence[Array]) -> Program:
        return block_program(name, self.inputs, [(array, self.results[k]) for k, array in enumerate(outputs)])
