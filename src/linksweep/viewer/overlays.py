"""Layers drawn over a robot: frames, names, axes, centers of mass, inertias, manipulability, torques and forces.

Most layers are fixed to links and move with their nodes at no cost. The center of mass of the robot, the
manipulability ellipsoid, torques and forces depend on the state and are updated while they are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from linksweep.errors import ArgumentError
from linksweep.mechanism.canonical import aligning_rotation
from linksweep.model.model import Joint, tools
from linksweep.support.checks import Named, one_of, real_array
from linksweep.support.messages import nearest, shown

from .geometry import Surface, creased, quaternion_wxyz, rotation_along
from .scene import ShownRobot, place
from .server import Handle

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot

LAYERS = {
    "frames": "link frames",
    "names": "link names",
    "axes": "joint axes",
    "com": "centers of mass",
    "inertia": "inertia ellipsoids",
    "manipulability": "manipulability ellipsoid",
    "torques": "joint torques",
    "forces": "external forces",
}
INSIDE = ("com", "inertia")  # layers inside the links, which become transparent
TRANSPARENT = 0.35
_COM, _ROBOT_COM, _INERTIA, _MANIPULABILITY = (20, 20, 20), (204, 121, 167), (230, 159, 0), (0, 158, 115)
_AXIS, _TORQUE, _FORCE, _MOMENT = (60, 60, 60), (200, 30, 60), (213, 94, 0), (148, 0, 148)
LARGEST = 1e30  # N: squares of larger forces overflow in the page
_LONGEST = 0.3  # length of the longest arrow, relative to the robot's extent


class Overlays:
    """The layers of one robot, each on or off; `update` redraws those that depend on the robot's state."""

    def __init__(self, shown_robot: ShownRobot, frame: str | None = None):
        self.shown = shown_robot
        self.api = shown_robot.scene.server.scene
        self.frame = self.checked_frame(frame)
        self.on: set[str] = set()
        self.tau: np.ndarray | None = None
        self.forces: Mapping[str, np.ndarray] = {}
        self.largest_torque = self.largest_force = 0.0  # what the longest arrows represent; grows as needed
        self._fixed: dict[str, list[Handle]] = {}
        self._moving: dict[str, Handle] = {}

    def checked_frame(self, frame: str | None) -> str:
        """Return a frame's name, checked; by default the end effector, or the last frame."""
        names = [each.name for each in self.shown.model.frames]
        if frame is None:
            effectors = tools(self.shown.model)
            return effectors[0] if effectors else names[-1]
        if frame not in names:
            raise ArgumentError(
                f"the viewer: {self.shown.model.name} has no frame {shown(frame)}{nearest(frame, names)}, expected one "
                f"of robot.frame_names."
            )
        return frame

    def show(self, layer: str, on: bool = True) -> None:
        """Show or hide a layer."""
        one_of("layer", layer, LAYERS)
        (self.on.add if on else self.on.discard)(layer)
        draw: dict[str, Callable[[], list[Handle]]] = {
            "frames": self._draw_frames, "names": self._draw_names, "axes": self._draw_axes, "com": self._draw_coms,
            "inertia": self._draw_inertias,
        }  # fmt: skip
        if layer in draw:
            if on and layer not in self._fixed:
                self._fixed[layer] = draw[layer]()
            for handle in self._fixed.get(layer, ()):
                handle.visible = on
        if layer in INSIDE and on and self.shown.opacity > TRANSPARENT:
            self.shown.set_opacity(TRANSPARENT)
        for name, handle in list(self._moving.items()):
            if name.partition(" ")[0] == layer and not on:
                handle.remove()
                del self._moving[name]
        self.update()

    def update(self) -> None:
        """Redraw the layers that depend on the state of the robot."""
        if "com" in self.on:
            self._draw_robot_com()
        if "manipulability" in self.on:
            self._draw_manipulability()
        if "torques" in self.on:
            self._draw_torques()
        if "forces" in self.on:
            self._draw_forces()

    # layers fixed to links

    def _each_link(self) -> list[tuple[int, str]]:
        return [(index, self.shown.node(name)) for index, name in self.shown.link_names.items()]

    def _draw_frames(self) -> list[Handle]:
        size = self.shown.size
        return [
            self.api.add_frame(f"{node}/frame", axes_length=3.2 * size, axes_radius=0.13 * size)
            for _, node in self._each_link()
        ]

    def _draw_names(self) -> list[Handle]:
        return [
            self.api.add_label(
                f"{node}/name", self.shown.link_names[index], anchor="bottom-left", font_screen_scale=0.8
            )
            for index, node in self._each_link()
        ]

    def _draw_axes(self) -> list[Handle]:
        size, handles = self.shown.size, []
        for index, link in enumerate(self.shown.model.links):
            if link.joint.type.commutes:
                body = self.shown.to_body[index]
                axis = body[:3, :3] @ np.array(link.joint.axis, dtype=float)
                ends = body[:3, 3] + np.array([[-4.0], [4.0]]) * size * axis
                node = f"{self.shown.node(link.name)}/axis"
                handles.append(self._arrows(node, ends[None], _AXIS, 0.12 * size))
        return handles

    def _draw_coms(self) -> list[Handle]:
        masses = [float(link.inertial.mass) for link in self.shown.model.links]
        handles = []
        for index, mass in enumerate(masses):
            if mass > 0.0:
                node = self.shown.node(self.shown.link_names[index])
                radius = self.shown.size * (0.25 + 0.35 * np.cbrt(mass / max(masses)))
                handles.append(
                    self.api.add_icosphere(f"{node}/com", radius, _COM, cast_shadow=False, position=self._com(index))
                )
        return handles

    def _com(self, index: int) -> np.ndarray:
        body = self.shown.to_body[index]
        return body[:3, :3] @ np.array(self.shown.model.links[index].inertial.com, dtype=float) + body[:3, 3]

    def _draw_inertias(self) -> list[Handle]:
        """Draw for each link the homogeneous ellipsoid with its mass and inertia."""
        handles = []
        for index, link in enumerate(self.shown.model.links):
            radii, axes = inertia_ellipsoid(float(link.inertial.mass), np.array(link.inertial.inertia, dtype=float))
            if radii.max() <= 0.0:
                continue
            visible = np.maximum(radii, 0.04 * radii.max())  # rods and plates have radii of 0
            wxyz = quaternion_wxyz(self.shown.to_body[index][:3, :3] @ axes)
            handles.append(
                self.api.add_icosphere(
                    f"{self.shown.node(link.name)}/inertia", 1.0, _INERTIA, scale=tuple(visible), opacity=0.45,
                    position=self._com(index), wxyz=wxyz, cast_shadow=False,
                )
            )  # fmt: skip
        return handles

    # layers that depend on the state, in the robot's base frame

    def _node(self, what: str) -> str:
        return f"/robots/{self.shown.name}/layers/{what}"

    def _draw_robot_com(self) -> None:
        if not any(float(link.inertial.mass) > 0.0 for link in self.shown.model.links):
            return
        position = self.shown.full.center_of_mass(self.shown.robot.expand(self.shown.q))
        if "com robot" not in self._moving:
            self._moving["com robot"] = self.api.add_icosphere(
                self._node("center of mass"), 0.75 * self.shown.size, _ROBOT_COM, cast_shadow=False
            )
        place(self._moving["com robot"], position, np.array([1.0, 0.0, 0.0, 0.0]))

    def _draw_manipulability(self) -> None:
        """Draw the frame's velocities (m/s) for all joint velocities of norm 1, at 0.2 m for each m/s."""
        jacobian = self.shown.robot.jacobian(self.shown.q, self.frame)[3:]
        radii, axes = velocity_ellipsoid(jacobian)
        radii = 0.2 * radii
        if "manipulability" not in self._moving:
            self._moving["manipulability"] = self.api.add_icosphere(
                self._node("manipulability"), 1.0, _MANIPULABILITY, cast_shadow=False, opacity=0.4, subdivisions=4
            )
        handle = self._moving["manipulability"]
        handle.scale = tuple(float(x) for x in np.maximum(radii, 1e-3 * self.shown.extent))
        place(handle, self.shown.poses[self.shown.frame_index[self.frame], :3, 3], quaternion_wxyz(axes))

    def _draw_torques(self) -> None:
        """Draw an arc around the axis of each revolute joint, by the right-hand rule, and arrows along prismatic ones.

        Multi-DOF joints with rotation have an arc around their torque vector.
        """
        tau = self._gravity_torques() if self.tau is None else self.tau
        turns: list[tuple[np.ndarray, np.ndarray]] = []
        slides: list[tuple[np.ndarray, np.ndarray]] = []
        tau = self._full_torques(tau) if tau is not None and np.isfinite(tau).all() else np.zeros(self.shown.full.nv)
        q = self.shown.robot.expand(self.shown.q)
        canonical = self.shown.full.canonical.links
        for index, (link, slices) in enumerate(zip(self.shown.model.links, canonical, strict=True)):
            body = self.shown.body(index)
            local = _torque(link.joint, q[slices.coordinates], tau[slices.rates])
            (turns if slices.type.turns else slides).append((body[:3, 3], body[:3, :3] @ local))
        sizes = [float(np.linalg.norm(vector)) for _, vector in turns + slides]
        self.largest_torque = max([self.largest_torque, *sizes])
        self._draw_arcs(turns)
        scale = _LONGEST * self.shown.extent / (self.largest_torque or 1.0)
        self._draw_arrows("torques slides", [p for p, _ in slides], [scale * v for _, v in slides], _TORQUE)

    def _draw_arcs(self, turns: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Draw arcs as instances of one mesh, larger for larger torques; negligible torques have none."""
        if not turns:
            return
        positions, vectors = (np.array(rows) for rows in zip(*turns, strict=True))
        lengths = np.linalg.norm(vectors, axis=1)
        share = lengths / (self.largest_torque or 1.0)
        radius = max(1.35 * self.shown.size, 0.06 * self.shown.extent)
        directions = np.where(lengths[:, None] > 0.0, vectors, [0.0, 0.0, 1.0])
        arrays = {
            "batched_positions": positions.astype(np.float32),
            "batched_wxyzs": quaternion_wxyz(rotation_along(directions)).astype(np.float32),
            "batched_scales": np.where(share > 0.003, radius * (1.0 + 1.2 * share), 1e-9).astype(np.float32),
        }
        handle = self._moving.get("torques")
        if handle is None:
            arc = arc_arrow()
            self._moving["torques"] = self.api.add_batched_meshes_simple(
                self._node("torques"), arc.vertices, arc.faces, **arrays, batched_colors=_TORQUE
            )
            return
        for name, array in arrays.items():
            setattr(handle, name, array)

    def _gravity_torques(self) -> np.ndarray | None:
        """Return the torques that hold the robot at rest, shown if no others are known."""
        robot = self.shown.robot
        return robot.gravity_forces(self.shown.q) if self.shown.full.has_inertia else None

    def _full_torques(self, tau: np.ndarray) -> np.ndarray:
        """Return torques for all joints; of coupled joints, only the leader has one."""
        if len(tau) == self.shown.full.nv:
            return tau
        full, start, used = np.zeros(self.shown.full.nv), 0, 0
        leaders = set(self.shown.robot.joint_names)
        for index in self.shown.model.document_order:
            joint = self.shown.model.links[index].joint
            count = joint.type.nv
            if joint.name in leaders:
                full[start : start + count] = tau[used : used + count]
                used += count
            start += count
        return full

    def _draw_forces(self) -> None:
        positions, forces, moments = [], [], []
        for name, wrench in self.forces.items():
            if not np.isfinite(wrench).all():
                continue
            pose = self.shown.poses[self.shown.frame_index[name]]
            positions.append(pose[:3, 3])
            moments.append(pose[:3, :3] @ wrench[:3])
            forces.append(pose[:3, :3] @ wrench[3:])
        if not positions:
            return
        largest = max(float(np.linalg.norm(v, axis=1).max()) for v in (forces, moments))
        self.largest_force = max(self.largest_force, largest)
        scale = _LONGEST * self.shown.extent / (self.largest_force or 1.0)
        self._draw_arrows("forces", positions, [scale * v for v in forces], _FORCE)
        self._draw_arrows("forces moments", positions, [scale * v for v in moments], _MOMENT)

    def _draw_arrows(
        self, name: str, positions: Sequence[np.ndarray], vectors: Sequence[np.ndarray], color: tuple[int, int, int]
    ) -> None:
        radius = 0.28 * self.shown.size
        visible = [k for k, v in enumerate(vectors) if np.linalg.norm(v) > 0.5 * radius]
        ends = np.array([[positions[k], positions[k] + vectors[k]] for k in visible]).reshape(-1, 2, 3)
        handle = self._moving.get(name)
        if handle is None:
            if len(ends):
                self._moving[name] = self._arrows(self._node(name), ends, color, radius)
            return
        handle.visible = len(ends) > 0
        if len(ends):
            handle.points = ends.astype(np.float32)

    def _arrows(self, node: str, ends: np.ndarray, color: tuple[int, int, int], radius: float) -> Handle:
        return self.api.add_arrows(
            node, ends, color, shaft_radius=radius, head_radius=2.2 * radius, head_length=4.0 * radius
        )


def _torque(joint: Joint, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Return the torque of a joint's rotational DOF, or the force of a joint without them, in its link's frame."""
    kind = joint.type
    columns = kind.columns(kind.kept(q.tolist(), 0.0), joint.pitch)
    directions = [[*(column.angular if kind.turns else column.linear)] for column in columns]
    values = [float(x) if rate.turns == kind.turns else 0.0 for rate, x in zip(kind.rates, tau, strict=True)]
    return aligning_rotation(joint.axis) @ (np.array(values) @ np.array(directions))


def arc_arrow(turn: float = 1.5 * np.pi, around: int = 40, section: int = 8) -> Surface:
    """Return three quarters of a ring of radius 1 about z with an arrow head at its end."""
    angles = np.linspace(0.0, turn - 0.35, around)
    directions = np.stack([np.cos(angles), np.sin(angles), np.zeros(around)], axis=1)
    circle = 2 * np.pi * np.arange(section) / section
    up = np.array([0.0, 0.0, 1.0])
    radius = 0.075
    ring = (
        directions[:, None] * (1.0 + radius * np.cos(circle))[None, :, None]
        + radius * np.sin(circle)[None, :, None] * up
    )
    vertices = ring.reshape(-1, 3)
    i, j = np.meshgrid(np.arange(around - 1), np.arange(section), indexing="ij")
    a, b = (i * section + j).ravel(), (i * section + (j + 1) % section).ravel()
    faces = np.concatenate([np.column_stack([a, a + section, b]), np.column_stack([b, a + section, b + section])])
    tip = np.array([np.cos(turn), np.sin(turn), 0.0])
    end = directions[-1]
    rim = end * (1.0 + 0.2 * np.cos(circle))[:, None] + 0.2 * np.sin(circle)[:, None] * up
    first = len(vertices)
    k = np.arange(section)
    head = np.column_stack([first + k, np.full(section, first + section), first + (k + 1) % section])
    back = np.column_stack([first + k, first + (k + 1) % section, np.full(section, first + section + 1)])
    vertices = np.concatenate([vertices, rim, tip[None], end[None]])
    return creased(vertices, np.concatenate([faces, head, back]))


def inertia_ellipsoid(mass: float, inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return radii (3,) and axes (3, 3, columns) of the homogeneous ellipsoid with this mass and inertia.

    Its moments of inertia are m (b² + c²) / 5 and so on. Radii of inertias that no solid can have are 0.
    """
    if mass <= 0.0 or not np.isfinite(inertia).all():
        return np.zeros(3), np.eye(3)
    moments, axes = np.linalg.eigh(0.5 * (inertia + inertia.T))
    squares = 2.5 / mass * (moments.sum() - 2.0 * moments)
    return np.sqrt(np.maximum(squares, 0.0)), _right_handed(axes)


def velocity_ellipsoid(jacobian: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return radii and axes of the ellipsoid of velocities J qd (3, nv) over all qd of norm 1."""
    axes, radii, _ = np.linalg.svd(jacobian)
    return np.concatenate([radii, np.zeros(3 - len(radii))]), _right_handed(axes)


def _right_handed(axes: np.ndarray) -> np.ndarray:
    axes = axes.copy()
    if np.linalg.det(axes) < 0:
        axes[:, 2] = -axes[:, 2]
    return axes


def forces_by_frame(robot: Robot, f_ext: Named | None) -> dict[str, np.ndarray]:
    """Return external wrenches as {frame: (..., 6)}, from such a mapping or an array (..., links, 6)."""
    if f_ext is None:
        return {}
    if isinstance(f_ext, Mapping):
        frames = robot.frame_names
        for name in f_ext:
            if name not in frames:
                raise ArgumentError(f"f_ext: {robot.name} has no frame {shown(name)}{nearest(name, frames)}.")
        wrenches = {
            name: real_array(f"f_ext at {name!r}", value, (..., 6), dtype=float) for name, value in f_ext.items()
        }
    else:
        rows = real_array("f_ext", f_ext, (..., len(robot.link_names), 6), dtype=float)
        wrenches = {name: rows[..., k, :] for k, name in enumerate(robot.link_names)}
    for name, value in wrenches.items():
        if not (np.abs(value) < LARGEST).all():
            raise ArgumentError(f"f_ext at {name!r} is not finite, expected numbers below {LARGEST:g}.")
    return wrenches
