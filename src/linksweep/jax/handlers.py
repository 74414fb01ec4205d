"""Compiled functions as handlers of XLA's foreign functions: compiled or from the cache, and never unloaded."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from ..backends import llvm, xla
from ..backends.target import host_target
from ..backends.trig import libm_addresses
from ..backends.xla import Plan, rollout_handler_ir
from ..support.lazy import Making

if TYPE_CHECKING:
    from ..functions.compiled import CompiledFunction

_handlers: Making[llvm.LoadedCode] = Making()
_kept: dict[str, llvm.LoadedCode] = {}  # XLA keeps the address for good, so the code stays


def handler(function: CompiledFunction, dtype: str, plan: Plan | None = None) -> int:
    """The address of a function's handler. `plan`: of many steps."""
    key = llvm.cache_key(("xla", function.computation, plan), dtype, host_target())
    if key not in _kept:
        _kept[key] = _handlers.get(key, lambda: _loaded(function, dtype, plan, key))
    return _kept[key]["handler"]


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
