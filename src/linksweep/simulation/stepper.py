"""`stepper`: advance a batch of states by one step at a time, in place, for simulation loops of your own."""

from __future__ import annotations

import functools
import math

import numpy as np
from numpy.typing import ArrayLike

from ..backends.llvm import MachineKernel
from ..backends.threads import checked_threads, run_shared
from ..errors import ArgumentError
from ..functions.compiled import chosen_backend
from ..robot.robot import Robot, checked_robot
from ..support.checks import check_memory, checked_dtype, one_of, real_number, refuse_foreign
from ..support.messages import shown
from .checks import broadcast_batch, check_closed, real_array
from .controllers import Constant
from .dynamics import forward_dynamics_of
from .fixed_step import Kernel, Step
from .friction import Rest, Stops, check_inside, rest_of
from .integrators import FIXED_STEP

_BLOCK = 512  # samples that a thread takes at a time


class State:
    """State of a Stepper: q (..., nq), qd, qdd and tau (..., nv), and the time t (s).

    Write q and qd between two steps to reset rollouts: `state.q = q0`, or in place, `state.q[3] = q0`. Assigning copies
    the values and normalizes coordinates. qdd and tau are those at the beginning of the last step. A state belongs to
    the stepper that made it. `copy.copy(state)` is an independent state.
    """

    __slots__ = ("_arrays", "_checked", "_inputs", "_outputs", "_run", "_stepper", "steps")

    def __init__(self, owner: Stepper, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, tau: np.ndarray, steps: int = 0):
        self._stepper, self._arrays, self.steps = owner, (q, qd, qdd, tau), steps
        rows = [x.reshape(-1, x.shape[-1]) for x in self._arrays]
        self._inputs = [rows[0], rows[1], np.full((1, 1), owner.dt, owner.dtype), rows[3]]
        self._outputs = rows
        self._checked = [x.copy() for x in rows[:2]] if owner.restricts else None  # to detect edits in place
        self._run = None
        if isinstance(owner.kernel, MachineKernel) and len(rows[0]):
            # unrolled code reads all of a sample before it writes, so a state may overwrite itself (rollout.py)
            size = len(rows[0]) if owner.threads == 1 else _BLOCK
            self._run = owner.kernel.shared(self._inputs, self._outputs, size)

    @property
    def q(self) -> np.ndarray:
        """Coordinates (..., nq)."""
        return self._arrays[0]

    @q.setter
    def q(self, value: ArrayLike) -> None:
        if value is not self._arrays[0]:  # `state.q += 0.1` has written it already
            robot = self._stepper.robot
            self._assign("q", 0, robot.normalize(real_array("state.q", value, robot.nq)))

    @property
    def qd(self) -> np.ndarray:
        """Velocities (..., nv)."""
        return self._arrays[1]

    @qd.setter
    def qd(self, value: ArrayLike) -> None:
        if value is not self._arrays[1]:
            self._assign("qd", 1, real_array("state.qd", value, self._stepper.robot.nv))

    @property
    def qdd(self) -> np.ndarray:
        """Accelerations (..., nv) at the beginning of the last step."""
        return self._arrays[2]

    @property
    def tau(self) -> np.ndarray:
        """Torques (..., nv) of the last step."""
        return self._arrays[3]

    def _assign(self, name: str, index: int, value: np.ndarray) -> None:
        array = self._arrays[index]
        try:
            array[...] = value
        except ValueError:
            raise ArgumentError(f"state.{name} got shape {value.shape}, expected {array.shape}.") from None

    @property
    def t(self) -> float:
        """Time since the start (s)."""
        return self.steps * self._stepper.dt

    def advance(self) -> None:
        """Take one step with the torques in `tau`."""
        if self._checked is not None:
            self._check_edits(*self._checked)
        if self._run is not None:
            work = self._run.again()
            if self._stepper.threads == 1:
                work.run()
            else:
                run_shared(work, self._stepper.threads)
        elif len(self._outputs[0]):
            results = [np.empty_like(x) for x in self._outputs]
            self._stepper.kernel(self._inputs, results)
            for array, result in zip(self._outputs, results, strict=True):
                array[:] = result
        self.steps += 1
        if self._checked is not None:
            for checked, array in zip(self._checked, self._outputs, strict=False):
                checked[:] = array

    def _check_edits(self, *checked: np.ndarray) -> None:
        """Raise ArgumentError for rows written since the last step that are not valid initial states."""
        bits = f"i{checked[0].itemsize}"  # NaN of a diverged rollout is unchanged
        edited = np.zeros(len(checked[0]), bool)
        for before, array in zip(checked, self._outputs, strict=False):
            edited |= (before.view(bits) != array.view(bits)).any(axis=1)
        if edited.any():
            q, qd = (x[edited].astype(float) for x in self._outputs[:2])
            self._stepper.check_start(q, qd, ("state.q", "state.qd"))

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self._stepper, self._arrays, self.steps)

    def __repr__(self) -> str:
        return f"<State of {math.prod(self.q.shape[:-1])} at t = {self.t:g} s>"


def _restored(owner: Stepper, arrays: tuple[np.ndarray, ...], steps: int) -> State:
    q, qd, qdd, tau = (np.array(x, order="C") for x in arrays)
    return State(owner, q, qd, qdd, tau, steps)


class Stepper:
    """A time step of a batch of states: `step = stepper(robot, dt)`, `state = step.start(q0)`, `step(state, tau)`.

    tau is copied into the state, and the state is overwritten. Compiled steps allocate no arrays.
    """

    def __init__(
        self, robot: Robot, dt: float, kernel: Kernel, dtype: str, threads: int, rest: Rest | None,
        options: dict[str, object],
    ):  # fmt: skip
        self._rest, self._options = rest, options
        self.robot, self.dt, self.dtype = robot, dt, np.dtype(dtype)
        self.kernel, self.threads = kernel, threads
        # whether states must satisfy constraints or be within hard stops
        self.restricts = bool(robot.model.constraints) or (rest is not None and bool(rest.hard_stops))

    def start(self, q0: ArrayLike, qd0: ArrayLike | None = None) -> State:
        """Return a state at q0 (..., nq) and qd0 (..., nv), by default at rest, with t = 0."""
        robot = self.robot
        q0 = robot.normalize(real_array("q0", q0, robot.nq))
        qd0 = np.zeros(robot.nv) if qd0 is None else real_array("qd0", qd0, robot.nv)
        batch = broadcast_batch(q0=q0.shape[:-1], qd0=qd0.shape[:-1])
        check_memory("the state", (*batch, robot.nq + 3 * robot.nv), self.dtype.itemsize)
        self.check_start(q0, qd0, ("q0", "qd0"))
        q, qd = (np.array(np.broadcast_to(x, (*batch, x.shape[-1])), self.dtype, order="C") for x in (q0, qd0))
        return State(self, q, qd, np.zeros_like(qd), np.zeros_like(qd))

    def check_start(self, q: np.ndarray, qd: np.ndarray, names: tuple[str, str]) -> None:
        """Raise ArgumentError for states that violate constraints or are beyond hard stops."""
        check_inside(self.robot, self._rest, q, names[0])
        check_closed(self.robot, q, qd, names)

    def __call__(self, state: State, tau: ArrayLike) -> State:
        """Advance the state by dt with torques (..., nv), which are held for the step, and return it."""
        if not isinstance(state, State):
            raise ArgumentError(f"step got {shown(state)}, expected a State: make one by step.start(q0).")
        if state._stepper is not self:
            self._adopt(state)
        if type(tau) is not np.ndarray:
            refuse_foreign("tau", tau)
        try:
            np.copyto(state.tau, tau, casting="same_kind")
        except (TypeError, ValueError):
            raise ArgumentError(
                f"step got tau {shown(tau)}, expected real numbers that broadcast to {state.tau.shape}."
            ) from None
        state.advance()
        return state

    def _adopt(self, state: State) -> None:
        """Accept the state of an equal stepper, such as a pickled one; raise ArgumentError for another."""
        other = state._stepper
        if (self.dt, self._options) != (other.dt, other._options) or self.robot != other.robot:
            raise ArgumentError(
                f"step got a state of {other!r}, expected one of {self!r} with the same options: use "
                f"step.start(state.q, state.qd)."
            )
        state._stepper = self

    def __reduce__(self) -> tuple[object, ...]:
        return functools.partial(stepper, self.robot, self.dt, **self._options, threads=self.threads), ()

    def __deepcopy__(self, memo: dict[int, object]) -> Stepper:
        return self  # it is immutable

    def __copy__(self) -> Stepper:
        return self

    def __repr__(self) -> str:
        return f"<Stepper of {self.robot.name}, dt {self.dt:g} s>"


def stepper(
    robot: Robot, dt: float, *, integrator: str = "rk4", dissipation: bool = False, method: str | None = None,
    dtype: str = "float64", threads: int = 1, backend: str | None = None, stops: Stops | None = None,
) -> Stepper:  # fmt: skip
    """Return a function that advances a batch of states by one time step, in place, for simulation loops of your own.

    Parameters
    ----------
    robot : Robot
        The robot to simulate.
    dt : float
        Length of a step in seconds. Torques hold for the step.
    integrator : str
        "rk4" or "semi_implicit_euler".
    dissipation : bool
        Include joint damping and Coulomb friction.
    method : str, optional
        Algorithm of forward dynamics.
    dtype : str
        "float64" or "float32".
    threads : int
        Native threads that share a batch.
    backend : str, optional
        Backend of the compiled step.
    stops : str or (stiffness, damping), optional
        Joint limit stops: "inelastic", or springs.

    Returns
    -------
    Stepper
        `start(q0, qd0)` makes a state, and calling the stepper with a state and torques (..., nv) advances it.

    Raises
    ------
    ArgumentError
        If an option is invalid, or no joint has limits for `stops`.

    Examples
    --------
    >>> step = ls.stepper(robot, 0.01)
    >>> state = step.start(q0)
    >>> step(state, tau).q
    """
    checked_robot(robot, "stepper")
    one_of("integrator", integrator, FIXED_STEP)
    name = checked_dtype(dtype)
    if name is None:
        raise ArgumentError("dtype is None, expected 'float64' or 'float32'.")
    forward_dynamics = forward_dynamics_of(robot, method, dissipation)
    rest = rest_of(robot, forward_dynamics.dissipation, stops)
    backend = chosen_backend(backend)
    kernel = Step(robot, Constant(np.zeros(robot.nv)), integrator, forward_dynamics, rest).kernel(name, backend)
    springs = None if rest is None else rest.spring
    options: dict[str, object] = {
        "integrator": integrator, "dissipation": forward_dynamics.dissipation, "method": forward_dynamics.method,
        "dtype": name, "backend": backend, "stops": None if stops is None else springs or "inelastic",
    }  # fmt: skip
    return Stepper(robot, real_number("dt", dt, above=0.0), kernel, name, checked_threads(threads), rest, options)
