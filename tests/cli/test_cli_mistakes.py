"""The commands as a newcomer types them: every mistake is one sentence and exit code 2, and nothing is written."""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

MISTAKES = {
    # no command, no robot, too many of them, in the wrong order
    "inf": "Did you mean 'info'",
    "puma560": "No such command 'puma560'",
    "--json info puma560": "No such option: --json",
    "info": "Missing argument 'ROBOT'",
    "check": "Missing argument 'ROBOT'",
    "bench": "Missing argument 'ROBOT'",
    "inverse": "Missing argument 'ROBOT'",
    "forward": "Missing argument 'ROBOT'",
    "simulate": "Missing argument 'ROBOT'",
    "export": "Missing argument 'ROBOT'",
    "count": "got none of them, expected one of a robot, --general or --tables",
    "info puma560 stanford": "extra argument(s) (stanford)",
    "demo puma560": "extra argument(s) (puma560)",
    "export inverse_dynamics puma560 -o a.c": "linksweep export puma560 inverse_dynamics",
    "inverse few.csv -t puma560": "few.csv: the suffix '.csv' is not known",
    # robots
    "info puma": "did you mean 'puma560'",
    "info PUMA560": "did you mean 'puma560'",
    "info notes": "There is no robot 'notes'",
    "info ''": "There is no robot ''",
    "info folder": "folder: this is a directory",
    "info folder.urdf": "folder.urdf: this is a directory",
    "info notes.txt": "notes.txt: the suffix '.txt' is not known",
    "info missing.urdf": "missing.urdf: there is no such file",
    "info empty.urdf": "empty.urdf: the file or text is empty",
    "info binary.urdf": "binary.urdf: this is a binary file",
    "info broken.urdf": "broken.urdf, line 1",
    "info broken.toml": "broken.toml: this is not valid TOML",
    "info pipe.urdf": "pipe.urdf: this is a device or pipe",
    "check puma": "did you mean 'puma560'",
    "count folder": "folder: this is a directory",
    "bench missing.xml": "missing.xml",
    # how it is loaded
    "info puma560 --base": "'--base' requires an argument",
    "info puma560 --base float": "--base is 'float' (did you mean 'floating'?)",
    "check puma560 --mimic coupled": "--mimic is 'coupled' (did you mean 'couple'?)",
    "count --base floating --tables": "--base goes with a robot",
    "info puma560 --gravity 9.81": "--gravity has '9.81', expected three numbers",
    "info puma560 --gravity 0,0,down": "--gravity has '0,0,down'",
    "info puma560 --gravity nan,0,0": "expected three finite numbers",
    "info puma560 --gravity 0 0 -9.81": "write them as 0,0,-9.81, without spaces",
    "info puma560 --payload two": "--payload is 'two', expected MASS",
    "info puma560 --payload 2@": "--payload is '2@', expected MASS",
    "info puma560 --payload 2,0,0@tool": "--payload has '0,0', expected three numbers",
    "info puma560 --payload 2@hand": "no link or frame 'hand'",
    "info puma560 --payload -2": "'payload' is -2.0, expected zero or more",
    "info puma560 --payload nan": "'payload' is nan, expected finite",
    "info puma560 --root missing": "--root is 'missing', expected an existing folder",
    "info puma560 --root notes.txt": "--root is 'notes.txt', expected an existing folder",
    # trajectories and outputs
    "inverse puma560": "Missing option '--trajectory' / '-t'",
    "inverse puma560 few.csv": "Missing option '--trajectory' / '-t'",
    "inverse puma560 -t": "'-t' requires an argument",
    "inverse puma560 --trajectry few.csv": "No such option: --trajectry",
    "inverse puma560 -t folder": "folder cannot be read (Is a directory)",
    "inverse puma560 -t missing.csv": "missing.csv cannot be read (No such file or directory)",
    "inverse puma560 -t few.csv": "few.csv has no column 'q.joint2'",
    "inverse puma560 -t empty.csv": "empty.csv is empty",
    "inverse puma560 -t notes.txt": "notes.txt has no column 't'",
    "inverse puma560 -t broken.toml": "broken.toml is not TOML",
    "inverse puma560 -t few.csv -o": "'-o' requires an argument",
    "inverse puma560 -t few.csv -o out": "ends in '', expected .csv",
    "inverse puma560 -t few.csv -o out.xlsx": "ends in '.xlsx', expected .csv",
    "inverse puma560 -t few.csv -o folder.csv": "folder.csv is a folder, expected a file",
    "inverse puma560 -t few.csv --plot out": "The plot out ends in ''",
    "inverse puma560 -t few.csv --method kanes": "did you mean 'kane'",
    "forward puma560 -t few.csv --method kane": "forward_dynamics has no method 'kane'",
    "check puma560 -o x": "No such option: -o",
    # numbers
    "simulate puma560 --duration ten": "Invalid value for '--duration'",
    "simulate puma560 --duration 0": "duration is 0.0, expected a finite number above 0",
    "simulate puma560 --dt 0.3": "expected a whole number of steps: pass --dt 0.25",
    "simulate puma560 --duration 1e300": "steps of --dt 0.001, expected at most",
    "inverse puma560 -t few.csv -o loop.csv": "loop.csv is a link that leads to itself",
    "inverse puma560 -t few.csv -o null.csv": "null.csv is a device or pipe",
    "inverse puma560 -t few.csv -o fifo.csv": "fifo.csv is a device or pipe",
    "simulate puma560 --q0 1 2 3 4 5 6": "write them as 0,0,-9.81, without spaces",
    "simulate puma560 --q0 90deg": "--q0 has 1 numbers, expected 6",
    "simulate puma560 --every 0": "every is 0",
    "simulate puma560 --torque zero --kp 7": "--torque is 'zero', which has no --kp, expected pd or computed_torque",
    "simulate puma560 --kp 100 --kd 20": "--torque is 'zero', which has no --kp and no --kd, expected pd",
    "simulate puma560 --torque few.csv -o few.csv": "The output few.csv is the file of torques itself",
    "bench puma560 --batch many": "Invalid value for '--batch'",
    "bench puma560 --function rnea": "--function is 'rnea'",
    "check puma560 --samples 0": "samples is 0",
    # export, count, study
    "export puma560": "Missing option '--output' / '-o'",
    "export puma560 -o a.c": "FUNCTION is missing",
    "export puma560 inverse_dynamics": "Missing option '--output' / '-o'",
    "export puma560 inverse -o a.c": "did you mean 'inverse_dynamics'",
    "export puma560 inverse_dynamics -o a.txt": "expected a name such as puma.c",
    "export puma560 jacobian -o a.c": "jacobian needs --frame",
    "export puma560 inverse_dynamics -o a.c --parameter paylod": "did you mean 'payload'",
    "count puma560 --method newton": "did you mean 'newton_euler'",
    "count puma560 --general": "got puma560 and --general",
    "study plana": "did you mean 'planar'",
    "study planar --output few.csv": "The folder few.csv cannot be written",
    "demo --output notes.txt": "cannot be written",
}


@pytest.fixture
def clutter(tmp_path: Path) -> Path:
    """What may stand in the folder of somebody who begins."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder.urdf").mkdir()
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "notes.txt").write_text("hello\n")
    (tmp_path / "broken.urdf").write_text("<robot")
    (tmp_path / "broken.toml").write_text("a = [")
    (tmp_path / "empty.urdf").touch()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "binary.urdf").write_bytes(b"\0\1\2")
    (tmp_path / "few.csv").write_text("t,q.joint1\n0,1\n")
    os.mkfifo(tmp_path / "pipe.urdf")
    os.mkfifo(tmp_path / "fifo.csv")
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    (tmp_path / "null.csv").symlink_to("/dev/null")
    return tmp_path


@pytest.mark.parametrize("words", MISTAKES)
def test_one_sentence(run, clutter: Path, words: str):
    before = sorted(path.name for path in clutter.iterdir())
    outcome = run(*shlex.split(words))
    assert outcome.code == 2 and outcome.out == "", outcome
    assert outcome.err.startswith("linksweep: ") and outcome.err.count("\n") == 1, outcome.err
    assert MISTAKES[words] in outcome.err, outcome.err
    assert "Traceback" not in outcome.err and "RobotArguments" not in outcome.err
    assert sorted(path.name for path in clutter.iterdir()) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(run, clutter: Path):
    (clutter / "broken.urdf").chmod(0)
    outcome = run("info", "broken.urdf")
    assert outcome.code == 2 and "Permission denied" in outcome.err and outcome.err.count("\n") == 1


MIMIC = """<robot name="gripper"><link name="base"/>{links}
<joint name="a" type="prismatic"><parent link="base"/><child link="one"/><limit lower="0" upper="1" effort="1"
 velocity="1"/></joint><joint name="b" type="prismatic"><parent link="base"/><child link="two"/><limit lower="0"
 upper="1" effort="1" velocity="1"/><mimic joint="a"/></joint></robot>""".format(
    links="".join(
        f'<link name="{name}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
        "</inertial></link>"
        for name in ("one", "two")
    )
)


def test_hints_are_options_of_the_command(run, tmp_path: Path):
    (tmp_path / "gripper.urdf").write_text(MIMIC)
    command = [sys.executable, "-m", "linksweep", "info", "gripper.urdf"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)  # where warnings are printed
    assert done.returncode == 0 and "--mimic couple" in done.stderr and "mimic=" not in done.stderr
    (tmp_path / "experiment.toml").write_text('robot = "puma560"\nduration = 1\ndt = 0.3\n')
    outcome = run("simulate", "experiment.toml")  # where it is a key of the file
    assert outcome.code == 2 and "dt=0.25" in outcome.err and "--dt" not in outcome.err


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "Not enough memory"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "Not enough memory"),
        (OSError("no number"), "no number"),
        (OSError(errno.ENOSPC, "No space left on device"), "standard output cannot be written"),
        (OSError(errno.EACCES, "Permission denied", "some.csv"), "some.csv"),
    ],
)
def test_errors_of_the_system(run, monkeypatch: pytest.MonkeyPatch, error: Exception, sentence: str):
    import linksweep.cli as cli

    def fails(**options: object) -> None:
        raise error

    monkeypatch.setattr(cli, "app", fails)
    monkeypatch.setattr(cli, "_forget_output", lambda: None)
    outcome = run("info", "puma560")
    assert outcome.code == 2 and sentence in outcome.err and outcome.err.count("\n") == 1
    assert ("standard output" in outcome.err) == (sentence.startswith("standard output"))


def test_llvm_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch):
    import llvmlite.binding as llvm

    from linksweep.backends import target
    from linksweep.errors import BackendError

    def fails() -> None:
        raise OSError("Could not find/load shared object file")

    monkeypatch.setattr(llvm, "initialize_native_target", fails)
    with pytest.raises(BackendError, match="LLVM cannot be loaded"):
        target.initialized_llvm.__wrapped__()


def test_an_output_that_is_a_link_stays_one(run, tmp_path: Path):
    joints = [f"joint{k}" for k in range(1, 7)]
    names = ["t", *(f"{block}.{joint}" for block in ("q", "qd", "qdd") for joint in joints)]
    rows = "\n".join(",".join(["0.0" if not k else f"{k}.0"] + ["0.1"] * 18) for k in range(3))
    (tmp_path / "in.csv").write_text(",".join(names) + "\n" + rows + "\n")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "real.csv").write_text("before")
    for name, target in (("link.csv", "data/real.csv"), ("chain.csv", "link.csv"), ("new.csv", "data/made.csv")):
        (tmp_path / name).symlink_to(target)
        outcome = run("inverse", "puma560", "-t", "in.csv", "-o", name)
        assert outcome.code == 0, outcome.err
        assert (tmp_path / name).is_symlink() and os.readlink(tmp_path / name) == target
        assert (tmp_path / name).resolve().read_text().startswith("t,")
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["made.csv", "real.csv"]
