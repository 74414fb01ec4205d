"""A trajectory from a file: samples in CSV, or a motion in TOML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from linksweep.description.model import Model
from linksweep.errors import ArgumentError
from linksweep.tables.columns import block_columns, joint_columns
from linksweep.tables.csv_reading import read_csv, read_header

DERIVATIVES = ("qd", "qdd")
ROWS = 8192  # of a block of computed samples


def open_trajectory(path: Path, model: Model, blocks: Sequence[str], spline: bool = False) -> Iterator[np.ndarray]:
    """Blocks (rows, columns) of t and of `blocks`, such as ("q", "qd", "qdd"); what can be checked is, at once.

    spline: read q only, and take qd and qdd from the quintic spline through all samples, which are held in memory.
    """
    if path.suffix.lower() == ".toml":
        if spline:
            raise ArgumentError(f"{path} is a motion, which has its own derivatives: leave out --spline.")
        return _of_motion(path, model, blocks)
    if path.suffix.lower() not in ("", ".csv", ".txt"):
        raise ArgumentError(
            f"The trajectory {path} ends in {path.suffix!r}, expected .csv (samples) or .toml (a motion): convert it."
        )
    if spline:
        return _splined(path, model, blocks)
    return read_csv(path, model, block_columns(model, blocks))


def read_logged(path: Path, model: Model, blocks: Sequence[str], optional: str) -> dict[str, np.ndarray]:
    """A log as it was written, with rows that repeat a time or hold NaN: t (rows,) and its blocks (rows, columns).

    optional: a block that is read where the file has all of its columns.
    """
    if path.suffix.lower() not in ("", ".csv", ".txt"):
        raise ArgumentError(f"The log {path} ends in {path.suffix!r}, expected .csv with a row per sample: convert it.")
    own = [*blocks, optional] if set(joint_columns(model, optional)) <= set(read_header(path)) else blocks
    columns = block_columns(model, own)
    table = np.concatenate(list(read_csv(path, model, columns, checked=False)))
    ends = np.cumsum([len(names) for names in columns.values()])
    parts = dict(zip(columns, np.split(table, ends[:-1], axis=1), strict=True))
    return {**parts, "t": parts["t"][:, 0]}


def _of_motion(path: Path, model: Model, blocks: Sequence[str]) -> Iterator[np.ndarray]:
    from linksweep.tables.motion_files import read_samples

    if "tau" in blocks:
        raise ArgumentError(f"{path} is a motion, which has no torques, expected t, q, qd and tau: give a CSV file.")
    motion, times = read_samples(path, model)

    def computed() -> Iterator[np.ndarray]:
        for start in range(0, len(times), ROWS):
            t = times[start : start + ROWS]
            found = motion(t)
            yield np.column_stack([t, *(getattr(found, block) for block in blocks)])

    return computed()


def _splined(path: Path, model: Model, blocks: Sequence[str]) -> Iterator[np.ndarray]:
    from linksweep.motion import QuinticSpline

    if len(joint_columns(model, "q")) != len(joint_columns(model, "qd")):
        raise ArgumentError(
            f"{model.name} has joints with quaternions, through which no spline goes, expected qd and qdd in the file: "
            "leave out --spline."
        )
    read = [block for block in blocks if block not in DERIVATIVES]
    columns = block_columns(model, read)
    table = np.concatenate(list(read_csv(path, model, columns)))
    parts, start = {}, 0
    for block, names in columns.items():
        parts[block] = table[:, start : start + len(names)]
        start += len(names)
    t = parts["t"][:, 0]
    if len(t) < 6:
        raise ArgumentError(f"{path} has {len(t)} rows, expected 6 or more for a quintic spline: give qd and qdd.")
    spline = QuinticSpline(parts["q"], t, ends="not-a-knot")

    def computed() -> Iterator[np.ndarray]:
        for start in range(0, len(t), ROWS):
            piece = slice(start, start + ROWS)
            found = spline(t[piece])._asdict()
            values = (parts[block][piece] if block in parts else found[block] for block in blocks)
            yield np.column_stack([t[piece], *values])

    return computed()
