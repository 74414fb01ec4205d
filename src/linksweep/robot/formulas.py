"""Functions as SymPy expressions, and recursions explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from ..backends.symbolic import LIMIT, Options, Symbolic, symbolic, written_size
from ..catalogue.defaults import DETAILED
from ..catalogue.dimensions import Dimensions, is_planar
from ..catalogue.parameters import TEN, parameter_sets
from ..errors import ArgumentError
from ..mechanism.canonical import CanonicalModel
from ..mechanism.coordinates import neutral
from ..support.messages import is_one_of, nearest, shown
from ..support.numbers import checked_flag
from ..tracing.program import Array, Program
from .core import Core, Extras, Item

if TYPE_CHECKING:
    from ..catalogue.parameters import ParameterSet
    from ..explain import Explanation

NAMES = ("numbers", "joints")
NUMBERS_INSTEAD = "numbers for letters (parameters=()), "
Tracer = Callable[[Item, str | None], Program]  # (function, method)


class Formulas:
    """The functions of a robot, shown instead of evaluated."""

    def __init__(self, core: Core):
        self.core = core

    def explain(
        self, function: str, method: str | None, given: Mapping[str, ArrayLike | None], more: Extras, symbols: bool,
        parameters: Sequence[str] | None, limit: int | None,
    ) -> Explanation:  # fmt: skip
        """The recursion link by link, at `given` q, qd, qdd and tau, those that are not None."""
        from ..explain import EXPLAINED, explain, explain_symbols

        core = self.core
        if not is_one_of(function, EXPLAINED):
            raise ArgumentError(
                f"explain: the function is {shown(function)}{nearest(function, EXPLAINED)}, expected one of "
                f"{', '.join(EXPLAINED)}."
            )
        if core.model.constraints:
            if function == "forward_dynamics":
                raise ArgumentError(
                    f"explain: constraints of {core.name} are solved for all links together, and not link by link: "
                    f"explain robot.without_constraints(), or see forward_dynamics(..., details=True)."
                )
            tree = Core.of(replace(core.model, constraints=(), name=f"{core.name} without its constraints"))
            return Formulas(tree).explain(function, method, given, more, symbols, parameters, limit)
        family = "forward_dynamics" if function == "forward_dynamics" else "inverse_dynamics"
        request = core.requests([function], DETAILED[family] if method is None else method, more)[0]
        extra = {"f_ext": more.f_ext, "base_motion": more.base_motion}
        if checked_flag("symbols", symbols):
            passed = [name for name, value in {**given, **extra}.items() if value is not None]
            if passed:
                raise ArgumentError(f"explain: symbols=True leaves everything open, got {passed[0]}: leave it out.")
            sets = parameter_sets(core, self.letters(parameters))
            return explain_symbols(core.model, request, sets, numbered, LIMIT if limit is None else limit)
        if parameters is not None:
            raise ArgumentError("explain: parameters are letters for numbers of the robot, which need symbols=True.")
        values = {name: value for name, value in given.items() if value is not None}
        values.setdefault("q", neutral(core.canonical))
        names = [name for name, value in extra.items() if value is not None]
        values |= dict(zip(names, more.arguments(core.model), strict=True))
        return explain(core.model, request, values)

    def symbolic(
        self, program: Tracer, methods: Callable[[str], tuple[str, ...]], function: Item, method: str | None,
        names: str, letters: Sequence[str], options: Options,
    ) -> Symbolic:  # fmt: skip
        """The function as SymPy expressions in symbols q1, q2, ... or, by "joints", q_<joint>, and in `letters`."""
        if not is_one_of(names, NAMES):
            raise ArgumentError(f"names is {shown(names)}, expected 'numbers' (q1, q2, ...) or 'joints' (q_<joint>).")

        sets = parameter_sets(self.core, letters)

        def symbol_names(array: Array) -> Sequence[str]:
            if names == "joints" and array.name in ("q", "qd", "qdd", "tau"):
                return _by_joint(self.core.canonical, self.core.joint_names, array)
            return numbered(array, sets)

        return shortest(program, methods, function, method, symbol_names, self.core.name, options, sets)

    def letters(self, parameters: Sequence[str] | None) -> Sequence[str]:
        """Which numbers of the robot are symbols; where nothing is said, those of an arm that stays in a plane."""
        if parameters is None:
            return ("dimensions",) if is_planar(self.core.canonical) else ()
        return parameters


def shortest(
    program: Tracer, methods: Callable[[str], tuple[str, ...]], function: Item,
    method: str | None, symbol_names: Callable[[Array], Sequence[str]], robot: str, options: Options,
    sets: Sequence[ParameterSet] = (),
) -> Symbolic:  # fmt: skip
    """The function by the given method, or by the one whose program is shortest written out."""
    first = program(function, method)  # says what is wrong with the names, before they are taken apart
    name = str(function[0]) if isinstance(function, tuple) else function
    inverted = options.simplify and name == "mass_matrix_inverse" and method is None
    if inverted:  # one denominator for all elements, which fractions of a recursion do not find
        found = program("mass_matrix", "composite")
    else:
        others = [program(function, other) for other in methods(name)] if method is None else []
        found = min([first, *others], key=written_size)
    symbols = {array.name: symbol_names(array) for array in found.inputs}
    own = {x: value for each in _planar(sets) for x, value in zip(each.letters, each.values, strict=True)}
    return symbolic(found, symbols, options, f"{name} of {robot}", inverted, own)


def _planar(sets: Sequence[ParameterSet]) -> list[Dimensions]:
    return [each for each in sets if isinstance(each, Dimensions)]


def numbered(array: Array, sets: Sequence[ParameterSet] = ()) -> list[str]:
    """q1, q2, ...; gx, gy, gz; m1, mx1, ... of the inertia of a link; the letters of a planar arm."""
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
    """q_<joint>, and q_<joint>_1, ... where a joint has several."""
    found = [""] * array.size
    for own, link in zip(joint_names, model.joints, strict=True):
        joint = link.type
        count, first = (joint.nq, link.q_start) if array.name == "q" else (joint.nv, link.start)
        name = f"{array.name}_{own}"
        found[first : first + count] = [name] if count == 1 else [f"{name}_{k + 1}" for k in range(count)]
    return found
