"""MJCF: MuJoCo's model format, compiled by the `mujoco` package (extra `mjcf`) and read from the compiled model.

MuJoCo resolves defaults and computes inertias from geometry. Bodies, joints, inertias, armature, damping and friction
are taken from its compiled model. Coordinates are MuJoCo's (a hinge keeps its reference angle), in the order of this
package. Features that a flag of the file disables are left out. MuJoCo runs in a separate process, because a file can
make it crash (mujoco_process.py), and only opens files that pass the checks of mjcf_files.py.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import DescriptionError, LinksweepError, ModelWarning, warn_user
from linksweep.model.assembly import Part, assemble, find_frame
from linksweep.model.constraints import Constraint, coupled
from linksweep.model.formats.mjcf_compiled import (
    Compiled,
    MjModel,
    body_names,
    joint_names,
    numbered,
    own_names,
    warn_of_the_rest,
)
from linksweep.model.formats.mjcf_files import check_files
from linksweep.model.formats.mujoco_child import extract
from linksweep.model.formats.mujoco_process import compiled as compiled_arrays
from linksweep.model.model import Coupling, Frame, Inertial, Joint, Limits, Matrix, Model, Placement, Vector, compose

Attachment = tuple[int, Placement]  # a body, and a frame on it
KINDS = ("free", "spherical", "prismatic", "revolute")  # mjtJoint


def read_mjcf(path: str | os.PathLike[str], *, root: Path | None = None, couple: bool = False) -> Model:
    """Return the Model of an MJCF file. Features that do not belong to the tree's dynamics are listed in one warning.

    `connect` and `weld` are constraints. `couple`: linear equalities of joints become couplings.
    `root`: the folder that contains every file of the model. By default included XML must be in the file's folder.
    """
    file = Path(path)
    check_files(file, root)
    arrays, messages = compiled_arrays(file)
    try:
        model = _model(Compiled(arrays), str(file), file.stem, couple)
    except LinksweepError:
        raise
    except (IndexError, KeyError, AttributeError, ValueError) as error:
        raise DescriptionError(
            f"{file}: what MuJoCo compiled does not fit together ({error!r:.100}), expected a tree: report the file."
        ) from None
    if messages:
        warn_user(f"{file}: MuJoCo warns: {' '.join(' '.join(messages).split())[:300]}", ModelWarning)
    return model


def model_from_mujoco(
    compiled: MjModel, *, source: str = "MuJoCo's model", name: str = "robot", couple: bool = False
) -> Model:
    """Return the Model of a compiled `mujoco.MjModel`."""
    return _model(Compiled(extract(compiled)), source, name, couple)


def _model(compiled: Compiled, source: str, name: str, couple: bool) -> Model:
    if not len(compiled.jnt_type):
        raise DescriptionError(f"{source}: the model has no joint, expected at least one.")
    parts = _parts(compiled)
    equalities = find_equalities(compiled, couple)
    warn_of_the_rest(compiled, source, equalities.rest)
    stored_name = bytes(compiled.names).split(b"\0", 1)[0].decode("utf-8", "replace")
    model_name = name if stored_name in ("", "MuJoCo Model") else stored_name
    gravity = np.zeros(3) if "gravity" in compiled.disabled else compiled.opt_gravity
    bodies = body_names(compiled)
    model = assemble(model_name, parts, base=bodies[0], gravity=gravity.tolist(), source=source)
    return with_equalities(model, equalities, bodies)


def _parts(compiled: Compiled) -> list[Part]:
    """A part for each joint of each body (all but the last massless), or a fixed one; then the sites, as frames."""
    bodies, joints = body_names(compiled), joint_names(compiled)
    taken, joints_taken = set(bodies), set(joints)
    on_joint = compiled.rotors()
    anchors = {0: (0.0, 0.0, 0.0)}  # of each body's last joint, where its part has its origin
    parts: list[Part] = []
    for body in range(1, len(bodies)):
        parent = int(compiled.body_parentid[body])
        first, count = int(compiled.body_jntadr[body]), int(compiled.body_jntnum[body])
        here = Placement(_rotation(compiled.body_quat[body]), _vector(compiled.body_pos[body]))
        here = compose(_shift(anchors[parent], -1.0), here)
        on, anchor = bodies[parent], (0.0, 0.0, 0.0)
        if count == 0:
            fixed = Joint(_unused(f"{bodies[body]}_fixed", joints_taken), "fixed", placement=here)
            parts.append(Part(bodies[body], on, fixed, _inertial(compiled, body, anchor)))
        for j in range(first, first + count):
            kind = KINDS[int(compiled.jnt_type[j])]
            if kind == "free":
                here = Placement()  # its coordinates are those of the body in the world
            anchor = (0.0, 0.0, 0.0) if kind == "free" else _vector(compiled.jnt_pos[j])
            joint = _joint(compiled, j, kind, joints[j], compose(here, _shift(anchor)), on_joint[j])
            if j == first + count - 1:
                inertial = _inertial(compiled, body, anchor)
                parts.append(Part(bodies[body], on, joint, inertial, frame=_shift(anchor, -1.0)))
            else:
                massless = _unused(f"{bodies[body]}_before_{joints[j]}", taken)
                parts.append(Part(massless, on, joint, frame=_shift(anchor, -1.0)))
                on, here = massless, _shift(anchor, -1.0)
        anchors[body] = anchor
    return parts + _sites(compiled, bodies, anchors, taken, joints_taken)


def _sites(
    compiled: Compiled, bodies: list[str], anchors: Mapping[int, Vector], taken: set[str], joints: set[str]
) -> list[Part]:
    """Sites are named frames: bodies without mass, fixed to theirs."""
    parts = []
    for site, name in enumerate(own_names(compiled, "site")):
        body = int(compiled.site_bodyid[site])
        if not name or name in taken:
            continue
        taken.add(name)
        placement = compose(_shift(anchors[body], -1.0), _site(compiled, site)[1])
        parts.append(Part(name, bodies[body], Joint(_unused(f"{name}_fixed", joints), "fixed", placement=placement)))
    return parts


def _site(compiled: Compiled, site: int) -> Attachment:
    at = Placement(_rotation(compiled.site_quat[site]), _vector(compiled.site_pos[site]))
    return int(compiled.site_bodyid[site]), at


def _joint(compiled: Compiled, j: int, kind: str, name: str, placement: Placement, brought: np.ndarray) -> Joint:
    dof, axis = int(compiled.jnt_dofadr[j]), _vector(compiled.jnt_axis[j])
    lower, upper, effort = -np.inf, np.inf, np.inf
    if kind in ("revolute", "prismatic"):
        start = float(compiled.qpos0[compiled.jnt_qposadr[j]])  # where MuJoCo's coordinate has the body as described
        if start:
            placement = compose(placement, _moved(kind, axis, -start))
        if compiled.jnt_limited[j] and "limit" not in compiled.disabled:
            lower, upper = compiled.jnt_range[j].tolist()
        if "jnt_actfrclimited" in compiled.arrays and compiled.jnt_actfrclimited[j]:
            effort = float(np.abs(compiled.jnt_actfrcrange[j]).max())
    else:
        axis = (0.0, 0.0, 1.0)
    armature, damping, friction = (
        float(np.ravel(values[dof])[0])
        for values in (compiled.dof_armature, compiled.dof_damping, compiled.dof_frictionloss)
    )
    damping = 0.0 if "damper" in compiled.disabled else damping + float(brought[1])
    friction = 0.0 if "frictionloss" in compiled.disabled else friction
    limits = Limits(lower, upper, effort=effort)
    return Joint(name, kind, axis, placement, armature + float(brought[0]), damping, friction, limits)


def _inertial(compiled: Compiled, body: int, anchor: Vector) -> Inertial:
    """Mass and inertia, which MuJoCo gives along principal axes, in a frame with its origin at `anchor`."""
    rotation = np.array(_rotation(compiled.body_iquat[body]))
    with np.errstate(all="ignore"):  # what is not finite is refused by name when the parts are put together
        inertia = rotation @ np.diag(compiled.body_inertia[body]) @ rotation.T
    x, y, z = np.subtract(compiled.body_ipos[body], anchor).tolist()
    rows = tuple(tuple(row) for row in ((inertia + inertia.T) / 2).tolist())
    return Inertial(float(compiled.body_mass[body]), (x, y, z), rows)  # type: ignore[arg-type]


# ---- numbers -----------------------------------------------------------------------------------------------


def _unused(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _vector(values: ArrayLike) -> Vector:
    x, y, z = np.asarray(values, dtype=float).tolist()
    return (x, y, z)


def _shift(position: Vector, sign: float = 1.0) -> Placement:
    x, y, z = position
    return Placement(position=(sign * x + 0.0, sign * y + 0.0, sign * z + 0.0))


def _moved(kind: str, axis: Vector, by: float) -> Placement:
    """The displacement of a hinge or slide joint by `by`."""
    x, y, z = axis
    if kind == "prismatic":
        return _shift((x * by, y * by, z * by))
    s = float(np.sin(by / 2.0))
    return Placement(_rotation((float(np.cos(by / 2.0)), s * x, s * y, s * z)))


def _rotation(quaternion: ArrayLike) -> Matrix:
    """The rotation matrix of a quaternion wxyz of length 1 (SciPy's Rotation takes a second to import)."""
    w, x, y, z = np.asarray(quaternion, dtype=float).tolist()
    return (
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
        (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
    )


# ---- equality constraints ------------------------------------------------------------------------------------
# Equalities of MuJoCo's compiled model: `connect` and `weld` are constraints between frames, `joint` is a coupling.
#
# MuJoCo's are soft, these are exact. `connect` joins the point eq_data[0:3] of body 1 to the point eq_data[3:6] of
# body 2. `weld` joins the pose eq_data[3:10] (position, quaternion wxyz) of body 1 to body 2 at the point eq_data[0:3].
# Both may name two sites instead. `joint` means q1 - q1_0 = c0 + c1 (q2 - q2_0) + ...; linear ones are couplings.

CONNECT, WELD, JOINT = 0, 1, 2  # mjtEq
SITE = 6  # mjtObj
SINGLE = (2, 3)  # mjtJoint: slide and hinge


@dataclass
class Equalities:
    """Equalities as constraints (kind, name, body and placement of both ends) and couplings, and names of the rest."""

    constraints: list[tuple[str, str, tuple[tuple[int, Placement], ...]]] = field(default_factory=list)
    laws: list[Coupling] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)


def find_equalities(compiled: Compiled, couple: bool) -> Equalities:
    equalities = Equalities()
    if "equality" in compiled.disabled or "eq_data" not in compiled.arrays:
        return equalities
    for k, name in enumerate(numbered(compiled, "eq", "equality")):
        if not compiled.eq_active0[k]:
            continue
        kind, data = int(compiled.eq_type[k]), np.asarray(compiled.eq_data[k], dtype=float)
        law = _law(compiled, k, data, equalities.laws) if kind == JOINT and couple else None
        if kind in (CONNECT, WELD):
            ends = _attachments(compiled, k, kind, data)
            rigid = kind == WELD and data[10] != 0.0  # a weld without torquescale does not turn
            if _moving_root(compiled, ends[0][0]) != _moving_root(compiled, ends[1][0]):
                equalities.constraints.append(("rigid" if rigid else "point", name, ends))
                continue
        if law is None:
            equalities.rest.append(name)
        else:
            equalities.laws.append(law)
    return equalities


def with_equalities(model: Model, equalities: Equalities, bodies: list[str]) -> Model:
    """Return `model` with the constraints, each between two new frames, and the couplings."""
    frames, constraints = list(model.frames), []
    taken = {frame.name for frame in frames}
    for kind, name, ends in equalities.constraints:
        names = []
        for number, (body, at) in enumerate(ends, start=1):
            if at == Placement():
                names.append(bodies[body])
                continue
            host, frame_name = find_frame(model, bodies[body]), f"{name}_{number}"
            while frame_name in taken:
                frame_name += "_"
            taken.add(frame_name)
            frames.append(Frame(frame_name, host.link, compose(host.placement, at), host.name))
            names.append(frame_name)
        constraints.append(Constraint(kind, names[0], names[1], name=name))
    model = replace(model, frames=tuple(frames), constraints=tuple(constraints))
    return coupled(model, equalities.laws) if equalities.laws else model


def _attachments(compiled: Compiled, k: int, kind: int, data: np.ndarray) -> tuple[Attachment, Attachment]:
    first, second = int(compiled.eq_obj1id[k]), int(compiled.eq_obj2id[k])
    if int(compiled.eq_objtype[k]) == SITE:
        return _site(compiled, first), _site(compiled, second)
    if kind == CONNECT:
        return (first, Placement(position=_vector(data[:3]))), (second, Placement(position=_vector(data[3:6])))
    return (
        (first, Placement(_rotation(data[6:10]), _vector(data[3:6]))),
        (second, Placement(position=_vector(data[:3]))),
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
