"""Numbers of a robot that a compiled function takes as arguments: a payload, inertias, armatures, gravity, letters.

They are inputs at the level of parameters: known before the call, so that work among them is done once for a batch
(and is not counted, which is the papers' convention). A set makes, from a model and its values, the model that the
algorithms see; nothing else knows that some numbers are not numbers.

A body is ten numbers in its frame: mass, first moment m c (3), and the inertia about the frame's origin, xx, yy, zz,
xy, xz, yz. Torques are linear in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..mechanism.canonical import CanonicalLink, CanonicalModel
from ..model.model import BASE, Frame, Placement, tools
from ..model.quantities import as_inertia, as_number, as_vector
from ..spatial.algebra import Inertia, Mat, Sym, Transform, Vec
from ..spatial.scalars import Scalar
from ..spatial.transforms import Rotation, Shift
from ..support.messages import nearest, shown
from .dimensions import Dimensions, dimensions

if TYPE_CHECKING:
    from .items import RobotModel

TEN = ("m", "mx", "my", "mz", "XX", "YY", "ZZ", "XY", "XZ", "YZ")
KINDS = ("payload", "inertia", "armature", "gravity", "dimensions")


class ParameterSet(Protocol):
    """Inputs of a program that stand for numbers of the model."""

    @property
    def name(self) -> str: ...

    @property
    def shape(self) -> tuple[int, ...]: ...

    def apply(self, model: CanonicalModel, values: Sequence[Scalar]) -> CanonicalModel:
        """The model with these values, given flat."""
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
    """The ten numbers of a body, as `compile(parameters=("payload",))` takes them: m, m c, inertia about the origin.

    mass: kg. com: (3,) m, its mass centre in the frame it is fixed to. inertia: kg m^2 about the mass centre, along
    that frame's axes: (3,) the diagonal, (6,) xx, yy, zz, xy, xz, yz, or (3, 3); None: a point.
    """
    m = as_number(mass, "mass")
    c = np.array(as_vector(com, "com"))
    tensor = np.array(as_inertia(np.zeros((3, 3)) if inertia is None else inertia))
    i = tensor + m * (c @ c * np.eye(3) - np.outer(c, c))
    return np.array([m, *(m * c), i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]])


def placed(placement: Placement, ten: Sequence[Scalar]) -> Inertia:
    """A body given in a frame, in the frame where that one stands."""
    own = Inertia(ten[0], Vec(*ten[1:4]), Sym(*ten[4:]))
    turn = Rotation(Mat(*(Vec(*row) for row in placement.rotation)))
    return Transform((Shift(Vec(*placement.position)), turn)).to_parent(own)


def with_body(link: CanonicalLink, own: Inertia) -> CanonicalLink:
    """The link with this body; methods that ask for its mass centre divide by its mass."""
    m, h, I = own.mass, own.mp, own.I  # noqa: E741  (the papers' symbol)
    com = (h.x / m, h.y / m, h.z / m)
    x, y, z = com
    about_com = (
        I.xx - (y * h.y + z * h.z), I.yy - (x * h.x + z * h.z), I.zz - (x * h.x + y * h.y),
        I.xy + x * h.y, I.xz + x * h.z, I.yz + y * h.z,
    )  # fmt: skip
    tensor = (I.xx, I.yy, I.zz, I.xy, I.xz, I.yz)
    return replace(link, mass=m, mp=(h.x, h.y, h.z), I=tensor, com=com, I_com=about_com)


def parameter_sets(robot: RobotModel, wanted: str | Iterable[str]) -> tuple[ParameterSet, ...]:
    """From names as `compile` takes: "payload", "payload:frame", "inertia", "inertia:link", "armature", "gravity",
    "dimensions"."""
    names = (wanted,) if isinstance(wanted, str) else wanted
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        raise ArgumentError(
            f"parameters is {shown(wanted)}, expected names such as ('payload',) or ('payload:tool', 'gravity')."
        )
    if len(set(names)) < len(names):
        raise ArgumentError(f"parameters names one twice in {shown(wanted)}, expected each once.")
    sets = tuple(_parameter_set(robot, name) for name in names)
    _check_order(sets)
    return sets


def _check_order(sets: Sequence[ParameterSet]) -> None:
    """Each is applied to what those before it left: nothing may be replaced that another one has put there."""
    kinds = [type(found) for found in sets]
    if Dimensions in kinds and kinds != [Dimensions, *[Payload] * (len(sets) - 1)]:
        raise ArgumentError(
            "parameters: 'dimensions' stand for all numbers of the arm: name them first, and beside them payloads only."
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
                f"parameters: {robot.name} is no planar arm, expected one chain of joints that turn about parallel "
                f"axes, with every origin and mass centre in one plane, for 'dimensions': name 'inertia' or 'gravity'."
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
        raise ArgumentError(f"parameters: frame {name!r} stands on the base, expected one that moves.")
    return frame


def _with_link(model: CanonicalModel, index: int, link: CanonicalLink) -> CanonicalModel:
    return replace(model, links=(*model.links[:index], link, *model.links[index + 1 :]))
