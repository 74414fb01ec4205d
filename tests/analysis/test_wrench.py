"""Wrenches from torques, against known pushes; their covariance; the observer of momentum."""

# pyright: reportArgumentType=false, reportCallIssue=false
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import FILES, load_quietly
from scipy.stats import chi2

import linksweep as ls
from linksweep.errors import ArgumentError

TOOL = "panda_hand"
CASES = 1000


@pytest.fixture(scope="module")
def panda() -> ls.Robot:
    return load_quietly(FILES["panda_description/urdf/panda.urdf"]).lock(["panda_finger_joint1", "panda_finger_joint2"])


def pushed(robot: ls.Robot, frame: str, seed: int, cases: int = CASES):
    """States, torques, a wrench in the base's directions, and accelerations by f_ext, which knows no Jacobian."""
    rng = np.random.default_rng(seed)
    q, qd = rng.uniform(-2, 2, (cases, robot.nv)), rng.normal(size=(cases, robot.nv))
    tau, w = 20 * rng.normal(size=(cases, robot.nv)), rng.normal(size=(cases, 6)) * [5, 5, 5, 50, 50, 50]
    R = robot.pose(q, frame)[:, :3, :3]
    local = np.concatenate([np.einsum("nji,nj->ni", R, w[:, :3]), np.einsum("nji,nj->ni", R, w[:, 3:])], axis=-1)
    return rng, q, qd, tau, w, robot.forward_dynamics(q, qd, tau, f_ext={frame: local})


@pytest.mark.quick
def test_a_thousand_pushes_are_recovered(panda: ls.Robot):
    """The bar is 1e-9 of the wrench."""
    _, q, qd, tau, w, qdd = pushed(panda, TOOL, 0)
    found = panda.wrench_from_torques(q, qd, tau, TOOL, qdd)
    assert found.wrench.shape == (CASES, 6) and found.covariance.shape == (CASES, 6, 6)
    condition = np.linalg.cond(panda.jacobian(q, TOOL))
    error = np.abs(found.wrench - w).max(axis=1) / np.abs(w).max(axis=1)
    assert error.max() < 1e-9 and (error < 1e-12 * condition).all()
    assert found.mismatch.max() < 1e-18
    single = panda.wrench_from_torques(q[3], qd[3], tau[3], TOOL, qdd[3])
    assert np.allclose(single.wrench, found.wrench[3], rtol=1e-10) and single.covariance.shape == (6, 6)
    local = panda.wrench_from_torques(q[3], qd[3], tau[3], TOOL, qdd[3], reference="local").wrench
    R = panda.pose(q[3], TOOL)[:3, :3]
    assert np.allclose(local, [*(R.T @ w[3, :3]), *(R.T @ w[3, 3:])], rtol=1e-9)


def test_noise_and_covariance_are_consistent(panda: ls.Robot):
    """Errors measured by their covariance are chi-square with six freedoms, what is left with one, within 99 %."""
    rng, q, qd, tau, w, qdd = pushed(panda, TOOL, 1)
    sigma = np.array([0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.05])
    noisy = tau + rng.normal(size=tau.shape) * sigma
    found = panda.wrench_from_torques(q, qd, noisy, TOOL, qdd, noise=sigma)
    e = found.wrench - w
    squared = np.einsum("ni,ni->n", e, np.linalg.solve(found.covariance, e[..., None])[..., 0])
    for total, freedoms in ((squared.sum(), 6 * CASES), (found.mismatch.sum(), CASES)):
        assert chi2.ppf(0.005, freedoms) < total < chi2.ppf(0.995, freedoms)
    assert 0.975 < (squared < chi2.ppf(0.99, 6)).mean() < 1.0


def test_a_state_that_is_not_finite_changes_no_other(panda: ls.Robot):
    q = np.full((3, 7), 0.4) + 0.1 * np.arange(7)
    good = panda.wrench_from_torques(q, np.zeros(7), np.ones(7), TOOL)
    q[1, 2] = np.nan
    found = panda.wrench_from_torques(q, np.zeros(7), np.ones(7), TOOL)
    for name in ("wrench", "covariance"):
        ours, theirs = getattr(found, name), getattr(good, name)
        assert np.array_equal(ours[[0, 2]], theirs[[0, 2]]) and np.isnan(ours[1]).all()


def test_what_the_joints_do_not_show_needs_a_prior(panda: ls.Robot):
    planar = ls.robots.planar(2)
    frame = planar.frame_names[-1]
    with pytest.raises(ArgumentError, match="has 2 degrees of freedom, which do not observe all six"):
        planar.wrench_from_torques([0.1, 0.2], [0, 0], [0, 0], frame)
    q, qd, w = np.array([0.3, 0.8]), np.zeros(2), np.array([0, 0, 0, 3.0, -2.0, 0])
    tau = planar.gravity_forces(q) - planar.jacobian(q, frame).T @ w
    found = planar.wrench_from_torques(q, qd, tau, frame, noise=1e-6, prior=[1e-3] * 3 + [10.0] * 3)
    J = planar.jacobian(q, frame)
    assert np.allclose(J.T @ found.wrench, J.T @ w, rtol=1e-5)
    assert found.covariance[0, 0] <= 1e-6 * (1 + 1e-9)  # what is not shown keeps its prior
    with pytest.raises(ArgumentError, match=r"panda is in a singular configuration in sample \(1,\)"):
        panda.wrench_from_torques(
            np.array([[0.1, 0.4, 0.5, -1.0, 0.3, 1.0, 0.2], np.zeros(7)]), np.zeros(7), np.zeros(7), TOOL
        )
    for options in ({"noise": 0.0}, {"noise": [1, 2]}, {"prior": -1.0}, {"noise": "x"}):
        with pytest.raises(ArgumentError, match="expected a positive standard deviation"):
            panda.wrench_from_torques(np.ones(7), np.zeros(7), np.zeros(7), TOOL, **options)


@pytest.mark.slow
def test_an_observer_of_momentum_follows_a_push(panda: ls.Robot):
    """A push of 20 N from 0.5 s on, while the arm moves: the residual is that of a filter of 50 / s."""
    q0 = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    law = ls.simulation.PD(q0 + 0.2, 100.0, [10, 10, 10, 10, 1, 1, 1])
    step, dt = ls.stepper(panda, 1e-3), 1e-3
    state, observer, seen, true = step.start(q0), panda.momentum_observer(dt, gain=50.0), [], []
    tau = law.torque(0.0, state.q, state.qd, panda)
    observer(state.q, state.qd, tau)
    for k in range(1000):
        w = np.array([0, 0, 0, 0, 20.0 if k >= 500 else 0.0, 0])
        push = panda.jacobian(state.q, TOOL).T @ w
        tau = law.torque(k * dt, state.q, state.qd, panda)
        step(state, tau + push)
        seen.append(observer(state.q, state.qd, tau))
        true.append(push)
    seen, true = np.array(seen), np.array(true)
    quiet = np.abs(seen[:500]).max()
    assert quiet < 0.05  # the trapezoid of what the model knows, with torques that hold for a step
    assert np.abs(seen[-1] - true[-1]).max() < 0.05 * np.abs(true[-1]).max()
    k = 500 + 20  # 20 ms, one time constant
    largest = np.abs(true[k]).argmax()
    assert seen[k, largest] / true[k, largest] == pytest.approx(1 - np.exp(-1), abs=0.05)
    assert observer.collided(2.0) and not observer.collided(100.0)
    observer.reset()
    with pytest.raises(ArgumentError, match="needs at least one call"):
        observer.collided(1.0)
    with pytest.raises(ArgumentError, match="dt is 0"):
        panda.momentum_observer(0)


@pytest.mark.slow
def test_an_observer_of_joints_of_several_freedoms():
    robot = ls.robots.puma560().with_base("floating")
    rng, dt = np.random.default_rng(0), 1e-4
    q, qd = robot.random(rng), 0.3 * rng.normal(size=robot.nv)
    tau, push = rng.normal(size=(2, robot.nv))
    observer, seen = robot.momentum_observer(dt, gain=200.0), np.zeros(robot.nv)
    observer(q, qd, tau)
    for _ in range(1000):  # by the midpoint rule
        half = qd + 0.5 * dt * robot.forward_dynamics(q, qd, tau + push)
        middle = robot.integrate(q, 0.5 * (qd + half), 0.5 * dt)
        q, qd = robot.integrate(q, half, dt), qd + dt * robot.forward_dynamics(middle, half, tau + push)
        seen = observer(q, qd, tau)
    np.testing.assert_allclose(seen, push, rtol=0, atol=1e-5)  # midpoint rule and observer are off by dt^2: 1e-6


@pytest.mark.parametrize(
    "tau",
    [np.zeros(5), np.zeros(1), 1.0, np.zeros((4, 6)), "x", [[1.0], [1.0, 2.0]], np.ma.array(np.zeros(6), mask=True)],
)
def test_torques_of_another_size(tau: Any):
    robot = ls.robots.puma560()
    q, qd = np.full((3, 6), 0.4), np.zeros((3, 6))
    with pytest.raises(ArgumentError, match="tau"):
        robot.wrench_from_torques(q, qd, tau, "link6")
    observer = robot.momentum_observer(1e-3)
    with pytest.raises(ArgumentError, match="tau"):
        observer(q, qd, tau)


def test_one_pose_and_many_torques():
    robot = ls.robots.puma560()
    q, tau = np.array([0.3, -0.5, 0.9, 0.2, 0.7, 0.1]), np.random.default_rng(0).normal(size=(5, 6))
    many = robot.wrench_from_torques(q, 0 * q, tau, "link6")
    each = [robot.wrench_from_torques(q, 0 * q, one, "link6") for one in tau]
    np.testing.assert_allclose(many.wrench, [one.wrench for one in each], rtol=1e-12)
    np.testing.assert_allclose(many.mismatch, [one.mismatch for one in each], rtol=1e-9, atol=1e-18)


def test_an_observer_keeps_its_batch():
    observer = ls.robots.puma560().momentum_observer(1e-3)
    observer(np.zeros((3, 6)), np.zeros((3, 6)), np.zeros(6))
    with pytest.raises(ArgumentError, match="reset"):
        observer(np.zeros((2, 6)), np.zeros((2, 6)), np.zeros(6))
    with pytest.raises(ArgumentError, match="threshold"):
        observer.collided(np.zeros(5))
    observer.reset()
    observer(np.zeros((2, 6)), np.zeros((2, 6)), np.zeros(6))
