"""`linksweep explain`: a recursion, link by link, with equations and numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from linksweep.cli.common import AskedRobot, complete_from, find_robot, names_a_robot
from linksweep.errors import ArgumentError

FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "bias_forces", "gravity_forces")


@names_a_robot
def explain(
    robot: AskedRobot,
    function: Annotated[
        str, typer.Argument(help=f"{', '.join(FUNCTIONS)}.", autocompletion=complete_from(FUNCTIONS))
    ] = "inverse_dynamics",
    method: Annotated[str | None, typer.Option(help="By which method; `linksweep info` lists them.")] = None,
    q: Annotated[str | None, typer.Option(metavar="X,Y,...", help="Coordinates; neutral unless said.")] = None,
    qd: Annotated[str | None, typer.Option(metavar="X,Y,...", help="Rates; 0 unless said.")] = None,
    qdd: Annotated[str | None, typer.Option(metavar="X,Y,...", help="Accelerations; 0 unless said.")] = None,
    tau: Annotated[str | None, typer.Option(metavar="X,Y,...", help="Joint forces; 0 unless said.")] = None,
    link: Annotated[list[str] | None, typer.Option(help="Show this link alone; may be said again.")] = None,
    dissipation: Annotated[bool, typer.Option("--dissipation", help="With damping and friction.")] = False,
    symbols: Annotated[
        bool, typer.Option("--symbols", help="With symbols instead of numbers, for small arms.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write a page: .html, .md or .txt.")
    ] = None,
) -> None:
    """Walk a recursion link by link: equations, symbols and numbers."""
    from linksweep.explain import check_ending
    from linksweep.tables import check_place

    if output is not None:
        check_ending(output)
        check_place(output)
    texts = {"q": q, "qd": qd, "qdd": qdd, "tau": tau}
    given = {name: _numbers(name, text) for name, text in texts.items() if text is not None}
    found = find_robot(robot).explain(
        function, method, q=given.get("q"), qd=given.get("qd"), qdd=given.get("qdd"), tau=given.get("tau"),
        dissipation=dissipation, symbols=symbols,
    )  # fmt: skip
    if link:
        found = found.of(*link)
    if output is None:
        print(found, end="")
    else:
        found.save(output)
        print(f"wrote {output}")


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise ArgumentError(
            f"--{name} is {text!r}, expected numbers with commas between them, such as 0.1,-0.2: write them so."
        ) from None
