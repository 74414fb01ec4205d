"""Simulations written and read again, what a user types wrong, and the bar."""

# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportArgumentType=false
from __future__ import annotations

import csv
import importlib.util
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from abuse_helpers import in_process
from pin_models import ALL_KINDS, random_robot

import linksweep as ls
from linksweep.errors import ArgumentError, LinksweepError
from linksweep.files import joint_columns
from linksweep.simulation import PD, Constant, FeedForward, Sampled, load
from linksweep.support import display as progress_module

pytestmark = pytest.mark.filterwarnings("ignore:simulate. .* is deprecated:DeprecationWarning")  # options by name


@pytest.fixture(scope="module")
def run() -> ls.simulation.Simulation:
    robot = random_robot(ALL_KINDS, seed=3)
    return ls.simulate(robot, robot.neutral(), np.linspace(0, 1, robot.nv), None, 0.01, every=2)


@pytest.mark.slow
def test_csv_holds_every_number(run: ls.simulation.Simulation, tmp_path: Path):
    run.to_csv(tmp_path / "run.csv")
    with (tmp_path / "run.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    blocks = [joint_columns(run.robot.model, block) for block in ("q", "qd", "qdd", "tau")]
    assert header == ["t", *(name for names in blocks for name in names), "energy"]
    assert "q.joint0.qw" in header and "qd.joint0.vx" in header and "q.joint1" in header
    wanted = np.column_stack([run.t, run.q, run.qd, run.qdd, run.tau, run.energy])
    assert np.array_equal(np.array(rows, dtype=float), wanted)


def test_csv_of_a_batch_numbers_the_rollouts(tmp_path: Path):
    robot = ls.robots.planar(2)
    found = ls.simulate(robot, np.linspace(0, 1, 8).reshape(2, 2, 2), None, None, 0.003)
    found.to_csv(tmp_path / "batch.csv")
    table = np.genfromtxt(tmp_path / "batch.csv", delimiter=",", names=True, deletechars="", replace_space=" ")
    assert table["rollout"].tolist() == np.repeat(range(4), 4).tolist()
    assert np.array_equal(table["t"], np.tile(found.t, 4))
    assert np.array_equal(table[f"q.{robot.joint_names[1]}"].reshape(4, 4).T, found.q[..., 1].reshape(4, 4))


def test_npz_loads_again_with_robot_and_settings(run: ls.simulation.Simulation, tmp_path: Path):
    run.to_npz(tmp_path / "run.anything")
    again = load(tmp_path / "run.anything")
    assert again.robot == run.robot and again.settings == run.settings
    for name in ("t", "q", "qd", "qdd", "tau", "energy"):
        assert np.array_equal(getattr(again, name), getattr(run, name))
    assert again.settings["integrator"] == "rk4" and again.settings["every"] == 2
    limits = load_of(ls.robots.stanford(), tmp_path)
    assert limits == ls.robots.stanford()


def load_of(robot: ls.Robot, folder: Path) -> ls.Robot:
    ls.simulate(robot, robot.neutral(), None, None, 0.001).to_npz(folder / "one.npz")
    return load(folder / "one.npz").robot


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no zip", b"some text"])
def test_what_is_no_simulation_is_refused(content: bytes, tmp_path: Path):
    (tmp_path / "bad.npz").write_bytes(content)
    with pytest.raises(ArgumentError, match=r"bad\.npz .*expected one that to_npz wrote"):
        load(tmp_path / "bad.npz")
    np.savez(tmp_path / "other.npz", t=np.zeros(3))
    with pytest.raises(ArgumentError, match="is not a simulation"):
        load(tmp_path / "other.npz")
    with pytest.raises(ArgumentError, match="cannot be read"):
        load(tmp_path / "missing.npz")


def test_truncated_file_is_refused(run: ls.simulation.Simulation, tmp_path: Path):
    run.to_npz(tmp_path / "run.npz")
    whole = (tmp_path / "run.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ArgumentError, match=r"half\.npz"):
        load(tmp_path / "half.npz")


def test_nothing_half_written_is_left(run: ls.simulation.Simulation, tmp_path: Path):
    (tmp_path / "file").write_text("")
    for write in (run.to_csv, run.to_npz):
        with pytest.raises(ArgumentError, match="cannot be written"):
            write(tmp_path / "file" / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_parquet(run: ls.simulation.Simulation, tmp_path: Path):
    if importlib.util.find_spec("pyarrow") is None:
        with pytest.raises(ArgumentError, match="needs pyarrow, which is not installed: pip install pyarrow"):
            run.to_parquet(tmp_path / "run.parquet")
        assert not list(tmp_path.iterdir())
        return
    import pyarrow.parquet  # pyright: ignore[reportMissingImports]

    run.to_parquet(tmp_path / "run.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "run.parquet")
    assert np.array_equal(table["q.joint1"].to_numpy(), run.q[:, 7])
    assert b"linksweep" in table.schema.metadata


class Screen(io.StringIO):
    def __init__(self, terminal: bool):
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(("terminal", "wanted"), [(True, True), (True, False), (False, True)])
def test_bar_only_where_it_is_wanted_and_seen(terminal: bool, wanted: bool, monkeypatch: pytest.MonkeyPatch):
    screen = Screen(terminal)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress_module, "_DELAY", 0.0)
    ls.simulate(ls.robots.planar(2), np.zeros(2), None, None, 0.01, integrator=ls.simulation.RK4(progress=wanted))
    assert ("simulating planar" in screen.getvalue()) == (terminal and wanted)


# ---- abuse -----------------------------------------------------------------------------------------------------

ZERO, ONE = np.zeros(6), np.zeros((1, 6))
WRONG: dict[str, dict[str, Any]] = {
    "q0 short": {"q0": np.zeros(5)}, "q0 number": {"q0": 1.0}, "q0 text": {"q0": "zero"}, "q0 none": {"q0": None},
    "q0 ragged": {"q0": [[0, 1], [2]]}, "q0 NaN": {"q0": ZERO * np.nan}, "q0 complex": {"q0": ZERO + 1j},
    "qd0 long": {"qd0": np.zeros(7)}, "qd0 inf": {"qd0": ZERO + np.inf},
    "batches": {"q0": np.zeros((2, 6)), "qd0": np.zeros((3, 6))},
    "huge batch": {"q0": np.broadcast_to(ZERO, (10**9, 6))},
    "huge result": {"q0": np.zeros((10**4, 6)), "duration": 1e4},
    "endless": {"duration": 1e12},
    "endless torques": {"duration": 1e9, "every": 10**12, "torque": FeedForward(lambda t: t)},
    "no time": {"duration": 0.0}, "time back": {"duration": -1.0}, "time NaN": {"duration": np.nan},
    "time text": {"duration": "1"}, "part of a step": {"duration": 0.0105, "dt": 0.01}, "no step": {"dt": 0.0},
    "short": {"duration": 1e-9}, "every": {"every": 3}, "every 0": {"every": 0}, "every text": {"every": "2"},
    "integrator": {"integrator": "rk5"}, "integrator none": {"integrator": None}, "dtype": {"dtype": "int8"},
    "threads": {"threads": 0}, "limits": {"limits": "break"}, "stop": {"limits": "stop"}, "events": {"events": [len]},
    "event": {"events": len}, "backend": {"backend": "gpu"}, "method": {"method": "runge"},
    "dissipation": {"dissipation": "yes"}, "torque short": {"torque": np.zeros(5)}, "torque text": {"torque": "zero"},
    "torque NaN": {"torque": ZERO + np.nan}, "torque rows": {"torque": np.zeros((7, 6))},
    "torque class": {"torque": PD}, "torque batch": {"torque": Constant(np.zeros((4, 6)))},
    "torque batch in time": {"torque": Sampled(np.zeros((11, 3, 6))), "q0": np.zeros((2, 6))},
    "gains": {"torque": PD(ZERO, [1.0, 2.0], 1.0)}, "reference": {"torque": PD(np.zeros(3), 1.0, 1.0)},
    "path": {"torque": FeedForward(lambda t: (t, t))}, "path shape": {"torque": FeedForward(lambda t: (t, t, t))},
    "function": {"torque": lambda t, q, qd: np.zeros(3)}, "batch adaptive": {"q0": ONE, "integrator": "adaptive"},
    "rtol": {"integrator": "adaptive", "rtol": -1.0},
    "float32 adaptive": {"integrator": "adaptive", "dtype": "float32"},
}  # fmt: skip


def refuse_everything() -> None:
    robot = ls.robots.puma560()
    for name, arguments in WRONG.items():
        try:
            ls.simulate(**{"robot": robot, "q0": ZERO, "duration": 0.01, **arguments})
        except LinksweepError as error:
            text = str(error)
            assert "\n" not in text and text.endswith(".") and len(text) < 400, (name, text)
        else:
            raise AssertionError(f"{name} was taken")
    try:
        ls.simulate("puma560", ZERO)  # type: ignore[arg-type]
    except ArgumentError as error:
        assert "expected a Robot" in str(error)


def take_odd_arrays() -> None:
    """Non-contiguous, reversed, Fortran-ordered, integer and float32 states; empty and single batches; odd lengths."""
    robot = ls.robots.puma560()
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(9, 12))
    plain = ls.simulate(robot, wide[::-1, ::2].copy(), wide[:, 1::2].copy(), None, 0.01)
    odd = ls.simulate(robot, wide[::-1, ::2], np.asfortranarray(wide[:, 1::2]), None, 0.01)
    assert np.array_equal(plain.q, odd.q)
    assert ls.simulate(robot, np.zeros((0, 6)), None, None, 0.01).q.shape == (11, 0, 6)
    assert ls.simulate(robot, np.zeros((1, 1, 6), int), None, None, 0.01).q.shape == (11, 1, 1, 6)
    before = wide.copy()
    for count in (1, 2, 3, 63, 64, 65, 129):
        q0 = np.repeat(wide[:1, :6], count, axis=0)
        for threads in (1, 2, 5):
            found = ls.simulate(
                robot,
                q0,
                None,
                Constant(np.ones((count, 6))),
                0.003,
                every=3,
                integrator=ls.simulation.RK4(threads=threads),
            )
            assert (found.q == found.q[:, :1]).all(), (count, threads)
    assert np.array_equal(wide, before)


@pytest.mark.slow
def test_wrong_arguments_are_one_sentence_each():
    in_process(refuse_everything)


def test_odd_arrays_are_taken():
    in_process(take_odd_arrays)
