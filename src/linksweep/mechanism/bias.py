"""The velocity-dependent ("bias") terms, in the two ways in which the papers differentiate.

Classical: accelerations are inertial derivatives, alpha = [dw; dv] with dv the acceleration of the link's origin
(Rodriguez & Kreutz 1988; Angeles, Ma & Rojas 1988). Then nothing depends on linear velocity.
Local: accelerations are derivatives seen in the link's own frame (Rodriguez 1987; Kozlowski 1990). The two are related
by alpha = lambda + [0; w x v].

In both, a joint adds cross products of the motion of its parent and its own velocities. For a revolute or prismatic
joint most of their terms are zero and fold.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..spatial.algebra import ZERO_VEC, Force, Mat, Motion, Vec, centripetal
from .joints import Coordinates
from .sweeps import LinkView

NAMES_VALUES = True  # of its steps: see tracing/labels.py


@dataclass(slots=True)
class BaseMotion:
    """The base: angular velocity, angular acceleration, and linear acceleration minus gravity, in its own frame."""

    w: Vec
    dw: Vec
    a: Vec

    @property
    def velocity(self) -> Motion:
        """Seen from a frame that moves along with the base's origin, so that its linear velocity is 0."""
        return Motion(self.w, ZERO_VEC)

    @property
    def acceleration(self) -> Motion:
        return Motion(self.dw, self.a)


def classical_bias_acceleration(link: LinkView, V_parent: Motion, V_plus: Motion, qd: Coordinates) -> Motion:
    """a(k): Rodriguez & Kreutz (2.19) for a revolute joint, (2.32) as corrected for a sliding one.

    V_parent in the parent's frame; V_plus the same motion carried to this link's frame.
    """
    a = joint_bias_acceleration(link, V_plus, qd)
    turned = link.X.turn_back(centripetal(V_parent.angular, link.X.origin()))
    return Motion(a.angular, a.linear + turned)


def joint_bias_acceleration(link: LinkView, V_plus: Motion, qd: Coordinates) -> Motion:
    """The part of a(k) due to joint velocities [w; v], (2.19), (2.32): [w+ x w; 2 w+ x v + w x v].

    The last term is there only where a joint both turns and slides: a free base has a(N) = [0; w x v], (b.7).
    """
    own = link.H_T @ qd
    twice = V_plus.angular + V_plus.angular + own.angular
    return _with_moving_axes(link, Motion(V_plus.angular.cross(own.angular), twice.cross(own.linear)), qd)


def classical_bias_force(link: LinkView, V: Motion) -> Force:
    """b(k) = [w x I w; w x (w x m p)]: Rodriguez & Kreutz (2.23)."""
    w = V.angular
    return Force(w.cross(link.M.I @ w), centripetal(w, link.M.mp))


def local_bias_acceleration(link: LinkView, V_plus: Motion, qd: Coordinates) -> Motion:
    """n(k): Rodriguez (15), Kozlowski (3.7) and (3.7'), in this link's frame: [w+ x w; v+ x w + w+ x v]."""
    own = link.H_T @ qd
    n = Motion(V_plus.angular.cross(own.angular), V_plus.linear.cross(own.angular) + V_plus.angular.cross(own.linear))
    return _with_moving_axes(link, n, qd)


def _with_moving_axes(link: LinkView, a: Motion, qd: Coordinates) -> Motion:
    """A joint whose axes move in its link, such as a universal one, has dH^T/dt qd besides."""
    return a if link.joint.constant_columns else a + link.H_T_rate(qd) @ qd


def local_bias_force(link: LinkView, V: Motion) -> Force:
    """b(k) = [w x I w + m p x (w x v); m (w x v) + w x (w x m p)]: Kozlowski (3.14) without external forces."""
    w, M = V.angular, link.M
    w_x_v = w.cross(V.linear)
    return Force(w.cross(M.I @ w) + M.mp.cross(w_x_v), w_x_v * M.mass + centripetal(w, M.mp))


def rotation_tensor(w: Vec, dw: Vec) -> Mat:
    """W = d(Omega)/dt + Omega^2, Angeles, Ma & Rojas (53): dw x ( ) + w x (w x ( ))."""
    xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
    xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
    return Mat(
        Vec(-(yy + zz), xy - dw.z, xz + dw.y),
        Vec(xy + dw.z, -(xx + zz), yz - dw.x),
        Vec(xz - dw.y, yz + dw.x, -(xx + yy)),
    )
