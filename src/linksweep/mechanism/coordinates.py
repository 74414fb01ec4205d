"""Coordinates and rates: moving along a constant rate, the rate between two poses, and what a quaternion needs.

Rates are those of a link in its own frame. Revolute, prismatic and helical joints have q' = v. For a ball joint and a
free base q' = Omega(q) v (G. Rodriguez and K. Kreutz 1988, (b.3)-(b.5)), and moving with a constant rate is the
exponential of the group: exact, whatever the step. Quaternions are xyzw and are normalised here; one that is zero or
not finite is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..description.model import Model
from ..errors import ArgumentError
from ..support.foreign import refuse_foreign
from .canonical import CanonicalLink, CanonicalModel
from .joints import KINDS

QUATERNIONS = ("spherical", "free")


class CoordinateMethods:
    """What a Robot can do with its coordinates."""

    canonical: Any
    model: Any

    def neutral(self) -> np.ndarray:
        """The coordinates (nq,) at which nothing is moved: zeros, and unit quaternions."""
        return neutral(self.canonical)

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Random coordinates (nq,): within finite limits, angles in [-pi, pi], uniform rotations."""
        return random(self.canonical, self.model, rng)

    def normalize(self, q: Any) -> np.ndarray:
        """The same coordinates (..., nq) with quaternions of length 1."""
        return normalize(self.canonical, q)

    def integrate(self, q: Any, v: Any, dt: Any = 1.0) -> np.ndarray:
        """Coordinates (..., nq) after moving with the constant rates v (..., nv) for a time dt."""
        return integrate(self.canonical, q, v, dt)

    def difference(self, q0: Any, q1: Any) -> np.ndarray:
        """The constant rates (..., nv) that lead from q0 to q1 in a time 1: integrate(q0, difference(q0, q1)) is q1."""
        return difference(self.canonical, q0, q1)

    def coordinate_rates(self, q: Any, v: Any) -> np.ndarray:
        """dq/dt (..., nq) of the rates v (..., nv): q' = Omega(q) v, (b.3)-(b.5) of Rodriguez & Kreutz."""
        return coordinate_rates(self.canonical, q, v)


def neutral(model: CanonicalModel) -> np.ndarray:
    q = np.zeros(_sizes(model)[0])
    for link in model.links:
        if link.kind in QUATERNIONS:
            q[link.q_start + 3] = 1.0
    return q


def random(model: CanonicalModel, described: Model, rng: np.random.Generator) -> np.ndarray:
    if not isinstance(rng, np.random.Generator):
        raise ArgumentError(f"random got {type(rng).__name__}, expected a Generator: numpy.random.default_rng(seed).")
    q = np.zeros(_sizes(model)[0])
    for index, link in enumerate(model.links):
        if not link.leads:
            continue
        place, count = link.q_start, KINDS[link.kind].nq
        if link.kind in QUATERNIONS:
            quaternion = rng.normal(size=4)
            q[place : place + 4] = quaternion / np.linalg.norm(quaternion)
            q[place + 4 : place + count] = rng.uniform(-1.0, 1.0, count - 4)
            continue
        limits = described.links[index].joint.limits
        reach = 1.0 if link.kind == "prismatic" else np.pi
        low, high = max(limits.lower, -reach), min(limits.upper, reach)
        if low > high:  # the limits lie beyond
            bounds = [x for x in (limits.lower, limits.upper) if np.isfinite(x)]
            low, high = min(bounds), max(bounds)
        q[place : place + count] = rng.uniform(low, high + 0.0, count)  # NumPy takes a range of -0.0 for negative
    return q


def normalize(model: CanonicalModel, q: Any) -> np.ndarray:
    q = _checked(model, "q", q, 0).copy()
    for link in model.links:
        if link.kind in QUATERNIONS:
            place = slice(link.q_start, link.q_start + 4)
            q[..., place] = _unit(link, q[..., place])
    return q


def integrate(model: CanonicalModel, q: Any, v: Any, dt: Any) -> np.ndarray:
    refuse_foreign("dt", dt)
    q, v, step = _checked(model, "q", q, 0), _checked(model, "v", v, 1), np.asarray(dt, dtype=float)[..., None]
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], step.shape[:-1])
    out = np.empty((*batch, q.shape[-1]), np.result_type(q, v))
    for link, own, rates in _joints(model, q, v):
        place = slice(link.q_start, link.q_start + own.shape[-1])
        moved = rates * step
        if link.kind == "spherical":
            out[..., place] = _multiply(_unit(link, own), _exponential(moved))
        elif link.kind == "free":
            turn = _unit(link, own[..., :4])
            out[..., place][..., :4] = _multiply(turn, _exponential(moved[..., :3]))
            path = _left_jacobian(moved[..., :3], moved[..., 3:])
            out[..., place][..., 4:] = own[..., 4:] + _rotate(turn, path)
        elif link.kind == "planar":
            out[..., place] = _integrate_planar(own, moved)
        else:
            out[..., place] = own + moved
    return out


def difference(model: CanonicalModel, q0: Any, q1: Any) -> np.ndarray:
    a, b = _checked(model, "q0", q0, 0), _checked(model, "q1", q1, 0)
    batch = np.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    out = np.empty((*batch, _sizes(model)[1]), np.result_type(a, b))
    for link in model.links:
        joint = KINDS[link.kind]
        start, end = (x[..., link.q_start : link.q_start + joint.nq] for x in (a, b))
        place = slice(link.start, link.start + joint.nv)
        if link.kind == "spherical":
            out[..., place] = _logarithm(_multiply(_conjugate(_unit(link, start)), _unit(link, end)))
        elif link.kind == "free":
            turn = _unit(link, start[..., :4])
            w = _logarithm(_multiply(_conjugate(turn), _unit(link, end[..., :4])))
            path = _rotate(_conjugate(turn), end[..., 4:] - start[..., 4:])
            out[..., place] = np.concatenate(np.broadcast_arrays(w, _inverse_left_jacobian(w, path)), axis=-1)
        elif link.kind == "planar":
            out[..., place] = _difference_planar(start, end)
        else:
            out[..., place] = end - start
    return out


def coordinate_rates(model: CanonicalModel, q: Any, v: Any) -> np.ndarray:
    q, v = _checked(model, "q", q, 0), _checked(model, "v", v, 1)
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    out = np.empty((*batch, q.shape[-1]), np.result_type(q, v))
    for link, own, rates in _joints(model, q, v):
        place = slice(link.q_start, link.q_start + own.shape[-1])
        if link.kind in QUATERNIONS:
            w = np.concatenate([rates[..., :3], np.zeros_like(rates[..., :1])], axis=-1)
            out[..., place][..., :4] = 0.5 * _multiply(own[..., :4], w)  # (b.3)
            if link.kind == "free":
                out[..., place][..., 4:] = _rotate(_unit(link, own[..., :4]), rates[..., 3:])
        elif link.kind == "planar":
            c, s = np.cos(own[..., 0]), np.sin(own[..., 0])
            x, y = rates[..., 1], rates[..., 2]
            out[..., place] = np.stack(np.broadcast_arrays(rates[..., 0], c * x - s * y, s * x + c * y), axis=-1)
        else:
            out[..., place] = rates
    return out


def _joints(
    model: CanonicalModel, q: np.ndarray, v: np.ndarray
) -> Iterator[tuple[CanonicalLink, np.ndarray, np.ndarray]]:
    for link in model.links:
        joint = KINDS[link.kind]
        yield link, q[..., link.q_start : link.q_start + joint.nq], v[..., link.start : link.start + joint.nv]


def _sizes(model: CanonicalModel) -> tuple[int, int]:
    return model.nq, model.nv


def _checked(model: CanonicalModel, name: str, value: Any, which: int) -> np.ndarray:
    size = _sizes(model)[which]
    refuse_foreign(name, value)
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "iufb" or array.ndim == 0 or array.shape[-1] != size:
        raise ArgumentError(
            f"{name} has shape {array.shape} and type {array.dtype}, expected real numbers of shape (..., {size})."
        )
    return array if array.dtype.kind == "f" else array.astype(float)


def _unit(link: CanonicalLink, quaternion: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(quaternion, axis=-1, keepdims=True)
    if not (np.isfinite(norm).all() and (norm > 0).all()):
        raise ArgumentError(
            f"the quaternion of the joint of {link.name!r} is zero or not finite, expected xyzw of any other length: "
            f"start from robot.neutral()."
        )
    return quaternion / norm


def _multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of quaternions xyzw: first b, then a."""
    av, aw, bv, bw = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    vector = aw * bv + bw * av + np.cross(av, bv)
    return np.concatenate([vector, aw * bw - (av * bv).sum(axis=-1, keepdims=True)], axis=-1)


def _conjugate(a: np.ndarray) -> np.ndarray:
    return a * np.array([-1.0, -1.0, -1.0, 1.0], a.dtype)


def _rotate(quaternion: np.ndarray, vector: np.ndarray) -> np.ndarray:
    axis, w = quaternion[..., :3], quaternion[..., 3:]
    twice = 2.0 * np.cross(axis, vector)
    return vector + w * twice + np.cross(axis, twice)


def _exponential(w: np.ndarray) -> np.ndarray:
    """The quaternion of a rotation vector."""
    angle = np.linalg.norm(w, axis=-1, keepdims=True)
    return np.concatenate([0.5 * np.sinc(angle / (2.0 * np.pi)) * w, np.cos(0.5 * angle)], axis=-1)


def _logarithm(quaternion: np.ndarray) -> np.ndarray:
    """The rotation vector of a quaternion, no longer than pi."""
    quaternion = np.where(quaternion[..., 3:] < 0, -quaternion, quaternion)
    sine = np.linalg.norm(quaternion[..., :3], axis=-1, keepdims=True)
    angle = 2.0 * np.arctan2(sine, quaternion[..., 3:])
    small = sine < 1e-8
    return quaternion[..., :3] * np.where(
        small, 2.0 / quaternion[..., 3:].clip(0.5), angle / np.where(small, 1.0, sine)
    )


def _left_jacobian(w: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The way of a point that moves with v while its frame turns by w: v + a w x v + b w x (w x v)."""
    angle = np.linalg.norm(w, axis=-1, keepdims=True)
    square = np.where(angle > 0, angle * angle, 1.0)
    a = 0.5 * np.sinc(angle / (2.0 * np.pi)) ** 2  # (1 - cos) / angle^2
    b = np.where(angle < 1e-3, 1.0 / 6.0 - angle * angle / 120.0, (1.0 - np.sinc(angle / np.pi)) / square)
    turned = np.cross(w, v)
    return v + a * turned + b * np.cross(w, turned)


def _inverse_left_jacobian(w: np.ndarray, v: np.ndarray) -> np.ndarray:
    angle = np.linalg.norm(w, axis=-1, keepdims=True)
    half = 0.5 * angle
    square = np.where(angle > 0, angle * angle, 1.0)
    near = angle < 1e-3
    cotangent = half / np.tan(np.where(near, 1.0, half))
    c = np.where(near, 1.0 / 12.0 + angle * angle / 720.0, (1.0 - cotangent) / square)
    turned = np.cross(w, v)
    return v - 0.5 * turned + c * np.cross(w, turned)


def _planar(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    zero = np.zeros_like(w)
    return np.stack(np.broadcast_arrays(zero, zero, w), axis=-1), np.stack(np.broadcast_arrays(x, y, zero), axis=-1)


def _integrate_planar(q: np.ndarray, moved: np.ndarray) -> np.ndarray:
    way = _left_jacobian(*_planar(moved[..., 0], moved[..., 1], moved[..., 2]))
    c, s = np.cos(q[..., 0]), np.sin(q[..., 0])
    x, y = way[..., 0], way[..., 1]
    moved_to = (q[..., 0] + moved[..., 0], q[..., 1] + c * x - s * y, q[..., 2] + s * x + c * y)
    return np.stack(np.broadcast_arrays(*moved_to), axis=-1)


def _difference_planar(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    turn = end[..., 0] - start[..., 0]
    turn = turn - 2.0 * np.pi * np.round(turn / (2.0 * np.pi))  # no constant rate leads elsewhere by a whole turn
    c, s = np.cos(start[..., 0]), np.sin(start[..., 0])
    dx, dy = end[..., 1] - start[..., 1], end[..., 2] - start[..., 2]
    way = _inverse_left_jacobian(*_planar(turn, c * dx + s * dy, c * dy - s * dx))
    return np.stack(np.broadcast_arrays(turn, way[..., 0], way[..., 1]), axis=-1)
