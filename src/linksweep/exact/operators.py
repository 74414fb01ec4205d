"""The spatial operators of a chain over the field, and Appendix A tried on them.

An identity of operators is an identity of what they make of a vector: both sides are applied, as sweeps, to one that is
drawn at random.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from ..algorithms.mass_matrix.factorization import gains
from ..spatial.algebra import Vec
from ..spatial_operators.chain import TurnedChain
from ..spatial_operators.identities import IDENTITIES
from ..spatial_operators.operators import SpatialOperators
from .field import Exact
from .points import Draw, Point


class ExactOperators(SpatialOperators):
    """SpatialOperators whose numbers are field elements, at the origins of the canonical frames."""

    def __init__(self, point: Point, draw: Draw):
        self.N = len(point.model.links)
        self._chain = TurnedChain(point.model, point.values["q"])
        self._tips = [(self.N - 1, Vec(*draw.numbers(3)))]
        self._none = self._chain.same(None)
        self._matrices: dict[object, np.ndarray] = {}

    def dense(self, a: Exact) -> np.ndarray:
        if isinstance(a, np.ndarray):
            return a
        if a not in self._matrices:
            self._matrices[a] = a.matmat(np.eye(a.shape[1]).astype(object))
        return self._matrices[a]

    @cached_property
    def _gains(self) -> Exact:
        return gains(self._chain)

    def _check_inertia(self) -> None:
        pass  # it is known to be there


def appendix_a(point: Point, draw: Draw) -> Iterator[tuple[str, list[Exact], list[Exact]]]:
    """Name, left and right side of every equation of identities.py."""
    o = ExactOperators(point, draw)
    x = np.array(draw.numbers(6 * o.N), dtype=object)
    for name, equations in IDENTITIES.items():
        for k, (left, right, *_) in enumerate(equations(o), start=1):
            own = x[: left.shape[1]]
            yield name if k == 1 else f"{name}, equation {k}", list(left @ own), list(right @ own)
