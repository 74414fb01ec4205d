"""The kinematic chain of a frame, as the solvers need it: pose and Jacobian, limits, steps, random starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linksweep.algorithms.closed_chain.constraint_rows import ALIGN, ROWS
from linksweep.algorithms.closed_chain.constraint_rows import TURN as HELD_TURN
from linksweep.functions.compiled import chosen_backend
from linksweep.joints.kind import TURN as TURNING
from linksweep.mechanism.coordinates import integrate, neutral
from linksweep.support.lazy import lazy

from ..robot.robot import Robot
from .cartesian import rotation_vector
from .descents import FAR, LARGEST_STEP, MOST_JOINTS, MOST_WORK, SOLVED, TURN, Bound, Problem, descents_of
from .trajectories import FloatArray

if TYPE_CHECKING:
    from linksweep.model.model import Model, Vector

    from .branches import Form

Descents = Callable[..., tuple[FloatArray, ...]]  # of targets, options and starts
STARTS = 512
CLOSES, CLOSING = 1e-10, 100  # largest constraint residual of starts (m, rad), and iterations to get there


class Known(NamedTuple):
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
        self._made: dict[tuple[int, bool], tuple[FloatArray, FloatArray]] = {}
        self._known: dict[tuple[int, bool, bool], Known] = {}

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
        if (seed, limited) not in self._made:
            q = self._random(seed, limited)
            if self.constrained:
                closed, closes = self.closed(q, limited)
                q = closed[closes] if closes.any() else closed
            self._made[seed, limited] = q, self.function(q)[0]
        return self._made[seed, limited]

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

    def known(self, seed: int, limited: bool, position_only: bool) -> Known:
        """Return the coordinates of `starts` with features that measure distances of poses, computed once."""
        key = seed, limited, position_only
        if key not in self._known:
            q, poses = self.starts(seed, limited)
            features = self.features(poses, position_only)
            self._known[key] = Known(q, features, 0.5 * (features * features).sum(axis=1))
        return self._known[key]

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
