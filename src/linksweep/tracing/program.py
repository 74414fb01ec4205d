"""A Program: the computation of an algorithm as data. Backends see nothing else.

It is a sequence of steps. A `Block` is straight-line code. A `Loop` visits the links outward or inward and runs, for
each link, the body of its kind. Links keep values in workspace arrays of (links + 1) rows; row 0 belongs to the base. A
`PairLoop` visits, for every link i, the links j from i to the base.

Leaves of a body and their data:
    input   (input, element)              one element of an input, in a Block
    input   (input, offsets, component)   in a Loop: element offsets[link] + component
    table   (table,)                      a number of this link
    load    (array, slot, row)            a kept value; row "own", "parent", "base" or the index of a link
Effects of a body: `Output` (an element of a result), `Store` (keep a value), `Add` (an addition to the parent's row).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import NoReturn

from ..errors import BackendError
from .expression import BINARY, LEAVES, ONLINE, TERNARY, UNARY, Node, Operand

FORMAT = {
    "neg": "-{}", "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "lt": "{} < {}",
    "sqrt": "sqrt({})", "sin": "sin({})", "cos": "cos({})", "where": "{} ? {} : {}",
    "fma": "fma({0} * {1} + {2})", "fms": "fma({0} * {1} - {2})", "fnma": "fma({2} - {0} * {1})",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Array:
    """An input or a result: its name, the shape of one sample, and its level (PARAMETER or ONLINE)."""

    name: str
    shape: tuple[int, ...]
    level: int = ONLINE

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Label:
    """The origin of a node (see labels.py).

    quantity: the field of a record that holds it, "" for an intermediate value. target: the variable that the statement
    assigns. link: its link; of: in a sweep over pairs, the link where the pair begins. at, step, equation, statement:
    the link, function, equation and source line that computed it.
    """

    quantity: str = ""
    target: str = ""
    link: str = ""
    of: str = ""
    at: str = ""
    step: str = ""
    equation: str = ""
    statement: str = ""

    def __str__(self) -> str:
        quantity = self.quantity or f"for {self.target}" * bool(self.target)
        return " ".join(part for part in (self.link, quantity, self.of and f"of {self.of}", self.equation) if part)


@dataclass(frozen=True, slots=True)
class Output:
    """results[output][element] = value; in a Loop the element is offsets[link] + component."""

    output: int
    where: tuple[int, ...]
    value: Operand


@dataclass(frozen=True, slots=True)
class PairOutput:
    """In a PairLoop: results[output][offsets_i[i] + offsets_j[j] + component] = value.

    where = (offsets_i, offsets_j, component). Elements that no pair writes are 0.
    """

    output: int
    where: tuple[int, int, int]
    value: Operand


@dataclass(frozen=True, slots=True)
class Store:
    array: int
    slot: int
    row: str | int  # "own", "parent", "base", or the index of a link
    value: Operand


@dataclass(frozen=True, slots=True)
class Add:
    """Add to the slot of the parent's row, which a `Store` of an earlier link of the same loop set."""

    array: int
    slot: int
    value: Operand


Effect = Output | PairOutput | Store | Add


@dataclass(frozen=True, slots=True)
class Body:
    """Straight-line code: nodes in the order in which they run, then the effects that use their values."""

    nodes: tuple[Node, ...]
    effects: tuple[Effect, ...]

    @classmethod
    def of(cls, effects: Sequence[Effect]) -> Body:
        """Return the body with the nodes that these effects need, and no others."""
        return cls(needed(effect.value for effect in effects), tuple(effects))

    def uses(self) -> Counter[Node]:
        """Return how often each node is an operand or the value of an effect."""
        uses = Counter([arg for node in self.nodes for arg in node.args if isinstance(arg, Node)])
        uses.update([effect.value for effect in self.effects if isinstance(effect.value, Node)])
        return uses


@dataclass(frozen=True, slots=True)
class Block:
    body: Body


@dataclass(frozen=True, slots=True)
class Loop:
    """outward: links 0 … n-1; inward: n-1 … 0."""

    outward: bool
    bodies: tuple[Body, ...]


@dataclass(frozen=True, slots=True)
class PairLoop:
    """For each link i of one of these kinds: run starts[kind of i], then for every ancestor j run steps[kind of j].

    The carried record is in the base row of its array: a start and a step store it there, the next step loads it. Kinds
    with other numbers of DOF carry other records and have a PairLoop of their own.
    """

    starts: tuple[Body, ...]
    steps: tuple[Body, ...]
    kinds: tuple[int, ...]


@dataclass(frozen=True)
class Program:
    name: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    steps: tuple[Block | Loop | PairLoop, ...]
    parents: tuple[int, ...] = ()  # of each link, for loops; -1 is the base
    kinds: tuple[int, ...] = ()  # of each link: which body of a Loop it runs
    arrays: tuple[int, ...] = ()  # slots of each workspace array
    tables: tuple[tuple[float, ...], ...] = ()
    offsets: tuple[tuple[int, ...], ...] = ()
    columns: bool = False  # links of its loops stand for columns of results (ColumnLoop)
    labels: dict[Node, Label] = field(default_factory=dict["Node", "Label"], compare=False)

    @property
    def rolled(self) -> bool:
        return any(not isinstance(step, Block) for step in self.steps)

    def bodies(self) -> Iterable[Body]:
        for step in self.steps:
            yield from step_bodies(step)

    def executions(self) -> Iterator[tuple[Body, int, int]]:
        """Yield (body, i, j) in the order of execution, where link j runs the body.

        In a PairLoop i is the link where the pairs begin; elsewhere it is j. In a Block both are -1.
        """
        links = range(len(self.parents))
        for step in self.steps:
            if isinstance(step, Block):
                yield step.body, -1, -1
            elif isinstance(step, Loop):
                for link in links if step.outward else reversed(links):
                    yield step.bodies[self.kinds[link]], link, link
            else:
                for i in links:
                    if self.kinds[i] in step.kinds:
                        yield step.starts[self.kinds[i]], i, i
                        j = self.parents[i]
                        while j >= 0:
                            yield step.steps[self.kinds[j]], i, j
                            j = self.parents[j]

    def element(self, where: Sequence[int], i: int, j: int) -> int:
        """Return the element of an input or a result that a body addresses, run by link j in pairs that begin with i.

        where: (element,), (offsets, component), or in pairs (offsets of i, offsets of j, component).
        """
        if len(where) == 1:
            return where[0]
        if len(where) == 2:
            return self.offsets[where[0]][j] + where[1]
        return self.offsets[where[0]][i] + self.offsets[where[1]][j] + where[2]

    def map_bodies(self, function: Callable[[Body], Body]) -> Program:
        """Return the program with function(body) in place of every body."""
        return replace(self, steps=tuple(_map_step(step, function) for step in self.steps))

    def verify(self) -> Program:
        """Return the program itself if a backend can rely on it, else raise a BackendError.

        Backends emit code without checks. Verified: every element of an input, result, table or array that a body
        touches exists, for every link that runs the body; values are computed before they are used; every element of
        a result is written.
        """
        _Verifier(self).run()
        return self

    def __str__(self) -> str:
        lines = [
            f"program {self.name}("
            + ", ".join(f"{a.name}{list(a.shape)}" for a in self.inputs)
            + ") -> "
            + ", ".join(f"{a.name}{list(a.shape)}" for a in self.outputs)
        ]
        for step in self.steps:
            if isinstance(step, Block):
                lines += ["block:", *self._print_body(step.body)]
                continue
            title = "pairs" if isinstance(step, PairLoop) else "outward" if step.outward else "inward"
            for kind, body in enumerate(step_bodies(step)):
                lines += [f"{title}, body {kind}:", *self._print_body(body)]
        return "\n".join(lines)

    def _print_body(self, body: Body) -> list[str]:
        names = {node: f"%{i}" for i, node in enumerate(body.nodes)}

        def text(x: Operand) -> str:
            return names[x] if isinstance(x, Node) else repr(x)

        lines: list[str] = []
        for node in body.nodes:
            label = f"    # {self.labels[node]}" if node in self.labels else ""
            value = self._print_leaf(node) if node.op in LEAVES else FORMAT[node.op].format(*map(text, node.args))
            lines.append(f"  {names[node]} = {value}{label}")
        for effect in body.effects:
            if isinstance(effect, Output):
                place = f"{self.outputs[effect.output].name}{_place(effect.where)}"
            elif isinstance(effect, PairOutput):
                of_i, of_j, component = effect.where
                place = f"{self.outputs[effect.output].name}[offset{of_i}[i] + offset{of_j}[j] + {component}]"
            elif isinstance(effect, Store):
                place = f"array{effect.array}[{effect.row}].{effect.slot}"
            else:
                place = f"array{effect.array}[parent].{effect.slot} +"
            lines.append(f"  {place}= {text(effect.value)}")
        return lines

    def _print_leaf(self, node: Node) -> str:
        if node.op == "input":
            source: int = node.data[0]
            return self.inputs[source].name + _place(node.data[1:])
        if node.op == "table":
            return f"table{node.data[0]}[link]"
        return f"array{node.data[0]}[{node.data[2]}].{node.data[1]}"


def step_bodies(step: Block | Loop | PairLoop) -> tuple[Body, ...]:
    if isinstance(step, Block):
        return (step.body,)
    return step.bodies if isinstance(step, Loop) else step.starts + step.steps


def _map_step(step: Block | Loop | PairLoop, function: Callable[[Body], Body]) -> Block | Loop | PairLoop:
    if isinstance(step, Block):
        return Block(function(step.body))
    if isinstance(step, Loop):
        return replace(step, bodies=tuple(map(function, step.bodies)))
    return replace(step, starts=tuple(map(function, step.starts)), steps=tuple(map(function, step.steps)))


def _place(where: Sequence[int]) -> str:
    return f"[{where[0]}]" if len(where) == 1 else f"[offset{where[0]}[link] + {where[1]}]"


def needed(values: Iterable[Operand]) -> tuple[Node, ...]:
    """Return every node that these values depend on, in the order in which they run."""
    nodes: set[Node] = set()
    stack = [value for value in values if type(value) is Node]
    while stack:
        node = stack.pop()
        if node not in nodes:
            nodes.add(node)
            for arg in node.args:
                if type(arg) is Node:
                    stack.append(arg)
    return tuple(sorted(nodes, key=_ORDER))


_ORDER = attrgetter("order")


def output_effects(results: Iterable[Sequence[Operand]]) -> list[Output]:
    """Return the effects that write these results."""
    return [
        Output(k, (i,), float(value) if isinstance(value, int) else value)
        for k, values in enumerate(results)
        for i, value in enumerate(values)
    ]


def block_program(name: str, inputs: Sequence[Array], outputs: Sequence[tuple[Array, Sequence[Operand]]]) -> Program:
    """Return a Program of one Block that computes these values."""
    effects = output_effects(values for _, values in outputs)
    arrays = tuple(array for array, _ in outputs)
    return Program(name, tuple(inputs), arrays, (Block(Body.of(effects)),))


# ---- verification ----

_ARITY = {**dict.fromkeys(UNARY, 1), **dict.fromkeys(BINARY, 2), **dict.fromkeys(TERNARY, 3)}


@dataclass(frozen=True, slots=True)
class _Place:
    """The links that run a body, and in a PairLoop the pairs (i, j)."""

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
            if arg not in seen if type(arg) is Node else not _known(arg, seen):
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
        """Return the elements that (element,) or (offsets, component) addresses, after checking that they exist."""
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
        """Return the smallest and the largest offset of these links; results are cached."""
        self.require(_is_index(offsets, len(self.program.offsets)), f"offsets {offsets}")
        key = (offsets, id(links))
        if key not in self.spans:
            own = [self.program.offsets[offsets][link] for link in links]
            self.spans[key] = min(own), max(own)
        return self.spans[key]

    def pair_span(self, of_i: int, of_j: int, pairs: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Return the smallest and the largest sum of an offset of i and an offset of j over these pairs."""
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


def nonzeros(program: Program) -> list[list[int]]:
    """Return, for each result, the elements (row by row) that something other than the number 0 is written to."""
    elements: list[set[int]] = [set() for _ in program.outputs]
    for body, i, j in program.executions():
        for effect in body.effects:
            if isinstance(effect, (Output, PairOutput)) and (isinstance(effect.value, Node) or effect.value != 0):
                elements[effect.output].add(program.element(effect.where, i, j))
    return [sorted(found) for found in elements]
