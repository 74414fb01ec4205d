"""`linksweep simulate`, `study` and `bench`: the library's numbers, and one sentence for a mistake."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import ROBOT

import linksweep as ls
from linksweep.motion import Quintic
from linksweep.papers.studies import STUDIES
from linksweep.simulation import FeedForward, load, simulate

MOTION = """motion = "quintic"
times = [0.0, 0.5]
[joints]
joint1 = [0.0, 0.3]
joint2 = [-0.5, 0.1]
joint3 = 0.2
joint4 = [0.0, 1.0]
joint5 = 0.0
joint6 = [1.0, 0.0]
"""
STARTS, ENDS = [0.0, -0.5, 0.2, 0.0, 0.0, 1.0], [0.3, 0.1, 0.2, 1.0, 0.0, 0.0]


def test_simulate_is_simulate(run):
    outcome = run("simulate", "puma560", "--duration", "0.2", "--dt", "0.01", "--q0", "joint2=-0.5", "-o", "s.npz")
    assert outcome.code == 0, outcome.err
    wanted = simulate(ROBOT, [0.0, -0.5, 0.0, 0.0, 0.0, 0.0], duration=0.2, dt=0.01)
    found = load("s.npz")
    for name in ("t", "q", "qd", "qdd", "tau"):
        np.testing.assert_array_equal(getattr(found, name), getattr(wanted, name))
    assert re.search(r"energy drift .*: \d", outcome.out) and outcome.out.endswith("wrote s.npz\n")


def test_simulate_follows_a_motion(run):
    Path("m.toml").write_text(MOTION)
    outcome = run("simulate", "puma560", "--motion", "m.toml", "--json", "-o", "s.csv", "--plot", "s.png")
    facts = json.loads(outcome.out)
    wanted = simulate(ROBOT, STARTS, None, FeedForward(Quintic([STARTS, ENDS], [0.0, 0.5])), 0.5)
    assert facts["final"]["q"] == wanted.q[-1].tolist()
    np.testing.assert_allclose(facts["final"]["q"], ENDS, atol=1e-9)
    assert facts["finite"] and facts["moments"] == 501 and facts["energy"]["drift"] is None
    assert Path("s.png").read_bytes().startswith(b"\x89PNG")
    # its file is a trajectory, and a law of torques
    assert run("inverse", "puma560", "-t", "s.csv", "-o", "tau.csv").code == 0
    tau = np.loadtxt("tau.csv", delimiter=",", skiprows=1)[:, 1:]
    np.testing.assert_allclose(tau, wanted.tau, rtol=1e-10, atol=1e-10)
    start = ",".join(map(str, STARTS))
    facts = json.loads(run("simulate", "puma560", "--torque", "tau.csv", f"--q0={start}", "--json").out)
    assert facts["duration"] == 0.5
    np.testing.assert_allclose(facts["final"]["q"], ENDS, atol=1e-9)  # 1 ms of cubic between samples adds no more


@pytest.mark.parametrize("law", ["pd", "computed_torque"])
def test_simulate_holds_where_it_starts(run, law: str):
    outcome = run("simulate", "puma560", "--torque", law, "--q0", "-1,0.5,0,0,1,0", "--duration", "0.1", "--json")
    facts = json.loads(outcome.out)
    np.testing.assert_allclose(facts["final"]["q"], [-1, 0.5, 0, 0, 1, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--q0 1,2", "--q0 has 2 numbers, expected 6"),
        ("--q0 jiont1=1", "'jiont1' .did you mean 'joint1'"),
        ("--q0 joint1=1,joint1=2", "'joint1' twice"),
        ("--qd0 joint1=x", "--qd0 has 'x' for joint1"),
        ("--torque pid", "--torque is 'pid'"),
        ("--torque feed_forward", "needs a motion"),
        ("--torque missing.csv", "missing.csv cannot be read"),
        ("--motion missing.toml", "missing.toml cannot be read"),
        ("--motion m.toml --torque m.csv", "expected one of them"),
        ("--duration -1", "duration is -1"),
        ("--dt 0", "dt is 0"),
        ("--integrator euler", "semi_implicit_euler"),
        ("--method fd9", "no method 'fd9'"),
        ("--show p", "--show is 'p'"),
        ("--plot s.xyz", "ends in '.xyz'"),
        ("-o s.txt", "ends in '.txt'"),
    ],
)
def test_simulate_refuses(run, arguments: str, says: str):
    Path("m.toml").write_text(MOTION)
    outcome = run("simulate", "puma560", *arguments.split())
    assert outcome.code == 2 and outcome.out == "" and re.search(says, outcome.err), outcome
    assert outcome.err.startswith("linksweep: ") and outcome.err.count("\n") == 1
    assert [path.name for path in Path().iterdir()] == ["m.toml"]


@pytest.mark.slow
def test_study_lists_and_runs(run):
    lines = run("study").out.splitlines()
    assert [line.split()[0] for line in lines] == list(STUDIES)
    outcome = run("study", "planar", "--out", "new/folder", "--json")
    facts = json.loads(outcome.out)
    assert outcome.code == 0 and facts["ok"] and all(Path(name).exists() for name in facts["files"])
    assert {Path(name).suffix for name in facts["files"]} == {".csv", ".md", ".png", ".svg"}


@pytest.mark.slow
def test_study_refuses(run):
    outcome = run("study", "plana")
    assert outcome.code == 2 and "did you mean 'planar'" in outcome.err
    Path("out").touch()
    outcome = run("study", "planar")
    assert outcome.code == 2 and outcome.err.count("\n") == 1 and "out cannot be written" in outcome.err


def test_bench_measures_every_method(run):
    outcome = run("bench", "puma560", "--function", "mass_matrix", "--batch", "64", "--json")
    rows = json.loads(outcome.out)["rows"]
    methods = [row["method"] for row in rows if row["method"] != "Pinocchio"]
    assert methods == list(ls.robots.puma560().methods("mass_matrix"))
    assert all(row["single_per_second"] > 0 for row in rows)
    outcome = run("bench", "puma560", "--function", "mass_matrices")
    assert outcome.code == 2 and "did you mean 'mass_matrix'" in outcome.err
    assert run("bench", "puma560", "--batch", "0").code == 2
