"""Passes from Program to Program: remove dead work, fuse multiply-adds.

Fused multiply-adds are chosen here, once, and nowhere else: a backend rounds exactly as the Program says, so that a
sample's result never depends on the lane, batch length or thread that computes it.
"""

from __future__ import annotations

from dataclasses import replace

from ..expression import Node, Operand
from ..program import Add, Block, Body, Effect, Output, PairLoop, PairOutput, Program, Store, step_bodies


def remove_dead(program: Program) -> Program:
    """Keep only what a result depends on. Workspace slots that nobody reads are renumbered away."""
    if not program.rolled or program.columns:  # there each slot is read
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
    """The effects with every load of a kept value renumbered."""
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
    return replace(effect, value=new.get(effect.value, effect.value)) if isinstance(effect.value, Node) else effect


def _live_slots(program: Program) -> set[tuple[int, int]]:
    """The (array, slot) pairs that some result depends on, through any number of links."""
    reads: dict[tuple[int, int], set[tuple[int, int]]] = {}  # what a slot's value is made of
    live: set[tuple[int, int]] = set()
    for body in program.bodies():
        for effect in body.effects:
            loads = {node.data[:2] for node in Body.of([effect]).nodes if node.op == "load"}
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
    """Replace a product and the sum it goes into by one fused operation, wherever the product has no other use."""
    return program.map_bodies(_fuse_body)


def _fuse_body(body: Body) -> Body:
    uses: dict[Node, int] = {}
    for node in body.nodes:
        for arg in node.args:
            if isinstance(arg, Node):
                uses[arg] = uses.get(arg, 0) + 1
    for effect in body.effects:
        if isinstance(effect.value, Node):
            uses[effect.value] = uses.get(effect.value, 0) + 1

    def product(x: Operand) -> tuple[Operand, ...]:
        """The factors of a product that goes nowhere else; nothing for any other operand."""
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


__all__ = ["Block", "PairLoop", "fuse", "remove_dead"]
