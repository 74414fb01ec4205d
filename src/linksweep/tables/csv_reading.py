"""CSV files of any length, in blocks of checked numbers: by pyarrow where it is installed, or by NumPy.

Whatever pyarrow does not take goes through the NumPy reader, which says what is wrong and in which line.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from linksweep.description.model import Model
from linksweep.errors import ArgumentError
from linksweep.support.messages import shown
from linksweep.tables.arrow import arrow_module
from linksweep.tables.columns import decoded, header_of, places_of

BLOCK = 1 << 22  # bytes read at a time; larger is no faster
COMMA, NEWLINE = 44, 10
SPACES = (b" ", b"\t", b"\r", b"\v", b"\f")


def read_csv(
    path: Path, model: Model, columns: dict[str, tuple[str, ...]], checked: bool = True
) -> Iterator[np.ndarray]:
    """Blocks (rows, columns) of the wanted columns in their order, time first; the header is checked at once.

    checked: every number is finite, and time grows; a log is read as it is.
    """
    blocks = _opened(path, model, columns, checked)
    next(blocks)
    return blocks


def read_header(path: Path) -> list[str]:
    """The names of a file's columns; none where its first line is empty."""
    try:
        with path.open("rb") as source:
            first = source.readline(BLOCK)
    except OSError as reason:
        raise unreadable(path, reason) from reason
    return header_of(path, first) if first.strip() else []


def _opened(path: Path, model: Model, columns: dict[str, tuple[str, ...]], checked: bool) -> Iterator[np.ndarray]:
    """First, when the header has been checked, no rows; then the blocks. The file is closed with the iterator."""
    try:
        source = path.open("rb")
    except OSError as reason:
        raise unreadable(path, reason) from reason
    with source:
        first = _read(path, source, BLOCK, line=True)
        if not first.strip():
            empty = not first and not _read(path, source, 1)
            raise ArgumentError(
                f"{path} {'is empty' if empty else 'begins with an empty line'}, expected a header such as "
                f"t,{','.join(names[0] for block, names in columns.items() if block != 't')},... and one row per "
                "sample."
            )
        header = header_of(path, first)
        file = _File(path, source, header, places_of(path, header, model, columns), checked)
        yield np.empty((0, len(file.places)))
        yield from file.blocks()


def _read(path: Path, source: BinaryIO, size: int, line: bool = False) -> bytes:
    try:
        return source.readline(size) if line else source.read(size)
    except OSError as reason:
        raise unreadable(path, reason) from reason


def unreadable(path: Path, reason: OSError) -> ArgumentError:
    return ArgumentError(f"The file {path} cannot be read ({reason.strerror}), expected a trajectory: check the path.")


class _NotForPyarrow(Exception):
    """The NumPy reader shall go on: it takes more, and knows the line of what it does not take."""


@dataclass(frozen=True, slots=True)
class _File:
    """A CSV file whose header has been read, and where the wanted columns stand."""

    path: Path
    source: BinaryIO
    header: list[str]
    places: list[int]
    checked: bool  # finite, and time growing

    def blocks(self) -> Iterator[np.ndarray]:
        """The wanted columns."""
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
            if before >= len(values):  # pyarrow read these
                before -= len(values)
                continue
            lines, values, before = lines[before:], values[before:], 0
            if self.checked:
                self._check(lines, values, time)
            done, time = done + len(values), values[-1, 0]
            yield values
        if not done:
            raise ArgumentError(f"{self.path} has a header but no rows, expected one row per sample: add them.")

    def _by_pyarrow(self) -> Iterator[np.ndarray]:
        """Blocks to the end, or to something that the other reader knows more about."""
        if not self.path.is_file() or self.path.stat().st_size < BLOCK:
            raise _NotForPyarrow  # not worth its import
        pyarrow, arrow_csv = arrow_module(), arrow_module("pyarrow.csv")
        if pyarrow is None or arrow_csv is None:
            raise _NotForPyarrow
        wanted = [str(place) for place in self.places]
        names = [str(place) for place in range(len(self.header))]
        types = dict.fromkeys(wanted, pyarrow.float64())
        try:
            reader = arrow_csv.open_csv(
                self.path,
                arrow_csv.ReadOptions(block_size=BLOCK, skip_rows=1, column_names=names),
                convert_options=arrow_csv.ConvertOptions(
                    include_columns=wanted, column_types=types, null_values=[], strings_can_be_null=False
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
                raise ArgumentError(
                    f"{self.path}, line {line} has more than {BLOCK} bytes, expected a row of numbers: is it a table?"
                )
            if text:
                values = _numbers(text, len(self.header))
                if values is None:
                    lines, values = self._line_by_line(text, line)
                else:
                    values = np.take(values, self.places, axis=1)
                    lines = range(line, line + len(values))
                if len(values):
                    yield lines, values
                line += text.count(b"\n")
            if not read:
                return

    def _line_by_line(self, text: bytes, line: int) -> tuple[Sequence[int], np.ndarray]:
        """As Python reads CSV: quotes, blank lines, columns of words; says where a row is no row of numbers."""
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
                return lines, np.array(rows).reshape(len(rows), len(self.places))
            if len(row) == 0 or (len(row) == 1 and not row[0].strip()):
                continue
            if len(row) != len(self.header):
                raise ArgumentError(
                    f"{self.path}, line {number} has {len(row)} values, expected {len(self.header)} as in the header: "
                    "add or remove some."
                )
            rows.append([self._number(row[place], place, number) for place in self.places])
            lines.append(number)

    def _number(self, text: str, place: int, line: int) -> float:
        try:
            if "_" not in text:  # Python's digits, nobody else's
                return float(text)
        except ValueError:
            pass
        raise ArgumentError(
            f"{self.path}, line {line}: {self.header[place]} is {shown(text)}, expected a number: correct it."
        )

    def _check(self, lines: Sequence[int], values: np.ndarray, time: float) -> None:
        wrong = _wrong_entry(values)
        if wrong:
            row, column = wrong
            raise ArgumentError(
                f"{self.path}, line {lines[row]}: {self.header[self.places[column]]} is {values[row, column]}, "
                "expected a finite number: correct it or remove the row."
            )
        row = _wrong_time(values, time)
        if row is not None:
            before = values[row - 1, 0] if row else time
            raise ArgumentError(
                f"{self.path}, line {lines[row]}: t is {values[row, 0]} after {before}, expected times that grow: sort "
                "the rows and remove repeats."
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
        warnings.simplefilter("error", DeprecationWarning)  # NumPy's way to say that something is no number
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
