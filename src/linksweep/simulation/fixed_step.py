"""Fixed steps: the feeds of every step laid out in memory, and one call that runs through all of them."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.closed_chain.swept import can_be_swept
from ..backends.rollout import STATES, Feed, Recording, run
from ..errors import ArgumentError
from ..functions.computation import RobotFunction
from ..functions.defaults import ROLL_ABOVE, predicted_operations
from ..mechanism.canonical import CanonicalModel
from ..robot.robot import Robot
from ..support.checks import check_memory
from .checks import broadcast_batch
from .controllers import ControlLaw, Controller, Function, Grid, Signal
from .dynamics import CompiledDynamics, checked_torque, stacked
from .friction import Rest
from .integrators import EVALUATIONS, STAGES, Values
from .step_program import TimeStep, traced_loops

STEP_WRITTEN_OUT = 60_000  # predicted operations of all stages; LLVM takes a minute for twice as many
SMALL_STEP, FOLDS = 12_000, 0.8  # up to so many, or where no more than this share is left of what loops would run,
# a step that is written out is faster (benchmarks/steps.py)
CLOSED_SMALL = 25_000  # operations of a step with constraints, beyond which it runs as loops if it can be
CLOSED_WRITTEN_OUT = 300_000  # of one that cannot: LLVM takes a minute or two
LOOPED_UP_TO = 300  # links; what joins the stages is written out, and beyond takes LLVM longer than a robot is worth
_PIECE = 0.1  # seconds of work between two looks at the clock, and at whether the user wants to stop


Kernel = Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], None]  # rows in, rows out: one step


class ColumnKernel:
    """A step as a kernel over 2-D arrays: inputs (n or 1, size), outputs (n, size)."""

    def __init__(self, step: TimeStep, dtype: str, backend: str, function: Callable[..., ArrayLike] | None = None):
        self.step = step
        self.dynamics = CompiledDynamics(step.forward_dynamics, dtype, backend)
        self.function = function

    def __call__(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        columns = [[x[:, i] for i in range(x.shape[1])] for x in inputs]
        with np.errstate(all="ignore"):
            results = self.step.step(self.dynamics, columns, self._torque if self.function else None)
        for output, result in zip(outputs, results, strict=True):
            for i, column in enumerate(result):
                output[:, i] = column

    def _torque(self, q: Values, qd: Values, given: dict[str, Values]) -> Values:
        """The user's torques, called once for each rollout."""
        states = stacked(q), stacked(qd)
        tau = np.empty_like(states[1])
        t = float(np.asarray(given["t"][0])[0])
        for k, (own_q, own_qd) in enumerate(zip(*states, strict=True)):
            tau[k] = checked_torque(self.function, t, own_q, own_qd)
        return [tau[:, i] for i in range(tau.shape[1])]


@dataclass(frozen=True)
class Step:
    """A fixed step of a robot under a controller: its compiled kernel, and the inputs of all steps of a run.

    forward_dynamics: with its method and dissipation. gains: Baumgarte's of the constraints; None: projection.
    """

    robot: Robot
    controller: Controller
    integrator: str
    forward_dynamics: RobotFunction
    rest: Rest | None = None
    disturbance: Controller | None = None
    gains: tuple[float, float] | None = None

    @functools.cached_property
    def computation(self) -> TimeStep:
        push = ControlLaw() if self.disturbance is None else self.disturbance.control_law(self.robot)
        return TimeStep(
            self.forward_dynamics, integrator=self.integrator,
            law=self.controller.control_law(self.robot), rest=self.rest, push=push, gains=self.gains,
        )  # fmt: skip

    def kernel(self, dtype: str, backend: str) -> Kernel:
        """Machine code or interpreter, or Python around compiled dynamics."""
        if isinstance(self.controller, Function):
            return ColumnKernel(self.computation, dtype, backend, self.controller.function)
        chosen = _unrolled_or_looped(self.computation)
        if chosen is None:
            return ColumnKernel(self.computation, dtype, backend)
        return self.robot.compile(chosen, dtype=dtype, threads=1, backend=backend).kernel(dtype)

    def feeds(self, grid: Grid, batch: tuple[int, ...], dtype: str) -> list[Feed]:
        """dt, the signals of the controller at each stage, and its constants, in the order of the step's inputs."""
        feeds = [Feed(np.full((1, 1, 1), grid.dt, dtype))]
        inputs = self.controller.inputs(self.robot)
        if self.disturbance is not None:
            inputs |= {f"push_{name}": x for name, x in self.disturbance.inputs(self.robot).items()}
        step = self.computation
        for name in step.signals():
            samples = cast(Signal, inputs[name]).sampled(grid)
            values = _rows(name, samples.values, batch, dtype)
            offsets = (0, 1, 2) if samples.rows == 2 else (0, 0, 0)
            feeds += [Feed(values, offset, samples.rows) for offset in offsets[: grid.stages]]
        feeds += [Feed(_rows(name, cast(np.ndarray, inputs[name])[None], batch, dtype)) for name in step.constants()]
        for feed, array in zip(feeds, step.inputs[STATES:], strict=True):  # machine code reads without checking
            last = feed.first + feed.advance * (grid.steps - 1)
            if feed.values.shape[2] != array.size or len(feed.values) <= last:
                raise ArgumentError(
                    f"{self.controller!r} gives {array.name} of shape {feed.values.shape[::2]}, expected {array.size} "
                    f"numbers at each of {last + 1} times."
                )
        return feeds

    def held_feeds(self, grid: Grid, batch: tuple[int, ...], dtype: str) -> tuple[list[Feed], np.ndarray]:
        """The feeds with a constant torque, and that torque (1, n, nv), to be written between two runs."""
        feeds, held = self.feeds(grid, batch, dtype), np.zeros((1, math.prod(batch), self.robot.nv), dtype)
        feeds[[array.name for array in self.computation.inputs[STATES:]].index("tau")] = Feed(held)
        return feeds, held


@functools.lru_cache(maxsize=32)  # of choices, for some of which the step is traced
def _unrolled_or_looped(step: TimeStep) -> TimeStep | None:
    """Return the step unrolled or with loops over the links, or None if Python runs it around compiled dynamics."""
    links, looped = len(step.model.links), replace(step, loops=True)
    if step.model.ties and _closed_step(step) > CLOSED_SMALL and _loops_serve(step):
        return looped
    if written_out(step.model, step.integrator):
        return step
    if links <= LOOPED_UP_TO and _loops_serve(step):
        return looped
    if links <= ROLL_ABOVE or (step.model.ties and _closed_step(step) <= CLOSED_WRITTEN_OUT):
        return step
    return None


def written_out(model: CanonicalModel, integrator: str) -> bool:
    """Whether a step is one straight program, by the operations predicted of it and of loops over the links."""
    stages = STAGES[integrator]
    operations = stages * predicted_operations(model, "forward_dynamics", 0)
    in_loops = stages * predicted_operations(model, "forward_dynamics", 0, loops=True)
    if len(model.links) > ROLL_ABOVE or operations > STEP_WRITTEN_OUT:
        return False
    return operations <= SMALL_STEP or operations <= FOLDS * in_loops


def _closed_step(step: TimeStep) -> float:
    """Predicted operations of a step with constraints: its stages, and the way back onto them, pose and rates."""
    solves = EVALUATIONS[step.integrator] + 2
    return solves * predicted_operations(step.model, "forward_dynamics", 0)


def _loops_serve(step: TimeStep) -> bool:
    """Whether every function that the step asks for has a number for each rate, and can be a loop."""
    model = step.model
    if step.rest is not None or model.springs or model.is_coupled or not can_be_swept(model):
        return False
    try:
        traced_loops(replace(step, loops=True))
    except ArgumentError:  # a controller that asks for poses, Jacobians or matrices
        return False
    return True


def _rows(name: str, values: np.ndarray, batch: tuple[int, ...], dtype: str) -> np.ndarray:
    """(moments, ..., size) as (moments, n, size), or (moments, 1, size) where all rollouts share it."""
    moments, own, size = values.shape[0], values.shape[1:-1], values.shape[-1]
    if all(length == 1 for length in own):
        return np.ascontiguousarray(values.reshape(moments, 1, size), dtype)
    if broadcast_batch(**{"the rollouts": batch, name: own}) != batch:
        raise ArgumentError(
            f"{name} is given for a batch {own}, expected one that the rollouts' {batch} can hold: give q0 that batch."
        )
    check_memory(name, (moments, *batch, size), np.dtype(dtype).itemsize)
    own = (1,) * (len(batch) - len(own)) + own
    full = np.broadcast_to(values.reshape(moments, *own, size), (moments, *batch, size))
    return np.ascontiguousarray(full.reshape(moments, math.prod(batch), size), dtype)


def roll(kernel: Kernel, recording: Recording, feeds: list[Feed], threads: int, watch: Callable[[float], None]) -> None:
    """Fill the recording from its first state on. `watch` is told the fraction that is done."""
    records = len(recording.states[0]) - 1
    done, piece = 0, 1
    while done < records:
        until = min(done + piece, records)
        began = time.perf_counter()
        run(kernel, recording, feeds, done, until, threads)
        spent = time.perf_counter() - began
        piece = max(1, min(64 * piece, round(piece * _PIECE / max(spent, 1e-6))))
        done = until
        watch(done / records)
    _last_results(kernel, recording, feeds)


def _last_results(kernel: Kernel, recording: Recording, feeds: list[Feed]) -> None:
    """Accelerations and torques in the last state, where no step begins any more."""
    steps = (len(recording.states[0]) - 1) * recording.every
    inputs = [x[-1] for x in recording.states]
    inputs += [feed.values[min(feed.first + feed.advance * steps, len(feed.values) - 1)] for feed in feeds]
    outputs = [np.empty_like(x[-1]) for x in recording.states] + [x[-1] for x in recording.results]
    kernel(inputs, outputs)
