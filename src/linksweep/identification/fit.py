"""`identify`: from a log to numbers, their standard deviations, and a robot that has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.identification.doubts.remarks import remark_fit
from linksweep.identification.estimate.band import choose_cutoff, every_of
from linksweep.identification.estimate.essential import essential
from linksweep.identification.estimate.least_squares import Estimate, estimate, ordinary
from linksweep.identification.estimate.prediction import checked_against, predicted
from linksweep.identification.estimate.robust import huber
from linksweep.identification.estimate.spread import coloured
from linksweep.identification.estimate.triangles import Triangles, blocks_of, parts_of, triangles
from linksweep.identification.log.filters import low_passed
from linksweep.identification.log.reading import Log, Recordings, Remarks, read_log
from linksweep.identification.log.signals import Samples, leave_out, remark_speeds, samples_of
from linksweep.identification.model.columns import USUAL, Columns
from linksweep.identification.model.grouping import Grouping, grouping
from linksweep.identification.physical.bodies import Physical, consistent
from linksweep.identification.threads import one_thread
from linksweep.support.lazy import lazy
from linksweep.support.messages import is_one_of, nearest, shown

if TYPE_CHECKING:
    from pathlib import Path

    from linksweep.identification.estimate.instruments import Gains
    from linksweep.identification.log.reading import Logged
    from linksweep.robot.robot import Robot


METHODS = ("weighted", "ordinary", "huber", "ridge", "iv", "entropic", "log_cholesky")


class FitSettings(TypedDict):
    """What a fit was made with; torque: the largest of the joints' root mean squares."""

    cutoff: float  # Hz
    cutoff_chosen: bool
    every: int
    slow: float | None
    torque: float
    prior_weight: float
    prior_torque: float | None
    rows: int
    dt: float
    sums: int  # of rows, of all joints
    retime: bool | None


@dataclass(frozen=True)
class Validation:
    """A log that was not fitted: predicted torques (rows, nv), and (nv,) the rms of measured less predicted torques
    and of the measured ones.
    """

    joints: tuple[str, ...]
    predicted: np.ndarray
    rms: np.ndarray
    torque: np.ndarray


@dataclass(frozen=True)
class Fit:
    """Base parameters found from a log. Arrays follow `names`; numbers of joints follow `robot.joint_names`.

    values, covariance: (base,), (base, base). determined: (base,) whether the log shows a number at all; where it does
    not, the description's value stands. noise: (nv,) of a row. rms: (nv,) of measured less predicted torque, row by
    row. validation: (parts, nv) the same for each part of the log, predicted by a fit without it. remarks: what was
    doubtful, by name. settings: what the fit was made with.
    """

    columns: Columns
    grouping: Grouping
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
        return self.grouping.names

    @property
    def values(self) -> np.ndarray:
        return self.estimate.values

    @property
    def determined(self) -> np.ndarray:
        return self.estimate.known

    @property
    def noise(self) -> np.ndarray:
        return self.estimate.noise

    @property
    def condition(self) -> float:
        """Of the weighted regressor with columns of equal length."""
        return self.estimate.condition

    @property
    def cutoff(self) -> float:
        """Hz; infinite where positions were not filtered."""
        return self.samples.cutoff

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviations (base,); infinite where a number is not determined."""
        sizes = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return np.where(self.determined, sizes, np.inf)

    @property
    def correlation(self) -> np.ndarray:
        """(base, base), NaN beside numbers that are not determined."""
        sizes = np.sqrt(np.diag(self.covariance))
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(
                np.outer(self.determined, self.determined), self.covariance / np.outer(sizes, sizes), np.nan
            )

    def interval(self, level: float = 0.95) -> np.ndarray:
        """(base, 2): in which each number lies with this confidence."""
        from scipy.stats import norm

        if not 0.0 < level < 1.0:
            raise ArgumentError(f"level is {level!r}, expected a confidence between 0 and 1, such as 0.95.")
        half = norm.ppf(0.5 + 0.5 * level) * self.deviations
        return np.stack([self.values - half, self.values + half], axis=1)

    def __getitem__(self, name: str) -> float:
        if name not in self.names:
            raise ArgumentError(
                f"the fit has no number {shown(name)}{nearest(name, self.names)}, expected one of fit.names."
            )
        return float(self.values[self.names.index(name)])

    @property
    def groups(self) -> dict[str, str]:
        """What is grouped into each number."""
        return {name: self.grouping.text(name) for name in self.names}

    @property
    def unknown(self) -> tuple[str, ...]:
        """Numbers that this log does not determine."""
        return tuple(name for name, shown_ in zip(self.names, self.determined, strict=True) if not shown_)

    def essential(self, relative: float = 0.3) -> tuple[str, ...]:
        """The numbers without which torques would be predicted worse (Gautier's and Presse's essential parameters).

        relative: a number that is more certain than this part of its size stays in any case.
        """
        kept = essential(self.estimate, self.covariance, self.settings["sums"], relative)
        return tuple(self.names[k] for k in kept)

    @one_thread()
    def predict(self, t: ArrayLike, q: ArrayLike, qd: ArrayLike | None = None, *, filtered: bool = True) -> np.ndarray:
        """Torques (rows, nv) at the rows of another log, whose positions are filtered as this one's were.

        filtered: torques without what is above the cut-off, as low-passed torques are: noise of the accelerations, and
        the steps of dry friction. Rows that repeat the row before (a polled log) have the torques of that row.
        """
        recordings = read_log(self.columns, t, q, None, qd, None, Remarks(quiet=True), self.settings["retime"])
        samples = samples_of(recordings.log(self.cutoff, Remarks(quiet=True)), self.cutoff)
        found = predicted(self.grouping, samples, self.values)
        if filtered:
            found = np.concatenate([low_passed(found[a:b], samples.dt, self.cutoff) for a, b in samples.bounds])
        times = recordings.parts[0].times
        if len(samples.t) == len(times) and np.array_equal(samples.t, times):
            return found
        inside = np.zeros(len(times), bool)
        slack = 1e-6 * samples.dt
        for a, b in samples.bounds:
            inside |= (times >= samples.t[a] - slack) & (times <= samples.t[b - 1] + slack)
        if not inside.all():
            row = int(np.argmin(inside))
            raise ArgumentError(
                f"predict: row {row} at t = {np.asarray(t, dtype=float)[row]:.6g} s is too far from others to have a "
                f"velocity, expected a log without such rows: leave it out."
            )
        return np.stack([np.interp(times, samples.t, column) for column in found.T], axis=1)

    @lazy
    def physical_numbers(self) -> Physical:
        """Consistent numbers of all unknowns."""
        torque, weight = self.settings["torque"], self.settings["prior_weight"]
        return self.physical or consistent(self.columns, self.grouping, self.estimate, "entropic", torque, weight)

    @property
    def parameters(self) -> dict[str, float]:
        """Every unknown by its own name, physically consistent: the robot's. What torques do not show is as
        described.
        """
        return dict(zip(self.columns.names, self.physical_numbers.x.tolist(), strict=True))

    @property
    def robot(self) -> Robot:
        """The robot with these numbers: consistent bodies, armatures, damping and friction that are not negative."""
        return self.physical_numbers.robot

    @lazy
    def robot_rms(self) -> np.ndarray:
        """(nv,) as `rms`, of the consistent parameters (with those that a Robot cannot store)."""
        torques = predicted(self.grouping, self.samples, self.grouping.matrix @ self.physical_numbers.x)
        used = self.samples.weight > 0
        count = used.sum(axis=0)
        square = np.sum(np.square(self.samples.tau - torques), axis=0, where=used)
        return np.sqrt(square / np.where(count, count, np.nan))

    def validate(self, t: ArrayLike, q: ArrayLike, tau: ArrayLike, qd: ArrayLike | None = None) -> Validation:
        """Compare the torques of another log with those that this fit predicts; arguments as of `identify`."""
        measured = np.asarray(tau, dtype=float)
        predicted_ = self.predict(t, q, qd)
        if measured.shape != predicted_.shape:
            raise ArgumentError(f"tau has shape {measured.shape}, expected {predicted_.shape}: a row for each of q.")
        used = np.isfinite(measured)
        count = np.maximum(used.sum(axis=0), 1)
        rest = np.where(used, measured - predicted_, 0.0)
        sizes = (np.sqrt(np.sum(np.square(x), axis=0) / count) for x in (rest, np.where(used, measured, 0.0)))
        return Validation(self.columns.robot.joint_names, predicted_, *sizes)

    def report(self, out: str | Path | None = None, validated: Mapping[str, Validation] | None = None) -> str:
        """Report the fit in Markdown; with `out`, a folder, also tables, plots and the robot as files in it.

        validated: results of `validate` to report, by the names of their logs.
        """
        from linksweep.identification.report import report

        return report(self, out, validated)

    def __repr__(self) -> str:
        shown_ = int(self.determined.sum())
        return (
            f"<Fit of {self.columns.full.name}: {shown_} of {len(self.names)} base parameters, {self.method}, rms "
            f"{' '.join(f'{x:.3g}' for x in self.rms)}>"
        )


@one_thread()
def identify(
    robot: Robot,
    t: ArrayLike,
    q: ArrayLike,
    tau: ArrayLike,
    qd: ArrayLike | None = None,
    *,
    cutoff: float | None = None,
    method: str = "weighted",
    unknown: Sequence[str] = USUAL,
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
    """Fit the numbers of a robot to measured torques.

    t: (rows,) seconds. q, tau, qd: (rows, nv), in the order of `robot.joint_names`; several trajectories as lists of
    arrays. cutoff: Hz, up to which the motion is believed; infinity for clean positions; None: chosen by how well
    torques are predicted. method: one of "weighted" (by the noise of each joint), "ordinary", "huber" (against
    outliers), "ridge" (towards the description, believed to `prior_torque` N m), "iv" (simulated instruments along
    `reference`), and the physically consistent "entropic" and "log_cholesky" (`prior_weight`).

    unknown: what is fitted, see `Columns`; everything else is taken from the description. drives: how drives turn with
    the joints, see `Columns`. weights: (rows,) or (rows, nv), 0 leaves a row out. slow: rad/s below which dry friction
    is not believed. delay: seconds by which torques stand late. every: how many rows are summed to one.
    stribeck: m/s or rad/s, the speed of the Stribeck term, if that is unknown. grouping_by: "rule", links as in base
    parameters, or "qr". control: of "iv", (kp, kd) of the drives; None: computed torque. retime: whether rows of a
    polled log, which repeats rows, are moved to the times at which the controller sampled them; None: where the log
    repeats rows.
    """
    if not is_one_of(method, METHODS):
        raise ArgumentError(
            f"method is {shown(method)}{nearest(method, METHODS)}, expected one of {', '.join(METHODS)}."
        )
    for name, value, least in (
        ("slow", slow, 0.0), ("every", every, 1.0), ("prior_weight", prior_weight, 1e-300),
        ("prior_torque", prior_torque, 1e-300),
    ):  # fmt: skip
        _check_number(name, value, least)
    if retime is not None and not isinstance(retime, bool):
        raise ArgumentError(f"retime is {shown(retime)}, expected True, False or None.")
    remarks = Remarks()
    columns = Columns(robot, unknown, drives, stribeck)
    group = grouping(columns, grouping_by)
    recordings = read_log(columns, t, q, tau, qd, weights, remarks, retime)
    log, band = _in_band(recordings, group, cutoff, slow, delay, remarks)
    samples = samples_of(log, band)
    remark_speeds(columns, samples, remarks)
    leave_out(columns, samples, slow, remarks)
    parts = parts_of(samples)
    count = every_of(log.dt, band) if every is None else min(int(every), log.rows)
    blocks, owner = blocks_of(parts, count, log.dt)
    found = triangles(group, samples, count, blocks)
    _check_enough(group, found)
    prior = group.matrix @ columns.prior
    torque = float(np.sqrt(np.mean(np.square(samples.tau), axis=0)).max())
    settings: FitSettings = {
        "cutoff": band, "cutoff_chosen": cutoff is None, "every": count, "slow": slow, "torque": torque,
        "prior_weight": prior_weight, "prior_torque": prior_torque, "rows": len(samples), "dt": log.dt,
        "sums": int(found.count.sum()), "retime": retime,
    }  # fmt: skip
    along = _along(robot, reference, control, t, samples, columns) if method == "iv" else None
    best, scale, physical = _estimated(method, found, samples, prior, settings, blocks, along)
    covariance = best.covariance if method == "iv" else coloured(found, samples, best, scale)
    if method == "ridge":
        covariance = covariance + _prior_share(best, group, settings)
    torques, rms, validation = checked_against(found, samples, prior, torque, parts, owner, best)
    deviations = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    remark_fit(group, samples, best, deviations, torques, parts, remarks)
    return Fit(
        columns, group, method, best, covariance, samples, torques, rms, validation, dict(remarks.said), settings,
        physical,
    )  # fmt: skip


def _estimated(
    method: str, found: Triangles, samples: Samples, prior: np.ndarray, settings: FitSettings,
    parts: list[list[tuple[int, int]]], along: tuple[np.ndarray, Gains] | None,
) -> tuple[Estimate, np.ndarray | None, Physical | None]:  # fmt: skip
    """The estimate by a method, the weights of sums where it has some, and its consistent numbers where it is one."""
    torque, columns, group = settings["torque"], found.grouping.columns, found.grouping
    if method == "ordinary":
        return ordinary(found, prior, torque), None, None
    if method == "huber":
        best, scale, _ = huber(found, samples, prior, torque, parts)
        return best, scale, None
    if method == "ridge":
        within = settings["prior_torque"] or 0.1 * torque
        settings["prior_torque"] = within
        return estimate(found, prior, pull=within**-2, torque=torque), None, None
    best = estimate(found, prior, torque=torque)
    if along is not None:
        from linksweep.identification.estimate.instruments import instrumented

        def robot_of(now: Estimate) -> Robot:
            return consistent(columns, group, now, "entropic", torque, settings["prior_weight"]).robot

        return instrumented(found, samples, best, parts, *along, robot_of), None, None
    if method in ("entropic", "log_cholesky"):
        physical = consistent(columns, group, best, method, torque, settings["prior_weight"])
        return replace(best, values=group.matrix @ physical.x), None, physical
    return best, None, None


def _along(
    robot: Robot, reference: Logged | None, control: tuple[ArrayLike, ArrayLike] | None, t: Logged,
    samples: Samples, columns: Columns,
) -> tuple[np.ndarray, Gains]:  # fmt: skip
    """The reference at the samples, and gains."""
    from linksweep.identification.estimate.instruments import checked_control, checked_reference

    if robot.couplings:
        raise ArgumentError("method 'iv' takes no joints that follow others, expected free ones: use robot.uncoupled.")
    if reference is None:
        raise ArgumentError(
            "method 'iv' needs reference=, the positions that were asked for, (rows, nv): measured ones carry the "
            "noise that instruments must not have."
        )
    return checked_reference(reference, t, samples, columns.nv), checked_control(control, columns.nv)


def _prior_share(best: Estimate, group: Grouping, settings: FitSettings) -> np.ndarray:
    """What the description's own uncertainty leaves of the values that a ridge draws to it."""
    within = float(settings["prior_torque"] or 0.0) / group.sizes
    shrink = np.linalg.inv(best.root.T @ best.root + np.diag(within**-2.0)) * within**-2.0
    return shrink @ np.diag(within**2) @ shrink.T


def _in_band(
    recordings: Recordings,
    group: Grouping,
    cutoff: float | None,
    slow: float | None,
    delay: ArrayLike,
    remarks: Remarks,
) -> tuple[Log, float]:
    """The log with gaps bridged that are short beside the period of the cut-off, and the cut-off."""
    if cutoff is not None:
        longest = max(float(part.t[-1] - part.t[0]) for part in recordings.parts)
        band = _checked_cutoff(cutoff, recordings.dt, longest)
        return _shifted(recordings.log(band, remarks), delay, group.columns), band
    log = recordings.log(None, Remarks(quiet=True))
    for _ in range(3):  # a lower cut-off bridges longer gaps, which makes lower cut-offs possible
        band = choose_cutoff(group, _shifted(log, delay, group.columns), slow)
        before, log = log, recordings.log(band, Remarks(quiet=True))
        if len(log.stretches) == len(before.stretches):
            break
    return _shifted(recordings.log(band, remarks), delay, group.columns), band


def _shifted(log: Log, delay: ArrayLike, columns: Columns) -> Log:
    """Torques taken as many seconds later as they stand late."""
    try:
        late = np.asarray(delay, dtype=float)
    except (TypeError, ValueError):
        late = np.array(np.nan)
    if late.shape not in ((), (columns.nv,)) or not np.isfinite(late).all():
        raise ArgumentError(
            f"delay is {shown(delay)}, expected seconds, one number or {columns.nv}, one for each joint."
        )
    if not late.any():
        return log
    late = np.broadcast_to(late, (columns.nv,))
    moved = []
    for stretch in log.stretches:
        times = stretch.t[:, None] + late
        tau = np.stack([np.interp(times[:, k], stretch.t, stretch.tau[:, k]) for k in range(columns.nv)], axis=1)
        outside = (times < stretch.t[0]) | (times > stretch.t[-1])
        moved.append(replace(stretch, tau=tau, weight=np.where(outside, np.float32(0.0), stretch.weight)))
    return replace(log, stretches=tuple(moved))


def _check_number(name: str, value: float | None, least: float) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not least <= value < np.inf:
        expected = {0.0: "zero or more", 1.0: "1 or more"}.get(least, "above 0")
        raise ArgumentError(f"{name} is {shown(value)}, expected a number {expected}.")


def _checked_cutoff(cutoff: float, dt: float, longest: float) -> float:
    if isinstance(cutoff, bool) or not isinstance(cutoff, (int, float, np.floating, np.integer)) or not cutoff > 0:
        raise ArgumentError(
            f"cutoff is {shown(cutoff)}, expected a frequency in Hz above 0, or infinity for no filter."
        )
    if cutoff * longest < 1.0:
        raise ArgumentError(
            f"cutoff is {float(cutoff):g} Hz, which has no full period in a log of {longest:.4g} s, expected at least "
            f"{1 / longest:.2g} Hz."
        )
    if cutoff < 0.5 / dt:
        return float(cutoff)
    if np.isfinite(cutoff):
        raise ArgumentError(
            f"cutoff is {cutoff:g} Hz, expected less than half the log's rate of {1 / dt:.4g} Hz, or infinity for no "
            f"filter."
        )
    return float("inf")


def _check_enough(group: Grouping, found: Triangles) -> None:
    rows = int(found.count.sum())
    if rows <= len(group):
        raise ArgumentError(
            f"{rows} rows are left for {len(group)} unknown numbers, expected many more: log a longer motion, or fewer "
            f"unknowns."
        )
