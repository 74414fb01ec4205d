"""What can be drawn: primitives, meshes in files and triangles, each fixed to a frame of the robot."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from linksweep.description.model import Vector
from linksweep.errors import ArgumentError
from linksweep.support.messages import shown

Color = tuple[float, float, float, float]  # red, green, blue and opacity, each from 0 to 1
CREASE = np.deg2rad(35.0)  # where faces meet at a larger angle, the edge is seen


@dataclass(frozen=True, slots=True)
class Box:
    """A box about its middle, by its three edges."""

    size: Vector


@dataclass(frozen=True, slots=True)
class Sphere:
    """About its middle."""

    radius: float


@dataclass(frozen=True, slots=True)
class Cylinder:
    """Along z, about its middle."""

    radius: float
    length: float


@dataclass(frozen=True, slots=True)
class Capsule:
    """A cylinder of this length along z, about its middle, with half a sphere at each end."""

    radius: float
    length: float


@dataclass(frozen=True, slots=True)
class Ellipsoid:
    """About its middle, by its three half axes."""

    radii: Vector


@dataclass(frozen=True, slots=True)
class MeshFile:
    """A mesh as a description names it: `filename` may begin with package://."""

    filename: str
    scale: Vector = (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class Triangles:
    """Vertices (n, 3) and faces (m, 3)."""

    vertices: np.ndarray
    faces: np.ndarray


Shape = Box | Sphere | Cylinder | Capsule | Ellipsoid | MeshFile | Triangles


@dataclass(frozen=True, slots=True, eq=False)
class Visual:
    """A shape fixed to the frame that is called `frame`, where it stands at `at` (4, 4)."""

    frame: str
    shape: Shape
    at: np.ndarray = field(default_factory=lambda: np.eye(4))
    color: Color | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Surface:
    """What is sent to the page: triangles of one colour, or a GLB file with its own."""

    vertices: np.ndarray
    faces: np.ndarray
    color: Color | None = None
    glb: bytes | None = None


def surface_of(shape: Shape) -> Surface:
    """The triangles of a primitive, or of triangles, with vertices doubled along sharp edges."""
    if isinstance(shape, Triangles):
        return creased(shape.vertices, shape.faces)
    if isinstance(shape, Box):
        return _stretched("box", shape.size)
    if isinstance(shape, Cylinder):
        return _stretched("cylinder", (shape.radius, shape.radius, shape.length))
    if isinstance(shape, Sphere):
        return _stretched("sphere", (shape.radius,) * 3)
    if isinstance(shape, Ellipsoid):
        return _stretched("sphere", shape.radii)
    if isinstance(shape, Capsule):
        pattern = _pattern("capsule")
        x, y, z = pattern.vertices.T
        along = np.sign(z) * (0.5 * shape.length + (np.abs(z) - 1.0) * shape.radius)
        return Surface(np.column_stack([x * shape.radius, y * shape.radius, along]).astype(np.float32), pattern.faces)
    raise ArgumentError(f"a scene got {shown(shape)}, expected a shape of linksweep.viewer, such as Box.")


def _stretched(name: str, size: Sequence[float]) -> Surface:
    pattern = _pattern(name)
    return Surface((pattern.vertices * np.array(size)).astype(np.float32), pattern.faces)


@functools.cache
def _pattern(name: str) -> Surface:
    """A primitive of size 1, made once: robots without shapes are drawn with thousands of them.

    The capsule has a radius of 1, and its halves of a sphere begin at z = 1 and z = -1.
    """
    from trimesh import creation  # pyright: ignore[reportMissingImports]

    if name == "box":
        made = creation.box((1.0, 1.0, 1.0))
    elif name == "cylinder":
        made = creation.cylinder(1.0, 1.0, sections=36)
    elif name == "sphere":
        made = creation.icosphere(3, 1.0)
    else:
        made = creation.capsule(2.0, 1.0, count=[24, 24])
        made.vertices[:, 2] -= 0.5 * (made.vertices[:, 2].min() + made.vertices[:, 2].max())
    return creased(made.vertices, made.faces)


def creased(vertices: np.ndarray, faces: np.ndarray, angle: float = CREASE) -> Surface:
    """The same triangles with a vertex for each smooth patch around it.

    The page computes one normal for each vertex; a vertex that stands on a sharp edge would shade both sides wrongly.
    Corners of triangles are joined across every edge that is not sharp; each group that hangs together gets a vertex.
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
    # neighbours run along their common edge in opposite directions, or, where a mesh is badly oriented, in the same
    turned = ends[a, 0] == ends[b, 0]
    rows = np.concatenate([first[a], second[a]])
    columns = np.concatenate([np.where(turned, first[b], second[b]), np.where(turned, second[b], first[b])])
    graph = coo_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(corner.size, corner.size))
    _, group = connected_components(graph, directed=False)
    _, place, index = np.unique(group, return_index=True, return_inverse=True)
    return Surface(
        vertices[faces.ravel()[place]].astype(np.float32), index.reshape(-1, 3).astype(np.uint32, copy=False)
    )


def _merged(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertices at the same place as one: files of triangles alone repeat them for every triangle."""
    span = float(np.ptp(vertices, axis=0).max()) if len(vertices) else 0.0
    keys = np.round(vertices / (1e-6 * span or 1.0)).astype(np.int64)
    _, place, index = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return vertices[place], index.ravel()[faces]
