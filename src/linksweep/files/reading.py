"""Trajectories and logs from files: tables, arrays, ROS bags, and motions in TOML.

`read_log` returns what was recorded. `open_trajectory` requires finite numbers and increasing times. It reads CSV files
in blocks, so that memory does not grow with their length.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from linksweep.errors import ArgumentError, BackendError, LinksweepError, LogWarning, warn_user
from linksweep.files.bags import JointStates, is_bag, read_bag
from linksweep.files.columns import (
    BLOCK_OF,
    BLOCKS,
    block_columns,
    clock,
    find_columns,
    joint_columns,
    meaning,
    one_line,
    resolve,
    time_order,
)
from linksweep.files.csv_files import arrow_module, read_all, read_csv, read_header, unreadable
from linksweep.model.model import Model
from linksweep.support.checks import check_memory, one_of
from linksweep.support.checks import names as checked_names
from linksweep.support.messages import listing, shown

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot

Arrays = dict[str, Any]  # arrays and lists of names in a file, by key
Message = Mapping[str, object]  # name, position, velocity, effort
LogSource = str | os.PathLike[str] | Mapping[str, object] | Sequence[Message]
ROWS = 8192  # of a block of computed samples
STAMPS = ("header", "received")
TEXT = ("", ".csv", ".txt")
MESSAGE_FIELDS = {"position", "velocity", "effort"}
NAME_FIELDS = ("name", "names", "joint_name", "joint_names", "joints")
MAX_DEPTH = 8  # of structures in a .mat file


@dataclass(frozen=True, eq=False)
class JointLog:
    """Logged signals of a robot's joints in SI units, in the order of `joint_names`.

    t: times (rows,), increasing. q: positions (rows, nq). qd, qdd, tau: velocities, accelerations and torques (rows,
    nv). A signal that the log does not contain is None.
    """

    t: np.ndarray
    q: np.ndarray | None = None
    qd: np.ndarray | None = None
    qdd: np.ndarray | None = None
    tau: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        signals = ", ".join(block for block in BLOCKS[1:] if getattr(self, block) is not None)
        seconds = f"{self.t[-1] - self.t[0]:.4g} s" if len(self.t) else "empty"
        return f"<JointLog: {len(self.t)} rows, {seconds}, {signals}>"


def read_log(
    source: LogSource, robot: Robot, *, topic: str | Sequence[str] | None = None, stamps: str = "header"
) -> JointLog:
    """Read a log of joint positions, velocities, accelerations and torques.

    Parameters
    ----------
    source : path, mapping or sequence
        A file: .csv, .parquet, .npz, .h5 or .hdf5 (needs h5py), .mat, a ROS 1 bag (.bag), or a rosbag2 folder, .mcap or
        .db3 file (these need rosbags, extra `ros`). Or {name: array}, with names as in a file. Or messages in the form
        of sensor_msgs/JointState, a dictionary or several of them.
    robot : Robot
        Joints are found by name, in any order. Other joints are ignored.
    topic : name or names, optional
        JointState topics of a bag. By default the only one that has all joints of the robot. If several topics have a
        part of the joints each, they are interpolated linearly at the times of the first.
    stamps : {"header", "received"}
        Times of messages: the stamps of their headers, or the times at which they were recorded.

    Returns
    -------
    JointLog
        Times count from the first row if the log has stamps of a clock. Rows are sorted by time, with a `LogWarning`.

    Raises
    ------
    ArgumentError
        If the file is damaged, or does not contain the positions of all joints.

    Examples
    --------
    >>> log = ls.read_log("run.mcap", robot, topic="/joint_states")
    >>> fit = ls.identify(robot, log)
    """
    return load_log(source, robot.model, ("q",), topic, stamps)


def load_log(
    source: LogSource, model: Model, required: Sequence[str] = ("q",), topic: str | Sequence[str] | None = None,
    stamps: str = "header",
) -> JointLog:  # fmt: skip
    """Read a log as `read_log` does; required: the signals that it must contain."""
    topics = [] if topic is None else checked_names("topic", topic)
    one_of("stamps", stamps, STAMPS)
    where: object = "the log"
    if isinstance(source, (str, os.PathLike)):
        where = path = Path(source)
        if topics and not is_bag(path):
            raise ArgumentError(f"{path} is not a ROS bag and has no topics: leave out topic.")
        table = _opened_table(path, model, topics, stamps)
    elif isinstance(source, Mapping) and not _is_message(source):
        table = _array_table(where, dict(source), model)
    else:
        messages = [source] if isinstance(source, Mapping) else source
        table = _array_table(where, _message_arrays(messages, _joint_names(model)), model)
    return _log(where, table, model, required)


# ---- Tables: names of columns, and their values

Groups = Sequence[Sequence[int]]


@dataclass(frozen=True)
class _Table:
    """Names of columns, and a function that returns an array (rows, columns) for each group of column indices."""

    header: Sequence[str]
    read: Callable[[Groups], list[np.ndarray]]


def _log(where: object, table: _Table, model: Model, required: Sequence[str]) -> JointLog:
    columns = block_columns(model, BLOCKS[1:])
    available, _ = resolve(where, table.header, columns)
    blocks = []
    for block in BLOCKS[1:]:
        missing = [name for name in columns[block] if name not in available]
        if block in required or not missing:
            blocks.append(block)
        elif len(missing) < len(columns[block]):
            warn_user(f"incomplete: {where} has no {listing(missing, 4)}; {block} is not used.", LogWarning)
    columns = block_columns(model, blocks)
    requested = find_columns(where, table.header, model.name, columns, other_joints=True)
    ends = np.cumsum([len(names) for names in columns.values()]).tolist()
    groups = [requested[end - len(names) : end] for end, names in zip(ends, columns.values(), strict=True)]
    arrays = table.read([[column.index for column in group] for group in groups])
    times = _seconds(where, arrays[0][:, 0], groups[0][0].factor)
    order = time_order(where, times)
    signals = {}
    for block, group, values in zip(blocks, groups[1:], arrays[1:], strict=True):
        factors = np.array([column.factor for column in group], dtype=float)
        values = values.astype(float, copy=False)
        values = values if (factors == 1.0).all() else values * factors
        signals[block] = values if order is None else values[order]
    return JointLog(times if order is None else times[order], **signals)


def _seconds(where: object, times: np.ndarray, factor: float | None) -> np.ndarray:
    if not len(times):
        raise ArgumentError(f"{where} has no rows, expected one for each sample.")
    if times.dtype.kind == "M":
        times, factor = times.astype("datetime64[ns]").astype(np.int64), 1e-9
    elif times.dtype.kind == "u":
        times = times.astype(np.int64)
    offset, factor = clock(times[0], factor)
    return (times - times.dtype.type(offset)).astype(float, copy=False) * factor


def _opened_table(path: Path, model: Model, topics: Sequence[str], stamps: str) -> _Table:
    suffix = path.suffix.lower()
    if is_bag(path):
        return _array_table(path, read_bag(path, _joint_names(model), topics, stamps == "received"), model)
    if suffix in TEXT:
        return _Table(read_header(path), lambda groups: _split(read_all(path, _flat(groups)), groups))
    if suffix == ".parquet":
        file = ParquetTable(path)
        return _Table(file.header, lambda groups: _split(file.read_all(_flat(groups)), groups))
    readers = {".npz": _npz, ".mat": _mat, ".h5": _hdf5, ".hdf5": _hdf5}
    if suffix not in readers:
        raise ArgumentError(
            f"The log {path} ends in {path.suffix!r}, expected .csv, .parquet, .npz, .h5, .mat, .bag, .mcap, .db3 or "
            f"the folder of a ROS bag."
        )
    return _array_table(path, _arrays(path, readers[suffix]), model)


def _flat(groups: Groups) -> list[int]:
    return [index for group in groups for index in group]


def _split(table: np.ndarray, groups: Groups) -> list[np.ndarray]:
    return np.split(table, np.cumsum([len(group) for group in groups])[:-1], axis=1)


def _joint_names(model: Model) -> list[str]:
    return [joint.name for joint in model.joints]


# ---- Arrays by name


def _array_table(where: object, arrays: Mapping[str, object], model: Model) -> _Table:
    """Return the columns of arrays: vectors (rows,), and matrices (rows, joints) such as `position`.

    The columns of a matrix are labelled by the array of joint names beside it; without one they are in the order of
    the robot's coordinates. MATLAB's row vectors and matrices (joints, rows) are transposed.
    """
    numbers = {str(key): _numeric(value) for key, value in arrays.items()}
    rows = next((array.size for key, array in numbers.items() if array is not None and _block(key) == "t"), None)
    if rows is None:
        raise ArgumentError(f"{where} has no array of times such as t, only {listing(numbers) or 'no arrays'}.")
    header: list[str] = []
    sources: list[tuple[np.ndarray, int]] = []
    for key, array in numbers.items():
        if array is None or rows not in array.shape or array.size == 0:
            continue
        matrix = array.reshape(rows, -1) if array.shape[0] == rows else np.moveaxis(array, -1, 0).reshape(rows, -1)
        labels = _labels(where, key, matrix.shape[1], arrays, model)
        header += labels
        sources += [(matrix, index) for index in range(len(labels))]

    def read(groups: Groups) -> list[np.ndarray]:
        return [_columns([sources[index] for index in group]) for group in groups]

    return _Table(header, read)


def _columns(sources: Sequence[tuple[np.ndarray, int]]) -> np.ndarray:
    matrix = sources[0][0]
    if matrix.shape[1] == len(sources) and all(s[0] is matrix and s[1] == k for k, s in enumerate(sources)):
        return matrix
    return np.stack([source[:, index] for source, index in sources], axis=1)


def _numeric(value: object) -> np.ndarray | None:
    """Return an array of numbers or dates with one or two axes; None for anything else."""
    try:
        array = np.asarray(value)
    except Exception:  # rows of different lengths
        return None
    return array if array.dtype.kind in "iufM" and array.ndim in (1, 2) else None


def _block(key: str) -> str:
    """Return the signal that an array's name means, without the path of its group."""
    word = _last_part(key)
    if meaning(word, {"t": {"t": "t"}}) is not None:
        return "t"
    return BLOCK_OF.get(word.lower() if len(word) > 1 else word, "")


def _last_part(key: str) -> str:
    """Return the name of an array without its groups; units such as [rad/s] stay."""
    name = key.partition("[")[0].partition("(")[0]
    return key[max(name.rfind("/"), name.rfind(".")) + 1 :]


def _labels(where: object, key: str, width: int, arrays: Mapping[str, object], model: Model) -> list[str]:
    """Return the names of an array's columns; none if it is not a signal of the joints."""
    block = _block(key)
    columns = joint_columns(model, block) if block not in ("", "t") else ()
    if width == 1 != len(columns):
        return [_last_part(key) if block == "t" else key]
    if not columns:
        return []
    parent = key.removesuffix(_last_part(key))
    for field in (*(parent + name for name in NAME_FIELDS), *NAME_FIELDS):
        labels = _texts(arrays.get(field))
        if len(labels) == width:
            return [f"{block}.{label}" for label in labels]
    labels = [name for name in _texts(arrays.get("columns")) if name.startswith(f"{block}.")]
    columns = labels if len(labels) == width else columns
    if width != len(columns):
        raise ArgumentError(
            f"{where}: {key} has {width} columns, expected {len(columns)}, one for each of {listing(columns, 6)}, or "
            f"an array of their names beside it, such as joint_names."
        )
    return list(columns)


def _texts(value: object) -> list[str]:
    """Return the entries of a list of names; of a character matrix of MATLAB, its rows without spaces at the end."""
    if value is None:
        return []
    entries = [
        entry[0] if isinstance(entry, np.ndarray) and entry.size == 1 else entry
        for entry in np.ravel(np.asarray(value))
    ]
    return [str(entry).rstrip() for entry in entries if isinstance(entry, (str, bytes))]


def _arrays(path: Path, read: Callable[[Path], Arrays]) -> Arrays:
    """Read a file of arrays. Whatever the libraries raise for damaged files becomes an `ArgumentError`."""
    try:
        with path.open("rb"):
            pass
        return read(path)
    except LinksweepError:
        raise
    except OSError as reason:
        if reason.strerror:
            raise unreadable(path, reason) from reason
        raise ArgumentError(f"{path} is damaged or not a {path.suffix} file ({one_line(reason)}).") from reason
    except Exception as reason:  # also MemoryError, for sizes that the file does not have
        raise ArgumentError(f"{path} is damaged or not a {path.suffix} file ({one_line(reason)}).") from reason


def _npz(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as stored:
        sizes = {entry.filename.removesuffix(".npy"): entry.file_size for entry in stored.zip.infolist()}
        check_memory(f"the file {path}", (sum(sizes.values()),), 1, "split it")
        return {name: stored[name] for name in stored.files}


def _mat(path: Path) -> Arrays:
    from scipy.io import loadmat

    try:
        contents = loadmat(path, appendmat=False)
    except NotImplementedError:  # MATLAB 7.3 writes HDF5
        return _hdf5(path)
    arrays: Arrays = {}

    def flatten(prefix: str, value: object, depth: int) -> None:
        if isinstance(value, np.ndarray) and value.dtype.names and value.size == 1 and depth < MAX_DEPTH:
            for name in value.dtype.names:
                flatten(f"{prefix}{name}.", value.reshape(-1)[0][name], depth + 1)
        else:
            arrays[prefix.rstrip(".")] = value

    for name, value in contents.items():
        if not name.startswith("__"):
            flatten(f"{name}.", value, 0)
    return arrays


def _hdf5(path: Path) -> Arrays:
    try:
        import h5py
    except ImportError:
        raise BackendError(
            f"{path}: reading HDF5 needs h5py, which is not installed: run pip install 'linksweep[hdf5]'."
        ) from None
    arrays: Arrays = {}

    def add(name: str, item: object) -> None:
        if not isinstance(item, h5py.Dataset) or item.is_virtual or item.external or item.ndim > 2:
            return  # datasets in other files are not read
        if item.dtype.kind in "iuf":
            check_memory(f"{name} in {path}", item.shape, item.dtype.itemsize, "split it")
            arrays[name] = item[()]
        elif h5py.check_string_dtype(item.dtype) and item.ndim == 1:
            arrays[name] = item.asstr()[()]

    with h5py.File(path, "r") as file:
        file.visititems(add)
    return arrays


class ParquetTable:
    """A Parquet file: the names of its columns, and their values, in blocks or all at once."""

    def __init__(self, path: Path):
        parquet, self._arrow = arrow_module("pyarrow.parquet"), arrow_module()
        if parquet is None:
            raise BackendError(
                f"{path}: reading Parquet needs pyarrow, which is not installed: run pip install pyarrow."
            )
        self.path = path
        try:
            self._file = parquet.ParquetFile(path)
        except (OSError, self._arrow.ArrowException) as reason:
            raise ArgumentError(f"The file {path} cannot be read as Parquet ({one_line(reason)}).") from reason
        self.header: list[str] = self._file.schema_arrow.names
        self.rows: int = self._file.metadata.num_rows

    def check_types(self, indices: Sequence[int]) -> None:
        types = self._arrow.types
        for index in indices:
            kind = self._file.schema_arrow.types[index]
            dates = types.is_timestamp(kind) and BLOCK_OF.get(self.header[index].lower()) == "t"
            if not (types.is_floating(kind) or types.is_integer(kind) or dates):
                column = shown(self.header[index])
                raise ArgumentError(f"{self.path}: column {column} holds {shown(str(kind))}, expected numbers.")

    def blocks(self, indices: Sequence[int], size: int) -> Iterator[np.ndarray]:
        """Yield blocks (rows, columns); missing values are NaN."""
        names = [self.header[index] for index in indices]
        batches = self._file.iter_batches(batch_size=size, columns=names)
        while True:
            try:
                batch = next(batches, None)
            except (OSError, self._arrow.ArrowException) as reason:
                raise ArgumentError(f"The file {self.path} cannot be read as Parquet ({one_line(reason)}).") from reason
            if batch is None:
                return
            columns = [batch.column(name).to_numpy(zero_copy_only=False) for name in names]
            dates = [c.astype("datetime64[ns]").astype(np.int64) if c.dtype.kind == "M" else c for c in columns]
            yield np.stack(dates, axis=1)

    def read_all(self, indices: Sequence[int]) -> np.ndarray:
        self.check_types(indices)
        blocks = list(self.blocks(indices, 1 << 16))
        return np.concatenate(blocks) if blocks else np.empty((0, len(indices)))


# ---- Messages


def _is_message(source: Mapping[str, Any]) -> bool:
    """Whether a mapping is one JointState message, rather than arrays of several rows."""
    present = [field for field in MESSAGE_FIELDS if np.size(source.get(field, ()))]
    return "name" in source and all(np.ndim(source[field]) == 1 for field in present)


def _message_arrays(messages: Sequence[Message], joints: Sequence[str]) -> Arrays:
    states = JointStates("the log", joints)
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping) or "name" not in message:
            raise ArgumentError(
                f"message {number} of the log is {shown(message)}, expected a dictionary with name, position, velocity "
                f"and effort."
            )
        values = {field: np.asarray(message.get(field, ()), dtype=float)[None] for field in MESSAGE_FIELDS}
        stamp = np.array([_nanoseconds(message)])
        states.add("", checked_names("name", message["name"]), stamp, np.array([number]), values)
    return states.arrays()


def _nanoseconds(message: Mapping[str, Any]) -> int:
    """Return the stamp of a message: header.stamp with sec and nanosec, or stamp, t or time in seconds."""
    header = message.get("header", {})
    stamp = header.get("stamp", 0.0) if isinstance(header, Mapping) else 0.0
    stamp = next((message[field] for field in ("stamp", "t", "time") if field in message), stamp)
    if isinstance(stamp, Mapping):
        seconds, rest = (stamp.get(a, stamp.get(b, 0)) for a, b in (("sec", "secs"), ("nanosec", "nsecs")))
        return int(seconds) * 10**9 + int(rest)
    return round(float(stamp) * 1e9)


# ---- Trajectories


def open_trajectory(
    path: Path, model: Model, blocks: Sequence[str], spline: bool = False, topic: str | Sequence[str] | None = None
) -> Iterator[np.ndarray]:
    """Return blocks (rows, columns) of t and of `blocks`, such as ("q", "qd", "qdd"). The header is checked at once.

    spline: read q only, and compute qd and qdd with the quintic spline through all samples, which are held in memory.
    """
    suffix = path.suffix.lower()
    if suffix == ".toml":
        if spline:
            raise ArgumentError(f"{path} is a motion, which has its own derivatives: leave out --spline.")
        return _of_motion(path, model, blocks)
    if spline:
        return _splined(path, model, blocks, topic)
    if suffix in TEXT and not is_bag(path):
        if topic:
            raise ArgumentError(f"{path} is not a ROS bag and has no topics: leave out --topic.")
        return read_csv(path, model.name, block_columns(model, blocks))
    log = load_trajectory(path, model, blocks, topic)
    return _computed(log.t, lambda rows: {block: getattr(log, block)[rows] for block in blocks}, blocks)


def load_trajectory(
    path: Path, model: Model, required: Sequence[str] = ("q",), topic: str | Sequence[str] | None = None
) -> JointLog:
    """Read a log with finite numbers; rows with the time of the row before are left out, with a warning."""
    log = load_log(path, model, required, topic)
    columns = block_columns(model, BLOCKS[1:])
    signals = {block: getattr(log, block) for block in columns if getattr(log, block) is not None}
    for block, values in signals.items():
        finite = np.isfinite(values).reshape(len(log), -1)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            name = columns[block][column]
            raise ArgumentError(f"{path}: {name} in row {row} is NaN or infinite, expected a finite number.")
    repeated = np.concatenate([[False], np.diff(log.t) == 0.0])
    if not repeated.any():
        return log
    count, first = int(repeated.sum()), log.t[repeated][0]
    warn_user(
        f"repeats: {count} rows of {path} repeat a time and were left out, the first at {first:.6g} s.", LogWarning
    )
    return JointLog(**{block: values[~repeated] for block, values in signals.items()})


def _of_motion(path: Path, model: Model, blocks: Sequence[str]) -> Iterator[np.ndarray]:
    from linksweep.files.motion_files import read_samples

    if "tau" in blocks:
        raise ArgumentError(f"{path} is a motion, which has no torques, expected a file with t, q, qd and tau.")
    motion, times = read_samples(path, model)
    return _computed(times, lambda piece: motion(times[piece])._asdict(), blocks)


def _splined(
    path: Path, model: Model, blocks: Sequence[str], topic: str | Sequence[str] | None
) -> Iterator[np.ndarray]:
    from linksweep.motion import QuinticSpline

    if len(joint_columns(model, "q")) != len(joint_columns(model, "qd")):
        raise ArgumentError(
            f"{model.name} has joints with quaternions, which a spline cannot interpolate, expected qd and qdd in the "
            "file: leave out --spline."
        )
    read = [block for block in blocks if block not in ("qd", "qdd")]
    table = np.concatenate(list(open_trajectory(path, model, read, topic=topic)))
    ends = np.cumsum([len(names) for names in block_columns(model, read).values()])
    parts = dict(zip(("t", *read), np.split(table, ends[:-1], axis=1), strict=True))
    t = parts["t"][:, 0]
    if len(t) < 6:
        raise ArgumentError(f"{path} has {len(t)} rows, expected 6 or more for a quintic spline: give qd and qdd.")
    spline = QuinticSpline(parts["q"], t, ends="not-a-knot")
    read_parts = {block: parts[block] for block in read}
    return _computed(
        t, lambda rows: spline(t[rows])._asdict() | {block: part[rows] for block, part in read_parts.items()}, blocks
    )


def _computed(
    times: np.ndarray, signals: Callable[[slice], Mapping[str, np.ndarray]], blocks: Sequence[str]
) -> Iterator[np.ndarray]:
    """Yield blocks of rows: times, and the signals that are computed for a slice of them."""
    for start in range(0, len(times), ROWS):
        rows = slice(start, start + ROWS)
        values = signals(rows)
        yield np.column_stack([times[rows], *(values[block] for block in blocks)])
