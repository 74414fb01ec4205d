"""Center of mass, momentum and energy of the whole robot.

The momentum of link k is M(k) V(k); carried inward with phi, the recursion of G. Rodriguez and K. Kreutz 1988, (2.29),
with momenta in the place of forces, it sums to that of the robot about the base's origin. The columns of the centroidal
momentum matrix are R(k) H^T(k), with R(k) the composite inertia outward of joint k, seen from the center of mass.
"""

from __future__ import annotations

from dataclasses import dataclass

from .kinematics import velocities
from ...mechanism.joints import Coordinates
from ...spatial.scalars import Scalar
from ...spatial.algebra import ZERO_FORCE, ZERO_INERTIA, ZERO_VEC, Force, Inertia, Motion, Vec
from ...mechanism.sweeps import LinkView, PerJoint, PerLink, Sweep
from ...spatial.transforms import Pose


@dataclass(slots=True)
class Columns:
    """The momentum of the robot for each unit velocity of one joint, in the base's directions."""

    momenta: tuple[Force, ...]


def composite_inertias(sweep: Sweep) -> tuple[PerLink[Inertia], Inertia]:
    """The inertia R(k) of all that is outward of each joint, and that of the whole robot in the base frame."""

    def step(link: LinkView, outer: Inertia) -> tuple[Inertia, Inertia]:
        R = outer + link.M
        return R, link.phi(R)

    return sweep.inward(step, ZERO_INERTIA)


def momentum(sweep: Sweep, qd: PerJoint) -> Force:
    """[angular; linear] momentum about the base's origin, in the base's directions."""

    def step(link: LinkView, outer: Force, V: Motion) -> tuple[tuple[()], Force]:
        return (), link.phi(outer + link.M @ V)

    return sweep.inward(step, ZERO_FORCE, velocities(sweep, qd))[1]


def seen_from(point: Vec, momentum: Force) -> Force:
    """A momentum (or force) about the origin, about another point."""
    return Force(momentum.moment - point.cross(momentum.force), momentum.force)


def momentum_matrix(sweep: Sweep, at: PerLink[Pose], R: PerLink[Inertia], point: Vec = ZERO_VEC) -> PerLink[Columns]:
    """Columns of the matrix that takes rates to momentum about `point`; at as of `poses`, R of `composite_inertias`."""

    def step(link: LinkView, nothing: tuple[()], at: Pose, R: Inertia) -> tuple[Columns, tuple[()]]:
        momenta: list[Force] = []
        for h in link.H_T.columns:
            own = R @ h
            linear = at.turn(own.force)
            momenta.append(Force(at.turn(own.moment) + (at.p - point).cross(linear), linear))
        return Columns(tuple(momenta)), nothing

    return sweep.outward(step, (), at, R)


def kinetic_energy(sweep: Sweep, qd: PerJoint) -> Scalar:
    """Half of V(k) M(k) V(k), summed, and of the motors' own inertias: qd^T M qd / 2."""

    def step(link: LinkView, outer: tuple[Scalar], V: Motion, qd: Coordinates) -> tuple[tuple[()], tuple[Scalar]]:
        twice = (link.M @ V).dot(V)
        for rate in qd:
            twice = twice + rate * rate * link.armature
        return (), (outer[0] + twice * 0.5,)

    return sweep.inward(step, (0.0,), velocities(sweep, qd), qd)[1][0]
