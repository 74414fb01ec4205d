"""How the factors of the mass matrix, solving with it, and the size of joint inertias are traced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..algorithms.forward.filter_smoother import filter_smoother
from ..algorithms.mass_matrix.factorization import gains
from ..algorithms.mass_matrix.inertia_ratio import closeness, inertia_ratio
from ..mechanism.bias import BaseMotion
from ..spatial.algebra import ZERO_FORCE, ZERO_VEC
from .body_traces import source


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
