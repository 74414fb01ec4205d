"""The inverse of the mass matrix, element by element, from the covariance of the costates.

G. Rodriguez, "Kalman Filtering, Smoothing, and Recursive Robot Arm Forward and Inverse Dynamics", 1987, (83) with the
errata settled (docs/errata.md): P inward, Delta outward, then an element for each pair of joints. (83) carries the
vector alpha of joint i outward to every joint k; here its adjoint is carried inward from k, w = psi(i, k) G(k), and
meets alpha(i): the same product, taken from the other end. A joint with several DOF has a block in place of each
element. Serial chains only.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.joints import JointBlock, JointInertia, Span, updated_inertia
from ...spatial.algebra import ZERO_ARTICULATED, ZERO_COMPLIANCE, ArticulatedInertia, Compliance, Force, Motion
from ...mechanism.sweeps import LinkView, Pairs, PerLink, Sweep
from ...spatial.scalars import Rows


@dataclass(slots=True)
class Filtered:
    P: ArticulatedInertia
    G: tuple[Force, ...]  # gain, of each DOF of the joint
    D: JointBlock


@dataclass(slots=True)
class Costate:
    """alpha(i) of the terminal costate for each DOF of the joint, and the diagonal block m(i, i) of the inverse."""

    alpha: tuple[Motion, ...]
    block: JointBlock


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
        return Filtered(P, G.columns, D.block), link.phi(P_plus)

    def costate_step(link: LinkView, inner: Compliance, at: Filtered) -> tuple[tuple[Costate, Compliance], Compliance]:
        Delta_plus = link.phi_T(inner)                                                           # (83) propagation
        Delta_G = [Delta_plus @ g for g in at.G]
        block = inverse_block(at, Delta_G)                                                       # (83) diagonal
        alpha = [x - link.H_T @ column for x, column in zip(Delta_G, block, strict=True)]        # (83) terminal costate
        Delta = Delta_plus
        for h, a, x in zip(link.H_T.columns, alpha, Delta_G, strict=True):
            Delta = Delta.minus_outer(h, a).minus_outer(x, h)                                    # (83) update
        return (Costate(tuple(alpha), block), Delta), Delta

    def start(link: LinkView, at: Filtered, costate: Costate) -> tuple[Rows, tuple[Force, ...]]:
        return [list(row) for row in costate.block], tuple(link.phi(g) for g in at.G)

    def step(
        link: LinkView, w: tuple[Force, ...], at: Filtered, costate: Costate
    ) -> tuple[Rows, tuple[Force, ...]]:
        block = [[x.dot(a) for x in w] for a in costate.alpha]                                   # (83) off-diagonal
        G = Span(at.G)
        return block, tuple(link.phi(x - G @ link.H(x)) for x in w)                              # (83) costate update

    filtered, _ = sweep.inward(filter_step, ZERO_ARTICULATED)
    kept = sweep.outward(costate_step, ZERO_COMPLIANCE, filtered)                                # Delta^+(N) = 0
    costates, Delta = sweep.unzip(kept)
    return Result(sweep.pairs(start, step, filtered, costates), filtered, Delta)


def inverse_block(at: Filtered, Delta_G: list[Motion]) -> JointBlock:
    """m(i, i) = D^-1 + G^T Delta^+ G, symmetric: rows and columns are the same."""
    D, n = JointInertia.of(at.D), range(len(at.G))
    columns = [D.solve([1.0 if i == j else 0.0 for i in n]) for j in n]
    return JointBlock(tuple(columns[j][i] + at.G[i].dot(Delta_G[j]) for i in n) for j in n)
