"""Where statements are tried: a mechanism with exact numbers, and a random point of the field for all its inputs.

The mechanism is a robot, whose numbers are fractions, or the general one of a joint structure, all of whose numbers
(geometry, inertia, gravity, armature, damping) are chosen at random too: what holds there holds for every robot with
these joints.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ..catalogue.functions import FUNCTIONS, Request, signature
from ..description.model import BASE, Frame, Matrix, Placement
from ..errors import ArgumentError
from ..joints import KINDS, Kind
from ..joints.kind import QUATERNION
from ..mechanism.canonical import CanonicalLink, CanonicalModel
from ..spatial.algebra import Vec
from ..spatial.transforms import Screw, Shift
from ..support.messages import shown
from ..tracing.unrolled import UnrolledRun
from .field import PRIME, Angle, Dual, Exact, Options, Residue, inverse, lifted
from .rational import decimal, rational_point, rational_rotation

LETTERS = {kind.letter: kind for kind in KINDS.values()}
LARGEST = 12  # links of a structure


class Draw:
    """Random elements of the field, each of degree 1; a point of the circle is (1 - t^2, 2 t) / (1 + t^2).

    c and s count as degree 1 each: written in t the degree is at most twice that (`Point.chance`).
    """

    def __init__(self, seed: object):
        self._random = random.Random(str(seed))

    def number(self) -> Exact:
        return Residue(self._random.randrange(PRIME), 1)

    def numbers(self, count: int) -> Exact:
        return tuple(self.number() for _ in range(count))

    def circle(self) -> tuple[Exact, Exact]:
        t = self._random.randrange(PRIME)
        over = inverse((1 + t * t) % PRIME)  # never 0: -1 is no square modulo PRIME
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
    """Joints by the letters of their kinds and each one's parent.

    Letters follow each other from the base outward; what stands in parentheses is a branch of its own:
    "F(RR)(RP)S" is a free body with two legs of two joints and a ball joint.
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
        """The general mechanism of this structure, in a shuffled document; every second joint has an armature."""
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
    """Every chain of revolute and prismatic joints, up to so many."""
    texts = [""]
    found = []
    for _ in range(largest):
        texts = [text + letter for text in texts for letter in "RP"]
        found += texts
    return [Structure(text) for text in found]


def exact_model(model: CanonicalModel) -> CanonicalModel:
    """A robot's canonical model over the field; Coulomb friction, which has a sign in it, is left out."""
    links = tuple(_exact_link(link) for link in model.links)
    frames = tuple(Frame(frame.name, frame.link, _placement(frame.placement)) for frame in model.frames)
    return CanonicalModel(links, frames, _numbers(model.gravity))


def exact_number(x: Exact) -> Exact:
    """A constant of the field; what is 0 stays the number 0, by which structure is known."""
    exact = x if isinstance(x, Fraction) else decimal(x)
    return lifted(exact) if exact else 0.0


def _exact_link(link: CanonicalLink) -> CanonicalLink:
    c, s = _pair(*link.turn)
    factors = tuple(
        Shift(Vec(*_numbers([*f.p]))) if isinstance(f, Shift) else Screw(f.axis, *_pair(f.c, f.s), exact_number(f.t))
        for f in link.factors
    )
    own = _placement(Placement(link.axes, link.origin))
    return replace(
        link, factors=factors, angle=Angle(c, s).quarter_turns(-link.quarters), turn=(c, s),
        slide=exact_number(link.slide), pitch=exact_number(link.pitch), armature=exact_number(link.armature),
        damping=exact_number(link.damping), friction=0.0, axes=own.rotation, origin=own.position,
        **exact_body(exact_number(link.mass), _numbers(link.com), _numbers(link.I_com)),
    )  # fmt: skip


def _numbers(values: Sequence[Exact]) -> Exact:
    return tuple(exact_number(x) for x in values)


def _pair(c: Exact, s: Exact) -> tuple[Exact, Exact]:
    """Cosine and sine: the same ones where they are a point of the circle."""
    if Fraction(c) ** 2 + Fraction(s) ** 2 != 1:
        c, s = rational_point(float(c), float(s))
    return exact_number(c), exact_number(s)


def _placement(placement: Placement) -> Placement:
    rotation = placement.rotation
    if not isinstance(rotation[0][0], Fraction):
        rotation = rational_rotation(rotation)
    return Placement(tuple(_numbers(row) for row in rotation), _numbers(placement.position))  # type: ignore[arg-type]


def exact_body(m: Exact, com: Exact, tensor: Exact) -> Options:
    """Of a link: mass, first moment and inertia about the origin, from what is given about the mass centre."""
    (x, y, z), (xx, yy, zz, xy, xz, yz) = com, tensor
    origin = (
        xx + m * (y * y + z * z), yy + m * (x * x + z * z), zz + m * (x * x + y * y),
        xy - m * (x * y), xz - m * (x * z), yz - m * (y * z),
    )  # fmt: skip
    return {"mass": m, "mp": (m * x, m * y, m * z), "I": origin, "com": tuple(com), "I_com": tuple(tensor)}


class Point:
    """A mechanism over the field and values for all inputs, drawn at random."""

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

    def evaluate(self, request: Request, model: CanonicalModel | None = None, **other: Sequence[Exact]) -> list[Exact]:
        """The result of a request, flat: its algorithm runs as it is written, no Program is made."""
        return evaluate(model or self.model, request, self.values | other)

    def moving(self) -> list[Exact]:
        """q as it changes in time with the rates qd."""
        q, qd, found = self.values["q"], self.values["qd"], []
        for link in self.by_row:
            found += _moving(link.type, q[link.coordinates], qd[link.rates], self._stretch)
        return found


def evaluate(model: CanonicalModel, request: Request, values: Mapping[str, Sequence[Exact]]) -> list[Exact]:
    inputs, _ = signature(model, [request])
    run = UnrolledRun(model, inputs, [values[array.name] for array in inputs])
    FUNCTIONS[request.function].trace(run, request, 0)
    return list(run.results[0])


def _coordinates(kind: Kind, draw: Draw) -> Sequence[Exact]:
    """An angle for what turns, a number for the others: a quaternion of any length."""
    return [draw.angle() if entry.turns else draw.number() for entry in kind.coordinates]


def _moving(kind: Kind, q: Sequence[Exact], v: Sequence[Exact], stretch: Exact) -> list[Exact]:
    """The coordinates of one joint as Duals."""
    found: list[Exact] = []
    for entry, x, rate in zip(kind.coordinates, q, kind.derivative(q, v), strict=True):
        if entry.measures == QUATERNION:  # its length may change as it likes: only the direction counts
            rate = rate + x * stretch
        found.append(_turning(x, rate) if entry.turns else Dual(x, rate))
    return found


def _turning(angle: Exact, rate: Exact) -> Angle:
    return Angle(Dual(angle.c, -(angle.s * rate)), Dual(angle.s, angle.c * rate), Dual(angle.x, rate))
