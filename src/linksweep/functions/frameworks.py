"""Compiled functions inside JAX, PyTorch and CasADi: the derivatives that these frameworks need.

Frameworks differentiate with respect to the components of q, quaternions included. They get the derivatives of all
results with respect to some inputs in one program: Jacobians, or products with vectors if the Jacobians are not small.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from ..backends.registry import backend_named
from ..errors import ArgumentError, BackendError
from ..support.disk_cache import canonical
from ..support.messages import shown
from ..support.settings import __version__
from .compiled import CompiledFunction, compiled
from .computation import (
    Computation,
    Derivative,
    Jvp,
    Together,
    Vjp,
    Widened,
    distinct_weights,
    is_transformed,
    parts_of,
    transformations,
)
from .details import WithDetails

T = TypeVar("T")  # an array of some framework
SMALL = 12  # entries of a Jacobian that is formed: with more, products are faster for jacfwd and hessian, too


def checked(f: object) -> CompiledFunction:
    """Return a function that a framework can call; its parameters may vary from sample to sample like other inputs."""
    if not isinstance(f, CompiledFunction):
        raise ArgumentError(
            f"wrap got {shown(f)}, expected a compiled function or a rollout: robot.compile('inverse_dynamics')."
        )
    if not backend_named(f.backend).machine_code:
        raise BackendError(f"wrap got {f.name} of the {f.backend}, expected machine code: leave backend= out.")
    refuse_details("wrap", f)
    return compiled(f.computation.with_varied_parameters(), None, 1, f.backend, at_once=False)


def refuse_details(caller: str, f: CompiledFunction) -> None:
    if any(isinstance(part, WithDetails) for part in parts_of(f.computation)):
        raise ArgumentError(f"{caller} got {f.name} with details, expected plain results: use robot.compile.")


def in_order(f: CompiledFunction, args: tuple[T, ...], named: Mapping[str, T]) -> tuple[T, ...]:
    """Return the arguments of a call, some of them by name, in the order of `f.inputs`."""
    rest = f.inputs[len(args) :]
    if len(args) + len(named) != len(f.inputs) or any(name not in rest for name in named):
        given = f"{len(args)} arguments{f' and {chr(44).join(named)}' if named else ''}"
        raise ArgumentError(f"{f.name} got {given}, expected {', '.join(f.inputs)}, each once.")
    return (*args, *(named[name] for name in rest))


def unique_name(name: str, content: object) -> str:
    """Return a name for what a function computes, the same in every process: letters, digits and underscores."""
    digest = hashlib.sha256(canonical((__version__, content)).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{re.sub(r'[^0-9A-Za-z_]', '_', name)[:60]}_{digest[:24]}"


def by_components(f: CompiledFunction, inputs: Sequence[tuple[str, ...]]) -> tuple[Computation, ...]:
    """Return the derivatives of each part of `f` with respect to each of these inputs, or to several one by one."""
    coordinates = _has_quaternions(f)
    parts = []
    for part in _whole_parts(f):
        for names in inputs:
            made = part
            for name in names:
                made = Derivative(made, name, coordinates)
            parts.append(made)
    return tuple(parts)


def _whole_parts(f: CompiledFunction) -> list[Computation]:
    """Return the parts of `f`, each with all inputs: a part may not depend on some."""
    parts, roles = parts_of(f.computation), f.computation.roles
    return [part if len(parts) == 1 or part.roles == roles else Widened(part, roles) for part in parts]


def _has_quaternions(f: CompiledFunction) -> bool:
    """Return whether joint velocities and derivatives of q differ.

    Derivatives of `f` itself must be with respect to the components of q then.
    """
    differ = not f.computation.model.is_euclidean
    for part in parts_of(f.computation) if differ else ():
        for each in transformations(part):
            if isinstance(each, Derivative) and each.wrt == "q" and not each.coordinates:
                raise ArgumentError(
                    f"{f.name} is a derivative along joint velocities and cannot be differentiated further "
                    f"here: request ('derivative', {each.of.name!r}, 'q', 'coordinates')."
                )
    return differ


def program_of(f: CompiledFunction, parts: Sequence[Computation]) -> Together:
    """Return the program of other parts, with the options of `f`."""
    parts = distinct_weights(parts)
    own = f.computation
    return replace(own, parts=parts, rolled=None) if isinstance(own, Together) else Together(parts)


def jacobian(f: CompiledFunction, inputs: Sequence[str], values: bool = True) -> CompiledFunction:
    """Return the results (`values`), then the derivatives of each with respect to each of these inputs."""
    parts = (*(parts_of(f.computation) if values else ()), *by_components(f, [(name,) for name in inputs]))
    return compiled(program_of(f, parts), f.dtype, 1, f.backend, at_once=False)


def by_products(f: CompiledFunction, inputs: Sequence[str]) -> bool:
    """Return whether products with vectors are to be computed without the Jacobian itself."""
    parts = parts_of(f.computation)
    if any(map(is_transformed, parts)) or len(set(parts)) < len(parts):
        return False
    columns = sum(math.prod(argument.shape) for argument in f.signature.inputs if argument.name in inputs)
    return columns * sum(math.prod(output.shape) for output in f.signature.outputs) > SMALL


def product(f: CompiledFunction, kind: str, inputs: Sequence[str]) -> CompiledFunction:
    """Return the jvp of all results with respect to these inputs, or the vjp of each part with respect to each."""
    coordinates = _has_quaternions(f)
    parts = [
        Jvp(part, names, coordinates) if kind == "jvp" else Vjp(part, names, coordinates)
        for part in _whole_parts(f)
        for names in ([tuple(inputs)] if kind == "jvp" else [(name,) for name in inputs])
    ]
    return compiled(program_of(f, parts), f.dtype, 1, f.backend, at_once=False)


def product_arguments(f: CompiledFunction, made: CompiledFunction, given: Sequence[T], vectors: Sequence[T]) -> list[T]:
    """Return the arguments of a product in its order: those of `f`, and the tangents or weights that `f` lacks."""
    own, further = dict(zip(f.inputs, given, strict=True)), iter(vectors)
    return [own[name] if name in own else next(further) for name in made.inputs]
