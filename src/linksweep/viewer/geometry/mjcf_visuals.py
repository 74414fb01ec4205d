"""The shapes of an MJCF file, from the model that MuJoCo compiles of it (extra `mjcf`).

As in MuJoCo's own viewer the geoms of groups 0, 1 and 2 are drawn; where a file has none of these, all are.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np

from linksweep.errors import DescriptionError
from linksweep.formats.mujoco_names import MjModel, MuJoCo, body_names

from .matrices import moved
from .shapes import Box, Capsule, Color, Cylinder, Ellipsoid, Shape, Sphere, Triangles, Visual

SHOWN_GROUPS = (0, 1, 2)
DEFAULT_COLOR = (0.5, 0.5, 0.5, 1.0)  # of a geom that says nothing: then its material's counts


def mjcf_visuals(path: Path) -> list[Visual]:
    """Every geom but planes and height fields, by the body to which it is fixed."""
    try:
        mujoco: MuJoCo = import_module("mujoco")
    except ImportError:
        return []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(lambda text: None)  # what it has to say, it said when the robot was read
    try:
        compiled = mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, RuntimeError, MemoryError, mujoco.FatalError) as error:
        raise DescriptionError(f"{path}: MuJoCo cannot compile it ({str(error)[:200]}): correct the file.") from None
    finally:
        mujoco.set_mju_user_warning(before)
    drawn = [geom for geom in range(compiled.ngeom) if compiled.geom_group[geom] in SHOWN_GROUPS]
    bodies = body_names(compiled)
    found = []
    for geom in drawn or range(compiled.ngeom):
        shape, color = _shape(mujoco, compiled, geom), _color(compiled, geom)
        if shape is not None and color[3] > 0.0:
            w, x, y, z = compiled.geom_quat[geom]
            at = moved(compiled.geom_pos[geom], _rotation(w, x, y, z))
            found.append(Visual(bodies[int(compiled.geom_bodyid[geom])], shape, at, color))
    return found


def _shape(mujoco: MuJoCo, compiled: MjModel, geom: int) -> Shape | None:
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


def _color(compiled: MjModel, geom: int) -> Color:
    own, material = compiled.geom_rgba[geom], int(compiled.geom_matid[geom])
    if material >= 0 and np.allclose(own, DEFAULT_COLOR):
        own = compiled.mat_rgba[material]
    red, green, blue, opacity = (float(x) for x in own)
    return (red, green, blue, opacity)


def _rotation(w: float, x: float, y: float, z: float) -> np.ndarray:
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
