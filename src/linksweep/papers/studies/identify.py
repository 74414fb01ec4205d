"""Identification with known true parameters: a simulated PUMA 560 with friction, noise and quantised encoders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linksweep import robots
from linksweep.identification import Excitation, Fit, excite, identify
from linksweep.motion.trajectories import FloatArray
from linksweep.papers.studies.report import Check, Study, at_most, markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from linksweep.robot.robot import Robot

RATE = 500.0  # Hz
PERIODS = 4
DAMPING = (4.0, 3.0, 2.5, 0.4, 0.4, 0.3)  # N m s
FRICTION = (5.0, 6.0, 4.0, 0.8, 0.7, 0.5)  # N m
OFFSET = (0.3, -0.2, 0.1, 0.05, 0.0, -0.05)  # N m
NOISE = (0.6, 0.8, 0.4, 0.1, 0.08, 0.08)  # N m
ENCODER = 2.0 * np.pi / 200_000  # rad from one count to the next
STEPS = 4096  # quantisation levels of the torque, over twice its limit
TILT = np.radians(20.0)
METHODS = ("weighted", "ordinary", "huber", "ridge", "entropic", "log_cholesky", "iv")


@dataclass(frozen=True)
class Log:
    """A log of a controller: t (rows,), q and tau (rows, 6), and the commanded positions."""

    t: FloatArray
    q: FloatArray
    tau: FloatArray
    commanded: FloatArray


def true_robot() -> Robot:
    return robots.puma560().with_dissipation(damping=DAMPING, friction=FRICTION)


def record(robot: Robot, motion: Excitation, seed: int | None) -> Log:
    """A log of several periods of a motion; without a seed it has no noise and no quantisation."""
    period = round(motion.duration * RATE)
    t = np.arange(PERIODS * period + 1) / RATE
    q, qd, qdd = motion.motion(t - motion.duration * np.floor(t / motion.duration))
    tau = robot.inverse_dynamics(q, qd, qdd, dissipation=True) + np.array(OFFSET)
    if seed is None:
        return Log(t, q, tau, q)
    rng = np.random.default_rng(seed)
    step = 2.0 * robot.limits.effort / STEPS
    tau = np.round((tau + rng.normal(size=tau.shape) * np.array(NOISE)) / step) * step
    return Log(t, np.round(q / ENCODER) * ENCODER, tau, q)


def truth(fit: Fit, robot: Robot) -> FloatArray:
    """The base parameters of the simulated robot."""
    values = {**dict(zip(robot.standard_parameter_names, robot.standard_parameters, strict=True))}
    for k, name in enumerate(robot.joint_names):
        values |= {f"{name}.viscous": DAMPING[k], f"{name}.coulomb": FRICTION[k], f"{name}.offset": OFFSET[k]}
    return fit.grouping.matrix @ np.array([values[name] for name in fit.columns.names])


@dataclass(frozen=True)
class Results:
    """Fits by method, a fit of noise-free data, and a fit with a tilted base."""

    robot: Robot
    motion: Excitation
    log: Log
    fits: Mapping[str, Fit]
    exact: Fit
    tilted: Fit
    steep: Robot

    def errors(self, fit: Fit, robot: Robot | None = None) -> FloatArray:
        return fit.values - truth(fit, robot or self.robot)

    def scaled(self, name: str) -> FloatArray:
        """Errors in standard deviations."""
        fit = self.fits[name]
        return self.errors(fit) / fit.deviations

    def torque(self, fit: Fit) -> float:
        """RMS error of the parameters, scaled to torque at a reference motion."""
        return float(np.sqrt(np.mean(np.square(self.errors(fit) * fit.grouping.sizes))))


def compute(seed: int = 1, iterations: int = 40) -> Results:
    robot = true_robot()
    start = robots.puma560()  # the prior model, with different friction
    motion = excite(start, 8.0, seed=seed, starts=1, iterations=iterations)
    log = record(robot, motion, seed)
    fits = {}
    for name in METHODS:
        reference = log.commanded if name == "iv" else None
        fits[name] = identify(start, log.t, log.q, log.tau, method=name, cutoff=25.0, reference=reference)
    clean = record(robot, motion, None)
    exact = identify(start, clean.t, clean.q, clean.tau, cutoff=np.inf)
    gravity = (9.81 * float(np.sin(TILT)), 0.0, -9.81 * float(np.cos(TILT)))
    steep = robot.with_gravity(gravity)
    tilted = record(steep, motion, seed + 1)
    return Results(
        robot, motion, log, fits, exact,
        identify(start.with_gravity(gravity), tilted.t, tilted.q, tilted.tau, cutoff=25.0), steep,
    )  # fmt: skip


def study(seed: int = 1, iterations: int = 40) -> Study:
    """Run the study; `seed` is that of the noise and of the excitation."""
    results = compute(seed, iterations)
    exact = results.exact
    spread = results.scaled("weighted")
    inside = float(np.mean(np.abs(spread) < 1.96))
    extra = set(results.tilted.names) - set(exact.names)
    least = min(results.fits["entropic"].physical_parameters.smallest.values())
    checks = [
        at_most(
            "largest error without noise, in torque at a reference motion (N m)",
            np.abs(results.errors(exact) * exact.grouping.sizes).max(), 1e-8,
        ),
        Check("share of errors within 1.96 standard deviations", inside, "at least 0.85", inside >= 0.85),
        Check("smallest eigenvalue of a pseudo-inertia, entropic", least, "above 0", least > 0.0),
        Check("parameters identified by the tilt only", len(extra), "expected MX1, MY1", extra == {"MX1", "MY1"}),
    ]  # fmt: skip
    return Study("identify", _report(results, inside), _tables(results), _figures(results), checks)


def _tables(results: Results) -> dict[str, tuple[list[str], list[list[str]]]]:
    fit = results.fits["weighted"]
    true = truth(fit, results.robot)
    rows = [
        [
            name,
            repr(float(true[k])),
            *(repr(float(f.values[k])) for f in results.fits.values()),
            repr(float(fit.deviations[k])),
        ]
        for k, name in enumerate(fit.names)
    ]
    return {"identify_numbers": (["number", "true", *results.fits, "deviation (weighted)"], rows)}


def _figures(results: Results) -> dict[str, tuple[str, Callable[[], Figure]]]:
    from linksweep import plots

    fit = results.fits["weighted"]
    sizes = fit.grouping.sizes

    def off() -> Figure:
        half = 1.96 * fit.deviations * sizes
        return plots.intervals(
            fit.names, results.errors(fit) * sizes, half, title="Estimation error, with 95 % confidence intervals",
            x_label="error in torque (N m)", logarithmic=False,
        )  # fmt: skip

    def torques() -> Figure:
        rows = slice(0, round(results.motion.duration * RATE))
        measured = results.log.tau[rows]
        shown = np.where(fit.samples.weight[rows] > 0, fit.predicted[rows], np.nan)
        return plots.fitted_torques(
            results.robot, results.log.t[rows], measured, shown, "PUMA 560: torques, first period"
        )

    def motion() -> Figure:
        t, q, *_ = results.motion.samples(100.0)
        return plots.time_series(results.robot, t, q, "q", overlay=True, title="PUMA 560: excitation trajectory")

    return {
        "identify_motion": ("One period of the motion.", motion),
        "identify_torques": ("Torques as logged and as predicted.", torques),
        "identify_errors": (
            "Error of each parameter of the weighted fit, in torque at a reference motion.",
            off,
        ),
    }


def _report(results: Results, inside: float) -> str:
    rows = [
        [name, f"{results.torque(fit):.4f}", f"{np.sqrt(np.mean(np.square(results.scaled(name)))):.2f}",
         " ".join(f"{x:.3g}" for x in fit.rms)]
        for name, fit in results.fits.items()
    ]  # fmt: skip
    fit = results.fits["weighted"]
    true = truth(fit, results.robot)
    some = [
        [name, f"{true[k]:.5g}", f"{fit.values[k]:.5g}", f"{fit.deviations[k]:.2g}", fit.grouping.text(name)]
        for k, name in enumerate(fit.names)
    ]
    extra = {
        name: (results.tilted[name], truth(results.tilted, results.steep)[results.tilted.names.index(name)])
        for name in ("MX1", "MY1")
    }
    tilt = ", ".join(
        f"{name} = {estimate:.4f} (true {true_value:.4f})" for name, (estimate, true_value) in extra.items()
    )
    return f"""# Identification of a simulated PUMA 560

The robot repeats an excitation trajectory of {results.motion.duration:g} s {PERIODS} times. Its condition number is
{results.motion.condition:.3g}; the best random trajectory at the start of the search had {results.motion.start:.3g}.
The log has {RATE:g} rows per second. Positions are quantised to {ENCODER:.2g} rad and torques to {STEPS} levels, with
noise of {", ".join(map(str, NOISE))} N m (standard deviation). Inertias, armatures, viscous and Coulomb friction and
torque offsets are unknown: {len(fit.names)} base parameters. The prior model has different friction.

{{figure:identify_motion}}

{{figure:identify_torques}}

## By method

The table shows the RMS error of the parameters, scaled to torque at a reference motion (2 rad/s, 6 rad/s²) and in units
of the reported standard deviations, and the RMS residual of each joint (N m).

{markdown_table(["method", "error (N m)", "error (st. dev.)", "RMS residual (N m)"], rows)}

{100 * inside:.0f} % of the parameters of the weighted fit lie within 1.96 standard deviations of the true values.

{{figure:identify_errors}}

## Parameters

{markdown_table(["parameter", "true", "estimate", "st. dev.", "definition"], some)}

## Without noise

With exact positions and torques the largest error, scaled to torque at the reference motion, is
{np.abs(results.errors(results.exact) * fit.grouping.sizes).max():.1e} N m.

## On a tilted base

With the base tilted by {np.degrees(TILT):.0f}°, gravity acts on joint 1, and two more parameters are identifiable:
{tilt}.
"""
