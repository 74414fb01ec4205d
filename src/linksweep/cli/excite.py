"""`linksweep excite`: a motion that determines a robot's parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from linksweep.cli.common import AsJson, AskedRobot, OutputFile, check_plot, complete_from, find_robot, names_a_robot
from linksweep.errors import ArgumentError

KINDS, CRITERIA = ("fourier", "spline"), ("condition", "determinant")


@names_a_robot
def excite(
    robot: AskedRobot,
    output: OutputFile = None,
    duration: Annotated[float, typer.Option(metavar="SECONDS", help="Duration of the motion.")] = 10.0,
    rate: Annotated[float, typer.Option(metavar="HZ", help="Rows per second that are written.")] = 100.0,
    kind: Annotated[
        str, typer.Option(metavar="KIND", help="fourier, or spline.", autocompletion=complete_from(KINDS))
    ] = "fourier",
    harmonics: Annotated[int, typer.Option(help="Number of harmonics of the base frequency.")] = 5,
    criterion: Annotated[
        str, typer.Option(metavar="NAME", help="condition, or determinant.", autocompletion=complete_from(CRITERIA))
    ] = "condition",
    acceleration: Annotated[
        float | None,
        typer.Option(metavar="LIMIT", help="Limit of every joint; default: 4 times its velocity limit per second."),
    ] = None,
    box: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FRAME=X,Y,Z:X,Y,Z", help="Box that a frame stays in: corners in the base frame, lower first."
        ),
    ] = None,
    floor: Annotated[
        float, typer.Option(metavar="METRES", help="Height that all moving frames stay above, in the base frame.")
    ] = 0.05,
    no_floor: Annotated[bool, typer.Option("--no-floor", help="Allow any height.")] = False,
    keep_out: Annotated[
        list[str] | None,
        typer.Option(
            metavar="X,Y,Z:X,Y,Z", help="Box that no moving frame enters; default: one around the robot's base."
        ),
    ] = None,
    no_keep_out: Annotated[bool, typer.Option("--no-keep-out", help="Allow motion through the base.")] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same motion.")] = 0,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Plot the motion as .png, .svg or .pdf.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find a motion within limits that determines a robot's inertias best, as a CSV file (-o).

    Self-collision is not checked.
    """
    from linksweep.identification import excite as excited
    from linksweep.tables import check_output

    if output is not None:
        check_output(output)
    if plot is not None:
        check_plot(plot)
    arm = find_robot(robot)
    found = excited(
        arm, duration, kind=kind, harmonics=harmonics, criterion=criterion, acceleration=acceleration,
        boxes=_boxes(box), seed=seed, floor=None if no_floor else floor,
        keep_out=() if no_keep_out else _corners("--keep-out", keep_out) if keep_out else None,
    )  # fmt: skip
    if output is not None:
        found.to_csv(output, rate)
    if plot is not None:
        from linksweep import plots

        t, q, *_ = found.samples(rate)
        plots.save(plots.time_series(arm, t, q, "q", title=f"{arm.name}: an exciting motion"), plot)
    facts = {
        "robot": arm.name, "duration": found.duration, "criterion": criterion, "condition": found.condition,
        "start": found.start, "used": found.used, "lowest": found.lowest, "self_collision": "not checked",
        "output": None if output is None else str(output),
        "plot": None if plot is None else str(plot),
    }  # fmt: skip
    if as_json:
        print(json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False))
        return
    print(
        f"{arm.name}: {found.duration:g} s, condition number {found.condition:.4g} (best random motion "
        f"{found.start:.4g}), up to {100 * found.used:.0f} % of limits, lowest point {found.lowest:.3g} m"
    )
    print("Links are points here: self-collision is not checked. Watch the motion (linksweep view) before you run it.")
    for path in (output, plot):
        if path is not None:
            print(f"Written: {path}")


def _boxes(words: list[str] | None) -> dict[str, tuple[tuple[float, ...], ...]]:
    found = {}
    for word in words or []:
        frame, equals, corners = word.partition("=")
        pair = _pair(corners)
        if not equals or not frame or pair is None:
            raise ArgumentError(f"--box is {word!r}, expected FRAME=X,Y,Z:X,Y,Z, such as tool=-1,-1,0.1:1,1,1.5.")
        found[frame] = pair
    return found


def _corners(option: str, words: list[str]) -> list[tuple[tuple[float, ...], ...]]:
    found = []
    for word in words:
        pair = _pair(word)
        if pair is None:
            raise ArgumentError(f"{option} is {word!r}, expected X,Y,Z:X,Y,Z, such as 0.4,-1,0:1,1,0.8.")
        found.append(pair)
    return found


def _pair(word: str) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Two corners from X,Y,Z:X,Y,Z."""
    try:
        lower, upper = (tuple(float(x) for x in corner.split(",")) for corner in word.split(":"))
    except ValueError:
        return None
    return (lower, upper) if len(lower) == len(upper) == 3 else None
