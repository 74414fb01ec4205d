"""`simulate`: integrate the forward dynamics of a robot in time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeAlias, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..backends.rollout import Recording
from ..errors import ArgumentError, warn_user
from ..functions.compiled import chosen_backend
from ..robot.robot import Robot, checked_robot
from ..support.checks import check_memory, real_number, whole_number
from ..support.display import ProgressBar
from ..support.messages import shown
from ..support.settings import __version__
from .adaptive import integrate_adaptively
from .checks import broadcast_batch, check_closed, real_array, whole_steps
from .contacts import JointStops, without_stops
from .controllers import Constant, Controller, Function, Grid, as_controller
from .diagnosis import Driven, warn_of
from .dynamics import forward_dynamics_of
from .fixed_step import Step, roll
from .friction import Rest, check_inside, rest_of
from .integrators import Adaptive, Integrator, as_integrator
from .result import Settings, Simulation
from .sampled_control import Policy, SampledController, Sampling, roll_sampled

if TYPE_CHECKING:
    from .friction import Stops

# constants, samples over time, a controller, a function torque(t, q, qd), or None
Torque: TypeAlias = "Controller | SampledController | Policy | Callable[..., ArrayLike] | ArrayLike | None"


class SimulateOptions(TypedDict, total=False):
    """Keyword arguments of `simulate`."""

    duration: float
    dt: float
    integrator: str | Integrator
    every: int
    dissipation: bool
    disturbance: Controller | None


class DeprecatedOptions(TypedDict, total=False):
    """Deprecated keyword arguments of `simulate`, which are now options of the objects it takes."""

    limits: str
    method: str | None
    dtype: DTypeLike
    threads: int
    backend: str | None
    progress: bool
    constraints: str | Sequence[float]
    events: Sequence[Callable[..., float]]
    rtol: float
    atol: float
    max_steps: int
    policy: Callable[..., object] | None
    control_period: float | None
    sampling: Sampling | None
    stops: Stops | None


def simulate(
    robot: Robot, q0: ArrayLike, qd0: ArrayLike | None = None, torque: Torque = None, duration: float = 1.0, *,
    dt: float = 1e-3, integrator: str | Integrator = "rk4", every: int = 1, dissipation: bool = False,
    disturbance: Controller | None = None, **deprecated: Unpack[DeprecatedOptions],
) -> Simulation:  # fmt: skip
    """Integrate the forward dynamics of a robot in time.

    Parameters
    ----------
    robot : Robot
        The robot to simulate.
    q0 : array_like, shape (..., nq)
        Initial coordinates. Leading axes are a batch of rollouts.
    qd0 : array_like, shape (..., nv), optional
        Initial velocities; at rest if omitted.
    torque : controller, array_like or callable, optional
        Driving torques: a controller of `linksweep.simulation` such as `PD`, constant torques (nv,), samples over time
        (steps + 1, ..., nv), or a function torque(t, q, qd) of one rollout. `SampledController` computes
        torques periodically, and `Policy` takes a function of the whole batch. No torque if omitted.
    duration : float
        Simulated time in seconds.
    dt : float
        Length of a step in seconds; with adaptive steps, the time between two records.
    integrator : str or Integrator
        "rk4", "semi_implicit_euler" or "adaptive", or an object with options: `RK4`, `SemiImplicitEuler`, `Adaptive`.
    every : int
        Number of steps from one record to the next.
    dissipation : bool
        Include joint damping and Coulomb friction.
    disturbance : Controller, optional
        Forces of the environment: `Push`, `Surface`, `JointStops`, a contact model of your own, or a sum of them.
        Recorded torques do not include them.
    **deprecated
        Former keyword arguments, which are now options of the objects above. They warn.

    Returns
    -------
    Simulation
        Times, coordinates, velocities, accelerations and driving torques at the recorded times.

    Raises
    ------
    ArgumentError
        If an argument has the wrong shape or value, the duration is not a whole number of records, or the initial
        state violates constraints or hard stops.

    Warns
    -----
    SimulationWarning
        If the run diverged, ended early, or chatters about rest.

    Examples
    --------
    >>> robot = ls.robots.puma560()
    >>> run = ls.simulate(robot, robot.neutral(), torque=ls.simulation.GravityCompensation(), duration=2.0)
    >>> run = ls.simulate(robot, robot.neutral(), integrator=ls.simulation.Adaptive(rtol=1e-12))
    """
    checked_robot(robot, "simulate")
    method = as_integrator(integrator)
    if deprecated:
        torque, method, disturbance = _with_deprecated(deprecated, torque, method, disturbance)
    duration, dt = real_number("duration", duration, above=0.0), real_number("dt", dt, above=0.0)
    every, steps = whole_number("every", every, at_least=1), whole_steps("duration", duration, dt)
    if steps % every:
        raise ArgumentError(f"every is {every}, expected a divisor of the number of steps, {steps}.")
    forward_dynamics = forward_dynamics_of(robot, method.method, dissipation)
    if isinstance(torque, Policy):
        torque = SampledController(torque)
    sampled = torque if isinstance(torque, SampledController) else None
    driver = torque if sampled is None else sampled.controller
    policy = driver if isinstance(driver, Policy) else None
    controller = as_controller(None if isinstance(driver, (Policy, SampledController)) else driver)
    controller.check(robot)
    if disturbance is not None:
        if not isinstance(disturbance, Controller) or isinstance(disturbance, Function):
            raise ArgumentError(f"disturbance is {shown(disturbance)}, expected a Push, a Surface, or a sum of them.")
        disturbance.check(robot)
    forces, stops = without_stops(disturbance)
    rest = rest_of(robot, forward_dynamics.dissipation, None if stops is None else stops.stops)
    gains = _gains(robot, method.constraints, rest)
    q0 = robot.normalize(real_array("q0", q0, robot.nq))
    qd0 = np.zeros(robot.nv) if qd0 is None else real_array("qd0", qd0, robot.nv)
    check_inside(robot, rest, q0)
    check_closed(robot, q0, qd0)
    batch, dtype = broadcast_batch(q0=q0.shape[:-1], qd0=qd0.shape[:-1]), str(method.dtype)
    if isinstance(method, Adaptive):
        _check_adaptive(batch, dtype, sampled)
    records = steps // every + 1
    check_memory("the result", (records, math.prod(batch), robot.nq + 3 * robot.nv), np.dtype(dtype).itemsize)
    grid = Grid(steps, duration / steps, method.stages, forward_dynamics.dissipation)
    t = np.arange(records) * (every * grid.dt)
    t[-1] = duration
    settings: Settings = {
        "integrator": method.name, "duration": grid.duration, "dt": grid.dt, "every": every,
        "torque": "policy" if policy is not None else repr(controller), "dissipation": grid.dissipation,
        "method": forward_dynamics.method, "dtype": dtype, "linksweep": __version__,
    }  # fmt: skip
    if sampled is not None:
        settings["control_period"] = sampled.period or dt
        if sampled.sampling:
            settings["sampling"] = repr(sampled.sampling)
    if stops is not None:
        settings["stops"] = repr(stops.stops)
    if forces is not None:
        settings["disturbance"] = repr(forces)
    if robot.model.constraints:
        settings["constraints"] = "project" if gains is None else list(gains)
    backend = chosen_backend(method.backend)
    with ProgressBar(f"simulating {robot.name}", method.progress) as watch:
        if isinstance(method, Adaptive):
            settings["rtol"], settings["atol"], settings["max_steps"] = method.rtol, method.atol, method.max_steps
            result = integrate_adaptively(
                robot, controller, q0, qd0, grid, forward_dynamics, backend, t=t, method=method, watch=watch,
                settings=settings, rest=rest, disturbance=forces, gains=gains,
            )  # fmt: skip
        else:
            recording = _recording(q0, qd0, batch, records, every, dtype)
            driven = controller if sampled is None else Constant(np.zeros(robot.nv))
            step = Step(robot, driven, method.name, forward_dynamics, rest, forces, gains)
            if sampled is None:
                feeds, kernel = step.feeds(grid, batch, dtype), step.kernel(dtype, backend)
                if math.prod(batch):
                    roll(kernel, recording, feeds, method.threads, watch)
            else:
                roll_sampled(step, sampled, policy or controller, grid, batch, recording, method, backend, watch)
            arrays = (*recording.states, *recording.results)
            q, qd, qdd, tau = (x.reshape(records, *batch, x.shape[-1]) for x in arrays)
            result = Simulation(robot, t, q, qd, qdd, tau, settings)
            if method.limits == "ignore":
                result.found_crossings = ()
    warn_of(result, Driven(controller if policy is None else None, grid, forces, rest))
    return result


def _recording(
    q0: np.ndarray, qd0: np.ndarray, batch: tuple[int, ...], records: int, every: int, dtype: str
) -> Recording:
    count = math.prod(batch)
    states = [np.empty((records, count, x.shape[-1]), dtype) for x in (q0, qd0)]
    for state, start in zip(states, (q0, qd0), strict=True):
        state[0] = np.broadcast_to(start, (*batch, start.shape[-1])).reshape(count, start.shape[-1])
    return Recording(states, [np.empty_like(states[1]) for _ in range(2)], every)


def _gains(robot: Robot, constraints: str | Sequence[float], rest: Rest | None) -> tuple[float, float] | None:
    """Return Baumgarte's gains, or None for projection onto the constraints."""
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
        raise ArgumentError(f"constraints is {shown(constraints)}, but {robot.name} has no constraints: omit it.")
    if rest is not None:
        raise ArgumentError("Baumgarte's gains exclude friction at rest and joint stops: use constraints='project'.")
    return kp, kd


def _check_adaptive(batch: tuple[int, ...], dtype: str, sampled: SampledController | None) -> None:
    if sampled is not None:
        raise ArgumentError("a policy and control_period need fixed steps: choose integrator='rk4' with a small dt.")
    if batch:
        raise ArgumentError(
            f"integrator='adaptive' got a batch {batch}, expected one rollout: simulate one at a time, or use "
            f"integrator='rk4'."
        )
    if dtype != "float64":
        raise ArgumentError(f"integrator='adaptive' got dtype {dtype!r}, expected 'float64'.")


# ---- deprecated keyword arguments


def _with_deprecated(
    options: DeprecatedOptions, torque: Torque, integrator: Integrator, disturbance: Controller | None
) -> tuple[Torque, Integrator, Controller | None]:
    """Return the objects that replace deprecated keyword arguments, and warn about each."""
    unknown = [name for name in options if name not in DeprecatedOptions.__annotations__]
    if unknown:
        raise TypeError(f"simulate() got an unexpected keyword argument {unknown[0]!r}")
    warn_user(f"simulate: {'; '.join(_replacement(name, integrator) for name in options)}", DeprecationWarning)
    policy, period, sampling = (options.get(name) for name in ("policy", "control_period", "sampling"))
    if policy is not None and torque is not None:
        raise ArgumentError("policy and torque are both specified, expected one of them.")
    if policy is None and period is None and sampling is not None:
        raise ArgumentError("sampling needs control_period, the time (s) between two evaluations of the controller.")
    if (policy is not None or period is not None) and not isinstance(torque, SampledController):
        torque = SampledController(torque if policy is None else Policy(policy), period, sampling)
    stops = options.get("stops")
    if stops is not None:
        joint_stops = JointStops() if isinstance(stops, str) and stops == "inelastic" else JointStops.springs(stops)
        disturbance = joint_stops if disturbance is None else disturbance + joint_stops
    if options.get("events") and not isinstance(integrator, Adaptive):
        raise ArgumentError("events needs integrator='adaptive': fixed steps report crossings, but do not stop.")
    names = [field.name for field in fields(integrator)]
    return torque, replace(integrator, **{k: v for k, v in options.items() if k in names}), disturbance


def _replacement(name: str, integrator: Integrator) -> str:
    if name in ("policy", "control_period", "sampling"):
        new = "torque=SampledController(controller or Policy(function), period, Sampling(...))"
    elif name == "stops":
        new = "disturbance=JointStops(...)"
    else:
        adaptive = name in ("events", "rtol", "atol", "max_steps")
        new = f"integrator={'Adaptive' if adaptive else type(integrator).__name__}({name}=...)"
    return f"{name}= is deprecated, use {new}"
