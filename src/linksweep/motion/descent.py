"""Levenberg-Marquardt, one iteration, over arrays of any scalar: the same lines run on floats and on symbols.

Arrays have their components first: q (n,) of symbols, or (n, N) of floats for N samples. The step is

    dq = J^T (J J^T + lambda)^-1 e,   lambda = DAMPING |e|^2

with T. Sugihara's damping ("Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method", 2011), with
which no step needs to be taken back. It comes from an orthogonalisation of [J^T; sqrt(lambda)] rather than from J J^T,
which loses singular values below 1e-8 of the largest: near singular poses they are what is left to do.

Constraints between frames are further rows: their errors belong to e, and their Jacobian to J.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from linksweep.spatial.scalars import sqrt, where

DAMPING = 0.1  # of the squared error
TINY = 1e-60  # added to the damping: keeps the step finite where there is no Jacobian at all
LARGEST_STEP = 1.0  # rad or m in one iteration
STALE = 6  # iterations without a tenth less error before a start is given up
ROUNDED = 1e-14  # a rotation farther than this from orthonormal is made so before it is a target
FAR = 1e300  # in the place of infinity, which machine code takes for bad input
TURN = 2.0 * np.pi
GOING, SOLVED, GIVEN_UP, RAN_OUT = 0.0, 1.0, 2.0, 3.0
# half an angle over its sine, by powers of 1 - cos of it: a step may be a hundredth short where half a turn is missing
_SERIES = (1.0, 1.0 / 3.0, 2.0 / 15.0, 2.0 / 35.0, 8.0 / 315.0, 8.0 / 693.0)


class Bound(NamedTuple):
    """The limits of a coordinate, and its rate's place. back: a whole turn may bring it back inside. stop: it cannot go
    all the way round."""

    place: int
    rate: int
    lower: float
    upper: float
    back: bool
    stop: bool


Values = Any  # floats, an array of samples, or symbols: the lines below run over all of them


class Scalars(NamedTuple):
    """What differs between floats and symbols."""

    less: Callable[..., Values]
    choose: Callable[..., Values]
    root: Callable[..., Values]
    largest: Callable[..., Values]  # along the first axis, and no less than a number


def _largest_symbol(values: Values, least: float) -> Values:
    found: Values = least
    for value in values:
        found = where(found < value, value, found)
    return found


def _largest_float(values: Values, least: float) -> Values:
    return values.max(axis=0, initial=least)


FLOATS = Scalars(np.less, np.where, np.sqrt, _largest_float)
SYMBOLS = Scalars(
    np.frompyfunc(operator.lt, 2, 1), np.frompyfunc(where, 3, 1), np.frompyfunc(sqrt, 1, 1), _largest_symbol
)


class Report(NamedTuple):
    """What a descent comes to: how it ended, the frame's distance (m) and 2 sin(angle / 2) from the target at the best
    coordinates, iterations, squared error there (0 where solved), whether target and start are plain (an exact
    rotation, a start inside the limits, and no joint half a turn or more from it), and the largest error of the
    constraints (m or rad) at the best coordinates."""

    status: Values
    distance: Values
    turn: Values
    iterations: Values
    cost: Values
    plain: Values
    gap: Values


class State(NamedTuple):
    """Coordinates to look at next, the best so far with its report, the least squared error and for how long it is."""

    q: Values
    best: Values
    report: Report
    mark: Values
    since: Values


START = (*Report(GOING, FAR, FAR, -1.0, FAR, 1.0, FAR), FAR, 0.0)  # after q and best


class Problem(NamedTuple):
    """bounds: of the coordinates with limits. scale: a length (m) that weighs positions against rotations.

    constraints: weights of the rows of the constraints. untargeted: only the constraints count, not the target.
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
    """Look at state.q, keep it if it is the best, and move on.

    target (4, 4, ...), q0 (n, ...): where it began. kinematics(q): pose (4, 4, ...) and Jacobian (6, rates, ...), and
    with constraints their errors (rows, ...) and Jacobian (rows, rates, ...). moved(q, step): q after a step of its
    rates.
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
    """q, at most one step out of its limits, with a turn taken off where that brings a joint back, else stopped."""
    q = q.copy()
    for bound in bounds:
        x, low, high = q[bound.place], bound.lower, bound.upper
        above, below = high, low
        if bound.back:
            above = m.choose(m.less(x - TURN, low), high, x - TURN)
            below = m.choose(m.less(high, x + TURN), low, x + TURN)
        q[bound.place] = m.choose(m.less(high, x), above, m.choose(m.less(x, low), below, x))
    return q


def _error(m: Scalars, problem: Problem, pose: Values, target: Values) -> tuple[Values, Values, Values]:
    """The weighted way from pose to target (6, ...), or (3, ...); its length (m), and 2 sin(angle / 2) of its turn."""
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
    unit = m.choose(m.less(w, 0.0), -unit, unit)  # the shorter way round
    half = np.array([part * unit for part in chosen[1:]], dtype=way.dtype)  # its sine times the axis
    short, factor = 1.0 - m.choose(m.less(w, 0.0), -w, w), 0.0
    for term in reversed(_SERIES):
        factor = short * factor + term
    return np.concatenate([half * (factor * 2.0), way]), distance, m.root(_sum(half * half)) * 2.0


def _plain(m: Scalars, problem: Problem, target: Values, q0: Values, q: Values) -> Values:
    """1, or 0 where the target's rotation is not exact or q is half a turn from q0, or q0 outside the limits."""
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
        unless(m.less(q0[bound.place], bound.lower))
        unless(m.less(bound.upper, q0[bound.place]))
    unless(m.less(9.0, m.largest((q - q0) * (q - q0), 0.0)))
    return plain


def _weighted(problem: Problem, jacobian: Values) -> list[Values]:
    """The rows of the frame's Jacobian that count, weighted as its error is."""
    if problem.untargeted:
        return []
    weights = [1.0] * 3 + [1.0 / problem.scale] * 3
    return [jacobian[i] * weights[i] for i in (range(3, 6) if problem.position_only else range(6))]


def _unblocked(m: Scalars, problem: Problem, q: Values, matrix: Values, error: Values) -> Values:
    """The weighted Jacobian without the joints that stand at a limit and would be pushed outward."""
    for bound in problem.bounds:
        if bound.stop:
            x, column = q[bound.place], matrix[:, bound.rate]
            wish = _sum(column * error)
            up = m.choose(m.less(0.0, wish), m.choose(m.less(x, bound.upper), 1.0, 0.0), 1.0)
            free = m.choose(m.less(wish, 0.0), m.choose(m.less(bound.lower, x), 1.0, 0.0), up)
            matrix[:, bound.rate] = column * free
    return matrix


def _step(m: Scalars, jacobian: Values, error: Values, damping: Values) -> Values:
    """J^T (J J^T + damping)^-1 error, by the modified Gram-Schmidt process: [J^T; sqrt(damping)] = Q R."""
    rows, root = len(jacobian), m.root(damping)
    vectors, fill = list(jacobian), [[0.0] * i + [root] for i in range(rows)]  # what the damping adds stands below
    step: Values = 0.0
    y: list[Values] = []
    factors: list[list[Values]] = [[] for _ in range(rows)]
    for i in range(rows):
        own, own_fill = vectors[i], fill[i]
        inverse = 1.0 / m.root(_sum(own * own) + _total([x * x for x in own_fill]))
        own, own_fill = own * inverse, [x * inverse for x in own_fill]
        known = _total([factor * value for factor, value in zip(factors[i], y, strict=True)])
        y.append((error[i] - known) * inverse)
        step = own * y[i] + step
        for k in range(i + 1, rows):
            along = _sum(own * vectors[k]) + _total([a * b for a, b in zip(own_fill, fill[k], strict=False)])
            vectors[k] = vectors[k] - own * along
            fill[k] = [b - a * along for a, b in zip(own_fill, fill[k], strict=False)] + fill[k][i + 1 :]
            factors[k].append(along)
    return step * (LARGEST_STEP / m.root(m.largest(step * step, LARGEST_STEP**2)))


def _sum(values: Values) -> Values:
    return values.sum(axis=0)


def _total(values: list[Values]) -> Values:
    return sum(values, 0.0)
