"""Columns of results that run as a loop: the same results as written out, by any backend, lanes and batch."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import FILES
from pin_models import ALL_KINDS, random_robot
from robots_for_tests import close, floats, robot

import linksweep as ls
from linksweep.backends import parts
from linksweep.backends.interpreter import Interpreter
from linksweep.backends.llvm import MachineKernel, kernel_module
from linksweep.backends.target import host_target
from linksweep.functions import defaults
from linksweep.functions.computation import Together
from linksweep.spatial.tree_matrix import TreeMatrix
from linksweep.tracing.passes import fuse
from linksweep.tracing.program import Program

FD = "forward_dynamics"
ITEMS = [FD, *(("derivative", FD, by) for by in ("q", "qd", "tau"))]
ROBOTS = {
    "every kind of joint": lambda: random_robot(ALL_KINDS, tree=True, seed=3),
    "a tree on a free base": lambda: random_robot(("free", *["revolute"] * 6), tree=True, seed=5),
    "a chain": lambda: robot("puma560"),
}


def runs(program: Program, inputs: list[np.ndarray], dtype: str) -> list[list[np.ndarray]]:
    """The results of machine code, with multiply-adds fused, and of the interpreter."""
    n = len(inputs[0])
    found, expected = ([np.empty((n, array.size), dtype) for array in program.outputs] for _ in range(2))
    module = kernel_module(fuse(program) if host_target().fma else program, dtype, host_target())
    MachineKernel(module.machine_code(), module.workspace)(inputs, found)
    Interpreter(program)(inputs, expected)
    return [found, expected]


CASES = [
    *((name, slice(None), 0) for name in ROBOTS),
    *(("a tree on a free base", items, 0) for items in (slice(1, 2), slice(2, 3), slice(1, 3))),
    ("a tree on a free base", slice(None), 10**9),
]  # robot, which items, operations of a block that is cut into parts


def check(monkeypatch: pytest.MonkeyPatch, bot: ls.Robot, items: list, cut: int) -> None:
    monkeypatch.setattr(defaults, "IN_LOOP", 0)
    monkeypatch.setattr(parts, "CUT", {16: cut, 32: cut})
    program = bot.recipe(items).trace()
    written_out = bot.recipe(items, rolled=False).trace()
    assert program.columns and program.rolled and not written_out.rolled
    assert parts.has_long_block(program) == (cut == 0)
    rng = np.random.default_rng(0)
    n = 2 * host_target().lanes("float64") + 3
    inputs = [np.stack([bot.random(rng) for _ in range(n)]), *rng.uniform(-1, 1, (2, n, bot.nv))]
    expected = [np.empty((n, array.size)) for array in program.outputs]
    Interpreter(written_out)(inputs, expected)
    inputs[0][0, 0] = np.nan
    for found in runs(program, inputs, "float64"):
        for a, b in zip(found, expected, strict=True):
            assert np.isnan(a[0]).all()
            assert close(a[1:], b[1:], 1e-10)


@pytest.mark.cases(1)
@pytest.mark.parametrize(("name", "chosen", "cut"), CASES)
def test_a_loop_gives_what_is_written_out(monkeypatch: pytest.MonkeyPatch, name: str, chosen: slice, cut: int):
    check(monkeypatch, ROBOTS[name](), ITEMS[chosen], cut)


@pytest.mark.quick
def test_a_loop_of_a_short_chain(monkeypatch: pytest.MonkeyPatch):
    check(monkeypatch, robot("mixed3"), ITEMS[1:2], 0)


@pytest.mark.slow
def test_float32(monkeypatch: pytest.MonkeyPatch):
    bot = ROBOTS["a tree on a free base"]()
    monkeypatch.setattr(defaults, "IN_LOOP", 0)
    monkeypatch.setattr(parts, "CUT", {16: 0, 32: 0})
    program, rng = bot.recipe(ITEMS).trace(), np.random.default_rng(0)
    inputs = [np.stack([bot.random(rng) for _ in range(9)]), *rng.uniform(-1, 1, (2, 9, bot.nv))]
    exact = runs(program, inputs, "float64")[0]
    for a, b in zip(runs(program, [x.astype(np.float32) for x in inputs], "float32")[0], exact, strict=True):
        assert close(a, b, 1e-3)  # M of a random robot is ill conditioned


@pytest.mark.slow
def test_two_functions_at_once_have_one_loop(monkeypatch: pytest.MonkeyPatch):
    """Two derivatives of different functions: the first runs as a loop, the second is written out."""
    bot = ROBOTS["a tree on a free base"]()
    other = bot.compile([("derivative", FD, "q")], backend="interpreter", dissipation=True)
    monkeypatch.setattr(defaults, "IN_LOOP", 0)
    assert isinstance(other.computation, Together)
    parts = bot.recipe([("derivative", FD, "q")]).parts + other.computation.parts
    program = Together(parts).trace()
    assert program.columns
    rng = np.random.default_rng(0)
    inputs = [bot.random(rng)[None], *rng.uniform(-1, 1, (2, 1, bot.nv))]
    expected = [np.empty((1, array.size)) for array in program.outputs]
    Interpreter(Together(parts, rolled=False).trace())(inputs, expected)
    for found in runs(program, inputs, "float64"):
        assert all(close(a, b, 1e-10) for a, b in zip(found, expected, strict=True))


@pytest.mark.slow
def test_loops_are_taken_where_they_serve():
    """A quadruped, not an arm; and never with parameters, whose work is done before any sample."""
    quadruped = ls.load(FILES["solo_description/robots/solo12.urdf"], base="floating")
    assert quadruped.recipe(ITEMS).trace().columns
    assert not robot("puma560").recipe(ITEMS).trace().columns
    assert not quadruped.recipe(ITEMS[1], parameters=("gravity",)).trace().columns
    assert not quadruped.recipe(ITEMS[3]).trace().columns  # M^-1 alone


@pytest.mark.quick
def test_the_inverse_factor_of_a_tree():
    rng = np.random.default_rng(0)
    parents = [-1, 0, 1, 1, 3, 0, 5]
    tree = TreeMatrix(parents, {})
    for i in range(7):
        tree.entries[i, i] = 5.0 + float(rng.uniform())
        tree.entries.update({(i, j): float(rng.uniform(-1, 1)) for j in tree.ancestors(i)})
    M = np.zeros((7, 7))
    for (i, j), value in tree.entries.items():
        M[i, j] = M[j, i] = float(value)  # pyright: ignore[reportArgumentType]
    inverse = tree.inverse_factor()
    assert np.allclose([floats(row) for row in inverse.full()], np.linalg.inv(M), rtol=0, atol=1e-14)
    columns = [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0], list(rng.uniform(-1, 1, 7))]
    assert np.allclose(
        [floats(x) for x in inverse.times(*columns)], np.linalg.solve(M, np.transpose(columns)).T, rtol=0, atol=1e-14
    )
    assert tree.filled(columns[0]) == {0, 1, 2}
    assert tree.inverse_serves(columns[:1], known=True)  # three of its branches are passed over
    assert not tree.inverse_serves(columns[1:], known=True)
