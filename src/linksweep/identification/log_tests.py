"""Statistical tests for errors in a log: signs, units, order of joints, and delays.

The tests use the log in a narrower band than the fit, because slow motion shows these errors well, and noise of
accelerations, which is largest at the end of the band, would bias them.

Standard errors come from blocks of the log. Sums over blocks that are long compared with the correlation time of the
noise are nearly independent, so their spread measures the standard error of the total for autocorrelated residuals too.
Correlation between neighbouring blocks is included as by W. K. Newey and K. D. West, "A simple, positive semi-definite,
heteroskedasticity and autocorrelation consistent covariance matrix" (1987).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.ndimage import maximum_filter1d

from linksweep.identification.base_form import BaseForm
from linksweep.identification.cross_validation import predict_torques
from linksweep.identification.estimate import Estimate, weighted_least_squares
from linksweep.identification.filtering import derivative, low_pass
from linksweep.identification.reduction import Parts, RFactors, reduce_log, rows_per_sum, split_blocks
from linksweep.identification.regressor import DRY_FRICTION, Regressor
from linksweep.identification.samples import RAMP, Samples, edge_rows, exclude_ends, rms_torque

LAGS = 2  # neighbouring blocks whose correlation is included
FALSE_ALARM = 1e-4  # probability of a remark on a correct log
MAX_SUMS = 12_000
BANDS = (0.25, 0.35, 0.5, 0.7)  # of the cut-off of the fit: narrower cut-offs that are tried
MAX_BLUR = 0.01  # of the velocities, that a narrower band may remove
REVERSAL = 0.03  # seconds from slow rows: a narrow band blurs friction at reversals
MIN_BLOCKS = 5

MODEL_ROWS = 6_000
CLEAR = 4.0  # standard errors: less certain factors are not used
MODEL_SPREAD = 0.25, 0.5  # of the logarithms of the gravity and inertia factors among joints, for a good model
UNIT, TIME = 1.6, 4.0  # errors of torques, and of inertia relative to gravity, that a model may have
MARGIN = 3.0  # standard errors

FACTORS = (0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.85)  # that are tried, with inverses and both signs
TOLERATED = 0.8, 1.25  # factors that an uncertain torque constant explains

ORDER_ROWS = 2_000
ORDER_ROUNDS = 3  # of reweighting the joints
BETTER = 0.6  # ratio of the squared residuals, as a product over the joints
SIGN_TEST = 1e-3  # probability that as many blocks fit better by chance

MAX_DELAY = 0.1  # seconds
DELAY_ROUNDS = 6
MIN_DELAY = 0.1  # sampling intervals


# ---- blocks
# --------------------------------------------------------------------------------------------------------------


def covariance_of_sum(blocks: np.ndarray) -> np.ndarray:
    """Return the covariance (k, k) of the sum of the rows of `blocks` (n, k), whose expectation is zero."""
    white = blocks.T @ blocks
    total = white.copy()
    for lag in range(1, min(LAGS, len(blocks) - 1) + 1):
        product = blocks[lag:].T @ blocks[:-lag]
        total += (1.0 - lag / (LAGS + 1.0)) * (product + product.T)
    growth = np.sqrt(np.maximum(np.diag(total), np.diag(white)) / np.maximum(np.diag(white), 1e-300))
    return white * growth[:, None] * growth


def critical_value(blocks: int, tests: int = 1) -> float:
    """Return the number of standard errors beyond which one of `tests` sums over blocks is significant."""
    from scipy.stats import t

    return float(t.isf(0.5 * FALSE_ALARM / max(1, tests), max(1, blocks - 1)))


@dataclass(frozen=True)
class BlockedLog:
    """A log in a narrow band and in blocks, with its R factors and estimate. every: rows in a sum."""

    base: BaseForm
    samples: Samples
    every: int
    blocks: Parts
    factors: RFactors
    best: Estimate

    def with_delay(self, delay: np.ndarray) -> BlockedLog:
        """Return the log with delays (nv,) of the torques compensated."""
        samples = replace(self.samples, tau=without_delay(self.samples, delay))
        factors = reduce_log(self.base, samples, self.every, self.blocks)
        best = weighted_least_squares(factors, self.best.values, torque=rms_torque(samples))
        return replace(self, samples=samples, factors=factors, best=best)

    def spread_rows(self, limit: int) -> tuple[np.ndarray, np.ndarray]:
        """Return about `limit` rows at even distances, and the block of each."""
        total = sum(b - a for pieces in self.blocks for a, b in pieces)
        step = max(1, -(-total // limit))
        rows = [np.concatenate([np.arange(a, b, step) for a, b in pieces]) for pieces in self.blocks]
        return np.concatenate(rows), np.repeat(np.arange(len(self.blocks)), [len(own) for own in rows])


def without_delay(samples: Samples, delay: np.ndarray) -> np.ndarray:
    """Return the torques (rows, nv) with delays (nv,) in seconds compensated."""
    tau = samples.tau.copy()
    for a, b in samples.bounds:
        t = samples.t[a:b]
        for joint in np.flatnonzero(delay):
            tau[a:b, joint] = np.interp(t + delay[joint], t, samples.tau[a:b, joint])
    return tau


def blocked_log(base: BaseForm, samples: Samples, best: Estimate, parts: Parts) -> BlockedLog | None:
    """Return the log in a narrow band and in blocks; None if it is too short for tests."""
    q, qd, qdd, cutoff = _narrow_band(samples)
    every = rows_per_sum(samples.dt, cutoff)
    blocks, _ = split_blocks(parts, every, samples.dt)
    if len(blocks) < MIN_BLOCKS:
        return None
    rows = max(16, MAX_SUMS // len(blocks)) * every
    blocks = [[(a, min(b, a + rows)) for a, b in pieces] for pieces in blocks]
    weight = _weights_without_reversals(base.regressor, samples, cutoff)
    narrow = replace(samples, q=q, qd=qd, qdd=qdd, weight=weight, cutoff=cutoff)
    factors = reduce_log(base, narrow, every, blocks)
    estimate = weighted_least_squares(factors, best.values, torque=rms_torque(samples))
    return BlockedLog(base, narrow, every, blocks, factors, estimate)


def _narrow_band(samples: Samples) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return positions, velocities and accelerations in the narrowest band that holds the motion, and its cut-off."""

    def low(x: np.ndarray, cutoff: float) -> np.ndarray:
        return np.concatenate([low_pass(x[a:b], samples.dt, cutoff) for a, b in samples.bounds])

    rms = np.sqrt(np.mean(np.square(samples.qd), axis=0))
    for share in BANDS if np.isfinite(samples.cutoff) else ():
        cutoff = share * samples.cutoff
        qd = low(samples.qd, cutoff)
        if (np.sqrt(np.mean(np.square(qd - samples.qd), axis=0)) <= MAX_BLUR * rms).all():
            return low(samples.q, cutoff), qd, low(samples.qdd, cutoff), cutoff
    return samples.q, samples.qd, samples.qdd, samples.cutoff


def _weights_without_reversals(regressor: Regressor, samples: Samples, cutoff: float) -> np.ndarray:
    """Return weights that exclude the ends of segments, and rows near reversals of drives with dry friction."""
    reach = max(5, round(REVERSAL / samples.dt))
    weight = samples.weight.copy()
    exclude_ends(weight, samples.bounds, edge_rows(samples.dt, cutoff))
    if regressor.dead_band.any():
        slow = np.abs(regressor.drive_velocities(samples.qd)) <= regressor.dead_band / RAMP
        for a, b in samples.bounds:
            near = maximum_filter1d(slow[a:b].view(np.uint8), 2 * reach + 1, axis=0) > 0
            weight[a:b][near @ regressor.acts > 0] = 0.0
    return weight


# ---- comparison with the robot model
# ------------------------------------------------------------------------------------- The torques of each joint are
# explained by those of the model, with separate factors for gravity and inertia, and by its drive: tau = s_g g(q) + s_i
# (M qdd + c) + drive. A roughly correct model has factors near 1. Torques in another unit have another factor, common
# to all joints. If t is k times too long, accelerations are k^2 times too small and s_i = k^2 s_g.


@dataclass(frozen=True)
class CommonFactor:
    """A factor common to all joints: its logarithm, and the standard error of the logarithm."""

    log: float
    error: float

    @property
    def value(self) -> float:
        return float(np.exp(self.log))

    def beyond(self, factor: float) -> bool:
        """Whether it is significantly above `factor`, or below its inverse."""
        return abs(self.log) > np.log(factor) + MARGIN * self.error


@dataclass(frozen=True)
class ModelComparison:
    """Measured torques compared with those of the robot model.

    reversed_joints: joints whose torques have the opposite sign. torque: factor of all torques. inertia: factor of
    inertia relative to gravity. Factors are None if they are not determined. low_inertia: whether inertia is
    significantly below that of the model, even if its factor is not determined.
    """

    reversed_joints: tuple[int, ...]
    torque: CommonFactor | None
    inertia: CommonFactor | None
    low_inertia: bool


def compare_with_model(log: BlockedLog) -> ModelComparison | None:
    """Compare measured torques with the robot model; None if the model has no inertia."""
    regressor, samples = log.base.regressor, log.samples
    if not regressor.full.has_inertia:
        return None
    rows, block = log.spread_rows(MODEL_ROWS)
    q, qd, qdd = samples.q[rows], samples.qd[rows], samples.qdd[rows]
    motion = regressor.at(q, qd, qdd)
    robot = regressor.robot
    gravity = robot.gravity_forces(q)
    inertia = robot.inverse_dynamics(q, qd, qdd) - gravity - qdd * robot.armature
    tau = samples.tau[rows] - motion.known_friction() @ regressor.expansion
    drives = np.array([k for k, parameter in enumerate(regressor.parameters) if not parameter.is_body], int)
    reversed_joints, factors, low_inertia = [], {"gravity": [], "inertia": []}, []
    for joint in range(regressor.nv):
        used = samples.weight[rows, joint] > 0.0
        if used.sum() < 50:
            continue
        own = motion.of_joint(joint, drives)[:, used] if len(drives) else np.empty((0, int(used.sum())))
        own = own[np.abs(own).max(axis=1, initial=0.0) > 0.0]
        constant = np.ones((1, int(used.sum())))
        parts = (gravity[used, joint], inertia[used, joint])
        total = np.array([parts[0] + parts[1]])
        torque, at = tau[used, joint], block[used]
        factor, error = _regression_factors(np.concatenate([total, own, constant]), torque, at, 1)
        if factor[0] < -critical_value(len(log.blocks), regressor.nv) * error[0]:
            reversed_joints.append(joint)
        values, errors = _regression_factors(np.concatenate([parts, own, constant]), torque, at, 2)
        for name, value, its_error in zip(factors, values, errors, strict=True):
            if value > CLEAR * its_error:
                factors[name].append((np.log(value), its_error / value))
        if values[0] > CLEAR * errors[0] and errors[1] < 0.25 * values[0] / TIME:
            low_inertia.append(abs(values[1]) + CLEAR * errors[1] < values[0] / TIME)
    by_gravity, by_inertia = (_mean_factor(factors[n], s) for n, s in zip(factors, MODEL_SPREAD, strict=True))
    relative = None
    if by_gravity is not None and by_inertia is not None:
        relative = CommonFactor(by_inertia.log - by_gravity.log, float(np.hypot(by_inertia.error, by_gravity.error)))
    mostly_low = len(low_inertia) >= 2 and sum(low_inertia) > 0.7 * len(low_inertia)
    return ModelComparison(tuple(reversed_joints), by_gravity or by_inertia, relative, mostly_low)


def _regression_factors(X: np.ndarray, tau: np.ndarray, block: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the first `count` coefficients of the rows of X in a regression of tau, and their standard errors."""
    norm = np.sqrt(np.sum(np.square(X), axis=1))
    nonzero = norm > 1e-9 * np.sqrt(X.shape[1]) * max(1e-300, float(np.sqrt(np.mean(np.square(tau)))))
    unit = np.where(nonzero, 1.0 / np.maximum(norm, 1e-300), 0.0)
    X = X * unit[:, None]
    eigenvalues, vectors = np.linalg.eigh(X @ X.T)
    regular = eigenvalues > 1e-9 * eigenvalues[-1]
    inverse = (vectors * np.where(regular, 1.0 / np.maximum(eigenvalues, 1e-300), 0.0)) @ vectors.T
    x = inverse @ (X @ tau)
    influence = (inverse[:count] @ X) * (tau - x @ X)  # (count, rows)
    blocks = int(block.max()) + 1
    sums = np.stack([np.bincount(block, own, blocks) for own in influence], axis=1)
    errors = np.sqrt(np.diag(covariance_of_sum(sums)) * blocks / max(1, blocks - 1))
    determined = np.sum(np.square(vectors[:count, ~regular]), axis=1) < 1e-6
    return x[:count] * unit[:count], np.where(nonzero[:count] & determined, errors * unit[:count], np.inf)


def _mean_factor(factors: list[tuple[float, float]], spread: float) -> CommonFactor | None:
    """Return the mean of logarithms with their own standard errors and the spread of a good model.

    If they scatter more, the model is worse than that, and the error of the mean grows (R. DerSimonian and N. Laird,
    "Meta-analysis in clinical trials", 1986).
    """
    if not factors:
        return None
    logs, errors = np.array(factors).T
    weight = 1.0 / (np.square(errors) + spread**2)
    mean = float(weight @ logs / weight.sum())
    excess = float(weight @ np.square(logs - mean)) / max(1, len(logs) - 1)
    return CommonFactor(mean, float(np.sqrt(max(1.0, excess) / weight.sum())))


# ---- agreement of the joints with each other
# ----------------------------------------------------------------------------- The links beyond a joint affect its
# torque and those of all joints before it. If the torque of joint j is `a` times its correct value, then tau_j = a (Y
# x)_j with the x of all other joints, apart from the joint's own drive. The residual sum of squares as a function of
# `a` follows from the R factors of the fit. Its minimum has a standard error by blocks of the log.
#
# That error is the one at the minimum. If the torques of the other joints hardly determine the links beyond joint j,
# the sum of squares has a narrow minimum near a = 0, where the rows of the joint itself do not count, and is hardly
# larger at a = 1. Therefore the log must also fit significantly better with `a` than without, by a likelihood ratio
# test over the blocks (Q. H. Vuong, "Likelihood ratio tests for model selection and non-nested hypotheses", 1989).


@dataclass(frozen=True)
class InconsistentJoint:
    """A joint whose torques are `factor` times those that follow from the torques of the other joints."""

    joint: int
    factor: float


def inconsistent_joints(log: BlockedLog) -> list[InconsistentJoint]:
    """Return joints whose torques are inconsistent with the others, the largest improvement of the fit first."""
    base, factors = log.base, log.factors
    nv, size = base.regressor.nv, len(base)
    if nv < 2:
        return []
    G = np.array([[factors.gram(part, joint) for joint in range(nv)] for part in range(factors.parts)])
    G /= np.square(log.best.noise)[:, None, None]
    body = np.array([base.regressor.parameters[k].is_body for k in base.pivots])
    diagonal = np.diag(G.sum(axis=(0, 1)))[:size]
    prior = 1e-10 * np.maximum(diagonal, 1e-12 * diagonal.max(initial=1e-300))  # keeps undetermined parameters finite
    critical, results = critical_value(factors.parts, nv), []
    for joint in range(nv):
        if not (base.seen[joint] & body).any():
            continue
        profile = _FactorProfile(G, factors.count, joint, body, prior)
        factor, error = profile.minimum()
        nearest = min(max(factor, TOLERATED[0]), TOLERATED[1])
        if abs(factor - nearest) > critical * error and profile.likelihood_ratio(factor, nearest) > critical:
            results.append((profile.total(nearest) - profile.total(factor), joint, factor))
    return [InconsistentJoint(joint, factor) for _, joint, factor in sorted(results, reverse=True)]


class _FactorProfile:
    """Residual sum of squares of all joints as a function of the factor of one joint's torques."""

    def __init__(self, G: np.ndarray, count: np.ndarray, joint: int, body: np.ndarray, prior: np.ndarray) -> None:
        self.G, self.count, self.joint = G, count, joint
        self.body, self.prior = body, np.diag(prior)
        self.own = G[:, joint].sum(axis=0)
        self.others = G.sum(axis=(0, 1)) - self.own

    def total(self, factor: float) -> float:
        G = self.others + self._scaled(self.own, factor)
        return float(G[-1, -1] - G[:-1, -1] @ self._solution(G))

    def squares(self, factor: float) -> np.ndarray:
        """Return the residual sums of squares (parts, nv)."""
        G = self.G.copy()
        G[:, self.joint] = self._scaled(G[:, self.joint], factor)
        x = np.append(-self._solution(G.sum(axis=(0, 1))), 1.0)
        return np.maximum(np.einsum("i,pkij,j->pk", x, G, x), 0.0)

    def likelihood_ratio(self, factor: float, other: float) -> float:
        """Return the log-likelihood ratio of `factor` to `other`, in standard errors of its sum over the blocks."""
        ratio = np.zeros(len(self.G))
        for sign, one in ((1.0, other), (-1.0, factor)):
            squares = self.squares(one)
            variance = np.maximum(squares.sum(axis=0) / np.maximum(self.count.sum(axis=0), 1), 1e-300)
            ratio += sign * (self.count * np.log(variance) + squares / variance).sum(axis=1)
        error = np.sqrt(covariance_of_sum((ratio - ratio.mean())[:, None])[0, 0])
        return float(ratio.sum() / max(error, 1e-300))

    def minimum(self) -> tuple[float, float]:
        """Return the factor with the smallest sum of squares, and its standard error."""
        from scipy.optimize import minimize_scalar

        trials = np.sort([s * a for a in (*FACTORS, 1.0, *(1.0 / np.array(FACTORS))) for s in (1.0, -1.0)])
        best = int(np.argmin([self.total(float(a)) for a in trials]))
        if best in (0, len(trials) - 1):
            return float(trials[best]), np.inf
        result = minimize_scalar(self.total, bounds=(trials[best - 1], trials[best + 1]), method="bounded")
        factor = float(result.x)  # pyright: ignore[reportAttributeAccessIssue]  (SciPy's stubs say object)
        step = 0.05 * abs(factor)
        before, here, after = (self.squares(factor + k * step).sum(axis=1) for k in (-1, 0, 1))
        curvature = float((before - 2.0 * here + after).sum()) / (2.0 * step**2)
        derivatives = (after - before) / (4.0 * step)  # half of them; their sum is 0 at the minimum
        error = np.sqrt(covariance_of_sum((derivatives - derivatives.mean())[:, None])[0, 0])
        return factor, float(error / curvature) if curvature > 0.0 else np.inf

    def _solution(self, G: np.ndarray) -> np.ndarray:
        return np.linalg.solve(G[:-1, :-1] + self.prior, G[:-1, -1])

    def _scaled(self, G: np.ndarray, factor: float) -> np.ndarray:
        scale = np.append(np.where(self.body, factor, 1.0), 1.0)
        return G * scale[:, None] * scale


# ---- order of the joints and signs of positions
# -------------------------------------------------------------------------- If positions or torques of two joints are
# swapped, the log fits better in the correct order. Each swap is tried on some thousand rows. One is reported only if
# the log fits much better with it, in nearly every block.


@dataclass(frozen=True)
class Reordering:
    """A change that improves the fit: `what` of joints (a, b) swapped, or the "sign" of the positions of joint (a,)."""

    what: str
    joints: tuple[int, ...]


def best_reordering(log: BlockedLog, joints: list[int]) -> Reordering | None:
    """Return the reordering that improves the fit most, if one improves it significantly.

    joints: joints that fit poorly; every swap involves at least one of them.
    """
    trial = _ReorderingTrial(log)
    nv, tau = log.base.regressor.nv, trial.tau
    as_logged = trial.regressors(np.arange(nv), np.ones(nv))
    before = trial.squares(as_logged, tau)
    results: list[tuple[Reordering, np.ndarray]] = []
    for pair in combinations(range(nv), 2):
        if not set(pair) & set(joints):
            continue
        order = np.arange(nv)
        order[list(pair)] = pair[::-1]
        swapped = trial.regressors(order, np.ones(nv))
        # squares of swapped torques in the columns of the log, so that each is compared with itself
        both, torques = (trial.squares(own, tau[:, order])[:, order] for own in (swapped, as_logged))
        results.append((Reordering("positions and torques", pair), both))
        results.append((Reordering("positions", pair), trial.squares(swapped, tau)))
        results.append((Reordering("torques", pair), torques))
    for joint in joints:
        reversed_ = trial.regressors(np.arange(nv), np.where(np.arange(nv) == joint, -1.0, 1.0))
        results.append((Reordering("sign", (joint,)), trial.squares(reversed_, tau)))
    total = np.maximum(before.sum(axis=0), 1e-300)
    gains = [float(np.sum(np.log(np.maximum(after.sum(axis=0), 1e-300) / total))) for _, after in results]
    best = int(np.argmin(gains))
    reordering, after = results[best]
    if gains[best] > np.log(BETTER):
        return None
    from scipy.stats import binom

    better = int(np.count_nonzero((after / total).sum(axis=1) < (before / total).sum(axis=1)))
    return reordering if binom.sf(better - 1, len(before), 0.5) < SIGN_TEST else None


JointRegressors = tuple[list[np.ndarray], np.ndarray, np.ndarray]  # (seen, rows) of joints; known torques; weights


class _ReorderingTrial:
    """Some rows of a log, and fits of them with reordered joints."""

    def __init__(self, log: BlockedLog) -> None:
        self.base, samples = log.base, log.samples
        rows, self.block = log.spread_rows(ORDER_ROWS)
        self.motion = samples.q[rows], samples.qd[rows], samples.qdd[rows]
        self.tau = samples.tau[rows]
        self.weight = (samples.weight[rows] > 0.0).astype(float)

    def regressors(self, order: np.ndarray, sign: np.ndarray) -> JointRegressors:
        """Return the regressors of the motion in which joint k moves as joint order[k] of the log, times sign[k]."""
        regressor = self.base.regressor
        motion = regressor.at(*(x[:, order] * sign for x in self.motion))
        known = motion.known() if regressor.has_known else np.zeros_like(self.tau)
        weight = self.weight[:, order]  # rows are excluded where a joint is slow
        return [motion.of_joint(k, pivots) for k, pivots in enumerate(self.base.seen_pivots)], known, weight

    def squares(self, regressors: JointRegressors, tau: np.ndarray) -> np.ndarray:
        """Return the residual sums of squares (blocks, nv) of weighted least squares."""
        X, known, weight = regressors
        tau = tau - known
        size, nv = len(self.base), tau.shape[1]
        normal = [(X[k] * weight[:, k]) @ X[k].T for k in range(nv)]
        right = [X[k] @ (weight[:, k] * tau[:, k]) for k in range(nv)]
        noise = np.sqrt(np.sum(weight * np.square(tau), axis=0))
        noise = np.where(noise > 0.0, noise, 1.0)  # joints without rows
        for _ in range(ORDER_ROUNDS):
            N, b = np.zeros((size, size)), np.zeros(size)
            for seen, its_normal, its_right, its_noise in zip(self.base.seen, normal, right, noise, strict=True):
                N[np.ix_(seen, seen)] += its_normal / its_noise**2
                b[seen] += its_right / its_noise**2
            unit = np.diag(N)
            x = np.linalg.solve(N + np.diag(1e-10 * np.maximum(unit, 1e-12 * unit.max(initial=1e-300))), b)
            residual = np.stack([tau[:, k] - x[seen] @ X[k] for k, seen in enumerate(self.base.seen)], axis=1)
            squares = weight * np.square(residual)
            noise = np.maximum(np.sqrt(squares.sum(axis=0)), 1e-6 * noise)
        count = int(self.block.max()) + 1
        return np.stack([np.bincount(self.block, own, count) for own in squares.T], axis=1)


# ---- delays of the torques
# ----------------------------------------------------------------------------------------------- A delay of a few
# milliseconds, from another clock or a filter in the drive, looks like armature and friction. If torques of joint j are
# delayed by d_j, then tau_j(t) = (Y x)_j(t - d_j), to first order Y x - d_j d/dt (Y x). The d_j are estimated together
# with x. Larger delays are found by Gauss-Newton iteration: the estimate is compensated and the rest is estimated
# again.


def estimate_delays(log: BlockedLog) -> tuple[np.ndarray, np.ndarray]:
    """Return delays (nv,) of the torques in seconds, negative if they are early, and their standard errors.

    Both are 0 for joints without a significant delay.
    """
    base, samples, noise = log.base, log.samples, log.best.noise
    delays, errors = np.zeros((2, base.regressor.nv))
    dry = np.array([parameter.what in DRY_FRICTION for parameter in base.regressor.parameters])
    torques = predict_torques(base, samples, log.best.values, without=dry)
    torque_rates = np.concatenate([derivative(torques[a:b], samples.dt, 1) for a, b in samples.bounds])
    shifted, groups = samples, None
    for _ in range(DELAY_ROUNDS):
        factors = reduce_log(base, shifted, log.every, log.blocks, extra=-torque_rates)
        groups = _delay_groups(factors, noise, MIN_DELAY * samples.dt) if groups is None else groups
        if groups is None:
            break
        step, errors = (np.where(groups >= 0, own[groups], 0.0) for own in _group_delays(factors, noise, groups))
        delays = np.clip(delays + step, -MAX_DELAY, MAX_DELAY)
        if np.abs(step).max() < 0.02 * samples.dt:
            break
        shifted = replace(samples, tau=without_delay(samples, delays))
    return delays, errors


def _delay_groups(factors: RFactors, noise: np.ndarray, min_delay: float) -> np.ndarray | None:
    """Return the group (nv,) of joints with a common delay, -1 for joints without; None if no delay is significant.

    A common delay of all joints is the simplest explanation. Joints that contradict it have their own; the others share
    one.
    """
    nv = len(noise)
    delays, errors = _group_delays(factors, noise, np.arange(nv))
    joint_critical, critical = critical_value(factors.parts, nv), critical_value(factors.parts)
    common, its_error = (x[0] for x in _group_delays(factors, noise, np.zeros(nv, int)))
    significant = abs(common) > critical * its_error and abs(common) >= min_delay
    if significant and not (np.abs(delays - common) > joint_critical * errors).any():
        return np.zeros(nv, int)
    clear = (np.abs(delays) > joint_critical * errors) & (np.abs(delays) >= min_delay)
    if not clear.any():
        return None
    groups = np.where(clear, np.cumsum(clear) - 1, clear.sum())
    if clear.all():
        return groups
    shared, its_errors = _group_delays(factors, noise, groups)
    significant = abs(shared[-1]) > critical * its_errors[-1] and abs(shared[-1]) >= min_delay
    return groups if significant else np.where(clear, groups, -1)


def _group_delays(factors: RFactors, noise: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the delays of groups of joints, and their standard errors (infinite if not determined)."""
    base, count = len(factors.base), int(groups.max()) + 1
    size = base + count
    blocks = np.zeros((factors.parts, size, size + 1))
    for part in range(factors.parts):
        for joint, group in enumerate(groups):
            G = factors.gram(part, joint) / noise[joint] ** 2
            at = [*range(base), base + group] if group >= 0 else list(range(base))
            columns = [*range(len(at)), -1]
            blocks[part][np.ix_(at, [*at, size])] += G[np.ix_(columns[:-1], columns)]
    total = blocks.sum(axis=0)
    normal, right = total[:, :-1], total[:, -1]
    unit = 1.0 / np.sqrt(np.maximum(np.diag(normal), 1e-300))
    eigenvalues, vectors = np.linalg.eigh(normal * unit[:, None] * unit)
    inverse = np.where(eigenvalues > 1e-11 * eigenvalues[-1], 1.0 / np.maximum(eigenvalues, 1e-300), 0.0)
    inverse = (vectors * inverse) @ vectors.T * unit[:, None] * unit
    x = inverse @ right
    scores = blocks[:, :, -1] - blocks[:, :, :-1] @ x  # (parts, size)
    covariance = covariance_of_sum(scores @ inverse[:, base:])
    errors = np.sqrt(np.diag(covariance) * factors.parts / max(1, factors.parts - 1))
    # few blocks for many unknowns underestimate the errors, which are at least those of white noise
    errors = np.maximum(errors, np.sqrt(np.maximum(np.diag(inverse)[base:], 0.0)))
    determined = np.diag(normal)[base:] > 0.0
    return x[base:], np.where(determined & (errors > 0.0), errors, np.inf)
