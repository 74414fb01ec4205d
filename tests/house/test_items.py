"""docs/algorithms/items.md: every command and every line of Python that shows an item of a paper runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import linksweep as ls

PAGE = Path(__file__).parents[2] / "docs" / "algorithms" / "items.md"
ROWS = re.findall(r"^\| (?P<item>[^|]+) \|[^|]+\| `(?P<how>[^`]+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
COMMANDS = list(dict.fromkeys(how for _, how in ROWS if how.startswith("linksweep ")))
LINES = [how for _, how in ROWS if not how.startswith("linksweep ")]


def test_every_row_has_a_way_to_see_it():
    rows = [
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ") and "---" not in line
    ]
    assert len(rows) == len(ROWS) + len(re.findall(r"^\| item \|", "\n".join(rows), re.MULTILINE)) and len(ROWS) > 50


@pytest.mark.slow
@pytest.mark.parametrize("line", LINES)
def test_lines_of_python(line: str):
    robot = ls.robots.puma560()
    q, qd, qdd = np.random.default_rng(0).uniform(-0.7, 1.7, (3, robot.nv))
    names = {"np": np, "ls": ls, "robot": robot, "q": q, "qd": qd, "qdd": qdd}
    names["tau"] = robot.inverse_dynamics(q, qd, qdd)
    assert eval(line, names) is not None


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command: str, tmp_path: Path):
    arguments = [sys.executable, "-m", "linksweep", *shlex.split(command)[1:]]
    run = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
