"""The columns of a trajectory: `t`, then `q.joint1`, `qd.joint1`, ... by joint name, in any order in a file."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from linksweep.description.model import Model
from linksweep.errors import ArgumentError
from linksweep.support.messages import nearest, shown

BLOCKS = ("t", "q", "qd", "qdd", "tau")
# what the entries of joints with several freedoms are called
COORDINATES = {
    "spherical": ("qx", "qy", "qz", "qw"),
    "free": ("qx", "qy", "qz", "qw", "x", "y", "z"),
    "planar": ("angle", "x", "y"),
}
RATES = {"spherical": ("wx", "wy", "wz"), "free": ("wx", "wy", "wz", "vx", "vy", "vz"), "planar": ("wz", "vx", "vy")}


def joint_columns(model: Model, block: str) -> tuple[str, ...]:
    """The columns of a block ("q", "qd", "qdd", "tau") in coordinate order.

    A joint of several coordinates has one column for each: `q.root_joint.qx`, `qd.root_joint.wx`, ...
    """
    names = []
    for index in model.coordinate_order:
        joint = model.links[index].joint
        entries = (COORDINATES if block == "q" else RATES).get(joint.kind)
        plain = f"{block}.{joint.name}"
        names += [f"{plain}.{entry}" for entry in entries] if entries else [plain]
    return tuple(names)


def block_columns(model: Model, blocks: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The columns of every block, time first."""
    return {"t": ("t",), **{block: joint_columns(model, block) for block in blocks}}


def header_of(path: Path, line: bytes) -> list[str]:
    """The names in the first line of a CSV file."""
    text = decoded(path, line, 1).removeprefix("\ufeff").rstrip("\r\n")
    if not text.strip():
        raise ArgumentError(f"{path} begins with an empty line, expected a header: t, and the joints' columns.")
    if "\r" in text:
        raise ArgumentError(f"{path} ends its lines in CR alone, expected LF or CR LF: save it so.")
    try:
        names = [name.strip() for name in next(csv.reader([text], strict=True))]
    except csv.Error as reason:
        raise ArgumentError(
            f"{path}, line 1: the header {shown(text)} is not CSV ({reason}), expected names with commas between them."
        ) from reason
    other = next((separator for separator in ";\t|" if separator in text), None)
    if len(names) == 1 and other:
        raise ArgumentError(f"{path} is separated by {other!r}, expected commas: save it as comma-separated values.")
    if all(_is_number(name) for name in names):
        raise ArgumentError(
            f"{path}, line 1 holds numbers, expected a header that names the columns: write one, beginning with t."
        )
    return names


def places_of(path: Path, header: Sequence[str], model: Model, columns: dict[str, tuple[str, ...]]) -> list[int]:
    """Where in the file's rows the wanted columns stand.

    Columns of other blocks are passed over. Where no column begins with "q.", plain joint names are positions.
    """
    names = list(header)
    if not any(name.startswith("q.") for name in names):
        plain = {column.removeprefix("q.") for column in columns.get("q", ())}
        names = [f"q.{name}" if name in plain else name for name in names]
    wanted = [column for block in columns.values() for column in block]
    for name in names:
        block = name.partition(".")[0]
        if block in columns and name not in wanted and name != block:
            raise ArgumentError(
                f"{path}, line 1: column {shown(name)} names no joint of {model.name}{nearest(name, columns[block])}, "
                f"expected {_listed(columns[block])}: rename or remove it."
            )
    for name in wanted:
        if name not in names:
            _refuse_missing(path, names, name, columns)
        if names.count(name) > 1:
            raise ArgumentError(f"{path}, line 1: column {shown(name)} stands there twice, expected once: remove one.")
    return [names.index(name) for name in wanted]


def _refuse_missing(path: Path, names: list[str], name: str, columns: dict[str, tuple[str, ...]]) -> None:
    block = name.partition(".")[0]
    others = [other for other in names if other.partition(".")[0] not in BLOCKS]
    close = next((f" (did you mean {shown(other)}?)" for other in others if other.lower() == name.lower()), "")
    advice = "add it"
    if block in ("qd", "qdd") and not any(other.startswith(f"{block}.") for other in names):
        advice = "add them all, or have them computed from q with --spline"
    blocks = [other for other in columns if other != "t"]
    raise ArgumentError(
        f"{path} has no column {shown(name)}{close or nearest(name, others)}, expected t (in seconds) and, for each "
        f"joint, {', '.join(blocks)} (such as {columns[blocks[-1]][0]}): {advice}."
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f", ... {names[-1]}" if len(names) > 4 else "")


def decoded(path: Path, text: bytes, line: int) -> str:
    """Bytes of a file as text; `line` is the number of their first line."""
    try:
        found = text.decode("utf-8")
    except UnicodeDecodeError as reason:
        line += text.count(b"\n", 0, reason.start)
        raise ArgumentError(
            f"{path}, line {line}: this is no text in UTF-8, expected a CSV file: save it so."
        ) from None
    if "\0" in found:
        line += found.count("\n", 0, found.index("\0"))
        raise ArgumentError(f"{path}, line {line}: this is no text but binary data, expected a CSV file.")
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
