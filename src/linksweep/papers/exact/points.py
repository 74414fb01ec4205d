"""Mechanisms with exact parameters, and random points of the field for all their inputs.

The mechanism is a robot, whose parameters are fractions, or a joint structure, all of whose parameters (geometry,
inertia, gravity, armature, damping) are random elements of the field. A statement that holds for the structure holds
for every robot with these joints.

A robot's floats become the decimals that they are written as: 0.0934 is 934/10000. If all joints are at right angles to
each other, canonical.py chooses the links' frames over these fractions as it does over floats, and no number is
rounded. Otherwise frames contain roots. Then the canonical parameters become fractions, and angles rational points of
the unit circle, so that the robot differs from its model by rounding.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from ...errors import ArgumentError
from ...functions.computation import RobotFunction
from ...joints import KINDS, Kind
from ...joints.kind import QUATERNION
from ...mechanism.canonical import CanonicalLink, CanonicalModel, canonical
from ...model.model import BASE, Frame, Inertial, Link, Matrix, Model, Placement, Vector
from ...spatial.algebra import Vec
from ...spatial.transforms import Screw, Shift
from ...support.messages import shown
from .field import PRIME, Angle, Dual, Exact, Options, Residue, inverse, lifted

LETTERS = {kind.letter: kind for kind in KINDS.values()}
LARGEST = 12  # maximum number of links of a structure


class Draw:
    """Random elements of the field, each of degree 1; a point of the circle is (1 - t^2, 2 t) / (1 + t^2).

    c and s count as degree 1 each; in terms of t the degree is at most twice that (`Outcome.chance`).
    """

    def __init__(self, seed: object):
        self._random = random.Random(str(seed))

    def number(self) -> Exact:
        return Residue(self._random.randrange(PRIME), 1)

    def numbers(self, count: int) -> Exact:
        return tuple(self.number() for _ in range(count))

    def circle(self) -> tuple[Exact, Exact]:
        t = self._random.randrange(PRIME)
        over = inverse((1 + t * t) % PRIME)  # never 0, because -1 is not a square modulo PRIME
        return Residue((1 - t * t) * over % PRIME, 1), Residue(2 * t * over % PRIME, 1)

    def angle(self) -> Exact:
        return Angle(*self.circle(), self.number())

    def rotation(self) -> Matrix:
        """About z, x and z."""
        (a, b), (c, s), (d, e) = self.circle(), self.circle(), self.circle()
        return (
            (a * d - b * c * e, -(a * e) - b * c * d, b * s),
            (b * d + a * c * e, a * c * d - b * e, -(a * s)),
            (s * e, s * d, c),
        )

    def order(self, count: int) -> list[int]:
        return self._random.sample(range(count), count)


@dataclass(frozen=True)
class Structure:
    """A tree of joints, written with the letters of their types.

    Letters are in order from the base outward, and parentheses enclose a branch: "F(RR)(RP)S" is a free body with two
    legs of two joints and a ball joint.
    """

    text: str
    joints: str = field(init=False)
    parents: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        joints, parents, at, stack = "", [], BASE, []
        for letter in self.text:
            if letter in LETTERS:
                parents.append(at)
                at = len(joints)
                joints += letter
            elif letter == "(":
                stack.append(at)
            elif letter == ")" and stack:
                at = stack.pop()
            else:
                joints = ""
                break
        if not joints or stack or len(joints) > LARGEST:
            raise ArgumentError(
                f"the structure is {shown(self.text)}, expected up to {LARGEST} letters "
                f"{', '.join(f'{letter} ({kind.name})' for letter, kind in LETTERS.items())} from the base outward, "
                f"branches in parentheses, such as 'RRPR' or 'F(RR)(RP)S'."
            )
        object.__setattr__(self, "joints", joints)
        object.__setattr__(self, "parents", tuple(parents))

    @property
    def name(self) -> str:
        return self.text

    def model(self, draw: Draw) -> CanonicalModel:
        """The general mechanism of this structure, with shuffled coordinates and armature at every second joint."""
        count, rows = len(self.joints), draw.order(len(self.joints))
        kinds = [LETTERS[letter] for letter in self.joints]
        links = []
        for i, (kind, parent) in enumerate(zip(kinds, self.parents, strict=True)):
            before = [kinds[k] for k in range(count) if rows[k] < rows[i]]
            first = parent != BASE and parent not in self.parents[:i] and kinds[parent].commutes
            factors = [] if first else [Shift(Vec(*draw.numbers(3))), Screw(2, *draw.circle(), draw.number())]
            factors.append(Screw(0, *draw.circle(), draw.number()))
            quarters, slide = i % 4, draw.number()
            angle: Exact = Angle(*draw.circle())
            turn: tuple[Exact, Exact] = (angle.quarter_turns(quarters).c, angle.quarter_turns(quarters).s)
            if not kind.commutes:  # as canonical.py has it
                factors.append(Screw(2, *turn, slide))
                quarters, angle, slide, turn = 0, 0.0, 0.0, (1.0, 0.0)
            body = exact_body(draw.number(), draw.numbers(3), draw.numbers(6))
            links.append(
                CanonicalLink(
                    name=f"link{i + 1}", parent=parent, kind=kind.name, factors=tuple(factors), quarters=quarters,
                    angle=angle, turn=turn, slide=slide, pitch=draw.number(), **body,
                    armature=draw.number() if i % 2 else 0.0, damping=draw.number(), friction=0.0,
                    axes=draw.rotation(), origin=draw.numbers(3), row=rows[i],
                    q_start=sum(k.nq for k in before), start=sum(k.nv for k in before),
                )
            )  # fmt: skip
        frames = [Frame(link.name, i, Placement(link.axes, link.origin)) for i, link in enumerate(links)]
        frames.append(Frame("tool", count - 1, Placement(draw.rotation(), draw.numbers(3))))
        return CanonicalModel(tuple(links), tuple(frames), draw.numbers(3))


def patterns(largest: int) -> list[Structure]:
    """Every chain of 1 to `largest` revolute and prismatic joints."""
    return [Structure("".join(text)) for n in range(1, largest + 1) for text in itertools.product("RP", repeat=n)]


def exact_model(model: CanonicalModel) -> CanonicalModel:
    """A robot's canonical model over the field, without Coulomb friction, which contains a sign."""
    links = tuple(_exact_link(link) for link in model.links)
    frames = tuple(Frame(frame.name, frame.link, _placement(frame.placement)) for frame in model.frames)
    return CanonicalModel(links, frames, _numbers(model.gravity))


def exact_number(x: Exact) -> Exact:
    """A constant of the field; 0 stays the float 0.0, by which algorithms recognise structure."""
    exact = x if isinstance(x, Fraction) else decimal(x)
    return lifted(exact) if exact else 0.0


def _exact_link(link: CanonicalLink) -> CanonicalLink:
    c, s = _pair(*link.turn)
    factors = tuple(
        Shift(Vec(*_numbers([*f.p]))) if isinstance(f, Shift) else Screw(f.axis, *_pair(f.c, f.s), exact_number(f.t))
        for f in link.factors
    )
    described = _placement(Placement(link.axes, link.origin))
    return replace(
        link, factors=factors, angle=Angle(c, s).quarter_turns(-link.quarters), turn=(c, s),
        slide=exact_number(link.slide), pitch=exact_number(link.pitch), armature=exact_number(link.armature),
        damping=exact_number(link.damping), friction=0.0, axes=described.rotation, origin=described.position,
        **exact_body(exact_number(link.mass), _numbers(link.com), _numbers(link.I_com)),
    )  # fmt: skip


def _numbers(values: Sequence[Exact]) -> Exact:
    return tuple(exact_number(x) for x in values)


def _pair(c: Exact, s: Exact) -> tuple[Exact, Exact]:
    """Cosine and sine, moved to a rational point of the circle unless they are one."""
    if Fraction(c) ** 2 + Fraction(s) ** 2 != 1:
        c, s = rational_point(float(c), float(s))
    return exact_number(c), exact_number(s)


def _placement(placement: Placement) -> Placement:
    rotation = placement.rotation
    if not isinstance(rotation[0][0], Fraction):
        rotation = rational_rotation(rotation)
    return Placement(tuple(_numbers(row) for row in rotation), _numbers(placement.position))  # type: ignore[arg-type]


def exact_body(m: Exact, com: Exact, tensor: Exact) -> Options:
    """Mass, first moment and inertia about the origin of a link, from those about its center of mass."""
    (x, y, z), (xx, yy, zz, xy, xz, yz) = com, tensor
    origin = (
        xx + m * (y * y + z * z), yy + m * (x * x + z * z), zz + m * (x * x + y * y),
        xy - m * (x * y), xz - m * (x * z), yz - m * (y * z),
    )  # fmt: skip
    return {"mass": m, "mp": (m * x, m * y, m * z), "I": origin, "com": tuple(com), "I_com": tuple(tensor)}


class Point:
    """A mechanism over the field with random values of all inputs."""

    def __init__(self, model: CanonicalModel, draw: Draw):
        self.model = model
        self.nv = model.nv
        self.by_row = model.by_row
        names = ("qd", "qdd", "tau")
        self.values: dict[str, Sequence[Exact]] = {name: draw.numbers(self.nv) for name in names}
        self.values |= {"point": draw.numbers(3), "base_motion": draw.numbers(9), "damping": draw.numbers(1)}
        self.values["f_ext"] = draw.numbers(6 * len(model.links))
        self.values["q"] = [x for link in self.by_row for x in _coordinates(link.type, draw)]
        self._stretch = draw.number()

    def evaluate(self, computation: RobotFunction, **other: Sequence[Exact]) -> list[Exact]:
        """The result of a function, flat: its algorithm runs as it is written, no Program is made."""
        values = self.values | other
        arguments = [values[array.name] for array in computation.inputs]
        return list(computation.evaluate(*arguments, base_parameters=False))

    def moving(self) -> list[Exact]:
        """q as Duals, with the time derivatives that belong to the velocities qd."""
        q, qd = self.values["q"], self.values["qd"]
        links = [(link.type, q[link.coordinates], qd[link.rates]) for link in self.by_row]
        return [x for link in links for x in _moving(*link, self._stretch)]


def _coordinates(kind: Kind, draw: Draw) -> Sequence[Exact]:
    """Random coordinates of one joint: angles, numbers, and quaternions of any length."""
    return [draw.angle() if entry.turns else draw.number() for entry in kind.coordinates]


def _moving(kind: Kind, q: Sequence[Exact], v: Sequence[Exact], stretch: Exact) -> list[Exact]:
    """The coordinates of one joint as Duals."""
    coordinates: list[Exact] = []
    for entry, x, rate in zip(kind.coordinates, q, kind.derivative(q, v), strict=True):
        if entry.measures == QUATERNION:  # its length may change: only the direction matters
            rate = rate + x * stretch
        coordinates.append(_turning(x, rate) if entry.turns else Dual(x, rate))
    return coordinates


def _turning(angle: Exact, rate: Exact) -> Angle:
    return Angle(Dual(angle.c, -(angle.s * rate)), Dual(angle.s, angle.c * rate), Dual(angle.x, rate))


# ---- robots with rational parameters ----------------------------------------------------------------------------

FINE = 2**52  # resolution of rational points for angles that are not right angles


class Irrational(ArithmeticError):
    """A number that is not a fraction."""


class Rational(Fraction):
    """A fraction whose operations with floats are exact."""

    def __neg__(self) -> Rational:
        return Rational(Fraction.__neg__(self))

    def __abs__(self) -> Rational:
        return Rational(Fraction.__abs__(self))

    def hypot(self, *others: Exact) -> Rational:
        """The square root of the sum of squares, if it is a fraction."""
        total = Fraction(self * self + sum(x * x for x in others))
        root = Fraction(math.isqrt(total.numerator), math.isqrt(total.denominator))
        if root * root != total:
            raise Irrational
        return Rational(root)

    def on_circle(self, s: Exact) -> tuple[Rational, Rational]:
        """(self, s), a point of the unit circle."""
        if self * self + s * s != 1:
            raise Irrational
        return self, Rational(s)


def _exact(name: str) -> Callable[[Rational, Exact], Exact]:
    of_fractions = getattr(Fraction, name)

    def operation(self: Rational, b: Exact) -> Exact:
        if isinstance(b, (float, int, Fraction)):
            return Rational(of_fractions(self, Fraction(b)))
        return NotImplemented

    return operation


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv"):
    setattr(Rational, f"__{_name}__", _exact(f"__{_name}__"))


def exact_canonical(model: Model) -> CanonicalModel:
    """The canonical model over fractions if its frames contain no roots, otherwise over floats."""
    try:
        return canonical(rational_model(model))
    except Irrational:
        return canonical(model)


def rational_model(model: Model) -> Model:
    """The robot model with fractions as parameters. Raises Irrational unless all joints are at right angles."""
    frames = (
        Frame(
            frame.name,
            frame.link,
            Placement(rational_rotation(frame.placement.rotation), _vector(frame.placement.position)),
        )
        for frame in model.frames
    )
    return replace(
        model, links=tuple(_link(link) for link in model.links), frames=tuple(frames), gravity=_vector(model.gravity)
    )


def decimal(x: Exact) -> Exact:
    """The shortest decimal that rounds to this float, as a fraction."""
    return Rational(repr(float(x)))


def _link(link: Link) -> Link:
    joint, body = link.joint, link.inertial
    if not right_angled(joint.placement.rotation) or not right_angled((joint.axis,)):
        raise Irrational
    at = Placement(_rows(joint.placement.rotation), _vector(joint.placement.position))
    exact = replace(
        joint, axis=_vector(joint.axis), placement=at, armature=decimal(joint.armature), damping=decimal(joint.damping),
        friction=decimal(joint.friction), pitch=decimal(joint.pitch),
    )  # fmt: skip
    return replace(link, joint=exact, inertial=Inertial(decimal(body.mass), _vector(body.com), _rows(body.inertia)))


def _vector(v: Vector) -> Vector:
    return decimal(v[0]), decimal(v[1]), decimal(v[2])


def _rows(matrix: Matrix) -> Matrix:
    return _vector(matrix[0]), _vector(matrix[1]), _vector(matrix[2])


def right_angled(rows: Exact) -> bool:
    return all(abs(x) in (0, 1) for row in rows for x in row)


def rational_point(c: float, s: float) -> tuple[Fraction, Fraction]:
    """A rational point of the unit circle near this one; exact at right angles."""
    angle = math.atan2(s, c)
    quarters = round(angle / (math.pi / 2.0))
    t = Fraction(round(math.tan((angle - quarters * (math.pi / 2.0)) / 2.0) * FINE), FINE)
    x, y = (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)
    return ((x, y), (-y, x), (-x, -y), (y, -x))[quarters % 4]


def rational_rotation(rotation: Matrix) -> Matrix:
    """A rotation matrix of fractions near this one, by its quaternion; exact for right angles."""
    if right_angled(rotation):
        return _rows(rotation)
    parts: list[Exact] = [Rational(round(part * FINE), FINE) for part in _quaternion(rotation)]
    x, y, z, w = parts
    two = 2 / (x * x + y * y + z * z + w * w)
    return (
        (1 - two * (y * y + z * z), two * (x * y - w * z), two * (x * z + w * y)),
        (two * (x * y + w * z), 1 - two * (x * x + z * z), two * (y * z - w * x)),
        (two * (x * z - w * y), two * (y * z + w * x), 1 - two * (x * x + y * y)),
    )


def _quaternion(rotation: Matrix) -> list[float]:
    """xyzw: the longest column of 4 q q^T."""
    (a, b, c), (d, e, f), (g, h, i) = np.array(rotation, dtype=float).tolist()
    columns = (
        (1 + a - e - i, b + d, c + g, h - f),
        (b + d, 1 - a + e - i, f + h, c - g),
        (c + g, f + h, 1 - a - e + i, d - b),
        (h - f, c - g, d - b, 1 + a + e + i),
    )
    best = max(columns, key=lambda column: math.hypot(*column))
    return [x / math.hypot(*best) for x in best]
