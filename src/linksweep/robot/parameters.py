"""The inertial parameters of a robot, and the regressor that takes them to joint forces."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..catalogue.parameters import TEN, body
from ..compiled.function import CompiledFunction, Recipe, chosen_backend, make_function
from ..description.model import BASE, Model, inverse, moved
from ..errors import ArgumentError
from ..mechanism.canonical import CanonicalModel
from ..support.lazy import lazy
from ..support.numbers import checked_flag
from ..tracing.places import parameter_places
from .core import Core


def standard_parameters(model: Model) -> np.ndarray:
    """(11 links): ten numbers of each link in its frame, in document order; then the armature of each joint."""
    frames = {frame.name: inverse(frame.placement) for frame in model.frames}
    links = [model.links[i] for i in model.document_order]
    bodies = [moved(link.inertial, frames[link.name]) for link in links]
    tens = [body(part.mass, part.com, part.inertia) for part in bodies]
    return np.concatenate([*tens, np.array([link.joint.armature for link in links], dtype=float)])


def standard_parameter_names(model: Model) -> tuple[str, ...]:
    links = [model.links[i] for i in model.document_order]
    inertial = [f"{link.name}.{name}" for link in links for name in TEN]
    return (*inertial, *(f"{link.joint.name}.armature" for link in links))


class Regressor:
    """Y (..., nv, 11 links): joint forces are Y @ standard_parameters."""

    def __init__(self, core: Core):
        self.core = core

    def __call__(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, out: np.ndarray | None, packed: bool) -> np.ndarray:
        if checked_flag("regressor: packed", packed) and self.core.canonical.is_coupled:
            raise ArgumentError(
                f"{self.core.name}: regressor(packed=True) got a robot whose joints follow others, expected one whose "
                f"rows are of one joint each: leave packed to False, or take robot.uncoupled."
            )
        compiled = self.packed if packed else self.dense
        return compiled(q, qd, qdd) if out is None else compiled(q, qd, qdd, out=out)

    @lazy
    def dense(self) -> CompiledFunction:
        return self._made("regressor")

    @lazy
    def packed(self) -> CompiledFunction:
        return self._made("packed_regressor")

    def _made(self, function: str) -> CompiledFunction:
        recipe = Recipe(self.core.canonical, self.core.requests([function]))
        return make_function(recipe, None, 1, chosen_backend(None))


def regressor_places(model: CanonicalModel) -> tuple[np.ndarray, np.ndarray]:
    """Row and column in Y of each number of the packed regressor."""
    dense, packed = (parameter_places(model, form) for form in (False, True))
    places = np.empty(packed.size, int)
    for i, link in enumerate(model.links):
        for f in range(link.nv):
            places[packed.motor[i] + f * packed.motor_row] = dense.motor[i] + f * dense.motor_row
        j = i
        while j != BASE:
            at, to = (table.of_link[i] + table.of_joint[j] for table in (packed, dense))
            for f in range(model.links[j].nv):
                ten = np.arange(10)
                places[at + f * packed.row + ten] = to + f * dense.row + ten
            j = model.links[j].parent
    rows, columns = np.divmod(places, dense.row)
    for kept in (rows, columns):
        kept.flags.writeable = False
    return rows, columns
