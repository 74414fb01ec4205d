"""Rollouts in JAX: a callback into the compiled loop over all steps, its gradient by the compiled adjoint.

A rollout is one long call, so that the way through Python is a small part of it.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from ..errors import ArgumentError
from ..simulation.gradient import Rollout
from .rollouts import FIRST, Array, mapped_first, pulled_back, result_shapes, summed


def wrap_rollout(roll: Rollout) -> Array:
    """q0, qd0, tau -> q, qd over JAX arrays, differentiable in reverse."""
    states, slopes = _callback(roll, roll.forward, (1, 1)), _callback(roll, pulled_back(roll), (0, 0, 1))

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


def _callback(roll: Rollout, function: Callable[..., Array], firsts: tuple[int, ...]) -> Array:
    """A function over NumPy as one over JAX; mapped, it runs once, with a leading axis more. `firsts`: of results."""

    @jax.custom_batching.custom_vmap
    def call(*arrays: Array) -> Array:
        dtype = arrays[0].dtype

        def on_host(*given: Array) -> Array:
            return tuple(x.astype(dtype, copy=False) for x in function(*map(np.asarray, given)))

        shapes = result_shapes(roll, [x.shape for x in arrays])
        results = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
        return tuple(jax.pure_callback(on_host, tuple(results), *arrays))

    @call.def_vmap
    def _(size: int, mapped: Array, *arrays: Array) -> Array:
        results = call(*mapped_first(arrays, mapped, jnp.moveaxis))
        return tuple(jnp.moveaxis(x, k, 0) for x, k in zip(results, firsts, strict=True)), (True,) * len(firsts)

    return call
