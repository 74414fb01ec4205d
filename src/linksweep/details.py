"""The intermediate quantities of an algorithm as named arrays: what `details=True` returns.

An algorithm returns a record of every quantity it names; here the record is walked and each quantity becomes an output:
nv numbers, (links, 3), (links, 6) [angular; linear] or [moment; force], (links, 6, 6) inertias. Rows follow
`robot.link_names`. To mean what a reader expects they are computed at the origins of the description's joint frames,
not at the canonical ones, and turned into their directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .canonical import CanonicalLink, CanonicalModel
from .functions import Request, record_of, signature
from .joints import Coordinates
from .spatial import ArticulatedInertia, Compliance, Force, Inertia, Mat, Motion, Vec, centripetal
from .sweeps import Records
from .tracing.program import Array, Program
from .tracing.unrolled import UnrolledTrace


class Details(dict[str, Any]):
    """Named arrays, also as attributes."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no quantity {name!r}: there are {', '.join(self)}") from None


def trace_details(model: CanonicalModel, request: Request) -> Program:
    """The Program of one request whose outputs are its result and then every other quantity of its record.

    `model` must come from canonical(..., described_frames=True).
    """
    inputs, outputs = signature(model, [request])
    tracer = UnrolledTrace(model, inputs)
    record = record_of(tracer, request)
    arrays = [outputs[0]]
    tracer.write_coordinates(0, getattr(record, outputs[0].name))
    for name, shape, values in _quantities(tracer, record):
        if name not in {array.name for array in arrays}:
            tracer.write(len(arrays), values)
            arrays.append(Array(name, shape))
    if model.is_serial and {"alpha", "V"} <= {array.name for array in arrays}:
        tracer.write(len(arrays), _tip_acceleration(tracer, record))
        arrays.append(Array("alpha_tip", (6,)))
    return tracer.program(f"{request.function}_{request.method}_details", arrays).verify()


def _tip_acceleration(tracer: UnrolledTrace, record: Any) -> list[Any]:
    """alpha(0) at the last frame of a chain, in the directions of the last link: Rodriguez & Kreutz (4.23), (5.7)."""
    last = len(tracer.links) - 1
    frame = [frame for frame in tracer.model.frames if frame.link == last][-1]
    alpha, V, p = record.alpha[last], _velocities(record)[last], Vec(*frame.placement.position)
    linear = alpha.linear + (alpha.angular.cross(p) + centripetal(V.angular, p))
    return _turned(tracer.model.links[last], Motion(alpha.angular, linear))


def _velocities(record: Any) -> Records:
    return record.V if hasattr(record, "V") else record.bias.V


def _quantities(tracer: UnrolledTrace, record: Any) -> Iterator[tuple[str, tuple[int, ...], list[Any]]]:
    for name in getattr(record, "__dataclass_fields__", {}):
        value = getattr(record, name)
        if isinstance(value, Records):
            yield from _per_link(tracer, name, value)


def _per_link(tracer: UnrolledTrace, name: str, records: Records) -> Iterator[tuple[str, tuple[int, ...], list[Any]]]:
    first = records[0]
    if isinstance(first, Coordinates):
        flat = tracer.join(records)
        yield name, (len(flat),), flat
    elif isinstance(first, tuple) and isinstance(first[0], Force):
        if all(len(record) == 1 for record in records):  # the gain of a joint of one freedom
            yield from _per_link(tracer, name, Records(record[0] for record in records))
    elif isinstance(first, (Vec, Motion, Force, Inertia, ArticulatedInertia, Compliance)):
        links = tracer.model.links
        rows = {link.row: _turned(link, record) for link, record in zip(links, records, strict=True)}
        matrices = [rows[row] for row in sorted(rows)]
        shape = (len(links), 3) if isinstance(first, Vec) else (len(links), 6)
        if not isinstance(first, (Vec, Motion, Force)):
            shape = (len(links), 6, 6)
        yield name, shape, [value for matrix in matrices for value in matrix]
    elif hasattr(first, "__dataclass_fields__") and not isinstance(first, Mat):
        for field in first.__dataclass_fields__:  # type: ignore[attr-defined]
            yield from _per_link(tracer, field, getattr(records, field))


def _turned(link: CanonicalLink, record: Any) -> list[Any]:
    """A quantity of a link in the directions of its described frame, flat."""
    axes = Mat(*(Vec(*row) for row in link.axes))
    if isinstance(record, Vec):
        return list(axes.transpose_times(record))
    if isinstance(record, Motion):
        return [*axes.transpose_times(record.angular), *axes.transpose_times(record.linear)]
    if isinstance(record, Force):
        return [*axes.transpose_times(record.moment), *axes.transpose_times(record.force)]
    if isinstance(record, Inertia):
        record = record.articulated()
    if isinstance(record, Compliance):
        blocks = (record.A, record.Y.T, record.Y, record.C)
    else:
        blocks = (record.J, record.Y, record.Y.T, record.rho)
    a, b, c, d = (_turned_matrix(axes, Mat(*_rows(block))) for block in blocks)
    return [x for top in ((a, b), (c, d)) for i in range(3) for half in top for x in half[i]]


def _rows(block: Any) -> tuple[Vec, Vec, Vec]:
    return (block.x, block.y, block.z) if isinstance(block, Mat) else block.rows()


def _turned_matrix(axes: Mat, matrix: Mat) -> list[list[Any]]:
    """axes^T matrix axes, by rows."""
    columns = [axes.transpose_times(matrix @ column) for column in _rows(axes.T)]
    return [list(row) for row in zip(*columns, strict=True)]
