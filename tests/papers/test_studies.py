"""The papers' experiments: their files parse, their reports carry the computed numbers, their bars hold."""

from __future__ import annotations

import csv
import functools
import importlib.util
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from linksweep import plots, robots
from linksweep.errors import ArgumentError, ModelWarning
from linksweep.files import open_trajectory
from linksweep.motion import NormalSpline, Quintic
from linksweep.papers import studies
from linksweep.papers.published_counts import FIGURE_4, crossing
from linksweep.papers.studies import kang, planar, puma560, rates, sine_table, six_axis, stanford, statistics
from linksweep.papers.studies.report import Study, at_most, markdown_table, peak_cells

FEW: dict[str, dict[str, Any]] = {
    "stanford": {"samples": 11},
    "puma560": {"samples": 13, "seconds": 1e-5},
    "six_axis": {"samples": 11},
    "planar": {"links": 7},
    "sine_table": {"samples": 11},
    "kang": {"joints": 3, "step": 0.3},
    "statistics": {"samples": 2000},
}
MOTIONS = ("stanford", "puma560", "six_axis")  # studies whose tables are motions that commands read


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a study by its name; each is run once, when a test first asks for it."""

    @functools.cache
    def folder(name: str) -> Path:
        place = tmp_path_factory.mktemp("studies") / "new" / "folder"
        assert studies.run(name, place, **FEW[name]).ok
        return place

    return folder


def table(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return header, rows


def columns(path: Path, start: str) -> np.ndarray:
    """The columns of a CSV file whose names start so."""
    header, rows = table(path)
    wanted = [k for k, name in enumerate(header) if name.startswith(start)]
    return np.array([[float(row[k]) for k in wanted] for row in rows])


def test_list_of_studies_brings_nothing_heavy():
    code = (
        "import sys; from linksweep.papers.studies import STUDIES; print(*STUDIES)\n"
        "assert not {'numpy', 'scipy', 'llvmlite', 'matplotlib'} & set(sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert set(FEW) | {"identify", "rates", "two_arms", "four_bar"} == set(run.stdout.split())


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", FEW)
def test_every_file_parses_and_is_in_the_report(folder_of: Callable[[str], Path], name: str):
    out = folder_of(name)
    assert not [path for path in out.iterdir() if path.name.startswith(".")]
    report = (out / f"{name}.md").read_text(encoding="utf-8")
    assert "{figure:" not in report and "{{" not in report and "nan" not in report.lower()
    linked = set(re.findall(r"\]\(([^)]+)\)", report))
    assert linked == {path.name for path in out.iterdir()} - {f"{name}.md"}
    assert len([file for file in linked if file.endswith(".png")]) >= 2
    for path in out.iterdir():
        if path.suffix == ".png":
            with Image.open(path) as image:
                image.verify()
        elif path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag.endswith("svg")
        elif path.suffix == ".csv":
            header, rows = table(path)
            assert rows and all(len(row) == len(header) for row in rows)


def test_unknown_study(tmp_path: Path):
    with pytest.raises(ArgumentError, match=r"no study 'puma' \(did you mean 'puma560'\?\): expected one of puma560, "):
        studies.run("puma", tmp_path / "x")
    assert not list(tmp_path.iterdir())


# ---- all or nothing ------------------------------------------------------------------------------------------------


def small_study(draw: Any) -> Study:
    return Study(
        "small", "# Small\n\n{figure:small_plot}\n", {"small": (["a"], [[1.5]])}, {"small_plot": ("A plot.", draw)}, []
    )


def some_figure() -> Any:
    from linksweep import plots

    return plots.lines([0.0, 1.0], {"a": [0.0, 1.0]})


def test_a_study_that_fails_leaves_nothing(tmp_path: Path):
    def fail() -> Any:
        raise OSError(28, "No space left on device")

    kept = tmp_path / "small.csv"
    kept.write_text("from before")
    for folder in (tmp_path, tmp_path / "a" / "b"):
        with pytest.raises(ArgumentError, match="No space left"):
            small_study(fail).write(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["small.csv"]
    assert kept.read_text() == "from before"
    written = small_study(some_figure).write(tmp_path / "a")
    assert [path.name for path in written.files] == ["small.csv", "small.md", "small_plot.png", "small_plot.svg"]


def test_a_file_in_the_way(tmp_path: Path):
    (tmp_path / "out").write_text("a file, not a folder")
    with pytest.raises(ArgumentError, match=r"out cannot be written \(File exists\)"):
        small_study(some_figure).write(tmp_path / "out")
    (tmp_path / "in" / "small.md").mkdir(parents=True)
    with pytest.raises(ArgumentError, match=r"small\.md is a folder"):
        small_study(some_figure).write(tmp_path / "in")
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["small.md"]


def test_without_matplotlib_the_numbers_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    real = importlib.util.find_spec
    find_spec = "linksweep.papers.studies.report.find_spec"
    monkeypatch.setattr(find_spec, lambda name: None if name == "matplotlib" else real(name))
    written = small_study(some_figure).write(tmp_path)
    assert [path.name for path in written.files] == ["small.csv", "small.md"]
    assert "pip install 'linksweep[plot]'" in str(written)
    assert "![" not in (tmp_path / "small.md").read_text()


def test_a_check_that_is_not_met_shows():
    check = at_most("error", 2.0, 1.0)
    assert not check.ok and str(check) == "error: 2, at most 1: NOT MET"
    assert not at_most("error", float("nan"), 1.0).ok


# ---- puma560 -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def puma() -> puma560.Results:
    return puma560.compute()


@pytest.mark.slow
def test_puma_all_pairs_bring_the_accelerations_back(puma: puma560.Results):
    """The bar is 1e-9 of the largest acceleration; the motion is the paper's, 300 samples."""
    robot = robots.puma560()
    assert len(puma.t) == 300 and puma.t[-1] == 4.0
    pairs = {(a, b) for a in robot.methods("inverse_dynamics") for b in robot.methods("forward_dynamics")}
    assert set(puma.back) == pairs and len(pairs) >= 40
    largest = np.abs(puma.motion.qdd).max()
    for pair in pairs:
        assert np.abs(puma.back[pair] - puma.motion.qdd).max() <= 1e-9 * largest, pair


def test_puma_moves_as_the_paper_says(puma: puma560.Results):
    """The paper's list starts at the tip."""
    paper = [(-150, 150), (-90, 90), (-130, 130), (-240, 70), (-220, 40), (-150, 150)]
    ends = np.degrees(puma.motion.q[[0, -1]]).T
    np.testing.assert_allclose(ends, paper[::-1], rtol=1e-14)
    assert not np.concatenate([puma.motion.qd[[0, -1]], puma.motion.qdd[[0, -1]]]).any()


@pytest.mark.slow
def test_puma_files_carry_the_numbers(folder_of: Callable[[str], Path]):
    out = folder_of("puma560")
    q, qd, qdd, tau, back = (
        columns(out / "puma560.csv", f"{block}.") for block in ("q", "qd", "qdd", "tau", "qdd_back")
    )
    robot = robots.puma560()
    path = Quintic(np.radians(puma560.PUMA_RANGES_DEG).T, [0.0, 4.0])(np.linspace(0.0, 4.0, 13))
    np.testing.assert_array_equal(q, path.q)
    np.testing.assert_array_equal(robot.inverse_dynamics(q, qd, qdd, method=puma560.INVERSE), tau)
    np.testing.assert_array_equal(robot.forward_dynamics(q, qd, tau, method=puma560.FORWARD), back)
    report = (out / "puma560.md").read_text(encoding="utf-8")
    for name, column in zip(robot.joint_names, tau.T, strict=True):
        assert f"{column[np.abs(column).argmax()]:.4f}" in next(
            line for line in report.splitlines() if line.startswith(f"| {name} |")
        )
    header, rows = table(out / "puma560_pairs.csv")
    assert header[1:] == list(robot.methods("forward_dynamics"))
    assert [row[0] for row in rows] == list(robot.methods("inverse_dynamics"))
    assert max(float(x) for row in rows for x in row[1:]) <= 1e-9
    _, rates = table(out / "puma560_rates.csv")
    assert len(rates) == len(header) - 1 + len(rows) and all(float(x) > 0 for row in rates for x in row[2:])
    assert "| inverse_dynamics, boundary_value | 200 |" in report
    assert "| forward_dynamics, filter_smoother | 100 |" in report


# ---- stanford and six_axis -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_stanford_statics_in_the_files(folder_of: Callable[[str], Path]):
    out = folder_of("stanford")
    tau, q = columns(out / "stanford_paper.csv", "tau."), columns(out / "stanford_paper.csv", "q.")
    assert abs(tau[0, 1]) == pytest.approx(13.6948, abs=5e-5)
    assert abs(tau[-1, 2]) == pytest.approx(29.9205, abs=5e-5)
    np.testing.assert_allclose(q[-1], [np.pi / 3, np.pi / 3, 0.1, np.pi / 3, np.pi / 3, np.pi / 3], rtol=1e-14)
    report = (out / "stanford.md").read_text(encoding="utf-8")
    assert "13.6948" in report and "29.9205" in report


def test_stanford_force_has_the_papers_sign():
    """b = -d: power f b' is the same in both coordinates."""
    results = stanford.compute(7)
    q, qd, qdd = (x * stanford.PAPER_SIGNS for x in results.motion)
    ours = robots.stanford().inverse_dynamics(q, qd, qdd)
    power = (results.tau["kane"] * results.motion.qd)[:, 2]
    np.testing.assert_allclose(power, (ours * qd)[:, 2], rtol=1e-12)


def test_stanford_variants_are_other_arms():
    results = stanford.compute(7)
    bundled, *others = results.variants.values()
    np.testing.assert_allclose(bundled, results.tau["newton_euler"], atol=1e-14)
    for tau in others:
        assert np.abs(tau - bundled).max() > 1e-5
        assert abs(tau[0, 1]) == pytest.approx(stanford.HOLDING_TORQUE)
        assert abs(tau[-1, 2]) == pytest.approx(stanford.HOLDING_FORCE)


@pytest.mark.slow
def test_six_axis_hand_stays_on_the_line(folder_of: Callable[[str], Path]):
    out = folder_of("six_axis")
    """The file's joint positions, by forward kinematics; the rates by differences of the file's positions."""
    q, qd, qdd = (columns(out / "six_axis.csv", f"{block}.") for block in ("q", "qd", "qdd"))
    t = columns(out / "six_axis.csv", "t")[:, 0]
    with pytest.warns(match="six_axis"):
        robot = robots.six_axis()
    pose = robot.pose(q, "tool")
    s = NormalSpline([[0.0], [six_axis.AMPLITUDE]], [0.0, 1.0])(t).q[:, 0]
    np.testing.assert_allclose(pose[:, :3, 3], np.stack([np.full_like(s, 1.33), s, np.full_like(s, 1.8)], 1), atol=1e-9)
    np.testing.assert_allclose(pose[:, :3, :3], np.broadcast_to(pose[0, :3, :3], (len(t), 3, 3)), atol=1e-9)
    assert not np.abs(np.concatenate([qd[[0, -1]], qdd[[0, -1]]])).max() > 1e-12
    near = six_axis.compute(2101)  # so many that the knots are among them
    step = near.t[1] - near.t[0]
    # a central difference is off by a sixth of the third derivative times the step squared
    slope = (near.motion.q[2:] - near.motion.q[:-2]) / (2 * step)
    assert np.abs(slope - near.motion.qd[1:-1]).max() <= 20 * step**2
    bend = (near.motion.qd[2:] - near.motion.qd[:-2]) / (2 * step)
    assert np.abs(bend - near.motion.qdd[1:-1]).max() <= 100 * step  # its derivative jumps at the spline's knots


def test_six_axis_line_that_is_too_long():
    from linksweep.errors import LinksweepError

    with pytest.raises(LinksweepError, match=r"cannot follow a line of 5\.0 m"):
        six_axis.compute(11, amplitude=5.0)


# ---- planar --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_planar_counts_are_those_of_the_compiled_functions(folder_of: Callable[[str], Path]):
    out = folder_of("planar")
    header, rows = table(out / "planar.csv")
    for row in rows:
        n, *numbers = (float(x) for x in row)
        found = dict(zip(header[1:], numbers, strict=True))
        robot = robots.planar(int(n), length=0.7, mass=1.3)
        for method in planar.METHODS:
            counts = robot.operation_count("forward_dynamics", method, base_parameters=False)
            got = [found[f"bias.{method}.{op}"] for op in ("mul", "add", "div")]
            assert got == [counts.mul, counts.add, counts.div]
            plain = [found[f"plain.{method}.{op}"] for op in ("mul", "add")]
            assert all(a <= b for a, b in zip(plain, got, strict=False))
        assert found["paper.filter_smoother"] == 27 * n
        assert found["table_3.composite"] == pytest.approx(n**3 / 3 + n**2 + n * (2 * n + 7))
        assert found["printed.composite"] == pytest.approx(n**3 / 3 + n**2 + 2 * n * (n + 5))
        # the traced recursion is never above the paper's scalar equations
        assert found["plain.filter_smoother.add"] <= 28 * n
        assert found["plain.filter_smoother.mul"] + found["plain.filter_smoother.div"] <= 29 * n
    report = (out / "planar.md").read_text(encoding="utf-8")
    for row in rows:
        flops = (float(row[1]) + float(row[2])) / 2
        assert re.search(rf"^\| {row[0]} \| {27 * int(row[0])} \| {flops:g} \|", report, re.MULTILINE)


def test_planar_crossings():
    """The paper: N >= 5. As printed: 4. Where the filter costs the same it does not cost less."""
    assert crossing(FIGURE_4["filter and smoother"], FIGURE_4["composite, by Table III"]) == 5
    assert crossing(FIGURE_4["filter and smoother"], FIGURE_4["composite, as printed"]) == 4
    assert crossing([0, 1, 5, 5, 5].__getitem__, [0, 2, 5, 6, 7].__getitem__, [1, 2, 3, 4]) == 3
    assert crossing([0, 5, 5].__getitem__, [0, 1, 1].__getitem__, [1, 2]) is None
    with pytest.raises(ArgumentError, match="links = 3, expected at least 7"):
        planar.study(links=3)


# ---- sine_table ----------------------------------------------------------------------------------------------------


def test_a_table_of_sines_is_off_by_its_step():
    angles = np.random.default_rng(0).uniform(-20.0, 20.0, 20_000)
    bars = {"nearest": np.radians(0.05), "below": np.radians(0.1), "linear": np.radians(0.1) ** 2 / 8}
    for reading, bar in bars.items():
        error = np.abs(sine_table.SineTable(0.1, reading).sine(angles) - np.sin(angles)).max()
        assert 0.9 * bar < error <= bar * (1 + 1e-9)
    grid = np.radians(np.arange(-720, 721) / 2)  # angles that the table has
    for reading in bars:
        np.testing.assert_allclose(sine_table.SineTable(0.5, reading).sine(grid), np.sin(grid), atol=1e-9)


def test_the_nearest_entry_is_another_pose():
    """Torques by the table are those of angles that are rounded to it, and its accelerations come back."""
    robot = robots.puma560()
    q, qd, qdd = np.random.default_rng(1).uniform(-2.0, 2.0, (3, 7, 6))
    recursions = sine_table.Recursions(robot, q, sine_table.SineTable(0.1))
    tau = recursions.inverse(qd, qdd)
    rounded = np.radians(np.rint(np.degrees(q) / 0.1) * 0.1)
    np.testing.assert_allclose(tau, robot.inverse_dynamics(rounded, qd, qdd), rtol=0, atol=1e-11)
    np.testing.assert_allclose(recursions.forward(qd, tau), qdd, rtol=0, atol=1e-10)


# ---- kang ----------------------------------------------------------------------------------------------------------


def test_kang_counts_both_ways():
    assert kang.operations(3) == {2: (349, 129), 3: (847, 440)}
    with pytest.raises(ArgumentError, match="joints = 1, expected at least 2"):
        kang.operations(1)


@pytest.mark.slow
def test_kang_torques_are_quadratic_in_the_tip_velocity():
    """A and g against accelerations by differences: the tip's velocity does not change along the motion."""
    found = kang.sizing(step=0.3)
    assert len(found.q) > 3 and (found.by_velocity > 0).all() and (found.by_torque > 0).all()
    robot, q, v, h = found.robot, found.q[0], np.array([0.3, -0.2, 0.4]), 1e-5
    A, g, back = kang.torque_planes(robot, q, "tool")
    qd = back @ v
    twist = robot.jacobian(q, "tool") @ qd
    np.testing.assert_allclose(twist, [0, 0, 0, *v], atol=1e-12)
    ahead, behind = (np.linalg.solve(robot.jacobian(q + s * h * qd, "tool"), twist) for s in (1, -1))
    tau = robot.inverse_dynamics(q, qd, (ahead - behind) / (2 * h))
    np.testing.assert_allclose(np.einsum("a,iab,b->i", v, A, v) + g, tau, atol=1e-7)


# ---- statistics ----------------------------------------------------------------------------------------------------


def test_statistics_of_the_statistics():
    """Gaussian samples show the expected error on average; a regression leaves the conditional variance."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    covariance = root @ root.T
    pairs = [statistics._spread(rng.normal(size=(50, 3)) @ root.T, covariance) for _ in range(400)]
    found, expected = np.array(pairs).T
    # 400 draws of a quantity whose own spread is as large as itself: 5 %, three deviations are 15 %.
    assert np.sqrt(np.mean(found**2)) == pytest.approx(expected[0], rel=0.15)
    x = rng.normal(size=(100_000, 3)) @ root.T
    left = covariance[0, 0] - covariance[0, 1:] @ np.linalg.solve(covariance[1:, 1:], covariance[1:, 0])
    # The variance of 100,000 samples is known to sqrt(2 / 100,000) = 0.45 %.
    assert statistics._residual_variance(x[:, 0], x[:, 1:]) == pytest.approx(left, rel=0.02)


# ---- rates ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rates_are_written(tmp_path: Path):
    written = studies.run("rates", tmp_path, seconds=2e-4, rounds=5)
    header, rows = table(tmp_path / "rates.csv")
    assert len(written.checks) == 1 and len(rows) == 2 * len(rates.CASES)
    seconds = np.array([[float(x) for x in row[header.index("predicted_s") :]] for row in rows])
    assert ((seconds > 1e-9) & (seconds < 1e-4)).all()


# ---- files: numbers that commands read again, tables that Markdown reads, peaks where they are -----------------


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", MOTIONS)
def test_forward_reads_what_a_study_wrote(folder_of: Callable[[str], Path], name: str):
    """By the robot's own names and signs: the accelerations of the file come back from its torques."""
    out = folder_of(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        bot = getattr(robots, name)()
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
@pytest.mark.parametrize("name", MOTIONS)
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
