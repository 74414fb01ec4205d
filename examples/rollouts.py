"""Simulate a thousand arms in one call, half of them with a controller.

Each arm starts near a configuration. Without torques it falls. With PD control and gravity compensation it returns.
"""

import numpy as np

import linksweep as ls
from linksweep.simulation import PD

robot = ls.robots.puma560()
pose = np.array([0.3, -0.6, 0.4, 0.2, 0.5, -0.1])
start = pose + np.random.default_rng(0).normal(scale=0.1, size=(500, 6))

falling = ls.simulate(robot, start, None, None, 1.0, every=250)
held = ls.simulate(
    robot, start, None, PD(pose, kp=[900, 900, 400, 100, 100, 100], kd=[90, 90, 40, 10, 10, 10]), 1.0, every=250
)

print("time (s)   largest distance from the pose (rad): falling   held")
for moment, left_alone, holding in zip(falling.t, falling.q, held.q, strict=True):
    print(f"{moment:8.2f}   {np.abs(left_alone - pose).max():46.2f}   {np.abs(holding - pose).max():.4f}")
print(f"energy drift of the falling arms, over the range of potential energy: {falling.energy_drift.max():.1e}")

assert falling.finite.all() and held.finite.all()
assert np.abs(held.q[-1] - pose).max() < 0.02 < np.abs(falling.q[-1] - pose).max()
