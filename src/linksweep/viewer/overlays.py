"""What can be drawn over a robot: frames, names, axes, mass centres, inertias, manipulability, torques and forces.

Most of it is fixed to links and moves with their nodes, at no cost. Only the mass centre of the whole robot, the
ellipsoid at a frame, and torques and forces change from one moment to the next; they are drawn anew while shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from linksweep.description.model import BASE, Joint
from linksweep.description.tips import tools
from linksweep.errors import ArgumentError
from linksweep.mechanism.canonical import aligning_rotation
from linksweep.support.messages import is_one_of, nearest, shown

from .checks import as_numbers
from .geometry import Surface, matrix, quaternion_wxyz
from .geometry.matrices import turned_to
from .geometry.shapes import creased
from .shown_robot import ShownRobot, place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linksweep.robot.robot import Robot
    from linksweep.support.numbers import Named

    from .server import Handle

LAYERS = {
    "frames": "frames of the links",
    "names": "names of the links",
    "axes": "joint axes",
    "com": "mass centres",
    "inertia": "inertia ellipsoids",
    "manipulability": "manipulability ellipsoid",
    "torques": "joint torques",
    "forces": "external forces",
}
INSIDE = ("com", "inertia")  # these lie inside the links
SEE_THROUGH = 0.35
_COM, _WHOLE, _INERTIA, _MANIPULABILITY = (20, 20, 20), (204, 121, 167), (230, 159, 0), (0, 158, 115)
_AXIS, _TORQUE, _FORCE, _MOMENT = (60, 60, 60), (200, 30, 60), (213, 94, 0), (148, 0, 148)
LARGEST = 1e30  # N: beyond it squares leave the numbers of the page
_LONGEST = 0.3  # of the robot's extent: the longest arrow


class Overlays:
    """The layers of one robot, each on or off; `update` draws what changes with the robot's state."""

    def __init__(self, shown_robot: ShownRobot, frame: str | None = None):
        self.shown = shown_robot
        self.api = shown_robot.scene.server.scene
        self.frame = self.checked_frame(frame)
        self.on: set[str] = set()
        self.tau: np.ndarray | None = None
        self.forces: Mapping[str, np.ndarray] = {}
        self.largest_torque = self.largest_force = 0.0  # what the longest arrows stand for; grows if need be
        self._fixed: dict[str, list[Handle]] = {}
        self._moving: dict[str, Handle] = {}

    def checked_frame(self, frame: str | None) -> str:
        """A frame by name; if not given the end of the arm, or the last frame."""
        names = [each.name for each in self.shown.model.frames]
        if frame is None:
            ends = tools(self.shown.model)
            return ends[0] if ends else names[-1]
        if frame not in names:
            raise ArgumentError(
                f"the viewer: {self.shown.model.name} has no frame {shown(frame)}{nearest(frame, names)}: expected one "
                f"of robot.frame_names."
            )
        return frame

    def show(self, layer: str, on: bool = True) -> None:
        """Draw a layer, or take it away."""
        if not is_one_of(layer, LAYERS):
            raise ArgumentError(
                f"a layer is {shown(layer)}{nearest(layer, LAYERS)}, expected one of {', '.join(LAYERS)}."
            )
        (self.on.add if on else self.on.discard)(layer)
        makers: dict[str, Callable[[], list[Handle]]] = {
            "frames": self._frames, "names": self._names, "axes": self._axes, "com": self._coms,
            "inertia": self._inertias,
        }  # fmt: skip
        if layer in makers:
            if on and layer not in self._fixed:
                self._fixed[layer] = makers[layer]()
            for handle in self._fixed.get(layer, ()):
                handle.visible = on
        if layer in INSIDE and on and self.shown.opacity > SEE_THROUGH:
            self.shown.set_opacity(SEE_THROUGH)
        for name, handle in list(self._moving.items()):
            if name.partition(" ")[0] == layer and not on:
                handle.remove()
                del self._moving[name]
        self.update()

    def update(self) -> None:
        """Draw what changes with the state of the robot."""
        if "com" in self.on:
            self._whole_com()
        if "manipulability" in self.on:
            self._ellipsoid()
        if "torques" in self.on:
            self._torques()
        if "forces" in self.on:
            self._forces()

    # fixed to links

    def _each_link(self) -> list[tuple[int, str]]:
        return [(index, self.shown.node(name)) for index, name in self.shown.link_names.items()]

    def _frames(self) -> list[Handle]:
        size = self.shown.size
        found = []
        for _, node in self._each_link():
            found.append(self.api.add_frame(f"{node}/frame", axes_length=3.2 * size, axes_radius=0.13 * size))
        return found

    def _names(self) -> list[Handle]:
        return [
            self.api.add_label(
                f"{node}/name", self.shown.link_names[index], anchor="bottom-left", font_screen_scale=0.8
            )
            for index, node in self._each_link()
        ]

    def _axes(self) -> list[Handle]:
        size, found = self.shown.size, []
        for index, link in enumerate(self.shown.model.links):
            if link.joint.type.commutes:
                body = self.shown.to_body[index]
                axis = body[:3, :3] @ np.array(link.joint.axis, dtype=float)
                ends = body[:3, 3] + np.array([[-4.0], [4.0]]) * size * axis
                node = f"{self.shown.node(link.name)}/axis"
                found.append(self._arrows(node, ends[None], _AXIS, 0.12 * size))
        return found

    def _coms(self) -> list[Handle]:
        masses = [float(link.inertial.mass) for link in self.shown.model.links]
        found = []
        for index, mass in enumerate(masses):
            if mass > 0.0:
                node = self.shown.node(self.shown.link_names[index])
                radius = self.shown.size * (0.25 + 0.35 * np.cbrt(mass / max(masses)))
                found.append(
                    self.api.add_icosphere(f"{node}/com", radius, _COM, cast_shadow=False, position=self._com(index))
                )
        return found

    def _com(self, index: int) -> np.ndarray:
        body = self.shown.to_body[index]
        return body[:3, :3] @ np.array(self.shown.model.links[index].inertial.com, dtype=float) + body[:3, 3]

    def _inertias(self) -> list[Handle]:
        """Of each link the solid ellipsoid of even density that has its mass and its inertia."""
        found = []
        for index, link in enumerate(self.shown.model.links):
            radii, axes = inertia_ellipsoid(float(link.inertial.mass), np.array(link.inertial.inertia, dtype=float))
            if radii.max() <= 0.0:
                continue
            thin = np.maximum(radii, 0.04 * radii.max())  # rods and plates stay visible
            wxyz = quaternion_wxyz(self.shown.to_body[index][:3, :3] @ axes)
            found.append(
                self.api.add_icosphere(
                    f"{self.shown.node(link.name)}/inertia", 1.0, _INERTIA, scale=tuple(thin), opacity=0.45,
                    position=self._com(index), wxyz=wxyz, cast_shadow=False,
                )
            )  # fmt: skip
        return found

    # from moment to moment, in the robot's base frame

    def _node(self, what: str) -> str:
        return f"/robots/{self.shown.name}/layers/{what}"

    def _whole_com(self) -> None:
        robot = self.shown.full
        if not any(float(link.inertial.mass) > 0.0 for link in self.shown.model.links):
            return
        q = self.shown.q
        at = robot.center_of_mass(self.shown.robot.expand(q))
        if "com whole" not in self._moving:
            self._moving["com whole"] = self.api.add_icosphere(
                self._node("mass centre"), 0.75 * self.shown.size, _WHOLE, cast_shadow=False
            )
        place(self._moving["com whole"], at, np.array([1.0, 0.0, 0.0, 0.0]))

    def _ellipsoid(self) -> None:
        """Where the frame's velocity ends for all joint rates of length 1, drawn at a fifth of the robot's size."""
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

    def _torques(self) -> None:
        """An arc around the axis of each joint that turns, by the right hand's rule; an arrow along one that slides.

        Of multi-DOF joints the turning part is drawn, around its vector.
        """
        tau = self._holding() if self.tau is None else self.tau
        usable = tau is not None and np.isfinite(tau).all()
        turns: list[tuple[np.ndarray, np.ndarray]] = []
        slides: list[tuple[np.ndarray, np.ndarray]] = []
        tau = np.zeros(self.shown.full.nv) if tau is None or not usable else self._spread(tau)
        q = self.shown.robot.expand(self.shown.q) if hasattr(self.shown.robot, "expand") else self.shown.q
        for index, (link, own) in enumerate(zip(self.shown.model.links, self.shown.full.canonical.links, strict=True)):
            body, kind = self.shown.body(index), own.type
            local = _torque(link.joint, q[own.coordinates], tau[own.rates])
            (turns if kind.turns else slides).append((body[:3, 3], body[:3, :3] @ local))
        sizes = [float(np.linalg.norm(vector)) for _, vector in turns + slides]
        self.largest_torque = max([self.largest_torque, *sizes])
        self._draw_arcs(turns)
        scale = _LONGEST * self.shown.extent / (self.largest_torque or 1.0)
        self._draw_arrows("torques slides", [p for p, _ in slides], [scale * v for _, v in slides], _TORQUE)

    def _draw_arcs(self, turns: list[tuple[np.ndarray, np.ndarray]]) -> None:
        """Arcs as copies of one mesh: larger for larger torques, and none where there is next to nothing."""
        if not turns:
            return
        places, vectors = (np.array(rows) for rows in zip(*turns, strict=True))
        lengths = np.linalg.norm(vectors, axis=1)
        share = lengths / (self.largest_torque or 1.0)
        radius = max(1.35 * self.shown.size, 0.06 * self.shown.extent)
        ways = np.where(lengths[:, None] > 0.0, vectors, [0.0, 0.0, 1.0])
        arrays = {
            "batched_positions": places.astype(np.float32),
            "batched_wxyzs": quaternion_wxyz(turned_to(ways)).astype(np.float32),
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

    def _holding(self) -> np.ndarray | None:
        """Without a motion: the torques that hold the robot still."""
        robot = self.shown.robot
        return robot.gravity_forces(self.shown.q) if self.shown.full.has_inertia else None

    def _spread(self, tau: np.ndarray) -> np.ndarray:
        """Torques of the full robot; of one whose joints are coupled, each at the joint that leads."""
        if len(tau) == self.shown.full.nv:
            return tau
        spread, start, taken = np.zeros(self.shown.full.nv), 0, 0
        leaders = set(self.shown.robot.joint_names)
        for index in self.shown.model.document_order:
            joint = self.shown.model.links[index].joint
            count = joint.type.nv
            if joint.name in leaders:
                spread[start : start + count] = tau[taken : taken + count]
                taken += count
            start += count
        return spread

    def _forces(self) -> None:
        places, pushes, turns = [], [], []
        for name, wrench in self.forces.items():
            if not np.isfinite(wrench).all():
                continue
            pose = self.shown.poses[self.shown.frame_index[name]]
            places.append(pose[:3, 3])
            turns.append(pose[:3, :3] @ wrench[:3])
            pushes.append(pose[:3, :3] @ wrench[3:])
        if not places:
            return
        largest = max(float(np.linalg.norm(v, axis=1).max()) for v in (pushes, turns))
        self.largest_force = max(self.largest_force, largest)
        scale = _LONGEST * self.shown.extent / (self.largest_force or 1.0)
        self._draw_arrows("forces", places, [scale * v for v in pushes], _FORCE)
        self._draw_arrows("forces moments", places, [scale * v for v in turns], _MOMENT)

    def _draw_arrows(
        self, name: str, places: Sequence[np.ndarray], vectors: Sequence[np.ndarray], color: tuple[int, int, int]
    ) -> None:
        thick = 0.28 * self.shown.size
        seen = [k for k, v in enumerate(vectors) if np.linalg.norm(v) > 0.5 * thick]
        ends = np.array([[places[k], places[k] + vectors[k]] for k in seen]).reshape(-1, 2, 3)
        handle = self._moving.get(name)
        if handle is None:
            if len(ends):
                self._moving[name] = self._arrows(self._node(name), ends, color, thick)
            return
        handle.visible = len(ends) > 0
        if len(ends):
            handle.points = ends.astype(np.float32)

    def _arrows(self, node: str, ends: np.ndarray, color: tuple[int, int, int], thick: float) -> Handle:
        return self.api.add_arrows(
            node, ends, color, shaft_radius=thick, head_radius=2.2 * thick, head_length=4.0 * thick
        )


def _torque(joint: Joint, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """The torque of a joint's turning freedoms, or the force of one that only slides, in the frame of its link."""
    kind = joint.type
    columns = kind.columns(kind.kept(q.tolist(), 0.0), joint.pitch)
    ways = [[*(column.angular if kind.turns else column.linear)] for column in columns]
    drawn = [float(x) if rate.turns == kind.turns else 0.0 for rate, x in zip(kind.rates, tau, strict=True)]
    return aligning_rotation(joint.axis) @ (np.array(drawn) @ np.array(ways))


def arc_arrow(turn: float = 1.5 * np.pi, around: int = 40, section: int = 8) -> Surface:
    """Three quarters of a ring of radius 1 about z with a head at its end: how a turn is drawn."""
    angles = np.linspace(0.0, turn - 0.35, around)
    ways = np.stack([np.cos(angles), np.sin(angles), np.zeros(around)], axis=1)
    circle = 2 * np.pi * np.arange(section) / section
    up = np.array([0.0, 0.0, 1.0])
    thick = 0.075
    ring = ways[:, None] * (1.0 + thick * np.cos(circle))[None, :, None] + thick * np.sin(circle)[None, :, None] * up
    vertices = ring.reshape(-1, 3)
    i, j = np.meshgrid(np.arange(around - 1), np.arange(section), indexing="ij")
    a, b = (i * section + j).ravel(), (i * section + (j + 1) % section).ravel()
    faces = np.concatenate([np.column_stack([a, a + section, b]), np.column_stack([b, a + section, b + section])])
    tip = np.array([np.cos(turn), np.sin(turn), 0.0])
    end = ways[-1]
    rim = end * (1.0 + 0.2 * np.cos(circle))[:, None] + 0.2 * np.sin(circle)[:, None] * up
    first = len(vertices)
    k = np.arange(section)
    head = np.column_stack([first + k, np.full(section, first + section), first + (k + 1) % section])
    back = np.column_stack([first + k, first + (k + 1) % section, np.full(section, first + section + 1)])
    vertices = np.concatenate([vertices, rim, tip[None], end[None]])
    return creased(vertices, np.concatenate([faces, head, back]))


def inertia_ellipsoid(mass: float, inertia: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Radii (3,) and axes (3, 3, columns) of the even solid ellipsoid with this mass and inertia about its centre.

    Its moments are m (b^2 + c^2) / 5 and so on; what no solid can have is taken for 0.
    """
    if mass <= 0.0 or not np.isfinite(inertia).all():
        return np.zeros(3), np.eye(3)
    moments, axes = np.linalg.eigh(0.5 * (inertia + inertia.T))
    squares = 2.5 / mass * (moments.sum() - 2.0 * moments)
    return np.sqrt(np.maximum(squares, 0.0)), _right_handed(axes)


def velocity_ellipsoid(jacobian: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Radii and axes of the ellipsoid of velocities J qd (3, nv) over all qd of length 1."""
    axes, radii, _ = np.linalg.svd(jacobian)
    return np.concatenate([radii, np.zeros(3 - len(radii))]), _right_handed(axes)


def _right_handed(axes: np.ndarray) -> np.ndarray:
    axes = axes.copy()
    if np.linalg.det(axes) < 0:
        axes[:, 2] = -axes[:, 2]
    return axes


def forces_by_frame(robot: Robot, f_ext: Named | None) -> dict[str, np.ndarray]:
    """External forces as {frame: (..., 6)}, from that or from an array (..., links, 6)."""
    if f_ext is None:
        return {}
    if isinstance(f_ext, Mapping):
        known = robot.frame_names
        for name in f_ext:
            if name not in known:
                raise ArgumentError(f"f_ext: {robot.name} has no frame {shown(name)}{nearest(name, known)}.")
        found = {name: as_numbers(f"f_ext at {name!r}", value) for name, value in f_ext.items()}
    else:
        rows = as_numbers("f_ext", f_ext)
        if rows.ndim < 2 or rows.shape[-2] != len(robot.link_names):
            raise ArgumentError(
                f"f_ext has shape {rows.shape}, expected (..., {len(robot.link_names)}, 6), or {{frame: (..., 6)}}."
            )
        found = {name: rows[..., k, :] for k, name in enumerate(robot.link_names)}
    for name, value in found.items():
        if value.shape[-1:] != (6,):
            raise ArgumentError(f"f_ext: the force at {name!r} has shape {value.shape}, expected (..., 6).")
        if not (np.abs(value) < LARGEST).all():
            raise ArgumentError(f"f_ext: the force at {name!r} is not finite, expected numbers below {LARGEST:g}.")
    return found


__all__ = ["BASE", "LAYERS", "Overlays", "forces_by_frame", "inertia_ellipsoid", "matrix", "velocity_ellipsoid"]
