"""The optimiser, tried over the field: a Program computes what the algorithm does that it was traced from.

The algorithm runs over field elements as it is written; then it is traced with the robot's exact numbers as constants,
rewritten, factored, fused, rolled into loops, and each of these Programs is interpreted over the same elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..backends.interpreter import Interpreter
from ..canonical import CanonicalModel
from ..functions import FUNCTIONS, Request, signature
from ..regrouping import regroup
from ..tracing.differentiate import differentiate
from ..tracing.factoring import factor_sums
from ..tracing.passes import fuse, remove_dead
from ..tracing.program import Program
from ..tracing.rolled import Rolled
from ..tracing.unrolled import UnrolledTrace
from .points import Point


def traced(model: CanonicalModel, request: Request, rolled: bool = False) -> Program:
    """A Program as the rewrite rules leave it, before any pass."""
    inputs, outputs = signature(model, [request])
    tracer: Any = (Rolled if rolled else UnrolledTrace)(model, inputs)
    FUNCTIONS[request.function].trace(tracer, request, 0)
    return tracer.program(request.function, outputs).verify()


def run(program: Program, point: Point, **other: Sequence[Any]) -> list[Any]:
    """The first result of a Program at a point, flat."""
    values = point.values | other
    inputs = []
    for array in program.inputs:
        given = np.empty((1, array.size), dtype=object)
        given[0, :] = values[array.name]
        inputs.append(given)
    outputs = [np.empty((1, array.size), dtype=object) for array in program.outputs]
    Interpreter(program)(inputs, outputs)
    return list(outputs[0][0])


def stages(model: CanonicalModel, request: Request) -> Iterator[tuple[str, Program]]:
    """Every Program that a request goes through on its way to a backend."""
    method = FUNCTIONS[request.function].methods[request.method]
    plain = traced(model, request)
    yield "traced", plain
    factored = factor_sums(plain).verify()
    yield "factored", factored
    yield "fused", fuse(factored).verify()
    if method.linear:
        yield "with base parameters", factor_sums(traced(regroup(model), request)).verify()
    if not method.written_out:
        loops = traced(model, request, rolled=True)
        yield "rolled", loops
        live = remove_dead(loops).verify()
        yield "rolled, without dead work", live
        yield "rolled, fused", fuse(live).verify()


def derivative(model: CanonicalModel, request: Request, by: str) -> Program:
    return differentiate(factor_sums(traced(model, request)), by).verify()
