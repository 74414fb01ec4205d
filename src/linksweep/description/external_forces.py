"""External forces given by frame, as one row per link."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..support.foreign import refuse_foreign
from ..support.messages import nearest, shown
from .model import BASE, Frame, Model


def link_forces(model: Model, forces: Mapping[str, ArrayLike]) -> np.ndarray:
    """{frame: (..., 6)} as (..., links, 6) in document order, each [moment; force] moved to its link's frame."""
    frames = {frame.name: frame for frame in model.frames}
    places = {link: row for row, link in enumerate(model.document_order)}
    given: dict[str, np.ndarray] = {}
    for name, value in forces.items():
        if name not in frames:
            raise ArgumentError(
                f"f_ext: {model.name} has no frame {shown(name)}{nearest(name, frames)}: expected one of "
                f"robot.frame_names."
            )
        if frames[name].link == BASE:
            raise ArgumentError(f"f_ext: frame {name!r} stands on the base, expected a frame of a moving link.")
        given[name] = _checked(name, value)
    shapes = ", ".join(f"{name} {array.shape}" for name, array in given.items())
    try:
        batch = np.broadcast_shapes(*(array.shape[:-1] for array in given.values()))
        rows = np.zeros((*batch, len(model.links), 6), np.result_type(np.float16, *given.values()))
        with np.errstate(all="ignore"):  # what is not finite makes its samples NaN, later and silently
            for name, array in given.items():
                frame = frames[name]
                rows[..., places[frame.link], :] += _moved(array, frame, frames[model.links[frame.link].name])
    except (ValueError, MemoryError):
        raise ArgumentError(
            f"f_ext: the forces' shapes ({shapes}) make no common array, expected batch shapes that broadcast together "
            f"and fit into memory: reshape or split them."
        ) from None
    return rows


def _checked(name: str, value: ArrayLike) -> np.ndarray:
    refuse_foreign(f"f_ext: the force at {name!r}", value)
    try:
        array = np.asarray(value)
    except Exception:  # also whatever an __array__ of somebody else raises
        array = np.array(None)
    if array.dtype.kind not in "iufb" or array.ndim == 0 or array.shape[-1] != 6:
        raise ArgumentError(
            f"f_ext: the force at {name!r} has shape {array.shape} and type {array.dtype}, expected (..., 6) real "
            f"numbers, [moment; force]: pass an array."
        )
    return array if array.dtype.kind == "f" else array.astype(float)


def _moved(force: np.ndarray, at: Frame, own: Frame) -> np.ndarray:
    """A force in frame `at` as one in the link's own frame `own`, both placed on the same link."""
    inner, outer = np.array(own.placement.rotation), np.array(at.placement.rotation)
    rotation = (inner.T @ outer).astype(force.dtype)
    offset = inner.T @ (np.array(at.placement.position) - np.array(own.placement.position))
    linear = force[..., 3:] @ rotation.T
    return np.concatenate([force[..., :3] @ rotation.T + np.cross(offset.astype(force.dtype), linear), linear], axis=-1)
