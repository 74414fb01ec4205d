"""Kinematic chains of frames, and Levenberg-Marquardt descents of inverse kinematics, compiled or in Python.

One iteration is written over arrays of any scalar, so the same lines run on floats and are traced into a Program.
Components come first: q (n,) of symbols, or (n, N) of floats for N samples. The step is

    dq = J^T (J J^T + lambda)^-1 e,   lambda = DAMPING |e|^2

with T. Sugihara's damping ("Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method", 2011), with
which no step has to be rejected. It is computed by orthogonalisation of [J^T; sqrt(lambda)] rather than from J J^T.
The product would lose singular values below 1e-8 of the largest, which decide near singular configurations.

Constraints between frames add rows: their residuals to e, and their Jacobian to J.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linksweep.algorithms.closed_chain.constraint_rows import ALIGN, ROWS
from linksweep.algorithms.closed_chain.constraint_rows import TURN as HELD_TURN
from linksweep.backends.ir import Until
from linksweep.functions.compiled import chosen_backend, compiled
from linksweep.functions.computation import Computation, RobotFunction, Tracing
from linksweep.joints.kind import TURN as TURNING
from linksweep.mechanism.canonical import CanonicalModel
from linksweep.mechanism.coordinates import integrate, moved, neutral, normalized
from linksweep.spatial.scalars import sqrt, where
from linksweep.support.lazy import lazy
from linksweep.tracing.program import Array, Program

from ..robot.robot import Robot
from .cartesian import rotation_vector
from .trajectories import FloatArray

if TYPE_CHECKING:
    from linksweep.model.model import Model, Vector

    from .branches import Form


DAMPING = 0.1  # of the squared error
TINY = 1e-60  # added to the damping: keeps the step finite where the Jacobian is zero
LARGEST_STEP = 1.0  # rad or m in one iteration
STALE = 6  # iterations that reduce the error by less than a tenth, after which a descent ends
ROUNDED = 1e-14  # a rotation farther than this from orthonormal is made so before it is a target
FAR = 1e300  # in place of infinity, which compiled functions take for invalid input
TURN = 2.0 * np.pi
GOING, SOLVED, GIVEN_UP, RAN_OUT = 0.0, 1.0, 2.0, 3.0
# half an angle over its sine, in powers of 1 - cos of it; at half a turn a step is up to 1 % short
_SERIES = (1.0, 1.0 / 3.0, 2.0 / 15.0, 2.0 / 35.0, 8.0 / 315.0, 8.0 / 693.0)


class Bound(NamedTuple):
    """Limits of a coordinate; its indices in q and qd.

    back: a whole turn may bring it back inside its limits. stop: it cannot make a whole turn.
    """

    index: int
    velocity: int
    lower: float
    upper: float
    back: bool
    stop: bool


Values = Any  # floats, arrays of samples, or symbols


class Scalars(NamedTuple):
    """The operations that differ between floats and symbols."""

    less: Callable[..., Values]
    choose: Callable[..., Values]
    root: Callable[..., Values]
    largest: Callable[..., Values]  # maximum along the first axis and a number


def _largest_symbol(values: Values, least: float) -> Values:
    largest: Values = least
    for value in values:
        largest = where(largest < value, value, largest)
    return largest


def _largest_float(values: Values, least: float) -> Values:
    return values.max(axis=0, initial=least)


FLOATS = Scalars(np.less, np.where, np.sqrt, _largest_float)
SYMBOLS = Scalars(
    np.frompyfunc(operator.lt, 2, 1), np.frompyfunc(where, 3, 1), np.frompyfunc(sqrt, 1, 1), _largest_symbol
)


class Report(NamedTuple):
    """The result of a descent, at its best coordinates.

    status: how it ended. distance (m), turn = 2 sin(angle / 2): error of the frame. cost: squared error, 0 where
    solved. plain: 1 if the target is an exact rotation, the start inside the limits, and no joint half a turn or more
    from it. gap: largest constraint residual (m or rad).
    """

    status: Values
    distance: Values
    turn: Values
    iterations: Values
    cost: Values
    plain: Values
    gap: Values


class State(NamedTuple):
    """Coordinates to evaluate next, the best so far with its report, the least squared error and its age."""

    q: Values
    best: Values
    report: Report
    mark: Values
    since: Values


START = (*Report(GOING, FAR, FAR, -1.0, FAR, 1.0, FAR), FAR, 0.0)  # after q and best


class Problem(NamedTuple):
    """Options of a descent that are compiled in.

    bounds: limits of coordinates. scale: a length (m) that weights positions against rotations. constraints: weights
    of the constraint rows. untargeted: satisfy the constraints only, ignore the target.
    """

    bounds: tuple[Bound, ...]
    scale: float
    position_only: bool
    constraints: tuple[float, ...] = ()
    untargeted: bool = False


def iterate(
    m: Scalars, problem: Problem, target: Values, q0: Values, tolerance: Values, iterations: Values, state: State,
    kinematics: Callable[[Values], tuple[Values, ...]], moved: Callable[[Values, Values], Values] = operator.add,
) -> State:  # fmt: skip
    """Evaluate state.q, keep it if it is the best so far, and take a step.

    target (4, 4, ...), q0 (n, ...): the start. kinematics(q): pose (4, 4, ...) and Jacobian (6, nv, ...), and with
    constraints their residuals (rows, ...) and Jacobian (rows, nv, ...). moved(q, step): q after a step (nv, ...).
    """
    q = within(m, problem.bounds, state.q)
    pose, jacobian, *constrained = kinematics(q)
    error, distance, turn = _error(m, problem, pose, target)
    matrix, gap = _weighted(problem, jacobian), 0.0
    near = m.choose(m.less(tolerance, distance), 0.0, m.choose(m.less(tolerance, turn), 0.0, 1.0))
    if problem.constraints:
        open_by, rows = constrained
        gap = m.root(m.largest(open_by * open_by, 0.0))
        near = m.choose(m.less(tolerance, gap), 0.0, near)
        error = np.concatenate([error, np.stack([x * -w for x, w in zip(open_by, problem.constraints, strict=True)])])
        matrix += [row * w for row, w in zip(rows, problem.constraints, strict=True)]
    there = m.less(0.5, near)
    square = _sum(error * error)
    number = state.report.iterations + 1.0
    better = m.choose(m.less(square, state.report.cost), 1.0, near)
    closer = m.less(0.5, m.choose(m.less(number, 0.5), 1.0, better))
    since = m.choose(m.less(square, state.mark * 0.9), 0.0, state.since + 1.0)
    ended = m.choose(m.less(number, iterations), GOING, RAN_OUT)
    status = m.choose(there, SOLVED, m.choose(m.less(STALE - 0.5, since), GIVEN_UP, ended))
    report = Report(
        status,
        m.choose(closer, distance, state.report.distance),
        m.choose(closer, turn, state.report.turn),
        number,
        m.choose(there, 0.0, m.choose(closer, square, state.report.cost)),
        _plain(m, problem, target, q0, q),
        m.choose(closer, gap, state.report.gap),
    )
    mark = m.choose(m.less(square, state.mark), square, state.mark)
    step = _step(m, _unblocked(m, problem, q, np.stack(matrix), error), error, square * DAMPING + TINY)
    return State(moved(q, step), m.choose(closer, q, state.best), report, mark, since)


def within(m: Scalars, bounds: tuple[Bound, ...], q: Values) -> Values:
    """Return q, at most one step outside its limits, clipped to them or brought back inside by a whole turn."""
    q = q.copy()
    for bound in bounds:
        x, low, high = q[bound.index], bound.lower, bound.upper
        above, below = high, low
        if bound.back:
            above = m.choose(m.less(x - TURN, low), high, x - TURN)
            below = m.choose(m.less(high, x + TURN), low, x + TURN)
        q[bound.index] = m.choose(m.less(high, x), above, m.choose(m.less(x, low), below, x))
    return q


def _error(m: Scalars, problem: Problem, pose: Values, target: Values) -> tuple[Values, Values, Values]:
    """Return the weighted error (6, ...) or (3, ...) of the pose, its distance (m), and 2 sin(angle / 2)."""
    way = target[:3, 3] - pose[:3, 3]
    if problem.untargeted:
        return way[:0], 0.0, 0.0
    distance = m.root(_sum(way * way))
    way = way * (1.0 / problem.scale)
    if problem.position_only:
        return way, distance, 0.0
    r = np.array([[_sum(target[i, :3] * pose[j, :3]) for j in range(3)] for i in range(3)], dtype=way.dtype)
    a, b, c = r[0, 0], r[1, 1], r[2, 2]
    odd = (r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1])
    even = (r[2, 1] + r[1, 2], r[0, 2] + r[2, 0], r[1, 0] + r[0, 1])
    # 4 w (w, x, y, z) of the quaternion, and 4 x (...), 4 y (...), 4 z (...): the one with the largest factor is exact
    rows = (
        (a + b + c + 1.0, odd[0], odd[1], odd[2]),
        (odd[0], a - b - c + 1.0, even[2], even[1]),
        (odd[1], even[2], b - a - c + 1.0, even[0]),
        (odd[2], even[1], even[0], c - a - b + 1.0),
    )
    chosen, largest = rows[0], rows[0][0]
    for place in (1, 2, 3):
        more = m.less(largest, rows[place][place])
        chosen = tuple(m.choose(more, new, old) for new, old in zip(rows[place], chosen, strict=True))
        largest = m.choose(more, rows[place][place], largest)
    unit = 0.5 / m.root(largest)
    w = chosen[0] * unit
    unit = m.choose(m.less(w, 0.0), -unit, unit)  # the shorter rotation
    half = np.array([part * unit for part in chosen[1:]], dtype=way.dtype)  # its sine times the axis
    short, factor = 1.0 - m.choose(m.less(w, 0.0), -w, w), 0.0
    for term in reversed(_SERIES):
        factor = short * factor + term
    return np.concatenate([half * (factor * 2.0), way]), distance, m.root(_sum(half * half)) * 2.0


def _plain(m: Scalars, problem: Problem, target: Values, q0: Values, q: Values) -> Values:
    """Return 0 if the target's rotation is not exact, q is half a turn from q0, or q0 is outside the limits, else 1."""
    plain: Values = 1.0

    def unless(condition: Values) -> None:
        nonlocal plain
        plain = m.choose(condition, 0.0, plain)

    x, y, z = target[0, :3], target[1, :3], target[2, :3]
    cross = np.array([x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]], dtype=q.dtype)
    off = [_sum(x * x) - 1.0, _sum(y * y) - 1.0, _sum(x * y), *(cross - z)]
    last = [target[3, 0], target[3, 1], target[3, 2], target[3, 3] - 1.0]
    for value, most in (*((value, ROUNDED**2) for value in off), *((value, 0.0) for value in last)):
        unless(m.less(most, value * value))
    for bound in problem.bounds:
        unless(m.less(q0[bound.index], bound.lower))
        unless(m.less(bound.upper, q0[bound.index]))
    unless(m.less(9.0, m.largest((q - q0) * (q - q0), 0.0)))
    return plain


def _weighted(problem: Problem, jacobian: Values) -> list[Values]:
    """Return the rows of the frame's Jacobian that matter, weighted as its error is."""
    if problem.untargeted:
        return []
    weights = [1.0] * 3 + [1.0 / problem.scale] * 3
    return [jacobian[i] * weights[i] for i in (range(3, 6) if problem.position_only else range(6))]


def _unblocked(m: Scalars, problem: Problem, q: Values, matrix: Values, error: Values) -> Values:
    """Return the weighted Jacobian without the joints at a limit that the step would push outward."""
    for bound in problem.bounds:
        if bound.stop:
            x, column = q[bound.index], matrix[:, bound.velocity]
            gradient = _sum(column * error)
            up = m.choose(m.less(0.0, gradient), m.choose(m.less(x, bound.upper), 1.0, 0.0), 1.0)
            free = m.choose(m.less(gradient, 0.0), m.choose(m.less(bound.lower, x), 1.0, 0.0), up)
            matrix[:, bound.velocity] = column * free
    return matrix


def _step(m: Scalars, jacobian: Values, error: Values, damping: Values) -> Values:
    """Return J^T (J J^T + damping)^-1 error, by modified Gram-Schmidt: [J^T; sqrt(damping)] = Q R."""
    rows, root = len(jacobian), m.root(damping)
    vectors, fill = list(jacobian), [[0.0] * i + [root] for i in range(rows)]  # the rows that the damping adds
    step: Values = 0.0
    y: list[Values] = []
    factors: list[list[Values]] = [[] for _ in range(rows)]
    for i in range(rows):
        unit, unit_fill = vectors[i], fill[i]
        inverse = 1.0 / m.root(_sum(unit * unit) + _total([x * x for x in unit_fill]))
        unit, unit_fill = unit * inverse, [x * inverse for x in unit_fill]
        previous = _total([factor * value for factor, value in zip(factors[i], y, strict=True)])
        y.append((error[i] - previous) * inverse)
        step = unit * y[i] + step
        for k in range(i + 1, rows):
            along = _sum(unit * vectors[k]) + _total([a * b for a, b in zip(unit_fill, fill[k], strict=False)])
            vectors[k] = vectors[k] - unit * along
            fill[k] = [b - a * along for a, b in zip(unit_fill, fill[k], strict=False)] + fill[k][i + 1 :]
            factors[k].append(along)
    return step * (LARGEST_STEP / m.root(m.largest(step * step, LARGEST_STEP**2)))


def _sum(values: Values) -> Values:
    return values.sum(axis=0)


def _total(values: list[Values]) -> Values:
    return sum(values, 0.0)


# ---- Descents of one chain: compiled, as a loop around the traced iteration, or in Python

MOST_JOINTS = 60  # moving joints; beyond, an unrolled step takes long to compile, and Python runs it
MOST_WORK = 20_000  # rows squared times nv, with constraints: as above


@dataclass(frozen=True)
class Iteration(Computation):
    """One iteration of a descent: target, options, q0, state -> state.

    kinematics: pose and Jacobian of a frame, and with constraints their residuals and Jacobian.
    """

    kinematics: tuple[RobotFunction, ...]
    problem: Problem

    @property
    def model(self) -> CanonicalModel:
        return self.kinematics[0].model

    @property
    def name(self) -> str:
        return "descent"

    @property
    def inputs(self) -> tuple[Array, ...]:
        n = self.model.nq
        state = 2 * n + len(START)
        return Array("target", (16,)), Array("options", (2,)), Array("q0", (n,)), Array("state", (state,))

    @property
    def outputs(self) -> tuple[Array, ...]:
        return (self.inputs[-1],)

    def values(self, tracing: Tracing) -> tuple[list[Values]]:
        target, (tolerance, iterations), q0, flat = (
            np.array(tracing.leaves[array.name], object) for array in self.inputs
        )
        n, model = self.model.nq, self.model

        def kinematics(q: Values) -> tuple[np.ndarray, ...]:
            return tuple(
                np.array(function.evaluate(list(q)), object).reshape(function.outputs[0].shape)
                for function in self.kinematics
            )

        def moved_by(q: Values, step: Values) -> np.ndarray:
            return np.array(normalized(model, moved(model, list(q), list(step))), object)

        state = State(flat[:n], flat[n : 2 * n], Report(*flat[2 * n : 2 * n + len(Report._fields)]), *flat[-2:])
        after = iterate(
            SYMBOLS, self.problem, target.reshape(4, 4), q0, tolerance, iterations, state, kinematics, moved_by
        )  # fmt: skip
        return ([*after.q, *after.best, *after.report, after.mark, after.since],)


@dataclass(frozen=True)
class Descent(Computation):
    """A whole descent, target, options, q0 -> q, report: a loop around an `Iteration`, until each sample has ended."""

    iteration: Iteration

    @property
    def model(self) -> CanonicalModel:
        return self.iteration.model

    @property
    def name(self) -> str:
        return "descent"

    @property
    def inputs(self) -> tuple[Array, ...]:
        return Array("target", (4, 4)), Array("options", (2,)), Array("q0", (self.model.nq,))

    @property
    def outputs(self) -> tuple[Array, ...]:
        return Array("q", (self.model.nq,)), Array("report", (len(Report._fields),))

    def trace(self) -> Program:
        return self.iteration.trace()

    def loop(self) -> Until:
        return Until((16, 2, self.model.nq), self.model.nq, START, len(Report._fields))


def descents_of(chain: Chain, problem: Problem) -> Callable[..., tuple[FloatArray, ...]]:
    """Return a function of targets, options and starts: the best coordinates of each descent, and its report."""
    if not chain.compiled:
        return functools.partial(descend_in_python, chain, problem)
    model, frame = chain.canonical, chain.frame
    kinematics = (
        RobotFunction(model, "pose", frame=frame),
        RobotFunction(model, "jacobian", frame=frame, reference="world_aligned"),
    )
    if problem.constraints:
        kinematics += RobotFunction(model, "constraint_error"), RobotFunction(model, "constraint_jacobian")
    return compiled(Descent(Iteration(kinematics, problem)), "float64", 1, "llvm")


def descend_in_python(
    chain: Chain, problem: Problem, target: FloatArray, options: FloatArray, q0: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Run the same descents in Python: for chains too long to be unrolled, and without machine code.

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

    active, active_target, active_q0 = np.arange(count), first(target), q0.T.copy()
    filled = [np.full(count, value) for value in START]
    state = State(q0.T.copy(), np.zeros((size, count)), Report(*filled[:-2]), *filled[-2:])
    with np.errstate(all="ignore"):
        while len(active):
            state = iterate(
                FLOATS, problem, active_target, active_q0, tolerance, iterations, state, kinematics, moved_by
            )  # fmt: skip
            keep = state.report.status == GOING
            ended = active[~keep]
            q[ended] = state.best[:, ~keep].T
            reports[ended] = np.stack(np.broadcast_arrays(*state.report), axis=1)[~keep]
            active, active_target, active_q0 = active[keep], active_target[..., keep], active_q0[:, keep]
            state = _taken(state, keep)
    return q, reports


def _taken(state: State, which: np.ndarray) -> State:
    report = Report(*(np.broadcast_to(x, which.shape)[which] for x in state.report))
    return State(state.q[:, which], state.best[:, which], report, state.mark[which], state.since[which])


# ---- The kinematic chain of a frame: pose and Jacobian, limits, steps, random starts

Descents = Callable[..., tuple[FloatArray, ...]]  # of targets, options and starts
STARTS = 512
CLOSES, CLOSING = 1e-10, 100  # largest constraint residual of starts (m, rad), and iterations to get there


class Samples(NamedTuple):
    """Sampled coordinates (STARTS, nq), features (STARTS, ...) of their poses, and half the squares (STARTS,)."""

    q: FloatArray
    features: np.ndarray
    half: np.ndarray


class Chain:
    """The joints between the base and a frame of a robot.

    lower, upper (nq,): limits, infinite for multi-DOF joints. wraps (nq,): revolute joints that can make a whole
    turn, which brings them back within their limits. stops: the other coordinates with limits. With constraints
    (`constrained`), the joints that they couple belong to the chain, and all loops are closed with the target.
    """

    def __init__(self, robot: Robot, frame: str) -> None:
        self.frame, self.canonical = frame, robot.canonical  # not the robot itself, which owns its chains
        self.constrained = bool(robot.model.constraints)
        closing = ["constraint_error", "constraint_jacobian"] if self.constrained else []
        self.function = robot.compile([("pose", frame), ("jacobian", frame), *closing], dtype="float64")
        model, links = robot.model, robot.canonical.links
        place = next(f for f in model.frames if f.name == frame)
        carrying = self.carrying = robot.canonical.path(place.link)
        moving = set(carrying)
        for tie in robot.canonical.ties:
            moving |= set(robot.canonical.path(tie.a.link)) ^ set(robot.canonical.path(tie.b.link))
        nq = robot.nq
        self.lower, self.upper = np.full(nq, -np.inf), np.full(nq, np.inf)
        self.moves = np.zeros(nq, bool)
        self.turns = np.zeros(nq, bool)
        self.quaternions: list[int] = []
        self.simple = robot.canonical.is_euclidean
        for index, entry in enumerate(links):
            where, kind = entry.coordinates, entry.type
            self.moves[where] |= index in moving
            if not entry.leads:
                continue
            self.turns[where] = [kind.euclidean and x.measures == TURNING for x in kind.coordinates]
            if kind.has_quaternion:
                self.quaternions.append(entry.q_start)
            if kind.limited:
                limits = model.links[index].joint.limits
                self.lower[where], self.upper[where] = limits.lower, limits.upper
        for entry in links:
            if not entry.leads:  # a turn of a leader is not a turn of its mimic joints
                self.turns[entry.q_start] = False
        self.reach, self.root = _reach(model, carrying, place.placement.position)
        self.wraps = self.turns & (self.upper - self.lower >= TURN)
        bounded = (np.isfinite(self.lower) | np.isfinite(self.upper)) & self.moves
        self.bounded = bool(bounded.any())
        ends = bounded & ~self.wraps
        stops = [pair for entry in links if entry.leads for pair in entry.pairs if ends[pair[0]]]
        self.stops = np.array(stops, int).reshape(-1, 2)[:, 0]
        self.velocities = dict(pair for entry in links for pair in entry.pairs)
        rows = sum(tie.rows for tie in robot.canonical.ties)
        small = len(moving) <= MOST_JOINTS and (not rows or (6 + rows) ** 2 * robot.nv <= MOST_WORK)
        self.compiled = small and chosen_backend(None) == "llvm"
        self.at_once: dict[tuple[bool, bool], Descents] = {}  # compiled descents, by position_only and limited
        self.options: dict[tuple[float, int, int, int], FloatArray] = {}  # the last ones, as arrays
        self.size = (nq,)
        self.form: Form | str | None = None  # closed form, or the reason why there is none: see branches.py
        self._descents: dict[tuple[bool, bool, bool], Descents] = {}
        self._starts: dict[tuple[int, bool], tuple[FloatArray, FloatArray]] = {}
        self._samples: dict[tuple[int, bool, bool], Samples] = {}

    def neutral(self) -> FloatArray:
        """Return the neutral coordinates, clipped to the limits."""
        return np.clip(neutral(self.canonical), self.lower, self.upper)

    def moved(self, q: FloatArray, step: FloatArray) -> FloatArray:
        return q + step if self.simple else integrate(self.canonical, q, step, 1.0)

    def within(self, q: FloatArray) -> FloatArray:
        """Return q within the limits: by whole turns where these suffice, clipped otherwise."""
        if not self.bounded:
            return q
        stopped = np.minimum(np.maximum(q, self.lower), self.upper)
        over = np.where(self.turns, q - stopped, 0.0)
        if over.any():
            back = q - TURN * np.sign(over) * np.ceil(np.abs(over) / TURN)
            stopped = np.where((over != 0.0) & (self.lower <= back) & (back <= self.upper), back, stopped)
        return stopped

    def unwound(self, q: FloatArray, near: FloatArray, limited: bool) -> FloatArray:
        """Return q with whole turns removed, as near to `near` as the limits allow."""
        wraps = self.wraps if limited else self.turns & self.moves
        q = np.where(wraps, q - TURN * np.round((q - near) / TURN), q)
        return self.within(q) if limited else q

    def starts(self, seed: int, limited: bool = True) -> tuple[FloatArray, FloatArray]:
        """Return up to STARTS random coordinates, within the limits if `limited`, and the frame's poses there.

        With constraints, only those at which the loops could be closed, unless there are none.
        """
        if (seed, limited) not in self._starts:
            q = self._random(seed, limited)
            if self.constrained:
                closed, closes = self.closed(q, limited)
                q = closed[closes] if closes.any() else closed
            self._starts[seed, limited] = q, self.function(q)[0]
        return self._starts[seed, limited]

    def closed(
        self, q: FloatArray, limited: bool, tolerance: float = CLOSES, iterations: int = CLOSING
    ) -> tuple[FloatArray, np.ndarray]:
        """Return coordinates near q (N, nq) that satisfy the constraints alone, and where (N,) they do."""
        targets, options = np.broadcast_to(np.eye(4), (len(q), 4, 4)), np.array([tolerance, iterations], float)
        best, report = self.descent(False, limited, untargeted=True)(targets, options, q)
        return best, report[:, 0] == SOLVED

    def _random(self, seed: int, limited: bool) -> FloatArray:
        """Return STARTS random coordinates."""
        rng = np.random.default_rng([seed, STARTS])  # independent of default_rng(seed)
        reach = np.where(self.turns, np.pi, 1.0)
        low, high = -reach, reach
        if limited:
            low, high = np.maximum(self.lower, low), np.minimum(self.upper, high)
            beyond = low > high  # the limits exclude this interval
            low = np.where(beyond, np.where(np.isfinite(self.lower), self.lower, self.upper), low)
            high = np.where(beyond, np.where(np.isfinite(self.upper), self.upper, self.lower), high)
        q = low + (high - low) * rng.random((STARTS, len(low)))
        for start in self.quaternions:
            turn = rng.normal(size=(STARTS, 4))
            q[:, start : start + 4] = turn / np.linalg.norm(turn, axis=1, keepdims=True)
        return np.where(self.moves, q, self.neutral())

    def samples(self, seed: int, limited: bool, position_only: bool) -> Samples:
        """Return the coordinates of `starts` with features that measure distances of poses, computed once."""
        key = seed, limited, position_only
        if key not in self._samples:
            q, poses = self.starts(seed, limited)
            features = self.features(poses, position_only)
            self._samples[key] = Samples(q, features, 0.5 * (features * features).sum(axis=1))
        return self._samples[key]

    def features(self, poses: FloatArray, position_only: bool) -> np.ndarray:
        """Return poses as vectors whose distance is that of the poses, in single precision, for ranking."""
        places = poses[:, :3, 3] / self.scale
        if position_only:
            return places.astype(np.float32)
        turned = poses[:, :3, :3].reshape(-1, 9) * np.sqrt(0.5)
        return np.concatenate([places, turned], axis=1).astype(np.float32)

    def descent(self, position_only: bool, limited: bool, untargeted: bool = False) -> Descents:
        """Return a function of targets (N, 4, 4), options (tolerance, iterations) and starts (N, nq).

        It returns the best coordinates of a descent from each start, and its report (see `descents.Report`).
        untargeted: satisfy only the constraints.
        """
        key = position_only, limited, untargeted
        if key not in self._descents:
            bounds = self._bounds() if limited else ()
            problem = Problem(bounds, self.scale, position_only, self.row_weights, untargeted)
            self._descents[key] = descents_of(self, problem)
            if self.compiled and self.simple and not untargeted:
                self.at_once[position_only, limited] = self._descents[key]
        return self._descents[key]

    @property
    def row_weights(self) -> tuple[float, ...]:
        """Weight of each constraint row: 1 for rotations, for lengths as for positions of the frame."""
        held = (part for tie in self.canonical.ties for part, axes in ROWS[tie.kind] for _ in axes)
        return tuple(1.0 if part in (HELD_TURN, ALIGN) else 1.0 / self.scale for part in held)

    def _bounds(self) -> tuple[Bound, ...]:
        places = np.flatnonzero(np.isfinite(self.lower) | np.isfinite(self.upper))
        low, high = np.maximum(self.lower, -FAR), np.minimum(self.upper, FAR)
        back = self.turns & (high - low >= TURN - LARGEST_STEP)
        return tuple(
            Bound(i, self.velocities[i], float(low[i]), float(high[i]), bool(back[i]), i in self.stops)
            for i in places.tolist()
        )

    @lazy
    def scale(self) -> float:
        """Length (m) that weights positions against rotations: the spread of positions of the frame."""
        places = self.function(self._random(0, limited=False))[0][:, :3, 3]
        spread = float(np.sqrt(places.var(axis=0).sum()))
        return spread if spread > 0.0 else 1.0


def error_of(pose: FloatArray, target: FloatArray) -> FloatArray:
    """Return the rotation vector and the displacement (..., 6) from the pose to the target, along the base axes."""
    turn = target[..., :3, :3] @ np.swapaxes(pose[..., :3, :3], -1, -2)
    return np.concatenate([rotation_vector(turn), target[..., :3, 3] - pose[..., :3, 3]], axis=-1)


def _reach(model: Model, carrying: list[int], tip: Vector) -> tuple[float, FloatArray]:
    """Return an upper bound of the distance between the frame and the first joint, and the position of that joint."""
    if not carrying:
        return 0.0, np.array(tip, float)
    length = float(np.linalg.norm(np.array(tip, float)))
    for index in carrying:
        joint = model.links[index].joint
        if index != carrying[-1]:
            length += float(np.linalg.norm(np.array(joint.placement.position, float)))
        length += joint.type.travel(joint.limits.lower, joint.limits.upper, joint.pitch)
    return length, np.array(model.links[carrying[-1]].joint.placement.position, float)
