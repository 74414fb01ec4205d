"""The inverse of the mass matrix, element by element, from the covariance of the costates.

G. Rodriguez, "Kalman Filtering, Smoothing, and Recursive Robot Arm Forward and Inverse Dynamics", 1987, (83) with the
errata settled (docs/errata.md): P inward, Delta outward, then an element for each pair of joints. (83) carries the
vector alpha of joint i outward to every joint k; here its adjoint is carried inward from k, w = psi(i, k) G(k), and
meets alpha(i): the same product, taken from the other end. Serial chains only.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.joints import JointInertia, updated_inertia
from ...spatial.algebra import ZERO_ARTICULATED, ZERO_COMPLIANCE, ArticulatedInertia, Compliance, Force, Motion
from ...mechanism.sweeps import LinkView, Pairs, PerLink, Sweep
from ...spatial.scalars import Rows, Scalar


@dataclass(slots=True)
class Filtered:
    P: ArticulatedInertia
    G: Force
    D: Scalar


@dataclass(slots=True)
class Costate:
    """alpha(i) of the terminal costate, and the diagonal element m(i, i) of the inverse."""

    alpha: Motion
    element: Scalar


@dataclass(slots=True)
class Result:
    elements: Pairs
    filtered: PerLink[Filtered]
    Delta: PerLink[Compliance]


def mass_matrix_inverse(sweep: Sweep) -> Result:
    """Elements of M^-1 for each pair of a joint and one of its ancestors."""

    def filter_step(link: LinkView, outer: ArticulatedInertia) -> tuple[Filtered, ArticulatedInertia]:
        P = outer + link.M.articulated()                                                         # (83) prediction
        P_H = P @ link.H_T
        D = JointInertia(link.H_T, P_H, link.armature)
        G = P_H.over(D)
        P_plus = updated_inertia("43", P, link.H_T, P_H, G, link.armature)                       # (83) update
        return Filtered(P, G.columns[0], D.rows[0][0]), link.phi(P_plus)

    def costate_step(link: LinkView, inner: Compliance, at: Filtered) -> tuple[tuple[Costate, Compliance], Compliance]:
        H = link.H_T.columns[0]
        Delta_plus = link.phi_T(inner)                                                           # (83) propagation
        Delta_G = Delta_plus @ at.G
        element = 1.0 / at.D + at.G.dot(Delta_G)                                                 # (83) diagonal
        alpha = Delta_G - H * element                                                            # (83) terminal costate
        Delta = Delta_plus.minus_outer(H, alpha).minus_outer(Delta_G, H)                         # (83) update
        return (Costate(alpha, element), Delta), Delta

    def start(link: LinkView, at: Filtered, costate: Costate) -> tuple[Rows, Force]:
        return [[costate.element]], link.phi(at.G)

    def step(link: LinkView, w: Force, at: Filtered, costate: Costate) -> tuple[Rows, Force]:
        element = w.dot(costate.alpha)                                                           # (83) off-diagonal
        return [[element]], link.phi(w - at.G * link.H(w)[0])                                    # (83) costate update

    filtered, _ = sweep.inward(filter_step, ZERO_ARTICULATED)
    kept = sweep.outward(costate_step, ZERO_COMPLIANCE, filtered)                                # Delta^+(N) = 0
    costates, Delta = sweep.unzip(kept)
    return Result(sweep.pairs(start, step, filtered, costates), filtered, Delta)
