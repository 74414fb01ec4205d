"""The canonical model: every link in the frame in which the recursions are cheapest (modified Denavit-Hartenberg).

A robot model may have its link frames anywhere. Here every link gets a frame whose z axis is its joint's axis. It
is turned about and slid along that axis until one child (the one with the larger subtree) is at a screw about x. A
vector then crosses the joint in two planar rotations, and H is a unit vector. A joint's motion commutes with a screw
about its own axis, so coordinates and torques do not change. Named frames are transformed accordingly.

If two axes are so nearly parallel that their common normal is far away, the origin stays and a Shift is used.

Values of the model are floats, or exact numbers with their own `hypot` and `on_circle` (papers/exact/points.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from ..joints import Kind, kind_of
from ..model.constraints import Constraint, Spring
from ..model.model import BASE, Frame, Inertial, Matrix, Model, Placement, Vector, compose
from ..spatial.algebra import Vec
from ..spatial.transforms import Screw, Shift, keeps_z


@dataclass(frozen=True, slots=True)
class CanonicalLink:
    """One link in its canonical frame.

    factors: the constant part of the transform from the parent; after it comes the joint: a screw about z by
    q + quarters * pi/2 + angle, and along z by slide (+ q); `turn` is the cosine and sine of its constant part.
    mass, mp (3), I (xx, yy, zz, xy, xz, yz) about the frame's origin; com (3) and I_com (6) are the center of mass and
    the inertia about it.
    axes, origin: the link's own frame, as described, in the canonical one. row: index of the joint in the document;
    q_start, start: index of its first coordinate and its first velocity. A mimic joint shares these with its leader:
    its position is ratio q + shift, so that its H^T is ratio times that of its kind, and armature, damping, friction
    and torque_offset are those that act on the shared velocity. Parameters that are inputs of a program
    (functions/parameters.py) or exact numbers (papers/exact/) replace floats.
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
        """The class of this joint type."""
        return kind_of(self.kind)

    @property
    def nq(self) -> int:
        return self.type.nq

    @property
    def nv(self) -> int:
        return self.type.nv

    @property
    def coordinates(self) -> slice:
        """The slice of its joint's coordinates in q."""
        return slice(self.q_start, self.q_start + self.nq)

    @property
    def rates(self) -> slice:
        """The slice of its joint's velocities in qd."""
        return slice(self.start, self.start + self.nv)

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The index of each coordinate with that of its velocity, if q' = v."""
        return [(self.q_start + k, self.start + k) for k in range(self.nv if self.type.euclidean else 0)]


@dataclass(frozen=True, slots=True)
class Tie:
    """A constraint or a spring: its kind, its two frames in the canonical frames of their links, and its parameters."""

    kind: str
    a: Frame
    b: Frame
    rows: int
    numbers: tuple[float, ...] = ()  # the length; of a spring stiffness, length, damping


class _HashedOnce:
    """A slot for the hash of a model, which is a key of every compiled function. It is no field: it is not pickled."""

    __slots__ = ("_hash",)


@dataclass(frozen=True, slots=True)
class CanonicalModel(_HashedOnce):
    links: tuple[CanonicalLink, ...]
    frames: tuple[Frame, ...]
    gravity: tuple[float, float, float]
    ties: tuple[Tie, ...] = ()  # the constraints
    springs: tuple[Tie, ...] = ()
    still: frozenset[int] = frozenset()  # links whose frames do not turn with their joints, see `still_links`

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            fields = self.links, self.frames, self.gravity, self.ties, self.springs, self.still
            # of the text, in which 0.0 and -0.0 differ: models that differ so have results that do
            object.__setattr__(self, "_hash", hash(repr(fields)))
            return self._hash

    @property
    def nq(self) -> int:
        """The number of coordinates."""
        return sum(link.nq for link in self.links if link.leads)

    @property
    def nv(self) -> int:
        """The number of velocities, the degrees of freedom."""
        return sum(link.nv for link in self.links if link.leads)

    @property
    def by_row(self) -> list[CanonicalLink]:
        """The links in the order of their joints in the document."""
        return sorted(self.links, key=lambda link: link.row)

    @property
    def joints(self) -> list[CanonicalLink]:
        """The links of independent joints, in the order of their coordinates."""
        return [link for link in self.by_row if link.leads]

    @property
    def is_coupled(self) -> bool:
        """Whether there are mimic joints."""
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
        """The largest number of degrees of freedom between the base and a link."""
        found: list[int] = []
        for link in self.links:
            found.append(link.nv + (0 if link.parent == BASE else found[link.parent]))
        return max(found, default=0)

    @property
    def is_serial(self) -> bool:
        return all(link.parent == i - 1 for i, link in enumerate(self.links))

    @property
    def is_single(self) -> bool:
        """Whether every joint has one degree of freedom."""
        return all(link.nv == 1 for link in self.links)

    @property
    def is_euclidean(self) -> bool:
        """Whether q' = v for all joints."""
        return all(link.type.euclidean for link in self.links)

    @property
    def has_constant_columns(self) -> bool:
        """Whether no joint's subspace H depends on q."""
        return all(link.type.constant_columns for link in self.links)

    def frame(self, name: str) -> Frame:
        return next(frame for frame in self.frames if frame.name == name)


# ---- from a Model to canonical frames --------------------------------------------------------------------------

TINY = 4e-16  # rounding of one product of rotations; nothing larger is ever snapped here
FAR = 4.0  # slide an origin by at most this many times the distance between the joints


@dataclass(frozen=True, slots=True)
class _Screws:
    """Zscrew(a, e) [Shift(shift)] Xscrew(alpha, length) Zscrew(b, f); angles as (cos, sin)."""

    a: tuple[float, float]
    e: float
    alpha: tuple[float, float]
    length: float
    b: tuple[float, float]
    f: float
    shift: tuple[float, float, float] | None


class _Joint(TypedDict):
    """The fields of a CanonicalLink for the placement and constant motion of its joint."""

    factors: tuple[Screw | Shift, ...]
    quarters: int
    angle: float
    turn: tuple[float, float]
    slide: float


def canonical(model: Model, described_frames: bool = False) -> CanonicalModel:
    """Return the model with its links in canonical frames.

    described_frames: keep the origins of the robot model and only turn frames until z is the joint axis. This costs
    operations, and serves to show intermediate values.
    """
    links = model.links
    places = _places(model)
    laws = {law.joint: law for law in model.couplings}
    commutes = [link.joint.type.commutes for link in links]
    aligned = [aligning_rotation(link.joint.axis) for link in links]
    placed: list[tuple[np.ndarray, np.ndarray]] = []  # each joint in its parent's aligned frame
    for link, turn in zip(links, aligned, strict=True):
        rotation, position = _arrays(link.joint.placement)
        inner = np.eye(3) if link.parent == BASE else aligned[link.parent]
        placed.append((_snap(inner.T @ rotation @ turn), inner.T @ position))

    screws = [_decompose(rotation, position) for rotation, position in placed]
    favoured: list[int | None] = [None] * len(links) if described_frames else _favoured_children(model)
    # the screw about its own z that takes each aligned frame to the canonical one, from the base outward
    adjust: list[tuple[tuple[float, float], float]] = []
    joints: list[_Joint] = []
    for index, link in enumerate(links):
        if link.parent != BASE and commutes[link.parent] and favoured[link.parent] == index:
            found = screws[index]
            factors = _shift_factor(found.shift) + _screw_factor(0, found.alpha, found.length)
        else:
            outer = ((1.0, 0.0), 0.0) if link.parent == BASE else adjust[link.parent]
            rotation, position = _undo(outer, *placed[index])
            found = _decompose(rotation, position)
            # the shift was made for a parent frame turned by a: here the parent's frame is not turned
            shift = None if found.shift is None else tuple(_turn_z(found.a) @ np.array(found.shift))
            factors = (
                _shift_factor(shift) + _screw_factor(2, found.a, found.e) + _screw_factor(0, found.alpha, found.length)
            )
        child = favoured[index]
        if child is None or not commutes[index]:
            adjust.append(((1.0, 0.0), 0.0))
        else:
            if not link.joint.type.slides:  # a sliding joint has an offset anyhow: it takes both
                screws[child] = _slid(screws[child], -found.f)
            adjust.append((screws[child].a, screws[child].e))
        turn, lift = adjust[index]
        offset, slide = _compose(found.b, turn), found.f + lift
        if not commutes[index]:  # the joint's coordinates belong to the described frame: nothing moves through it
            factors += _screw_factor(2, offset, slide)
            offset, slide = (1.0, 0.0), 0.0
        quarters, angle = _quarters(offset)
        joints.append({"factors": factors, "quarters": quarters, "angle": angle, "turn": offset, "slide": slide})
    frames = tuple(_carry(frame, aligned, adjust) for frame in model.frames)
    driven = {places[k][2] for k, link in enumerate(links) if link.joint.actuated and not link.joint.type.floats}
    own = {frame.name: frame.placement for frame in frames}
    result: list[CanonicalLink] = []
    for index, link in enumerate(links):
        m, mp, tensor, com, about_com = _inertia(link.inertial, aligned[index], *adjust[index])
        row, q_start, start = places[index]
        law = laws.get(link.joint.name)
        ratio, zero = (1.0, 0.0) if law is None else (_number(law.multiplier), _number(law.offset))
        result.append(
            CanonicalLink(
                name=link.name, parent=link.parent, kind=link.joint.kind, **joints[index],
                pitch=_number(link.joint.pitch), mass=m, mp=mp, I=tensor, com=com, I_com=about_com,
                armature=_number(link.joint.armature) * ratio * ratio,
                damping=_number(link.joint.damping) * ratio * ratio, friction=_number(link.joint.friction) * abs(ratio),
                torque_offset=_number(link.joint.torque_offset) * ratio,
                axes=own[link.name].rotation, origin=own[link.name].position, row=row, q_start=q_start, start=start,
                leads=law is None, ratio=ratio, shift=zero, actuated=start in driven,
            )
        )  # fmt: skip
    ties = tuple(_tie(frames, tie, tie.kind, tie.rows, (tie.length,)) for tie in model.constraints)
    springs = tuple(_tie(frames, s, "spring", 1, (s.stiffness, s.length, s.damping)) for s in model.springs)
    return CanonicalModel(tuple(result), frames, model.gravity, ties, springs)


def _tie(frames: tuple[Frame, ...], tie: Constraint | Spring, kind: str, rows: int, numbers: tuple[float, ...]) -> Tie:
    """The two frames of a constraint or spring, the second with its own placement on it."""
    by_name = {frame.name: frame for frame in frames} | {"": Frame("", BASE)}
    b = by_name[tie.b]
    return Tie(kind, by_name[tie.a], replace(b, placement=compose(b.placement, tie.at)), rows, numbers)


def _places(model: Model) -> dict[int, tuple[int, int, int]]:
    """Return, for each link, the index of its joint in the document and of its first coordinate and velocity."""
    starts, q_start, start = {}, 0, 0
    for link in model.coordinate_order:
        starts[link] = q_start, start
        joint = model.links[link].joint.type
        q_start, start = q_start + joint.nq, start + joint.nv
    index = {link.joint.name: i for i, link in enumerate(model.links)} if model.couplings else {}
    for law in model.couplings:
        starts[index[law.joint]] = starts[index[law.leader]]
    return {link: (row, *starts[link]) for row, link in enumerate(model.document_order)}


def _favoured_children(model: Model) -> list[int | None]:
    size = [1] * len(model.links)
    for index in range(len(model.links) - 1, -1, -1):
        parent = model.links[index].parent
        if parent != BASE:
            size[parent] += size[index]
    favoured: list[int | None] = [None] * len(model.links)
    for index, link in enumerate(model.links):
        if link.parent != BASE:
            best = favoured[link.parent]
            if best is None or size[index] > size[best]:
                favoured[link.parent] = index
    return favoured


def _decompose(rotation: np.ndarray, position: np.ndarray) -> _Screws:
    """Screws about z, x and z whose product is the given placement."""
    zx, zy, zz = rotation[:, 2].tolist()
    sine = _hypot(zx, zy)
    if sine <= 1e-11:  # parallel axes: any normal serves, take the one through the other origin
        alpha = (math.copysign(1.0, zz), 0.0)
        length = _hypot(position[0], position[1])
        a = (position[0] / length, position[1] / length) if length > 0.0 else (1.0, 0.0)
    else:
        alpha, a = (zz, sine), (-zy / sine, zx / sine)
    a = _snap_pair(a)
    if a[0] < 0.0 or (a[0] == 0.0 and a[1] < 0.0):  # of the two normals, the one nearer to x
        a, alpha = (-a[0], -a[1]), (alpha[0], -alpha[1])
    alpha = _snap_pair(alpha)
    x, y, z = (_turn_z(a).T @ position).tolist()
    rest = _turn_x(alpha).T @ _turn_z(a).T @ rotation
    b = _snap_pair((rest[0, 0], rest[1, 0]))
    if sine <= 1e-11:
        return _Screws(a, z, alpha, x, b, 0.0, None)
    f = -y / alpha[1]
    e = z - f * alpha[0]
    if max(abs(f), abs(e)) > FAR * math.hypot(x, y, z):
        return _Screws(a, 0.0, alpha, 0.0, b, 0.0, (x, y, z))
    return _Screws(a, e + 0.0, alpha, x, b, f + 0.0, None)


def _slid(screws: _Screws, lift: float) -> _Screws:
    """Place the common normal of parallel axes, which is arbitrary, where the offset of the inner link vanishes."""
    if screws.alpha[1] != 0.0:
        return screws
    return replace(screws, e=lift, f=(screws.e - lift) * screws.alpha[0] + 0.0)


_Three = tuple[float, float, float]
_Inertia = tuple[float, _Three, tuple[float, ...], _Three, tuple[float, ...]]


def _inertia(inertial: Inertial, aligned: np.ndarray, turn: tuple[float, float], lift: float) -> _Inertia:
    """Mass, first moment and inertia about the canonical origin; center of mass and inertia about it."""
    rotation = (aligned @ _turn_z(turn)).T
    com = rotation @ _array(inertial.com) - np.array([0.0, 0.0, lift])
    tensor = rotation @ _array(inertial.inertia) @ rotation.T
    m = _number(inertial.mass)
    about_origin = tensor + m * (com @ com * np.eye(3) - np.outer(com, com))
    return m, tuple((m * com).tolist()), _six(about_origin), tuple(com.tolist()), _six(tensor)


def _six(tensor: np.ndarray) -> tuple[float, ...]:
    i = tensor.tolist()
    return i[0][0], i[1][1], i[2][2], i[0][1], i[0][2], i[1][2]


def _carry(frame: Frame, aligned: list[np.ndarray], adjust: list[tuple[tuple[float, float], float]]) -> Frame:
    if frame.link == BASE:
        return frame
    rotation, position = _arrays(frame.placement)
    inner = aligned[frame.link].T
    rotation, position = _undo(adjust[frame.link], inner @ rotation, inner @ position)
    rows = tuple(tuple(row) for row in _snap(rotation).tolist())
    return Frame(frame.name, frame.link, Placement(rows, tuple(position.tolist())))  # type: ignore[arg-type]


def _undo(
    adjust: tuple[tuple[float, float], float], rotation: np.ndarray, position: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return a placement relative to a frame after a screw about its z axis."""
    turn, lift = adjust
    back = _turn_z(turn).T
    return _snap(back @ rotation), back @ (position - np.array([0.0, 0.0, lift]))


def aligning_rotation(axis: ArrayLike) -> np.ndarray:
    """A rotation that takes z to the axis; a permutation where the axis is a coordinate axis."""
    z = _array(axis)
    k = int(np.argmax(np.abs(z)))
    if np.count_nonzero(z) == 1:  # not z[k] == 1, which also holds for (0, 1, 4e-8)
        x = np.eye(3)[(k + 1) % 3]
    else:
        x = np.eye(3)[int(np.argmin(np.abs(z)))]
        x = x - (x @ z) * z
        x = x / np.linalg.norm(x)
    return np.column_stack([x, np.cross(z, x), z]) + 0.0


def _quarters(pair: tuple[float, float]) -> tuple[int, float]:
    """An angle as quarter turns, exact, and the rest in (-pi/4, pi/4]."""
    angle = math.atan2(pair[1], pair[0])
    quarters = round(angle / (math.pi / 2.0))
    c, s = _compose(pair, ((1.0, 0.0), (0.0, -1.0), (-1.0, 0.0), (0.0, 1.0))[quarters % 4])
    return quarters % 4, math.atan2(s, c) + 0.0


def _compose(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    return _snap_pair((a[0] * b[0] - a[1] * b[1], a[1] * b[0] + a[0] * b[1]))


def _snap_pair(pair: tuple[float, float]) -> tuple[float, float]:
    exact = getattr(pair[0], "on_circle", None)
    if exact is not None:
        return exact(pair[1])
    norm = math.hypot(*pair)
    c, s = float(pair[0]) / norm, float(pair[1]) / norm
    if abs(s) <= TINY:
        return math.copysign(1.0, c), 0.0
    if abs(c) <= TINY:
        return 0.0, math.copysign(1.0, s)
    return c, s


def _hypot(*lengths: float) -> float:
    exact = getattr(lengths[0], "hypot", None)
    return math.hypot(*lengths) if exact is None else exact(*lengths[1:])


def _number(x: float) -> float:
    return x if hasattr(x, "on_circle") else float(x)


def _array(numbers: ArrayLike) -> np.ndarray:
    array = np.array(numbers)
    return array if array.dtype == object else array.astype(float)


def _snap(rotation: np.ndarray) -> np.ndarray:
    if rotation.dtype == object:
        return rotation
    out = np.where(np.abs(rotation) <= TINY, 0.0, rotation)
    return np.where(np.abs(np.abs(out) - 1.0) <= TINY, np.sign(out), out)


def _arrays(placement: Placement) -> tuple[np.ndarray, np.ndarray]:
    return _array(placement.rotation), _array(placement.position)


def _turn_z(pair: tuple[float, float]) -> np.ndarray:
    c, s = pair
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _turn_x(pair: tuple[float, float]) -> np.ndarray:
    c, s = pair
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])


def _screw_factor(axis: int, pair: tuple[float, float], t: float) -> tuple[Screw | Shift, ...]:
    return () if pair == (1.0, 0.0) and t == 0.0 else (Screw(axis, *pair, _number(t)),)


def _shift_factor(shift: Iterable[float] | None) -> tuple[Screw | Shift, ...]:
    return () if shift is None else (Shift(Vec(*map(_number, shift))),)


# ---- parallel axes ---------------------------------------------------------------------------------------------
# With parallel axes 2, 3 and 4, each joint would rotate every vector that crosses it. If frames of links 2 and 3 are
# translated but not rotated by their joints, the angles add up to q2 + q3 + q4, and joint 4 rotates once. The inertias
# of links 2 and 3 then depend on q, and so does the position of the next joint. This pays if more than one vector
# crosses, as in sweeps over pairs.


def still_links(model: CanonicalModel) -> frozenset[int]:
    """Links that carry one with a parallel axis, and are themselves carried by one whose axis is not parallel: in a
    plane vectors have two entries, and there is little to turn."""
    found = {link.parent for i, link in enumerate(model.links) if _turns(model, i) and _is_parallel(model, i)}
    return frozenset(i for i in found if any(not _is_parallel(model, k) for k in model.path(i)[:-1]))


def _turns(model: CanonicalModel, i: int) -> bool:
    """Return whether its joint turns it about z and nothing else."""
    kind = model.links[i].type
    return kind.nv == 1 and kind.turns and kind.commutes


def _is_parallel(model: CanonicalModel, i: int) -> bool:
    """Return whether this link and the one that carries it turn about parallel axes."""
    parent = model.links[i].parent
    return parent != BASE and _turns(model, parent) and all(keeps_z(factor) for factor in model.links[i].factors)
