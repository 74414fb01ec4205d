"""What drives the joints: constant and sampled torques, feed-forward along a path, and laws of feedback.

A law has two sides. `torque_of` computes its torques over any scalar, and is traced into the step. The classes say
what a step needs for it: signals, sampled in time, and constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ..errors import ArgumentError
from ..mechanism.canonical import CanonicalModel
from ..spatial.scalars import Scalar
from ..support.messages import nearest, shown
from .checks import check_memory, real_array
from .stepping import Values, tracking_error, without_motors

if TYPE_CHECKING:
    from ..robot.robot import Robot

HOLDS = ("cubic", "linear", "zero")
# law -> signals, then constants, each with its size
GIVEN: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "zero": ({}, {}),
    "constant": ({}, {"tau": "v"}),
    "sampled": ({"tau": "v"}, {}),
    "pd": ({"q_ref": "q", "qd_ref": "v"}, {"kp": "v", "kd": "v"}),
    "pd_gravity": ({"q_ref": "q", "qd_ref": "v"}, {"kp": "v", "kd": "v"}),
    "computed_torque": ({"q_ref": "q", "qd_ref": "v", "qdd_ref": "v"}, {"kp": "v", "kd": "v"}),
    "function": ({"t": "1"}, {}),
}


class Dynamics(Protocol):
    """What a step asks of a robot, over whatever scalar it runs on."""

    model: CanonicalModel

    def forward(self, q: Values, qd: Values, tau: Values) -> Values: ...

    def inverse(self, q: Values, qd: Values, qdd: Values) -> Values: ...

    def gravity(self, q: Values) -> Values: ...

    def correction(self, q: Values) -> Values: ...

    def allowed(self, q: Values, qd: Values) -> Values: ...


def torque_of(law: str, dynamics: Dynamics, q: Values, qd: Values, given: dict[str, Values]) -> Values:
    """The torques of a law in the state (q, qd). Free joints get none, unless the torques were given as numbers."""
    if law == "zero":
        return [0.0] * len(qd)
    if law in ("constant", "sampled"):
        return given["tau"]
    model = dynamics.model
    error = tracking_error(model, q, given["q_ref"])
    feedback: list[Scalar] = [
        kp * e + kd * (wanted - rate)
        for kp, e, kd, wanted, rate in zip(given["kp"], error, given["kd"], given["qd_ref"], qd, strict=True)
    ]
    if law == "pd":
        tau: Values = feedback
    elif law == "pd_gravity":
        tau = [a + b for a, b in zip(dynamics.gravity(q), feedback, strict=True)]
    else:
        tau = dynamics.inverse(q, qd, [a + b for a, b in zip(given["qdd_ref"], feedback, strict=True)])
    return without_motors(model, tau)


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


class Law:
    """A law by its name in GIVEN, with its signals and constants."""

    kind: str = "zero"

    def check(self, robot: Robot) -> None:
        """Refuse a robot that the law cannot drive."""

    def signals(self, robot: Robot, grid: Grid) -> dict[str, Signal]:
        return {}

    def constants(self, robot: Robot) -> dict[str, np.ndarray]:
        return {}

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, Any]]:
        """The signals at any one time, for steps that are not known beforehand."""
        return lambda t: {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Zero(Law):
    """No torque: the robot falls."""


class Constant(Law):
    """The same torques (..., nv) all the time; leading axes are those of the batch."""

    kind = "constant"

    def __init__(self, tau: Any):
        self.tau = real_array("Constant: tau", tau)

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

    kind = "sampled"

    def __init__(self, tau: Any, times: Any = None, hold: str = "cubic"):
        self.tau = real_array("Sampled: tau", tau)
        if hold not in HOLDS:
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

    def signals(self, robot: Robot, grid: Grid) -> dict[str, Signal]:
        times, values = self._placed(robot, grid)
        if self.hold == "zero":
            if len(values) in (grid.steps, grid.steps + 1) and self.times is None:
                return {"tau": Signal(values, 1)}
            return {"tau": Signal(_held(times, values, grid.times[:: grid.rows], grid.dt), 1)}
        if self.times is None and len(values) == len(grid.times):
            return {"tau": Signal(values, grid.rows)}
        return {"tau": Signal(_interpolator(times, values, self.hold)(grid.times), grid.rows)}

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, Any]]:
        times, values = self._placed(robot, grid)
        if self.hold == "zero":
            return lambda t: {"tau": _held(times, values, np.array([t]), 0.0)[0]}
        between = _interpolator(times, values, self.hold)
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

    kind = "sampled"

    def __init__(self, path: Callable[[Any], Any]):
        self.path = _checked_path("FeedForward", path)

    def signals(self, robot: Robot, grid: Grid) -> dict[str, Signal]:
        return {"tau": Signal(self._torques(robot, grid, grid.times), grid.rows)}

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, Any]]:
        return lambda t: {"tau": self._torques(robot, grid, np.array([t]))[0]}

    def _torques(self, robot: Robot, grid: Grid, t: np.ndarray) -> np.ndarray:
        q, qd, qdd = _along("FeedForward", self.path, robot, t)
        return robot.inverse_dynamics(q, qd, qdd, dissipation=grid.dissipation)


class _Tracking(Law):
    """What PD and ComputedTorque share: a reference and gains."""

    def __init__(self, reference: Any, kp: Any, kd: Any):
        name = type(self).__name__
        self.reference = reference if callable(reference) else real_array(f"{name}: reference", reference)
        self.kp, self.kd = real_array(f"{name}: kp", kp), real_array(f"{name}: kd", kd)

    def signals(self, robot: Robot, grid: Grid) -> dict[str, Signal]:
        wanted = GIVEN[self.kind][0]
        if not callable(self.reference):
            q = real_array(f"{type(self).__name__}: reference", self.reference, robot.nq)
            still = np.zeros((1, robot.nv))
            values = {"q_ref": robot.normalize(q)[None], "qd_ref": still, "qdd_ref": still}
            return {name: Signal(values[name], 0) for name in wanted}
        motion = _along(type(self).__name__, self.reference, robot, grid.times)
        return {name: Signal(values, grid.rows) for name, values in zip(wanted, motion, strict=False)}

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, Any]]:
        names = list(GIVEN[self.kind][0])
        if not callable(self.reference):
            fixed = {name: signal.values[0] for name, signal in self.signals(robot, grid).items()}
            return lambda t: fixed
        label, path = type(self).__name__, self.reference
        return lambda t: dict(zip(names, (x[0] for x in _along(label, path, robot, np.array([t]))), strict=False))

    def constants(self, robot: Robot) -> dict[str, np.ndarray]:
        return {"kp": _gain(self, "kp", robot.nv), "kd": _gain(self, "kd", robot.nv)}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(kp={shown(self.kp.tolist())}, kd={shown(self.kd.tolist())})"


class PD(_Tracking):
    """tau = g(q) + kp (q_ref - q) + kd (qd_ref - qd): springs and dampers, and what holds the robot against gravity.

    reference: coordinates (..., nq) to hold, or a path that gives (q, qd, qdd) at times t. kp, kd: one number, or one
    for each rate. gravity=False leaves g(q) out.
    """

    def __init__(self, reference: Any, kp: Any, kd: Any, gravity: bool = True):
        super().__init__(reference, kp, kd)
        self.kind = "pd_gravity" if gravity else "pd"


class ComputedTorque(_Tracking):
    """tau = inverse dynamics of (q, qd, qdd_ref + kp (q_ref - q) + kd (qd_ref - qd)): every error decays as a spring's.

    reference: a path that gives (q, qd, qdd) at times t, or coordinates (..., nq) to hold. kp, kd: one number, or one
    for each rate.
    """

    kind = "computed_torque"

    def check(self, robot: Robot) -> None:
        if any(link.kind == "free" for link in robot.canonical.links):
            raise ArgumentError(
                f"ComputedTorque needs a motor at every freedom, but {robot.name} has a free joint, which has none: "
                f"use PD, or torques of your own."
            )


class Function(Law):
    """A Python function torque(t, q, qd) -> tau, called for every evaluation."""

    kind = "function"

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def signals(self, robot: Robot, grid: Grid) -> dict[str, Signal]:
        return {"t": Signal(grid.times[:, None], grid.rows)}

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, Any]]:
        return lambda t: {"t": np.array([t])}

    def __repr__(self) -> str:
        return f"Function({getattr(self.function, '__name__', type(self.function).__name__)})"


def as_law(torque: Any) -> Law:
    """A law from whatever a user passes as torque."""
    if torque is None:
        return Zero()
    if isinstance(torque, type) and issubclass(torque, Law):
        raise ArgumentError(f"torque is the class {torque.__name__}, expected one of its objects: call it.")
    if isinstance(torque, Law):
        return torque
    if callable(torque):
        return Function(torque)
    array = real_array("torque", torque)
    return Constant(array) if array.ndim == 1 else Sampled(array)


def _gain(law: Any, name: str, nv: int) -> np.ndarray:
    gain = getattr(law, name)
    if gain.shape not in ((), (nv,)):
        raise ArgumentError(
            f"{type(law).__name__}: {name} has shape {gain.shape}, expected one number, or {nv}: one for each rate."
        )
    return np.broadcast_to(gain, (nv,)).copy()


def _checked_path(name: str, path: Any) -> Callable[[Any], Any]:
    if not callable(path):
        raise ArgumentError(
            f"{name} got {shown(path)}, expected a path that gives (q, qd, qdd) at times t, such as motion.Quintic."
        )
    return path


def _along(name: str, path: Callable[[Any], Any], robot: Robot, t: np.ndarray) -> Sequence[np.ndarray]:
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


def _held(times: np.ndarray, values: np.ndarray, t: np.ndarray, dt: float) -> np.ndarray:
    """The last sample at or before each t; a sample that rounding puts just after a step belongs to it."""
    place = np.searchsorted(times, t + 1e-9 * dt, side="right") - 1
    return values[np.clip(place, 0, len(times) - 1)]


def _interpolator(times: np.ndarray, values: np.ndarray, hold: str) -> Callable[[Any], np.ndarray]:
    from scipy.interpolate import CubicSpline, make_interp_spline

    return CubicSpline(times, values, axis=0) if hold == "cubic" else make_interp_spline(times, values, k=1, axis=0)
