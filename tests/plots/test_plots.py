"""Plots: units, limits, shapes, files; what they draw is what they were given, and nothing global changes."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
import weakref
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from PIL import Image
from robots_for_tests import robot

import linksweep as ls
from linksweep import plots
from linksweep.errors import ArgumentError, BackendError, LinksweepError
from linksweep.model.model import Limits
from linksweep.plots.drawing import Scene

T = np.linspace(0.0, 2.0, 21)


def waves(width: int) -> np.ndarray:
    return np.sin(T[:, None] * np.arange(1, width + 1)) * np.arange(1, width + 1)


def with_limits(bot: ls.Robot, **limits: float) -> ls.Robot:
    links = tuple(replace(link, joint=replace(link.joint, limits=Limits(**limits))) for link in bot.model.links)
    return ls.Robot(replace(bot.model, links=links))


def curves(axes: Any) -> list[Any]:
    """The lines with more than one point on them, without the zero line."""
    return [line for line in axes.lines if len(line.get_xdata()) > 2]


def texts(figure: Any) -> str:
    return " ".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))  # pyright: ignore


def test_units_follow_the_kind_of_joint():
    units = {name: [c.unit for c in plots.channels(robot("stanford"), name)] for name in ("q", "qd", "qdd", "tau")}
    assert units == {
        "q": ["rad", "rad", "m", "rad", "rad", "rad"],
        "qd": ["rad/s", "rad/s", "m/s", "rad/s", "rad/s", "rad/s"],
        "qdd": ["rad/s²", "rad/s²", "m/s²", "rad/s²", "rad/s²", "rad/s²"],
        "tau": ["N m", "N m", "N", "N m", "N m", "N m"],
    }


def test_channels_of_a_floating_base():
    bot = robot("puma560").with_base("floating")
    q, tau = plots.channels(bot, "q"), plots.channels(bot, "tau")
    assert len(q) == bot.nq and len(tau) == bot.nv
    assert [c.unit for c in q[:7]] == ["", "", "", "", "m", "m", "m"]
    assert [c.unit for c in tau[:6]] == ["N m", "N m", "N m", "N", "N", "N"]
    assert len({c.name for c in q}) == bot.nq


def test_limits_are_the_joints_own():
    bot = with_limits(robot("puma560"), lower=-1.0, upper=2.0, velocity=3.0, effort=4.0)
    found = [(c.low, c.high) for name in ("q", "qd", "tau", "qdd") for c in plots.channels(bot, name)[:1]]
    assert found == [(-1.0, 2.0), (-3.0, 3.0), (-4.0, 4.0), (-np.inf, np.inf)]


@pytest.mark.quick
def test_panels_draw_what_they_are_given():
    tau = waves(6)
    figure = plots.time_series(robot("puma560"), T, tau)
    assert len(figure.axes) == 6
    for k, axes in enumerate(figure.axes):
        (line,) = curves(axes)
        np.testing.assert_array_equal(line.get_xdata(), T)
        np.testing.assert_array_equal(line.get_ydata(), tau[:, k])
        assert axes.get_ylabel() == "torque (N m)"
        low, high = axes.get_ylim()
        assert low <= tau[:, k].min() and high >= tau[:, k].max()
    shown = texts(figure)
    assert all(name in shown for name in robot("puma560").joint_names)
    peak = tau[np.abs(tau[:, 5]).argmax(), 5]
    assert f"peak {peak:.3g} N m".replace("-", "−") in shown


def test_near_limits_are_shaded_and_far_ones_are_said():
    bot = with_limits(robot("puma560"), effort=1.2)
    for scale, shaded in ((1.0, 2), (2.0, 2), (1e-3, 0)):
        figure = plots.time_series(bot, T, scale * np.sin(np.pi * T)[:, None] * np.ones(6))
        assert {len(axes.patches) for axes in figure.axes} == {shaded}
        assert ("limits ±1.2" in texts(figure)) == (shaded == 0)
        if shaded:
            low, high = figure.axes[0].get_ylim()
            assert low < -1.2 and high > 1.2
    assert not any(axes.patches for axes in plots.time_series(bot, T, waves(6), limits=False).axes)


def test_rounding_is_not_blown_up():
    tau = waves(6)
    tau[:, 5] = 1e-15 * np.sin(9 * T)
    figure = plots.time_series(robot("puma560"), T, tau)
    assert figure.axes[5].get_ylim()[1] > 0.5
    assert "0 N m" in texts(figure) and "peak 0 N m" not in texts(figure)


def test_several_curves_share_panels_and_a_legend():
    figure = plots.time_series(robot("stanford"), T, {"kane": waves(6), "influence": -waves(6)})
    first, second = curves(figure.axes[2])
    assert first.get_color() != second.get_color() and first.get_linestyle() != second.get_linestyle()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["kane", "influence"]


def test_overlay_has_a_panel_for_each_unit():
    figure = plots.time_series(robot("stanford"), T, waves(6), overlay=True)
    assert [axes.get_ylabel() for axes in figure.axes] == ["torque (N m)", "force (N)"]
    assert [len(curves(axes)) for axes in figure.axes] == [5, 1]


def test_lines_are_told_apart_in_grey():
    """The first 42 differ in colour or dashes, neighbours in both."""
    from linksweep.plots.figures import line_style

    styles = [line_style(k) for k in range(42)]
    assert len({(style["color"], style["linestyle"]) for style in styles}) == 42
    for a, b in pairwise(styles):
        assert a["color"] != b["color"] and a["linestyle"] != b["linestyle"]


def test_phase_and_errors_and_bars():
    bot = robot("puma560").with_base("floating")
    q, qd = np.tile(bot.neutral(), (21, 1)), waves(bot.nv)
    figure = plots.phase(bot, q, qd)
    assert len(figure.axes) == 3 + 6  # the base's position and the joints; a quaternion has no velocity of its own
    figure = plots.errors(T, {"a": np.where(T > 1, 1e-12, 0.0)}, bar=1e-9)
    assert figure.axes[0].get_yscale() == "log"
    assert np.isnan(np.asarray(figure.axes[0].lines[0].get_ydata())[0])
    figure = plots.bars({"then": 200.0, "now": 4e6})
    assert [getattr(patch, "get_width")() for patch in figure.axes[0].patches] == [200.0, 4e6]  # noqa: B009
    with pytest.raises(ArgumentError, match="not positive"):
        plots.bars({"never": 0.0})


def test_heat_and_logarithmic_lines():
    table = np.array([[1.0, -0.25], [np.nan, 0.5]])
    figure = plots.heat(table, x=["a", "b"], y=["c", "d"], label="correlation")
    axes, bar = figure.axes
    assert [text.get_text() for text in axes.texts][:2] == ["1.00", "-0.25"] and bar.get_ylabel() == "correlation"
    figure = plots.heat(np.abs(table), x=[0.0, 1.0], y=[2.0, 3.0])
    assert not figure.axes[0].texts and figure.axes[0].get_xlim() == (-0.5, 1.5)
    with pytest.raises(ArgumentError, match=r"shape \(2, 2\), expected one row for each y"):
        plots.heat(table, x=[0.0], y=[0.0, 1.0])
    axes = plots.lines([1.0, 10.0], {"a": [1.0, 2.0]}, log="xy").axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


@pytest.mark.cases(1)
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
@pytest.mark.slow
def test_files_parse_and_are_the_same_twice(tmp_path: Path, ending: str):
    written = []
    for name in ("a", "b"):
        plots.save(plots.time_series(robot("puma560"), T, waves(6)), tmp_path / f"{name}.{ending}")
        written.append((tmp_path / f"{name}.{ending}").read_bytes())
    assert written[0] == written[1]
    if ending == "png":
        with Image.open(tmp_path / "a.png") as image:
            assert image.size[0] > 1000
    elif ending == "svg":
        assert ElementTree.fromstring(written[0]).tag.endswith("svg")
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"a.{ending}", f"b.{ending}"]


def test_unknown_ending(tmp_path: Path):
    figure = plots.time_series(robot("puma560"), T, waves(6))
    with pytest.raises(ArgumentError, match=r"suffix '\.pgn' \(did you mean 'png'\?\), expected a format"):
        plots.save(figure, tmp_path / "x.pgn")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("values", "quantity", "message"),
    [
        (waves(5), "tau", r"shape \(21, 5\), expected \(21, 6\): a row for each time"),
        (waves(6)[:20], "tau", r"shape \(20, 6\), expected \(21, 6\)"),
        ({"kane": waves(6), "x": waves(4)}, "tau", r"an array 'x' of shape \(21, 4\)"),
        ({}, "tau", "no curves"),
        (waves(6), "torque", "quantity is 'torque'"),
    ],
)
def test_bad_series(values: Any, quantity: str, message: str):
    with pytest.raises(ArgumentError, match=message):
        plots.time_series(robot("puma560"), T, values, quantity)


@pytest.mark.slow
def test_nothing_global_changes_and_figures_go(tmp_path: Path):
    before = dict(matplotlib.rcParams)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = plots.time_series(robot("puma560"), T, waves(6))
        plots.save(figure, tmp_path / "a.svg")
        sketch = plots.sketch(robot("puma560"))
        plots.save(sketch, tmp_path / "b.png")
    assert dict(matplotlib.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
    gone = [weakref.ref(figure), weakref.ref(sketch)]
    del figure, sketch
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


@pytest.mark.slow
def test_plots_need_no_screen_and_no_pyplot():
    code = (
        "import sys, linksweep as ls, numpy as np; from linksweep import plots\n"
        "assert 'matplotlib' not in sys.modules\n"
        "plots.save(plots.sketch(ls.robots.planar(2)), sys.argv[1])\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    run = subprocess.run([sys.executable, "-c", code, "/dev/null/x.png"], capture_output=True, text=True)
    assert "cannot be written" in run.stderr.splitlines()[-1]  # it got as far as the file


# ---- sketches ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["puma560", "stanford", "tree9", "floating", "planar"])
def test_sketch_is_to_scale(name: str):
    special = {"planar": lambda: ls.robots.planar(5), "floating": lambda: robot("puma560").with_base("floating")}
    bot = special[name]() if name in special else robot(name)
    q = bot.random(np.random.default_rng(0))
    figure = plots.sketch(bot, q)
    (axes,) = figure.axes
    limits = np.array([axes.get_xlim3d(), axes.get_ylim3d(), axes.get_zlim3d()])  # pyright: ignore
    spans, box = np.ptp(limits, axis=1), np.array(axes._box_aspect)  # pyright: ignore
    assert np.allclose(spans / spans[0], box / box[0])
    places = bot.poses(q)[:, :3, 3]
    assert (places >= limits[:, 0]).all() and (places <= limits[:, 1]).all()


@pytest.mark.parametrize("name", ["ur5e", "stanford"])
def test_links_of_standard_tables_are_drawn_at_their_joints(name: str):
    """The frames of a standard DH table are at the far ends of its links."""
    bot = ls.load(name)
    q = np.random.default_rng(4).uniform(-1, 1, (1, bot.nq))
    scene = Scene(bot, q)
    coms = [scene._com(0, k) for k in range(len(bot.model.links))]
    assert np.allclose(scene.masses @ coms / scene.masses.sum(), bot.center_of_mass(q[0]), atol=1e-12)
    for k, link in enumerate(bot.model.links):
        parent, pose = scene._pose(0, link.parent), scene._pose(0, k)
        if link.joint.kind == "revolute":
            assert np.allclose(pose[:3, 3], parent[:3, :3] @ link.joint.placement.position + parent[:3, 3], atol=1e-12)


def test_sketch_marks_the_mass_centre():
    bot = robot("puma560")
    q = np.array([0.3, -0.7, 0.4, 0.1, 0.9, 0.0])
    scene = Scene(bot, q[None])
    scene.figure((20.0, -60.0), "")
    scene.draw(0)
    marked = [np.array(c._offsets3d).T for c in scene.axes.collections if hasattr(c, "_offsets3d")]  # pyright: ignore
    assert any(np.allclose(points, bot.center_of_mass(q)) for points in marked if len(points) == 1)


def test_joint_axes_are_those_of_the_jacobian():
    """A revolute joint's dashed line runs along the axis about which the Jacobian turns everything beyond it."""
    bot = robot("puma560")
    q = np.array([0.3, -0.7, 0.4, 0.1, 0.9, 0.2])
    segments = Scene(bot, q[None])._axes_of_joints(0)
    turning = bot.jacobian(q, "tool")[:3]
    for k, (start, end) in enumerate(segments):
        direction = (end - start) / np.linalg.norm(end - start)
        assert np.abs(direction - turning[:, k]).max() <= 1e-12


def test_bad_sketches():
    bot = robot("puma560")
    with pytest.raises(ArgumentError, match=r"shape \(2, 6\), expected one configuration"):
        plots.sketch(bot, np.zeros((2, 6)))
    with pytest.raises(ArgumentError, match=r"no frame 'tol' \(did you mean 'tool'\?\)"):
        plots.sketch(bot, frames=["tol"])
    with pytest.raises(LinksweepError, match="expected"):
        plots.sketch(bot, np.zeros(5))


def test_coupled_robots_can_be_drawn():
    links = [{"alpha": 0, "a": 0.5, "d": 0, "mass": 1.0, "inertia": [0.1, 0.1, 0.1]} for _ in range(3)]
    free = ls.Robot.from_dh(links, "modified")
    coupled = free.with_couplings([ls.Coupling("joint3", "joint2")])
    figure = plots.sketch(coupled, np.array([0.2, 0.4]))
    assert len(figure.axes) == 1
    assert [c.name for c in plots.channels(coupled, "tau")] == ["joint1", "joint2"]


# ---- animations ----------------------------------------------------------------------------------------------------


def test_gif_runs_in_real_time(tmp_path: Path):
    t = np.linspace(0.0, 0.4, 9)
    q = np.stack([np.sin(t), np.cos(t)], axis=1)
    plots.animate(ls.robots.planar(2), t, q, tmp_path / "a.gif", fps=10.0, dpi=40.0)
    with Image.open(tmp_path / "a.gif") as image:
        assert getattr(image, "n_frames", 1) == 5
        assert image.info["duration"] == 100
    assert [path.name for path in tmp_path.iterdir()] == ["a.gif"]


def test_bad_animations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bot, t, q = ls.robots.planar(2), np.array([0.0, 0.1]), np.zeros((2, 2))
    with pytest.raises(ArgumentError, match=r"suffix '\.avi', expected \.gif or \.mp4"):
        plots.animate(bot, t, q, tmp_path / "a.avi")
    with pytest.raises(ArgumentError, match=r"q of shape \(2, 3\), expected \(2, 2\)"):
        plots.animate(bot, t, np.zeros((2, 3)), tmp_path / "a.gif")
    with pytest.raises(ArgumentError, match="each later"):
        plots.animate(bot, t[::-1], q, tmp_path / "a.gif")
    with pytest.raises(ArgumentError, match="fps = 0"):
        plots.animate(bot, t, q, tmp_path / "a.gif", fps=0)
    monkeypatch.setattr("matplotlib.animation.FFMpegWriter.isAvailable", classmethod(lambda cls: False))
    with pytest.raises(BackendError, match=r"needs ffmpeg, which is not installed: install it, or write a \.gif"):
        plots.animate(bot, t, q, tmp_path / "a.mp4")
    assert not list(tmp_path.iterdir())


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for draw in (
        lambda: plots.sketch(robot("puma560")),
        lambda: plots.time_series(robot("puma560"), T, waves(6)),
        lambda: plots.animate(ls.robots.planar(1), T, T[:, None], tmp_path / "a.gif"),
    ):
        with pytest.raises(BackendError, match=r"pip install 'linksweep\[plot\]'"):
            draw()


def test_what_cannot_be_drawn_is_one_sentence(tmp_path: Path):
    robot, path = ls.robots.planar(2), tmp_path / "a.gif"
    with pytest.raises(ArgumentError, match="NaN"):
        plots.sketch(robot, [0.0, np.nan])
    with pytest.raises(ArgumentError, match="at most 100000"):
        plots.animate(robot, [0.0, 1e9], np.zeros((2, 2)), path)
    with pytest.raises(ArgumentError, match="expected a figure"):
        plots.save("a.png", tmp_path / "a.png")  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_an_animation_shows_the_nearest_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of many samples too, for which a table of all distances would fill the memory."""
    from linksweep.plots import drawing

    drawn: list[np.ndarray] = []

    class Noted(drawing.Scene):
        def __init__(self, robot: ls.Robot, q: np.ndarray, **options: object):
            drawn.append(q[:, 0])
            super().__init__(robot, q[:1], **options)  # type: ignore[arg-type]

        def draw(self, sample: int) -> None:
            super().draw(0)

    monkeypatch.setattr(drawing, "Scene", Noted)
    t = np.linspace(0.0, 1.0, 1_000_001)
    plots.animate(ls.robots.planar(1), t, t[:, None], tmp_path / "a.gif", fps=4)
    assert np.allclose(drawn[0], [0.0, 0.25, 0.5, 0.75, 1.0], rtol=0, atol=5e-7)  # half a sample
