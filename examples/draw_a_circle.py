"""Move the tool of a PUMA 560 along a circle: joint motion by inverse kinematics, and the required torques."""

import numpy as np

import linksweep as ls
from linksweep import motion

robot = ls.robots.puma560()
q0 = np.array([0.2, -0.9, 2.6, 0.0, np.pi - 1.7, 3.0])  # the tool points down
start = robot.pose(q0, "tool")
center = start[:3, 3] - [0.08, 0.0, 0.0]

# once around a vertical axis in 2.5 s, from rest to rest, the tool turning with the circle: joint 6 turns once
circle = motion.Arc.around(start, center, axis=[0.0, 0.0, 1.0], angle=2.0 * np.pi, time_scaling=2.5)
t = np.linspace(0.0, circle.duration, 201)
followed = robot.follow(circle, "tool", t, q0)
if not followed.solved.all():
    raise SystemExit(f"the circle ends after {t[followed.solved][-1]:.2f} s: {followed.reason}")

tau = robot.inverse_dynamics(followed.q, followed.qd, followed.qdd)
off = np.linalg.norm(robot.pose(followed.q, "tool")[:, :3, 3] - circle(t).pose[:, :3, 3], axis=1)
print(f"{len(t)} samples, at most {off.max():.1e} m off a circle of radius {circle.radius:.2f} m")
print("joint     from      to   largest speed (rad/s)   largest torque (N m)")
for k, name in enumerate(robot.joint_names):
    first, last = np.degrees(followed.q[[0, -1], k])
    speed, torque = np.abs(followed.qd[:, k]).max(), np.abs(tau[:, k]).max()
    print(f"{name:<8} {first:6.1f}  {last:6.1f} {speed:18.2f} {torque:22.2f}")
