"""Make nearly special directions exact: entries of rotations that a file rounded to 1e-6 are meant as 0, 1 and -1.

At load only what is within 1e-11 is taken as exact. Coarser files (angles written as 3.1416) keep their tiny entries,
and every one of them costs operations; a user who knows the file says how coarse it is. Inertias are never touched.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import ArgumentError
from ..support.messages import shown
from .model import Joint, Model, Placement

LARGEST = 0.02  # beyond a degree it would be another robot


def snapped(model: Model, tolerance: float) -> tuple[Model, dict[str, float]]:
    """The model with joint frames and axes made exact, and by what angle (rad) each joint that moved has turned."""
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float, np.number)) or not 0 < tolerance < LARGEST:
        raise ArgumentError(
            f"snapped: the tolerance is {shown(tolerance)}, expected a number above 0 and below {LARGEST}, the size of "
            f"entries that are meant as 0."
        )
    links, moved = [], {}
    for link in model.links:
        joint, angle = _snapped_joint(link.joint, float(tolerance))
        if angle > 0.0:
            moved[joint.name] = angle
        links.append(replace(link, joint=joint))
    return (replace(model, links=tuple(links)) if moved else model), moved


def _snapped_joint(joint: Joint, tolerance: float) -> tuple[Joint, float]:
    rotation, axis = np.array(joint.placement.rotation, dtype=float), np.array(joint.axis, dtype=float)
    exact = _rotation(rotation, tolerance)
    turned = float(np.linalg.norm(exact - rotation) / np.sqrt(2.0))  # an angle, where it is small
    kept = _entries(axis, tolerance)
    kept = kept / np.linalg.norm(kept)
    turned = max(turned, float(np.linalg.norm(kept - axis)))
    if turned == 0.0:
        return joint, 0.0
    rows = tuple(tuple(row) for row in exact.tolist())
    placement = Placement(rows, joint.placement.position)  # type: ignore[arg-type]
    return replace(joint, placement=placement, axis=tuple(kept.tolist())), turned


def _entries(values: np.ndarray, tolerance: float) -> np.ndarray:
    near = np.round(values)
    return np.where(np.abs(values - near) <= tolerance, near, values) + 0.0


def _rotation(rotation: np.ndarray, tolerance: float) -> np.ndarray:
    """The nearest rotation with the same zeros; the same one where that is farther than the tolerance."""
    wanted = _entries(rotation, tolerance)
    if (wanted == rotation).all():
        return rotation
    left, _, right = np.linalg.svd(wanted)
    found = left @ right
    found = np.where((wanted == np.round(wanted)) & (np.abs(found - wanted) <= 1e-12), wanted, found) + 0.0
    close = np.abs(found - rotation).max() <= 3.0 * tolerance and np.linalg.det(found) > 0.0
    return found if close else rotation
