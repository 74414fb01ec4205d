"""Denavit-Hartenberg tables: read from Python rows or TOML files, and computed from a serial chain.

With Rx, Tx a rotation about and a translation along x, and likewise for z, the pose of frame i in frame i-1 is

    modified (Craig):  Rx(alpha) Tx(a) Rz(theta) Tz(d)        the frame is at the link's own joint
    standard:          Rz(theta) Tz(d) Tx(a) Rx(alpha)        the frame is at the link's far end

The joint adds q to theta (revolute) or to d (prismatic). Both are chains of z-joints whose neighbours differ by Rx Tx.
A Model's link frame is at the joint in both. In the standard form the frame named after the link is at Tx(a) Rx(alpha)
in it.

A TOML file has the same rows:

    name = "arm"
    format = "dh"
    convention = "modified"      # or "standard"; required
    angles = "degrees"           # or "radians", the default
    gravity = [0, 0, -9.81]

    [[links]]                    # one per joint, base first; keys as in `from_dh`
    alpha = -90
    a = 0.4
    mass = 2.5

    [tool]                       # optional: alpha, a, d and theta from the last link's frame to the frame "tool"
    d = 0.1

With `angles = "degrees"`, alpha and theta are in degrees, and so are lower, upper and velocity of revolute and
universal joints.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NotRequired, TypedDict, cast

import numpy as np

from linksweep.errors import ArgumentError, DescriptionError
from linksweep.joints import KINDS
from linksweep.model.assembly import Part, assemble, check_number, find_frame
from linksweep.model.formats.files import read_bytes, warn_of_ties
from linksweep.model.model import (
    BASE,
    Frame,
    Inertial,
    Joint,
    Limits,
    Link,
    Matrix,
    Model,
    Placement,
    Vector,
    compose,
    inverse,
    moved,
    snap,
)
from linksweep.model.quantities import as_inertia, as_number, as_vector
from linksweep.support.files import Table
from linksweep.support.messages import is_one_of, listing, nearest, shown

CONVENTIONS = ("modified", "standard")
JOINTS = {
    "revolute": "revolute", "R": "revolute", "prismatic": "prismatic", "P": "prismatic", "cylindrical": "cylindrical",
    "C": "cylindrical", "universal": "universal", "U": "universal",
}  # fmt: skip
GEOMETRY = ("alpha", "a", "d", "theta")
LIMITS = ("lower", "upper", "velocity", "effort")
DISSIPATION = ("armature", "damping", "friction", "torque_offset")
KEYS = (*GEOMETRY, "joint", "name", "link", "mass", "com", "inertia", *DISSIPATION, *LIMITS, "measured")


def from_dh(
    rows: Iterable[Mapping[str, object] | Sequence[float]],
    convention: str | None = None,
    *,
    name: str = "robot",
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    base: str = "base",
    tool: Placement | None = None,
    mount: Placement | None = None,
    base_inertial: Inertial | None = None,
    source: str | None = None,
) -> Model:
    """Return the model of a serial arm from one row per joint, base first.

    A row is (alpha, a, d, theta), in radians and metres, or a mapping of these (missing ones are 0) and of: `joint`
    ("revolute", "prismatic", "cylindrical" or "universal", also "R", "P", "C", "U"), `name` (of the joint), `link`,
    `mass`, `com` (3, in the DH frame of the link), `inertia` (about the com, along that frame's axes; 3, 6 or 3x3, see
    `as_inertia`), `armature`, `damping`, `friction`, `torque_offset`, `lower`, `upper`, `velocity`, `effort`, and
    `measured` (true: the inertia was measured, so that values no rigid body has do not warn). `theta` of a revolute
    and `d` of a prismatic joint are offsets, added to q; a cylindrical joint has both. A universal joint rotates about
    z and then about x.

    Frames are named after the links; "tool" is the last one, or is at `tool` in it. The table starts at the base,
    or at `mount` in it. `base_inertial` is the inertia of the base, used once it floats.
    """
    if not is_one_of(convention, CONVENTIONS):
        raise DescriptionError(
            f"{_prefix(source)}the DH convention is {shown(convention)}, expected 'modified' (Craig) or "
            "'standard'; there is no default."
        )
    parts: list[Part] = []
    parent, at = base, mount or Placement()
    for number, row in enumerate(_as_rows(rows, source), start=1):
        where = f"{_prefix(source)}DH row {number}"
        values = _as_mapping(row, where)
        turn = _about_x(values["alpha"], values["a"])
        before, after = (compose(at, turn), Placement()) if convention == "modified" else (at, turn)
        kind = _kind(values, where)
        limits = Limits(**{key: as_number(values[key], f"{where}: {key!r}") for key in LIMITS if key in values})
        armature, damping, friction, offset = (
            as_number(values.get(key, 0.0), f"{where}: {key!r}") for key in DISSIPATION
        )
        joint = Joint(
            values.get("name", f"joint{number}"),
            kind,
            placement=compose(before, _about_z(values["theta"], values["d"])),
            armature=armature,
            damping=damping,
            friction=friction,
            limits=limits,
            torque_offset=offset,
        )
        inertial = moved(_inertial(values, where), after)
        link = values.get("link", f"link{number}")
        measured = values.get("measured", False)
        if not isinstance(measured, bool):
            raise DescriptionError(f"{where}: 'measured' is {shown(measured)}, expected true or false.")
        parts.append(Part(link, parent, joint, inertial, frame=after, measured=measured))
        parent, at = link, after
    if not parts:
        raise DescriptionError(f"{_prefix(source)}the DH table has no rows, expected one per joint.")
    if parent != "tool":  # the last link may have this name
        mount = compose(at, tool or Placement())
        parts.append(Part("tool", parent, Joint("tool mount", "fixed", placement=mount)))
    return assemble(name, parts, base=base, base_inertial=base_inertial or Inertial(), gravity=gravity, source=source)


def _prefix(source: str | None) -> str:
    return f"{source}: " if source else ""


def _as_rows(rows: object, source: str | None) -> list[object]:
    if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Iterable):
        raise DescriptionError(f"{_prefix(source)}the DH table is a {type(rows).__name__}, expected one row per joint.")
    listed = list(rows)
    check_number(len(listed), source)
    return listed


def _as_mapping(row: object, where: str) -> Table:
    """Return the row as a dict, with complete geometry as floats."""
    values: Table
    if isinstance(row, Mapping):
        values = dict(row)
        for key in values:
            if key not in KEYS:
                raise DescriptionError(
                    f"{where}: the key {shown(key)} is not known{nearest(key, KEYS)}, expected some of "
                    f"{listing(KEYS, 30)}."
                )
    else:
        items = list(row) if isinstance(row, Iterable) and not isinstance(row, (str, bytes)) else []
        if len(items) != 4:
            raise DescriptionError(
                f"{where}: the row is {shown(row)}, expected a mapping or the four numbers alpha, a, d, theta."
            )
        values = dict(zip(GEOMETRY, items, strict=True))
    for key in GEOMETRY:
        value = values[key] = as_number(values.get(key, 0.0), f"{where}: {key!r}")
        if not math.isfinite(value):
            raise DescriptionError(f"{where}: {key!r} is {value}, expected a finite number.")
    return values


def _kind(values: Table, where: str) -> str:
    kind = values.get("joint", "revolute")
    if not isinstance(kind, str) or kind not in JOINTS:
        raise DescriptionError(f"{where}: 'joint' is {shown(kind)}, expected {listing(list(JOINTS))}.")
    return JOINTS[kind]


def _inertial(values: Table, where: str) -> Inertial:
    mass = as_number(values.get("mass", 0.0), f"{where}: 'mass'")
    com = as_vector(values.get("com", (0.0, 0.0, 0.0)), f"{where}: 'com'")
    return Inertial(mass, com, as_inertia(values.get("inertia", (0.0, 0.0, 0.0)), f"{where}: 'inertia'"))


def _about_x(alpha: float, a: float) -> Placement:
    c, s = math.cos(alpha), math.sin(alpha)
    return Placement(snap(((1.0, 0.0, 0.0), (0.0, c, -s), (0.0, s, c))), (a, 0.0, 0.0))


def _about_z(theta: float, d: float) -> Placement:
    c, s = math.cos(theta), math.sin(theta)
    return Placement(snap(((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0))), (0.0, 0.0, d))


# ---- DH tables in TOML files -----------------------------------------------------------------------------------

LARGEST_TABLE = 5_000_000
# tomllib takes the square of the number of parts of one key
LONG_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]{1,200}+|"[^"\n]{0,200}+"|'[^'\n]{0,200}+')[ \t]{0,9}+\.[ \t]{0,9}+){32}"""
)
TOML_KEYS = ("name", "format", "convention", "angles", "gravity", "base", "links", "tool")
ANGLES = ("alpha", "theta")
JOINT_ANGLES = ("lower", "upper", "velocity")


def read_toml(path: str | os.PathLike[str]) -> Model:
    """Return the Model of a DH table in a TOML file."""
    source = os.fspath(path)
    data = read_bytes(Path(source), LARGEST_TABLE)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DescriptionError(
            f"{source}: byte {error.start} is not UTF-8, expected TOML text: save the file as UTF-8."
        ) from None
    return parse_toml(text, source)


def parse_toml(text: str, source: str) -> Model:
    """Return the Model of a DH table in TOML text; messages name `source`."""
    if LONG_KEY.search(text):
        raise DescriptionError(f"{source}: a key has more than 32 parts, expected a table of links.")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DescriptionError(f"{source}: this is not valid TOML ({error}).") from None
    except (RecursionError, ValueError) as error:  # very deep nesting; integers of thousands of digits
        raise DescriptionError(
            f"{source}: this TOML cannot be read ({type(error).__name__}): simplify or shorten its values."
        ) from None
    for key in table:
        if key not in TOML_KEYS:
            raise DescriptionError(
                f"{source}: the key {shown(key)} is not known{nearest(key, TOML_KEYS)}, expected some of "
                f"{listing(TOML_KEYS)}."
            )
    _one_of(table, "format", ("dh",), source)
    angles = _one_of(table, "angles", ("radians", "degrees"), source, default="radians")
    rows = table.get("links")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DescriptionError(f"{source}: 'links' is not a list of tables, expected [[links]] once per joint.")
    tool = _tool(table.get("tool", {}), source)
    if angles == "degrees":
        rows = [_in_radians(row, f"{source}: DH row {number}") for number, row in enumerate(rows, start=1)]
        tool = _in_radians(tool, f"{source}: tool")
    convention = table.get("convention")
    if "convention" in table and not isinstance(convention, str):
        raise DescriptionError(f"{source}: 'convention' is {shown(convention)}, expected 'modified' or 'standard'.")
    return from_dh(
        rows,
        convention,
        name=_text(table, "name", "robot", source),
        gravity=as_vector(table.get("gravity", (0.0, 0.0, -9.81)), f"{source}: 'gravity'"),
        base=_text(table, "base", "base", source),
        tool=_transform(_as_mapping(tool, f"{source}: tool"), convention),
        source=source,
    )


def _tool(tool: object, source: str) -> Table:
    """Return the table of the tool frame, which has geometry only."""
    if not isinstance(tool, dict) or not set(tool) <= set(GEOMETRY):
        raise DescriptionError(f"{source}: 'tool' is {shown(tool)}, expected a table of {listing(GEOMETRY)}.")
    return tool


def _transform(row: Table, convention: str | None) -> Placement:
    """Return the transform of a DH row without a joint."""
    about_x, about_z = _about_x(row["alpha"], row["a"]), _about_z(row["theta"], row["d"])
    return compose(about_z, about_x) if convention == "standard" else compose(about_x, about_z)


def _one_of(table: Table, key: str, known: tuple[str, ...], source: str, default: str | None = None) -> str:
    value = table.get(key, default)
    if value not in known:
        choices = " or ".join(repr(k) for k in known)
        raise DescriptionError(f'{source}: {key!r} is {shown(value)}, expected {choices}: write {key} = "{known[0]}".')
    return value


def _text(table: Table, key: str, default: str, source: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str) or not value:
        raise DescriptionError(f"{source}: {key!r} is {shown(value)}, expected text.")
    return value


def _in_radians(row: Table, where: str) -> Table:
    joint = row.get("joint", "revolute")
    kind = KINDS.get(JOINTS.get(joint, "")) if isinstance(joint, str) else None
    turned = ANGLES + JOINT_ANGLES if kind is None or all(rate.turns for rate in kind.rates) else ANGLES
    return {key: math.radians(as_number(v, f"{where}: {key!r}")) if key in turned else v for key, v in row.items()}


# ---- a chain as a DH table -------------------------------------------------------------------------------------
# Each joint axis is a line. The frame at joint k has its z axis on that line and its x axis on the common normal to the
# next line. Rz(theta) Tz(d) Tx(a) Rx(alpha) leads from one frame to the next. A base that does not fit this pattern
# gets a mount. Parallel axes have many common normals, of which the one with d = 0 is used.

PARALLEL = 1e-11  # sine of the angle between axes that are meant to be parallel: the size that readers snap
FARTHEST = 1e4  # metres; beyond, a common normal costs more digits than torques can spare


@dataclass(slots=True)
class _Step:
    """The transform from one joint axis to the next: Rz(theta) Tz(d) Tx(a) Rx(alpha)."""

    theta: float = 0.0
    d: float = 0.0
    a: float = 0.0
    alpha: float = 0.0


class DHRow(TypedDict):
    """A joint of a Denavit-Hartenberg table, as `Robot.from_dh` reads it (rad, m, kg)."""

    alpha: float
    a: float
    d: float
    theta: float
    joint: str
    name: str
    link: str
    mass: float
    com: Vector
    inertia: Matrix
    armature: NotRequired[float]
    damping: NotRequired[float]
    friction: NotRequired[float]
    torque_offset: NotRequired[float]
    lower: NotRequired[float]
    upper: NotRequired[float]
    velocity: NotRequired[float]
    effort: NotRequired[float]
    measured: NotRequired[bool]


class DHTable(TypedDict):
    """The arguments of `Robot.from_dh`."""

    rows: list[DHRow]
    convention: str
    name: str
    gravity: Vector
    base: str
    mount: Placement | None
    tool: Placement | None
    base_inertial: Inertial | None


def to_dh(model: Model, convention: str | None = None, tip: str | None = None) -> DHTable:
    """Return arguments of `from_dh` for the same chain: Robot.from_dh(**robot.to_dh("modified")).

    Frames named after links are those of the table. "tool" is the frame `tip`, by default "tool" or the last frame on
    the last link. Other frames are dropped.
    """
    if not is_one_of(convention, CONVENTIONS):
        raise ArgumentError(f"the DH convention is {shown(convention)}, expected 'modified' or 'standard'.")
    for index, link in enumerate(model.links):
        if link.parent != index - 1 or not link.joint.type.in_dh:
            what = f"branches at {link.name!r}" if link.parent != index - 1 else f"has a {link.joint.kind} joint"
            raise ArgumentError(
                f"{model.name!r} {what}, expected a serial chain of revolute and prismatic joints: take one with "
                "robot.subchain or robot.lock."
            )
    if model.couplings:
        raise ArgumentError(
            f"joints of {model.name!r} follow others, which a DH table does not have, expected free ones: use "
            "robot.uncoupled."
        )
    warn_of_ties(model, "a DH table", "to_dh")
    placed = _placements(model)
    mount, before, steps = _steps(model, placed, convention)
    rows: list[DHRow] = []
    at, end = compose(mount, _about_x(before.alpha, before.a)), mount
    for link, own, step, last in zip(model.links, placed, steps, [before, *steps[:-1]], strict=True):
        at = compose(at, _about_z(step.theta, step.d))  # the body frame, at the joint
        along = _about_x(step.alpha, step.a)
        far = along if convention == "standard" else Placement()
        outer = step if convention == "standard" else last
        dh_frame = compose(at, far)
        rows.append(_row(link, compose(inverse(dh_frame), own), step, outer))
        end, at = dh_frame, compose(at, along)
    tool = _tip(model, tip)
    return {
        "rows": rows,
        "convention": convention,
        "name": model.name,
        "gravity": model.gravity,
        "base": model.base,
        "mount": None if mount == Placement() else mount,
        "tool": None if tool is None else compose(inverse(end), compose(placed[-1], tool.placement)),
        "base_inertial": None if model.base_inertial == Inertial() else model.base_inertial,
    }


def _row(link: Link, at: Placement, step: _Step, outer: _Step) -> DHRow:
    """One row; `at` is the pose of the link frame in its DH frame."""
    joint, body = link.joint, moved(link.inertial, at)
    row: dict[str, object] = {
        "alpha": outer.alpha, "a": outer.a, "d": step.d, "theta": step.theta, "joint": joint.kind, "name": joint.name,
        "link": link.name, "mass": body.mass, "com": body.com, "inertia": body.inertia,
    }  # fmt: skip
    row |= {key: getattr(joint, key) for key in DISSIPATION if getattr(joint, key)}
    row |= {key: getattr(joint.limits, key) for key in LIMITS if math.isfinite(getattr(joint.limits, key))}
    moments = np.linalg.eigvalsh(np.array(body.inertia, dtype=float))
    if moments[0] < 0 or moments[2] > moments[0] + moments[1]:
        row["measured"] = True  # the reader of this Model has warned of it already
    return cast(DHRow, row)


def _tip(model: Model, tip: str | None) -> Frame | None:
    last = len(model.links) - 1
    if tip is not None:
        frame = find_frame(model, tip)
        if frame.link != last:
            raise ArgumentError(f"the frame {tip!r} is not on the last link, expected one that is.")
        return frame
    here = {frame.name: frame for frame in model.frames if frame.link == last}
    return here.get("tool") or next(reversed(here.values()), None)


def _placements(model: Model) -> list[Placement]:
    """The link frames in the base at q = 0."""
    placed: list[Placement] = []
    for link in model.links:
        outer = Placement() if link.parent == BASE else placed[link.parent]
        placed.append(compose(outer, link.joint.placement))
    return placed


def _steps(model: Model, placed: list[Placement], convention: str) -> tuple[Placement, _Step, list[_Step]]:
    """The mount of the table on the base, the step to the first axis, and one step for each joint."""
    lines = []
    for link, at in zip(model.links, placed, strict=True):
        rotation = np.array(at.rotation)
        direction = rotation @ np.array(link.joint.axis)
        lines.append((np.array(at.position, dtype=float), direction / np.linalg.norm(direction)))
    mount, before = Placement(), _to_first(lines[0], convention)
    if before is None:  # the base does not fit: the table starts at the first joint
        before, mount = _Step(), _on_line(*lines[0])
    origin, axes = _arrays(compose(mount, _about_x(before.alpha, before.a)))
    steps = []
    for k, (point, direction) in enumerate(lines):
        step = _Step()
        if k + 1 < len(lines):
            step = _between(origin, axes, lines[k + 1], model.links[k : k + 2])
        elif k == 0:  # a single joint keeps its described origin
            step.d = float((point - origin) @ direction)
        frame = compose(_placement(origin, axes), _about_z(step.theta, step.d))
        origin, axes = _arrays(compose(frame, _about_x(step.alpha, step.a)))
        steps.append(step)
    return mount, before, steps


def _to_first(line: tuple[np.ndarray, np.ndarray], convention: str) -> _Step | None:
    """Tx(a) Rx(alpha) from the base to the first axis, where there is one; standard tables begin on the axis."""
    point, (x, y, z) = line
    away = point - np.array([point[0], 0.0, 0.0])
    size = 1.0 + float(np.abs(point).max())
    meets = np.abs(np.cross(away, line[1])).max() <= PARALLEL * size
    if abs(x) > PARALLEL or not meets:
        return None
    step = _Step(a=float(point[0]), alpha=_angle(-y, z))
    if convention == "standard" and (abs(step.a) > PARALLEL * size or abs(step.alpha) > PARALLEL):
        return None
    return step if convention == "modified" else _Step()


def _between(
    origin: np.ndarray, axes: np.ndarray, line: tuple[np.ndarray, np.ndarray], pair: tuple[Link, ...]
) -> _Step:
    """From a frame on one axis (its z) to the next axis, a line; `pair` is named in errors."""
    point, direction = line
    x, y, z = axes.T
    normal = np.cross(z, direction)
    sine = float(np.linalg.norm(normal))
    way = point - origin
    if sine <= PARALLEL:
        across = way - (way @ z) * z
        distance = float(np.linalg.norm(across))
        toward = across / distance if distance > PARALLEL * (1.0 + float(np.abs(way).max())) else x
        step = _Step(a=float(way @ toward), alpha=0.0 if direction @ z > 0 else math.pi)
    else:
        toward = normal / sine
        a = float(way @ toward)
        if a < 0 if abs(a) > 1e-12 else toward @ x < 0:  # axes that meet have two normals: the nearer to x
            toward, a = -toward, -a
        # along both axes to the feet of the normal: way + t direction = d z + a toward
        d = float(np.cross(way, direction) @ normal) / sine**2
        if max(abs(d), abs(a)) > FARTHEST:
            raise ArgumentError(
                f"the axes of {pair[0].joint.name!r} and {pair[1].joint.name!r} have a common normal {abs(a):.0f} m "
                f"long and {abs(d):.0f} m away, expected at most {FARTHEST:.0f} m, because a DH table loses its digits "
                "there: make axes parallel that are nearly so."
            )
        step = _Step(d=d, a=a, alpha=math.atan2(float(np.cross(z, direction) @ toward), float(z @ direction)))
    step.theta = _angle(float(toward @ y), float(toward @ x))
    return step


def _angle(sine: float, cosine: float) -> float:
    return math.atan2(sine, cosine) + 0.0


def _on_line(point: np.ndarray, direction: np.ndarray) -> Placement:
    """A frame at `point` with z along `direction`."""
    x = np.eye(3)[int(np.argmin(np.abs(direction)))]
    x = x - (x @ direction) * direction
    x /= np.linalg.norm(x)
    return _placement(point, np.column_stack([x, np.cross(direction, x), direction]))


def _placement(origin: np.ndarray, axes: np.ndarray) -> Placement:
    x, y, z = (as_vector(row, "axes") for row in axes + 0.0)
    return Placement(snap((x, y, z)), as_vector(origin, "origin"))


def _arrays(placement: Placement) -> tuple[np.ndarray, np.ndarray]:
    return np.array(placement.position, dtype=float), np.array(placement.rotation, dtype=float)
