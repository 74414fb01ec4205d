"""Distance of each joint from a singular configuration: D(k) over the inertia that the joint carries.

D(k) = H P H^T + R, (4.6) of G. Rodriguez and K. Kreutz, "Recursive Mass Matrix Factorization and Inversion", 1988, is
what a joint has to accelerate while the outer joints give way. Where they give way to all of it D(k) is 0, M singular,
and what rounding leaves of D(k) is noise. It is therefore compared with what cannot vanish in any pose: the sizes of
the link's own inertia and of P beyond its children's joints before those give way, added without cancellation.
A size is half the trace of a rotational inertia, or a third of that of a mass. For all robots.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.joints import Coordinates, JointInertia, updated_inertia
from ...spatial.scalars import Scalar, where
from ...spatial.algebra import ZERO_ARTICULATED, ArticulatedInertia, Sym
from ...mechanism.sweeps import LinkView, PerJoint, PerLink, Sweep


@dataclass(slots=True)
class Outer:
    """P of the outer links, and their sizes about the origin of this link."""

    P: ArticulatedInertia
    turning: Scalar
    sliding: Scalar


@dataclass(slots=True)
class Kept:
    """For each degree of freedom: the pivot d of D(k) = U d U^T, and the inertia that it is compared with."""

    d: Coordinates
    size: Coordinates


def half_trace(a: Sym) -> Scalar:
    return (a.xx + a.yy + a.zz) * 0.5


def joint_sizes(sweep: Sweep) -> PerLink[Kept]:
    def step(link: LinkView, outer: Outer) -> tuple[Kept, Outer]:
        own = link.M.articulated()
        P = outer.P + own                                                                        # (4.5)
        P_H = P @ link.H_T
        D = JointInertia(link.H_T, P_H, link.armature)                                           # (4.6)
        P_plus = updated_inertia("43", P, link.H_T, P_H, P_H.over(D), link.armature)             # (4.5)
        turning, sliding = outer.turning + half_trace(own.J), outer.sliding + link.M.mass
        size = Coordinates(
            h.angular.dot(h.angular) * turning + h.linear.dot(h.linear) * sliding + link.armature
            for h in link.H_T.columns
        )
        way, mass = link.X.origin(), half_trace(P.rho) * (2.0 / 3.0)
        up = Outer(link.phi(P_plus), half_trace(P.J) + way.dot(way) * mass, mass)
        return Kept(Coordinates(D.factor()[1]), size), up

    kept, _ = sweep.inward(step, Outer(ZERO_ARTICULATED, 0.0, 0.0))
    return kept


def inertia_ratio(sweep: Sweep) -> PerJoint:
    """Return d over its size for every degree of freedom: about 1 at most, and 0 where no inertia is moved."""

    def step(link: LinkView, nothing: tuple[()], at: Kept) -> tuple[Coordinates, tuple[()]]:
        return Coordinates(d / where(s > 0.0, s, 1.0) for d, s in zip(at.d, at.size, strict=True)), nothing

    return sweep.outward(step, (), joint_sizes(sweep))


def closeness(sweep: Sweep) -> Scalar:
    """The sum of 1 / ratio^2 over all degrees of freedom: if it is below 1 / r^2, every ratio is above r."""

    def step(link: LinkView, outer: tuple[Scalar], at: Kept) -> tuple[tuple[()], tuple[Scalar]]:
        inverse = [s * (1.0 / d) for d, s in zip(at.d, at.size, strict=True)]
        return (), (sum((x * x for x in inverse), outer[0]),)

    _, (total,) = sweep.inward(step, (0.0,), joint_sizes(sweep))
    return total
