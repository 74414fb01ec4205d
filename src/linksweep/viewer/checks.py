"""What users pass to scenes, checked: colours, placements, rows of points, names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.support.messages import shown

from .geometry.shapes import Color


def as_numbers(what: str, values: ArrayLike) -> np.ndarray:
    """An array of floats of any shape."""
    try:
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"the viewer got {what} = {shown(values)}, expected an array of numbers.") from None


def as_rates(what: str, values: ArrayLike, count: int) -> np.ndarray:
    """A number for each rate of a robot."""
    array = as_numbers(what, values)
    if array.shape != (count,) or not np.isfinite(array).all():
        raise ArgumentError(f"the viewer got {what} of shape {array.shape}, expected {count} finite numbers.")
    return array


def as_share(what: str, value: object) -> float:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0.0 <= value <= 1.0:
        raise ArgumentError(f"{what} is {shown(value)}, expected a number from 0 to 1.")
    return float(value)


def as_color(color: Sequence[float]) -> Color:
    """Three or four numbers from 0 to 1."""
    try:
        values = [float(x) for x in color]
    except (TypeError, ValueError):
        values = []
    if len(values) not in (3, 4) or not all(0.0 <= x <= 1.0 for x in values):
        raise ArgumentError(f"a color is {shown(color)}, expected (red, green, blue), each from 0 to 1.")
    red, green, blue, opacity = (*values, 1.0)[:4]
    return (red, green, blue, opacity)


def as_rgb(color: Sequence[float]) -> tuple[int, int, int]:
    red, green, blue = (round(255 * x) for x in as_color(color)[:3])
    return (red, green, blue)


def node_name(name: str) -> str:
    """A name as a node of the page, where slashes make trees."""
    return name.replace("/", "∕").strip() or "robot"


def as_placement(value: ArrayLike | None) -> np.ndarray:
    if value is None:
        return np.eye(4)
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        array = np.zeros(0)
    if array.shape == (3,) and np.isfinite(array).all():
        return np.block([[np.eye(3), array[:, None]], [np.zeros((1, 3)), np.ones((1, 1))]])
    rigid = array.shape == (4, 4) and np.isfinite(array).all()
    if (
        not rigid
        or np.abs(array[:3, :3] @ array[:3, :3].T - np.eye(3)).max() > 1e-6
        or np.linalg.det(array[:3, :3]) < 0
    ):
        raise ArgumentError(f"a placement is {shown(value)}, expected a rigid motion (4, 4), or a position (3,).")
    return array


def as_rows(what: str, values: ArrayLike) -> np.ndarray:
    try:
        array = np.atleast_2d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        array = np.zeros((0, 0))
    if array.ndim != 2 or array.shape[1] != 3 or not np.isfinite(array).all():
        raise ArgumentError(f"{what} has shape {np.shape(values)}, expected finite numbers of shape (n, 3).")
    return array
