"""Small solids as lists of flat faces (4, 3), for sketches."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

_LIGHT = np.array([0.35, -0.55, 0.75]) / np.linalg.norm([0.35, -0.55, 0.75])
_AROUND = 14


def rod(start: np.ndarray, end: np.ndarray, radius: float) -> list[list[np.ndarray]]:
    """A thin rod, in pieces short enough to be sorted by depth; none where the ends coincide."""
    length = float(np.linalg.norm(end - start))
    if length < 1e-9:
        return []
    count = int(np.clip(length / (6 * radius), 1, 12))
    stations = np.linspace(start, end, count + 1)
    return [_prism(a, b, radius, 8, closed=(k in (0, count - 1))) for k, (a, b) in enumerate(pairwise(stations))]


def cylinder(center: np.ndarray, axis: np.ndarray, radius: float, length: float) -> list[np.ndarray]:
    return _prism(center - axis * length / 2, center + axis * length / 2, radius, _AROUND)


def box(center: np.ndarray, axis: np.ndarray, across: np.ndarray, half: float, length: float) -> list[np.ndarray]:
    """A square bar along `axis`, one side of it towards `across`."""
    corner = half * np.sqrt(2.0)
    return _prism(center - axis * length / 2, center + axis * length / 2, corner, 4, across=across)


def sphere(center: np.ndarray, radius: float) -> list[np.ndarray]:
    rings = np.linspace(0.0, np.pi, 7)
    turns = np.linspace(0.0, 2 * np.pi, 11)
    grid = np.array([[[np.sin(a) * np.cos(b), np.sin(a) * np.sin(b), np.cos(a)] for b in turns] for a in rings])
    grid = center + radius * grid
    return [
        np.stack([grid[i, j], grid[i + 1, j], grid[i + 1, j + 1], grid[i, j + 1]]) for i in range(6) for j in range(10)
    ]


def shaded(faces: list[np.ndarray], color: str) -> list[tuple[float, ...]]:
    """The colour of each face, lit from the viewer's upper left; in grey the shading carries the shape."""
    from matplotlib.colors import to_rgb

    rgb = np.array(to_rgb(color))
    found = []
    for face in faces:
        normal = np.cross(face[1] - face[0], face[-1] - face[0])
        size = np.linalg.norm(normal)
        facing = abs(float(normal @ _LIGHT)) / size if size else 0.0
        found.append((*(rgb * (0.55 + 0.45 * facing)), 1.0))
    return found


def _prism(
    start: np.ndarray,
    end: np.ndarray,
    radius: float,
    sides: int,
    *,
    closed: bool = True,
    across: np.ndarray | None = None,
) -> list[np.ndarray]:
    axis = (end - start) / np.linalg.norm(end - start)
    helper = np.eye(3)[np.abs(axis).argmin()] if across is None else across
    u = helper - axis * (axis @ helper)
    if np.linalg.norm(u) < 1e-6:
        u = np.eye(3)[np.abs(axis).argmin()]
        u = u - axis * (axis @ u)
    u = u / np.linalg.norm(u)
    v = np.cross(axis, u)
    angles = 2 * np.pi * (np.arange(sides) + 0.5) / sides
    ring = radius * (np.cos(angles)[:, None] * u + np.sin(angles)[:, None] * v)
    low, high = start + ring, end + ring
    faces = [np.stack([low[k], low[k - 1], high[k - 1], high[k]]) for k in range(sides)]
    return [*faces, *_cap(low), *_cap(high)] if closed else faces


def _cap(ring: np.ndarray) -> list[np.ndarray]:
    """A disc in faces of four corners: Matplotlib fills up faces with fewer by whatever is in memory."""
    if len(ring) == 4:
        return [ring]
    center = ring.mean(axis=0)
    return [np.stack([center, ring[k - 2], ring[k - 1], ring[k]]) for k in range(0, len(ring), 2)]
