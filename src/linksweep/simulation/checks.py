"""Checks of arrays, step counts and initial states, before machine code reads them."""

from __future__ import annotations

import math

import numpy as np

from ..errors import ArgumentError
from ..robot.constraints import FEW, interpreted
from ..robot.robot import Robot
from ..support.checks import as_array, check_memory, refuse_foreign
from ..support.messages import shown

CLOSED = 1e-6  # m and rad: largest constraint error of initial states
MOST_STEPS = 10**9  # of one simulation: minutes of machine code


def real_array(name: str, value: object, size: int | None = None) -> np.ndarray:
    """Return finite real numbers as a contiguous float64 copy, of shape (..., size) if a size is specified."""
    refuse_foreign(name, value)
    array = as_array(value)
    if array.dtype.kind not in "iufb":
        raise ArgumentError(f"{name} is {shown(value)}, expected an array of real numbers.")
    if size is not None and (array.ndim == 0 or array.shape[-1] != size):
        raise ArgumentError(f"{name} has shape {array.shape}, expected (..., {size}).")
    check_memory(name, array.shape)
    array = np.array(array, dtype=np.float64, order="C")
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name} contains NaN or infinity, expected finite numbers.")
    return array


def whole_steps(name: str, seconds: float, dt: float) -> int:
    """Return the number of steps of dt in a time, which must be a whole number."""
    try:
        exact = seconds / dt
    except OverflowError:  # an int of 400 digits
        exact = math.inf
    if not exact <= MOST_STEPS:
        raise ArgumentError(
            f"{name} {shown(seconds)} takes {exact:.3g} steps of dt={dt:g}, expected at most {MOST_STEPS:,}."
        )
    steps = round(exact)
    if abs(steps - exact) > 1e-6 * max(1.0, exact * 1e-3) or (seconds > 0.0 and not steps):
        count = max(1, math.ceil(exact - 1e-9))
        raise ArgumentError(
            f"{name} {seconds!r} is {exact:.6g} steps of dt={dt!r}, expected a whole number of steps: pass "
            f"dt={seconds / count!r} for {count}."
        )
    return steps


def broadcast_batch(**batches: tuple[int, ...]) -> tuple[int, ...]:
    """Return the common batch shape of arguments."""
    try:
        return np.broadcast_shapes(*batches.values())
    except ValueError:
        each = ", ".join(f"{name} {shape}" for name, shape in batches.items())
        raise ArgumentError(
            f"the batch shapes ({each}) do not broadcast together, expected lengths that are equal or 1 along each "
            f"axis."
        ) from None


def check_closed(robot: Robot, q0: np.ndarray, qd0: np.ndarray, names: tuple[str, str] = ("q0", "qd0")) -> None:
    """Raise ArgumentError for an initial state that violates the robot's constraints."""
    if not robot.model.constraints:
        return

    def evaluated(function: str) -> np.ndarray:  # without compiling it for a few samples
        return interpreted(robot._core)(function, q0) if q0.size <= FEW * robot.nq else robot.compile(function)(q0)

    gap = float(np.abs(evaluated("constraint_error")).max(initial=0.0))
    if not gap < CLOSED:
        raise ArgumentError(
            f"{names[0]} violates the constraints of {robot.name} by {gap:.3g} (m or rad), expected less than "
            f"{CLOSED:g}: start from robot.project({names[0]})."
        )
    if not qd0.any():
        return
    speed = float(np.abs(evaluated("constraint_jacobian") @ qd0[..., None]).max(initial=0.0))
    if not speed < CLOSED * (1.0 + float(np.abs(qd0).max(initial=0.0))):
        raise ArgumentError(
            f"{names[1]} violates the constraints of {robot.name} at a rate of {speed:.3g} (m/s or rad/s), expected "
            f"allowed velocities: start with robot.project_velocity({names[0]}, {names[1]})."
        )
