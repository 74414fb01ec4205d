"""Equalities of MuJoCo's compiled model: `connect` and `weld` are constraints between frames, `joint` is a coupling.

MuJoCo's are soft, these hold. `connect` ties the point eq_data[0:3] of body 1 to the point eq_data[3:6] of body 2;
`weld` the pose eq_data[3:10] (position, quaternion wxyz) of body 1 to body 2 at the point eq_data[0:3]; between sites,
these. `joint` says q1 - q1_0 = c0 + c1 (q2 - q2_0) + ..., of which the linear ones are couplings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from linksweep.description.assembly import find_frame
from linksweep.description.constraints import Constraint
from linksweep.description.couplings import coupled
from linksweep.description.model import Coupling, Frame, Matrix, Model, Placement, compose
from linksweep.formats.mjcf_rest import Compiled, numbered
from linksweep.formats.mujoco_names import joint_names

CONNECT, WELD, JOINT = 0, 1, 2  # mjtEq
SITE = 6  # mjtObj
SINGLE = (2, 3)  # mjtJoint: slide and hinge
Rotation = Callable[[ArrayLike], Matrix]


@dataclass
class Equalities:
    """What becomes of them: ends of constraints (body, where on it), couplings; the rest is said."""

    ties: list[tuple[str, str, tuple[tuple[int, Placement], ...]]] = field(default_factory=list)
    laws: list[Coupling] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)


def find_equalities(compiled: Compiled, couple: bool, rotation: Rotation) -> Equalities:
    found = Equalities()
    if "equality" in compiled.disabled or "eq_data" not in compiled.arrays:
        return found
    for k, name in enumerate(numbered(compiled, "eq", "equality")):
        if not compiled.eq_active0[k]:
            continue
        kind, data = int(compiled.eq_type[k]), np.asarray(compiled.eq_data[k], dtype=float)
        law = _law(compiled, k, data, found.laws) if kind == JOINT and couple else None
        if kind in (CONNECT, WELD):
            ends = _ends(compiled, k, kind, data, rotation)
            rigid = kind == WELD and data[10] != 0.0  # a weld without torquescale does not turn
            if _moving_root(compiled, ends[0][0]) != _moving_root(compiled, ends[1][0]):
                found.ties.append(("rigid" if rigid else "point", name, ends))
                continue
        if law is None:
            found.rest.append(name)
        else:
            found.laws.append(law)
    return found


def with_equalities(model: Model, found: Equalities, bodies: list[str]) -> Model:
    """`model` with the constraints, each between frames of its own, and the couplings."""
    frames, ties = list(model.frames), []
    taken = {frame.name for frame in frames}
    for kind, name, ends in found.ties:
        names = []
        for number, (body, at) in enumerate(ends, start=1):
            if at == Placement():
                names.append(bodies[body])
                continue
            host, own = find_frame(model, bodies[body]), f"{name}_{number}"
            while own in taken:
                own += "_"
            taken.add(own)
            frames.append(Frame(own, host.link, compose(host.placement, at), host.name))
            names.append(own)
        ties.append(Constraint(kind, names[0], names[1], name=name))
    model = replace(model, frames=tuple(frames), constraints=tuple(ties))
    return coupled(model, found.laws) if found.laws else model


def _ends(
    compiled: Compiled, k: int, kind: int, data: np.ndarray, rotation: Rotation
) -> tuple[tuple[int, Placement], tuple[int, Placement]]:
    first, second = int(compiled.eq_obj1id[k]), int(compiled.eq_obj2id[k])
    if int(compiled.eq_objtype[k]) == SITE:
        a, b = ((int(compiled.site_bodyid[s]), Placement(rotation(compiled.site_quat[s]), _point(compiled.site_pos[s])))
                for s in (first, second))  # fmt: skip
        return a, b
    if kind == CONNECT:
        return (first, Placement(position=_point(data[:3]))), (second, Placement(position=_point(data[3:6])))
    return (
        (first, Placement(rotation(data[6:10]), _point(data[3:6]))),
        (second, Placement(position=_point(data[:3]))),
    )


def _law(compiled: Compiled, k: int, data: np.ndarray, known: list[Coupling]) -> Coupling | None:
    """A linear law between two 1-DOF joints that makes no joint follow two others, and no circle."""
    first, second = int(compiled.eq_obj1id[k]), int(compiled.eq_obj2id[k])
    if second < 0 or data[2:5].any() or not {int(compiled.jnt_type[j]) for j in (first, second)} <= set(SINGLE):
        return None
    names, leads = joint_names(compiled), {law.joint: law.leader for law in known}
    above: str | None = names[second]
    while above is not None:
        if above == names[first]:
            return None
        above = leads.get(above)
    if names[first] in leads:
        return None
    zero = [float(compiled.qpos0[compiled.jnt_qposadr[j]]) for j in (first, second)]
    return Coupling(names[first], names[second], float(data[1]), zero[0] + float(data[0]) - float(data[1]) * zero[1])


def _moving_root(compiled: Compiled, body: int) -> int:
    """The body with a joint that carries this one; the world's, where none does."""
    while body and not compiled.body_jntnum[body]:
        body = int(compiled.body_parentid[body])
    return body


def _point(values: Iterable[float]) -> tuple[float, float, float]:
    x, y, z = (float(v) for v in values)
    return (x, y, z)
