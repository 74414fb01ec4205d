"""Warnings about a simulation: ended early, diverged, in a singular configuration, or chattering.

Where a run diverged, the warning names the joint, the time, and a step or gains that are stable. These come from the
linearised closed loop: at a few records before the divergence, x' = A x with x = (dq, dqd) by finite differences of the
torques and of forward dynamics, and one step of the integrator as a matrix of A and dt. A loop whose own eigenvalues
are fine and whose step has one outside the unit circle is too stiff for the step.
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

CHATTER = 20  # records in a row: so long a joint that is only turning round does not stay near rest
RUNAWAY = 1.0  # rad or m in one step: the integrator no longer follows a joint that moves so far
ABSURD = 1e3  # rad or m in one step: no robot ends a run so fast
SHORTER = tuple(n * 10.0**k for k in range(6) for n in (2.0, 5.0, 10.0))  # steps that are tried: dt over these
MARGIN = 2.0  # a step or a gain is called stable if twice that step is: the linearisation holds at a few poses only
NAMED = 3  # joints whose gains a message lists

_silent = contextvars.ContextVar("silent", default=False)


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """Simulations of this thread do not warn; the viewer looks at their results itself."""
    token = _silent.set(True)
    try:
        yield
    finally:
        _silent.reset(token)


@dataclass(frozen=True)
class Driven:
    """What acts on the joints in a run: the law (None: a policy, which is not called again), the world, the stops."""

    law: Controller | None
    grid: Grid
    world: Controller | None = None
    rest: Rest | None = None


def warn_of(result: Simulation, driven: Driven) -> None:
    """One warning of each kind that there is."""
    if _silent.get():
        return
    q = result.q
    if result.ended_early:
        _say(f"the simulation of {result.robot.name} ended early: {result.ended_early}, and is NaN from there on.")
    elif (bad := diverged(result)).any():
        _say(divergence(result, driven))
        q = _before_divergence(result, bad)
    if result.settings.get("dissipation"):
        _warn_of_chatter(result)
    result.robot.warn_if_singular("simulate", q, lambda index: _moment(result, *index))


# ---- divergence: which joint, when, and what would be stable ---------------------------------------------------------


def diverged(result: Simulation) -> np.ndarray:
    """The rollouts (...) that are not finite, or that end at an absurd speed."""
    with np.errstate(invalid="ignore"):
        fine = (np.abs(result.qd[-1]) * result.settings["dt"] < ABSURD).all(axis=-1)
    return np.asarray(~(result.finite & fine))


def divergence(result: Simulation, driven: Driven) -> str:
    """A sentence or two about a run that diverged: the joint, the time, and a stable step or gains."""
    robot, bad = result.robot, diverged(result)
    records = len(result.t)
    q, qd, qdd, tau = (x.reshape(records, -1, x.shape[-1]) for x in (result.q, result.qd, result.qdd, result.tau))
    gone = np.asarray(~(np.isfinite(q).all(axis=-1) & np.isfinite(qd).all(axis=-1)))
    onsets = _onsets(result).reshape(-1)
    rollout = int(np.where(bad.reshape(-1), onsets, records).argmin())
    onset = int(onsets[rollout])
    first = int(gone[:, rollout].argmax()) if gone[:, rollout].any() else records
    last = max(first - 1, 0)
    index = tuple(int(i) for i in np.unravel_index(rollout, result.batch)) if result.batch else ()
    before = slice(0, max(min(onset, first), 1))
    states = q[before, rollout].astype(float), qd[before, rollout].astype(float)
    loop = None
    if result.settings["integrator"] != "adaptive":
        period = result.settings.get("control_period")
        loop = _stiffest(robot, period, driven, result.t[before], *states, (result.batch, index))
    names = rate_names(robot)
    if loop is not None:
        worst = loop.joint
    else:
        at = min(onset, last)
        undefined = ~np.isfinite(qdd[at, rollout])
        worst = int(undefined.argmax() if undefined.any() else np.abs(qd[at, rollout]).argmax())
    which = f"{int(bad.sum())} of {bad.size} rollouts" if result.batch else "the simulation"
    of = f" of rollout {index[0] if len(index) == 1 else index}" if index else ""
    text = f"{which} of {robot.name} diverged: joint {names[worst]}{of}"
    text += f" runs away from t = {result.t[min(onset, last)]:g} s on"
    if first < records:
        text += f", NaN from t = {result.t[first]:g} s on"
    if loop is not None:
        return f"{text}. {loop.remedy(names)}"
    return f"{text}{_other_cause(robot, result, worst, *states, tau[before, rollout].astype(float), driven)}"


def _onsets(result: Simulation) -> np.ndarray:
    """Of each rollout: the first record that is not finite, or at which a joint moves too far in one step."""
    with np.errstate(invalid="ignore"):
        fine = (np.abs(result.qd) * result.settings["dt"] < RUNAWAY).all(axis=-1) & np.isfinite(result.q).all(axis=-1)
    return np.where(fine.all(axis=0), len(result.t), (~fine).argmax(axis=0))


def _before_divergence(result: Simulation, bad: np.ndarray) -> np.ndarray:
    """q with NaN from where a rollout diverges: poses that come after are not the robot's, singular or not."""
    q = result.q.copy()
    onsets = _onsets(result)
    late = np.arange(len(result.t)).reshape(-1, *(1,) * onsets.ndim) > onsets
    q[late & bad] = np.nan
    return q


def _other_cause(
    robot: Robot, result: Simulation, joint: int, q: np.ndarray, qd: np.ndarray, tau: np.ndarray, driven: Driven
) -> str:
    """The end of the sentence where no stiff feedback was found."""
    dt = result.settings["dt"]
    if result.settings["integrator"] == "adaptive":
        return ": reduce the gains or the torques."
    if driven.law is None:
        return f": reduce the gains of the policy, control_period, or dt (to {dt / 10.0:g} s, say)."
    beyond = "" if driven.rest is not None and driven.rest.stops else _beyond_limits(robot, joint, q[-1])
    contact = ", or the stiffness of the contact" if driven.world is not None else ", or the torques"
    text = f": reduce dt (to {dt / 10.0:g} s, say){contact}"
    if len(q) > 1 and driven.world is None and robot.has_inertia:
        energy = robot.kinetic_energy(q, qd) + robot.potential_energy(q)
        work = float(np.trapezoid(np.sum(tau * qd, axis=-1), result.t[: len(q)]))
        gain = float(energy[-1] - energy[0])
        if gain > 0.0 and gain > 2.0 * abs(work):
            other = ", or choose integrator='rk4'" if result.settings["integrator"] != "rk4" else ""
            text = (
                f". The energy grew by {gain:.3g} J, of which the torques account for {work:.3g} J: the steps are too "
                f"long, reduce dt (to {dt / 10.0:g} s, say){other}"
            )
        elif gain > 0.0 and work > 0.5 * gain:
            text = f". The torques did {work:.3g} J of work by then and drive it away at any dt: reduce or reverse them"
    return f"{text}{beyond}."


def _beyond_limits(robot: Robot, joint: int, q: np.ndarray) -> str:
    """Advice where a joint runs away beyond its limits."""
    for link in robot.canonical.links:
        for place, rate in link.pairs:
            if rate == joint:
                name = rate_names(robot)[joint]
                for limited, at, (lower, upper) in limited_joints(robot):
                    if limited == name and at == place and not lower <= q[place] <= upper:
                        return (
                            f"; {name} is beyond its limits ({lower:g} to {upper:g}), where "
                            f"disturbance=JointStops() would hold it"
                        )
    return ""


@dataclass(frozen=True)
class _Loop:
    """A closed loop that is too stiff for its step: the joint that it shakes most, and what would be stable."""

    what: str  # the beginning of a sentence
    joint: int
    step: tuple[str, float]  # "dt" or "control_period", s
    dt: float
    shorter: float | None  # a step that is stable
    gains: dict[int, dict[str, float]]  # by joint: stable gains, the lowest first
    share: float | None  # of all gains: a stable one

    def remedy(self, names: Sequence[str]) -> str:
        name, step = self.step
        ways = []
        if self.shorter is not None:
            both = " and a dt no longer than that" if name != "dt" and self.shorter < self.dt else ""
            ways.append(f"with {name} = {self.shorter:g} s{both}")
        if 0 < len(self.gains) <= NAMED:
            listed = (
                f"{', '.join(f'{gain} = {value:.3g}' for gain, value in own.items())} at {names[joint]}"
                for joint, own in self.gains.items()
            )
            ways.append(f"with {'; '.join(listed)}")
        elif self.share is not None:
            ways.append(f"with all gains multiplied by {self.share:g}")
        stable = f"it is stable {', or '.join(ways)}" if ways else f"no {name} or gain that was tried is stable"
        return f"{self.what} too stiff for {name} = {step:g} s: {stable}."


def _stiffest(
    robot: Robot, period: float | None, driven: Driven, t: np.ndarray, q: np.ndarray, qd: np.ndarray,
    rollout: tuple[tuple[int, ...], tuple[int, ...]],
) -> _Loop | None:  # fmt: skip
    """The closed loop at the record, of a few before the divergence, where its step is least stable; None if it is."""
    if driven.law is None:
        return None
    candidates = [(k, q[k], qd[k], "The feedback is") for k in {0, len(t) // 2, *range(max(len(t) - 3, 0), len(t))}]
    if driven.rest is not None and driven.rest.spring is not None:
        candidates.append((len(t) - 1, _in_stops(driven.rest, q[-1]), 0.0 * qd[-1], "The stops are"))
    worst: tuple[float, _Linear, str] | None = None
    with np.errstate(all="ignore"):
        for k, at, rates, what in candidates:
            try:
                linear = _Linear(robot, driven, period, float(t[k]), at, rates, rollout)
                excess = linear.excess(linear.step)
            except (LinksweepError, np.linalg.LinAlgError, ArithmeticError, ValueError, TypeError):
                continue
            if excess > 0.0 and (worst is None or excess > worst[0]):
                worst = excess, linear, what
        return None if worst is None else worst[1].loop(worst[2])


def _in_stops(rest: Rest, q: np.ndarray) -> np.ndarray:
    """The same pose with every joint a little beyond its nearest stop."""
    q = q.copy()
    for place, _, lower, upper in rest.stops:
        bound, outward = (lower, -1.0) if q[place] - lower < upper - q[place] else (upper, 1.0)
        q[place] = bound + outward * 1e-3
    return q


class _Linear:
    """The robot and its feedback, linearised in one state."""

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
        self.q = robot.integrate(np.broadcast_to(q, (4 * n, robot.nq)), moved)
        scale = np.maximum(1.0, np.abs(qd))
        self.small = np.concatenate([np.full(n, 1e-6), 1e-6 * scale])
        self.qd = qd + np.concatenate([np.zeros((2 * n, n)), small * scale[:, None], -small * scale[:, None]])
        forward = robot.compile("forward_dynamics", dissipation=driven.grid.dissipation, backend="interpreter")
        tau = self._torques({}, q[None], qd[None])[0]
        at = np.broadcast_to(q, (n + 1, robot.nq)), np.broadcast_to(qd, (n + 1, n))
        by_torque = forward(*at, tau + np.concatenate([np.zeros((1, n)), np.eye(n)]))
        self.B = (by_torque[1:] - by_torque[0]).T  # d qdd / d tau
        self.plant = self._slopes(forward(self.q, self.qd, self._world(tau[None], self.q, self.qd)))
        if not (np.isfinite(self.B).all() and np.isfinite(self.plant).all()):
            raise ArithmeticError
        self.constants = {name: self._own(x) for name, x in driven.law.constants(robot).items()} if driven.law else {}

    def _slopes(self, values: np.ndarray) -> np.ndarray:
        """Derivatives (nv, 2 nv) with respect to q and qd, from values in the states that were moved."""
        n = self.n
        return np.concatenate([values[:n] - values[n : 2 * n], values[2 * n : 3 * n] - values[3 * n :]]).T / (
            2.0 * self.small
        )

    def _own(self, values: np.ndarray) -> np.ndarray:
        """A signal or constant of the rollout that is looked at."""
        batch, index = self.rollout
        return np.broadcast_to(np.asarray(values, float), (*batch, np.shape(values)[-1]))[index]

    def _torques(self, scaled: dict[str, np.ndarray], q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """The torques of the law in these states; scaled: constants in the place of its own."""
        law = self.driven.law
        if isinstance(law, Function):
            return np.array([checked_torque(law.function, self.t, *state) for state in zip(q, qd, strict=True)], float)
        return np.broadcast_to(self._of(law, scaled, q, qd), qd.shape)

    def _of(self, law: Controller | None, scaled: dict[str, np.ndarray], q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        if law is None:
            return np.zeros_like(qd)
        grid = self.driven.grid
        function = controller_function(law, self.robot, grid.dissipation, backend="interpreter")
        given = {**law.at(self.robot, grid)(self.t), **law.constants(self.robot)}
        return function(q, qd, *(scaled.get(name, self._own(given[name])) for name in function.inputs[2:]))

    def _world(self, tau: np.ndarray, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """The torques and what the world and springs at the stops add to them."""
        tau = np.broadcast_to(tau, qd.shape)
        if self.driven.world is not None:
            tau = tau + self._of(self.driven.world, {}, q, qd)
        if self.driven.rest is not None and self.driven.rest.spring is not None:
            columns = self.driven.rest.spring_torque([*q.T], [*qd.T])
            tau = tau + stacked([*columns, np.zeros(len(q))])[:, :-1]
        return tau

    def feedback(self, scale: np.ndarray | None = None) -> np.ndarray:
        """d tau / d (q, qd) of the law, its gains scaled."""
        scaled = {} if scale is None else {name: self.constants[name] * scale for name in self.gains()}
        return self._slopes(self._torques(scaled, self.q, self.qd))

    def gains(self) -> list[str]:
        """The constants of the law that are joint gains: kp and kd, of a sum of laws with their numbers."""
        return [
            name for name, x in self.constants.items() if name.split("_")[0] in ("kp", "kd") and x.shape == (self.n,)
        ]

    def matrix(self, step: float, feedback: np.ndarray) -> np.ndarray:
        """How small deviations (dq, dqd) grow from one step, or one control instant, to the next."""
        n, B = self.n, self.B
        if self.period is None:
            return self._advance(self.plant + B @ feedback, np.zeros((n, 0)), step)
        held = self._advance(self.plant, B, min(self.dt, step))
        held = np.linalg.matrix_power(held, max(1, round(step / min(self.dt, step))))
        return held[: 2 * n, : 2 * n] + held[: 2 * n, 2 * n :] @ feedback

    def _advance(self, a: np.ndarray, held: np.ndarray, dt: float) -> np.ndarray:
        """One step of the integrator for qdd = a (dq, dqd) + held u, as a matrix of (dq, dqd, u)."""
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
        """How much faster (1/s) deviations grow in steps than in continuous time; above 0 it is unstable."""
        feedback = self.feedback(scale)
        rate = np.concatenate([np.eye(2 * self.n)[self.n :], self.plant + self.B @ feedback])
        own = max(float(np.linalg.eigvals(rate).real.max()), 0.0)
        grown = float(np.abs(np.linalg.eigvals(self.matrix(step, feedback))).max())
        return float(np.log(grown)) / step - (2.0 * own + 1.0)

    def shaken(self, step: float, scale: np.ndarray | None = None) -> int:
        """The joint with most of the energy of the fastest growing deviation."""
        values, vectors = np.linalg.eig(self.matrix(step, self.feedback(scale)))
        fastest = np.abs(vectors[self.n :, np.abs(values).argmax()])
        return int((fastest**2 / np.maximum(np.diag(self.B), 1e-300)).argmax())

    def loop(self, what: str) -> _Loop:
        step, everywhere = self.step, np.ones(self.n)
        shorter = next((step / n for n in SHORTER if self.excess(MARGIN * step / n) <= 0.0), None)
        share, gains = None, dict[int, dict[str, float]]()
        if self.gains():
            share = next((1.0 / n for n in SHORTER if self.excess(MARGIN * step, everywhere / n) <= 0.0), None)
            alone = share is not None and {*self.gains()} <= {"kp", "kd"}  # of a sum of laws, all gains together
            scale = self._lowered(everywhere) if alone else everywhere
            for joint in np.argsort(scale):
                if scale[joint] < 1.0:
                    own = {name: float(self.constants[name][joint] * scale[joint]) for name in self.gains()}
                    gains[int(joint)] = own
        name = "dt" if self.period is None else "control_period"
        return _Loop(what, self.shaken(step), (name, step), self.dt, shorter, gains, share)

    def _lowered(self, scale: np.ndarray) -> np.ndarray:
        """Gains halved, always at the joint that is shaken most, until the loop is stable or the list too long."""
        scale = scale.copy()
        for _ in range(20 * self.n):
            if (scale < 1.0).sum() > NAMED or self.excess(MARGIN * self.step, scale) <= 0.0:
                break
            scale[self.shaken(MARGIN * self.step, scale)] *= 0.5
        return scale


def rate_names(robot: Robot) -> list[str]:
    """The joint of each velocity."""
    names = [""] * robot.nv
    for name, link in zip(robot.joint_names, robot.canonical.joints, strict=True):
        names[link.rates] = [name] * link.nv
    return names


# ---- friction --------------------------------------------------------------------------------------------------------


def _warn_of_chatter(result: Simulation) -> None:
    """Coulomb friction has a sign and no sticking: a joint that it brings to rest is thrown to and fro, and creeps.

    So many records in a row its rate is one that its own acceleration, which is no rounding, would undo within two
    steps: a motion that the steps resolve is out of this range after three.
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
    stuck = _in_a_row(near) == CHATTER
    if not stuck.any():
        return
    moment, rollout, column = (int(i) for i in np.argwhere(stuck)[0])
    where = _moment(result, moment, *(np.unravel_index(rollout, result.batch) if result.batch else ()))
    _say(
        f"joint {rough[columns[column]]} of {result.robot.name} chatters about rest from {where.removeprefix('at ')} "
        f"on: Coulomb friction does not hold a joint here, and it creeps (docs/simulation.md, Friction at rest)."
    )


def _in_a_row(marked: np.ndarray) -> np.ndarray:
    """How many of this record and the following ones, CHATTER together, are marked."""
    total = np.concatenate([np.zeros_like(marked[:1], int), np.cumsum(marked, axis=0)])
    return total[CHATTER:] - total[:-CHATTER]


def _moment(result: Simulation, moment: int, *rollout: int | np.integer) -> str:
    of = f" of rollout {int(rollout[0]) if len(rollout) == 1 else tuple(map(int, rollout))}" if rollout else ""
    return f"at t = {result.t[moment]:g} s{of}"


def _say(sentence: str) -> None:
    warn_user(sentence, SimulationWarning)
