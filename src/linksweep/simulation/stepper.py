"""`stepper`: one step of a whole batch at a time, in place, for loops that are written by hand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..backends.llvm import MachineKernel
from ..backends.threads import checked_threads, run_shared
from ..catalogue.requests import checked_flag, make_request
from ..compiled.function import chosen_backend
from ..errors import ArgumentError
from ..support.foreign import refuse_foreign
from ..support.memory import check_memory
from ..support.messages import nearest, shown
from .checks import broadcast_batch, positive, real_array
from .columns import Kernel
from .fixed_step import step_kernel
from .laws import Constant
from .resting import Rest, Stops, check_inside, rest_of
from .stepping import STAGES

if TYPE_CHECKING:
    from ..robot.robot import Robot

_BLOCK = 512  # samples that a thread takes at a time


class State:
    """What a Stepper moves on: q (..., nq), qd, qdd and tau (..., nv), in memory of its own, and the time t.

    q and qd may be written between two steps, to reset a rollout. qdd and tau are those at the beginning of the last
    step.
    """

    def __init__(self, q: np.ndarray, qd: np.ndarray, dt: np.ndarray, kernel: Kernel, threads: int):
        self.q, self.qd = q, qd
        self.qdd, self.tau = np.zeros_like(qd), np.zeros_like(qd)
        self.steps, self._dt = 0, float(dt[0, 0])
        self._kernel, self._threads = kernel, threads
        self._rows = [x.reshape(-1, x.shape[-1]) for x in (self.q, self.qd, self.qdd, self.tau)]
        q_rows, qd_rows, qdd_rows, tau_rows = self._rows
        self._inputs, self._outputs = [q_rows, qd_rows, dt, tau_rows], [q_rows, qd_rows, qdd_rows, tau_rows]
        self._run = None
        if isinstance(kernel, MachineKernel) and len(q_rows):
            # written-out code reads all of a sample before it writes: a state may overwrite itself (rollout.py)
            self._run = kernel.shared(self._inputs, self._outputs, len(q_rows) if threads == 1 else _BLOCK)

    @property
    def t(self) -> float:
        """Seconds since the start."""
        return self.steps * self._dt

    def advance(self) -> None:
        """One step with the torques in `tau`."""
        if self._run is not None:
            work = self._run.again()
            if self._threads == 1:
                work.run()
            else:
                run_shared(work, self._threads)
        elif len(self._rows[0]):
            found = [np.empty_like(x) for x in self._outputs]
            self._kernel(self._inputs, found)
            for own, new in zip(self._outputs, found, strict=True):
                own[:] = new

    def __repr__(self) -> str:
        return f"<State of {math.prod(self.q.shape[:-1])} at t = {self.t:g} s>"


class Stepper:
    """`step = stepper(robot, dt)`; `state = step.start(q0)`; then `step(state, tau)` moves it on by dt, in place.

    No array is made in a step (by machine code): tau is copied into the state, and the state is overwritten.
    """

    def __init__(self, robot: Robot, dt: float, kernel: Kernel, dtype: str, threads: int, rest: Rest | None):
        self._rest = rest
        self.robot, self.dt, self.dtype = robot, dt, np.dtype(dtype)
        self._kernel, self._threads = kernel, threads

    def start(self, q0: ArrayLike, qd0: ArrayLike | None = None) -> State:
        """A state at q0 (..., nq) and qd0 (..., nv; None: at rest), t = 0."""
        robot = self.robot
        q0 = robot.normalize(real_array("q0", q0, robot.nq))
        qd0 = np.zeros(robot.nv) if qd0 is None else real_array("qd0", qd0, robot.nv)
        check_inside(robot, self._rest, q0)
        batch = broadcast_batch(q0=q0.shape[:-1], qd0=qd0.shape[:-1])
        check_memory("the state", (*batch, robot.nq + 3 * robot.nv), self.dtype.itemsize)
        q, qd = (np.array(np.broadcast_to(x, (*batch, x.shape[-1])), self.dtype, order="C") for x in (q0, qd0))
        return State(q, qd, np.full((1, 1), self.dt, self.dtype), self._kernel, self._threads)

    def __call__(self, state: State, tau: ArrayLike) -> State:
        """Move the state on by dt with these torques (..., nv), held for the step; the state itself comes back."""
        if not isinstance(state, State):
            raise ArgumentError(f"step got {shown(state)}, expected a State: make one by step.start(q0).")
        try:
            np.copyto(state.tau, tau, casting="same_kind")
        except (TypeError, ValueError):
            refuse_foreign("tau", tau)
            raise ArgumentError(
                f"step got tau {shown(tau)}, expected real numbers that fit {state.tau.shape}: one for each rate."
            ) from None
        state.advance()
        state.steps += 1
        return state

    def __repr__(self) -> str:
        return f"<Stepper of {self.robot.name}, dt {self.dt:g} s>"


def stepper(
    robot: Robot, dt: float, *, integrator: str = "rk4", dissipation: bool = False, method: str | None = None,
    dtype: str = "float64", threads: int = 1, backend: str | None = None, stops: Stops | None = None,
) -> Stepper:  # fmt: skip
    """A step of dt for batches of states, with torques that hold for the step; options are those of `simulate`.

    dt: seconds of a step. integrator: "rk4" or "semi_implicit_euler". dissipation: with damping and Coulomb friction.
    method: of forward dynamics. threads: how many a batch is split over. stops: what ends joints at their limits:
    "inelastic", or (stiffness, damping) of springs.

    step = ls.stepper(robot, 0.01); state = step.start(q0); step(state, tau) moves the state on, in place.
    """
    if not hasattr(robot, "canonical"):
        raise ArgumentError(f"stepper got {shown(robot)}, expected a Robot: use linksweep.load or linksweep.robots.")
    if integrator not in STAGES:
        raise ArgumentError(
            f"integrator is {shown(integrator)}{nearest(integrator, STAGES)}, expected one of {', '.join(STAGES)}."
        )
    name = np.dtype(dtype).name if dtype in ("float64", "float32", np.float64, np.float32) else ""
    if not name:
        raise ArgumentError(f"dtype is {shown(dtype)}, expected float64 or float32.")
    request = make_request(robot, "forward_dynamics", method, dissipation=checked_flag("dissipation", dissipation))
    law = Constant(np.zeros(robot.nv))
    rest = rest_of(robot, request.dissipation, stops)
    kernel = step_kernel(robot, law, integrator, request, name, chosen_backend(backend), rest)
    return Stepper(robot, positive("dt", dt), kernel, name, checked_threads(threads), rest)
