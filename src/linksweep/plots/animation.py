"""A robot in motion, as a GIF or an MP4."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError, BackendError
from linksweep.plots.figures import new_figure, numbers, plain
from linksweep.plots.sketch import Scene
from linksweep.support.files import write_atomically
from linksweep.support.progress import ProgressBar

if TYPE_CHECKING:
    from matplotlib.animation import FFMpegWriter, PillowWriter

    from linksweep.robot.robot import Robot

MOST_PICTURES = 100_000  # hours of drawing


@dataclass(frozen=True)
class Animation:
    """A motion that was drawn: a notebook plays it.

    data: the file's bytes, of the `kind` ".gif" or ".mp4". frames: how many pictures, fps: of them a second. path:
    where it was written, None if nowhere.
    """

    data: bytes = field(repr=False)
    kind: str
    frames: int
    fps: float
    path: Path | None = None

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.frames / self.fps

    def save(self, path: str | Path) -> None:
        """Write it, whole or not at all; the ending must be that of its kind."""
        path = Path(path)
        if path.suffix.lower() != self.kind:
            raise ArgumentError(
                f"the animation {path} has the ending {path.suffix!r}, expected {self.kind}: for another kind name the "
                f"file in animate."
            )
        write_atomically(path, lambda to: _write_bytes(to, self.data))

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.data).decode()
        if self.kind == ".gif":
            return f'<img src="data:image/gif;base64,{data}" alt="a robot in motion">'
        return f'<video controls loop src="data:video/mp4;base64,{data}"></video>'


def _write_bytes(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def animate(
    robot: Robot, t: ArrayLike, q: ArrayLike, path: str | Path | None = None, *, fps: float = 20.0,
    view: tuple[float, float] | None = None, title: str | None = None, axes: bool = False,
    frames: str | Sequence[str] | None = None, com: bool = False, dpi: float = 80.0, progress: bool = True,
) -> Animation:  # fmt: skip
    """The motion q (samples, nq) at times t (samples,) in real time, as sketches; a notebook shows what is returned.

    The ending of `path` chooses: .gif needs Pillow, which comes with Matplotlib, .mp4 needs ffmpeg; without a path it
    is a GIF in memory. Between samples the nearest one is shown. progress: a bar, where there is somebody to see it.
    """
    if path is None:
        with tempfile.TemporaryDirectory() as folder:
            made = animate(robot, t, q, Path(folder) / "motion.gif", fps=fps, view=view, title=title, axes=axes,
                           frames=frames, com=com, dpi=dpi, progress=progress)  # fmt: skip
        return replace(made, path=None)
    path = Path(path)
    t, q = numbers("t", t), numbers("q", q)
    if t.ndim != 1 or not len(t) or not np.isfinite(t).all() or (np.diff(t) <= 0).any():
        raise ArgumentError(
            f"animate got times of shape {t.shape}, expected (samples,), each later than the one before."
        )
    if q.shape != (len(t), robot.nq):
        raise ArgumentError(
            f"animate got q of shape {q.shape}, expected ({len(t)}, {robot.nq}): a row for each time, a column for "
            f"each coordinate."
        )
    new_figure(1.0, 1.0)  # says what to install if Matplotlib is not there
    writer = _writer(path, fps)
    if (t[-1] - t[0]) * fps > MOST_PICTURES:
        raise ArgumentError(
            f"animate got {t[-1] - t[0]:g} s, {(t[-1] - t[0]) * fps:.3g} pictures, expected at most {MOST_PICTURES}: "
            "give a part of it, or fewer fps."
        )
    moments = np.arange(t[0], t[-1] + 0.5 / fps, 1.0 / fps)
    nearest = np.searchsorted(0.5 * (t[1:] + t[:-1]), moments)
    scene = Scene(robot, q[nearest], axes=axes, frames=frames, com=com)
    heading = plain(robot.name) if title is None else title
    figure = scene.figure(view, heading)
    # the layout is found once, at the first picture: otherwise the robot would jump
    scene.draw(0)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")

    def write(to: Path) -> None:
        with writer.saving(figure, str(to), dpi), ProgressBar(f"drawing {heading}", progress) as watch:
            for sample, moment in enumerate(moments):
                scene.title = f"{heading}, t = {moment:.2f} s"
                scene.draw(sample)
                writer.grab_frame()
                watch((sample + 1) / len(moments))

    write_atomically(path, write)
    return Animation(path.read_bytes(), path.suffix.lower(), len(moments), float(fps), path)


def _writer(path: Path, fps: float) -> FFMpegWriter | PillowWriter:
    from matplotlib.animation import FFMpegWriter, PillowWriter

    kinds = {".gif": PillowWriter, ".mp4": FFMpegWriter}
    kind = kinds.get(path.suffix.lower())
    if kind is None:
        raise ArgumentError(f"the animation {path} has the ending {path.suffix!r}, expected .gif or .mp4.")
    if not 0 < fps <= 100:
        raise ArgumentError(f"animate got fps = {fps!r}, expected pictures per second, between 0 and 100.")
    if not kind.isAvailable():
        raise BackendError(
            f"The animation {path} needs ffmpeg, which is not installed: install it, or write a .gif instead."
        )
    return kind(fps=fps)
