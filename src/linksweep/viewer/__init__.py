"""Robots in the browser, with viser (extra `viewer`): configurations, motions, live simulations, several robots.

`show` and `show_run` implement `robot.show` and `run.show`. `Scene` is for custom scenes: robots at their placements,
arrows, cones, lines and solids.
"""

from .app import Viewer, show, show_run
from .geometry import Box, Capsule, Cylinder, Ellipsoid, Sphere, Triangles
from .overlays import LAYERS
from .scene import Scene, ShownRobot

__all__ = [
    "LAYERS",
    "Box",
    "Capsule",
    "Cylinder",
    "Ellipsoid",
    "Scene",
    "ShownRobot",
    "Sphere",
    "Triangles",
    "Viewer",
    "show",
    "show_run",
]
