"""Tracers, which turn the sweeps of an algorithm into a Program.

A tracer is a Sweep over symbols. It reads inputs by name, one record per link, and writes results by index. The
protocol `Tracer` serves unrolled and rolled programs alike: `UnrolledTrace` unrolls every link, and `Rolled`
(rolled.py) makes a loop of each sweep. Either returns a `program` at the end. `UnrolledRun` computes with values of
any scalar instead.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ..mechanism.canonical import CanonicalModel
from ..mechanism.joints import Coordinates
from ..mechanism.sweeps import Pairs, PerLink, Records, SquareSum, Sweep, Unrolled
from ..model.model import BASE
from ..spatial.algebra import Force, Motion, Vec, leaves
from ..spatial.scalars import Rows, Values, is_zero
from .expression import Graph, Operand
from .program import Array, Block, Body, Effect, Loop, Output, Program, Store, block_program, output_effects


class PairBlocks(Protocol):
    """Blocks of a square result for link i and its ancestor j: `above` in the rows of j, `below` in the rows of i."""

    above: Rows
    below: Rows


class ParameterColumns(Protocol):
    """Regressor entries of link i and its ancestor j: forces of joint j for each parameter of link i."""

    columns: Sequence[Values]
    motor: Values


class Tracer(Sweep, Protocol):
    @property
    def model(self) -> CanonicalModel: ...

    @property
    def inputs(self) -> tuple[Array, ...]: ...

    def read(self, name: str) -> PerLink[Coordinates]:
        """Return velocities or accelerations (nv), by link."""
        ...

    def read_forces(self, name: str) -> PerLink[Coordinates]:
        """Return joint forces (nv), by link; followers of coupled joints have none."""
        ...

    def read_rows(self, name: str, width: int) -> PerLink[Values]:
        """Return an input (links, width), by link."""
        ...

    def read_flat(self, name: str) -> Sequence[Operand]:
        """Return all elements of an input."""
        ...

    def write(self, output: int, values: Sequence[Operand]) -> None:
        """Write all elements of a result."""
        ...

    def write_forces(self, output: int, per_link: PerLink[Values]) -> None:
        """Write joint forces to a result (nv); those of coupled joints are added."""
        ...

    def write_rates(self, output: int, per_link: PerLink[Values]) -> None:
        """Write velocities or accelerations to a result (nv)."""
        ...

    def write_columns(self, output: int, per_link: PerLink[Sequence[Motion | Force | Vec]]) -> None:
        """Write the next rows of a result, with a column for each velocity."""
        ...

    def write_pairs(self, output: int, elements: Pairs, mirrored: bool = True) -> None:
        """Write a square result from the blocks of pairs and, if mirrored, their transposes."""
        ...

    def write_pair_blocks(self, elements: Pairs, fields: Mapping[int, str]) -> None:
        """Write square results (nv, nv), each from a field of the pairs' records, which are `PairBlocks`."""
        ...

    def write_parameters(self, output: int, elements: Pairs, packed: bool) -> None:
        """Write a regressor from the pairs' records, which are `ParameterColumns`."""
        ...


def place_of(inputs: Sequence[Array], name: str) -> int:
    """Return the index of the input with this name."""
    return next(k for k, array in enumerate(inputs) if array.name == name)


# ---- elements of a regressor ----


TEN = 10  # parameters of a link, beside the armature of its joint


@dataclass(frozen=True, slots=True)
class Places:
    """Indices of the elements of a flat regressor. Tables are by link, in sweep order.

    Parameter k of link i and DOF f of joint j: of_link[i] + of_joint[j] + f * row + k. Armature of joint i and its DOF
    f: motor[i] + f * motor_row.
    """

    of_link: tuple[int, ...]
    of_joint: tuple[int, ...]
    row: int
    motor: tuple[int, ...]
    motor_row: int
    size: int


def parameter_places(model: CanonicalModel, packed: bool) -> Places:
    """Return the indices of a dense regressor (nv, 11 * links), or of a packed one.

    Packed: for each link in document order, the rows of the joints between the base and the link, ten entries each;
    then one entry per velocity for the armature of its joint.
    """
    links = model.links
    nv = model.nv
    if not packed:
        width = (TEN + 1) * len(links)
        return Places(
            tuple(TEN * link.row for link in links), tuple(link.start * width for link in links), width,
            tuple(link.start * width + TEN * len(links) + link.row for link in links), width, nv * width,
        )  # fmt: skip
    above: list[int] = []  # DOF between the base and the joint, without its own
    for link in links:
        above.append(0 if link.parent == BASE else above[link.parent] + links[link.parent].nv)
    of_link, total = [0] * len(links), 0
    for i in sorted(range(len(links)), key=lambda i: links[i].row):
        of_link[i] = total
        total += TEN * (above[i] + links[i].nv)
    return Places(
        tuple(of_link), tuple(TEN * count for count in above), TEN, tuple(total + link.start for link in links),
        1, total + nv,
    )  # fmt: skip


# ---- loops over columns of results ----


OWN, SHARED = 0, 1  # arrays


@dataclass(frozen=True, slots=True)
class Column:
    """A column of one or more results.

    made_from: for each result, the values that the column is computed from. Columns with equal `alike` share a body.
    """

    number: int
    made_from: Mapping[int, Sequence[Operand]]  # by output
    alike: Hashable


@dataclass(frozen=True, slots=True)
class ColumnLoop:
    """Columns of square results that are computed alike: a loop with one turn for each.

    For every column, result[places[r], number] = made(values, shared)[r]. `made` computes all results at once, so that
    values that they share are read once. Unrolled, the derivatives of Talos' accelerations are 62,000 operations for
    every group of samples, most of them M^-1 times columns: more code than the second cache holds. As a loop they are
    one body per branch. In the Program a turn is a link: its values are in its row of one array, shared values in
    another array.
    """

    columns: Sequence[Column]
    shared: Sequence[Operand]
    made: Callable[[Sequence[Sequence[Operand]], Sequence[Operand]], Sequence[Sequence[Operand]]]
    places: Sequence[int]

    def written(self) -> set[tuple[int, int]]:
        """Return (output, element) of everything that the loop writes."""
        side = len(self.places)
        return {(k, row * side + c.number) for c in self.columns for k in c.made_from for row in self.places}

    def program(self, graph: Graph, name: str, inputs: Sequence[Array], outputs: Sequence[Array],
                effects: Sequence[Effect]) -> Program:  # fmt: skip
        """Return the Program of `effects` as a block, then the loop."""
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
        """Return, for each result, the indices of the values that are not 0 in all of these columns."""
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


# ---- the unrolled tracer ----


class UnrolledRun(Unrolled):
    """`Unrolled` over inputs of any scalar, `leaves`: a Tracer without a Program. q is the first input.

    described: returns a model whose parameters are some of the inputs.
    """

    def __init__(
        self, model: CanonicalModel, inputs: Sequence[Array], leaves: Sequence[Sequence[Operand]],
        described: Callable[[Sequence[Sequence[Operand]]], CanonicalModel] | None = None,
    ):  # fmt: skip
        self.inputs = tuple(inputs)
        self.leaves = leaves
        self.results: dict[int, Sequence[Operand]] = {}
        self.columns: ColumnLoop | None = None  # runs after everything else, and writes over what is written there
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
                for dof, value in enumerate(forces):
                    place = places.of_link[i] + places.of_joint[j] + dof * places.row + k
                    flat[place] = flat[place] + value  # coupled joints share a row
            for dof, value in enumerate(record.motor):
                ratio = self.model.links[i].ratio
                flat[places.motor[i] + dof * places.motor_row] = value * (ratio * ratio)
        self.results[output] = flat

    def write_columns(self, output: int, per_link: PerLink[Sequence[Motion | Force | Vec]]) -> None:
        columns = self.join(per_link)
        rows = zip(*(leaves(column) for column in columns), strict=True)
        self.results[output] = [*self.results.get(output, ()), *(value for row in rows for value in row)]

    def write(self, output: int, values: Sequence[Operand]) -> None:
        self.results[output] = values


class UnrolledTrace(UnrolledRun):
    """An unrolled run over symbols: every parameter of the robot is a constant and folds."""

    def __init__(
        self, model: CanonicalModel, inputs: Sequence[Array],
        described: Callable[[Sequence[Sequence[Operand]]], CanonicalModel] | None = None,
    ):  # fmt: skip
        self.graph = Graph()
        leaves = [
            [self.graph.leaf("input", (k, i), array.level) for i in range(array.size)] for k, array in enumerate(inputs)
        ]
        super().__init__(model, inputs, leaves, described)

    def program(self, name: str, outputs: Sequence[Array]) -> Program:
        results = [self.results[k] for k in range(len(outputs))]
        return unrolled_program(self.graph, name, self.inputs, outputs, results, self.columns)


def unrolled_program(
    graph: Graph, name: str, inputs: Sequence[Array], outputs: Sequence[Array], results: Sequence[Sequence[Operand]],
    columns: ColumnLoop | None = None,
) -> Program:  # fmt: skip
    """Return the Program of one block that writes these results, and of a loop over columns that writes over some."""
    if columns is None:
        return block_program(name, inputs, list(zip(outputs, results, strict=True)))
    written = columns.written()
    effects = [effect for effect in output_effects(results) if (effect.output, *effect.where) not in written]
    return columns.program(graph, name, tuple(inputs), outputs, effects)
