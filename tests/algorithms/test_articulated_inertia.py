"""`robot.articulated_inertia`: (37)-(43) and (84) of Rodriguez 1987 against a dense Schur complement."""

from __future__ import annotations

import numpy as np
import pytest
from robots_for_tests import close, freely_moving, joint_motion, kinematics, path, robot, samples

import linksweep as ls
from linksweep.errors import ArgumentError

METHODS = ("riccati", "articulated_parameters")


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")


def schur_complement(bot: ls.Robot, q: np.ndarray, k: int) -> np.ndarray:
    """What link k needs to be accelerated if it moves freely, with the joints beyond it: M_bb - M_bj M_jj^-1 M_jb."""
    model, bodies = bot.model, kinematics(bot.model, q)
    beyond = [i for i in range(len(model.links)) if k in path(model, i)]
    joints = [i for i in beyond if i != k]
    R, p = bodies[k].R, bodies[k].p
    M = np.zeros((6 + len(joints),) * 2)
    for i in beyond:
        body, inertial = bodies[i], model.links[i].inertial
        angular, linear = np.zeros((2, 3, len(M)))
        angular[:, :3] = R
        linear[:, :3], linear[:, 3:6] = np.cross(R.T, body.c - p).T, R
        for column, j in enumerate(joints):
            if j in path(model, i):
                angular[:, 6 + column], linear[:, 6 + column] = joint_motion(model, bodies, j, body.c)
        M += angular.T @ body.R @ np.array(inertial.inertia) @ body.R.T @ angular + inertial.mass * linear.T @ linear
    M[6:, 6:] += np.diag([model.links[j].joint.armature for j in joints])
    return M[:6, :6] - M[:6, 6:] @ np.linalg.solve(M[6:, 6:], M[6:, :6])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["tree9", "mixed5", "puma560", "urdf"])
def test_it_is_the_inertia_of_a_link_whose_outer_joints_are_free(name: str, method: str):
    bot = robot(name)
    q = samples(bot, 2, seed=3)[0]
    P = bot.articulated_inertia(q, method=method)
    assert P.shape == (2, len(bot.link_names), 6, 6)
    for sample in range(2):
        for row, k in enumerate(bot.model.document_order):
            assert close(P[sample, row], schur_complement(bot, q[sample], k), 1e-11)


def test_joints_with_several_degrees_of_freedom():
    bot = freely_moving()
    random = np.random.default_rng(3)
    q, qd, tau = bot.random(random), *random.normal(size=(2, bot.nv))
    _, details = bot.forward_dynamics(q, qd, tau, method="filter_smoother", details=True)
    for method in METHODS:
        assert close(bot.articulated_inertia(q, method=method), details.P, 1e-12)


def test_it_is_a_function_like_the_others(monkeypatch: pytest.MonkeyPatch):
    bot = ls.robots.chain(3, seed=5, joints="mixed")
    q = np.array([0.3, -0.2, 0.7])
    assert bot.methods("articulated_inertia") == METHODS and "articulated_inertia" in bot.functions
    slope = bot.compile(("derivative", "articulated_inertia", "q"))(q)
    step = 1e-6 * np.eye(3)
    difference = (bot.articulated_inertia(q + step) - bot.articulated_inertia(q - step)) / 2e-6
    assert np.allclose(np.moveaxis(slope, -1, 0), difference, atol=1e-7)
    monkeypatch.setattr("linksweep.support.settings.backend", "llvm")
    f = bot.compile("articulated_inertia", method="articulated_parameters")
    assert close(f(q), bot.articulated_inertia(q), 1e-12)


def test_joints_that_follow_others_are_refused():
    bot = robot("mixed3")
    coupled = bot.with_couplings([ls.Coupling(bot.joint_names[2], bot.joint_names[0], 2.0)])
    with pytest.raises(ArgumentError, match="mimic joints"):
        coupled.articulated_inertia(np.zeros(coupled.nq))
