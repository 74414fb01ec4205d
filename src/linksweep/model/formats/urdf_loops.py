"""Closed loops in URDF files, as constraints. URDF itself has trees only; these extensions are read:

- `<loop name type>` of URDF+ (Chignoli et al. 2024, arXiv:2411.19753): `<predecessor link>` and `<successor link>`,
  each with an `<origin>`, and `<axis>`. `<coupling>` with a `<ratio>` couples the joints of two links.
- `<loop_joint name type>` of Drake and Isaac Sim: `<link1 link xyz rpy>`, `<link2 ...>` and `<axis>`.
- `<gazebo><joint name type>`, SDF in a URDF file: `<parent>`, `<child>`, `<pose>` on the child and `<axis><xyz>`. The
  joint is closed in the neutral configuration.

The z axis of the constraint is the axis of the joint.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol
from xml.sax.saxutils import quoteattr

from linksweep.errors import ArgumentError, DescriptionError, ModelWarning, warn_user
from linksweep.model.constraints import Constraint
from linksweep.model.formats.files import Element
from linksweep.model.model import BASE, Coupling, Frame, Matrix, Model, Placement, Vector, compose, inverse, snap
from linksweep.support.messages import listing, nearest, shown

KINDS = {
    "revolute": "hinge", "continuous": "hinge", "hinge": "hinge", "prismatic": "slider", "fixed": "rigid",
    "spherical": "point", "ball": "point", "position": "point",
}  # fmt: skip
WRITTEN = {"hinge": "revolute", "slider": "prismatic", "rigid": "fixed", "point": "spherical"}
LOOPS = ("loop", "constraint", "loop_joint")


class Reader(Protocol):
    """The methods of the URDF reader that are used here."""

    def fail(self, element: Element, message: str) -> DescriptionError: ...
    def text(self, element: Element, key: str) -> str: ...
    def origin(self, element: Element) -> Placement: ...
    def vector(self, element: Element, key: str, default: Vector) -> Vector: ...
    def number(self, element: Element, key: str, default: float | None = None) -> float: ...


@dataclass(frozen=True, slots=True)
class _Loop:
    """Two links, and the frame of the loop joint on each; `second` is None if the neutral configuration gives it."""

    name: str
    kind: str
    links: tuple[str, str]
    first: Placement
    second: Placement | None


def with_loops(model: Model, root: Element, reader: Reader, rotation: Callable[..., Matrix]) -> Model:
    """Return `model` with the constraints of the loops in a URDF file; `rotation` is that of roll, pitch and yaw.

    Joints of Gazebo that cannot be constraints are listed in a warning, because other files were never meant for this.
    """
    frames = {frame.name: frame for frame in model.frames}
    loops = [
        _of_urdf(element, reader, rotation)
        for element in root.children
        if element.tag in LOOPS and (element.tag != "constraint" or any(element.all("predecessor")))
    ]
    ignored = []
    for element in root.all("gazebo"):
        for joint in element.all("joint") if not element.attributes.get("reference") else ():
            loop = _of_gazebo(joint, rotation, frames)
            if loop is None:
                ignored.append(joint.attributes.get("name") or "joint")
            else:
                loops.append(loop)
    if ignored:
        warn_user(f"{model.name}: the joints {listing(ignored)} of <gazebo> elements are left out.", ModelWarning)
    constraints = []
    for loop in loops:
        for link in loop.links:
            if link not in frames:
                raise DescriptionError(
                    f"{model.name}: the loop {loop.name!r} names the link {shown(link)}{nearest(link, frames)}, "
                    f"expected one of {listing(frames)}."
                )
        second = loop.second
        if second is None:
            places = [_neutral_pose(model, frames[link]) for link in loop.links]
            second = compose(inverse(places[1]), compose(places[0], loop.first))
        name, link = loop.links[0], loop.links[0]
        if loop.first != Placement():
            name = f"{loop.name}_end"
            while name in frames:
                name += "_"
            host = frames[link]
            frames[name] = Frame(name, host.link, compose(host.placement, loop.first), link)
        try:
            constraints.append(Constraint(loop.kind, name, loop.links[1], at=second, name=loop.name))
        except ArgumentError as error:
            raise DescriptionError(f"{model.name}: the loop {loop.name!r}: {error}") from None
    if not loops:
        return model
    return replace(model, frames=tuple(frames.values()), constraints=(*model.constraints, *constraints))


def read_couplings(model: Model, root: Element, reader: Reader) -> list[Coupling]:
    """Return the couplings of URDF+: ratio * q of the predecessor = q of the successor.

    Both links must hang on one link by one joint each; others are listed in a warning. A joint with
    independent="false" follows the other one.
    """
    links = {link.name: link for link in model.links}
    dependent = {
        joint.attributes.get("name", "")
        for joint in root.all("joint")
        if joint.attributes.get("independent", "").strip().lower() == "false"
    }
    couplings, ignored = [], []
    for element in root.all("coupling"):
        names = [reader.text(_child(element, tag, reader), "link") for tag in ("predecessor", "successor")]
        ratio = reader.number(_child(element, "ratio", reader), "value")
        first, second = (links.get(name) for name in names)
        if first is None or second is None or first.parent != second.parent or first is second or not ratio:
            ignored.append(element.attributes.get("name") or "coupling")
        elif first.joint.name in dependent and second.joint.name not in dependent:
            couplings.append(Coupling(first.joint.name, second.joint.name, 1.0 / ratio))
        else:
            couplings.append(Coupling(second.joint.name, first.joint.name, ratio))
    if ignored:
        warn_user(
            f"{model.name}: the couplings {listing(ignored)} are left out, expected two links on one link.",
            ModelWarning,
        )
    return couplings


def loop_lines(model: Model, link_of: Callable[[str], str]) -> list[str]:
    """Return <loop> elements of URDF+ for the constraints that it has; `link_of` is the link of a frame's name."""
    lines = []
    for number, item in enumerate(model.constraints, start=1):
        if item.kind not in WRITTEN:
            continue
        name = item.name or f"loop{number}"
        lines += [
            f"  <loop name={quoteattr(name)} type={quoteattr(WRITTEN[item.kind])}>",
            f"    <predecessor link={quoteattr(link_of(item.b) if item.b else model.base)}>",
            f"      {_origin_line(item.at)}",
            "    </predecessor>",
            f"    <successor link={quoteattr(link_of(item.a))}/>",
            '    <axis xyz="0 0 1"/>',
            "  </loop>",
        ]
    return lines


def _origin_line(at: Placement) -> str:
    position, angles = (
        " ".join(repr(float(x) + 0.0) for x in v) for v in (at.position, rpy_from_rotation(at.rotation))
    )
    return f'<origin xyz="{position}" rpy="{angles}"/>'


def rpy_from_rotation(rotation: Matrix) -> Vector:
    """Return roll, pitch and yaw with Rz(yaw) Ry(pitch) Rx(roll) = rotation, exact near pitch = +-pi/2 too."""
    yaw = math.atan2(rotation[1][0], rotation[0][0])
    c, s = math.cos(yaw), math.sin(yaw)
    # what is left when the yaw is undone is Ry Rx, whatever error the yaw has where it is not determined
    first, second, third = rotation
    pitch = math.atan2(-third[0], c * first[0] + s * second[0])
    roll = math.atan2(s * first[2] - c * second[2], c * second[1] - s * first[1])
    return (roll, pitch, yaw)


def _child(element: Element, tag: str, reader: Reader) -> Element:
    child = next(element.all(tag), None)
    if child is None:
        raise reader.fail(element, f"<{element.tag}> has no <{tag}>.")
    return child


def _kind(element: Element, reader: Reader) -> str:
    kind = element.attributes.get("type", "revolute").strip().lower()
    if kind not in KINDS:
        raise reader.fail(element, f"the type of the loop is {shown(kind)}, expected {listing(KINDS)}.")
    return KINDS[kind]


def _of_urdf(element: Element, reader: Reader, rotation: Callable[..., Matrix]) -> _Loop:
    axis = next(element.all("axis"), None)
    turn = _turned(element, reader, (1.0, 0.0, 0.0) if axis is None else reader.vector(axis, "xyz", (1.0, 0.0, 0.0)))
    if element.tag == "loop_joint":
        ends = [child for child in element.children if child.tag in ("link1", "link2")]
        if len(ends) != 2:
            raise reader.fail(element, f"<loop_joint> has {len(ends)} links, expected <link1> and <link2>.")
        places = [_place(end, reader, rotation) for end in ends]
    else:
        ends = [_child(element, tag, reader) for tag in ("predecessor", "successor")]
        outer = [next(element.all(f"{tag}_origin"), None) for tag in ("predecessor", "successor")]
        places = [
            reader.origin(end) if other is None else _place(other, reader, rotation)
            for end, other in zip(ends, outer, strict=True)
        ]
    links = tuple(reader.text(end, "link") for end in ends)
    first, second = (compose(place, turn) for place in places)
    # the constraint is written for the second link relative to the first: z of the loop frame is fixed in the first
    return _Loop(reader.text(element, "name"), _kind(element, reader), (links[1], links[0]), second, first)


def _of_gazebo(element: Element, rotation: Callable[..., Matrix], frames: Mapping[str, Frame]) -> _Loop | None:
    """Return the loop of an SDF joint, or None if it is not one that can be a constraint."""
    ends = [next(element.all(tag), None) for tag in ("child", "parent")]
    links = ["" if end is None else end.attributes.get("link", "") or end.text.strip() for end in ends]
    kind = KINDS.get(element.attributes.get("type", "").strip().lower())
    name = element.attributes.get("name", "").strip()
    pose, axis = next(element.all("pose"), None), next(element.all("axis"), None)
    xyz = None if axis is None else next(axis.all("xyz"), None)
    try:
        numbers = [float(word) for word in (pose.text.split() if pose is not None else ["0"] * 6)]
        direction = [float(word) for word in ("0 0 1" if xyz is None else xyz.text).split()]
    except ValueError:
        return None
    known = kind is not None and bool(name) and all(link in frames for link in links) and links[0] != links[1]
    finite = len(numbers) == 6 and len(direction) == 3 and all(map(math.isfinite, (*numbers, *direction)))
    if not known or not finite or math.hypot(*direction) < 1e-9 or kind is None:
        return None
    turn = _rotated_to((direction[0], direction[1], direction[2]))
    place = compose(Placement(rotation(*numbers[3:]), (numbers[0], numbers[1], numbers[2])), turn)
    return _Loop(name, kind, (links[0], links[1]), place, None)


def _place(element: Element, reader: Reader, rotation: Callable[..., Matrix]) -> Placement:
    zero = (0.0, 0.0, 0.0)
    return Placement(rotation(*reader.vector(element, "rpy", zero)), reader.vector(element, "xyz", zero))


def _turned(element: Element, reader: Reader, axis: Vector) -> Placement:
    """Return the shortest rotation that takes z to an axis."""
    length = math.hypot(*axis)
    if not 1e-9 < length < math.inf:
        raise reader.fail(element, f"the axis of the loop is {axis}, expected a direction that is not zero.")
    return _rotated_to(axis)


def _rotated_to(axis: Vector) -> Placement:
    length = math.hypot(*axis)
    x, y, z = (value / length for value in axis)
    if z < -1.0 + 1e-12:
        return Placement(((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, -1.0)))
    k = 1.0 / (1.0 + z)
    rows = ((1.0 - k * x * x, -k * x * y, x), (-k * x * y, 1.0 - k * y * y, y), (-x, -y, z))
    return Placement(snap(rows))


def _neutral_pose(model: Model, frame: Frame) -> Placement:
    """Return the pose of a frame in the base in the neutral configuration."""
    place, link = frame.placement, frame.link
    while link != BASE:
        place, link = compose(model.links[link].joint.placement, place), model.links[link].parent
    return place
