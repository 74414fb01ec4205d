"""Recursions explained: `robot.explain` walks one link by link, with equations, symbols and numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ..backends.symbolic import Options, symbolic, written_size
from ..catalogue.details import quantities
from ..catalogue.dimensions import Dimensions, dimensions
from ..catalogue.functions import FUNCTIONS, Request, signature
from ..catalogue.parameters import ParameterSet
from ..description.model import BASE, Model
from ..errors import ArgumentError
from ..mechanism.canonical import CanonicalModel, canonical
from ..spatial.scalars import Scalar
from ..support.foreign import refuse_foreign
from ..tracing.program import Array
from ..tracing.unrolled import UnrolledRun, UnrolledTrace
from .explanation import Explanation, check_ending
from .source import citation, meanings
from .walk import walk

EXPLAINED = ("inverse_dynamics", "forward_dynamics", "bias_forces", "gravity_forces")


def explain(model: Model, request: Request, given: Mapping[str, ArrayLike | None]) -> Explanation:
    """What the method of a request does with these inputs, by name, one sample of each; what is not given is 0."""
    described = canonical(model, described_frames=True)
    inputs, _ = signature(described, [request])
    known = [array.name for array in inputs]
    for name in given:
        if name not in known:
            raise ArgumentError(f"explain: {request.function} takes {', '.join(known)}, got {name}: leave it out.")
    flat = [_checked(array, given.get(array.name)) for array in inputs]
    try:
        return _explained(model, UnrolledRun(described, inputs, flat), request)
    except ZeroDivisionError:
        raise ArgumentError(
            f"explain: {request.function} by {request.method!r} divides by 0 at this q, expected a pose in which every "
            f"joint moves some inertia: take another q or method."
        ) from None


def explain_symbols(
    model: Model, request: Request, parameters: Sequence[ParameterSet],
    names: Callable[[Array, Sequence[ParameterSet]], Sequence[str]], limit: int,
) -> Explanation:  # fmt: skip
    """The same with symbols for all inputs, named by `names`: every number is a SymPy expression.

    parameters: numbers of the robot that are symbols too.
    """
    described = canonical(model, described_frames=True)
    # letters stand for what is not 0, which depends on the frames
    sets = [dimensions(described) or each if isinstance(each, Dimensions) else each for each in parameters]
    inputs, _ = signature(described, [request], sets)

    def lettered(given: Sequence[Sequence[Scalar]]) -> CanonicalModel:
        found = described
        for chosen, values in zip(sets, given[len(inputs) - len(sets) :], strict=True):
            found = chosen.apply(found, values)
        return found

    tracer = UnrolledTrace(described, inputs, lettered)
    found = _explained(model, tracer, request)
    places = [*(line.values for _, _, line in found.lines), found.quantities, found.given]
    arrays = [(place, name, np.asarray(value, dtype=object)) for place in places for name, value in place.items()]
    values = [x for _, _, array in arrays for x in array.ravel()]
    tracer.write(0, values)
    program = tracer.program(request.function, [Array("values", (len(values),))])
    what = f"{request.function} of {model.name} with every quantity on its way"
    # what is chosen by a comparison is no fraction of polynomials, and cannot be simplified
    choices = any(node.op in ("lt", "where", "sqrt") for body in program.bodies() for node in body.nodes)
    if choices and (size := written_size(program)) > limit:
        raise ArgumentError(
            f"explain: {request.function} by {request.method!r} compares numbers on its way, and takes {size:,} "
            f"operations written out as it is, more than limit={limit:,}: take another method, or numbers."
        )
    options = Options(simplify=not choices, limit=limit)
    written = iter(symbolic(program, {array.name: names(array, sets) for array in inputs}, options, what).flat)
    letters = {letter: what for each in sets if isinstance(each, Dimensions) for letter, what in each.meanings.items()}
    found = replace(found, meanings={**found.meanings, **letters})
    for place, name, array in arrays:
        expressions = np.empty(array.size, dtype=object)
        expressions[:] = [next(written) for _ in range(array.size)]
        place[name] = expressions.reshape(array.shape)
    return found


def _explained(model: Model, run: UnrolledRun, request: Request) -> Explanation:
    stages, record = walk(run, request)
    found = quantities(run, record, FUNCTIONS[request.function].result)
    algorithm = FUNCTIONS[request.function].methods[request.method].algorithm
    algorithm = getattr(algorithm, "func", algorithm)  # some are forms of another, with an argument set
    given = zip(run.inputs, run.leaves, strict=True)
    return Explanation(
        model.name,
        request.function,
        request.method,
        citation(sys.modules[algorithm.__module__]),
        {array.name: np.array(values).reshape(array.shape) for array, values in given},
        tuple(stages),
        {entry.name: np.array(entry.values).reshape(entry.shape) for entry in found},
        meanings(sys.modules[type(record).__module__]),
        _joints(model),
    )


def _checked(array: Array, value: ArrayLike | None) -> list[float]:
    """One sample of an input, flat."""
    if value is None:
        return [0.0] * array.size
    refuse_foreign(f"explain: {array.name}", value)
    try:
        found = np.asarray(value)
    except ValueError:
        found = np.array(None)
    if found.dtype.kind not in "iufb" or found.shape != array.shape or not np.isfinite(found).all():
        raise ArgumentError(
            f"explain: {array.name} has shape {found.shape} and type {found.dtype}, expected finite numbers of shape "
            f"{array.shape}, of one sample."
        )
    return [float(x) for x in found.ravel()]


def _joints(model: Model) -> dict[str, str]:
    names = {BASE: model.base, **{k: link.name for k, link in enumerate(model.links)}}
    return {
        link.name: f"joint {link.joint.name}, {link.joint.kind}, on {names[link.parent]}"
        + (f", {link.joint.type.nv} DOF" if link.joint.type.nv > 1 else "")
        for link in model.links
    }


__all__ = ["EXPLAINED", "Explanation", "check_ending", "explain", "explain_symbols"]
