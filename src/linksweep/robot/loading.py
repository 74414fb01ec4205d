"""`load`: from a file or a name to a Robot, on a fixed or a floating base, its mimic joints free or coupled."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..errors import ArgumentError, DescriptionError
from ..formats import bundled, load_model
from ..support.messages import is_one_of, nearest, shown
from .editing import with_actuated, with_base
from .robot import Robot


def load(
    path: str | os.PathLike[str],
    base: str = "fixed",
    mimic: str = "free",
    *,
    root: str | os.PathLike[str] | None = None,
    actuated: Sequence[str] | None = None,
) -> Robot:
    """A robot from a file (URDF, MJCF, or a DH table in TOML), or a bundled one by its name, such as "puma560".

    base: "fixed", or "floating" to put a free joint under it, see `Robot.with_base`; a robot that floats already stays
    as it is. mimic: joints that mimic others (URDF), or that an equality ties to others (MJCF), are "free" coordinates,
    with a warning that names them; with "couple" they follow, and the robot has the coordinates of the joints that lead
    (`Robot.with_couplings`). root: a folder that holds every file the description names; without it, an MJCF file may
    include XML of its own folder only. actuated: the joints with motors, see `Robot.with_actuated`; None: all.
    """
    for name, value, known in (("base", base, ("fixed", "floating")), ("mimic", mimic, ("free", "couple"))):
        if not is_one_of(value, known):
            raise ArgumentError(f"{name} is {shown(value)}, expected {known[0]!r} or {known[1]!r}: choose one of them.")
    floats = base == "floating"
    if isinstance(path, str) and path in bundled.names():
        model = bundled.model(path)
    else:
        _check_exists(path)
        model = load_model(path, rigid=floats, root=root, couple=mimic == "couple")
        model = replace(model, source=str(Path(path).resolve()))
    model = with_base(model, base) if floats else model
    return Robot(model if actuated is None else with_actuated(model, actuated))


def _check_exists(path: object) -> None:
    """A word without an ending that is no file is a misspelt name of a robot; a folder is never one."""
    if not isinstance(path, (str, os.PathLike)):
        return  # which the reader says
    if os.path.isdir(path):
        raise DescriptionError(f"{path}: this is a directory, expected a file: name the description inside it.")
    if isinstance(path, str) and not os.path.splitext(path)[1] and not os.path.lexists(path):
        known = bundled.names()
        raise DescriptionError(
            f"There is no robot {shown(path)}{nearest(path.lower(), known)}, expected a file or one of "
            f"{', '.join(known)}: check the spelling."
        )
