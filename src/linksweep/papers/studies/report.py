"""Output of a study: tables as CSV, figures as PNG and SVG, and a report in Markdown that shows them."""

from __future__ import annotations

import contextlib
import csv
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linksweep.errors import ArgumentError
from linksweep.support.interrupts import Uninterrupted

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ROUNDING = 1e-12  # relative to the largest torque; smaller values are printed as 0


@dataclass(frozen=True, slots=True)
class Check:
    """A comparison of a result with its expected value: description, value, expectation and outcome."""

    what: str
    value: float
    wanted: str
    ok: bool

    def __str__(self) -> str:
        return f"{self.what}: {self.value:.6g}, {self.wanted}: {'ok' if self.ok else 'NOT MET'}"


@dataclass(frozen=True, slots=True)
class Written:
    """The files of a completed study and the outcome of its checks."""

    name: str
    files: tuple[Path, ...]
    checks: tuple[Check, ...]
    remarks: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.checks), *self.remarks, f"wrote {' '.join(map(str, self.files))}"])


@dataclass(slots=True)
class Study:
    """Results of a study before they are written. `{figure:name}` in the report `text` is replaced by the figure."""

    name: str
    text: str
    tables: Mapping[str, tuple[Sequence[str], Sequence[Sequence[object]] | np.ndarray]]
    figures: Mapping[str, tuple[str, Callable[[], Figure]]]
    checks: list[Check] = field(default_factory=list)

    def write(self, out: Path) -> Written:
        """Write all files into the folder `out`, or none: they are moved there when all of them are complete."""
        drawn = find_spec("matplotlib") is not None
        with Uninterrupted() as signals:  # except while the files are generated
            new_folders = [folder for folder in (out, *out.parents) if not folder.exists()]
            stage = None
            try:
                out.mkdir(parents=True, exist_ok=True)
                stage = Path(tempfile.mkdtemp(prefix=f".{self.name}.", dir=out))
                signals.interruptible(self._fill, stage, drawn)
                names = sorted(path.name for path in stage.iterdir())
                blocked = [name for name in names if (out / name).is_dir()]
                if blocked:
                    raise ArgumentError(f"{out / blocked[0]} is a folder, expected a file or nothing at that path.")
                for name in names:
                    (stage / name).replace(out / name)
            except OSError as reason:
                raise ArgumentError(f"The folder {out} cannot be written ({reason.strerror}).") from reason
            finally:
                if stage is not None:
                    shutil.rmtree(stage, ignore_errors=True)
                for folder in new_folders:  # after a failure they are empty and removed
                    with contextlib.suppress(OSError):
                        folder.rmdir()
        remarks = () if drawn else ("No plots: Matplotlib is not installed (pip install 'linksweep[plot]').",)
        return Written(self.name, tuple(out / name for name in names), tuple(self.checks), remarks)

    def _fill(self, folder: Path, drawn: bool) -> None:
        for table, (header, rows) in self.tables.items():
            write_csv(folder / f"{table}.csv", header, rows)
        text = self.text
        for name, (caption, draw) in self.figures.items():
            if drawn:
                from linksweep import plots

                figure = draw()
                for ending in ("png", "svg"):
                    plots.save(figure, folder / f"{name}.{ending}")
            shown = f"![{caption}]({name}.png)\n\n{caption} ([SVG]({name}.svg))" if drawn else f"(No plot: {caption})"
            text = text.replace(f"{{figure:{name}}}", shown)
        (folder / f"{self.name}.md").write_text(text.rstrip() + "\n\n" + self._verdicts(), encoding="utf-8")

    def _verdicts(self) -> str:
        rows = [
            [check.what, f"{check.value:.6g}", check.wanted, "yes" if check.ok else "**no**"] for check in self.checks
        ]
        files = ", ".join(f"[{table}.csv]({table}.csv)" for table in self.tables)
        return f"## Checks\n\n{markdown_table(['quantity', 'result', 'expected', 'met'], rows)}\n\nData: {files}.\n"


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[object]] | np.ndarray) -> None:
    """Write a table in which numbers have all their digits."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows.tolist() if isinstance(rows, np.ndarray) else rows)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table with the first column aligned left and the others right; bars in cells are escaped."""
    lines = [header, [":--", *["--:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def peak_cells(t: np.ndarray, curve: np.ndarray, largest: float, decimals: int) -> tuple[str, str]:
    """The value of largest magnitude and its time; 0 without a time if all values are rounding errors of `largest`."""
    k = int(np.abs(curve).argmax())
    if abs(curve[k]) <= ROUNDING * largest:
        return f"{0.0:.{decimals}f}", "–"
    return f"{curve[k]:z.{decimals}f}", f"{t[k]:.2f}"


def time_table(t: np.ndarray, names: Sequence[str], **blocks: np.ndarray) -> tuple[list[str], np.ndarray]:
    """Header and rows of a table: t, then each block (samples, names) as columns block.name."""
    header = ["t", *(f"{block}.{name}" for block in blocks for name in names)]
    return header, np.column_stack([t, *blocks.values()])


def relative_spread(tau: Mapping[str, np.ndarray], reference: str) -> float:
    """The largest difference between the torques of one method and those of all others, over the largest torque."""
    first = tau[reference]
    return max(float(np.abs(other - first).max()) for other in tau.values()) / float(np.abs(first).max())


def at_most(what: str, value: float, bar: float) -> Check:
    return Check(what, float(value), f"at most {bar:g}", bool(value <= bar))


def known_as(what: str, value: float, known: float, decimals: int) -> Check:
    """A check against a value that is known to this number of decimals."""
    return Check(
        what, float(value), f"expected {known:.{decimals}f}", bool(abs(value - known) <= 0.5 * 10.0**-decimals)
    )
