"""The derivatives of forward dynamics from those of inverse dynamics.

J. Carpentier and N. Mansard, "Analytical Derivatives of Rigid Body Dynamics Algorithms", RSS 2018, section III: with
tau = ID(q, qd, qdd) and qdd = FD(q, qd, tau),

    (1)  dqdd/dq = -M^-1 dtau/dq    (2)  dqdd/dqd = -M^-1 dtau/dqd    (3)  dqdd/dtau = M^-1

where the derivatives of tau are taken at the qdd that tau makes. M is factored once, as L^T D L.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from ...mechanism.bias import BaseMotion
from ...mechanism.sweeps import Pairs, PerJoint, PerLink, Sweep
from ...spatial.algebra import Force
from ..inverse.inverse_derivatives import inverse_dynamics_derivatives
from .composite import composite


class Accelerated(Protocol):
    """What every forward dynamics finds."""

    qdd: PerJoint


@dataclass(slots=True)
class Result:
    """qdd, and what (1)-(3) are made of: the elements of dtau/dq, dtau/dqd and M at that qdd."""

    qdd: PerJoint
    elements: Pairs


def forward_dynamics_derivatives(
    sweep: Sweep, qd: PerJoint, tau: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False,
    forward: Callable[..., Accelerated] = composite,
) -> Result:
    """Accelerations, and the derivatives of inverse dynamics at them; arguments as of composite.

    forward: the algorithm that finds the accelerations.
    """
    qdd = forward(sweep, qd, tau, f_ext, base, dissipation).qdd
    swept = inverse_dynamics_derivatives(sweep, qd, qdd, f_ext, base, dissipation)               # (1), (2), (3)
    return Result(qdd, swept.elements)
