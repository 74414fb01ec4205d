"""Rollouts in PyTorch: an operator over the compiled loop over all steps, its gradient by the compiled adjoint."""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

import numpy as np
import torch

from ..errors import ArgumentError
from ..functions.frameworks import unique_name
from ..simulation.gradient import FIRST, NAMES, Rollout, mapped_first, result_shapes, summed
from ..simulation.gradient import FrameworkArray as Tensor
from .operators import Operator, check_tensor

_known: dict[str, _States] = {}  # operators stay registered as long as the process lives
TWICE = (
    "a rollout in PyTorch has first derivatives in reverse mode (backward, torch.func.grad, jacrev). For forward mode "
    "or second derivatives, write the steps as a loop over a wrapped function, such as forward_dynamics."
)


class TorchRollout:
    """A rollout over tensors, q0, qd0, tau -> q, qd: see `linksweep.torch.wrap`."""

    def __init__(self, roll: Rollout):
        self.rollout = roll
        self.__name__ = self.__qualname__ = "rollout"
        self.__doc__ = f"{roll!r} in PyTorch."
        name = unique_name("rollout", roll.content)
        if name not in _known:
            _known[name] = _States(roll, name)
        self._operator = _known[name].operator

    def __call__(self, q0: Tensor, qd0: Tensor, tau: Tensor) -> Tensor:
        given = q0, qd0, tau
        for name, x in zip(NAMES, given, strict=True):
            check_tensor(f"rollout: {name}", x)
        self.rollout.batch(*(tuple(x.shape) for x in given))
        dtype = torch.promote_types(torch.promote_types(q0.dtype, qd0.dtype), tau.dtype)
        return tuple(self._operator(*(x.to(dtype) for x in given)))

    def __reduce__(self) -> tuple[object, ...]:
        return TorchRollout, (self.rollout,)

    def __repr__(self) -> str:
        return f"{self.rollout!r} in PyTorch"


class _Rolled:
    """What the operators of a rollout and of its gradient share. `firsts`: the first leading axis of each result."""

    firsts: tuple[int, ...]
    operator: Operator

    def __init__(self, roll: Rollout, function: Callable[..., Tensor]):
        self.roll, self.function = roll, function

    def results(self, arrays: list[Tensor]) -> list[Tensor]:
        results = self.function(*arrays)
        return [torch.from_numpy(np.ascontiguousarray(x, arrays[0].dtype)) for x in results]

    def fake(self, *tensors: Tensor) -> list[Tensor]:
        return [tensors[0].new_empty(shape) for shape in result_shapes(self.roll, [x.shape for x in tensors])]

    def forward(self, inputs: Tensor, tangents: Tensor) -> NoReturn:
        raise ArgumentError(TWICE)

    def mapped(self, dims: Tensor, tensors: Tensor) -> tuple[Sequence[Tensor], Sequence[int]]:
        """One call, with a leading axis more."""
        fronted = [x if dim is None else x.movedim(dim, 0) for x, dim in zip(tensors, dims, strict=True)]
        placed = mapped_first(fronted, [dim is not None for dim in dims], torch.movedim)
        return self.operator(*placed), list(self.firsts)


class _States(_Rolled):
    """q0, qd0, tau -> q, qd."""

    firsts = 1, 1

    def __init__(self, roll: Rollout, name: str):
        super().__init__(roll, roll.forward)
        self.operator = Operator(name, len(NAMES), self, keep=True)
        self.gradients = _Gradients(roll, f"{name}_gradients")

    def backward(self, inputs: Tensor, results: Tensor, gradients: Tensor, needed: Sequence[bool]) -> Sequence[Tensor]:
        weights = [
            inputs[0].new_zeros(shape) if gradient is None else gradient
            for gradient, shape in zip(gradients, result_shapes(self.roll, [x.shape for x in inputs]), strict=True)
        ]
        gradients = self.gradients.operator(*inputs, *weights, *results)
        return [summed(gradient, x.shape, k) for gradient, x, k in zip(gradients, inputs, FIRST, strict=False)]


class _Gradients(_Rolled):
    """q0, qd0, tau, weights of q, qd, then q, qd -> gradients with respect to q0, qd0, tau."""

    firsts = 0, 0, 1

    def __init__(self, roll: Rollout, name: str):
        super().__init__(roll, lambda *arrays: roll.backward(*arrays[:5], states=arrays[5:]))
        self.operator = Operator(name, len(FIRST), self)

    def backward(self, inputs: Tensor, results: Tensor, gradients: Tensor, needed: Sequence[bool]) -> NoReturn:
        raise ArgumentError(TWICE)
