"""MJCF files of the installed packages, and the models that MuJoCo compiles from them."""

from __future__ import annotations

import functools
import importlib
import importlib.metadata
import warnings
from pathlib import Path
from typing import Any

import linksweep as ls
from linksweep.errors import ModelWarning

mujoco: Any = importlib.import_module("mujoco")  # it has no types that pyright could see


mujoco.set_mju_user_warning(lambda message: None)  # else it leaves MUJOCO_LOG.TXT where the tests run


OWN = Path(__file__).parents[1] / "model" / "mjcf"


def packaged(package: str) -> dict[str, Path]:
    """The XML files of a package that may be installed, which is never imported (brax would want jax)."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    return {str(file): Path(str(file.locate())) for file in files if str(file).endswith(".xml")}


FILES = {f"own/{path.name}": path for path in sorted(OWN.glob("*.xml"))} | packaged("gymnasium") | packaged("brax")


@functools.cache
def compiled(name: str) -> Any:
    try:
        return mujoco.MjModel.from_xml_path(str(FILES[name]))
    except ValueError:
        return None


COMPILED = [name for name in FILES if compiled(name) is not None]


@functools.cache
def quietly(name: str) -> ls.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return ls.load(FILES[name])
