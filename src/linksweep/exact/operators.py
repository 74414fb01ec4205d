"""The spatial operators of a chain over the field, and Appendix A tried on them.

An identity of operators is an identity of what they make of a vector: both sides are applied, as sweeps, to one that is
drawn at random.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..algorithms.factorization import gains
from ..spatial import Vec
from ..spatial_operators.chain import TurnedChain
from ..spatial_operators.identities import IDENTITIES
from ..spatial_operators.operators import SpatialOperators
from .points import Draw, Point
from .statements import Tried


class ExactOperators(SpatialOperators):
    """SpatialOperators whose numbers are field elements, at the origins of the canonical frames."""

    def __init__(self, point: Point, draw: Draw):
        self.N = len(point.model.links)
        self._chain = TurnedChain(point.model, point.values["q"])
        self._l_tip = Vec(*draw.numbers(3))
        self._none = self._chain.same(None)
        self._matrices: dict[Any, np.ndarray] = {}

    def dense(self, a: Any) -> np.ndarray:
        if isinstance(a, np.ndarray):
            return a
        if a not in self._matrices:
            self._matrices[a] = a.matmat(np.eye(a.shape[1]).astype(object))
        return self._matrices[a]

    @property
    def _gains(self) -> Any:
        if self._kept is None:
            self._kept = gains(self._chain)
        return self._kept

    _kept: Any = None

    def _check_inertia(self) -> None:
        pass


def appendix_a(point: Point, draw: Draw) -> Iterator[Tried]:
    o = ExactOperators(point, draw)
    x = np.array(draw.numbers(6 * o.N), dtype=object)
    for name, equations in IDENTITIES.items():
        for k, (left, right, *_) in enumerate(equations(o)):
            own = x[: left.shape[1]]
            yield Tried(f"Rodriguez & Kreutz {name}", "" if k == 0 else f"equation {k + 1}", list(left @ own), list(right @ own))
