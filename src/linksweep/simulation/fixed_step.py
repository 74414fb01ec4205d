"""Fixed steps: a time step as one compiled computation, its inputs laid out in memory, and the loop over all steps."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np

from ..algorithms.closed_chain.swept import can_be_swept
from ..backends.rollout import STATES, Feed, Recording, run
from ..errors import ArgumentError
from ..functions.computation import Computation, RobotFunction, Tracing
from ..functions.defaults import ROLL_ABOVE, predicted_operations
from ..mechanism.canonical import CanonicalModel
from ..mechanism.coordinates import Values, moved, normalized
from ..robot.robot import Robot
from ..support.checks import check_memory
from ..tracing.passes import optimise
from ..tracing.program import Array, Program
from ..tracing.rolled import Stages
from .checks import broadcast_batch
from .controllers import ControlLaw, Controller, Function, Grid, Signal
from .dynamics import CompiledDynamics, Dynamics, LoopedDynamics, TracedDynamics, added
from .friction import Rest, resting_step
from .integrators import FIXED_STEP

QUICK = 30_000  # operations of a step with constraints above which saving 4 % of them takes too long to compile
STEP_UNROLLED = 60_000  # predicted operations of all stages; LLVM takes a minute for twice as many
SMALL_STEP, FOLDS = 12_000, 0.8  # a step with fewer operations, or with at most this fraction of those of the loops
# over links, is faster unrolled (benchmarks/steps.py)
CLOSED_SMALL = 25_000  # operations of a step with constraints above which loops over links are used if possible
CLOSED_UNROLLED = 300_000  # of one without loops over links: LLVM takes a minute or two
LOOPED_UP_TO = 300  # links; the code between the stages is unrolled and takes LLVM too long beyond
_PIECE = 0.1  # seconds of work between two reports of progress, when a run can be interrupted


Kernel = Callable[[Sequence[np.ndarray], Sequence[np.ndarray]], None]  # rows in, rows out: one step


@dataclass(frozen=True)
class TimeStep(Computation):
    """A time step: q, qd, dt, signals and constants of the controller -> q_next, qd_next, qdd, tau.

    forward_dynamics: with its method and dissipation. disturbance: forces of the environment, which act in every stage
    and are not part of tau. gains: Baumgarte's gains of the constraints; None projects onto them. loops: dynamics as
    loops over the links.
    """

    forward_dynamics: RobotFunction
    integrator: str = "rk4"
    control_law: ControlLaw = field(default_factory=ControlLaw)
    rest: Rest | None = None
    disturbance: ControlLaw = field(default_factory=ControlLaw)
    gains: tuple[float, float] | None = None
    loops: bool = False

    @property
    def model(self) -> CanonicalModel:
        return self.forward_dynamics.model

    @property
    def name(self) -> str:
        return "step"

    @property
    def inputs(self) -> tuple[Array, ...]:
        """q, qd, dt, then each signal at each stage of the step, then the constants."""
        stages = range(FIXED_STEP[self.integrator].stages)
        return (
            Array("q", (self.model.nq,)), Array("qd", (self.model.nv,)), Array("dt", (1,)),
            *(Array(f"{name}_at{k}", (size,)) for name, size in self.signals().items() for k in stages),
            *(Array(name, (size,)) for name, size in self.constants().items()),
        )  # fmt: skip

    def signals(self) -> dict[str, int]:
        return self.control_law.signals() | _prefixed(self.disturbance.signals())

    def constants(self) -> dict[str, int]:
        return self.control_law.constants() | _prefixed(self.disturbance.constants())

    @property
    def outputs(self) -> tuple[Array, ...]:
        q, qd = self.inputs[:2]
        return Array("q_next", q.shape), Array("qd_next", qd.shape), Array("qdd", qd.shape), Array("tau", qd.shape)

    def trace(self) -> Program:
        return traced_loops(self) if self.loops else super().trace()

    @property
    def quick_above(self) -> int | None:
        return QUICK if self.model.ties else None

    def values(self, tracing: Tracing) -> tuple[Values, ...]:
        columns = [tracing.leaves[array.name] for array in self.inputs]
        return self.step(TracedDynamics(self.forward_dynamics), columns)

    def step(self, dynamics: Dynamics, columns: Sequence[Values]) -> tuple[Values, ...]:
        """Return the outputs from the inputs, over any scalar."""
        named = dict(zip((array.name for array in self.inputs), columns, strict=True))

        def torque(law: ControlLaw, prefix: str, stage: int, q: Values, qd: Values) -> Values:
            inputs = {name: named[f"{prefix}{name}_at{stage}"] for name in law.signals()}
            inputs |= {name: named[f"{prefix}{name}"] for name in law.constants()}
            return law.torque(dynamics, q, qd, inputs)

        def driven(stage: int, q: Values, qd: Values) -> Values:
            return torque(self.control_law, "", stage, q, qd)

        def disturbed(stage: int, q: Values, qd: Values, tau: Values) -> Values:
            if self.disturbance.controller is None:
                return tau
            return added(tau, torque(self.disturbance, _DISTURBANCE, stage, q, qd))

        def accelerate(stage: int, q: Values, qd: Values) -> tuple[Values, Values]:
            tau = driven(stage, q, qd)
            qdd = dynamics.forward(q, qd, disturbed(stage, q, qd, tau))
            return qdd if self.gains is None else dynamics.stabilized(self.gains, q, qd, qdd), tau

        start = named["q"], named["qd"], named["dt"][0]
        integrate = FIXED_STEP[self.integrator].step
        if self.rest is None:
            q, qd, qdd, tau = integrate(self.model, accelerate, *start)
        else:
            q, qd, qdd, tau = resting_step(self.rest, dynamics, integrate, (driven, disturbed), *start)
        if self.model.ties and self.gains is None:  # the shortest correction onto the constraints in the metric of M
            q = normalized(self.model, moved(self.model, q, dynamics.correction(q)))
            qd = dynamics.allowed(q, qd)
        return q, qd, qdd, tau


_DISTURBANCE = "disturbance_"  # begins the names of its inputs


def _prefixed(inputs: dict[str, int]) -> dict[str, int]:
    return {f"{_DISTURBANCE}{name}": size for name, size in inputs.items()}


@functools.lru_cache(maxsize=2)
def traced_loops(step: TimeStep) -> Program:
    """Return the step with its dynamics as loops over the links; raise ArgumentError if that is not possible."""
    stages = Stages(step.inputs)
    columns = [[stages.graph.leaf("input", (k, i)) for i in range(x.size)] for k, x in enumerate(stages.inputs)]
    results = step.step(LoopedDynamics(step.forward_dynamics, stages), columns)
    program = stages.program("step", list(zip(step.outputs, results, strict=True)))
    return optimise(program)


class ColumnKernel:
    """A step in Python around compiled dynamics, called as a kernel: inputs (n or 1, size), outputs (n, size)."""

    def __init__(self, step: TimeStep, dtype: str, backend: str):
        self.step = step
        self.dynamics = CompiledDynamics(step.forward_dynamics, dtype, backend)

    def __call__(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        columns = [[x[:, i] for i in range(x.shape[1])] for x in inputs]
        with np.errstate(all="ignore"):
            results = self.step.step(self.dynamics, columns)
        for output, result in zip(outputs, results, strict=True):
            for i, column in enumerate(result):
                output[:, i] = column


@dataclass(frozen=True)
class Step:
    """A fixed step of a robot under a controller: its compiled kernel, and the inputs of all steps of a run.

    The fields are those of `TimeStep`, with controllers in place of their formulas.
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
        disturbance = ControlLaw() if self.disturbance is None else self.disturbance.control_law(self.robot)
        return TimeStep(
            self.forward_dynamics, self.integrator, self.controller.control_law(self.robot), self.rest, disturbance,
            self.gains,
        )  # fmt: skip

    def kernel(self, dtype: str, backend: str) -> Kernel:
        """Return machine code, the interpreter, or Python around compiled dynamics."""
        chosen = None if isinstance(self.controller, Function) else _unrolled_or_looped(self.computation)
        if chosen is None:
            return ColumnKernel(self.computation, dtype, backend)
        return self.robot.compile(chosen, dtype=dtype, threads=1, backend=backend).kernel(dtype)

    def feeds(self, grid: Grid, batch: tuple[int, ...], dtype: str) -> list[Feed]:
        """Return dt, the signals of the controller at each stage, and its constants, in the order of step inputs."""
        feeds = [Feed(np.full((1, 1, 1), grid.dt, dtype))]
        inputs = self.controller.inputs(self.robot)
        if self.disturbance is not None:
            inputs |= {f"{_DISTURBANCE}{name}": x for name, x in self.disturbance.inputs(self.robot).items()}
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
                    f"{self.controller!r} returns {array.name} of shape {feed.values.shape[::2]}, expected "
                    f"{array.size} numbers at each of {last + 1} times."
                )
        return feeds

    def held_feeds(self, grid: Grid, batch: tuple[int, ...], dtype: str) -> tuple[list[Feed], np.ndarray]:
        """Return the feeds with a constant torque, and that torque (1, n, nv), which is overwritten between runs."""
        feeds, held = self.feeds(grid, batch, dtype), np.zeros((1, math.prod(batch), self.robot.nv), dtype)
        feeds[[array.name for array in self.computation.inputs[STATES:]].index("tau")] = Feed(held)
        return feeds, held


@functools.lru_cache(maxsize=32)  # some decisions trace the step
def _unrolled_or_looped(step: TimeStep) -> TimeStep | None:
    """Return the step unrolled or with loops over the links, or None if Python runs it around compiled dynamics."""
    links, looped = len(step.model.links), replace(step, loops=True)
    if step.model.ties and _closed_step(step) > CLOSED_SMALL and _can_loop(step):
        return looped
    if is_unrolled(step.model, step.integrator):
        return step
    if links <= LOOPED_UP_TO and _can_loop(step):
        return looped
    if links <= ROLL_ABOVE or (step.model.ties and _closed_step(step) <= CLOSED_UNROLLED):
        return step
    return None


def is_unrolled(model: CanonicalModel, integrator: str) -> bool:
    """Whether a step is straight-line code, by the operations predicted for it and for loops over the links."""
    stages = FIXED_STEP[integrator].stages
    operations = stages * predicted_operations(model, "forward_dynamics", 0)
    in_loops = stages * predicted_operations(model, "forward_dynamics", 0, loops=True)
    if len(model.links) > ROLL_ABOVE or operations > STEP_UNROLLED:
        return False
    return operations <= SMALL_STEP or operations <= FOLDS * in_loops


def _closed_step(step: TimeStep) -> float:
    """Return the predicted operations of a step with constraints and of its projections of q and qd onto them."""
    solves = FIXED_STEP[step.integrator].evaluations + 2
    return solves * predicted_operations(step.model, "forward_dynamics", 0)


def _can_loop(step: TimeStep) -> bool:
    """Whether every robot function in the step has one result per velocity and can be a loop over the links."""
    model = step.model
    if step.rest is not None or model.springs or model.is_coupled or not can_be_swept(model):
        return False
    try:
        traced_loops(replace(step, loops=True))
    except ArgumentError:  # a controller that uses poses, Jacobians or matrices
        return False
    return True


def _rows(name: str, values: np.ndarray, batch: tuple[int, ...], dtype: str) -> np.ndarray:
    """Return (times, ..., size) as (times, n, size), or as (times, 1, size) if all rollouts share the values."""
    times, axes, size = values.shape[0], values.shape[1:-1], values.shape[-1]
    if all(length == 1 for length in axes):
        return np.ascontiguousarray(values.reshape(times, 1, size), dtype)
    if broadcast_batch(**{"the rollouts": batch, name: axes}) != batch:
        raise ArgumentError(
            f"{name} has batch shape {axes}, expected one that broadcasts to that of the rollouts, {batch}."
        )
    check_memory(name, (times, *batch, size), np.dtype(dtype).itemsize)
    axes = (1,) * (len(batch) - len(axes)) + axes
    full = np.broadcast_to(values.reshape(times, *axes, size), (times, *batch, size))
    return np.ascontiguousarray(full.reshape(times, math.prod(batch), size), dtype)


def roll(kernel: Kernel, recording: Recording, feeds: list[Feed], threads: int, watch: Callable[[float], None]) -> None:
    """Fill the recording from its first state on; `watch` is called with the fraction that is done."""
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
    last_results(kernel, recording, feeds, records * recording.every)


def last_results(kernel: Kernel, recording: Recording, feeds: Sequence[Feed], steps: int) -> None:
    """Compute accelerations and torques in the last state, after all steps."""
    inputs = [x[-1] for x in recording.states]
    inputs += [feed.values[min(feed.first + feed.advance * steps, len(feed.values) - 1)] for feed in feeds]
    outputs = [np.empty_like(x[-1]) for x in recording.states] + [x[-1] for x in recording.results]
    kernel(inputs, outputs)
