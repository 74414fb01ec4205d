"""The `linksweep` command. NumPy and the compiler are imported inside commands, so that --help is quick."""

from __future__ import annotations

import io
import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linksweep import __version__, robots
from linksweep.errors import DescriptionError, LinksweepError

if TYPE_CHECKING:
    from linksweep.checking import Report
    from linksweep.robot import Robot
    from linksweep.studies.round_trip import RoundTrip

BAD_INPUT = 2  # the exit code for anything the user can put right
DISAGREEMENT = 1  # formulations that differ, or a description that no body can have
BUNDLED = ", ".join(robots.names())

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


def main() -> None:
    """Run the command; errors and warnings of linksweep become one sentence each on stderr."""
    warnings.formatwarning = lambda message, *place, **source: f"linksweep: warning: {message}\n"
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without ° and ² gets ? instead of a traceback
            stream.reconfigure(errors="replace")
    try:
        app(prog_name="linksweep")
    except LinksweepError as error:
        print(f"linksweep: {error}", file=sys.stderr)
        raise SystemExit(BAD_INPUT) from None


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"linksweep {__version__}")
        raise typer.Exit


@app.callback()
def linksweep(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Robot dynamics from published recursions, compiled for one robot."""


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the CSV file and the plot.")] = Path("out"),
) -> None:
    """PUMA 560: a motion, its torques by inverse dynamics, the motion back by forward dynamics."""
    from linksweep.studies.round_trip import puma560_round_trip

    trip = puma560_round_trip()
    written = [out / "puma560.csv"]
    trip.write_csv(written[0])
    if _matplotlib_installed():
        from linksweep import plots

        title = "PUMA 560: joint torques along a quintic trajectory"
        units = ["N m"] * len(trip.joint_names)
        figure = plots.torque_figure(title, trip.joint_names, units, trip.t, trip.tau)
        written.append(out / "puma560.png")
        plots.save(figure, written[1])
    else:
        print("No plot: Matplotlib is not installed (pip install 'linksweep[plot]').", file=sys.stderr)
    _print_round_trip(trip)
    print("Written:", *written)


@app.command()
def info(
    robot: Annotated[str, typer.Argument(help=f"A file (.urdf, .toml), or {BUNDLED}.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a robot is made of: joints, links, frames, and the methods it supports."""
    facts = _facts(_find(robot))
    if as_json:
        print(json.dumps(facts, indent=2, allow_nan=False))
    else:
        _print_facts(facts)


@app.command()
def check(
    robot: Annotated[str, typer.Argument(help=f"A file (.urdf, .toml), or {BUNDLED}.")],
    samples: Annotated[int, typer.Option(help="Random states to compare on.")] = 20,
    seed: Annotated[int, typer.Option(help="Of the random states.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare every formulation on random states, and lint the description; exit code 1 if something is wrong."""
    from linksweep.checking import check as run_check

    report = run_check(_find(robot), samples, seed)
    if as_json:
        print(json.dumps(report.as_dict(), indent=2, allow_nan=False))
    elif sys.stdout.isatty():
        _print_report(report)
    else:
        print(report)
    if not report.ok:
        raise typer.Exit(DISAGREEMENT)


def _find(name: str) -> Robot:
    """A bundled robot by name, or one read from a file."""
    from linksweep.loading import load
    from linksweep.robot import Robot

    if name in robots.names():
        return Robot(robots.model(name))
    if Path(name).exists() or Path(name).suffix:
        return load(name)
    raise DescriptionError(f"There is no robot {name!r}, expected a file or one of {BUNDLED}: check the spelling.")


def _facts(robot: Robot) -> dict[str, Any]:
    """What `info` prints, as plain JSON values; an absent limit is null. Joints are in coordinate order."""
    model = robot.model
    joints = []
    for index in model.document_order:
        link = model.links[index]
        joint = link.joint
        joints.append(
            {
                "name": joint.name,
                "kind": joint.kind,
                "parent": model.base if link.parent < 0 else model.links[link.parent].name,
                "link": link.name,
                "mass": link.inertial.mass,
                "lower": _or_none(joint.limits.lower),
                "upper": _or_none(joint.limits.upper),
                "armature": joint.armature,
            }
        )
    return {
        "name": model.name,
        "nq": robot.nq,
        "nv": robot.nv,
        "gravity": list(map(float, robot.gravity)),
        "base": model.base,
        "joints": joints,
        "frames": list(robot.frame_names),
        "methods": {name: list(robot.methods(name)) for name in ("inverse_dynamics", "forward_dynamics")},
    }


def _or_none(limit: float) -> float | None:
    return None if abs(limit) == float("inf") else limit


def _matplotlib_installed() -> bool:
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def _print_facts(facts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    mass = sum(joint["mass"] for joint in facts["joints"])
    table = Table(title=Text(f"{facts['name']}: {facts['nv']} freedoms, {mass:.4g} kg moving"), title_justify="left")
    for heading in ("joint", "kind", "parent", "link"):
        table.add_column(heading)
    for heading in ("mass (kg)", "armature", "lower", "upper"):
        table.add_column(heading, justify="right")
    for joint in facts["joints"]:
        limits = ("–" if joint[end] is None else f"{joint[end]:.4g}" for end in ("lower", "upper"))
        numbers = (f"{joint['mass']:.4g}", f"{joint['armature']:.4g}", *limits)
        # Text, because a "[" in a file's names is no markup
        words = (Text(joint[key]) for key in ("name", "kind", "parent", "link"))
        table.add_row(*words, *numbers)
    Console().print(table)
    print("gravity:", *facts["gravity"], "m/s²")
    print("frames:", ", ".join(facts["frames"]))
    for quantity, methods in facts["methods"].items():
        print(f"{quantity}:", ", ".join(methods))


def _print_report(report: Report) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    if report.differences:
        table = Table(
            title=Text(f"{report.robot}: {report.samples} states, scaled by conditioning"), title_justify="left"
        )
        for heading in ("function", "method", "furthest from"):
            table.add_column(heading)
        table.add_column("difference", justify="right")
        above = ""
        for difference, (function, *words, _) in zip(report.differences, report.rows(), strict=True):
            if above and function != above:
                table.add_section()
            style = "" if difference.ok else "bold red"
            table.add_row("" if function == above else function, *words, style=style)
            above = function
        console.print(table)
    for line in report.remarks():
        console.print(Text(line, style="red" if line.startswith("error") else ""))
    console.print(Text(report.verdict, style="bold green" if report.ok else "bold red"))


def _print_round_trip(trip: RoundTrip) -> None:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=f"PUMA 560, {len(trip.t)} samples over {trip.t[-1]:g} s: torques and accelerations back",
        title_justify="left",
    )
    table.add_column("joint")
    for heading in ("from (°)", "to (°)", "peak torque\n(N m)", "peak qdd\n(rad/s²)", "difference\n(rad/s²)"):
        table.add_column(heading, justify="right")
    start, end = np.degrees(trip.motion.q[[0, -1]])
    torque, acceleration = np.abs(trip.tau).max(axis=0), np.abs(trip.motion.qdd).max(axis=0)
    for row in zip(trip.joint_names, start, end, torque, acceleration, trip.difference, strict=True):
        name, first, last, peak_torque, peak_qdd, difference = row
        table.add_row(name, f"{first:.0f}", f"{last:.0f}", f"{peak_torque:.4f}", f"{peak_qdd:.4f}", f"{difference:.1e}")
    Console().print(table)
    print(f"Largest difference between accelerations sent and back: {trip.difference.max():.1e} rad/s²")
