"""The files of studies: numbers that commands read again, tables that Markdown reads, peaks where they are."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linksweep as ls
from linksweep import plots
from linksweep.errors import ModelWarning
from linksweep.files import open_trajectory
from linksweep.papers import studies
from linksweep.papers.studies import six_axis
from linksweep.papers.studies.report import markdown_table, peak_cells

FEW: dict[str, dict[str, Any]] = {
    "stanford": {"samples": 5},
    "puma560": {"samples": 5, "seconds": 1e-5},
    "six_axis": {"samples": 5},
}


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a study by its name; each is run once, when a test first asks for it."""

    @functools.cache
    def folder(name: str) -> Path:
        place = tmp_path_factory.mktemp("studies")
        assert studies.run(name, place, **FEW[name]).ok
        return place

    return folder


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", FEW)
def test_forward_reads_what_a_study_wrote(folder_of: Callable[[str], Path], name: str):
    """By the robot's own names and signs: the accelerations of the file come back from its torques."""
    out = folder_of(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        bot = getattr(ls.robots, name)()
    blocks = ("q", "qd", "tau", "qdd")
    rows = np.concatenate(list(open_trajectory(out / f"{name}.csv", bot.model, blocks)))
    q, qd, tau, qdd = (rows[:, 1 + 6 * k : 7 + 6 * k] for k in range(4))
    assert np.abs(bot.forward_dynamics(q, qd, tau) - qdd).max() <= 1e-9 * np.abs(qdd).max()


@pytest.mark.slow
def test_the_command_reads_it_too(folder_of: Callable[[str], Path], tmp_path: Path):
    out = folder_of("stanford")
    command = [
        sys.executable,
        "-m",
        "linksweep",
        "forward",
        "stanford",
        "-t",
        str(out / "stanford.csv"),
        "-o",
        "back.csv",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and (tmp_path / "back.csv").exists(), done.stderr


@pytest.mark.slow
def test_the_papers_coordinates_have_a_file_of_their_own(folder_of: Callable[[str], Path]):
    """The same numbers but for names and the sign of the third joint, b = -d."""
    out = folder_of("stanford")
    ours, paper = (
        np.genfromtxt(out / f"{name}.csv", delimiter=",", names=True) for name in ("stanford", "stanford_paper")
    )
    assert paper.dtype.names is not None and "qb_3" in paper.dtype.names and "qjoint3" in (ours.dtype.names or ())
    for block in ("q", "qd", "tau"):
        np.testing.assert_array_equal(ours[f"{block}joint3"], -paper[f"{block}b_3"])
        np.testing.assert_array_equal(ours[f"{block}joint2"], paper[f"{block}theta_2"])


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", FEW)
def test_markdown_tables_have_as_many_cells_in_every_row(folder_of: Callable[[str], Path], name: str):
    assert markdown_table(["a", "b"], [["|x|", 1]]).splitlines()[2] == r"| \|x\| | 1 |"
    text = (folder_of(name) / f"{name}.md").read_text(encoding="utf-8")
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert tables
    for table in tables:
        cells = {len(re.split(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(cells) == 1, table


@pytest.mark.parametrize("samples", [5, 11, 201, 301])
def test_peaks_of_the_line_are_among_the_samples(samples: int):
    """The spline's acceleration is greatest at its knots, 9 times the amplitude."""
    t = six_axis.sample_times(samples)
    assert (np.diff(t) > 1e-6).all() and t[0] == 0.0 and t[-1] == 1.0
    assert len(t) == samples + (0 if samples == 301 else 2)
    results = six_axis.compute(samples)
    assert np.abs(results.s.qdd).max() == pytest.approx(4.5, rel=1e-14)


@pytest.mark.slow
def test_rounding_has_no_peak(folder_of: Callable[[str], Path]):
    out = folder_of("six_axis")
    t = np.linspace(0.0, 1.0, 5)
    assert peak_cells(t, np.array([0.0, 1e-17, -3e-17, 0.0, 0.0]), 5.0, 3) == ("0.000", "–")
    assert peak_cells(t, np.array([0.0, 1.0, -2.0, 0.0, 0.0]), 5.0, 3) == ("-2.000", "0.50")
    last = next(line for line in (out / "six_axis.md").read_text(encoding="utf-8").splitlines() if "joint6" in line)
    assert last.endswith("| 0.000 | – |"), last
    figure = plots.panels([plots.Channel("a", "N m"), plots.Channel("b", "N m")], t, np.stack([t, 1e-16 * t], axis=1))
    said = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert said == ["peak 1 N m at 1.00 s", "0 N m"]
    assert not any(line.get_marker() == "o" for line in figure.axes[1].lines)
