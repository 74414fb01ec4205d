"""A pass that takes common factors out of sums: a x + a y + z = a (x + y) + z.

Sums are looked at whole, however the algorithm bracketed them. A product is moved only where nothing else uses it, so
the count never rises; sums without a common factor keep their order, and with it their rounding.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..expression import Graph, Node, Operand
from ..program import Block, Body, Program

Term = tuple[bool, Operand]  # subtracted?, what


def factor_sums(program: Program) -> Program:
    """The program with common factors taken out, where it is written out."""
    steps = (Block(_Factoring(step.body).body()) if isinstance(step, Block) else step for step in program.steps)
    return replace(program, steps=tuple(steps))


class _Factoring:
    def __init__(self, old: Body):
        self.old = old
        self.graph = Graph()
        self.new: dict[Node, Operand] = {}
        self.uses: Counter[Node] = Counter()
        inside: set[Operand] = set()  # sums that go into one other sum, and nowhere else
        for node in old.nodes:
            self.uses.update(arg for arg in node.args if isinstance(arg, Node))
        self.uses.update(effect.value for effect in old.effects if isinstance(effect.value, Node))
        for node in old.nodes:
            if node.op in ("add", "sub", "neg"):
                inside.update(arg for arg in node.args if self._is_sum(arg))
        self.inside = inside

    def body(self) -> Body:
        for node in self.old.nodes:
            self.new[node] = self._renewed(node)
        return Body.of([replace(effect, value=self._value(effect.value)) for effect in self.old.effects])

    def _renewed(self, node: Node) -> Operand:
        if not node.args:
            return self.graph.leaf(node.op, node.data, node.level)
        if node.op in ("add", "sub") and node not in self.inside:
            terms = self._terms(node)
            shared = self._shared(terms)
            if shared is not None:
                return self._sum(terms, shared)
        return self.graph.apply(node.op, *(self._value(arg) for arg in node.args))

    def _value(self, x: Operand) -> Operand:
        return self.new[x] if isinstance(x, Node) else x

    def _is_sum(self, x: Operand) -> bool:
        return isinstance(x, Node) and x.op in ("add", "sub", "neg") and self.uses[x] == 1

    def _terms(self, node: Node) -> list[Term]:
        """The terms of a sum, through the sums that it alone uses."""
        found: list[Term] = []
        stack: list[Term] = [(False, node)]
        while stack:
            minus, x = stack.pop()
            if isinstance(x, Node) and (x is node or self._is_sum(x)):
                signs = {"add": (minus, minus), "sub": (minus, not minus), "neg": (not minus,)}[x.op]
                stack.extend(reversed(list(zip(signs, x.args, strict=True))))
            else:
                found.append((minus, x))
        return found

    def _factors(self, x: Operand) -> tuple[Operand, ...]:
        """The factors of a product that goes nowhere else, numbers without their sign."""
        if isinstance(x, Node) and x.op == "mul" and self.uses[x] == 1:
            return tuple(arg if isinstance(arg, Node) else abs(arg) for arg in x.args)  # pyright: ignore
        return ()

    def _shared(self, terms: list[Term]) -> Operand | None:
        """The factor that most of these products have; None if no two share one."""
        found = Counter(factor for _, x in terms for factor in dict.fromkeys(self._factors(x)))  # in order: ties repeat
        best = max(found, key=found.__getitem__, default=None)
        return best if best is not None and found[best] > 1 else None

    def _sum(self, terms: list[Term], shared: Operand | None) -> Operand:
        if shared is None:
            return self._added([(minus, self._value(x)) for minus, x in terms])
        inner: list[Term] = []
        rest: list[Term] = []
        for minus, x in terms:
            if shared in self._factors(x):
                assert isinstance(x, Node)
                place = self._factors(x).index(shared)
                number = x.args[place]
                flipped = not isinstance(number, Node) and number != shared
                inner.append((minus != flipped, x.args[1 - place]))
            else:
                rest.append((minus, x))
        taken = self.graph.apply("mul", self._value(shared), self._sum(inner, self._shared(inner)))
        if not rest:
            return taken
        return self._added([(False, self._sum(rest, self._shared(rest))), (False, taken)])

    def _added(self, terms: list[Term]) -> Operand:
        """Numbers and parameters meet first: what is among them is free."""
        ordered = sorted(terms, key=lambda term: term[1].level if isinstance(term[1], Node) else 0)
        total: Operand = 0.0
        for minus, x in ordered:
            total = self.graph.apply("sub" if minus else "add", total, x)
        return total
