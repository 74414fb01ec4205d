"""The intermediate quantities of an algorithm as named arrays: what `details=True` returns.

An algorithm returns a record of every quantity it names; here the record is walked and each quantity becomes an
output, whatever the joints: one number for each rate (nv,) or link (links,), a row for each link (links, 3) or
(links, 6) [angular; linear] or [moment; force], a matrix for each link (links, 3, 3) or (links, 6, 6), a row for each
rate (nv, 6), a matrix of rates (nv, nv), an element for each three rates (nv, nv, nv). Links and rates stand in the
order of `robot.link_names`. To mean what a reader expects they are computed at the origins of the description's joint
frames, not at the canonical ones, and turned into their directions. docs/details.md lists them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..algorithms.explicit.explicit_model import Power
from ..mechanism.canonical import CanonicalLink
from ..mechanism.joints import Coordinates, JointBlock
from ..mechanism.sweeps import Records
from ..spatial.algebra import ArticulatedInertia, Compliance, Force, Inertia, Mat, Motion, Sym, Vec, centripetal
from ..spatial.scalars import Scalar
from ..support.lazy import lazy
from ..tracing.expression import Graph, Operand
from ..tracing.program import Array
from ..tracing.tracer import UnrolledRun
from .catalog.explicit import joint_groups, summed_over
from .computation import Computation, RobotFunction, Tracing, Transformation
from .declaration import Algorithm, Record
from .functions import record_of

RATES = ("qdd",)  # what coupled joints share; other numbers of joints are forces, which add up
VECTORS = {Vec: (3,), Motion: (6,), Force: (6,), Mat: (3, 3), Sym: (3, 3)}
VECTORS |= dict.fromkeys((Inertia, ArticulatedInertia, Compliance), (6, 6))


class Details(dict[str, np.ndarray]):
    """Named arrays, also as attributes."""

    def __getattr__(self, name: str) -> np.ndarray:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no quantity {name!r}: there are {', '.join(self)}") from None


class Quantity(NamedTuple):
    """One array: its numbers, and where they belong: to "joints", or to a "link" in its frame at its origin."""

    name: str
    shape: tuple[int, ...]
    values: list[Scalar]
    frame: str


@dataclass(frozen=True)
class WithDetails(Transformation):
    """The result of inverse or forward dynamics, and every other quantity of its algorithm's record.

    The model of the function must come from canonical(..., described_frames=True).
    """

    of: RobotFunction  # pyright: ignore[reportIncompatibleVariableOverride]

    @property
    def name(self) -> str:
        return self.of.name

    @property
    def components(self) -> tuple[Computation, ...]:
        return ()  # not regrouped: base parameters would change the quantities

    @lazy
    def outputs(self) -> tuple[Array, ...]:  # pyright: ignore[reportIncompatibleMethodOverride]
        graph = Graph()
        leaves = [[graph.leaf("input", (k, i)) for i in range(array.size)] for k, array in enumerate(self.of.inputs)]
        run = UnrolledRun(self.of.model, self.of.inputs, leaves)
        return tuple(Array(each.name, each.shape) for each in self._quantities(run))

    def values(self, tracing: Tracing) -> Sequence[Sequence[Operand]]:
        return [each.values for each in self._quantities(tracing.run(self.of.model))]

    def _quantities(self, run: UnrolledRun) -> list[Quantity]:
        return quantities(run, record_of(run, self.of), self.of.declared.result)


def quantities(tracer: UnrolledRun, record: Record, result: str) -> list[Quantity]:
    """Every quantity of a record, the result first; two of one name must be the same."""
    found: dict[str, Quantity] = {}
    for quantity in _of_record(tracer, record):
        known = found.setdefault(quantity.name, quantity)
        if known.values != quantity.values:
            raise AssertionError(f"{type(record).__module__} has two quantities {quantity.name}: name them apart")
    if tracer.model.is_serial and {"alpha", "V"} <= set(found):
        found["alpha_tip"] = Quantity("alpha_tip", (6,), _tip_acceleration(tracer, record), "link")
    return [found.pop(result), *found.values()]


def _tip_acceleration(tracer: UnrolledRun, record: Record) -> list[Scalar]:
    """alpha(0) at the last frame of a chain, in the directions of the last link: Rodriguez & Kreutz (4.23), (5.7)."""
    last = len(tracer.links) - 1
    frame = [frame for frame in tracer.model.frames if frame.link == last][-1]
    alpha, V, p = record.alpha[last], _velocities(record)[last], Vec(*frame.placement.position)
    linear = alpha.linear + (alpha.angular.cross(p) + centripetal(V.angular, p))
    return turned(axes_of(tracer.model.links[last]), Motion(alpha.angular, linear))


def _velocities(record: Record) -> Records:
    return record.V if hasattr(record, "V") else record.bias.V


def _of_record(tracer: UnrolledRun, record: Record) -> Iterator[Quantity]:
    for name in record.__dataclass_fields__:
        value = getattr(record, name)
        if isinstance(value, Records):
            yield from _per_link(tracer, name, value)
        elif isinstance(value, Power) or callable(value):  # an element for each three 1-DOF joints
            element: Algorithm = value.element if isinstance(value, Power) else value
            yield Quantity(name, (tracer.model.nv,) * 3, summed_over(joint_groups(tracer), 3, element), "joints")
        elif isinstance(value, dict) and isinstance(next(iter(value.values())), (list, tuple)):
            flat = tracer.join_pairs(value)
            yield Quantity(name, _square(tracer), flat, "joints")
        elif isinstance(value, dict):
            groups = joint_groups(tracer)
            yield Quantity(
                name, _square(tracer), summed_over(groups, 2, lambda *place, found=value: found[place]), "joints"
            )
        else:
            raise AssertionError(f"{type(record).__module__}: details do not know what {name} is")


def _per_link(tracer: UnrolledRun, name: str, records: Records) -> Iterator[Quantity]:
    """The quantity of one field, or those of the fields of a record."""
    first, links = records[0], tracer.model.links
    freedoms = [link.nv for link in links]
    if isinstance(first, Coordinates):
        flat = tracer.join_rates(records) if name in RATES else tracer.join(records)
        yield Quantity(name, (len(flat),), flat, "joints")
    elif isinstance(first, JointBlock):
        yield _joint_blocks(tracer, name, records)
    elif type(first) in VECTORS:
        rows = {link.row: turned(axes_of(link), record) for link, record in zip(links, records, strict=True)}
        values = [value for row in sorted(rows) for value in rows[row]]
        yield Quantity(name, (len(links), *VECTORS[type(first)]), values, "link")
    elif isinstance(first, tuple) and isinstance(first[0], Force):
        by_rate = [len(record) for record in records] == freedoms
        starts = {
            (link.start + k if by_rate else link.row, k): turned(axes_of(link), force)
            for link, record in zip(links, records, strict=True)
            for k, force in enumerate(record)
        }
        values = [value for place in sorted(starts) for value in starts[place]]
        yield Quantity(name, (sum(freedoms), 6) if by_rate else (len(links), len(first), 6), values, "link")
    elif isinstance(first, tuple):
        rows = {link.row: list(record) for link, record in zip(links, records, strict=True)}
        yield Quantity(name, (len(links), len(first)), [x for row in sorted(rows) for x in rows[row]], "link")
    elif hasattr(first, "__dataclass_fields__"):
        for field in first.__dataclass_fields__:
            yield from _per_link(tracer, field, getattr(records, field))
    elif hasattr(first, "__rtruediv__"):  # a scalar
        rows = {link.row: record for link, record in zip(links, records, strict=True)}
        yield Quantity(name, (len(links),), [rows[row] for row in sorted(rows)], "link")
    else:
        raise AssertionError(f"details do not know what {name} is")


def _joint_blocks(tracer: UnrolledRun, name: str, blocks: Records) -> Quantity:
    """One number for each joint; where a joint has several freedoms, the block-diagonal matrix of all."""
    links = tracer.model.links
    if all(len(block) == 1 for block in blocks):
        flat = tracer.join_rates(Records(Coordinates(block[0]) for block in blocks))
        return Quantity(name, (len(flat),), flat, "joints")
    shape = _square(tracer)
    values: list[Scalar] = [0.0] * (shape[0] * shape[1])
    for link, block in zip(links, blocks, strict=True):
        for a, row in enumerate(block):
            for b, value in enumerate(row):
                values[(link.start + a) * shape[0] + link.start + b] = value
    return Quantity(name, shape, values, "joints")


def _square(tracer: UnrolledRun) -> tuple[int, int]:
    return tracer.model.nv, tracer.model.nv


def axes_of(link: CanonicalLink) -> Mat:
    """The directions of a link's described frame, as columns, in its canonical one."""
    return Mat(*(Vec(*row) for row in link.axes))


def turned(axes: Mat, record: Record) -> list[Scalar]:
    """A quantity of a link in the directions of its described frame, flat."""
    if isinstance(record, Vec):
        return list(axes.transpose_times(record))
    if isinstance(record, Motion):
        return [*axes.transpose_times(record.angular), *axes.transpose_times(record.linear)]
    if isinstance(record, Force):
        return [*axes.transpose_times(record.moment), *axes.transpose_times(record.force)]
    if isinstance(record, (Mat, Sym)):
        return [x for row in _turned_matrix(axes, Mat(*_rows(record))) for x in row]
    if isinstance(record, Inertia):
        record = record.articulated()
    if isinstance(record, Compliance):
        blocks = (record.A, record.Y.T, record.Y, record.C)
    else:
        blocks = (record.J, record.Y, record.Y.T, record.rho)
    a, b, c, d = (_turned_matrix(axes, Mat(*_rows(block))) for block in blocks)
    return [x for top in ((a, b), (c, d)) for i in range(3) for half in top for x in half[i]]


def _rows(block: Mat | Sym) -> tuple[Vec, Vec, Vec]:
    return (block.x, block.y, block.z) if isinstance(block, Mat) else block.rows()


def _turned_matrix(axes: Mat, matrix: Mat) -> list[list[Scalar]]:
    """axes^T matrix axes, by rows."""
    columns = [axes.transpose_times(matrix @ column) for column in _rows(axes.T)]
    return [list(row) for row in zip(*columns, strict=True)]
