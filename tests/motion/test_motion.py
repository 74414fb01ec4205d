"""The quintic motion: boundary conditions, derivatives, exact ends, and bad input."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linksweep import ArgumentError
from linksweep.motion import Quintic

pytestmark = pytest.mark.quick

finite = st.floats(-1e6, 1e6)


def example() -> Quintic:
    rng = np.random.default_rng(1)
    return Quintic(rng.uniform(-3, 3, (4, 5)), [-1.0, 0.5, 1.25, 4.0])


def test_passes_through_its_points_exactly_and_rests_there():
    path = example()
    motion = path(path.times)
    np.testing.assert_array_equal(motion.q, path.points)
    np.testing.assert_array_equal(motion.qd, 0.0)
    np.testing.assert_array_equal(motion.qdd, 0.0)


def test_holds_its_ends_outside_the_times():
    path = example()
    motion = path([path.times[0] - 7.0, path.times[-1] + 7.0])
    np.testing.assert_array_equal(motion.q, path.points[[0, -1]])
    np.testing.assert_array_equal(motion.qd, 0.0)
    np.testing.assert_array_equal(motion.qdd, 0.0)


def test_velocity_and_acceleration_are_the_derivatives():
    path = example()
    step = 1e-5
    t = np.linspace(-0.99, 3.99, 997)
    t = t[np.abs(t[:, None] - path.times).min(axis=1) > step]  # the third derivative jumps at the points
    before, at, after = path(t - step), path(t), path(t + step)
    # central differences: error step² times the third derivative (a few hundred here), plus rounding
    np.testing.assert_allclose((after.q - before.q) / (2 * step), at.qd, atol=1e-7)
    np.testing.assert_allclose((after.qd - before.qd) / (2 * step), at.qdd, atol=1e-6)


def test_each_piece_is_a_polynomial_of_degree_five():
    path = Quintic([[0.3], [-2.0]], [0.0, 2.0])
    t = np.linspace(0.0, 2.0, 50)
    coefficients = np.polynomial.Polynomial.fit(t, path(t).q[:, 0], 5)
    np.testing.assert_allclose(coefficients(t), path(t).q[:, 0], atol=1e-13)
    np.testing.assert_allclose(coefficients.deriv(2)(t), path(t).qdd[:, 0], atol=1e-11)


def test_halfway_is_halfway_and_fastest():
    motion = Quintic([[0.0], [2.0]], [0.0, 4.0])(2.0)
    assert motion.q == 1.0
    assert motion.qd == 15 / 8 * 2.0 / 4.0
    assert motion.qdd == 0.0


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 2)])
def test_any_shape_of_times(shape: tuple[int, ...]):
    path = example()
    t = np.random.default_rng(2).uniform(-1, 4, shape)
    for part in path(t):
        assert part.shape == (*shape, 5)
    for index in np.ndindex(shape):
        np.testing.assert_array_equal(path(t).q[index], path(t[index]).q)


@given(a=finite, b=finite, duration=st.floats(1e-3, 1e3), fraction=st.floats(0.0, 1.0))
def test_stays_between_its_points(a: float, b: float, duration: float, fraction: float):
    q = Quintic([[a], [b]], [0.0, duration])(fraction * duration).q[0]
    slack = 4 * np.finfo(float).eps * max(abs(a), abs(b))
    assert min(a, b) - slack <= q <= max(a, b) + slack


def test_does_not_share_memory_with_its_arguments():
    points = np.zeros((2, 1))
    path = Quintic(points, [0, 1])
    points[:] = 5.0
    assert path(0.5).q == 0.0
    with pytest.raises(ValueError, match="read-only"):
        path.points[0] = 1.0


@pytest.mark.parametrize(
    ("points", "times", "says"),
    [
        ([1.0, 2.0], [0.0, 1.0], r"points of shape \(2,\), expected \(k, n\)"),
        ([[1.0, 2.0]], [0.0], r"points of shape \(1, 2\), expected \(k, n\) with k >= 2"),
        ([[1.0], [2.0]], [0.0, 1.0, 2.0], r"times of shape \(3,\) for 2 points, expected \(2,\)"),
        ([[1.0], [2.0]], 1.0, r"times of shape \(\)"),
        ([[1.0], [2.0]], [1.0, 1.0], r"times \[1.0, 1.0\], expected strictly increasing"),
        ([[1.0], [2.0]], [1.0, 0.0], "expected strictly increasing"),
        ([[1.0], [np.nan]], [0.0, 1.0], "points with NaN"),
        ([[1.0], [2.0]], [0.0, np.inf], "times with NaN or infinity"),
        ([[1.0], [2.0j]], [0.0, 1.0], "points of type complex128"),
        ([["a"], ["b"]], [0.0, 1.0], "points of type <U1"),
        ([[1.0], [2.0, 3.0]], [0.0, 1.0], "rows differ in length"),
        ([[1.0], [None]], [0.0, 1.0], "points of type object"),
    ],
)
def test_bad_input(points: object, times: object, says: str):
    with pytest.raises(ArgumentError, match=says):
        Quintic(points, times)  # pyright: ignore[reportArgumentType]


def test_bad_times_asked_for():
    with pytest.raises(ArgumentError, match="t with NaN"):
        example()([0.0, np.nan])
