"""What users do with a fit: predict, report, write; and the commands."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from arms import arm, case
from command_line import Outcome

import linksweep as ls
from linksweep.files import block_columns, write_table
from linksweep.identification import report
from linksweep.identification.estimate import Estimate, essential_parameters
from linksweep.identification.report import percent
from linksweep.papers import studies


def logged(seed: int = 0, name: str = "puma560") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    own = case(name, seed=seed)
    return own.t, own.q, own.tau + 0.05 * np.random.default_rng(seed).normal(size=own.tau.shape)


@functools.cache
def fitted(name: str = "puma560") -> ls.identification.Fit:
    return ls.identify(arm(name), *logged(0, name), cutoff=20.0)


@pytest.mark.quick
def test_another_motion_is_predicted():
    other = case("puma560", seed=7)
    # one truth for both motions: the first one's friction
    first = case("puma560", seed=0)
    bare = other.robot.inverse_dynamics(other.q, other.qd, other.qdd) - other.qdd * other.robot.armature
    expected = (
        bare + first.armature * other.qdd + first.viscous * other.qd + first.coulomb * np.sign(other.qd) + first.offset
    )
    found = fitted().predict(other.t, other.q)
    moving = np.abs(other.qd) > 0.05 * np.abs(other.qd).max(axis=0)
    inside = slice(40, -40)  # at the ends the filter guesses
    rest = ((found - expected) * moving)[inside]
    assert np.sqrt(np.mean(np.square(rest), axis=0)).max() < 0.05
    with_rates = fitted().predict(other.t, other.q, other.qd)
    assert np.sqrt(np.mean(np.square(((with_rates - expected) * moving)[inside]), axis=0)).max() < 0.05


def test_predictions_stand_at_the_times_that_were_asked_for():
    t, q, _ = logged(0)
    keep = np.ones(len(t), bool)
    keep[[50, 51, 700]] = False
    whole, some = fitted().predict(t, q), fitted().predict(t[keep], q[keep])
    assert some.shape == (keep.sum(), 6)
    slow = np.abs(case("puma560").qd) < 0.1  # where friction turns round, neighbours differ
    assert np.abs((some - whole[keep]) * ~slow[keep])[40:-40].max() < 0.1
    keep[100:500] = False
    keep[300] = True
    with pytest.raises(ls.ArgumentError, match=r"row 98 at t = 1.5 s is between gaps and has no velocity"):
        fitted().predict(t[keep], q[keep])


def test_a_fit_says_what_it_is():
    fit = fitted()
    assert repr(fit).startswith("<Fit of puma560: 58 of 58 base parameters, weighted, cut-off 20 Hz, RMS residual")
    assert fit["joint1.viscous"] == fit.values[fit.names.index("joint1.viscous")]
    assert "joint1.armature" in fit.groups["ZZ1"] and set(fit.groups) == set(fit.names)
    with pytest.raises(ls.ArgumentError, match=r"no parameter 'ZZ9'.*did you mean"):
        fit["ZZ9"]
    with pytest.deprecated_call():
        assert fit.physical_numbers is fit.physical_parameters


@pytest.mark.slow
def test_a_report_is_a_folder(tmp_path: Path):
    text = fitted().report(tmp_path / "out")
    written = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert written == [
        "parameters.csv", "parameters.png", "report.md", "robot.srdf", "robot.urdf", "spectra.png", "torques.png",
    ]  # fmt: skip
    assert (tmp_path / "out" / "report.md").read_text(encoding="utf-8") == text
    for name in ("joint6.offset", "ZZ1 *", "smallest eigenvalue", "torque offset"):
        assert name in text
    rows = (tmp_path / "out" / "parameters.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == 59 and rows[0].startswith("parameter,value,deviation")
    robot = ls.load(tmp_path / "out" / "robot.urdf")
    assert np.allclose(robot.armature, fitted().robot.armature)
    assert np.allclose(robot.torque_offset, fitted().robot.torque_offset)
    assert fitted().report() in text  # without a folder: the same, but for the files
    (tmp_path / "file").write_text("")
    with pytest.raises(ls.ArgumentError, match="is a file, expected a folder"):
        fitted().report(tmp_path / "file")


@pytest.fixture
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports without plots, which take most of the time; `test_a_report_is_a_folder` draws them."""
    monkeypatch.setattr(report, "_draw", lambda fit, name, path: None)


@pytest.mark.slow
@pytest.mark.usefixtures("without_plots")
def test_a_report_keeps_the_file_of_the_robot(tmp_path: Path):
    own = case("panda", duration=3.0)
    source = Path(own.robot.model.source)
    with pytest.warns(ls.LogWarning):
        fit = ls.identify(own.robot, own.t, own.q, own.tau + 5.0 * own.qd, cutoff=20.0, unknown=("viscous", "coulomb"))
    text = fit.report(tmp_path / "out")
    written = (tmp_path / "out" / "robot.urdf").read_text(encoding="utf-8")
    original = source.read_text(encoding="utf-8")
    assert str(source) in text and written.count("<collision>") == original.count("<collision>") > 0
    assert written.count("<visual>") == original.count("<visual>") and written.count("<inertial>") > 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.ModelWarning)
        again = ls.load(tmp_path / "out" / "robot.urdf")
    assert np.allclose(again.damping[:7], fit.robot.damping) and "panda_finger_joint1" in again.joint_names


def test_percentages_say_something():
    assert [percent(*x) for x in ((1.0, 8.0), (25.0, 1.0), (1.0, 0.0), (np.inf, 1.0))] == ["12.5 %", ">100 %", "", ""]
    fit = fitted()
    assert "e+" not in "".join(line for line in fit.report().splitlines() if "%" in line)
    essential = set(fit.essential())
    certain = np.abs(fit.values) > fit.deviations
    assert essential and all(certain[k] for k, name in enumerate(fit.names) if name in essential)


def test_essential_numbers_are_certain():
    """Two numbers that a log hardly tells apart: one of them stands in for both, and neither is certain."""
    rng = np.random.default_rng(0)
    root = np.array([[100.0, 100.0, 0.0], [0.0, 0.01, 0.0], [0.0, 0.0, 50.0]])
    target = root @ np.array([1.0, 1.0, 1.0]) + rng.normal(size=3)
    covariance = np.linalg.inv(root.T @ root)
    values = np.linalg.solve(root, target)
    found = Estimate(values, covariance, np.ones(1), np.ones(1), np.ones(3, bool), root, target, np.ones(1), 1.0)
    kept = essential_parameters(found, covariance, 1000, 0.3)
    assert kept == [2] or all(values[k] ** 2 > covariance[k, k] for k in kept)


def test_a_robot_whose_joints_mimic_others():
    """A gripper: the log has the coordinates that are left, the fit the full robot's numbers."""
    full = arm("puma560").with_dissipation(0.0, 0.0)
    coupled = full.with_couplings([ls.Coupling("joint6", "joint5", 0.5)])
    own = case("puma560")
    q, qd, qdd = own.q[:, :5], own.qd[:, :5], own.qdd[:, :5]
    tau = coupled.inverse_dynamics(q, qd, qdd) + 0.4 * qd
    fit = ls.identify(coupled, own.t, q, tau, cutoff=np.inf, unknown=("inertia", "armature", "viscous"))
    assert fit.rms.shape == (5,) and fit.rms.max() < 1e-5
    again = fit.robot.inverse_dynamics(q, qd, qdd)
    assert fit.robot.couplings == coupled.couplings and again.shape == tau.shape


@pytest.mark.slow
def test_the_study_meets_its_checks(tmp_path: Path):
    written = studies.run("identify", tmp_path, iterations=8)
    assert written.ok, written
    text = (tmp_path / "identify.md").read_text(encoding="utf-8")
    assert "MX1 = " in text and "| iv |" in text


# ---- the commands --------------------------------------------------------------------------------------------------


def process(*words: Any, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "linksweep", *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=600
    )


def write_log(path: Path, seed: int = 0, rates: bool = False) -> None:
    t, q, tau = logged(seed)
    blocks = ("q", "qd", "tau") if rates else ("q", "tau")
    table = np.column_stack([t, q, *([case("puma560", seed=seed).qd] if rates else []), tau])
    write_table(path, block_columns(arm("puma560").model, blocks), [table], {})


def errors(done: subprocess.CompletedProcess[str]) -> str:
    """What is said beside the remark that this motion goes beyond the PUMA's limits."""
    return "".join(x for x in done.stderr.splitlines(keepends=True) if not x.startswith("linksweep: warning: limits:"))


@pytest.mark.slow
@pytest.mark.usefixtures("without_plots")
@pytest.mark.filterwarnings("ignore:limits:linksweep.errors.LogWarning")
def test_identify_from_files(run: Callable[..., Outcome], tmp_path: Path):
    write_log(tmp_path / "a.csv")
    write_log(tmp_path / "b.csv", 0, rates=True)
    done = process("identify", "puma560", "a.csv", "--out", "one", "--cutoff", 20, cwd=tmp_path)
    assert done.returncode == 0 and not errors(done), done.stderr
    assert "58 of 58 base parameters" in done.stdout and (tmp_path / "one" / "report.md").is_file()
    words = ["-o", "two", "--cutoff", 20, "--method", "entropic", "--drive", "pair=joint5-2*joint6", "--json"]
    words += ["--unknown", "inertia,armature,viscous,coulomb"]
    done = run("identify", "puma560", "a.csv", "b.csv", *words)
    assert done.code == 0, done.err
    facts = json.loads(done.out)
    assert facts["method"] == "entropic" and "pair.coulomb" in facts["parameters"]
    assert abs(facts["parameters"]["joint1.viscous"]["value"] - case("puma560").viscous[0]) < 0.05


@pytest.mark.slow
@pytest.mark.usefixtures("without_plots")
@pytest.mark.filterwarnings("ignore:limits:linksweep.errors.LogWarning")
def test_identify_validates_with_another_file(run: Callable[..., Outcome], tmp_path: Path):  # in tmp_path
    write_log(tmp_path / "a.csv")
    write_log(tmp_path / "b.csv", 5)
    words = [
        "identify",
        "puma560",
        "a.csv",
        "--out",
        "one",
        "--cutoff",
        20,
        "--validate",
        "b.csv",
        "--validate",
        "a.csv",
    ]
    done = run(*words)
    assert done.code == 0, done.err
    assert "b.csv, not fitted:" in done.out and "## Validation: b.csv" in (tmp_path / "one" / "report.md").read_text()
    facts = json.loads(run(*words, "--json").out)
    same, other = facts["validated"]["a.csv"], facts["validated"]["b.csv"]
    # the other log is of an arm with other friction: worse than the one that was fitted
    assert same["joint1"]["rms"] < 0.2 < other["joint1"]["rms"] and set(other) == set(facts["rms"])
    done = run(*words, "--validate", "none.csv")
    assert done.code == 2 and "cannot be read" in done.err


@pytest.mark.slow
@pytest.mark.usefixtures("without_plots")
def test_a_file_is_read_as_it_was_logged(run: Callable[..., Outcome], tmp_path: Path):
    """Repeated times and NaN are named, as in arrays."""
    write_log(tmp_path / "a.csv")
    lines = (tmp_path / "a.csv").read_text().splitlines()
    lines[40] = ",".join([lines[40].split(",")[0], *["nan"] * 12])
    (tmp_path / "a.csv").write_text("\n".join([*lines[:4], lines[3], *lines[4:]]) + "\n")
    with pytest.warns(ls.LogWarning) as caught:
        done = run("identify", "puma560", "a.csv", "-o", "one", "--cutoff", 20)
    assert done.code == 0, done.err
    said = " ".join(str(warning.message) for warning in caught)
    assert "repeats: 1 rows repeat" in said and "missing: 1 of " in said
    text = (tmp_path / "one" / "report.md").read_text(encoding="utf-8")
    assert "**repeats**" in text and "**missing**" in text


@pytest.fixture(scope="module")
def wrong_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a correct log, a.csv, and logs that cannot be used."""
    folder = tmp_path_factory.mktemp("logs")
    write_log(folder / "a.csv")
    lines = (folder / "a.csv").read_text().splitlines()
    table = np.loadtxt(folder / "a.csv", delimiter=",", skiprows=1)
    files = {
        "empty": [], "one": lines[:2], "header": lines[:1],
        "other": ["time," + ",".join(f"{w}{k}" for w in ("pos", "torque") for k in range(1, 7)), *lines[1:]],
        "hole": [*lines[:2], ",".join("" if k == 2 else x for k, x in enumerate(lines[2].split(",")))],
        "degrees": [lines[0], *(",".join(map(repr, row)) for row in np.hstack(
            [table[:, :1], np.degrees(table[:, 1:7]), table[:, 7:]]).tolist())],
    }  # fmt: skip
    for name, text in files.items():
        (folder / f"{name}.csv").write_text("\n".join(text) + "\n" * bool(text))
    (folder / "a.npz").write_bytes(b"PK")
    (folder / "no_torque.csv").write_text("\n".join(",".join(line.split(",")[:7]) for line in lines) + "\n")
    return folder


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["none.csv"], "cannot be read"),
        (["a.csv", "--method", "magic"], "--method is 'magic'"),
        (["a.csv", "--drive", "joint5+joint6"], "expected NAME=JOINT+JOINT"),
        (["a.csv", "--drive", "m=elbow"], "'m' turns with 'elbow'"),
        (["a.csv", "--unknown", "mass"], "there is no 'mass'"),
        (["a.csv", "--cutoff", "1000"], "less than half the log's rate"),
        (["a.csv", "--out", "a.csv"], "is a file, expected a folder"),
        (["a.csv", "--topic", "/joint_states"], "has no topics"),
        (["empty.csv"], "is empty, expected a header"),
        (["one.csv"], "t has shape (1,)"),
        (["header.csv"], "has a header but no rows"),
        (["other.csv"], "no column 'q.joint1'"),
        (["hole.csv"], "line 3: q.joint2 is '', expected a number"),
        (["degrees.csv"], "it seems to be in degrees"),
        (["a.npz"], "damaged"),
        (["no_torque.csv"], "no column 'tau.joint1'"),
    ],
)
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:limits:linksweep.errors.LogWarning")  # this motion exceeds the PUMA's limits
def test_mistakes_on_the_command_line(
    run: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, wrong_files: Path, words: list[str], sentence: str
):
    monkeypatch.chdir(wrong_files)
    done = run("identify", "puma560", *words)
    assert done.code == 2 and sentence in done.err and done.err.count("\n") == 1, done.err
    assert not (wrong_files / "out").exists()


@pytest.mark.slow
def test_rounding_is_no_delay():
    """All that is left over of a perfect log is rounding, which fits one shift as well as another."""
    robot = ls.robots.puma560()
    t, q, qd, qdd = ls.excite(robot, 4.0, harmonics=3).samples(100.0)
    fit = ls.identify(robot, t, q, robot.inverse_dynamics(q, qd, qdd, dissipation=True), qd)
    assert "delay" not in fit.remarks


@pytest.mark.slow
def test_excite_writes_a_motion(run: Callable[..., Outcome], tmp_path: Path):
    done = run("excite", "puma560", "-o", "motion.csv", "--duration", 4, "--harmonics", 2, "--plot", "motion.png",
               "--box", "tool=-2,-2,-2:2,2,2")  # fmt: skip
    assert done.code == 0, done.err
    assert "condition number" in done.out and (tmp_path / "motion.png").is_file()
    torques = run("inverse", "puma560", "--trajectory", "motion.csv", "-o", "tau.csv")
    assert torques.code == 0 and len((tmp_path / "tau.csv").read_text().splitlines()) == 402
    for words, sentence in (
        (["--box", "tool=1,2"], "expected FRAME=X,Y,Z:X,Y,Z"),
        (["--kind", "sine"], "kind is 'sine'"),
        (["-o", "motion.txt"], "ends in '.txt'"),
    ):
        done = run("excite", "puma560", *words)
        assert done.code == 2 and sentence in done.err, done.err
