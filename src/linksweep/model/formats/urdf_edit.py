"""A URDF file with the parameters of a changed robot; everything else in it stays as it was written.

Inertias, damping, friction, motor inertias, limits, origins and axes of joints, mimic joints and further frames are
written where they differ. Visuals, collisions, materials, transmissions, comments and the order stay.

Links that hang on a link by fixed joints move with it, and only their common inertia matters: it is written into the
link on the moving joint, and theirs is taken out. Joints that are locked in the model stay joints of the file, and what
hangs on them keeps its inertia, which is taken off.

Motor inertia, for which URDF has no place, is written where programs look for it: `armature` of <dynamics> (linksweep),
`rotor_inertia` of <dynamics> (RaiSim), and <drake:rotor_inertia> of an actuator where the file has one for the joint.
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from linksweep.errors import ArgumentError, ModelWarning
from linksweep.model.assembly import find_frame
from linksweep.model.formats.files import Element, parse, read_bytes
from linksweep.model.formats.urdf import (
    DYNAMICS,
    NO_BOUND,
    inertial_lines,
    inertial_of,
    numbers_text,
    read_urdf,
)
from linksweep.model.formats.urdf_loops import loop_lines, rpy_from_rotation
from linksweep.model.model import Coupling, Inertial, Joint, Link, Model, compose, inverse, moved
from linksweep.model.quantities import from_ten, ten_of
from linksweep.support.messages import shown

DRAKE = ' xmlns:drake="http://drake.mit.edu"'
SAME = 1e-12  # relative: what is not changed by more is left as it is written
DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")


def edited_urdf(model: Model, original: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None) -> str:
    """The text of the URDF file `original` with the inertias and losses of `model`, a robot that was read from it.

    folder: where the text will be saved; file names of meshes that are relative to the original's are made relative
    to it.
    """
    if not isinstance(original, str | os.PathLike):
        raise ArgumentError(f"original is {shown(original)}, expected the path of a URDF file.")
    path = Path(original)
    return _Edit(model, _text(read_bytes(path)), str(path)).text(path.parent, folder)


def _text(data: bytes) -> bytes:
    """Return the document in UTF-8, with its declaration changed accordingly."""
    declared = DECLARED.match(data)
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    name = "utf-16" if wide else "utf-8-sig" if declared is None else declared.group(1).decode("ascii")
    try:
        text = data.decode(name)
    except (LookupError, UnicodeDecodeError) as error:
        raise ArgumentError(f"the URDF cannot be read as {name} ({error}), expected UTF-8: save it so.") from None
    return re.sub(r"""(<\?xml[^>]*?encoding\s*=\s*)(["'])[^"']+\2""", r"\1\2utf-8\2", text, count=1).encode("utf-8")


class _Edit:
    """Replacements in the bytes of a file."""

    def __init__(self, model: Model, data: bytes, source: str) -> None:
        self.model, self.data, self.source = model, data, source
        self.root = parse(data, source, "utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # issued when it was loaded
            self.before = read_urdf(data, rigid=True)
        self.links = {element.attributes.get("name", ""): element for element in self.root.all("link")}
        self.joints = {element.attributes.get("name", ""): element for element in self.root.all("joint")}
        self.parents: dict[str, tuple[str, Element]] = {}  # of each link: the link that carries it, by which joint
        for joint in self.joints.values():
            ends = [next(joint.all(tag)).attributes.get("link", "") for tag in ("parent", "child")]
            self.parents[ends[1]] = ends[0], joint
        self.edits: list[tuple[int, int, str]] = []

    def text(self, home: Path, folder: str | os.PathLike[str] | None) -> str:
        originals = {link.joint.name: link for link in self.before.links}
        for link in self.model.links:
            same = originals.get(link.joint.name)
            if same is None or same.name != link.name or same.joint.kind != link.joint.kind:
                raise ArgumentError(
                    f"{self.source} has no {link.joint.kind} joint {link.joint.name!r} that moves {link.name!r}, "
                    f"expected the file from which {self.model.name!r} was loaded: leave out original=."
                )
            self._inertia(link.name, link.inertial)
            self._losses(link.joint, same.joint)
            self._limits(link.joint, same.joint)
            self._geometry(link, same)
        if self.model.base == self.before.base and self.model.base_inertial != self.before.base_inertial:
            self._inertia(self.model.base, self.model.base_inertial)
        for coupling in self.model.couplings:
            self._mimic(coupling)
        self._new_frames()
        added = tuple(item for item in self.model.constraints if item not in self.before.constraints)
        lines = "".join(f"{line}\n" for line in loop_lines(replace(self.model, constraints=added), lambda frame: frame))
        self.edits.append((self.root.stop, self.root.stop, lines))
        if folder is not None:
            self._file_names(self.root, home, Path(folder))
        data = self.data
        for start, stop, text in sorted(self.edits, key=lambda edit: edit[:2], reverse=True):
            data = data[:start] + text.encode("utf-8") + data[stop:]
        return data.decode("utf-8")

    # joints

    def _limits(self, new: Joint, old: Joint) -> None:
        """Write the limits that differ; a joint without bounds becomes continuous, and the reverse."""
        if new.limits == old.limits or new.kind not in ("revolute", "prismatic"):
            return
        element = self.joints[new.name]
        tag = next(element.all("limit"), None)
        attributes = dict(tag.attributes) if tag is not None else {}
        bounded = math.isfinite(new.limits.lower) or math.isfinite(new.limits.upper)
        for key in ("lower", "upper", "velocity", "effort"):
            value = getattr(new.limits, key)
            missing = key in ("lower", "upper") and bounded and key not in attributes
            if missing or value != getattr(old.limits, key):
                attributes[key] = repr(float(max(-NO_BOUND, min(NO_BOUND, value))) + 0.0)
        for key in ("velocity", "effort"):  # which URDF requires
            attributes.setdefault(key, repr(NO_BOUND))
        self._put(element, tag, "limit", attributes)
        kind = "prismatic" if new.kind == "prismatic" else "revolute" if bounded else "continuous"
        if kind != element.attributes.get("type"):
            self._replace_attribute(element, "type", kind)

    def _geometry(self, new: Link, old: Link) -> None:
        """Write the origin and the axis of a joint if they differ."""
        element = self.joints[new.joint.name]
        if new.joint.axis != old.joint.axis:
            attributes = {"xyz": numbers_text(new.joint.axis)}
            self._put(element, next(element.all("axis"), None), "axis", attributes)
        carriers = [self.model.links[new.parent].name if new.parent >= 0 else self.model.base]
        carriers.append(self.before.links[old.parent].name if old.parent >= 0 else self.before.base)
        if new.joint.placement == old.joint.placement or carriers[0] != carriers[1]:
            return
        parent = self.parents[new.name][0]
        place = compose(inverse(find_frame(self.before, parent).placement), new.joint.placement)
        attributes = {"xyz": numbers_text(place.position), "rpy": numbers_text(rpy_from_rotation(place.rotation))}
        self._put(element, next(element.all("origin"), None), "origin", attributes)

    def _mimic(self, coupling: Coupling) -> None:
        element = self.joints[coupling.joint]
        tag = next(element.all("mimic"), None)
        if tag is not None and tag.attributes.get("joint") != coupling.leader:
            return  # a chain of mimic joints, expressed by its first leader in the model
        values = [float((tag.attributes if tag else {}).get(key, d)) for key, d in (("multiplier", 1), ("offset", 0))]
        if tag is None or values != [coupling.multiplier, coupling.offset]:
            numbers = {"multiplier": repr(coupling.multiplier), "offset": repr(coupling.offset)}
            self._put(element, tag, "mimic", {"joint": coupling.leader, **numbers})

    def _new_frames(self) -> None:
        """Add a link and a fixed joint for each frame that the file does not have."""
        names = {*self.links, *self.joints}
        known = {frame.name for frame in self.before.frames}
        for frame in self.model.frames:
            host = frame.on or (self.model.links[frame.link].name if frame.link >= 0 else self.model.base)
            if frame.name in known or host not in names:
                continue
            names.add(frame.name)
            at = compose(inverse(find_frame(self.model, host).placement), frame.placement)
            joint = f"{frame.name}_mount"
            while joint in names:
                joint += "_"
            names.add(joint)
            lines = [
                f"<link name={quoteattr(frame.name)}/>",
                f'<joint name={quoteattr(joint)} type="fixed">',
                f'  <origin xyz="{numbers_text(at.position)}" rpy="{numbers_text(rpy_from_rotation(at.rotation))}"/>',
                f"  <parent link={quoteattr(host)}/>",
                f"  <child link={quoteattr(frame.name)}/>",
                "</joint>",
            ]
            self.edits.append((self.root.stop, self.root.stop, "".join(f"  {line}\n" for line in lines)))

    def _put(self, element: Element, tag: Element | None, name: str, attributes: dict[str, str]) -> None:
        """Replace a child that has no children, or add it."""
        text = f"<{name} {' '.join(f'{key}={quoteattr(value)}' for key, value in attributes.items())}/>"
        if tag is not None:
            self.edits.append((*self._span(tag), text))
        else:
            self._insert_last(element, text)

    def _replace_attribute(self, element: Element, key: str, value: str) -> None:
        start, stop = element.start, self._tag_end(element.start)
        tag = self.data[start:stop].decode("utf-8")
        match = re.search(rf"""\b{key}\s*=\s*("[^"]*"|'[^']*')""", tag)
        if match is not None:
            a, b = (len(tag[:k].encode("utf-8")) for k in match.span(1))
            self.edits.append((start + a, start + b, quoteattr(value)))

    # inertias

    def _inertia(self, name: str, new: Inertial) -> None:
        fixed, locked = self._carried(name)
        locked_part = np.zeros(10)
        for other in locked:
            locked_part = locked_part + ten_of(moved(self._own(other), find_frame(self.model, other).placement))
        described = locked_part + ten_of(self._own(name))
        for other in fixed:
            described = described + ten_of(moved(self._own(other), find_frame(self.model, other).placement))
        requested = ten_of(new)
        if np.abs(requested - described).max() <= SAME * np.abs(described).max():
            return
        rest = requested - locked_part
        if rest[0] <= 0.0:
            raise ArgumentError(
                f"{name!r} with what is locked to it weighs {requested[0]:.4g} kg, and {', '.join(locked)} alone weigh "
                f"{locked_part[0]:.4g} kg in {self.source}, expected more: leave out original=."
            )
        self._replace_inertial(name, from_ten(rest))
        for other in fixed:
            if self._own(other) != Inertial():
                self._replace_inertial(other, None)

    def _carried(self, name: str) -> tuple[list[str], list[str]]:
        """Links that move with a link: those on fixed joints alone, and those behind a joint that is locked."""
        moving = {link.name for link in self.model.links}
        fixed, locked, waiting = [], [], [(name, False)]
        while waiting:
            at, held = waiting.pop()
            for child, (parent, joint) in self.parents.items():
                if parent == at and child not in moving:
                    behind = held or joint.attributes.get("type") != "fixed"
                    (locked if behind else fixed).append(child)
                    waiting.append((child, behind))
        return fixed, locked

    def _own(self, name: str) -> Inertial:
        """The inertia that the file gives a link itself."""
        return inertial_of(self.links[name], self.source)

    def _replace_inertial(self, name: str, new: Inertial | None) -> None:
        link = self.links[name]
        old = next(link.all("inertial"), None)
        if new is None:
            if old is not None:
                self.edits.append((*self._span(old), ""))
            return
        lines = inertial_lines(new, self._indent(link) + "  ")
        if old is None:
            self._insert_first(link, lines)
            return
        for tag, line in zip(("origin", "mass", "inertia"), lines[1:-1], strict=True):  # comments between them stay
            child = next(old.all(tag), None)
            if child is not None:
                self.edits.append((*self._span(child), line.strip()))
            else:
                self._insert_last(old, line.strip())

    # friction and motors

    def _losses(self, new: Joint, old: Joint) -> None:
        changed = {key for key in DYNAMICS if getattr(new, key) != getattr(old, key)}
        if not changed:
            return
        joint = self.joints[new.name]
        tag = next(joint.all("dynamics"), None)
        attributes = dict(tag.attributes) if tag is not None else {}
        for key in DYNAMICS:
            if key in changed or key in attributes:
                attributes[key] = repr(float(getattr(new, key)) + 0.0)
        if "armature" in changed or "rotor_inertia" in attributes:
            attributes["rotor_inertia"] = repr(float(new.armature))
        text = f"<dynamics {' '.join(f'{key}={quoteattr(value)}' for key, value in attributes.items())}/>"
        if tag is not None:
            self.edits.append((*self._span(tag), text))
        else:
            self._insert_last(joint, text)
        if "armature" in changed:
            self._actuators(new)

    def _actuators(self, joint: Joint) -> None:
        """The rotor's inertia in actuators of this joint alone, as Drake reads it: before the gear."""
        for transmission in self.root.all("transmission"):
            names = [one.attributes.get("name") for one in transmission.all("joint")]
            if names != [joint.name]:
                continue
            for actuator in transmission.all("actuator"):
                ratio = next(actuator.all("drake:gear_ratio"), None)
                gear = 1.0 if ratio is None else float(ratio.attributes.get("value", "1") or 1.0)
                text = f'<drake:rotor_inertia value="{float(joint.armature / gear**2)!r}"/>'
                old = next(actuator.all("drake:rotor_inertia"), None)
                if old is not None:
                    self.edits.append((*self._span(old), text))
                else:
                    self._insert_last(actuator, text)
                    self._name_drake()

    def _name_drake(self) -> None:
        end = self._tag_end(self.root.start)
        if "xmlns:drake" not in self.root.attributes and (end, end, DRAKE) not in self.edits:
            self.edits.append((end, end, DRAKE))

    # files

    def _file_names(self, element: Element, home: Path, folder: Path) -> None:
        for one in _all(element):
            name = one.attributes.get("filename", "")
            if one.tag not in ("mesh", "texture") or not name or "://" in name or os.path.isabs(name):
                continue
            moved_name = Path(os.path.relpath(home / name, folder)).as_posix()
            start, stop = one.start, self._tag_end(one.start)
            tag = self.data[start:stop].decode("utf-8")
            match = re.search(r"""filename\s*=\s*("[^"]*"|'[^']*')""", tag)
            if match is not None and moved_name != name:
                a, b = (len(tag[:k].encode("utf-8")) for k in match.span(1))
                self.edits.append((start + a, start + b, quoteattr(moved_name)))

    # where things are in the bytes

    def _tag_end(self, start: int) -> int:
        """The place of the '>' or '/>' that ends the tag that begins at `start`."""
        quote = 0
        for place in range(start, len(self.data)):
            one = self.data[place]
            if quote:
                quote = 0 if one == quote else quote
            elif one in b"\"'":
                quote = one
            elif one == 0x3E:
                return place - (self.data[place - 1] == 0x2F)
        raise AssertionError("an element that was read ends")

    def _span(self, element: Element) -> tuple[int, int]:
        """From the first byte of an element to behind its last one."""
        if self._closes_itself(element):
            return element.start, self._tag_end(element.start) + 2
        return element.start, self.data.index(b">", element.stop) + 1

    def _closes_itself(self, element: Element) -> bool:
        end = self._tag_end(element.start)
        return self.data[end : end + 1] == b"/"

    def _indent(self, element: Element) -> str:
        line = self.data[self.data.rfind(b"\n", 0, element.start) + 1 : element.start].decode("utf-8")
        return line if not line.strip() else ""

    def _insert_first(self, element: Element, lines: list[str]) -> None:
        end, text = self._tag_end(element.start), "\n" + "\n".join(lines)
        if self._closes_itself(element):
            self.edits.append((end, end + 2, f">{text}\n{self._indent(element)}</{element.tag}>"))
        else:
            self.edits.append((end + 1, end + 1, text))

    def _insert_last(self, element: Element, text: str) -> None:
        indent = self._indent(element)
        if self._closes_itself(element):
            end = self._tag_end(element.start)
            self.edits.append((end, end + 2, f">\n{indent}  {text}\n{indent}</{element.tag}>"))
        else:
            start = self.data.rfind(b"\n", 0, element.stop) + 1
            alone = not self.data[start : element.stop].strip()
            self.edits.append((start, start, f"{indent}  {text}\n") if alone else (element.stop, element.stop, text))


def _all(element: Element) -> Iterator[Element]:
    yield element
    for child in element.children:
        yield from _all(child)
