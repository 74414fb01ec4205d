"""Sampled controllers: what they measure, when they act, and what their motors can do.

At every control instant a controller sees a whole batch of states and gives a whole batch of torques, which hold until
its next ones arrive. Laws run as compiled code, policies in Python; between two instants the steps are machine code.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from ..backends.rollout import Feed, Recording, run
from ..errors import ArgumentError
from ..robot.robot import Robot
from ..support.checks import as_array, refuse_foreign
from ..support.messages import shown
from .checks import MOST_STEPS, positive, real_array
from .controllers import Controller, Function, Grid, effort_limits
from .dynamics import checked_torque

if TYPE_CHECKING:
    from .fixed_step import Kernel

BatchTorque = Callable[[float, np.ndarray, np.ndarray], np.ndarray]  # of states (n, nq) and (n, nv)
RATES = ("measured", "difference")


@dataclass(frozen=True)
class Sampling:
    """What stands between a controller and the robot, besides the time from one control instant to the next.

    delay: seconds from a measurement to the torque that answers it; before the start the robot is taken to have stood
    as at the start. encoder: the resolution of coordinates, one number or (nq,), 0 for none; quaternions are left
    alone. rates: "measured" gives the controller the true rates, "difference" those between two measured coordinates.
    q_noise, qd_noise, tau_noise: standard deviations of independent normal noise on what is measured and commanded,
    one number or one for each, from `seed`. effort: bounds of the torques, (..., nv), or True for the description's.
    effort_rate: the fastest change of a torque, N m/s. motor: a Motor, whose current and voltage bound the torques.
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
        if not isinstance(self.delay, (int, float)) or isinstance(self.delay, bool) or not 0.0 <= self.delay < math.inf:
            raise ArgumentError(f"Sampling: delay is {shown(self.delay)}, expected seconds of at least 0.")
        if not isinstance(self.rates, str) or self.rates not in RATES:
            raise ArgumentError(f"Sampling: rates is {shown(self.rates)}, expected one of {', '.join(RATES)}.")
        if isinstance(self.seed, bool) or not isinstance(self.seed, (int, np.integer)) or self.seed < 0:
            raise ArgumentError(f"Sampling: seed is {shown(self.seed)}, expected a whole number of at least 0.")
        for name in ("encoder", "q_noise", "qd_noise", "tau_noise", "effort_rate"):
            value = getattr(self, name)
            if value is not None and (real_array(f"Sampling: {name}", value) < 0.0).any():
                raise ArgumentError(f"Sampling: {name} is {shown(value)}, expected numbers of at least 0.")
        if self.motor is not None and not isinstance(self.motor, Motor):
            raise ArgumentError(f"Sampling: motor is {shown(self.motor)}, expected a Motor.")


@dataclass(frozen=True)
class Policy:
    """Torques by a Python function of a whole batch: policy(t, q, qd) of (..., nq) and (..., nv) returns (..., nv).

    It is called at every control instant; alone, at every step.
    """

    function: Callable[..., object]

    def __post_init__(self) -> None:
        if not callable(self.function) or isinstance(self.function, type):
            raise ArgumentError(
                f"policy is {shown(self.function)}, expected a function policy(t, q, qd) of a batch of states."
            )


@dataclass(frozen=True)
class SampledController:
    """A digital controller: torques are computed every `period` seconds and hold in between.

    controller: whatever `simulate` takes as torque, or a Policy. period: a whole number of steps, by default one step.
    sampling: delay, encoders, noise and torque bounds.
    """

    controller: Controller | Policy | Callable[..., ArrayLike] | ArrayLike | None
    period: float | None = None
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        if self.sampling is not None and not isinstance(self.sampling, Sampling):
            raise ArgumentError(f"sampling is {shown(self.sampling)}, expected a linksweep.simulation.Sampling.")


@dataclass(frozen=True)
class Schedule:
    """In steps: from one control instant to the next, and from an instant to when its torque arrives."""

    period: int
    delay: int

    @property
    def piece(self) -> int:
        """The longest time that divides all others: nothing happens within."""
        return math.gcd(self.period, self.delay) if self.delay else self.period


def schedule(period: float, delay: float, dt: float, every: int) -> Schedule:
    """Both in whole steps, and such that records and control instants fall together."""
    found = Schedule(_steps("control_period", positive("control_period", period), dt), _steps("delay", delay, dt))
    piece = found.piece
    if every % piece and piece % every:
        raise ArgumentError(
            f"every is {every} steps and the controller acts every {piece} steps (of its period and delay), expected "
            f"one to divide the other: record every {piece} steps, or every one."
        )
    return found


def _steps(name: str, seconds: float, dt: float) -> int:
    try:
        exact = seconds / dt
    except OverflowError:  # an int of 400 digits
        exact = math.inf
    if not exact <= MOST_STEPS:
        raise ArgumentError(
            f"{name} {shown(seconds)} is {exact:.3g} steps of dt={dt:g}, expected at most {MOST_STEPS:,}: choose a "
            f"shorter one."
        )
    steps = round(exact)
    if abs(steps - exact) > 1e-6 * max(1.0, exact * 1e-3) or (seconds > 0.0 and not steps):
        raise ArgumentError(
            f"{name} {seconds!r} is {exact:.6g} steps of dt={dt!r}, expected a whole number of them: choose a dt that "
            f"divides it."
        )
    return steps


def policy_of(function: Callable[..., object], batch: tuple[int, ...], nv: int) -> BatchTorque:
    """The user's f(t, Q, QD), called with arrays (*batch, size) of its own, its answer checked."""

    def policy(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        given = function(t, q.reshape(*batch, -1).copy(), qd.reshape(*batch, -1).copy())
        tau = _shared(given)
        if tau.shape != (*batch, nv) or tau.dtype.kind not in "iufb":
            raise ArgumentError(
                f"policy(t, q, qd) gave {tau.dtype} of shape {tau.shape} at t = {t:g}, expected real numbers of shape "
                f"{(*batch, nv)}."
            )
        return tau.reshape(-1, nv)

    return policy


def _shared(given: object) -> np.ndarray:
    """An array of NumPy over the memory of any array library that lends it."""
    refuse_foreign("what policy(t, q, qd) gives", given, tensors=True)
    if isinstance(given, np.ndarray):
        return given
    detach = getattr(given, "detach", None)
    if detach is not None:  # a tensor that wants gradients lends nothing
        given = detach()
    try:
        lends = hasattr(given, "__dlpack__")  # as an array of NumPy does
        return np.from_dlpack(cast(np.ndarray, given)) if lends else np.asarray(given)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise ArgumentError(
            f"policy(t, q, qd) gave {shown(given)}, expected an array in the memory of NumPy ({error})."
        ) from error


def controller_policy(
    controller: Controller, robot: Robot, grid: Grid, batch: tuple[int, ...], dtype: str, backend: str
) -> BatchTorque:
    """A controller as a policy: its compiled torques in a batch of states."""
    if isinstance(controller, Function):
        function = controller.function

        def single(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
            return np.array([checked_torque(function, t, a, b) for a, b in zip(q, qd, strict=True)])

        return single
    from .controller_function import controller_function, settled

    compiled, at = controller_function(controller, robot, grid.dissipation, dtype, backend), controller.at(robot, grid)
    fixed = {name: _flat(name, value, batch, dtype) for name, value in controller.constants(robot).items()}
    names = compiled.inputs[2:]

    def policy(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        now = {name: _flat(name, value, batch, dtype) for name, value in at(t).items()}
        return settled(compiled, compiled(q, qd, *(now[name] if name in now else fixed[name] for name in names)))

    return policy


def _flat(name: str, value: ArrayLike, batch: tuple[int, ...], dtype: str) -> np.ndarray:
    array = np.asarray(value, dtype)
    if array.ndim == 1:
        return array
    try:
        full = np.broadcast_to(array, (*batch, array.shape[-1]))
    except ValueError:
        raise ArgumentError(
            f"{name} is given for a batch {array.shape[:-1]}, expected one that the rollouts' {batch} can hold: give "
            f"q0 that batch."
        ) from None
    return np.ascontiguousarray(full.reshape(-1, array.shape[-1]))


class SensorsAndMotors:
    """A policy behind its sensors and motors: states (n, size) in, torques (n, nv) out."""

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
        self._before: np.ndarray | None = None
        self._tau: np.ndarray | None = None
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
        if self._rise is not None and self._tau is not None:
            tau = np.clip(tau, self._tau - self._rise, self._tau + self._rise)
        self._tau = tau
        return tau

    def _measured(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sampling = self.sampling
        seen = self._noisy(q, self._q_noise)
        if self._resolved.any():
            seen = np.array(seen)
            seen[:, self._resolved] = np.round(seen[:, self._resolved] / self._resolution) * self._resolution
        if sampling.rates == "difference":
            before, self._before = self._before, np.array(seen)
            rates = qd if before is None else self._robot.difference(before, seen) / self.period
        else:
            rates = qd
        return seen.astype(q.dtype, copy=False), self._noisy(rates, self._qd_noise).astype(qd.dtype, copy=False)

    def _noisy(self, x: np.ndarray, deviation: np.ndarray) -> np.ndarray:
        return x + self._noise.standard_normal(x.shape) * deviation if deviation.any() else x


def _each(name: str, value: ArrayLike, size: int) -> np.ndarray:
    """One number, or one for each of so many coordinates or rates."""
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
            f"Sampling: {name} is {shown(value)}, expected one number of at least 0, or (..., {nv}): one for each rate."
        )
    return array if array.ndim < 2 else _flat(name, array, batch, "float64")


def roll_sampled(
    kernel: Kernel, recording: Recording, feeds: Sequence[Feed], held: np.ndarray, controller: SensorsAndMotors,
    plan: Schedule, grid: Grid, threads: int, watch: Callable[[float], None],
) -> None:  # fmt: skip
    """Fill the recording from its first state on, with torques that hold from one arrival to the next.

    held: the torque among the feeds, (1, n, nv), which is written anew at every arrival.
    """
    every, piece = recording.every, plan.piece
    q, qd = recording.states
    inner = None if piece % every == 0 else _inner(recording, piece)
    underway: deque[tuple[int, np.ndarray]] = deque()  # torques, and the step at which each arrives
    for step in range(0, grid.steps, piece):
        record = step // every
        states = (q[record], qd[record]) if inner is None else (inner.states[0][0], inner.states[1][0])
        if step % plan.period == 0:
            tau = controller(step * grid.dt, *states)
            underway.append((step + plan.delay if step else 0, tau))
        while underway and underway[0][0] <= step:
            held[0] = underway.popleft()[1]
        if inner is None:
            run(kernel, recording, feeds, record, min(record + piece // every, len(q) - 1), threads)
        else:
            run(kernel, inner, _from(feeds, step), 0, 1, threads)
            if step % every == 0:
                for kept, found in zip(recording.results, inner.results, strict=True):
                    kept[record] = found[0]
            for state in inner.states:
                state[0] = state[1]
            if (step + piece) % every == 0:
                for kept, found in zip(recording.states, inner.states, strict=True):
                    kept[record + 1] = found[0]
        watch(min(1.0, (step + piece) / grid.steps))
    outputs = [np.empty_like(q[-1]), np.empty_like(qd[-1]), *(x[-1] for x in recording.results)]
    ends = [feed.values[min(feed.first + feed.advance * grid.steps, len(feed.values) - 1)] for feed in feeds]
    kernel([q[-1], qd[-1], *ends], outputs)  # accelerations at the end


def _from(feeds: Sequence[Feed], step: int) -> list[Feed]:
    """The feeds as a run sees them that begins at this step."""
    return [Feed(feed.values, feed.first + feed.advance * step, feed.advance) for feed in feeds]


def _inner(recording: Recording, piece: int) -> Recording:
    """Two records that the pieces between two kept ones go through."""
    states = [np.empty((2, *x.shape[1:]), x.dtype) for x in recording.states]
    for state, kept in zip(states, recording.states, strict=True):
        state[0] = kept[0]
    return Recording(states, [np.empty_like(states[1]) for _ in range(2)], piece)


@dataclass(frozen=True)
class Motor:
    """One electric motor at each joint; every number is one for all, or one for each rate (nv,).

    gear: turns of the motor for one of the joint. torque_constant: N m/A at the motor, which is also its V s/rad.
    rotor_inertia: kg m^2 at the motor, gear^2 of it at the joint (`driven`). current: the largest, A. voltage (V) and
    resistance (ohm): the faster the motor turns, the less voltage is left to drive a current.
    """

    gear: ArrayLike = 1.0
    torque_constant: ArrayLike = 1.0
    rotor_inertia: ArrayLike = 0.0
    current: ArrayLike = math.inf
    voltage: ArrayLike | None = None
    resistance: ArrayLike | None = None

    def __post_init__(self) -> None:
        if (self.voltage is None) != (self.resistance is None):
            raise ArgumentError("Motor: voltage and resistance go together, got one of them: give both, or none.")
        for name in ("gear", "torque_constant", "rotor_inertia", "current", "voltage", "resistance"):
            value = getattr(self, name)
            if value is None or (name == "current" and _is_unlimited(value)):
                continue
            array = real_array(f"Motor: {name}", value)
            if (array < 0.0).any() or (name != "rotor_inertia" and (array == 0.0).any()):
                raise ArgumentError(f"Motor: {name} is {shown(value)}, expected numbers above 0.")

    @property
    def torque_per_current(self) -> np.ndarray:
        """N m at the joint for 1 A."""
        return np.asarray(self.gear, float) * np.asarray(self.torque_constant, float)

    def currents(self, tau: ArrayLike) -> np.ndarray:
        """A, for torques (..., nv) at the joints."""
        return np.asarray(tau, float) / self.torque_per_current

    def limited(self, tau: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """The torques that current and voltage leave of those wanted, at joint rates qd."""
        k = self.torque_per_current
        most = k * np.asarray(self.current, float)
        low, high = -most, most
        if self.voltage is not None:
            R, V = np.asarray(self.resistance, float), np.asarray(self.voltage, float)
            induced = k * qd  # the gear and the constant again: V = k qd + R i
            low, high = np.maximum(low, k * (-V - induced) / R), np.minimum(high, k * (V - induced) / R)
        return np.minimum(np.maximum(tau, np.minimum(low, high)), np.maximum(low, high))

    def driven(self, robot: Robot) -> Robot:
        """The robot with the rotors' inertia at its joints, in addition to the armature that is described."""
        added = np.broadcast_to(np.asarray(self.gear, float) ** 2 * np.asarray(self.rotor_inertia, float), (robot.nv,))
        links = []
        for described, link in zip(robot.model.links, robot.canonical.links, strict=True):
            armature = float(described.joint.armature) + (float(added[link.start]) if link.leads else 0.0)
            links.append(replace(described, joint=replace(described.joint, armature=armature)))
        return type(robot)(replace(robot.model, links=tuple(links)))


def _is_unlimited(current: ArrayLike) -> bool:
    array = as_array(current)
    return array.dtype.kind == "f" and bool(np.all(np.isposinf(array)))
