"""Notebooks of examples/notebooks/ as pages: every cell is run, and its output is shown below it."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cells
from made import Made
from reference import as_markdown

NOTEBOOKS = Path(__file__).parent.parent.parent / "examples" / "notebooks"


def cells_of(notebook: Path) -> Iterator[tuple[str, str]]:
    """(kind, source) of each cell: "markdown" or "code"."""
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        yield cell["cell_type"], "".join(cell["source"])


def run_all(notebook: Path) -> Iterator[tuple[str, str, list[cells.Shown]]]:
    """Every cell with what it shows; code runs in order, in one namespace and in a folder that is thrown away."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, _inside(folder):
        for kind, source in cells_of(notebook):
            yield kind, source, cells.run(source, namespace, notebook.name) if kind == "code" else []


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def made(folder: Path) -> Made:
    texts: dict[str, str] = {}
    files: dict[str, Path] = {}
    for notebook in sorted(NOTEBOOKS.glob("*.ipynb")):
        parts: list[str] = []
        started = time.perf_counter()
        for kind, source, shown in run_all(notebook):
            parts.append(source if kind == "markdown" else f"```python\n{source}\n```")
            for each in shown:
                if each.kind == "png":
                    picture = folder / f"{notebook.stem}_{len(files)}.png"
                    picture.write_bytes(each.content)
                    files[f"tutorials/{picture.name}"] = picture
                    parts.append(f"![Output of the cell above]({picture.name})")
                else:
                    parts.append(as_markdown(each))
        seconds = time.perf_counter() - started
        where = f"examples/notebooks/{notebook.name}"
        parts.insert(1, f"*This page is the notebook `{where}`, run when the site was built, in {seconds:.0f} s.*")
        texts[f"tutorials/{notebook.stem}.md"] = "\n\n".join(parts) + "\n"
    return Made(texts, files)
