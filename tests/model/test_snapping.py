"""Directions that a file rounded become exact; nothing else moves."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from oracles import FILES, load_quietly
from robots_for_tests import robot

import linksweep as ls
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint, Placement

XARM = next(path for name, path in FILES.items() if name.endswith("/xarm7.urdf"))


def tilted(angle: float) -> ls.Robot:
    """A chain whose second joint stands at a right angle about x, and at a bit more about y."""
    c, s = np.cos(angle), np.sin(angle)
    turn = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]]) @ np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    body = Inertial(1.0, (0.1, 0.2, 0.3), ((0.1, 0.01, 0.0), (0.01, 0.2, 0.0), (0.0, 0.0, 0.25)))
    place = Placement(tuple(map(tuple, turn.tolist())), (0.3, 0.0, 0.1))  # type: ignore[arg-type]
    parts = [Part("a", "base", Joint("one"), body), Part("b", "a", Joint("two", placement=place), body)]
    return ls.Robot(assemble("tilted", parts, base="base"))


def test_a_rounded_right_angle_becomes_one():
    one = tilted(1e-7)
    exact = one.snapped(1e-6)
    assert np.array_equal(exact.model.links[1].joint.placement.rotation, [[1, 0, 0], [0, 0, -1], [0, 1, 0]])
    assert exact.snapping == {"two": pytest.approx(1e-7, rel=1e-6)}
    assert pickle.loads(pickle.dumps(exact)).snapping == exact.snapping == copy.copy(exact).snapping
    assert exact.operation_count("inverse_dynamics").total < one.operation_count("inverse_dynamics").total
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 2))
    # another robot, turned by 1e-7 rad: torques of some ten N m move by about as much, far above rounding
    assert np.allclose(exact.inverse_dynamics(q, qd, qdd), one.inverse_dynamics(q, qd, qdd), rtol=0, atol=1e-5)
    assert exact.model.links[1].inertial == one.model.links[1].inertial


def test_what_is_not_near_stays():
    one = tilted(0.01)
    assert one.snapped(1e-6) is one
    assert one.snapping == {}
    assert robot("chain7").snapped(1e-6).model == robot("chain7").model


def test_a_turn_about_one_axis_keeps_its_angle():
    angle = 0.3
    one = tilted(angle)
    rotation = np.array(one.model.links[1].joint.placement.rotation)
    noisy = rotation + 1e-8 * np.random.default_rng(1).normal(size=(3, 3))
    u, _, v = np.linalg.svd(noisy)
    place = Placement(tuple(map(tuple, (u @ v).tolist())), (0.3, 0.0, 0.1))  # type: ignore[arg-type]
    body = Inertial(1.0, (0.1, 0.2, 0.3), ((0.1, 0.0, 0.0), (0.0, 0.2, 0.0), (0.0, 0.0, 0.25)))
    found = ls.Robot(assemble("noisy", [Part("b", "base", Joint("two", placement=place), body)], base="base"))
    exact = np.array(found.snapped(1e-6).model.links[0].joint.placement.rotation)
    assert np.count_nonzero(exact == 0.0) == np.count_nonzero(np.abs(rotation) < 1e-12)
    assert np.allclose(exact @ exact.T, np.eye(3), rtol=0, atol=1e-14)
    assert np.abs(exact - rotation).max() < 1e-7


def test_the_xarm_whose_right_angles_have_five_digits():
    """1.5708 is 3.7e-6 from a right angle: forward dynamics takes 1520 operations instead of 2144."""
    one = load_quietly(XARM)
    exact = one.snapped()
    before, after = (r.operation_count("forward_dynamics").total for r in (one, exact))
    assert after <= 0.75 * before
    assert max(exact.snapping.values()) <= 1e-5
    q = np.random.default_rng(2).uniform(-1, 1, (5, one.nq))
    for frame in one.frame_names:
        assert np.abs(exact.pose(q, frame) - one.pose(q, frame)).max() <= 1e-4


@pytest.mark.parametrize("tolerance", [0, -1e-6, 0.5, float("nan"), "fine", None, True])
def test_bad_tolerances(tolerance: object):
    with pytest.raises(ls.ArgumentError, match="snapped: tolerance is"):
        tilted(0.1).snapped(tolerance)  # type: ignore[arg-type]
