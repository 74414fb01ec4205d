"""What the documentation says of defaults, counts and ranks is what the code does.

Three ways keep it so. Tables and sentences between markers are written by `test_algorithm_docs.py --write` and
`test_counts.py --write`. Tables that a benchmark printed are read here, and their counts compared. Every other line
that ranks, compares costs or names a default is listed in CLAIMS with its check, or with the test that has it; a line
that is not listed fails.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_algorithm_docs import counted_robots, operations
from test_defaults import named
from test_defaults import printed as defaults_printed

import linksweep as ls
from linksweep import plots
from linksweep.catalogue.defaults import DEEP, DETAILED, ROLL_ABOVE, WRITTEN_OUT
from linksweep.catalogue.functions import FORWARD
from linksweep.counts import published_counts
from linksweep.counts.counting import general_fit
from linksweep.counts.planar_counts import crossings, figure_4, filter_counts
from linksweep.tracing.passes.dead_and_fused import fuse

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
RANKING = re.compile(
    r"\b(fewest|fastest|cheapest|slowest|quickest|shortest|faster|slower|cheaper|fewer (?:operations|multiplications)|"
    r"times as (?:many|much)|costs? (?:more|less|little|two)|saves? operations|default|defaults)\b",
    re.IGNORECASE,
)
GENERATED = re.compile(r"<!-- (?:table|equations|costs|role|rules|explicit): .*?-->\n.*?<!-- end -->", re.DOTALL)
CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)


def default_of(function: Any, name: str) -> Any:
    return inspect.signature(function).parameters[name].default


@functools.cache
def total(robot: str, function: str, method: str, base: bool = False) -> int:
    return operations(robot, function, method, base).total


def composite_up_to_nine() -> bool:
    """By the page's own table: general arms, without base parameters."""
    filtered, composed = (general_fit("forward_dynamics", name).points for name in ("filter_smoother", "composite"))
    return [n for n in filtered if composed[n].total < filtered[n].total] == [n for n in filtered if n <= 9]


def figure_4_crossings() -> bool:
    found = crossings(figure_4(range(1, 11)))
    return found == {"published": 5, "as printed": 4, "linksweep": 6}


def factored_costs_two_to_three() -> bool:
    robots = counted_robots()
    ratios = [total(name, "forward_dynamics", "filter_smoother_ud") / total(name, "forward_dynamics", "filter_smoother")
              for name in robots]  # fmt: skip
    return min(ratios) >= 1.9 and max(ratios) <= 3.3  # two to three, rounded


def xarm_snapped() -> bool:
    arm = named("xArm7")
    counts = [bot.operation_count("forward_dynamics", "filter_smoother").total for bot in (arm, arm.snapped(1e-5))]
    return counts == [2144, 1520]


def composite_rounds_more() -> bool:
    arm = named("UR5")
    single = np.random.default_rng(0).uniform(-1, 1, (3, 1000, 6)).astype(np.float32)
    errors = {}
    for method in ("composite", "fd3"):
        exact = arm.forward_dynamics(*single.astype(float), method=method)
        errors[method] = np.abs(arm.forward_dynamics(*single, method=method) - exact).max() / np.abs(exact).max()
    return 0.5e-6 < errors["composite"] < 2e-6 and errors["fd3"] < 4e-7


def only_composite_is_linear() -> bool:
    return [name for name, method in FORWARD.items() if method.linear] == ["composite"]


# (page, words of the line): the check, or the test that has it. One is enough to cover a line.
CLAIMS: dict[tuple[str, str], Callable[[], bool] | str] = {
    ("docs/counts.md", "takes the method with the fewest operations unless told otherwise"): (
        "test_defaults.py::test_the_default_takes_the_fewest_operations"
    ),
    ("docs/counts.md", "is the cheaper one up to 9 joints"): composite_up_to_nine,
    ("docs/counts.md", "cheaper: nothing hangs on the last link"): lambda: ends_are_cheaper(),
    ("docs/counts.md", "the paper's filter is cheaper from 5 links on"): figure_4_crossings,
    ("docs/counts.md", "Long programs are faster than predicted"): lambda: long_programs_are_faster(),
    ("docs/counts.md", "The mass matrix of the PUMA is slower"): lambda: rate("puma560 mass_matrix composite") > 1,
    ("docs/studies.md", "estimates the filter costs less from 5 links on; traced, from 6"): figure_4_crossings,
    ("docs/numerics.md", "It costs two to three times as many operations"): factored_costs_two_to_three,
    ("docs/numerics.md", "as accurate in the factored form"): "test_numerics.py::test_what_is_concluded",
    ("docs/base_parameters.md", '`method="symbolic"`, the default'): lambda: (
        default_of(ls.Robot.base_parameters, "method") == "symbolic"
    ),
    ("docs/base_parameters.md", "that saves operations on nearly every robot"): (
        "test_defaults.py::test_base_parameters_save_operations_on_every_robot_but_one"
    ),
    ("docs/base_parameters.md", "were tried) takes fewer operations"): (
        "test_base_parameters.py::test_no_other_choice_of_the_free_moment_is_cheaper"
    ),
    ("docs/benchmarks.md", "and slower for forward dynamics at every length tried"): lambda: loops_are_slower(),
    ("docs/conventions.md", "There is no default"): lambda: default_of(ls.Robot.from_dh, "convention") is None,
    ("docs/quickstart.md", "has no default"): lambda: default_of(ls.Robot.from_dh, "convention") is None,
    ("docs/quickstart.md", "A batch in one call is far cheaper"): lambda: batches_are_cheaper(),
    ("docs/descriptions.md", "By default a joint that mimics another"): lambda: default_of(ls.load, "mimic") == "free",
    ("docs/plots.md", '`"tau"` (the default)'): lambda: default_of(plots.time_series, "quantity") == "tau",
    ("docs/plots.md", "by default the base and the end of an arm"): lambda: default_of(plots.sketch, "frames") is None,
    ("docs/simulation.md", '`"rk4"` (default)'): lambda: default_of(ls.simulate, "integrator") == "rk4",
    ("docs/symbolic.md", "the one that is shortest written out is taken"): lambda: shortest_is_taken(),
    ("docs/symbolic.md", "By default each becomes the fraction"): lambda: (
        default_of(ls.Robot.symbolic, "numbers") == "rational"
    ),
    ("docs/whole_robots.md", '`"world_aligned"` (default)'): lambda: (
        default_of(ls.Robot.jacobian, "reference") == "world_aligned"
    ),
    ("docs/defaults.md", "They save operations in inverse dynamics"): (
        "test_defaults.py::test_base_parameters_save_operations_on_every_robot_but_one"
    ),
    ("docs/defaults.md", "the method that is shortest written out"): lambda: shortest_is_taken(),
    (
        "docs/defaults.md",
        "the default may be 5 % behind",
    ): "test_defaults.py::test_the_default_is_as_fast_as_the_fastest",
    ("docs/defaults.md", "default over that of the fastest"): (
        "test_defaults.py::test_the_default_is_as_fast_as_the_fastest"
    ),
    ("docs/defaults.md", "There the rule is the fewest operations"): (
        "test_defaults.py::test_the_default_takes_the_fewest_operations"
    ),
    ("docs/defaults.md", "is a little faster on some large robots"): lambda: newton_euler_is_faster_on_some(),
    ("docs/defaults.md", "`composite` takes the fewest operations up to nine freedoms deep"): (
        "test_defaults.py::test_composite_takes_the_fewest_operations_up_to_nine_deep"
    ),
    ("docs/defaults.md", "of the fewest operations, and of the fastest method"): lambda: fd3_is_fast_beyond(),
}
# lines with such a word that rank nothing: digits, a heading, the method that happens to be the default
NO_CLAIM = {
    ("docs/algorithms/closed_chain.md", "those with the fewest neighbours"),  # an order, not a rank
    ("docs/c_export.md", "Constants of `double` are the shortest"),
    ("docs/c_export.md", "The names come from a second, slower trace"),
    ("docs/checking.md", "the default mass matrix times"),
    ("docs/checking.md", "for the torques of the default inverse method"),
    ("docs/checking.md", "the default method as machine code"),
    ("docs/command_line.md", "have the fewest digits"),
    ("docs/defaults.md", "# Defaults"),
    ("docs/howitworks.md", "## Fewer operations"),
    ("docs/identification.md", "The fewest numbers on which torques depend"),
    ("docs/identification.md", "slower than 2 % of its fastest"),
    ("docs/algorithms/derivatives.md", "differentiating the traced torques costs less, and that is what is done"),
    ("docs/closed_chains.md", "go the shortest way in the metric of M"),
    ("docs/closed_chains.md", "the shortest way in the metric of the mass"),
    ("docs/closed_chains.md", "there is no default for them"),
    ("docs/mjcf.md", "which resolves defaults and computes inertias from"),
    ("docs/proofs.md", "base parameters in the cheapest and in Khalil's form"),
    ("docs/howitworks.md", "run operation by operation over NumPy arrays. It is slower"),
}

ASSERTED: dict[
    tuple[str, str], Callable[[], bool] | str
] = {  # words without a ranking in them that must stay true as well
    ("docs/defaults.md", "above 60 links or 30,000 predicted operations"): lambda: (
        (ROLL_ABOVE, WRITTEN_OUT) == (60, 30_000)
    ),
    ("docs/defaults.md", "composite` takes the fewest operations up to nine"): lambda: DEEP == 9,
    ("docs/defaults.md", "takes `newton_euler` and `filter_smoother`"): lambda: (
        list(DETAILED.values()) == ["newton_euler", "filter_smoother"]
    ),
    ("docs/defaults.md", "on the UR5 by some 1e-6 of the largest acceleration"): lambda: composite_rounds_more(),
    ("docs/descriptions.md", "takes 1520 operations instead of 2144"): xarm_snapped,
    ("docs/algorithms/composite.md", "It alone of the forward methods can use"): only_composite_is_linear,
    ("docs/algorithms/kane.md", "521 and 435 for n"): lambda: (
        (published_counts.ANGELES_STAGES.total.mul(6), published_counts.ANGELES_STAGES.total.add(6)) == (521, 435)
    ),
}


def ranked_lines(page: Path) -> list[str]:
    """The lines that rank or name a default, outside of code and of what is generated."""
    text = CODE.sub("", GENERATED.sub("", page.read_text(encoding="utf-8")))
    return [line for line in text.splitlines() if RANKING.search(re.sub(r"\[[^\]]*\]\([^)]*\)|`[^`]*`", "", line))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_ranking_has_a_check(page: Path):
    if page.name in ("errata.md",):  # the papers' claims, each with its test
        return
    name = str(page.relative_to(ROOT))
    words = [fragment for (where, fragment) in (*CLAIMS, *NO_CLAIM) if where == name]
    bare = [line for line in ranked_lines(page) if not any(fragment in line for fragment in words)]
    assert not bare, (
        f"{name} says what no test checks: add to CLAIMS of tests/house/test_claims.py, or generate it: {bare}"
    )


@pytest.mark.parametrize(("where", "words"), [*CLAIMS, *ASSERTED], ids=lambda value: str(value)[:40])
def test_claims(where: str, words: str):
    assert words in (ROOT / where).read_text(encoding="utf-8"), f"{where} no longer says: {words}"
    check = (CLAIMS | ASSERTED)[where, words]
    if isinstance(check, str):
        file, test = check.split("::")
        (module,) = (ROOT / "tests").rglob(file)
        assert f"def {test}(" in module.read_text(encoding="utf-8"), f"there is no {check}"
    else:
        assert check(), f"{where} says what is not so: {words}"


def test_no_claim_lines_are_still_there():
    for where, words in NO_CLAIM:
        assert words in (ROOT / where).read_text(encoding="utf-8"), f"{where} no longer says: {words}"


# ---- tables that a benchmark printed ---------------------------------------------------------------------------


def printed(page: str, script: str) -> list[list[str]]:
    """The cells of the table that a script printed, without its head."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    block = text[text.index(f"$ python benchmarks/{script}") :].split("\n\n## ")[0]
    return [re.split(r"\s{2,}", line.strip()) for line in block.splitlines() if re.search(r"\S\s{2,}\S.*\d", line)]


def rate(label: str) -> float:
    return next(float(row[-1]) for row in printed("counts.md", "rates.py") if row[0] == label)


def long_programs_are_faster() -> bool:
    return rate("chain6 forward_dynamics filter_smoother") < rate("puma560 forward_dynamics filter_smoother") < 1


def loops_are_slower() -> bool:
    rows = [row for row in printed("benchmarks.md", "rolled.py") if row[0] == "forward_dynamics" and len(row) == 6]
    return len(rows) >= 5 and all(float(row[4].rstrip("x")) > 1 for row in rows)


def batches_are_cheaper() -> bool:
    """Per sample, against Pinocchio in one run: a batch of ours, and a compiled function called for one."""
    rows = {row[0]: row for row in printed("benchmarks.md", "against_pinocchio.py") if len(row) >= 4}
    batch, one = (seconds(rows[f"ur5_robot: inverse dynamics, {which}"][1]) for which in (
        "batch 4096, per sample", "one sample, compiled f"))  # fmt: skip
    return 5 * batch < one


def seconds(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def ends_are_cheaper() -> bool:
    fitted = filter_counts(bias=False)
    return all(fit is not None and fit.polynomial.coefficients[0] < 0 for fit in (fitted.mul, fitted.add))


def shortest_is_taken() -> bool:
    arm = ls.robots.planar(2)
    chosen = arm.symbolic("inverse_dynamics").operations
    return chosen <= min(arm.symbolic("inverse_dynamics", m).operations for m in arm.methods("inverse_dynamics"))


def newton_euler_is_faster_on_some() -> bool:
    rows = [times for title, _, times, _ in defaults_printed() if title == "inverse dynamics"]
    return 0 < sum(times["newton_euler"] < times["khalil_kleinfinger"] for times in rows) < len(rows)


def fd3_is_fast_beyond() -> bool:
    rows = [times for _, _, times, default in defaults_printed() if default == "fd3"]
    return len(rows) > 5 and all(times["fd3"] <= 1.03 * min(times.values()) for times in rows)


def test_the_readme_quotes_the_benchmark():
    """Each figure of its table of speed stands in the run that docs/benchmarks.md shows."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = {row[0]: row for row in printed("benchmarks.md", "against_pinocchio.py") if len(row) >= 4}
    robots = {"UR5": "ur5_robot", "Panda": "panda", "Talos (32 joints)": "talos_reduced"}
    quoted = re.search(r"<!-- SPEED TABLE.*?-->\n.*?\n.*?\n(.*?)\n\n", readme, re.DOTALL)
    assert quoted is not None
    for line in quoted[1].splitlines():
        label, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        name = robots[label.split(", ")[0]]
        if "inverse / forward" in label:
            wanted = [rows[f"{name}: {what} dynamics, batch 4096, per sample"] for what in ("inverse", "forward")]
        elif "one sample" in label:
            wanted = [rows[f"{name}: inverse dynamics, one sample, {what}"] for what in ("compiled f", "public method")]
        else:
            wanted = [rows[f"{name}: {label.split(', ')[1]}, batch 4096, per sample"]]
        assert cells[0] == " / ".join(row[1] for row in wanted)
        assert cells[1] in (" / ".join(row[2] for row in wanted), wanted[0][2])
        assert cells[2].split(" times")[0].split(" of")[0] == " / ".join(row[3].rstrip("x") for row in wanted)


def test_counts_of_the_speed_table():
    rows = [row for row in printed("algorithms/index.md", "methods.py") if ": " in row[0] and row[1] in ("base", "own")]
    assert len(rows) >= 20
    for row in rows:
        function, method = row[0].split(": ")
        found = operations("UR5", function, method, row[1] == "base")
        assert [found.mul, found.add, found.div] == [int(x) for x in row[-3:]], row


def test_counts_of_the_rates_table():
    rows = [row for row in printed("counts.md", "rates.py") if row[0].startswith(("puma560 ", "chain6 "))]
    assert len(rows) >= 10
    for row in rows:
        name, function, method = row[0].split()
        robot = ls.robots.puma560() if name == "puma560" else ls.robots.chain(6)
        compiled = robot.compile(function, method=method, backend="interpreter")
        found = compiled.counts
        fused = sum(1 for body in fuse(compiled.program).bodies() for node in body.nodes
                    if node.args and node.op not in ("neg", "sin", "cos"))  # fmt: skip
        assert [found.mul, found.add, found.div, fused, found.trig] == [int(x) for x in row[1:6]], row


@pytest.mark.parametrize("page", ["counts.md", "base_parameters.md"])
def test_counts_in_snippets(page: str):
    """`print(...operation_count(...))  # Counts(...)`: what it prints."""
    robot = ls.robots.puma560()
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(r"^print\((robot\.operation_count\(.*\))\)  # Counts\((.*?)(?:, \.\.\.)?\)$", text, re.MULTILINE)
    assert found
    for expression, shown in found:
        assert f"Counts({shown}" in repr(eval(expression, {"robot": robot})), expression


def test_the_guard_sees_a_bare_claim(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(
        "It is the fastest.\n```text\nthe default\n```\n<!-- role: a b -->\nThe default of x.\n<!-- end -->\n"
    )
    assert ranked_lines(page) == ["It is the fastest."]
