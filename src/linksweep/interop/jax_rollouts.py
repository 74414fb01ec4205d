"""Rollouts in JAX: all steps as one foreign function of XLA, its gradient by the compiled adjoint.

Long ones run in the threads of XLA's own pool. In float32 and without machine code a callback runs them, in float64.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..backends.xla_rollout import Buffer, Place, Plan
from ..errors import ArgumentError
from ..simulation.gradient import BareStepRecipe, Rollout, StepAdjointRecipe
from .jax_targets import registered
from .rollouts import FIRST, Array, mapped_first, pulled_back, result_shapes, summed


def wrap_rollout(roll: Rollout) -> Array:
    """q0, qd0, tau -> q, qd over JAX arrays, differentiable in reverse."""
    states = _mapped(roll, _states(roll), roll.forward, (1, 1))
    slopes = _mapped(roll, _slopes(roll), pulled_back(roll), (0, 0, 1))

    @jax.custom_vjp
    def call(*given: Array) -> Array:
        return states(*given)

    def kept(*given: Array) -> Array:
        found = states(*given)
        return found, (given, found)

    def pulled(residuals: Array, weights: Array) -> Array:
        given, passed = residuals
        found = slopes(*given, *weights, *passed)
        return tuple(summed(slope, x.shape, k) for slope, x, k in zip(found, given, FIRST, strict=False))

    call.defvjp(kept, pulled)

    def rollout(q0: Array, qd0: Array, tau: Array) -> Array:
        arrays = [jnp.asarray(x) for x in (q0, qd0, tau)]
        dtype = jnp.result_type(*arrays, jnp.float32)
        if jnp.issubdtype(dtype, jnp.complexfloating):
            raise ArgumentError(f"rollout got {dtype}, expected real numbers: take real or imaginary parts.")
        roll.batch(*(x.shape for x in arrays))  # an error when it is traced, not when it runs
        return call(*(x.astype(dtype) for x in arrays))

    rollout.__doc__ = f"{roll!r} in JAX."
    return rollout


def _mapped(roll: Rollout, foreign: Array, on_host: Callable[..., Array], firsts: tuple[int, ...]) -> Array:
    """A function over JAX: mapped, it runs once, with a leading axis more. `firsts`: of results."""

    @jax.custom_batching.custom_vmap
    def call(*arrays: Array) -> Array:
        shapes, dtype = result_shapes(roll, [x.shape for x in arrays]), arrays[0].dtype
        results = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
        if roll.backend == "llvm" and dtype == jnp.float64:
            return tuple(x.reshape(to.shape) for x, to in zip(foreign(results, *arrays), results, strict=True))

        def converted(*given: Array) -> Array:
            return tuple(x.astype(dtype, copy=False) for x in on_host(*map(np.asarray, given)))

        return tuple(jax.pure_callback(converted, tuple(results), *arrays))

    @call.def_vmap
    def _(size: int, mapped: Array, *arrays: Array) -> Array:
        results = call(*mapped_first(arrays, mapped, jnp.moveaxis))
        return tuple(jnp.moveaxis(x, k, 0) for x, k in zip(results, firsts, strict=True)), (True,) * len(firsts)

    return call


def _states(roll: Rollout) -> Array:
    """q0, qd0, tau -> q, qd as a foreign function: a step writes the states that the next one reads."""
    nq, nv = roll.robot.nq, roll.robot.nv
    start = (Buffer("arg0", nq), Buffer("arg1", nv), Buffer("arg2", 1), Buffer("arg3", nv, 0))
    q, qd = Buffer("ret0", nq, 1), Buffer("ret1", nv, 1)
    plan = Plan(
        (*start, q, qd),
        ((Place("ret0"), Place("arg0")), (Place("ret1"), Place("arg1"))),
        (Place("ret0", 0, 1), Place("ret1", 0, 1), Place("arg2"), Place("arg3", 0, 1)),
        (Place("ret0", 1, 1), Place("ret1", 1, 1)),
    )

    def call(results: Array, q0: Array, qd0: Array, tau: Array) -> Array:
        batch = results[0].shape[1:-1]
        given = *(_in_rows(x, batch, 0, True) for x in (q0, qd0)), np.full((1, 1), roll.dt), _in_rows(tau, batch, 1)
        return _foreign(roll, BareStepRecipe, plan, results, (1, 1), given)

    return call


def _slopes(roll: Rollout) -> Array:
    """q0, qd0, tau, weights, states -> slopes, from the last step to the first: lambda stays where it is."""
    nq, nv = roll.robot.nq, roll.robot.nv
    weights, states = (Buffer("arg0", nq, 1), Buffer("arg1", nv, 1)), (Buffer("arg2", nq, 1), Buffer("arg3", nv, 1))
    slopes = Buffer("ret0", nq), Buffer("ret1", nv), Buffer("ret2", nv, 0)
    by_q, by_qd = Place("ret0"), Place("ret1")
    plan = Plan(
        (*weights, *states, Buffer("arg4", 1), Buffer("arg5", nv, 0), *slopes),
        ((by_q, Place("arg0", -1)), (by_qd, Place("arg1", -1))),
        (
            by_q, by_qd, Place("arg2", -2, -1), Place("arg3", -2, -1), Place("arg4"), Place("arg5", -1, -1),
            Place("arg0", -2, -1), Place("arg1", -2, -1),
        ),
        (by_q, by_qd, Place("ret2", -1, -1)),
    )  # fmt: skip

    def call(results: Array, q0: Array, qd0: Array, tau: Array, *moving: Array) -> Array:
        batch = results[0].shape[:-1]
        rows = [_in_rows(x, batch, 1, whole) for x, whole in zip(moving, (True, True, False, False), strict=True)]
        given = *rows, np.full((1, 1), roll.dt), _in_rows(tau, batch, 1)
        return _foreign(roll, StepAdjointRecipe, plan, results, (0, 0, 1), given)

    return call


def _foreign(
    roll: Rollout, kind: type[BareStepRecipe | StepAdjointRecipe], plan: Plan, results: Array, firsts: Array,
    given: Array,
) -> Array:  # fmt: skip
    """The handler's call, its results with their leading axes as one."""
    flat = [
        jax.ShapeDtypeStruct((*x.shape[:first], math.prod(x.shape[first:-1]), x.shape[-1]), x.dtype)
        for x, first in zip(results, firsts, strict=True)
    ]
    return jax.ffi.ffi_call(registered(roll.function(kind), "float64", plan), flat)(*given)


def _in_rows(x: Array, batch: tuple[int, ...], first: int, whole: bool = False) -> Array:
    """Leading axes, which begin at `first`, as one of all rollouts; of length 1 where they share x, unless `whole`."""
    moments, own, size = x.shape[:first], x.shape[first:-1], x.shape[-1]
    if math.prod(own) == 1 and not whole:
        return x.reshape(*moments, 1, size)
    aligned = x.reshape(*moments, *(1,) * (len(batch) - len(own)), *own, size)
    return jnp.broadcast_to(aligned, (*moments, *batch, size)).reshape(*moments, math.prod(batch), size)
