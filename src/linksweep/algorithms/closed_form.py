"""Forward dynamics in closed form: the accelerations due to moments, bias forces and bias accelerations, apart.

G. Rodriguez, "Kalman Filtering, Smoothing, and Recursive Robot Arm Forward and Inverse Dynamics", 1987, (69)-(72), with
(81)-(82). Each sum over i < k of (70) is carried inward, each sum over i > k outward, so that nothing is summed twice.
Gravity enters as a bias acceleration of the first link. Serial chains only: (79) divides the links into inner and outer
ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..bias import BaseMotion, local_bias_acceleration, local_bias_force
from ..joints import Coordinates, JointInertia, updated_inertia
from ..spatial import ZERO_ARTICULATED, ZERO_COMPLIANCE, ZERO_FORCE, ZERO_MOTION
from ..spatial import ArticulatedInertia, Compliance, Force, Motion, sandwich
from ..sweeps import LinkView, PerLink, Sweep


@dataclass(slots=True)
class Velocity:
    V: Motion
    n: Motion
    b: Force


@dataclass(slots=True)
class Inner:
    """Carried inward: P, and the sums over i < k of (70) for moments, bias forces and bias accelerations."""

    P: ArticulatedInertia
    moments: Force
    forces: Force
    accelerations: Force


@dataclass(slots=True)
class Outer:
    """Carried outward: Delta, and the sums over i > k of (70)."""

    Delta: Compliance
    moments: Motion
    forces: Motion
    accelerations: Motion


@dataclass(slots=True)
class Filtered:
    P: ArticulatedInertia
    P_plus: ArticulatedInertia
    G: Force
    D: Coordinates
    sums: Inner
    b: Force


@dataclass(slots=True)
class Components:
    """a1, a2, a3: accelerations due to joint moments, bias forces, bias accelerations; c and d of (71); the covariances
    Delta of the costate and S of the smoothed state."""

    qdd: Coordinates
    a1: Coordinates
    a2: Coordinates
    a3: Coordinates
    c: Coordinates
    d: Motion
    Delta: Compliance
    S: ArticulatedInertia


@dataclass(slots=True)
class Result:
    qdd: PerLink
    components: PerLink
    filtered: PerLink


def closed_form(
    sweep: Sweep, qd: PerLink, tau: PerLink, f_ext: PerLink, base: BaseMotion, dissipation: bool = False
) -> Result:
    """Joint accelerations that the joint forces tau produce; arguments as of filter_smoother."""

    def velocity_step(
        link: LinkView, parent: tuple[Motion, Motion], qd: Coordinates, f_ext: Force
    ) -> tuple[Velocity, tuple[Motion, Motion]]:
        V_plus = link.phi_T(parent[0])                                                           # (11)
        V = V_plus + link.H_T @ qd                                                               # (12)
        n = local_bias_acceleration(link, V_plus, qd) + link.phi_T(parent[1])                    # (15), gravity
        return Velocity(V, n, local_bias_force(link, V) - f_ext), (V, ZERO_MOTION)

    def inward_step(
        link: LinkView, outer: Inner, at: Velocity, qd: Coordinates, tau: Coordinates
    ) -> tuple[Filtered, Inner]:
        P = outer.P + link.M.articulated()                                                       # (37)
        P_H = P @ link.H_T
        D = JointInertia(link.H_T, P_H, link.armature)                                           # (38)
        G = P_H.over(D)                                                                          # (39)
        P_plus = updated_inertia("43", P, link.H_T, P_H, G, link.armature)                       # (43)

        def cross(z: Force) -> Force:
            return z - G @ link.H(z)                                                             # [I - G H] of (72)

        if dissipation:
            tau = tau - link.dissipative_force(qd)
        moments = link.phi(cross(outer.moments) + G @ tau)                                       # (70) psi G tau
        forces = link.phi(cross(outer.forces + at.b))                                            # (70) psi b
        accelerations = link.phi(cross(outer.accelerations) + P_plus @ at.n)                     # (70) psi P n
        kept = Filtered(P, P_plus, G.columns[0], D.diagonal, outer, at.b)
        return kept, Inner(link.phi(P_plus), moments, forces, accelerations)

    def outward_step(
        link: LinkView, inner: Outer, at: Velocity, kept: Filtered, qd: Coordinates, tau: Coordinates
    ) -> tuple[Components, Outer]:
        G, H = kept.G, link.H_T.columns[0]
        Delta_plus = link.phi_T(inner.Delta)                                                     # (81)
        Delta_G = Delta_plus @ G
        c = 1.0 / kept.D[0] + G.dot(Delta_G)                                                     # (71)
        d = Delta_G - H * c                                                                      # (71)
        if dissipation:
            tau = tau - link.dissipative_force(qd)
        r1, r2, r3 = map(link.phi_T, (inner.moments, inner.forces, inner.accelerations))
        a1 = c * tau[0] + kept.sums.moments.dot(d) + G.dot(r1)                                   # (70)
        a2 = (kept.sums.forces + kept.b).dot(d) + G.dot(r2)                                      # (70)
        rest = Delta_plus @ (kept.P_plus @ at.n) - at.n                                          # (70) [Delta P - I] n
        a3 = kept.sums.accelerations.dot(d) + G.dot(rest + r3)                                   # (70)
        Delta = Delta_plus.minus_outer(H, d).minus_outer(Delta_G, H)                             # (82)

        def cross_back(motion: Motion) -> Motion:
            return motion - H * G.dot(motion)                                                    # [I - G H]^T of (72)

        sums = Outer(
            Delta,
            d * tau[0] + cross_back(r1),                                                         # (70) psi^T d^T tau
            Delta @ kept.b + cross_back(r2),                                                     # (70) psi^T Delta b
            cross_back(rest + r3),                                                               # (70) [Delta P - I] n
        )
        S = kept.P - sandwich(kept.P, Delta)                                                     # (65)
        qdd = Coordinates((a1 + a2 + a3,))                                                       # (69)
        a1, a2, a3, c = (Coordinates((x,)) for x in (a1, a2, a3, c))
        return Components(qdd, a1, a2, a3, c, d, Delta, S), sums

    at = sweep.outward(velocity_step, (base.velocity, base.acceleration), qd, f_ext)
    filtered, _ = sweep.inward(
        inward_step, Inner(ZERO_ARTICULATED, ZERO_FORCE, ZERO_FORCE, ZERO_FORCE), at, qd, tau
    )
    zero = Outer(ZERO_COMPLIANCE, ZERO_MOTION, ZERO_MOTION, ZERO_MOTION)                         # Delta^+(N) = 0
    components = sweep.outward(outward_step, zero, at, filtered, qd, tau)
    return Result(components.qdd, components, filtered)
