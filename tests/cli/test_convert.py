"""`linksweep convert`: URDF and MJCF files of a robot."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import linksweep as ls
from linksweep.cli import main

URDF = """<robot name="arm"><!-- a comment -->
  <link name="base"/>
  <link name="upper"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <joint name="shoulder" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/></joint>
</robot>"""


def run(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr(sys, "argv", ["linksweep", "convert", *map(str, words)])
    with pytest.raises(SystemExit) as ending, warnings.catch_warnings():
        main()
    return int(str(ending.value.code))


def test_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("mujoco")
    source = tmp_path / "arm.urdf"
    source.write_text(URDF)
    heavier = ls.load(source).with_payload("upper", 3.0, (0.1, 0, 0.2))
    for name in ("new.urdf", "new.xml", "plain.urdf"):
        flags = ["--plain"] if "plain" in name else []
        assert run(monkeypatch, source, "--payload", "3,0.1,0,0.2@upper", "-o", tmp_path / name, *flags) == 0
        written = ls.load(tmp_path / name)
        q = np.array([0.4])
        assert np.abs(written.mass_matrix(q) - heavier.mass_matrix(q)).max() < 1e-12
        assert ("a comment" in (tmp_path / name).read_text()) == (name == "new.urdf")
    assert "wrote" in capsys.readouterr().out
    assert run(monkeypatch, source, "-o", source) == 2
    assert run(monkeypatch, source, "-o", tmp_path / "arm.step") == 2
    assert source.read_text() == URDF
