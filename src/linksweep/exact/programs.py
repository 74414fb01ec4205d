"""The optimiser, tried over the field: a Program computes what the algorithm does that it was traced from.

The algorithm runs over field elements as it is written; then it is traced with the robot's exact numbers as constants,
rewritten, factored, fused, rolled into loops, and each of these Programs is interpreted over the same elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..backends.interpreter import Interpreter
from ..catalogue.functions import FUNCTIONS, Request, signature
from ..catalogue.regrouping import regroup
from ..mechanism.canonical import CanonicalModel
from ..tracing.differentiate import differentiate
from ..tracing.passes.dead_and_fused import fuse, remove_dead
from ..tracing.passes.factoring import factor_sums
from ..tracing.program import Program
from ..tracing.rolled import Rolled
from ..tracing.unrolled import UnrolledTrace
from .field import Dual, Exact, Options
from .points import Point
from .statements import Mechanics, Tried, derivative, rows, times


def traced(model: CanonicalModel, request: Request, rolled: bool = False) -> Program:
    """A Program as the rewrite rules leave it, before any pass."""
    inputs, outputs = signature(model, [request])
    tracer = (Rolled if rolled else UnrolledTrace)(model, inputs)
    FUNCTIONS[request.function].trace(tracer, request, 0)
    return tracer.program(request.function, outputs).verify()


def run(program: Program, point: Point, **other: Sequence[Exact]) -> list[Exact]:
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


def optimised(mechanics: Mechanics) -> Iterator[Tried]:
    """Every function of a mechanism by every method: each Program computes what the algorithm does."""
    model, point = mechanics.model, mechanics.point
    for name, function in FUNCTIONS.items():
        if function.dynamics and not mechanics.dynamic:
            continue
        frame = mechanics.frame if function.needs_frame else ""
        for reference in function.references or ("",):
            options: Options = {"frame": frame, "reference": reference}
            for method, right in mechanics.results(name, all_terms=True, **options).items():
                terms: Options = dict.fromkeys(function.takes, True)
                request = Request(name, method, **options, **terms)
                label = ", ".join(word for word in (method, reference) if word)
                for stage, program in stages(model, request):
                    what = f"{label}, {stage}" if label else stage
                    yield Tried(f"programs of {name}", what, run(program, point), right)
    if mechanics.dynamic:
        yield from _derivatives(mechanics)


def _derivatives(mechanics: Mechanics) -> Iterator[Tried]:
    """d tau / d q and d tau / d qd, differentiated as a Program, along the rates qd, against dual numbers."""
    model, point = mechanics.model, mechanics.point
    if not model.is_single:
        mechanics.exclude("programs of derivatives", "", "are taken along q, for 1-DOF joints")
        return
    request = Request("inverse_dynamics", mechanics.able("inverse_dynamics")[0])
    program = factor_sums(traced(model, request))
    along = point.values["qd"]
    moved = {"q": point.moving(), "qd": [Dual(x, rate) for x, rate in zip(along, along, strict=True)]}
    for by, values in moved.items():
        slopes = rows(run(differentiate(program, by).verify(), point), point.nv)
        right = [derivative(x) for x in point.evaluate(request, **{by: values})]
        yield Tried("programs of derivatives", f"of tau by {by}", times(slopes, along), right)
