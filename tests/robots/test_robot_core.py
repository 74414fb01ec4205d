"""A Robot is one class on a core, and its parts work on a core alone."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import numpy as np
import pytest

import linksweep as ls
from linksweep.robot.closed_chains import ClosedChain
from linksweep.robot.core import Core, Extras
from linksweep.robot.derivatives import Derivatives
from linksweep.robot.formulas import Formulas
from linksweep.robot.operational_space import operational_space
from linksweep.robot.properties import per_velocity, standard_parameters, with_joint_parameters, with_limits

PUMA = ls.robots.puma560()
Q, QD, QDD = np.random.default_rng(0).uniform(-1, 1, (3, 6))


def test_robot_inherits_nothing():
    assert ls.Robot.__mro__ == (ls.Robot, object)


def test_a_core_is_frozen_and_makes_each_function_once():
    core = Core.of(PUMA.model)
    with pytest.raises(FrozenInstanceError):
        core.model = PUMA.model  # pyright: ignore[reportAttributeAccessIssue]
    part = core.part("mass_matrix")
    assert core.function(part) is core.function(part)
    np.testing.assert_array_equal(core.call("mass_matrix", (Q,)), PUMA.mass_matrix(Q))
    assert core.joint_names == PUMA.joint_names and core.frame_names == PUMA.frame_names


def test_derivatives_and_regressor_of_a_core():
    core = Core.of(PUMA.model)
    for found, wanted in zip(
        Derivatives(core).of_inverse((Q, QD, QDD), None, None),
        PUMA.inverse_dynamics_derivatives(Q, QD, QDD),
        strict=True,
    ):
        np.testing.assert_array_equal(found, wanted)
    tau = core.call("regressor", (Q, QD, QDD)) @ standard_parameters(PUMA.model)
    assert np.allclose(tau, PUMA.inverse_dynamics(Q, QD, QDD), rtol=0, atol=1e-10 * np.abs(tau).max())


def test_derivatives_follow_the_backend(monkeypatch: pytest.MonkeyPatch):
    """A plain call after `use_backend` is not answered by the function of the backend before."""
    core = Core.of(ls.robots.planar(2).model)
    slopes = Derivatives(core)
    state = (np.zeros(2),) * 3
    compiled = slopes.of_inverse(state, None, None)
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")
    interpreted = slopes.of_inverse(state, None, None)
    assert set(core.calls) == {"llvm", "interpreter"}
    for a, b in zip(compiled, interpreted, strict=True):
        assert np.allclose(a, b, rtol=0, atol=1e-12)


def test_closed_chain_of_a_core():
    arm = ls.robots.planar(3)
    tool = arm.pose(np.array([0.3, 0.5, -0.2]), "tool")[:3, 3]
    pinned = arm.with_constraints(
        ls.Constraint("point", "tool", at=np.block([[np.eye(3), tool[:, None]], [np.eye(4)[3:]]]))
    )
    chain = ClosedChain(Core.of(pinned.model))
    q = chain.project(np.array([0.35, 0.4, -0.1]))
    assert np.abs(chain.error(q)).max() < 1e-10
    assert chain.mobility(q, 1e-9) == pinned.mobility(q)


def test_operational_space_and_formulas_of_a_core():
    core = Core.of(PUMA.model)
    found, wanted = (
        operational_space(core, Q, QD, "tool", None, "local"),
        PUMA.operational_space(Q, QD, "tool", reference="local"),
    )
    np.testing.assert_array_equal(found.inertia, wanted.inertia)
    walk = Formulas(core).explain("gravity_forces", None, {"q": Q}, Extras(), False, None, None)
    assert str(walk) == str(PUMA.explain("gravity_forces", q=Q))


def test_edits_take_a_model_and_give_one():
    model = with_joint_parameters(with_limits(PUMA.model, {"lower": -1.0, "upper": None}), {"damping": 2.0})
    robot = ls.Robot(model)
    assert (robot.limits.lower == -1.0).all() and (per_velocity(model, "damping") == 2.0).all()
    assert robot == PUMA.with_limits(lower=-1.0).with_dissipation(damping=2.0)
