"""How far each joint is from moving nothing: D(k) over the inertia that is there to be moved.

D(k) = H P H^T + R, (4.6) of G. Rodriguez and K. Kreutz, "Recursive Mass Matrix Factorization and Inversion", 1988, is
what a joint has to accelerate while the outer joints give way. Where they give way to all of it D(k) is 0, M singular,
and what rounding leaves of D(k) is noise. It is therefore compared with what cannot vanish in any pose: the sizes of
the link's own inertia and of P beyond its children's joints before those give way, added without cancellation.
A size is half the trace of a rotational inertia, or a third of that of a mass. Any robot.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..joints import Coordinates, JointInertia, updated_inertia
from ..scalars import Scalar, where
from ..spatial import ZERO_ARTICULATED, ArticulatedInertia
from ..sweeps import LinkView, PerLink, Sweep


@dataclass(slots=True)
class Outer:
    """P of the outer links, and their sizes about the origin of this link."""

    P: ArticulatedInertia
    turning: Scalar
    sliding: Scalar


def inertia_ratio(sweep: Sweep) -> PerLink:
    """The ratio of every freedom, 1 at most or little more; of a joint of several, by the pivots of D(k) = U d U^T."""

    def step(link: LinkView, outer: Outer) -> tuple[Coordinates, Outer]:
        own = link.M.articulated()
        P = outer.P + own                                                                        # (4.5)
        P_H = P @ link.H_T
        D = JointInertia(link.H_T, P_H, link.armature)                                           # (4.6)
        P_plus = updated_inertia("43", P, link.H_T, P_H, P_H.over(D), link.armature)             # (4.5)
        turning, sliding = outer.turning + own.J.trace() * 0.5, outer.sliding + link.M.mass
        _, pivots = D.factor()
        ratio = Coordinates(
            d / or_one(h.angular.dot(h.angular) * turning + h.linear.dot(h.linear) * sliding + link.armature)
            for d, h in zip(pivots, link.H_T.columns, strict=True)
        )
        way, mass = link.X.origin(), P.rho.trace() * (1.0 / 3.0)
        return ratio, Outer(link.phi(P_plus), P.J.trace() * 0.5 + way.dot(way) * mass, mass)

    ratio, _ = sweep.inward(step, Outer(ZERO_ARTICULATED, 0.0, 0.0))
    return ratio


def closeness(sweep: Sweep) -> Scalar:
    """The sum of 1 / ratio^2 over all freedoms: if it is below 1 / r^2, every ratio is above r."""

    def step(link: LinkView, outer: tuple[Scalar], ratio: Coordinates) -> tuple[tuple[()], tuple[Scalar]]:
        return (), (sum((1.0 / (r * r) for r in ratio), outer[0]),)

    _, (total,) = sweep.inward(step, (0.0,), inertia_ratio(sweep))
    return total


def or_one(size: Scalar) -> Scalar:
    """The size, or 1 where there is none: D is 0 there, and so is the ratio."""
    return where(size > 0.0, size, 1.0)
