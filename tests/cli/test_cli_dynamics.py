"""`linksweep inverse` and `linksweep forward`: the library's numbers, whole files or none, mistakes in one sentence."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import ROBOT, columns, table_of, write

from linksweep.cli.results import CURVE, Curve
from linksweep.motion import Quintic

BLOCKS = ("q", "qd", "qdd")


@pytest.fixture
def motion(tmp_path: Path) -> np.ndarray:
    """t, q, qd, qdd of a motion, which also stands in m.csv."""
    t = np.linspace(0.0, 2.0, 50)
    q, qd, qdd = Quintic(np.random.default_rng(0).uniform(-2, 2, (3, 6)), [0.0, 1.2, 2.0])(t)
    table = np.column_stack([t, q, qd, qdd])
    write(tmp_path / "m.csv", columns(*BLOCKS), table)
    return table


@pytest.mark.quick
@pytest.mark.parametrize("method", ROBOT.methods("inverse_dynamics"))
def test_inverse_is_inverse_dynamics(run, motion: np.ndarray, method: str):
    outcome = run("inverse", "puma560", "--trajectory", "m.csv", "-o", "out.csv", "--method", method)
    first, *more = outcome.out.splitlines()
    assert (outcome.code, outcome.err) == (0, "") and first == f"wrote out.csv: 50 rows of t and tau by {method}"
    assert all(line.startswith("beyond limits: joint") for line in more)  # this motion is too wide and too fast for it
    assert any(line.startswith("beyond limits: joint2: effort -202.") for line in more)
    names, table = table_of(Path("out.csv"))
    assert names == columns("tau")
    np.testing.assert_array_equal(table[:, 0], motion[:, 0])
    wanted = ROBOT.inverse_dynamics(*np.split(motion[:, 1:], 3, axis=1), method=method)
    np.testing.assert_array_equal(table[:, 1:], wanted)


@pytest.mark.quick
def test_forward_brings_the_accelerations_back(run, motion: np.ndarray):
    assert run("inverse", "puma560", "-t", "m.csv", "-o", "tau.csv", "--with-inputs").code == 0
    assert table_of(Path("tau.csv"))[0] == columns(*BLOCKS, "tau")
    assert run("forward", "puma560", "-t", "tau.csv", "-o", "back.npz").code == 0
    with np.load("back.npz") as file:
        np.testing.assert_allclose(file["qdd"], motion[:, 13:], atol=1e-10)
        about = json.loads(str(file["about"]))
    assert about["robot"] == "puma560" and about["function"] == "forward_dynamics"
    assert about["method"] == ROBOT.methods("forward_dynamics")[0]


def test_a_robot_from_a_file_and_dissipation(run, motion: np.ndarray):
    Path("arm.urdf").write_text(ROBOT.to_urdf())
    torques = []
    for flags in ((), ("--dissipation",)):
        outcome = run("inverse", "arm.urdf", "-t", "m.csv", "-o", "out.csv", *flags)
        assert outcome.code == 0, outcome.err
        torques.append(table_of(Path("out.csv"))[1][:, 1:])
    friction = [ROBOT.model.links[index].joint.friction for index in ROBOT.model.document_order]
    np.testing.assert_allclose(torques[1] - torques[0], friction * np.sign(motion[:, 7:13]), atol=1e-12)
    q, qd, qdd = np.split(motion[:, 1:], 3, axis=1)
    np.testing.assert_allclose(torques[0], ROBOT.inverse_dynamics(q, qd, qdd), rtol=1e-10, atol=1e-12)


def test_motion_in_toml(run, tmp_path: Path):
    lines = ['motion = "quintic"', "times = [0, 4]", "samples = 300", "degrees = true", "[joints]"]
    ranges = {name: (-10.0 * k, 20.0 * k) for k, name in enumerate(ROBOT.joint_names)}
    lines += [f"{name} = [{low}, {high}]" for name, (low, high) in ranges.items()]
    (tmp_path / "m.toml").write_text("\n".join(lines))
    assert run("inverse", "puma560", "-t", "m.toml", "-o", "out.csv").code == 0
    path = Quintic(np.radians(np.array(list(ranges.values())).T), [0.0, 4.0])
    wanted = ROBOT.compile("inverse_dynamics")(*path(np.linspace(0, 4, 300)))
    np.testing.assert_allclose(table_of(Path("out.csv"))[1][:, 1:], wanted, rtol=1e-12, atol=1e-12)


def test_the_motion_that_the_documentation_shows(run):
    page = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
    found = re.search(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert found
    Path("m.toml").write_text(found[1])
    assert run("inverse", "puma560", "-t", "m.toml").code == 0
    assert run("simulate", "puma560", "--motion", "m.toml", "--dt", "0.01").code == 0


def test_json_holds_the_table_only_where_no_file_does(run, motion: np.ndarray):
    wanted = ROBOT.compile("inverse_dynamics")(*np.split(motion[:, 1:], 3, axis=1))
    facts = json.loads(run("inverse", "puma560", "-t", "m.csv", "--json").out)
    np.testing.assert_array_equal(facts["rows"], np.column_stack([motion[:, 0], wanted]))
    assert facts["columns"] == columns("tau") and facts["samples"] == 50
    assert (facts["start"], facts["end"]) == (0.0, 2.0)
    for column, peak in enumerate(facts["peaks"]):
        at = np.abs(wanted[:, column]).argmax()
        assert peak == {"column": columns("tau")[1 + column], "value": wanted[at, column], "t": motion[at, 0]}
    facts = json.loads(run("inverse", "puma560", "-t", "m.csv", "--json", "-o", "a.csv").out)
    assert "rows" not in facts and facts["output"] == "a.csv" and Path("a.csv").exists()


@pytest.mark.parametrize("count", [1, 8, 9, 16, 17, 50])
def test_the_terminal_shows_the_beginning_and_the_end(run, motion: np.ndarray, count: int):
    write(Path("m.csv"), columns(*BLOCKS), motion[:count])
    outcome = run("inverse", "puma560", "-t", "m.csv")
    assert outcome.code == 0 and outcome.err == ""
    times = [line.split()[0] for line in outcome.out.splitlines() if re.match(r"\s*[\d.]+ ", line)]
    shown = [*range(count)] if count <= 16 else [*range(8), *range(count - 8, count)]
    assert times == [f"{motion[k, 0]:.6g}" for k in shown]
    assert ("⋮" in outcome.out) == (count > 16)


def test_a_narrow_terminal_says_what_it_leaves_out(run, motion: np.ndarray, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "40")
    lines = run("inverse", "puma560", "-t", "m.csv").out.splitlines()
    (place,) = (k for k, line in enumerate(lines) if re.match(r"[1-5] of 6 columns fit", line))
    assert all(len(line) <= 40 for line in lines[1:place])


def test_plot(run, motion: np.ndarray):
    outcome = run("inverse", "puma560", "-t", "m.csv", "-o", "a.csv", "--plot", "new/a.png")
    assert outcome.code == 0, outcome.err
    assert Path("new/a.png").read_bytes().startswith(b"\x89PNG")
    assert outcome.out.splitlines()[1] == "wrote new/a.png"


def test_a_thinned_curve_keeps_every_extreme_and_is_even():
    count = 400_000
    rows = np.column_stack([np.arange(count), np.random.default_rng(0).normal(size=(count, 3))])
    curve = Curve(4)
    for block in np.array_split(rows, 37):
        curve.add(block)
    thinned = curve.thinned()
    assert len(thinned) <= CURVE
    for column in (1, 2, 3):
        assert thinned[:, column].max() == rows[:, column].max() and thinned[:, column].min() == rows[:, column].min()
    counts = np.histogram(thinned[:, 0], bins=20)[0]
    assert counts.min() > 0.5 * counts.max()
    assert set(map(tuple, thinned[::100])) <= set(map(tuple, rows))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("inverse", "Missing argument 'ROBOT' .see linksweep inverse --help"),
        ("inverse puma560", "Missing option '--trajectory'"),
        ("invers puma560", "No such command 'invers'. Did you mean 'inverse'"),
        ("inverse puma560 --trajectroy m.csv", "--trajectroy .*--trajectory"),
        ("inverse puma560 -t", "requires an argument"),
        ("inverse puma560 extra -t m.csv", "unexpected extra argument"),
        ("inverse puma650 -t m.csv", "no robot 'puma650' .did you mean 'puma560'"),
        ("inverse missing.urdf -t m.csv", "missing.urdf"),
        ("inverse puma560 -t missing.csv", "missing.csv cannot be read"),
        ("inverse puma560 -t .", "cannot be read"),
        ("inverse puma560 -t m.csv --method newton", "no method 'newton' .did you mean 'newton_euler'"),
        ("inverse puma560 -t m.csv -o out", "ends in ''"),
        ("inverse puma560 -t m.csv -o out.xlsx", "ends in '.xlsx'"),
        ("inverse puma560 -t m.csv -o m.csv", "is the trajectory itself"),
        ("inverse puma560 -t m.csv -o m.csv/out.csv", "cannot be written"),
        ("inverse puma560 -t m.csv -o /proc/out.csv", "cannot be written"),
        ("inverse puma560 -t m.csv --plot a.doc", "ends in '.doc'"),
        ("forward puma560 -t m.csv", "no column 'tau.joint1'"),
        ("inverse stanford -t bad.csv -o out.csv", "bad.csv"),
        ("inverse puma560 -t nan.csv -o out.csv", "nan.csv, line 42: qd.joint3 is nan"),
        ("inverse puma560 -t unsorted.csv -o out.csv", "unsorted.csv, line 42: t is 0.0 after"),
        ("inverse puma560 -t huge.csv -o out.csv", "tau.joint. is -?(inf|nan)"),
    ],
)
def test_mistakes_are_one_sentence_and_leave_nothing(run, motion: np.ndarray, arguments: str, says: str):
    for name, place, value in (("nan", 9, np.nan), ("unsorted", 0, 0.0), ("huge", 8, 1e200)):
        table = motion.copy()
        table[40, place] = value
        write(Path(f"{name}.csv"), columns(*BLOCKS), table)
    Path("bad.csv").write_bytes(b"\xff\xfe\0")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    outcome = run(*arguments.split())
    assert outcome.code == 2 and outcome.out == ""
    assert re.search(says, outcome.err), outcome.err
    assert outcome.err.startswith("linksweep: ") and outcome.err.count("\n") == 1 and "Traceback" not in outcome.err
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


def test_a_mistake_keeps_the_old_result(run, motion: np.ndarray):
    Path("out.csv").write_text("old")
    motion[-1, 0] = 0.0
    write(Path("m.csv"), columns(*BLOCKS), motion)
    assert run("inverse", "puma560", "-t", "m.csv", "-o", "out.csv").code == 2
    assert Path("out.csv").read_text() == "old"


@pytest.mark.cases(1)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_terminated_run_leaves_nothing(tmp_path: Path, number: signal.Signals):
    os.mkfifo(tmp_path / "pipe")  # without an end, so that the run is met in its middle
    command = [sys.executable, "-m", "linksweep", "inverse", "puma560", "-t", "pipe", "-o", "out.csv"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as process:
        with (tmp_path / "pipe").open("wb", buffering=0) as pipe, pytest.raises(BrokenPipeError):
            pipe.write((",".join(columns(*BLOCKS)) + "\n").encode())
            for row in range(10_000_000):
                pipe.write(f"{row}{',0.1' * 18}\n".encode())
                if row % 100 == 0 and list(tmp_path.glob(".out.*")):
                    process.send_signal(number)
        assert process.wait() == 128 + number
        assert process.stderr is not None and process.stderr.read() == b""
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.slow
def test_a_closed_pipe_is_no_traceback(tmp_path: Path):
    write(tmp_path / "m.csv", columns(*BLOCKS), np.column_stack([np.arange(5000), np.zeros((5000, 18))]))
    command = f"{sys.executable} -m linksweep inverse puma560 -t m.csv --json | head -1"
    result = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True)
    assert result.stdout == "{\n" and result.stderr == ""


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("words", ["check puma560 --samples 1 --json", "info puma560 --json", "info puma560"])
def test_a_closed_pipe_is_no_finding(words: str):
    """Its exit code is that of programs which SIGPIPE ends; 1 would be a disagreement."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "linksweep", *words.split()]
    result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (result.returncode, result.stderr) == (141, "")
