"""Adaptive steps by SciPy's DOP853: torques of any Python function, events, dense output. One rollout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..catalogue.functions import Request
from ..compiled.function import CompiledFunction, Recipe
from ..errors import ArgumentError
from ..robot.robot import Robot
from ..support.foreign import refuse_foreign
from ..support.messages import shown
from ..support.numbers import as_array
from .adaptive_rest import Crossing, Modes, Watched, solve_in_modes
from .columns import CompiledDynamics, checked_torque
from .control.signals import Grid
from .control.traced import without_friction
from .laws import Function, Law
from .resting import Rest
from .result import Event, LimitCrossing, Simulation, limited_joints

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

    from .control.forms import Given
    from .options import Settings


def integrate_adaptively(
    robot: Robot, law: Law, q0: np.ndarray, qd0: np.ndarray, grid: Grid, request: Request, backend: str,
    *, t: np.ndarray, limits: str, events: Sequence[Callable[..., float]], rtol: float, atol: float, max_steps: int,
    watch: Callable[[float], None], settings: Settings, rest: Rest | None = None, push: Law | None = None,
    gains: tuple[float, float] | None = None,
) -> Simulation:  # fmt: skip
    """The motion at times t, or up to a limit or terminal event; NaN from where it ends early."""
    from scipy.integrate import solve_ivp

    nq, nv = robot.nq, robot.nv
    dynamics = CompiledDynamics(robot.canonical, request, "float64", backend)
    torque = _torques(robot, law, grid, dynamics)
    forward = robot.compile(
        "forward_dynamics", method=request.method, dissipation=request.dissipation, dtype="float64", backend=backend
    )

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

    modes = None if rest is None else Modes(robot, rest, _without_friction(robot, request, backend), felt)

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
    asked = [_user_event(event, nq) for event in events]
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


def _without_friction(robot: Robot, request: Request, backend: str) -> CompiledFunction:
    """Forward dynamics with damping, if there is dissipation at all, and without Coulomb friction."""
    recipe = Recipe(without_friction(robot.canonical), (request,))
    return CompiledFunction(recipe, "float64", 1, backend)


class _Budget:
    """An event that ends a run which takes too many steps from one record to the next.

    Where friction or a law jumps at a state that the motion cannot leave, steps get ever shorter and none fails.
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


def _torques(robot: Robot, law: Law, grid: Grid, dynamics: CompiledDynamics) -> Callable[..., np.ndarray]:
    if isinstance(law, Function):
        return lambda t, q, qd: checked_torque(law.function, t, q, qd)
    form, at = law.form(robot), law.at(robot, grid)
    constants = law.constants(robot)

    def torque(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        given: Given = {name: list(np.ravel(value)) for name, value in {**at(t), **constants}.items()}
        return np.asarray(form.torque(dynamics, q.tolist(), qd.tolist(), given), dtype=float).reshape(robot.nv)

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
