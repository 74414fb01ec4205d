"""`linksweep export`: a function of a robot as C files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linksweep.cli.common import AskedRobot, complete_function, find_robot, names_a_robot
from linksweep.cli.experiment import is_experiment, read_experiment
from linksweep.errors import ArgumentError
from linksweep.support.messages import nearest

if TYPE_CHECKING:
    from linksweep.robot.options import Flags

LANGUAGES = ("c", "casadi")
OF_LAW = ("--law", "--output", "--name", "--dtype")


@names_a_robot
def export(
    robot: AskedRobot,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The .c file; the header goes beside it.")
    ],
    function: Annotated[
        str | None,
        typer.Argument(
            help="What to compute: inverse_dynamics, mass_matrix, jacobian ...", autocompletion=complete_function
        ),
    ] = None,
    law: Annotated[bool, typer.Option("--law", help="Of an experiment (.toml) in ROBOT's place: its law.")] = False,
    language: Annotated[str, typer.Option(help="c, or casadi: C that casadi.external loads, with derivatives.")] = "c",
    method: Annotated[str | None, typer.Option(help="By which method; `linksweep info` lists them.")] = None,
    dtype: Annotated[str, typer.Option(help="double or float.")] = "double",
    frame: Annotated[str | None, typer.Option(help="Of which frame, for pose and jacobian.")] = None,
    name: Annotated[str | None, typer.Option(help="The function's name in C.")] = None,
    f_ext: Annotated[bool, typer.Option("--f-ext", help="Take external forces as a further input.")] = False,
    dissipation: Annotated[bool, typer.Option("--dissipation", help="With damping and friction.")] = False,
    base_motion: Annotated[bool, typer.Option("--base-motion", help="Take the base's motion as an input.")] = False,
    parameter: Annotated[
        list[str] | None, typer.Option(help="A number of the robot to take as an input: payload, gravity ...")
    ] = None,
) -> None:
    """Write a function as self-contained C99 that needs nothing but math.h: a .c and a .h file, or for CasADi a .c."""
    from linksweep.catalogue.functions import FUNCTIONS
    from linksweep.compiled.c_export import export_c
    from linksweep.compiled.casadi_export import export_casadi

    if law or (function is None and is_experiment(robot.name)):
        _export_law(robot, function, output, name, dtype)
        return
    if function is None:
        raise ArgumentError(
            "nothing is said of what to export, expected a function such as inverse_dynamics: linksweep export "
            f"{robot.name} inverse_dynamics -o FILE.c; or --law with an experiment."
        )
    if robot.name in FUNCTIONS and function not in FUNCTIONS:
        raise ArgumentError(
            f"The robot is {robot.name!r} and the function {function!r}, expected them the other way round: linksweep "
            f"export {function} {robot.name}."
        )
    if language not in LANGUAGES:
        raise ArgumentError(f"the language is {language!r}{nearest(language, LANGUAGES)}, expected c or casadi.")
    if frame is None and function in FUNCTIONS and FUNCTIONS[function].needs_frame:
        raise ArgumentError(
            f"{function} is of a frame, got none: add --frame with its name (`linksweep info` lists them)."
        )
    found = find_robot(robot)
    options: Flags = {"f_ext": f_ext, "dissipation": dissipation, "base_motion": base_motion}
    item = function if frame is None else (function, frame)
    # the interpreter, because nothing is called here that would have to be compiled
    compiled = found.compile(item, method=method, backend="interpreter", parameters=tuple(parameter or ()), **options)
    for option, wanted in options.items():
        if wanted and not getattr(compiled.recipe.requests[0], option):
            raise ArgumentError(f"{function} takes no {option}: leave out --{option.replace('_', '-')}.")
    replaced = output.exists() or (language == "c" and output.with_suffix(".h").exists())
    if language == "casadi":
        if dtype != "double":
            raise ArgumentError(f"the dtype is {dtype!r}, expected double, as CasADi has: leave --dtype out.")
        written: tuple[Path, ...] = (export_casadi(compiled, output, name=name, robot=found),)
    else:
        written = export_c(compiled, output, name=name, dtype=dtype, robot=found)
    print("Replaced:" if replaced else "Written:", *written)


def _export_law(robot: AskedRobot, function: str | None, output: Path, name: str | None, dtype: str) -> None:
    """The law of an experiment, for the robot that it drives."""
    file = robot.name
    if function is not None or not is_experiment(file):
        raise ArgumentError(
            f"--law got {file!r}, expected an experiment alone, a .toml that says robot and law: linksweep export "
            f"experiment.toml --law -o law.c."
        )
    beside = [option for option in robot.given if option not in OF_LAW]
    if beside:
        raise ArgumentError(
            f"{file} is an experiment, whose law takes {', '.join(OF_LAW[1:])} alone, got {', '.join(beside)}: leave "
            f"that out."
        )
    experiment = read_experiment(Path(str(file)))
    if experiment.law is None:
        raise ArgumentError(f"{file} has no [[law]], expected one to export: add it.")
    replaced = output.exists() or output.with_suffix(".h").exists()
    written = experiment.law.to_c(
        output, experiment.robot, name=name, dtype=dtype, dissipation=bool(experiment.options.get("dissipation"))
    )
    print("Replaced:" if replaced else "Written:", *written)
