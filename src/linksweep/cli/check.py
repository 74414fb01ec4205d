"""`linksweep check`: every formulation against every other one."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from linksweep.cli.common import DISAGREEMENT, AsJson, AskedRobot, find_robot, names_a_robot

if TYPE_CHECKING:
    from linksweep.checking import Report


@names_a_robot
def check(
    robot: AskedRobot,
    samples: Annotated[int, typer.Option(help="Random states to compare on.")] = 20,
    seed: Annotated[int, typer.Option(help="Of the random states.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Compare every formulation on random states, and lint the description; exit code 1 if something is wrong."""
    from linksweep.checking import check as run_check

    report = run_check(find_robot(robot), samples, seed)
    if as_json:
        print(json.dumps(report.as_dict(), indent=2, allow_nan=False))
    elif sys.stdout.isatty():
        _print_report(report)
    else:
        print(report)
    if not report.ok:
        raise typer.Exit(DISAGREEMENT)


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
