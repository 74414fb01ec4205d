"""Forward dynamics in closed form: the accelerations due to moments, bias forces and bias accelerations, apart.

G. Rodriguez, "Kalman Filtering, Smoothing, and Recursive Robot Arm Forward and Inverse Dynamics", 1987, (69)-(72), with
(81)-(82). Each sum over i < k of (70) is carried inward, each sum over i > k outward, so that nothing is summed twice.
Gravity enters as a bias acceleration of the first link. Serial chains only: (79) divides the links into inner and outer
ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.bias import BaseMotion, local_bias_acceleration, local_bias_force
from ...mechanism.joints import Coordinates, JointInertia, updated_inertia
from ...spatial.algebra import ZERO_ARTICULATED, ZERO_COMPLIANCE, ZERO_FORCE, ZERO_MOTION
from ...spatial.algebra import ArticulatedInertia, Compliance, Force, Motion, sandwich
from ...mechanism.sweeps import LinkView, PerJoint, PerLink, Sweep


@dataclass(slots=True)
class Velocity:
    V_plus: Motion  # velocity of the inner link, carried to this one
    V: Motion  # velocity [w; v]
    n: Motion  # bias acceleration of the joint; of the first one with gravity and the base's acceleration
    b: Force  # bias force: what the link's velocity alone needs, less external forces


@dataclass(slots=True)
class Inner:  # carried inward; the sums of (70) are those over i < k
    P: ArticulatedInertia  # articulated inertia: of the link and those beyond it, their joints free
    moments: Force  # of joint moments: the sum over the links beyond this one
    forces: Force  # of bias forces: the same sum
    accelerations: Force  # of bias accelerations: the same sum


@dataclass(slots=True)
class Outer:  # carried outward; the sums of (70) are those over i > k
    Delta: Compliance
    moments: Motion
    forces: Motion
    accelerations: Motion


@dataclass(slots=True)
class Filtered(Inner):
    P_plus: ArticulatedInertia  # the same with the link's own joint free too
    G: Force  # gain
    D: Coordinates  # inertia that the joint meets


@dataclass(slots=True)
class Components:
    qdd: Coordinates  # joint acceleration: a1 + a2 + a3
    a1: Coordinates  # due to joint moments
    a2: Coordinates  # due to bias forces
    a3: Coordinates  # due to bias accelerations
    c: Coordinates  # the diagonal element of M^-1
    d: Motion  # of the costate, to the force at the joint
    r1: Motion  # of joint moments: the sum over the links between this one and the base
    r2: Motion  # of bias forces: the same sum
    r3: Motion  # of bias accelerations: the same sum
    rest: Motion  # [Delta P - I] n: what the joint's own bias acceleration adds to r3
    Delta_plus: Compliance  # covariance of the inner link's costate, carried to this one
    Delta: Compliance  # covariance of the costate
    S: ArticulatedInertia  # covariance of the smoothed state


@dataclass(slots=True)
class Result:
    qdd: PerJoint
    velocity: PerLink[Velocity]
    components: PerLink[Components]
    filtered: PerLink[Filtered]


def closed_form(
    sweep: Sweep, qd: PerJoint, tau: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False
) -> Result:
    """Joint accelerations that the joint forces tau produce; arguments as of filter_smoother."""

    def velocity_step(
        link: LinkView, parent: tuple[Motion, Motion], qd: Coordinates, f_ext: Force
    ) -> tuple[Velocity, tuple[Motion, Motion]]:
        V_plus = link.phi_T(parent[0])                                                           # (11)
        V = V_plus + link.H_T @ qd                                                               # (12)
        n = local_bias_acceleration(link, V_plus, qd) + link.phi_T(parent[1])                    # (15), gravity
        b = local_bias_force(link, V) - f_ext                                                    # (3.14)
        return Velocity(V_plus, V, n, b), (V, ZERO_MOTION)

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
        moments, forces, accelerations = outer.moments, outer.forces, outer.accelerations        # (70)
        kept = Filtered(P, moments, forces, accelerations, P_plus, G.columns[0], Coordinates(D.rows[0]))
        return kept, Inner(
            link.phi(P_plus),
            link.phi(cross(moments) + G @ tau),                                                  # (70) psi G tau
            link.phi(cross(forces + at.b)),                                                      # (70) psi b
            link.phi(cross(accelerations) + P_plus @ at.n),                                      # (70) psi P n
        )

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
        r1, r2, r3 = map(link.phi_T, (inner.moments, inner.forces, inner.accelerations))         # (70)
        a1 = c * tau[0] + kept.moments.dot(d) + G.dot(r1)                                        # (70)
        a2 = (kept.forces + at.b).dot(d) + G.dot(r2)                                             # (70)
        rest = Delta_plus @ (kept.P_plus @ at.n) - at.n                                          # (70) [Delta P - I] n
        a3 = kept.accelerations.dot(d) + G.dot(rest + r3)                                        # (70)
        Delta = Delta_plus.minus_outer(H, d).minus_outer(Delta_G, H)                             # (82)

        def cross_back(motion: Motion) -> Motion:
            return motion - H * G.dot(motion)                                                    # [I - G H]^T of (72)

        sums = Outer(
            Delta,
            d * tau[0] + cross_back(r1),                                                         # (70) psi^T d^T tau
            Delta @ at.b + cross_back(r2),                                                       # (70) psi^T Delta b
            cross_back(rest + r3),                                                               # (70) [Delta P - I] n
        )
        S = kept.P - sandwich(kept.P, Delta)                                                     # (65)
        qdd = Coordinates((a1 + a2 + a3,))                                                       # (69)
        a1, a2, a3, c = (Coordinates((x,)) for x in (a1, a2, a3, c))
        return Components(qdd, a1, a2, a3, c, d, r1, r2, r3, rest, Delta_plus, Delta, S), sums

    at = sweep.outward(velocity_step, (base.velocity, base.acceleration), qd, f_ext)
    filtered, _ = sweep.inward(
        inward_step, Inner(ZERO_ARTICULATED, ZERO_FORCE, ZERO_FORCE, ZERO_FORCE), at, qd, tau
    )
    zero = Outer(ZERO_COMPLIANCE, ZERO_MOTION, ZERO_MOTION, ZERO_MOTION)                         # Delta^+(N) = 0
    components = sweep.outward(outward_step, zero, at, filtered, qd, tau)
    return Result(components.qdd, at, components, filtered)
