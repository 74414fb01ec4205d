"""A robot in a scene: a node for each link, with the pose of the frame that bears its name, and shapes fixed to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.description.model import BASE, Model
from linksweep.errors import ArgumentError
from linksweep.plots.channels import described

from .checks import as_color, as_numbers, node_name
from .geometry import Surface, Visual, drawn_bodies, looks_of, matrix, quaternion_wxyz, size_of
from .geometry.matrices import inverse, named_frames
from .geometry.shapes import Color, surface_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from linksweep.compiled.function import CompiledFunction
    from linksweep.robot.robot import Robot

    from .scene import Scene
    from .server import Handle

MOST_COMPILED = 60  # links
DEFAULT_COLOR = (0.83, 0.84, 0.86)


class ShownRobot:
    """A robot in a scene. Assign `q` to move it, `placement` (4, 4) to put its base elsewhere."""

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
        self.model: Model = described(robot)
        self.full = robot.uncoupled
        self.extent, self.size = size_of(self.model)
        self.opacity = opacity
        self.poses = np.zeros((len(self.model.frames), 4, 4))
        self._q = robot.neutral()
        self._poses_of: CompiledFunction | None = None
        self.frame_index = {frame.name: k for k, frame in enumerate(self.model.frames)}
        self.link_names = {BASE: self.model.base, **{k: link.name for k, link in enumerate(self.model.links)}}
        self.to_body = {k: inverse(pose) for k, pose in named_frames(self.model).items()}
        self.root = scene.server.scene.add_frame(f"/robots/{name}", show_axes=False)
        self.placement = placement
        self.nodes: dict[int, Handle] = {}
        for index, link in self.link_names.items():
            self.nodes[index] = scene.server.scene.add_frame(self.node(link), show_axes=False)
        self._rows = [self.frame_index[name] for name in self.link_names.values()]
        self.shapes: list[tuple[Handle, float]] = []
        self.corners: list[tuple[int, np.ndarray]] = []  # of the boxes around shapes, in their links' frames
        self._add_shapes(color, visuals)

    # where it stands

    @property
    def q(self) -> np.ndarray:
        return self._q.copy()

    @q.setter
    def q(self, q: ArrayLike) -> None:
        self.move(q)

    def move(self, q: ArrayLike) -> None:
        """Stand at q (nq,), which must be finite."""
        q = as_numbers("q", q)
        if q.shape != (self.robot.nq,) or not np.isfinite(q).all():
            raise ArgumentError(
                f"the viewer got q of shape {q.shape} for {self.robot.name}, expected {self.robot.nq} finite numbers: "
                f"one configuration."
            )
        self._q = q.copy()
        full = self.robot.expand(q)
        if self._poses_of is None:
            # the poses of a long chain take minutes to compile, and a moment to interpret
            backend = "interpreter" if len(self.model.links) > MOST_COMPILED else None
            self._poses_of = self.full.compile("poses", backend=backend)
        poses = self._poses_of(full)
        self.poses = poses
        quaternions = quaternion_wxyz(poses[self._rows, :3, :3])
        with self.scene.server.atomic():
            place_all(self.scene.server, list(self.nodes.values()), poses[self._rows, :3, 3], quaternions)

    @property
    def placement(self) -> np.ndarray:
        return self._placement.copy()

    @placement.setter
    def placement(self, placement: np.ndarray) -> None:
        self._placement = placement
        place(self.root, placement[:3, 3], quaternion_wxyz(placement[:3, :3]))

    def world(self, frame: str) -> np.ndarray:
        """The pose (4, 4) of a frame in the scene's world."""
        return self._placement @ self.poses[self.frame_index[frame]]

    def body(self, link: int) -> np.ndarray:
        """The pose (4, 4) of a link's body frame in the robot's base."""
        return self.poses[self.frame_index[self.link_names[link]]] @ self.to_body[link]

    def node(self, link: str) -> str:
        """The name of a link's node in the page."""
        return f"/robots/{self.name}/links/{node_name(link)}"

    def remove(self) -> None:
        """Take the robot out of the scene."""
        self.root.remove()
        self.scene.robots = [other for other in self.scene.robots if other is not self]

    def set_opacity(self, opacity: float) -> None:
        """How much of what is behind and inside is hidden: 1 all of it. Textured meshes stay as they are."""
        self.opacity = opacity
        for handle, own in self.shapes:
            if hasattr(handle, "opacity"):
                handle.opacity = None if opacity * own >= 0.999 else opacity * own

    # how it looks

    def _add_shapes(self, color: Sequence[float] | None, visuals: str | Path | None) -> None:
        looks = looks_of(self.model, visuals, self.scene.meshes)
        carried = {frame.name: frame.link for frame in self.model.frames}
        pieces = list(looks.surfaces)
        seen = {carried[visual.frame] for visual, _ in pieces}
        bare = set(self.link_names) - seen if not pieces else {carried[name] for name in looks.lacking}
        pieces += [(visual, (surface_of(visual.shape),)) for visual in drawn_bodies(self.model, bare)]
        tint = None if color is None else as_color(color)
        for number, (visual, surfaces) in enumerate(pieces):
            link = carried[visual.frame]
            frame = self.model.frames[self.frame_index[visual.frame]]
            at = self.to_body[link] @ matrix(frame.placement) @ visual.at
            for part, surface in enumerate(surfaces):
                self._add_surface(f"{self.node(self.link_names[link])}/shape{number}.{part}", surface, visual, at, tint)
                low, high = surface.vertices.min(axis=0), surface.vertices.max(axis=0)
                box = np.array(
                    [[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])]
                )
                self.corners.append((link, box @ at[:3, :3].T + at[:3, 3]))

    def _add_surface(self, name: str, surface: Surface, visual: Visual, at: np.ndarray, tint: Color | None) -> None:
        color = tint or surface.color or visual.color or (*DEFAULT_COLOR, 1.0)
        if tint is not None:
            surface = Surface(surface.vertices, surface.faces)
        handle = self.scene.add_surface(name, surface, at, color, self.opacity)
        self.shapes.append((handle, color[3]))

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest x, y, z of everything drawn, in the world."""
        found = [frame[:3, 3][None] for frame in self.poses]
        for link, corners in self.corners:
            pose = self.poses[self.frame_index[self.link_names[link]]]
            found.append(corners @ pose[:3, :3].T + pose[:3, 3])
        points = np.concatenate(found) @ self._placement[:3, :3].T + self._placement[:3, 3]
        return points.min(axis=0), points.max(axis=0)


def place(node: Handle, position: np.ndarray, wxyz: np.ndarray) -> None:
    """Move a node of the page, however little: viser itself drops changes below 1e-5 of where the node stands."""
    node.position.fill(np.nan)
    node.wxyz.fill(np.nan)
    node.position, node.wxyz = position, wxyz


def place_all(server: Handle, nodes: list[Handle], positions: np.ndarray, wxyzs: np.ndarray) -> None:
    """`place` for many nodes, by the messages that it would send in the end: a seventh of the time for 33 links.

    These are viser's own affair (`benchmarks/viewer.py` shows why they are used all the same); where another version
    has none, every node is placed on its own.
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
