"""Handlers as targets of XLA's foreign functions."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import jax

from ..backends.xla import capsule
from ..backends.xla_rollout import Plan
from ..compiled.function import CompiledFunction
from ..compiled.xla import handler

_registered: set[str] = set()


def registered(function: CompiledFunction, dtype: str, plan: Plan | None = None) -> str:
    """The name of a target, which is registered once, for good; XLA must be awake before. `plan`: of many steps."""
    name, address = handler(function, dtype, plan)
    if name not in _registered:
        jax.devices("cpu")
        jax.ffi.register_ffi_target(name, capsule(address), platform="cpu")
        _registered.add(name)
    return name
