"""Sampled (digital) controllers with sensors, delay, noise and motor limits.

Every control period, a controller receives a batch of states and returns a batch of torques, which are held until the
next ones. Controllers run as compiled code, policies in Python. The steps in between are machine code.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from ..backends.rollout import Feed, Recording, run
from ..errors import ArgumentError
from ..robot.robot import Robot
from ..support.checks import as_array, one_of, real_number, refuse_foreign, whole_number
from ..support.messages import shown
from .checks import real_array, whole_steps
from .controllers import Controller, Function, Grid, controller_function, effort_limits, settled
from .dynamics import checked_torque
from .fixed_step import Step, last_results
from .integrators import Integrator

BatchTorque = Callable[[float, np.ndarray, np.ndarray], np.ndarray]  # of states (n, nq) and (n, nv)
RATES = ("measured", "difference")


@dataclass(frozen=True)
class Sampling:
    """Sensors and actuators between a sampled controller and the robot.

    delay: time (s) from a measurement to the torque computed from it; the first torque acts from the start. encoder:
    resolution of coordinates, one number or (nq,), 0 for none; quaternions are not rounded. rates: "measured" uses the
    true velocities, "difference" those between two measured coordinates. q_noise, qd_noise, tau_noise: standard
    deviations of independent normal noise on measurements and commands, one number or one per component, from `seed`.
    effort: bounds of the torques (..., nv), or True for the effort limits of the robot model. effort_rate: largest rate
    of change of a torque (N m/s). motor: a `Motor`, whose current and voltage limit the torques.
    """

    delay: float = 0.0
    encoder: ArrayLike = 0.0
    rates: str = "measured"
    q_noise: ArrayLike = 0.0
    qd_noise: ArrayLike = 0.0
    tau_noise: ArrayLike = 0.0
    seed: int = 0
    effort: ArrayLike | None = None
    effort_rate: ArrayLike | None = None
    motor: Motor | None = None

    def __post_init__(self) -> None:
        real_number("Sampling: delay", self.delay, at_least=0.0)
        one_of("Sampling: rates", self.rates, RATES)
        whole_number("Sampling: seed", self.seed, at_least=0)
        for name in ("encoder", "q_noise", "qd_noise", "tau_noise", "effort_rate"):
            value = getattr(self, name)
            if value is not None and (real_array(f"Sampling: {name}", value) < 0.0).any():
                raise ArgumentError(f"Sampling: {name} is {shown(value)}, expected numbers of at least 0.")
        if self.motor is not None and not isinstance(self.motor, Motor):
            raise ArgumentError(f"Sampling: motor is {shown(self.motor)}, expected a Motor.")


@dataclass(frozen=True)
class Policy:
    """Torques by a Python function of a batch: policy(t, q, qd) of (..., nq) and (..., nv) returns (..., nv).

    It is called once per control period of a `SampledController`, otherwise once per step.
    """

    function: Callable[..., object]

    def __post_init__(self) -> None:
        if not callable(self.function) or isinstance(self.function, type):
            raise ArgumentError(
                f"policy is {shown(self.function)}, expected a function policy(t, q, qd) of a batch of states."
            )


@dataclass(frozen=True)
class SampledController:
    """A digital controller: torques are computed every `period` seconds and held in between.

    controller: a controller, a `Policy`, or anything else that `simulate` takes as torque. period: a whole number of
    steps, one step by default. sampling: delay, encoders, noise and torque bounds.
    """

    controller: Controller | Policy | Callable[..., ArrayLike] | ArrayLike | None
    period: float | None = None
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        if self.sampling is not None and not isinstance(self.sampling, Sampling):
            raise ArgumentError(f"sampling is {shown(self.sampling)}, expected a linksweep.simulation.Sampling.")


@dataclass(frozen=True)
class Schedule:
    """Control period, and delay of the torques, in steps."""

    period: int
    delay: int

    @property
    def piece(self) -> int:
        """Number of steps during which no torque is computed or changed."""
        return math.gcd(self.period, self.delay) if self.delay else self.period


def schedule(period: float, delay: float, dt: float, every: int) -> Schedule:
    """Return both in whole steps, checked against the interval between records."""
    period = real_number("control_period", period, above=0.0)
    steps = Schedule(whole_steps("control_period", period, dt), whole_steps("delay", delay, dt))
    if every % steps.piece and steps.piece % every:
        raise ArgumentError(
            f"every is {every} steps and the torques change every {steps.piece} steps (by control period and delay), "
            f"expected one to divide the other."
        )
    return steps


def _batch_policy(function: Callable[..., object], batch: tuple[int, ...], nv: int) -> BatchTorque:
    """Return a user's function of arrays (*batch, size) as one of rows (n, size), with its result checked."""

    def policy(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        tau = _shared(function(t, q.reshape(*batch, -1).copy(), qd.reshape(*batch, -1).copy()))
        if tau.shape != (*batch, nv) or tau.dtype.kind not in "iufb":
            raise ArgumentError(
                f"policy(t, q, qd) returned {tau.dtype} of shape {tau.shape} at t = {t:g}, expected real numbers of "
                f"shape {(*batch, nv)}."
            )
        return tau.reshape(-1, nv)

    return policy


def _shared(result: object) -> np.ndarray:
    """Return a NumPy array that shares the memory of an array of any library that supports this."""
    refuse_foreign("the result of policy(t, q, qd)", result, tensors=True)
    if isinstance(result, np.ndarray):
        return result
    detach = getattr(result, "detach", None)
    if detach is not None:  # a tensor with gradients does not share its memory
        result = detach()
    try:
        shares = hasattr(result, "__dlpack__")
        return np.from_dlpack(cast(np.ndarray, result)) if shares else np.asarray(result)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise ArgumentError(
            f"policy(t, q, qd) returned {shown(result)}, expected an array in the memory of NumPy ({error})."
        ) from error


def _controller_policy(
    controller: Controller, robot: Robot, grid: Grid, batch: tuple[int, ...], dtype: str, backend: str
) -> BatchTorque:
    """Return the compiled torques of a controller as a function of t and rows q, qd."""
    if isinstance(controller, Function):
        function = controller.function
        return lambda t, q, qd: np.array([checked_torque(function, t, a, b) for a, b in zip(q, qd, strict=True)])
    compiled, at = controller_function(controller, robot, grid.dissipation, dtype, backend), controller.at(robot, grid)
    constants = {name: _flat(name, value, batch, dtype) for name, value in controller.constants(robot).items()}
    names = compiled.inputs[2:]

    def policy(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        inputs = constants | {name: _flat(name, value, batch, dtype) for name, value in at(t).items()}
        return settled(compiled, compiled(q, qd, *(inputs[name] for name in names)))

    return policy


def _flat(name: str, value: ArrayLike, batch: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return (size,) unchanged, and (..., size) as rows (n, size) of the batch."""
    array = np.asarray(value, dtype)
    if array.ndim == 1:
        return array
    try:
        full = np.broadcast_to(array, (*batch, array.shape[-1]))
    except ValueError:
        raise ArgumentError(
            f"{name} has batch shape {array.shape[:-1]}, expected one that broadcasts to that of the rollouts, {batch}."
        ) from None
    return np.ascontiguousarray(full.reshape(-1, array.shape[-1]))


class SensorsAndMotors:
    """A policy with its sensors and motors: states (n, size) -> torques (n, nv)."""

    def __init__(self, policy: BatchTorque, sampling: Sampling, robot: Robot, period: float, batch: tuple[int, ...]):
        self.policy, self.sampling, self.period = policy, sampling, period
        self._noise = np.random.default_rng(sampling.seed)
        self._robot = robot
        single = np.ones(robot.nq, bool)
        for link in robot.canonical.links:
            if link.type.has_quaternion:
                single[link.q_start : link.q_start + 4] = False
        encoder = np.broadcast_to(_each("encoder", sampling.encoder, robot.nq), (robot.nq,))
        self._q_noise = _each("q_noise", sampling.q_noise, robot.nq)
        self._qd_noise, self._tau_noise = (
            _each(name, getattr(sampling, name), robot.nv) for name in ("qd_noise", "tau_noise")
        )
        self._resolved = single & (encoder > 0.0)
        self._resolution = encoder[self._resolved]
        self._last_q: np.ndarray | None = None
        self._last_tau: np.ndarray | None = None
        effort = effort_limits(robot) if sampling.effort is True else sampling.effort
        self._effort = None if effort is None or effort is False else _sizes("effort", effort, batch, robot.nv)
        rate = sampling.effort_rate
        self._rise = None if rate is None else _sizes("effort_rate", rate, batch, robot.nv) * period

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        tau = np.asarray(self.policy(t, *self._measured(q, qd)), float)
        tau = self._noisy(tau, self._tau_noise)
        if self.sampling.motor is not None:
            tau = self.sampling.motor.limited(tau, qd)
        if self._effort is not None:
            tau = np.clip(tau, -self._effort, self._effort)
        if self._rise is not None and self._last_tau is not None:
            tau = np.clip(tau, self._last_tau - self._rise, self._last_tau + self._rise)
        self._last_tau = tau
        return tau

    def _measured(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        measured, velocities = self._noisy(q, self._q_noise), qd
        if self._resolved.any():
            measured = np.array(measured)
            measured[:, self._resolved] = np.round(measured[:, self._resolved] / self._resolution) * self._resolution
        if self.sampling.rates == "difference":
            if self._last_q is not None:
                velocities = self._robot.difference(self._last_q, measured) / self.period
            self._last_q = np.array(measured)
        noisy = self._noisy(velocities, self._qd_noise)
        return measured.astype(q.dtype, copy=False), noisy.astype(qd.dtype, copy=False)

    def _noisy(self, x: np.ndarray, deviation: np.ndarray) -> np.ndarray:
        return x + self._noise.standard_normal(x.shape) * deviation if deviation.any() else x


def _each(name: str, value: ArrayLike, size: int) -> np.ndarray:
    """Return one number, or (size,)."""
    array = np.asarray(value, float)
    if array.shape not in ((), (size,)):
        raise ArgumentError(f"Sampling: {name} has shape {array.shape}, expected one number or ({size},).")
    return array


def _sizes(name: str, value: ArrayLike, batch: tuple[int, ...], nv: int) -> np.ndarray:
    refuse_foreign(f"Sampling: {name}", value)
    array = as_array(value)
    array = array.astype(float) if array.dtype.kind in "iuf" else np.array(math.nan)
    if (array.ndim and array.shape[-1] != nv) or (array < 0.0).any() or np.isnan(array).any():
        raise ArgumentError(
            f"Sampling: {name} is {shown(value)}, expected numbers of at least 0: one, or an array (..., {nv})."
        )
    return array if array.ndim < 2 else _flat(name, array, batch, "float64")


def roll_sampled(
    step: Step, sampled: SampledController, torques: Controller | Policy, grid: Grid, batch: tuple[int, ...],
    recording: Recording, method: Integrator, backend: str, watch: Callable[[float], None],
) -> None:  # fmt: skip
    """Fill the recording from its first state on, with torques that are held between updates.

    torques: what `sampled` computes periodically. step: with a constant torque, which is overwritten here.
    """
    robot, every, dtype = step.robot, recording.every, str(method.dtype)
    sampling = Sampling() if sampled.sampling is None else sampled.sampling
    plan = schedule(grid.dt if sampled.period is None else sampled.period, sampling.delay, grid.dt, every)
    if isinstance(torques, Policy):
        policy = _batch_policy(torques.function, batch, robot.nv)
    else:
        policy = _controller_policy(torques, robot, grid, batch, dtype, backend)
    feeds, held = step.held_feeds(grid, batch, dtype)
    kernel = step.kernel(dtype, backend)
    if not math.prod(batch):
        return
    controller = SensorsAndMotors(policy, sampling, robot, plan.period * grid.dt, batch)
    q, qd = recording.states
    inner = None if plan.piece % every == 0 else _inner(recording, plan.piece)
    pending: deque[tuple[int, np.ndarray]] = deque()  # torques, and the step from which each acts
    for k in range(0, grid.steps, plan.piece):
        record = k // every
        states = (q[record], qd[record]) if inner is None else (inner.states[0][0], inner.states[1][0])
        if k % plan.period == 0:
            pending.append((k + plan.delay if k else 0, controller(k * grid.dt, *states)))
        while pending and pending[0][0] <= k:
            held[0] = pending.popleft()[1]
        if inner is None:
            run(kernel, recording, feeds, record, min(record + plan.piece // every, len(q) - 1), method.threads)
        else:
            shifted = [Feed(feed.values, feed.first + feed.advance * k, feed.advance) for feed in feeds]
            run(kernel, inner, shifted, 0, 1, method.threads)
            if k % every == 0:
                for recorded, result in zip(recording.results, inner.results, strict=True):
                    recorded[record] = result[0]
            for state in inner.states:
                state[0] = state[1]
            if (k + plan.piece) % every == 0:
                for recorded, state in zip(recording.states, inner.states, strict=True):
                    recorded[record + 1] = state[0]
        watch(min(1.0, (k + plan.piece) / grid.steps))
    last_results(kernel, recording, feeds, grid.steps)


def _inner(recording: Recording, piece: int) -> Recording:
    """Return two records for the steps between two records of a run."""
    states = [np.empty((2, *x.shape[1:]), x.dtype) for x in recording.states]
    for state, recorded in zip(states, recording.states, strict=True):
        state[0] = recorded[0]
    return Recording(states, [np.empty_like(states[1]) for _ in range(2)], piece)


@dataclass(frozen=True)
class Motor:
    """An electric motor at each joint. Each property is one number for all joints, or (nv,).

    gear: gear ratio, turns of the motor per turn of the joint. torque_constant: N m/A at the motor, equal to its
    back-EMF constant in V s/rad. rotor_inertia: kg m^2 at the motor; at the joint it is multiplied by gear^2
    (`driven`). current: current limit (A). voltage (V) and resistance (ohm): supply voltage, reduced by the back EMF,
    limits the current.
    """

    gear: ArrayLike = 1.0
    torque_constant: ArrayLike = 1.0
    rotor_inertia: ArrayLike = 0.0
    current: ArrayLike = math.inf
    voltage: ArrayLike | None = None
    resistance: ArrayLike | None = None

    def __post_init__(self) -> None:
        if (self.voltage is None) != (self.resistance is None):
            raise ArgumentError(
                f"Motor: voltage is {shown(self.voltage)} and resistance {shown(self.resistance)}, expected both or "
                f"neither."
            )
        for name in ("gear", "torque_constant", "rotor_inertia", "current", "voltage", "resistance"):
            value = getattr(self, name)
            if value is None or (name == "current" and _is_unlimited(value)):
                continue
            array = real_array(f"Motor: {name}", value)
            if (array < 0.0).any() or (name != "rotor_inertia" and (array == 0.0).any()):
                raise ArgumentError(f"Motor: {name} is {shown(value)}, expected numbers above 0.")

    @property
    def torque_per_current(self) -> np.ndarray:
        """Torque at the joint per current (N m/A)."""
        return np.asarray(self.gear, float) * np.asarray(self.torque_constant, float)

    def currents(self, tau: ArrayLike) -> np.ndarray:
        """Return the currents (A) for joint torques (..., nv)."""
        return np.asarray(tau, float) / self.torque_per_current

    def limited(self, tau: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the joint torques within the limits of current and voltage at joint velocities qd."""
        k = self.torque_per_current
        high = k * np.asarray(self.current, float)
        low = -high
        if self.voltage is not None:
            R, V = np.asarray(self.resistance, float), np.asarray(self.voltage, float)
            emf = k * qd  # V = k qd + R i
            low, high = np.maximum(low, k * (-V - emf) / R), np.minimum(high, k * (V - emf) / R)
        return np.minimum(np.maximum(tau, np.minimum(low, high)), np.maximum(low, high))

    def driven(self, robot: Robot) -> Robot:
        """Return the robot with the rotor inertias added to the armature of its joints."""
        added = np.broadcast_to(np.asarray(self.gear, float) ** 2 * np.asarray(self.rotor_inertia, float), (robot.nv,))
        links = []
        for described, link in zip(robot.model.links, robot.canonical.links, strict=True):
            armature = float(described.joint.armature) + (float(added[link.start]) if link.leads else 0.0)
            links.append(replace(described, joint=replace(described.joint, armature=armature)))
        return type(robot)(replace(robot.model, links=tuple(links)))


def _is_unlimited(current: ArrayLike) -> bool:
    array = as_array(current)
    return array.dtype.kind == "f" and bool(np.all(np.isposinf(array)))
