"""Rodriguez 1987, section XII: operations for a planar chain, Tables II and III and Fig. 4, beside ours.

The arms have links of different lengths, masses and inertias, with mass centres on the line of the joints, as the
section has them; the general recursion is traced, and finds the section's 3x3 specialisation by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from ..algorithms.forward.composite import composite
from ..algorithms.forward.filter_smoother import filter_smoother
from ..algorithms.mass_matrix.composite_inertia import mass_matrix
from ..catalogue.table import Algorithm
from ..mechanism.bias import BaseMotion
from ..mechanism.canonical import CanonicalModel, canonical
from ..robots import planar_model
from ..spatial.algebra import ZERO_FORCE, ZERO_VEC, Vec
from ..tracing.count import Counts, count
from ..tracing.passes import optimise
from ..tracing.program import Array, Program
from ..tracing.unrolled import UnrolledTrace
from .counting import Fitted
from .published_counts import FIGURE_4, crossing

NUMBERS = range(3, 13)


def planar_arm(n: int) -> CanonicalModel:
    """Links that have nothing in common but the plane."""
    model = planar_model(n)
    links = []
    for i, link in enumerate(model.links):
        length, m, across = 0.37 + 0.019 * i, 1.3 + 0.071 * i, 0.043 + 0.0031 * i
        inertial = replace(
            link.inertial, mass=m, com=(0.41 * length, 0.0, 0.0),
            inertia=((across / 2, 0.0, 0.0), (0.0, across, 0.0), (0.0, 0.0, across)),
        )  # fmt: skip
        position = (0.37 + 0.019 * (i - 1) if i else 0.0, 0.0, 0.0)
        joint = replace(link.joint, placement=replace(link.joint.placement, position=position))
        links.append(replace(link, joint=joint, inertial=inertial))
    return canonical(replace(model, links=tuple(links)))


def forward_program(n: int, algorithm: Algorithm = filter_smoother, bias: bool = False) -> Program:
    """Forward dynamics; without bias terms there is no qd at all, and no gravity."""
    arrays = [Array("q", (n,)), Array("tau", (n,)), *([Array("qd", (n,))] if bias else [])]
    tracer = UnrolledTrace(planar_arm(n), arrays)
    qd = tracer.read("qd") if bias else tracer.zeros()
    base = BaseMotion(ZERO_VEC, ZERO_VEC, -Vec(*tracer.model.gravity) if bias else ZERO_VEC)
    tracer.write_rates(0, algorithm(tracer, qd, tracer.read("tau"), tracer.same(ZERO_FORCE), base).qdd)
    return optimise(tracer.program("planar forward dynamics", [Array("qdd", (n,))]))


def mass_matrix_program(n: int) -> Program:
    tracer = UnrolledTrace(planar_arm(n), [Array("q", (n,))])
    tracer.write_pairs(0, mass_matrix(tracer).elements)
    return optimise(tracer.program("planar mass matrix", [Array("M", (n, n))]))


def filter_counts(bias: bool, numbers: Iterable[int] = NUMBERS) -> Fitted:
    return Fitted.of({n: count(forward_program(n, bias=bias)) for n in numbers})


def figure_4(numbers: Iterable[int] = range(1, 13)) -> dict[str, dict[int, float]]:
    """Fig. 4: flops (a multiplication and an addition) by n; published and ours, filter and composite."""
    numbers = list(numbers)
    curves = {name: {n: float(found(n)) for n in numbers} for name, found in FIGURE_4.items()}
    for name, algorithm in (("filter and smoother", filter_smoother), ("composite", composite)):
        counted = {n: count(forward_program(n, algorithm)) for n in numbers}
        curves[f"linksweep, {name}"] = {n: flops(c) for n, c in counted.items()}
    return curves


def flops(counts: Counts) -> float:
    """The paper's: pairs of a multiplication and an addition. Divisions are not in its 27N, which is (26 + 28)/2."""
    return (counts.mul + counts.add) / 2


def crossings(curves: dict[str, dict[int, float]]) -> dict[str, int | None]:
    """From which n on the filter costs less: by Table III, by the printed total, and by our counts."""
    numbers = sorted(curves["linksweep, composite"])

    def ours(name: str) -> Callable[[int], float]:
        return curves[f"linksweep, {name}"].__getitem__

    published = FIGURE_4["filter and smoother"]
    return {
        "by Table III": crossing(published, FIGURE_4["composite, by Table III"]),
        "as printed": crossing(published, FIGURE_4["composite, as printed"]),
        "linksweep": crossing(ours("filter and smoother"), ours("composite"), numbers),
    }
