"""`stream`: evaluate a compiled function over files that are larger than memory."""

from __future__ import annotations

import contextlib
import errno
import math
import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.functions.compiled import CompiledFunction
from linksweep.support.checks import as_array, check_memory, refuse_foreign, whole_number
from linksweep.support.display import ProgressBar
from linksweep.support.files import write_atomically
from linksweep.support.messages import shown

from ..robot.robot import Robot
from .columns import find_columns, in_si_units, joint_columns
from .csv_files import read_csv, read_header
from .reading import ParquetTable
from .writing import check_place, write_table

if TYPE_CHECKING:
    from linksweep.functions.arrays import Argument

File = str | os.PathLike[str]
Source = File | Mapping[str, File | ArrayLike]
Sink = File | Mapping[str, File]
CHUNK = 1 << 22  # bytes of inputs and results at a time: they stay in the caches
TABLES = (".csv", ".parquet")
_HEADER = 256  # bytes of a .npy file before its rows
_WORKERS = 2  # threads that each hold a block


def stream(
    function: CompiledFunction, source: Source, sink: Sink, *, robot: Robot | None = None, rows: int | None = None,
    progress: bool = True,
) -> int:  # fmt: skip
    """Run a compiled function over every row of `source`, write its results to `sink` and return the number of rows.

    source: a .csv or .parquet file, or {argument: .npy file or array (rows, ...)}, one for each input of the function.
    Arrays may be views and memory maps of any mode; they are only read. sink: a .csv or .parquet file, a .npy file for
    a single result, or {result: .npy file}. A sink is complete, or as it was before if anything fails. robot: name
    columns by its joints, such as q.shoulder, as the command line does; without it, q.0, q.1, ... rows: block size,
    None for one that suits the caches. progress: show a bar on long runs if stderr is a terminal. A row with NaN gives
    NaN, and so does a missing value (null) in Parquet.
    """
    if not isinstance(function, CompiledFunction):
        raise ArgumentError(
            f"stream got {shown(function)}, expected a compiled function such as robot.compile('inverse_dynamics')."
        )
    inputs, outputs = function.signature.inputs, function.signature.outputs
    numbers = sum(math.prod(a.shape) for a in (*inputs, *outputs))
    size = max(CHUNK // (8 * max(numbers, 1)), 256) if rows is None else whole_number("rows", rows, at_least=1)
    read = _reader(source, inputs, robot)
    if read.total is not None:
        size = max(min(size, read.total), 1)
        check_memory("a block of rows", (_WORKERS, size, numbers), advice="pass a smaller rows, or None")
    write = _writer(sink, outputs, robot)
    with ProgressBar(f"streaming {function.name}", progress) as watch:
        return write(read, function, size, watch)


@dataclass(frozen=True)
class _Source:
    """Rows to read. total: number of rows, None if unknown. files: the files that are read.

    blocks(size): arguments of `size` rows at a time, and the fraction that has been read.
    """

    total: int | None
    blocks: Callable[[int], Iterator[tuple[list[np.ndarray], float]]]
    dtype: np.dtype
    files: tuple[Path, ...]


def _reader(source: Source, inputs: Sequence[Argument], robot: Robot | None) -> _Source:
    if isinstance(source, Mapping):
        return _arrays(source, inputs)
    path = _path("source", source)
    if path.suffix.lower() not in TABLES:
        advice = " pass {" + ", ".join(f"{a.name!r}: ..." for a in inputs) + "} for .npy files."
        raise ArgumentError(f"The source {path} ends in {path.suffix!r}, expected .csv or .parquet:{advice}")
    columns = {a.name: _columns(a, robot) for a in inputs}
    reader = _csv if path.suffix.lower() == ".csv" else _parquet
    return reader(path, columns, inputs, "the function" if robot is None else robot.name)


def _arrays(source: Mapping[str, File | ArrayLike], inputs: Sequence[Argument]) -> _Source:
    names = [a.name for a in inputs]
    if set(source) != set(names):
        raise ArgumentError(f"The source has {', '.join(map(str, source)) or 'nothing'}, expected {', '.join(names)}.")
    arrays: list[np.ndarray] = []
    maps: list[np.ndarray] = []  # opened here: pages that may be dropped after reading
    files: list[Path] = []
    for argument in inputs:
        value = source[argument.name]
        if isinstance(value, (str, os.PathLike)):
            files.append(_path("source", value))
            array = _opened(files[-1])
            maps.append(array)
        else:
            refuse_foreign(f"{argument.name} of the source", value)
            array = as_array(value)
            mapped = getattr(value, "filename", None)  # of a memory map and its views
            if mapped is not None:
                files.append(Path(mapped))
        if array.ndim != 1 + len(argument.shape) or array.shape[1:] != argument.shape or array.dtype.kind not in "fiu":
            raise ArgumentError(
                f"{argument.name} of the source is a {array.dtype} array of shape {array.shape}, expected numbers of "
                f"shape {('rows', *argument.shape)}.".replace("'", "")
            )
        arrays.append(array)
    lengths = {len(array) for array in arrays}
    if len(lengths) != 1:
        each = ", ".join(f"{name} {len(array)}" for name, array in zip(names, arrays, strict=True))
        raise ArgumentError(f"The source's arrays have different numbers of rows ({each}), expected one number.")
    total = lengths.pop()

    def blocks(size: int) -> Iterator[tuple[list[np.ndarray], float]]:
        for start in range(0, total, size):
            end = min(start + size, total)
            yield [array[start:end] for array in arrays], end / total
            for array in maps:  # the block before: another thread may be at this one
                _forget(array, max(start - size, 0), start)

    return _Source(total, blocks, np.result_type(*(array.dtype for array in arrays)), tuple(files))


def _opened(path: Path) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as reason:
        raise ArgumentError(
            f"The file {path} cannot be read ({reason.strerror or reason}), expected a .npy file."
        ) from reason
    except (ValueError, EOFError) as reason:
        raise ArgumentError(f"The file {path} is not a .npy file of numbers ({reason}).") from reason


def _forget(array: np.ndarray, start: int, end: int) -> None:
    """Let the system reclaim rows of a file that `_opened` mapped read-only.

    Never call this for a caller's array: on a private map (mmap_mode="c") the advice discards the caller's edits, and
    a view has another offset than its map.
    """
    mapped = getattr(array, "_mmap", None)
    if mapped is None or not hasattr(mapped, "madvise") or not array.flags.c_contiguous:
        return
    row = array.strides[0]
    before = array.offset % mmap.ALLOCATIONGRANULARITY  # type: ignore[attr-defined]  # the map begins with a whole page
    low = (before + start * row) // mmap.PAGESIZE * mmap.PAGESIZE
    high = (before + end * row) // mmap.PAGESIZE * mmap.PAGESIZE  # the first page of the next block stays
    if high > low:
        with contextlib.suppress(OSError, ValueError):
            mapped.madvise(mmap.MADV_DONTNEED, low, high - low)


def _csv(path: Path, columns: dict[str, tuple[str, ...]], inputs: Sequence[Argument], robot: str) -> _Source:
    read_header(path)  # raises for a path that cannot be read
    whole = max(path.stat().st_size, 1)
    rows = read_csv(path, robot, columns, checked=False)

    def blocks(size: int) -> Iterator[tuple[list[np.ndarray], float]]:
        done = 0
        for values in rows:
            done += 8 * values.size  # a number takes about twice as many bytes in text
            for start in range(0, len(values), size):
                yield _split(values[start : start + size], inputs), min(2.0 * done / whole, 1.0)

    return _Source(None, blocks, np.dtype(float), (path,))


def _parquet(path: Path, columns: dict[str, tuple[str, ...]], inputs: Sequence[Argument], robot: str) -> _Source:
    file = ParquetTable(path)
    requested = find_columns(path, file.header, robot, columns, other_joints=True)
    indices = [column.index for column in requested]
    file.check_types(indices)

    def blocks(size: int) -> Iterator[tuple[list[np.ndarray], float]]:
        done = 0
        for values in in_si_units(file.blocks(indices, size), requested, timed=False):
            done += len(values)
            yield _split(values.astype(float, copy=False), inputs), done / file.rows

    return _Source(file.rows, blocks, np.dtype(float), (path,))


def _split(values: np.ndarray, inputs: Sequence[Argument]) -> list[np.ndarray]:
    sizes = [math.prod(a.shape) for a in inputs]
    parts = np.split(values, np.cumsum(sizes)[:-1], axis=1)
    return [part.reshape(len(values), *a.shape) for part, a in zip(parts, inputs, strict=True)]


def _columns(argument: Argument, robot: Robot | None) -> tuple[str, ...]:
    """Return the columns of an argument: by joint if the robot has one for each, otherwise by number."""
    size = math.prod(argument.shape)
    if robot is not None and len(argument.shape) == 1:
        names = joint_columns(robot.model, argument.name)
        if len(names) == size:
            return names
    return (argument.name,) if argument.shape == () else tuple(f"{argument.name}.{k}" for k in range(size))


Writer = Callable[[_Source, "CompiledFunction", int, Callable[[float], None]], int]


def _writer(sink: Sink, outputs: Sequence[Argument], robot: Robot | None) -> Writer:
    if isinstance(sink, Mapping):
        names = [a.name for a in outputs]
        if set(sink) != set(names):
            raise ArgumentError(f"The sink has {', '.join(map(str, sink)) or 'nothing'}, expected {', '.join(names)}.")
        return _npy_writer([_path("sink", sink[name]) for name in names], outputs)
    path = _path("sink", sink)
    if path.suffix.lower() == ".npy" and len(outputs) == 1:
        return _npy_writer([path], outputs)
    if path.suffix.lower() not in TABLES:
        several = " + ".join(a.name for a in outputs)
        raise ArgumentError(
            f"The sink {path} ends in {path.suffix!r}, expected .csv, .parquet, .npy for a single result, or "
            f"{{result: .npy file}} ({several})."
        )
    check_place(path)
    columns = {a.name: _columns(a, robot) for a in outputs}

    def write(source: _Source, function: CompiledFunction, size: int, watch: Callable[[float], None]) -> int:
        _check_apart([path], source.files)
        done = 0

        def computed() -> Iterator[np.ndarray]:
            nonlocal done
            for arguments, share in source.blocks(size):
                result = function(*arguments)
                parts = result if len(outputs) > 1 else (result,)
                done += len(arguments[0])
                yield np.concatenate([part.reshape(len(arguments[0]), -1) for part in parts], axis=1)
                watch(share)

        write_table(path, columns, computed(), {"function": function.name})
        return done

    return write


def _npy_writer(paths: list[Path], outputs: Sequence[Argument]) -> Writer:
    for path in paths:
        if path.suffix.lower() != ".npy":
            raise ArgumentError(f"The sink {path} ends in {path.suffix!r}, expected .npy for a single array.")
        check_place(path)

    def write(source: _Source, function: CompiledFunction, size: int, watch: Callable[[float], None]) -> int:
        _check_apart(paths, source.files)
        counts: list[int] = []
        single = source.dtype.kind == "f" and source.dtype.itemsize <= 4  # as a call of the function chooses
        dtype = np.dtype(function.dtype or (np.float32 if single else np.float64))

        def fill(temporary: list[Path]) -> None:
            with contextlib.ExitStack() as stack:
                files = [stack.enter_context(to.open("r+b", buffering=0)) for to in temporary]
                for file, output in zip(files, outputs, strict=True):
                    _reserve(file, (source.total or 0) * math.prod(output.shape) * dtype.itemsize)
                    _header(file, source.total or 0, output.shape, dtype)
                counts.append(_pump(source, function, size, watch, files, outputs, dtype))
                if source.total is None:
                    for file, output in zip(files, outputs, strict=True):
                        file.seek(0)
                        _header(file, counts[0], output.shape, dtype)

        _all_or_none(paths, [], fill)
        return counts[0]

    return write


def _all_or_none(paths: list[Path], temporary: list[Path], fill: Callable[[list[Path]], None]) -> None:
    """Fill temporary files, and move all of them to `paths` when they are complete."""
    if not paths:
        fill(temporary)
    else:
        write_atomically(paths[0], lambda to: _all_or_none(paths[1:], [*temporary, to], fill))


def _pump(
    source: _Source, function: CompiledFunction, size: int, watch: Callable[[float], None], files: list[FileIO],
    outputs: Sequence[Argument], dtype: np.dtype,
) -> int:  # fmt: skip
    """Compute blocks in two threads, so that one computes while the other reads or writes; return the row count."""
    blocks, taking, writing, stopped = source.blocks(size), Lock(), Lock(), Event()
    rows = 0

    def take() -> tuple[int, list[np.ndarray], float] | None:
        nonlocal rows
        with taking:
            block = None if stopped.is_set() else next(blocks, None)
            if block is None:
                return None
            start, rows = rows, rows + len(block[0][0])
            return start, *block

    def work(watch: Callable[[float], None]) -> None:
        buffers = [np.empty((0, *output.shape), dtype) for output in outputs]
        try:
            while (taken := take()) is not None:
                start, arguments, share = taken
                if any(array.dtype != dtype for array in arguments):
                    with np.errstate(all="ignore"):  # values too large for float32 become infinite, as in a call
                        arguments = [np.asarray(array, dtype) for array in arguments]
                count = len(arguments[0])
                if len(buffers[0]) < count:
                    buffers = [np.empty((count, *output.shape), dtype) for output in outputs]
                results = [buffer[:count] for buffer in buffers]
                function(*arguments, out=results[0] if len(results) == 1 else tuple(results))
                with writing:
                    for file, array in zip(files, results, strict=True):
                        _put(file, array, start)
                watch(share)
        except BaseException:
            stopped.set()
            raise

    with ThreadPoolExecutor(1, "linksweep-stream") as other:
        helper = other.submit(work, lambda share: None)
        work(watch)
        helper.result()
    return rows


def _put(file: FileIO, array: np.ndarray, start: int) -> None:
    """Write rows to a .npy file, beginning with row `start`."""
    left = array.reshape(-1).view(np.uint8).data
    file.seek(_HEADER + start * array.itemsize * math.prod(array.shape[1:]))
    while len(left):
        left = left[file.write(left) :]


def _reserve(file: FileIO, size: int) -> None:
    """Allocate disk space: a full disk raises at once, and writing to allocated blocks takes a fifth of the time."""
    if size and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), 0, size + _HEADER)
        except OSError as reason:
            if reason.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
                raise


def _header(file: FileIO, rows: int, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Write a .npy header whose length does not depend on the number of rows, which may not be known yet."""
    text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({', '.join(map(str, (rows, *shape)))},), }}"
    length = _HEADER - 10
    file.write(b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + text.ljust(length - 1).encode("ascii") + b"\n")


def _check_apart(sinks: Sequence[Path], sources: Sequence[Path]) -> None:
    for path in sinks:
        if path.exists() and any(other.exists() and path.samefile(other) for other in sources):
            raise ArgumentError(f"The sink {path} is a source as well, expected another file.")
    if len({path.absolute() for path in sinks}) != len(sinks):
        raise ArgumentError("Two results have the same sink, expected a file for each.")


def _path(name: str, value: object) -> Path:
    if not isinstance(value, (str, os.PathLike)):
        raise ArgumentError(f"The {name} is {shown(value)}, expected a file's path, or a dictionary of .npy files.")
    return Path(value)
