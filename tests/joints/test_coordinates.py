"""Coordinates of every kind of joint: against Pinocchio, finite differences, and numbers that cannot be coordinates."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pin_models
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linksweep as ls

pytestmark = pytest.mark.quick

ROBOT = pin_models.random_robot(pin_models.ALL_KINDS, tree=True, seed=1)
THEIRS = pin_models.pin_model(ROBOT)
WHERE = pin_models.places(ROBOT, THEIRS)
LINKS = {link.kind: link for link in ROBOT.canonical.links}
SINGLE = ("revolute", "helical", "prismatic")


def part(kind: str, width: int, rates: bool = False) -> slice:
    start = LINKS[kind].start if rates else LINKS[kind].q_start
    return slice(start, start + width)


def same_pose(a: np.ndarray, b: np.ndarray, atol: float = 1e-12) -> bool:
    """Equal coordinates, but for the sign of a quaternion and for whole turns of a planar joint."""
    a, b = np.broadcast_arrays(a, b)
    turn = part("planar", 1)
    if not np.allclose(np.sin(0.5 * (a - b)[..., turn]), 0.0, rtol=0, atol=atol):
        return False
    a = a.copy()
    a[..., turn] = b[..., turn]
    signs = np.ones(a.shape)
    for kind in ("free", "spherical"):
        where = part(kind, 4)
        signs[..., where] = np.sign((a[..., where] * b[..., where]).sum(axis=-1, keepdims=True))
    return bool(np.allclose(a, signs * b, rtol=0, atol=atol))


def rates(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.uniform(-1, 1, (*shape, ROBOT.nv))


def test_sizes():
    assert (ROBOT.nq, ROBOT.nv) == (7 + 1 + 4 + 3 + 1 + 1, 6 + 1 + 3 + 3 + 1 + 1)


# ---- neutral and random ---------------------------------------------------------------------------------------


def test_neutral_moves_nothing():
    q = ROBOT.neutral()
    assert q.sum() == 2.0 and q[part("free", 4)].tolist() == q[part("spherical", 4)].tolist() == [0, 0, 0, 1]
    assert np.array_equal(pin_models.their_q(ROBOT, THEIRS, q), pin.neutral(THEIRS))


def test_random_coordinates_are_valid_and_follow_the_generator():
    draws = np.stack([ROBOT.random(np.random.default_rng(seed)) for seed in range(200)])
    assert np.array_equal(draws[3], ROBOT.random(np.random.default_rng(3)))
    assert np.allclose(ROBOT.normalize(draws), draws, rtol=0, atol=1e-15)
    for kind in ("free", "spherical"):  # uniform on the sphere: no direction is preferred
        assert np.abs(draws[:, part(kind, 4)].mean(axis=0)).max() < 4 * 0.5 / np.sqrt(200)
    assert np.abs(draws[:, part("revolute", 1)]).max() <= np.pi
    assert np.abs(draws[:, part("prismatic", 1)]).max() <= 1.0


def test_random_keeps_within_finite_limits():
    body = {"mass": 1.0, "inertia": (0.1, 0.1, 0.1), "alpha": 1.0}
    rows = [{"lower": -0.2, "upper": 0.1} | body, {"joint": "P", "lower": 0.5, "upper": 0.6} | body, body]
    robot = ls.Robot.from_dh(rows, "modified")
    draws = np.stack([robot.random(np.random.default_rng(seed)) for seed in range(100)])
    assert (draws >= [-0.2, 0.5, -np.pi]).all() and (draws <= [0.1, 0.6, np.pi]).all()
    far = [{"lower": 5.0, "upper": 6.0} | body, {"joint": "P", "lower": 2.0} | body, {"upper": -4.0} | body]
    beyond = ls.Robot.from_dh(far, "modified").random(np.random.default_rng(0))
    assert 5.0 <= beyond[0] <= 6.0 and beyond[1:].tolist() == [2.0, -4.0]
    # the widest of so many uniform draws falls short of the whole range: a statistic, not a rounding error
    assert np.ptp(draws, axis=0) == pytest.approx([0.3, 0.1, 2 * np.pi], rel=0.1)


@pytest.mark.parametrize("rng", [0, None, np.random.RandomState(0)])
def test_random_wants_a_generator(rng: Any):
    with pytest.raises(ls.ArgumentError, match=r"expected a Generator: numpy.random.default_rng\(seed\)"):
        ROBOT.random(rng)


# ---- integrate and difference ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-300, 1e-12, 1e-9, 1e-8, 1e-5, 0.999e-3, 1.001e-3, 0.1, 1.0, 3.0, 20.0])
def test_integrate_is_pinocchio_s(size: float):
    rng = np.random.default_rng(7)
    for _ in range(10):
        q, v = ROBOT.random(rng), rates(rng) * size
        ours = ROBOT.integrate(q, v)
        theirs = pin.integrate(THEIRS, pin_models.their_q(ROBOT, THEIRS, q), pin_models.their_v(WHERE, v))
        for kind in ("free", "spherical"):  # they choose another sign after large turns
            joint = THEIRS.joints[THEIRS.getJointId(f"joint{ROBOT.link_names.index(LINKS[kind].name)}")]
            start = joint.idx_q + joint.nq - 4
            theirs[start : start + 4] *= np.sign(theirs[start : start + 4] @ ours[part(kind, 4)])
        assert np.allclose(pin_models.their_q(ROBOT, THEIRS, ours), theirs, rtol=0, atol=1e-11 * max(1.0, size))


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-12, 1e-8, 1e-5, 0.999e-3, 1.001e-3, 0.1, 1.0])
def test_difference_is_pinocchio_s_and_undoes_integrate(size: float):
    rng = np.random.default_rng(8)
    for _ in range(10):
        q, v = ROBOT.random(rng), rates(rng) * size
        end = ROBOT.integrate(q, v)
        found = ROBOT.difference(q, end)
        assert np.allclose(found, v, rtol=0, atol=4e-14)
        theirs = pin.difference(THEIRS, pin_models.their_q(ROBOT, THEIRS, q), pin_models.their_q(ROBOT, THEIRS, end))[
            WHERE
        ]
        assert np.allclose(found, theirs, rtol=0, atol=1e-7 if size < 1e-3 else 1e-11)  # theirs is coarser near 0


@pytest.mark.parametrize("short", [0.0, 1e-16, 1e-12, 1e-9, 1e-8, 1e-6, 1e-3, 0.3])
def test_turns_near_pi(short: float):
    rng = np.random.default_rng(9)
    for _ in range(20):
        q, v = ROBOT.random(rng), rates(rng)
        for kind in ("free", "spherical"):
            turn = v[part(kind, 3, rates=True)]
            turn *= (np.pi - short) / np.linalg.norm(turn)
        v[part("planar", 1, rates=True)] = np.pi - short
        end = ROBOT.integrate(q, v)
        found = ROBOT.difference(q, end)
        assert same_pose(ROBOT.integrate(q, found), end, 1e-12)
        assert max(np.linalg.norm(found[part(kind, 3, rates=True)]) for kind in ("free", "spherical")) <= np.pi + 1e-15
        if short >= 1e-6:  # at pi itself both directions lead there
            assert np.allclose(found, v, rtol=0, atol=1e-13 / short**0.5)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-12.0, 0.5))
def test_between_any_two_poses(seed: int, exponent: float):
    rng = np.random.default_rng(seed)
    a = ROBOT.random(rng)
    b = ROBOT.random(rng) if exponent > 0 else ROBOT.integrate(a, rates(rng), 10.0**exponent)
    assert same_pose(ROBOT.integrate(a, ROBOT.difference(a, b)), b, 1e-11)
    assert np.allclose(ROBOT.difference(a, a), 0.0, rtol=0, atol=1e-15)
    assert np.allclose(ROBOT.difference(a, b), -ROBOT.difference(b, a), rtol=0, atol=1e-9)


@pytest.mark.parametrize("turn", [2 * np.pi, 2 * np.pi - 1e-9, 4 * np.pi, 7.0, -6.0, 100.0])
def test_a_planar_joint_takes_the_short_turn(turn: float):
    a, b = ROBOT.neutral(), ROBOT.neutral()
    b[part("planar", 3)] = turn, 1.0, 0.5
    rate = ROBOT.difference(a, b)[part("planar", 3, rates=True)]
    assert abs(rate[0]) <= np.pi and np.abs(rate).max() < 10
    assert same_pose(ROBOT.integrate(a, ROBOT.difference(a, b)), b)


def test_steps_add_up():
    rng = np.random.default_rng(10)
    q, v = ROBOT.random(rng), rates(rng) * 3
    twice = ROBOT.integrate(ROBOT.integrate(q, v, 0.25), v, 0.75)
    assert np.allclose(twice, ROBOT.integrate(q, v), rtol=0, atol=1e-14)
    assert np.allclose(ROBOT.integrate(ROBOT.integrate(q, v), v, -1.0), q, rtol=0, atol=1e-14)
    assert np.array_equal(ROBOT.integrate(q, v, 0.0), ROBOT.integrate(q, np.zeros(ROBOT.nv)))


def test_a_quaternion_and_its_negative_are_the_same_place():
    rng = np.random.default_rng(11)
    a, b = ROBOT.random(rng), ROBOT.random(rng)
    other = b.copy()
    for kind in ("free", "spherical"):
        other[part(kind, 4)] *= -3.0
    assert np.allclose(ROBOT.difference(a, b), ROBOT.difference(a, other), rtol=0, atol=1e-14)


def test_after_many_small_steps_the_quaternion_has_length_1():
    q = ROBOT.random(np.random.default_rng(12))
    v = np.ones(ROBOT.nv)
    for _ in range(2000):
        q = ROBOT.integrate(q, v, 1e-3)
    for kind in ("free", "spherical"):
        assert np.linalg.norm(q[part(kind, 4)]) == pytest.approx(1.0, abs=1e-14)


# ---- rates of coordinates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_coordinate_rates_are_the_derivative_of_integrate(seed: int):
    rng = np.random.default_rng(seed)
    q, v, h = ROBOT.random(rng), rates(rng), 1e-5
    numeric = (ROBOT.integrate(q, v, h) - ROBOT.integrate(q, v, -h)) / (2 * h)
    assert np.allclose(ROBOT.coordinate_rates(q, v), numeric, rtol=0, atol=1e-10)
    for kind in SINGLE:
        assert ROBOT.coordinate_rates(q, v)[part(kind, 1)] == v[part(kind, 1, rates=True)]


def test_the_rate_of_a_pose_is_the_jacobian_times_v():
    rng = np.random.default_rng(13)
    q, v, h = ROBOT.random(rng), rates(rng), 1e-6
    for frame in ("link0", "flange3", "flange5"):
        ahead, behind = (ROBOT.pose(ROBOT.integrate(q, v, s), frame) for s in (h, -h))
        velocity = ROBOT.jacobian(q, frame) @ v
        assert np.allclose((ahead - behind)[:3, 3] / (2 * h), velocity[3:], rtol=0, atol=1e-8)
        turn = pin.log3(ahead[:3, :3] @ behind[:3, :3].T) / (2 * h)
        assert np.allclose(turn, velocity[:3], rtol=0, atol=1e-8)


def test_rates_of_a_quaternion_grow_with_its_length():
    """q' = Omega(q) v is linear in q: an unnormalised quaternion turns just as fast."""
    rng = np.random.default_rng(14)
    q, v = ROBOT.random(rng), rates(rng)
    long = q.copy()
    for kind in ("free", "spherical"):
        long[part(kind, 4)] *= 2.0
    short, other = ROBOT.coordinate_rates(q, v), ROBOT.coordinate_rates(long, v)
    assert np.allclose(other[part("spherical", 4)], 2.0 * short[part("spherical", 4)], atol=1e-15)
    assert np.allclose(other[part("free", 7)][4:], short[part("free", 7)][4:], atol=1e-15)


# ---- shapes, types, errors ---------------------------------------------------------------------------------------


def test_batches_broadcast():
    rng = np.random.default_rng(15)
    q = np.stack([[ROBOT.random(rng) for _ in range(3)] for _ in range(2)])
    v = rates(rng, 3)
    out = ROBOT.integrate(q, v, np.array([[0.1], [0.2]]))
    assert out.shape == (2, 3, ROBOT.nq)
    assert np.allclose(out[1, 2], ROBOT.integrate(q[1, 2], v[2], 0.2), rtol=0, atol=1e-15)
    assert ROBOT.integrate(ROBOT.neutral(), v).shape == (3, ROBOT.nq)
    assert ROBOT.integrate(ROBOT.neutral(), v[0], np.arange(4.0)).shape == (4, ROBOT.nq)
    both = ROBOT.difference(q[:, :1], out)
    assert both.shape == (2, 3, ROBOT.nv)
    assert np.allclose(both[1, 2], ROBOT.difference(q[1, 0], out[1, 2]), rtol=0, atol=1e-15)
    rows = ROBOT.coordinate_rates(q, v)
    assert rows.shape == (2, 3, ROBOT.nq) and np.allclose(rows[0, 1], ROBOT.coordinate_rates(q[0, 1], v[1]))
    assert ROBOT.normalize(3.0 * q).shape == q.shape
    for empty in (ROBOT.normalize(np.zeros((0, ROBOT.nq))), ROBOT.integrate(np.zeros((0, ROBOT.nq)), v[0])):
        assert empty.shape == (0, ROBOT.nq)


def test_inputs_are_left_alone():
    rng = np.random.default_rng(16)
    q, v = 2.0 * ROBOT.random(rng), rates(rng)
    before = q.copy(), v.copy()
    for call in (ROBOT.integrate, ROBOT.coordinate_rates):
        call(q, v)
    ROBOT.difference(q, q)
    ROBOT.normalize(q)
    assert np.array_equal(q, before[0]) and np.array_equal(v, before[1])


def test_normalize_touches_quaternions_only():
    q = 2.5 * ROBOT.random(np.random.default_rng(17))
    unit = ROBOT.normalize(q)
    for kind in ("free", "spherical"):
        assert np.linalg.norm(unit[part(kind, 4)]) == pytest.approx(1.0, abs=1e-15)
        q[part(kind, 4)] = unit[part(kind, 4)]
    assert np.array_equal(q, unit)


def test_float32_stays_and_integers_are_taken():
    rng = np.random.default_rng(18)
    q, v = ROBOT.random(rng), rates(rng)
    small = q.astype(np.float32), v.astype(np.float32)
    for ours, exact in (
        (ROBOT.integrate(*small, 0.5), ROBOT.integrate(q, v, 0.5)),
        (ROBOT.difference(small[0], ROBOT.integrate(*small)), v),
        (ROBOT.coordinate_rates(*small), ROBOT.coordinate_rates(q, v)),
        (ROBOT.normalize(small[0]), q),
    ):
        assert ours.dtype == np.float32 and np.allclose(ours, exact, rtol=0, atol=3e-6)
    whole = ROBOT.neutral().astype(int)
    assert ROBOT.integrate(whole, np.zeros(ROBOT.nv, int)).dtype == np.float64
    assert np.array_equal(ROBOT.normalize(whole.tolist()), ROBOT.neutral())


@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf, 1e-320])
@pytest.mark.parametrize("kind", ["free", "spherical"])
def test_quaternions_that_are_none(kind: str, bad: float):
    q = np.stack([ROBOT.neutral()] * 3)
    q[1, part(kind, 4)] = bad
    v = np.zeros(ROBOT.nv)
    calls = [lambda: ROBOT.normalize(q), lambda: ROBOT.integrate(q, v), lambda: ROBOT.difference(ROBOT.neutral(), q)]
    for call in calls:
        if bad == 1e-320:  # too small to have a direction left: an error or a unit quaternion, never a NaN
            with contextlib.suppress(ls.ArgumentError):
                assert np.isfinite(call()).all()
            continue
        with pytest.raises(ls.ArgumentError, match=rf"quaternion of the joint of '{LINKS[kind].name}' is zero or not"):
            call()


@pytest.mark.parametrize(
    "bad", [np.zeros(3), 1.0, "q", None, np.zeros((2, 0)), [[1.0], [1.0, 2.0]], np.zeros(17, complex), {}]
)
def test_arrays_that_are_no_coordinates(bad: Any):
    good_q, good_v = ROBOT.neutral(), np.zeros(ROBOT.nv)
    for call in (
        lambda: ROBOT.normalize(bad),
        lambda: ROBOT.integrate(bad, good_v),
        lambda: ROBOT.integrate(good_q, bad),
        lambda: ROBOT.difference(bad, good_q),
        lambda: ROBOT.difference(good_q, bad),
        lambda: ROBOT.coordinate_rates(good_q, bad),
    ):
        with pytest.raises(ls.ArgumentError, match=r"expected (real numbers of shape )?\(\.\.\., \d+\)"):
            call()


@pytest.mark.parametrize("bad", [None, "x", 1j, [1.0, [2.0, 3.0]], {}, [None, 1.0]])
def test_times_that_are_none(bad: Any):
    for robot in (ROBOT, ls.robots.planar(3)):
        with pytest.raises(ls.ArgumentError, match=r"^dt is .*, expected real numbers"):
            robot.integrate(robot.neutral(), np.zeros(robot.nv), bad)


def test_times_of_another_batch():
    for robot in (ROBOT, ls.robots.planar(3)):
        q, v = np.stack([robot.neutral()] * 2), np.ones(robot.nv)
        with pytest.raises(ls.ArgumentError, match=r"q \(2,\), v \(\) and dt \(3,\) do not broadcast together"):
            robot.integrate(q, v, np.ones(3))
        with pytest.raises(ls.ArgumentError, match=r"q \(2,\), v \(3,\) and dt \(\) do not broadcast together"):
            robot.integrate(q, np.stack([v] * 3))
        assert robot.integrate(q, v, np.ones((3, 1))).shape == (3, 2, robot.nq)
        assert np.array_equal(robot.integrate(q, v, [1, 2])[1], robot.integrate(q[1], v, 2.0))
