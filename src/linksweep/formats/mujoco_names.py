"""The names under which bodies and joints of a compiled MuJoCo model are known here."""

from __future__ import annotations

from typing import Any


def body_names(model: Any) -> list[str]:
    """Names of all bodies of an MjModel; nameless ones are body1, body2 ... by their number."""
    return _unique([model.body(i).name or f"body{i}" for i in range(model.nbody)])


def joint_names(model: Any) -> list[str]:
    """Names of all joints of an MjModel; nameless ones are called after their body: torso_joint, torso_joint2 ..."""
    bodies, names = body_names(model), []
    for j in range(model.njnt):
        body = int(model.jnt_bodyid[j])
        nth = j - int(model.body_jntadr[body]) + 1
        names.append(model.joint(j).name or f"{bodies[body]}_joint{nth if nth > 1 else ''}")
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
