"""Generalized augmented bodies and their partial momenta.

H.-J. Kang, "Computationally Efficient KIC-Based Dynamic Modeling of Robot Manipulators", (11)-(18), (28), (29) as
corrected in docs/errata.md. Body k is link k and all that it carries as one, in a chain links k to n: mass M_k, center
of mass C_k, inertia III^k about it. The momentum of the whole arm is the sum of the partial momenta, each that of one
body moved by its own joint alone: linear P^k = M_k g_k^c* phi'_k, angular III^k g_k phi'_k about C_k, to which
C_k x P^k is added about the origin.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...spatial.scalars import Scalar, is_zero
from ...spatial.algebra import ZERO_SYM, ZERO_VEC, Motion, Sym, Vec
from ...mechanism.sweeps import LinkView, PerLink, Sweep
from ...spatial.transforms import Pose
from .influence import Axis, first_order, joint_axes


@dataclass(slots=True)
class Rigid:
    """A mass, its center of mass, and its inertia about the center of mass."""

    M: Scalar
    C: Vec
    III: Sym

    def joined(self, other: Rigid) -> Rigid:
        """Return both bodies welded together."""
        M = self.M + other.M                                                                     # (28)
        share = 0.0 if is_zero(M) else other.M / M
        arm = other.C - self.C
        C = self.C + arm * share                                                                 # (28)
        spread = parallel_axes(arm, self.M * share)                                              # (29) both m, M terms
        III = self.III + other.III + spread                                                      # (29)
        return Rigid(M, C, III)


@dataclass(slots=True)
class Body:
    """Body k: M, C, III; g its KIC at C by its own joint; P and L its momenta about C for a unit rate of that joint."""

    M: Scalar
    C: Vec
    III: Sym
    g: Motion
    P: Vec
    L: Vec


def augmented_bodies(sweep: Sweep, at: PerLink[Pose]) -> PerLink[Body]:
    """The Body of every link, in the frame in which `at` gives the links' poses."""

    def step(link: LinkView, outer: Rigid, at: Pose, axis: Axis) -> tuple[Body, Rigid]:
        c = at.point(link.com)
        own = Rigid(link.M.mass, c, turned(link.I_com, at))                                      # (29) first term
        k = own.joined(outer)                                                                    # (28), (29)
        g = first_order(axis, k.C)                                                               # (15)
        return Body(k.M, k.C, k.III, g, g.linear * k.M, k.III @ g.angular), k                    # (14), (17)

    nothing = Rigid(0.0, ZERO_VEC, ZERO_SYM)
    return sweep.inward(step, nothing, at, joint_axes(sweep, at))[0]


def turned(a: Sym, at: Pose) -> Sym:
    """R a R^T = a_zz 1 + x u^T + u x^T + y v^T + v y^T: 33 multiplications."""
    half = 0.5 * (a.xx - a.zz), 0.5 * (a.yy - a.zz)
    u = at.x * half[0] + at.y * a.xy + at.z * a.xz
    v = at.y * half[1] + at.z * a.yz
    xx, yy, zz = (x * p + y * q for x, y, p, q in zip(at.x, at.y, u, v, strict=True))
    return Sym(
        a.zz + (xx + xx),
        a.zz + (yy + yy),
        a.zz + (zz + zz),
        (at.x.x * u.y + at.x.y * u.x) + (at.y.x * v.y + at.y.y * v.x),
        (at.x.x * u.z + at.x.z * u.x) + (at.y.x * v.z + at.y.z * v.x),
        (at.x.y * u.z + at.x.z * u.y) + (at.y.y * v.z + at.y.z * v.y),
    )


def parallel_axes(d: Vec, m: Scalar) -> Sym:
    """m (1 d^T d - d d^T)."""
    e = d * m
    xx, yy, zz = d.x * e.x, d.y * e.y, d.z * e.z
    return Sym(yy + zz, xx + zz, xx + yy, -(d.x * e.y), -(d.x * e.z), -(d.y * e.z))
