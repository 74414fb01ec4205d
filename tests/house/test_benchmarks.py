"""The benchmark scripts: their tables are read back as they were written. Nothing is timed."""

from __future__ import annotations

import importlib
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def benchmark(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module(name)


def test_a_row_that_loses_would_be_marked(monkeypatch: pytest.MonkeyPatch):
    """The reader and the writer of tables agree on a row where a peer is ahead and on one that lacks a peer."""
    drawn, measure = benchmark("drawn", monkeypatch), benchmark("measure", monkeypatch)
    head = ("", "linksweep", "pin C++", "CasADi C", "least ratio", "")
    text = measure.table([
        head, ("UR5: mass_matrix", "20 ns", "-", "10 ns", "0.5x", "LOSS"),
        ("n = 4: inverse_dynamics", "20 ns", "1.5 µs", "-", "75.0x", ""),
    ])  # fmt: skip
    first, second = drawn.rows_of(text)
    assert first["times"] == pytest.approx({"linksweep": 2e-8, "CasADi C": 1e-8})
    assert second["times"] == pytest.approx({"linksweep": 2e-8, "pin C++": 1.5e-6}) and second["n"] == 4


def test_without_a_compiler_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    native: Any = benchmark("native", monkeypatch)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(native.Unavailable, match=r"there is no C\+\+ compiler: install g\+\+"):
        native.build(tmp_path / "native.so")


def test_without_headers_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch):
    native: Any = benchmark("native", monkeypatch)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(native.sysconfig, "get_paths", lambda: {"purelib": "/nowhere"})
    monkeypatch.setattr(native.Path, "exists", lambda self: False)
    with pytest.raises(native.Unavailable, match=r"there is no pinocchio/config\.hpp: pip install"):
        native.includes()
