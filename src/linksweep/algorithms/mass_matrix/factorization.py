"""The factors of the mass matrix: M = (I + H Phi L) D (I + H Phi L)^T and its inverse.

G. Rodriguez and K. Kreutz, "Recursive Mass Matrix Factorization and Inversion", 1988, (4.4)-(4.16): Fact 4.1, Fact 4.2
and Theorem 4.1, and the innovations model (4.12)-(4.13) with its inverse, the whitening filter (4.15).

A multi-DOF joint has a block for D(k), and the sweeps use it as it is. For M^-1 by its elements the block's
own triangular factor, D = U d U^T, goes to the other factors, so that what remains in the middle is diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.joints import Coordinates, JointInertia, Span, solve_upper, updated_inertia
from ...spatial.algebra import ZERO_ARTICULATED, ZERO_FORCE, ArticulatedInertia, Force
from ...mechanism.sweeps import LinkView, Pairs, PerJoint, PerLink, Sweep
from ...spatial.scalars import Rows


@dataclass(slots=True)
class Gain:
    """P and G = P H^T D^-1 of one link; L(k) = phi(k+1, k) G(k); the block D(k) and its factors U and D = U d U^T."""

    P: ArticulatedInertia
    D: Coordinates
    G: tuple[Force, ...]
    U: Rows
    block: Rows


@dataclass(slots=True)
class Result:
    """gain: P, D, G of each link; inverse: U^-1 (I - H Psi L), by pairs (i, ancestor)."""

    gain: PerLink[Gain]
    inverse: Pairs


def gains(sweep: Sweep) -> PerLink[Gain]:
    def step(link: LinkView, outer: ArticulatedInertia) -> tuple[Gain, ArticulatedInertia]:
        P = outer + link.M.articulated()                                                         # (4.5)
        P_H = P @ link.H_T
        D = JointInertia(link.H_T, P_H, link.armature)                                           # (4.6)
        G = P_H.over(D)                                                                          # (4.6) L = phi G
        P_plus = updated_inertia("43", P, link.H_T, P_H, G, link.armature)                       # (4.5)
        U, d = D.factor()
        return Gain(P, Coordinates(d), G.columns, tuple(map(tuple, U)), D.block), link.phi(P_plus)

    kept, _ = sweep.inward(step, ZERO_ARTICULATED)                                               # (4.4)
    return kept


def factorization(sweep: Sweep) -> Result:
    """The inverse of the triangular factor, element by element: M^-1 is its square over the pivots d, (4.16)."""

    def inverse_start(link: LinkView, at: Gain) -> tuple[Rows, tuple[Force, ...]]:
        unit = [[1.0 if i == j else 0.0 for i in range(len(at.G))] for j in range(len(at.G))]
        columns = [solve_upper(at.U, column) for column in unit]
        return list(zip(*columns, strict=True)), tuple(map(link.phi, at.G))

    def inverse_step(link: LinkView, w: tuple[Force, ...], at: Gain) -> tuple[Rows, tuple[Force, ...]]:
        Hw = [link.H(column) for column in w]
        columns = [solve_upper(at.U, [-entry for entry in column]) for column in Hw]             # (4.10) - H psi L
        crossed = [column - Span(at.G) @ part for column, part in zip(w, Hw, strict=True)]       # (4.7)
        return list(zip(*columns, strict=True)), tuple(map(link.phi, crossed))

    kept = gains(sweep)
    return Result(kept, sweep.pairs(inverse_start, inverse_step, kept))                          # (4.14)


def joint_inertia_times(sweep: Sweep, x: PerJoint) -> PerJoint:
    """D x, joint by joint."""

    def step(link: LinkView, nothing: tuple[()], at: Gain, x: Coordinates) -> tuple[Coordinates, tuple[()]]:
        return Coordinates(sum((d * e for d, e in zip(row, x, strict=True)), 0.0) for row in at.block), nothing

    return sweep.outward(step, (), gains(sweep), x)


def colour(sweep: Sweep, innovations: PerJoint) -> PerJoint:
    """y = (I + H Phi L) e: a causal sweep that gives white innovations of covariance D the covariance M, (4.13)."""

    def step(link: LinkView, z: Force, at: Gain, e: Coordinates) -> tuple[Coordinates, Force]:
        return link.H(z) + e, link.phi(z + Span(at.G) @ e)                                       # (4.13)

    y, _ = sweep.inward(step, ZERO_FORCE, gains(sweep), innovations)
    return y


def whiten(sweep: Sweep, y: PerJoint) -> PerJoint:
    """e = (I - H Psi L) y: the Kalman filter as a whitening filter, (4.15)."""

    def step(link: LinkView, z: Force, at: Gain, y: Coordinates) -> tuple[Coordinates, Force]:
        e = y - link.H(z)                                                                        # (4.15)
        return e, link.phi(z + Span(at.G) @ e)                                                   # (4.15)

    e, _ = sweep.inward(step, ZERO_FORCE, gains(sweep), y)
    return e

