"""Universal and cylindrical joints against Pinocchio's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio
import pytest
from pin_models import random_inertial, random_placement

from linksweep import Robot
from linksweep.errors import DescriptionError
from linksweep.mechanism.canonical import aligning_rotation
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint

pin: Any = pinocchio  # its stubs do not know what it makes at run time
SECOND = {(1.0, 0.0, 0.0): (0, 1, 0), (0.0, 1.0, 0.0): (0, 0, 1), (0.0, 0.0, 1.0): (1, 0, 0)}
BODY = random_inertial(np.random.default_rng(0))
SLANTED = tuple((np.array([1.0, 2.0, 3.0]) / np.sqrt(14)).tolist())


def composite(*joints: Any) -> Any:
    found = pin.JointModelComposite()
    for joint in joints:
        found.addJoint(joint)
    return found


def theirs(kind: str, axis: Any) -> Any:
    if kind == "universal":
        return pin.JointModelUniversal(np.array(axis), aligning_rotation(axis)[:, 0])
    return composite(pin.JointModelRevoluteUnaligned(np.array(axis)), pin.JointModelPrismaticUnaligned(np.array(axis)))


@pytest.mark.parametrize("axis", [*SECOND, SLANTED])
@pytest.mark.parametrize("kind", ["universal", "cylindrical"])
def test_against_pinocchio(kind: str, axis: tuple[float, float, float]):
    rng = np.random.default_rng(4)
    at, bodies = [random_placement(rng) for _ in range(3)], [random_inertial(rng) for _ in range(3)]
    parts = [
        Part("a", "base", Joint("first", "revolute", placement=at[0]), bodies[0]),
        Part("b", "a", Joint("u", kind, axis, placement=at[1]), bodies[1]),
        Part("c", "b", Joint("last", "prismatic", placement=at[2]), bodies[2]),
    ]
    robot = Robot(assemble("wrist", parts, base="base"))
    assert robot.joint_names == ("first", "u", "last") and robot.link_names == ("a", "b", "c") and robot.nv == 4
    model = pin.Model()
    kinds = (pin.JointModelRZ(), theirs(kind, axis), pin.JointModelPZ())
    for k, (joint, place, own) in enumerate(zip(kinds, at, bodies, strict=True)):
        index = model.addJoint(k, joint, pin.SE3(np.array(place.rotation), np.array(place.position)), str(k))
        inertia = pin.Inertia(own.mass, np.array(own.com), np.array(own.inertia))
        model.appendBodyToJoint(index, inertia, pin.SE3.Identity())
    q, qd, qdd = rng.uniform(-1, 1, (3, 4))
    tau = robot.inverse_dynamics(q, qd, qdd)
    assert np.allclose(tau, pin.rnea(model, model.createData(), q, qd, qdd), rtol=0, atol=1e-12 * abs(tau).max())
    assert np.allclose(robot.forward_dynamics(q, qd, tau), qdd, rtol=0, atol=1e-12)
    f_ext = rng.normal(size=(3, 6))
    pushed = [pin.Force.Zero(), *(pin.Force(row[3:], row[:3]) for row in f_ext)]
    expected = pin.rnea(model, model.createData(), q, qd, qdd, pushed)
    assert np.allclose(robot.inverse_dynamics(q, qd, qdd, f_ext=f_ext), expected, rtol=0, atol=1e-12 * abs(tau).max())


@pytest.mark.parametrize("axis", SECOND)
def test_the_second_axis_is_the_next_one(axis: tuple[float, float, float]):
    """Of an axis along x, y or z: y, z or x."""
    robot = Robot(assemble("r", [Part("a", "base", Joint("u", "universal", axis), BODY)], base="base"))
    assert np.array_equal(robot.jacobian(np.zeros(2), "a")[:3].T, [axis, SECOND[axis]])


def test_an_axis_of_any_direction_has_one_across_it():
    robot = Robot(assemble("r", [Part("a", "base", Joint("u", "universal", SLANTED), BODY)], base="base"))
    first, second = robot.jacobian(np.array([0.3, 0.4]), "a")[:3].T
    assert abs(first @ second) < 1e-15 and abs(np.linalg.norm(second) - 1.0) < 1e-15


@pytest.mark.parametrize("kind", ["universal", "cylindrical"])
def test_a_joint_without_axis_is_refused(kind: str):
    with pytest.raises(DescriptionError, match=r"axis of joint 'u"):
        assemble("r", [Part("a", "base", Joint("u", kind, (0.0, 0.0, 0.0)), Inertial(1.0))], base="base")
