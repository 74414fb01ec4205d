"""Moving along rates, over any scalar: what is traced into steps in time and into descents.

Coordinates and rates are flat lists in the order of the robot's coordinates. coordinates.py does the same with NumPy
arrays, and checks them.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..joints.groups import Values
from ..spatial.scalars import Scalar
from .canonical import CanonicalModel


def joined(entries: Iterable[tuple[slice, Values]]) -> list[Scalar]:
    """What each joint has, in the places that it has."""
    parts = sorted(entries, key=lambda entry: entry[0].start)
    return [x for _, values in parts for x in values]


def moved(model: CanonicalModel, q: Values, step: Values) -> list[Scalar]:
    """Coordinates after moving with the constant rates step / dt for a time dt."""
    return joined((k.coordinates, k.type.integrate(q[k.coordinates], step[k.rates])) for k in model.joints)


def normalized(model: CanonicalModel, q: Values) -> list[Scalar]:
    return joined((k.coordinates, k.type.normalized(q[k.coordinates])) for k in model.joints)


__all__ = ["Values", "joined", "moved", "normalized"]
