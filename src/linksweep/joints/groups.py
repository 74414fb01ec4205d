"""Rotations and rigid motions over any scalar: quaternions xyzw, and the exponential map of constant velocities.

The same code is traced into machine code for simulations, run on NumPy columns by `Robot.integrate`, and on elements of
a finite field by proofs. Quaternions may have any length but 0 unless a function requires length 1.
"""

from __future__ import annotations

from ..spatial.algebra import Vec
from ..spatial.scalars import Scalar, Values, atan2, cos, sin, sqrt, where

NAMES_VALUES = True  # of its steps: see tracing/labels.py
SMALL = 1e-4  # of a squared angle: below, series to the third term are exact to rounding


def rotation_entries(quaternion: Values) -> tuple[Scalar, ...]:
    """The rotation matrix of a quaternion, by rows; its length cancels."""
    x, y, z, w = quaternion
    two = 2.0 / (x * x + y * y + z * z + w * w)
    xs, ys, zs = x * two, y * two, z * two
    xx, yy, zz, xy, xz, yz = x * xs, y * ys, z * zs, x * ys, x * zs, y * zs
    wx, wy, wz = w * xs, w * ys, w * zs
    return (
        1.0 - (yy + zz), xy - wz, xz + wy,
        xy + wz, 1.0 - (xx + zz), yz - wx,
        xz - wy, yz + wx, 1.0 - (xx + yy),
    )  # fmt: skip


def rotated(quaternion: Values, v: Vec) -> Vec:
    """v rotated by a quaternion."""
    axis, w = Vec(*quaternion[:3]), quaternion[3]
    twice = axis.cross(v) * (2.0 / (axis.dot(axis) + w * w))
    return v + twice * w + axis.cross(twice)


def conjugate(quaternion: Values) -> list[Scalar]:
    """The quaternion of the inverse rotation."""
    x, y, z, w = quaternion
    return [-x, -y, -z, w]


def unit(quaternion: Values) -> list[Scalar]:
    x, y, z, w = quaternion
    length = sqrt(x * x + y * y + (z * z + w * w))
    return [x / length, y / length, z / length, w / length]


def spun(quaternion: Values, w: Vec) -> list[Scalar]:
    """The time derivative of a quaternion whose frame rotates with w: q (w, 0) / 2, (b.3) of Rodriguez & Kreutz."""
    own, scalar, spin = Vec(*quaternion[:3]), quaternion[3], w * 0.5
    turning = spin * scalar + own.cross(spin)
    return [turning.x, turning.y, turning.z, -own.dot(spin)]


def turned(quaternion: Values, turn: Vec) -> list[Scalar]:
    """A quaternion after the rotation vector `turn` in its own frame: q exp(turn), as long as q."""
    sinc, cosine, _ = _half_angle(turn)
    own, w, half = Vec(*quaternion[:3]), quaternion[3], turn * (sinc * 0.5)
    axis = half * w + own * cosine + own.cross(half)
    return [axis.x, axis.y, axis.z, w * cosine - own.dot(half)]


def missing(quaternion: Values, wanted: Values) -> tuple[Vec, Scalar]:
    """The quaternion from one to another, in the frame of the first: its vector and its scalar part."""
    own, goal = Vec(*quaternion[:3]), Vec(*wanted[:3])
    return goal * quaternion[3] - own * wanted[3] - own.cross(goal), quaternion[3] * wanted[3] + own.dot(goal)


def rotation_vector(axis: Vec, w: Scalar) -> Vec:
    """The logarithm of a unit quaternion: no longer than pi."""
    side = where(w < 0.0, -1.0, 1.0)
    sine, cosine = sqrt(axis.dot(axis)), w * side
    return axis * (side * _chosen(sine < 1e-8, 2.0, 2.0 * atan2(sine, cosine), sine))


def way(turn: Vec, v: Vec) -> Vec:
    """The displacement of a point that moves with v while its frame rotates: v + a w x v + b w x (w x v)."""
    sinc, cosine, square = _half_angle(turn)
    near = 1.0 / 6.0 - square * (1.0 / 120.0) + square * square * (1.0 / 5040.0)
    b = _chosen(square < SMALL, near, 1.0 - sinc * cosine, square)
    once = turn.cross(v)
    return v + once * (sinc * sinc * 0.5) + turn.cross(once) * b


def rate_along(turn: Vec, path: Vec) -> Vec:
    """The inverse of `way`: the v that leads to the displacement `path`, for rotations below a full turn."""
    sinc, cosine, square = _half_angle(turn)
    near = 1.0 / 12.0 + square * (1.0 / 720.0) + square * square * (1.0 / 30240.0)
    c = _chosen(square < SMALL, near, 1.0 - cosine / sinc, square)
    once = turn.cross(path)
    return path - once * 0.5 + turn.cross(once) * c


def turned_in_plane(angle: Scalar, x: Scalar, y: Scalar) -> tuple[Scalar, Scalar]:
    c, s = cos(angle), sin(angle)
    return c * x - s * y, s * x + c * y


def _half_angle(turn: Vec) -> tuple[Scalar, Scalar, Scalar]:
    """sin(h) / h and cos(h) of half the angle, and the square of the angle."""
    square = turn.dot(turn)
    h2 = square * 0.25
    h = sqrt(h2)
    near = 1.0 - h2 * (1.0 / 6.0) + h2 * h2 * (1.0 / 120.0)
    return _chosen(h2 < SMALL, near, sin(h), h), cos(h), square


def _chosen(near: object, series: Scalar, a: Scalar, b: Scalar) -> Scalar:
    """The series where `near`, else a / b."""
    if isinstance(near, bool):  # of plain numbers, which cannot be divided by 0
        return series if near else a / b
    return where(near, series, a / b)
