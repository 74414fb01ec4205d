"""`linksweep export` and the files that it writes: both or none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from robots_for_tests import robot

from linksweep.errors import ArgumentError
from linksweep.functions.c_export import export_c

INVERSE = ("puma560", "inverse_dynamics")


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "linksweep", "export", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment)


def test_it_writes_a_source_and_a_header(tmp_path: Path):
    done = run(*INVERSE, "--language", "c", "-o", "puma.c", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "wrote puma.c puma.h\n" and done.stderr == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["puma.c", "puma.h"]
    assert '#include "puma.h"' in (tmp_path / "puma.c").read_text()
    assert "void puma560_inverse_dynamics(const double q[6]" in (tmp_path / "puma.h").read_text()
    if shutil.which("gcc"):
        command = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic", "-c", "puma.c"]
        assert subprocess.run(command, cwd=tmp_path).returncode == 0


@pytest.mark.slow
def test_its_options(tmp_path: Path):
    done = run(*INVERSE, "--method", "kane", "--dtype", "float", "--name", "torques", "--f-ext", "--dissipation",
               "--base-motion", "-o", "a/b.c", cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "a" / "b.c").read_text()
    assert "inverse_dynamics by kane with damping and friction of puma560" in text and "sinf(" in text
    assert "const float f_ext[restrict 36]" in text and "const float base_motion[restrict 9]" in text
    done = run(*INVERSE, "--parameter", "payload", "--parameter", "gravity", "-o", "c.c", cwd=tmp_path)
    assert done.returncode == 0 and "payload[10], const double gravity[3]" in (tmp_path / "c.h").read_text()
    done = run("puma560", "pose", "--frame", "tool", "-o", "pose.c", cwd=tmp_path)
    assert done.returncode == 0 and "T[restrict 16]" in (tmp_path / "pose.c").read_text(), done.stderr


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*INVERSE, "--language", "fortran", "-o", "x.c"), "--language is 'fortran', expected"),
        (("puma560", "inverse_dynamic", "-o", "x.c"), "did you mean 'inverse_dynamics'?"),
        (("pumma", "inverse_dynamics", "-o", "x.c"), "There is no robot 'pumma'"),
        (("puma560", "pose", "-o", "x.c"), "pose needs --frame"),
        (("puma560", "pose", "--frame", "tol", "-o", "x.c"), "did you mean 'tool'?"),
        (("puma560", "mass_matrix", "--frame", "tool", "-o", "x.c"), "takes no frame"),
        ((*INVERSE, "--method", "kan", "-o", "x.c"), "did you mean 'kane'?"),
        ((*INVERSE, "--dtype", "half", "-o", "x.c"), "expected 'double' or 'float'"),
        ((*INVERSE, "--parameter", "payloda", "-o", "x.c"), "payloda"),
        ((*INVERSE, "--name", "for", "-o", "x.c"), "which C or its library has already"),
        ((*INVERSE, "--name", "printf", "-o", "x.c"), "which C or its library has already"),
        (("puma560", "mass_matrix", "--f-ext", "-o", "x.c"), "--f-ext does not apply to mass_matrix"),
        ((*INVERSE, "-o", "x.cpp"), "end it in .c"),
        ((*INVERSE, "-o", "folder.c"), "is a folder"),
        ((*INVERSE, "-o", "file/x.c"), "cannot be written"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(tmp_path: Path, arguments: tuple[str, ...], words: str):
    (tmp_path / "folder.c").mkdir()
    (tmp_path / "file").touch()
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("linksweep: ") and done.stderr.count("\n") == 1 and words in done.stderr, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.c"]


def test_a_source_that_cannot_be_written_leaves_the_header_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    function = robot("puma560").compile("gravity_forces", backend="interpreter")
    from linksweep.functions import c_export

    real = c_export.write_text

    def full(path: Path, text: str) -> None:
        if path.suffix == ".c":
            raise OSError(28, "No space left on device")
        real(path, text)

    monkeypatch.setattr(c_export, "write_text", full)
    with pytest.raises(ArgumentError, match="No space left"):
        export_c(function, tmp_path / "g.c")
    assert not list(tmp_path.iterdir())
    old = f"/* {c_export.GENERATED} 0.0 */"
    (tmp_path / "g.h").write_text(old)
    with pytest.raises(ArgumentError, match="No space left"):
        export_c(function, tmp_path / "g.c")
    assert [path.name for path in tmp_path.iterdir()] == ["g.h"] and (tmp_path / "g.h").read_text() == old
