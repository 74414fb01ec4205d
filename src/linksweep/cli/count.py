"""`linksweep count`: operations of a robot's functions, of general arms, and the papers' tables beside ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from linksweep.cli.common import AsJson, AskedRobot, complete_function, find_robot, names_a_robot
from linksweep.errors import ArgumentError
from linksweep.support.messages import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linksweep.counts.count_tables import Compared
    from linksweep.robot.robot import Robot
    from linksweep.robots.general_arm import GeneralArm

MAIN = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "mass_matrix_inverse")
EXPLICIT = "explicit_model"  # I* and P* in one program
TWISTS = ("any", "right")


@names_a_robot
def count(
    robot: AskedRobot = AskedRobot(None),  # noqa: B008  (frozen)
    function: Annotated[
        list[str] | None,
        typer.Option(
            help=f"A function, or {EXPLICIT} for I* and P*; may be repeated.", autocompletion=complete_function
        ),
    ] = None,
    method: Annotated[str, typer.Option(help="One method, or all.")] = "all",
    frame: Annotated[str | None, typer.Option(help="Of functions such as pose and jacobian.")] = None,
    base_parameters: Annotated[
        bool | None, typer.Option("--base-parameters/--no-base-parameters", help="With regrouped inertias; else both.")
    ] = None,
    general: Annotated[bool, typer.Option("--general", help="Count arms whose numbers are parameters.")] = False,
    joints: Annotated[str | None, typer.Option(help="Of --general: R and P; repeated with --fit.")] = None,
    twist: Annotated[str | None, typer.Option(help="Of --general: any, or right (90 degrees).")] = None,
    fit: Annotated[bool, typer.Option("--fit", help="Of --general: polynomials in n, from n = 3 to 12.")] = False,
    tables: Annotated[bool, typer.Option("--tables", help="The papers' tables beside ours.")] = False,
    as_json: AsJson = False,
) -> None:
    """Count multiplications and additions; sines, negations and work among constants are free."""
    asked = {"--function": function, "--frame": frame, "--base-parameters": base_parameters}
    asked["--method"] = None if method == "all" else method
    _check_choice(robot.name, general, tables, {"--joints": joints, "--twist": twist, "--fit": fit}, asked)
    if robot.name is None and robot.changes:
        raise ArgumentError(f"{robot.changes[0]} goes with a robot, got none: name one, or leave it out.")
    if twist is not None and twist not in TWISTS:
        raise ArgumentError(f"--twist is {twist!r}, expected any or right.")
    names = tuple(function or ())
    if tables:
        from linksweep.counts.count_tables import tables as make_tables

        found = make_tables()
    elif fit:
        found = [_fits(names, method, frame, base_parameters, "R" if joints is None else joints, twist or "any")]
    elif general:
        from linksweep.robots.general_arm import GeneralArm

        arm = GeneralArm("RRRRRR" if joints is None else joints, twist or "any")
        title = f"general arm, joints {arm.joints}, twists {twist or 'any'}"
        found = [_counts(arm, title, names, method, frame, base_parameters)]
    else:
        arm = find_robot(robot)
        title = " ".join([arm.name, *robot.changes])  # published counts are of the robot as it is
        found = [_counts(arm, title, names, method, frame, base_parameters)]
    if as_json:
        print(json.dumps([table.as_dict() for table in found], indent=2))
    else:
        print("\n\n".join(str(table) for table in found))


def _check_choice(
    robot: str | None, general: bool, tables: bool, of_general: dict[str, object], of_functions: dict[str, object]
) -> None:
    chosen = [word for word, given in ((robot, robot), ("--general", general), ("--tables", tables)) if given]
    if len(chosen) != 1:
        got = " and ".join(str(word) for word in chosen) or "none of them"
        raise ArgumentError(f"linksweep count got {got}, expected one of a robot, --general or --tables.")
    for option, value in of_general.items():
        if value not in (None, False) and not general:
            raise ArgumentError(f"{option} goes with --general, got {chosen[0]}: add --general or leave {option} out.")
    for option, value in of_functions.items():
        if value is not None and tables:
            raise ArgumentError(f"--tables prints every table, got {option} too: leave {option} out.")


def _request(name: str, frame: str | None) -> str | tuple[str, ...] | list[str]:
    from linksweep.catalogue.functions import FUNCTIONS

    if name == EXPLICIT and frame is not None:
        raise ArgumentError(f"{EXPLICIT} takes no frame, got {frame!r}: leave --frame out.")
    if name == EXPLICIT:
        return ["effective_inertia", "inertia_power"]
    if frame is None and FUNCTIONS[name].needs_frame:
        raise ArgumentError(f"{name} is of a frame, got none: add --frame with its name (`linksweep info` lists them).")
    return name if frame is None else (name, frame)


def _methods(arm: Robot | GeneralArm, name: str, method: str) -> list[str | None]:
    """The methods to count."""
    able = arm.methods("inertia_power" if name == EXPLICIT else name)
    if method == "all":
        return list(able) or [None]
    if method not in able:
        names = ", ".join(able) or "no method by name"
        raise ArgumentError(f"{name} has no method {method!r}{nearest(method, able)}: expected {names}, or all.")
    return [method]


def _having(arm: Robot | GeneralArm, names: tuple[str, ...], method: str) -> tuple[str, ...]:
    """Of the functions that are counted by default, those that have the method."""
    found = tuple(name for name in names if method == "all" or method in _methods(arm, name, "all"))
    if not found:
        known = list(dict.fromkeys(str(other) for name in names for other in _methods(arm, name, "all")))
        raise ArgumentError(
            f"there is no method {method!r}{nearest(method, known)}: expected one of {', '.join(known)}, or all."
        )
    return found


def _choices(name: str, method: str | None, wanted: bool | None) -> list[bool]:
    """Without and with base parameters, where they can be used."""
    from linksweep.catalogue.functions import FUNCTIONS

    known = FUNCTIONS["inertia_power" if name == EXPLICIT else name].methods.get(method or "")
    able = known is not None and known.linear
    if wanted is None:
        return [False, True] if able else [False]
    return [wanted] if able or not wanted else []


def _counts(
    arm: Robot | GeneralArm, title: str, names: tuple[str, ...], method: str, frame: str | None, wanted: bool | None
) -> Compared:
    from linksweep.counts.count_tables import Cell, Compared
    from linksweep.counts.published_counts import ROBOTS

    rows: list[tuple[Cell, ...]] = []
    names = names or _having(arm, MAIN, method)
    for name in names:
        for chosen in _methods(arm, name, method):
            for base in _choices(name, chosen, wanted):
                c = arm.operation_count(_request(name, frame), chosen, base)
                rows.append((name, chosen or "", "yes" if base else "no", c.mul, c.add, c.div, c.sqrt, c.trig))
    _check_rows(rows, names)
    if "inverse_dynamics" in names:
        rows += [("published", text, "", mul, add, "", "", "") for text, mul, add in ROBOTS.get(title, ())]
    columns = ("function", "method", "base parameters", "mul", "add", "div", "sqrt", "angles")
    return Compared(title, "operations for one sample", columns, tuple(rows))


def _fits(
    names: tuple[str, ...], method: str, frame: str | None, wanted: bool | None, joints: str, twist: str
) -> Compared:
    from linksweep.counts.count_tables import SIX, Cell, Compared, published_for
    from linksweep.counts.counting import general_arm, general_fit

    rows: list[tuple[Cell, ...]] = []
    arm = general_arm(SIX, joints, twist)
    names = names or _having(arm, (*MAIN[:3], EXPLICIT), method)
    for name in names:
        for chosen in _methods(arm, name, method):
            for base in _choices(name, chosen, wanted):
                fitted = general_fit(_request(name, frame), chosen, base, joints, twist)
                six = fitted.points[SIX]
                theirs = published_for(name, chosen, base, twist) if set(joints.upper()) == {"R"} else ""
                label = f"{chosen or ''}{', base parameters' if base else ''}"
                rows.append((name, label, str(fitted), f"{six.mul} / {six.add}", theirs))
    _check_rows(rows, names)
    columns = ("function", "method", "mul / add", "n = 6", "published")
    return Compared(f"general arms, joints {joints.upper()}..., twists {twist}", "n = 3 to 12", columns, tuple(rows))


def _check_rows(rows: Sequence[object], names: tuple[str, ...]) -> None:
    if not rows:
        raise ArgumentError(f"{', '.join(names)} cannot use base parameters: leave --base-parameters out.")
