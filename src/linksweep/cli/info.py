"""`linksweep info`: what a robot is made of."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from linksweep.cli.common import AsJson, RobotName, Root, find_robot

if TYPE_CHECKING:
    from linksweep.robot import Robot


def info(
    robot: RobotName,
    root: Root = None,
    as_json: AsJson = False,
) -> None:
    """Say what a robot is made of: joints, links, frames, and the methods it supports."""
    facts = _facts(find_robot(robot, root))
    if as_json:
        print(json.dumps(facts, indent=2, allow_nan=False))
    else:
        _print_facts(facts)


def _facts(robot: Robot) -> dict[str, Any]:
    """What `info` prints, as plain JSON values; an absent limit is null. Joints are in coordinate order."""
    model = robot.model
    joints = []
    for index in model.document_order:
        link = model.links[index]
        joint = link.joint
        joints.append(
            {
                "name": joint.name,
                "kind": joint.kind,
                "parent": model.base if link.parent < 0 else model.links[link.parent].name,
                "link": link.name,
                "mass": link.inertial.mass,
                "lower": _or_none(joint.limits.lower),
                "upper": _or_none(joint.limits.upper),
                "armature": joint.armature,
            }
        )
    return {
        "name": model.name,
        "nq": robot.nq,
        "nv": robot.nv,
        "gravity": list(map(float, robot.gravity)),
        "base": model.base,
        "joints": joints,
        "frames": list(robot.frame_names),
        "methods": {name: list(robot.methods(name)) for name in ("inverse_dynamics", "forward_dynamics")},
    }


def _or_none(limit: float) -> float | None:
    return None if abs(limit) == float("inf") else limit


def _print_facts(facts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    mass = sum(joint["mass"] for joint in facts["joints"])
    table = Table(title=Text(f"{facts['name']}: {facts['nv']} freedoms, {mass:.4g} kg moving"), title_justify="left")
    for heading in ("joint", "kind", "parent", "link"):
        table.add_column(heading)
    for heading in ("mass (kg)", "armature", "lower", "upper"):
        table.add_column(heading, justify="right")
    for joint in facts["joints"]:
        limits = ("–" if joint[end] is None else f"{joint[end]:.4g}" for end in ("lower", "upper"))
        numbers = (f"{joint['mass']:.4g}", f"{joint['armature']:.4g}", *limits)
        # Text, because a "[" in a file's names is no markup
        words = (Text(joint[key]) for key in ("name", "kind", "parent", "link"))
        table.add_row(*words, *numbers)
    Console().print(table)
    print("gravity:", *facts["gravity"], "m/s²")
    print("frames:", ", ".join(facts["frames"]))
    for quantity, methods in facts["methods"].items():
        print(f"{quantity}:", ", ".join(methods))
