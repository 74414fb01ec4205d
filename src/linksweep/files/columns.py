"""Names of columns in trajectories and logs: `q.elbow`, `position.elbow`, `elbow_pos`, `time [ms]`, ..."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linksweep.errors import ArgumentError, LogWarning, warn_user
from linksweep.model.model import Model
from linksweep.support.messages import listing, nearest, shown

BLOCKS = ("t", "q", "qd", "qdd", "tau")
WORDS = {
    "t": ("t", "time", "times", "stamp", "timestamp", "header.stamp", "__time"),
    "q": ("q", "pos", "position", "positions", "angle", "angles"),
    "qd": ("qd", "dq", "qdot", "vel", "velocity", "velocities", "speed"),
    "qdd": ("qdd", "ddq", "qddot", "acc", "accel", "acceleration", "accelerations"),
    "tau": ("tau", "effort", "efforts", "torque", "torques", "eff"),
}
BLOCK_OF = {word: block for block, words in WORDS.items() for word in words}
_ANGLES = {"rad": 1.0, "deg": math.pi / 180.0, "°": math.pi / 180.0, "m": 1.0, "cm": 1e-2, "mm": 1e-3}
UNITS = {
    "t": {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9},
    "q": _ANGLES,
    "qd": {"rpm": math.pi / 30.0, **{f"{unit}/s": size for unit, size in _ANGLES.items()}},
    "qdd": {f"{unit}/s{two}": size for unit, size in _ANGLES.items() for two in ("^2", "²", "2", "/s")},
    "tau": {"nm": 1.0, "n m": 1.0, "n*m": 1.0, "n·m": 1.0, "n.m": 1.0, "n": 1.0, "mnm": 1e-3, "knm": 1e3, "kn": 1e3},
}
EPOCHS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))  # times that large can only be stamps in ns, µs or ms
EPOCH = 1e8  # seconds: later times are stamps of a clock and are counted from the first one


def joint_columns(model: Model, block: str) -> tuple[str, ...]:
    """Return the columns of a block ("q", "qd", "qdd", "tau") in coordinate order.

    A joint of several coordinates has one column for each: `q.root_joint.qx`, `qd.root_joint.wx`, ...
    """
    names = []
    for joint in model.joints:
        entries = joint.type.coordinates if block == "q" else joint.type.rates
        names += [".".join(filter(None, (block, joint.name, entry.name))) for entry in entries]
    return tuple(names)


def block_columns(model: Model, blocks: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the columns of every block, time first."""
    return {"t": ("t",), **{block: joint_columns(model, block) for block in blocks}}


@dataclass(frozen=True, slots=True)
class Column:
    """A requested column: its index in the file, and the factor to SI units; None for times without a unit."""

    index: int
    factor: float | None = 1.0


def find_columns(
    where: object, header: Sequence[str], robot: str, columns: Mapping[str, tuple[str, ...]], other_joints: bool = False
) -> list[Column]:
    """Return the requested columns of a table.

    Columns of other blocks are ignored. If no column has positions, plain joint names are positions. other_joints:
    whether columns of unknown joints are ignored with a warning. By default they raise an error.
    """
    found, unknown = resolve(where, header, columns)
    requested = [column for names in columns.values() for column in names]
    missing = next((column for column in requested if column not in found), None)
    if unknown and (missing is not None or not other_joints):
        name, block = unknown[0]
        raise ArgumentError(
            f"{where}: column {shown(name)} names no joint of {robot}{nearest(name, columns[block])}, expected "
            f"{_listed(columns[block])}: rename or remove it."
        )
    if missing is not None:
        _refuse_missing(where, header, missing, columns)
    if unknown:
        names = listing((name for name, _ in unknown), 4, quoted=False)
        warn_user(f"joints: {where} has columns of joints that {robot} does not have, which are ignored: {names}.",
                  LogWarning)  # fmt: skip
    return [found[column] for column in requested]


def resolve(
    where: object, header: Sequence[str], columns: Mapping[str, tuple[str, ...]]
) -> tuple[dict[str, Column], list[tuple[str, str]]]:
    """Return the columns by requested name, and (name, block) of columns that belong to no joint."""
    labels = {block: {name.removeprefix(f"{block}."): name for name in names} for block, names in columns.items()}
    found: dict[str, Column] = {}
    unknown: list[tuple[str, str]] = []
    plain: list[tuple[int, str]] = []
    for index, text in enumerate(header):
        match = meaning(text, labels)
        if match is None:
            block = text.partition(".")[0]
            if block in columns and text != block:
                unknown.append((text, block))
            elif text in labels.get("q", ()):
                plain.append((index, labels["q"][text]))
            continue
        name, unit = match
        if name in found:
            other = header[found[name].index]
            raise ArgumentError(f"{where}: column {shown(name)} occurs twice, as {shown(other)} and {shown(text)}.")
        found[name] = Column(index, _factor(where, text, name.partition(".")[0], unit))
    if not any(name in found for name in columns.get("q", ())):
        for index, name in plain:
            if name in found:
                raise ArgumentError(f"{where}: column {shown(header[index])} occurs twice, expected once.")
            found[name] = Column(index)
    return found, unknown


def meaning(text: str, labels: Mapping[str, Mapping[str, str]]) -> tuple[str, str] | None:
    """Return the requested column that a header means, and its unit ("" if it states none); None for other columns."""
    name, unit = text, ""
    bracket = re.fullmatch(r"(.*\S)\s*[\[(]([^\[\]()]*)[\])]", text)
    if bracket and not bracket[2].isdigit():
        name, unit = bracket[1], bracket[2].strip()
    elif suffix := re.fullmatch(r"(.+)_(deg|rad|rpm|s|ms|us|ns|nm)", text, re.IGNORECASE):
        if (direct := _signal(text, labels)) is not None:
            return direct, ""
        name, unit = suffix[1], suffix[2]
    column = _signal(name, labels)
    return None if column is None else (column, unit)


def _signal(name: str, labels: Mapping[str, Mapping[str, str]]) -> str | None:
    if name in BLOCKS or len(name) > 1:  # a single letter in the other case is not a word
        block = BLOCK_OF.get(name.lower())
        if block == "t" and "t" in labels:
            return "t"
    first, last = re.fullmatch(r"([^._/: ]+)[._/: ](.+)", name), re.fullmatch(r"(.+)[._/: ]([^._/: ]+)", name)
    candidates = [(match[k], match[3 - k]) for match, k in ((first, 1), (last, 2)) if match]
    for word, label in candidates:
        block = word if word in labels else BLOCK_OF.get(word.lower() if len(word) > 1 else word, "")
        known = labels.get(block, {})
        for joint in (label, label.rpartition("/")[2]):  # with and without the path of a topic
            if joint in known:
                return known[joint]
    return None


def _factor(where: object, text: str, block: str, unit: str) -> float | None:
    if not unit:
        return None if block == "t" else 1.0
    units = UNITS.get(block, {})
    factor = units.get(unit.lower().replace("sec", "s") if block != "t" else unit.lower())
    if factor is None:
        raise ArgumentError(f"{where}: column {shown(text)} has the unit {shown(unit)}, expected {listing(units, 12)}.")
    return factor


def clock(first: float, factor: float | None) -> tuple[float, float]:
    """Return the offset and the factor that turn logged times into seconds, from the first of them."""
    if factor is None:
        factor = next((size for limit, size in EPOCHS if first > limit), 1.0)
    return (first if first * factor > EPOCH else 0.0), factor


def in_si_units(blocks: Iterator[np.ndarray], columns: Sequence[Column], timed: bool) -> Iterator[np.ndarray]:
    """Convert columns with units to SI units, and stamps of a clock to seconds since the first row."""
    factors, offset = np.array([column.factor or 1.0 for column in columns]), None
    for values in blocks:
        if timed and offset is None:
            offset, factors[0] = clock(values[0, 0], columns[0].factor)
        if offset:
            values[:, 0] -= offset
        yield values if (factors == 1.0).all() else values * factors


def one_line(reason: Exception) -> str:
    """Return what a library reports about a file, in one line of a few hundred characters."""
    return " ".join(str(reason).split())[:300] or type(reason).__name__


def time_order(where: object, times: np.ndarray) -> np.ndarray | None:
    """Return the order of rows with times that do not decrease, and warn; None if they are in order."""
    decreasing = int((np.diff(times) < 0).sum())
    if not decreasing:
        return None
    warn_user(f"order: the times in {where} decrease in {decreasing} rows; the rows were sorted.", LogWarning)
    return np.argsort(times, kind="stable")


def _refuse_missing(where: object, header: Sequence[str], name: str, columns: Mapping[str, tuple[str, ...]]) -> None:
    block = name.partition(".")[0]
    others = [other for other in header if other.partition(".")[0] not in BLOCKS]
    close = next((f" (did you mean {shown(other)}?)" for other in others if other.lower() == name.lower()), "")
    advice = "add it"
    if block in ("qd", "qdd") and not any(other.startswith(f"{block}.") for other in header):
        advice = "add them all, or have them computed from q with --spline"
    blocks = [other for other in columns if other != "t"]
    raise ArgumentError(
        f"{where} has no column {shown(name)}{close or nearest(name, others)}, expected t (in seconds) and, for each "
        f"joint, {', '.join(blocks)} (such as {columns[blocks[-1]][0]}): {advice}."
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f", ... {names[-1]}" if len(names) > 4 else "")
