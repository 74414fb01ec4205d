"""Diagnostics of a fit: remarks on signs, units, order and delays of the log, and on implausible results."""

from __future__ import annotations

import numpy as np

from linksweep.identification.base_form import BaseForm
from linksweep.identification.estimate import Estimate
from linksweep.identification.log import Remarks, listed
from linksweep.identification.log_tests import (
    FALSE_ALARM,
    TIME,
    UNIT,
    BlockedLog,
    InconsistentJoint,
    ModelComparison,
    Reordering,
    best_reordering,
    blocked_log,
    compare_with_model,
    estimate_delays,
    inconsistent_joints,
)
from linksweep.identification.reduction import Parts
from linksweep.identification.regressor import NON_NEGATIVE, Regressor
from linksweep.identification.samples import Samples

POOR = 0.5  # of a torque's standard deviation: a large residual
NOTABLE = 0.02  # of a torque's standard deviation, for the slow part of the residual: swapped joints are tried
NEGATIVE = 7.0  # standard deviations by which a value may be negative: noise of positions biases a fit by some of them
ROUNDING = 1e-6  # of the torque: a smaller residual does not determine a delay
AUTOCORRELATED = 0.4  # autocorrelation of a residual that is not noise


def diagnose(
    base: BaseForm, samples: Samples, best: Estimate, deviations: np.ndarray, torques: np.ndarray, parts: Parts,
    remarks: Remarks,
) -> None:  # fmt: skip
    """Make all remarks on a fit. deviations: (base,) standard deviations. torques: (rows, nv) predicted torques."""
    negative = negative_parameters(base, best, deviations)
    log = blocked_log(base, samples, best, parts)
    if log is not None:
        _diagnose_log(log, _negative_friction(base, best, negative), _slow_residual(samples, torques), remarks)
    if negative:
        _remark_negative(base, best, deviations, negative, log, remarks)
    unknown = [name for name, determined in zip(base.names, best.determined, strict=True) if not determined]
    if unknown:
        remarks("unknown", f"the log does not determine {listed(unknown, 8)}; their values are those of the model.")
    _remark_misfit(base.regressor, samples, torques, remarks)


def _diagnose_log(log: BlockedLog, negative_friction: list[int], slow_residual: np.ndarray, remarks: Remarks) -> None:
    """Make remarks on signs, units, order and delays.

    negative_friction: joints with negative friction. slow_residual: (nv,) as of `_slow_residual`.
    """
    regressor = log.base.regressor
    rms = np.sqrt(np.mean(np.square(log.samples.tau), axis=0))
    noisy = bool((log.best.noise > ROUNDING * rms).any())
    model = compare_with_model(log) if any(p.kind == "inertia" for p in regressor.parameters) else None
    inconsistent = inconsistent_joints(log) if noisy else []
    delays = estimate_delays(log) if inconsistent else None
    if delays is not None and delays[0].any():  # delayed torques are inconsistent too
        inconsistent = inconsistent_joints(log.with_delay(delays[0]))
    poor = {*np.flatnonzero(slow_residual > NOTABLE).tolist(), *(one.joint for one in inconsistent)}
    poor = sorted(poor | set(negative_friction))
    reordering = best_reordering(log, poor) if poor else None
    if model is not None:
        _remark_units(model, remarks)
    names = regressor.robot.joint_names
    if reordering is not None and len(reordering.joints) == 2:
        a, b = (names[k] for k in reordering.joints)
        remarks(
            "order",
            f"the log fits much better with the {reordering.what} of {a} and {b} swapped; check the order of "
            f"the columns.",
        )
    reversed_joints = model.reversed_joints if model is not None else ()
    _remark_signs(names, reversed_joints, inconsistent, negative_friction, reordering, remarks)
    if noisy and not {"order", "time"} & remarks.texts.keys():  # a delay would only hide these errors
        _remark_delay(log, *(delays or estimate_delays(log)), remarks)


def _remark_units(model: ModelComparison, remarks: Remarks) -> None:
    if model.inertia is not None and model.inertia.beyond(TIME):
        factor = model.inertia.value
        scale = np.sqrt(factor)
        times = f"{scale:.2g} times too large" if scale > 1.0 else f"{1.0 / scale:.2g} times too small"
        remarks(
            "time",
            f"inertia relative to gravity is {factor:.3g} times that of the model, as if t were {times}; check the "
            f"unit of t.",
        )
    elif model.low_inertia:
        remarks(
            "time",
            f"inertia relative to gravity is less than 1/{TIME:.0f} of the model's, as if t were too small; check the "
            f"unit of t.",
        )
    elif model.torque is not None and model.torque.beyond(UNIT):
        remarks(
            "scale",
            f"torques of all joints are {model.torque.value:.3g} times those of the model; expected N m at the joint "
            f"(not N mm, motor torques before the gear, or A), and t in seconds.",
        )


def negative_parameters(base: BaseForm, best: Estimate, deviations: np.ndarray) -> list[int]:
    """Return the indices of base parameters that are significantly negative but cannot be."""
    from scipy.stats import norm

    positive = np.array(
        [p.what in NON_NEGATIVE or (p.is_body and p.what in ("m", "XX", "YY", "ZZ")) for p in base.regressor.parameters]
    )
    only_positive = ((base.matrix >= 0.0) & (positive | (np.abs(base.matrix) < 1e-9))).all(axis=1)
    critical = max(NEGATIVE, float(norm.isf(FALSE_ALARM / max(1, int(only_positive.sum())))))
    size = np.maximum(deviations, ROUNDING * np.max(best.noise) / base.sizes)
    return np.flatnonzero(only_positive & best.determined & (best.values < -critical * size)).tolist()


def _remark_negative(
    base: BaseForm, best: Estimate, deviations: np.ndarray, negative: list[int], log: BlockedLog | None,
    remarks: Remarks,
) -> None:  # fmt: skip
    order = sorted(negative, key=lambda k: best.values[k] / deviations[k])
    each = [f"{base.names[k]} = {best.values[k]:.3g} ± {deviations[k]:.2g}" for k in order]
    advice = "check signs, order and times of the log, and what the model lacks"
    if log is not None and (log.best.values[negative] >= 0.0).all():
        advice = f"noise of the positions is a possible cause: try cutoff={log.samples.cutoff:.2g}"
    remarks("impossible", f"{listed(each)} cannot be negative; {advice}.")


def _remark_signs(
    names: tuple[str, ...], reversed_joints: tuple[int, ...], inconsistent: list[InconsistentJoint],
    negative_friction: list[int], reordering: Reordering | None, remarks: Remarks,
) -> None:  # fmt: skip
    """Make remarks on the signs and units of single joints."""
    swapped = reordering.joints if reordering is not None and len(reordering.joints) == 2 else ()
    reversed_positions = reordering.joints if reordering is not None and len(reordering.joints) == 1 else ()
    first = inconsistent[0] if inconsistent and inconsistent[0].joint not in swapped else None
    reasons = {k: "its friction is negative" for k in negative_friction if k not in swapped}
    reasons |= {k: "its torques are opposite to those of the model" for k in reversed_joints}
    if first is not None and first.factor < 0.0:
        reasons[first.joint] = "its torques are opposite to those that follow from the other joints"
    reasons |= {k: "the log fits much better with its positions reversed" for k in reversed_positions}
    if reasons:
        each = [f"{names[k]} ({reason})" for k, reason in sorted(reasons.items())]
        remarks("signs", f"torques and positions do not agree in sign: {listed(each)}; check both.")
    if first is not None and first.factor > 0.0 and first.joint not in reasons:
        remarks(
            "scale",
            f"torques of {names[first.joint]} are about {first.factor:.2g} times those that follow from the other "
            f"joints; check their unit, and the order of the columns.",
        )


def _negative_friction(base: BaseForm, best: Estimate, negative: list[int]) -> list[int]:
    """Return the joints with negative friction: one term significantly negative, the other not positive."""
    regressor, values = base.regressor, dict(zip(base.names, best.values, strict=True))
    joints = set()
    for drive, name in enumerate(regressor.drive_names):
        terms = [f"{name}.{what}" for what in ("viscous", "coulomb")]
        if any(base.names[k] in terms for k in negative) and all(values.get(term, 0.0) <= 0.0 for term in terms):
            joints |= set(np.flatnonzero(regressor.acts[drive]).tolist())
    return sorted(joints)


def _lagged_residual(samples: Samples, torques: np.ndarray, joint: int, lag: int) -> tuple[float, float, float]:
    """Return the mean product of residuals `lag` rows apart, their mean square, and the variance of the torque.

    All are 0 if no two used rows are `lag` rows apart.
    """
    used = samples.weight[:, joint] > 0
    pairs = int(np.count_nonzero(used[lag:] & used[:-lag]))
    if not pairs:
        return 0.0, 0.0, 0.0
    residual = np.where(used, samples.tau[:, joint] - torques[:, joint], 0.0)
    product, square = float(residual[lag:] @ residual[:-lag]), float(residual @ residual)
    return product / pairs, square / int(used.sum()), float(np.std(samples.tau[used, joint])) ** 2


def _slow_residual(samples: Samples, torques: np.ndarray) -> np.ndarray:
    """Return the residual (nv,) that persists for half a period of the cut-off, relative to the torque's deviation."""
    lag = max(1, round(0.5 / (samples.dt * samples.cutoff)))
    shares = np.zeros(torques.shape[1])
    for k in range(len(shares)):
        product, _, variance = _lagged_residual(samples, torques, k, lag)
        if variance > 0.0:
            shares[k] = np.sqrt(max(0.0, product) / variance)
    return shares


def _remark_delay(log: BlockedLog, delays: np.ndarray, errors: np.ndarray, remarks: Remarks) -> None:
    """Make a remark on delays (nv,) of the torques, as of `estimate_delays`."""
    delayed = delays != 0.0
    if not delayed.any():
        return
    if delayed.all() and np.ptp(delays) <= max(2.0 * log.samples.dt, 0.2 * np.abs(delays).max()):
        where, argument = _milliseconds(delays.mean(), errors.max()), f"delay={delays.mean():.4g}"
    else:
        names = np.array(log.base.regressor.robot.joint_names)[delayed]
        each = zip(names, delays[delayed], errors[delayed], strict=True)
        where = ", ".join(f"{name} {_milliseconds(delay, error)}" for name, delay, error in each)
        argument = f"delay={np.round(delays * delayed, 5).tolist()}"
    remarks("delay", f"torques are shifted relative to positions: {where}; pass {argument} to compensate.")


def _milliseconds(delay: float, error: float) -> str:
    return f"{abs(1e3 * delay):.3g} ± {1e3 * error:.1g} ms {'late' if delay > 0 else 'early'}"


def _remark_misfit(regressor: Regressor, samples: Samples, torques: np.ndarray, remarks: Remarks) -> None:
    """Make a remark on joints with a large autocorrelated residual: wrong zeros, another order, another robot."""
    lag = max(5, round(1.0 / (samples.dt * samples.cutoff)))  # filtered noise is uncorrelated after this time
    poor = []
    for k, name in enumerate(regressor.robot.joint_names):
        product, square, variance = _lagged_residual(samples, torques, k, lag)
        if 0.0 < POOR**2 * variance < square and product > AUTOCORRELATED * square:
            poor.append(f"{name} ({100.0 * np.sqrt(square / variance):.0f} %)")
    if poor:
        remarks(
            "misfit",
            f"the residual is large compared with the torque's standard deviation: {', '.join(poor)}; check order, "
            f"zeros and units of the joints, noise of the positions (lower cutoff), and which parameters are unknown.",
        )
