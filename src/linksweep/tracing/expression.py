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
from ..spatial.scalars import Scalar, Solution

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

    __slots__ = ("args", "data", "graph", "level", "op", "order")

    def __init__(self, graph: Graph, op: str, args: tuple[Operand, ...], data: Data, level: int, order: int):
        self.graph = graph
        self.op = op
        self.args = args
        self.data = data
        self.level = level
        self.order = order

    def __add__(self, b: Operand) -> Value:
        return self.graph.apply("add", self, b)

    def __radd__(self, b: Operand) -> Value:
        return self.graph.apply("add", b, self)

    def __sub__(self, b: Operand) -> Value:
        return self.graph.apply("sub", self, b)

    def __rsub__(self, b: Operand) -> Value:
        return self.graph.apply("sub", b, self)

    def __mul__(self, b: Operand) -> Value:
        return self.graph.apply("mul", self, b)

    def __rmul__(self, b: Operand) -> Value:
        return self.graph.apply("mul", b, self)

    def __truediv__(self, b: Operand) -> Value:
        return self.graph.apply("div", self, b)

    def __rtruediv__(self, b: Operand) -> Value:
        return self.graph.apply("div", b, self)

    def __neg__(self) -> Value:
        return self.graph.apply("neg", self)

    def __lt__(self, b: Operand) -> Value:
        return self.graph.apply("lt", self, b)

    def __gt__(self, b: Operand) -> Value:
        return self.graph.apply("lt", b, self)

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
                if type(arg) is Node and arg.level > level:
                    level = arg.level
            node = self.nodes[key] = Node(self, op, args, (), level, len(self.nodes) if order is None else order)
        return node

    def apply(self, op: str, *args: Operand) -> Value:
        """Return the operation after all rules that match: a node, or a float."""
        if op not in UNMATCHED or not self._is_plain(op, *args):
            for rule in RULES[op]:
                found = rule(self, *args)
                if found is not None:
                    return found
        if op in COMMUTATIVE and _comes_first(args[1], args[0]):
            args = (args[1], args[0])
        return self.make(op, *args)

    def _is_plain(self, op: str, a: Operand, b: Operand) -> bool:
        """Return whether it is certain that no rule matches, as for most products and sums of a long program."""
        if type(a) is not Node or type(b) is not Node or a is b or a.level != ONLINE or b.level != ONLINE:
            return False
        return a.op in UNMATCHED[op] and b.op in UNMATCHED[op] and (op != "sub" or ("sub", b, a) not in self.nodes)


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


def _comes_first(a: Operand, b: Operand) -> bool:
    """Return whether a is before b: numbers before nodes, older nodes before younger ones."""
    if not isinstance(a, Node):
        return isinstance(b, Node)
    return isinstance(b, Node) and a.order < b.order


from .rules import RULES, UNMATCHED  # noqa: E402  (the rules are written over nodes)
