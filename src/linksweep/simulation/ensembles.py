"""`ensemble`: an experiment many times over, chunk by chunk, here or on a cluster, into a folder that can be resumed.

Numbers depend on the seed and on the chunk, not on where, in what order or how often a chunk was begun. A chunk is done
when its file is in its place, which happens in one step: a run that was ended in any way goes on where it was.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..support.files import write_atomically
from ..support.messages import shown
from ..support.progress import ProgressBar
from ..support.version import __version__
from ..tables.arrow import arrow_module
from ..tables.writing import check_output, write_table

CHUNK = 10_000
ABOUT = "ensemble.json"
_AHEAD = 64  # chunks that an executor is given before the first is back


Task = tuple[Callable[..., Mapping[str, ArrayLike]], int, int, int, int]  # arguments of `run_chunk`
Client = Any  # of dask.distributed, which has no types


@dataclass(frozen=True)
class Ensemble:
    """Where the samples are: Parquet files, one for each chunk, in order. computed: how many of them by this call."""

    folder: Path
    samples: int
    files: tuple[Path, ...]
    computed: int

    def table(self) -> dict[str, np.ndarray]:
        """Every column (samples,), whole, in memory."""
        parquet = arrow_module("pyarrow.parquet")
        parts = [parquet.read_table(path) for path in self.files]
        return {name: np.concatenate([part[name].to_numpy() for part in parts]) for name in parts[0].column_names}


def ensemble(
    experiment: Callable[..., Mapping[str, ArrayLike]], samples: int, folder: str | os.PathLike[str], *,
    client: Executor | Client | None = None, seed: int = 0, chunk: int = CHUNK, progress: bool = True,
) -> Ensemble:  # fmt: skip
    """Run experiment(rng, first, count) for all samples; resume what is in the folder already.

    experiment: a function that can be pickled, of a NumPy Generator, the number of the first sample and how many there
    are, that gives columns {name: (count,) or (count, k)}; `Rollouts` is one. folder: for the results, one file per
    chunk. client: a dask.distributed Client, or any concurrent.futures Executor; None: this process. Lost workers of
    Dask are replaced by others, and no chunk is lost or comes twice. seed: every chunk has a generator by seed and
    number. chunk: samples in each. progress: a bar on long runs.
    """
    if not callable(experiment):
        raise ArgumentError(f"experiment is {shown(experiment)}, expected a function of rng, first and count.")
    samples, chunk = _whole("samples", samples, 1), _whole("chunk", chunk, 1)
    seed, place = _whole("seed", seed, 0), _folder(folder)
    count = math.ceil(samples / chunk)
    files = tuple(place / f"part-{k:06d}.parquet" for k in range(count))
    check_output(files[0])
    _check_same(place, {"experiment": _named(experiment), "samples": samples, "chunk": chunk, "seed": seed})
    open_chunks = [k for k in range(count) if not files[k].exists()]
    tasks = [(experiment, seed, k, k * chunk, min(chunk, samples - k * chunk)) for k in open_chunks]
    done = count - len(tasks)
    with ProgressBar(f"{samples:,} samples in {count} chunks", progress) as watch:
        for k, columns in _results(client, tasks):
            _write(files[k], columns)
            done += 1
            watch(done / count)
    return Ensemble(place, samples, files, len(tasks))


def run_chunk(
    experiment: Callable[..., Mapping[str, ArrayLike]], seed: int, number: int, first: int, count: int
) -> tuple[int, dict[str, np.ndarray]]:
    """One chunk, on whatever machine: code is compiled where it runs."""
    found = experiment(np.random.default_rng([seed, number]), first, count)
    if not isinstance(found, Mapping) or not found:
        raise ArgumentError(f"The experiment gave {shown(found)}, expected columns {{name: array}}: return a dict.")
    columns: dict[str, np.ndarray] = {}
    for name, values in found.items():
        array = np.asarray(values, dtype=float)
        if array.ndim not in (1, 2) or len(array) != count:
            raise ArgumentError(
                f"The experiment gave {name} of shape {array.shape}, expected ({count},) or ({count}, k): one row per "
                "sample."
            )
        columns[str(name)] = array
    return number, columns


def _results(client: Executor | Client | None, tasks: list[Task]) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    if client is None:
        return (run_chunk(*task) for task in tasks)
    if isinstance(client, Executor):
        return _by_executor(client, tasks)
    if hasattr(client, "scheduler_info") and hasattr(client, "submit"):
        return _by_dask(client, tasks)
    raise ArgumentError(
        f"client is {shown(client)}, expected a dask.distributed Client, a concurrent.futures Executor, or None."
    )


def _by_executor(executor: Executor, tasks: list[Task]) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    waiting, running = list(reversed(tasks)), set[Future[tuple[int, dict[str, np.ndarray]]]]()
    try:
        while waiting or running:
            while waiting and len(running) < _AHEAD:
                running.add(executor.submit(run_chunk, *waiting.pop()))
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                yield future.result()
    except BrokenExecutor as reason:
        raise ArgumentError(
            f"A process of the executor ended ({reason}), expected all to live: make a new executor and call again, "
            "what is done stays."
        ) from reason
    finally:
        for future in running:
            future.cancel()


def _by_dask(client: Client, tasks: list[Task]) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    from distributed import KilledWorker, as_completed  # pyright: ignore[reportMissingImports]

    waiting = list(reversed(tasks))

    def submitted() -> Client:
        return client.submit(run_chunk, *waiting.pop(), pure=False)

    first = [submitted() for _ in range(min(_AHEAD, len(waiting)))]
    arriving = as_completed(first)
    try:
        for future in arriving:
            result = future.result()
            future.release()  # the scheduler may forget it
            if waiting:
                arriving.add(submitted())
            yield result
    except KilledWorker as reason:
        raise ArgumentError(
            f"A chunk ended every worker that it was given to ({reason}), expected one that lives: is there memory for "
            "it? Choose a smaller chunk; what is done stays."
        ) from reason
    finally:
        arriving.clear()


def _write(path: Path, columns: Mapping[str, np.ndarray]) -> None:
    names = {
        name: (name,) if values.ndim == 1 else tuple(f"{name}.{k}" for k in range(values.shape[1]))
        for name, values in columns.items()
    }
    rows = np.concatenate([values.reshape(len(values), -1) for values in columns.values()], axis=1)
    write_table(path, names, [rows], {"linksweep": __version__})


def _check_same(folder: Path, asked: dict[str, object]) -> None:
    """What the folder is for stands in it; another ensemble does not go on there."""
    path, asked = folder / ABOUT, {**asked, "linksweep": __version__}
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if any(folder.glob("part-*.parquet")):
            raise ArgumentError(
                f"{folder} has results, but no {ABOUT} that says of what, expected a folder of its own: choose another."
            ) from None
        write_atomically(path, lambda to: _wrote(to, json.dumps(asked, indent=2) + "\n"))
        return
    except (OSError, ValueError) as reason:
        raise ArgumentError(f"{path} cannot be read ({reason}), expected what an ensemble wrote there.") from reason
    for key, value in asked.items():
        if not isinstance(before, dict) or before.get(key) != value:
            was = before.get(key) if isinstance(before, dict) else None
            raise ArgumentError(
                f"{folder} holds another ensemble ({key} {shown(was)}), expected {key} {shown(value)}: choose another "
                "folder, or delete it."
            )


def _wrote(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _named(experiment: Callable[..., Mapping[str, ArrayLike]]) -> str:
    own = getattr(experiment, "fingerprint", None)
    if own is not None:
        return str(own)
    name = getattr(experiment, "__qualname__", type(experiment).__qualname__)
    return f"{experiment.__module__}.{name}"


def _folder(folder: str | os.PathLike[str]) -> Path:
    if not isinstance(folder, (str, os.PathLike)):
        raise ArgumentError(f"folder is {shown(folder)}, expected the path of a folder for the results.")
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise ArgumentError(f"{path} is a file, expected a folder for the results: choose another.")
    return path


def _whole(name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ArgumentError(f"{name} is {shown(value)}, expected a whole number from {least} on.")
    return int(value)
