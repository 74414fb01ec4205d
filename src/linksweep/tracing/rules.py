"""The rewrite rules, one commented line each, tried in order; the first that fits replaces the operation.

A rule sees the operands (nodes or floats) and answers with what replaces the operation, or None. None of them changes
a result by more than rounding for finite values; `tests/test_rules.py` fires each one and compares numerically.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]
RULES: dict[str, list[Rule]] = {}


def rule(op: str, comment: str) -> Callable[[Rule], Rule]:
    """Enter a rule for `op` into the table."""

    def enter(function: Rule) -> Rule:
        function.comment = comment  # type: ignore[attr-defined]
        RULES.setdefault(op, []).append(function)
        return function

    return enter


def _number(x: Any) -> bool:
    return type(x) is float or type(x) is int


def _is(x: Any, op: str) -> bool:
    return not _number(x) and x.op == op


def _scaled(x: Any) -> bool:
    """A node c * y with a number c (numbers stand first)."""
    return _is(x, "mul") and _number(x.args[0])


# fmt: off
@rule("add", "two numbers")
def _(g, a, b): return a + b if _number(a) and _number(b) else None
@rule("add", "x + 0 = x")
def _(g, a, b): return a if _number(b) and b == 0 else b if _number(a) and a == 0 else None
@rule("add", "x + (-y) = x - y")
def _(g, a, b): return g.apply("sub", a, b.args[0]) if _is(b, "neg") else None
@rule("add", "(-x) + y = y - x")
def _(g, a, b): return g.apply("sub", b, a.args[0]) if _is(a, "neg") else None
@rule("add", "(x - y) + y = x")
def _(g, a, b): return a.args[0] if _is(a, "sub") and a.args[1] is b else None
@rule("add", "y + (x - y) = x")
def _(g, a, b): return b.args[0] if _is(b, "sub") and b.args[1] is a else None

@rule("sub", "two numbers")
def _(g, a, b): return a - b if _number(a) and _number(b) else None
@rule("sub", "x - 0 = x")
def _(g, a, b): return a if _number(b) and b == 0 else None
@rule("sub", "0 - x = -x")
def _(g, a, b): return g.apply("neg", b) if _number(a) and a == 0 else None
@rule("sub", "x - x = 0")
def _(g, a, b): return 0.0 if a is b else None
@rule("sub", "x - (-y) = x + y")
def _(g, a, b): return g.apply("add", a, b.args[0]) if _is(b, "neg") else None
@rule("sub", "(-x) - y = -(x + y)")
def _(g, a, b): return g.apply("neg", g.apply("add", a.args[0], b)) if _is(a, "neg") else None
@rule("sub", "x - (x - y) = y")
def _(g, a, b): return b.args[1] if _is(b, "sub") and b.args[0] is a else None
@rule("sub", "(x + y) - x = y")
def _(g, a, b): return a.args[a.args[0] is b] if _is(a, "add") and (a.args[0] is b or a.args[1] is b) else None
@rule("sub", "y - x = -(x - y) where x - y is there already")
def _(g, a, b): return g.apply("neg", g.nodes["sub", b, a]) if ("sub", b, a) in g.nodes else None

@rule("mul", "two numbers")
def _(g, a, b): return a * b if _number(a) and _number(b) else None
@rule("mul", "numbers first")
def _(g, a, b): return g.apply("mul", b, a) if _number(b) else None
@rule("mul", "0 x = 0")
def _(g, a, b): return 0.0 if _number(a) and a == 0 else None
@rule("mul", "1 x = x")
def _(g, a, b): return b if _number(a) and a == 1 else None
@rule("mul", "(-1) x = -x")
def _(g, a, b): return g.apply("neg", b) if _number(a) and a == -1 else None
@rule("mul", "c (-x) = (-c) x")
def _(g, a, b): return g.apply("mul", -a, b.args[0]) if _number(a) and _is(b, "neg") else None
@rule("mul", "c (d x) = (c d) x")
def _(g, a, b): return g.apply("mul", a * b.args[0], b.args[1]) if _number(a) and _scaled(b) else None
@rule("mul", "(-x) y = -(x y)")
def _(g, a, b): return g.apply("neg", g.apply("mul", a.args[0], b)) if _is(a, "neg") else None
@rule("mul", "x (-y) = -(x y)")
def _(g, a, b): return g.apply("neg", g.apply("mul", a, b.args[0])) if _is(b, "neg") else None
@rule("mul", "x (1 / x) = 1")
def _(g, a, b): return 1.0 if _is(b, "div") and b.args[1] is a else 1.0 if _is(a, "div") and a.args[1] is b else None
@rule("mul", "(-c) x = -(c x) where c x is there already")
def _(g, a, b): return g.make("neg", g.nodes["mul", -a, b]) if _number(a) and ("mul", -a, b) in g.nodes else None

@rule("div", "two numbers")
def _(g, a, b): return a / b if _number(a) and _number(b) and b != 0 else None
@rule("div", "x / x = 1")
def _(g, a, b): return 1.0 if a is b else None
@rule("div", "0 / x = 0")
def _(g, a, b): return 0.0 if _number(a) and a == 0 else None
@rule("div", "x / c = (1 / c) x, by a number other than 0")
def _(g, a, b): return g.apply("mul", 1.0 / b, a) if _number(b) and b != 0 and math.isfinite(1.0 / b) else None
@rule("div", "x / (-y) = -(x / y)")
def _(g, a, b): return g.apply("neg", g.apply("div", a, b.args[0])) if _is(b, "neg") else None
@rule("div", "x / y = x (1 / y): one division for each divisor")
def _(g, a, b): return None if (_number(a) and a == 1) or _number(b) else g.apply("mul", a, g.make("div", 1.0, b))

@rule("neg", "a number")
def _(g, a): return -a if _number(a) else None
@rule("neg", "-(-x) = x")
def _(g, a): return a.args[0] if _is(a, "neg") else None

@rule("sin", "a number")
def _(g, a): return math.sin(a) if _number(a) else None
@rule("sin", "sin(-x) = -sin(x)")
def _(g, a): return g.apply("neg", g.apply("sin", a.args[0])) if _is(a, "neg") else None
@rule("cos", "a number")
def _(g, a): return math.cos(a) if _number(a) else None
@rule("cos", "cos(-x) = cos(x)")
def _(g, a): return g.apply("cos", a.args[0]) if _is(a, "neg") else None
@rule("sqrt", "a number")
def _(g, a): return math.sqrt(a) if _number(a) else None

@rule("lt", "two numbers")
def _(g, a, b): return a < b if _number(a) and _number(b) else None
@rule("where", "a known condition")
def _(g, c, a, b): return (a if c else b) if isinstance(c, bool) else None
@rule("where", "both the same")
def _(g, c, a, b): return a if a is b or (_number(a) and _number(b) and a == b) else None
# fmt: on
