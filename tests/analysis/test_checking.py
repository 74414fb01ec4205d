"""`ls.check` and `linksweep check`: finds formulations that differ, names what is wrong, fails only for what is."""

# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportIndexIssue=false
from __future__ import annotations

import functools
import json
import math
import os
import pty
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from robots_for_tests import freely_moving, robot, tree_model

import linksweep as ls
from linksweep.errors import ArgumentError, ModelWarning
from linksweep.functions.functions import FUNCTIONS, Method
from linksweep.model.lint import lint
from linksweep.model.model import Inertial, Limits, Model, Placement, symmetric
from linksweep.robot.checking import TOLERANCE, Difference, random_states

COMPARED = (
    "inverse_dynamics",
    "bias_forces",
    "gravity_forces",
    "mass_matrix",
    "mass_matrix_inverse",
    "forward_dynamics",
    "articulated_inertia",
)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["puma560", "stanford", "six_axis", "planar3", "tree9", "mixed5", "urdf"])
def test_formulations_agree(name: str):
    report = ls.check(robot(name), samples=5)
    assert report.ok and report.worst < 1e-13, str(report)
    rows = {(row.function, row.method) for row in report.differences}
    for function in COMPARED:
        assert {(function, method) for method in robot(name).methods(function)} <= rows
    for method in robot(name).methods("forward_dynamics"):
        assert ("forward after inverse", method) in rows
    for method in robot(name).methods("mass_matrix_inverse"):
        assert ("M M^-1 = 1", method) in rows
    for method in robot(name).methods("coriolis_matrix"):
        assert ("C qd = bias - gravity", method) in rows
    for method in robot(name).methods("effective_inertia"):
        assert ("effective_inertia", method) in rows
    default = robot(name).methods("forward_dynamics")[0]
    assert ("forward_dynamics", f"{default}, compiled") in rows  # machine code against the interpreter
    assert report.verdict.startswith(f"{robot(name).name}: all formulations agree to ")


def test_methods_that_do_not_apply_are_said(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")
    report = ls.check(robot("tree4"), samples=2)
    skipped = {(s.function, s.method): s.reason for s in report.skipped}
    assert skipped["forward_dynamics", "closed_form"] == "which needs a serial chain"
    assert skipped["mass_matrix_inverse", "costate_covariance"] == "which needs a serial chain"
    assert report.ok
    assert "not compared: forward_dynamics by closed_form, which needs a serial chain" in str(report)
    assert not any("compiled" in row.method for row in report.differences)


@pytest.mark.slow
def test_joints_of_several_freedoms(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")
    bot = freely_moving()
    assert (bot.nq, bot.nv) == (15, 13)
    states = random_states(bot, 3, 0)
    assert states["q"].shape == (3, 15) and states["qdd"].shape == (3, 13) and states["f_ext"].shape == (3, 4, 6)
    report = ls.check(bot, samples=3)
    assert report.ok and report.worst < 1e-13 and not report.findings, str(report)
    assert {row.method for row in report.differences} >= {"newton_euler", "kane", "filter_smoother", "fd2", "composite"}
    chain = ls.Robot(
        replace(bot.model, links=bot.model.links[:3], document_order=(0, 1, 2), frames=bot.model.frames[:4])
    )
    skipped = {s.method: s.reason for s in ls.check(chain, samples=1).skipped}
    assert skipped["closed_form"] == "which needs 1-DOF joints" and "costate_covariance" not in skipped


@pytest.mark.cases(1)
@pytest.mark.parametrize("n", [1, 4])
def test_terms_that_vanish_are_no_disagreement(n: int, monkeypatch: pytest.MonkeyPatch):
    """Slides only: no Coriolis terms at all but for rounding."""
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")
    model = ls.robots.chain_model(n, seed=3)
    links = tuple(replace(link, joint=replace(link.joint, kind="prismatic")) for link in model.links)
    report = ls.check(ls.Robot(replace(model, links=links, gravity=(0.0, 0.0, 0.0))))
    assert report.ok, str(report)


@pytest.mark.slow
def test_large_robots_are_checked_by_the_methods_that_can(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")
    report = ls.check(ls.robots.planar(70), samples=1)
    assert report.ok, str(report)
    assert {s.method for s in report.skipped} >= {"composite", "factorization"}
    assert {row.method for row in report.differences} >= {"filter_smoother", "fd3", "closed_form", "costate_covariance"}


def test_the_same_seed_gives_the_same_report():
    bot = robot("mixed2")
    assert ls.check(bot, samples=3, seed=4) == ls.check(bot, samples=3, seed=4)
    assert ls.check(bot, samples=3, seed=4).differences != ls.check(bot, samples=3, seed=5).differences


# ---- a formulation that is wrong -------------------------------------------------------------------------------


def off(algorithm: Callable[..., Any], field: str, *factors: float) -> Method:
    """An algorithm whose result is off by these factors."""

    @functools.wraps(algorithm)
    def wrong(sweep: Any, *args: Any, **options: Any) -> Any:
        result = algorithm(sweep, *args, **options)
        values = getattr(result, field)
        for factor in factors:
            values = type(values)(value * factor for value in values)
        return replace(result, **{field: values})

    return Method(wrong)


@pytest.mark.cases(1)
@pytest.mark.parametrize("factors", [(1 + 1e-7,), (1e308,)])
@pytest.mark.parametrize(
    ("function", "method", "field"), [("inverse_dynamics", "kane", "tau"), ("forward_dynamics", "fd3", "qdd")]
)
def test_a_wrong_method_is_found_and_named(
    function: str, method: str, field: str, factors: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")
    # functions that other tests compiled by the right method must not be found
    monkeypatch.setattr("linksweep.functions.compiled._functions", {})
    known = FUNCTIONS[function].methods
    monkeypatch.setitem(known, method, off(known[method].algorithm, field, *factors))
    report = ls.check(ls.robots.chain(3, seed=2), samples=4)
    assert not report.ok
    wrong = [row for row in report.differences if row.function == function]
    for row in wrong:  # every method is furthest from the wrong one, and the wrong one from some other
        assert not row.ok and (row.method == method) != (row.against == method)
    assert "results differ by more than 1e-10" in report.verdict
    assert "DIFFERS" in str(report)
    said = json.loads(json.dumps(report.as_dict(), allow_nan=False))
    values = [row["difference"] for row in said["differences"] if row["function"] == function]
    overflows = factors[0] > 2
    assert all(value is None if overflows else value > TOLERANCE for value in values)
    assert math.isfinite(report.worst) != overflows


def test_what_is_not_a_number_is_a_disagreement():
    report = replace(ls.check(robot("planar3"), samples=1), differences=(Difference("f", "a", "b", float("nan")),))
    assert not report.ok and math.isnan(report.worst)
    assert json.loads(json.dumps(report.as_dict()))["differences"][0]["difference"] is None
    assert report.verdict == "planar3: 1 result differs by more than 1e-10; 1 warning about the model."


# ---- states ----------------------------------------------------------------------------------------------------


def test_states_are_within_the_limits():
    model = ls.robots.chain_model(3, seed=1)
    limits = [Limits(0.5, 0.6, velocity=0.1), Limits(lower=2.0), Limits()]
    links = [
        replace(link, joint=replace(link.joint, limits=limit)) for link, limit in zip(model.links, limits, strict=True)
    ]
    states = random_states(ls.Robot(replace(model, links=tuple(links))), 500, 0)
    q, qd = states["q"], states["qd"]
    assert q.shape == qd.shape == (500, 3) and states["f_ext"].shape == (500, 3, 6)
    assert (q.min(axis=0) >= [0.5, 2.0, -np.pi]).all() and (q.max(axis=0) <= [0.6, np.pi, np.pi]).all()
    assert (np.ptp(q, axis=0) > 0.9 * np.array([0.1, np.pi - 2.0, 2 * np.pi])).all()
    assert np.abs(qd[:, 0]).max() <= 0.1 < np.abs(qd[:, 1]).max()


# ---- lint ------------------------------------------------------------------------------------------------------


def changed(joint: dict[str, Any] | None = None, **inertial: Any) -> Model:
    """A chain of three whose second link is changed."""
    model = ls.robots.chain_model(3, seed=6)
    link = model.links[1]
    link = replace(link, joint=replace(link.joint, **(joint or {})), inertial=replace(link.inertial, **inertial))
    return replace(model, links=(model.links[0], link, model.links[2]))


def diagonal(*moments: float) -> Any:
    return symmetric(*moments)


LINTED: dict[str, tuple[Model, str, str]] = {
    "nan": (changed(mass=float("nan")), "error", "a value is infinite or NaN"),
    "axis": (changed({"axis": (0.0, 0.0, 0.0)}), "error", "the joint's axis is not of length 1"),
    "length": (changed({"axis": (0.0, 0.0, 1.1)}), "error", "the joint's axis is not of length 1"),
    "rotation": (
        changed({"placement": Placement(diagonal(1, 1, -1))}), "error", "the joint's placement is not a proper rotation"
    ),
    "mass": (changed(mass=-1.0), "error", "the mass is negative"),
    "armature": (changed({"armature": -1.0}), "error", "the armature is negative"),
    "lopsided": (
        changed(inertia=((1.0, 0.1, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))), "error", "the inertia is not symmetric"
    ),
    "indefinite": (
        changed(inertia=symmetric(1, 1, 1, xy=2)), "error",
        "the inertia has a negative principal moment: not physically realisable",
    ),
    "triangle": (
        changed(inertia=diagonal(1, 1, 3)), "warning", "the inertia violates the triangle inequality"
    ),
    "rod": (
        changed(inertia=diagonal(0, 1, 1)), "warning", "the inertia is not positive definite: a thin rod or a point"
    ),
    "point": (
        changed(inertia=diagonal(0, 0, 0)), "warning", "the inertia is not positive definite: a thin rod or a point"
    ),
    "massless": (
        changed(mass=0.0, inertia=diagonal(0, 0, 0)), "warning", "the link moves and has neither mass nor inertia"
    ),
    "no mass": (changed(mass=0.0), "warning", "the link has moments of inertia but no mass"),
    "about the joint": (
        changed({"axis": (0.0, 0.0, 1.0)}, mass=0.0, inertia=diagonal(0, 0, 1)), "warning",
        "the only inertia is a moment about its own joint",
    ),
    "limits": (changed({"limits": Limits(1.0, -1.0)}), "warning", "the lower limit is above the upper"),
}  # fmt: skip


@pytest.mark.parametrize("case", LINTED)
def test_lint(case: str):
    model, level, what = LINTED[case]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # lint divides by nothing
        findings = lint(model)
    assert [(f.level, f.what) for f in findings] == [(level, what)]
    name = model.links[1].name if "joint's" not in what and "limit" not in what and "armature" not in what else None
    assert findings[0].where == (name or model.links[1].joint.name,)
    assert str(findings[0]) == f"{level}: {findings[0].where[0]}: {what}"


def test_lint_of_mass_ratios():
    model = changed(mass=3e-7, inertia=diagonal(1e-9, 1e-9, 1e-9))
    (finding,) = lint(model)
    assert finding.level == "warning" and "masses differ by a factor of" in finding.what
    assert finding.where[1] == model.links[1].name


def test_lint_names_every_link_once_and_puts_errors_first():
    model = ls.robots.planar_model(12)
    heavy = replace(model.links[3], inertial=replace(model.links[3].inertial, mass=-2.0))
    findings = lint(replace(model, links=(*model.links[:3], heavy, *model.links[4:])))
    assert [f.level for f in findings] == ["error", "warning"]
    assert len(findings[1].where) == 11 and str(findings[1]).count("link") == 8
    assert "and 3 more" in str(findings[1])


def test_lint_is_silent_about_good_robots():
    assert lint(ls.robots.stanford_model()) == ()
    assert lint(tree_model(9, seed=9)) == ()


@pytest.mark.cases(1)
@pytest.mark.parametrize("case", [case for case in LINTED if case != "nan"])  # of which no Robot can be made
def test_check_survives_whatever_lint_finds(case: str):
    """An error fails the check, a warning does not, and numbers of which nothing can be computed are not computed."""
    model, level, _ = LINTED[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = ls.check(ls.Robot(model), samples=2)
    assert report.ok == (level == "warning"), str(report)
    fatal = case in ("axis", "length", "rotation")
    assert bool(report.differences) != fatal
    if fatal:
        assert "nothing could be compared" in report.verdict and "not compared: dynamics" in str(report)


def test_a_robot_without_forward_dynamics_is_reported():
    model = ls.robots.chain_model(3, seed=6)
    last = replace(model.links[2], inertial=Inertial())
    with pytest.warns(ModelWarning, match="no inertia moves with joint"):
        bot = ls.Robot(replace(model, links=(*model.links[:2], last)))
    report = ls.check(bot)
    assert report.ok
    assert {row.function for row in report.differences} >= set(COMPARED[:4])
    assert not {row.function for row in report.differences} & {"forward_dynamics", "mass_matrix_inverse"}
    joint = last.joint.name
    assert f"not compared: forward_dynamics, because no inertia moves with joint {joint}" in str(report)
    assert f"not compared: mass_matrix_inverse, because no inertia moves with joint {joint}" in str(report)
    assert any(f.where == (joint,) and "forward dynamics" in f.what for f in report.findings)


def test_a_robot_without_any_inertia_is_reported():
    model = ls.robots.chain_model(2, seed=6)
    with pytest.warns(ModelWarning):
        bot = ls.Robot(replace(model, links=tuple(replace(link, inertial=Inertial()) for link in model.links)))
    report = ls.check(bot)
    assert report.ok and not report.differences
    assert "not compared: dynamics, the robot has no mass or inertia at all" in str(report)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"samples": 0}, "samples is 0, expected an integer from 1 to 100000"),
        ({"samples": 2.5}, "samples is 2.5, expected an integer"),
        ({"samples": True}, "samples is True, expected an integer"),
        ({"samples": 10**9}, "samples is 1000000000, expected an integer"),
        ({"seed": -1}, "seed is -1, expected an integer from 0"),
        ({"robot": "puma560"}, "check got 'puma560', expected a Robot"),
        ({"robot": ls.robots.planar_model(1)}, r"check got Model\(.*, expected a Robot"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], said: str):
    with pytest.raises(ArgumentError, match=said):
        ls.check(**{"robot": robot("planar3"), **arguments})


# ---- the command -----------------------------------------------------------------------------------------------

IMPOSSIBLE = """<robot name="impossible"><link name="ground"/>
  <link name="arm"><inertial><mass value="1"/>
    <inertia ixx="1" ixy="2" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <joint name="turn" type="continuous"><parent link="ground"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>"""


def run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "100", "LINKSWEEP_BACKEND": "interpreter"}
    command = [sys.executable, "-m", "linksweep", "check", *arguments]
    return subprocess.run(command, **{"capture_output": True, "text": True, "env": environment, **options})


@pytest.mark.slow
def test_command_prints_a_plain_table():
    result = run("stanford", "--samples", "3")
    assert result.returncode == 0 and result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0].startswith("stanford: all formulations agree to ")
    assert lines[1].split() == ["function", "method", "furthest", "from", "difference"]
    assert lines[2].startswith("inverse_dynamics") and lines[2].endswith("  ok")
    assert result.stdout.isascii()


@pytest.mark.slow
def test_command_prints_json():
    result = run("puma560", "--json", "--samples", "3", "--seed", "7")
    assert result.returncode == 0
    report = json.loads(result.stdout)
    assert report["ok"] and report["robot"] == "puma560" and (report["samples"], report["seed"]) == (3, 7)
    assert {row["function"] for row in report["differences"]} >= set(COMPARED)
    assert all(row["ok"] and 0 <= row["difference"] <= report["tolerance"] for row in report["differences"])
    assert report["lint"] == []


@pytest.mark.slow
def test_command_draws_a_table_on_a_terminal():
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "linksweep", "check", "planar.toml"], stdout=theirs, stderr=subprocess.PIPE
    )
    process.communicate()
    assert process.returncode == 2  # a file that is not there
    code = (
        "from linksweep import robots\nfrom linksweep.robot.checking import check\n"
        "from linksweep.cli.inspection import _print_report\n"
        "_print_report(check(robots.planar(2), samples=2), 'planar2: 2 states', ['function', 'method', '', ''])"
    )
    environment = {**os.environ, "COLUMNS": "100", "LINKSWEEP_BACKEND": "interpreter", "TERM": "xterm"}
    subprocess.run([sys.executable, "-c", code], stdout=theirs, env=environment, check=True)
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # how Linux says that the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    text = shown.decode()
    assert "planar2: 2 states" in text and "│" in text and "\x1b[" in text
    assert text.count("forward_dynamics") == 1  # said once for all its methods
    assert "all formulations agree" in text


def test_command_fails_for_an_impossible_description(tmp_path: Path):
    (tmp_path / "impossible.urdf").write_text(IMPOSSIBLE)
    result = run(str(tmp_path / "impossible.urdf"))
    assert result.returncode == 1
    assert "error: arm: the inertia has a negative principal moment: not physically realisable" in result.stdout
    assert result.stdout.splitlines()[0].endswith("; 1 error about the model.")
    assert result.stderr.count("\n") == 1 and "warning" in result.stderr  # said at loading


@pytest.mark.cases(1)
@pytest.mark.parametrize("arguments", [["nobody"], ["missing.urdf"], ["puma560", "--samples", "0"]])
def test_command_says_bad_input_in_one_sentence(arguments: list[str]):
    result = run(*arguments)
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith("linksweep: ") and result.stderr.count("\n") == 1


def test_help_is_quick():
    code = (
        "import sys; from linksweep.cli import app\n"
        "try: app(['check', '--help'])\n"
        "except SystemExit as stop: assert stop.code in (None, 0)\n"
        "assert not {'numpy', 'scipy', 'llvmlite', 'matplotlib'} & set(sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "compare all algorithms" in " ".join(result.stdout.split())
