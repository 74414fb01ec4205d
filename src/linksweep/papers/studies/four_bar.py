"""N four-bar linkages side by side (IFToMM benchmark A02): one DOF, singular configurations, constraint drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linksweep import robots
from linksweep.motion.trajectories import FloatArray
from linksweep.papers.studies.report import Study, at_most, markdown_table
from linksweep.robots.mechanisms import four_bars_upright
from linksweep.simulation import RK4, simulate

if TYPE_CHECKING:
    from linksweep.simulation.result import Simulation

WINDOWS, DURATION, STEP, EVERY = 2, 10.0, 1e-3, 20
GRAVITY = 9.81
BARS = {2: 1e-9}  # metres; 1e-7 for others


@dataclass(frozen=True, slots=True)
class Results:
    """The simulation, the position of joint B0 (samples, 2), its reference solution, and the constraint error."""

    windows: int
    run: Simulation
    top: FloatArray
    exact: FloatArray
    gap: FloatArray


def compute(windows: int = WINDOWS, duration: float = DURATION, step: float = STEP) -> Results:
    robot = robots.four_bars(windows, gravity=GRAVITY)
    q0, qd0 = four_bars_upright(robot)
    run = simulate(robot, q0, qd0, duration=duration, dt=step, every=EVERY, integrator=RK4(progress=False))
    top = robot.pose(run.q, "B0")[:, :2, 3]
    gap = np.abs(robot.constraint_error(run.q)).max(axis=-1)
    return Results(windows, run, top, single_dof_solution(windows, run.t), gap)


def single_dof_solution(windows: int, t: FloatArray) -> FloatArray:
    """Position of B0 from the equation of the single DOF: theta'' = g ((N+1)/2 + N) / ((N+1)/3 + N) sin theta."""
    from scipy.integrate import solve_ivp

    gain = GRAVITY * ((windows + 1) / 2 + windows) / ((windows + 1) / 3 + windows)
    solution = solve_ivp(
        lambda _, y: (y[1], gain * np.sin(y[0])), (0.0, float(t[-1])), (0.0, 1.0), "DOP853", t, rtol=2.5e-14, atol=1e-14
    )
    return np.column_stack([np.sin(solution.y[0]), np.cos(solution.y[0])])


def study(windows: int = WINDOWS, duration: float = DURATION, step: float = STEP) -> Study:
    results = compute(windows, duration, step)
    off = np.linalg.norm(results.top - results.exact, axis=1)
    checks = [
        at_most(f"position error of B0 at {duration:g} s (m)", off[-1], BARS.get(windows, 1e-7)),
        at_most("largest constraint error (m)", results.gap.max(), 1e-12),
        at_most("relative energy drift", float(results.run.energy_drift), 1e-8),
    ]
    header = ["t", "B0.x", "B0.y", "exact.x", "exact.y", "gap"]
    rows = np.column_stack([results.run.t, results.top, results.exact, results.gap])
    return Study("four_bar", _report(results, off, step), {"four_bar": (header, rows)}, _figures(results, off), checks)


def _figures(results: Results, off: FloatArray) -> dict:
    from linksweep import plots

    top = [plots.Channel("x", "m"), plots.Channel("y", "m")]
    return {
        "four_bar_top": (
            "Position of the first upper joint, B0.",
            lambda: plots.overlaid(top, results.run.t, results.top, f"{results.windows} four-bars: B0"),
        ),
        "four_bar_drift": (
            "Position error of B0, and constraint error of the loops.",
            lambda: plots.errors(
                results.run.t,
                {"position error of B0": off, "constraint error": results.gap},
                title="Four-bars: drift",
                y_label="distance (m)",
            ),
        ),
    }


def _report(results: Results, off: FloatArray, step: float) -> str:
    x, y = results.top[-1]
    rows = [["final position error of B0 (m)", f"{off[-1]:.2e}"], ["largest error of B0 (m)", f"{off.max():.2e}"],
            ["largest constraint error (m)", f"{results.gap.max():.2e}"]]  # fmt: skip
    return f"""# {results.windows} four-bar linkages

This is the IFToMM benchmark A02. {results.windows + 1} equal rods (1 m, 1 kg) are hinged to the ground, and
{results.windows} more connect their upper ends, which start upright at 1 m/s. The mechanism has one DOF,
{len(results.run.robot.joint_names)} coordinates and {len(results.run.robot.constraints)} loops. Twice in each turn all
rods are collinear, and the constraint Jacobian loses rank. The integrator is RK4 with a time step of {step:g} s. After
each step positions and velocities are projected onto the constraints in the metric of the mass matrix.

{markdown_table(["", "result"], rows)}

B0 ends at ({x:.12f}, {y:.12f}).

{{figure:four_bar_top}}

{{figure:four_bar_drift}}
"""
