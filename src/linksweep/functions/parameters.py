"""Parameters of a robot model as inputs of a compiled function: payload, inertias, armatures, gravity, dimensions.

They are shared by a batch, so that operations on them alone are done once for a batch (and are not counted, as in the
papers). A `ParameterSet` makes the model that the algorithms see from a model and values of its parameters.

A body has ten parameters in its frame: mass, first moment m c (3), and the inertia about the frame's origin, xx, yy,
zz, xy, xz, yz. Torques are linear in them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..mechanism.canonical import CanonicalLink, CanonicalModel
from ..model.model import BASE, Frame, Placement, tools
from ..model.quantities import as_inertia, as_number, as_vector
from ..spatial.algebra import Inertia, Mat, Sym, Transform, Vec
from ..spatial.scalars import Scalar
from ..spatial.transforms import Rotation, Screw, Shift
from ..support.messages import nearest, shown
from ..tracing.expression import number

if TYPE_CHECKING:
    from .items import RobotModel

TEN = ("m", "mx", "my", "mz", "XX", "YY", "ZZ", "XY", "XZ", "YZ")
UNKNOWN = (math.nan,) * 6  # a regrouped link has no center of mass: methods that need one return NaN
KINDS = ("payload", "inertia", "armature", "gravity", "dimensions")


class ParameterSet(Protocol):
    """Inputs of a program that replace parameters of the model."""

    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def apply(self, model: CanonicalModel, values: Sequence[Scalar]) -> CanonicalModel:
        """Return the model with these values (flat)."""
        ...


@dataclass(frozen=True, slots=True)
class Payload:
    """A body added at a frame."""

    name: str
    link: int
    placement: Placement  # of the frame, in the link's canonical frame
    shape: tuple[int, ...] = (10,)

    def apply(self, model: CanonicalModel, values: Sequence[Scalar]) -> CanonicalModel:
        host = model.links[self.link]
        own = Inertia(host.mass, Vec(*host.mp), Sym(*host.I))
        return _with_link(model, self.link, with_body(host, own + placed(self.placement, values)))


@dataclass(frozen=True, slots=True)
class Inertias:
    """The bodies of some links, (links, 10) or (10,), each in its described frame."""

    name: str
    links: tuple[int, ...]
    shape: tuple[int, ...]

    def apply(self, model: CanonicalModel, values: Sequence[Scalar]) -> CanonicalModel:
        for k, index in enumerate(self.links):
            link = model.links[index]
            own = Placement(link.axes, link.origin)
            body = placed(own, values[10 * k : 10 * k + 10])
            model = _with_link(model, index, with_body(link, body))
        return model


@dataclass(frozen=True, slots=True)
class Armatures:
    """The armature of every joint, in document order."""

    shape: tuple[int, ...]
    name: str = "armature"

    def apply(self, model: CanonicalModel, values: Sequence[Scalar]) -> CanonicalModel:
        links = (replace(link, armature=values[link.row] * (link.ratio * link.ratio)) for link in model.links)
        return replace(model, links=tuple(links))


@dataclass(frozen=True, slots=True)
class Gravity:
    name: str = "gravity"
    shape: tuple[int, ...] = (3,)

    def apply(self, model: CanonicalModel, values: Sequence[Scalar]) -> CanonicalModel:
        x, y, z = values
        return replace(model, gravity=(x, y, z))


def body(mass: float, com: Sequence[float] = (0, 0, 0), inertia: ArrayLike | None = None) -> np.ndarray:
    """Return the ten parameters of a body for `compile(parameters=("payload",))`: m, m c, inertia about the origin.

    mass: kg. com: (3,) m, the center of mass in the frame of the body. inertia: kg m^2 about the center of mass, along
    the axes of that frame: (3,) the diagonal, (6,) xx, yy, zz, xy, xz, yz, or (3, 3); None: a point mass.
    """
    m = as_number(mass, "mass")
    c = np.array(as_vector(com, "com"))
    tensor = np.array(as_inertia(np.zeros((3, 3)) if inertia is None else inertia))
    i = tensor + m * (c @ c * np.eye(3) - np.outer(c, c))
    return np.array([m, *(m * c), i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]])


def placed(placement: Placement, ten: Sequence[Scalar]) -> Inertia:
    """Return the inertia of a body of a placed frame, in the frame in which it is placed."""
    own = Inertia(ten[0], Vec(*ten[1:4]), Sym(*ten[4:]))
    turn = Rotation(Mat(*(Vec(*row) for row in placement.rotation)))
    return Transform((Shift(Vec(*placement.position)), turn)).to_parent(own)


def with_body(link: CanonicalLink, own: Inertia) -> CanonicalLink:
    """Return the link with this inertia. The center of mass, which some methods need, is divided by the mass."""
    m, h, I = own.mass, own.mp, own.I  # noqa: E741  (the papers' symbol)
    com = (h.x / m, h.y / m, h.z / m)
    x, y, z = com
    about_com = (
        I.xx - (y * h.y + z * h.z), I.yy - (x * h.x + z * h.z), I.zz - (x * h.x + y * h.y),
        I.xy + x * h.y, I.xz + x * h.z, I.yz + y * h.z,
    )  # fmt: skip
    tensor = (I.xx, I.yy, I.zz, I.xy, I.xz, I.yz)
    return replace(link, mass=m, mp=(h.x, h.y, h.z), I=tensor, com=com, I_com=about_com)


def parameter_sets(robot: RobotModel, requested: str | Iterable[str]) -> tuple[ParameterSet, ...]:
    """Return the sets of parameters with these names, as in `compile`.

    Names are "payload", "payload:frame", "inertia", "inertia:link", "armature", "gravity" and "dimensions".
    """
    names = (requested,) if isinstance(requested, str) else requested
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        raise ArgumentError(
            f"parameters is {shown(requested)}, expected names such as ('payload',) or ('payload:tool', 'gravity')."
        )
    if len(set(names)) < len(names):
        raise ArgumentError(f"parameters names one twice in {shown(requested)}, expected each once.")
    sets = tuple(_parameter_set(robot, name) for name in names)
    _check_order(sets)
    return sets


def _check_order(sets: Sequence[ParameterSet]) -> None:
    """Raise an ArgumentError if a set would replace the values of one that is applied before it."""
    kinds = [type(found) for found in sets]
    if Dimensions in kinds and kinds != [Dimensions, *[Payload] * (len(sets) - 1)]:
        raise ArgumentError(
            "parameters: 'dimensions' are all parameters of the arm: put them first, and add payloads only."
        )
    touched: dict[int, str] = {}
    for found in sets:
        if isinstance(found, Inertias):
            for link in found.links:
                if link in touched:
                    raise ArgumentError(
                        f"parameters: {found.name!r} replaces the body that {touched[link]!r} gives the same link: "
                        f"name an inertia only once, and before a payload."
                    )
                touched[link] = found.name
        elif isinstance(found, Payload):
            touched[found.link] = found.name


def _parameter_set(robot: RobotModel, name: str) -> ParameterSet:
    kind, colon, where = name.partition(":")
    model = robot.canonical
    if colon and not where:
        raise ArgumentError(f"parameters: {name!r} names nothing behind its colon, expected a name there, or {kind!r}.")
    if kind == "payload":
        frame = _frame(robot, where)
        return Payload(name, frame.link, frame.placement)
    if kind == "inertia":
        by_row = sorted(range(len(model.links)), key=lambda i: model.links[i].row)
        if not where:
            return Inertias(name, tuple(by_row), (len(by_row), 10))
        if where not in robot.link_names:
            raise ArgumentError(
                f"parameters: {robot.name} has no link {where!r}{nearest(where, robot.link_names)}, expected one of "
                f"robot.link_names after 'inertia:'."
            )
        return Inertias(name, (by_row[robot.link_names.index(where)],), (10,))
    if kind == "armature" and not where:
        return Armatures((len(model.links),))
    if kind == "gravity" and not where:
        return Gravity()
    if kind == "dimensions" and not where:
        letters = dimensions(model)
        if letters is None:
            raise ArgumentError(
                f"parameters: 'dimensions' needs a planar arm, one chain of parallel revolute axes with every origin "
                f"and center of mass in one plane; {robot.name} is not one. Use 'inertia' or 'gravity'."
            )
        return letters
    raise ArgumentError(
        f"parameters: there is no {name!r}{nearest(kind, KINDS)}, expected 'payload' or 'payload:frame', 'inertia' or "
        f"'inertia:link', 'armature', 'gravity', 'dimensions'."
    )


def _frame(robot: RobotModel, name: str) -> Frame:
    """The frame of a payload; without a name, that of the tool."""
    if not name:
        found = tools(robot.model)
        if len(found) != 1:
            listed = ", ".join(found[:8]) + (", ..." if len(found) > 8 else "")
            raise ArgumentError(
                f"parameters: {robot.name} has {len(found)} frames that may be its tool, {listed}, expected the frame "
                f"of the payload: say 'payload:' and its name."
            )
        name = found[0]
    if name not in robot.frame_names:
        raise ArgumentError(
            f"parameters: {robot.name} has no frame {name!r}{nearest(name, robot.frame_names)}, expected one of "
            f"robot.frame_names after 'payload:'."
        )
    frame = robot.canonical.frame(name)
    if frame.link == BASE:
        raise ArgumentError(f"parameters: frame {name!r} is fixed to the base, expected a frame on a moving link.")
    return frame


def _with_link(model: CanonicalModel, index: int, link: CanonicalLink) -> CanonicalModel:
    return replace(model, links=(*model.links[:index], link, *model.links[index + 1 :]))


# ---- Dimensions of planar arms as symbols: L1, m1, c1, I1, g, as textbooks write them
#
# L_k is the length of link k, from its joint to the next one (for the last link, to its tool), L0 the length before the
# first joint; m_k its mass, c_k its center of mass along x (cy_k along y), I_k its inertia about the center of mass,
# normal to the plane; J_k the armature of its joint; g is gravity. Values of 0 stay 0.

ROUNDING = 1e-12  # rounding errors of rotations
COMPONENTS = ("xx", "yy", "zz", "xy", "xz", "yz")

MEANINGS = {
    "L": "length of link {k}",
    "m": "mass of link {k}",
    "c": "center of mass of link {k}, along x from its joint",
    "cy": "center of mass of link {k}, along y from its joint",
    "I": "inertia of link {k} about its center of mass",
    "J": "armature of joint {k}",
    "g": "gravity",
    **{f"g{x}": f"gravity along {x} of the base" for x in "xyz"},
    **{f"I{two}": f"inertia {two} of link {{k}} about its center of mass" for two in COMPONENTS},
}

Letter = Callable[[str, Scalar], Scalar]  # (name, value) of a parameter -> its replacement


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The dimensions of a planar arm as inputs: `letters` are their symbols, `values` those of this arm."""

    letters: tuple[str, ...]
    values: tuple[float, ...] = field(compare=False)
    name: str = "dimensions"

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.letters),)

    @property
    def meanings(self) -> dict[str, str]:
        """The meaning of each symbol."""
        found = {}
        for letter in self.letters:
            name = letter.rstrip("0123456789")
            found[letter] = MEANINGS[name].format(k=letter[len(name) :])
        return found

    def apply(self, model: CanonicalModel, values: Sequence[Scalar]) -> CanonicalModel:
        by_name = dict(zip(self.letters, values, strict=True))
        return _lettered(model, lambda name, value: by_name[name])


def dimensions(model: CanonicalModel) -> Dimensions | None:
    """Return the dimensions of an arm that moves in a plane, else None."""
    if not is_planar(model):
        return None
    values: dict[str, float] = {}
    _lettered(model, lambda name, value: values.setdefault(name, number(value)))
    return Dimensions(tuple(values), tuple(values.values()))


def is_planar(model: CanonicalModel) -> bool:
    """Return whether a robot is one chain of parallel revolute axes, all origins and centers of mass in one plane."""
    return (
        model.is_serial
        and not (model.is_coupled or model.ties or model.springs)
        and all(link.type.turns and link.type.nv == 1 and _is_zero(link.pitch) for link in model.links)
        and all(_is_zero(link.com[2]) for link in model.links)
        and all(_is_zero(link.slide) and all(map(_in_plane, link.factors)) for link in model.links[1:])
    )


def _in_plane(factor: object) -> bool:
    if not isinstance(factor, Screw):
        return False
    return _is_zero(factor.t) if factor.axis == 2 else factor.axis == 0 and _is_zero(factor.s)


def _lettered(model: CanonicalModel, letter: Letter) -> CanonicalModel:
    """Return the model with each parameter replaced by the result of `letter`."""

    def named(name: str, value: Scalar) -> Scalar:
        return 0.0 if _is_zero(value) else letter(name, value)

    lengths = _lengths(model)
    links = []
    for k, link in enumerate(model.links):
        factors = tuple(
            replace(factor, t=named(f"L{k}", factor.t)) if isinstance(factor, Screw) and factor.axis == 0 else factor
            for factor in link.factors
        )
        links.append(replace(_with_letters(link, k + 1, named), factors=factors))
    frames = tuple(
        replace(frame, placement=replace(frame.placement, position=(named(f"L{frame.link + 1}", length), 0.0, 0.0)))
        if (length := lengths.get(frame.link)) and _same(frame.placement.position, (length, 0.0, 0.0)) else frame
        for frame in model.frames
    )  # fmt: skip
    down = [k for k, value in enumerate(model.gravity) if not _is_zero(value)]
    x, y, z = (
        0.0 if k not in down
        else named(f"g{'xyz'[k]}", value) if len(down) > 1
        else -named("g", -value) if value < 0.0 else named("g", value)
        for k, value in enumerate(model.gravity)
    )  # fmt: skip
    return replace(model, links=tuple(links), frames=frames, gravity=(x, y, z))


def _with_letters(link: CanonicalLink, k: int, named: Letter) -> CanonicalLink:
    m, x, y = named(f"m{k}", link.mass), named(f"c{k}", link.com[0]), named(f"cy{k}", link.com[1])
    across = link.I_com[2]
    tensor = tuple(
        named(f"I{k}" if _same((value,), (across,)) else f"I{name}{k}", value)
        for name, value in zip(COMPONENTS, link.I_com, strict=True)
    )
    xx, yy, zz, xy, xz, yz = tensor
    xs, ys = m * (x * x), m * (y * y)
    about_origin = (xx + ys, yy + xs, zz + (xs + ys), xy - m * (x * y), xz, yz)
    return replace(
        link, mass=m, com=(x, y, 0.0), mp=(m * x, m * y, 0.0), I_com=tensor, I=about_origin,
        armature=named(f"J{k}", link.armature),
    )  # fmt: skip


def _lengths(model: CanonicalModel) -> dict[int, float]:
    """Return the distance along x from each joint to the next, and from the last one to the frames beyond it."""
    lengths = {}
    for k, link in enumerate(model.links[1:]):
        if len(link.factors) == 1 and isinstance(link.factors[0], Screw) and link.factors[0].axis == 0:
            lengths[k] = link.factors[0].t
    last = len(model.links) - 1
    ends = {frame.placement.position for frame in model.frames if frame.link == last}
    along = [x for x, y, z in ends if not _is_zero(x) and _same((y, z), (0.0, 0.0))]
    if len(along) == 1:
        lengths[last] = along[0]
    return lengths


def _is_zero(value: Scalar) -> bool:
    return isinstance(value, (int, float)) and abs(value) <= ROUNDING


def _same(a: Sequence[float], b: Sequence[float]) -> bool:
    return all(abs(x - y) <= ROUNDING * max(1.0, abs(y)) for x, y in zip(a, b, strict=True))


# ---- Base parameters: regrouped inertias that give the same joint forces
#
# The part of a link's inertia that is invariant to its joint's motion belongs to both links of that joint. It is moved
# to the parent, from the tips to the base: for a revolute joint the mass, the moment m z and the second moment J_zz
# along the axis; for a prismatic joint the inertia tensor; for a ball joint the mass (`split` in joints/). This is
# Khalil's regrouping (Khalil & Kleinfinger 1987) for any tree, over numbers or expressions. Joint forces and the mass
# matrix do not change, for any gravity and motion of the base; forces between links, articulated inertias, energy and
# centers of mass do. Such a model is therefore only used while tracing.


def regroup(model: CanonicalModel, khalil: bool = False) -> CanonicalModel:
    """Return the model with regrouped inertias. khalil: in Khalil's form, with I_yy = 0, else in the cheapest one."""
    links = list(model.links)
    bodies = [Inertia(link.mass, Vec(*link.mp), Sym(*link.I)) for link in links]
    for i in reversed(range(len(links))):
        bodies[i], moved = links[i].type.split(bodies[i], khalil)
        parent = links[i].parent
        if moved is not None and parent != BASE:
            bodies[parent] = bodies[parent] + _at_zero(links[i]).to_parent(moved)
    return replace(model, links=tuple(_with_regrouped(link, body) for link, body in zip(links, bodies, strict=True)))


def _at_zero(link: CanonicalLink) -> Transform:
    """From the parent to the link at q = 0; a turn about its own axis moves nothing that is split off."""
    turn = (1.0, 0.0) if link.type.turns else link.turn
    return Transform((*link.factors, Screw(2, *turn, link.slide)))


def _with_regrouped(link: CanonicalLink, body: Inertia) -> CanonicalLink:
    mp, I = (body.mp.x, body.mp.y, body.mp.z), body.I  # noqa: E741  (the papers' symbol)
    tensor = (I.xx, I.yy, I.zz, I.xy, I.xz, I.yz)
    return replace(link, mass=body.mass, mp=mp, I=tensor, com=UNKNOWN[:3], I_com=UNKNOWN)
