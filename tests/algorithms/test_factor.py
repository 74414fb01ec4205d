"""`robot.factor`: M = L D L^T for any joints, by sweeps, with matrices on request and nothing that can be changed."""

# pyright: reportArgumentType=false
from __future__ import annotations

import copy
import functools
import pickle
from typing import Any

import numpy as np
import pytest
from robots_for_tests import close, freely_moving, robot

import linksweep as ls
from linksweep.errors import ArgumentError, SingularError
from linksweep.functions.functions import FUNCTIONS
from linksweep.joints import KINDS
from linksweep.robot.factor import Factor


@functools.cache
def bot_of(name: str) -> ls.Robot:
    return freely_moving() if name == "free" else robot(name)


NAMES = ("puma560", "tree9", "mixed5", "free")


def poses(bot: ls.Robot, count: int) -> np.ndarray:
    random = np.random.default_rng(2)
    return np.array([bot.random(random) for _ in range(count)])


def dense(D: np.ndarray, nv: int) -> np.ndarray:
    return D if D.shape[-2:] == (nv, nv) and D.ndim > 2 else D[..., None] * np.eye(nv)


@pytest.mark.parametrize("name", NAMES)
def test_the_factors_are_those_of_the_mass_matrix(name: str):
    """L is I + H Phi L as documented, also where a joint has several freedoms: unit blocks on its diagonal."""
    bot = bot_of(name)
    q = poses(bot, 3)
    factor, M, one = bot.factor(q), bot.mass_matrix(q), np.eye(bot.nv)
    D = dense(factor.D, bot.nv)
    assert factor.D.shape == ((3, bot.nv, bot.nv) if name == "free" else (3, bot.nv))
    assert close(factor.L @ D @ np.swapaxes(factor.L, -1, -2), M, 1e-13)
    assert close(factor.L @ factor.L_inverse, np.broadcast_to(one, M.shape), 1e-12)
    starts = [(link.start, KINDS[link.kind].nv) for link in bot.canonical.links]
    for start, count in starts:
        own = slice(start, start + count)
        assert np.array_equal(factor.L[:, own, own], np.broadcast_to(np.eye(count), (3, count, count)))
        assert np.array_equal(factor.L_inverse[:, own, own], np.broadcast_to(np.eye(count), (3, count, count)))
    inverse = np.swapaxes(factor.L_inverse, -1, -2) @ np.linalg.inv(D) @ factor.L_inverse
    assert close(inverse, bot.mass_matrix_inverse(q), 1e-11)


@pytest.mark.quick
@pytest.mark.parametrize("name", NAMES)
def test_the_sweeps_do_what_the_matrices_do(name: str):
    bot = bot_of(name)
    q = poses(bot, 4)
    M, b = bot.mass_matrix(q), np.random.default_rng(5).normal(size=(4, bot.nv))
    factor = bot.factor(q)
    assert close(factor.solve(b), np.linalg.solve(M, b[..., None])[..., 0], 1e-10)
    assert close(factor.logdet(), np.linalg.slogdet(M)[1], 1e-12)
    assert close(factor.whiten(factor.colour(b)), b, 1e-11)
    assert close((factor.whiten(b) ** 2).sum(axis=-1), (b * factor.solve(b)).sum(axis=-1), 1e-10)  # b^T M^-1 b
    unit = np.moveaxis(factor.colour(np.eye(bot.nv)[:, None, :]), 0, -1)
    assert close(unit @ np.swapaxes(unit, -1, -2), M, 1e-12)  # colour is a square root of M
    one = bot.factor(q[0])  # one pose, many vectors
    assert close(one.solve(b), np.linalg.solve(M[0], b.T).T, 1e-10) and one.logdet().shape == ()


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["mixed5", "free"])
def test_precision_and_batches_follow_the_poses(name: str):
    bot = bot_of(name)
    q = poses(bot, 6).reshape(2, 3, bot.nq)
    single = bot.factor(q.astype(np.float32))
    arrays = (single.D, single.L, single.L_inverse, single.q, single.solve(np.ones(bot.nv, np.float32)))
    assert {array.dtype for array in arrays} == {np.dtype(np.float32)}
    assert single.L.shape == (2, 3, bot.nv, bot.nv) and single.logdet().shape == (2, 3)
    assert bot.factor(q[0, 0].tolist()).D.dtype == np.float64
    assert bot.factor(np.zeros((0, bot.nq))).D.shape == (0, *bot.factor(q).D.shape[2:])


def test_nothing_can_be_changed():
    bot = bot_of("mixed5")
    q = poses(bot, 1)[0]
    factor = bot.factor(q)
    for array in (factor.D, factor.L, factor.L_inverse, factor.q):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    before = factor.solve(np.ones(bot.nv))
    q[:] = 0.0  # the caller's array is the caller's
    assert np.array_equal(factor.solve(np.ones(bot.nv)), before)


def test_no_matrix_is_made_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch):
    """Of a chain of 200 links: each call is a loop over links, none has n^2 results."""
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")
    bot = ls.robots.chain(200)
    asked: list[str] = []

    def run(function: str, *args: Any) -> np.ndarray:
        asked.append(function)
        assert all(np.ndim(arg) == 1 for arg in args)
        return bot._core.function(bot._core.internal(function))(*args)

    factor = Factor(np.zeros(200), 200, [], run)
    x = factor.solve(np.ones(200))
    factor.logdet()
    factor.whiten(np.ones(200))
    factor.colour(np.ones(200))
    assert asked == ["factor", "solve", "whiten", "colour"]
    zero = np.zeros(200)
    torque = bot.inverse_dynamics(zero, zero, x) - bot.gravity_forces(zero)
    assert close(torque, np.ones(200), 1e-10)
    assert not any(FUNCTIONS[name].methods[m].written_out for name in asked for m in FUNCTIONS[name].methods)


def test_mistakes_are_said():
    bot = bot_of("puma560")
    factor = bot.factor(np.zeros(6))
    for method in (factor.solve, factor.colour, factor.whiten):
        for wrong in (np.zeros(5), 1.0, "abc", np.zeros((2, 7))):
            with pytest.raises(ArgumentError, match=r"^factor: got an array of shape .*, expected \(\.\.\., 6\)"):
                method(wrong)
    for wrong in (np.zeros(7), None, "abc", [[1.0], [1.0, 2.0]]):
        with pytest.raises(ArgumentError, match=r"^factor: q "):
            bot.factor(wrong)
    with pytest.warns(ls.ModelWarning):
        bare = ls.Robot.from_dh([{"mass": 1.0, "inertia": (0.1, 0.1, 0.1)}, {}], "modified")
    with pytest.raises(SingularError, match=r"^factor: no inertia moves with joint"):
        bare.factor(np.zeros(2))


def test_a_factor_is_copied_and_pickled():
    robot = ls.robots.puma560()
    factor = robot.factor(np.random.default_rng(0).normal(size=(4, 6)))
    b = np.ones(6)
    for again in (pickle.loads(pickle.dumps(factor)), copy.deepcopy(factor), copy.copy(factor)):
        for name in ("solve", "colour", "whiten"):
            np.testing.assert_array_equal(getattr(again, name)(b), getattr(factor, name)(b))
        np.testing.assert_array_equal(again.D, factor.D)
        np.testing.assert_array_equal(again.L, factor.L)
        assert not again.D.flags.writeable and not again.q.flags.writeable
