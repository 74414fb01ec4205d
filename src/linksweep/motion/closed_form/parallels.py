"""Six turning joints of which the second, third and fourth have parallel axes.

Those three move points across w: H = e2 e3 e4 = e1^-1 G e6^-1 e5^-1 leaves w, and heights along w, as they are.
"""

from __future__ import annotations

import numpy as np

from ..base import FloatArray
from .arms import Place, Unsolvable
from .screws import EXACT, Motion, Screw, across, both, common_normal, cross, dot, norm
from .series import Track
from .wrists import Bend


class ParallelAxes:
    def __init__(self, screws: tuple[Screw, ...], size: float) -> None:
        """The first joint's axis may depend on the target (3, N, 1): the solution is told."""
        off = max(float(norm(cross(screws[1].w, screw.w)).item()) for screw in screws[2:4])
        if not all(screw.turns for screw in screws):
            raise Unsolvable("and all others do not belong to revolute joints", np.inf)
        if off > EXACT:
            raise Unsolvable(f"are {off:.2g} rad off being parallel", off)
        self.screws, self.size, self.w = screws, size, screws[1].w
        self.bend = Bend(screws[1], *screws[4:])
        self.normal = common_normal(screws[4], screws[5], size)
        self.side = across(self.w)
        self.elbow = self._flat(Track(screws[2], screws[3].r), screws[1].r)
        if self.elbow.is_constant(EXACT * size * size):
            raise Unsolvable("are parallel, but two of them are one")

    def __call__(self, motion: Motion, near: FloatArray, first: Screw | None = None) -> Place:
        first = self.screws[0] if first is None else first
        second, third, fourth, fifth, sixth = self.screws[1:]
        q1, q5 = self._outer(first, motion)
        y = first.turned(q1, self.w)
        inward = fifth.turned(-q5, self.w)
        q6, free = sixth.angle(motion.turned_back(y), inward, near[5])  # e6 R^T e1 w = e5^-1 w
        place = first.moved(-q1, motion.moved(sixth.moved(-q6, fifth.moved(-q5, fourth.r))))  # H r4
        turned = first.turned(-q1, motion.turned(sixth.turned(-q6, fifth.turned(-q5, self.side))))
        total, _ = second.angle(self.side, turned, 0.0)
        way = place - second.r
        flat = way - dot(way, self.w) * self.w
        q3 = (self.elbow - dot(flat, flat)).zeros()
        q1, q5, q6, total, free, flat = (both(x) for x in (q1, q5, q6, total, free, flat))
        q2, folded = second.angle(third.moved(q3, fourth.r) - second.r, flat, near[1], self.size)
        signs = [float(np.sign(dot(self.w, screw.w)).item()) for screw in (third, fourth)]
        q4 = signs[1] * (total - q2 - signs[0] * q3)
        return Place(np.stack([q1, q2, q3, q4, q5, q6]), free | folded)

    def _outer(self, first: Screw, motion: Motion) -> tuple[FloatArray, FloatArray]:
        """Joints 1 and 5, from two equations that are linear in the cosine and sine of both.

        With y = e1 w, v = e5^-1 w and points r5, r6 of their axes:  y (G r6 - r1) + v (r5 - r6) = w (r5 - r1), since H
        leaves places along w, and  y R w6 = v w6, since it leaves w.
        """
        fifth, sixth = self.screws[4:]
        r5, r6, n, a, _, _ = self.normal
        y = Track(first, self.w, direction=True)
        reach = y.along(motion.moved(r6) - first.r) - dot(self.w, r5 - first.r)
        if a == 0.0:
            q1 = reach.zeros()
            q5, _ = self.bend(motion.turned(sixth.w), first.turned(q1, self.w))
            return both(q1), q5
        aim = y.along(motion.turned(sixth.w))
        middle = dot(fifth.w, self.w) * fifth.w
        c = self.w - middle
        s = -cross(fifth.w, c)
        m = np.array([[dot(x, z).item() for x in (c, s)] for z in (-a * n, sixth.w)])
        right = reach * -1.0, aim - dot(middle, sixth.w)
        inverse = np.linalg.inv(m)
        cosine, sine = (right[0] * row[0] + right[1] * row[1] for row in inverse)
        q1 = (cosine * cosine + sine * sine - 1.0).zeros()
        return q1, np.arctan2(sine.at(q1), cosine.at(q1))

    def _flat(self, track: Track, origin: FloatArray):
        """The squared distance from the axis along w."""
        height = track.along(self.w, origin)
        return (track.squared(origin) - height * height).cut(1)


class CyclicParallelAxes(ParallelAxes):
    """The first three axes are parallel: e6 goes to the front, as (G e6 G^-1) e1 ... e5 = G."""

    def __init__(self, screws: tuple[Screw, ...], size: float) -> None:
        super().__init__((screws[5], *screws[:5]), size)

    def __call__(self, motion: Motion, near: FloatArray, first: Screw | None = None) -> Place:
        last = self.screws[0]
        moved = Screw(motion.turned(last.w), motion.moved(last.r), True)
        place = super().__call__(motion, np.roll(near, 1, axis=0), moved)
        return Place(np.roll(place.q, -1, axis=0), place.free)


__all__ = ["CyclicParallelAxes", "ParallelAxes"]
