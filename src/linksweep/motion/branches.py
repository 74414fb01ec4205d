"""All solutions of inverse kinematics at once, in closed form, for arms that have one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.mechanism.coordinates import neutral
from linksweep.support.messages import listing

from ..robot.robot import Robot
from .base import FloatArray
from .chains import Chain
from .closed_form import Solver, Unsolvable, recognised
from .closed_form.screws import Motion, Screw
from .descent import TURN
from .inverse import (
    BLOCK,
    CONVERGED,
    LIMITS,
    NOT_CONVERGED,
    ORIENTATION,
    OUT_OF_REACH,
    chain_of,
    check_flags,
    check_tolerance,
    inverse_kinematics,
    starts_of,
)
from .poses import checked_poses
from .solver import Task

WHO = "inverse_kinematics_branches"
POLISHED, STEPS = 1e-13, 10  # m and rad that Newton's steps aim at; one or two do but next to singular poses
SAME = 1e-6  # rad or m: branches this near to each other are one, at the pose where they meet
RESTARTS = 2  # of the search for a target without solutions
EDGE = 1e-9  # rad or m: this far outside its limits a joint is put on them


@dataclass(frozen=True)
class Branches:
    """All solutions for targets of shape (...), at most b of each.

    q (..., b, nq): the solutions, nearest to q0 first, and NaN after the last. count (...): how many there are.
    singular (..., b): at this one branches meet, or it stands for a family of solutions: a joint that may be anywhere
    is where q0 has it. reason (...): "converged", or why there is none, in the words of `InverseKinematics`.
    position_error (m), rotation_error (rad): the largest of the solutions or, where there is none, how near a short
    search could bring the frame. form: the property of the arm that gives the solutions.
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
    """All coordinates at which the frame stands at the targets (..., 4, 4), poses in the base frame, in closed form.

    The frame must be carried by six joints, revolute or prismatic, of which the last three or the first three turn
    about axes that meet in a point, or six revolute ones with three parallel axes in a row; an ArgumentError says what
    is missing. q0 (..., nq): which turns of the joints are preferred, and which solution of a family (see `Branches`);
    joints that do not carry the frame stay there. None: the neutral coordinates. limits: solutions outside the joint
    limits are left out. tolerance: of the poses, in m and rad. A target without solutions is no error.
    """
    check_flags(limits=limits)
    check_tolerance(tolerance, WHO)
    targets = checked_poses(WHO, "target", target)
    chain = chain_of(robot, frame)
    if chain.constrained:
        raise ArgumentError(
            f"{WHO}: {robot.name} has constraints between its frames, which a closed form does not meet: use "
            f"inverse_kinematics, or robot.without_constraints() for the branches of the tree."
        )
    form = _form_of(chain)
    shape = targets.shape[:-2]
    flat = Task(chain, targets.reshape(-1, 4, 4), False, limits, float(tolerance), 1)
    starts = starts_of(robot, chain.neutral() if q0 is None else q0, shape, WHO)
    parts = []
    for i in range(0, max(len(flat.targets), 1), BLOCK):
        which = np.arange(i, min(i + BLOCK, len(flat.targets)))
        parts.append(_block(robot, flat.take(which), form, starts[which], q0 is None))
    arrays = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    return Branches(*(array.reshape((*shape, *array.shape[1:]))[()] for array in arrays), form=form.name)


@dataclass
class Form:
    """A chain's closed form: its name, the solver, the joints' places in q, and the frame's pose where they are 0."""

    name: str
    solver: Solver
    places: list[int]
    home: FloatArray

    def candidates(self, targets: FloatArray, near: FloatArray) -> tuple[FloatArray, np.ndarray]:
        """Coordinates (N, K, 6), NaN where there are none, and which stand for a family."""
        inverse = np.linalg.inv(self.home)
        motions = (targets @ inverse).transpose(1, 2, 0)[..., None]
        with np.errstate(all="ignore"):
            place = self.solver(Motion(motions[:3, :3], motions[:3, 3]), near[:, self.places].T[..., None])
        return np.moveaxis(place.q, 0, -1), place.free


def _form_of(chain: Chain) -> Form:
    """The closed form of a chain, found once."""
    if chain.form is None:
        try:
            chain.form = _recognise(chain)
        except Unsolvable as reason:
            chain.form = str(reason)
    if isinstance(chain.form, str):
        raise ArgumentError(
            f"{WHO} knows no closed form for {chain.frame!r}: {chain.form}. Use inverse_kinematics, which searches."
        )
    return chain.form


def _recognise(chain: Chain) -> Form:
    links = [chain.canonical.links[i] for i in reversed(chain.carrying)]
    if len(links) != 6:
        raise Unsolvable(f"it is carried by {len(links)} joints, expected 6")
    odd = [link.name for link in links if link.kind not in ("revolute", "prismatic") or not link.leads]
    if odd or len({link.q_start for link in links}) != 6:
        raise Unsolvable(f"the joints of {listing(odd)} are not revolute or prismatic joints of their own")
    home, jacobian = (array[0] for array in chain.function(neutral(chain.canonical)[None]))
    screws = []
    for link in links:
        turn, way = jacobian[:3, link.start], jacobian[3:, link.start]
        turns = link.kind == "revolute"
        w = turn if turns else way
        point = home[:3, 3] + np.cross(turn, way) if turns else home[:3, 3]
        screws.append(Screw(w.reshape(3, 1, 1), point.reshape(3, 1, 1), turns))
    name, solver = recognised(tuple(screws))
    return Form(name, solver, [link.q_start for link in links], home)


def _block(robot: Robot, task: Task, form: Form, near: FloatArray, cold: bool) -> tuple[np.ndarray, ...]:
    chain, count = task.chain, len(task.targets)
    found, free = form.candidates(task.targets, near)
    rows, columns = np.nonzero(np.isfinite(found).all(axis=-1))
    q = near[rows]
    q[:, form.places] = found[rows, columns]
    q, errors = _polished(task, rows, _unwound(chain, q, near[rows], task.limited))
    good = (errors <= task.tolerance).all(axis=1)
    rows, columns, q, errors = rows[good], columns[good], q[good], errors[good]

    every = np.full((*found.shape[:2], near.shape[1]), np.nan)
    every[rows, columns] = q
    misses = np.zeros((*found.shape[:2], 2))
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
    if len(empty):  # how near it can be brought is found by a short search, and it may come upon one of a family
        search = inverse_kinematics(
            robot, task.targets[empty], chain.frame, None if cold else near[empty],
            limits=task.limited, tolerance=task.tolerance, restarts=RESTARTS,
        )  # fmt: skip
        known = np.isin(search.reason, (CONVERGED, ORIENTATION))
        reason[empty] = np.where(known, search.reason, np.where(solvable[empty], LIMITS, OUT_OF_REACH))
        nearest[empty] = np.stack([search.rotation_error, search.position_error], axis=1)
        lucky = empty[search.solved]
        every[lucky, 0], exists[lucky, 0], singular[lucky, 0] = search.q[search.solved], True, True
    return every, exists.sum(axis=1), singular, reason, nearest[:, 1], nearest[:, 0]


def _polished(task: Task, rows: np.ndarray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coordinates after Newton's steps without limits, and how far (rad, m) the frame is off then."""
    best, report = Task(task.chain, task.targets[rows], False, False, POLISHED, STEPS).descended(q, STEPS)
    return best, np.stack([2.0 * np.arcsin(np.minimum(0.5 * report.turn, 1.0)), report.distance], axis=1)


def _unwound(chain: Chain, q: FloatArray, near: FloatArray, limited: bool) -> FloatArray:
    """q with the whole turns that bring its joints next to `near`, and of these within their limits if they matter."""
    turns = chain.turns & chain.moves
    q = np.where(turns, q - TURN * np.round((q - near) / TURN), q)
    if not (limited and chain.bounded):
        return q
    below, above = np.where(turns, chain.lower - EDGE, -np.inf), np.where(turns, chain.upper + EDGE, np.inf)
    q = q + TURN * np.ceil(np.maximum(below - q, 0.0) / TURN)
    return q - TURN * np.ceil(np.maximum(q - above, 0.0) / TURN)


def _merged(chain: Chain, every: FloatArray, free: np.ndarray) -> np.ndarray:
    """Take out (NaN) what stands there already; says where branches have met or stand for a family."""
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
    """Take out (NaN) what is outside the limits; what is there by rounding is put on them."""
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
