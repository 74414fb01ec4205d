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
    """J^T F with F = stiffness * error + damping * (twist_ref - J qd), in the base's directions, [moment; force].

    T: the frame's pose (4 x 4). pose_ref: the wanted rotation row by row, then the position. The error in rotation is
    half the sum of the cross products of axes with wanted ones: the axis times the sine of the angle.
    """
    wanted = given["pose_ref"]
    turn = Vec(0.0, 0.0, 0.0)
    for k in range(3):
        turn = turn + Vec(T[0][k], T[1][k], T[2][k]).cross(Vec(wanted[k], wanted[3 + k], wanted[6 + k]))
    error = [turn.x * 0.5, turn.y * 0.5, turn.z * 0.5, *(wanted[9 + k] - T[k][3] for k in range(3))]
    twist = [dot(row, qd) for row in J]
    F = [
        k * e + d * (v_ref - v)
        for k, e, d, v_ref, v in zip(
            given["stiffness"], error, given["damping"], given["twist_ref"], twist, strict=True
        )
    ]
    return transpose_times(J, F)  # (5)


def posture_in_null_space(J: Rows, M: Rows, tau: Values) -> list[Scalar]:
    """tau - J^T Lambda J M^-1 tau: what of these torques does not accelerate the frame, (53)."""
    L, d = ldl(M)
    whitened = [inward(L, row) for row in J]  # columns of L^-1 J^T
    scaled = [[x / pivot for x, pivot in zip(column, d, strict=True)] for column in whitened]
    inverse = [[dot(a, b) for b in scaled] for a in whitened]  # Lambda^-1 = J M^-1 J^T, (51)
    mean = sum((inverse[k][k] for k in range(1, 6)), inverse[0][0]) * (REGULAR / 6.0)
    for k in range(6):
        inverse[k][k] = inverse[k][k] + mean
    own = inward(L, tau)
    force = solved(inverse, [dot(column, own) for column in scaled])  # Lambda J M^-1 tau
    return [x - y for x, y in zip(tau, transpose_times(J, force), strict=True)]
