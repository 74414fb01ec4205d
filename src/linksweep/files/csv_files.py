"""CSV files of any length, read in blocks of numbers.

Large files are read by pyarrow if it is installed. Small files, and everything that pyarrow rejects, are read by NumPy,
which reports the line of errors.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from linksweep.errors import ArgumentError
from linksweep.files.columns import find_columns, in_si_units
from linksweep.support.messages import shown

BLOCK = 1 << 22  # bytes read at a time; larger is no faster
COMMA, NEWLINE = 44, 10
SPACES = (b" ", b"\t", b"\r", b"\v", b"\f")


def read_csv(path: Path, robot: str, columns: dict[str, tuple[str, ...]], checked: bool = True) -> Iterator[np.ndarray]:
    """Read the requested columns, time first, as blocks (rows, columns) in SI units. The header is checked at once.

    checked: require finite numbers, increasing times, and no columns of joints that the robot does not have.
    """
    blocks = _opened(path, robot, columns, checked)
    next(blocks)
    return blocks


def read_header(path: Path) -> list[str]:
    """Return the column names of a file."""
    try:
        with path.open("rb") as source:
            return header_of(path, source.readline(BLOCK))
    except OSError as reason:
        raise unreadable(path, reason) from reason


def read_all(path: Path, indices: Sequence[int]) -> np.ndarray:
    """Read some columns by index, without checks or units, as an array (rows, columns)."""
    with path.open("rb") as source:
        header = header_of(path, source.readline(BLOCK))
        return np.concatenate(list(_File(path, source, header, list(indices), checked=False).blocks()))


def _opened(path: Path, robot: str, columns: dict[str, tuple[str, ...]], checked: bool) -> Iterator[np.ndarray]:
    """Yield an empty block when the header has been checked, then the blocks. The file closes with the iterator."""
    try:
        source = path.open("rb")
    except OSError as reason:
        raise unreadable(path, reason) from reason
    with source:
        header = header_of(path, _read(path, source, BLOCK, line=True))
        requested = find_columns(path, header, robot, columns, other_joints=not checked)
        yield np.empty((0, len(requested)))
        file = _File(path, source, header, [column.index for column in requested], checked)
        yield from in_si_units(file.blocks(), requested, timed="t" in columns)


def _read(path: Path, source: BinaryIO, size: int, line: bool = False) -> bytes:
    try:
        return source.readline(size) if line else source.read(size)
    except OSError as reason:
        raise unreadable(path, reason) from reason


def unreadable(path: Path, reason: OSError) -> ArgumentError:
    return ArgumentError(f"The file {path} cannot be read ({reason.strerror}), expected a trajectory: check the path.")


class _NotForPyarrow(Exception):
    """The NumPy reader takes over: it accepts more, and reports the line of an error."""


@dataclass(frozen=True, slots=True)
class _File:
    """A CSV file whose header has been read, and the positions of the requested columns."""

    path: Path
    source: BinaryIO
    header: list[str]
    indices: list[int]
    checked: bool  # finite numbers and increasing times

    def blocks(self) -> Iterator[np.ndarray]:
        """The requested columns."""
        done, time = 0, -np.inf
        try:
            for values in self._by_pyarrow():
                if self.checked and (_wrong_entry(values) or _wrong_time(values, time) is not None):
                    raise _NotForPyarrow
                done, time = done + len(values), values[-1, 0]
                yield values
            return
        except _NotForPyarrow:
            before = done
        for lines, values in self._by_numpy():
            if before >= len(values):  # already read by pyarrow
                before -= len(values)
                continue
            lines, values, before = lines[before:], values[before:], 0
            if self.checked:
                self._check(lines, values, time)
            done, time = done + len(values), values[-1, 0]
            yield values
        if not done:
            raise ArgumentError(f"{self.path} has a header but no rows, expected one row per sample.")

    def _by_pyarrow(self) -> Iterator[np.ndarray]:
        """Blocks to the end of the file, or up to something that the NumPy reader must look at."""
        if not self.path.is_file() or self.path.stat().st_size < BLOCK:
            raise _NotForPyarrow  # not worth its import
        pyarrow, arrow_csv = arrow_module(), arrow_module("pyarrow.csv")
        if pyarrow is None or arrow_csv is None:
            raise _NotForPyarrow
        requested = [str(index) for index in self.indices]
        names = [str(index) for index in range(len(self.header))]
        types = dict.fromkeys(requested, pyarrow.float64())
        try:
            reader = arrow_csv.open_csv(
                self.path,
                arrow_csv.ReadOptions(block_size=BLOCK, skip_rows=1, column_names=names),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=requested, column_types=types, null_values=[], strings_can_be_null=False
                ),
            )
            for batch in reader:
                if batch.num_rows:
                    yield np.stack([column.to_numpy() for column in batch.columns], axis=1)
        except pyarrow.ArrowException as reason:
            raise _NotForPyarrow from reason

    def _by_numpy(self) -> Iterator[tuple[Sequence[int], np.ndarray]]:
        """Line numbers and values of each block that has rows."""
        rest, line = b"", 2
        while True:
            read = _read(self.path, self.source, BLOCK)
            cut = read.rfind(b"\n") + 1
            text, rest = (rest + read[:cut], read[cut:]) if cut else (b"" if read else rest, rest + read)
            if len(rest) > BLOCK:
                raise ArgumentError(f"{self.path}, line {line} has more than {BLOCK} bytes, expected a row of numbers.")
            if text:
                values = _numbers(text, len(self.header))
                if values is None:
                    lines, values = self._line_by_line(text, line)
                else:
                    values = np.take(values, self.indices, axis=1)
                    lines = range(line, line + len(values))
                if len(values):
                    yield lines, values
                line += text.count(b"\n")
            if not read:
                return

    def _line_by_line(self, text: bytes, line: int) -> tuple[Sequence[int], np.ndarray]:
        """Read as Python's csv does, with quotes, blank lines and columns of words."""
        lines, rows = [], []
        reader = csv.reader(decoded(self.path, text, line).replace("\r\n", "\n").split("\n"), strict=True)
        while True:
            number = line + reader.line_num
            try:
                row = next(reader, None)
            except csv.Error as reason:
                raise ArgumentError(
                    f"{self.path}, line {number} is not CSV ({reason}), expected numbers with commas between them."
                ) from reason
            if row is None:
                return lines, np.array(rows).reshape(len(rows), len(self.indices))
            if len(row) == 0 or (len(row) == 1 and not row[0].strip()):
                continue
            if len(row) != len(self.header):
                raise ArgumentError(
                    f"{self.path}, line {number} has {len(row)} values, expected {len(self.header)} as in the header: "
                    "add or remove some."
                )
            rows.append([self._number(row[index], index, number) for index in self.indices])
            lines.append(number)

    def _number(self, text: str, index: int, line: int) -> float:
        try:
            if "_" not in text:  # 1_000 is a number in Python only
                return float(text)
        except ValueError:
            pass
        raise ArgumentError(f"{self.path}, line {line}: {self.header[index]} is {shown(text)}, expected a number.")

    def _check(self, lines: Sequence[int], values: np.ndarray, time: float) -> None:
        wrong = _wrong_entry(values)
        if wrong:
            row, column = wrong
            raise ArgumentError(
                f"{self.path}, line {lines[row]}: {self.header[self.indices[column]]} is {values[row, column]}, "
                "expected a finite number."
            )
        row = _wrong_time(values, time)
        if row is not None:
            before = values[row - 1, 0] if row else time
            raise ArgumentError(
                f"{self.path}, line {lines[row]}: t is {values[row, 0]} after {before}, expected increasing times: "
                "sort the rows and remove repeats."
            )


def _numbers(text: bytes, width: int) -> np.ndarray | None:
    """Rows of `width` numbers each; None if the text is anything else, however small the difference."""
    text = text.replace(b"\r\n", b"\n").replace(b", ", b",")
    if any(space in text for space in SPACES):  # NumPy takes a blank field for a number
        return None
    if not text.endswith(b"\n"):
        text += b"\n"
    data = np.frombuffer(text, np.uint8)
    ends = data[(data == COMMA) | (data == NEWLINE)]
    if len(ends) % width:
        return None
    ends = ends.reshape(-1, width) == NEWLINE
    if not ends[:, -1].all() or ends[:, :-1].any():
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # NumPy's answer to text that is not a number
        try:
            values = np.fromstring(text[:-1].replace(b"\n", b","), sep=",")
        except (DeprecationWarning, ValueError):
            return None
    return values.reshape(ends.shape) if values.size == ends.size else None


def _wrong_entry(values: np.ndarray) -> tuple[int, int] | None:
    """Row and column of the first number that is not finite."""
    if np.isfinite(values).all():
        return None
    row, column = np.argwhere(~np.isfinite(values))[0].tolist()
    return row, column


def _wrong_time(values: np.ndarray, before: float) -> int | None:
    """The first row whose time is not later than that of the row before."""
    late = np.flatnonzero(np.diff(values[:, 0], prepend=before) <= 0.0)
    return int(late[0]) if len(late) else None


def header_of(path: Path, line: bytes) -> list[str]:
    """The names in the first line of a CSV file."""
    text = decoded(path, line, 1).removeprefix("\ufeff").rstrip("\r\n")
    if not text.strip():
        problem = "begins with an empty line" if line else "is empty"
        raise ArgumentError(f"{path} {problem}, expected a header such as t,q.joint1,... and one row per sample.")
    if "\r" in text:
        raise ArgumentError(f"{path} ends its lines with CR alone, expected LF or CR LF.")
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


def decoded(path: Path, text: bytes, line: int) -> str:
    """Bytes of a file as text; `line` is the number of their first line."""
    try:
        decoded_text = text.decode("utf-8")
    except UnicodeDecodeError as reason:
        line += text.count(b"\n", 0, reason.start)
        raise ArgumentError(f"{path}, line {line}: not UTF-8 text, expected a CSV file.") from None
    if "\0" in decoded_text:
        line += decoded_text.count("\n", 0, decoded_text.index("\0"))
        raise ArgumentError(f"{path}, line {line}: binary data, expected a CSV file.")
    return decoded_text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


Arrow = Any  # a module of pyarrow, which has no types, or None


def arrow_module(name: str = "pyarrow") -> Arrow:
    """pyarrow or a module of it; None if it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None
