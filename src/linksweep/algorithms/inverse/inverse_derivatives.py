"""The derivatives of inverse dynamics with respect to q and qd, and the mass matrix, pair by pair.

S. Singh, R. P. Russell and P. M. Wensing, "Efficient Analytical Derivatives of Rigid-Body Dynamics Using Spatial Vector
Algebra", IEEE Robotics and Automation Letters 7(2), 2022, closed expressions for the sweeps of J. Carpentier and N.
Mansard, "Analytical Derivatives of Rigid Body Dynamics Algorithms", RSS 2018. In O(n depth).

For a link j between the base and a link i (S: the columns of H^T; subtree of i: I^C, B^C, f^C; p: the parent):

    (1)  Psid = v_p x S                     (2)  Psidd = a_p x S + v_p x Psid          (3)  Sd = v x S
    (4)  dtau_i/dq_j  = S_i^T (2 B^C Psid_j + I^C Psidd_j)
    (5)  dtau_j/dq_i  = S_j^T (2 B^C Psid_i + I^C Psidd_i + S_i x* f^C)
    (6)  dtau_i/dqd_j = S_i^T (2 B^C S_j + I^C (Psid_j + Sd_j))
    (7)  dtau_j/dqd_i = S_j^T (2 B^C S_i + I^C (Psid_i + Sd_i))

Equation numbers refer to this list. (4) holds for i = j too, (5) only for i other than j. Derivatives with respect to
q are in the tangent space, also for multi-DOF joints. All quantities are in the link's own frame, accelerations are
derivatives in that frame, gravity is an acceleration of the base. For points with mass m, position p and velocity u,
l = sum m u and K = sum m u p^T:

    (8)  2 B [w; v] = 2 [tr(K) w - K w; w x l]
"""

# pyright: reportConstantRedefinition=false
# (capital letters are the papers' symbols, and no constants)

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...mechanism.bias import BaseMotion, local_bias_acceleration, local_bias_force
from ...mechanism.joints import Coordinates
from ...spatial.algebra import ZERO_FORCE, ZERO_INERTIA, Force, Inertia, Motion, Vec
from ...spatial.scalars import Rows, Scalar
from ...spatial.algebra import ZERO_CORIOLIS, Coriolis, coriolis
from ...mechanism.sweeps import LinkView, Pairs, PerJoint, PerLink, Sweep


@dataclass(slots=True)
class State:
    v: Motion  # velocity
    a: Motion  # acceleration, seen in the link's frame, less gravity


@dataclass(slots=True)
class Moving:
    v: Motion
    a: Motion
    Psid: tuple[Motion, ...]  # v_p x S, for each freedom
    Psidd: tuple[Motion, ...]  # a_p x S + v_p x Psid
    Sd: tuple[Motion, ...]  # v x S


@dataclass(slots=True)
class Subtree:
    """All links outward of a joint as one body: inertia I^C, 2 B^C, and the required force f^C."""

    I: Inertia  # noqa: E741  (the paper's symbol)
    B2: Coriolis
    f: Force


@dataclass(slots=True)
class Carried:
    """For each degree of freedom of i: the forces whose products with S_j, Psid_j, Psidd_j, Sd_j are the elements."""

    by_q: tuple[Force, ...]  # 2 B Psid_i + I Psidd_i + S_i x* f
    by_qd: tuple[Force, ...]  # 2 B S_i + I (Psid_i + Sd_i)
    I_S: tuple[Force, ...]
    B_S: tuple[Vec, ...]  # the moment of 2 B^T S_i, which has no force


@dataclass(slots=True)
class Blocks:
    """A pair's elements: `above` in the rows of j and columns of i, `below` in the rows of i and columns of j."""

    above: Rows
    below: Rows


@dataclass(slots=True)
class Elements:
    q: Blocks
    qd: Blocks
    qdd: Blocks


@dataclass(slots=True)
class Result:
    elements: Pairs
    tau: PerJoint


def inverse_dynamics_derivatives(
    sweep: Sweep, qd: PerJoint, qdd: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False
) -> Result:
    """dtau/dq, dtau/dqd and dtau/dqdd = M for each pair of a joint and one of its ancestors, and tau itself.

    qd, qdd: nv scalars per link; f_ext: Force on each link, fixed to it, in its frame at its origin.
    """

    def outward_step(link: LinkView, parent: State, qd: Coordinates, qdd: Coordinates) -> tuple[Moving, State]:
        v_p, a_p = link.phi_T(parent.v), link.phi_T(parent.a)
        v = v_p + link.H_T @ qd
        a = a_p + link.H_T @ qdd + local_bias_acceleration(link, v_p, qd)
        Psid = tuple(cross(v_p, S) for S in link.H_T.columns)                                    # (1)
        Psidd = tuple(cross(a_p, S) + cross(v_p, P) for S, P in along(link.H_T.columns, Psid))     # (2)
        Sd = tuple(cross(v, S) for S in link.H_T.columns)                                        # (3)
        return Moving(v, a, Psid, Psidd, Sd), State(v, a)

    def inward_step(
        link: LinkView, outer: Subtree, at: Moving, qd: Coordinates, qdd: Coordinates, f_ext: Force
    ) -> tuple[tuple[Subtree, Coordinates], Subtree]:
        I = outer.I + link.M  # noqa: E741
        B2 = outer.B2 + coriolis(link.M, at.v + at.v)                                              # (8)
        f = outer.f + (link.M @ at.a + local_bias_force(link, at.v) - f_ext)
        tau = link.H(f) + qdd * link.armature
        if dissipation:
            tau = tau + link.dissipative_force(qd)
        return (Subtree(I, B2, f), tau), Subtree(link.phi(I), link.phi(B2), link.phi(f))

    def start(link: LinkView, at: Moving, tree: Subtree) -> tuple[Elements, Carried]:
        S = link.H_T.columns
        by_own = [tree.B2 @ P + tree.I @ PP for P, PP in along(at.Psid, at.Psidd)]            # (4), i = j
        by_qd = [tree.B2 @ s + tree.I @ (P + d) for s, P, d in along(S, at.Psid, at.Sd)]      # (7)
        by_q = [own + cross_force(s, tree.f) for own, s in along(by_own, S)]                       # (5)
        I_S = [tree.I @ s for s in S]
        B_S = [tree.B2.transpose_times(s) for s in S]
        M = products(link, I_S)
        damped = products(link, by_qd)
        for k, row in enumerate(M):
            row[k] = row[k] + link.armature
            if dissipation:
                damped[k][k] = damped[k][k] + link.damping
        elements = Elements(Blocks(products(link, by_own), ()), Blocks(damped, ()), Blocks(M, ()))
        return elements, carried(link, by_q, by_qd, I_S, B_S)

    def step(link: LinkView, x: Carried, at: Moving, tree: Subtree) -> tuple[Elements, Carried]:
        S = link.H_T.columns
        M = products(link, x.I_S)
        below_q = [
            [m.dot(PP) + b.dot(P.angular) for P, PP in along(at.Psid, at.Psidd)] for m, b in along(x.I_S, x.B_S)
        ]                                                                                        # (4)
        below_qd = [
            [m.dot(P + d) + b.dot(s.angular) for s, P, d in along(S, at.Psid, at.Sd)] for m, b in along(x.I_S, x.B_S)
        ]                                                                                        # (6)
        above_q, above_qd = products(link, x.by_q), products(link, x.by_qd)                      # (5), (7)
        elements = Elements(Blocks(above_q, below_q), Blocks(above_qd, below_qd), Blocks(M, list(along(*M))))
        return elements, carried(link, x.by_q, x.by_qd, x.I_S, x.B_S)

    at = sweep.outward(outward_step, State(base.velocity, base.acceleration), qd, qdd)
    nothing = Subtree(ZERO_INERTIA, ZERO_CORIOLIS, ZERO_FORCE)
    kept, _ = sweep.inward(inward_step, nothing, at, qd, qdd, f_ext)
    tree, tau = sweep.unzip(kept)
    return Result(sweep.pairs(start, step, at, tree), tau)


def cross(a: Motion, b: Motion) -> Motion:
    """a x b of two motions."""
    return Motion(a.angular.cross(b.angular), a.linear.cross(b.angular) + a.angular.cross(b.linear))


def cross_force(v: Motion, f: Force) -> Force:
    """v x* f."""
    return Force(v.angular.cross(f.moment) + v.linear.cross(f.force), v.angular.cross(f.force))


def along(*columns: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
    """Entries that belong together."""
    return zip(*columns, strict=True)


def products(link: LinkView, forces: Iterable[Force]) -> list[list[Scalar]]:
    """S_j^T F: a row for each degree of freedom of this link, a column for each force."""
    return [list(row) for row in along(*(link.H(f) for f in forces))]


def carried(
    link: LinkView, by_q: Sequence[Force], by_qd: Sequence[Force], I_S: Sequence[Force], B_S: Sequence[Vec]
) -> Carried:
    """The forces of a pair at and in the frame of the next link inward."""
    by_q, by_qd, I_S = (tuple(link.phi(f) for f in forces) for forces in (by_q, by_qd, I_S))
    return Carried(by_q, by_qd, I_S, tuple(link.X.turn(moment) for moment in B_S))


__all__ = ["Elements", "Result", "inverse_dynamics_derivatives"]
