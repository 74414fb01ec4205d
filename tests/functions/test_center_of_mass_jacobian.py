"""The Jacobian of the center of mass, against Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest
from pin_models import pin_model, places, random_robot, their_q
from robots_for_tests import close

import linksweep as ls

pin = pytest.importorskip("pinocchio")

KINDS = [("revolute", "prismatic", "revolute"), ("free", "revolute", "spherical", "revolute")]


@pytest.mark.cases(2)
@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("tree", [False, True])
def test_it_is_pinocchios(kinds: tuple[str, ...], tree: bool):
    robot = random_robot(kinds, tree=tree)
    model = pin_model(robot)
    q = robot.random(np.random.default_rng(0))
    J = pin.jacobianCenterOfMass(model, model.createData(), their_q(robot, model, q))
    assert close(robot.center_of_mass_jacobian(q), J[:, places(robot, model)], 1e-12)


def test_in_loops():
    chain = ls.robots.chain(5)
    q = chain.random(np.random.default_rng(0))
    rolled = chain.compile("center_of_mass_jacobian", rolled=True)
    assert rolled.program.rolled and close(rolled(q), chain.center_of_mass_jacobian(q), 1e-12)
