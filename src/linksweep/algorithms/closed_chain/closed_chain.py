"""Forward dynamics of a tree whose frames are tied to each other: accelerations and the forces of the constraints.

    M qdd + K^T lambda = T',    K qdd + k = 0

with T' the joint forces less the bias, (3.22)-(3.23) of G. Rodriguez and K. Kreutz 1988, and M by composite bodies,
(32) of G. Rodriguez 1987. With M = L^T D L, Y = L^-T K^T and Omega = Y^T D^-1 Y = K M^-1 K^T, the operational space of
the constraints: Omega lambda = Y^T D^-1 L^-T T' + k. L keeps the zeros of the tree; Omega's factor those of constraints
that share no link. Redundant rows are met by proximal iterations (spatial/symmetric_solve.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...description.model import BASE, Frame
from ...mechanism.bias import BaseMotion
from ...mechanism.canonical_model import Tie
from ...mechanism.joints import Coordinates
from ...mechanism.sweeps import Pairs, PerLink, Records, Unrolled
from ...spatial.algebra import ZERO_FORCE, ZERO_VEC, Force, Motion, Vec
from ...spatial.scalars import Scalar, is_zero
from ...spatial.symmetric_solve import SymmetricSolver
from ...spatial.transforms import Pose
from ..inverse.khalil_kleinfinger import Result as Inverse
from ..inverse.khalil_kleinfinger import State, khalil_kleinfinger
from ..mass_matrix.composite_inertia import mass_matrix
from ..whole_robot.kinematics import WORLD, jacobian, poses
from .ties import Row, errors, rows, second_derivatives


THREES = ("rigid", "point")  # kinds whose rows come in threes, along x, y and z of b


@dataclass(slots=True)
class Result:
    qdd: PerLink  # joint acceleration
    multipliers: list[Scalar]  # lambda of each row
    wrenches: list[Force]  # that each constraint exerts on its frame a, at its origin along the base's axes


class Mechanism:
    """The constraints of a tree in one pose: K, and what solves with K M^-1 K^T. Rates stand link after link.

    world: rows that come in threes, along all axes of b, are taken along the world's instead. They say the same and
    cost less; errors, drift and multipliers of `solve` are along these, too.
    """

    def __init__(self, sweep: Unrolled, world: bool = False):
        self.sweep, self.ties = sweep, sweep.model.ties
        self.at = poses(sweep)
        self.a = [self._pose(tie.a) for tie in self.ties]
        self.own = [self._pose(tie.b) for tie in self.ties]
        self.turned = [world and tie.kind in THREES for tie in self.ties]
        places = zip(self.own, self.turned, strict=True)
        self.b = [Pose(WORLD.x, WORLD.y, WORLD.z, b.p) if turned else b for b, turned in places]
        self.columns = [self._relative(tie, pose) for tie, pose in zip(self.ties, self.a, strict=True)]
        self.K = [[row.wrench.dot(m) for m in columns] for columns, row in self._rows()]

    def _rows(self) -> list[tuple[list[Motion], Row]]:
        places = zip(self.ties, self.a, self.b, self.columns, strict=True)
        return [(columns, row) for tie, a, b, columns in places for row in rows(tie.kind, a, b, tie.numbers[0])]

    def errors(self) -> list[Scalar]:
        found = []
        for tie, a, b, turned in zip(self.ties, self.a, self.own, self.turned, strict=True):
            own = errors(tie.kind, a, b, tie.numbers[0])
            found += _by_threes(b.turn, own) if turned else own
        return found

    def along_b(self, multipliers: Sequence[Scalar]) -> list[Scalar]:
        """Multipliers as they belong to rows along the axes of b."""
        found, values = [], list(multipliers)
        for tie, b, turned in zip(self.ties, self.own, self.turned, strict=True):
            own, values = values[: tie.rows], values[tie.rows :]
            found += _by_threes(b.turn_back, own) if turned else own
        return found

    def _pose(self, frame: Frame) -> Pose:
        pose = WORLD if frame.link == BASE else self.sweep.at(self.at, frame.link)
        x, y, z = (pose.turn(Vec(*column)) for column in zip(*frame.placement.rotation, strict=True))
        return Pose(x, y, z, pose.point(Vec(*frame.placement.position)))

    def _relative(self, tie: Tie, a: Pose) -> list[Motion]:
        """How each rate moves a relative to b, at the origin of a: 0 for joints that carry both."""
        paths = [set(self.sweep.model.path(frame.link)) for frame in (tie.a, tie.b)]
        away, back = (jacobian(self.sweep, self.at, self.sweep.marked(own - other), a.p).motions
                      for own, other in (paths, paths[::-1]))  # fmt: skip
        places = range(len(self.sweep.links))
        return self.sweep.summed(Records([x - y for x, y in zip(away[i], back[i], strict=True)] for i in places))

    def drift(self, qd: PerLink, states: PerLink, base: State) -> list[Scalar]:
        """k = dK/dt qd; states: of the links, with no joint acceleration, and of the base."""
        flat = [x for i, link in enumerate(self.sweep.model.links) if link.leads for x in qd[i]]
        found = []
        for tie, a, b, columns in zip(self.ties, self.a, self.b, self.columns, strict=True):
            s = ZERO_VEC
            for column, rate in zip(columns, flat, strict=True):
                s = s + column.linear * rate
            (spin_a, of_a), (spin, of_b) = (self._motion(frame, states, a.p, base) for frame in (tie.a, tie.b))
            relative = Motion(spin_a - spin, s)
            found += second_derivatives(tie.kind, a, b, tie.numbers[0], relative, of_a, of_b, spin)
        return found

    def _motion(self, frame: Frame, states: PerLink, point: Vec, base: State) -> tuple[Vec, Motion]:
        """A frame's angular velocity, and its acceleration at `point`, along the base's axes."""
        on_base = frame.link == BASE
        pose, own = (WORLD, base) if on_base else (self.sweep.at(part, frame.link) for part in (self.at, states))
        linear = own.dv + own.U @ pose.turn_back(point - pose.p)
        return pose.turn(own.w), Motion(pose.turn(own.dw), pose.turn(linear))

    def prepare(self, M: Pairs) -> None:
        """Factor M and Omega."""
        self.M = self.sweep.tree_matrix(M)
        self.low, pivots = self.M.factor()
        self.inverse = [1.0 / d for d in pivots]
        self.Y = [self._inward(row) for row in self.K]                                           # Y = L^-T K^T
        Omega = [[self._product(y, z) for z in self.Y[: i + 1]] for i, y in enumerate(self.Y)]
        self.solver = SymmetricSolver(Omega)

    def wrenches(self, multipliers: Sequence[Scalar]) -> list[Force]:
        """- K^T lambda of each constraint as it acts on its frame a."""
        found, values = [], iter(multipliers)
        for tie, a, b in zip(self.ties, self.a, self.b, strict=True):
            total = ZERO_FORCE
            for row in rows(tie.kind, a, b, tie.numbers[0]):
                total = total - row.wrench * next(values)
            found.append(total)
        return found

    def _inward(self, b: Sequence[Scalar]) -> list[Scalar]:
        x = list(b)
        for i in reversed(range(len(x))):
            for j in () if is_zero(x[i]) else self.M.ancestors(i):
                x[j] = x[j] - self.low[i, j] * x[i]
        return x

    def _product(self, y: Sequence[Scalar], z: Sequence[Scalar]) -> Scalar:
        total: Scalar = 0.0
        for one, other, weight in zip(y, z, self.inverse, strict=True):
            if not is_zero(one) and not is_zero(other):
                total = total + one * (other * weight)
        return total

    def solve(self, force: Sequence[Scalar], k: Sequence[Scalar]) -> tuple[Records[Coordinates], list[Scalar]]:
        """x and lambda of M x + K^T lambda = force, K x + k = 0."""
        y = self._inward(force)
        known = [self._product(row, y) + drift for row, drift in zip(self.Y, k, strict=True)]
        multipliers = self.solver.solve(known)                                                   # Omega lambda
        for row, value in zip(self.Y, multipliers, strict=True):
            y = [entry - part * value for entry, part in zip(y, row, strict=True)]
        x: list[Scalar] = []
        for i, entry in enumerate(y):
            value = entry * self.inverse[i]
            for j in self.M.ancestors(i):
                value = value - self.low[i, j] * x[j]
            x.append(value)
        return self.sweep.shared(x), multipliers


def closed_chain(
    sweep: Unrolled, qd: PerLink, tau: PerLink, f_ext: PerLink, base: BaseMotion, dissipation: bool = False
) -> Result:
    """Joint accelerations that tau produces, and the constraints' forces; arguments as of filter_smoother."""
    bias = khalil_kleinfinger(sweep, qd, sweep.zeros(), f_ext, base, dissipation)
    T_free = sweep.subtract(tau, bias.tau)                                                       # (3.22)
    mechanism = Mechanism(sweep, world=True)
    mechanism.prepare(mass_matrix(sweep).elements)                                               # (32)
    k = mechanism.drift(qd, _states(bias), State(base.w, base.dw, base.a))
    qdd, multipliers = mechanism.solve(sweep.summed(T_free), k)
    return Result(qdd, mechanism.along_b(multipliers), mechanism.wrenches(multipliers))


def _by_threes(turn: Callable[[Vec], Vec], values: Sequence[Scalar]) -> list[Scalar]:
    return [x for k in range(0, len(values), 3) for x in turn(Vec(*values[k : k + 3]))]


def _states(bias: Inverse) -> Records[State]:
    """w, dw, dv of every link, as the inverse dynamics found them."""
    return Records(State(*values) for values in zip(bias.w, bias.dw, bias.dv, strict=True))
