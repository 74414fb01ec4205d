"""What a format cannot hold of a description, said when it is written."""

from __future__ import annotations

from linksweep.description.model import Model
from linksweep.errors import ModelWarning, warn_user
from linksweep.support.messages import listing

GRAVITY = (0.0, 0.0, -9.81)  # which `load` takes unless told otherwise


def warn_of_gravity(model: Model, what: str, function: str) -> None:
    """Of a gravity that a reader would not assume."""
    if model.gravity != GRAVITY:
        warn_user(
            f"{function}: {what} has no gravity, so that of {model.name!r}, {model.gravity}, is left out, and "
            f"{GRAVITY} will be read: set it again with robot.with_gravity.",
            ModelWarning,
        )


def warn_of_ties(model: Model, what: str, function: str) -> None:
    """Warnings that name the constraints and springs of a robot, and its passive joints, which are not written."""
    passive = [link.joint.name for link in model.links if not link.joint.actuated]
    if passive:
        warn_user(
            f"{function}: {what} does not say which joints have motors, so it is left out that {listing(passive)} of "
            f"{model.name!r} are passive: name the others again with robot.with_actuated.",
            ModelWarning,
        )
    ties = [tie.label for tie in model.constraints]
    ties += [f"spring {spring.a} - {spring.b or 'world'}" for spring in model.springs]
    if ties:
        warn_user(
            f"{function}: {what} has no constraints and springs, so {listing(ties)} of {model.name!r} are left out: "
            f"what is written is the tree without them.",
            ModelWarning,
        )
