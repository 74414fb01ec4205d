"""The shapes of a robot: those of its URDF or MJCF file, or simple solid bodies for links without any.

A Model holds dynamics only, and the path of its file. Frames keep their names when a robot is edited. So the file is
read again here, and a shape is drawn on the frame of its name if the robot still has it. The file was accepted when
the robot was loaded; a shape with errors is not drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from linksweep.errors import DescriptionError, ModelWarning, warn_user
from linksweep.model.formats.files import Element, parse, read_bytes
from linksweep.model.formats.mjcf_compiled import MjModel, MuJoCo, body_names
from linksweep.model.model import BASE, Link, Model, Vector

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
    link_frames,
    matrix,
    neutral_poses,
    rigid,
    rotation_along,
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


# ---- simple bodies: capsules between joints, and a solid for each joint -------------------------------------------

LINK: Color = (0.86, 0.87, 0.89, 1.0)
PEDESTAL: Color = (0.35, 0.37, 0.40, 1.0)
REVOLUTE: Color = (0.20, 0.47, 0.70, 1.0)
PRISMATIC: Color = (0.90, 0.60, 0.10, 1.0)
OTHER: Color = (0.50, 0.52, 0.55, 1.0)
SLIMMEST = 0.55  # thickness of the last link of a long chain, relative to the base
ARM_LINKS, ARM_BULK = 10, 1.3  # robots with so few links have thicker ones


def size_of(model: Model) -> tuple[float, float]:
    """Return the extent of a robot in its neutral configuration (m), and a unit of thickness that suits it (m)."""
    poses = neutral_poses(model)
    points = [pose[:3, 3] for pose in poses.values()]
    points += [(poses[frame.link] @ matrix(frame.placement))[:3, 3] for frame in model.frames]
    extent = float(np.linalg.norm(np.ptp(np.array(points), axis=0))) or 1.0
    return extent, extent * min(0.035, 0.09 / np.sqrt(len(model.links)))


def simple_bodies(model: Model, links: Iterable[int]) -> list[Visual]:
    """Return shapes for these links (BASE for the base), each fixed to the frame with the link's name."""
    extent, size = size_of(model)
    frames = link_frames(model)
    names = {BASE: model.base, **{index: link.name for index, link in enumerate(model.links)}}
    thickness = _thickness(model, size)
    visuals: list[Visual] = []
    for index in sorted(set(links)):
        to_frame = np.linalg.inv(frames[index])
        for visual in _body(model, index, extent, thickness):
            visuals.append(Visual(names[index], visual.shape, to_frame @ visual.at, visual.color))
    return visuals


def _thickness(model: Model, size: float) -> dict[int, float]:
    """Return the thickness of the base and of each link (m), which decreases along every branch."""
    depth = {BASE: 0}
    for index, link in enumerate(model.links):
        depth[index] = depth[link.parent] + 1
    deepest = max(depth.values())
    size *= ARM_BULK if len(model.links) <= ARM_LINKS else 1.0
    return {index: size * (1.0 - (1.0 - SLIMMEST) * depth[index] / max(deepest, 4)) for index in depth}


def _body(model: Model, index: int, extent: float, thickness: dict[int, float]) -> list[Visual]:
    """Return the shapes of one link in its body frame."""
    link = None if index == BASE else model.links[index]
    size = thickness[index]
    children = [k for k, each in enumerate(model.links) if each.parent == index]
    visuals: list[Visual] = []
    for k in children:
        joint = model.links[k].joint
        if not joint.type.attached:
            continue  # nothing connects a floating base with the ground
        at = matrix(joint.placement)
        axis = at[:3, :3] @ np.array(joint.axis, dtype=float)
        visuals += _capsules(_path(_axis(link), at[:3, 3], axis if joint.type.commutes else None), size)
        if joint.type.shape == "slider":
            guide = Box((2.6 * size, 2.6 * size, 4.0 * size))
            visuals.append(Visual("", guide, _along(at[:3, 3], axis), PRISMATIC))
        if index == BASE:
            visuals += _pedestal(at[:3, 3], axis, size)
    if link is not None:
        visuals += _joint(link, extent, size * _nesting(model, index, size))
        if not children:
            visuals += _tip(model, index, link, size)
    return visuals


def _pedestal(joint: np.ndarray, axis: np.ndarray, size: float) -> list[Visual]:
    """Return a flange and a column below the first joint, or at the base's origin if the joint is farther away."""
    near = np.linalg.norm(joint) < 2.0 * size
    direction = axis if near else joint / np.linalg.norm(joint)
    start = joint - direction * 2.9 * size if near else np.zeros(3)
    flange = Visual("", Cylinder(3.2 * size, 0.5 * size), _along(start + 0.25 * size * direction, direction), PEDESTAL)
    column = Visual("", Cylinder(1.9 * size, 1.4 * size), _along(start + 1.0 * size * direction, direction), PEDESTAL)
    return [flange, column]


def _nesting(model: Model, index: int, size: float) -> float:
    """Return how much slimmer a joint is than its link, because joints at one point, as in a wrist, intersect."""
    factor = 1.0
    while index != BASE and model.links[index].joint.type.shape == "drum":
        link = model.links[index]
        if link.parent == BASE or np.linalg.norm(np.array(link.joint.placement.position, dtype=float)) > 1.3 * size:
            break
        factor, index = 0.84 * factor, link.parent
    return max(factor, 0.4)


def _joint(link: Link, extent: float, size: float) -> list[Visual]:
    """Return the solid of the link's own joint, which moves with the link."""
    axis = np.array(link.joint.axis, dtype=float)
    shape = link.joint.type.shape
    if shape == "drum":
        return [Visual("", Cylinder(1.45 * size, 3.2 * size), _along(np.zeros(3), axis), REVOLUTE)]
    if shape == "slider":
        bounds = [abs(x) for x in (link.joint.limits.lower, link.joint.limits.upper) if np.isfinite(x)]
        length = (max(bounds) if bounds else 0.5 * extent) + 2.0 * size
        return [Visual("", Capsule(0.7 * size, length), _along(-0.5 * length * axis, axis), LINK)]
    if shape == "box":
        return [Visual("", Box((2.4 * size, 2.4 * size, 1.2 * size)), np.eye(4), OTHER)]
    return [Visual("", Sphere(1.5 * size), np.eye(4), OTHER)]


def _tip(model: Model, index: int, link: Link, size: float) -> list[Visual]:
    """Return capsules from a leaf link's joint to its frames, or else to its center of mass."""
    tips = [
        np.array(frame.placement.position, dtype=float)
        for frame in model.frames
        if frame.link == index and frame.name != link.name
    ]
    if not tips and float(link.inertial.mass) > 0.0:
        tips = [np.array(link.inertial.com, dtype=float)]
    return [capsule for tip in tips for capsule in _capsules(_path(_axis(link), tip, None), size)]


def _axis(link: Link | None) -> np.ndarray | None:
    return np.array(link.joint.axis, dtype=float) if link is not None and link.joint.type.commutes else None


def _path(axis: np.ndarray | None, end: np.ndarray, next_axis: np.ndarray | None) -> list[np.ndarray]:
    """Return points from the origin to `end`, along the link's axis, the common normal, and the next axis."""
    start, reach = np.zeros(3), float(np.linalg.norm(end))
    if axis is None:
        return [start, end]
    if next_axis is None:
        return [start, axis * (axis @ end), end]
    across = np.cross(axis, next_axis)
    if across @ across < 1e-6:
        return [start, axis * (axis @ end), end]
    normal = across / (across @ across)
    first, second = float(np.cross(end, next_axis) @ normal), float(np.cross(end, axis) @ normal)
    if max(abs(first), abs(second)) > 1.5 * reach:  # nearly parallel axes meet far away
        return [start, end]
    return [start, axis * first, end + next_axis * second, end]


def _capsules(points: list[np.ndarray], size: float) -> list[Visual]:
    """Return a capsule along each segment of a path; segments too short to be seen are joined to the next one."""
    visuals = []
    last = points[0]
    for k, point in enumerate(points[1:], start=1):
        step = point - last
        length = float(np.linalg.norm(step))
        if length < 0.2 * size and k < len(points) - 1:
            continue
        if length > 1e-9:
            visuals.append(Visual("", Capsule(1.15 * size, length), _along(last + 0.5 * step, step), LINK))
        last = point
    return visuals


def _along(position: np.ndarray, direction: np.ndarray) -> np.ndarray:
    return rigid(position, rotation_along(direction))
