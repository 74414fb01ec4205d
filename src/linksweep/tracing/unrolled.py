"""The sweeps written out into one block: every number of the robot is a constant and folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..mechanism.canonical import CanonicalModel
from ..mechanism.joints import Coordinates
from ..mechanism.sweeps import Pairs, PerLink, Records, SquareSum, Unrolled
from ..spatial.algebra import Force, Motion, leaves
from ..spatial.scalars import Values
from .columns import ColumnLoop
from .expression import Graph, Operand
from .places import parameter_places
from .program import Array, Program, block_program, output_effects
from .tracer import PairBlocks, ParameterColumns, place_of


class UnrolledRun(Unrolled):
    """`Unrolled` over inputs of any scalar, `leaves`: all of a Tracer but the Program. q is the first input.

    described: makes another model from the inputs, some of which stand for numbers of it.
    """

    def __init__(
        self, model: CanonicalModel, inputs: Sequence[Array], leaves: Sequence[Sequence[Operand]],
        described: Callable[[Sequence[Sequence[Operand]]], CanonicalModel] | None = None,
    ):  # fmt: skip
        self.inputs = tuple(inputs)
        self.leaves = leaves
        self.results: dict[int, Sequence[Operand]] = {}
        super().__init__(described(self.leaves) if described else model, self.leaves[0])

    def read(self, name: str) -> Records[Coordinates]:
        return self.split(self.read_flat(name))

    def read_forces(self, name: str) -> Records[Coordinates]:
        return self.split_forces(self.read_flat(name))

    def read_rows(self, name: str, width: int) -> Records[Coordinates]:
        flat = self.read_flat(name)
        return Records(Coordinates(flat[link.row * width : (link.row + 1) * width]) for link in self.model.links)

    def read_flat(self, name: str) -> Sequence[Operand]:
        return self.leaves[place_of(self.inputs, name)]

    def write_forces(self, output: int, per_link: PerLink[Values]) -> None:
        self.results[output] = self.join(per_link)

    def write_rates(self, output: int, per_link: PerLink[Values]) -> None:
        self.results[output] = self.join_rates(per_link)

    def write_pairs(self, output: int, elements: Pairs, mirrored: bool = True) -> None:
        self.results[output] = self.join_pairs(elements, mirrored)

    def write_pair_blocks(self, elements: Pairs, fields: Mapping[int, str]) -> None:
        pairs: dict[tuple[int, int], object] = elements
        for output, field in fields.items():
            found = SquareSum(self.model.nv)
            for (i, j), record in pairs.items():
                blocks: PairBlocks = getattr(record, field)
                first, second = self.model.links[i].start, self.model.links[j].start
                for row, column, block in ((second, first, blocks.above), (first, second, blocks.below)):
                    for a, values in enumerate(block):
                        for b, value in enumerate(values):
                            found.add(row + a, column + b, value)
            self.results[output] = found.flat

    def write_parameters(self, output: int, elements: Pairs, packed: bool) -> None:
        places = parameter_places(self.model, packed)
        flat: list[Operand] = [0.0] * places.size
        pairs: dict[tuple[int, int], ParameterColumns] = elements
        for (i, j), record in pairs.items():
            for k, forces in enumerate(record.columns):
                for freedom, value in enumerate(forces):
                    place = places.of_link[i] + places.of_joint[j] + freedom * places.row + k
                    flat[place] = flat[place] + value  # coupled joints share a row
            for freedom, value in enumerate(record.motor):
                ratio = self.model.links[i].ratio
                flat[places.motor[i] + freedom * places.motor_row] = value * (ratio * ratio)
        self.results[output] = flat

    def write_columns(self, output: int, per_link: PerLink[Sequence[Motion | Force]]) -> None:
        columns = self.join(per_link)
        rows = zip(*(leaves(column) for column in columns), strict=True)
        self.results[output] = [*self.results.get(output, ()), *(value for row in rows for value in row)]

    def write(self, output: int, values: Sequence[Operand]) -> None:
        self.results[output] = values


class UnrolledTrace(UnrolledRun):
    """A run over symbols: a Tracer."""

    def __init__(
        self, model: CanonicalModel, inputs: Sequence[Array],
        described: Callable[[Sequence[Sequence[Operand]]], CanonicalModel] | None = None,
    ):  # fmt: skip
        self.graph = Graph()
        self.columns: ColumnLoop | None = None  # runs after everything else, and writes over what is written there
        leaves = [
            [self.graph.leaf("input", (k, i), array.level) for i in range(array.size)] for k, array in enumerate(inputs)
        ]
        super().__init__(model, inputs, leaves, described)

    def program(self, name: str, outputs: Sequence[Array]) -> Program:
        results = [self.results[k] for k in range(len(outputs))]
        if self.columns is None:
            return block_program(name, self.inputs, list(zip(outputs, results, strict=True)))
        written = self.columns.written()
        effects = [effect for effect in output_effects(results) if (effect.output, *effect.where) not in written]
        return self.columns.program(self.graph, name, self.inputs, outputs, effects)
