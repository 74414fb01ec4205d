"""The optimiser over a field: every rewrite rule on random expressions, every pass on random and on robots' programs.

Nothing is rounded, so a rule that changed a value would be seen at once. sqrt, < and where have no meaning in a field:
their rules are listed here and tested on floats alone.
"""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import pytest
from robots_for_tests import robot
from rule_patterns import NUMBERS, PATTERNS, every_rule

from linksweep.functions.computation import RobotFunction
from linksweep.functions.functions import FUNCTIONS
from linksweep.papers.exact import proof as programs
from linksweep.papers.exact.field import Angle, lifted
from linksweep.papers.exact.points import Draw, Point, exact_canonical, exact_model
from linksweep.papers.exact.proof import prove, run, stages, traced
from linksweep.tracing import rules
from linksweep.tracing.count import count
from linksweep.tracing.expression import ONLINE, PARAMETER, Graph, Node
from linksweep.tracing.labels import labelled
from linksweep.tracing.passes import factor_sums, fuse
from linksweep.tracing.program import Array, block_program

MEANINGLESS = {
    ("sqrt", "a number"), ("lt", "two numbers"), ("where", "a known condition"), ("where", "both the same"),
}  # fmt: skip
OPERATIONS: dict[str, Any] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "neg": lambda a: -a, "sin": lambda a: a.sin(), "cos": lambda a: a.cos(),
    "fma": lambda a, b, c: a * b + c, "fms": lambda a, b, c: a * b - c, "fnma": lambda a, b, c: c - a * b,
}  # fmt: skip
SPECIAL = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5)


class Expressions:
    """A graph of random expressions, each with its value in the field."""

    def __init__(self, draw: Draw, size: int = 40):
        self.draw = draw
        self.random = draw._random
        self.graph = Graph()
        self.values: dict[Node, Any] = {}
        self.angles = [self.leaf(k, draw.angle(), ONLINE) for k in range(4)]
        self.angles += [self.angles[0] + self.angles[1], self.angles[2] + Angle(*draw.circle()), -self.angles[3]]
        self.parameters: list[Any] = [self.leaf(k, draw.number(), PARAMETER) for k in range(4, 7)]
        self.nodes: list[Any] = [self.leaf(k, draw.number(), ONLINE) for k in range(7, 12)]
        self.nodes += [trig for angle in self.angles for trig in (angle.cos(), angle.sin())]
        self.grow(self.parameters, 12)
        self.grow(self.nodes, size, self.parameters)

    def leaf(self, element: int, value: Any, level: int) -> Node:
        node = self.graph.leaf("input", (0, element), level)
        self.values[node] = value
        return node

    def grow(self, pool: list[Any], size: int, others: list[Any] | None = None) -> None:
        while len(pool) < size:
            a = self.random.choice(pool)
            b = self.random.choice([*pool, *(others or ()), self.number()])
            op = self.random.choice(("add", "sub", "mul", "div", "neg"))
            made = OPERATIONS[op](a) if op == "neg" else OPERATIONS[op](*self.random.sample((a, b), 2))
            if isinstance(made, Node) and self.value(made):
                pool.append(made)

    def number(self) -> Any:
        return self.random.choice(SPECIAL[1:]) if self.random.random() < 0.3 else self.draw.number()

    def value(self, x: Any) -> Any:
        """Of a node or number, in the field."""
        if not isinstance(x, Node):
            return x
        found = self.values.get(x)
        if found is None:
            found = self.values[x] = OPERATIONS[x.op](*(self.value(arg) for arg in x.args))
        return found


def test_every_rule_is_tried_or_listed():
    assert every_rule() == {*PATTERNS, *NUMBERS}
    assert every_rule() >= MEANINGLESS


def try_rule(name: tuple[str, str], amount: int, fired: Counter[tuple[str, str]]) -> None:
    """The rule fires so many times, each time on other expressions, and the value stays."""
    draw = Draw(name)
    pattern, tried, times = PATTERNS[name], 0, 0
    while times < amount:
        if tried % 200 == 0:
            pool = Expressions(draw)
            assert tried < 20 * amount, f"fired {times} times in {tried} expressions"
        tried += 1
        nodes = pool.angles if name[0] in ("sin", "cos") else pool.nodes
        operands = (*(pool.random.choice(nodes) for _ in range(3)), pool.random.choice(pool.parameters))
        numbers = draw.numbers(2)
        try:
            expected = lifted(pattern(*map(pool.value, operands), *numbers))
        except ZeroDivisionError:  # x / (y - y) of two names for one expression
            continue
        before = fired[name]
        assert pool.value(pattern(*operands, *numbers)) == expected
        times += fired[name] > before


@pytest.mark.quick
@pytest.mark.parametrize("amount", [500, pytest.param(10_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sorted({*PATTERNS} - MEANINGLESS), ids=lambda name: f"{name[0]} {name[1]}")
def test_a_rule_on_random_expressions(name: tuple[str, str], amount: int, fired: Counter[tuple[str, str]]):
    try_rule(name, amount, fired)


@pytest.mark.parametrize("name", sorted({*NUMBERS} - MEANINGLESS), ids=lambda name: f"{name[0]} {name[1]}")
def test_exact_numbers_fold(name: tuple[str, str], fired: Counter[tuple[str, str]]):
    draw = Draw(name)
    for _ in range(1000):
        count_of = len(NUMBERS[name][0])
        args = (draw.angle(),) if name[0] in ("sin", "cos") else draw.numbers(count_of)
        assert Graph().apply(name[0], *args) == OPERATIONS[name[0]](*args)
    assert set(fired) == {name} and fired[name] == 1000


@pytest.mark.parametrize("seed", range(30))
def test_passes_on_random_programs(seed: int):
    """factor_sums and fuse, one after the other, on programs of 250 operations that share their terms."""
    draw = Draw(f"passes {seed}")
    pool = Expressions(draw, 120)
    results = pool.random.sample(pool.nodes, 20)
    for _ in range(30):  # sums with common factors, which random expressions seldom have
        shared = pool.random.choice([*pool.nodes, *pool.parameters, pool.number()])
        terms = [pool.random.choice(pool.nodes) * shared for _ in range(3)] + pool.random.sample(pool.nodes, 1)
        pool.random.shuffle(terms)
        total = terms[0]
        for term in terms[1:]:
            total = total + term if pool.random.random() < 0.5 else total - term
        results.append(total)
    plain = block_program("random", (Array("x", (12,)),), [(Array("y", (len(results),)), results)]).verify()
    factored = factor_sums(plain).verify()
    leaves = {node.data[1]: value for node, value in pool.values.items() if node.op == "input"}
    point: Any = type("", (), {"values": {"x": [leaves[k] for k in range(12)]}})
    expected = [pool.value(x) for x in results]
    assert count(factored).mul < count(plain).mul, "nothing was factored"
    for program in (plain, factored, fuse(plain).verify(), fuse(factored).verify()):
        assert run(program, point) == expected


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["tree4", "tree9", "urdf", "mixed3"])
def test_programs_of_robots(name: str):
    """Traced, factored, fused, rolled, without dead work: the default method of every function, on trees too."""
    model = exact_model(exact_canonical(robot(name).model))
    draw = Draw(name)
    point = Point(model, draw)
    for function, known in FUNCTIONS.items():
        method, properties = next(iter(known.methods.items()))
        if function in ("inertia_ratio", "closeness"):  # a choice by sign, which has no meaning here
            continue
        if (properties.serial and not model.is_serial) or (properties.single and len(model.links) > 4):
            continue
        frame = model.frames[-1].name if known.needs_frame else ""
        terms: dict[str, Any] = dict.fromkeys(known.takes, True)
        reference = known.references[0] if known.references else ""
        request = RobotFunction(model, function, method, frame, reference, **terms)
        expected = point.evaluate(request)
        for stage, program in stages(request):
            assert run(program, point) == expected, (function, stage)


@pytest.mark.parametrize("method", ["kane", "newton_euler"])
def test_labels_change_no_program(method: str):
    """What C export and printing trace a second time, watched, is the program that was compiled."""
    model = exact_model(exact_canonical(robot("mixed3").model))
    point, request = Point(model, Draw(method)), RobotFunction(model, "inverse_dynamics", method)
    plain = factor_sums(traced(request))
    watched = labelled(lambda: factor_sums(traced(request)))
    assert watched.labels and count(watched) == count(plain)
    assert run(watched, point) == run(plain, point) == point.evaluate(request)


@pytest.mark.parametrize(
    ("op", "comment", "wrong"),
    [
        ("sub", "(x + y) - (x - y) = y + y", lambda g, a, b: g.apply("add", b.args[0], b.args[0])),
        ("add", "(-x) + y = y - x", lambda g, a, b: g.apply("sub", a.args[0], b)),
        ("mul", "x (-y) = -(x y)", lambda g, a, b: g.apply("mul", a, b.args[0])),
        ("mul", "c (d x) = (c d) x", lambda g, a, b: g.apply("mul", a, b.args[1])),
    ],
)
def test_a_wrong_rule_is_refuted(op: str, comment: str, wrong: Any, monkeypatch: pytest.MonkeyPatch):
    seen: Counter[tuple[str, str]] = Counter()

    def broken(rule: Any) -> Any:
        @functools.wraps(rule)  # with its patterns
        def run_it(g: Any, *args: Any) -> Any:
            if rule(g, *args) is None:
                return None
            seen[op, comment] += 1
            return wrong(g, *args)

        return run_it if rule.comment == comment else rule

    monkeypatch.setitem(rules.RULES, op, [broken(rule) for rule in rules.RULES[op]])
    with pytest.raises(AssertionError):
        try_rule((op, comment), 10, seen)
    assert seen[op, comment] >= 1


@pytest.mark.slow
def test_a_wrong_pass_is_refuted_by_name(monkeypatch: pytest.MonkeyPatch):
    def broken(program: Any) -> Any:
        fused = fuse(program)
        nodes = (node for body in fused.bodies() for node in body.nodes if node.op == "fma")
        for node in nodes:
            node.op = "fms"
            break
        return fused

    monkeypatch.setattr(programs, "fuse", broken)
    proof = prove("R", programs=True)
    assert proof.refuted and all(outcome.what.endswith("fused") for outcome in proof.refuted)
    assert any("programs of inverse_dynamics (newton_euler, fused) is false for R" in line for line in proof.remarks())
