"""Joint motions besides the quintic: published values, end conditions, derivatives, limits, bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.interpolate
from hypothesis import given, settings
from hypothesis import strategies as st

import linksweep as ls
from linksweep import ArgumentError
from linksweep.motion import CubicSpline, Cycloid, Motion, NormalSpline, Quintic, QuinticSpline, Trapezoid

RNG = np.random.default_rng(4)
POINTS, TIMES = RNG.uniform(-2.0, 2.0, (7, 3)), np.array([-1.0, -0.2, 0.5, 1.0, 2.5, 3.0, 4.0])
MOTIONS: dict[str, Callable[[], Motion]] = {
    "quintic": lambda: Quintic(POINTS, TIMES),
    "normal spline": lambda: NormalSpline(POINTS, TIMES),
    "cycloid": lambda: Cycloid([0.1, 0.2, -0.3], [1.0, -2.0, 0.5], 0.7),
    "cubic at rest": lambda: CubicSpline(POINTS, TIMES),
    "cubic natural": lambda: CubicSpline(POINTS, TIMES, "natural"),
    "cubic not-a-knot": lambda: CubicSpline(POINTS, TIMES, "not-a-knot"),
    "quintic spline at rest": lambda: QuinticSpline(POINTS, TIMES),
    "quintic spline": lambda: QuinticSpline(POINTS, TIMES, "not-a-knot"),
    "trapezoid": lambda: Trapezoid(POINTS, [1.0, 2.0, 1.5], 3.0, start=-1.0),
}


@pytest.fixture(params=MOTIONS)
def motion(request: pytest.FixtureRequest) -> Motion:
    return MOTIONS[request.param]()


@pytest.mark.quick
def test_velocity_and_acceleration_are_the_derivatives(motion: Motion):
    t = np.linspace(motion.start, motion.end, 403)[1:-1]
    knots = np.concatenate([np.atleast_1d(x).ravel() for x in _knots(motion)])
    # from here to there the motion is a polynomial of degree 5 or less, or smooth: central differences of order 4
    # have errors of step^4 times the fifth derivative, and of rounding over step
    step = 1e-3
    t = t[np.abs(t[:, None] - knots).min(axis=1) > 2.0 * step]
    near = motion(t[:, None] + step * np.array([-2.0, -1.0, 1.0, 2.0]))
    at = motion(t)
    weights = np.array([1.0, -8.0, 8.0, -1.0]) / (12.0 * step)
    for value, derivative in ((near.q, at.qd), (near.qd, at.qdd)):
        scale = np.abs(derivative).max()
        np.testing.assert_allclose(np.einsum("tkn,k->tn", value, weights), derivative, rtol=0, atol=2e-8 * scale)


def _knots(motion: Motion) -> list[Any]:
    """Where some derivative jumps."""
    ends = [motion.start, motion.end]
    if isinstance(motion, Trapezoid):
        ramps = motion.times[:-1] + motion._ramp, motion.times[1:] - motion._ramp
        return [ends, motion.times, *ramps]
    times = getattr(motion, "times", np.array(ends))
    if isinstance(motion, NormalSpline):
        return [ends, times, *(times[:-1] + np.diff(times) * part for part in (1 / 3, 2 / 3))]
    return [ends, times]


def test_any_shape_of_times(motion: Motion):
    t = np.random.default_rng(2).uniform(motion.start, motion.end, (3, 2))
    whole = motion(t)
    for part in whole:
        assert part.shape == (3, 2, 3) and part.dtype == np.float64
    for index in np.ndindex(3, 2):
        for part, alone in zip(whole, motion(t[index]), strict=True):
            np.testing.assert_array_equal(part[index], alone)
    assert motion([]).q.shape == (0, 3)
    assert motion.duration == motion.end - motion.start


def test_outside_its_times(motion: Motion):
    outside = [motion.start - 2.0, motion.end + 2.0]
    if motion.holds:
        ends, held = motion([motion.start, motion.end]), motion(outside)
        np.testing.assert_array_equal(held.q, ends.q)
        np.testing.assert_array_equal(held.qd, 0.0)
        np.testing.assert_array_equal(held.qdd, 0.0)
        np.testing.assert_allclose(ends.qd, 0.0, atol=1e-12)
    else:
        with pytest.raises(ArgumentError, match=r"expected times from .* it is not at rest at its ends"):
            motion(outside)


@pytest.mark.quick
def test_passes_through_its_points(motion: Motion):
    if isinstance(motion, Cycloid):
        np.testing.assert_allclose(motion([0.0, motion.end]).q, [motion.q0, motion.q0 + motion.A * motion.end])
        return
    np.testing.assert_allclose(motion(motion.times).q, POINTS, rtol=0, atol=1e-13)  # pyright: ignore


def test_not_a_number_is_refused(motion: Motion):
    with pytest.raises(ArgumentError, match="t with NaN"):
        motion([motion.start, np.nan])


# ---- the motions of Angeles, Ma & Rojas ---------------------------------------------------------------------------


def test_cycloid_of_the_stanford_arm():
    """Section 7.1: A = pi/30, -pi/60 and 0.01, B = 2 pi / 10, 10 s: 60 degrees, -30 degrees and 0.1 m, from rest."""
    A = np.array([np.pi / 30, -np.pi / 60, 0.01])
    path = Cycloid([0.0, np.pi / 2, 0.0], A, 2 * np.pi / 10)
    assert path.duration == pytest.approx(10.0, rel=1e-15)
    np.testing.assert_allclose(path(10.0).q, [np.pi / 3, np.pi / 3, 0.1], rtol=1e-14)
    np.testing.assert_allclose(path(5.0).q, [np.pi / 6, 5 * np.pi / 12, 0.05], rtol=1e-14)
    np.testing.assert_allclose(path(5.0).qd, 2.0 * A, rtol=1e-15)  # the fastest: twice the mean velocity
    np.testing.assert_allclose(path(2.5).qdd, A * 2 * np.pi / 10, rtol=1e-15)
    np.testing.assert_allclose(path([0.0, 10.0]).qd, 0.0, atol=1e-30)
    same = Cycloid.between([0.0, np.pi / 2, 0.0], [np.pi / 3, np.pi / 3, 0.1], 10.0)
    np.testing.assert_allclose(same(3.3).q, path(3.3).q, rtol=1e-14)


def test_cycloid_that_stops_in_the_middle_is_not_held():
    half = Cycloid([0.0], [1.0], 1.0, duration=3.0)
    assert not half.holds and Cycloid([0.0], [1.0], 1.0, duration=4 * np.pi).holds
    with pytest.raises(ArgumentError, match="not at rest"):
        half(3.1)


def test_normal_spline_is_the_cubic_spline_of_three_pieces():
    """Its conditions and no others, solved by SciPy: the B-spline whose first and last three coefficients agree."""
    spline = scipy.interpolate.BSpline([0, 0, 0, 0, 1 / 3, 2 / 3, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1], 3)
    t = np.linspace(0.0, 1.0, 201)
    ours = NormalSpline([[0.0], [1.0]], [0.0, 1.0])(t)
    for order, part in enumerate(ours):
        np.testing.assert_allclose(part[:, 0], spline(t, order), rtol=0, atol=2e-14)
    ends = NormalSpline([[0.0], [1.0]], [0.0, 1.0])([0.0, 1.0])
    np.testing.assert_array_equal(np.concatenate([part[:, 0] for part in ends]), [0, 1, 0, 0, 0, 0])


# ---- splines ------------------------------------------------------------------------------------------------------


def test_ends_of_the_splines():
    ends = [TIMES[0], TIMES[-1]]
    np.testing.assert_allclose(CubicSpline(POINTS, TIMES)(ends).qd, 0.0, atol=1e-14)
    np.testing.assert_allclose(CubicSpline(POINTS, TIMES, "natural")(ends).qdd, 0.0, atol=1e-12)
    still = QuinticSpline(POINTS, TIMES)(ends)
    np.testing.assert_allclose(still.qd, 0.0, atol=1e-12)
    np.testing.assert_allclose(still.qdd, 0.0, atol=1e-11)


def test_quintic_spline_through_two_points_is_the_quintic():
    t = np.linspace(0.0, 2.0, 31)
    spline, quintic = (kind([[0.0], [1.5]], [0.0, 2.0])(t) for kind in (QuinticSpline, Quintic))
    for ours, theirs in zip(spline, quintic, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-13)


def test_splines_give_back_polynomials_of_their_degree():
    t, dense = np.linspace(-1.0, 1.0, 8), np.linspace(-1.0, 1.0, 50)
    for kind, degree in ((CubicSpline, 3), (QuinticSpline, 5)):
        polynomial = np.polynomial.Polynomial(RNG.normal(size=degree + 1))
        motion = kind(polynomial(t)[:, None], t, "not-a-knot")(dense)
        for order, part in enumerate(motion):
            exact = polynomial.deriv(order)(dense) if order else polynomial(dense)
            np.testing.assert_allclose(part[:, 0], exact, atol=2e-12)


# ---- trapezoids ---------------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_trapezoid_by_hand():
    """10 rad at 2 rad/s and 1 rad/s^2: 2 s up, 3 s at full speed, 2 s down."""
    path = Trapezoid([[0.0], [10.0]], 2.0, 1.0)
    assert path.duration == 7.0
    motion = path([1.0, 2.0, 3.5, 5.0, 6.0, 7.0])
    np.testing.assert_allclose(motion.q[:, 0], [0.5, 2.0, 5.0, 8.0, 9.5, 10.0], rtol=1e-15)
    np.testing.assert_allclose(motion.qd[:, 0], [1.0, 2.0, 2.0, 2.0, 1.0, 0.0], atol=1e-15)
    np.testing.assert_array_equal(motion.qdd[:, 0], [1.0, 0.0, 0.0, -1.0, -1.0, -1.0])


def test_short_trapezoid_is_a_triangle():
    path = Trapezoid([[0.0], [1.0]], 5.0, 4.0)
    assert path.duration == 1.0 and path(0.5).qd == 2.0
    assert path(0.25).q == 0.125 and path(0.25).qdd == 4.0 and path(0.75).qdd == -4.0


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_trapezoid_keeps_its_limits_and_uses_them(seed: int):
    rng = np.random.default_rng(seed)
    velocity, acceleration = rng.uniform(0.1, 3.0, (2, 4))
    path = Trapezoid(rng.uniform(-3.0, 3.0, (3, 4)), velocity, acceleration)
    motion = path(np.linspace(path.start, path.end, 500))
    assert (np.abs(motion.qd) <= velocity * (1 + 1e-12)).all()
    assert (np.abs(motion.qdd) <= acceleration * (1 + 1e-12)).all()
    for piece in range(2):
        inside = path(np.linspace(path.times[piece], path.times[piece + 1], 501)[1:-1])
        # all joints move together, and in each piece one of them is at its limit of acceleration
        assert np.abs(path(path.times[piece]).qdd / acceleration).max() == pytest.approx(1.0, rel=1e-9)
        way = path.points[piece + 1] - path.points[piece]
        fractions = (inside.q - path.points[piece]) / way
        np.testing.assert_allclose(fractions, fractions[:, :1] + np.zeros(4), atol=1e-10)


# ---- bad input ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: NormalSpline([[0.0], [1.0]], [1.0, 0.0]), "NormalSpline got times .* expected strictly increasing"),
        (lambda: CubicSpline([[0.0], [1.0]], [0.0, 1.0], "periodic"), "ends 'periodic', expected one of rest, natural"),
        (lambda: CubicSpline([[0.0], [1.0]], [0.0, 1.0], None), "ends None, expected one of"),  # pyright: ignore
        (lambda: CubicSpline([0.0, 1.0], [0.0, 1.0]), r"CubicSpline got points of shape \(2,\)"),
        (lambda: QuinticSpline([[0.0], [1.0]], [0.0, 1.0], "not-a-knot"), "expected .* k >= 6"),
        (lambda: QuinticSpline([[0.0], [np.nan]], [0.0, 1.0]), "QuinticSpline got points with NaN"),
        (lambda: Cycloid([0.0], [1.0, 2.0], 1.0), r"q0 of shape \(1,\) and A of shape \(2,\)"),
        (lambda: Cycloid([0.0], [1.0], 0.0), "B 0, expected it to be above 0"),
        (lambda: Cycloid([0.0], [1.0], 1.0, -1.0), "duration -1, expected it to be above 0"),
        (lambda: Cycloid.between([0.0], [1.0, 2.0], 1.0), r"q1 of shape \(2,\), expected the same"),
        (lambda: Cycloid.between([0.0], [1.0], 0.0), "duration 0.0, expected one number above 0"),
        (lambda: Trapezoid([[0.0], [1.0]], 0.0, 1.0), "velocity 0, expected it to be above 0"),
        (lambda: Trapezoid([[0.0], [1.0]], 1.0, [-1.0]), r"acceleration \[-1.0\], expected it to be above 0"),
        (lambda: Trapezoid([[0.0], [1.0]], [1.0, 2.0], 1.0), r"velocity of shape \(2,\), expected one number or 1"),
        (lambda: Trapezoid([[0.0], [1.0]], np.inf, 1.0), "velocity with NaN or infinity"),
        (lambda: Trapezoid([[0.0], [0.0]], 1.0, 1.0), "the same point twice in a row"),
        (lambda: Trapezoid([[0.0], [1.0]], 1.0, 1.0, [0.0]), r"start of shape \(1,\), expected one number"),  # pyright: ignore
        (lambda: Quintic(np.zeros((2, 0)), [0.0, 1.0]), r"points of shape \(2, 0\)"),
    ],
)
def test_bad_input(make: Callable[[], Motion], says: str):
    with pytest.raises(ArgumentError, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_public_names():
    assert all(hasattr(ls.motion, name) for name in ls.motion.__all__)


@pytest.mark.parametrize("kind", [Quintic, NormalSpline, CubicSpline, QuinticSpline])
def test_times_too_near_for_velocities_are_refused(kind: type):
    with pytest.raises(ArgumentError, match="1e-300 s apart, expected at least 1e-12"):
        kind([[0.0], [1.0]], [0.0, 1e-300])
