"""Forward dynamics FD3, three sweeps: no bias-free torques.

G. Rodriguez and K. Kreutz, "Recursive Mass Matrix Factorization and Inversion", 1988, Algorithm FD3, (5.8)-(5.10), and,
as the paper says it can be, with the accelerations of links: alpha = lambda + zeta, as in (5.6).
"""

from __future__ import annotations

from dataclasses import dataclass

from ..bias import BaseMotion, classical_bias_force
from ..joints import Coordinates, JointInertia, Span, updated_inertia
from ..spatial import ZERO_ARTICULATED, ZERO_FORCE, ZERO_MOTION, ArticulatedInertia, Force, Motion
from ..sweeps import LinkView, PerLink, Sweep
from .fd1 import Bias, bias_sweep


@dataclass(slots=True)
class Carried:
    y: Force
    P: ArticulatedInertia


@dataclass(slots=True)
class Filtered:
    y: Force
    P: ArticulatedInertia
    D: Coordinates
    G: tuple[Force, ...]
    innovation: Coordinates
    nu: Coordinates


@dataclass(slots=True)
class Smoothed:
    qdd: Coordinates
    costate: Motion
    alpha: Motion


@dataclass(slots=True)
class Result:
    qdd: PerLink
    alpha: PerLink
    costate: PerLink
    bias: PerLink
    filtered: PerLink


def fd3(
    sweep: Sweep, qd: PerLink, tau: PerLink, f_ext: PerLink, base: BaseMotion, dissipation: bool = False
) -> Result:
    """Joint accelerations that the joint forces tau produce; arguments as of filter_smoother."""

    def filter_step(
        link: LinkView, outer: Carried, at: Bias, qd: Coordinates, tau: Coordinates, f_ext: Force
    ) -> tuple[Filtered, Carried]:
        y = outer.y + (link.M @ at.zeta + classical_bias_force(link, at.V) - f_ext)              # (5.9) psi[...]
        P = outer.P + link.M.articulated()                                                       # (4.5)
        P_H = P @ link.H_T
        D = JointInertia(link.H_T, P_H, link.armature)                                           # (4.6)
        G = P_H.over(D)                                                                          # (5.12)
        if dissipation:
            tau = tau - link.dissipative_force(qd)
        innovation = tau - link.H(y)                                                             # (5.9)
        nu = D.solve(innovation)                                                                 # (5.10)
        P_plus = updated_inertia("43", P, link.H_T, P_H, G, link.armature)                       # (4.5)
        kept = Filtered(y, P, D.diagonal, G.columns, innovation, nu)
        y_plus = y + G @ innovation                                                              # (5.9) psi and S L T
        return kept, Carried(link.phi(y_plus), link.phi(P_plus))

    def smoother_step(link: LinkView, inner: Motion, at: Bias, kept: Filtered) -> tuple[Smoothed, Motion]:
        carried = link.phi_T(inner)
        qdd = kept.nu - Span(kept.G).transpose_times(carried)                                    # (5.10)
        costate = carried + link.H_T @ qdd                                                       # (4.22)
        return Smoothed(qdd, costate, costate + at.zeta), costate                                # (5.6)

    at = bias_sweep(sweep, qd, base)                                                             # (5.8)
    filtered, _ = sweep.inward(filter_step, Carried(ZERO_FORCE, ZERO_ARTICULATED), at, qd, tau, f_ext)
    smoothed = sweep.outward(smoother_step, ZERO_MOTION, at, filtered)
    return Result(smoothed.qdd, smoothed.alpha, smoothed.costate, at, filtered)
