"""The command line on a long trajectory: a million rows of t, q, qd, qdd of a PUMA 560, time and peak memory.

    python benchmarks/command_line.py [--rows N] [--runs N] [--without-pyarrow] [--keep FILE.csv] [--json FILE]

`linksweep inverse puma560 --trajectory million.csv -o out.csv`, each run a process of its own: the best time of the
runs, from starting Python to its end, and the largest resident set of all. Where pyarrow is installed it is measured
with it and, hidden from the process, without it. Positions and rates are random numbers of 16 or 17 digits, the worst
that text can be.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from measure import heading, table, write_json

import linksweep as ls
from linksweep.files import block_columns, write_table

BARS = {"CSV, without pyarrow": (20.0, 500.0), "CSV, with pyarrow": (6.0, 500.0)}
HIDING = "import sys; sys.modules['pyarrow'] = None; "


def make(path: Path, rows: int) -> None:
    robot, rng = ls.robots.puma560(), np.random.default_rng(0)

    def blocks(size: int = 10_000) -> Any:
        for start in range(0, rows, size):
            t = 1e-3 * np.arange(start, min(start + size, rows))
            yield np.column_stack([t, rng.uniform(-3.0, 3.0, (len(t), 18))])

    write_table(path, block_columns(robot.model, ("q", "qd", "qdd")), blocks(), {})


def child(source: Path, output: Path, hidden: bool) -> None:
    """In a process of its own: run the command, then print its seconds and its peak in megabytes."""
    arguments = ["linksweep", "inverse", "puma560", "--trajectory", str(source), "-o", str(output)]
    code = f"{HIDING if hidden else ''}import sys; sys.argv = {arguments!r}; from linksweep.cli import main; main()"
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    seconds = time.perf_counter() - began
    print(seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)


def measured(what: str, source: Path, output: Path, hidden: bool, runs: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", str(source), str(output), str(int(hidden))]
    found = []
    for _ in range(runs):
        found.append(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    times, peaks = np.array(found, dtype=float).T
    return {"what": what, "seconds": times.min(), "megabytes": peaks.max(), "output": output.stat().st_size}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--without-pyarrow", action="store_true", help="leave the runs with pyarrow out")
    parser.add_argument("--keep", type=Path, metavar="FILE.csv", help="use this trajectory; made if it is not there")
    parser.add_argument("--json", metavar="FILE", help="write the rows, and what they ran on, here")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        source, output, hidden = options.child
        child(Path(source), Path(output), bool(int(hidden)))
        return
    print(heading())
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        source = options.keep or Path(folder) / "trajectory.csv"
        if not source.exists():
            make(source, options.rows)
        runs: list[tuple[str, str, bool]] = [("CSV, without pyarrow", "out.csv", True), ("NPZ", "out.npz", True)]
        if find_spec("pyarrow") and not options.without_pyarrow:
            runs += [("CSV, with pyarrow", "out.csv", False), ("Parquet", "out.parquet", False)]
        rows = [measured(what, source, Path(folder) / name, hidden, options.runs) for what, name, hidden in runs]
        print(f"linksweep inverse puma560, {source.stat().st_size / 1e6:.0f} MB of CSV")
    cells = []
    for row in rows:
        bar = BARS.get(row["what"])
        ok = "" if bar is None else "ok" if row["seconds"] <= bar[0] and row["megabytes"] <= bar[1] else "MISSED"
        limits = ("", "") if bar is None else (f"<= {bar[0]:.0f} s", f"<= {bar[1]:.0f} MB")
        size = f"{row['output'] / 1e6:.0f} MB"
        cells.append(
            (row["what"], f"{row['seconds']:.2f} s", limits[0], f"{row['megabytes']:.0f} MB", limits[1], ok, size)
        )
    print(table([("output", "time", "bar", "peak memory", "bar", "", "written"), *cells]))
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
