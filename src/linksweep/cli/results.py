"""What is kept of a table that streams by, for the terminal, JSON and plots: bounded, however long the table."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot
    from linksweep.tables.limit_watch import LimitWatch

ENDS = 8  # rows shown of the beginning and of the end
CURVE = 20_000  # samples plotted, about; more cannot be told apart
IN_MEMORY = 1 << 23  # bytes of JSON kept out of a temporary file


class Results:
    """Of blocks (rows, columns) with the result in the last columns: first and last rows, peaks, a thinned curve."""

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

    def watched(self, blocks: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
        """The blocks as they are, noting what is wanted of each."""
        for values in blocks:
            self._note(values)
            yield values

    def _note(self, values: np.ndarray) -> None:
        if self.text is not None:
            self.text.write((", " if self.rows else "") + json.dumps(values.tolist(), allow_nan=False)[1:-1])
        own = np.concatenate([values[:, :1], values[:, -self.width :]], axis=1)
        self.rows += len(own)
        self.head = np.concatenate([self.head, own[:ENDS]])[:ENDS]
        self.tail = np.concatenate([self.tail, own[-ENDS:]])[-ENDS:]
        largest = np.unique(np.abs(own[:, 1:]).argmax(axis=0))
        self.peaks = np.concatenate([self.peaks, own[largest]])
        self.peaks = self.peaks[np.unique(np.abs(self.peaks[:, 1:]).argmax(axis=0))]
        if self.curve is not None:
            self.curve.add(own)

    def peak(self, column: int) -> tuple[float, float]:
        """The entry of a result's column that is largest in size, and its time."""
        row = self.peaks[np.abs(self.peaks[:, 1 + column]).argmax()]
        return float(row[1 + column]), float(row[0])

    def plot(self, path: Path) -> None:
        from linksweep import plots

        assert self.curve is not None
        curve = self.curve.thinned()
        plots.save(plots.time_series(self.robot, curve[:, 0], curve[:, 1:], self.quantity), path)

    def show(self, as_json: bool, output: Path | None, plot: Path | None, limits: LimitWatch) -> None:
        """To the terminal: JSON, or where the result was written, or the result itself; and who left its limits."""
        if as_json:
            self._print_json(output, plot, limits)
            return
        if output is None:
            self._print_table()
        else:
            print(f"{output}: {self.rows} rows of t and {self.quantity} by {self.about['method']}")
        if plot is not None:
            print(f"{plot}: {self.quantity} over t")
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
        from rich import box
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        console = Console()
        skipped = self.rows - len(self.head)
        shown = [_texts(row) for row in self.head.tolist()]
        if skipped > ENDS:
            shown.append(["⋮"] * (1 + self.width))
        shown += [_texts(row) for row in self.tail[max(0, ENDS - skipped) :].tolist()]
        peaks = _texts([0.0, *(self.peak(column)[0] for column in range(self.width))])
        shown.append(["peak", *peaks[1:]])
        names = ["t", *(name.removeprefix(f"{self.quantity}.") for name in self.columns[-self.width :])]
        widths = [max(map(len, column)) + 2 for column in zip(names, *shown, strict=True)]
        fitting = max(2, int(np.searchsorted(np.cumsum(widths), console.width - 1)))
        title = f"{self.about['robot']}: {self.quantity} by {self.about['method']}, {self.rows} samples"
        table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        # Text, because a "[" in a file's names is no markup
        for name in names[:fitting]:
            table.add_column(Text(name), justify="right", no_wrap=True)
        for row in shown[:-1]:
            table.add_row(*row[:fitting])
        table.add_section()
        table.add_row(*shown[-1][:fitting])
        console.print(table)
        if fitting <= self.width:
            print(f"{fitting - 1} of {self.width} columns fit here: write them all with -o FILE.")


def _texts(row: list[float]) -> list[str]:
    return [f"{row[0]:.6g}", *(f"{value:.4g}" for value in row[1:])]


class Curve:
    """Rows [t, values...] of which, when there are too many, each stretch keeps those with a value's extremes."""

    def __init__(self, width: int) -> None:
        self.rows = np.empty((0, width))
        self.numbers = np.empty(0, int)
        self.count = 0
        self.stretch = 1

    def add(self, rows: np.ndarray) -> None:
        self.rows = np.concatenate([self.rows, rows])
        self.numbers = np.concatenate([self.numbers, np.arange(self.count, self.count + len(rows))])
        self.count += len(rows)
        if len(self.rows) > 10 * CURVE:
            self.thinned()

    def thinned(self) -> np.ndarray:
        """The rows that are left when there may be CURVE of them; stretches are as long everywhere."""
        while len(self.rows) > CURVE:
            self.stretch = max(2 * self.stretch, self.count * 2 * (self.rows.shape[1] - 1) // CURVE)
            starts = np.flatnonzero(np.diff(self.numbers // self.stretch, prepend=-1))
            keep = {0, len(self.rows) - 1}
            for a, b in zip(starts, [*starts[1:], len(self.rows)], strict=True):
                piece = self.rows[a:b, 1:]
                keep.update((a + piece.argmin(axis=0)).tolist(), (a + piece.argmax(axis=0)).tolist())
            self.rows, self.numbers = self.rows[sorted(keep)], self.numbers[sorted(keep)]
        return self.rows
