"""The panel beside the scene: time, joints, what is drawn, the live simulation, and files."""

from __future__ import annotations

import contextlib
import html
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linksweep.errors import LinksweepError

from ..geometry import quaternion_wxyz
from ..overlays import LAYERS
from ..shown_robot import place
from .joint_sliders import JointSliders
from .live import LiveSimulation, can_have_stops, tracking
from .playback import TimeControls
from .plots import Plots

if TYPE_CHECKING:
    from ..app import Viewer
    from ..server import Handle

TOWARDS, NOTHING = "track target", "unactuated"
GHOST = (0.0, 0.62, 0.45)
WIDTH = 340
CLEAREST = 0.05  # the lowest opacity that the slider has


class Controls:
    """The controls of a Viewer. What they ask for is noted in the viewer, and done by its drawing thread."""

    def __init__(self, viewer: Viewer):
        self.viewer = viewer
        self.gui = viewer.scene.server.gui
        self.first = viewer.first
        self._layers: dict[str, Handle] = {}
        self._ghost: Handle = None
        self._handle: Handle = None
        self._dragging = False  # whether a page holds the handle
        self.gui.main_panel.dock_right()
        self.gui.main_panel.set_width(WIDTH)
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
        viewer.time = TimeControls(self.gui, float(motion.t[0]), float(motion.t[-1]), len(motion.t), viewer.ask_time)
        viewer.time.button.on_click(lambda event: viewer._wake.set())
        panel = self.gui.add_panel()
        with panel.add_tab("Plots"):
            viewer.plots = Plots(self.gui, self.first.robot, motion, viewer.ask_time, viewer.time.slider)
        panel.dock_left()
        panel.set_width(WIDTH + 60)

    # joints

    def _add_joints(self) -> None:
        reset = self.gui.add_button_group("go to", ("neutral", "random"))
        reset.on_click(lambda event: self._go(reset.value))
        self.sliders = JointSliders(
            self.gui, self.first.robot, max(1.0, 1.5 * self.first.extent), self.first.q, self.viewer.ask_pose
        )

    def _go(self, where: str) -> None:
        robot = self.first.robot
        q = robot.neutral() if where == "neutral" else robot.random(np.random.default_rng())
        self.sliders.set(q)
        self.viewer.ask_pose(q)

    # what is drawn

    def _add_layers(self) -> None:
        self.opacity = self.gui.add_slider("opacity", CLEAREST, 1.0, CLEAREST, max(CLEAREST, self.first.opacity))
        self.opacity.on_update(lambda event: event.client is not None and self.first.set_opacity(self.opacity.value))
        for layer, label in LAYERS.items():
            if layer == "forces" and not (
                self.viewer.overlays.forces or (self.viewer.motion and self.viewer.motion.forces)
            ):
                continue
            box = self._layers[layer] = self.gui.add_checkbox(label, False)
            box.on_update(lambda event, name=layer, own=box: event.client is not None and self._layer(name, own.value))
        frames = self.first.robot.frame_names
        self.frame = self.gui.add_dropdown("frame", frames, initial_value=self.viewer.overlays.frame)
        self.frame.on_update(lambda event: self._choose_frame())
        self.shadows = self.gui.add_checkbox("shadows", not self.viewer.scene.plain)
        self.shadows.on_update(lambda event: self.viewer.scene.set_plain(not self.shadows.value))

    def _layer(self, layer: str, on: bool) -> None:
        with self._saying(), self.viewer.scene.lock:
            self.viewer.overlays.show(layer, on)
            self.opacity.value = max(CLEAREST, self.first.opacity)

    def layer_shown(self, layer: str, on: bool) -> None:
        """A layer was drawn by a call: let its box say so."""
        if layer in self._layers:
            self._layers[layer].value = on
        self.opacity.value = max(CLEAREST, self.first.opacity)

    def _choose_frame(self) -> None:
        with self._saying(), self.viewer.scene.lock:
            self.viewer.overlays.frame = self.frame.value
            self.viewer.overlays.update()
            self.robot_moved()

    # the handle at a frame, and the live simulation

    def _add_live(self) -> None:
        self.drag = self.gui.add_checkbox("drag the frame", False, hint="a handle at the frame chosen under Show")
        self.drag.on_update(lambda event: self._show_handle(self.drag.value))
        self.drive = self.gui.add_dropdown("drive", (TOWARDS, NOTHING), initial_value=TOWARDS)
        floating = any(link.joint.type.floats for link in self.first.model.links)
        self.gravity = self.gui.add_checkbox("gravity", not floating)
        limited = can_have_stops(self.first.robot)
        self.stops = self.gui.add_checkbox("joint stops", limited, disabled=not limited, hint="at the position limits")
        self.damping = self.gui.add_checkbox("damping", True, hint="viscous, at every joint")
        self.run = self.gui.add_button("Simulate")
        self.run.on_click(lambda event: self._start_or_stop())
        for choice in (self.drive, self.gravity, self.stops, self.damping):
            choice.on_update(lambda event: self._renew())
        self.gui.add_markdown("*While it runs, the sliders and the handle move the target, the robot follows.*")

    def new_simulation(self, q: np.ndarray) -> LiveSimulation:
        """A simulation from q at rest, with what is chosen here."""
        robot = self.first.robot if self.gravity.value else self.first.robot.with_gravity((0.0, 0.0, 0.0))
        law = None if self.drive.value == NOTHING else self.viewer.law or tracking(robot)
        return LiveSimulation(robot, q, law, stops=self.stops.value, damping=self.damping.value)

    def _renew(self) -> None:
        """The choices changed while it runs: go on with them from the same state."""
        old = self.viewer.live
        if not self.viewer.running or old is None:
            return
        with self._saying(), self.viewer.scene.lock:
            new = self.new_simulation(old.q)
            new.set_state(old.q, old.qd, old.t)
            new.set_target(old.target)
            self.viewer.live = new
            self.show_ghost(new.target)

    def _start_or_stop(self) -> None:
        with self._saying():
            if self.viewer.running:
                self.viewer.stop()
                self.hide_ghost()
                self.viewer.q = self.first.q
            else:
                self.say("compiling ...")
                self.viewer.start()
                self.say("")
                self.show_ghost(self.first.q)
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
        """Note where the handle is dragged to; a coroutine, because viser runs these in the order of the events."""
        from scipy.spatial.transform import Rotation

        self._dragging = event.phase != "end"
        if event.phase == "update":
            pose = np.eye(4)
            w, x, y, z = self._handle.wxyz
            pose[:3, :3], pose[:3, 3] = Rotation.from_quat([x, y, z, w]).as_matrix(), self._handle.position
            self.viewer.ask_target(pose)
        else:
            self.viewer.ask_nothing()

    def reach(self, pose: np.ndarray) -> np.ndarray:
        """Coordinates near the present ones that bring the frame to a pose, or as near as they get."""
        robot = self.first.robot
        live = self.viewer.live
        start = live.target if self.viewer.running and live is not None else self.first.q
        found = robot.inverse_kinematics(
            pose, self.viewer.overlays.frame, start, restarts=0, tolerance=1e-6, iterations=20
        )
        return found.q

    def _frame_pose(self) -> np.ndarray:
        """The pose (4, 4) of the chosen frame in the robot's base."""
        return self.first.poses[self.first.frame_index[self.viewer.overlays.frame]]

    def robot_moved(self) -> None:
        """Put the handle at the frame, except while it is dragged."""
        dragged = self._dragging or self.viewer._pending_target is not None
        if self._handle is not None and self._handle.visible and not dragged:
            pose = self._frame_pose()
            place(self._handle, pose[:3, 3], quaternion_wxyz(pose[:3, :3]))

    def show_ghost(self, q: np.ndarray) -> None:
        """Draw the target beside the robot that goes there."""
        if self.drive.value == NOTHING:
            self.hide_ghost()
            return
        if self._ghost is None:
            self._ghost = self.viewer.scene.add(
                self.first.robot, q, self.first.placement, name=f"{self.first.name} target", color=GHOST, opacity=0.18
            )
        self._ghost.root.visible = True
        self._ghost.move(q)

    def hide_ghost(self) -> None:
        if self._ghost is not None:
            self._ghost.root.visible = False

    # files

    def _add_files(self) -> None:
        picture = self.gui.add_button("Picture (PNG)")
        film = self.gui.add_button("Recording (HTML)" if self.viewer.motion is not None else "Scene (HTML)")
        picture.on_click(lambda event: self._send(event.client, "png"))
        film.on_click(lambda event: self._send(event.client, "html"))

    def _send(self, client: Handle, kind: str) -> None:
        """Make a file and let the page that asked for it download it."""
        with self._saying(), tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{self.first.name}.{kind}"
            if kind == "png":
                self.viewer.screenshot(path, client.camera.image_width, client.camera.image_height)
            else:
                self.say("recording ...")
                self.viewer.record(path)
                self.say("")
            client.send_file_download(path.name, path.read_bytes())

    # what is said

    def say(self, text: str) -> None:
        """Write a sentence below the controls; names in it come from files, and are no markup."""
        self._note.content = f"<b>{html.escape(text)}</b>" if text else ""

    @contextlib.contextmanager
    def _saying(self) -> Iterator[None]:
        """What goes wrong in a callback is said in the page."""
        try:
            yield
        except LinksweepError as error:
            self.say(str(error))
