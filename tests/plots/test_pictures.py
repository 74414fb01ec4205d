"""What pictures say: quantities on axes, curves that lie on each other, planar arms face on, names of frames."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linksweep as ls

matplotlib: Any = pytest.importorskip("matplotlib", reason="pictures are drawn by matplotlib: pip install matplotlib")

from linksweep import plots  # noqa: E402

T = np.linspace(0.0, 1.0, 20)
WAVES = np.sin(np.outer(T, np.arange(1, 3)))


def texts(figure: Any) -> list[str]:
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text)]


@pytest.mark.parametrize(
    ("quantity", "label"), [("q", "angle (rad)"), ("qd", "velocity (rad/s)"), ("tau", "torque (N m)")]
)
def test_axes_name_the_quantity(quantity: str, label: str):
    arm = ls.robots.planar(2)
    assert [axes.get_ylabel() for axes in plots.time_series(arm, T, WAVES, quantity).axes] == [label] * 2
    assert [axes.get_ylabel() for axes in plots.time_series(arm, T, WAVES, quantity, overlay=True).axes] == [label]


def test_curves_that_coincide_are_said():
    arm = ls.robots.planar(2)
    other = WAVES.copy()
    other[:, 1] += 0.5
    shown = texts(plots.time_series(arm, T, {"one": WAVES, "two": WAVES, "three": other}))
    assert shown.count("all coincide") == 1 and shown.count("one and two coincide") == 1
    assert not any("coincide" in text for text in texts(plots.time_series(arm, T, {"one": WAVES, "two": WAVES + 0.1})))
    assert "joint1 and joint2 coincide" in " ".join(
        texts(plots.overlaid(plots.channels(ls.robots.planar(3), "q"), T, np.c_[WAVES[:, 0], WAVES[:, 0], 0 * T]))
    )


def test_planar_arms_are_seen_face_on():
    for robot, view in ((ls.robots.planar(3), (90.0, -90.0)), (ls.robots.puma560(), (22.0, -58.0))):
        (axes,) = plots.sketch(robot).axes
        assert (axes.elev, axes.azim) == view
    (axes,) = plots.sketch(ls.robots.planar(3)).axes
    assert len(axes.zaxis.get_ticklocs()) == 0 and axes.get_zlabel() == ""
    (axes,) = plots.sketch(ls.robots.planar(3), view=(10, 20)).axes
    assert (axes.elev, axes.azim) == (10, 20)


def test_all_frames_have_their_names():
    robot = ls.robots.puma560()
    shown = " ".join(texts(plots.sketch(robot, frames="all")))
    assert all(name in shown for name in robot.frame_names)
    assert "link3" not in " ".join(texts(plots.sketch(robot)))


def test_formulas_have_dots():
    pytest.importorskip("sympy", reason="formulas are SymPy's: pip install sympy")
    torques = ls.robots.planar(2).symbolic("inverse_dynamics", simplify=True)
    shown = torques._repr_latex_()
    assert shown is not None and r"\dot{q}_{1}" in shown and r"\ddot{q}_{2}" in shown and "qd" not in shown
    named = ls.robots.planar(1).symbolic("inverse_dynamics", names="joints")._repr_latex_()
    assert named is not None and r"\ddot{q}_{joint1}" in named
