"""The links in their canonical frames, as recursions see a robot; canonical.py says what these frames are."""

from __future__ import annotations

from dataclasses import dataclass

from ..description.model import BASE, Frame, Matrix, Vector
from ..joints import Kind, kind_of
from ..spatial.transforms import Screw, Shift


@dataclass(frozen=True, slots=True)
class CanonicalLink:
    """One link in its canonical frame.

    factors: the constant part of the transform from the parent; after it comes the joint: a screw about z by
    q + quarters * pi/2 + angle, and along z by slide (+ q); `turn` is the cosine and sine of its constant part.
    mass, mp (3), I (xx, yy, zz, xy, xz, yz) about the frame's origin; com (3) and I_com (6) are the mass centre and the
    inertia about it.
    axes, origin: the link's own frame, as described, in the canonical one. row: the joint's place in the document;
    q_start, start: its first coordinate and its first rate. A joint that follows another shares these with it: it
    stands at ratio q + shift, so that its H^T is ratio times that of its kind, and armature, damping, friction and
    torque_offset are what the shared rate meets of them. Where numbers are inputs of a program
    (catalogue/parameters.py) or exact ones (exact/), these stand in the place of floats.
    """

    name: str
    parent: int
    kind: str
    factors: tuple[Screw | Shift, ...]
    quarters: int
    angle: float
    turn: tuple[float, float]
    slide: float
    pitch: float
    mass: float
    mp: tuple[float, float, float]
    I: tuple[float, ...]  # noqa: E741  (the papers' symbol)
    com: tuple[float, float, float]
    I_com: tuple[float, ...]
    armature: float
    damping: float
    friction: float
    axes: Matrix
    origin: Vector
    row: int
    q_start: int
    start: int
    leads: bool = True  # a joint that follows another has its coordinate: ratio times it and shift
    ratio: float = 1.0
    shift: float = 0.0
    actuated: bool = True  # a motor drives its joint, or one that shares its rate
    torque_offset: float = 0.0

    @property
    def type(self) -> Kind:
        """What joints of its kind are and do."""
        return kind_of(self.kind)

    @property
    def nq(self) -> int:
        return self.type.nq

    @property
    def nv(self) -> int:
        return self.type.nv

    @property
    def coordinates(self) -> slice:
        """The places of its joint's coordinates."""
        return slice(self.q_start, self.q_start + self.nq)

    @property
    def rates(self) -> slice:
        """The places of its joint's rates."""
        return slice(self.start, self.start + self.nv)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The place of each coordinate with that of its rate, where q' = v."""
        return [(self.q_start + k, self.start + k) for k in range(self.nv if self.type.euclidean else 0)]


@dataclass(frozen=True, slots=True)
class Tie:
    """A constraint or a spring: its kind, its two frames in their links' canonical frames, and its numbers."""

    kind: str
    a: Frame
    b: Frame
    rows: int
    numbers: tuple[float, ...] = ()  # the length; of a spring stiffness, length, damping


@dataclass(frozen=True, slots=True)
class CanonicalModel:
    links: tuple[CanonicalLink, ...]
    frames: tuple[Frame, ...]
    gravity: tuple[float, float, float]
    ties: tuple[Tie, ...] = ()  # the constraints
    springs: tuple[Tie, ...] = ()
    still: frozenset[int] = frozenset()  # links whose frames do not turn with their joints, see parallel.py

    @property
    def nq(self) -> int:
        """The number of coordinates."""
        return sum(link.nq for link in self.links if link.leads)

    @property
    def nv(self) -> int:
        """The number of rates."""
        return sum(link.nv for link in self.links if link.leads)

    @property
    def by_row(self) -> list[CanonicalLink]:
        """The links in the order of their joints in the document."""
        return sorted(self.links, key=lambda link: link.row)

    @property
    def joints(self) -> list[CanonicalLink]:
        """The links whose joints have coordinates of their own, in the order of these."""
        return [link for link in self.by_row if link.leads]

    @property
    def is_coupled(self) -> bool:
        """Whether some joint follows another."""
        return not all(link.leads for link in self.links)

    def path(self, link: int) -> list[int]:
        """The links that carry this one, itself first, the one on the base last."""
        found: list[int] = []
        while link != BASE:
            found.append(link)
            link = self.links[link].parent
        return found

    @property
    def depth(self) -> int:
        """The freedoms that the farthest link has from the base, its own joint's among them."""
        found: list[int] = []
        for link in self.links:
            found.append(link.nv + (0 if link.parent == BASE else found[link.parent]))
        return max(found, default=0)

    @property
    def is_serial(self) -> bool:
        return all(link.parent == i - 1 for i, link in enumerate(self.links))

    @property
    def is_single(self) -> bool:
        """Whether every joint has one freedom."""
        return all(link.nv == 1 for link in self.links)

    @property
    def is_euclidean(self) -> bool:
        """Whether coordinates change with the rates, q' = v."""
        return all(link.type.euclidean for link in self.links)

    @property
    def has_constant_columns(self) -> bool:
        """Whether no joint's subspace H depends on q."""
        return all(link.type.constant_columns for link in self.links)

    def frame(self, name: str) -> Frame:
        return next(frame for frame in self.frames if frame.name == name)
