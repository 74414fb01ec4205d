"""Robot models that come with the package, by name. Each file names the sources of its values."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linksweep.model.model import Model


def names() -> tuple[str, ...]:
    """Return the names of the bundled robots: five arms in use today, then those of the papers."""
    return ("panda", "ur5e", "ur10e", "iiwa14", "gen3", "puma560", "six_axis", "stanford")


def model(name: str) -> Model:
    """Return the Model of the bundled robot `name`."""
    if name not in names():
        from linksweep.errors import ArgumentError
        from linksweep.support.messages import listing, nearest, shown

        raise ArgumentError(
            f"no bundled robot is called {shown(name)}{nearest(name, names())}, expected {listing(names())}."
        )
    from linksweep.model.formats.dh import parse_toml

    file = f"{name}.toml"
    return parse_toml((resources.files(__name__) / file).read_text(encoding="utf-8"), file)
