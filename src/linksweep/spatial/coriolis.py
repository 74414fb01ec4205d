"""The matrix B of moving bodies, from which C and the derivatives of inverse dynamics are made."""

from __future__ import annotations

from dataclasses import dataclass

from .algebra import ZERO_VEC, Force, Inertia, Mat, Motion, Turn, Vec
from .scalars import Scalar


@dataclass(slots=True)
class Coriolis:
    """B in twelve numbers: of points with mass m, place p and velocity u, l = sum m u and K = sum m u p^T.

    Times a Motion [w; v] it is the force for the accelerations w x u of all points.
    """

    l: Vec  # noqa: E741  (the linear momentum)
    K: Mat

    def __add__(self, b: Coriolis) -> Coriolis:
        return Coriolis(self.l + b.l, self.K + b.K)

    def __matmul__(self, v: Motion) -> Force:
        w = v.angular
        return Force(w * _trace(self.K) - self.K @ w, w.cross(self.l))

    def transpose_times(self, v: Motion) -> Vec:
        """The moment of B^T v, which has no force."""
        w = v.angular
        return w * _trace(self.K) - self.K.transpose_times(w) + self.l.cross(v.linear)

    def turned(self, by: Turn) -> Coriolis:
        return Coriolis(by.turn(self.l), by.turn_mat(self.K))

    def shifted(self, p: Vec) -> Coriolis:
        """Seen from a point p further in."""
        return Coriolis(self.l, _plus_outer(self.K, self.l, p))


ZERO_CORIOLIS = Coriolis(ZERO_VEC, Mat(ZERO_VEC, ZERO_VEC, ZERO_VEC))


def coriolis(M: Inertia, v: Motion) -> Coriolis:
    """B of a body that moves with v: its points have u = v + w x p. It is linear in v."""
    w, J = v.angular, M.second_moments().rows()
    turned = Mat(w.cross(J[0]), w.cross(J[1]), w.cross(J[2])).T
    return Coriolis(v.linear * M.mass + w.cross(M.mp), _plus_outer(turned, v.linear, M.mp))


def _plus_outer(K: Mat, a: Vec, b: Vec) -> Mat:
    """K + a b^T."""
    return Mat(K.x + b * a.x, K.y + b * a.y, K.z + b * a.z)


def _trace(K: Mat) -> Scalar:
    return K.x.x + K.y.y + K.z.z
