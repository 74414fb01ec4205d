"""The Coriolis matrix C of the torques M qdd + C qd + gravity, pair by pair.

S. Echeandia and P. M. Wensing, "Numerical Methods to Compute the Coriolis Matrix and Christoffel Symbols for Rigid-Body
Systems", Journal of Computational and Nonlinear Dynamics 16(9), 2021: composite quantities inward, then a force for
each joint that every joint between it and the base reads off. In O(n depth), on any tree and for any joint.

For a joint j between the base and a link i (S: the columns of H^T; of all that is outward of joint i: I^C, B^C):

    (1)  Sd = v x S (+ dS/dt in the link, if any)    (2)  B = (v x* I - I v x + (I v) x-) / 2, for which B + B^T = dI/dt
    (3)  C_ji = S_j^T (B^C S_i + I^C Sd_i)           (4)  C_ij = S_i^T (B^C S_j + I^C Sd_j)

Equation numbers refer to this list, and B is that of spatial/algebra.py. Of the many matrices with C qd = bias -
gravity this one makes dM/dt - 2 C skew-symmetric. For 1-DOF joints it is the matrix of the Christoffel symbols. The
axes of a ball joint or a free base are constant in the link that they move, so dM/dt is that of M for velocities in
the body frame. All quantities are in the link's own frame.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.joints import Coordinates
from ...mechanism.sweeps import LinkView, Pairs, PerJoint, Sweep
from ...spatial.algebra import ZERO_INERTIA, ZERO_MOTION, Force, Inertia, Motion, Vec
from ...spatial.algebra import ZERO_CORIOLIS, Coriolis, coriolis
from ..inverse.inverse_derivatives import Blocks, along, cross, products


@dataclass(slots=True)
class Moving:
    v: Motion
    Sd: tuple[Motion, ...]  # for each freedom


@dataclass(slots=True)
class Subtree:
    """I^C and B^C of all links outward of a joint, as one body."""

    I: Inertia  # noqa: E741  (the paper's symbol)
    B: Coriolis


@dataclass(slots=True)
class Carried:
    """For each degree of freedom of i: B S + I Sd, I S, and the moment of B^T S, which has no force."""

    F: tuple[Force, ...]
    I_S: tuple[Force, ...]
    B_S: tuple[Vec, ...]


@dataclass(slots=True)
class Elements:
    C: Blocks


def coriolis_matrix(sweep: Sweep, qd: PerJoint) -> Pairs:
    """The elements of C for each pair of a joint and one of its ancestors. qd: nv scalars per link."""

    def outward_step(link: LinkView, v_parent: Motion, qd: Coordinates) -> tuple[Moving, Motion]:
        v = link.phi_T(v_parent) + link.H_T @ qd
        Sd = tuple(cross(v, S) for S in link.H_T.columns)                                        # (1)
        if not link.joint.constant_columns:
            Sd = tuple(d + turning for d, turning in along(Sd, link.H_T_rate(qd).columns))
        return Moving(v, Sd), v

    def inward_step(link: LinkView, outer: Subtree, at: Moving) -> tuple[Subtree, Subtree]:
        I = outer.I + link.M  # noqa: E741
        B = outer.B + coriolis(link.M, at.v)                                                     # (2)
        return Subtree(I, B), Subtree(link.phi(I), link.phi(B))

    def start(link: LinkView, at: Moving, tree: Subtree) -> tuple[Elements, Carried]:
        S = link.H_T.columns
        F = tuple(tree.B @ s + tree.I @ d for s, d in along(S, at.Sd))                           # (3)
        I_S, B_S = tuple(tree.I @ s for s in S), tuple(tree.B.transpose_times(s) for s in S)     # (4)
        return Elements(Blocks(products(link, F), ())), carried(link, Carried(F, I_S, B_S))

    def step(link: LinkView, x: Carried, at: Moving, tree: Subtree) -> tuple[Elements, Carried]:
        C_ji, S = products(link, x.F), link.H_T.columns                                          # (3)
        C_ij = [
            [m.dot(d) + b.dot(s.angular) for s, d in along(S, at.Sd)] for m, b in along(x.I_S, x.B_S)
        ]                                                                                        # (4)
        return Elements(Blocks(C_ji, C_ij)), carried(link, x)

    at = sweep.outward(outward_step, ZERO_MOTION, qd)
    tree, _ = sweep.inward(inward_step, Subtree(ZERO_INERTIA, ZERO_CORIOLIS), at)
    return sweep.pairs(start, step, at, tree)


def carried(link: LinkView, x: Carried) -> Carried:
    """Return the record at and in the frame of the next link inward."""
    F, I_S = (tuple(link.phi(f) for f in forces) for forces in (x.F, x.I_S))
    return Carried(F, I_S, tuple(link.X.turn(moment) for moment in x.B_S))


__all__ = ["Elements", "coriolis_matrix"]
