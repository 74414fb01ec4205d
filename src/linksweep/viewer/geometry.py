"""Shapes, surfaces and placements: what a scene draws, and where.

Placements are homogeneous matrices (4, 4). Quaternions are in viser's order, wxyz.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.transform import Rotation

from linksweep.errors import ArgumentError
from linksweep.model.model import BASE, Model, Placement, Vector
from linksweep.support.checks import real_array
from linksweep.support.messages import shown

Color = tuple[float, float, float, float]  # red, green, blue and opacity, each from 0 to 1
CREASE = np.deg2rad(35.0)  # edges with a larger angle between their faces are drawn sharp


# ---- placements ----------------------------------------------------------------------------------------------------


def matrix(placement: Placement) -> np.ndarray:
    """Return a Placement as a homogeneous matrix (4, 4)."""
    return rigid(np.array(placement.position, dtype=float), np.array(placement.rotation, dtype=float))


def rigid(position: ArrayLike, rotation: np.ndarray | None = None) -> np.ndarray:
    """Return the homogeneous matrix (4, 4) of a position and a rotation (default: none)."""
    pose = np.eye(4)
    pose[:3, 3] = position
    if rotation is not None:
        pose[:3, :3] = rotation
    return pose


def rotation_along(direction: ArrayLike) -> np.ndarray:
    """Return rotations (..., 3, 3) whose z axes are along directions (..., 3), which are not 0."""
    z = np.asarray(direction, dtype=float)
    z = z / np.linalg.norm(z, axis=-1, keepdims=True)
    x = np.eye(3)[np.abs(z).argmin(axis=-1)]  # the coordinate axis farthest from z
    x = x - z * (z * x).sum(axis=-1, keepdims=True)
    x = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return np.stack([x, np.cross(z, x), z], axis=-1)


def quaternion_wxyz(rotation: np.ndarray) -> np.ndarray:
    """Return rotation matrices (3, 3) or (n, 3, 3) as quaternions in the order wxyz."""
    return np.roll(Rotation.from_matrix(rotation).as_quat(), 1, axis=-1)


def rotation_from_wxyz(wxyz: ArrayLike) -> np.ndarray:
    """Return a quaternion in the order wxyz as a rotation matrix (3, 3)."""
    return Rotation.from_quat(np.roll(np.asarray(wxyz, dtype=float), -1)).as_matrix()


def neutral_poses(model: Model) -> dict[int, np.ndarray]:
    """Return the pose of the body frame of each link, and of the base, in the neutral configuration."""
    poses = {BASE: np.eye(4)}
    for index, link in enumerate(model.links):
        poses[index] = poses[link.parent] @ matrix(link.joint.placement)
    return poses


def link_frames(model: Model) -> dict[int, np.ndarray]:
    """Return, for each link and the base, the pose of the frame with its name in the body frame."""
    frames = {frame.name: matrix(frame.placement) for frame in model.frames}
    poses = {BASE: frames[model.base]}
    for index, link in enumerate(model.links):
        poses[index] = frames.get(link.name, np.eye(4))
    return poses


def as_placement(value: ArrayLike | None) -> np.ndarray:
    """Return a rigid motion (4, 4) or a position (3,) as a checked matrix (4, 4); None is the identity."""
    if value is None:
        return np.eye(4)
    array = real_array("placement", value, finite=True)
    if array.shape == (3,):
        return rigid(array)
    if array.shape == (4, 4):
        R = array[:3, :3]
        if np.abs(R @ R.T - np.eye(3)).max() <= 1e-6 and np.linalg.det(R) > 0:
            return array
    raise ArgumentError(f"placement is {shown(value)}, expected a rigid motion (4, 4), or a position (3,).")


def as_points(name: str, values: ArrayLike) -> np.ndarray:
    """Return points or vectors as a finite array (n, 3); a single one may have the shape (3,)."""
    array = real_array(name, values, finite=True)
    return real_array(name, np.atleast_2d(array), ("n", 3))


def as_color(color: Sequence[float]) -> Color:
    """Return (red, green, blue) or (red, green, blue, opacity), each from 0 to 1, with opacity."""
    try:
        values = [float(x) for x in color]
    except (TypeError, ValueError):
        values = []
    if len(values) not in (3, 4) or not all(0.0 <= x <= 1.0 for x in values):
        raise ArgumentError(f"color is {shown(color)}, expected (red, green, blue), each from 0 to 1.")
    red, green, blue, opacity = (*values, 1.0)[:4]
    return (red, green, blue, opacity)


def as_rgb(color: Sequence[float]) -> tuple[int, int, int]:
    """Return a colour as three integers from 0 to 255."""
    red, green, blue = (round(255 * x) for x in as_color(color)[:3])
    return (red, green, blue)


# ---- shapes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Box:
    """A box centered at its origin; `size`: its three edge lengths (m)."""

    size: Vector


@dataclass(frozen=True, slots=True)
class Sphere:
    """A sphere centered at its origin."""

    radius: float


@dataclass(frozen=True, slots=True)
class Cylinder:
    """A cylinder along z, centered at its origin."""

    radius: float
    length: float


@dataclass(frozen=True, slots=True)
class Capsule:
    """A cylinder of this length along z, centered at its origin, with a hemisphere at each end."""

    radius: float
    length: float


@dataclass(frozen=True, slots=True)
class Ellipsoid:
    """An ellipsoid centered at its origin; `radii`: its three semi-axes (m)."""

    radii: Vector


@dataclass(frozen=True, slots=True)
class MeshFile:
    """A mesh file as a robot model names it: `filename` may begin with package://."""

    filename: str
    scale: Vector = (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Triangles:
    """A triangle mesh: vertices (n, 3) in m, and faces (m, 3) as indices of vertices."""

    vertices: np.ndarray
    faces: np.ndarray


Shape = Box | Sphere | Cylinder | Capsule | Ellipsoid | MeshFile | Triangles


@dataclass(frozen=True, slots=True, eq=False)
class Visual:
    """A shape fixed to the frame named `frame`, at the pose `at` (4, 4) in it."""

    frame: str
    shape: Shape
    at: np.ndarray = field(default_factory=lambda: np.eye(4))
    color: Color | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """Triangles of one colour, or a GLB file with its own colours, as sent to the page."""

    vertices: np.ndarray
    faces: np.ndarray
    color: Color | None = None
    glb: bytes | None = None


def surface_of(shape: Shape) -> Surface:
    """Return the triangles of a shape, with vertices duplicated along sharp edges."""
    if isinstance(shape, Triangles):
        return creased(shape.vertices, shape.faces)
    if isinstance(shape, Box):
        return _scaled("box", shape.size)
    if isinstance(shape, Cylinder):
        return _scaled("cylinder", (shape.radius, shape.radius, shape.length))
    if isinstance(shape, Sphere):
        return _scaled("sphere", (shape.radius,) * 3)
    if isinstance(shape, Ellipsoid):
        return _scaled("sphere", shape.radii)
    if isinstance(shape, Capsule):
        unit = _unit_surface("capsule")
        x, y, z = unit.vertices.T
        along = np.sign(z) * (0.5 * shape.length + (np.abs(z) - 1.0) * shape.radius)
        return Surface(np.column_stack([x * shape.radius, y * shape.radius, along]).astype(np.float32), unit.faces)
    raise ArgumentError(f"shape is {shown(shape)}, expected a shape of linksweep.viewer, such as Box.")


def _scaled(name: str, size: Sequence[float]) -> Surface:
    unit = _unit_surface(name)
    return Surface((unit.vertices * np.array(size)).astype(np.float32), unit.faces)


@functools.cache
def _unit_surface(name: str) -> Surface:
    """Return a primitive of size 1, made once: a robot may have thousands of them.

    The capsule has a radius of 1, and its hemispheres begin at z = 1 and z = -1.
    """
    from trimesh import creation  # pyright: ignore[reportMissingImports]

    if name == "box":
        mesh = creation.box((1.0, 1.0, 1.0))
    elif name == "cylinder":
        mesh = creation.cylinder(1.0, 1.0, sections=36)
    elif name == "sphere":
        mesh = creation.icosphere(3, 1.0)
    else:
        mesh = creation.capsule(2.0, 1.0, count=[24, 24])
        mesh.vertices[:, 2] -= 0.5 * (mesh.vertices[:, 2].min() + mesh.vertices[:, 2].max())
    return creased(mesh.vertices, mesh.faces)


def creased(vertices: np.ndarray, faces: np.ndarray, angle: float = CREASE) -> Surface:
    """Return the same triangles with separate vertices on both sides of sharp edges.

    The page computes one normal per vertex; a vertex shared across a sharp edge would shade both sides wrongly.
    Corners of triangles are joined across every smooth edge; each connected group of corners gets a vertex.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    vertices, faces = np.asarray(vertices, dtype=float), np.asarray(faces, dtype=np.int64).reshape(-1, 3)
    vertices, faces = _merged(vertices, faces)
    if not len(faces):
        return Surface(vertices.astype(np.float32), faces.astype(np.uint32))
    sides = np.cross(vertices[faces[:, 1]] - vertices[faces[:, 0]], vertices[faces[:, 2]] - vertices[faces[:, 0]])
    lengths = np.linalg.norm(sides, axis=1, keepdims=True)
    normals = sides / np.where(lengths > 0.0, lengths, 1.0)
    corner = np.arange(3 * len(faces)).reshape(-1, 3)
    first, second = corner.ravel(), np.roll(corner, -1, axis=1).ravel()
    ends = np.stack([faces.ravel(), np.roll(faces, -1, axis=1).ravel()], axis=1)
    order = np.lexsort((ends.max(axis=1), ends.min(axis=1)))
    same = (np.sort(ends[order[:-1]], axis=1) == np.sort(ends[order[1:]], axis=1)).all(axis=1)
    a, b = order[:-1][same], order[1:][same]
    smooth = (normals[a // 3] * normals[b // 3]).sum(axis=1) > np.cos(angle)
    a, b = a[smooth], b[smooth]
    # neighbours traverse their common edge in opposite directions, or in the same one if the mesh is badly oriented
    same_way = ends[a, 0] == ends[b, 0]
    rows = np.concatenate([first[a], second[a]])
    columns = np.concatenate([np.where(same_way, first[b], second[b]), np.where(same_way, second[b], first[b])])
    graph = coo_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(corner.size, corner.size))
    _, group = connected_components(graph, directed=False)
    _, first_corner, index = np.unique(group, return_index=True, return_inverse=True)
    return Surface(
        vertices[faces.ravel()[first_corner]].astype(np.float32), index.reshape(-1, 3).astype(np.uint32, copy=False)
    )


def _merged(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merge vertices at the same position: STL files repeat them for every triangle."""
    span = float(np.ptp(vertices, axis=0).max()) if len(vertices) else 0.0
    keys = np.round(vertices / (1e-6 * span or 1.0)).astype(np.int64)
    _, representative, index = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return vertices[representative], index.ravel()[faces]
