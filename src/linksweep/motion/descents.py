"""Descents of one chain: in machine code, as a loop around a traced iteration, or in Python on the same lines."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from linksweep.backends.until import Until
from linksweep.catalogue.functions import FUNCTIONS, Request, signature
from linksweep.compiled.arrays import Argument, Signature
from linksweep.compiled.function import Recipe, make_function
from linksweep.mechanism.moving import moved, normalized
from linksweep.tracing.expression import Graph
from linksweep.tracing.passes import optimise
from linksweep.tracing.program import Array, Program, block_program
from linksweep.tracing.unrolled import UnrolledRun

from .base import FloatArray
from .descent import FLOATS, GOING, START, SYMBOLS, Problem, Report, State, Values, iterate

if TYPE_CHECKING:
    from .chains import Chain

MOST_JOINTS = 60  # that move: beyond, a written-out step takes long to compile, and Python goes through it
MOST_WORK = 20_000  # rows squared times rates, with constraints: as above


@dataclass(frozen=True)
class DescentRecipe(Recipe):
    """requests: the pose and the Jacobian of a frame, and with constraints their errors and Jacobian."""

    problem: Problem = field(default_factory=lambda: Problem((), 1.0, False))

    def loop(self) -> Until:
        return Until((16, 2, self._size), self._size, START, len(Report._fields))

    @property
    def _size(self) -> int:
        return signature(self.model, self.requests)[0][0].size

    def trace(self) -> Program:
        graph, loop = Graph(), self.loop()
        inputs = [Array("target", (16,)), Array("options", (2,)), Array("q0", (loop.start,))]
        inputs.append(Array("state", (loop.state,)))
        given = [
            np.array([graph.leaf("input", (k, i)) for i in range(array.size)], object) for k, array in enumerate(inputs)
        ]
        target, (tolerance, iterations), q0, flat = given
        n = loop.start

        def kinematics(q: Values) -> tuple[np.ndarray, ...]:
            results = []
            for request in self.requests:
                given, (made,) = signature(self.model, [request])
                run = UnrolledRun(self.model, given, [list(q)])
                FUNCTIONS[request.function].trace(run, request, 0)
                results.append(np.array(run.results[0], object).reshape(made.shape))
            return tuple(results)

        def moved_by(q: Values, step: Values) -> np.ndarray:
            return np.array(normalized(self.model, moved(self.model, list(q), list(step))), object)

        state = State(flat[:n], flat[n : 2 * n], Report(*flat[2 * n : 2 * n + loop.report]), *flat[-2:])
        after = iterate(
            SYMBOLS, self.problem, target.reshape(4, 4), q0, tolerance, iterations, state, kinematics, moved_by
        )  # fmt: skip
        values = [*after.q, *after.best, *after.report, after.mark, after.since]
        program = block_program("descent", inputs, [(inputs[-1], values)])
        return optimise(program)

    def signature(self) -> Signature:
        given = (Argument("target", (4, 4)), Argument("options", (2,)), Argument("q0", (self._size,)))
        return Signature("descent", given, (Argument("q", (self._size,)), Argument("report", (len(Report._fields),))))


def descents_of(chain: Chain, problem: Problem) -> Callable[..., tuple[FloatArray, ...]]:
    """A function of targets, options and starts: the best coordinates of each descent, and its report."""
    if not chain.compiled:
        return functools.partial(descend_in_python, chain, problem)
    requests = Request("pose", frame=chain.frame), Request("jacobian", frame=chain.frame, reference="world_aligned")
    if problem.constraints:
        requests += Request("constraint_error"), Request("constraint_jacobian")
    return make_function(DescentRecipe(chain.canonical, requests, problem=problem), "float64", 1, "llvm")


def descend_in_python(
    chain: Chain, problem: Problem, target: FloatArray, options: FloatArray, q0: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The same descents, for chains too long to be written out, and without machine code.

    target (N, 4, 4), q0 (N, nq) -> q (N, nq), report (N, ...).
    """
    count, size = q0.shape
    tolerance, iterations = options
    q, reports = q0.copy(), np.empty((count, len(Report._fields)))

    def first(x: FloatArray) -> FloatArray:  # components before samples
        return np.moveaxis(np.asarray(x), 0, -1)

    def kinematics(x: FloatArray) -> tuple[FloatArray, ...]:
        return tuple(first(part) for part in chain.function(np.ascontiguousarray(x.T)))

    def moved_by(x: FloatArray, step: FloatArray) -> FloatArray:
        return chain.moved(x.T, step.T).T

    active, own_target, own_q0 = np.arange(count), first(target), q0.T.copy()
    filled = [np.full(count, value) for value in START]
    state = State(q0.T.copy(), np.zeros((size, count)), Report(*filled[:-2]), *filled[-2:])
    with np.errstate(all="ignore"):
        while len(active):
            state = iterate(
                FLOATS, problem, own_target, own_q0, tolerance, iterations, state, kinematics, moved_by
            )  # fmt: skip
            keep = state.report.status == GOING
            ended = active[~keep]
            q[ended] = state.best[:, ~keep].T
            reports[ended] = np.stack(np.broadcast_arrays(*state.report), axis=1)[~keep]
            active, own_target, own_q0 = active[keep], own_target[..., keep], own_q0[:, keep]
            state = _taken(state, keep)
    return q, reports


def _taken(state: State, which: np.ndarray) -> State:
    report = Report(*(np.broadcast_to(x, which.shape)[which] for x in state.report))
    return State(state.q[:, which], state.best[:, which], report, state.mark[which], state.since[which])
