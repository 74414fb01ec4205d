"""Forward dynamics by the mass matrix (CRBA), the bias torques (RNEA) and a linear solve, O(n^3).

What the papers compare with: M by composite bodies, (32)-(33) of G. Rodriguez 1987, bias torques by the Newton-Euler
equations with no joint acceleration, (3.22)-(3.23) of G. Rodriguez and K. Kreutz 1988, and M qdd = T' by L^T D L, which
on a tree keeps M's zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.bias import BaseMotion
from ...mechanism.sweeps import Pairs, PerJoint, PerLink, Sweep
from ...spatial.algebra import Force
from ..mass_matrix.composite_inertia import mass_matrix
from ..inverse.khalil_kleinfinger import khalil_kleinfinger


@dataclass(slots=True)
class Result:
    qdd: PerJoint  # joint acceleration
    T_bias: PerJoint  # joint force that holds the joints unaccelerated
    T_free: PerJoint  # T': joint force less that
    M: Pairs  # the mass matrix


def composite(
    sweep: Sweep, qd: PerJoint, tau: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False
) -> Result:
    """Joint accelerations that the joint forces tau produce; arguments as of filter_smoother."""
    bias = khalil_kleinfinger(sweep, qd, sweep.zeros(), f_ext, base, dissipation)
    T_bias = bias.tau                                                                            # (3.23)
    T_free = sweep.subtract(tau, T_bias)                                                         # (3.22)
    M = mass_matrix(sweep).elements                                                              # (32)
    qdd = sweep.solve(M, T_free)                                                                 # (3.22)
    return Result(qdd, T_bias, T_free, M)
