"""Physically consistent numbers: log-Cholesky against Pinocchio, exact derivatives, optimality, and robots that come
out.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from arms import Case, case

import linksweep as ls
from linksweep.identification.physical import (
    BASIS,
    ConsistencyProblem,
    Physical,
    divergence,
    entropic,
    from_log_cholesky,
    inertial_parameters,
    log_cholesky,
    nearby_consistent,
    pseudo_inertia,
    to_log_cholesky,
)

THEIRS = [0, 1, 2, 3, 4, 7, 5, 8, 9, 6]  # of ours (m, h, xx, yy, zz, xy, xz, yz): m, h, xx, xy, yy, xz, yz, zz


def bodies(count: int, seed: int = 0) -> np.ndarray:
    """Ten numbers of bodies made of points of mass."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        masses, places = rng.uniform(0.1, 2.0, 8), rng.normal(size=(8, 3)) * 0.2
        inertia = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, places, strict=True))
        i = np.asarray(inertia)
        found.append([masses.sum(), *(masses @ places), i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]])
    return np.array(found)


@pytest.mark.quick
def test_the_pseudo_inertia_is_the_second_moment_of_mass():
    masses, places = np.array([1.0, 2.0, 0.5]), np.array([[0.1, 0.2, 0.3], [-0.2, 0.1, 0.0], [0.4, -0.1, 0.2]])
    points = np.concatenate([places, np.ones((3, 1))], axis=1)
    J = (points.T * masses) @ points
    inertia = sum(m * (p @ p * np.eye(3) - np.outer(p, p)) for m, p in zip(masses, places, strict=True))
    i = np.asarray(inertia)
    ten = np.array([3.5, *(masses @ places), i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]])
    assert np.allclose(pseudo_inertia(ten), J, rtol=0, atol=1e-15)
    assert np.allclose(inertial_parameters(J), ten, rtol=0, atol=1e-15)


@pytest.mark.quick
def test_log_cholesky_is_pinocchio_s():
    """Their order of the ten numbers of theta is Rucker's and Wensing's, as ours."""
    for ten in bodies(20):
        theta = to_log_cholesky(pseudo_inertia(ten))
        theirs = pin.LogCholeskyParameters(theta)
        found, slopes = from_log_cholesky(theta)
        assert np.allclose(found, ten, rtol=1e-12, atol=1e-13)
        assert np.allclose(np.asarray(theirs.toDynamicParameters()), ten[THEIRS], rtol=1e-10, atol=1e-12)
        assert np.allclose(np.asarray(theirs.calculateJacobian()), slopes[THEIRS], rtol=1e-9, atol=1e-11)


def test_derivatives_by_differences():
    for ten in bodies(5, seed=3):
        theta = to_log_cholesky(pseudo_inertia(ten))
        _, slopes = from_log_cholesky(theta)
        for k in range(10):
            step = 1e-6 * np.eye(10)[k]
            numeric = (from_log_cholesky(theta + step)[0] - from_log_cholesky(theta - step)[0]) / 2e-6
            assert np.allclose(slopes[:, k], numeric, rtol=1e-7, atol=1e-8 * np.abs(slopes).max())


def test_the_divergence_is_that_of_gaussians():
    """Twice the Kullback-Leibler divergence of two normal distributions with covariances J and J0, and 0 for the
    same.
    """
    one, other = pseudo_inertia(bodies(2, seed=5))
    expected = np.trace(np.linalg.inv(other) @ one) - 4 + np.log(np.linalg.det(other) / np.linalg.det(one))
    assert np.isclose(divergence(one, other), expected, rtol=1e-10)
    assert np.isclose(divergence(one, one), 0.0, atol=1e-12) and divergence(one, other) > 0


def problem(seed: int = 0, weight: float = 1.0) -> ConsistencyProblem:
    """Two bodies and three scalars, of which the target asks for the impossible."""
    rng = np.random.default_rng(seed)
    prior = np.concatenate([*bodies(2, seed), rng.uniform(0.5, 2, 3)])
    root = np.asarray(np.linalg.qr(rng.normal(size=(60, 18)), mode="r"))
    matrix = rng.normal(size=(18, 23))
    impossible = prior.copy()
    impossible[[0, 4, 14, 20]] *= -0.5
    places = np.arange(20).reshape(2, 10)
    return ConsistencyProblem(root, root @ matrix @ impossible, matrix, places, np.array([20, 21]), prior, weight)


def test_the_entropic_fit_is_optimal():
    """The gradient of the cost, which is written out here, vanishes in log-Cholesky coordinates, where no boundary
    is near.
    """
    one = problem()
    x = entropic(one)

    def cost(theta: np.ndarray) -> float:
        x = np.concatenate(
            [from_log_cholesky(theta[:10])[0], from_log_cholesky(theta[10:20])[0], np.exp(theta[20:22]), theta[22:]]
        )
        rest = one.root @ one.matrix @ x - one.target
        far = np.sum(divergence(pseudo_inertia(x[one.bodies]), pseudo_inertia(one.prior[one.bodies])))
        ratio = x[one.positive] / one.prior[one.positive]
        return float(0.5 * rest @ rest + one.weight * (far + np.sum(ratio - np.log(ratio) - 1)))

    theta = np.concatenate([*(to_log_cholesky(pseudo_inertia(x[at])) for at in one.bodies), np.log(x[20:22]), x[22:]])
    best = cost(theta)
    slope = np.array([(cost(theta + 1e-6 * e) - cost(theta - 1e-6 * e)) / 2e-6 for e in np.eye(23)])
    assert np.abs(slope).max() < 1e-5 * (1.0 + best)
    assert np.linalg.eigvalsh(pseudo_inertia(x[one.bodies])).min() > 0 and (x[one.positive] > 0).all()
    rng = np.random.default_rng(1)
    assert all(cost(theta + 1e-3 * rng.normal(size=23)) > best for _ in range(50))


def test_both_ways_end_at_the_same_misfit():
    """As the weight of the prior goes to 0, both minimise the misfit alone over the same cone."""
    one = problem(weight=1e-7)

    def misfit(x: np.ndarray) -> float:
        return float(np.sum(np.square(one.root @ one.matrix @ x - one.target)))

    a, b = misfit(entropic(one)), misfit(log_cholesky(one))
    assert np.isclose(a, b, rtol=2e-3) and a > 1e-3  # the target cannot be met
    assert np.linalg.eigvalsh(pseudo_inertia(log_cholesky(one)[one.bodies])).min() > 0


def test_an_sdp_solver_finds_the_same():
    cvxpy = pytest.importorskip(
        "cvxpy", reason="cvxpy is not installed: it is a check of our own solvers, never needed"
    )
    one = problem(weight=1e-7)
    x = cvxpy.Variable(23)
    sums: list[Any] = [sum(x[int(k)] * BASIS[i] for i, k in enumerate(places)) for places in one.bodies]
    cones = [J >> 1e-9 * np.eye(4) for J in sums]
    rest = one.root @ one.matrix @ x - one.target
    best = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(rest)), [*cones, x[20] >= 0, x[21] >= 0])
    best.solve(solver=cvxpy.CLARABEL)
    ours = float(np.sum(np.square(one.root @ one.matrix @ entropic(one) - one.target)))
    assert np.isclose(best.value, ours, rtol=2e-3)


def test_bodies_without_inertia_get_some():
    ball, moved = nearby_consistent(np.zeros(10), 0.5, 0.05)
    assert moved and np.isclose(ball[0], 0.5) and np.linalg.eigvalsh(pseudo_inertia(ball)).min() > 0
    point = np.array([2.0, 0.2, 0, 0, 0, 0.02, 0.02, 0, 0, 0])  # a point of mass at x = 0.1
    fuller, moved = nearby_consistent(point, 0.5, 0.05)
    assert moved and np.allclose(fuller[:4], point[:4]) and np.linalg.eigvalsh(pseudo_inertia(fuller)).min() > 0
    good = bodies(1)[0]
    assert nearby_consistent(good, 0.5, 0.05) == (pytest.approx(good), False)


# ---- robots ----------------------------------------------------------------------------------------------------------


def noisy(own: Case, size: float = 0.5) -> np.ndarray:
    return own.tau + size * np.random.default_rng(1).normal(size=own.tau.shape)


@pytest.mark.parametrize("method", ["weighted", "entropic", "log_cholesky"])
def test_the_robot_is_consistent_and_can_be_written(method: str, tmp_path: Path):
    own = case("ur5")
    fit = ls.identify(own.robot, own.t, own.q, noisy(own), cutoff=15.0, method=method)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the reader warns of bodies that cannot be
        (tmp_path / "found.urdf").write_text(fit.robot.to_urdf())
        again = ls.load(tmp_path / "found.urdf")
    physical: Physical = fit.physical_parameters
    assert min(physical.smallest.values()) > 0.0
    assert (fit.robot.armature >= 0).all() and (fit.robot.damping >= 0).all() and (fit.robot.friction >= 0).all()
    # the robot's own torques, offsets included, are the prediction
    moving = np.abs(own.qd) > 0.03 * np.abs(own.qd).max(axis=0)
    for robot in (fit.robot, again):
        torques = robot.inverse_dynamics(own.q, own.qd, own.qdd, dissipation=True)
        assert np.sqrt(np.mean(np.square((torques - own.tau) * moving))) < 0.1
    assert (fit.robot_rms < 1.03 * fit.rms).all()
    offsets = [fit.parameters[f"{name}.offset"] for name in own.robot.joint_names]
    assert not physical.left_out and np.allclose(fit.robot.torque_offset, offsets)


def test_without_noise_the_robot_is_the_one_that_was_logged():
    """Where the description is consistent itself: everything that torques show, and what they do not as described."""
    own = case("panda")
    true = own.robot.with_armature(own.armature).with_dissipation(own.viscous, own.coulomb)
    fit = ls.identify(true, own.t, own.q, own.tau, cutoff=np.inf)
    assert np.allclose(fit.robot.standard_parameters, true.standard_parameters, rtol=0, atol=2e-3)
    found = fit.robot.inverse_dynamics(own.q, own.qd, own.qdd)
    expected = true.inverse_dynamics(own.q, own.qd, own.qdd)
    assert np.abs(found - expected).max() < 1e-4 * np.abs(expected).max()


def test_a_payload_alone():
    own = case("panda")
    loaded = own.robot.with_payload("panda_hand", 1.7, (0.01, -0.02, 0.06), (0.01, 0.012, 0.008))
    tau = loaded.inverse_dynamics(own.q, own.qd, own.qdd) + 0.05 * np.random.default_rng(2).normal(size=own.tau.shape)
    bare = own.robot.with_dissipation(0.0, 0.0)
    fit = ls.identify(bare, own.t, own.q, tau, cutoff=15.0, unknown=("payload:panda_hand",))
    assert len(fit.names) == 10 and abs(fit["payload.panda_hand.m"] - 1.7) < 4 * fit.deviations[0] < 0.1
    found = fit.robot.inverse_dynamics(own.q, own.qd, own.qdd)
    expected = loaded.inverse_dynamics(own.q, own.qd, own.qdd)
    assert np.abs(found - expected).max() < 0.03 * np.abs(expected).max()
    assert fit.robot.masses.sum() == pytest.approx(bare.masses.sum() + fit.parameters["payload.panda_hand.m"])


def test_a_tool_alone():
    own = case("puma560")
    other = own.robot.with_payload("tool", 0.8, (0.0, 0.0, 0.1), (0.004, 0.004, 0.002))
    tau = other.inverse_dynamics(own.q, own.qd, own.qdd, dissipation=True)
    fit = ls.identify(own.robot, own.t, own.q, tau, cutoff=np.inf, unknown=("inertia:link6",))
    assert abs(fit.robot.masses[-1] - other.masses[-1]) < 1e-3
    assert np.array_equal(fit.robot.masses[:-1], own.robot.masses[:-1])


def test_coupled_drives_come_into_the_robot_on_their_diagonal():
    own = case("puma560")
    v, dv = own.qd[:, 4] + own.qd[:, 5], own.qdd[:, 4] + own.qdd[:, 5]
    tau = own.tau.copy()
    tau[:, 4:] += (0.05 * dv + 0.3 * v + 0.4 * np.sign(v))[:, None]
    fit = ls.identify(own.robot, own.t, own.q, tau, cutoff=np.inf, drives={"motor_6": {"joint5": 1.0, "joint6": 1.0}})
    assert np.abs(fit["motor_6.armature"] - 0.05) < 1e-8 and np.abs(fit["motor_6.coulomb"] - 0.4) < 1e-8
    assert "motor_6.coulomb" in fit.physical_parameters.left_out
    assert np.allclose(fit.robot.armature[5], own.armature[5] + 0.05, atol=2e-3)
    assert np.allclose(fit.robot.damping[4:], own.viscous[4:] + 0.3, atol=2e-3)
