"""What a format cannot hold of a description, said when it is written."""

from __future__ import annotations

import warnings

from linksweep.description.model import Model
from linksweep.errors import ModelWarning
from linksweep.support.messages import listing


def warn_of_ties(model: Model, what: str, function: str) -> None:
    """One warning that names the constraints and springs of a robot, which are not written."""
    ties = [tie.label for tie in model.constraints]
    ties += [f"spring {spring.a} - {spring.b or 'world'}" for spring in model.springs]
    if ties:
        warnings.warn(
            f"{function}: {what} has no constraints and springs, so {listing(ties)} of {model.name!r} are left out: "
            f"what is written is the tree without them.",
            ModelWarning,
            stacklevel=4,
        )
