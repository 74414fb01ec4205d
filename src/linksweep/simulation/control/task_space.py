"""Impedance at a frame and a posture in its null space, over any scalar, with small dense matrices.

O. Khatib, "A unified approach for motion and force control of robot manipulators: the operational space formulation",
IEEE J. Robotics and Automation RA-3(1), 1987: tau = J^T F (5); torques that leave the frame alone are those of
[I - J^T Jbar^T] with the dynamically consistent inverse Jbar = M^-1 J^T Lambda, Lambda = (J M^-1 J^T)^-1 (51)-(53).

Jacobians have rows [angular; linear] in the base's directions at the frame's origin.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...spatial.algebra import Vec
from ...spatial.dense import Rows, Values, dot, inward, ldl, solved, transpose_times
from ...spatial.scalars import Scalar

REGULAR = 1e-10  # of the mean of Lambda^-1's diagonal, added to it: a singular pose keeps finite torques


def frame_impedance(J: Rows, T: Rows, qd: Values, given: Mapping[str, Values]) -> list[Scalar]:
    """stiffness * error + damping * (twist_ref - J qd), in the base's directions, [angular; linear].

    T: the frame's pose (4 x 4). pose_ref: the wanted rotation row by row, then the position. The error in rotation is
    half the sum of the cross products of axes with wanted ones: the axis times the sine of the angle.
    """
    wanted = given["pose_ref"]
    turn = Vec(0.0, 0.0, 0.0)
    for k in range(3):
        turn = turn + Vec(T[0][k], T[1][k], T[2][k]).cross(Vec(wanted[k], wanted[3 + k], wanted[6 + k]))
    error = [turn.x * 0.5, turn.y * 0.5, turn.z * 0.5, *(wanted[9 + k] - T[k][3] for k in range(3))]
    twist = [dot(row, qd) for row in J]
    gains = zip(given["stiffness"], error, given["damping"], given["twist_ref"], twist, strict=True)
    return [k * e + d * (v_ref - v) for k, e, d, v_ref, v in gains]


class TaskInertia:
    """Lambda = (J M^-1 J^T)^-1, by M = L D L^T, (51)."""

    def __init__(self, J: Rows, M: Rows):
        self.J = J
        self.L, pivots = ldl(M)
        whitened = [inward(self.L, row) for row in J]  # columns of L^-1 J^T
        self.scaled = [[x / pivot for x, pivot in zip(column, pivots, strict=True)] for column in whitened]
        self.inverse = [[dot(a, b) for b in self.scaled] for a in whitened]
        mean = sum((self.inverse[k][k] for k in range(1, 6)), self.inverse[0][0]) * (REGULAR / 6.0)
        for k in range(6):
            self.inverse[k][k] = self.inverse[k][k] + mean

    def force(self, acceleration: Values) -> list[Scalar]:
        """Lambda a: what gives the frame this acceleration."""
        return solved(self.inverse, acceleration)

    def unnoticed(self, tau: Values) -> list[Scalar]:
        """tau - J^T Lambda J M^-1 tau: what of these torques does not accelerate the frame, (53)."""
        own = inward(self.L, tau)
        force = self.force([dot(column, own) for column in self.scaled])
        return [x - y for x, y in zip(tau, transpose_times(self.J, force), strict=True)]
