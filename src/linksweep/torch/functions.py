"""Compiled functions in PyTorch: operators over shared memory, with derivatives by compiled Jacobians or products."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import overload

from ..errors import ArgumentError
from ..functions.compiled import CompiledFunction, compiled
from ..functions.frameworks import by_products, checked, in_order, jacobian, product, product_arguments, unique_name
from ..simulation.gradient import Rollout

try:
    import torch
except ImportError as error:
    raise ImportError(
        "linksweep.torch needs the package torch, which is not installed: pip install linksweep[torch]"
    ) from error

from ..simulation.gradient import FrameworkArray as Tensor
from .operators import Operator, check_tensor, plain_arrays
from .rollouts import TorchRollout

_from_numpy = torch.from_numpy
_known: dict[str, _Function] = {}  # operators stay registered as long as the process lives


@overload
def wrap(f: CompiledFunction) -> TorchFunction: ...
@overload
def wrap(f: Rollout) -> TorchRollout: ...
def wrap(f: CompiledFunction | Rollout) -> TorchFunction | TorchRollout:
    """A function of tensors on the CPU that runs the machine code of `f`, from `robot.compile` or `ls.rollout`.

    It takes tensors (..., size) in the order of `f.inputs`, or by their names, and returns one tensor, or a tuple of
    several; leading axes broadcast. Memory is shared, nothing is copied. autograd, double backward, torch.func and
    torch.compile work. Derivatives with respect to q are with respect to its components: with quaternions these are not
    the derivatives along joint velocities.

    A rollout takes q0, qd0, tau and returns q, qd; it can be differentiated once, in reverse.
    """
    return TorchRollout(f) if isinstance(f, Rollout) else TorchFunction(checked(f))


class TorchFunction:
    """A compiled function over tensors: see `linksweep.torch.wrap`."""

    def __init__(self, function: CompiledFunction):
        self.function = function
        self.__name__ = self.__qualname__ = function.name
        self.__doc__ = f"{function!r} in PyTorch."
        self._rules = _rules(function)
        self._single = len(function.outputs) == 1

    def __call__(self, *args: Tensor, **named: Tensor) -> Tensor:
        if named or len(args) != len(self._rules.cores):
            args = in_order(self.function, args, named)
        arrays = plain_arrays(args)
        if arrays is None:
            results = self._rules.operator.dispatched(*self._rules.prepared(args))
        else:
            results = self._rules.results(arrays)
        return results[0] if self._single else tuple(results)

    def __reduce__(self) -> tuple[object, ...]:
        return wrap, (self.function,)

    def __repr__(self) -> str:
        return f"{self.function!r} in PyTorch"


def _rules(function: CompiledFunction) -> _Function:
    name = unique_name(function.name, function.computation)
    if name not in _known:
        _known[name] = _Function(function, name)
    return _known[name]


class _Function:
    """The rules of a function's operator, and its derivatives once they are needed."""

    def __init__(self, function: CompiledFunction, name: str):
        self.function = function
        self.fast = compiled(function.computation, function.dtype, 1, function.backend)
        self.single = len(function.outputs) == 1
        self.cores = [len(argument.shape) for argument in function.signature.inputs]
        self.operator = Operator(name, len(function.inputs), self)

    @functools.cache  # noqa: B019  (it lives as long as the process)
    def derived(self, by: tuple[int, ...]) -> _Function:
        return _rules(jacobian(self.function, [self.function.inputs[k] for k in by], values=False))

    @functools.cache  # noqa: B019
    def product(self, kind: str, by: tuple[int, ...]) -> _Function | None:
        """Products with the derivatives with respect to these inputs, where the Jacobian would be large."""
        names = [self.function.inputs[k] for k in by]
        return _rules(product(self.function, kind, names)) if by_products(self.function, names) else None

    def times(self, made: _Function, inputs: Tensor, vectors: Tensor) -> Sequence[Tensor]:
        return made.operator(*product_arguments(self.function, made.function, inputs, vectors))

    def results(self, arrays: list[Tensor]) -> list[Tensor]:
        results = self.fast(*arrays)
        return [_from_numpy(results)] if self.single else [_from_numpy(x) for x in results]

    def leading(self, tensors: Tensor) -> list[Tensor]:
        return [tensor.shape[: tensor.dim() - core] for tensor, core in zip(tensors, self.cores, strict=True)]

    def fake(self, *tensors: Tensor) -> list[Tensor]:
        batch = torch.broadcast_shapes(*self.leading(tensors))
        return [tensors[0].new_empty((*batch, *output.shape)) for output in self.function.signature.outputs]

    def backward(self, inputs: Tensor, results: Tensor, gradients: Tensor, needed: Sequence[bool]) -> Sequence[Tensor]:
        wanted = tuple(k for k, need in enumerate(needed) if need)
        found: list[Tensor] = [None] * len(self.cores)
        made = self.product("vjp", wanted)
        if made is not None:
            if any(gradient is None for gradient in gradients):
                zeros = [torch.zeros_like(x) for x in self.fake(*inputs)]
                gradients = [z if gradient is None else gradient for gradient, z in zip(gradients, zeros, strict=True)]
            derivatives = self.times(made, inputs, gradients)
            for place, k in enumerate(wanted):
                total = functools.reduce(torch.add, derivatives[place :: len(wanted)])
                found[k] = _unbroadcast(total, inputs[k].shape)
            return found
        derivatives = self.derived(wanted).operator(*inputs)
        for i, gradient in enumerate(gradients):
            if gradient is None:
                continue
            for place, k in enumerate(wanted):
                J = derivatives[i * len(wanted) + place]
                result, core = self.function.signature.outputs[i].shape, self.cores[k]
                matrix = J.reshape(*J.shape[: J.dim() - core - len(result)], -1, *J.shape[J.dim() - core :])
                flat = gradient.reshape(*gradient.shape[: gradient.dim() - len(result)], -1, *(1,) * core)
                term = _unbroadcast((matrix * flat).sum(-core - 1), inputs[k].shape)
                found[k] = term if found[k] is None else found[k] + term
        return found

    def forward(self, inputs: Tensor, tangents: Tensor) -> Sequence[Tensor]:
        moved = tuple(k for k, tangent in enumerate(tangents) if tangent is not None)
        made = self.product("jvp", moved)
        if made is not None:
            return self.times(made, inputs, [tangents[k] for k in moved])
        derivatives = self.derived(moved).operator(*inputs)
        results = []
        for i, output in enumerate(self.function.signature.outputs):
            total: Tensor = 0.0
            for place, k in enumerate(moved):
                J, tangent = derivatives[i * len(moved) + place], tangents[k]
                matrix = J.reshape(*J.shape[: J.dim() - self.cores[k]], -1)
                flat = tangent.reshape(*tangent.shape[: tangent.dim() - self.cores[k]], *(1,) * len(output.shape), -1)
                total = total + (matrix * flat).sum(-1)
            results.append(total)
        return results

    def mapped(self, dims: Tensor, tensors: Tensor) -> tuple[Sequence[Tensor], Sequence[int]]:
        """Under vmap: the mapped axis goes to the front, before as many leading axes as any argument has."""
        ranks = [t.dim() - core - (d is not None) for t, core, d in zip(tensors, self.cores, dims, strict=True)]
        moved = []
        for tensor, dim, rank in zip(tensors, dims, ranks, strict=True):
            if dim is not None:
                tensor = tensor.movedim(dim, 0)
                shape = tensor.shape
                tensor = tensor.reshape(shape[0], *(1,) * (max(ranks) - rank), *shape[1:])
            moved.append(tensor)
        results = self.operator(*moved)
        return results, [0] * len(results)

    def prepared(self, args: tuple[Tensor, ...]) -> Sequence[Tensor]:
        """Tensors of one floating type, whose shapes fit."""
        name = self.function.name
        for argument, core, x in zip(self.function.signature.inputs, self.cores, args, strict=True):
            check_tensor(f"{name}: {argument.name}", x)
            if x.shape[x.dim() - core :] != argument.shape or x.dim() < core:
                raise ArgumentError(f"{name}: {argument.name} has shape {tuple(x.shape)}, expected {argument.wanted}.")
        leading = self.leading(args)
        if any(axes != leading[0] for axes in leading):
            try:
                torch.broadcast_shapes(*leading)
            except RuntimeError:
                shown = ", ".join(str(tuple(x.shape)) for x in args)
                raise ArgumentError(f"{name}: shapes are {shown}, expected leading axes that broadcast.") from None
        dtype = functools.reduce(torch.promote_types, (x.dtype for x in args))
        return [x if x.dtype is dtype else x.to(dtype) for x in args]


def _unbroadcast(gradient: Tensor, shape: Tensor) -> Tensor:
    """The sum over the axes along which an argument was shared."""
    extra = gradient.dim() - len(shape)
    if extra:
        gradient = gradient.sum(tuple(range(extra)))
    shared = tuple(k for k, size in enumerate(shape) if size == 1 and gradient.shape[k] != 1)
    return gradient.sum(shared, keepdim=True) if shared else gradient
