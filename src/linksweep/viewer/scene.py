"""A scene in the browser: robots at their placements, and arrows, cones, lines and solids.

Everything is in the world frame, in metres. Names are unique: an object added under a used name replaces the old one.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.model.model import BASE, Model
from linksweep.robot.robot import Robot, checked_robot
from linksweep.support.checks import one_of, real_array, real_number
from linksweep.support.messages import shown

from . import server as servers
from .geometry import (
    Color,
    Shape,
    Surface,
    Visual,
    as_color,
    as_placement,
    as_points,
    as_rgb,
    link_frames,
    matrix,
    neutral_poses,
    quaternion_wxyz,
    rigid,
    rotation_along,
    surface_of,
)
from .meshes import MeshLibrary
from .server import Handle
from .visuals import load_visuals, simple_bodies, size_of

if TYPE_CHECKING:
    from linksweep.functions.compiled import CompiledFunction

FORCE_COLOR = (0.84, 0.37, 0.0)
CONE_COLOR = (0.0, 0.62, 0.45)
DEFAULT_COLOR = (0.83, 0.84, 0.86)
MOST_ARROWS = 100_000
MOST_COMPILED = 60  # links: the poses of longer chains take minutes to compile, and little time to interpret
FIELD_OF_VIEW = np.deg2rad(38.0)
VIEWS = ("default", "front", "side", "top")  # camera presets
Bounds = tuple[np.ndarray, np.ndarray]  # lowest and highest x, y, z


class Scene:
    """A page with robots and other objects. `url` is its address; `close` ends it."""

    def __init__(
        self, *, host: str = servers.LOCAL, port: int | None = None, title: str = "linksweep", plain: bool = False
    ):
        """Start the server of the page.

        host: "127.0.0.1" for this machine only, "0.0.0.0" for every machine that can reach it. port: by default the
        first free one from 8080. plain: no shadows and simple light, for browsers without graphics hardware.
        """
        self.server = servers.start_server(host, port)
        self.server.gui.set_panel_label(title)
        self.lock = threading.RLock()
        self.robots: list[ShownRobot] = []
        self.meshes = MeshLibrary()
        self.closed = False
        self._bounds: Bounds | None = None  # what the camera presets show
        self.set_plain(plain)
        self.server.scene.world_axes.visible = False
        atexit.register(self.close)

    @property
    def url(self) -> str:
        """Address of the page."""
        return servers.address_of(self.server)

    def set_plain(self, plain: bool) -> None:
        """Turn shadows and environment light off, or on."""
        self.plain = plain
        api = self.server.scene
        api.configure_default_lights(enabled=True, cast_shadow=not plain)
        if plain:
            api.configure_environment_map(None)
            api.add_light_hemisphere("/light", sky_color=(255, 255, 255), ground_color=(150, 150, 160), intensity=1.6)
        else:
            api.configure_environment_map("studio", environment_intensity=0.18)
            api.remove_by_name("/light")

    # objects

    def add(
        self, robot: Robot, q: ArrayLike | None = None, placement: ArrayLike | None = None, *, name: str | None = None,
        color: Sequence[float] | None = None, opacity: float = 1.0, visuals: str | Path | None = None,
    ) -> ShownRobot:  # fmt: skip
        """Add a robot at the configuration q (default: neutral), with its base at `placement` (4, 4) in the world.

        color: (red, green, blue) from 0 to 1 instead of its own colours. visuals: a URDF or MJCF file with its shapes
        (default: the file that the robot was loaded from).
        """
        checked_robot(robot, "the viewer")
        with self.lock:
            at, opacity = as_placement(placement), real_number("opacity", opacity, at_least=0, at_most=1)
            added = ShownRobot(self, robot, self._unused(name or robot.name), at, color, opacity, visuals)
            added.move(robot.neutral() if q is None else q)
            self.robots.append(added)
        return added

    def arrows(
        self, name: str, points: ArrayLike, vectors: ArrayLike, *, color: Sequence[float] = FORCE_COLOR,
        scale: float = 1.0, radius: float | None = None,
    ) -> Handle:  # fmt: skip
        """Draw arrows from points (n, 3) along vectors (n, 3), `scale` metres for each unit of the vectors."""
        points, vectors = np.broadcast_arrays(as_points("points", points), as_points("vectors", vectors))
        if len(points) > MOST_ARROWS:
            raise ArgumentError(f"arrows got {len(points)} points, expected at most {MOST_ARROWS}.")
        radius = 0.006 * self.extent if radius is None else radius
        ends = np.stack([points, points + scale * vectors], axis=1)
        return self.server.scene.add_arrows(
            _item(name), ends, as_rgb(color), shaft_radius=radius, head_radius=2.4 * radius, head_length=5.0 * radius
        )

    def cones(
        self, name: str, points: ArrayLike, axes: ArrayLike, *, friction: ArrayLike | None = None,
        angle: ArrayLike | None = None, height: float = 0.1, color: Sequence[float] = CONE_COLOR,
        opacity: float = 0.35,
    ) -> list[Handle]:  # fmt: skip
        """Draw cones, such as friction cones, with apexes at points (n, 3) and axes (n, 3).

        Pass friction, one friction coefficient or n of them, or angle, the half opening angle in radians.
        """
        points, axes = np.broadcast_arrays(as_points("points", points), as_points("axes", axes))
        if (friction is None) == (angle is None):
            raise ArgumentError("cones got both or none of friction and angle, expected one of them.")
        tangents = np.asarray(friction if angle is None else np.tan(np.asarray(angle, dtype=float)), dtype=float)
        if not np.isfinite(tangents).all() or (tangents <= 0).any():
            raise ArgumentError(f"cones got friction or angle {shown(tangents.tolist())}, expected positive numbers.")
        tangents = np.broadcast_to(tangents, (len(points),))
        self.remove(name)
        self.server.scene.add_frame(_item(name), show_axes=False)
        handles = []
        for k, (point, axis, tangent) in enumerate(zip(points, axes, tangents, strict=True)):
            at, surface = rigid(point, rotation_along(axis)), _cone(height, height * tangent)
            handles.append(self.add_surface(f"{_item(name)}/{k}", surface, at, (*as_color(color)[:3], 1.0), opacity))
        return handles

    def lines(
        self, name: str, points: ArrayLike, *, color: Sequence[float] = (0.2, 0.2, 0.2), width: float = 2.0
    ) -> Handle:
        """Draw a line through points (n, 3), such as the path of a frame."""
        points = as_points("points", points)
        if len(points) < 2:
            raise ArgumentError(f"lines got {len(points)} points, expected at least two.")
        segments = np.stack([points[:-1], points[1:]], axis=1)
        return self.server.scene.add_line_segments(_item(name), segments, as_rgb(color), thickness=width)

    def solid(
        self,
        name: str,
        shape: Shape,
        placement: ArrayLike | None = None,
        *,
        color: Sequence[float] = DEFAULT_COLOR,
        opacity: float = 1.0,
    ) -> Handle:
        """Draw a shape (Box, Sphere, Cylinder, Capsule, Ellipsoid or Triangles) at a placement (4, 4)."""
        return self.add_surface(_item(name), surface_of(shape), as_placement(placement), as_color(color), opacity)

    def remove(self, name: str) -> None:
        """Remove the object with this name, if there is one."""
        self.server.scene.remove_by_name(_item(name))

    def add_surface(self, name: str, surface: Surface, at: np.ndarray, color: Color, opacity: float = 1.0) -> Handle:
        """Add a surface as a node of the page."""
        pose = {"position": at[:3, 3], "wxyz": quaternion_wxyz(at[:3, :3])}
        if surface.glb is not None and opacity >= 0.999:
            return self.server.scene.add_glb(name, surface.glb, **pose)
        return self.server.scene.add_mesh_simple(
            name, surface.vertices, surface.faces, color=as_rgb(color[:3]), opacity=_opacity(opacity * color[3]),
            side="double", **pose,
        )  # fmt: skip

    # camera

    @property
    def extent(self) -> float:
        """Extent of the largest robot (m)."""
        return max((robot.extent for robot in self.robots), default=1.0)

    def frame_camera(self, bounds: Sequence[Bounds] = ()) -> None:
        """Point the camera of new pages at all robots, and draw a ground plane below them.

        bounds: lowest and highest x, y, z of further regions to show, such as other times of a motion.
        """
        if not self.robots:
            return
        bounds = [*bounds, *(robot.bounds() for robot in self.robots)]
        low, high = np.min([b[0] for b in bounds], axis=0), np.max([b[1] for b in bounds], axis=0)
        self._bounds = low, high
        up, _ = default_view(self.robots[0].model)
        self.server.scene.set_up_direction(tuple(up))
        radius = max(0.5 * float(np.linalg.norm(high - low)), 1e-3)
        camera = self.server.initial_camera
        camera.fov, camera.up = FIELD_OF_VIEW, tuple(up)
        camera.near, camera.far = 0.005 * radius, 400.0 * radius
        camera.position, camera.look_at = self._camera("default", low, high)
        height = min(0.0, float(low @ up) if (up >= 0).all() else float(min(low @ up, high @ up)))
        self._draw_ground(up, 0.5 * (low + high), height, radius)

    def set_view(self, view: str) -> None:
        """Move the cameras of all open pages to a preset: "default", "front", "side" or "top"."""
        one_of("view", view, VIEWS)
        if self._bounds is None:
            self.frame_camera()
        if self._bounds is None:
            return
        position, look_at = self._camera(view, *self._bounds)
        for client in self.server.get_clients().values():
            with client.atomic():
                client.camera.up_direction = default_view(self.robots[0].model)[0]
                client.camera.position = position
                client.camera.look_at = look_at  # last: moving a camera moves this point too

    def _camera(self, view: str, low: np.ndarray, high: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return position and target of a camera that sees a box from the direction of a preset."""
        up, direction = default_view(self.robots[0].model)
        if view != "default":
            front = _horizontal(np.array([1.0, 0.0, 0.0]), up)
            # a camera exactly above has no horizontal direction
            directions = {"front": front, "side": np.cross(front, up), "top": up + 1e-3 * front}
            direction = directions[view] / np.linalg.norm(directions[view])
        middle = 0.5 * (low + high)
        distance = viewing_distance(low, high, direction, up, FIELD_OF_VIEW)
        return tuple(middle + direction * distance), tuple(middle)

    def _draw_ground(self, up: np.ndarray, middle: np.ndarray, height: float, radius: float) -> None:
        cell = 10.0 ** np.floor(np.log10(radius))
        cell = cell / 2 if radius / cell < 3 else cell
        self.server.scene.add_grid(
            "/ground", infinite_grid=True, cell_size=cell, section_size=5 * cell,
            position=tuple(middle - up * (middle @ up - height)), wxyz=quaternion_wxyz(rotation_along(up)),
            cell_color=(222, 224, 228), section_color=(190, 194, 200), fade_distance=12.0 * radius, fade_strength=1.4,
            shadow_opacity=0.22,
        )  # fmt: skip

    # the page

    def close(self) -> None:
        """Close the page and its server."""
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
        return iframe(self.url)

    def __repr__(self) -> str:
        return f"<Scene at {self.url}: {', '.join(robot.name for robot in self.robots) or 'empty'}>"

    def _unused(self, name: str) -> str:
        """Return the name, with a number if another robot has it."""
        used = {robot.name for robot in self.robots}
        base = candidate = _node_name(name)
        number = 1
        while candidate in used:
            number += 1
            candidate = f"{base} {number}"
        return candidate


class ShownRobot:
    """A robot in a scene. Assign `q` to move it, and `placement` (4, 4) to move its base.

    The page has a node for each link, at the pose of the frame with the link's name; shapes are fixed to the nodes.
    """

    def __init__(
        self,
        scene: Scene,
        robot: Robot,
        name: str,
        placement: np.ndarray,
        color: Sequence[float] | None,
        opacity: float,
        visuals: str | Path | None,
    ):
        self.scene, self.robot, self.name = scene, robot, name
        self.model: Model = robot.model
        self.full = robot.uncoupled
        self.extent, self.size = size_of(self.model)
        self.opacity = opacity
        self.poses = np.zeros((len(self.model.frames), 4, 4))
        self._q = robot.neutral()
        self._compiled_poses: CompiledFunction | None = None
        self.frame_index = {frame.name: k for k, frame in enumerate(self.model.frames)}
        self.link_names = {BASE: self.model.base, **{k: link.name for k, link in enumerate(self.model.links)}}
        self.to_body = {k: np.linalg.inv(pose) for k, pose in link_frames(self.model).items()}
        self.root = scene.server.scene.add_frame(f"/robots/{name}", show_axes=False)
        self.placement = placement
        self.nodes: dict[int, Handle] = {}
        for index, link in self.link_names.items():
            self.nodes[index] = scene.server.scene.add_frame(self.node(link), show_axes=False)
        self._rows = [self.frame_index[link] for link in self.link_names.values()]
        self.shapes: list[tuple[Handle, float]] = []  # with the opacity of their own colour
        self.corners: list[tuple[int, np.ndarray]] = []  # bounding boxes of the shapes, in their links' frames
        self._add_shapes(color, visuals)

    @property
    def q(self) -> np.ndarray:
        """Configuration (nq,)."""
        return self._q.copy()

    @q.setter
    def q(self, q: ArrayLike) -> None:
        self.move(q)

    def move(self, q: ArrayLike) -> None:
        """Move the robot to the configuration q (nq,)."""
        q = real_array(f"the viewer: q of {self.robot.name}", q, (self.robot.nq,), finite=True, dtype=float)
        self._q = q.copy()
        if self._compiled_poses is None:
            backend = "interpreter" if len(self.model.links) > MOST_COMPILED else None
            self._compiled_poses = self.full.compile("poses", backend=backend)
        self.poses = poses = self._compiled_poses(self.robot.expand(q))
        quaternions = quaternion_wxyz(poses[self._rows, :3, :3])
        with self.scene.server.atomic():
            place_all(self.scene.server, list(self.nodes.values()), poses[self._rows, :3, 3], quaternions)

    @property
    def placement(self) -> np.ndarray:
        """Pose (4, 4) of the robot's base in the world."""
        return self._placement.copy()

    @placement.setter
    def placement(self, placement: np.ndarray) -> None:
        self._placement = placement
        place(self.root, placement[:3, 3], quaternion_wxyz(placement[:3, :3]))

    def world(self, frame: str) -> np.ndarray:
        """Return the pose (4, 4) of a frame in the world."""
        return self._placement @ self.poses[self.frame_index[frame]]

    def body(self, link: int) -> np.ndarray:
        """Return the pose (4, 4) of a link's body frame in the robot's base."""
        return self.poses[self.frame_index[self.link_names[link]]] @ self.to_body[link]

    def node(self, link: str) -> str:
        """Return the name of a link's node in the page."""
        return f"/robots/{self.name}/links/{_node_name(link)}"

    def remove(self) -> None:
        """Remove the robot from the scene."""
        self.root.remove()
        self.scene.robots = [other for other in self.scene.robots if other is not self]

    def set_opacity(self, opacity: float) -> None:
        """Set the opacity of the robot, from 0 to 1 (opaque). Textured meshes stay as they are."""
        self.opacity = opacity
        for handle, own in self.shapes:
            if hasattr(handle, "opacity"):
                handle.opacity = _opacity(opacity * own)

    def bounds(self) -> Bounds:
        """Return the lowest and the highest x, y, z of all shapes and frames in the world."""
        points = [frame[:3, 3][None] for frame in self.poses]
        for link, corners in self.corners:
            pose = self.poses[self.frame_index[self.link_names[link]]]
            points.append(corners @ pose[:3, :3].T + pose[:3, 3])
        world = np.concatenate(points) @ self._placement[:3, :3].T + self._placement[:3, 3]
        return world.min(axis=0), world.max(axis=0)

    def _add_shapes(self, color: Sequence[float] | None, visuals: str | Path | None) -> None:
        loaded = load_visuals(self.model, visuals, self.scene.meshes)
        link_of = {frame.name: frame.link for frame in self.model.frames}
        pieces = list(loaded.surfaces)
        # a robot without any shapes is drawn with simple bodies, others where a shape cannot be loaded
        bare = {link_of[name] for name in loaded.incomplete} if pieces else set(self.link_names)
        pieces += [(visual, (surface_of(visual.shape),)) for visual in simple_bodies(self.model, bare)]
        tint = None if color is None else as_color(color)
        for number, (visual, surfaces) in enumerate(pieces):
            link = link_of[visual.frame]
            frame = self.model.frames[self.frame_index[visual.frame]]
            at = self.to_body[link] @ matrix(frame.placement) @ visual.at
            for part, surface in enumerate(surfaces):
                self._add_surface(f"{self.node(self.link_names[link])}/shape{number}.{part}", surface, visual, at, tint)
                low, high = surface.vertices.min(axis=0), surface.vertices.max(axis=0)
                box = np.array(list(product(*zip(low, high, strict=True))))
                self.corners.append((link, box @ at[:3, :3].T + at[:3, 3]))

    def _add_surface(self, name: str, surface: Surface, visual: Visual, at: np.ndarray, tint: Color | None) -> None:
        color = tint or surface.color or visual.color or (*DEFAULT_COLOR, 1.0)
        if tint is not None:
            surface = Surface(surface.vertices, surface.faces)
        handle = self.scene.add_surface(name, surface, at, color, self.opacity)
        self.shapes.append((handle, color[3]))


def place(node: Handle, position: np.ndarray, wxyz: np.ndarray) -> None:
    """Move a node of the page. viser by itself drops changes below 1e-5 of the present pose."""
    node.position.fill(np.nan)
    node.wxyz.fill(np.nan)
    node.position, node.wxyz = position, wxyz


def place_all(server: Handle, nodes: list[Handle], positions: np.ndarray, wxyzs: np.ndarray) -> None:
    """Move many nodes with the messages that `place` sends in the end: a seventh of the time for 33 links.

    The messages are private to viser (`benchmarks/viewer.py` measures the gain). If another version of viser does not
    have them, each node is moved by `place`.
    """
    try:
        from viser._messages import SetOrientationMessage, SetPositionMessage  # pyright: ignore[reportMissingImports]

        queue = server.scene._queue_scene_message
    except (ImportError, AttributeError):
        for node, position, wxyz in zip(nodes, positions, wxyzs, strict=True):
            place(node, position, wxyz)
        return
    for node, position, wxyz in zip(nodes, positions.tolist(), wxyzs.tolist(), strict=True):
        node.position[:], node.wxyz[:] = position, wxyz
        queue(SetPositionMessage(node.name, tuple(position)))
        queue(SetOrientationMessage(node.name, tuple(wxyz)))


def default_view(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return the up direction, against gravity, and the direction from the robot to the camera.

    A planar arm is seen face on, other robots from the front, the right and above.
    """
    gravity = np.array(model.gravity, dtype=float)
    size = float(np.linalg.norm(gravity))
    up = -gravity / size if size > 0 else np.array([0.0, 0.0, 1.0])
    if all(link.joint.type.commutes for link in model.links):
        poses = neutral_poses(model)
        axes = np.array([poses[k][:3, :3] @ np.array(link.joint.axis) for k, link in enumerate(model.links)])
        if len(axes) and (np.abs(axes @ axes[0]) > 0.999).all() and abs(axes[0] @ up) < 0.1:
            return up, axes[0] * np.sign(axes[0].sum() or 1.0)
    front = _horizontal(np.array([1.0, 0.0, 0.0]), up)
    direction = front - 0.75 * np.cross(up, front) + 0.5 * up
    return up, direction / np.linalg.norm(direction)


def _horizontal(direction: np.ndarray, up: np.ndarray) -> np.ndarray:
    """Return the horizontal part of a direction, or of y if the direction is nearly vertical, with length 1."""
    direction = direction if abs(direction @ up) < 0.9 else np.roll(direction, 1)
    direction = direction - up * (up @ direction)
    return direction / np.linalg.norm(direction)


def viewing_distance(low: np.ndarray, high: np.ndarray, direction: np.ndarray, up: np.ndarray, fov: float) -> float:
    """Return the distance from the center of a box at which a camera sees all of it, with some margin."""
    half = 0.5 * (high - low)
    corners = half * np.array(list(product((-1, 1), repeat=3)))
    right = np.cross(up, direction)
    right = right / np.linalg.norm(right)
    above = np.cross(direction, right)
    across = np.maximum(np.abs(corners @ right), np.abs(corners @ above))  # as if the page were square
    return max(float((corners @ direction + across / (0.86 * np.tan(0.5 * fov))).max()), 1e-3)


def iframe(url: str, height: int = 480) -> str:
    """Return HTML that shows the page inside a notebook."""
    return f'<iframe src="{url}" width="100%" height="{height}" style="border:1px solid #ddd"></iframe>'


def _node_name(name: str) -> str:
    """Return a name for a node of the page, where slashes would separate levels."""
    return name.replace("/", "∕").strip() or "robot"


def _item(name: str) -> str:
    """Return the node of an object that a user adds, separate from robots, ground and light."""
    return f"/items/{_node_name(name)}"


def _opacity(opacity: float) -> float | None:
    """Return an opacity as viser takes it: None for opaque."""
    return None if opacity >= 0.999 else opacity


def _cone(height: float, radius: float, around: int = 32) -> Surface:
    angles = 2 * np.pi * np.arange(around) / around
    ring = np.column_stack([radius * np.cos(angles), radius * np.sin(angles), np.full(around, height)])
    vertices = np.concatenate([np.zeros((1, 3)), ring]).astype(np.float32)
    k = np.arange(around)
    faces = np.column_stack([np.zeros(around, dtype=np.int64), 1 + k, 1 + (k + 1) % around])
    return Surface(vertices, faces.astype(np.uint32))
