"""Hash-consed expressions: "every two mathematically equivalent expressions are denoted by the same variable name"
(Kozlowski 1990, section 4, after Khosla).

A `Node` is one operation. Its operands are nodes or plain floats: numbers stay Python floats until they meet a node,
and whatever folds to a number becomes a float again. The `Graph` belongs to one trace; nodes of two graphs never mix.

Every node has a level: PARAMETER operations run once per call, ONLINE operations for every sample.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from ..spatial.scalars import LARGE as LARGE  # for the backends, which see nothing below
from ..spatial.scalars import Scalar, Solution, is_number

PARAMETER, ONLINE = 1, 2

UNARY = ("neg", "sqrt", "sin", "cos")
BINARY = ("add", "sub", "mul", "div", "lt")
TERNARY = ("where", "fma", "fms", "fnma")  # a*b + c, a*b - c, c - a*b
LEAVES = ("input", "table", "load")  # `data` is an address; see program.py
COMMUTATIVE = ("add", "mul")

Operand = Scalar  # a Node or a number
Value = Any  # an Operand that an operation returns: a Node, unless it folded
Data = tuple[Any, ...]  # the address of a leaf, see program.py: indices, and for a load the name of its row


class Node:
    """One operation of a trace; compared by identity."""

    __slots__ = ("args", "data", "graph", "kind", "level", "op", "order")

    def __init__(self, graph: Graph, op: str, args: tuple[Operand, ...], data: Data, level: int, order: int):
        self.graph = graph
        self.op = op
        self.args = args
        self.data = data
        self.level = level
        self.order = order
        self.kind = op if level == ONLINE else op + OFFLINE  # chooses the rules to try

    def __add__(self, b: Operand) -> Value:
        return self.graph.binary("add", self, b)

    def __radd__(self, b: Operand) -> Value:
        return self.graph.binary("add", b, self)

    def __sub__(self, b: Operand) -> Value:
        return self.graph.binary("sub", self, b)

    def __rsub__(self, b: Operand) -> Value:
        return self.graph.binary("sub", b, self)

    def __mul__(self, b: Operand) -> Value:
        return self.graph.binary("mul", self, b)

    def __rmul__(self, b: Operand) -> Value:
        return self.graph.binary("mul", b, self)

    def __truediv__(self, b: Operand) -> Value:
        return self.graph.binary("div", self, b)

    def __rtruediv__(self, b: Operand) -> Value:
        return self.graph.binary("div", b, self)

    def __neg__(self) -> Value:
        return self.graph.apply("neg", self)

    def __lt__(self, b: Operand) -> Value:
        return self.graph.binary("lt", self, b)

    def __gt__(self, b: Operand) -> Value:
        return self.graph.binary("lt", b, self)

    def __bool__(self) -> bool:
        raise TypeError("an algorithm cannot branch on a traced value: use scalars.where")

    def sin(self) -> Value:
        return self.graph.apply("sin", self)

    def cos(self) -> Value:
        return self.graph.apply("cos", self)

    def sqrt(self) -> Value:
        return self.graph.apply("sqrt", self)

    def where(self, if_true: Operand, if_false: Operand) -> Value:
        return self.graph.apply("where", self, if_true, if_false)

    def __repr__(self) -> str:
        return f"%{self.order}"


graph_class: ContextVar[type[Graph] | None] = ContextVar("graph_class", default=None)  # set by labels.py


class Graph:
    """The nodes of one trace."""

    def __new__(cls) -> Graph:
        return object.__new__(graph_class.get() or cls)

    def __init__(self) -> None:
        self.nodes: dict[tuple[object, ...], Node] = {}
        self.rules: dict[tuple[str, ...], tuple[Rule, ...]] = {}  # by operation and kinds of operands
        self.solutions: dict[Node, tuple[Solution, int]] = {}  # outputs of equations, see tracing/differentiate.py

    def add_solution(self, solution: Solution, first: int) -> None:
        """Record how to differentiate the outputs of equations, which are nodes from `first` on."""
        for i, value in enumerate(solution.outputs):
            if isinstance(value, Node) and value.order >= first:
                self.solutions.setdefault(value, (solution, i))

    def leaf(self, op: str, data: Data, level: int = ONLINE) -> Node:
        key = (op, *data)
        node = self.nodes.get(key)
        if node is None:
            node = self.nodes[key] = Node(self, op, (), data, level, len(self.nodes))
        return node

    def make(self, op: str, *args: Operand, order: int | None = None) -> Node:
        """Return the node of this operation without applying rules. `order`: its position, by default the last."""
        key = (op, *args)
        node = self.nodes.get(key)
        if node is None:
            level = 0
            for arg in args:
                if type(arg) is not Node:
                    if not is_number(arg):
                        raise TypeError(f"{arg!r} is not a number or a value of this trace")
                elif arg.level > level:
                    level = arg.level
            node = self.nodes[key] = Node(self, op, args, (), level, len(self.nodes) if order is None else order)
        return node

    def apply(self, op: str, *args: Operand) -> Value:
        """Return the operation after all rules that match: a node, or a float."""
        if len(args) == 2:
            return self.binary(op, *args)
        for rule in self.rules_for(op, *(arg.kind if type(arg) is Node else NUMBER for arg in args)):
            replacement = rule(self, *args)
            if replacement is not None:
                return replacement
        return self.make(op, *args)

    def binary(self, op: str, a: Operand, b: Operand) -> Value:
        """Return `apply(op, a, b)`. Most operations are binary, and millions of them are traced."""
        kinds = (op, a.kind if type(a) is Node else NUMBER, b.kind if type(b) is Node else NUMBER)
        rules = self.rules.get(kinds)
        for rule in self.rules_for(*kinds) if rules is None else rules:
            replacement = rule(self, a, b)
            if replacement is not None:
                return replacement
        if op in COMMUTATIVE and (type(b) is not Node or (type(a) is Node and b.order < a.order)):
            return self.make(op, b, a)  # numbers first, then older nodes
        return self.make(op, a, b)

    def rules_for(self, *kinds: str) -> tuple[Rule, ...]:
        """Return the rules for an operation and the kinds of its operands."""
        if kinds not in self.rules:
            self.rules[kinds] = rules_for(*kinds)
        return self.rules[kinds]


def number(x: Operand) -> float:
    """Return an operand that is not a node as a float."""
    if not isinstance(x, (float, int)):
        raise TypeError(f"{x!r} is not a number")
    return x


def measured_angle(angle: Operand) -> tuple[Operand, Operand]:
    """Split an angle into the measured angle and the robot's offset: a number, an entry of a table, or 0.

    Backends reduce a measured angle above LARGE to one turn before they add the offset, because the last place of a
    large sum would round the offset away.
    """
    if isinstance(angle, Node) and angle.op == "add":
        for offset, measured in (angle.args, angle.args[::-1]):
            if isinstance(measured, Node) and (not isinstance(offset, Node) or offset.op == "table"):
                return measured, offset
    return angle, 0.0


from .rules import NUMBER, OFFLINE, Rule, rules_for  # noqa: E402  (the rules are written over nodes)
