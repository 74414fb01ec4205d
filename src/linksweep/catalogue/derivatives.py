"""How derivatives are traced: functions of a robot by their inputs, along rates where q is one of them.

q moves along the rates of joints, q' = Omega(q) v, so that derivatives by q have nv columns for every joint, as in
Pinocchio; `coordinates` asks for those by the numbers of q themselves. There are two ways: forward differentiation of
what was traced, for any function, and the sweeps of algorithms/inverse/inverse_derivatives.py (`by_sweeps`). Products
of derivatives with vectors cost a small multiple of the function: forward (jvp) or in reverse (vjp).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Collection, Sequence

from ..algorithms.forward.forward_derivatives import forward_dynamics_derivatives
from ..algorithms.inverse.inverse_derivatives import inverse_dynamics_derivatives
from ..algorithms.mass_matrix.composite_inertia import mass_matrix
from ..mechanism.canonical import CanonicalModel
from ..spatial.tree_matrix import InverseFactor
from ..tracing.columns import Column, ColumnLoop
from ..tracing.differentiate import Tangent, adjoints, derivative
from ..tracing.expression import Node, Operand
from ..tracing.program import Array
from ..tracing.rolled import Rolled
from ..tracing.unrolled import UnrolledTrace
from .defaults import columns_in_loop, default_method, sweeps_serve
from .table import Algorithm, Record, Request

Vectors = dict[tuple[Request | None, str], str]
Known = dict[tuple[object, ...], list[Operand]]

INVERSE = ("inverse_dynamics", "bias_forces", "gravity_forces")


def loops_serve(model: CanonicalModel, request: Request) -> bool:
    """Whether this derivative can run as a loop over links: those that sweeps have."""
    return model.has_constant_columns and request.function in INVERSE and _swept(request, ("q", "qd", "qdd"))


def _swept(request: Request, inputs: Collection[str]) -> bool:
    plain = not (request.product or request.along or request.coordinates)
    return plain and len(request.by) == 1 and request.by[0] in inputs


def product_inputs(requests: Sequence[Request], results: dict[Request, str]) -> Vectors:
    """The names of the tangents and weights that products take: by (None, input) for a tangent, which all share, and
    by (plain request, "") for the weights of its result, numbered where results of several are called the same. The
    tangents of a further jvp, of what is a derivative already, are called u_ and are found by (None, u_input)."""
    found: Vectors = {}
    for request in requests:
        if request.product == "jvp":
            found |= {(None, name): f"v_{name}" for name in request.moved}
        elif request.product == "vjp" and (request.plain, "") not in found:
            name = f"w_{results[request.plain]}"
            taken = sum(re.fullmatch(rf"{re.escape(name)}(_\d+)?", other) is not None for other in found.values())
            found[request.plain, ""] = f"{name}_{taken + 1}" if taken else name
    for request in requests:
        found |= {(None, f"u_{name}"): f"u_{name}" for name in request.along}
    return found


def product_result(request: Request, output: Array, shapes: dict[str, tuple[int, ...]]) -> Array:
    """What a product with the derivatives of this output is called, and its shape; or the output itself."""
    if request.product == "jvp":
        return Array(f"jvp_{output.name}", output.shape)
    if not request.product:
        return output
    (moved,) = request.moved
    return Array(f"vjp_{output.name}_{moved}", directions(request, moved, shapes))


def directions(request: Request, by: str, shapes: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The axes that a derivative by this input adds."""
    return shapes["qd"] if by == "q" and not request.coordinates else shapes[by]


def trace_all(
    tracer: Rolled | UnrolledTrace, requests: Sequence[Request], trace_plain: Callable[[Request, int], None],
    record_of: Algorithm, results: dict[Request, str], rolled: bool, loops: bool,
) -> None:  # fmt: skip
    """Trace the requests; what several derivatives are of is traced once.

    rolled: as loops over the links. loops: columns of results may run as a loop where all else is written out.

    trace_plain: traces a request as an output; record_of(tracer, request, made): runs on its inputs the algorithm that
    `made` makes of the request's own; results: what those of plain requests are called.
    """
    members: dict[Request, list[int]] = {}
    for index, request in enumerate(requests):
        members.setdefault(request.plain, []).append(index)
    vectors = product_inputs(requests, results)
    for plain, indices in members.items():
        swept = _trace_swept(tracer, plain, {k: requests[k] for k in indices}, record_of, rolled, loops)
        known: Known = {}
        for k in indices:
            request = requests[k]
            if k not in swept and not request.slope:
                trace_plain(plain, k)
            elif k not in swept:
                assert isinstance(tracer, UnrolledTrace)  # loops have the derivatives that sweeps have, and no other
                if not known:
                    trace_plain(plain, len(requests))
                    known[()] = list(tracer.results.pop(len(requests)))
                values = _derivative(tracer, request, request.by, known, vectors)
                if request.along:
                    tangents = {name: vectors[None, f"u_{name}"] for name in request.along}
                    values = _times_tangents(tracer, values, tangents, request.coordinates)
                tracer.write(k, values)


def _trace_swept(
    tracer: Rolled | UnrolledTrace, plain: Request, members: dict[int, Request], record_of: Algorithm, rolled: bool,
    loops: bool,
) -> set[int]:  # fmt: skip
    """Trace what sweeps have of these, where they cost less; the outputs that are done."""
    model = tracer.model
    if model.ties or model.springs or not model.has_constant_columns:  # of which the sweeps know nothing
        return set()
    inputs = {"inverse": ("q", "qd", "qdd"), "forward": ("q", "qd", "tau")}
    kind = "inverse" if plain.function in INVERSE else "forward" if plain.function == "forward_dynamics" else ""
    wanted = {k: r.by[0] for k, r in members.items() if kind and _swept(r, inputs[kind])}
    if not wanted or not (rolled or kind == "forward" or sweeps_serve(tracer.model, wanted.values())):
        return set()
    if kind == "forward":
        assert isinstance(tracer, UnrolledTrace)
        record = record_of(tracer, plain, lambda own: functools.partial(forward_dynamics_derivatives, forward=own))
        _write_forward(tracer, record, wanted, loops and tracer.columns is None and columns_in_loop(model))
    elif set(wanted.values()) == {"qdd"}:
        for k in wanted:
            tracer.write_pairs(k, mass_matrix(tracer).elements)
        return set(wanted)
    else:
        record = record_of(tracer, plain, lambda own: inverse_dynamics_derivatives)
        tracer.write_pair_blocks(record.elements, wanted)
    if kind == "inverse" and plain.method != default_method(plain.function, tracer.model, rolled):
        return set(wanted)  # the values have a method of their own
    values = [k for k, request in members.items() if not request.slope]
    for k in values:
        if kind == "forward":
            tracer.write_rates(k, record.qdd)
        else:
            tracer.write_forces(k, record.tau)
    return {*wanted, *values}


def _write_forward(tracer: UnrolledTrace, record: Record, wanted: dict[int, str], loops: bool) -> None:
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
    tracer: UnrolledTrace, record: Record, results: dict[int, list[Operand]], wanted: dict[int, str]
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


def _derivative(
    tracer: UnrolledTrace, plain: Request, by: tuple[str, ...], known: Known, vectors: Vectors
) -> list[Operand]:
    """The derivative by one input after the other, flat; what was asked for before is kept in `known`."""
    key = (by, plain.coordinates, plain.product, plain.moved) if by or plain.product else ()
    if key in known:
        return known[key]
    if not by:
        known[key] = _product(tracer, plain, known[()], vectors)
        return known[key]
    inner = _derivative(tracer, plain, by[:-1], known, vectors)
    seeds, width = _seeds(tracer, by[-1], plain.coordinates)
    if len(by) < 2 or by[-2] != by[-1]:
        known[key] = derivative(inner, seeds, width)
        return known[key]
    own = _joint_of(tracer.model) if by[-1] == "q" and not plain.coordinates else list(range(width))
    entries: list[Operand] = [0.0] * (len(inner) * width)
    for i in range(width):  # the order of two derivatives does not matter, but for rates of one joint
        wanted = [j for j in range(width) if j >= i or own[j] == own[i]]
        kept = {node: {j: x for j, x in tangent.items() if j in set(wanted)} for node, tangent in seeds.items()}
        part = derivative(inner[i::width], kept, width)
        for row in range(len(inner) // width):
            for j in wanted:
                entries[(row * width + i) * width + j] = part[row * width + j]
                if own[j] != own[i] or i == j:
                    entries[(row * width + j) * width + i] = part[row * width + j]
    known[key] = entries
    return entries


def _product(tracer: UnrolledTrace, request: Request, values: list[Operand], vectors: Vectors) -> list[Operand]:
    """The derivatives times the tangents of inputs, or the weights of the result times the derivatives by one input."""
    if request.product == "vjp":
        seeds, width = _seeds(tracer, request.moved[0], request.coordinates)
        found = adjoints(values, tracer.read_flat(vectors[request.plain, ""]), seeds)
        total: list[Operand] = [0.0] * width
        for node, slopes in seeds.items():
            for direction, slope in slopes.items():
                total[direction] = total[direction] + found[node] * slope
        return total
    tangents = {name: vectors[None, name] for name in request.moved}
    return _times_tangents(tracer, values, tangents, request.coordinates)


def _times_tangents(
    tracer: UnrolledTrace, values: list[Operand], tangents: dict[str, str], coordinates: bool
) -> list[Operand]:  # fmt: skip
    """The derivatives with respect to inputs times their tangents, by the tangents' names."""
    along: dict[Node, Tangent] = {}
    for name, tangent in tangents.items():
        given = tracer.read_flat(tangent)
        for node, slopes in _seeds(tracer, name, coordinates)[0].items():
            rate: Operand = 0.0
            for direction, slope in slopes.items():
                rate = rate + slope * given[direction]
            along[node] = {0: rate}
    return derivative(values, along, 1)


def _seeds(tracer: UnrolledTrace, by: str, coordinates: bool) -> tuple[dict[Node, Tangent], int]:
    """The tangents of the nodes that an input moves, and the number of directions."""
    leaves = tracer.read_flat(by)
    if by != "q" or coordinates:
        return {leaf: {i: 1.0} for i, leaf in enumerate(leaves) if isinstance(leaf, Node)}, len(leaves)
    seeds: dict[Node, Tangent] = {}
    for link in tracer.model.links:
        for node, slopes in link.type.slopes(leaves[link.coordinates]):
            assert isinstance(node, Node)
            seeds[node] = {link.start + f: slope for f, slope in enumerate(slopes) if slope is not None}
    return seeds, tracer.model.nv


def _joint_of(model: CanonicalModel) -> list[int]:
    """For each rate, the joint it belongs to."""
    found = [0] * model.nv
    for k, link in enumerate(model.joints):
        for f in range(link.nv):
            found[link.start + f] = k
    return found
