"""Forward dynamics by Kalman filtering and Bryson-Frazier smoothing.

G. Rodriguez, "Kalman Filtering, Smoothing, and Recursive Robot Arm Forward and Inverse Dynamics", 1987, (35)-(47), with
the bias terms as corrected by K. Kozlowski, "New computational algorithms for a discrete Kalman filter in robot
dynamics", 1990, (3.7), (3.7'), (3.14), and his coordinate transformations, (3.46)-(3.58).

Accelerations are derivatives seen in the link's own frame: lambda = [dw; dv]. The forces x are the state, lambda the
costate, x = z + P lambda (34); P is the inertia of the outer links with their joints free, the covariance of z. The
papers' superscript - (link's side of its joint) has none here, + (parent's side) is written `_plus`; what crosses the
joint does so in the link's frame, and phi A takes it to the parent afterwards. Armature is measurement noise:
D = H P H^T + R (docs/errata.md).

The inertia update has three algebraically equal forms, chosen by `update`: "43", "50" and "51" (Joseph's).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.bias import BaseMotion, local_bias_acceleration, local_bias_force
from ...mechanism.joints import Coordinates, JointBlock, JointInertia, Span, updated_inertia
from ...spatial.algebra import ZERO_ARTICULATED, ZERO_FORCE, ArticulatedInertia, Force, Motion
from ...mechanism.sweeps import LinkView, PerJoint, PerLink, Sweep


@dataclass(slots=True)
class Velocity:
    V_plus: Motion  # velocity of the inner link, carried to this one
    V: Motion  # velocity [w; v]
    n: Motion  # bias acceleration of the joint


@dataclass(slots=True)
class Predicted:
    """z = [moment; force] and P, predicted at the parent's side."""

    z: Force
    P: ArticulatedInertia


@dataclass(slots=True)
class Filtered:
    b: Force  # bias force: what the link's velocity alone needs, less external forces
    z: Force  # [moment; force] at the link's joint as far as the joints beyond it tell: the predicted state
    z_plus: Force  # the same with what the link's own joint tells: the updated state
    P: ArticulatedInertia  # articulated inertia: of the link and those beyond it, their joints free; covariance of z
    P_plus: ArticulatedInertia  # the same with the link's own joint free too; covariance of z_plus
    D: JointBlock  # inertia that the joint meets
    G: tuple[Force, ...]  # gain, of each freedom
    innovation: Coordinates  # joint force beyond what z holds already
    residual: Coordinates  # D^-1 innovation: the acceleration that it alone would give the joint


@dataclass(slots=True)
class Smoothed:
    carried: Motion  # costate of the inner link, carried to this one, and n
    costate: Motion  # lambda = [dw; dv] less gravity, derivatives seen in the link's own frame
    qdd: Coordinates  # joint acceleration


@dataclass(slots=True)
class Result:
    qdd: PerJoint
    costate: PerLink[Motion]
    V: PerLink[Motion]
    n: PerLink[Motion]
    V_plus: PerLink[Motion]
    filtered: PerLink[Filtered]
    carried: PerLink[Motion]


def filter_smoother(
    sweep: Sweep, qd: PerJoint, tau: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False,
    update: str = "43",
) -> Result:
    """Joint accelerations that the joint forces tau produce.

    qd, tau: nv scalars per link; f_ext: Force on each link, in its frame at its origin.
    """

    def velocity_step(link: LinkView, V_parent: Motion, qd: Coordinates) -> tuple[Velocity, Motion]:
        V_plus = link.phi_T(V_parent)                                                            # (11), (3.1)
        V = V_plus + link.H_T @ qd                                                               # (12), (3.2)
        n = local_bias_acceleration(link, V_plus, qd)                                            # (15), (3.7)
        return Velocity(V_plus, V, n), V

    def filter_step(
        link: LinkView, outer: Predicted, at: Velocity, qd: Coordinates, tau: Coordinates, f_ext: Force
    ) -> tuple[Filtered, Predicted]:
        b = local_bias_force(link, at.V) - f_ext                                                 # (3.14)
        z = outer.z + b                                                                          # (36), (3.47)
        P = outer.P + link.M.articulated()                                                       # (37), (3.48)
        P_H = P @ link.H_T
        D = JointInertia(link.H_T, P_H, link.armature)                                           # (38), (3.49)
        G = P_H.over(D)                                                                          # (39), (3.50)
        if dissipation:
            tau = tau - link.dissipative_force(qd)
        innovation = tau - link.H(z)                                                             # (40), (3.51)
        P_plus = updated_inertia(update, P, link.H_T, P_H, G, link.armature)                     # (43), (3.54)
        z_plus = z + G @ innovation + P_plus @ at.n                                              # (41), (3.52)
        residual = D.solve(innovation)                                                           # (42), (3.53)
        kept = Filtered(b, z, z_plus, P, P_plus, D.block, G.columns, innovation, residual)
        return kept, Predicted(link.phi(z_plus), link.phi(P_plus))                               # (36), (37)

    def smoother_step(
        link: LinkView, parent: Motion, at: Velocity, kept: Filtered
    ) -> tuple[Smoothed, Motion]:
        carried = link.phi_T(parent) + at.n                                                      # (45), (3.56)
        qdd = kept.residual - Span(kept.G).transpose_times(carried)                              # (46), (3.57)
        costate = carried + link.H_T @ qdd                                                       # (47), (3.58)
        return Smoothed(carried, costate, qdd), costate

    at = sweep.outward(velocity_step, base.velocity, qd)                                         # (3.3)
    zero = Predicted(ZERO_FORCE, ZERO_ARTICULATED)                                               # (35), (3.46)
    filtered, _ = sweep.inward(filter_step, zero, at, qd, tau, f_ext)
    smoothed = sweep.outward(smoother_step, base.acceleration, at, filtered)                     # (44), (3.55)
    return Result(smoothed.qdd, smoothed.costate, at.V, at.n, at.V_plus, filtered, smoothed.carried)
