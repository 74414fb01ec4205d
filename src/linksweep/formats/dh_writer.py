"""A serial chain as a Denavit-Hartenberg table, in both conventions (see dh.py for what they are).

Every joint's axis is a line. The frame at joint k has its z on that line and its x on the common normal to the next
one; between neighbours stands Rz(theta) Tz(d) Tx(a) Rx(alpha), and where the base does not fit this pattern, a mount
leads from it to the table. Parallel axes share many normals: the one that makes d = 0 is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NotRequired, TypedDict, cast

import numpy as np

from linksweep.description.assembly import find_frame
from linksweep.description.model import (
    BASE,
    Frame,
    Inertial,
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
from linksweep.description.quantities import as_vector
from linksweep.errors import ArgumentError
from linksweep.formats.dh import CONVENTIONS, DISSIPATION, LIMITS
from linksweep.formats.left_out import warn_of_ties
from linksweep.support.messages import is_one_of, shown

PARALLEL = 1e-11  # sine of the angle between axes that are meant to be parallel: the size that readers snap
FARTHEST = 1e4  # metres; beyond, a common normal costs more digits than torques can spare


@dataclass(slots=True)
class _Step:
    """From a joint's line to the next: Rz(theta) Tz(d) Tx(a) Rx(alpha)."""

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
    """Arguments of `from_dh` that describe the same chain: Robot.from_dh(**robot.to_dh("modified")).

    The frames named after links are the table's own; "tool" is the frame `tip` (default: "tool", or the last one on
    the last link); other frames are not kept.
    """
    if not is_one_of(convention, CONVENTIONS):
        raise ArgumentError(f"the DH convention is {shown(convention)}, expected 'modified' or 'standard': say it.")
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
    """One row; `at` is where the described link frame stands in its DH frame."""
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
            raise ArgumentError(f"the frame {tip!r} is not on the last link, expected one that is: choose another tip.")
        return frame
    here = {frame.name: frame for frame in model.frames if frame.link == last}
    return here.get("tool") or next(reversed(here.values()), None)


def _placements(model: Model) -> list[Placement]:
    """The links' frames in the base at q = 0."""
    placed: list[Placement] = []
    for link in model.links:
        outer = Placement() if link.parent == BASE else placed[link.parent]
        placed.append(compose(outer, link.joint.placement))
    return placed


def _steps(model: Model, placed: list[Placement], convention: str) -> tuple[Placement, _Step, list[_Step]]:
    """Where the table starts in the base, what leads to the first axis, and one step for each joint."""
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


def _about_x(alpha: float, a: float) -> Placement:
    c, s = math.cos(alpha), math.sin(alpha)
    return Placement(snap(((1.0, 0.0, 0.0), (0.0, c, -s), (0.0, s, c))), (a, 0.0, 0.0))


def _about_z(theta: float, d: float) -> Placement:
    c, s = math.cos(theta), math.sin(theta)
    turn: Matrix = ((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0))
    return Placement(snap(turn), (0.0, 0.0, d))
