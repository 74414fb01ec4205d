"""The constraints of a tree in one configuration: their errors and drift, and M x + K^T lambda = force, K x + k = 0.

M by composite bodies, (32) of G. Rodriguez 1987. Rows of K are in constraint_rows.py, the solve in elimination.py.
A free body that is held rigidly is a payload of the link that holds it: see carried.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from ...model.model import BASE, Frame
from ...mechanism.canonical import CanonicalModel
from ...mechanism.sweeps import PerJoint, PerLink, Sweep, Unrolled
from ...spatial.algebra import ZERO_MOTION, Force, Motion, Transform, Vec, leaves
from ...spatial.scalars import Scalar, is_zero, sqrt, where
from ...spatial.transforms import Pose, Shift
from ..inverse.khalil_kleinfinger import State
from ..mass_matrix.composite_inertia import mass_matrix
from ..rigid_body.kinematics import WORLD, column, poses
from .carried import Load, carried_bodies, inertias
from .elimination import Block, Elimination, Entries, Part
from .constraint_rows import combined, errors, gap, is_angular, rows, second_derivatives

THREES = ("rigid", "point")  # kinds whose rows come in threes, along x, y and z of b
Columns = dict[int, Motion]  # of the rates that move something
RESOLVED = 1e-10  # of the size of a row: rounding leaves 1e-16 of it, and a hundred times more far from the origin
RESOLVED_SINGLE = 1e-5  # in float32
OPEN, OPEN_MOST = 100.0, 1e-5  # where constraints are open, rows that depend on each other only where they are closed
# differ by about the gap: so many times it is not resolved, up to that size


class States(Protocol):
    """w, dw, dv of every link: see khalil_kleinfinger.py."""

    @property
    def w(self) -> PerLink[Vec]: ...
    @property
    def dw(self) -> PerLink[Vec]: ...
    @property
    def dv(self) -> PerLink[Vec]: ...


class Closure:
    """The frames of constraints in one configuration, with residuals and drift.

    world: triples of rows along all axes of b are taken along the world axes instead. They are equivalent and cost
    less; residuals, drift and multipliers of `solve` are along these axes, too.
    """

    def __init__(self, sweep: Sweep, model: CanonicalModel, world: bool):
        self.sweep, self.model, self.ties = sweep, model, model.ties
        self.at = poses(sweep)
        self.a = [self._pose(tie.a) for tie in self.ties]
        self.own = [self._pose(tie.b) for tie in self.ties]
        self.turned = [world and tie.kind in THREES for tie in self.ties]
        places = zip(self.own, self.turned, strict=True)
        self.b = [Pose(WORLD.x, WORLD.y, WORLD.z, b.p) if turned else b for b, turned in places]
        self.wrenches_of = [
            [row.wrench for row in rows(tie.kind, a, b, tie.numbers[0])]
            for tie, a, b in zip(self.ties, self.a, self.b, strict=True)
        ]

    def relative(self, tie: int, qd: PerJoint, spin: Vec | None = None) -> Motion:
        """Return the motion of a relative to b at the origin of a; spin: its angular part, if known."""
        raise NotImplementedError

    def rates(self, qd: PerJoint) -> list[Scalar]:
        """Return K qd."""
        moving = [self.relative(tie, qd) for tie in range(len(self.ties))]
        return [wrench.dot(motion) for motion, of in zip(moving, self.wrenches_of, strict=True) for wrench in of]

    def errors(self) -> list[Scalar]:
        found: list[Scalar] = []
        for tie, a, b, turned in zip(self.ties, self.a, self.own, self.turned, strict=True):
            own = errors(tie.kind, a, b, tie.numbers[0])
            found += _by_threes(b.turn, own) if turned else own
        return found

    def along_b(self, multipliers: Sequence[Scalar]) -> list[Scalar]:
        """Return the multipliers of rows along the axes of b."""
        found, values = list[Scalar](), list(multipliers)
        for tie, b, turned in zip(self.ties, self.own, self.turned, strict=True):
            own, values = values[: tie.rows], values[tie.rows :]
            found += _by_threes(b.turn_back, own) if turned else own
        return found

    def drift(self, qd: PerJoint, states: States | PerLink[State], base: State) -> list[Scalar]:
        """k = dK/dt qd; states: of the links, with no joint acceleration, and of the base."""
        found: list[Scalar] = []
        for k, (tie, a, b) in enumerate(zip(self.ties, self.a, self.b, strict=True)):
            spin_a, of_a = self._motion(tie.a, states, Vec(*tie.a.placement.position), base)
            spin, of_b = self._motion(tie.b, states, self.on_link(tie.b, a.p), base)
            relative = self.relative(k, qd, spin_a - spin)
            found += second_derivatives(tie.kind, a, b, tie.numbers[0], relative, of_a, of_b, spin)
        return found

    def _motion(
        self, frame: Frame, states: States | PerLink[State], point: Vec, base: State
    ) -> tuple[Vec, Motion]:
        """Return the angular velocity of a frame and its acceleration at a point of its link, in base axes."""
        pose, own = self.link_pose(frame), base
        if frame.link != BASE:
            own = State(*(self.sweep.at(values, frame.link) for values in (states.w, states.dw, states.dv)))
        return pose.turn(own.w), Motion(pose.turn(own.dw), pose.turn(own.dv + own.U @ point))

    def on_link(self, frame: Frame, point: Vec) -> Vec:
        pose = self.link_pose(frame)
        return pose.turn_back(point - pose.p)

    def link_pose(self, frame: Frame) -> Pose:
        return WORLD if frame.link == BASE else self.sweep.at(self.at, frame.link)

    def wrenches(self, multipliers: Sequence[Scalar]) -> list[Force]:
        """- K^T lambda of each constraint as it acts on its frame a."""
        values = iter(multipliers)
        return [-combined(wrenches, [next(values) for _ in wrenches]) for wrenches in self.wrenches_of]

    def _pose(self, frame: Frame) -> Pose:
        pose = self.link_pose(frame)
        x, y, z = (pose.turn(Vec(*column)) for column in zip(*frame.placement.rotation, strict=True))
        return Pose(x, y, z, pose.point(Vec(*frame.placement.position)))

    def path(self, link: int) -> set[int]:
        return set(self.model.path(link))

    def reach(self, tie: int) -> Scalar:
        """Return a bound on the distance of a constraint's frames from the base, without sliding displacements."""
        total: Scalar = 0.0
        frames = (self.ties[tie].a, self.ties[tie].b)
        links = [self.model.links[i] for i in sorted(self.path(frames[0].link) | self.path(frames[1].link))]
        places = [Transform((*link.factors, Shift(Vec(0.0, 0.0, link.slide)))).origin() for link in links]
        for place in (*places, *(Vec(*frame.placement.position) for frame in frames)):
            if not all(map(is_zero, leaves(place))):
                total = total + sqrt(place.dot(place))
        return 1.0 if is_zero(total) else total

    def resolution(self) -> Scalar:
        """The square of the relative size below which rows of constraints are redundant."""
        total: Scalar = 0.0
        for k, (tie, a, b) in enumerate(zip(self.ties, self.a, self.own, strict=True)):
            total = total + gap(tie.kind, a, b, tie.numbers[0], self.reach(k))
        opened, most = total * OPEN**2, OPEN_MOST**2
        single = total + 1.0
        single = single * (1.0 + 1e-9) > single  # in float32 the factor is 1
        return where(single, RESOLVED**2, RESOLVED_SINGLE**2) + where(opened < most, opened, most)


class Mechanism(Closure):
    """Constraints of a tree with its mass matrix M. Velocities are in the order of links.

    damping: of `solve`, relative to the size of a row; without it constraints are satisfied as precisely as they are
    resolved, see elimination.py.
    """

    def __init__(self, sweep: Unrolled, world: bool = False, damping: Scalar | None = None):
        super().__init__(sweep, sweep.model, world)
        self.sweep: Unrolled = sweep
        self.damping = damping
        leading = [link.nv if link.leads else 0 for link in sweep.model.links]
        self.first = [sum(leading[:leader]) for leader in sweep.leaders()]  # of each link, its joint's first rate
        self.loads = [Load(self, body) for body in carried_bodies(sweep.model)] if world else []
        self.about = [a.p for a in self.a]  # where the motion of a against b is taken
        for load in self.loads:
            for tie in load.body.holds:
                self.about[tie] = load.point
        ends = [[self.path(frame.link) for frame in (tie.a, tie.b)] for tie in self.ties]
        self.columns = [self._between(a, b, point) for (a, b), point in zip(ends, self.about, strict=True)]

    def moving(self, links: Collection[int], point: Vec) -> Columns:
        """Return the motion of a point for a unit velocity of each joint of these links."""
        found: Columns = {}
        for i in sorted(links):
            for j, h in enumerate(self.sweep.links[i].H_T.columns, self.first[i]):
                motion = column(h, self.sweep.at(self.at, i), point)
                found[j] = found[j] + motion if j in found else motion  # joints that follow share a rate
        return found

    def _between(self, a: set[int], b: set[int], point: Vec) -> Columns:
        """Return the columns of the motion of links a relative to links b at a point, without joints that move both."""
        found = self.moving(a - b, point)
        for j, motion in self.moving(b - a, point).items():
            found[j] = found[j] - motion if j in found else -motion
        return found

    @property
    def K(self) -> list[list[Scalar]]:
        found: list[list[Scalar]] = []
        for columns, wrenches in zip(self.columns, self.wrenches_of, strict=True):
            places = range(self.model.nv)
            found += [[wrench.dot(columns.get(j, ZERO_MOTION)) for j in places] for wrench in wrenches]
        return found

    def relative(self, tie: int, qd: PerJoint, spin: Vec | None = None) -> Motion:
        flat = [x for values, link in zip(qd, self.model.links, strict=True) if link.leads for x in values]
        found = ZERO_MOTION
        for j, motion in self.columns[tie].items():
            found = found + motion * flat[j]
        angular = found.angular if spin is None else spin
        return Motion(angular, found.linear + angular.cross(self.a[tie].p - self.about[tie]))

    @functools.cached_property
    def _closing(self) -> Elimination:
        M = mass_matrix(self.sweep, loads=inertias(self)).elements                               # (32)
        blocks = [self._block(tie) for tie in self._kept()]
        resolution = self.resolution() if self.damping is None else self.damping * self.damping
        return Elimination(self.sweep.tree_matrix(M), blocks, resolution, self.damping is not None)

    def _block(self, tie: int) -> Block:
        """Return the rows of a constraint with their sizes."""
        rows = self._rows(tie)
        touched = {j for row in rows for _, part in row for j in part}
        reach = self.reach(tie)
        turns: Entries = {}
        slides: Entries = {}
        for i, link in enumerate(self.model.links):
            for j, h in enumerate(self.sweep.links[i].H_T.columns, self.first[i]):
                if j not in touched:
                    continue
                ratio = 1.0 if link.leads else link.ratio * link.ratio
                turning, sliding = (not all(map(is_zero, leaves(part))) for part in (h.angular, h.linear))
                lever = (reach * reach if turning else 0.0) + (1.0 if sliding else 0.0)
                slides[j] = slides.get(j, 0.0) + ratio * lever
                if turning:
                    turns[j] = turns.get(j, 0.0) + ratio
        return Block(rows, [turns if angular else slides for angular in is_angular(self.ties[tie].kind)])

    def _kept(self) -> list[int]:
        """Return the constraints whose multipliers are solved for: all but those that hold payloads."""
        return [k for k in range(len(self.ties)) if all(k != load.body.holds[0] for load in self.loads)]

    def _rows(self, tie: int) -> list[list[Part]]:
        for load in self.loads:
            if tie in load.body.holds:
                return load.rows(tie)
        links = [frame.link for frame in (self.ties[tie].a, self.ties[tie].b)]
        for load in self.loads:
            links = [load.holder if link == load.body.link else link for link in links]
        columns = self._between(self.path(links[0]), self.path(links[1]), self.about[tie])
        return [[(1.0, {j: wrench.dot(m) for j, m in columns.items()})] for wrench in self.wrenches_of[tie]]

    def redundancies(self) -> list[Scalar]:
        """Return for each row a value from 0 (independent) to 1 (redundant), and its uncertainty.

        See elimination.py. Bodies that are loads are held by constraints of their own.
        """
        found = dict(zip(self._kept(), self._closing.redundancies(), strict=True))
        none = {k: ([0.0] * tie.rows,) * 2 for k, tie in enumerate(self.ties)}
        rows = [(none | found)[k] for k in range(len(self.ties))]
        return [value for part in (0, 1) for each in rows for value in each[part]]

    def solve(self, forces: PerJoint | None, k: Sequence[Scalar]) -> tuple[PerJoint, list[Scalar]]:
        """x and lambda of M x + K^T lambda = forces, K x + k = 0; without forces, these are 0."""
        values = iter(k)
        known = [[next(values) for _ in range(tie.rows)] for tie in self.ties]
        force: list[Scalar] = [0.0] * self.model.nv if forces is None else self.sweep.summed(forces)
        kept = self._kept()
        for load in self.loads:
            load.put_on(force, known)
        x, found = self._closing.solve(force, [known[tie] for tie in kept])
        multipliers = dict(zip(kept, found, strict=True))
        for load in self.loads:
            load.take_off(x, multipliers)
        return self.sweep.shared(x), [value for tie in range(len(self.ties)) for value in multipliers[tie]]


def _by_threes(turn: Callable[[Vec], Vec], values: Sequence[Scalar]) -> list[Scalar]:
    return [x for k in range(0, len(values), 3) for x in turn(Vec(*values[k : k + 3]))]
