"""Inverse dynamics by the recursive Newton-Euler equations in spatial form.

G. Rodriguez and K. Kreutz, "Recursive mass matrix factorization and inversion: an operator approach to open- and
closed-chain multibody dynamics", 1988, section 2, (2.24)-(2.30), with the bias terms (2.19), (2.23) and (2.32) as
corrected in docs/errata.md.

Accelerations are inertial derivatives, seen in the link's frame: alpha = [dw; dv]. Because nothing here needs v, a
tracer drops the linear half of V. Gravity enters as the base's acceleration -g.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..joints import Coordinates
from ..spatial import ZERO_FORCE, ZERO_MOTION, ZERO_VEC, Force, Motion, Vec, centripetal
from ..sweeps import LinkView, PerLink, Sweep


@dataclass(slots=True)
class State:
    """Velocity V = [w; v] and acceleration alpha = [dw; dv] of a link, in its frame."""

    V: Motion
    alpha: Motion


@dataclass(slots=True)
class Kept:
    """Joint force tau, and the force f that the inner joint exerts on the link, [moment; force]."""

    tau: Coordinates
    f: Force


@dataclass(slots=True)
class Result:
    tau: PerLink
    V: PerLink
    alpha: PerLink
    f: PerLink
    base_force: Force


def newton_euler(
    sweep: Sweep, qd: PerLink, qdd: PerLink, f_ext: PerLink, gravity: Vec, dissipation: bool = False
) -> Result:
    """Joint forces that produce the accelerations qdd.

    qd, qdd: nv scalars per link; f_ext: Force on each link, in its frame at its origin; gravity: Vec in the base
    frame.
    """

    def outward_step(link: LinkView, parent: State, qd: Coordinates, qdd: Coordinates) -> tuple[State, State]:
        carried = link.phi_T(parent.V)
        V = carried + link.H_T @ qd                                                              # (2.25)
        a_link = Motion(ZERO_VEC, centripetal(parent.V.angular, link.X.origin()))                # (2.19)
        a_joint = link.joint.classical_bias(carried, qd)                                         # (2.19), (2.32)
        alpha = link.phi_T(parent.alpha + a_link) + a_joint + link.H_T @ qdd                     # (2.26)
        state = State(V, alpha)
        return state, state

    def inward_step(
        link: LinkView, outer: Force, at: State, qd: Coordinates, qdd: Coordinates, f_ext: Force
    ) -> tuple[Kept, Force]:
        f = outer + (link.M @ at.alpha + bias_force(link, at.V) - f_ext)                         # (2.29)
        tau = link.H(f) + qdd * link.armature                                                    # (2.30)
        if dissipation:
            tau = tau + link.dissipative_force(qd)
        return Kept(tau, f), link.phi(f)

    base = State(ZERO_MOTION, Motion(ZERO_VEC, -gravity))                                        # (2.24)
    at = sweep.outward(outward_step, base, qd, qdd)
    kept, base_force = sweep.inward(inward_step, ZERO_FORCE, at, qd, qdd, f_ext)                 # (2.28)
    return Result(kept.tau, at.V, at.alpha, kept.f, base_force)


def bias_force(link: LinkView, V: Motion) -> Force:
    """b(k) = [w x I w; w x (w x m p)], (2.23)."""
    w = V.angular
    return Force(w.cross(link.M.I @ w), centripetal(w, link.M.mp))
