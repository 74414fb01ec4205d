"""Kang's influence coefficients of the first and second order, against Appendix 1 and finite differences."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import pytest
from robots_for_tests import close, difference, kinematics, robot, samples

import linksweep as ls
from linksweep.errors import ArgumentError

KINDS = list(itertools.product(("revolute", "prismatic"), repeat=2))


def two_joints(outer: str, inner: str) -> ls.Robot:
    """Two joints of these kinds, then a third revolute one, of no special geometry."""
    model = ls.robots.chain_model(3, seed=7)
    links = [_with_kind(link, kind) for link, kind in zip(model.links, (inner, outer, "revolute"), strict=True)]
    return ls.Robot(dataclasses.replace(model, links=tuple(links)))


def _with_kind(link: Any, kind: str) -> Any:
    return dataclasses.replace(link, joint=dataclasses.replace(link.joint, kind=kind))


# ---- first and second order ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["puma560", "stanford", "mixed5", "tree4", "urdf"])
def test_second_order_is_the_derivative_of_the_first(name: str):
    bot = robot(name)
    (q,) = samples(bot, count=1)
    for frame in (bot.frame_names[0], bot.frame_names[-1], bot.link_names[-1]):
        point = (frame, (0.1, -0.2, 0.3))
        G, H = bot.influence(q, point)
        by_q = difference(lambda q, point=point: bot.influence(q, point)[0], q)
        assert np.abs(np.swapaxes(by_q, 1, 2) - H).max() < 1e-9  # H[:, j, k] = dG[:, k]/dq_j
        assert close(bot.influence(q, frame)[0], bot.jacobian(q, frame), 1e-13)
        T = functools.partial(bot.pose, frame=frame)
        position = difference(lambda q, T=T: T(q)[:3, :3] @ [0.1, -0.2, 0.3] + T(q)[:3, 3], q)
        assert np.abs(G[3:] - position).max() < 1e-9


@pytest.mark.parametrize(("outer", "inner"), KINDS)
def test_tables_of_appendix_1(outer: str, inner: str):
    """Every row of the tables, their first type column being that of k and row 5 being R P; S, O, P from the oracle."""
    bot = two_joints(outer, inner)
    (q,) = samples(bot, count=1)
    G, H = bot.influence(q, "tool")
    bodies = kinematics(bot.model, q)
    S, O, P = [b.axis for b in bodies], [b.p for b in bodies], bot.pose(q, "tool")[:3, 3]  # noqa: E741
    kinds = [link.joint.kind[0] for link in bot.model.links]
    for k in range(3):
        turns = kinds[k] == "r"
        assert np.allclose(G[3:, k], np.cross(S[k], P - O[k]) if turns else S[k], atol=1e-14)
        assert np.allclose(G[:3, k], S[k] if turns else 0, atol=1e-14)
    for j, k in itertools.product(range(3), repeat=2):
        first, second = min(j, k), max(j, k)
        if kinds[first] == "p":  # P R with k <= j, R P with j <= k, P P
            expected = np.zeros(3)
        elif kinds[second] == "p":
            expected = np.cross(S[first], S[second])
        else:
            expected = np.cross(S[first], np.cross(S[second], P - O[second]))
        assert np.allclose(H[3:, j, k], expected, atol=1e-14)
        both = kinds[j] == kinds[k] == "r" and j < k
        assert np.allclose(H[:3, j, k], np.cross(S[j], S[k]) if both else 0, atol=1e-14)


def test_joints_beyond_the_point_do_nothing():
    bot = robot("mixed5")
    (q,) = samples(bot, count=1)
    G, H = bot.influence(q, "link3")
    assert not G[:, 3:].any() and not H[:, 3:].any() and not H[:, :, 3:].any()
    G, H = bot.influence(q, "base")
    assert not G.any() and not H.any()


def test_acceleration_of_a_point():
    """u'' = G qdd + qd^T H qd, (3), along a path of constant acceleration."""
    bot = robot("mixed5")
    q, qd, qdd = samples(bot)
    point = ("tool", np.array([0.05, 0.1, -0.2]))
    G, H = bot.influence(q, point)

    def velocity(t: float) -> np.ndarray:
        return bot.influence(q + qd * t + qdd * t**2 / 2, point)[0] @ (qd + qdd * t)

    h = 1e-4
    expected = (8 * (velocity(h) - velocity(-h)) - (velocity(2 * h) - velocity(-2 * h))) / (12 * h)
    assert np.abs(G @ qdd + np.einsum("j,rjk,k->r", qd, H, qd) - expected).max() < 1e-7


def test_influence_takes_batches_and_float32():
    bot = robot("puma560")
    (q,) = samples(bot, 4, 3, count=1)
    offsets = np.random.default_rng(1).normal(size=(3, 3))
    G, H = bot.influence(q, ("tool", offsets))
    assert G.shape == (4, 3, 6, 6) and H.shape == (4, 3, 6, 6, 6)
    one = bot.influence(q[2, 1], ("tool", offsets[1]))
    assert close(G[2, 1], one[0], 1e-13) and close(H[2, 1], one[1], 1e-13)
    assert all(array.dtype == np.float32 for array in bot.influence(q.astype(np.float32), "tool"))


def test_refusals():
    arm = robot("puma560")
    with pytest.raises(ArgumentError, match="no frame 'tol'"):
        arm.influence(np.zeros(6), "tol")
    with pytest.raises(ArgumentError, match="point"):
        arm.influence(np.zeros(6), ("tool", (1.0, 2.0)))
