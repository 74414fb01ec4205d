"""A constant torque of a drive counts where friction does: with dissipation=True, in every method, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

import linksweep as ls

OFFSET = np.array([1.5, -2.0, 0.3, -0.2, 0.1, 0.05])


def arm() -> ls.Robot:
    return ls.robots.puma560().with_dissipation(damping=0.4, friction=[3, 2, 1, 0.5, 0.4, 0.3], torque_offset=OFFSET)


def motion(nv: int = 6, rows: int = 7) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(3)
    return tuple(rng.normal(size=(3, rows, nv)))


def test_every_inverse_method_adds_it_with_dissipation_only():
    robot, (q, qd, qdd) = arm(), motion()
    plain = robot.with_dissipation(0.0, 0.0, 0.0)
    for method in robot.methods("inverse_dynamics"):
        bare = plain.inverse_dynamics(q, qd, qdd, method=method)
        lost = 0.4 * qd + np.array([3, 2, 1, 0.5, 0.4, 0.3]) * np.sign(qd) + OFFSET
        found = robot.inverse_dynamics(q, qd, qdd, method=method, dissipation=True)
        assert np.allclose(found, bare + lost, rtol=0, atol=1e-11), method
        assert np.allclose(robot.inverse_dynamics(q, qd, qdd, method=method), bare, rtol=0, atol=1e-11), method


@pytest.mark.slow
def test_every_forward_method_undoes_it():
    robot, (q, qd, qdd) = arm(), motion()
    tau = robot.inverse_dynamics(q, qd, qdd, dissipation=True)
    for method in robot.methods("forward_dynamics"):
        found = robot.forward_dynamics(q, qd, tau, method=method, dissipation=True)
        assert np.allclose(found, qdd, rtol=0, atol=1e-9), method


@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.slow
def test_loops_over_links_and_derivatives(rolled: bool):
    robot = ls.robots.chain(12).with_dissipation(0.1, 0.2, np.linspace(-1.0, 1.0, 12))
    q, qd, qdd = motion(12)
    function = robot.compile("inverse_dynamics", dissipation=True, rolled=rolled)
    plain = robot.with_dissipation(torque_offset=0.0).inverse_dynamics(q, qd, qdd, dissipation=True)
    assert np.allclose(function(q, qd, qdd) - plain, np.linspace(-1.0, 1.0, 12), rtol=0, atol=1e-10)
    slope = robot.inverse_dynamics_derivatives(q, qd, qdd, dissipation=True)
    same = robot.with_dissipation(torque_offset=0.0).inverse_dynamics_derivatives(q, qd, qdd, dissipation=True)
    assert all(np.array_equal(a, b) for a, b in zip(slope, same, strict=True))


def test_a_follower_s_offset_reaches_its_leader_with_the_sign_of_the_gear():
    robot = arm().with_couplings([ls.Coupling("joint6", "joint5", -0.5)])
    assert np.allclose(robot.torque_offset, [*OFFSET[:4], OFFSET[4] - 0.5 * OFFSET[5]])
    q, qd, qdd = motion(5)
    apart = robot.inverse_dynamics(q, qd, qdd, dissipation=True) - robot.with_dissipation(
        torque_offset=0.0
    ).inverse_dynamics(q, qd, qdd, dissipation=True)
    assert np.allclose(apart, robot.torque_offset, rtol=0, atol=1e-12)
    again = robot.with_dissipation(torque_offset=robot.torque_offset)
    assert np.allclose(again.torque_offset, robot.torque_offset)


def test_a_simulation_meets_it():
    robot = ls.robots.planar(2).with_gravity((0, 0, 0)).with_dissipation(torque_offset=[0.3, -0.1])
    run = ls.simulate(robot, np.zeros(2), np.zeros(2), np.array([0.3, -0.1]), 0.5, dissipation=True)
    assert np.abs(run.qd).max() < 1e-12  # the drives make just that
    fallen = ls.simulate(robot, np.zeros(2), np.zeros(2), None, 0.5, dissipation=True)
    assert np.abs(fallen.qd[-1]).max() > 0.01
    rest = ls.simulate(robot.with_dissipation(friction=1.0), np.zeros(2), np.zeros(2), None, 0.5, dissipation=True)
    assert np.abs(rest.qd).max() == 0.0  # friction holds against it


def test_files_keep_it(tmp_path):
    planar = ls.robots.planar(2).with_gravity((0, 0, -9.81)).with_dissipation(torque_offset=OFFSET[:2])
    (tmp_path / "a.urdf").write_text(planar.to_urdf())
    assert np.array_equal(ls.load(tmp_path / "a.urdf").torque_offset, OFFSET[:2])
    robot = arm()
    assert np.array_equal(ls.Robot.from_dh(**robot.to_dh("modified")).torque_offset, OFFSET)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, "a", [1.0, 2.0]])
def test_offsets_that_cannot_be(wrong):
    with pytest.raises(ls.ArgumentError, match="torque_offset"):
        ls.robots.puma560().with_dissipation(torque_offset=wrong)
