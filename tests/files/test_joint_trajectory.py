"""ROS JointTrajectory messages in YAML, read by another parser."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import linksweep as ls
from linksweep.cli import main
from linksweep.files import write_joint_trajectory

yaml = pytest.importorskip("yaml")


def test_message(tmp_path: Path):
    rng = np.random.default_rng(0)
    t = 5.0 + np.array([0.0, 0.1, 1.25])
    q, qd, tau = rng.standard_normal((3, 3, 2))
    file = tmp_path / "motion.yaml"
    write_joint_trajectory(file, ["shoulder: 1", "élbow"], t, q, qd, tau=tau)
    message = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert message["joint_names"] == ["shoulder: 1", "élbow"] and message["header"]["frame_id"] == ""
    points = message["points"]
    for key, values in (("positions", q), ("velocities", qd), ("effort", tau)):
        assert np.array_equal([point[key] for point in points], values)
    stamps = [point["time_from_start"] for point in points]
    assert stamps[2] == {"sec": 1, "nanosec": 250_000_000} and stamps[1]["nanosec"] == 100_000_000
    assert "accelerations" not in points[0]


def test_mistakes(tmp_path: Path):
    with pytest.raises(ls.ArgumentError, match=r"q has shape \(3, 1\)"):
        write_joint_trajectory(tmp_path / "a.yaml", ["a", "b"], [0, 1, 2], np.zeros((3, 1)))
    with pytest.raises(ls.ArgumentError, match=r"expected \.yaml"):
        write_joint_trajectory(tmp_path / "a.txt", ["a"], [0], [[0]])
    with pytest.raises(ls.ArgumentError, match="finite"):
        write_joint_trajectory(tmp_path / "a.yaml", ["a"], [0], [[np.nan]])
    assert not list(tmp_path.iterdir())


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    robot = ls.robots.planar(2).with_gravity((0, 0, -9.81))
    names = [f"{block}.{joint}" for block in ("q", "qd", "qdd") for joint in robot.joint_names]
    source, target = tmp_path / "motion.csv", tmp_path / "torques.yaml"
    rows = np.column_stack([[0.0, 0.5], np.random.default_rng(1).standard_normal((2, 6))])
    np.savetxt(source, rows, delimiter=",", header=",".join(["t", *names]), comments="")
    model = tmp_path / "arm.urdf"
    model.write_text(robot.to_urdf())
    monkeypatch.setattr(sys, "argv", ["linksweep", "inverse", str(model), "-t", str(source), "-o", str(target)])
    with pytest.raises(SystemExit) as ending:
        main()
    assert ending.value.code == 0
    points = yaml.safe_load(target.read_text())["points"]
    q, qd, qdd = rows[:, 1:3], rows[:, 3:5], rows[:, 5:]
    expected = ls.load(model).inverse_dynamics(q, qd, qdd)
    assert np.abs(np.array([point["effort"] for point in points]) - expected).max() < 1e-12
    assert np.allclose([point["positions"] for point in points], q)
