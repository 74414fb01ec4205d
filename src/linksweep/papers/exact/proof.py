"""`prove`: statements about a robot or a joint structure, evaluated at random points in exact arithmetic.

A statement is two lists of field elements that must be equal at a `Point`. Its two sides come from different
algorithms, or from one algorithm and a law of mechanics. Identities of spatial operators are applied to a random
vector. Programs are traced with the robot's exact parameters as constants, rewritten, factored, fused and rolled into
loops, and each of them is interpreted over the same elements as the algorithm.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...algorithms.explicit.explicit_model import explicit_model
from ...algorithms.explicit.explicit_model_direct import explicit_model_direct
from ...algorithms.mass_matrix.factorization import gains
from ...backends.interpreter import Interpreter
from ...errors import ArgumentError
from ...functions.computation import RobotFunction
from ...functions.declaration import Method
from ...functions.functions import FUNCTIONS
from ...functions.parameters import Inertias, regroup
from ...mechanism.canonical import CanonicalLink
from ...mechanism.sweeps import Unrolled
from ...model.lint import lint
from ...robot.robot import Robot
from ...spatial.algebra import Inertia, Mat, Sym, Transform, Vec, leaves
from ...spatial.transforms import Rotation, Shift
from ...support.checks import whole_number
from ...support.files import Facts
from ...support.messages import listing, shown
from ...tracing.differentiate import differentiate
from ...tracing.passes import factor_sums, fuse, remove_dead
from ...tracing.program import Program
from ...tracing.rolled import Rolled
from ...tracing.tracer import UnrolledTrace
from ..spatial_operators.chain import TurnedChain
from ..spatial_operators.identities import IDENTITIES
from ..spatial_operators.operators import SpatialOperators
from .field import PRIME, Dual, Exact, Meaningless, Options, lifted
from .points import Draw, Point, Structure, exact_canonical, exact_model

Values = Sequence[Exact]
LARGEST_EXPLICIT = 12  # maximum number of links for I* and P*, which grow with the cube
NO_DIVISOR = "divides by zero"  # at every point; by chance at one of 1e15 points
COMPARED = (
    "inverse_dynamics", "bias_forces", "gravity_forces", "forward_dynamics", "mass_matrix", "mass_matrix_inverse",
    "articulated_inertia", "effective_inertia", "coriolis_matrix",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tried:
    """A statement evaluated at one point: it is false if `left` and `right` differ."""

    statement: str
    what: str
    left: Values
    right: Values


@dataclass(frozen=True, slots=True)
class Excluded:
    """A statement that is undefined over the field or does not apply to the mechanism."""

    statement: str
    what: str
    reason: str


class Mechanics:
    """The statements at one point; those that do not apply are added to `excluded`.

    singular: a joint moves no inertia, so that M has no inverse. dynamic: the mechanism has inertia.
    """

    def __init__(self, point: Point, excluded: list[Excluded], singular: bool = False, dynamic: bool = True):
        self.point = point
        self.model = point.model
        self.excluded = excluded
        self.singular = singular
        self.dynamic = dynamic
        self._known: dict[tuple[object, ...], list[Exact]] = {}

    def __iter__(self) -> Iterator[Tried]:
        sections: list[Callable[[], Iterator[Tried]]] = [self.kinematics]
        if self.dynamic:
            sections += [
                self.methods, self.mass_matrix, self.coriolis, self.regressor, self.base_parameters, self.both_ways,
                self.energy,
            ]  # fmt: skip
            sections += [] if self.singular else [self.inverses]
        else:
            self.exclude("dynamics", "", "needs mass or inertia")
        for section in sections:
            try:
                yield from section()
            except ZeroDivisionError:
                self.exclude(section.__name__.replace("_", " "), "", NO_DIVISOR)

    # helpers

    def able(self, function: str) -> list[str]:
        """The methods of a function that apply; the others are added to `excluded`."""
        known = FUNCTIONS[function]
        if known.invertible and self.singular:
            self.exclude(function, "", "needs inertia at every joint")
            return []
        hindered = {name: self._hindrance(method) for name, method in known.methods.items()}
        for name, reason in hindered.items():
            if reason:
                self.exclude(function, name, reason)
        return [name for name, reason in hindered.items() if not reason]

    def _hindrance(self, method: Method) -> str:
        if method.serial and not self.model.is_serial:
            return "needs a serial chain"
        if method.single and not self.model.is_single:
            return "needs 1-DOF joints"
        if method.written_out and method.single and len(self.model.links) > LARGEST_EXPLICIT:
            return f"is unrolled, for at most {LARGEST_EXPLICIT} links"
        return ""

    @property
    def frame(self) -> str:
        """A frame that many joints move."""
        return max(reversed(self.model.frames), key=lambda frame: frame.link).name

    def exclude(self, statement: str, what: str, reason: str) -> None:
        found = Excluded(statement, what, reason)
        if found not in self.excluded:
            self.excluded.append(found)

    def value(
        self, function: str, method: str | None = None, *, all_terms: bool = False, **options: Any
    ) -> list[Exact]:
        """The result of a function by a method, or by the first that applies.

        all_terms: include external wrenches, damping and base motion. options: those of the RobotFunction, and a
        model or inputs that replace those of the point.
        """
        known = FUNCTIONS[function]
        other = {name: options.pop(name) for name in tuple(options) if not isinstance(options[name], (str, bool))}
        terms: Options = dict.fromkeys(known.takes, True) if all_terms else {}
        method = self.able(function)[0] if method is None else method
        model = other.pop("model", self.model)
        computation = RobotFunction(model, function, method, **terms | options)
        if other or model is not self.model:
            return self.point.evaluate(computation, **other)
        key = (function, method, *sorted((terms | options).items()))
        if key not in self._known:
            self._known[key] = self.point.evaluate(computation)
        return self._known[key]

    def results(self, function: str, **options: Any) -> dict[str, list[Exact]]:
        """The results of a function by every method that applies."""
        results = {}
        for method in self.able(function):
            try:
                results[method] = self.value(function, method, **options)
            except Meaningless:
                self.exclude(function, method, "branches on the sign of a number (where)")
            except ZeroDivisionError:
                self.exclude(function, method, NO_DIVISOR)
        return results

    # sections

    def methods(self) -> Iterator[Tried]:
        """Every method of every function equals the first one, so all pairs are equal."""
        for function in COMPARED:
            (first, right), *others = self.results(function, all_terms=True).items() or [("", [])]
            for method, left in others:
                yield Tried(function, f"{method} = {first}", left, right)

    def mass_matrix(self) -> Iterator[Tried]:
        n, values = self.point.nv, self.point.values
        M = rows(self.value("mass_matrix"), n)
        still, weightless = [0.0] * n, replace(self.model, gravity=(0.0, 0.0, 0.0))
        columns = [self.value("inverse_dynamics", model=weightless, qd=still, qdd=row) for row in identity(n)]
        yield Tried("M = d tau / d qdd", "", flat(M), flat(transposed(columns)))
        yield Tried("M symmetric", "d tau / d qdd", flat(columns), flat(transposed(columns)))
        terms = zip(times(M, values["qdd"]), self.value("bias_forces"), strict=True)
        yield Tried("M qdd + bias = tau", "", [a + b for a, b in terms], self.value("inverse_dynamics"))
        for method, found in self.results("effective_inertia").items():
            yield Tried("I* = M", method, found, flat(M))

    def coriolis(self) -> Iterator[Tried]:
        n, qd = self.point.nv, self.point.values["qd"]
        rate = rows([derivative(x) for x in self.value("mass_matrix", q=self.point.moving())], n)
        quick = [a - b for a, b in zip(self.value("bias_forces"), self.value("gravity_forces"), strict=True)]
        for method, found in self.results("coriolis_matrix").items():
            C = rows(found, n)
            skew = [[rate[i][j] - C[i][j] * 2.0 for j in range(n)] for i in range(n)]
            yield Tried("dM/dt - 2 C skew", method, flat(skew), [-x for x in flat(transposed(skew))])
            yield Tried("C qd = bias - gravity", method, times(C, qd), quick)
        work = dot(qd, times(rate, qd)) * 0.5
        yield Tried("qd (bias - gravity) = qd dM/dt qd / 2", "", [dot(qd, quick)], [work])

    def regressor(self) -> Iterator[Tried]:
        n, links = self.point.nv, self.point.by_row
        pi = [x for link in links for x in described_parameters(link)] + [link.armature for link in links]
        Y = rows(self.value("regressor", all_terms=True), len(pi), n)
        terms: Options = dict.fromkeys(FUNCTIONS["regressor"].takes, True)
        tau = self.value("inverse_dynamics", **terms)
        yield Tried("regressor Y pi = tau", "", times(Y, pi), tau)
        if not all(link.mass for link in links):
            self.exclude("inertias as arguments", "", "needs a mass in every link")
            return
        places = sorted(range(len(links)), key=lambda i: self.model.links[i].row)
        given = Inertias("inertia", tuple(places), (len(links), 10)).apply(self.model, pi[: 10 * len(links)])
        for method in self.able("inverse_dynamics"):
            left = self.value("inverse_dynamics", method, model=given)
            yield Tried("inertias as arguments", method, left, self.value("inverse_dynamics", method))

    def base_parameters(self) -> Iterator[Tried]:
        """Regrouped inertias give the same results; forward dynamics recovers the accelerations of its torques."""
        tau = self.value("inverse_dynamics", all_terms=True)
        for khalil in (False, True):
            grouped, form = regroup(self.model, khalil), "Khalil's form" if khalil else "cheapest form"
            for function in ("inverse_dynamics", "mass_matrix", "coriolis_matrix", "forward_dynamics"):
                for method in self.able(function):
                    if not FUNCTIONS[function].methods[method].linear:
                        continue
                    left = self.value(function, method, all_terms=True, model=grouped, tau=tau)
                    forward = function == "forward_dynamics"
                    right = self.point.values["qdd"] if forward else self.value(function, method, all_terms=True)
                    yield Tried("base parameters", f"{function} by {method}, {form}", left, right)

    def both_ways(self) -> Iterator[Tried]:
        """I* and P* by augmented bodies and by direct sums; P* by its coefficients of products of velocities."""
        if set(FUNCTIONS["inertia_power"].methods) - set(self.able("inertia_power")):
            return
        sweep = Unrolled(self.model, self.point.values["q"])
        a, b = explicit_model(sweep), explicit_model_direct(sweep)
        joints = range(len(self.model.links))
        places = [(i, j, k) for i in joints for k in joints for j in range(k + 1)]
        yield Tried("I* both ways", "", *([model.I[i, k] for i, _, k in places] for model in (a, b)))
        yield Tried("P* both ways", "", *([model.P.of_product(*place) for place in places] for model in (a, b)))

    def inverses(self) -> Iterator[Tried]:
        """Forward and inverse dynamics are inverse functions; M, its inverse and its factors are consistent."""
        n, qdd, e = self.point.nv, self.point.values["qdd"], self.point.values["tau"]
        tau = self.value("inverse_dynamics", all_terms=True)
        for method, found in self.results("forward_dynamics", all_terms=True, tau=tau).items():
            yield Tried("forward after inverse = 1", method, found, qdd)
        M, unit = rows(self.value("mass_matrix"), n), identity(n)
        for method, found in self.results("mass_matrix_inverse").items():
            yield Tried("M M^-1 = 1", method, flat(product(M, rows(found, n))), flat(unit))
        L, D, L_inverse = (
            transposed([self.value(name, tau=column) for column in unit]) for name in ("colour", "factor", "whiten")
        )
        yield Tried("M = L D L^T", "", flat(product(product(L, D), transposed(L))), flat(M))
        yield Tried("M solve(e) = e", "", times(M, self.value("solve")), e)
        yield Tried("L L^-1 = 1", "", flat(product(L, L_inverse)), flat(unit))
        yield Tried("whiten(colour(e)) = e", "", self.value("whiten", tau=self.value("colour")), e)

    def energy(self) -> Iterator[Tried]:
        qd, moving = self.point.values["qd"], self.point.moving()
        kinetic = dot(qd, times(rows(self.value("mass_matrix"), self.point.nv), qd)) * 0.5
        yield Tried("kinetic_energy = qd M qd / 2", "", self.value("kinetic_energy"), [kinetic])
        fall = [derivative(x) for x in self.value("potential_energy", q=moving)]
        yield Tried("d potential_energy / dt = qd gravity", "", fall, [dot(qd, self.value("gravity_forces"))])
        m = sum((link.mass for link in self.model.links), 0.0)
        if m == 0:
            self.exclude("momentum", "", "needs mass")
            return
        h = self.value("momentum", reference="base")
        A = rows(self.value("centroidal_momentum_matrix"), self.point.nv, 6)
        yield Tried("momentum = A qd", "", times(A, qd), self.value("momentum", reference="center_of_mass"))
        drift = [derivative(x) * m for x in self.value("center_of_mass", q=moving)]
        yield Tried("m d center_of_mass / dt = momentum", "", drift, h[3:])

    def kinematics(self) -> Iterator[Tried]:
        n, qd, moving = self.point.nv, self.point.values["qd"], self.point.moving()
        frame = self.frame
        J = rows(self.value("jacobian", frame=frame, reference="world_aligned"), n, 6)
        V = times(J, qd)
        pose = rows(self.value("pose", frame=frame), 4)
        rate = rows([derivative(x) for x in self.value("pose", frame=frame, q=moving)], 4)
        turned = [[*cross(V[:3], column[:3])] for column in transposed(pose)[:3]]
        expected = [*flat(transposed([*turned, V[3:]])), 0.0, 0.0, 0.0, 0.0]
        yield Tried("d pose / dt = J qd", "", flat(rate), expected)
        for prefix in ("", "point_"):
            for reference in FUNCTIONS["jacobian"].references:
                options: Options = {"frame": frame, "reference": reference}
                expected = [derivative(x) for x in self.value(f"{prefix}jacobian", q=moving, **options)]
                computed = self.value(f"{prefix}jacobian_derivative", **options)
                yield Tried("jacobian_derivative = dJ/dt", f"{prefix}{reference}", computed, expected)
        for single, every in (("pose", "poses"), ("jacobian", "jacobians")):
            reference = "world_aligned" if single == "jacobian" else ""
            one_by_one = [self.value(single, frame=f.name, reference=reference) for f in self.model.frames]
            yield Tried(f"{every} = {single} of each", "", self.value(every, reference=reference), flat(one_by_one))
        if not self.able("first_influence") or not self.able("second_influence"):
            return
        at: Options = {"frame": frame, "reference": "world_aligned"}
        G, H = self.value("first_influence", frame=frame), self.value("second_influence", frame=frame)
        yield Tried("first_influence = J", "", G, self.value("point_jacobian", **at))
        bend = [dot(qd, times(rows(H[k * n * n : (k + 1) * n * n], n), qd)) for k in range(6)]
        dJ = rows(self.value("point_jacobian_derivative", **at), n, 6)
        yield Tried("qd second_influence qd = dJ/dt qd", "", bend, times(dJ, qd))


def described_parameters(link: CanonicalLink) -> list[Exact]:
    """The ten parameters of a link in its described frame."""
    axes, origin = Mat(*(Vec(*row) for row in link.axes)), Vec(*link.origin)
    body = Inertia(link.mass, Vec(*link.mp), Sym(*link.I))
    return leaves(Transform((Rotation(axes.T), Shift(-origin))).to_parent(body))


def derivative(x: Exact) -> Exact:
    return x.d if isinstance(x, Dual) else 0.0


def rows(values: Values, width: int, count: int | None = None) -> list[list[Exact]]:
    if len(values) != width * (count or width):
        raise ValueError(f"{len(values)} values are no rows of {width}")
    return [list(values[k : k + width]) for k in range(0, len(values), width)]


def identity(n: int) -> list[list[float]]:
    return [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]


def flat(matrix: Sequence[Values]) -> list[Exact]:
    return [x for row in matrix for x in row]


def transposed(matrix: Sequence[Values]) -> list[list[Exact]]:
    return [list(column) for column in zip(*matrix, strict=True)]


def dot(a: Values, b: Values) -> Exact:
    return sum((x * y for x, y in zip(a, b, strict=True)), 0.0)


def times(matrix: Sequence[Values], v: Values) -> list[Exact]:
    return [dot(row, v) for row in matrix]


def product(a: Sequence[Values], b: Sequence[Values]) -> list[list[Exact]]:
    columns = transposed(b)
    return [[dot(row, column) for column in columns] for row in a]


def cross(a: Values, b: Values) -> list[Exact]:
    return list(Vec(*a).cross(Vec(*b)))


# ---- identities of spatial operators ----------------------------------------------------------------------------


class ExactOperators(SpatialOperators):
    """SpatialOperators over the field, at the origins of the canonical frames."""

    def __init__(self, point: Point, draw: Draw):
        self.N = len(point.model.links)
        self._chain = TurnedChain(point.model, point.values["q"])
        self._tips = [(self.N - 1, Vec(*draw.numbers(3)))]
        self._none = self._chain.same(None)
        self._matrices: dict[object, np.ndarray] = {}

    def dense(self, a: Exact) -> np.ndarray:
        if isinstance(a, np.ndarray):
            return a
        if a not in self._matrices:
            self._matrices[a] = a.matmat(np.eye(a.shape[1]).astype(object))
        return self._matrices[a]

    @cached_property
    def _gains(self) -> Exact:
        return gains(self._chain)

    def _check_inertia(self) -> None:
        pass  # checked before


def appendix_a(point: Point, draw: Draw) -> Iterator[tuple[str, list[Exact], list[Exact]]]:
    """Name, left and right side of every equation of identities.py."""
    o = ExactOperators(point, draw)
    x = np.array(draw.numbers(6 * o.N), dtype=object)
    for name, equations in IDENTITIES.items():
        for k, (left, right, *_) in enumerate(equations(o), start=1):
            vector = x[: left.shape[1]]
            yield name if k == 1 else f"{name}, equation {k}", list(left @ vector), list(right @ vector)


# ---- programs ---------------------------------------------------------------------------------------------------


def traced(computation: RobotFunction, rolled: bool = False) -> Program:
    """A traced Program, after the rewrite rules and before any pass."""
    tracer = (Rolled if rolled else UnrolledTrace)(computation.model, computation.inputs)
    computation.write(tracer, 0)
    return tracer.program(computation.function, computation.outputs).verify()


def run(program: Program, point: Point, **other: Sequence[Exact]) -> list[Exact]:
    """The first result of a Program at a point, as a flat list."""
    values = point.values | other
    inputs = []
    for array in program.inputs:
        argument = np.empty((1, array.size), dtype=object)
        argument[0, :] = values[array.name]
        inputs.append(argument)
    outputs = [np.empty((1, array.size), dtype=object) for array in program.outputs]
    Interpreter(program)(inputs, outputs)
    return list(outputs[0][0])


def stages(computation: RobotFunction) -> Iterator[tuple[str, Program]]:
    """Every Program between the tracer and a backend."""
    method = computation.declared.methods[computation.method]
    plain = traced(computation)
    yield "traced", plain
    factored = factor_sums(plain).verify()
    yield "factored", factored
    yield "fused", fuse(factored).verify()
    if method.linear:
        regrouped = replace(computation, model=regroup(computation.model))
        yield "with base parameters", factor_sums(traced(regrouped)).verify()
    if not method.written_out:
        loops = traced(computation, rolled=True)
        yield "rolled", loops
        live = remove_dead(loops).verify()
        yield "rolled, without dead work", live
        yield "rolled, fused", fuse(live).verify()


def optimised(mechanics: Mechanics) -> Iterator[Tried]:
    """Every Program of every function and method computes the same as the algorithm."""
    model, point = mechanics.model, mechanics.point
    for name, function in FUNCTIONS.items():
        if function.dynamics and not mechanics.dynamic:
            continue
        frame = mechanics.frame if function.needs_frame else ""
        for reference in function.references or ("",):
            options: Options = {"frame": frame, "reference": reference}
            for method, right in mechanics.results(name, all_terms=True, **options).items():
                terms: Options = dict.fromkeys(function.takes, True)
                computation = RobotFunction(model, name, method, **options, **terms)
                label = ", ".join(word for word in (method, reference) if word)
                for stage, program in stages(computation):
                    what = f"{label}, {stage}" if label else stage
                    yield Tried(f"programs of {name}", what, run(program, point), right)
    if mechanics.dynamic:
        yield from _derivatives(mechanics)


def _derivatives(mechanics: Mechanics) -> Iterator[Tried]:
    """Programs of d tau / d q and d tau / d qd, times the velocities qd, against dual numbers."""
    model, point = mechanics.model, mechanics.point
    if not model.is_single:
        mechanics.exclude("programs of derivatives", "", "are taken with respect to q, for 1-DOF joints")
        return
    computation = RobotFunction(model, "inverse_dynamics", mechanics.able("inverse_dynamics")[0])
    program = factor_sums(traced(computation))
    along = point.values["qd"]
    moved = {"q": point.moving(), "qd": [Dual(x, rate) for x, rate in zip(along, along, strict=True)]}
    for by, values in moved.items():
        jacobian = rows(run(differentiate(program, by).verify(), point), point.nv)
        right = [derivative(x) for x in point.evaluate(computation, **{by: values})]
        yield Tried("programs of derivatives", f"d tau / d {by}", times(jacobian, along), right)


# ---- proof --------------------------------------------------------------------------------------------------------

ENOUGH = 1e-12  # a statement counts as proved if the chance of an error is below this


@dataclass(frozen=True, slots=True)
class Outcome:
    """A statement after all trials. wrong: number of `entries` that differ; degree: bound of their differences."""

    statement: str
    what: str
    entries: int
    wrong: int
    degree: int
    trials: int

    @property
    def ok(self) -> bool:
        return self.wrong == 0

    @property
    def chance(self) -> float:
        """Upper bound of the probability that a false statement was not refuted.

        Schwartz and Zippel: a nonzero polynomial of degree d vanishes at most at d / PRIME of all points. In the
        parameters t of the circle's points the degree is at most twice that in their coordinates.
        """
        return min(1.0, 2.0 * self.degree / PRIME) ** self.trials

    def __str__(self) -> str:
        return f"{self.statement}{f' ({self.what})' if self.what else ''}"


@dataclass(frozen=True)
class Proof:
    """The result of `prove`. `ok`: nothing was refuted. `outcomes`: all statements; `excluded`: those not evaluated."""

    name: str
    seed: int
    trials: int
    seconds: float
    outcomes: tuple[Outcome, ...]
    excluded: tuple[Excluded, ...]

    @property
    def refuted(self) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if not outcome.ok)

    @property
    def proved(self) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.ok)

    @property
    def ok(self) -> bool:
        return not self.refuted

    @property
    def degree(self) -> int:
        """The largest of all statements."""
        return max((outcome.degree for outcome in self.outcomes), default=0)

    @property
    def chance(self) -> float:
        """Upper bound of the probability that any one false statement was not refuted."""
        return max((outcome.chance for outcome in self.outcomes), default=0.0)

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.refuted:
            number = len(self.refuted)
            text = f"{number} of {len(self.outcomes)} statements {'is' if number == 1 else 'are'} false"
        elif self.outcomes:
            trials = "one random point" if self.trials == 1 else f"{self.trials} random points"
            text = (
                f"{len(self.outcomes)} statements proved at {trials} of the field of {PRIME} elements: degree at most "
                f"{self.degree}, the chance that a false one was missed is below {above(self.chance)}"
            )
        else:
            text = "nothing could be proved"
        return f"{self.name}: {text} ({self.seconds:.1f} s)."

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Rows of the table, one for each kind of statement: name, subject, degree, chance, "proved" or "REFUTED"."""
        groups: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            groups.setdefault(outcome.statement, []).append(outcome)
        return [_row(statement, outcomes) for statement, outcomes in groups.items()]

    def remarks(self) -> list[str]:
        """Refuted and excluded statements, one line each."""
        lines = [
            f"refuted: {outcome} is false for {self.name}: {outcome.wrong} of {outcome.entries} entries differ"
            for outcome in self.refuted
        ]
        return lines + [
            f"not proved: {e.statement}{f' by {e.what}' if e.what else ''}, which {e.reason}" for e in self.excluded
        ]

    def as_dict(self) -> Facts:
        """Plain JSON values."""
        return {
            "robot": self.name,
            "ok": self.ok,
            "verdict": self.verdict,
            "field": PRIME,
            "seed": self.seed,
            "trials": self.trials,
            "seconds": self.seconds,
            "degree": self.degree,
            "chance": self.chance,
            "statements": [
                {
                    "statement": o.statement,
                    "what": o.what,
                    "ok": o.ok,
                    "entries": o.entries,
                    "wrong": o.wrong,
                    "degree": o.degree,
                    "chance": o.chance,
                }
                for o in self.outcomes
            ],
            "excluded": [{"statement": e.statement, "what": e.what, "reason": e.reason} for e in self.excluded],
        }

    def __str__(self) -> str:
        rows = [HEADINGS, *self.rows()]
        widths = [max(len(row[k]) for row in rows) for k in range(len(HEADINGS))]
        lines = ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self.verdict, *(lines if self.outcomes else []), *self.remarks()])


HEADINGS = ("statement", "for", "degree", "chance", "")


def _row(statement: str, found: list[Outcome]) -> tuple[str, str, str, str, str]:
    wrong = sum(1 for outcome in found if not outcome.ok)
    state = "proved" if not wrong else f"REFUTED {wrong} of {len(found)}"
    return (
        statement, _subject(found), str(max(outcome.degree for outcome in found)),
        f"< {above(max(outcome.chance for outcome in found))}", state,
    )  # fmt: skip


def _subject(found: list[Outcome]) -> str:
    if all(" = " in outcome.what for outcome in found):
        count = len(found) + 1
        pairs = count * (count - 1) // 2
        return f"{count} methods, {pairs} pair{'' if pairs == 1 else 's'}"
    if len(found) > 1:
        return f"{len(found)} cases"
    return found[0].what


def above(chance: float) -> str:
    """Two digits, rounded up."""
    if chance == 0.0:
        return "1e-300"
    power = math.floor(math.log10(chance)) - 1
    return f"{math.ceil(chance / 10.0**power * (1 + 1e-9)) * 10.0**power:.1e}"


# ---- proving ----------------------------------------------------------------------------------------------------

MOST_TRIALS = 50
HOPELESS = 1e-3  # if the chance of an error in one trial is above this, more trials are not worth their time
LARGEST_ROBOT = 64  # maximum number of links
LARGEST_TRACED = 12  # links up to which programs are proved by default: tracing all of them takes minutes


def prove(
    target: Robot | Structure | str, *, trials: int | None = None, seed: int = 0, programs: bool | None = None
) -> Proof:
    """Prove in exact arithmetic that all algorithms of a robot function compute the same function.

    Parameters
    ----------
    target : a Robot, or a joint structure such as "RRPR" or "F(RR)(RP)S" (see `Structure`)
        A structure represents every robot with these joints. For a robot with constraints, statements are about the
        tree without them.
    trials : number of random points; by default as many as bring the chance of an error below 1e-12
    seed : seed of the random points
    programs : whether to prove traced and optimised programs as well; by default for robots of up to 12 links
    """
    start = time.perf_counter()
    whole_number("prove: seed", seed, at_least=0, at_most=2**63)
    if trials is not None:
        whole_number("prove: trials", trials, at_least=1, at_most=MOST_TRIALS)
    if programs is not None and not isinstance(programs, bool):
        raise ArgumentError(f"prove: programs is {shown(programs)}, expected True, False or None.")
    subject = _Subject(target, programs)
    outcomes: dict[tuple[str, str], Outcome] = {}
    excluded: list[Excluded] = []
    done = 0
    while done < (trials or MOST_TRIALS) and (trials or not done or any(map(_undecided, outcomes.values()))):
        excluded.clear()  # the same in every trial
        for tried in subject.statements(Draw(f"{subject.name} {seed} {done}"), excluded):
            _record(outcomes, tried)
        done += 1
    for outcome in outcomes.values():
        if outcome.ok and outcome.chance > ENOUGH and trials is None:
            reason = f"has a degree of up to {outcome.degree:.1e}, too large for this field"
            excluded.append(Excluded(outcome.statement, outcome.what, reason))
    decided = (o for o in outcomes.values() if not o.ok or o.chance <= ENOUGH or trials is not None)
    return Proof(subject.name, seed, done, time.perf_counter() - start, tuple(decided), tuple(excluded))


class _Subject:
    """A structure with random parameters in each trial, or a robot with its own parameters."""

    def __init__(self, target: str | Structure | Robot, programs: bool | None):
        self.structure = self.robot = None
        if isinstance(target, (str, Structure)):
            self.structure = Structure(target) if isinstance(target, str) else target
            self.name, self.programs = self.structure.text, bool(programs)
            return
        self.robot = _checked_robot(target)
        self.name = self.robot.name + (" without its constraints" if self.robot.constraints else "")
        self.model = exact_model(exact_canonical(self.robot.model))
        self.programs = len(self.model.links) <= LARGEST_TRACED if programs is None else programs

    def statements(self, draw: Draw, excluded: list[Excluded]) -> Iterator[Tried]:
        if self.structure is not None:
            mechanics = Mechanics(Point(self.structure.model(draw), draw), excluded)
        else:
            assert self.robot is not None
            singular = bool(self.robot.has_inertia and self.robot.singular_joints)
            mechanics = Mechanics(Point(self.model, draw), excluded, singular, self.robot.has_inertia)
        mechanics.exclude("Coulomb friction", "", "contains the sign of a velocity")
        if self.robot is not None and self.robot.constraints:
            labels = listing([constraint.label for constraint in self.robot.constraints])
            mechanics.exclude(
                "constrained dynamics",
                "",
                f"depends on {labels}: statements are about the tree",
            )
        if self.robot is not None and self.robot.model.springs:
            mechanics.exclude("springs between frames", "", "are not part of these statements")
        if not self.programs:
            mechanics.exclude("programs", "", f"are traced by default only for robots of up to {LARGEST_TRACED} links")
        yield from mechanics
        yield from _operators(mechanics, draw)
        if self.programs:
            yield from optimised(mechanics)


def _operators(mechanics: Mechanics, draw: Draw) -> Iterator[Tried]:
    model, name = mechanics.model, "Rodriguez & Kreutz 1988"
    if not model.is_serial or not model.is_single or len(model.links) > LARGEST_EXPLICIT:
        mechanics.exclude(name, "", f"is about chains of up to {LARGEST_EXPLICIT} 1-DOF joints")
    elif mechanics.singular or not mechanics.dynamic:
        mechanics.exclude(name, "", "needs inertia at every joint")
    else:
        for equation, left, right in appendix_a(mechanics.point, draw):
            yield Tried(name, equation, left, right)


def _record(outcomes: dict[tuple[str, str], Outcome], tried: Tried) -> None:
    differences = [lifted(a - b) for a, b in zip(tried.left, tried.right, strict=True)]
    wrong = sum(1 for x in differences if x.v)
    degree = max((x.n for x in differences), default=0)
    key = tried.statement, tried.what
    before = outcomes.get(key, Outcome(*key, len(differences), 0, 0, 0))
    outcomes[key] = replace(
        before, wrong=max(wrong, before.wrong), degree=max(degree, before.degree), trials=before.trials + 1
    )


def _undecided(outcome: Outcome) -> bool:
    return outcome.ok and ENOUGH < outcome.chance <= HOPELESS


def _checked_robot(target: Robot) -> Robot:
    if not isinstance(target, Robot):
        raise ArgumentError(
            f"prove got {shown(target)}, expected a Robot, or joints as letters such as 'RRPR': use linksweep.load, "
            f"linksweep.robots, or such a string."
        )
    count = len(target.model.links)
    if count > LARGEST_ROBOT:
        raise ArgumentError(
            f"prove: {target.name} has {count} links, expected at most {LARGEST_ROBOT}: use a part of it "
            f"(robot.subchain), or linksweep.check, which compares random states."
        )
    if any(finding.fatal for finding in lint(target.model)):
        raise ArgumentError(
            f"prove: parameters of {target.name} are not finite or not usable; linksweep.check lists them."
        )
    return target
