"""Values by joint name: `robot.pack` and `robot.unpack`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linksweep as ls
from linksweep.errors import ArgumentError

ROBOT = ls.robots.puma560().lock(["joint4", "joint5", "joint6"])
FLOATING = ROBOT.with_base("floating")
NAMES = list(ROBOT.joint_names)


@pytest.mark.quick
def test_names_in_any_order_and_with_other_joints():
    values = np.arange(12.0).reshape(4, 3)
    shuffled, other = [NAMES[2], "gripper", NAMES[0], NAMES[1]], np.full((4, 1), 9.0)
    table = np.concatenate([values[:, 2:], other, values[:, :2]], axis=1)
    np.testing.assert_array_equal(ROBOT.pack(shuffled, table), values)
    np.testing.assert_array_equal(ROBOT.pack(shuffled, table[1]), values[1])


def test_a_mapping_with_a_default():
    np.testing.assert_array_equal(ROBOT.pack({"joint2": 0.3}, default=0.1), [0.1, 0.3, 0.1])
    q = FLOATING.pack({"joint2": 0.3}, default=FLOATING.neutral())
    np.testing.assert_array_equal(q, [0, 0, 0, 1, 0, 0, 0, 0, 0.3, 0])
    batch = ROBOT.pack({"joint1": [1.0, 2.0], "joint3": 5.0}, default=np.zeros(3))
    np.testing.assert_array_equal(batch, [[1, 0, 5], [2, 0, 5]])
    root = FLOATING.joint_names[0]
    q = FLOATING.pack({root: [0, 0, 0, 1, 2, 3, 4], **dict.fromkeys(NAMES, 0.5)})
    np.testing.assert_array_equal(q, [0, 0, 0, 1, 2, 3, 4, 0.5, 0.5, 0.5])
    v = FLOATING.pack([f"{root}.vz", *NAMES], [7, 1, 2, 3], default=0.0, quantity="qd")
    np.testing.assert_array_equal(v, [0, 0, 0, 0, 0, 7, 1, 2, 3])


def test_a_joint_state_message():
    message = {"name": NAMES[::-1], "position": [3, 2, 1], "velocity": [6, 5, 4], "effort": []}
    np.testing.assert_array_equal(ROBOT.pack(message), [1, 2, 3])
    np.testing.assert_array_equal(ROBOT.pack(message, quantity="qd"), [4, 5, 6])
    with pytest.raises(ArgumentError, match=r"shape \(0,\)"):
        ROBOT.pack(message, quantity="tau")
    with pytest.raises(ArgumentError, match="acceleration"):
        ROBOT.pack(message, quantity="qdd")


@pytest.mark.parametrize("robot", [ROBOT, FLOATING], ids=["fixed", "floating"])
@pytest.mark.parametrize("quantity", ["q", "qd", "tau"])
def test_unpack_is_the_inverse(robot: ls.Robot, quantity: str):
    vector = np.random.default_rng(0).normal(size=(5, robot.nq if quantity == "q" else robot.nv))
    by_name = robot.unpack(vector, quantity)
    assert tuple(by_name) == robot.joint_names
    np.testing.assert_array_equal(by_name[NAMES[1]], vector[:, -2])
    np.testing.assert_array_equal(robot.pack(by_name, quantity=quantity), vector)
    np.testing.assert_array_equal(robot.pack(robot.unpack(vector[0], quantity), quantity=quantity), vector[0])


@pytest.mark.parametrize(
    ("arguments", "options", "says"),
    [
        (({"jiont1": 1.0},), {}, "mean 'joint1'"),
        (({"joint1": 1.0},), {}, "'joint2', 'joint3' is missing"),
        ((["joint1", "joint3"], [1.0, 2.0]), {}, "'joint2' is missing"),
        ((["joint1", "joint1"], [1.0, 2.0]), {"default": 0.0}, "'joint1' occurs twice"),
        ((["joint1"], [1.0, 2.0]), {"default": 0.0}, r"shape \(2,\), expected \(..., 1\)"),
        ((NAMES, None), {}, "values"),
        ((NAMES, ["a", "b", "c"]), {}, "values"),
        (({"joint1": 1.0}, [1.0]), {}, "beside a mapping"),
        (({"joint1": 1.0},), {"default": [1.0, 2.0]}, r"shape \(2,\)"),
        (({"joint1": 1.0},), {"quantity": "torque"}, "quantity is 'torque'"),
        (({"joint1": [1.0, 2.0], "joint2": [1.0, 2.0, 3.0]},), {"default": 0.0}, "broadcast"),
    ],
)
def test_bad_values(arguments: Any, options: dict[str, Any], says: str):
    with pytest.raises(ArgumentError, match=says):
        ROBOT.pack(*arguments, **options)


def test_names_of_joints_with_several_coordinates():
    root = FLOATING.joint_names[0]
    with pytest.raises(ArgumentError, match="several coordinates"):
        FLOATING.pack([root, *NAMES], np.zeros(4))
    with pytest.raises(ArgumentError, match=r"shape \(9,\)"):
        FLOATING.unpack(np.zeros(9))
