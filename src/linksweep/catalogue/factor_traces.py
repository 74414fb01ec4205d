"""How the factors of the mass matrix, solving with it, and the size of joint inertias are traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..algorithms.forward.filter_smoother import filter_smoother
from ..algorithms.mass_matrix.coupled import (
    coupled_closeness,
    coupled_colour,
    coupled_inertia_times,
    coupled_pivots,
    coupled_ratio,
    coupled_solve,
    coupled_whiten,
)
from ..algorithms.mass_matrix.factorization import colour, factorization, gains, joint_inertia_times, whiten
from ..algorithms.mass_matrix.inertia_ratio import closeness, inertia_ratio
from ..mechanism.bias import BaseMotion
from ..spatial.algebra import ZERO_FORCE, ZERO_VEC
from .body_traces import source
from .table import Function, Method, Request


def trace_of_rates(algorithm: Callable[..., Any], takes_vector: bool = False) -> Callable[[Any, Any, int], None]:
    """Of an algorithm for coupled joints, whose vectors stand link after link."""

    def traced(tracer: Any, request: Any, output: int) -> None:
        places = tracer.places()
        given = tracer.read_flat(source(tracer, "tau")) if takes_vector else ()
        found = algorithm(tracer, [given[place] for place in places]) if takes_vector else algorithm(tracer)
        tracer.write(output, [value for _, value in sorted(zip(places, found, strict=True), key=lambda pair: pair[0])])

    return traced


def trace_joint_inertia(tracer: Any, request: Any, output: int) -> None:
    """The pivots of D, (nv,)."""
    tracer.write_rates(output, gains(tracer).D)


def trace_inertia_ratio(tracer: Any, request: Any, output: int) -> None:
    tracer.write_rates(output, inertia_ratio(tracer))


def trace_closeness(tracer: Any, request: Any, output: int) -> None:
    tracer.write(output, [closeness(tracer)])


def trace_of_vector(algorithm: Callable[[Any, Any], Any]) -> Callable[[Any, Any, int], None]:
    """Of an algorithm that takes a joint vector and gives one."""

    def traced(tracer: Any, request: Any, output: int) -> None:
        tracer.write_rates(output, algorithm(tracer, tracer.read(source(tracer, "tau"))))

    return traced


def solve(sweep: Any, b: Any) -> Any:
    """M^-1 b: forward dynamics at rest, without gravity."""
    at_rest = BaseMotion(ZERO_VEC, ZERO_VEC, ZERO_VEC)
    return filter_smoother(sweep, sweep.zeros(), b, sweep.same(ZERO_FORCE), at_rest).qdd


def _by_structure(plain: Any, coupled: Any) -> Any:
    """How a function is traced that filters have, and the mass matrix where a joint follows another."""

    def traced(tracer: Any, request: Request, output: int) -> None:
        (coupled if tracer.model.is_coupled else plain)(tracer, request, output)

    return traced


def _trace_coupled_closeness(tracer: Any, request: Request, output: int) -> None:
    tracer.write(output, [coupled_closeness(tracer)])


def _of_vector(result: str, method: str, algorithm: Any, coupled: Any) -> Function:
    """Of a joint vector, to which the inertias of joints are put."""
    traced = _by_structure(trace_of_vector(algorithm), trace_of_rates(coupled, takes_vector=True))
    return Function(
        ("q", "tau"), result, ("v",), {method: Method(algorithm)}, traced, invertible=True, public=False
    )  # fmt: skip


FACTORS: dict[str, Function] = {
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
