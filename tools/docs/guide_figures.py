"""Figures of the how-to guides. Each function returns a Matplotlib figure; figures.py lists them by name."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import metadata
from typing import Any

import numpy as np

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#8C8C8C"
READY = (0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785)  # of the Panda
CONFIGURATIONS = {
    "panda": (0.3, -0.5, 0.0, -2.2, 0.0, 1.8, 0.785),
    "ur5e": (0.3, -1.2, 1.6, -1.9, -1.57, 0.0),
    "ur10e": (0.3, -1.2, 1.6, -1.9, -1.57, 0.0),
    "iiwa14": (0.3, 0.6, 0.0, -1.4, 0.0, 1.0, 0.0),
    "gen3": (0.3, 0.6, 3.14, -1.6, 0.0, -1.0, 1.57),
}


def _curves(width: float, height: float, columns: int = 1) -> tuple[Any, list[Any]]:
    from linksweep.plots.figures import new_figure, style

    figure = new_figure(width, height)
    axes = [figure.add_subplot(1, columns, k + 1) for k in range(columns)]
    for each in axes:
        style(each)
    return figure, axes


def _robots(robots: Sequence[tuple[str, Any, Any]], width: float, height: float, com: bool = False) -> Any:
    """Sketches side by side: (title, robot, configuration) for each."""
    from linksweep.plots.drawing import Scene
    from linksweep.plots.figures import new_figure

    figure = new_figure(width, height)
    figure.set_layout_engine("none")
    share = 1.0 / len(robots)
    for k, (title, robot, q) in enumerate(robots):
        scene = Scene(robot, np.asarray(q, dtype=float)[None], axes=False, frames=(), com=com)
        scene.figure(None, "")
        box = (k * share - 0.03, -0.02, share + 0.06, 0.98)
        scene.axes = figure.add_axes(box, projection="3d", computed_zorder=False)
        scene.draw(0)
        scene.axes.set(xlabel="", ylabel="", zlabel="", xticklabels=[], yticklabels=[], zticklabels=[])
        figure.text((k + 0.5) * share, 0.95, title, ha="center", va="top", fontsize=11, family="monospace")
    return figure


def _flow(rows: Sequence[Sequence[tuple[str, str]]], width: float, height: float) -> Any:
    """Boxes from left to right, joined by arrows: a (text, colour) for each box, one sequence for each row."""
    from matplotlib.patches import FancyBboxPatch

    from linksweep.plots.figures import new_figure

    figure = new_figure(width, height)
    axes = figure.add_subplot()
    axes.axis("off")
    for line, boxes in enumerate(rows):
        y = -1.5 * line
        for k, (text, color) in enumerate(boxes):
            x = 2.9 * k
            axes.add_patch(
                FancyBboxPatch((x, y), 2.2, 1.0, boxstyle="round,pad=0.06", facecolor="white", edgecolor=color, lw=1.6)
            )
            axes.text(x + 1.1, y + 0.5, text, ha="center", va="center", fontsize=9.5)
            if k:
                arrow = {"arrowstyle": "-|>", "color": "0.35", "linewidth": 1.6}
                axes.annotate("", (x - 0.1, y + 0.5), (x - 0.6, y + 0.5), arrowprops=arrow)
    axes.set(xlim=(-0.2, 2.9 * max(map(len, rows)) - 0.5), ylim=(-1.5 * (len(rows) - 1) - 0.2, 1.2))
    return figure


def arms() -> Any:
    """The five bundled arms of today."""
    import linksweep as ls

    return _robots([(name, ls.load(name), q) for name, q in CONFIGURATIONS.items()], 10.0, 3.1)


def quick_torques() -> Any:
    """Torques of the quick start's motion."""
    import linksweep as ls

    robot = ls.load("panda")
    t = np.linspace(0.0, 2.0, 200)
    motion = ls.motion.Quintic([READY, [0.8, 0.2, 0.3, -1.4, 0.2, 1.9, 0.3]], [0.0, 2.0])(t)
    return ls.plots.time_series(
        robot, t, robot.inverse_dynamics(*motion), overlay=True, title="Panda: torques of a motion"
    )


def joint_panels() -> Any:
    """One panel per joint, with limits."""
    import linksweep as ls

    robot = ls.load("ur5e")
    t = np.linspace(0.0, 1.5, 200)
    motion = ls.motion.Quintic([[0.0, -1.2, 1.6, -1.9, -1.57, 0.0], [1.5, -0.3, 0.6, -0.6, 0.3, 1.5]], [0.0, 1.5])(t)
    tau = robot.with_payload("tool", 5.0).inverse_dynamics(*motion)
    return ls.plots.time_series(robot, t, tau, title="UR5e with 5 kg: torques of a motion")


def mjcf_flow() -> Any:
    boxes = [
        ("MJCF file\nor text", GREY),
        ("MuJoCo compiles\n(own process)", ORANGE),
        ("tree, inertias,\nlimits, equalities", BLUE),
        ("Robot", GREEN),
    ]
    return _flow([boxes], 9.0, 1.5)


def c_flow() -> Any:
    """From a robot model to a controller's C code."""
    boxes = [
        ("robot model\nURDF, MJCF, DH", GREY),
        ("f = robot.compile\nor a controller", BLUE),
        ("f.c, f.h\nC99, only math.h", ORANGE),
        ("real-time loop,\nSimulink S-function", GREEN),
    ]
    return _flow([boxes], 9.0, 1.5)


def frameworks_flow() -> Any:
    """The same machine code inside three frameworks."""
    rows = [
        [("robot.compile(...)", BLUE), (package, ORANGE), (use, GREEN)]
        for package, use in (
            ("linksweep.jax\nXLA calls it", "jit, vmap,\ngrad, hessian"),
            ("linksweep.torch\ncustom operator", "autograd, vmap,\ntorch.compile"),
            ("f.casadi()\ncompiled C", "IPOPT, maps,\nJacobians"),
        )
    ]
    return _flow(rows, 7.5, 3.6)


def floating_base() -> Any:
    """A quadruped and a humanoid with their centers of mass."""
    import warnings

    import linksweep as ls

    wanted = {"solo12.urdf": "Solo12", "talos_reduced.urdf": "Talos"}
    files = {file.name: file.locate() for file in metadata.files("example-robot-data") or () if file.name in wanted}
    shown = []
    for name, title in wanted.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            robot = ls.load(str(files[name]), base="floating")
        q = robot.neutral()
        if title == "Solo12":
            names = robot.joint_names[1:]
            q[7:] = [0.8 if "HFE" in joint else -1.6 if "KFE" in joint else 0.0 for joint in names]
        shown.append((title, robot, q))
    return _robots(shown, 8.0, 4.0, com=True)


def four_bar() -> Any:
    """The path of the coupler of a four-bar linkage, by simulation with projection."""
    import linksweep as ls
    from linksweep.robots.mechanisms import four_bars_upright

    bars = ls.robots.four_bars(1)
    run = ls.simulate(bars, *four_bars_upright(bars), duration=2.0, dt=1e-3, every=10)
    figure, (left, right) = _curves(8.4, 3.4, 2)
    for k in range(0, len(run.t), 20):
        shape = np.array([bars.pose(run.q[k], name)[:2, 3] for name in ("post0", "coupler1", "end1", "post1")])
        left.plot(*shape.T, "-o", color=BLUE, alpha=0.2 + 0.75 * k / len(run.t), markersize=4)
    left.set(xlabel="x (m)", ylabel="y (m)", title="positions of the bars")
    left.set_aspect("equal", adjustable="datalim")
    error = np.abs([bars.constraint_error(q) for q in run.q]).max(axis=1)
    right.semilogy(run.t, np.maximum(error, 1e-18), color=ORANGE)
    right.set(xlabel="time (s)", ylabel="constraint residual (m)", title="loop closure", ylim=(1e-18, 1e-12))
    return figure


def check_differences() -> Any:
    """The largest difference between methods, function by function."""
    import linksweep as ls

    report = ls.check(ls.load("panda"), samples=5)
    worst: dict[str, float] = {}
    for row in report.differences:
        worst[row.function] = max(worst.get(row.function, 0.0), row.value)
    figure, (axes,) = _curves(7.6, 3.4)
    names = list(worst)
    axes.barh(names[::-1], [max(worst[name], 1e-17) for name in names[::-1]], color=BLUE, height=0.6)
    axes.axvline(1e-10, color=ORANGE, linestyle="--")
    axes.text(7e-11, len(names) - 1, "limit of the check", color=ORANGE, ha="right", va="center", fontsize=9)
    axes.set(xscale="log", xlim=(1e-17, 1e-9), xlabel="largest scaled difference between methods")
    axes.set_title("linksweep check panda")
    return figure


def trajectories() -> Any:
    """Positions and velocities of four trajectories through the same points."""
    from linksweep import motion

    points, times = [[0.0], [1.0], [0.6]], [0.0, 1.0, 2.0]
    paths = {
        "Quintic": motion.Quintic(points, times),
        "QuinticSpline": motion.QuinticSpline(points, times),
        "CubicSpline": motion.CubicSpline(points, times),
        "Trapezoid": motion.Trapezoid(points, velocity=1.6, acceleration=8.0),
    }
    figure, (left, right) = _curves(8.6, 3.4, 2)
    from linksweep.plots.figures import line_style

    for k, (name, path) in enumerate(paths.items()):
        t = np.linspace(0.0, path.end, 400)
        q, qd, _ = path(t)
        left.plot(t, q[:, 0], label=name, **line_style(k))
        right.plot(t, qd[:, 0], **line_style(k))
    left.plot(times, [p[0] for p in points], "o", color="black", markersize=5, zorder=5)
    left.set(xlabel="time (s)", ylabel="position (rad)")
    right.set(xlabel="time (s)", ylabel="velocity (rad/s)")
    left.legend(fontsize=8, frameon=False)
    return figure


def ik_branches() -> Any:
    """The configurations in which a UR5e reaches one pose."""
    import linksweep as ls

    robot = ls.load("ur5e")
    q = np.array([0.4, -1.1, 1.5, -1.9, -1.2, 0.3])
    branches = robot.inverse_kinematics_branches(robot.pose(q, "tool"), "tool", q)
    chosen = branches.q[: min(int(branches.count), 4)]
    titles = [f"solution {k + 1}" for k in range(len(chosen))]
    return _robots([(title, robot, row) for title, row in zip(titles, chosen, strict=True)], 9.6, 3.2)


def rollouts() -> Any:
    """Rollouts of a Panda that is controlled, from scattered starts; and one that falls."""
    import linksweep as ls

    robot = ls.load("panda")
    home = np.array(READY)
    q0 = home + np.random.default_rng(0).normal(scale=0.25, size=(64, 7))
    controller = ls.simulation.ComputedTorque(home, kp=30.0, kd=8.0)
    run = ls.simulate(robot, q0, torque=controller, duration=2.0, every=10)
    fall = ls.simulate(robot, home, duration=1.0)
    figure, (left, right) = _curves(8.6, 3.4, 2)
    left.plot(run.t, run.q[:, :, 1], color=BLUE, alpha=0.3, linewidth=0.9)
    left.set(xlabel="time (s)", ylabel="position of joint 2 (rad)", title="64 controlled rollouts")
    right.plot(fall.t, fall.kinetic_energy, color=BLUE, label="kinetic")
    right.plot(fall.t, fall.energy - fall.kinetic_energy, color=ORANGE, label="potential")
    right.plot(fall.t, fall.energy, color="black", linestyle="--", label="sum")
    right.set(xlabel="time (s)", ylabel="energy (J)", title="free fall")
    right.legend(fontsize=8, frameon=False)
    return figure


def controllers() -> Any:
    """Tracking errors of a Panda with a payload that the controller does not know."""
    import linksweep as ls
    from linksweep.simulation import PD, ComputedTorque, SampledController, Sampling, saturated

    robot = ls.load("panda")
    loaded = robot.with_payload("tool", 1.0, (0.0, 0.0, 0.05), (2e-3, 2e-3, 2e-3))
    path = ls.motion.Quintic([READY, [0.8, 0.2, 0.3, -1.4, 0.2, 1.9, 0.3]], [0.0, 1.5])
    computed = ComputedTorque(path, 400.0, 40.0, controller_robot=robot)
    known = ComputedTorque(path, 400.0, 40.0)
    pd = PD(path, [600, 600, 600, 600, 150, 100, 40], [60, 60, 60, 60, 10, 8, 3], controller_robot=robot)
    runs = {
        "PD with gravity": pd,
        "computed torque": computed,
        "payload known, 8 ms sampling, 4 ms delay": SampledController(known, 8e-3, Sampling(delay=4e-3)),
        "payload known": known,
    }
    figure, (axes,) = _curves(7.6, 3.6)
    for k, (name, controller) in enumerate(runs.items()):
        torque = controller if isinstance(controller, SampledController) else saturated(controller)
        run = ls.simulate(loaded, path(0.0).q, torque=torque, duration=2.0, every=4)
        error = np.abs(run.q - path(run.t).q).max(axis=1)
        axes.semilogy(run.t, np.maximum(error, 1e-6), color=(BLUE, ORANGE, GREEN, "black")[k], label=name)
    axes.set(
        xlabel="time (s)",
        ylabel="largest joint error (rad)",
        title="Panda with a payload of 1 kg that the controller does not know",
    )
    axes.legend(fontsize=8, frameon=False)
    return figure


def payload_torques() -> Any:
    """Holding torque of a UR10e against the payload."""
    import linksweep as ls

    robot = ls.load("ur10e")
    holding = robot.compile("gravity_forces", parameters=("payload",))
    masses = np.linspace(0.0, 15.0, 60)
    q = np.array([0.0, -0.2, 0.2, -1.57, -1.57, 0.0])
    tau = holding(np.tile(q, (60, 1)), np.stack([ls.body(m, (0.0, 0.0, 0.08)) for m in masses]))
    share = 100.0 * np.abs(tau) / robot.limits.effort
    figure, (axes,) = _curves(7.2, 3.4)
    for k, color in ((1, BLUE), (2, ORANGE), (3, GREEN)):
        axes.plot(masses, share[:, k], color=color, label=robot.joint_names[k])
    axes.axhline(100.0, color="black", linestyle="--", linewidth=1)
    axes.text(0.2, 96.0, "torque limit", fontsize=9, va="top")
    axes.set(xlabel="payload (kg)", ylabel="holding torque (% of limit)", title="UR10e, arm stretched", ylim=(0, 110))
    axes.legend(fontsize=8, frameon=False, loc="center left")
    return figure


def derivative_check() -> Any:
    """A derivative of a torque and its finite differences."""
    import linksweep as ls

    robot = ls.load("panda")
    q = np.tile(READY, (200, 1))
    q[:, 3] = np.linspace(-3.0, -0.1, 200)
    f = robot.compile(["gravity_forces", ("derivative", "gravity_forces", "q")])
    tau, slope = f(q)
    figure, (axes,) = _curves(7.4, 3.4)
    axes.plot(q[:, 3], tau[:, 1], color=GREY, label="torque of joint 2 (N m)")
    axes.plot(q[:, 3], slope[:, 1, 3], color=BLUE, label="exact derivative with respect to q4 (N m/rad)")
    coarse = np.gradient(tau[:, 1], q[:, 3])
    axes.plot(q[::12, 3], coarse[::12], "o", color=ORANGE, markersize=4, label="finite differences")
    axes.set(xlabel="position of joint 4 (rad)", title="Panda: gravity torque")
    axes.legend(fontsize=8, frameon=False)
    return figure


def stream_flow() -> Any:
    """Blocks of rows on their way through memory."""
    rows = [
        [
            ("q, qd, qdd\n.npy .csv .parquet", GREY),
            ("block of rows,\ntwo threads", BLUE),
            ("tau\n.npy .csv .parquet", GREEN),
        ],
        [
            ("experiment,\nseed", GREY),
            ("chunks on threads,\nprocesses, Dask", BLUE),
            ("checksummed\nParquet files", GREEN),
        ],
    ]
    return _flow(rows, 7.5, 2.5)
