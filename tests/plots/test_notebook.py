"""What notebooks show. Jupyter itself is not needed: its protocol is methods by name, and IPython is stood in for."""

from __future__ import annotations

import pickle
import re
import sys
import types
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from robots_for_tests import URDF, robot

import linksweep as ls
from linksweep import plots
from linksweep.model.formats.urdf import read_urdf
from linksweep.support.display import MAX_ROWS, ProgressBar, html_table, in_notebook

PUMA = ls.robots.puma560()


class Table(HTMLParser):
    """The cells of the only table, row by row, and the text around it; tags must close in order."""

    def __init__(self, text: str):
        super().__init__()
        self.rows: list[list[str]] = []
        self.around, self.open = "", []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "table" in self.open:
            self.rows[-1][-1] += data
        else:
            self.around += data + "\n"


def test_a_robot():
    shown = Table(robot("urdf")._repr_html_())
    assert shown.rows[0] == ["joint", "kind", "lower", "upper", "velocity", "effort", "link", "mass"]
    assert shown.rows[1] == ["slide", "prismatic", "-1", "1", "2", "9", "hand", "1.5"]
    assert shown.rows[2][:6] == ["turn", "revolute", "–", "–", "–", "–"]
    assert "sample: 3 joints, 3 DOF" in shown.around and "tip frames: camera, side" in shown.around


@pytest.mark.slow
def test_names_are_escaped():
    text = URDF.replace('"slide"', '"&lt;script&gt;alert(1)&lt;/script&gt;"').replace('"hand"', '"a &amp; b"')
    one = ls.Robot(read_urdf(text))
    assert one.joint_names[0] == "<script>alert(1)</script>"
    html = one._repr_html_()
    assert "<script>" not in html and Table(html).rows[1][0] == one.joint_names[0]
    run = ls.simulate(one, np.zeros(3), duration=0.01)
    assert "<script>" not in run._repr_html_() and "<script>" not in ls.check(one, samples=1)._repr_html_()


def test_long_tables_are_cut():
    shown = Table(ls.robots.chain(MAX_ROWS + 5)._repr_html_())
    assert len(shown.rows) == 1 + MAX_ROWS and "5 more rows" in shown.around
    assert "<td" in html_table("x", ("a",), [(1.5,)])


def test_a_simulation():
    run = ls.simulate(PUMA, np.full(6, 0.1), duration=0.05)
    shown = Table(run._repr_html_())
    assert shown.rows[0] == ["", "first", "last", "min", "max"] and len(shown.rows) == 1 + 18
    assert shown.rows[1][0] == "q.joint1" and float(shown.rows[1][1]) == 0.1
    assert float(shown.rows[2][2]) == pytest.approx(run.q[-1, 1], rel=1e-5)
    assert "Simulation of puma560: 0.05 s" in shown.around and "integrator: rk4" in shown.around
    several = Table(ls.simulate(PUMA, np.zeros((3, 6)), duration=0.05)._repr_html_())
    assert several.rows[0] == ["", "min", "max"] and "(3,) rollouts" in several.around


def test_counts_and_a_check():
    counts = PUMA.operation_count("inverse_dynamics")
    assert Table(counts._repr_html_()).rows[1] == [
        str(x) for x in (counts.mul, counts.add, counts.div, counts.sqrt, counts.trig)
    ]
    report = ls.check(robot("urdf"), samples=2)
    shown = Table(report._repr_html_())
    assert [tuple(row) for row in shown.rows[1:]] == report.rows()[:MAX_ROWS] and report.verdict in shown.around


def test_formulas():
    pytest.importorskip("sympy")
    M = ls.robots.planar(2).symbolic("mass_matrix", simplify=True)
    text = M._repr_latex_()
    assert text is not None and re.fullmatch(r"\$\\displaystyle .*\$", text) and r"\cos{\left(q_{2} \right)}" in text
    energy = ls.robots.planar(1).symbolic("potential_energy")._repr_latex_()
    assert energy is not None and r"\sin{\left(q_{1} \right)}" in energy
    long = ls.robots.chain(3).symbolic("mass_matrix", simplify=True)
    assert long._repr_latex_() is None or len(long._repr_latex_() or "") <= 50_100


@pytest.mark.slow
def test_figures_show_themselves(tmp_path):
    figure = plots.time_series(PUMA, [0.0, 1.0], np.zeros((2, 6)))
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(plots.lines([0, 1], {"a": [0, 1]})))
    assert again._repr_png_().startswith(b"\x89PNG")
    for other in (plots.sketch(PUMA), plots.lines([0, 1], {"a": [0, 1]}), plots.bars({"a": 1.0})):
        assert other._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    # a file is still the same bytes, however often it was shown
    for name in ("a.png", "b.png"):
        plots.save(figure, tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


# ---- progress


class Handle:
    """What IPython's display(..., display_id=True) gives."""

    def __init__(self, first: str):
        self.shown = [first]

    def update(self, html: str) -> None:
        self.shown.append(html)


@pytest.fixture
def jupyter(monkeypatch: pytest.MonkeyPatch) -> list[Handle]:
    """IPython as far as we use it, with a kernel behind it."""
    handles: list[Handle] = []

    def display(html: str, display_id: bool) -> Handle:
        handles.append(Handle(html))
        return handles[-1]

    package, inner = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    package.get_ipython = lambda: types.SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    inner.HTML, inner.display = str, display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    return handles


def test_progress_in_a_notebook(jupyter: list[Handle], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linksweep.support.display._DELAY", 0.0)
    monkeypatch.setattr("linksweep.support.display._REDRAW", 0.0)
    with ProgressBar("<arm>", True) as watch:
        for k in range(5):
            watch(k / 4)
    (handle,) = jupyter
    assert len(handle.shown) == 6 and handle.shown[-1] == ""  # nothing is left of it
    assert handle.shown[2] == '<progress value="0.5000" max="1"></progress> &lt;arm&gt;, 50%'


def test_no_bar_for_what_is_quick_or_not_wanted(jupyter: list[Handle]):
    with ProgressBar("arm", True) as watch:
        watch(0.5)
    with ProgressBar("arm", False) as watch:
        watch(0.5)
    assert jupyter == []


def test_a_simulation_in_a_notebook(jupyter: list[Handle], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linksweep.support.display._DELAY", 0.0)
    run = ls.simulate(PUMA, np.zeros((4, 6)), duration=0.1)
    assert run.finite.all() and len(jupyter) == 1 and jupyter[0].shown[-1] == ""


def test_a_terminal_is_no_notebook(monkeypatch: pytest.MonkeyPatch):
    assert not in_notebook()
    package = types.ModuleType("IPython")
    package.get_ipython = lambda: types.SimpleNamespace()  # type: ignore[attr-defined]  # IPython in a terminal
    monkeypatch.setitem(sys.modules, "IPython", package)
    assert not in_notebook()
    package.get_ipython = lambda: None  # type: ignore[attr-defined]  # imported, but not running
    assert not in_notebook()
