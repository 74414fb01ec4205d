"""The visual shapes of a robot, from its URDF or MJCF file.

A Model holds dynamics only, and the path of its file. Frames keep their names when a robot is edited. So the file is
read again here, and a shape is drawn on the frame of its name if the robot still has it. The file was accepted when
the robot was loaded; a shape with errors is not drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from linksweep.errors import DescriptionError, ModelWarning, warn_user
from linksweep.model.formats.files import Element, parse, read_bytes
from linksweep.model.formats.mjcf_compiled import MjModel, MuJoCo, body_names
from linksweep.model.model import Model, Vector

from .geometry import (
    Box,
    Capsule,
    Color,
    Cylinder,
    Ellipsoid,
    MeshFile,
    Shape,
    Sphere,
    Surface,
    Triangles,
    Visual,
    rigid,
    rotation_from_wxyz,
    surface_of,
)
from .meshes import MeshError, MeshLibrary, find_mesh, is_address

FARTHEST = 1e6  # metres
NOT_FOUND, TOO_FAR = "not found", "it extends farther than 1000 km"
SHOWN_GROUPS = (0, 1, 2)  # of MuJoCo geoms, as in MuJoCo's own viewer
DEFAULT_GEOM_COLOR = (0.5, 0.5, 0.5, 1.0)  # of a geom without a colour: its material's is used


@dataclass
class RobotVisuals:
    """The surfaces of a robot, each with its Visual, and the frames with a shape that cannot be drawn."""

    surfaces: list[tuple[Visual, tuple[Surface, ...]]] = field(default_factory=list)
    incomplete: set[str] = field(default_factory=set)
    problems: dict[str, str] = field(default_factory=dict)  # mesh -> reason

    @property
    def frames(self) -> set[str]:
        """Names of the frames with surfaces."""
        return {visual.frame for visual, _ in self.surfaces} - self.incomplete


def load_visuals(model: Model, source: str | Path | None, library: MeshLibrary) -> RobotVisuals:
    """Load the visuals of a robot from `source`, or from its own file; a single warning lists missing meshes."""
    loaded = RobotVisuals()
    path = Path(source or model.source) if source or model.source else None
    if path is None:
        return loaded
    try:
        visuals = read_visuals(path)
    except DescriptionError:
        if source:
            raise
        return loaded  # the file was deleted after the robot was loaded
    frames = {frame.name for frame in model.frames}
    for visual in visuals:
        if visual.frame not in frames:
            continue
        try:
            loaded.surfaces.append((visual, _surfaces(visual, path, library)))
        except MeshError as error:
            loaded.incomplete.add(visual.frame)
            name = visual.shape.filename if isinstance(visual.shape, MeshFile) else type(visual.shape).__name__
            loaded.problems[name] = str(error)
    loaded.surfaces = [
        (visual, surfaces) for visual, surfaces in loaded.surfaces if visual.frame not in loaded.incomplete
    ]
    if loaded.problems:
        warn_user(_warning(model.name, loaded.problems), ModelWarning)
    return loaded


def read_visuals(path: Path) -> Sequence[Visual]:
    """Return the shapes of a URDF or MJCF file; none for other files."""
    if path.suffix.lower() not in (".urdf", ".xml", ".mjcf"):
        return ()
    root = parse(read_bytes(path), str(path))
    return _mjcf_visuals(path) if root.tag == "mujoco" else _urdf_visuals(root)


def _surfaces(visual: Visual, description: Path, library: MeshLibrary) -> tuple[Surface, ...]:
    shape = visual.shape
    if not np.abs(visual.at).max() < FARTHEST:
        raise MeshError(TOO_FAR)
    if not isinstance(shape, MeshFile):
        with np.errstate(over="ignore"):
            surfaces: tuple[Surface, ...] = (surface_of(shape),)
    elif is_address(shape.filename):
        raise MeshError("remote files are not fetched")
    else:
        path = find_mesh(shape.filename, description)
        if path is None:
            raise MeshError(NOT_FOUND)
        surfaces = library.read(path, shape.scale)
    if not all(np.abs(surface.vertices).max(initial=0.0) < FARTHEST for surface in surfaces):
        raise MeshError(TOO_FAR)
    return surfaces


def _warning(robot: str, problems: dict[str, str]) -> str:
    """Return one sentence about all meshes that are not drawn."""
    missing = [name for name, reason in problems.items() if reason == NOT_FOUND]
    broken = [f"{name} ({reason})" for name, reason in problems.items() if reason != NOT_FOUND]
    parts = []
    if missing:
        parts.append(f"{len(missing)} mesh{'es' if len(missing) > 1 else ''} not found ({_some(missing)})")
    if broken:
        parts.append(f"{len(broken)} mesh{'es' if len(broken) > 1 else ''} unreadable ({_some(broken)})")
    advice = " Add the folder that contains the package to ROS_PACKAGE_PATH." if missing else ""
    return f"{robot}: {', '.join(parts)}; these links are drawn as simple bodies.{advice}"


def _some(names: list[str]) -> str:
    return ", ".join(names[:2]) + (", ..." if len(names) > 2 else "")


# ---- URDF ----------------------------------------------------------------------------------------------------------


def _urdf_visuals(root: Element) -> list[Visual]:
    """Return the <visual> shapes of the <robot> element, or its <collision> shapes if there are no visual ones."""
    materials = {
        element.attributes["name"]: color
        for element in root.all("material")
        if "name" in element.attributes and (color := _material_color(element)) is not None
    }
    return list(_urdf_shapes(root, "visual", materials)) or list(_urdf_shapes(root, "collision", materials))


def _urdf_shapes(root: Element, tag: str, materials: dict[str, Color]) -> Iterator[Visual]:
    for link in root.all("link"):
        for element in link.all(tag):
            for geometry in element.all("geometry"):
                for child in geometry.children:
                    shape = _urdf_shape(child)
                    if shape is not None:
                        yield Visual(
                            link.attributes.get("name", ""), shape, _origin(element), _urdf_color(element, materials)
                        )


def _urdf_shape(element: Element) -> Shape | None:
    radius, length = (_numbers(element, key, 1) for key in ("radius", "length"))
    if element.tag == "mesh":
        scale = _numbers(element, "scale", 3) or _numbers(element, "scale", 1) * 3 or (1.0, 1.0, 1.0)
        filename = element.attributes.get("filename", "")
        return MeshFile(filename, _vector(scale)) if filename and all(scale) else None
    if element.tag == "box":
        size = _numbers(element, "size", 3)
        return Box(_vector(size)) if size and min(size) > 0 else None
    if not radius or radius[0] <= 0:
        return None
    if element.tag == "sphere":
        return Sphere(radius[0])
    if length and length[0] > 0 and element.tag in ("cylinder", "capsule"):
        return (Cylinder if element.tag == "cylinder" else Capsule)(radius[0], length[0])
    return None


def _origin(element: Element) -> np.ndarray:
    for origin in element.all("origin"):
        rpy, quaternion = _numbers(origin, "rpy", 3), _numbers(origin, "quat_xyzw", 4)
        rotation = Rotation.from_quat(quaternion) if any(quaternion) else Rotation.from_euler("xyz", rpy or (0, 0, 0))
        return rigid(_numbers(origin, "xyz", 3) or (0.0, 0.0, 0.0), rotation.as_matrix())
    return np.eye(4)


def _urdf_color(element: Element, materials: dict[str, Color]) -> Color | None:
    for material in element.all("material"):
        return _material_color(material) or materials.get(material.attributes.get("name", ""))
    return None


def _material_color(material: Element) -> Color | None:
    for color in material.all("color"):
        rgba = _numbers(color, "rgba", 4) or (*_numbers(color, "rgba", 3), 1.0)
        if len(rgba) == 4:
            red, green, blue, opacity = (min(max(x, 0.0), 1.0) for x in rgba)
            return (red, green, blue, opacity)
    return None


def _numbers(element: Element, key: str, count: int) -> tuple[float, ...]:
    """Return the numbers of an attribute, or an empty tuple unless they are `count` finite ones."""
    words = element.attributes.get(key, "").split()
    try:
        numbers = tuple(float(word) for word in words)
    except ValueError:
        return ()
    return numbers if len(numbers) == count and np.isfinite(numbers).all() else ()


def _vector(values: tuple[float, ...]) -> Vector:
    x, y, z = values
    return (x, y, z)


# ---- MJCF ----------------------------------------------------------------------------------------------------------


def _mjcf_visuals(path: Path) -> list[Visual]:
    """Return the geoms of SHOWN_GROUPS, or all geoms if these are empty, except planes and height fields.

    MuJoCo (extra `mjcf`) compiles the file; without MuJoCo there are no visuals.
    """
    try:
        mujoco: MuJoCo = import_module("mujoco")
    except ImportError:
        return []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)  # warnings were reported when the robot was loaded
    try:
        compiled = mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, RuntimeError, MemoryError, mujoco.FatalError) as error:
        raise DescriptionError(f"{path}: MuJoCo cannot compile it ({str(error)[:200]}).") from None
    finally:
        mujoco.set_mju_user_warning(before)
    drawn = [geom for geom in range(compiled.ngeom) if compiled.geom_group[geom] in SHOWN_GROUPS]
    bodies = body_names(compiled)
    visuals = []
    for geom in drawn or range(compiled.ngeom):
        shape, color = _mjcf_shape(mujoco, compiled, geom), _mjcf_color(compiled, geom)
        if shape is not None and color[3] > 0.0:
            at = rigid(compiled.geom_pos[geom], rotation_from_wxyz(compiled.geom_quat[geom]))
            visuals.append(Visual(bodies[int(compiled.geom_bodyid[geom])], shape, at, color))
    return visuals


def _mjcf_shape(mujoco: MuJoCo, compiled: MjModel, geom: int) -> Shape | None:
    kinds, kind = mujoco.mjtGeom, int(compiled.geom_type[geom])
    a, b, c = (float(x) for x in compiled.geom_size[geom])
    if kind == kinds.mjGEOM_SPHERE:
        return Sphere(a)
    if kind == kinds.mjGEOM_CAPSULE:
        return Capsule(a, 2.0 * b)
    if kind == kinds.mjGEOM_CYLINDER:
        return Cylinder(a, 2.0 * b)
    if kind == kinds.mjGEOM_ELLIPSOID:
        return Ellipsoid((a, b, c))
    if kind == kinds.mjGEOM_BOX:
        return Box((2.0 * a, 2.0 * b, 2.0 * c))
    if kind != kinds.mjGEOM_MESH:
        return None
    mesh = int(compiled.geom_dataid[geom])
    vertices = slice(compiled.mesh_vertadr[mesh], compiled.mesh_vertadr[mesh] + compiled.mesh_vertnum[mesh])
    faces = slice(compiled.mesh_faceadr[mesh], compiled.mesh_faceadr[mesh] + compiled.mesh_facenum[mesh])
    return Triangles(np.array(compiled.mesh_vert[vertices], dtype=float), np.array(compiled.mesh_face[faces]))


def _mjcf_color(compiled: MjModel, geom: int) -> Color:
    rgba, material = compiled.geom_rgba[geom], int(compiled.geom_matid[geom])
    if material >= 0 and np.allclose(rgba, DEFAULT_GEOM_COLOR):
        rgba = compiled.mat_rgba[material]
    red, green, blue, opacity = (float(x) for x in rgba)
    return (red, green, blue, opacity)
