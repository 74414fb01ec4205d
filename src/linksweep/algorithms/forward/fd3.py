"""Forward dynamics FD3, three sweeps: no bias-free torques.

G. Rodriguez and K. Kreutz, "Recursive Mass Matrix Factorization and Inversion", 1988, Algorithm FD3, (5.8)-(5.10), and,
as the paper says it can be, with the accelerations of links: alpha = lambda + zeta, as in (5.6).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.bias import BaseMotion, classical_bias_force
from ...mechanism.joints import Coordinates, JointBlock, JointInertia, Span, updated_inertia
from ...spatial.algebra import ZERO_ARTICULATED, ZERO_FORCE, ZERO_MOTION, ArticulatedInertia, Force, Motion
from ...mechanism.sweeps import LinkView, PerJoint, PerLink, Sweep
from .fd1 import Moving, bias_sweep


@dataclass(slots=True)
class Carried:
    y: Force
    P: ArticulatedInertia


@dataclass(slots=True)
class Filtered:
    b: Force  # bias force: what the link's velocity alone needs
    y: Force  # [moment; force] at the link's joint as far as the joints beyond it tell
    y_plus: Force  # the same with what the link's own joint tells
    P: ArticulatedInertia  # articulated inertia: of the link and those beyond it, their joints free
    P_plus: ArticulatedInertia  # the same with the link's own joint free too
    D: JointBlock  # inertia that the joint meets
    G: tuple[Force, ...]  # gain, of each freedom
    innovation: Coordinates  # joint force beyond what y holds already
    nu: Coordinates  # D^-1 innovation: the acceleration that it alone would give the joint


@dataclass(slots=True)
class Smoothed:
    carried: Motion  # costate of the inner link, carried to this one
    qdd: Coordinates  # joint acceleration
    costate: Motion  # lambda: the acceleration that the joints' accelerations alone give the link
    alpha: Motion  # acceleration [dw; dv] less gravity


@dataclass(slots=True)
class Result:
    qdd: PerJoint
    alpha: PerLink[Motion]
    costate: PerLink[Motion]
    bias: PerLink[Moving]
    filtered: PerLink[Filtered]
    carried: PerLink[Motion]


def fd3(
    sweep: Sweep, qd: PerJoint, tau: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False
) -> Result:
    """Joint accelerations that the joint forces tau produce; arguments as of filter_smoother."""

    def filter_step(
        link: LinkView, outer: Carried, at: Moving, qd: Coordinates, tau: Coordinates, f_ext: Force
    ) -> tuple[Filtered, Carried]:
        b = classical_bias_force(link, at.V)                                                     # (2.23)
        y = outer.y + (link.M @ at.zeta + b - f_ext)                                             # (5.9) psi[...]
        P = outer.P + link.M.articulated()                                                       # (4.5)
        P_H = P @ link.H_T
        D = JointInertia(link.H_T, P_H, link.armature)                                           # (4.6)
        G = P_H.over(D)                                                                          # (5.12)
        if dissipation:
            tau = tau - link.dissipative_force(qd)
        innovation = tau - link.H(y)                                                             # (5.9)
        nu = D.solve(innovation)                                                                 # (5.10)
        P_plus = updated_inertia("43", P, link.H_T, P_H, G, link.armature)                       # (4.5)
        y_plus = y + G @ innovation                                                              # (5.9) psi and S L T
        kept = Filtered(b, y, y_plus, P, P_plus, D.block, G.columns, innovation, nu)
        return kept, Carried(link.phi(y_plus), link.phi(P_plus))

    def smoother_step(link: LinkView, inner: Motion, at: Moving, kept: Filtered) -> tuple[Smoothed, Motion]:
        carried = link.phi_T(inner)                                                              # (4.22)
        qdd = kept.nu - Span(kept.G).transpose_times(carried)                                    # (5.10)
        costate = carried + link.H_T @ qdd                                                       # (4.22)
        alpha = costate + at.zeta                                                                # (5.6)
        return Smoothed(carried, qdd, costate, alpha), costate

    at = bias_sweep(sweep, qd, base)                                                             # (5.8)
    filtered, _ = sweep.inward(filter_step, Carried(ZERO_FORCE, ZERO_ARTICULATED), at, qd, tau, f_ext)
    smoothed = sweep.outward(smoother_step, ZERO_MOTION, at, filtered)
    return Result(smoothed.qdd, smoothed.alpha, smoothed.costate, at, filtered, smoothed.carried)
