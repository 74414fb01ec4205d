"""Adaptive steps of one rollout by SciPy's DOP853: torques of any Python function, events, dense output."""

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
from .integrators import Adaptive
from .result import Event, LimitCrossing, Settings, Simulation, limited_joints

if TYPE_CHECKING:
    from scipy.integrate import OdeSolution
    from scipy.optimize import OptimizeResult


def integrate_adaptively(
    robot: Robot, controller: Controller, q0: np.ndarray, qd0: np.ndarray, grid: Grid, forward_dynamics: RobotFunction,
    backend: str, *, t: np.ndarray, method: Adaptive, watch: Callable[[float], None], settings: Settings,
    rest: Rest | None, disturbance: Controller | None, gains: tuple[float, float] | None,
) -> Simulation:  # fmt: skip
    """Return the motion at times t, up to a limit or terminal event; NaN after a run that ended early."""
    from scipy.integrate import solve_ivp

    nq, nv, limits, rtol, atol = robot.nq, robot.nv, method.limits, method.rtol, method.atol
    dynamics = CompiledDynamics(forward_dynamics, "float64", backend)
    torque = _torques(robot, controller, grid, dynamics)
    forward = robot.compile(Together((forward_dynamics,)), dtype="float64", backend=backend)
    external = None if disturbance is None else _torques(robot, disturbance, grid, dynamics)

    def applied(time: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        tau = torque(time, q, qd)
        return tau if external is None else tau + external(time, q, qd)

    projected = bool(robot.model.constraints) and gains is None

    def closed(states: np.ndarray) -> np.ndarray:
        """Return the states (..., nq + nv) projected onto the constraints.

        The dynamics are those of the projected states, so that errors across the constraints do not act or grow.
        """
        if not projected or not np.isfinite(states).all():
            return states
        q, qd = states[..., :nq], states[..., nq:]
        q = robot.integrate(q, robot.compile("constraint_correction")(q))
        return np.concatenate([q, robot.project_velocity(q, qd)], axis=-1)

    modes = None if rest is None else Modes(robot, rest, _without_friction(robot, forward_dynamics, backend), applied)

    def rate(time: float, state: np.ndarray) -> np.ndarray:
        if not np.isfinite(state).all():
            return np.full(nq + nv, np.nan)
        state = closed(state)
        q, qd = state[:nq], state[nq:]
        watch(time / grid.duration)
        qdd = forward(q, qd, applied(time, q, qd)) if modes is None else modes.accelerations(time, q, qd)[0]
        if gains is not None:
            qdd = np.array(dynamics.stabilized(gains, q.tolist(), qd.tolist(), qdd.tolist()), float)
        return np.concatenate([robot.coordinate_rates(q, qd), qdd])

    bounded = [] if limits == "ignore" else limited_joints(robot)
    limit_events = [event for joint in bounded for event in _limit_events(joint, limits == "stop")]
    outside = [(name, "lower") for name, i, (lower, _) in bounded if q0[i] < lower]
    outside += [(name, "upper") for name, i, (_, upper) in bounded if q0[i] > upper]
    if outside and limits == "stop":
        raise ArgumentError(
            f"q0 is outside the {outside[0][1]} limit of joint {outside[0][0]}, but limits='stop' ends a run there: "
            f"start inside, or use limits='record'."
        )
    budget = _Budget(t, method.max_steps)
    start = np.concatenate([q0, qd0])
    watched: list[Watched] = [event for _, _, event in limit_events]
    watched += [*(_user_event(event, nq) for event in method.events), budget]
    if modes is not None:
        start = modes.after(start)
        modes.choose(0.0, start[:nq], start[nq:])
    with np.errstate(all="ignore"):
        solution = _failed_first_step(rate, start, grid.duration, len(watched), rtol=rtol, atol=atol)
        if solution is None and modes is not None:
            solution = solve_in_modes(
                modes, rate, grid.duration, start, t, watched, method.max_steps, rtol=rtol, atol=atol
            )
        elif solution is None:
            solution = solve_ivp(
                rate, (0.0, grid.duration), start, method="DOP853", t_eval=t, events=watched, dense_output=True,
                rtol=rtol, atol=atol,
            )  # fmt: skip
    times, states = np.asarray(solution.t), np.asarray(solution.y).T.reshape(-1, nq + nv)
    event_times = list(solution.t_events or [])
    event_states = [np.asarray(y).reshape(-1, nq + nv) for y in (solution.y_events or [])]
    ended_early = solution.status < 0 or budget.spent
    if solution.status == 1 and not ended_early:
        last = max((k for k, x in enumerate(event_times) if len(x)), key=lambda k: event_times[k][-1])
        if not len(times) or times[-1] < event_times[last][-1]:
            times, states = np.append(times, event_times[last][-1]), np.vstack([states, event_states[last][-1:]])
    end = float(solution.sol.ts[-1]) if solution.sol else 0.0
    if ended_early:
        message = solution.message.strip().rstrip(".")
        failure = f"the step size became too small at t = {end:g} s ({message})"
        settings["failure"] = budget.reason(end) if budget.spent else failure
        states = np.vstack([states, np.full((len(t) - len(times), nq + nv), np.nan)])
        times = t
    states, event_states = closed(states), [closed(y) if len(y) else y for y in event_states]
    q, qd = _normalized(robot, states[:, :nq]), states[:, nq:]

    def at_times(function: Callable[..., np.ndarray]) -> np.ndarray:
        rows = zip(times, q, qd, strict=True)
        return np.array([function(*row) if np.isfinite(row[1]).all() else np.full(nv, np.nan) for row in rows])

    tau = at_times(torque)
    if modes is not None:
        qdd = at_times(modes.initial_accelerations)
    elif external is not None:
        qdd = at_times(lambda t, q, qd: forward(q, qd, applied(t, q, qd)))
    else:
        qdd = forward(q, qd, tau)
    crossings = [LimitCrossing(joint, bound, 0.0) for joint, bound in outside]
    first_times = zip(limit_events, event_times, strict=False)
    crossings += [LimitCrossing(joint, bound, float(x[0])) for (joint, bound, _), x in first_times if len(x)]
    own = slice(len(limit_events), -1)  # the user's events
    return Simulation(
        robot, times, q, qd, qdd, tau, settings,
        tuple(
            Event(np.asarray(x), _normalized(robot, y[:, :nq]), y[:, nq:])
            for x, y in zip(event_times[own], event_states[own], strict=True)
        ),
        solution.sol and _dense(robot, solution.sol, end, closed),
        tuple(sorted(crossings, key=lambda crossing: crossing.time)),
    )  # fmt: skip


def _without_friction(robot: Robot, forward_dynamics: RobotFunction, backend: str) -> CompiledFunction:
    """Return forward dynamics without Coulomb friction; damping stays."""
    smooth = replace(forward_dynamics, model=without_friction(forward_dynamics.model))
    return robot.compile(Together((smooth,)), dtype="float64", threads=1, backend=backend)


class _Budget:
    """An event that ends a run with too many steps from one record to the next.

    Steps become ever shorter, and none fails, where a force is discontinuous at a state that the motion cannot leave.
    """

    terminal: bool = True
    direction: float = 0

    def __init__(self, t: np.ndarray, max_steps: int):
        self.t, self.max_steps = t, max_steps
        self.record, self.steps = 0, 0
        self.before, self.now = -np.inf, -np.inf
        self.deadline = np.inf  # in the middle of the step that was one too many

    @property
    def spent(self) -> bool:
        return self.deadline < np.inf

    def reason(self, end: float) -> str:
        return (
            f"{self.max_steps:,} steps from t = {self.t[self.record]:g} s reached only t = {end:g} s (a force may be "
            f"discontinuous there, such as Coulomb friction at rest: use fixed steps, damping, or a larger max_steps)"
        )

    def __call__(self, t: float, state: np.ndarray) -> float:
        if t > self.now and not self.spent:  # a step; root finding calls again between the two
            self.before, self.now = self.now, t
            record = int(np.searchsorted(self.t, t, side="right")) - 1
            self.steps = self.steps + 1 if record == self.record else 0
            self.record = record
            if self.steps > self.max_steps:
                self.deadline = 0.5 * (self.before + self.now)
        return min(self.deadline - t, 1.0)


def _failed_first_step(
    rate: Callable[..., np.ndarray], start: np.ndarray, duration: float, events: int, *, rtol: float, atol: float
) -> OptimizeResult | None:
    """Return the result of a run whose first step fails, for which solve_ivp raises IndexError or does not end."""
    from scipy.integrate import DOP853
    from scipy.optimize import OptimizeResult

    # derivatives that are not finite would make the first step NaN, which never becomes too small
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
        inputs = {name: list(np.ravel(value)) for name, value in {**at(t), **constants}.items()}
        return np.asarray(law.torque(dynamics, q.tolist(), qd.tolist(), inputs), dtype=float).reshape(robot.nv)

    return torque


def _normalized(robot: Robot, q: np.ndarray) -> np.ndarray:
    finite = np.isfinite(q).all(axis=-1)
    out = q.copy()
    out[finite] = robot.normalize(q[finite])
    return out


def _limit_events(joint: tuple[str, int, tuple[float, float]], terminal: bool) -> list[tuple[str, str, Crossing]]:
    name, index, limits = joint
    return [
        (name, bound, Crossing(lambda t, y, value=value: float(y[index] - value), terminal, direction))
        for bound, value, direction in zip(("lower", "upper"), limits, (-1, 1), strict=True)
        if np.isfinite(value)
    ]


def _user_event(event: Callable[..., float], nq: int) -> Crossing:
    if not callable(event):
        raise ArgumentError(f"events holds {shown(event)}, expected functions event(t, q, qd) that cross 0.")

    def wrapped(t: float, state: np.ndarray) -> float:
        value: object = event(t, state[:nq], state[nq:])
        refuse_foreign("the result of event(t, q, qd)", value)
        number = as_array(value)
        if number.ndim or number.dtype.kind not in "iufb":
            raise ArgumentError(
                f"event(t, q, qd) returned {shown(value)} at t = {t:g}, expected one real number that crosses 0."
            )
        return float(number)

    return Crossing(wrapped, getattr(event, "terminal", False), getattr(event, "direction", 0))


def _dense(
    robot: Robot, solution: Callable[[np.ndarray], np.ndarray], end: float, closed: Callable[[np.ndarray], np.ndarray]
) -> Callable[[ArrayLike], tuple[np.ndarray, np.ndarray]]:
    def dense(t: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        refuse_foreign("dense: t", t)
        times = np.asarray(t, dtype=float)
        if not ((times >= 0.0) & (times <= end)).all():
            raise ArgumentError(f"dense got t from {times.min():g} to {times.max():g}, expected 0 to {end:g} s.")
        states = np.moveaxis(solution(times.reshape(-1)), 0, -1).reshape(*times.shape, robot.nq + robot.nv)
        states = closed(states)
        return robot.normalize(states[..., : robot.nq]), states[..., robot.nq :]

    return dense


class Watched(Protocol):
    """An event of `solve_ivp`: a function of time and state that crosses 0 upward (1), downward (-1) or both (0)."""

    @property
    def terminal(self) -> bool: ...
    @property
    def direction(self) -> float: ...
    def __call__(self, t: float, y: np.ndarray, /) -> float: ...


@dataclass(frozen=True)
class Crossing:
    """An event. released: the index of a joint that can no longer be held, and the sign of its acceleration."""

    function: Callable[[float, np.ndarray], float]
    terminal: bool = True
    direction: float = -1
    released: tuple[int, float] | None = None

    def __call__(self, t: float, y: np.ndarray, /) -> float:
        return self.function(t, y)


class Modes:
    """Modes of the joints (sliding or held), and accelerations while they last.

    torque(t, q, qd): driving torques and disturbances (nv,).
    """

    def __init__(self, robot: Robot, rest: Rest, forward: Callable[..., np.ndarray], torque: Callable[..., np.ndarray]):
        self.rest, self.nq, self.nv = rest, robot.nq, robot.nv
        self._robot, self._forward, self._torque = robot, forward, torque
        self.friction = np.array(rest.friction)
        self.sliding, self.held = np.zeros(self.nv), np.zeros(self.nv, bool)
        self.lower, self.upper = np.zeros(self.nv), np.zeros(self.nv)  # bounds of the forces that hold joints
        self._last: tuple[tuple[float, bytes, bytes], tuple[np.ndarray, np.ndarray]] | None = None

    def _applied(self, t: float, q: np.ndarray, qd: np.ndarray, sliding: np.ndarray) -> np.ndarray:
        spring = np.array(self.rest.spring_torque(q.tolist(), qd.tolist()))
        return self._torque(t, q, qd) + spring - self.friction * sliding

    def initial_accelerations(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Return the accelerations in a state whose joints at rest have velocities of exactly 0."""
        M = self._robot.mass_matrix(q).tolist()
        free = self._forward(q, qd, self._applied(t, q, qd, np.sign(qd)))
        return np.array(resting_acceleration(self.rest, M, free.tolist(), q.tolist(), qd.tolist())[0])

    def choose(self, t: float, q: np.ndarray, qd: np.ndarray, released: tuple[int, float] | None = None) -> None:
        """Choose the modes from a state on. released: see `Crossing`."""
        qdd = self.initial_accelerations(t, q, qd)
        if released is not None and qd[released[0]] == 0.0 and qdd[released[0]] == 0.0:
            qdd[released[0]] = released[1]  # at the event itself its acceleration is 0, except for rounding
        low, high = (np.array(bound, float) for bound in self.rest.bounds(q.tolist(), qd.tolist()))
        still = (qd == 0.0) & (qdd == 0.0)
        self.held = still & ((self.friction > 0.0) | (low == 0.0) | (high == 0.0))
        self.sliding = np.where(qd != 0.0, np.sign(qd), np.where(self.held, 0.0, np.sign(qdd)))
        self.lower = np.where(high == 0.0, -np.inf, -self.friction)
        self.upper = np.where(low == 0.0, np.inf, self.friction)
        self._last = None

    def accelerations(self, t: float, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return accelerations in the current modes, and the forces that hold joints."""
        key = (t, q.tobytes(), qd.tobytes())
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        qdd, force = self._forward(q, qd, self._applied(t, q, qd, self.sliding)), np.zeros(self.nv)
        if self.held.any() and np.isfinite(qdd).all():
            held = np.flatnonzero(self.held)
            columns = np.linalg.solve(self._robot.mass_matrix(q), np.eye(self.nv)[:, held])
            force[held] = -np.linalg.solve(columns[held], qdd[held])
            qdd = qdd + columns @ force[held]
            qdd[held] = 0.0
        self._last = (key, (qdd, force))
        return qdd, force

    def events(self) -> list[Crossing]:
        """Return functions that cross 0 where a mode ends."""
        events: list[Crossing] = []
        for i in range(self.nv):
            if self.held[i]:
                events += [self._holding(i, sign) for sign in (-1.0, 1.0)]
            elif self.friction[i] > 0.0 and self.sliding[i]:
                events.append(Crossing(lambda t, y, i=i, s=self.sliding[i]: s * y[self.nq + i]))
        for i, j, lower, upper in self.rest.hard_stops:
            if not self.held[j]:
                if upper < FAR:
                    events.append(Crossing(lambda t, y, i=i, u=upper: u - y[i]))
                if lower > -FAR:
                    events.append(Crossing(lambda t, y, i=i, u=lower: y[i] - u))
        return events

    def _holding(self, i: int, sign: float) -> Crossing:
        """Return an event that crosses 0 where the force that holds a joint reaches its bound."""
        bound = self.upper[i] if sign > 0.0 else -self.lower[i]

        def margin(t: float, y: np.ndarray) -> float:
            return 1.0 if bound == np.inf else bound - sign * self.accelerations(t, y[: self.nq], y[self.nq :])[1][i]

        return Crossing(margin, released=(i, -sign))

    def after(self, y: np.ndarray) -> np.ndarray:
        """Return the state after an event: joints that came to rest, and velocities after impulses of hard stops."""
        q, qd = y[: self.nq].copy(), y[self.nq :].copy()
        tiny = 1e-9 * max(1.0, float(np.abs(qd).max()))
        qd[(self.friction > 0.0) & (np.abs(qd) <= tiny) & (self.sliding * qd <= tiny * 1e-3)] = 0.0
        for i, j, lower, upper in self.rest.hard_stops:
            for bound, outward in ((upper, 1.0), (lower, -1.0)):
                reached = abs(bound) < FAR and abs(q[i] - bound) <= 1e-9 * max(1.0, abs(bound))
                if reached and outward * qd[j] >= 0.0:
                    q[i] = bound
        if self.rest.hard_stops:
            zero = [0.0] * self.nv
            M, bounds = self._robot.mass_matrix(q).tolist(), self.rest.bounds(q.tolist())
            qd = np.array(settled(M, qd.tolist(), zero, zero, *bounds))
        return np.concatenate([q, qd])


class Pieces:
    """The dense output of all segments."""

    def __init__(self, pieces: Sequence[OdeSolution]):
        self._pieces = pieces
        self._starts = np.array([piece.ts[0] for piece in pieces])
        self.ts = np.concatenate([piece.ts for piece in pieces])

    def __call__(self, t: np.ndarray) -> np.ndarray:
        which = np.clip(np.searchsorted(self._starts, t, side="right") - 1, 0, len(self._pieces) - 1)
        return np.stack([self._pieces[k](time) for k, time in zip(which, t, strict=True)], axis=-1)


def solve_in_modes(
    modes: Modes, rate: Callable[..., np.ndarray], duration: float, start: np.ndarray, t_eval: np.ndarray,
    watched: Sequence[Watched], max_segments: int, *, rtol: float, atol: float,
) -> OptimizeResult:  # fmt: skip
    """Return a result as of `solve_ivp`, segment by segment. `modes` have been chosen for the initial state."""
    from scipy.integrate import solve_ivp
    from scipy.optimize import OptimizeResult

    times, states, pieces = [t_eval[:1]], [start[None]], []
    event_times: list[list[float]] = [[] for _ in watched]
    event_states: list[list[np.ndarray]] = [[] for _ in watched]
    now, y, status, message, short = 0.0, start, 0, "", 0
    while True:
        changes = modes.events()
        part = solve_ivp(
            rate, (now, duration), y, method="DOP853", t_eval=t_eval[t_eval > now], events=[*watched, *changes],
            dense_output=True, rtol=rtol, atol=atol,
        )  # fmt: skip
        if part.sol is not None:
            pieces.append(part.sol)
        times.append(np.asarray(part.t))
        states.append(np.asarray(part.y).T.reshape(-1, len(start)))
        for k in range(len(watched)):
            event_times[k] += list(part.t_events[k])
            event_states[k] += list(np.asarray(part.y_events[k]).reshape(-1, len(start)))
        ended = [k for k, event in enumerate(watched) if event.terminal and len(part.t_events[k])]
        if part.status != 1 or ended:
            status, message = part.status, part.message
            break
        change = next(k for k, x in enumerate(part.t_events[len(watched) :]) if len(x))
        end = float(part.t_events[len(watched) + change][-1])
        short = short + 1 if end - now <= 1e-12 * duration else 0
        if short > 50 or len(pieces) > max_segments:
            status, message = -1, f"friction and stops change the state of joints without end from t = {now:g} s on"
            break
        y = modes.after(np.asarray(part.y_events[len(watched) + change][-1]))
        now = end
        modes.choose(now, y[: modes.nq], y[modes.nq :], changes[change].released)
        if now >= duration:
            break
    return OptimizeResult(
        t=np.concatenate(times), y=np.concatenate(states).T, sol=Pieces(pieces) if pieces else None, status=status,
        message=message, t_events=[np.array(x) for x in event_times],
        y_events=[np.array(y).reshape(-1, len(start)) for y in event_states],
    )  # fmt: skip
