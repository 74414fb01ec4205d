"""Articulated-body inertias, factors of the mass matrix and solving with it, joint inertias."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...algorithms.explicit.articulated_parameters import articulated_parameters
from ...algorithms.forward.filter_smoother import filter_smoother
from ...algorithms.mass_matrix.coupled import (
    coupled_closeness,
    coupled_colour,
    coupled_inertia_times,
    coupled_pivots,
    coupled_ratio,
    coupled_solve,
    coupled_whiten,
)
from ...algorithms.mass_matrix.factorization import colour, factorization, gains, joint_inertia_times, whiten
from ...algorithms.mass_matrix.inertia_ratio import closeness, inertia_ratio
from ...mechanism.bias import BaseMotion
from ...mechanism.joints import Coordinates
from ...mechanism.sweeps import PerLink, Sweep
from ...spatial.algebra import ZERO_FORCE, ZERO_VEC, ArticulatedInertia, Mat, Vec
from ...spatial.scalars import Scalar
from ...spatial.transforms import Rotation
from ...tracing.tracer import Tracer, UnrolledRun
from ..declaration import Function, Method, Traced

if TYPE_CHECKING:
    from ..computation import RobotFunction

OfVector = Callable[[Sweep, PerLink[Coordinates]], PerLink[Coordinates]]


def trace_of_rates(algorithm: Callable[..., list[Scalar]], takes_vector: bool = False) -> Traced:
    """Of an algorithm for coupled joints, whose vectors stand link after link."""

    def traced(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
        places = tracer.places()
        given = tracer.read_flat("tau") if takes_vector else ()
        found = algorithm(tracer, [given[place] for place in places]) if takes_vector else algorithm(tracer)
        tracer.write(output, [value for _, value in sorted(zip(places, found, strict=True), key=lambda pair: pair[0])])

    return traced


def trace_articulated_inertia(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    """P, (links, 6, 6), each at the origin and in the directions of its link's described frame."""
    if computation.method == "articulated_parameters":
        found = [ArticulatedInertia(body.J, body.Y, body.rho) for body in articulated_parameters(tracer).body]
    else:
        found = list(gains(tracer).P)
    by_row: dict[int, list[Scalar]] = {}
    for link, P in zip(tracer.model.links, found, strict=True):
        axes = Rotation(Mat(*(Vec(*row) for row in link.axes)))
        seen = P.shifted(-Vec(*link.origin)).turned(axes.back())
        upper = [[*J, *Y] for J, Y in zip(seen.J.rows(), (seen.Y.x, seen.Y.y, seen.Y.z), strict=True)]
        lower = [
            [*Y, *rho] for Y, rho in zip(zip(*(row[3:] for row in upper), strict=True), seen.rho.rows(), strict=True)
        ]
        by_row[link.row] = [x for row in (*upper, *lower) for x in row]
    tracer.write(output, [x for row in sorted(by_row) for x in by_row[row]])


def trace_joint_inertia(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    """The pivots of D, (nv,)."""
    tracer.write_rates(output, gains(tracer).D)


def trace_inertia_ratio(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    tracer.write_rates(output, inertia_ratio(tracer))


def trace_closeness(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    tracer.write(output, [closeness(tracer)])


def trace_of_vector(algorithm: OfVector) -> Traced:
    """Of an algorithm that takes a joint vector and gives one."""

    def traced(tracer: Tracer, computation: RobotFunction, output: int) -> None:
        tracer.write_rates(output, algorithm(tracer, tracer.read("tau")))

    return traced


def solve(sweep: Sweep, b: PerLink[Coordinates]) -> PerLink[Coordinates]:
    """M^-1 b: forward dynamics at rest, without gravity."""
    at_rest = BaseMotion(ZERO_VEC, ZERO_VEC, ZERO_VEC)
    return filter_smoother(sweep, sweep.zeros(), b, sweep.same(ZERO_FORCE), at_rest).qdd


def _by_structure(plain: Traced, coupled: Traced) -> Traced:
    """How a function is traced that filters have, and the mass matrix where a joint follows another."""

    def traced(tracer: Tracer, computation: RobotFunction, output: int) -> None:
        (coupled if tracer.model.is_coupled else plain)(tracer, computation, output)

    return traced


def _trace_coupled_closeness(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    tracer.write(output, [coupled_closeness(tracer)])


def _of_vector(result: str, method: str, algorithm: OfVector, coupled: Callable[..., list[Scalar]]) -> Function:
    """Of a joint vector, to which the inertias of joints are put."""
    traced = _by_structure(trace_of_vector(algorithm), trace_of_rates(coupled, takes_vector=True))
    return Function(
        ("q", "tau"), result, ("v",), {method: Method(algorithm)}, traced, invertible=True, public=False
    )  # fmt: skip


DECLARED: dict[str, Function] = {
    "articulated_inertia": Function(
        ("q",), "P", ("links", 6, 6), {"riccati": Method(gains, written_out=True, filters=True),
        "articulated_parameters": Method(articulated_parameters, written_out=True, filters=True)},
        trace_articulated_inertia, "Articulated-body inertia of each link.", invertible=True
    ),
    "joint_inertia": Function(
        ("q",), "D", ("v",), {"factorization": Method(factorization)},
        _by_structure(trace_joint_inertia, trace_of_rates(coupled_pivots)), public=False
    ),
    "inertia_ratio": Function(
        ("q",), "ratio", ("v",), {"": Method(inertia_ratio)},
        _by_structure(trace_inertia_ratio, trace_of_rates(coupled_ratio)), public=False
    ),
    "closeness": Function(
        ("q",), "closeness", (), {"": Method(closeness)}, _by_structure(trace_closeness, _trace_coupled_closeness),
        public=False
    ),
    "factor": _of_vector("D", "", joint_inertia_times, coupled_inertia_times),
    "solve": _of_vector("x", "", solve, coupled_solve),
    "colour": _of_vector("y", "innovations", colour, coupled_colour),
    "whiten": _of_vector("e", "innovations", whiten, coupled_whiten),
}  # fmt: skip
