"""`linksweep excite`: an excitation trajectory for identification."""

from __future__ import annotations

from typing import Annotated

import typer

from linksweep.cli.common import (
    AsJson,
    OutputFile,
    Plot,
    RobotArguments,
    check_outputs,
    choice_option,
    command,
    load_robot,
    print_json,
    print_written,
)
from linksweep.errors import ArgumentError

KINDS, CRITERIA = ("fourier", "spline"), ("condition", "determinant")


@command(
    "Identify",
    "excite puma560 --duration 10 -o motion.csv",
    "excite arm.urdf --box tool0=-1,-1,0.1:1,1,1.5 --criterion determinant -o motion.csv",
)
def excite(
    robot: RobotArguments,
    output: OutputFile = None,
    duration: Annotated[float, typer.Option(metavar="SECONDS", help="Duration of the trajectory.")] = 10.0,
    rate: Annotated[float, typer.Option(metavar="HZ", help="Sampling rate of the written file.")] = 100.0,
    kind: Annotated[str, choice_option("Form of the trajectory", KINDS)] = "fourier",
    harmonics: Annotated[int, typer.Option(metavar="N", help="Number of harmonics of the base frequency.")] = 5,
    criterion: Annotated[str, choice_option("Quantity of the regressor to optimise", CRITERIA)] = "condition",
    acceleration: Annotated[
        float | None,
        typer.Option(metavar="LIMIT", help="Acceleration limit; default: 4 times the velocity limit per second."),
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
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the search.")] = 0,
    plot: Plot = None,
    as_json: AsJson = False,
) -> None:
    """Compute an excitation trajectory for identification, within the joint limits.

    Self-collision is not checked.
    """
    from linksweep.identification import excite as find_excitation

    check_outputs(output, plot)
    arm = load_robot(robot)
    excitation = find_excitation(
        arm, duration, kind=kind, harmonics=harmonics, criterion=criterion, acceleration=acceleration,
        boxes=_boxes(box), seed=seed, floor=None if no_floor else floor,
        keep_out=() if no_keep_out else _corners("--keep-out", keep_out) if keep_out else None,
    )  # fmt: skip
    if output is not None:
        excitation.to_csv(output, rate)
    if plot is not None:
        from linksweep import plots

        t, q, *_ = excitation.samples(rate)
        plots.save(plots.time_series(arm, t, q, "q", title=f"{arm.name}: excitation trajectory"), plot)
    facts = {
        "robot": arm.name, "duration": excitation.duration, "criterion": criterion, "condition": excitation.condition,
        "start": excitation.start, "used": excitation.used, "lowest": excitation.lowest,
        "self_collision": "not checked", "output": None if output is None else str(output),
        "plot": None if plot is None else str(plot),
    }  # fmt: skip
    if as_json:
        print_json(facts)
        return
    print(
        f"{arm.name}: {excitation.duration:g} s, condition number {excitation.condition:.4g} (best random motion "
        f"{excitation.start:.4g}), up to {100 * excitation.used:.0f} % of limits, lowest point "
        f"{excitation.lowest:.3g} m"
    )
    print("Self-collision is not checked. Look at the trajectory (linksweep view) before you run it.")
    print_written(output, plot)


def _boxes(words: list[str] | None) -> dict[str, tuple[tuple[float, ...], ...]]:
    boxes = {}
    for word in words or []:
        frame, equals, corners = word.partition("=")
        pair = _pair(corners)
        if not equals or not frame or pair is None:
            raise ArgumentError(f"--box is {word!r}, expected FRAME=X,Y,Z:X,Y,Z, such as tool=-1,-1,0.1:1,1,1.5.")
        boxes[frame] = pair
    return boxes


def _corners(option: str, words: list[str]) -> list[tuple[tuple[float, ...], ...]]:
    boxes = []
    for word in words:
        pair = _pair(word)
        if pair is None:
            raise ArgumentError(f"{option} is {word!r}, expected X,Y,Z:X,Y,Z, such as 0.4,-1,0:1,1,0.8.")
        boxes.append(pair)
    return boxes


def _pair(word: str) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """Parse two corners written as X,Y,Z:X,Y,Z; None if they are malformed."""
    try:
        lower, upper = (tuple(float(x) for x in corner.split(",")) for corner in word.split(":"))
    except ValueError:
        return None
    return (lower, upper) if len(lower) == len(upper) == 3 else None
