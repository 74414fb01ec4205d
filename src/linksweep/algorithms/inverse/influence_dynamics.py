"""Inverse dynamics through the explicit model.

H.-J. Kang, "Computationally Efficient KIC-Based Dynamic Modeling of Robot Manipulators", (8) with I* and P* of
explicit_model.py. Gravity is an acceleration of the base: it acts on the partial momenta (14). A base that turns is one
more joint before the first, with the rate 1 about its angular velocity; its angular acceleration is another, (24).
External forces go through the first-order coefficients, (7), summed from the tip.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...mechanism.bias import BaseMotion
from ...mechanism.joints import Coordinates
from ...model.model import BASE
from ...spatial.algebra import ZERO_FORCE, ZERO_VEC, Force, Mat, Sym, Transform, Vec
from ...spatial.scalars import Scalar
from ...spatial.transforms import Pose
from ...mechanism.sweeps import LinkView, PerJoint, PerLink, Records, Unrolled
from ..explicit.augmented_bodies import Body, turned
from ..explicit.explicit_model import Power, explicit_model, joint_pair
from ..explicit.influence import Axis, first_joint_poses

Element = Callable[[int, int, int], Scalar]  # of the joints i, j, k


@dataclass(slots=True)
class Base:
    """Base motion in the frame of a first joint: angular velocity and acceleration as axes, linear acceleration a."""

    turning: Axis
    speeding: Axis
    a: Vec


@dataclass(slots=True)
class Augmented:
    """Link k and all that it carries as one body, and its momenta by joint k alone, in the frame of link k."""

    M: Scalar  # mass M_k of augmented body k, (15)
    C: Vec  # center of mass c* of augmented body k, from the link's origin, (15)
    III: Sym  # inertia of augmented body k about its center of mass, (18)
    P_k: Vec  # partial linear momentum, that of joint k alone, (14)
    L_k: Vec  # partial angular momentum about c*, that of joint k alone, (17)


@dataclass(slots=True)
class Result:
    tau: PerJoint  # joint force: the sum of the four
    inertial: PerJoint  # joint force for the joints' accelerations
    velocity: PerJoint  # joint force for the velocities
    gravity: PerJoint  # joint force for gravity and the base's acceleration
    applied: PerJoint  # joint force against external forces and, if asked for, dissipation
    I: dict[tuple[int, int], Scalar]  # noqa: E741  # I* of (8): effective inertia, armature included
    P: Power  # P* of (8): inertia power, P*_ijk at [i, j, k], the sum of its three terms
    P1: Element  # first term of P*, (25), (P3)-(P5): masses
    P2: Element  # second term of P*, (26), (P6), (P10): inertias, accelerations of directions
    P3: Element  # third term of P*, (27), (P7)-(P9): inertias, gyroscopic
    bodies: PerLink[Augmented]


def influence_dynamics(
    sweep: Unrolled, qd: PerJoint, qdd: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False
) -> Result:
    """Return the joint forces that produce the accelerations qdd.

    qd, qdd: nv scalars per link; f_ext: Force on each link, in its frame at its origin.
    """

    def force_step(link: LinkView, outer: Force, qd: Coordinates, f_ext: Force) -> tuple[Coordinates, Force]:
        f = outer - f_ext
        applied = link.H(f)                                                                      # (7)
        return applied + link.dissipative_force(qd) if dissipation else applied, link.phi(f)

    joints = range(len(sweep.links))
    first = [sweep.model.path(k)[-1] for k in joints]
    seen = {k: seen_from(sweep.links[k].X, base) for k in set(first)}
    bases = [seen[k] for k in first]
    model = explicit_model(sweep, Records(at.turning for at in bases))
    rate: dict[int, Scalar] = {BASE: 1.0, **{k: qd[k][0] for k in joints}}
    products = [(j, k) for k in rate for j in rate if j <= k]
    inertial, velocity, gravity = (Records[Coordinates]() for _ in range(3))
    for i, body, at in zip(joints, model.bodies, bases, strict=True):
        accelerated = sum((model.I[i, k] * qdd[k][0] for k in joints), 0.0)
        terms = (model.P.of_product(i, j, k) * (rate[j] * rate[k]) for j, k in products)
        moved = joint_pair(at.speeding, body)
        inertial.append(Coordinates((accelerated,)))                                             # (8)
        velocity.append(Coordinates((sum(terms, 0.0),)))                                         # (8)
        gravity.append(Coordinates((body.P.dot(at.a) + (moved.I1 + moved.I2),)))                 # (14), (23), (24)
    applied, _ = sweep.inward(force_step, ZERO_FORCE, qd, f_ext)                                 # (7)
    parts = zip(inertial, velocity, gravity, applied, strict=True)
    tau = Records(sum(four, Coordinates((0.0,))) for four in parts)                              # (8)
    power, at = model.P, first_joint_poses(sweep)
    bodies = Records(seen_by(at[k], body, rate[k]) for k, body in enumerate(model.bodies))
    return Result(tau, inertial, velocity, gravity, applied, model.I, power, power.p1, power.p2, power.p3, bodies)


def seen_by(at: Pose, body: Body, rate: Scalar) -> Augmented:
    """Return an augmented body and its partial momenta in the frame of its link, whose pose is `at`."""
    rows = Mat(at.x, at.y, at.z).T
    back = Pose(rows.x, rows.y, rows.z, ZERO_VEC)  # the inverse rotation
    P_k = at.turn_back(body.P) * rate                                                            # (14)
    L_k = at.turn_back(body.L) * rate                                                            # (17)
    return Augmented(body.M, at.turn_back(body.C - at.p), turned(body.III, back), P_k, L_k)


def seen_from(X: Transform, base: BaseMotion) -> Base:
    """Return the motion of the base in the frame of a first joint, whose transform is X."""
    origin = -X.turn_back(X.origin())
    turning, speeding = (Axis(X.turn_back(v), ZERO_VEC, origin) for v in (base.w, base.dw))
    return Base(turning, speeding, X.turn_back(base.a))
