"""Rotations and poses as matrices: the rotation vector and back, and the checks of what users pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError

from .base import FloatArray, finite

_NEXT, _AFTER = [1, 2, 0], [2, 0, 1]
LOOSE = 1e-6  # a rotation this far from orthonormal was rounded on its way here; farther off it is none


def checked_poses(who: str, name: str, value: ArrayLike) -> FloatArray:
    """Homogeneous matrices (..., 4, 4); a rotation that was rounded becomes the nearest exact one."""
    poses = finite(who, name, value)
    if poses.ndim < 2 or poses.shape[-2:] != (4, 4):
        raise ArgumentError(
            f"{who} got {name} of shape {poses.shape}, expected homogeneous matrices (..., 4, 4) such as robot.pose "
            "gives."
        )
    if not (poses[..., 3, :] == (0.0, 0.0, 0.0, 1.0)).all():
        raise ArgumentError(
            f"{who} got {name} whose last row is not 0 0 0 1, expected a pose: the position is a column."
        )
    rotation = poses[..., :3, :3]
    off = np.abs(rotation @ np.swapaxes(rotation, -1, -2) - np.eye(3)).max(initial=0.0)
    if off > LOOSE or (np.linalg.det(rotation) < 0.0).any():
        raise ArgumentError(
            f"{who} got {name} whose upper 3x3 block is no rotation (R R^T is {off:.2g} off the identity, or R is a "
            "reflection): make it orthonormal and right-handed."
        )
    if off > 1e-14:
        u, _, v = np.linalg.svd(rotation)
        poses[..., :3, :3] = u @ v
    return poses


def rotation_of(vector: FloatArray) -> FloatArray:
    """Rotation matrices (..., 3, 3) of rotation vectors (..., 3)."""
    angle = np.linalg.norm(vector, axis=-1)[..., None, None]
    matrix = skew(vector)
    first, second = np.sinc(angle / np.pi), 0.5 * np.sinc(angle / (2.0 * np.pi)) ** 2
    return np.eye(3) + first * matrix + second * (matrix @ matrix)


def skew(vector: FloatArray) -> FloatArray:
    """The matrices (..., 3, 3) of the cross product with vectors (..., 3)."""
    matrix = np.zeros((*vector.shape[:-1], 3, 3))
    matrix[..., 2, 1] = vector[..., 0]
    matrix[..., 0, 2] = vector[..., 1]
    matrix[..., 1, 0] = vector[..., 2]
    return matrix - np.swapaxes(matrix, -1, -2)


def rotation_vector(rotation: FloatArray) -> FloatArray:
    """Rotation vectors (..., 3), no longer than pi, of rotation matrices (..., 3, 3)."""
    twice = rotation[..., _AFTER, _NEXT] - rotation[..., _NEXT, _AFTER]
    sine = np.sqrt((twice * twice).sum(axis=-1))  # of the angle, times 2
    cosine = rotation[..., 0, 0] + rotation[..., 1, 1] + rotation[..., 2, 2] - 1.0
    angle = np.arctan2(sine, cosine)
    vector = twice * (np.maximum(angle, 1e-12) / np.maximum(sine, 2e-12))[..., None]
    halfway = angle > 3.0  # the sine says little of the axis here, the symmetric part all
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
