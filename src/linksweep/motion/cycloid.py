"""The cycloidal motion of Angeles, Ma & Rojas (1988, section 7.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError

from .base import FloatArray, JointMotion, Motion, finite, positive


class Cycloid(Motion):
    """q = q0 + A [t - sin(B t) / B] from t = 0: n coordinates q0 (n,), mean velocities A (n,), one B > 0 (rad/s).

    duration: 2 pi / B, one period, after which the motion is at rest again, unless said otherwise.

    >>> Cycloid([0.0], [np.pi / 30], 2 * np.pi / 10)(5.0).q / np.pi
    array([0.16666667])
    """

    def __init__(self, q0: ArrayLike, A: ArrayLike, B: float, duration: float | None = None) -> None:
        self.q0, self.A = finite(self, "q0", q0), finite(self, "A", A)
        if self.q0.ndim != 1 or self.A.shape != self.q0.shape or not self.q0.size:
            raise ArgumentError(
                f"Cycloid got q0 of shape {self.q0.shape} and A of shape {self.A.shape}, expected (n,) for both: "
                "give one number per joint."
            )
        self.q0.flags.writeable = self.A.flags.writeable = False
        self.B = float(positive(self, "B", B))
        period = 2.0 * np.pi / self.B
        self.start = 0.0
        self.end = period if duration is None else float(positive(self, "duration", duration))
        self.width = self.q0.size
        periods = self.end / period
        self.holds = abs(periods - round(periods)) <= 1e-12 * periods and round(periods) > 0

    @classmethod
    def between(cls, q0: ArrayLike, q1: ArrayLike, duration: float) -> Cycloid:
        """One period from rest at q0 (n,) to rest at q1 (n,)."""
        start, end = finite(cls.__name__, "q0", q0), finite(cls.__name__, "q1", q1)
        if start.shape != end.shape:
            raise ArgumentError(
                f"Cycloid got q0 of shape {start.shape} and q1 of shape {end.shape}, expected the same: "
                "give one number per joint."
            )
        seconds = finite(cls.__name__, "duration", duration)
        if seconds.shape != () or not seconds > 0.0:
            raise ArgumentError(f"Cycloid got duration {duration}, expected one number above 0.")
        return cls(start, (end - start) / float(seconds), 2.0 * np.pi / float(seconds))

    def _at(self, t: FloatArray) -> JointMotion:
        angle = self.B * t[..., None]
        q = self.q0 + self.A * (t[..., None] - np.sin(angle) / self.B)
        # 1 - cos as a square: no digits are lost where the motion starts and ends
        return JointMotion(q, self.A * 2.0 * np.sin(0.5 * angle) ** 2, self.A * self.B * np.sin(angle))
