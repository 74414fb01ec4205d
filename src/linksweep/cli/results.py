"""Summary of a table that streams by, for the terminal, JSON and plots, in bounded memory."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linksweep.cli.common import new_table, print_written

if TYPE_CHECKING:
    from linksweep.files.limit_watch import LimitWatch
    from linksweep.robot.robot import Robot

SHOWN_ROWS = 8  # printed rows of the beginning and of the end
CURVE = 20_000  # approximate number of plotted samples; more are not visible
IN_MEMORY = 1 << 23  # bytes of JSON that are kept without a temporary file


class Summary:
    """First and last rows, peaks and a thinned curve of a table that streams by, in bounded memory.

    Blocks have the shape (rows, columns), with the result in the last columns.
    """

    def __init__(
        self, robot: Robot, quantity: str, columns: Mapping[str, tuple[str, ...]],
        about: Mapping[str, object], keep_rows: bool = False, keep_curve: bool = False,
    ) -> None:  # fmt: skip
        self.robot, self.quantity, self.about = robot, quantity, about
        self.columns = [name for names in columns.values() for name in names]
        self.width = len(columns[quantity])
        self.rows = 0
        self.head = self.tail = self.peaks = np.empty((0, 1 + self.width))
        self.curve = Curve(1 + self.width) if keep_curve else None
        self.text: tempfile.SpooledTemporaryFile[str] | None = None
        if keep_rows:
            self.text = tempfile.SpooledTemporaryFile(IN_MEMORY, "w+", encoding="ascii")  # noqa: SIM115, outlives this

    def watch(self, blocks: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        """Yield the blocks unchanged, and record a summary of each."""
        for values in blocks:
            self._add(values)
            yield values

    def _add(self, values: np.ndarray) -> None:
        if self.text is not None:
            self.text.write((", " if self.rows else "") + json.dumps(values.tolist(), allow_nan=False)[1:-1])
        rows = np.concatenate([values[:, :1], values[:, -self.width :]], axis=1)
        self.rows += len(rows)
        self.head = np.concatenate([self.head, rows[:SHOWN_ROWS]])[:SHOWN_ROWS]
        self.tail = np.concatenate([self.tail, rows[-SHOWN_ROWS:]])[-SHOWN_ROWS:]
        largest = np.unique(np.abs(rows[:, 1:]).argmax(axis=0))
        self.peaks = np.concatenate([self.peaks, rows[largest]])
        self.peaks = self.peaks[np.unique(np.abs(self.peaks[:, 1:]).argmax(axis=0))]
        if self.curve is not None:
            self.curve.add(rows)

    def peak(self, column: int) -> tuple[float, float]:
        """The value of largest magnitude in a column of the result, and its time."""
        row = self.peaks[abs(self.peaks[:, 1 + column]).argmax()]
        return float(row[1 + column]), float(row[0])

    def plot(self, path: Path) -> None:
        from linksweep import plots

        assert self.curve is not None
        curve = self.curve.thinned()
        plots.save(plots.time_series(self.robot, curve[:, 0], curve[:, 1:], self.quantity), path)

    def print(self, as_json: bool, output: Path | None, plot: Path | None, limits: LimitWatch) -> None:
        """Print JSON, the names of the written files or the result itself, and limit violations."""
        if as_json:
            self._print_json(output, plot, limits)
            return
        if output is None:
            self._print_table()
        else:
            print_written(output, about=f": {self.rows} rows of t and {self.quantity} by {self.about['method']}")
        print_written(plot)
        for line in limits.lines():
            print(line)

    def _print_json(self, output: Path | None, plot: Path | None, limits: LimitWatch) -> None:
        peaks = []
        for column, name in enumerate(self.columns[-self.width :]):
            value, time = self.peak(column)
            peaks.append({"column": name, "value": value, "t": time})
        facts = {
            **self.about,
            "samples": self.rows,
            "start": float(self.head[0, 0]),
            "end": float(self.tail[-1, 0]),
            "peaks": peaks,
            **limits.as_dict(),
            "output": None if output is None else str(output),
            "plot": None if plot is None else str(plot),
            "columns": self.columns,
        }
        text = json.dumps(facts, indent=2, allow_nan=False)
        if self.text is None:
            print(text)
            return
        print(text.removesuffix("\n}") + ',\n  "rows": [', end="")
        with self.text:
            self.text.seek(0)
            shutil.copyfileobj(self.text, sys.stdout)
        print("]\n}")

    def _print_table(self) -> None:
        from rich.console import Console

        console = Console()
        skipped = self.rows - len(self.head)
        cells = [_texts(row) for row in self.head.tolist()]
        if skipped > SHOWN_ROWS:
            cells.append(["⋮"] * (1 + self.width))
        cells += [_texts(row) for row in self.tail[max(0, SHOWN_ROWS - skipped) :].tolist()]
        peaks = _texts([0.0, *(self.peak(column)[0] for column in range(self.width))])
        cells.append(["peak", *peaks[1:]])
        names = ["t", *(name.removeprefix(f"{self.quantity}.") for name in self.columns[-self.width :])]
        widths = [max(map(len, column)) + 2 for column in zip(names, *cells, strict=True)]
        fitting = max(2, int(np.searchsorted(np.cumsum(widths), console.width - 1)))
        title = f"{self.about['robot']}: {self.quantity} by {self.about['method']}, {self.rows} samples"
        table = new_table(title, names[:fitting], left=0)
        table.padding = (0, 1, 0, 0)
        for column in table.columns:
            column.no_wrap = True
        for row in cells[:-1]:
            table.add_row(*row[:fitting])
        table.add_section()
        table.add_row(*cells[-1][:fitting])
        console.print(table)
        if fitting <= self.width:
            print(f"{fitting - 1} of {self.width} columns fit the terminal. Write all of them with -o FILE.")


def _texts(row: list[float]) -> list[str]:
    return [f"{row[0]:.6g}", *(f"{value:.4g}" for value in row[1:])]


class Curve:
    """Rows [t, values...], thinned if there are too many: each interval keeps the rows with a minimum or maximum."""

    def __init__(self, width: int) -> None:
        self.rows = np.empty((0, width))
        self.indices = np.empty(0, int)
        self.count = 0
        self.interval = 1

    def add(self, rows: np.ndarray) -> None:
        self.rows = np.concatenate([self.rows, rows])
        self.indices = np.concatenate([self.indices, np.arange(self.count, self.count + len(rows))])
        self.count += len(rows)
        if len(self.rows) > 10 * CURVE:
            self.thinned()

    def thinned(self) -> np.ndarray:
        """At most CURVE rows, from intervals of equal length."""
        while len(self.rows) > CURVE:
            self.interval = max(2 * self.interval, self.count * 2 * (self.rows.shape[1] - 1) // CURVE)
            starts = np.flatnonzero(np.diff(self.indices // self.interval, prepend=-1))
            keep = {0, len(self.rows) - 1}
            for a, b in zip(starts, [*starts[1:], len(self.rows)], strict=True):
                piece = self.rows[a:b, 1:]
                keep.update((a + piece.argmin(axis=0)).tolist(), (a + piece.argmax(axis=0)).tolist())
            self.rows, self.indices = self.rows[sorted(keep)], self.indices[sorted(keep)]
        return self.rows
