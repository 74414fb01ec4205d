"""Constraints of long chains by sweeps alone, unrolled or as loops over the links: no M, O(links) operations.

What elimination.py takes from M = L^T D L, the filter has too: D is the inertia that each joint meets with the joints
beyond it free, and L^-T the whitening filter, (4.12)-(4.16) of G. Rodriguez and K. Kreutz 1988. So L^-T K^T are the
innovations of the constraints' wrenches, carried inward by psi = phi (1 - G H), (4.7), and x follows from y = D L x by
the smoother. The elimination of rows is that of spatial/orthogonal_solve.py, its sums over joints made by sweeps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Protocol

from ...model.model import BASE, Frame
from ...mechanism.canonical import CanonicalModel
from ...mechanism.joints import Coordinates, JointInertia, Span
from ...mechanism.sweeps import LinkView, PerJoint, PerLink, Sweep, Unrolled
from ...spatial.algebra import ZERO_FORCE, ZERO_MOTION, Force, Motion, Vec, leaves
from ...spatial.orthogonal_solve import Entries, Triangle
from ...spatial.scalars import Rows, Scalar, is_zero
from ..mass_matrix.factorization import Gain, gains
from ..rigid_body.kinematics import velocities
from .mechanism import Closure, Mechanism
from .constraint_rows import is_angular

MOST_ROWS = 12  # of constraints that are swept: a loop over links carries a wrench for each
LONG = 12  # freedoms between base and tip; beyond, M costs more than the filter. A chain of general geometry whose tip
# is held at a point takes 3,421 and 4,146 operations for 8 joints, 6,611 and 6,626 for 12, 16,335 and 11,586 for 20
Sums = tuple[Scalar, ...]


class Tree(Sweep, Protocol):
    """A sweep with its model."""

    @property
    def model(self) -> CanonicalModel: ...


class SweptMechanism(Closure):
    """Constraints of a tree by sweeps; damping as in Mechanism."""

    def __init__(self, sweep: Tree, damping: Scalar | None = None):
        super().__init__(sweep, sweep.model, world=True)
        self.damping = damping
        self.kept: PerLink[Gain] = gains(sweep)
        self.inverse: PerLink[Rows] = sweep.outward(_inverse, (), self.kept)                     # D^-1
        self.count = sum(tie.rows for tie in self.ties)

    def relative(self, tie: int, qd: PerJoint, spin: Vec | None = None) -> Motion:
        V = self._velocities(qd)
        a, b = (self._moving(frame, V, self.a[tie].p) for frame in (self.ties[tie].a, self.ties[tie].b))
        return a - b

    def _velocities(self, qd: PerJoint) -> PerLink[Motion]:
        if not hasattr(self, "_V"):
            self._V = velocities(self.sweep, qd)
        return self._V

    def _moving(self, frame: Frame, V: PerLink[Motion], point: Vec) -> Motion:
        if frame.link == BASE:
            return ZERO_MOTION
        pose, own = self.link_pose(frame), self.sweep.at(V, frame.link)
        spin = pose.turn(own.angular)
        return Motion(spin, pose.turn(own.linear) + spin.cross(point - pose.p))

    @functools.cached_property
    def columns(self) -> list[PerJoint]:
        """Y = L^-T K^T, row by row of K."""
        found: list[PerJoint] = []
        for tie, wrenches, a in zip(self.ties, self.wrenches_of, self.a, strict=True):
            ends = [
                [self._on(frame, wrench, a.p) for wrench in wrenches] if frame.link != BASE else []
                for frame in (tie.a, tie.b)
            ]
            marks = [self.sweep.marked({frame.link}) for frame in (tie.a, tie.b)]
            found += self._carried(ends, marks, len(wrenches))
        return found

    def _on(self, frame: Frame, wrench: Force, point: Vec) -> Force:
        """Return a wrench at a point, along the axes of the base, as a force on the link of the frame."""
        pose = self.link_pose(frame)
        moment = wrench.moment + (point - pose.p).cross(wrench.force)
        values = self.sweep.held(leaves(Force(pose.turn_back(moment), pose.turn_back(wrench.force))))
        return Force(Vec(*values[:3]), Vec(*values[3:]))

    def _carried(self, ends: list[list[Force]], marks: list[PerLink[Scalar]], count: int) -> list[PerJoint]:
        def step(
            link: LinkView, outer: tuple[Force, ...], at: Gain, on_a: Scalar, on_b: Scalar
        ) -> tuple[tuple[Coordinates, ...], tuple[Force, ...]]:
            z = [outer[r] for r in range(count)]
            for own, mark, sign in ((ends[0], on_a, 1.0), (ends[1], on_b, -1.0)):
                z = [total + f * (mark * sign) for total, f in zip(z, own, strict=True)] if own else z
            e = tuple(link.H(f) for f in z)
            return e, tuple(link.phi(f - Span(at.G) @ x) for f, x in zip(z, e, strict=True))     # (4.7)

        kept, _ = self.sweep.inward(step, (ZERO_FORCE,) * count, self.kept, *marks)
        return list(self.sweep.unzip(kept))

    def mu(self) -> list[Scalar]:
        """Of each row the square of its size, over inertias, times the resolution: see elimination.py."""
        found: list[Scalar] = []
        resolution = self.resolution() if self.damping is None else self.damping * self.damping
        for k, tie in enumerate(self.ties):
            on_path = self.sweep.marked(self.path(tie.a.link) ^ self.path(tie.b.link))
            turns, slides = self._sums(_mobility, 2, self.inverse, on_path)
            reach = self.reach(k)
            sizes = {True: turns, False: turns * (reach * reach) + slides}
            found += [sizes[angular] * resolution for angular in is_angular(tie.kind)]
        return self.sweep.held([1.0 if is_zero(value) else value for value in found])

    def _sums(self, terms: Callable[..., Sums], count: int, *own: PerLink[object]) -> Sums:
        """Return the sums of these terms over all joints."""

        def step(link: LinkView, outer: Sums, *own: object) -> tuple[tuple[()], Sums]:
            return (), tuple(a + b for a, b in zip(outer, terms(link, *own), strict=True))

        return self.sweep.inward(step, (0.0,) * count, *own)[1]

    def _eliminate(self, z: PerJoint) -> tuple[Elimination, Entries]:
        """The orthogonal columns, and the shares in them of z, from which they are taken."""
        found = Elimination(self, z)
        return found, found.run()

    def redundancies(self) -> list[Scalar]:
        """As in Mechanism."""
        found, _ = self._eliminate(self.sweep.zeros())
        shares, doubts = found.R.redundancies(self.count)
        return [*shares, *doubts]

    def solve(self, forces: PerJoint | None, k: Sequence[Scalar]) -> tuple[PerJoint, list[Scalar]]:
        """As in Mechanism."""
        z = self.sweep.zeros()
        if forces is not None:
            z, _ = self.sweep.inward(_whiten, ZERO_FORCE, self.kept, forces)
        found, c = self._eliminate(z)
        u, g = found.R.sought(c, self.sweep.held(k), self.damping is not None)
        y = found.back(self.sweep.held([u.get(i, 0.0) for i in range(self.count)]))
        multipliers = found.R.multipliers(g)
        x = self.sweep.outward(_smooth, ZERO_MOTION, self.kept, self.inverse, y)
        return x, [multipliers.get(i, 0.0) for i in range(self.count)]


class Elimination:
    """The columns of a SweptMechanism made orthogonal one after the other: as OrthogonalSolver, with rows of their own
    for each column (b), and sums over joints by sweeps."""

    def __init__(self, mechanism: SweptMechanism, z: PerJoint):
        self.sweep, self.inverse = mechanism.sweep, mechanism.inverse
        self.columns, self.z, count = list(mechanism.columns), z, mechanism.count
        self.R = Triangle(mechanism.mu(), range(count))
        self.b: list[Entries] = [{i: 1.0} for i in range(count)]
        self.of_z: Entries = {}

    def _private(self, a: Entries, b: Entries) -> Scalar:
        total: Scalar = 0.0
        for i, value in a.items():
            if i in b:
                total = total + value * b[i] * self.R.mu[i]
        return total

    def run(self) -> Entries:
        """Make the columns orthogonal; the shares of z in them."""
        count, c = len(self.columns), Entries()
        sums = self._products([])
        for i in range(count):
            b = self.b[i]
            self.R.inverse[i] = 1.0 / (sums[0] + self._private(b, b))
            vectors = [*self.b[i + 1 :], self.of_z]
            shares = [(s + self._private(b, v)) * self.R.inverse[i] for s, v in zip(sums[1:], vectors, strict=True)]
            self.R.inverse[i], *shares = self.sweep.held([self.R.inverse[i], *shares])
            for share, vector in zip(shares, vectors, strict=True):
                _take(vector, share, b)
            self.R.upper[i] = {i + 1 + n: share for n, share in enumerate(shares[:-1])}
            c[i] = shares[-1]
            sums = self._products(shares)
        return c

    def _products(self, shares: Sequence[Scalar]) -> Sums:
        """Take these shares of a column from those after it and from z; then the products of the next one with itself,
        with those after it and with z."""
        done = len(self.columns) - len(shares) + 1 if shares else 0
        last = done == len(self.columns)
        own = [*([self.columns[done - 1]] if shares else []), *self.columns[done:], self.z]

        def step(link: LinkView, outer: Sums, inverse: Rows, *own: Coordinates) -> tuple[tuple[Coordinates, ...], Sums]:
            column, *vectors = own if shares else (Coordinates(()), *own)
            vectors = [v - column * share for v, share in zip(vectors, shares, strict=True)] if shares else vectors
            kept = tuple(vectors) if shares else ()
            if last:
                return kept, ()
            weighted = _times(inverse, vectors[0])
            return kept, tuple(total + _dot(weighted, v) for total, v in zip(outer, vectors, strict=True))

        zero = () if last else (0.0,) * (len(self.columns) - done + 1)
        kept, sums = self.sweep.inward(step, zero, self.inverse, *own)
        if shares:
            *self.columns[done:], self.z = self.sweep.unzip(kept)
        return sums

    def back(self, u: Sequence[Scalar]) -> PerJoint:
        """y, from z and its shares u of the columns: the columns in reverse."""
        count = len(self.columns)
        amount: Scalar | None = None
        for i in reversed(range(-1, count)):
            sums = self._put(i, amount)
            if i >= 0:
                share = (sums[0] + self._private(self.b[i], self.of_z)) * self.R.inverse[i]
                (amount,) = self.sweep.held([u[i] - share])
                _take(self.of_z, -amount, self.b[i])
        return self.z

    def _put(self, i: int, amount: Scalar | None) -> Sums:
        """Add that much of the column after i to z; then the product of column i with z."""
        own = [*([self.columns[i]] if i >= 0 else []), *([self.columns[i + 1]] if amount is not None else [])]

        def step(
            link: LinkView, outer: Sums, inverse: Rows, z: Coordinates, *own: Coordinates
        ) -> tuple[Coordinates, Sums]:
            if amount is not None:
                z = z + own[-1] * amount
            if i < 0:
                return z, ()
            return z, (outer[0] + _dot(_times(inverse, own[0]), z),)

        self.z, sums = self.sweep.inward(step, () if i < 0 else (0.0,), self.inverse, self.z, *own)
        return sums


def _take(vector: Entries, share: Scalar, direction: Entries) -> None:
    for i, value in direction.items():
        vector[i] = vector[i] - share * value if i in vector else -(share * value)


def _times(rows: Rows, x: Coordinates) -> list[Scalar]:
    return [_dot(row, x) for row in rows]


def _dot(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total


def _inverse(link: LinkView, nothing: tuple[()], at: Gain) -> tuple[Rows, tuple[()]]:
    D, n = JointInertia.of(at.block), len(at.block)
    return tuple(tuple(D.solve([1.0 if i == j else 0.0 for j in range(n)])) for i in range(n)), nothing


def _mobility(link: LinkView, inverse: Rows, on_path: Scalar) -> Sums:
    """Return the angular and linear mobility of this joint, divided by inertias."""
    turns: Scalar = 0.0
    slides: Scalar = 0.0
    for i, h in enumerate(link.H_T.columns):
        own = inverse[i][i] * on_path
        turns = turns if all(map(is_zero, leaves(h.angular))) else turns + own
        slides = slides if all(map(is_zero, leaves(h.linear))) else slides + own
    return turns, slides


def _whiten(link: LinkView, z: Force, at: Gain, forces: Coordinates) -> tuple[Coordinates, Force]:
    e = forces - link.H(z)                                                                       # (4.15)
    return e, link.phi(z + Span(at.G) @ e)                                                       # (4.15)


def _smooth(
    link: LinkView, parent: Motion, at: Gain, inverse: Rows, y: Coordinates
) -> tuple[Coordinates, Motion]:
    carried = link.phi_T(parent)
    x = Coordinates(_times(inverse, y)) - Span(at.G).transpose_times(carried)
    return x, carried + link.H_T @ x


def can_be_swept(model: CanonicalModel) -> bool:
    """Return whether constraints can be solved by sweeps, and so by loops over the links."""
    return not model.is_coupled and sum(tie.rows for tie in model.ties) <= MOST_ROWS


def constrained(sweep: Tree, damping: Scalar | None = None) -> Mechanism | SweptMechanism:
    """The constraints of a tree in one configuration, by what costs less. Derivatives need M: see elimination.py."""
    if isinstance(sweep, Unrolled):
        long = sweep.model.depth > LONG and can_be_swept(sweep.model)
        if not long or sweep.differentiated:
            return Mechanism(sweep, world=True, damping=damping)
    return SweptMechanism(sweep, damping)
