"""What a plotted number is: its joint, its unit, and its limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from linksweep.description.model import Joint, Model
from linksweep.errors import ArgumentError
from linksweep.mechanism.joints import KINDS
from linksweep.support.messages import nearest, shown

TITLES = {"q": "joint positions", "qd": "joint velocities", "qdd": "joint accelerations", "tau": "joint torques"}
_TURN = {"q": "rad", "qd": "rad/s", "qdd": "rad/s²", "tau": "N m"}
_SLIDE = {"q": "m", "qd": "m/s", "qdd": "m/s²", "tau": "N"}
QUANTITIES = {
    "rad": "angle", "m": "position", "rad/s": "velocity", "m/s": "velocity", "rad/s²": "acceleration",
    "m/s²": "acceleration", "N m": "torque", "N": "force",
}  # fmt: skip
# the freedoms of joints that have several: their names, and how many of the first ones turn
_RATES = {
    "planar": (("turn", "x", "y"), 1),
    "spherical": (("x", "y", "z"), 3),
    "free": (("turn x", "turn y", "turn z", "x", "y", "z"), 3),
}
_QUATERNION = ("quaternion x", "quaternion y", "quaternion z", "quaternion w")


@dataclass(frozen=True, slots=True)
class Channel:
    """One plotted number; `unit` may be empty, limits infinite. quantity: what the axis calls it, such as "torque"."""

    name: str
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    quantity: str = ""


def described(robot: Any) -> Model:
    """The description of a Robot, or of the robot behind a CoupledRobot."""
    return (robot.robot if hasattr(robot, "expand") else robot).model


def channels(robot: Any, quantity: str) -> tuple[Channel, ...]:
    """One for each entry of q, qd, qdd or tau, in their order, with the joints' own limits."""
    if quantity not in TITLES:
        raise ArgumentError(
            f"the quantity is {shown(quantity)}{nearest(quantity, TITLES)}, expected one of {', '.join(TITLES)}."
        )
    joints = {link.joint.name: link.joint for link in described(robot).links}
    return tuple(channel for name in robot.joint_names for channel in _of_joint(joints[name], quantity))


def _of_joint(joint: Joint, quantity: str) -> tuple[Channel, ...]:
    if KINDS[joint.kind].nv == 1:
        unit = (_SLIDE if joint.kind == "prismatic" else _TURN)[quantity]
        return (Channel(joint.name, unit, *_limits(joint, quantity), QUANTITIES[unit]),)
    names, turning = _RATES[joint.kind]
    units = [(_TURN if k < turning else _SLIDE)[quantity] for k in range(len(names))]
    if quantity == "q" and joint.kind != "planar":
        names, units = (*_QUATERNION, *names[3:]), [""] * 4 + units[3:]
    return tuple(
        Channel(f"{joint.name} {name}", unit, quantity=QUANTITIES.get(unit, ""))
        for name, unit in zip(names, units, strict=True)
    )


def _limits(joint: Joint, quantity: str) -> tuple[float, float]:
    limits = joint.limits
    if quantity == "q":
        return limits.lower, limits.upper
    size = {"qd": limits.velocity, "tau": limits.effort}.get(quantity, math.inf)
    return -size, size
