"""The rewrite rules, one commented line each, tried in order; the first that matches replaces the operation.

A rule takes the operands (nodes or floats) and returns the replacement of the operation, or None. For finite values no
rule changes a result by more than rounding; `tests/tracing/test_rules.py` applies each one and compares numerically.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# (a rule is one line, and its operands are nodes or numbers of any kind)

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard

from ..spatial import scalars
from ..spatial.scalars import is_number as _number

if TYPE_CHECKING:
    from .expression import Graph, Node, Operand

Rule = Callable[..., Any]  # (graph, *operands) -> what replaces the operation, or None
ONLINE = 2  # as in expression.py, which imports this table
RULES: dict[str, list[Rule]] = {}


def rule(op: str, comment: str) -> Callable[[Rule], Rule]:
    """Add a rule for `op` to the table."""

    def enter(function: Rule) -> Rule:
        function.comment = comment  # type: ignore[attr-defined]
        RULES.setdefault(op, []).append(function)
        return function

    return enter


def _finite(x: Operand) -> bool:
    return not isinstance(x, float) or math.isfinite(x)


def _is(x: Any, op: str) -> TypeGuard[Node]:
    return not _number(x) and x.op == op


def _scaled(x: Operand) -> bool:
    """Return whether x is a node c * y with a number c (numbers are first)."""
    return _is(x, "mul") and _number(x.args[0])


def _offline(x: Any) -> bool:
    """Return whether x is a number or a parameter: operations among those are free."""
    return _number(x) or x.level < ONLINE


def _online(x: Operand) -> bool:
    return not _offline(x)


def _other(x: Node, part: Operand) -> Operand | None:
    """Return the other operand of the sum x; None if `part` is not one of its operands."""
    a, b = x.args
    return b if a is part else a if b is part else None


def _same_pair(total: Operand, difference: Operand) -> bool:
    """Return whether these are x + y and x - y."""
    if not (_is(total, "add") and _is(difference, "sub")):
        return False
    x, y = difference.args
    return not _number(x) and not _number(y) and _other(total, x) is y


def _by_parameter(x: Operand) -> bool:
    """Return whether x is a product of a parameter and a value of the sample."""
    return _is(x, "mul") and _online(x) and not all(_online(arg) for arg in x.args)


def _twice(x: Operand) -> bool:
    """Return whether x is a node y + y."""
    return _is(x, "add") and x.args[0] is x.args[1]


def _take_out(g: Graph, c: Operand, x: Node) -> Operand:
    """c (d y) = (c d) y."""
    d, y = x.args if _offline(x.args[0]) else reversed(x.args)
    return g.apply("mul", g.apply("mul", c, d), y)


def _without_common(g: Graph, a: Node, b: Node) -> Operand | None:
    """(x + y) - (x + z) = y - z."""
    for part in a.args:
        rest, own = (None, None) if _number(part) else (_other(b, part), _other(a, part))
        if rest is not None and own is not None:
            return g.apply("sub", own, rest)
    return None


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

@rule("add", "(x + y) + (x - y) = x + x")
def _(g, a, b): return g.apply("add", b.args[0], b.args[0]) if _same_pair(a, b) else None
@rule("add", "(x - y) + (x + y) = x + x")
def _(g, a, b): return g.apply("add", a.args[0], a.args[0]) if _same_pair(b, a) else None
@rule("add", "x + x = 2 x among parameters, where it is free and may meet another number")
def _(g, a, b): return g.apply("mul", 2.0, a) if a is b and a.level < ONLINE else None

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
@rule("sub", "(x - y) - x = -y")
def _(g, a, b): return g.apply("neg", a.args[1]) if _is(a, "sub") and a.args[0] is b else None
@rule("sub", "(x + y) - (x - y) = y + y")
def _(g, a, b): return g.apply("add", b.args[1], b.args[1]) if _same_pair(a, b) else None
@rule("sub", "(x + y) - (x + z) = y - z")
def _(g, a, b): return _without_common(g, a, b) if _is(a, "add") and _is(b, "add") else None
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
@rule("mul", "c (d x) = (c d) x, c and d among numbers and parameters")
def _(g, a, b): return _take_out(g, a, b) if _offline(a) and _by_parameter(b) else None
@rule("mul", "(d x) c = (c d) x, c and d among numbers and parameters")
def _(g, a, b): return _take_out(g, b, a) if _offline(b) and _by_parameter(a) else None
@rule("mul", "c (x + x) = (2 c) x")
def _(g, a, b): return g.apply("mul", g.apply("mul", 2.0, a), b.args[0]) if _offline(a) and _twice(b) else None
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
def _(g, a, b): return g.apply("mul", 1.0 / b, a) if _number(b) and b != 0 and _finite(1.0 / b) else None
@rule("div", "x / (-y) = -(x / y)")
def _(g, a, b): return g.apply("neg", g.apply("div", a, b.args[0])) if _is(b, "neg") else None
@rule("div", "x / y = x (1 / y): one division for each divisor")
def _(g, a, b): return None if (_number(a) and a == 1) or _number(b) else g.apply("mul", a, g.make("div", 1.0, b))

@rule("neg", "a number")
def _(g, a): return -a if _number(a) else None
@rule("neg", "-(-x) = x")
def _(g, a): return a.args[0] if _is(a, "neg") else None

@rule("sin", "a number")
def _(g, a): return scalars.sin(a) if _number(a) else None
@rule("sin", "sin(-x) = -sin(x)")
def _(g, a): return g.apply("neg", g.apply("sin", a.args[0])) if _is(a, "neg") else None
@rule("cos", "a number")
def _(g, a): return scalars.cos(a) if _number(a) else None
@rule("cos", "cos(-x) = cos(x)")
def _(g, a): return g.apply("cos", a.args[0]) if _is(a, "neg") else None
@rule("sqrt", "a number")
def _(g, a): return scalars.sqrt(a) if _number(a) else None

@rule("lt", "two numbers")
def _(g, a, b): return a < b if _number(a) and _number(b) else None
@rule("where", "a known condition")
def _(g, c, a, b): return (a if c else b) if isinstance(c, bool) else None
@rule("where", "both the same")
def _(g, c, a, b): return a if a is b or (_number(a) and _number(b) and a == b) else None
# fmt: on

# Operands of which no rule for the operation looks at one that is computed for each sample: the table is tried in vain.
# tests/tracing/test_rules.py tries it nevertheless.
UNMATCHED: dict[str, frozenset[str]] = {
    "mul": frozenset({"input", "load", "sin", "cos", "sqrt", "add", "sub", "mul"}),
    "add": frozenset({"input", "load", "sin", "cos", "sqrt", "add", "mul", "div"}),
    "sub": frozenset({"input", "load", "sin", "cos", "sqrt", "mul", "div"}),
}
