"""`ensemble`: an experiment many times over, chunk by chunk, here or on a cluster, into a folder that can be resumed.

Results depend on the experiment, the seed and the chunk size, not on where, in what order or how often a chunk was
begun. A chunk is done when its file is complete: each carries a checksum over all of its bytes, the number of its chunk
and the fingerprint of what made it, and is verified before it is used. Anything else is computed again.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import pickle
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..files.csv_files import arrow_module
from ..files.writing import check_output, write_table
from ..robot.robot import Robot
from ..support.checks import as_array, check_memory, real_number, refuse_foreign, whole_number
from ..support.display import ProgressBar
from ..support.files import write_atomically
from ..support.fingerprint import fingerprint
from ..support.messages import is_one_of, listing, nearest, shown
from ..support.settings import __version__
from .checks import real_array
from .controllers import Controller, Saturated, Sum
from .integrators import as_integrator
from .run import SimulateOptions, Torque, simulate
from .sampled_control import SampledController

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
    """Run an experiment many times, in chunks, into a folder that can be resumed and extended.

    Parameters
    ----------
    experiment : callable
        experiment(rng, first, count) of a NumPy Generator, the number of the first sample and their count. It returns
        columns {name: (count,) or (count, k)}. `Rollouts` is one. Processes and clusters need one that can be pickled.
    samples : int
        Number of samples. More than in an earlier call extends the ensemble; an incomplete last chunk is repeated.
    folder : path
        For the results, one file per chunk. It belongs to one experiment, seed and chunk size. The experiment is
        recognized by its code and all values it uses, or by an attribute `fingerprint` (a text), if it has one.
    client : dask.distributed.Client or concurrent.futures.Executor, optional
        Where chunks are computed; this process if omitted. Dask replaces lost workers without losing chunks.
    seed : int
        Each chunk has a generator by seed and chunk number.
    chunk : int
        Number of samples in each chunk.
    progress : bool
        Show a bar on long runs.

    Returns
    -------
    Ensemble
        The files, with `table()` to read all columns.

    Raises
    ------
    ArgumentError
        If an argument is invalid, the folder holds another ensemble, or the experiment returns unsuitable columns.

    Examples
    --------
    >>> rollouts = ls.simulation.Rollouts(robot, q0, vary={"q0": ("normal", 0.05)})
    >>> ls.ensemble(rollouts, 1000, "results").table()
    """
    if not callable(experiment):
        raise ArgumentError(f"experiment is {shown(experiment)}, expected a function of rng, first and count.")
    samples, chunk = whole_number("samples", samples, at_least=1), whole_number("chunk", chunk, at_least=1)
    seed, place = whole_number("seed", seed, at_least=0), _folder(folder)
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


IN_MEMORY = 1 << 26  # bytes of records at a time
VARIED = ("q0", "qd0", "kp", "kd")
TIMES = {"duration": 1.0, "dt": 1e-3}  # as in `simulate`
SPREADS = ("normal", "uniform")


@dataclass(frozen=True)
class Rollouts:
    """simulate(robot, q0, qd0, law, **options) from scattered starts, with scattered gains and one of several payloads.

    vary: for any of q0, qd0 (added to the start), kp, kd (factors of the law's gains; of a sum or a
    saturated law, those of the one inside that has them), ("normal" or "uniform", size):
    its standard deviation, or the most that it goes either way; one number, or one for each joint. payloads: masses
    (kg) held in `frame` with their mass centre in its origin; sample i has the i-th of them, again and again. The
    columns of a sample are what was drawn, q and qd in the end, and the largest recorded torque of each joint.
    """

    robot: Robot
    q0: ArrayLike
    qd0: ArrayLike | None = None
    law: Torque = None
    options: SimulateOptions = field(default_factory=SimulateOptions)
    vary: Mapping[str, tuple[str, ArrayLike]] = field(default_factory=dict)
    payloads: tuple[float, ...] = ()
    frame: str | None = None

    def __post_init__(self) -> None:
        for name, value in self.vary.items():
            if not is_one_of(name, VARIED):
                raise ArgumentError(f"vary has {shown(name)}{nearest(name, VARIED)}, expected {', '.join(VARIED)}.")
            if not isinstance(value, (tuple, list)) or len(value) != 2 or value[0] not in SPREADS:
                raise ArgumentError(f"vary: {name} is {shown(value)}, expected ('normal' or 'uniform', size).")
            size = _from_zero(f"vary: {name}", value[1])
            if size is None or size.shape not in ((), (self.robot.nv,)):
                raise ArgumentError(
                    f"vary: {name} has size {shown(value[1])}, expected numbers from 0 on: one, or {self.robot.nv} of "
                    f"them."
                )
            if name in ("kp", "kd"):
                _check_gain(self.law, name)
        masses = _from_zero("payloads", self.payloads)
        if masses is None or masses.ndim != 1:
            raise ArgumentError(f"payloads is {shown(self.payloads)}, expected masses (kg) from 0 on.")
        object.__setattr__(self, "payloads", tuple(masses.tolist()))
        if masses.any():
            self._robot(int(masses.argmax()))  # whether there is such a frame
        one_start(self.robot, self.q0, self.qd0)
        self._at_once()

    def __call__(self, rng: np.random.Generator, first: int, count: int) -> dict[str, np.ndarray]:
        check_memory("a chunk", (count, 2 * self.robot.nv), advice="choose a smaller chunk")
        drawn = {name: self._drawn(rng, name, count) for name in VARIED if name in self.vary}
        columns: dict[str, np.ndarray] = {"sample": first + np.arange(count), **drawn}
        numbers, kinds = first + np.arange(count), max(len(self.payloads), 1)
        if self.payloads:
            columns["payload"] = np.asarray(self.payloads, float)[numbers % kinds]
        for kind in range(kinds):
            every = np.flatnonzero(numbers % kinds == kind)
            robot, at_once = self._robot(kind), self._at_once()
            for start in range(0, len(every), at_once):
                which = every[start : start + at_once]
                for name, values in self._simulated(robot, which, drawn).items():
                    columns.setdefault(name, np.empty((count, *values.shape[1:])))[which] = values
        return columns

    def _at_once(self) -> int:
        """So many rollouts that their records fit into memory; a rollout does not depend on those beside it."""
        duration, dt = (
            real_number(name, self.options.get(name, default), above=0.0) for name, default in TIMES.items()
        )
        steps = duration / dt / whole_number("every", self.options.get("every", 1), at_least=1)
        return max(int(IN_MEMORY / (8 * (steps + 1) * (self.robot.nq + 3 * self.robot.nv))), 64)

    def _drawn(self, rng: np.random.Generator, name: str, count: int) -> np.ndarray:
        spread, size = self.vary[name]
        shape = (count, self.robot.nv)
        values = rng.normal(size=shape) if spread == "normal" else rng.uniform(-1.0, 1.0, shape)
        return values * np.asarray(size, float) + (1.0 if name in ("kp", "kd") else 0.0)

    def _simulated(self, robot: Robot, which: np.ndarray, drawn: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        law, count = self.law, len(which)
        q0 = np.broadcast_to(np.asarray(self.q0, float), (count, robot.nq))
        qd0 = np.broadcast_to(0.0 if self.qd0 is None else np.asarray(self.qd0, float), (count, robot.nv))
        if "q0" in drawn:
            q0 = robot.integrate(q0, drawn["q0"][which], 1.0)
        if "qd0" in drawn:
            qd0 = qd0 + drawn["qd0"][which]
        for name in ("kp", "kd"):
            if law is not None and name in drawn:
                inner = law.controller if isinstance(law, SampledController) else law
                scaled = _scaled(cast(Controller, inner), name, drawn[name][which])
                law = replace(law, controller=scaled) if isinstance(law, SampledController) else scaled
        integrator = as_integrator(self.options.get("integrator", "rk4"))
        integrator = replace(integrator, limits="ignore", progress=False)
        options: SimulateOptions = {**self.options, "integrator": integrator}
        found = simulate(robot, q0, qd0, law, **options)
        return {"q": found.q[-1], "qd": found.qd[-1], "tau_peak": np.abs(found.tau).max(axis=0)}

    def _robot(self, kind: int) -> Robot:
        if not self.payloads or self.payloads[kind] == 0.0:
            return self.robot
        try:
            frame = self.robot.ee if self.frame is None else self.frame
        except ArgumentError as error:
            raise ArgumentError(f"payloads have no frame, and {error}") from None
        return self.robot.with_payload(frame, self.payloads[kind], (0.0, 0.0, 0.0))


def one_start(robot: Robot, q0: ArrayLike, qd0: ArrayLike | None) -> tuple[np.ndarray, np.ndarray | None]:
    """q0 (nq,) and qd0 (nv,), checked: one rollout, not a batch."""
    found = real_array("q0", q0, robot.nq), None if qd0 is None else real_array("qd0", qd0, robot.nv)
    for name, start in zip(("q0", "qd0"), found, strict=True):
        if start is not None and start.ndim > 1:
            raise ArgumentError(
                f"{name} has shape {start.shape}, expected {start.shape[-1:]}: give one start, vary scatters it."
            )
    return found


def _from_zero(name: str, value: ArrayLike) -> np.ndarray | None:
    """Finite numbers from 0 on, or None."""
    refuse_foreign(name, value)
    array = as_array(value)
    real = array.dtype.kind in "fiu" and bool(np.isfinite(array).all())
    return array if real and (array >= 0).all() else None


def _parts(controller: Torque) -> list[Controller]:
    """The controllers of which one is made."""
    if isinstance(controller, Sum):
        return [part for one in controller.parts for part in _parts(one)]
    if isinstance(controller, (Saturated, SampledController)):
        return _parts(controller.controller)
    return [controller] if isinstance(controller, Controller) else []


def _check_gain(controller: Torque, name: str) -> None:
    """Raise ArgumentError unless exactly one part of the controller has this gain."""
    parts = [part for part in _parts(controller) if hasattr(part, name)]
    if not parts:
        raise ArgumentError(f"vary: {name} is a gain, expected a controller that has it, such as PD.")
    if len(parts) > 1:
        names = ", ".join(type(part).__name__ for part in parts)
        raise ArgumentError(
            f"vary: {name} is a gain of {len(parts)} controllers ({names}), expected one that has it: leave {name} out."
        )


def _scaled(controller: Controller, name: str, factors: np.ndarray) -> Controller:
    """A copy of the controller with this gain multiplied."""
    controller = copy.copy(controller)
    if isinstance(controller, Sum):
        controller.parts = tuple(_scaled(part, name, factors) for part in controller.parts)
    elif isinstance(controller, Saturated):
        controller.controller = _scaled(controller.controller, name, factors)
    elif hasattr(controller, name):
        setattr(controller, name, getattr(controller, name) * factors)
    return controller
