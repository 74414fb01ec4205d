"""Fixed steps: the feeds of every step laid out in memory, and one call that runs through all of them."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..algorithms.closed_chain.swept import can_be_swept
from ..backends.rollout import STATES, Feed, Recording, run
from ..catalogue.defaults import ROLL_ABOVE, predicted_operations
from ..catalogue.functions import Request
from ..compiled.function import CompiledFunction
from ..errors import ArgumentError
from ..mechanism.canonical import CanonicalModel
from ..robot.robot import Robot
from ..support.memory import check_memory
from .checks import broadcast_batch
from .columns import ColumnKernel, Kernel
from .control.forms import Form
from .control.signals import Grid
from .laws import Constant, Function, Law
from .resting import Rest
from .step_program import StepRecipe, traced_loops
from .stepping import EVALUATIONS, STAGES

STEP_WRITTEN_OUT = 60_000  # predicted operations of all stages; LLVM takes a minute for twice as many
SMALL_STEP, FOLDS = 12_000, 0.8  # up to so many, or where no more than this share is left of what loops would run,
# a step that is written out is faster (benchmarks/steps.py)
CLOSED_SMALL = 25_000  # operations of a step with constraints, beyond which it runs as loops if it can be
CLOSED_WRITTEN_OUT = 300_000  # of one that cannot: LLVM takes a minute or two
LOOPED_UP_TO = 300  # links; what joins the stages is written out, and beyond takes LLVM longer than a robot is worth
_PIECE = 0.1  # seconds of work between two looks at the clock, and at whether the user wants to stop


def step_kernel(
    robot: Robot, law: Law, integrator: str, request: Request, dtype: str, backend: str, rest: Rest | None = None,
    push: Law | None = None, gains: tuple[float, float] | None = None,
) -> Kernel:  # fmt: skip
    """The kernel of one step: machine code or interpreter, or Python around compiled dynamics."""
    recipe = StepRecipe(
        robot.canonical, (request,), integrator=integrator, law=law.form(robot), rest=rest, push=_form(push, robot),
        gains=gains,
    )  # fmt: skip
    if isinstance(law, Function):
        return ColumnKernel(recipe, dtype, backend, law.function)
    return _compiled_step(recipe, dtype, backend)


@functools.lru_cache(maxsize=32)
def _compiled_step(recipe: StepRecipe, dtype: str, backend: str) -> Kernel:
    links = len(recipe.model.links)
    if recipe.model.ties and _closed_step(recipe) > CLOSED_SMALL and _loops_serve(recipe):
        return CompiledFunction(replace(recipe, loops=True), dtype, 1, backend).kernel(dtype)
    if written_out(recipe.model, recipe.integrator):
        return CompiledFunction(recipe, dtype, 1, backend).kernel(dtype)
    if links <= LOOPED_UP_TO and _loops_serve(recipe):
        return CompiledFunction(replace(recipe, loops=True), dtype, 1, backend).kernel(dtype)
    if links <= ROLL_ABOVE or (recipe.model.ties and _closed_step(recipe) <= CLOSED_WRITTEN_OUT):
        return CompiledFunction(recipe, dtype, 1, backend).kernel(dtype)
    return ColumnKernel(recipe, dtype, backend)


def written_out(model: CanonicalModel, integrator: str) -> bool:
    """Whether a step is one straight program, by the operations predicted of it and of loops over the links."""
    stages = STAGES[integrator]
    operations = stages * predicted_operations(model, "forward_dynamics", 0)
    in_loops = stages * predicted_operations(model, "forward_dynamics", 0, loops=True)
    if len(model.links) > ROLL_ABOVE or operations > STEP_WRITTEN_OUT:
        return False
    return operations <= SMALL_STEP or operations <= FOLDS * in_loops


def _closed_step(recipe: StepRecipe) -> float:
    """Predicted operations of a step with constraints: its stages, and the way back onto them, pose and rates."""
    solves = EVALUATIONS[recipe.integrator] + 2
    return solves * predicted_operations(recipe.model, "forward_dynamics", 0)


def _loops_serve(recipe: StepRecipe) -> bool:
    """Whether every function that the step asks for has a number for each rate, and can be a loop."""
    model = recipe.model
    if recipe.rest is not None or model.springs or model.is_coupled or not can_be_swept(model):
        return False
    try:
        traced_loops(replace(recipe, loops=True))
    except ArgumentError:  # a law that asks for poses, Jacobians or matrices
        return False
    return True


def _form(law: Law | None, robot: Robot) -> Form:
    return Form() if law is None else law.form(robot)


def feeds_of(
    robot: Robot, law: Law, integrator: str, request: Request, grid: Grid, batch: tuple[int, ...], dtype: str,
    push: Law | None = None,
) -> list[Feed]:  # fmt: skip
    """dt, the signals of the law at each stage, and its constants, in the order of the step's inputs."""
    feeds = [Feed(np.full((1, 1, 1), grid.dt, dtype))]
    recipe = StepRecipe(
        robot.canonical, (request,), integrator=integrator, law=law.form(robot), push=_form(push, robot)
    )
    given, fixed = law.signals(robot, grid), law.constants(robot)
    if push is not None:
        given |= {f"push_{name}": signal for name, signal in push.signals(robot, grid).items()}
        fixed |= {f"push_{name}": values for name, values in push.constants(robot).items()}
    for name in recipe.signals():
        signal = given[name]
        values = _rows(name, signal.values, batch, dtype)
        offsets = (0, 1, 2) if signal.rows == 2 else (0, 0, 0)
        feeds += [Feed(values, offset, signal.rows) for offset in offsets[: grid.stages]]
    feeds += [Feed(_rows(name, fixed[name][None], batch, dtype)) for name in recipe.constants()]
    for feed, array in zip(feeds, recipe.inputs()[STATES:], strict=True):  # machine code reads them without looking
        last = feed.first + feed.advance * (grid.steps - 1)
        if feed.values.shape[2] != array.size or len(feed.values) <= last:
            raise ArgumentError(
                f"{law!r} gives {array.name} of shape {feed.values.shape[::2]}, expected {array.size} numbers for each "
                f"of {last + 1} moments: correct its signals and constants."
            )
    return feeds


def held_feeds(
    robot: Robot, integrator: str, request: Request, grid: Grid, batch: tuple[int, ...], dtype: str, push: Law | None
) -> tuple[list[Feed], np.ndarray]:
    """The feeds of a step with a constant torque, and that torque (1, n, nv), to be written between two runs."""
    law = Constant(np.zeros(robot.nv))
    feeds = feeds_of(robot, law, integrator, request, grid, batch, dtype, push)
    recipe = StepRecipe(
        robot.canonical, (request,), integrator=integrator, law=law.form(robot), push=_form(push, robot)
    )
    held = np.zeros((1, math.prod(batch), robot.nv), dtype)
    feeds[[array.name for array in recipe.inputs()[STATES:]].index("tau")] = Feed(held)
    return feeds, held


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
