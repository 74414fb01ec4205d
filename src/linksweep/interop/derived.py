"""The derivatives that frameworks need, of all results of a function by some of its inputs, in one program: Jacobians,
or unless those are tiny their products with vectors."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ..compiled.differentiated import by_numbers, products
from ..compiled.function import CompiledFunction
from ..errors import ArgumentError, BackendError
from ..simulation.gradient import Rollout
from ..support.disk_cache import canonical
from ..support.messages import shown
from ..support.version import __version__

T = TypeVar("T")  # an array of some framework
SMALL = 12  # entries of a Jacobian that is formed: with more, products are faster for jacfwd and hessian, too


def checked(f: object) -> CompiledFunction:
    """A function that a framework can take in, its parameters varying from sample to sample like other inputs."""
    if not isinstance(f, CompiledFunction):
        raise ArgumentError(
            f"wrap got {shown(f)}, expected a compiled function or a rollout: robot.compile('inverse_dynamics')."
        )
    if f.backend != "llvm":
        raise BackendError(f"wrap got {f.name} of the interpreter, expected machine code: leave backend= out.")
    if f.recipe.details:
        raise ArgumentError(f"wrap got {f.name} with details, expected plain results: use robot.compile.")
    recipe = replace(f.recipe, varied=bool(f.recipe.parameters))
    return CompiledFunction(recipe, None, 1, "llvm")  # in the type that it is given


def in_order(f: CompiledFunction, args: tuple[T, ...], named: Mapping[str, T]) -> tuple[T, ...]:
    """The arguments of a call, some of them by name, in the order of `f.inputs`."""
    rest = f.inputs[len(args) :]
    if len(args) + len(named) != len(f.inputs) or any(name not in rest for name in named):
        given = f"{len(args)} arguments{f' and {chr(44).join(named)}' if named else ''}"
        raise ArgumentError(f"{f.name} got {given}, expected {', '.join(f.inputs)}, each once.")
    return (*args, *(named[name] for name in rest))


def unique_name(function: CompiledFunction | Rollout) -> str:
    """A name for what a function computes, the same in every process: letters, digits and underscores."""
    if isinstance(function, CompiledFunction):
        name, content = function.name, function.recipe
    else:
        name, content = "rollout", (function.dt, function.recipe, function.backend, function.threads)
    digest = hashlib.sha256(canonical((__version__, content)).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{re.sub(r'[^0-9A-Za-z_]', '_', name)[:60]}_{digest[:24]}"


def jacobian(f: CompiledFunction, by: Sequence[str], values: bool = True) -> CompiledFunction:
    """The results (`values`), then the derivatives of each by each of these inputs, by the numbers of q."""
    made = by_numbers(f, [(name,) for name in by])
    recipe = replace(f.recipe, requests=(*(f.recipe.requests if values else ()), *made), rolled=None)
    return CompiledFunction(recipe, f.dtype, 1, "llvm")


def by_products(f: CompiledFunction, by: Sequence[str]) -> bool:
    """Whether products with vectors are to be computed without the Jacobian itself."""
    requests = f.recipe.requests
    if any(r.slope for r in requests) or len(set(requests)) < len(requests):
        return False
    columns = sum(math.prod(argument.shape) for argument in f.signature.inputs if argument.name in by)
    return columns * sum(math.prod(output.shape) for output in f.signature.outputs) > SMALL


def product(f: CompiledFunction, kind: str, by: Sequence[str]) -> CompiledFunction:
    """The jvp of all results by these inputs, or the vjp of each result by each of them."""
    recipe = replace(f.recipe, requests=products(f, kind, by), rolled=None)
    return CompiledFunction(recipe, f.dtype, 1, "llvm")


def product_arguments(f: CompiledFunction, made: CompiledFunction, given: Sequence[T], vectors: Sequence[T]) -> list[T]:
    """The arguments of a product in its order: those of `f`, and the tangents or weights where `f` has none."""
    own, further = dict(zip(f.inputs, given, strict=True)), iter(vectors)
    return [own[name] if name in own else next(further) for name in made.inputs]
