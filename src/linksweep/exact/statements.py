"""What is proved of a mechanism: the statements, each as two lists of field elements that must be equal.

A statement is tried at one `Point`. Its two sides come from different algorithms, or from one algorithm and what
mechanics demands of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..algorithms.explicit_model import explicit_model
from ..algorithms.explicit_model_direct import explicit_model_direct
from ..functions import FUNCTIONS, Method, Request
from ..parameters import Inertias
from ..regrouping import regroup
from ..spatial import Inertia, Mat, Sym, Transform, Vec, leaves
from ..sweeps import Unrolled
from ..transforms import Rotation, Shift
from .field import Dual, Meaningless
from .points import Point

Values = Sequence[Any]
LARGEST_EXPLICIT = 12  # links: I* and P* grow with the cube
COMPARED = (
    "inverse_dynamics", "bias_forces", "gravity_forces", "forward_dynamics", "mass_matrix", "mass_matrix_inverse",
    "effective_inertia", "coriolis_matrix",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tried:
    """One statement at one point: `left` and `right` are equal, or it is false."""

    statement: str
    what: str
    left: Values
    right: Values


@dataclass(frozen=True, slots=True)
class Excluded:
    """What has no meaning over the field, or does not apply to the mechanism."""

    statement: str
    what: str
    reason: str


class Mechanics:
    """The statements about one point, and what had to be left out."""

    def __init__(self, point: Point, singular: bool = False):
        self.point = point
        self.model = point.model
        self.singular = singular
        self.excluded: list[Excluded] = []

    def __iter__(self) -> Iterator[Tried]:
        for section in (
            self.methods, self.accelerations, self.mass_matrix, self.coriolis, self.regressor, self.base_parameters,
            self.both_ways, self.factors, self.energy, self.kinematics,
        ):  # fmt: skip
            yield from section()

    # helpers

    def able(self, function: str) -> list[str]:
        """The methods of a function that apply; the others are noted down."""
        known = FUNCTIONS[function]
        if known.invertible and self.singular:
            self.exclude(function, "", "a joint moves no inertia")
            return []
        found = []
        for name, method in known.methods.items():
            reason = self._hindrance(method)
            if not reason:
                found.append(name)
            elif (function, name) not in {(e.statement, e.what) for e in self.excluded}:
                self.exclude(function, name, reason)
        return found

    def _hindrance(self, method: Method) -> str:
        if method.serial and not self.model.is_serial:
            return "needs a serial chain"
        if method.single and not self.model.is_single:
            return "needs joints of one freedom"
        if method.written_out and (method.serial or method.single) and len(self.model.links) > LARGEST_EXPLICIT:
            return f"is written out, for at most {LARGEST_EXPLICIT} links"
        return ""

    def exclude(self, statement: str, what: str, reason: str) -> None:
        self.excluded.append(Excluded(statement, what, reason))

    def value(self, function: str, method: str = "", *, all_terms: bool = False, **options: Any) -> list[Any]:
        """The result of a function; method "": the first that it has. all_terms: f_ext, damping, a moving base."""
        known = FUNCTIONS[function]
        others = {name: options.pop(name) for name in tuple(options) if not isinstance(options[name], (str, bool))}
        terms = dict.fromkeys(known.takes, True) if all_terms else {}
        request = Request(function, method or next(iter(known.methods)), **terms | options)
        return self.point.evaluate(request, **others)

    def results(self, function: str, **options: Any) -> dict[str, list[Any]]:
        """By every method that applies."""
        found = {}
        for method in self.able(function):
            try:
                found[method] = self.value(function, method, **options)
            except Meaningless:
                self.exclude(function, method, "uses where, which has no meaning in a finite field")
        return found

    # sections

    def methods(self) -> Iterator[Tried]:
        """Every method of every function against the first one: all pairs are equal then."""
        for function in COMPARED:
            (first, right), *others = self.results(function, all_terms=True).items() or [("", [])]
            for method, left in others:
                yield Tried(function, f"{method} = {first}", left, right)

    def accelerations(self) -> Iterator[Tried]:
        qdd = self.point.values["qdd"]
        tau = self.value("inverse_dynamics", all_terms=True)
        for method, found in self.results("forward_dynamics", all_terms=True, tau=tau).items():
            yield Tried("forward after inverse = 1", method, found, qdd)

    def mass_matrix(self) -> Iterator[Tried]:
        n, values = self.point.nv, self.point.values
        M = rows(self.value("mass_matrix"), n)
        still, weightless = [0.0] * n, replace(self.model, gravity=(0.0, 0.0, 0.0))
        unit = [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]
        slopes = [self.value("inverse_dynamics", model=weightless, qd=still, qdd=row) for row in unit]
        yield Tried("M = d tau / d qdd", "", flat(M), flat(transposed(slopes)))
        yield Tried("M symmetric", "d tau / d qdd", flat(slopes), flat(transposed(slopes)))
        terms = zip(times(M, values["qdd"]), self.value("bias_forces"), strict=True)
        yield Tried("M qdd + bias = tau", "", [a + b for a, b in terms], self.value("inverse_dynamics"))
        for method, found in self.results("mass_matrix_inverse").items():
            yield Tried("M M^-1 = 1", method, flat(product(M, rows(found, n))), flat(unit))
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
        tau = self.value("inverse_dynamics", **dict.fromkeys(FUNCTIONS["regressor"].takes, True))
        yield Tried("regressor Y pi = tau", "", times(Y, pi), tau)
        if all(link.mass for link in links):  # with_body divides by it
            places = {link.row: i for i, link in enumerate(self.model.links)}
            given = Inertias("inertia", tuple(places[row] for row in range(len(links))), (len(links), 10))
            model = given.apply(self.model, pi[: 10 * len(links)])
            for method in self.able("inverse_dynamics"):
                left = self.value("inverse_dynamics", method, model=model)
                yield Tried("inertias as arguments", method, left, self.value("inverse_dynamics", method))

    def base_parameters(self) -> Iterator[Tried]:
        functions = ("inverse_dynamics", "mass_matrix", "forward_dynamics")
        for khalil in (False, True):
            grouped, form = regroup(self.model, khalil), "Khalil's form" if khalil else "cheapest form"
            for function in functions:
                for method in self.able(function):
                    if FUNCTIONS[function].methods[method].linear:
                        left = self.value(function, method, all_terms=True, model=grouped)
                        right = self.value(function, method, all_terms=True)
                        yield Tried("base parameters", f"{function} by {method}, {form}", left, right)

    def both_ways(self) -> Iterator[Tried]:
        """I* and P* through augmented bodies and by direct sums; P* as what stands at each product of rates."""
        if set(FUNCTIONS["inertia_power"].methods) - set(self.able("inertia_power")):
            return
        sweep = Unrolled(self.model, self.point.values["q"])
        a, b = explicit_model(sweep), explicit_model_direct(sweep)
        joints = range(len(self.model.links))
        places = [(i, j, k) for i in joints for k in joints for j in range(k + 1)]
        yield Tried("I* both ways", "", [a.I[i, k] for i in joints for k in joints], [
            b.I[i, k] for i in joints for k in joints
        ])  # fmt: skip
        sides = ([model.P.of_product(*place) for place in places] for model in (a, b))
        yield Tried("P* both ways", "", *sides)

    def factors(self) -> Iterator[Tried]:
        if self.singular:
            return
        n, e = self.point.nv, self.point.values["tau"]
        L, L_inverse = (rows(self.value(name), n) for name in ("factor", "factor_inverse"))
        D, M = self.value("joint_inertia"), self.value("mass_matrix")
        scaled = [[x * d for x, d in zip(row, D, strict=True)] for row in L]
        unit = [1.0 if i == j else 0.0 for i in range(n) for j in range(n)]
        yield Tried("M = L D L^T", "", flat(product(scaled, transposed(L))), M)
        yield Tried("L L^-1 = 1", "", flat(product(L, L_inverse)), unit)
        coloured = self.value("colour")
        yield Tried("whiten(colour(e)) = e", "", self.value("whiten", tau=coloured), e)

    def energy(self) -> Iterator[Tried]:
        qd, moving = self.point.values["qd"], self.point.moving()
        kinetic = dot(qd, times(rows(self.value("mass_matrix"), self.point.nv), qd)) * 0.5
        yield Tried("kinetic_energy = qd M qd / 2", "", self.value("kinetic_energy"), [kinetic])
        fall = [derivative(x) for x in self.value("potential_energy", q=moving)]
        yield Tried("d potential_energy / dt = qd gravity", "", fall, [dot(qd, self.value("gravity_forces"))])
        if not self.massless():
            for about in ("center_of_mass",):
                A = rows(self.value("centroidal_momentum_matrix"), self.point.nv, 6)
                yield Tried("momentum = A qd", about, times(A, qd), self.value("momentum", reference=about))
            m = sum((link.mass for link in self.model.links), 0.0)
            drift = [derivative(x) * m for x in self.value("center_of_mass", q=moving)]
            yield Tried("m d center_of_mass / dt = momentum", "", drift, self.value("momentum", reference="base")[3:])

    def massless(self) -> bool:
        return sum((link.mass for link in self.model.links), 0.0) == 0

    def kinematics(self) -> Iterator[Tried]:
        n, qd, moving = self.point.nv, self.point.values["qd"], self.point.moving()
        frame = self.model.frames[-1].name
        J = rows(self.value("jacobian", frame=frame, reference="world_aligned"), n, 6)
        V = times(J, qd)
        pose = rows(self.value("pose", frame=frame), 4)
        rate = rows([derivative(x) for x in self.value("pose", frame=frame, q=moving)], 4)
        turned = [[*cross(V[:3], column[:3])] for column in transposed(pose)[:3]]
        expected = [*flat(transposed([*turned, V[3:]])), 0.0, 0.0, 0.0, 0.0]
        yield Tried("d pose / dt = J qd", "", flat(rate), expected)
        for prefix in ("", "point_"):
            for reference in FUNCTIONS["jacobian"].references:
                options = {"frame": frame, "reference": reference}
                slope = [derivative(x) for x in self.value(f"{prefix}jacobian", q=moving, **options)]
                found = self.value(f"{prefix}jacobian_derivative", **options)
                yield Tried("jacobian_derivative = dJ/dt", f"{prefix}{reference}", found, slope)
        if self.able("first_influence") and self.able("second_influence"):
            G = self.value("first_influence", frame=frame)
            at = {"frame": frame, "reference": "world_aligned"}
            yield Tried("first_influence = J", "", G, self.value("point_jacobian", **at))
            H = self.value("second_influence", frame=frame)
            bend = [dot(qd, times(rows(H[k * n * n : (k + 1) * n * n], n), qd)) for k in range(6)]
            dJ = rows(self.value("point_jacobian_derivative", **at), n, 6)
            yield Tried("qd second_influence qd = dJ/dt qd", "", bend, times(dJ, qd))


def described_parameters(link: Any) -> list[Any]:
    """The ten parameters of a link in its described frame."""
    axes, origin = Mat(*(Vec(*row) for row in link.axes)), Vec(*link.origin)
    body = Inertia(link.mass, Vec(*link.mp), Sym(*link.I))
    return leaves(Transform((Rotation(axes.T), Shift(-origin))).to_parent(body))


def derivative(x: Any) -> Any:
    return x.d if isinstance(x, Dual) else 0.0


def rows(values: Values, width: int, count: int | None = None) -> list[list[Any]]:
    assert len(values) == width * (count or width)
    return [list(values[k : k + width]) for k in range(0, len(values), width)]


def flat(matrix: Sequence[Values]) -> list[Any]:
    return [x for row in matrix for x in row]


def transposed(matrix: Sequence[Values]) -> list[list[Any]]:
    return [list(column) for column in zip(*matrix, strict=True)]


def dot(a: Values, b: Values) -> Any:
    return sum((x * y for x, y in zip(a, b, strict=True)), 0.0)


def times(matrix: Sequence[Values], v: Values) -> list[Any]:
    return [dot(row, v) for row in matrix]


def product(a: Sequence[Values], b: Sequence[Values]) -> list[list[Any]]:
    columns = transposed(b)
    return [[dot(row, column) for column in columns] for row in a]


def cross(a: Values, b: Values) -> list[Any]:
    return list(Vec(*a).cross(Vec(*b)))
