"""Exact scalars: arithmetic against fractions, degrees against what a line through the variables shows."""

from __future__ import annotations

import itertools
import math
import operator
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from linksweep.functions.computation import RobotFunction
from linksweep.functions.functions import FUNCTIONS
from linksweep.papers.exact.field import ONE, PRIME, Angle, Dual, Meaningless, Residue, inverse, lifted
from linksweep.papers.exact.points import Draw, Point, Structure
from linksweep.spatial import scalars

# ---- arithmetic ------------------------------------------------------------------------------------------------


def image(x: Fraction) -> int:
    return x.numerator * pow(x.denominator, -1, PRIME) % PRIME


def test_the_modulus_is_a_prime_of_61_bits():
    """Lucas and Lehmer; and -1 is no square, so that 1 + t^2 is never 0."""
    s = 4
    for _ in range(61 - 2):
        s = (s * s - 2) % PRIME
    assert PRIME == 2**61 - 1 and s == 0
    assert pow(PRIME - 1, (PRIME - 1) // 2, PRIME) == PRIME - 1


def test_arithmetic_is_that_of_fractions():
    rng = random.Random(1)
    exact = [Fraction(rng.randint(-99, 99) or 1, rng.randint(1, 99)) for _ in range(4)]
    pairs: list[tuple[Any, Fraction]] = [(lifted(x), x) for x in exact]
    pairs += [(x, Fraction(x)) for x in (0.0, 1.0, -1.0, 0.5, 2.0)]
    for _ in range(2000):
        (a, x), (b, y) = rng.choice(pairs), rng.choice(pairs)
        op = rng.choice((operator.add, operator.sub, operator.mul, operator.truediv))
        if (op is operator.truediv and y == 0) or abs(x.numerator) > 10**30:
            continue
        if not isinstance(a, Residue) and not isinstance(b, Residue):
            continue  # floats among themselves are the algorithm's own
        found, right = op(a, b), op(x, y)
        assert lifted(found).v == image(right) and lifted(-found).v == image(-right)
        if isinstance(found, Residue):
            pairs.append((found, right))


def test_structure_is_kept():
    """0 and 1 of an algorithm fold as they do while tracing."""
    x = Residue(5, 1)
    assert x * 0.0 == 0.0 and isinstance(x * 0.0, float) and isinstance(0.0 * x, float)
    assert x * 1.0 is x and x + 0.0 is x and x - 0.0 is x
    assert scalars.is_zero(Residue(0)) and not scalars.is_zero(Residue(0, 1)) and not scalars.is_zero(x)
    assert Residue(0) == 0 and Residue(PRIME - 1) == -1.0 and Residue(2) != 3 and Residue(1) != "1"
    assert abs(Residue(3)) == abs(Residue(PRIME - 3)) and hash(Residue(2)) == hash(2.0)


def test_what_has_no_meaning_is_refused():
    x = Residue(5)
    for ask in (
        lambda: x < 1.0, lambda: x > 0.0, lambda: scalars.sqrt(x), lambda: scalars.sin(x), lambda: scalars.sign(x),
        lambda: x + 0.1, lambda: x * math.pi, lambda: 1e300 * x,
    ):  # fmt: skip
        with pytest.raises(Meaningless):
            ask()
    for ask in (lambda: 1.0 / Residue(0), lambda: x / Residue(0, 1), lambda: x / 0.0, lambda: inverse(0)):
        with pytest.raises(ZeroDivisionError):
            ask()
    with pytest.raises(TypeError):
        float(x)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        x + "1"  # type: ignore[operator]


def test_angles_add_as_points_of_the_circle():
    draw = Draw(1)
    a, b = draw.angle(), draw.angle()
    total = a + b
    assert total.c * total.c + total.s * total.s == 1
    assert (total.c, total.s) == (a.c * b.c - a.s * b.s, a.s * b.c + a.c * b.s)
    assert a + (-a) == 0 and (a + 0.0) is a and (0.0 + a) is a
    assert a.quarter_turns(1).quarter_turns(3) == a and (a.quarter_turns(1).c, a.quarter_turns(1).s) == (-a.s, a.c)
    assert scalars.cos(a) is a.c and np.sin(np.array([a], dtype=object))[0] is a.s
    assert a * Residue(3) == a.x * 3.0  # what a helical joint takes
    assert Angle(Residue(1), 0.0) == 0 and Angle(Residue(1), 0.0).is_zero()


def test_duals_are_derivatives():
    """Of (x^2 + 3) / (x - y) by x, against the formula."""
    draw = Draw(2)
    x, y = draw.numbers(2)
    found = (Dual(x, 1.0) * Dual(x, 1.0) + 3.0) / (Dual(x, 1.0) - y)
    d = x - y
    assert found.x == (x * x + 3.0) / d
    assert found.d == (x * 2.0 * d - (x * x + 3.0)) / (d * d)
    assert (1.0 / Dual(y, 2.0)).d == -2.0 / (y * y) and (1.0 - Dual(x, 5.0)).d == -5.0
    assert Dual(x, 1.0) * 0.0 == 0.0


# ---- degrees ---------------------------------------------------------------------------------------------------


def test_degrees_by_hand():
    x, y, z = (Residue(k, 1) for k in (3, 5, 7))
    assert (x * y + z).n == 2 and (x * y + z).den is ONE and (x + 1.0).n == 1
    q = x / (y + z)
    assert (q.n, q.den.degree) == (1, 1)
    d = y * z
    a, b = x / d, z / d
    assert ((a + b).n, (a + b).den.degree) == (1, 2), "one divisor is one denominator"
    assert ((a * b).n, (a * b).den.degree) == (2, 4)
    assert ((a / b).n, (a / b).den.degree) == (1, 1), "denominators cancel"
    other = x / (y * z)
    assert ((a + other).n, (a + other).den.degree) == (3, 4), "what was divided by twice counts twice"
    assert (x / Residue(4)).den is ONE and (x / 2.0).n == 1


class Line(Draw):
    """Variables that move along a line with t: what has degree n in them has degree n in t. Circles are left."""

    def __init__(self, seed: Any, t: int):
        super().__init__(seed)
        self.t = t

    def number(self) -> Residue:
        start, slope = (self._random.randrange(PRIME) for _ in range(2))
        return Residue((start + slope * self.t) % PRIME, 1)

    def circle(self) -> Any:
        return self.number(), self.number()


def at(text: str, request: dict[str, Any], t: int) -> list[Residue]:
    draw = Line(text, t)
    model = Structure(text).model(draw)
    return [lifted(x) for x in Point(model, draw).evaluate(RobotFunction(model, **request))]


@pytest.mark.parametrize("text", ["R", "RP", "RPR"])
@pytest.mark.parametrize("function", ["mass_matrix", "inverse_dynamics", "kinetic_energy"])
def test_degree_of_polynomials(text: str, function: str):
    """Along a line differences of order n + 1 vanish, n the bound; for one entry not those of order n - 8."""
    terms: dict[str, Any] = dict.fromkeys(FUNCTIONS[function].takes, True)
    request = {"function": function, "method": next(iter(FUNCTIONS[function].methods)), **terms}
    first = at(text, request, 0)
    assert all(x.den is ONE for x in first)
    most = max(x.n for x in first)
    values = [[x.v for x in at(text, request, t)] for t in range(most + 4)]
    orders = []
    for place, x in enumerate(first):
        row, order = [v[place] for v in values], 0
        while any(row):
            row, order = [(b - a) % PRIME for a, b in itertools.pairwise(row)], order + 1
        assert order <= x.n + 1
        orders.append(order)
    assert max(orders) > most - 8, "a bound that is far off would be of little use"


@pytest.mark.parametrize(
    ("text", "function", "method"),
    [
        ("R", "forward_dynamics", "filter_smoother"),
        ("R", "forward_dynamics", "filter_smoother_51"),
        ("RP", "mass_matrix_inverse", "factorization"),
        ("RP", "mass_matrix_inverse", "costate_covariance"),
        ("S", "forward_dynamics", "composite"),
    ],
)
def test_degree_of_fractions(text: str, function: str, method: str):
    """Along a line f = N / D with deg N <= n and deg D as bounded: N - f D = 0 has a solution."""
    terms: dict[str, Any] = dict.fromkeys(FUNCTIONS[function].takes, True)
    request = {"function": function, "method": method, **terms}
    x = at(text, request, 0)[0]
    assert x.den is not ONE
    above, below = x.n + 1, x.den.degree + 1
    places = range(1, above + below + 6)
    assert rank(equations(above, below, {t: at(text, request, t)[0].v for t in places})) < above + below
    rng = random.Random(1)
    assert rank(equations(above, below, {t: rng.randrange(PRIME) for t in places})) == above + below  # no such fraction


def equations(above: int, below: int, values: dict[int, int]) -> list[list[int]]:
    """N(t) - f(t) D(t) at each t, by the coefficients of N and D."""
    rows = []
    for t, f in values.items():
        powers = [pow(t, k, PRIME) for k in range(max(above, below))]
        rows.append([*powers[:above], *(-f * power % PRIME for power in powers[:below])])
    return rows


def rank(rows: list[list[int]]) -> int:
    found = 0
    for column in range(len(rows[0])):
        pivot = next((row for row in rows[found:] if row[column]), None)
        if pivot is None:
            continue
        place = rows.index(pivot, found)
        rows[found], rows[place] = rows[place], rows[found]
        over = pow(pivot[column], -1, PRIME)
        for k in range(found + 1, len(rows)):
            factor = rows[k][column] * over % PRIME
            if factor:
                rows[k] = [(a - factor * b) % PRIME for a, b in zip(rows[k], pivot, strict=True)]
        found += 1
    return found
