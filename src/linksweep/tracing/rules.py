"""The rewrite rules, one commented line each, tried in order; the first that matches replaces the operation.

A rule states the kinds of operands that it is for, one word per operand: `number`, an operation such as `neg`,
`parameter` (a node that does not depend on the sample), `offline` (a number or a parameter), `same` (the kind of the
first operand) or `*` for any. Only rules for the kinds at hand are tried. A rule takes the operands (nodes or floats)
and returns the replacement of the operation, or None. For finite values no rule changes a result by more than rounding;
`tests/tracing/test_rules.py` applies each one and compares numerically.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# (a rule is one line, and its operands are nodes or numbers of any kind)

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..spatial import scalars
from ..spatial.scalars import is_number as _number

if TYPE_CHECKING:
    from .expression import Graph, Node, Operand

Rule = Callable[..., Any]  # (graph, *operands) -> the replacement of the operation, or None
ONLINE = 2  # as in expression.py, which imports this table
NUMBER = "number"  # the kind of a number; the kind of a node is its operation, with OFFLINE if it is a parameter
OFFLINE = "'"
RULES: dict[str, list[Rule]] = {}


def rule(op: str, comment: str, *patterns: str) -> Callable[[Rule], Rule]:
    """Add a rule for operations `op` on operands of the kinds of one of the patterns."""

    def enter(function: Rule) -> Rule:
        function.comment = comment  # type: ignore[attr-defined]
        function.patterns = [pattern.split() for pattern in patterns]  # type: ignore[attr-defined]
        RULES.setdefault(op, []).append(function)
        return function

    return enter


def rules_for(op: str, *kinds: str) -> tuple[Rule, ...]:
    """Return the rules of an operation that are for operands of these kinds, in order."""
    return tuple(rule for rule in RULES[op] if any(_fits(pattern, kinds) for pattern in rule.patterns))  # type: ignore[attr-defined]


def _fits(pattern: Sequence[str], kinds: Sequence[str]) -> bool:
    for word, kind in zip(pattern, kinds, strict=True):
        parameter = kind.endswith(OFFLINE)
        if word == "offline":
            fits = parameter or kind == NUMBER
        elif word == "parameter":
            fits = parameter
        else:
            fits = word in ("*", kind.removesuffix(OFFLINE)) or (word == "same" and kind == kinds[0])
        if not fits:
            return False
    return True


def _finite(x: Operand) -> bool:
    return not isinstance(x, float) or math.isfinite(x)


def _offline(x: Any) -> bool:
    """Return whether x is a number or a parameter: operations among those are free."""
    return _number(x) or x.level < ONLINE


def _other(x: Node, part: Operand) -> Operand | None:
    """Return the other operand of the sum x; None if `part` is not one of its operands."""
    a, b = x.args
    return b if a is part else a if b is part else None


def _same_pair(total: Node, difference: Node) -> bool:
    """Return whether this sum and this difference are x + y and x - y."""
    x, y = difference.args
    return not _number(x) and not _number(y) and _other(total, x) is y


def _by_parameter(x: Node) -> bool:
    """Return whether this product is one of a parameter or number and a value of the sample."""
    return x.level == ONLINE and any(_offline(arg) for arg in x.args)


def _take_out(g: Graph, c: Operand, x: Node) -> Operand:
    """c (d y) = (c d) y."""
    d, y = x.args if _offline(x.args[0]) else reversed(x.args)
    return g.apply("mul", g.apply("mul", c, d), y)


def _without_common(g: Graph, a: Node, b: Node) -> Operand | None:
    """(x + y) - (x + z) = y - z."""
    for x in a.args:
        y, z = (None, None) if _number(x) else (_other(a, x), _other(b, x))
        if y is not None and z is not None:
            return g.apply("sub", y, z)
    return None


# fmt: off
@rule("add", "two numbers", "number number")
def _(g, a, b): return a + b
@rule("add", "x + 0 = x", "number *", "* number")
def _(g, a, b): return a if _number(b) and b == 0 else b if _number(a) and a == 0 else None
@rule("add", "x + (-y) = x - y", "* neg")
def _(g, a, b): return g.apply("sub", a, b.args[0])
@rule("add", "(-x) + y = y - x", "neg *")
def _(g, a, b): return g.apply("sub", b, a.args[0])
@rule("add", "(x - y) + y = x", "sub *")
def _(g, a, b): return a.args[0] if a.args[1] is b else None
@rule("add", "y + (x - y) = x", "* sub")
def _(g, a, b): return b.args[0] if b.args[1] is a else None

@rule("add", "(x + y) + (x - y) = x + x", "add sub")
def _(g, a, b): return g.apply("add", b.args[0], b.args[0]) if _same_pair(a, b) else None
@rule("add", "(x - y) + (x + y) = x + x", "sub add")
def _(g, a, b): return g.apply("add", a.args[0], a.args[0]) if _same_pair(b, a) else None
@rule("add", "x + x = 2 x among parameters, where it is free and may meet another number", "parameter same")
def _(g, a, b): return g.apply("mul", 2.0, a) if a is b else None

@rule("sub", "two numbers", "number number")
def _(g, a, b): return a - b
@rule("sub", "x - 0 = x", "* number")
def _(g, a, b): return a if b == 0 else None
@rule("sub", "0 - x = -x", "number *")
def _(g, a, b): return g.apply("neg", b) if a == 0 else None
@rule("sub", "x - x = 0", "* same")
def _(g, a, b): return 0.0 if a is b else None
@rule("sub", "x - (-y) = x + y", "* neg")
def _(g, a, b): return g.apply("add", a, b.args[0])
@rule("sub", "(-x) - y = -(x + y)", "neg *")
def _(g, a, b): return g.apply("neg", g.apply("add", a.args[0], b))
@rule("sub", "x - (x - y) = y", "* sub")
def _(g, a, b): return b.args[1] if b.args[0] is a else None
@rule("sub", "(x - y) - x = -y", "sub *")
def _(g, a, b): return g.apply("neg", a.args[1]) if a.args[0] is b else None
@rule("sub", "(x + y) - (x - y) = y + y", "add sub")
def _(g, a, b): return g.apply("add", b.args[1], b.args[1]) if _same_pair(a, b) else None
@rule("sub", "(x + y) - (x + z) = y - z", "add add")
def _(g, a, b): return _without_common(g, a, b)
@rule("sub", "(x + y) - x = y", "add *")
def _(g, a, b): return a.args[a.args[0] is b] if a.args[0] is b or a.args[1] is b else None
@rule("sub", "y - x = -(x - y) where x - y is there already", "* *")
def _(g, a, b): return g.apply("neg", g.nodes["sub", b, a]) if ("sub", b, a) in g.nodes else None

@rule("mul", "two numbers", "number number")
def _(g, a, b): return a * b
@rule("mul", "numbers first", "* number")
def _(g, a, b): return g.apply("mul", b, a)
@rule("mul", "0 x = 0", "number *")
def _(g, a, b): return 0.0 if a == 0 else None
@rule("mul", "1 x = x", "number *")
def _(g, a, b): return b if a == 1 else None
@rule("mul", "(-1) x = -x", "number *")
def _(g, a, b): return g.apply("neg", b) if a == -1 else None
@rule("mul", "c (-x) = (-c) x", "number neg")
def _(g, a, b): return g.apply("mul", -a, b.args[0])
@rule("mul", "c (d x) = (c d) x", "number mul")
def _(g, a, b): return g.apply("mul", a * b.args[0], b.args[1]) if _number(b.args[0]) else None
@rule("mul", "c (d x) = (c d) x, c and d among numbers and parameters", "offline mul")
def _(g, a, b): return _take_out(g, a, b) if _by_parameter(b) else None
@rule("mul", "(d x) c = (c d) x, c and d among numbers and parameters", "mul offline")
def _(g, a, b): return _take_out(g, b, a) if _by_parameter(a) else None
@rule("mul", "c (x + x) = (2 c) x", "offline add")
def _(g, a, b): return g.apply("mul", g.apply("mul", 2.0, a), b.args[0]) if b.args[0] is b.args[1] else None
@rule("mul", "(-x) y = -(x y)", "neg *")
def _(g, a, b): return g.apply("neg", g.apply("mul", a.args[0], b))
@rule("mul", "x (-y) = -(x y)", "* neg")
def _(g, a, b): return g.apply("neg", g.apply("mul", a, b.args[0]))
@rule("mul", "x (1 / x) = 1", "* div")
def _(g, a, b): return 1.0 if b.args[1] is a else None
@rule("mul", "(1 / x) x = 1", "div *")
def _(g, a, b): return 1.0 if a.args[1] is b else None
@rule("mul", "(-c) x = -(c x) where c x is there already", "number *")
def _(g, a, b): return g.make("neg", g.nodes["mul", -a, b]) if ("mul", -a, b) in g.nodes else None

@rule("div", "two numbers", "number number")
def _(g, a, b): return a / b if b != 0 else None
@rule("div", "x / x = 1", "* same")
def _(g, a, b): return 1.0 if a is b else None
@rule("div", "0 / x = 0", "number *")
def _(g, a, b): return 0.0 if a == 0 else None
@rule("div", "x / c = (1 / c) x, by a number other than 0", "* number")
def _(g, a, b): return g.apply("mul", 1.0 / b, a) if b != 0 and _finite(1.0 / b) else None
@rule("div", "x / (-y) = -(x / y)", "* neg")
def _(g, a, b): return g.apply("neg", g.apply("div", a, b.args[0]))
@rule("div", "x / y = x (1 / y): one division for each divisor", "* *")
def _(g, a, b): return None if (_number(a) and a == 1) or _number(b) else g.apply("mul", a, g.make("div", 1.0, b))

@rule("neg", "a number", "number")
def _(g, a): return -a
@rule("neg", "-(-x) = x", "neg")
def _(g, a): return a.args[0]

@rule("sin", "a number", "number")
def _(g, a): return scalars.sin(a)
@rule("sin", "sin(-x) = -sin(x)", "neg")
def _(g, a): return g.apply("neg", g.apply("sin", a.args[0]))
@rule("cos", "a number", "number")
def _(g, a): return scalars.cos(a)
@rule("cos", "cos(-x) = cos(x)", "neg")
def _(g, a): return g.apply("cos", a.args[0])
@rule("sqrt", "a number", "number")
def _(g, a): return scalars.sqrt(a)

@rule("lt", "two numbers", "number number")
def _(g, a, b): return a < b
@rule("where", "a known condition", "number * *")
def _(g, c, a, b): return (a if c else b) if isinstance(c, bool) else None
@rule("where", "both the same", "* * *")
def _(g, c, a, b): return a if a is b or (_number(a) and _number(b) and a == b) else None
# fmt: on
