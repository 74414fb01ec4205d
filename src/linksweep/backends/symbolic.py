"""A Program as SymPy expressions: explicit scalar elements of M, of its inverse, of torques.

Rodriguez (1987, sections XIII and XIV): "explicit evaluation of the scalar elements of the inertia matrix inverse".
Without simplification, a Program becomes expressions operation by operation. With simplification, it runs over
fractions of polynomials in the sines and cosines of its angles, with exact coefficients, reduced by sin^2 = 1 - cos^2.
A reduced polynomial has a unique form: what is zero becomes 0, and equal terms of a recursion are collected.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, BackendError
from ..support.checks import refuse_foreign
from ..support.messages import shown
from ..tracing.expression import Node, Operand, number
from ..tracing.program import Program

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

Expression = Module = Any  # SymPy's own, which have no types
LIMIT = 20_000  # operations, written out without sharing; SymPy takes seconds for so many
NUMBERS = ("rational", "float")
LONGEST_FORMULA = 50_000  # characters of LaTeX that a notebook shows


def sympy() -> Module:
    """Return the package sympy, or raise an error that says how to install it."""
    try:
        import sympy
    except ImportError:
        raise BackendError(
            "symbolic output needs SymPy, which is not installed: pip install 'linksweep[symbolic]'."
        ) from None
    return sympy


@dataclass(frozen=True)
class Symbolic:
    """A function of a robot as SymPy expressions.

    expressions: a Matrix (a column for one axis), an Array for three axes, or one expression. symbols: those of each
    input, in order, by the input's name. shape: that of the numeric function's result. values: parameters of the
    robot by their letters, as `expressions.subs` takes them.
    """

    function: str
    expressions: Expression
    symbols: dict[str, tuple[Expression, ...]]
    shape: tuple[int, ...]
    values: dict[Expression, Expression] = field(default_factory=dict)

    def lambdify(self, modules: str | list[str] = "numpy") -> Callable[..., np.ndarray]:
        """A function of arrays (..., size), one for each input, that evaluates the expressions.

        Inputs that `values` has numbers for may be left out.
        """
        import numpy as np

        flat = self.flat
        evaluate = sympy().lambdify([list(s) for s in self.symbols.values()], flat, modules=modules, cse=True)

        def function(*inputs: ArrayLike) -> np.ndarray:
            for name, x in zip(self.symbols, inputs, strict=False):
                refuse_foreign(f"{self.function}: {name}", x)
            arrays = [np.asarray(x) for x in inputs]
            left_out = [[self.values.get(s) for s in several] for several in list(self.symbols.values())[len(arrays) :]]
            if not any(value is None for several in left_out for value in several):
                arrays += [np.array(several, dtype=float) for several in left_out]
            sizes = [len(symbols) for symbols in self.symbols.values()]
            if [x.shape[-1:] for x in arrays] != [(size,) for size in sizes]:
                wanted = ", ".join(f"{name} (..., {size})" for name, size in zip(self.symbols, sizes, strict=True))
                raise ArgumentError(f"{self.function} got {[x.shape for x in arrays]}, expected {wanted}.")
            values = evaluate(*(list(np.moveaxis(x, -1, 0)) for x in arrays))
            batch = np.broadcast_shapes(*(x.shape[:-1] for x in arrays))
            stacked = np.stack([np.broadcast_to(value, batch) for value in values], axis=-1)
            return stacked.reshape(*batch, *self.shape)

        return function

    @property
    def flat(self) -> list[Expression]:
        """All expressions, the last axis fastest."""
        return list(sympy().flatten(self.expressions)) if self.shape else [self.expressions]

    @property
    def operations(self) -> int:
        """SymPy's count of the operations in all expressions, without sharing."""
        return int(sum(sympy().count_ops(expression) for expression in self.flat))

    def _repr_latex_(self) -> str | None:
        """Return the expressions as a formula, unless it is too long to read."""
        text = sympy().latex(self.expressions, symbol_names=dotted(self.symbols))
        return f"$\\displaystyle {text}$" if len(text) <= LONGEST_FORMULA else None

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name} ({len(symbols)})" for name, symbols in self.symbols.items())
        return f"<Symbolic {self.function}: {inputs} -> {self.shape}>"


def dotted(symbols: dict[str, tuple[Expression, ...]]) -> dict[Expression, str]:
    """Return the LaTeX of velocities and accelerations among the symbols: qd2 is q_2 with a dot, qdd_elbow with two."""
    dots = {"qd": r"\dot{q}", "qdd": r"\ddot{q}"}
    return {
        symbol: f"{dots[name]}_{{{str(symbol).removeprefix(name).lstrip('_')}}}"
        for name, several in symbols.items() if name in dots for symbol in several
    }  # fmt: skip


def written_size(program: Program) -> int:
    """Return the operations of all results as formulas, in which each use of a shared value repeats it."""
    size: dict[Node, int] = {}
    for body in program.bodies():
        for node in body.nodes:
            inside = sum(size[arg] for arg in node.args if isinstance(arg, Node))
            size[node] = inside + (node.op not in ("input", "neg"))
    values = [effect.value for body in program.bodies() for effect in body.effects]
    return sum(size[value] for value in values if isinstance(value, Node))


@dataclass(frozen=True)
class Options:
    """Options of formulas.

    simplify: compute with fractions of polynomials. numbers: exact fractions ("rational") or "float". limit: largest
    number of operations, or with simplify of intermediate terms. way_out: advice for a formula that is too long.
    """

    simplify: bool = False
    numbers: str = "rational"
    limit: int = LIMIT
    way_out: str = ""

    def __post_init__(self) -> None:
        if self.numbers not in NUMBERS:
            raise ArgumentError(f"numbers is {shown(self.numbers)}, expected 'rational' or 'float'.")
        if isinstance(self.limit, bool) or not isinstance(self.limit, int) or self.limit < 1:
            raise ArgumentError(f"limit is {shown(self.limit)}, expected a whole number of operations, 1 or more.")


def symbolic(
    program: Program, symbol_names: dict[str, Sequence[str]], options: Options, what: str, inverted: bool = False,
    own: Mapping[str, float] = MappingProxyType({}),
) -> Symbolic:  # fmt: skip
    """Return the only result of an unrolled Program as expressions.

    symbol_names: of each input's elements. what: the function, for messages. inverted: the inverse of a matrix, if
    simplified. own: the robot's numbers for letters among these.
    """
    sp = sympy()
    simplify, limit, size = options.simplify, options.limit, written_size(program)
    if not simplify and size > limit:
        raise ArgumentError(
            f"{what} takes {size:,} operations as a formula, more than limit={limit:,}: use {options.way_out}fewer "
            f"joints, a simpler function, simplify=True, or a larger limit."
        )
    symbols = {
        array.name: tuple(sp.Symbol(name, real=True) for name in symbol_names[array.name]) for array in program.inputs
    }
    inputs = list(symbols.values())
    written = _Written(sp, inputs, exact=options.numbers == "rational" or simplify)
    if simplify:
        pass

        values = simplified(program, written, options, what, inverted)
        if options.numbers == "float":
            values = [value.evalf(17) for value in values]
    else:
        values = written.results(program)
    shape = program.outputs[0].shape
    known = {s: written.number(own[str(s)]) for several in symbols.values() for s in several if str(s) in own}
    return Symbolic(what, _shaped(sp, values, shape), symbols, shape, known)


def _shaped(sp: Module, values: list[Expression], shape: tuple[int, ...]) -> Expression:
    if len(shape) == 0:
        return values[0]
    if len(shape) <= 2:
        return sp.ImmutableDenseMatrix(*(*shape, 1)[:2], values)
    return sp.ImmutableDenseNDimArray(values, shape)


def as_fraction(number: float) -> Fraction:
    """Return the fraction with a denominator up to 10,000, or the decimal, that a float represents up to rounding.

    Constants of a Program are sums and products of the robot's, each rounded: 1e-14 allows for some cancellation.
    """
    simple, decimal = Fraction(number).limit_denominator(10_000), Fraction(f"{number:.15g}")
    if abs(simple - Fraction(number)) <= 1e-14 * abs(number):
        return simple
    return decimal if abs(decimal - Fraction(number)) <= 1e-15 * abs(number) else Fraction(repr(float(number)))


class _Written:
    """Converts operations to SymPy expressions."""

    def __init__(self, sp: Module, inputs: list[tuple[Expression, ...]], exact: bool):
        self.sp = sp
        self.inputs = inputs
        self.exact = exact
        self.known: dict[Node, Expression] = {}

    def results(self, program: Program) -> list[Expression]:
        (body,) = program.bodies()
        for node in body.nodes:
            self.known[node] = self.expression(node)
        effects = sorted(body.effects, key=lambda effect: effect.where[0])  # type: ignore[union-attr]
        return [self.value(effect.value) for effect in effects]

    def value(self, x: Operand) -> Expression:
        return self.known[x] if isinstance(x, Node) else self.number(number(x))

    def number(self, x: float) -> Expression:
        if not self.exact:
            return self.sp.Integer(int(x)) if float(x).is_integer() else self.sp.Float(x, 17)
        fraction = as_fraction(x)
        return self.sp.Rational(fraction.numerator, fraction.denominator)

    def expression(self, node: Node) -> Expression:
        sp = self.sp
        if node.op == "input":
            return self.inputs[node.data[0]][node.data[1]]
        if node.op in ("sin", "cos"):
            return getattr(sp, node.op)(self.angle(node.args[0]))
        args = [self.value(arg) for arg in node.args]
        match node.op:
            case "neg":
                return -args[0]
            case "add":
                return args[0] + args[1]
            case "sub":
                return args[0] - args[1]
            case "mul":
                return args[0] * args[1]
            case "div":
                return args[0] / args[1]
            case "sqrt":
                return sp.sqrt(args[0])
            case "lt":
                return args[0] < args[1]
            case "where":
                return sp.Piecewise((args[1], args[0]), (args[2], True))
        raise AssertionError(f"{node.op} has no symbolic form")

    def angle(self, x: Operand) -> Expression:
        """Return an angle, in which rational multiples of pi are written with pi."""
        if isinstance(x, Node) and x.op in ("add", "sub"):
            a, b = (self.angle(arg) for arg in x.args)
            return a + b if x.op == "add" else a - b
        if isinstance(x, Node):
            return self.value(x)
        x = number(x)
        turn = Fraction(x / math.pi).limit_denominator(360)
        if self.exact and abs(float(turn) * math.pi - x) <= 4e-16 * abs(x):
            return self.sp.pi * self.sp.Rational(turn.numerator, turn.denominator)
        return self.number(x)


# ---- simplification ----


TRIGONOMETRIC = ("sin", "cos")
SUMS_UP_TO = 100  # terms; to look for sums of angles in more takes SymPy long
SUMS_IN_ALL = 1500  # terms of all results together


@dataclass(frozen=True)
class Ratio:
    """A fraction of two elements of the ring; the denominator `lower` is 1 for a polynomial."""

    upper: Expression
    lower: Expression


def simplified(
    program: Program, written: Expression, options: Options, what: str, inverted: bool = False
) -> list[Expression]:
    """Return the results as expressions. `written` converts leaves, sines and numbers to SymPy.

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
    """Return the nodes that the results depend on, in order, without the arguments of sines and cosines."""
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
    """Arithmetic of fractions. Generators are the cosine and sine of each angle, then the other inputs."""

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
        """Return a leaf: an input, or a number times a sine or cosine."""
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
            raise ArgumentError(f"{self.what} is not a fraction of polynomials ({node.op}): use simplify=False.")
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
                f"{self.what} grows to {terms:,} terms, more than limit={self.limit:,}: use {self.way_out}fewer "
                f"joints, a simpler function, or a larger limit."
            )

    def inverse(self, matrix: list[Ratio]) -> list[Ratio]:
        """Return adjugate / determinant by the Faddeev-LeVerrier recursion, which divides by numbers only."""
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
        """Return the polynomial with every power of a sine above the first replaced."""
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
        """Return products of sines and cosines, or sines and cosines of sums of angles, whichever is shorter.

        Sums of angles are tried only for a limited number of terms.
        """
        products = polynomial.as_expr(*self.generators) if self.generators else polynomial.as_expr()
        if not sums or len(polynomial) > SUMS_UP_TO:
            return products
        from sympy.simplify.fu import TR8

        return min((products, self.sp.expand(TR8(products))), key=self.sp.count_ops)


def _angles(sp: Module, x: Expression) -> list[Expression]:
    """Return the angle of a number times a sine or cosine; [] if the angle is constant."""
    return [function.args[0] for function in x.atoms(sp.sin, sp.cos)]
