"""Pictures of a run of peers.py: from its rows, or from the text that it printed and docs/benchmarks.md quotes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

SECONDS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
TITLES = {  # the first word of a row: its table, and what it counts
    "n": re.compile(r"^n = (\d+): (\w+)$"),
    "batch": re.compile(r"^batch (\d+): (\w+)$"),
    "robot": re.compile(r"^([\w, ]+): (\w+)$"),
}
MARKS = {  # of each side: a shape too, for eyes that take colours for one another
    "linksweep": ("D", "#0072B2"), "pin": ("s", "#000000"), "pin C++": ("o", "#D55E00"), "MuJoCo": ("^", "#009E73"),
    "rollout": ("v", "#56B4E9"), "CasADi C": ("P", "#CC79A7"), "adam, JAX": ("X", "#E69F00"), "MJX": ("*", "#8C8C8C"),
}  # fmt: skip
TABLES = {"n": "lengths", "batch": "batches", "robot": "robots"}


def rows_of(text: str) -> list[dict[str, Any]]:
    """The rows of a printed run, as peers.py writes them to JSON."""
    rows: list[dict[str, Any]] = []
    names: list[str] = []
    for line in text.splitlines():
        cells = re.split(r"\s{2,}", line.strip())
        if cells[0] == "linksweep":
            names = cells
            continue
        found = next(((key, m) for key, pattern in TITLES.items() if (m := pattern.match(cells[0]))), None)
        if found is None or not names or len(cells) <= len(names):
            continue
        key, match = found
        row: dict[str, Any] = {"table": TABLES[key], "function": match[2], "times": {}}
        row[key] = match[1] if key == "robot" else int(match[1])
        for name, cell in zip(names, cells[1:], strict=False):
            if " " in cell:
                row["times"][name] = float(cell.split()[0]) * SECONDS[cell.split()[1]]
        rows.append(row)
    return rows


def _panels(count: int, height: float = 3.6, stacked: bool = False) -> tuple[Any, Sequence[Any]]:
    from linksweep.plots.figures import new_figure, style

    figure = new_figure(7.5, height * count) if stacked else new_figure(4.6 * count, height)
    shape = (count, 1) if stacked else (1, count)
    axes = [figure.add_subplot(*shape, k + 1) for k in range(count)]
    for one in axes:
        style(one)
    return figure, axes


def _curves(rows: list[dict[str, Any]], table: str, key: str, label: str) -> Any:
    rows = [row for row in rows if row["table"] == table]
    functions = list(dict.fromkeys(row["function"] for row in rows))
    names = list(dict.fromkeys(name for row in rows for name in row["times"]))
    figure, panels = _panels(len(functions))
    for axes, function in zip(panels, functions, strict=True):
        for name in names:
            points = [(row[key], 1e9 * row["times"][name]) for row in rows
                      if row["function"] == function and name in row["times"]]  # fmt: skip
            marker, color = MARKS.get(name, ("o", "0.5"))
            axes.loglog(*zip(*points, strict=True), f"{marker}-", markersize=4, color=color, label=name)
        axes.set_title(function.replace("_", " "), fontsize=10)
        axes.set(xlabel=label, ylabel="time per sample (ns)")
    panels[0].legend(fontsize=8, frameon=False)
    return figure


def by_length(rows: list[dict[str, Any]]) -> Any:
    """Time of a sample against the number of links."""
    return _curves(rows, "lengths", "n", "links of a chain")


def by_batch(rows: list[dict[str, Any]]) -> Any:
    """Time of a sample against the length of the batch."""
    return _curves(rows, "batches", "batch", "samples in a call, UR5")


def by_peer(rows: list[dict[str, Any]]) -> Any:
    """Every side of every robot as a dot, on a logarithmic scale."""
    rows = [row for row in rows if row["table"] == "robots"]
    functions = list(dict.fromkeys(row["function"] for row in rows))
    robots = list(dict.fromkeys(row["robot"] for row in rows))
    names = list(dict.fromkeys(name for row in rows for name in row["times"]))
    figure, panels = _panels(len(functions), 0.9 + 0.3 * len(robots), stacked=True)
    found = {}
    for axes, function in zip(panels, functions, strict=True):
        for name in names:
            points = [(1e9 * row["times"][name], robots.index(row["robot"])) for row in rows
                      if row["function"] == function and name in row["times"]]  # fmt: skip
            marker, color = MARKS.get(name, ("o", "0.5"))
            if points:
                (found[name],) = axes.plot(*zip(*points, strict=True), marker, color=color, markersize=7, label=name)
        axes.set_xscale("log")
        axes.set_yticks(range(len(robots)), robots)
        axes.set_ylim(len(robots) - 0.5, -0.5)
        axes.set_title(function.replace("_", " "), fontsize=10)
        axes.set_xlim(10.0, 10000.0)
    panels[-1].set_xlabel("time per sample (ns)")
    order = [name for name in names if name in found]
    figure.legend(
        [found[name] for name in order], order, loc="outside lower center", ncols=len(order), fontsize=8, frameon=False
    )
    return figure


PICTURES: dict[str, tuple[str, Callable[[list[dict[str, Any]]], Any]]] = {  # the table that each is of
    "peers": ("robots", by_peer), "lengths": ("lengths", by_length), "batches": ("batches", by_batch),
}  # fmt: skip


def pictures(rows: list[dict[str, Any]]) -> list[str]:
    """The pictures that these rows are enough for."""
    tables = {row["table"] for row in rows}
    return [name for name, (table, _) in PICTURES.items() if table in tables]


def draw(name: str, rows: list[dict[str, Any]]) -> Any:
    return PICTURES[name][1](rows)


def save(rows: list[dict[str, Any]], folder: Path) -> list[Path]:
    from linksweep import plots

    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.svg" for name in pictures(rows)]
    for path in paths:
        plots.save(draw(path.stem, rows), path)
    return paths
