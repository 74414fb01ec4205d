"""The factors of the mass matrix: M = (I + H Phi L) D (I + H Phi L)^T and its inverse.

G. Rodriguez and K. Kreutz, "Recursive Mass Matrix Factorization and Inversion", 1988, (4.4)-(4.16): Fact 4.1, Fact 4.2
and Theorem 4.1, and the innovations model (4.12)-(4.13) with its inverse, the whitening filter (4.15).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..joints import Coordinates, JointInertia, Span, updated_inertia
from ..spatial import ZERO_ARTICULATED, ZERO_FORCE, ArticulatedInertia, Force
from ..sweeps import LinkView, PerLink, Sweep


@dataclass(slots=True)
class Gain:
    """P, D and G = P H^T / D of one link; L(k) = phi(k+1, k) G(k)."""

    P: ArticulatedInertia
    D: Coordinates
    G: tuple[Force, ...]


@dataclass(slots=True)
class Result:
    """gain: P, D, G of each link; factor: I + H Phi L; inverse: I - H Psi L, by pairs (i, ancestor)."""

    gain: PerLink
    factor: Any
    inverse: Any


def gains(sweep: Sweep) -> PerLink:
    def step(link: LinkView, outer: ArticulatedInertia) -> tuple[Gain, ArticulatedInertia]:
        P = outer + link.M.articulated()                                                         # (4.5)
        P_H = P @ link.H_T
        D = JointInertia(link.H_T, P_H, link.armature)                                           # (4.6)
        G = P_H.over(D)                                                                          # (4.6) L = phi G
        P_plus = updated_inertia("43", P, link.H_T, P_H, G, link.armature)                       # (4.5)
        return Gain(P, D.diagonal, G.columns), link.phi(P_plus)

    kept, _ = sweep.inward(step, ZERO_ARTICULATED)                                               # (4.4)
    return kept


def factorization(sweep: Sweep) -> Result:
    """Both triangular factors, element by element."""

    def start(link: LinkView, at: Gain) -> tuple[Any, Force]:
        return [[1.0]], link.phi(at.G[0])

    def factor_step(link: LinkView, w: Force, at: Gain) -> tuple[Any, Force]:
        return [[link.H(w)[0]]], link.phi(w)                                                     # (4.9) H phi L

    def inverse_step(link: LinkView, w: Force, at: Gain) -> tuple[Any, Force]:
        Hw = link.H(w)
        return [[-Hw[0]]], link.phi(w - at.G[0] * Hw[0])                                         # (4.7), (4.10)

    kept = gains(sweep)
    return Result(kept, sweep.pairs(start, factor_step, kept), sweep.pairs(start, inverse_step, kept))


def colour(sweep: Sweep, innovations: PerLink) -> PerLink:
    """y = (I + H Phi L) e: a causal sweep that gives white innovations of covariance D the covariance M, (4.13)."""

    def step(link: LinkView, z: Force, at: Gain, e: Coordinates) -> tuple[Coordinates, Force]:
        return link.H(z) + e, link.phi(z + Span(at.G) @ e)                                       # (4.13)

    y, _ = sweep.inward(step, ZERO_FORCE, gains(sweep), innovations)
    return y


def whiten(sweep: Sweep, y: PerLink) -> PerLink:
    """e = (I - H Psi L) y: the Kalman filter as a whitening filter, (4.15)."""

    def step(link: LinkView, z: Force, at: Gain, y: Coordinates) -> tuple[Coordinates, Force]:
        e = y - link.H(z)                                                                        # (4.15)
        return e, link.phi(z + Span(at.G) @ e)                                                   # (4.15)

    e, _ = sweep.inward(step, ZERO_FORCE, gains(sweep), y)
    return e
