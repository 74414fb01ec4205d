"""Moving along rates, over any scalar: what is traced into steps in time and into descents.

Coordinates and rates are flat lists in the order of the robot's coordinates. coordinates.py does the same with NumPy
arrays, and checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..spatial.algebra import Vec
from ..spatial.scalars import Scalar, cos, sin, sqrt, where
from .canonical import CanonicalModel
from .joints import KINDS

Values = Sequence[Scalar]
SMALL = 1e-4  # of a squared angle: below, series to the third term are exact to rounding


def by_joint(
    model: CanonicalModel, function: Callable[..., Values], onto: str, q: Values, other: Values = (), cut: str = "v"
) -> list[Scalar]:
    """function(kind, the joint's part of q, its part of other) for every joint, side by side again.

    onto, cut: whether the result and `other` are laid out as coordinates ("q") or as rates ("v").
    """
    out: list[Scalar] = [0.0] * sum(getattr(KINDS[link.kind], "nq" if onto == "q" else "nv") for link in model.links)
    for link in model.links:
        joint = KINDS[link.kind]
        place = {"q": slice(link.q_start, link.q_start + joint.nq), "v": slice(link.start, link.start + joint.nv)}
        out[place[onto]] = function(link.kind, list(q[place["q"]]), list(other[place[cut]]))
    return out


def moved(model: CanonicalModel, q: Values, step: Values) -> list[Scalar]:
    """Coordinates after moving with the constant rates step / dt for a time dt."""
    return by_joint(model, _joint_moved, "q", q, step)


def _joint_moved(kind: str, q: Values, step: Values) -> Values:
    if kind == "planar":
        way = _way(Vec(0.0, 0.0, step[0]), Vec(step[1], step[2], 0.0))
        x, y = turned_in_plane(q[0], way.x, way.y)
        return [q[0] + step[0], q[1] + x, q[2] + y]
    if kind not in ("spherical", "free"):
        return [x + s for x, s in zip(q, step, strict=True)]
    turn = Vec(*step[:3])
    sinc, cosine, _ = _half_angle(turn)
    own, w, half = Vec(*q[:3]), q[3], turn * (sinc * 0.5)
    axis = half * w + own * cosine + own.cross(half)
    after = [axis.x, axis.y, axis.z, w * cosine - own.dot(half)]
    if kind == "free":
        way = rotated(q, _way(turn, Vec(*step[3:])))
        after += [q[4] + way.x, q[5] + way.y, q[6] + way.z]
    return after


def _half_angle(turn: Vec) -> tuple[Scalar, Scalar, Scalar]:
    """sin(h) / h and cos(h) of half the angle, and the square of the angle."""
    square = turn.dot(turn)
    h2 = square * 0.25
    h = sqrt(h2)
    near = 1.0 - h2 * (1.0 / 6.0) + h2 * h2 * (1.0 / 120.0)
    return where(h2 < SMALL, near, sin(h) / h), cos(h), square


def _way(turn: Vec, v: Vec) -> Vec:
    """The way of a point that moves with v while its frame turns: v + a w x v + b w x (w x v)."""
    sinc, cosine, square = _half_angle(turn)
    near = 1.0 / 6.0 - square * (1.0 / 120.0) + square * square * (1.0 / 5040.0)
    b = where(square < SMALL, near, (1.0 - sinc * cosine) / square)
    once = turn.cross(v)
    return v + once * (sinc * sinc * 0.5) + turn.cross(once) * b


def normalized(model: CanonicalModel, q: Values) -> list[Scalar]:
    return by_joint(model, _joint_normalized, "q", q)


def _joint_normalized(kind: str, q: Values, _: Values) -> Values:
    if kind not in ("spherical", "free"):
        return q
    x, y, z, w = q[:4]
    length = sqrt(x * x + y * y + (z * z + w * w))
    return [x / length, y / length, z / length, w / length, *q[4:]]


def rotated(quaternion: Values, v: Vec) -> Vec:
    """v turned by a quaternion xyzw of any length."""
    axis, w = Vec(*quaternion[:3]), quaternion[3]
    twice = axis.cross(v) * (2.0 / (axis.dot(axis) + w * w))
    return v + twice * w + axis.cross(twice)


def turned_in_plane(angle: Scalar, x: Scalar, y: Scalar) -> tuple[Any, Any]:
    c, s = cos(angle), sin(angle)
    return c * x - s * y, s * x + c * y
