"""`linksweep excite`: a motion that shows a robot's numbers."""

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
    duration: Annotated[float, typer.Option(metavar="SECONDS", help="Of the motion.")] = 10.0,
    rate: Annotated[float, typer.Option(metavar="HZ", help="Rows a second that are written.")] = 100.0,
    kind: Annotated[
        str, typer.Option(metavar="KIND", help="fourier, or spline.", autocompletion=complete_from(KINDS))
    ] = "fourier",
    harmonics: Annotated[int, typer.Option(help="How lively: multiples of the base frequency.")] = 5,
    criterion: Annotated[
        str, typer.Option(metavar="NAME", help="condition, or determinant.", autocompletion=complete_from(CRITERIA))
    ] = "condition",
    acceleration: Annotated[
        float | None, typer.Option(metavar="LIMIT", help="Of every joint; unless said, 4 times its velocity a second.")
    ] = None,
    box: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FRAME=X,Y,Z:X,Y,Z", help="Corners, lower first, within which a frame stays, in the base."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same motion.")] = 0,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Plot the motion as .png, .svg or .pdf.")] = None,
    as_json: AsJson = False,
) -> None:
    """The motion within limits that shows most of a robot's inertias: a CSV file (-o) to run on it."""
    from linksweep.identification import excite as excited
    from linksweep.tables import check_output

    if output is not None:
        check_output(output)
    if plot is not None:
        check_plot(plot)
    arm = find_robot(robot)
    found = excited(
        arm, duration, kind=kind, harmonics=harmonics, criterion=criterion, acceleration=acceleration,
        boxes=_boxes(box), seed=seed,
    )  # fmt: skip
    if output is not None:
        found.to_csv(output, rate)
    if plot is not None:
        from linksweep import plots

        t, q, *_ = found.samples(rate)
        plots.save(plots.time_series(arm, t, q, "q", title=f"{arm.name}: an exciting motion"), plot)
    facts = {
        "robot": arm.name, "duration": found.duration, "criterion": criterion, "condition": found.condition,
        "start": found.start, "used": found.used, "output": None if output is None else str(output),
        "plot": None if plot is None else str(plot),
    }  # fmt: skip
    if as_json:
        print(json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False))
        return
    print(
        f"{arm.name}: {found.duration:g} s, condition number {found.condition:.4g} (best random motion "
        f"{found.start:.4g}), up to {100 * found.used:.0f} % of limits"
    )
    for path in (output, plot):
        if path is not None:
            print(f"Written: {path}")


def _boxes(words: list[str] | None) -> dict[str, tuple[tuple[float, ...], ...]]:
    found = {}
    for word in words or []:
        frame, equals, corners = word.partition("=")
        try:
            lower, upper = (tuple(float(x) for x in corner.split(",")) for corner in corners.split(":"))
        except ValueError:
            lower = upper = ()
        if not equals or not frame or len(lower) != 3 or len(upper) != 3:
            raise ArgumentError(f"--box is {word!r}, expected FRAME=X,Y,Z:X,Y,Z, such as tool=-1,-1,0.1:1,1,1.5.")
        found[frame] = lower, upper
    return found
