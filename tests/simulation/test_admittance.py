"""A frame that moves like a body of chosen masses under the wrench that a sensor reads."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import FILES, load_quietly

import linksweep as ls
from linksweep.errors import ArgumentError
from linksweep.simulation import Admittance, Push, saturated
from linksweep.simulation.controllers import controller_function

TOOL = "panda_hand"
HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])


@pytest.fixture(scope="module")
def panda() -> ls.Robot:
    return load_quietly(FILES["panda_description/urdf/panda.urdf"]).lock(["panda_finger_joint1", "panda_finger_joint2"])


@pytest.mark.slow
def test_a_push_moves_it_like_the_body_of_the_textbook(panda: ls.Robot):
    """m z'' + d z' + k z = F from rest, underdamped; what is not pushed stands still."""
    target, F, m, k, d = panda.pose(HOME, TOOL), 10.0, 4.0, 400.0, 20.0
    push = Push(TOOL, [0, 0, 0, 0, 0, F])
    law = Admittance(TOOL, target, m, k, d, push, posture=HOME)
    run = ls.simulate(panda, HOME, None, law, 1.0, disturbance=push)
    own, decay = np.sqrt(k / m - (d / (2 * m)) ** 2), d / (2 * m)
    t = run.t
    z = F / k * (1 - np.exp(-decay * t) * (np.cos(own * t) + decay / own * np.sin(own * t)))
    moved = panda.pose(run.q, TOOL)[:, :3, 3] - target[:3, 3]
    assert np.abs(moved[:, 2] - z).max() <= 1e-7  # REGULAR, 1e-10 of the mean, and RK4
    assert np.abs(moved[:, :2]).max() <= 1e-7


def test_accelerations_are_those_of_the_masses(panda: ls.Robot):
    rng = np.random.default_rng(3)
    mass, K, D, w = rng.uniform(0.5, 5, 6), rng.uniform(20, 90, 6), rng.uniform(5, 15, 6), rng.normal(size=6)
    target = panda.pose(HOME, TOOL)
    for wrench in (w, lambda t: np.tile(w, (len(t), 1)), Push(TOOL, w)):
        law = Admittance(TOOL, target, mass, K, D, wrench)
        for _ in range(5):
            q, qd = HOME + rng.uniform(-0.4, 0.4, 7), rng.normal(size=7)
            T, J = panda.pose(q, TOOL), panda.jacobian(q, TOOL)
            turn = 0.5 * sum(np.cross(T[:3, k], target[:3, k]) for k in range(3))
            wanted = (K * np.concatenate([turn, target[:3, 3] - T[:3, 3]]) - D * (J @ qd) + w) / mass
            tau = law.torque(0.0, q, qd, panda)
            qdd = panda.forward_dynamics(q, qd, tau + J.T @ w)  # which pushes the robot, too
            got = panda.frame_acceleration(q, qd, qdd, TOOL)
            condition = np.linalg.cond(J @ np.linalg.inv(panda.mass_matrix(q)) @ J.T)
            assert np.abs(got - wanted).max() <= 1e-9 * condition * np.abs(wanted).max()  # REGULAR


@pytest.mark.slow
def test_it_composes_and_takes_its_wrench_as_an_input(panda: ls.Robot):
    law = saturated(Admittance(TOOL, panda.pose(HOME, TOOL), 2.0, 0.0, 10.0, np.zeros(6)))
    assert "wrench" in controller_function(law, panda, False).inputs
    q, qd = HOME + 0.1, np.full(7, 0.2)
    wanted = law.torque(0.0, q, qd, panda)
    within = ls.simulate(panda, q, qd, law, 1e-3)
    assert np.abs(within.tau[0] - wanted).max() <= 1e-12 * np.abs(wanted).max()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"mass": 0.0}, "mass is 0.0, expected numbers above 0"),
        ({"wrench": [1, 2, 3]}, r"wrench has shape \(3,\)"),
        (
            {"wrench": Push("panda_link3", np.zeros(6))},
            "a push at 'panda_link3', expected one at",
        ),
    ],
)
def test_what_cannot_be_is_one_sentence(panda: ls.Robot, change: dict, said: str):
    given = {"mass": 1.0, "stiffness": 1.0, "damping": 1.0, "wrench": np.zeros(6)} | change
    with pytest.raises(ArgumentError, match=said):
        Admittance(TOOL, np.eye(4), **given)


def test_a_sensor_of_another_shape_is_said(panda: ls.Robot):
    law = Admittance(TOOL, panda.pose(HOME, TOOL), 1.0, 1.0, 1.0, lambda t: np.zeros((3, 6)))
    with pytest.raises(ArgumentError, match=r"shape \(3, 6\)"):
        ls.simulate(panda, HOME, None, law, 0.01)
