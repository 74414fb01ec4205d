"""A table that pushes a tool out and lets it go, and impedance whose directions do not couple."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import FILES, load_quietly

import linksweep as ls
from linksweep.errors import ArgumentError
from linksweep.simulation import OperationalSpace, Push, Surface

TOOL = "panda_hand"
HOME = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])


@pytest.fixture(scope="module")
def panda() -> ls.Robot:
    return load_quietly(FILES["panda_description/urdf/panda.urdf"]).lock(["panda_finger_joint1", "panda_finger_joint2"])


def slider(mass: float = 2.0) -> ls.Robot:
    """A mass that slides along z: with a table below it, the textbook's."""
    row = {"alpha": 0.0, "a": 0.0, "d": 0.0, "theta": 0.0, "joint": "prismatic", "mass": mass}
    return ls.Robot.from_dh([row], "modified", gravity=(0.0, 0.0, -9.81))


@pytest.mark.slow
def test_a_mass_comes_to_rest_where_the_spring_carries_it():
    robot = slider()
    table = Surface(robot.link_names[-1], (0.0, 0.0, 0.1), stiffness=2e4, damping=200.0)
    run = ls.simulate(robot, [0.15], None, None, 2.0, disturbance=table)
    free = run.t < 0.5 * np.sqrt(2 * 0.05 / 9.81)
    assert np.allclose(run.q[free, 0], 0.15 - 0.5 * 9.81 * run.t[free] ** 2, atol=1e-12)  # nothing acts above it
    assert np.isclose(run.q[-1, 0], 0.1 - 2.0 * 9.81 / 2e4, rtol=0, atol=1e-9)
    adaptive = ls.simulate(robot, [0.15], None, None, 2.0, disturbance=table, integrator="adaptive")
    assert np.isclose(adaptive.q[-1, 0], run.q[-1, 0], rtol=0, atol=1e-7)  # its tolerance, 1e-9, over the force's kinks
    assert not run.tau.any()


def test_a_bounce_without_damping_keeps_its_energy():
    robot = slider()
    table = Surface(robot.link_names[-1], stiffness=1e4, damping=0.0)
    run = ls.simulate(robot, [0.05], None, None, 1.0, dt=1e-4, every=10, disturbance=table)
    depth = np.maximum(0.0, -run.q[:, 0])
    energy = 2.0 * (0.5 * run.qd[:, 0] ** 2 + 9.81 * run.q[:, 0]) + 0.5 * 1e4 * depth**2
    # a fourth-order step over the force's kink is of second order there: dt^2 times stiffness v^2
    assert np.abs(energy - energy[0]).max() <= 1e-4 * energy[0]
    assert (np.diff(np.sign(run.qd[:, 0])) > 0).sum() >= 3


def test_the_form_is_its_formula_by_dense_matrices(panda: ls.Robot):
    rng = np.random.default_rng(2)
    table = Surface(TOOL, (0.0, 0.0, 0.9), (0.2, -0.1, 1.0), stiffness=5e3, damping=80.0, friction=0.5, width=0.01)
    assert not table.signals(panda)
    touched = 0
    for _ in range(30):
        q, qd = rng.uniform(-1, 1, 7), rng.normal(size=7)
        J, p, n = panda.jacobian(q, TOOL)[3:], panda.pose(q, TOOL)[:3, 3], table.normal
        depth, v = n @ (table.point - p), J @ qd
        N = max(0.0, 5e3 * depth - 80.0 * (n @ v)) if depth > 0 else 0.0
        slides = v - (n @ v) * n
        force = N * n - 0.5 * N * slides / np.sqrt(slides @ slides + 1e-4)
        assert np.allclose(table.torque(0.0, q, qd, panda), J.T @ force, rtol=1e-11, atol=1e-9)
        touched += N > 0
    assert 5 < touched < 30


def test_pushes_and_tables_add_up_for_each_rollout():
    robot = slider()
    heights = np.array([[0.0, 0.0, 0.1], [0.0, 0.0, 0.05]])
    world = Surface(robot.link_names[-1], heights) + Push(robot.link_names[-1], [0, 0, 0, 0, 0, -5.0])
    run = ls.simulate(robot, [[0.2], [0.2]], None, None, 3.0, disturbance=world)
    assert np.allclose(run.q[-1, :, 0], heights[:, 2] - (2.0 * 9.81 + 5.0) / 1e4, rtol=0, atol=1e-8)


@pytest.mark.slow
def test_decoupled_directions_are_six_oscillators(panda: ls.Robot):
    """Khatib's (5) with F = Lambda (a - dJ/dt qd) + h: the frame has the acceleration that the gains say."""
    rng = np.random.default_rng(4)
    target = panda.pose(HOME, TOOL)
    K, D = rng.uniform(20, 90, 6), rng.uniform(5, 15, 6)
    law = OperationalSpace(TOOL, target, K, D, posture=HOME, decoupled=True)
    weightless = OperationalSpace(TOOL, target, K, D, posture=HOME, decoupled=True, gravity=False)
    for _ in range(20):
        q, qd = HOME + rng.uniform(-0.4, 0.4, 7), rng.normal(size=7)
        T, J = panda.pose(q, TOOL), panda.jacobian(q, TOOL)
        turn = 0.5 * sum(np.cross(T[:3, k], target[:3, k]) for k in range(3))
        wanted = K * np.concatenate([turn, target[:3, 3] - T[:3, 3]]) - D * (J @ qd)
        tau = law.torque(0.0, q, qd, panda)
        qdd = panda.forward_dynamics(q, qd, tau)
        got = panda.frame_acceleration(q, qd, qdd, TOOL)
        condition = np.linalg.cond(J @ np.linalg.inv(panda.mass_matrix(q)) @ J.T)
        assert np.abs(got - wanted).max() <= 1e-9 * condition * np.abs(wanted).max()  # REGULAR, 1e-10 of the mean
        assert np.allclose(tau - weightless.torque(0.0, q, qd, panda), panda.gravity_forces(q), rtol=0, atol=1e-9)
    moved = target.copy()
    moved[2, 3] += 0.05
    run = ls.simulate(panda, HOME, None, OperationalSpace(TOOL, moved, 100.0, 20.0, posture=HOME, decoupled=True), 1.0)
    p = panda.pose(run.q, TOOL)[:, :3, 3]
    critical = 0.05 * (1 - (1 + 10 * run.t) * np.exp(-10 * run.t))
    assert np.abs(p[:, 2] - target[2, 3] - critical).max() <= 1e-6  # the textbook's, and the others stand still
    assert np.abs(p[:, :2] - target[:2, 3]).max() <= 1e-6


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"normal": (0, 0, 0)}, "expected a direction"),
        ({"stiffness": 0.0}, "stiffness is 0.0, expected a finite number above 0"),
        ({"damping": -1.0}, "damping is -1.0, expected 0 or more"),
        ({"friction": -0.1}, "friction is -0.1, expected 0 or more"),
        ({"point": (0, 0)}, r"point has shape \(2,\)"),
    ],
)
def test_bad_tables_are_refused(options: dict, said: str):
    with pytest.raises(ArgumentError, match=said):
        Surface("link1", **options)


def test_an_unknown_frame_is_said():
    with pytest.raises(ArgumentError, match="has no frame 'hand'"):
        ls.simulate(slider(), [0.1], None, None, 0.1, disturbance=Surface("hand"))
