"""Common factors leave sums; values stay, and the count never rises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots_for_tests import robot

from linksweep.backends.interpreter import Interpreter
from linksweep.functions.functions import FUNCTIONS
from linksweep.tracing.count import count
from linksweep.tracing.expression import Graph
from linksweep.tracing.passes import factor_sums
from linksweep.tracing.program import Array, Program, block_program

pytestmark = pytest.mark.quick

VALUES = np.random.default_rng(1).uniform(-2.0, 2.0, (40, 4))


def program(values: list) -> Program:
    return block_program("sums", (Array("x", (4,)),), [(Array("y", (len(values),)), values)]).verify()


def evaluate(one: Program) -> np.ndarray:
    out = np.empty((len(VALUES), one.outputs[0].size))
    Interpreter(one)([VALUES], [out])
    return out


@pytest.mark.cases(99)
@pytest.mark.parametrize(("write", "mul", "add"), [
    (lambda a, b, c, d: a * b + a * c, 1, 1),
    (lambda a, b, c, d: a * b - a * c + d, 1, 2),
    (lambda a, b, c, d: (a * b + d) - (c - a * d), 1, 3),  # a (b + d) + d - c, through brackets
    (lambda a, b, c, d: 2.5 * a + 1.5 * a + b, 1, 1),
    (lambda a, b, c, d: 0.5 * a - (-0.5) * b, 1, 1),
    (lambda a, b, c, d: a * b + a * c + d * b + d * c, 2, 2),  # b + c is one node
    (lambda a, b, c, d: a * b + c * d, 2, 1),
])  # fmt: skip
def test_factors(write, mul: int, add: int):
    graph = Graph()
    before = program([write(*(graph.leaf("input", (0, i)) for i in range(4)))])
    after = factor_sums(before).verify()
    assert (count(after).mul, count(after).add) == (mul, add)
    assert np.allclose(evaluate(after), evaluate(before), rtol=1e-13, atol=1e-13)


def test_a_product_that_is_used_elsewhere_stays():
    graph = Graph()
    a, b, c, _ = (graph.leaf("input", (0, i)) for i in range(4))
    product = a * b
    before = program([product + a * c, product])
    assert count(factor_sums(before)) == count(before)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 99), st.integers(0, 99)), min_size=3, max_size=30))
def test_random_programs(steps: list[tuple[int, int, int]]):
    graph = Graph()
    nodes = [*(graph.leaf("input", (0, i)) for i in range(4)), 0.5, -0.5]
    for op, i, j in steps:
        a, b = nodes[i % len(nodes)], nodes[j % len(nodes)]
        nodes.append(a + b if op == 0 else a - b if op == 1 else a * b)
    before = program([nodes[-1] * 1.0, nodes[-2] * 1.0])
    after = factor_sums(before).verify()
    assert count(after).total <= count(before).total
    expected = evaluate(before)
    size = np.abs(VALUES).max() ** len(steps)
    assert np.all(np.abs(evaluate(after) - expected) <= 1e-12 * (np.abs(expected) + min(size, 1e6)))


@pytest.mark.parametrize("name", ["puma560", "tree9"])
def test_a_second_pass_finds_little(name: str):
    """Once is enough: what a second pass would save is under 1 %."""
    for function in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
        method = next(iter(FUNCTIONS[function].methods))
        once = robot(name).recipe(function, method=method, rolled=False).trace()
        assert count(factor_sums(once)).total >= 0.99 * count(once).total
