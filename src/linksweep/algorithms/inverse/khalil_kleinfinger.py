"""Inverse dynamics by Newton-Euler equations that are linear in ten inertial parameters of each link.

W. Khalil and J.-F. Kleinfinger, "Minimum operations and minimum parameters of the dynamic models of tree structure
robots", 1987: accelerations of the link frames' origins, with the tensor U = dw~ + w~ w~ shared between geometry and
inertia, and every link's mass, first moment and inertia taken about its origin, so that base parameters (parameters.py)
may stand in for them. The paper is not among our sources: steps are named, not numbered. Two things are our own:

- a point on the axis of a joint belongs to both of its links, so the offset along it is multiplied by U of the outer
  link, in one column (benchmarks/methods.py; docs/counts.md has the count);
- the moment of inertia forces is read off U J, J the second moments of the mass: 15 products, not 24.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.bias import BaseMotion, joint_bias_acceleration, rotation_tensor
from ...mechanism.joints import Coordinates
from ...spatial.algebra import ZERO_FORCE, ZERO_VEC, Force, Inertia, Mat, Motion, Sym, Vec
from ...mechanism.sweeps import LinkView, PerJoint, PerLink, Sweep


@dataclass(slots=True)
class State:
    w: Vec  # angular velocity
    dw: Vec  # angular acceleration
    dv: Vec  # acceleration of the link's origin, less gravity

    @property
    def U(self) -> Mat:
        """dw~ + w~ w~. Not a field: a loop over links would store nine numbers that are quicker made again."""
        return rotation_tensor(self.w, self.dw)


@dataclass(slots=True)
class Moving(State):
    dv_foot: Vec  # acceleration, less gravity, of the point of the joint's axis that is nearest to the inner link's


@dataclass(slots=True)
class Kept:
    f_link: Force  # [moment; force] at its origin that accelerates the link
    moment: Vec  # that the inner joint exerts on the link, at its origin
    force: Vec  # that the inner joint exerts on the link
    tau: Coordinates  # joint force


@dataclass(slots=True)
class Result:
    tau: PerJoint
    w: PerLink[Vec]
    dw: PerLink[Vec]
    dv: PerLink[Vec]
    moment: PerLink[Vec]
    force: PerLink[Vec]
    dv_foot: PerLink[Vec]
    U: PerLink[Mat]  # tensor dw~ + w~ w~: the accelerations of a link's points, by their places
    f_link: PerLink[Force]


def khalil_kleinfinger(
    sweep: Sweep, qd: PerJoint, qdd: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False
) -> Result:
    """Return the joint forces that produce the accelerations qdd.

    qd, qdd: nv scalars per link; f_ext: Force on each link, in its frame at its origin.
    """

    def inward_step(
        link: LinkView, outer: Force, at: Moving, qd: Coordinates, qdd: Coordinates, f_ext: Force
    ) -> tuple[Kept, Force]:
        f_link = inertial_force(at, link.M)                                                      # step: Newton, Euler
        f = outer + (f_link - f_ext)
        moment, force = f.moment, f.force                                                        # step: balance
        tau = link.H(f) + qdd * link.armature                                                    # step: along the joint
        if dissipation:
            tau = tau + link.dissipative_force(qd)
        return Kept(f_link, moment, force, tau), link.phi(f)

    at = motion_of_links(sweep, qd, qdd, base)
    kept, _ = sweep.inward(inward_step, ZERO_FORCE, at, qd, qdd, f_ext)
    return Result(kept.tau, at.w, at.dw, at.dv, kept.moment, kept.force, at.dv_foot, at.U, kept.f_link)


def motion_of_links(sweep: Sweep, qd: PerJoint, qdd: PerJoint, base: BaseMotion) -> PerLink[Moving]:
    """State of every link, from the base outward."""

    def outward_step(link: LinkView, inner: State, qd: Coordinates, qdd: Coordinates) -> tuple[Moving, State]:
        rate, acceleration = link.H_T @ qd, link.H_T @ qdd
        w_inner = link.X.turn_back(inner.w)
        w = w_inner + rate.angular                                                               # step: velocity
        joint = joint_bias_acceleration(link, Motion(w_inner, ZERO_VEC), qd)
        dw = link.X.turn_back(inner.dw) + (joint.angular + acceleration.angular)                 # step: acceleration
        dv_foot = link.X.turn_back(inner.dv + inner.U @ link.foot)                               # step: on the axis
        U = rotation_tensor(w, dw)                                                               # step: U = dw~ + w~ w~
        dv = dv_foot + U @ link.offset + (joint.linear + acceleration.linear)                    # step: at the origin
        return Moving(w, dw, dv, dv_foot), State(w, dw, dv)

    return sweep.outward(outward_step, State(base.w, base.dw, base.a), qd, qdd)


def inertial_force(at: State, M: Inertia) -> Force:
    """Return the force that accelerates a moving body, at its origin; linear in the ten parameters of M."""
    U = at.U
    force = at.dv * M.mass + U @ M.mp                                                            # step: Newton
    moment = moment_of(at, U, M.second_moments()) + M.mp.cross(at.dv)                            # step: Euler
    return Force(moment, force)


def moment_of(at: State, U: Mat, J: Sym) -> Vec:
    """The sum of r x U r dm = I dw + w x I w: twice the axial vector of U J.

    Across the joint's axis J.zz is 0 in base parameters, so U serves; along it U.y.x and U.x.y may not be needed else.
    """
    x, y, z = U.x, U.y, U.z
    along = at.dw.z * (J.xx + J.yy) + (at.w.x * at.w.y) * (J.xx - J.yy)  # = y.x * J.xx - x.y * J.yy
    return Vec(
        (z.y * J.yy - y.z * J.zz) + (z.x * J.xy - y.x * J.xz) + (z.z - y.y) * J.yz,
        (x.z * J.zz - z.x * J.xx) + (x.y * J.yz - z.y * J.xy) + (x.x - z.z) * J.xz,
        along + (y.z * J.xz - x.z * J.yz) + (y.y - x.x) * J.xy,
    )
