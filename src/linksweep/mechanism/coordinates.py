"""Coordinates and velocities: integration, differences between configurations, and quaternions.

Velocities are those of a link in its own frame. Revolute, prismatic and helical joints have q' = v. For a ball joint
and a free base q' = Omega(q) v (G. Rodriguez and K. Kreutz 1988, (b.3)-(b.5)), and a motion with constant velocity is
the exponential map of the group, exact for any step. Quaternions are xyzw and are normalised here; one that is zero or
not finite raises `ArgumentError`. The formulas of each joint type are in joints/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..model.model import Model
from ..spatial.scalars import Scalar, Values
from ..support.checks import real_array
from .canonical import CanonicalLink, CanonicalModel

Columns = list[np.ndarray]  # (..., 1) each, the scalars of these functions


def neutral(model: CanonicalModel) -> np.ndarray:
    return np.array([x for link in model.joints for x in link.type.neutral()])


def random(model: CanonicalModel, described: Model, rng: object) -> np.ndarray:
    if not isinstance(rng, np.random.Generator):
        raise ArgumentError(f"random got {type(rng).__name__}, expected a Generator: numpy.random.default_rng(seed).")
    q = np.zeros(model.nq)
    for link, link_described in zip(model.links, described.links, strict=True):
        if link.leads:
            limits = link_described.joint.limits
            q[link.coordinates] = link.type.random(rng, limits.lower, limits.upper)
    return q


def normalize(model: CanonicalModel, q: ArrayLike) -> np.ndarray:
    q = real_array("q", q, (..., model.nq))
    out = q.copy()
    for link in model.links:
        if link.type.has_quaternion:
            out[..., link.coordinates] = np.concatenate([np.asarray(x) for x in _normalized(link, q)], axis=-1)
    return out


def integrate(model: CanonicalModel, q: ArrayLike, v: ArrayLike, dt: ArrayLike) -> np.ndarray:
    q, v = real_array("q", q, (..., model.nq)), real_array("v", v, (..., model.nv))
    times = real_array("dt", dt, (...,), dtype=float)
    try:
        np.broadcast_shapes(q.shape[:-1], v.shape[:-1], times.shape)
    except ValueError:
        raise ArgumentError(
            f"the batch shapes of q {q.shape[:-1]}, v {v.shape[:-1]} and dt {times.shape} do not broadcast together, "
            f"expected lengths that are equal or 1 along each axis."
        ) from None
    moved, dtype = v * times[..., None], np.result_type(q, v)
    if model.is_euclidean:
        return (q + moved).astype(dtype, copy=False)

    def of_joint(link: CanonicalLink) -> Values:
        return link.type.integrate(_normalized(link, q), _columns(moved, link.rates))

    return _by_joint(model, q, moved, "coordinates", of_joint).astype(dtype, copy=False)


def difference(model: CanonicalModel, q0: ArrayLike, q1: ArrayLike) -> np.ndarray:
    a, b = real_array("q0", q0, (..., model.nq)), real_array("q1", q1, (..., model.nq))
    if model.is_euclidean:
        return b - a

    def of_joint(link: CanonicalLink) -> Values:
        return link.type.difference(_normalized(link, a), _normalized(link, b))

    return _by_joint(model, a, b, "rates", of_joint)


def coordinate_rates(model: CanonicalModel, q: ArrayLike, v: ArrayLike) -> np.ndarray:
    q, v = real_array("q", q, (..., model.nq)), real_array("v", v, (..., model.nv))
    if model.is_euclidean:
        return np.zeros_like(q) + v

    def of_joint(link: CanonicalLink) -> Values:
        _normalized(link, q)  # raises for an invalid quaternion
        return link.type.derivative(_columns(q, link.coordinates), _columns(v, link.rates))

    return _by_joint(model, q, v, "coordinates", of_joint)


def _by_joint(
    model: CanonicalModel, a: np.ndarray, b: np.ndarray, onto: str, of_joint: Callable[[CanonicalLink], Values]
) -> np.ndarray:
    """The columns that a function gives for each joint, side by side; onto: as "coordinates" or as "rates"."""
    size = model.nq if onto == "coordinates" else model.nv
    out = np.empty((*np.broadcast_shapes(a.shape[:-1], b.shape[:-1]), size), np.result_type(a, b))
    with np.errstate(divide="ignore", invalid="ignore"):  # in quotients that are not taken
        for link in model.links:
            for k, column in enumerate(of_joint(link), getattr(link, onto).start):
                out[..., k] = np.asarray(column)[..., 0]
    return out


def _columns(array: np.ndarray, places: slice) -> Columns:
    return [array[..., k : k + 1] for k in range(places.start, places.stop)]


def _normalized(link: CanonicalLink, q: np.ndarray) -> Values:
    """The columns of a joint, a quaternion among them of length 1."""
    own = _columns(q, link.coordinates)
    if not link.type.has_quaternion:
        return own
    norm = np.linalg.norm(q[..., link.q_start : link.q_start + 4], axis=-1)
    if not (np.isfinite(norm).all() and (norm > 0).all()):
        raise ArgumentError(
            f"the quaternion of the joint of {link.name!r} is zero or not finite, expected xyzw of any other length: "
            f"start from robot.neutral()."
        )
    return link.type.normalized(own)


# ---- over any scalar -------------------------------------------------------------------------------------------
# These are traced into simulation steps and inverse kinematics iterations. Coordinates and velocities are flat lists.


def joined(entries: Iterable[tuple[slice, Values]]) -> list[Scalar]:
    """The values of all joints as one flat list, in the order of their slices."""
    parts = sorted(entries, key=lambda entry: entry[0].start)
    return [x for _, values in parts for x in values]


def moved(model: CanonicalModel, q: Values, step: Values) -> list[Scalar]:
    """Coordinates after a motion with the constant velocities step / dt for a time dt."""
    return joined((k.coordinates, k.type.integrate(q[k.coordinates], step[k.rates])) for k in model.joints)


def normalized(model: CanonicalModel, q: Values) -> list[Scalar]:
    return joined((k.coordinates, k.type.normalized(q[k.coordinates])) for k in model.joints)
