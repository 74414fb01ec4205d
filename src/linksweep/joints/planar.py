"""The planar joint."""

from __future__ import annotations

from ..spatial.algebra import Motion, Vec
from ..spatial.scalars import Scalar, atan2, cos, folded, sin
from ..spatial.transforms import Screw, Shift
from .groups import Values, rate_along, turned_in_plane, way
from .kind import SLIDE, Entry, Factors, JointKind, unit_motion

NAMES_VALUES = True  # of its steps: see tracing/labels.py


class Planar(JointKind):
    """Moves in the plane across z: q = (angle, x, y), rates [w_z, v_x, v_y] in the link's frame."""

    name, letter, urdf = "planar", "E", "planar"
    coordinates = (Entry("angle", "turn"), Entry("x", "x", SLIDE), Entry("y", "y", SLIDE))
    rates = (Entry("wz", "turn"), Entry("vx", "x", SLIDE), Entry("vy", "y", SLIDE))
    commutes = limited = euclidean = attached = False

    @staticmethod
    def columns(kept: Values, pitch: Scalar) -> tuple[Motion, ...]:
        return unit_motion(2), unit_motion(3), unit_motion(4)

    @staticmethod
    def kept(q: Values, angle: Scalar) -> tuple[Scalar, ...]:
        return cos(q[0]), sin(q[0]), q[1], q[2]

    @staticmethod
    def motion(kept: Values, quarters: int, turn: Values, slide: Scalar, pitch: Scalar) -> Factors:
        return Shift(Vec(kept[2], kept[3], 0.0)), Screw(2, kept[0], kept[1], 0.0)

    @staticmethod
    def derivative(q: Values, v: Values) -> Values:
        return [v[0], *turned_in_plane(q[0], v[1], v[2])]

    @staticmethod
    def integrate(q: Values, step: Values) -> Values:
        path = way(Vec(0.0, 0.0, step[0]), Vec(step[1], step[2], 0.0))
        x, y = turned_in_plane(q[0], path.x, path.y)
        return [q[0] + step[0], q[1] + x, q[2] + y]

    @classmethod
    def difference(cls, q0: Values, q1: Values) -> Values:
        turn, x, y = cls.error(q0, q1)
        turn = folded(turn)  # a whole turn leads nowhere else
        v = rate_along(Vec(0.0, 0.0, turn), Vec(x, y, 0.0))
        return [turn, v.x, v.y]

    @classmethod
    def error(cls, q: Values, wanted: Values) -> Values:
        turn, x, y = (b - a for a, b in zip(q, wanted, strict=True))
        return [turn, *turned_in_plane(-q[0], x, y)]

    @staticmethod
    def to_pinocchio(q: Values, width: int) -> Values:
        return [q[1], q[2], cos(q[0]), sin(q[0])]

    @staticmethod
    def from_pinocchio(q: Values) -> Values:
        return [atan2(q[3], q[2]), q[0], q[1]]

    @classmethod
    def pinocchio_rates(cls) -> tuple[int, ...]:
        return 2, 0, 1
