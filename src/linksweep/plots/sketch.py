"""A kinematic sketch of a robot in 3-D: links, joints, axes, frames, mass centres."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from linksweep.description.tips import tools
from linksweep.errors import ArgumentError
from linksweep.plots.channels import described
from linksweep.plots.figures import COLORS, new_figure, numbers, plain
from linksweep.plots.solids import box, cylinder, rod, shaded, sphere
from linksweep.support.messages import is_one_of, nearest, shown
from linksweep.support.numbers import as_list, checked_flag, real_vectors

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from mpl_toolkits.mplot3d.art3d import Line3DCollection

    from linksweep.description.model import Model
    from linksweep.robot.robot import Robot

Axes3D = Any  # of mplot3d, which has no types
_LINK, _TURNING, _SLIDING, _OTHER = "#BDBDBD", "#56B4E9", "#E69F00", "#8C8C8C"
_XYZ = (COLORS[1], COLORS[3], COLORS[2])
LETTERED = 4  # frames whose axes have letters; of more, a legend says which colour is which
USUAL = (22.0, -58.0)  # elevation and azimuth
FACE_ON = {0: (0.0, 0.0), 1: (0.0, -90.0), 2: (90.0, -90.0)}


def sketch(
    robot: Robot, q: ArrayLike | None = None, *, axes: bool = True, frames: str | Sequence[str] | None = None,
    com: bool = True, view: tuple[float, float] | None = None, title: str | None = None,
) -> Figure:  # fmt: skip
    """The robot at the configuration q (its neutral one if not given), to scale, with equal axes.

    Links are rods; a joint that turns is a cylinder along its axis, one that slides is a box around its path. axes:
    draw the joint axes. frames: names of frames to draw with their x, y, z, or "all" (base and end of the arm if not
    given); where there are several, with their names. com: mark each link's mass centre, sized by its mass, and that of
    the whole robot. view: elevation and azimuth in degrees; without it an arm that stays in a plane is seen face on.
    """
    described(robot)
    q = robot.neutral() if q is None else numbers("q", q)
    if q.ndim != 1:
        raise ArgumentError(f"sketch got q of shape {q.shape}, expected one configuration: give q[0], or use animate.")
    scene = Scene(robot, q[None], axes=axes, frames=frames, com=com)
    figure = scene.figure(view, plain(robot.name) if title is None else title)
    scene.draw(0)
    return figure


class Scene:
    """A robot at several configurations (samples, nq), to be drawn one at a time in the same box."""

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
            raise ArgumentError("a sketch got q with NaN or infinity, expected finite coordinates: leave those out.")
        self.model: Model = described(robot)
        q = robot.expand(q)
        self.show_axes, self.show_com = checked_flag("sketch: axes", axes), checked_flag("sketch: com", com)
        names = tuple(frame.name for frame in self.model.frames)
        rigid = robot.uncoupled
        # a program for one look is not worth compiling
        backend = "interpreter" if len(q) < 10 else None
        self.poses: np.ndarray = rigid.compile("poses", backend=backend)(q)
        self.index = {name: k for k, name in enumerate(names)}
        self.frames = self._chosen_frames(frames)
        self.masses = np.array([float(link.inertial.mass) for link in self.model.links])
        points = self.poses[:, :, :3, 3].reshape(-1, 3)
        self.low, self.high = points.min(axis=0), points.max(axis=0)
        self.extent = float((self.high - self.low).max()) or 1.0
        # Joints of a humanoid stand closer together than those of an arm.
        self.size = self.extent * min(0.032, 0.085 / np.sqrt(len(self.model.links)))

    def flat(self) -> int | None:
        """The axis (0, 1 or 2) of the base about which all joints turn, if everything stays in the plane across it."""
        for k in range(3):
            stays = self.high[k] - self.low[k] <= 1e-9 * self.extent
            if stays and all(self._in_plane(link, k) for link in range(len(self.model.links))):
                return k
        return None

    def _in_plane(self, link: int, across: int) -> bool:
        joint = self.model.links[link].joint
        along = abs((self._pose(0, link)[:3, :3] @ np.array(joint.axis, dtype=float))[across])
        return (joint.kind == "revolute" and along > 1 - 1e-9) or (joint.kind == "prismatic" and along < 1e-9)

    def figure(self, view: tuple[float, float] | None, title: str) -> Figure:
        figure = new_figure(6.2, 6.2)
        self.axes = figure.add_subplot(projection="3d", computed_zorder=False)
        self.facing = self.flat() if view is None else None  # the axis that points at the reader
        self.view = USUAL if self.facing is None else FACE_ON[self.facing]
        if view is not None:
            angles = real_vectors("sketch: view", view, 2)
            if angles.ndim != 1 or not np.isfinite(angles).all():
                raise ArgumentError(f"sketch: view is {shown(view)}, expected elevation and azimuth in degrees.")
            self.view = float(angles[0]), float(angles[1])
        self.title = title
        return figure

    def draw(self, sample: int) -> None:
        """Draw one configuration in the place of what was drawn before."""
        axes = self.axes
        axes.clear()
        faces: list[np.ndarray] = []
        colors: list[tuple[float, ...]] = []
        for solid, color in self._solids(sample):
            faces += solid
            colors += shaded(solid, color)
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
        name = self.model.base if link < 0 else self.model.links[link].name
        return self.poses[sample, self.index[name]]

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
        found: list[tuple[list[np.ndarray], str]] = []
        carriers = {link.parent for link in self.model.links}
        for k, link in enumerate(self.model.links):
            parent, own = self._pose(sample, link.parent), self._pose(sample, k)
            place = parent[:3, :3] @ np.array(link.joint.placement.position, dtype=float) + parent[:3, 3]
            kind = link.joint.type
            if kind.attached:  # nothing connects a floating base with the ground
                found += [(piece, _LINK) for piece in rod(parent[:3, 3], place, 0.36 * size)]
                found += [(piece, _LINK) for piece in rod(place, own[:3, 3], 0.3 * size)]
            axis = own[:3, :3] @ np.array(link.joint.axis, dtype=float)
            if kind.shape == "drum":
                found.append((cylinder(own[:3, 3], axis, size, 2.6 * size), _TURNING))
            elif kind.shape == "slider":
                found.append((box(place, axis, own[:3, 0], 0.9 * size, 5.0 * size), _SLIDING))
            elif kind.attached:
                found.append((sphere(own[:3, 3], 1.1 * size), _OTHER))
            if k not in carriers:  # the last link of a branch reaches as far as its own frames do
                for frame in self.model.frames:
                    if frame.link == k:
                        tip = self.poses[sample, self.index[frame.name], :3, 3]
                        found += [(piece, _LINK) for piece in rod(own[:3, 3], tip, 0.36 * size)]
        return found

    def _axes_of_joints(self, sample: int) -> list[np.ndarray]:
        segments = []
        for k, link in enumerate(self.model.links):
            if link.joint.type.commutes:
                own = self._pose(sample, k)
                reach = 3.6 * self.size * (own[:3, :3] @ np.array(link.joint.axis, dtype=float))
                segments.append(np.stack([own[:3, 3] - reach, own[:3, 3] + reach]))
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
        if len(self.frames) > LETTERED:  # so many letters would stand on each other
            for k, letter in enumerate("xyz"):
                if k != self.facing:
                    axes.plot([], [], [], color=_XYZ[k], linewidth=1.8, label=letter)
        if len(self.frames) > 2:
            self._name_frames(axes, sample)

    def _name_frames(self, axes: Axes3D, sample: int) -> None:
        """Beside each origin, once, the names of all frames that stand there, legible over what lies behind them."""
        from matplotlib.patheffects import withStroke

        places: dict[tuple[float, ...], list[str]] = {}
        for name in self.frames:
            origin = self.poses[sample, self.index[name], :3, 3]
            places.setdefault(tuple(np.round(origin / self.extent, 4) + 0.0), []).append(name)
        for names in places.values():
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
                     depthshade=False, label="mass centre of a link")  # fmt: skip
        axes.scatter(*coms.T, s=3, color="black", depthshade=False)
        whole = self.masses[heavy] @ coms / self.masses.sum()
        axes.scatter(*whole[:, None], s=90, marker="P", facecolors=COLORS[4], edgecolors="black", linewidths=0.8,
                     depthshade=False, label="of the whole robot")  # fmt: skip

    def _com(self, sample: int, link: int) -> np.ndarray:
        pose = self._pose(sample, link)
        return pose[:3, :3] @ np.array(self.model.links[link].inertial.com, dtype=float) + pose[:3, 3]

    def _fit(self, axes: Axes3D) -> None:
        """The same box for every sample, with equal scales and room for axes and frames."""
        room = 6.2 * self.size
        low, high = self.low - room, self.high + room
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
        spans = high - low
        slender = spans.max() > 1.6 * np.median(spans)  # its labels hang far beyond it
        axes.set_box_aspect(spans, zoom=0.78 if slender else 0.9)
        axes.set_proj_type("ortho")
        axes.view_init(*self.view)
        axes.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)")
        axes.zaxis.labelpad = 8
        if self.facing is not None:  # its numbers would stand on each other
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
            # Matplotlib has no public way to the grid of a 3-D axis
            axis._axinfo["grid"].update(color="0.88", linewidth=0.6)
            axis.pane.set_facecolor("white")
            axis.pane.set_edgecolor("0.8")


def _is_arm(model: Model) -> bool:
    return all(link.parent == k - 1 for k, link in enumerate(model.links))
