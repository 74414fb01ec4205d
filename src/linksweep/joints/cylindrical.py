"""The cylindrical joint."""

from __future__ import annotations

import math

from ..spatial.algebra import ZERO_VEC, Inertia, Motion
from ..spatial.scalars import Scalar, cos, shifted, sin
from ..spatial.transforms import Screw
from .groups import Values
from .kind import SLIDE, Entry, Factors, JointKind, turned_by, unit_motion
from .one_freedom import split_about_axis

NAMES_VALUES = True  # of its steps: see tracing/labels.py


class Cylindrical(JointKind):
    """Turns about z and slides along it: q = (angle, z), rates [w_z, v_z].

    A lower and an upper limit could not mean both an angle and a length: it has none.
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
