"""Controllers of simulated robots, for Python, compiled steps, C code and TOML experiments.

A controller is one class. `inputs` names its values: arrays are constants (gains), `Signal`s change in time
(references). `formula` computes the torques from them over any scalar, so that the same lines run on NumPy columns, are
traced into the step of a simulation and are exported as C. Attributes on which the formula itself depends, such as
`gravity` of `PD`, are listed in `structure`. A class with a `name` can be used in TOML experiments by that name.
docs/control.md, "Write a controller", has an example.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..functions.compiled import CompiledFunction
from ..functions.computation import Computation, RobotFunction, Tracing
from ..mechanism.canonical import CanonicalModel
from ..mechanism.coordinates import Values
from ..robot.robot import Robot
from ..spatial.scalars import Scalar, is_zero, sqrt, where
from ..support.checks import check_memory, checked_flag, one_of, real_number
from ..support.fingerprint import fingerprint
from ..support.messages import listing, nearest, shown
from ..tracing.program import Array
from .checks import real_array
from .dynamics import Dynamics, TracedDynamics, added, at_motors, between, checked_torque, stacked, tracking_error

T = TypeVar("T")
Reference = Callable[[np.ndarray], Sequence[ArrayLike]]  # a path: q, qd and qdd at times (n,)
Inputs = Mapping[str, Values]  # of a formula, by name
HOLDS = ("cubic", "linear", "zero")
CONTROLLERS: dict[str, type[Controller]] = {}  # by the name that TOML experiments use


@dataclass(frozen=True)
class Grid:
    """Time steps of a simulation: count, length (s), and at how many times of each a controller is evaluated."""

    steps: int
    dt: float
    stages: int
    dissipation: bool

    @property
    def duration(self) -> float:
        return self.steps * self.dt

    @property
    def times(self) -> np.ndarray:
        """All times at which a controller is evaluated: steps, and with several stages the middles of steps."""
        check_memory("the torques", (self.steps * self.rows + 1, 1))
        return np.arange(self.steps * self.rows + 1) * (self.dt / self.rows)

    @property
    def rows(self) -> int:
        """Number of entries of `times` in each step."""
        return 2 if self.stages > 1 else 1


@dataclass(frozen=True)
class Samples:
    """Values (times, ..., size) of a signal, `rows` of them per step: 1 is held for the step, 0 is constant."""

    values: np.ndarray
    rows: int


@dataclass(frozen=True)
class Signal:
    """An input of a controller that changes in time: values(t, grid) of times (n,) returns (n, ..., size).

    held: the value at the beginning of a fixed step holds for the whole step. fixed: the same value (..., size) at all
    times, in place of `values`.
    """

    size: int
    values: Callable[[np.ndarray, Grid], np.ndarray] | None = None
    held: bool = False
    fixed: np.ndarray | None = None

    def sampled(self, grid: Grid) -> Samples:
        """Return the values that the steps of a grid need."""
        if self.values is None:
            assert self.fixed is not None
            return Samples(self.fixed[None], 0)
        if self.held:  # a change that rounding puts just after a step belongs to it
            return Samples(self.values(grid.times[:: grid.rows] + 1e-9 * grid.dt, grid), 1)
        return Samples(self.values(grid.times, grid), grid.rows)

    def at(self, t: float, grid: Grid) -> np.ndarray:
        """Return the value (..., size) at one time."""
        if self.values is None:
            assert self.fixed is not None
            return self.fixed
        return self.values(np.array([t]), grid)[0]


Input = np.ndarray | Signal


@dataclass(frozen=True)
class ControlLaw:
    """The formula of a controller without its values: everything that its compiled torques depend on.

    options: attributes of the controller that the formula reads. signal_sizes, constant_sizes: its inputs with their
    numbers of components. model: the robot that it computes with, if that is not the driven one. source: a digest of
    the formula of a class outside linksweep, for the disk cache. Without a controller, the torques are 0.
    """

    controller: type[Controller] | None = None
    options: tuple[tuple[str, Hashable], ...] = ()
    signal_sizes: tuple[tuple[str, int], ...] = ()
    constant_sizes: tuple[tuple[str, int], ...] = ()
    model: CanonicalModel | None = None
    source: str = ""

    @functools.cached_property
    def _bare(self) -> Controller:
        """The controller with the attributes of its structure alone."""
        bare = object.__new__(self.controller or Zero)
        bare.__dict__.update(self.options)
        return bare

    @property
    def bounded(self) -> bool:
        """Whether the torques are finite for all measurements."""
        return self._bare.bounded

    def signals(self) -> dict[str, int]:
        return dict(self.signal_sizes)

    def constants(self) -> dict[str, int]:
        return dict(self.constant_sizes)

    def torque(self, dynamics: Dynamics, q: Values, qd: Values, inputs: Inputs) -> Values:
        return self._bare.formula(dynamics if self.model is None else dynamics.of(self.model), q, qd, inputs)


class Controller:
    """Torques as a function of time and state. Controllers add up (+), and `saturated(controller)` bounds them.

    controller_robot: the robot that the controller computes with, if that is not the one that it drives. actuated:
    names of the joints that the controller drives, if these are not `robot.actuated`. Passive joints get no torque.

    Subclasses define `inputs` and `formula`, and list in `structure` the attributes that `formula` reads from `self`;
    these must be hashable. `name` is the one of TOML experiments: `class PD(Controller, name="pd")`.
    """

    registry: ClassVar[dict[str, type[Controller]]] = CONTROLLERS
    structure: ClassVar[tuple[str, ...]] = ()
    uses_model: ClassVar[bool] = True  # whether the formula computes with the dynamics of controller_robot
    controller_robot: Robot | None = None
    actuated: Sequence[str] | None = None

    def __init_subclass__(cls, name: str | None = None) -> None:
        if name is not None:
            cls.registry[name] = cls

    def inputs(self, robot: Robot) -> dict[str, Input]:
        """Return the values that the formula reads: constant arrays (..., size), and Signals."""
        return {}

    def formula(self, dynamics: Dynamics, q: Values, qd: Values, inputs: Inputs) -> Values:
        """Return the torques (nv) over any scalar. Only the attributes of `self` in `structure` exist."""
        raise NotImplementedError

    @property
    def bounded(self) -> bool:
        """Whether the torques are finite for all measurements."""
        return False

    def check(self, robot: Robot) -> None:
        """Raise ArgumentError for a robot that the controller cannot drive."""
        other = self.controller_robot
        if other is None:
            return
        if [link.type for link in robot.canonical.joints] != [link.type for link in other.canonical.joints]:
            raise ArgumentError(
                f"{type(self).__name__}: controller_robot {other.name} has {other.nq} coordinates and {other.nv} "
                f"velocities, expected joints of the same types in the same order as {robot.name} ({robot.nq} and "
                f"{robot.nv})."
            )
        if [tie.kind for tie in other.canonical.ties] != [tie.kind for tie in robot.canonical.ties]:
            raise ArgumentError(
                f"{type(self).__name__}: controller_robot {other.name} has {len(other.constraints)} constraints, "
                f"expected those of {robot.name} ({len(robot.constraints)}), through which motors drive passive joints."
            )

    def torque(
        self, t: float, q: ArrayLike, qd: ArrayLike, robot: Robot | None = None, dissipation: bool = False
    ) -> np.ndarray:
        """Return the torques (..., nv) at time t in the states q (..., nq) and qd (..., nv), by compiled code.

        robot: the driven robot; controller_robot if omitted. dissipation: whether the controller compensates damping.
        """
        robot = self._driven(robot)
        function = controller_function(self, robot, dissipation)
        inputs = {**self.at(robot, Grid(1, 1.0, 1, dissipation))(float(t)), **self.constants(robot)}
        return settled(function, function(q, qd, *(np.asarray(inputs[name], float) for name in function.inputs[2:])))

    def to_c(
        self, path: str | os.PathLike[str], robot: Robot | None = None, *, name: str | None = None,
        dtype: str = "double", dissipation: bool = False,
    ) -> tuple[Path, Path]:  # fmt: skip
        """Write the controller as C99 to `path`, which ends in .c, and a header beside it.

        The function takes q, qd, the signals at the current time (references) and the constants (gains), and returns
        tau. It is the program that `torque` and simulations run. The values of the gains are constants beside it, and
        `<name>_tuned` is the function with these values. name: <robot>_<file> by default.
        """
        from ..functions.c_export import default_name, export_c

        robot = self._driven(robot)
        function = controller_function(self, robot, dissipation, backend="interpreter")  # which is not called
        gains = {key: value for key, value in self.constants(robot).items() if value.ndim == 1}  # without a batch
        what, name = f"torques of {shown(self, 200)}", name or default_name(robot.name, path)
        if any(re.search(r"_\d+$", key) for key in function.inputs):
            what += " (arguments that end in _0, _1 ... are those of its first, second ... term)"
        return export_c(function, Path(path), name=name, dtype=dtype, robot=robot, what=what, values=gains)

    def _driven(self, robot: Robot | None) -> Robot:
        """Return the robot that is driven: controller_robot by default."""
        driven = self.controller_robot if robot is None else robot
        if not isinstance(driven, Robot):
            raise ArgumentError(
                f"{type(self).__name__} got robot {shown(robot)}, expected the Robot that it drives: pass robot=, or "
                f"controller_robot= to the controller."
            )
        return driven

    def control_law(self, robot: Robot) -> ControlLaw:
        """Return the formula for a robot, without values."""
        inputs, kind = self.inputs(robot), type(self)
        return ControlLaw(
            kind,
            tuple((name, _structural(getattr(self, name), robot)) for name in self.structure),
            tuple((name, x.size) for name, x in inputs.items() if isinstance(x, Signal)),
            tuple((name, x.shape[-1]) for name, x in inputs.items() if not isinstance(x, Signal)),
            self._model(robot) if self.uses_model else None,
            "" if kind.__module__.partition(".")[0] == "linksweep" else _digest(kind.formula),
        )

    def signals(self, robot: Robot) -> dict[str, Signal]:
        return {name: x for name, x in self.inputs(robot).items() if isinstance(x, Signal)}

    def constants(self, robot: Robot) -> dict[str, np.ndarray]:
        return {name: x for name, x in self.inputs(robot).items() if not isinstance(x, Signal)}

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, np.ndarray]]:
        """Return the signals as a function of one time."""
        signals = self.signals(robot)
        return lambda t: {name: signal.at(t, grid) for name, signal in signals.items()}

    def model_robot(self, robot: Robot) -> Robot:
        """Return the robot that the controller computes with."""
        return robot if self.controller_robot is None else self.controller_robot

    def motorized_robot(self, robot: Robot) -> Robot:
        """Return the robot that the controller computes with, with the motors of the driven one, or at `actuated`."""
        computed = self.model_robot(robot)
        if self.actuated is None and computed is robot:
            return robot
        driven = (robot if self.actuated is None else robot.with_actuated(self.actuated)).canonical.joints
        names = [name for name, link in zip(computed.joint_names, driven, strict=True) if link.actuated]
        return computed if names == list(computed.actuated) else computed.with_actuated(names)

    def _model(self, robot: Robot) -> CanonicalModel | None:
        """Return the model of the formula; None if it is that of the driven robot.

        Constraints transmit joint forces to the motors only if these determine all joints; else the tree is used.
        """
        computed = self.motorized_robot(robot)
        computed = computed.without_constraints() if computed.constraints and computed.undriven_joints else computed
        return None if computed.canonical == robot.canonical else computed.canonical

    def _robot_and_motors(self, robot: Robot | None, actuated: Sequence[str] | None) -> None:
        """Set controller_robot and actuated."""
        if robot is not None and not isinstance(robot, Robot):
            raise ArgumentError(
                f"{type(self).__name__}: controller_robot is {shown(robot)}, expected a Robot, or None for the driven "
                f"robot."
            )
        self.controller_robot, self.actuated = robot, actuated

    def _gain(self, name: str, size: int) -> np.ndarray:
        """Return gains (..., size) from one number, `size` numbers, or a batch of them."""
        values = getattr(self, name)
        if values.ndim and values.shape[-1] != size:
            raise ArgumentError(
                f"{type(self).__name__}: {name} has shape {values.shape}, expected one number or (..., {size})."
            )
        return np.broadcast_to(values, (*values.shape[:-1], size)).copy()

    def __add__(self, other: Controller) -> Controller:
        return _sum(self, other)

    def __radd__(self, other: object) -> Controller:
        return self if other == 0 and isinstance(other, int) else _sum(other, self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _structural(value: Hashable, robot: Robot) -> Hashable:
    """Return an attribute that a formula reads, with controllers replaced by their formulas."""
    if isinstance(value, tuple):
        return tuple(_structural(x, robot) for x in value)
    return value.control_law(robot) if isinstance(value, Controller) else value


def _digest(formula: Callable[..., Values]) -> str:
    """Return a digest of the code of a formula and of everything that it reads."""
    return hashlib.sha256(json.dumps(fingerprint(formula), sort_keys=True).encode()).hexdigest()


class Zero(Controller):
    """No torque: the robot falls."""

    uses_model = False

    def formula(self, dynamics: Dynamics, q: Values, qd: Values, inputs: Inputs) -> Values:
        return [0.0] * len(qd)


class _PrescribedTorque(Controller):
    """Torques that do not depend on the state. Free joints get theirs too."""

    uses_model = False

    def formula(self, dynamics: Dynamics, q: Values, qd: Values, inputs: Inputs) -> Values:
        return inputs["tau"]


class Constant(_PrescribedTorque, name="constant"):
    """Constant torques (..., nv); leading axes are those of the batch."""

    def __init__(self, tau: ArrayLike):
        self.tau = real_array("Constant: tau", tau)

    def inputs(self, robot: Robot) -> dict[str, Input]:
        return {"tau": real_array("torque", self.tau, robot.nv)}

    def __repr__(self) -> str:
        return f"Constant(shape {self.tau.shape})"


class Sampled(_PrescribedTorque):
    """Torques (samples, ..., nv) over time; the other axes are those of the batch.

    times: (samples,), increasing, covering the simulation. If omitted, the samples are at the steps (steps + 1 of
    them), or at the steps and their middles (2 steps + 1), and are not interpolated. hold: interpolation between
    samples, "cubic" (a spline), "linear", or "zero" (the value at the beginning of a step holds for the step; then one
    sample per step is enough).
    """

    def __init__(self, tau: ArrayLike, times: ArrayLike | None = None, hold: str = "cubic"):
        self.tau = real_array("Sampled: tau", tau)
        self.hold = one_of("Sampled: hold", hold, HOLDS)
        if self.tau.ndim < 2 or not len(self.tau):
            raise ArgumentError(
                f"Sampled: tau has shape {self.tau.shape}, expected (samples, ..., nv) with one row for each time. Use "
                f"Constant(tau) for constant torques."
            )
        self.times = None if times is None else real_array("Sampled: times", times)
        if self.times is not None and (
            self.times.shape != (len(self.tau),) or len(self.tau) < 2 or not (np.diff(self.times) > 0).all()
        ):
            raise ArgumentError(
                f"Sampled: times has shape {self.times.shape} for {len(self.tau)} samples, expected increasing times, "
                f"one for each of at least two samples."
            )

    def inputs(self, robot: Robot) -> dict[str, Input]:
        samples = real_array("torque", self.tau, robot.nv)

        @functools.lru_cache(maxsize=1)
        def interpolated(grid: Grid) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
            times = self._times(grid)
            return times, _interpolator(times, samples, self.hold)

        def values(t: np.ndarray, grid: Grid) -> np.ndarray:
            times, between_samples = interpolated(grid)
            if self.times is None and self.hold != "zero" and len(samples) == len(t):
                return samples
            return between_samples(np.clip(t, times[0], times[-1]))

        return {"tau": Signal(robot.nv, values, held=self.hold == "zero")}

    def _times(self, grid: Grid) -> np.ndarray:
        """Return the times of the samples, checked against the duration of the simulation."""
        if self.times is not None:
            slack = 1e-9 * grid.duration
            if self.times[0] > slack or self.times[-1] < grid.duration - slack:
                raise ArgumentError(
                    f"Sampled: times are from {self.times[0]:g} to {self.times[-1]:g} s, expected them to cover the "
                    f"simulation, 0 to {grid.duration:g} s."
                )
            return self.times
        count, fitting = len(self.tau), {grid.steps + 1: grid.dt, 2 * grid.steps + 1: 0.5 * grid.dt}
        if self.hold == "zero":
            fitting[grid.steps] = grid.dt
        if count not in fitting:
            raise ArgumentError(
                f"torque has {count} samples, expected {grid.steps + 1} (one at each step) or {2 * grid.steps + 1} "
                f"(also in the middle of each). Use Sampled(tau, times=...) for samples at other times, and "
                f"Constant(tau) for constant torques."
            )
        return np.arange(count) * fitting[count]

    def __repr__(self) -> str:
        return f"Sampled(shape {self.tau.shape}, hold={self.hold!r})"


class FeedForward(_PrescribedTorque, name="feed_forward"):
    """Inverse dynamics along a path, at every stage of every step, without feedback.

    path: a function that returns (q, qd, qdd) at times t, such as those of `linksweep.motion`.
    """

    def __init__(
        self, path: Reference, *, controller_robot: Robot | None = None, actuated: Sequence[str] | None = None
    ):
        if not callable(path):
            raise ArgumentError(
                f"FeedForward got {shown(path)}, expected a path that returns (q, qd, qdd) at times t, such as "
                f"motion.Quintic."
            )
        self.path = path
        self._robot_and_motors(controller_robot, actuated)

    def inputs(self, robot: Robot) -> dict[str, Input]:
        computed = self.motorized_robot(robot)

        def torques(t: np.ndarray, grid: Grid) -> np.ndarray:
            q, qd, qdd = path_samples("FeedForward", self.path, robot, t)
            tau = computed.inverse_dynamics(q, qd, qdd, dissipation=grid.dissipation)
            for link in computed.canonical.joints:
                if not (link.actuated or link.type.floats):  # torques of free joints stay, to test the path
                    tau[..., link.rates] = 0.0
            return tau

        return {"tau": Signal(robot.nv, torques)}


class _Tracking(Controller):
    """A controller with a reference in joint space and gains kp and kd."""

    references: ClassVar[tuple[str, ...]] = ("q_ref", "qd_ref")  # that the formula reads

    def __init__(
        self, reference: Reference | ArrayLike, kp: ArrayLike, kd: ArrayLike, controller_robot: Robot | None,
        actuated: Sequence[str] | None,
    ):  # fmt: skip
        name = type(self).__name__
        self.reference = reference if callable(reference) else real_array(f"{name}: reference", reference)
        self.kp, self.kd = real_array(f"{name}: kp", kp), real_array(f"{name}: kd", kd)
        self._robot_and_motors(controller_robot, actuated)

    def inputs(self, robot: Robot) -> dict[str, Input]:
        name, reference = type(self).__name__, self.reference
        inputs: dict[str, Input] = {}
        if callable(reference):
            path = cached_last(lambda t: path_samples(name, reference, robot, t))
            for k, label in enumerate(self.references):
                inputs[label] = Signal(robot.nv if k else robot.nq, lambda t, grid, k=k: path(t)[k])
        else:
            inputs.update(dict.fromkeys(self.references, Signal(robot.nv, fixed=np.zeros(robot.nv))))
            q = robot.normalize(real_array(f"{name}: reference", reference, robot.nq))
            inputs["q_ref"] = Signal(robot.nq, fixed=q)
        return inputs | {gain: self._gain(gain, robot.nv) for gain in ("kp", "kd")}

    def feedback(self, dynamics: Dynamics, q: Values, qd: Values, x: Inputs) -> list[Scalar]:
        """Return kp (q_ref - q) + kd (qd_ref - qd)."""
        error = tracking_error(dynamics.model, q, x["q_ref"])
        return [
            kp * e + kd * (v_ref - v)
            for kp, e, kd, v_ref, v in zip(x["kp"], error, x["kd"], x["qd_ref"], qd, strict=True)
        ]

    def __repr__(self) -> str:
        return f"{type(self).__name__}(kp={shown(self.kp.tolist())}, kd={shown(self.kd.tolist())})"


class PD(_Tracking, name="pd"):
    """tau = g(q) + kp (q_ref - q) + kd (qd_ref - qd): joint springs and dampers, and gravity compensation.

    reference: coordinates (..., nq) to hold, or a path that returns (q, qd, qdd) at times t. kp, kd: one number or
    (..., nv), with leading axes for a batch of rollouts. gravity=False omits g(q). For a robot with constraints, g(q)
    are the torques of its motors that balance gravity.
    """

    structure = ("gravity",)

    def __init__(
        self, reference: Reference | ArrayLike, kp: ArrayLike, kd: ArrayLike, gravity: bool = True, *,
        controller_robot: Robot | None = None, actuated: Sequence[str] | None = None,
    ):  # fmt: skip
        super().__init__(reference, kp, kd, controller_robot, actuated)
        self.gravity = checked_flag("PD: gravity", gravity)

    def formula(self, dynamics: Dynamics, q: Values, qd: Values, inputs: Inputs) -> Values:
        tau = at_motors(dynamics.model, self.feedback(dynamics, q, qd, inputs))
        return added(dynamics.motors(q, dynamics.gravity(q)), tau) if self.gravity else tau


class ComputedTorque(_Tracking, name="computed_torque"):
    """tau = inverse dynamics of (q, qd, qdd_ref + kp (q_ref - q) + kd (qd_ref - qd)).

    Each tracking error e obeys e'' + kd e' + kp e = 0. reference: a path that returns (q, qd, qdd) at times t, or
    coordinates (..., nq) to hold. kp, kd: one number or (..., nv), with leading axes for a batch of rollouts. With
    constraints, the torques are those of the robot's motors. Errors of passive joints count like those of the others:
    use the same gains for all joints.
    """

    references = ("q_ref", "qd_ref", "qdd_ref")

    def __init__(
        self, reference: Reference | ArrayLike, kp: ArrayLike, kd: ArrayLike, *, controller_robot: Robot | None = None,
        actuated: Sequence[str] | None = None,
    ):  # fmt: skip
        super().__init__(reference, kp, kd, controller_robot, actuated)

    def check(self, robot: Robot) -> None:
        super().check(robot)
        undriven = self.motorized_robot(robot).undriven_joints
        if undriven:
            raise ArgumentError(
                f"ComputedTorque: the motors of {robot.name} do not determine joint {listing(undriven, quoted=False)}, "
                f"expected motors that determine all joints: use PD, or your own torques."
            )

    def formula(self, dynamics: Dynamics, q: Values, qd: Values, inputs: Inputs) -> Values:
        qdd = added(inputs["qdd_ref"], self.feedback(dynamics, q, qd, inputs))
        return dynamics.motors(q, dynamics.inverse(q, qd, qdd))


class GravityCompensation(Controller, name="gravity"):
    """tau = g(q): the torques that hold the robot still against gravity."""

    def __init__(self, *, controller_robot: Robot | None = None, actuated: Sequence[str] | None = None):
        self._robot_and_motors(controller_robot, actuated)

    def formula(self, dynamics: Dynamics, q: Values, qd: Values, inputs: Inputs) -> Values:
        return dynamics.motors(q, dynamics.gravity(q))


class FrictionCompensation(Controller, name="friction"):
    """tau = damping v + friction v / sqrt(v^2 + width^2): joint friction, smooth at rest.

    reference: a path whose velocities are v; the measured ones if omitted. friction, damping: (..., nv), by default
    those of the robot model. width: the velocity (rad/s, m/s) below which the Coulomb part fades. It reaches 99 % at 7
    times this velocity.
    """

    structure = ("of_reference",)

    def __init__(
        self, reference: Reference | None = None, *, friction: ArrayLike | None = None,
        damping: ArrayLike | None = None, width: float = 0.01, controller_robot: Robot | None = None,
        actuated: Sequence[str] | None = None,
    ):  # fmt: skip
        name = "FrictionCompensation"
        if reference is not None and not callable(reference):
            raise ArgumentError(
                f"{name}: reference is {shown(reference)}, expected a path, or None for measured velocities."
            )
        self.reference, self.width = reference, real_number(f"{name}: width", width, above=0.0)
        self.of_reference = reference is not None
        self.friction = None if friction is None else real_array(f"{name}: friction", friction)
        self.damping = None if damping is None else real_array(f"{name}: damping", damping)
        self._robot_and_motors(controller_robot, actuated)

    def inputs(self, robot: Robot) -> dict[str, Input]:
        inputs: dict[str, Input] = {}
        reference = self.reference
        if reference is not None:
            name = type(self).__name__
            inputs["qd_ref"] = Signal(robot.nv, lambda t, grid: path_samples(name, reference, robot, t)[1])
        for name in ("friction", "damping"):
            modelled = np.zeros(robot.nv)
            for link in self.model_robot(robot).canonical.links:
                modelled[link.rates] += getattr(link, name)
            inputs[name] = modelled if getattr(self, name) is None else self._gain(name, robot.nv)
        return inputs | {"width": np.array([self.width])}

    def formula(self, dynamics: Dynamics, q: Values, qd: Values, inputs: Inputs) -> Values:
        velocities, width = inputs["qd_ref"] if self.of_reference else qd, inputs["width"][0]
        tau = [
            damping * v + friction * (v / sqrt(v * v + width * width))
            for friction, damping, v in zip(inputs["friction"], inputs["damping"], velocities, strict=True)
        ]
        return dynamics.motors(q, tau)


class Sum(Controller):
    """`a + b`: the sum of the torques of all parts. Names of the inputs of the k-th part end in _k."""

    structure = ("parts",)
    uses_model = False

    def __init__(self, parts: Sequence[Controller]):
        self.parts = tuple(parts)

    def check(self, robot: Robot) -> None:
        for part in self.parts:
            part.check(robot)

    def inputs(self, robot: Robot) -> dict[str, Input]:
        parts = [part.inputs(robot) for part in self.parts]
        return {f"{name}_{k}": value for k, part in enumerate(parts) for name, value in part.items()}

    @property
    def bounded(self) -> bool:
        return all(part.bounded for part in self.parts)

    def formula(self, dynamics: Dynamics, q: Values, qd: Values, inputs: Inputs) -> Values:
        total: Values = [0.0] * len(qd)
        laws: tuple[ControlLaw, ...] = self.parts  # type: ignore[assignment]  # see `_structural`
        for k, law in enumerate(laws):
            part = {name: inputs[f"{name}_{k}"] for name in (*law.signals(), *law.constants())}
            total = added(total, law.torque(dynamics, q, qd, part))
        return total

    @property
    def controller_robot(self) -> Robot | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return next((part.controller_robot for part in self.parts if part.controller_robot is not None), None)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))


class Saturated(Controller):
    """`saturated(controller)`: each torque between -limit and limit; all 0 if any of them is NaN."""

    structure = ("controller",)
    uses_model = False

    def __init__(self, controller: Controller, limits: ArrayLike | None = None):
        self.controller = controller
        self.limits = None if limits is None else real_array("saturated: limits", limits)
        if self.limits is not None and (self.limits < 0.0).any():
            raise ArgumentError(f"saturated: limits is {shown(limits)}, expected numbers of at least 0.")

    def check(self, robot: Robot) -> None:
        self.controller.check(robot)
        if self.limits is None and not np.isfinite(effort_limits(robot)).any():
            raise ArgumentError(f"saturated: the model of {robot.name} has no effort limits: pass limits=.")

    def inputs(self, robot: Robot) -> dict[str, Input]:
        limits = effort_limits(robot) if self.limits is None else self._gain("limits", robot.nv)
        # finite, because an infinite input would make the whole sample NaN
        return self.controller.inputs(robot) | {"effort_limit": np.minimum(limits, 1e30)}

    @property
    def bounded(self) -> bool:
        return True

    def formula(self, dynamics: Dynamics, q: Values, qd: Values, inputs: Inputs) -> Values:
        law: ControlLaw = self.controller  # type: ignore[assignment]  # see `_structural`
        tau = law.torque(dynamics, q, qd, inputs)
        valid: Scalar = 1.0  # 0 if one is NaN: neither comparison holds
        for x in tau:
            valid = where(x < 1.0, valid, where(x > 0.0, valid, 0.0))
        bounded = [between(-limit, x, limit) for x, limit in zip(tau, inputs["effort_limit"], strict=True)]
        return [x if is_zero(x) else where(valid > 0.5, x, 0.0) for x in bounded]

    @property
    def controller_robot(self) -> Robot | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.controller.controller_robot

    def __repr__(self) -> str:
        return f"saturated({self.controller!r})"


class Function(Controller):
    """A Python function torque(t, q, qd) -> tau, called for every evaluation of every rollout."""

    structure = ("function",)
    uses_model = False

    def __init__(self, function: Callable[..., ArrayLike]):
        self.function = function

    def inputs(self, robot: Robot) -> dict[str, Input]:
        return {"t": Signal(1, lambda t, grid: t[:, None])}

    def formula(self, dynamics: Dynamics, q: Values, qd: Values, inputs: Inputs) -> Values:
        t = float(np.asarray(inputs["t"][0])[0])
        positions, velocities = stacked(q), stacked(qd)
        tau = [checked_torque(self.function, t, *state) for state in zip(positions, velocities, strict=True)]
        return [*np.array(tau, velocities.dtype).T]

    def __repr__(self) -> str:
        return f"Function({getattr(self.function, '__name__', type(self.function).__name__)})"


def as_controller(torque: Controller | Callable[..., ArrayLike] | ArrayLike | None) -> Controller:
    """Return the controller of what `simulate` takes as torque."""
    if torque is None:
        return Zero()
    if isinstance(torque, type) and issubclass(torque, Controller):
        raise ArgumentError(
            f"torque is the class {torque.__name__}, expected an instance, such as {torque.__name__}(...)."
        )
    if isinstance(torque, Controller):
        return torque
    if callable(torque):
        return Function(torque)
    array = real_array("torque", torque)
    return Constant(array) if array.ndim == 1 else Sampled(array)


def saturated(controller: object, limits: ArrayLike | None = None) -> Controller:
    """Return the controller with every torque within limits: (..., nv), by default the effort limits of the robot.

    A measurement that is NaN or infinite, so that some torque is NaN, gives torques of 0, in Python and in C.
    """
    part = _checked_controller("saturated", controller)
    # a sum of one term gives the inner limits a name other than the outer ones
    return Saturated(Sum([part]) if isinstance(part, Saturated) else part, limits)


def effort_limits(robot: Robot) -> np.ndarray:
    """Return the largest torques (nv,), infinite where the robot model has no limit."""
    limits = np.full(robot.nv, np.inf)
    for link, described in zip(robot.canonical.links, robot.model.links, strict=True):
        if link.leads:
            limits[link.rates] = float(described.joint.limits.effort)
    return limits


def path_samples(name: str, path: Reference, robot: Robot, t: np.ndarray) -> Sequence[np.ndarray]:
    """Return q, qd and qdd of a path at times t (n,), checked. `name` begins the messages."""
    try:
        motion = dict(zip(("q", "qd", "qdd"), path(t), strict=True))
    except (TypeError, ValueError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(
            f"{name}: the path did not return (q, qd, qdd) for times of shape {t.shape} ({error})."
        ) from error
    arrays = []
    for label, value in motion.items():
        size = robot.nq if label == "q" else robot.nv
        array = real_array(f"{name}: {label} of the path", value, size)
        if array.shape[0] != len(t) or array.ndim != 2:
            raise ArgumentError(
                f"{name}: {label} of the path has shape {array.shape} at {len(t)} times, expected ({len(t)}, {size})."
            )
        arrays.append(array)
    return arrays


def check_frame(controller: Controller, robot: Robot, frame: object) -> None:
    """Raise ArgumentError for a frame that the robot does not have."""
    names = robot.frame_names
    if not isinstance(frame, str) or frame not in names:
        raise ArgumentError(
            f"{type(controller).__name__}: {robot.name} has no frame {shown(frame)}{nearest(frame, names)}: expected "
            f"one of {', '.join(names[:8])} (robot.frame_names)."
        )


def cached_last(function: Callable[[np.ndarray], T]) -> Callable[[np.ndarray], T]:
    """Return the function with its last result cached: signals of one path are evaluated at the same times."""
    cached = functools.lru_cache(maxsize=1)(lambda data: function(np.frombuffer(data).copy()))
    return lambda t: cached(t.tobytes())


def _interpolator(times: np.ndarray, samples: np.ndarray, hold: str) -> Callable[[np.ndarray], np.ndarray]:
    from scipy.interpolate import CubicSpline, make_interp_spline

    if hold == "zero":
        return lambda t: samples[np.clip(np.searchsorted(times, t, side="right") - 1, 0, len(times) - 1)]
    return CubicSpline(times, samples, axis=0) if hold == "cubic" else make_interp_spline(times, samples, k=1, axis=0)


def _sum(a: object, b: object) -> Controller:
    terms = [_checked_controller("a sum", term) for term in (a, b)]
    return Sum([part for term in terms for part in (term.parts if isinstance(term, Sum) else (term,))])


def _checked_controller(operation: str, controller: object) -> Controller:
    if isinstance(controller, Controller) and not isinstance(controller, Function):
        return controller
    raise ArgumentError(
        f"{operation} of controllers got {shown(controller)}, expected a controller: pass arrays as Constant or "
        f"Sampled. A Python function can call controller.torque(t, q, qd) itself."
    )


# ---- compiled controllers


@dataclass(frozen=True)
class ControllerTorque(Computation):
    """The torques of a controller: q, qd, its signals, its constants -> tau."""

    model: CanonicalModel  # pyright: ignore[reportIncompatibleMethodOverride]
    control_law: ControlLaw = field(default_factory=ControlLaw)
    dissipation: bool = False

    @property
    def name(self) -> str:
        return "torque"

    @property
    def inputs(self) -> tuple[Array, ...]:
        sizes = {"q": self.model.nq, "qd": self.model.nv} | self.control_law.signals() | self.control_law.constants()
        return tuple(Array(name, (size,)) for name, size in sizes.items())

    @property
    def outputs(self) -> tuple[Array, ...]:
        return (Array("tau", (self.model.nv,)),)

    def values(self, tracing: Tracing) -> tuple[Values, ...]:
        dynamics = TracedDynamics(RobotFunction(self.model, "forward_dynamics", dissipation=self.dissipation))
        q, qd, *rest = (tracing.leaves[array.name] for array in self.inputs)
        inputs = dict(zip((array.name for array in self.inputs[2:]), rest, strict=True))
        return (self.control_law.torque(dynamics, q, qd, inputs),)


def controller_function(
    controller: Controller, robot: Robot, dissipation: bool, dtype: str = "float64", backend: str | None = None
) -> CompiledFunction:
    """Return the torques of a controller as a compiled function of q, qd, its signals and its constants.

    A sample with an input that is not finite is NaN, also if the controller is bounded: see `settled`.
    """
    controller.check(robot)
    if isinstance(controller, Function):
        raise ArgumentError(
            "a Python function cannot be compiled, expected a controller such as those of linksweep.simulation."
        )
    computation = ControllerTorque(robot.canonical, controller.control_law(robot), dissipation)
    return robot.compile(computation, dtype=dtype, threads=1, backend=backend)


def settled(function: CompiledFunction, tau: np.ndarray) -> np.ndarray:
    """Return torques of a controller's function, with 0 in place of NaN if the controller is bounded."""
    computation = function.computation
    is_bounded = isinstance(computation, ControllerTorque) and computation.control_law.bounded
    return np.nan_to_num(tau, copy=False) if is_bounded else tau
