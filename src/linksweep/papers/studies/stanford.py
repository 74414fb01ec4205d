"""Angeles, Ma & Rojas 1988, example 1: the Stanford arm moves by cycloids (Fig. 4); its torques and force (Fig. 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from linksweep import robots
from linksweep.motion import Cycloid, JointMotion
from linksweep.motion.trajectories import FloatArray
from linksweep.papers.studies.report import (
    Study,
    at_most,
    known_as,
    markdown_table,
    peak_cells,
    relative_spread,
    time_table,
)
from linksweep.plots.figures import Channel

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot

# Section 7.1, in the paper's coordinates: theta_1, theta_2, b_3, theta_4, theta_5, theta_6.
START = (0.0, np.pi / 2, 0.0, 0.0, 0.0, 0.0)
A = (np.pi / 30, -np.pi / 60, 0.01, np.pi / 30, np.pi / 30, np.pi / 30)
B = 2 * np.pi / 10
SAMPLES = 201
# b = -d by the paper's eq. (8): its third coordinate and force have the opposite signs of ours.
PAPER_SIGNS = np.array([1.0, 1.0, -1.0, 1.0, 1.0, 1.0])
NAMES = ("theta_1", "theta_2", "b_3", "theta_4", "theta_5", "theta_6")
# Statics: the arm is level at 0 s and inclined by 60 degrees at 10 s, for any choice of the unknown signs.
HOLDING_TORQUE = 9.81 * (1.0 * 0.7 + 0.6 * 0.66 + 0.5 * 0.6)
HOLDING_FORCE = 9.81 * (4.0 + 1.0 + 0.6 + 0.5) * 0.5
AMBIGUOUS = (2, 5)  # links whose twist has an unknown sign


@dataclass(frozen=True, slots=True)
class Results:
    """Motion and torques by method, (samples, 6), in the paper's coordinates; variants by signs of the twists."""

    robot: Robot
    t: FloatArray
    motion: JointMotion
    tau: dict[str, FloatArray]
    variants: dict[str, FloatArray]
    back: FloatArray


def compute(samples: int = SAMPLES) -> Results:
    robot = robots.stanford()
    t = np.linspace(0.0, 10.0, samples)
    ours = Cycloid(np.array(START) * PAPER_SIGNS, np.array(A) * PAPER_SIGNS, B)(t)
    tau = {name: robot.inverse_dynamics(*ours, method=name) for name in robot.methods("inverse_dynamics")}
    back = robot.forward_dynamics(ours.q, ours.qd, tau["kane"])
    variants = {
        f"{_sign(third)}90°, {_sign(sixth)}90°": _with_twists(robot, third, sixth).inverse_dynamics(*ours)
        for third in (-1, 1)
        for sixth in (-1, 1)
    }
    return Results(
        robot, t, JointMotion(*(x * PAPER_SIGNS for x in ours)),
        {name: torque * PAPER_SIGNS for name, torque in tau.items()},
        {name: torque * PAPER_SIGNS for name, torque in variants.items()},
        back * PAPER_SIGNS,
    )  # fmt: skip


def study(samples: int = SAMPLES) -> Study:
    results = compute(samples)
    tau = results.tau["kane"]
    back = np.abs(results.back - results.motion.qdd).max() / np.abs(results.motion.qdd).max()
    checks = [
        known_as("|tau_2| at 0 s (N m)", abs(tau[0, 1]), HOLDING_TORQUE, 4),
        known_as("|f_3| at 10 s (N)", abs(tau[-1, 2]), HOLDING_FORCE, 4),
        at_most("difference of torques between methods, over the largest", relative_spread(results.tau, "kane"), 1e-12),
        at_most("error of the recovered accelerations, over the largest", back, 1e-9),
    ]
    tables = {
        # with the robot's joints and signs, so that `linksweep forward stanford` reads it, then with the paper's
        "stanford": time_table(results.t, results.robot.joint_names, **_ours(results.motion._asdict() | {"tau": tau})),
        "stanford_paper": time_table(results.t, NAMES, **results.motion._asdict(), tau=tau),
        "stanford_variants": time_table(
            results.t, NAMES, **{f"tau({name})": torque for name, torque in results.variants.items()}
        ),
    }
    return Study("stanford", _report(results), tables, _figures(results), checks)


def _ours(blocks: dict[str, FloatArray]) -> dict[str, FloatArray]:
    return {name: values * PAPER_SIGNS for name, values in blocks.items()}


def _sign(value: int) -> str:
    return "+" if value > 0 else "−"


def _with_twists(robot: Robot, third: int, sixth: int) -> Robot:
    """The arm with these signs of alpha_3 and alpha_6. Both joints are at their parents' origins."""
    links = list(robot.model.links)
    for index, sign in zip(AMBIGUOUS, (third, sixth), strict=True):
        joint = links[index].joint
        turned = joint.placement.rotation[2][1]  # sin(alpha)
        if turned * sign < 0:
            x, y, z = zip(*joint.placement.rotation, strict=True)
            joint = replace(joint, placement=replace(joint.placement, rotation=(x, y, z)))
            links[index] = replace(links[index], joint=joint)
    return type(robot)(replace(robot.model, links=tuple(links)))


def _figures(results: Results) -> dict:
    from linksweep import plots

    symbols = ("θ₁", "θ₂", "b₃", "θ₄", "θ₅", "θ₆")
    angles = [
        Channel("b₃", "m", quantity="position") if name == "b₃" else Channel(name, "rad", quantity="angle")
        for name in symbols
    ]
    forces = [Channel(f"τ{digit}", "N m", quantity="torque") for digit in "₁₂₃₄₅₆"]
    forces[2] = Channel("f₃", "N", quantity="force")
    variants = {f"α₃, α₆ = {name}": torque for name, torque in results.variants.items()}
    return {
        "stanford_fig4": (
            "Fig. 4: joint trajectories. θ₁, θ₄, θ₅ and θ₆ are the same.",
            lambda: plots.overlaid(angles, results.t, results.motion.q, "Stanford arm: joint trajectories"),
        ),
        "stanford_fig5": (
            "Fig. 5: driving torques and force, in the paper's signs.",
            lambda: plots.panels(forces, results.t, results.tau["kane"], "Stanford arm: driving torques and force"),
        ),
        "stanford_variants": (
            "The same for the four possible signs of α₃ and α₆.",
            lambda: plots.panels(forces, results.t, variants, "Stanford arm: four signs of the unknown twists"),
        ),
        "stanford_sketch": (
            "The arm at 10 s.",
            lambda: plots.sketch(results.robot, results.motion.q[-1] * PAPER_SIGNS, title="Stanford arm"),
        ),
    }


def _report(results: Results) -> str:
    tau, t = results.tau["kane"], results.t
    rows = []
    for k, name in enumerate(NAMES):
        unit = "N" if k == 2 else "N m"
        ends = (f"{tau[0, k]:z.4f}", f"{tau[-1, k]:z.4f}")
        rows.append([name, unit, *ends, *peak_cells(t, tau[:, k], float(np.abs(tau).max()), 4)])
    variants = [
        [name, *(f"{np.abs(torque[:, k]).max():.4f}" for k in range(6))] for name, torque in results.variants.items()
    ]
    return f"""# Stanford arm: torques of a cycloidal motion

J. Angeles, O. Ma and A. Rojas, *An algorithm for the inverse dynamics of n-axis general manipulators using Kane's
equations* (1988), section 7.1 (example 1). θᵢ = θᵢ(0) + Aᵢ [t − sin(Bt)/B] and b₃ = A₃ [t − sin(Bt)/B], B =
2π/10, for 10 s; {len(t)} samples. Torques by the paper's algorithm (`method="kane"`).

## What was reconstructed

Table 2, the arm's geometry, is damaged in our copy: some of its numbers are legible, but not their rows. We use the
most plausible rows, (α, a, b, θ₀) = (0, 0, −0.1, 0), (90°, 0, −0.1, 90°), (−90°, 0, b₃, 0), (0, 0, −0.6, 0), (90°, 0,
0, 0), (−90°, 0, 0, 0). The signs of α₃ and α₆ are unknown, so the table and the plot below show all four choices.
Masses and inertias are used as printed (four zeros are printed for the three coordinates of link 6's center of mass).

The curves of Figs 4 and 5 are not legible in our copy. Two of their values follow from statics for any choice of the
signs. At 0 s the arm is level, and |τ₂| = 9.81 (1.0 · 0.7 + 0.6 · 0.66 + 0.5 · 0.6) = {HOLDING_TORQUE:.4f} N m. At 10 s
θ₂ is 60°, and |f₃| = 9.81 (4 + 1 + 0.6 + 0.5) cos 60° = {HOLDING_FORCE:.4f} N.

By the paper's equation (8), b is the negative of Craig's d. So b₃ and f₃ have the opposite signs of the third
coordinate of the bundled robot; this report uses the paper's signs.

## Motion (Fig. 4)

{{figure:stanford_fig4}}

{{figure:stanford_sketch}}

## Torques and force (Fig. 5)

{markdown_table(["joint", "unit", "at 0 s", "at 10 s", "peak", "at (s)"], rows)}

{{figure:stanford_fig5}}

## The unknown signs

Largest magnitudes of torques (N m) and force (N) for each choice of α₃ and α₆:

{markdown_table(["α₃, α₆", *NAMES], variants)}

{{figure:stanford_variants}}
"""
