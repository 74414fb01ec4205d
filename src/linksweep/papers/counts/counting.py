"""Operation counts of general arms as polynomials in the number of joints, by step, and of planar chains.

As in the papers, operations on the parameters of a general arm alone are done beforehand and are not counted.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from ...algorithms.forward.composite import composite
from ...algorithms.forward.filter_smoother import filter_smoother
from ...algorithms.mass_matrix.composite_inertia import mass_matrix
from ...errors import ArgumentError
from ...functions.declaration import Algorithm
from ...functions.functions import FUNCTIONS
from ...mechanism.bias import BaseMotion
from ...mechanism.canonical import CanonicalModel, canonical
from ...robots import planar_model
from ...spatial.algebra import ZERO_FORCE, ZERO_VEC, Vec
from ...tracing.count import Counts, count
from ...tracing.expression import ONLINE, Node
from ...tracing.passes import optimise
from ...tracing.program import Array, Label, Program
from ...tracing.tracer import UnrolledTrace
from .published_counts import FIGURE_4, Count, Polynomial, crossing

if TYPE_CHECKING:
    from ...robots.general_arm import GeneralArm

EXPLICIT = ["effective_inertia", "inertia_power"]  # I* and P*, in one program
NUMBERS = range(3, 13)  # of joints
HIGHEST = 4  # degree of any of our counts
_MUL, _ADD = ("mul",), ("add", "sub")


@dataclass(frozen=True)
class Fit:
    """The polynomial through counts for n = first, first + 1, ..."""

    polynomial: Polynomial
    first: int

    def __str__(self) -> str:
        return str(self.polynomial)


def fit(points: Mapping[int, int], highest: int = HIGHEST) -> Fit | None:
    """The polynomial of lowest degree through all points, in exact fractions; None if there is none.

    At least two points more than its coefficients must lie on it. Up to two of the shortest arms may deviate;
    `first` is the smallest n for which the polynomial holds.
    """
    numbers = sorted(points)
    for skipped in range(3):
        rest = numbers[skipped:]
        for degree in range(highest + 1):
            if len(rest) < degree + 3:
                break
            polynomial = _through([(n, Fraction(points[n])) for n in rest[-degree - 1 :]])
            if all(polynomial(n) == points[n] for n in rest):
                return Fit(polynomial, rest[0])
    return None


def _through(points: Sequence[tuple[int, Fraction]]) -> Polynomial:
    """Newton's interpolation."""
    xs = [x for x, _ in points]
    differences = [y for _, y in points]
    for order in range(1, len(points)):
        for k in reversed(range(order, len(points))):
            differences[k] = (differences[k] - differences[k - 1]) / (xs[k] - xs[k - order])
    coefficients = [Fraction(0)]
    for k in reversed(range(len(points))):
        shifted = [Fraction(0), *coefficients]
        coefficients = [a - xs[k] * b for a, b in zip(shifted, [*coefficients, Fraction(0)], strict=True)]
        coefficients[0] += differences[k]
    while len(coefficients) > 1 and not coefficients[-1]:
        coefficients.pop()
    return Polynomial(tuple(coefficients))


@dataclass(frozen=True)
class Fitted:
    """Counts of general arms with n joints, and the polynomials through them."""

    points: dict[int, Counts]
    mul: Fit | None
    add: Fit | None
    div: Fit | None

    @classmethod
    def of(cls, points: Mapping[int, Counts]) -> Fitted:
        columns = ({n: getattr(c, name) for n, c in points.items()} for name in ("mul", "add", "div"))
        return cls(dict(points), *(fit(column) for column in columns))

    @property
    def first(self) -> int:
        """The smallest number of joints for which all three polynomials hold."""
        return max((fit.first for fit in (self.mul, self.add, self.div) if fit), default=min(self.points))

    def __str__(self) -> str:
        """ "105n - 109 / 90n - 105", with divisions where there are some."""
        shown = [str(found) if found else "no polynomial" for found in (self.mul, self.add)]
        if any(counts.div for counts in self.points.values()):
            shown.append(f"{self.div if self.div else 'no polynomial'} div")
        holds = f" (n >= {self.first})" if self.first > min(self.points) else ""
        return " / ".join(shown) + holds


Functions = str | tuple[str, ...] | list[str]  # one function, or several in one program


def general_arm(n: int, joints: str = "R", twist: str = "any") -> GeneralArm:
    """`joints` repeated until there are n of them."""
    from ...robots.general_arm import GeneralArm

    if not isinstance(joints, str) or not joints or set(joints.upper()) - set("RP"):
        raise ArgumentError(f"joints is {joints!r}, expected letters R and P, such as 'R' or 'RRP'.")
    return GeneralArm((joints * n)[:n], twist)


def general_fit(
    function: Functions, method: str | None = None, base_parameters: bool | None = False, joints: str = "R",
    twist: str = "any", numbers: Iterable[int] = NUMBERS,
) -> Fitted:  # fmt: skip
    """Operations of a function of general arms, as polynomials in n; a list of functions is one program."""
    names = tuple(function) if isinstance(function, list) else function
    return Fitted.of({n: _general_counts(n, names, method, base_parameters, joints, twist) for n in numbers})


def explicit_totals(n: int) -> tuple[int, int]:
    """All operations of I* and P* of a general arm with n revolute joints: by direct sums, and by augmented bodies."""
    direct, augmented = (general_arm(n).operation_count(EXPLICIT, m, False) for m in ("direct", "augmented_bodies"))
    return direct.total, augmented.total


@functools.cache
def _general_counts(
    n: int, function: Functions, method: str | None, base_parameters: bool | None, joints: str, twist: str
) -> Counts:
    several = isinstance(function, tuple) and function[1:] and function[1] in FUNCTIONS
    arm = general_arm(n, joints, twist)
    return arm.operation_count(list(function) if several else function, method, base_parameters)


# ---- by step ---------------------------------------------------------------------------------------------------


def step_counts(trace: Callable[[], Program], step: Callable[[Label, frozenset[str]], str]) -> dict[str, Counts]:
    """Count the operations of the program that `trace` returns, by step of the algorithm.

    step(label, inputs) names the step of an operation, from the source line that created it and the inputs that it
    depends on. An operation that two lines share belongs to the first.
    """
    from ...tracing.labels import labelled

    program = labelled(trace)
    names = [array.name for array in program.inputs]
    found: dict[str, Counts] = {}
    for body in program.bodies():
        reads: dict[Node, frozenset[str]] = {}
        for node in body.nodes:
            own = frozenset((names[node.data[0]],)) if node.op == "input" else frozenset()
            reads[node] = own.union(*(reads[arg] for arg in node.args if isinstance(arg, Node)))
            one = _one(node)
            if one is not None:
                name = step(program.labels.get(node, Label()), reads[node])
                found[name] = found.get(name, Counts()) + one
    return found


def _one(node: Node) -> Counts | None:
    if node.level < ONLINE:
        return None
    if node.op in _MUL:
        return Counts(mul=1)
    if node.op in _ADD:
        return Counts(add=1)
    return Counts(div=1) if node.op == "div" else None


def fitted_steps(by_number: Mapping[int, Mapping[str, Counts]]) -> dict[str, Fitted]:
    """The counts of each step for several n, as polynomials."""
    steps = list(dict.fromkeys(name for found in by_number.values() for name in found))
    return {
        name: Fitted.of({n: found.get(name, Counts()) for n, found in by_number.items()}) for name in steps
    }  # fmt: skip


def at_most(found: Counts, bar: Count, n: int) -> bool:
    """Whether a count does not exceed a published one; divisions count as multiplications."""
    return found.mul + found.div <= bar.mul(n) + bar.div(n) and found.add <= bar.add(n)


# ---- planar chains: Rodriguez 1987, section XII, Tables II and III and Fig. 4 -----------------------------------


def planar_arm(n: int) -> CanonicalModel:
    """A planar chain whose links differ in length, mass and inertia, with centers of mass on the line of the joints."""
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
    """Forward dynamics of the planar chain; without bias terms it has neither velocities nor gravity."""
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
    """Fig. 4: flops (pairs of a multiplication and an addition) by n, published and ours, of filter and composite."""
    numbers = list(numbers)
    curves = {name: {n: float(found(n)) for n in numbers} for name, found in FIGURE_4.items()}
    for name, algorithm in (("filter and smoother", filter_smoother), ("composite", composite)):
        counted = {n: count(forward_program(n, algorithm)) for n in numbers}
        curves[f"linksweep, {name}"] = {n: flops(c) for n, c in counted.items()}
    return curves


def flops(counts: Counts) -> float:
    """Pairs of a multiplication and an addition, as in the paper. Its 27N = (26 + 28)/2 N has no divisions."""
    return (counts.mul + counts.add) / 2


def crossings(curves: dict[str, dict[int, float]]) -> dict[str, int | None]:
    """The n from which the filter costs less: by Table III, by the printed total, and by our counts."""
    numbers = sorted(curves["linksweep, composite"])

    def ours(name: str) -> Callable[[int], float]:
        return curves[f"linksweep, {name}"].__getitem__

    published = FIGURE_4["filter and smoother"]
    return {
        "by Table III": crossing(published, FIGURE_4["composite, by Table III"]),
        "as printed": crossing(published, FIGURE_4["composite, as printed"]),
        "linksweep": crossing(ours("filter and smoother"), ours("composite"), numbers),
    }
