"""Differentiation of traced values: forward mode along directions, and reverse mode from weighted results.

In forward mode every node gets a tangent for each direction that it depends on. In reverse mode every node gets its
adjoint, the derivative of the weighted sum of all results with respect to it. Zeros fold and equal terms are shared by
the rules of the graph, so a derivative is as customised as the function, and shares its work. Outputs of equations
(`Graph.solutions`) are differentiated by implicit differentiation, without the operations that solve them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..errors import ArgumentError
from ..spatial.scalars import Solution, cos, is_zero, sin, where
from .expression import Node, Operand
from .program import Array, Block, Output, Program, block_program

Tangent = dict[int, Operand]  # by direction; missing entries are 0


def tangents(values: Sequence[Operand], seeds: Mapping[Node, Tangent]) -> list[Tangent]:
    """Return the tangent of each value. `seeds` are the tangents of the nodes that vary.

    A seed may be given for an intermediate node, such as an entry of a rotation matrix: its operands are not visited.
    """
    found: dict[Node, Tangent] = {}
    for node in _below(values):
        seed = seeds.get(node)
        if seed is not None:
            found[node] = seed
        elif node in node.graph.solutions:
            if node not in found:
                found |= _solution_tangents(node.graph.solutions[node][0], found)
        else:
            found[node] = _tangent(node, found)
    return [found[value] if isinstance(value, Node) else {} for value in values]


def _below(values: Sequence[Operand]) -> list[Node]:
    """Return every node that these values depend on, in order, without the operations that solve equations."""
    found: set[Node] = set()
    entered: set[int] = set()
    stack = [value for value in values if isinstance(value, Node)]
    while stack:
        node = stack.pop()
        if node in found:
            continue
        found.add(node)
        if node not in node.graph.solutions:
            stack.extend(arg for arg in node.args if isinstance(arg, Node))
            continue
        solution, _ = node.graph.solutions[node]
        if id(solution) not in entered:
            entered.add(id(solution))
            stack.extend(value for value in solution.inputs if isinstance(value, Node))
    return sorted(found, key=lambda node: node.order)


def _solution_tangents(solution: Solution, tangents: Mapping[Node, Tangent]) -> dict[Node, Tangent]:
    """Return the tangents of all outputs of equations."""
    outputs = solution.outputs
    directions = {k for value in solution.inputs if isinstance(value, Node) for k in tangents[value]}
    own: dict[Node, Tangent] = {
        value: {} for i, value in enumerate(outputs)
        if isinstance(value, Node) and value.graph.solutions.get(value) == (solution, i)
    }  # fmt: skip
    for k in sorted(directions):
        changes = solution.tangent(lambda value, k=k: tangents[value].get(k, 0.0) if isinstance(value, Node) else 0.0)
        for value, change in zip(outputs, changes, strict=True):
            if isinstance(value, Node) and value in own and not is_zero(change):
                own[value][k] = change
    return own


def derivative(values: Sequence[Operand], seeds: Mapping[Node, Tangent], width: int) -> list[Operand]:
    """Return d values / d directions, (values, width), row by row."""
    entries: list[Operand] = [0.0] * (len(values) * width)
    for row, tangent in enumerate(tangents(values, seeds)):
        for column, value in tangent.items():
            entries[row * width + column] = value
    return entries


def adjoints(values: Sequence[Operand], weights: Sequence[Operand], wanted: Collection[Node]) -> dict[Node, Operand]:
    """Return the derivative of sum(weights * values) with respect to each of the `wanted` nodes.

    It takes a small multiple of the operations of `values`, independent of the number of nodes. Operands of `wanted`
    nodes are not visited.
    """
    found: dict[Node, Operand] = dict.fromkeys(wanted, 0.0)
    below = _below(values)
    moved = set(wanted)
    waiting: dict[int, int] = {}  # outputs of equations that are not visited yet
    for node in below:
        solution = node.graph.solutions.get(node)
        if any(arg in moved for arg in (solution[0].inputs if solution else node.args) if isinstance(arg, Node)):
            moved.add(node)
        if solution:
            waiting[id(solution[0])] = waiting.get(id(solution[0]), 0) + 1
    gathered: dict[int, dict[int, Operand]] = {}
    totals: dict[Node, Operand] = {}

    def add(node: Operand, term: Operand) -> None:
        if isinstance(node, Node) and node in moved:
            totals[node] = totals[node] + term if node in totals else term

    for value, weight in zip(values, weights, strict=True):
        add(value, weight)
    for node in reversed(below):
        if node not in found and node in node.graph.solutions:
            solution, place = node.graph.solutions[node]
            adjoints_of = gathered.setdefault(id(solution), {})
            if node in totals:
                adjoints_of[place] = totals.pop(node)
            waiting[id(solution)] -= 1
            if adjoints_of and not waiting[id(solution)]:
                for value, term in solution.adjoint([adjoints_of.get(i, 0.0) for i in range(len(solution.outputs))]):
                    add(value, term)
            continue
        if node not in totals:
            continue
        adjoint = totals.pop(node)
        if node in found:
            found[node] = adjoint
        elif node.op == "where":
            condition, if_true, if_false = node.args
            add(if_true, where(condition, adjoint, 0.0))
            add(if_false, where(condition, 0.0, adjoint))
        elif node.op != "lt":
            for arg, factor in zip(node.args, _partials(node), strict=True):
                add(arg, factor * adjoint)
    return found


def differentiate(program: Program, by: str) -> Program:
    """Return the program of d result / d input, (result size, input size), of a program of one block."""
    if program.rolled or len(program.steps) != 1 or len(program.outputs) != 1:
        raise ArgumentError(
            f"{program.name} cannot be differentiated: expected an unrolled program with one result, got loops or "
            f"several results; compile one function with rolled=False."
        )
    block = program.steps[0]
    assert isinstance(block, Block)
    source = next(k for k, array in enumerate(program.inputs) if array.name == by)
    values: list[Operand] = [0.0] * program.outputs[0].size
    for effect in block.body.effects:
        assert isinstance(effect, Output)
        values[effect.where[0]] = effect.value
    leaves = [node for node in block.body.nodes if node.op == "input" and node.data[0] == source]
    seeds: dict[Node, Tangent] = {node: {node.data[1]: 1.0} for node in leaves}
    array = program.inputs[source]
    output = differentiated(program.outputs[0], by, array.shape)
    entries = derivative(values, seeds, array.size)
    return block_program(f"{program.name}_by_{by}", program.inputs, [(output, entries)])


def differentiated(output: Array, by: str, directions: tuple[int, ...]) -> Array:
    """Return the name and shape of the derivative of a result."""
    return Array(f"d{output.name}_d{by}", (*output.shape, *directions))


def _tangent(node: Node, tangents: dict[Node, Tangent]) -> Tangent:
    op, args = node.op, node.args
    inner = [tangents[arg] if isinstance(arg, Node) else {} for arg in args]
    if not any(inner) or op == "lt":
        return {}
    if op == "where":
        keys = {*inner[1], *inner[2]}
        return {k: where(args[0], inner[1].get(k, 0.0), inner[2].get(k, 0.0)) for k in keys}
    total: Tangent = {}
    for factor, tangent in zip(_partials(node), inner, strict=True):
        if tangent:
            for k, value in tangent.items():
                term = factor * value
                total[k] = total[k] + term if k in total else term
    return total


def _partials(node: Node) -> tuple[Operand, ...]:
    """Return the partial derivatives of an operation with respect to its operands."""
    args = node.args
    match node.op:
        case "add":
            return 1.0, 1.0
        case "sub":
            return 1.0, -1.0
        case "neg":
            return (-1.0,)
        case "mul":
            return args[1], args[0]
        case "div":
            return 1.0 / args[1], -(node / args[1])
        case "sqrt":
            return (0.5 / node,)
        case "sin":
            return (cos(args[0]),)
        case "cos":
            return (-sin(args[0]),)
        case other:
            raise AssertionError(f"no derivative of {other}: differentiate before multiply-adds are fused")
