"""The articulated body by its mass, center of mass and inertia: the Riccati equation in physical parameters.

G. Rodriguez, "Kalman Filtering, Smoothing, and Recursive Robot Arm Forward and Inverse Dynamics", 1987, (84), the
counterpart of the composite body's ten parameters (33). The links beyond a joint, their joints free, have a mass rho
that is a 3x3 matrix (less force accelerates it in the directions of a free joint), a center of mass C, and an inertia J
about the joint: P = [[J, C rho], [rho C^T, rho]], 21 parameters. As settled in docs/errata.md, Y = C rho is carried,
because rho is singular after a prismatic joint and C then undefined, and the update for such a joint is added. It holds
for any robot.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.joints import JointBlock, JointInertia, Span
from ...spatial.algebra import ZERO_SYM, ZERO_VEC, Force, Mat, Sym, skew
from ...mechanism.sweeps import LinkView, PerLink, Sweep


@dataclass(slots=True)
class Parameters:
    """Mass rho, center of mass times mass Y = C rho, inertia J about the origin of the frame."""

    rho: Sym
    Y: Mat
    J: Sym


@dataclass(slots=True)
class Kept:
    """Before (inner joint locked) and after (`_plus`, free) the update at the link's own joint; D its joint inertia."""

    body: Parameters
    body_plus: Parameters
    D: JointBlock


@dataclass(slots=True)
class Result:
    body: PerLink[Parameters]
    body_plus: PerLink[Parameters]
    D: PerLink[JointBlock]


def articulated_parameters(sweep: Sweep) -> Result:
    """rho, Y, J of the body beyond every joint, each in its link's frame."""

    def step(link: LinkView, outer: Parameters) -> tuple[Kept, Parameters]:
        m = link.M.mass
        rho = outer.rho + Sym(m, m, m, 0.0, 0.0, 0.0)                                            # (84) propagation
        Y = outer.Y + skew(link.M.mp)                                                            # (84) center of mass
        J = outer.J + link.M.I                                                                   # (84) inertia
        P_H = Span([
            Force(J @ h.angular + Y @ h.linear, Y.transpose_times(h.angular) + rho @ h.linear)   # (84) J h, C rho h
            for h in link.H_T.columns
        ])
        D = JointInertia(link.H_T, P_H, link.armature)                                           # (84) D; h^T rho h
        body = body_plus = Parameters(rho, Y, J)
        for g, p in zip(P_H.over(D).columns, P_H.columns, strict=True):
            body_plus = Parameters(
                body_plus.rho.minus_outer(g.force, p.force),                                     # (84) mass update
                body_plus.Y.minus_outer(g.moment, p.force),                                      # (84) centre update
                body_plus.J.minus_outer(g.moment, p.moment),                                     # (84) inertia update
            )
        return Kept(body, body_plus, D.block), propagated(link, body_plus)

    nothing = Parameters(ZERO_SYM, Mat(ZERO_VEC, ZERO_VEC, ZERO_VEC), ZERO_SYM)
    kept, _ = sweep.inward(step, nothing)
    return Result(kept.body, kept.body_plus, kept.D)


def propagated(link: LinkView, body: Parameters) -> Parameters:
    """The same body seen from the parent: turned into its directions, then moved by l to its origin."""
    rho, Y, J = turned(link, Mat(*body.rho.rows())), turned(link, body.Y), turned(link, Mat(*body.J.rows()))
    l_x = skew(link.X.origin())
    Y_moved = Y + product(l_x, rho)                                                              # (84) [C + L~] rho
    # (C + L~) rho (C + L~)^T - C rho C^T = L~ Y_moved^T + Y L~^T
    J_moved = J + product(l_x, Y_moved.T) + product(l_x, Y.T).T                                  # (84) inertia
    return Parameters(symmetric(rho), Y_moved, symmetric(J_moved))


def turned(link: LinkView, a: Mat) -> Mat:
    """R a R^T."""
    columns = Mat(link.X.turn(a.T.x), link.X.turn(a.T.y), link.X.turn(a.T.z))
    rows = columns.T
    return Mat(link.X.turn(rows.x), link.X.turn(rows.y), link.X.turn(rows.z))


def product(a: Mat, b: Mat) -> Mat:
    columns = b.T
    return Mat(a @ columns.x, a @ columns.y, a @ columns.z).T


def symmetric(a: Mat) -> Sym:
    """A matrix that is known to be symmetric, stored once."""
    return Sym(a.x.x, a.y.y, a.z.z, a.x.y, a.x.z, a.y.z)


__all__ = ["Kept", "Parameters", "Result", "articulated_parameters"]
