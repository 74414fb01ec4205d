"""All solutions of inverse kinematics in closed form, for arms that have one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.mechanism.coordinates import neutral
from linksweep.support.checks import real_number
from linksweep.support.messages import listing

from ..robot.robot import Robot
from .cartesian import checked_poses
from .closed_form import Motion, Screw, Solver, Unsolvable, recognised
from .descents import TURN, Chain
from .inverse import (
    BLOCK,
    CONVERGED,
    LIMITS,
    NOT_CONVERGED,
    ORIENTATION,
    OUT_OF_REACH,
    Task,
    chain_of,
    check_flags,
    inverse_kinematics,
    starts_of,
)
from .trajectories import FloatArray

CALLER = "inverse_kinematics_branches"
POLISHED, STEPS = 1e-13, 10  # m and rad after Newton steps; one or two suffice away from singular configurations
SAME = 1e-6  # rad or m: branches this close to each other meet at a singular configuration and are one
RESTARTS = 2  # of the numerical search for a target without solutions
EDGE = 1e-9  # rad or m: a joint this far outside its limits is clipped to them


@dataclass(frozen=True)
class Branches:
    """All solutions for targets of shape (...), at most b for each.

    Attributes
    ----------
    q : (..., b, nq)
        The solutions, nearest to q0 first, and NaN after the last.
    count : (...)
        Number of solutions.
    singular : (..., b)
        Whether branches meet at this solution, or it represents a family of solutions. A joint that is arbitrary is
        where q0 has it.
    reason : (...)
        "converged", or why there is no solution, as in `InverseKinematics`.
    position_error, rotation_error : (...)
        Largest error of the solutions (m, rad). Without a solution, the error after a short numerical search.
    form : str
        The geometry of the arm that gives the closed form.
    """

    q: FloatArray
    count: np.ndarray
    singular: np.ndarray
    reason: np.ndarray
    position_error: FloatArray
    rotation_error: FloatArray
    form: str


def inverse_kinematics_branches(
    robot: Robot,
    target: ArrayLike,
    frame: str,
    q0: ArrayLike | None = None,
    *,
    limits: bool = True,
    tolerance: float = 1e-10,
) -> Branches:
    """Return all coordinates at which the frame has the target poses, in closed form.

    Six joints must move the frame: revolute or prismatic ones of which the last three or the first three are revolute
    with intersecting axes, or revolute ones with three parallel axes in a row. A target without solutions is not an
    error.

    Parameters
    ----------
    robot : Robot
    target : (..., 4, 4)
        Poses in the base frame.
    frame : one of `robot.frame_names`
    q0 : (..., nq)
        Preferred coordinates: they select whole turns of joints, and one of a family of solutions. Joints that do not
        move the frame stay there. Neutral coordinates by default.
    limits : bool
        Omit solutions outside the joint limits.
    tolerance : float
        Of the poses, in m and rad.

    Returns
    -------
    Branches

    Raises
    ------
    ArgumentError
        If the arm has no closed form, with the reason, or if the robot has constraints.
    """
    check_flags(limits=limits)
    real_number(f"{CALLER}: tolerance", tolerance, above=0.0)
    targets = checked_poses(CALLER, "target", target)
    chain = chain_of(robot, frame)
    if chain.constrained:
        raise ArgumentError(
            f"{CALLER}: {robot.name} has constraints between its frames, which the closed form ignores. Use "
            f"inverse_kinematics, or robot.without_constraints() for the branches of the tree."
        )
    form = _form_of(chain)
    shape = targets.shape[:-2]
    flat = Task(chain, targets.reshape(-1, 4, 4), False, limits, float(tolerance), 1)
    starts = starts_of(robot, chain.neutral() if q0 is None else q0, shape, CALLER)
    parts = []
    for i in range(0, max(len(flat.targets), 1), BLOCK):
        which = np.arange(i, min(i + BLOCK, len(flat.targets)))
        parts.append(_block(robot, flat.take(which), form, starts[which], q0 is None))
    arrays = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    return Branches(*(array.reshape((*shape, *array.shape[1:]))[()] for array in arrays), form=form.name)


@dataclass
class Form:
    """The closed form of a chain: name, solver, indices of the joints in q, and the pose of the frame at q = 0."""

    name: str
    solver: Solver
    indices: list[int]
    home: FloatArray

    def candidates(self, targets: FloatArray, near: FloatArray) -> tuple[FloatArray, np.ndarray]:
        """Return coordinates (N, K, 6), NaN where there are none, and which represent a family."""
        inverse = np.linalg.inv(self.home)
        motions = (targets @ inverse).transpose(1, 2, 0)[..., None]
        with np.errstate(all="ignore"):
            solution = self.solver(Motion(motions[:3, :3], motions[:3, 3]), near[:, self.indices].T[..., None])
        return np.moveaxis(solution.q, 0, -1), solution.free


def _form_of(chain: Chain) -> Form:
    """Return the closed form of a chain, which is recognised once."""
    if chain.form is None:
        try:
            chain.form = _recognise(chain)
        except Unsolvable as reason:
            chain.form = str(reason)
    if isinstance(chain.form, str):
        raise ArgumentError(
            f"{CALLER} has no closed form for {chain.frame!r}: {chain.form}. Use inverse_kinematics instead."
        )
    return chain.form


def _recognise(chain: Chain) -> Form:
    links = [chain.canonical.links[i] for i in reversed(chain.carrying)]
    if len(links) != 6:
        raise Unsolvable(f"{len(links)} joints move it, expected 6")
    odd = [link.name for link in links if link.kind not in ("revolute", "prismatic") or not link.leads]
    if odd or len({link.q_start for link in links}) != 6:
        raise Unsolvable(f"the joints of {listing(odd)} are not independent revolute or prismatic joints")
    home, jacobian = (array[0] for array in chain.function(neutral(chain.canonical)[None]))
    screws = []
    for link in links:
        angular, linear = jacobian[:3, link.start], jacobian[3:, link.start]
        turns = link.kind == "revolute"
        w = angular if turns else linear
        point = home[:3, 3] + np.cross(angular, linear) if turns else home[:3, 3]
        screws.append(Screw(w.reshape(3, 1, 1), point.reshape(3, 1, 1), turns))
    name, solver = recognised(tuple(screws))
    return Form(name, solver, [link.q_start for link in links], home)


def _block(robot: Robot, task: Task, form: Form, near: FloatArray, cold: bool) -> tuple[np.ndarray, ...]:
    chain, count = task.chain, len(task.targets)
    candidates, free = form.candidates(task.targets, near)
    rows, columns = np.nonzero(np.isfinite(candidates).all(axis=-1))
    q = near[rows]
    q[:, form.indices] = candidates[rows, columns]
    q, errors = _polished(task, rows, _unwound(chain, q, near[rows], task.limited))
    good = (errors <= task.tolerance).all(axis=1)
    rows, columns, q, errors = rows[good], columns[good], q[good], errors[good]

    every = np.full((*candidates.shape[:2], near.shape[1]), np.nan)
    every[rows, columns] = q
    misses = np.zeros((*candidates.shape[:2], 2))
    misses[rows, columns] = errors
    singular = _merged(chain, every, free)
    solvable = np.asarray(np.isfinite(every).any(axis=(1, 2)))
    if task.limited and chain.bounded:
        _limit(task, every, misses)
    far = np.where(chain.moves, every - near[:, None], 0.0)
    order = np.argsort((far * far).sum(axis=-1), axis=1, kind="stable")  # NaN comes last
    every = np.take_along_axis(every, order[..., None], axis=1)
    misses = np.take_along_axis(misses, order[..., None], axis=1)
    exists = np.asarray(np.isfinite(every).all(axis=-1))
    singular = np.take_along_axis(singular, order, axis=1) & exists
    nearest = np.where(exists[..., None], misses, 0.0).max(axis=1)
    reason = np.full(count, CONVERGED, dtype=f"<U{len(NOT_CONVERGED)}")
    empty = np.flatnonzero(~exists.any(axis=1))
    if len(empty):  # a short search measures how near the frame can get; it may find a solution of a family
        search = inverse_kinematics(
            robot, task.targets[empty], chain.frame, None if cold else near[empty],
            limits=task.limited, tolerance=task.tolerance, restarts=RESTARTS,
        )  # fmt: skip
        decided = np.isin(search.reason, (CONVERGED, ORIENTATION))
        reason[empty] = np.where(decided, search.reason, np.where(solvable[empty], LIMITS, OUT_OF_REACH))
        nearest[empty] = np.stack([search.rotation_error, search.position_error], axis=1)
        lucky = empty[search.solved]
        every[lucky, 0], exists[lucky, 0], singular[lucky, 0] = search.q[search.solved], True, True
    return every, exists.sum(axis=1), singular, reason, nearest[:, 1], nearest[:, 0]


def _polished(task: Task, rows: np.ndarray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return coordinates after Newton steps without limits, and the error (rad, m) of the frame there."""
    best, report = Task(task.chain, task.targets[rows], False, False, POLISHED, STEPS).descended(q, STEPS)
    return best, np.stack([2.0 * np.arcsin(np.minimum(0.5 * report.turn, 1.0)), report.distance], axis=1)


def _unwound(chain: Chain, q: FloatArray, near: FloatArray, limited: bool) -> FloatArray:
    """Return q with its joints brought near `near` by whole turns, within their limits if `limited`."""
    turns = chain.turns & chain.moves
    q = np.where(turns, q - TURN * np.round((q - near) / TURN), q)
    if not (limited and chain.bounded):
        return q
    below, above = np.where(turns, chain.lower - EDGE, -np.inf), np.where(turns, chain.upper + EDGE, np.inf)
    q = q + TURN * np.ceil(np.maximum(below - q, 0.0) / TURN)
    return q - TURN * np.ceil(np.maximum(q - above, 0.0) / TURN)


def _merged(chain: Chain, every: FloatArray, free: np.ndarray) -> np.ndarray:
    """Remove duplicates (NaN); return where branches meet or represent a family."""
    singular = free.copy()
    turns = chain.turns & chain.moves
    for k in range(1, every.shape[1]):
        apart = np.abs(every[:, :k] - every[:, k, None])
        apart = np.where(turns, np.minimum(apart, np.abs(apart - TURN)), apart)
        same = apart.max(axis=-1) < SAME
        singular[:, :k] |= same
        every[same.any(axis=1), k] = np.nan
    return singular


def _limit(task: Task, every: FloatArray, misses: FloatArray) -> None:
    """Remove solutions outside the limits (NaN); clip those that are outside by rounding."""
    chain = task.chain
    with np.errstate(invalid="ignore"):
        inside = np.clip(every, chain.lower, chain.upper)
        off: np.ndarray = np.where(chain.moves, np.abs(every - inside), 0.0).max(axis=-1)
        every[off > EDGE] = np.nan
        rows, columns = np.nonzero((off > 0.0) & (off <= EDGE))
    if len(rows):
        moved = np.where(chain.moves, inside[rows, columns], every[rows, columns])
        errors = task.take(rows).misses(moved)[:, :2]
        good = np.asarray((errors <= task.tolerance).all(axis=1))
        every[rows, columns] = np.where(good[:, None], moved, np.nan)
        misses[rows, columns] = errors
