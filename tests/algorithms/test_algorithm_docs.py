"""The pages of docs/algorithms/, and what other pages say of costs and defaults: they say what the source says.

    python tests/algorithms/test_algorithm_docs.py --write

rewrites what stands between the markers of each page, up to `<!-- end -->`: `<!-- equations: FILE ... -->` (the lines
of algorithm files that carry an equation number), `<!-- costs: function method, ... -->` (operations of the traced
programs and their rank among all methods of that function), `<!-- role: function method -->` (of what and when it is
the default), `<!-- rules: all -->` (the rules of defaults.py) and `<!-- explicit: all -->` (what I* and P* cost).
"""

# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportArgumentType=false
from __future__ import annotations

import functools
import importlib.metadata
import io
import re
import sys
import tokenize
import warnings
from pathlib import Path

import pytest

import linksweep as ls
from linksweep.catalogue.defaults import DETAILED, RULES
from linksweep.catalogue.functions import FUNCTIONS, Request, trace
from linksweep.counts.counting import general_arm
from linksweep.errors import ModelWarning
from linksweep.tracing.count import Counts, count

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted((ROOT / "docs" / "algorithms").glob("*.md")), ROOT / "docs" / "defaults.md", ROOT / "docs" / "influence.md"
]  # fmt: skip
ALGORITHMS = ROOT / "src" / "linksweep" / "algorithms"
MARKED = re.compile(r"(<!-- (equations|costs|role|rules|explicit): (.*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
EQUATION = re.compile(r"\(\d+(\.\d+)?[a-z']?\)|stage \d|step: ")
ELSEWHERE = {"influence", "influence_dynamics", "augmented_bodies", "explicit_model", "explicit_model_direct"}
OF_SEVERAL = {"index", "mobile_base", "papers", "statistics"}  # pages that are not of one algorithm
WITHOUT_PAGE = {
    "__init__",
    "coupled",
    "inertia_ratio",
    "kinematics",
    "momentum",
}  # docs/descriptions.md, influence.md, singular_poses.md and whole_robots.md are the others' pages


# ---- what the pages must say -------------------------------------------------------------------------------


def cited_lines(path: Path) -> list[tuple[str, int, str]]:
    """(equations, line number, code) of every line whose comment cites an equation.

    Several statements may share a line; a statement of several lines is shown by the one that carries the number.
    """
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    found = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and EQUATION.search(token.string):
            number, column = token.start
            found.append((token.string.lstrip("# "), number, lines[number - 1][:column].strip()))
    return found


def equation_table(files: str) -> str:
    rows = ["| equation | line | code |", "|---|--:|---|"]
    for file in files.split():
        name = "" if len(files.split()) == 1 else f"{file} "
        for equation, line, code in cited_lines(next(ALGORITHMS.rglob(file))):
            rows.append(f"| {escaped(equation)} | {name}{line} | `{code.replace('|', chr(92) + '|')}` |")
    return "\n".join(rows) + "\n"


def escaped(text: str) -> str:
    """Plain text that Markdown would read otherwise."""
    return re.sub(r"([*_<|\[\]^])", r"\\\1", text)


@functools.cache
def counted_robots() -> dict[str, ls.Robot]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        ur5 = next(
            f for f in importlib.metadata.files("example-robot-data") or [] if str(f).endswith("/ur5_robot.urdf")
        )
        return {
            "PUMA 560": ls.robots.puma560(),
            "UR5": ls.load(Path(str(ur5.locate()))),
            "general chain, 6 R": ls.robots.chain(6),
        }


@functools.cache
def operations(robot: str, function: str, method: str, base_parameters: bool = False) -> Counts:
    """Of the traced program, before multiply-adds are fused."""
    if FUNCTIONS[function].public:
        options = {"base_parameters": base_parameters, "rolled": False}
        return counted_robots()[robot].operation_count(function, method, **options)
    return count(trace(counted_robots()[robot].canonical, [Request(function, method)], rolled=False))


@functools.cache
def rank(robot: str, function: str, method: str) -> str:
    """The place of a method among all of its function, each as it is compiled: with base parameters if they serve."""
    methods = FUNCTIONS[function].methods
    totals = {name: operations(robot, function, name, methods[name].linear).total for name in methods}
    return f"{1 + sum(total < totals[method] for total in totals.values())} of {len(totals)}"


def cost_table(requests: str) -> str:
    robots = list(counted_robots())
    rows = [f"| | {' | '.join(robots)} |", "|---|" + "--:|" * len(robots)]
    for request in requests.split(","):
        function, method = request.split()
        linear = FUNCTIONS[function].methods[method].linear
        for base in (False, True) if linear else (False,):
            cells = []
            for robot in robots:
                found = operations(robot, function, method, base)
                ranked = FUNCTIONS[function].public and base == linear
                place = f"; {rank(robot, function, method)}" if ranked else ""
                cells.append(f"{found.mul} mul, {found.add} add, {found.div} div{place}")
            name = f"`{method if FUNCTIONS[function].public else function}`{', base parameters' if base else ''}"
            rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def role(request: str) -> str:
    """Of which functions a method is the default, and when."""
    function, method = request.split()
    same = [name for name, rules in RULES.items() if rules == RULES[function]]
    of = [name for name in same if FUNCTIONS[name].methods == FUNCTIONS[function].methods]
    if method not in [rule.method for rule in RULES[function]]:
        shown = DETAILED.get(function) == method
        return f"\nTaken by name{f', and by `{function}(..., details=True)` without one' if shown else ''}.\n\n"
    before = []
    for rule in RULES[function]:
        if rule.method == method:
            break
        before.append(rule)
    when = "" if rule.words in ("always", "otherwise") else f" {rule.words}"
    if before:
        others = ", nor ".join(f"`{other.method}` ({other.words})" for other in before)
        when += f" where it is not {others}"
    names = ", ".join(f"`{name}`" for name in of[:-1]) + " and " * (len(of) > 1) + f"`{of[-1]}`"
    return f"\nThe default of {names}{when}.\n\n"


def rules_table(_: str) -> str:
    rows = ["| function | method | when |", "|---|---|---|"]
    for function, rules in RULES.items():
        rows += [f"| {'' if k else f'`{function}`'} | `{rule.method}` | {rule.words} |" for k, rule in enumerate(rules)]
    return "\n".join(rows) + "\n"


def explicit_table(_: str) -> str:
    """I* and P* together, by both ways, and inverse dynamics by influence coefficients beside Newton-Euler's."""
    arms = {"general arm, 6 R": general_arm(6), **{name: counted_robots()[name] for name in ("PUMA 560", "UR5")}}
    rows = [f"| | {' | '.join(arms)} |", "|---|" + "--:|" * len(arms)]
    for name, function, method in (
        ("I\\* and P\\* by `augmented_bodies`", ["effective_inertia", "inertia_power"], "augmented_bodies"),
        ("I\\* and P\\* by `direct`", ["effective_inertia", "inertia_power"], "direct"),
        ("inverse dynamics by `influence`", "inverse_dynamics", "influence"),
        ("inverse dynamics by `newton_euler`", "inverse_dynamics", "newton_euler"),
    ):
        found = [arm.operation_count(function, method, False) for arm in arms.values()]
        rows.append(f"| {name} | {' | '.join(f'{c.mul} mul, {c.add} add' for c in found)} |")
    return "\n".join(rows) + "\n"


def written(page: Path) -> str:
    """The page as it must be."""
    make = {
        "equations": equation_table, "costs": cost_table, "role": role, "rules": rules_table, "explicit": explicit_table
    }  # fmt: skip
    return MARKED.sub(lambda m: m[1] + make[m[2]](m[3]) + m[5], page.read_text(encoding="utf-8"))


# ---- tests ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_tables_agree_with_the_source(page: Path):
    assert page.read_text(encoding="utf-8") == written(page), (
        "run python tests/algorithms/test_algorithm_docs.py --write"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_has_its_parts(page: Path):
    if page.stem in OF_SEVERAL or page.parent.name != "algorithms":
        return
    headings = re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for part in ("Idea", "Equations", "Good for", "Cost", "Relation to the others", "Example", "To cite"):
        assert part in headings, f"{page.name} has no section {part!r}"


def test_every_algorithm_has_a_page():
    shown = {file for page in PAGES for m in MARKED.finditer(page.read_text(encoding="utf-8")) for file in m[3].split()}
    for path in sorted(ALGORITHMS.rglob("*.py")):
        if path.stem not in ELSEWHERE | WITHOUT_PAGE:
            assert path.name in shown, f"no page of docs/algorithms shows the equations of {path.name}"
    influence = (ROOT / "docs" / "influence.md").read_text(encoding="utf-8")
    for name in ELSEWHERE:
        assert f"{name}.py" in influence, f"docs/influence.md does not show {name}.py"


def test_every_method_is_in_the_index():
    index = (ROOT / "docs" / "algorithms" / "index.md").read_text(encoding="utf-8")
    for name in ("inverse_dynamics", "forward_dynamics", "mass_matrix", "mass_matrix_inverse"):
        for method in FUNCTIONS[name].methods:
            assert f"`{method}`" in index, f"docs/algorithms/index.md does not name {name} by {method}"


def test_the_reader_reads(tmp_path: Path):
    file = tmp_path / "a.py"
    file.write_text('"""(2.1)"""\nx = f(a)   # (2.25), (2.26)\ny = 1  # no equation\nz = (\n    2\n)  # (3.7\')\n')
    assert cited_lines(file) == [("(2.25), (2.26)", 2, "x = f(a)"), ("(3.7')", 6, ")")]
    assert len(cited_lines(ALGORITHMS / "inverse" / "newton_euler.py")) >= 8


if __name__ == "__main__":
    assert sys.argv[1:] == ["--write"], __doc__
    for page in PAGES:
        page.write_text(written(page), encoding="utf-8")
