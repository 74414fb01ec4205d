"""A Program: what an algorithm computes, as data. Backends see nothing else.

It is a sequence of steps. A `Block` is straight-line code. A `Loop` walks the links outward or inward and runs, for
each link, the body of its kind; links keep values in workspace arrays of (links + 1) rows, row 0 being the base's. A
`PairLoop` walks, for every link i, the links j from i to the base.

Leaves of a body and what their data says:
    input   (input, element)              one element of an input, in a Block
    input   (input, offsets, component)   in a Loop: element offsets[link] + component
    table   (table,)                      a number of this link
    load    (array, slot, row)            a kept value; row "own", "parent", "base" or the number of a link
Effects of a body: `Output` (an element of a result), `Store` (keep a value), `Add` (an addition to the parent's row).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from .expression import LEAVES, ONLINE, Node, Operand

FORMAT = {
    "neg": "-{}", "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "lt": "{} < {}",
    "sqrt": "sqrt({})", "sin": "sin({})", "cos": "cos({})", "where": "{} ? {} : {}",
    "fma": "fma({0} * {1} + {2})", "fms": "fma({0} * {1} - {2})", "fnma": "fma({2} - {0} * {1})",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Array:
    """An input or a result: its name, the shape of one sample, and when its values are known."""

    name: str
    shape: tuple[int, ...]
    level: int = ONLINE

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Label:
    """Where a node comes from (labels.py): the field of a record, or nothing for a value between; its link (and, in a
    sweep over pairs, the link `of` which it is); `at` which link it was made, by which step, statement and equation.
    """

    quantity: str = ""
    target: str = ""  # the variable that the statement assigns
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
    """In a PairLoop: results[output][offsets_i[i] + offsets_j[j] + component] = value, where = (offsets_i, offsets_j,
    component). Elements that no pair writes are 0."""

    output: int
    where: tuple[int, int, int]
    value: Operand


@dataclass(frozen=True, slots=True)
class Store:
    array: int
    slot: int
    row: str | int  # "own", "parent", "base", or the number of a link
    value: Operand


@dataclass(frozen=True, slots=True)
class Add:
    """Add to the slot of the parent's row, which a `Store` of an earlier link of the same loop began."""

    array: int
    slot: int
    value: Operand


Effect = Output | PairOutput | Store | Add


@dataclass(frozen=True, slots=True)
class Body:
    """Straight-line code: nodes in the order in which they run, then what becomes of their values."""

    nodes: tuple[Node, ...]
    effects: tuple[Effect, ...]

    @classmethod
    def of(cls, effects: Sequence[Effect]) -> Body:
        """The nodes that these effects need, and no other."""
        return cls(needed(effect.value for effect in effects), tuple(effects))


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
    """For each link i of one of these kinds: run starts[kind of i]; then for every ancestor j of i, up to the base: run
    steps[kind of j]. The carry lives in the base row of its array: a start and a step store it there, the next step
    loads it. Kinds with other numbers of freedoms carry other records and have a PairLoop of their own."""

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
    columns: bool = False  # what loops call links are columns of results (columns.py)
    labels: dict[Node, Label] = field(default_factory=dict["Node", "Label"], compare=False)

    @property
    def rolled(self) -> bool:
        return any(not isinstance(step, Block) for step in self.steps)

    def bodies(self) -> Iterable[Body]:
        for step in self.steps:
            yield from step_bodies(step)

    def map_bodies(self, function: Callable[[Body], Body]) -> Program:
        """The same program with function(body) in place of every body."""
        return replace(self, steps=tuple(_map_step(step, function) for step in self.steps))

    def verify(self) -> Program:
        """The program itself, once it is known that a backend can rely on it; else a BackendError."""
        from .verification import verify

        verify(self)
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
    """Every node below these values, in the order in which they were written."""
    found: set[Node] = set()
    stack = [value for value in values if isinstance(value, Node)]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(arg for arg in node.args if isinstance(arg, Node))
    return tuple(sorted(found, key=lambda node: node.order))


def output_effects(results: Iterable[Sequence[Operand]]) -> list[Output]:
    """Effects that write these results, each from its first element on."""
    return [
        Output(k, (i,), float(value) if isinstance(value, int) else value)
        for k, values in enumerate(results)
        for i, value in enumerate(values)
    ]


def block_program(name: str, inputs: Sequence[Array], outputs: Sequence[tuple[Array, Sequence[Operand]]]) -> Program:
    """A Program of one Block that computes the given values."""
    effects = output_effects(values for _, values in outputs)
    arrays = tuple(array for array, _ in outputs)
    return Program(name, tuple(inputs), arrays, (Block(Body.of(effects)),))
