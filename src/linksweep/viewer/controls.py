"""The control panel beside the scene: joint sliders, layers and camera, the live simulation, and files."""

from __future__ import annotations

import contextlib
import html
import math
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.transform import Rotation

from linksweep.errors import LinksweepError
from linksweep.joints.kind import QUATERNION
from linksweep.model.model import Joint

from .geometry import quaternion_wxyz, rigid, rotation_from_wxyz
from .live import LiveSimulation, can_have_stops, tracking
from .overlays import LAYERS
from .playback import TimeControls
from .plot_panel import Plots
from .scene import VIEWS, place
from .server import Handle

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot

    from .app import Viewer

TRACK, UNACTUATED = "track target", "unactuated"
TARGET_COLOR = (0.0, 0.62, 0.45)
WIDTH = 340  # pixels
LOWEST_OPACITY = 0.05
SLIDER_STEPS = 1000
# the number beside a slider has room for six characters by default, which cuts off longer ones
STYLE = "<style>.mantine-Slider-root + .mantine-NumberInput-root {width: 4.4rem !important}</style>"


class Controls:
    """The controls of a Viewer. They send requests to the viewer, whose drawing thread carries them out."""

    def __init__(self, viewer: Viewer):
        self.viewer = viewer
        self.gui = viewer.scene.server.gui
        self.first = viewer.first
        self._layers: dict[str, Handle] = {}
        self._target_robot: Handle = None
        self._handle: Handle = None
        self._dragging = False  # whether a page holds the handle
        self.gui.main_panel.dock_right()
        self.gui.main_panel.set_width(WIDTH)
        self.gui.add_html(STYLE)
        if viewer.motion is not None:
            self._add_time(viewer)
        tabs = self.gui.add_tab_group()
        with tabs.add_tab("Joints"):
            self._add_joints()
        with tabs.add_tab("Show"):
            self._add_layers()
        if viewer.motion is None:
            with tabs.add_tab("Live"):
                self._add_live()
        with tabs.add_tab("Save"):
            self._add_files()
        self._note = self.gui.add_html("")

    # time

    def _add_time(self, viewer: Viewer) -> None:
        motion = viewer.motion
        assert motion is not None
        viewer.time = TimeControls(self.gui, motion, viewer.request_time, viewer.request_redraw)
        panel = self.gui.add_panel()
        with panel.add_tab("Plots"):
            viewer.plots = Plots(self.gui, self.first.robot, motion, viewer.request_time, viewer.time)
        panel.dock_left()
        panel.set_width(WIDTH + 60)

    # joints

    def _add_joints(self) -> None:
        reset = self.gui.add_button_group("go to", ("neutral", "random"))
        reset.on_click(lambda event: self._go(reset.value))
        self.sliders = JointSliders(
            self.gui, self.first.robot, max(1.0, 1.5 * self.first.extent), self.first.q, self.viewer.request_pose
        )

    def _go(self, configuration: str) -> None:
        robot = self.first.robot
        q = robot.neutral() if configuration == "neutral" else robot.random(np.random.default_rng())
        self.sliders.set(q)
        self.viewer.request_pose(q)

    # camera and layers

    def _add_layers(self) -> None:
        camera = self.gui.add_button_group("camera", VIEWS)
        camera.on_click(lambda event: self.viewer.scene.set_view(camera.value))
        self.opacity = self.gui.add_slider(
            "opacity", LOWEST_OPACITY, 1.0, LOWEST_OPACITY, max(LOWEST_OPACITY, self.first.opacity)
        )
        self.opacity.on_update(lambda event: event.client is not None and self.first.set_opacity(self.opacity.value))
        for layer, label in LAYERS.items():
            if layer == "forces" and not (
                self.viewer.overlays.forces or (self.viewer.motion and self.viewer.motion.forces)
            ):
                continue
            box = self._layers[layer] = self.gui.add_checkbox(label, False)
            box.on_update(lambda event, name=layer, box=box: event.client is not None and self._layer(name, box.value))
        frames = self.first.robot.frame_names
        self.frame = self.gui.add_dropdown("frame", frames, initial_value=self.viewer.overlays.frame)
        self.frame.on_update(lambda event: self._choose_frame())
        self.shadows = self.gui.add_checkbox("shadows", not self.viewer.scene.plain)
        self.shadows.on_update(lambda event: self.viewer.scene.set_plain(not self.shadows.value))

    def _layer(self, layer: str, on: bool) -> None:
        with self._report_errors(), self.viewer.scene.lock:
            self.viewer.overlays.show(layer, on)
            self.opacity.value = max(LOWEST_OPACITY, self.first.opacity)

    def layer_shown(self, layer: str, on: bool) -> None:
        """Update the checkbox of a layer that was shown or hidden by a call."""
        if layer in self._layers:
            self._layers[layer].value = on
        self.opacity.value = max(LOWEST_OPACITY, self.first.opacity)

    def _choose_frame(self) -> None:
        with self._report_errors(), self.viewer.scene.lock:
            self.viewer.overlays.frame = self.frame.value
            self.viewer.overlays.update()
            self.robot_moved()

    # live simulation, and the handle for dragging a frame

    def _add_live(self) -> None:
        self.drag = self.gui.add_checkbox("drag frame", False, hint="shows a handle at the frame selected under Show")
        self.drag.on_update(lambda event: self._show_handle(self.drag.value))
        self.drive = self.gui.add_dropdown("control", (TRACK, UNACTUATED), initial_value=TRACK)
        floating = any(link.joint.type.floats for link in self.first.model.links)
        self.gravity = self.gui.add_checkbox("gravity", not floating)
        limited = can_have_stops(self.first.robot)
        self.stops = self.gui.add_checkbox("joint stops", limited, disabled=not limited, hint="at the position limits")
        self.damping = self.gui.add_checkbox("damping", True, hint="viscous, at every joint")
        self.run = self.gui.add_button("Simulate")
        self.run.on_click(lambda event: self._start_or_stop())
        for choice in (self.drive, self.gravity, self.stops, self.damping):
            choice.on_update(lambda event: self._renew())
        self.gui.add_markdown("*During a simulation, sliders and handle move the target, and the robot follows.*")

    def new_simulation(self, q: np.ndarray) -> LiveSimulation:
        """Return a simulation that starts at rest at q, with the selected options."""
        robot = self.first.robot if self.gravity.value else self.first.robot.with_gravity((0.0, 0.0, 0.0))
        law = None if self.drive.value == UNACTUATED else self.viewer.law or tracking(robot)
        return LiveSimulation(robot, q, law, stops=self.stops.value, damping=self.damping.value)

    def _renew(self) -> None:
        """Continue a running simulation from the same state with changed options."""
        old = self.viewer.live
        if not self.viewer.running or old is None:
            return
        with self._report_errors(), self.viewer.scene.lock:
            new = self.new_simulation(old.q)
            new.set_state(old.q, old.qd, old.t)
            new.set_target(old.target)
            self.viewer.live = new
            self.show_target(new.target)

    def _start_or_stop(self) -> None:
        with self._report_errors():
            if self.viewer.running:
                self.viewer.stop()
                self.hide_target()
                self.viewer.q = self.first.q
            else:
                self.notify("compiling ...")
                self.viewer.start()
                self.notify("")
                self.show_target(self.first.q)
        self.run.label = "Stop" if self.viewer.running else "Simulate"

    def _show_handle(self, on: bool) -> None:
        with self.viewer.scene.lock:
            if self._handle is None and on:
                pose = self._frame_pose()
                self._handle = self.viewer.scene.server.scene.add_transform_controls(
                    f"/robots/{self.first.name}/target", scale=0.22 * self.first.extent, depth_test=False,
                    position=pose[:3, 3], wxyz=quaternion_wxyz(pose[:3, :3]),
                )  # fmt: skip
                self._handle.on_update(self._dragged)
            if self._handle is not None:
                self._handle.visible, self._dragging = on, False
                self.robot_moved()

    async def _dragged(self, event: Handle) -> None:
        """Store the pose of the dragged handle. viser runs coroutines in the order of the events."""
        self._dragging = event.phase != "end"
        if event.phase == "update":
            self.viewer.request_target(rigid(self._handle.position, rotation_from_wxyz(self._handle.wxyz)))
        else:
            self.viewer.request_redraw()

    def reach(self, pose: np.ndarray) -> np.ndarray:
        """Return coordinates, near the present ones, that bring the frame to a pose or as near as possible."""
        live = self.viewer.live
        start = live.target if self.viewer.running and live is not None else self.first.q
        solution = self.first.robot.inverse_kinematics(
            pose, self.viewer.overlays.frame, start, restarts=0, tolerance=1e-6, iterations=20
        )
        return solution.q

    def _frame_pose(self) -> np.ndarray:
        """Return the pose (4, 4) of the selected frame in the robot's base."""
        return self.first.poses[self.first.frame_index[self.viewer.overlays.frame]]

    def robot_moved(self) -> None:
        """Put the handle at the frame, unless it is being dragged."""
        dragged = self._dragging or self.viewer.target_pending
        if self._handle is not None and self._handle.visible and not dragged:
            pose = self._frame_pose()
            place(self._handle, pose[:3, 3], quaternion_wxyz(pose[:3, :3]))

    def show_target(self, q: np.ndarray) -> None:
        """Draw a transparent robot at the target configuration."""
        if self.drive.value == UNACTUATED:
            self.hide_target()
            return
        if self._target_robot is None:
            self._target_robot = self.viewer.scene.add(
                self.first.robot, q, self.first.placement, name=f"{self.first.name} target", color=TARGET_COLOR,
                opacity=0.18,
            )  # fmt: skip
        self._target_robot.root.visible = True
        self._target_robot.move(q)

    def hide_target(self) -> None:
        """Hide the robot at the target configuration."""
        if self._target_robot is not None:
            self._target_robot.root.visible = False

    # files

    def _add_files(self) -> None:
        image = self.gui.add_button("Screenshot (PNG)")
        recording = self.gui.add_button("Recording (HTML)" if self.viewer.motion is not None else "Scene (HTML)")
        image.on_click(lambda event: self._send(event.client, "png"))
        recording.on_click(lambda event: self._send(event.client, "html"))

    def _send(self, client: Handle, kind: str) -> None:
        """Write a file and send it to the page that requested it."""
        with self._report_errors(), tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{self.first.name}.{kind}"
            if kind == "png":
                self.viewer.screenshot(path, client.camera.image_width, client.camera.image_height)
            else:
                self.notify("recording ...")
                self.viewer.record(path)
                self.notify("")
            client.send_file_download(path.name, path.read_bytes())

    # messages

    def notify(self, text: str) -> None:
        """Write a sentence below the controls. It may contain names from files, so it is escaped."""
        self._note.content = f"<b>{html.escape(text)}</b>" if text else ""

    @contextlib.contextmanager
    def _report_errors(self) -> Iterator[None]:
        """Show errors of a callback in the page."""
        try:
            yield
        except LinksweepError as error:
            self.notify(str(error))


# ---- joint sliders -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SliderRange:
    """Label, unit and limits of one slider."""

    label: str
    unit: str
    low: float
    high: float


def slider_ranges(joint: Joint, reach: float) -> tuple[SliderRange, ...]:
    """Return the sliders of a joint; `reach` bounds translations (m) without limits.

    The rotation of a spherical or free joint has three angles: roll, pitch and yaw about the fixed axes x, y and z.
    """
    ranges = []
    for coordinate in joint.type.coordinates:
        if coordinate.measures != QUATERNION:
            unit, largest = ("rad", math.pi) if coordinate.turns else ("m", reach)
            limits = _limits(joint, largest) if joint.type.limited else (-largest, largest)
            ranges.append(SliderRange(f"{joint.name} {coordinate.name}".rstrip(), unit, *limits))
    if joint.type.has_quaternion:
        angles = (("roll", math.pi), ("pitch", math.pi / 2), ("yaw", math.pi))
        ranges += [SliderRange(f"{joint.name} {angle}", "rad", -largest, largest) for angle, largest in angles]
    return tuple(ranges)


def _limits(joint: Joint, reach: float) -> tuple[float, float]:
    low, high = joint.limits.lower, joint.limits.upper
    low = low if math.isfinite(low) else min(-reach, high - reach if math.isfinite(high) else -reach)
    high = high if math.isfinite(high) else max(reach, low + reach)
    return (low, high) if low < high else (low - 1e-3, low + 1e-3)


def to_sliders(joint: Joint, q: np.ndarray) -> list[float]:
    """Return the slider values for the coordinates of a joint."""
    if not joint.type.has_quaternion:
        return [float(x) for x in q]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gimbal lock: SciPy sets one of the angles to zero
        angles = Rotation.from_quat(q[:4]).as_euler("xyz")
    return [float(x) for x in (*q[4:], *angles)]


def from_sliders(joint: Joint, values: list[float]) -> list[float]:
    """Return the coordinates of a joint for its slider values."""
    if not joint.type.has_quaternion:
        return values
    quaternion = Rotation.from_euler("xyz", values[-3:]).as_quat()
    return [*(float(x) for x in quaternion), *values[:-3]]


class JointSliders:
    """The sliders of one robot, within the joint limits; `moved(q)` is called when the user moves one."""

    def __init__(self, gui: Handle, robot: Robot, reach: float, q: np.ndarray, moved: Callable[[np.ndarray], None]):
        by_name = {link.joint.name: link.joint for link in robot.model.links}
        self.joints = [by_name[name] for name in robot.joint_names]
        self.sliders: list[list[Handle]] = []
        self.bounds: list[list[tuple[float, float]]] = []
        self._exact: dict[int, tuple[float, float]] = {}  # by slider: its rounded value, and the exact one
        self._moved = moved
        for joint, values in self._values(q):
            ranges = slider_ranges(joint, reach)
            self.sliders.append([self._slider(gui, joint, r, x) for r, x in zip(ranges, values, strict=True)])
            # a robot that starts outside its limits can return there
            self.bounds.append([(min(r.low, x), max(r.high, x)) for r, x in zip(ranges, values, strict=True)])

    def _values(self, q: np.ndarray) -> Iterator[tuple[Joint, list[float]]]:
        """Yield each joint with its slider values at q."""
        start = 0
        for joint in self.joints:
            yield joint, to_sliders(joint, q[start : start + joint.type.nq])
            start += joint.type.nq

    def _slider(self, gui: Handle, joint: Joint, limits: SliderRange, value: float) -> Handle:
        step = 10.0 ** math.floor(math.log10((limits.high - limits.low) / SLIDER_STEPS))
        low, high = _outward(limits.low, step, math.floor), _outward(limits.high, step, math.ceil)
        low, high = min(low, _outward(value, step, math.floor)), max(high, _outward(value, step, math.ceil))
        hint = f"{joint.kind} joint, {limits.low:.4g} to {limits.high:.4g} {limits.unit}"
        middle = (0.0,) if low < 0.0 < high else ()
        marks = tuple(float(f"{x:.3g}") for x in (low, *middle, high))
        rounded = _rounded(value, step, low, high)
        slider = gui.add_slider(limits.label, low, high, step, rounded, hint=hint, marks=marks)
        slider.on_update(self._changed)
        self._exact[id(slider)] = (rounded, value)
        return slider

    def _changed(self, event: Handle) -> None:
        if event.client is not None:  # moved by the user, not by `set`
            self._moved(self.q)

    @property
    def q(self) -> np.ndarray:
        """Coordinates (nq,) of the sliders, clamped to the exact limits."""
        q: list[float] = []
        for joint, row, bounds in zip(self.joints, self.sliders, self.bounds, strict=True):
            values = [min(max(self._value(slider), low), high) for slider, (low, high) in zip(row, bounds, strict=True)]
            q += from_sliders(joint, values)
        return np.array(q)

    def _value(self, slider: Handle) -> float:
        """Return the value of a slider: the exact one, if it was set and not moved since."""
        rounded, exact = self._exact.get(id(slider), (None, 0.0))
        return exact if rounded == slider.value else float(slider.value)

    def set(self, q: np.ndarray) -> None:
        """Move the sliders to q, within their ranges; they show rounded values and store the exact ones."""
        for row, (_, values) in zip(self.sliders, self._values(q), strict=True):
            for slider, value in zip(row, values, strict=True):
                rounded = _rounded(value, slider.step, slider.min, slider.max)
                self._exact[id(slider)] = (rounded, value)
                slider.value = rounded


def _rounded(value: float, step: float, low: float, high: float) -> float:
    """Round a value to the grid of a slider, within its range, and never to -0."""
    return min(max(round(value / step) * step, low), high) + 0.0


def _outward(value: float, step: float, rounding: Callable[[float], int]) -> float:
    """Return the next point of a slider's grid outside a limit, so that the limit itself can be reached."""
    return rounding(value / step - (1e-9 if rounding is math.ceil else -1e-9)) * step
