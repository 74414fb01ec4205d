"""Notebooks of examples/notebooks/: stored without outputs, and every cell runs."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).parents[2] / "tools" / "docs"
sys.path.insert(0, str(TOOLS))
notebooks: Any = importlib.import_module("notebooks")
sys.path.remove(str(TOOLS))

NOTEBOOKS = sorted(notebooks.NOTEBOOKS.glob("*.ipynb"))


def test_there_are_five():
    assert len(NOTEBOOKS) >= 5


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_without_outputs(notebook: Path):
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        assert cell["cell_type"] == "markdown" or (cell["outputs"] == [] and cell["execution_count"] is None)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(notebook: Path):
    for package in ("matplotlib", "sympy"):
        pytest.importorskip(package, reason=f"notebooks run on {package}: pip install {package}")
    shown = [each for _, _, found in notebooks.run_all(notebook) for each in found]
    assert len(shown) >= 5, "a notebook shows something"
