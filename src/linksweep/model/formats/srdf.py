"""SRDF: groups of joints, named states, passive joints, end effectors and the virtual joint of a robot.

https://wiki.ros.org/srdf and srdfdom give the elements. `<rotor_params>` is Pinocchio's: rotor inertia and gear ratio.
Collision elements are not read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from linksweep.errors import DescriptionError, ModelWarning, warn_user
from linksweep.model.assembly import check_name
from linksweep.model.formats.files import Element, parse, read_bytes
from linksweep.model.model import BASE, Joint, Model
from linksweep.model.semantics import EndEffector, State, VirtualJoint
from linksweep.support.messages import listing, nearest, shown

VIRTUAL_TYPES = ("fixed", "planar", "floating")
MAX_NESTING = 50  # groups in groups


@dataclass(frozen=True, slots=True)
class SRDF:
    """The root element of an SRDF file, and the name of the file in messages."""

    root: Element
    source: str

    @property
    def virtual_joint(self) -> VirtualJoint | None:
        """The first virtual joint; the base of a linksweep robot has at most one."""
        for element in self.root.all("virtual_joint"):
            names = [self.text(element, key) for key in ("name", "type", "parent_frame", "child_link")]
            if names[1] not in VIRTUAL_TYPES:
                raise self.fail(element, f"the type of a virtual joint is {shown(names[1])}, expected {VIRTUAL_TYPES}.")
            return VirtualJoint(*names)
        return None

    @property
    def base(self) -> str:
        """The base that the virtual joint asks for: "fixed" or "floating" (planar joints are made from a free one)."""
        virtual = self.virtual_joint
        return "fixed" if virtual is None or virtual.type == "fixed" else "floating"

    def fail(self, element: Element, message: str) -> DescriptionError:
        return DescriptionError(f"{self.source}, line {element.line}: {message}")

    def text(self, element: Element, key: str) -> str:
        value = element.attributes.get(key, "")
        if not value:
            raise self.fail(element, f"<{element.tag}> has no attribute {key!r}, which SRDF requires.")
        check_name(value, f"{self.source}, line {element.line}: ")
        return value

    def numbers(self, element: Element, key: str) -> tuple[float, ...]:
        words = self.text(element, key).split()
        try:
            values = tuple(float(word) for word in words)
        except ValueError:
            values = (math.nan,)
        if not all(math.isfinite(value) for value in values):
            raise self.fail(
                element, f"{key!r} of <{element.tag}> is {shown(element.attributes[key])}, expected numbers."
            )
        return values


def read_srdf(source: object, text_of: Callable[[object], tuple[bytes | None, str]]) -> SRDF:
    """Return the checked root element of an SRDF file, text or open file."""
    data, name = text_of(source)
    if data is None:
        if not isinstance(source, (str, Path)) and not hasattr(source, "__fspath__"):
            raise DescriptionError(f"srdf is {shown(source)}, expected a path, an open file, or text.")
        file = Path(source)  # type: ignore[arg-type]
        data, name = read_bytes(file), str(file)
    else:
        name = name.replace("robot model", "SRDF")
    root = parse(data, name)
    if root.tag != "robot":
        raise DescriptionError(f"{name}, line {root.line}: the root element is <{root.tag}>, expected <robot>.")
    if any(root.all("link")):
        raise DescriptionError(f"{name}, line {root.line}: this is a URDF with links, expected an SRDF file.")
    return SRDF(root, name)


def with_srdf(model: Model, srdf: SRDF) -> Model:
    """Return `model` with the groups, states, end effectors, passive joints and rotors of an SRDF file.

    The base must be as `srdf.base` states if the virtual joint shall have coordinates. One warning lists names that
    the robot does not have.
    """
    virtual = srdf.virtual_joint
    if virtual is not None:
        model = _with_virtual_joint(model, srdf, virtual)
    reader = _Reader(model, srdf)
    groups = {name: reader.joints_of(name, 0) for name in reader.groups}
    states = tuple(reader.state(element) for element in srdf.root.all("group_state"))
    ends = tuple(reader.end_effector(element) for element in srdf.root.all("end_effector"))
    passive = {reader.joint(element) for element in srdf.root.all("passive_joint")}
    rotors = {
        srdf.text(element, "name"): srdf.numbers(element, "mass")[0] * srdf.numbers(element, "gear_ratio")[0] ** 2
        for params in srdf.root.all("rotor_params")
        for element in params.all("joint")
    }

    def changed(joint: Joint) -> Joint:
        armature = joint.armature or rotors.get(joint.name, 0.0)
        return replace(joint, actuated=joint.actuated and joint.name not in passive, armature=armature)

    if reader.unknown:
        warn_user(
            f"{srdf.source}: {model.name} has no {listing(sorted(reader.unknown), quoted=False)}, so they are ignored.",
            ModelWarning,
        )
    semantics = replace(
        model.semantics, groups=tuple(groups.items()), states=states,
        end_effectors=tuple(end for end in ends if end is not None), virtual_joint=virtual,
    )  # fmt: skip
    links = tuple(replace(link, joint=changed(link.joint)) for link in model.links)
    return replace(model, links=links, semantics=semantics)


def _with_virtual_joint(model: Model, srdf: SRDF, virtual: VirtualJoint) -> Model:
    """Give the joint of a floating base the name, and the type, of the virtual joint."""
    first = model.links[0]
    floats = first.joint.kind == "free" and first.parent == BASE
    link = first.name if floats else model.base
    if virtual.child_link != link:
        raise DescriptionError(
            f"{srdf.source}: the virtual joint {virtual.name!r} carries the link {virtual.child_link!r}"
            f"{nearest(virtual.child_link, [link])}, expected the base {link!r}."
        )
    if not floats or virtual.type == "fixed":
        return model
    names = {link.joint.name for link in model.links[1:]}
    name = first.joint.name if virtual.name in names else virtual.name
    kind, axis = ("planar", (0.0, 0.0, 1.0)) if virtual.type == "planar" else (first.joint.kind, first.joint.axis)
    joint = replace(first.joint, name=name, kind=kind, axis=axis, actuated=virtual.type != "planar")
    return replace(model, links=(replace(first, joint=joint), *model.links[1:]))


class _Reader:
    """Reads names of one robot, and collects those that it does not have in `unknown`."""

    def __init__(self, model: Model, srdf: SRDF) -> None:
        self.model, self.srdf = model, srdf
        self.moving = {link.joint.name: link.joint for link in model.links}
        self.order = {model.links[index].joint.name: place for place, index in enumerate(model.document_order)}
        self.frames = {frame.name: frame for frame in model.frames}
        self.groups = {srdf.text(element, "name"): element for element in srdf.root.all("group")}
        virtual = srdf.virtual_joint
        self.without_coordinates = {*model.semantics.fixed_joints, *([virtual.name] if virtual else [])}
        self.unknown: set[str] = set()

    def joint(self, element: Element) -> str:
        """Return the name of a moving joint; "" for a fixed or an unknown one."""
        name = self.srdf.text(element, "name")
        if name in self.moving:
            return name
        if name not in self.without_coordinates:
            self.unknown.add(f"joint {name}")
        return ""

    def frame(self, element: Element, key: str) -> str:
        name = self.srdf.text(element, key)
        if name not in self.frames:
            self.unknown.add(f"link {name}")
            return ""
        return name

    def joints_of(self, group: str, depth: int) -> tuple[str, ...]:
        """Return the moving joints of a group in the order of the file."""
        element = self.groups[group]
        if depth > MAX_NESTING:
            raise self.srdf.fail(element, f"the group {group!r} contains itself, expected groups without a circle.")
        joints: set[str] = set()
        for child in element.children:
            if child.tag == "joint":
                joints.add(self.joint(child))
            elif child.tag == "link":
                joints.add(self.joint_of(self.frame(child, "name")))
            elif child.tag == "chain":
                joints.update(self.chain(child))
            elif child.tag == "group":
                name = self.srdf.text(child, "name")
                if name not in self.groups:
                    self.unknown.add(f"group {name}")
                else:
                    joints.update(self.joints_of(name, depth + 1))
        return tuple(sorted(joints - {""}, key=lambda name: self.order[name]))

    def joint_of(self, link: str) -> str:
        """Return the joint that moves a link, or "" for a link on a fixed joint."""
        frame = self.frames.get(link)
        moves = frame is not None and frame.link != BASE and self.model.links[frame.link].name == link
        return self.model.links[frame.link].joint.name if moves and frame is not None else ""

    def chain(self, element: Element) -> list[str]:
        base, tip = self.frame(element, "base_link"), self.frame(element, "tip_link")
        if not base or not tip:
            return []
        index, last, joints = self.frames[tip].link, self.frames[base].link, []
        while index not in (last, BASE):
            joints.append(self.model.links[index].joint.name)
            index = self.model.links[index].parent
        if index != last:
            raise self.srdf.fail(element, f"there is no chain from {base!r} to {tip!r}, expected links of one branch.")
        return joints

    def state(self, element: Element) -> State:
        group = self.srdf.text(element, "group")
        if group not in self.groups:
            self.unknown.add(f"group {group}")
        joints = []
        for child in element.all("joint"):
            name = self.joint(child)
            if name:
                joints.append((name, self.coordinates(child, self.moving[name])))
        return State(self.srdf.text(element, "name"), group, tuple(joints))

    def coordinates(self, element: Element, joint: Joint) -> tuple[float, ...]:
        """Return the value of a joint in the order of q.

        Free joints are (x, y, z, quaternion xyzw), planar ones (x, y, angle), and a rotation without limits may be
        (cosine, sine), as in Pinocchio.
        """
        values = self.srdf.numbers(element, "value")
        if joint.kind == "free" and len(values) == 7:
            length = math.hypot(*values[3:])
            if length > 0.0:
                return (*(x / length for x in values[3:]), *values[:3])
        if joint.kind == "planar" and len(values) == 3:
            return (values[2], values[0], values[1])
        if joint.kind == "revolute" and len(values) == 2:
            return (math.atan2(values[1], values[0]),)
        if len(values) != joint.type.nq or joint.kind in ("free", "planar"):
            raise self.srdf.fail(
                element, f"the state of joint {joint.name!r} has {len(values)} numbers, expected {joint.type.nq}."
            )
        return values

    def end_effector(self, element: Element) -> EndEffector | None:
        link = self.frame(element, "parent_link")
        others = [element.attributes.get(key, "") for key in ("group", "parent_group")]
        return EndEffector(self.srdf.text(element, "name"), link, *others) if link else None
