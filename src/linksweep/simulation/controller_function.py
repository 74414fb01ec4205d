"""A law as a compiled function of (q, qd), its signals and constants: what Python calls, and what C gets."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..functions.compiled import CompiledFunction
from ..functions.computation import Computation, RobotFunction, Tracing
from ..mechanism.canonical import CanonicalModel
from ..robot.robot import Robot
from ..support.messages import shown
from ..tracing.program import Array
from .controllers import ControlLaw, Function, Grid
from .dynamics import TracedDynamics
from .integrators import Values

if TYPE_CHECKING:
    from .controllers import Controller


@dataclass(frozen=True)
class ControllerTorque(Computation):
    """The torques of a controller: q, qd, its signals, its constants -> tau."""

    model: CanonicalModel  # pyright: ignore[reportIncompatibleMethodOverride]
    law: ControlLaw = field(default_factory=ControlLaw)
    dissipation: bool = False

    @property
    def name(self) -> str:
        return "torque"

    @property
    def inputs(self) -> tuple[Array, ...]:
        nq, nv = self.model.nq, self.model.nv
        sizes = {"q": nq, "v": nv}
        given = {**self.law.signals(), **self.law.constants()}
        further = (Array(name, (size if isinstance(size, int) else sizes[size],)) for name, size in given.items())
        return Array("q", (nq,)), Array("qd", (nv,)), *further

    @property
    def outputs(self) -> tuple[Array, ...]:
        return (Array("tau", (self.model.nv,)),)

    def values(self, tracing: Tracing) -> tuple[Values, ...]:
        dynamics = TracedDynamics(RobotFunction(self.model, "forward_dynamics", dissipation=self.dissipation))
        given = {array.name: tracing.leaves[array.name] for array in self.inputs[2:]}
        return (self.law.torque(dynamics, tracing.leaves["q"], tracing.leaves["qd"], given),)


def controller_function(
    law: Controller, robot: Robot, dissipation: bool, dtype: str = "float64", backend: str | None = None
) -> CompiledFunction:
    """The law's torques, compiled. A sample with an input that is not finite is NaN, also where the form is bounded:
    see `settled`."""
    law.check(robot)
    if isinstance(law, Function):
        raise ArgumentError("a Python function has no compiled torques, expected a law of linksweep.simulation.")
    computation = ControllerTorque(robot.canonical, law.control_law(robot), dissipation)
    return robot.compile(computation, dtype=dtype, threads=1, backend=backend)


def controller_torque(
    law: Controller, t: float, q: ArrayLike, qd: ArrayLike, robot: Robot | None, dissipation: bool
) -> np.ndarray:
    driven = _driven(law, robot)
    function = controller_function(law, driven, dissipation)
    given = {**law.at(driven, Grid(1, 1.0, 1, dissipation))(float(t)), **law.constants(driven)}
    return settled(function, function(q, qd, *(np.asarray(given[name], float) for name in function.inputs[2:])))


def settled(function: CompiledFunction, tau: np.ndarray) -> np.ndarray:
    """The torques of a law's function; 0 in the place of NaN where its form is bounded."""
    computation = function.computation
    is_bounded = isinstance(computation, ControllerTorque) and computation.law.bounded
    return np.nan_to_num(tau, copy=False) if is_bounded else tau


def export_controller(
    law: Controller, path: str | os.PathLike[str], robot: Robot | None, name: str | None, dtype: str, dissipation: bool
) -> tuple[Path, Path]:
    """See `Controller.to_c`."""
    from ..functions.c_export import default_name, export_c

    driven = _driven(law, robot)
    function = controller_function(law, driven, dissipation, backend="interpreter")  # nothing is called here
    gains = {key: value for key, value in law.constants(driven).items() if value.ndim == 1}  # not those of a batch
    what, called = f"torques of {shown(law, 200)}", name or default_name(driven.name, path)
    if any(re.search(r"_\d+$", key) for key in function.inputs):
        what += " (arguments that end in _0, _1 ... are those of its first, second ... term)"
    return export_c(function, Path(path), name=called, dtype=dtype, robot=driven, what=what, values=gains)


def _driven(law: Controller, robot: Robot | None) -> Robot:
    found = law.controller_robot if robot is None else robot
    if not isinstance(found, Robot):
        raise ArgumentError(
            f"{type(law).__name__} got robot {shown(robot)}, expected the Robot that it drives: pass robot=, or give "
            f"the law a controller_robot."
        )
    return found  # pyright: ignore[reportReturnType]
