"""Animations: what animate returns, and the bar while it draws."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest

import linksweep as ls

pytest.importorskip("matplotlib", reason="animations are drawn by Matplotlib: pip install matplotlib")
from PIL import Image

from linksweep import plots
from linksweep.plots import drawing

ARM = ls.robots.planar(2)
T = np.linspace(0.0, 0.8, 9)
Q = np.column_stack([T, -2 * T])


def test_returned_object_is_the_file(tmp_path: Path):
    made = plots.animate(ARM, T, Q, tmp_path / "a.gif", fps=5.0, dpi=30.0)
    assert made.data == (tmp_path / "a.gif").read_bytes() and made.path == tmp_path / "a.gif"
    with Image.open(io.BytesIO(made.data)) as picture:
        assert picture.n_frames == made.frames == 5  # type: ignore[attr-defined]
    assert made.duration == 1.0 and "data=" not in repr(made)


def test_without_a_path_it_is_in_memory_and_shows_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    made = plots.animate(ARM, T, Q, fps=5.0, dpi=30.0)
    assert made.path is None and not list(tmp_path.iterdir())
    shown = re.fullmatch(r'<img src="data:image/gif;base64,([^"]+)" alt="a robot in motion">', made._repr_html_())
    assert shown and base64.b64decode(shown[1]) == made.data
    made.save("b.gif")
    assert (tmp_path / "b.gif").read_bytes() == made.data
    with pytest.raises(ls.ArgumentError, match=r"has the suffix '\.mp4', expected \.gif") as error:
        made.save("b.mp4")
    assert "\n" not in str(error.value) and not (tmp_path / "b.mp4").exists()


def test_progress_goes_from_nothing_to_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    seen: list[float] = []

    class Watch(drawing.ProgressBar):
        def __call__(self, fraction: float) -> None:
            assert self.title == "drawing planar2"
            seen.append(fraction)

    monkeypatch.setattr(drawing, "ProgressBar", Watch)
    plots.animate(ARM, T, Q, tmp_path / "a.gif", fps=5.0, dpi=30.0)
    assert seen == [0.2, 0.4, 0.6, 0.8, 1.0]
