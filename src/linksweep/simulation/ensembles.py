"""`ensemble`: run an experiment many times in chunks, locally or on a cluster, into a folder that can be resumed.

Results depend on the experiment, the seed and the chunk size, not on where, in what order or how often chunks were
started. The file of each chunk contains a checksum over all of its bytes, the number of the chunk and a fingerprint of
the experiment, and is verified before it is used. Chunks without a valid file are computed again.
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
from dataclasses import InitVar, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError, warn_user
from ..files.csv_files import arrow_module
from ..files.writing import check_output, write_table
from ..robot.robot import Robot
from ..support.checks import as_array, check_memory, one_of, real_number, refuse_foreign, whole_number
from ..support.display import ProgressBar
from ..support.files import write_atomically
from ..support.fingerprint import fingerprint
from ..support.messages import listing, shown
from ..support.settings import __version__
from .checks import real_array
from .controllers import Controller, Saturated, Sum
from .integrators import as_integrator
from .run import SimulateOptions, Torque, simulate
from .sampled_control import SampledController

CHUNK = 10_000
ABOUT = "ensemble.json"
FORMAT = 2  # of the folder
MAX_CHUNKS = 10**7  # files in one folder
STALE = 3600.0  # seconds: older temporary files belong to runs that were killed
_AHEAD = 64  # chunks submitted at a time
_EXACT = 2**53  # largest integer that float64 represents exactly
_CHECKSUM = b'"checksum": "'  # precedes the 64 digits of SHA-256 in the metadata of a file
_BLANK = b"0" * 64


Task = tuple[Callable[..., Mapping[str, ArrayLike]], int, int, int, int]  # arguments of `run_chunk`
Client = Any  # of dask.distributed, which has no types


@dataclass(frozen=True)
class Ensemble:
    """Parquet files with the samples, one per chunk, in order. computed: number of chunks that this call computed."""

    folder: Path
    samples: int
    files: tuple[Path, ...]
    computed: int

    def table(self) -> dict[str, np.ndarray]:
        """Return all columns {name: (samples,)}."""
        parquet = arrow_module("pyarrow.parquet")
        parts, rows, identity = [], 0, None
        for k, path in enumerate(self.files):
            about = _sealed(path) or {}
            identity = identity or about.get("ensemble")
            if (about.get("part"), about.get("first"), about.get("ensemble")) != (k, rows, identity):
                raise ArgumentError(f"{path} is missing or damaged: call ensemble again to compute it.")
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
    if count > MAX_CHUNKS:
        raise ArgumentError(
            f"samples is {samples}, which needs {count} files of chunk={chunk}, expected at most {MAX_CHUNKS}: choose "
            f"fewer samples or a larger chunk."
        )
    check_memory("a chunk", (min(chunk, samples),), advice="choose a smaller chunk")
    _check_client(client, experiment)
    check_output(place / _part(0))
    plan = _Plan(place, _checked_folder(place, experiment, seed, chunk), samples, chunk)
    computed = 0
    with ProgressBar(f"{samples:,} samples in {count} chunks", progress) as watch:
        tasks = plan.tasks(experiment, seed, lambda: watch((plan.done + computed) / count))
        for k, columns in _results(client, tasks):
            plan.write(k, columns)
            computed += 1
            watch((plan.done + computed) / count)
    return Ensemble(place, samples, tuple(place / _part(k) for k in range(count)), computed)


class _Plan:
    """The chunks of a folder: which are done, and the files of the others. identity: of the ensemble."""

    def __init__(self, folder: Path, identity: str, samples: int, chunk: int):
        self.folder, self.identity, self.samples, self.chunk = folder, identity, samples, chunk
        self.done = 0

    def tasks(
        self, experiment: Callable[..., Mapping[str, ArrayLike]], seed: int, watch: Callable[[], None]
    ) -> Iterator[Task]:
        """Yield the chunks to compute. Files are verified only when the next chunk is requested."""
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
        if about is None or (about.get("ensemble"), about.get("part"), about.get("first")) != (self.identity, k, first):
            return False
        size = about.get("count")
        if isinstance(size, int) and size > count:
            raise ArgumentError(
                f"samples is {self.samples}, but {path} contains samples {first} to {first + size - 1}: pass samples "
                f"of at least {first + size}, or another folder."
            )
        return size == count

    def write(self, k: int, columns: Mapping[str, np.ndarray]) -> None:
        _write(self.folder / _part(k), columns, {"ensemble": self.identity, "part": k, "first": k * self.chunk})


def run_chunk(
    experiment: Callable[..., Mapping[str, ArrayLike]], seed: int, number: int, first: int, count: int
) -> tuple[int, dict[str, np.ndarray]]:
    """Compute one chunk, on any machine; code is compiled where it runs."""
    result = experiment(np.random.default_rng([seed, number]), first, count)
    if not isinstance(result, Mapping) or not result:
        raise ArgumentError(f"The experiment returned {shown(result)}, expected columns {{name: array}}.")
    columns = {str(name): _column(str(name), values, count) for name, values in result.items()}
    names = [each for name, values in columns.items() for each in _names(name, values)]
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise ArgumentError(f"The experiment returned two columns {shown(duplicate)}, expected different names.")
    return number, columns


def _column(name: str, values: ArrayLike, count: int) -> np.ndarray:
    refuse_foreign(f"column {name} of the experiment", values)
    array = as_array(values)
    if array.dtype.kind not in "iufb":
        raise ArgumentError(f"The experiment returned {name} as {shown(values)}, expected real numbers.")
    if array.ndim not in (1, 2) or len(array) != count:
        raise ArgumentError(
            f"The experiment returned {name} of shape {array.shape}, expected ({count},) or ({count}, k): one row per "
            "sample."
        )
    if array.dtype.kind in "iu" and array.size and max(int(array.max()), -int(array.min())) > _EXACT:
        raise ArgumentError(
            f"The experiment returned {name} with integers beyond 2**53, which float64 cannot represent: split them "
            f"into two columns."
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
                f"experiment is {shown(experiment)}, which cannot be pickled for other processes ({reason}): define it "
                f"at the top of a module."
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
            f"Every worker that computed a chunk died ({reason}), possibly for lack of memory: choose a smaller chunk. "
            f"Completed chunks were kept."
        ) from reason
    finally:
        arriving.clear()


def _part(k: int) -> str:
    return f"part-{k:06d}.parquet"


def _write(path: Path, columns: Mapping[str, np.ndarray], about: Mapping[str, object]) -> None:
    if path.is_symlink():  # never write to a file outside this folder
        path.unlink()
    names = {name: _names(name, values) for name, values in columns.items()}
    rows = np.concatenate([values.reshape(len(values), -1) for values in columns.values()], axis=1)
    about = {"linksweep": __version__, **about, "count": len(rows), "checksum": _BLANK.decode()}
    write_table(path, names, [rows], about, finish=_seal)


def _seal(path: Path) -> None:
    """Write the checksum of a file, computed with a blank checksum, into the file."""
    data = path.read_bytes()
    offset = _checksum_offset(data)
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(hashlib.sha256(data).hexdigest().encode())


def _sealed(path: Path) -> dict[str, object] | None:
    """Return the metadata of a file of an ensemble, or None unless it is a complete file that `_seal` has sealed."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        data = bytearray(path.read_bytes())
        offset = _checksum_offset(data)
        checksum = bytes(data[offset : offset + len(_BLANK)])
        data[offset : offset + len(_BLANK)] = _BLANK
        if hashlib.sha256(data).hexdigest().encode() != checksum:
            return None
        about = json.loads(data[data.rindex(b"{", 0, offset) : data.index(b"}", offset) + 1])
    except (OSError, ValueError):
        return None
    return about if isinstance(about, dict) else None


def _checksum_offset(data: bytes | bytearray) -> int:
    """Return the offset of the digits in the metadata at the end of a Parquet file; raise ValueError without any."""
    length = int.from_bytes(data[-8:-4], "little")  # of the metadata, which end in "PAR1"
    return data.rindex(_CHECKSUM, max(len(data) - 8 - length, 0)) + len(_CHECKSUM)


def _checked_folder(folder: Path, experiment: Callable[..., object], seed: int, chunk: int) -> str:
    """Return the identity of the ensemble, after comparing it with the one that the first run wrote to the folder."""
    path = folder / ABOUT
    declared = getattr(experiment, "fingerprint", None)
    parts = {"fingerprint": str(declared)} if declared is not None else fingerprint(experiment)
    about: dict[str, object] = {
        "format": FORMAT, "linksweep": __version__, "experiment": _named(experiment), "seed": seed, "chunk": chunk,
        "made of": parts,
    }  # fmt: skip
    try:
        before = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(before, dict):
            raise ValueError("it is not a table")
    except FileNotFoundError:
        if any(folder.glob("part-*.parquet")):
            raise ArgumentError(
                f"{folder} contains results but no {ABOUT}, expected an empty folder or one of this ensemble."
            ) from None
        text = json.dumps(about, indent=2) + "\n"
        write_atomically(path, lambda to: _write_text(to, text), sync=True)
        before = about
    except (OSError, ValueError) as reason:
        raise ArgumentError(f"{path} cannot be read ({reason}), expected a file that ensemble wrote.") from reason
    if before != about:
        raise ArgumentError(
            f"{folder} holds another ensemble: {_difference(before, about)}. Choose another folder, or delete it."
        )
    _remove_stale(folder)
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _difference(before: Mapping[str, object], about: Mapping[str, object]) -> str:
    for key, value in about.items():
        was = before.get(key)
        if was != value and isinstance(was, Mapping) and isinstance(value, Mapping):
            names = [name for name in {**was, **value} if was.get(name) != value.get(name)]
            packages = [
                f"{name} {was.get(name)}, now {value.get(name)}" for name in names if name.startswith("package")
            ]
            return f"the experiment differs in {listing(packages or names, quoted=False)}"
        if was != value:
            return f"{key} {shown(was)}, now {shown(value)}"
    return "its settings differ"


def _remove_stale(folder: Path) -> None:
    """Remove temporary files of runs that were killed."""
    for path in folder.glob(".part-*.parquet"):
        try:
            if time.time() - path.stat().st_mtime > STALE:
                path.unlink()
        except OSError:  # another run removed it
            pass


def _write_text(path: Path, text: str) -> None:
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


IN_MEMORY = 1 << 26  # bytes of records in memory
VARIED = ("q0", "qd0", "kp", "kd")
TIMES = {"duration": 1.0, "dt": 1e-3}  # as in `simulate`
SPREADS = ("normal", "uniform")


@dataclass(frozen=True)
class Rollouts:
    """An experiment for `ensemble`: simulate(robot, q0, qd0, torque, **options) with random starts, gains and payloads.

    vary: distributions ("normal" or "uniform", size) of any of q0 and qd0 (added to the initial state) and of kp and kd
    (factors of the gains of the controller, or of the only part of a sum that has them). size: standard deviation, or
    half the width; one number or (nv,). payloads: masses (kg) with their centers of mass at the origin of `frame`;
    samples use them in turn. law: deprecated name of torque. Columns of a sample are its random values, the final q and
    qd, and the largest torque of each joint.
    """

    robot: Robot
    q0: ArrayLike
    qd0: ArrayLike | None = None
    torque: Torque = None
    options: SimulateOptions = field(default_factory=SimulateOptions)
    vary: Mapping[str, tuple[str, ArrayLike]] = field(default_factory=dict)
    payloads: tuple[float, ...] = ()
    frame: str | None = None
    law: InitVar[Torque] = None

    def __post_init__(self, law: Torque) -> None:
        if law is not None:
            warn_user("Rollouts: law= is deprecated, use torque=.", DeprecationWarning)
            object.__setattr__(self, "torque", law)
        for name, value in self.vary.items():
            one_of("vary: a key", name, VARIED)
            if not isinstance(value, (tuple, list)) or len(value) != 2 or value[0] not in SPREADS:
                raise ArgumentError(f"vary: {name} is {shown(value)}, expected ('normal' or 'uniform', size).")
            size = _from_zero(f"vary: {name}", value[1])
            if size is None or size.shape not in ((), (self.robot.nv,)):
                raise ArgumentError(
                    f"vary: {name} has size {shown(value[1])}, expected numbers of at least 0: one, or {self.robot.nv}."
                )
            if name in ("kp", "kd"):
                _check_gain(self.torque, name)
        masses = _from_zero("payloads", self.payloads)
        if masses is None or masses.ndim != 1:
            raise ArgumentError(f"payloads is {shown(self.payloads)}, expected masses (kg) of at least 0.")
        object.__setattr__(self, "payloads", tuple(masses.tolist()))
        if masses.any():
            self._robot(int(masses.argmax()))  # raises ArgumentError for an unknown frame
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
        """Return the number of rollouts simulated at once, whose records fit into IN_MEMORY."""
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
        torque, count = self.torque, len(which)
        q0 = np.broadcast_to(np.asarray(self.q0, float), (count, robot.nq))
        qd0 = np.broadcast_to(0.0 if self.qd0 is None else np.asarray(self.qd0, float), (count, robot.nv))
        if "q0" in drawn:
            q0 = robot.integrate(q0, drawn["q0"][which], 1.0)
        if "qd0" in drawn:
            qd0 = qd0 + drawn["qd0"][which]
        for name in ("kp", "kd"):
            if torque is not None and name in drawn:
                inner = torque.controller if isinstance(torque, SampledController) else torque
                scaled = _scaled(cast(Controller, inner), name, drawn[name][which])
                torque = replace(torque, controller=scaled) if isinstance(torque, SampledController) else scaled
        integrator = as_integrator(self.options.get("integrator", "rk4"))
        integrator = replace(integrator, limits="ignore", progress=False)
        options: SimulateOptions = {**self.options, "integrator": integrator}
        run = simulate(robot, q0, qd0, torque, **options)
        return {"q": run.q[-1], "qd": run.qd[-1], "tau_peak": np.abs(run.tau).max(axis=0)}

    def _robot(self, kind: int) -> Robot:
        if not self.payloads or self.payloads[kind] == 0.0:
            return self.robot
        try:
            frame = self.robot.ee if self.frame is None else self.frame
        except ArgumentError as error:
            raise ArgumentError(f"payloads have no frame, and {error}") from None
        return self.robot.with_payload(frame, self.payloads[kind], (0.0, 0.0, 0.0))


def _deprecated_law(self: Rollouts) -> Torque:
    warn_user("Rollouts.law is deprecated, use Rollouts.torque.", DeprecationWarning)
    return self.torque


Rollouts.law = property(_deprecated_law)  # type: ignore[assignment]


def one_start(robot: Robot, q0: ArrayLike, qd0: ArrayLike | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Return q0 (nq,) and qd0 (nv,), checked: one initial state, not a batch."""
    state = real_array("q0", q0, robot.nq), None if qd0 is None else real_array("qd0", qd0, robot.nv)
    for name, array in zip(("q0", "qd0"), state, strict=True):
        if array is not None and array.ndim > 1:
            raise ArgumentError(f"{name} has shape {array.shape}, expected {array.shape[-1:]}, one initial state.")
    return state


def _from_zero(name: str, value: ArrayLike) -> np.ndarray | None:
    """Return finite numbers of at least 0, or None."""
    refuse_foreign(name, value)
    array = as_array(value)
    real = array.dtype.kind in "fiu" and bool(np.isfinite(array).all())
    return array if real and (array >= 0).all() else None


def _parts(controller: Torque) -> list[Controller]:
    """Return the controllers that a sum, a saturated or a sampled controller contains."""
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
            f"vary: {name} is a gain of {len(parts)} controllers ({names}), expected one that has it: omit {name}."
        )


def _scaled(controller: Controller, name: str, factors: np.ndarray) -> Controller:
    """Return a copy of the controller with this gain multiplied."""
    controller = copy.copy(controller)
    if isinstance(controller, Sum):
        controller.parts = tuple(_scaled(part, name, factors) for part in controller.parts)
    elif isinstance(controller, Saturated):
        controller.controller = _scaled(controller.controller, name, factors)
    elif hasattr(controller, name):
        setattr(controller, name, getattr(controller, name) * factors)
    return controller
