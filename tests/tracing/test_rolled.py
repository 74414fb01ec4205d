"""Programs as loops over the links: equal to those written out, on both backends, for any number of links."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from pin_models import random_robot
from robots_for_tests import close, condition, forward_dynamics, mass_matrix, robot, samples, tree_model

import linksweep as ls
from linksweep.functions.compiled import CompiledFunction
from linksweep.functions.computation import RobotFunction, Together
from linksweep.functions.defaults import ROLL_ABOVE
from linksweep.model.model import Model
from linksweep.tracing.program import Block, Loop, PairLoop

FRAMED = {"pose", "jacobian"}
FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "bias_forces", "gravity_forces", "pose", "jacobian")
NAMES = ("mixed1", "mixed2", "mixed3", "mixed12", "tree9", "tree14", "urdf", "puma560")


@functools.cache
def function(name: str, which: str, rolled: bool, backend: str, extras: bool = False) -> CompiledFunction:
    bot = robot(name)
    frame = bot.frame_names[-1]
    wanted = (which, frame) if which in FRAMED else which
    return bot.compile(wanted, rolled=rolled, backend=backend, f_ext=extras, dissipation=extras)


def arguments(bot: ls.Robot, compiled: CompiledFunction, count: int = 5) -> list[np.ndarray]:
    args = samples(bot, count, seed=31, count=len(compiled.inputs))
    if compiled.inputs[-1] == "f_ext":
        args[-1] = np.random.default_rng(1).normal(size=(count, bot.nv, 6))
    return args


def tolerance(bot: ls.Robot, which: str, args: list[np.ndarray]) -> float:
    """Forward dynamics solves with M: rounding grows with its condition."""
    if which != "forward_dynamics":
        return 1e-12
    return 1e-14 * max([100.0, *(condition(bot.model, q) for q in args[0])])


@pytest.mark.quick
@pytest.mark.parametrize("which", FUNCTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_rolled_equals_unrolled(name: str, which: str):
    bot = robot(name)
    reference = function(name, which, False, "llvm")
    args = arguments(bot, reference)
    expected = reference(*args)
    for backend in ("llvm", "interpreter"):
        rolled = function(name, which, True, backend)
        assert rolled.program.rolled
        assert close(rolled(*args), expected, tolerance(bot, which, args))
        assert close(rolled(*(x[0] for x in args)), expected[0], tolerance(bot, which, args))


@pytest.mark.quick
@pytest.mark.parametrize("which", ["inverse_dynamics", "forward_dynamics", "bias_forces"])
@pytest.mark.parametrize("name", ["mixed3", "tree9", "urdf"])
def test_with_external_forces_and_dissipation(name: str, which: str):
    bot = robot(name)
    reference = function(name, which, False, "llvm", True)
    args = arguments(bot, reference)
    assert reference.inputs[-1] == "f_ext"
    expected = reference(*args)
    plain = function(name, which, False, "llvm")(*args[:-1])
    assert np.abs(expected - plain).max() > 0.1
    for backend in ("llvm", "interpreter"):
        got = function(name, which, True, backend, True)(*args)
        assert close(got, expected, tolerance(bot, which, args))


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: ls.robots.chain_model(70, 1, "mixed"), lambda: tree_model(70, 3)])
def test_seventy_links(make: Any):
    """Above the bound, where loops are what users get."""
    model: Model = make()
    bot = ls.Robot(model)
    assert ROLL_ABOVE < 70
    q, qd, x = samples(bot, 3, seed=32)
    x = bot.inverse_dynamics(q, qd, x)  # a torque that the arm can take, or qd and its products grow past bounds
    written = bot.compile("inverse_dynamics", rolled=False, backend="interpreter")(q, qd, x)
    plain = [
        np.array([f(model, *rows) for rows in zip(*args, strict=True)])
        for f, args in ((forward_dynamics, (q, qd, x)), (mass_matrix, (q,)))
    ]
    bound = 1e-15 * max([1e3, *(condition(model, row) for row in q)])  # forward dynamics solves with M
    for which, args, expected, tolerance in (
        ("inverse_dynamics", (q, qd, x), written, 1e-12),
        ("forward_dynamics", (q, qd, x), plain[0], bound),
        ("mass_matrix", (q,), plain[1], 1e-12),
    ):
        chosen = bot.compile(which)
        assert chosen.program.rolled and close(chosen(*args), expected, tolerance)
    frame = bot.frame_names[-1]
    for which in FRAMED:
        rolled, written = (bot.compile((which, frame), rolled=r, backend="interpreter") for r in (True, False))
        assert close(rolled(q), written(q), 1e-12)
        assert close(bot.compile((which, frame))(q), written(q), 1e-12)


@pytest.mark.slow
def test_a_thousand_links_compile_and_come_back():
    bot = ls.robots.chain(1000)
    q, qd, qdd = (0.1 * x for x in samples(bot, 2, seed=33))
    tau = bot.inverse_dynamics(q, qd, qdd)
    back = bot.forward_dynamics(q, qd, tau)
    # a chain of a thousand links is ill conditioned: the torque that comes out is what can be compared
    again = bot.inverse_dynamics(q, qd, back)
    assert close(again, tau, 1e-11)
    assert np.isfinite(back).all() and np.abs(back - qdd).max() < 1e-2 * np.abs(qdd).max()


def test_programs_of_any_length_are_of_one_size():
    def rolled(n: int) -> Together:
        model = ls.Robot(ls.robots.chain_model(n)).canonical
        return Together((RobotFunction(model, "forward_dynamics", "filter_smoother"),), rolled=True)

    sizes = {n: sum(len(b.nodes) for b in rolled(n).trace().bodies()) for n in (30, 300)}
    assert sizes[30] == sizes[300]


@pytest.mark.quick
def test_the_shape_of_a_rolled_program():
    program = Together((RobotFunction(robot("mixed8").canonical, "mass_matrix", "composite"),), rolled=True).trace()
    kinds = [type(step) for step in program.steps]
    assert kinds.count(PairLoop) == 1 and Loop in kinds
    program = Together((RobotFunction(robot("mixed8").canonical, "pose", "", "tool"),), rolled=True).trace()
    assert isinstance(program.steps[-1], Block)
    assert len(program.kinds) == len(program.parents) == 8


@pytest.mark.quick
def test_several_results_share_their_loops():
    bot = robot("tree9")
    together = bot.compile(["mass_matrix", "bias_forces", ("jacobian", "camera")], rolled=True)
    q, qd = samples(bot, 4, seed=34, count=2)
    M, h, J = together(q, qd)
    assert close(M, bot.mass_matrix(q), 1e-12) and close(h, bot.bias_forces(q, qd), 1e-12)
    assert close(J, bot.jacobian(q, "camera"), 1e-12)


def test_a_sample_that_is_not_finite_touches_no_other():
    bot = robot("tree9")
    for which in ("inverse_dynamics", "mass_matrix"):
        rolled = function("tree9", which, True, "llvm")
        args = arguments(bot, rolled, 7)
        good = rolled(*args)
        args[0][2, 4] = np.nan
        got = rolled(*args)
        assert np.isnan(got[2]).all() and np.array_equal(np.delete(got, 2, 0), np.delete(good, 2, 0))


@pytest.mark.quick
@pytest.mark.parametrize("rolled", [False, True])
def test_the_inverse_of_m_of_a_chain_with_joints_of_several_dof(rolled: bool):
    """(83) with a block for each joint, against the inverse of the dense M."""
    bot = random_robot(("free", "revolute", "spherical", "prismatic", "universal", "revolute"))
    q = bot.random(np.random.default_rng(3))
    inverse = bot.compile("mass_matrix_inverse", method="costate_covariance", rolled=rolled, backend="interpreter")
    assert inverse.program.rolled == rolled
    M = bot.mass_matrix(q)
    assert np.abs(inverse(q) @ M - np.eye(bot.nv)).max() <= 1e-14 * np.linalg.cond(M)
