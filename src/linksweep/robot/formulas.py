"""Functions of a robot as SymPy expressions, and recursions explained link by link."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from ..backends.symbolic import LIMIT, Options, Symbolic, symbolic, written_size
from ..errors import ArgumentError
from ..functions.defaults import DETAILED
from ..functions.parameters import TEN, Dimensions, ParameterSet, is_planar, parameter_sets
from ..mechanism.canonical import CanonicalModel
from ..mechanism.coordinates import neutral
from ..support.checks import checked_flag
from ..support.messages import is_one_of, nearest, shown
from ..tracing.program import Array, Program
from .core import Core, Extras, Item

if TYPE_CHECKING:
    from ..explain import Explanation

NAMES = ("numbers", "joints")
NUMBERS_INSTEAD = "numbers for letters (parameters=()), "
Tracer = Callable[[Item, str | None], Program]  # (function, method)


class Formulas:
    """Symbolic expressions and explanations of the functions of a robot."""

    def __init__(self, core: Core):
        self.core = core

    def explain(
        self, function: str, method: str | None, sample: Mapping[str, ArrayLike | None], more: Extras, symbols: bool,
        parameters: Sequence[str] | None, limit: int | None,
    ) -> Explanation:  # fmt: skip
        """See `Robot.explain`; sample: q, qd, qdd and tau, those that are not None."""
        from ..explain import EXPLAINED, explain, explain_symbols

        core = self.core
        if not is_one_of(function, EXPLAINED):
            raise ArgumentError(
                f"explain: function is {shown(function)}{nearest(function, EXPLAINED)}, expected one of "
                f"{', '.join(EXPLAINED)}."
            )
        if core.model.constraints:
            if function == "forward_dynamics":
                raise ArgumentError(
                    f"explain: the constraints of {core.name} are solved for all links together, not link by link; "
                    f"use robot.without_constraints(), or forward_dynamics(..., details=True)."
                )
            tree = Core.of(replace(core.model, constraints=(), name=f"{core.name} without its constraints"))
            return Formulas(tree).explain(function, method, sample, more, symbols, parameters, limit)
        family = "forward_dynamics" if function == "forward_dynamics" else "inverse_dynamics"
        request = core.part(function, DETAILED[family] if method is None else method, more)
        extra = {"f_ext": more.f_ext, "base_motion": more.base_motion}
        if checked_flag("symbols", symbols):
            passed = [name for name, value in {**sample, **extra}.items() if value is not None]
            if passed:
                raise ArgumentError(f"explain: symbols=True takes no values, got {passed[0]}.")
            sets = parameter_sets(core, self.letters(parameters))
            return explain_symbols(core.model, request, sets, numbered, LIMIT if limit is None else limit)
        if parameters is not None:
            raise ArgumentError("explain: parameters= selects symbols and needs symbols=True.")
        values = {name: value for name, value in sample.items() if value is not None}
        values.setdefault("q", neutral(core.canonical))
        names = [name for name, value in extra.items() if value is not None]
        values |= dict(zip(names, more.arguments(core.model), strict=True))
        return explain(core.model, request, values)

    def symbolic(
        self, program: Tracer, methods: Callable[[str], tuple[str, ...]], function: Item, method: str | None,
        names: str, letters: Sequence[str], options: Options,
    ) -> Symbolic:  # fmt: skip
        """Return the function as SymPy expressions of q1, q2, ... or, with "joints", q_<joint>, and of `letters`."""
        if not is_one_of(names, NAMES):
            raise ArgumentError(f"names is {shown(names)}, expected 'numbers' (q1, q2, ...) or 'joints' (q_<joint>).")

        sets = parameter_sets(self.core, letters)

        def symbol_names(array: Array) -> Sequence[str]:
            if names == "joints" and array.name in ("q", "qd", "qdd", "tau"):
                return _by_joint(self.core.canonical, self.core.joint_names, array)
            return numbered(array, sets)

        return shortest(program, methods, function, method, symbol_names, self.core.name, options, sets)

    def letters(self, parameters: Sequence[str] | None) -> Sequence[str]:
        """Return which parameters of the robot are symbols; by default the dimensions of a planar arm."""
        if parameters is None:
            return ("dimensions",) if is_planar(self.core.canonical) else ()
        return parameters


def shortest(
    program: Tracer, methods: Callable[[str], tuple[str, ...]], function: Item,
    method: str | None, symbol_names: Callable[[Array], Sequence[str]], robot: str, options: Options,
    sets: Sequence[ParameterSet] = (),
) -> Symbolic:  # fmt: skip
    """Return the function by one method, by default the one with the shortest expressions."""
    first = program(function, method)  # raises errors about names first
    name = str(function[0]) if isinstance(function, tuple) else function
    inverted = options.simplify and name == "mass_matrix_inverse" and method is None
    if inverted:  # a recursion would not give one denominator for all elements
        shortest_program = program("mass_matrix", "composite")
    else:
        others = [program(function, other) for other in methods(name)] if method is None else []
        shortest_program = min([first, *others], key=written_size)
    symbols = {array.name: symbol_names(array) for array in shortest_program.inputs}
    values = {x: value for each in _planar(sets) for x, value in zip(each.letters, each.values, strict=True)}
    return symbolic(shortest_program, symbols, options, f"{name} of {robot}", inverted, values)


def _planar(sets: Sequence[ParameterSet]) -> list[Dimensions]:
    return [each for each in sets if isinstance(each, Dimensions)]


def numbered(array: Array, sets: Sequence[ParameterSet] = ()) -> list[str]:
    """Return symbol names: q1, q2, ...; gx, gy, gz; m1, mx1, ... of inertias; the dimensions of a planar arm."""
    kind, _, where = array.name.partition(":")
    if kind == "dimensions":
        return [letter for each in _planar(sets) for letter in each.letters]
    if kind == "gravity":
        return ["gx", "gy", "gz"]
    if kind == "payload" or where:
        return [f"{name}_{where or kind}" for name in TEN]
    if kind == "inertia":
        return [f"{name}{k + 1}" for k in range(array.size // len(TEN)) for name in TEN]
    return [f"{kind}{k + 1}" for k in range(array.size)]


def _by_joint(model: CanonicalModel, joint_names: tuple[str, ...], array: Array) -> list[str]:
    """Return q_<joint>, and q_<joint>_1, ... for joints with several coordinates."""
    names = [""] * array.size
    for joint_name, link in zip(joint_names, model.joints, strict=True):
        joint = link.type
        count, first = (joint.nq, link.q_start) if array.name == "q" else (joint.nv, link.start)
        name = f"{array.name}_{joint_name}"
        names[first : first + count] = [name] if count == 1 else [f"{name}_{k + 1}" for k in range(count)]
    return names
