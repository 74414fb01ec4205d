"""`identify`: base parameters of a robot from a log of positions and torques, and the result of a fit."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.identification.base_form import BaseForm, base_form
from linksweep.identification.cross_validation import choose_cutoff, cross_validate, predict_torques
from linksweep.identification.diagnostics import diagnose
from linksweep.identification.estimate import (
    Estimate,
    autocorrelated_covariance,
    checked_gains,
    checked_reference,
    essential_parameters,
    huber_regression,
    instrumental_variables,
    ordinary_least_squares,
    weighted_least_squares,
)
from linksweep.identification.filtering import low_pass
from linksweep.identification.log import Log, Recording, Remarks, check_log, log_arrays
from linksweep.identification.physical import Physical, consistent_parameters
from linksweep.identification.reduction import reduce_log, rows_per_sum, split_blocks, validation_parts
from linksweep.identification.regressor import DEFAULT_UNKNOWN, Regressor
from linksweep.identification.samples import Samples, check_speeds, exclude_rows, filtered_samples, rms_torque
from linksweep.identification.threads import one_thread
from linksweep.support.checks import one_of, real_number
from linksweep.support.lazy import lazy
from linksweep.support.messages import nearest, shown

if TYPE_CHECKING:
    from pathlib import Path

    from linksweep.files import JointLog
    from linksweep.identification.log import Logged
    from linksweep.robot.robot import Robot


METHODS = ("weighted", "ordinary", "huber", "ridge", "iv", "entropic", "log_cholesky")


class FitSettings(TypedDict):
    """Settings of a fit."""

    cutoff: float  # Hz
    cutoff_chosen: bool  # by cross-validation
    every: int  # rows in a sum
    slow: float | None
    torque: float  # largest RMS torque of the joints
    prior_weight: float
    prior_torque: float | None
    rows: int
    dt: float  # s
    sums: int  # of all joints
    retime: bool | None


@dataclass(frozen=True)
class Validation:
    """Comparison of a fit with a log that was not fitted.

    Attributes
    ----------
    joints : tuple of str
        Names of the joints.
    predicted : numpy.ndarray
        Predicted torques (rows, nv).
    rms : numpy.ndarray
        RMS residual (nv,) of measured minus predicted torques.
    torque : numpy.ndarray
        RMS (nv,) of the measured torques.
    """

    joints: tuple[str, ...]
    predicted: np.ndarray
    rms: np.ndarray
    torque: np.ndarray

    def __repr__(self) -> str:
        residuals = ", ".join(
            f"{n} {x:.3g} of {t:.3g}" for n, x, t in zip(self.joints, self.rms, self.torque, strict=True)
        )
        return f"<Validation of {len(self.predicted):,} rows, RMS residual: {residuals}>"


@dataclass(frozen=True)
class Fit:
    """Base parameters estimated from a log: the result of `identify`.

    Arrays over parameters follow `names`, arrays over joints follow `robot.joint_names`. `fit["joint1.viscous"]` is the
    value of one parameter.

    Attributes
    ----------
    columns : Regressor
        Unknown parameters and their regressor.
    grouping : BaseForm
        Base form of the regressor; `grouping.matrix` maps the unknown to the base parameters.
    method : str
        Estimator, as passed to `identify`.
    estimate : Estimate
        The estimate without the effect of autocorrelated residuals.
    covariance : numpy.ndarray
        Covariance (base, base) of `values`, for autocorrelated residuals.
    samples : Samples
        Rows of the fit, with filtered positions and their derivatives.
    predicted : numpy.ndarray
        Predicted torques (rows, nv) at `samples`.
    rms : numpy.ndarray
        RMS residual (nv,) of measured minus predicted torques.
    validation : numpy.ndarray
        Cross-validation: RMS residual (parts, nv) of each trajectory, or of each fifth of a single one, by a fit of the
        others.
    remarks : mapping
        Remarks on the log and the fit, {name: text}.
    settings : dict
        Settings of the fit, such as the cut-off frequency and the number of rows.
    """

    columns: Regressor
    grouping: BaseForm
    method: str
    estimate: Estimate
    covariance: np.ndarray
    samples: Samples
    predicted: np.ndarray
    rms: np.ndarray
    validation: np.ndarray
    remarks: Mapping[str, str]
    settings: FitSettings
    physical: Physical | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """Names (base,) of the base parameters."""
        return self.grouping.names

    @property
    def values(self) -> np.ndarray:
        """Values (base,) of the base parameters; those of the robot model where the log does not determine them."""
        return self.estimate.values

    @property
    def determined(self) -> np.ndarray:
        """Flags (base,): whether the log determines a parameter."""
        return self.estimate.determined

    @property
    def noise(self) -> np.ndarray:
        """Residual standard deviation (nv,) of a row."""
        return self.estimate.noise

    @property
    def condition(self) -> float:
        """Condition number of the weighted regressor with columns scaled to equal length."""
        return self.estimate.condition

    @property
    def cutoff(self) -> float:
        """Cut-off frequency in Hz; infinite if positions were not filtered."""
        return self.samples.cutoff

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviations (base,); infinite for parameters that are not determined."""
        deviations = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return np.where(self.determined, deviations, np.inf)

    @property
    def correlation(self) -> np.ndarray:
        """Correlation matrix (base, base); NaN for parameters that are not determined."""
        deviations = np.sqrt(np.diag(self.covariance))
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = self.covariance / np.outer(deviations, deviations)
        return np.where(np.outer(self.determined, self.determined), correlation, np.nan)

    def interval(self, level: float = 0.95) -> np.ndarray:
        """Return confidence intervals (base, 2) at a level between 0 and 1."""
        from scipy.stats import norm

        if not 0.0 < level < 1.0:
            raise ArgumentError(f"level is {level!r}, expected a confidence between 0 and 1, such as 0.95.")
        half = norm.ppf(0.5 + 0.5 * level) * self.deviations
        return np.stack([self.values - half, self.values + half], axis=1)

    def __getitem__(self, name: str) -> float:
        if name not in self.names:
            raise ArgumentError(
                f"the fit has no parameter {shown(name)}{nearest(name, self.names)}, expected one of fit.names."
            )
        return float(self.values[self.names.index(name)])

    @property
    def groups(self) -> dict[str, str]:
        """Parameters that are grouped into each base parameter, as text."""
        return {name: self.grouping.text(name) for name in self.names}

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the base parameters that the log does not determine."""
        return tuple(name for name, known in zip(self.names, self.determined, strict=True) if not known)

    def essential(self, relative: float = 0.3) -> tuple[str, ...]:
        """Return the names of the essential parameters (Gautier and Presse).

        Without an essential parameter, torques are predicted significantly worse.

        Parameters
        ----------
        relative : float
            Parameters with a smaller relative standard deviation are always essential.
        """
        indices = essential_parameters(self.estimate, self.covariance, self.settings["sums"], relative)
        return tuple(self.names[k] for k in indices)

    @one_thread()
    def predict(self, t: ArrayLike, q: ArrayLike, qd: ArrayLike | None = None, *, filtered: bool = True) -> np.ndarray:
        """Return the torques (rows, nv) that the fit predicts for another log.

        Positions are filtered and differentiated as in the fit. Repeated rows of a polled log have the torques of the
        row that they repeat.

        Parameters
        ----------
        t, q, qd : array_like
            Times (rows,), positions and optional velocities (rows, nv).
        filtered : bool
            Low-pass filter the predicted torques at the cut-off of the fit, which removes noise of the accelerations
            and smooths the steps of dry friction.
        """
        recording = check_log(self.columns, t, q, None, qd, None, Remarks(quiet=True), self.settings["retime"])
        samples = filtered_samples(recording.log(self.cutoff, Remarks(quiet=True)), self.cutoff)
        torques = predict_torques(self.grouping, samples, self.values)
        if filtered:
            torques = np.concatenate([low_pass(torques[a:b], samples.dt, self.cutoff) for a, b in samples.bounds])
        times = recording.trajectories[0].times
        if len(samples.t) == len(times) and np.array_equal(samples.t, times):
            return torques
        inside = np.zeros(len(times), bool)
        tolerance = 1e-6 * samples.dt
        for a, b in samples.bounds:
            inside |= (times >= samples.t[a] - tolerance) & (times <= samples.t[b - 1] + tolerance)
        if not inside.all():
            row = int(np.argmin(inside))
            raise ArgumentError(
                f"row {row} at t = {np.asarray(t, dtype=float)[row]:.6g} s is between gaps and has no velocity: leave "
                f"it out."
            )
        return np.stack([np.interp(times, samples.t, column) for column in torques.T], axis=1)

    @lazy
    def physical_parameters(self) -> Physical:
        """Physically consistent values of all unknown parameters, and the robot that has them."""
        torque, weight = self.settings["torque"], self.settings["prior_weight"]
        return self.physical or consistent_parameters(self.grouping, self.estimate, "entropic", torque, weight)

    @property
    def physical_numbers(self) -> Physical:
        """Deprecated name of `physical_parameters`."""
        warnings.warn("use fit.physical_parameters instead of fit.physical_numbers", DeprecationWarning, stacklevel=2)
        return self.physical_parameters

    @property
    def parameters(self) -> dict[str, float]:
        """Physically consistent value of every unknown parameter, {name: value}; those of `robot`.

        Parameters that do not affect torques keep the value of the robot model.
        """
        return dict(zip(self.columns.names, self.physical_parameters.x.tolist(), strict=True))

    @property
    def robot(self) -> Robot:
        """The robot with physically consistent inertias, and non-negative armatures, damping and friction."""
        return self.physical_parameters.robot

    @lazy
    def robot_rms(self) -> np.ndarray:
        """RMS residual (nv,) of the physically consistent parameters, including those that a Robot cannot store."""
        torques = predict_torques(self.grouping, self.samples, self.grouping.matrix @ self.physical_parameters.x)
        used = self.samples.weight > 0
        count = used.sum(axis=0)
        square = np.sum(np.square(self.samples.tau - torques), axis=0, where=used)
        return np.sqrt(square / np.where(count, count, np.nan))

    def validate(
        self, t: ArrayLike | JointLog, q: ArrayLike | None = None, tau: ArrayLike | None = None,
        qd: ArrayLike | None = None,
    ) -> Validation:  # fmt: skip
        """Compare the torques of another log with predicted ones; arguments as of `identify`.

        Returns
        -------
        Validation
            Predicted torques, and the RMS of residuals and of measured torques.
        """
        t, q, tau, qd = log_arrays(t, q, tau, qd)
        measured = np.asarray(tau, dtype=float)
        predicted = self.predict(t, q, qd)  # type: ignore[arg-type]
        if measured.shape != predicted.shape:
            raise ArgumentError(f"tau has shape {measured.shape}, expected {predicted.shape}: a row for each of q.")
        used = np.isfinite(measured)
        count = np.maximum(used.sum(axis=0), 1)
        residual = np.where(used, measured - predicted, 0.0)
        rms = (np.sqrt(np.sum(np.square(x), axis=0) / count) for x in (residual, np.where(used, measured, 0.0)))
        return Validation(self.columns.robot.joint_names, predicted, *rms)

    def report(self, out: str | Path | None = None, validated: Mapping[str, Validation] | None = None) -> str:
        """Return a report in Markdown.

        Parameters
        ----------
        out : path, optional
            Folder into which report.md, parameters.csv, robot.urdf and plots are written.
        validated : mapping, optional
            Results of `validate` to include, {name of the log: result}.
        """
        from linksweep.identification.report import report

        return report(self, out, validated)

    def __repr__(self) -> str:
        cutoff = f"cut-off {self.cutoff:.3g} Hz" if np.isfinite(self.cutoff) else "unfiltered"
        remarks = f", remarks: {', '.join(self.remarks)}" if self.remarks else ""
        return (
            f"<Fit of {self.columns.full.name}: {int(self.determined.sum())} of {len(self.names)} base parameters, "
            f"{self.method}, {cutoff}, RMS residual {' '.join(f'{x:.3g}' for x in self.rms)}{remarks}>"
        )


@one_thread()
def identify(
    robot: Robot,
    t: Logged | JointLog | Sequence[JointLog],
    q: Logged | None = None,
    tau: Logged | None = None,
    qd: Logged | None = None,
    *,
    cutoff: float | None = None,
    method: str = "weighted",
    unknown: Sequence[str] = DEFAULT_UNKNOWN,
    drives: Mapping[str, Mapping[str, float]] | ArrayLike | None = None,
    stribeck: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    slow: float | None = None,
    delay: ArrayLike = 0.0,
    every: int | None = None,
    grouping_by: str = "rule",
    prior_torque: float | None = None,
    prior_weight: float = 1.0,
    reference: Logged | None = None,
    control: tuple[ArrayLike, ArrayLike] | None = None,
    retime: bool | None = None,
) -> Fit:
    """Identify the parameters of a robot from measured positions and torques.

    Parameters
    ----------
    robot : Robot
        Robot model with 1-DOF joints. Parameters that are not unknown are taken from it.
    t : array_like, JointLog or list of JointLog
        A log of `linksweep.read_log`, or several. Or times (rows,) in seconds; several trajectories are given as lists
        of arrays, here and in q, tau, qd and weights.
    q, tau : array_like
        Positions (rad, m) and torques (N m, N), shape (rows, nv), in the order of `robot.joint_names`. Required
        unless t is a log.
    qd : array_like, optional
        Measured velocities (rows, nv). By default positions are differentiated.
    cutoff : float, optional
        Cut-off frequency (Hz) of the low-pass filter of positions and velocities, `inf` for no filter. Chosen by
        cross-validation by default.
    method : str
        "weighted": least squares weighted by the noise of each joint. "ordinary": equal weights. "huber": robust
        against outliers. "ridge": regularised towards the robot model, see `prior_torque`. "iv": instrumental
        variables from a simulation along `reference`. "entropic", "log_cholesky": physically consistent, see
        `prior_weight`.
    unknown : sequence of str
        Unknown parameters: "inertia", "inertia:LINK", "payload:FRAME", "armature", "viscous", "coulomb",
        "coulomb_sides", "stribeck", "offset"; those of drives also as "coulomb:DRIVE".
    drives : mapping or array_like, optional
        {name: {joint: factor}}, drives that turn with several joints in addition to one for each joint; or the
        transmission matrix (drives, joints).
    stribeck : array_like, optional
        Speed (rad/s, m/s) of the Stribeck term, required if it is unknown.
    weights : array_like, optional
        Weights (rows,) or (rows, nv) of the rows; 0 excludes a row.
    slow : float, optional
        Drive speed (rad/s, m/s) below which rows are excluded because the sign of dry friction is uncertain. By default
        2 % of the largest speed of each drive.
    delay : array_like
        Delay of the torques relative to the positions in seconds, one number or (nv,).
    every : int, optional
        Number of rows that are summed to one equation. By default a quarter of the period of the cut-off.
    grouping_by : {"rule", "qr"}
        Base parameters as in `robot.base_parameters()`, or by QR decomposition.
    prior_torque : float, optional
        Uncertainty of the model for "ridge" (N m at a reference motion of 2 rad/s, 6 rad/s²). By default 10 % of the
        largest RMS torque.
    prior_weight : float
        Weight of the divergence from the robot model for consistent parameters.
    reference : array_like, optional
        Commanded positions (rows, nv), required for "iv".
    control : tuple of array_like, optional
        Gains (kp, kd) of the drives for "iv". By default computed-torque control.
    retime : bool, optional
        Whether to estimate the sampling times of a polled log. By default if some rows repeat the row before.

    Returns
    -------
    Fit
        Base parameters with standard deviations, the robot that has them, predictions, and remarks on the log.

    Raises
    ------
    ArgumentError
        If the log or an option cannot be used. Doubtful logs raise a `LogWarning` instead, see `Fit.remarks`.

    Examples
    --------
    >>> fit = ls.identify(robot, t, q, tau)
    >>> fit = ls.identify(robot, ls.read_log("run.mcap", robot))
    >>> fit["joint1.viscous"], fit.deviations[fit.names.index("joint1.viscous")]
    >>> fit.robot.to_urdf()
    """
    t, q, tau, qd = log_arrays(t, q, tau, qd)
    one_of("method", method, METHODS)
    if slow is not None:
        real_number("slow", slow, at_least=0.0)
    if every is not None:
        real_number("every", every, at_least=1.0)
    if prior_torque is not None:
        real_number("prior_torque", prior_torque, above=0.0)
    real_number("prior_weight", prior_weight, above=0.0)
    if retime is not None and not isinstance(retime, bool):
        raise ArgumentError(f"retime is {shown(retime)}, expected True, False or None.")
    remarks = Remarks()
    regressor = Regressor(robot, unknown, drives, stribeck)
    base = base_form(regressor, grouping_by)
    recording = check_log(regressor, t, q, tau, qd, weights, remarks, retime)
    log, used_cutoff = _log_at_cutoff(recording, base, cutoff, slow, delay, remarks)
    samples = filtered_samples(log, used_cutoff)
    check_speeds(regressor, samples, remarks)
    exclude_rows(regressor, samples, slow, remarks)
    parts = validation_parts(samples)
    count = rows_per_sum(log.dt, used_cutoff) if every is None else min(int(every), log.rows)
    blocks, owner = split_blocks(parts, count, log.dt)
    factors = reduce_log(base, samples, count, blocks)
    sums = int(factors.count.sum())
    if sums <= len(base):
        raise ArgumentError(
            f"{sums} rows are left for {len(base)} unknown parameters, expected many more: log a longer motion, or "
            f"reduce unknown=."
        )
    prior = base.matrix @ regressor.prior
    torque = rms_torque(samples)
    settings: FitSettings = {
        "cutoff": used_cutoff, "cutoff_chosen": cutoff is None, "every": count, "slow": slow, "torque": torque,
        "prior_weight": prior_weight, "prior_torque": prior_torque, "rows": len(samples), "dt": log.dt, "sums": sums,
        "retime": retime,
    }  # fmt: skip
    scale = physical = None
    match method:
        case "ordinary":
            best = ordinary_least_squares(factors, prior, torque)
        case "huber":
            best, scale = huber_regression(factors, samples, prior, torque, blocks)
        case "ridge":
            within = settings["prior_torque"] = prior_torque or 0.1 * torque
            best = weighted_least_squares(factors, prior, ridge=within**-2, torque=torque)
        case "iv":
            along = _checked_instruments(robot, reference, control, t, samples)  # type: ignore[arg-type]
            first = weighted_least_squares(factors, prior, torque=torque)

            def robot_of(estimate: Estimate) -> Robot:
                return consistent_parameters(base, estimate, "entropic", torque, prior_weight).robot

            best = instrumental_variables(factors, samples, first, blocks, *along, robot_of)
        case _:
            best = weighted_least_squares(factors, prior, torque=torque)
            if method in ("entropic", "log_cholesky"):
                physical = consistent_parameters(base, best, method, torque, prior_weight)
                best = replace(best, values=base.matrix @ physical.x)
    covariance = best.covariance if method == "iv" else autocorrelated_covariance(factors, samples, best, scale)
    if method == "ridge":
        covariance = covariance + _prior_covariance(best, base, float(settings["prior_torque"] or 0.0))
    torques, rms, validation = cross_validate(factors, samples, prior, torque, parts, owner, best)
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    diagnose(base, samples, best, deviations, torques, parts, remarks)
    return Fit(
        regressor, base, method, best, covariance, samples, torques, rms, validation, dict(remarks.texts), settings,
        physical,
    )  # fmt: skip


def _checked_instruments(
    robot: Robot, reference: Logged | None, control: tuple[ArrayLike, ArrayLike] | None, t: Logged, samples: Samples
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
    """Return the reference at the samples, and the gains of the controller."""
    if robot.couplings:
        raise ArgumentError("method 'iv' does not support mimic joints: use robot.uncoupled.")
    if reference is None:
        raise ArgumentError(
            "method 'iv' needs reference=, the commanded positions (rows, nv), which are free of measurement noise."
        )
    return checked_reference(reference, t, samples, robot.nv), checked_gains(control, robot.nv)


def _prior_covariance(best: Estimate, base: BaseForm, prior_torque: float) -> np.ndarray:
    """Return the part of the covariance of a ridge estimate that comes from the uncertainty of the prior."""
    deviation = prior_torque / base.sizes
    shrinkage = np.linalg.inv(best.root.T @ best.root + np.diag(deviation**-2.0)) * deviation**-2.0
    return shrinkage @ np.diag(deviation**2) @ shrinkage.T


def _log_at_cutoff(
    recording: Recording, base: BaseForm, cutoff: float | None, slow: float | None, delay: ArrayLike, remarks: Remarks
) -> tuple[Log, float]:
    """Return the log with gaps interpolated for the cut-off and delays compensated, and the cut-off."""
    if cutoff is not None:
        longest = max(float(one.t[-1] - one.t[0]) for one in recording.trajectories)
        cutoff = _checked_cutoff(cutoff, recording.dt, longest)
        return _without_delay(recording.log(cutoff, remarks), delay, base.regressor.nv), cutoff
    log = recording.log(None, Remarks(quiet=True))
    for _ in range(3):  # at a lower cut-off longer gaps are interpolated, which allows still lower cut-offs
        cutoff = choose_cutoff(base, _without_delay(log, delay, base.regressor.nv), slow)
        before, log = log, recording.log(cutoff, Remarks(quiet=True))
        if len(log.segments) == len(before.segments):
            break
    assert cutoff is not None
    return _without_delay(recording.log(cutoff, remarks), delay, base.regressor.nv), cutoff


def _without_delay(log: Log, delay: ArrayLike, nv: int) -> Log:
    """Return the log with delays of the torques (seconds) compensated."""
    try:
        delays = np.asarray(delay, dtype=float)
    except (TypeError, ValueError):
        delays = np.array(np.nan)
    if delays.shape not in ((), (nv,)) or not np.isfinite(delays).all():
        raise ArgumentError(f"delay is {shown(delay)}, expected seconds, one number or {nv}, one for each joint.")
    if not delays.any():
        return log
    delays = np.broadcast_to(delays, (nv,))
    segments = []
    for segment in log.segments:
        times = segment.t[:, None] + delays
        tau = np.stack([np.interp(times[:, k], segment.t, segment.tau[:, k]) for k in range(nv)], axis=1)
        outside = (times < segment.t[0]) | (times > segment.t[-1])
        segments.append(replace(segment, tau=tau, weight=np.where(outside, np.float32(0.0), segment.weight)))
    return replace(log, segments=tuple(segments))


def _checked_cutoff(cutoff: float, dt: float, longest: float) -> float:
    if isinstance(cutoff, bool) or not isinstance(cutoff, (int, float, np.floating, np.integer)) or not cutoff > 0:
        raise ArgumentError(
            f"cutoff is {shown(cutoff)}, expected a frequency in Hz above 0, or infinity for no filter."
        )
    if cutoff * longest < 1.0:
        raise ArgumentError(
            f"cutoff is {float(cutoff):g} Hz, whose period is longer than the log of {longest:.4g} s, expected at "
            f"least {1 / longest:.2g} Hz."
        )
    if cutoff >= 0.5 / dt and np.isfinite(cutoff):
        raise ArgumentError(
            f"cutoff is {cutoff:g} Hz, expected less than half the log's rate of {1 / dt:.4g} Hz, or infinity for no "
            f"filter."
        )
    return float(cutoff)
