"""Derivatives of Programs against differences of 50 digits, against central differences, and against mechanics."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from robots_for_tests import at_rest, big, close, compiled, condition, floats, mass_matrix, robot, samples

from linksweep.algorithms.forward.filter_smoother import filter_smoother
from linksweep.algorithms.inverse.newton_euler import newton_euler
from linksweep.backends.interpreter import Interpreter
from linksweep.errors import ArgumentError
from linksweep.functions.computation import RobotFunction, Together
from linksweep.mechanism.sweeps import Unrolled
from linksweep.spatial import scalars
from linksweep.spatial.algebra import ZERO_FORCE, Vec
from linksweep.tracing.differentiate import differentiate
from linksweep.tracing.expression import Graph
from linksweep.tracing.program import Array, block_program

ARMS = ("puma560", "stanford", "mixed3", "mixed5", "tree4")
STEP = 1e-20  # of 50 digits: truncation 1e-40, rounding 1e-30


def over_big(name: str, function: str, args: list[list[Any]], dissipation: bool) -> np.ndarray:
    bot = robot(name)
    sweep = Unrolled(bot.canonical, args[0])
    rest = [sweep.split(x) for x in args[1:]]
    algorithm: Any = newton_euler if function == "inverse_dynamics" else filter_smoother
    result = algorithm(sweep, *rest, sweep.same(ZERO_FORCE), at_rest(Vec(*bot.gravity)), dissipation=dissipation)
    values = sweep.join(result.tau if function == "inverse_dynamics" else result.qdd)
    return np.array(values, dtype=object)


def exact_derivative(name: str, function: str, args: list[np.ndarray], k: int, dissipation: bool = False) -> np.ndarray:
    """Central differences of 50 digits: (result, input)."""
    columns = []
    for i in range(len(args[k])):
        ends = []
        for sign in (1, -1):
            moved = [big(x) for x in args]
            moved[k][i] = moved[k][i] + sign * STEP
            ends.append(over_big(name, function, moved, dissipation))
        columns.append(floats((ends[0] - ends[1]) / big([2 * STEP])[0]))
    return np.stack(columns, axis=-1)


@pytest.mark.quick
@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("by", ["q", "qd", "qdd"])
def test_inverse_dynamics(name: str, by: str):
    args = samples(robot(name), seed=11)
    derivative = compiled(name, "inverse_dynamics").derivative(by)(*args)
    expected = exact_derivative(name, "inverse_dynamics", args, ("q", "qd", "qdd").index(by))
    assert close(derivative, expected, 1e-11)


@pytest.mark.parametrize("name", ["puma560", "mixed3", "tree4"])
@pytest.mark.parametrize("by", ["q", "qd", "tau"])
def test_forward_dynamics(name: str, by: str):
    args = samples(robot(name), seed=12)
    derivative = compiled(name, "forward_dynamics").derivative(by)(*args)
    expected = exact_derivative(name, "forward_dynamics", args, ("q", "qd", "tau").index(by))
    # by q it is M^-1 dM M^-1 ...: rounding grows with the square of the condition of M
    assert close(derivative, expected, 1e-14 * max(1e3, condition(robot(name).model, args[0]) ** 2))


@pytest.mark.parametrize("name", ["puma560", "mixed8", "tree9"])
def test_central_differences_of_the_compiled_function(name: str):
    function = compiled(name, "inverse_dynamics")
    q, qd, qdd = samples(robot(name), seed=13)
    step = 1e-5 * np.eye(robot(name).nv)
    got = function.derivative("q")(q, qd, qdd)
    expected = ((function(q + step, qd, qdd) - function(q - step, qd, qdd)) / 2e-5).T
    assert close(got, expected, 1e-8)  # of a step h = 1e-5: truncation h^2 and rounding 1e-16 / h are 1e-10, times size


@pytest.mark.parametrize("name", ARMS)
def test_by_acceleration_it_is_the_mass_matrix_and_by_torque_its_inverse(name: str):
    bot = robot(name)
    q, qd, x = samples(bot, 5, seed=14)
    M = np.array([mass_matrix(bot.model, row) for row in q])
    got = compiled(name, "inverse_dynamics").derivative("qdd")(q, qd, x)
    assert close(got, M, 1e-12)
    inverse = compiled(name, "forward_dynamics").derivative("tau")(q, qd, x)
    for k in range(5):
        assert close(inverse[k] @ M[k], np.eye(bot.nv), 1e-13 * np.linalg.cond(M[k]) + 1e-12)


@pytest.mark.quick
@pytest.mark.parametrize("name", ["tree4", "urdf"])
def test_dissipation(name: str):
    """By qd it gains the damping on the diagonal; Coulomb friction is flat where it is smooth."""
    bot = robot(name)
    args = samples(bot, seed=15)
    got = compiled(name, "inverse_dynamics", dissipation=True).derivative("qd")(*args)
    plain = compiled(name, "inverse_dynamics").derivative("qd")(*args)
    damping = [bot.model.links[i].joint.damping for i in bot.model.document_order]
    assert close(got - plain, np.diag(damping), 1e-11)
    assert close(got, exact_derivative(name, "inverse_dynamics", args, 1, dissipation=True), 1e-11)


@pytest.mark.quick
@pytest.mark.parametrize("name", ["puma560", "mixed5"])
def test_poses_and_potentials(name: str):
    """d pose / dq is the Jacobian's linear half, and d gravity / dq is symmetric: it has a potential."""
    bot = robot(name)
    q = samples(bot, seed=16)[0]
    dT = compiled(name, ("pose", "tool")).derivative("q")(q)
    assert dT.shape == (4, 4, bot.nv)
    J = bot.jacobian(q, "tool")
    assert close(dT[:3, 3], J[3:], 1e-13)
    R = bot.pose(q, "tool")[:3, :3]
    for i in range(bot.nv):
        w = dT[:3, :3, i] @ R.T
        assert close([w[2, 1], w[0, 2], w[1, 0]], J[:3, i], 1e-13)
    dg = compiled(name, "gravity_forces").derivative("q")(q)
    assert close(dg, dg.T, 1e-12)


@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
def test_batches_and_backends(backend: str):
    bot = robot("mixed3")
    args = samples(bot, 2, 4, seed=17)
    function = compiled("mixed3", "inverse_dynamics", backend=backend).derivative("q")
    got = function(*args)
    assert got.shape == (2, 4, 3, 3) and function.outputs == ("dtau_dq",) and function.inputs == ("q", "qd", "qdd")
    for index in np.ndindex(2, 4):
        one = exact_derivative("mixed3", "inverse_dynamics", [x[index] for x in args], 0)
        assert close(got[index], one, 1e-11)


@pytest.mark.quick
def test_every_operation():
    """A program with all of them, against the same formula in central differences."""
    graph = Graph()
    x = [graph.leaf("input", (0, i)) for i in range(3)]

    def formula(x: Any) -> list[Any]:
        a, b, c = x
        return [
            scalars.sin(a * b) - scalars.cos(b) * c,
            scalars.sqrt(a * a + 2.0) / (b * b + 1.0),
            scalars.where(a < b, a * c, b - c) + scalars.sign(c),
            -(a + b) * 3.0 / (1.0 + c * c) + (a - b) * (b - a),
            0.5 + 0.0 * a,
        ]

    program = block_program("all", [Array("x", (3,))], [(Array("y", (5,)), formula(x))]).verify()
    derivative = differentiate(program, "x").verify()
    assert derivative.outputs[0] == Array("dy_dx", (5, 3)) and derivative.name == "all_by_x"
    values = np.random.default_rng(1).normal(size=(20, 3))
    out = np.empty((20, 15))
    Interpreter(derivative)([values], [out])
    for row, got in zip(values, out.reshape(20, 5, 3), strict=True):
        for i in range(3):
            ends = []
            for sign in (1, -1):
                moved = big(row)
                moved[i] = moved[i] + sign * STEP
                ends.append(np.array([y if hasattr(y, "x") else big([y])[0] for y in formula(moved)], dtype=object))
            expected = floats((ends[0] - ends[1]) / big([2 * STEP])[0])
            assert np.allclose(got[:, i], expected, rtol=1e-13, atol=1e-13)


def test_a_derivative_is_as_customised_as_its_program():
    """PUMA's torques do not depend on q1, and no column of zeros is computed."""
    program = RobotFunction(robot("puma560").canonical, "inverse_dynamics", "newton_euler").trace()
    derivative = differentiate(program, "q").verify()
    constant = {e.where[0] for b in derivative.bodies() for e in b.effects if e.value == 0.0}  # type: ignore[union-attr]
    assert {6 * row for row in range(6)} <= constant


@pytest.mark.quick
def test_what_cannot_be_differentiated():
    model = robot("mixed3").canonical
    torques = RobotFunction(model, "inverse_dynamics", "newton_euler")
    with pytest.raises(ArgumentError, match="rolled=False"):
        differentiate(Together((torques,), rolled=True).trace(), "q")
    with pytest.raises(ArgumentError, match="several results"):
        differentiate(Together((torques, RobotFunction(model, "mass_matrix", "composite"))).trace(), "q")
    function = compiled("mixed3", "inverse_dynamics")
    with pytest.raises(ArgumentError, match="cannot be differentiated with respect to 'tau'"):
        function.derivative("tau")
