"""Numbers, vectors and inertias as users and files write them, checked."""

from __future__ import annotations

import math

import numpy as np

from linksweep.description.model import Inertial, Matrix, Vector, symmetric
from linksweep.errors import DescriptionError
from linksweep.support.foreign import refuse_foreign
from linksweep.support.messages import shown


def as_number(value: object, what: str) -> float:
    """`value` as a float, refusing what only looks like a number (text, bool, complex)."""
    refuse_foreign(what, value)
    if not isinstance(value, (bool, np.bool_, str, bytes)):
        try:
            return float(value)  # type: ignore[arg-type]  # what it cannot take, it refuses
        except (TypeError, ValueError, OverflowError):
            pass
    raise DescriptionError(f"{what} is {shown(value)}, expected a real number: write it as digits.")


def as_vector(value: object, what: str) -> Vector:
    """`value` as three finite floats."""
    refuse_foreign(what, value)
    items = _items(value)
    if items is None or len(items) != 3:
        got = shown(value) if items is None else f"{len(items)} values"
        raise DescriptionError(f"{what} is {got}, expected three numbers x, y, z: give all three.")
    x, y, z = (as_number(item, what) for item in items)
    if not all(math.isfinite(v) for v in (x, y, z)):
        raise DescriptionError(f"{what} is {(x, y, z)}, expected finite numbers: correct the value.")
    return (x, y, z)


def as_inertia(value: object, what: str = "inertia") -> Matrix:
    """A symmetric 3x3 inertia from 3 (xx, yy, zz), 6 (xx, yy, zz, xy, xz, yz) or 3x3 numbers."""
    refuse_foreign(what, value)
    items = _items(value)
    rows = None if items is None or len(items) != 3 else [_items(row) for row in items]
    if rows is not None and all(row is not None and len(row) == 3 for row in rows):
        m = [[as_number(v, what) for v in row or ()] for row in rows]
        largest = max(abs(v) for row in m for v in row)
        pairs = ((0, 1), (0, 2), (1, 2))
        if any(abs(m[i][j] - m[j][i]) > 1e-9 * largest for i, j in pairs):
            raise DescriptionError(f"{what} is {shown(value)}, expected a symmetric matrix: make it symmetric.")
        return symmetric(m[0][0], m[1][1], m[2][2], *((m[i][j] + m[j][i]) / 2 for i, j in pairs))
    if items is None or len(items) not in (3, 6) or any(_items(item) is not None for item in items):
        raise DescriptionError(
            f"{what} is {shown(value)}, expected 3 (xx, yy, zz), 6 (xx, yy, zz, xy, xz, yz) or 3x3 numbers: "
            "write it in one of these ways."
        )
    return symmetric(*(as_number(item, what) for item in items))


def ten_of(inertial: Inertial) -> np.ndarray:
    """The ten numbers of a body: m, m c, and the inertia about the origin (xx, yy, zz, xy, xz, yz)."""
    m, c = float(inertial.mass), np.array(inertial.com, dtype=float)
    i = np.array(inertial.inertia, dtype=float) + m * (c @ c * np.eye(3) - np.outer(c, c))
    return np.array([m, *(m * c), i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]])


def from_ten(ten: np.ndarray) -> Inertial:
    """Mass, center of mass and the inertia about it, from the ten numbers of a body."""
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
