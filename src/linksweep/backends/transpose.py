"""Rows of samples in memory, columns of lanes in registers: the transposition at both ends of a kernel.

A sample's row is contiguous, an operation wants the same entry of all W rows in one vector. Rows are read in chunks of
w entries (w a power of two, so that nothing beyond a row is touched), W/w rows side by side fill a vector, and
log2(w) stages of two-source shuffles transpose the w by w squares in all of them at once. Against single loads and
insertions this is worth a fifth of UR5's inverse dynamics in float64 and a third in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .emitter import Emitter


def load_columns(e: Emitter, rows: Sequence[str], size: int) -> list[str]:
    """One vector for each of the `size` entries of these rows, one row per lane."""
    columns: list[str] = []
    for start, width in chunks(size, e.lanes):
        parts = [_load(e, row, start, width) for row in rows]
        groups = [[parts[i + g * width] for g in range(e.lanes // width)] for i in range(width)]
        vectors = [_concatenate(e, group, width) for group in groups]
        columns += _transpose(e, vectors, width)
    return columns


def store_columns(e: Emitter, rows: Sequence[str], columns: Sequence[str]) -> None:
    """The reverse: one vector for each entry, into the rows."""
    for start, width in chunks(len(columns), e.lanes):
        store_chunk(e, rows, start, columns[start : start + width])


def store_chunk(e: Emitter, rows: Sequence[str], start: int, columns: Sequence[str]) -> None:
    """The entries of one chunk, from `start` on."""
    width = len(columns)
    for i, vector in enumerate(_transpose(e, list(columns), width)):
        for g in range(e.lanes // width):
            store_part(e, rows[i + g * width], start, _extract(e, vector, g * width, width), width)


def store_part(e: Emitter, row: str, start: int, part: str, width: int) -> None:
    """`width` entries of one row, from `start` on."""
    place = e.emit(f"getelementptr {e.scalar}, ptr {row}, i64 {start}")
    e.do(f"store <{width} x {e.scalar}> {part}, ptr {place}, align {e.bytes}")


def chunks(size: int, lanes: int) -> list[tuple[int, int]]:
    """(start, width): the row cut into powers of two, none wider than a vector."""
    chunks, start, width = [], 0, lanes
    while start < size:
        while width > size - start:
            width //= 2
        chunks.append((start, width))
        start += width
    return chunks


def _load(e: Emitter, row: str, start: int, width: int) -> str:
    place = e.emit(f"getelementptr {e.scalar}, ptr {row}, i64 {start}")
    return e.emit(f"load <{width} x {e.scalar}>, ptr {place}, align {e.bytes}")


def _concatenate(e: Emitter, parts: Sequence[str], width: int) -> str:
    while len(parts) > 1:
        kind = f"<{width} x {e.scalar}>"
        width *= 2
        parts = [
            e.emit(f"shufflevector {kind} {a}, {kind} {b}, {_mask(range(width))}")
            for a, b in zip(parts[::2], parts[1::2], strict=True)
        ]
    return parts[0]


def _extract(e: Emitter, vector: str, start: int, width: int) -> str:
    if width == e.lanes:
        return vector
    mask = _mask(range(start, start + width))
    return e.emit(f"shufflevector {e.vector} {vector}, {e.vector} poison, {mask}")


def _transpose(e: Emitter, vectors: list[str], width: int) -> list[str]:
    """Transpose the width x width squares that stand side by side in the lanes."""
    distance = 1
    while distance < width:
        for i in range(width):
            if i & distance == 0:
                a, b = vectors[i], vectors[i + distance]
                low = [p if p & distance == 0 else e.lanes + p - distance for p in range(e.lanes)]
                high = [p + distance if p & distance == 0 else e.lanes + p for p in range(e.lanes)]
                vectors[i] = e.emit(f"shufflevector {e.vector} {a}, {e.vector} {b}, {_mask(low)}")
                vectors[i + distance] = e.emit(f"shufflevector {e.vector} {a}, {e.vector} {b}, {_mask(high)}")
        distance *= 2
    return vectors


def _mask(indices: Sequence[int]) -> str:
    return f"<{len(indices)} x i32> <{', '.join(f'i32 {i}' for i in indices)}>"
