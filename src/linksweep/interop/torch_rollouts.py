"""Rollouts in PyTorch: an operator over the compiled loop over all steps, its gradient by the compiled adjoint."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import torch

from ..errors import ArgumentError
from ..simulation.gradient import Rollout
from .rollouts import FIRST, Array, mapped_first, pulled_back, result_shapes, summed

_library = torch.library.Library("linksweep_rollouts", "FRAGMENT")
_numbers = itertools.count()
NAMES = "q0", "qd0", "tau"


def wrap_rollout(roll: Rollout) -> Array:
    """q0, qd0, tau -> q, qd over tensors, differentiable in reverse."""
    number = next(_numbers)
    states = _operator(f"states{number}", roll, roll.forward, 3)
    slopes = _operator(f"slopes{number}", roll, pulled_back(roll), 7)
    pull = _applied(slopes, (0, 0, 1), None)

    def backward(ctx: Array, *gradients: Array) -> Array:
        given, passed = ctx.saved_tensors[:3], ctx.saved_tensors[3:]
        several = gradients[0] if isinstance(gradients[0], (list, tuple)) else gradients
        weights = [
            given[0].new_zeros(shape) if gradient is None else gradient
            for gradient, shape in zip(several, result_shapes(roll, [x.shape for x in given]), strict=True)
        ]
        found = (slopes if torch.compiler.is_compiling() else pull)(*given, *weights, *passed)
        return tuple(summed(slope, x.shape, k) for slope, x, k in zip(found, given, FIRST, strict=False))

    torch.library.register_autograd(states, backward, setup_context=_keep, lib=_library)  # for torch.compile
    apply = _applied(states, (1, 1), backward)

    def rollout(q0: Array, qd0: Array, tau: Array) -> Array:
        given = dict(zip(NAMES, (q0, qd0, tau), strict=True))
        for name, x in given.items():
            if not isinstance(x, torch.Tensor):
                raise ArgumentError(f"{name} is a {type(x).__name__}, expected a tensor: use torch.as_tensor.")
            if x.device.type not in ("cpu", "meta"):
                raise ArgumentError(f"{name} is on {x.device}, expected the CPU: move it by .cpu().")
            if x.dtype not in (torch.float64, torch.float32):
                raise ArgumentError(f"{name} has type {x.dtype}, expected float64 or float32: convert it by .double().")
        roll.batch(*(tuple(x.shape) for x in given.values()))
        dtype = torch.promote_types(torch.promote_types(q0.dtype, qd0.dtype), tau.dtype)
        tensors = [x.to(dtype) for x in given.values()]
        return tuple(states(*tensors) if torch.compiler.is_compiling() else apply(*tensors))

    rollout.__doc__ = f"{roll!r} in PyTorch."
    return rollout


def _operator(name: str, roll: Rollout, function: Callable[..., Array], count: int) -> Array:
    """A function over NumPy as an operator that torch.compile sees through."""

    def run(*tensors: Array) -> list[Array]:
        results = function(*(tensor.detach().numpy() for tensor in tensors))
        return [torch.from_numpy(np.ascontiguousarray(x)).to(tensors[0].dtype) for x in results]

    def fake(*tensors: Array) -> list[Array]:
        return [tensors[0].new_empty(shape) for shape in result_shapes(roll, [x.shape for x in tensors])]

    _library.define(f"{name}({', '.join(f'Tensor x{k}' for k in range(count))}) -> Tensor[]")
    _library.impl(name, run, "CPU")
    torch.library.register_fake(f"linksweep_rollouts::{name}", fake, lib=_library)
    return getattr(torch.ops.linksweep_rollouts, name).default


def _keep(ctx: Array, inputs: Array, output: Array) -> None:
    ctx.save_for_backward(*inputs, *output)


def _applied(operator: Array, firsts: tuple[int, ...], backward_of: Callable[..., Array] | None) -> Array:
    """An operator as torch.func asks for it; mapped, it runs once, with a leading axis more. `firsts`: of results."""

    class Rolled(torch.autograd.Function):
        @staticmethod
        def forward(*tensors: Array) -> Array:
            return tuple(operator(*tensors))

        @staticmethod
        def setup_context(ctx: Array, inputs: Array, output: Array) -> None:
            _keep(ctx, inputs, output)

        @staticmethod
        def backward(ctx: Array, *gradients: Array) -> Array:
            if backward_of is None:
                raise ArgumentError(
                    "a rollout was differentiated twice, expected once: scan over a wrapped function instead."
                )
            return backward_of(ctx, *gradients)

        @staticmethod
        def vmap(info: Array, in_dims: Array, *tensors: Array) -> Array:
            mapped = [dim is not None for dim in in_dims]
            fronted = [x if dim is None else x.movedim(dim, 0) for x, dim in zip(tensors, in_dims, strict=True)]
            return Rolled.apply(*mapped_first(fronted, mapped, torch.movedim)), firsts

    return Rolled.apply
