"""`rollout`: many steps with torques that hold for each, and the gradient of a loss through all of them.

In reverse, by the adjoint of a step: lambda = (d next / d state)^T lambda + what the loss has of the state itself.
All states are kept where they fit into some memory; otherwise those at the begin of about as many stretches as there
are steps in one, and a stretch is run again when its turn comes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

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
from ..support.checks import check_memory
from ..support.messages import is_one_of, nearest, shown
from ..tracing.program import Array
from .checks import broadcast_batch, positive, real_array
from .controllers import Constant
from .dynamics import Dynamics, forward_dynamics_of
from .fixed_step import Kernel
from .friction import rest_of
from .integrators import STAGES, added
from .step_program import TimeStep, Torque

Shape = tuple[int, ...]
KEPT = 1 << 27  # numbers: a gibibyte of states


@dataclass(frozen=True)
class BareStep(TimeStep):
    """A step that returns the states alone, without accelerations and torques."""

    @property
    def outputs(self) -> tuple[Array, ...]:
        return super().outputs[:STATES]

    def step(self, dynamics: Dynamics, columns: Sequence[Values], torque: Torque | None = None) -> tuple[Values, ...]:
        return super().step(dynamics, columns, torque)[:STATES]


@dataclass(frozen=True)
class StepAdjoint(Computation):
    """The `Vjp` of a step, to which the loss's own gradients with respect to the states are added.

    lambda after the step, the step's inputs, the loss's own gradients -> lambda before it, the gradient of the torques.
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
        return Array("after_q", q), Array("after_qd", qd), *step, Array("own_q", q), Array("own_qd", qd)

    @property
    def outputs(self) -> tuple[Array, ...]:
        q, qd = (array.shape for array in self.step.inputs[:2])
        return Array("by_q", q), Array("by_qd", qd), Array("by_tau", qd)

    def values(self, tracing: Tracing) -> tuple[Values, ...]:
        by_q, by_qd, by_tau = tracing.values(self.vjp)
        own_q, own_qd = (tracing.leaves[name] for name in ("own_q", "own_qd"))
        return added(list(by_q), own_q), added(list(by_qd), own_qd), list(by_tau)


class Rollout:
    """`roll = rollout(robot, dt)`: `q, qd = roll(q0, qd0, tau)`, and its gradients by `roll.vjp`.

    tau is (steps, ..., nv), each row held for a step; q (steps + 1, ..., nq) and qd (steps + 1, ..., nv) have the start
    first. Leading axes of q0 and qd0 broadcast with those of tau between.
    """

    def __init__(self, robot: Robot, dt: float, step: BareStep, backend: str, threads: int):
        self.robot, self.dt, self.step, self.backend, self.threads = robot, dt, step, backend, threads
        self.functions = {  # by name
            "step": compiled(step, "float64", 1, backend, at_once=False),
            "adjoint": compiled(StepAdjoint(step), "float64", 1, backend, at_once=False),
        }

    @property
    def content(self) -> tuple[object, ...]:
        """All that determines what it computes, and how."""
        return self.dt, self.step, self.backend, self.threads

    def __call__(self, q0: ArrayLike, qd0: ArrayLike, tau: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """The states before the first step and after each."""
        return self.forward(*self._checked(q0, qd0, tau))

    def vjp(
        self, q0: ArrayLike, qd0: ArrayLike, tau: ArrayLike, w_q: ArrayLike | None = None, w_qd: ArrayLike | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The gradients by q0, qd0 and tau of a loss whose own are w_q (steps + 1, ..., nq) by the states' q and w_qd
        by their qd (None: zeros). Gradients by q are by its numbers; each rollout of the batch has its own.
        """
        given = self._checked(q0, qd0, tau)
        steps, batch = len(given[2]), self.batch(*(x.shape for x in given))
        weights = [
            self._weights(name, value, (steps + 1, *batch, size))
            for name, value, size in (("w_q", w_q, self.robot.nq), ("w_qd", w_qd, self.robot.nv))
        ]
        (q, qd, torques), (by_q, by_qd) = given, weights
        return self.backward(q, qd, torques, by_q, by_qd)

    def batch(self, q0: Shape, qd0: Shape, tau: Shape) -> Shape:
        """The leading axes of the results, from the shapes of the arguments; what does not fit is refused."""
        robot = self.robot
        for name, shape, size in (("q0", q0, robot.nq), ("qd0", qd0, robot.nv), ("tau", tau, robot.nv)):
            if not shape or shape[-1] != size:
                raise ArgumentError(f"{name} has shape {shape}, expected (..., {size}).")
        if len(tau) < 2 or not tau[0]:
            raise ArgumentError(
                f"tau has shape {tau}, expected (steps, ..., {robot.nv}) with at least one step: a row of "
                f"torques for each step."
            )
        return broadcast_batch(q0=q0[:-1], qd0=qd0[:-1], tau=tau[1:-1])

    def backward_batch(
        self, q0: Shape, qd0: Shape, tau: Shape, w_q: Shape, w_qd: Shape
    ) -> Shape:  # fmt: skip
        """The same of gradients: weights may have further leading axes."""
        return broadcast_batch(rollouts=self.batch(q0, qd0, tau), w_q=w_q[1:-1], w_qd=w_qd[1:-1])

    def forward(self, q0: np.ndarray, qd0: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The call itself, on arrays whose shapes fit; a rollout that holds NaN or infinity becomes NaN."""
        batch = self.batch(q0.shape, qd0.shape, tau.shape)
        start, torques = self._flat(q0, qd0, tau, batch)
        states = self._states(start, torques, 1)
        return tuple(x.reshape(len(x), *batch, x.shape[-1]) for x in states)  # type: ignore[return-value]

    def backward(
        self, q0: np.ndarray, qd0: np.ndarray, tau: np.ndarray, w_q: np.ndarray, w_qd: np.ndarray,
        states: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
        """`vjp` on arrays whose shapes fit; leading axes of the weights broadcast with the others.

        states: what `forward` gave, where that is still there; otherwise states are computed again, stretch by stretch.
        """
        batch = self.backward_batch(*(x.shape for x in (q0, qd0, tau, w_q, w_qd)))
        start, torques = self._flat(q0, qd0, tau, batch)
        steps, n = torques.shape[:2]
        weights = [_in_rows(w, batch) for w in (w_q, w_qd)]
        known = None if states is None else [_in_rows(x, batch) for x in states]
        all_kept = known or (steps + 1) * n * (self.robot.nq + self.robot.nv) <= KEPT
        stretch = steps if all_kept else math.ceil(math.sqrt(steps))
        kept = [] if known else self._states(start, torques[: (steps - 1) // stretch * stretch], stretch)
        slopes = np.empty((steps + 1, *torques.shape[1:]))  # a row more: records are the states before and after
        after = [w[steps].copy() for w in weights]
        for k in reversed(range(math.ceil(steps / stretch))):
            span = slice(k * stretch, min((k + 1) * stretch, steps))
            count = span.stop - span.start
            passed = [x[span] for x in known] if known else self._states([x[k] for x in kept], torques[span], 1)
            feeds = [_backward(x[:count]) for x in passed]
            feeds += [Feed(np.full((1, 1, 1), self.dt)), _backward(torques[span])]
            feeds += [_backward(w[span]) for w in weights]
            recording = Recording([staying(x, count + 1) for x in after], [slopes[span.start : span.stop + 1][::-1]], 1)
            run(self._kernel("adjoint"), recording, feeds, 0, count, self.threads)
        by_q, by_qd = (x.reshape(*batch, x.shape[-1]) for x in after)
        return by_q, by_qd, slopes[1:].reshape(steps, *batch, slopes.shape[-1])

    def _kernel(self, name: str) -> Kernel:
        return self.functions[name].kernel("float64")

    def _states(self, start: list[np.ndarray], torques: np.ndarray, every: int) -> list[np.ndarray]:
        """The states of every so many steps, the start among them."""
        records, n = len(torques) // every, torques.shape[1]
        states = [np.empty((records + 1, n, x.shape[-1])) for x in start]
        for x, value in zip(states, start, strict=True):
            x[0] = value
        feeds = [Feed(np.full((1, 1, 1), self.dt)), Feed(torques, 0, 1)]
        run(self._kernel("step"), Recording(states, (), every), feeds, 0, records, self.threads)
        return states

    def _checked(self, q0: ArrayLike, qd0: ArrayLike, tau: ArrayLike) -> list[np.ndarray]:
        robot = self.robot
        given = [real_array("q0", q0, robot.nq), real_array("qd0", qd0, robot.nv), real_array("tau", tau, robot.nv)]
        batch = self.batch(*(x.shape for x in given))
        check_memory("the rollout", (len(given[2]) + 1, *batch, robot.nq + 4 * robot.nv))
        return given

    def _flat(
        self, q0: np.ndarray, qd0: np.ndarray, tau: np.ndarray, batch: tuple[int, ...]
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """The start (n, size) and the torques (steps, n, nv)."""
        n = math.prod(batch)
        start = [np.broadcast_to(x, (*batch, x.shape[-1])).reshape(n, x.shape[-1]) for x in (q0, qd0)]
        return start, _in_rows(tau, batch)

    def _weights(self, name: str, value: ArrayLike | None, shape: tuple[int, ...]) -> np.ndarray:
        if value is None:
            return np.zeros(shape)
        given = real_array(name, value, shape[-1])
        if given.shape != shape:
            raise ArgumentError(f"{name} has shape {given.shape}, expected {shape}: one for each state.")
        return given

    def __repr__(self) -> str:
        return f"<Rollout of {self.robot.name}, dt {self.dt:g} s>"


def rollout(
    robot: Robot, dt: float, *, integrator: str = "rk4", dissipation: bool = False, method: str | None = None,
    threads: int = 1, backend: str | None = None,
) -> Rollout:  # fmt: skip
    """Return a differentiable simulation: a function of the start and the torques of each step.

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
    if not is_one_of(integrator, STAGES):
        raise ArgumentError(
            f"integrator is {shown(integrator)}{nearest(integrator, STAGES)}, expected one of {', '.join(STAGES)}."
        )
    forward_dynamics = forward_dynamics_of(robot, method, dissipation)
    reason = (
        "Coulomb friction, which holds a joint and has no slope there: use with_dissipation to set it to 0"
        if rest_of(robot, forward_dynamics.dissipation, None) is not None
        else f"more than {ROLL_ABOVE} links" if len(robot.canonical.links) > ROLL_ABOVE
        else "constraints" if robot.model.constraints else ""
    )  # fmt: skip
    if reason:
        raise ArgumentError(f"rollout got {robot.name} with {reason}, expected a robot without.")
    step = BareStep(forward_dynamics, integrator, Constant(np.zeros(robot.nv)).control_law(robot))
    return Rollout(robot, positive("dt", dt), step, chosen_backend(backend), checked_threads(threads))


def _in_rows(x: np.ndarray, batch: tuple[int, ...]) -> np.ndarray:
    """(moments, ..., size) -> (moments, n, size), float64, every rollout of the batch with its own."""
    aligned = x.reshape(len(x), *(1,) * (len(batch) - x.ndim + 2), *x.shape[1:])
    whole = np.broadcast_to(aligned, (len(x), *batch, x.shape[-1]))
    return np.ascontiguousarray(whole, dtype=np.float64).reshape(len(x), math.prod(batch), x.shape[-1])


def _backward(x: np.ndarray) -> Feed:
    """The moments of x, the last one first."""
    return Feed(x, len(x) - 1, -1)
