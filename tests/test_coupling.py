"""Joints that mimic others, with reduced coordinates: against the full robot, and against Pinocchio's mimic joints."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pinocchio as pin
import pytest

import linksweep as ls
from linksweep.description.model import Mimic
from linksweep.errors import ModelWarning
from linksweep.robot.coupling import CoupledRobot

PANDA = oracles.FILES["panda_description/urdf/panda.urdf"]
LAWS = (Mimic("joint3", "joint2", -0.5, 0.2), Mimic("joint5", "joint3", 2.0, -0.1), Mimic("joint6", "joint1", 1.5))


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")


def coupled(path: Any = PANDA, **options: Any) -> CoupledRobot:
    robot = ls.load(path, mimic="couple", **options)  # without any warning
    assert isinstance(robot, CoupledRobot)
    return robot


def state(robot: CoupledRobot, *shape: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    q = np.array([robot.random(rng) for _ in range(int(np.prod(shape)))]).reshape(*shape, robot.nq)
    return (q, *rng.uniform(-1, 1, (2, *shape, robot.nv)))


def test_fingers_move_together_as_in_pinocchio():
    robot = coupled()
    assert robot.nv == 8 and robot.robot.nv == 9 and "panda_finger_joint2" not in robot.joint_names
    model: Any = pin.buildModelFromUrdf(str(PANDA), mimic=True)
    data = model.createData()
    assert [model.names[i] for i in range(1, 9)] == list(robot.joint_names)
    q, qd, qdd = state(robot)
    tau = pin.rnea(model, data, q, qd, qdd)
    assert oracles.relative(robot.inverse_dynamics(q, qd, qdd), tau) < 1e-10
    upper = np.triu(pin.crba(model, data, q))
    assert oracles.relative(robot.mass_matrix(q), upper + np.triu(upper, 1).T) < 1e-10
    assert np.allclose(robot.forward_dynamics(q, qd, tau), qdd, rtol=0, atol=1e-8)


def test_laws_of_laws_with_offsets():
    """A chain of followers: q5 = 2 q3 - 0.1 = 2 (-0.5 q2 + 0.2) - 0.1."""
    robot = CoupledRobot(ls.robots.puma560(), LAWS)
    assert robot.joint_names == ("joint1", "joint2", "joint4")
    full = robot.expand([1.0, 2.0, 3.0])
    assert full == pytest.approx([1.0, 2.0, -0.8, 3.0, -1.7, 1.5])
    assert robot.expand_rates([1.0, 2.0, 3.0]) == pytest.approx([1.0, 2.0, -1.0, 3.0, -2.0, 1.5])


@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
def test_reduced_dynamics_obey_lagrange(shape: tuple[int, ...]):
    robot = CoupledRobot(ls.robots.puma560(), LAWS)
    q, qd, qdd = state(robot, *shape)
    tau = robot.inverse_dynamics(q, qd, qdd)
    assert tau.shape == (*shape, 3)
    m = robot.mass_matrix(q)
    assert np.allclose(m @ qdd[..., None], (tau - robot.bias_forces(q, qd))[..., None], rtol=0, atol=1e-12)
    assert np.allclose(robot.forward_dynamics(q, qd, tau), qdd, rtol=0, atol=1e-11)
    assert np.allclose(robot.gravity_forces(q), robot.bias_forces(q, 0 * qd), rtol=0, atol=1e-12)
    # power at the joints that are left is power at all joints
    full = robot.robot.inverse_dynamics(robot.expand(q), robot.expand_rates(qd), robot.expand_rates(qdd))
    assert np.allclose((tau * qd).sum(-1), (full * robot.expand_rates(qd)).sum(-1), rtol=1e-12, atol=0)
    options: dict[str, Any] = {"dissipation": True, "f_ext": {"tool": np.ones(6)}}
    forced = robot.inverse_dynamics(q, qd, qdd, **options)
    assert np.allclose(robot.forward_dynamics(q, qd, forced, **options), qdd, rtol=0, atol=1e-11)


def test_the_jacobian_is_that_of_the_reduced_motion():
    robot = coupled(base="floating")
    assert robot.joint_names[0] == "root_joint" and robot.nq == robot.nv + 1
    q, qd, _ = state(robot)
    h = 1e-6
    ahead, behind = (robot.pose(robot.integrate(q, qd, s), "panda_rightfinger")[:3, 3] for s in (h, -h))
    velocity = robot.jacobian(q, "panda_rightfinger") @ qd
    assert np.allclose((ahead - behind) / (2 * h), velocity[3:], rtol=0, atol=1e-8)
    assert np.allclose(robot.difference(q, robot.integrate(q, qd)), qd, rtol=0, atol=1e-13)
    assert np.allclose(robot.normalize(q), q, rtol=0, atol=1e-15) and np.isfinite(robot.neutral()).all()


def test_edited_robots_stay_coupled():
    robot = coupled()
    q, qd, qdd = state(robot)
    assert not robot.with_gravity((0, 0, 0)).gravity_forces(q).any()
    heavier = robot.with_payload("panda_leftfinger", 1.0)
    assert np.abs(heavier.gravity_forces(q) - robot.gravity_forces(q)).max() > 1
    assert robot.with_base("floating").nv == 14
    small = robot.inverse_dynamics(q.astype(np.float32), qd.astype(np.float32), qdd.astype(np.float32))
    assert small.dtype == np.float32 and repr(robot) == "<CoupledRobot panda: 8 of 9 coordinates>"


def test_what_it_cannot_is_said():
    robot = coupled()
    assert robot.methods("forward_dynamics") == ("composite",)
    assert robot.methods("inverse_dynamics") == robot.robot.methods("inverse_dynamics")
    with pytest.raises(ls.ArgumentError, match="coupled robot has no function 'mass_matrix_inverse'"):
        robot.methods("mass_matrix_inverse")
    with pytest.raises(ls.ArgumentError, match=r"coupled robot has no mass_matrix_inverse, expected one of .*\.robot"):
        robot.mass_matrix_inverse(robot.neutral())
    assert not hasattr(robot, "compile") and not hasattr(robot, "nonsense")
    q, qd, qdd = state(robot)
    with pytest.raises(ls.ArgumentError, match="method is 'filter_smoother', expected 'composite'"):
        robot.forward_dynamics(q, qd, qdd, method="filter_smoother")
    with pytest.raises(ls.ArgumentError, match="takes no 'details'"):
        robot.inverse_dynamics(q, qd, qdd, details=True)
    with pytest.raises(ls.ArgumentError, match=r"q has shape \(9,\) and type float64, expected .* \(\.\.\., 8\)"):
        robot.pose(np.zeros(9), "panda_link1")


def test_circles_are_refused():
    laws = (Mimic("joint3", "joint2"), Mimic("joint2", "joint4"), Mimic("joint4", "joint3"))
    with pytest.raises(ls.DescriptionError, match="'joint2', 'joint3', 'joint4' mimic each other in a circle"):
        CoupledRobot(ls.robots.puma560(), laws)
    with pytest.raises(ls.DescriptionError, match="mimics 'elbow', expected joints that move"):
        CoupledRobot(ls.robots.puma560(), [Mimic("joint3", "elbow")])


def test_load_says_what_it_takes(tmp_path: Path):
    file = tmp_path / "arm.urdf"
    file.write_text(ls.robots.stanford().to_urdf())
    assert isinstance(ls.load(file, mimic="couple"), ls.Robot)  # nobody mimics anybody
    with pytest.raises(ls.ArgumentError, match="mimic is 'follow', expected 'free' or 'couple'"):
        ls.load(file, mimic="follow")  # type: ignore[call-overload]
    with pytest.warns(ModelWarning, match="'panda_finger_joint2' mimic others"):
        assert ls.load(PANDA).nv == 9


def test_massless_followers_are_singular_together():
    parts = ls.robots.planar(2).with_payload("link2", 1.0)
    robot = CoupledRobot(parts, [Mimic("joint2", "joint1", -1.0)])
    q = np.zeros(1)
    assert robot.forward_dynamics(q, q, q).shape == (1,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        empty = ls.Robot.from_dh([{"a": 1.0}, {"a": 1.0, "mass": 1.0}], "modified")
    still = CoupledRobot(empty, [Mimic("joint2", "joint1", 0.0)])
    with pytest.raises(ls.LinksweepError):
        CoupledRobot(empty, [Mimic("joint1", "joint2", 0.0)]).forward_dynamics(q, q, q)
    assert still.mass_matrix(q).shape == (1, 1)
