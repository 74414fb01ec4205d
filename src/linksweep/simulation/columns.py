"""Steps in Python: the step of stepping.py on NumPy columns, around compiled dynamics.

For robots too large to be written out four times over, whose dynamics are loops over links, and for torques that only
Python can compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..catalogue.functions import Request
from ..compiled.function import CompiledFunction, Recipe
from ..errors import ArgumentError
from ..mechanism.canonical import CanonicalModel
from ..spatial.scalars import Scalar
from ..support.foreign import refuse_foreign
from ..support.numbers import as_array, described
from .control.traced import AskedDynamics
from .step_program import StepRecipe
from .stepping import Values

Kernel = Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], None]  # rows in, rows out: one step


class CompiledDynamics(AskedDynamics):
    """The dynamics of a robot on columns: one array (n,) for each coordinate."""

    def __init__(self, model: CanonicalModel, request: Request, dtype: str, backend: str):
        super().__init__(model, request.dissipation, request)
        self._options = (dtype, 1, backend)
        self._functions: dict[tuple[int, Request], CompiledFunction] = {}  # a recipe keeps its model, and so its id
        self._others: dict[CanonicalModel, CompiledDynamics] = {}

    def value(self, model: CanonicalModel, request: Request, *given: Values) -> list[Scalar]:
        function = self._functions.get((id(model), request))
        if function is None:
            function = CompiledFunction(Recipe(model, (request,)), *self._options)
            self._functions[id(model), request] = function
        result = function(*(stacked(columns) for columns in given))
        flat = result.reshape(*result.shape[: result.ndim - len(function.signature.outputs[0].shape)], -1)
        return [flat[..., i] for i in range(flat.shape[-1])]

    def of(self, model: CanonicalModel) -> CompiledDynamics:
        other = self._others.get(model)
        if other is None:
            other = self._others[model] = CompiledDynamics(model, self.request, self._options[0], self._options[2])
        return other


class ColumnKernel:
    """A step as a kernel over 2-D arrays: inputs (n or 1, size), outputs (n, size)."""

    def __init__(self, recipe: StepRecipe, dtype: str, backend: str, function: Callable[..., ArrayLike] | None = None):
        self.recipe = recipe
        self.dynamics = CompiledDynamics(recipe.model, recipe.requests[0], dtype, backend)
        self.function = function

    def __call__(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        columns = [[x[:, i] for i in range(x.shape[1])] for x in inputs]
        with np.errstate(all="ignore"):
            results = self.recipe.step(self.dynamics, columns, self._torque if self.function else None)
        for output, result in zip(outputs, results, strict=True):
            for i, column in enumerate(result):
                output[:, i] = column

    def _torque(self, q: Values, qd: Values, given: dict[str, Values]) -> Values:
        """The user's torques, called once for each rollout."""
        states = stacked(q), stacked(qd)
        tau = np.empty_like(states[1])
        t = float(np.asarray(given["t"][0])[0])
        for k, (own_q, own_qd) in enumerate(zip(*states, strict=True)):
            tau[k] = checked_torque(self.function, t, own_q, own_qd)
        return [tau[:, i] for i in range(tau.shape[1])]


def checked_torque(function: Callable[..., ArrayLike] | None, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """What the user's torque(t, q, qd) gives, if it is one number for each rate."""
    assert function is not None
    given = function(t, q.copy(), qd.copy())
    refuse_foreign("what torque(t, q, qd) gives", given)
    tau = as_array(given)
    if tau.shape != qd.shape or tau.dtype.kind not in "iufb":
        raise ArgumentError(
            f"torque(t, q, qd) returned {described(given, tau)} at t = {t:g}, expected {len(qd)} real numbers."
        )
    return tau


def stacked(columns: Values) -> np.ndarray:
    return np.stack(np.broadcast_arrays(*map(np.asarray, columns)), axis=-1)
