"""Forward-mode differentiation of a Program: the partial derivatives of its first result by one input.

Every node gets a tangent for each element of the input that it depends on; zeros fold and equal terms are shared by the
same rules as everywhere, so the derivative program is as customised as the one it comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError
from .expression import Node, Operand
from .program import Array, Block, Output, Program, block_program

Tangent = dict[int, Operand]  # by element of the input; what is not there is 0


def differentiate(program: Program, by: str) -> Program:
    """d result / d input, (result size, input size), of a program of one block."""
    if program.rolled or len(program.steps) != 1 or len(program.outputs) != 1:
        raise ArgumentError(
            f"{program.name} cannot be differentiated: expected a program written out for one result, got loops or "
            f"several results; ask for one function with rolled=False."
        )
    block = program.steps[0]
    assert isinstance(block, Block)
    source = next(k for k, array in enumerate(program.inputs) if array.name == by)
    tangents: dict[Node, Tangent] = {}
    for node in block.body.nodes:
        tangents[node] = _tangent(node, source, tangents)
    width = program.inputs[source].size
    entries: list[Operand] = [0.0] * (program.outputs[0].size * width)
    for effect in block.body.effects:
        assert isinstance(effect, Output)
        if isinstance(effect.value, Node):
            for element, value in tangents[effect.value].items():
                entries[effect.where[0] * width + element] = value
    output = differentiated_output(program.inputs, program.outputs, by)
    return block_program(f"{program.name}_by_{by}", program.inputs, [(output, entries)])


def differentiated_output(inputs: Sequence[Array], outputs: Sequence[Array], by: str) -> Array:
    array = next(array for array in inputs if array.name == by)
    return Array(f"d{outputs[0].name}_d{by}", (*outputs[0].shape, *array.shape))


def _tangent(node: Node, source: int, tangents: dict[Node, Tangent]) -> Tangent:
    op, args = node.op, node.args
    if not args:
        return {node.data[1]: 1.0} if op == "input" and node.data[0] == source else {}
    inner = [tangents[arg] if isinstance(arg, Node) else {} for arg in args]
    if not any(inner) or op == "lt":
        return {}
    if op == "where":
        keys = {*inner[1], *inner[2]}
        return {k: args[0].where(inner[1].get(k, 0.0), inner[2].get(k, 0.0)) for k in keys}
    total: Tangent = {}
    for factor, tangent in zip(_partials(node), inner, strict=True):
        if tangent:
            for k, value in tangent.items():
                term = factor * value
                total[k] = total[k] + term if k in total else term
    return total


def _partials(node: Node) -> tuple[Any, ...]:
    """The partial derivatives of an operation by its operands."""
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
            return (args[0].cos(),)
        case "cos":
            return (-args[0].sin(),)
    raise AssertionError(f"no derivative of {node.op}: differentiate before multiply-adds are fused")
