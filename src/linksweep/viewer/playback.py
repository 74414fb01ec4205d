"""A motion over time, and the timeline that selects the time shown: slider, play buttons, keys, speed and loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError, ModelWarning, warn_user
from linksweep.support.checks import real_array

from .scene import ShownRobot
from .server import Handle

SPEEDS = ("0.05", "0.1", "0.25", "0.5", "1", "2", "5", "10")
KEY_STEP = 1.0 / 30.0  # seconds: what an arrow key moves at speed 1, if the samples are not farther apart


@dataclass
class Motion:
    """Times (n,), and coordinates (n, nq) for each robot; for the first one also signals for plots and arrows.

    quantities: q, qd, qdd, tau (n, ...), and others by name, (n,) or (n, k). forces: {frame: (n, 6)}.
    """

    t: np.ndarray
    tracks: list[tuple[ShownRobot, np.ndarray]]
    quantities: dict[str, np.ndarray] = field(default_factory=dict)
    forces: Mapping[str, np.ndarray] = field(default_factory=dict)

    def index(self, t: float) -> int:
        """Return the index of the sample nearest to a time."""
        k = int(np.clip(np.searchsorted(self.t, t), 1, len(self.t) - 1))
        return k - 1 if t - self.t[k - 1] <= self.t[k] - t else k

    def q_at(self, track: int, t: float) -> np.ndarray:
        """Return the coordinates of a robot at a time, interpolated at constant velocity between samples."""
        shown, q = self.tracks[track]
        k = int(np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 2))
        fraction = (t - self.t[k]) / (self.t[k + 1] - self.t[k])
        if fraction <= 1e-6 or fraction >= 1.0 - 1e-6:
            return q[k if fraction < 0.5 else k + 1]
        robot = shown.robot
        return robot.integrate(q[k], robot.difference(q[k], q[k + 1]), fraction)


def checked_motion(
    robots: Sequence[ShownRobot],
    t: ArrayLike,
    qs: Sequence[ArrayLike],
    quantities: Mapping[str, ArrayLike],
    forces: Mapping[str, np.ndarray],
) -> Motion:
    """Return a checked Motion; samples from the first one that is not finite are cut off, with a warning."""
    t = real_array("t", t, finite=True, dtype=float)
    if t.ndim != 1 or len(t) < 2 or (np.diff(t) <= 0).any():
        raise ArgumentError(f"t has shape {t.shape}, expected (samples,), two or more, in increasing order.")
    tracks = []
    for shown, q in zip(robots, qs, strict=True):
        q = real_array("q", q, dtype=float)
        if q.shape == (shown.robot.nq,):
            q = np.broadcast_to(q, (len(t), shown.robot.nq))
        if q.shape != (len(t), shown.robot.nq):
            raise ArgumentError(
                f"q of {shown.robot.name} has shape {q.shape}, expected ({len(t)}, {shown.robot.nq}): a row for each "
                f"time, a column for each coordinate."
            )
        tracks.append((shown, q))
    finite = np.logical_and.reduce([np.isfinite(q).all(axis=1) for _, q in tracks])
    last = len(t) if finite.all() else int(finite.argmin())
    if last < len(t):
        if last < 2:
            raise ArgumentError("q is not finite in its first two samples, expected a finite motion.")
        warn_user(
            f"the motion of {tracks[0][0].robot.name} diverges (NaN or inf) at t = {t[last]:g} s and is shown until "
            f"then.",
            ModelWarning,
        )
    signals = {}
    for name, values in {"q": tracks[0][1], **quantities}.items():
        array = real_array(name, values, dtype=float)
        if array.shape[:1] != t.shape or array.ndim > 2:
            raise ArgumentError(f"{name} has shape {array.shape}, expected a row for each of {len(t)} times.")
        signals[name] = array[:last]
    wrenches = {}
    for name, values in forces.items():
        wrenches[name] = np.broadcast_to(values, (len(t), 6))[:last] if values.ndim == 1 else values[:last]
        if wrenches[name].shape != (last, 6):
            raise ArgumentError(f"f_ext at {name!r} has shape {values.shape}, expected ({len(t)}, 6).")
    return Motion(t[:last], [(shown, q[:last]) for shown, q in tracks], signals, wrenches)


class TimeControls:
    """Time slider, play buttons and keys, speed and loop.

    `seek(t, by_slider)` is called when the user selects a time. The slider holds the time that is shown, and the plots
    mark its value. A time that comes from the slider is not written back to it, because the user may have moved it on
    in the meantime.
    """

    def __init__(self, gui: Handle, motion: Motion, seek: Callable[[float, bool], None], wake: Callable[[], None]):
        """wake: called when the motion starts to play."""
        self.start, self.end = float(motion.t[0]), float(motion.t[-1])
        self._seek, self._wake = seek, wake
        self.playing = False
        self.time = self.start
        samples = len(motion.t)
        self._spacing = (self.end - self.start) / (samples - 1)
        step = 10.0 ** np.floor(np.log10((self.end - self.start) / max(min(samples, 5000), 10)))
        self.panel = gui.add_panel()
        with self.panel.add_tab("Timeline"):
            self.slider = gui.add_slider("time (s)", self.start, self.end, float(step), self.start)
            self.buttons = gui.add_button_group("", ("play", "pause", "restart"))
        self.panel.float(x=12.0, y=-12.0, width=560.0)  # a script in the page sets the full width
        self.speed = gui.add_dropdown("speed", SPEEDS, initial_value="1", hint="1 is real time")
        self.loop = gui.add_checkbox("loop", True)
        self.slider.on_update(self._slid)
        self.buttons.on_click(self._pressed)
        commands = {
            "space": ("Play or pause", self._toggle),
            "home": ("Go to the start", lambda: seek(self.start, False)),
            "end": ("Go to the end", lambda: seek(self.end, False)),
            "arrowleft": ("Step back", lambda: self._step(-1.0)),
            "arrowright": ("Step forward", lambda: self._step(1.0)),
        }
        self.commands: dict[str, Handle] = {}
        for key, (label, action) in commands.items():
            self.commands[key] = gui.add_command(label, hotkey=key)
            self.commands[key].on_trigger(lambda event, action=action: action())

    async def _slid(self, event: Handle) -> None:
        """Read the value at once, as a coroutine: in another thread it may be overwritten while the motion plays."""
        if event.client is not None:
            self._seek(float(self.slider.value), True)

    def _pressed(self, event: Handle) -> None:
        if self.buttons.value == "play":
            self.play()
        else:
            self.playing = False
            if self.buttons.value == "restart":
                self._seek(self.start, False)

    def _toggle(self) -> None:
        if self.playing:
            self.playing = False
        else:
            self.play()

    def _step(self, direction: float) -> None:
        step = max(self._spacing, KEY_STEP * float(self.speed.value))
        self._seek(min(max(self.time + direction * step, self.start), self.end), False)

    def play(self) -> None:
        """Play from the present time, or from the start if it is at the end."""
        if self.time >= self.end:
            self._seek(self.start, False)
        self.playing = True
        self._wake()

    def advance(self, seconds: float) -> float:
        """Return the time shown after this many seconds of real time; at the end it starts again or stops."""
        t = self.time + seconds * float(self.speed.value)
        if t >= self.end:
            if self.loop.value:
                t = self.start + (t - self.start) % (self.end - self.start)
            else:
                t, self.playing = self.end, False
        return t

    def show(self, t: float, by_slider: bool = False) -> None:
        """Store the time that is shown, and move the slider there unless the time came from it."""
        self.time = t
        if not by_slider:
            self.slider.value = min(max(t, self.start), self.end)
