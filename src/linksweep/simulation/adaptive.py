"""Adaptive steps by SciPy's DOP853: torques of any Python function, events, dense output. One rollout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..functions.compiled import CompiledFunction
from ..functions.computation import RobotFunction, Together
from ..robot.robot import Robot
from ..support.checks import as_array, refuse_foreign
from ..support.messages import shown
from .controllers import Controller, Function, Grid
from .dynamics import CompiledDynamics, checked_torque, without_friction
from .friction import FAR, Rest, resting_acceleration, settled
from .result import Event, LimitCrossing, Simulation, limited_joints

if TYPE_CHECKING:
    from scipy.integrate import OdeSolution
    from scipy.optimize import OptimizeResult

    from .controllers import Inputs
    from .options import Adaptive, Settings


def integrate_adaptively(
    robot: Robot, controller: Controller, q0: np.ndarray, qd0: np.ndarray, grid: Grid, forward_dynamics: RobotFunction,
    backend: str, *, t: np.ndarray, method: Adaptive, watch: Callable[[float], None], settings: Settings,
    rest: Rest | None, push: Controller | None, gains: tuple[float, float] | None,
) -> Simulation:  # fmt: skip
    """The motion at times t, or up to a limit or terminal event; NaN from where it ends early."""
    from scipy.integrate import solve_ivp

    nq, nv, limits = robot.nq, robot.nv, method.limits
    rtol, atol, max_steps = method.rtol, method.atol, method.max_steps
    dynamics = CompiledDynamics(forward_dynamics, "float64", backend)
    torque = _torques(robot, controller, grid, dynamics)
    forward = robot.compile(Together((forward_dynamics,)), dtype="float64", backend=backend)

    by_world = None if push is None else _torques(robot, push, grid, dynamics)

    def felt(time: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        tau = torque(time, q, qd)
        return tau if by_world is None else tau + by_world(time, q, qd)

    projected = bool(robot.model.constraints) and gains is None

    def closed(states: np.ndarray) -> np.ndarray:
        """The states (..., nq + nv) on the constraints that these stand for: theirs are the dynamics, so that what
        steps leave across the constraints neither acts nor grows."""
        if not projected or not np.isfinite(states).all():
            return states
        q, qd = states[..., :nq], states[..., nq:]
        q = robot.integrate(q, _correction(robot, q))
        return np.concatenate([q, robot.project_velocity(q, qd)], axis=-1)

    modes = None if rest is None else Modes(robot, rest, _without_friction(robot, forward_dynamics, backend), felt)

    def rate(time: float, state: np.ndarray) -> np.ndarray:
        if not np.isfinite(state).all():
            return np.full(nq + nv, np.nan)
        state = closed(state)
        q, qd = state[:nq], state[nq:]
        watch(time / grid.duration)
        qdd = forward(q, qd, felt(time, q, qd)) if modes is None else modes.accelerations(time, q, qd)[0]
        if gains is not None:
            qdd = np.array(dynamics.stabilized(gains, q.tolist(), qd.tolist(), qdd.tolist()), float)
        return np.concatenate([robot.coordinate_rates(q, qd), qdd])

    bounded = [] if limits == "ignore" else limited_joints(robot)
    stops = [event for joint in bounded for event in _limit_events(joint, limits == "stop")]
    _check_start(bounded, q0, limits)
    asked = [_user_event(event, nq) for event in method.events]
    budget = _Budget(t, max_steps)
    start = np.concatenate([q0, qd0])
    watched: list[Watched] = [*(event for _, _, event in stops), *asked, budget]
    if modes is not None:
        start = modes.after(start)
        modes.choose(0.0, start[:nq], start[nq:])
    with np.errstate(all="ignore"):
        found = _stuck(rate, start, grid.duration, rtol, atol, len(watched))
        if found is None and modes is not None:
            found = solve_in_modes(modes, rate, grid.duration, start, t, watched, max_steps, rtol=rtol, atol=atol)
        elif found is None:
            found = solve_ivp(
                rate, (0.0, grid.duration), start, method="DOP853", t_eval=t, rtol=rtol, atol=atol, events=watched,
                dense_output=True,
            )  # fmt: skip
    times, states = np.asarray(found.t), np.asarray(found.y).T.reshape(-1, nq + nv)
    moments = list(found.t_events or [])
    at_events = [np.asarray(y).reshape(-1, nq + nv) for y in (found.y_events or [])]
    ended_early = found.status < 0 or budget.spent
    if found.status == 1 and not ended_early:
        last = max((k for k, m in enumerate(moments) if len(m)), key=lambda k: moments[k][-1])
        if not len(times) or times[-1] < moments[last][-1]:
            times, states = np.append(times, moments[last][-1]), np.vstack([states, at_events[last][-1:]])
    end = float(found.sol.ts[-1]) if found.sol else 0.0
    if ended_early:
        settings["failure"] = budget.reason(end) if budget.spent else _too_small(end, found.message)
        states = np.vstack([states, np.full((len(t) - len(times), nq + nv), np.nan)])
        times = t
    states, at_events = closed(states), [closed(y) if len(y) else y for y in at_events]
    q, qd = _normalized(robot, states[:, :nq]), states[:, nq:]
    rows = zip(times, q, qd, strict=True)
    tau = np.array([torque(*row) if np.isfinite(row[1]).all() else np.full(nv, np.nan) for row in rows])
    crossings = [LimitCrossing(joint, bound, 0.0) for joint, bound in _outside(bounded, q0)]
    crossings += [LimitCrossing(*stop[:2], float(m[0])) for stop, m in zip(stops, moments, strict=False) if len(m)]
    if modes is None and push is None:
        qdd = forward(q, qd, tau)
    else:
        asked = modes.asked if modes is not None else lambda t, q, qd: forward(q, qd, felt(t, q, qd))
        rows = zip(times, q, qd, strict=True)
        qdd = np.array([asked(*row) if np.isfinite(row[1]).all() else np.full(nv, np.nan) for row in rows])
    own = zip(moments[len(stops) : -1], at_events[len(stops) : -1], strict=True)
    return Simulation(
        robot, times, q, qd, qdd, tau, settings,
        tuple(Event(np.asarray(m), _normalized(robot, y[:, :nq]), y[:, nq:]) for m, y in own),
        found.sol and _dense(robot, found.sol, end, closed),
        tuple(sorted(crossings, key=lambda crossing: crossing.time)),
    )  # fmt: skip


def _without_friction(robot: Robot, forward_dynamics: RobotFunction, backend: str) -> CompiledFunction:
    """Forward dynamics with damping, if there is dissipation at all, and without Coulomb friction."""
    smooth = replace(forward_dynamics, model=without_friction(forward_dynamics.model))
    return robot.compile(Together((smooth,)), dtype="float64", threads=1, backend=backend)


class _Budget:
    """An event that ends a run which takes too many steps from one record to the next.

    Where friction or a controller jumps at a state that the motion cannot leave, steps get ever shorter and none fails.
    """

    terminal: bool = True
    direction: float = 0

    def __init__(self, t: np.ndarray, most: int):
        self.t, self.most = t, most
        self.record, self.steps = 0, 0
        self.before, self.now = -np.inf, -np.inf
        self.deadline = np.inf  # in the middle of the step that was one too many

    @property
    def spent(self) -> bool:
        return self.deadline < np.inf

    def reason(self, end: float) -> str:
        return (
            f"{self.most:,} steps from t = {self.t[self.record]:g} s on did not come to the next record, {end:g} s is "
            f"as far as they got (a force that jumps where the motion stays does that, as Coulomb friction at rest: "
            f"use fixed steps, damping, or a larger max_steps)"
        )

    def __call__(self, t: float, state: np.ndarray) -> float:
        if t > self.now and not self.spent:  # a step; looking for a root calls again, between the two
            self.before, self.now = self.now, t
            record = int(np.searchsorted(self.t, t, side="right")) - 1
            self.steps = self.steps + 1 if record == self.record else 0
            self.record = record
            if self.steps > self.most:
                self.deadline = 0.5 * (self.before + self.now)
        return min(self.deadline - t, 1.0)


def _too_small(end: float, message: str) -> str:
    return f"at t = {end:g} s no step is small enough ({message.strip().rstrip('.')})"


def _stuck(
    rate: Callable[..., np.ndarray], start: np.ndarray, duration: float, rtol: float, atol: float, events: int
) -> OptimizeResult | None:
    """What solve_ivp should say where not even the first step succeeds: it ends in an IndexError, or not at all."""
    from scipy.integrate import DOP853
    from scipy.optimize import OptimizeResult

    # from rates that are not finite a first step of NaN would be guessed, which never gets too small
    first = None if np.isfinite(rate(0.0, start)).all() else duration
    solver = DOP853(rate, 0.0, start, duration, rtol=rtol, atol=atol, first_step=first)
    message = solver.step()
    if solver.status != "failed":
        return None
    return OptimizeResult(
        t=np.zeros(1), y=start[:, None], sol=None, status=-1, message=message, t_events=[np.empty(0)] * events,
        y_events=[np.empty((0, len(start)))] * events,
    )  # fmt: skip


def _torques(robot: Robot, controller: Controller, grid: Grid, dynamics: CompiledDynamics) -> Callable[..., np.ndarray]:
    if isinstance(controller, Function):
        return lambda t, q, qd: checked_torque(controller.function, t, q, qd)
    law, at = controller.control_law(robot), controller.at(robot, grid)
    constants = controller.constants(robot)

    def torque(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        inputs: Inputs = {name: list(np.ravel(value)) for name, value in {**at(t), **constants}.items()}
        return np.asarray(law.torque(dynamics, q.tolist(), qd.tolist(), inputs), dtype=float).reshape(robot.nv)

    return torque


def _normalized(robot: Robot, q: np.ndarray) -> np.ndarray:
    fine = np.isfinite(q).all(axis=-1)
    out = q.copy()
    out[fine] = robot.normalize(q[fine])
    return out


def _limit_events(joint: tuple[str, int, tuple[float, float]], terminal: bool) -> list[tuple[str, str, Crossing]]:
    name, place, bounds = joint
    events: list[tuple[str, str, Crossing]] = []
    for bound, value in zip(("lower", "upper"), bounds, strict=True):
        if np.isfinite(value):

            def event(t: float, state: np.ndarray, value: float = value) -> float:
                return float(state[place] - value)

            events.append((name, bound, Crossing(event, terminal, -1 if bound == "lower" else 1)))
    return events


def _outside(bounded: list[tuple[str, int, tuple[float, float]]], q0: np.ndarray) -> list[tuple[str, str]]:
    lower = [(name, "lower") for name, place, bounds in bounded if q0[place] < bounds[0]]
    return lower + [(name, "upper") for name, place, bounds in bounded if q0[place] > bounds[1]]


def _check_start(bounded: list[tuple[str, int, tuple[float, float]]], q0: np.ndarray, limits: str) -> None:
    outside = _outside(bounded, q0)
    if outside and limits == "stop":
        name, bound = outside[0]
        raise ArgumentError(
            f"q0 is outside the {bound} limit of joint {name} already, where limits='stop' would stop: start inside, "
            f"or use limits='record'."
        )


def _user_event(event: Callable[..., float], nq: int) -> Crossing:
    if not callable(event):
        raise ArgumentError(f"events holds {shown(event)}, expected functions event(t, q, qd) that cross 0.")

    def wrapped(t: float, state: np.ndarray) -> float:
        value: object = event(t, state[:nq], state[nq:])
        refuse_foreign("what event(t, q, qd) gives", value)
        number = as_array(value)
        if number.ndim or number.dtype.kind not in "iufb":
            raise ArgumentError(
                f"event(t, q, qd) gave {shown(value)} at t = {t:g}, expected one real number that crosses 0."
            )
        return float(number)

    return Crossing(wrapped, getattr(event, "terminal", False), getattr(event, "direction", 0))


def _correction(robot: Robot, q: np.ndarray) -> np.ndarray:
    """The way back onto the constraints, the shortest in the metric of M."""
    return robot.compile("constraint_correction")(q)


def _dense(
    robot: Robot, solution: Callable[[np.ndarray], np.ndarray], end: float, closed: Callable[[np.ndarray], np.ndarray]
) -> Callable[[ArrayLike], tuple[np.ndarray, np.ndarray]]:
    def dense(t: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        refuse_foreign("dense: t", t)
        times = np.asarray(t, dtype=float)
        if not ((times >= 0.0) & (times <= end)).all():
            raise ArgumentError(f"dense got times outside 0 to {end:g}, where the simulation ended.")
        states = np.moveaxis(solution(times.reshape(-1)), 0, -1).reshape(*times.shape, robot.nq + robot.nv)
        states = closed(states)
        return robot.normalize(states[..., : robot.nq]), states[..., robot.nq :]

    return dense


class Watched(Protocol):
    """A function of time and state that `solve_ivp` follows through 0, upward (1), downward (-1) or either way (0)."""

    @property
    def terminal(self) -> bool: ...
    @property
    def direction(self) -> float: ...
    def __call__(self, t: float, y: np.ndarray, /) -> float: ...


@dataclass(frozen=True)
class Crossing:
    """An event; `let_go`: the joint that can be held no more there, and which way it goes."""

    function: Callable[[float, np.ndarray], float]
    terminal: bool = True
    direction: float = -1
    let_go: tuple[int, float] | None = None

    def __call__(self, t: float, y: np.ndarray, /) -> float:
        return self.function(t, y)


class Modes:
    """The joints' modes, and accelerations while they last. `torque(t, q, qd)` is what drives, (nv,)."""

    def __init__(self, robot: Robot, rest: Rest, forward: Callable[..., np.ndarray], torque: Callable[..., np.ndarray]):
        self.rest, self.nq, self.nv = rest, robot.nq, robot.nv
        self._robot, self._forward, self._torque = robot, forward, torque
        self.friction = np.array(rest.friction)
        self.sliding, self.held = np.zeros(self.nv), np.zeros(self.nv, bool)
        self.least, self.most = np.zeros(self.nv), np.zeros(self.nv)  # what can hold a joint
        self._last: tuple[tuple[float, bytes, bytes], tuple[np.ndarray, np.ndarray]] | None = None

    def _pushed(self, t: float, q: np.ndarray, qd: np.ndarray, sliding: np.ndarray) -> np.ndarray:
        spring = np.array(self.rest.spring_torque(q.tolist(), qd.tolist()))
        return self._torque(t, q, qd) + spring - self.friction * sliding

    def asked(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """The accelerations in a state whose joints at rest have rates of exactly 0."""
        M = self._robot.mass_matrix(q).tolist()
        free = self._forward(q, qd, self._pushed(t, q, qd, np.sign(qd)))
        return np.array(resting_acceleration(self.rest, M, free.tolist(), q.tolist(), qd.tolist())[0])

    def choose(self, t: float, q: np.ndarray, qd: np.ndarray, let_go: tuple[int, float] | None = None) -> None:
        """Modes from here on. let_go: a joint that can be held no more, and which way it goes."""
        qdd = self.asked(t, q, qd)
        if let_go is not None and qd[let_go[0]] == 0.0 and qdd[let_go[0]] == 0.0:
            qdd[let_go[0]] = let_go[1]  # at the event itself its acceleration is 0, but for rounding
        low, high = (np.array(bound, float) for bound in self.rest.bounds(q.tolist(), qd.tolist()))
        still = (qd == 0.0) & (qdd == 0.0)
        self.held = still & ((self.friction > 0.0) | (low == 0.0) | (high == 0.0))
        self.sliding = np.where(qd != 0.0, np.sign(qd), np.where(self.held, 0.0, np.sign(qdd)))
        self.least = np.where(high == 0.0, -np.inf, -self.friction)
        self.most = np.where(low == 0.0, np.inf, self.friction)
        self._last = None

    def accelerations(self, t: float, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """In the modes of now: accelerations, and the forces that hold joints."""
        key = (t, q.tobytes(), qd.tobytes())
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        qdd, force = self._forward(q, qd, self._pushed(t, q, qd, self.sliding)), np.zeros(self.nv)
        if self.held.any() and np.isfinite(qdd).all():
            held = np.flatnonzero(self.held)
            columns = np.linalg.solve(self._robot.mass_matrix(q), np.eye(self.nv)[:, held])
            force[held] = -np.linalg.solve(columns[held], qdd[held])
            qdd = qdd + columns @ force[held]
            qdd[held] = 0.0
        self._last = (key, (qdd, force))
        return qdd, force

    def events(self) -> list[Crossing]:
        """Functions that cross 0 where a mode ends."""
        found: list[Crossing] = []
        for i in range(self.nv):
            if self.held[i]:
                found += [self._holding(i, sign) for sign in (-1.0, 1.0)]
            elif self.friction[i] > 0.0 and self.sliding[i]:
                found.append(Crossing(lambda t, y, i=i, s=self.sliding[i]: s * y[self.nq + i]))
        for place, rate, lower, upper in self.rest.stops if self.rest.spring is None else ():
            if not self.held[rate]:
                if upper < FAR:
                    found.append(Crossing(lambda t, y, k=place, u=upper: u - y[k]))
                if lower > -FAR:
                    found.append(Crossing(lambda t, y, k=place, u=lower: y[k] - u))
        return found

    def _holding(self, i: int, sign: float) -> Crossing:
        bound = self.most[i] if sign > 0.0 else -self.least[i]

        def spare(t: float, y: np.ndarray) -> float:
            return 1.0 if bound == np.inf else bound - sign * self.accelerations(t, y[: self.nq], y[self.nq :])[1][i]

        return Crossing(spare, let_go=(i, -sign))

    def after(self, y: np.ndarray) -> np.ndarray:
        """The state behind an event: at rest what came to rest, speed taken at a stop, by impulses that all feel."""
        q, qd = y[: self.nq].copy(), y[self.nq :].copy()
        tiny = 1e-9 * max(1.0, float(np.abs(qd).max()))
        qd[(self.friction > 0.0) & (np.abs(qd) <= tiny) & (self.sliding * qd <= tiny * 1e-3)] = 0.0
        for place, rate, lower, upper in self.rest.stops if self.rest.spring is None else ():
            for bound, outward in ((upper, 1.0), (lower, -1.0)):
                if (
                    abs(bound) < FAR
                    and abs(q[place] - bound) <= 1e-9 * max(1.0, abs(bound))
                    and outward * qd[rate] >= 0.0
                ):
                    q[place] = bound
        if self.rest.stops and self.rest.spring is None:
            zero = [0.0] * self.nv
            M, bounds = self._robot.mass_matrix(q).tolist(), self.rest.bounds(q.tolist())
            qd = np.array(settled(M, qd.tolist(), zero, zero, *bounds))
        return np.concatenate([q, qd])


class Pieces:
    """The motion of all segments, at any times."""

    def __init__(self, pieces: Sequence[OdeSolution]):
        self._pieces = pieces
        self._starts = np.array([piece.ts[0] for piece in pieces])
        self.ts = np.concatenate([piece.ts for piece in pieces])

    def __call__(self, t: np.ndarray) -> np.ndarray:
        which = np.clip(np.searchsorted(self._starts, t, side="right") - 1, 0, len(self._pieces) - 1)
        return np.stack([self._pieces[k](time) for k, time in zip(which, t, strict=True)], axis=-1)


def solve_in_modes(
    modes: Modes, rate: Callable[..., np.ndarray], duration: float, start: np.ndarray, t_eval: np.ndarray,
    watched: Sequence[Watched], most: int, *, rtol: float, atol: float,
) -> OptimizeResult:  # fmt: skip
    """What `solve_ivp` gives, of one segment after the other; `modes` have been chosen at the start."""
    from scipy.integrate import solve_ivp
    from scipy.optimize import OptimizeResult

    times, states, pieces = [t_eval[:1]], [start[None]], []
    moments: list[list[float]] = [[] for _ in watched]
    at: list[list[np.ndarray]] = [[] for _ in watched]
    now, y, status, message, short = 0.0, start, 0, "", 0
    while True:
        changes = modes.events()
        part = solve_ivp(
            rate, (now, duration), y, method="DOP853", t_eval=t_eval[t_eval > now], events=[*watched, *changes],
            dense_output=True, rtol=rtol, atol=atol,
        )  # fmt: skip
        if part.sol is not None:
            pieces.append(part.sol)
        found = np.asarray(part.y).T.reshape(-1, len(start))
        times.append(np.asarray(part.t))
        states.append(found)
        for k in range(len(watched)):
            moments[k] += list(part.t_events[k])
            at[k] += list(np.asarray(part.y_events[k]).reshape(-1, len(start)))
        ended = [k for k, event in enumerate(watched) if event.terminal and len(part.t_events[k])]
        if part.status != 1 or ended:
            status, message = part.status, part.message
            break
        own = [k for k, m in enumerate(part.t_events[len(watched) :]) if len(m)]
        end = float(part.t_events[len(watched) + own[0]][-1])
        short = short + 1 if end - now <= 1e-12 * duration else 0
        if short > 50 or len(pieces) > most:
            status, message = -1, f"modes of the joints change for ever from t = {now:g} s on"
            break
        y = modes.after(np.asarray(part.y_events[len(watched) + own[0]][-1]))
        now = end
        modes.choose(now, y[: modes.nq], y[modes.nq :], changes[own[0]].let_go)
        if now >= duration:
            break
    return OptimizeResult(
        t=np.concatenate(times), y=np.concatenate(states).T, sol=Pieces(pieces) if pieces else None, status=status,
        message=message, t_events=[np.array(m) for m in moments],
        y_events=[np.array(y).reshape(-1, len(start)) for y in at],
    )  # fmt: skip
