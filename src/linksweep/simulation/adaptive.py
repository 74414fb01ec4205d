"""Adaptive steps by SciPy's DOP853: torques of any Python function, events, dense output. One rollout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError
from ..foreign import refuse_foreign
from ..functions import Request
from ..names import shown
from .columns import CompiledDynamics, checked_torque
from .laws import Function, Grid, Law, torque_of
from .result import Event, LimitCrossing, Simulation, limited_joints

if TYPE_CHECKING:
    from ..robot import Robot


def integrate_adaptively(
    robot: Robot, law: Law, q0: np.ndarray, qd0: np.ndarray, grid: Grid, request: Request, backend: str,
    *, t: np.ndarray, limits: str, events: Sequence[Callable[..., Any]], rtol: float, atol: float,
    watch: Callable[[float], None], settings: dict[str, Any],
) -> Simulation:  # fmt: skip
    """The motion at times t, or up to a limit or terminal event; NaN from where no step is small enough."""
    from scipy.integrate import solve_ivp

    nq, nv = robot.nq, robot.nv
    dynamics = CompiledDynamics(robot.canonical, request, "float64", backend)
    torque = _torques(robot, law, grid, dynamics)
    forward = robot.compile(
        "forward_dynamics", method=request.method, dissipation=request.dissipation, dtype="float64", backend=backend
    )

    def rate(time: float, state: np.ndarray) -> np.ndarray:
        q, qd = state[:nq], state[nq:]
        if not np.isfinite(state).all():
            return np.full(nq + nv, np.nan)
        watch(time / grid.duration)
        return np.concatenate([robot.coordinate_rates(q, qd), forward(q, qd, torque(time, q, qd))])

    bounded = [] if limits == "ignore" else limited_joints(robot)
    stops = [event for joint in bounded for event in _limit_events(joint, limits == "stop")]
    _check_start(bounded, q0, limits)
    asked = [_user_event(event, nq) for event in events]
    start, watched = np.concatenate([q0, qd0]), [event for _, _, event in stops] + asked
    with np.errstate(all="ignore"):
        found = _stuck(rate, start, grid.duration, rtol, atol, len(watched)) or solve_ivp(
            rate, (0.0, grid.duration), start, method="DOP853", t_eval=t, rtol=rtol, atol=atol, events=watched or None,
            dense_output=True,
        )  # fmt: skip
    times, states = np.asarray(found.t), np.asarray(found.y).T.reshape(-1, nq + nv)
    moments = list(found.t_events or [])
    at_events = [np.asarray(y).reshape(-1, nq + nv) for y in (found.y_events or [])]
    if found.status == 1 and (not len(times) or times[-1] < max(m[-1] for m in moments if len(m))):
        last = max((k for k, m in enumerate(moments) if len(m)), key=lambda k: moments[k][-1])
        times, states = np.append(times, moments[last][-1]), np.vstack([states, at_events[last][-1:]])
    if found.status < 0:  # no step is small enough: the motion ends before its time
        settings["failure"] = str(found.message)
        states = np.vstack([states, np.full((len(t) - len(times), nq + nv), np.nan)])
        times = t
    q, qd = _normalized(robot, states[:, :nq]), states[:, nq:]
    rows = zip(times, q, qd, strict=True)
    tau = np.array([torque(*row) if np.isfinite(row[1]).all() else np.full(nv, np.nan) for row in rows])
    crossings = [LimitCrossing(joint, bound, 0.0) for joint, bound in _outside(bounded, q0)]
    crossings += [LimitCrossing(*stop[:2], float(m[0])) for stop, m in zip(stops, moments, strict=False) if len(m)]
    own = zip(moments[len(stops) :], at_events[len(stops) :], strict=True)
    return Simulation(
        robot, times, q, qd, forward(q, qd, tau), tau, settings,
        tuple(Event(np.asarray(m), _normalized(robot, y[:, :nq]), y[:, nq:]) for m, y in own),
        found.sol and _dense(robot, found.sol, float(times[-1]) if found.status >= 0 else float(found.t[-1])),
        tuple(sorted(crossings, key=lambda crossing: crossing.time)),
    )  # fmt: skip


def _stuck(
    rate: Callable[..., np.ndarray], start: np.ndarray, duration: float, rtol: float, atol: float, events: int
) -> Any:
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
    at, constants = law.at(robot, grid), law.constants(robot)

    def torque(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        given = {**at(t), **constants}
        return np.asarray(torque_of(law.kind, dynamics, q.tolist(), qd.tolist(), given), dtype=float).reshape(robot.nv)

    return torque


def _normalized(robot: Robot, q: np.ndarray) -> np.ndarray:
    fine = np.isfinite(q).all(axis=-1)
    out = q.copy()
    out[fine] = robot.normalize(q[fine])
    return out


def _limit_events(joint: tuple[str, int, tuple[float, float]], terminal: bool) -> list[tuple[str, str, Any]]:
    name, place, bounds = joint
    events = []
    for bound, value in zip(("lower", "upper"), bounds, strict=True):
        if np.isfinite(value):

            def event(t: float, state: np.ndarray, value: float = value) -> float:
                return float(state[place] - value)

            event.terminal = terminal  # type: ignore[attr-defined]
            event.direction = -1 if bound == "lower" else 1  # type: ignore[attr-defined]
            events.append((name, bound, event))
    return events


def _outside(bounded: list[Any], q0: np.ndarray) -> list[tuple[str, str]]:
    lower = [(name, "lower") for name, place, bounds in bounded if q0[place] < bounds[0]]
    return lower + [(name, "upper") for name, place, bounds in bounded if q0[place] > bounds[1]]


def _check_start(bounded: list[Any], q0: np.ndarray, limits: str) -> None:
    outside = _outside(bounded, q0)
    if outside and limits == "stop":
        name, bound = outside[0]
        raise ArgumentError(
            f"q0 is outside the {bound} limit of joint {name} already, where limits='stop' would stop: start inside, "
            f"or use limits='record'."
        )


def _user_event(event: Any, nq: int) -> Callable[..., float]:
    if not callable(event):
        raise ArgumentError(f"events holds {shown(event)}, expected functions event(t, q, qd) that cross 0.")

    def wrapped(t: float, state: np.ndarray) -> float:
        found: Any = event(t, state[:nq], state[nq:])
        if np.ndim(found) or not isinstance(found, (float, int, np.number, np.ndarray)):
            raise ArgumentError(
                f"event(t, q, qd) gave {shown(found)} at t = {t:g}, expected one real number that crosses 0."
            )
        return float(found)

    wrapped.terminal = getattr(event, "terminal", False)  # type: ignore[attr-defined]
    wrapped.direction = getattr(event, "direction", 0)  # type: ignore[attr-defined]
    return wrapped


def _dense(robot: Robot, solution: Any, end: float) -> Callable[[Any], tuple[np.ndarray, np.ndarray]]:
    def dense(t: Any) -> tuple[np.ndarray, np.ndarray]:
        refuse_foreign("dense: t", t)
        times = np.asarray(t, dtype=float)
        if not ((times >= 0.0) & (times <= end)).all():
            raise ArgumentError(f"dense got times outside 0 to {end:g}, where the simulation ended.")
        states = np.moveaxis(solution(times.reshape(-1)), 0, -1).reshape(*times.shape, robot.nq + robot.nv)
        return robot.normalize(states[..., : robot.nq]), states[..., robot.nq :]

    return dense
