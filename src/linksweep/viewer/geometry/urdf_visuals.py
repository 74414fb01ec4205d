"""The shapes of a URDF: <visual>, or where the file has none at all, <collision>.

The file was accepted when the robot was read; what is wrong with a shape only keeps that shape from being drawn.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from linksweep.description.model import Vector
from linksweep.formats.urdf import rotation_from_quaternion, rotation_from_rpy
from linksweep.formats.xml import Element

from .matrices import moved
from .shapes import Box, Capsule, Color, Cylinder, MeshFile, Shape, Sphere, Visual


def urdf_visuals(root: Element) -> list[Visual]:
    """Every shape below the <robot> element, in the order of the file."""
    materials = {
        element.attributes["name"]: color
        for element in root.all("material")
        if "name" in element.attributes and (color := _own_color(element)) is not None
    }
    return list(_shapes(root, "visual", materials)) or list(_shapes(root, "collision", materials))


def _shapes(root: Element, tag: str, materials: dict[str, Color]) -> Iterator[Visual]:
    for link in root.all("link"):
        for element in link.all(tag):
            for geometry in element.all("geometry"):
                for child in geometry.children:
                    shape = _shape(child)
                    if shape is not None:
                        yield Visual(
                            link.attributes.get("name", ""), shape, _origin(element), _color(element, materials)
                        )


def _shape(element: Element) -> Shape | None:
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
        turned = (
            rotation_from_quaternion(*quaternion) if any(quaternion) else rotation_from_rpy(*rpy or (0.0, 0.0, 0.0))
        )
        xyz = _numbers(origin, "xyz", 3) or (0.0, 0.0, 0.0)
        return moved(xyz, np.array(turned))
    return np.eye(4)


def _color(element: Element, materials: dict[str, Color]) -> Color | None:
    for material in element.all("material"):
        return _own_color(material) or materials.get(material.attributes.get("name", ""))
    return None


def _own_color(material: Element) -> Color | None:
    for color in material.all("color"):
        rgba = _numbers(color, "rgba", 4) or (*_numbers(color, "rgba", 3), 1.0)
        if len(rgba) == 4:
            red, green, blue, opacity = (min(max(x, 0.0), 1.0) for x in rgba)
            return (red, green, blue, opacity)
    return None


def _numbers(element: Element, key: str, count: int) -> tuple[float, ...]:
    """The numbers of an attribute, or none where they are not so many finite ones."""
    words = element.attributes.get(key, "").split()
    try:
        found = tuple(float(word) for word in words)
    except ValueError:
        return ()
    return found if len(found) == count and np.isfinite(found).all() else ()


def _vector(values: tuple[float, ...]) -> Vector:
    x, y, z = values
    return (x, y, z)
