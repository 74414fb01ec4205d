"""The kinds of joints: one class for each, and the one place that lists them."""

from __future__ import annotations

from ..errors import DescriptionError
from ..support.messages import listing, nearest, shown
from .cylindrical import Cylindrical
from .kind import JointKind
from .one_freedom import Helical, Prismatic, Revolute
from .planar import Planar
from .quaternion import Free, Spherical
from .universal import Universal

Kind = type[JointKind]
KINDS: dict[str, Kind] = {
    kind.name: kind for kind in (Revolute, Prismatic, Helical, Cylindrical, Universal, Planar, Spherical, Free)
}


def kind_of(name: str) -> Kind:
    """The kind that descriptions call so."""
    try:
        return KINDS[name]
    except (KeyError, TypeError):
        raise DescriptionError(
            f"there is no joint of kind {shown(name)}{nearest(name, KINDS)}, expected {listing(KINDS)}."
        ) from None


__all__ = ["KINDS", "JointKind", "Kind", "kind_of"]
