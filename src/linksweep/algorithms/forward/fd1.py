"""Forward dynamics FD1, four sweeps: remove the bias torques, then filter and smooth.

G. Rodriguez and K. Kreutz, "Recursive Mass Matrix Factorization and Inversion", 1988, Algorithm FD1, (4.17)-(4.22),
with P, D, L of (4.4)-(4.6): qdd = (I - H Psi L)^T D^-1 (I - H Psi L) T'. L(k) = phi(k+1, k) G(k) is never formed: what
goes through it goes through G, then to the parent. FD2 is the same with the links' accelerations kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.bias import BaseMotion, classical_bias_acceleration, classical_bias_force
from ...mechanism.joints import Coordinates, JointBlock, JointInertia, Span, updated_inertia
from ...spatial.algebra import ZERO_ARTICULATED, ZERO_FORCE, ZERO_MOTION, ArticulatedInertia, Force, Motion
from ...mechanism.sweeps import LinkView, PerJoint, PerLink, Sweep


@dataclass(slots=True)
class Bias:
    V: Motion  # velocity [w; v]
    zeta: Motion  # phi^T a: the acceleration, less gravity, that the link has while no joint accelerates


@dataclass(slots=True)
class Moving(Bias):
    V_plus: Motion  # velocity of the inner link, carried to this one
    a: Motion  # bias acceleration: what zeta is more than that of the inner link


@dataclass(slots=True)
class Free:
    b: Force  # bias force: what the link's velocity alone needs
    f: Force  # [moment; force] that the inner joint would exert on the link if no joint accelerated
    T_free: Coordinates  # T': joint force less what the bias needs
    P: ArticulatedInertia  # articulated inertia: of the link and those beyond it, their joints free
    P_plus: ArticulatedInertia  # the same with the link's own joint free too
    D: JointBlock  # inertia that the joint meets
    G: tuple[Force, ...]  # gain, of each freedom


@dataclass(slots=True)
class Carried:
    f: Force
    P: ArticulatedInertia


@dataclass(slots=True)
class Filtered:
    z: Force  # [moment; force] at the link's joint, of T', as far as the joints beyond it tell: the predicted state
    innovation: Coordinates  # T' beyond what z holds already
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
    free: PerLink[Free]
    filtered: PerLink[Filtered]
    carried: PerLink[Motion]


def bias_sweep(sweep: Sweep, qd: PerJoint, base: BaseMotion) -> PerLink[Moving]:
    """V and zeta of every link: the first sweep of FD1, FD2 and FD3."""

    def bias_step(link: LinkView, parent: Bias, qd: Coordinates) -> tuple[Moving, Bias]:
        V_plus = link.phi_T(parent.V)                                                            # (2.25)
        V = V_plus + link.H_T @ qd                                                               # (2.25)
        a = classical_bias_acceleration(link, parent.V, V_plus, qd)                              # (2.19), (2.32)
        zeta = link.phi_T(parent.zeta) + a                                                       # (4.17), (5.8) phi^T a
        return Moving(V, zeta, V_plus, a), Bias(V, zeta)

    return sweep.outward(bias_step, Bias(base.velocity, base.acceleration), qd)                  # (3.21)


def fd1(
    sweep: Sweep, qd: PerJoint, tau: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False
) -> Result:
    """Joint accelerations that the joint forces tau produce; arguments as of filter_smoother."""

    def bias_free_step(
        link: LinkView, outer: Carried, at: Moving, qd: Coordinates, tau: Coordinates, f_ext: Force
    ) -> tuple[Free, Carried]:
        b = classical_bias_force(link, at.V)                                                     # (2.23)
        f = outer.f + (link.M @ at.zeta + b - f_ext)                                             # (4.17)
        T_free = tau - link.H(f)                                                                 # (4.17)
        if dissipation:
            T_free = T_free - link.dissipative_force(qd)
        P = outer.P + link.M.articulated()                                                       # (4.5)
        P_H = P @ link.H_T
        D = JointInertia(link.H_T, P_H, link.armature)                                           # (4.6)
        G = P_H.over(D)                                                                          # (5.12)
        P_plus = updated_inertia("43", P, link.H_T, P_H, G, link.armature)                       # (4.5)
        kept = Free(b, f, T_free, P, P_plus, D.block, G.columns)
        return kept, Carried(link.phi(f), link.phi(P_plus))

    def filter_step(link: LinkView, outer: Force, free: Free) -> tuple[Filtered, Force]:
        z = outer                                                                                # (4.20)
        innovation = free.T_free - link.H(z)                                                     # (4.20) T'
        nu = JointInertia.of(free.D).solve(innovation)                                       # (4.20)
        return Filtered(z, innovation, nu), link.phi(z + Span(free.G) @ innovation)              # (4.20) with L = phi G

    def smoother_step(
        link: LinkView, inner: Motion, at: Moving, free: Free, kept: Filtered
    ) -> tuple[Smoothed, Motion]:
        carried = link.phi_T(inner)                                                              # (4.22)
        qdd = kept.nu - Span(free.G).transpose_times(carried)                                    # (4.22)
        costate = carried + link.H_T @ qdd                                                       # (4.22)
        alpha = costate + at.zeta                                                                # (4.22b)
        return Smoothed(carried, qdd, costate, alpha), costate

    at = bias_sweep(sweep, qd, base)                                                             # (4.17) phi^T a
    free, _ = sweep.inward(bias_free_step, Carried(ZERO_FORCE, ZERO_ARTICULATED), at, qd, tau, f_ext)
    filtered, _ = sweep.inward(filter_step, ZERO_FORCE, free)                                    # (4.19)
    smoothed = sweep.outward(smoother_step, ZERO_MOTION, at, free, filtered)                     # (4.21)
    return Result(smoothed.qdd, smoothed.alpha, smoothed.costate, at, free, filtered, smoothed.carried)
