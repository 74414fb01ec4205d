"""`details=True` returns every quantity that an algorithm names on a line with an equation number."""

from __future__ import annotations

import ast
import inspect
import sys
from types import ModuleType

import pytest
from docs_tools import load_tool
from robots_for_tests import robot

from linksweep.functions.functions import FUNCTIONS

tables = load_tool("tables")
SAME = {"filter_smoother_50": "filter_smoother", "filter_smoother_51": "filter_smoother", "fd2": "fd1"}
# Local variables on lines with an equation that are not quantities of their own.
PARTS = {
    "newton_euler": {"a_link", "a_joint"},  # summands of a, the first in the frame of the inner link
    "closed_form": {"sums"},  # passed on to the next links, where it is r1, r2 and r3
    "kane": {"joint", "arm"},  # summands of dw and pdd, the second in the frame of the inner link
    "filter_smoother_ud": {"gain"},  # G, as a list
}


def methods() -> list[tuple[str, str]]:
    pairs = [(f, m) for f in ("inverse_dynamics", "forward_dynamics") for m in FUNCTIONS[f].methods]
    return [(f, m) for f, m in pairs if m not in SAME]


def steps_of(module: ModuleType) -> list[ast.FunctionDef]:
    tree = ast.walk(ast.parse(inspect.getsource(module)))
    return [node for node in tree if isinstance(node, ast.FunctionDef) and node.name.endswith("_step")]


@pytest.mark.parametrize(("other", "same"), SAME.items())
def test_variants_return_the_same_quantities(other: str, same: str):
    first, second = ([q.name for q in tables.record(robot("mixed3"), "forward_dynamics", m)[1]] for m in (other, same))
    assert first == second


@pytest.mark.parametrize(("function", "method"), methods())
def test_all_that_a_step_names_is_in_the_records(function: str, method: str):
    record, quantities = tables.record(robot("mixed3"), function, method)
    module = sys.modules[type(record).__module__]
    names = {name for step in steps_of(module) for name in tables.cited_names(module, step)}
    missing = names - {q.name for q in quantities} - PARTS.get(method, set())
    assert not missing, f"{method} names {sorted(missing)}: add them to its records"
