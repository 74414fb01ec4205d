"""Exact scalars: the field of integers modulo the prime 2^61 - 1, with a bound on the degree of what was computed.

Algorithms run over any scalar, so they run over these. Nothing is rounded: if two formulations give different results
at a random point, they are different functions. The probability that different functions agree there is bounded by
their degree (Schwartz and Zippel). Each Residue therefore stores, beside its value, a bound on the degree of its
numerator as a polynomial in all random numbers, and its denominator as a product of all divisors used so far.

Order and roots are undefined here: sqrt, sign and where raise `Meaningless`. An `Angle` is a point (c, s) of the unit
circle. A `Dual` is a value with its time derivative.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar, NoReturn
from weakref import WeakValueDictionary

from ...spatial.scalars import Number

PRIME = 2**61 - 1
Exact = Any  # a number in place of a float: an element of the field, an Angle, a Dual, a Fraction
Options = dict[str, Any]  # of a RobotFunction, by name


class Meaningless(ArithmeticError):
    """An operation that is not a rational function: a comparison, a root, the sine of a number."""


class Divisor:
    """A divisor: the bound on its degree as a polynomial, and its inverse at the point."""

    __slots__ = ("degree", "inverse")

    def __init__(self, degree: int, value: int):
        self.degree = degree
        self.inverse = inverse(value)


class Denominator:
    """A product of powers of Divisors. Equal ones are the same object and cache their products."""

    __slots__ = ("__weakref__", "_common", "_times", "degree", "powers")
    known: ClassVar[WeakValueDictionary[frozenset[tuple[Divisor, int]], Denominator]] = WeakValueDictionary()

    def __init__(self, powers: dict[Divisor, int]):
        self.powers = powers
        self.degree = sum(divisor.degree * power for divisor, power in powers.items())
        self._common: dict[Denominator, tuple[Denominator, int, int]] = {}
        self._times: dict[Denominator, Denominator] = {}

    @classmethod
    def of(cls, powers: dict[Divisor, int]) -> Denominator:
        if not powers:
            return ONE
        key = frozenset(powers.items())
        found = cls.known.get(key)
        if found is None:
            found = cls.known[key] = cls(powers)
        return found

    def common(self, b: Denominator) -> tuple[Denominator, int, int]:
        """The least common multiple, and the degrees by which it exceeds each."""
        if self is ONE or b is ONE:  # not cached, because ONE outlives all others
            whole = b if self is ONE else self
            return whole, whole.degree - self.degree, whole.degree - b.degree
        found = self._common.get(b)
        if found is None:
            powers = dict(self.powers)
            for divisor, power in b.powers.items():
                powers[divisor] = max(power, powers.get(divisor, 0))
            whole = Denominator.of(powers)
            found = self._common[b] = whole, whole.degree - self.degree, whole.degree - b.degree
        return found

    def times(self, b: Denominator) -> Denominator:
        if self is ONE or b is ONE:
            return b if self is ONE else self
        found = self._times.get(b)
        if found is None:
            powers = dict(self.powers)
            for divisor, power in b.powers.items():
                powers[divisor] = power + powers.get(divisor, 0)
            found = self._times[b] = Denominator.of(powers)
        return found

    def over(self, b: Denominator, divisor: Divisor | None) -> tuple[int, Denominator]:
        """self / b * divisor as a fraction in lowest terms: degree of the numerator, and denominator."""
        powers, above = dict(self.powers), 0
        for other, power in b.powers.items():
            rest = powers.pop(other, 0) - power
            if rest > 0:
                powers[other] = rest
            above -= min(rest, 0) * other.degree
        if divisor is not None:
            powers[divisor] = powers.get(divisor, 0) + 1
        return above, Denominator.of(powers)


ONE = Denominator({})


class Residue(Number):
    """A value modulo PRIME; `n` bounds the degree of its numerator, `den` is its denominator. A constant has n = 0."""

    __slots__ = ("_divisor", "den", "n", "v")

    def __init__(self, v: int, n: int = 0, den: Denominator = ONE):
        self.v = v
        self.n = n
        self.den = den

    def __add__(self, b: Exact) -> Exact:
        if type(b) is not Residue:
            if b.__class__ is float and b == 0.0:
                return self
            b = lifted(b)
            if b is NotImplemented:
                return b
        if self.den is b.den:
            return Residue((self.v + b.v) % PRIME, self.n if self.n > b.n else b.n, self.den)
        den, up, up_b = self.den.common(b.den)
        return Residue((self.v + b.v) % PRIME, max(self.n + up, b.n + up_b), den)

    __radd__ = __add__

    def __sub__(self, b: Exact) -> Exact:
        if type(b) is not Residue:
            if b.__class__ is float and b == 0.0:
                return self
            b = lifted(b)
            if b is NotImplemented:
                return b
        if self.den is b.den:
            return Residue((self.v - b.v) % PRIME, self.n if self.n > b.n else b.n, self.den)
        den, up, up_b = self.den.common(b.den)
        return Residue((self.v - b.v) % PRIME, max(self.n + up, b.n + up_b), den)

    def __rsub__(self, b: Exact) -> Exact:
        return (-self) + b

    def __neg__(self) -> Residue:
        return Residue(-self.v % PRIME, self.n, self.den)

    def __mul__(self, b: Exact) -> Exact:
        if type(b) is not Residue:
            if b.__class__ is float:
                if b == 1.0:
                    return self
                if b == 0.0:
                    return 0.0
            b = lifted(b)
            if b is NotImplemented:
                return b
        den = self.den if b.den is ONE else self.den.times(b.den)
        return Residue(self.v * b.v % PRIME, self.n + b.n, den)

    __rmul__ = __mul__

    def __truediv__(self, b: Exact) -> Exact:
        if type(b) is not Residue:
            b = lifted(b)
            if b is NotImplemented:
                return b
        return b._divides(self)

    def __rtruediv__(self, b: Exact) -> Exact:
        b = lifted(b)
        return b if b is NotImplemented else self._divides(b)

    def _divides(self, a: Residue) -> Residue:
        """a / self."""
        if self.n == 0 and self.den is ONE:
            return Residue(a.v * inverse(self.v) % PRIME, a.n, a.den)
        try:
            divisor = self._divisor
        except AttributeError:
            divisor = self._divisor = Divisor(self.n, self.v)
        above, den = a.den.over(self.den, divisor)
        return Residue(a.v * divisor.inverse % PRIME, a.n + above, den)

    def __abs__(self) -> Residue:
        """One of x and -x, the same for both, which is all that factoring needs."""
        return self if self.v <= PRIME // 2 else -self

    def is_zero(self) -> bool:
        return self.v == 0 and self.n == 0 and self.den is ONE

    def __bool__(self) -> bool:
        return self.v != 0

    def __eq__(self, b: object) -> bool:
        other = lifted(b)
        return other is not NotImplemented and self.v == other.v

    def __hash__(self) -> int:
        return hash(self.v)

    def _meaningless(self, *_: object) -> NoReturn:
        raise Meaningless("an integer modulo a prime has no order, no root and no sine")

    __lt__ = __gt__ = __le__ = __ge__ = sqrt = sin = cos = _meaningless

    def __repr__(self) -> str:
        return f"Residue({self.v}, degree {self.n}/{self.den.degree})"


def inverse(v: int) -> int:
    if v == 0:
        raise ZeroDivisionError("a denominator vanishes at this point of the field")
    return pow(v, -1, PRIME)


_FLOATS: dict[float, Residue] = {}


def lifted(x: Exact) -> Exact:
    """A number as a Residue; NotImplemented for anything else.

    Floats must be constants of an algorithm with few bits, such as 0.5, which are not results of rounding.
    """
    if type(x) is Residue:
        return x
    if isinstance(x, float):
        found = _FLOATS.get(x)
        if found is None:
            above, below = x.as_integer_ratio()
            if below > 2**12 or abs(above) > 2**24:
                raise Meaningless(f"{x!r} is a result of floating-point arithmetic and not exact")
            found = _FLOATS[x] = Residue(above * inverse(below) % PRIME)
        return found
    if isinstance(x, (int, Fraction)):
        return Residue(x.numerator * inverse(x.denominator % PRIME) % PRIME)
    return NotImplemented


class Angle(Number):
    """An angle by its cosine and sine. x is its value for joints that also need it, independent of both.

    x is None for a constant angle, of which only the point of the circle is known.
    """

    __slots__ = ("c", "s", "x")

    def __init__(self, c: Exact, s: Exact, x: Exact = None):
        self.c = c
        self.s = s
        self.x = x

    def __add__(self, b: Exact) -> Exact:
        if isinstance(b, (float, int)) and b == 0:
            return self
        if not isinstance(b, Angle):
            return NotImplemented
        return Angle(self.c * b.c - self.s * b.s, self.s * b.c + self.c * b.s)

    __radd__ = __add__

    def __neg__(self) -> Angle:
        return Angle(self.c, -self.s, None if self.x is None else -self.x)

    def __mul__(self, b: Exact) -> Exact:
        return NotImplemented if not isinstance(b, (float, int, Residue, Dual)) else self.x * b

    __rmul__ = __mul__

    def quarter_turns(self, count: int) -> Angle:
        c, s = self.c, self.s
        return Angle(*((c, s), (-s, c), (-c, -s), (s, -c))[count % 4])

    def is_zero(self) -> bool:
        return self == 0

    def cos(self) -> Exact:
        return self.c

    def sin(self) -> Exact:
        return self.s

    def __eq__(self, b: object) -> bool:
        if isinstance(b, (float, int)):
            return b == 0 and self.c == 1 and self.s == 0
        return isinstance(b, Angle) and (self.c, self.s) == (b.c, b.s)

    def __hash__(self) -> int:
        return hash((self.c, self.s))

    def __repr__(self) -> str:
        return f"Angle({self.c!r}, {self.s!r})"


class Dual:
    """x + d eps with eps^2 = 0: a value and its derivative in time."""

    __slots__ = ("d", "x")

    def __init__(self, x: Exact, d: Exact):
        self.x = x
        self.d = d

    def __add__(self, b: Exact) -> Exact:
        if isinstance(b, Dual):
            return Dual(self.x + b.x, self.d + b.d)
        return Dual(self.x + b, self.d) if isinstance(b, (float, int, Residue)) else NotImplemented

    __radd__ = __add__

    def __sub__(self, b: Exact) -> Exact:
        return NotImplemented if not isinstance(b, (float, int, Residue, Dual)) else self + (-b)

    def __rsub__(self, b: Exact) -> Exact:
        return (-self) + b

    def __neg__(self) -> Dual:
        return Dual(-self.x, -self.d)

    def __mul__(self, b: Exact) -> Exact:
        if isinstance(b, Dual):
            return Dual(self.x * b.x, self.x * b.d + self.d * b.x)
        if not isinstance(b, (float, int, Residue)):
            return NotImplemented
        return 0.0 if b.__class__ is float and b == 0.0 else Dual(self.x * b, self.d * b)

    __rmul__ = __mul__

    def __truediv__(self, b: Exact) -> Exact:
        if isinstance(b, Dual):
            x = self.x / b.x
            return Dual(x, (self.d - x * b.d) / b.x)
        return Dual(self.x / b, self.d / b) if isinstance(b, (float, int, Residue)) else NotImplemented

    def __rtruediv__(self, b: Exact) -> Exact:
        return Dual(b, 0.0) / self
