"""Poses and Jacobians.

The pose of a link is that of its parent carried through the factors of its transform. The Jacobian of a frame is
J = B^T phi^T H^T of G. Rodriguez and K. Kreutz 1988, (3.7), column by column: joint k moves the frame with angular
velocity h(k) and linear velocity h(k) x l(k, 0), or h(k) for a sliding joint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..spatial import ZERO_VEC, Motion, Vec
from ..sweeps import LinkView, PerLink, Sweep
from ..transforms import Pose


@dataclass(slots=True)
class Column:
    """The motion of the frame for each unit rate of one joint, in the base's directions."""

    motions: tuple[Motion, ...]


WORLD = Pose(Vec(1.0, 0.0, 0.0), Vec(0.0, 1.0, 0.0), Vec(0.0, 0.0, 1.0), ZERO_VEC)


def poses(sweep: Sweep) -> PerLink:
    """The Pose of every link's canonical frame in the base frame."""

    def step(link: LinkView, parent: Pose) -> tuple[Pose, Pose]:
        pose = parent.through(link.X)
        return pose, pose

    return sweep.outward(step, WORLD)


def jacobian(sweep: Sweep, at: PerLink, on_path: PerLink, point: Vec) -> PerLink:
    """Columns of the Jacobian at `point` (in the base frame): (3.7) of Rodriguez & Kreutz.

    at: the pose of every link; on_path: 1 for links between the base and the frame, 0 for the others.
    """

    def step(link: LinkView, nothing: Any, at: Pose, on_path: Any) -> tuple[Column, Any]:
        motions = []
        for h in link.H_T.columns:
            angular = at.turn(h.angular) * on_path
            linear = at.turn(h.linear) * on_path + angular.cross(point - at.p)                   # (3.7)
            motions.append(Motion(angular, linear))
        return Column(tuple(motions)), nothing

    return sweep.outward(step, (), at, on_path)
