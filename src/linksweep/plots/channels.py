"""What a plotted number is: its joint, its unit, and its limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from linksweep.description.model import Joint, Model
from linksweep.errors import ArgumentError
from linksweep.joints.kind import unit_of
from linksweep.support.messages import is_one_of, nearest, shown

from ..robot.robot import Robot, checked_robot

TITLES = {"q": "joint positions", "qd": "joint velocities", "qdd": "joint accelerations", "tau": "joint torques"}
QUANTITIES = {
    "rad": "angle", "m": "position", "rad/s": "velocity", "m/s": "velocity", "rad/s²": "acceleration",
    "m/s²": "acceleration", "N m": "torque", "N": "force",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Channel:
    """One plotted number; `unit` may be empty, limits infinite. quantity: what the axis calls it, such as "torque"."""

    name: str
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    quantity: str = ""


def described(robot: Robot) -> Model:
    """The description of a Robot."""
    return checked_robot(robot, "a plot").model


def channels(robot: Robot, quantity: str) -> tuple[Channel, ...]:
    """One for each entry of q, qd, qdd or tau, in their order, with the joints' own limits."""
    if not is_one_of(quantity, TITLES):
        raise ArgumentError(
            f"the quantity is {shown(quantity)}{nearest(quantity, TITLES)}, expected one of {', '.join(TITLES)}."
        )
    joints = {link.joint.name: link.joint for link in described(robot).links}
    return tuple(channel for name in robot.joint_names for channel in _of_joint(joints[name], quantity))


def _of_joint(joint: Joint, quantity: str) -> tuple[Channel, ...]:
    bounds = _limits(joint, quantity) if joint.type.euclidean else (-math.inf, math.inf)
    entries = joint.type.coordinates if quantity == "q" else joint.type.rates
    units = [unit_of(entry, quantity) for entry in entries]
    return tuple(
        Channel(f"{joint.name} {entry.title}".rstrip(), unit, *bounds, QUANTITIES.get(unit, ""))
        for entry, unit in zip(entries, units, strict=True)
    )


def _limits(joint: Joint, quantity: str) -> tuple[float, float]:
    limits = joint.limits
    if quantity == "q":
        return (limits.lower, limits.upper) if joint.type.limited else (-math.inf, math.inf)
    size = {"qd": limits.velocity, "tau": limits.effort}.get(quantity, math.inf)
    return -size, size
