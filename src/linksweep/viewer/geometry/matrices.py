"""Placements as homogeneous matrices, and quaternions in viser's order."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from linksweep.description.model import BASE, Model, Placement


def matrix(placement: Placement) -> np.ndarray:
    """A Placement as a homogeneous matrix (4, 4)."""
    out = np.eye(4)
    out[:3, :3] = np.array(placement.rotation, dtype=float)
    out[:3, 3] = np.array(placement.position, dtype=float)
    return out


def moved(position: ArrayLike, rotation: np.ndarray | None = None) -> np.ndarray:
    """The homogeneous matrix of a place with these axes (those of the frame outside if not given)."""
    out = np.eye(4)
    out[:3, 3] = position
    if rotation is not None:
        out[:3, :3] = rotation
    return out


def inverse(pose: np.ndarray) -> np.ndarray:
    """The inverse (..., 4, 4) of rigid motions."""
    out = np.zeros_like(pose)
    back = np.swapaxes(pose[..., :3, :3], -1, -2)
    out[..., :3, :3] = back
    out[..., :3, 3] = -(back @ pose[..., :3, 3, None])[..., 0]
    out[..., 3, 3] = 1.0
    return out


def turned_to(direction: ArrayLike) -> np.ndarray:
    """Rotations (..., 3, 3) whose third columns are along directions (..., 3), which are not 0."""
    z = np.asarray(direction, dtype=float)
    z = z / np.linalg.norm(z, axis=-1, keepdims=True)
    x = np.eye(3)[np.abs(z).argmin(axis=-1)]  # the axis that is farthest from z
    x = x - z * (z * x).sum(axis=-1, keepdims=True)
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return np.stack([x, np.cross(z, x), z], axis=-1)


def quaternion_wxyz(rotation: np.ndarray) -> np.ndarray:
    """Quaternions (..., 4) in the order wxyz of rotation matrices (..., 3, 3).

    Four formulas exist, each good where its own entry is the largest; all four are computed and the best one taken.
    """
    r = np.asarray(rotation, dtype=float)
    xx, yy, zz = r[..., 0, 0], r[..., 1, 1], r[..., 2, 2]
    a, b, c = r[..., 2, 1], r[..., 0, 2], r[..., 1, 0]
    d, e, f = r[..., 1, 2], r[..., 2, 0], r[..., 0, 1]
    squares = np.stack([1 + xx + yy + zz, 1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz], axis=-1)
    rows = np.stack(
        [
            np.stack([squares[..., 0], a - d, b - e, c - f], axis=-1),
            np.stack([a - d, squares[..., 1], f + c, b + e], axis=-1),
            np.stack([b - e, f + c, squares[..., 2], a + d], axis=-1),
            np.stack([c - f, b + e, a + d, squares[..., 3]], axis=-1),
        ],
        axis=-2,
    )
    best = squares.argmax(axis=-1)
    chosen = np.take_along_axis(rows, best[..., None, None], axis=-2)[..., 0, :]
    return chosen / np.linalg.norm(chosen, axis=-1, keepdims=True)


def neutral_poses(model: Model) -> dict[int, np.ndarray]:
    """Where the body frame of every link, and the base, stands while the joints are neutral."""
    poses = {BASE: np.eye(4)}
    for index, link in enumerate(model.links):
        poses[index] = poses[link.parent] @ matrix(link.joint.placement)
    return poses


def named_frames(model: Model) -> dict[int, np.ndarray]:
    """Where the frame that bears the name of a link, or of the base, stands in its body frame."""
    places = {frame.name: frame for frame in model.frames}
    found = {BASE: matrix(places[model.base].placement)}
    for index, link in enumerate(model.links):
        found[index] = matrix(places[link.name].placement) if link.name in places else np.eye(4)
    return found
