"""Sweeps as loops over links: each step is traced once for every kind of link.

A kind is a type of joint with the same factors in its transform, on the base, in between or at a leaf: where nothing
comes in, zeros fold. The first child of a link that an inward sweep visits sets the parent's sum, and the others add to
it. They are of two kinds, so that a chain adds nothing. Parameters that all links of a kind share stay numbers and
fold; the others become tables. Values that a sweep keeps for a link go to a workspace array with a row per link; only
slots that some result needs survive `remove_dead`. Programs of 10 and of 10,000 links compile in the same time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NoReturn, TypeVar

from ..errors import ArgumentError
from ..mechanism.canonical import CanonicalLink, CanonicalModel
from ..mechanism.joints import Coordinates
from ..mechanism.sweeps import K, LinkView, Pairs, PerLink, S, Start, Step
from ..model.model import BASE
from ..spatial.algebra import Force, Motion, Vec, leaves, map_leaves, rebuild
from ..spatial.scalars import Rows, Values, is_zero, quarter_turns
from .expression import Graph, Node, Operand
from .program import Add, Array, Block, Body, Effect, Loop, Output, PairLoop, PairOutput, Program, Store
from .tracer import PairBlocks, ParameterColumns, parameter_places, place_of

T = TypeVar("T")
Bodies = list[Effect]
Group = tuple[tuple[int, ...], dict[int, tuple[T, Bodies]], list[tuple[T, Bodies]]]  # kinds, starts by kind, steps


@dataclass(frozen=True)
class Kept(Generic[T]):
    """Records that a sweep keeps for every link: for each kind, one whose leaves are loads or numbers."""

    records: tuple[T, ...]

    def __getattr__(self, name: str) -> Kept[Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return Kept(tuple(getattr(record, name) for record in self.records))

    def __getitem__(self, kind: int) -> T:
        return self.records[kind]

    def __iter__(self) -> Iterator[T]:
        return iter(self.records)


class Rolled:
    """A Tracer that makes a loop of each sweep. q is the first input."""

    graph: Graph

    def __init__(self, model: CanonicalModel, inputs: Sequence[Array]):
        self.model = replace(model, links=tuple(_uniform(link) for link in model.links))
        self.inputs = tuple(inputs)
        self._begin()
        self.rows_written: dict[int, int] = {}
        self.parents = tuple(link.parent for link in model.links)
        begins = {parent: i for i, parent in enumerate(self.parents)}  # its last child, which inward sweeps meet first
        groups: dict[tuple[object, bool, bool, bool], int] = {}
        keys = [
            (_pattern(link), link.parent == BASE, i not in begins, begins[link.parent] == i)
            for i, link in enumerate(self.model.links)
        ]
        self.kinds = tuple(groups.setdefault(key, len(groups)) for key in keys)
        self.on_base = [on_base for _, on_base, _, _ in groups]  # nothing but the base's constants comes in
        self.is_tip = [is_tip for _, _, is_tip, _ in groups]  # no sum from children
        self.begins_sum = [begins_sum for _, _, _, begins_sum in groups]
        self.templates = [self._template(kind) for kind in range(len(groups))]
        self.joints = [template.type for template in self.templates]
        self.starts = self._offsets(tuple(link.start for link in model.links))
        self.q_starts = self._offsets(tuple(link.q_start for link in model.links))
        kept = [
            joint.kept(self._coordinates(0, joint.nq, self.q_starts), template.angle)
            for joint, template in zip(self.joints, self.templates, strict=True)
        ]
        kept = self._keep(True, [()] * len(kept), kept)
        self.links = [LinkView(t, k) for t, k in zip(self.templates, kept.records, strict=True)]

    def _begin(self) -> None:
        self.graph = Graph()
        self.steps: list[Block | Loop | PairLoop] = []
        self.arrays: list[int] = []
        self.tables: list[tuple[float, ...]] = []
        self.offsets: list[tuple[int, ...]] = []

    def outward(self, step: Step[S, K], base: S, *own: PerLink[object]) -> Kept[K]:
        first = {k: step(link, base, *(o[k] for o in own)) for k, link in enumerate(self.links) if self.on_base[k]}
        state = next(iter(first.values()))[1] if base is None else base
        array = self._array(len(leaves(state)))
        parent = rebuild(state, [self._load(array, slot, "parent") for slot in range(self.arrays[array])])
        results = [first.get(k) or step(link, parent, *(o[k] for o in own)) for k, link in enumerate(self.links)]
        states = [[Store(array, slot, "own", v) for slot, v in enumerate(leaves(s))] for _, s in results]
        return self._keep(True, states, [kept for kept, _ in results])

    def inward(self, step: Step[S, K], zero: S, *own: PerLink[object]) -> tuple[Kept[K], S]:
        array = self._array(len(leaves(zero)))
        total = rebuild(zero, [self._load(array, slot, "own") for slot in range(self.arrays[array])])
        results = [
            step(link, zero if self.is_tip[k] else total, *(o[k] for o in own)) for k, link in enumerate(self.links)
        ]
        sums = [self._summed(array, up, self.begins_sum[k]) for k, (_, up) in enumerate(results)]
        kept = self._keep(False, sums, [kept for kept, _ in results])
        return kept, rebuild(zero, [self._load(array, slot, "base") for slot in range(self.arrays[array])])

    def pairs(self, start: Start[K, S], step: Step[S, K], *own: PerLink[object]) -> list[Group[K]]:
        """Return a group for each size of carried record: its kinds, their starts, and the steps of all kinds."""
        first = [start(link, *(o[k] for o in own)) for k, link in enumerate(self.links)]
        groups: list[Group[K]] = []
        for size in sorted({len(leaves(carry)) for _, carry in first}):
            kinds = tuple(k for k, (_, carry) in enumerate(first) if len(leaves(carry)) == size)
            array = self._array(size)
            carried = rebuild(first[kinds[0]][1], [self._load(array, slot, "base") for slot in range(size)])
            later = [step(link, carried, *(o[k] for o in own)) for k, link in enumerate(self.links)]
            starts = {k: (first[k][0], self._stores(array, first[k][1])) for k in kinds}
            groups.append((kinds, starts, [(out, self._stores(array, carry)) for out, carry in later]))
        return groups

    def same(self, value: T) -> Kept[T]:
        return Kept((value,) * len(self.templates))

    def zeros(self) -> Kept[Coordinates]:
        return Kept(tuple(Coordinates([0.0] * joint.nv) for joint in self.joints))

    def unzip(self, per_link: PerLink[tuple[object, ...]]) -> tuple[Kept[Any], ...]:
        return tuple(Kept(entry) for entry in zip(*per_link, strict=True))

    def subtract(self, a: PerLink[Coordinates], b: PerLink[Coordinates]) -> Kept[Coordinates]:
        def step(link: LinkView, nothing: tuple[()], x: Coordinates, y: Coordinates) -> tuple[Coordinates, tuple[()]]:
            return x - y, nothing

        return self.outward(step, (), a, b)

    def solve(self, elements: Pairs, b: PerLink[Coordinates]) -> Kept[Coordinates]:
        raise _only_written_out("a linear solve")

    def read_flat(self, name: str) -> list[Node]:
        source = place_of(self.inputs, name)
        return [self.graph.leaf("input", (source, i)) for i in range(self.inputs[source].size)]

    def marked(self, links: Collection[int]) -> Kept[Operand]:
        self.tables.append(tuple(1.0 if i in links else 0.0 for i in range(len(self.kinds))))
        entry: Operand = self.graph.leaf("table", (len(self.tables) - 1,))
        return self.same(entry)

    def at(self, per_link: PerLink[T], link: int) -> T:
        def entry(value: Operand) -> Operand:
            if not isinstance(value, Node):
                return value
            if value.op == "load":
                return self.graph.leaf("load", (*value.data[:2], link))
            if value.op == "table":
                table: int = value.data[0]
                return self.tables[table][link]
            offsets: int = value.data[1]
            source, _, component = value.data
            return self.graph.leaf("input", (source, self.offsets[offsets][link] + component))

        return map_leaves(entry, per_link[self.kinds[link]])

    def held(self, values: Values) -> list[Operand]:
        array = self._array(len(values))
        made = [Store(array, slot, "base", v) for slot, v in enumerate(values) if isinstance(v, Node)]
        self.steps.append(Block(Body.of(made)))
        return [self._load(array, slot, "base") if isinstance(v, Node) else v for slot, v in enumerate(values)]

    def read(self, name: str) -> Kept[Coordinates]:
        source = place_of(self.inputs, name)
        return Kept(tuple(Coordinates(self._coordinates(source, joint.nv, self.starts)) for joint in self.joints))

    def read_rows(self, name: str, width: int) -> Kept[Values]:
        source = place_of(self.inputs, name)
        rows = self._offsets(tuple(link.row * width for link in self.model.links))
        return self.same(tuple(self.graph.leaf("input", (source, rows, c)) for c in range(width)))

    read_forces = read  # no joint follows another in a loop

    def write_forces(self, output: int, per_link: PerLink[Values]) -> None:
        self._append(True, [[Output(output, (self.starts, c), v) for c, v in enumerate(r)] for r in per_link])

    write_rates = write_forces

    def write_pairs(self, output: int, elements: Pairs, mirrored: bool = True) -> None:
        if not mirrored:
            raise _only_written_out("a triangular factor")
        self._append_pairs(elements, lambda block: [*self._block(output, block), *self._mirrored(output, block)])

    def write_pair_blocks(self, elements: Pairs, fields: Mapping[int, str]) -> None:
        def effects(record: object) -> list[Effect]:
            found: list[Effect] = []
            for output, field in fields.items():
                blocks: PairBlocks = getattr(record, field)
                found += self._block(output, blocks.above)
                found += self._mirrored(output, list(zip(*blocks.below, strict=True)))
            return found

        self._append_pairs(elements, effects)

    def write_parameters(self, output: int, elements: Pairs, packed: bool) -> None:
        places = parameter_places(self.model, packed)
        of_i, of_j, at_motor = (self._offsets(table) for table in (places.of_link, places.of_joint, places.motor))
        nothing = self._offsets((0,) * len(self.kinds))

        def effects(record: ParameterColumns) -> list[Effect]:
            found: list[Effect] = [
                PairOutput(output, (of_i, of_j, dof * places.row + k), value)
                for k, forces in enumerate(record.columns)
                for dof, value in enumerate(forces)
            ]
            for dof, value in enumerate(record.motor):
                found.append(PairOutput(output, (at_motor, nothing, dof * places.motor_row), value))
            return found

        self._append_pairs(elements, effects)

    def _block(self, output: int, block: Rows) -> list[Effect]:
        """Effects that write a pair's block of a square result: a row for each DOF of j, a column for each DOF of i."""
        side, rows = self._square()
        return [
            PairOutput(output, (self.starts, rows, a * side + b), value)
            for a, row in enumerate(block)
            for b, value in enumerate(row)
        ]

    def _mirrored(self, output: int, block: Rows) -> list[Effect]:
        """Effects that write the transposed block: its rows are those of i."""
        side, rows = self._square()
        return [
            PairOutput(output, (rows, self.starts, b * side + a), value)
            for a, row in enumerate(block)
            for b, value in enumerate(row)
        ]

    def _square(self) -> tuple[int, int]:
        """Return nv, and the offsets of each link's first row in a matrix (nv, nv)."""
        side = self.model.nv
        table = tuple(link.start * side for link in self.model.links)
        return side, self._offsets(table)

    def _append_pairs(self, out: list[Group[T]], effects: Callable[[T], Bodies]) -> None:
        def body(record: T, carry: Bodies) -> Body:
            return Body.of([*effects(record), *carry])

        for kinds, starts, steps in out:
            first = tuple(body(*starts[k]) if k in kinds else Body((), ()) for k in range(len(self.links)))
            self.steps.append(PairLoop(first, tuple(body(*step) for step in steps), kinds))

    def write(self, output: int, values: Sequence[Operand]) -> None:
        self.steps.append(Block(Body.of([Output(output, (i,), value) for i, value in enumerate(values)])))

    def write_columns(self, output: int, per_link: PerLink[Sequence[Motion | Force | Vec]]) -> None:
        width = self.model.nv
        first = self.rows_written.get(output, 0)
        self.rows_written[output] = first + len(leaves(per_link[0][0]))
        effects = [
            [
                Output(output, (self.starts, (first + row) * width + column), value)
                for column, entries in enumerate(record)
                for row, value in enumerate(leaves(entries))
            ]
            for record in per_link
        ]
        self._append(True, effects)

    def program(self, name: str, outputs: Sequence[Array]) -> Program:
        return Program(
            name, self.inputs, tuple(outputs), tuple(self.steps), self.parents, self.kinds, tuple(self.arrays),
            tuple(self.tables), tuple(self.offsets),
        )  # fmt: skip

    def _template(self, kind: int) -> CanonicalLink:
        """Return a link of this kind with parameters as tables, unless all links of the kind share their value."""
        members = [link for link, k in zip(self.model.links, self.kinds, strict=True) if k == kind]
        columns = iter(list(zip(*(_numbers(link) for link in members), strict=True)))
        rows = [i for i, k in enumerate(self.kinds) if k == kind]

        def entry(_: Operand) -> Operand:
            column = next(columns)
            if all(value == column[0] for value in column):
                return column[0]
            table = [0.0] * len(self.kinds)
            for row, value in zip(rows, column, strict=True):
                table[row] = value
            return self.graph.leaf("table", (_index(self.tables, tuple(table)),))

        return _map_numbers(entry, members[0])

    def _coordinates(self, source: int, count: int, starts: int) -> list[Node]:
        return [self.graph.leaf("input", (source, starts, c)) for c in range(count)]

    def _offsets(self, offsets: tuple[int, ...]) -> int:
        return _index(self.offsets, offsets)

    def _array(self, slots: int) -> int:
        self.arrays.append(slots)
        return len(self.arrays) - 1

    def _load(self, array: int, slot: int, row: str) -> Node:
        return self.graph.leaf("load", (array, slot, row))

    def _stores(self, array: int, record: object) -> list[Effect]:
        """Effects that store the carried record; values that do not change are not stored again."""
        values = enumerate(leaves(record))
        return [Store(array, slot, "base", v) for slot, v in values if v is not self._load(array, slot, "base")]

    def _summed(self, array: int, record: object, begins: bool) -> list[Effect]:
        """Effects of a link on its parent's sum: the first child sets it, the others add to it; zeros are not added."""
        values = enumerate(leaves(record))
        if begins:
            return [Store(array, slot, "parent", value) for slot, value in values]
        return [Add(array, slot, value) for slot, value in values if not is_zero(value)]

    def _keep(self, outward: bool, effects: Sequence[Sequence[Effect]], kept: Sequence[T]) -> Kept[T]:
        """End a sweep: store the records of each kind, beside its other effects, and return their loads."""
        array = self._array(max(len(leaves(record)) for record in kept))
        bodies, records = list[Bodies](), list[T]()
        for record, before in zip(kept, effects, strict=True):
            stored = {e.value: (e.array, e.slot) for e in before if isinstance(e, Store) and e.row == "own"}
            after: list[Effect] = list(before)
            loads: list[Operand] = []
            for slot, value in enumerate(leaves(record)):
                if not isinstance(value, Node) or value.op in ("table", "input"):
                    loads.append(value)  # a parameter of the link: later sweeps read it where it is
                elif value.op == "load" and value.data[2] == "own":
                    loads.append(value)
                elif value in stored:
                    loads.append(self._load(*stored[value], "own"))
                else:
                    after.append(Store(array, slot, "own", value))
                    loads.append(self._load(array, slot, "own"))
            bodies.append(after)
            records.append(rebuild(record, loads))
        self._append(outward, bodies)
        return Kept(tuple(records))

    def _append(self, outward: bool, effects: Sequence[Sequence[Effect]]) -> None:
        self.steps.append(Loop(outward, tuple(Body.of(list(e)) for e in effects)))


def _index(known: list[T], entry: T) -> int:
    """Return the index of an entry of the list, to which it is appended if it is new."""
    if entry not in known:
        known.append(entry)
    return known.index(entry)


def _only_written_out(what: str) -> ArgumentError:
    return ArgumentError(
        f"{what} cannot run as a loop over links: use a recursive method, or compile with rolled=False."
    )


def _uniform(link: CanonicalLink) -> CanonicalLink:
    """Return the link with quarter turns in its angle, so that links that differ only there share a kind."""
    return replace(link, quarters=0, angle=quarter_turns(link.angle, link.quarters))


def _pattern(link: CanonicalLink) -> tuple[object, ...]:
    return (link.kind, link.quarters, tuple((type(f), getattr(f, "axis", None)) for f in link.factors))


_FIELDS = (
    "factors", "angle", "turn", "slide", "pitch", "mass", "mp", "I", "com", "I_com", "armature", "damping", "friction",
    "torque_offset", "axes", "origin",
)  # fmt: skip


def _numbers(link: CanonicalLink) -> list[Operand]:
    return leaves([getattr(link, name) for name in _FIELDS])


def _map_numbers(function: Callable[[Operand], Operand], link: CanonicalLink) -> CanonicalLink:
    return replace(link, **{name: map_leaves(function, getattr(link, name)) for name in _FIELDS})


# ---- rolled sweeps inside a larger program ----


class Stages:
    """The parts of a program that its stages share."""

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
    """Rolled sweeps as a stage of a larger program, whose inputs and results are values.

    Values go to workspace rows of their links in a Block, the sweeps run as loops over them, and results are read from
    rows again. Arrays that only the sweeps used serve the next stage, so that four stages need the workspace of one.

    given: elements of each input in document order, flat, q first. results: values that were written. It supports
    functions whose result has one element per velocity.
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
        """Return the array with these values, one row per link."""
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
        """Copy the results to an array that no later stage writes."""
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
            "a rolled stage cannot compute a pose or a matrix, expected a result with one element per velocity: use "
            "rolled=False."
        )

    write = write_columns = write_pairs = write_pair_blocks = write_parameters = _refuse  # type: ignore[assignment]
