"""`rollout`: a differentiable simulation with torques held for each step, and the gradient of a loss through it.

Gradients are computed backward in time by the adjoint of a step,

    lambda = (d next / d state)^T lambda + d loss / d state.

If the states of all steps need too much memory, only those at the beginning of about sqrt(steps) segments are stored,
and each segment is computed again during the backward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..backends.rollout import STATES, Feed, Recording, run, staying
from ..backends.threads import checked_threads
from ..errors import ArgumentError
from ..functions.compiled import chosen_backend, compiled
from ..functions.computation import Computation, Tracing, Vjp
from ..functions.defaults import ROLL_ABOVE
from ..mechanism.canonical import CanonicalModel
from ..mechanism.coordinates import Values
from ..robot.robot import Robot, checked_robot
from ..support.checks import check_memory, one_of, real_number
from ..tracing.program import Array
from .checks import broadcast_batch, real_array
from .controllers import Constant
from .dynamics import Dynamics, added, forward_dynamics_of
from .fixed_step import Kernel, TimeStep
from .friction import rest_of
from .integrators import FIXED_STEP

Shape = tuple[int, ...]
STORED = 1 << 27  # floats of all states: a gibibyte


@dataclass(frozen=True)
class BareStep(TimeStep):
    """A step that returns only the state, without accelerations and torques."""

    @property
    def outputs(self) -> tuple[Array, ...]:
        return super().outputs[:STATES]

    def step(self, dynamics: Dynamics, columns: Sequence[Values]) -> tuple[Values, ...]:
        return super().step(dynamics, columns)[:STATES]


@dataclass(frozen=True)
class StepAdjoint(Computation):
    """The `Vjp` of a step, plus the partial derivatives of the loss with respect to the state before the step.

    lambda after the step, inputs of the step, partial derivatives of the loss -> lambda before the step, and the
    gradient with respect to the torques.
    """

    step: BareStep

    @property
    def model(self) -> CanonicalModel:
        return self.step.model

    @property
    def name(self) -> str:
        return "step_adjoint"

    @property
    def vjp(self) -> Vjp:
        return Vjp(self.step, ("q", "qd", "tau"), coordinates=True, weights=("after_q", "after_qd"))

    @property
    def components(self) -> tuple[Computation, ...]:
        return (self.step,)

    @property
    def inputs(self) -> tuple[Array, ...]:
        step = self.step.inputs
        q, qd = (array.shape for array in step[:2])
        return Array("after_q", q), Array("after_qd", qd), *step, Array("loss_q", q), Array("loss_qd", qd)

    @property
    def outputs(self) -> tuple[Array, ...]:
        q, qd = (array.shape for array in self.step.inputs[:2])
        return Array("by_q", q), Array("by_qd", qd), Array("by_tau", qd)

    def values(self, tracing: Tracing) -> tuple[Values, ...]:
        by_q, by_qd, by_tau = tracing.values(self.vjp)
        loss_q, loss_qd = (tracing.leaves[name] for name in ("loss_q", "loss_qd"))
        return added(list(by_q), loss_q), added(list(by_qd), loss_qd), list(by_tau)


class Rollout:
    """A differentiable simulation: `roll = rollout(robot, dt)`, `q, qd = roll(q0, qd0, tau)`, `roll.vjp`.

    tau is (steps, ..., nv), each row held for one step. q (steps + 1, ..., nq) and qd (steps + 1, ..., nv) begin with
    the initial state. The batch axes (...) of q0, qd0 and tau broadcast.
    """

    def __init__(self, robot: Robot, dt: float, step: BareStep, backend: str, threads: int):
        self.robot, self.dt, self.step, self.backend, self.threads = robot, dt, step, backend, threads
        self.functions = {  # by name
            "step": compiled(step, "float64", 1, backend, at_once=False),
            "adjoint": compiled(StepAdjoint(step), "float64", 1, backend, at_once=False),
        }

    @property
    def content(self) -> tuple[object, ...]:
        """Everything that determines the results."""
        return self.dt, self.step, self.backend, self.threads

    def __call__(self, q0: ArrayLike, qd0: ArrayLike, tau: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return the states before the first step and after each step."""
        return self.forward(*self._checked(q0, qd0, tau))

    def vjp(
        self, q0: ArrayLike, qd0: ArrayLike, tau: ArrayLike, w_q: ArrayLike | None = None, w_qd: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the gradients of a loss with respect to q0, qd0 and tau, for each rollout of the batch.

        w_q (steps + 1, ..., nq), w_qd (steps + 1, ..., nv): partial derivatives of the loss with respect to the states,
        0 if omitted. Derivatives with respect to q are those of its components.
        """
        start, velocities, torques = self._checked(q0, qd0, tau)
        batch = self.batch(start.shape, velocities.shape, torques.shape)
        states = len(torques) + 1, *batch
        by_q = self._weights("w_q", w_q, (*states, self.robot.nq))
        by_qd = self._weights("w_qd", w_qd, (*states, self.robot.nv))
        return self.backward(start, velocities, torques, by_q, by_qd)

    def batch(self, q0: Shape, qd0: Shape, tau: Shape) -> Shape:
        """Return the batch axes of the results from the shapes of the arguments, which are checked."""
        robot = self.robot
        for name, shape, size in (("q0", q0, robot.nq), ("qd0", qd0, robot.nv), ("tau", tau, robot.nv)):
            if not shape or shape[-1] != size:
                raise ArgumentError(f"{name} has shape {shape}, expected (..., {size}).")
        if len(tau) < 2 or not tau[0]:
            raise ArgumentError(f"tau has shape {tau}, expected (steps, ..., {robot.nv}) with at least one step.")
        return broadcast_batch(q0=q0[:-1], qd0=qd0[:-1], tau=tau[1:-1])

    def backward_batch(self, q0: Shape, qd0: Shape, tau: Shape, w_q: Shape, w_qd: Shape) -> Shape:
        """Return the batch axes of gradients, whose weights may have more batch axes."""
        return broadcast_batch(rollouts=self.batch(q0, qd0, tau), w_q=w_q[1:-1], w_qd=w_qd[1:-1])

    def forward(self, q0: np.ndarray, qd0: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute the states from checked arrays. A rollout whose inputs are not finite becomes NaN."""
        batch = self.batch(q0.shape, qd0.shape, tau.shape)
        start, torques = self._flat(q0, qd0, tau, batch)
        states = self._states(start, torques, 1)
        return tuple(x.reshape(len(x), *batch, x.shape[-1]) for x in states)  # type: ignore[return-value]

    def backward(
        self, q0: np.ndarray, qd0: np.ndarray, tau: np.ndarray, w_q: np.ndarray, w_qd: np.ndarray,
        states: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
        """Compute `vjp` from checked arrays; batch axes of the weights broadcast with the others.

        states: results of `forward`, if available; otherwise states are computed again, segment by segment.
        """
        batch = self.backward_batch(*(x.shape for x in (q0, qd0, tau, w_q, w_qd)))
        start, torques = self._flat(q0, qd0, tau, batch)
        steps, n = torques.shape[:2]
        weights = [_in_rows(w, batch) for w in (w_q, w_qd)]
        rows = None if states is None else [_in_rows(x, batch) for x in states]
        all_stored = rows or (steps + 1) * n * (self.robot.nq + self.robot.nv) <= STORED
        length = steps if all_stored else math.ceil(math.sqrt(steps))
        stored = [] if rows else self._states(start, torques[: (steps - 1) // length * length], length)
        by_tau = np.empty((steps + 1, *torques.shape[1:]))  # one row more: records are the states before and after
        adjoint = [w[steps].copy() for w in weights]
        for k in reversed(range(math.ceil(steps / length))):
            span = slice(k * length, min((k + 1) * length, steps))
            count = span.stop - span.start
            segment = [x[span] for x in rows] if rows else self._states([x[k] for x in stored], torques[span], 1)
            feeds = [_backward(x[:count]) for x in segment]
            feeds += [Feed(np.full((1, 1, 1), self.dt)), _backward(torques[span])]
            feeds += [_backward(w[span]) for w in weights]
            results = [by_tau[span.start : span.stop + 1][::-1]]
            recording = Recording([staying(x, count + 1) for x in adjoint], results, 1)
            run(self._kernel("adjoint"), recording, feeds, 0, count, self.threads)
        by_q, by_qd = (x.reshape(*batch, x.shape[-1]) for x in adjoint)
        return by_q, by_qd, by_tau[1:].reshape(steps, *batch, by_tau.shape[-1])

    def _kernel(self, name: str) -> Kernel:
        return self.functions[name].kernel("float64")

    def _states(self, start: list[np.ndarray], torques: np.ndarray, every: int) -> list[np.ndarray]:
        """Return the initial states and those after every `every` steps, each (records, n, size)."""
        records, n = len(torques) // every, torques.shape[1]
        states = [np.empty((records + 1, n, x.shape[-1])) for x in start]
        for x, value in zip(states, start, strict=True):
            x[0] = value
        feeds = [Feed(np.full((1, 1, 1), self.dt)), Feed(torques, 0, 1)]
        run(self._kernel("step"), Recording(states, (), every), feeds, 0, records, self.threads)
        return states

    def _checked(self, q0: ArrayLike, qd0: ArrayLike, tau: ArrayLike) -> list[np.ndarray]:
        robot = self.robot
        arrays = [real_array("q0", q0, robot.nq), real_array("qd0", qd0, robot.nv), real_array("tau", tau, robot.nv)]
        batch = self.batch(*(x.shape for x in arrays))
        check_memory("the rollout", (len(arrays[2]) + 1, *batch, robot.nq + 4 * robot.nv))
        return arrays

    def _flat(
        self, q0: np.ndarray, qd0: np.ndarray, tau: np.ndarray, batch: tuple[int, ...]
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the initial states (n, size) and the torques (steps, n, nv)."""
        n = math.prod(batch)
        start = [np.broadcast_to(x, (*batch, x.shape[-1])).reshape(n, x.shape[-1]) for x in (q0, qd0)]
        return start, _in_rows(tau, batch)

    def _weights(self, name: str, value: ArrayLike | None, shape: tuple[int, ...]) -> np.ndarray:
        if value is None:
            return np.zeros(shape)
        weights = real_array(name, value, shape[-1])
        if weights.shape != shape:
            raise ArgumentError(f"{name} has shape {weights.shape}, expected {shape}.")
        return weights

    def __repr__(self) -> str:
        return f"<Rollout of {self.robot.name}, dt {self.dt:g} s>"


def rollout(
    robot: Robot, dt: float, *, integrator: str = "rk4", dissipation: bool = False, method: str | None = None,
    threads: int = 1, backend: str | None = None,
) -> Rollout:  # fmt: skip
    """Return a differentiable simulation: a function of the initial state and the torques of each step.

    Parameters
    ----------
    robot : Robot
        A robot without constraints and without Coulomb friction.
    dt : float
        Length of a step in seconds.
    integrator : str
        "rk4" or "semi_implicit_euler".
    dissipation : bool
        Include joint damping.
    method : str, optional
        Algorithm of forward dynamics.
    threads : int
        Native threads that share a batch.
    backend : str, optional
        Backend of the compiled step.

    Returns
    -------
    Rollout
        Called with q0 (..., nq), qd0 (..., nv) and tau (steps, ..., nv), it returns the states (steps + 1, ..., size).
        `vjp` returns the gradients of a loss with respect to the three arguments.

    Raises
    ------
    ArgumentError
        If an option is invalid, or the robot has constraints, Coulomb friction or too many links.

    Examples
    --------
    >>> roll = ls.rollout(robot, 0.01)
    >>> q, qd = roll(q0, qd0, tau)
    >>> by_q0, by_qd0, by_tau = roll.vjp(q0, qd0, tau, w_q)
    """
    checked_robot(robot, "rollout")
    one_of("integrator", integrator, FIXED_STEP)
    forward_dynamics = forward_dynamics_of(robot, method, dissipation)
    reason = (
        "Coulomb friction, which is not differentiable at rest: use with_dissipation to set it to 0"
        if rest_of(robot, forward_dynamics.dissipation, None) is not None
        else f"more than {ROLL_ABOVE} links" if len(robot.canonical.links) > ROLL_ABOVE
        else "constraints" if robot.model.constraints else ""
    )  # fmt: skip
    if reason:
        raise ArgumentError(f"rollout does not support {robot.name}, which has {reason}.")
    step = BareStep(forward_dynamics, integrator, Constant(np.zeros(robot.nv)).control_law(robot))
    return Rollout(robot, real_number("dt", dt, above=0.0), step, chosen_backend(backend), checked_threads(threads))


def _in_rows(x: np.ndarray, batch: tuple[int, ...]) -> np.ndarray:
    """Return x (times, ..., size) as contiguous float64 (times, n, size), broadcast to the batch."""
    aligned = x.reshape(len(x), *(1,) * (len(batch) - x.ndim + 2), *x.shape[1:])
    full = np.broadcast_to(aligned, (len(x), *batch, x.shape[-1]))
    return np.ascontiguousarray(full, dtype=np.float64).reshape(len(x), math.prod(batch), x.shape[-1])


def _backward(x: np.ndarray) -> Feed:
    """Return x (times, ...) as a feed from the last time to the first."""
    return Feed(x, len(x) - 1, -1)


# ---- shared by rollouts in JAX and PyTorch: q0 and qd0 are (..., size); torques, states and weights (times, ..., size)

FrameworkArray = Any  # of JAX or PyTorch: an array, a tracer or a tensor
NAMES = "q0", "qd0", "tau"
FIRST = 0, 0, 1, 1, 1, 1, 1  # first batch axis of q0, qd0, tau (and their gradients), the weights, the states


def result_shapes(roll: Rollout, shapes: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """Return the shapes of q and qd from those of q0, qd0, tau, or with weights and states those of the gradients."""
    nq, nv, steps = roll.robot.nq, roll.robot.nv, shapes[2][0]
    if len(shapes) == 3:
        batch = roll.batch(*map(tuple, shapes))
        return [(steps + 1, *batch, nq), (steps + 1, *batch, nv)]
    batch = roll.backward_batch(*map(tuple, shapes[:5]))
    return [(*batch, nq), (*batch, nv), (steps, *batch, nv)]


def mapped_first(
    arrays: Sequence[FrameworkArray], mapped: Sequence[bool], moveaxis: Callable[..., FrameworkArray],
    firsts: Sequence[int] = FIRST,
) -> list[FrameworkArray]:  # fmt: skip
    """Return arrays with their mapped axis, which is axis 0 of some of them, as the first batch axis of all."""
    batch_axes = [x.ndim - first - 1 - is_mapped for x, first, is_mapped in zip(arrays, firsts, mapped, strict=False)]
    placed = []
    for x, first, is_mapped, axes in zip(arrays, firsts, mapped, batch_axes, strict=False):
        if is_mapped:
            x = moveaxis(x, 0, first)
            x = x.reshape(*x.shape[: first + 1], *(1,) * (max(batch_axes) - axes), *x.shape[first + 1 :])
        placed.append(x)
    return placed


def summed(gradient: FrameworkArray, shape: Sequence[int], first: int) -> FrameworkArray:
    """Return the gradient summed over the batch axes along which an argument of this shape was broadcast."""
    extra = len(gradient.shape) - len(shape)
    shared = [*range(first, first + extra)]
    shared += [k + extra for k in range(first, len(shape) - 1) if shape[k] == 1 and gradient.shape[k + extra] != 1]
    return gradient.sum(tuple(shared)).reshape(tuple(shape)) if shared else gradient
