"""Counts of operations over many arms, as exact polynomials in the number of joints, and step by step.

Work among the parameters of a general arm is done beforehand and is not counted, as in the papers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from ..catalogue.functions import FUNCTIONS
from ..errors import ArgumentError
from ..tracing.count import Counts
from ..tracing.expression import ONLINE, Node
from ..tracing.program import Label, Program
from .published_counts import Count, Polynomial

if TYPE_CHECKING:
    from ..robots.general_arm import GeneralArm

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

    At least two points more than its coefficients must lie on it. The first few arms may be too short for it:
    then those are left out, and `first` says from where on it holds.
    """
    numbers = sorted(points)
    for skipped in range(3):
        rest = numbers[skipped:]
        for degree in range(highest + 1):
            if len(rest) < degree + 3:
                break
            found = _through([(n, Fraction(points[n])) for n in rest[-degree - 1 :]])
            if all(found(n) == points[n] for n in rest):
                return Fit(found, rest[0])
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
        """From how many joints on all three hold."""
        return max((found.first for found in (self.mul, self.add, self.div) if found), default=min(self.points))

    def __str__(self) -> str:
        """ "105n - 109 / 90n - 105", with divisions where there are some."""
        shown = [str(found) if found else "no polynomial" for found in (self.mul, self.add)]
        if any(counts.div for counts in self.points.values()):
            shown.append(f"{self.div if self.div else 'no polynomial'} div")
        holds = f" (n >= {self.first})" if self.first > min(self.points) else ""
        return " / ".join(shown) + holds


Asked = str | tuple[str, ...] | list[str]  # a function, or several that share their work


def general_arm(n: int, joints: str = "R", twist: str = "any") -> GeneralArm:
    """`joints` repeated until there are n of them."""
    from ..robots.general_arm import GeneralArm

    if not isinstance(joints, str) or not joints or set(joints.upper()) - set("RP"):
        raise ArgumentError(f"joints is {joints!r}, expected letters R and P, such as 'R' or 'RRP'.")
    return GeneralArm((joints * n)[:n], twist)


def general_fit(
    function: Asked, method: str | None = None, base_parameters: bool | None = False, joints: str = "R",
    twist: str = "any", numbers: Iterable[int] = NUMBERS,
) -> Fitted:  # fmt: skip
    """What a function of general arms costs, as polynomials in n. function: a name, or a list that shares its work."""
    names = tuple(function) if isinstance(function, list) else function
    return Fitted.of({n: _general_counts(n, names, method, base_parameters, joints, twist) for n in numbers})


@functools.cache
def _general_counts(
    n: int, function: Asked, method: str | None, base_parameters: bool | None, joints: str, twist: str
) -> Counts:
    """Several tables ask for the same."""
    several = isinstance(function, tuple) and function[1:] and function[1] in FUNCTIONS
    arm = general_arm(n, joints, twist)
    return arm.operation_count(list(function) if several else function, method, base_parameters)


# ---- by step ---------------------------------------------------------------------------------------------------


def step_counts(trace: Callable[[], Program], step: Callable[[Label, frozenset[str]], str]) -> dict[str, Counts]:
    """The operations of the program that `trace` makes, by the step that each belongs to.

    step(label, inputs) names it, from the line of the algorithm that made it and the inputs that it depends on. What
    two lines compute in common belongs to the first.
    """
    from ..tracing.labels import labelled

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
    """Whether a count stays below a published one, divisions counted as multiplications."""
    return found.mul + found.div <= bar.mul(n) + bar.div(n) and found.add <= bar.add(n)
