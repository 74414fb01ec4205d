"""Every method of the functions of dynamics, of every robot, on both backends, in both precisions: one answer.

Methods are asked of the robot, so that a new one is tested here as soon as it is entered into the table.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from robots_for_tests import ROBOTS, condition, frame_pose, kinematics, robot, samples
from robots_for_tests import forward_dynamics as oracle_forward
from robots_for_tests import inverse_dynamics as oracle_inverse
from robots_for_tests import jacobian as oracle_jacobian
from robots_for_tests import mass_matrix as oracle_mass

import linksweep as ls
from linksweep.functions.functions import FUNCTIONS

# Machine code of every method takes time to compile: all of them for these, the default ones for all robots.
COMPILED = ("puma560", "mixed1", "mixed3", "tree4", "urdf")
COUNT = 5  # does not fill the lanes
EXPECTED: dict[str, Callable[..., np.ndarray]] = {
    "inverse_dynamics": oracle_inverse,
    "forward_dynamics": oracle_forward,
    "mass_matrix": oracle_mass,
    "mass_matrix_inverse": lambda model, q: np.linalg.inv(oracle_mass(model, q)),
    "bias_forces": oracle_inverse,
    "gravity_forces": oracle_inverse,
}
SOLVES = ("forward_dynamics", "mass_matrix_inverse")
ROUNDING = {"float64": 1e-15, "float32": 6e-8}
BOUND = {"float64": 1e-12, "float32": 5e-6}  # of the largest output


@functools.cache
def arguments(name: str, count: int) -> tuple[np.ndarray, ...]:
    """q, qd and qdd or tau that both precisions hold exactly; slow enough that forces of every kind matter."""
    return tuple(x.astype(np.float32).astype(np.float64) / 2 for x in samples(robot(name), COUNT, seed=71))[:count]


@functools.cache
def reference(name: str, function: str, count: int) -> np.ndarray:
    args = arguments(name, count)
    return np.array([EXPECTED[function](robot(name).model, *(x[k] for x in args)) for k in range(COUNT)])


@functools.cache
def worst_condition(name: str) -> float:
    return max(condition(robot(name).model, q) for q in arguments(name, 1)[0])


def check(name: str, function: str, method: str, backend: str, dtypes: tuple[str, ...]) -> None:
    compiled = robot(name).compile(function, method=method, backend=backend)
    args = arguments(name, len(compiled.inputs))
    expected = reference(name, function, len(args))
    for dtype in dtypes:
        got = compiled(*(x.astype(dtype) for x in args))
        assert got.dtype == dtype and got.shape == expected.shape
        tolerance = BOUND[dtype]
        if function in SOLVES:  # both the oracle and the method solve with M: rounding grows with its condition
            tolerance = max(tolerance, ROUNDING[dtype] * worst_condition(name))
        error = np.abs(got - expected).max() / np.abs(expected).max()
        assert error <= tolerance, (method, backend, dtype, error, tolerance)


@pytest.mark.cases(8)
@pytest.mark.parametrize("function", EXPECTED)
@pytest.mark.parametrize("name", ROBOTS)
def test_every_method_in_the_interpreter(name: str, function: str):
    methods = robot(name).methods(function)
    assert methods and len(set(methods)) == len(methods)
    for method in methods:
        check(name, function, method, "interpreter", ("float64", "float32"))


@pytest.mark.quick
@pytest.mark.parametrize("name", ["mixed3", "tree4"])
def test_every_method_of_a_small_robot(name: str):
    for function in EXPECTED:
        for method in robot(name).methods(function):
            check(name, function, method, "interpreter", ("float64",))


@pytest.mark.parametrize("function", EXPECTED)
@pytest.mark.parametrize("name", COMPILED)
def test_every_method_as_machine_code(name: str, function: str):
    for method in robot(name).methods(function):
        check(name, function, method, "llvm", ("float64", "float32"))


@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics", "mass_matrix"])
@pytest.mark.parametrize("name", [name for name in ROBOTS if name not in COMPILED])
def test_default_methods_as_machine_code(name: str, function: str):
    check(name, function, robot(name).methods(function)[0], "llvm", ("float64",))


@pytest.mark.quick
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
def test_poses_and_jacobians(name: str, backend: str):
    bot = robot(name)
    (q,) = arguments(name, 1)
    frames = [bot.frame_names[0], bot.frame_names[-1], bot.frame_names[len(bot.frame_names) // 2]]
    expected: list[Any] = []
    for frame in frames:
        expected.append([frame_pose(bot.model, kinematics(bot.model, row), frame) for row in q])
        expected.append([oracle_jacobian(bot.model, row, frame) for row in q])
    wanted = [(function, frame) for frame in frames for function in ("pose", "jacobian")]
    compiled = bot.compile(wanted, backend=backend)
    for dtype in ("float64", "float32"):
        for got, right in zip(compiled(q.astype(dtype)), np.array(expected, dtype=object), strict=True):
            right = np.array(right.tolist(), dtype=float)
            assert got.dtype == dtype and got.shape == right.shape
            assert np.abs(got - right).max() <= BOUND[dtype] * max(1.0, np.abs(right).max())


@pytest.mark.quick
@pytest.mark.parametrize("name", ["mixed3", "tree4"])
def test_external_forces_and_dissipation_by_every_method(name: str):
    bot = robot(name)
    q, qd, x = (u[0] for u in arguments(name, 3))
    f = np.random.default_rng(1).normal(size=(bot.nv, 6))
    forces = dict(zip(bot.link_names, f, strict=True))
    for method in bot.methods("inverse_dynamics"):
        got = bot.compile("inverse_dynamics", method=method, f_ext=True, dissipation=True)(q, qd, x, f)
        expected = oracle_inverse(bot.model, q, qd, x, f_ext=forces, dissipation=True)
        assert np.abs(got - expected).max() <= 1e-12 * np.abs(expected).max(), method
    for method in bot.methods("forward_dynamics"):
        got = bot.compile("forward_dynamics", method=method, f_ext=True, dissipation=True)(q, qd, x, f)
        expected = oracle_forward(bot.model, q, qd, x, f_ext=forces, dissipation=True)
        bound = max(1e-12, ROUNDING["float64"] * worst_condition(name))  # M is solved with
        assert np.abs(got - expected).max() <= bound * np.abs(expected).max(), method


def test_public_methods_agree_with_compile():
    bot = robot("urdf")
    args = arguments("urdf", 3)
    for function in EXPECTED:
        inputs = len(FUNCTIONS[function].inputs)
        expected = reference("urdf", function, inputs)
        for method in bot.methods(function):
            got = getattr(bot, function)(*args[:inputs], method=method)
            assert np.abs(got - expected).max() <= 1e-11 * np.abs(expected).max()  # cond(M) is below 100 here


@pytest.mark.quick
def test_robots_are_equal_by_description():
    assert ls.robots.puma560() == robot("puma560") and hash(ls.robots.puma560()) == hash(robot("puma560"))
