"""Meshes from files, through trimesh: STL, OBJ, COLLADA, PLY, glTF and OFF.

A mesh is never worth a crash: whatever is wrong with one is a `MeshError` with the reason, and the link is drawn as a
body instead. Files, triangles and the robot as a whole are bounded, and so is what a small file may become. Archives
are not read, COLLADA declares no entities, and nodes, accessors and images are counted before they are copied.
"""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from linksweep.description.model import Vector

from .shapes import Color, Surface, creased

Mesh = Any  # an object of trimesh: a mesh, a scene of them, a resolver
FORMATS = ("stl", "obj", "dae", "ply", "glb", "gltf", "off")  # no archives: .zip, .zae, .tar.gz, .3mf
LARGEST_FILE = 64_000_000  # bytes
MOST_TRIANGLES = 1_000_000  # of one mesh
MOST_ENTRIES = 24 * MOST_TRIANGLES  # of glTF: vertices, normals, indices ... of all primitives
MOST_PIXELS = 1 << 24  # of one image; four times as many of all images of a mesh
TEXT_ENCODINGS = ("utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "windows-1252")  # ASCII is ASCII
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
    if kind not in FORMATS:
        raise MeshError(f"{path.suffix or 'a file without ending'} is not read, expected .{', .'.join(FORMATS)}")
    if kind not in trimesh.available_formats():
        raise MeshError(NO_DAE if kind == "dae" else f"{path.suffix} cannot be read here")
    data = _read(path)
    if kind == "dae":
        _check_collada(data)
    elif kind in ("glb", "gltf"):
        _check_gltf(data)
    scene = trimesh.load_scene(io.BytesIO(data), file_type=kind, resolver=_beside(path), allow_remote=False)
    drawn = [scene.geometry.get(scene.graph[node][1]) for node in scene.graph.nodes_geometry]
    _check_count(sum(len(getattr(mesh, "faces", ())) for mesh in drawn))  # before each is copied
    pieces = [_piece(mesh) for mesh in _geometries(scene)]
    count = sum(len(mesh.faces) for mesh, _, _ in pieces)
    if not count:
        raise MeshError("it holds no triangles")
    _check_count(count)
    _check_images(pieces)
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


def _check_count(triangles: int) -> None:
    if triangles > MOST_TRIANGLES:
        raise MeshError(f"it has {triangles:,} triangles, at most {MOST_TRIANGLES:,} are drawn")


def _read(path: Path) -> bytes:
    """A regular file of bounded size."""
    if not path.is_file():
        raise MeshError("it is not a file")
    with path.open("rb") as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        size = path.stat().st_size
        raise MeshError(f"the file has {size / 1e6:.0f} MB, at most {LARGEST_FILE / 1e6:.0f} are read")
    return data


def _beside(path: Path) -> Mesh:
    """Finds files that a mesh names, such as textures: regular ones of bounded size in its folder or the one above."""
    from trimesh.resolvers import Resolver  # pyright: ignore[reportMissingImports]

    class Beside(Resolver):
        def __init__(self) -> None:
            pass

        def get(self, key: str) -> bytes:
            folder = path.parent.resolve()
            for name in (key.strip(), key.strip().lstrip("/"), Path(key).name):
                found = (folder / name).resolve()
                if found.is_file() and found.is_relative_to(folder.parent):
                    return _read(found)
            raise FileNotFoundError(key)

        def write(self, name: str, data: object) -> None:
            raise PermissionError(name)

        def namespaced(self, namespace: str) -> Mesh:
            return self

        def keys(self) -> list[str]:
            return []

    return Beside()


def _check_collada(data: bytes) -> None:
    """COLLADA is XML: text without entities, whose nodes do not multiply.

    Encodings in which a declaration would look otherwise are refused, and so are archives, for which pycollada looks
    first, even behind text.
    """
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    declared = re.match(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([^\"']*)", text)
    encoding = declared[1].decode("latin-1").lower() if declared else "utf-8"
    if not text.startswith(b"<") or b"\0" in data or encoding not in TEXT_ENCODINGS:
        raise MeshError("it is no XML in UTF-8")
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise MeshError("it declares a document type, which is refused")
    root = ElementTree.fromstring(data)
    nodes: dict[str, ElementTree.Element] = {}
    sizes: dict[str, int] = {}  # of geometries, in bytes of indices
    for element in root.iter():
        tag, name = element.tag.rpartition("}")[2], element.get("id", "")
        if tag == "node":
            nodes[name] = element
        elif tag == "geometry":
            sizes[name] = sum(len(each.text or "") for each in element.iter() if each.tag.rpartition("}")[2] == "p")
    known: dict[int, int] = {}  # what a node becomes, in bytes; 0 while it is looked at

    def expanded(element: ElementTree.Element) -> int:
        key = id(element)
        if key in known:
            if not known[key]:
                raise MeshError("its nodes contain themselves")
            return known[key]
        known[key] = 0
        total = 100
        for child in element:
            tag, url = child.tag.rpartition("}")[2], child.get("url", "").removeprefix("#")
            if tag == "node":
                total += expanded(child)
            elif tag == "instance_node" and url in nodes:
                total += expanded(nodes[url])
            elif tag in ("instance_geometry", "instance_controller"):
                total += 100 + sizes.get(url, max(sizes.values(), default=0))
        known[key] = total
        return total

    scenes = (element for element in root.iter() if element.tag.rpartition("}")[2] == "visual_scene")
    if sum(map(expanded, scenes)) > 2 * LARGEST_FILE:
        raise MeshError("its nodes repeat too many geometries")


def _check_gltf(data: bytes) -> None:
    """glTF may use an accessor many times, and need not store those of zeros: what all primitives use is bounded."""
    if data[:4] == b"glTF":
        data = data[20 : 20 + int.from_bytes(data[12:16], "little")]
    tree = json.loads(data)
    counts = [int(accessor["count"]) for accessor in tree.get("accessors", ())]
    total = 0
    for mesh in tree.get("meshes", ()):
        for primitive in mesh.get("primitives", ()):
            used = [*primitive.get("attributes", {}).values(), primitive.get("indices")]
            total += sum(counts[index] for index in used if index is not None)
    if total > MOST_ENTRIES or min(counts, default=0) < 0:
        raise MeshError(f"its primitives have {total:,} entries, at most {MOST_ENTRIES:,} are read")


def _check_images(pieces: list[Mesh]) -> None:
    images = {}
    for mesh, _, own_look in pieces:
        material = getattr(mesh.visual, "material", None) if own_look else None
        for value in vars(material).values() if material is not None else ():
            if hasattr(value, "width") and hasattr(value, "height"):
                images[id(value)] = value.width * value.height
    if sum(images.values()) > 4 * MOST_PIXELS:
        raise MeshError(f"its images have more than {4 * MOST_PIXELS:,} pixels")


@contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings and log messages about what a mesh lacks, and without images of more than MOST_PIXELS."""
    import warnings

    from PIL import Image

    log = logging.getLogger("trimesh")
    before, log.disabled = log.disabled, True
    pixels, Image.MAX_IMAGE_PIXELS = Image.MAX_IMAGE_PIXELS, MOST_PIXELS
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            yield
    finally:
        log.disabled, Image.MAX_IMAGE_PIXELS = before, pixels
