"""Parts shared by compiled functions and rollouts in JAX: XLA foreign functions, argument checks, sharding.

Three parts of JAX that a primitive needs inside `shard_map` and for arrays on several devices are not public. They are
looked up here, and left out in versions of JAX that do not have them.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import functools
import re
import string
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from jax._src import core
from jax.interpreters import mlir
from jax.sharding import NamedSharding, PartitionSpec

from ..backends import llvm, xla
from ..backends.target import host_target
from ..backends.trig import libm_addresses
from ..backends.xla import Plan, capsule, rollout_handler_ir
from ..errors import ArgumentError
from ..functions.compiled import CompiledFunction
from ..simulation.gradient import FrameworkArray as Array
from ..support.checks import refuse_foreign
from ..support.lazy import Making
from ..support.messages import shown

try:
    from jax._src.custom_partitioning_sharding_rule import sdy_sharding_rule_to_mlir, str_to_sdy_sharding_rule
except ImportError:
    sdy_sharding_rule_to_mlir = None

# Inside shard_map: lets arguments that vary over different axes of the mesh vary over all of these.
_aligned = getattr(core, "auto_insert_reshard", None) or getattr(core, "standard_insert_pvary", lambda *args: args)
_registered: set[str] = set()
_handlers: Making[llvm.LoadedCode] = Making()
_loaded_code: dict[str, llvm.LoadedCode] = {}  # never unloaded: XLA keeps the address


def register(name: str, function: CompiledFunction, dtype: str, plan: Plan | None = None, sharded: bool = False) -> str:
    """Register machine code with XLA under this name, once and for good. `plan`: of many steps.

    sharded: XLA may split its leading axes over devices.
    """
    if name not in _registered:
        jax.devices("cpu")  # XLA must be awake before
        jax.ffi.register_ffi_target(name, capsule(handler(function, dtype, plan)), platform="cpu")
        if sharded:
            jax.ffi.register_ffi_target_as_batch_partitionable(name)
        _registered.add(name)
    return name


def target_names(module: str) -> list[str]:
    """The targets of linksweep that a module of StableHLO calls."""
    return sorted(set(re.findall(r"(linksweep_\w+/[\w/:,]+)", module)))


def bind(primitive: Array, *args: Array, **options: Array) -> Array:
    """Bind a primitive, its arguments as shard_map wants them."""
    return primitive.bind(*_aligned(*args), **options)


def result_type(args: Sequence[Array], shape: tuple[int, ...], axes: int) -> Array:
    """Return the abstract array of a result, which shares `axes` leading axes with the arguments."""
    like = args[0]
    if getattr(like, "sharding", None) is None:
        return like.update(shape=shape, weak_type=False)
    leading: list[Array] = [None] * axes
    for arg in args:
        for axis, name in enumerate(arg.sharding.spec[:axes]):
            leading[axis] = leading[axis] or name
    spec = PartitionSpec(*leading, *[None] * (len(shape) - axes))
    return like.update(shape=shape, weak_type=False, sharding=NamedSharding(like.sharding.mesh, spec))


def on_several_devices(context: Array) -> bool:
    """Whether a lowering is for a program that XLA splits over devices; inside shard_map it does not."""
    return getattr(context.module_context.axis_context, "num_devices", 1) > 1


def sharding_attributes(context: Array, operands: Sequence[Array], axes: int) -> dict[str, Array]:
    """What lets XLA split the leading axes of a foreign function, which all arguments and results have."""
    attributes = {"mhlo.frontend_attributes": mlir.ir_attribute({"num_batch_dims": str(axes)})}
    if sdy_sharding_rule_to_mlir is not None and getattr(jax.config, "jax_use_shardy_partitioner", False):
        from jaxlib.mlir import ir

        letters = iter(string.ascii_letters)
        leading = [next(letters) for _ in range(axes)]
        sides = [
            ", ".join(" ".join([*leading, *(next(letters) for _ in aval.shape[axes:])]) for aval in avals)
            for avals in (context.avals_in, context.avals_out)
        ]
        element = ir.RankedTensorType(operands[0].type).element_type
        results: list[ir.Type] = [ir.RankedTensorType.get(aval.shape, element) for aval in context.avals_out]
        rule = str_to_sdy_sharding_rule(" -> ".join(sides))
        attributes["sdy.sharding_rule"] = sdy_sharding_rule_to_mlir(rule, [x.type for x in operands], results)
    return attributes


def as_arrays(function: str, names: Sequence[str], args: Sequence[Array]) -> list[Array]:
    """The arguments as arrays of one type, float32 or float64."""
    arrays = []
    for name, arg in zip(names, args, strict=True):
        if not isinstance(arg, jax.Array):
            refuse_foreign(f"{function}: {name}", arg)
        try:
            array = None if arg is None else jnp.asarray(arg)
        except (TypeError, ValueError, OverflowError):
            array = None
        if array is None:
            raise ArgumentError(f"{function}: {name} is {shown(arg)}, expected an array of real numbers.")
        if not (array.dtype == bool or jnp.issubdtype(array.dtype, jnp.number)) or jnp.iscomplexobj(array):
            raise ArgumentError(f"{function}: {name} has type {array.dtype}, expected real numbers.")
        arrays.append(array)
    dtype = jnp.result_type(*arrays, jnp.float32)
    return [array.astype(dtype) for array in arrays]


def handler(function: CompiledFunction, dtype: str, plan: Plan | None = None) -> int:
    """Return the address of a function as a handler of XLA, compiled or from the cache. plan: of many steps."""
    key = llvm.cache_key(("xla", function.computation, plan), dtype, host_target())
    if key not in _loaded_code:
        _loaded_code[key] = _handlers.get(key, lambda: _loaded(function, dtype, plan, key))
    return _loaded_code[key]["handler"]


def _loaded(function: CompiledFunction, dtype: str, plan: Plan | None, key: str) -> llvm.LoadedCode:
    target = host_target()

    def make() -> tuple[llvm.IRModule, float]:
        kernel = dtype if plan is None else "float64"  # many steps are computed in float64, whatever comes in
        program = function.computation.trace()  # not function.program, which would be kept
        cost = llvm.predicted_cost(program, target.lanes(kernel))
        if plan is None:
            sides = ([a.shape for a in side] for side in (function.signature.inputs, function.signature.outputs))
            extra = functools.partial(xla.handler_ir, function.name, *sides, dtype, cost)
        else:
            extra = functools.partial(rollout_handler_ir, function.name, plan, dtype, cost)
        return llvm.kernel_module(llvm.for_target(program, target), kernel, target, extra), cost

    code = llvm.cached_code(key, make)[0]
    return llvm.LoadedCode(code, ("handler",), {**libm_addresses(), **xla.handler_symbols()})
