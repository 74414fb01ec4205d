"""A universal joint is two revolute ones across each other, checked against Pinocchio's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio
import pytest
from scipy.spatial.transform import Rotation

from linksweep import Robot
from linksweep.description.assembly import Part, assemble
from linksweep.description.model import Inertial, Joint, Placement
from linksweep.errors import DescriptionError

pin: Any = pinocchio  # its stubs do not know what it makes at run time
SECOND = {(1.0, 0.0, 0.0): (0, 1, 0), (0.0, 1.0, 0.0): (0, 0, 1), (0.0, 0.0, 1.0): (1, 0, 0)}


def body(rng: np.random.Generator) -> Inertial:
    points, masses = rng.normal(size=(6, 3)) * 0.2, rng.uniform(0.2, 1.0, 6)
    com = masses @ points / masses.sum()
    arms = points - com
    tensor = sum(m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(masses, arms, strict=True))
    return Inertial(float(masses.sum()), tuple(com.tolist()), tuple(map(tuple, tensor.tolist())))  # type: ignore


def placed(rng: np.random.Generator) -> Placement:
    rotation = Rotation.random(rng=rng).as_matrix().tolist()
    return Placement(tuple(map(tuple, rotation)), tuple(rng.normal(size=3).tolist()))  # type: ignore[arg-type]


@pytest.mark.parametrize("axis", SECOND)
def test_against_pinocchio(axis: tuple[float, float, float]):
    rng = np.random.default_rng(4)
    at, bodies = [placed(rng) for _ in range(3)], [body(rng) for _ in range(3)]
    parts = [
        Part("a", "base", Joint("first", "revolute", placement=at[0]), bodies[0]),
        Part("b", "a", Joint("u", "universal", axis, placement=at[1]), bodies[1]),
        Part("c", "b", Joint("last", "prismatic", placement=at[2]), bodies[2]),
    ]
    robot = Robot(assemble("wrist", parts, base="base"))
    assert robot.joint_names == ("first", "u.1", "u.2", "last")
    model = pin.Model()
    kinds = (
        pin.JointModelRZ(),
        pin.JointModelUniversal(np.array(axis), np.array(SECOND[axis], float)),
        pin.JointModelPZ(),
    )
    for k, (kind, place, own) in enumerate(zip(kinds, at, bodies, strict=True)):
        index = model.addJoint(k, kind, pin.SE3(np.array(place.rotation), np.array(place.position)), str(k))
        inertia = pin.Inertia(own.mass, np.array(own.com), np.array(own.inertia))
        model.appendBodyToJoint(index, inertia, pin.SE3.Identity())
    q, qd, qdd = rng.uniform(-1, 1, (3, 4))
    tau = robot.inverse_dynamics(q, qd, qdd)
    assert np.allclose(tau, pin.rnea(model, model.createData(), q, qd, qdd), rtol=0, atol=1e-12 * abs(tau).max())
    assert np.allclose(robot.forward_dynamics(q, qd, tau), qdd, rtol=0, atol=1e-12)


def test_an_axis_of_any_direction_has_one_across_it():
    axis = tuple((np.array([1.0, 2.0, 3.0]) / np.sqrt(14)).tolist())
    robot = Robot(
        assemble("r", [Part("a", "base", Joint("u", "universal", axis), body(np.random.default_rng(0)))], base="base")
    )
    first, second = (np.array(link.joint.axis) for link in robot.model.links)
    assert abs(first @ second) < 1e-15 and abs(np.linalg.norm(second) - 1.0) < 1e-15


def test_a_universal_joint_without_axis_is_refused():
    with pytest.raises(DescriptionError, match=r"axis of joint 'u"):
        assemble("r", [Part("a", "base", Joint("u", "universal", (0.0, 0.0, 0.0)), Inertial(1.0))], base="base")
