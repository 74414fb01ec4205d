"""The robot model: a frozen tree of links, each moved by one joint.

Nothing here computes dynamics. A `Model` holds values only and is hashable. Every reader in `model/formats/` produces
one (through `assemble` in `assembly.py`), and every algorithm takes one.

`links` are in topological order, a parent always before its children; the base is link -1. Rows of f_ext follow
`document_order`, the order of joints in the file. Coordinates (q, qd, tau) follow `coordinate_order`, which leaves out
mimic joints.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from linksweep.errors import DescriptionError
from linksweep.joints import Kind, kind_of
from linksweep.model.semantics import Semantics

if TYPE_CHECKING:
    from linksweep.model.constraints import Constraint, Spring

Vector = tuple[float, float, float]  # proofs use exact numbers instead of floats, see papers/exact/points.py
Matrix = tuple[Vector, Vector, Vector]

ZERO3: Vector = (0.0, 0.0, 0.0)
IDENTITY3: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
ZERO33: Matrix = (ZERO3, ZERO3, ZERO3)
BASE = -1
SINGLE = {"revolute", "prismatic", "helical"}  # 1-DOF joints
SNAP = 1e-11  # rotation entries this close to 0, 1 and -1 are made exact: files round multiples of pi/2


@dataclass(frozen=True, slots=True)
class Placement:
    """Pose of a frame in another one: a point x of the frame is at rotation @ x + position."""

    rotation: Matrix = IDENTITY3
    position: Vector = ZERO3


@dataclass(frozen=True, slots=True)
class Inertial:
    """Mass (kg), center of mass in the link frame (m), and inertia about it along the link frame's axes (kg m²)."""

    mass: float = 0.0
    com: Vector = ZERO3
    inertia: Matrix = ZERO33


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a joint, infinite by default."""

    lower: float = float("-inf")
    upper: float = float("inf")
    velocity: float = float("inf")
    effort: float = float("inf")


@dataclass(frozen=True, slots=True)
class Joint:
    """The joint that moves a link relative to its parent.

    `placement` is the pose of the joint frame in the parent link's frame; at q = 0 the link frame is the joint frame.
    `axis` is a unit vector in the joint frame. `damping` (N m s) and `friction` (N m, Coulomb) are the papers'
    dissipative term. `armature` (kg m²) is the motor inertia reflected to the joint. `torque_offset` (N m) is a
    constant torque of the drive, caused by cables, springs or a sensor bias; it is applied together with friction.
    `actuated`: a motor drives the joint; ignored for free joints.
    """

    name: str
    kind: str = "revolute"
    axis: Vector = (0.0, 0.0, 1.0)
    placement: Placement = Placement()
    armature: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    limits: Limits = Limits()
    pitch: float = 0.0
    actuated: bool = True
    torque_offset: float = 0.0

    @property
    def type(self) -> Kind:
        """The class of this kind of joint."""
        return kind_of(self.kind)


@dataclass(frozen=True, slots=True)
class Link:
    """A moving rigid body, the joint that carries it, and its parent's index (BASE for the base)."""

    name: str
    parent: int
    joint: Joint
    inertial: Inertial = Inertial()


@dataclass(frozen=True, slots=True)
class Frame:
    """A named frame on a link, or on the base (link = BASE). `on` names the frame to which it is fixed, if any."""

    name: str
    link: int
    placement: Placement = Placement()
    on: str = ""


@dataclass(frozen=True, slots=True)
class Coupling:
    """A mimic joint, coupled to a leader as by a gear or a belt: q[joint] = multiplier * q[leader] + offset."""

    joint: str
    leader: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Model:
    """A tree of links on a fixed base. `base_inertial` is the inertia of the base, used once the base floats.

    `source` is the file from which the model was read, if any; the viewer finds the shapes of links there. It does not
    take part in comparisons: equal robots from different files are equal. Nor does `semantics`, which has no influence
    on dynamics.
    """

    name: str
    links: tuple[Link, ...]
    document_order: tuple[int, ...]
    frames: tuple[Frame, ...]
    gravity: Vector = (0.0, 0.0, -9.81)
    base: str = "base"
    base_inertial: Inertial = Inertial()
    constraints: tuple[Constraint, ...] = ()
    springs: tuple[Spring, ...] = ()
    couplings: tuple[Coupling, ...] = ()  # each leader is independent, see `coupled` in constraints.py
    source: str = field(default="", compare=False, repr=False)
    semantics: Semantics = field(default=Semantics(), compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the indices on which all algorithms rely."""
        count = len(self.links)
        if not all(BASE <= link.parent < index for index, link in enumerate(self.links)):
            raise DescriptionError(f"{self.name}: a link is listed before its parent, expected parents first.")
        if sorted(self.document_order) != list(range(count)):
            raise DescriptionError(
                f"{self.name}: document_order is {self.document_order}, expected each of {count} links once."
            )
        if not all(BASE <= frame.link < count for frame in self.frames):
            raise DescriptionError(f"{self.name}: a frame is on a link that does not exist, expected one of {count}.")
        if self.constraints or self.springs:
            known = {frame.name for frame in self.frames} | {""}
            for item in (*self.constraints, *self.springs):
                for frame in {item.a, item.b} - known:
                    raise DescriptionError(
                        f"{self.name}: a {type(item).__name__.lower()} acts on the frame {frame!r}, which does not "
                        f"exist: remove it, or keep the frame."
                    )

        if self.couplings:
            self._check_couplings()

    def _check_couplings(self) -> None:
        single = {link.joint.name for link in self.links if link.joint.type.nv == 1}
        followers = [coupling.joint for coupling in self.couplings]
        if len(set(followers)) < len(followers):
            raise DescriptionError(f"{self.name}: a joint has two leaders, expected one: remove a coupling.")
        for coupling in self.couplings:
            if coupling.leader in followers or not {coupling.joint, coupling.leader} <= single:
                raise DescriptionError(
                    f"{self.name}: the joint {coupling.joint!r} follows {coupling.leader!r}, expected two 1-DOF "
                    f"joints, the second of which is independent."
                )

    @property
    def coordinate_order(self) -> tuple[int, ...]:
        """The links whose joints are independent (no mimic joints), in document order."""
        if not self.couplings:
            return self.document_order
        followers = {coupling.joint for coupling in self.couplings}
        return tuple(i for i in self.document_order if self.links[i].joint.name not in followers)

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The independent joints, in the order of their coordinates."""
        return tuple(self.links[index].joint for index in self.coordinate_order)

    @property
    def nq(self) -> int:
        """The number of coordinates."""
        return sum(joint.type.nq for joint in self.joints)

    @property
    def nv(self) -> int:
        """The number of velocities, the degrees of freedom."""
        return sum(joint.type.nv for joint in self.joints)

    def with_gravity(self, gravity: Vector) -> Model:
        return replace(self, gravity=gravity)


def compose(a: Placement, b: Placement) -> Placement:
    """Return the pose a b: a frame at `b` in a frame that is at `a`."""
    return Placement(snap(multiply(a.rotation, b.rotation)), add(apply(a.rotation, b.position), a.position))


def inverse(a: Placement) -> Placement:
    """Return the inverse pose."""
    back = transpose(a.rotation)
    x, y, z = apply(back, a.position)
    return Placement(back, (-x, -y, -z))


def merge(a: Inertial, b: Inertial, placement_of_b: Placement) -> Inertial:
    """Return two bodies as one, in the frame of `a`; the frame of `b` is at `placement_of_b` in it."""
    com_b = add(apply(placement_of_b.rotation, b.com), placement_of_b.position)
    inertia_b = rotated(b.inertia, placement_of_b.rotation)
    mass = a.mass + b.mass
    x, y, z = (q - p for p, q in zip(a.com, com_b, strict=True))
    if a.mass == 0 or b.mass == 0:  # published numbers stay exact, and 0/0 is not a mean
        com, reduced = (com_b if a.mass == 0 and b.mass != 0 else a.com), 0.0
    else:
        share = b.mass / mass
        com, reduced = add(a.com, (share * x, share * y, share * z)), a.mass * share
    steiner = symmetric(y * y + z * z, x * x + z * z, x * x + y * y, -x * y, -x * z, -y * z)
    xx, yy, zz, xy, xz, yz = (
        a.inertia[i][j] + inertia_b[i][j] + reduced * steiner[i][j]
        for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
    )
    return Inertial(mass, com, symmetric(xx, yy, zz, xy, xz, yz))


def moved(body: Inertial, at: Placement) -> Inertial:
    """Return `body`, given in a frame that is at `at`, in the outer frame."""
    if at == Placement():
        return body
    return Inertial(body.mass, add(apply(at.rotation, body.com), at.position), rotated(body.inertia, at.rotation))


def rotated(inertia: Matrix, rotation: Matrix) -> Matrix:
    """Return R inertia R^T: the inertia along the axes of the outer frame."""
    m = multiply(multiply(rotation, inertia), transpose(rotation))
    return symmetric(m[0][0], m[1][1], m[2][2], m[0][1], m[0][2], m[1][2])


def multiply(a: Matrix, b: Matrix) -> Matrix:
    columns = transpose(b)
    return (apply(columns, a[0]), apply(columns, a[1]), apply(columns, a[2]))


def transpose(a: Matrix) -> Matrix:
    x, y, z = zip(*a, strict=True)
    return (x, y, z)


def apply(a: Matrix, v: Vector) -> Vector:
    return (dot(a[0], v), dot(a[1], v), dot(a[2], v))


def add(a: Vector, b: Vector) -> Vector:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def snap(rotation: Matrix) -> Matrix:
    """Return `rotation` with entries within SNAP of 0, 1 and -1 made exact."""
    x, y, z = rotation
    return (snap_vector(x), snap_vector(y), snap_vector(z))


def snap_vector(v: Vector) -> Vector:
    x, y, z = (round(x) + 0.0 if abs(x) < SNAP or abs(abs(x) - 1.0) < SNAP else x for x in v)
    return (x, y, z)


def symmetric(xx: float, yy: float, zz: float, xy: float = 0.0, xz: float = 0.0, yz: float = 0.0) -> Matrix:
    return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))


# ---- tip frames and end effectors ----------------------------------------------------------------------------
# A leaf link is a moving link that carries no other one. Its tip frames are those to which nothing is fixed: with
# flange fixed to wrist_3 and tool0 fixed to flange, tool0. Frames of the base are never tip frames.

TOOL = "tool"  # the tip frame of a DH table
_TOOL_WORDS = ("tool", "tcp", "ee", "eef", "endeffector")
_SUFFIXES = ("link", "frame", "site", "point")  # that follow such a word in a name
_TOOL0 = re.compile(r"(^|[_/-])tool0$")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def tips(model: Model) -> tuple[str, ...]:
    """Return the names of the tip frames of all leaf links, in the order of the frames."""
    parents = {link.parent for link in model.links}
    return tuple(name for name, link in _outermost(model) if link not in parents)


def tools(model: Model) -> tuple[str, ...]:
    """Return the frames that may be the end effector. If there is exactly one, it is used by default.

    The end effectors of an SRDF file are the candidates. Without them, a moving frame called "tool" is the only one.
    Otherwise the candidates are the outermost frames with such a name (tool0, ee_link, hand_tcp, end_effector), and the
    tip frames if there is one only or no frame has such a name. Among frames of one link, `tool0` is the end effector,
    as in ROS-Industrial.
    """
    frames = {frame.name for frame in model.frames}
    stated = dict.fromkeys(end.link for end in model.semantics.end_effectors if end.link in frames)
    if stated:
        return tuple(stated)
    if any(frame.name == TOOL and frame.link != BASE for frame in model.frames):
        return (TOOL,)
    named = [name for name, _ in _outermost(model) if _is_tool_name(name)]
    tip_frames = tips(model)
    candidates = dict.fromkeys([*named, *(tip_frames if len(tip_frames) == 1 or not named else ())])
    hosts = {frame.name: frame.link for frame in model.frames if frame.name in candidates}
    industrial = [name for name in candidates if _TOOL0.search(name)]
    if len(industrial) == 1 and len(set(hosts.values())) == 1:
        return (industrial[0],)
    return tuple(candidates)


def _outermost(model: Model) -> list[tuple[str, int]]:
    """Return the moving frames to which nothing is fixed, each with its link."""
    carriers = {frame.on for frame in model.frames}
    return [(frame.name, frame.link) for frame in model.frames if frame.link != BASE and frame.name not in carriers]


def _is_tool_name(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    while words and (words[-1].isdigit() or words[-1] in _SUFFIXES):
        words.pop()
    return bool(words) and (words[-1] in _TOOL_WORDS or words[-2:] == ["end", "effector"])
