"""Warnings about a simulation: ended early, diverged, in a singular configuration, or chattering.

If a run diverged, the warning names the joint, the time, and a stable step or stable gains. These come from the
linearised closed loop at a few records before the divergence: x' = A x with x = (dq, dqd), by finite differences of the
torques and of forward dynamics, and one step of the integrator as a matrix of A and dt. A loop is too stiff for its
step if the matrix of the step has an eigenvalue outside the unit circle, but the continuous loop is stable.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import LinksweepError, warn_user
from ..robot.robot import Robot
from .controllers import Function, controller_function
from .dynamics import checked_torque, stacked
from .result import Simulation, SimulationWarning, limited_joints

if TYPE_CHECKING:
    from .controllers import Controller, Grid
    from .friction import Rest

CHATTER = 20  # consecutive records; a joint that reverses its motion stays near rest for fewer
RUNAWAY = 1.0  # rad or m in one step: too far for the integrator
ABSURD = 1e3  # rad or m in one step: a run that ends this fast has diverged
DIVISORS = tuple(n * 10.0**k for k in range(6) for n in (2.0, 5.0, 10.0))  # of steps and gains that are tried
MARGIN = 2.0  # steps and gains are reported as stable if they are with twice the step
NAMED = 3  # largest number of joints whose gains are listed

_silent = contextvars.ContextVar("silent", default=False)


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Suppress the warnings of simulations in this thread; the viewer reports problems itself."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


@dataclass(frozen=True)
class Driven:
    """The forces of a run: controller (None for a policy, which is not called again), disturbance, friction, stops."""

    controller: Controller | None
    grid: Grid
    disturbance: Controller | None = None
    rest: Rest | None = None


def warn_of(result: Simulation, driven: Driven) -> None:
    """Warn about each kind of problem of a run."""
    if _silent.get():
        return
    q = result.q
    if result.ended_early:
        _warn(f"the simulation of {result.robot.name} ended early: {result.ended_early}. It is NaN from there on.")
    elif (bad := diverged(result)).any():
        _warn(divergence(result, driven))
        q = _before_divergence(result, bad)
    if result.settings.get("dissipation"):
        _warn_of_chatter(result)
    result.robot.warn_if_singular("simulate", q, lambda index: _when(result, *index))


# ---- divergence


def diverged(result: Simulation) -> np.ndarray:
    """Return which rollouts (...) are not finite or end at an absurd speed."""
    with np.errstate(invalid="ignore"):
        slow = (np.abs(result.qd[-1]) * result.settings["dt"] < ABSURD).all(axis=-1)
    return np.asarray(~(result.finite & slow))


def divergence(result: Simulation, driven: Driven) -> str:
    """Describe a run that diverged: the joint, the time, and a stable step or gains."""
    robot, bad = result.robot, diverged(result)
    records = len(result.t)
    onsets = _onsets(result).reshape(-1)
    rollout = int(np.where(bad.reshape(-1), onsets, records).argmin())
    onset, index = int(onsets[rollout]), result.rollout_index(rollout)
    q, qd, qdd, tau = (x[(slice(None), *index)] for x in (result.q, result.qd, result.qdd, result.tau))
    infinite = np.asarray(~(np.isfinite(q).all(axis=-1) & np.isfinite(qd).all(axis=-1)))
    first = int(infinite.argmax()) if infinite.any() else records
    last = max(first - 1, 0)
    before = slice(0, max(min(onset, first), 1))
    states = q[before].astype(float), qd[before].astype(float)
    loop = None
    if result.settings["integrator"] != "adaptive":
        period = result.settings.get("control_period")
        loop = _stiffest(robot, period, driven, result.t[before], *states, (result.batch, index))
    names, at = rate_names(robot), min(onset, last)
    if loop is not None:
        worst = loop.joint
    else:
        undefined = ~np.isfinite(qdd[at])
        worst = int(undefined.argmax() if undefined.any() else np.abs(qd[at]).argmax())
    which = f"{int(bad.sum())} of {bad.size} rollouts" if result.batch else "the simulation"
    text = f"{which} of {robot.name} diverged: joint {names[worst]}{_of_rollout(index)} runs away from "
    text += f"t = {result.t[at]:g} s on"
    if first < records:
        text += f", NaN from t = {result.t[first]:g} s on"
    if loop is not None:
        return f"{text}. {loop.remedy(names)}"
    return f"{text}{_other_cause(robot, result, worst, *states, tau[before].astype(float), driven)}"


def _onsets(result: Simulation) -> np.ndarray:
    """Return the first record of each rollout (...) that is not finite, or at which a joint moves too far in a step."""
    with np.errstate(invalid="ignore"):
        good = (np.abs(result.qd) * result.settings["dt"] < RUNAWAY).all(axis=-1) & np.isfinite(result.q).all(axis=-1)
    return np.where(good.all(axis=0), len(result.t), (~good).argmax(axis=0))


def _before_divergence(result: Simulation, bad: np.ndarray) -> np.ndarray:
    """Return q with NaN after a rollout has diverged, so that no singular configurations are reported there."""
    q = result.q.copy()
    onsets = _onsets(result)
    late = np.arange(len(result.t)).reshape(-1, *(1,) * onsets.ndim) > onsets
    q[late & bad] = np.nan
    return q


def _other_cause(
    robot: Robot, result: Simulation, joint: int, q: np.ndarray, qd: np.ndarray, tau: np.ndarray, driven: Driven
) -> str:
    """Return the end of the message if no stiff feedback was found."""
    dt = result.settings["dt"]
    if result.settings["integrator"] == "adaptive":
        return ": reduce the gains or the torques."
    if driven.controller is None:
        return f": reduce the gains of the policy, control_period, or dt (for example to {dt / 10.0:g} s)."
    beyond = "" if driven.rest is not None and driven.rest.stops else _beyond_limits(robot, joint, q[-1])
    contact = ", or the stiffness of the contact" if driven.disturbance is not None else ", or the torques"
    text = f": reduce dt (for example to {dt / 10.0:g} s){contact}"
    if len(q) > 1 and driven.disturbance is None and robot.has_inertia:
        energy = robot.kinetic_energy(q, qd) + robot.potential_energy(q)
        work = float(np.trapezoid(np.sum(tau * qd, axis=-1), result.t[: len(q)]))
        gain = float(energy[-1] - energy[0])
        if gain > 0.0 and gain > 2.0 * abs(work):
            other = ", or choose integrator='rk4'" if result.settings["integrator"] != "rk4" else ""
            text = (
                f". The energy grew by {gain:.3g} J, of which the torques account for {work:.3g} J: the steps are too "
                f"long, reduce dt (for example to {dt / 10.0:g} s){other}"
            )
        elif gain > 0.0 and work > 0.5 * gain:
            text = f". The torques did {work:.3g} J of work before, so dt is not the cause: reduce or reverse them"
    return f"{text}{beyond}."


def _beyond_limits(robot: Robot, joint: int, q: np.ndarray) -> str:
    """Return advice for a joint that runs away beyond its limits."""
    indices = [i for link in robot.canonical.links for i, j in link.pairs if j == joint]
    for name, i, (lower, upper) in limited_joints(robot):
        if i in indices and not lower <= q[i] <= upper:
            return (
                f"; {name} is beyond its limits ({lower:g} to {upper:g}), where disturbance=JointStops() would stop it"
            )
    return ""


@dataclass(frozen=True)
class _Loop:
    """A closed loop that is too stiff for its step: the joint that oscillates most, and stable values."""

    subject: str  # of the message: "The feedback is"
    joint: int
    step: tuple[str, float]  # "dt" or "control_period", and its value (s)
    dt: float
    stable_step: float | None
    stable_gains: dict[int, dict[str, float]]  # by joint, the most reduced first
    factor: float | None  # with which all gains are stable

    def remedy(self, names: Sequence[str]) -> str:
        name, step = self.step
        remedies = []
        if self.stable_step is not None:
            both = " and a dt no longer than that" if name != "dt" and self.stable_step < self.dt else ""
            remedies.append(f"with {name} = {self.stable_step:g} s{both}")
        if 0 < len(self.stable_gains) <= NAMED:
            listed = (
                f"{', '.join(f'{gain} = {value:.3g}' for gain, value in gains.items())} at {names[joint]}"
                for joint, gains in self.stable_gains.items()
            )
            remedies.append(f"with {'; '.join(listed)}")
        elif self.factor is not None:
            remedies.append(f"with all gains multiplied by {self.factor:g}")
        stable = f"it is stable {', or '.join(remedies)}" if remedies else f"no {name} or gain that was tried is stable"
        return f"{self.subject} too stiff for {name} = {step:g} s: {stable}."


def _stiffest(
    robot: Robot, period: float | None, driven: Driven, t: np.ndarray, q: np.ndarray, qd: np.ndarray,
    rollout: tuple[tuple[int, ...], tuple[int, ...]],
) -> _Loop | None:  # fmt: skip
    """Return the least stable closed loop of a few records before the divergence; None if all are stable."""
    if driven.controller is None:
        return None
    candidates = [(k, q[k], qd[k], "The feedback is") for k in {0, len(t) // 2, *range(max(len(t) - 3, 0), len(t))}]
    if driven.rest is not None and driven.rest.spring is not None:
        candidates.append((len(t) - 1, _in_stops(driven.rest, q[-1]), 0.0 * qd[-1], "The stops are"))
    worst: tuple[float, _Linear, str] | None = None
    with np.errstate(all="ignore"):
        for k, position, velocity, subject in candidates:
            try:
                linear = _Linear(robot, driven, period, float(t[k]), position, velocity, rollout)
                excess = linear.excess(linear.step)
            except (LinksweepError, np.linalg.LinAlgError, ArithmeticError, ValueError, TypeError):
                continue
            if excess > 0.0 and (worst is None or excess > worst[0]):
                worst = excess, linear, subject
        return None if worst is None else worst[1].loop(worst[2])


def _in_stops(rest: Rest, q: np.ndarray) -> np.ndarray:
    """Return q with every joint slightly beyond its nearest stop."""
    q = q.copy()
    for i, _, lower, upper in rest.stops:
        q[i] = lower - 1e-3 if q[i] - lower < upper - q[i] else upper + 1e-3
    return q


class _Linear:
    """The robot and its feedback, linearised about one state."""

    def __init__(
        self, robot: Robot, driven: Driven, period: float | None, t: float, q: np.ndarray, qd: np.ndarray,
        rollout: tuple[tuple[int, ...], tuple[int, ...]],
    ):  # fmt: skip
        self.robot, self.driven, self.t, self.rollout = robot, driven, t, rollout
        self.dt, self.period = driven.grid.dt, period
        self.step = self.dt if period is None else period
        n = self.n = robot.nv
        small = 1e-6 * np.eye(n)
        moved = np.concatenate([small, -small, np.zeros((2 * n, n))])
        self.q = robot.integrate(np.broadcast_to(q, (4 * n, robot.nq)), moved)  # (4 n, nq): +dq, -dq, +dqd, -dqd
        scale = np.maximum(1.0, np.abs(qd))
        self.small = np.concatenate([np.full(n, 1e-6), 1e-6 * scale])
        self.qd = qd + np.concatenate([np.zeros((2 * n, n)), small * scale[:, None], -small * scale[:, None]])
        forward = robot.compile("forward_dynamics", dissipation=driven.grid.dissipation, backend="interpreter")
        self.constants: dict[str, np.ndarray] = {}
        if driven.controller is not None:
            self.constants = {name: self._of_rollout(x) for name, x in driven.controller.constants(robot).items()}
        tau = self._torques({}, q[None], qd[None])[0]
        at = np.broadcast_to(q, (n + 1, robot.nq)), np.broadcast_to(qd, (n + 1, n))
        by_torque = forward(*at, tau + np.concatenate([np.zeros((1, n)), np.eye(n)]))
        self.B = (by_torque[1:] - by_torque[0]).T  # d qdd / d tau
        self.plant = self._derivatives(forward(self.q, self.qd, self._disturbed(tau[None], self.q, self.qd)))
        if not (np.isfinite(self.B).all() and np.isfinite(self.plant).all()):
            raise ArithmeticError

    def _derivatives(self, values: np.ndarray) -> np.ndarray:
        """Return derivatives (nv, 2 nv) with respect to q and qd, from values (4 nv, nv) in the varied states."""
        n = self.n
        return np.concatenate([values[:n] - values[n : 2 * n], values[2 * n : 3 * n] - values[3 * n :]]).T / (
            2.0 * self.small
        )

    def _of_rollout(self, values: np.ndarray) -> np.ndarray:
        """Return a signal or constant of this rollout."""
        batch, index = self.rollout
        return np.broadcast_to(np.asarray(values, float), (*batch, np.shape(values)[-1]))[index]

    def _torques(self, scaled: dict[str, np.ndarray], q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the torques of the controller in these states, with some constants replaced by scaled ones."""
        controller = self.driven.controller
        if controller is None:
            return np.zeros_like(qd)
        if isinstance(controller, Function):
            states = zip(q, qd, strict=True)
            return np.array([checked_torque(controller.function, self.t, *state) for state in states], float)
        return np.broadcast_to(self._compiled(controller, scaled, q, qd), qd.shape)

    def _compiled(
        self, controller: Controller, scaled: dict[str, np.ndarray], q: np.ndarray, qd: np.ndarray
    ) -> np.ndarray:
        grid = self.driven.grid
        function = controller_function(controller, self.robot, grid.dissipation, backend="interpreter")
        inputs = {**controller.at(self.robot, grid)(self.t), **controller.constants(self.robot)}
        inputs = {name: self._of_rollout(x) for name, x in inputs.items()} | scaled
        return function(q, qd, *(inputs[name] for name in function.inputs[2:]))

    def _disturbed(self, tau: np.ndarray, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the torques with those of disturbances and of springs at the stops."""
        tau = np.broadcast_to(tau, qd.shape)
        if self.driven.disturbance is not None:
            tau = tau + self._compiled(self.driven.disturbance, {}, q, qd)
        if self.driven.rest is not None and self.driven.rest.spring is not None:
            columns = self.driven.rest.spring_torque([*q.T], [*qd.T])
            tau = tau + stacked([*columns, np.zeros(len(q))])[:, :-1]
        return tau

    def feedback(self, scale: np.ndarray | None = None) -> np.ndarray:
        """Return d tau / d (q, qd) of the controller with scaled gains."""
        scaled = {} if scale is None else {name: self.constants[name] * scale for name in self.gains()}
        return self._derivatives(self._torques(scaled, self.q, self.qd))

    def gains(self) -> list[str]:
        """Return the names of constants that are joint gains: kp and kd, for a sum kp_0, kd_0 ..."""
        return [
            name for name, x in self.constants.items() if name.split("_")[0] in ("kp", "kd") and x.shape == (self.n,)
        ]

    def matrix(self, step: float, feedback: np.ndarray) -> np.ndarray:
        """Return the matrix of small deviations (dq, dqd) over one step or one control period."""
        n, B = self.n, self.B
        if self.period is None:
            return self._advance(self.plant + B @ feedback, np.zeros((n, 0)), step)
        held = self._advance(self.plant, B, min(self.dt, step))
        held = np.linalg.matrix_power(held, max(1, round(step / min(self.dt, step))))
        return held[: 2 * n, : 2 * n] + held[: 2 * n, 2 * n :] @ feedback

    def _advance(self, a: np.ndarray, held: np.ndarray, dt: float) -> np.ndarray:
        """Return one step of the integrator for qdd = a (dq, dqd) + held u, as a matrix of (dq, dqd, u)."""
        n, m = self.n, held.shape[1]
        size = 2 * n + m
        rate = np.zeros((size, size))
        rate[:n, n : 2 * n] = np.eye(n)
        rate[n : 2 * n] = np.concatenate([a, held], axis=1)
        if self.driven.grid.stages > 1:  # the classical Runge-Kutta method
            z = rate * dt
            one = np.eye(size)
            return one + z @ (one + z @ (one / 2.0 + z @ (one / 6.0 + z / 24.0)))
        velocity = np.eye(size)
        velocity[n : 2 * n] += dt * rate[n : 2 * n]
        position = np.eye(size)
        position[:n, n : 2 * n] = dt * np.eye(n)
        return position @ velocity

    def excess(self, step: float, scale: np.ndarray | None = None) -> float:
        """Return how much faster (1/s) deviations grow in steps than in continuous time; above 0 it is unstable."""
        feedback = self.feedback(scale)
        rate = np.concatenate([np.eye(2 * self.n)[self.n :], self.plant + self.B @ feedback])
        continuous = max(float(np.linalg.eigvals(rate).real.max()), 0.0)
        growth = float(np.abs(np.linalg.eigvals(self.matrix(step, feedback))).max())
        return float(np.log(growth)) / step - (2.0 * continuous + 1.0)

    def oscillating(self, step: float, scale: np.ndarray | None = None) -> int:
        """Return the joint with most of the energy of the fastest growing deviation."""
        values, vectors = np.linalg.eig(self.matrix(step, self.feedback(scale)))
        fastest = np.abs(vectors[self.n :, np.abs(values).argmax()])
        return int((fastest**2 / np.maximum(np.diag(self.B), 1e-300)).argmax())

    def loop(self, subject: str) -> _Loop:
        step, names = self.step, self.gains()
        stable_step = next((step / n for n in DIVISORS if self.excess(MARGIN * step / n) <= 0.0), None)
        factor, gains = None, dict[int, dict[str, float]]()
        if names:
            ones = np.ones(self.n)
            factor = next((1.0 / n for n in DIVISORS if self.excess(MARGIN * step, ones / n) <= 0.0), None)
            if factor is not None and {*names} <= {"kp", "kd"}:  # not of a sum of controllers
                scale = self._lowered_gains()
                gains = {
                    int(joint): {name: float(self.constants[name][joint] * scale[joint]) for name in names}
                    for joint in np.argsort(scale)
                    if scale[joint] < 1.0
                }
        name = "dt" if self.period is None else "control_period"
        return _Loop(subject, self.oscillating(step), (name, step), self.dt, stable_step, gains, factor)

    def _lowered_gains(self) -> np.ndarray:
        """Return factors of the gains (nv,), halved at the joints that oscillate most until the loop is stable."""
        scale = np.ones(self.n)
        for _ in range(20 * self.n):
            if (scale < 1.0).sum() > NAMED or self.excess(MARGIN * self.step, scale) <= 0.0:
                break
            scale[self.oscillating(MARGIN * self.step, scale)] *= 0.5
        return scale


def rate_names(robot: Robot) -> list[str]:
    """Return the name of the joint of each velocity."""
    names = [""] * robot.nv
    for name, link in zip(robot.joint_names, robot.canonical.joints, strict=True):
        names[link.rates] = [name] * link.nv
    return names


# ---- friction


def _warn_of_chatter(result: Simulation) -> None:
    """Warn about joints that Coulomb friction does not hold at rest: they oscillate and creep.

    For CHATTER consecutive records, the acceleration of such a joint would reverse its velocity within two steps.
    """
    links = zip(result.robot.canonical.links, result.robot.model.links, strict=True)
    rough = {
        link.start + k: described.joint.name for link, described in links for k in range(link.nv) if link.friction > 0.0
    }
    if not rough or len(result.t) <= CHATTER:
        return
    columns = sorted(rough)
    qd, qdd = (x[..., columns].reshape(len(result.t), -1, len(columns)) for x in (result.qd, result.qdd))
    with np.errstate(invalid="ignore"):
        size = np.abs(qdd)
        near = (np.abs(qd) <= 2.0 * result.settings["dt"] * size) & (size > 1e-6 * np.fmax.reduce(size, axis=0))
    total = np.concatenate([np.zeros_like(near[:1], int), np.cumsum(near, axis=0)])
    chatters = total[CHATTER:] - total[:-CHATTER] == CHATTER  # this record and the following ones
    if not chatters.any():
        return
    record, rollout, column = (int(i) for i in np.argwhere(chatters)[0])
    when = _when(result, record, *result.rollout_index(rollout)).removeprefix("at ")
    _warn(
        f"joint {rough[columns[column]]} of {result.robot.name} chatters about rest from {when} on: Coulomb friction "
        f"does not hold joints of this robot (docs/simulation.md, Friction at rest)."
    )


def _when(result: Simulation, record: int, *rollout: int) -> str:
    return f"at t = {result.t[record]:g} s{_of_rollout(rollout)}"


def _of_rollout(index: tuple[int, ...]) -> str:
    return f" of rollout {index[0] if len(index) == 1 else tuple(map(int, index))}" if index else ""


def _warn(message: str) -> None:
    warn_user(message, SimulationWarning)
