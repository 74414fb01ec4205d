"""Estimators of base parameters: least squares, Huber, instrumental variables; covariance and essential parameters.

Unknowns are scaled to their natural units, y = size * value, the torque of a parameter at a reference motion. A
direction of y whose standard deviation would exceed the measured torques is not determined by the log: there the values
of the robot model are kept, and the parameters that contribute to the direction are reported as unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.identification.reduction import Parts, RFactors, reduce_log, summed_rows
from linksweep.identification.samples import Samples
from linksweep.support.messages import shown

if TYPE_CHECKING:
    from linksweep.identification.log import Logged
    from linksweep.robot.robot import Robot

ITERATIONS = 20
ROUNDING = 1e-11  # of the largest singular value
HUBER_BEND = 1.345  # standard deviations: 95 % efficiency for normal residuals
HUBER_PASSES = 12
IV_ROUNDS = 5
IV_STEP = 1e-3  # seconds: largest time step of the simulation
IV_BANDWIDTH = 2.0 * np.pi * 5.0  # rad/s of computed-torque control, if no gains are given
COVARIANCE_SUMS, COVARIANCE_WINDOWS = 24_000, 12  # sums, in windows, from which autocovariances are estimated

Gains = tuple[np.ndarray, np.ndarray] | None  # kp and kd of the drives; None for computed torque


@dataclass(frozen=True)
class Estimate:
    """Estimated base parameters.

    values: (base,). covariance: (base, base), for white noise. noise: (nv,) standard deviation of a row. row_scale:
    (nv,) divisor of the rows of each joint: its noise, or one number for all joints. determined: (base,) flags. root,
    target: (base, base), (base,): the log is equivalent to root @ values = target with unit noise. dof: (nv,) degrees
    of freedom that the fit takes from the rows of each joint. condition: condition number of the scaled regressor.
    """

    values: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    row_scale: np.ndarray
    determined: np.ndarray
    root: np.ndarray
    target: np.ndarray
    dof: np.ndarray
    condition: float


# ---- least squares
# -------------------------------------------------------------------------------------------------------


def weighted_least_squares(
    factors: RFactors, prior: np.ndarray, noise: np.ndarray | None = None, ridge: float = 0.0, torque: float = np.inf
) -> Estimate:
    """Return the least-squares estimate of all parts, with rows divided by the noise of their joint.

    prior: (base,) values of the robot model. noise: (nv,); None: estimated iteratively. ridge: weight of the prior, in
    rows per squared natural unit. torque: largest RMS torque.
    """
    whole = factors if factors.parts == 1 else factors.joined()
    if noise is not None:
        return _solve(whole, prior, noise, ridge, torque)
    noise = np.ones(len(whole.count[0]))
    estimate = _solve(whole, prior, noise, ridge, np.inf)
    for _ in range(ITERATIONS):
        before, noise = noise, _residual_noise(whole, estimate)
        estimate = _solve(whole, prior, noise, ridge, torque)
        if np.allclose(noise, before, rtol=1e-6, atol=0.0):
            break
    return estimate


def ordinary_least_squares(factors: RFactors, prior: np.ndarray, torque: float) -> Estimate:
    """Return the least-squares estimate with equal weights; its covariance assumes the same noise for all joints."""
    whole = factors.joined()
    equal = np.ones(len(whole.count[0]))
    first = _solve(whole, prior, equal, 0.0, np.inf)
    dof = max(1.0, float(whole.count.sum() - first.dof.sum()))
    noise = np.sqrt(whole.residual_squares(0, first.values).sum() / dof)
    estimate = _solve(whole, prior, equal * max(noise, _min_noise(whole)), 0.0, torque)
    return replace(estimate, noise=_residual_noise(whole, estimate))


def _min_noise(factors: RFactors) -> float:
    """Return the rounding error of a row, a lower bound of its noise."""
    largest = max(float(np.abs(R).max()) for R in factors.R[0])
    return 1e-15 * largest / np.sqrt(max(1, factors.count.max())) + 1e-300


def _residual_noise(whole: RFactors, estimate: Estimate) -> np.ndarray:
    """Return the residual standard deviation (nv,) of each joint."""
    dof = np.maximum(whole.count[0] - estimate.dof, 1.0)
    return np.maximum(np.sqrt(whole.residual_squares(0, estimate.values) / dof), _min_noise(whole))


def _solve(whole: RFactors, prior: np.ndarray, noise: np.ndarray, ridge: float, torque: float) -> Estimate:
    base = len(whole.base)
    sizes = whole.base.sizes
    blocks = [whole.base_rows(0, joint) / size for joint, size in enumerate(noise)]
    triangle = np.asarray(np.linalg.qr(np.concatenate(blocks), mode="r"))[: base + 1]
    root, target = triangle[:base, :base], triangle[:base, -1]
    natural = root / sizes
    left, singular, right = np.linalg.svd(natural, full_matrices=False)
    shown_ = (singular > ROUNDING * singular[0]) & (singular > 1.0 / torque)
    strength = np.where(shown_, singular, 0.0)
    # ridge regression: the prior as `ridge` further rows for every natural unit (A. E. Hoerl, R. W. Kennard 1970)
    towards = left.T @ (target - root @ prior)
    weight = strength / (strength**2 + ridge + (ridge == 0.0) * ~shown_)
    values = prior + (right.T @ (weight * towards)) / sizes
    inverse = (right[shown_].T / singular[shown_] if not ridge else right.T * weight) / sizes[:, None]
    hidden = np.linalg.norm(right[~shown_], axis=0) if not shown_.all() else np.zeros(base)
    dof = np.array(  # trace of the hat matrix, joint by joint
        [float(np.sum(np.square(block[:, :-1] @ (right.T * weight / sizes[:, None])))) for block in blocks]
    )
    spectrum = np.linalg.svd(natural / np.maximum(np.linalg.norm(natural, axis=0), 1e-300), compute_uv=False)
    condition = float(spectrum[0] / spectrum[-1]) if spectrum[-1] > 0.0 else np.inf
    return Estimate(values, inverse @ inverse.T, noise, noise, hidden < 1e-3, root, target, dof, condition)


# ---- Huber's estimator: P. J. Huber, "Robust estimation of a location parameter", 1964
# -----------------------------------


def huber_regression(
    factors: RFactors, samples: Samples, prior: np.ndarray, torque: float, parts: Parts
) -> tuple[Estimate, np.ndarray]:
    """Return the estimate that limits the influence of residuals beyond HUBER_BEND standard deviations.

    It is computed by iteratively reweighted least squares, with the noise of each joint from the median of its
    residuals. The second result (rows, nv) is the root of the weight of each sum, at its first row.
    """
    estimate = weighted_least_squares(factors, prior, torque=torque)
    scale = np.ones_like(samples.tau)
    for _ in range(HUBER_PASSES):
        before = estimate.values
        noise, inside, weight = _reweight(factors, samples, estimate, parts, scale)
        weighted = reduce_log(factors.base, samples, factors.every, parts, scale)
        estimate = weighted_least_squares(weighted, prior, noise=noise, torque=torque)
        change = np.abs(estimate.values - before) * factors.base.sizes
        if change.max() <= 1e-4 * noise.min() / np.sqrt(factors.count.sum()):
            break
    # Huber 1964: the information is the sum of psi', not of the weights
    return replace(estimate, covariance=estimate.covariance * weight / inside), scale


def _reweight(
    factors: RFactors, samples: Samples, estimate: Estimate, parts: Parts, scale: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """Set `scale`; return the noise (nv,), the share of sums within the bend, and the mean weight."""
    base = factors.base
    x = base.from_base @ estimate.values
    residuals: list[list[np.ndarray]] = [[] for _ in base.seen]
    firsts: list[list[np.ndarray]] = [[] for _ in base.seen]
    for rows in summed_rows(base, samples, factors.every, parts):
        for joint, seen in enumerate(base.seen):
            residuals[joint].append(rows.tau[joint] - x[seen] @ rows.X[joint])
            firsts[joint].append(rows.first[joint])
    noise = estimate.noise.copy()
    counts = np.zeros(3)
    for joint in range(len(noise)):
        residual, at = np.concatenate(residuals[joint]), np.concatenate(firsts[joint])
        if not len(residual):
            continue
        dof = max(0.1, 1.0 - estimate.dof[joint] / len(residual))
        noise[joint] = max(1.4826 * float(np.median(np.abs(residual))) / np.sqrt(dof), 1e-300)
        size = np.abs(residual) / noise[joint]
        weight = np.minimum(1.0, HUBER_BEND / np.maximum(size, 1e-300))
        scale[at, joint] = np.sqrt(weight)
        counts += [len(residual), float((size < HUBER_BEND).sum()), float(weight.sum())]
    return noise, counts[1] / counts[0], counts[2] / counts[0]


# ---- instrumental variables
# ---------------------------------------------------------------------------------------------- A. Janot, P.-O.
# Vandanjon and M. Gautier, "A generic instrumental variable approach for industrial robot identification", 2014
# (IDIM-IV). The robot of the last estimate is simulated under control along the reference. The regressor Z of this
# noise-free motion replaces the measured one on the left: Z^T (tau - X values) = 0, so that noise in positions does not
# bias the estimate. The covariance is (Z^T X)^-1 Z^T Z (X^T Z)^-1 with the noise of each joint.


def instrumental_variables(
    factors: RFactors, samples: Samples, first: Estimate, parts: Parts, reference: np.ndarray, gains: Gains,
    robot_of: Callable[[Estimate], Robot],
) -> Estimate:  # fmt: skip
    """Return the IV estimate, starting from a least-squares estimate.

    reference: (rows, nv) commanded positions at the rows of `samples`. robot_of: returns the robot of an estimate.
    """
    estimate = first
    for _ in range(IV_ROUNDS):
        simulated = _simulated(robot_of(estimate), samples, reference, gains)
        update = _solve_instruments(factors, samples, simulated, estimate, parts)
        change = np.abs(update.values - estimate.values) / np.sqrt(np.maximum(np.diag(update.covariance), 1e-300))
        estimate = update
        if change[estimate.determined].max(initial=0.0) < 0.05:
            break
    return estimate


def _solve_instruments(
    factors: RFactors, samples: Samples, simulated: Samples, last: Estimate, parts: Parts
) -> Estimate:
    base, size = factors.base, len(factors.base)
    ZX, ZZ, Zt = np.zeros((size, size)), np.zeros((size, size)), np.zeros(size)
    rows = (summed_rows(base, log, factors.every, parts) for log in (samples, simulated))
    for measured, instruments in zip(*rows, strict=True):
        for joint, seen in enumerate(base.seen):
            from_base = base.from_base[seen] / last.noise[joint]
            Z, X = from_base.T @ instruments.X[joint], from_base.T @ measured.X[joint]
            tau = measured.tau[joint] / last.noise[joint]
            ZX += Z @ X.T
            ZZ += Z @ Z.T
            Zt += Z @ tau
    unit = 1.0 / base.sizes
    known = last.determined
    scaled = (ZX * unit[:, None] * unit)[np.ix_(known, known)]
    inverse = np.zeros((size, size))
    inverse[np.ix_(known, known)] = np.linalg.inv(scaled) * unit[known][:, None] * unit[known]
    values = np.where(known, last.values + inverse @ (Zt - ZX @ last.values), last.values)
    square = sum(factors.residual_squares(part, values) for part in range(factors.parts))
    noise = np.sqrt(square / np.maximum(factors.count.sum(axis=0) - last.dof, 1.0))
    return replace(last, values=values, covariance=inverse @ ZZ @ inverse.T, noise=np.maximum(noise, 1e-300))


def _simulated(robot: Robot, samples: Samples, reference: np.ndarray, gains: Gains) -> Samples:
    """Return the samples of a simulation of the robot along the reference."""
    from linksweep.motion import QuinticSpline
    from linksweep.simulation import PD, RK4, ComputedTorque, simulate

    q, qd, qdd = (np.empty_like(samples.q) for _ in range(3))
    substeps = max(1, int(np.ceil(samples.dt / IV_STEP)))
    for a, b in samples.bounds:
        times = samples.dt * np.arange(b - a)
        path = QuinticSpline(reference[a:b], times, ends="not-a-knot")
        controller = ComputedTorque(path, IV_BANDWIDTH**2, 2.0 * IV_BANDWIDTH) if gains is None else PD(path, *gains)
        start = path(0.0)
        run = simulate(
            robot, start.q, start.qd, controller, times[-1], dt=samples.dt / substeps, every=substeps, dissipation=True,
            integrator=RK4(limits="ignore", progress=False),
        )  # fmt: skip
        if not np.isfinite(run.q).all():
            raise ArgumentError(
                "method 'iv': the simulation along the reference diverged; check the gains in control= and the unit of "
                "reference=."
            )
        q[a:b], qd[a:b], qdd[a:b] = run.q, run.qd, run.qdd
    return replace(samples, q=q, qd=qd, qdd=qdd)


def checked_reference(reference: Logged, t: Logged, samples: Samples, nv: int) -> np.ndarray:
    """Return the reference positions at the rows of the samples."""
    from scipy.interpolate import CubicSpline

    several = isinstance(t, (list, tuple)) and np.ndim(t[0]) == 1
    times = cast("Sequence[ArrayLike]", t if several else [t])
    references: object = reference if several else [reference]
    if not isinstance(references, (list, tuple)) or len(references) != len(times):
        raise ArgumentError(f"reference is {shown(reference)}, expected positions for each trajectory, as q.")
    resampled = np.empty_like(samples.q)
    for (a, b), index in zip(samples.bounds, samples.trajectory, strict=True):
        rows, at = np.asarray(references[index], dtype=float), np.asarray(times[index], dtype=float)
        if rows.shape != (len(at), nv) or not np.isfinite(rows).all():
            raise ArgumentError(
                f"reference has shape {rows.shape}, expected finite positions ({len(at)}, {nv}), a row for each of t."
            )
        increasing = np.concatenate([[True], np.diff(at) > 0])
        resampled[a:b] = CubicSpline(at[increasing], rows[increasing])(samples.t[a:b])
    return resampled


def checked_gains(control: tuple[ArrayLike, ArrayLike] | None, nv: int) -> Gains:
    if control is None:
        return None
    try:
        kp, kd = (np.broadcast_to(np.asarray(gain, dtype=float), (nv,)) for gain in control)
    except (TypeError, ValueError):
        kp = kd = np.full(nv, np.nan)
    if not ((kp > 0) & (kd >= 0) & np.isfinite(kp + kd)).all():
        raise ArgumentError(f"control is {shown(control)}, expected (kp, kd), each a number above 0 or {nv} of them.")
    return kp, kd


# ---- covariance
# ---------------------------------------------------------------------------------------------------------- Residuals
# are rarely white, because friction, elasticity and torque ripple are not modelled. The covariance uses their
# autocovariance r: C = A^-1 (sum over joints of X^T T(r) X / noise^4) A^-1 with A = X^T X / noise^2 and the Toeplitz
# matrix T(r) of a stationary residual, independent from joint to joint. r is tapered by a flat-top window (D. N.
# Politis, "Adaptive bandwidth choice", 2003), so that white noise gives the textbook covariance.


def autocorrelated_covariance(
    factors: RFactors, samples: Samples, estimate: Estimate, scale: np.ndarray | None = None
) -> np.ndarray:
    """Return the covariance (base, base) of an estimate for autocorrelated residuals; scale as in `summed_rows`."""
    base, every = factors.base, factors.every
    x = base.from_base @ estimate.values
    X: list[list[np.ndarray]] = [[] for _ in base.seen]
    residuals: list[list[np.ndarray]] = [[] for _ in base.seen]
    for start, end in _windows(samples, every):
        count = -(-(end - start) // every)
        grids = [(np.zeros((count, int(seen.sum()))), np.zeros(count)) for seen in base.seen]
        for rows in summed_rows(base, samples, every, [[(start, end)]], scale):
            for joint, (grid, residual) in enumerate(grids):
                at = (rows.first[joint] - start) // every
                grid[at] = rows.X[joint].T
                residual[at] = rows.tau[joint] - x[base.seen[joint]] @ rows.X[joint]
        for joint, (grid, residual) in enumerate(grids):
            X[joint].append(grid)
            residuals[joint].append(residual)
    count = factors.count.sum(axis=0)
    meat = np.zeros_like(estimate.covariance)
    for joint, seen in enumerate(base.seen):
        sampled = sum(int((np.abs(grid).max(axis=1, initial=0.0) > 0).sum()) for grid in X[joint])
        if not sampled:
            continue
        r = _autocovariance(X[joint], residuals[joint])
        own = sum(grid.T @ _toeplitz_times(r, grid) for grid in X[joint]) * (count[joint] / sampled)
        from_base = base.from_base[seen]
        own = from_base.T @ own @ from_base / estimate.row_scale[joint] ** 2
        # degrees of freedom that the fit takes from this noise, tr(H T(r)) / r(0): more than for white noise if it is
        # slow
        taken = min(0.5, float(np.sum(estimate.covariance * own)) / max(r[0], 1e-300) / count[joint])
        meat += own / estimate.row_scale[joint] ** 2 / (1.0 - taken)
    return estimate.covariance @ meat @ estimate.covariance


def _windows(samples: Samples, every: int) -> list[tuple[int, int]]:
    """Return the segments of the log, or windows at even distances if it is long."""
    total = sum(b - a for a, b in samples.bounds)
    if total <= COVARIANCE_SUMS * every:
        return list(samples.bounds)
    length = COVARIANCE_SUMS * every // COVARIANCE_WINDOWS
    windows = []
    for start in np.linspace(0, len(samples) - length, COVARIANCE_WINDOWS).astype(int).tolist():
        a, b = max(samples.bounds, key=lambda bounds: min(bounds[1], start + length) - max(bounds[0], start))
        windows.append((max(a, start), min(b, start + length)))
    return [(a, b) for a, b in windows if b > a]


def _autocovariance(X: list[np.ndarray], residuals: list[np.ndarray]) -> np.ndarray:
    """Return the tapered autocovariance r (lags,) with a non-negative spectrum."""
    sums = _lagged_products(residuals)
    counts = _lagged_products([(np.abs(grid).max(axis=1, initial=0.0) > 0).astype(float) for grid in X])
    raw = sums / np.maximum(counts, 1.0)
    if not raw[0] > 0.0:
        return raw[:1]
    threshold = 2.0 * np.sqrt(np.log10(max(counts[0], 10.0)) / counts[0])
    insignificant = np.abs(raw[1:] / raw[0]) < threshold
    run = 5
    lag = next(
        (k for k in range(len(insignificant) - run) if insignificant[k : k + run].all()), len(insignificant) // 2
    )
    if lag == 0:
        return raw[:1]
    lags = np.arange(min(2 * lag + 1, len(raw)))
    tapered = raw[: len(lags)] * np.clip(2.0 - lags / lag, 0.0, 1.0)
    periodic = np.concatenate([tapered, np.zeros(len(tapered)), tapered[:0:-1]])
    spectrum = np.maximum(np.fft.rfft(periodic).real, 0.0)
    return np.fft.irfft(spectrum, len(periodic))[: len(tapered)]


def _lagged_products(pieces: list[np.ndarray]) -> np.ndarray:
    """Return sums of x[t] x[t + k] for lags k up to a third of the longest piece, at most 400."""
    lags = min(400, max(len(piece) for piece in pieces) // 3 + 1)
    total = np.zeros(lags)
    for piece in pieces:
        size = 1 << (2 * len(piece) - 1).bit_length()
        power = np.abs(np.fft.rfft(piece, size)) ** 2
        products = np.fft.irfft(power, size)[: min(lags, len(piece))]
        total[: len(products)] += products
    return total


def _toeplitz_times(r: np.ndarray, X: np.ndarray) -> np.ndarray:
    if len(r) == 1:
        return r[0] * X
    from scipy.signal import fftconvolve

    kernel = np.concatenate([r[:0:-1], r])
    return fftconvolve(X, kernel[:, None], mode="full", axes=0)[len(r) - 1 : len(r) - 1 + len(X)]


# ---- essential parameters
# ------------------------------------------------------------------------------------------------


def essential_parameters(estimate: Estimate, covariance: np.ndarray, sums: int, relative: float) -> list[int]:
    """Return the indices of the parameters without which torques are predicted significantly worse.

    M. Gautier, C. Presse, "Sequential identification of base parameters of robots", 1991: the parameter with the
    largest relative standard deviation is set to 0, as long as this exceeds `relative` and an F test at 1 % does not
    reject it. covariance: for autocorrelated residuals. sums: rows of the fit. Parameters smaller than their standard
    deviation in the full fit are not returned, even if they replace others.
    """
    from scipy.stats import f as fisher

    root, target = estimate.root, estimate.target
    kept = np.flatnonzero(estimate.determined).tolist()
    if not kept:
        return kept
    # autocorrelation makes residuals less informative by this factor
    inflation = max(1.0, float(np.median(np.diag(covariance)[kept] / np.diag(estimate.covariance)[kept])))
    dof = max(1.0, (sums - len(kept)) / inflation)
    threshold = inflation * float(fisher.ppf(0.99, 1, dof))
    while len(kept) > 1:
        part = root[:, kept]
        values, *_ = np.linalg.lstsq(part, target, rcond=None)
        deviation = np.sqrt(np.diag(np.linalg.inv(part.T @ part)) * inflation)
        uncertainty = deviation / np.maximum(np.abs(values), 1e-300)
        worst = int(np.argmax(uncertainty))
        # setting it to 0 increases the sum of squares by (value / deviation)^2
        if uncertainty[worst] < relative or (values[worst] / deviation[worst]) ** 2 * inflation > threshold:
            break
        del kept[worst]
    significant = np.square(estimate.values) > np.diag(covariance)
    return [k for k in kept if significant[k]]
