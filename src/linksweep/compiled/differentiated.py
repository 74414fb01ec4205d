"""Derivatives as optimisers and frameworks want them: by the numbers that they hold, quaternions included."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..errors import ArgumentError

if TYPE_CHECKING:
    from ..catalogue.functions import Request
    from .function import CompiledFunction


def by_numbers(f: CompiledFunction, by: Sequence[tuple[str, ...]]) -> tuple[Request, ...]:
    """The derivatives of each result of `f` by each of these inputs, or several one after the other, by the numbers of
    q. Where q' = v those are the derivatives along rates.
    """
    differ = _quaternions(f)
    return tuple(r.differentiated(names, coordinates=differ) for r in f.recipe.requests for names in by)


def products(f: CompiledFunction, kind: str, by: Sequence[str]) -> tuple[Request, ...]:
    """The jvp of each result by all of these inputs together, or the vjp of each by each, by the numbers of q."""
    moved = [tuple(by)] if kind == "jvp" else [(name,) for name in by]
    differ = _quaternions(f)
    return tuple(replace(r, product=kind, moved=m, coordinates=differ) for r in f.recipe.requests for m in moved)


def _quaternions(f: CompiledFunction) -> bool:
    """Whether rates and the numbers of q differ; derivatives of `f` itself must then be by numbers."""
    plain = f.recipe.requests
    differ = not f.recipe.model.is_euclidean
    along = [r for r in plain if r.by and not r.coordinates and "q" in r.by]
    if along and differ:
        raise ArgumentError(
            f"{f.name} is a derivative along rates, expected one by coordinates where it is to be differentiated "
            f"further: ask for ('derivative', {along[0].function!r}, 'q', 'coordinates')."
        )
    return differ
