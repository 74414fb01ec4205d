"""Denavit-Hartenberg tables, in Craig's modified form and in the standard one.

With Rx, Tx a turn about and a shift along x, and likewise for z, frame i stands in frame i-1 at

    modified:  Rx(alpha) Tx(a) Rz(theta) Tz(d)        the frame is at the link's own joint
    standard:  Rz(theta) Tz(d) Tx(a) Rx(alpha)        the frame is at the link's far end

and the joint adds q to theta (revolute) or to d (prismatic). Both are chains of z-joints whose neighbours
differ by Rx Tx: a Model's link frame is put at the joint in both, and in the standard form the frame that
bears the link's name stands at Tx(a) Rx(alpha) in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from linksweep.description.assembly import Part, assemble, check_number
from linksweep.description.model import Inertial, Joint, Limits, Model, Placement, compose, moved, snap
from linksweep.description.quantities import as_inertia, as_number, as_vector
from linksweep.errors import DescriptionError
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
    """A serial arm from one row per joint, base first.

    A row is (alpha, a, d, theta), in radians and metres, or a mapping of these (missing ones are 0) and of:
    `joint` ("revolute", "prismatic", "cylindrical" or "universal", also "R", "P", "C", "U"), `name` (of the joint),
    `link`, `mass`, `com` (3, in the DH frame of the link), `inertia` (about the com, along that frame's axes;
    3, 6 or 3x3, see `as_inertia`), `armature`, `damping`, `friction`, `torque_offset`, `lower`, `upper`, `velocity`,
    `effort`, and `measured` (true: an inertia that no rigid body has is accepted silently, because measurements have
    errors). `theta` of a revolute and `d` of a prismatic joint are offsets, added to q; a cylindrical joint has both. A
    universal one turns about z and then about x.

    Frames are named after the links; "tool" is the last one, or stands at `tool` in it. The table starts at the base,
    or at `mount` in it. `base_inertial` is the base's own, which counts when it is set free.
    """
    if not is_one_of(convention, CONVENTIONS):
        raise DescriptionError(
            f"{_prefix(source)}the DH convention is {shown(convention)}, expected 'modified' (Craig) or "
            "'standard': say which one the table uses, because there is no default."
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
            raise DescriptionError(f"{where}: 'measured' is {shown(measured)}, expected true or false: correct it.")
        parts.append(Part(link, parent, joint, inertial, frame=after, measured=measured))
        parent, at = link, after
    if not parts:
        raise DescriptionError(f"{_prefix(source)}the DH table has no rows, expected one per joint: add them.")
    if parent != "tool":  # an arm may call its last link so
        mount = compose(at, tool or Placement())
        parts.append(Part("tool", parent, Joint("tool mount", "fixed", placement=mount)))
    return assemble(name, parts, base=base, base_inertial=base_inertial or Inertial(), gravity=gravity, source=source)


def _prefix(source: str | None) -> str:
    return f"{source}: " if source else ""


def _as_rows(rows: object, source: str | None) -> list[object]:
    if isinstance(rows, (str, bytes, Mapping)) or not isinstance(rows, Iterable):
        raise DescriptionError(
            f"{_prefix(source)}the DH table is a {type(rows).__name__}, expected one row per joint: give a "
            "list of rows."
        )
    found = list(rows)
    check_number(len(found), source)
    return found


def _as_mapping(row: object, where: str) -> Table:
    """The row by keys, its geometry complete and as floats."""
    values: Table
    if isinstance(row, Mapping):
        values = dict(row)
        for key in values:
            if key not in KEYS:
                raise DescriptionError(
                    f"{where}: the key {shown(key)} is not known{nearest(key, KEYS)}, expected some of "
                    f"{listing(KEYS, 30)}: correct the key."
                )
    else:
        items = list(row) if isinstance(row, Iterable) and not isinstance(row, (str, bytes)) else []
        if len(items) != 4:
            raise DescriptionError(
                f"{where}: the row is {shown(row)}, expected a mapping or the four numbers alpha, a, d, "
                "theta: write it in one of these ways."
            )
        values = dict(zip(GEOMETRY, items, strict=True))
    for key in GEOMETRY:
        value = values[key] = as_number(values.get(key, 0.0), f"{where}: {key!r}")
        if not math.isfinite(value):
            raise DescriptionError(f"{where}: {key!r} is {value}, expected a finite number: correct it.")
    return values


def _kind(values: Table, where: str) -> str:
    kind = values.get("joint", "revolute")
    if not isinstance(kind, str) or kind not in JOINTS:
        raise DescriptionError(
            f"{where}: 'joint' is {shown(kind)}, expected {listing(list(JOINTS))}: use one that DH rows describe."
        )
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
