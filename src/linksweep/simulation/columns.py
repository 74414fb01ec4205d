"""Steps in Python: the step of stepping.py on NumPy columns, around compiled dynamics.

For robots too large to be written out four times over, whose dynamics are loops over links, and for torques that only
Python can compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..catalogue.functions import Request
from ..compiled.function import CompiledFunction, Recipe
from ..errors import ArgumentError
from ..mechanism.canonical import CanonicalModel
from ..support.foreign import refuse_foreign
from .step_program import StepRecipe, law_request
from .stepping import Values


class CompiledDynamics:
    """The dynamics of a robot on columns: one array (n,) for each coordinate."""

    def __init__(self, model: CanonicalModel, request: Request, dtype: str, backend: str):
        self.model = model
        self._options = (dtype, 1, backend)
        self._request = request
        self._functions: dict[str, CompiledFunction] = {}

    def forward(self, q: Values, qd: Values, tau: Values) -> Values:
        return self._call(self._request, q, qd, tau)

    def inverse(self, q: Values, qd: Values, qdd: Values) -> Values:
        return self._call(law_request("inverse_dynamics", self.model, self._request.dissipation), q, qd, qdd)

    def gravity(self, q: Values) -> Values:
        return self._call(law_request("gravity_forces", self.model), q)

    def correction(self, q: Values) -> Values:
        return self._call(Request("constraint_correction"), q)

    def allowed(self, q: Values, qd: Values) -> Values:
        return self._call(Request("allowed_rates"), q, qd)

    def _call(self, request: Request, *args: Values) -> Values:
        function = self._functions.get(request.function)
        if function is None:
            recipe = Recipe(self.model, (request,))
            function = self._functions[request.function] = CompiledFunction(recipe, *self._options)
        result = function(*(stacked(columns) for columns in args))
        return [result[..., i] for i in range(result.shape[-1])]


class ColumnKernel:
    """A step as a kernel over 2-D arrays: inputs (n or 1, size), outputs (n, size)."""

    def __init__(self, recipe: StepRecipe, dtype: str, backend: str, function: Callable[..., Any] | None = None):
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
        t = float(given["t"][0][0])
        for k, (own_q, own_qd) in enumerate(zip(*states, strict=True)):
            tau[k] = checked_torque(self.function, t, own_q, own_qd)
        return [tau[:, i] for i in range(tau.shape[1])]


def checked_torque(function: Callable[..., Any] | None, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """What the user's torque(t, q, qd) gives, if it is one number for each rate."""
    assert function is not None
    given = function(t, q.copy(), qd.copy())
    refuse_foreign("what torque(t, q, qd) gives", given)
    tau = np.asarray(given)
    if tau.shape != qd.shape or tau.dtype.kind not in "iufb":
        raise ArgumentError(
            f"torque(t, q, qd) gave {tau.dtype} of shape {tau.shape} at t = {t:g}, expected {len(qd)} real numbers."
        )
    return tau


def stacked(columns: Values) -> np.ndarray:
    return np.stack(np.broadcast_arrays(*columns), axis=-1)
