"""Robots drawn with Matplotlib: a kinematic sketch in 3-D, and animations of it as GIF or MP4."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError, BackendError
from linksweep.model.model import inverse, tools
from linksweep.plots.figures import COLORS, as_floats, model_of, new_figure, plain
from linksweep.support.checks import as_list, checked_flag, real_array
from linksweep.support.display import ProgressBar
from linksweep.support.files import write_atomically
from linksweep.support.messages import is_one_of, nearest, shown

if TYPE_CHECKING:
    from matplotlib.animation import FFMpegWriter, PillowWriter
    from matplotlib.figure import Figure
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    from linksweep.model.model import Model, Placement
    from linksweep.robot.robot import Robot

Axes3D = Any  # of mplot3d, which has no types
_LINK, _REVOLUTE, _PRISMATIC, _OTHER = "#BDBDBD", "#56B4E9", "#E69F00", "#8C8C8C"
_XYZ = (COLORS[1], COLORS[3], COLORS[2])
MOST_IMAGES = 100_000  # hours of drawing
LETTERED = 4  # frames: with more of them, a legend names the axes instead of letters
DEFAULT_VIEW = (22.0, -58.0)  # elevation and azimuth
FACE_ON = {0: (0.0, 0.0), 1: (0.0, -90.0), 2: (90.0, -90.0)}


def sketch(
    robot: Robot, q: ArrayLike | None = None, *, axes: bool = True, frames: str | Sequence[str] | None = None,
    com: bool = True, view: tuple[float, float] | None = None, title: str | None = None,
) -> Figure:  # fmt: skip
    """Draw the robot at the configuration q (default: neutral), to scale, with equal axes.

    Links are rods, revolute joints cylinders along their axes, prismatic joints boxes around their paths. axes: draw
    the joint axes. frames: names of frames to draw with their x, y, z, or "all" (default: base and end effector);
    several frames are labelled. com: mark the center of mass of each link, sized by its mass, and of the whole robot.
    view: elevation and azimuth in degrees (default: face on for an arm that stays in a plane).
    """
    model_of(robot)
    q = robot.neutral() if q is None else as_floats("q", q)
    if q.ndim != 1:
        raise ArgumentError(f"sketch got q of shape {q.shape}, expected one configuration: pass q[0], or use animate.")
    scene = Scene(robot, q[None], axes=axes, frames=frames, com=com)
    figure = scene.figure(view, plain(robot.name) if title is None else title)
    scene.draw(0)
    return figure


class Scene:
    """A robot at several configurations (samples, nq), drawn one at a time within the same limits."""

    axes: Axes3D

    def __init__(
        self,
        robot: Robot,
        q: np.ndarray,
        *,
        axes: bool = True,
        frames: str | Sequence[str] | None = None,
        com: bool = True,
    ):
        if not np.isfinite(q).all():
            raise ArgumentError("a sketch got q with NaN or infinity, expected finite coordinates.")
        self.model: Model = model_of(robot)
        q = robot.expand(q)
        self.show_axes, self.show_com = checked_flag("sketch: axes", axes), checked_flag("sketch: com", com)
        names = tuple(frame.name for frame in self.model.frames)
        rigid = robot.uncoupled
        # a few samples are interpreted in less time than compilation takes
        backend = "interpreter" if len(q) < 10 else None
        self.poses: np.ndarray = rigid.compile("poses", backend=backend)(q)
        self.index = {name: k for k, name in enumerate(names)}
        self.to_body = {frame.name: _inverse(frame.placement) for frame in self.model.frames}
        self.frames = self._chosen_frames(frames)
        self.masses = np.array([float(link.inertial.mass) for link in self.model.links])
        points = self.poses[:, :, :3, 3].reshape(-1, 3)
        self.low, self.high = points.min(axis=0), points.max(axis=0)
        self.extent = float((self.high - self.low).max()) or 1.0
        # joints of a humanoid are closer together than those of an arm
        self.size = self.extent * min(0.032, 0.085 / np.sqrt(len(self.model.links)))

    def normal_of_plane(self) -> int | None:
        """Return the base axis (0, 1 or 2) normal to the plane of a planar robot, or None for other robots."""
        for k in range(3):
            flat = self.high[k] - self.low[k] <= 1e-9 * self.extent
            if flat and all(self._moves_in_plane(link, k) for link in range(len(self.model.links))):
                return k
        return None

    def _moves_in_plane(self, link: int, normal: int) -> bool:
        joint = self.model.links[link].joint
        along = abs((self._pose(0, link)[:3, :3] @ np.array(joint.axis, dtype=float))[normal])
        return (joint.kind == "revolute" and along > 1 - 1e-9) or (joint.kind == "prismatic" and along < 1e-9)

    def figure(self, view: tuple[float, float] | None, title: str) -> Figure:
        figure = new_figure(6.2, 6.2)
        self.axes = figure.add_subplot(projection="3d", computed_zorder=False)
        self.facing = self.normal_of_plane() if view is None else None  # the axis that points at the viewer
        self.view = DEFAULT_VIEW if self.facing is None else FACE_ON[self.facing]
        if view is not None:
            angles = real_array("sketch: view", view, (..., 2))
            if angles.ndim != 1 or not np.isfinite(angles).all():
                raise ArgumentError(f"sketch: view is {shown(view)}, expected elevation and azimuth in degrees.")
            self.view = float(angles[0]), float(angles[1])
        self.title = title
        return figure

    def draw(self, sample: int) -> None:
        """Draw one configuration; clears the previous one."""
        axes = self.axes
        axes.clear()
        faces: list[np.ndarray] = []
        colors: list[tuple[float, ...]] = []
        for solid, color in self._solids(sample):
            faces += solid
            colors += _shaded(solid, color)
        from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

        solids = Poly3DCollection(faces, facecolors=colors, edgecolors=colors, linewidths=0.2, zsort="average")
        axes.add_collection3d(solids, autolim=False)
        if self.show_axes:
            dashed = {"colors": "0.25", "linewidths": 0.9, "linestyles": [(0, (7, 2, 1.5, 2))]}
            axes.add_collection3d(Line3DCollection(self._axes_of_joints(sample), **dashed), autolim=False)
        self._draw_frames(axes, sample, Line3DCollection)
        if self.show_com:
            self._draw_com(axes, sample)
        labels = axes.get_legend_handles_labels()[1]
        if labels and not axes.figure.legends:
            axes.figure.legend(loc="outside lower center", ncols=len(labels), frameon=False, fontsize="small")
        self._fit(axes)

    def _pose(self, sample: int, link: int) -> np.ndarray:
        """Return the pose of a body frame, which is at the link's joint; frames of standard DH tables are not."""
        name = self.model.base if link < 0 else self.model.links[link].name
        return self.poses[sample, self.index[name]] @ self.to_body[name]

    def _chosen_frames(self, frames: str | Sequence[str] | None) -> tuple[str, ...]:
        if frames is None:
            ends = tools(self.model)
            if len(ends) > 1:
                ends = (self.model.links[-1].name,) if _is_arm(self.model) else ()
            return (self.model.base, *ends)
        chosen = list(self.index) if isinstance(frames, str) and frames == "all" else as_list(frames)
        for name in chosen:
            if not is_one_of(name, self.index):
                raise ArgumentError(
                    f"sketch: {self.model.name} has no frame {shown(name)}{nearest(name, self.index)}: expected names "
                    f"of robot.frame_names, or 'all'."
                )
        return tuple(map(str, chosen))

    def _solids(self, sample: int) -> list[tuple[list[np.ndarray], str]]:
        size = self.size
        solids: list[tuple[list[np.ndarray], str]] = []
        parents = {link.parent for link in self.model.links}
        for k, link in enumerate(self.model.links):
            parent, pose = self._pose(sample, link.parent), self._pose(sample, k)
            joint = parent[:3, :3] @ np.array(link.joint.placement.position, dtype=float) + parent[:3, 3]
            kind = link.joint.type
            if kind.attached:  # nothing connects a floating base with the ground
                solids += [(piece, _LINK) for piece in _rod(parent[:3, 3], joint, 0.36 * size)]
                solids += [(piece, _LINK) for piece in _rod(joint, pose[:3, 3], 0.3 * size)]
            axis = pose[:3, :3] @ np.array(link.joint.axis, dtype=float)
            if kind.shape == "drum":
                solids.append((_cylinder(pose[:3, 3], axis, size, 2.6 * size), _REVOLUTE))
            elif kind.shape == "slider":
                solids.append((_bar(joint, axis, pose[:3, 0], 0.9 * size, 5.0 * size), _PRISMATIC))
            elif kind.attached:
                solids.append((_sphere(pose[:3, 3], 1.1 * size), _OTHER))
            if k not in parents:  # a leaf link reaches as far as its frames do
                for frame in self.model.frames:
                    if frame.link == k:
                        tip = self.poses[sample, self.index[frame.name], :3, 3]
                        solids += [(piece, _LINK) for piece in _rod(pose[:3, 3], tip, 0.36 * size)]
        return solids

    def _axes_of_joints(self, sample: int) -> list[np.ndarray]:
        segments = []
        for k, link in enumerate(self.model.links):
            if link.joint.type.commutes:
                pose = self._pose(sample, k)
                reach = 3.6 * self.size * (pose[:3, :3] @ np.array(link.joint.axis, dtype=float))
                segments.append(np.stack([pose[:3, 3] - reach, pose[:3, 3] + reach]))
        return segments

    def _draw_frames(self, axes: Axes3D, sample: int, collection: type[Line3DCollection]) -> None:
        length = 5.0 * self.size
        for name in self.frames:
            pose = self.poses[sample, self.index[name]]
            tips = pose[:3, 3, None] + length * pose[:3, :3]
            segments = [np.stack([pose[:3, 3], tips[:, k]]) for k in range(3)]
            axes.add_collection3d(collection(segments, colors=_XYZ, linewidths=1.8), autolim=False)
            if len(self.frames) <= LETTERED:
                for k, letter in enumerate("xyz"):
                    at = pose[:3, 3] + 1.22 * length * pose[:3, k]
                    if k != self.facing:
                        axes.text(*at, letter, color=_XYZ[k], fontsize=8, ha="center", va="center")
        if len(self.frames) > LETTERED:  # letters would overlap
            for k, letter in enumerate("xyz"):
                if k != self.facing:
                    axes.plot([], [], [], color=_XYZ[k], linewidth=1.8, label=letter)
        if len(self.frames) > 2:
            self._name_frames(axes, sample)

    def _name_frames(self, axes: Axes3D, sample: int) -> None:
        """Write the names of all frames that share an origin beside it, with a white outline."""
        from matplotlib.patheffects import withStroke

        by_origin: dict[tuple[float, ...], list[str]] = {}
        for name in self.frames:
            origin = self.poses[sample, self.index[name], :3, 3]
            by_origin.setdefault(tuple(np.round(origin / self.extent, 4) + 0.0), []).append(name)
        for names in by_origin.values():
            origin = self.poses[sample, self.index[names[0]], :3, 3]
            text = axes.text(*origin, "   " + ",\n   ".join(map(plain, names)), fontsize=7, va="top", zorder=1000)
            text.set_path_effects([withStroke(linewidth=2.2, foreground="white")])

    def _draw_com(self, axes: Axes3D, sample: int) -> None:
        if not self.masses.any():
            return
        heavy = [k for k, mass in enumerate(self.masses) if mass > 0.0]
        coms = np.array([self._com(sample, k) for k in heavy])
        share = self.masses[heavy] / self.masses.max()
        axes.scatter(*coms.T, s=14 + 46 * np.sqrt(share), facecolors="white", edgecolors="black", linewidths=1.0,
                     depthshade=False, label="center of mass of a link")  # fmt: skip
        axes.scatter(*coms.T, s=3, color="black", depthshade=False)
        whole = self.masses[heavy] @ coms / self.masses.sum()
        axes.scatter(*whole[:, None], s=90, marker="P", facecolors=COLORS[4], edgecolors="black", linewidths=0.8,
                     depthshade=False, label="center of mass of the robot")  # fmt: skip

    def _com(self, sample: int, link: int) -> np.ndarray:
        pose = self._pose(sample, link)
        return pose[:3, :3] @ np.array(self.model.links[link].inertial.com, dtype=float) + pose[:3, 3]

    def _fit(self, axes: Axes3D) -> None:
        """Set the same limits for every sample, with equal scales and a margin for axes and frames."""
        margin = 6.2 * self.size
        low, high = self.low - margin, self.high + margin
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
        spans = high - low
        slender = spans.max() > 1.6 * np.median(spans)  # its labels extend far beyond it
        axes.set_box_aspect(spans, zoom=0.78 if slender else 0.9)
        axes.set_proj_type("ortho")
        axes.view_init(*self.view)
        axes.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)")
        axes.zaxis.labelpad = 8
        if self.facing is not None:  # its tick labels would overlap
            axis = (axes.xaxis, axes.yaxis, axes.zaxis)[self.facing]
            axis.set_label_text("")
            axis.set_ticks([])
        axes.set_title(self.title)
        from matplotlib.ticker import MaxNLocator

        for k, (axis, span) in enumerate(zip((axes.xaxis, axes.yaxis, axes.zaxis), spans, strict=True)):
            if k != self.facing:
                axis.set_major_locator(MaxNLocator(max(1, round(6 * span / spans.max()))))
            axis.set_tick_params(labelsize="x-small", pad=3 if k == 2 else 0)
            axis.line.set_color("0.5")
            # Matplotlib has no public interface to the grid of a 3-D axis
            axis._axinfo["grid"].update(color="0.88", linewidth=0.6)
            axis.pane.set_facecolor("white")
            axis.pane.set_edgecolor("0.8")


def _is_arm(model: Model) -> bool:
    return all(link.parent == k - 1 for k, link in enumerate(model.links))


# ---- solids as lists of flat faces (4, 3) ----------------------------------------------------------------------

_LIGHT = np.array([0.35, -0.55, 0.75]) / np.linalg.norm([0.35, -0.55, 0.75])


def _rod(start: np.ndarray, end: np.ndarray, radius: float) -> list[list[np.ndarray]]:
    """Return a thin rod in pieces short enough to be sorted by depth; none if the ends coincide."""
    length = float(np.linalg.norm(end - start))
    if length < 1e-9:
        return []
    count = int(np.clip(length / (6 * radius), 1, 12))
    stations = np.linspace(start, end, count + 1)
    return [_prism(a, b, radius, 8, closed=(k in (0, count - 1))) for k, (a, b) in enumerate(pairwise(stations))]


def _cylinder(center: np.ndarray, axis: np.ndarray, radius: float, length: float) -> list[np.ndarray]:
    return _prism(center - axis * length / 2, center + axis * length / 2, radius, 14)


def _bar(center: np.ndarray, axis: np.ndarray, across: np.ndarray, half: float, length: float) -> list[np.ndarray]:
    """Return a square bar along `axis`, one side of it facing `across`."""
    corner = half * np.sqrt(2.0)
    return _prism(center - axis * length / 2, center + axis * length / 2, corner, 4, across=across)


def _sphere(center: np.ndarray, radius: float) -> list[np.ndarray]:
    polar, azimuth = np.meshgrid(np.linspace(0.0, np.pi, 7), np.linspace(0.0, 2 * np.pi, 11), indexing="ij")
    directions = np.stack([np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar)], axis=-1)
    grid = center + radius * directions
    return [
        np.stack([grid[i, j], grid[i + 1, j], grid[i + 1, j + 1], grid[i, j + 1]]) for i in range(6) for j in range(10)
    ]


def _inverse(placement: Placement) -> np.ndarray:
    """Return the inverse of a pose as a matrix (4, 4)."""
    back = inverse(placement)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = back.rotation, back.position
    return pose


def _shaded(faces: list[np.ndarray], color: str) -> list[tuple[float, ...]]:
    """Return the colour of each face, lit from the upper left."""
    from matplotlib.colors import to_rgb

    rgb = np.array(to_rgb(color))
    colors = []
    for face in faces:
        normal = np.cross(face[1] - face[0], face[-1] - face[0])
        size = np.linalg.norm(normal)
        facing = abs(float(normal @ _LIGHT)) / size if size else 0.0
        colors.append((*(rgb * (0.55 + 0.45 * facing)), 1.0))
    return colors


def _prism(
    start: np.ndarray,
    end: np.ndarray,
    radius: float,
    sides: int,
    *,
    closed: bool = True,
    across: np.ndarray | None = None,
) -> list[np.ndarray]:
    axis = (end - start) / np.linalg.norm(end - start)
    helper = np.eye(3)[np.abs(axis).argmin()] if across is None else across
    u = helper - axis * (axis @ helper)
    if np.linalg.norm(u) < 1e-6:
        u = np.eye(3)[np.abs(axis).argmin()]
        u = u - axis * (axis @ u)
    u = u / np.linalg.norm(u)
    v = np.cross(axis, u)
    angles = 2 * np.pi * (np.arange(sides) + 0.5) / sides
    ring = radius * (np.cos(angles)[:, None] * u + np.sin(angles)[:, None] * v)
    low, high = start + ring, end + ring
    faces = [np.stack([low[k], low[k - 1], high[k - 1], high[k]]) for k in range(sides)]
    return [*faces, *_cap(low), *_cap(high)] if closed else faces


def _cap(ring: np.ndarray) -> list[np.ndarray]:
    """Return a disc as faces with four corners: Matplotlib pads faces with fewer corners with uninitialised memory."""
    if len(ring) == 4:
        return [ring]
    center = ring.mean(axis=0)
    return [np.stack([center, ring[k - 2], ring[k - 1], ring[k]]) for k in range(0, len(ring), 2)]


# ---- animations ----------------------------------------------------------------------


@dataclass(frozen=True)
class Animation:
    """A drawn motion, which notebooks play.

    data: the bytes of the file. kind: its suffix, ".gif" or ".mp4". frames: number of images. fps: images per second.
    path: the file that was written, or None.
    """

    data: bytes = field(repr=False)
    kind: str
    frames: int
    fps: float
    path: Path | None = None

    @property
    def duration(self) -> float:
        """Duration in seconds."""
        return self.frames / self.fps

    def save(self, path: str | Path) -> None:
        """Write the whole file, or none; the suffix must be `kind`."""
        path = Path(path)
        if path.suffix.lower() != self.kind:
            raise ArgumentError(
                f"the animation {path} has the suffix {path.suffix!r}, expected {self.kind}: for another format pass "
                f"the path to animate."
            )
        write_atomically(path, self._write)

    def _write(self, path: Path) -> None:
        path.write_bytes(self.data)

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.data).decode()
        if self.kind == ".gif":
            return f'<img src="data:image/gif;base64,{data}" alt="a robot in motion">'
        return f'<video controls loop src="data:video/mp4;base64,{data}"></video>'


def animate(
    robot: Robot, t: ArrayLike, q: ArrayLike, path: str | Path | None = None, *, fps: float = 20.0,
    view: tuple[float, float] | None = None, title: str | None = None, axes: bool = False,
    frames: str | Sequence[str] | None = None, com: bool = False, dpi: float = 80.0, progress: bool = True,
) -> Animation:  # fmt: skip
    """Animate the motion q (samples, nq) at times t (samples,) in real time, as sketches.

    The suffix of `path` chooses the format: .gif needs Pillow, which comes with Matplotlib, and .mp4 needs ffmpeg. By
    default the animation is a GIF in memory, which notebooks display. Each image shows the nearest sample. progress:
    show a progress bar on terminals and in notebooks.
    """
    if path is None:
        with tempfile.TemporaryDirectory() as folder:
            animation = animate(robot, t, q, Path(folder) / "motion.gif", fps=fps, view=view, title=title, axes=axes,
                                frames=frames, com=com, dpi=dpi, progress=progress)  # fmt: skip
        return replace(animation, path=None)
    path = Path(path)
    t, q = as_floats("t", t), as_floats("q", q)
    if t.ndim != 1 or not len(t) or not np.isfinite(t).all() or (np.diff(t) <= 0).any():
        raise ArgumentError(
            f"animate got times of shape {t.shape}, expected (samples,), each later than the one before."
        )
    if q.shape != (len(t), robot.nq):
        raise ArgumentError(
            f"animate got q of shape {q.shape}, expected ({len(t)}, {robot.nq}): a row for each time, a column for "
            f"each coordinate."
        )
    new_figure(1.0, 1.0)  # raises BackendError if Matplotlib is missing
    writer = _writer(path, fps)
    if (t[-1] - t[0]) * fps > MOST_IMAGES:
        raise ArgumentError(
            f"animate got {t[-1] - t[0]:g} s, which is {(t[-1] - t[0]) * fps:.3g} images, expected at most "
            f"{MOST_IMAGES}: reduce fps, or pass a part of the motion."
        )
    times = np.arange(t[0], t[-1] + 0.5 / fps, 1.0 / fps)
    nearest = np.searchsorted(0.5 * (t[1:] + t[:-1]), times)
    scene = Scene(robot, q[nearest], axes=axes, frames=frames, com=com)
    heading = plain(robot.name) if title is None else title
    figure = scene.figure(view, heading)
    # the layout is computed once: otherwise the robot would jump between images
    scene.draw(0)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")

    def write(to: Path) -> None:
        with writer.saving(figure, str(to), dpi), ProgressBar(f"drawing {heading}", progress) as watch:
            for sample, time in enumerate(times):
                scene.title = f"{heading}, t = {time:.2f} s"
                scene.draw(sample)
                writer.grab_frame()
                watch((sample + 1) / len(times))

    write_atomically(path, write)
    return Animation(path.read_bytes(), path.suffix.lower(), len(times), float(fps), path)


def _writer(path: Path, fps: float) -> FFMpegWriter | PillowWriter:
    from matplotlib.animation import FFMpegWriter, PillowWriter

    kinds = {".gif": PillowWriter, ".mp4": FFMpegWriter}
    kind = kinds.get(path.suffix.lower())
    if kind is None:
        raise ArgumentError(f"the animation {path} has the suffix {path.suffix!r}, expected .gif or .mp4.")
    if not 0 < fps <= 100:
        raise ArgumentError(f"animate got fps = {fps!r}, expected images per second, between 0 and 100.")
    if not kind.isAvailable():
        raise BackendError(
            f"The animation {path} needs ffmpeg, which is not installed: install it, or write a .gif instead."
        )
    return kind(fps=fps)
