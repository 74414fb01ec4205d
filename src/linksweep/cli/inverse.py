"""`linksweep inverse`: the torques of a motion."""

from __future__ import annotations

from typing import Annotated

from linksweep.cli import dynamics
from linksweep.cli.common import AsJson, AskedRobot, OutputFile, names_a_robot


@names_a_robot
def inverse(
    robot: AskedRobot,
    trajectory: dynamics.Trajectory,
    output: OutputFile = None,
    method: Annotated[str | None, dynamics.method_option("inverse_dynamics")] = None,
    plot: dynamics.Plot = None,
    as_json: AsJson = False,
    dissipation: dynamics.Dissipation = False,
    spline: dynamics.Spline = False,
    with_inputs: dynamics.WithInputs = False,
) -> None:
    """Torques along a trajectory of t, q, qd, qdd: a table, a file (-o), a plot."""
    dynamics.run(
        "inverse_dynamics",
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
