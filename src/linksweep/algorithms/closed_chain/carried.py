"""A free body held rigidly by frames, as a payload of the link that holds it: 6 rows and 6 velocities fewer.

All quantities are at one point c, along the axes of the base. V' = J x + delta is the acceleration of the body, where x
are the accelerations of the joints that carry the first of these frames, and delta is the drift of its constraint. M of
the body is added to that link, its force to the joints that carry it, and Newton's law of the body gives the force of
the first constraint. The other constraints hold each frame to the one before it, (V of frame i) - (V of frame i - 1) at
c, so that Omega is block tridiagonal. Their multipliers are f(i) + f(i + 1) + ..., the forces of all frames from i on.
The configuration need not satisfy the constraints: the body is carried with its current offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...model.model import BASE
from ...mechanism.canonical import CanonicalModel
from ...mechanism.sweeps import PerLink, Records
from ...spatial.algebra import ZERO_INERTIA, Force, Inertia, Mat, Motion, Transform, Vec, leaves
from ...spatial.scalars import Scalar, is_zero
from ...spatial.transforms import Pose, Rotation, Shift
from .elimination import Part
from .constraint_rows import combined

if TYPE_CHECKING:
    from .mechanism import Mechanism


@dataclass(frozen=True, slots=True)
class Body:
    """A free body: its link, the rigid constraints that hold it, and the other constraints on it."""

    link: int
    holds: tuple[int, ...]
    others: tuple[int, ...]


def carried_bodies(model: CanonicalModel) -> list[Body]:
    """Return the bodies that are payloads: leaf links on a free joint, held rigidly by a link that is not a payload."""
    parents, taken = {link.parent for link in model.links}, set[int]()
    found: list[Body] = []
    for i, link in enumerate(model.links):
        if link.parent != BASE or not link.type.floats or i in parents or not is_zero(link.armature):
            continue
        ends = {k: ({tie.a.link, tie.b.link} - {i}).pop() for k, tie in enumerate(model.ties)
                if i in (tie.a.link, tie.b.link)}  # fmt: skip
        holds = [k for k in ends if model.ties[k].kind == "rigid"]
        first = next((k for k in holds if ends[k] != BASE), None)
        if first is None or taken & set(ends.values()) or model.is_coupled:
            continue
        taken.add(i)
        others = tuple(k for k in ends if k not in holds)
        found.append(Body(i, (first, *(k for k in holds if k != first)), others))
    return found


class Load:
    """One carried body in one configuration."""

    def __init__(self, mechanism: Mechanism, body: Body):
        self.mechanism, self.body = mechanism, body
        self.holder = self._end(body.holds[0])
        self.pose: Pose = mechanism.sweep.at(mechanism.at, body.link)
        self.M: Inertia = mechanism.sweep.links[body.link].M
        self.point = mechanism.a[body.holds[0]].p                                                # c
        self.arms = [mechanism.moving(mechanism.path(self._end(tie)), self.point) for tie in body.holds]
        self.parts = [
            [{j: leaves(motion)[axis] for j, motion in arm.items()} for axis in range(6)] for arm in self.arms
        ]

    def _end(self, tie: int) -> int:
        """Return the link at the other end of a constraint on the body."""
        a, b = (frame.link for frame in (self.mechanism.ties[tie].a, self.mechanism.ties[tie].b))
        return a if b == self.body.link else b

    def _side(self, tie: int) -> float:
        """Return -1 if frame a of a constraint is on the body, 1 if frame b is."""
        return 1.0 if self.mechanism.ties[tie].b.link == self.body.link else -1.0

    def inertia(self) -> Inertia:
        """Return the inertia of the body in the frame of the link that holds it."""
        on: Pose = self.mechanism.sweep.at(self.mechanism.at, self.holder)
        axes = Mat(*(on.turn_back(axis) for axis in (self.pose.x, self.pose.y, self.pose.z))).T
        return Transform((Shift(on.turn_back(self.pose.p - on.p)), Rotation(axes))).to_parent(self.M)

    def rows(self, tie: int) -> list[list[Part]]:
        """Return the rows that hold a frame to the frame before it."""
        i = self.body.holds.index(tie)
        path, before = (self.mechanism.path(self._end(self.body.holds[k])) for k in (i, i - 1))
        if path & before:  # on one tree: without the joints that move both
            away = self.mechanism.moving(path - before, self.point)
            back = self.mechanism.moving(before - path, self.point)
            columns = {**away, **{j: -motion for j, motion in back.items()}}
            return [[(1.0, {j: leaves(motion)[axis] for j, motion in columns.items()})] for axis in range(6)]
        return [[(1.0, self.parts[i][axis]), (-1.0, self.parts[i - 1][axis])] for axis in range(6)]

    def put_on(self, force: list[Scalar], known: list[list[Scalar]]) -> None:
        """Add the forces and drifts of the body to those of the system without it."""
        holds, arm = self.body.holds, self.arms[0]
        drifts: list[Motion] = []
        for tie in holds:
            angular, linear = Vec(*known[tie][:3]), Vec(*known[tie][3:])
            linear = linear + angular.cross(self.point - self.mechanism.a[tie].p)
            drifts.append(Motion(angular, linear) * self._side(tie))
        for i, tie in enumerate(holds[1:], 1):
            known[tie] = leaves(drifts[i] - drifts[i - 1])
        self.delta = drifts[0]
        for tie in self.body.others:
            there = self.mechanism.a[tie].p
            moved = Motion(self.delta.angular, self.delta.linear + self.delta.angular.cross(there - self.point))
            moved = moved * -self._side(tie)
            wrenches = self.mechanism.wrenches_of[tie]
            known[tie] = [k + wrench.dot(moved) for k, wrench in zip(known[tie], wrenches, strict=True)]
        first = self.mechanism.first[self.body.link]
        self.given = Force(Vec(*force[first : first + 3]), Vec(*force[first + 3 : first + 6]))
        force[first : first + 6] = [0.0] * 6
        wrench = self._at_point(self.given - self.M @ self._own(self.delta))
        for j, motion in arm.items():
            force[j] = force[j] + wrench.dot(motion)

    def take_off(self, x: list[Scalar], multipliers: dict[int, list[Scalar]]) -> None:
        """Set the accelerations of the body, and the multipliers of its constraints at the origins of frames a."""
        moved = self.delta
        for j, motion in self.arms[0].items():
            moved = moved + motion * x[j]
        own, first = self._own(moved), self.mechanism.first[self.body.link]
        x[first : first + 6] = leaves(own)
        rest = self._at_point(self.M @ own - self.given)  # what all constraints together do to the body
        for tie in self.body.others:
            total = combined(self.mechanism.wrenches_of[tie], multipliers[tie])
            arm = self.mechanism.a[tie].p - self.point
            rest = rest - Force(total.moment + arm.cross(total.force), total.force) * self._side(tie)
        holds = self.body.holds
        sums = [rest, *(Force(Vec(*multipliers[tie][:3]), Vec(*multipliers[tie][3:])) for tie in holds[1:])]
        for i, tie in enumerate(holds):
            f = sums[i] - sums[i + 1] if i + 1 < len(sums) else sums[i]
            arm = self.point - self.mechanism.a[tie].p
            multipliers[tie] = leaves(Force(f.moment + arm.cross(f.force), f.force) * self._side(tie))

    def _own(self, motion: Motion) -> Motion:
        """Return a motion at c as the six velocities of the body."""
        linear = motion.linear + motion.angular.cross(self.pose.p - self.point)
        return Motion(self.pose.turn_back(motion.angular), self.pose.turn_back(linear))

    def _at_point(self, f: Force) -> Force:
        """Return a force along the six velocities of the body as a force at c."""
        force = self.pose.turn(f.force)
        return Force(self.pose.turn(f.moment) + (self.pose.p - self.point).cross(force), force)


def inertias(mechanism: Mechanism) -> PerLink[Inertia] | None:
    """Return the inertia that each link carries besides its own, or None."""
    if not mechanism.loads:
        return None
    found = Records([ZERO_INERTIA] * len(mechanism.sweep.model.links))
    for load in mechanism.loads:
        found[load.holder] = found[load.holder] + load.inertia()
    return found
