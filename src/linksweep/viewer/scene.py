"""A scene in the browser: robots, each where it stands, and arrows, cones, lines and solids beside them.

Everything is in the world's frame, in metres. Names are unique: what is added under a name that is taken replaces it.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.robot.robot import Robot, checked_robot
from linksweep.support.messages import shown

from . import server as servers
from .camera import distance_to_see, first_view
from .checks import as_color, as_placement, as_rgb, as_rows, as_share, node_name
from .geometry import MeshLibrary, Surface, quaternion_wxyz
from .geometry.matrices import turned_to
from .geometry.shapes import Color, Shape, surface_of
from .shown_robot import DEFAULT_COLOR, ShownRobot

if TYPE_CHECKING:
    from pathlib import Path

    from .server import Handle

FORCE_COLOR = (0.84, 0.37, 0.0)
CONE_COLOR = (0.0, 0.62, 0.45)
MOST_ARROWS = 100_000


class Scene:
    """A page with robots and what acts on them. `url` is where it is; `close` ends it."""

    def __init__(
        self, *, host: str = servers.LOCAL, port: int | None = None, title: str = "linksweep", plain: bool = False
    ):
        """host: "127.0.0.1" for this machine alone, "0.0.0.0" for everybody. plain: no shadows and simple light, for
        pages without graphics hardware."""
        self.server = servers.start_server(host, port)
        self.server.gui.set_panel_label(title)
        self.lock = threading.RLock()
        self.robots: list[ShownRobot] = []
        self.meshes = MeshLibrary()
        self.closed = False
        self._grid: Handle = None
        self.set_plain(plain)
        self.server.scene.world_axes.visible = False
        atexit.register(self.close)

    @property
    def url(self) -> str:
        return servers.address_of(self.server)

    def set_plain(self, plain: bool) -> None:
        """Draw without shadows and with simple light, or with both."""
        self.plain = plain
        api = self.server.scene
        api.configure_default_lights(enabled=True, cast_shadow=not plain)
        if plain:
            api.configure_environment_map(None)
            api.add_light_hemisphere("/light", sky_color=(255, 255, 255), ground_color=(150, 150, 160), intensity=1.6)
        else:
            api.configure_environment_map("studio", environment_intensity=0.18)
            api.remove_by_name("/light")

    def add(
        self, robot: Robot, q: ArrayLike | None = None, placement: ArrayLike | None = None, *, name: str | None = None,
        color: Sequence[float] | None = None, opacity: float = 1.0, visuals: str | Path | None = None,
    ) -> ShownRobot:  # fmt: skip
        """Put a robot into the scene, at q (neutral if not given), its base at `placement` (4, 4) in the world.

        color: (red, green, blue) from 0 to 1 in the place of its own. visuals: a URDF or MJCF file with its shapes,
        if not the one it was read from.
        """
        checked_robot(robot, "the viewer")
        with self.lock:
            at, share = as_placement(placement), as_share("opacity", opacity)
            added = ShownRobot(self, robot, self._unused(name or robot.name), at, color, share, visuals)
            added.move(robot.neutral() if q is None else q)
            self.robots.append(added)
        return added

    def arrows(
        self, name: str, points: ArrayLike, vectors: ArrayLike, *, color: Sequence[float] = FORCE_COLOR,
        scale: float = 1.0, radius: float | None = None,
    ) -> Handle:  # fmt: skip
        """Arrows from points (n, 3) along vectors (n, 3), `scale` metres for each unit; 0 < n, or none are drawn."""
        points, vectors = as_rows("points", points), as_rows("vectors", vectors)
        points, vectors = np.broadcast_arrays(points, vectors)
        if len(points) > MOST_ARROWS:
            raise ArgumentError(f"arrows got {len(points)} of them, expected at most {MOST_ARROWS}.")
        thick = 0.006 * self.extent if radius is None else radius
        ends = np.stack([points, points + scale * vectors], axis=1)
        return self.server.scene.add_arrows(
            item(name),
            ends,
            as_rgb(color),
            shaft_radius=thick,
            head_radius=2.4 * thick,
            head_length=5.0 * thick,
        )

    def cones(
        self, name: str, points: ArrayLike, axes: ArrayLike, *, friction: ArrayLike | None = None,
        angle: ArrayLike | None = None, height: float = 0.1, color: Sequence[float] = CONE_COLOR,
        opacity: float = 0.35,
    ) -> list[Handle]:  # fmt: skip
        """Cones with their tips at points (n, 3), open along axes (n, 3).

        friction: a coefficient or n of them, the tangent of half the opening; or angle: half the opening in radians.
        """
        points, axes = as_rows("points", points), as_rows("axes", axes)
        points, axes = np.broadcast_arrays(points, axes)
        if (friction is None) == (angle is None):
            raise ArgumentError("cones got both or none of friction and angle, expected one of them.")
        slopes = np.asarray(friction if angle is None else np.tan(np.asarray(angle, dtype=float)), dtype=float)
        if not np.isfinite(slopes).all() or (slopes <= 0).any():
            raise ArgumentError(f"cones got friction or angle {shown(slopes.tolist())}, expected positive numbers.")
        slopes = np.broadcast_to(slopes, (len(points),))
        self.remove(name)
        self.server.scene.add_frame(item(name), show_axes=False)
        found = []
        for k, (point, axis, slope) in enumerate(zip(points, axes, slopes, strict=True)):
            at = np.eye(4)
            at[:3, :3], at[:3, 3] = turned_to(axis), point
            surface = _cone(height, height * slope)
            found.append(self.add_surface(f"{item(name)}/{k}", surface, at, (*as_color(color)[:3], 1.0), opacity))
        return found

    def lines(
        self, name: str, points: ArrayLike, *, color: Sequence[float] = (0.2, 0.2, 0.2), width: float = 2.0
    ) -> Handle:
        """A line through points (n, 3), such as the path of a frame."""
        points = as_rows("points", points)
        if len(points) < 2:
            raise ArgumentError(f"lines got {len(points)} points, expected at least two.")
        segments = np.stack([points[:-1], points[1:]], axis=1)
        return self.server.scene.add_line_segments(item(name), segments, as_rgb(color), thickness=width)

    def solid(
        self,
        name: str,
        shape: Shape,
        placement: ArrayLike | None = None,
        *,
        color: Sequence[float] = DEFAULT_COLOR,
        opacity: float = 1.0,
    ) -> Handle:
        """A solid of linksweep.viewer (Box, Sphere, Cylinder, Capsule, Ellipsoid, Triangles) at a placement (4, 4)."""
        return self.add_surface(item(name), surface_of(shape), as_placement(placement), as_color(color), opacity)

    def remove(self, name: str) -> None:
        """Take away what was added under a name; nothing happens where there is none."""
        self.server.scene.remove_by_name(item(name))

    def add_surface(self, name: str, surface: Surface, at: np.ndarray, color: Color, opacity: float = 1.0) -> Handle:
        """A surface as a node of the page."""
        where = {"position": at[:3, 3], "wxyz": quaternion_wxyz(at[:3, :3])}
        if surface.glb is not None and opacity >= 0.999:
            return self.server.scene.add_glb(name, surface.glb, **where)
        clear = None if opacity * color[3] >= 0.999 else opacity * color[3]
        return self.server.scene.add_mesh_simple(
            name, surface.vertices, surface.faces, color=as_rgb(color[:3]), opacity=clear, side="double", **where
        )

    @property
    def extent(self) -> float:
        """The size of the largest robot (m)."""
        return max((robot.extent for robot in self.robots), default=1.0)

    def frame_camera(self, bounds: Sequence[tuple[np.ndarray, np.ndarray]] = ()) -> None:
        """Let new pages see all robots from the front, above and the right; draw a ground below them.

        bounds: lowest and highest x, y, z of what else should be seen, such as other moments of a motion.
        """
        if not self.robots:
            return
        bounds = [*bounds, *(robot.bounds() for robot in self.robots)]
        low, high = np.min([b[0] for b in bounds], axis=0), np.max([b[1] for b in bounds], axis=0)
        up, direction = first_view(self.robots[0].model)
        self.server.scene.set_up_direction(tuple(up))
        middle, radius = 0.5 * (low + high), 0.5 * float(np.linalg.norm(high - low))
        camera = self.server.initial_camera
        camera.fov = np.deg2rad(38.0)
        camera.up = tuple(up)
        camera.look_at = tuple(middle)
        camera.position = tuple(middle + direction * distance_to_see(low, high, direction, up, camera.fov))
        camera.near, camera.far = 0.005 * max(radius, 1e-3), 400.0 * max(radius, 1e-3)
        ground = min(0.0, float(low @ up) if (up >= 0).all() else float(min(low @ up, high @ up)))
        self._draw_ground(up, middle, ground, radius)

    def _draw_ground(self, up: np.ndarray, middle: np.ndarray, height: float, radius: float) -> None:
        cell = 10.0 ** np.floor(np.log10(max(radius, 1e-6)))
        cell = cell / 2 if radius / cell < 3 else cell
        center = middle - up * (middle @ up - height)
        self._grid = self.server.scene.add_grid(
            "/ground", infinite_grid=True, cell_size=cell, section_size=5 * cell, position=tuple(center),
            wxyz=quaternion_wxyz(turned_to(up)), cell_color=(222, 224, 228), section_color=(190, 194, 200),
            fade_distance=12.0 * radius, fade_strength=1.4, shadow_opacity=0.22,
        )  # fmt: skip

    def close(self) -> None:
        """End the page and its server."""
        if self.closed:
            return
        self.closed = True
        atexit.unregister(self.close)
        with servers.quiet():
            self.server.stop()

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return embedded(self.url)

    def __repr__(self) -> str:
        return f"<Scene at {self.url}: {', '.join(robot.name for robot in self.robots) or 'empty'}>"

    def _unused(self, name: str) -> str:
        taken = {robot.name for robot in self.robots}
        wanted, number = node_name(name), 1
        found = wanted
        while found in taken:
            number += 1
            found = f"{wanted} {number}"
        return found


def embedded(url: str, height: int = 480) -> str:
    """The page inside a notebook."""
    return f'<iframe src="{url}" width="100%" height="{height}" style="border:1px solid #ddd"></iframe>'


def item(name: str) -> str:
    """The node of what users add, apart from robots, ground and light."""
    return f"/items/{node_name(name)}"


def _cone(height: float, radius: float, around: int = 32) -> Surface:
    angles = 2 * np.pi * np.arange(around) / around
    ring = np.column_stack([radius * np.cos(angles), radius * np.sin(angles), np.full(around, height)])
    vertices = np.concatenate([np.zeros((1, 3)), ring]).astype(np.float32)
    k = np.arange(around)
    faces = np.column_stack([np.zeros(around, dtype=np.int64), 1 + k, 1 + (k + 1) % around])
    return Surface(vertices, faces.astype(np.uint32))
