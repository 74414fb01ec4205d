"""A Program over fractions of polynomials in the sines and cosines of its angles, reduced by sin^2 = 1 - cos^2.

So reduced, a polynomial has one form only: what is zero becomes 0, and the terms that a recursion leaves in a dozen
places come together. Coefficients are exact fractions.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import ArgumentError
from ..tracing.expression import Node, Operand, number
from ..tracing.program import Program

if TYPE_CHECKING:
    from .symbolic import Expression, Module, Options

TRIGONOMETRIC = ("sin", "cos")
SUMS_UP_TO = 100  # terms; to look for sums of angles in more takes SymPy long
SUMS_IN_ALL = 1500  # terms of all results together


@dataclass(frozen=True)
class Ratio:
    """A fraction of two elements of the ring; the lower one is 1 for a polynomial."""

    upper: Expression
    lower: Expression


def simplified(
    program: Program, written: Expression, options: Options, what: str, inverted: bool = False
) -> list[Expression]:
    """The results as expressions. `written` makes SymPy expressions of leaves, sines and numbers.

    inverted: of a square result, the inverse, by cofactors over the determinant.
    """
    (body,) = program.bodies()
    effects = sorted(body.effects, key=lambda effect: effect.where[0])  # type: ignore[union-attr]
    nodes = _needed([effect.value for effect in effects])
    for node in body.nodes:
        if node.op == "input":
            written.known[node] = written.expression(node)
    field = _Fractions(nodes, written, options, what)
    values: dict[Node, Ratio] = {}

    def value(x: Operand) -> Ratio:
        return values[x] if isinstance(x, Node) else field.number(number(x))

    for node in nodes:
        args = () if node.op in TRIGONOMETRIC else node.args
        values[node] = field.apply(node, [value(arg) for arg in args])
    results = [value(effect.value) for effect in effects]
    if inverted:
        results = field.inverse(results)
    terms = sum(len(result.upper) + len(result.lower) - 1 for result in results)
    field.guard(terms)
    return [field.expression(result, terms <= SUMS_IN_ALL) for result in results]


def _needed(results: Sequence[Operand]) -> list[Node]:
    """The nodes that the results are made of, in order; not what stands inside a sine."""
    found: set[Node] = set()
    stack = [value for value in results if isinstance(value, Node)]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            if node.op not in TRIGONOMETRIC:
                stack.extend(arg for arg in node.args if isinstance(arg, Node))
    return sorted(found, key=lambda node: node.order)


class _Fractions:
    """The arithmetic. The ring's variables are the cosine and the sine of each angle, then the other inputs."""

    def __init__(self, nodes: list[Node], written: Expression, options: Options, what: str):
        sp = self.sp = written.sp
        self.limit, self.way_out, self.what, self.written = options.limit, options.way_out, what, written
        trigonometric = [written.expression(node) for node in nodes if node.op in TRIGONOMETRIC]
        angles = list(dict.fromkeys(angle for x in trigonometric for angle in _angles(sp, x)))
        inputs = [written.known[node] for node in nodes if node.op == "input"]
        self.generators = [f(angle) for angle in angles for f in (sp.cos, sp.sin)] + inputs
        self.ring = sp.ring([sp.Dummy() for _ in self.generators] or [sp.Dummy()], sp.QQ)[0]
        self.sines = [2 * k + 1 for k in range(len(angles))]

    def number(self, x: float) -> Ratio:
        return Ratio(self.ring(self.sp.QQ.from_sympy(self.written.number(x))), self.ring.one)

    def element(self, x: Expression) -> Ratio:
        """A leaf: an input, or a number times a sine or cosine."""
        factor, generator = x.as_coeff_Mul()
        if x.is_Number:
            return Ratio(self.ring(self.sp.QQ.from_sympy(x)), self.ring.one)
        return Ratio(self.ring.gens[self.generators.index(generator)] * self.sp.QQ.from_sympy(factor), self.ring.one)

    def apply(self, node: Node, args: list[Ratio]) -> Ratio:
        if node.op == "input" or node.op in TRIGONOMETRIC:
            return self.element(self.written.expression(node))
        if node.op == "neg":
            return Ratio(-args[0].upper, args[0].lower)
        if node.op not in ("add", "sub", "mul", "div"):
            raise ArgumentError(f"{self.what} is no fraction of polynomials ({node.op}): leave simplify to False.")
        a, b = args
        if node.op == "div":
            return self.ratio(a.upper * b.lower, a.lower * b.upper)
        if node.op == "mul":
            return self.ratio(a.upper * b.upper, a.lower * b.lower)
        other = b.upper if node.op == "add" else -b.upper
        if a.lower == b.lower:
            return self.ratio(a.upper + other, a.lower)
        return self.ratio(a.upper * b.lower + other * a.lower, a.lower * b.lower)

    def ratio(self, upper: Expression, lower: Expression) -> Ratio:
        upper, lower = self.reduced(upper), self.reduced(lower)
        self.guard(len(upper) * len(lower))  # terms of the next sum of two such fractions
        if lower.is_ground:
            return Ratio(upper.quo_ground(lower.LC), self.ring.one)
        upper, lower = upper.cancel(lower)
        # one form of the two: below, the number is positive, or, of letters alone, most of the terms are
        sign = lower.const() or sum(1 if c > 0 else -1 for c in lower.coeffs()) or lower.LC
        return Ratio(upper, lower) if sign > 0 else Ratio(-upper, -lower)

    def total(self, polynomials: Iterable[Expression]) -> Expression:
        return self.reduced(functools.reduce(operator.add, polynomials, self.ring.zero))

    def guard(self, terms: int) -> None:
        if terms > self.limit:
            raise ArgumentError(
                f"{self.what} grows to {terms:,} terms, more than limit={self.limit:,}: take {self.way_out}fewer "
                f"joints, a simpler function, or a larger limit."
            )

    def inverse(self, matrix: list[Ratio]) -> list[Ratio]:
        """Adjugate over determinant by the recursion of Faddeev and LeVerrier, which divides by numbers only."""
        n = math.isqrt(len(matrix))
        A = [[matrix[n * i + j].upper for j in range(n)] for i in range(n)]
        trace = self.ring.one
        adjugate = [[self.ring.one if i == j else self.ring.zero for j in range(n)] for i in range(n)]
        for k in range(1, n + 1):
            product = [[self.total(A[i][r] * adjugate[r][j] for r in range(n)) for j in range(n)] for i in range(n)]
            self.guard(sum(len(element) for row in product for element in row))
            trace = self.total(product[i][i] for i in range(n)).quo_ground(k)
            if k < n:
                adjugate = [[product[i][j] - (trace if i == j else 0) for j in range(n)] for i in range(n)]
        return [self.ratio(element, trace) for row in adjugate for element in row]

    def reduced(self, polynomial: Expression) -> Expression:
        """Every power of a sine above the first replaced."""
        for sine in self.sines:
            if polynomial.degree(sine) < 2:
                continue
            square = 1 - self.ring.gens[sine - 1] ** 2
            total = self.ring.zero
            parts: dict[int, Expression] = {}
            for powers, coefficient in polynomial.terms():
                half = powers[sine] // 2
                kept = (*powers[:sine], powers[sine] % 2, *powers[sine + 1 :])
                parts.setdefault(half, self.ring.zero)[kept] = coefficient
            for half, part in parts.items():
                total = total + part * square**half
            polynomial = total
        return polynomial

    def expression(self, value: Ratio, sums: bool) -> Expression:
        upper, lower = (self._shorter(part, sums) for part in (value.upper, value.lower))
        return upper / lower

    def _shorter(self, polynomial: Expression, sums: bool) -> Expression:
        """Products of sines and cosines, or, looked for where there are not too many, cosines of sums of angles,
        whichever is shorter."""
        products = polynomial.as_expr(*self.generators) if self.generators else polynomial.as_expr()
        if not sums or len(polynomial) > SUMS_UP_TO:
            return products
        from sympy.simplify.fu import TR8

        return min((products, self.sp.expand(TR8(products))), key=self.sp.count_ops)


def _angles(sp: Module, x: Expression) -> list[Expression]:
    """The angle of a number times a sine or cosine; none where the angle was known."""
    return [function.args[0] for function in x.atoms(sp.sin, sp.cos)]
