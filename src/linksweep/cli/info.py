"""`linksweep info`: what a robot is made of."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypedDict

from linksweep.cli.common import AsJson, AskedRobot, find_robot, names_a_robot

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot

WIDTH = 80
LIMITS: Final = ("lower", "upper", "velocity", "effort")
LOSSES: Final = ("damping", "friction", "armature", "torque_offset")


class JointFacts(TypedDict):
    name: str
    kind: str
    axis: list[float] | None
    parent: str
    link: str
    mass: float
    lower: float | None
    upper: float | None
    velocity: float | None
    effort: float | None
    damping: float
    friction: float
    armature: float
    torque_offset: float


class MimicFacts(TypedDict):
    joint: str
    leader: str
    multiplier: float
    offset: float


class ConstraintFacts(TypedDict):
    name: str
    kind: str
    a: str
    b: str | None
    rows: int


class Facts(TypedDict):
    name: str
    nq: int
    nv: int
    gravity: list[float]
    base: str
    joints: list[JointFacts]
    mimic: list[MimicFacts]
    constraints: list[ConstraintFacts]
    springs: int
    actuated: list[str]
    frames: list[str]
    tips: list[str]
    tool: str | None
    tools: list[str]
    methods: dict[str, list[str]]


@names_a_robot
def info(
    robot: AskedRobot,
    as_json: AsJson = False,
) -> None:
    """Show a robot's joints, limits, links, frames and available methods."""
    facts = _facts(find_robot(robot))
    if as_json:
        print(json.dumps(facts, indent=2, allow_nan=False))
    else:
        print("\n".join(_lines(facts)))


def _facts(found: Robot) -> Facts:
    """What `info` prints, as plain JSON values; an absent limit is null. Joints are in coordinate order."""
    from linksweep.description.tips import tools

    model = found.model
    joints: list[JointFacts] = []
    for index in model.document_order:
        link = model.links[index]
        joint, limits = link.joint, link.joint.limits
        joints.append(
            {
                "name": joint.name,
                "kind": joint.kind,
                "axis": [float(x) for x in joint.axis] if joint.type.has_axis else None,
                "parent": model.base if link.parent < 0 else model.links[link.parent].name,
                "link": link.name,
                "mass": link.inertial.mass,
                "lower": _or_none(limits.lower),
                "upper": _or_none(limits.upper),
                "velocity": _or_none(limits.velocity),
                "effort": _or_none(limits.effort),
                "damping": joint.damping,
                "friction": joint.friction,
                "armature": joint.armature,
                "torque_offset": joint.torque_offset,
            }
        )
    may_be_tools = list(tools(model))
    return {
        "name": model.name,
        "nq": found.nq,
        "nv": found.nv,
        "gravity": list(map(float, found.gravity)),
        "base": model.base,
        "joints": joints,
        "mimic": [
            {"joint": law.joint, "leader": law.leader, "multiplier": law.multiplier, "offset": law.offset}
            for law in found.couplings
        ],
        "constraints": [
            {"name": tie.label, "kind": tie.kind, "a": tie.a, "b": tie.b or None, "rows": tie.rows}
            for tie in found.constraints
        ],
        "springs": len(model.springs),
        "actuated": list(found.actuated),
        "frames": list(found.frame_names),
        "tips": list(found.tips),
        "tool": may_be_tools[0] if len(may_be_tools) == 1 else None,
        "tools": may_be_tools,
        "methods": {name: list(found.methods(name)) for name in ("inverse_dynamics", "forward_dynamics")},
    }


def _or_none(limit: float) -> float | None:
    return None if math.isinf(limit) else limit


def _lines(facts: Facts) -> list[str]:
    """Plain text, so that a pipe of any width holds every name whole."""
    joints = facts["joints"]
    mass = sum(joint["mass"] for joint in joints)
    limits = [
        (joint["name"], joint["kind"], _axis(joint["axis"]), *(_number(joint[key]) for key in LIMITS))
        for joint in joints
    ]
    bodies = [
        (joint["name"], joint["parent"], joint["link"], *(_number(joint[key]) for key in ("mass", *LOSSES)))
        for joint in joints
    ]
    ties = [
        f"{law['joint']} follows {law['leader']}: {law['multiplier']:.6g} q + {law['offset']:.6g}"
        for law in facts["mimic"]
    ]
    ties += [
        f"constraint {tie['name']}: {tie['kind']} of {tie['a']} and {tie['b'] or 'the world'}, {tie['rows']} "
        f"row{'s' if tie['rows'] > 1 else ''}"
        for tie in facts["constraints"]
    ]
    ties += [f"springs between frames: {facts['springs']}"] if facts["springs"] else []
    led = {law["joint"] for law in facts["mimic"]}
    passive = [joint["name"] for joint in joints if joint["name"] not in led and joint["name"] not in facts["actuated"]]
    ties += _listed("passive joints", passive) if passive else []
    rows = sum(tie["rows"] for tie in facts["constraints"])
    dof = f"{facts['nv']} DOF" + (f" before {rows} rows of constraints" if rows else "")
    tool = [facts["tool"]] if facts["tool"] else [f"one of {len(facts['tools'])} that may be meant", *facts["tools"]]
    return [
        f"{facts['name']}: {len(joints)} joints, {dof}, moving mass {mass:.4g} kg",
        "",
        *_table(("joint", "kind", "axis", *LIMITS), limits, left=3),
        "",
        *_table(("joint", "parent", "link", "mass", *LOSSES), bodies, left=3),
        "",
        *ties,
        "gravity: " + " ".join(f"{x:g}" for x in facts["gravity"]) + " m/s²",
        *_listed("frames", facts["frames"]),
        *_listed("ends", facts["tips"]),
        *_listed("tool", tool),
        *(line for function, methods in facts["methods"].items() for line in _listed(function, methods)),
    ]


def _axis(axis: Sequence[float] | None) -> str:
    return "–" if axis is None else " ".join(f"{x:.3g}" for x in axis)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Columns as wide as they must be, the first `left` of them flush left, the numbers flush right."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    return [
        "  ".join(
            word.ljust(width) if k < left else word.rjust(width)
            for k, (word, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (headings, *rows)
    ]


def _listed(heading: str, names: Sequence[str]) -> list[str]:
    return textwrap.wrap(
        f"{heading}: {', '.join(names)}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
