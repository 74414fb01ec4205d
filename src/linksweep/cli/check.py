"""`linksweep check`: every formulation against every other one, on random states or in exact arithmetic."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linksweep.cli.common import DISAGREEMENT, AsJson, AskedRobot, find_robot, names_a_robot
from linksweep.errors import ArgumentError

if TYPE_CHECKING:
    from linksweep.analysis.checking import Report
    from linksweep.exact import Proof
    from linksweep.robot.robot import Robot

SAMPLES = 20


@names_a_robot
def check(
    robot: AskedRobot,
    samples: Annotated[int | None, typer.Option(help=f"Random states to compare on, {SAMPLES} unless told.")] = None,
    seed: Annotated[int, typer.Option(help="Of the random states.")] = 0,
    exact: Annotated[
        bool, typer.Option("--exact", help="Prove it in exact arithmetic; ROBOT may be joints, such as 'F(RR)(RP)S'.")
    ] = False,
    trials: Annotated[
        int | None, typer.Option(help="Of --exact; else as many as bring the chance of an error below 1e-12.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare every formulation on random states, and lint the description; exit code 1 if something is wrong."""
    report: Report | Proof
    if exact:
        from linksweep.exact import prove

        if samples is not None:
            raise ArgumentError("check: --samples are states of floating point, but --exact takes none: use --trials.")
        report = prove(_asked(robot), trials=trials, seed=seed)
        print_report = functools.partial(_print_proof, report)
    else:
        from linksweep.analysis.checking import check as run_check

        if trials is not None:
            raise ArgumentError("check: --trials belong to --exact, which is not asked for: use --samples.")
        report = run_check(find_robot(robot), SAMPLES if samples is None else samples, seed)
        print_report = functools.partial(_print_report, report)
    if as_json:
        print(json.dumps(report.as_dict(), indent=2, allow_nan=False))
    elif sys.stdout.isatty():
        print_report()
    else:
        print(report)
    if not report.ok:
        raise typer.Exit(DISAGREEMENT)


def _asked(robot: AskedRobot) -> Robot | str:
    """The robot, or letters of joints where no file has that name."""
    name = robot.name or ""
    if not name or set(name) - set("RPHESF()") or Path(name).is_file():
        return find_robot(robot)
    if robot.changes:
        raise ArgumentError(
            f"check: {name} are letters of joints, which {robot.changes[0]} does not suit: leave it out."
        )
    return name


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


def _print_proof(proof: Proof) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(title=Text(f"{proof.name}: in exact arithmetic"), title_justify="left")
    for heading, justify in (("statement", "left"), ("for", "left"), ("degree", "right"), ("chance", "right")):
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for *words, verdict in proof.rows():
        table.add_row(*map(Text, words), style="" if verdict == "proved" else "bold red")
    console.print(table)
    for line in proof.remarks():
        console.print(Text(line, style="red" if line.startswith("refuted") else ""))
    console.print(Text(proof.verdict, style="bold green" if proof.ok else "bold red"))
