"""Joints as screws of the base frame, and what they do to points and directions.

Vectors have their components first: (3, N, K) for K branches of N targets, (3, 1, 1) where they belong to the robot.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..base import FloatArray

Numbers = Any  # a float or an array, as NumPy takes either
EXACT = 1e-8  # rad, or relative to the arm's size: nearer than this, axes meet or are parallel; files are rounded
FREE = 3e-11  # relative: what is left across an axis of a vector that is said to be along it


class Screw(NamedTuple):
    """A joint: its axis w, a point r of it, and whether it turns about w or slides along w."""

    w: FloatArray
    r: FloatArray
    turns: bool

    def moved(self, q: Numbers, point: Numbers) -> FloatArray:
        """Points after the joint has moved by q."""
        return self.r + self.turned(q, point - self.r) if self.turns else point + q * self.w

    def turned(self, q: Numbers, vector: Numbers) -> FloatArray:
        """Directions after the joint has moved by q."""
        if not self.turns:
            return vector
        c, s = np.cos(q), np.sin(q)
        return c * vector + s * cross(self.w, vector) + ((1.0 - c) * dot(self.w, vector)) * self.w

    def angle(
        self, start: Numbers, end: Numbers, otherwise: Numbers, size: float = 1.0
    ) -> tuple[FloatArray, np.ndarray]:
        """The angle that turns one vector to another, and where any does, `otherwise`: both are along the axis."""
        start, end = cross(self.w, start), cross(self.w, end)  # both, or what is along the axis drowns what is across
        sine, cosine = dot(self.w, cross(start, end)), dot(start, end)
        free = np.hypot(sine, cosine) <= (FREE * size) ** 2
        return np.where(free, otherwise, np.arctan2(sine, cosine)), free

    def reversed(self) -> Screw:
        return Screw(-self.w, self.r, self.turns)


class Normal(NamedTuple):
    """The common normal of two axes: its feet, its direction n from one to the other, its length, and the cosine and
    the sine between the axes."""

    first: FloatArray
    second: FloatArray
    n: FloatArray
    length: float
    cosine: float
    sine: float


def common_normal(a: Screw, b: Screw, size: float) -> Normal:
    """Of axes that are not the robot's alone, too. Of parallel ones the foot on the first is its point r."""
    cosine = float(dot(a.w, b.w).item())
    across = cross(a.w, b.w)
    sine = float(np.sqrt(dot(across, across)).item())
    way = b.r - a.r
    if sine <= EXACT:
        flat = way - dot(way, a.w) * a.w
        length = float(np.sqrt(dot(flat, flat)).item())
        n = flat / length if length > EXACT * size else np.zeros_like(flat)
        return Normal(a.r, a.r + flat, n, length, float(np.sign(cosine)), 0.0)
    n = across / sine
    length = float(dot(way, n).item())
    first = a.r + a.w * ((dot(way, a.w) - cosine * dot(way, b.w)) / sine**2)
    if abs(length) <= EXACT * size:
        return Normal(first, first, n, 0.0, cosine, sine)
    return Normal(first, first + length * n, n, length, cosine, sine)


def dot(a: Numbers, b: Numbers) -> FloatArray:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Numbers, b: Numbers) -> FloatArray:
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def norm(a: Numbers) -> FloatArray:
    return np.sqrt(dot(a, a))


def across(w: Numbers) -> FloatArray:
    """A unit vector at right angles to w."""
    flat = w.reshape(3)
    found = np.cross(flat, np.eye(3)[np.abs(flat).argmin()])
    return (found / np.linalg.norm(found)).reshape(3, 1, 1)


def root(a: Numbers, slack: Numbers) -> FloatArray:
    """Square roots; of what is negative by rounding 0, of what is more so NaN."""
    return np.sqrt(np.where((a < 0.0) & (a > -slack), 0.0, a))


class Motion(NamedTuple):
    """Rigid motions G of N targets: rotation (3, 3, N, 1) and translation (3, N, 1)."""

    rotation: FloatArray
    translation: FloatArray

    def turned(self, vector: Numbers) -> FloatArray:
        r = self.rotation
        return r[:, 0] * vector[0] + r[:, 1] * vector[1] + r[:, 2] * vector[2]

    def turned_back(self, vector: Numbers) -> FloatArray:
        r = self.rotation
        return r[0] * vector[0] + r[1] * vector[1] + r[2] * vector[2]

    def moved(self, point: Numbers) -> FloatArray:
        return self.translation + self.turned(point)

    def inverse(self) -> Motion:
        return Motion(np.swapaxes(self.rotation, 0, 1), -self.turned_back(self.translation))


def both(value: Numbers, sign: Numbers | None = None) -> FloatArray:
    """Twice as many branches: every one with +sign, then every one with -sign; without a sign each one twice."""
    if sign is None:
        return np.concatenate([value, value], axis=-1)
    value, sign = np.broadcast_arrays(value, sign)
    return np.concatenate([value + sign, value - sign], axis=-1)
