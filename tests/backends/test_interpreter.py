"""The NumPy interpreter: the oracle for machine code, and the way to do without it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from robots_for_tests import close, compiled, inverse_dynamics, robot, samples

from linksweep.backends import interpreter
from linksweep.backends.interpreter import OPERATIONS, Interpreter
from linksweep.functions.computation import RobotFunction, Together
from linksweep.tracing.expression import BINARY, TERNARY, UNARY, Graph
from linksweep.tracing.program import Array, block_program


def kernel(name: str, function: str = "inverse_dynamics", rolled: bool = False) -> Interpreter:
    method = robot(name).methods(function)[0]
    return Interpreter(Together((RobotFunction(robot(name).canonical, function, method),), rolled).trace())


@pytest.mark.quick
def test_every_operation_is_there_and_right():
    assert set(OPERATIONS) == {*UNARY, *BINARY, *TERNARY}
    graph = Graph()
    a, b, c = (graph.leaf("input", (0, i)) for i in range(3))
    values = {
        graph.make("neg", a): lambda a, b, c: -a,
        graph.make("sqrt", b): lambda a, b, c: np.sqrt(b),
        graph.make("sin", a): lambda a, b, c: np.sin(a),
        graph.make("cos", a): lambda a, b, c: np.cos(a),
        graph.make("add", a, b): lambda a, b, c: a + b,
        graph.make("sub", a, b): lambda a, b, c: a - b,
        graph.make("mul", a, b): lambda a, b, c: a * b,
        graph.make("div", a, b): lambda a, b, c: a / b,
        graph.make("where", graph.make("lt", a, c), b, c): lambda a, b, c: np.where(a < c, b, c),
        graph.make("fma", a, b, c): lambda a, b, c: a * b + c,
        graph.make("fms", a, b, c): lambda a, b, c: a * b - c,
        graph.make("fnma", a, b, c): lambda a, b, c: c - a * b,
        graph.make("mul", 2.5, a): lambda a, b, c: 2.5 * a,
    }
    program = block_program("all", [Array("x", (3,))], [(Array("y", (len(values),)), list(values))]).verify()
    x = np.abs(np.random.default_rng(0).normal(size=(30, 3))) + 0.1
    out = np.empty((30, len(values)))
    Interpreter(program)([x], [out])
    for column, formula in zip(out.T, values.values(), strict=True):
        assert np.array_equal(column, formula(*x.T))


@pytest.mark.quick
@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("name", ["puma560", "tree9"])
def test_against_plain_mechanics(name: str, rolled: bool):
    bot = robot(name)
    args = samples(bot, 6, seed=21)
    out = np.full((6, bot.nv), np.nan)
    kernel(name, rolled=rolled)(args, [out])
    for k in range(6):
        assert close(out[k], inverse_dynamics(bot.model, *(x[k] for x in args)), 1e-12)


@pytest.mark.quick
@pytest.mark.parametrize("rolled", [False, True])
def test_long_batches_are_cut_into_chunks(rolled: bool, monkeypatch: pytest.MonkeyPatch):
    bot = robot("mixed3")
    args = samples(bot, 25, seed=22)
    args[1] = args[1][:1]  # one row for all samples
    whole, parts = np.empty((2, 25, bot.nv))
    kernel("mixed3", rolled=rolled)(args, [whole])
    monkeypatch.setattr(interpreter, "CHUNK", 4)
    kernel("mixed3", rolled=rolled)(args, [parts])
    assert np.array_equal(whole, parts)


@pytest.mark.quick
@pytest.mark.parametrize("function", ["inverse_dynamics", "mass_matrix"])
@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_sample_that_is_not_finite_is_nan_and_touches_no_other(bad: float, rolled: bool, function: str):
    """PUMA's torques never read q1, so only an explicit look at the inputs can find it there."""
    bot = robot("puma560")
    args = samples(bot, 7, seed=23, count=1 if function == "mass_matrix" else 3)
    run = kernel("puma560", function, rolled)
    size = run.program.outputs[0].size
    good, got = np.empty((2, 7, size))
    run(args, [good])
    args[0][3, 0] = bad
    run(args, [got])
    assert np.isnan(got[3]).all()
    assert np.array_equal(np.delete(got, 3, 0), np.delete(good, 3, 0))


@pytest.mark.slow
def test_float32_stays_float32():
    bot = robot("mixed5")
    args = [x.astype(np.float32) for x in samples(bot, 5, seed=24)]
    function = compiled("mixed5", "inverse_dynamics", backend="interpreter")
    got = function(*args)
    assert got.dtype == np.float32
    exact = function(*(x.astype(np.float64) for x in args))
    assert 1e-9 < np.abs(got - exact).max() / np.abs(exact).max() < 5e-6


def test_the_variable_chooses_it_and_no_llvm_is_loaded():
    text = (
        "import sys, numpy as np, linksweep as ls\n"
        "robot = ls.robots.puma560()\n"
        "x = np.full(6, np.pi / 4)\n"
        "print(robot.inverse_dynamics(x, x, x)[0], robot.compile('inverse_dynamics').backend)\n"
        "print('llvmlite' in sys.modules)\n"
    )
    environment: dict[str, Any] = {**os.environ, "LINKSWEEP_BACKEND": "interpreter"}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    torque, backend, loaded = done.stdout.split()
    assert abs(float(torque) - 3.133511660946) < 1e-11 and backend == "interpreter" and loaded == "False"
