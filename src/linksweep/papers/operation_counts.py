"""Operation counts of general arms as polynomials in the number of joints, and the papers' tables beside ours.

As in the papers, operations on the parameters of a general arm alone are done beforehand and are not counted.
`linksweep count` prints these counts, `linksweep count --tables` the comparisons (docs/counts.md).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from ..algorithms.forward.composite import composite
from ..algorithms.forward.filter_smoother import filter_smoother
from ..algorithms.mass_matrix.composite_inertia import mass_matrix
from ..errors import ArgumentError
from ..functions.computation import Parametric
from ..functions.declaration import Algorithm
from ..functions.functions import FUNCTIONS
from ..mechanism.bias import BaseMotion
from ..mechanism.canonical import CanonicalModel, canonical
from ..robots import planar_model
from ..spatial.algebra import ZERO_FORCE, ZERO_VEC, Vec
from ..tracing.count import Counts, count
from ..tracing.expression import ONLINE, Node
from ..tracing.passes import optimise
from ..tracing.program import Array, Label, Program
from ..tracing.tracer import UnrolledTrace
from . import published_counts as published
from .published_counts import FIGURE_4, Count, Polynomial, Table, crossing

if TYPE_CHECKING:
    from ..robots.general_arm import GeneralArm

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
    from ..robots.general_arm import GeneralArm

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
    from ..tracing.labels import labelled

    program = labelled(trace)
    names = [array.name for array in program.inputs]
    counts: dict[str, Counts] = {}
    for body in program.bodies():
        reads: dict[Node, frozenset[str]] = {}
        for node in body.nodes:
            read = frozenset((names[node.data[0]],)) if node.op == "input" else frozenset()
            reads[node] = read.union(*(reads[arg] for arg in node.args if isinstance(arg, Node)))
            one = _one(node)
            if one is not None:
                name = step(program.labels.get(node, Label()), reads[node])
                counts[name] = counts.get(name, Counts()) + one
    return counts


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
    steps = list(dict.fromkeys(name for counts in by_number.values() for name in counts))
    return {
        name: Fitted.of({n: counts.get(name, Counts()) for n, counts in by_number.items()}) for name in steps
    }  # fmt: skip


def at_most(counts: Counts, bar: Count, n: int) -> bool:
    """Whether a count does not exceed a published one; divisions count as multiplications."""
    return counts.mul + counts.div <= bar.mul(n) + bar.div(n) and counts.add <= bar.add(n)


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


# ---- tables: published counts beside ours -------------------------------------------------------------------------

Cell = str | int
Step = Callable[[Label, frozenset[str]], str]  # names the step of an operation by its label and inputs
SIX = 6
STEP_NUMBERS = range(3, 9)  # joints for counts by step: tracing with labels takes longer
UNNAMED = "no named step"


@dataclass(frozen=True)
class Compared:
    """A table of published counts beside ours."""

    title: str
    source: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def as_dict(self) -> dict[str, object]:
        rows = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return {"title": self.title, "source": self.source, "rows": rows}

    def markdown(self) -> str:
        rows = [self.columns, *([str(cell) for cell in row] for row in self.rows)]
        lines = [f"| {' | '.join(cell.strip().replace('*', chr(92) + '*') for cell in row)} |" for row in rows]
        return "\n".join([lines[0], "|---" * len(self.columns) + "|", *lines[1:]]) + "\n"

    def __str__(self) -> str:
        cells = [self.columns, *([str(cell) for cell in row] for row in self.rows)]
        widths = [max(len(row[k]) for row in cells) for k in range(len(self.columns))]
        lines = [f"{self.title} ({self.source})"]
        for index, row in enumerate(cells):
            lines.append("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
            if index == 0:
                lines.append("-" * max(len(line) for line in lines[1:]))
        return "\n".join(lines)


def tables() -> list[Compared]:
    """Every table, in the order of the papers."""
    return [make() for make in TABLES.values()]


# ---- whole algorithms ------------------------------------------------------------------------------------------


def _beside(rows: Iterable[tuple[str, str, Count | None, tuple[int, int] | None]], ours: Sequence[tuple[str, Fitted]]):
    """Published rows, then ours, each with its counts for n = 6."""
    table: list[tuple[Cell, ...]] = []
    for author, formulation, counted, six in rows:
        if counted is not None:
            six = int(counted.mul(SIX) + counted.div(SIX)), int(counted.add(SIX))
        shown = (str(counted.mul), str(counted.add)) if counted else ("not given", "not given")
        table.append((author, formulation, *shown, *(six or ("", ""))))
    for name, fitted in ours:
        counts = fitted.points[SIX]
        table.append(("linksweep", name, str(fitted.mul), str(fitted.add), counts.mul + counts.div, counts.add))
    return tuple(table)


_ALGORITHMS = ("author", "formulation", "multiplications", "additions", "mul, n = 6", "add, n = 6")


def _of(algorithms: Iterable[published.Algorithm]) -> list[tuple[str, str, Count | None, tuple[int, int] | None]]:
    return [(a.author, a.formulation, a.count, a.six) for a in algorithms]


def summary() -> Compared:
    """Six revolute joints of general geometry: the best published count of each task, and ours."""
    cases: list[tuple[str, str, Callable[[], Fitted]]] = [
        ("kane", "521 / 435, Angeles, Ma & Rojas", functools.partial(general_fit, "inverse_dynamics", "kane")),
        (
            "boundary_value",
            "701 / 520, Kozlowski",
            functools.partial(general_fit, "inverse_dynamics", "boundary_value"),
        ),
        (
            "boundary_value, right twists",
            "523 / 432, Kozlowski",
            functools.partial(general_fit, "inverse_dynamics", "boundary_value", False, "R", "right"),
        ),
        (
            "filter_smoother",
            "1085 / 982, Featherstone",
            functools.partial(general_fit, "forward_dynamics", "filter_smoother"),
        ),
        ("I* and P*", "1647 / 1615, Kang", functools.partial(general_fit, EXPLICIT, "augmented_bodies")),
        (
            "best inverse dynamics",
            "425 / 369, Khalil & Kleinfinger",
            functools.partial(general_fit, "inverse_dynamics", "khalil_kleinfinger", True),
        ),
        ("mass matrix", "460 / 395, Featherstone", functools.partial(general_fit, "mass_matrix", "composite", True)),
    ]
    rows = []
    for label, theirs, fit in cases:
        fitted = fit()
        six = fitted.points[SIX]
        rows.append((label, theirs, f"{six.mul + six.div} / {six.add}", str(fitted)))
    return Compared(
        "Multiplications and divisions / additions, six revolute joints of general geometry",
        "the best that each source prints",
        ("what", "published", "linksweep", "for n joints"),
        tuple(rows),
    )


def angeles_1() -> Compared:
    """Inverse dynamics of general arms."""
    ours = [("kane", general_fit("inverse_dynamics", "kane"))]
    for method in ("newton_euler", "khalil_kleinfinger"):
        ours.append((method, general_fit("inverse_dynamics", method)))
        ours.append((f"{method}, base parameters", general_fit("inverse_dynamics", method, True)))
    ours.insert(1, ("kane, first axis vertical", Fitted.of({n: _vertical(n) for n in NUMBERS})))
    coincident = published.ANGELES_FIRST_AXES_COINCIDE
    rows = [*_of([*published.ANGELES_1, coincident]), *_of(published.OTHERS["inverse_dynamics"])]
    return Compared(
        "Inverse dynamics of general arms, revolute joints",
        "Angeles, Ma & Rojas 1988, Table 1; then Featherstone, Khalil & Kleinfinger",
        _ALGORITHMS,
        _beside(rows, ours),
    )


def _vertical(n: int) -> Counts:
    """Kane's algorithm where the first axis is that of the base, Z0 = Z1, and gravity is along it."""
    from ..robots.general_arm import GeneralArm

    program = GeneralArm("R" * n, (0, *[None] * (n - 1))).recipe("inverse_dynamics", "kane", False)
    (torques,) = program.parts
    assert isinstance(torques, Parametric)
    geometry, _ = torques.sets  # gravity is a number then, that of the example: (0, 0, -9.81)
    return count(replace(program, parts=(replace(torques, sets=(geometry,)),)).trace())


def mass_matrices() -> Compared:
    ours = [("composite, base parameters", general_fit("mass_matrix", "composite", True))]
    ours.insert(0, ("composite", general_fit("mass_matrix", "composite", False)))
    return Compared(
        "Mass matrix of general arms, revolute joints",
        "Featherstone, Table 10.1",
        _ALGORITHMS,
        _beside(_of(published.OTHERS["mass_matrix"]), ours),
    )


def forward_dynamics() -> Compared:
    names = ("filter_smoother", "fd3", "fd4", "composite")
    ours = [(name, general_fit("forward_dynamics", name)) for name in names]
    theirs = [("Kozlowski", "filter and smoother", published.KOZLOWSKI_2.total, None)]
    return Compared(
        "Forward dynamics of general arms, revolute joints; divisions counted as multiplications for n = 6",
        "Kozlowski 1990, section 4.2; Featherstone, Table 10.1",
        _ALGORITHMS,
        _beside([*_of(published.OTHERS["forward_dynamics"]), *theirs], ours),
    )


def published_for(function: str, method: str | None, base_parameters: bool, twist: str) -> str:
    """The published count to compare with a fit for general arms with revolute joints; empty if there is none."""
    khalil = published.OTHERS["inverse_dynamics"][1]
    known = {
        ("inverse_dynamics", "kane", False, "any"): ("Angeles, Ma & Rojas", published.ANGELES_STAGES.total),
        ("inverse_dynamics", "khalil_kleinfinger", True, "any"): (khalil.author, khalil.count),
        ("forward_dynamics", "filter_smoother", False, "any"): ("Kozlowski", published.KOZLOWSKI_2.total),
        ("mass_matrix", "composite", False, "any"): ("Featherstone", published.OTHERS["mass_matrix"][0].count),
        ("explicit_model", "augmented_bodies", False, "any"): ("Kang", published.KANG.total),
    } | {
        ("inverse_dynamics", "boundary_value", False, which): ("Kozlowski", table.total)
        for which, table in published.KOZLOWSKI_1.items()
    }
    source = known.get((function, method or "", base_parameters, twist))
    return f"{source[0]}: {source[1]}" if source else ""


def comparison() -> Compared:
    """Kozlowski's section 4: his algorithms, Khosla, Brandl and the composite method, all operations together."""
    inverse = {twist: general_fit("inverse_dynamics", "boundary_value", twist=twist) for twist in ("any", "right")}
    ours = {name: general_fit("forward_dynamics", name) for name in ("filter_smoother", "composite")}
    total = published.KOZLOWSKI_2.total
    rows: list[tuple[Cell, ...]] = []
    for n in NUMBERS:
        brandl = published.BRANDL.at(n)
        assert brandl is not None
        rows.append(
            (
                f"n = {n}", int(total.mul(n) + total.div(n) + total.add(n)), int(sum(brandl)),
                int(published.COMPOSITE_TOTAL(n)), *(fitted.points[n].total for fitted in ours.values()),
            )
        )  # fmt: skip
    columns = (
        "forward dynamics",
        "Kozlowski, filter",
        "Brandl",
        "composite method",
        "ours: filter_smoother",
        "composite",
    )
    for twist, (mul, add) in published.KHOSLA.items():
        published_total = published.KOZLOWSKI_1[twist].total
        kozlowski = f"{published_total.mul(SIX)} / {published_total.add(SIX)}"
        six = inverse[twist].points[SIX]
        label = f"inverse, n = 6, twist {'any' if twist == 'any' else '0, ±90°'}"
        rows.append((label, f"two-sided {kozlowski}", f"Khosla {mul} / {add}", "", f"{six.mul} / {six.add}", ""))
    return Compared(
        "Kozlowski's comparison: multiplications, additions and divisions together; multiplications / additions below",
        "Kozlowski 1990, section 4",
        columns,
        tuple(rows),
    )


# ---- step by step ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Group:
    """Rows of a published table, by index, that correspond to one step of our algorithm."""

    name: str
    rows: tuple[int, ...]


def _step_table(table: Table, groups: Sequence[Group], ours: dict[str, Fitted], total: Fitted) -> Compared:
    """Each published row with our count, or our count below several rows that our step combines."""
    rows: list[tuple[Cell, ...]] = []

    def line(label: str, counted: Count | None, fitted: Fitted | None) -> tuple[Cell, ...]:
        six = "" if counted is None else _six(int(counted.mul(SIX)), int(counted.add(SIX)), int(counted.div(SIX)))
        our_cells = ("", "")
        if fitted is not None:
            counts = fitted.points[SIX]
            our_cells = (str(fitted), _six(counts.mul, counts.add, counts.div))
        return (label, "" if counted is None else str(counted), six, *our_cells)

    for group in groups:
        fitted = ours.get(group.name)
        for place in group.rows:
            row = table.rows[place]
            note = f" [printed: {row.printed}]" if row.printed else ""
            rows.append(line(row.label + note, row.count, fitted if len(group.rows) == 1 else None))
        if len(group.rows) > 1:
            counts = [table.rows[place].count for place in group.rows]
            rows.append(line(f"  together: {group.name}", sum(counts[1:], counts[0]), fitted))
    known = {group.name for group in groups}
    rows += [line(name, None, fitted) for name, fitted in ours.items() if name not in known]
    rows.append(line("total", table.total, total))
    return Compared(table.title, table.source, ("step", "published", "n = 6", "linksweep", "ours, n = 6"), tuple(rows))


def _six(mul: int, add: int, div: int) -> str:
    return f"{mul} / {add}" + (f" / {div} div" if div else "")


def _summed(by_number: dict[int, dict[str, Counts]]) -> Fitted:
    return Fitted.of({n: sum(counts.values(), Counts()) for n, counts in by_number.items()})


def _general_steps(
    table: Table, groups: Sequence[Group], function: Functions, method: str | None, step: Step, twist: str = "any"
) -> Compared:
    by_number = {
        n: step_counts(general_arm(n, twist=twist).recipe(function, method, False).trace, step) for n in STEP_NUMBERS
    }
    return _step_table(table, groups, fitted_steps(by_number), _summed(by_number))


def angeles_stages() -> Compared:
    groups = [Group("1", (0,)), Group("2", (1,)), Group("3", (2,))]
    stages = {"outward step": "2", "inward step": "3"}
    return _general_steps(
        published.ANGELES_STAGES, groups, "inverse_dynamics", "kane", lambda label, _: stages.get(label.step, UNNAMED)
    )


KOZLOWSKI_STEPS = {
    "b, n and velocities": ("(3.1)", "(3.2)", "(3.7)", "(3.14)"),
    "costate": ("(3.10)", "(3.11)"),
    "state": ("(3.8)", "(3.9)", "(3.12)"),
}


def _kozlowski_step(label: Label, inputs: frozenset[str]) -> str:
    return next((name for name, found in KOZLOWSKI_STEPS.items() if any(e in label.equation for e in found)), UNNAMED)


def kozlowski_1(twist: str) -> Compared:
    groups = [Group("b, n and velocities", (0,)), Group("costate", (1, 2)), Group("state", (3, 4))]
    table = published.KOZLOWSKI_1[twist]
    return _general_steps(table, groups, "inverse_dynamics", "boundary_value", _kozlowski_step, twist)


FILTER_GROUPS = {  # by the equations of Kozlowski 1990, as the comments of filter_smoother.py have them
    "(3.50)": "gain", "(3.51)": "innovations", "(3.53)": "residuals", "(3.52)": "state", "(3.54)": "inertia",
    "(3.48)": "inertia", "(3.56)": "costate", "(3.57)": "joint acceleration", "(3.58)": "costate",
}  # fmt: skip


def _filter_step(label: Label, inputs: frozenset[str]) -> str:
    if label.step == "velocity step":
        return "b, n and velocities"
    for equation, name in FILTER_GROUPS.items():
        if equation in label.equation:
            return name
    if "(3.14)" in label.equation:
        return "b, n and velocities"
    if "(3.47)" in label.equation:  # z = outer z + b: b is what does not depend on the joint forces
        return "state" if "tau" in inputs else "b, n and velocities"
    if "(37)" in label.equation:  # to the parent: the inertia depends on positions only
        return "state" if inputs & {"tau", "qd"} else "inertia"
    return UNNAMED


def kozlowski_2() -> Compared:
    groups = [
        Group("b, n and velocities", (0,)), Group("state", (1, 6)), Group("inertia", (2, 7)), Group("gain", (3,)),
        Group("innovations", (4,)), Group("residuals", (5,)), Group("costate", (8, 10)),
        Group("joint acceleration", (9,)),
    ]  # fmt: skip
    return _general_steps(published.KOZLOWSKI_2, groups, "forward_dynamics", "filter_smoother", _filter_step)


KANG_STEPS = {  # by the comment or the target of the line
    "pose": "1", "c": "1", "Appendix 1, 1st order": "3", "MHc": "5", "(14), (17)": "4", "(23), (24)": "4", "(P2)": "4",
    "Appendix 1, rotation": "5", "(25), (P5)": "6", "(26), (P6)": "6", "(27), (P8)": "6", "step 7": "7",
}  # fmt: skip


def _kang_step(label: Label, inputs: frozenset[str]) -> str:
    if label.statement.startswith("return Pair("):  # III H, for (26)
        return "6"
    found = KANG_STEPS.get(label.target) or KANG_STEPS.get(label.equation)
    return found or ("2" if label.equation.startswith(("(28)", "(29)")) else UNNAMED)


def kang() -> Compared:
    groups = [Group(str(k + 1), (k,)) for k in range(7)]
    return _general_steps(published.KANG, groups, EXPLICIT, "augmented_bodies", _kang_step)


def kang_savings() -> Compared:
    """Kang's claim, 44 %, beside ours: operations of I* and P*, six revolute joints of general geometry."""
    before = published.KANG_PREVIOUS_TOTAL
    steps = int(published.KANG.total.mul(SIX) + published.KANG.total.add(SIX))
    direct, augmented = explicit_totals(SIX)
    totals = [  # what, all operations, those of the same author's direct sums (0: unknown)
        ("Kang's reference [10], direct sums", before, before),
        ("Kang, as printed", published.KANG_PRINTED_TOTAL, before),
        ("Kang, sum of its steps", steps, before),
        ("Li, Kang's reference [4]: another form of the model", published.KANG_LI_TOTAL, 0),
        ("linksweep, direct", direct, direct),
        ("linksweep, augmented_bodies", augmented, direct),
    ]
    rows = [
        (name, total, *("" if total >= base else f"{1 - total / base:.1%}" for base in (before, own)))
        for name, total, own in totals
    ]
    return Compared(
        "I* and P*: all operations, n = 6",
        "Kang, introduction and conclusion",
        ("what", "operations", f"below {before}", "below the same author's direct sums"),
        tuple(rows),
    )


# ---- the planar chain ------------------------------------------------------------------------------------------


def rodriguez_2() -> Compared:
    groups = [
        Group("state", (0, 5)), Group("inertia", (1, 6)), Group("gain", (2,)), Group("innovations", (3,)),
        Group("residuals", (4,)), Group("costate", (7, 9)), Group("joint acceleration", (8,)),
    ]  # fmt: skip
    found = {n: step_counts(functools.partial(forward_program, n), _filter_step) for n in STEP_NUMBERS}
    compared = _step_table(published.RODRIGUEZ_2, groups, fitted_steps(found), _summed(found))
    counts = filter_counts(bias=True)
    six = counts.points[SIX]
    row = ("with bias terms (Kozlowski's extension)", "", "", str(counts), _six(six.mul, six.add, six.div))
    return Compared(compared.title, compared.source, compared.columns, (*compared.rows, row))


def rodriguez_3() -> Compared:
    groups = [Group("composite bodies", (0, 1, 2)), Group("elements", (3, 4))]

    def step(label: Label, inputs: frozenset[str]) -> str:
        return "composite bodies" if label.step == "composite step" else "elements"

    by_number = {n: step_counts(functools.partial(mass_matrix_program, n), step) for n in STEP_NUMBERS}
    return _step_table(published.RODRIGUEZ_3, groups, fitted_steps(by_number), _summed(by_number))


def rodriguez_4() -> Compared:
    curves = figure_4()
    starts = crossings(curves)
    rows: list[tuple[Cell, ...]] = [
        (f"n = {n}", *(f"{curve[n]:.1f}" for curve in curves.values())) for n in sorted(next(iter(curves.values())))
    ]
    rows.append(("filter is below from", "", f"n = {starts['by Table III']}", f"n = {starts['as printed']}", "",
                 f"n = {starts['linksweep']}"))  # fmt: skip
    return Compared(
        "Planar forward dynamics without bias terms, in flops (a multiplication and an addition, no divisions)",
        "Rodriguez 1987, Fig. 4",
        ("", *curves),
        tuple(rows),
    )


TABLES: dict[str, Callable[[], Compared]] = {
    "summary": summary,
    "angeles_1": angeles_1,
    "angeles_stages": angeles_stages,
    "kozlowski_1": functools.partial(kozlowski_1, "any"),
    "kozlowski_1_right": functools.partial(kozlowski_1, "right"),
    "kozlowski_2": kozlowski_2,
    "forward_dynamics": forward_dynamics,
    "comparison": comparison,
    "kang": kang,
    "kang_savings": kang_savings,
    "mass_matrix": mass_matrices,
    "rodriguez_2": rodriguez_2,
    "rodriguez_3": rodriguez_3,
    "rodriguez_4": rodriguez_4,
}
