"""A Program: what an algorithm computes, as data. Backends see nothing else.

It is a sequence of steps. A `Block` is straight-line code. A `Loop` walks the links outward or inward and runs, for
each link, the body of its kind; links keep values in workspace arrays of (links + 1) rows, row 0 being the base's. A
`PairLoop` walks, for every link i, the links j from i to the base.

Leaves of a body and what their data says:
    input   (input, element)              one element of an input, in a Block
    input   (input, offsets, component)   in a Loop: element offsets[link] + component
    table   (table,)                      a number of this link
    load    (array, slot, row)            a kept value; row "own", "parent", "base" or the number of a link
Effects of a body: `Output` (an element of a result), `Store` (keep a value), `Add` (add to the parent's row).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .expression import BINARY, LEAVES, ONLINE, TERNARY, UNARY, Node, Operand

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
    """In a PairLoop: element (rows[i] + a, rows[j] + b) of a square result, and its mirror image."""

    output: int
    offsets: int
    component: tuple[int, int]
    value: Operand


@dataclass(frozen=True, slots=True)
class Store:
    array: int
    slot: int
    row: str
    value: Operand


@dataclass(frozen=True, slots=True)
class Add:
    """Add to the slot of the parent's row."""

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
        return cls(_needed(effect.value for effect in effects), tuple(effects))


@dataclass(frozen=True, slots=True)
class Block:
    body: Body


@dataclass(frozen=True, slots=True)
class Loop:
    """outward: links 0 … n-1; inward: n-1 … 0, where `cleared` arrays start from zero."""

    outward: bool
    bodies: tuple[Body, ...]
    cleared: tuple[int, ...] = ()


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
    labels: dict[Node, Label] = field(default_factory=dict, compare=False)

    @property
    def rolled(self) -> bool:
        return any(not isinstance(step, Block) for step in self.steps)

    def bodies(self) -> Iterable[Body]:
        for step in self.steps:
            yield from step_bodies(step)

    def map_bodies(self, function: Any) -> Program:
        """The same program with function(body) in place of every body."""
        return replace(self, steps=tuple(_map_step(step, function) for step in self.steps))

    def verify(self) -> Program:
        """Check what a backend relies on; a failure is a bug of linksweep, so it is an AssertionError."""
        assert all(-1 <= parent < index for index, parent in enumerate(self.parents)), "links out of order"
        for step in self.steps:
            for index, body in enumerate(step_bodies(step)):
                kind = index % (len(step.starts) if isinstance(step, PairLoop) else 10**9)
                links = [link for link, k in enumerate(self.kinds) if k == kind]
                self._verify_body(body, links)
        if not self.rolled:
            written = sorted(e.where[0] + 10**9 * e.output for b in self.bodies() for e in b.effects)  # type: ignore
            expected = [i + 10**9 * k for k, array in enumerate(self.outputs) for i in range(array.size)]
            assert written == expected, "every element of a result is written exactly once"
        return self

    def _verify_body(self, body: Body, links: Sequence[int]) -> None:
        """`links`: those that run this body, where it belongs to a loop."""
        seen: set[Node] = set()
        for node in body.nodes:
            self._verify_node(node, seen, links)
            seen.add(node)
        for effect in body.effects:
            assert _known(effect.value, seen), f"{effect} uses a value that is not computed"
            self._verify_effect(effect, links)

    def _verify_node(self, node: Node, seen: set[Node], links: Sequence[int]) -> None:
        rows = len(self.parents)
        if node.op in LEAVES:
            assert not node.args
            if node.op == "input":
                size = self.inputs[node.data[0]].size
                if len(node.data) == 2:
                    assert 0 <= node.data[1] < size
                else:
                    offsets = self.offsets[node.data[1]]
                    assert len(offsets) == rows
                    assert all(0 <= offsets[link] + node.data[2] < size for link in links)
            elif node.op == "table":
                assert len(self.tables[node.data[0]]) == rows
            else:
                array, slot, row = node.data[:3]
                assert 0 <= slot < self.arrays[array]
                assert 0 <= row < rows if isinstance(row, int) else row in ("own", "parent", "base")
            return
        arity = 1 if node.op in UNARY else 2 if node.op in BINARY else 3 if node.op in TERNARY else 0
        assert arity == len(node.args), f"{node.op} with {len(node.args)} operands"
        assert all(_known(arg, seen) for arg in node.args), f"{node} runs before its operands"

    def _verify_effect(self, effect: Effect, links: Sequence[int]) -> None:
        if isinstance(effect, Output):
            size = self.outputs[effect.output].size
            if len(effect.where) == 1:
                assert 0 <= effect.where[0] < size
            else:
                offsets = self.offsets[effect.where[0]]
                assert all(0 <= offsets[link] + effect.where[1] < size for link in links)
        elif isinstance(effect, PairOutput):
            side = self.outputs[effect.output].shape[0]
            assert self.outputs[effect.output].shape == (side, side)
            offsets = self.offsets[effect.offsets]
            assert all(0 <= offsets[link] + effect.component[1] < side for link in links)
        else:
            assert 0 <= effect.slot < self.arrays[effect.array]

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

        lines = []
        for node in body.nodes:
            label = f"    # {self.labels[node]}" if node in self.labels else ""
            value = self._print_leaf(node) if node.op in LEAVES else FORMAT[node.op].format(*map(text, node.args))
            lines.append(f"  {names[node]} = {value}{label}")
        for effect in body.effects:
            if isinstance(effect, Output):
                place = f"{self.outputs[effect.output].name}{_place(effect.where)}"
            elif isinstance(effect, PairOutput):
                place = f"{self.outputs[effect.output].name}[i + {effect.component[0]}, j + {effect.component[1]}]"
            elif isinstance(effect, Store):
                place = f"array{effect.array}[{effect.row}].{effect.slot}"
            else:
                place = f"array{effect.array}[parent].{effect.slot} +"
            lines.append(f"  {place}= {text(effect.value)}")
        return lines

    def _print_leaf(self, node: Node) -> str:
        if node.op == "input":
            return self.inputs[node.data[0]].name + _place(node.data[1:])
        if node.op == "table":
            return f"table{node.data[0]}[link]"
        return f"array{node.data[0]}[{node.data[2]}].{node.data[1]}"


def step_bodies(step: Block | Loop | PairLoop) -> tuple[Body, ...]:
    if isinstance(step, Block):
        return (step.body,)
    return step.bodies if isinstance(step, Loop) else step.starts + step.steps


def _map_step(step: Block | Loop | PairLoop, function: Any) -> Block | Loop | PairLoop:
    if isinstance(step, Block):
        return Block(function(step.body))
    if isinstance(step, Loop):
        return replace(step, bodies=tuple(map(function, step.bodies)))
    return replace(step, starts=tuple(map(function, step.starts)), steps=tuple(map(function, step.steps)))


def _place(where: Sequence[int]) -> str:
    return f"[{where[0]}]" if len(where) == 1 else f"[offset{where[0]}[link] + {where[1]}]"


def _known(value: Operand, seen: set[Node]) -> bool:
    return value in seen if isinstance(value, Node) else not isinstance(value, float) or math.isfinite(value)


def _needed(values: Iterable[Operand]) -> tuple[Node, ...]:
    """Every node below these values, in the order in which they were written."""
    found: set[Node] = set()
    stack = [value for value in values if isinstance(value, Node)]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(arg for arg in node.args if isinstance(arg, Node))
    return tuple(sorted(found, key=lambda node: node.order))


def block_program(name: str, inputs: Sequence[Array], outputs: Sequence[tuple[Array, Sequence[Operand]]]) -> Program:
    """A Program of one Block that computes the given values."""
    effects = [
        Output(k, (i,), float(value) if isinstance(value, int) else value)
        for k, (_, values) in enumerate(outputs)
        for i, value in enumerate(values)
    ]
    arrays = tuple(array for array, _ in outputs)
    return Program(name, tuple(inputs), arrays, (Block(Body.of(effects)),))
