"""Compiled functions in JAX: the machine code as a foreign function of XLA, its derivatives by compiled Jacobians.

Where Jacobians would be large, a primitive stands for their product with tangents: it is linear in those, and its
transpose is the compiled product with weights.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import functools

from ..compiled.function import CompiledFunction
from ..errors import ArgumentError
from ..simulation.gradient import Rollout
from .derived import by_products, checked, jacobian, product, product_arguments

try:
    import jax
    import jax.numpy as jnp
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
except ImportError as error:
    raise ImportError(
        "linksweep.jax needs the package jax, which is not installed: pip install linksweep[jax]"
    ) from error

from .jax_rollouts import wrap_rollout
from .jax_targets import registered
from .rollouts import Array as JaxArray


def wrap(f: CompiledFunction | Rollout) -> JaxArray:
    """A function of JAX arrays that runs the machine code of `f`, a function from `robot.compile` or `ls.rollout`.

    It takes arrays (..., size) in the order of `f.inputs`, or by their names, and gives one array, or a tuple of
    several. It works under jit, vmap (without copies), scan, grad, jacfwd, jacrev and hessian, in float32 and float64,
    on the CPU. Derivatives by q are by its numbers, as JAX understands them: with quaternions not along the rates.

    A rollout takes q0, qd0, tau and gives q, qd. It works under jit, vmap, grad and jacrev.
    """
    if isinstance(f, Rollout):
        return wrap_rollout(f)
    function = checked(f)
    names, single = function.inputs, len(function.outputs) == 1
    call = _differentiable(function)

    def wrapped(*args: JaxArray, **named: JaxArray) -> JaxArray:
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


def _prepared(function: CompiledFunction, args: tuple[JaxArray, ...]) -> list[JaxArray]:
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


def _differentiable(function: CompiledFunction) -> JaxArray:
    """The foreign function with its derivative, which is one of this kind again."""

    @jax.custom_jvp
    def call(*arrays: JaxArray) -> JaxArray:
        return _foreign_call(function, arrays)

    @functools.cache
    def derived(by: tuple[str, ...]) -> JaxArray:
        return _differentiable(jacobian(function, by))

    @functools.cache
    def products(by: tuple[str, ...]) -> _Products:
        return _Products(function, by)

    @functools.partial(call.defjvp, symbolic_zeros=True)
    def _(primals: JaxArray, tangents: JaxArray) -> JaxArray:
        symbolic = jax.custom_derivatives.SymbolicZero
        moved = [k for k, tangent in enumerate(tangents) if not isinstance(tangent, symbolic)]
        count = len(function.outputs)
        by = tuple(function.inputs[k] for k in moved)
        if by_products(function, by):
            slopes = _product.bind(*primals, *(tangents[k] for k in moved), products=products(by))
            return tuple(call(*primals)), tuple(slopes)
        found = derived(tuple(function.inputs[k] for k in moved))(*primals)
        slopes = []
        for i, output in enumerate(function.signature.outputs):
            total: JaxArray = None
            for place, k in enumerate(moved):
                term = _times(
                    found[count + i * len(moved) + place], tangents[k], output.shape, function.signature.inputs[k].shape
                )
                total = term if total is None else total + term
            slopes.append(total)
        return tuple(found[:count]), tuple(slopes)

    return call


class _Products:
    """A function's derivatives by some inputs, times tangents and times weights; compared by identity."""

    def __init__(self, function: CompiledFunction, by: tuple[str, ...]):
        self.function, self.by = function, by
        self.pushed, self.pulled = product(function, "jvp", by), product(function, "vjp", by)

    def split(self, args: JaxArray) -> tuple[JaxArray, JaxArray]:
        count = len(self.function.inputs)
        return args[:count], args[count:]

    def push(self, *args: JaxArray) -> JaxArray:
        """Primals, then tangents."""
        given = product_arguments(self.function, self.pushed, *self.split(args))
        return self.push_call(*given)

    @functools.cached_property
    def push_call(self) -> JaxArray:
        return _differentiable(self.pushed)

    @functools.cached_property
    def pull_call(self) -> JaxArray:
        return _differentiable(self.pulled)

    def pull(self, primals: JaxArray, weights: JaxArray, shapes: JaxArray) -> list[JaxArray]:
        """For each input, the sum over results, and over axes along which the input was shared."""
        found = self.pull_call(*product_arguments(self.function, self.pulled, primals, weights))
        totals = [sum(found[k :: len(self.by)]) for k in range(len(self.by))]
        slopes = []
        for total, shape in zip(totals, shapes, strict=True):
            shared = tuple(k for k, size in enumerate(shape) if size == 1 and total.shape[k] != 1)
            slopes.append(total.sum(shared, keepdims=True) if shared else total)
        return slopes


_product = Primitive("linksweep_product")
_product.multiple_results = True


@_product.def_impl
def _run_product(*args: JaxArray, products: _Products) -> JaxArray:
    given = product_arguments(products.function, products.pushed, *products.split(args))
    return list(_foreign_call(products.pushed, tuple(given)))


@_product.def_abstract_eval
def _shapes_of_product(*args: JaxArray, products: _Products) -> JaxArray:
    inputs = products.function.signature.inputs  # tangents may be mapped alone, as jacfwd does
    cores = [argument.shape for argument in (*inputs, *(x for x in inputs if x.name in products.by))]
    batch = jnp.broadcast_shapes(*(a.shape[: a.ndim - len(c)] for a, c in zip(args, cores, strict=True)))
    outputs = products.function.signature.outputs
    return [jax.core.ShapedArray((*batch, *output.shape), args[0].dtype) for output in outputs]


def _product_slope(primals: JaxArray, tangents: JaxArray, *, products: _Products) -> JaxArray:
    moved = [k for k, tangent in enumerate(tangents) if type(tangent) is not ad.Zero]

    def of_moved(*some: JaxArray) -> JaxArray:
        args = list(primals)
        for k, value in zip(moved, some, strict=True):
            args[k] = value
        return list(products.push(*args))

    return jax.jvp(of_moved, [primals[k] for k in moved], [tangents[k] for k in moved])


def _product_transpose(cotangents: JaxArray, *args: JaxArray, products: _Products) -> JaxArray:
    primals, tangents = products.split(args)
    weights = [ad.instantiate_zeros(ct) for ct in cotangents]
    return [None] * len(primals) + products.pull(primals, weights, [t.aval.shape for t in tangents])


def _product_mapped(args: JaxArray, dims: JaxArray, *, products: _Products) -> JaxArray:
    moved = [x[None] if dim is None else jnp.moveaxis(x, dim, 0) for x, dim in zip(args, dims, strict=True)]
    results = _product.bind(*moved, products=products)
    return results, [0] * len(results)


ad.primitive_jvps[_product] = _product_slope
ad.primitive_transposes[_product] = _product_transpose
batching.primitive_batchers[_product] = _product_mapped
mlir.register_lowering(_product, mlir.lower_fun(_run_product, multiple_results=True))


def _times(J: JaxArray, tangent: JaxArray, result: tuple[int, ...], argument: tuple[int, ...]) -> JaxArray:
    """A Jacobian times a tangent, both with leading axes."""
    batch = J.shape[: J.ndim - len(result) - len(argument)]
    matrix = J.reshape(*batch, *result, -1)
    flat = tangent.reshape(*tangent.shape[: tangent.ndim - len(argument)], *(1,) * len(result), -1)
    return (matrix * flat).sum(-1)


def _foreign_call(function: CompiledFunction, arrays: tuple[JaxArray, ...]) -> tuple[JaxArray, ...]:
    dtype = arrays[0].dtype
    cores = [argument.shape for argument in function.signature.inputs]
    batch = jnp.broadcast_shapes(*(a.shape[: a.ndim - len(core)] for a, core in zip(arrays, cores, strict=True)))
    results = [jax.ShapeDtypeStruct((*batch, *output.shape), dtype) for output in function.signature.outputs]
    name = registered(function, dtype.name)
    return tuple(jax.ffi.ffi_call(name, results, vmap_method="expand_dims")(*arrays))
