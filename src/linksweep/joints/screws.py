"""Joints that turn about z or slide along it: revolute, prismatic, helical and cylindrical."""

from __future__ import annotations

import math
from dataclasses import replace

from ..spatial.algebra import ZERO_VEC, Inertia, Motion, Sym, Vec
from ..spatial.scalars import Scalar, atan2, cos, is_number, shifted, sin
from ..spatial.transforms import Screw
from .groups import Values
from .kind import NO_INERTIA, SLIDE, WINDING, Entry, Factors, JointKind, turned_by, unit_motion

NAMES_VALUES = True  # of its steps: see tracing/labels.py


class Revolute(JointKind):
    """Rotates about z."""

    name, letter, urdf, in_dh, shape = "revolute", "R", "revolute", True, "drum"
    coordinates = rates = (Entry("", ""),)

    @staticmethod
    def columns(kept: Values, pitch: Scalar) -> tuple[Motion, ...]:
        return (unit_motion(2),)

    @staticmethod
    def kept(q: Values, angle: Scalar) -> tuple[Scalar, ...]:
        theta = shifted(q[0], angle)
        return cos(theta), sin(theta)

    @staticmethod
    def motion(kept: Values, quarters: int, turn: Values, slide: Scalar, pitch: Scalar) -> Factors:
        return (Screw(2, *turned_by(kept, quarters), slide),)

    @staticmethod
    def split(body: Inertia, khalil: bool) -> tuple[Inertia, Inertia | None]:
        """The parent carries the mass, the moment m z and the second moment J_zz along the axis."""
        kept, moved = split_about_axis(body, khalil)
        return (
            Inertia(0.0, Vec(body.mp.x, body.mp.y, 0.0), kept),
            Inertia(body.mass, Vec(0.0, 0.0, body.mp.z), moved),
        )

    @staticmethod
    def travel(lower: float, upper: float, pitch: float) -> float:
        return 0.0

    @staticmethod
    def to_pinocchio(q: Values, width: int) -> Values:
        return q if width == 1 else [cos(q[0]), sin(q[0])]  # of a continuous joint

    @staticmethod
    def from_pinocchio(q: Values) -> Values:
        return q if len(q) == 1 else [atan2(q[1], q[0])]


class Prismatic(JointKind):
    """Slides along z."""

    name, letter, urdf, in_dh, shape, slides, reach = "prismatic", "P", "prismatic", True, "slider", True, 1.0
    coordinates = rates = (Entry("", "", SLIDE),)

    @staticmethod
    def columns(kept: Values, pitch: Scalar) -> tuple[Motion, ...]:
        return (unit_motion(5),)

    @staticmethod
    def kept(q: Values, angle: Scalar) -> tuple[Scalar, ...]:
        return (q[0],)

    @staticmethod
    def motion(kept: Values, quarters: int, turn: Values, slide: Scalar, pitch: Scalar) -> Factors:
        return (Screw(2, turn[0], turn[1], kept[0] + slide),)

    @staticmethod
    def split(body: Inertia, khalil: bool) -> tuple[Inertia, Inertia | None]:
        """The link does not turn against its parent, which carries the whole tensor."""
        return replace(body, I=NO_INERTIA), Inertia(0.0, ZERO_VEC, body.I)

    @staticmethod
    def travel(lower: float, upper: float, pitch: float) -> float:
        return max(abs(lower), abs(upper))


class Helical(JointKind):
    """Rotates about z and slides along it by `pitch` per radian."""

    name, letter, shape, slides = "helical", "H", "drum", True
    coordinates = rates = (Entry("", "", WINDING),)

    @staticmethod
    def columns(kept: Values, pitch: Scalar) -> tuple[Motion, ...]:
        return (Motion(Vec(0.0, 0.0, 1.0), Vec(0.0, 0.0, pitch)),)

    @staticmethod
    def kept(q: Values, angle: Scalar) -> tuple[Scalar, ...]:
        theta = shifted(q[0], angle)
        return cos(theta), sin(theta), q[0]

    @staticmethod
    def motion(kept: Values, quarters: int, turn: Values, slide: Scalar, pitch: Scalar) -> Factors:
        return (Screw(2, *turned_by(kept[:2], quarters), kept[2] * pitch + slide),)

    @staticmethod
    def travel(lower: float, upper: float, pitch: float) -> float:
        furthest = max(abs(lower), abs(upper))
        return furthest * abs(pitch) if furthest < math.inf else math.inf


def split_about_axis(body: Inertia, khalil: bool) -> tuple[Sym, Sym]:
    """The inertia of a link that turns about z without its second moment J_zz, and with it the parent's share."""
    J = body.second_moments()
    # J_zz is free. 0 saves two products; -J_xx, where J_xx = J_yy, leaves I_zz alone and needs no dw_x, dw_y
    zz = -J.xx if khalil or (is_number(J.xx) and J.xx == J.yy) else 0.0
    # to the last bit: a sum of the same numbers, so that what is meant to vanish does
    kept = replace(body.I, xx=J.yy + zz, yy=J.xx + zz, zz=J.yy + J.xx)
    moved = J.zz - zz
    return kept, Sym(moved, moved, 0.0, 0.0, 0.0, 0.0)


class Cylindrical(JointKind):
    """Rotates about z and slides along it independently: q = (angle, z), qd = [w_z, v_z].

    It has no limits, because one pair of limits cannot bound both an angle and a length.
    """

    name, letter, shape, slides, limited, reach = "cylindrical", "C", "drum", True, False, (math.pi, 1.0)
    coordinates = (Entry("angle", "turn"), Entry("z", "slide", SLIDE))
    rates = (Entry("wz", "turn"), Entry("vz", "slide", SLIDE))

    @staticmethod
    def columns(kept: Values, pitch: Scalar) -> tuple[Motion, ...]:
        return unit_motion(2), unit_motion(5)

    @staticmethod
    def kept(q: Values, angle: Scalar) -> tuple[Scalar, ...]:
        theta = shifted(q[0], angle)
        return cos(theta), sin(theta), q[1]

    @staticmethod
    def motion(kept: Values, quarters: int, turn: Values, slide: Scalar, pitch: Scalar) -> Factors:
        return (Screw(2, *turned_by(kept[:2], quarters), kept[2] + slide),)

    @staticmethod
    def split(body: Inertia, khalil: bool) -> tuple[Inertia, Inertia | None]:
        """The parent carries the second moment J_zz along the axis."""
        kept, moved = split_about_axis(body, khalil)
        return Inertia(body.mass, body.mp, kept), Inertia(0.0, ZERO_VEC, moved)
