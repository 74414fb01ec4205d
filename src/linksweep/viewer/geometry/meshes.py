"""Meshes from files, through trimesh: STL, OBJ, COLLADA, PLY, glTF and what else it reads.

A mesh is never worth a crash: whatever is wrong with one is a `MeshError` with the reason, and the link is drawn as a
body instead. Files, triangles and the robot as a whole are bounded.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from linksweep.description.model import Vector

from .shapes import Color, Surface, creased

Mesh = Any  # trimesh's, or a scene of them
LARGEST_FILE = 64_000_000  # bytes
MOST_TRIANGLES = 1_000_000  # of one mesh
MOST_IN_ALL = 4_000_000  # of all meshes of a scene: more, and pages become slow
FARTHEST = 1e6  # metres
NO_DAE = "COLLADA is read by pycollada, which is not installed: pip install 'linksweep[viewer]'"


class MeshError(Exception):
    """Why a mesh cannot be drawn, in a few words."""


class MeshLibrary:
    """The meshes of a scene: each file is read once, and together they stay within bounds."""

    def __init__(self) -> None:
        self._found: dict[tuple[Path, Vector], tuple[Surface, ...] | MeshError] = {}
        self.triangles = 0

    def read(self, path: Path, scale: Vector = (1.0, 1.0, 1.0)) -> tuple[Surface, ...]:
        """The surfaces of a mesh, scaled; raises MeshError."""
        key = (path, scale)
        if key not in self._found:
            try:
                surfaces = read_mesh(path, scale)
                count = sum(len(surface.faces) for surface in surfaces)
                if self.triangles + count > MOST_IN_ALL:
                    raise MeshError(f"all meshes together have more than {MOST_IN_ALL:,} triangles")
                self.triangles += count
                self._found[key] = surfaces
            except MeshError as error:
                self._found[key] = error
        found = self._found[key]
        if isinstance(found, MeshError):
            raise found
        return found


def read_mesh(path: Path, scale: Vector = (1.0, 1.0, 1.0)) -> tuple[Surface, ...]:
    """The surfaces of a mesh file, one for each of its colours, textured ones as GLB; raises MeshError."""
    try:
        with _quiet():
            return _surfaces(path, scale)
    except MeshError:
        raise
    except Exception as error:  # readers of foreign files raise whatever they meet
        reason = (str(error).splitlines() or ["unreadable"])[0][:80]
        raise MeshError(f"{type(error).__name__}: {reason}") from None


def _surfaces(path: Path, scale: Vector) -> tuple[Surface, ...]:
    import trimesh  # pyright: ignore[reportMissingImports]

    kind = path.suffix.lower().removeprefix(".")
    size = path.stat().st_size
    if size > LARGEST_FILE:
        raise MeshError(f"the file has {size / 1e6:.0f} MB, at most {LARGEST_FILE / 1e6:.0f} are read")
    if kind == "dae":
        _check_collada(path)
    if kind not in trimesh.available_formats():
        raise MeshError(NO_DAE if kind == "dae" else f"{path.suffix or 'a file without ending'} is no known format")
    scene = trimesh.load_scene(str(path), file_type=kind, allow_remote=False)
    pieces = [_piece(mesh) for mesh in _geometries(scene)]
    count = sum(len(mesh.faces) for mesh, _, _ in pieces)
    if not count:
        raise MeshError("it holds no triangles")
    if count > MOST_TRIANGLES:
        raise MeshError(f"it has {count:,} triangles, at most {MOST_TRIANGLES:,} are drawn")
    textured = [mesh for mesh, _, own_look in pieces if own_look]
    return (*_plain_surfaces(pieces, scale), *(_textured_surface(mesh, scale) for mesh in textured))


def _geometries(scene: Mesh) -> Iterator[Mesh]:
    """The meshes of a trimesh Scene where they stand in it, in metres."""
    for mesh in scene.dump():
        if hasattr(mesh, "faces") and len(mesh.faces):
            factor = _metres(mesh.units)
            if factor != 1.0:
                mesh.apply_scale(factor)
            if not np.isfinite(mesh.vertices).all() or np.abs(mesh.vertices).max() > FARTHEST:
                raise MeshError(f"it has vertices that are not finite, or farther than {FARTHEST:g} m")
            if mesh.faces.min() < 0 or mesh.faces.max() >= len(mesh.vertices):
                raise MeshError("its triangles name vertices that it does not have")
            yield mesh


def _metres(units: str | None) -> float:
    """What COLLADA says of its unit: trimesh keeps it as "0.001 * meters", and leaves the numbers alone."""
    first = (units or "").partition("*")[0]
    try:
        factor = float(first)
    except ValueError:
        return 1.0
    return factor if 1e-9 < factor < 1e9 else 1.0


def _piece(mesh: Mesh) -> tuple[Mesh, Color | None, bool]:
    """A mesh, its colour if it has one, and whether it has a look of its own: a texture, or colours by vertex."""
    kind = mesh.visual.kind
    if kind in ("vertex", "face"):
        return mesh, None, True
    if kind == "texture":
        material = mesh.visual.material
        image = getattr(material, "image", None) or getattr(material, "baseColorTexture", None)
        if image is not None and mesh.visual.uv is not None:
            return mesh, None, True
        red, green, blue, opacity = (float(x) / 255.0 for x in material.main_color)
        return mesh, (red, green, blue, opacity if opacity > 0.0 else 1.0), False
    return mesh, None, False


def _plain_surfaces(pieces: list[Mesh], scale: Vector) -> tuple[Surface, ...]:
    by_color: dict[Color | None, list[Mesh]] = {}
    for mesh, color, own_look in pieces:
        if not own_look:
            by_color.setdefault(color, []).append(mesh)
    found = []
    for color, meshes in by_color.items():
        starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
        vertices = np.concatenate([np.asarray(mesh.vertices, dtype=float) for mesh in meshes]) * scale
        faces = np.concatenate([np.asarray(mesh.faces) + start for mesh, start in zip(meshes, starts, strict=False)])
        surface = creased(vertices, faces if np.prod(scale) > 0 else faces[:, ::-1])
        found.append(Surface(surface.vertices, surface.faces, color))
    return tuple(found)


def _textured_surface(mesh: Mesh, scale: Vector) -> Surface:
    copy = mesh.copy()
    copy.vertices = np.asarray(copy.vertices) * scale
    if np.prod(scale) < 0:
        copy.invert()
    glb = copy.export(file_type="glb")
    return Surface(np.asarray(copy.vertices, np.float32), np.asarray(copy.faces, np.uint32), glb=glb)


def _check_collada(path: Path) -> None:
    """COLLADA is XML; as everywhere else, one that declares entities is refused unread."""
    data = path.read_bytes()
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise MeshError("it declares a document type, which is refused")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings and log messages about what a mesh lacks: here it is drawn or it is not."""
    import warnings

    log = logging.getLogger("trimesh")
    before, log.disabled = log.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.disabled = before
