"""Compiled functions in JAX: primitives around the machine code, with rules for derivatives, vmap and sharding.

    _call       the function itself, a foreign function of XLA
    _product    its derivative times tangents, linear in these; the transpose is the compiled vjp

JAX finds the rules of a primitive again inside scan, fori_loop, lax.map and shard_map.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import overload

from ..errors import ArgumentError
from ..functions.compiled import CompiledFunction
from ..functions.frameworks import by_products, checked, in_order, jacobian, product, product_arguments, unique_name
from ..simulation.gradient import Rollout

try:
    import jax
    import jax.numpy as jnp
    from jax.extend.core import Primitive
    from jax.interpreters import ad, batching, mlir
except ImportError as error:
    raise ImportError(
        "linksweep.jax needs the package jax, which is not installed: pip install linksweep[jax]"
    ) from error

from ..simulation.gradient import FrameworkArray as JaxArray
from .rollouts import JaxRollout
from .targets import as_arrays, bind, on_several_devices, register, result_type, sharding_attributes, target_names


@overload
def wrap(f: CompiledFunction) -> JaxFunction: ...
@overload
def wrap(f: Rollout) -> JaxRollout: ...
def wrap(f: CompiledFunction | Rollout) -> JaxFunction | JaxRollout:
    """A function of JAX arrays that runs the machine code of `f`, a function from `robot.compile` or `ls.rollout`.

    It takes arrays (..., size) in the order of `f.inputs`, or by their names, and returns one array, or a tuple of
    several. It works under jit, vmap (without copies), scan, fori_loop, lax.map, shard_map, grad, jacfwd, jacrev and
    hessian, in float32 and float64, on the CPU. Derivatives with respect to q are with respect to its components: with
    quaternions these are not the derivatives along joint velocities.

    A rollout takes q0, qd0, tau and returns q, qd. It has first derivatives in reverse mode (grad, jacrev).
    """
    return JaxRollout(f) if isinstance(f, Rollout) else JaxFunction(checked(f))


def export(function: JaxArray, **options: JaxArray) -> Callable[..., JaxArray]:
    """`jax.export.export` for a jitted function that calls wrapped functions: `export(jax.jit(f))(*args)`.

    JAX does not serialise foreign functions unless they are named; this names those of linksweep. A process that calls
    the exported program registers their machine code first, by the `register` method of each wrapped function. options:
    those of `jax.export.export`.
    """

    from jax.export import DisabledSafetyCheck
    from jax.export import export as plain

    def exported(*args: JaxArray, **named: JaxArray) -> JaxArray:
        called = target_names(function.lower(*args, **named).as_text())
        checks = [*map(DisabledSafetyCheck.custom_call, called), *options.get("disabled_checks", ())]
        return plain(function, **{**options, "disabled_checks": checks})(*args, **named)

    return exported


class JaxFunction:
    """A compiled function over JAX arrays: see `linksweep.jax.wrap`."""

    def __init__(self, function: CompiledFunction):
        self.function = function
        self.__name__ = self.__qualname__ = function.name
        self.__doc__ = f"{function!r} in JAX."
        self._node = _root(function)

    def __call__(self, *args: JaxArray, **named: JaxArray) -> JaxArray:
        arrays = _prepared(self.function, in_order(self.function, args, named))
        results = bind(_call, *arrays, node=self._node)
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def target(self) -> str:
        """What the names of its targets in XLA begin with."""
        return self._node.name

    def register(self, exported: JaxArray) -> None:
        """Register the machine code, and that of derivatives, which a program from `jax.export` calls."""
        for name in target_names(exported.mlir_module()):
            base, *steps, dtype = name.split("/")
            if base == self.target:
                node = self._node
                for step in steps:
                    kind, _, places = step.partition(":")
                    node = node.derived(kind, tuple(node.function.inputs[int(k)] for k in places.split(",")))
                register(name, node.function, dtype)

    def __reduce__(self) -> tuple[object, ...]:
        return wrap, (self.function,)

    def __repr__(self) -> str:
        return f"{self.function!r} in JAX"


class _Node:
    """A function as a parameter of primitives, compared by identity: one for each function of a process."""

    def __init__(self, function: CompiledFunction, name: str):
        self.function, self.name = function, name
        signature = function.signature
        self.inputs, self.outputs = ([a.shape for a in side] for side in (signature.inputs, signature.outputs))
        self._derived: dict[tuple[str, tuple[str, ...]], _Node] = {}
        self.run = jax.jit(functools.partial(_call.bind, node=self))

    def derived(self, kind: str, by: tuple[str, ...]) -> _Node:
        """With respect to these inputs: values and Jacobians ("jacobian"), or a product ("jvp", "vjp")."""
        if (kind, by) not in self._derived:
            made = jacobian(self.function, by) if kind == "jacobian" else product(self.function, kind, by)
            places = ",".join(str(self.function.inputs.index(name)) for name in by)
            self._derived[kind, by] = _Node(made, f"{self.name}/{kind}:{places}")
        return self._derived[kind, by]

    def __repr__(self) -> str:
        return self.name


_roots: dict[str, _Node] = {}


def _root(function: CompiledFunction) -> _Node:
    name = f"linksweep_{unique_name(function.name, function.computation)}"
    return _roots.setdefault(name, _roots.get(name) or _Node(function, name))


def _prepared(function: CompiledFunction, args: Sequence[JaxArray]) -> list[JaxArray]:
    """The arguments as arrays of one floating type and of as many leading axes."""
    arrays = as_arrays(function.name, function.inputs, args)
    batches = []
    for argument, array in zip(function.signature.inputs, arrays, strict=True):
        core = argument.shape
        if array.shape[array.ndim - len(core) :] != core or array.ndim < len(core):
            raise ArgumentError(
                f"{function.name}: {argument.name} has shape {array.shape}, expected {argument.wanted}."
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
        array.reshape((1,) * (most - len(batch)) + array.shape) for array, batch in zip(arrays, batches, strict=True)
    ]


# ---- the function -------------------------------------------------------------------------------------------------

_call = Primitive("linksweep_call")
_call.multiple_results = True


@_call.def_impl
def _run(*args: JaxArray, node: _Node) -> JaxArray:
    return node.run(*args)


@_call.def_abstract_eval
def _result_types(*args: JaxArray, node: _Node) -> JaxArray:
    return _types(args, node.inputs, node.outputs)


def _types(args: Sequence[JaxArray], cores: JaxArray, outputs: JaxArray) -> list[JaxArray]:
    batch: JaxArray = jnp.broadcast_shapes(
        *(a.shape[: a.ndim - len(core)] for a, core in zip(args, cores, strict=True))
    )
    return [result_type(args, (*batch, *shape), len(batch)) for shape in outputs]


def _derivative(primals: JaxArray, tangents: JaxArray, *, node: _Node) -> tuple[JaxArray, JaxArray]:
    """The values, and their derivative along tangents: by one product, or where it is small by the Jacobian."""
    moved = [k for k, tangent in enumerate(tangents) if type(tangent) is not ad.Zero]
    by = tuple(node.function.inputs[k] for k in moved)
    if by_products(node.function, by):
        values = bind(_call, *primals, node=node)
        return values, bind(_product, *primals, *(tangents[k] for k in moved), node=node, by=by)
    count = len(node.outputs)
    results = bind(_call, *primals, node=node.derived("jacobian", by))
    derivatives = []
    for i, output in enumerate(node.outputs):
        parts = results[count + i * len(by) : count + (i + 1) * len(by)]
        terms = [_times(J, tangents[k], output, node.inputs[k]) for J, k in zip(parts, moved, strict=True)]
        derivatives.append(functools.reduce(jnp.add, terms))
    return results[:count], derivatives


def _times(J: JaxArray, tangent: JaxArray, result: tuple[int, ...], argument: tuple[int, ...]) -> JaxArray:
    """A Jacobian times a tangent, both with leading axes."""
    batch = J.shape[: J.ndim - len(result) - len(argument)]
    matrix = J.reshape(*batch, *result, -1)
    flat = tangent.reshape(*tangent.shape[: tangent.ndim - len(argument)], *(1,) * len(result), -1)
    return (matrix * flat).sum(-1)


def _mapped(primitive: JaxArray, args: JaxArray, dims: JaxArray, **options: JaxArray) -> JaxArray:
    """Under vmap: one more leading axis, of length 1 where an argument is shared."""
    moved = [x[None] if dim is None else jnp.moveaxis(x, dim, 0) for x, dim in zip(args, dims, strict=True)]
    results = bind(primitive, *moved, **options)
    return results, [0] * len(results)


def _lowered(context: JaxArray, *operands: JaxArray, node: _Node) -> JaxArray:
    """The foreign call. Over several devices its leading axes are split, which no argument may share then."""
    dtype, axes = context.avals_out[0].dtype.name, len(context.avals_out[0].shape) - len(node.outputs[0])
    name = f"{node.name}/{dtype}"
    if not axes or not on_several_devices(context):
        return jax.ffi.ffi_lowering(register(name, node.function, dtype))(context, *operands)
    batch = context.avals_out[0].shape[:axes]
    if any(aval.shape[:axes] != batch for aval in context.avals_in):

        def whole(*args: JaxArray) -> JaxArray:
            return _call.bind(*(jnp.broadcast_to(x, (*batch, *x.shape[axes:])) for x in args), node=node)

        return mlir.lower_fun(whole, multiple_results=True)(context, *operands)
    target = register(f"{name}/sharded", node.function, dtype, sharded=True)
    attributes = sharding_attributes(context, operands, axes)
    return jax.ffi.ffi_lowering(target, extra_attributes=attributes)(context, *operands)


ad.primitive_jvps[_call] = _derivative
batching.primitive_batchers[_call] = functools.partial(_mapped, _call)
mlir.register_lowering(_call, _lowered)


# ---- its derivative times tangents: arguments, then tangents of those in `by` ---------------------------------------

_product = Primitive("linksweep_product")
_product.multiple_results = True


@_product.def_impl
def _push(*args: JaxArray, node: _Node, by: tuple[str, ...]) -> JaxArray:
    made = node.derived("jvp", by)
    return bind(_call, *_split(args, node, made), node=made)


def _split(args: JaxArray, node: _Node, made: _Node) -> list[JaxArray]:
    count = len(node.inputs)
    return product_arguments(node.function, made.function, args[:count], args[count:])


@_product.def_abstract_eval
def _product_types(*args: JaxArray, node: _Node, by: tuple[str, ...]) -> JaxArray:
    moved = [shape for name, shape in zip(node.function.inputs, node.inputs, strict=True) if name in by]
    return _types(args, [*node.inputs, *moved], node.outputs)


def _product_derivative(args: JaxArray, tangents: JaxArray, *, node: _Node, by: tuple[str, ...]) -> JaxArray:
    made = node.derived("jvp", by)
    return _derivative(_split(args, node, made), _split(tangents, node, made), node=made)


def _product_transpose(cotangents: JaxArray, *args: JaxArray, node: _Node, by: tuple[str, ...]) -> JaxArray:
    """For each tangent, the sum over results, and over axes along which it was shared."""
    primals, tangents = args[: len(node.inputs)], args[len(node.inputs) :]
    linear = [k for k, tangent in enumerate(tangents) if ad.is_undefined_primal(tangent)]
    made = node.derived("vjp", tuple(by[k] for k in linear))
    weights = [ad.instantiate_zeros(ct) for ct in cotangents]
    pulled = bind(_call, *product_arguments(node.function, made.function, primals, weights), node=made)
    found: list[JaxArray] = [None] * len(tangents)
    for place, k in enumerate(linear):
        total = functools.reduce(jnp.add, pulled[place :: len(linear)])
        shape = tangents[k].aval.shape
        shared = tuple(axis for axis, size in enumerate(shape) if size == 1 and total.shape[axis] != 1)
        found[k] = total.sum(shared, keepdims=True) if shared else total
    return [None] * len(primals) + found


ad.primitive_jvps[_product] = _product_derivative
ad.primitive_transposes[_product] = _product_transpose
batching.primitive_batchers[_product] = functools.partial(_mapped, _product)
mlir.register_lowering(_product, mlir.lower_fun(_push, multiple_results=True))
