"""What links look like: shapes from the description's file, meshes from theirs, and drawn bodies for the rest."""

from .drawn import drawn_bodies, size_of
from .matrices import matrix, neutral_poses, quaternion_wxyz
from .meshes import MeshError, MeshLibrary
from .shapes import Box, Capsule, Cylinder, Ellipsoid, MeshFile, Sphere, Surface, Triangles, Visual
from .visuals import Looks, looks_of

__all__ = [
    "Box",
    "Capsule",
    "Cylinder",
    "Ellipsoid",
    "Looks",
    "MeshError",
    "MeshFile",
    "MeshLibrary",
    "Sphere",
    "Surface",
    "Triangles",
    "Visual",
    "drawn_bodies",
    "looks_of",
    "matrix",
    "neutral_poses",
    "quaternion_wxyz",
    "size_of",
]
