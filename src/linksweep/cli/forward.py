"""`linksweep forward`: the accelerations that torques cause."""

from __future__ import annotations

from typing import Annotated

from linksweep.cli import dynamics
from linksweep.cli.common import AsJson, AskedRobot, OutputFile, names_a_robot


@names_a_robot
def forward(
    robot: AskedRobot,
    trajectory: dynamics.Trajectory,
    output: OutputFile = None,
    method: Annotated[str | None, dynamics.method_option("forward_dynamics")] = None,
    plot: dynamics.Plot = None,
    as_json: AsJson = False,
    dissipation: dynamics.Dissipation = False,
    spline: dynamics.Spline = False,
    with_inputs: dynamics.WithInputs = False,
) -> None:
    """Accelerations along a trajectory of t, q, qd, tau: a table, a file (-o), a plot."""
    dynamics.run(
        "forward_dynamics",
        robot,
        trajectory,
        output=output,
        plot=plot,
        method=method,
        as_json=as_json,
        dissipation=dissipation,
        spline=spline,
        with_inputs=with_inputs,
    )
