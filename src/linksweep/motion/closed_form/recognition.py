"""Which closed form a chain has, from its screws alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..base import FloatArray
from .arms import Place, Unsolvable
from .parallels import CyclicParallelAxes, ParallelAxes
from .screws import Motion, Screw
from .wrists import SphericalWrist

Solver = Callable[[Motion, FloatArray], Place]


class Backward:
    """The same chain, seen from its other end: e6^-1 ... e1^-1 = G^-1."""

    def __init__(self, solver: Callable[..., Solver], screws: tuple[Screw, ...], size: float) -> None:
        self.solver = solver(tuple(screw.reversed() for screw in screws[::-1]), size)

    def __call__(self, motion: Motion, near: FloatArray) -> Place:
        place = self.solver(motion.inverse(), near[::-1])
        return Place(place.q[::-1], place.free)


def backward(form: Callable[..., Solver]) -> Callable[..., Solver]:
    return lambda screws, size: Backward(form, screws, size)


FORMS: tuple[tuple[str, str, Callable[..., Solver]], ...] = (
    ("spherical wrist", "4, 5 and 6", SphericalWrist),
    ("spherical wrist at the base", "1, 2 and 3", backward(SphericalWrist)),
    ("parallel axes", "2, 3 and 4", ParallelAxes),
    ("parallel axes", "3, 4 and 5", backward(ParallelAxes)),
    ("parallel axes", "1, 2 and 3", CyclicParallelAxes),
    ("parallel axes", "4, 5 and 6", backward(CyclicParallelAxes)),
)


def recognised(screws: tuple[Screw, ...]) -> tuple[str, Solver]:
    """What the chain is called and how it is solved; Unsolvable says what it lacks."""
    points = np.stack([screw.r.reshape(3) for screw in screws])
    size = float(np.ptp(points, axis=0).max()) or 1.0
    nearest: dict[bool, tuple[float, str]] = {}  # of both sorts of forms the one that is nearly there
    for name, joints, form in FORMS:
        try:
            return f"{name}: joints {joints}", form(screws, size)
        except Unsolvable as reason:
            sort = name == "parallel axes"
            if sort not in nearest or reason.off < nearest[sort][0]:
                nearest[sort] = reason.off, f"the axes of joints {joints} {reason}"
    raise Unsolvable(", and ".join(text for _, text in nearest.values()))
