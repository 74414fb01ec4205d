"""Motions of joints and of frames, and the joint motions that a frame's motion needs."""

from .branches import Branches, inverse_kinematics_branches
from .cartesian import Arc, FrameMotion, Line, Path
from .following import Followed, follow
from .inverse import InverseKinematics, inverse_kinematics
from .trajectories import CubicSpline, Cycloid, JointMotion, Motion, NormalSpline, Quintic, QuinticSpline, Trapezoid

__all__ = [
    "Arc",
    "Branches",
    "CubicSpline",
    "Cycloid",
    "Followed",
    "FrameMotion",
    "InverseKinematics",
    "JointMotion",
    "Line",
    "Motion",
    "NormalSpline",
    "Path",
    "Quintic",
    "QuinticSpline",
    "Trapezoid",
    "follow",
    "inverse_kinematics",
    "inverse_kinematics_branches",
]


def __dir__() -> list[str]:
    return sorted(__all__)
