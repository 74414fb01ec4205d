"""MJCF text of a Model, for MuJoCo: bodies, joints, motors, frames as sites, constraints, springs and mimic joints.

MuJoCo orders bodies depth first, so its coordinates may be in another order than those of the robot;
`linksweep.conventions` converts both ways by name. Geometry is not written, because dynamics does not need it. Numbers
have all their digits, and inertias are written along principal axes, as MuJoCo stores them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

import numpy as np

from linksweep.errors import ArgumentError, ModelWarning, warn_user
from linksweep.model.assembly import find_frame
from linksweep.model.constraints import Constraint, Spring
from linksweep.model.formats.files import check_xml_text
from linksweep.model.model import (
    BASE,
    Frame,
    Inertial,
    Joint,
    Model,
    Placement,
    apply,
    compose,
    inverse,
    moved,
    transpose,
)
from linksweep.support.messages import listing

MIN_INERTIA = 1e-14  # MuJoCo requires mass and moments above 1e-15 of bodies that move
TYPES = {"revolute": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free"}
WORLD = "world"


def to_mjcf(model: Model) -> str:
    """Return MJCF text; joints that MuJoCo does not have, and impossible inertias, raise `ArgumentError`.

    One warning lists what MJCF cannot store: velocity limits, torque offsets, and some kinds of constraints.
    """
    return _Writer(model).text()


class _Writer:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.dropped: list[str] = []
        self.bodies: dict[int, str] = {}
        self.frames: dict[int, Placement] = {BASE: Placement()}  # of each body on its link
        self.sites: dict[int, list[tuple[str, Placement]]] = {BASE: []}
        self.site_names: set[str] = set()
        self.children: dict[int, list[int]] = {BASE: []}
        for index in model.document_order:
            self.children.setdefault(model.links[index].parent, []).append(index)
        self._name_bodies()

    def text(self) -> str:
        equalities, tendons = self._constraints(), self._springs()
        lines = [
            f"<mujoco model={_name(self.model.name)}>",
            '  <compiler angle="radian" autolimits="false" inertiafromgeom="false"/>',
            f'  <option gravity="{_numbers(self.model.gravity)}"/>',
            "  <worldbody>",
            *self._base(),
            "  </worldbody>",
            *_section("actuator", self._motors()),
            *_section("equality", [*equalities[0], *self._couplings()]),
            *_section("tendon", [*equalities[1], *tendons]),
            "</mujoco>",
            "",
        ]
        self._note_parameters()
        if self.dropped:
            warn_user(
                f"to_mjcf: MJCF cannot store {'; '.join(self.dropped)} of {self.model.name!r}, which are left out.",
                ModelWarning,
            )
        return "\n".join(lines)

    # ---- names and frames

    def _name_bodies(self) -> None:
        """Choose names and frames of bodies: those of links, except where the joint's coordinates forbid the frame."""
        model = self.model
        named = {frame.name: frame for frame in model.frames}
        taken = {WORLD, model.base, *(link.name for link in model.links)}
        for index, link in enumerate(model.links):
            at = named[link.name].placement
            about_body = link.joint.kind in ("free", "spherical") and at != Placement()
            name = link.name
            if about_body or name in (WORLD, model.base):
                name, at = f"{link.name}_body", Placement()
                while name in taken:
                    name += "_"
                taken.add(name)
            self.bodies[index], self.frames[index] = name, at
        self.bodies[BASE] = model.base
        for frame in model.frames:
            if frame.name != self.bodies[frame.link]:
                self._site(frame.name, frame, Placement())

    def _site(self, name: str, frame: Frame, at: Placement) -> str:
        """Add a site at `at` on a frame, and return its name."""
        while name in self.site_names:
            name += "_"
        self.site_names.add(name)
        place = compose(inverse(self.frames[frame.link]), compose(frame.placement, at))
        self.sites.setdefault(frame.link, []).append((name, place))
        return name

    # ---- bodies

    def _base(self) -> Iterator[str]:
        """The base is a body without a joint, unless it is the world; free bodies are children of the world."""
        model, fixed = self.model, []
        for index in self.children[BASE]:
            if model.links[index].joint.kind == "free":
                yield from self._body(index, "    ")
            else:
                fixed.append(index)
        indent = "    "
        if model.base != WORLD:
            yield f"    <body name={_name(model.base)}>"
            indent = "      "
            if model.base_inertial.mass > 0.0:
                yield from self._inertial(model.base, model.base_inertial, indent, exact=False)
        yield from self._site_lines(BASE, indent)
        for index in fixed:
            yield from self._body(index, indent)
        if model.base != WORLD:
            yield "    </body>"

    def _body(self, index: int, indent: str) -> Iterator[str]:
        # without recursion: chains may have thousands of links
        stack: list[tuple[int, str, bool]] = [(index, indent, False)]
        while stack:
            index, indent, done = stack.pop()
            if done:
                yield f"{indent}</body>"
                continue
            link = self.model.links[index]
            at = self.frames[index]
            pose = compose(inverse(self.frames[link.parent]), compose(link.joint.placement, at))
            yield f"{indent}<body name={_name(self.bodies[index])} {_pose(pose)}>"
            yield from self._joint(link.joint, at, link.parent, indent + "  ")
            body = moved(link.inertial, inverse(at))
            yield from self._inertial(link.name, body, indent + "  ", exact=True)
            yield from self._site_lines(index, indent + "  ")
            stack.append((index, indent, True))
            stack += [(child, indent + "  ", False) for child in reversed(self.children.get(index, []))]

    def _site_lines(self, index: int, indent: str) -> list[str]:
        return [f"{indent}<site name={_name(name)} {_pose(at)}/>" for name, at in self.sites.get(index, ())]

    def _inertial(self, name: str, body: Inertial, indent: str, exact: bool) -> Iterator[str]:
        moments, axes = np.linalg.eigh(np.array(body.inertia, dtype=float))
        rounding = 1e-9 * abs(moments[2]) + 1e-15
        if exact and (moments[0] < -rounding or moments[0] + moments[1] < moments[2] - rounding):
            raise ArgumentError(
                f"the inertia of link {name!r} has the principal moments {moments.tolist()}, which MuJoCo does not "
                f"accept, expected moments of a rigid body: correct it with robot.with_inertia."
            )
        if np.linalg.det(axes) < 0.0:
            axes = -axes
        moments = np.maximum(moments, MIN_INERTIA)
        moments[2] = min(moments[2], moments[0] + moments[1])  # rounding, or moments of zero
        rows = tuple(tuple(row) for row in axes.tolist())
        pose = _pose(Placement(rows, body.com))  # type: ignore[arg-type]
        mass = max(float(body.mass), MIN_INERTIA)
        yield f'{indent}<inertial {pose} mass="{mass!r}" diaginertia="{_numbers(moments.tolist())}"/>'

    def _joint(self, joint: Joint, at: Placement, parent: int, indent: str) -> Iterator[str]:
        if joint.kind not in TYPES and joint.kind != "cylindrical":
            raise ArgumentError(
                f"joint {joint.name!r} is {joint.kind}, which MuJoCo does not have, expected {listing(TYPES)} or "
                f"cylindrical joints: lock it first."
            )
        if joint.kind == "free":
            if parent != BASE:
                raise ArgumentError(f"joint {joint.name!r} is a free joint on a moving link, expected one on the base.")
            if joint.placement != Placement():
                warn_user(
                    f"to_mjcf: coordinates of the free joint {joint.name!r} are relative to the world in MuJoCo, and "
                    f"relative to its placement here.",
                    ModelWarning,
                )
        back = transpose(at.rotation)
        x, y, z = apply(back, at.position)
        place = f'pos="{_numbers((-x, -y, -z))}" axis="{_numbers(apply(back, joint.axis))}"'
        if joint.kind in ("free", "spherical"):
            place = "" if joint.kind == "free" else f'pos="{_numbers((-x, -y, -z))}"'
        parameters = {"armature": joint.armature, "damping": joint.damping, "frictionloss": joint.friction}
        details = " ".join(f'{key}="{float(value)!r}"' for key, value in parameters.items() if value)
        if joint.kind == "cylindrical":
            for suffix, kind in (("angle", "hinge"), ("z", "slide")):
                yield f'{indent}<joint name={_name(f"{joint.name}_{suffix}")} type="{kind}" {place} {details}/>'
            return
        kind = TYPES[joint.kind]
        yield f'{indent}<joint name={_name(joint.name)} type="{kind}" {place} {self._limits(joint)} {details}/>'

    def _limits(self, joint: Joint) -> str:
        if joint.kind not in ("revolute", "prismatic"):
            return ""
        limits, words = joint.limits, []
        if math.isfinite(limits.lower) or math.isfinite(limits.upper):
            if limits.lower < limits.upper:
                lower, upper = max(limits.lower, -1e10), min(limits.upper, 1e10)
                words.append(f'limited="true" range="{_numbers((lower, upper))}"')
            else:
                self.dropped.append(f"the range of {joint.name}, whose lower limit is not below the upper")
        if 0.0 < limits.effort < math.inf:
            words.append(f'actuatorfrclimited="true" actuatorfrcrange="{_numbers((-limits.effort, limits.effort))}"')
        return " ".join(words)

    # ---- motors, couplings, constraints, springs

    def _motors(self) -> Iterator[str]:
        followers = {coupling.joint for coupling in self.model.couplings}
        for index in self.model.document_order:
            joint = self.model.links[index].joint
            if not joint.actuated or joint.kind == "free" or joint.name in followers:
                continue
            limit = ""
            if 0.0 < joint.limits.effort < math.inf:
                limit = f' ctrllimited="true" ctrlrange="{_numbers((-joint.limits.effort, joint.limits.effort))}"'
            motors = {joint.name: (joint.name, "1")}
            if joint.kind == "spherical":
                gears = {"x": "1 0 0 0 0 0", "y": "0 1 0 0 0 0", "z": "0 0 1 0 0 0"}
                motors = {f"{joint.name}_{axis}": (joint.name, gear) for axis, gear in gears.items()}
            elif joint.kind == "cylindrical":
                motors = {f"{joint.name}_{part}": (f"{joint.name}_{part}", "1") for part in ("angle", "z")}
            for name, (driven, gear) in motors.items():
                yield f'<motor name={_name(name)} joint={_name(driven)} gear="{gear}"{limit}/>'

    def _couplings(self) -> Iterator[str]:
        for c in self.model.couplings:
            numbers = _numbers((c.offset, c.multiplier, 0.0, 0.0, 0.0))
            yield f'<joint joint1={_name(c.joint)} joint2={_name(c.leader)} polycoef="{numbers}"/>'

    def _constraints(self) -> tuple[list[str], list[str]]:
        """Equalities, and the tendons that distances need. A hinge is two points on its axis."""
        equalities: list[str] = []
        tendons: list[str] = []
        for number, item in enumerate(self.model.constraints, start=1):
            label = item.name or f"{item.kind}{number}"
            name = _name(label)
            if item.kind in ("rigid", "point"):
                tag = "weld" if item.kind == "rigid" else "connect"
                first, second = self._ends(item, label, Placement())
                equalities.append(f"<{tag} name={name} site1={first} site2={second}/>")
            elif item.kind == "hinge":
                for suffix, height in (("", 0.0), ("_axis", 0.1)):
                    first, second = self._ends(item, label + suffix, Placement(position=(0.0, 0.0, height)))
                    equalities.append(f"<connect name={_name(label + suffix)} site1={first} site2={second}/>")
            elif item.kind == "distance":
                first, second = self._ends(item, label, Placement())
                tendons += _spatial(f"{label}_tendon", first, second, "")
                # MuJoCo measures from the length of the tendon in qpos0
                beyond = _numbers((item.length - self._distance(item), 0.0, 0.0, 0.0, 0.0))
                equalities.append(f'<tendon name={name} tendon1={_name(f"{label}_tendon")} polycoef="{beyond}"/>')
            else:
                self.dropped.append(f"the constraint {item.label}")
        return equalities, tendons

    def _ends(self, item: Constraint | Spring, label: str, offset: Placement) -> tuple[str, str]:
        first = find_frame(self.model, item.a)
        second = Frame("", BASE) if not item.b else find_frame(self.model, item.b)
        a = self._site(f"{label}_a", first, offset)
        return _name(a), _name(self._site(f"{label}_b", second, compose(item.at, offset)))

    def _distance(self, item: Constraint) -> float:
        """Return the distance between the origins of a constraint in the neutral configuration."""
        first = find_frame(self.model, item.a)
        second = Frame("", BASE) if not item.b else find_frame(self.model, item.b)
        ends = []
        for frame, at in ((first, Placement()), (second, item.at)):
            place, link = compose(frame.placement, at), frame.link
            while link != BASE:
                place = compose(self.model.links[link].joint.placement, place)
                link = self.model.links[link].parent
            ends.append(place.position)
        return math.dist(*ends)

    def _springs(self) -> list[str]:
        lines: list[str] = []
        for number, spring in enumerate(self.model.springs, start=1):
            if spring.damping and not spring.length:
                self.dropped.append(f"damping of the spring {spring.a} - {spring.b or 'world'} across its direction")
            first, second = self._ends(spring, f"spring{number}", Placement())
            values = {"stiffness": spring.stiffness, "springlength": spring.length, "damping": spring.damping}
            details = " ".join(f'{key}="{float(value)!r}"' for key, value in values.items())
            lines += _spatial(f"spring{number}", first, second, details)
        return lines

    def _note_parameters(self) -> None:
        joints = [link.joint for link in self.model.links]
        for what, names in (
            ("the velocity limits", [joint.name for joint in joints if joint.limits.velocity < math.inf]),
            ("the torque offsets", [joint.name for joint in joints if joint.torque_offset]),
        ):
            if names:
                self.dropped.append(f"{what} of {listing(names, 4, quoted=False)}")


def _spatial(name: str, first: str, second: str, details: str) -> list[str]:
    return [
        f"<spatial name={_name(name)} {details}>", f"  <site site={first}/>", f"  <site site={second}/>", "</spatial>",
    ]  # fmt: skip


def _section(tag: str, lines: list[str] | Iterator[str]) -> list[str]:
    inner = [f"    {line}" for line in lines]
    return [f"  <{tag}>", *inner, f"  </{tag}>"] if inner else []


def _name(name: str) -> str:
    check_xml_text(name)
    return quoteattr(name)


def _numbers(values: tuple[float, ...] | list[float]) -> str:
    return " ".join(repr(float(x) + 0.0) for x in values)


def _pose(at: Placement) -> str:
    words = [f'pos="{_numbers(at.position)}"']
    quaternion = _quaternion(np.array(at.rotation, dtype=float))
    if quaternion != [1.0, 0.0, 0.0, 0.0]:
        words.append(f'quat="{_numbers(quaternion)}"')
    return " ".join(words)


def _quaternion(r: np.ndarray) -> list[float]:
    """Return the quaternion wxyz of a rotation, from its largest component (Shepperd)."""
    squares = [1.0 + r[0, 0] + r[1, 1] + r[2, 2], *(1.0 + 2.0 * r[i, i] - np.trace(r) for i in range(3))]
    largest = int(np.argmax(squares))
    w = [squares[0], r[2, 1] - r[1, 2], r[0, 2] - r[2, 0], r[1, 0] - r[0, 1]]
    x = [r[2, 1] - r[1, 2], squares[1], r[0, 1] + r[1, 0], r[0, 2] + r[2, 0]]
    y = [r[0, 2] - r[2, 0], r[0, 1] + r[1, 0], squares[2], r[1, 2] + r[2, 1]]
    z = [r[1, 0] - r[0, 1], r[0, 2] + r[2, 0], r[1, 2] + r[2, 1], squares[3]]
    quaternion = np.array((w, x, y, z)[largest], dtype=float)
    return (quaternion / np.linalg.norm(quaternion)).tolist()
