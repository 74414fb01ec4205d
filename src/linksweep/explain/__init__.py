"""Explanations of recursive algorithms: `robot.explain` runs one link by link, with equations, symbols and values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ..backends.symbolic import Options, symbolic, written_size
from ..errors import ArgumentError
from ..functions.computation import Parametric, RobotFunction
from ..functions.details import quantities
from ..functions.functions import FUNCTIONS
from ..functions.parameters import Dimensions, ParameterSet, dimensions
from ..mechanism.canonical import CanonicalModel, canonical
from ..model.model import BASE, Model
from ..spatial.scalars import Scalar
from ..support.checks import refuse_foreign
from ..tracing.program import Array
from ..tracing.tracer import UnrolledRun, UnrolledTrace
from .explanation import Explanation, check_suffix
from .steps import citation, meanings, trace_steps

EXPLAINED = ("inverse_dynamics", "forward_dynamics", "bias_forces", "gravity_forces")


def explain(model: Model, request: RobotFunction, arguments: Mapping[str, ArrayLike | None]) -> Explanation:
    """Explain what the method of a request computes for one sample of its inputs, by name; omitted inputs are 0."""
    described = canonical(model, described_frames=True)
    request = replace(request, model=described)
    inputs = request.inputs
    names = [array.name for array in inputs]
    for name in arguments:
        if name not in names:
            raise ArgumentError(f"explain: {request.function} takes {', '.join(names)}, got {name}.")
    flat = [_checked(array, arguments.get(array.name)) for array in inputs]
    try:
        return _explained(model, UnrolledRun(described, inputs, flat), request)
    except ZeroDivisionError:
        raise ArgumentError(
            f"explain: {request.function} by {request.method!r} divides by 0 at this q, where a joint moves no "
            f"inertia: use another q or method."
        ) from None


def explain_symbols(
    model: Model, request: RobotFunction, parameters: Sequence[ParameterSet],
    names: Callable[[Array, Sequence[ParameterSet]], Sequence[str]], limit: int,
) -> Explanation:  # fmt: skip
    """Explain a request with symbols for all inputs, named by `names`: every value is a SymPy expression.

    parameters: parameters of the robot that are symbols too.
    """
    described = canonical(model, described_frames=True)
    # dimensions that are not 0 get letters; which ones depends on the frames
    sets = [dimensions(described) or each if isinstance(each, Dimensions) else each for each in parameters]
    request = replace(request, model=described)
    inputs = Parametric(request, tuple(sets)).inputs

    def with_symbols(leaves: Sequence[Sequence[Scalar]]) -> CanonicalModel:
        symbolic_model = described
        for chosen, values in zip(sets, leaves[len(inputs) - len(sets) :], strict=True):
            symbolic_model = chosen.apply(symbolic_model, values)
        return symbolic_model

    tracer = UnrolledTrace(described, inputs, with_symbols)
    explanation = _explained(model, tracer, request)
    mappings = [*(line.values for _, _, line in explanation.lines), explanation.quantities, explanation.given]
    arrays = [(each, name, np.asarray(value, dtype=object)) for each in mappings for name, value in each.items()]
    values = [x for _, _, array in arrays for x in array.ravel()]
    tracer.write(0, values)
    program = tracer.program(request.function, [Array("values", (len(values),))])
    what = f"{request.function} of {model.name} with all intermediate quantities"
    # expressions that depend on comparisons are not fractions of polynomials and cannot be simplified
    choices = any(node.op in ("lt", "where", "sqrt") for body in program.bodies() for node in body.nodes)
    if choices and (size := written_size(program)) > limit:
        raise ArgumentError(
            f"explain: {request.function} by {request.method!r} contains comparisons, cannot be simplified, and "
            f"takes {size:,} operations, more than limit={limit:,}: use another method, or numbers."
        )
    options = Options(simplify=not choices, limit=limit)
    written = iter(symbolic(program, {array.name: names(array, sets) for array in inputs}, options, what).flat)
    letters = {letter: what for each in sets if isinstance(each, Dimensions) for letter, what in each.meanings.items()}
    explanation = replace(explanation, meanings={**explanation.meanings, **letters})
    for mapping, name, array in arrays:
        expressions = np.empty(array.size, dtype=object)
        expressions[:] = [next(written) for _ in range(array.size)]
        mapping[name] = expressions.reshape(array.shape)
    return explanation


def _explained(model: Model, run: UnrolledRun, request: RobotFunction) -> Explanation:
    stages, record = trace_steps(run, request)
    results = quantities(run, record, FUNCTIONS[request.function].result)
    algorithm = FUNCTIONS[request.function].methods[request.method].algorithm
    algorithm = getattr(algorithm, "func", algorithm)  # partial applications of another algorithm
    inputs = zip(run.inputs, run.leaves, strict=True)
    return Explanation(
        model.name,
        request.function,
        request.method,
        citation(sys.modules[algorithm.__module__]),
        {array.name: np.array(values).reshape(array.shape) for array, values in inputs},
        tuple(stages),
        {entry.name: np.array(entry.values).reshape(entry.shape) for entry in results},
        meanings(sys.modules[type(record).__module__]),
        _joints(model),
    )


def _checked(array: Array, value: ArrayLike | None) -> list[float]:
    """Return one sample of an input as a flat list."""
    if value is None:
        return [0.0] * array.size
    refuse_foreign(f"explain: {array.name}", value)
    try:
        sample = np.asarray(value)
    except ValueError:
        sample = np.array(None)
    if sample.dtype.kind not in "iufb" or sample.shape != array.shape or not np.isfinite(sample).all():
        raise ArgumentError(
            f"explain: {array.name} has shape {sample.shape} and type {sample.dtype}, expected finite numbers of shape "
            f"{array.shape} for one sample."
        )
    return [float(x) for x in sample.ravel()]


def _joints(model: Model) -> dict[str, str]:
    """Describe the joint of each link."""
    names = {BASE: model.base, **{k: link.name for k, link in enumerate(model.links)}}
    return {
        link.name: f"joint {link.joint.name}, {link.joint.kind}, on {names[link.parent]}"
        + (f", {link.joint.type.nv} DOF" if link.joint.type.nv > 1 else "")
        for link in model.links
    }


__all__ = ["EXPLAINED", "Explanation", "check_suffix", "explain", "explain_symbols"]
