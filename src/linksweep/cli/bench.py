"""`linksweep bench`: how fast each method is on this machine."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, NotRequired, TypedDict

import typer

from linksweep.cli.common import AsJson, AskedRobot, find_robot, names_a_robot
from linksweep.errors import ArgumentError, LinksweepError
from linksweep.support.messages import nearest

if TYPE_CHECKING:
    import numpy as np

    from linksweep.robot.robot import Robot

FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "mass_matrix_inverse")
PINOCCHIO = {"inverse_dynamics": "rnea", "forward_dynamics": "aba", "mass_matrix": "crba"}
PINOCCHIO["mass_matrix_inverse"] = "computeMinverse"


class Row(TypedDict):
    """What was measured of a method; of Pinocchio only single calls."""

    function: str
    method: str
    per_second: NotRequired[float]
    single_per_second: float
    mul: NotRequired[int]
    add: NotRequired[int]


def _functions(incomplete: str) -> list[str]:
    return [name for name in FUNCTIONS if name.startswith(incomplete)]


@names_a_robot
def bench(
    robot: AskedRobot,
    function: Annotated[
        str | None, typer.Option(help=f"Only this one of {', '.join(FUNCTIONS)}.", autocompletion=_functions)
    ] = None,
    batch: Annotated[int, typer.Option(min=1, max=1_000_000, help="Samples of one call.")] = 4096,
    threads: Annotated[int, typer.Option(min=1, help="Threads for a batch.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Evaluations per second of every method, and of Pinocchio where it is installed: a quick look, not a contest."""
    if function is not None and function not in FUNCTIONS:
        raise ArgumentError(
            f"The function is {function!r}{nearest(function, FUNCTIONS)}, expected one of {', '.join(FUNCTIONS)}."
        )
    arm = find_robot(robot)
    rows = [row for name in FUNCTIONS if function in (None, name) for row in _measured(arm, name, batch, threads)]
    if as_json:
        facts = {"robot": arm.name, "batch": batch, "threads": threads, "rows": rows}
        print(json.dumps(facts, indent=2, allow_nan=False))
    else:
        _print_rows(arm.name, batch, threads, rows)


def _measured(arm: Robot, function: str, batch: int, threads: int) -> list[Row]:
    """Each method's evaluations per second, in a batch and one at a time, and its operations."""
    import numpy as np

    from linksweep.support.timing import best_seconds

    rng = np.random.default_rng(0)
    q = np.stack([arm.random(rng) for _ in range(batch)])
    rates = rng.uniform(-1.0, 1.0, (2, batch, arm.nv))
    args = (q, *rates) if function in ("inverse_dynamics", "forward_dynamics") else (q,)
    one = tuple(x[0].copy() for x in args)
    methods = arm.methods(function)
    together = [arm.compile(function, method=method, dtype="float64", threads=threads) for method in methods]
    alone = [arm.compile(function, method=method, dtype="float64") for method in methods]
    batches = best_seconds([functools.partial(f, *args) for f in together])
    rival = _pinocchio(arm, function, one)
    singles = best_seconds([*(functools.partial(f, *one) for f in alone), *([rival] if rival else [])])
    rows: list[Row] = [
        {
            "function": function,
            "method": method,
            "per_second": batch / batches[k],
            "single_per_second": 1.0 / singles[k],
            "mul": together[k].counts.mul,
            "add": together[k].counts.add,
        }
        for k, method in enumerate(methods)
    ]
    if rival is not None:
        rows.append({"function": function, "method": "Pinocchio", "single_per_second": 1.0 / singles[-1]})
    return rows


def _pinocchio(arm: Robot, function: str, args: tuple[np.ndarray, ...]) -> Callable[[], object] | None:
    """A call of Pinocchio from Python for the same robot; nothing where it is not installed, or has no such robot."""
    import numpy as np

    try:
        import pinocchio as module
    except ImportError:
        return None
    try:
        model = module.buildModelFromXML(arm.with_gravity((0.0, 0.0, -9.81)).to_urdf())  # URDF has none
    except (LinksweepError, ValueError):
        return None  # a joint that URDF has not
    if model.nv != arm.nv:
        return None
    # its own coordinates: an angle without limits is cosine and sine there
    args = (module.integrate(model, module.neutral(model), np.ones(arm.nv)), *args[1:])
    data, rival = model.createData(), getattr(module, PINOCCHIO[function])
    return lambda: rival(model, data, *args)


def _print_rows(name: str, batch: int, threads: int, rows: list[Row]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    words = f"{name}: evaluations per second, {threads} thread{'s' * (threads > 1)}, float64"
    table = Table(title=Text(words), title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("method")
    for heading in (f"batch of {batch}", "one at a time", "mul", "add"):
        table.add_column(heading, justify="right")
    above = ""
    for row in rows:
        if row["function"] != above:
            if above:
                table.add_section()
            table.add_row(Text(row["function"], style="bold"))
        batched = f"{row['per_second']:,.0f}" if "per_second" in row else ""
        counts = (str(row["mul"]), str(row["add"])) if "mul" in row and "add" in row else ("", "")
        table.add_row(f"  {row['method']}", batched, f"{row['single_per_second']:,.0f}", *counts)
        above = row["function"]
    Console().print(table)
