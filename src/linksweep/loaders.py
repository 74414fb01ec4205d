"""Loaders of robot models from other packages.

`load_robot_description` has the form of the loaders of the package `robot_descriptions`, which finds and downloads the
models of more than a hundred robots.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from .errors import ArgumentError, DescriptionError
from .robot.loading import is_description_name, load
from .robot.robot import Robot
from .support.messages import shown


def load_robot_description(name: str, **options: Any) -> Robot:
    """Load a robot of the package `robot_descriptions` (extra `robots`) by its name.

    Parameters
    ----------
    name : str
        A name of robot_descriptions, such as "panda_description" or "panda_mj_description". The first use of a
        model downloads it.
    **options
        Options of `linksweep.load`.

    Returns
    -------
    Robot

    Examples
    --------
    >>> from linksweep.loaders import load_robot_description
    >>> robot = load_robot_description("panda_description", mimic="couple")  # doctest: +SKIP
    """
    if not isinstance(name, str) or not name.isidentifier() or not is_description_name(name):
        raise ArgumentError(f"the robot description is {shown(name)}, expected a name such as 'panda_description'.")
    module = _description(name)
    xacro = getattr(module, "XACRO_PATH", None)
    path = getattr(module, "URDF_PATH", None) or getattr(module, "MJCF_PATH", None) or xacro
    if path is None:
        raise DescriptionError(f"robot_descriptions.{name} has no URDF, MJCF or xacro file.")
    if path is xacro:
        options["xacro_args"] = {**getattr(module, "XACRO_ARGS", {}), **(options.get("xacro_args") or {})}
    elif options.get("root") is None and path == getattr(module, "MJCF_PATH", None):
        options["root"] = getattr(module, "REPOSITORY_PATH", None)
    return load(path, **options)


def _description(name: str) -> ModuleType:
    full_name = f"robot_descriptions.{name}"
    if full_name in sys.modules:
        return sys.modules[full_name]
    if find_spec("robot_descriptions") is None:
        raise DescriptionError(
            f"{name!r} is a name of the package robot_descriptions, which is not installed: pip install "
            "'linksweep[robots]'."
        )
    try:
        return import_module(full_name)
    except ModuleNotFoundError as error:
        if error.name != full_name:
            raise
        raise DescriptionError(f"robot_descriptions has no model {name!r}; see robot_descriptions.__all__.") from None
    except Exception as error:  # the download failed
        reason = " ".join(str(error).split())[:200]
        raise DescriptionError(f"robot_descriptions could not provide {name!r} ({reason}).") from None


__all__ = ["load_robot_description"]
