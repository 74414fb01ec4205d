"""A law as a compiled function of (q, qd), its signals and constants: what Python calls, and what C gets."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ...compiled.arrays import Argument, Signature
from ...compiled.function import CompiledFunction, Recipe, chosen_backend
from ...errors import ArgumentError
from ...robot.robot import Robot
from ...support.messages import shown
from ...tracing.expression import Graph
from ...tracing.passes import optimise
from ...tracing.program import Array, Program, block_program
from .forms import Form, PythonFunction
from .signals import Grid
from .traced import TracedDynamics

if TYPE_CHECKING:
    from ..laws import Law


@dataclass(frozen=True)
class LawRecipe(Recipe):
    """A law alone: q, qd, its signals, its constants -> tau. `requests` stays empty."""

    law: Form = field(default_factory=Form)
    dissipation: bool = False

    def inputs(self) -> tuple[Array, ...]:
        nq, nv = self.model.nq, self.model.nv
        sizes = {"q": nq, "v": nv}
        given = {**self.law.signals(), **self.law.constants()}
        further = (Array(name, (size if isinstance(size, int) else sizes[size],)) for name, size in given.items())
        return Array("q", (nq,)), Array("qd", (nv,)), *further

    def trace(self) -> Program:
        inputs, graph = self.inputs(), Graph()
        columns = [[graph.leaf("input", (k, i)) for i in range(array.size)] for k, array in enumerate(inputs)]
        given = {array.name: values for array, values in zip(inputs[2:], columns[2:], strict=True)}
        tau = self.law.torque(TracedDynamics(self.model, self.dissipation), columns[0], columns[1], given)
        return optimise(block_program("torque", inputs, [(Array("tau", inputs[1].shape), tau)]))

    def signature(self) -> Signature:
        inputs = self.inputs()
        return Signature(
            "torque", tuple(Argument(a.name, a.shape) for a in inputs), (Argument("tau", inputs[1].shape),)
        )


def law_function(
    law: Law, robot: Robot, dissipation: bool, dtype: str = "float64", backend: str | None = None
) -> CompiledFunction:
    """The law's torques, compiled. A sample with an input that is not finite is NaN, also where the form is bounded:
    see `settled`."""
    law.check(robot)
    form = law.form(robot)
    if isinstance(form, PythonFunction):
        raise ArgumentError("a Python function has no compiled torques, expected a law of linksweep.simulation.")
    return _compiled(LawRecipe(robot.canonical, (), law=form, dissipation=dissipation), dtype, chosen_backend(backend))


@functools.lru_cache(maxsize=32)
def _compiled(recipe: LawRecipe, dtype: str, backend: str) -> CompiledFunction:
    return CompiledFunction(recipe, dtype, 1, backend)


def law_torque(law: Law, t: float, q: ArrayLike, qd: ArrayLike, robot: Robot | None, dissipation: bool) -> np.ndarray:
    driven = _driven(law, robot)
    function = law_function(law, driven, dissipation)
    given = {**law.at(driven, Grid(1, 1.0, 1, dissipation))(float(t)), **law.constants(driven)}
    return settled(function, function(q, qd, *(np.asarray(given[name], float) for name in function.inputs[2:])))


def settled(function: CompiledFunction, tau: np.ndarray) -> np.ndarray:
    """The torques of a law's function; 0 in the place of NaN where its form is bounded."""
    recipe = function.recipe
    return np.nan_to_num(tau, copy=False) if isinstance(recipe, LawRecipe) and recipe.law.bounded else tau


def export_law(
    law: Law, path: str | os.PathLike[str], robot: Robot | None, name: str | None, dtype: str, dissipation: bool
) -> tuple[Path, Path]:
    """See `Law.to_c`."""
    from ...compiled.c_export import default_name, export_c

    driven = _driven(law, robot)
    function = law_function(law, driven, dissipation, backend="interpreter")  # nothing is called here
    gains = {key: value for key, value in law.constants(driven).items() if value.ndim == 1}  # not those of a batch
    what, called = f"torques of {shown(law, 200)}", name or default_name(driven.name, path)
    if any(re.search(r"_\d+$", key) for key in function.inputs):
        what += " (arguments that end in _0, _1 ... are those of its first, second ... term)"
    return export_c(function, Path(path), name=called, dtype=dtype, robot=driven, what=what, values=gains)


def _driven(law: Law, robot: Robot | None) -> Robot:
    found = law.controller_robot if robot is None else robot
    if not isinstance(found, Robot):
        raise ArgumentError(
            f"{type(law).__name__} got robot {shown(robot)}, expected the Robot that it drives: pass robot=, or give "
            f"the law a controller_robot."
        )
    return found  # pyright: ignore[reportReturnType]
