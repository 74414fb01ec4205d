"""The names under which bodies and joints of a compiled MuJoCo model are known here."""

from __future__ import annotations

from typing import Any

# mujoco, and mujoco.MjModel or its arrays by the same names; MuJoCo is an extra that type checkers cannot see
MuJoCo = MjModel = Any


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
