"""What a robot looks like: the shapes in the file it was read from, by the frames to which they are fixed.

The frozen Model has dynamics only. It remembers its file, and frames keep their names however a robot is edited; so
the file is read again here, and a shape whose frame the robot still has is drawn on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from linksweep.description.model import Model
from linksweep.errors import DescriptionError, ModelWarning, warn_user

from .meshes import MeshError, MeshLibrary
from .packages import find_mesh, is_address
from .shapes import MeshFile, Surface, Visual, surface_of

FARTHEST = 1e6  # metres
NOT_FOUND, TOO_FAR = "not found", "it reaches farther than 1000 km"


@dataclass
class Looks:
    """Surfaces to draw, each with its Visual, and the frames whose shapes could not be had."""

    surfaces: list[tuple[Visual, tuple[Surface, ...]]] = field(default_factory=list)
    lacking: set[str] = field(default_factory=set)
    problems: dict[str, str] = field(default_factory=dict)  # mesh -> what is wrong with it

    @property
    def frames(self) -> set[str]:
        return {visual.frame for visual, _ in self.surfaces} - self.lacking


def looks_of(model: Model, source: str | Path | None, library: MeshLibrary) -> Looks:
    """The looks of a robot from `source`, or from the file it was read from; one warning names what is missing."""
    looks = Looks()
    path = Path(source or model.source) if source or model.source else None
    if path is None:
        return looks
    try:
        visuals = read_visuals(path)
    except DescriptionError:
        if source:
            raise
        return looks  # the file is gone since the robot was read
    known = {frame.name for frame in model.frames}
    for visual in visuals:
        if visual.frame not in known:
            continue
        try:
            looks.surfaces.append((visual, _surfaces(visual, path, library)))
        except MeshError as error:
            looks.lacking.add(visual.frame)
            name = visual.shape.filename if isinstance(visual.shape, MeshFile) else type(visual.shape).__name__
            looks.problems[name] = str(error)
    looks.surfaces = [(visual, surfaces) for visual, surfaces in looks.surfaces if visual.frame not in looks.lacking]
    if looks.problems:
        warn_user(_said(model.name, looks.problems), ModelWarning)
    return looks


def read_visuals(path: Path) -> Sequence[Visual]:
    """The shapes that a URDF or MJCF file describes; none for other files."""
    from linksweep.formats import read_bytes
    from linksweep.formats.xml import parse

    if path.suffix.lower() not in (".urdf", ".xml", ".mjcf"):
        return ()
    root = parse(read_bytes(path), str(path))
    if root.tag == "mujoco":
        from .mjcf_visuals import mjcf_visuals

        return mjcf_visuals(path)
    from .urdf_visuals import urdf_visuals

    return urdf_visuals(root)


def _surfaces(visual: Visual, description: Path, library: MeshLibrary) -> tuple[Surface, ...]:
    shape = visual.shape
    if not np.abs(visual.at).max() < FARTHEST:
        raise MeshError(TOO_FAR)
    if not isinstance(shape, MeshFile):
        with np.errstate(over="ignore"):
            surfaces: tuple[Surface, ...] = (surface_of(shape),)
    elif is_address(shape.filename):
        raise MeshError("nothing is fetched from a network")
    else:
        path = find_mesh(shape.filename, description)
        if path is None:
            raise MeshError(NOT_FOUND)
        surfaces = library.read(path, shape.scale)
    if not all(np.abs(surface.vertices).max(initial=0.0) < FARTHEST for surface in surfaces):
        raise MeshError(TOO_FAR)
    return surfaces


def _said(robot: str, problems: dict[str, str]) -> str:
    """One sentence about all meshes that are not drawn."""
    missing = [name for name, reason in problems.items() if reason == NOT_FOUND]
    broken = [f"{name} ({reason})" for name, reason in problems.items() if reason != NOT_FOUND]
    parts = []
    if missing:
        parts.append(f"{len(missing)} mesh{'es are' if len(missing) > 1 else ' is'} not found ({_some(missing)})")
    if broken:
        parts.append(f"{len(broken)} cannot be read ({_some(broken)})")
    advice = ": put the folder that holds the package into ROS_PACKAGE_PATH" if missing else ""
    return f"{robot}: {' and '.join(parts)}, and the links are drawn as bodies instead{advice}."


def _some(names: list[str]) -> str:
    return ", ".join(names[:2]) + (", ..." if len(names) > 2 else "")
