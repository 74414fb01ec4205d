"""Analytical derivatives of inverse and forward dynamics by sweeps: a rewrite of derivatives of the same function.

All derivatives can be computed by differentiating a traced program (computation.py). For the first derivatives of
joint forces and accelerations, sweeps of their own (algorithms/inverse/inverse_derivatives.py) share most of their work
and can run as loops over the links. They are chosen where they cost less (`defaults.sweeps_serve`).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..algorithms.forward.forward_derivatives import forward_dynamics_derivatives
from ..algorithms.inverse.inverse_derivatives import inverse_dynamics_derivatives
from ..algorithms.mass_matrix.composite_inertia import mass_matrix
from ..spatial.tree_matrix import InverseFactor
from ..tracing.expression import Operand
from ..tracing.rolled import Rolled
from ..tracing.tracer import Column, ColumnLoop, UnrolledRun
from .declaration import Record
from .defaults import columns_in_loop, default_method, sweeps_serve
from .functions import record_of

if TYPE_CHECKING:
    from .computation import RobotFunction

INVERSE = ("inverse_dynamics", "bias_forces", "gravity_forces")


def can_be_rolled(function: RobotFunction, wrt: str) -> bool:
    """Return whether the derivative with respect to this input can run as a loop over the links: if sweeps have it."""
    return function.model.has_constant_columns and function.function in INVERSE and wrt in ("q", "qd", "qdd")


def trace_swept(
    tracer: Rolled | UnrolledRun, function: RobotFunction, outputs: Mapping[int, str | None], *, rolled: bool,
    loops: bool,
) -> set[int]:  # fmt: skip
    """Trace derivatives of one function by sweeps, if they cost less. Return the outputs that are done.

    outputs: the input that each output is a derivative with respect to, None for the values. rolled: as loops over the
    links. loops: columns of results may run as a loop where all else is unrolled.
    """
    model = tracer.model
    if model.ties or model.springs or not model.has_constant_columns:  # of which the sweeps know nothing
        return set()
    inputs = {"inverse": ("q", "qd", "qdd"), "forward": ("q", "qd", "tau")}
    name = function.function
    kind = "inverse" if name in INVERSE else "forward" if name == "forward_dynamics" else ""
    wanted = {k: wrt for k, wrt in outputs.items() if kind and wrt in inputs[kind]}
    if not wanted or not (rolled or kind == "forward" or sweeps_serve(model, wanted.values())):
        return set()
    if kind == "forward":
        assert isinstance(tracer, UnrolledRun)
        record = record_of(tracer, function, lambda own: functools.partial(forward_dynamics_derivatives, forward=own))
        _write_forward(tracer, record, wanted, loops and tracer.columns is None and columns_in_loop(model))
    elif set(wanted.values()) == {"qdd"}:
        for k in wanted:
            tracer.write_pairs(k, mass_matrix(tracer).elements)
        return set(wanted)
    else:
        record = record_of(tracer, function, lambda own: inverse_dynamics_derivatives)
        tracer.write_pair_blocks(record.elements, wanted)
    if kind == "inverse" and function.method != default_method(name, model, rolled):
        return set(wanted)  # the values have a method of their own
    values = [k for k, wrt in outputs.items() if wrt is None]
    for k in values:
        if kind == "forward":
            tracer.write_rates(k, record.qdd)
        else:
            tracer.write_forces(k, record.tau)
    return {*wanted, *values}


def _write_forward(tracer: UnrolledRun, record: Record, wanted: dict[int, str], loops: bool) -> None:
    """dqdd = -M^-1 dtau at qdd, by columns, and M^-1 itself, of which one half is computed.

    loops: the columns run as a loop.
    """
    places = tracer.places()
    n, M = len(places), tracer.tree_matrix({pair: blocks.qdd.above for pair, blocks in record.elements.items()})
    solved = {k: by for k, by in wanted.items() if by != "tau"}
    tracer.write_pair_blocks(record.elements, solved)
    results: dict[int, list[Operand]] = {k: [0.0] * (n * n) for k in wanted}
    known = _write_free(tracer, record, {k: results[k] for k in solved}, solved)
    columns: list[Column] = []
    for c in range(n):
        given = {k: [tracer.results[k][place * n + c] for place in places] for k in solved if (k, c) not in known}
        columns += [Column(c, given, tuple((k, M.filled(b)) for k, b in given.items()))] if given else []
    loops = loops and bool(columns)
    whole = len(solved) < len(wanted)  # M^-1 itself is wanted, which is made of L^-1
    serves = loops or M.inverse_serves([b for column in columns for b in column.made_from.values()], whole)
    inverse = M.inverse_factor() if serves or whole else None
    if loops and inverse is not None:
        tracer.columns = _column_loop(columns, inverse, places)
        columns = []
    for column in columns:
        for k, b in column.made_from.items():
            found = inverse.times(b)[0] if serves and inverse is not None else M.solve(b)
            for place, value in zip(places, found, strict=True):
                results[k][place * n + column.number] = -value
    for k in wanted.keys() - solved.keys():
        assert inverse is not None
        for r, row in zip(places, inverse.full(), strict=True):
            for c, value in zip(places, row, strict=True):
                results[k][r * n + c] = value
    for k, values in results.items():
        tracer.write(k, values)


def _write_free(
    tracer: UnrolledRun, record: Record, results: dict[int, list[Operand]], wanted: dict[int, str]
) -> set[tuple[int, int]]:
    """Write the columns that need no M, all zero but for the rows of their own joint: (output, column) of each."""
    found: set[tuple[int, int]] = set()
    for link, free in zip(tracer.model.links, record.free, strict=True):
        for k, by in wanted.items():
            for f, column in enumerate(getattr(free, by)):
                if column is not None:
                    found.add((k, link.start + f))
                    for row, value in enumerate(column):
                        results[k][(link.start + row) * tracer.model.nv + link.start + f] = value
    return found


def _column_loop(columns: Sequence[Column], inverse: InverseFactor, places: Sequence[int]) -> ColumnLoop:
    """-M^-1 times each of these columns."""
    pairs = list(inverse.entries)

    def made(given: Sequence[Sequence[Operand]], shared: Sequence[Operand]) -> Sequence[Sequence[Operand]]:
        entries = dict(zip(pairs, shared[: len(pairs)], strict=True))
        return InverseFactor(entries, shared[len(pairs) :]).times(*given)

    return ColumnLoop(columns, [*inverse.entries.values(), *(-d for d in inverse.diagonal)], made, places)
