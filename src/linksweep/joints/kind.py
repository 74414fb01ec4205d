"""The base class of joint types: one class holds everything that depends on the type of a joint.

A joint is described in its link's canonical frame (mechanism/canonical.py): the axis of a revolute, prismatic or
helical joint, and the normal of a planar one, is z. It has `nq` coordinates and `nv` velocities, which are those
of the link in its own frame, [angular; linear]. Functions of coordinates and velocities take and return lists of any
scalar: numbers, NumPy columns, traced expressions, elements of a finite field.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

from ..spatial.algebra import ZERO_MOTION, ZERO_VEC, Inertia, Motion, Sym, Vec
from ..spatial.scalars import Scalar, is_zero
from ..spatial.transforms import Factor
from .groups import Values

if TYPE_CHECKING:
    import numpy as np

NAMES_VALUES = True  # of its steps: see tracing/labels.py
TURN, WINDING, SLIDE, QUATERNION = "turn", "winding", "slide", "quaternion"
NO_INERTIA = Sym(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
Factors = tuple[Factor, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A coordinate or a velocity: its name in tables and plots, and what it measures.

    measures: TURN, an angle modulo 2 pi; WINDING, an angle that counts turns; SLIDE, a length; QUATERNION.
    """

    name: str
    title: str
    measures: str = TURN

    @property
    def turns(self) -> bool:
        return self.measures in (TURN, WINDING)


_TURNING = {"q": "rad", "qd": "rad/s", "qdd": "rad/s²", "tau": "N m"}
_SLIDING = {"q": "m", "qd": "m/s", "qdd": "m/s²", "tau": "N"}


def unit_of(entry: Entry, quantity: str) -> str:
    """Return the unit of a coordinate in q, or of a velocity in qd, qdd or tau."""
    return "" if entry.measures == QUATERNION else (_TURNING if entry.turns else _SLIDING)[quantity]


class JointKind:
    """Base class of joint types. The defaults serve joints with q' = v.

    Subclasses define name, letter, coordinates, rates, `columns`, `kept`, `motion`, and what differs from the defaults:

    commutes: a screw about z can be moved through the joint, so that its link's frame can be chosen. False unless the
    joint is itself a screw about z.
    slides: it moves its link's origin along z. has_axis: it uses the axis of the robot model.
    limited: the lower and upper limit of the robot model apply to each of its coordinates.
    euclidean: q' = v. constant_columns: H does not depend on q; if False, `column_rates` is defined too.
    floats: it has no motor, and its link is not attached to the parent. attached: its link is.
    shape: how it is drawn, "drum", "slider", "ball" or "box". reach: range of random coordinates without limits.
    letter: of structures in proofs, such as "RRP"; each type has its own. urdf: its type in URDF, if any. in_dh: a row
    of DH parameters can describe it.
    """

    name: ClassVar[str]
    letter: ClassVar[str]
    coordinates: ClassVar[tuple[Entry, ...]]
    rates: ClassVar[tuple[Entry, ...]]
    nq: ClassVar[int]
    nv: ClassVar[int]
    commutes: ClassVar[bool] = True
    slides: ClassVar[bool] = False
    has_axis: ClassVar[bool] = True
    limited: ClassVar[bool] = True
    euclidean: ClassVar[bool] = True
    constant_columns: ClassVar[bool] = True
    floats: ClassVar[bool] = False
    attached: ClassVar[bool] = True
    shape: ClassVar[str] = "ball"
    reach: ClassVar[float | tuple[float, ...]] = math.pi
    urdf: ClassVar[str | None] = None
    in_dh: ClassVar[bool] = False
    turns: ClassVar[bool]  # some degree of freedom is a rotation
    has_quaternion: ClassVar[bool]  # its first four coordinates are one

    def __init_subclass__(cls) -> None:
        cls.nq, cls.nv = len(cls.coordinates), len(cls.rates)
        cls.turns = any(rate.turns for rate in cls.rates)
        cls.has_quaternion = any(entry.measures == QUATERNION for entry in cls.coordinates)

    # motion of the link

    @staticmethod
    def columns(kept: Values, pitch: Scalar) -> tuple[Motion, ...]:
        """The columns of H^T."""
        raise NotImplementedError

    @classmethod
    def column_rates(cls, kept: Values, qd: Values) -> tuple[Motion, ...]:
        """The time derivatives of the columns of H^T, in the link's frame."""
        return (ZERO_MOTION,) * cls.nv

    @staticmethod
    def kept(q: Values, angle: Scalar) -> tuple[Scalar, ...]:
        """Functions of q that cost more than arithmetic (sines, cosines) and are stored between sweeps.

        angle: a constant turn about z to be added to the joint's own, see `motion`. 0 if the joint does not commute.
        """
        raise NotImplementedError

    @staticmethod
    def motion(kept: Values, quarters: int, turn: Values, slide: Scalar, pitch: Scalar) -> Factors:
        """The factors of the link's transform: the constant screw about z, and the joint's motion from `kept`.

        The constant screw slides by `slide` and turns by `quarters` quarter turns and the `angle` of `kept`; `turn` is
        the cosine and sine of both together. If the joint does not commute, there is no constant screw to be added.
        pitch: of the robot model, in metres per radian.
        """
        raise NotImplementedError

    # coordinates and velocities

    @classmethod
    def neutral(cls) -> list[float]:
        """The coordinates of zero displacement."""
        return [1.0 if k == 3 and cls.has_quaternion else 0.0 for k in range(cls.nq)]

    @classmethod
    def random(cls, rng: np.random.Generator, lower: float, upper: float) -> Sequence[float] | np.ndarray:
        """Random coordinates within the limits, or within `reach` without limits."""
        if not cls.limited:
            lower, upper = -math.inf, math.inf
        found: list[float] = []
        for reach in cls.reach if isinstance(cls.reach, tuple) else (cls.reach,) * cls.nq:
            low, high = max(lower, -reach), min(upper, reach)
            if low > high:  # the limits lie beyond its reach
                ends = [x for x in (lower, upper) if math.isfinite(x)]
                low, high = min(ends), max(ends)
            found.append(rng.uniform(low, high + 0.0))  # NumPy takes a range of -0.0 for negative
        return found

    @staticmethod
    def normalized(q: Values) -> Values:
        """The coordinates with quaternions of length 1."""
        return q

    @staticmethod
    def derivative(q: Values, v: Values) -> Values:
        """The time derivative q' for the velocities v."""
        return v

    @staticmethod
    def integrate(q: Values, step: Values) -> Values:
        """Coordinates after a motion with the constant velocities step / dt for a time dt."""
        return [x + s for x, s in zip(q, step, strict=True)]

    @classmethod
    def difference(cls, q0: Values, q1: Values) -> Values:
        """The constant velocities that lead from q0 to q1 in unit time; quaternions have length 1."""
        return [b - a for a, b in zip(q0, q1, strict=True)]

    @classmethod
    def error(cls, q: Values, wanted: Values) -> Values:
        """The error to a target along the velocities: `difference` to first order."""
        return cls.difference(q, wanted)

    @classmethod
    def slopes(cls, q: Values) -> list[tuple[Scalar, tuple[Scalar | None, ...]]]:
        """Functions of q, each with its derivatives with respect to the velocities (None for 0): q' = Omega(q) v."""
        units = [[1.0 if i == k else 0.0 for i in range(cls.nv)] for k in range(cls.nv)]
        by_rate = [cls.derivative(q, unit) for unit in units]
        return [(x, tuple(None if is_zero(column[i]) else column[i] for column in by_rate)) for i, x in enumerate(q)]

    # the link and its parent

    @staticmethod
    def split(body: Inertia, khalil: bool) -> tuple[Inertia, Inertia | None]:
        """Split a body into the part that its link must keep and the part that its parent can carry, at q = 0."""
        return body, None

    @staticmethod
    def travel(lower: float, upper: float, pitch: float) -> float:
        """The largest displacement of its link's origin."""
        return math.inf

    # conventions of Pinocchio

    @staticmethod
    def to_pinocchio(q: Values, width: int) -> Values:
        """Its coordinates in Pinocchio's convention, with `width` coordinates."""
        return q

    @staticmethod
    def from_pinocchio(q: Values) -> Values:
        return q

    @classmethod
    def pinocchio_rates(cls) -> Sequence[int]:
        """The index of each of its velocities among Pinocchio's."""
        return range(cls.nv)


class AboutPoint:
    """Mixin of joints that rotate about a point, their link's origin, which is fixed on the parent."""

    @staticmethod
    def split(body: Inertia, khalil: bool) -> tuple[Inertia, Inertia | None]:
        """The mass can be moved to that point, on the parent."""
        return replace(body, mass=0.0), Inertia(body.mass, ZERO_VEC, NO_INERTIA)

    @staticmethod
    def travel(lower: float, upper: float, pitch: float) -> float:
        return 0.0


def unit_motion(index: int) -> Motion:
    entries = [1.0 if i == index else 0.0 for i in range(6)]
    return Motion(Vec(*entries[:3]), Vec(*entries[3:]))


def turned_by(pair: Values, quarters: int) -> tuple[Scalar, Scalar]:
    """Cosine and sine after a number of quarter turns."""
    c, s = pair
    return ((c, s), (-s, c), (-c, -s), (s, -c))[quarters]
