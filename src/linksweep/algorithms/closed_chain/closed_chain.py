"""Forward dynamics of a tree with constraints between frames: accelerations and constraint forces.

    M qdd + K^T lambda = T',    K qdd + k = 0

with T' the joint forces less the bias, (3.22)-(3.23) of G. Rodriguez and K. Kreutz 1988. The solve is in mechanism.py,
for long chains in swept.py, the rows of each kind of constraint in constraint_rows.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.bias import BaseMotion
from ...mechanism.sweeps import PerJoint, PerLink
from ...spatial.algebra import Force
from ...spatial.scalars import Scalar
from ..inverse.khalil_kleinfinger import State, khalil_kleinfinger
from .swept import Tree, constrained


@dataclass(slots=True)
class Result:
    qdd: PerJoint  # joint acceleration
    multipliers: list[Scalar]  # lambda of each row
    wrenches: list[Force]  # that each constraint exerts on its frame a, at its origin along the base's axes


def closed_chain(
    sweep: Tree, qd: PerJoint, tau: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False
) -> Result:
    """Return the joint accelerations that tau produces, and the constraint forces; arguments as in filter_smoother."""
    bias = khalil_kleinfinger(sweep, qd, sweep.zeros(), f_ext, base, dissipation)
    T_free = sweep.subtract(tau, bias.tau)                                                       # (3.22)
    mechanism = constrained(sweep)
    k = mechanism.drift(qd, bias, State(base.w, base.dw, base.a))
    qdd, multipliers = mechanism.solve(T_free, k)
    return Result(qdd, mechanism.along_b(multipliers), mechanism.wrenches(multipliers))

