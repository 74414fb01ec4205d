"""Every rewrite rule fires, and none changes a value."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rule_patterns import EXAMPLES, NUMBERS, PATTERNS, every_rule

import linksweep as ls
from linksweep.backends.interpreter import Interpreter
from linksweep.spatial import scalars
from linksweep.tracing.expression import ONLINE, PARAMETER, Graph, Node
from linksweep.tracing.program import Array, block_program
from linksweep.tracing.rules import NUMBER, OFFLINE, RULES, rules_for

pytestmark = pytest.mark.quick

INPUTS = (Array("x", (4,)),)
VALUES = np.random.default_rng(3).uniform(0.2, 3.0, (50, 4)) * np.random.default_rng(4).choice((-1.0, 1.0), (50, 4))


def evaluate(value: Any) -> np.ndarray:
    """A traced value on VALUES, in the interpreter."""
    program = block_program("pattern", INPUTS, [(Array("y", (1,)), [value])]).verify()
    out = np.empty((len(VALUES), 1))
    Interpreter(program)([VALUES], [out])
    return out[:, 0]


def traced(function: Callable[..., Any]) -> Any:
    graph = Graph()
    return function(*(graph.leaf("input", (0, i), PARAMETER if i == 3 else ONLINE) for i in range(4)), *EXAMPLES)


def test_every_rule_has_its_pattern():
    assert sum(len(rules) for rules in RULES.values()) == len(every_rule()), "two rules have one comment"
    assert every_rule() == {*PATTERNS, *NUMBERS}


@pytest.mark.cases(1000)
@pytest.mark.parametrize("name", PATTERNS, ids=lambda name: name[1])
def test_a_rule_fires_and_keeps_the_value(name: tuple[str, str], fired: Counter[tuple[str, str]]):
    function = PATTERNS[name]
    with np.errstate(all="ignore"):
        expected = function(*VALUES.T, *EXAMPLES)
    got = evaluate(traced(function))
    assert name in fired
    assert np.allclose(got, expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("name", NUMBERS, ids=lambda name: f"{name[0]} {name[1]}")
def test_numbers_fold(name: tuple[str, str], fired: Counter[tuple[str, str]]):
    args, expected = NUMBERS[name]
    assert Graph().apply(name[0], *args) == expected
    assert set(fired) == {name}


def test_a_division_by_zero_is_left_to_the_machine():
    graph = Graph()
    x = graph.leaf("input", (0, 0))
    assert isinstance(x / 0.0, Node)
    assert isinstance(x / 1e-320, Node)  # whose reciprocal is not finite
    with np.errstate(all="ignore"):
        assert np.isinf(evaluate(x / 0.0)).all()


OPERATIONS: list[tuple[int, Callable[..., Any]]] = [
    (2, lambda a, b: a + b),
    (2, lambda a, b: a - b),
    (2, lambda a, b: a * b),
    (2, lambda a, b: a / (b * b + 1.0)),
    (1, lambda a: -a),
    (1, lambda a: scalars.sin(a)),
    (1, lambda a: scalars.cos(a)),
    (1, lambda a: scalars.sqrt(a * a + 0.25)),
    (3, lambda a, b, c: scalars.where(a < b, b, c)),
]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 8), *[st.integers(0, 10**6)] * 3), min_size=1, max_size=40))
def test_random_expressions_keep_their_values(steps: list[tuple[int, int, int, int]]):
    """Any program of these operations, over nodes and over arrays, with every number that has a rule of its own."""
    graph = Graph()
    numbers: list[Any] = [0.0, 1.0, -1.0, 2.0, -2.0, 0.5]
    nodes: list[Any] = [*numbers, *(graph.leaf("input", (0, i)) for i in range(4))]
    plain: list[Any] = [*numbers, *VALUES.T]
    for operation, *operands in steps:
        arity, function = OPERATIONS[operation]
        chosen = [index % len(nodes) for index in operands[:arity]]
        nodes.append(function(*(nodes[i] for i in chosen)))
        plain.append(function(*(plain[i] for i in chosen)))
    scale = np.maximum.reduce([np.abs(np.broadcast_to(np.asarray(x, dtype=float), 50)) for x in plain])
    difference = np.abs(evaluate(nodes[-1] * 1.0) - plain[-1])
    # sums cancel, and sin(large) sees the rounding of its argument: small against the largest value on the way, or
    # a branch of `where` at equality; such samples are rare and differ by much more
    assert np.median(difference / (1e-9 * scale + 1e-12)) <= 1.0


@pytest.mark.parametrize("op", RULES)
def test_rules_are_tried_for_the_operands_that_they_state(op: str):
    """A rule that is tried for an operand of its kind is tried for every operand of that kind, and for no other."""
    nodes = ("input", "load", "sin", "cos", "sqrt", "add", "sub", "mul", "div", "neg", "where", "lt")
    kinds = (NUMBER, *nodes, *(kind + OFFLINE for kind in nodes))
    arity = len(RULES[op][0].patterns[0])  # type: ignore[attr-defined]
    words: dict[str, Callable[[str, str], bool]] = {
        "*": lambda kind, first: True,
        "same": lambda kind, first: kind == first,
        "parameter": lambda kind, first: kind[-1] == OFFLINE,
        "offline": lambda kind, first: kind == NUMBER or kind[-1] == OFFLINE,
        **{word: lambda kind, first, word=word: kind in (word, word + OFFLINE) for word in (NUMBER, *nodes)},
    }
    for operands in itertools.product(kinds, repeat=min(arity, 2)):
        operands = (*operands, *(NUMBER,) * (arity - len(operands)))
        expected = [
            rule for rule in RULES[op]
            if any(all(words[word](kind, operands[0]) for word, kind in zip(pattern, operands, strict=True))
                   for pattern in rule.patterns)  # type: ignore[attr-defined]
        ]  # fmt: skip
        assert list(rules_for(op, *operands)) == expected


def test_programs_keep_no_sums_and_products_that_fold():
    """After all rules no operand of a sum or product is 0 or negated."""
    for bot in (ls.robots.puma560(), ls.robots.stanford()):
        program = bot.compile(["inverse_dynamics", "mass_matrix"], backend="interpreter").program
        for body in program.bodies():
            for node in body.nodes:
                if node.op in ("add", "mul"):
                    assert not any(not isinstance(arg, Node) and arg == 0 for arg in node.args)
                    assert not any(isinstance(arg, Node) and arg.op == "neg" for arg in node.args)


@pytest.mark.parametrize("operand", ["1.0", None, np.float32(2.0)])
def test_operands_are_numbers_or_nodes(operand: Any):
    with pytest.raises(TypeError, match="not a number"):
        Graph().make("mul", operand, 2.0)
