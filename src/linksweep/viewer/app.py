"""`show`: a scene with controls. One thread draws: it plays motions, steps simulations, and follows the sliders."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError, LinksweepError
from linksweep.robot.robot import Robot, checked_robot
from linksweep.support.checks import real_array, real_number
from linksweep.support.messages import shown

from . import server
from .controls import Controls
from .live import Law, LiveSimulation
from .overlays import Overlays, forces_by_frame
from .playback import Motion, TimeControls, checked_motion
from .plot_panel import Plots, recorded_plots
from .scene import Bounds, Scene, ShownRobot, default_view, iframe

if TYPE_CHECKING:
    from linksweep.robot.options import ViewOptions
    from linksweep.simulation import Simulation
    from linksweep.support.checks import Named

FRAME = 1.0 / 60.0  # seconds
SLIDER_INTERVAL = 0.1  # seconds between updates of the joint sliders while a motion plays
MOST_ROLLOUTS = 8
CAMERA_SAMPLES = 24  # samples of a motion that the first view takes in
COLUMNS = 4  # rollouts in one row
GAP = 0.1  # between two rollouts, relative to the space that one takes
NO_MOTION = "no motion to play: pass q (samples, nq) and t (samples,) to show."


class Viewer:
    """A page with robots, sliders for the first one, and a timeline if there is a motion.

    `url` is the address of the page. Assign `q` to move the first robot; `seek(t)`, `play()` and `pause()` control a
    motion; `show_layer("inertia")` shows one of `LAYERS`. `scene` takes further robots, arrows, cones and solids.
    """

    def __init__(
        self, scene: Scene, robots: Sequence[ShownRobot], motion: Motion | None = None, *, frame: str | None = None,
        forces: Mapping[str, ArrayLike] | None = None, law: Law | None = None, tau: ArrayLike | None = None,
    ):  # fmt: skip
        self.scene, self.robots, self.motion = scene, list(robots), motion
        self.first = self.robots[0]
        self.overlays = Overlays(self.first, frame)
        self.live: LiveSimulation | None = None
        self.law = law
        self.running = False
        self._wake = threading.Event()
        # requests of the controls, carried out by the drawing thread
        self._requested_pose: np.ndarray | None = None
        self._requested_target: np.ndarray | None = None
        self._requested_time: tuple[float, bool] | None = None  # with whether it came from the time slider
        self._sliders_updated, self._sliders_outdated = 0.0, False
        if motion is not None:
            self.overlays.largest_torque = _largest(motion.quantities.get("tau"))
            self.overlays.largest_force = max((_largest(wrench) for wrench in motion.forces.values()), default=0.0)
        else:
            self.overlays.forces = {} if forces is None else {k: np.asarray(v, float) for k, v in forces.items()}
            nv = self.first.robot.nv
            self.overlays.tau = None if tau is None else real_array("tau", tau, (nv,), finite=True, dtype=float)
        self.time: TimeControls | None = None
        self.plots: Plots | None = None
        self.controls = Controls(self)
        scene.frame_camera(() if motion is None else self._reach())
        if motion is not None:
            self._show_time(float(motion.t[0]))
        self._thread = threading.Thread(target=self._run, name="linksweep-viewer", daemon=True)
        self._thread.start()

    # public interface

    @property
    def url(self) -> str:
        """Address of the page."""
        return self.scene.url

    @property
    def q(self) -> np.ndarray:
        """Configuration (nq,) of the first robot; assign it to move the robot."""
        return self.first.q

    @q.setter
    def q(self, q: ArrayLike) -> None:
        self._check_open()
        with self.scene.lock:
            self._show_pose(real_array("q", q, dtype=float))
            self.controls.sliders.set(self.first.q)

    def seek(self, t: float) -> None:
        """Pause the motion and show it at a time (s)."""
        self._check_open()
        if self.motion is None or self.time is None:
            raise ArgumentError(f"seek: {NO_MOTION}")
        self.pause()
        with self.scene.lock:
            self._show_time(float(np.clip(t, self.motion.t[0], self.motion.t[-1])), sliders=True)

    def play(self) -> None:
        """Play the motion."""
        self._check_open()
        if self.time is None:
            raise ArgumentError(f"play: {NO_MOTION}")
        self.time.play()

    def pause(self) -> None:
        """Pause the motion."""
        if self.time is not None:
            self.time.playing = False

    def show_layer(self, layer: str, on: bool = True) -> None:
        """Show or hide one of `linksweep.viewer.LAYERS` on the first robot."""
        self._check_open()
        with self.scene.lock:
            self.overlays.show(layer, on)
        self.controls.layer_shown(layer, on)

    def start(self) -> None:
        """Simulate the first robot from its present configuration, under the control law that tracks the target."""
        self._check_open()
        self.pause()
        with self.scene.lock:
            self.live = self.controls.new_simulation(self.first.q)
            self.live.advance(1e-3)  # compiles, and raises if the robot cannot be simulated
            self.running = True
        self._wake.set()

    def stop(self) -> None:
        """Stop the simulation; the robot keeps its configuration."""
        self.running = False

    def screenshot(self, path: str | Path, width: int = 1280, height: int = 800, *, transparent: bool = False) -> None:
        """Write the scene as PNG, drawn by an open page, or by a headless browser on this machine."""
        self._check_open()
        server.screenshot(self.scene.server, path, width, height, transparent)

    def record(self, path: str | Path, fps: float | None = None, *, dark: bool = False) -> None:
        """Write the motion with its plots, or the present scene, as one HTML file that plays without Python or network.

        fps: frames per second, by default 30, or fewer for a very long motion.
        """
        self._check_open()
        if fps is not None:
            fps = real_number("record: fps", fps, above=0, at_most=240)
        times, plots = np.zeros(0), ""
        if self.motion is not None:
            start, end = float(self.motion.t[0]), float(self.motion.t[-1])
            count = max(2, round((end - start) * (fps or 30.0)) + 1)
            most = server.MOST_FRAMES if fps is None else server.MOST_FRAMES + 1  # which then raises
            times = np.linspace(start, end, min(count, most))
            plots = recorded_plots(self.first.robot, self.motion)
        self.pause()
        before = self.time.time if self.time is not None else 0.0
        with self.scene.lock:
            server.record(self.scene.server, path, times, self._draw_time, dark, plots)
            if self.time is not None:
                self._show_time(before, sliders=True)

    def wait(self) -> None:
        """Block until the viewer is closed, for example with Ctrl-C."""
        try:
            while not self.scene.closed:
                time.sleep(0.2)
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """Close the page and its server."""
        self.running = False
        self.pause()
        self.scene.close()
        self._wake.set()

    def _check_open(self) -> None:
        if self.scene.closed:
            raise ArgumentError("the viewer is closed: show the robot again.")

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return iframe(self.url)

    def __repr__(self) -> str:
        return f"<Viewer at {self.url}: {', '.join(robot.name for robot in self.robots)}>"

    # requests of the controls, stored here and carried out by the drawing thread

    @property
    def target_pending(self) -> bool:
        """Whether a dragged pose waits to be drawn."""
        return self._requested_target is not None

    def request_pose(self, q: np.ndarray) -> None:
        """Move the robot to q, or, during a simulation, the target."""
        self._requested_pose = q
        self._wake.set()

    def request_target(self, pose: np.ndarray) -> None:
        """Bring the frame of the handle to a pose (4, 4)."""
        self._requested_target = pose
        self._wake.set()

    def request_redraw(self) -> None:
        """Draw again."""
        self._wake.set()

    def request_time(self, t: float, by_slider: bool = False) -> None:
        """Pause, and show the motion at a time. by_slider: whether the time slider selected it."""
        self.pause()
        self._requested_time = t, by_slider
        self._wake.set()

    # drawing

    def _reach(self) -> list[Bounds]:
        """Return the bounds of all robots at samples spread over the motion."""
        assert self.motion is not None
        bounds = []
        for k in self._camera_samples():
            for robot, q in self.motion.tracks:
                robot.move(q[k])
                bounds.append(robot.bounds())
        return bounds

    def place_side_by_side(self) -> None:
        """Arrange the bases of all robots on a grid, starting at the first one, so that robots do not overlap.

        The spacing is the space that the robots take during the motion, and at least a robot's extent. Only the start
        of a floating base counts, so robots that travel can meet.
        """
        assert self.motion is not None
        up, direction = default_view(self.first.model)
        across = _nearest_axis(np.cross(up, direction), np.zeros(3))
        # a planar arm, seen face on, would hide those behind it: a single row
        back = -_nearest_axis(direction - up * (up @ direction), across) if abs(up @ direction) > 0.2 else None
        with self.scene.lock:
            start = self.first.placement
            spacing = np.maximum((1.0 + GAP) * self._largest_box(), self.first.extent)
            for number, robot in enumerate(self.robots):
                row, column = (0, number) if back is None else divmod(number, COLUMNS)
                offset = column * spacing * across + (0.0 if back is None else row * spacing * back)
                placement = start.copy()
                placement[:3, 3] += offset
                robot.placement = placement
            self.scene.frame_camera(self._reach())
            self._draw_time(float(self.motion.t[0]))

    def _largest_box(self) -> np.ndarray:
        """Return the size (3,) in the world of a box that contains any of the robots during the motion."""
        assert self.motion is not None
        lows, highs = [], []
        for robot, q in self.motion.tracks:
            floating = any(link.joint.type.floats for link in robot.model.links)
            for k in self._camera_samples()[:1] if floating else self._camera_samples():
                robot.move(q[k])
                low, high = robot.bounds()
                lows.append(low - robot.placement[:3, 3])
                highs.append(high - robot.placement[:3, 3])
        return np.max(highs, axis=0) - np.min(lows, axis=0)

    def _camera_samples(self) -> list[int]:
        assert self.motion is not None
        return np.unique(np.linspace(0, len(self.motion.t) - 1, CAMERA_SAMPLES).astype(int)).tolist()

    def _run(self) -> None:
        last = time.monotonic()
        while not self.scene.closed:
            busy = self.running or (self.time is not None and self.time.playing)
            if not busy:
                requested = self._wake.wait(SLIDER_INTERVAL if self._sliders_outdated else None)
                self._wake.clear()
                last = time.monotonic()
                if not requested:
                    self._update_sliders()
                    continue
            now = time.monotonic()
            try:
                with self.scene.lock:
                    self._draw(now - last)
            except Exception as error:
                self._report_failure(error)
            last = now
            time.sleep(max(FRAME - (time.monotonic() - now), 0.0))

    def _draw(self, elapsed: float) -> None:
        if self.scene.closed:
            return
        target, self._requested_target = self._requested_target, None
        if target is not None:
            self._requested_pose = self.controls.reach(target)
            self.controls.sliders.set(self._requested_pose)
        q, self._requested_pose = self._requested_pose, None
        if q is not None:
            if self.running and self.live is not None:
                self.live.set_target(q)
                self.controls.show_target(q)
            else:
                self.pause()
                self._show_pose(q)
        selected, self._requested_time = self._requested_time, None
        if selected is not None:
            self._show_time(selected[0], by_slider=selected[1])
        elif self.running and self.live is not None:
            self.live.advance(elapsed)
            if self.live.remark:
                self.controls.notify(self.live.remark)
            with self.scene.server.atomic():
                self.overlays.tau = self.live.tau
                self.first.move(self.live.q)
                self.overlays.update()
                self.controls.robot_moved()
        elif self.time is not None and self.time.playing:
            self._show_time(self.time.advance(elapsed))
        else:
            self.controls.robot_moved()

    def _report_failure(self, error: Exception) -> None:
        """Stop, and show the error in the page: the drawing thread must survive it."""
        self.running = False
        self.pause()
        self.controls.notify(str(error) if isinstance(error, LinksweepError) else f"{type(error).__name__}: {error}")

    def _show_pose(self, q: np.ndarray) -> None:
        with self.scene.server.atomic():
            self.first.move(q)
            self.overlays.tau = None  # torques of another configuration
            self.overlays.update()
            self.controls.robot_moved()

    def _draw_time(self, t: float) -> None:
        """Move all robots, arrows and ellipsoids to their state at a time."""
        assert self.motion is not None
        with self.scene.server.atomic():
            for track, (robot, _) in enumerate(self.motion.tracks):
                robot.move(self.motion.q_at(track, t))
            k = self.motion.index(t)
            if "tau" in self.motion.quantities:
                self.overlays.tau = self.motion.quantities["tau"][k]
            self.overlays.forces = {name: wrench[k] for name, wrench in self.motion.forces.items()}
            self.overlays.update()

    def _show_time(self, t: float, sliders: bool = False, by_slider: bool = False) -> None:
        with self.scene.server.atomic():  # robots, time slider and plots change in the same frame of the page
            self._draw_time(t)
            if self.time is not None:
                self.time.show(t, by_slider)
            if self.plots is not None:
                self.plots.mark(t)
        self._sliders_outdated = True
        if sliders or time.monotonic() - self._sliders_updated > SLIDER_INTERVAL:
            self._update_sliders()

    def _update_sliders(self) -> None:
        """Set sliders and handle to the robot's configuration."""
        with self.scene.lock:
            if not self.scene.closed:
                self.controls.sliders.set(self.first.q)
                self.controls.robot_moved()
            self._sliders_updated, self._sliders_outdated = time.monotonic(), False


def show(
    robot: Robot, q: ArrayLike | None = None, t: ArrayLike | None = None, *, tau: ArrayLike | None = None,
    qd: ArrayLike | None = None, qdd: ArrayLike | None = None, f_ext: Named | None = None,
    quantities: Mapping[str, ArrayLike] | None = None, others: Sequence[object] = (),
    placement: ArrayLike | None = None, law: Law | None = None, frame: str | None = None,
    visuals: str | Path | None = None, opacity: float = 1.0, host: str = server.LOCAL, port: int | None = None,
    browser: bool | None = None, plain: bool = False,
) -> Viewer:  # fmt: skip
    """Show a robot in the browser: at q (nq,), or moving along q (samples, nq) at times t (samples,).

    Parameters
    ----------
    q, t
        Configuration (default: neutral), or a motion with its times in seconds.
    tau, qd, qdd
        Signals along the motion (samples, nv), for plots and arrows. For a single q, tau (nv,) is drawn instead of the
        torques that hold the robot at rest.
    f_ext
        External wrenches as in `inverse_dynamics`, constant or at every time.
    quantities
        Further curves to plot by name, (samples,) or (samples, k).
    others
        Further robots as (robot, q, placement).
    placement
        Pose (4, 4) or position (3,) of the robot's base in the world.
    law
        Control law of the live simulation: a function that returns, for a target q, what `simulate` takes as torque.
    frame
        Frame of the manipulability ellipsoid and the drag handle (default: the end effector).
    visuals
        URDF or MJCF file with the links' shapes (default: the file that the robot was loaded from).
    opacity
        From 0 to 1.
    host, port
        Address of the server (default: this machine only, first free port from 8080).
    browser
        Whether to open a browser (default: if there is a display).
    plain
        Without shadows, for browsers without graphics hardware.
    """
    checked_robot(robot, "the viewer")
    moving = t is not None
    q = robot.neutral() if q is None else real_array("q", q, dtype=float)
    opacity = real_number("opacity", opacity, at_least=0, at_most=1)
    if not moving and q.ndim != 1:
        raise ArgumentError(f"q has shape {q.shape} without times t, expected ({robot.nq},), or t (samples,) with it.")
    forces = forces_by_frame(robot, f_ext)
    scene = Scene(host=host, port=port, title=robot.name, plain=plain)
    try:
        start = q[0] if moving and q.ndim == 2 and len(q) else q
        robots = [scene.add(robot, start, placement, visuals=visuals, opacity=opacity)]
        tracks = [q]
        for other in others:
            other_robot, other_q, other_placement = _other(other)
            other_q = other_robot.neutral() if other_q is None else real_array("q", other_q, dtype=float)
            robots.append(scene.add(other_robot, other_q[0] if other_q.ndim == 2 else other_q, other_placement))
            tracks.append(other_q)
        motion = None
        if moving:
            signals = {"qd": qd, "qdd": qdd, "tau": tau, **(quantities or {})}
            signals = {name: values for name, values in signals.items() if values is not None}
            motion = checked_motion(robots, t, tracks, signals, forces)
        viewer = Viewer(scene, robots, motion, frame=frame, forces=forces, law=law, tau=None if moving else tau)
        if forces:
            viewer.show_layer("forces")
    except BaseException:
        scene.close()
        raise
    server.open_browser(scene.server, browser)
    return viewer


def _other(other: object) -> tuple[Robot, ArrayLike | None, ArrayLike | None]:
    """Return robot, q and placement of a further robot, given as a Robot or a tuple."""
    parts = tuple(other) if isinstance(other, (tuple, list)) else (other,)
    if not 1 <= len(parts) <= 3:
        raise ArgumentError(f"others contains {shown(other)}, expected (robot, q, placement).")
    robot, q, placement = (*parts, None, None)[:3]
    return checked_robot(robot, "the viewer"), cast("ArrayLike | None", q), cast("ArrayLike | None", placement)


def show_run(run: Simulation, *, rollouts: ArrayLike | None = None, **options: Unpack[ViewOptions]) -> Viewer:
    """Show a Simulation. The first rollouts of a batch are shown side by side, with plots of the first one."""
    count = int(np.prod(run.batch)) if run.batch else 1
    if count == 0 or len(run.t) < 2:
        raise ArgumentError(f"show got {run!r}, expected a run with at least one rollout and two recorded times.")
    which = (
        range(min(count, MOST_ROLLOUTS)) if rollouts is None else np.atleast_1d(np.asarray(rollouts)).ravel().tolist()
    )
    if not len(which) or any(not isinstance(k, int) or not 0 <= k < count for k in which):
        raise ArgumentError(f"rollouts is {shown(rollouts)}, expected indices of rollouts from 0 to {count - 1}.")
    flat = {name: getattr(run, name).reshape(len(run.t), count, -1) for name in ("q", "qd", "qdd", "tau")}
    first = which[0]
    signals = {name: values[:, first] for name, values in flat.items()}
    energies = {}
    if run.robot.has_inertia:
        kinetic, potential = (
            energy.reshape(len(run.t), count)[:, first] for energy in (run.kinetic_energy, run.potential_energy)
        )
        energies = {
            "energy (J)": kinetic + potential, "kinetic energy (J)": kinetic, "potential energy (J)": potential
        }  # fmt: skip
    others = [(run.robot, flat["q"][:, k], None) for k in which[1:]]
    defaults: ViewOptions = {
        "qd": signals["qd"], "qdd": signals["qdd"], "tau": signals["tau"], "quantities": energies, "others": others,
    }  # fmt: skip
    browser = options.pop("browser", None)
    viewer = show(run.robot, signals["q"], run.t, **{**defaults, **options}, browser=False)
    if len(which) > 1 and "others" not in options:
        viewer.place_side_by_side()
    server.open_browser(viewer.scene.server, browser)
    return viewer


def _nearest_axis(direction: np.ndarray, excluded: np.ndarray) -> np.ndarray:
    """Return the signed coordinate axis nearest to a direction, other than `excluded`."""
    k = int((np.abs(direction) * (excluded == 0.0)).argmax())
    return np.sign(direction[k]) * np.eye(3)[k]


def _largest(values: ArrayLike | None) -> float:
    """Return the largest finite size of an array, or 0."""
    if values is None:
        return 0.0
    array = np.abs(np.asarray(values, dtype=float))
    return float(np.nanmax(array)) if array.size and np.isfinite(array).any() else 0.0
