"""The momentum observer as a Program and as C: a function of its previous state and new measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..functions.c_export import default_name, export_c
from ..functions.compiled import compiled
from ..functions.computation import Computation, RobotFunction, Tracing
from ..mechanism.canonical import CanonicalModel
from ..spatial.factorization import dot
from ..spatial.scalars import Scalar, where
from ..tracing.program import Array
from .robot import Robot

TERMS = ("mass_matrix", "coriolis_matrix", "bias_forces")


@dataclass(frozen=True)
class Observer(Computation):
    """q, qd, tau, state, gain, dt -> residual, state: see `MomentumObserver`. `terms` are the functions TERMS.

    The state holds the momentum that the model and the residual explain, the model's rate of it at the last call, and
    a 1 once there was one: all zeros before.
    """

    terms: tuple[RobotFunction, ...]

    @property
    def model(self) -> CanonicalModel:
        return self.terms[0].model

    @property
    def name(self) -> str:
        return "observer"

    @property
    def inputs(self) -> tuple[Array, ...]:
        nq, nv = self.model.nq, self.model.nv
        return (
            Array("q", (nq,)), Array("qd", (nv,)), Array("tau", (nv,)), Array("state", (2 * nv + 1,)),
            Array("gain", (1,)), Array("dt", (1,)),
        )  # fmt: skip

    @property
    def outputs(self) -> tuple[Array, ...]:
        inputs = self.inputs
        return Array("residual", inputs[1].shape), Array("state", inputs[3].shape)

    def values(self, tracing: Tracing) -> Sequence[Sequence[Scalar]]:
        nv = self.model.nv
        q, qd, tau, state, (gain,), (dt,) = (tracing.leaves[array.name] for array in self.inputs)
        arguments = {"q": q, "qd": qd}
        M, C, h = (term.evaluate(*(arguments[array.name] for array in term.inputs)) for term in self.terms)
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
        return residual, [*explained, *known, 1.0]


def export_observer(
    robot: Robot, dt: float, gain: float, dissipation: bool, path: str | Path, name: str | None, dtype: str
) -> tuple[Path, Path]:
    """See `MomentumObserver.to_c`."""
    terms = robot.recipe(list(TERMS), dissipation=dissipation).parts
    observer = Observer(tuple(term for term in terms if isinstance(term, RobotFunction)))
    function = compiled(observer, "float64", 1, "interpreter")
    return export_c(
        function, path, name=name or default_name(robot.name, path), dtype=dtype, robot=robot,
        what="external torques by the momentum observer", values={"gain": np.array([gain]), "dt": np.array([dt])},
    )  # fmt: skip
