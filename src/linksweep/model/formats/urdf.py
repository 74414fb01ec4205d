"""URDF: the dynamics part of the Unified Robot Description Format. Meshes and materials are never opened.

https://docs.ros.org/en/rolling/p/urdfdom/ and https://wiki.ros.org/urdf/XML give the defaults used here.
"""

from __future__ import annotations

import math
import os
import re
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import cast
from xml.sax.saxutils import quoteattr

from linksweep.errors import ArgumentError, DescriptionError, ModelWarning, warn_user
from linksweep.joints.groups import rotation_entries
from linksweep.model.assembly import FREEDOMS, LARGEST, Part, assemble, check_name
from linksweep.model.constraints import coupled
from linksweep.model.formats.files import Element, check_xml_text, parse, read_bytes, warn_of_gravity, warn_of_ties
from linksweep.model.formats.urdf_loops import WRITTEN, loop_lines, read_couplings, rpy_from_rotation, with_loops
from linksweep.model.model import (
    BASE,
    Coupling,
    Inertial,
    Joint,
    Limits,
    Matrix,
    Model,
    Placement,
    Vector,
    multiply,
    rotated,
    snap,
    symmetric,
)
from linksweep.model.semantics import JointData, Semantics
from linksweep.support.messages import listing, nearest, shown

KINDS = {
    "revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "fixed": "fixed", "floating": "free",
    "planar": "planar",
}  # fmt: skip
DECLARATIONS = ("xacro:arg", "xacro:property")  # that nothing else uses, once all else is expanded
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
VERSIONS = ("1", "1.0", "1.1", "1.2")
NOT_FINITE = re.compile(r"[+-]?(inf|infinity|nan)", re.IGNORECASE)


def read_urdf(
    path_or_text: str | bytes | os.PathLike[str], *, gravity: Vector = (0.0, 0.0, -9.81), rigid: bool = False,
    couple: bool = False, source: str = "URDF text",
) -> Model:  # fmt: skip
    """Return the Model of a URDF file, or of URDF text (bytes, or a str with '<' near its start).

    Continuous joints become revolute joints without limits, floating joints free joints, and the axis of a planar joint
    is the normal of its plane. Mimic joints are independent coordinates, with a warning, unless `couple` is True.
    Coordinates follow the order of joints in the file. `rigid`: accept a robot without moving joints, for a base that
    will float. `source`: the name of text in messages.
    """
    encoding = None
    if isinstance(path_or_text, bytes):
        data = path_or_text
    elif isinstance(path_or_text, str) and ("<" in path_or_text[:100] or "\n" in path_or_text):
        # decoded already, so an encoding in its XML declaration no longer applies
        data, encoding = path_or_text.lstrip("\ufeff").encode("utf-8", "surrogatepass"), "utf-8"
    elif isinstance(path_or_text, (str, os.PathLike)):
        source = str(Path(path_or_text))
        _refuse_xacro(source.lower().endswith(".xacro"), source)
        data = read_bytes(Path(path_or_text))
    else:
        raise DescriptionError(f"the URDF is {path_or_text!r:.60}, expected a path or text.")
    return _Reader(source).model(parse(data, source, encoding), gravity, rigid, couple)


def inertial_of(link: Element, source: str) -> Inertial:
    """Return the <inertial> of a <link> of the file `source`."""
    return _Reader(source).inertial(link)


def rotation_from_rpy(roll: float, pitch: float, yaw: float) -> Matrix:
    """Rz(yaw) Ry(pitch) Rx(roll): turns about the fixed axes x, y, z, in this order."""
    (cr, sr), (cp, sp), (cy, sy) = ((math.cos(t), math.sin(t)) for t in (roll, pitch, yaw))
    about_x = ((1.0, 0.0, 0.0), (0.0, cr, -sr), (0.0, sr, cr))
    about_y = ((cp, 0.0, sp), (0.0, 1.0, 0.0), (-sp, 0.0, cp))
    about_z = ((cy, -sy, 0.0), (sy, cy, 0.0), (0.0, 0.0, 1.0))
    return snap(multiply(about_z, multiply(about_y, about_x)))


def rotation_from_quaternion(x: float, y: float, z: float, w: float) -> Matrix:
    """The rotation of a quaternion of any length but zero."""
    a, b, c, d, e, f, g, h, i = cast(tuple[float, ...], rotation_entries([x, y, z, w]))
    return snap(((a, b, c), (d, e, f), (g, h, i)))


def uses_xacro(root: Element) -> bool:
    """Whether elements use xacro macros. Expanded files may keep declarations and the xmlns:xacro attribute."""
    return _first_macro(root) is not None


def _first_macro(root: Element) -> Element | None:
    waiting = deque([root])
    while waiting:
        element = waiting.popleft()
        if element.tag in DECLARATIONS:
            continue
        if element.tag.startswith("xacro:") or any("${" in value for value in element.attributes.values()):
            return element
        waiting.extend(element.children)
    return None


def _refuse_xacro(is_xacro: bool, where: str) -> None:
    if is_xacro:
        raise DescriptionError(
            f"{where}: this is xacro, a macro language, expected plain URDF: expand it first (xacro "
            "robot.urdf.xacro > robot.urdf)."
        )


def _content(element: Element) -> tuple[object, ...]:
    """Return the content of an element for comparisons: attributes with numbers converted, and children."""
    values = {
        key: [float(word) if NUMBER.fullmatch(word) else word for word in value.split()]
        for key, value in element.attributes.items()
    }
    return element.tag, values, [_content(child) for child in element.children]


class _Reader:
    """Reads elements; errors have the file `source` and the line."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.version = "1.0"

    def fail(self, element: Element, message: str) -> DescriptionError:
        return DescriptionError(f"{self.source}, line {element.line}: {message}")

    def model(self, root: Element, gravity: Vector, rigid: bool, couple: bool) -> Model:
        """Return the Model. A warning names mimic joints that are not coupled."""
        if root.tag != "robot":
            raise self.fail(root, f"this is not a URDF file: the root element is <{root.tag}>, expected <robot>.")
        self.refuse_macros(root)
        self.version = root.attributes.get("version", self.version).strip()
        if self.version not in VERSIONS:
            raise self.fail(root, f"the version of the URDF is {shown(self.version)}, expected 1.0, 1.1 or 1.2.")
        links: dict[str, Element] = {}
        for element in root.all("link"):
            name = self.text(element, "name")
            if name in links:
                raise self.fail(element, f"the link name {name!r} is used twice, expected it once.")
            links[name] = element
        joints = list(root.all("joint"))
        drives = self.joint_data(root, joints)
        parts = [self.part(joint, links, drives) for joint in joints]
        mimics = [
            (part.joint, mimic)
            for part, joint in zip(parts, joints, strict=True)
            if FREEDOMS[part.joint.kind] and (mimic := self.one(joint, "mimic"))
        ]
        kinds = {part.joint.name: part.joint.kind for part in parts}
        laws = [self.law(joint, mimic, kinds) for joint, mimic in mimics] if couple else []
        base = self.base(root, links, parts)
        name = root.attributes.get("name") or "robot"
        base_inertial = self.inertial(links[base])
        tree = assemble(
            name, parts, base=base, base_inertial=base_inertial, gravity=gravity, source=self.source, rigid=rigid
        )
        fixed = tuple(part.joint.name for part in parts if not FREEDOMS[part.joint.kind])
        tree = replace(tree, semantics=Semantics(joint_data=tuple(drives.items()), fixed_joints=fixed))
        tree = with_loops(tree, root, self, rotation_from_rpy)
        ratios = read_couplings(tree, root, self)
        followers = [joint.name for joint, _ in mimics] + [coupling.joint for coupling in ratios]
        if followers and not couple:
            warn_user(
                f"{self.source}: the joints {listing(followers)} mimic others, which is not followed: they are free "
                "coordinates, so set them yourself or load with mimic='couple'.",
                ModelWarning,
            )
        return coupled(tree, [*laws, *ratios]) if couple and (laws or ratios) else tree

    def law(self, joint: Joint, mimic: Element, kinds: dict[str, str]) -> Coupling:
        leader = self.text(mimic, "joint")
        if leader == joint.name or not (FREEDOMS.get(kinds.get(leader, ""), 0) == FREEDOMS[joint.kind] == 1):
            raise self.fail(
                mimic,
                f"joint {joint.name!r} mimics {leader!r}, expected both to be different 1-DOF joints.",
            )
        multiplier, offset = self.number(mimic, "multiplier", 1.0), self.number(mimic, "offset", 0.0)
        return Coupling(joint.name, leader, multiplier, offset)

    def refuse_macros(self, root: Element) -> None:
        """Raise if macros are left."""
        macro = _first_macro(root)
        if macro is not None:
            _refuse_xacro(True, f"{self.source}, line {macro.line}")

    def base(self, root: Element, links: dict[str, Element], parts: list[Part]) -> str:
        children = {part.link for part in parts}
        roots = [name for name in links if name not in children]
        if len(roots) == 1:
            return roots[0]
        if not links:
            raise self.fail(root, "the robot has no links, expected at least two.")
        if not roots:
            raise self.fail(
                root,
                "every link has a parent, expected one base link without: cut the loop at one joint.",
            )
        raise self.fail(
            links[roots[1]],
            f"the links {listing(roots)} have no parent joint, expected exactly one base link.",
        )

    def joint_data(self, root: Element, joints: list[Element]) -> dict[str, JointData]:
        """Return what the file states of drives, for joints with such elements."""
        drives: dict[str, JointData] = {}
        for element in joints:
            safety, calibration = (next(element.all(tag), None) for tag in ("safety_controller", "calibration"))
            drive = JointData()
            for source, attributes in (
                (safety, {"soft_lower_limit": "soft_lower", "soft_upper_limit": "soft_upper",
                          "k_position": "k_position", "k_velocity": "k_velocity"}),
                (calibration, {"rising": "rising", "falling": "falling"}),
            ):  # fmt: skip
                for key, field in attributes.items():
                    if source is not None and NUMBER.fullmatch(word := source.attributes.get(key, "").strip()):
                        drive = replace(drive, **{field: float(word)})
            if drive != JointData():
                drives[self.text(element, "name")] = drive
        for element in root.all("transmission"):
            driven = [joint.attributes["name"] for joint in element.all("joint") if joint.attributes.get("name")]
            actuators = list(element.all("actuator"))
            if len(driven) != 1 or len(actuators) != 1:
                continue  # differentials and the like have no ratio of one joint
            interfaces = tuple(
                tag.text.strip() for tag in next(element.all("joint")).all("hardwareInterface") if tag.text.strip()
            )
            drives[driven[0]] = replace(
                drives.get(driven[0], JointData()), hardware_interfaces=interfaces,
                gear_ratio=self.ratio(element, actuators[0]),
                rotor_inertia=self.value(actuators[0], "drake:rotor_inertia"),
            )  # fmt: skip
        return drives

    def ratio(self, transmission: Element, actuator: Element) -> float | None:
        """Return the gear ratio of a transmission: Drake's, or ROS's mechanicalReduction."""
        drake = self.value(actuator, "drake:gear_ratio")
        if drake is not None:
            return drake
        joint = next(transmission.all("joint"))
        for tag in (*actuator.children, *joint.children, *transmission.children):
            if tag.tag in ("mechanicalReduction", "mechanical_reduction") and NUMBER.fullmatch(tag.text.strip()):
                return float(tag.text)
        return None

    def value(self, element: Element, tag: str) -> float | None:
        child = self.one(element, tag)
        return None if child is None else self.number(child, "value")

    def armature(self, name: str, dynamics: Element | None, drives: dict[str, JointData]) -> float:
        """Return the motor inertia at the joint: of <dynamics> (linksweep, RaiSim), or of Drake's actuator."""
        for key in ("armature", "rotor_inertia"):
            if dynamics is not None and key in dynamics.attributes:
                return self.number(dynamics, key)
        drive = drives.get(name, JointData())
        ratio = 1.0 if drive.gear_ratio is None else drive.gear_ratio
        return 0.0 if drive.rotor_inertia is None else drive.rotor_inertia * ratio**2

    def part(self, element: Element, links: dict[str, Element], drives: dict[str, JointData]) -> Part:
        name = self.text(element, "name")
        kind = self.text(element, "type")
        if kind not in KINDS:
            raise self.fail(
                element,
                f"joint {name!r} has type {shown(kind)}, expected {listing(KINDS)}.",
            )
        ends = []
        for tag in ("parent", "child"):
            end = self.required(element, tag, f"joint {name!r}")
            link = self.text(end, "link")
            if link not in links:
                raise self.fail(
                    end,
                    f"joint {shown(name)} names the {tag} link {shown(link)}, which is not described"
                    f"{nearest(link, links)}, expected one of {listing(links)}.",
                )
            ends.append(link)
        parent, child = ends
        axis = self.one(element, "axis")
        dynamics = self.one(element, "dynamics")
        joint = Joint(
            name,
            KINDS[kind],
            (1.0, 0.0, 0.0) if axis is None else self.vector(axis, "xyz", (1.0, 0.0, 0.0)),
            self.origin(element),
            damping=0.0 if dynamics is None else self.number(dynamics, "damping", 0.0),
            friction=0.0 if dynamics is None else self.number(dynamics, "friction", 0.0),
            armature=self.armature(name, dynamics, drives),
            limits=self.limits(element, kind),
            torque_offset=0.0 if dynamics is None else self.number(dynamics, "torque_offset", 0.0),  # ours too
        )
        return Part(child, parent, joint, self.inertial(links[child]), element.line)

    def limits(self, joint: Element, kind: str) -> Limits:
        limit = self.one(joint, "limit")
        if limit is None or kind in ("fixed", "floating", "planar"):
            return Limits()
        inf = math.inf
        velocity, effort = (self.bound(limit, what, inf) for what in ("velocity", "effort"))
        if kind == "continuous":
            return Limits(velocity=velocity, effort=effort)
        lower, upper = (self.bound(limit, what, 0.0) for what in ("lower", "upper"))
        return Limits(lower, upper, velocity, effort)

    def bound(self, limit: Element, key: str, default: float) -> float:
        value = self.number(limit, key, default, finite=False)  # URDF has no infinity: what is larger than any is one
        return math.copysign(math.inf, value) if abs(value) >= LARGEST else value

    def inertial(self, link: Element) -> Inertial:
        element = self.one(link, "inertial")
        if element is None:
            return Inertial()
        what = f"the inertial of link {link.attributes.get('name')!r}"
        mass = self.number(self.required(element, "mass", what), "value")
        inertia = self.required(element, "inertia", what)
        moments = symmetric(
            *(self.number(inertia, key) for key in ("ixx", "iyy", "izz")),
            *(self.number(inertia, key, 0.0) for key in ("ixy", "ixz", "iyz")),
        )
        origin = self.origin(element)
        return Inertial(mass, origin.position, rotated(moments, origin.rotation))

    def origin(self, element: Element) -> Placement:
        origin = self.one(element, "origin")
        if origin is None:
            return Placement()
        position = self.vector(origin, "xyz", (0.0, 0.0, 0.0))
        if "quat_xyzw" in origin.attributes:
            return Placement(self.quaternion(origin), position)
        return Placement(rotation_from_rpy(*self.vector(origin, "rpy", (0.0, 0.0, 0.0))), position)

    def quaternion(self, origin: Element) -> Matrix:
        if self.version in ("1", "1.0"):
            raise self.fail(
                origin,
                "<origin> has 'quat_xyzw', which URDF has from version 1.1 on, but the file is of version 1.0, where "
                "other programs leave it out: write version=\"1.1\" into <robot>, or give 'rpy'.",
            )
        if "rpy" in origin.attributes:
            raise self.fail(origin, "<origin> has both 'rpy' and 'quat_xyzw', expected one of them.")
        x, y, z, w = self.numbers(origin, "quat_xyzw", 4)
        if x == y == z == w == 0.0:
            raise self.fail(origin, "'quat_xyzw' of <origin> is zero, expected a quaternion of length 1.")
        size = max(abs(x), abs(y), abs(z), abs(w))  # first: squares of numbers that can be read may not be finite
        return rotation_from_quaternion(x / size, y / size, z / size, w / size)

    def one(self, element: Element, tag: str) -> Element | None:
        """Return the child with this tag, or None. Several children with equal content count as one."""
        children = list(element.all(tag))
        for other in children[1:]:
            if _content(other) != _content(children[0]):
                raise self.fail(other, f"<{tag}> is in one <{element.tag}> twice, expected once.")
        return children[0] if children else None

    def required(self, element: Element, tag: str, what: str) -> Element:
        child = self.one(element, tag)
        if child is None:
            raise self.fail(element, f"{what} has no <{tag}>, which URDF requires.")
        return child

    def text(self, element: Element, key: str) -> str:
        value = self.attribute(element, key)
        check_name(value, f"{self.source}, line {element.line}: ")
        return value

    def attribute(self, element: Element, key: str) -> str:
        value = element.attributes.get(key, "")
        if not value:
            raise self.fail(element, f"<{element.tag}> has no attribute {key!r}, which URDF requires.")
        return value

    def number(self, element: Element, key: str, default: float | None = None, *, finite: bool = True) -> float:
        if default is not None and key not in element.attributes:
            return default
        return self.parse_number(element, key, self.attribute(element, key).strip(), finite)

    def vector(self, element: Element, key: str, default: Vector) -> Vector:
        if key not in element.attributes:
            return default
        x, y, z = self.numbers(element, key, 3)
        return (x, y, z)

    def numbers(self, element: Element, key: str, count: int) -> list[float]:
        words = element.attributes[key].split()
        if len(words) != count:
            expected = {3: "three", 4: "four"}[count]
            raise self.fail(
                element,
                f"{key!r} of <{element.tag}> holds {len(words)} numbers, expected {expected}.",
            )
        return [self.parse_number(element, key, word, True) for word in words]

    def parse_number(self, element: Element, key: str, word: str, finite: bool) -> float:
        infinite = NOT_FINITE.fullmatch(word)
        if NUMBER.fullmatch(word) or (infinite and not finite):
            value = float(word)
            if not finite or abs(value) <= LARGEST:
                return value
        shown = word if len(word) <= 40 else word[:37] + "..."
        raise self.fail(
            element,
            f"{key!r} of <{element.tag}> is {shown!r}, expected a finite number below {LARGEST:g}.",
        )


# ---- writing ---------------------------------------------------------------------------------------------------
# Numbers are written with all their digits. URDF has no motor inertia, torque offset or gravity. `armature` and
# `torque_offset` of `<dynamics>` are read back by this module and ignored by other programs.

NO_BOUND = 1e308  # URDF has no infinity
DYNAMICS = ("damping", "friction", "armature", "torque_offset")  # attributes of <dynamics>; the last two are ours


def to_urdf(model: Model) -> str:
    """URDF text of `model`; a spherical or helical joint is an `ArgumentError`, because URDF has none.

    Constraints become <loop> elements of URDF+ if it has their kind. A warning lists other constraints, springs and
    another gravity, which are left out. A link whose named frame is not at its joint becomes a body "<link>_body" at
    the joint with that frame on it.
    """
    warn_of_ties(model, "URDF", "to_urdf", WRITTEN)
    warn_of_gravity(model, "URDF", "to_urdf")
    laws = {law.joint: law for law in model.couplings}
    frames = {frame.name: frame for frame in model.frames}
    taken = {*frames, *(link.name for link in model.links)}
    bodies = {BASE: model.base}
    for index, link in enumerate(model.links):
        # if the frame of a link is not at its joint (standard DH), its body gets another name
        away = frames[link.name].placement != Placement()
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
    lines += loop_lines(model, lambda frame: frame)
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
        f'{indent}  <origin xyz="{numbers_text(inertial.com)}"/>',
        f'{indent}  <mass value="{float(inertial.mass)!r}"/>',
        f"{indent}  <inertia {_attributes(moments)}/>",
        f"{indent}</inertial>",
    ]


def _joint(joint: Joint, parent: str, child: str, law: Coupling | None = None) -> list[str]:
    kind = "fixed" if joint.kind == "fixed" else joint.type.urdf
    if kind is None:
        raise ArgumentError(
            f"joint {joint.name!r} is {joint.kind}, which URDF does not have, expected revolute, prismatic, planar or "
            "free joints: lock it first, or write another format."
        )
    unbounded = kind == "revolute" and math.isinf(joint.limits.lower) and math.isinf(joint.limits.upper)
    kind = "continuous" if unbounded else kind
    rotation, position = joint.placement.rotation, joint.placement.position
    lines = [
        f"  <joint name={_text(joint.name)} type={_text(kind)}>",
        f'    <origin xyz="{numbers_text(position)}" rpy="{numbers_text(rpy_from_rotation(rotation))}"/>',
        f"    <parent link={_text(parent)}/>",
        f"    <child link={_text(child)}/>",
    ]
    if kind not in ("fixed", "floating"):
        lines.append(f'    <axis xyz="{numbers_text(joint.axis)}"/>')
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


def numbers_text(vector: Vector) -> str:
    return " ".join(repr(float(x) + 0.0) for x in vector)


def _text(name: str) -> str:
    check_xml_text(name)
    return quoteattr(name)


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name
