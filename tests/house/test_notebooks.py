"""Notebooks of examples/notebooks/: stored without outputs, and every cell runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from docs_tools import load_tool

notebooks = load_tool("notebooks")
NOTEBOOKS = sorted(notebooks.NOTEBOOKS.glob("*.ipynb"))


def test_there_are_five():
    assert len(NOTEBOOKS) >= 5


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_without_outputs(notebook: Path):
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        assert cell["cell_type"] == "markdown" or (cell["outputs"] == [] and cell["execution_count"] is None)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(notebook: Path):
    for package in ("matplotlib", "sympy"):
        pytest.importorskip(package, reason=f"notebooks run on {package}: pip install {package}")
    shown = [each for _, _, found in notebooks.run_all(notebook) for each in found]
    assert len(shown) >= 5, "a notebook shows something"
