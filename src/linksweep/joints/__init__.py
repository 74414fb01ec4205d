"""Joint types: one class each, listed in `KINDS`."""

from __future__ import annotations

from ..errors import DescriptionError
from ..support.messages import listing, nearest, shown
from .kind import JointKind
from .multi_dof import Free, Planar, Spherical, Universal
from .screws import Cylindrical, Helical, Prismatic, Revolute

Kind = type[JointKind]
KINDS: dict[str, Kind] = {
    kind.name: kind for kind in (Revolute, Prismatic, Helical, Cylindrical, Universal, Planar, Spherical, Free)
}


def kind_of(name: str) -> Kind:
    """Return the joint type of this name."""
    try:
        return KINDS[name]
    except (KeyError, TypeError):
        raise DescriptionError(
            f"unknown joint type {shown(name)}{nearest(name, KINDS)}, expected {listing(KINDS)}."
        ) from None


__all__ = ["KINDS", "JointKind", "Kind", "kind_of"]
