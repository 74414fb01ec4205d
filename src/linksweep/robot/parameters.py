"""The inertial parameters of a robot, and the regressor that takes them to joint forces."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..functions.parameters import TEN, body
from ..mechanism.canonical import CanonicalModel
from ..model.model import BASE, Model, inverse, moved
from ..support.checks import checked_flag
from ..tracing.tracer import parameter_places
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


def regressor(
    core: Core, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, out: np.ndarray | None, packed: bool
) -> np.ndarray:
    """Y (..., nv, 11 links): joint forces are Y @ standard_parameters."""
    if checked_flag("regressor: packed", packed) and core.canonical.is_coupled:
        raise ArgumentError(
            f"{core.name}: regressor(packed=True) got a robot whose joints follow others, expected one whose "
            f"rows are of one joint each: leave packed to False, or take robot.uncoupled."
        )
    return core.call("packed_regressor" if packed else "regressor", (q, qd, qdd), out=out)


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
