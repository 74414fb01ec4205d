"""Cartesian paths of a frame, straight lines and arcs with a time scaling; checks and logarithms of poses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError, warn_user

from .trajectories import FloatArray, Motion, Quintic, finite


class FrameMotion(NamedTuple):
    """Poses (..., 4, 4), twists and accelerations (..., 6) of a frame in the base frame.

    Twists are [angular; linear] velocities of the frame's origin along the base axes, as `robot.jacobian` times qd.
    Accelerations are their time derivatives.
    """

    pose: FloatArray
    twist: FloatArray
    acceleration: FloatArray


class Path:
    """A path of a frame with a time scaling: path(t) returns pose, twist and acceleration at times t of any shape.

    time_scaling: s(t), a trajectory of one coordinate that is 0 at the start of the path and 1 at its end; or a number,
    the duration (s) of a quintic time scaling from rest to rest. Outside its times, the path holds its end points if
    the time scaling does. law: deprecated name of time_scaling.
    """

    _rotation: FloatArray  # rotation vector (3,) from the first orientation to the last; its axis is constant

    def __init__(
        self, start: ArrayLike, time_scaling: Motion | float | None = None, *, law: Motion | float | None = None
    ) -> None:
        self.pose = _one_pose(self, "start", start)
        if law is not None:
            warn_user(f"{type(self).__name__}: law= is deprecated, use time_scaling=.", DeprecationWarning)
        self.time_scaling = _checked_scaling(self, time_scaling if law is None else law)

    @property
    def law(self) -> Motion:
        """Deprecated name of `time_scaling`."""
        warn_user(f"{type(self).__name__}.law is deprecated, use time_scaling.", DeprecationWarning)
        return self.time_scaling

    @property
    def start(self) -> float:
        return self.time_scaling.start

    @property
    def end(self) -> float:
        return self.time_scaling.end

    @property
    def duration(self) -> float:
        """Time from start to end (s)."""
        return self.time_scaling.duration

    def __call__(self, t: ArrayLike) -> FrameMotion:
        """Evaluate the path at times t of any shape (...)."""
        s, rate, second = self.time_scaling(t)
        turn = self._rotation
        pose = np.empty((*s.shape[:-1], 4, 4))
        pose[..., 3, :] = (0.0, 0.0, 0.0, 1.0)
        pose[..., :3, :3] = rotation_of(s * turn) @ self.pose[:3, :3]
        pose[..., :3, 3], tangent, curvature = self._position(s)
        twist = np.concatenate([rate * turn, rate * tangent], axis=-1)
        acceleration = np.concatenate([second * turn, second * tangent + rate**2 * curvature], axis=-1)
        return FrameMotion(pose, twist, acceleration)

    def _position(self, s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the position (..., 3) at s (..., 1), and its first and second derivatives with respect to s."""
        raise NotImplementedError


class Line(Path):
    """A straight line from the pose `start` to the pose `end`, both (4, 4); it rotates about a constant axis."""

    def __init__(
        self, start: ArrayLike, end: ArrayLike, time_scaling: Motion | float | None = None, *,
        law: Motion | float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(start, time_scaling, law=law)
        last = _one_pose(self, "end", end)
        self._rotation = rotation_vector(last[:3, :3] @ self.pose[:3, :3].T)
        self._displacement = last[:3, 3] - self.pose[:3, 3]

    def _position(self, s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        tangent = np.broadcast_to(self._displacement, (*s.shape[:-1], 3))
        return self.pose[:3, 3] + s * self._displacement, tangent, np.zeros_like(tangent)


class Arc(Path):
    """A circular arc from the pose `start` (4, 4) through the point `via` (3,) to the pose `end` (4, 4).

    The orientation rotates about a constant axis, as on a Line. `Arc.around` makes an arc about a given axis, up to
    full circles and beyond.
    """

    def __init__(
        self, start: ArrayLike, via: ArrayLike, end: ArrayLike, time_scaling: Motion | float | None = None, *,
        law: Motion | float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(start, time_scaling, law=law)
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
    def around(
        cls, start: ArrayLike, center: ArrayLike, axis: ArrayLike, angle: float,
        time_scaling: Motion | float | None = None, *, law: Motion | float | None = None,
    ) -> Arc:  # fmt: skip
        """Rotate the pose `start` by `angle` (rad) about the axis (3,) through the point `center` (3,)."""
        arc = cls.__new__(cls)
        Path.__init__(arc, start, time_scaling, law=law)
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

    def _position(self, s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        spoke = self.pose[:3, 3] - self.center
        side = np.cross(self.axis, spoke)
        c, sine = np.cos(self.angle * s), np.sin(self.angle * s)
        outward = c * spoke + sine * side
        return self.center + outward, self.angle * (c * side - sine * spoke), -(self.angle**2) * outward


def _checked_scaling(owner: Path, scaling: Motion | float | None) -> Motion:
    if isinstance(scaling, Motion):
        if scaling.width != 1:
            raise ArgumentError(
                f"{type(owner).__name__} got a time_scaling of {scaling.width} coordinates, expected one coordinate "
                "that runs from 0 to 1, for example Quintic([[0], [1]], [0, duration])."
            )
        return scaling
    if scaling is None:
        raise ArgumentError(f"{type(owner).__name__} needs a time_scaling: a trajectory or a duration (s).")
    seconds = finite(owner, "time_scaling", scaling)
    if seconds.shape != () or not seconds > 0.0:
        raise ArgumentError(
            f"{type(owner).__name__} got time_scaling {scaling!r}, expected a one-coordinate trajectory or a duration "
            "above 0 (s)."
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


# ---- Poses and rotation vectors


_NEXT, _AFTER = [1, 2, 0], [2, 0, 1]
LOOSE = 1e-6  # largest deviation from orthonormal that is taken for rounding of a file or a sensor


def checked_poses(who: str, name: str, value: ArrayLike) -> FloatArray:
    """Return homogeneous matrices (..., 4, 4); replace a rounded rotation by the nearest orthonormal one."""
    poses = finite(who, name, value)
    if poses.ndim < 2 or poses.shape[-2:] != (4, 4):
        raise ArgumentError(f"{who} got {name} of shape {poses.shape}, expected homogeneous matrices (..., 4, 4).")
    if not (poses[..., 3, :] == (0.0, 0.0, 0.0, 1.0)).all():
        raise ArgumentError(
            f"{who} got {name} whose last row is not 0 0 0 1; a pose has the position in its last column."
        )
    rotation = poses[..., :3, :3]
    off = np.abs(rotation @ np.swapaxes(rotation, -1, -2) - np.eye(3)).max(initial=0.0)
    if off > LOOSE or (np.linalg.det(rotation) < 0.0).any():
        raise ArgumentError(
            f"{who} got {name} whose upper 3x3 block is not a rotation: R R^T deviates from the identity by "
            f"{off:.2g}, or R is a reflection."
        )
    if off > 1e-14:
        u, _, v = np.linalg.svd(rotation)
        poses[..., :3, :3] = u @ v
    return poses


def rotation_of(vector: FloatArray) -> FloatArray:
    """Return the rotation matrices (..., 3, 3) of rotation vectors (..., 3)."""
    angle = np.linalg.norm(vector, axis=-1)[..., None, None]
    matrix = skew(vector)
    first, second = np.sinc(angle / np.pi), 0.5 * np.sinc(angle / (2.0 * np.pi)) ** 2
    return np.eye(3) + first * matrix + second * (matrix @ matrix)


def skew(vector: FloatArray) -> FloatArray:
    """Return the matrices (..., 3, 3) of the cross product with vectors (..., 3)."""
    matrix = np.zeros((*vector.shape[:-1], 3, 3))
    matrix[..., 2, 1] = vector[..., 0]
    matrix[..., 0, 2] = vector[..., 1]
    matrix[..., 1, 0] = vector[..., 2]
    return matrix - np.swapaxes(matrix, -1, -2)


def rotation_vector(rotation: FloatArray) -> FloatArray:
    """Return the rotation vectors (..., 3), no longer than pi, of rotation matrices (..., 3, 3)."""
    twice = rotation[..., _AFTER, _NEXT] - rotation[..., _NEXT, _AFTER]
    sine = np.sqrt((twice * twice).sum(axis=-1))  # of the angle, times 2
    cosine = rotation[..., 0, 0] + rotation[..., 1, 1] + rotation[..., 2, 2] - 1.0
    angle = np.arctan2(sine, cosine)
    vector = twice * (np.maximum(angle, 1e-12) / np.maximum(sine, 2e-12))[..., None]
    halfway = angle > 3.0  # near half a turn the axis comes from the symmetric part
    if halfway.any():
        vector[halfway] = _near_half_turn(rotation[halfway], twice[halfway], angle[halfway])
    return vector


def _near_half_turn(rotation: FloatArray, twice: FloatArray, angle: FloatArray) -> FloatArray:
    """R + R^T = 2 cos I + 2 (1 - cos) a a^T: the axis a is the longest column of a a^T, its sign that of the sine."""
    cosine = np.cos(angle)[..., None, None]
    square = 0.5 * (rotation + np.swapaxes(rotation, -1, -2)) - cosine * np.eye(3)
    longest = np.diagonal(square, axis1=-2, axis2=-1).argmax(axis=-1)
    axis = np.take_along_axis(square, longest[..., None, None], axis=-1)[..., 0]
    axis = axis / np.linalg.norm(axis, axis=-1, keepdims=True)
    sign = np.where((axis * twice).sum(axis=-1) < 0.0, -1.0, 1.0)
    return axis * (sign * angle)[..., None]
