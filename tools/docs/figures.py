"""Figures of the site, drawn when it is built: FIGURES has a function for each."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from made import Made

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "benchmarks"))

import drawn  # noqa: E402
import guide_figures  # noqa: E402

BLUE, ORANGE, GREY, GREEN = "#0072B2", "#D55E00", "#8C8C8C", "#009E73"


def made(folder: Path) -> Made:
    """Draw all of them into the folder."""
    from linksweep import plots

    files = {}
    for name, draw in FIGURES.items():
        path = folder / f"{name}.svg"
        plots.save(draw(), path)
        files[f"figures/{name}.svg"] = path
    return Made({}, files)


def _canvas(width: float, height: float) -> tuple[Any, Any]:
    from linksweep.plots.figures import new_figure

    figure = new_figure(width, height)
    axes = figure.add_subplot()
    axes.set_aspect("equal")
    axes.axis("off")
    return figure, axes


def _arrow(axes: Any, start: Any, end: Any, color: str, bend: float = 0.0, width: float = 1.8) -> None:
    style = {"arrowstyle": "-|>", "color": color, "linewidth": width, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops={**style, "connectionstyle": f"arc3,rad={bend}"})


def _chain(axes: Any, joints: np.ndarray) -> None:
    axes.plot(*joints.T, color="0.72", linewidth=9, solid_capstyle="round", solid_joinstyle="round", zorder=1)
    for joint in joints[:-1]:
        axes.plot(*joint, "o", markersize=13, markerfacecolor="white", markeredgecolor="0.2", markeredgewidth=1.6)
    base = joints[0]
    axes.plot([base[0] - 0.45, base[0] + 0.45], [base[1] - 0.16] * 2, color="0.2", linewidth=2)
    for x in np.linspace(-0.4, 0.4, 6):
        axes.plot([base[0] + x, base[0] + x - 0.1], [base[1] - 0.16, base[1] - 0.3], color="0.2", linewidth=1)


def sweep() -> Any:
    """A chain with motions that go outward above it, and forces that go inward below."""
    figure, axes = _canvas(9.0, 4.3)
    joints = np.array([[0.0, 0.0], [1.7, 1.05], [3.7, 1.3], [5.7, 0.9], [7.3, 1.4]])
    _chain(axes, joints)
    for k in range(3):
        middle = (joints[k] + joints[k + 1]) / 2
        step = joints[k + 1] - joints[k]
        normal = np.array([-step[1], step[0]]) / np.hypot(*step)
        for side, start, end, color, text in (
            (0.5, joints[k], joints[k + 1], BLUE, r"$\phi^T V,\ \phi^T\alpha$"),
            (-0.5, joints[k + 1], joints[k], ORANGE, r"$\phi f,\ \phi P^+\phi^T$"),
        ):
            _arrow(axes, start + side * normal, end + side * normal, color)
            axes.text(*(middle + 1.55 * side * normal), text, color=color, ha="center", va="center", fontsize=11)
    n = len(joints) - 1
    for k, joint in enumerate(joints[:-1]):
        axes.text(joint[0], -1.45, f"code {k}\npaper {n - k}", ha="center", va="center", fontsize=9, color="0.35")
        axes.plot([joint[0]] * 2, [joint[1] - 0.28, -1.15], color="0.8", linewidth=0.8, linestyle=":")
    axes.text(0.0, 2.35, "outward: motions", color=BLUE, fontsize=12, weight="bold", ha="left")
    axes.text(7.6, -0.2, "inward: forces\nand inertias", color=ORANGE, fontsize=12, weight="bold", ha="right")
    axes.text(joints[-1][0] + 0.15, joints[-1][1], "tip", va="center", fontsize=10)
    axes.text(-0.55, 0.1, "base", ha="right", va="center", fontsize=10)
    axes.set(xlim=(-1.2, 8.0), ylim=(-1.8, 2.7))
    return figure


def planar_arm() -> Any:
    """Coordinates, frames, centers of mass, the tool and gravity of a planar arm."""
    figure, axes = _canvas(7.2, 4.6)
    q1, q2 = 0.45, 0.7
    elbow = 2.4 * np.array([np.cos(q1), np.sin(q1)])
    tool = elbow + 2.0 * np.array([np.cos(q1 + q2), np.sin(q1 + q2)])
    joints = np.array([[0.0, 0.0], elbow, tool])
    _chain(axes, joints)
    for at, angle, name in ((joints[0], q1, "link1"), (elbow, q1 + q2, "link2"), (tool, q1 + q2, "tool")):
        for turn, color, letter in ((0.0, ORANGE, "x"), (np.pi / 2, GREEN, "y")):
            tip = at + 0.75 * np.array([np.cos(angle + turn), np.sin(angle + turn)])
            _arrow(axes, at, tip, color, width=1.5)
            axes.text(*(at + 0.9 * (tip - at) / 0.75), letter, color=color, fontsize=9, ha="center", va="center")
        aside = (0.62, -0.42) if name == "link1" else (0.28, -0.32)  # beside the ground that it stands on
        axes.text(*(at + aside), name, fontsize=10, family="monospace")
    for start, heading, spread, text in ((joints[0], 0.0, q1, "$q_1$"), (elbow, q1, q2, "$q_2$")):
        angles = np.linspace(heading, heading + spread, 30)
        axes.plot(start[0] + 1.15 * np.cos(angles), start[1] + 1.15 * np.sin(angles), color=BLUE, linewidth=1.4)
        far = start + 1.5 * np.array([np.cos(heading), np.sin(heading)])
        axes.plot([start[0], far[0]], [start[1], far[1]], color=BLUE, linewidth=0.8, linestyle="--")
        middle = heading + spread / 2
        axes.text(
            *(start + 1.38 * np.array([np.cos(middle), np.sin(middle)])), text, color=BLUE, fontsize=12, va="center"
        )
    for inner, outer in ((joints[0], elbow), (elbow, tool)):
        axes.plot(*((inner + outer) / 2), "P", markersize=9, markerfacecolor="white", markeredgecolor="black")
    _arrow(axes, (4.9, 2.3), (4.9, 1.2), "0.3")
    axes.text(5.0, 1.75, "robot.gravity", fontsize=9, va="center", family="monospace")
    axes.text(-0.75, -0.3, "base", fontsize=10, family="monospace", ha="right")
    axes.set(xlim=(-1.3, 6.6), ylim=(-0.6, 4.0))
    return figure


def spatial_vectors() -> Any:
    """[angular; linear] and [moment; force], at the origin of a frame."""
    figure, axes = _canvas(7.6, 2.7)
    for x, title, upper, lower, color in (
        (0.0, "motion", r"angular velocity $\omega$", r"velocity $v$ of the origin", BLUE),
        (4.2, "force", "moment about the origin", "force", ORANGE),
    ):
        for row, text in enumerate((upper, lower)):
            y = 0.62 - 0.62 * row
            axes.add_patch(_box(x, y, 2.9, 0.56, color))
            axes.text(x + 1.45, y + 0.28, text, ha="center", va="center", fontsize=10)
        axes.text(x + 1.45, 1.42, title, ha="center", fontsize=12, color=color, weight="bold")
        axes.text(x - 0.1, 0.9, "0:3", ha="right", va="center", fontsize=9, family="monospace")
        axes.text(x - 0.1, 0.28, "3:6", ha="right", va="center", fontsize=9, family="monospace")
    axes.set(xlim=(-0.7, 7.3), ylim=(-0.1, 1.8))
    return figure


def _box(x: float, y: float, width: float, height: float, color: str) -> Any:
    from matplotlib.patches import FancyBboxPatch

    return FancyBboxPatch(
        (x, y), width, height, boxstyle="round,pad=0.02", facecolor="white", edgecolor=color, linewidth=1.5
    )


def modified_dh() -> Any:
    """A row of a modified DH table: four numbers between two axes."""
    figure, axes = _canvas(7.6, 3.6)
    a, b = np.array([0.8, 0.3]), np.array([4.3, 0.9])
    axes.plot([a[0], a[0]], [-0.6, 2.6], color="0.3", linestyle=(0, (7, 2, 1.5, 2)), linewidth=1)
    axes.plot([b[0] - 0.55, b[0] + 0.85], [-0.45, 2.75], color="0.3", linestyle=(0, (7, 2, 1.5, 2)), linewidth=1)
    along = np.array([1.4, 3.2]) / np.hypot(1.4, 3.2)
    foot = np.array([b[0] - 0.05, 0.7])
    origin = foot + 1.2 * along
    _arrow(axes, (a[0], 0.7), foot, ORANGE)
    axes.text(2.5, 0.82, r"$a_{i-1}$  along $x_{i-1}$", color=ORANGE, ha="center", fontsize=11)
    _arrow(axes, foot, origin, GREEN)
    axes.text(*(foot + 0.6 * along + [0.12, -0.08]), r"$d_i$  along $z_i$", color=GREEN, fontsize=11)
    axes.text(a[0] - 0.1, 2.45, r"$z_{i-1}$", ha="right", fontsize=12)
    axes.text(b[0] + 0.95, 2.6, r"$z_i$", fontsize=12)
    axes.text(a[0] - 0.1, 0.62, r"frame $i-1$", ha="right", va="center", fontsize=10)
    axes.plot(a[0], 0.7, "o", color="black")
    axes.plot(*origin, "o", color="black")
    axes.text(origin[0] + 0.15, origin[1] + 0.02, r"frame $i$", va="center", fontsize=10)
    axes.text(
        3.25, 2.1, r"$\alpha_{i-1}$ from $z_{i-1}$ to $z_i$, about $x_{i-1}$", color=BLUE, ha="center", fontsize=10
    )
    axes.text(
        5.35, 0.95, r"$\theta_i$ from $x_{i-1}$ to $x_i$," "\n" r"about $z_i$", color=BLUE, fontsize=10, va="center"
    )
    axes.set(xlim=(-0.7, 7.4), ylim=(-0.7, 2.9))
    return figure


def filter_diagram() -> Any:
    """Rodriguez' Fig. 3."""
    from linksweep.papers.studies.statistics import filter_diagram

    return filter_diagram()


def puma_frames() -> Any:
    """Kozłowski's Fig. 2: the PUMA 560 with every frame of its DH table."""
    import linksweep as ls

    robot = ls.robots.puma560()
    title = "PUMA 560: every frame of its table (Kozłowski 1990, Fig. 2)"
    return ls.plots.sketch(robot, [0.3, -0.9, 0.5, 0.0, 0.6, 0.0], frames="all", com=False, axes=False, title=title)


def speed() -> Any:
    """The run against Pinocchio that docs/benchmarks.md prints."""
    text = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    row = re.compile(
        r"^(\w+): (inverse|forward) dynamics, batch 4096, per sample +(\S+ \S+) +(\S+ \S+) +([\d.]+)x", re.M
    )
    values, groups = {}, []
    for robot, which, ours, theirs, _ in row.findall(text):
        for name, time in (("linksweep", ours), ("Pinocchio in a Python loop", theirs)):
            values[f"{robot.removesuffix('_robot')}, {which}: {name}"] = _nanoseconds(time)
            groups.append(name)
    assert len(values) >= 12, "docs/benchmarks.md has no such run"
    import linksweep as ls

    return ls.plots.bars(
        values,
        x_label="time per sample (ns), float64, one thread",
        title="linksweep and Pinocchio, batches of 4096",
        groups=groups,
    )


def of_peers() -> dict[str, Callable[[], Any]]:
    """Figures of the run against every peer that docs/benchmarks.md prints: those that the run has tables for."""
    text = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    run = text.partition("$ python benchmarks/peers.py")[2].partition("\n```")[0]
    rows = drawn.rows_of(run)
    known = {
        "peers": drawn.by_peer,
        "lengths": drawn.by_length,
        "batches": drawn.by_batch,
    }
    return {name: lambda draw=known[name]: draw(rows) for name in drawn.pictures(rows)}


def _nanoseconds(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"ns": 1.0, "µs": 1e3, "ms": 1e6}[unit]


def identification() -> Any:
    """Measured and predicted torques of a two-link arm with friction, and their residuals."""
    import linksweep as ls
    from linksweep import plots

    robot = ls.robots.planar(2)
    true = robot.with_dissipation(damping=[0.5, 0.3], friction=[1.0, 0.6])
    t = np.arange(3000) / 500.0
    w, phase = np.array([2.0, 3.3]), np.array([0.3, 1.1])
    q = np.sin(w * t[:, None] + phase) + 0.4 * np.sin(2.6 * w * t[:, None])
    qd = w * np.cos(w * t[:, None] + phase) + 1.04 * w * np.cos(2.6 * w * t[:, None])
    qdd = -(w**2) * (np.sin(w * t[:, None] + phase) + 2.704 * np.sin(2.6 * w * t[:, None]))
    noise = 0.2 * np.random.default_rng(0).normal(size=q.shape)
    tau = true.inverse_dynamics(q, qd, qdd, dissipation=True) + noise
    fit = ls.identify(robot, t, q, tau, cutoff=20.0)
    predicted = np.where(fit.samples.weight > 0, fit.predicted, np.nan)
    return plots.fitted_torques(robot, fit.samples.t, fit.samples.tau, predicted, "Two-link arm: torques")


FIGURES: dict[str, Callable[[], Any]] = {
    "identification": identification,
    "sweep": sweep,
    "planar_arm": planar_arm,
    "spatial_vectors": spatial_vectors,
    "modified_dh": modified_dh,
    "filter_diagram": filter_diagram,
    "puma_frames": puma_frames,
    "speed": speed,
    "arms": guide_figures.arms,
    "quick_torques": guide_figures.quick_torques,
    "joint_panels": guide_figures.joint_panels,
    "mjcf_flow": guide_figures.mjcf_flow,
    "c_flow": guide_figures.c_flow,
    "frameworks_flow": guide_figures.frameworks_flow,
    "floating_base": guide_figures.floating_base,
    "four_bar": guide_figures.four_bar,
    "check_differences": guide_figures.check_differences,
    "trajectories": guide_figures.trajectories,
    "ik_branches": guide_figures.ik_branches,
    "rollouts": guide_figures.rollouts,
    "controllers": guide_figures.controllers,
    "payload_torques": guide_figures.payload_torques,
    "derivative_check": guide_figures.derivative_check,
    "stream_flow": guide_figures.stream_flow,
    **of_peers(),
}
