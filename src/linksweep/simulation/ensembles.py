"""`ensemble`: an experiment many times over, chunk by chunk, here or on a cluster, into a folder that can be resumed.

Results depend on the experiment, the seed and the chunk size, not on where, in what order or how often a chunk was
begun. A chunk is done when its file is complete: each carries a checksum over all of its bytes, the number of its chunk
and the fingerprint of what made it, and is verified before it is used. Anything else is computed again.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..support.files import write_atomically
from ..support.fingerprint import fingerprint
from ..support.foreign import refuse_foreign
from ..support.memory import check_memory
from ..support.messages import listing, shown
from ..support.numbers import as_array
from ..support.progress import ProgressBar
from ..support.version import __version__
from ..tables.arrow import arrow_module
from ..tables.writing import check_output, write_table

CHUNK = 10_000
ABOUT = "ensemble.json"
FORMAT = 2  # of the folder
MOST_CHUNKS = 10**7  # files in one folder
LEFT_BEHIND = 3600.0  # seconds: temporary files that are older belong to a run that was killed
_AHEAD = 64  # chunks that an executor is given before the first is back
_EXACT = 2**53  # integers that float64 holds
_CHECKSUM = b'"checksum": "'  # in a file's metadata, before 64 digits of SHA-256
_BLANK = b"0" * 64


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
        parts, rows, identity = [], 0, None
        for k, path in enumerate(self.files):
            about = _sealed(path) or {}
            identity = identity or about.get("ensemble")
            if (about.get("part"), about.get("first"), about.get("ensemble")) != (k, rows, identity):
                raise ArgumentError(f"{path} is missing or damaged: call ensemble again, which computes it anew.")
            parts.append(parquet.read_table(path))
            rows += parts[-1].num_rows
            if parts[-1].column_names != parts[0].column_names:
                raise ArgumentError(
                    f"{path} has the columns {listing(parts[-1].column_names)}, but {self.files[0].name} has "
                    f"{listing(parts[0].column_names)}: an experiment must return the same columns for every chunk."
                )
        return {name: np.concatenate([part[name].to_numpy() for part in parts]) for name in parts[0].column_names}


def ensemble(
    experiment: Callable[..., Mapping[str, ArrayLike]], samples: int, folder: str | os.PathLike[str], *,
    client: Executor | Client | None = None, seed: int = 0, chunk: int = CHUNK, progress: bool = True,
) -> Ensemble:  # fmt: skip
    """Run experiment(rng, first, count) for all samples; resume or extend what is in the folder already.

    experiment: a function of a NumPy Generator, the number of the first sample and how many there are, that returns
    columns {name: (count,) or (count, k)}; `Rollouts` is one. Processes and clusters need one that can be pickled.
    samples: more than in an earlier call extends the ensemble; its last chunk, if incomplete, is computed again.
    folder: for the results, one file per chunk. It belongs to one experiment, seed and chunk size. The experiment is
    recognized by its code and all values it uses, or by an attribute `fingerprint` (a text), if it has one. client: a
    dask.distributed Client, or any concurrent.futures Executor; None: this process. Lost workers of Dask are replaced
    by others, and no chunk is lost or comes twice. seed: every chunk has a generator by seed and number. chunk: samples
    in each. progress: show a bar on long runs.
    """
    if not callable(experiment):
        raise ArgumentError(f"experiment is {shown(experiment)}, expected a function of rng, first and count.")
    samples, chunk = _whole("samples", samples, 1), _whole("chunk", chunk, 1)
    seed, place = _whole("seed", seed, 0), _folder(folder)
    count = -(-samples // chunk)
    if count > MOST_CHUNKS:
        raise ArgumentError(
            f"samples is {samples}, which makes {count} files of chunk={chunk}, expected at most {MOST_CHUNKS}: choose "
            f"fewer samples or a larger chunk."
        )
    check_memory("a chunk", (min(chunk, samples),), advice="choose a smaller chunk")
    _check_client(client, experiment)
    check_output(place / _part(0))
    about = _checked_folder(place, experiment, seed, chunk)
    plan = _Plan(place, about, samples, chunk)
    computed = 0
    with ProgressBar(f"{samples:,} samples in {count} chunks", progress) as watch:
        tasks = plan.tasks(experiment, seed, lambda: watch((plan.done + computed) / count))
        for k, columns in _results(client, tasks):
            plan.write(k, columns)
            computed += 1
            watch((plan.done + computed) / count)
    return Ensemble(place, samples, tuple(place / _part(k) for k in range(count)), computed)


class _Plan:
    """Which chunks of a folder are done, and files for the others."""

    def __init__(self, folder: Path, about: str, samples: int, chunk: int):
        self.folder, self.about, self.samples, self.chunk = folder, about, samples, chunk
        self.done = 0

    def tasks(
        self, experiment: Callable[..., Mapping[str, ArrayLike]], seed: int, watch: Callable[[], None]
    ) -> Iterator[Task]:
        """Chunks that are still to be computed; looked for only as fast as they are taken."""
        for k in range(-(-self.samples // self.chunk)):
            first = k * self.chunk
            count = min(self.chunk, self.samples - first)
            if self._is_done(k, first, count):
                self.done += 1
                watch()
            else:
                yield experiment, seed, k, first, count

    def _is_done(self, k: int, first: int, count: int) -> bool:
        path = self.folder / _part(k)
        about = _sealed(path)
        if about is None or (about.get("ensemble"), about.get("part"), about.get("first")) != (self.about, k, first):
            return False
        there = about.get("count")
        if isinstance(there, int) and there > count:
            raise ArgumentError(
                f"{path} holds samples {first} to {first + there - 1}, expected samples of at least {first + there}: "
                f"pass as many, or another folder."
            )
        return there == count

    def write(self, k: int, columns: Mapping[str, np.ndarray]) -> None:
        _write(self.folder / _part(k), columns, {"ensemble": self.about, "part": k, "first": k * self.chunk})


def run_chunk(
    experiment: Callable[..., Mapping[str, ArrayLike]], seed: int, number: int, first: int, count: int
) -> tuple[int, dict[str, np.ndarray]]:
    """One chunk, on whatever machine: code is compiled where it runs."""
    found = experiment(np.random.default_rng([seed, number]), first, count)
    if not isinstance(found, Mapping) or not found:
        raise ArgumentError(f"The experiment gave {shown(found)}, expected columns {{name: array}}: return a dict.")
    columns = {str(name): _column(str(name), values, count) for name, values in found.items()}
    names = [each for name, values in columns.items() for each in _names(name, values)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ArgumentError(f"The experiment gave two columns {shown(twice)}, expected one of each name.")
    return number, columns


def _column(name: str, values: ArrayLike, count: int) -> np.ndarray:
    refuse_foreign(f"column {name} of the experiment", values)
    array = as_array(values)
    if array.dtype.kind not in "iufb":
        raise ArgumentError(f"The experiment gave {name} as {shown(values)}, expected real numbers.")
    if array.ndim not in (1, 2) or len(array) != count:
        raise ArgumentError(
            f"The experiment gave {name} of shape {array.shape}, expected ({count},) or ({count}, k): one row per "
            "sample."
        )
    if array.dtype.kind in "iu" and array.size and max(int(array.max()), -int(array.min())) > _EXACT:
        raise ArgumentError(
            f"The experiment gave {name} with integers beyond 2**53, which float64 cannot hold, expected smaller ones: "
            f"split them into two columns."
        )
    return array.astype(float)


def _names(name: str, values: np.ndarray) -> tuple[str, ...]:
    return (name,) if values.ndim == 1 else tuple(f"{name}.{k}" for k in range(values.shape[1]))


def _check_client(client: Executor | Client | None, experiment: Callable[..., object]) -> None:
    dask = hasattr(client, "scheduler_info") and hasattr(client, "submit")
    if client is not None and not isinstance(client, Executor) and not dask:
        raise ArgumentError(
            f"client is {shown(client)}, expected a dask.distributed Client, a concurrent.futures Executor, or None."
        )
    if isinstance(client, ProcessPoolExecutor):
        try:
            pickle.dumps(experiment)
        except Exception as reason:
            raise ArgumentError(
                f"experiment is {shown(experiment)}, which other processes cannot get ({reason}), expected one that "
                f"can be pickled: define it at the top of a module."
            ) from reason


def _results(client: Executor | Client | None, tasks: Iterator[Task]) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    if client is None:
        return (run_chunk(*task) for task in tasks)
    return _by_executor(client, tasks) if isinstance(client, Executor) else _by_dask(client, tasks)


def _by_executor(executor: Executor, tasks: Iterator[Task]) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    running = set[Future[tuple[int, dict[str, np.ndarray]]]]()
    try:
        while True:
            while len(running) < _AHEAD and (task := next(tasks, None)) is not None:
                running.add(executor.submit(run_chunk, *task))
            if not running:
                return
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for future in ended:
                yield future.result()
    except BrokenExecutor as reason:
        raise ArgumentError(
            f"A worker process of the executor died ({reason}): make a new executor and call again; completed chunks "
            f"were kept."
        ) from reason
    finally:
        for future in running:
            future.cancel()


def _by_dask(client: Client, tasks: Iterator[Task]) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    from distributed import KilledWorker, as_completed  # pyright: ignore[reportMissingImports]

    def submitted() -> Iterator[Client]:
        for task in tasks:
            yield client.submit(run_chunk, *task, pure=False)

    waiting = submitted()
    arriving = as_completed(list(islice(waiting, _AHEAD)))
    try:
        for future in arriving:
            result = future.result()
            future.release()  # the scheduler may forget it
            following = next(waiting, None)
            if following is not None:
                arriving.add(following)
            yield result
    except KilledWorker as reason:
        raise ArgumentError(
            f"A chunk ended every worker that it was given to ({reason}), expected one that lives: is there memory for "
            "it? Choose a smaller chunk; what is done stays."
        ) from reason
    finally:
        arriving.clear()


def _part(k: int) -> str:
    return f"part-{k:06d}.parquet"


def _write(path: Path, columns: Mapping[str, np.ndarray], about: Mapping[str, object]) -> None:
    if path.is_symlink():  # a file of this folder, never one elsewhere
        path.unlink()
    names = {name: _names(name, values) for name, values in columns.items()}
    rows = np.concatenate([values.reshape(len(values), -1) for values in columns.values()], axis=1)
    about = {"linksweep": __version__, **about, "count": len(rows), "checksum": _BLANK.decode()}
    write_table(path, names, [rows], about, finish=_seal)


def _seal(path: Path) -> None:
    """Put the checksum of a file, in which the checksum itself is blank, in its place."""
    data = path.read_bytes()
    place = _place_of_checksum(data)
    with path.open("r+b") as file:
        file.seek(place)
        file.write(hashlib.sha256(data).hexdigest().encode())


def _sealed(path: Path) -> dict[str, object] | None:
    """What a file of an ensemble says of itself; None for anything but a whole file that `_seal` has sealed."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        data = bytearray(path.read_bytes())
        place = _place_of_checksum(data)
        found = bytes(data[place : place + len(_BLANK)])
        data[place : place + len(_BLANK)] = _BLANK
        if hashlib.sha256(data).hexdigest().encode() != found:
            return None
        about = json.loads(data[data.rindex(b"{", 0, place) : data.index(b"}", place) + 1])
    except (OSError, ValueError):
        return None
    return about if isinstance(about, dict) else None


def _place_of_checksum(data: bytes | bytearray) -> int:
    """Where the digits begin, in the metadata at the end of a Parquet file; ValueError where there are none."""
    length = int.from_bytes(data[-8:-4], "little")  # of the metadata, which "PAR1" ends
    return data.rindex(_CHECKSUM, max(len(data) - 8 - length, 0)) + len(_CHECKSUM)


def _checked_folder(folder: Path, experiment: Callable[..., object], seed: int, chunk: int) -> str:
    """The identity of the ensemble, which the folder's first run writes into it and other ensembles do not have."""
    path = folder / ABOUT
    own = getattr(experiment, "fingerprint", None)
    parts = {"fingerprint": str(own)} if own is not None else fingerprint(experiment)
    asked: dict[str, object] = {
        "format": FORMAT, "linksweep": __version__, "experiment": _named(experiment), "seed": seed, "chunk": chunk,
        "made of": parts,
    }  # fmt: skip
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(before, dict):
            raise ValueError("it holds no table")
    except FileNotFoundError:
        if any(folder.glob("part-*.parquet")):
            raise ArgumentError(
                f"{folder} has results, but no {ABOUT} that says of what, expected a folder of its own: choose another."
            ) from None
        text = json.dumps(asked, indent=2) + "\n"
        write_atomically(path, lambda to: _wrote(to, text), sync=True)
        before = asked
    except (OSError, ValueError) as reason:
        raise ArgumentError(f"{path} cannot be read ({reason}), expected what an ensemble wrote there.") from reason
    if before != asked:
        raise ArgumentError(
            f"{folder} holds another ensemble: {_difference(before, asked)}. Choose another folder, or delete it."
        )
    _remove_left_behind(folder)
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _difference(before: Mapping[str, object], asked: Mapping[str, object]) -> str:
    for key, value in asked.items():
        was = before.get(key)
        if was != value and isinstance(was, Mapping) and isinstance(value, Mapping):
            names = [name for name in {**was, **value} if was.get(name) != value.get(name)]
            packages = [
                f"{name} {was.get(name)}, now {value.get(name)}" for name in names if name.startswith("package")
            ]
            return f"the experiment differs in {listing(packages or names, quoted=False)}"
        if was != value:
            return f"{key} {shown(was)}, now {shown(value)}"
    return "it was made otherwise"


def _remove_left_behind(folder: Path) -> None:
    """Temporary files of runs that were killed."""
    for path in folder.glob(".part-*.parquet"):
        try:
            if time.time() - path.stat().st_mtime > LEFT_BEHIND:
                path.unlink()
        except OSError:  # another run was quicker
            pass


def _wrote(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _named(experiment: Callable[..., object]) -> str:
    name = getattr(experiment, "__qualname__", type(experiment).__qualname__)
    return f"{getattr(experiment, '__module__', type(experiment).__module__)}.{name}"


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
