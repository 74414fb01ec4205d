"""What the commands share: exit codes, robots by name or file, their completion."""

from __future__ import annotations

from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linksweep import robots
from linksweep.errors import ArgumentError, BackendError, DescriptionError
from linksweep.names import nearest, shown

if TYPE_CHECKING:
    from linksweep.robot import Robot

BAD_INPUT = 2  # the exit code for anything the user can put right
DISAGREEMENT = 1  # formulations that differ, or a description that no body can have
ENDINGS = (".urdf", ".xml", ".toml")
BUNDLED = ", ".join(robots.names())


def complete_robot(incomplete: str) -> list[str]:
    folder, _, start = incomplete.rpartition("/")
    files = sorted(Path(folder or ".").glob(f"{escape(start)}*")) if not folder or Path(folder).is_dir() else []
    beside = [f"{path}/" if path.is_dir() else str(path) for path in files if path.is_dir() or path.suffix in ENDINGS]
    return [name for name in robots.names() if name.startswith(incomplete)] + beside


def complete_function(incomplete: str) -> list[str]:
    from linksweep.requests import PUBLIC

    return [name for name in PUBLIC if name.startswith(incomplete)]


RobotName = Annotated[
    str,
    typer.Argument(metavar="ROBOT", help=f"A file (.urdf, .xml, .toml), or {BUNDLED}.", autocompletion=complete_robot),
]
Root = Annotated[
    Path | None,
    typer.Option(metavar="FOLDER", help="Holds every file of the description: MJCF that includes ../others."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def find_robot(name: str, root: Path | None = None) -> Robot:
    """A bundled robot by name, or one read from a file."""
    from linksweep.loading import load
    from linksweep.robot import Robot

    if name in robots.names():
        return Robot(robots.model(name))
    if Path(name).is_file() or Path(name).suffix:
        return load(name, root=root)
    meant = nearest(name.lower(), robots.names())
    raise DescriptionError(
        f"There is no robot {shown(name)}{meant}, expected a file or one of {BUNDLED}: check the spelling."
    )


def matplotlib_installed() -> bool:
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def check_plot(path: Path) -> None:
    """Refuse a plot that could not be written, before anything is computed."""
    from linksweep.tables import check_place

    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ArgumentError(f"The plot {path} ends in {path.suffix!r}, expected .png, .svg or .pdf: name it so.")
    if not matplotlib_installed():
        raise BackendError("Plotting needs Matplotlib, which is not installed: run pip install 'linksweep[plot]'.")
    check_place(path)
