"""Simulate a double pendulum and check that its energy is constant.

Forward dynamics is integrated by the classical Runge-Kutta method. The script prints the energy drift.
"""

import numpy as np

import linksweep as ls

robot = ls.robots.planar(2)  # two rods of 1 m and 1 kg in the x-y plane; gravity pulls along -y
no_torque = np.zeros(2)


def rate(state):
    """d/dt of state = [q, qd]."""
    q, qd = state
    return np.array([qd, robot.forward_dynamics(q, qd, no_torque)])


def energy(state):
    """Kinetic energy from the mass matrix, potential energy from the height of each rod's middle."""
    q, qd = state
    middles = [(robot.pose(q, link) @ [0.5, 0.0, 0.0, 1.0])[:3] for link in robot.link_names]
    return 0.5 * qd @ robot.mass_matrix(q) @ qd - sum(np.dot(robot.gravity, middle) for middle in middles)


step = 1e-3
state = np.array([[0.5, 0.3], [0.0, 0.0]])
at_start = energy(state)
print("time (s)     q1 (rad)    q2 (rad)    energy drift (J)")
for tick in range(2001):
    if tick % 400 == 0:
        drift = energy(state) - at_start
        print(f"{tick * step:8.1f} {state[0, 0]:12.6f} {state[0, 1]:11.6f} {drift:15.1e}")
        assert abs(drift) < 1e-8
    k1 = rate(state)
    k2 = rate(state + step / 2 * k1)
    k3 = rate(state + step / 2 * k2)
    k4 = rate(state + step * k3)
    state = state + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
