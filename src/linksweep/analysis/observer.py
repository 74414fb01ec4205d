"""The momentum observer as a Program, and as C: a function of the state that it had and the measurements since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..catalogue.functions import FUNCTIONS, Request, regrouped, signature
from ..catalogue.requests import make_requests
from ..compiled.arrays import Argument, Signature
from ..compiled.c_export import default_name, export_c
from ..compiled.function import CompiledFunction, Recipe
from ..robot.robot import Robot
from ..spatial.dense import dot
from ..spatial.scalars import Scalar, where
from ..tracing.expression import Graph
from ..tracing.passes import optimise
from ..tracing.program import Array, Program, block_program
from ..tracing.unrolled import UnrolledRun

TERMS = ("mass_matrix", "coriolis_matrix", "bias_forces")


@dataclass(frozen=True)
class ObserverRecipe(Recipe):
    """q, qd, tau, state, gain, dt -> residual, state: see `MomentumObserver`. `requests` are its TERMS.

    The state holds the momentum that the model and the residual explain, the model's rate of it at the last call, and
    a 1 once there was one: all zeros before.
    """

    def inputs(self) -> tuple[Array, ...]:
        nq, nv = self.model.nq, self.model.nv
        rates = (nv,)
        return (
            Array("q", (nq,)), Array("qd", rates), Array("tau", rates), Array("state", (2 * nv + 1,)),
            Array("gain", (1,)), Array("dt", (1,)),
        )  # fmt: skip

    def outputs(self) -> tuple[Array, ...]:
        inputs = self.inputs()
        return Array("residual", inputs[1].shape), Array("state", inputs[3].shape)

    def trace(self) -> Program:
        inputs, graph, nv = self.inputs(), Graph(), self.model.nv
        columns: list[list[Scalar]] = [
            [graph.leaf("input", (k, i)) for i in range(array.size)] for k, array in enumerate(inputs)
        ]
        q, qd, tau, state, (gain,), (dt,) = columns
        M, C, h = (self._value(request, {"q": q, "qd": qd}) for request in self.requests)
        started, before = state[2 * nv] > 0.0, state[nv : 2 * nv]
        residual: list[Scalar] = []
        explained: list[Scalar] = []
        known: list[Scalar] = []
        for i in range(nv):
            p = dot(M[i * nv : (i + 1) * nv], qd)
            known.append(dot([C[i * nv + j] + C[j * nv + i] for j in range(nv)], qd) - h[i])
            after = state[i] + dt * (tau[i] + 0.5 * (known[i] + before[i]))
            r = gain * (p - after) / (1.0 + gain * dt)
            residual.append(where(started, r, 0.0))
            explained.append(where(started, after + dt * r, p))
        outputs = list(zip(self.outputs(), (residual, [*explained, *known, 1.0]), strict=True))
        return optimise(block_program("observer", inputs, outputs))

    def _value(self, request: Request, given: dict[str, list[Scalar]]) -> Sequence[Scalar]:
        arrays = signature(self.model, [request])[0]
        run = UnrolledRun(regrouped(self.model, [request]), arrays, [given[array.name] for array in arrays])
        FUNCTIONS[request.function].trace(run, request, 0)
        return run.results[0]

    def signature(self) -> Signature:
        inputs, outputs = (tuple(Argument(a.name, a.shape) for a in side) for side in (self.inputs(), self.outputs()))
        return Signature("observer", inputs, outputs)


def export_observer(
    robot: Robot, dt: float, gain: float, dissipation: bool, path: str | Path, name: str | None, dtype: str
) -> tuple[Path, Path]:
    """See `MomentumObserver.to_c`."""
    requests = make_requests(robot, TERMS, None, dissipation=dissipation)
    function = CompiledFunction(ObserverRecipe(robot.canonical, requests), "float64", 1, "interpreter")
    return export_c(
        function, path, name=name or default_name(robot.name, path), dtype=dtype, robot=robot,
        what="external torques by the momentum observer", values={"gain": np.array([gain]), "dt": np.array([dt])},
    )  # fmt: skip
