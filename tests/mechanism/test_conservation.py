"""Ball joints and free bases: round trips to 1e-10, and what free flight conserves over 10 s of RK4 with 1 ms."""

from __future__ import annotations

import numpy as np
import pytest
from robots_for_tests import GRAVITY, robot_of

import linksweep as ls

STEP = 1e-3  # s


ROBOTS = {
    "ball-joint arm": (["spherical"] * 3, [-1, 0, 1]),
    "free body": (["free"], [-1]),
    "free arm of ball joints": (["free", "spherical", "spherical"], [-1, 0, 1]),
    "free tree": (["free", "spherical", "revolute", "planar", "prismatic"], [-1, 0, 1, 0, 0]),
}


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
def test_filter_smoother_undoes_newton_euler(name: str, backend: str):
    robot = robot_of(*ROBOTS[name], GRAVITY)
    rng = np.random.default_rng(1)
    q = np.stack([robot.random(rng) for _ in range(50)])
    qd, qdd = rng.uniform(-3, 3, (2, 50, robot.nv))
    tau = robot.compile("inverse_dynamics", method="newton_euler", backend=backend)(q, qd, qdd)
    back = robot.compile("forward_dynamics", method="filter_smoother", backend=backend)(q, qd, tau)
    assert np.abs(back - qdd).max() <= 1e-10 * np.abs(qdd).max()


def flown(robot: ls.Robot, q: np.ndarray, v: np.ndarray, seconds: float = 10.0) -> tuple[np.ndarray, np.ndarray]:
    """States every 0.1 s, from classical RK4 on q' = Omega(q) v, quaternions normalised after each step."""
    tau = np.zeros(robot.nv)
    accelerations = robot.compile("forward_dynamics")

    def slope(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return robot.coordinate_rates(q, v), accelerations(q, v, tau)

    places, rates = [q], [v]
    for step in range(round(seconds / STEP)):
        q1, v1 = slope(q, v)
        q2, v2 = slope(q + STEP / 2 * q1, v + STEP / 2 * v1)
        q3, v3 = slope(q + STEP / 2 * q2, v + STEP / 2 * v2)
        q4, v4 = slope(q + STEP * q3, v + STEP * v3)
        q = robot.normalize(q + STEP / 6 * (q1 + 2 * q2 + 2 * q3 + q4))
        v = v + STEP / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
        if step % 100 == 99:
            places.append(q)
            rates.append(v)
    return np.array(places), np.array(rates)


def drift(values: np.ndarray, scale: float) -> float:
    return float(np.abs(values - values[0]).max() / scale)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["free arm of ball joints", "free tree"])
@pytest.mark.parametrize("seconds", [1.0, pytest.param(10.0, marks=pytest.mark.slow)])
def test_free_flight_conserves_energy_and_momentum(name: str, seconds: float):
    """Falling: energy stays, centroidal angular momentum stays, linear momentum grows by m g t."""
    robot = robot_of(*ROBOTS[name], GRAVITY)
    rng = np.random.default_rng(2)
    q, v = flown(robot, robot.random(rng), rng.uniform(-1, 1, robot.nv), seconds)
    time, mass = np.arange(len(q)) * 100 * STEP, sum(link.inertial.mass for link in robot.model.links)
    assert time[-1] == pytest.approx(seconds)
    energy = robot.kinetic_energy(q, v) + robot.potential_energy(q)
    assert drift(energy, float(robot.kinetic_energy(q, v).max())) <= 1e-9
    momentum = robot.momentum(q, v)
    assert drift(momentum[:, :3], float(np.abs(momentum[0, :3]).max())) <= 1e-9
    linear = momentum[:, 3:] - mass * time[:, None] * np.array(GRAVITY)
    assert drift(linear, float(np.abs(momentum[:, 3:]).max())) <= 1e-9
    fall = robot.center_of_mass(q) - 0.5 * np.array(GRAVITY) * time[:, None] ** 2
    straight = fall[0] + time[:, None] * momentum[0, 3:] / mass
    assert np.abs(fall - straight).max() <= 1e-9 * np.abs(robot.center_of_mass(q)).max()


@pytest.mark.slow
def test_a_swinging_arm_of_ball_joints_conserves_energy():
    robot = robot_of(*ROBOTS["ball-joint arm"], GRAVITY)
    rng = np.random.default_rng(3)
    q, v = flown(robot, robot.neutral(), 0.5 * rng.uniform(-1, 1, robot.nv))
    kinetic = robot.kinetic_energy(q, v)
    assert drift(kinetic + robot.potential_energy(q), float(kinetic.max())) <= 1e-9
