"""The node of docs/ros2.md, run with stand-ins for ROS's modules."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import linksweep as ls

PAGE = Path(__file__).parents[2] / "docs" / "ros2.md"


class Node:
    """rclpy's node as far as the page uses it."""

    def __init__(self, name: str):
        self.name = name
        self.received: dict[str, Any] = {}
        self.sent: list[Any] = []

    def create_subscription(self, kind: type, topic: str, function: Any, qos: object) -> None:
        self.received[topic] = function

    def create_publisher(self, kind: type, topic: str, qos: object) -> SimpleNamespace:
        return SimpleNamespace(publish=self.sent.append)


def test_the_node_publishes_torques(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")
    nodes: list[Any] = []
    message = SimpleNamespace
    modules = {
        "rclpy": {"init": lambda: None, "spin": nodes.append},
        "rclpy.node": {"Node": Node},
        "rclpy.qos": {"DurabilityPolicy": SimpleNamespace(TRANSIENT_LOCAL=1), "QoSProfile": message},
        "sensor_msgs": {},
        "sensor_msgs.msg": {"JointState": message},
        "std_msgs": {},
        "std_msgs.msg": {"Float64MultiArray": message, "String": message},
        "trajectory_msgs": {},
        "trajectory_msgs.msg": {"JointTrajectoryPoint": message},
    }
    for name, content in modules.items():
        module = ModuleType(name)
        module.__dict__.update(content)
        monkeypatch.setitem(sys.modules, name, module)
    text = PAGE.read_text(encoding="utf-8")
    (controller,) = (code for code in re.findall(r"```python\n(.*?)```", text, re.S) if "class ComputedTorque" in code)
    (node,) = re.findall(r"```py\n(.*?)```", text, re.S)
    names: dict[str, Any] = {}
    exec(controller.partition("controller =")[0] + node, names)
    (running,) = nodes
    robot = ls.robots.puma560()
    running.received["/robot_description"](message(data=robot.to_urdf()))
    q = np.linspace(-0.5, 0.5, 6)
    zero = [0.0] * 6
    state = message(name=[*reversed(robot.joint_names)], position=q[::-1].tolist(), velocity=zero)
    running.received["/joint_states"](state)
    assert not running.sent  # no reference yet
    running.received["~/reference"](message(positions=q.tolist(), velocities=zero, accelerations=zero))
    running.received["/joint_states"](state)
    (command,) = running.sent
    limit = robot.limits.effort
    assert np.abs(np.array(command.data) - np.clip(robot.gravity_forces(q), -limit, limit)).max() < 1e-9
