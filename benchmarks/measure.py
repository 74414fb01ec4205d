"""Shared by the benchmarks: timing that a noisy machine cannot flatter, robots by file, and what ran where."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import linksweep as ls
from linksweep.errors import ModelWarning

PACKAGES = ("numpy", "llvmlite", "pin")


def alternate(
    sides: Sequence[Callable[[], Any]], rounds: int, at_least: float = 0.02, warm: bool = False
) -> list[float]:
    """The best seconds per call of each side, the sides taking turns so that a slow moment meets all of them.

    Each turn repeats its side for about `at_least` seconds; a first turn, not counted, finds how often that is. With
    `warm`, each turn has a call before those that are timed, after which the caches are the side's own again.
    """
    counts = []
    for side in sides:
        side()  # compiles, warms up
        began = time.perf_counter()
        side()
        counts.append(max(1, round(at_least / max(time.perf_counter() - began, 1e-7))))
    best = [float("inf")] * len(sides)
    for _ in range(rounds):
        for k, side in enumerate(sides):
            repeats = range(counts[k])
            if warm:
                side()
            began = time.perf_counter()
            for _ in repeats:
                side()
            best[k] = min(best[k], (time.perf_counter() - began) / counts[k])
    return best


def load_quietly(path: str | Path) -> ls.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return ls.load(path)


def example(name: str) -> Path:
    """A file of example-robot-data by its name, such as ur5_robot.urdf."""
    for file in importlib.metadata.files("example-robot-data") or []:
        if str(file).endswith(f"/{name}"):
            return Path(str(file.locate()))
    raise SystemExit(f"example-robot-data holds no file {name}: pip install example-robot-data.")


def time_of(seconds: float) -> str:
    """Seconds as people read them."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1.0:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def machine() -> dict[str, Any]:
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {
        "date": datetime.date.today().isoformat(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "linksweep": ls.__version__,
        **versions,
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def heading() -> str:
    """One line: date, machine, versions, and how busy the machine was when it began."""
    m = machine()
    versions = ", ".join(f"{name} {m[name]}" for name in ("linksweep", *PACKAGES))
    return f"{m['date']}, {m['cpu']} with {m['cores']} cores (load {m['load']:.2f}), Python {m['python']}, {versions}"


def table(rows: Sequence[Sequence[str]]) -> str:
    """Plain text, the first column to the left and the others to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(w) if k == 0 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def write_json(path: str | None, rows: Sequence[dict[str, Any]]) -> None:
    if path:
        Path(path).write_text(json.dumps({"machine": machine(), "rows": list(rows)}, indent=1) + "\n")
