"""Gradients through many steps, against differences of the rollouts themselves, and the rollouts against `simulate`."""

from __future__ import annotations

import numpy as np
import pytest
from robots_for_tests import robot

import linksweep as ls
from linksweep.errors import ArgumentError
from linksweep.simulation import gradient


def differences(loss, step: float = 1e-4) -> float:
    """The slope at 0, by six points."""
    pairs = [loss(k * step) - loss(-k * step) for k in (1, 2, 3)]
    return (45 * pairs[0] - 9 * pairs[1] + pairs[2]) / (60 * step)


@pytest.mark.cases(1)
@pytest.mark.quick
@pytest.mark.parametrize(("name", "steps"), [("puma560", 1), ("puma560", 30), ("puma560", 37), ("mixed3", 20)])
@pytest.mark.parametrize("integrator", ["rk4", "semi_implicit_euler"])
def test_gradients_are_slopes_of_the_rollouts(name: str, steps: int, integrator: str):
    bot = robot(name)
    roll = ls.rollout(bot, 0.01, integrator=integrator)
    random = np.random.default_rng(0)
    q0, qd0 = random.uniform(-1, 1, (2, 5, bot.nv))
    tau = random.uniform(-1, 1, (steps, 5, bot.nv))
    q, qd = roll(q0, qd0, tau)
    assert q.shape == qd.shape == (steps + 1, 5, bot.nv) and np.array_equal(q[0], q0)
    w_q, w_qd, *ways = (random.uniform(-1, 1, x.shape) for x in (q, qd, q0, qd0, tau))

    def loss(h: float) -> np.ndarray:
        a, b = roll(*(x + h * way for x, way in zip((q0, qd0, tau), ways, strict=True)))
        return (w_q * a + w_qd * b).sum((0, 2))

    by_q0, by_qd0, by_tau = roll.vjp(q0, qd0, tau, w_q, w_qd)
    found = (by_q0 * ways[0] + by_qd0 * ways[1]).sum(-1) + (by_tau * ways[2]).sum((0, 2))
    expected = differences(loss)
    assert np.abs(found - expected).max() <= 1e-8 * np.abs(expected).max()


@pytest.mark.parametrize("steps", [1, 2, 9, 11])
@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
def test_states_that_are_not_kept_are_run_again(monkeypatch: pytest.MonkeyPatch, steps: int, backend: str):
    bot, random = robot("mixed3"), np.random.default_rng(4)
    roll = ls.rollout(bot, 0.01, integrator="semi_implicit_euler", backend=backend)
    q, qd = random.uniform(-1, 1, (2, 5, 3))
    given = q, qd, random.uniform(-1, 1, (steps, 5, 3))
    w_q, w_qd = random.uniform(-1, 1, (2, steps + 1, 5, 3))
    before = [x.copy() for x in (*given, w_q, w_qd)]
    kept = roll.vjp(*given, w_q, w_qd)
    monkeypatch.setattr(gradient, "STORED", 0)
    again = roll.vjp(*given, w_q, w_qd)
    known = roll.backward(*given, w_q, w_qd, states=roll(*given))
    for found in (again, known):
        assert all(np.array_equal(a, b) for a, b in zip(found, kept, strict=True))
    assert all(np.array_equal(a, b) for a, b in zip((*given, w_q, w_qd), before, strict=True))


@pytest.mark.slow
def test_floating_base_by_the_numbers_of_q():
    bot = robot("puma560").with_base("floating")
    roll, random = ls.rollout(bot, 0.01), np.random.default_rng(1)
    q0, qd0 = bot.random(random), random.uniform(-1, 1, bot.nv)
    tau = random.uniform(-1, 1, (9, bot.nv))
    w_q, way = random.uniform(-1, 1, (10, bot.nq)), random.uniform(-1, 1, bot.nq)
    expected = differences(lambda h: (w_q * roll(q0 + h * way, qd0, tau)[0]).sum())
    assert abs(roll.vjp(q0, qd0, tau, w_q)[0] @ way - expected) <= 1e-8 * abs(expected)


def test_the_rollout_is_that_of_simulate_and_of_any_thread():
    bot = robot("puma560")
    q0, tau = np.linspace(-1, 1, 6), np.linspace(1, -1, 6)
    run = ls.simulate(bot, q0, np.zeros(6), ls.simulation.Constant(tau), 0.5, dt=0.01)
    q, qd = ls.rollout(bot, 0.01)(q0, np.zeros(6), np.tile(tau, (50, 1)))
    assert np.allclose(q, run.q, rtol=1e-13, atol=1e-13) and np.allclose(qd, run.qd, rtol=1e-13, atol=1e-13)
    one, two = ls.rollout(bot, 0.01), ls.rollout(bot, 0.01, threads=2)
    starts, torques = np.random.default_rng(2).uniform(-1, 1, (300, 6)), np.zeros((12, 6))
    weights = np.ones((13, 300, 6))
    for a, b in zip(one.vjp(starts, 0 * q0, torques, weights), two.vjp(starts, 0 * q0, torques, weights), strict=True):
        assert np.array_equal(a, b) and a.shape[-2:] == (300, 6)


def test_bad_input_is_one_sentence():
    bot = robot("puma560")
    with pytest.raises(ArgumentError, match="Coulomb friction"):
        ls.rollout(bot, 0.01, dissipation=True)
    with pytest.raises(ArgumentError, match="integrator is 'rk5'"):
        ls.rollout(bot, 0.01, integrator="rk5")
    roll, z = ls.rollout(bot, 0.01), np.zeros(6)
    with pytest.raises(ArgumentError, match="tau has shape"):
        roll(z, z, z)
    with pytest.raises(ArgumentError, match=r"w_q has shape \(3, 6\), expected \(5, 6\)"):
        roll.vjp(z, z, np.zeros((4, 6)), np.zeros((3, 6)))
    with pytest.raises(ArgumentError, match="expected a Robot"):
        ls.rollout("puma560", 0.01)  # type: ignore[arg-type]
