"""Logs of a polled controller: rows that repeat, times of another clock, short gaps; and predictions from them."""

from __future__ import annotations

import functools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from joint_logs import JointLog, clean_log, held, held_torques, polled

import linksweep as ls
from linksweep.identification.filtering import low_pass
from linksweep.identification.log import sampling_times, stale_rows

CUTOFF = 10.0
INSIDE = slice(300, -300)  # at the ends a filter guesses


@functools.cache
def logs(name: str, duration: float) -> tuple[JointLog, JointLog]:
    """A log to fit, and one of the same arm to predict."""
    return clean_log(name, 0, duration=duration), clean_log(name, 1, duration=duration, truth=0)


def fitted(log: JointLog, velocities: bool, **options) -> ls.identification.Fit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.LogWarning)
        return ls.identify(log.robot, *log.arrays(velocities), **{"cutoff": CUTOFF, **options})


def errors(fit: ls.identification.Fit, log: JointLog, velocities: bool) -> list[np.ndarray]:
    """The rms of predicted torques against exact, measured and low-passed measured ones."""
    found = fit.predict(log.t, log.q, *([log.qd] if velocities else []))
    even = np.interp(np.arange(log.t[0], log.t[-1], log.period), log.t, np.arange(len(log.t))).round().astype(int)
    smooth = low_pass(log.tau[even], log.period, CUTOFF)
    rest = found - log.exact_tau, found - log.tau, found[even] - smooth
    return [np.sqrt(np.mean(np.square(own[INSIDE]), axis=0)) for own in rest]


def check_within(name: str, how, velocities: bool, duration: float, **options) -> None:
    log, other = logs(name, duration)
    clean, found = fitted(log, velocities, **options), fitted(how(log, 3), velocities, **options)
    assert "stale" in found.remarks and not clean.remarks
    # the same held-out log, and the same polled
    for a, b in zip(errors(found, other, velocities), errors(clean, other, velocities), strict=True):
        assert (a <= 1.05 * b).all(), a / b
    for a, b in zip(errors(found, how(other, 4), velocities)[:2], errors(clean, other, velocities)[:2], strict=True):
        assert (a <= 1.05 * b).all(), a / b


@pytest.mark.slow
@pytest.mark.parametrize("velocities", [False, True])
@pytest.mark.parametrize("how", [polled, held])
@pytest.mark.parametrize("name", ["ur5", "panda"])
def test_a_polled_log_is_as_good_as_a_clean_one(name: str, how, velocities: bool):
    check_within(name, how, velocities, 20.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ur5", "panda"])
def test_with_a_cutoff_that_is_chosen_too(name: str):
    check_within(name, polled, False, 20.0, cutoff=None)


def test_a_short_one():
    check_within("ur5", polled, False, 10.0)


def test_without_retiming_positions_are_worse():
    log, other = logs("ur5", 10.0)
    there, kept = (fitted(polled(log, 3), False, retime=how) for how in (None, False))
    ours, theirs = (errors(fit, polled(other, 4), False)[1] for fit in (there, kept))
    assert theirs[0] > 1.3 * ours[0] and (theirs > 0.99 * ours).all()
    with pytest.raises(ls.ArgumentError, match="retime is 'no'"):
        ls.identify(log.robot, *log.arrays(), retime="no")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("encoder", [2 * np.pi / 2**12, 2 * np.pi / 2**17])
@pytest.mark.parametrize("how", [polled, held])
def test_stale_rows_are_found_and_no_others(how, encoder: float):
    log = how(clean_log("panda", 5, duration=6.0, encoder=encoder))
    true = np.concatenate([[False], (np.diff(log.exact_tau, axis=0) == 0).all(axis=1)])
    for tau in (log.tau, np.round(log.tau, 1)):  # torques with few digits, too
        found = stale_rows(log.q, tau)
        assert true.sum() > 200 and not (true & ~found).any() and (found & ~true).sum() <= 0.001 * len(true)
    still = clean_log("panda", 5, duration=6.0, encoder=encoder, kind="moves")
    assert not stale_rows(still.q, np.round(still.tau, 2)).any()


def test_torques_that_are_updated_less_often():
    log = clean_log("ur5", 0, duration=10.0)
    fit = fitted(held_torques(log, 5), False)
    assert list(fit.remarks) == ["stale"]
    assert np.isclose(fit.samples.dt, 5 * log.period, rtol=1e-6)  # the period is estimated from the positions


def test_the_clock_of_the_controller():
    """Another rate than that of the polls, and a client's clock that is wrong by 100 ppm."""
    log = clean_log("ur5", 0, duration=10.0, rate=500.0)
    rng = np.random.default_rng(0)
    polls = np.sort(rng.uniform(0.0, 9.99, 9000))
    source = (polls / log.period).astype(int)
    fresh = np.concatenate([[True], np.diff(source) > 0])
    rows = source[fresh]
    clock = sampling_times(1.0001 * polls[fresh], log.q[rows])
    # A line through 5,000 times with a jitter of 0.3 periods has its slope to 0.3 sqrt(12) / 5000^1.5 = 3e-6.
    assert np.isclose(clock.period, 1.0001 * log.period, rtol=1e-5)
    error = clock.t - 1.0001 * log.t[rows]
    assert np.std(error) < 0.03 * log.period and clock.jitter > 0.2 * log.period


@pytest.mark.slow
def test_gaps_that_are_short_beside_the_filter_are_bridged():
    log, other = logs("ur5", 10.0)
    keep = np.ones(len(log.t), bool)
    for start in range(500, 9500, 300):
        keep[start : start + 8] = False
    gaps = log.rows(keep)
    bridged, cut = fitted(gaps, False), fitted(gaps, False, cutoff=60.0)
    assert len(bridged.samples.bounds) == 1 and "gaps" not in bridged.remarks
    assert len(cut.samples.bounds) > 20 and "gaps" in cut.remarks  # 9 ms are long beside 17 ms
    whole = fitted(log, False)
    for a, b in zip(errors(bridged, other, False), errors(whole, other, False), strict=True):
        assert (a <= 1.06 * b).all()
    # rows in a gap were not measured
    inside = (bridged.samples.t > log.t[500] - 1e-4) & (bridged.samples.t < log.t[507] + 1e-4)
    assert inside.sum() == 8 and not bridged.samples.weight[inside].any()


def test_predictions_have_the_band_of_the_positions():
    log, other = logs("panda", 10.0)
    noisy = replace(other, q=other.q + 2e-4 * np.random.default_rng(0).normal(size=other.q.shape))
    fit = fitted(log, False)
    smooth = low_pass(noisy.tau, log.period, CUTOFF)
    narrow, wide = (
        np.sqrt(np.mean(np.square(fit.predict(noisy.t, noisy.q, filtered=own) - smooth)[INSIDE], axis=0))
        for own in (True, False)
    )
    assert (narrow < 0.9 * wide).all() and (narrow < 0.6 * wide).any()


def test_dry_friction_is_full_at_half_the_speed_of_rows_that_are_left_out():
    log, _ = logs("ur5", 10.0)
    fit = fitted(log, False)
    fastest = np.abs(fit.samples.qd).max(axis=0)
    assert np.allclose(fit.columns.dead_band, 0.5 * 0.02 * fastest)


@pytest.mark.slow
def test_the_cutoff_without_velocities_is_not_too_low():
    """Friction turns round faster than a low cut-off shows: prediction, which it is chosen by, sees that."""
    log, other = logs("ur5", 20.0)
    chosen = fitted(log, False, cutoff=None)
    assert 8.0 < chosen.cutoff < 40.0
    low = fitted(log, False, cutoff=2.2)
    best, lower = (
        np.sqrt(np.mean(np.square(fit.predict(other.t, other.q) - other.tau)[INSIDE], axis=0)) for fit in (chosen, low)
    )
    assert (best <= lower).all() and (best < 0.9 * lower).any()
