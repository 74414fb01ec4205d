"""Motions of a frame: straight lines and arcs, run through by a law of time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError

from .base import FloatArray, Motion, finite
from .poses import checked_poses, rotation_of, rotation_vector
from .quintic import Quintic


class FrameMotion(NamedTuple):
    """Poses (..., 4, 4), twists and accelerations (..., 6) of a frame in the base frame.

    Twists are [angular; linear] of the frame's origin along the base's axes, and the accelerations their time
    derivatives, as robot.jacobian gives them.
    """

    pose: FloatArray
    twist: FloatArray
    acceleration: FloatArray


class Path:
    """A motion of a frame: path(t) gives its pose, twist and acceleration at times t of any shape.

    law: how far along the path the frame is at each time, a motion of one coordinate, 0 at the start of the path and
    1 at its end; or a number, the duration (s) of a quintic law from rest to rest. Outside the times of the law the
    frame does what the law does.
    """

    def __init__(self, start: ArrayLike, law: Motion | float) -> None:
        self.pose = _one_pose(self, "start", start)
        self.law = _law_of(self, law)

    @property
    def start(self) -> float:
        return self.law.start

    @property
    def end(self) -> float:
        return self.law.end

    @property
    def duration(self) -> float:
        """Time from the start to the end."""
        return self.law.duration

    def __call__(self, t: ArrayLike) -> FrameMotion:
        """The motion at times t of any shape (...)."""
        s, rate, bend = self.law(t)
        turn = self._turn()
        pose = np.empty((*s.shape[:-1], 4, 4))
        pose[..., 3, :] = (0.0, 0.0, 0.0, 1.0)
        pose[..., :3, :3] = rotation_of(s * turn) @ self.pose[:3, :3]
        pose[..., :3, 3], slope, curve = self._place(s)
        twist = np.concatenate([rate * turn, rate * slope], axis=-1)
        acceleration = np.concatenate([bend * turn, bend * slope + rate**2 * curve], axis=-1)
        return FrameMotion(pose, twist, acceleration)

    def _turn(self) -> FloatArray:
        """The rotation vector (3,) from the start's orientation to the end's: the axis is constant on the way."""
        raise NotImplementedError

    def _place(self, s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The position (..., 3) at s (..., 1), and its first and second derivatives by s."""
        raise NotImplementedError


class Line(Path):
    """A straight line from the pose `start` to the pose `end`, both (4, 4); it turns about a constant axis."""

    def __init__(self, start: ArrayLike, end: ArrayLike, law: Motion | float) -> None:
        super().__init__(start, law)
        last = _one_pose(self, "end", end)
        self._rotation = rotation_vector(last[:3, :3] @ self.pose[:3, :3].T)
        self._way = last[:3, 3] - self.pose[:3, 3]

    def _turn(self) -> FloatArray:
        return self._rotation

    def _place(self, s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        slope = np.broadcast_to(self._way, (*s.shape[:-1], 3))
        return self.pose[:3, 3] + s * self._way, slope, np.zeros_like(slope)


class Arc(Path):
    """The arc of a circle from the pose `start` (4, 4) through the point `via` (3,) to the pose `end` (4, 4).

    The orientation goes from the one to the other about a constant axis, as on a Line. `Arc.around` makes an arc
    about an axis, up to full circles and beyond.
    """

    def __init__(self, start: ArrayLike, via: ArrayLike, end: ArrayLike, law: Motion | float) -> None:
        super().__init__(start, law)
        last = _one_pose(self, "end", end)
        middle = _vector(self, "via", via)
        first = self.pose[:3, 3]
        a, b = middle - first, last[:3, 3] - first
        normal = np.cross(a, b)
        area = normal @ normal
        if area <= 1e-20 * max(a @ a, b @ b) ** 2:
            raise ArgumentError(
                "Arc got three points on one line, expected a circle through start, via and end: use Line, or "
                "Arc.around for a full circle."
            )
        center = first + (np.cross(normal, a) * (b @ b) + np.cross(b, normal) * (a @ a)) / (2.0 * area)
        axis = normal / np.sqrt(area)
        spoke, tip = first - center, last[:3, 3] - center
        # start, via and end are counterclockwise about their normal, so the angle is the one in (0, 2 pi)
        angle = np.arctan2(axis @ np.cross(spoke, tip), spoke @ tip) % (2.0 * np.pi)
        self._set(center, axis, float(angle), rotation_vector(last[:3, :3] @ self.pose[:3, :3].T))

    @classmethod
    def around(cls, start: ArrayLike, center: ArrayLike, axis: ArrayLike, angle: float, law: Motion | float) -> Arc:
        """The pose `start` carried around the axis (3,) through the point `center` (3,), turning with it by `angle`."""
        arc = cls.__new__(cls)
        Path.__init__(arc, start, law)
        along, whole = _vector(arc, "axis", axis), finite(arc, "angle", angle)
        length = np.linalg.norm(along)
        if not length > 0.0:
            raise ArgumentError("Arc got an axis of length 0, expected a direction.")
        if whole.shape != ():
            raise ArgumentError(f"Arc got angle of shape {whole.shape}, expected one number (rad).")
        along = along / length
        foot = _vector(arc, "center", center)
        foot = foot + along * (along @ (arc.pose[:3, 3] - foot))
        arc._set(foot, along, float(whole), along * float(whole))
        return arc

    def _set(self, center: FloatArray, axis: FloatArray, angle: float, rotation: FloatArray) -> None:
        self.center, self.axis, self.angle, self._rotation = center, axis, angle, rotation
        self.center.flags.writeable = self.axis.flags.writeable = False
        self.radius = float(np.linalg.norm(self.pose[:3, 3] - center))

    def _turn(self) -> FloatArray:
        return self._rotation

    def _place(self, s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        spoke = self.pose[:3, 3] - self.center
        side = np.cross(self.axis, spoke)
        c, sine = np.cos(self.angle * s), np.sin(self.angle * s)
        outward = c * spoke + sine * side
        return self.center + outward, self.angle * (c * side - sine * spoke), -(self.angle**2) * outward


def _law_of(owner: Path, law: Motion | float) -> Motion:
    if isinstance(law, Motion):
        if law.width != 1:
            raise ArgumentError(
                f"{type(owner).__name__} got a law of {law.width} coordinates, expected one that runs from 0 to 1: "
                "for example Quintic([[0], [1]], [0, duration])."
            )
        return law
    seconds = finite(owner, "law", law)
    if seconds.shape != () or not seconds > 0.0:
        raise ArgumentError(
            f"{type(owner).__name__} got law {law!r}, expected a motion of one coordinate or a duration above 0 (s)."
        )
    return Quintic([[0.0], [1.0]], [0.0, float(seconds)])


def _one_pose(owner: Path, name: str, value: ArrayLike) -> FloatArray:
    pose = checked_poses(type(owner).__name__, name, value)
    if pose.shape != (4, 4):
        raise ArgumentError(f"{type(owner).__name__} got {name} of shape {pose.shape}, expected one pose (4, 4).")
    pose.flags.writeable = False
    return pose


def _vector(owner: Path, name: str, value: ArrayLike) -> FloatArray:
    vector = finite(owner, name, value)
    if vector.shape != (3,):
        raise ArgumentError(f"{type(owner).__name__} got {name} of shape {vector.shape}, expected (3,).")
    return vector
