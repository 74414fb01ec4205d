"""Laws of mechanics that hold for every robot, whatever the algorithm: over bundled robots, chains and trees."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from robots_for_tests import (
    ROBOTS,
    close,
    condition,
    energies,
    frame_pose,
    inverse_dynamics,
    jacobian,
    joint_motion,
    kinematics,
    mass_matrix,
    nested,
    path,
    random_rotation,
    robot,
    samples,
)

import linksweep as ls
from linksweep.model.model import BASE, Inertial, Placement, compose

every_robot = pytest.mark.parametrize("name", ROBOTS)
some_robots = pytest.mark.parametrize("name", ["puma560", "mixed5", "tree9", "urdf"])
STENCIL = ((2, -1 / 12), (1, 8 / 12), (-1, -8 / 12), (-2, 1 / 12))
STEP = 1e-3  # error of the four-point stencil: STEP^4 / 30 of truncation, 1e-16 / STEP of rounding


def derivative(function: Any, step: float = STEP) -> Any:
    """d function(t) / dt at 0, by four points."""
    return sum(weight * function(k * step) for k, weight in STENCIL) / step


# ---- the equation of motion ----------------------------------------------------------------------------------


@pytest.mark.quick
@every_robot
def test_forward_undoes_inverse(name: str):
    bot = robot(name)
    q, qd, qdd = samples(bot, 6, seed=41)
    back = bot.forward_dynamics(q, qd, bot.inverse_dynamics(q, qd, qdd))
    for k in range(6):
        # what is solved with M is known to 1e-16 of the torques, which are up to |M| |qd|^2
        scale = 1e-15 * condition(bot.model, q[k]) * np.abs(bot.bias_forces(q[k], qd[k])).max()
        size = np.linalg.norm(mass_matrix(bot.model, q[k]), 2)
        assert np.abs(back[k] - qdd[k]).max() <= 1e-13 * condition(bot.model, q[k]) + 10 * scale / size


@pytest.mark.quick
@every_robot
def test_inverse_undoes_forward(name: str):
    bot = robot(name)
    q, qd, tau = samples(bot, 6, seed=42)
    qdd = bot.forward_dynamics(q, qd, tau)
    back = bot.inverse_dynamics(q, qd, qdd)
    for k in range(6):
        size = np.linalg.norm(mass_matrix(bot.model, q[k]), 2) * np.abs(qdd[k]).max()
        assert np.abs(back[k] - tau[k]).max() <= 1e-12 * max(size, np.abs(bot.bias_forces(q[k], qd[k])).max())


@pytest.mark.quick
@every_robot
def test_the_mass_matrix_is_symmetric_and_positive_definite(name: str):
    bot = robot(name)
    q = samples(bot, 6, seed=43)[0]
    M = bot.mass_matrix(q)
    assert np.array_equal(M, M.transpose(0, 2, 1))
    for k in range(6):
        assert close(M[k], mass_matrix(bot.model, q[k]), 1e-12)
        assert np.linalg.eigvalsh(M[k]).min() > 0


@every_robot
def test_the_mass_matrix_is_what_acceleration_costs(name: str):
    """M = d tau / d qdd: the torque is linear in qdd, so that columns are differences without any step."""
    bot = robot(name)
    q, qd, _ = samples(bot, seed=44)
    columns = bot.inverse_dynamics(q, qd, np.eye(bot.nv)) - bot.inverse_dynamics(q, qd, np.zeros(bot.nv))
    size = np.abs(bot.bias_forces(q, qd)).max()
    assert np.abs(columns.T - bot.mass_matrix(q)).max() <= 1e-13 * (size + np.abs(columns).max())


@pytest.mark.quick
@every_robot
def test_the_parts_of_the_torque(name: str):
    bot = robot(name)
    q, qd, qdd = samples(bot, 4, seed=45)
    zero = np.zeros(bot.nv)
    bias = bot.bias_forces(q, qd)
    assert close(bias, bot.inverse_dynamics(q, qd, zero), 1e-13)
    assert close(bot.gravity_forces(q), bot.inverse_dynamics(q, zero, zero), 1e-13)
    whole = np.einsum("kij,kj->ki", bot.mass_matrix(q), qdd) + bias
    assert close(bot.inverse_dynamics(q, qd, qdd), whole, 1e-12)
    for k in range(4):
        assert close(bias[k], inverse_dynamics(bot.model, q[k], qd[k]), 1e-12)


@every_robot
def test_centrifugal_forces_are_quadratic_and_know_no_direction_of_time(name: str):
    bot = robot(name)
    q, qd, _ = samples(bot, 4, seed=46)
    gravity, bias = bot.gravity_forces(q), bot.bias_forces(q, qd)
    assert close(bot.bias_forces(q, -qd), bias, 1e-13)
    assert close(bot.bias_forces(q, 3 * qd) - gravity, 9 * (bias - gravity), 1e-12)


# ---- energy --------------------------------------------------------------------------------------------------


@pytest.mark.quick
@every_robot
def test_kinetic_energy(name: str):
    """1/2 qd M qd is the sum over the links, from their velocities and spins in the base frame."""
    bot = robot(name)
    q, qd, _ = samples(bot, 4, seed=47)
    M = bot.mass_matrix(q)
    for k in range(4):
        kinetic, _ = energies(bot.model, q[k], qd[k])
        assert 0.5 * qd[k] @ M[k] @ qd[k] == pytest.approx(kinetic, rel=1e-12)


@pytest.mark.quick
@every_robot
def test_gravity_forces_come_from_the_potential(name: str):
    bot = robot(name)
    q = samples(bot, seed=48)[0]
    expected = [derivative(lambda t, e=e: energies(bot.model, q + t * e, 0 * q)[1]) for e in np.eye(bot.nv)]
    size = sum(link.inertial.mass for link in bot.model.links) * 9.81 * (1 + np.abs(q).sum())
    assert np.abs(bot.gravity_forces(q) - expected).max() <= 1e-12 * size


@pytest.mark.quick
@every_robot
def test_power_balance(name: str):
    """The rate of the energy along a motion is the power of the torques."""
    bot = robot(name)
    q, qd, qdd = samples(bot, seed=49)
    qd, qdd = qd / bot.nv, qdd / bot.nv  # so that the fastest motion, the sum of rates, stays resolved by the step

    def energy(t: float) -> float:
        at, rate = q + qd * t + qdd * t**2 / 2, qd + qdd * t
        return float(0.5 * rate @ bot.mass_matrix(at) @ rate) + energies(bot.model, at, rate)[1]

    power = qd @ bot.inverse_dynamics(q, qd, qdd)
    size = abs(energy(0.0)) + np.abs(qd) @ np.abs(bot.gravity_forces(q)) + abs(power)
    assert abs(derivative(energy) - power) <= 1e-10 * size


@pytest.mark.quick
@some_robots
def test_coriolis_forces_do_no_work(name: str):
    """qd (dM/dt - 2 C) qd = 0, with dM/dt by four points and C qd from the bias forces."""
    bot = robot(name)
    q, qd, _ = samples(bot, seed=50)
    qd = qd / bot.nv
    rate = derivative(lambda t: bot.mass_matrix(q + t * qd))
    coriolis = bot.bias_forces(q, qd) - bot.gravity_forces(q)
    M = bot.mass_matrix(q)
    assert abs(qd @ rate @ qd - 2 * qd @ coriolis) <= 1e-10 * np.abs(M).max()


# ---- kinematics ----------------------------------------------------------------------------------------------


@every_robot
def test_poses_and_jacobians_of_frames(name: str):
    bot = robot(name)
    q = samples(bot, 3, seed=51)[0]
    for frame in {bot.frame_names[0], bot.frame_names[-1], bot.frame_names[len(bot.frame_names) // 2]}:
        T, J = bot.pose(q, frame), bot.jacobian(q, frame)
        for k in range(3):
            assert close(T[k], frame_pose(bot.model, kinematics(bot.model, q[k]), frame), 1e-12)
            assert close(J[k], jacobian(bot.model, q[k], frame), 1e-12)


@some_robots
def test_jacobians_are_the_rates_of_poses(name: str):
    bot = robot(name)
    q, qd, _ = samples(bot, seed=52)
    qd = qd / bot.nv
    frame = bot.frame_names[-1]
    T = bot.pose(q, frame)
    rate = derivative(lambda t: bot.pose(q + t * qd, frame))
    angular = rate[:3, :3] @ T[:3, :3].T
    twist = np.array([angular[2, 1], angular[0, 2], angular[1, 0], *rate[:3, 3]])
    assert close(bot.jacobian(q, frame) @ qd, twist, 1e-10)


@some_robots
def test_a_full_turn_changes_nothing(name: str):
    bot = robot(name)
    q, qd, qdd = samples(bot, seed=53)
    turns = np.array([bot.model.links[i].joint.kind == "revolute" for i in bot.model.document_order]) * 2 * np.pi
    assert close(bot.inverse_dynamics(q + turns, qd, qdd), bot.inverse_dynamics(q, qd, qdd), 1e-12)


# ---- external forces, dissipation ----------------------------------------------------------------------------


@pytest.mark.quick
@some_robots
def test_an_external_force_is_carried_by_the_jacobian(name: str):
    """tau changes by -J^T f, f turned from its frame into the base's directions."""
    bot = robot(name)
    q, qd, qdd = samples(bot, 3, seed=54)
    plain = bot.inverse_dynamics(q, qd, qdd)
    random = np.random.default_rng(0)
    moving = [frame.name for frame in bot.model.frames if frame.link != BASE]
    for frame in moving:
        f = random.normal(size=(3, 6))
        got = bot.inverse_dynamics(q, qd, qdd, f_ext={frame: f})
        R, J = bot.pose(q, frame)[:, :3, :3], bot.jacobian(q, frame)
        world = np.concatenate([np.einsum("kij,kj->ki", R, f[:, s]) for s in (slice(3), slice(3, 6))], axis=1)
        assert close(got, plain - np.einsum("kij,ki->kj", J, world), 1e-12)
        back = bot.forward_dynamics(q, qd, got, f_ext={frame: f})
        bound = 1e-13 * max(condition(bot.model, row) for row in q)
        assert np.abs(back - qdd).max() <= bound * (1 + np.abs(qdd).max())


@some_robots
def test_forces_on_all_links_add_up(name: str):
    bot = robot(name)
    q, qd, qdd = samples(bot, seed=55)
    f = np.random.default_rng(1).normal(size=(bot.nv, 6))
    expected = inverse_dynamics(bot.model, q, qd, qdd, f_ext=dict(zip(bot.link_names, f, strict=True)))
    assert close(bot.inverse_dynamics(q, qd, qdd, f_ext=f), expected, 1e-12)
    assert close(bot.bias_forces(q, qd, f_ext=f), expected - bot.mass_matrix(q) @ qdd, 1e-12)


@pytest.mark.quick
@some_robots
def test_dissipation_is_damping_and_friction(name: str):
    bot = robot(name)
    q, qd, qdd = samples(bot, 4, seed=56)
    qd[0, 0] = 0.0
    joints = [bot.model.links[i].joint for i in bot.model.document_order]
    damping, friction = (np.array([getattr(j, what) for j in joints]) for what in ("damping", "friction"))
    lost = damping * qd + friction * np.sign(qd)
    plain = bot.inverse_dynamics(q, qd, qdd)
    with_loss = bot.inverse_dynamics(q, qd, qdd, dissipation=True)
    assert np.abs(with_loss - plain - lost).max() <= 1e-15 * 10 * np.abs(plain).max()
    assert close(bot.bias_forces(q, qd, dissipation=True), bot.bias_forces(q, qd) + lost, 1e-13)
    back = bot.forward_dynamics(q, qd, with_loss, dissipation=True)
    assert np.abs(back - qdd).max() <= 1e-13 * max(condition(bot.model, row) for row in q) * (1 + np.abs(plain).max())


# ---- changes of the description ------------------------------------------------------------------------------


@functools.cache
def variant(name: str, gravity: tuple[float, float, float]) -> ls.Robot:
    return robot(name).with_gravity(gravity)


@some_robots
def test_gravity_forces_are_linear_in_gravity(name: str):
    q, qd, qdd = samples(robot(name), 3, seed=57)
    a, b = (1.0, -2.0, 3.0), (0.5, 4.0, -1.0)
    both = tuple(2 * x + y for x, y in zip(a, b, strict=True))
    combined = 2 * variant(name, a).gravity_forces(q) + variant(name, b).gravity_forces(q)
    assert close(variant(name, both).gravity_forces(q), combined, 1e-13)
    assert not np.any(variant(name, (0.0, 0.0, 0.0)).gravity_forces(q))
    free = variant(name, (0.0, 0.0, 0.0)).inverse_dynamics(q, qd, qdd)
    assert close(free + robot(name).gravity_forces(q), robot(name).inverse_dynamics(q, qd, qdd), 1e-12)


@some_robots
def test_a_robot_that_stands_elsewhere_is_the_same_robot(name: str):
    """Turn and move the base, and gravity with it: torques stay, poses turn and move along."""
    bot = robot(name)
    random = np.random.default_rng(2)
    R, p = random_rotation(random), random.normal(size=3)
    at = Placement(nested(R), tuple(p.tolist()))
    links = tuple(
        replace(link, joint=replace(link.joint, placement=compose(at, link.joint.placement)))
        if link.parent == BASE
        else link
        for link in bot.model.links
    )
    moved = ls.Robot(replace(bot.model, links=links, gravity=tuple((R @ bot.gravity).tolist())))
    q, qd, qdd = samples(bot, 3, seed=58)
    assert close(moved.inverse_dynamics(q, qd, qdd), bot.inverse_dynamics(q, qd, qdd), 1e-12)
    assert close(moved.mass_matrix(q), bot.mass_matrix(q), 1e-12)
    frame = bot.link_names[-1]
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    assert close(moved.pose(q, frame), T @ bot.pose(q, frame), 1e-12)


@pytest.mark.quick
@some_robots
def test_a_payload_adds_the_torques_of_its_own_body(name: str):
    bot = robot(name)
    random = np.random.default_rng(3)
    moving = [f for f in bot.model.frames if f.link != BASE]
    frame = next((f for f in moving if f.placement != Placement()), moving[-1])
    mass, com, turn = 2.5, random.normal(size=3), random_rotation(random)
    inertia = turn @ np.diag([0.3, 0.4, 0.5]) @ turn.T
    loaded = bot.with_payload(frame.name, mass, com.tolist(), inertia)
    q, qd, qdd = samples(bot, seed=59)
    bodies = kinematics(bot.model, q, qd, qdd)
    T, body = frame_pose(bot.model, bodies, frame.name), bodies[frame.link]
    centre = T[:3, 3] + T[:3, :3] @ com
    r, spin = centre - body.p, T[:3, :3] @ inertia @ T[:3, :3].T
    rise = body.dv + np.cross(body.dw, r) + np.cross(body.w, np.cross(body.w, r)) - np.array(bot.gravity)
    moment = spin @ body.dw + np.cross(body.w, spin @ body.w)
    added = np.zeros(bot.nv)
    for i in path(bot.model, frame.link):
        angular, linear = joint_motion(bot.model, bodies, i, centre)
        added[bot.model.document_order.index(i)] = angular @ moment + linear @ (mass * rise)
    assert close(loaded.inverse_dynamics(q, qd, qdd), bot.inverse_dynamics(q, qd, qdd) + added, 1e-12)
    assert close(loaded.mass_matrix(q), mass_matrix(loaded.model, q), 1e-12)
    assert loaded != bot and bot.model.links[frame.link].inertial != loaded.model.links[frame.link].inertial


@pytest.mark.quick
@some_robots
def test_armature_stands_on_the_diagonal_only(name: str):
    bot = robot(name)
    links = tuple(replace(link, joint=replace(link.joint, armature=0.0)) for link in bot.model.links)
    bare = ls.Robot(replace(bot.model, links=links))
    armature = [bot.model.links[i].joint.armature for i in bot.model.document_order]
    q, qd, _ = samples(bot, 3, seed=60)
    difference = bot.mass_matrix(q) - bare.mass_matrix(q)
    assert np.abs(difference - np.diag(armature)).max() <= 1e-14 * np.abs(bot.mass_matrix(q)).max()
    assert np.array_equal(bot.bias_forces(q, qd), bare.bias_forces(q, qd))


def test_masses_enter_linearly():
    """Torques of a robot of double density are twice those of the robot."""
    bot = robot("tree9")

    def heavier(inertial: Inertial) -> Inertial:
        return replace(inertial, mass=2 * inertial.mass, inertia=nested(2 * np.array(inertial.inertia)))

    links = tuple(
        replace(
            link, inertial=heavier(link.inertial), joint=replace(link.joint, armature=2 * float(link.joint.armature))
        )
        for link in bot.model.links
    )
    double = ls.Robot(replace(bot.model, links=links))
    q, qd, qdd = samples(bot, 3, seed=61)
    tau = bot.inverse_dynamics(q, qd, qdd)
    assert close(double.inverse_dynamics(q, qd, qdd), 2 * tau, 1e-13)
    assert close(double.forward_dynamics(q, qd, 2 * tau), qdd, 1e-11)  # cond(M) is a few hundred
