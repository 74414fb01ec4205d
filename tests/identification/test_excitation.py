"""Exciting motions: exact gradients, limits kept between the samples too, better than any of a thousand random ones."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from arms import arm
from scale import at_scale

import linksweep as ls
from linksweep.identification.base_form import base_form
from linksweep.identification.excitation import (
    CRITERIA,
    MARGIN,
    Barrier,
    Criterion,
    Excitation,
    _joint_and_frame_limits,
    make_basis,
    random_coefficients,
)
from linksweep.identification.regressor import Regressor

BOX = {"panda_hand": ((-0.6, -0.7, 0.15), (0.7, 0.6, 1.1))}


@functools.cache
def panda(kind: str = "fourier", boxed: bool = False) -> Excitation:
    return ls.excite(arm("panda"), 10.0, kind=kind, starts=1, iterations=60, boxes=BOX if boxed else None)


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("kind", ["fourier", "spline"])
def test_gradients_are_exact(kind: str, criterion: str):
    robot = arm("panda").with_dissipation(damping=np.full(7, 0.4), friction=np.linspace(0.5, 2.0, 7))
    regressor = Regressor(
        robot, ("inertia", "armature", "viscous", "coulomb"), {"pair": {"panda_joint6": 1, "panda_joint7": 1}}
    )
    limits = _joint_and_frame_limits(robot, None, None, None, BOX, 0.1, [((0.3, 0.3, 0.0), (0.6, 0.6, 0.4))])
    assert limits.floor[0] and limits.keep_out[0]
    measure = Criterion(base_form(regressor), criterion, limits, np.linspace(0.5, 2.0, 7))
    barrier = Barrier(limits, measure, 0.01)
    basis = make_basis(kind, 4, 8.0)
    phi = basis(np.linspace(0.0, 8.0, 60)[:-1])
    rng = np.random.default_rng(0)
    C = random_coefficients(basis, phi, barrier, rng)
    at = [one @ C for one in phi]
    for cost in (measure, barrier):
        value, slopes = cost(*at)
        assert np.isfinite(value)
        for direction in range(3):  # by q, by qd, by qdd
            step = [rng.normal(size=at[0].shape) if k == direction else np.zeros_like(at[0]) for k in range(3)]
            h = 1e-6
            up, down = (cost(*(a + s * h * d for a, d in zip(at, step, strict=True)))[0] for s in (1.0, -1.0))
            exact = float(np.sum(slopes[direction] * step[direction]))
            # central differences of step 1e-6 are good to some 1e-9 of the value
            assert abs((up - down) / (2 * h) - exact) < 2e-6 * max(1.0, abs(exact)), (direction, up, down, exact)


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize(("kind", "boxed"), [("fourier", False), ("spline", False), ("fourier", True)])
def test_limits_are_kept_everywhere_and_the_ends_are_at_rest(kind: str, boxed: bool):
    found, robot = panda(kind, boxed), arm("panda")
    t, q, qd, qdd = found.samples(1000.0)
    own = robot.limits
    assert (q > own.lower).all() and (q < own.upper).all()
    assert (np.abs(qd) < own.velocity).all() and (np.abs(qdd) < 4 * own.velocity).all()
    assert (np.abs(robot.inverse_dynamics(q, qd, qdd)) < own.effort).all()
    assert np.abs(qd[[0, -1]]).max() < 1e-12 and np.abs(qdd[[0, -1]]).max() < 1e-11
    assert 0.9 < found.used <= 1.0
    if boxed:
        place = robot.pose(q, "panda_hand")[:, :3, 3]
        assert (place > BOX["panda_hand"][0]).all() and (place < BOX["panda_hand"][1]).all()
    # derivatives belong together; central differences at 1 kHz miss h^2 / 6 of the third one, some 100 rad/s^3
    assert np.allclose(np.gradient(q, t, axis=0)[1:-1], qd[1:-1], atol=1e-4)


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["ur5", "puma560"])
def test_the_arm_stays_above_the_floor_and_out_of_its_base(name: str):
    robot = arm(name)
    options = {"starts": 1, "iterations": 5, "duration": 5.0}
    found, free = ls.excite(robot, **options), ls.excite(robot, floor=None, keep_out=(), **options)
    assert free.lowest < -0.1 and not free.limits.floor[0]
    _, q, _, _ = found.samples(500.0)
    places = robot.poses(q)[:, :, :3, 3]
    rows, height = found.limits.floor
    tips = [robot.frame_names.index(tip) for tip in robot.tips]
    assert set(tips) <= set(rows) and height == 0.05 and (places[:, rows, 2] > height).all()
    rows, boxes = found.limits.keep_out
    for lower, upper in boxes:
        inside = np.all((places > lower) & (places < upper), axis=2)
        assert set(tips) <= set(rows) and not inside[:, rows].any()
    assert bool(boxes) == (name == "ur5")  # the base frame of this PUMA is at its shoulder
    assert "self-collision not checked" in repr(found)


@pytest.mark.slow
def test_boxes_that_no_frame_enters():
    robot = arm("ur5")
    wall = ((0.3, -2.0, -1.0), (2.0, 2.0, 2.0))
    found = ls.excite(robot, 5.0, starts=1, iterations=5, keep_out=[wall], floor=-2.0)
    _, q, _, _ = found.samples(500.0)
    places = robot.poses(q)[:, :, :3, 3]
    assert len(found.limits.keep_out[0]) >= 5 and places[..., 0].max() < 0.3
    for wrong, sentence in (([((1, 1, 1), (0, 0, 0))], r"keep_out\[0\] is"), ([1.0], r"keep_out\[0\] is")):
        with pytest.raises(ls.ArgumentError, match=sentence):
            ls.excite(robot, keep_out=wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ls.ArgumentError, match="floor is 'low', expected a height"):
        ls.excite(robot, floor="low")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ls.ArgumentError, match="finds no configuration"):
        ls.excite(robot, floor=0.8)


@pytest.mark.slow
def test_friction_is_part_of_the_effort():
    robot = arm("panda")
    rough = robot.with_dissipation(damping=0.2 * robot.limits.effort / robot.limits.velocity, friction=np.full(7, 1.0))
    found = ls.excite(rough, 5.0, starts=1, iterations=20)
    _, q, qd, qdd = found.samples(200.0)
    fast = np.abs(qd) > 0.05 * rough.limits.velocity  # below, the sign of friction is blurred
    torques = np.abs(rough.inverse_dynamics(q, qd, qdd, dissipation=True)) / rough.limits.effort
    assert fast.any() and torques[fast].max() < 1.0 and found.used <= 1.0


def random_conditions(found: Excitation, count: int) -> np.ndarray:
    """Condition numbers of random Fourier motions in the same limits, by the public regressor."""
    robot = arm("panda")
    regressor = Regressor(robot, ("inertia",))
    measure = Criterion(base_form(regressor), "condition", found.limits, np.ones(7))
    barrier = Barrier(found.limits, measure, MARGIN)
    basis = found.motion.basis
    phi = basis(np.linspace(0.0, found.duration, 101)[:-1])
    rng = np.random.default_rng(99)
    base = robot.base_parameters()
    sizes = []
    for _ in range(count):
        C = random_coefficients(basis, phi, barrier, rng)
        sizes.append(np.linalg.cond(base.regressor(*(one @ C for one in phi)).reshape(-1, len(base))))
    return np.array(sizes)


@pytest.mark.slow
def test_it_is_twice_as_good_as_the_best_of_many_random_motions():
    found = panda()
    base = arm("panda").base_parameters()
    _, q, qd, qdd = found.samples(100.0)
    condition = np.linalg.cond(base.regressor(q[:-1], qd[:-1], qdd[:-1]).reshape(-1, len(base)))
    assert np.isclose(condition, found.condition, rtol=1e-6)
    assert condition <= 0.5 * random_conditions(found, 60).min()


@pytest.mark.slow
def test_it_is_twice_as_good_as_the_best_of_many():
    assert panda().condition <= 0.5 * random_conditions(panda(), at_scale(200, 1000)).min()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_motion():
    options = {"starts": 1, "iterations": 10, "duration": 5.0}
    one, same, other = (ls.excite(arm("puma560"), seed=seed, **options) for seed in (3, 3, 4))
    assert np.array_equal(one.motion.coefficients, same.motion.coefficients)
    assert not np.array_equal(one.motion.coefficients, other.motion.coefficients)


@pytest.mark.slow
def test_the_determinant_is_made_larger():
    robot = arm("puma560")
    base = robot.base_parameters()

    def volume(found: Excitation) -> float:
        _, q, qd, qdd = found.samples(50.0)
        return float(np.linalg.slogdet(np.einsum("tji,tjk->ik", *[base.regressor(q, qd, qdd)] * 2))[1])

    sure = ls.excite(robot, 6.0, criterion="determinant", starts=1, iterations=40)
    even = ls.excite(robot, 6.0, criterion="condition", starts=1, iterations=40)
    assert volume(sure) > volume(even)


@pytest.mark.slow
def test_it_goes_to_a_file_that_is_a_trajectory(tmp_path):
    found = panda()
    found.to_csv(tmp_path / "motion.csv", 50.0)
    table = np.loadtxt(tmp_path / "motion.csv", delimiter=",", skiprows=1)
    assert table.shape == (501, 22)
    assert np.allclose(table[:, 1:8], found.motion(table[:, 0]).q, rtol=0, atol=1e-12)
    assert "condition" in repr(found)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"duration": -1.0}, "duration is -1.0, expected a finite number above 0"),
        ({"kind": "sine"}, "kind is 'sine'"),
        ({"criterion": "trace"}, "criterion is 'trace'"),
        ({"harmonics": 1}, "harmonics is 1, expected an integer from 2"),
        ({"harmonics": 10**6}, "harmonics is 1000000, expected an integer from 2"),
        ({"starts": 10**9}, "starts is 1000000000, expected an integer from 0"),
        ({"acceleration": [1.0, 2.0]}, "acceleration is .*, expected a number above 0, or 6"),
        ({"boxes": {"hand": ((0, 0, 0), (1, 1, 1))}}, "no frame 'hand'"),
        ({"boxes": {"tool": ((0, 0, 0), (1, 1, -1))}}, "two corners of three numbers"),
        ({"boxes": {"tool": ((5, 5, 5), (6, 6, 6))}}, "finds no configuration within"),
        ({"effort": 0.1}, "finds no configuration within"),
        ({"unknown": ("inertia", "offset")}, "unknown has 'offset'"),
    ],
)
def test_what_cannot_be_is_one_sentence(options: dict, sentence: str):
    with pytest.raises(ls.ArgumentError, match=sentence):
        ls.excite(arm("puma560"), **{"starts": 1, "iterations": 2, **options})


def test_a_sliding_joint_needs_limits():
    robot = ls.robots.stanford().with_limits(lower={"joint3": -np.inf}, upper={"joint3": np.inf})
    with pytest.raises(ls.ArgumentError, match="prismatic joint 'joint3' has no limits"):
        ls.excite(robot)


@pytest.mark.parametrize("cutoff", [1e-300, 1e-9, 0.2])
def test_a_cutoff_without_a_period_in_the_log(cutoff: float):
    """A filter of 1e-9 Hz would take a terabyte of coefficients."""
    t = np.arange(400) * 0.01
    q = np.stack([np.sin(2 * t), np.cos(3 * t)], axis=1)
    with pytest.raises(ls.ArgumentError, match=r"expected at least 0\.25 Hz"):
        ls.identify(ls.robots.planar(2), t, q, q, cutoff=cutoff)
