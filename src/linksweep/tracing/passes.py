"""Passes, which rewrite Programs into cheaper ones. Every Program goes through `optimise`.

Fused multiply-adds are chosen here, once, and nowhere else. A backend rounds exactly as the Program prescribes, so that
the result of a sample does not depend on the lane, batch length or thread that computes it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from .expression import Graph, Node, Operand
from .program import Add, Block, Body, Effect, Output, PairOutput, Program, Store, step_bodies


def remove_dead(program: Program) -> Program:
    """Return the program with only what a result depends on. Workspace slots that are not read are removed."""
    if not program.rolled or program.columns:  # each slot is read there
        return program
    live = _live_slots(program)
    slots = {
        key: i for array in range(len(program.arrays)) for i, key in enumerate(sorted(k for k in live if k[0] == array))
    }
    arrays = tuple(sum(1 for key in live if key[0] == array) for array in range(len(program.arrays)))

    def rename(body: Body) -> Body:
        kept: list[Effect] = []
        for effect in body.effects:
            if isinstance(effect, (Store, Add)):
                if (effect.array, effect.slot) not in live:
                    continue
                effect = replace(effect, slot=slots[effect.array, effect.slot])
            kept.append(effect)
        return Body.of(_relabel(kept, slots))

    steps = tuple(step for step in program.map_bodies(rename).steps if any(body.effects for body in step_bodies(step)))
    return replace(program, steps=steps, arrays=arrays)


def _relabel(effects: list[Effect], slots: dict[tuple[int, int], int]) -> list[Effect]:
    """Return the effects with every load renumbered."""
    new: dict[Node, Node] = {}
    for node in Body.of(effects).nodes:
        graph = node.graph
        if node.op == "load":
            array, slot, row = node.data[:3]
            new[node] = graph.leaf("load", (array, slots[array, slot], row, "live"))
        elif any(new.get(arg, arg) is not arg for arg in node.args if isinstance(arg, Node)):
            args = [new.get(arg, arg) if isinstance(arg, Node) else arg for arg in node.args]
            new[node] = graph.make(node.op, *args, order=node.order)
        new.get(node, node).order = node.order
    return [_with_value(effect, new) for effect in effects]


def _with_value(effect: Effect, new: dict[Node, Node]) -> Effect:
    return (
        replace(effect, value=new[effect.value]) if isinstance(effect.value, Node) and effect.value in new else effect
    )


def _live_slots(program: Program) -> set[tuple[int, int]]:
    """Return the (array, slot) pairs that some result depends on, through any number of links."""
    reads: dict[tuple[int, int], set[tuple[int, int]]] = {}  # slots that a slot's value is computed from
    live: set[tuple[int, int]] = set()
    none: frozenset[tuple[int, int]] = frozenset()
    for body in program.bodies():
        sources: dict[Node, frozenset[tuple[int, int]]] = {}  # slots that each node is computed from
        for node in body.nodes:
            if node.op == "load":
                sources[node] = frozenset([node.data[:2]])
            else:
                below = [sources[arg] for arg in node.args if type(arg) is Node and arg in sources]
                if below:
                    sources[node] = below[0] if len(below) == 1 else below[0].union(*below[1:])
        for effect in body.effects:
            loads = sources.get(effect.value, none) if isinstance(effect.value, Node) else none
            if isinstance(effect, (Output, PairOutput)):
                live |= loads
            else:
                reads.setdefault((effect.array, effect.slot), set()).update(loads)
    stack = list(live)
    while stack:
        for key in reads.get(stack.pop(), ()):
            if key not in live:
                live.add(key)
                stack.append(key)
    return live


def fuse(program: Program) -> Program:
    """Replace a product and the sum that uses it by one fused operation, if the product has no other use."""
    return program.map_bodies(_fuse_body)


def _fuse_body(body: Body) -> Body:
    uses = body.uses()

    def product(x: Operand) -> tuple[Operand, ...]:
        """Return the factors of a product that has one use, () for any other operand."""
        if isinstance(x, Node) and x.op == "mul" and uses[x] == 1:
            return new.get(x, x).args
        return ()

    new: dict[Node, Node] = {}
    for node in body.nodes:
        args = [new.get(arg, arg) if isinstance(arg, Node) else arg for arg in node.args]
        made: Node | None = None
        if node.op in ("add", "sub"):
            a, b = node.args
            graph = node.graph
            if factors := product(b):
                name = "fma" if node.op == "add" else "fnma"
                made = graph.make(name, *factors, args[0], order=node.order)
            elif factors := product(a):
                name = "fma" if node.op == "add" else "fms"
                made = graph.make(name, *factors, args[1], order=node.order)
        if made is None and any(x is not y for x, y in zip(args, node.args, strict=True)):
            made = node.graph.make(node.op, *args, order=node.order)
        if made is not None:
            new[node] = made
    return Body.of([_with_value(effect, new) for effect in body.effects])


# ---- common factors ----


Term = tuple[bool, Operand]  # subtracted?, what


def factor_sums(program: Program) -> Program:
    """Return the program with common factors taken out of the sums of its blocks: a x + a y + z = a (x + y) + z.

    Sums are examined as a whole, however the algorithm bracketed them. A product is moved only if it has no other use,
    so that the count never rises. Sums without a common factor keep their order, and with it their rounding.
    """
    steps = (Block(_Factoring(step.body).body()) if isinstance(step, Block) else step for step in program.steps)
    return replace(program, steps=tuple(steps))


class _Factoring:
    def __init__(self, old: Body):
        self.old = old
        self.graph = Graph()
        self.new: dict[Node, Operand] = {}
        self.uses = old.uses()
        inside: set[Operand] = set()  # sums whose only use is another sum
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
        """Return the terms of a sum, including those of sums that only it uses."""
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
        """Return the factors of a product that has one use; numbers without their sign."""
        if isinstance(x, Node) and x.op == "mul" and self.uses[x] == 1:
            return tuple(arg if isinstance(arg, Node) else abs(arg) for arg in x.args)  # pyright: ignore
        return ()

    def _shared(self, terms: list[Term]) -> Operand | None:
        """Return the factor that most of these products have; None if no two share one."""
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
        """Add terms, numbers and parameters first: operations among them are free."""
        ordered = sorted(terms, key=lambda term: term[1].level if isinstance(term[1], Node) else 0)
        total: Operand = 0.0
        for minus, x in ordered:
            total = self.graph.apply("sub" if minus else "add", total, x)
        return total


# ---- all passes ----


PASSES = (remove_dead, factor_sums)  # multiply-adds are fused later, if the target has the instruction


def optimise(program: Program, quick: bool = False) -> Program:
    """Return a program with the same results and fewer operations, verified for machine code.

    quick: do not take out common factors, which takes as long as tracing.
    """
    for rewrite in PASSES[:1] if quick else PASSES:
        program = rewrite(program)
    return program.verify()
