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


def trace_joint_inertia(tracer: Any, request: Any, output: int) -> None:
    """The pivots of D, (nv,)."""
    tracer.write_coordinates(output, gains(tracer).D)


def trace_inertia_ratio(tracer: Any, request: Any, output: int) -> None:
    tracer.write_coordinates(output, inertia_ratio(tracer))


def trace_closeness(tracer: Any, request: Any, output: int) -> None:
    tracer.write(output, [closeness(tracer)])


def trace_of_vector(algorithm: Callable[[Any, Any], Any]) -> Callable[[Any, Any, int], None]:
    """Of an algorithm that takes a joint vector and gives one."""

    def traced(tracer: Any, request: Any, output: int) -> None:
        tracer.write_coordinates(output, algorithm(tracer, tracer.read(source(tracer, "tau"))))

    return traced


def solve(sweep: Any, b: Any) -> Any:
    """M^-1 b: forward dynamics at rest, without gravity."""
    at_rest = BaseMotion(ZERO_VEC, ZERO_VEC, ZERO_VEC)
    return filter_smoother(sweep, sweep.zeros(), b, sweep.same(ZERO_FORCE), at_rest).qdd
