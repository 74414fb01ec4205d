"""A Program as SymPy expressions: explicit scalar elements of M, of its inverse, of torques.

Rodriguez (1987, sections XIII and XIV) asks for them: "explicit evaluation of the scalar elements of the inertia matrix
inverse". Written out, a Program is turned into expressions operation by operation. Simplified, it runs over fractions
of polynomials in the sines and cosines, with sin^2 = 1 - cos^2 applied all along: equal polynomials get the same form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError, BackendError
from ..support.foreign import refuse_foreign
from ..support.messages import shown
from ..tracing.expression import Node, Operand
from ..tracing.expression import number as as_float
from ..tracing.program import Program

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

Expression = Module = Any  # SymPy's own, which have no types
LIMIT = 20_000  # operations, written out without sharing; SymPy takes seconds for so many
NUMBERS = ("rational", "float")
LONGEST_FORMULA = 50_000  # characters of LaTeX that a notebook shows


def sympy() -> Module:
    """The package, or one sentence about how to get it."""
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
    input, in order, by the input's name. shape: that of the numeric function's result. values: of letters that stand
    for numbers of the robot, these numbers, as `expressions.subs` takes them.
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
        """Every expression, the last axis fastest."""
        return list(sympy().flatten(self.expressions)) if self.shape else [self.expressions]

    @property
    def operations(self) -> int:
        """SymPy's count of the operations in all expressions, nothing shared."""
        return int(sum(sympy().count_ops(expression) for expression in self.flat))

    def _repr_latex_(self) -> str | None:
        """The expressions as a formula, unless it is longer than anybody reads."""
        text = sympy().latex(self.expressions, symbol_names=dotted(self.symbols))
        return f"$\\displaystyle {text}$" if len(text) <= LONGEST_FORMULA else None

    def __repr__(self) -> str:
        inputs = ", ".join(f"{name} ({len(symbols)})" for name, symbols in self.symbols.items())
        return f"<Symbolic {self.function}: {inputs} -> {self.shape}>"


def dotted(symbols: dict[str, tuple[Expression, ...]]) -> dict[Expression, str]:
    """LaTeX of the rates among the symbols: qd2 is a q with one dot and a 2 below, qdd_elbow one with two."""
    dots = {"qd": r"\dot{q}", "qdd": r"\ddot{q}"}
    return {
        symbol: f"{dots[name]}_{{{str(symbol).removeprefix(name).lstrip('_')}}}"
        for name, several in symbols.items() if name in dots for symbol in several
    }  # fmt: skip


def written_size(program: Program) -> int:
    """The operations of all results written out, where each use of a shared value repeats it."""
    size: dict[Node, int] = {}
    for body in program.bodies():
        for node in body.nodes:
            inside = sum(size[arg] for arg in node.args if isinstance(arg, Node))
            size[node] = inside + (node.op not in ("input", "neg"))
    values = [effect.value for body in program.bodies() for effect in body.effects]
    return sum(size[value] for value in values if isinstance(value, Node))


@dataclass(frozen=True)
class Options:
    """simplify: as fractions of polynomials. numbers: exact fractions ("rational") or "float". limit: of operations
    written out, or, simplified, of terms on the way. way_out: what else may be done about what is too long."""

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
    """The one result of a written-out Program as expressions.

    symbol_names: of each input's elements. what: the function, for messages. inverted: the inverse of a matrix, if
    simplified. own: the robot's numbers for letters among these.
    """
    sp = sympy()
    simplify, limit, size = options.simplify, options.limit, written_size(program)
    if not simplify and size > limit:
        raise ArgumentError(
            f"{what} takes {size:,} operations written out, more than limit={limit:,}: take {options.way_out}fewer "
            f"joints, a simpler function, simplify=True, or a larger limit."
        )
    symbols = {
        array.name: tuple(sp.Symbol(name, real=True) for name in symbol_names[array.name]) for array in program.inputs
    }
    inputs = list(symbols.values())
    written = _Written(sp, inputs, exact=options.numbers == "rational" or simplify)
    if simplify:
        from .symbolic_fractions import simplified

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
    """The fraction with a denominator up to 10,000, or the decimal, that a float stands for but for rounding.

    Constants of a Program are sums and products of the robot's, each rounded: 1e-14 allows for some cancellation.
    """
    simple, decimal = Fraction(number).limit_denominator(10_000), Fraction(f"{number:.15g}")
    if abs(simple - Fraction(number)) <= 1e-14 * abs(number):
        return simple
    return decimal if abs(decimal - Fraction(number)) <= 1e-15 * abs(number) else Fraction(repr(float(number)))


class _Written:
    """Operations as SymPy expressions."""

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
        return self.known[x] if isinstance(x, Node) else self.number(as_float(x))

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
        """An angle, in which a number that is a fraction of a turn is written with pi."""
        if isinstance(x, Node) and x.op in ("add", "sub"):
            a, b = (self.angle(arg) for arg in x.args)
            return a + b if x.op == "add" else a - b
        if isinstance(x, Node):
            return self.value(x)
        x = as_float(x)
        turn = Fraction(x / math.pi).limit_denominator(360)
        if self.exact and abs(float(turn) * math.pi - x) <= 4e-16 * abs(x):
            return self.sp.pi * self.sp.Rational(turn.numerator, turn.denominator)
        return self.number(x)
