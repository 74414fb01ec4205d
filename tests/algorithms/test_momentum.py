"""Mass centre, momentum, centroidal momentum matrix and energy: what they are to each other."""

from __future__ import annotations

import numpy as np
import pytest
from robots_for_tests import GRAVITY, robot_of

import linksweep as ls
from linksweep.errors import ArgumentError, DescriptionError
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint, symmetric

ROBOTS = {
    "tree": robot_of(["free", "spherical", "revolute", "planar", "prismatic"], [-1, 0, 1, 0, 0], (1.0, 2.0, -9.0)),
    "arm": robot_of(["revolute", "prismatic", "revolute"], [-1, 0, 1], GRAVITY),
}
FUNCTIONS = [
    "center_of_mass", "momentum", ("momentum", "base"), "centroidal_momentum_matrix", "kinetic_energy",
    "potential_energy",
]  # fmt: skip


def mass_of(robot: ls.Robot) -> float:
    return sum(link.inertial.mass for link in robot.model.links)


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
def test_what_they_are_to_each_other(name: str, rolled: bool, backend: str):
    robot = ROBOTS[name]
    rng = np.random.default_rng(0)
    q, v, mass = robot.random(rng), rng.uniform(-1, 1, robot.nv), mass_of(robot)
    compiled = robot.compile(FUNCTIONS, rolled=rolled, backend=backend)
    com, momentum, about_base, matrix, kinetic, potential = compiled(q, v)
    assert kinetic == pytest.approx(0.5 * v @ robot.mass_matrix(q) @ v, rel=1e-13)
    assert potential == pytest.approx(-mass * np.dot(robot.gravity, com), rel=1e-12)
    np.testing.assert_allclose(matrix @ v, momentum, atol=1e-12)
    np.testing.assert_allclose(about_base[3:], momentum[3:], atol=1e-13)
    np.testing.assert_allclose(about_base[:3], momentum[:3] + np.cross(com, momentum[3:]), atol=1e-12)
    step = 1e-5
    ahead, behind = (compiled(robot.integrate(q, v, sign * step), v) for sign in (1, -1))
    np.testing.assert_allclose((ahead[0] - behind[0]) / (2 * step) * mass, momentum[3:], atol=1e-7)
    power = (ahead[5] - behind[5]) / (2 * step)
    assert power == pytest.approx(robot.gravity_forces(q) @ v, rel=1e-7, abs=1e-7)


@pytest.mark.quick
def test_momentum_changes_by_the_force_of_the_base():
    """A robot on a free base: its linear rows of inverse dynamics are the momentum's rate, minus gravity's."""
    robot = ROBOTS["tree"]
    rng = np.random.default_rng(1)
    q, v, a = robot.random(rng), *rng.uniform(-1, 1, (2, robot.nv))
    step = 1e-5
    ahead, behind = (
        robot.momentum(robot.integrate(q, v + s * step / 2 * a, s * step), v + s * step * a) for s in (1, -1)
    )
    rate = (ahead - behind)[3:] / (2 * step)
    root = robot.pose(q, "body0")[:3, :3]
    force = root @ robot.inverse_dynamics(q, v, a)[3:6]
    np.testing.assert_allclose(force, rate - mass_of(robot) * np.array(robot.gravity), atol=1e-6)


@pytest.mark.quick
def test_motor_inertia_counts_as_kinetic_energy_only():
    body = Inertial(1.0, (0.0, 0.0, 0.0), symmetric(1.0, 1.0, 1.0))
    parts = [Part("link", "base", Joint("turn", armature=3.0), body)]
    robot = ls.Robot(assemble("wheel", parts, base="base"))
    assert robot.kinetic_energy([0.3], [2.0]) == pytest.approx(0.5 * (1.0 + 3.0) * 4.0)
    np.testing.assert_allclose(robot.momentum([0.3], [2.0]), [0, 0, 2, 0, 0, 0], atol=1e-15)


def test_shapes_batches_and_out():
    robot, rng = ROBOTS["tree"], np.random.default_rng(0)
    q, v = np.stack([robot.random(rng) for _ in range(6)]).reshape(2, 3, -1), rng.uniform(-1, 1, (3, robot.nv))
    assert robot.kinetic_energy(q, v).shape == (2, 3) and robot.potential_energy(q).shape == (2, 3)
    assert robot.center_of_mass(q).shape == (2, 3, 3) and robot.momentum(q, v).shape == (2, 3, 6)
    assert robot.kinetic_energy(q[0, 0], v[0]).shape == ()
    out = np.empty((2, 3, 6))
    assert robot.momentum(q, v, out=out) is out


def test_mistakes_are_named():
    robot = ROBOTS["arm"]
    with pytest.raises(ArgumentError, match="cannot be expressed in 'tool': expected one of center_of_mass, base"):
        robot.momentum(np.zeros(3), np.zeros(3), about="tool")
    wheel = [Part("link", "base", Joint("turn"), Inertial(0.0, (0.0, 0.0, 0.0), symmetric(0.0, 0.0, 1.0)))]
    massless = ls.Robot(assemble("wheel", wheel, base="base"))
    with pytest.raises(DescriptionError, match="the center of mass is undefined"):
        massless.center_of_mass([0.0])
    assert massless.kinetic_energy([0.0], [2.0]) == 2.0
