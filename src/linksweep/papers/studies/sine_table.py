"""Kozłowski 1990, section 5: errors of torques and accelerations with sines from a table with a step of 0.1°.

The recursions run over any scalar. Here the joint angles are objects whose sine and cosine come from a table; all other
numbers are NumPy arrays with one entry for each sample.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linksweep import robots
from linksweep.algorithms.forward.filter_smoother import filter_smoother
from linksweep.algorithms.inverse.boundary_value import boundary_value
from linksweep.algorithms.rigid_body.kinematics import poses
from linksweep.mechanism.bias import BaseMotion
from linksweep.mechanism.canonical import canonical
from linksweep.mechanism.sweeps import PerJoint, PerLink, Unrolled
from linksweep.motion import JointMotion
from linksweep.motion.trajectories import FloatArray
from linksweep.papers.studies.puma560 import PUMA_SAMPLES, puma_motion
from linksweep.papers.studies.report import Check, Study, at_most, markdown_table, time_table
from linksweep.robot.robot import Robot
from linksweep.spatial.algebra import ZERO_FORCE, ZERO_VEC, Force, Vec

STEP = 0.1  # degrees: the paper's
STEPS = (2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
READINGS = {
    "nearest": "the entry nearest to the angle",
    "below": "the entry at or below the angle",
    "linear": "linear interpolation",
}
SHOULDER = 1  # the paper's joint 5, counted from the tip


@dataclass(frozen=True, slots=True)
class SineTable:
    """Sines of 0° to 90° in steps of `step` degrees; other angles are reduced to these."""

    step: float
    reading: str = "nearest"

    def sine(self, angle: FloatArray) -> FloatArray:
        """The sine of angles in radians."""
        degrees = np.mod(np.degrees(angle), 360.0)
        sign = np.where(degrees < 180.0, 1.0, -1.0)
        half = np.mod(degrees, 180.0)
        return sign * self._read(np.where(half > 90.0, 180.0 - half, half))

    def _read(self, degrees: FloatArray) -> FloatArray:
        """Sines of angles from 0° to 90°."""
        count = round(90.0 / self.step)
        entries = np.sin(np.radians(np.arange(count + 1) * self.step))
        place = degrees / self.step
        if self.reading == "nearest":
            return entries[np.rint(place).astype(int)]
        lower = np.minimum(np.floor(place + 1e-9).astype(int), count - (self.reading == "linear"))
        if self.reading == "below":
            return entries[lower]
        return entries[lower] + (place - lower) * (entries[lower + 1] - entries[lower])


@dataclass(frozen=True, slots=True)
class Angle:
    """Joint angles (samples,) in radians, with the sine and cosine of a table."""

    value: FloatArray
    table: SineTable

    def __add__(self, offset: float) -> Angle:
        return Angle(self.value + offset, self.table)

    def sin(self) -> FloatArray:
        return self.table.sine(self.value)

    def cos(self) -> FloatArray:
        return self.table.sine(self.value + np.pi / 2)


class Recursions:
    """The paper's two recursions over arrays (samples,), with sines of a table or, without one, of NumPy."""

    def __init__(self, robot: Robot, q: FloatArray, table: SineTable | None = None):
        columns = [column if table is None else Angle(column, table) for column in q.T]
        self.sweep = Unrolled(canonical(robot.model), columns)  # pyright: ignore[reportArgumentType]
        self.base = BaseMotion(ZERO_VEC, ZERO_VEC, -Vec(*robot.gravity))

    def inverse(self, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Torques (samples, n) by boundary_value."""
        return _joined(boundary_value(self.sweep, self._split(qd), self._split(qdd), self._no_forces(), self.base).tau)

    def forward(self, qd: FloatArray, tau: FloatArray) -> FloatArray:
        """Accelerations (samples, n) by filter_smoother."""
        return _joined(filter_smoother(self.sweep, self._split(qd), self._split(tau), self._no_forces(), self.base).qdd)

    def wrist(self) -> FloatArray:
        """The origin of the last link (samples, 3)."""
        return np.column_stack([*poses(self.sweep)[-1].p])  # pyright: ignore[reportArgumentType, reportCallIssue]

    def _split(self, array: FloatArray) -> PerJoint:
        return self.sweep.split(list(array.T))

    def _no_forces(self) -> PerLink[Force]:
        return self.sweep.same(ZERO_FORCE)


def _joined(values: PerJoint) -> FloatArray:
    return np.column_stack([value[0] for value in values])  # pyright: ignore[reportArgumentType, reportCallIssue]


@dataclass(frozen=True, slots=True)
class Reading:
    """Results with one way to read the table: torques, accelerations recovered with the same table and with exact
    sines (samples, n), the largest error of sin² + cos², and the largest displacement of the wrist (m)."""

    tau: FloatArray
    back: FloatArray
    exact_back: FloatArray
    unit_error: float
    displacement: float


@dataclass(frozen=True, slots=True)
class Results:
    robot: Robot
    t: FloatArray
    motion: JointMotion
    tau: FloatArray  # with exact sines
    exact_error: float  # difference between these recursions and the compiled functions, over the largest torque
    readings: dict[str, Reading]
    by_step: dict[str, list[float]]  # for each of STEPS the largest torque error, over the largest torque


def compute(samples: int = PUMA_SAMPLES) -> Results:
    """The paper's motion of the PUMA 560, with exact sines and by the table."""
    robot = robots.puma560()
    t, motion = puma_motion(samples)
    exact = Recursions(robot, motion.q)
    tau = exact.inverse(motion.qd, motion.qdd)
    compiled = robot.inverse_dynamics(*motion, method="boundary_value")
    readings = {}
    for name in READINGS:
        tabulated = Recursions(robot, motion.q, SineTable(STEP, name))
        torques = tabulated.inverse(motion.qd, motion.qdd)
        back = tabulated.forward(motion.qd, torques)
        readings[name] = Reading(
            torques, back, exact.forward(motion.qd, torques), unit_error(SineTable(STEP, name)),
            displacement(robot, motion.q, SineTable(STEP, name)),
        )  # fmt: skip
    largest = np.abs(tau).max()
    by_step = {
        name: [
            float(np.abs(Recursions(robot, motion.q, SineTable(step, name)).inverse(motion.qd, motion.qdd) - tau).max())
            / largest
            for step in STEPS
        ]
        for name in READINGS
    }
    return Results(robot, t, motion, tau, float(np.abs(compiled - tau).max() / largest), readings, by_step)


def unit_error(table: SineTable) -> float:
    """The largest error of sin² + cos² = 1."""
    angles = np.linspace(-3.0, 3.0, 100_001)  # radians: none is halfway between two entries
    return float(np.abs(table.sine(angles) ** 2 + table.sine(angles + np.pi / 2) ** 2 - 1.0).max())


def displacement(robot: Robot, q: FloatArray, table: SineTable) -> float:
    """The largest distance between wrist positions by the table and by exact sines."""
    exact, tabulated = Recursions(robot, q).wrist(), Recursions(robot, q, table).wrist()
    return float(np.linalg.norm(tabulated - exact, axis=1).max())


def study(samples: int = PUMA_SAMPLES) -> Study:
    results = compute(samples)
    nearest, linear = results.readings["nearest"], results.readings["linear"]
    largest, scale = np.abs(results.tau).max(), np.abs(results.motion.qdd).max()
    back = float(np.abs(nearest.back - results.motion.qdd).max() / scale)
    hidden = float(np.abs(nearest.exact_back - results.motion.qdd).max() / scale)
    checks = [
        at_most("difference to compiled functions, over the largest torque", results.exact_error, 1e-12),
        at_most("nearest entry: torque error, over the largest torque", _worst(results, "nearest") / largest, 5e-3),
        at_most("nearest entry: error of accelerations recovered with the same table", back, 1e-9),
        Check("nearest entry: error of accelerations recovered with exact sines", hidden, "above 1e-4", hidden > 1e-4),
        at_most("linear interpolation: torque error, over the largest", _worst(results, "linear") / largest, 1e-5),
        at_most("linear interpolation: error of sin² + cos²", linear.unit_error, (np.radians(STEP) / 2) ** 2 * 1.001),
    ]
    names = results.robot.joint_names
    errors = {f"error.{name}": reading.tau - results.tau for name, reading in results.readings.items()}
    header = ["step (°)", *READINGS]
    by_step = [[step, *(results.by_step[name][k] for name in READINGS)] for k, step in enumerate(STEPS)]
    tables = {
        "sine_table": time_table(results.t, names, tau=results.tau, **errors),
        "sine_table_steps": (header, by_step),
    }
    return Study("sine_table", _report(results), tables, _figures(results), checks)


def _worst(results: Results, reading: str) -> float:
    return float(np.abs(results.readings[reading].tau - results.tau).max())


def _figures(results: Results) -> dict:
    from linksweep import plots

    shoulder = {
        READINGS[name]: reading.tau[:, SHOULDER] - results.tau[:, SHOULDER]
        for name, reading in results.readings.items()
    }
    draw: Callable = functools.partial(
        plots.lines, list(STEPS), {READINGS[name]: found for name, found in results.by_step.items()},
        x_label="step of the table (°)", y_label="largest torque error / largest torque", markers=True, log="xy",
        title="Torque error by the step of the table",
    )  # fmt: skip
    return {
        "sine_table_shoulder": (
            "Torque error of the shoulder, by sines from a table with a step of 0.1°.",
            lambda: plots.errors(
                results.t, shoulder, title="Torque of joint 2: error by the table of sines", y_label="error (N m)"
            ),
        ),
        "sine_table_steps": ("The largest torque error for finer and coarser tables.", draw),
    }


def _report(results: Results) -> str:
    largest, scale = np.abs(results.tau).max(axis=0), np.abs(results.motion.qdd).max()
    worst = [np.abs(r.tau - results.tau).max(axis=0) for r in results.readings.values()]
    joints = [
        [name, f"{largest[k]:.3g}", *(f"{errors[k]:.1e}" for errors in worst), f"{results.robot.friction[k]:g}"]
        for k, name in enumerate(results.robot.joint_names)
    ]
    rows = [
        [
            READINGS[name], f"{r.unit_error:.1e}", f"{1e3 * r.displacement:.2f}",
            f"{np.abs(r.tau - results.tau).max() / largest.max():.1e}",
            f"{np.abs(r.back - results.motion.qdd).max() / scale:.1e}",
            f"{np.abs(r.exact_back - results.motion.qdd).max() / scale:.1e}",
        ]
        for name, r in results.readings.items()
    ]  # fmt: skip
    head = ["reading", "error of sin² + cos²", "wrist error (mm)", "torque error", "acceleration error, same table",
            "acceleration error, exact sines"]  # fmt: skip
    return f"""# Sines from a table

K. Kozłowski, *New computational algorithms for a discrete Kalman filter in robot dynamics* (1990), section 5: "Sine
and cosine functions have been discretized over the range from 0° to 90° with an interval 0.1°", to save the time of
computing them. The accelerations that came back from the torques were "exactly the same as the accelerations
generated by the trajectory generator".

Here the same motion of the PUMA 560 ({len(results.t)} samples) runs through the same two recursions, `boundary_value`
and `filter_smoother`, with joint angles whose sines and cosines come from such a table. The paper does not say how an
entry is chosen, so three readings are compared.

## Errors of a table with a step of {STEP:g}°

Torque errors are relative to the largest torque, {np.abs(results.tau).max():.1f} N m, accelerations to the largest one,
{scale:.2f} rad/s².

{markdown_table(head, rows)}

**The paper's comparison does not reveal the error of its table.** If the nearest entry is taken for the sine and for
the cosine, both belong to one angle, which is wrong by up to {STEP / 2:g}°. The torques are those of a slightly
different configuration. Forward dynamics with the same table uses the same configuration and returns the original
accelerations up to rounding. Only forward dynamics with exact sines shows the error.

With the entry below the angle, sine and cosine belong to different angles, and the rotations are not orthonormal. The
recursions assume that they are, so even the same table does not recover the accelerations. The error of linear
interpolation is at most (0.1°)²/8 = {np.radians(STEP) ** 2 / 8:.1e}.

## By joint

Largest torque, largest errors by each reading, and the breakaway torque of the joint for comparison (N m):

{markdown_table(["joint", "torque", *READINGS, "breakaway"], joints)}

{{figure:sine_table_shoulder}}

{{figure:sine_table_steps}}

The error is proportional to the step, and to its square with linear interpolation. linksweep uses no table. Its sines
are polynomials with errors of at most 1.8 units in the last place. The study `rates` measures their cost.
"""
