"""The Coriolis matrix by its recursion: every kind of joint, chains and trees, written out and as loops."""

from __future__ import annotations

import numpy as np
import pin_models
import pinocchio as pin
import pytest

import linksweep as ls
from linksweep.functions.functions import FUNCTIONS

MIXED = (*pin_models.ALL_KINDS, "revolute")


@pytest.mark.quick
@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("tree", [False, True])
def test_every_joint_against_pinocchio(tree: bool, rolled: bool):
    robot = pin_models.random_robot(MIXED, tree=tree, seed=3, armature=0.1)
    model, rng = pin_models.pin_model(robot), np.random.default_rng(0)
    data, where = model.createData(), pin_models.places(robot, model)
    q, qd = np.stack([robot.random(rng) for _ in range(4)]), rng.normal(size=(4, robot.nv))
    C = robot.compile("coriolis_matrix", rolled=rolled, backend="interpreter")(q, qd)
    for k in range(4):
        theirs = pin.computeCoriolisMatrix(
            model, data, pin_models.their_q(robot, model, q[k]), pin_models.their_v(where, qd[k])
        )[np.ix_(where, where)]
        assert np.abs(C[k] - theirs).max() <= 1e-13 * np.abs(theirs).max()


@pytest.mark.quick
def test_skew_and_velocity_forces_on_a_floating_tree():
    """In the tangent space: dM/dt is along the rates of the free base and the ball joint."""
    robot = pin_models.random_robot(("free", "revolute", "spherical", "prismatic"), tree=True, seed=5)
    rng = np.random.default_rng(1)
    q, qd = np.stack([robot.random(rng) for _ in range(4)]), rng.normal(size=(4, robot.nv))
    C = robot.compile("coriolis_matrix", backend="interpreter")(q, qd)
    M = robot.compile("mass_matrix", backend="interpreter")
    rate = np.einsum("bijk,bk->bij", M.derivative("q")(q), qd)
    skew = rate - 2 * C
    assert np.abs(rate).max() > 0.1
    assert np.abs(skew + np.swapaxes(skew, -1, -2)).max() <= 1e-12 * np.abs(rate).max()
    forces = robot.bias_forces(q, qd) - robot.gravity_forces(q)
    assert np.allclose(np.einsum("bij,bj->bi", C, qd), forces, rtol=0, atol=1e-12 * np.abs(forces).max())


def test_machine_code_of_a_floating_base_far_from_the_origin():
    robot = pin_models.random_robot(("free", "revolute", "revolute"), seed=6)
    rng = np.random.default_rng(2)
    near, qd = robot.random(rng), rng.normal(size=robot.nv)
    far = near.copy()
    far[4:7] += 1e6
    for rolled in (False, True):
        C = robot.compile("coriolis_matrix", rolled=rolled)
        assert np.array_equal(C(near, qd), C(far, qd))  # nothing depends on where the base stands


@pytest.mark.slow
def test_proved_in_exact_arithmetic():
    report = ls.prove(pin_models.random_robot(("free", "revolute"), seed=7))
    assert report.ok, str(report)
    said = {(outcome.statement, outcome.what) for outcome in report.proved}
    assert {("dM/dt - 2 C skew", "composite"), ("C qd = bias - gravity", "composite")} <= said
    assert any("coriolis_matrix by composite" in what for statement, what in said if statement == "base parameters")


def test_the_direct_sum_is_gone():
    assert set(FUNCTIONS["coriolis_matrix"].methods) == {"composite", "augmented_bodies"}
