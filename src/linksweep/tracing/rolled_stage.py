"""Rolled sweeps inside a larger program: inputs are values, and so are the results.

Values go to workspace rows of their links in a Block, the sweeps run as loops over them, and the results are read from
rows again. Arrays that only the sweeps used serve the next stage, so that the workspace of four stages is that of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from ..errors import ArgumentError
from ..mechanism.canonical import CanonicalModel
from ..mechanism.sweeps import PerLink
from ..spatial.scalars import Values
from .expression import Graph, Node, Operand
from .program import Array, Block, Body, Effect, Loop, Output, PairLoop, Program, Store
from .rolled import Rolled


class Stages:
    """A program in the making: what its stages share."""

    def __init__(self, inputs: Sequence[Array]):
        self.inputs = tuple(inputs)
        self.graph = Graph()
        self.steps: list[Block | Loop | PairLoop] = []
        self.arrays: list[int] = []
        self.free: list[int] = []
        self.tables: list[tuple[float, ...]] = []
        self.offsets: list[tuple[int, ...]] = []
        self.kinds: tuple[int, ...] = ()
        self.parents: tuple[int, ...] = ()

    def program(self, name: str, outputs: Sequence[tuple[Array, Sequence[Operand]]]) -> Program:
        effects = [Output(k, (i,), value) for k, (_, values) in enumerate(outputs) for i, value in enumerate(values)]
        return Program(
            name, self.inputs, tuple(array for array, _ in outputs), (*self.steps, Block(Body.of(effects))),
            self.parents, self.kinds, tuple(self.arrays), tuple(self.tables), tuple(self.offsets),
        )  # fmt: skip


class RolledStage(Rolled):
    """The sweeps of one stage. given: an input's numbers in document order, flat, q first. results: what was written.

    Only of functions with a number for each rate.
    """

    def __init__(
        self, stages: Stages, model: CanonicalModel, inputs: Sequence[Array], given: Sequence[Sequence[Operand]]
    ):
        self.stages = stages
        self.results: dict[int, list[Operand]] = {}
        self._taken: list[int] = []
        self._given = [self._placed(model, values, k == 0) for k, values in enumerate(given)]
        super().__init__(model, inputs)
        stages.kinds, stages.parents = self.kinds, self.parents

    def _begin(self) -> None:
        shared = self.stages
        self.graph, self.steps, self.arrays = shared.graph, shared.steps, shared.arrays
        self.tables, self.offsets = shared.tables, shared.offsets

    def _array(self, slots: int) -> int:
        arrays, free = self.stages.arrays, self.stages.free
        fitting = [array for array in free if arrays[array] == slots]
        if fitting:
            free.remove(fitting[0])
            found = fitting[0]
        else:
            arrays.append(slots)
            found = len(arrays) - 1
        self._taken.append(found)
        return found

    def _placed(self, model: CanonicalModel, values: Sequence[Operand], coordinates: bool) -> int:
        """The array with these numbers, one row for each link."""
        array = self._array(max(link.nq for link in model.links))
        effects: list[Effect] = []
        for k, link in enumerate(model.links):
            first, count = (link.q_start, link.nq) if coordinates else (link.start, link.nv)
            effects += [Store(array, c, k, values[first + c]) for c in range(count)]
        self.stages.steps.append(Block(Body.of(effects)))
        return array

    def _coordinates(self, source: int, count: int, starts: int) -> list[Node]:
        return [self._load(self._given[source], c, "own") for c in range(count)]

    def write_forces(self, output: int, per_link: PerLink[Values]) -> None:
        """The results, copied to where no later stage writes."""
        links = self.model.links
        array = self._array(max(link.nv for link in links))
        self._taken.remove(array)
        flat: list[Operand] = [0.0] * self.model.nv
        effects: list[Effect] = []
        for k, link in enumerate(links):
            for c, value in enumerate(self.at(per_link, k)):
                effects.append(Store(array, c, k, value))
                flat[link.start + c] = self.graph.leaf("load", (array, c, k))
        self.steps.append(Block(Body.of(effects)))
        self.results[output] = flat
        self.stages.free += self._taken
        self._taken = []

    write_rates = write_forces

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise ArgumentError(
            "a stage as loops over links was asked for a pose or a matrix, expected a number for each rate: write the "
            "step out."
        )

    write = write_columns = write_pairs = write_pair_blocks = write_parameters = _refuse  # type: ignore[assignment]
