"""`show`: a scene with its controls. One thread draws: it plays motions, steps simulations, and follows the sliders."""

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
from linksweep.support.messages import shown

from . import recording, server
from .camera import first_view
from .checks import as_numbers, as_rates, as_share
from .overlays import Overlays, forces_by_frame
from .panel.controls import Controls
from .panel.live import Law, LiveSimulation
from .panel.playback import Motion, TimeControls, checked_motion
from .panel.plots import Plots
from .scene import Scene, embedded
from .shown_robot import ShownRobot

if TYPE_CHECKING:
    from linksweep.robot.options import ViewOptions
    from linksweep.simulation import Simulation
    from linksweep.support.numbers import Named

FRAME = 1.0 / 60.0
SLIDERS_EVERY = 0.1  # seconds: while a motion plays, sliders follow it no faster than that
MOST_ROLLOUTS = 8
LOOKS = 24  # moments of a motion that the first view takes in
COLUMNS = 4  # rollouts in one row
GAP = 0.1  # between two rollouts, relative to the space that one takes


class Viewer:
    """Robots in a page, with sliders for the first one, and over time where there is a motion.

    `url` is where the page is. `q` moves the first robot, `seek(t)` goes to a moment, `play` and `pause` do what they
    say; `show_layer("inertia")` draws what the tab "Show" draws. `scene` takes further robots, arrows, cones, solids.
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
        self._pending: np.ndarray | None = None  # what the sliders ask for
        self._pending_target: np.ndarray | None = None
        self._pending_time: tuple[float, bool] | None = None  # and whether the time slider chose it
        self._sliders_moved, self._sliders_behind = 0.0, False
        if motion is not None:
            self.overlays.largest_torque = _largest(motion.quantities.get("tau"))
            self.overlays.largest_force = max((_largest(wrench) for wrench in motion.forces.values()), default=0.0)
        else:
            self.overlays.forces = {} if forces is None else {k: np.asarray(v, float) for k, v in forces.items()}
            self.overlays.tau = None if tau is None else as_rates("tau", tau, self.first.robot.nv)
        self.time: TimeControls | None = None
        self.plots: Plots | None = None
        self.controls = Controls(self)
        scene.frame_camera(() if motion is None else self._reach())
        if motion is not None:
            self._show_moment(float(motion.t[0]))
        self._thread = threading.Thread(target=self._run, name="linksweep-viewer", daemon=True)
        self._thread.start()

    # what users call

    @property
    def url(self) -> str:
        return self.scene.url

    @property
    def q(self) -> np.ndarray:
        """Where the first robot stands."""
        return self.first.q

    @q.setter
    def q(self, q: ArrayLike) -> None:
        self._check_open()
        with self.scene.lock:
            self._show_pose(as_numbers("q", q))
            self.controls.sliders.set(self.first.q)

    def seek(self, t: float) -> None:
        """Show the motion at a time."""
        self._check_open()
        if self.motion is None or self.time is None:
            raise ArgumentError("seek: nothing moves here, expected a motion: show one with q (samples, nq) and t.")
        self.pause()
        with self.scene.lock:
            self._show_moment(float(np.clip(t, self.motion.t[0], self.motion.t[-1])), sliders=True)

    def play(self) -> None:
        """Let the motion run."""
        self._check_open()
        if self.time is None:
            raise ArgumentError("play: nothing moves here, expected a motion: show one with q (samples, nq) and t.")
        self.time.play()
        self._wake.set()

    def pause(self) -> None:
        if self.time is not None:
            self.time.playing = False

    def show_layer(self, layer: str, on: bool = True) -> None:
        """Draw one of `linksweep.viewer.LAYERS` over the first robot, or take it away."""
        self._check_open()
        with self.scene.lock:
            self.overlays.show(layer, on)
        self.controls.layer_shown(layer, on)

    def start(self) -> None:
        """Simulate the first robot from where it stands, driven towards the target by its law."""
        self._check_open()
        self.pause()
        with self.scene.lock:
            self.live = self.controls.new_simulation(self.first.q)
            self.live.advance(1e-3)  # compiles, and says what is wrong if the robot cannot be simulated
            self.running = True
        self._wake.set()

    def stop(self) -> None:
        """End the simulation; the robot stays where it is."""
        self.running = False

    def screenshot(self, path: str | Path, width: int = 1280, height: int = 800, *, transparent: bool = False) -> None:
        """Write the scene as PNG, drawn by a page that is open, or by a browser of this machine without a window."""
        self._check_open()
        recording.screenshot(self.scene.server, path, width, height, transparent)

    def record(self, path: str | Path, fps: float | None = None, *, dark: bool = False) -> None:
        """Write the motion, or the scene as it stands, as one HTML file that plays without Python and network.

        fps: moments for each second, 30 unless said, or fewer where the motion is very long.
        """
        self._check_open()
        if fps is not None and not 0 < fps <= 240:
            raise ArgumentError(f"record got fps = {fps!r}, expected pictures per second, between 0 and 240.")
        moments = np.zeros(0)
        if self.motion is not None:
            start, end = float(self.motion.t[0]), float(self.motion.t[-1])
            count = max(2, round((end - start) * (fps or 30.0)) + 1)
            most = recording.MOST_MOMENTS if fps is None else recording.MOST_MOMENTS + 1  # which is then refused
            moments = np.linspace(start, end, min(count, most))
        self.pause()
        before = self.time.time if self.time is not None else 0.0
        with self.scene.lock:
            recording.record(self.scene.server, path, moments, self._draw_moment, dark)
            if self.time is not None:
                self._show_moment(before, sliders=True)

    def wait(self) -> None:
        """Keep a script alive until the page is closed with Ctrl-C."""
        try:
            while not self.scene.closed:
                time.sleep(0.2)
        except KeyboardInterrupt:
            self.close()

    def close(self) -> None:
        """End the page and its server."""
        self.running = False
        self.pause()
        self.scene.close()
        self._wake.set()

    def _check_open(self) -> None:
        if self.scene.closed:
            raise ArgumentError("the viewer is closed, expected an open one: show the robot again.")

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return embedded(self.url)

    def __repr__(self) -> str:
        return f"<Viewer at {self.url}: {', '.join(robot.name for robot in self.robots)}>"

    # what the controls ask for: noted here, done by the drawing thread

    def ask_pose(self, q: np.ndarray) -> None:
        """Sliders or the handle at the tip were moved: stand there, or, while simulating, go there."""
        self._pending = q
        self._wake.set()

    def ask_target(self, pose: np.ndarray) -> None:
        self._pending_target = pose
        self._wake.set()

    def ask_nothing(self) -> None:
        """The handle was taken or released: draw again."""
        self._wake.set()

    def ask_time(self, t: float, by_slider: bool = False) -> None:
        """A time was chosen, by the time slider or otherwise: show it."""
        self.pause()
        self._pending_time = t, by_slider
        self._wake.set()

    # drawing

    def _reach(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """How far the robots reach at moments spread over the motion."""
        assert self.motion is not None
        found = []
        for k in self._looks():
            for robot, q in self.motion.tracks:
                robot.move(q[k])
                found.append(robot.bounds())
        return found

    def place_side_by_side(self) -> None:
        """Put the bases of all robots on a grid, the first one where it is, so that no two of them overlap.

        The spacing is the space that the robots take during the motion, and at least a robot's extent. A free base
        counts as if it stayed where it starts, so robots that travel can meet.
        """
        assert self.motion is not None
        up, direction = first_view(self.first.model)
        across = _along_axis(np.cross(up, direction), np.zeros(3))
        # an arm that is seen face on would hide those behind it: a single row
        back = -_along_axis(direction - up * (up @ direction), across) if abs(up @ direction) > 0.2 else None
        with self.scene.lock:
            start = self.first.placement
            spacing = np.maximum((1.0 + GAP) * self._boxes(), self.first.extent)
            for number, robot in enumerate(self.robots):
                row, column = (0, number) if back is None else divmod(number, COLUMNS)
                offset = column * spacing * across + (0.0 if back is None else row * spacing * back)
                placement = start.copy()
                placement[:3, 3] += offset
                robot.placement = placement
            self.scene.frame_camera(self._reach())
            self._draw_moment(float(self.motion.t[0]))

    def _boxes(self) -> np.ndarray:
        """The size (3,) in the world of a box that holds each of the robots, all on the same base."""
        assert self.motion is not None
        lows, highs = [], []
        for robot, q in self.motion.tracks:
            floating = any(link.joint.type.floats for link in robot.model.links)
            for k in self._looks()[:1] if floating else self._looks():
                robot.move(q[k])
                low, high = robot.bounds()
                lows.append(low - robot.placement[:3, 3])
                highs.append(high - robot.placement[:3, 3])
        return np.max(highs, axis=0) - np.min(lows, axis=0)

    def _looks(self) -> list[int]:
        assert self.motion is not None
        return np.unique(np.linspace(0, len(self.motion.t) - 1, LOOKS).astype(int)).tolist()

    def _run(self) -> None:
        last = time.monotonic()
        while not self.scene.closed:
            busy = self.running or (self.time is not None and self.time.playing)
            if not busy:
                asked = self._wake.wait(SLIDERS_EVERY if self._sliders_behind else None)
                self._wake.clear()
                last = time.monotonic()
                if not asked:
                    self._move_sliders()
                    continue
            now = time.monotonic()
            try:
                with self.scene.lock:
                    self._draw(now - last)
            except Exception as error:
                self._failed(error)
            last = now
            rest = FRAME - (time.monotonic() - now)
            if rest > 0:
                time.sleep(rest)

    def _draw(self, elapsed: float) -> None:
        if self.scene.closed:
            return
        target, self._pending_target = self._pending_target, None
        if target is not None:
            self._pending = self.controls.reach(target)
            self.controls.sliders.set(self._pending)
        q, self._pending = self._pending, None
        if q is not None:
            if self.running and self.live is not None:
                self.live.set_target(q)
                self.controls.show_ghost(q)
            else:
                self.pause()
                self._show_pose(q)
        chosen, self._pending_time = self._pending_time, None
        if chosen is not None:
            self._show_moment(chosen[0], by_slider=chosen[1])
        elif self.running and self.live is not None:
            self.live.advance(elapsed)
            if self.live.remark:
                self.controls.say(self.live.remark)
            with self.scene.server.atomic():
                self.overlays.tau = self.live.tau
                self.first.move(self.live.q)
                self.overlays.update()
                self.controls.robot_moved()
        elif self.time is not None and self.time.playing:
            self._show_moment(self.time.advance(elapsed))
        else:
            self.controls.robot_moved()

    def _failed(self, error: Exception) -> None:
        """Say in the page what went wrong, and stop: a thread that dies in silence leaves a dead page."""
        self.running = False
        self.pause()
        self.controls.say(str(error) if isinstance(error, LinksweepError) else f"{type(error).__name__}: {error}")

    def _show_pose(self, q: np.ndarray) -> None:
        with self.scene.server.atomic():
            self.first.move(q)
            self.overlays.tau = None  # what was given or simulated held elsewhere
            self.overlays.update()
            self.controls.robot_moved()

    def _draw_moment(self, t: float) -> None:
        """Move all robots, arrows and ellipsoids to where they are at a time."""
        assert self.motion is not None
        with self.scene.server.atomic():
            for track, (robot, _) in enumerate(self.motion.tracks):
                robot.move(self.motion.q_at(track, t))
            k = self.motion.index(t)
            if "tau" in self.motion.quantities:
                self.overlays.tau = self.motion.quantities["tau"][k]
            self.overlays.forces = {name: wrench[k] for name, wrench in self.motion.forces.items()}
            self.overlays.update()

    def _show_moment(self, t: float, sliders: bool = False, by_slider: bool = False) -> None:
        with self.scene.server.atomic():  # robots, time slider and plots change in the same frame of the page
            self._draw_moment(t)
            if self.time is not None:
                self.time.show(t, by_slider)
            if self.plots is not None:
                self.plots.mark(t)
        self._sliders_behind = True
        if sliders or time.monotonic() - self._sliders_moved > SLIDERS_EVERY:
            self._move_sliders()

    def _move_sliders(self) -> None:
        """Let sliders and handle stand where the robot does."""
        with self.scene.lock:
            if not self.scene.closed:
                self.controls.sliders.set(self.first.q)
                self.controls.robot_moved()
            self._sliders_moved, self._sliders_behind = time.monotonic(), False


def show(
    robot: Robot, q: ArrayLike | None = None, t: ArrayLike | None = None, *, tau: ArrayLike | None = None,
    qd: ArrayLike | None = None, qdd: ArrayLike | None = None, f_ext: Named | None = None,
    quantities: Mapping[str, ArrayLike] | None = None, others: Sequence[object] = (),
    placement: ArrayLike | None = None, law: Law | None = None, frame: str | None = None,
    visuals: str | Path | None = None, opacity: float = 1.0, host: str = server.LOCAL, port: int | None = None,
    browser: bool | None = None, plain: bool = False,
) -> Viewer:  # fmt: skip
    """Show a robot in the browser: at q (nq,), or moving along q (samples, nq) at times t (samples,).

    tau, qd, qdd: along the motion, for plots and arrows; tau (nv,) at a single q, where else the torques that hold the
    robot are drawn. f_ext: external forces as of `inverse_dynamics`, at q or at every time. quantities: further curves
    by name, (samples,) or (samples, k). others: further robots as (robot, q, placement). law: a function that gives for
    a target q what `simulate` takes as torque, for the tab "Live". frame: whose ellipsoid and handle are shown.
    visuals: a URDF or MJCF file with the links' shapes, if not the one the robot was read from. host: this machine
    alone unless said. port: the first free one from 8080 on. browser: open one; unless said, where there is a screen.
    plain: without shadows, for pages without graphics hardware.
    """
    checked_robot(robot, "the viewer")
    moving = t is not None
    q = robot.neutral() if q is None else as_numbers("q", q)
    opacity = as_share("opacity", opacity)
    if not moving and q.ndim != 1:
        raise ArgumentError(f"show got q of shape {q.shape} without times, expected (nq,), or t (samples,) with it.")
    forces = forces_by_frame(robot, f_ext)
    scene = Scene(host=host, port=port, title=robot.name, plain=plain)
    try:
        start = q[0] if moving and q.ndim == 2 and len(q) else q
        robots = [scene.add(robot, start, placement, visuals=visuals, opacity=opacity)]
        tracks = [q]
        for other in others:
            each, its_q, its_placement = _other(other)
            its_q = each.neutral() if its_q is None else as_numbers("q", its_q)
            robots.append(scene.add(each, its_q[0] if its_q.ndim == 2 else its_q, its_placement))
            tracks.append(its_q)
        motion = None
        if moving:
            known = {"qd": qd, "qdd": qdd, "tau": tau, **(quantities or {})}
            given = {name: values for name, values in known.items() if values is not None}
            motion = checked_motion(robots, t, tracks, given, forces)
        viewer = Viewer(scene, robots, motion, frame=frame, forces=forces, law=law, tau=None if moving else tau)
        if forces:
            viewer.show_layer("forces")
    except BaseException:
        scene.close()
        raise
    server.open_browser(scene.server, browser)
    return viewer


def _other(other: object) -> tuple[Robot, ArrayLike | None, ArrayLike | None]:
    """A further robot: alone, with q, or with q and a placement."""
    parts = tuple(other) if isinstance(other, (tuple, list)) else (other,)
    if not 1 <= len(parts) <= 3:
        raise ArgumentError(f"show got another robot as {shown(other)}, expected (robot, q, placement).")
    robot, q, placement = (*parts, None, None)[:3]
    return checked_robot(robot, "the viewer"), cast("ArrayLike | None", q), cast("ArrayLike | None", placement)


def show_run(run: Simulation, *, rollouts: ArrayLike | None = None, **options: Unpack[ViewOptions]) -> Viewer:
    """Show a Simulation: of a batch the first rollouts, one robot for each side by side, with plots of the first."""
    count = int(np.prod(run.batch)) if run.batch else 1
    if count == 0 or len(run.t) < 2:
        raise ArgumentError(f"show got {run!r}, expected a run with at least one rollout and two moments.")
    which = (
        range(min(count, MOST_ROLLOUTS)) if rollouts is None else np.atleast_1d(np.asarray(rollouts)).ravel().tolist()
    )
    if not len(which) or any(not isinstance(k, int) or not 0 <= k < count for k in which):
        raise ArgumentError(f"rollouts is {shown(rollouts)}, expected numbers of rollouts from 0 to {count - 1}.")
    flat = {name: getattr(run, name).reshape(len(run.t), count, -1) for name in ("q", "qd", "qdd", "tau")}
    first = which[0]
    own = {name: values[:, first] for name, values in flat.items()}
    energies = {}
    if run.robot.has_inertia:
        both = (
            run.kinetic_energy.reshape(len(run.t), count)[:, first],
            run.potential_energy.reshape(len(run.t), count)[:, first],
        )
        energies = {"energy (J)": both[0] + both[1], "kinetic energy (J)": both[0], "potential energy (J)": both[1]}
    others = [(run.robot, flat["q"][:, k], None) for k in which[1:]]
    shown_too: ViewOptions = {"qd": own["qd"], "qdd": own["qdd"], "tau": own["tau"], "quantities": energies}
    browser = options.pop("browser", None)
    viewer = show(run.robot, own["q"], run.t, **{**shown_too, "others": others, **options}, browser=False)
    if len(which) > 1 and "others" not in options:
        viewer.place_side_by_side()
    server.open_browser(viewer.scene.server, browser)
    return viewer


def _along_axis(direction: np.ndarray, other_than: np.ndarray) -> np.ndarray:
    """The axis of the world, with its sign, that is nearest to a direction and not `other_than`."""
    size = np.abs(direction) * (other_than == 0.0)
    axis = np.zeros(3)
    axis[size.argmax()] = np.sign(direction[size.argmax()])
    return axis


def _largest(values: ArrayLike | None) -> float:
    if values is None:
        return 0.0
    array = np.abs(np.asarray(values, dtype=float))
    return float(np.nanmax(array)) if array.size and np.isfinite(array).any() else 0.0
