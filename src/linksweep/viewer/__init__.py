"""Robots in the browser, on viser (extra `viewer`): poses, motions, live simulations, and scenes of several robots.

`show` and `show_run` are behind `robot.show` and `run.show`. `Scene` is for pictures of one's own: robots at their
placements, arrows, cones, lines and solids.
"""

from .app import Viewer, show, show_run
from .geometry import Box, Capsule, Cylinder, Ellipsoid, Sphere, Triangles
from .overlays import LAYERS
from .scene import Scene
from .shown_robot import ShownRobot

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
