"""Inverse dynamics by Kane's equations.

J. Angeles, O. Ma and A. Rojas, "An algorithm for the inverse dynamics of n-axis general manipulators using Kane's
equations", 1988, section 6, stages 2 and 3 (stage 1, the vectors a_i, is in the link's transform), for revolute and
prismatic joints, with a prescribed base motion and the dissipative term.

Everything of link i is in its own frame: w, dw, the tensor W = dW + W^2 of (53), the acceleration pdd of the center of
mass with gravity (41), its distance rho from the joint. Signs of prismatic joints as in docs/errata.md: d = -b.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.bias import BaseMotion, joint_bias_acceleration, rotation_tensor
from ...mechanism.joints import Coordinates
from ...spatial.algebra import ZERO_FORCE, ZERO_VEC, Force, Mat, Motion, Vec
from ...mechanism.sweeps import LinkView, PerJoint, PerLink, Sweep


@dataclass(slots=True)
class State:
    w: Vec  # angular velocity
    dw: Vec  # angular acceleration
    W: Mat  # tensor dW + W^2: the accelerations of a link's points, by their places
    pdd: Vec  # acceleration of the center of mass, less gravity
    rho: Vec  # the center of mass, from the link's origin


@dataclass(slots=True)
class Kept:
    hd: Vec  # rate of change of the angular momentum about the center of mass
    u: Vec  # mass times pdd
    k: Vec  # moment that the link itself needs, at its origin
    moment: Vec  # w: the sum of moments of the link and those beyond it, at its origin
    force: Vec  # v: the sum of their forces
    tau: Coordinates  # joint force


@dataclass(slots=True)
class Result:
    tau: PerJoint
    w: PerLink[Vec]
    dw: PerLink[Vec]
    pdd: PerLink[Vec]
    moment: PerLink[Vec]
    force: PerLink[Vec]
    W: PerLink[Mat]
    rho: PerLink[Vec]
    hd: PerLink[Vec]
    u: PerLink[Vec]
    k: PerLink[Vec]


def kane(
    sweep: Sweep, qd: PerJoint, qdd: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False
) -> Result:
    """Return the joint forces that produce the accelerations qdd.

    qd, qdd: nv scalars per link; f_ext: Force on each link, in its frame at its origin.
    """

    def outward_step(link: LinkView, inner: State, qd: Coordinates, qdd: Coordinates) -> tuple[State, State]:
        rate, acceleration = link.H_T @ qd, link.H_T @ qdd
        w_inner = link.X.turn_back(inner.w)
        w = w_inner + rate.angular                                                               # (12)
        joint = joint_bias_acceleration(link, Motion(w_inner, ZERO_VEC), qd)                     # (13), (20)
        dw = link.X.turn_back(inner.dw) + (joint.angular + acceleration.angular)                 # (13)
        W = rotation_tensor(w, dw)                                                               # (53)
        arm = link.X.origin() - inner.rho                                                        # (15), inner frame
        pdd = link.X.turn_back(inner.pdd + inner.W @ arm) + W @ link.com                         # (18), stage 2
        pdd = pdd + (joint.linear + acceleration.linear)                                         # (20)
        rho = link.com                                                                           # (15)
        state = State(w, dw, W, pdd, rho)
        return state, state

    def inward_step(
        link: LinkView, outer: Force, at: State, qd: Coordinates, qdd: Coordinates, f_ext: Force
    ) -> tuple[Kept, Force]:
        hd = link.I_com @ at.dw + at.w.cross(link.I_com @ at.w)                                  # stage 3
        u = at.pdd * link.M.mass                                                                 # stage 3
        k = hd + link.com.cross(u) - f_ext.moment                                                # (47)
        moment, force = outer.moment + k, outer.force + (u - f_ext.force)                        # (46), (49)
        tau = link.H(Force(moment, force)) + qdd * link.armature                                 # (44), (45)
        if dissipation:
            tau = tau + link.dissipative_force(qd)                                               # (29), (37)
        return Kept(hd, u, k, moment, force, tau), link.phi(Force(moment, force))                # a_i x v of (47)

    start = State(base.w, base.dw, rotation_tensor(base.w, base.dw), base.a, ZERO_VEC)           # (14), (21), (51)
    at = sweep.outward(outward_step, start, qd, qdd)
    kept, _ = sweep.inward(inward_step, ZERO_FORCE, at, qd, qdd, f_ext)
    return Result(
        kept.tau, at.w, at.dw, at.pdd, kept.moment, kept.force, at.W, at.rho, kept.hd, kept.u, kept.k
    )
