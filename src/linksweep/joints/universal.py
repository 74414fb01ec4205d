"""The universal joint, whose subspace H moves."""

from __future__ import annotations

from ..spatial.algebra import ZERO_MOTION, ZERO_VEC, Motion, Vec
from ..spatial.scalars import Scalar, cos, sin
from ..spatial.transforms import Screw
from .groups import Values
from .kind import AboutPoint, Entry, Factors, JointKind, unit_motion

NAMES_VALUES = True  # of its steps: see tracing/labels.py


class Universal(AboutPoint, JointKind):
    """Turns about z, fixed in the parent, then about x, fixed in the link: q = (first angle, second angle)."""

    name, letter = "universal", "U"
    coordinates = rates = (Entry("1", "1"), Entry("2", "2"))
    commutes = constant_columns = False

    @staticmethod
    def columns(kept: Values, pitch: Scalar) -> tuple[Motion, ...]:
        _, _, c, s = kept
        return Motion(Vec(0.0, s, c), ZERO_VEC), unit_motion(0)

    @classmethod
    def column_rates(cls, kept: Values, qd: Values) -> tuple[Motion, ...]:
        _, _, c, s = kept
        return Motion(Vec(0.0, c, -s) * qd[1], ZERO_VEC), ZERO_MOTION

    @staticmethod
    def kept(q: Values, angle: Scalar) -> tuple[Scalar, ...]:
        return cos(q[0]), sin(q[0]), cos(q[1]), sin(q[1])

    @staticmethod
    def motion(kept: Values, quarters: int, turn: Values, slide: Scalar, pitch: Scalar) -> Factors:
        return Screw(2, kept[0], kept[1], 0.0), Screw(0, kept[2], kept[3], 0.0)
