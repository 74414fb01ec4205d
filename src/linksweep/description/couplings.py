"""Joints that follow others: q = G q_r + c with a constant G, from laws that may follow each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from linksweep.description.model import SINGLE, Coupling, Model
from linksweep.description.quantities import as_number
from linksweep.errors import ArgumentError, DescriptionError
from linksweep.support.messages import listing, nearest, shown
from linksweep.support.numbers import as_list


def coupled(model: Model, laws: Coupling | Iterable[Coupling]) -> Model:
    """`model` whose joints follow these laws besides its own; each is led in the end by a joint that follows none."""
    given = as_list(laws)
    direct: dict[str, Coupling] = {law.joint: law for law in model.couplings}
    kinds = {link.joint.name: link.joint.kind for link in model.links}
    for law in given:
        found = _checked(model, law, kinds)
        if found.joint in direct:
            raise DescriptionError(
                f"the joint {found.joint!r} of {model.name!r} follows {direct[found.joint].leader!r} already, expected "
                f"one leader: remove one of the two."
            )
        direct[found.joint] = found
    resolved: dict[str, Coupling] = {}
    for law in direct.values():
        _resolve(law, direct, resolved, model.name)
    return replace(model, couplings=tuple(resolved[joint] for joint in direct))


def without(model: Model, joints: Iterable[str]) -> tuple[Coupling, ...]:
    """The couplings of `model` in which none of these joints takes part."""
    gone = set(joints)
    return tuple(law for law in model.couplings if not gone & {law.joint, law.leader})


def _checked(model: Model, law: object, kinds: Mapping[str, str]) -> Coupling:
    if not isinstance(law, Coupling):
        raise ArgumentError(f"got {shown(law)}, expected a Coupling: make it with linksweep.Coupling.")
    for name in (law.joint, law.leader):
        if not isinstance(name, str) or name not in kinds:
            raise DescriptionError(
                f"the robot {model.name!r} has no joint {shown(name)}{nearest(name, kinds)}, expected joints that "
                f"move, such as {listing(list(kinds)[:4])}: correct the coupling."
            )
        if kinds[name] not in SINGLE:
            raise DescriptionError(
                f"the joint {name!r} of {model.name!r} is {kinds[name]}, expected 1-DOF joints in a coupling: "
                f"leave it out."
            )
    if law.joint == law.leader:
        raise DescriptionError(f"the joint {law.joint!r} of {model.name!r} follows itself, expected another leader.")
    numbers = [as_number(getattr(law, key), f"{key} of {law.joint!r}") for key in ("multiplier", "offset")]
    if not all(math.isfinite(x) for x in numbers):
        raise DescriptionError(f"the coupling of {law.joint!r} has {numbers}, expected finite numbers: correct it.")
    return Coupling(law.joint, law.leader, *numbers)


def _resolve(law: Coupling, direct: Mapping[str, Coupling], resolved: dict[str, Coupling], robot: str) -> None:
    """Adds the law, and those on its way, with the joint that leads in the end; each is walked once."""
    way: dict[str, Coupling] = {}
    while law.joint not in resolved:
        if law.joint in way:
            raise DescriptionError(
                f"the joints {listing(sorted(way))} of {robot!r} follow each other in a circle, expected one that "
                f"follows none: remove one of their couplings."
            )
        way[law.joint] = law
        if law.leader not in direct:
            break
        law = direct[law.leader]
    for follower in reversed(way.values()):
        inner = resolved.get(follower.leader)
        if inner is not None:
            multiplier, offset = follower.multiplier * inner.multiplier, follower.multiplier * inner.offset
            follower = Coupling(follower.joint, inner.leader, multiplier, follower.offset + offset)
        if not (math.isfinite(follower.multiplier) and math.isfinite(follower.offset)):
            raise DescriptionError(
                f"the joint {follower.joint!r} of {robot!r} follows {follower.leader!r} through others by a multiplier "
                f"of {follower.multiplier} and an offset of {follower.offset}, expected finite numbers: correct them."
            )
        resolved[follower.joint] = follower
