"""Passes: dead work goes, multiply-adds are fused where a product has no other use."""

# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest
from robots_for_tests import close, robot, samples

from linksweep.backends.interpreter import Interpreter
from linksweep.functions.computation import RobotFunction, Together
from linksweep.tracing.expression import Graph
from linksweep.tracing.passes import fuse, remove_dead
from linksweep.tracing.program import Array, Block, Program, Store, block_program
from linksweep.tracing.rolled import Rolled

pytestmark = pytest.mark.quick

INVERSE = partial(RobotFunction, function="inverse_dynamics", method="newton_euler")
FORWARD = partial(RobotFunction, function="forward_dynamics", method="filter_smoother")
MASS = partial(RobotFunction, function="mass_matrix", method="composite")


def run(program: Program, inputs: list[np.ndarray]) -> list[np.ndarray]:
    outputs = [np.full((len(inputs[0]), array.size), np.nan) for array in program.outputs]
    Interpreter(program.verify())(inputs, outputs)
    return outputs


def operations(program: Program) -> Counter[str]:
    return Counter(node.op for body in program.bodies() for node in body.nodes)


def untouched(name: str, function: partial[RobotFunction]) -> Program:
    """A rolled program before any pass."""
    model = robot(name).canonical
    computation = function(model)
    tracer = Rolled(model, computation.inputs)
    computation.write(tracer, 0)
    return tracer.program("untouched", computation.outputs).verify()


# ---- dead work -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("request_", [INVERSE, FORWARD, MASS], ids=lambda r: r.keywords["function"])
@pytest.mark.parametrize("name", ["mixed8", "tree9"])
def test_dead_slots_go_and_results_stay(name: str, request_: partial[RobotFunction]):
    before = untouched(name, request_)
    after = remove_dead(before).verify()
    assert sum(after.arrays) < sum(before.arrays)
    inputs = samples(robot(name), 3, count=len(before.inputs))
    for a, b in zip(run(before, inputs), run(after, inputs), strict=True):
        assert np.array_equal(a, b)
    assert sum(operations(after).values()) <= sum(operations(before).values())


def test_the_linear_velocity_of_newton_euler_is_never_computed():
    """Its state is [w; v], [dw; dv]: no torque needs v, so 9 slots of 12 are left, and no more work on it."""
    before = untouched("chain7", INVERSE)
    after = remove_dead(before)
    assert 12 in before.arrays and 12 not in after.arrays and 9 in after.arrays
    assert sum(operations(after).values()) < 0.95 * sum(operations(before).values())


def test_every_slot_that_is_left_is_stored_and_loaded():
    for request in (INVERSE, FORWARD, MASS):
        program = remove_dead(untouched("tree9", request))
        every = {(array, slot) for array, slots in enumerate(program.arrays) for slot in range(slots)}
        loaded = {node.data[:2] for body in program.bodies() for node in body.nodes if node.op == "load"}
        stored = {(e.array, e.slot) for b in program.bodies() for e in b.effects if not hasattr(e, "output")}  # type: ignore[union-attr]
        assert loaded == every == stored


def test_removing_twice_is_removing_once():
    once = remove_dead(untouched("mixed8", FORWARD))
    twice = remove_dead(once)
    assert twice.arrays == once.arrays and operations(twice) == operations(once)


def test_a_written_out_program_holds_only_what_its_results_need():
    program = Together((INVERSE(robot("puma560").canonical),), rolled=False).trace()
    assert remove_dead(program) is program
    (block,) = program.steps
    assert isinstance(block, Block)
    used = {arg for node in block.body.nodes for arg in node.args} | {e.value for e in block.body.effects}
    assert set(block.body.nodes) <= used


# ---- fused multiply-adds -------------------------------------------------------------------------------------


def leaves() -> tuple[Graph, list[Any]]:
    graph = Graph()
    return graph, [graph.leaf("input", (0, i)) for i in range(4)]


def fused(*values: Any) -> Program:
    return fuse(block_program("p", [Array("x", (4,))], [(Array("y", (len(values),)), values)])).verify()


def test_each_form():
    for formula, expected in (
        (lambda a, b, c, d: a * b + c, {"input": 3, "fma": 1}),
        (lambda a, b, c, d: c + a * b, {"input": 3, "fma": 1}),
        (lambda a, b, c, d: a * b - c, {"input": 3, "fms": 1}),
        (lambda a, b, c, d: c - a * b, {"input": 3, "fnma": 1}),
        (lambda a, b, c, d: a * b + c * d, {"input": 4, "mul": 1, "fma": 1}),
        (lambda a, b, c, d: a * b - c * d, {"input": 4, "mul": 1, "fnma": 1}),
        (lambda a, b, c, d: a + b, {"input": 2, "add": 1}),
    ):
        assert operations(fused(formula(*leaves()[1]))) == expected


def test_a_product_with_several_uses_stays():
    _, (a, b, c, d) = leaves()
    product = a * b
    assert operations(fused(product + c, product - d)) == {"input": 4, "mul": 1, "add": 1, "sub": 1}
    assert operations(fused(product + c, product)) == {"input": 3, "mul": 1, "add": 1}
    assert operations(fused(product + product * c))["mul"] == 1


def test_each_form_keeps_its_value():
    _, (a, b, c, d) = leaves()
    values = [a * b + c, a * c - d, d - b * c, a * d + b * d, a * b * c - d * d, 2.0 * a + b, a - 3.0 * d]
    program = block_program("p", [Array("x", (4,))], [(Array("y", (len(values),)), values)])
    x = np.random.default_rng(0).normal(size=(100, 4))
    assert np.allclose(run(fuse(program), [x])[0], run(program, [x])[0], rtol=0, atol=1e-14)


@pytest.mark.parametrize("name", ["puma560", "tree9", "mixed8"])
@pytest.mark.parametrize("request_", [INVERSE, FORWARD, MASS], ids=lambda r: r.keywords["function"])
@pytest.mark.parametrize("rolled", [False, True])
def test_whole_programs(name: str, request_: partial[RobotFunction], rolled: bool):
    before = Together((request_(robot(name).canonical),), rolled).trace()
    after = fuse(before).verify()
    a, b = operations(before), operations(after)
    fusions = b["fma"] + b["fms"] + b["fnma"]
    assert fusions > 0 and b["fma"] and b["fnma"]
    assert a["mul"] - b["mul"] == fusions and a["add"] + a["sub"] - b["add"] - b["sub"] == fusions
    assert b["mul"] + b["add"] + b["sub"] < 0.75 * (a["mul"] + a["add"] + a["sub"])
    for op in ("div", "sqrt", "sin", "cos", "neg", "input", "load", "table"):
        assert a[op] == b[op]
    inputs = samples(robot(name), 3, count=len(before.inputs))
    for x, y in zip(run(before, inputs), run(after, inputs), strict=True):
        assert close(y, x, 1e-10)  # the interpreter rounds both the same way; nothing but operands moved


def test_stores_are_fused_like_results():
    program = fuse(Together((FORWARD(robot("mixed8").canonical),), rolled=True).trace())
    stored = Counter(
        e.value.op for b in program.bodies() for e in b.effects if isinstance(e, Store) and hasattr(e.value, "op")
    )
    assert stored["fma"] + stored["fms"] + stored["fnma"] > 0
