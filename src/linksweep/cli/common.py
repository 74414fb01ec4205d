"""What the commands share: exit codes, robots by name or file, how they are loaded, their completion."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linksweep import robots
from linksweep.errors import ArgumentError, BackendError
from linksweep.support.messages import nearest, shown

if TYPE_CHECKING:
    from rich.console import RenderableType

    from linksweep.robot.robot import Robot

BAD_INPUT = 2  # the exit code for anything the user can put right
DISAGREEMENT = 1  # formulations that differ, or a description that no body can have
ENDINGS = (".urdf", ".xml", ".toml")
BUNDLED = ", ".join(robots.names())
BASES, MIMICS = ("fixed", "floating"), ("free", "couple")


def complete_robot(incomplete: str) -> list[str]:
    folder, _, start = incomplete.rpartition("/")
    files = sorted(Path(folder or ".").glob(f"{escape(start)}*")) if not folder or Path(folder).is_dir() else []
    beside = [f"{path}/" if path.is_dir() else str(path) for path in files if path.is_dir() or path.suffix in ENDINGS]
    return [name for name in robots.names() if name.startswith(incomplete)] + beside


def complete_function(incomplete: str) -> list[str]:
    from linksweep.catalogue.requests import PUBLIC

    return [name for name in PUBLIC if name.startswith(incomplete)]


def complete_from(known: Sequence[str]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return complete


_ARGUMENT = typer.Argument(
    metavar="ROBOT", help=f"A file (.urdf, .xml, .toml), or {BUNDLED}.", autocompletion=complete_robot
)
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OutputFile = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write .csv, .npz or .parquet.")
]
OutputFolder = Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for all files.")]

_PANEL = "The robot"
_ROBOT_OPTIONS: dict[str, tuple[object, str | None]] = {
    "base": (
        Annotated[
            str,
            typer.Option(
                metavar="BASE", help="fixed, or floating.", autocompletion=complete_from(BASES), rich_help_panel=_PANEL
            ),
        ],
        "fixed",
    ),
    "mimic": (
        Annotated[
            str,
            typer.Option(
                metavar="HOW", help="Joints that a file ties to others: free, or couple.",
                autocompletion=complete_from(MIMICS), rich_help_panel=_PANEL,
            ),
        ],
        "free",
    ),
    "payload": (
        Annotated[
            str | None,
            typer.Option(
                metavar="MASS[,X,Y,Z][@FRAME]", help="A body there: kg, mass centre in m; unless said, at the tool.",
                rich_help_panel=_PANEL,
            ),
        ],
        None,
    ),
    "gravity": (
        Annotated[
            str | None,
            typer.Option(metavar="X,Y,Z", help="Instead of the file's, m/s^2 in the base.", rich_help_panel=_PANEL),
        ],
        None,
    ),
    "root": (
        Annotated[
            str | None,
            typer.Option(
                metavar="FOLDER", help="Holds every file of an MJCF description that includes ../others.",
                rich_help_panel=_PANEL,
            ),
        ],
        None,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class AskedRobot:
    """A robot as the words of a command name it."""

    name: str | None
    base: str = "fixed"
    mimic: str = "free"
    payload: str | None = None
    gravity: str | None = None
    root: str | None = None
    given: tuple[str, ...] = ()  # every option of the command line, those of the command itself too

    @property
    def changes(self) -> list[str]:
        """The options by which it is not the robot of the file."""
        return [f"--{option}" for option, (_, default) in _ROBOT_OPTIONS.items() if getattr(self, option) != default]


def names_a_robot(command: Callable[..., None]) -> Callable[..., None]:
    """Typer sees a name in the place of a command's `robot: AskedRobot`, and the options that say how it is loaded."""
    signature = inspect.signature(command, eval_str=True)
    own = dict(signature.parameters)
    required = own["robot"].default is inspect.Parameter.empty
    default = inspect.Parameter.empty if required else None
    named = Annotated[str if required else str | None, _ARGUMENT]
    own["robot"] = own["robot"].replace(annotation=named, default=default)
    further = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in _ROBOT_OPTIONS.items()
    ]
    further.append(inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context))

    @functools.wraps(command)
    def run(
        *, robot: str | None = None, base: str, mimic: str, payload: str | None, gravity: str | None, root: str | None,
        context: typer.Context, **options: object,
    ) -> None:  # fmt: skip
        command(robot=AskedRobot(robot, base, mimic, payload, gravity, root, _given(context)), **options)

    parameters = [*own.values(), *further]
    run.__dict__["__signature__"] = signature.replace(parameters=parameters)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _given(context: typer.Context) -> tuple[str, ...]:
    """The options that were written, also those with the value that they have anyway."""
    sources = {parameter: context.get_parameter_source(parameter.name or "") for parameter in context.command.params}
    return tuple(
        max(parameter.opts, key=len)
        for parameter, source in sources.items()
        if parameter.param_type_name == "option" and source is not None and source.name != "DEFAULT"
    )


def find_robot(asked: AskedRobot) -> Robot:
    """The robot that a command names, with its payload and under its gravity."""
    from linksweep.robot.loading import load

    for option, value, known in (("--base", asked.base, BASES), ("--mimic", asked.mimic, MIMICS)):
        if value not in known:
            raise ArgumentError(f"{option} is {shown(value)}{nearest(value, known)}, expected {' or '.join(known)}.")
    if asked.root is not None and not Path(asked.root).is_dir():
        raise ArgumentError(f"--root is {shown(asked.root)}, expected a folder that is there: check the spelling.")
    gravity = None if asked.gravity is None else _vector("--gravity", asked.gravity)
    payload = None if asked.payload is None else _payload(asked.payload)
    found = load(asked.name or "", base=asked.base, mimic=asked.mimic, root=asked.root)
    if gravity is not None:
        found = found.with_gravity(gravity)
    if payload is not None:
        mass, com, frame = payload
        said = f"--payload {asked.payload}"
        found = found.with_payload(frame or tool_of(found, said, said + "@{}"), mass, com)
    return found


def tool_of(robot: Robot, payload: str, write: str) -> str:
    """The frame that holds a payload which names none; write: how to name one, in the place of {}."""
    from linksweep.description.tips import tools

    found = tools(robot.model)
    if len(found) == 1:
        return found[0]
    listed = ", ".join(found[:8]) + (", ..." if len(found) > 8 else "")
    ways = " or ".join(write.replace("{}", name) for name in found[:2])
    raise ArgumentError(
        f"{payload} names no frame and {robot.name} has {len(found)} that may be its tool, {listed}: write {ways}."
    )


def _payload(text: str) -> tuple[float, tuple[float, ...], str]:
    numbers, at, frame = text.partition("@")
    mass, comma, com = numbers.partition(",")
    try:
        kilograms = float(mass if not at or frame else "")
    except ValueError:
        raise ArgumentError(
            f"--payload is {shown(text)}, expected MASS, MASS,X,Y,Z or MASS,X,Y,Z@FRAME, such as 2.5@tool: write it so."
        ) from None
    return kilograms, _vector("--payload", com) if comma else (0.0, 0.0, 0.0), frame


def _vector(option: str, text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(word) for word in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != 3:
        raise ArgumentError(f"{option} has {shown(text)}, expected three numbers with commas between them: X,Y,Z.")
    return numbers


def check_apart(output: Path, source: Path, what: str) -> None:
    """Refuse to write over what is read."""
    if output.exists() and source.exists() and output.samefile(source):
        raise ArgumentError(f"The output {output} is {what} itself, expected another file: choose one.")


def print_whole(table: RenderableType) -> None:
    """A table of rich's as wide as its names are: in a narrow pipe it would cut them."""
    from rich.console import Console

    wanted = Console(width=10_000).measure(table).maximum
    console = Console()
    Console(width=max(console.width, wanted)).print(table)


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
