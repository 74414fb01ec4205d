"""From where a robot is looked at, and which way is up."""

from __future__ import annotations

import numpy as np

from linksweep.description.model import Model

from .geometry import neutral_poses


def first_view(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Which way is up, against gravity, and from where to look; an arm that moves in a plane is seen face on."""
    gravity = np.array(model.gravity, dtype=float)
    size = float(np.linalg.norm(gravity))
    up = -gravity / size if size > 0 else np.array([0.0, 0.0, 1.0])
    axes = _joint_axes(model)
    if len(axes) and (np.abs(axes @ axes[0]) > 0.999).all() and abs(axes[0] @ up) < 0.1:
        return up, axes[0] * np.sign(axes[0].sum() or 1.0)
    front = np.array([1.0, 0.0, 0.0]) if abs(up[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    front = front - up * (up @ front)
    front = front / np.linalg.norm(front)
    side = np.cross(up, front)
    direction = 1.0 * front - 0.75 * side + 0.5 * up
    return up, direction / np.linalg.norm(direction)


def distance_to_see(low: np.ndarray, high: np.ndarray, direction: np.ndarray, up: np.ndarray, fov: float) -> float:
    """How far along `direction` from the middle of a box a camera stands that sees all of it, with some air around."""
    half = 0.5 * (high - low)
    corners = half * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    right = np.cross(up, direction)
    right = right / np.linalg.norm(right)
    above = np.cross(direction, right)
    across = np.maximum(np.abs(corners @ right), np.abs(corners @ above))  # as if the page were square
    return max(float((corners @ direction + across / (0.86 * np.tan(0.5 * fov))).max()), 1e-3)


def _joint_axes(model: Model) -> np.ndarray:
    """The directions (n, 3) of the joints' axes with neutral joints; empty where a joint has none."""
    poses = neutral_poses(model)
    if not all(link.joint.type.commutes for link in model.links):
        return np.zeros((0, 3))
    return np.array([poses[k][:3, :3] @ np.array(link.joint.axis) for k, link in enumerate(model.links)])
