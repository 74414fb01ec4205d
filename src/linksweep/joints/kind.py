"""What a kind of joint is: all that the package asks about one stands in its class, and nothing else knows kinds.

A joint stands in its link's canonical frame (mechanism/canonical.py): the axis of a revolute, prismatic or helical
joint, and the normal of a planar one, is z. It has `nq` coordinates and `nv` rates; rates are those of the link in its
own frame, [angular; linear]. Functions of coordinates and rates take and give lists of any scalar: numbers, NumPy
columns, traced expressions, elements of a field.
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
    """A coordinate or a rate: what tables and pictures call it, and what it measures.

    measures: TURN, an angle that a whole turn brings back; WINDING, one that it does not; SLIDE, a length; QUATERNION.
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
    """The unit of this coordinate in q, or of this rate in qd, qdd or tau."""
    return "" if entry.measures == QUATERNION else (_TURNING if entry.turns else _SLIDING)[quantity]


class JointKind:
    """What every kind has; what is written here serves joints whose coordinates change with the rates, q' = v.

    commutes: a screw about z may be moved through the joint, so that its link's frame can be chosen.
    slides: it moves its link's origin along z. has_axis: the description's axis means something.
    limited: the description's lower and upper limit bound each of its coordinates.
    euclidean: q' = v. constant_columns: H does not depend on q.
    floats: nothing drives it and nothing connects its link with the parent. attached: something does.
    shape: what it looks like, "drum", "slider", "ball" or "box". reach: how far random coordinates go without limits.
    letter: of structures in proofs. urdf: its type there, if any. in_dh: a DH row can describe it.
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
    turns: ClassVar[bool]  # some freedom turns
    has_quaternion: ClassVar[bool]  # its first four coordinates are one

    def __init_subclass__(cls) -> None:
        cls.nq, cls.nv = len(cls.coordinates), len(cls.rates)
        cls.turns = any(rate.turns for rate in cls.rates)
        cls.has_quaternion = any(entry.measures == QUATERNION for entry in cls.coordinates)

    # how it moves its link

    @staticmethod
    def columns(kept: Values, pitch: Scalar) -> tuple[Motion, ...]:
        """The columns of H^T."""
        raise NotImplementedError

    @classmethod
    def column_rates(cls, kept: Values, qd: Values) -> tuple[Motion, ...]:
        """How the columns of H^T change in time, seen in the link's frame."""
        return (ZERO_MOTION,) * cls.nv

    @staticmethod
    def kept(q: Values, angle: Scalar) -> tuple[Scalar, ...]:
        """What of q costs more than arithmetic and is worth keeping between sweeps."""
        raise NotImplementedError

    @staticmethod
    def motion(kept: Values, quarters: int, turn: Values, slide: Scalar, pitch: Scalar) -> Factors:
        """The factors of the link's transform: the constant screw about z, and from what was kept the joint's own."""
        raise NotImplementedError

    # coordinates and rates

    @classmethod
    def neutral(cls) -> list[float]:
        """Where nothing is moved."""
        return [1.0 if k == 3 and cls.has_quaternion else 0.0 for k in range(cls.nq)]

    @classmethod
    def random(cls, rng: np.random.Generator, lower: float, upper: float) -> Sequence[float] | np.ndarray:
        """Within the limits, and where there are none within its reach."""
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
        """The same coordinates, quaternions of length 1."""
        return q

    @staticmethod
    def derivative(q: Values, v: Values) -> Values:
        """q' of the rates v."""
        return v

    @staticmethod
    def integrate(q: Values, step: Values) -> Values:
        """Coordinates after moving with the constant rates step / dt for a time dt."""
        return [x + s for x, s in zip(q, step, strict=True)]

    @classmethod
    def difference(cls, q0: Values, q1: Values) -> Values:
        """The constant rates that lead from q0 to q1 in a time 1; quaternions have length 1."""
        return [b - a for a, b in zip(q0, q1, strict=True)]

    @classmethod
    def error(cls, q: Values, wanted: Values) -> Values:
        """How far it is from where it should be, along its rates: `difference` to first order."""
        return cls.difference(q, wanted)

    @classmethod
    def slopes(cls, q: Values) -> list[tuple[Scalar, tuple[Scalar | None, ...]]]:
        """What moves with the rates, and its derivative by each of them (None for 0): q' = Omega(q) v."""
        units = [[1.0 if i == k else 0.0 for i in range(cls.nv)] for k in range(cls.nv)]
        by_rate = [cls.derivative(q, unit) for unit in units]
        return [(x, tuple(None if is_zero(column[i]) else column[i] for column in by_rate)) for i, x in enumerate(q)]

    # the link and its parent

    @staticmethod
    def split(body: Inertia, khalil: bool) -> tuple[Inertia, Inertia | None]:
        """What of a body its link must keep, and what its parent may carry in its stead, at q = 0."""
        return body, None

    @staticmethod
    def travel(lower: float, upper: float, pitch: float) -> float:
        """How far it can move its link's origin."""
        return math.inf

    # as others have it

    @staticmethod
    def to_pinocchio(q: Values, width: int) -> Values:
        """Its coordinates as a joint of Pinocchio with so many has them."""
        return q

    @staticmethod
    def from_pinocchio(q: Values) -> Values:
        return q

    @classmethod
    def pinocchio_rates(cls) -> Sequence[int]:
        """The place among Pinocchio's rates of each of its own."""
        return range(cls.nv)


class AboutPoint:
    """What joints have that turn about a point, their link's origin, which stays on the parent."""

    @staticmethod
    def split(body: Inertia, khalil: bool) -> tuple[Inertia, Inertia | None]:
        """The mass may sit in that point, on the parent."""
        return replace(body, mass=0.0), Inertia(body.mass, ZERO_VEC, NO_INERTIA)

    @staticmethod
    def travel(lower: float, upper: float, pitch: float) -> float:
        return 0.0


def unit_motion(index: int) -> Motion:
    entries = [1.0 if i == index else 0.0 for i in range(6)]
    return Motion(Vec(*entries[:3]), Vec(*entries[3:]))


def turned_by(pair: Values, quarters: int) -> tuple[Scalar, Scalar]:
    """Cosine and sine after so many quarter turns."""
    c, s = pair
    return ((c, s), (-s, c), (-c, -s), (s, -c))[quarters]
