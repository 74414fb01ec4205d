"""Languages other than C: the printed functions run, and agree with NumPy."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from command_line import run_process

import linksweep as ls
from linksweep.backends.printer import DIALECTS, LOOP_VARIABLES, Dialect, Interface, Names, dialect_named
from linksweep.errors import ArgumentError
from linksweep.functions.compiled import CompiledFunction
from linksweep.tracing.expression import Graph
from linksweep.tracing.labels import labelled
from linksweep.tracing.program import Array, Program, block_program

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="no node here: apt install nodejs")
PUMA, CHAIN = ls.robots.puma560(), ls.robots.chain(5)
FUNCTIONS = [
    (PUMA, "inverse_dynamics", False), (PUMA, "forward_dynamics", False), (PUMA, "mass_matrix", False),
    (CHAIN, "inverse_dynamics", True), (CHAIN, "mass_matrix", True), (CHAIN, "regressor", True),
]  # fmt: skip


def run_javascript(folder: Path, program: Program, interface: Interface, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Run a program's JavaScript in node; its results, flat."""
    (folder / "f.mjs").write_text(dialect_named("javascript").source(program, interface))
    call = f"""
        import {{ {interface.name} }} from "./f.mjs";
        const found = {interface.name}(...{json.dumps([x.ravel().tolist() for x in inputs])});
        console.log(JSON.stringify({"[found]" if len(program.outputs) == 1 else "found"}.map(x => Array.from(x))));
    """
    (folder / "main.mjs").write_text(call)
    done = subprocess.run([str(NODE), "main.mjs"], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [np.array(x, float) for x in json.loads(done.stdout)]


@needs_node
@pytest.mark.cases(6)
@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: f"{case[1]}-{'rolled' if case[2] else 'unrolled'}")
def test_javascript_agrees_with_numpy(tmp_path: Path, case: tuple[ls.Robot, str, bool]):
    robot, name, rolled = case
    function: CompiledFunction = robot.compile(name, rolled=rolled, backend="interpreter")
    rng = np.random.default_rng(7)
    inputs = [rng.uniform(-1.5, 1.5, argument.shape) for argument in function.signature.inputs]
    links = tuple(link.name for link in robot.model.links)
    program = labelled(function.computation.trace)
    (result,) = run_javascript(tmp_path, program, Interface(name, about=("About",), links=links), inputs)
    expected = np.ravel(function(*inputs))
    assert np.abs(result - expected).max() <= 1e-12 * max(1.0, np.abs(expected).max())


@needs_node
def test_javascript_choices_signs_and_large_angles(tmp_path: Path):
    graph = Graph()
    a, b = (graph.leaf("input", (0, i)) for i in range(2))
    sign = (a > 0.0).where(1.0, (a < 0.0).where(-1.0, 0.0))
    fused = [graph.make(op, a, b, a) for op in ("fma", "fms", "fnma")]
    values = [sign * b, -(a + b), a - graph.make("neg", b), (a * a).sqrt() / b, *fused, (a + 0.25).sin()]
    program = block_program("signs", [Array("x", (2,))], [(Array("y", (8,)), values), (Array("x", (1,)), [7.0])])
    for first in (-2.0, 0.0, 3.0, 1e17):
        y, x = run_javascript(tmp_path, program, Interface("f"), [np.array([first, 0.25])])
        p, r = first, 0.25
        expected = [np.sign(p) * r, -(p + r), p + r, abs(p) / r, p * r + p, p * r - p, p - p * r]
        assert y[:7].tolist() == expected and x.tolist() == [7.0]
        exact = np.sin(p) * np.cos(0.25) + np.cos(p) * np.sin(0.25)
        assert abs(y[7] - exact) < 1e-13


@needs_node
def test_javascript_of_a_robot_with_hostile_names(tmp_path: Path):
    rows = [{"a": 0.3, "alpha": 0.2, "d": 0.1, "mass": 1.0, "com": (0.1, 0.0, 0.0), "inertia": (0.1, 0.2, 0.3)}] * 3
    names = ["*/ process.exit(3); /*", "yield", "${q} `"]
    robot = ls.Robot.from_dh([row | {"link": name} for row, name in zip(rows, names, strict=True)], "modified")
    function = robot.compile("inverse_dynamics", backend="interpreter")
    program, about = labelled(function.computation.trace), ("*/ throw 1; //", "\u2028 x", *names)
    inputs = [np.full(3, 0.5)] * 3
    (tau,) = run_javascript(tmp_path, program, Interface("f", about=about, links=tuple(names)), inputs)
    np.testing.assert_allclose(tau, function(*inputs), rtol=1e-12)


OCTAVE = shutil.which("octave-cli")
needs_octave = pytest.mark.skipif(OCTAVE is None, reason="no octave-cli here: apt install octave")


def run_octave(folder: Path, text: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
    """Run a function file, whose function is `f`, in Octave; its results, flat, last axis fastest."""
    (folder / "f.m").write_text(text)
    rows = ("; ".join(" ".join(repr(float(x)) for x in row) for row in np.atleast_2d(x)) for x in inputs)
    arguments = ", ".join(f"[{row}]" for row in rows)
    script = f"y = f({arguments}); printf('%.17g ', permute(y, ndims(y):-1:1));"
    done = subprocess.run(
        [str(OCTAVE), "--no-init-file", "--no-gui", "--eval", script], cwd=folder, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [np.array(done.stdout.split(), float)]


@needs_octave
@pytest.mark.cases(2)
@pytest.mark.parametrize("case", FUNCTIONS, ids=lambda case: f"{case[1]}-{'rolled' if case[2] else 'unrolled'}")
def test_octave_agrees_with_numpy(tmp_path: Path, case: tuple[ls.Robot, str, bool]):
    robot, name, rolled = case
    function: CompiledFunction = robot.compile(name, rolled=rolled, backend="interpreter")
    rng = np.random.default_rng(7)
    inputs = [rng.uniform(-1.5, 1.5, argument.shape) for argument in function.signature.inputs]
    expected = np.ravel(function(*inputs))
    for dtype, tolerance in (("double", 1e-12), ("float", 1e-5)):  # single precision has 24 bits
        (result,) = run_octave(tmp_path, function.source("matlab", "f", dtype, robot), inputs)
        assert np.abs(result - expected).max() <= tolerance * max(1.0, np.abs(expected).max())


@needs_octave
def test_octave_matrices_choices_and_wrong_sizes(tmp_path: Path):
    function = CHAIN.compile("inverse_dynamics", f_ext=True, dissipation=True, backend="interpreter")
    rng = np.random.default_rng(8)
    inputs = [rng.uniform(-1.5, 1.5, argument.shape) for argument in function.signature.inputs]
    text = function.source("matlab", "f", robot=CHAIN)
    (result,) = run_octave(tmp_path, text, inputs)
    np.testing.assert_allclose(result, function(*inputs), rtol=1e-12, atol=1e-12)
    with pytest.raises(AssertionError, match="q has 4 elements, expected 5"):
        run_octave(tmp_path, text, [inputs[0][:4], *inputs[1:]])


@needs_octave
def test_octave_of_a_robot_with_hostile_names(tmp_path: Path):
    rows = [{"a": 0.3, "alpha": 0.2, "d": 0.1, "mass": 1.0, "com": (0.1, 0.0, 0.0), "inertia": (0.1, 0.2, 0.3)}] * 3
    names = ["... exit(3) %{", "end", "'); exit(3); ('"]
    robot = ls.Robot.from_dh([row | {"link": name} for row, name in zip(rows, names, strict=True)], "modified")
    function = robot.compile("inverse_dynamics", backend="interpreter")
    inputs = [np.full(3, 0.5)] * 3
    (tau,) = run_octave(tmp_path, function.source("matlab", "f", robot=robot), inputs)
    np.testing.assert_allclose(tau, function(*inputs), rtol=1e-12)


@pytest.mark.quick
@pytest.mark.cases(1000)
@pytest.mark.parametrize("language", DIALECTS)
def test_every_dialect_prints_a_function(language: str):
    function = PUMA.compile("inverse_dynamics", backend="interpreter")
    dialect = dialect_named(language)
    assert dialect.language == language
    links = tuple(link.name for link in PUMA.model.links)
    text = dialect.source(labelled(function.computation.trace), Interface("f", about=("Puma",), links=links))
    assert text.isascii() and max(map(len, text.splitlines())) <= dialect.width
    assert re.search(r"\bf\(", text) and "----" in text  # the function, and headings of its links


@pytest.mark.quick
@pytest.mark.cases(1000)
@pytest.mark.parametrize("language", DIALECTS)
def test_no_variable_is_called_like_one_of_a_loop(language: str):
    names = dialect_named(language).names()
    assert not {names.new(name) for name in LOOP_VARIABLES} & LOOP_VARIABLES
    assert Names(Dialect()).new("link") != "link"  # whatever words a language reserves


def test_unknown_languages_and_types():
    with pytest.raises(ArgumentError, match="did you mean 'javascript'"):
        dialect_named("javscript")
    program = block_program("f", [Array("x", (1,))], [(Array("y", (1,)), [1.0])])
    with pytest.raises(ArgumentError, match="expected 'double'"):
        dialect_named("javascript").source(program, Interface("f", "float"))


@needs_node
def test_javascript_by_python_and_by_the_command_line(tmp_path: Path):
    function = PUMA.compile("inverse_dynamics", backend="interpreter")
    done = run_process(
        "export", "puma560", "inverse_dynamics", "--language", "javascript", "-o", "puma.mjs", cwd=tmp_path
    )
    assert done.returncode == 0 and done.stdout.split() == ["wrote", "puma.mjs"], done.stderr
    text = (tmp_path / "puma.mjs").read_text()
    assert text == function.source("javascript", robot=PUMA)
    q, qd, qdd = np.random.default_rng(3).normal(size=(3, 6))
    call = f"""
        import {{ puma560_inverse_dynamics as f }} from "./puma.mjs";
        console.log(JSON.stringify(Array.from(f(...{json.dumps([q.tolist(), qd.tolist(), qdd.tolist()])}))));
    """
    (tmp_path / "main.mjs").write_text(call)
    printed = subprocess.run([str(NODE), "main.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert np.allclose(json.loads(printed), function(q, qd, qdd), rtol=1e-12, atol=1e-12)


def test_languages_are_checked():
    function = PUMA.compile("gravity_forces", backend="interpreter")
    assert function.source("c") == function.c_source()
    with pytest.raises(ArgumentError, match=r"the language is 'javascrpt'.*javascript"):
        function.source("javascrpt")
    with pytest.raises(ArgumentError, match="dtype is 'float', expected 'double' for javascript"):
        function.source("javascript", dtype="float")
    with pytest.raises(ArgumentError, match="'yield', a reserved word of javascript"):
        function.source("javascript", name="yield")
