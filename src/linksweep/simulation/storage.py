"""Simulations as files: CSV, Parquet, and NPZ with the robot and the settings, which loads again."""

from __future__ import annotations

import csv
import dataclasses
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError
from ..files import write_atomically
from ..model import Frame, Inertial, Joint, Limits, Link, Model, Placement
from ..tables import joint_columns

if TYPE_CHECKING:
    from ..robot import Robot
    from .result import Simulation

_ARRAYS = ("t", "q", "qd", "qdd", "tau")
_ROWS = 4096  # written at a time
_PARTS: dict[str, Any] = {
    "links": Link, "frames": Frame, "joint": Joint, "inertial": Inertial, "base_inertial": Inertial,
    "placement": Placement, "limits": Limits,
}  # fmt: skip


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
    """A simulation that `to_npz` wrote, with its robot."""
    from .result import Simulation

    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in _ARRAYS}
            metadata = json.loads(str(stored["metadata"]))
        model = _restored(Model, metadata["robot"])
        settings = dict(metadata["settings"])
    except OSError as error:
        reason = error.strerror or "it is damaged"
        raise ArgumentError(f"the file {path} cannot be read ({reason}), expected one that to_npz wrote.") from error
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise ArgumentError(f"the file {path} is no simulation, expected one that to_npz wrote.") from error
    return Simulation(_robot(model), *arrays.values(), settings=settings)


def _robot(model: Model) -> Robot:
    import linksweep  # the façade is above this layer: it is asked for by name when a file is read

    return linksweep.Robot(model)


def _metadata(simulation: Simulation) -> str:
    return json.dumps({"robot": dataclasses.asdict(simulation.robot.model), "settings": simulation.settings})


def _restored(kind: Any, data: Any) -> Any:
    """A dataclass of the model from what `asdict` and JSON made of it."""
    if isinstance(data, list):
        return tuple(_restored(kind, entry) for entry in data)
    if not isinstance(data, dict):
        return data
    return kind(**{name: _restored(_PARTS.get(name), value) for name, value in data.items()})
