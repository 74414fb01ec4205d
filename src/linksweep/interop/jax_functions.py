"""Compiled functions in JAX: the machine code as a foreign function of XLA, its derivatives by compiled Jacobians."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import functools
from typing import Any

from ..backends.xla import capsule
from ..compiled.function import CompiledFunction
from ..compiled.xla import handler
from ..errors import ArgumentError
from .derived import checked, jacobian

try:
    import jax
    import jax.numpy as jnp
except ImportError as error:
    raise ImportError(
        "linksweep.jax needs the package jax, which is not installed: pip install linksweep[jax]"
    ) from error

_registered: set[str] = set()


def wrap(f: CompiledFunction) -> Any:
    """A function of JAX arrays that runs the machine code of `f`, a function from `robot.compile`.

    It takes arrays (..., size) in the order of `f.inputs`, or by their names, and gives one array, or a tuple of
    several. It works under jit, vmap (without copies), scan, grad, jacfwd, jacrev and hessian, in float32 and float64,
    on the CPU. Derivatives by q are by its numbers, as JAX understands them: with quaternions not along the rates.
    """
    function = checked(f)
    names, single = function.inputs, len(function.outputs) == 1
    call = _differentiable(function)

    def wrapped(*args: Any, **named: Any) -> Any:
        unknown = [name for name in named if name not in names[len(args) :]]
        if unknown or len(args) + len(named) != len(names):
            given = f"{len(args)} arguments{f' and {chr(44).join(named)}' if named else ''}"
            raise ArgumentError(
                f"{function.name} got {given}, expected {', '.join(names)}: pass an array for each, once."
            )
        arrays = _prepared(function, (*args, *(named[name] for name in names[len(args) :])))
        results = call(*arrays)
        return results[0] if single else results

    wrapped.__name__ = wrapped.__qualname__ = function.name
    wrapped.__doc__ = f"{function!r} in JAX."
    return wrapped


def _prepared(function: CompiledFunction, args: tuple[Any, ...]) -> list[Any]:
    """The arguments as arrays of one floating type and of as many leading axes; what does not fit is refused."""
    arrays = [jnp.asarray(arg) for arg in args]
    kinds = {str(array.dtype) for array in arrays if jnp.issubdtype(array.dtype, jnp.complexfloating)}
    if kinds:
        raise ArgumentError(
            f"{function.name} got {', '.join(kinds)}, expected real numbers: take real or imaginary parts."
        )
    dtype = jnp.result_type(*arrays, jnp.float32)
    if dtype not in (jnp.float32, jnp.float64):
        dtype = jnp.dtype(jnp.float32)
    batches = []
    for argument, array in zip(function.signature.inputs, arrays, strict=True):
        core = argument.shape
        if array.shape[array.ndim - len(core) :] != core or array.ndim < len(core):
            raise ArgumentError(
                f"{function.name}: {argument.name} has shape {array.shape}, expected {argument.wanted}: check its "
                f"last axes."
            )
        batches.append(array.shape[: array.ndim - len(core)])
    try:
        jnp.broadcast_shapes(*batches)
    except ValueError:
        raise ArgumentError(
            f"{function.name}: leading axes are {', '.join(map(str, batches))}, expected shapes that broadcast."
        ) from None
    most = max(map(len, batches), default=0)
    return [
        array.astype(dtype).reshape((1,) * (most - len(batch)) + array.shape)
        for array, batch in zip(arrays, batches, strict=True)
    ]


def _differentiable(function: CompiledFunction) -> Any:
    """The foreign function with its derivative, which is one of this kind again."""

    @jax.custom_jvp
    def call(*arrays: Any) -> Any:
        return _foreign_call(function, arrays)

    @functools.cache
    def derived(by: tuple[str, ...]) -> Any:
        return _differentiable(jacobian(function, by))

    @functools.partial(call.defjvp, symbolic_zeros=True)
    def _(primals: Any, tangents: Any) -> Any:
        symbolic = jax.custom_derivatives.SymbolicZero
        moved = [k for k, tangent in enumerate(tangents) if not isinstance(tangent, symbolic)]
        count = len(function.outputs)
        found = derived(tuple(function.inputs[k] for k in moved))(*primals)
        slopes = []
        for i, output in enumerate(function.signature.outputs):
            total: Any = None
            for place, k in enumerate(moved):
                term = _times(
                    found[count + i * len(moved) + place], tangents[k], output.shape, function.signature.inputs[k].shape
                )
                total = term if total is None else total + term
            slopes.append(total)
        return tuple(found[:count]), tuple(slopes)

    return call


def _times(J: Any, tangent: Any, result: tuple[int, ...], argument: tuple[int, ...]) -> Any:
    """A Jacobian times a tangent, both with leading axes."""
    batch = J.shape[: J.ndim - len(result) - len(argument)]
    matrix = J.reshape(*batch, *result, -1)
    flat = tangent.reshape(*tangent.shape[: tangent.ndim - len(argument)], *(1,) * len(result), -1)
    return (matrix * flat).sum(-1)


def _foreign_call(function: CompiledFunction, arrays: tuple[Any, ...]) -> tuple[Any, ...]:
    dtype = arrays[0].dtype
    cores = [argument.shape for argument in function.signature.inputs]
    batch = jnp.broadcast_shapes(*(a.shape[: a.ndim - len(core)] for a, core in zip(arrays, cores, strict=True)))
    results = [jax.ShapeDtypeStruct((*batch, *output.shape), dtype) for output in function.signature.outputs]
    name = _register(function, dtype.name)
    return tuple(jax.ffi.ffi_call(name, results, vmap_method="expand_dims")(*arrays))


def _register(function: CompiledFunction, dtype: str) -> str:
    """The target of this name is registered once, for good; XLA must be awake before."""
    name, address = handler(function, dtype)
    if name not in _registered:
        jax.devices("cpu")
        jax.ffi.register_ffi_target(name, capsule(address), platform="cpu")
        _registered.add(name)
    return name
