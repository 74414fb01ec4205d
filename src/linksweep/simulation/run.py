"""`simulate`: from what a user asks for to a Simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..backends.rollout import Recording
from ..backends.threads import checked_threads
from ..catalogue.requests import make_request
from ..compiled.function import chosen_backend
from ..errors import ArgumentError
from ..robot.robot import Robot, checked_robot
from ..support.memory import check_memory
from ..support.messages import nearest, shown
from ..support.numbers import checked_flag
from ..support.progress import ProgressBar
from .adaptive import integrate_adaptively
from .checks import broadcast_batch, check_closed, positive, real_array, step_count, whole
from .control.sampled import Controller, Sampling, Schedule, law_policy, policy_of, roll_sampled, schedule
from .control.signals import Grid
from .fixed_step import feeds_of, held_feeds, roll, step_kernel
from .laws import Constant, Function, Law, as_law
from .resting import Rest, Stops, check_inside, rest_of
from .result import Simulation
from .stepping import STAGES
from .verdicts import Driven, warn_of

if TYPE_CHECKING:
    from .options import Settings, Torque

INTEGRATORS = (*STAGES, "adaptive")
LIMITS = ("record", "stop", "ignore")


def simulate(
    robot: Robot, q0: ArrayLike, qd0: ArrayLike | None = None,
    torque: Torque = None, duration: float = 1.0, *, dt: float = 1e-3,
    integrator: str = "rk4", every: int = 1, dissipation: bool = False, limits: str = "record",
    method: str | None = None, dtype: DTypeLike = "float64", threads: int = 1, backend: str | None = None,
    events: Sequence[Callable[..., float]] = (), rtol: float = 1e-9, atol: float = 1e-9, max_steps: int = 5_000,
    progress: bool = True, policy: Callable[..., object] | None = None, control_period: float | None = None,
    sampling: Sampling | None = None, stops: Stops | None = None, disturbance: Law | None = None,
    constraints: str | Sequence[float] = "project",
) -> Simulation:  # fmt: skip
    """Integrate forward dynamics in time from q0 (..., nq) and qd0 (..., nv; None: at rest).

    duration, dt: seconds, of the run and of a step. torque: None, constants (nv,), samples over time (steps + 1, ...,
    nv), a law of `linksweep.simulation` (Constant, Sampled, FeedForward, PD, ComputedTorque), or a function torque(t,
    q, qd). integrator: "rk4" or "semi_implicit_euler" with steps of dt, whole batches at once; "adaptive" (DOP853 to
    rtol and atol, recorded every dt), one rollout, with `events`, functions event(t, q, qd) with SciPy's attributes
    terminal and direction. every: steps from one record to the next. dissipation: with damping and Coulomb friction.
    limits: "record" crossings, "ignore" them, or, adaptive only, "stop" at the first. method: of forward dynamics.
    max_steps: adaptive, from one record to the next; a run that needs more ends there, and says so. constraints:
    "project" puts a robot with constraints back onto them, its pose and its rates, the shortest way in the metric of M,
    after each fixed step, and wherever adaptive steps ask for accelerations; (kp, kd) are Baumgarte's gains in the
    place of it: the error e of the constraints then obeys e'' + kd e' + kp e = 0. The result's `constraint_drift` says
    how far they opened. progress: a bar on long runs, where stderr is a terminal.

    policy: in the place of torque, a function policy(t, q, qd) that gets the whole batch, (..., nq) and (..., nv), at
    every control instant and gives torques (..., nv). control_period: seconds between two of them, a whole number of
    steps; torques hold in between. Without a policy, the law `torque` is sampled so. sampling: delay, encoders, noise,
    bounds of the torques. stops: what ends joints at their limits: "inelastic", or (stiffness, damping) of springs.
    disturbance: a `Push`, a `Surface`, or a sum of them: what the world does, which the recorded torques leave out.
    """
    checked_robot(robot, "simulate")
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
    if disturbance is not None:
        if not isinstance(disturbance, Law) or isinstance(disturbance, Function):
            raise ArgumentError(f"disturbance is {shown(disturbance)}, expected a Push, a Surface, or a sum of them.")
        disturbance.check(robot)
    if policy is None and control_period is None and sampling is not None:
        raise ArgumentError("sampling is given without control_period, expected seconds between two control instants.")
    if policy is not None and torque is not None:
        raise ArgumentError("policy and torque are both given, expected one: a policy may add law.torque(t, q, qd).")
    rest = rest_of(robot, request.dissipation, stops)
    gains = _gains(robot, constraints, rest)
    sampled = policy is not None or control_period is not None
    if sampled and adaptive:
        raise ArgumentError("a policy and control_period need fixed steps: choose integrator='rk4' with a small dt.")
    q0 = robot.normalize(real_array("q0", q0, robot.nq))
    qd0 = np.zeros(robot.nv) if qd0 is None else real_array("qd0", qd0, robot.nv)
    check_inside(robot, rest, q0)
    check_closed(robot, q0, qd0)
    batch = broadcast_batch(q0=q0.shape[:-1], qd0=qd0.shape[:-1])
    check_memory(
        "the result", (steps // every + 1, math.prod(batch), robot.nq + 3 * robot.nv), np.dtype(dtype).itemsize
    )
    grid = Grid(steps, duration / steps, STAGES.get(integrator, 3), request.dissipation)
    t = np.arange(steps // every + 1) * (every * grid.dt)
    t[-1] = duration
    settings: Settings = _settings(law, grid, integrator, every, request.method, dtype)
    if sampled:
        settings["torque"] = "policy" if policy is not None else repr(law)
        settings["control_period"] = control_period or dt
        if sampling:
            settings["sampling"] = repr(sampling)
    if stops is not None:
        settings["stops"] = repr(stops)
    if disturbance is not None:
        settings["disturbance"] = repr(disturbance)
    if robot.model.constraints:
        settings["constraints"] = "project" if gains is None else list(gains)
    with ProgressBar(f"simulating {robot.name}", progress) as watch:
        if adaptive:
            _check_single(batch, dtype)
            rtol, atol, most = positive("rtol", rtol), positive("atol", atol), whole("max_steps", max_steps)
            settings["rtol"], settings["atol"], settings["max_steps"] = rtol, atol, most
            result = integrate_adaptively(
                robot, law, q0, qd0, grid, request, chosen_backend(backend), t=t, limits=limits, events=events,
                watch=watch, settings=settings, rest=rest, push=disturbance, gains=gains, rtol=rtol, atol=atol,
                max_steps=most,
            )  # fmt: skip
        else:
            own_backend = chosen_backend(backend)
            recording = _recording(q0, qd0, batch, len(t), every, dtype)
            if sampled:
                plan, chosen = _sampled(control_period, sampling, grid, every)
                acting = (
                    policy_of(policy, batch, robot.nv)
                    if policy is not None
                    else law_policy(law, robot, grid, batch, dtype, own_backend)
                )
                still = Constant(np.zeros(robot.nv))
                kernel = step_kernel(robot, still, integrator, request, dtype, own_backend, rest, disturbance, gains)
                feeds, held = held_feeds(robot, integrator, request, grid, batch, dtype, disturbance)
                if math.prod(batch):
                    controller = Controller(acting, chosen, robot, plan.period * grid.dt, batch)
                    roll_sampled(kernel, recording, feeds, held, controller, plan, grid, threads, watch)
            else:
                feeds = feeds_of(robot, law, integrator, request, grid, batch, dtype, disturbance)
                kernel = step_kernel(robot, law, integrator, request, dtype, own_backend, rest, disturbance, gains)
                if math.prod(batch):
                    roll(kernel, recording, feeds, threads, watch)
            arrays = (*recording.states, *recording.results)
            q, qd, qdd, tau = (x.reshape(len(t), *batch, x.shape[-1]) for x in arrays)
            result = Simulation(robot, t, q, qd, qdd, tau, settings)
            if limits == "ignore":
                result.found_crossings = ()
    warn_of(result, Driven(law if policy is None else None, grid, disturbance, rest))
    return result


def _recording(
    q0: np.ndarray, qd0: np.ndarray, batch: tuple[int, ...], moments: int, every: int, dtype: str
) -> Recording:
    count = math.prod(batch)
    states = [np.empty((moments, count, x.shape[-1]), dtype) for x in (q0, qd0)]
    for state, start in zip(states, (q0, qd0), strict=True):
        state[0] = np.broadcast_to(start, (*batch, start.shape[-1])).reshape(count, start.shape[-1])
    return Recording(states, [np.empty_like(states[1]) for _ in range(2)], every)


def _gains(robot: Robot, constraints: str | Sequence[float], rest: Rest | None) -> tuple[float, float] | None:
    """Baumgarte's gains; None where the robot is projected."""
    if isinstance(constraints, str) and constraints == "project":
        return None
    try:
        kp, kd = (float(x) for x in constraints)
    except (TypeError, ValueError, OverflowError):
        kp = kd = -1.0
    if isinstance(constraints, str) or not (0.0 <= kp < math.inf and 0.0 <= kd < math.inf):
        raise ArgumentError(
            f"constraints is {shown(constraints)}, expected 'project', or Baumgarte's gains (kp, kd), such as "
            f"(100.0, 20.0)."
        )
    if not robot.model.constraints:
        raise ArgumentError(f"constraints= gives gains, but {robot.name} has no constraints: leave it out.")
    if rest is not None:
        raise ArgumentError("Baumgarte's gains do not go with friction at rest or stops: leave constraints='project'.")
    return kp, kd


def _sampled(period: float | None, sampling: Sampling | None, grid: Grid, every: int) -> tuple[Schedule, Sampling]:
    if sampling is not None and not isinstance(sampling, Sampling):
        raise ArgumentError(f"sampling is {shown(sampling)}, expected a linksweep.simulation.Sampling.")
    chosen = Sampling() if sampling is None else sampling
    return schedule(grid.dt if period is None else period, chosen.delay, grid.dt, every), chosen


def _settings(law: Law, grid: Grid, integrator: str, every: int, method: str, dtype: str) -> Settings:
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


def _one_of(name: str, value: object, known: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise ArgumentError(f"{name} is {shown(value)}{nearest(value, known)}, expected one of {', '.join(known)}.")
    return value


def _dtype_name(dtype: DTypeLike) -> object:
    try:
        return np.dtype(dtype).name
    except TypeError:
        return dtype
