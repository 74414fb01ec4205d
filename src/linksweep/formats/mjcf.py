"""MJCF: MuJoCo's description format, read through the `mujoco` package, which compiles it (extra `mjcf`).

MuJoCo resolves defaults, computes inertias from geometry and fuses what it must; from its compiled model come bodies,
joints, inertias, armature, damping and friction. Coordinates are MuJoCo's (a hinge with a reference angle keeps it),
in this package's order. Before MuJoCo sees a file it passes the checks of xml.py, and so does every file it includes.
https://mujoco.readthedocs.io/en/stable/XMLreference.html
"""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from linksweep.assembly import Part, assemble
from linksweep.errors import DescriptionError, ModelWarning
from linksweep.formats import read_bytes
from linksweep.formats.mujoco_names import body_names, joint_names
from linksweep.formats.xml import Element, parse
from linksweep.model import Inertial, Joint, Limits, Matrix, Model, Placement, Vector, compose

MOST_COPIES = 10_000  # what one element may multiply into: hostile files ask for 1e9 of them
LARGEST_GRID = 20_000_000
MOST_INCLUDES = 100
KINDS = ("free", "spherical", "prismatic", "revolute")  # mjtJoint


def read_mjcf(path: str | os.PathLike[str]) -> Model:
    """The Model of an MJCF file. What is not the dynamics of its tree is left out, and listed in one warning."""
    file = Path(path)
    _check_file(file)
    mujoco = _mujoco(str(file))
    said: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(said.append)  # else it writes MUJOCO_LOG.TXT into the working directory
    try:
        compiled = mujoco.MjModel.from_xml_path(str(file))
    except (ValueError, RuntimeError, MemoryError, mujoco.FatalError) as error:
        reason = " ".join(str(error).split())
        raise DescriptionError(
            f"{file}: MuJoCo cannot compile it ({reason[:300]}), expected a valid MJCF model: correct the file."
        ) from None
    finally:
        mujoco.set_mju_user_warning(before)
    if said:
        warnings.warn(f"{file}: MuJoCo says: {' '.join(' '.join(said).split())[:300]}", ModelWarning, stacklevel=4)
    return model_from_mujoco(compiled, source=str(file), name=file.stem)


def model_from_mujoco(compiled: Any, *, source: str = "MuJoCo's model", name: str = "robot") -> Model:
    """The Model of a compiled `mujoco.MjModel`."""
    parts = _parts(compiled)
    if compiled.njnt == 0:
        raise DescriptionError(f"{source}: the model has no joint, expected at least one: describe what moves.")
    _warn_of_the_rest(compiled, source)
    own = bytes(compiled.names).split(b"\0", 1)[0].decode("utf-8", "replace")
    model_name = name if own in ("", "MuJoCo Model") else own
    return assemble(
        model_name, parts, base=body_names(compiled)[0], gravity=compiled.opt.gravity.tolist(), source=source
    )


def _parts(compiled: Any) -> list[Part]:
    """A part for each joint of each body (all but the last massless), or a fixed one; then the sites, as frames."""
    bodies, joints = body_names(compiled), joint_names(compiled)
    anchors = {0: (0.0, 0.0, 0.0)}  # of each body's last joint, where its part has its origin
    taken = set(bodies)
    parts: list[Part] = []
    for body in range(1, compiled.nbody):
        parent = int(compiled.body_parentid[body])
        first, count = int(compiled.body_jntadr[body]), int(compiled.body_jntnum[body])
        here = Placement(_rotation(compiled.body_quat[body]), _vector(compiled.body_pos[body]))
        here = compose(_shift(anchors[parent], -1.0), here)
        on, anchor = bodies[parent], (0.0, 0.0, 0.0)
        if count == 0:
            fixed = Joint(_unused(f"{bodies[body]}_fixed", joints), "fixed", placement=here)
            parts.append(Part(bodies[body], on, fixed, _inertial(compiled, body, anchor)))
        for j in range(first, first + count):
            kind = KINDS[int(compiled.jnt_type[j])]
            if kind == "free":
                here = Placement()  # its coordinates are those of the body in the world
            anchor = (0.0, 0.0, 0.0) if kind == "free" else _vector(compiled.jnt_pos[j])
            joint = _joint(compiled, j, kind, joints[j], compose(here, _shift(anchor)))
            if j == first + count - 1:
                inertial = _inertial(compiled, body, anchor)
                parts.append(Part(bodies[body], on, joint, inertial, frame=_shift(anchor, -1.0)))
            else:
                massless = _unused(f"{bodies[body]}_before_{joints[j]}", taken)
                taken.add(massless)
                parts.append(Part(massless, on, joint, frame=_shift(anchor, -1.0)))
                on, here = massless, _shift(anchor, -1.0)
        anchors[body] = anchor
    return parts + _sites(compiled, bodies, anchors, taken, joints)


def _sites(compiled: Any, bodies: list[str], anchors: Any, taken: set[str], joints: list[str]) -> list[Part]:
    """Sites are named frames: bodies without mass, fixed to theirs."""
    parts = []
    for site in range(compiled.nsite):
        name, body = compiled.site(site).name, int(compiled.site_bodyid[site])
        if not name or name in taken:
            continue
        taken.add(name)
        at = Placement(_rotation(compiled.site_quat[site]), _vector(compiled.site_pos[site]))
        placement = compose(_shift(anchors[body], -1.0), at)
        parts.append(Part(name, bodies[body], Joint(_unused(f"{name}_fixed", joints), "fixed", placement=placement)))
    return parts


def _joint(compiled: Any, j: int, kind: str, name: str, placement: Placement) -> Joint:
    dof, axis = int(compiled.jnt_dofadr[j]), _vector(compiled.jnt_axis[j])
    limits = Limits()
    if kind in ("revolute", "prismatic"):
        start = float(compiled.qpos0[compiled.jnt_qposadr[j]])  # where MuJoCo's coordinate has the body as described
        if start:
            placement = compose(placement, _moved(kind, axis, -start))
        if compiled.jnt_limited[j]:
            limits = Limits(*compiled.jnt_range[j].tolist())
    else:
        axis = (0.0, 0.0, 1.0)
    armature, damping, friction = (
        float(np.ravel(values[dof])[0])
        for values in (compiled.dof_armature, compiled.dof_damping, compiled.dof_frictionloss)
    )
    return Joint(name, kind, axis, placement, armature, damping, friction, limits)


def _inertial(compiled: Any, body: int, anchor: Vector) -> Inertial:
    """Mass and inertia, which MuJoCo gives along principal axes, in a frame with its origin at `anchor`."""
    rotation = np.array(_rotation(compiled.body_iquat[body]))
    with np.errstate(all="ignore"):  # what is not finite is refused by name when the parts are put together
        inertia = rotation @ np.diag(compiled.body_inertia[body]) @ rotation.T
    x, y, z = np.subtract(compiled.body_ipos[body], anchor).tolist()
    rows = tuple(tuple(row) for row in ((inertia + inertia.T) / 2).tolist())
    return Inertial(float(compiled.body_mass[body]), (x, y, z), rows)  # type: ignore[arg-type]


def _warn_of_the_rest(compiled: Any, source: str) -> None:
    """One warning of all that MuJoCo would simulate and the dynamics of a tree of rigid bodies does not have."""
    contacts = int(np.count_nonzero((compiled.geom_contype != 0) | (compiled.geom_conaffinity != 0)))
    counts = {
        "actuators": compiled.nu, "tendons": compiled.ntendon, "equality constraints": compiled.neq,
        "geoms that collide": contacts if compiled.ngeom > 1 else 0, "deformable bodies": getattr(compiled, "nflex", 0),
        "joint springs": int(np.count_nonzero(compiled.jnt_stiffness)),
        "bodies with gravity compensation": int(np.count_nonzero(compiled.body_gravcomp)),
        "a surrounding fluid": int(compiled.opt.density != 0 or compiled.opt.viscosity != 0),
        "plugins": compiled.nplugin,
    }  # fmt: skip
    said = [what if what.startswith("a ") else f"{count} {what}" for what, count in counts.items() if count]
    if said:
        warnings.warn(
            f"{source}: {', '.join(said)} are not part of the tree's dynamics and are left out: add their forces "
            "yourself where they matter.",
            ModelWarning,
            stacklevel=6,
        )


# ---- before MuJoCo sees a file -----------------------------------------------------------------------------


def _check_file(file: Path) -> None:
    """Refuse what would hang, fill memory or read outside: in this file and in all that it includes."""
    folder = file.resolve().parent
    waiting, seen = [file.resolve()], {file.resolve()}
    while waiting:
        path = waiting.pop()
        source = str(file if path == file.resolve() else path)
        root = parse(read_bytes(path), source)
        if path == file.resolve() and root.tag != "mujoco":
            raise DescriptionError(f"{source}: the root element is <{root.tag}>, expected <mujoco>: is this MJCF?")
        elements = [(root, 1.0)]
        while elements:
            element, copies = elements.pop()
            copies = _checked_copies(element, copies, source)
            elements.extend((child, copies) for child in element.children)
            if element.tag != "include" or not element.attributes.get("file"):
                continue
            other = (folder / element.attributes["file"]).resolve()
            if not other.is_relative_to(folder):
                raise DescriptionError(
                    f"{source}, line {element.line}: {element.attributes['file']!r} is included from outside the "
                    f"folder of the description, expected a file inside it: copy it there."
                )
            if other in seen or len(seen) > MOST_INCLUDES:
                raise DescriptionError(
                    f"{source}, line {element.line}: {element.attributes['file']!r} is included twice or after "
                    f"{MOST_INCLUDES} others, expected each file once: remove the inclusion."
                )
            seen.add(other)
            waiting.append(other)


def _checked_copies(element: Element, copies: float, source: str) -> float:
    """How many times the children of an element that is itself made so many times are made.

    MuJoCo makes whatever number is asked for, however long it takes.
    """
    for keys, most in (
        (("nrow", "ncol"), LARGEST_GRID),
        (("width", "height"), LARGEST_GRID),
        (("count",), MOST_COPIES),
    ):
        product = copies if keys == ("count",) else 1.0
        for word in (word for key in keys for word in element.attributes.get(key, "").split()):
            try:
                product *= max(abs(float(word)), 1.0)
            except ValueError:
                product = float("nan")
        if not product <= most:
            raise DescriptionError(
                f"{source}, line {element.line}: <{element.tag}> asks for {' x '.join(keys)} = "
                f"{' '.join(element.attributes.get(key, '') for key in keys)[:40]!r}, expected at most {most} in all: "
                f"ask for less."
            )
    return product if element.tag == "replicate" else copies


def _mujoco(source: str) -> Any:
    try:
        import mujoco
    except ImportError:
        raise DescriptionError(
            f"{source}: MJCF is read by the mujoco package, which is not installed, expected it here: "
            "pip install 'linksweep[mjcf]'."
        ) from None
    return mujoco


# ---- numbers -----------------------------------------------------------------------------------------------


def _unused(name: str, taken: Any) -> str:
    while name in taken:
        name += "_"
    return name


def _vector(values: Any) -> Vector:
    x, y, z = np.asarray(values, dtype=float).tolist()
    return (x, y, z)


def _shift(position: Vector, sign: float = 1.0) -> Placement:
    x, y, z = position
    return Placement(position=(sign * x + 0.0, sign * y + 0.0, sign * z + 0.0))


def _moved(kind: str, axis: Vector, by: float) -> Placement:
    """Where a hinge or slide stands that was moved by so much."""
    x, y, z = axis
    if kind == "prismatic":
        return _shift((x * by, y * by, z * by))
    s = float(np.sin(by / 2.0))
    return Placement(_rotation((float(np.cos(by / 2.0)), s * x, s * y, s * z)))


def _rotation(quaternion: Any) -> Matrix:
    """The rotation matrix of a quaternion wxyz of length 1."""
    w, x, y, z = np.asarray(quaternion, dtype=float).tolist()
    return (
        (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)),
        (2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)),
        (2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)),
    )
