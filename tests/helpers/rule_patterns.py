"""Expressions that each rewrite rule matches."""

from __future__ import annotations

import functools
import math
import operator
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from linksweep.spatial import scalars
from linksweep.tracing.rules import RULES

EXAMPLES = (2.5, 1.5)  # c and d


# Each names its rule and writes it over x, y, z, the parameter w and the numbers c, d; over nodes it is rewritten, over
# arrays (and in test_exact_rules.py over a field) it is what it says.
PATTERNS: dict[tuple[str, str], Callable[..., Any]] = {
    ("add", "x + 0 = x"): lambda x, y, z, w, c, d: (x + 0.0) * (0.0 + y),
    ("add", "x + (-y) = x - y"): lambda x, y, z, w, c, d: x + (-y),
    ("add", "(-x) + y = y - x"): lambda x, y, z, w, c, d: (-x) + y,
    ("add", "(x - y) + y = x"): lambda x, y, z, w, c, d: (x - y) + y,
    ("add", "y + (x - y) = x"): lambda x, y, z, w, c, d: y + (x - y),
    ("add", "(x + y) + (x - y) = x + x"): lambda x, y, z, w, c, d: (x + y) + (x - y),
    ("add", "(x - y) + (x + y) = x + x"): lambda x, y, z, w, c, d: (x - y) + (y + x),
    ("add", "x + x = 2 x among parameters, where it is free and may meet another number"): lambda x, y, z, w, c, d: (
        w + w
    ),
    ("sub", "x - 0 = x"): lambda x, y, z, w, c, d: x - 0.0,
    ("sub", "0 - x = -x"): lambda x, y, z, w, c, d: 0.0 - x,
    ("sub", "x - x = 0"): lambda x, y, z, w, c, d: (x * y - y * x) + z,
    ("sub", "x - (-y) = x + y"): lambda x, y, z, w, c, d: x - (-y),
    ("sub", "(-x) - y = -(x + y)"): lambda x, y, z, w, c, d: (-x) - y,
    ("sub", "x - (x - y) = y"): lambda x, y, z, w, c, d: x - (x - y),
    ("sub", "(x - y) - x = -y"): lambda x, y, z, w, c, d: (x - y) - x,
    ("sub", "(x + y) - (x - y) = y + y"): lambda x, y, z, w, c, d: (x + y) - (x - y),
    ("sub", "(x + y) - (x + z) = y - z"): lambda x, y, z, w, c, d: ((x + y) - (x + z)) * ((y + z) - (x + y)),
    ("sub", "(x + y) - x = y"): lambda x, y, z, w, c, d: ((x + y) - x) * ((z + w) - w),
    ("sub", "y - x = -(x - y) where x - y is there already"): lambda x, y, z, w, c, d: (x - y) * (y - x),
    ("mul", "numbers first"): lambda x, y, z, w, c, d: x * c,
    ("mul", "0 x = 0"): lambda x, y, z, w, c, d: 0.0 * x + y,
    ("mul", "1 x = x"): lambda x, y, z, w, c, d: 1.0 * x,
    ("mul", "(-1) x = -x"): lambda x, y, z, w, c, d: -1.0 * x,
    ("mul", "c (-x) = (-c) x"): lambda x, y, z, w, c, d: c * (-x),
    ("mul", "c (d x) = (c d) x"): lambda x, y, z, w, c, d: c * (d * x),
    ("mul", "c (d x) = (c d) x, c and d among numbers and parameters"): lambda x, y, z, w, c, d: c * (w * x),
    ("mul", "(d x) c = (c d) x, c and d among numbers and parameters"): lambda x, y, z, w, c, d: (w * x) * (w + c),
    ("mul", "c (x + x) = (2 c) x"): lambda x, y, z, w, c, d: c * (x + x),
    ("mul", "(-x) y = -(x y)"): lambda x, y, z, w, c, d: (-x) * y,
    ("mul", "x (-y) = -(x y)"): lambda x, y, z, w, c, d: x * (-y),
    ("mul", "x (1 / x) = 1"): lambda x, y, z, w, c, d: x * (1.0 / x) + y,
    ("mul", "(1 / x) x = 1"): lambda x, y, z, w, c, d: (1.0 / x) * x + y,
    ("mul", "(-c) x = -(c x) where c x is there already"): lambda x, y, z, w, c, d: (c * x) / (d + x * x) + (-c * x),
    ("div", "x / x = 1"): lambda x, y, z, w, c, d: x / x + y,
    ("div", "0 / x = 0"): lambda x, y, z, w, c, d: 0.0 / x + y,
    ("div", "x / c = (1 / c) x, by a number other than 0"): lambda x, y, z, w, c, d: x / c,
    ("div", "x / (-y) = -(x / y)"): lambda x, y, z, w, c, d: 1.0 / (-y),
    ("div", "x / y = x (1 / y): one division for each divisor"): lambda x, y, z, w, c, d: x / y,
    ("neg", "-(-x) = x"): lambda x, y, z, w, c, d: -operator.neg(x),
    ("sin", "sin(-x) = -sin(x)"): lambda x, y, z, w, c, d: scalars.sin(-x),
    ("cos", "cos(-x) = cos(x)"): lambda x, y, z, w, c, d: scalars.cos(-x),
    ("where", "both the same"): lambda x, y, z, w, c, d: scalars.where(x < y, z, z) + scalars.where(x < y, 2.0, 2.0),
}


# Numbers never reach the table through Python's operators, which fold them first: these go through `apply`.
NUMBERS: dict[tuple[str, str], tuple[tuple[Any, ...], Any]] = {
    ("add", "two numbers"): ((1.5, 2.0), 3.5),
    ("sub", "two numbers"): ((1.5, 2.0), -0.5),
    ("mul", "two numbers"): ((1.5, 2.0), 3.0),
    ("div", "two numbers"): ((1.5, 2.0), 0.75),
    ("neg", "a number"): ((1.5,), -1.5),
    ("sin", "a number"): ((1.5,), math.sin(1.5)),
    ("cos", "a number"): ((1.5,), math.cos(1.5)),
    ("sqrt", "a number"): ((1.5,), math.sqrt(1.5)),
    ("lt", "two numbers"): ((1.5, 2.0), True),
    ("where", "a known condition"): ((False, 2.0, 3.0), 3.0),
}


@pytest.fixture
def fired(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, str]]:
    """The table, watched: (operation, comment) of every rule that replaced something, and how often."""
    seen: Counter[tuple[str, str]] = Counter()

    def watched(op: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(rule)  # with its comment and patterns
        def run(*args: Any) -> Any:
            replacement = rule(*args)
            if replacement is not None:
                seen[op, rule.comment] += 1  # type: ignore[attr-defined]
            return replacement

        return run

    for op, rules in RULES.items():
        monkeypatch.setitem(RULES, op, [watched(op, rule) for rule in rules])
    return seen


def every_rule() -> set[tuple[str, str]]:
    return {(op, rule.comment) for op, rules in RULES.items() for rule in rules}  # type: ignore[attr-defined]
