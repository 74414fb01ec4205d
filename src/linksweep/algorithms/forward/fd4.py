"""Forward dynamics FD4, three sweeps, of which the first finds velocities only.

G. Rodriguez and K. Kreutz, "Recursive Mass Matrix Factorization and Inversion", 1988, Algorithm FD4, (5.13)-(5.17): the
filter and smoother of Rodriguez 1987 with the classical bias terms. Here lambda is the links' acceleration alpha.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.bias import BaseMotion, classical_bias_acceleration, classical_bias_force
from ...mechanism.joints import Coordinates, JointBlock, JointInertia, Span, updated_inertia
from ...spatial.algebra import ZERO_ARTICULATED, ZERO_FORCE, ArticulatedInertia, Force, Motion
from ...mechanism.sweeps import LinkView, PerJoint, PerLink, Sweep


@dataclass(slots=True)
class Velocity:
    V_plus: Motion  # velocity of the inner link, carried to this one
    V: Motion  # velocity [w; v]
    a: Motion  # bias acceleration: what alpha is more than that of the inner link while no joint accelerates


@dataclass(slots=True)
class Carried:
    z: Force
    P: ArticulatedInertia


@dataclass(slots=True)
class Filtered:
    b: Force  # bias force: what the link's velocity alone needs
    z: Force  # [moment; force] at the link's joint as far as the joints beyond it tell: the predicted state
    z_plus: Force  # the same with what the link's own joint tells: the updated state
    P: ArticulatedInertia  # articulated inertia: of the link and those beyond it, their joints free
    P_plus: ArticulatedInertia  # the same with the link's own joint free too
    D: JointBlock  # inertia that the joint meets
    G: tuple[Force, ...]  # gain, of each freedom
    innovation: Coordinates  # joint force beyond what z holds already
    nu: Coordinates  # D^-1 innovation: the acceleration that it alone would give the joint


@dataclass(slots=True)
class Smoothed:
    carried: Motion  # alpha of the inner link, carried to this one, and a
    qdd: Coordinates  # joint acceleration
    alpha: Motion  # acceleration [dw; dv] less gravity


@dataclass(slots=True)
class Result:
    qdd: PerJoint
    alpha: PerLink[Motion]
    V: PerLink[Motion]
    a: PerLink[Motion]
    V_plus: PerLink[Motion]
    filtered: PerLink[Filtered]
    carried: PerLink[Motion]


def fd4(
    sweep: Sweep, qd: PerJoint, tau: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False
) -> Result:
    """Joint accelerations that the joint forces tau produce; arguments as of filter_smoother."""

    def velocity_step(link: LinkView, V_parent: Motion, qd: Coordinates) -> tuple[Velocity, Motion]:
        V_plus = link.phi_T(V_parent)                                                            # (5.13)
        V = V_plus + link.H_T @ qd                                                               # (5.13)
        a = classical_bias_acceleration(link, V_parent, V_plus, qd)                              # (2.19), (2.32)
        return Velocity(V_plus, V, a), V

    def filter_step(
        link: LinkView, outer: Carried, at: Velocity, qd: Coordinates, tau: Coordinates, f_ext: Force
    ) -> tuple[Filtered, Carried]:
        b = classical_bias_force(link, at.V)                                                     # (2.23)
        z = outer.z + (b - f_ext)                                                                # (5.16) b(k)
        P = outer.P + link.M.articulated()                                                       # (4.5)
        P_H = P @ link.H_T
        D = JointInertia(link.H_T, P_H, link.armature)                                           # (4.6)
        G = P_H.over(D)                                                                          # (5.12)
        if dissipation:
            tau = tau - link.dissipative_force(qd)
        innovation = tau - link.H(z)                                                             # (5.16)
        nu = D.solve(innovation)                                                                 # (5.16)
        P_plus = updated_inertia("43", P, link.H_T, P_H, G, link.armature)                       # (4.5)
        z_plus = z + G @ innovation + P_plus @ at.a                                              # (5.16) psi, L T, P a
        kept = Filtered(b, z, z_plus, P, P_plus, D.block, G.columns, innovation, nu)
        return kept, Carried(link.phi(z_plus), link.phi(P_plus))

    def smoother_step(link: LinkView, inner: Motion, at: Velocity, kept: Filtered) -> tuple[Smoothed, Motion]:
        carried = link.phi_T(inner) + at.a                                                       # (5.17)
        qdd = kept.nu - Span(kept.G).transpose_times(carried)                                    # (5.17)
        alpha = carried + link.H_T @ qdd                                                         # (5.17)
        return Smoothed(carried, qdd, alpha), alpha

    at = sweep.outward(velocity_step, base.velocity, qd)
    filtered, _ = sweep.inward(filter_step, Carried(ZERO_FORCE, ZERO_ARTICULATED), at, qd, tau, f_ext)
    smoothed = sweep.outward(smoother_step, base.acceleration, at, filtered)                     # (3.21)
    return Result(smoothed.qdd, smoothed.alpha, at.V, at.a, at.V_plus, filtered, smoothed.carried)
