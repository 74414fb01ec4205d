"""Constraints and springs between frames, and couplings between joints.

A constraint connects frame `a` to frame `b`, or to the world if b is "". Its directions are the axes of a frame that is
at `at` on frame b. Couplings express mimic joints by independent ones, q = G q_r + c with a constant G.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from linksweep.errors import ArgumentError, DescriptionError
from linksweep.model.model import SINGLE, Coupling, Model
from linksweep.model.quantities import as_number, as_placement
from linksweep.support.checks import as_list
from linksweep.support.messages import listing, nearest, shown

Given = Any  # the argument; after __post_init__ the checked value: a name, a Placement or a number
ROWS = {
    "rigid": 6, "point": 3, "hinge": 5, "slider": 5, "plane": 1, "line": 2, "distance": 1, "soft_finger": 4,
}  # fmt: skip
"""Degrees of freedom that each kind of constraint removes."""

MEANING = {
    "rigid": "a coincides with b",
    "point": "the origins coincide",
    "hinge": "the origins and the z axes coincide: a rotates about z of b",
    "slider": "a keeps the axes of b and slides along its z",
    "plane": "the origin of a stays in the x-y plane of b",
    "line": "the origin of a stays on the z axis of b",
    "distance": "the origins keep their distance",
    "soft_finger": "the origins coincide, and a does not turn about z of b",
}


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint between the frames a and b of a robot, or between a and the world (b=None).

    kind: "rigid", "point", "hinge", "slider", "plane", "line", "distance", "soft_finger". at: pose (4, 4) of the
    constraint frame on frame b, or in the world without b; None is b itself. length: distance in m, of a distance.
    """

    kind: str
    a: str
    b: Given = None
    at: Given = field(default=None, kw_only=True)
    length: Given = field(default=None, kw_only=True)
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in ROWS:
            raise ArgumentError(
                f"unknown constraint {shown(self.kind)}{nearest(self.kind, ROWS)}, expected {', '.join(ROWS)}."
            )
        first, second = _frame_name(self.a, "a"), "" if _is_base(self.b) else _frame_name(self.b, "b")
        if first == second:
            raise ArgumentError(f"the frame {shown(first)} is constrained to itself, expected two frames.")
        length = 0.0 if self.length is None else as_number(self.length, f"length of the constraint of {first!r}")
        if self.kind == "distance" and not 0.0 < length < math.inf:
            raise ArgumentError(
                f"the distance constraint of {first!r} and {second or 'the world'!r} has length {shown(self.length)}, "
                f"expected a positive number as length=; for zero use a point constraint."
            )
        if self.kind != "distance" and length:
            raise ArgumentError(f"a {self.kind} constraint has no length, got length={length}.")
        object.__setattr__(self, "b", second)
        object.__setattr__(self, "at", as_placement(self.at, "at"))
        object.__setattr__(self, "length", length)

    @property
    def rows(self) -> int:
        return ROWS[self.kind]

    @property
    def label(self) -> str:
        return self.name or f"{self.kind} {self.a} - {self.b or 'world'}"


@dataclass(frozen=True, slots=True)
class Spring:
    """A spring and damper between the origins of two frames, or between a and the point `at` of the world (b=None).

    Its force is stiffness (|d| - length) + damping d|d|/dt along the line d between the origins. With length 0 it is
    stiffness d + damping dd/dt.
    """

    a: str
    b: Given = None
    stiffness: float = 0.0
    length: float = 0.0
    damping: float = 0.0
    at: Given = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        first, second = _frame_name(self.a, "a"), "" if _is_base(self.b) else _frame_name(self.b, "b")
        if first == second:
            raise ArgumentError(f"a spring connects {shown(first)} to itself, expected two frames.")
        for key in ("stiffness", "length", "damping"):
            value = as_number(getattr(self, key), f"{key} of the spring at {first!r}")
            if not 0.0 <= value < math.inf:
                raise ArgumentError(
                    f"{key} of the spring at {first!r} is {value}, expected a finite number of at least 0."
                )
            object.__setattr__(self, key, value)
        object.__setattr__(self, "b", second)
        object.__setattr__(self, "at", as_placement(self.at, "at"))


def _is_base(frame: object) -> bool:
    return frame is None or (isinstance(frame, str) and not frame)


def _frame_name(value: object, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise ArgumentError(f"{what} of a constraint or spring is {shown(value)}, expected the name of a frame.")
    return value


# ---- couplings between joints --------------------------------------------------------------------------------


def coupled(model: Model, laws: Coupling | Iterable[Coupling]) -> Model:
    """Return `model` with these couplings added, each expressed by an independent joint."""
    direct: dict[str, Coupling] = {coupling.joint: coupling for coupling in model.couplings}
    kinds = {link.joint.name: link.joint.kind for link in model.links}
    for item in as_list(laws):
        coupling = _checked(model, item, kinds)
        if coupling.joint in direct:
            raise DescriptionError(
                f"the joint {coupling.joint!r} of {model.name!r} follows {direct[coupling.joint].leader!r} already, "
                f"expected one leader: remove one of the two couplings."
            )
        direct[coupling.joint] = coupling
    resolved: dict[str, Coupling] = {}
    for coupling in direct.values():
        _resolve(coupling, direct, resolved, model.name)
    return replace(model, couplings=tuple(resolved[joint] for joint in direct))


def without(model: Model, joints: Iterable[str]) -> tuple[Coupling, ...]:
    """Return the couplings of `model` that involve none of these joints."""
    removed = set(joints)
    return tuple(coupling for coupling in model.couplings if not removed & {coupling.joint, coupling.leader})


def _checked(model: Model, law: object, kinds: Mapping[str, str]) -> Coupling:
    if not isinstance(law, Coupling):
        raise ArgumentError(f"the coupling is {shown(law)}, expected a linksweep.Coupling.")
    for name in (law.joint, law.leader):
        if not isinstance(name, str) or name not in kinds:
            raise DescriptionError(
                f"the robot {model.name!r} has no joint {shown(name)}{nearest(name, kinds)}, expected joints that "
                f"move, such as {listing(list(kinds)[:4])}."
            )
        if kinds[name] not in SINGLE:
            raise DescriptionError(
                f"the joint {name!r} of {model.name!r} is {kinds[name]}, expected 1-DOF joints in a coupling."
            )
    if law.joint == law.leader:
        raise DescriptionError(f"the joint {law.joint!r} of {model.name!r} follows itself, expected another leader.")
    numbers = [as_number(getattr(law, key), f"{key} of {law.joint!r}") for key in ("multiplier", "offset")]
    if not all(math.isfinite(x) for x in numbers):
        raise DescriptionError(f"the coupling of {law.joint!r} has {numbers}, expected finite numbers.")
    return Coupling(law.joint, law.leader, *numbers)


def _resolve(law: Coupling, direct: Mapping[str, Coupling], resolved: dict[str, Coupling], robot: str) -> None:
    """Add the coupling, and those on its chain of leaders, expressed by the independent joint; visit each once."""
    chain: dict[str, Coupling] = {}
    while law.joint not in resolved:
        if law.joint in chain:
            raise DescriptionError(
                f"the joints {listing(sorted(chain))} of {robot!r} follow each other in a circle, expected an "
                f"independent joint: remove one of their couplings."
            )
        chain[law.joint] = law
        if law.leader not in direct:
            break
        law = direct[law.leader]
    for follower in reversed(chain.values()):
        inner = resolved.get(follower.leader)
        if inner is not None:
            multiplier, offset = follower.multiplier * inner.multiplier, follower.multiplier * inner.offset
            follower = Coupling(follower.joint, inner.leader, multiplier, follower.offset + offset)
        if not (math.isfinite(follower.multiplier) and math.isfinite(follower.offset)):
            raise DescriptionError(
                f"the joint {follower.joint!r} of {robot!r} follows {follower.leader!r} through others by a multiplier "
                f"of {follower.multiplier} and an offset of {follower.offset}, expected finite numbers."
            )
        resolved[follower.joint] = follower
