"""Inverse dynamics by the recursive Newton-Euler equations in spatial form.

G. Rodriguez and K. Kreutz, "Recursive Mass Matrix Factorization and Inversion: An Operator Approach to Open- and
Closed-Chain Multibody Dynamics", 1988, section 2, (2.24)-(2.30), with the bias terms (2.19), (2.23) and (2.32) as
corrected in docs/errata.md.

Accelerations are inertial derivatives, seen in the link's frame: alpha = [dw; dv]. Because nothing here needs v, a
tracer drops the linear half of V. Gravity enters as an acceleration of the base.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.bias import BaseMotion, classical_bias_force, joint_bias_acceleration
from ...mechanism.joints import Coordinates
from ...spatial.algebra import ZERO_FORCE, ZERO_VEC, Force, Motion, centripetal
from ...mechanism.sweeps import LinkView, PerJoint, PerLink, Sweep


@dataclass(slots=True)
class State:
    V: Motion  # velocity [w; v]
    alpha: Motion  # acceleration [dw; dv] less gravity


@dataclass(slots=True)
class Moving:
    V_plus: Motion  # velocity of the inner link, carried to this one
    V: Motion
    a: Motion  # bias acceleration: what alpha is more than that of the inner link while no joint accelerates
    alpha: Motion


@dataclass(slots=True)
class Kept:
    b: Force  # bias force: what the link's velocity alone needs
    f: Force  # [moment; force] that the inner joint exerts on the link
    tau: Coordinates  # joint force


@dataclass(slots=True)
class Result:
    tau: PerJoint
    V: PerLink[Motion]
    alpha: PerLink[Motion]
    f: PerLink[Force]
    V_plus: PerLink[Motion]
    a: PerLink[Motion]
    b: PerLink[Force]


def newton_euler(
    sweep: Sweep, qd: PerJoint, qdd: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False
) -> Result:
    """Return the joint forces that produce the accelerations qdd.

    qd, qdd: nv scalars per link; f_ext: Force on each link, in its frame at its origin.
    """

    def outward_step(link: LinkView, parent: State, qd: Coordinates, qdd: Coordinates) -> tuple[Moving, State]:
        V_plus = link.phi_T(parent.V)                                                            # (2.25)
        V = V_plus + link.H_T @ qd                                                               # (2.25)
        a_link = Motion(ZERO_VEC, centripetal(parent.V.angular, link.X.origin()))                # (2.19), inner frame
        a_joint = joint_bias_acceleration(link, V_plus, qd)                                      # (2.19), (2.32)
        alpha = link.phi_T(parent.alpha + a_link) + a_joint + link.H_T @ qdd                     # (2.26)
        a = link.phi_T(a_link) + a_joint                                                         # (2.19), (2.32)
        return Moving(V_plus, V, a, alpha), State(V, alpha)

    def inward_step(
        link: LinkView, outer: Force, at: Moving, qd: Coordinates, qdd: Coordinates, f_ext: Force
    ) -> tuple[Kept, Force]:
        b = classical_bias_force(link, at.V)                                                     # (2.23)
        f = outer + (link.M @ at.alpha + b - f_ext)                                              # (2.29)
        tau = link.H(f) + qdd * link.armature                                                    # (2.30)
        if dissipation:
            tau = tau + link.dissipative_force(qd)
        return Kept(b, f, tau), link.phi(f)

    at = sweep.outward(outward_step, State(base.velocity, base.acceleration), qd, qdd)           # (2.24)
    kept, _ = sweep.inward(inward_step, ZERO_FORCE, at, qd, qdd, f_ext)                          # (2.28)
    return Result(kept.tau, at.V, at.alpha, kept.f, at.V_plus, at.a, kept.b)
