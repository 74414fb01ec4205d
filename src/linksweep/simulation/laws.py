"""What drives the joints: constant and sampled torques, feed-forward along a path, and laws of feedback.

A law has two sides. Its form (control/forms.py) computes torques over any scalar, and is traced into the step. The
classes here hold what a form needs: signals, sampled in time, and constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..robot.robot import Robot
from ..support.messages import is_one_of, listing, nearest, shown
from ..support.numbers import checked_flag
from .checks import real_array
from .control.forms import Form, GivenTorque, OnModel, PythonFunction, Tracking
from .control.signals import (
    Grid,
    Reference,
    Signal,
    along,
    check_alike,
    checked_controller,
    checked_path,
    gain,
    held,
    interpolator,
    motorised,
)

if TYPE_CHECKING:
    import os
    from pathlib import Path


HOLDS = ("cubic", "linear", "zero")


class Law:
    """Torques as a function of time and state. Laws add up (+), and `saturated(law)` bounds them.

    controller_robot: the robot that the law computes with, where that is not the one that it drives. actuated: names of
    the joints that the law drives, where these are not `robot.actuated`. Passive joints get no torque.
    """

    controller_robot: Robot | None = None
    actuated: Sequence[str] | None = None

    def form(self, robot: Robot) -> Form:
        """What it computes, as a structure without numbers."""
        return Form()

    def check(self, robot: Robot) -> None:
        """Refuse a robot that the law cannot drive."""

    def signals(self, robot: Robot, grid: Grid) -> dict[str, Signal]:
        return {}

    def constants(self, robot: Robot) -> dict[str, np.ndarray]:
        return {}

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, np.ndarray]]:
        """The signals at any one time, for steps that are not known beforehand."""
        return lambda t: {}

    def torque(
        self, t: float, q: ArrayLike, qd: ArrayLike, robot: Robot | None = None, dissipation: bool = False
    ) -> np.ndarray:
        """The torques (..., nv) at time t in the states q (..., nq) and qd (..., nv), by the law's own compiled code.

        robot: the one that is driven; without it, the law's controller_robot. dissipation: of the simulation.
        """
        from .control.function import law_torque

        return law_torque(self, t, q, qd, robot, dissipation)

    def to_c(
        self, path: str | os.PathLike[str], robot: Robot | None = None, *, name: str | None = None,
        dtype: str = "double", dissipation: bool = False,
    ) -> tuple[Path, Path]:  # fmt: skip
        """Write the law as C99 to `path`, which ends in .c, and the header beside it.

        The function takes q, qd, the law's signals at this moment (references) and its constants (gains), and returns
        tau: the Program that `law.torque` runs and that a simulation has in its step. The gains' values are constants
        beside it, and `<name>_tuned` is the function with these values. name: <robot>_<file> by default.
        """
        from .control.function import export_law

        return export_law(self, path, robot, name, dtype, dissipation)

    def __add__(self, other: Law) -> Law:
        from .control.composed import summed

        return summed(self, other)

    def __radd__(self, other: object) -> Law:
        from .control.composed import summed

        return self if other == 0 and isinstance(other, int) else summed(other, self)

    def known(self, robot: Robot) -> Robot:
        """The robot that the law computes with."""
        return robot if self.controller_robot is None else self.controller_robot

    def _seen(self, form: Form, robot: Robot) -> Form:
        """The form, computed with the law's own robot and motors where it has any.

        Constraints hand joint forces on to the motors only where these determine all joints; else it is the tree's.
        """
        own = motorised(self, robot)
        own = own.without_constraints() if own.constraints and own.undriven_joints else own
        return form if own.canonical == robot.canonical else OnModel(form, own.canonical)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Zero(Law):
    """No torque: the robot falls."""


class Constant(Law):
    """The same torques (..., nv) all the time; leading axes are those of the batch."""

    def __init__(self, tau: ArrayLike):
        self.tau = real_array("Constant: tau", tau)

    def form(self, robot: Robot) -> Form:
        return GivenTorque(sampled=False)

    def constants(self, robot: Robot) -> dict[str, np.ndarray]:
        return {"tau": real_array("torque", self.tau, robot.nv)}

    def __repr__(self) -> str:
        return f"Constant(shape {self.tau.shape})"


class Sampled(Law):
    """Torques (samples, ..., nv) over time, the other axes those of the batch.

    times: (samples,), increasing, from 0 or before to the end or after. Without, the samples stand at the steps (steps
    + 1 of them), or at the steps and their middles (2 steps + 1), where they are taken as they are. hold: what happens
    between samples: "cubic" (a spline through them), "linear", or "zero" (what holds at a step's beginning holds for
    the step; then one sample for each step is enough).
    """

    def __init__(self, tau: ArrayLike, times: ArrayLike | None = None, hold: str = "cubic"):
        self.tau = real_array("Sampled: tau", tau)
        if not is_one_of(hold, HOLDS):
            raise ArgumentError(f"Sampled: hold is {shown(hold)}{nearest(hold, HOLDS)}, expected one of {HOLDS}.")
        if self.tau.ndim < 2 or not len(self.tau):
            raise ArgumentError(
                f"Sampled: tau has shape {self.tau.shape}, expected (samples, ..., nv): give one row for each moment, "
                f"or Constant(tau) for torques that stay."
            )
        self.hold = hold
        self.times = None if times is None else real_array("Sampled: times", times)
        if self.times is not None and (
            self.times.shape != (len(self.tau),) or len(self.tau) < 2 or not (np.diff(self.times) > 0).all()
        ):
            raise ArgumentError(
                f"Sampled: times has shape {self.times.shape} for {len(self.tau)} samples, expected one for each of "
                f"at least two, every one later than the one before."
            )

    def form(self, robot: Robot) -> Form:
        return GivenTorque(sampled=True)

    def signals(self, robot: Robot, grid: Grid) -> dict[str, Signal]:
        times, values = self._placed(robot, grid)
        if self.hold == "zero":
            if len(values) in (grid.steps, grid.steps + 1) and self.times is None:
                return {"tau": Signal(values, 1)}
            return {"tau": Signal(held(times, values, grid.times[:: grid.rows], grid.dt), 1)}
        if self.times is None and len(values) == len(grid.times):
            return {"tau": Signal(values, grid.rows)}
        return {"tau": Signal(interpolator(times, values, self.hold)(grid.times), grid.rows)}

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, np.ndarray]]:
        times, values = self._placed(robot, grid)
        if self.hold == "zero":
            return lambda t: {"tau": held(times, values, np.array([t]), 0.0)[0]}
        between = interpolator(times, values, self.hold)
        return lambda t: {"tau": between(min(max(t, times[0]), times[-1]))}

    def _placed(self, robot: Robot, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
        """The samples' times, and the samples, checked against the robot and the length of the simulation."""
        values = real_array("torque", self.tau, robot.nv)
        if self.times is not None:
            slack = 1e-9 * grid.duration
            if self.times[0] > slack or self.times[-1] < grid.duration - slack:
                raise ArgumentError(
                    f"Sampled: times go from {self.times[0]:g} to {self.times[-1]:g}, expected them to hold 0 to "
                    f"{grid.duration:g}, the duration: add samples, or simulate a shorter time."
                )
            return self.times, values
        fitting = {grid.steps + 1: grid.dt, 2 * grid.steps + 1: 0.5 * grid.dt}
        if self.hold == "zero":
            fitting[grid.steps] = grid.dt
        if len(values) not in fitting:
            raise ArgumentError(
                f"torque has {len(values)} samples, expected {grid.steps + 1} (one at each step), "
                f"{2 * grid.steps + 1} (also in the middle of each), or Sampled(tau, times=...) with times of their "
                f"own; Constant(tau) is for torques that stay."
            )
        return np.arange(len(values)) * fitting[len(values)], values

    def __repr__(self) -> str:
        return f"Sampled(shape {self.tau.shape}, hold={self.hold!r})"


class FeedForward(Law):
    """The torques that inverse dynamics finds along a path, at every stage of every step; no feedback.

    path: anything that gives (q, qd, qdd) at times t, such as those of `linksweep.motion`.
    """

    def __init__(
        self, path: Reference, *, controller_robot: Robot | None = None, actuated: Sequence[str] | None = None
    ):
        self.path = checked_path("FeedForward", path)
        self.controller_robot = checked_controller("FeedForward", controller_robot)
        self.actuated = actuated

    def check(self, robot: Robot) -> None:
        check_alike(self, robot)

    def form(self, robot: Robot) -> Form:
        return GivenTorque(sampled=True)

    def signals(self, robot: Robot, grid: Grid) -> dict[str, Signal]:
        return {"tau": Signal(self._torques(robot, grid, grid.times), grid.rows)}

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, np.ndarray]]:
        return lambda t: {"tau": self._torques(robot, grid, np.array([t]))[0]}

    def _torques(self, robot: Robot, grid: Grid, t: np.ndarray) -> np.ndarray:
        q, qd, qdd = along("FeedForward", self.path, robot, t)
        own = motorised(self, robot)
        tau = own.inverse_dynamics(q, qd, qdd, dissipation=grid.dissipation)
        for link in own.canonical.joints:
            if not (link.actuated or link.type.floats):  # free joints get theirs, as a test of the path
                tau[..., link.rates] = 0.0
        return tau


class _Tracking(Law):
    """What PD and ComputedTorque share: a reference and gains."""

    kind = "pd"

    def __init__(
        self, reference: Reference | ArrayLike, kp: ArrayLike, kd: ArrayLike, controller_robot: Robot | None,
        actuated: Sequence[str] | None,
    ):  # fmt: skip
        name = type(self).__name__
        self.reference = reference if callable(reference) else real_array(f"{name}: reference", reference)
        self.kp, self.kd = real_array(f"{name}: kp", kp), real_array(f"{name}: kd", kd)
        self.controller_robot, self.actuated = checked_controller(name, controller_robot), actuated

    def check(self, robot: Robot) -> None:
        check_alike(self, robot)

    def form(self, robot: Robot) -> Form:
        return self._seen(Tracking(self.kind), robot)

    def signals(self, robot: Robot, grid: Grid) -> dict[str, Signal]:
        wanted = Tracking(self.kind).signals()
        if not callable(self.reference):
            q = real_array(f"{type(self).__name__}: reference", self.reference, robot.nq)
            still = np.zeros((1, robot.nv))
            values = {"q_ref": robot.normalize(q)[None], "qd_ref": still, "qdd_ref": still}
            return {name: Signal(values[name], 0) for name in wanted}
        motion = along(type(self).__name__, self.reference, robot, grid.times)
        return {name: Signal(values, grid.rows) for name, values in zip(wanted, motion, strict=False)}

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, np.ndarray]]:
        names = list(Tracking(self.kind).signals())
        if not callable(self.reference):
            fixed = {name: signal.values[0] for name, signal in self.signals(robot, grid).items()}
            return lambda t: fixed
        label, path = type(self).__name__, self.reference
        return lambda t: dict(zip(names, (x[0] for x in along(label, path, robot, np.array([t]))), strict=False))

    def constants(self, robot: Robot) -> dict[str, np.ndarray]:
        return {name: gain(self, name, robot.nv) for name in ("kp", "kd")}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(kp={shown(self.kp.tolist())}, kd={shown(self.kd.tolist())})"


class PD(_Tracking):
    """tau = g(q) + kp (q_ref - q) + kd (qd_ref - qd): springs and dampers, and what holds the robot against gravity.

    reference: coordinates (..., nq) to hold, or a path that gives (q, qd, qdd) at times t. kp, kd: one number, one for
    each rate, or (..., nv) with a batch of rollouts in front. gravity=False leaves g(q) out. For a robot with
    constraints, g(q) holds the torques of its motors that carry it.
    """

    def __init__(
        self,
        reference: Reference | ArrayLike,
        kp: ArrayLike,
        kd: ArrayLike,
        gravity: bool = True,
        *,
        controller_robot: Robot | None = None,
        actuated: Sequence[str] | None = None,
    ):
        super().__init__(reference, kp, kd, controller_robot, actuated)
        self.kind = "pd_gravity" if checked_flag("PD: gravity", gravity) else "pd"


class ComputedTorque(_Tracking):
    """tau = inverse dynamics of (q, qd, qdd_ref + kp (q_ref - q) + kd (qd_ref - qd)): every error decays as a spring's.

    reference: a path that gives (q, qd, qdd) at times t, or coordinates (..., nq) to hold. kp, kd: one number, one for
    each rate, or (..., nv) with a batch of rollouts in front. With constraints, the torques are those of the robot's
    motors. Errors of passive joints count as those of the others do: give all joints the same gains.
    """

    kind = "computed_torque"

    def __init__(
        self, reference: Reference | ArrayLike, kp: ArrayLike, kd: ArrayLike, *, controller_robot: Robot | None = None,
        actuated: Sequence[str] | None = None,
    ):  # fmt: skip
        super().__init__(reference, kp, kd, controller_robot, actuated)

    def check(self, robot: Robot) -> None:
        check_alike(self, robot)
        loose = motorised(self, robot).undriven_joints
        if loose:
            raise ArgumentError(
                f"ComputedTorque needs motors that determine every joint, but joint {listing(loose, quoted=False)} of "
                f"{robot.name} moves freely while they stand still: use PD, or torques of your own."
            )


class Function(Law):
    """A Python function torque(t, q, qd) -> tau, called for every evaluation."""

    def __init__(self, function: Callable[..., ArrayLike]):
        self.function = function

    def form(self, robot: Robot) -> Form:
        return PythonFunction()

    def signals(self, robot: Robot, grid: Grid) -> dict[str, Signal]:
        return {"t": Signal(grid.times[:, None], grid.rows)}

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, np.ndarray]]:
        return lambda t: {"t": np.array([t])}

    def __repr__(self) -> str:
        return f"Function({getattr(self.function, '__name__', type(self.function).__name__)})"


def as_law(torque: Law | Callable[..., ArrayLike] | ArrayLike | None) -> Law:
    """A law from whatever a user passes as torque."""
    if torque is None:
        return Zero()
    if isinstance(torque, type) and issubclass(torque, Law):
        raise ArgumentError(
            f"torque is the class {torque.__name__}, expected an instance, such as {torque.__name__}(...)."
        )
    if isinstance(torque, Law):
        return torque
    if callable(torque):
        return Function(torque)
    array = real_array("torque", torque)
    return Constant(array) if array.ndim == 1 else Sampled(array)
