"""What `linksweep inverse` and `linksweep forward` share: a trajectory in, torques or accelerations out."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linksweep.cli.common import check_plot, find_robot
from linksweep.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

    from linksweep.robot import Robot

Trajectory = Annotated[
    Path, typer.Option("--trajectory", "-t", metavar="FILE", help="Samples (.csv) or, for inverse, a motion (.toml).")
]
Output = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write .csv, .npz or .parquet.")]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Plot the result as .png, .svg or .pdf.")]
Dissipation = Annotated[bool, typer.Option("--dissipation", help="Count joint damping and friction in.")]
Spline = Annotated[bool, typer.Option("--spline", help="Compute qd (and qdd) from q by a quintic spline.")]
WithInputs = Annotated[bool, typer.Option("--with-inputs", help="Write the columns that were read, too.")]
INPUTS = {"inverse_dynamics": ("q", "qd", "qdd"), "forward_dynamics": ("q", "qd", "tau")}
RESULTS = {"inverse_dynamics": "tau", "forward_dynamics": "qdd"}


def method_option(function: str) -> Any:
    """`--method`, completed with the methods of this function."""

    def complete(incomplete: str) -> list[str]:
        from linksweep.functions import FUNCTIONS

        return [name for name in FUNCTIONS[function].methods if name.startswith(incomplete)]

    return typer.Option(help="Of those that `info` lists; the first of them unless said.", autocompletion=complete)


def run(
    function: str, robot: str, trajectory: Path, *, output: Path | None, plot: Path | None, method: str | None,
    as_json: bool, dissipation: bool, spline: bool, with_inputs: bool,
) -> None:  # fmt: skip
    """Compute `function` along a trajectory, and write, plot or print it. Only full results are written or printed."""
    from linksweep.cli.results import Results
    from linksweep.tables import block_columns, check_output, open_trajectory, write_table

    if output is not None:
        check_output(output)
        if output.exists() and trajectory.exists() and output.samefile(trajectory):
            raise ArgumentError(f"The output {output} is the trajectory itself, expected another file: choose one.")
    if plot is not None:
        check_plot(plot)
    arm = find_robot(robot)
    compiled = arm.compile(function, method=method, dissipation=dissipation, dtype="float64")
    inputs, result = INPUTS[function], RESULTS[function]
    blocks = open_trajectory(trajectory, arm.model, inputs, spline)
    columns = block_columns(arm.model, (*inputs, result) if with_inputs else (result,))
    about = {"robot": arm.name, "function": function, "method": method or arm.methods(function)[0]}
    results = Results(arm, result, columns, about, keep_rows=as_json and output is None, keep_curve=plot is not None)
    computed = results.watched(_computed(arm, compiled, blocks, inputs, result, with_inputs))
    if output is None:
        for _ in computed:
            pass
    else:
        write_table(output, columns, computed, about)
    if plot is not None:
        results.plot(plot)
    results.show(as_json, output, plot)


def _computed(
    arm: Robot, compiled: Callable[..., np.ndarray], blocks: Iterator[np.ndarray], inputs: tuple[str, ...],
    result: str, with_inputs: bool,
) -> Iterator[np.ndarray]:  # fmt: skip
    """Each block of t and inputs as a block of t, the inputs if wanted, and the result."""
    import numpy as np

    from linksweep.tables import joint_columns

    ends = np.cumsum([1, *(len(joint_columns(arm.model, block)) for block in inputs)])
    names = joint_columns(arm.model, result)
    said = result != "qdd"  # one warning for all blocks
    for values in blocks:
        with np.errstate(over="ignore", invalid="ignore"):
            found = compiled(*(values[:, a:b] for a, b in pairwise(ends)))
        if not said:
            said = arm.warn_if_singular("forward", values[:, 1 : ends[1]], functools.partial(_time, values))
        if not np.isfinite(found).all():
            row, column = np.argwhere(~np.isfinite(found))[0]
            singular = ", or the pose is singular" if result == "qdd" else ""
            raise ArgumentError(
                f"At t = {values[row, 0]} {names[column]} comes out as {found[row, column]}, expected a finite number: "
                f"the trajectory's numbers there are too large, or a quaternion is zero{singular}."
            )
        yield np.concatenate([values if with_inputs else values[:, :1], found], axis=1)


def _time(values: np.ndarray, index: tuple[int, ...]) -> str:
    return f"at t = {values[index[0], 0]:g}"
