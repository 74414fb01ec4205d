"""Checked values of a model as users and files write them: numbers, vectors, inertias, poses, external forces."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError, DescriptionError
from linksweep.model.model import BASE, Frame, Inertial, Matrix, Model, Placement, Vector, snap, symmetric
from linksweep.support.checks import real_array, refuse_foreign
from linksweep.support.messages import nearest, shown


def as_number(value: object, what: str) -> float:
    """Return `value` as a float; text, truth values and complex numbers raise `DescriptionError`."""
    refuse_foreign(what, value)
    if not isinstance(value, (bool, np.bool_, str, bytes)):
        try:
            return float(value)  # type: ignore[arg-type]  # what it cannot take, it refuses
        except (TypeError, ValueError, OverflowError):
            pass
    raise DescriptionError(f"{what} is {shown(value)}, expected a real number.")


def as_vector(value: object, what: str) -> Vector:
    """Return `value` as three finite floats."""
    refuse_foreign(what, value)
    items = _items(value)
    if items is None or len(items) != 3:
        got = shown(value) if items is None else f"{len(items)} values"
        raise DescriptionError(f"{what} is {got}, expected three numbers x, y, z.")
    x, y, z = (as_number(item, what) for item in items)
    if not all(math.isfinite(v) for v in (x, y, z)):
        raise DescriptionError(f"{what} is {(x, y, z)}, expected finite numbers.")
    return (x, y, z)


def as_inertia(value: object, what: str = "inertia") -> Matrix:
    """Return a symmetric 3x3 inertia from 3 (xx, yy, zz), 6 (xx, yy, zz, xy, xz, yz) or 3x3 numbers."""
    refuse_foreign(what, value)
    items = _items(value)
    rows = None if items is None or len(items) != 3 else [_items(row) for row in items]
    if rows is not None and all(row is not None and len(row) == 3 for row in rows):
        m = [[as_number(v, what) for v in row or ()] for row in rows]
        largest = max(abs(v) for row in m for v in row)
        pairs = ((0, 1), (0, 2), (1, 2))
        if any(abs(m[i][j] - m[j][i]) > 1e-9 * largest for i, j in pairs):
            raise DescriptionError(f"{what} is {shown(value)}, expected a symmetric matrix.")
        return symmetric(m[0][0], m[1][1], m[2][2], *((m[i][j] + m[j][i]) / 2 for i, j in pairs))
    if items is None or len(items) not in (3, 6) or any(_items(item) is not None for item in items):
        raise DescriptionError(
            f"{what} is {shown(value)}, expected 3 (xx, yy, zz), 6 (xx, yy, zz, xy, xz, yz) or 3x3 numbers."
        )
    return symmetric(*(as_number(item, what) for item in items))


def as_placement(matrix: object, what: str) -> Placement:
    """Return a Placement from a homogeneous matrix (4, 4); None is the identity."""
    if matrix is None:
        return Placement()
    if isinstance(matrix, Placement):
        return matrix
    t = real_array(what, matrix, (4, 4), finite=True, dtype=float)
    r = t[:3, :3]
    if not np.allclose(r @ r.T, np.eye(3), atol=1e-6) or np.linalg.det(r) < 0 or not np.allclose(t[3], (0, 0, 0, 1)):
        raise ArgumentError(
            f"{what} is not a homogeneous matrix: its 3x3 block is not a rotation, or its last row is not 0 0 0 1."
        )
    u, _, v = np.linalg.svd(r)
    x, y, z = (as_vector(row, what) for row in (r if np.allclose(r @ r.T, np.eye(3), atol=1e-14) else u @ v))
    return Placement(snap((x, y, z)), as_vector(t[:3, 3], what))


def ten_of(inertial: Inertial) -> np.ndarray:
    """Return the ten inertial parameters: m, m c, and the inertia about the origin (xx, yy, zz, xy, xz, yz)."""
    m, c = float(inertial.mass), np.array(inertial.com, dtype=float)
    i = np.array(inertial.inertia, dtype=float) + m * (c @ c * np.eye(3) - np.outer(c, c))
    return np.array([m, *(m * c), i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]])


def from_ten(ten: np.ndarray) -> Inertial:
    """Return mass, center of mass and the inertia about it from the ten inertial parameters."""
    m = float(ten[0])
    com = ten[1:4] / m if m else np.zeros(3)
    xx, yy, zz, xy, xz, yz = ten[4:]
    about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) - m * (com @ com * np.eye(3) - np.outer(com, com))
    i, (x, y, z) = about.tolist(), com.tolist()
    return Inertial(m, (x, y, z), symmetric(i[0][0], i[1][1], i[2][2], i[0][1], i[0][2], i[1][2]))


def _items(value: object) -> list[object] | None:
    if isinstance(value, (str, bytes, dict)):
        return None
    try:
        return list(value)  # type: ignore[call-overload]
    except TypeError:
        return None


# ---- external forces -----------------------------------------------------------------------------------------


def link_forces(model: Model, forces: Mapping[str, ArrayLike]) -> np.ndarray:
    """Return external wrenches, given as {frame: (..., 6)}, as (..., links, 6) in document order.

    Each wrench [moment; force] is transformed from its frame to the link frame.
    """
    frames = {frame.name: frame for frame in model.frames}
    row_of = {link: row for row, link in enumerate(model.document_order)}
    wrenches: dict[str, np.ndarray] = {}
    for name, value in forces.items():
        if name not in frames:
            raise ArgumentError(
                f"f_ext: {model.name} has no frame {shown(name)}{nearest(name, frames)}, expected one of "
                f"robot.frame_names."
            )
        if frames[name].link == BASE:
            raise ArgumentError(f"f_ext: frame {name!r} is on the base, expected a frame of a moving link.")
        wrenches[name] = real_array(f"f_ext of frame {name!r}", value, (..., 6))
    shapes = ", ".join(f"{name} {array.shape}" for name, array in wrenches.items())
    try:
        batch = np.broadcast_shapes(*(array.shape[:-1] for array in wrenches.values()))
        rows = np.zeros((*batch, len(model.links), 6), np.result_type(np.float16, *wrenches.values()))
        with np.errstate(all="ignore"):  # non-finite values make their samples NaN later, silently
            for name, array in wrenches.items():
                frame = frames[name]
                rows[..., row_of[frame.link], :] += _moved(array, frame, frames[model.links[frame.link].name])
    except (ValueError, MemoryError):
        raise ArgumentError(
            f"f_ext: the shapes ({shapes}) do not broadcast together, expected batch shapes that do and fit into "
            f"memory."
        ) from None
    return rows


def _moved(force: np.ndarray, at: Frame, own: Frame) -> np.ndarray:
    """Return a wrench, given in frame `at`, in the link frame `own` of the same link."""
    inner, outer = np.array(own.placement.rotation), np.array(at.placement.rotation)
    rotation = (inner.T @ outer).astype(force.dtype)
    offset = inner.T @ (np.array(at.placement.position) - np.array(own.placement.position))
    linear = force[..., 3:] @ rotation.T
    return np.concatenate([force[..., :3] @ rotation.T + np.cross(offset.astype(force.dtype), linear), linear], axis=-1)
