"""URDF: the dynamics part of the Unified Robot Description Format. Meshes and materials are never opened.

https://docs.ros.org/en/rolling/p/urdfdom/ and https://wiki.ros.org/urdf/XML give the defaults used here.
"""

from __future__ import annotations

import math
import os
import re
from collections import deque
from pathlib import Path
from typing import cast

from linksweep.description.assembly import FREEDOMS, LARGEST, Part, assemble, check_name
from linksweep.description.couplings import coupled
from linksweep.description.model import (
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
from linksweep.errors import DescriptionError, ModelWarning, warn_user
from linksweep.formats import read_bytes
from linksweep.formats.xml import Element, parse
from linksweep.joints.groups import rotation_entries
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
    couple: bool = False,
) -> Model:  # fmt: skip
    """The Model of a URDF file, or of its text (anything with '<' near its start).

    Continuous joints become revolute ones without bounds, floating ones free, and the axis of a planar one is the
    normal of its plane; joints that mimic others are free coordinates (with a warning), unless `couple` says that they
    follow their laws. Joints follow the order of the file. `rigid`: accept a robot without joints that move, because
    its base will.
    """
    source, encoding = "URDF text", None
    if isinstance(path_or_text, bytes):
        data = path_or_text
    elif isinstance(path_or_text, str) and ("<" in path_or_text[:100] or "\n" in path_or_text):
        # decoded already, so what its XML declaration says about bytes no longer holds
        data, encoding = path_or_text.lstrip("\ufeff").encode("utf-8", "surrogatepass"), "utf-8"
    elif isinstance(path_or_text, (str, os.PathLike)):
        source = str(Path(path_or_text))
        _refuse_xacro(source.lower().endswith(".xacro"), source)
        data = read_bytes(Path(path_or_text))
    else:
        raise DescriptionError(f"the URDF is {path_or_text!r:.60}, expected a path or text: give one of them.")
    return _Reader(source).model(parse(data, source, encoding), gravity, rigid, couple)


def inertial_of(link: Element, source: str) -> Inertial:
    """What a <link> of the file `source` says of its own inertia."""
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


def _refuse_xacro(found: bool, where: str) -> None:
    if found:
        raise DescriptionError(
            f"{where}: this is xacro, a macro language, expected plain URDF: expand it first (xacro "
            "robot.urdf.xacro > robot.urdf)."
        )


def _content(element: Element) -> tuple[object, ...]:
    """What an element says: its attributes, numbers as such, and its children."""
    values = {
        key: [float(word) if NUMBER.fullmatch(word) else word for word in value.split()]
        for key, value in element.attributes.items()
    }
    return element.tag, values, [_content(child) for child in element.children]


class _Reader:
    """Reads elements and says where in `source` something is wrong."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.version = "1.0"

    def fail(self, element: Element, message: str) -> DescriptionError:
        return DescriptionError(f"{self.source}, line {element.line}: {message}")

    def model(self, root: Element, gravity: Vector, rigid: bool, couple: bool) -> Model:
        """The Model; where joints that mimic others are not coupled, a warning names them."""
        if root.tag != "robot":
            raise self.fail(
                root, f"this is no URDF, the root element is <{root.tag}>, expected <robot>: convert it to URDF."
            )
        self.refuse_macros(root)
        self.version = root.attributes.get("version", self.version).strip()
        if self.version not in VERSIONS:
            raise self.fail(
                root, f"the version of the URDF is {shown(self.version)}, expected 1.0, 1.1 or 1.2: correct it."
            )
        links: dict[str, Element] = {}
        for element in root.all("link"):
            name = self.text(element, "name")
            if name in links:
                raise self.fail(element, f"the link name {name!r} is used twice, expected it once: rename one.")
            links[name] = element
        joints = list(root.all("joint"))
        parts = [self.part(joint, links) for joint in joints]
        mimics = [
            (part.joint, mimic)
            for part, joint in zip(parts, joints, strict=True)
            if FREEDOMS[part.joint.kind] and (mimic := self.one(joint, "mimic"))
        ]
        kinds = {part.joint.name: part.joint.kind for part in parts}
        laws = [self.law(joint, mimic, kinds) for joint, mimic in mimics] if couple else []
        if mimics and not couple:
            warn_user(
                f"{self.source}: the joints {listing([joint.name for joint, _ in mimics])} mimic others, which is "
                "not followed: they are free coordinates, so set them yourself or load with mimic='couple'.",
                ModelWarning,
            )
        base = self.base(root, links, parts)
        name = root.attributes.get("name") or "robot"
        own = self.inertial(links[base])
        found = assemble(name, parts, base=base, base_inertial=own, gravity=gravity, source=self.source, rigid=rigid)
        return coupled(found, laws) if laws else found

    def law(self, joint: Joint, mimic: Element, kinds: dict[str, str]) -> Coupling:
        leader = self.text(mimic, "joint")
        if leader == joint.name or not (FREEDOMS.get(kinds.get(leader, ""), 0) == FREEDOMS[joint.kind] == 1):
            raise self.fail(
                mimic,
                f"joint {joint.name!r} mimics {leader!r}, expected both to be different 1-DOF joints: "
                "correct the name or remove <mimic>.",
            )
        multiplier, offset = self.number(mimic, "multiplier", 1.0), self.number(mimic, "offset", 0.0)
        return Coupling(joint.name, leader, multiplier, offset)

    def refuse_macros(self, root: Element) -> None:
        """Expanded files keep the xmlns:xacro attribute, and some their declarations: what uses macros is refused."""
        waiting = deque([root])
        while waiting:
            element = waiting.popleft()
            if element.tag in DECLARATIONS:
                continue
            macro = element.tag.startswith("xacro:") or any("${" in v for v in element.attributes.values())
            _refuse_xacro(macro, f"{self.source}, line {element.line}")
            waiting.extend(element.children)

    def base(self, root: Element, links: dict[str, Element], parts: list[Part]) -> str:
        children = {part.link for part in parts}
        roots = [name for name in links if name not in children]
        if len(roots) == 1:
            return roots[0]
        if not links:
            raise self.fail(root, "the robot has no links, expected at least two: is this the right file?")
        if not roots:
            raise self.fail(
                root,
                "every link hangs on another one in a loop, expected one base: cut the loop at one joint.",
            )
        raise self.fail(
            links[roots[1]],
            f"the links {listing(roots)} hang on no joint, expected exactly one base: connect or remove the others.",
        )

    def part(self, element: Element, links: dict[str, Element]) -> Part:
        name = self.text(element, "name")
        kind = self.text(element, "type")
        if kind not in KINDS:
            raise self.fail(
                element,
                f"joint {name!r} has type {shown(kind)}, which is no joint type, expected {listing(KINDS)}: replace "
                "the joint.",
            )
        ends = []
        for tag in ("parent", "child"):
            end = self.required(element, tag, f"joint {name!r}")
            link = self.text(end, "link")
            if link not in links:
                raise self.fail(
                    end,
                    f"joint {shown(name)} names the {tag} link {shown(link)}, which is not described"
                    f"{nearest(link, links)}, expected one of {listing(links)}: describe it or correct the name.",
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
            armature=0.0 if dynamics is None else self.number(dynamics, "armature", 0.0),  # ours, see to_urdf
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
            raise self.fail(origin, "<origin> has both 'rpy' and 'quat_xyzw', expected one of them: remove the other.")
        x, y, z, w = self.numbers(origin, "quat_xyzw", 4)
        if x == y == z == w == 0.0:
            raise self.fail(origin, "'quat_xyzw' of <origin> is zero, expected a quaternion of length 1: correct it.")
        size = max(abs(x), abs(y), abs(z), abs(w))  # first: squares of numbers that can be read may not be finite
        return rotation_from_quaternion(x / size, y / size, z / size, w / size)

    def one(self, element: Element, tag: str) -> Element | None:
        """The child of this tag, if there is one; several are one if they say the same."""
        found = list(element.all(tag))
        for other in found[1:]:
            if _content(other) != _content(found[0]):
                raise self.fail(other, f"<{tag}> stands twice in one <{element.tag}>, expected it once: remove one.")
        return found[0] if found else None

    def required(self, element: Element, tag: str, what: str) -> Element:
        found = self.one(element, tag)
        if found is None:
            raise self.fail(element, f"{what} has no <{tag}>, which URDF requires: add it.")
        return found

    def text(self, element: Element, key: str) -> str:
        value = self.attribute(element, key)
        check_name(value, f"{self.source}, line {element.line}: ")
        return value

    def attribute(self, element: Element, key: str) -> str:
        value = element.attributes.get(key, "")
        if not value:
            raise self.fail(element, f"<{element.tag}> has no attribute {key!r}, which URDF requires: add it.")
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
                f"{key!r} of <{element.tag}> holds {len(words)} numbers, expected {expected}: correct the attribute.",
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
            f"{key!r} of <{element.tag}> is {shown!r}, expected a finite number below {LARGEST:g}: correct the value.",
        )
