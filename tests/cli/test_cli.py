"""The command line: quick help, errors as one sentence, the demo's files."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import run_process as run

import linksweep
from linksweep import plots
from linksweep.cli import COMMANDS
from linksweep.errors import ArgumentError
from linksweep.support.files import write_atomically


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], *([command, "--help"] for command in COMMANDS)])
def test_help_imports_neither_numpy_nor_llvmlite(arguments: list[str]):
    code = (
        "import sys; from linksweep.cli import app\n"
        f"try: app({arguments!r})\n"
        "except SystemExit as stop: assert stop.code in (None, 0)\n"
        "assert not {'numpy', 'scipy', 'llvmlite', 'matplotlib'} & set(sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout


@pytest.mark.parametrize(
    ("words", "finds"),
    [
        ("linksweep inv", ["inverse"]),
        ("linksweep inverse pu", ["puma560"]),
        ("linksweep inverse ar", ["arm.urdf", "arms/"]),
        ("linksweep inverse puma560 --traj", ["--trajectory"]),
        ("linksweep inverse puma560 --method newt", ["newton_euler"]),
        ("linksweep forward puma560 --method filter_smoother_u", ["filter_smoother_ud"]),
        ("linksweep simulate puma560 --torque comp", ["computed_torque"]),
        ("linksweep study pla", ["planar"]),
        ("linksweep count st", ["stanford"]),
        ("linksweep count puma560 --function kin", ["kinetic_energy"]),
        ("linksweep export puma560 inverse_d", ["inverse_dynamics"]),
    ],
)
def test_completion(tmp_path: Path, words: str, finds: list[str]):
    (tmp_path / "arm.urdf").touch()
    (tmp_path / "arms").mkdir()
    (tmp_path / "arm.txt").touch()
    place = str(len(words.split()) - 1)
    result = run(cwd=tmp_path, COMP_WORDS=words, COMP_CWORD=place, _LINKSWEEP_COMPLETE="complete_bash")
    assert result.stdout.split() == finds, result.stderr


@pytest.mark.quick
def test_a_bare_command_is_its_help_and_no_success():
    result = run()
    assert result.returncode == 2 and "Usage: linksweep" in result.stdout + result.stderr


@pytest.mark.quick
def test_version():
    assert run("--version").stdout == f"linksweep {linksweep.__version__}\n"


def test_demo_brings_the_accelerations_back_and_writes_its_files(tmp_path: Path):
    result = run("demo", "--out", "results/puma", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    folder = tmp_path / "results" / "puma"
    assert sorted(path.name for path in folder.iterdir()) == ["puma560.csv", "puma560.png"]
    assert (folder / "puma560.png").read_bytes().startswith(b"\x89PNG")
    with (folder / "puma560.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    joints = linksweep.robots.puma560().joint_names
    blocks = ("q", "qd", "qdd", "tau", "qdd_back")
    assert header == ["t", *(f"{block}.{joint}" for block in blocks for joint in joints)]
    table = np.array(rows, dtype=float)
    assert table.shape == (300, 31)
    q, qd, qdd, tau, qdd_back = np.split(table[:, 1:], 5, axis=1)
    np.testing.assert_allclose(np.degrees(q[0]), [-150, -220, -240, -130, -90, -150])
    np.testing.assert_allclose(np.degrees(q[-1]), [150, 40, 70, 130, 90, 150])
    # the file is exact: its numbers give its numbers
    np.testing.assert_array_equal(linksweep.robots.puma560().inverse_dynamics(q, qd, qdd), tau)
    difference = np.abs(qdd_back - qdd).max()
    assert difference < 1e-10
    printed = re.search(r"Largest difference .*: (\S+) rad/s²", result.stdout)
    assert printed and float(printed[1]) == pytest.approx(difference, rel=0.06)
    assert all(joint in result.stdout for joint in joints)


def test_demo_without_matplotlib_still_writes_the_numbers(tmp_path: Path):
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from importlib import util; real = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'matplotlib' else real(name, *more)\n"
        "from linksweep.cli import main; sys.argv = ['linksweep', 'demo']; main()"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "linksweep[plot]" in result.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["puma560.csv"]


@pytest.mark.slow
def test_demo_on_a_terminal_that_knows_only_ascii(tmp_path: Path):
    result = run("demo", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert result.returncode == 0, result.stderr
    assert "Largest difference" in result.stdout and result.stdout.isascii()


def test_demo_says_when_it_cannot_write(tmp_path: Path):
    (tmp_path / "out").write_text("a file, not a folder")
    result = run("demo", cwd=tmp_path)
    assert_one_sentence(result, r"out/puma560.csv cannot be written")
    assert (tmp_path / "out").read_text() == "a file, not a folder"


@pytest.mark.quick
def test_info_of_a_bundled_robot():
    result = run("info", "puma560")
    assert result.returncode == 0, result.stderr
    robot = linksweep.robots.puma560()
    for word in (*robot.joint_names, "17.4", "newton_euler", "filter_smoother"):
        assert word in result.stdout


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["puma560", "stanford", "six_axis"])
def test_info_as_json(name: str):
    result = run("info", name, "--json")
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    assert facts["nv"] == len(facts["joints"]) == 6
    assert all(line.startswith("linksweep: warning: ") for line in result.stderr.splitlines())
    assert {joint["kind"] for joint in facts["joints"]} == (
        {"revolute", "prismatic"} if name == "stanford" else {"revolute"}
    )
    assert facts["gravity"] == [0.0, 0.0, -9.81]


def test_info_of_a_file_with_markup_in_its_names(tmp_path: Path):
    # Square brackets are legal in names and mean nothing.
    urdf = """<robot name="[red]r[/]"><link name="base"/>
      <link name="[bold]arm"><inertial><mass value="2"/>
        <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
      <joint name="[/]turn" type="continuous"><parent link="base"/><child link="[bold]arm"/>
        <axis xyz="0 0 1"/></joint></robot>"""
    (tmp_path / "r.urdf").write_text(urdf)
    result = run("info", "r.urdf", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert all(name in result.stdout for name in ("[red]r[/]", "[bold]arm", "[/]turn"))


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("puma650", r"no robot 'puma650' \(did you mean 'puma560'\?\)"),
        ("missing.urdf", "missing.urdf"),
        ("broken.urdf", "broken.urdf"),
    ],
)
def test_bad_robots_are_one_sentence_and_exit_code_2(tmp_path: Path, argument: str, says: str):
    (tmp_path / "broken.urdf").write_text("<robot><link")
    assert_one_sentence(run("info", argument, cwd=tmp_path), says)


def assert_one_sentence(result: subprocess.CompletedProcess[str], says: str) -> None:
    assert result.returncode == 2
    assert result.stdout == ""
    assert re.search(says, result.stderr), result.stderr
    assert result.stderr.startswith("linksweep: ") and result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["info", "a" * 300], r"no robot 'a+\.\.\., expected a file"),
        (["info", "a" * 300 + ".urdf"], "File name too long"),
        (["inverse", "puma560", "-t", "x.csv", "-o", "a" * 300 + ".csv"], "File name too long"),
    ],
)
def test_a_name_that_no_file_system_takes(arguments: list[str], says: str):
    assert_one_sentence(run(*arguments), says)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", [["info", "puma560"], ["--help"], ["study", "--json"], ["--version"]])
def test_a_full_standard_output(arguments: list[str]):
    command = [sys.executable, "-m", "linksweep", *arguments]
    with open("/dev/full", "wb") as full:
        result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("linksweep: The standard output cannot be written (No space left on device)")
    assert result.stderr.count("\n") == 1


def test_a_failed_write_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "table.csv"
    path.write_text("old")

    def fail(to: Path) -> None:
        to.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, fail)
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]
    assert path.read_text() == "old"


def test_a_full_disk_is_an_error_of_linksweep(tmp_path: Path):
    def fail(to: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(ArgumentError, match="No space left"):
        write_atomically(tmp_path / "table.csv", fail)
    assert list(tmp_path.iterdir()) == []


def test_written_files_have_ordinary_permissions(tmp_path: Path):
    write_atomically(tmp_path / "a", lambda to: None)
    (tmp_path / "b").touch()
    assert (tmp_path / "a").stat().st_mode == (tmp_path / "b").stat().st_mode


@pytest.mark.parametrize("joints", [1, 2, 4, 6, 7])
def test_torque_figure_has_one_panel_per_joint(joints: int, tmp_path: Path):
    t = np.linspace(0, 1, 20)
    names = [f"j{index}" for index in range(joints)]
    figure = plots.torque_figure("title", names, ["N m"] * joints, t, np.ones((20, joints)))
    assert len(figure.axes) == joints
    plots.save(figure, tmp_path / "figure.png")
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
