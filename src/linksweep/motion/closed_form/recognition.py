"""Which closed form a chain has, from its screws alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base import FloatArray
from .arms import Place, Unsolvable
from .parallels import CyclicParallelAxes, ParallelAxes
from .screws import Motion, Screw
from .wrists import SphericalWrist

Solver = Callable[[Motion, FloatArray], Place]


class Backward:
    """The same chain, seen from its other end: e6^-1 ... e1^-1 = G^-1."""

    def __init__(self, solver: Any, screws: tuple[Screw, ...], size: float) -> None:
        self.solver = solver(tuple(screw.reversed() for screw in screws[::-1]), size)

    def __call__(self, motion: Motion, near: FloatArray) -> Place:
        place = self.solver(motion.inverse(), near[::-1])
        return Place(place.q[::-1], place.free)


def recognised(screws: tuple[Screw, ...]) -> tuple[str, Solver]:
    """What the chain is called and how it is solved; Unsolvable says what it lacks."""
    points = np.stack([screw.r.reshape(3) for screw in screws])
    size = float(np.ptp(points, axis=0).max()) or 1.0
    why: list[str] = []
    forms: tuple[tuple[str, Callable[..., Any]], ...] = (
        ("spherical wrist", SphericalWrist),
        ("spherical shoulder", lambda *given: Backward(SphericalWrist, *given)),
        ("parallel axes of joints 2, 3 and 4", ParallelAxes),
        ("parallel axes of joints 3, 4 and 5", lambda *given: Backward(ParallelAxes, *given)),
        ("parallel axes of joints 1, 2 and 3", CyclicParallelAxes),
        ("parallel axes of joints 4, 5 and 6", lambda *given: Backward(CyclicParallelAxes, *given)),
    )
    for name, form in forms:
        try:
            return name, form(screws, size)
        except Unsolvable as reason:
            why.append(str(reason))
    raise Unsolvable(f"{why[0]}, and {why[2]}")
