"""What `linksweep inverse` and `linksweep forward` share: a trajectory in, torques or accelerations out."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.models import OptionInfo

from linksweep.cli.common import AsJson, AskedRobot, OutputFile, check_apart, check_plot, find_robot, names_a_robot
from linksweep.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

    from linksweep.description.model import Model
    from linksweep.robot.robot import Robot
    from linksweep.tables.limit_watch import LimitWatch

Trajectory = Annotated[
    Path, typer.Option("--trajectory", "-t", metavar="FILE", help="Samples (.csv) or, for inverse, a motion (.toml).")
]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Plot the result as .png, .svg or .pdf.")]
Dissipation = Annotated[bool, typer.Option("--dissipation", help="Count joint damping and friction in.")]
Spline = Annotated[bool, typer.Option("--spline", help="Compute qd (and qdd) from q by a quintic spline.")]
WithInputs = Annotated[bool, typer.Option("--with-inputs", help="Write the columns that were read, too.")]
INPUTS = {"inverse_dynamics": ("q", "qd", "qdd"), "forward_dynamics": ("q", "qd", "tau")}
RESULTS = {"inverse_dynamics": "tau", "forward_dynamics": "qdd"}


def method_option(function: str) -> OptionInfo:
    """`--method`, completed with the methods of this function."""

    def complete(incomplete: str) -> list[str]:
        from linksweep.catalogue.functions import FUNCTIONS

        return [name for name in FUNCTIONS[function].methods if name.startswith(incomplete)]

    return typer.Option(help="Of those that `info` lists; the first of them unless said.", autocompletion=complete)


def command(function: str, about: str) -> Callable[..., None]:
    """`linksweep inverse` or `linksweep forward`; about: its help."""

    def along(
        robot: AskedRobot,
        trajectory: Trajectory,
        output: OutputFile = None,
        method: str | None = None,
        plot: Plot = None,
        as_json: AsJson = False,
        dissipation: Dissipation = False,
        spline: Spline = False,
        with_inputs: WithInputs = False,
    ) -> None:
        _run(function, robot, trajectory, output, method, plot, as_json, dissipation, spline, with_inputs)

    along.__annotations__["method"] = Annotated[str | None, method_option(function)]
    along.__doc__ = about
    return names_a_robot(along)


def _run(
    function: str, robot: AskedRobot, trajectory: Path, output: Path | None, method: str | None, plot: Path | None,
    as_json: bool, dissipation: bool, spline: bool, with_inputs: bool,
) -> None:  # fmt: skip
    """Compute `function` along a trajectory, and write, plot or print it. Only full results are written or printed."""
    from linksweep.cli.results import Results
    from linksweep.tables import block_columns, check_output, open_trajectory, write_table
    from linksweep.tables.limit_watch import LimitWatch

    if output is not None:
        check_output(output)
        check_apart(output, trajectory, "the trajectory")
    if plot is not None:
        check_plot(plot)
    arm = find_robot(robot)
    model, compute = arm.model, _function(arm, function, method, dissipation)
    inputs, result = INPUTS[function], RESULTS[function]
    blocks = open_trajectory(trajectory, model, inputs, spline)
    columns = block_columns(model, (*inputs, result) if with_inputs else (result,))
    about = {"robot": arm.name, "function": function, "method": method or arm.methods(function)[0]}
    results = Results(arm, result, columns, about, keep_rows=as_json and output is None, keep_curve=plot is not None)
    limits = LimitWatch(model)
    warn = arm.warn_if_singular if result == "qdd" else None
    computed = results.watched(_computed(model, limits, warn, compute, blocks, inputs, result, with_inputs))
    if output is None:
        for _ in computed:
            pass
    else:
        write_table(output, columns, computed, about)
    if plot is not None:
        results.plot(plot)
    results.show(as_json, output, plot, limits)


def _function(arm: Robot, function: str, method: str | None, dissipation: bool) -> Callable[..., np.ndarray]:
    if arm.constraints and function == "inverse_dynamics":  # whose torques are a choice, which the method makes
        return functools.partial(arm.inverse_dynamics, dissipation=dissipation)
    return arm.compile(function, method=method, dissipation=dissipation, dtype="float64")


def _computed(
    model: Model, limits: LimitWatch, warn: Callable[..., bool] | None, compiled: Callable[..., np.ndarray],
    blocks: Iterator[np.ndarray], inputs: tuple[str, ...], result: str, with_inputs: bool,
) -> Iterator[np.ndarray]:  # fmt: skip
    """Each block of t and inputs as a block of t, the inputs if wanted, and the result."""
    import numpy as np

    from linksweep.tables import joint_columns
    from linksweep.tables.limit_watch import QUANTITIES

    ends = np.cumsum([1, *(len(joint_columns(model, block)) for block in inputs)])
    names = joint_columns(model, result)
    for values in blocks:
        given = {block: values[:, a:b] for block, (a, b) in zip(inputs, pairwise(ends), strict=True)}
        with np.errstate(over="ignore", invalid="ignore"):
            found = compiled(*given.values())
        if warn is not None and warn("forward", given["q"], functools.partial(_time, values)):
            warn = None  # once for all blocks
        if not np.isfinite(found).all():
            row, column = np.argwhere(~np.isfinite(found))[0]
            singular = ", or the pose is singular" if result == "qdd" else ""
            raise ArgumentError(
                f"At t = {values[row, 0]} {names[column]} comes out as {found[row, column]}, expected a finite number: "
                f"the trajectory's numbers there are too large, or a quaternion is zero{singular}."
            )
        limits.add(values[:, 0], **{block: x for block, x in {**given, result: found}.items() if block in QUANTITIES})
        yield np.concatenate([values if with_inputs else values[:, :1], found], axis=1)


def _time(values: np.ndarray, index: tuple[int, ...]) -> str:
    return f"at t = {values[index[0], 0]:g}"
