"""`simulate`: from what a user asks for to a Simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backends.rollout import Recording
from ..backends.threads import checked_threads
from ..catalogue.requests import checked_flag, make_request
from ..compiled.function import chosen_backend
from ..errors import ArgumentError
from ..support.messages import nearest, shown
from .adaptive import integrate_adaptively
from .checks import broadcast_batch, check_closed, check_memory, positive, real_array, step_count, whole
from .fixed_step import feeds_of, roll, step_kernel
from .laws import Grid, Law, as_law
from .progress import ProgressBar
from .result import Simulation
from .stepping import STAGES
from .verdicts import warn_of

if TYPE_CHECKING:
    from ..robot.robot import Robot

INTEGRATORS = (*STAGES, "adaptive")
LIMITS = ("record", "stop", "ignore")


def simulate(
    robot: Robot, q0: Any, qd0: Any = None, torque: Any = None, duration: float = 1.0, *, dt: float = 1e-3,
    integrator: str = "rk4", every: int = 1, dissipation: bool = False, limits: str = "record",
    method: str | None = None, dtype: Any = "float64", threads: int = 1, backend: str | None = None,
    events: Sequence[Callable[..., Any]] = (), rtol: float = 1e-9, atol: float = 1e-9, max_steps: int = 5_000,
    progress: bool = True,
) -> Simulation:  # fmt: skip
    """Integrate forward dynamics in time from q0 (..., nq) and qd0 (..., nv; None: at rest).

    torque: None, constants (nv,), samples over time (steps + 1, ..., nv), a law of `linksweep.simulation` (Constant,
    Sampled, FeedForward, PD, ComputedTorque), or a function torque(t, q, qd). integrator: "rk4" or
    "semi_implicit_euler" with steps of dt, whole batches at once; "adaptive" (DOP853 to rtol and atol, recorded every
    dt), one rollout, with `events`, functions event(t, q, qd) with SciPy's attributes terminal and direction. every:
    steps from one record to the next. dissipation: with damping and Coulomb friction. limits: "record" crossings,
    "ignore" them, or, adaptive only, "stop" at the first. method: of forward dynamics. max_steps: adaptive, from one
    record to the next; a run that needs more ends there, and says so. A robot with constraints is put back onto them
    after each fixed step, its pose and its rates, the shortest way in the metric of M. progress: a bar on long runs,
    where stderr is a terminal.
    """
    if not hasattr(robot, "canonical"):
        raise ArgumentError(f"simulate got {shown(robot)}, expected a Robot: use linksweep.load or linksweep.robots.")
    integrator = _one_of("integrator", integrator, INTEGRATORS)
    limits = _one_of("limits", limits, LIMITS)
    dtype = _one_of("dtype", dtype if isinstance(dtype, str) else _dtype_name(dtype), ("float64", "float32"))
    duration, dt, every, threads = (
        positive("duration", duration),
        positive("dt", dt),
        whole("every", every),
        checked_threads(threads),
    )
    adaptive = integrator == "adaptive"
    if not isinstance(events, (list, tuple)):
        raise ArgumentError(f"events is {shown(events)}, expected a list of functions event(t, q, qd).")
    if not adaptive and (limits == "stop" or events):
        wanted = "limits='stop'" if limits == "stop" else "events"
        raise ArgumentError(f"{wanted} needs integrator='adaptive': fixed steps report crossings, but do not stop.")
    steps = step_count(duration, dt, every)
    request = make_request(robot, "forward_dynamics", method, dissipation=checked_flag("dissipation", dissipation))
    law = as_law(torque)
    law.check(robot)
    q0 = robot.normalize(real_array("q0", q0, robot.nq))
    qd0 = np.zeros(robot.nv) if qd0 is None else real_array("qd0", qd0, robot.nv)
    check_closed(robot, q0, qd0)
    batch = broadcast_batch(q0=q0.shape[:-1], qd0=qd0.shape[:-1])
    check_memory(
        "the result", (steps // every + 1, math.prod(batch), robot.nq + 3 * robot.nv), np.dtype(dtype).itemsize
    )
    grid = Grid(steps, duration / steps, STAGES.get(integrator, 3), request.dissipation)
    t = np.arange(steps // every + 1) * (every * grid.dt)
    t[-1] = duration
    settings = _settings(law, grid, integrator, every, request.method, dtype)
    with ProgressBar(f"simulating {robot.name}", progress) as watch:
        if adaptive:
            _check_single(batch, dtype)
            tolerances: dict[str, Any] = {"rtol": positive("rtol", rtol), "atol": positive("atol", atol)}
            tolerances["max_steps"] = whole("max_steps", max_steps)
            result = integrate_adaptively(
                robot, law, q0, qd0, grid, request, chosen_backend(backend), t=t, limits=limits, events=events,
                watch=watch, settings=settings | tolerances, **tolerances,
            )  # fmt: skip
        else:
            feeds = feeds_of(robot, law, integrator, request, grid, batch, dtype)
            kernel = step_kernel(robot, law, integrator, request, dtype, chosen_backend(backend))
            recording = _recording(q0, qd0, batch, len(t), every, dtype)
            if math.prod(batch):
                roll(kernel, recording, feeds, threads, watch)
            arrays = (*recording.states, *recording.results)
            q, qd, qdd, tau = (x.reshape(len(t), *batch, x.shape[-1]) for x in arrays)
            result = Simulation(robot, t, q, qd, qdd, tau, settings)
            if limits == "ignore":
                result.found_crossings = ()
    warn_of(result)
    return result


def _recording(
    q0: np.ndarray, qd0: np.ndarray, batch: tuple[int, ...], moments: int, every: int, dtype: str
) -> Recording:
    count = math.prod(batch)
    states = [np.empty((moments, count, x.shape[-1]), dtype) for x in (q0, qd0)]
    for state, start in zip(states, (q0, qd0), strict=True):
        state[0] = np.broadcast_to(start, (*batch, start.shape[-1])).reshape(count, start.shape[-1])
    return Recording(states, [np.empty_like(states[1]) for _ in range(2)], every)


def _settings(law: Law, grid: Grid, integrator: str, every: int, method: str, dtype: str) -> dict[str, Any]:
    from linksweep.support.version import __version__

    return {
        "integrator": integrator, "duration": grid.duration, "dt": grid.dt, "every": every, "torque": repr(law),
        "dissipation": grid.dissipation, "method": method, "dtype": dtype, "linksweep": __version__,
    }  # fmt: skip


def _check_single(batch: tuple[int, ...], dtype: str) -> None:
    if batch:
        raise ArgumentError(
            f"integrator='adaptive' got a batch {batch}, expected one rollout, since each chooses its own steps: "
            f"simulate them one after the other, or with integrator='rk4'."
        )
    if dtype != "float64":
        raise ArgumentError("integrator='adaptive' computes in float64: leave dtype alone.")


def _one_of(name: str, value: Any, known: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise ArgumentError(f"{name} is {shown(value)}{nearest(value, known)}, expected one of {', '.join(known)}.")
    return value


def _dtype_name(dtype: Any) -> Any:
    try:
        return np.dtype(dtype).name
    except TypeError:
        return dtype
