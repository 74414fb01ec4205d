"""The frozen description of a robot: a tree of links, each moved by one joint.

Nothing here computes dynamics. A `Model` holds numbers only, is hashable, and is what every reader in
`formats/` produces (through `assemble` in `assembly.py`) and every algorithm consumes.

Numbering: `links` are in topological order, a parent always before its children; the base is link -1.
Rows of f_ext follow `document_order`, the order of joints in the file; coordinates (q, qd, tau) `coordinate_order`, the
same without joints that follow others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from linksweep.errors import DescriptionError
from linksweep.joints import Kind, kind_of

if TYPE_CHECKING:
    from linksweep.description.constraints import Constraint, Spring

Vector = tuple[float, float, float]  # proofs put exact numbers in the place of floats: exact/rational.py
Matrix = tuple[Vector, Vector, Vector]

ZERO3: Vector = (0.0, 0.0, 0.0)
IDENTITY3: Matrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
ZERO33: Matrix = (ZERO3, ZERO3, ZERO3)
BASE = -1
SINGLE = {"revolute", "prismatic", "helical"}  # 1-DOF joints
SNAP = 1e-11  # rotation entries this close to 0, 1 and -1 are meant exactly: files round multiples of pi/2


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a frame stands in another one: a point x of the frame is at rotation @ x + position."""

    rotation: Matrix = IDENTITY3
    position: Vector = ZERO3


@dataclass(frozen=True, slots=True)
class Inertial:
    """Mass, mass centre in the link frame, and inertia about the mass centre along the link frame's axes."""

    mass: float = 0.0
    com: Vector = ZERO3
    inertia: Matrix = ZERO33


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a joint; infinite where the description says nothing."""

    lower: float = float("-inf")
    upper: float = float("inf")
    velocity: float = float("inf")
    effort: float = float("inf")


@dataclass(frozen=True, slots=True)
class Joint:
    """How a link moves against its parent.

    `placement` puts the joint frame into the parent link's frame; at q = 0 the link frame is the joint frame.
    `axis` is a unit vector in the joint frame. `damping` (N m s) and `friction` (N m, Coulomb) are the
    papers' dissipative term; `armature` (kg m^2) is the motor inertia seen at the joint. `torque_offset` (N m) is a
    constant torque that the drive has to make besides, of cables, springs or a sensor's zero; it counts where friction
    does.
    `actuated`: a motor drives it; free joints have none, whatever is said here.
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
        """What joints of its kind are and do."""
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
    """A named place on a link (or on the base, link = BASE); `on` names the frame to which it is fixed, if to one."""

    name: str
    link: int
    placement: Placement = Placement()
    on: str = ""


@dataclass(frozen=True, slots=True)
class Coupling:
    """A law that ties one joint to another, as a gear or a belt does: q[joint] = multiplier * q[leader] + offset."""

    joint: str
    leader: str
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, slots=True)
class Model:
    """A tree of links on a fixed base; `base_inertial` is what stands on it, in its frame, should it ever move.

    `source` is the file it was read from, if any: a viewer finds the shapes of the links there. It is no part of what
    the robot is: equal robots from different files are equal.
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
    couplings: tuple[Coupling, ...] = ()  # each leader follows none: see couplings.py
    source: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        """Whoever makes one: whatever counts links relies on these."""
        count = len(self.links)
        if not all(BASE <= link.parent < index for index, link in enumerate(self.links)):
            raise DescriptionError(f"{self.name}: a link comes before its parent, expected parents first.")
        if sorted(self.document_order) != list(range(count)):
            raise DescriptionError(f"{self.name}: the order of the joints names not each of {count} links once.")
        if not all(BASE <= frame.link < count for frame in self.frames):
            raise DescriptionError(f"{self.name}: a frame stands on a link that is not there, expected one of {count}.")
        if self.constraints or self.springs:
            known = {frame.name for frame in self.frames} | {""}
            for tie in (*self.constraints, *self.springs):
                for end in {tie.a, tie.b} - known:
                    raise DescriptionError(
                        f"{self.name}: a {type(tie).__name__.lower()} ties the frame {end!r}, which is not there, "
                        f"expected one of its frames: remove it, or keep the frame."
                    )

        if self.couplings:
            self._check_couplings()

    def _check_couplings(self) -> None:
        single = {link.joint.name for link in self.links if link.joint.type.nv == 1}
        followers = [law.joint for law in self.couplings]
        if len(set(followers)) < len(followers):
            raise DescriptionError(f"{self.name}: a joint follows two others, expected one: remove a coupling.")
        for law in self.couplings:
            if law.leader in followers or not {law.joint, law.leader} <= single:
                raise DescriptionError(
                    f"{self.name}: the joint {law.joint!r} follows {law.leader!r}, expected two 1-DOF joints, "
                    f"the second of which follows none: correct the coupling."
                )

    @property
    def coordinate_order(self) -> tuple[int, ...]:
        """The links whose joints have coordinates of their own, in the document's order: all that follow none."""
        if not self.couplings:
            return self.document_order
        followers = {law.joint for law in self.couplings}
        return tuple(i for i in self.document_order if self.links[i].joint.name not in followers)

    @property
    def joints(self) -> tuple[Joint, ...]:
        """The joints that have coordinates of their own, as these follow each other."""
        return tuple(self.links[index].joint for index in self.coordinate_order)

    @property
    def nq(self) -> int:
        """The number of coordinates."""
        return sum(joint.type.nq for joint in self.joints)

    @property
    def nv(self) -> int:
        """The number of rates."""
        return sum(joint.type.nv for joint in self.joints)

    def with_gravity(self, gravity: Vector) -> Model:
        return replace(self, gravity=gravity)


def compose(a: Placement, b: Placement) -> Placement:
    """Where a frame stands that is at `b` in a frame that is at `a`."""
    return Placement(snap(multiply(a.rotation, b.rotation)), add(apply(a.rotation, b.position), a.position))


def inverse(a: Placement) -> Placement:
    """Where the outer frame stands, seen from the inner one."""
    back = transpose(a.rotation)
    x, y, z = apply(back, a.position)
    return Placement(back, (-x, -y, -z))


def merge(a: Inertial, b: Inertial, placement_of_b: Placement) -> Inertial:
    """Two bodies as one in the frame of `a`, where the frame of `b` stands at `placement_of_b`."""
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
    """`body`, given in a frame that stands at `at`, in the frame outside."""
    if at == Placement():
        return body
    return Inertial(body.mass, add(apply(at.rotation, body.com), at.position), rotated(body.inertia, at.rotation))


def rotated(inertia: Matrix, rotation: Matrix) -> Matrix:
    """An inertia given along a frame's axes, along those of the frame where it stands with `rotation`."""
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
    """`rotation` with entries within SNAP of 0, 1 and -1 made exact."""
    x, y, z = rotation
    return (snap_vector(x), snap_vector(y), snap_vector(z))


def snap_vector(v: Vector) -> Vector:
    x, y, z = (round(x) + 0.0 if abs(x) < SNAP or abs(abs(x) - 1.0) < SNAP else x for x in v)
    return (x, y, z)


def symmetric(xx: float, yy: float, zz: float, xy: float = 0.0, xz: float = 0.0, yz: float = 0.0) -> Matrix:
    return ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))
