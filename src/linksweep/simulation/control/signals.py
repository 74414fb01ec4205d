"""The numbers of laws: signals on the grid of a simulation's steps, gains, paths, each checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ArgumentError
from ...robot.robot import Robot
from ...support.memory import check_memory
from ...support.messages import shown
from ..checks import real_array

if TYPE_CHECKING:
    from ..laws import Law


Reference = Callable[[np.ndarray], Sequence[ArrayLike]]  # a path: q, qd and qdd at times (n,)


@dataclass(frozen=True)
class Grid:
    """The steps of a simulation: how many, how long, and at how many moments of each a law is evaluated."""

    steps: int
    dt: float
    stages: int
    dissipation: bool

    @property
    def duration(self) -> float:
        return self.steps * self.dt

    @property
    def times(self) -> np.ndarray:
        """Every moment at which a law is evaluated: steps, and with several stages the middles of steps."""
        check_memory("the torques", (self.steps * self.rows + 1, 1))
        return np.arange(self.steps * self.rows + 1) * (self.dt / self.rows)

    @property
    def rows(self) -> int:
        """Moments of `times` in each step."""
        return 2 if self.stages > 1 else 1


@dataclass(frozen=True)
class Signal:
    """Values (moments, ..., size): `rows` of them for each step, or with rows = 1 one that holds for the step."""

    values: np.ndarray
    rows: int


def gain(law: Law, name: str, size: int) -> np.ndarray:
    """Gains (..., size): one number, one for each freedom, or with a batch in front."""
    values = getattr(law, name)
    if values.ndim and values.shape[-1] != size:
        raise ArgumentError(
            f"{type(law).__name__}: {name} has shape {values.shape}, expected one number, or (..., {size}): one for "
            f"each of {size}, for each rollout where they differ."
        )
    return np.broadcast_to(values, (*values.shape[:-1], size)).copy()


def checked_controller(name: str, robot: Robot | None) -> Robot | None:
    if robot is not None and not isinstance(robot, Robot):
        raise ArgumentError(
            f"{name}: controller_robot is {shown(robot)}, expected a Robot, or None for the one driven."
        )
    return robot


def check_alike(law: Law, robot: Robot) -> None:
    """A law's own robot must have the joints of the one that it drives."""
    own = law.controller_robot
    if own is None:
        return
    theirs, ours = ([link.type for link in r.canonical.joints] for r in (robot, own))
    if theirs != ours:
        raise ArgumentError(
            f"{type(law).__name__}: controller_robot {own.name} has {own.nq} coordinates and {own.nv} rates, expected "
            f"joints of the same kinds in the same order as {robot.name} ({robot.nq} and {robot.nv})."
        )
    if [tie.kind for tie in own.canonical.ties] != [tie.kind for tie in robot.canonical.ties]:
        raise ArgumentError(
            f"{type(law).__name__}: controller_robot {own.name} has {len(own.constraints)} constraints, expected those "
            f"of {robot.name} ({len(robot.constraints)}): through them its motors drive passive joints."
        )


def motorised(law: Law, robot: Robot) -> Robot:
    """The robot that the law computes with, with motors where those of the driven one are, or the law's own."""
    own = law.known(robot)
    if law.actuated is None and own is robot:
        return robot
    driven = (robot if law.actuated is None else robot.with_actuated(law.actuated)).canonical.joints
    names = [name for name, link in zip(own.joint_names, driven, strict=True) if link.actuated]
    return own if names == list(own.actuated) else own.with_actuated(names)


def checked_path(name: str, path: Reference) -> Reference:
    if not callable(path):
        raise ArgumentError(
            f"{name} got {shown(path)}, expected a path that gives (q, qd, qdd) at times t, such as motion.Quintic."
        )
    return path


def along(name: str, path: Reference, robot: Robot, t: np.ndarray) -> Sequence[np.ndarray]:
    """q, qd and qdd of a path at times t (moments,), each checked."""
    try:
        q, qd, qdd = path(t)
    except (TypeError, ValueError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(
            f"{name}: the path gave no (q, qd, qdd) for an array of times ({error}): it must take t of shape (n,)."
        ) from error
    found = []
    for label, value, size in (("q", q, robot.nq), ("qd", qd, robot.nv), ("qdd", qdd, robot.nv)):
        array = real_array(f"{name}: {label} of the path", value, size)
        if array.shape[0] != len(t) or array.ndim != 2:
            raise ArgumentError(
                f"{name}: {label} of the path has shape {array.shape} at {len(t)} times, expected ({len(t)}, {size})."
            )
        found.append(array)
    return found


def held(times: np.ndarray, values: np.ndarray, t: np.ndarray, dt: float) -> np.ndarray:
    """The last sample at or before each t; a sample that rounding puts just after a step belongs to it."""
    place = np.searchsorted(times, t + 1e-9 * dt, side="right") - 1
    return values[np.clip(place, 0, len(times) - 1)]


def interpolator(times: np.ndarray, values: np.ndarray, hold: str) -> Callable[[ArrayLike], np.ndarray]:
    from scipy.interpolate import CubicSpline, make_interp_spline

    return CubicSpline(times, values, axis=0) if hold == "cubic" else make_interp_spline(times, values, k=1, axis=0)
