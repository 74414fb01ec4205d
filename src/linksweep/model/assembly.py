"""Assembly of a checked `Model` from the links and joints of a file: the last step of every reader.

`assemble` checks names, tree and values, sorts links so that parents come first, and merges links on fixed joints into
the link that carries them. Nothing recurses, so a chain of 10,000 links works like one of six.
"""

from __future__ import annotations

import heapq
import unicodedata
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError, DescriptionError, ModelWarning, warn_user
from linksweep.joints import KINDS
from linksweep.model.model import (
    BASE,
    Frame,
    Inertial,
    Joint,
    Link,
    Model,
    Placement,
    compose,
    merge,
    snap,
    snap_vector,
)
from linksweep.model.quantities import as_inertia, as_number, as_vector
from linksweep.support.checks import real_number
from linksweep.support.messages import listing, nearest, shown

FREEDOMS = {**{name: kind.nv for name, kind in KINDS.items()}, "fixed": 0}
"""Degrees of freedom of every kind of joint; links on joints with 0 are merged into their parent."""

LARGEST = 1e30  # beyond any robot; keeps products of a few numbers from overflowing
MAX_LINKS = 50_000  # half a minute to load
MAX_NAME = 200  # characters, so that messages with a few names can be read


@dataclass(frozen=True, slots=True)
class Part:
    """One link of a file with the joint that carries it, in document order.

    `joint.placement` is in the parent's body frame, `inertial` in the link's own. `frame` is the pose in the body frame
    of the frame that has the link's name (standard DH names the far end of a link, not its joint). `measured`: the
    inertia was measured, so that a violated triangle inequality is expected and does not warn.
    """

    link: str
    parent: str
    joint: Joint
    inertial: Inertial = Inertial()
    line: int | None = None
    frame: Placement = Placement()
    measured: bool = False


def assemble(
    name: str,
    parts: Sequence[Part],
    *,
    base: str,
    base_inertial: Inertial = Inertial(),
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    source: str | None = None,
    rigid: bool = False,
) -> Model:
    """Return the Model of `parts` (in document order) on the fixed link `base`; messages name `source`.

    `base_inertial` is the inertia of the base, used once the base floats (`with_base` in editing.py). `rigid`: allow a
    robot without moving joints, for a base that will float.
    """
    check_number(len(parts), source)
    _check_names(name, parts, base, source)
    g = as_vector(gravity, f"{_where(source)}gravity")
    if max(map(abs, g)) > LARGEST:
        raise DescriptionError(f"{_where(source)}gravity is {g}, expected numbers below {LARGEST:g}.")
    order = _topological_order(parts, base, source)
    parts = _checked_numbers(parts, source)
    if not rigid and not any(FREEDOMS[part.joint.kind] for part in parts):
        raise DescriptionError(
            f"{_where(source)}the robot {name!r} has {len(parts)} joints and none of them moves, expected at "
            "least one revolute, prismatic or other moving joint."
        )

    links: list[Link] = []
    carried: dict[str, tuple[int, Placement]] = {base: (BASE, Placement())}
    index_of_part: dict[int, int] = {}
    for k in order:
        part = parts[k]
        parent, at = carried[part.parent]
        placement = compose(at, part.joint.placement)
        if FREEDOMS[part.joint.kind]:
            index_of_part[k] = len(links)
            carried[part.link] = (len(links), Placement())
            links.append(Link(part.link, parent, replace(part.joint, placement=placement), part.inertial))
        else:
            carried[part.link] = (parent, placement)
            if parent == BASE:
                base_inertial = merge(base_inertial, part.inertial, placement)
            else:
                host = links[parent]
                links[parent] = replace(host, inertial=merge(host.inertial, part.inertial, placement))

    frames = [Frame(base, BASE)]
    for part in parts:
        index, at = carried[part.link]
        on = "" if FREEDOMS[part.joint.kind] else part.parent
        frames.append(Frame(part.link, index, compose(at, part.frame), on))
    return Model(
        name=name,
        links=tuple(links),
        document_order=tuple(index_of_part[k] for k in sorted(index_of_part)),
        frames=tuple(frames),
        gravity=g,
        base=base,
        base_inertial=base_inertial,
    )


def with_payload(
    model: Model, name: str, mass: float, com: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike = (0, 0, 0)
) -> Model:
    """Return `model` with a body fixed to the link or frame `name`.

    `com` (3) and `inertia` (about that com; 3, 6 or 3x3 numbers, see `as_inertia`) are in that frame. A body on the
    base has an effect once the base floats.
    """
    body = Inertial(as_number(mass, "payload mass"), as_vector(com, "payload com"), as_inertia(inertia))
    check_body("payload", body)
    frame = find_frame(model, name)
    if frame.link == BASE:
        return replace(model, base_inertial=merge(model.base_inertial, body, frame.placement))
    links = list(model.links)
    host = links[frame.link]
    links[frame.link] = replace(host, inertial=merge(host.inertial, body, frame.placement))
    return replace(model, links=tuple(links))


def check_body(name: str, body: Inertial, measured: bool = False, source: str | None = None) -> None:
    """Raise for impossible masses and inertias of the link `name`; warn of doubtful ones unless they were measured."""
    _checked_numbers([Part(name, "", Joint(name, "fixed"), body, measured=measured)], source)


def check_parts(robot: str, parts: Sequence[Part], base: str, source: str | None) -> list[Part]:
    """Return `parts` with unit axes and exact rotations, after all checks of names and values."""
    _check_names(robot, parts, base, source)
    return _checked_numbers(parts, source)


def find_frame(model: Model, name: str) -> Frame:
    """Return the frame called `name`; link names are frame names too."""
    for frame in model.frames:
        if isinstance(name, str) and frame.name == name:
            return frame
    names = [frame.name for frame in model.frames]
    raise ArgumentError(
        f"the robot {model.name!r} has no link or frame {shown(name)}{nearest(name, names)}, expected one of "
        f"{listing(names)}."
    )


# ---- checks ------------------------------------------------------------------------------------------------


def _where(source: str | None, line: int | None = None) -> str:
    parts = [p for p in (source, f"line {line}" if line is not None else None) if p]
    return ", ".join(parts) + ": " if parts else ""


def check_number(links: int, source: str | None) -> None:
    if links > MAX_LINKS:
        raise DescriptionError(f"{_where(source)}there are {links} links, expected at most {MAX_LINKS}.")


def check_name(name: str, where: str) -> None:
    """Raise unless `name` is one line of at most MAX_NAME characters: names go into messages, tables and C files."""
    if len(name) > MAX_NAME:
        raise DescriptionError(
            f"{where}the name {shown(name)} has {len(name)} characters, expected at most {MAX_NAME}."
        )
    if any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in name):
        raise DescriptionError(
            f"{where}the name {shown(name)} contains a line break or another control character, expected plain text."
        )


def _check_names(robot: str, parts: Sequence[Part], base: str, source: str | None) -> None:
    check_name(robot, _where(source))
    check_name(base, _where(source))
    links, joints = {base}, set()
    for part in parts:
        where = _where(source, part.line)
        for what, name, taken in (("link", part.link, links), ("joint", part.joint.name, joints)):
            if not isinstance(name, str) or not name:
                raise DescriptionError(f"{where}a {what} is called {shown(name)}, expected a name.")
            check_name(name, where)
            if name in taken:
                hint = "a link has one parent joint" if what == "link" else "joints are addressed by name"
                raise DescriptionError(f"{where}the {what} name {name!r} is used twice, expected once because {hint}.")
            taken.add(name)
        if part.joint.kind not in FREEDOMS:
            raise DescriptionError(
                f"{where}joint {part.joint.name!r} is "
                f"{shown(part.joint.kind)}{nearest(part.joint.kind, FREEDOMS)}, expected {listing(FREEDOMS, 9)}."
            )
    for part in parts:
        if part.parent not in links:
            raise DescriptionError(
                f"{_where(source, part.line)}joint {part.joint.name!r} has the parent link {part.parent!r}, which "
                f"does not exist{nearest(part.parent, links)}, expected one of {listing(sorted(links))}."
            )


def _topological_order(parts: Sequence[Part], base: str, source: str | None) -> list[int]:
    """Return the indices of `parts`, parents first, otherwise in document order."""
    children: dict[str, list[int]] = {}
    for k, part in enumerate(parts):
        children.setdefault(part.parent, []).append(k)
    ready = children.get(base, [])[:]  # already a heap: indices ascend
    order = []
    while ready:
        k = heapq.heappop(ready)
        order.append(k)
        for child in children.get(parts[k].link, ()):
            heapq.heappush(ready, child)
    if len(order) < len(parts):
        raise DescriptionError(_cycle_message(parts, set(order), source))
    return order


def _cycle_message(parts: Sequence[Part], placed: set[int], source: str | None) -> str:
    loose = {part.link: part for k, part in enumerate(parts) if k not in placed}
    path: list[str] = []
    link, seen = next(iter(loose)), set()
    while link not in seen:
        seen.add(link)
        path.append(link)
        link = loose[link].parent
    loop = path[path.index(link) :]  # without the links that lead into it
    return (
        f"{_where(source, loose[link].line)}the links {listing(loop)} form a loop of parents, "
        "expected a tree that starts at the base: cut the loop at one joint, and close it with a constraint."
    )


def _checked_numbers(parts: Sequence[Part], source: str | None) -> list[Part]:
    """Return `parts` with unit axes and exact rotations; raise for impossible values, warn of doubtful ones."""
    if not parts:
        return []
    moving = np.array([FREEDOMS[p.joint.kind] > 0 for p in parts])
    rotation = np.array([p.joint.placement.rotation for p in parts], dtype=float)
    mass = np.array([p.inertial.mass for p in parts], dtype=float)
    inertia = np.array([p.inertial.inertia for p in parts], dtype=float)
    axis = np.array([p.joint.axis for p in parts], dtype=float)
    dissipation = np.array([(p.joint.armature, p.joint.damping, p.joint.friction) for p in parts], dtype=float)
    limits = np.array([astuple(p.joint.limits) for p in parts], dtype=float)
    numbers = {
        "placement of joint": rotation,
        "position of joint": np.array([p.joint.placement.position for p in parts], dtype=float),
        "axis of joint": axis,
        "mass of link": mass,
        "com of link": np.array([p.inertial.com for p in parts], dtype=float),
        "inertia of link": inertia,
        "armature, damping or friction of joint": dissipation,
    }

    def refuse(bad: np.ndarray | np.bool, what: str, values: np.ndarray, expected: str) -> None:
        if bad.any():
            k = int(np.argmax(bad))
            name = parts[k].link if what.endswith("link") else parts[k].joint.name
            got = shown(np.asarray(values[k]).tolist())
            raise DescriptionError(f"{_where(source, parts[k].line)}the {what} {name!r} is {got}, expected {expected}.")

    numbers["pitch of joint"] = np.array([p.joint.pitch for p in parts], dtype=float)
    numbers["torque_offset of joint"] = np.array([p.joint.torque_offset for p in parts], dtype=float)
    for what, values in numbers.items():
        flat = values.reshape(len(parts), -1)
        fine = np.abs(flat) <= LARGEST  # false for NaN too
        refuse(~fine.all(axis=1), what, values, f"finite numbers below {LARGEST:g}")
    refuse(np.isnan(limits).any(axis=1), "limits of joint", limits, "numbers")
    empty = (limits[:, 0] == np.inf) | (limits[:, 1] == -np.inf)
    refuse(empty, "limits of joint", limits, "a finite range or one that is open on its own side")
    far = np.isfinite(limits) & (np.abs(limits) > LARGEST)
    refuse(far.any(axis=1), "limits of joint", limits, f"numbers below {LARGEST:g}, or infinity")
    refuse(mass < 0, "mass of link", mass, "zero or more")
    refuse((dissipation[:, ::2] < 0).any(axis=1), "armature or friction of joint", dissipation[:, ::2], "zero or more")
    length = np.linalg.norm(axis, axis=1)
    isotropic = np.array([FREEDOMS[p.joint.kind] > 0 and not p.joint.type.has_axis for p in parts])
    refuse(moving & (length < 1e-9) & ~isotropic, "axis of joint", axis, "a direction that is not zero")
    skew = np.abs(rotation @ rotation.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
    improper = (skew > 1e-6) | (np.linalg.det(rotation) < 0)
    refuse(
        improper,
        "placement of joint",
        rotation,
        "a proper rotation matrix (orthogonal to 1e-6, determinant +1)",
    )
    lopsided = np.abs(inertia - inertia.transpose(0, 2, 1)).max(axis=(1, 2)) > _rounding(inertia)
    refuse(lopsided, "inertia of link", inertia, "a symmetric matrix")
    negative = np.diagonal(inertia, axis1=1, axis2=2).min(axis=1) < -_rounding(inertia)
    refuse(negative, "inertia of link", inertia, "no negative moment on its diagonal")
    _warn_of_doubtful_inertias(parts, inertia, source)
    driven = [parts[k].joint.name for k in np.flatnonzero(dissipation[:, 1] < 0).tolist() if not parts[k].measured]
    if driven:
        warn_user(
            f"{_where(source)}the damping of joint {listing(driven)} is negative, expected zero or more: with "
            "dissipation=True it drives the joint.",
            ModelWarning,
        )
    crossed = [parts[k].joint.name for k in np.flatnonzero(moving & (limits[:, 0] > limits[:, 1])).tolist()]
    if crossed:
        warn_user(
            f"{_where(source)}the lower limit of joint {listing(crossed)} is above the upper, expected it below: no "
            "position is within, so correct the file or do not rely on limits.",
            ModelWarning,
        )

    unit = axis / np.where(length > 0, length, 1.0)[:, None]
    unit[isotropic] = (0.0, 0.0, 1.0)  # their coordinates are along the link's own axes, whatever a file has
    return [
        replace(
            part,
            joint=replace(
                part.joint,
                axis=snap_vector(tuple(direction)) if moves else part.joint.axis,
                placement=Placement(snap(part.joint.placement.rotation), part.joint.placement.position),
            ),
        )
        for part, direction, moves in zip(parts, unit.tolist(), moving.tolist(), strict=True)
    ]


def _rounding(inertia: np.ndarray) -> np.ndarray:
    """Return the rounding error allowed in each of (n, 3, 3) inertias; files have moments like -5e-20 for zero."""
    return 1e-9 * np.abs(inertia).max(axis=(1, 2)) + 1e-15


def _warn_of_doubtful_inertias(parts: Sequence[Part], inertia: np.ndarray, source: str | None) -> None:
    moments = np.linalg.eigvalsh(inertia)
    negative = moments[:, 0] < -_rounding(inertia)
    missing = moments[:, 2] - moments[:, 1] - moments[:, 0]
    broken = (missing > 1e-6 * moments[:, 2] + 1e-15) & ~negative  # rods written with six digits are fine
    sayings = []
    for bad, saying in (
        (negative, "has a negative principal moment"),
        (broken, "violates the triangle inequality"),
    ):
        names = [parts[k].link for k in np.flatnonzero(bad).tolist() if not _meant_so(parts[k])]
        if names:
            sayings.append(f"the inertia of {listing(names)} {saying}")
    if sayings:
        warn_user(
            f"{_where(source)}{' and '.join(sayings)}, which is not physically realisable: results "
            "use these values, so check them.",
            ModelWarning,
        )


def _meant_so(part: Part) -> bool:
    """Whether an impossible inertia is a known way of writing: measured, or only a moment about the joint."""
    if part.measured:
        return True
    axis = np.array(part.joint.axis, dtype=float)
    inertia = np.array(part.inertial.inertia, dtype=float)
    along = axis @ inertia @ axis / max((axis @ axis) ** 2, 1e-300)
    return part.inertial.mass == 0 and bool(
        np.allclose(inertia, along * np.outer(axis, axis), rtol=0, atol=1e-12 * along)
    )


# ---- exact directions ------------------------------------------------------------------------------------------
# On loading, rotation entries within 1e-11 of 0, 1 and -1 become exact. Coarser files (angles written as 3.1416) keep
# small entries, and each of them costs operations. A user who knows how coarse a file is can snap them explicitly.
# Inertias are never changed.

MAX_SNAP = 0.02  # beyond a degree it would be another robot


def snapped(model: Model, tolerance: float) -> tuple[Model, dict[str, float]]:
    """Make joint frames and axes exact: entries within `tolerance` of 0, 1 and -1 take these values.

    Return the model, and the angle (rad) by which each changed joint was turned.
    """
    tolerance = real_number("snapped: tolerance", tolerance, above=0, below=MAX_SNAP)
    links, angles = [], {}
    for link in model.links:
        joint, angle = _snapped_joint(link.joint, tolerance)
        if angle > 0.0:
            angles[joint.name] = angle
        links.append(replace(link, joint=joint))
    return (replace(model, links=tuple(links)) if angles else model), angles


def _snapped_joint(joint: Joint, tolerance: float) -> tuple[Joint, float]:
    rotation, axis = np.array(joint.placement.rotation, dtype=float), np.array(joint.axis, dtype=float)
    exact = _snapped_rotation(rotation, tolerance)
    angle = float(np.linalg.norm(exact - rotation) / np.sqrt(2.0))  # to first order
    exact_axis = _snapped_entries(axis, tolerance)
    exact_axis = exact_axis / np.linalg.norm(exact_axis)
    angle = max(angle, float(np.linalg.norm(exact_axis - axis)))
    if angle == 0.0:
        return joint, 0.0
    rows = tuple(tuple(row) for row in exact.tolist())
    placement = Placement(rows, joint.placement.position)  # type: ignore[arg-type]
    return replace(joint, placement=placement, axis=tuple(exact_axis.tolist())), angle


def _snapped_entries(values: np.ndarray, tolerance: float) -> np.ndarray:
    near = np.round(values)
    return np.where(np.abs(values - near) <= tolerance, near, values) + 0.0


def _snapped_rotation(rotation: np.ndarray, tolerance: float) -> np.ndarray:
    """Return the nearest rotation with exact entries, or `rotation` itself if that is not within the tolerance."""
    entries = _snapped_entries(rotation, tolerance)
    if (entries == rotation).all():
        return rotation
    left, _, right = np.linalg.svd(entries)
    nearest_rotation = left @ right
    exact = (entries == np.round(entries)) & (np.abs(nearest_rotation - entries) <= 1e-12)
    nearest_rotation = np.where(exact, entries, nearest_rotation) + 0.0
    close = np.abs(nearest_rotation - rotation).max() <= 3.0 * tolerance and np.linalg.det(nearest_rotation) > 0.0
    return nearest_rotation if close else rotation
