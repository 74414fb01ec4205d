"""Forward dynamics FD1, four sweeps: remove the bias torques, then filter and smooth.

G. Rodriguez and K. Kreutz, "Recursive Mass Matrix Factorization and Inversion", 1988, Algorithm FD1, (4.17)-(4.22),
with P, D, L of (4.4)-(4.6): qdd = (I - H Psi L)^T D^-1 (I - H Psi L) T'. L(k) = phi(k+1, k) G(k) is never formed: what
goes through it goes through G, then to the parent. FD2 is the same with the links' accelerations kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..bias import BaseMotion, classical_bias_acceleration, classical_bias_force
from ..joints import Coordinates, JointInertia, Span, updated_inertia
from ..spatial import ZERO_ARTICULATED, ZERO_FORCE, ZERO_MOTION, ArticulatedInertia, Force, Motion
from ..sweeps import LinkView, PerLink, Sweep


@dataclass(slots=True)
class Bias:
    """V = [w; v], and zeta = phi^T a: the acceleration that the link has when no joint accelerates."""

    V: Motion
    zeta: Motion


@dataclass(slots=True)
class Free:
    """T' (bias-free joint force), P, D and G of one link."""

    T_free: Coordinates
    P: ArticulatedInertia
    D: Coordinates
    G: tuple[Force, ...]
    block: tuple[tuple[float, ...], ...]


@dataclass(slots=True)
class Carried:
    f: Force
    P: ArticulatedInertia


@dataclass(slots=True)
class Filtered:
    z: Force
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
    free: PerLink
    filtered: PerLink


def bias_sweep(sweep: Sweep, qd: PerLink, base: BaseMotion) -> PerLink:
    """V and zeta of every link: the first sweep of FD1, FD2 and FD3."""

    def bias_step(link: LinkView, parent: Bias, qd: Coordinates) -> tuple[Bias, Bias]:
        V_plus = link.phi_T(parent.V)
        V = V_plus + link.H_T @ qd                                                               # (2.25)
        a = classical_bias_acceleration(link, parent.V, V_plus, qd)                              # (2.19), (2.32)
        state = Bias(V, link.phi_T(parent.zeta) + a)                                             # (4.17), (5.8) phi^T a
        return state, state

    return sweep.outward(bias_step, Bias(base.velocity, base.acceleration), qd)                  # (3.21)


def fd1(
    sweep: Sweep, qd: PerLink, tau: PerLink, f_ext: PerLink, base: BaseMotion, dissipation: bool = False
) -> Result:
    """Joint accelerations that the joint forces tau produce; arguments as of filter_smoother."""

    def bias_free_step(
        link: LinkView, outer: Carried, at: Bias, qd: Coordinates, tau: Coordinates, f_ext: Force
    ) -> tuple[Free, Carried]:
        f = outer.f + (link.M @ at.zeta + classical_bias_force(link, at.V) - f_ext)              # (4.17)
        T_free = tau - link.H(f)                                                                 # (4.17)
        if dissipation:
            T_free = T_free - link.dissipative_force(qd)
        P = outer.P + link.M.articulated()                                                       # (4.5)
        P_H = P @ link.H_T
        D = JointInertia(link.H_T, P_H, link.armature)                                           # (4.6)
        G = P_H.over(D)                                                                          # (5.12)
        P_plus = updated_inertia("43", P, link.H_T, P_H, G, link.armature)                       # (4.5)
        kept = Free(T_free, P, D.diagonal, G.columns, D.block)
        return kept, Carried(link.phi(f), link.phi(P_plus))

    def filter_step(link: LinkView, z: Force, free: Free) -> tuple[Filtered, Force]:
        innovation = free.T_free - link.H(z)                                                     # (4.20) T'
        nu = JointInertia.of(free.block).solve(innovation)                                       # (4.20)
        return Filtered(z, innovation, nu), link.phi(z + Span(free.G) @ innovation)              # (4.20) with L = phi G

    def smoother_step(
        link: LinkView, inner: Motion, at: Bias, free: Free, kept: Filtered
    ) -> tuple[Smoothed, Motion]:
        carried = link.phi_T(inner)
        qdd = kept.nu - Span(free.G).transpose_times(carried)                                    # (4.22)
        costate = carried + link.H_T @ qdd                                                       # (4.22)
        return Smoothed(qdd, costate, costate + at.zeta), costate                                # (4.22b)

    at = bias_sweep(sweep, qd, base)                                                             # (4.17) phi^T a
    free, _ = sweep.inward(bias_free_step, Carried(ZERO_FORCE, ZERO_ARTICULATED), at, qd, tau, f_ext)
    filtered, _ = sweep.inward(filter_step, ZERO_FORCE, free)                                    # (4.19)
    smoothed = sweep.outward(smoother_step, ZERO_MOTION, at, free, filtered)                     # (4.21)
    return Result(smoothed.qdd, smoothed.alpha, smoothed.costate, at, free, filtered)



