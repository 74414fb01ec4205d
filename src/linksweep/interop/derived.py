"""The Jacobian programs that frameworks need: all results of a function by some of its inputs, in one program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..compiled.function import CompiledFunction
from ..errors import ArgumentError, BackendError
from ..support.messages import shown


def checked(f: Any) -> CompiledFunction:
    """A function that a framework can take in, its parameters varying from sample to sample like other inputs."""
    if not isinstance(f, CompiledFunction):
        raise ArgumentError(f"wrap got {shown(f)}, expected a compiled function: robot.compile('inverse_dynamics').")
    if f.backend != "llvm":
        raise BackendError(f"wrap got {f.name} of the interpreter, expected machine code: leave backend= out.")
    if f.recipe.details:
        raise ArgumentError(f"wrap got {f.name} with details, expected plain results: use robot.compile.")
    recipe = replace(f.recipe, varied=bool(f.recipe.parameters))
    return CompiledFunction(recipe, f.dtype, 1, "llvm")


def jacobian(f: CompiledFunction, by: Sequence[str], values: bool = True) -> CompiledFunction:
    """The results (`values`), then the derivatives of each by each of these inputs, by the numbers of q.

    Where q' = v those are the derivatives along rates.
    """
    plain = f.recipe.requests
    differ = not f.recipe.model.is_euclidean
    along = [r for r in plain if r.by and not r.coordinates and "q" in r.by]
    if along and differ:
        raise ArgumentError(
            f"{f.name} is a derivative along rates, expected one by coordinates where it is to be differentiated "
            f"further: ask for ('derivative', {along[0].function!r}, 'q', 'coordinates')."
        )
    made = [replace(r, by=(*r.by, name), coordinates=differ) for r in plain for name in by]
    recipe = replace(f.recipe, requests=(*(plain if values else ()), *made), rolled=None)
    return CompiledFunction(recipe, f.dtype, 1, "llvm")
