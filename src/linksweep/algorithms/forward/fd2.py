"""Forward dynamics FD2, four sweeps: FD1 with the links' spatial accelerations.

G. Rodriguez and K. Kreutz, "Recursive Mass Matrix Factorization and Inversion", 1988, Algorithm FD2, (5.5)-(5.7). The
identity (I - H Psi L) H phi = H psi, (5.4), makes alpha = lambda + zeta: the modification (4.21b)-(4.22b) of FD1, whose
sweeps already carry both.
"""

from __future__ import annotations

from ...mechanism.bias import BaseMotion
from ...mechanism.sweeps import PerJoint, PerLink, Sweep
from ...spatial.algebra import Force
from .fd1 import Result, fd1


def fd2(
    sweep: Sweep, qd: PerJoint, tau: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False
) -> Result:
    """Joint accelerations, and alpha of every link, (4.22b); arguments as of filter_smoother."""
    return fd1(sweep, qd, tau, f_ext, base, dissipation)                                         # (5.5), (5.6)
