"""docs/details.md says what the records say, and the records hold all that the algorithms name.

    PYTHONPATH=tests/helpers python tests/catalogue/test_details_page.py --write

rewrites the tables of the page: names and shapes from the records as they come out of a trace, meanings from the
comments of their fields, equations from those of the lines that make them.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from robots_for_tests import freely_moving, robot

import linksweep as ls
from linksweep.catalogue.details import Quantity, quantities
from linksweep.catalogue.functions import FUNCTIONS, Request, record_of, signature
from linksweep.explain.source import borrowed_from, meanings, statements
from linksweep.mechanism.canonical import canonical
from linksweep.tracing.unrolled import UnrolledTrace

PAGE = Path(__file__).parents[2] / "docs" / "details.md"
MARKED = re.compile(r"(<!-- quantities: (\w+) (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
EQUATION = re.compile(r"\(\d+(?:\.\d+)?[a-z']?\)|step: .*|stage \d")
SAME = {"filter_smoother_50": "filter_smoother", "filter_smoother_51": "filter_smoother", "fd2": "fd1"}
# locals on lines with an equation that are no quantities of their own
PARTS = {
    "newton_euler": {"a_link", "a_joint"},  # of a, the first in the frame of the inner link
    "closed_form": {"sums"},  # what goes on to the next links, where it is r1, r2 and r3
    "kane": {"joint", "arm"},  # of dw and pdd, the second in the frame of the inner link
    "filter_smoother_ud": {"gain"},  # G, as a list
}
TIP = "acceleration of the last frame of a serial chain, in the directions of the last link"


def methods() -> list[tuple[str, str]]:
    pairs = [(f, m) for f in ("inverse_dynamics", "forward_dynamics") for m in FUNCTIONS[f].methods]
    return [(f, m) for f, m in pairs if m not in SAME]


def record(bot: ls.Robot, function: str, method: str) -> tuple[UnrolledTrace, Any, list[Quantity]]:
    request = Request(function, method)
    model = canonical(bot.model, described_frames=True)
    inputs, outputs = signature(model, [request])
    tracer = UnrolledTrace(model, inputs)
    found = record_of(tracer, request)
    return tracer, found, quantities(tracer, found, outputs[0].name)


def module_of(found: Any) -> ModuleType:
    return sys.modules[type(found).__module__]


def cited(module: ModuleType, step: ast.FunctionDef | None = None) -> dict[str, str]:
    """For each name that is made on a line with an equation, the equations; the first such line counts."""
    found: dict[str, str] = {}
    for line, statement in sorted(statements(str(module.__file__)).items()):
        if step is None or step.lineno <= line <= (step.end_lineno or 0):
            numbers = EQUATION.findall(statement.comment)
            for name in statement.targets if numbers else ():
                found.setdefault(name, ", ".join(numbers))
    return found


def steps_of(module: ModuleType) -> list[ast.FunctionDef]:
    tree = ast.walk(ast.parse(inspect.getsource(module)))
    return [node for node in tree if isinstance(node, ast.FunctionDef) and node.name.endswith("_step")]


def equations_of(module: ModuleType) -> dict[str, str]:
    """By the lines of its steps, and of the rest of the module where they say nothing."""
    found: dict[str, str] = {}
    for part in (module, *borrowed_from(module)):
        for step in (*steps_of(part), None):
            found = cited(part, step) | found
    return found


def shape_text(quantity: Quantity, bot: ls.Robot, free: Quantity | None) -> str:
    """In words: with 4 links and 13 rates in the second robot no two of them are the same."""
    names = {len(bot.link_names): "links", bot.nv: "nv"} if free is None else {4: "links", 13: "nv"}
    shape = quantity.shape if free is None else free.shape
    if free is None and quantity.frame == "joints":
        names = {bot.nv: "nv"}
    text = ", ".join(names.get(size, str(size)) for size in shape)
    return "nv or nv, nv" if free is not None and len(free.shape) != len(quantity.shape) else text


def table(function: str, method: str) -> str:
    chain = robot("mixed5")
    _, found, quantity_list = record(chain, function, method)
    general = freely_moving()
    several: dict[str, Quantity] = {}
    if method in general.methods(function):
        several = {q.name: q for q in record(general, function, method)[2]}
    module = module_of(found)
    known, equations = meanings(module), equations_of(module)
    rows = ["| name | shape | of | what | equation |", "|---|---|---|---|---|"]
    for quantity in quantity_list:
        what, equation = known.get(quantity.name, ""), equations.get(quantity.name, "")
        if quantity.name == "alpha_tip":
            what, equation = TIP, "(4.23), (5.7)"
        if not equation and EQUATION.search(what):
            equation = ", ".join(EQUATION.findall(what))
        shape = shape_text(quantity, chain, several.get(quantity.name))
        cells = (f"`{quantity.name}`", shape, quantity.frame, escaped(what), escaped(equation))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def escaped(text: str) -> str:
    return re.sub(r"([*_<|\[\]^])", r"\\\1", text)


def written() -> str:
    return MARKED.sub(lambda m: m[1] + table(m[2], m[3]) + m[5], PAGE.read_text(encoding="utf-8"))


# ---- tests -------------------------------------------------------------------------------------------------------


def test_the_page_says_what_the_records_say():
    assert PAGE.read_text(encoding="utf-8") == written(), (
        "run PYTHONPATH=tests/helpers python tests/catalogue/test_details_page.py --write"
    )


def test_the_page_has_every_method():
    listed = {(m[2], m[3]) for m in MARKED.finditer(PAGE.read_text(encoding="utf-8"))}
    assert listed == set(methods())
    for other, same in SAME.items():
        function = "forward_dynamics"
        names = [[q.name for q in record(robot("mixed3"), function, method)[2]] for method in (other, same)]
        assert names[0] == names[1]
        assert other in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(("function", "method"), methods())
def test_every_quantity_has_a_meaning_and_an_equation(function: str, method: str):
    rows = table(function, method).splitlines()[2:]
    assert rows
    for row in rows:
        name, _, frame, what, equation = (cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1])
        assert len(what) > 3, f"say what {name} of {method} is, in a comment of its field"
        assert equation, f"say which equation makes {name} of {method}, in a comment of its line"
        assert frame in ("link", "joints")


@pytest.mark.parametrize(("function", "method"), methods())
def test_all_that_a_step_names_is_in_the_records(function: str, method: str):
    """Whatever a step makes on a line that cites an equation can be looked at."""
    _, found, quantity_list = record(robot("mixed3"), function, method)
    module = module_of(found)
    names = {name for step in steps_of(module) for name in cited(module, step)}
    missing = names - {q.name for q in quantity_list} - PARTS.get(method, set())
    assert not missing, f"{method} names {sorted(missing)}: put them into its records"


if __name__ == "__main__" and "--write" in sys.argv:
    PAGE.write_text(written(), encoding="utf-8")
