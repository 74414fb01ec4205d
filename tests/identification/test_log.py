"""From a log to rows: derivatives within the band, and every kind of bad log in one sentence or a named warning."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from arms import arm, case, lively

import linksweep as ls
from linksweep.identification.filtering import derivative, difference_weights, low_pass

FAST: dict[str, Any] = {"cutoff": 20.0}
SPREAD = 0.06  # 2,300 rows tell a standard deviation to 1 / sqrt(2 n) = 1.5 %: four times that, over six joints


def noisy(name: str = "puma560") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    own = case(name)
    return own.t, own.q, own.tau + 0.05 * np.random.default_rng(3).normal(size=own.tau.shape)


def fit_of(*log: Any, robot: str = "puma560", expected: tuple[str, ...] = (), **options: Any) -> ls.identification.Fit:
    """A fit, and exactly these warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = ls.identify(arm(robot), *log, **{**FAST, **options})
    said = [str(warning.message) for warning in caught]
    assert all(issubclass(warning.category, ls.LogWarning) for warning in caught), said
    assert [text.partition(":")[0] for text in said] == list(expected) == list(fit.remarks), said
    assert all(f"{name}: {sentence}" in said for name, sentence in fit.remarks.items())
    return fit


# ---- derivatives -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_are_exact_for_polynomials_of_degree_eight(order: int):
    t = np.linspace(-1.0, 1.0, 41)
    polynomial = np.polynomial.Polynomial([0.3, -1, 2, 0.5, -0.7, 0.2, 1.1, -0.4, 0.9])
    found = derivative(polynomial(t)[:, None], t[1] - t[0], order)[:, 0]
    # rounding of the values over dt^order: ends have larger weights
    assert np.abs(found - polynomial.deriv(order)(t)).max() < 1e-16 / (t[1] - t[0]) ** order * 3e4


def test_the_weights_are_the_textbook_s():
    assert np.allclose(difference_weights(4, 9, 1) * 840, [3, -32, 168, -672, 0, 672, -168, 32, -3], rtol=0, atol=1e-9)


def test_the_filter_has_no_delay_and_half_gain_at_the_cutoff():
    dt, rows = 1e-3, 8000
    t = dt * np.arange(rows)
    for frequency, gain in ((1.0, 1.0), (20.0, 0.5), (60.0, 1 / (1 + 3.0**8))):
        wave = np.stack([np.sin(2 * np.pi * frequency * t), np.cos(2 * np.pi * frequency * t)], axis=1)
        middle = slice(2000, 6000)
        # bilinear transform: the cut-off itself is exact, frequencies beside it are warped a little
        assert np.abs(low_pass(wave, dt, 20.0)[middle] - gain * wave[middle]).max() < 2e-3
    assert low_pass(wave, dt, np.inf) is wave


def test_accelerations_at_the_ends_of_a_short_stretch():
    """A filter that turns the motion over at its ends makes the acceleration 0 there."""
    dt = 1e-3
    t = dt * np.arange(200)
    w = 2.0 * np.pi * 2.0
    q = np.stack([np.sin(w * t + 1.3), np.cos(w * t + 0.4)], axis=1)
    rough = q + 1e-6 * np.random.default_rng(0).normal(size=q.shape)
    found = derivative(low_pass(rough, dt, 30.0), dt, 2)
    assert np.abs(found + w**2 * q).max() < 0.1 * w**2


# ---- logs that are not as they should be -------------------------------------------------------------------------


def test_a_good_log_has_no_remarks():
    fit = fit_of(*noisy())
    assert not fit.remarks and fit.determined.all() and not fit.unknown
    assert np.allclose(fit.rms, 0.05, rtol=SPREAD)


def test_gaps_cut_the_log():
    t, q, tau = noisy()
    keep = np.ones(len(t), bool)
    keep[600:800] = False
    fit = fit_of(t[keep], q[keep], tau[keep], expected=("gaps",))
    assert "the longest 1.005 s at t = 2.995 s" in fit.remarks["gaps"]
    assert len(fit.samples.bounds) == 2 and np.allclose(fit.rms, 0.05, rtol=SPREAD)


def test_a_few_missing_rows_are_bridged():
    t, q, tau = noisy()
    keep = np.ones(len(t), bool)
    keep[[100, 900, 901, 1500]] = False
    fit = fit_of(t[keep], q[keep], tau[keep], expected=("uneven",))
    assert np.allclose(fit.rms, 0.05, rtol=SPREAD)


def test_repeated_times_are_left_out():
    t, q, tau = noisy()
    rows = np.sort(np.concatenate([np.arange(len(t)), [5, 100, 2000]]))
    fit = fit_of(t[rows], q[rows], tau[rows], expected=("repeats",))
    assert "3 rows repeat" in fit.remarks["repeats"] and len(fit.samples) == len(t)


def test_times_that_are_truly_uneven_are_resampled():
    own = case("puma560")
    rng = np.random.default_rng(0)
    dense, q, qd, qdd = lively(6, 12.0, 4000.0)
    rows = np.sort(np.clip(20 * np.arange(2400) + rng.integers(-8, 9, 2400), 0, len(dense) - 1))
    tau = own.robot.inverse_dynamics(q[rows], qd[rows], qdd[rows], dissipation=True)
    fit = fit_of(dense[rows], q[rows], tau, expected=("uneven",), unknown=("inertia",))
    scale = np.sqrt(np.mean(np.square(tau), axis=0))
    assert (fit.rms < 2e-3 * scale).all()  # straight lines between torques


def test_rows_with_nan_are_left_out():
    t, q, tau = noisy()
    q = q.copy()
    q[100:110, 3] = np.nan
    fit = fit_of(t, q, tau, expected=("missing", "gaps"))
    assert "10 of 2400 rows" in fit.remarks["missing"]


def test_a_joint_that_never_moves():
    own = case("puma560")
    q, qd, qdd = own.q.copy(), own.qd.copy(), own.qdd.copy()
    q[:, 2], qd[:, 2], qdd[:, 2] = 0.7, 0.0, 0.0
    rng = np.random.default_rng(1)
    tau = own.robot.inverse_dynamics(q, qd, qdd) + 0.5 * qd + 0.7 * np.sign(qd) + 0.05 * rng.normal(size=q.shape)
    fit = fit_of(own.t, q + 1e-7 * rng.normal(size=q.shape), tau, expected=("still", "unknown"))
    assert "joint3 does not move" in fit.remarks["still"]
    for name in ("joint3.viscous", "joint3.coulomb", "joint3.offset", "joint3.armature", "ZZ3"):
        assert name in fit.unknown and np.isinf(fit.deviations[fit.names.index(name)])
    for name in ("joint5.coulomb", "joint1.viscous"):
        k = fit.names.index(name)
        assert fit.determined[k] and abs(fit.values[k] - {"c": 0.7, "v": 0.5}[name[7]]) < 5 * fit.deviations[k]
    # what is unknown is as described: the robot keeps its numbers there
    assert np.isfinite(fit.robot.standard_parameters).all()
    assert np.isclose(fit["joint3.viscous"], 0.0, atol=1e-9)
    assert "unknown" in fit.report()


@pytest.mark.slow
def test_torques_that_stand_late_or_early():
    own = case("puma560")
    for rows in (6, -3):
        fit = fit_of(own.t, own.q, np.roll(own.tau, rows, axis=0), expected=("delay",))
        late = float(fit.remarks["delay"].rpartition("delay=")[2].split()[0])
        assert abs(late - rows * 0.005) < 1e-3
        again = fit_of(own.t, own.q, np.roll(own.tau, rows, axis=0), delay=late)
        assert (again.rms < 0.5 * fit.rms).all()


def test_a_shift_by_one_row_and_of_one_joint():
    t, q, tau = noisy()
    fit = fit_of(t[1:], q[1:], tau[:-1], expected=("delay",))
    assert abs(float(fit.remarks["delay"].rpartition("delay=")[2].split()[0]) - 0.005) < 5e-4
    one = tau.copy()
    one[:, 0] = np.roll(tau[:, 0], 8)
    fit = fit_of(t, q, one, expected=("delay",))
    late = fit.remarks["delay"].rpartition("delay=[")[2].split("]")[0].split(", ")
    assert abs(float(late[0]) - 0.04) < 2e-3 and set(late[1:]) == {"0.0"}


def test_joints_in_another_order_leave_much_over():
    t, q, tau = noisy()
    fit = fit_of(t, q[:, ::-1], tau, expected=("misfit",))
    assert "joint1 (" in fit.remarks["misfit"]


def test_folded_angles_are_unfolded():
    t, q, tau = noisy()
    fold = q % (2.0 * np.pi)
    jumps = np.abs(np.diff(fold, axis=0)).max(axis=0) > 3.0
    fit = fit_of(t, fold, tau, expected=("folded",))
    assert jumps.sum() >= 3 and np.abs(np.diff(fit.samples.q, axis=0)).max() < 0.1
    assert np.allclose(fit.rms, 0.05, rtol=SPREAD)


def remarks_of(*log: Any) -> dict[str, str]:
    """Of a log with several faults."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.LogWarning)
        return dict(ls.identify(arm("puma560"), *log, **FAST).remarks)


@pytest.mark.slow
def test_measured_velocities_that_are_none():
    rates = case("puma560").qd
    log = noisy()
    assert not fit_of(*log, rates).remarks
    assert "joint1 (57.3 times)" in remarks_of(*log, np.degrees(rates))["rates"]
    assert "q: joint2 (-1 times);" in remarks_of(*log, rates * [1, -1, 1, 1, 1, 1])["rates"]


def test_one_joint_in_degrees_that_has_no_limits():
    t, q, tau = noisy()
    sentence = remarks_of(t, q * [1, 1, 57.3, 1, 1, 1], tau)["turns"]
    assert "joint3 (" in sentence and "joint2" not in sentence and "radians" in sentence


def test_degrees_and_milliseconds_are_errors():
    t, q, tau = noisy()
    with pytest.raises(ls.ArgumentError, match="it seems to be in degrees"):
        fit_of(t, np.degrees(q), tau)
    with pytest.raises(ls.ArgumentError, match="divide by 1000"):
        fit_of(1000.0 * t, q, tau)
    with pytest.raises(ls.ArgumentError, match=r"expected radians from -2.897 to 2.897: it seems to be in degrees"):
        own = case("panda")
        fit_of(own.t, np.degrees(own.q), own.tau, robot="panda")


def test_torques_in_other_units_or_signs_are_remarked():
    t, q, tau = noisy()
    fit = fit_of(t, q, 1000.0 * tau, expected=("efforts", "scale"))
    assert "times those of the model" in fit.remarks["scale"]
    fit_of(t, q, tau / 100.0, expected=("scale",))
    # without friction, so that gravity's sign stands out
    own = case("puma560")
    bare = own.robot.inverse_dynamics(own.q, own.qd, own.qdd)
    fit = fit_of(t, q, bare * [1, 1, -1, 1, 1, 1], expected=("signs", "impossible"))
    assert "joint3" in fit.remarks["signs"]


@pytest.mark.slow
def test_torques_at_their_limit_are_left_out():
    t, q, tau = noisy()
    high = np.quantile(tau[:, 1], 0.9)
    clipped = tau.copy()
    clipped[:, 1] = np.minimum(tau[:, 1], high)
    fit = fit_of(t, q, clipped, expected=("saturated",))
    assert "joint2 10 %" in fit.remarks["saturated"]
    assert np.allclose(fit.rms, 0.05, rtol=SPREAD)  # as if they had not been clipped
    limits = arm("panda").limits.effort
    own = case("panda")
    strong = own.tau * (1.02 * limits / np.abs(own.tau).max(axis=0))
    with pytest.warns(ls.LogWarning) as said:
        ls.identify(arm("panda"), own.t, own.q, strong, **FAST)
    assert any(str(warning.message).startswith("saturated") for warning in said)


def test_torques_that_are_not_measured():
    t, q, tau = noisy()
    tau = tau.copy()
    tau[:, 5] = 0.0
    fit = fit_of(t, q, tau, expected=("flat", "unused", "unknown"))
    assert "joint6 (0)" in fit.remarks["flat"] and "joint6.viscous" in fit.unknown


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda t, q, tau: (t[:10], q[:10], tau[:10]), r"t has shape \(10,\), expected \(rows,\) with 20 rows"),
        (lambda t, q, tau: (t, q[:, :5], tau), r"q has shape \(2400, 5\), expected \(2400, 6\)"),
        (lambda t, q, tau: (t, q, tau[:-1]), r"tau has shape \(2399, 6\)"),
        (lambda t, q, tau: (t, "abc", tau), "q is 'abc', expected an array of real numbers"),
        (lambda t, q, tau: (t, q + 0j, tau), "expected an array of real numbers"),
        (lambda t, q, tau: (t[::-1], q, tau), "t decreases from"),
        (lambda t, q, tau: (t[:30], q[:30], tau[:30]), "rows are left for 58 unknown parameters"),
        (lambda t, q, tau: (t[:0], q[:0], tau[:0]), r"t has shape \(0,\)"),
        (lambda t, q, tau: (t[:1], q[:1], tau[:1]), r"t has shape \(1,\)"),
        (lambda t, q, tau: (t, q, 1e300 * tau), r"tau of joint1 is .*e\+30. in row .*correct the unit"),
        (lambda t, q, tau: (t, np.where(t[:, None] == t[500], 1e6, q), tau), r"q of joint1 is 1e\+06 in row 500"),
        (lambda t, q, tau: (t, q, tau * [1, np.nan, 1, 1, 1, 1]), "tau of joint2 has no finite number"),
        (lambda t, q, tau: (t, q * np.nan, tau), "q of joint1 has no finite number"),
        (lambda t, q, tau: (1e-300 * t, q, tau), "sampling interval of t is 5e-303 s"),
        (lambda t, q, tau: (t, q, 1e-300 * tau), "0 rows are left"),
        (lambda t, q, tau: ([t, t], [q], [tau, tau]), "q has 1 for 2 trajectories"),
        (lambda t, q, tau: ([t, 2 * t], [q, q], [tau, tau]), "expected one rate"),
    ],
)
def test_logs_that_cannot_be_used_are_one_sentence(change: Any, sentence: str):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.LogWarning)
        with pytest.raises(ls.ArgumentError, match=sentence) as caught:
            ls.identify(arm("puma560"), *change(*noisy()), **FAST)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"cutoff": 150.0}, "less than half the log's rate of 200 Hz"),
        ({"cutoff": -1}, "a frequency in Hz above 0"),
        ({"cutoff": "low"}, "a frequency in Hz above 0"),
        ({"method": "least squares"}, "expected one of 'weighted', 'ordinary'"),
        ({"weights": np.ones(7)}, r"weights has shape \(7,\)"),
        ({"delay": "late"}, "delay is 'late', expected seconds"),
        ({"delay": [1.0, 2.0]}, "expected seconds, one number or 6"),
        ({"grouping_by": "svd"}, "expected 'rule' or 'qr'"),
        ({"method": "iv"}, "needs reference="),
        ({"slow": -1.0}, "slow is -1.0, expected"),
        ({"every": 0}, "every is 0, expected"),
        ({"prior_weight": 0.0}, "prior_weight is 0.0, expected"),
        ({"prior_torque": -1.0}, "prior_torque is -1.0, expected"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(options: dict, sentence: str):
    with pytest.raises(ls.ArgumentError, match=sentence):
        ls.identify(arm("puma560"), *noisy(), **{**FAST, **options})


def test_a_log_where_nothing_moves():
    t, q, tau = noisy()
    with pytest.warns(ls.LogWarning, match="do not move"), pytest.raises(ls.ArgumentError, match="0 rows are left"):
        ls.identify(arm("puma560"), t, np.full_like(q, 0.3), tau, **FAST)


def planar_log(robot: ls.Robot, moves: Any = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two joints with noise, for which a cut-off must be chosen."""
    t = np.linspace(0.0, 4.0, 2001)
    q = np.stack([np.sin(2 * t) + 0.3 * np.sin(5 * t), np.cos(3 * t) + 0.2 * np.sin(7 * t)], axis=1)
    qd = np.stack([2 * np.cos(2 * t) + 1.5 * np.cos(5 * t), -3 * np.sin(3 * t) + 1.4 * np.cos(7 * t)], axis=1)
    qdd = np.stack([-4 * np.sin(2 * t) - 7.5 * np.sin(5 * t), -9 * np.cos(3 * t) - 9.8 * np.sin(7 * t)], axis=1)
    rng, moves = np.random.default_rng(0), np.broadcast_to(moves, 2)
    tau = robot.inverse_dynamics(q * moves, qd * moves, qdd * moves) + 0.01 * rng.normal(size=q.shape)
    return t, (q + 1e-4 * rng.normal(size=q.shape)) * moves, tau


@pytest.mark.parametrize(
    ("moves", "pulls", "remark"), [((1, 0), (1, 1), "still"), ((1, 1), (1, 0), "flat"), ((1, 1), (0, 1), "flat")]
)
def test_a_cutoff_is_chosen_where_a_joint_says_nothing(moves: tuple, pulls: tuple, remark: str):
    t, q, tau = planar_log(ls.robots.planar(2), moves)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit = ls.identify(ls.robots.planar(2), t, q, tau * pulls)
        used = np.isfinite(fit.rms)
        assert (fit.robot_rms[used] < 1.5 * fit.rms[used]).all() and fit.report()
    assert all(issubclass(warning.category, ls.LogWarning) for warning in caught), [str(w.message) for w in caught]
    assert remark in fit.remarks and np.isfinite(fit.cutoff) and used.sum() == 1 and fit.rms[used] < 0.05


@pytest.mark.parametrize(("moves", "pulls"), [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0)])
def test_no_cutoff_for_a_log_that_says_nothing(moves: float, pulls: float):
    t, q, tau = planar_log(ls.robots.planar(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", ls.LogWarning)
        with pytest.raises(ls.ArgumentError, match="0 rows are left"):
            ls.identify(ls.robots.planar(2), t, q * moves, tau * pulls)


def test_springs_are_known_and_constraints_are_refused():
    plain = ls.robots.planar(2)
    robot = plain.with_springs([ls.Spring("tool", "base", 30.0, 0.3, 2.0), ls.Spring("link2", None, 10.0)])
    t, q, tau = planar_log(robot)
    fit = ls.identify(robot, t, q, tau)
    assert fit.rms.max() < 0.05 and fit.robot_rms.max() < 0.05 and fit.robot.model.springs == robot.model.springs
    assert abs(fit["MX2"] - 0.5) < 0.01
    assert np.sqrt(np.mean(np.square(fit.predict(t, q) - tau)[500:-500])) < 0.05  # at its ends a filter guesses
    tied = plain.with_constraints(ls.Constraint("line", "tool", at=plain.pose(q[0], "tool")))
    with pytest.raises(ls.ArgumentError, match=r"has constraints .* use robot.without_constraints\(\)"):
        ls.identify(tied, t, q, tau)
