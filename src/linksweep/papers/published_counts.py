"""Operation counts as the papers print them: polynomials in the number n of joints, as data.

Sines and cosines are not counted. Where a paper contradicts itself, `printed` keeps its number and the row holds the
one that fits the rest (docs/errata.md). Sources are named on each table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

_TERM = re.compile(r"([+-]?)(\d+(?:/\d+)?)?(n(?:\^(\d))?)?")


@dataclass(frozen=True)
class Polynomial:
    """Exact coefficients, the constant first."""

    coefficients: tuple[Fraction, ...]

    @classmethod
    def parse(cls, text: str) -> Polynomial:
        """From "3n^3 + 11n^2 + 129n - 171"."""
        compact = text.replace(" ", "")
        powers: dict[int, Fraction] = {}
        position = 0
        while position < len(compact):
            term = _TERM.match(compact, position)
            if term is None or term.end() == position:
                raise ValueError(f"{text!r} is not a polynomial in n")
            sign, number, n, power = term.groups()
            value = Fraction(number or 1) * (-1 if sign == "-" else 1)
            degree = int(power or 1) if n else 0
            powers[degree] = powers.get(degree, Fraction(0)) + value
            position = term.end()
        return cls(tuple(powers.get(k, Fraction(0)) for k in range(max(powers, default=0) + 1)))

    def __call__(self, n: int) -> Fraction:
        return sum((c * n**k for k, c in enumerate(self.coefficients)), Fraction(0))

    def __add__(self, other: Polynomial) -> Polynomial:
        size = max(len(self.coefficients), len(other.coefficients))
        padded = [(*p.coefficients, *[Fraction(0)] * (size - len(p.coefficients))) for p in (self, other)]
        return Polynomial(tuple(a + b for a, b in zip(*padded, strict=True)))

    def __str__(self) -> str:
        text = ""
        for k, c in reversed(list(enumerate(self.coefficients))):
            if not c:
                continue
            power = "" if k == 0 else "n" if k == 1 else f"n^{k}"
            size = "" if abs(c) == 1 and k else str(abs(c)) if c.denominator == 1 or not k else f"({abs(c)})"
            sign = "-" if c < 0 else "+" if text else ""
            text += (f" {sign} " if text else sign) + size + power
        return text or "0"


def poly(text: str | int) -> Polynomial:
    return Polynomial.parse(str(text))


ZERO = Polynomial((Fraction(0),))


@dataclass(frozen=True)
class Count:
    """Multiplications, additions and divisions, each a polynomial in n."""

    mul: Polynomial
    add: Polynomial
    div: Polynomial = ZERO

    def __add__(self, other: Count) -> Count:
        return Count(self.mul + other.mul, self.add + other.add, self.div + other.div)

    def __str__(self) -> str:
        divided = f" / {self.div} div" if self.div != ZERO else ""
        return f"{self.mul} / {self.add}{divided}"


def count(mul: str | int, add: str | int, div: str | int = 0) -> Count:
    return Count(poly(mul), poly(add), poly(div))


@dataclass(frozen=True)
class Row:
    """A row of a table. printed: what the paper has, if `count` is corrected. repeats: how often it runs, if stated."""

    label: str
    count: Count
    printed: str = ""
    repeats: Polynomial | None = None


@dataclass(frozen=True)
class Algorithm:
    """A whole algorithm of a comparison; `six`: multiplications and additions for n = 6, all that some papers print."""

    author: str
    formulation: str
    count: Count | None
    six: tuple[int, int] | None = None

    def at(self, n: int) -> tuple[Fraction, Fraction] | None:
        if self.count is not None:
            return self.count.mul(n) + self.count.div(n), self.count.add(n)
        return (Fraction(self.six[0]), Fraction(self.six[1])) if self.six and n == 6 else None


@dataclass(frozen=True)
class Table:
    title: str
    source: str
    rows: tuple[Row, ...]
    total: Count

    def sum(self) -> Count:
        rows = [row.count for row in self.rows]
        return sum(rows[1:], rows[0])


# Angeles, Ma & Rojas 1988

ANGELES_1 = (
    Algorithm("Hollerbach", "Euler-Lagrange", count("412n - 277", "320n - 201"), (2195, 1719)),
    Algorithm("Luh, Walker & Paul", "Newton-Euler", count("150n - 48", "131n - 48"), (852, 738)),
    Algorithm("Walker & Orin", "Newton-Euler", count("137n - 22", "101n - 11"), (800, 595)),
    Algorithm("Hollerbach [21]", "Newton-Euler", None, (688, 558)),
    Algorithm("Kane & Levinson", "Kane", None, (646, 394)),
    Algorithm("Khalil et al.", "Newton-Euler", count("105n - 92", "94n - 86"), (538, 478)),
    Algorithm("Angeles, Ma & Rojas", "Kane", count("105n - 109", "90n - 105"), (521, 435)),
)
# n = 6, "assuming that Z0 and Z1 as well as O0 and O1 are coincident". Its steps save 8 multiplications and 7
# additions then, if gravity is along that axis: 513 and 428
ANGELES_FIRST_AXES_COINCIDE = Algorithm("Angeles, Ma & Rojas", "Kane, Z0 = Z1 and O0 = O1", None, (513, 432))

# (52), (56), (57): the three stages, for revolute joints
ANGELES_STAGES = Table(
    "Stages of Kane's algorithm",
    "Angeles, Ma & Rojas 1988, (52), (56), (57)",
    (
        Row("1: rotation matrices and vectors", count(0, 0)),
        Row("2: kinematics", count("50n - 47", "46n - 47")),
        Row("3: driving forces", count("55n - 62", "44n - 58")),
    ),
    count("105n - 109", "90n - 105"),
)

# Kozlowski 1990

_KOZLOWSKI_BIAS = "b, n: (3.7), (3.14)"
KOZLOWSKI_1 = {
    "any": Table(
        "Two-sided inverse dynamics, any twist",
        "Kozlowski 1990, Table 1, left columns",
        (
            Row(_KOZLOWSKI_BIAS, count("74n - 83", "44n - 58")),
            Row("costate propagation (3.10)", count("6n - 10", "6n - 10")),
            Row("costate update (3.11)", count("16n - 11", "15n - 15")),
            Row("state propagation (3.8), (3.12)", count("30n - 31", "36n - 43")),
            Row("state update (3.9)", count("16n - 16", "8n - 8")),
        ),
        count("142n - 151", "109n - 134"),
    ),
    "right": Table(
        "Two-sided inverse dynamics, twists 0 and ±90°",
        "Kozlowski 1990, Table 1, right columns",
        (
            Row(_KOZLOWSKI_BIAS, count("58n - 66", "36n - 42")),
            Row("costate propagation (3.10)", count("4n - 6", "4n - 6")),
            Row("costate update (3.11)", count("8n - 6", "11n - 11")),
            Row("state propagation (3.8), (3.12)", count("28n - 27", "34n - 39")),
            Row("state update (3.9)", count("8n - 8", "4n - 4")),
        ),
        count("106n - 113", "89n - 102"),
    ),
}
KOZLOWSKI_2 = Table(
    "Filter and Bryson-Frazier smoother",
    "Kozlowski 1990, Table 2",
    (
        Row(_KOZLOWSKI_BIAS, count("74n - 83", "44n - 58")),
        Row("state propagation (3.47)", count("6n - 10", "12n - 21")),
        Row("inertia propagation (3.48)", count("56n - 104", "62n - 115"), printed="22n - 115 additions"),
        Row("Kalman gain (3.50)", count(0, 0, "5n - 10")),
        Row("innovations (3.51)", count(0, "n")),
        Row("residuals (3.53)", count(0, 0, "n")),
        Row("state update (3.52)", count("46n - 56", "39n - 47")),
        Row("inertia update (3.54)", count("55n - 56", "85n - 139")),
        Row("costate propagation (3.56)", count("6n - 10", "6n - 10")),
        Row("joint acceleration (3.57)", count("5n - 2", "6n - 3")),
        Row("costate update (3.58)", count("16n - 28", "9n - 18")),
    ),
    count("264n - 349", "264n - 411", "6n - 10"),
)
KHOSLA = {"any": (678, 521), "right": (500, 403)}  # Newton-Euler, n = 6, as Kozlowski cites [13]
BRANDL = Algorithm("Brandl, Johanni & Otter", "articulated body", count("250n - 222", "220n - 198"))
ARMSTRONG_CALCULATIONS = 1560  # multiplications and additions, n = 6, as Kozlowski cites [2]
# the composite method: multiplications and additions together
COMPOSITE = {
    "assembly of M": poly("18n^2 + 92n - 110"),
    "other terms": poly("251n - 285"),
    "solution": poly("1/3n^3 + 5/2n^2 - 11/6n"),
}
COMPOSITE_TOTAL = poly("1/3n^3 + 41/2n^2 + 2047/6n - 395")

# Kang, section 4.2; the printed total of additions is 23/6n^3 + 13/2n^2 + 691/6n - 138, "1715 for n = 6"

KANG = Table(
    "I* and P* by augmented bodies",
    "Kang, section 4.2",
    (
        Row("1: rotations, origins, centers of mass", count("51n - 87", "39n - 66")),
        Row("2: augmented bodies (28), (29)", count("84n - 84", "70n - 70")),
        Row("3: first-order KICs", count("3n^2 - 3n", "2n^2 + 4n")),
        Row("4: I*", count("7/2n^2 + 25/2n", "5/2n^2 + 17/2n")),
        Row("5: second-order KICs", count("6n^2 - 12n", "3n^2 - 3n - 2")),
        Row("6: independent elements of P*", count("3n^3 - 3/2n^2 - 7/2n", "2n^3 - 3n")),
        Row("7: P*", count(0, "11/6n^3 - n^2 + 2/3n")),
    ),
    count("3n^3 + 11n^2 + 129n - 171", "23/6n^3 + 13/2n^2 + 697/6n - 138"),
)
KANG_PRINTED_ADDITIONS = poly("23/6n^3 + 13/2n^2 + 691/6n - 138")
# n = 6, multiplications and additions together
KANG_PREVIOUS_TOTAL = 5995  # "the current optimized one", reference [10]
KANG_PRINTED_TOTAL = 3362  # introduction; 1647 + 1715. The conclusion has 3363
KANG_LI_TOTAL = 2528  # "the most efficient algorithm in the literature", reference [4]: A phi'' + B phi'phi' + C phi'^2

# Rodriguez 1987, planar chain without bias terms; each row for one link

RODRIGUEZ_2 = Table(
    "Planar filter and smoother, without bias terms",
    "Rodriguez 1987, Table II",
    (
        Row("state propagation", count("n", "n")),
        Row("inertia propagation", count("3n", "4n")),
        Row("gain", count(0, 0, "2n")),
        Row("innovations", count(0, "n")),
        Row("residuals", count(0, 0, "n")),
        Row("state update", count("6n", "5n")),
        Row("inertia update", count("9n", "10n")),
        Row("costate propagation", count("n", "n")),
        Row("joint acceleration", count("2n", "3n")),
        Row("costate update", count("4n", "3n")),
    ),
    count("26n", "28n", "3n"),
)
_ONCE, _PAIRS = poly("n"), poly("1/2n^2 + 1/2n")
RODRIGUEZ_3 = Table(
    "Planar mass matrix",
    "Rodriguez 1987, Table III",
    (
        Row("mass", count(0, "n"), repeats=_ONCE),
        Row("center of mass", count("n", "2n"), repeats=_ONCE),
        Row("rotational inertia", count("3n", "3n"), repeats=_ONCE),
        Row("state propagation", count("1/2n^2 + 1/2n", "1/2n^2 + 1/2n"), repeats=_PAIRS),
        Row("state update", count("2n^2 + 2n", "n^2 + n"), repeats=_PAIRS),
    ),
    count("5/2n^2 + 13/2n", "3/2n^2 + 15/2n"),
)
# Fig. 4, in flops (a multiplication and an addition each): filter, and assembly, factors and solution. The paper's text
# has 2n(n + 5) for the assembly, its Table III adds up to n(2n + 7)
FIGURE_4 = {
    "filter and smoother": poly("27n"),
    "composite, by Table III": poly("1/3n^3 + 3n^2 + 7n"),
    "composite, as printed": poly("1/3n^3 + 3n^2 + 10n"),
}

# Other counts of general arms with revolute joints (sines free); the last line is recollected, not read

OTHERS = {
    "inverse_dynamics": (
        Algorithm("Featherstone, Table 10.1", "recursive Newton-Euler", count("93n - 108", "81n - 100"), (450, 386)),
        Algorithm("Khalil & Kleinfinger", "base parameters", count("92n - 127", "81n - 117"), (425, 369)),
    ),
    "mass_matrix": (
        Algorithm(
            "Featherstone, Table 10.1", "composite rigid body", count("10n^2 + 22n - 32", "6n^2 + 37n - 43"), (460, 395)
        ),
    ),
    "forward_dynamics": (
        Algorithm("Featherstone, Table 10.1", "articulated body", count("224n - 259", "205n - 248"), (1085, 982)),
        BRANDL,
    ),
}
# One robot: what, then multiplications and additions
ROBOTS = {
    "puma560": (("Armstrong, Khatib & Burdick, explicit model", 739, 426),),
    "stanford": (("base parameters, customised (recollected, not read)", 142, 99),),
}


Cost = Callable[[int], float | Fraction]  # of n joints


def crossing(
    first: Cost,
    second: Cost,
    numbers: Sequence[int] = range(1, 100),
) -> int | None:
    """The smallest n from which on the first costs less than the second, within these numbers."""
    below = [first(n) < second(n) for n in numbers]
    if not below[-1]:
        return None
    last_above = max((k for k, less in enumerate(below) if not less), default=-1)
    return numbers[last_above + 1]
