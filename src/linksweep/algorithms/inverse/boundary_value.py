"""Inverse dynamics as a two-point boundary-value problem.

K. Kozlowski, "New computational algorithms for a discrete Kalman filter in robot dynamics", 1990, (3.1)-(3.14), after
G. Rodriguez 1987, (11)-(21): forces x are the state, propagated from the tip, accelerations lambda the costate,
propagated from the base; bias force (3.14) and bias acceleration (3.7), (3.7') as corrected by Kozlowski.

Accelerations are derivatives seen in the link's own frame, lambda = [dw; dv]. The equality with the Newton-Euler
equations, (3.24)-(3.44), holds link by link: x is the same, and alpha = lambda + [0; w x v] (docs/errata.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.bias import BaseMotion, local_bias_acceleration, local_bias_force
from ...mechanism.joints import Coordinates
from ...spatial.algebra import ZERO_FORCE, Force, Motion
from ...mechanism.sweeps import LinkView, PerJoint, PerLink, Sweep


@dataclass(slots=True)
class State:
    V: Motion  # velocity [w; v]
    costate: Motion  # lambda = [dw; dv] less gravity, derivatives seen in the link's own frame


@dataclass(slots=True)
class Moving:
    V_plus: Motion  # velocity of the inner link, carried to this one
    V: Motion
    costate_plus: Motion  # lambda of the inner link, carried to this one
    n: Motion  # bias acceleration of the joint
    costate: Motion


@dataclass(slots=True)
class Kept:
    b: Force  # bias force: what the link's velocity alone needs, less external forces
    x: Force  # the state: [moment; force] at the link's joint
    tau: Coordinates  # joint force


@dataclass(slots=True)
class Result:
    tau: PerJoint
    V: PerLink[Motion]
    costate: PerLink[Motion]
    x: PerLink[Force]
    V_plus: PerLink[Motion]
    costate_plus: PerLink[Motion]
    n: PerLink[Motion]
    b: PerLink[Force]


def boundary_value(
    sweep: Sweep, qd: PerJoint, qdd: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False
) -> Result:
    """Return the joint forces that produce the accelerations qdd.

    qd, qdd: nv scalars per link; f_ext: Force on each link, in its frame at its origin (T_c + p x F_c, F_c).
    """

    def outward_step(link: LinkView, parent: State, qd: Coordinates, qdd: Coordinates) -> tuple[Moving, State]:
        V_plus = link.phi_T(parent.V)                                                            # (3.1)
        V = V_plus + link.H_T @ qd                                                               # (3.2)
        costate_plus = link.phi_T(parent.costate)                                                # (3.4), (3.10)
        n = local_bias_acceleration(link, V_plus, qd)                                            # (3.7), (3.7')
        costate = costate_plus + n + link.H_T @ qdd                                              # (3.5), (3.11)
        return Moving(V_plus, V, costate_plus, n, costate), State(V, costate)

    def inward_step(
        link: LinkView, outer: Force, at: Moving, qd: Coordinates, qdd: Coordinates, f_ext: Force
    ) -> tuple[Kept, Force]:
        b = local_bias_force(link, at.V) - f_ext                                                 # (3.14)
        x = outer + (link.M @ at.costate + b)                                                    # (3.8)
        tau = link.H(x) + qdd * link.armature                                                    # (3.12)
        if dissipation:
            tau = tau + link.dissipative_force(qd)
        return Kept(b, x, tau), link.phi(x)                                                         # (3.9)

    at = sweep.outward(outward_step, State(base.velocity, base.acceleration), qd, qdd)           # (3.3), (3.6)
    kept, _ = sweep.inward(inward_step, ZERO_FORCE, at, qd, qdd, f_ext)                          # (3.13)
    return Result(kept.tau, at.V, at.costate, kept.x, at.V_plus, at.costate_plus, at.n, kept.b)
