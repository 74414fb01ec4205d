"""`linksweep study`, `count` and `demo`: experiments and operation counts of the papers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linksweep.cli.common import (
    DISAGREEMENT,
    AsJson,
    OutputFolder,
    RobotArguments,
    check_choice,
    command,
    complete_function,
    load_robot,
    matplotlib_installed,
    new_table,
    print_json,
    print_whole,
    print_written,
)
from linksweep.errors import ArgumentError
from linksweep.papers.studies import STUDIES
from linksweep.support.messages import nearest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from linksweep.papers.operation_counts import Compared
    from linksweep.papers.studies.puma560 import RoundTrip
    from linksweep.robot.robot import Robot
    from linksweep.robots.general_arm import GeneralArm


# ---- study and demo --------------------------------------------------------------------------------------------


def _complete_study(incomplete: str) -> list[tuple[str, str]]:
    return [(name, about) for name, about in STUDIES.items() if name.startswith(incomplete)]


@command("Reproduce", "study", "study stanford -o results")
def study(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Name of the study; lists all if omitted.", autocompletion=_complete_study),
    ] = None,
    output: OutputFolder = Path("out"),
    as_json: AsJson = False,
) -> None:
    """Reproduce an experiment of the papers: write a report, tables (.csv) and plots.

    The exit code is 1 if a result differs from the published one.
    """
    from linksweep.papers.studies import run

    if name is None:
        width = max(map(len, STUDIES))
        if as_json:
            print_json(STUDIES)
        else:
            print("\n".join(f"{study:{width}}  {about}" for study, about in STUDIES.items()))
        return
    written = run(name, output)
    if as_json:
        checks = [{"what": c.what, "value": c.value, "wanted": c.wanted, "ok": c.ok} for c in written.checks]
        print_json({"name": name, "ok": written.ok, "checks": checks, "files": list(map(str, written.files))})
    else:
        print(written)
    if not written.ok:
        raise typer.Exit(DISAGREEMENT)


@command("Reproduce", "demo", "demo -o results")
def demo(output: OutputFolder = Path("out")) -> None:
    """Move a PUMA 560: compute torques of a motion, and the accelerations that they cause."""
    from linksweep.papers.studies.puma560 import puma560_round_trip

    trip = puma560_round_trip()
    written = [output / "puma560.csv"]
    trip.write_csv(written[0])
    if matplotlib_installed():
        from linksweep import plots

        title = "PUMA 560: joint torques along a quintic trajectory"
        units = ["N m"] * len(trip.joint_names)
        figure = plots.torque_figure(title, trip.joint_names, units, trip.t, trip.tau)
        written.append(output / "puma560.png")
        plots.save(figure, written[1])
    else:
        print("No plot: Matplotlib is not installed (pip install 'linksweep[plot]').", file=sys.stderr)
    _print_round_trip(trip)
    print_written(*written)


def _print_round_trip(trip: RoundTrip) -> None:
    import numpy as np

    title = f"PUMA 560: {len(trip.t)} samples over {trip.t[-1]:g} s"
    headings = ("joint", "from (°)", "to (°)", "peak torque\n(N m)", "peak qdd\n(rad/s²)", "difference\n(rad/s²)")
    table = new_table(title, headings)
    start, end = np.degrees(trip.motion.q[[0, -1]])
    torque, acceleration = np.abs(trip.tau).max(axis=0), np.abs(trip.motion.qdd).max(axis=0)
    for row in zip(trip.joint_names, start, end, torque, acceleration, trip.difference, strict=True):
        name, first, last, peak_torque, peak_qdd, difference = row
        table.add_row(name, f"{first:.0f}", f"{last:.0f}", f"{peak_torque:.4f}", f"{peak_qdd:.4f}", f"{difference:.1e}")
    print_whole(table)
    print(f"Largest difference between given and recovered accelerations: {trip.difference.max():.1e} rad/s²")


# ---- count -----------------------------------------------------------------------------------------------------

MAIN = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "mass_matrix_inverse")
EXPLICIT = "explicit_model"  # I* and P* in one program
TWISTS = ("any", "right")


@command("Reproduce", "count puma560 --function inverse_dynamics", "count --general --fit --method kane")
def count(
    robot: RobotArguments = RobotArguments(None),  # noqa: B008  (frozen)
    function: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help=f"Function, or {EXPLICIT} for I* and P*; may be repeated.",
            autocompletion=complete_function,
        ),
    ] = None,
    method: Annotated[str, typer.Option(metavar="NAME", help="One method, or all.")] = "all",
    frame: Annotated[str | None, typer.Option(metavar="FRAME", help="Frame of pose, jacobian and the like.")] = None,
    base_parameters: Annotated[
        bool | None,
        typer.Option("--base-parameters/--no-base-parameters", help="Use base (regrouped) inertias; default: both."),
    ] = None,
    general: Annotated[
        bool, typer.Option("--general", help="Count for arms whose geometry and inertias are symbols.")
    ] = False,
    joints: Annotated[
        str | None, typer.Option(metavar="LETTERS", help="Joints of --general, R and P; repeated with --fit.")
    ] = None,
    twist: Annotated[str | None, typer.Option(metavar="NAME", help="Twists of --general: any, or right (90°).")] = None,
    fit: Annotated[
        bool, typer.Option("--fit", help="With --general: print polynomials in n, fitted to n = 3 to 12.")
    ] = False,
    tables: Annotated[bool, typer.Option("--tables", help="Print the papers' tables beside our counts.")] = False,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Count multiplications and additions of a robot function.

    Sines, negations and operations on constants are not counted.
    """
    selection = {"--function": function, "--frame": frame, "--base-parameters": base_parameters}
    selection["--method"] = None if method == "all" else method
    _check_options(robot, general, tables, {"--joints": joints, "--twist": twist, "--fit": fit}, selection)
    if twist is not None:
        check_choice("--twist", twist, TWISTS)
    names = tuple(function or ())
    if tables:
        from linksweep.papers.operation_counts import tables as make_tables

        counted = make_tables()
    elif fit:
        counted = [_fits(names, method, frame, base_parameters, "R" if joints is None else joints, twist or "any")]
    elif general:
        from linksweep.robots.general_arm import GeneralArm

        arm = GeneralArm("RRRRRR" if joints is None else joints, twist or "any")
        title = f"general arm, joints {arm.joints}, twists {twist or 'any'}"
        counted = [_counts(arm, title, names, method, frame, base_parameters)]
    else:
        arm = load_robot(robot)
        title = " ".join([arm.name, *robot.changes])  # published counts are those of the unchanged robot
        counted = [_counts(arm, title, names, method, frame, base_parameters)]
    if as_json:
        print_json([table.as_dict() for table in counted])
    else:
        print("\n\n".join(str(table) for table in counted))


def _check_options(
    robot: RobotArguments, general: bool, tables: bool, of_general: dict[str, object], selection: dict[str, object]
) -> None:
    subjects = ((robot.name, robot.name), ("--general", general), ("--tables", tables))
    chosen = [str(word) for word, is_chosen in subjects if is_chosen]
    if len(chosen) != 1:
        got = " and ".join(chosen) or "none of them"
        raise ArgumentError(f"linksweep count got {got}, expected one of a robot, --general or --tables.")
    for option, value in of_general.items():
        if value not in (None, False) and not general:
            raise ArgumentError(f"{option} goes with --general, got {chosen[0]}: add --general or leave {option} out.")
    for option, value in selection.items():
        if value is not None and tables:
            raise ArgumentError(f"--tables prints every table, got {option} too: leave {option} out.")
    if robot.name is None and robot.changes:
        raise ArgumentError(f"{robot.changes[0]} goes with a robot, got none: name one, or leave it out.")


def _request(name: str, frame: str | None) -> str | tuple[str, ...] | list[str]:
    from linksweep.functions.functions import FUNCTIONS

    if name == EXPLICIT and frame is not None:
        raise ArgumentError(f"{EXPLICIT} takes no frame, got {frame!r}: leave --frame out.")
    if name == EXPLICIT:
        return ["effective_inertia", "inertia_power"]
    if frame is None and FUNCTIONS[name].needs_frame:
        raise ArgumentError(f"{name} needs --frame (`linksweep info` lists the frames).")
    return name if frame is None else (name, frame)


def _methods(arm: Robot | GeneralArm, name: str, method: str) -> list[str | None]:
    """The methods to count."""
    from linksweep.functions.items import ALIASES

    known = arm.methods("inertia_power" if name == EXPLICIT else name)
    if method == "all":
        return list(known) or [None]
    method = ALIASES.get(method, method)
    if method not in known:
        names = ", ".join(known) or "no method by name"
        raise ArgumentError(f"{name} has no method {method!r}{nearest(method, known)}: expected {names}, or all.")
    return [method]


def _functions_with(arm: Robot | GeneralArm, names: tuple[str, ...], method: str) -> tuple[str, ...]:
    """The functions counted by default that have the method."""
    from linksweep.functions.items import ALIASES

    methods = {name: _methods(arm, name, "all") for name in names}
    selected = tuple(n for n in names if method == "all" or ALIASES.get(method, method) in methods[n])
    if not selected:
        known = list(dict.fromkeys(str(other) for name in names for other in methods[name]))
        raise ArgumentError(
            f"there is no method {method!r}{nearest(method, known)}: expected one of {', '.join(known)}, or all."
        )
    return selected


def _choices(name: str, method: str | None, base_parameters: bool | None) -> list[bool]:
    """Without and with base parameters, if the method can use them."""
    from linksweep.functions.functions import FUNCTIONS

    known = FUNCTIONS["inertia_power" if name == EXPLICIT else name].methods.get(method or "")
    usable = known is not None and known.linear
    if base_parameters is None:
        return [False, True] if usable else [False]
    return [base_parameters] if usable or not base_parameters else []


def _counts(
    arm: Robot | GeneralArm,
    title: str,
    names: tuple[str, ...],
    method: str,
    frame: str | None,
    base_parameters: bool | None,
) -> Compared:
    from linksweep.papers.operation_counts import Cell, Compared
    from linksweep.papers.published_counts import ROBOTS

    rows: list[tuple[Cell, ...]] = []
    names = names or _functions_with(arm, MAIN, method)
    for name in names:
        for chosen in _methods(arm, name, method):
            for base in _choices(name, chosen, base_parameters):
                c = arm.operation_count(_request(name, frame), chosen, base)
                rows.append((name, chosen or "", "yes" if base else "no", c.mul, c.add, c.div, c.sqrt, c.trig))
    _check_rows(rows, names)
    if "inverse_dynamics" in names:
        rows += [("published", text, "", mul, add, "", "", "") for text, mul, add in ROBOTS.get(title, ())]
    columns = ("function", "method", "base parameters", "mul", "add", "div", "sqrt", "angles")
    return Compared(title, "operations for one sample", columns, tuple(rows))


def _fits(
    names: tuple[str, ...], method: str, frame: str | None, base_parameters: bool | None, joints: str, twist: str
) -> Compared:
    from linksweep.papers.operation_counts import SIX, Cell, Compared, general_arm, general_fit, published_for

    rows: list[tuple[Cell, ...]] = []
    arm = general_arm(SIX, joints, twist)
    names = names or _functions_with(arm, (*MAIN[:3], EXPLICIT), method)
    for name in names:
        for chosen in _methods(arm, name, method):
            for base in _choices(name, chosen, base_parameters):
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
