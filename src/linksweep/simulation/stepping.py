"""One step in time, over any scalar: the same lines are traced into machine code and run on NumPy columns.

Coordinates and rates are flat lists in the order of the robot's coordinates. Joints of one freedom have q' = v. Of a
quaternion xyzw, q' = q (w, 0) / 2, and of a free joint's position p' = R(q) v, with w and v in the link's own frame
(G. Rodriguez and K. Kreutz 1988, (b.3)-(b.5)).

`rk4` is the classical method on (q, qd); a rotation does not depend on its quaternion's length, so the stages leave it
alone and the step ends with a normalised one, which keeps the fourth order. `semi_implicit_euler` takes qd first and
then moves with it by the exponential of the group, as `Robot.integrate` does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..mechanism.canonical import CanonicalModel
from ..mechanism.joints import KINDS
from ..spatial.algebra import Vec
from ..spatial.scalars import Scalar, cos, sin, sqrt, where

Values = Sequence[Scalar]
Accelerate = Callable[[int, Values, Values], tuple[Values, Values]]  # (stage, q, qd) -> (qdd, tau)
SMALL = 1e-4  # of a squared angle: below, series to the third term are exact to rounding


def rk4(model: CanonicalModel, accelerate: Accelerate, q: Values, qd: Values, dt: Scalar) -> tuple[Values, ...]:
    """q and qd after dt; qdd and tau at its beginning. Stages 0, 1, 2: its beginning, middle and end."""
    half = dt * 0.5
    r1, (a1, tau) = coordinate_rates(model, q, qd), accelerate(0, q, qd)
    q2, v2 = _along(q, half, r1), _along(qd, half, a1)
    r2, (a2, _) = coordinate_rates(model, q2, v2), accelerate(1, q2, v2)
    q3, v3 = _along(q, half, r2), _along(qd, half, a2)
    r3, (a3, _) = coordinate_rates(model, q3, v3), accelerate(1, q3, v3)
    q4, v4 = _along(q, dt, r3), _along(qd, dt, a3)
    r4, (a4, _) = coordinate_rates(model, q4, v4), accelerate(2, q4, v4)
    sixth = dt * (1.0 / 6.0)
    q_end, v_end = _along(q, sixth, _simpson(r1, r2, r3, r4)), _along(qd, sixth, _simpson(a1, a2, a3, a4))
    return normalized(model, q_end), v_end, a1, tau


def semi_implicit_euler(
    model: CanonicalModel, accelerate: Accelerate, q: Values, qd: Values, dt: Scalar
) -> tuple[Values, ...]:
    """q and qd after dt; qdd and tau at its beginning."""
    qdd, tau = accelerate(0, q, qd)
    after = _along(qd, dt, qdd)
    return normalized(model, moved(model, q, [v * dt for v in after])), after, qdd, tau


INTEGRATORS: dict[str, Callable[..., tuple[Values, ...]]] = {"rk4": rk4, "semi_implicit_euler": semi_implicit_euler}
STAGES = {"rk4": 3, "semi_implicit_euler": 1}  # moments of a step at which a law is evaluated


def _along(start: Values, dt: Scalar, rates: Values) -> list[Scalar]:
    return [x + dt * r for x, r in zip(start, rates, strict=True)]


def _simpson(a: Values, b: Values, c: Values, d: Values) -> list[Scalar]:
    return [(w + z) + (x + y) * 2.0 for w, x, y, z in zip(a, b, c, d, strict=True)]


def _by_joint(
    model: CanonicalModel, function: Callable[..., Values], onto: str, q: Values, other: Values = (), cut: str = "v"
) -> list[Scalar]:
    """function(kind, the joint's part of q, its part of other) for every joint, side by side again.

    onto, cut: whether the result and `other` are laid out as coordinates ("q") or as rates ("v").
    """
    out: list[Scalar] = [0.0] * (model.nq if onto == "q" else model.nv)
    for link in model.links:
        joint = KINDS[link.kind]
        place = {"q": slice(link.q_start, link.q_start + joint.nq), "v": slice(link.start, link.start + joint.nv)}
        out[place[onto]] = function(link.kind, list(q[place["q"]]), list(other[place[cut]]))
    return out


def coordinate_rates(model: CanonicalModel, q: Values, v: Values) -> list[Scalar]:
    """q' of the rates v."""
    return _by_joint(model, _joint_rates, "q", q, v)


def _joint_rates(kind: str, q: Values, v: Values) -> Values:
    if kind == "planar":
        return [v[0], *_turned_in_plane(q[0], v[1], v[2])]
    if kind not in ("spherical", "free"):
        return v
    own, w, spin = Vec(*q[:3]), q[3], Vec(*v[:3]) * 0.5
    turning = spin * w + own.cross(spin)
    rates = [turning.x, turning.y, turning.z, -own.dot(spin)]
    if kind == "free":
        moving = _rotate(q, Vec(*v[3:]))
        rates += [moving.x, moving.y, moving.z]
    return rates


def moved(model: CanonicalModel, q: Values, step: Values) -> list[Scalar]:
    """Coordinates after moving with the constant rates step / dt for a time dt."""
    return _by_joint(model, _joint_moved, "q", q, step)


def _joint_moved(kind: str, q: Values, step: Values) -> Values:
    if kind == "planar":
        way = _way(Vec(0.0, 0.0, step[0]), Vec(step[1], step[2], 0.0))
        x, y = _turned_in_plane(q[0], way.x, way.y)
        return [q[0] + step[0], q[1] + x, q[2] + y]
    if kind not in ("spherical", "free"):
        return [x + s for x, s in zip(q, step, strict=True)]
    turn = Vec(*step[:3])
    sinc, cosine, _ = _half_angle(turn)
    own, w, half = Vec(*q[:3]), q[3], turn * (sinc * 0.5)
    axis = half * w + own * cosine + own.cross(half)
    after = [axis.x, axis.y, axis.z, w * cosine - own.dot(half)]
    if kind == "free":
        way = _rotate(q, _way(turn, Vec(*step[3:])))
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
    return _by_joint(model, _joint_normalized, "q", q)


def _joint_normalized(kind: str, q: Values, _: Values) -> Values:
    if kind not in ("spherical", "free"):
        return q
    x, y, z, w = q[:4]
    length = sqrt(x * x + y * y + (z * z + w * w))
    return [x / length, y / length, z / length, w / length, *q[4:]]


def tracking_error(model: CanonicalModel, q: Values, wanted: Values) -> list[Scalar]:
    """How far each joint is from where it should be, along its rates: what a proportional gain multiplies.

    For a ball joint twice the vector part of the quaternion that is missing, which is the rotation vector for small
    angles; 0 for a free joint, which has no motor.
    """
    return _by_joint(model, _joint_error, "v", q, wanted, "q")


def _joint_error(kind: str, q: Values, wanted: Values) -> Values:
    if kind == "free":
        return [0.0] * 6
    if kind == "planar":
        turn, x, y = (b - a for a, b in zip(q, wanted, strict=True))
        return [turn, *_turned_in_plane(-q[0], x, y)]
    if kind != "spherical":
        return [b - a for a, b in zip(q, wanted, strict=True)]
    own, goal = Vec(*q[:3]), Vec(*wanted[:3])
    scalar = q[3] * wanted[3] + own.dot(goal)
    missing = (goal * q[3] - own * wanted[3] - own.cross(goal)) * where(scalar < 0.0, -2.0, 2.0)
    return [missing.x, missing.y, missing.z]


def without_motors(model: CanonicalModel, tau: Values) -> list[Scalar]:
    """The torques with 0 for the freedoms of free joints."""
    out = list(tau)
    for link in model.links:
        if link.kind == "free":
            out[link.start : link.start + 6] = [0.0] * 6
    return out


def _rotate(quaternion: Values, v: Vec) -> Vec:
    """v turned by a quaternion xyzw of any length."""
    axis, w = Vec(*quaternion[:3]), quaternion[3]
    twice = axis.cross(v) * (2.0 / (axis.dot(axis) + w * w))
    return v + twice * w + axis.cross(twice)


def _turned_in_plane(angle: Scalar, x: Scalar, y: Scalar) -> tuple[Any, Any]:
    c, s = cos(angle), sin(angle)
    return c * x - s * y, s * x + c * y
