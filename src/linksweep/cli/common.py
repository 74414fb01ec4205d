"""Shared parts of the commands: the application, common options, robots from arguments, tables and messages."""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import OptionInfo

from linksweep import robots
from linksweep.errors import ArgumentError, BackendError
from linksweep.support.messages import nearest, shown

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from linksweep.robot.robot import Robot

BAD_INPUT = 2  # exit code for anything that the user can correct
DISAGREEMENT = 1  # exit code for results that differ, or a robot model that is not physically realisable
RENAMED_OPTIONS = {"out": "output"}


class _Command(TyperCommand):
    """A command whose flags are listed without a type."""

    def get_params(self, ctx: typer.Context) -> list:  # type: ignore[override]
        return _without_flag_types(super().get_params(ctx))


class _Group(TyperGroup):
    """The same for the options of `linksweep` itself."""

    def get_params(self, ctx: typer.Context) -> list:  # type: ignore[override]
        return _without_flag_types(super().get_params(ctx))


def _without_flag_types(parameters: list) -> list:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False) and parameter.metavar is None:
            parameter.metavar = ""  # typer would print <bool>
    return parameters


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": lambda word: RENAMED_OPTIONS.get(word, word),
    },
)


def command(panel: str, *examples: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function as the command of its name, listed in `panel`, with examples at the end of its help.

    A parameter `robot: RobotArguments` becomes the argument ROBOT and the options that change the robot.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        if "robot" in inspect.signature(function).parameters:
            function = _with_robot_options(function)
        paragraphs = inspect.cleandoc(function.__doc__ or "").split("\n\n")
        about = "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)
        epilog = "\n".join(["Examples:", *(f"  linksweep {example}" for example in examples)]).replace("[", "\\[")
        options = {"cls": _Command, "rich_help_panel": panel, "help": about, "epilog": epilog}
        return app.command(function.__name__, **options)(function)

    return register


# ---- completion ------------------------------------------------------------------------------------------------


def complete_from(names: Iterable[str]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    return complete


def complete_robot(incomplete: str) -> list[str]:
    folder, _, start = incomplete.rpartition("/")
    files = sorted(Path(folder or ".").glob(f"{escape(start)}*")) if not folder or Path(folder).is_dir() else []
    endings = (".urdf", ".xacro", ".xml", ".toml")
    beside = [f"{path}/" if path.is_dir() else str(path) for path in files if path.is_dir() or path.suffix in endings]
    return complete_from(robots.names())(incomplete) + beside


def complete_function(incomplete: str) -> list[str]:
    from linksweep.functions.items import PUBLIC

    return complete_from(PUBLIC)(incomplete)


# ---- common options --------------------------------------------------------------------------------------------

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
OutputFile = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the result as .csv, .npz or .parquet.")
]
OutputFolder = Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the written files.")]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Plot the result as .png, .svg or .pdf.")]
Dissipation = Annotated[bool, typer.Option("--dissipation", help="Include joint damping and friction.")]
Spline = Annotated[bool, typer.Option("--spline", help="Compute qd (and qdd) from q by a quintic spline.")]
Topic = Annotated[
    list[str] | None, typer.Option("--topic", metavar="TOPIC", help="JointState topic of a ROS bag; may be repeated.")
]


def choice_option(about: str, choices: Sequence[str]) -> OptionInfo:
    """An option with one of a few values; check it with `check_choice`."""
    text = f"{about}: {', '.join(choices[:-1])} or {choices[-1]}."
    return typer.Option(metavar="NAME", help=text, autocompletion=complete_from(choices))


def method_option(function: str | None = None) -> OptionInfo:
    """`--method`, completed with the methods of this function."""

    def complete(incomplete: str) -> list[str]:
        from linksweep.functions.functions import FUNCTIONS
        from linksweep.functions.items import ALIASES

        methods = FUNCTIONS[function].methods if function else {}
        return complete_from([*methods, *(alias for alias, full in ALIASES.items() if full in methods)])(incomplete)

    text = "Algorithm, such as rnea, aba or crba; `linksweep info` lists them, the default first."
    return typer.Option(metavar="NAME", help=text, autocompletion=complete)


# ---- the robot -------------------------------------------------------------------------------------------------

BASES, MIMICS = ("fixed", "floating"), ("free", "couple")


def _robot_option(metavar: str, about: str, choices: Sequence[str] = ()) -> OptionInfo:
    complete = complete_from(choices) if choices else None
    return typer.Option(metavar=metavar, help=about, autocompletion=complete, rich_help_panel="Robot")


_ROBOT_OPTIONS: dict[str, tuple[object, str | None]] = {
    "base": (
        Annotated[str | None, _robot_option("BASE", "fixed (default, unless --srdf differs) or floating.", BASES)],
        None,
    ),
    "mimic": (
        Annotated[str, _robot_option("HOW", "Mimic joints: free (ignore the coupling) or couple.", MIMICS)],
        "free",
    ),
    "payload": (
        Annotated[
            str | None,
            _robot_option("MASS[,X,Y,Z][@FRAME]", "Payload: mass in kg, center of mass in m; default frame: the tool."),
        ],
        None,
    ),
    "gravity": (
        Annotated[str | None, _robot_option("X,Y,Z", "Gravity in the base frame, m/s²; default: that of the file.")],
        None,
    ),
    "srdf": (
        Annotated[str | None, _robot_option("FILE", "SRDF file: groups, states, passive joints, end effector.")],
        None,
    ),
    "root": (
        Annotated[str | None, _robot_option("FOLDER", "Folder that contains all files of an MJCF or xacro model.")],
        None,
    ),
    "packages": (
        Annotated[list[str] | None, _robot_option("FOLDER", "Folder with ROS packages; may be repeated.")],
        None,
    ),
    "xacro": (
        Annotated[list[str] | None, _robot_option("NAME:=VALUE", "Argument of a xacro file; may be repeated.")],
        None,
    ),
}


@dataclass(frozen=True)
class RobotArguments:
    """The argument ROBOT and the options that change the robot, as they were typed."""

    name: str | None
    base: str | None = None
    mimic: str = "free"
    payload: str | None = None
    gravity: str | None = None
    srdf: str | None = None
    root: str | None = None
    packages: Sequence[str] | None = None
    xacro: Sequence[str] | None = None
    typed_options: tuple[str, ...] = ()  # every option on the command line, also those of the command itself

    @property
    def changes(self) -> list[str]:
        """The options that make the robot differ from its file."""
        return [f"--{option}" for option, (_, default) in _ROBOT_OPTIONS.items() if getattr(self, option) != default]


def _with_robot_options(function: Callable[..., None]) -> Callable[..., None]:
    """Replace the parameter `robot: RobotArguments` by what typer reads from the command line."""
    signature = inspect.signature(function, eval_str=True)
    parameters = dict(signature.parameters)
    required = parameters["robot"].default is inspect.Parameter.empty
    about = f"Robot model (.urdf, .xacro, .xml, .toml), - for standard input, or one of {', '.join(robots.names())}."
    argument = typer.Argument(metavar="ROBOT", help=about, autocompletion=complete_robot)
    parameters["robot"] = parameters["robot"].replace(
        annotation=Annotated[str if required else str | None, argument],
        default=inspect.Parameter.empty if required else None,
    )
    for name, (annotation, default) in _ROBOT_OPTIONS.items():
        parameters[name] = inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
        )
    parameters["context"] = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)

    @functools.wraps(function)
    def run(*, context: typer.Context, robot: str | None = None, **options: object) -> None:
        changes = {name: options.pop(name) for name in _ROBOT_OPTIONS}
        for name in ("packages", "xacro"):
            changes[name] = changes[name] or None  # typer may pass an empty list
        arguments = RobotArguments(robot, **changes, typed_options=_typed_options(context))  # type: ignore[arg-type]
        function(robot=arguments, **options)

    run.__dict__["__signature__"] = signature.replace(parameters=list(parameters.values()))
    run.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
    return run


def _typed_options(context: typer.Context) -> tuple[str, ...]:
    """The options on the command line, also those with their default value."""
    sources = {parameter: context.get_parameter_source(parameter.name or "") for parameter in context.command.params}
    return tuple(
        max(parameter.opts, key=len)
        for parameter, source in sources.items()
        if parameter.param_type_name == "option" and source is not None and source.name != "DEFAULT"
    )


def load_robot(arguments: RobotArguments) -> Robot:
    """Load the robot that a command names, with its payload and gravity."""
    from linksweep.robot.loading import load

    if arguments.base is not None:
        check_choice("--base", arguments.base, BASES)
    check_choice("--mimic", arguments.mimic, MIMICS)
    if arguments.root is not None and not Path(arguments.root).is_dir():
        raise ArgumentError(f"--root is {shown(arguments.root)}, expected an existing folder.")
    gravity = None if arguments.gravity is None else _vector("--gravity", arguments.gravity)
    payload = None if arguments.payload is None else _payload(arguments.payload)
    source = sys.stdin.buffer if arguments.name == "-" else arguments.name or ""
    xacro_args = _xacro_args(arguments.xacro or ())
    options = {"base": arguments.base, "mimic": arguments.mimic, "srdf": arguments.srdf, "root": arguments.root}
    robot = load(source, **options, xacro_args=xacro_args, packages=list(arguments.packages or ()))
    if gravity is not None:
        robot = robot.with_gravity(gravity)
    if payload is not None:
        mass, com, frame = payload
        option = f"--payload {arguments.payload}"
        robot = robot.with_payload(frame or tool_frame(robot, option, option + "@{}"), mass, com)
    return robot


def _xacro_args(texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition(":=") for text in texts]
    for text, (name, separator, _) in zip(texts, pairs, strict=True):
        if not name or not separator:
            raise ArgumentError(f"--xacro is {shown(text)}, expected NAME:=VALUE.")
    return {name: value for name, _, value in pairs}


def tool_frame(robot: Robot, payload: str, example: str) -> str:
    """The frame of a payload that names none; `example` shows how to name one, in the place of {}."""
    from linksweep.model.model import tools

    frames = tools(robot.model)
    if len(frames) == 1:
        return frames[0]
    listed = ", ".join(frames[:8]) + (", ..." if len(frames) > 8 else "")
    examples = " or ".join(example.replace("{}", name) for name in frames[:2])
    raise ArgumentError(
        f"{payload} names no frame and {robot.name} has {len(frames)} that may be its tool, {listed}: write {examples}."
    )


def _payload(text: str) -> tuple[float, tuple[float, ...], str]:
    numbers, at, frame = text.partition("@")
    mass, comma, com = numbers.partition(",")
    try:
        kilograms = float(mass if not at or frame else "")
    except ValueError:
        raise ArgumentError(
            f"--payload is {shown(text)}, expected MASS, MASS,X,Y,Z or MASS,X,Y,Z@FRAME, such as 2.5@tool."
        ) from None
    return kilograms, _vector("--payload", com) if comma else (0.0, 0.0, 0.0), frame


def _vector(option: str, text: str) -> tuple[float, ...]:
    try:
        numbers = tuple(float(word) for word in text.split(","))
    except ValueError:
        numbers = ()
    if len(numbers) != 3:
        raise ArgumentError(f"{option} has {shown(text)}, expected three numbers separated by commas: X,Y,Z.")
    return numbers


# ---- checks ----------------------------------------------------------------------------------------------------


def check_choice(option: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        expected = " or ".join(choices) if len(choices) == 2 else f"one of {', '.join(choices)}"
        raise ArgumentError(f"{option} is {shown(value)}{nearest(value, choices)}, expected {expected}.")


def check_apart(output: Path, source: Path, what: str) -> None:
    """Raise an error if the output would replace a file that is read."""
    if output.exists() and source.exists() and output.samefile(source):
        raise ArgumentError(f"The output {output} is {what} itself, expected another file.")


def matplotlib_installed() -> bool:
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def check_plot(path: Path) -> None:
    """Raise an error for a plot that cannot be written, before anything is computed."""
    from linksweep.files import check_place

    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ArgumentError(f"The plot {path} ends in {path.suffix!r}, expected .png, .svg or .pdf.")
    if not matplotlib_installed():
        raise BackendError("Plotting needs Matplotlib, which is not installed: run pip install 'linksweep[plot]'.")
    check_place(path)


def check_outputs(output: Path | None, plot: Path | None, trajectory: bool = False) -> None:
    """Check --output (also .yaml for a trajectory) and --plot, before anything is computed."""
    from linksweep.files.writing import ENDINGS, TRAJECTORY_ENDINGS, check_output

    if output is not None:
        check_output(output, TRAJECTORY_ENDINGS if trajectory else ENDINGS)
    if plot is not None:
        check_plot(plot)


# ---- printing --------------------------------------------------------------------------------------------------


def print_json(facts: object) -> None:
    print(json.dumps(facts, indent=2, allow_nan=False))


def print_written(*paths: Path | None, about: str = "") -> None:
    """Name the files that a command wrote; None is skipped."""
    names = [str(path) for path in paths if path is not None]
    if names:
        print("wrote", " ".join(names) + about)


def new_table(title: str, headings: Sequence[str], left: int = 1) -> Table:
    """A table with its first `left` columns aligned left and the others right."""
    from rich import box
    from rich.table import Table
    from rich.text import Text  # names from files may contain "[", which is not markup

    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD)
    for index, heading in enumerate(headings):
        table.add_column(Text(heading), justify="left" if index < left else "right")
    return table


def print_whole(table: RenderableType) -> None:
    """Print a table as wide as its names need, also into a narrow pipe."""
    from rich.console import Console

    width = Console(width=10_000).measure(table).maximum
    Console(width=max(Console().width, width)).print(table)
