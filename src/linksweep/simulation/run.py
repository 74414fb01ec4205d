"""`simulate`: from its arguments to a Simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..backends.rollout import Recording
from ..errors import ArgumentError
from ..functions.compiled import chosen_backend
from ..robot.robot import Robot, checked_robot
from ..support.checks import check_memory
from ..support.display import ProgressBar
from ..support.messages import shown
from .adaptive import integrate_adaptively
from .checks import broadcast_batch, check_closed, positive, real_array, step_count, whole
from .contacts import without_stops
from .controllers import Constant, Controller, Function, Grid, as_controller
from .diagnosis import Driven, warn_of
from .dynamics import forward_dynamics_of
from .fixed_step import Step, roll
from .friction import Rest, check_inside, rest_of
from .integrators import STAGES
from .options import Adaptive, Integrator, as_integrator, with_deprecated
from .result import Simulation
from .sampled_control import (
    Policy,
    SampledController,
    Sampling,
    SensorsAndMotors,
    controller_policy,
    policy_of,
    roll_sampled,
    schedule,
)

if TYPE_CHECKING:
    from .options import DeprecatedOptions, Settings, Torque


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
        Coordinates at the start. Leading axes are a batch of rollouts.
    qd0 : array_like, shape (..., nv), optional
        Velocities at the start; at rest if omitted.
    torque : controller, array_like or callable, optional
        What drives the joints: a controller of `linksweep.simulation` such as `PD`, constant torques (nv,), samples
        over time (steps + 1, ..., nv), or a function torque(t, q, qd) of one rollout. `SampledController` computes
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
        If an argument has the wrong shape or value, the duration is not a whole number of records, or the start
        violates constraints or hard stops.

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
        torque, method, disturbance = with_deprecated(deprecated, torque, method, disturbance)
    duration, dt, every = positive("duration", duration), positive("dt", dt), whole("every", every)
    steps = step_count(duration, dt, every)
    forward_dynamics = forward_dynamics_of(robot, method.method, dissipation)
    sampled = SampledController(torque) if isinstance(torque, Policy) else torque
    sampled = sampled if isinstance(sampled, SampledController) else None
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
    if sampled is not None and isinstance(method, Adaptive):
        raise ArgumentError("a policy and control_period need fixed steps: choose integrator='rk4' with a small dt.")
    q0 = robot.normalize(real_array("q0", q0, robot.nq))
    qd0 = np.zeros(robot.nv) if qd0 is None else real_array("qd0", qd0, robot.nv)
    check_inside(robot, rest, q0)
    check_closed(robot, q0, qd0)
    batch, dtype = broadcast_batch(q0=q0.shape[:-1], qd0=qd0.shape[:-1]), str(method.dtype)
    check_memory(
        "the result", (steps // every + 1, math.prod(batch), robot.nq + 3 * robot.nv), np.dtype(dtype).itemsize
    )
    grid = Grid(steps, duration / steps, STAGES.get(method.name, 3), forward_dynamics.dissipation)
    t = np.arange(steps // every + 1) * (every * grid.dt)
    t[-1] = duration
    settings: Settings = _settings(controller, grid, method.name, every, forward_dynamics.method, dtype)
    if sampled is not None:
        settings["torque"] = "policy" if policy is not None else repr(controller)
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
            _check_single(batch, dtype)
            settings["rtol"], settings["atol"], settings["max_steps"] = method.rtol, method.atol, method.max_steps
            result = integrate_adaptively(
                robot, controller, q0, qd0, grid, forward_dynamics, backend, t=t, method=method, watch=watch,
                settings=settings, rest=rest, push=forces, gains=gains,
            )  # fmt: skip
        else:
            recording = _recording(q0, qd0, batch, len(t), every, dtype)
            driven = controller if sampled is None else Constant(np.zeros(robot.nv))
            step = Step(robot, driven, method.name, forward_dynamics, rest, forces, gains)
            if sampled is None:
                feeds, kernel = step.feeds(grid, batch, dtype), step.kernel(dtype, backend)
                if math.prod(batch):
                    roll(kernel, recording, feeds, method.threads, watch)
            else:
                sampling = Sampling() if sampled.sampling is None else sampled.sampling
                plan = schedule(grid.dt if sampled.period is None else sampled.period, sampling.delay, grid.dt, every)
                torques = (
                    policy_of(policy.function, batch, robot.nv)
                    if policy is not None
                    else controller_policy(controller, robot, grid, batch, dtype, backend)
                )
                feeds, held = step.held_feeds(grid, batch, dtype)
                kernel = step.kernel(dtype, backend)
                if math.prod(batch):
                    measured = SensorsAndMotors(torques, sampling, robot, plan.period * grid.dt, batch)
                    roll_sampled(kernel, recording, feeds, held, measured, plan, grid, method.threads, watch)
            arrays = (*recording.states, *recording.results)
            q, qd, qdd, tau = (x.reshape(len(t), *batch, x.shape[-1]) for x in arrays)
            result = Simulation(robot, t, q, qd, qdd, tau, settings)
            if method.limits == "ignore":
                result.found_crossings = ()
    warn_of(result, Driven(controller if policy is None else None, grid, forces, rest))
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


def _settings(controller: Controller, grid: Grid, integrator: str, every: int, method: str, dtype: str) -> Settings:
    from linksweep.support.settings import __version__

    return {
        "integrator": integrator, "duration": grid.duration, "dt": grid.dt, "every": every, "torque": repr(controller),
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
