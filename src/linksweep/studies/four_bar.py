"""N four-bars side by side (IFToMM benchmark A02): one freedom, singular poses, and how far the loops open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linksweep import robots
from linksweep.motion.base import FloatArray
from linksweep.robots.closed_chains import four_bars_upright
from linksweep.simulation import simulate
from linksweep.studies.report import Study, at_most, markdown_table

if TYPE_CHECKING:
    from linksweep.simulation.result import Simulation

WINDOWS, DURATION, STEP, EVERY = 2, 10.0, 1e-3, 20
GRAVITY = 9.81
BARS = {2: 1e-9}  # metres; 1e-7 for others


@dataclass(frozen=True, slots=True)
class Results:
    """The run, the first top's place (samples, 2), and the same from the mechanism's one freedom."""

    windows: int
    run: Simulation
    top: FloatArray
    exact: FloatArray
    gap: FloatArray


def compute(windows: int = WINDOWS, duration: float = DURATION, step: float = STEP) -> Results:
    robot = robots.four_bars(windows, gravity=GRAVITY)
    q0, qd0 = four_bars_upright(robot)
    run = simulate(robot, q0, qd0, duration=duration, dt=step, every=EVERY, progress=False)
    top = robot.pose(run.q, "B0")[:, :2, 3]
    gap = np.abs(robot.constraint_error(run.q)).max(axis=-1)
    return Results(windows, run, top, one_freedom(windows, run.t), gap)


def one_freedom(windows: int, t: FloatArray) -> FloatArray:
    """(sin, cos) of theta from the vertical: theta'' = g ((N+1)/2 + N) / ((N+1)/3 + N) sin theta."""
    from scipy.integrate import solve_ivp

    pull = GRAVITY * ((windows + 1) / 2 + windows) / ((windows + 1) / 3 + windows)
    found = solve_ivp(
        lambda _, y: (y[1], pull * np.sin(y[0])), (0.0, float(t[-1])), (0.0, 1.0), "DOP853", t, rtol=2.5e-14, atol=1e-14
    )
    return np.column_stack([np.sin(found.y[0]), np.cos(found.y[0])])


def study(windows: int = WINDOWS, duration: float = DURATION, step: float = STEP) -> Study:
    results = compute(windows, duration, step)
    off = np.linalg.norm(results.top - results.exact, axis=1)
    checks = [
        at_most(f"B0 off its path at {duration:g} s (m)", off[-1], BARS.get(windows, 1e-7)),
        at_most("opening of the loops, at most (m)", results.gap.max(), 1e-12),
        at_most("drift of the energy over its size", float(results.run.energy_drift), 1e-8),
    ]
    header = ["t", "B0.x", "B0.y", "exact.x", "exact.y", "gap"]
    rows = np.column_stack([results.run.t, results.top, results.exact, results.gap])
    return Study("four_bar", _report(results, off, step), {"four_bar": (header, rows)}, _figures(results, off), checks)


def _figures(results: Results, off: FloatArray) -> dict:
    from linksweep import plots

    top = [plots.Channel("x", "m"), plots.Channel("y", "m")]
    apart = [plots.Channel("B0 off its path", "m"), plots.Channel("opening of the loops", "m")]
    return {
        "four_bar_top": (
            "The first top, B0.",
            lambda: plots.overlaid(top, results.run.t, results.top, f"{results.windows} four-bars: B0"),
        ),
        "four_bar_drift": (
            "How far B0 is off its path, and how far the loops open.",
            lambda: plots.panels(apart, results.run.t, np.column_stack([off, results.gap]), "Four-bars: drift"),
        ),
    }


def _report(results: Results, off: FloatArray, step: float) -> str:
    x, y = results.top[-1]
    rows = [["B0 off its path at the end (m)", f"{off[-1]:.2e}"], ["at most (m)", f"{off.max():.2e}"],
            ["loops open by at most (m)", f"{results.gap.max():.2e}"]]  # fmt: skip
    return f"""# {results.windows} four-bars

The IFToMM benchmark A02: {results.windows + 1} equal rods (1 m, 1 kg) stand on the ground, {results.windows} more join
their tops, which start upright at 1 m/s. The mechanism has one freedom, {len(results.run.robot.joint_names)}
coordinates and {len(results.run.robot.constraints)} loops; twice in each turn all rods lie in one line, and the loops'
equations lose rank. RK4 with steps of {step:g} s; after each step the pose is put back onto the constraints, the
shortest way in the metric of the mass matrix, and so are the rates.

{markdown_table(["", "found"], rows)}

B0 ends at ({x:.12f}, {y:.12f}).

{{figure:four_bar_top}}

{{figure:four_bar_drift}}
"""
