"""Descriptions that come with the package, by name."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linksweep.model.model import Model


def names() -> tuple[str, ...]:
    """The bundled descriptions, as `model` takes them."""
    return ("puma560", "six_axis", "stanford")


def model(name: str) -> Model:
    """The description bundled under `name`."""
    if name not in names():
        from linksweep.errors import ArgumentError
        from linksweep.support.messages import listing, nearest, shown

        raise ArgumentError(
            f"no bundled robot is called {shown(name)}{nearest(name, names())}, expected {listing(names())}."
        )
    from linksweep.model.formats.dh import parse_toml

    file = f"{name}.toml"
    return parse_toml((resources.files(__name__) / file).read_text(encoding="utf-8"), file)
