"""Estimators against dense least squares, against the truth of simulated logs, and against their own standard
deviations.
"""

# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportArgumentType=false
from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from arms import Case, case
from scale import at_scale
from scipy.stats import chi2

import linksweep as ls
from linksweep.identification.reduction import reduce_log, validation_parts

NOISE = np.array([1.0, 2.0, 0.7, 0.3, 0.2, 0.25])


def noise(own: Case, seed: int = 0) -> np.ndarray:
    return NOISE * np.random.default_rng(seed).normal(size=own.tau.shape)


@functools.cache
def weighted() -> ls.identification.Fit:
    own = case("puma560")
    return ls.identify(own.robot, own.t, own.q, own.tau + noise(own), cutoff=15.0)


# ---- the truth -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ur5", "panda", "puma560"])
def test_without_noise_every_number_is_found(name: str):
    """From positions alone: velocities and accelerations are ours. Base parameters to 1e-9, friction and armature
    too.
    """
    own = case(name, 20.0, 500.0)
    fit = ls.identify(own.robot, own.t, own.q, own.tau, cutoff=np.inf)
    true = own.truth(fit)
    # each to 1e-9 of its own size, or of the torque where it is as good as zero
    scale = np.maximum(np.abs(true), np.abs(own.tau).max() / fit.grouping.sizes)
    assert (np.abs(fit.values - true) <= 1e-9 * scale).all()
    kinds = ("armature", "viscous", "coulomb", "offset")
    for k, number in enumerate(fit.names):
        if number.rpartition(".")[2] in kinds:
            assert abs(fit.values[k] - true[k]) <= 1e-9 * np.abs(own.tau).max(), number
    assert fit.determined.all() and not fit.remarks


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:misfit:linksweep.errors.LogWarning")  # of the worse one
def test_a_clean_log_is_not_filtered_and_a_noisy_one_is():
    own = case("puma560")
    assert ls.identify(own.robot, own.t, own.q, own.tau).cutoff == np.inf
    rough = own.q + 1e-4 * np.random.default_rng(0).normal(size=own.q.shape)
    fit = ls.identify(own.robot, own.t, rough, own.tau)
    assert 2.0 <= fit.cutoff <= 20.0 and fit.settings["cutoff_chosen"]
    worse = ls.identify(own.robot, own.t, rough, own.tau, cutoff=60.0)
    assert np.abs(own.off(fit)).max() < 0.5 * np.abs(own.off(worse)).max()


def test_measured_velocities_are_used():
    own = case("puma560")
    rough = own.q + 1e-4 * np.random.default_rng(0).normal(size=own.q.shape)
    with_rates = ls.identify(own.robot, own.t, rough, own.tau, own.qd, cutoff=30.0)
    without = ls.identify(own.robot, own.t, rough, own.tau, cutoff=30.0)
    assert np.abs(own.off(with_rates)).max() < 0.1 * np.abs(own.off(without)).max()


# ---- dense least squares -------------------------------------------------------------------------------------------


def dense(fit: ls.identification.Fit, divided: np.ndarray) -> np.ndarray:
    """Least squares of all rows at once, by SVD."""
    group, samples = fit.grouping, fit.samples
    Y = fit.columns.regressor(samples.q, samples.qd, samples.qdd)[..., list(group.pivots)] @ group.from_base
    root = np.sqrt(samples.weight.astype(float)) / divided
    X = (Y * root[..., None]).reshape(-1, len(group))
    size = np.linalg.norm(X, axis=0)
    return np.linalg.lstsq(X / size, (samples.tau * root).ravel(), rcond=None)[0] / size


@pytest.mark.quick
def test_chunks_give_what_all_rows_at_once_give(monkeypatch: pytest.MonkeyPatch):
    from linksweep.identification import reduction as module

    monkeypatch.setattr(module, "CHUNK", 97)
    monkeypatch.setattr(module, "BUFFER", 61)
    own = case("puma560")
    fit = ls.identify(own.robot, own.t, own.q, own.tau + noise(own), cutoff=15.0, every=1)
    assert np.allclose(fit.values, dense(fit, fit.noise), rtol=0, atol=1e-9 / fit.grouping.sizes)
    plain = ls.identify(own.robot, own.t, own.q, own.tau + noise(own), cutoff=15.0, every=1, method="ordinary")
    assert np.allclose(plain.values, dense(plain, np.ones(6)), rtol=0, atol=1e-9 / fit.grouping.sizes)


def test_weights_of_rows_count():
    own = case("puma560")
    rng = np.random.default_rng(6)
    weights = rng.choice([0.0, 1.0, 2.5], (len(own.t), 6))
    fit = ls.identify(own.robot, own.t, own.q, own.tau + noise(own), cutoff=15.0, every=1, weights=weights)
    assert np.allclose(fit.values, dense(fit, fit.noise), rtol=0, atol=1e-9 / fit.grouping.sizes)
    left_out = weights[:, 0] > 0
    whole = ls.identify(own.robot, own.t, own.q, own.tau + noise(own), cutoff=15.0, weights=left_out.astype(int))
    assert np.array_equal(whole.samples.weight[:, 0] > 0, left_out & (whole.samples.weight[:, 0] > 0))


def test_summed_rows_cost_little_and_stay_right():
    own = case("puma560")
    log = own.robot, own.t, own.q, own.tau + noise(own)
    fine, coarse = (ls.identify(*log, cutoff=15.0, every=every) for every in (1, 4))
    assert coarse.settings["sums"] < 0.27 * fine.settings["sums"]
    # 580 sums for each joint tell a standard deviation to 1 / sqrt(2 n) = 2.9 %: the largest of six within 8 %
    assert np.allclose(coarse.noise, NOISE, rtol=0.08)
    assert (coarse.deviations < 1.2 * fine.deviations).all()
    assert np.sqrt(np.mean(np.square((coarse.values - fine.values) / fine.deviations))) < 0.5


def test_a_part_left_out_is_predicted_by_the_others():
    fit, own = weighted(), case("puma560")
    pieces = validation_parts(fit.samples)
    assert len(pieces) == 5 and fit.validation.shape == (5, 6)
    ((start, end),) = pieces[2]
    outside = np.ones(len(own.t))
    outside[start:end] = 0.0
    without = ls.identify(own.robot, own.t, own.q, own.tau + noise(own), cutoff=15.0, weights=outside)
    used = fit.samples.weight[start:end] > 0
    rest = (fit.samples.tau - without.predict(own.t, own.q, filtered=False))[start:end]
    found = np.sqrt(np.sum(np.square(rest) * used, axis=0) / used.sum(axis=0))
    # the noise by which joints are weighed differs by what the left-out part adds to it
    assert np.allclose(found, fit.validation[2], rtol=1e-3)
    assert (fit.validation > 0.9 * NOISE).all() and (fit.validation < 1.15 * NOISE).all()


@pytest.mark.filterwarnings(
    "ignore:(misfit|signs|impossible):linksweep.errors.LogWarning"
)  # the described friction is not in these torques
def test_several_trajectories_are_left_out_in_turn():
    logs = [case("puma560", seed=seed) for seed in (0, 1, 2)]
    lists = (
        [own.t for own in logs],
        [own.q for own in logs],
        [logs[0].robot.inverse_dynamics(o.q, o.qd, o.qdd) for o in logs],
    )
    fit = ls.identify(logs[0].robot, *lists, cutoff=15.0, unknown=("inertia", "armature", "viscous"))
    assert fit.validation.shape == (3, 6) and len(fit.samples.bounds) == 3


def test_triangles_hold_the_sums_of_squares():
    fit = weighted()
    factors = reduce_log(fit.grouping, fit.samples, 1, validation_parts(fit.samples))
    total = sum(factors.residual_squares(part, fit.values) for part in range(factors.parts))
    used = fit.samples.weight > 0
    rest = np.sum(np.square(fit.samples.tau - fit.predicted) * used, axis=0)
    assert np.allclose(total, rest, rtol=1e-10)


# ---- robust, ridge, instruments ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_huber_is_not_pulled_by_outliers():
    own = case("puma560")
    rng = np.random.default_rng(2)
    spiky = own.tau + noise(own) + 30.0 * (rng.uniform(size=own.tau.shape) < 0.02) * NOISE
    plain = ls.identify(own.robot, own.t, own.q, spiky, cutoff=15.0, every=1)
    robust = ls.identify(own.robot, own.t, own.q, spiky, cutoff=15.0, every=1, method="huber")
    clean = ls.identify(own.robot, own.t, own.q, own.tau + noise(own), cutoff=15.0, every=1)
    size = [np.sqrt(np.mean(np.square(own.off(fit)))) for fit in (plain, robust, clean)]
    assert size[1] < 0.4 * size[0] and size[1] < 1.6 * size[2]
    assert np.sqrt(np.mean(np.square(own.off(robust) / robust.grouping.sizes / robust.deviations))) < 1.5
    # Huber bounds what the 2 % of spikes add to the noise, it does not take it away
    assert np.allclose(robust.noise, NOISE, rtol=0.15)


@pytest.mark.quick
def test_ridge_stays_near_the_description_where_the_log_is_short():
    own = case("puma560")
    few = slice(300, 1100)  # 4 s of motion
    true = own.robot.with_armature(own.armature).with_dissipation(own.viscous, own.coulomb)
    log = own.t[few], own.q[few], (own.tau + noise(own))[few]
    plain = ls.identify(true, *log, cutoff=30.0)
    drawn = ls.identify(true, *log, cutoff=30.0, method="ridge", prior_torque=0.05)
    assert np.abs(own.off(drawn)).max() < 0.3 * np.abs(own.off(plain)).max()
    free = ls.identify(true, *log, cutoff=30.0, method="ridge", prior_torque=1e6)
    # a prior of 1e6 N m still pulls, by far less than what the log leaves open
    assert np.allclose(free.values, plain.values, rtol=0, atol=1e-4 * plain.deviations.max())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:misfit:linksweep.errors.LogWarning")  # of plain least squares
def test_instruments_do_not_mind_noise_in_positions():
    own = case("puma560", 12.0, 500.0)
    rough = own.q + 2e-3 * np.random.default_rng(5).normal(size=own.q.shape)
    log = own.robot, own.t, rough, own.tau + 0.1 * noise(own)
    squares = ls.identify(*log, cutoff=20.0)
    clean = ls.identify(*log, cutoff=20.0, method="iv", reference=own.q)
    size = [np.sqrt(np.mean(np.square(own.off(fit)))) for fit in (squares, clean)]
    assert size[1] < 0.1 * size[0]
    assert np.sqrt(np.mean(np.square(own.off(clean) / clean.grouping.sizes / clean.deviations))) < 1.5


def test_instruments_along_a_wrong_reference_are_one_sentence():
    own = case("puma560")
    with pytest.raises(ls.ArgumentError, match=r"reference has shape \(5, 6\)"):
        ls.identify(own.robot, own.t, own.q, own.tau, cutoff=20.0, method="iv", reference=own.q[:5])
    with pytest.raises(ls.ArgumentError, match=r"control is .*, expected \(kp, kd\)"):
        ls.identify(own.robot, own.t, own.q, own.tau, cutoff=20.0, method="iv", reference=own.q, control=(1.0,))


# ---- standard deviations -------------------------------------------------------------------------------------------


def calibration(runs: int, **options: Any) -> tuple[float, np.ndarray, int]:
    """Mean of (error)^T C^-1 (error) / numbers, mean squared errors in deviations (base,), and how many numbers."""
    own = case("puma560")
    distance, squares, count = 0.0, np.zeros(1), 0
    for seed in range(runs):
        fit = ls.identify(own.robot, own.t, own.q, own.tau + noise(own, seed + 50), **options)
        error = fit.values - own.truth(fit)
        distance += float(error @ np.linalg.solve(fit.covariance, error))
        squares = squares + np.square(error / fit.deviations)
        count = len(error)
    return distance / (runs * count), squares / runs, count


def check_calibrated(runs: int, **options: Any) -> None:
    whole, single, count = calibration(runs, **options)
    low, high = chi2.ppf([0.005, 0.995], runs * count) / (runs * count)
    assert low < whole < high, f"{whole:.4f} not in {low:.4f} ... {high:.4f}"
    # single numbers at 99 % for all of them together (Bonferroni)
    low, high = chi2.ppf([0.005 / count, 1 - 0.005 / count], runs) / runs
    assert ((single > low) & (single < high)).all(), (single.min(), single.max(), low, high)


@pytest.mark.slow
def test_standard_deviations_are_calibrated():
    check_calibrated(12, cutoff=np.inf)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"cutoff": np.inf}, {"cutoff": 15.0}], ids=["every row", "filtered and summed"])
def test_standard_deviations_are_calibrated_over_many_runs(options: dict):
    check_calibrated(at_scale(40, 200), **options)


@pytest.mark.slow
def test_the_colour_of_noise_is_counted():
    """Slow noise says less than its rows: stated deviations grow by what it takes."""
    from scipy.signal import lfilter

    own = case("puma560")
    spread, stated, plain = [], [], []
    for seed in range(12):
        white = np.random.default_rng(seed).normal(size=(len(own.t) + 300, 6))
        slow = lfilter([np.sqrt(1 - 0.9**2)], [1.0, -0.9], white, axis=0)[300:] * NOISE
        fit = ls.identify(own.robot, own.t, own.q, own.tau + slow, cutoff=np.inf)
        spread.append((fit.values - own.truth(fit)) * fit.grouping.sizes)
        stated.append(np.diag(fit.covariance) * fit.grouping.sizes**2)
        plain.append(np.diag(fit.estimate.covariance) * fit.grouping.sizes**2)
    true, told, white_ = (float(np.mean(x)) for x in (np.square(spread), stated, plain))
    assert 0.65 < true / told < 1.5 and true / white_ > 3.0  # of 12 runs; the fit itself takes some of slow noise


def test_intervals_and_correlation():
    fit = weighted()
    low, high = fit.interval(0.95).T
    assert np.allclose(high - low, 2 * 1.959964 * fit.deviations)
    assert np.allclose(np.diag(fit.correlation), 1.0) and (np.abs(fit.correlation) <= 1.0 + 1e-9).all()
    with pytest.raises(ls.ArgumentError, match="confidence between 0 and 1"):
        fit.interval(95)


def test_essential_numbers_predict_as_well():
    own, fit = case("puma560"), weighted()
    kept = fit.essential()
    assert {"ZZ1", "MX2", "joint1.coulomb", "joint6.viscous"} <= set(kept) and len(kept) < 50
    small = [name for name in fit.names if name not in kept]
    true = dict(zip(fit.names, own.truth(fit) * fit.grouping.sizes, strict=True))
    assert max(abs(true[name]) for name in small) < 0.3  # N m at a reference motion: below the noise


def test_a_fit_takes_one_thread_and_gives_the_others_back():
    from linksweep.identification.threads import _libraries, one_thread

    before = [count() for _, count in _libraries()]
    with pytest.raises(KeyError), one_thread():
        assert all(count() == 1 for _, count in _libraries())
        raise KeyError
    assert [count() for _, count in _libraries()] == before
