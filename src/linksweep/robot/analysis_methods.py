"""What Robot inherits: its functions as SymPy expressions, and its recursions explained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ..analysis.symbolic import LIMIT, Options, Symbolic, symbolic, written_size
from ..catalogue.defaults import DETAILED
from ..catalogue.dimensions import Dimensions, is_planar
from ..catalogue.parameters import TEN, parameter_sets
from ..errors import ArgumentError
from ..mechanism.canonical import CanonicalModel
from ..support.messages import nearest, shown
from ..support.numbers import Named
from ..tracing.program import Array, Program

if TYPE_CHECKING:
    from ..catalogue.parameters import ParameterSet
    from ..compiled.function import Recipe
    from ..explain import Explanation

NAMES = ("numbers", "joints")
NUMBERS_INSTEAD = "numbers for letters (parameters=()), "


class AnalysisMethods:
    """The part of `Robot` that shows its functions instead of evaluating them."""

    if TYPE_CHECKING:
        canonical: Any
        joint_names: Any
        name: Any

        model: Any

        def recipe(self, functions: Any, **options: Any) -> Recipe: ...
        def methods(self, function: str) -> tuple[str, ...]: ...
        def neutral(self) -> Any: ...
        def _request(self, item: Any, method: str | None, options: tuple[Any, ...]) -> Any: ...
        def _extra_arguments(self, options: tuple[Any, ...]) -> tuple[Any, ...]: ...

    def explain(
        self,
        function: str,
        method: str | None = None,
        *,
        q: ArrayLike | None = None,
        qd: ArrayLike | None = None,
        qdd: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        f_ext: Named | None = None,
        dissipation: bool = False,
        base_motion: ArrayLike | None = None,
        symbols: bool = False,
        parameters: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> Explanation:
        """Walk a recursion link by link: each line's equation, formula and numbers, to print, show or save.

        function: "inverse_dynamics", "forward_dynamics", "bias_forces" or "gravity_forces". method: as there; None
        takes that of `details=True`. q: neutral unless given, qd, qdd and tau: 0; one sample of each, as the function
        takes them, and so are f_ext, dissipation and base_motion. symbols: leave q and the others as symbols, so that
        every number is a SymPy expression, for small arms (extra `symbolic`); parameters: which numbers of the robot
        are symbols then, and limit: of their size, as in `symbolic`.
        """
        from ..explain import EXPLAINED, explain, explain_symbols

        if function not in EXPLAINED:
            raise ArgumentError(
                f"explain: the function is {shown(function)}{nearest(function, EXPLAINED)}, expected one of "
                f"{', '.join(EXPLAINED)}."
            )
        options = (f_ext, dissipation, base_motion)
        family = "forward_dynamics" if function == "forward_dynamics" else "inverse_dynamics"
        request = self._request(function, DETAILED[family] if method is None else method, options)
        if symbols:
            numbers = {"q": q, "qd": qd, "qdd": qdd, "tau": tau, "f_ext": f_ext, "base_motion": base_motion}
            passed = [name for name, value in numbers.items() if value is not None]
            if passed:
                raise ArgumentError(f"explain: symbols=True leaves everything open, got {passed[0]}: leave it out.")
            sets = self._sets(self._letters(parameters))
            return explain_symbols(self.model, request, sets, numbered, LIMIT if limit is None else limit)
        if parameters is not None:
            raise ArgumentError("explain: parameters are letters for numbers of the robot, which need symbols=True.")
        given = {"q": self.neutral() if q is None else q, "qd": qd, "qdd": qdd, "tau": tau}
        extra = [name for name, value in (("f_ext", f_ext), ("base_motion", base_motion)) if value is not None]
        given |= dict(zip(extra, self._extra_arguments(options), strict=True))
        return explain(self.model, request, {name: value for name, value in given.items() if value is not None})

    def symbolic(
        self, function: Any, method: str | None = None, *, parameters: Sequence[str] | None = None,
        simplify: bool = False, numbers: str = "rational", names: str = "numbers", limit: int | None = None,
    ) -> Symbolic:  # fmt: skip
        """A function such as "mass_matrix" or ("jacobian", "tool") as SymPy expressions, for small arms.

        method: None takes the one that is shortest written out. parameters: numbers of the robot to leave as symbols,
        as `compile` takes them; None: of an arm that stays in a plane its "dimensions" (L1, m1, c1, I1, g), of others
        none. simplify: fractions of polynomials in the sines and cosines, equal terms together.
        numbers: "rational", exact fractions, or "float". names: symbols q1, qd1, qdd1, ... or, by "joints", q_<joint>.
        limit: refuse what takes more operations written out (simplified: more terms).
        """
        if names not in NAMES:
            raise ArgumentError(f"names is {shown(names)}, expected 'numbers' (q1, q2, ...) or 'joints' (q_<joint>).")

        letters = self._letters(parameters)
        sets = self._sets(letters)

        def program(function: Any, method: str | None) -> Program:
            chosen = {"method": method, "parameters": letters, "rolled": False, "base_parameters": False}
            return self.recipe(function, **chosen).trace()

        def symbol_names(array: Array) -> Sequence[str]:
            if names == "joints" and array.name in ("q", "qd", "qdd", "tau"):
                return _by_joint(self.canonical, self.joint_names, array)
            return numbered(array, sets)

        return shortest(
            program, self.methods, function, method, symbol_names, self.name,
            Options(simplify, numbers, LIMIT if limit is None else limit, NUMBERS_INSTEAD if letters else ""), sets,
        )  # fmt: skip

    def _letters(self, parameters: Sequence[str] | None) -> Sequence[str]:
        """Which numbers of the robot are symbols; where nothing is said, those of an arm that stays in a plane."""
        if parameters is None:
            return ("dimensions",) if is_planar(self.canonical) else ()
        return parameters

    def _sets(self: Any, names: Sequence[str]) -> tuple[ParameterSet, ...]:
        return parameter_sets(self, names)


class GeneralAnalysis:
    """The part of `GeneralArm` that shows its functions instead of evaluating them."""

    if TYPE_CHECKING:
        joints: Any
        parameter_names: Any

        def recipe(self, functions: Any, method: str | None, base_parameters: bool | None) -> Recipe: ...
        def methods(self, function: str) -> tuple[str, ...]: ...

    def symbolic(
        self, function: Any, method: str | None = None, *, simplify: bool = False, numbers: str = "rational",
        limit: int | None = None,
    ) -> Symbolic:  # fmt: skip
        """As `Robot.symbolic`, with `parameter_names` and gx, gy, gz for the numbers of the arm."""

        def program(function: Any, method: str | None) -> Program:
            return self.recipe(function, method, False).trace()

        def symbol_names(array: Array) -> Sequence[str]:
            rows = self.parameter_names if array.name == "parameters" else ()
            return [name for row in rows for name in row] or numbered(array)

        return shortest(
            program, self.methods, function, method, symbol_names, f"a general arm {self.joints}",
            Options(simplify, numbers, LIMIT if limit is None else limit),
        )  # fmt: skip


def shortest(
    program: Callable[[Any, str | None], Program], methods: Callable[[str], tuple[str, ...]], function: Any,
    method: str | None, symbol_names: Callable[[Array], Sequence[str]], robot: str, options: Options,
    sets: Sequence[ParameterSet] = (),
) -> Symbolic:  # fmt: skip
    """The function by the given method, or by the one whose program is shortest written out."""
    first = program(function, method)  # says what is wrong with the names, before they are taken apart
    name = function[0] if isinstance(function, tuple) else function
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
