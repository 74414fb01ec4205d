"""Regroup inertial parameters: fewer numbers that give the same joint forces.

What of a link's mass lies on its joint's axis belongs to both links of that joint (to the parent too, which carries the
axis), and is given to the parent, from the tips to the base. Of a revolute joint that is the mass, the moment m z and
the second moment J_zz along the axis; of a sliding joint, which does not turn, the whole inertia tensor; of a ball
joint the mass: `split` of each kind in joints/. This is Khalil's regrouping (Khalil & Kleinfinger 1987) for any tree,
over numbers or expressions.

Joint forces and the mass matrix do not change, for any gravity and any motion of the base; forces between links,
articulated inertias, energy and mass centres do. Such a model is therefore not a Robot: it is used while tracing.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..mechanism.canonical import CanonicalLink, CanonicalModel
from ..model.model import BASE
from ..spatial.algebra import Inertia, Sym, Transform, Vec
from ..spatial.transforms import Screw

UNKNOWN = (math.nan,) * 6  # a regrouped link has no mass centre: a method that asks for one shows it


def regroup(model: CanonicalModel, khalil: bool = False) -> CanonicalModel:
    """The model with regrouped inertias. khalil: in Khalil's form, with I_yy = 0, else in the cheapest one."""
    links = list(model.links)
    bodies = [Inertia(link.mass, Vec(*link.mp), Sym(*link.I)) for link in links]
    for i in reversed(range(len(links))):
        bodies[i], moved = links[i].type.split(bodies[i], khalil)
        parent = links[i].parent
        if moved is not None and parent != BASE:
            bodies[parent] = bodies[parent] + _transform(links[i]).to_parent(moved)
    return replace(model, links=tuple(_with_body(link, body) for link, body in zip(links, bodies, strict=True)))


def _transform(link: CanonicalLink) -> Transform:
    """From the parent to the link at q = 0; a turn about its own axis moves nothing that is split off."""
    turn = (1.0, 0.0) if link.type.turns else link.turn
    return Transform((*link.factors, Screw(2, *turn, link.slide)))


def _with_body(link: CanonicalLink, body: Inertia) -> CanonicalLink:
    mp, I = (body.mp.x, body.mp.y, body.mp.z), body.I  # noqa: E741  (the papers' symbol)
    tensor = (I.xx, I.yy, I.zz, I.xy, I.xz, I.yz)
    return replace(link, mass=body.mass, mp=mp, I=tensor, com=UNKNOWN[:3], I_com=UNKNOWN)
