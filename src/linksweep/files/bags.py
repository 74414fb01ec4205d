"""Joint states from ROS bags: ROS 1, and rosbag2 with sqlite3 or MCAP storage, through the package rosbags.

Messages are decoded in batches: those that differ from one another in stamps and values only become rows of one array.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from linksweep.errors import ArgumentError, BackendError, LinksweepError, LogWarning, warn_user
from linksweep.files.columns import one_line, time_order
from linksweep.support.messages import listing, nearest, shown

JOINT_STATE = "sensor_msgs/msg/JointState"
SIGNALS = ("position", "velocity", "effort")
BATCH = 4096  # messages that are decoded at once
MAX_LAYOUTS = 16  # of a batch that are compared with all its messages; further messages are decoded one by one
PEEKED = 50  # messages of each topic that are searched for joint names
MAX_NAMES = 10_000  # of a message
Reader = Any  # of rosbags, which is imported for bags only
Connections = dict[str, list[Any]]  # of each topic
Message = tuple[int, bytes]  # time of recording (ns), and the serialized message


def is_bag(path: Path) -> bool:
    return path.suffix.lower() in (".bag", ".mcap", ".db3") or (path / "metadata.yaml").is_file()


def read_bag(path: Path, joints: Sequence[str], topics: Sequence[str], received: bool) -> dict[str, Any]:
    """Return t, name, position, velocity and effort from the JointState messages of a bag, as arrays.

    joints: names of the joints to read. topics: empty for the topic that has all of them. received: use the times at
    which messages were recorded instead of the stamps of their headers.
    """
    ros1 = path.suffix.lower() == ".bag"
    with _opened(path, ros1) as bag:
        connections = _connections(path, bag, topics)
        if not topics:
            topics = _default_topics(path, bag, connections, joints, ros1)
        states = JointStates(path, joints, received)
        batches: dict[str, list[Message]] = {topic: [] for topic in topics}
        selected = [connection for topic in topics for connection in connections[topic]]
        for connection, time, data in bag.messages(connections=selected):
            batch = batches[connection.topic]
            batch.append((time, data))
            if len(batch) == BATCH:
                states.add_messages(connection.topic, batch, ros1)
                batch.clear()
        for topic, batch in batches.items():
            states.add_messages(topic, batch, ros1)
    return states.arrays()


@contextmanager
def _opened(path: Path, ros1: bool) -> Iterator[Reader]:
    """Open a bag. Whatever rosbags raises for damaged files becomes an `ArgumentError`."""
    try:
        from rosbags import rosbag1, rosbag2
    except ImportError:
        raise BackendError(
            f"{path}: reading ROS bags needs rosbags, which is not installed: run pip install 'linksweep[ros]'."
        ) from None
    try:
        with (rosbag1.Reader if ros1 else rosbag2.Reader)(path) as bag:
            yield bag
    except LinksweepError as reason:
        raise (reason if str(path) in str(reason) else ArgumentError(f"{path}: {reason}")) from None
    except Exception as reason:
        raise ArgumentError(f"{path} cannot be read as a ROS bag ({one_line(reason)}).") from reason


def _connections(path: Path, bag: Reader, topics: Sequence[str]) -> Connections:
    """Return the connections of all JointState topics; check that the requested topics are among them."""
    types = {connection.topic: connection.msgtype for connection in bag.connections}
    connections: Connections = defaultdict(list)
    for connection in bag.connections:
        if connection.msgtype == JOINT_STATE:
            connections[connection.topic].append(connection)
    for topic in topics:
        if topic not in types:
            raise ArgumentError(
                f"{path} has no topic {shown(topic)}{nearest(topic, types)}, expected one of {listing(connections)}."
            )
        if topic not in connections:
            raise ArgumentError(f"{path}: topic {topic} has messages of type {types[topic]}, expected {JOINT_STATE}.")
    if not connections:
        raise ArgumentError(f"{path} has no topic of type {JOINT_STATE}, only {listing(types) or 'no topics'}.")
    return connections


def _default_topics(
    path: Path, bag: Reader, connections: Connections, joints: Sequence[str], ros1: bool
) -> Sequence[str]:
    """Return the only topic with all joints, or all topics with some of them if none has all."""
    if len(connections) == 1:
        return list(connections)
    names: dict[str, set[str]] = {}
    for topic, ones in connections.items():
        messages = islice(bag.messages(connections=ones), PEEKED)
        names[topic] = {name for *_, data in messages for name in _layout(data, ros1).names}
    complete = [topic for topic in names if names[topic].issuperset(joints)]
    if len(complete) > 1:
        raise ArgumentError(
            f"{path} has {len(complete)} topics with these joints, {listing(complete)}: choose one with topic= or "
            f"--topic."
        )
    partial = [topic for topic in names if not names[topic].isdisjoint(joints)]
    return complete or partial or list(connections)


# ---- Serialized messages


@dataclass(frozen=True)
class _Layout:
    """Offsets in a serialized JointState message. `values`: offset and count of each of SIGNALS."""

    length: int
    order: str  # "<" or ">"
    stamp: int
    names: tuple[str, ...]
    values: dict[str, tuple[int, int]]

    def fixed(self, ros1: bool) -> np.ndarray:
        """Return which bytes (length,) are the same in all messages of this layout."""
        fixed = np.ones(self.length, dtype=bool)
        fixed[self.stamp - 4 * ros1 : self.stamp + 8] = False  # ROS 1 has a counter before the stamp
        for start, count in self.values.values():
            fixed[start : start + 8 * count] = False
        return fixed


class _Cursor:
    """A position in a serialized message: CDR (ROS 2), or without alignment (ROS 1)."""

    def __init__(self, data: bytes, ros1: bool):
        self.data, self.ros1 = data, ros1
        self.at, self.order = (0, "little") if ros1 else (4, "little")
        if not ros1:
            if data[:1] != b"\0" or data[1:2] not in (b"\0", b"\1"):
                raise ArgumentError(f"a message has the encoding {shown(data[:4])}, expected CDR.")
            self.order = "little" if data[1] else "big"

    def align(self, size: int) -> None:
        if not self.ros1:
            self.at = 4 + (self.at - 4 + size - 1) // size * size

    def skip(self, size: int) -> int:
        """Return the position, and go on by `size` bytes."""
        start, self.at = self.at, self.at + size
        if self.at > len(self.data):
            raise ArgumentError(f"a JointState message ends after {len(self.data)} bytes, expected {self.at} or more.")
        return start

    def count(self) -> int:
        self.align(4)
        start = self.skip(4)
        return int.from_bytes(self.data[start : start + 4], self.order)  # type: ignore[arg-type]

    def text(self) -> str:
        size = self.count()
        start = self.skip(size)
        return self.data[start : start + size].rstrip(b"\0").decode("utf-8", "replace")


def _layout(data: bytes, ros1: bool) -> _Layout:
    cursor = _Cursor(data, ros1)
    stamp = cursor.skip(8) if not ros1 else cursor.skip(12) + 4
    cursor.text()  # frame_id
    count = cursor.count()
    if count > MAX_NAMES:
        raise ArgumentError(f"a JointState message has {count} names, expected at most {MAX_NAMES}.")
    names = tuple(cursor.text() for _ in range(count))
    values = {}
    for signal in SIGNALS:
        size = cursor.count()
        if size:
            cursor.align(8)
        values[signal] = (cursor.skip(8 * size), size)
    return _Layout(len(data), "<" if cursor.order == "little" else ">", stamp, names, values)


# ---- Rows from messages


@dataclass
class _Rows:
    """Rows of messages with the same of the requested joints: stamps and recording times (ns), and values or None."""

    stamps: list[np.ndarray] = field(default_factory=list)
    received: list[np.ndarray] = field(default_factory=list)
    values: dict[str, list[np.ndarray | None]] = field(default_factory=lambda: {signal: [] for signal in SIGNALS})

    def joined(self, signal: str, width: int) -> np.ndarray | None:
        """Return the values (rows, width) of a signal, NaN where a message has none; None if no message has any."""
        parts = self.values.pop(signal)
        if all(part is None for part in parts):
            return None
        pairs = zip(parts, self.stamps, strict=True)
        return np.concatenate([np.full((len(t), width), np.nan) if part is None else part for part, t in pairs])


class JointStates:
    """Joint states by topic and by the requested joints that a message contains.

    Several nodes may publish on one topic, each for its own joints. Messages without any of the requested joints are
    ignored.
    """

    def __init__(self, where: object, joints: Sequence[str], received: bool = False):
        self.where, self.joints, self.received = where, list(joints), received
        self._rows: dict[tuple[str, tuple[str, ...]], _Rows] = defaultdict(_Rows)
        self._names: set[str] = set()

    def add(self, topic: str, names: Sequence[str], stamps: np.ndarray, received: np.ndarray,
            values: Mapping[str, np.ndarray]) -> None:  # fmt: skip
        """Add rows (n, names) of some signals, with their times (n,) in nanoseconds."""
        self._names.update(names)
        present = tuple(joint for joint in self.joints if joint in names)
        if not present:
            return
        index = [names.index(joint) for joint in present]
        rows = self._rows[topic, present]
        rows.stamps.append(stamps)
        rows.received.append(received)
        for signal in SIGNALS:
            signals = values.get(signal)
            usable = signals is not None and signals.shape[1] == len(names)
            rows.values[signal].append(signals[:, index] if usable else None)  # type: ignore[index]

    def add_messages(self, topic: str, messages: list[Message], ros1: bool) -> None:
        """Add serialized messages: those with the layout of the first one, then those of the next, and so on."""
        rest, layouts = messages, 0
        while rest:
            layout, first = _layout(rest[0][1], ros1), rest[0][1]
            group, others = [rest[0]], rest[1:]
            layouts += 1
            if layouts <= MAX_LAYOUTS:
                same = [message for message in rest if len(message[1]) == layout.length]
                table = np.frombuffer(b"".join(data for _, data in same), np.uint8).reshape(len(same), layout.length)
                fixed = layout.fixed(ros1)
                alike = (table[:, fixed] == np.frombuffer(first, np.uint8)[fixed]).all(axis=1)
                if alike.all() and len(same) == len(rest):
                    group, others = rest, []
                else:
                    group = [message for message, is_alike in zip(same, alike, strict=True) if is_alike]
                    chosen = set(map(id, group))
                    others = [message for message in rest if id(message) not in chosen]
            self._add_group(topic, layout, group)
            rest = others

    def _add_group(self, topic: str, layout: _Layout, messages: list[Message]) -> None:
        table = np.frombuffer(b"".join(data for _, data in messages), np.uint8).reshape(-1, layout.length)

        def numbers(start: int, count: int, kind: str) -> np.ndarray:
            dtype = np.dtype(layout.order + kind)
            return np.ascontiguousarray(table[:, start : start + count * dtype.itemsize]).view(dtype)

        seconds = numbers(layout.stamp, 2, "u4").astype(np.int64)
        stamps = seconds[:, 0] * 10**9 + seconds[:, 1]
        received = np.array([time for time, _ in messages], dtype=np.int64)
        values = {
            signal: numbers(start, count, "f8").astype(float, copy=False)
            for signal, (start, count) in layout.values.items()
            if count
        }
        self.add(topic, layout.names, stamps, received, values)

    def arrays(self) -> dict[str, Any]:
        """Return t (rows,) in seconds from the first row, name, and position, velocity and effort (rows, names)."""
        absent = [joint for joint in self.joints if not any(joint in present for _, present in self._rows)]
        if absent:
            names = f"joints {listing(sorted(self._names))}" if self._names else "no messages"
            raise ArgumentError(f"{self.where} has no joint states of {listing(absent)}, only {names}.")
        complete = [key for key in self._rows if len(key[1]) == len(self.joints)]
        keys = complete[:1] or sorted(self._rows, key=lambda key: -len(key[1]))
        parts = [(present, *self._signals(self._rows.pop((topic, present)), present)) for topic, present in keys]
        times = parts[0][1]
        if len(parts) > 1:  # the rows of the first part, the others interpolated
            times = times[(times >= max(t[0] for _, t, _ in parts)) & (times <= min(t[-1] for _, t, _ in parts))]
            if not len(times):
                raise ArgumentError(f"{self.where}: the messages with {listing(parts[1][0])} are at other times.")
        arrays: dict[str, Any] = {"t": 1e-9 * (times - times[0]), "name": list(self.joints)}
        for signal in SIGNALS:
            columns: dict[str, np.ndarray] = {}
            for present, t, signals in parts:
                values = signals.pop(signal)
                if len(parts) == 1:
                    if values is not None:
                        arrays[signal] = values
                elif values is not None:
                    near = (times - t[0]).astype(float), (t - t[0]).astype(float)
                    columns = {name: np.interp(*near, values[:, k]) for k, name in enumerate(present)} | columns
            if len(columns) == len(self.joints):
                arrays[signal] = np.stack([columns[name] for name in self.joints], axis=1)
        if "effort" not in arrays:
            warn_user(f"efforts: {self.where} has no efforts of all joints.", LogWarning)
        return arrays

    def _signals(self, rows: _Rows, present: Sequence[str]) -> tuple[np.ndarray, dict[str, np.ndarray | None]]:
        """Return the times (ns) in increasing order, and the signals in that order."""
        signals = {signal: rows.joined(signal, len(present)) for signal in SIGNALS}
        stamps, received = np.concatenate(rows.stamps), np.concatenate(rows.received)
        times = received if self.received else stamps
        if not self.received and not stamps.any() and len(stamps) > 1:
            warn_user(f"stamps: the headers in {self.where} have no stamps; recording times are used.", LogWarning)
            times = received
        arrival = np.argsort(received, kind="stable")  # rows were grouped by layout
        order = time_order(self.where, times[arrival])
        order = arrival if order is None else arrival[order]
        if (np.diff(order) != 1).any():
            times = times[order]
            signals = {signal: None if values is None else values[order] for signal, values in signals.items()}
        return times, signals
