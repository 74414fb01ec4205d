"""Simulations as files: CSV, Parquet, and NPZ with the robot and the settings, which loads again."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from ..errors import ArgumentError, LinksweepError
from ..formats.stored import model_data, model_from_data
from ..robot.robot import Robot
from ..support.files import write_atomically
from ..support.memory import check_memory
from ..support.messages import shown
from ..tables import joint_columns

if TYPE_CHECKING:
    from .options import Settings
    from .result import Simulation

_ARRAYS = ("t", "q", "qd", "qdd", "tau")
_ROWS = 4096  # written at a time


def header(simulation: Simulation) -> list[str]:
    model = simulation.robot.model
    names = [name for block in _ARRAYS[1:] for name in joint_columns(model, block)]
    return [*(["rollout"] if simulation.batch else []), "t", *names, "energy"]


def _tables(simulation: Simulation) -> Iterator[tuple[int, np.ndarray]]:
    """The numbers of each rollout, (moments, columns) without the rollout's own number."""
    moments = len(simulation.t)
    blocks = [x.reshape(moments, -1, x.shape[-1]) for x in (getattr(simulation, name) for name in _ARRAYS[1:])]
    energy = simulation.energy.reshape(moments, -1)
    for rollout in range(energy.shape[1]):
        yield rollout, np.column_stack([simulation.t, *(x[:, rollout] for x in blocks), energy[:, rollout]])


def write_csv(simulation: Simulation, path: Path) -> None:
    def write(to: Path) -> None:
        with to.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header(simulation))
            for rollout, table in _tables(simulation):
                for first in range(0, len(table), _ROWS):
                    rows = table[first : first + _ROWS].tolist()
                    writer.writerows([[rollout, *row] for row in rows] if simulation.batch else rows)

    write_atomically(path, write)


def write_parquet(simulation: Simulation, path: Path) -> None:
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
        import pyarrow.parquet  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ArgumentError(
            "to_parquet needs pyarrow, which is not installed: pip install pyarrow, or use to_csv or to_npz."
        ) from error
    names = header(simulation)

    def write(to: Path) -> None:
        writer = None
        try:
            for rollout, table in _tables(simulation):
                columns = [np.full(len(table), rollout), *table.T] if simulation.batch else list(table.T)
                part = pyarrow.table(dict(zip(names, map(np.ascontiguousarray, columns), strict=True)))
                part = part.replace_schema_metadata({"linksweep": _metadata(simulation)})
                writer = writer or pyarrow.parquet.ParquetWriter(to, part.schema)
                writer.write_table(part)
        finally:
            if writer is not None:
                writer.close()

    write_atomically(path, write)


def write_npz(simulation: Simulation, path: Path) -> None:
    arrays = {name: getattr(simulation, name) for name in _ARRAYS}

    def write(to: Path) -> None:
        with to.open("wb") as file:  # an open file keeps its name: savez would add an ending
            np.savez(file, **arrays, metadata=np.array(_metadata(simulation)))

    write_atomically(path, write)


def load(path: str | Path) -> Simulation:
    """A simulation that `to_npz` wrote, with its robot. A file from elsewhere is read with the same care as any."""
    from .result import Simulation

    if not isinstance(path, str | os.PathLike):  # open() would take an integer as a descriptor, and close it
        raise ArgumentError(f"load got {shown(path)}, expected the path of a file that to_npz wrote.")
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            check_memory(f"the file {path}", (sum(entry.file_size for entry in stored.zip.infolist()),), 1)
            arrays = {name: stored[name] for name in _ARRAYS}
            metadata = json.loads(str(stored["metadata"]))
        settings = cast("Settings", dict(metadata["settings"]))
        robot_data = metadata["robot"]
    except LinksweepError:
        raise
    except OSError as error:
        reason = error.strerror or "it is damaged"
        raise ArgumentError(f"the file {path} cannot be read ({reason}), expected one that to_npz wrote.") from error
    except Exception as error:  # whatever zipfile, zlib, NumPy and json make of bytes that are no simulation
        raise ArgumentError(f"the file {path} is no simulation, expected one that to_npz wrote.") from error
    robot = Robot(model_from_data(robot_data, str(path)))
    _check_arrays(path, robot, arrays)
    return Simulation(robot, *arrays.values(), settings=settings)


def _check_arrays(path: str | Path, robot: Robot, arrays: dict[str, np.ndarray]) -> None:
    """Times (moments,), and for each moment and rollout nq or nv numbers."""
    batch = arrays["q"].shape[1:-1]
    sizes = {"q": robot.nq, "qd": robot.nv, "qdd": robot.nv, "tau": robot.nv}
    moments = arrays["t"].shape[:1]
    wanted = {"t": moments, **{name: (*moments, *batch, size) for name, size in sizes.items()}}
    for name, array in arrays.items():
        if array.dtype not in (np.float64, np.float32) or array.shape != wanted[name] or moments in ((), (0,)):
            raise ArgumentError(
                f"the file {path} is no simulation of {robot.name}: {name} holds {array.dtype} of shape {array.shape}, "
                f"expected floating-point numbers of shape {wanted[name]}."
            )


def _metadata(simulation: Simulation) -> str:
    return json.dumps({"robot": model_data(simulation.robot.model), "settings": simulation.settings})
