"""Operators of PyTorch's dispatcher that share memory with machine code, with rules for every transformation.

An operator is what torch.compile keeps whole. Its autograd rule is a function of a single level, as torch.func itself
makes one of an autograd.Function: autograd, torch.func and torch.compile of either then take the same path.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from ..errors import ArgumentError
from ..simulation.gradient import FrameworkArray as Tensor
from ..support.messages import shown

LIBRARY = torch.library.Library("linksweep", "FRAGMENT")
_TYPES = torch.float64, torch.float32
_PLAIN = torch.Tensor, torch.nn.Parameter


class Rules(Protocol):
    """What an operator computes, and how it is differentiated and mapped."""

    def results(self, arrays: list[Tensor]) -> list[Tensor]:
        """The results, from NumPy's arrays."""
        ...

    def fake(self, *tensors: Tensor) -> list[Tensor]:
        """Results without values."""
        ...

    def backward(self, inputs: Tensor, results: Tensor, gradients: Tensor, needed: Sequence[bool]) -> Sequence[Tensor]:
        """The gradient with respect to each input, None where it is not needed."""
        ...

    def forward(self, inputs: Tensor, tangents: Tensor) -> Sequence[Tensor]:
        """The tangents of the results; tangents of inputs may be None."""
        ...

    def mapped(self, dims: Tensor, tensors: Tensor) -> tuple[Sequence[Tensor], Sequence[int]]:
        """Results, and which axis of each is the mapped one."""
        ...


class Operator:
    """An operator: call it with tensors of any kind. `keep`: its gradient needs the results, too."""

    def __init__(self, name: str, inputs: int, rules: Rules, keep: bool = False):
        self.rules = rules
        LIBRARY.define(f"{name}({', '.join(f'Tensor x{k}' for k in range(inputs))}) -> Tensor[]")
        LIBRARY.impl(name, self._run, "CPU")
        LIBRARY.impl(name, self._watched, "Autograd")
        torch.library.register_fake(f"linksweep::{name}", rules.fake, lib=LIBRARY)
        torch.library.register_vmap(
            f"linksweep::{name}", lambda info, dims, *tensors: rules.mapped(dims, tensors), lib=LIBRARY
        )
        self.dispatched = getattr(torch.ops.linksweep, name).default
        self._function = _differentiable(name, inputs, self.dispatched, rules, keep)

    def __call__(self, *tensors: Tensor) -> Sequence[Tensor]:
        arrays = plain_arrays(tensors)
        return self.dispatched(*tensors) if arrays is None else self.rules.results(arrays)

    def _run(self, *tensors: Tensor) -> list[Tensor]:
        return self.rules.results([as_array(x) for x in tensors])

    def _watched(self, *tensors: Tensor) -> list[Tensor]:
        with enable_single_level_autograd_function():
            return list(self._function.apply(*tensors))


def _differentiable(name: str, inputs: int, operator: Callable[..., Tensor], rules: Rules, keep: bool) -> Tensor:
    """The autograd function of an operator."""

    class Function(_SingleLevelFunction):
        @staticmethod
        def forward(*tensors: Tensor) -> Tensor:
            # Below this level there may be others that watch: they must not see that gradients are off here.
            with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True), torch._C._AutoDispatchBelowAutograd():
                return tuple(operator(*tensors))

        @staticmethod
        def setup_context(ctx: Tensor, given: Tensor, output: Tensor) -> None:
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(*given, *(output if keep else ()))
            ctx.save_for_forward(*given)

        @staticmethod
        def backward(ctx: Tensor, *gradients: Tensor) -> Tensor:
            saved = ctx.saved_tensors
            return tuple(rules.backward(saved[:inputs], saved[inputs:], gradients, ctx.needs_input_grad))

        @staticmethod
        def jvp(ctx: Tensor, *tangents: Tensor) -> Tensor:
            return tuple(rules.forward(ctx.saved_tensors[:inputs], tangents))

    Function.__name__ = Function.__qualname__ = name
    return Function


def plain_arrays(tensors: Sequence[Tensor]) -> list[Tensor] | None:
    """The memory of tensors of one type, where nothing of PyTorch follows what is computed with them; else None.

    No gradient, transformation, mode or trace may: then values are all that counts.
    """
    if (
        _is_compiling()
        or _transformations() is not None
        or forward_ad._current_level >= 0
        or _dispatch_modes()
        or _function_modes()
        or _trace() is not None
    ):
        return None
    arrays, common = [], None
    try:
        for x in tensors:
            if type(x) not in _PLAIN:
                return None
            dtype = x.dtype
            if dtype is not common:
                if common is not None or dtype not in _TYPES:
                    return None
                common = dtype
            if x.requires_grad:
                if _grad_enabled():
                    return None
                x = x.detach()
            arrays.append(x.numpy())
    except (RuntimeError, TypeError):  # not on the CPU, sparse, seen through a sign ...
        return None
    return arrays


# bound once: they are asked at every call
_is_compiling, _grad_enabled = torch.compiler.is_compiling, torch.is_grad_enabled
_transformations = torch._C._functorch.peek_interpreter_stack  # of torch.func
_dispatch_modes, _function_modes = torch._C._len_torch_dispatch_stack, torch._C._len_torch_function_stack
_trace = torch._C._get_tracing_state  # of torch.jit


def as_array(x: Tensor) -> Tensor:
    """The memory of a tensor as an array; copied where it is seen through a sign."""
    x = x.detach() if x.requires_grad else x
    return (x.resolve_neg() if x.is_neg() else x).numpy()


def check_tensor(name: str, x: object) -> None:
    """Raise unless x is a dense tensor of float32 or float64 on the CPU; `name` begins the sentence."""
    if not isinstance(x, torch.Tensor):
        raise ArgumentError(f"{name} is {shown(x)}, expected a tensor: use torch.as_tensor.")
    if x.layout is not torch.strided or x.is_nested:
        kind = "nested" if x.is_nested else str(x.layout).removeprefix("torch.")
        raise ArgumentError(f"{name} is a {kind} tensor, expected a dense one: use .to_dense() or torch.stack.")
    if x.device.type not in ("cpu", "meta"):
        raise ArgumentError(f"{name} is on {x.device}, expected the CPU: move it by .cpu().")
    if x.dtype not in _TYPES:
        raise ArgumentError(f"{name} has type {x.dtype}, expected float64 or float32: convert it by .double().")
