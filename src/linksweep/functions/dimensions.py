"""Arms that stay in a plane with letters for their numbers: L1, m1, c1, I1, g, as textbooks write them.

L_k is the length of link k, from its joint to the next one (of the last link, to its tool), L0 what stands before the
first joint; m_k its mass, c_k its mass centre along x (cy_k along y), I_k its inertia about the mass centre, across the
plane; J_k the armature of its joint; g is gravity. What is 0 stays 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ..mechanism.canonical import CanonicalLink, CanonicalModel
from ..spatial.scalars import Scalar
from ..spatial.transforms import Screw
from ..tracing.expression import number

ROUNDING = 1e-12  # what rotations leave of a 0, or between two equal numbers
COMPONENTS = ("xx", "yy", "zz", "xy", "xz", "yz")

MEANINGS = {
    "L": "length of link {k}",
    "m": "mass of link {k}",
    "c": "mass centre of link {k}, along x from its joint",
    "cy": "mass centre of link {k}, along y from its joint",
    "I": "inertia of link {k} about its mass centre",
    "J": "armature of joint {k}",
    "g": "gravity",
    **{f"g{x}": f"gravity along {x} of the base" for x in "xyz"},
    **{f"I{two}": f"inertia {two} of link {{k}} about its mass centre" for two in COMPONENTS},
}

Letter = Callable[[str, Scalar], Scalar]  # what stands for a number of that name


@dataclass(frozen=True, slots=True)
class Dimensions:
    """The numbers of a planar arm as inputs, (letters,): `letters` are their names, `values` those of this arm."""

    letters: tuple[str, ...]
    values: tuple[float, ...] = field(compare=False)
    name: str = "dimensions"

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.letters),)

    @property
    def meanings(self) -> dict[str, str]:
        """What each letter stands for."""
        found = {}
        for letter in self.letters:
            name = letter.rstrip("0123456789")
            found[letter] = MEANINGS[name].format(k=letter[len(name) :])
        return found

    def apply(self, model: CanonicalModel, values: Sequence[Scalar]) -> CanonicalModel:
        known = dict(zip(self.letters, values, strict=True))
        return _lettered(model, lambda name, value: known[name])


def dimensions(model: CanonicalModel) -> Dimensions | None:
    """The letters of an arm that stays in a plane, or None."""
    if not is_planar(model):
        return None
    found: dict[str, float] = {}

    def note(name: str, value: Scalar) -> float:
        return found.setdefault(name, number(value))

    _lettered(model, note)
    return Dimensions(tuple(found), tuple(found.values()))


def is_planar(model: CanonicalModel) -> bool:
    """Whether it is one chain that turns about parallel axes, with every origin and mass centre in one plane."""
    return (
        model.is_serial
        and not (model.is_coupled or model.ties or model.springs)
        and all(link.type.turns and link.type.nv == 1 and _is_zero(link.pitch) for link in model.links)
        and all(_is_zero(link.com[2]) for link in model.links)
        and all(_is_zero(link.slide) and all(map(_in_plane, link.factors)) for link in model.links[1:])
    )


def _in_plane(factor: object) -> bool:
    if not isinstance(factor, Screw):
        return False
    return _is_zero(factor.t) if factor.axis == 2 else factor.axis == 0 and _is_zero(factor.s)


def _lettered(model: CanonicalModel, letter: Letter) -> CanonicalModel:
    """The model with what `letter` gives for each of its numbers."""

    def named(name: str, value: Scalar) -> Scalar:
        return 0.0 if _is_zero(value) else letter(name, value)

    lengths = _lengths(model)
    links = []
    for k, link in enumerate(model.links):
        factors = tuple(
            replace(factor, t=named(f"L{k}", factor.t)) if isinstance(factor, Screw) and factor.axis == 0 else factor
            for factor in link.factors
        )
        links.append(replace(_with_letters(link, k + 1, named), factors=factors))
    frames = tuple(
        replace(frame, placement=replace(frame.placement, position=(named(f"L{frame.link + 1}", length), 0.0, 0.0)))
        if (length := lengths.get(frame.link)) and _same(frame.placement.position, (length, 0.0, 0.0)) else frame
        for frame in model.frames
    )  # fmt: skip
    down = [k for k, value in enumerate(model.gravity) if not _is_zero(value)]
    x, y, z = (
        0.0 if k not in down
        else named(f"g{'xyz'[k]}", value) if len(down) > 1
        else -named("g", -value) if value < 0.0 else named("g", value)
        for k, value in enumerate(model.gravity)
    )  # fmt: skip
    return replace(model, links=tuple(links), frames=frames, gravity=(x, y, z))


def _with_letters(link: CanonicalLink, k: int, named: Letter) -> CanonicalLink:
    m, x, y = named(f"m{k}", link.mass), named(f"c{k}", link.com[0]), named(f"cy{k}", link.com[1])
    across = link.I_com[2]
    tensor = tuple(
        named(f"I{k}" if _same((value,), (across,)) else f"I{name}{k}", value)
        for name, value in zip(COMPONENTS, link.I_com, strict=True)
    )
    xx, yy, zz, xy, xz, yz = tensor
    xs, ys = m * (x * x), m * (y * y)
    about_origin = (xx + ys, yy + xs, zz + (xs + ys), xy - m * (x * y), xz, yz)
    return replace(
        link, mass=m, com=(x, y, 0.0), mp=(m * x, m * y, 0.0), I_com=tensor, I=about_origin,
        armature=named(f"J{k}", link.armature),
    )  # fmt: skip


def _lengths(model: CanonicalModel) -> dict[int, float]:
    """How far along x of each link the next joint stands, or, of the last one, the frames that do not stand at it."""
    found = {}
    for k, link in enumerate(model.links[1:]):
        if len(link.factors) == 1 and isinstance(link.factors[0], Screw) and link.factors[0].axis == 0:
            found[k] = link.factors[0].t
    last = len(model.links) - 1
    ends = {frame.placement.position for frame in model.frames if frame.link == last}
    along = [x for x, y, z in ends if not _is_zero(x) and _same((y, z), (0.0, 0.0))]
    if len(along) == 1:
        found[last] = along[0]
    return found


def _is_zero(value: Scalar) -> bool:
    return isinstance(value, (int, float)) and abs(value) <= ROUNDING


def _same(a: Sequence[float], b: Sequence[float]) -> bool:
    return all(abs(x - y) <= ROUNDING * max(1.0, abs(y)) for x, y in zip(a, b, strict=True))
