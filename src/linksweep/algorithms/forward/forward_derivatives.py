"""The derivatives of forward dynamics from those of inverse dynamics.

J. Carpentier and N. Mansard, "Analytical Derivatives of Rigid Body Dynamics Algorithms", RSS 2018, section III: with
tau = ID(q, qd, qdd) and qdd = FD(q, qd, tau),

    (1)  dqdd/dq = -M^-1 dtau/dq    (2)  dqdd/dqd = -M^-1 dtau/dqd    (3)  dqdd/dtau = M^-1

where the derivatives of tau are taken at the qdd that tau makes. M is factored once, as L^T D L.

A 6-DOF joint j on a base at rest makes any motion, S S^T = 1. Its columns of dtau/dq are I^C (a_p x S) there
and in all that it carries, those of dtau/dqd, where S slides, I^C (v x S): M times a vector that only j has, and

    (4)  dqdd_j/dq_j = S^T (S x a_p)    (5)  dqdd_j/dqd_j = S^T (S x v), where S slides

with nothing for the other joints: uniform gravity turns no joint, and no uniform velocity does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...mechanism.bias import BaseMotion
from ...mechanism.joints import Coordinates
from ...mechanism.sweeps import LinkView, Pairs, PerJoint, PerLink, Sweep
from ...spatial.algebra import Force, Motion, leaves
from ...spatial.scalars import is_zero
from ..inverse.inverse_derivatives import cross, inverse_dynamics_derivatives
from .composite import composite


class Accelerated(Protocol):
    """The result that every forward dynamics algorithm has."""

    qdd: PerJoint


@dataclass(slots=True)
class Free:
    """Columns of dqdd/dq and dqdd/dqd of a joint that have entries only in its own rows; None: computed with M."""

    q: tuple[Coordinates | None, ...]
    qd: tuple[Coordinates | None, ...]


@dataclass(slots=True)
class Result:
    """qdd, what (1)-(3) are made of, the elements of dtau/dq, dtau/dqd and M at that qdd, and (4), (5)."""

    qdd: PerJoint
    elements: Pairs
    free: PerLink[Free]


def forward_dynamics_derivatives(
    sweep: Sweep, qd: PerJoint, tau: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False,
    forward: Callable[..., Accelerated] = composite,
) -> Result:
    """Accelerations, and the derivatives of inverse dynamics at them; arguments as of composite.

    forward: the algorithm that finds the accelerations.
    """
    at_rest = all(is_zero(x) for x in leaves(base.velocity))

    def outward_step(link: LinkView, a: Motion | None, qd: Coordinates) -> tuple[Free, None]:
        S = link.H_T.columns
        if a is None or len(S) < 6 or not spans(link):
            return Free((None,) * len(S), (None,) * len(S)), None
        a_p, v = link.phi_T(a), link.H_T @ qd
        by_q = tuple(along(link, cross(s, a_p)) for s in S)                                        # (4)
        slides = tuple(all(is_zero(x) for x in leaves(s.angular)) for s in S)
        by_qd = tuple(along(link, cross(s, v)) if slide else None for s, slide in zip(S, slides, strict=True))  # (5)
        return Free(by_q, by_qd), None

    qdd = forward(sweep, qd, tau, f_ext, base, dissipation).qdd
    swept = inverse_dynamics_derivatives(sweep, qd, qdd, f_ext, base, dissipation)               # (1), (2), (3)
    return Result(qdd, swept.elements, sweep.outward(outward_step, base.acceleration if at_rest else None, qd))


def along(link: LinkView, motion: Motion) -> Coordinates:
    """S^T of a motion."""
    return link.H(Force(motion.angular, motion.linear))


def spans(link: LinkView) -> bool:
    """Return whether S^T S = 1, and nothing but the bodies resists the joint."""
    if not (is_zero(link.armature) and is_zero(link.damping) and is_zero(link.friction)):
        return False
    products = [along(link, s) for s in link.H_T.columns]
    return all(x == (i == k) for i, row in enumerate(products) for k, x in enumerate(row))
