"""A motion over time: what is shown at which moment, and the time slider, play button and speed that choose it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError, ModelWarning, warn_user

from ..checks import as_numbers
from ..shown_robot import ShownRobot

if TYPE_CHECKING:
    from ..server import Handle

SPEEDS = ("0.05", "0.1", "0.25", "0.5", "1", "2", "5", "10")


@dataclass
class Motion:
    """Times (n,), and for each robot its coordinates (n, nq); of the first one also what plots and arrows show.

    quantities: q, qd, qdd, tau (n, ...), and any other by name (n,) or (n, k). forces: {frame: (n, 6)}.
    """

    t: np.ndarray
    tracks: list[tuple[ShownRobot, np.ndarray]]
    quantities: dict[str, np.ndarray] = field(default_factory=dict)
    forces: Mapping[str, np.ndarray] = field(default_factory=dict)

    def index(self, t: float) -> int:
        """The sample nearest to a time."""
        return int(np.argmin(np.abs(self.t - t))) if len(self.t) < 3 else self._nearest(t)

    def _nearest(self, t: float) -> int:
        k = int(np.clip(np.searchsorted(self.t, t), 1, len(self.t) - 1))
        return k - 1 if t - self.t[k - 1] <= self.t[k] - t else k

    def q_at(self, track: int, t: float) -> np.ndarray:
        """The coordinates of a robot: a sample, or between two of them the way at constant rates."""
        shown, q = self.tracks[track]
        k = int(np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, len(self.t) - 2))
        share = (t - self.t[k]) / (self.t[k + 1] - self.t[k])
        if share <= 1e-6 or share >= 1.0 - 1e-6:
            return q[k if share < 0.5 else k + 1]
        robot = shown.robot
        return robot.integrate(q[k], robot.difference(q[k], q[k + 1]), share)


def checked_motion(
    robots: Sequence[ShownRobot],
    t: ArrayLike,
    qs: Sequence[ArrayLike],
    quantities: Mapping[str, ArrayLike],
    forces: Mapping[str, np.ndarray],
) -> Motion:
    """A Motion, checked; what comes after the first moment that is not finite is cut off, with a warning."""
    t = as_numbers("t", t)
    if t.ndim != 1 or len(t) < 2 or not np.isfinite(t).all() or (np.diff(t) <= 0).any():
        raise ArgumentError(
            f"the viewer got times of shape {t.shape}, expected (samples,), two or more, each later than the last."
        )
    tracks = []
    for shown, q in zip(robots, qs, strict=True):
        q = np.asarray(q, dtype=float)
        if q.shape == (shown.robot.nq,):
            q = np.broadcast_to(q, (len(t), shown.robot.nq))
        if q.shape != (len(t), shown.robot.nq):
            raise ArgumentError(
                f"the viewer got q of shape {q.shape} for {shown.robot.name}, expected ({len(t)}, {shown.robot.nq}): a "
                f"row for each time, a column for each coordinate."
            )
        tracks.append((shown, q))
    finite = np.logical_and.reduce([np.isfinite(q).all(axis=1) for _, q in tracks])
    last = len(t) if finite.all() else int(finite.argmin())
    if last < len(t):
        if last < 2:
            raise ArgumentError("the viewer got q that is not finite from the start, expected a motion that is.")
        warn_user(
            f"the motion of {tracks[0][0].robot.name} leaves the finite numbers at t = {t[last]:g} s: shown up to "
            f"there.",
            ModelWarning,
        )
    named = {}
    for name, values in {"q": tracks[0][1], **quantities}.items():
        array = as_numbers(name, values)
        if array.shape[:1] != t.shape or array.ndim > 2:
            raise ArgumentError(
                f"the viewer got {name} of shape {array.shape}, expected a row for each of {len(t)} times."
            )
        named[name] = array[:last]
    rows = {}
    for name, values in forces.items():
        array = np.asarray(values, dtype=float)
        rows[name] = np.broadcast_to(array, (len(t), 6))[:last] if array.ndim == 1 else array[:last]
        if rows[name].shape != (last, 6):
            raise ArgumentError(f"the viewer got a force of shape {array.shape} at {name!r}, expected ({len(t)}, 6).")
    return Motion(t[:last], [(shown, q[:last]) for shown, q in tracks], named, rows)


class TimeControls:
    """Time slider, play button, speed and loop.

    `seek(t, by_slider)` is called when a user chooses a time. In the page the slider holds the time that is shown: the
    plots mark its value. A time that comes from the slider is not written back to it, because the user may have moved
    it on since.
    """

    def __init__(self, gui: Handle, start: float, end: float, samples: int, seek: Callable[[float, bool], None]):
        self.start, self.end, self._seek = start, end, seek
        self.playing = False
        self.time = start
        step = 10.0 ** np.floor(np.log10((end - start) / max(min(samples, 5000), 10)))
        self.slider = gui.add_slider("time (s)", start, end, float(step), start)
        self.button = gui.add_button_group("motion", ("play", "pause", "restart"))
        self.speed = gui.add_dropdown("speed", SPEEDS, initial_value="1", hint="seconds shown for each second")
        self.loop = gui.add_checkbox("loop", True)
        self.slider.on_update(self._slid)
        self.button.on_click(self._pressed)

    async def _slid(self, event: Handle) -> None:
        """Read the value at once, as a coroutine: in another thread it may be overwritten while the motion plays."""
        if event.client is not None:
            self._seek(float(self.slider.value), True)

    def _pressed(self, event: Handle) -> None:
        wanted = self.button.value
        if wanted == "play":
            self.play()
        else:
            self.playing = False
            if wanted == "restart":
                self._seek(self.start, False)

    def play(self) -> None:
        if self.time >= self.end:
            self._seek(self.start, False)
        self.playing = True

    def advance(self, seconds: float) -> float:
        """The moment after so many seconds in front of the page; at the end it begins again, or stops."""
        t = self.time + seconds * float(self.speed.value)
        if t >= self.end:
            if self.loop.value:
                t = self.start + (t - self.start) % (self.end - self.start)
            else:
                t, self.playing = self.end, False
        return t

    def show(self, t: float, by_slider: bool = False) -> None:
        """Note that t is shown, and move the slider there if it did not choose t."""
        self.time = t
        if not by_slider:
            self.slider.value = min(max(t, self.start), self.end)
