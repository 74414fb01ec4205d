"""Mesh files: find them, and read STL, OBJ, COLLADA, PLY, glTF and OFF with trimesh.

A robot model names a mesh by package://, file://, model://, or a path relative to the model's file. A package is
looked up in the folders of ROS_PACKAGE_PATH and AMENT_PREFIX_PATH, then from the folder of the model upward: a folder
with the package's name, a folder whose package.xml names it, and last, if a package was renamed, the rest of the path
alone. Nothing is fetched from a network.

Mesh files are untrusted. Any problem raises `MeshError`, and the link is drawn as a simple body instead. The sizes of
files, meshes and scenes are bounded, and so is the expansion of small files: archives are not read, COLLADA must not
declare entities, and nodes, accessors and images are counted before they are copied.
"""

from __future__ import annotations

import io
import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np

from linksweep.model.model import Vector

from .geometry import Color, Surface, creased

Mesh = Any  # an object of trimesh: a mesh, a scene, a resolver
FORMATS = ("stl", "obj", "dae", "ply", "glb", "gltf", "off")  # no archives: .zip, .zae, .tar.gz, .3mf
SCHEMES = ("package", "model", "file")
LARGEST_MANIFEST = 100_000  # bytes of a package.xml
LARGEST_FILE = 64_000_000  # bytes of a mesh or texture
MOST_TRIANGLES = 1_000_000  # in one mesh
MOST_ENTRIES = 24 * MOST_TRIANGLES  # of glTF accessors: vertices, normals, indices of all primitives
MOST_PIXELS = 1 << 24  # in one image; four times as many in all images of a mesh
TEXT_ENCODINGS = ("utf-8", "utf8", "us-ascii", "ascii", "iso-8859-1", "latin-1", "windows-1252")  # supersets of ASCII
MOST_IN_ALL = 4_000_000  # triangles in a scene: pages become slow beyond
FARTHEST = 1e6  # metres
NO_DAE = "COLLADA needs pycollada, which is not installed: pip install 'linksweep[viewer]'"


class MeshError(Exception):
    """A mesh that cannot be drawn; the message is a short reason."""


class MeshLibrary:
    """The meshes of a scene. Each file is read once, and the total number of triangles is bounded."""

    def __init__(self) -> None:
        self._results: dict[tuple[Path, Vector], tuple[Surface, ...] | MeshError] = {}
        self.triangles = 0

    def read(self, path: Path, scale: Vector = (1.0, 1.0, 1.0)) -> tuple[Surface, ...]:
        """Return the surfaces of a mesh, scaled; raises MeshError."""
        key = (path, scale)
        if key not in self._results:
            try:
                surfaces = read_mesh(path, scale)
                count = sum(len(surface.faces) for surface in surfaces)
                if self.triangles + count > MOST_IN_ALL:
                    raise MeshError(f"all meshes together have more than {MOST_IN_ALL:,} triangles")
                self.triangles += count
                self._results[key] = surfaces
            except MeshError as error:
                self._results[key] = error
        result = self._results[key]
        if isinstance(result, MeshError):
            raise result
        return result


def read_mesh(path: Path, scale: Vector = (1.0, 1.0, 1.0)) -> tuple[Surface, ...]:
    """Return the surfaces of a mesh file, one for each colour, textured ones as GLB; raises MeshError."""
    try:
        with _quiet():
            return _surfaces(path, scale)
    except MeshError:
        raise
    except Exception as error:  # readers of damaged files raise exceptions of any class
        reason = (str(error).splitlines() or ["unreadable"])[0][:80]
        raise MeshError(f"{type(error).__name__}: {reason}") from None


def _surfaces(path: Path, scale: Vector) -> tuple[Surface, ...]:
    import trimesh  # pyright: ignore[reportMissingImports]

    kind = path.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise MeshError(f"{path.suffix or 'a file without suffix'} is not supported, expected .{', .'.join(FORMATS)}")
    if kind not in trimesh.available_formats():
        raise MeshError(NO_DAE if kind == "dae" else f"trimesh cannot read {path.suffix} files in this installation")
    data = _read(path)
    if kind == "dae":
        _check_collada(data)
    elif kind in ("glb", "gltf"):
        _check_gltf(data)
    scene = trimesh.load_scene(io.BytesIO(data), file_type=kind, resolver=_resolver(path), allow_remote=False)
    drawn = [scene.geometry.get(scene.graph[node][1]) for node in scene.graph.nodes_geometry]
    _check_count(sum(len(getattr(mesh, "faces", ())) for mesh in drawn))  # before each is copied
    pieces = [_piece(mesh) for mesh in _geometries(scene)]
    count = sum(len(mesh.faces) for mesh, _, _ in pieces)
    if not count:
        raise MeshError("it contains no triangles")
    _check_count(count)
    _check_images(pieces)
    textured = [mesh for mesh, _, is_textured in pieces if is_textured]
    return (*_plain_surfaces(pieces, scale), *(_textured_surface(mesh, scale) for mesh in textured))


def _geometries(scene: Mesh) -> Iterator[Mesh]:
    """Yield the meshes of a trimesh Scene in its coordinates, in metres."""
    for mesh in scene.dump():
        if hasattr(mesh, "faces") and len(mesh.faces):
            factor = _metres(mesh.units)
            if factor != 1.0:
                mesh.apply_scale(factor)
            if not np.isfinite(mesh.vertices).all() or np.abs(mesh.vertices).max() > FARTHEST:
                raise MeshError(f"it has vertices that are not finite, or more than {FARTHEST:g} m away")
            if mesh.faces.min() < 0 or mesh.faces.max() >= len(mesh.vertices):
                raise MeshError("its triangles refer to vertices that do not exist")
            yield mesh


def _metres(units: str | None) -> float:
    """Return the unit of a COLLADA file in metres: trimesh stores it as "0.001 * meters" and does not apply it."""
    first = (units or "").partition("*")[0]
    try:
        factor = float(first)
    except ValueError:
        return 1.0
    return factor if 1e-9 < factor < 1e9 else 1.0


def _piece(mesh: Mesh) -> tuple[Mesh, Color | None, bool]:
    """Return a mesh, its colour if it has a single one, and whether it has a texture or a colour per vertex."""
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
    for mesh, color, is_textured in pieces:
        if not is_textured:
            by_color.setdefault(color, []).append(mesh)
    surfaces = []
    for color, meshes in by_color.items():
        starts = np.cumsum([0, *(len(mesh.vertices) for mesh in meshes)])
        vertices = np.concatenate([np.asarray(mesh.vertices, dtype=float) for mesh in meshes]) * scale
        faces = np.concatenate([np.asarray(mesh.faces) + start for mesh, start in zip(meshes, starts, strict=False)])
        surface = creased(vertices, faces if np.prod(scale) > 0 else faces[:, ::-1])
        surfaces.append(Surface(surface.vertices, surface.faces, color))
    return tuple(surfaces)


def _textured_surface(mesh: Mesh, scale: Vector) -> Surface:
    copy = mesh.copy()
    copy.vertices = np.asarray(copy.vertices) * scale
    if np.prod(scale) < 0:
        copy.invert()
    glb = copy.export(file_type="glb")
    return Surface(np.asarray(copy.vertices, np.float32), np.asarray(copy.faces, np.uint32), glb=glb)


def _check_count(triangles: int) -> None:
    if triangles > MOST_TRIANGLES:
        raise MeshError(f"it has {triangles:,} triangles, expected at most {MOST_TRIANGLES:,}")


def _read(path: Path) -> bytes:
    """Return the bytes of a regular file of bounded size."""
    if not path.is_file():
        raise MeshError("it is not a file")
    with path.open("rb") as file:
        data = file.read(LARGEST_FILE + 1)
    if len(data) > LARGEST_FILE:
        size = path.stat().st_size
        raise MeshError(f"the file has {size / 1e6:.0f} MB, expected at most {LARGEST_FILE / 1e6:.0f} MB")
    return data


def _resolver(path: Path) -> Mesh:
    """Return a trimesh resolver for files that a mesh names, such as textures.

    It reads only regular files of bounded size in the folder of the mesh or the one above.
    """
    from trimesh.resolvers import Resolver  # pyright: ignore[reportMissingImports]

    class FolderResolver(Resolver):
        def __init__(self) -> None:
            pass

        def get(self, key: str) -> bytes:
            folder = path.parent.resolve()
            for name in (key.strip(), key.strip().lstrip("/"), Path(key).name):
                file = (folder / name).resolve()
                if file.is_file() and file.is_relative_to(folder.parent):
                    return _read(file)
            raise FileNotFoundError(key)

        def write(self, name: str, data: object) -> None:
            raise PermissionError(name)

        def namespaced(self, namespace: str) -> Mesh:
            return self

        def keys(self) -> list[str]:
            return []

    return FolderResolver()


def _check_collada(data: bytes) -> None:
    """Raise unless a COLLADA file is XML without entities whose nodes do not multiply geometries.

    Encodings that could hide a declaration raise, and so do archives, which pycollada would open even after text.
    """
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    declared = re.match(rb"<\?xml[^>]*?encoding\s*=\s*[\"']([^\"']*)", text)
    encoding = declared[1].decode("latin-1").lower() if declared else "utf-8"
    if not text.startswith(b"<") or b"\0" in data or encoding not in TEXT_ENCODINGS:
        raise MeshError("it is not XML in UTF-8")
    if b"<!DOCTYPE" in data or b"<!ENTITY" in data:
        raise MeshError("it declares a document type, which is not allowed")
    root = ElementTree.fromstring(data)
    nodes: dict[str, ElementTree.Element] = {}
    sizes: dict[str, int] = {}  # of geometries, in bytes of their indices
    for element in root.iter():
        tag, name = element.tag.rpartition("}")[2], element.get("id", "")
        if tag == "node":
            nodes[name] = element
        elif tag == "geometry":
            sizes[name] = sum(len(each.text or "") for each in element.iter() if each.tag.rpartition("}")[2] == "p")
    expanded_sizes: dict[int, int] = {}  # of nodes, in bytes; 0 while a node is being expanded

    def expanded(element: ElementTree.Element) -> int:
        key = id(element)
        if key in expanded_sizes:
            if not expanded_sizes[key]:
                raise MeshError("its nodes contain themselves")
            return expanded_sizes[key]
        expanded_sizes[key] = 0
        total = 100
        for child in element:
            tag, url = child.tag.rpartition("}")[2], child.get("url", "").removeprefix("#")
            if tag == "node":
                total += expanded(child)
            elif tag == "instance_node" and url in nodes:
                total += expanded(nodes[url])
            elif tag in ("instance_geometry", "instance_controller"):
                total += 100 + sizes.get(url, max(sizes.values(), default=0))
        expanded_sizes[key] = total
        return total

    scenes = (element for element in root.iter() if element.tag.rpartition("}")[2] == "visual_scene")
    if sum(map(expanded, scenes)) > 2 * LARGEST_FILE:
        raise MeshError("its nodes repeat too many geometries")


def _check_gltf(data: bytes) -> None:
    """Raise if the primitives of a glTF file use too many entries: accessors can be shared, zeros are not stored."""
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
        raise MeshError(f"its primitives have {total:,} entries, expected at most {MOST_ENTRIES:,}")


def _check_images(pieces: list[Mesh]) -> None:
    images = {}
    for mesh, _, is_textured in pieces:
        material = getattr(mesh.visual, "material", None) if is_textured else None
        for value in vars(material).values() if material is not None else ():
            if hasattr(value, "width") and hasattr(value, "height"):
                images[id(value)] = value.width * value.height
    if sum(images.values()) > 4 * MOST_PIXELS:
        raise MeshError(f"its images have more than {4 * MOST_PIXELS:,} pixels")


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence warnings and log messages about meshes, and reject images with more than MOST_PIXELS."""
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


# ---- mesh files ----------------------------------------------------------------------------------------------------


def is_address(filename: str) -> bool:
    """Return whether a mesh is named by a remote address, such as https://."""
    scheme, separator, _ = filename.strip().partition("://")
    return bool(separator) and scheme.lower() not in SCHEMES


def find_mesh(filename: str, description: Path | None) -> Path | None:
    """Return the path of a mesh, or None if it does not exist. description: the file of the robot model."""
    for path in _candidates(filename, description):
        try:
            if path.is_file():
                return path
        except (OSError, ValueError):  # not a valid file name
            continue
    return None


def _candidates(filename: str, description: Path | None) -> Iterator[Path]:
    filename = filename.strip().replace("\\", "/")
    scheme, separator, rest = filename.partition("://")
    scheme = scheme.lower() if separator else ""
    if scheme and scheme not in SCHEMES:
        return
    folder = description.parent if description is not None else Path()
    if scheme == "file":
        rest = unquote(rest.removeprefix("localhost"))
        yield Path(rest) if rest.startswith("/") else folder / rest
        return
    if not scheme:
        yield Path(filename) if filename.startswith("/") else folder / filename
        return
    package, _, inside = unquote(rest).strip("/").partition("/")
    if not package or not inside:
        return
    for root in _package_roots(package, folder):
        yield root / inside
    for above in (folder, *folder.parents):
        yield above / inside


def _package_roots(package: str, folder: Path) -> Iterator[Path]:
    for entry in filter(None, os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)):
        path = Path(entry)
        yield path / package
        if _is_package(path, package):
            yield path
    for entry in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
        yield Path(entry) / "share" / package
    for above in (folder, *folder.parents):
        if _is_package(above, package):
            yield above
        yield above / package


def _is_package(folder: Path, package: str) -> bool:
    if folder.name == package:
        return True
    manifest = folder / "package.xml"
    try:
        if not manifest.is_file() or manifest.stat().st_size > LARGEST_MANIFEST:
            return False
        name = re.search(rb"<name>\s*([^<\s]+)\s*</name>", manifest.read_bytes())
    except OSError:
        return False
    return name is not None and name[1].decode("utf-8", "replace") == package
