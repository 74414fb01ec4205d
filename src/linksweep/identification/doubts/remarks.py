"""Remarks on a fit: what of the log or of its result is doubtful, by name."""

from __future__ import annotations

import numpy as np

from linksweep.identification.doubts.agreement import Disagreement, disagreements
from linksweep.identification.doubts.blocks import DOUBT
from linksweep.identification.doubts.delay import delays_of
from linksweep.identification.doubts.described import TIME, UNIT, compared
from linksweep.identification.doubts.evidence import Evidence, Pieces, evidence_of
from linksweep.identification.doubts.order import Exchange, better_order
from linksweep.identification.estimate.least_squares import Estimate
from linksweep.identification.log.reading import Remarks
from linksweep.identification.log.signals import Samples
from linksweep.identification.model.columns import NOT_NEGATIVE, Columns
from linksweep.identification.model.grouping import Grouping

POOR = 0.5  # of a torque's own spread, in the residual
NOTABLE = 0.02  # of a torque's own spread, in the slow part of the residual: worth a look for joints in another order
MANY = 7.0  # standard deviations by which a value may be negative: noise of positions biases a fit by some of them
ROUNDING = 1e-6  # of a torque's size: a smaller residual does not tell one shift from another
SLOWLY = 0.4  # correlation of the residual from row to later row


def remark_fit(
    group: Grouping, samples: Samples, best: Estimate, deviations: np.ndarray, torques: np.ndarray, parts: Pieces,
    remarks: Remarks,
) -> None:  # fmt: skip
    """All remarks on a fit. deviations: (base,) of its values. torques: (rows, nv), as predicted. parts: of the log."""
    columns = group.columns
    negative = impossible(group, best, deviations)
    evidence = evidence_of(group, samples, best, parts)
    if evidence is not None:
        _remark_log(evidence, _driven(group, best, negative), _slow_residual(samples, torques), remarks)
    _remark_impossible(group, best, deviations, negative, evidence, remarks)
    remark_unknown(group, best, remarks)
    remark_misfit(columns, samples, torques, remarks)


def _remark_log(evidence: Evidence, driven: list[int], slow: np.ndarray, remarks: Remarks) -> None:
    """Signs, units, order and times. driven: joints with negative friction. slow: (nv,) of the residual."""
    columns = evidence.grouping.columns
    rms = np.sqrt(np.mean(np.square(evidence.samples.tau), axis=0))
    noisy = bool((evidence.best.noise > ROUNDING * rms).any())
    described = compared(evidence) if any(c.kind == "inertia" for c in columns.columns) else None
    apart = disagreements(evidence) if noisy else []
    delays = delays_of(evidence) if apart else None
    if delays is not None and delays[0].any():  # torques at other times disagree too
        apart = disagreements(evidence.at_times(delays[0]))
    poor = sorted({*np.flatnonzero(slow > NOTABLE).tolist(), *(one.joint for one in apart), *driven})
    exchange = better_order(evidence, poor) if poor else None
    if described is not None and described.inertia is not None and described.inertia.beyond(TIME):
        factor = described.inertia.value
        remarks(
            "time",
            f"inertia is {factor:.3g} times that of the model, measured by gravity; t seems to be "
            f"{_times(np.sqrt(factor))}: check its unit.",
        )
    elif described is not None and described.slight:
        remarks(
            "time",
            f"inertia is less than 1/{TIME:.0f} of the model's, measured by gravity; t seems to be too short: check "
            f"its unit.",
        )
    elif described is not None and described.unit is not None and described.unit.beyond(UNIT):
        remarks(
            "scale",
            f"torques are {described.unit.value:.3g} times those of the model in all joints; they should be in N m at "
            f"the joint (not in N mm, of the motor before its gear, or in A), and t in seconds.",
        )
    _remark_order(exchange, columns.robot.joint_names, remarks)
    against = described.against if described is not None else ()
    _remark_signs(columns, against, apart, driven, exchange, remarks)
    if noisy and not {"order", "time"} & remarks.said.keys():  # a shift would only hide these
        _remark_delay(evidence, *(delays or delays_of(evidence)), remarks)


def impossible(group: Grouping, best: Estimate, deviations: np.ndarray) -> list[int]:
    """Base parameters that cannot be negative and are, by more than chance makes them."""
    from scipy.stats import norm

    bodies = ("m", "XX", "YY", "ZZ")
    positive = np.array([c.what in NOT_NEGATIVE or (c.is_body and c.what in bodies) for c in group.columns.columns])
    shares = group.matrix
    only = ((shares >= 0.0) & (positive | (np.abs(shares) < 1e-9))).all(axis=1)
    bar = max(MANY, float(norm.isf(DOUBT / max(1, int(only.sum())))))
    size = np.maximum(deviations, ROUNDING * np.max(best.noise) / group.sizes)
    return np.flatnonzero(only & best.known & (best.values < -bar * size)).tolist()


def _remark_impossible(
    group: Grouping, best: Estimate, deviations: np.ndarray, negative: list[int], evidence: Evidence | None,
    remarks: Remarks,
) -> None:  # fmt: skip
    if not negative:
        return
    order = sorted(negative, key=lambda k: best.values[k] / deviations[k])
    each = [f"{group.names[k]} = {best.values[k]:.3g} ± {deviations[k]:.2g}" for k in order]
    advice = "check signs, order and times of the log, and what is missing in the model"
    if evidence is not None and (evidence.best.values[negative] >= 0.0).all():
        advice = f"noise of the positions may be the reason: try cutoff={evidence.samples.cutoff:.2g}"
    remarks("impossible", f"no robot has {_some(each)}, which cannot be negative; {advice}.")


def _remark_order(exchange: Exchange | None, names: tuple[str, ...], remarks: Remarks) -> None:
    if exchange is not None and len(exchange.joints) == 2:
        a, b = (names[k] for k in exchange.joints)
        remarks(
            "order",
            f"the log fits much better with the {exchange.what} of {a} and {b} exchanged; check the order of the "
            f"columns.",
        )


def _remark_signs(
    columns: Columns, against: tuple[int, ...], apart: list[Disagreement], driven: list[int], exchange: Exchange | None,
    remarks: Remarks,
) -> None:  # fmt: skip
    """Signs and units of single joints. driven: joints whose friction is negative, as if it drove them."""
    exchanged = exchange.joints if exchange is not None and len(exchange.joints) == 2 else ()
    turned = exchange.joints if exchange is not None and len(exchange.joints) == 1 else ()
    first = apart[0] if apart and apart[0].joint not in exchanged else None
    reasons = {k: "friction drives it" for k in driven if k not in exchanged}
    reasons |= {k: "its torques go against those of the model" for k in against}
    if first is not None and first.factor < 0.0:
        reasons[first.joint] = "its torques go against what the other joints' torques say of its links"
    reasons |= {k: "the log fits much better with its positions turned round" for k in turned}
    names = columns.robot.joint_names
    if reasons:
        each = [f"{names[k]} ({why})" for k, why in sorted(reasons.items())]
        remarks("signs", f"torques and positions do not agree in sign: {_some(each)}; check both.")
    if first is not None and first.factor > 0.0 and first.joint not in reasons:
        remarks(
            "scale",
            f"torques of {names[first.joint]} are about {first.factor:.2g} times those that the other joints' torques "
            f"say of its links; check their unit, and the order of the columns.",
        )


def _driven(group: Grouping, best: Estimate, negative: list[int]) -> list[int]:
    """Joints whose friction is negative: one of its terms significantly, and the other not positive."""
    columns, by_name = group.columns, dict(zip(group.names, best.values, strict=True))
    found = []
    for drive, name in enumerate(columns.drive_names):
        own = [f"{name}.{what}" for what in ("viscous", "coulomb")]
        if any(group.names[k] in own for k in negative) and all(by_name.get(one, 0.0) <= 0.0 for one in own):
            found += np.flatnonzero(columns.acts[drive]).tolist()
    return sorted(set(found))


def _slow_residual(samples: Samples, torques: np.ndarray) -> np.ndarray:
    """(nv,) the part of the residual that lasts for half a period of the cut-off, in parts of the torque's spread."""
    lag = max(1, round(0.5 / (samples.dt * samples.cutoff)))
    found = np.zeros(torques.shape[1])
    for k in range(len(found)):
        used = samples.weight[:, k] > 0
        rest = np.where(used, samples.tau[:, k] - torques[:, k], 0.0)
        both = int(np.count_nonzero(used[lag:] & used[:-lag]))
        spread = float(np.std(samples.tau[used, k])) if used.any() else 0.0
        if both and spread > 0.0:
            found[k] = np.sqrt(max(0.0, float(rest[lag:] @ rest[:-lag]) / both)) / spread
    return found


def _remark_delay(evidence: Evidence, late: np.ndarray, errors: np.ndarray, remarks: Remarks) -> None:
    """Torques that are late or early against positions. late, errors: (nv,) as of `delays_of`."""
    samples = evidence.samples
    moved = late != 0.0
    if not moved.any():
        return
    if moved.all() and np.ptp(late) <= max(2.0 * samples.dt, 0.2 * np.abs(late).max()):
        where, give = _milliseconds(late.mean(), errors.max()), f"delay={late.mean():.4g}"
    else:
        names = np.array(evidence.grouping.columns.robot.joint_names)[moved]
        each = zip(names, late[moved], errors[moved], strict=True)
        where = f"at other times ({', '.join(f'{name} {_milliseconds(x, error)}' for name, x, error in each)})"
        give = f"delay={np.round(late * moved, 5).tolist()}"
    remarks("delay", f"torques fit better when they are taken {where}: give {give} if they are late or early.")


def _milliseconds(late: float, error: float) -> str:
    return f"{abs(1e3 * late):.3g} ± {1e3 * error:.1g} ms {'later' if late > 0 else 'earlier'}"


def remark_misfit(columns: Columns, samples: Samples, torques: np.ndarray, remarks: Remarks) -> None:
    """Torques with a large residual that lasts, as noise does not: other zeros, another order, another robot."""
    lag = max(5, round(1.0 / (samples.dt * samples.cutoff)))  # what passed the filter as noise is forgotten by then
    poor = []
    for k, name in enumerate(columns.robot.joint_names):
        used = samples.weight[:, k] > 0
        rest = np.where(used, samples.tau[:, k] - torques[:, k], 0.0)
        spread = float(np.std(samples.tau[used, k])) if used.any() else 0.0
        square = float(rest @ rest)
        both = int(np.count_nonzero(used[lag:] & used[:-lag]))
        if not both or square <= (POOR * spread) ** 2 * used.sum():
            continue
        if rest[lag:] @ rest[:-lag] / both > SLOWLY * square / used.sum():
            poor.append(f"{name} ({100.0 * np.sqrt(square / used.sum()) / spread:.0f} %)")
    if poor:
        remarks(
            "misfit",
            f"much of the torque's variation is not explained: {', '.join(poor)}; check the order, zeros and units of "
            f"the joints, the noise of positions (a lower cutoff), and what is taken for known.",
        )


def remark_unknown(group: Grouping, best: Estimate, remarks: Remarks) -> None:
    names = [name for name, known in zip(group.names, best.known, strict=True) if not known]
    if names:
        remarks("unknown", f"the log does not determine {_some(names, 8)}; their values are those of the model.")


def _times(factor: float) -> str:
    return f"{factor:.2g} times too large" if factor > 1.0 else f"{1.0 / factor:.2g} times too small"


def _some(names: list[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
