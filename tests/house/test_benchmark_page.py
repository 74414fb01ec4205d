"""The tables of `make bench-all` that docs/benchmarks.md quotes: read back, losses marked, drawn. Nothing is timed."""

from __future__ import annotations

import importlib
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = next(folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").exists())
PAGE = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
SERIAL = ("first_influence", "second_influence", "inertia_power")  # Kang's coefficients know no floating base
UNITS = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}


def benchmark(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module(name)


def run_of(script: str) -> str:
    """What the page quotes of a script."""
    found = re.search(rf"^```text\n\$ python benchmarks/{script}.*?\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None, f"docs/benchmarks.md quotes no run of {script}"
    return found[1]


def seconds(cell: str) -> float:
    number, unit = cell.split()
    return float(number) * UNITS[unit]


def test_every_row_of_the_peers_is_read_and_its_loss_marked(monkeypatch: pytest.MonkeyPatch):
    drawn = benchmark("drawn", monkeypatch)
    text = run_of("peers.py")
    rows = drawn.rows_of(text)
    lines = [line for line in text.splitlines() if re.match(r"^(UR5|Panda|ANYmal|Talos|n = \d+|batch \d+): ", line)]
    assert len(rows) == len(lines) >= 6 and "robots" in {row["table"] for row in rows}
    for row, line in zip(rows, lines, strict=True):
        others = [t for name, t in row["times"].items() if name != "linksweep"]
        ratio = float(re.findall(r"([\d.]+)x", line)[-1])
        # times are printed with three digits, each within 0.5 %, and ratios with one behind the point
        assert others and ratio == pytest.approx(min(others) / row["times"]["linksweep"], rel=0.02, abs=0.06), line
        assert line.endswith("LOSS") == (ratio < 1), line


def test_a_row_that_loses_would_be_marked(monkeypatch: pytest.MonkeyPatch):
    """The reader and the writer of tables agree, on a row where a peer is ahead and one that lacks a peer."""
    drawn, measure = benchmark("drawn", monkeypatch), benchmark("measure", monkeypatch)
    head = ("", "linksweep", "pin C++", "CasADi C", "of floor", "least ratio", "")
    text = measure.table([
        head, ("UR5: mass_matrix", "20 ns", "-", "10 ns", "51%", "0.5x", "LOSS"),
        ("n = 4: inverse_dynamics", "20 ns", "1.5 µs", "-", "9%", "75.0x", ""),
    ])  # fmt: skip
    first, second = drawn.rows_of(text)
    assert first["times"] == pytest.approx({"linksweep": 2e-8, "CasADi C": 1e-8}) and first["share"] == 0.51
    assert second["times"] == pytest.approx({"linksweep": 2e-8, "pin C++": 1.5e-6}) and second["n"] == 4


def test_the_pictures_are_of_the_quoted_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    drawn = benchmark("drawn", monkeypatch)
    for path in drawn.save(drawn.rows_of(run_of("peers.py")), tmp_path):
        assert path.stat().st_size > 5_000
        assert f"figures/{path.stem}.svg" in PAGE, f"the page does not show {path.stem}"


def test_every_function_has_its_mark():
    """LOSS below ten times Pinocchio and 70 % of the stores, SLOWER below Pinocchio, - where there is no peer."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in run_of("all_functions.py").splitlines() if " x" not in line]
    rows = [row for row in rows if re.match(r"^(UR5|Panda|ANYmal|Talos|Talos, free): \w+$", row[0])]
    refused = [row[0] for row in rows if row[1] == "refused"]
    assert len(rows) >= 100 and set(refused) <= {f"Talos, free: {name}" for name in SERIAL}, refused
    rows = [row for row in rows if row[0] not in refused]
    for title, ours, _, native, python, ratio, share, *mark in rows:
        peer = native if native != "-" else python
        expected = ""
        if peer != "-":
            times = seconds(peer) / seconds(ours)  # of figures with three digits, against one behind the point
            assert float(ratio.rstrip("x")) == pytest.approx(times, rel=0.02, abs=0.06), title
        if float(share.rstrip("%")) < 70:
            expected = "-" if peer == "-" else "LOSS" if float(ratio.rstrip("x")) < 10 else ""
        if peer != "-" and float(ratio.rstrip("x")) < 1:
            expected = "SLOWER"
        assert "".join(mark) == expected, title


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
