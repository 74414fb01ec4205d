"""Kozłowski 1990, section 5: torques of a moving PUMA 560, and its accelerations back, by every method."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from linksweep import robots
from linksweep.motion import JointMotion, Quintic
from linksweep.motion.base import FloatArray
from linksweep.studies.report import Study, at_most, markdown_table, peak_cells, time_table
from linksweep.studies.round_trip import PUMA_DURATION, PUMA_RANGES_DEG, PUMA_SAMPLES
from linksweep.support.timing import best_seconds, machine

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from linksweep.robot.robot import Robot

BAR = 1e-9  # of the largest acceleration
SHOULDER = 1  # the paper's joint 5
PAPER_HZ = {"inverse_dynamics": 200.0, "forward_dynamics": 100.0}  # on an 80386 with an 80387
INVERSE, FORWARD = "newton_euler", "filter_smoother"  # whose results are plotted and stand in the first table
PAPER_METHOD = {"inverse_dynamics": "boundary_value", "forward_dynamics": "filter_smoother"}


@dataclass(frozen=True, slots=True)
class Results:
    """tau by inverse method, accelerations back by (inverse, forward) method; all (samples, 6)."""

    robot: Robot
    t: FloatArray
    motion: JointMotion
    tau: dict[str, FloatArray]
    back: dict[tuple[str, str], FloatArray]
    shoulder_without_motors: FloatArray

    @property
    def scale(self) -> float:
        return float(np.abs(self.motion.qdd).max())

    def difference(self, inverse: str, forward: str) -> float:
        """The largest acceleration error of a pair of methods over the largest acceleration."""
        return float(np.abs(self.back[inverse, forward] - self.motion.qdd).max()) / self.scale


def compute(samples: int = PUMA_SAMPLES) -> Results:
    """The paper's motion, its torques by every method, and the accelerations back by every method."""
    robot = robots.puma560()
    t = np.linspace(0.0, PUMA_DURATION, samples)
    motion = Quintic(np.radians(PUMA_RANGES_DEG).T, [0.0, PUMA_DURATION])(t)
    tau = {name: robot.inverse_dynamics(*motion, method=name) for name in robot.methods("inverse_dynamics")}
    back = {
        (inverse, forward): robot.forward_dynamics(motion.q, motion.qd, torque, method=forward)
        for inverse, torque in tau.items()
        for forward in robot.methods("forward_dynamics")
    }
    bare = _without_motors(robot).inverse_dynamics(*motion)[:, SHOULDER]
    return Results(robot, t, motion, tau, back, bare)


def rates(robot: Robot, motion: JointMotion, seconds: float = 0.02) -> dict[tuple[str, str], tuple[float, float]]:
    """Evaluations per second by (function, method): one sample for each call, and all samples in one call."""
    calls: dict[tuple[str, str], tuple[Callable[[], object], Callable[[], object]]] = {}
    for function in PAPER_HZ:
        third = motion.qdd if function == "inverse_dynamics" else robot.inverse_dynamics(*motion)
        for method in robot.methods(function):
            compiled = robot.compile(function, method=method)
            one = functools.partial(compiled, motion.q[0], motion.qd[0], third[0])
            calls[function, method] = one, functools.partial(compiled, motion.q, motion.qd, third)
    times = iter(best_seconds([call for pair in calls.values() for call in pair], seconds, rounds=3))
    return {name: (1.0 / next(times), len(motion.q) / next(times)) for name in calls}


def study(samples: int = PUMA_SAMPLES, seconds: float = 0.02) -> Study:
    """seconds: how long to measure each method's speed in one round."""
    results = compute(samples)
    speed = rates(results.robot, results.motion, seconds)
    worst = max(results.back, key=lambda pair: results.difference(*pair))
    first = results.tau[INVERSE]
    spread = max(float(np.abs(tau - first).max()) for tau in results.tau.values()) / float(np.abs(first).max())
    checks = [
        at_most(
            f"accelerations back over the largest one, worst of {len(results.back)} pairs ({worst[0]}, {worst[1]})",
            results.difference(*worst), BAR,
        ),
        at_most("torques of the inverse methods against each other, over the largest torque", spread, BAR),
    ]  # fmt: skip
    return Study("puma560", _report(results, speed), _tables(results, speed), _figures(results, speed), checks)


def _without_motors(robot: Robot) -> Robot:
    links = tuple(replace(link, joint=replace(link.joint, armature=0.0)) for link in robot.model.links)
    return type(robot)(replace(robot.model, links=links))


def _tables(results: Results, speed: dict[tuple[str, str], tuple[float, float]]) -> dict:
    names = results.robot.joint_names
    forward = results.robot.methods("forward_dynamics")
    back = {f"qdd_back.{name}": results.back[INVERSE, name] for name in forward}
    pairs = [[a, *(repr(results.difference(a, b)) for b in forward)] for a in results.tau]
    main = {**results.motion._asdict(), "tau": results.tau[INVERSE], "qdd_back": results.back[INVERSE, FORWARD]}
    return {
        "puma560": time_table(results.t, names, **main),
        "puma560_torques": time_table(results.t, names, **{f"tau.{name}": tau for name, tau in results.tau.items()}),
        "puma560_accelerations": time_table(results.t, names, **back),
        "puma560_pairs": (["torques by", *forward], pairs),
        "puma560_rates": (
            ["function", "method", "one sample a call (1/s)", f"{len(results.t)} samples a call (1/s)"],
            [[*key, f"{one:.0f}", f"{many:.0f}"] for key, (one, many) in speed.items()],
        ),
    }


def _figures(results: Results, speed: dict[tuple[str, str], tuple[float, float]]) -> dict:
    from linksweep import plots

    robot, t = results.robot, results.t

    def shoulder() -> Figure:
        curves = {
            "with motor inertias": results.tau[INVERSE][:, SHOULDER],
            "without": results.shoulder_without_motors,
        }
        return plots.lines(
            t, curves, title="Torque of joint 2, the paper's joint 5", x_label="time (s)", y_label="torque (N m)"
        )

    def differences() -> Figure:
        sizes = {
            pair: np.abs(back - results.motion.qdd).max(axis=1) / results.scale for pair, back in results.back.items()
        }
        curves = {
            f"worst of {len(sizes)} pairs": np.max(list(sizes.values()), axis=0),
            f"{INVERSE},\n{FORWARD}": sizes[INVERSE, FORWARD],
        }
        title, label = "Accelerations back by forward dynamics", "error / largest acceleration"
        return plots.errors(t, curves, title=title, y_label=label, bar=BAR)

    def speeds() -> Figure:
        bars, groups = {}, []
        for function, hertz in PAPER_HZ.items():
            word = function.partition("_")[0]
            bars[f"{word}, the paper's 80386"] = hertz
            groups.append("paper")
            for (of, method), (one, _) in speed.items():
                if of == function:
                    bars[f"{word}, {method}"] = one
                    groups.append("ours")
        return plots.bars(bars, groups=groups, title="One sample for each call", x_label="evaluations per second")

    return {
        "puma560_fig3": ("Fig. 3: the torque of the shoulder.", shoulder),
        "puma560_torques": (
            "Torques of all joints, motor inertias included.",
            lambda: plots.time_series(robot, t, results.tau[INVERSE], title="PUMA 560: joint torques"),
        ),
        "puma560_motion": (
            "The motion: positions of all joints.",
            lambda: plots.time_series(robot, t, results.motion.q, "q", overlay=True, title="PUMA 560: joint positions"),
        ),
        "puma560_differences": ("Errors of the accelerations that come back.", differences),
        "puma560_rates": ("Evaluations per second, one sample for each call from Python.", speeds),
        "puma560_sketch": (
            "The arm at three quarters of the time.",
            lambda: plots.sketch(robot, results.motion.q[3 * len(t) // 4], title="PUMA 560"),
        ),
    }


def _report(results: Results, speed: dict[tuple[str, str], tuple[float, float]]) -> str:
    robot, t = results.robot, results.t
    tau = results.tau[INVERSE]
    forward = robot.methods("forward_dynamics")
    joints, limits = [], robot.limits
    beyond = []
    for k, (name, (low, high)) in enumerate(zip(robot.joint_names, PUMA_RANGES_DEG, strict=True)):
        peak = peak_cells(t, tau[:, k], float(np.abs(tau).max()), 4)
        lower, upper = np.degrees([limits.lower[k], limits.upper[k]])
        joints.append([name, 6 - k, low, high, f"{lower:.0f} … {upper:.0f}", *peak, f"{limits.effort[k]:g}"])
        beyond += [name] if low < lower or high > upper else []
    pairs = [[a, *(f"{results.difference(a, b):.1e}" for b in forward)] for a in results.tau]
    measured = []
    for (function, method), (one, many) in speed.items():
        paper = f"{PAPER_HZ[function]:.0f}" if method == PAPER_METHOD[function] else ""
        measured.append([f"{function}, {method}", paper, f"{one:,.0f}", f"{many:,.0f}"])
    torque_head = ["joint", "paper's number", "from (°)", "to (°)", "limits (°)", "peak torque (N m)", "at (s)",
                   "limit (N m)"]  # fmt: skip
    return f"""# PUMA 560: torques of a motion, and the motion back

K. Kozłowski, *New computational algorithms for a discrete Kalman filter in robot dynamics* (1990), section 5. All
six joints move at once for {PUMA_DURATION:g} s by fifth-order polynomials that start and end at rest; {len(t)}
samples. Inverse dynamics gives the torques, forward dynamics the accelerations that these cause: "exactly the
same as the accelerations generated by the trajectory generator".

The paper numbers joints from the tip: its list of ranges is reversed here, and its joint 5, whose torque it shows, is
the shoulder, joint 2. Its masses are in a report that we do not have; ours are those of Armstrong, Khatib and Burdick
(1986), with the motors' inertias. The curve of Fig. 3 is lost in the copy we have, so it is shown with and without
motors. Its ranges of {" and ".join(beyond)} are outside the limits of the arm, at least with the zeros and directions
that its joints have here; dynamics are computed all the same.

## Torques

{markdown_table(torque_head, joints)}

{{figure:puma560_fig3}}

{{figure:puma560_torques}}

{{figure:puma560_motion}}

{{figure:puma560_sketch}}

## Accelerations back

The largest error of the accelerations over the largest acceleration, {results.scale:.4f} rad/s², for torques by
the method of the row and accelerations by that of the column:

{markdown_table(["torques by", *forward], pairs)}

{{figure:puma560_differences}}

## Evaluations per second

The paper's programs ran at 200 Hz (inverse) and about 100 Hz (forward) on an 80386 with an 80387. Here: one
thread, called from Python, on {machine()}.

{markdown_table(["", "paper (1/s)", "one sample a call (1/s)", f"{len(t)} samples a call (1/s)"], measured)}

{{figure:puma560_rates}}
"""
