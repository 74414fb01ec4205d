"""A Model as URDF text: links with inertials, joints with limits and dynamics, frames as fixed joints.

Numbers are written with all their digits. URDF has no motor inertia and no torque offset: `armature` and
`torque_offset` of `<dynamics>` are read back here and overlooked by others. It has no gravity either.
"""

from __future__ import annotations

import math
from xml.sax.saxutils import quoteattr

from linksweep.description.model import BASE, Coupling, Inertial, Joint, Limits, Matrix, Model, Placement, Vector
from linksweep.errors import ArgumentError
from linksweep.formats.left_out import warn_of_gravity, warn_of_ties

NO_BOUND = 1e308  # URDF has no infinity
DYNAMICS = ("damping", "friction", "armature", "torque_offset")  # attributes of <dynamics>; the last two are ours


def to_urdf(model: Model) -> str:
    """URDF text of `model`; a spherical or helical joint is an `ArgumentError`, because URDF has none.

    Of constraints, springs and another gravity, which it has not either, a warning says that they are left out. A link
    whose named frame stands away from its joint becomes a body "<link>_body" at the joint with that frame on it.
    """
    warn_of_ties(model, "URDF", "to_urdf")
    warn_of_gravity(model, "URDF", "to_urdf")
    laws = {law.joint: law for law in model.couplings}
    own = {frame.name: frame for frame in model.frames}
    taken = {*own, *(link.name for link in model.links)}
    bodies = {BASE: model.base}
    for index, link in enumerate(model.links):
        # a link's named frame may stand away from its joint (standard DH): then its body gets a name of its own
        away = own[link.name].placement != Placement()
        bodies[index] = _unused(f"{link.name}_body", taken) if away else link.name
    lines = ['<?xml version="1.0"?>', f"<robot name={_text(model.name)}>"]
    lines += _link(model.base, model.base_inertial)
    for index in model.document_order:
        link = model.links[index]
        lines += _link(bodies[index], link.inertial)
        lines += _joint(link.joint, bodies[link.parent], bodies[index], laws.get(link.joint.name))
    joints = {link.joint.name for link in model.links}
    for frame in model.frames:
        if frame.name != bodies[frame.link]:
            mount = Joint(_unused(f"{frame.name}_mount", joints), "fixed", placement=frame.placement)
            lines += _link(frame.name, Inertial())
            lines += _joint(mount, bodies[frame.link], frame.name)
    return "\n".join([*lines, "</robot>", ""])


def to_srdf(model: Model) -> str:
    """SRDF text with the motor inertias of `model`, seen at the joints, as Pinocchio's loadRotorParameters reads it."""
    rows = [
        f'    <joint name={_text(joint.name)} mass="{float(joint.armature)!r}" gear_ratio="1.0"/>'
        for joint in (model.links[index].joint for index in model.document_order)
        if joint.armature
    ]
    return "\n".join(
        ['<?xml version="1.0"?>', f"<robot name={_text(model.name)}>", "  <rotor_params>", *rows, "  </rotor_params>",
         "</robot>", ""]
    )  # fmt: skip


def rpy_from_rotation(rotation: Matrix) -> Vector:
    """Roll, pitch and yaw with Rz(yaw) Ry(pitch) Rx(roll) = rotation, exact near pitch = +-pi/2 too."""
    yaw = math.atan2(rotation[1][0], rotation[0][0])
    c, s = math.cos(yaw), math.sin(yaw)
    # what is left when the yaw is undone is Ry Rx, whatever error the yaw has where it is not determined
    first, second, third = rotation
    pitch = math.atan2(-third[0], c * first[0] + s * second[0])
    roll = math.atan2(s * first[2] - c * second[2], c * second[1] - s * first[1])
    return (roll, pitch, yaw)


def _link(name: str, inertial: Inertial) -> list[str]:
    if inertial == Inertial():
        return [f"  <link name={_text(name)}/>"]
    return [f"  <link name={_text(name)}>", *inertial_lines(inertial, "    "), "  </link>"]


def inertial_lines(inertial: Inertial, indent: str) -> list[str]:
    """The <inertial> of a link."""
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertial.inertia
    moments = {"ixx": xx, "iyy": yy, "izz": zz, "ixy": xy, "ixz": xz, "iyz": yz}
    return [
        f"{indent}<inertial>",
        f'{indent}  <origin xyz="{_numbers(inertial.com)}"/>',
        f'{indent}  <mass value="{float(inertial.mass)!r}"/>',
        f"{indent}  <inertia {_attributes(moments)}/>",
        f"{indent}</inertial>",
    ]


def _joint(joint: Joint, parent: str, child: str, law: Coupling | None = None) -> list[str]:
    kind = "fixed" if joint.kind == "fixed" else joint.type.urdf
    if kind is None:
        raise ArgumentError(
            f"joint {joint.name!r} is {joint.kind}, which URDF does not have, expected revolute, prismatic, planar or "
            "free joints: lock it first, or keep the robot in its own format."
        )
    unbounded = kind == "revolute" and math.isinf(joint.limits.lower) and math.isinf(joint.limits.upper)
    kind = "continuous" if unbounded else kind
    rotation, position = joint.placement.rotation, joint.placement.position
    lines = [
        f"  <joint name={_text(joint.name)} type={_text(kind)}>",
        f'    <origin xyz="{_numbers(position)}" rpy="{_numbers(rpy_from_rotation(rotation))}"/>',
        f"    <parent link={_text(parent)}/>",
        f"    <child link={_text(child)}/>",
    ]
    if kind not in ("fixed", "floating"):
        lines.append(f'    <axis xyz="{_numbers(joint.axis)}"/>')
    if kind in ("revolute", "prismatic") or (kind == "continuous" and joint.limits != Limits()):
        limits = {
            key: max(-NO_BOUND, min(NO_BOUND, getattr(joint.limits, key)))
            for key in ("lower", "upper", "velocity", "effort")
            if not (unbounded and key in ("lower", "upper"))
        }
        lines.append(f"    <limit {_attributes(limits)}/>")
    dynamics = {key: getattr(joint, key) for key in DYNAMICS if getattr(joint, key)}
    if dynamics:
        lines.append(f"    <dynamics {_attributes(dynamics)}/>")
    if law is not None:
        numbers = _attributes({"multiplier": law.multiplier, "offset": law.offset})
        lines.append(f"    <mimic joint={_text(law.leader)} {numbers}/>")
    return [*lines, "  </joint>"]


def _attributes(values: dict[str, float]) -> str:
    return " ".join(f'{key}="{float(value) + 0.0!r}"' for key, value in values.items())


def _numbers(vector: Vector) -> str:
    return " ".join(repr(float(x) + 0.0) for x in vector)


def _text(name: str) -> str:
    if any((ord(c) < 32 and c not in "\t\n\r") or "\ud800" <= c <= "\udfff" or c in "\ufffe\uffff" for c in name):
        raise ArgumentError(f"the name {name!r} holds a character that XML cannot, expected printable text: rename it.")
    return quoteattr(name)


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
