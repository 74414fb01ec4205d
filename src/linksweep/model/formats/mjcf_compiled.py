"""Features of MuJoCo that are not part of the dynamics of a tree of rigid bodies, listed in one warning.

docs/descriptions.md lists how every option and field of MuJoCo's model is treated, and tests/model/test_mjcf_fields.py
checks both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ModelWarning, warn_user
from linksweep.support.files import Table
from linksweep.support.messages import listing

# the module mujoco, and mujoco.MjModel or its arrays by the same names: an extra that type checkers cannot see
MuJoCo = MjModel = Any
FREE, BALL = 0, 1  # mjtJoint
TENDON_FORCES = {  # each with the flag that turns it off
    "tendon_stiffness": "spring", "tendon_stiffnesspoly": "spring", "tendon_damping": "damper",
    "tendon_dampingpoly": "damper", "tendon_frictionloss": "frictionloss", "tendon_limited": "limit",
}  # fmt: skip
ON_JOINTS, TRN_TENDON = (0, 1), 3  # mjtTrn
EQUALITIES = "the equality constraints"


class Compiled:
    """MuJoCo's compiled model as the arrays that `mujoco_child.extract` took from it."""

    def __init__(self, arrays: Table):
        self.arrays = arrays
        self.disabled = {str(word) for word in arrays["disabled"]}
        if self.disabled >= {"spring", "damper"}:
            self.disabled.add("passive")  # which older versions have for both
        if "constraint" in self.disabled:
            self.disabled |= {"contact", "equality", "limit", "frictionloss"}
        if "passive" in self.disabled:
            self.disabled |= {"spring", "damper"}

    def __getattr__(self, name: str) -> Any:
        try:
            return self.arrays[name]
        except KeyError:
            raise AttributeError(name) from None

    def rows(self, name: str, count: int) -> np.ndarray:
        """(count, m); zero where MuJoCo's version has no such field."""
        values = self.arrays.get(name)
        if values is None or count == 0:
            return np.zeros((count, 1))
        return np.asarray(values, dtype=float).reshape(count, -1)

    def where(self, *names: str) -> np.ndarray:
        """Which rows hold anything but zero in one of these fields."""
        count = len(self.arrays[names[0]])
        return np.any([self.rows(name, count).any(axis=1) for name in names], axis=0)

    def rotors(self) -> np.ndarray:
        """(joints, 2): armature and damping that the actuators of each joint bring, seen through their gears."""
        brought = np.zeros((len(self.jnt_type), 2))
        count = len(self.actuator_trntype)
        of_actuators = np.hstack([self.rows(name, count)[:, :1] for name in ("actuator_armature", "actuator_damping")])
        first = self.arrays.get("actuator_outadr", np.arange(count))  # the row of the gear
        for i in np.flatnonzero(np.isin(self.actuator_trntype, ON_JOINTS)).tolist():
            brought[self.actuator_trnid[i, 0]] += of_actuators[i] * self.actuator_gear[first[i], 0] ** 2
        return brought


def warn_of_the_rest(compiled: Compiled, source: str, equalities: list[str]) -> None:
    """equalities: those that became no constraint and no coupling."""
    features = {what: find(compiled) for what, find in LEFT_OUT.items()} | {EQUALITIES: equalities}
    listed = [text for what, items in features.items() if (text := _feature_text(what, items))]
    if listed:
        warn_user(
            f"{source}: left out are {'; '.join(listed)}: these are not part of the tree's dynamics, so add what they "
            "do yourself where it matters.",
            ModelWarning,
        )


def _feature_text(what: str, items: list[str] | int) -> str:
    if isinstance(items, int):
        return f"{what} ({items})" if items > 1 else what if items else ""
    return f"{what} {listing(items, 4)}" if items else ""


def _chosen(names: list[str], which: ArrayLike) -> list[str]:
    return [name for name, holds in zip(names, np.asarray(which).tolist(), strict=True) if holds]


def numbered(compiled: Compiled, kind: str, called: str) -> list[str]:
    return [name or f"{called} {i}" for i, name in enumerate(own_names(compiled, kind))]


def _springs(compiled: Compiled) -> list[str]:
    if "spring" in compiled.disabled:
        return []
    return _chosen(joint_names(compiled), compiled.where("jnt_stiffness", "jnt_stiffnesspoly"))


def _nonlinear_damping(compiled: Compiled) -> list[str]:
    """Of a joint, or of actuators that act on it."""
    if "damper" in compiled.disabled or "dof_dampingpoly" not in compiled.arrays:
        return []
    joints = set(compiled.dof_jntid[compiled.where("dof_dampingpoly")].tolist())
    if "actuator_dampingpoly" in compiled.arrays and len(compiled.actuator_trntype):
        acting = compiled.where("actuator_dampingpoly") & np.isin(compiled.actuator_trntype, (0, 1))
        joints |= set(compiled.actuator_trnid[acting, 0].tolist())
    return [name for j, name in enumerate(joint_names(compiled)) if j in joints]


def _free_along_the_world(compiled: Compiled) -> list[str]:
    """MuJoCo's free joint has its linear rates along the world's axes, and these act on rates."""
    acting = compiled.where("dof_armature") | (
        compiled.where("dof_frictionloss") & ("frictionloss" not in compiled.disabled)
    )
    joints = {int(j) for j in compiled.dof_jntid[acting]}
    joints |= set(np.flatnonzero(compiled.rotors()[:, 0]).tolist())
    return [n for j, n in enumerate(joint_names(compiled)) if j in joints and compiled.jnt_type[j] == FREE]


def _uneven(compiled: Compiled) -> list[str]:
    """A joint has one armature, damping and friction here; in a file it has, too, but not in Python."""
    columns = [compiled.dof_armature, compiled.dof_damping, compiled.dof_frictionloss]
    joints = set()
    for j in range(len(compiled.jnt_type)):
        dofs = np.flatnonzero(compiled.dof_jntid == j) if compiled.jnt_type[j] in (FREE, BALL) else []
        if any(len(set(np.ravel(column[dofs]).tolist())) > 1 for column in columns):
            joints.add(j)
    return [name for j, name in enumerate(joint_names(compiled)) if j in joints]


def _namesakes(compiled: Compiled) -> list[str]:
    """Frames are named once, and the body's is."""
    bodies = body_names(compiled)
    away = np.hstack([compiled.site_pos, compiled.site_quat]) != [0, 0, 0, 1, 0, 0, 0]
    elsewhere = [bodies[body] for body in compiled.site_bodyid.tolist()]
    sites = zip(own_names(compiled, "site"), elsewhere, away.any(axis=1).tolist(), strict=True)
    return [name for name, body, aside in sites if name in bodies and (aside or name != body)]


def _ball_ranges(compiled: Compiled) -> list[str]:
    if "limit" in compiled.disabled:
        return []
    return _chosen(joint_names(compiled), (compiled.jnt_type == BALL) & (compiled.jnt_limited != 0))


def _gravity_compensation(compiled: Compiled) -> list[str]:
    if compiled.disabled & {"gravity", "passive"} or not np.any(compiled.opt_gravity):
        return []
    moving = _moving(compiled)
    return [name for i, name in enumerate(body_names(compiled)) if compiled.body_gravcomp[i] and moving[i]]


def _fluid(compiled: Compiled) -> int:
    return int("passive" not in compiled.disabled and bool(compiled.opt_density or compiled.opt_viscosity))


def _tendons(compiled: Compiled) -> list[str]:
    """Those that pull; a tendon without stiffness, damping, friction or range only transmits."""
    fields = [name for name, flag in TENDON_FORCES.items() if name in compiled.arrays and flag not in compiled.disabled]
    which = compiled.where(*fields) if fields else np.zeros(len(compiled.tendon_stiffness), dtype=bool)
    if "damper" not in compiled.disabled:
        which |= _by_actuators(compiled, "actuator_damping", "actuator_dampingpoly")
    return _chosen(numbered(compiled, "tendon", "tendon"), which)


def _tendon_armature(compiled: Compiled) -> list[str]:
    which = _by_actuators(compiled, "actuator_armature")
    if "tendon_armature" in compiled.arrays:
        which |= compiled.where("tendon_armature")
    return _chosen(numbered(compiled, "tendon", "tendon"), which)


def _by_actuators(compiled: Compiled, *names: str) -> np.ndarray:
    """Which tendons have actuators with such fields."""
    which = np.zeros(len(compiled.tendon_stiffness), dtype=bool)
    present = [name for name in names if name in compiled.arrays]
    if present:
        acting = (compiled.actuator_trntype == TRN_TENDON) & compiled.where(*present)
        which[compiled.actuator_trnid[acting, 0]] = True
    return which


def _servos(compiled: Compiled) -> list[str]:
    """Actuators that push without being told to; a plain motor's torque is the caller's."""
    if "actuation" in compiled.disabled:
        return []
    count = len(compiled.actuator_trntype)
    plugged = compiled.rows("actuator_plugin", count)[:, 0] >= 0 if "actuator_plugin" in compiled.arrays else False
    groups = np.asarray(compiled.actuator_group)
    off = np.array([0 <= g < 31 and bool(int(compiled.arrays.get("opt_disableactuator", 0)) >> g & 1) for g in groups])
    which = ((compiled.actuator_biastype != 0) | plugged) & ~off.astype(bool)
    return _chosen(numbered(compiled, "actuator", "actuator"), which)


def _contacts(compiled: Compiled) -> int:
    """Geoms that may touch another one."""
    if "contact" in compiled.disabled:
        return 0
    kinds, count = np.unique(np.stack([compiled.geom_contype, compiled.geom_conaffinity]), axis=1, return_counts=True)
    type_, affinity = kinds
    meets = (type_[:, None] & affinity[None, :]) | (affinity[:, None] & type_[None, :])
    meets = (meets != 0) & ~np.diag(count == 1)  # nothing touches itself
    return int(count[meets.any(axis=1)].sum()) or 2 * int(compiled.arrays.get("npair", 0))


def _mocap(compiled: Compiled) -> list[str]:
    """Bodies that a user moves, with a joint above them."""
    carrying = {compiled.body_parentid[body] for body in np.unique(compiled.jnt_bodyid).tolist()}
    parents = compiled.body_parentid.tolist()
    for body in list(carrying):
        while body:
            body = parents[body]
            carrying.add(body)
    return [name for i, name in enumerate(body_names(compiled)) if compiled.body_mocapid[i] >= 0 and i in carrying]


def _moving(compiled: Compiled) -> list[bool]:
    """Whether each body moves with some joint; parents come first."""
    moving: list[bool] = []
    for body, parent in enumerate(compiled.body_parentid.tolist()):
        moving.append(compiled.body_jntnum[body] > 0 or (body > 0 and moving[parent]))
    return moving


def _count(name: str) -> Callable[[Compiled], int]:
    return lambda compiled: int(compiled.arrays.get(name, 0))


LEFT_OUT: dict[str, Callable[[Compiled], list[str] | int]] = {
    "the springs of joints": _springs,
    "the nonlinear damping of joints": _nonlinear_damping,
    "the world's axes, along which armature and friction of free joints act,": _free_along_the_world,
    "the armature, damping and friction of all but the first degree of freedom of joints": _uneven,
    "the ranges of ball joints": _ball_ranges,
    "the gravity compensation of bodies": _gravity_compensation,
    "a surrounding fluid": _fluid,
    "the forces of tendons": _tendons,
    "the armature of tendons": _tendon_armature,
    EQUALITIES: lambda compiled: [],  # found by `find_equalities` in mjcf.py
    "the actuators with a force of their own": _servos,
    "the contacts of geoms": _contacts,
    "the sites that bodies share their names with": _namesakes,
    "deformable bodies": _count("nflex"),
    "plugins": _count("nplugin"),
    "the motion of mocap bodies": _mocap,
}
"""Features as the warning and the documentation name them, and a function that returns their names or number."""


__all__ = ["LEFT_OUT", "Compiled", "warn_of_the_rest"]


# ---- names of bodies and joints ------------------------------------------------------------------------------


def own_names(model: MjModel, kind: str) -> list[str]:
    """What a model calls its bodies ("body"), joints ("jnt"), sites ("site") ...: "" where it has no name."""
    text = bytes(model.names)
    starts = [int(start) for start in getattr(model, f"name_{kind}adr")]
    return [text[start : text.index(b"\0", start)].decode("utf-8", "replace") for start in starts]


def body_names(model: MjModel) -> list[str]:
    """Names of all bodies of a compiled model; nameless ones are body1, body2 ... by their number."""
    return _unique([name or f"body{i}" for i, name in enumerate(own_names(model, "body"))])


def joint_names(model: MjModel) -> list[str]:
    """Names of all joints of a compiled model; nameless ones are called after their body: torso_joint, torso_joint2."""
    bodies, names = body_names(model), own_names(model, "jnt")
    for j, name in enumerate(names):
        body = int(model.jnt_bodyid[j])
        nth = j - int(model.body_jntadr[body]) + 1
        names[j] = name or f"{bodies[body]}_joint{nth if nth > 1 else ''}"
    return _unique(names)


def _unique(names: list[str]) -> list[str]:
    """A made-up name may be taken: then it gets underscores."""
    taken: set[str] = set()
    for k, name in enumerate(names):
        while name in taken:
            name += "_"
        taken.add(name)
        names[k] = name
    return names
