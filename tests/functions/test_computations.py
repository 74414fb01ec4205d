"""Computations of all kinds nest, compile, export and enter JAX and PyTorch: functions, a controller, a time step."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from pin_models import random_robot
from robots_for_tests import close, robot

import linksweep as ls
from linksweep.functions.c_export import c_files
from linksweep.functions.compiled import CompiledFunction, compiled
from linksweep.functions.computation import Computation, Derivative, Jvp, RobotFunction, Together, Vjp
from linksweep.simulation import PD
from linksweep.simulation.controllers import Constant, ControllerTorque
from linksweep.simulation.dynamics import forward_dynamics_of
from linksweep.simulation.fixed_step import TimeStep

ARM = ls.robots.planar(2)
STEP = 1e-6  # of central differences


def controller() -> Computation:
    law = PD(np.array([0.3, -0.2]), 30.0, 4.0)
    return ControllerTorque(ARM.canonical, law.control_law(ARM))


def step() -> Computation:
    return TimeStep(forward_dynamics_of(ARM, None, False), "rk4", Constant(np.zeros(2)).control_law(ARM))


COMPUTATIONS = {"controller": controller, "rk4 step": step}


def arguments(computation: Computation, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [
        np.full(array.shape, 0.01) if array.name == "dt" else rng.uniform(-1, 1, array.shape)
        for array in computation.inputs
    ]


def results(function: CompiledFunction, args: list[np.ndarray]) -> list[np.ndarray]:
    found = function(*args)
    return list(found) if isinstance(found, tuple) else [found]


def differences(computation: Computation, args: list[np.ndarray], wrt: str) -> list[np.ndarray]:
    """d outputs / d input by central differences."""
    function = compiled(computation, backend="interpreter")
    k = function.inputs.index(wrt)
    columns = []
    for i in range(args[k].size):
        ends = []
        for sign in (1.0, -1.0):
            moved = [x.copy() for x in args]
            moved[k].flat[i] += sign * STEP
            ends.append(results(function, moved))
        columns.append([(a - b) / (2.0 * STEP) for a, b in zip(*ends, strict=True)])
    return [np.stack(column, axis=-1) for column in zip(*columns, strict=True)]


@pytest.mark.quick
@pytest.mark.cases(2)
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_they_are_values_that_compile(name: str):
    computation = COMPUTATIONS[name]()
    assert computation == COMPUTATIONS[name]() and hash(computation) == hash(COMPUTATIONS[name]())
    assert pickle.loads(pickle.dumps(computation)) == computation
    function = compiled(computation)
    assert compiled(COMPUTATIONS[name]()) is function
    assert function.counts.total > 0
    args = arguments(computation)
    for a, b in zip(results(function, args), results(compiled(computation, backend="interpreter"), args), strict=True):
        assert close(a, b, 1e-12)


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_derivatives_and_products(name: str):
    computation = COMPUTATIONS[name]()
    args, rng = arguments(computation), np.random.default_rng(1)
    for wrt in ("q", "qd", computation.inputs[-1].name):
        expected = differences(computation, args, wrt)
        slopes = results(compiled(Derivative(computation, wrt)), args)
        for found, right in zip(slopes, expected, strict=True):
            assert np.allclose(found, right, rtol=0, atol=1e-7)
        tangent = rng.normal(size=next(array.shape for array in computation.inputs if array.name == wrt))
        pushed = results(compiled(Jvp(computation, (wrt,))), [*args, tangent])
        for found, slope in zip(pushed, slopes, strict=True):
            assert close(found, slope @ tangent, 1e-11)
        weights = [rng.normal(size=array.shape) for array in computation.outputs]
        (pulled,) = results(compiled(Vjp(computation, (wrt,))), [*args, *weights])
        assert close(pulled, sum(w @ slope for w, slope in zip(weights, slopes, strict=True)), 1e-11)


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_second_derivatives(name: str):
    computation = COMPUTATIONS[name]()
    args = arguments(computation)
    first = Derivative(computation, "q")
    for found, right in zip(
        results(compiled(Derivative(first, "qd"), backend="interpreter"), args),
        differences(first, args, "qd"),
        strict=True,
    ):
        assert np.allclose(found, right, rtol=0, atol=1e-6)


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_c(name: str):
    computation = COMPUTATIONS[name]()
    for each in (computation, Vjp(computation, ("q",))):
        source, header = c_files(compiled(each, backend="interpreter"), "f")
        assert "void f(" in source and "void f(" in header


@pytest.mark.slow
@pytest.mark.cases(2)
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_jax(name: str):
    jax = pytest.importorskip("jax", reason="linksweep.jax needs jax, which is not installed")
    from linksweep.jax import wrap

    jax.config.update("jax_enable_x64", True)
    computation = COMPUTATIONS[name]()
    args, f = arguments(computation), wrap(compiled(computation))
    weights = [np.random.default_rng(k).normal(size=array.shape) for k, array in enumerate(computation.outputs)]

    def loss(q: Any) -> Any:
        found = f(q, *args[1:])
        found = found if isinstance(found, tuple) else (found,)
        return sum((w * x).sum() for w, x in zip(weights, found, strict=True))

    expected = sum(w @ d for w, d in zip(weights, differences(computation, args, "q"), strict=True))
    assert np.allclose(jax.grad(loss)(args[0]), expected, rtol=0, atol=1e-7)
    assert np.allclose(jax.jit(jax.jacfwd(loss))(args[0]), expected, rtol=0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.cases(2)
@pytest.mark.parametrize("name", COMPUTATIONS)
def test_torch(name: str):
    torch = pytest.importorskip("torch", reason="linksweep.torch needs torch, which is not installed")
    from linksweep.torch import wrap

    computation = COMPUTATIONS[name]()
    args, f = arguments(computation), wrap(compiled(computation))
    weights = [np.random.default_rng(k).normal(size=array.shape) for k, array in enumerate(computation.outputs)]
    tensors = [torch.tensor(x) for x in args]
    tensors[0].requires_grad_()
    found = f(*tensors)
    found = found if isinstance(found, tuple) else (found,)
    loss: Any = sum((torch.tensor(w) * x).sum() for w, x in zip(weights, found, strict=True))
    loss.backward()
    expected = sum(w @ d for w, d in zip(weights, differences(computation, args, "q"), strict=True))
    assert np.allclose(tensors[0].grad.numpy(), expected, rtol=0, atol=1e-7)


# ---- nesting of robot functions by items


def directional(bot: ls.Robot, item: Any, args: dict[str, np.ndarray], wrt: str, tangent: np.ndarray) -> np.ndarray:
    """The derivative of an item along a tangent by central differences."""
    function = bot.compile(item, backend="interpreter")
    ends = []
    for sign in (1.0, -1.0):
        moved = {**args, wrt: args[wrt] + sign * STEP * tangent}
        ends.append(function(*(moved[name] for name in function.inputs)))
    return (ends[0] - ends[1]) / (2.0 * STEP)


NESTED = [
    ("jvp", ("jvp", ("jvp", "inverse_dynamics", "q"), "q"), "q"),
    ("vjp", ("jvp", "inverse_dynamics", "q"), "qd"),
    ("vjp", ("derivative", "gravity_forces", "q"), "q"),
    ("derivative", ("jvp", ("jvp", "gravity_forces", "q"), "q"), "q"),
    ("vjp", ("vjp", "inverse_dynamics", "q"), "qd"),
]


@pytest.mark.cases(5)
@pytest.mark.parametrize("item", NESTED, ids=str)
def test_items_nest(item: Any):
    bot, rng = robot("planar3"), np.random.default_rng(7)
    kind, inner, wrt = item
    whole = bot.compile(item, backend="interpreter")
    args = {a.name: rng.normal(size=a.shape) for a in whole.signature.inputs}
    found = whole(*(args[name] for name in whole.inputs))
    own = bot.compile(inner, backend="interpreter").inputs
    size = args[wrt].size
    columns = [directional(bot, inner, args, wrt, unit) for unit in np.eye(size)]
    jacobian = np.stack(columns, axis=-1)
    if kind == "derivative":
        assert np.allclose(found, jacobian, rtol=0, atol=1e-5)
        return
    (vector,) = [args[name] for name in whole.inputs if name not in own]
    expected = jacobian @ vector if kind == "jvp" else np.tensordot(vector, jacobian, axes=vector.ndim)
    assert np.allclose(found, expected, rtol=0, atol=1e-5)


def test_inputs_of_nested_products():
    bot = robot("planar3")
    third = bot.compile(("jvp", ("jvp", ("jvp", "inverse_dynamics", "q"), "q"), "q"), backend="interpreter")
    assert third.inputs == ("q", "qd", "qdd", "v_q", "u_q", "u2_q") and third.outputs == ("jvp_jvp_jvp_tau",)


def test_one_input_has_one_shape():
    bot = random_robot(("free", "revolute"))
    with pytest.raises(ls.ArgumentError, match="v_q has shape"):
        bot.compile([("jvp", "gravity_forces", "q"), ("jvp", "mass_matrix", "q", "coordinates")])


def test_functions_are_made_once_and_released():
    arm = ls.robots.planar(3)
    computation = Together((RobotFunction(arm.canonical, "gravity_forces", "newton_euler"),))
    function = compiled(computation, backend="interpreter")
    equal = Together((RobotFunction(ls.robots.planar(3).canonical, "gravity_forces", "newton_euler"),))
    assert compiled(equal, backend="interpreter") is function
    assert compiled(equal, "float32", backend="interpreter") is not function
