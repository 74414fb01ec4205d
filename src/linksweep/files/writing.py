"""Results as CSV, NPZ or Parquet files, or as a ROS JointTrajectory in YAML, written in blocks.

A file is written completely or not at all.
"""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError, BackendError
from linksweep.files.csv_files import arrow_module
from linksweep.support.files import real_output, write_atomically
from linksweep.support.interrupts import Uninterrupted
from linksweep.support.messages import shown

Columns = Mapping[str, tuple[str, ...]]
ENDINGS = (".csv", ".npz", ".parquet")
TRAJECTORY_ENDINGS = (*ENDINGS, ".yaml")
POINT_FIELDS = {
    "q": "positions",
    "qd": "velocities",
    "qdd": "accelerations",
    "tau": "effort",
}  # of JointTrajectoryPoint
FEW_ROWS = 1000  # for fewer rows, importing pyarrow takes longer than writing without it


def check_output(path: Path, endings: Sequence[str] = ENDINGS) -> None:
    """Raise an error for a file that cannot be written, before anything is computed."""
    if path.suffix.lower() not in endings:
        raise ArgumentError(
            f"The output {shown(str(path))} ends in {path.suffix!r}, expected {', '.join(endings[:-1])} or "
            f"{endings[-1]}."
        )
    check_place(path)
    if path.suffix.lower() == ".parquet" and arrow_module("pyarrow.parquet") is None:
        raise BackendError("Writing Parquet needs pyarrow, which is not installed: run pip install pyarrow.")


def check_place(path: Path) -> None:
    """Raise an error for a path at which no file can be created."""
    target = real_output(path)
    if target.is_dir():
        raise ArgumentError(f"The output {path} is a folder, expected a file.")
    folder = next(folder for folder in target.absolute().parents if folder.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ArgumentError(f"The output {path} cannot be written, expected a writable folder.")


def write_table(
    path: Path, columns: Columns, blocks: Iterable[np.ndarray], about: Mapping[str, object],
    finish: Callable[[Path], None] | None = None,
) -> None:  # fmt: skip
    """Write blocks (rows, columns), with `about` as metadata if the format can store it.

    columns: the names of each quantity's columns; NPZ gets one array for each quantity. finish: is called with the
    complete file, before it is synchronized to the disk and moved to `path`.
    """
    check_output(path, TRAJECTORY_ENDINGS)
    formats = {".csv": _write_csv, ".npz": _write_npz, ".parquet": _write_parquet, ".yaml": _write_yaml}
    write = formats[path.suffix.lower()]

    def fill(to: Path) -> None:
        write(to, columns, iter(blocks), about)
        if finish is not None:
            finish(to)

    write_atomically(path, fill, sync=finish is not None)


def csv_rows(values: np.ndarray) -> str:
    """Return rows of numbers as text, each with the fewest digits that restore it exactly."""
    template = ",".join(["%r"] * values.shape[1]) + "\n"
    return template * len(values) % tuple(values.ravel().tolist())


def _names(columns: Columns) -> list[str]:
    return [name for names in columns.values() for name in names]


def _write_csv(to: Path, columns: Columns, blocks: Iterator[np.ndarray], about: Mapping[str, object]) -> None:
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(_names(columns))
    with to.open("wb") as file:
        file.write(header.getvalue().encode("utf-8"))
        for values in blocks:
            if len(values) > FEW_ROWS and arrow_module("pyarrow.csv") is not None:
                _write_by_pyarrow(file, values)
            else:
                file.write(csv_rows(values).encode("ascii"))


def _write_by_pyarrow(file: BinaryIO, values: np.ndarray) -> None:
    pyarrow, arrow_csv = arrow_module(), arrow_module("pyarrow.csv")
    batch = pyarrow.record_batch(list(np.ascontiguousarray(values.T)), names=list(map(str, range(values.shape[1]))))
    arrow_csv.write_csv(batch, file, arrow_csv.WriteOptions(include_header=False))


def _write_npz(to: Path, columns: Columns, blocks: Iterator[np.ndarray], about: Mapping[str, object]) -> None:
    width = len(_names(columns))
    with Uninterrupted():  # on some file systems the file has a name until it is open
        temporary = tempfile.TemporaryFile(dir=to.parent)  # noqa: SIM115, closed below
    with temporary as spool:  # the length of an array precedes its values
        for values in blocks:
            spool.write(np.ascontiguousarray(values, dtype=np.float64).data)
        spool.flush()
        rows = spool.tell() // (8 * width)
        table = np.memmap(spool, np.float64, "r", shape=(rows, width)) if rows else np.empty((0, width))
        arrays: dict[str, np.ndarray] = {}
        start = 0
        for block, names in columns.items():
            arrays[block] = table[:, start] if block == "t" else table[:, start : start + len(names)]
            start += len(names)
        arrays |= {"columns": np.array(_names(columns)), "about": np.array(json.dumps(dict(about)))}
        with to.open("wb") as file:  # for a path, NumPy would append .npz to .NPZ
            np.savez(file, **arrays)  # type: ignore[arg-type]


def _write_parquet(to: Path, columns: Columns, blocks: Iterator[np.ndarray], about: Mapping[str, object]) -> None:
    pyarrow, parquet = arrow_module(), arrow_module("pyarrow.parquet")
    fields = [(name, pyarrow.float64()) for name in _names(columns)]
    schema = pyarrow.schema(fields, metadata={"linksweep": json.dumps(dict(about))})
    with parquet.ParquetWriter(to, schema) as writer:
        for values in blocks:
            writer.write_batch(pyarrow.record_batch(list(np.ascontiguousarray(values.T)), schema=schema))


def write_joint_trajectory(
    path: str | os.PathLike[str], joints: Sequence[str], t: ArrayLike, q: ArrayLike, qd: ArrayLike | None = None,
    qdd: ArrayLike | None = None, tau: ArrayLike | None = None,
) -> None:  # fmt: skip
    """Write samples as a trajectory_msgs/JointTrajectory message in YAML, as `ros2 topic pub` takes it.

    Parameters
    ----------
    path : path of a .yaml file
    joints : names
        The joints, in the order of the columns: `robot.joint_names` for a robot with 1-DOF joints.
    t : (n,)
        Times from the start (s).
    q, qd, qdd, tau : (n, joints)
        Positions, velocities, accelerations and efforts. All but q may be omitted.
    """
    file, names = Path(path), list(joints)
    if file.suffix.lower() != ".yaml":
        raise ArgumentError(f"The trajectory {shown(str(file))} ends in {file.suffix!r}, expected .yaml.")
    times = np.asarray(t, dtype=float)
    arrays = {"q": q, "qd": qd, "qdd": qdd, "tau": tau}
    blocks = {key: np.asarray(values, dtype=float) for key, values in arrays.items() if values is not None}
    for key, values in blocks.items():
        if times.ndim != 1 or values.shape != (len(times), len(names)):
            raise ArgumentError(
                f"{key} has shape {values.shape} with t of shape {times.shape}, expected (n, {len(names)}) and (n,)."
            )
    columns = {"t": ("t",), **{key: tuple(f"{key}.{name}" for name in names) for key in blocks}}
    write_table(file, columns, [np.column_stack([times, *blocks.values()])], {})


def _write_yaml(to: Path, columns: Columns, blocks: Iterator[np.ndarray], about: Mapping[str, object]) -> None:
    """A JointTrajectory message; JSON texts are valid YAML."""
    quantities = [block for block in columns if block != "t"]
    joints = [[name.removeprefix(f"{block}.") for name in columns[block]] for block in quantities]
    if any(block not in POINT_FIELDS for block in quantities) or any(names != joints[0] for names in joints[1:]):
        raise ArgumentError(
            f"A JointTrajectory has {', '.join(POINT_FIELDS)} of 1-DOF joints, got columns for {', '.join(columns)}: "
            f"write .csv for a robot with a floating base or ball joints."
        )
    with to.open("w", encoding="utf-8") as file:
        file.write("header:\n  stamp: {sec: 0, nanosec: 0}\n  frame_id: ''\n")
        file.write(f"joint_names: {json.dumps(joints[0] if joints else [], ensure_ascii=False)}\npoints:\n")
        first = None
        for values in blocks:
            if not np.isfinite(values).all():
                raise ArgumentError("A JointTrajectory has finite numbers only, got NaN or infinity.")
            for row in values.tolist():
                first = row[0] if first is None else first
                nanoseconds = round((row[0] - first) * 1e9)
                seconds, rest = divmod(nanoseconds, 10**9)
                start, lead = 1, "- "
                for block in quantities:
                    stop = start + len(columns[block])
                    file.write(f"{lead}{POINT_FIELDS[block]}: {row[start:stop]!r}\n")
                    start, lead = stop, "  "
                file.write(f"{lead}time_from_start: {{sec: {seconds}, nanosec: {rest}}}\n")
