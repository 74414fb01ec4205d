"""The Jacobian of the center of mass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...algorithms.rigid_body.kinematics import poses
from ...algorithms.rigid_body.momentum import Columns, composite_inertias, momentum_matrix
from ...mechanism.sweeps import LinkView
from ...spatial.algebra import Vec
from ...tracing.tracer import Tracer
from ..declaration import Function, Method
from .frames import moving_mass

if TYPE_CHECKING:
    from ..computation import RobotFunction


def trace_center_of_mass_jacobian(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    """Write J with J qd the velocity of the center of mass: linear momentum is mass times velocity."""
    mass = moving_mass(tracer)

    def step(link: LinkView, nothing: tuple[()], momenta: Columns) -> tuple[tuple[Vec, ...], tuple[()]]:
        return tuple(momentum.force * (1.0 / mass) for momentum in momenta.momenta), nothing

    columns = momentum_matrix(tracer, poses(tracer), composite_inertias(tracer)[0])
    tracer.write_columns(output, tracer.outward(step, (), columns))


DECLARED = {
    "center_of_mass_jacobian": Function(
        ("q",), "J", (3, "v"), {"": Method(momentum_matrix)}, trace_center_of_mass_jacobian,
        "Jacobian of the center of mass of all moving links: J qd is its velocity in the base frame (m/s)."
    ),
}  # fmt: skip
