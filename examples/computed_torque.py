"""Computed-torque control: inverse dynamics cancels the nonlinear terms, so that joint errors decay exponentially.

The arm starts next to its trajectory and is simulated by forward dynamics. The error must decay.
"""

import numpy as np

import linksweep as ls
from linksweep.motion import Quintic

robot = ls.robots.puma560()
path = Quintic([[0.0] * 6, [0.5, -0.6, 0.7, 0.8, -0.9, 1.0]], [0.0, 1.0])
stiffness, damping, step = 100.0, 20.0, 1e-3  # critically damped, 10 rad/s

q, qd = path(0.0).q + 0.1, np.zeros(6)
print("time (s)   largest joint error (rad)")
for tick in range(1501):
    wanted = path(tick * step)
    error = wanted.q - q
    if tick % 300 == 0:
        print(f"{tick * step:8.1f}   {np.abs(error).max():.2e}")
    command = wanted.qdd + damping * (wanted.qd - qd) + stiffness * error
    tau = robot.inverse_dynamics(q, qd, command)
    qd = qd + step * robot.forward_dynamics(q, qd, tau)  # semi-implicit Euler
    q = q + step * qd

assert np.abs(error).max() < 1e-3
