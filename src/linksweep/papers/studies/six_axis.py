"""Angeles, Ma & Rojas 1988, example 2: the hand of a six-axis arm follows a straight line (Figs 6 to 8)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linksweep import robots
from linksweep.errors import LinksweepError, ModelWarning
from linksweep.motion import FrameMotion, JointMotion, Line, NormalSpline, follow
from linksweep.motion.trajectories import FloatArray
from linksweep.papers.studies.report import Study, at_most, markdown_table, peak_cells, relative_spread, time_table

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot

TABLE_3_DEG = (0.0, 68.5, -135.0, 39.6, 90.0, 90.0)  # as printed
START_DEG = (0.0, 68.5, -135.0, 93.6, 90.0, 90.0)  # theta_4's digits swapped: nearly on the line that is stated
LINE_X, LINE_Z = 1.33, 1.80
AMPLITUDE = 0.5  # of s(t), m: lost with Fig. 6
DURATION = 1.0
SAMPLES = 201


@dataclass(frozen=True, slots=True)
class Results:
    """s(t) with its derivatives, motions of the hand and of the joints (samples, 6), and torques by method."""

    robot: Robot
    t: FloatArray
    s: JointMotion
    hand: FrameMotion
    motion: JointMotion
    tau: dict[str, FloatArray]
    back: FloatArray

    def errors(self) -> tuple[float, float, float]:
        """Largest errors of pose, twist and acceleration between the joint motion and that of the hand, in SI units."""
        q, qd, qdd = self.motion
        J = self.robot.jacobian(q, "tool")
        J_dot = self.robot.jacobian_derivative(q, qd, "tool")
        twist = np.einsum("sij,sj->si", J, qd)
        acceleration = np.einsum("sij,sj->si", J, qdd) + np.einsum("sij,sj->si", J_dot, qd)
        pose = self.robot.pose(q, "tool")
        computed = (pose, twist, acceleration)
        pose_error, twist_error, acceleration_error = (
            float(np.abs(a - b).max()) for a, b in zip(computed, self.hand, strict=True)
        )
        return pose_error, twist_error, acceleration_error


def sample_times(samples: int) -> FloatArray:
    """Evenly over the duration, and at the knots of the spline: there the acceleration has its peaks."""
    even, knots = np.linspace(0.0, DURATION, samples), DURATION * np.array(NormalSpline.KNOTS)
    near = np.abs(even[:, None] - knots).min(axis=1) < 1e-9 * DURATION
    return np.sort(np.concatenate([even[~near], knots]))


def compute(samples: int = SAMPLES, amplitude: float = AMPLITUDE) -> Results:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # about the published inertia of link 1; the report mentions it
        robot = robots.six_axis()
    t = sample_times(samples)
    start = robot.pose(np.radians(START_DEG), "tool").copy()
    start[:3, 3] = LINE_X, 0.0, LINE_Z
    end = start.copy()
    end[1, 3] = amplitude
    path = Line(start, end, NormalSpline([[0.0], [1.0]], [0.0, DURATION]))
    followed = follow(robot, "tool", path, t, np.radians(START_DEG))
    if not followed.solved.all():
        raise LinksweepError(f"the six_axis study cannot follow a line of {amplitude} m ({followed.reason}).")
    motion = followed.motion
    tau = {name: robot.inverse_dynamics(*motion, method=name) for name in robot.methods("inverse_dynamics")}
    back = robot.forward_dynamics(motion.q, motion.qd, tau["kane"])
    s = NormalSpline([[0.0], [amplitude]], [0.0, DURATION])(t)
    return Results(robot, t, s, path(t), motion, tau, back)


def study(samples: int = SAMPLES, amplitude: float = AMPLITUDE) -> Study:
    results = compute(samples, amplitude)
    tau = results.tau["kane"]
    pose, twist, acceleration = results.errors()
    back = np.abs(results.back - results.motion.qdd).max() / np.abs(results.motion.qdd).max()
    checks = [
        at_most("pose error of the hand (m, and entries of its rotation)", pose, 1e-9),
        at_most("J qd against the hand's velocity (m/s, rad/s)", twist, 1e-9),
        at_most("J qdd + dJ/dt qd against the hand's acceleration (m/s², rad/s²)", acceleration, 1e-9),
        at_most("difference of torques between methods, over the largest", relative_spread(results.tau, "kane"), 1e-12),
        at_most("error of the recovered accelerations, over the largest", back, 1e-9),
    ]
    names = results.robot.joint_names
    header, rows = time_table(results.t, names, **results.motion._asdict(), tau=tau)
    tables = {
        "six_axis": (header, rows),
        "six_axis_line": (["t", "s", "ds/dt", "d2s/dt2"], np.column_stack([results.t, *results.s])),
    }
    return Study("six_axis", _report(results, amplitude), tables, _figures(results), checks)


def _figures(results: Results) -> dict:
    from linksweep import plots

    spline = [
        plots.Channel("s", "m", quantity="distance"), plots.Channel("ds/dt", "m/s", quantity="velocity"),
        plots.Channel("d²s/dt²", "m/s²", quantity="acceleration"),
    ]  # fmt: skip
    forces = [plots.Channel(f"τ{digit}", "N m", quantity="torque") for digit in "₁₂₃₄₅₆"]
    angles = [plots.Channel(f"θ{digit}", "rad", quantity="angle") for digit in "₁₂₃₄₅₆"]
    return {
        "six_axis_fig6": (
            "Fig. 6: the spline s(t), the hand's y coordinate, and its derivatives.",
            lambda: plots.panels(spline, results.t, np.hstack(results.s), "The normal spline"),
        ),
        "six_axis_fig7": (
            "Fig. 7: joint trajectories.",
            lambda: plots.panels(angles, results.t, results.motion.q, "Six-axis arm: joint trajectories"),
        ),
        "six_axis_fig8": (
            "Fig. 8: driving torques.",
            lambda: plots.panels(forces, results.t, results.tau["kane"], "Six-axis arm: driving torques"),
        ),
        "six_axis_sketch": (
            "The arm at the end of the line.",
            lambda: plots.sketch(results.robot, results.motion.q[-1], title="Six-axis arm"),
        ),
    }


def _report(results: Results, amplitude: float) -> str:
    robot, t, tau = results.robot, results.t, results.tau["kane"]
    q = np.degrees(results.motion.q)
    rows = []
    for k, name in enumerate(robot.joint_names):
        rows.append([
            name, f"{TABLE_3_DEG[k]:g}", *(f"{angle:z.3f}" for angle in (q[0, k], q[-1, k])),
            *(f"{torque:z.3f}" for torque in (tau[0, k], tau[-1, k])),
            *peak_cells(t, tau[:, k], float(np.abs(tau).max()), 3),
        ])  # fmt: skip
    swapped, printed = (robot.pose(np.radians(start), "tool")[:3, 3] for start in (START_DEG, TABLE_3_DEG))
    least = np.linalg.svd(robot.jacobian(results.motion.q, "tool"), compute_uv=False)[:, -1].min()
    head = ["joint", "Table 3 (°)", "start (°)", "end (°)", "at 0 s (N m)", "at 1 s (N m)", "peak (N m)", "at (s)"]
    return f"""# Six-axis arm: a straight line

J. Angeles, O. Ma and A. Rojas, *An algorithm for the inverse dynamics of n-axis general manipulators using Kane's
equations* (1988), section 7.2 (example 2). The hand moves along x = {LINE_X}, y = s(t), z = {LINE_Z:.2f} for
{DURATION:g} s without turning, from rest to rest; {len(t)} samples. The arm is not wrist-partitioned: joint
positions come from inverse kinematics, velocities and accelerations from J and dJ/dt, torques from the paper's
algorithm (`method="kane"`).

## What was reconstructed

Table 3 prints θ₄ = 39.6°. Forward kinematics puts the hand with it at z = {printed[2]:.4f}, not on the line. With
the first two digits swapped, θ₄ = 93.6°, it is at x = {swapped[0]:.4f}, z = {swapped[2]:.4f}, close to the line,
so we take the hand's orientation and the branch of the solution from there. Inverse kinematics puts the start
exactly on the line, which moves the joints by up to {np.abs(q[0] - START_DEG).max():.2f}°. The line starts at y =
0, where both put the hand. The amplitude of s(t) is not legible in our copy of Fig. 6; we chose {amplitude:g} m. We
take "normal spline" for the cubic spline of three equal segments with zero velocity and acceleration at both ends,
which is unique. The inertial parameters look as if given in frames at the far ends of the links. They are used as
printed, as is the inertia of link 1, which is not physically realisable. The curves of Figs 6 to 8 are not legible in
our copy, so the results cannot be compared with the paper's.

## The line (Fig. 6)

{{figure:six_axis_fig6}}

## Joint trajectories (Fig. 7)

The smallest singular value of the Jacobian along the line is {least:.3f}, so the arm stays clear of singularities.

{{figure:six_axis_fig7}}

{{figure:six_axis_sketch}}

## Torques (Fig. 8)

{markdown_table(head, rows)}

The torque of joint 6 is zero: its link does not turn, and its center of mass is on the axis.

{{figure:six_axis_fig8}}
"""
