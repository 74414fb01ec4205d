"""Compiled functions in PyTorch: operators of its dispatcher over shared memory, derivatives by compiled Jacobians.

Each function is a custom operator, so that torch.compile sees through it. Around it stands an autograd.Function, which
is what torch.func (jvp, vmap, jacfwd) and double backward ask for.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import functools

import numpy as np

from ..compiled.function import CompiledFunction
from ..errors import ArgumentError
from ..simulation.gradient import Rollout
from ..support.disk_cache import make_key
from .derived import by_products, checked, jacobian, product, product_arguments

try:
    import torch
except ImportError as error:
    raise ImportError(
        "linksweep.torch needs the package torch, which is not installed: pip install linksweep[torch]"
    ) from error

from .rollouts import Array as Tensor
from .torch_rollouts import wrap_rollout

_library = torch.library.Library("linksweep", "FRAGMENT")
_made: dict[str, _Wrapped] = {}


def wrap(f: CompiledFunction | Rollout) -> Tensor:
    """A function of tensors on the CPU that runs the machine code of `f`, from `robot.compile` or `ls.rollout`.

    It takes tensors (..., size) in the order of `f.inputs`, or by their names, and gives one tensor, or a tuple of
    several; leading axes broadcast. Memory is shared, nothing is copied. autograd, double backward, torch.func and
    torch.compile work. Derivatives by q are by its numbers: with quaternions not along the rates.

    A rollout takes q0, qd0, tau and gives q, qd; it can be differentiated once, in reverse.
    """
    if isinstance(f, Rollout):
        return wrap_rollout(f)
    return _wrapped(checked(f)).outer


def _wrapped(function: CompiledFunction) -> _Wrapped:
    key = make_key(llvmlite="", llvm="", cpu="", features="", recipe=function.recipe, dtype=function.dtype)
    if key not in _made:
        _made[key] = _Wrapped(function, key)
    return _made[key]


class _Wrapped:
    """A function, its operator, and its derivatives once they are asked for."""

    def __init__(self, function: CompiledFunction, key: str):
        self.function = function
        self.cores = [len(argument.shape) for argument in function.signature.inputs]
        name = f"{function.name[:60]}_{key[:16]}"
        places = [f"Tensor x{k}" for k in range(len(function.inputs))]
        _library.define(f"{name}({', '.join(places)}) -> Tensor[]")
        _library.impl(name, self.run, "CPU")
        torch.library.register_fake(f"linksweep::{name}", self.fake, lib=_library)
        torch.library.register_autograd(
            f"linksweep::{name}", self.backward, setup_context=_keep, lib=_library
        )  # for torch.compile
        self.operator = getattr(torch.ops.linksweep, name).default
        self.apply = _autograd_function(self).apply
        self.outer = self._outer()

    @functools.cache  # noqa: B019  (it lives as long as the process)
    def derived(self, by: tuple[int, ...]) -> _Wrapped:
        return _wrapped(jacobian(self.function, [self.function.inputs[k] for k in by], values=False))

    @functools.cache  # noqa: B019
    def product(self, kind: str, by: tuple[int, ...]) -> _Wrapped | None:
        """Products with the derivatives by these inputs, where the Jacobian would be large."""
        names = [self.function.inputs[k] for k in by]
        return _wrapped(product(self.function, kind, names)) if by_products(self.function, names) else None

    def times(self, made: _Wrapped, inputs: Tensor, vectors: Tensor) -> Tensor:
        given = product_arguments(self.function, made.function, inputs, vectors)
        compiling = torch.compiler.is_compiling() or type(inputs[0]) is not torch.Tensor
        return made.operator(*given) if compiling else made.apply(*given)

    def run(self, *tensors: Tensor) -> list[Tensor]:
        results = self.function(*(tensor.detach().numpy() for tensor in tensors))
        several = results if len(self.function.outputs) > 1 else (results,)
        return [torch.from_numpy(np.ascontiguousarray(result)) for result in several]

    def leading(self, tensors: Tensor) -> list[Tensor]:
        return [tensor.shape[: tensor.dim() - core] for tensor, core in zip(tensors, self.cores, strict=True)]

    def fake(self, *tensors: Tensor) -> list[Tensor]:
        batch = torch.broadcast_shapes(*self.leading(tensors))
        return [tensors[0].new_empty((*batch, *output.shape)) for output in self.function.signature.outputs]

    def backward(self, context: Tensor, *gradients: Tensor) -> Tensor:
        """Of the operator, as register_autograd asks: gradients are those of the list of results."""
        given = gradients[0] if len(gradients) == 1 and isinstance(gradients[0], (list, tuple)) else gradients
        wanted = tuple(k for k, needed in enumerate(context.needs_input_grad) if needed)
        inputs = context.saved_tensors
        found: list[Tensor] = [None] * len(self.cores)
        made = self.product("vjp", wanted)
        if made is not None:
            batch = torch.broadcast_shapes(*self.leading(inputs))
            weights = [
                inputs[0].new_zeros((*batch, *output.shape)) if gradient is None else gradient
                for gradient, output in zip(given, self.function.signature.outputs, strict=True)
            ]
            slopes = self.times(made, inputs, weights)
            for place, k in enumerate(wanted):
                found[k] = _unbroadcast(sum(slopes[place :: len(wanted)]), inputs[k].shape)
            return tuple(found)
        derived = self.derived(wanted)
        compiling = torch.compiler.is_compiling() or type(inputs[0]) is not torch.Tensor
        slopes = derived.operator(*inputs) if compiling else derived.apply(*inputs)
        for i, gradient in enumerate(given):
            if gradient is None:
                continue
            for place, k in enumerate(wanted):
                J = slopes[i * len(wanted) + place]
                result, core = self.function.signature.outputs[i].shape, self.cores[k]
                matrix = J.reshape(*J.shape[: J.dim() - core - len(result)], -1, *J.shape[J.dim() - core :])
                flat = gradient.reshape(*gradient.shape[: gradient.dim() - len(result)], -1, *(1,) * core)
                term = _unbroadcast((matrix * flat).sum(-core - 1), inputs[k].shape)
                found[k] = term if found[k] is None else found[k] + term
        return tuple(found)

    def forward_slope(self, inputs: Tensor, tangents: Tensor) -> tuple[Tensor, ...]:
        moved = tuple(k for k, tangent in enumerate(tangents) if tangent is not None)
        made = self.product("jvp", moved)
        if made is not None:
            return tuple(self.times(made, inputs, [tangents[k] for k in moved]))
        slopes = self.derived(moved).apply(*inputs)
        results = []
        for i, output in enumerate(self.function.signature.outputs):
            total: Tensor = 0.0
            for place, k in enumerate(moved):
                J, tangent = slopes[i * len(moved) + place], tangents[k]
                matrix = J.reshape(*J.shape[: J.dim() - self.cores[k]], -1)
                flat = tangent.reshape(*tangent.shape[: tangent.dim() - self.cores[k]], *(1,) * len(output.shape), -1)
                total = total + (matrix * flat).sum(-1)
            results.append(total)
        return tuple(results)

    def mapped(self, dims: Tensor, tensors: Tensor) -> Tensor:
        """Under vmap: the mapped axis goes to the front, before as many leading axes as any argument has."""
        ranks = [t.dim() - core - (d is not None) for t, core, d in zip(tensors, self.cores, dims, strict=True)]
        moved = []
        for tensor, dim, rank in zip(tensors, dims, ranks, strict=True):
            if dim is not None:
                tensor = tensor.movedim(dim, 0)
                shape = tensor.shape
                tensor = tensor.reshape(shape[0], *(1,) * (max(ranks) - rank), *shape[1:])
            moved.append(tensor)
        results = self.apply(*moved)
        return results, (0,) * len(results)

    def _outer(self) -> Tensor:
        function, names, single = self.function, self.function.inputs, len(self.function.outputs) == 1

        def wrapped(*args: Tensor, **named: Tensor) -> Tensor:
            if named or len(args) != len(names):
                unknown = [name for name in named if name not in names[len(args) :]]
                if unknown or len(args) + len(named) != len(names):
                    raise ArgumentError(
                        f"{function.name} got {len(args) + len(named)} arguments, expected {', '.join(names)}: pass a "
                        f"tensor for each, once."
                    )
                args = (*args, *(named[name] for name in names[len(args) :]))
            tensors = self.prepared(args)
            results = self.operator(*tensors) if torch.compiler.is_compiling() else self.apply(*tensors)
            return results[0] if single else tuple(results)

        wrapped.__name__ = wrapped.__qualname__ = function.name
        return wrapped

    def prepared(self, args: tuple[Tensor, ...]) -> list[Tensor]:
        """Tensors of one floating type; what does not fit is refused."""
        name = self.function.name
        dtype = None
        for argument, core, tensor in zip(self.function.signature.inputs, self.cores, args, strict=True):
            if not isinstance(tensor, torch.Tensor):
                raise ArgumentError(
                    f"{name}: {argument.name} is a {type(tensor).__name__}, expected a tensor: use torch.as_tensor."
                )
            if tensor.device.type not in ("cpu", "meta"):
                raise ArgumentError(
                    f"{name}: {argument.name} is on {tensor.device}, expected the CPU: move it by .cpu()."
                )
            if tensor.dtype not in (torch.float64, torch.float32):
                raise ArgumentError(
                    f"{name}: {argument.name} has type {tensor.dtype}, expected float64 or float32: convert it by "
                    f".double()."
                )
            if tensor.dim() < core or tuple(tensor.shape[tensor.dim() - core :]) != argument.shape:
                raise ArgumentError(
                    f"{name}: {argument.name} has shape {tuple(tensor.shape)}, expected {argument.wanted}: check its "
                    f"last axes."
                )
            dtype = tensor.dtype if dtype is None else torch.promote_types(dtype, tensor.dtype)
        try:
            torch.broadcast_shapes(*self.leading(args))
        except RuntimeError:
            shown = ", ".join(str(tuple(t.shape)) for t in args)
            raise ArgumentError(f"{name}: shapes are {shown}, expected leading axes that broadcast.") from None
        return [tensor.to(dtype) for tensor in args]


def _keep(ctx: Tensor, inputs: Tensor, output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _unbroadcast(gradient: Tensor, shape: Tensor) -> Tensor:
    """The sum over the axes along which an argument was shared."""
    extra = gradient.dim() - len(shape)
    if extra:
        gradient = gradient.sum(tuple(range(extra)))
    shared = tuple(k for k, size in enumerate(shape) if size == 1 and gradient.shape[k] != 1)
    return gradient.sum(shared, keepdim=True) if shared else gradient


def _autograd_function(wrapped: _Wrapped) -> Tensor:
    """The autograd.Function of an operator."""

    class Compiled(torch.autograd.Function):
        @staticmethod
        def forward(*tensors: Tensor) -> Tensor:
            return tuple(wrapped.operator(*tensors))

        @staticmethod
        def setup_context(ctx: Tensor, inputs: Tensor, output: Tensor) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx: Tensor, *gradients: Tensor) -> Tensor:
            return wrapped.backward(ctx, *gradients)

        @staticmethod
        def jvp(ctx: Tensor, *tangents: Tensor) -> Tensor:
            return wrapped.forward_slope(ctx.saved_tensors, tangents)

        @staticmethod
        def vmap(info: Tensor, in_dims: Tensor, *tensors: Tensor) -> Tensor:
            return wrapped.mapped(in_dims, tensors)

    Compiled.__name__ = Compiled.__qualname__ = wrapped.function.name
    return Compiled
