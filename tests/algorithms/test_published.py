"""Numbers printed elsewhere: the PUMA 560 of Armstrong, Khatib & Burdick, the Stanford arm of Angeles, Ma & Rojas."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from robots_for_tests import robot

import linksweep as ls
from linksweep.functions.functions import FUNCTIONS

pytestmark = pytest.mark.quick

QUARTER = np.full(6, np.pi / 4)
WITH_ARMATURE = (3.133511660946, -26.33762826912, -7.280186683591, 0.170033610651, 0.133236239088, 0.151648190381)
WITHOUT = (2.238157754673, -30.036853618722, -7.929710964721, 0.012953977972, -0.007350032161, 0.000066344845)
GRAVITY_AT_ZERO = (0, -36.98580915, 0.24892875, 0, 0, 0)
BACKENDS = ("llvm", "interpreter")


@functools.cache
def puma_without_armature() -> ls.Robot:
    model = robot("puma560").model
    links = tuple(replace(link, joint=replace(link.joint, armature=0.0)) for link in model.links)
    return ls.Robot(replace(model, links=links))


@pytest.mark.cases(1)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("rolled", [False, True])
def test_puma_check_torques(backend: str, rolled: bool):
    for bot, expected in ((robot("puma560"), WITH_ARMATURE), (puma_without_armature(), WITHOUT)):
        for method in bot.methods("inverse_dynamics"):
            if rolled and FUNCTIONS["inverse_dynamics"].methods[method].written_out:
                continue
            tau = bot.compile("inverse_dynamics", method=method, backend=backend, rolled=rolled)
            assert np.abs(tau(QUARTER, QUARTER, QUARTER) - expected).max() <= 2e-12  # twelve decimals are printed


@pytest.mark.parametrize("backend", BACKENDS)
def test_puma_accelerations_come_back(backend: str):
    for bot, tau in ((robot("puma560"), WITH_ARMATURE), (puma_without_armature(), WITHOUT)):
        for method in bot.methods("forward_dynamics") if backend == "interpreter" else ("filter_smoother",):
            qdd = bot.compile("forward_dynamics", method=method, backend=backend)(QUARTER, QUARTER, np.array(tau))
            # the wrist's inertia is 4e-5: an error of half a unit in the twelfth decimal of its torque is 1e-8 there
            assert np.abs(qdd - QUARTER).max() <= 1e-7, method


@pytest.mark.parametrize("backend", BACKENDS)
def test_puma_gravity(backend: str):
    for bot in (robot("puma560"), puma_without_armature()):
        gravity = bot.compile("gravity_forces", backend=backend)(np.zeros(6))
        assert np.abs(gravity - GRAVITY_AT_ZERO).max() <= 1e-11  # eight decimals are printed, and they are exact
        assert gravity[0] == 0.0


def test_stanford_static_values():
    """What survives of figure 5: |tau_2| at the start and |f_3| at the end, where nothing moves."""
    bot = robot("stanford")
    start = np.array([0, np.pi / 2, 0, 0, 0, 0])
    rates = np.array([np.pi / 30, -np.pi / 60, -0.01, np.pi / 30, np.pi / 30, np.pi / 30])  # d3 = -b3
    for backend in BACKENDS:
        gravity = bot.compile("gravity_forces", backend=backend)
        # four decimals are printed
        assert abs(gravity(start)[1]) == pytest.approx(13.6948, abs=5e-5)
        assert abs(gravity(start + 10 * rates)[2]) == pytest.approx(29.9205, abs=5e-5)


def test_stanford_starts_and_ends_at_rest():
    """Section 7.1: theta = theta(0) + A (t - sin(B t) / B); rate and acceleration are 0 at 0 and 10 s."""
    bot = robot("stanford")
    rates = np.array([np.pi / 30, -np.pi / 60, -0.01, np.pi / 30, np.pi / 30, np.pi / 30])
    start, B = np.array([0, np.pi / 2, 0, 0, 0, 0]), 2 * np.pi / 10
    t = np.linspace(0, 10, 101)[:, None]
    q = start + rates * (t - np.sin(B * t) / B)
    qd, qdd = rates * (1 - np.cos(B * t)), rates * B * np.sin(B * t)
    tau = bot.inverse_dynamics(q, qd, qdd)
    still = bot.gravity_forces(q)
    assert np.abs((tau - still)[[0, -1]]).max() <= 1e-13
    assert np.abs(tau - still).max() > 0.1
    assert np.abs(bot.forward_dynamics(q, qd, tau) - qdd).max() <= 1e-10  # cond(M) is some 1e4


def test_planar_pendulum():
    """One uniform rod: m l^2 / 3 about its end, weight at half its length."""
    rod = ls.robots.planar(1, length=2.0, mass=3.0, gravity=10.0)
    q, qdd = np.array([[0.0], [0.5], [2.0]]), np.array([[0.3], [1.0], [-2.0]])
    expected = 4.0 * qdd + 3.0 * 10.0 * np.cos(q)
    assert np.abs(rod.inverse_dynamics(q, 0 * q, qdd) - expected).max() <= 1e-14 * 50
