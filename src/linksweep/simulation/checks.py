"""What every argument of a simulation goes through before machine code sees it."""

from __future__ import annotations

import math
import operator
from typing import SupportsFloat, SupportsIndex, cast

import numpy as np

from ..errors import ArgumentError
from ..robot.constraints import FEW, interpreted
from ..robot.robot import Robot
from ..support.checks import as_array, check_memory, refuse_foreign
from ..support.messages import shown

CLOSED = 1e-6  # metres and radians: a start that leaves more is no start on the constraints
MOST_STEPS = 10**9  # of one simulation: minutes of machine code


def real_array(name: str, value: object, size: int | None = None) -> np.ndarray:
    """Finite real numbers as float64, contiguous; of shape (..., size) if one is given."""
    refuse_foreign(name, value)
    array = as_array(value)
    if array.dtype.kind not in "iufb":
        raise ArgumentError(f"{name} is {shown(value)}, expected an array of real numbers.")
    if size is not None and (array.ndim == 0 or array.shape[-1] != size):
        raise ArgumentError(f"{name} has shape {array.shape}, expected (..., {size}).")
    check_memory(name, array.shape)
    array = np.array(array, dtype=np.float64, order="C")
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name} holds NaN or infinity, expected finite numbers: remove them.")
    return array


def positive(name: str, value: object) -> float:
    try:
        number = float(cast(SupportsFloat, value)) if not isinstance(value, (str, bytes)) else math.nan
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and number > 0.0):
        raise ArgumentError(f"{name} is {shown(value)}, expected a finite number above 0.")
    return number


def whole(name: str, value: object) -> int:
    try:
        number = 0 if isinstance(value, (bool, np.bool_)) else operator.index(cast(SupportsIndex, value))
    except TypeError:
        number = 0
    if number < 1:
        raise ArgumentError(f"{name} is {shown(value)}, expected a whole number of at least 1.")
    return number


def step_count(duration: float, dt: float, every: int) -> int:
    """How many steps of dt make the duration, and a whole number of records."""
    exact = duration / dt
    if not exact <= MOST_STEPS:
        raise ArgumentError(
            f"duration {duration:g} takes {exact:.3g} steps of dt={dt:g}, expected at most {MOST_STEPS:,}: choose a "
            f"longer dt, or simulate a part at a time."
        )
    steps = round(exact)
    if steps < 1 or abs(steps - exact) > 1e-6 * max(1.0, exact * 1e-3):
        whole_steps = max(1, math.ceil(exact - 1e-9))
        raise ArgumentError(
            f"duration {duration!r} is {exact:.6g} steps of dt={dt!r}, expected a whole number of steps: pass "
            f"dt={duration / whole_steps!r} for {whole_steps}."
        )
    if steps % every:
        raise ArgumentError(
            f"every is {every}, which does not divide the {steps} steps: expected a divisor, so that the last state is "
            f"recorded too."
        )
    return steps


def broadcast_batch(**batches: tuple[int, ...]) -> tuple[int, ...]:
    """The common batch shape of these arguments."""
    try:
        return np.broadcast_shapes(*batches.values())
    except ValueError:
        each = ", ".join(f"{name} {shape}" for name, shape in batches.items())
        raise ArgumentError(
            f"the batch shapes ({each}) do not broadcast together, expected lengths that are equal or 1 along each "
            f"axis."
        ) from None


def check_closed(robot: Robot, q0: np.ndarray, qd0: np.ndarray, names: tuple[str, str] = ("q0", "qd0")) -> None:
    """Refuse a start that breaks the robot's constraints."""
    if not robot.model.constraints:
        return
    gap = float(np.abs(_computed(robot, "constraint_error", q0)).max(initial=0.0))
    if not gap < CLOSED:
        raise ArgumentError(
            f"{names[0]} leaves a gap of {gap:.3g} in the constraints of {robot.name}, expected less than {CLOSED:g}: "
            f"start from robot.project({names[0]})."
        )
    if not qd0.any():
        return
    speed = float(np.abs(_computed(robot, "constraint_jacobian", q0) @ qd0[..., None]).max(initial=0.0))
    if not speed < CLOSED * (1.0 + float(np.abs(qd0).max(initial=0.0))):
        raise ArgumentError(
            f"{names[1]} opens the constraints of {robot.name} at {speed:.3g}, expected rates that keep them: start "
            f"with robot.project_velocity({names[0]}, {names[1]})."
        )


def _computed(robot: Robot, name: str, q: np.ndarray) -> np.ndarray:
    """A function of constraints; of a few samples without compiling it."""
    return interpreted(robot._core)(name, q) if q.size <= FEW * robot.nq else robot.compile(name)(q)
