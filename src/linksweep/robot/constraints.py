"""Constraints of a robot: rank, projection onto configurations that satisfy them, and singularity warnings.

Forward dynamics, `project_velocity` and simulation decide row by row whether a constraint is redundant
(algorithms/closed_chain/elimination.py). The function `constraint_redundancy` returns these decisions (..., 2, rows):
from 0 for an independent row to 1 for a redundant one, and the uncertainty of that value. Everything here is based on
them. A configuration is singular to working precision if a row is uncertain, or if the rank is lower than nearby.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.closed_chain.swept import LONG
from ..errors import ArgumentError, SingularWarning, warn_user
from ..functions import arrays
from ..functions.compiled import compiled as compiled_function
from ..functions.computation import RobotFunction, Together, is_written_out
from ..mechanism import coordinates
from ..support.checks import real_number, whole_number

if TYPE_CHECKING:
    from .core import Core

NAMES = {
    "rigid": ("rx", "ry", "rz", "x", "y", "z"), "point": ("x", "y", "z"), "hinge": ("rx", "ry", "x", "y", "z"),
    "slider": ("rx", "ry", "rz", "x", "y"), "plane": ("z",), "line": ("x", "y"), "distance": ("length",),
    "soft_finger": ("rz", "x", "y", "z"),
}  # fmt: skip
REDUNDANCY = "constraint_redundancy"
SOLVED = ("forward_dynamics", "multipliers", "constraint_forces", "allowed_rates")  # functions that solve constraints
UNCERTAIN = {"float64": 5e-4, "float32": 2e-2}  # of a row; relative errors of results are 3 UNCERTAIN^2: 1e-6, 1e-3
CLOSES = 1e-10  # m and rad: default tolerance of `project`
DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-4, 1e-9, 1e3  # of `project`, relative to the norms of rows
LONGEST = 0.5  # rad or m: largest step of `project`
STALLED = 12  # consecutive steps that reduce the residual by less than 1 %, while the damping falls and rises again
FEW = 20_000  # samples: up to here the interpreter takes less time than compiling constraints
NEAR, SAMPLES = 1e-2, 4  # distance and number of the configurations that give the generic rank

Call = Callable[..., np.ndarray]  # (name of a function, its arguments)


def row_labels(core: Core) -> list[str]:
    """Return the name of each row: its constraint and direction."""
    return [f"{tie.label}: {name}" for tie in core.model.constraints for name in NAMES[tie.kind]]


def ranks(redundancy: np.ndarray) -> np.ndarray:
    """Return the rank (...) of constraints from `constraint_redundancy` (..., 2, rows)."""
    return redundancy.shape[-1] - np.rint(redundancy[..., 0, :].sum(axis=-1)).astype(int)


def uncertain_rows(redundancy: np.ndarray) -> np.ndarray:
    """Return which rows (..., rows) are neither independent nor redundant to working precision."""
    return redundancy[..., 1, :] > UNCERTAIN[redundancy.dtype.name]


def project(core: Core, q: ArrayLike, tolerance: float, iterations: int, call: Call | None = None) -> np.ndarray:
    """Return coordinates that satisfy the constraints, by Levenberg-Marquardt steps in the metric M.

    The damping of each sample decreases while steps succeed, so that weak directions converge too. For contradictory
    constraints the steps end at the smallest residual.
    """
    whole_number("project: iterations", iterations, at_least=0)
    real_number("project: tolerance", tolerance, at_least=0.0)

    def compiled(name: str, *args: ArrayLike) -> np.ndarray:
        return core.call(name, args)

    evaluate, model = call or compiled, core.canonical

    def step(q: np.ndarray, damping: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the coordinates after one step, the residuals there, and their norm."""
        change = evaluate("damped_correction", q, damping)
        change = change * np.minimum(1.0, LONGEST / np.maximum(np.abs(change).max(axis=-1, keepdims=True), 1e-300))
        after = coordinates.integrate(model, q, change, 1.0)
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
        if (left >= size).any():  # a long step along weak directions violates the others: take a second one
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
            f"the constraint residual of {core.name} stays at {worst:.3g} (m, rad) from this configuration, expected "
            f"at most {tolerance:g}; if the model has rounded numbers, pass "
            f"tolerance={10.0 ** math.ceil(math.log10(worst)):g}."
        )
    raise ArgumentError(
        f"the constraints of {core.name} cannot be satisfied from this configuration: the constraint residual is "
        f"{worst:.3g}, expected at most {tolerance:g} (tolerance=)."
    )


def interpreted(core: Core) -> Call:
    """Return a function that evaluates others with the interpreter, for few samples that are not worth compiling."""
    long = core.canonical.depth > LONG

    def call(name: str, *args: ArrayLike) -> np.ndarray:
        part = core.internal(name)
        rolled = (long and not is_written_out(part)) or None
        function = compiled_function(Together((part,), rolled), "float64", 1, "interpreter")
        core.held.add(function)
        return function(*args)

    return call


def generic_rank(core: Core, q: np.ndarray, rank_of: Callable[[np.ndarray], int] | None = None) -> int:
    """Return the largest rank of the constraints at q (nq,) and at configurations nearby that satisfy them as well.

    rank_of: returns the rank at a configuration; by default as in forward dynamics.
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
    """Issue one warning if the constraints are singular at any configuration q (..., nq); return whether it did.

    redundancy (..., 2, rows): see above. where: describes a sample by its index.
    """
    if not redundancy.size or (redundancy < UNCERTAIN[redundancy.dtype.name]).all():
        return False
    redundancy = np.nan_to_num(redundancy, nan=0.0)
    uncertain = uncertain_rows(redundancy)
    doubtful = np.asarray(uncertain.any(axis=-1))
    rank = np.asarray(ranks(redundancy))
    samples = np.broadcast_to(np.asarray(q, float), (*rank.shape, core.nq))
    lower = np.zeros(rank.shape, bool)
    full = min(core.nv, redundancy.shape[-1])
    for value in np.unique(rank[~doubtful]):
        same = (rank == value) & ~doubtful
        if value < full and value not in core.generic_ranks:
            if generic_rank(core, samples[tuple(np.argwhere(same)[0])]) > value:
                lower |= same
            else:
                core.generic_ranks.add(int(value))
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
        reason = f"their rank is {rank[first]}, and larger nearby"
    warn_user(
        f"{what}: the constraints of {core.name} are singular to working precision{f' {sample}' if first else ''}"
        f"{others}: {reason}, so accelerations and forces along it are undetermined. See robot.mobility(q).",
        SingularWarning,
    )
    return True


class WatchedConstraints:
    """A function that solves constraints, with one warning for each call that meets a singular configuration."""

    def __init__(self, core: Core, computation: RobotFunction):
        self.core, self.name = core, computation.function
        self.function = core.function(computation, core.internal(REDUNDANCY))

    def __call__(self, *args: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        result, redundancy = self.function(*args)
        warn_if_constraints_singular(self.core, self.name, args[0], redundancy)
        return result if out is None else filled(self.name, result, out, redundancy.ndim - 2)


def filled(function: str, result: np.ndarray, out: np.ndarray, batch: int) -> np.ndarray:
    """Return `out`, checked as by any other function, with the result copied to it; batch: number of batch axes."""

    def copy(inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        outputs[0][...] = inputs[0]

    one = (arrays.Argument("result", result.shape[batch:]),)
    return arrays.call(arrays.Signature(function, one, one), lambda _: copy, (result,), out=out)
