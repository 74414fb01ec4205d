"""The command line run in this process or in another, and files for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import linksweep as ls
from linksweep.cli import main

GRIPPER = """<robot name="gripper"><link name="palm"/>
  <link name="left"><inertial><origin xyz="0 0 0.1"/><mass value="0.2"/><inertia ixx="0.01" iyy="0.01" izz="0.01"
    ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="right"><inertial><origin xyz="0 0 0.1"/><mass value="0.3"/><inertia ixx="0.01" iyy="0.01" izz="0.01"
    ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="open" type="revolute"><parent link="palm"/><child link="left"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="9" velocity="2"/></joint>
  <joint name="follow" type="revolute"><parent link="palm"/><child link="right"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="9" velocity="2"/><mimic joint="open" multiplier="-1" offset="0.1"/></joint>
</robot>"""

ARM = """<robot name="arm"><link name="base"/>{links}<link name="tool"/>
<joint name="j1" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 1 0"/>{limit}</joint>
<joint name="j2" type="revolute"><parent link="a"/><child link="b"/><origin xyz=".5 0 0"/><axis xyz="0 1 0"/>{limit}
</joint><joint name="t" type="fixed"><parent link="b"/><child link="tool"/><origin xyz=".5 0 0"/></joint>
</robot>""".format(
    limit='<limit lower="-2" upper="2" effort="50" velocity="5"/>',
    links="".join(
        f'<link name="{name}"><inertial><origin xyz="0.2 0 0"/><mass value="1"/><inertia ixx=".1" iyy=".1" izz=".1" '
        'ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for name in "ab"
    ),
)


ROBOT = ls.robots.puma560()


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., Outcome]:
    """The command in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(warnings, "formatwarning", warnings.formatwarning)  # main() puts its own there
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def call(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["linksweep", *map(str, arguments)])
        try:
            with pytest.raises(SystemExit) as stop:
                main()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        out, err = capfd.readouterr()
        return Outcome(int(stop.value.code or 0), str(out), str(err))

    return call


def columns(*blocks: str) -> list[str]:
    return ["t", *(f"{block}.{joint}" for block in blocks for joint in ROBOT.joint_names)]


def write(path: Path, names: list[str], table: np.ndarray) -> None:
    path.write_text("\n".join([",".join(names), *(",".join(map(repr, row)) for row in table.tolist())]) + "\n")


def table_of(path: Path) -> tuple[list[str], np.ndarray]:
    first, *rest = path.read_text().splitlines()
    return first.split(","), np.array([line.split(",") for line in rest], dtype=float)


def run_process(*arguments: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", **variables}
    command = [sys.executable, "-m", "linksweep", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, env=environment)
