"""Constraints of a robot in a configuration: their rank, poses that meet them, and warnings where they are singular.

Forward dynamics, `project_velocity` and simulation decide row by row whether a constraint is redundant
(algorithms/closed_chain/elimination.py). The function `constraint_redundancy` reports these decisions (..., 2, rows):
from 0 for a row that constrains the motion to 1 for one that follows from the others, and how much of that is in doubt.
Everything here uses them, so that all of it agrees. A configuration is singular to working precision where a row is in
doubt, or where the rank is less than nearby.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.closed_chain.swept import LONG
from ..catalogue.functions import Request, written_out
from ..compiled import arrays
from ..compiled.function import CompiledFunction, Recipe
from ..errors import ArgumentError, SingularWarning, warn_user
from ..mechanism import coordinates
from ..support.messages import shown

if TYPE_CHECKING:
    from .core import Core

NAMES = {
    "rigid": ("rx", "ry", "rz", "x", "y", "z"), "point": ("x", "y", "z"), "hinge": ("rx", "ry", "x", "y", "z"),
    "slider": ("rx", "ry", "rz", "x", "y"), "plane": ("z",), "line": ("x", "y"), "distance": ("length",),
    "soft_finger": ("rz", "x", "y", "z"),
}  # fmt: skip
REDUNDANCY = Request("constraint_redundancy")
SOLVED = ("forward_dynamics", "multipliers", "constraint_forces", "allowed_rates")  # functions that solve constraints
DOUBT = {"float64": 5e-4, "float32": 2e-2}  # of a row; a result is wrong by 3 DOUBT^2 of itself then: 1e-6 and 1e-3
CLOSES = 1e-10  # metres and radians: the default gap at which `project` stops
DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-4, 1e-9, 1e3  # of the steps of `project`, relative to the sizes of rows
LONGEST = 0.5  # radians or metres of a step of `project`
STALLED = 12  # steps in a row that improve the gap by less than a hundredth, while the damping falls and rises again
FEW = 20_000  # samples: the interpreter needs less time for these than LLVM to compile constraints
NEAR, SAMPLES = 1e-2, 4  # how far, and how many, the configurations are that give the generic rank

Call = Callable[..., np.ndarray]  # (name of a function, its arguments)


def row_labels(core: Core) -> list[str]:
    """The name of each row: its constraint and what it holds."""
    return [f"{tie.label}: {name}" for tie in core.model.constraints for name in NAMES[tie.kind]]


def ranks(redundancy: np.ndarray) -> np.ndarray:
    """The rank (...) of constraints from `constraint_redundancy` (..., 2, rows)."""
    return redundancy.shape[-1] - np.rint(redundancy[..., 0, :].sum(axis=-1)).astype(int)


def uncertain_rows(redundancy: np.ndarray) -> np.ndarray:
    """Which rows (..., rows) are neither independent nor redundant to working precision."""
    return redundancy[..., 1, :] > DOUBT[redundancy.dtype.name]


def project(core: Core, q: ArrayLike, tolerance: float, iterations: int, call: Call | None = None) -> np.ndarray:
    """The pose that meets the constraints, by damped Gauss-Newton steps (Levenberg-Marquardt) in the metric M.

    Each sample has a damping of its own, which falls while steps succeed: what is left of weak directions is then found
    too, and where constraints contradict each other the steps end at the pose with the least gap.
    """

    if isinstance(iterations, bool) or not isinstance(iterations, int | np.integer) or iterations < 0:
        raise ArgumentError(f"project: iterations is {shown(iterations)}, expected a whole number, 0 or more.")
    number = isinstance(tolerance, int | float | np.number) and not isinstance(tolerance, bool | np.complexfloating)
    if not number or not 0 <= tolerance <= sys.float_info.max:
        raise ArgumentError(f"project: tolerance is {shown(tolerance)}, expected a finite number, 0 or more.")

    def compiled(name: str, *args: ArrayLike) -> np.ndarray:
        return core.call(name, args)

    evaluate, model = call or compiled, core.canonical

    def step(q: np.ndarray, damping: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The pose after one step, its error, and the norm of that."""
        way = evaluate("damped_correction", q, damping)
        way = way * np.minimum(1.0, LONGEST / np.maximum(np.abs(way).max(axis=-1, keepdims=True), 1e-300))
        after = coordinates.integrate(model, q, way, 1.0)
        error = evaluate("constraint_error", after)
        return after, error, np.linalg.norm(error, axis=-1)

    q = coordinates.normalize(model, q) + 0.0
    error = evaluate("constraint_error", q)
    damping = np.full((*q.shape[:-1], 1), DAMPING, q.dtype)
    stalled, polished = np.zeros(q.shape[:-1], int), 0
    for _ in range(iterations):
        gap, size = np.abs(error).max(axis=-1), np.linalg.norm(error, axis=-1)
        going = (gap > tolerance) & (stalled < STALLED)
        polished += not going.any()
        if polished > 2 or not gap.any():
            break
        after, moved, left = step(q, damping)
        if (left >= size).any():  # a long step along weak directions opens the others, which a second one closes
            again = step(after, np.full_like(damping, DAMPING))
            closer = again[-1] < left
            after, moved = (
                np.where(closer[..., None], new, old) for new, old in zip(again, (after, moved), strict=False)
            )
            left = np.where(closer, again[-1], left)
        better = left < size
        q, error = (np.where(better[..., None], new, old) for new, old in ((after, q), (moved, error)))
        stalled = np.where(left < 0.99 * size, 0, stalled + 1)
        damping = np.clip(damping * np.where(better, 0.1, 10.0)[..., None], LEAST_DAMPING, MOST_DAMPING)
    gap = np.abs(error).max(axis=-1)
    if not (gap > tolerance).any():
        return q
    worst = float(np.nanmax(gap))
    if worst < 1e-4:
        raise ArgumentError(
            f"the constraints of {core.name} close to {worst:.3g} (m, rad) from this pose and no further, tolerance is "
            f"{tolerance:g}: if its numbers are rounded, pass tolerance={10.0 ** math.ceil(math.log10(worst)):g}."
        )
    raise ArgumentError(
        f"the constraints of {core.name} cannot be met from this pose: a gap of {worst:.3g} is left, expected at most "
        f"{tolerance:g} (tolerance=): start nearer, or check their frames and lengths."
    )


def interpreted(core: Core) -> Call:
    """Calls of functions for a few samples, which are not worth compiling."""

    long = core.canonical.depth > LONG

    def call(name: str, *args: ArrayLike) -> np.ndarray:
        def make() -> CompiledFunction:
            request = Request(name)
            rolled = (long and not written_out(core.canonical, request)) or None
            return CompiledFunction(Recipe(core.canonical, (request,), rolled=rolled), "float64", 1, "interpreter")

        return core.functions.made(("interpreted", name), make)(*args)

    return call


def generic_rank(core: Core, q: np.ndarray, rank_of: Callable[[np.ndarray], int] | None = None) -> int:
    """The largest rank of the constraints at q (nq,) and at poses nearby that meet them about as well.

    rank_of: gives the rank at a pose; None decides as forward dynamics does.
    """
    call, rng = interpreted(core), np.random.default_rng(0)
    rank_of = rank_of or (lambda near: int(ranks(call("constraint_redundancy", near))))
    tolerance = max(CLOSES, 10.0 * float(np.abs(call("constraint_error", q)).max(initial=0.0)))
    best = rank_of(q)
    for _ in range(SAMPLES):
        step = NEAR * rng.normal(size=core.nv)
        try:
            near = project(core, coordinates.integrate(core.canonical, q, step, 1.0), tolerance, 50, call)
        except ArgumentError:
            continue
        best = max(best, rank_of(near))
    return best


def warn_if_constraints_singular(
    core: Core, what: str, q: ArrayLike, redundancy: np.ndarray, where: Callable[[tuple[int, ...]], str] | None = None
) -> bool:
    """One warning about the poses q (..., nq) if the constraints are singular in any; where: names a pose by its index.

    redundancy (..., 2, rows): see above.
    """
    if not redundancy.size or (redundancy < DOUBT[redundancy.dtype.name]).all():
        return False
    redundancy = np.nan_to_num(redundancy, nan=0.0)
    uncertain = uncertain_rows(redundancy)
    doubtful = np.asarray(uncertain.any(axis=-1))
    found = np.asarray(ranks(redundancy))
    poses = np.broadcast_to(np.asarray(q, float), (*found.shape, core.nq))
    lower = np.zeros(found.shape, bool)
    full = min(core.nv, redundancy.shape[-1])
    for rank in np.unique(found[~doubtful]):
        own = (found == rank) & ~doubtful
        if rank < full and rank not in core.generic_ranks:
            if generic_rank(core, poses[tuple(np.argwhere(own)[0])]) > rank:
                lower |= own
            else:
                core.generic_ranks.add(int(rank))
    singular = np.argwhere(doubtful | lower)
    if not len(singular):
        return False
    first = tuple(singular[0].tolist())
    sample = where(first) if where else f"in sample {first[0] if len(first) == 1 else first}"
    others = f" (and in {len(singular) - 1} more)" if len(singular) > 1 else ""
    if doubtful[first]:
        label = row_labels(core)[int(np.argmax(uncertain[first]))]
        reason = f"row '{label}' is neither independent of the others nor redundant"
    else:
        reason = f"their rank is {found[first]}, and larger nearby"
    warn_user(
        f"{what}: the constraints of {core.name} are singular to working precision{f' {sample}' if first else ''}"
        f"{others}: {reason}, so that accelerations and forces along it are not determined. See robot.mobility(q).",
        SingularWarning,
    )
    return True


class WatchedConstraints:
    """A function that solves constraints, with one warning for each call that meets a singular configuration."""

    def __init__(self, core: Core, request: Request):
        self.core, self.request = core, request
        self.function = core.function((request, REDUNDANCY))

    def __call__(self, *args: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        result, redundancy = self.function(*args)
        warn_if_constraints_singular(self.core, self.request.function, args[0], redundancy)
        return result if out is None else filled(self.request.function, result, out, redundancy.ndim - 2)


def filled(function: str, result: np.ndarray, out: np.ndarray, batch: int) -> np.ndarray:
    """`out`, checked as by any other function, with the result in it; batch: leading axes of samples."""

    def copy(inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        outputs[0][...] = inputs[0]

    one = (arrays.Argument("result", result.shape[batch:]),)
    return arrays.call(arrays.Signature(function, one, one), lambda _: copy, (result,), out=out)
