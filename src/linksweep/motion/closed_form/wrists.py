"""Six joints whose last three axes meet: first the point where they do, then the rotation."""

from __future__ import annotations

import math

import numpy as np

from ..base import FloatArray
from .arms import Place, Unsolvable, arm_of
from .screws import EXACT, Motion, Screw, across, both, cross, dot, norm, root
from .series import SLACK

TURN = 2.0 * np.pi


class SphericalWrist:
    """e1 e2 e3 moves the wrist's centre as G does; e4 e5 e6 is the rest of G's rotation."""

    def __init__(self, screws: tuple[Screw, ...], size: float) -> None:
        centre, miss = meeting_point(screws[3:])
        if miss > EXACT * size:
            how = f"pass each other by {miss:.2g} m" if miss < np.inf else "do not all belong to revolute joints"
            raise Unsolvable(how, miss)
        self.screws, self.centre = screws, centre
        self.bend = Bend(*screws[3:])
        self.arm = arm_of((screws[0], screws[1], screws[2]), centre, size)
        self.side = across(screws[5].w)

    def __call__(self, motion: Motion, near: FloatArray) -> Place:
        arm = self.arm(motion.moved(self.centre), near[:3])
        axis, side = motion.turned(self.screws[5].w), motion.turned(self.side)
        for screw, q in zip(self.screws[:3], arm.q, strict=True):
            axis, side = screw.turned(-q, axis), screw.turned(-q, side)
        fourth, _, sixth = self.screws[3:]
        q5, bent = self.bend(axis)
        axis, side = both(axis), both(side)
        q4, free = fourth.angle(bent, axis, near[3])
        q6, _ = sixth.angle(self.side, self.bend.middle.turned(-q5, fourth.turned(-q4, side)), near[5])
        # axes 4 and 6 are one: what they turn together is shared, so that both stay near
        half = np.where(free, 0.5 * (q6 - near[5] - TURN * np.round((q6 - near[5]) / TURN)), 0.0)
        q4, q6 = q4 + half * np.sign(dot(fourth.w, axis)), q6 - half
        q1, q2, q3 = both(arm.q)
        return Place(np.stack(np.broadcast_arrays(q1, q2, q3, q4, q5, q6)), free | both(arm.free))


class Bend:
    """The angles of a joint between two others that turn the last axis to a given angle from the first."""

    def __init__(self, first: Screw, middle: Screw, last: Screw) -> None:
        self.first, self.middle, self.last = first, middle, last
        cosines = [float(dot(a.w, b.w).item()) for a, b in ((first, middle), (middle, last))]
        sines = [float(norm(cross(a.w, b.w)).item()) for a, b in ((first, middle), (middle, last))]
        if min(sines) <= EXACT:
            raise Unsolvable("are as wanted, but next to two parallel or identical axes")
        self.alpha, self.beta = (math.atan2(s, c) for s, c in zip(sines, cosines, strict=True))
        self.cosines = cosines[0] * cosines[1]
        b = float(dot(first.w, cross(middle.w, last.w)).item())
        self.zero = math.atan2(b, float(dot(first.w, last.w).item()) - self.cosines)

    def __call__(self, axis: FloatArray, first: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Both angles (N, 2 K) for last axes (3, N, K), and the last axis turned by them."""
        w = self.first.w if first is None else first
        cosine = dot(w, axis)
        gamma = np.arctan2(norm(cross(w, axis)), cosine)
        a, b = self.alpha, self.beta
        # by the sides of a spherical triangle, as Heron has it: exact where it is flat
        product = (
            4.0 * np.sin(0.5 * (a + b + gamma)) * np.sin(0.5 * (a + b - gamma))
            * np.sin(0.5 * (gamma + a - b)) * np.sin(0.5 * (gamma - a + b))
        )  # fmt: skip
        angle = both(self.zero, np.arctan2(root(product, SLACK), cosine - self.cosines))
        return angle, self.middle.turned(angle, self.last.w)


def meeting_point(screws: tuple[Screw, ...]) -> tuple[FloatArray, float]:
    """The point nearest to the axes, and how far they pass it by (infinite for joints that do not turn)."""
    if not all(screw.turns for screw in screws):
        return np.zeros((3, 1, 1)), np.inf
    flats = [np.eye(3) - np.outer(s.w, s.w) for s in screws]
    points = [s.r.reshape(3) for s in screws]
    total = np.sum(flats, axis=0)
    right = np.sum([flat @ point for flat, point in zip(flats, points, strict=True)], axis=0)
    centre = np.linalg.lstsq(total, right, rcond=1e-9)[0]
    miss = max(float(np.linalg.norm(flat @ (centre - point))) for flat, point in zip(flats, points, strict=True))
    return centre.reshape(3, 1, 1), miss
